#include "binwise.hpp"

#include <algorithm>
#include <cmath>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

// Relative to the second largest, so that nothing is lost where the largest is all there is.
template <class T>
CALIBRANT_INLINE double row_log_odds(const T* z, std::int64_t k) {
    const T top = row_max(z, k);
    const std::int64_t place = first_place(z, k, top);
    T second = -INFINITY;
#pragma omp simd reduction(max : second)
    for (std::int64_t j = 0; j < k; ++j) {
        const T other = j == place ? static_cast<T>(-INFINITY) : z[j];
        second = other > second ? other : second;
    }
    if (second == -INFINITY) return INFINITY;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < k; ++j) {
        const double below = static_cast<double>(z[j]) - static_cast<double>(second);
        sum += exp_nonpositive(j == place ? -INFINITY : below);
    }
    return on_grid(static_cast<double>(top) - static_cast<double>(second) - std::log(sum));
}

template <class T>
CALIBRANT_INLINE void odds_block(const T* logits, std::int64_t from, std::int64_t to, std::int64_t k, double* out) {
    for (std::int64_t i = from; i < to; ++i) out[i] = row_log_odds(logits + i * k, k);
}

template <class T>
CALIBRANT_INLINE void apply_block(const T* logits, std::int64_t from, std::int64_t to, std::int64_t k, const double* edges,
                                  const double* betas, std::int64_t bins, T* out) {
    for (std::int64_t i = from; i < to; ++i) {
        const T* z = logits + i * k;
        T* p = out + i * k;
        const std::int64_t bin = std::upper_bound(edges, edges + bins - 1, row_log_odds(z, k)) - edges;
        const T top = row_max(z, k), beta = static_cast<T>(betas[bin]);
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t j = 0; j < k; ++j) {
            p[j] = exp_nonpositive(beta * (z[j] - top));
            sum += p[j];
        }
        const T scale = T(1) / sum;
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) p[j] *= scale;
    }
}

CALIBRANT_CLONES void odds_block_of(const float* logits, std::int64_t from, std::int64_t to, std::int64_t k, double* out) {
    odds_block(logits, from, to, k, out);
}
CALIBRANT_CLONES void odds_block_of(const double* logits, std::int64_t from, std::int64_t to, std::int64_t k, double* out) {
    odds_block(logits, from, to, k, out);
}
CALIBRANT_CLONES void apply_block_of(const float* logits, std::int64_t from, std::int64_t to, std::int64_t k,
                                     const double* edges, const double* betas, std::int64_t bins, float* out) {
    apply_block(logits, from, to, k, edges, betas, bins, out);
}
CALIBRANT_CLONES void apply_block_of(const double* logits, std::int64_t from, std::int64_t to, std::int64_t k,
                                     const double* edges, const double* betas, std::int64_t bins, double* out) {
    apply_block(logits, from, to, k, edges, betas, bins, out);
}

}  // namespace

template <class T>
void top_log_odds(const T* logits, std::int64_t n, std::int64_t k, int threads, double* out) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        odds_block_of(logits, from, to, k, out);
    });
}

template <class T>
void binwise_apply(const T* logits, std::int64_t n, std::int64_t k, const double* edges, const double* betas,
                   std::int64_t bins, int threads, T* out) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        apply_block_of(logits, from, to, k, edges, betas, bins, out);
    });
}

#define CALIBRANT_INSTANTIATE(T)                                                                                      \
    template void top_log_odds<T>(const T*, std::int64_t, std::int64_t, int, double*);                                \
    template void binwise_apply<T>(const T*, std::int64_t, std::int64_t, const double*, const double*, std::int64_t,  \
                                   int, T*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
