// What the kernels of temperature scaling and of its ensemble share. beta is 1/T throughout.
#pragma once

#include <cstdint>

#include "lanes.hpp"
#include "simd.hpp"

namespace calibrant {

// p * x where a probability of 0 makes nothing of even an infinite x.
CALIBRANT_INLINE double times(double p, double x) { return p == 0.0 ? 0.0 : p * x; }

// Up to kLanes rows on their way: by row, beta, the label's z - max, and the sums of the scores.
template <class T, class Lanes>
struct Rows {
    alignas(64) double beta[kLanes<T>], dy[kLanes<T>], sums[Lanes::kCount][kLanes<T>];

    CALIBRANT_INLINE void look(const T* z, const std::int64_t* labels, std::int64_t rows, std::int64_t k) {
        alignas(64) T narrow[kLanes<T>], top[kLanes<T>];
        for (std::int64_t r = 0; r < kLanes<T>; ++r) narrow[r] = static_cast<T>(beta[r]);
        sum_rows<Lanes>(z, rows, k, narrow, top, sums);
        for (std::int64_t r = 0; r < rows; ++r) dy[r] = static_cast<double>(z[r * k + labels[r]]) - top[r];
    }
};

}  // namespace calibrant
