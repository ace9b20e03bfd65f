#include "pieces.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kSpan = 1024;  // scores of one group that are answered in a row

inline double sigmoid(double eta) {
    const double small = std::exp(-std::fabs(eta));
    return eta >= 0 ? 1 / (1 + small) : small / (1 + small);
}

inline double answer(double x, const double* knots, std::int64_t count, const double* pieces) {
    const double held = std::min(std::max(x, knots[0]), knots[count - 1]);
    const std::int64_t piece = std::upper_bound(knots + 1, knots + count - 1, held) - knots - 1;
    const double *c = pieces + 4 * piece, t = held - knots[piece];
    return sigmoid(c[0] + t * (c[1] + t * (c[2] + t * c[3])));
}

}  // namespace

template <class T>
void pieces_apply(const T* x, std::int64_t n, std::int64_t k, const std::int64_t* groups, const std::int64_t* starts,
                  std::int64_t group_count, const double* knots, const double* pieces, int threads, T* out) {
    const bool shared = group_count == 1;
    const std::int64_t span = shared ? kSpan : k, spans = (n * k + span - 1) / span;
    for_blocks(spans, span, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        for (std::int64_t s = from; s < to; ++s) {
            const std::int64_t begin = s * span, count = std::min(span, n * k - begin);
            for (std::int64_t i = 0; i < count; ++i) {
                const std::int64_t g = shared ? 0 : groups[i];
                const std::int64_t first = starts[g], size = starts[g + 1] - first;
                const T p = static_cast<T>(answer(x[begin + i], knots + first, size, pieces + 4 * first));
                out[begin + i] = std::max(p, std::numeric_limits<T>::min());  // a sigmoid is never zero
            }
        }
    });
}

#define CALIBRANT_PIECES(T)                                                                                              \
    template void pieces_apply<T>(const T*, std::int64_t, std::int64_t, const std::int64_t*, const std::int64_t*,        \
                                  std::int64_t, const double*, const double*, int, T*);
CALIBRANT_PIECES(float)
CALIBRANT_PIECES(double)

}  // namespace calibrant
