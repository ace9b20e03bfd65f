// What the kernels of the linear maps do with one row.
#pragma once

#include <cmath>

#include "linear.hpp"
#include "simd.hpp"

namespace calibrant {

// Turns a - top into exponentials in place and returns their sum.
template <class T>
CALIBRANT_INLINE double exponentials(T* a, std::int64_t k, T top) {
    constexpr std::int64_t chunk = 512;
    double total = 0;
    for (std::int64_t from = 0; from < k; from += chunk) {
        const std::int64_t to = from + chunk < k ? from + chunk : k;
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t j = from; j < to; ++j) {
            a[j] = exp_nonpositive(a[j] - top);
            sum += a[j];
        }
        total += sum;
    }
    return total;
}

// The two centres of one row; scratch has room for k values.
template <class T>
CALIBRANT_INLINE void centres_row(const T* z, std::int64_t k, double beta, double floor, T* scratch, double* out) {
    const T b = static_cast<T>(beta), low = static_cast<T>(floor), top = row_max(z, k) * b;
    for (std::int64_t j = 0; j < k; ++j) scratch[j] = b * z[j];
    const double lse = static_cast<double>(top) + std::log(exponentials(scratch, k, top));
    const T c = static_cast<T>(lse);
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < k; ++j) {
        const T u = b * z[j] - c;
        sum += u > low ? u : low;
    }
    out[0] = lse;
    out[1] = static_cast<double>(sum) / k;
}

// x of one row.
template <class T>
CALIBRANT_INLINE void feature_row(const T* z, const double* centre, std::int64_t k, Frame frame, T* x) {
    const T beta = static_cast<T>(frame.beta), low = static_cast<T>(frame.floor), c = static_cast<T>(centre[0]);
    const T s = frame.centred ? static_cast<T>(centre[1]) : T(0);
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) {
        const T u = beta * z[j] - c;
        x[j] = (u > low ? u : low) - s;
    }
}

// a = u + d x + b of one row, and x where it is wanted later.
template <class T>
CALIBRANT_INLINE void vector_row(const T* z, const double* centre, std::int64_t k, Frame frame, const T* d, const T* b, T* a,
                                 T* x) {
    const T beta = static_cast<T>(frame.beta), low = static_cast<T>(frame.floor), c = static_cast<T>(centre[0]);
    const T s = frame.centred ? static_cast<T>(centre[1]) : T(0);
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) {
        const T u = beta * z[j] - c;
        const T f = (u > low ? u : low) - s;
        x[j] = f;
        a[j] = u + d[j] * f + b[j];
    }
}

}  // namespace calibrant
