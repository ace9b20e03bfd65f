// What the kernels of the linear maps do with one row.
#pragma once

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

}  // namespace calibrant
