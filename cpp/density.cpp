#include "density.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

// A peak may exceed the shift by this before sums are rescaled: far from overflow, and rare.
constexpr double slack = 20.0;

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
CALIBRANT_INLINE void exponentials(T* e, const T* weights, T shift, std::int64_t m) {
    if (weights) {
#pragma omp simd
        for (std::int64_t j = 0; j < m; ++j) e[j] = exp_nonpositive(e[j] - shift) * weights[j];
    } else {
#pragma omp simd
        for (std::int64_t j = 0; j < m; ++j) e[j] = exp_nonpositive(e[j] - shift);
    }
}

// Adds the terms of support rows first .. first + m to the sums of their classes, of which the first is c.
template <class T>
CALIBRANT_INLINE void add_segments(const T* e, const std::int64_t* starts, std::int64_t c, std::int64_t first, std::int64_t m,
                                   double* sums) {
    for (std::int64_t at = 0; at < m; ++c) {
        const std::int64_t end = starts[c + 1] - first < m ? starts[c + 1] - first : m;
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t j = at; j < end; ++j) sum += e[j];
        sums[c] += sum;
        at = end;
    }
}

CALIBRANT_CLONES double exponents_of(const float* p, const float* h, float s, std::int64_t m, float* out) {
    return exponents(p, h, s, m, out);
}
CALIBRANT_CLONES double exponents_of(const double* p, const double* h, double s, std::int64_t m, double* out) {
    return exponents(p, h, s, m, out);
}
CALIBRANT_CLONES void add_terms(float* e, const float* w, float shift, const std::int64_t* starts, std::int64_t c,
                                std::int64_t first, std::int64_t m, double* sums) {
    exponentials(e, w, shift, m);
    add_segments(e, starts, c, first, m, sums);
}
CALIBRANT_CLONES void add_terms(double* e, const double* w, double shift, const std::int64_t* starts, std::int64_t c,
                                std::int64_t first, std::int64_t m, double* sums) {
    exponentials(e, w, shift, m);
    add_segments(e, starts, c, first, m, sums);
}

CALIBRANT_CLONES double sum_of(const double* values, std::int64_t k) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < k; ++c) sum += values[c];
    return sum;
}
CALIBRANT_CLONES void shares_of(const double* sums, const double* prior, double factor, double part, std::int64_t k, float* out) {
#pragma omp simd
    for (std::int64_t c = 0; c < k; ++c) out[c] = static_cast<float>(sums[c] * factor + prior[c] * part);
}
CALIBRANT_CLONES void shares_of(const double* sums, const double* prior, double factor, double part, std::int64_t k, double* out) {
#pragma omp simd
    for (std::int64_t c = 0; c < k; ++c) out[c] = sums[c] * factor + prior[c] * part;
}

void raise_shift(double peak, double& shift, double* sums, std::int64_t classes) {
    if (std::isfinite(shift)) {
        const double factor = std::exp(shift - peak);
        for (std::int64_t c = 0; c < classes; ++c) sums[c] *= factor;
    }
    shift = peak;
}

}  // namespace

template <class T>
void add_class_kernels(const T* products, const double* half_norms, const double* weights, const std::int64_t* starts,
                       const std::int64_t* skip, std::int64_t rows, std::int64_t m, std::int64_t first, std::int64_t classes,
                       double scale, int threads, double* shifts, double* sums) {
    std::vector<T> norms(half_norms, half_norms + m), shares;
    if (weights) shares.assign(weights, weights + m);
    const T* w = weights ? shares.data() : nullptr;
    std::int64_t c = 0;
    while (c < classes && starts[c + 1] <= first) ++c;
    for_blocks(rows, m, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        std::vector<T> e(m);
        for (std::int64_t i = from; i < to; ++i) {
            double peak = exponents_of(products + i * m, norms.data(), static_cast<T>(scale), m, e.data());
            if (skip && skip[i] >= first && skip[i] < first + m) {
                e[skip[i] - first] = -std::numeric_limits<T>::infinity();
                peak = row_max(e.data(), m);
            }
            if (peak == -std::numeric_limits<double>::infinity()) continue;
            if (!(peak <= shifts[i] + slack)) raise_shift(peak, shifts[i], sums + i * classes, classes);
            if (exp_nonpositive(static_cast<T>(peak) - static_cast<T>(shifts[i])) == 0) continue;  // every term is zero
            add_terms(e.data(), w, static_cast<T>(shifts[i]), starts, c, first, m, sums + i * classes);
        }
    });
}

template <class T>
void finish_class_kernels(const double* sums, const double* shifts, const double* own, const double* prior,
                          std::int64_t rows, std::int64_t classes, double scale, double zero_log, double clip, int threads,
                          T* out) {
    for_blocks(rows, classes, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        for (std::int64_t i = from; i < to; ++i) {
            const bool empty = !std::isfinite(shifts[i]);
            const double height = empty ? 0.0 : std::min(shifts[i] - own[i] * scale, slack);
            const double floor = empty ? 1.0 : std::exp(std::min(zero_log - height, 700.0));
            const double factor = (1.0 - clip) / (sum_of(sums + i * classes, classes) + floor);
            shares_of(sums + i * classes, prior, factor, floor * factor + clip, classes, out + i * classes);
        }
    });
}

#define CALIBRANT_INSTANTIATE(T)                                                                                         \
    template void add_class_kernels<T>(const T*, const double*, const double*, const std::int64_t*, const std::int64_t*,   \
                                       std::int64_t, std::int64_t, std::int64_t, std::int64_t, double, int, double*, double*); \
    template void finish_class_kernels<T>(const double*, const double*, const double*, const double*, std::int64_t,        \
                                          std::int64_t, double, double, double, int, T*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
