#include "density.hpp"

#include <limits>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

template <class T>
CALIBRANT_INLINE double exponents(const T* products, const T* half_norms, T scale, std::int64_t m, T* out) {
    T peak = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : peak)
    for (std::int64_t j = 0; j < m; ++j) {
        out[j] = (products[j] - half_norms[j]) * scale;
        peak = out[j] > peak ? out[j] : peak;
    }
    return peak;
}

template <class T>
CALIBRANT_INLINE double segment_sum(const T* e, const T* weights, T peak, std::int64_t from, std::int64_t to) {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = from; j < to; ++j) sum += exp_nonpositive(e[j] - peak) * weights[j];
    return sum;
}

CALIBRANT_CLONES double exponents_of(const float* p, const float* h, float s, std::int64_t m, float* out) {
    return exponents(p, h, s, m, out);
}
CALIBRANT_CLONES double exponents_of(const double* p, const double* h, double s, std::int64_t m, double* out) {
    return exponents(p, h, s, m, out);
}
CALIBRANT_CLONES double segment_of(const float* e, const float* w, float peak, std::int64_t from, std::int64_t to) {
    return segment_sum(e, w, peak, from, to);
}
CALIBRANT_CLONES double segment_of(const double* e, const double* w, double peak, std::int64_t from, std::int64_t to) {
    return segment_sum(e, w, peak, from, to);
}

}  // namespace

template <class T>
void class_kernel_sums(const T* products, const double* half_norms, const double* weights, const std::int64_t* starts,
                       const std::int64_t* skip, std::int64_t rows, std::int64_t m, std::int64_t classes, double scale,
                       int threads, double* out, double* peaks) {
    std::vector<T> norms(half_norms, half_norms + m), shares(m, T(1));
    if (weights) shares.assign(weights, weights + m);
    for_blocks(rows, m, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        std::vector<T> e(m);
        for (std::int64_t i = from; i < to; ++i) {
            T peak = static_cast<T>(exponents_of(products + i * m, norms.data(), static_cast<T>(scale), m, e.data()));
            if (skip && skip[i] >= 0) {
                e[skip[i]] = -std::numeric_limits<T>::infinity();
                peak = row_max(e.data(), m);
            }
            peaks[i] = peak;
            for (std::int64_t c = 0; c < classes; ++c)
                out[i * classes + c] =
                    peak > -std::numeric_limits<T>::infinity() ? segment_of(e.data(), shares.data(), peak, starts[c], starts[c + 1]) : 0.0;
        }
    });
}

#define CALIBRANT_INSTANTIATE(T)                                                                                       \
    template void class_kernel_sums<T>(const T*, const double*, const double*, const std::int64_t*, const std::int64_t*, \
                                       std::int64_t, std::int64_t, std::int64_t, double, int, double*, double*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
