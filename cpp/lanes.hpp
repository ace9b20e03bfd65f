// Sums over the scores of a row with no remainder: short rows lie side by side, one in each lane of a vector, and the last
// scores of a long one are looked at through a window that ends with the row.
#pragma once

#include <cmath>
#include <cstdint>

#include "simd.hpp"

namespace calibrant {

template <class T>
constexpr std::int64_t kLanes = 64 / sizeof(T);  // what the widest registers hold; rows that are taken together
template <class T>
constexpr std::int64_t kShort = 4 * kLanes<T> - 1;  // longer rows fill their vectors well enough to be taken one by one
constexpr std::int64_t kSteps = 64;  // vectors after which lanes are emptied into doubles, as floats lose digits
static_assert(kShort<float> <= kSteps && kShort<double> <= kSteps);

// Up to kLanes rows of at most kShort scores: score j of row r in place j * kLanes + r. Further lanes repeat the last row.
template <class T>
CALIBRANT_INLINE void side_by_side(const T* z, std::int64_t rows, std::int64_t k, T* out) {
    constexpr std::int64_t lanes = kLanes<T>;
    for (std::int64_t r = 0; r < lanes; ++r) {
        const T* row = z + (r < rows ? r : rows - 1) * k;
        for (std::int64_t j = 0; j < k; ++j) out[j * lanes + r] = row[j];
    }
}

// The largest score of each lane.
template <class T>
CALIBRANT_INLINE void lane_tops(const T* scores, std::int64_t k, T* top) {
    constexpr std::int64_t lanes = kLanes<T>;
    for (std::int64_t r = 0; r < lanes; ++r) top[r] = scores[r];
    for (std::int64_t j = 1; j < k; ++j) {
#pragma omp simd
        for (std::int64_t r = 0; r < lanes; ++r) {
            const T score = scores[j * lanes + r];
            top[r] = score > top[r] ? score : top[r];
        }
    }
}

// beta * d where exp of it is not 0, and else the largest value where it is: 0 times it is then 0. So it is for d = -inf.
template <class T>
CALIBRANT_INLINE T exponent_of(T beta, T d) {
    const T e = beta * d;
    return e > least_exponent<T> ? e : least_exponent<T>;
}

// exp(beta * d) of `count` differences that are not positive. A loop of its own finds the exponents, here as elsewhere: in one
// loop compilers take a branch for those that are the least, and no vectors.
template <std::int64_t count, class T>
CALIBRANT_INLINE void exponentials(const T* beta, const T* d, T* out) {
    alignas(64) T exponent[count];
#pragma omp simd
    for (std::int64_t l = 0; l < count; ++l) exponent[l] = exponent_of(beta[l], d[l]);
#pragma omp simd
    for (std::int64_t l = 0; l < count; ++l) out[l] = exp_clamped(exponent[l]);
}

// The exponents beta * (z - top) of short rows that lie side by side.
template <class T>
CALIBRANT_INLINE void lane_exponents(const T* scores, std::int64_t k, const T* top, const T* beta, T* e) {
    constexpr std::int64_t lanes = kLanes<T>;
    for (std::int64_t j = 0; j < k * lanes; j += lanes) {
#pragma omp simd
        for (std::int64_t r = 0; r < lanes; ++r) e[j + r] = exponent_of(beta[r], scores[j + r] - top[r]);
    }
}

// The exponents of scores from..to of a long row. The last vector of a row that does not fill it is the row's last kLanes
// scores, and those that have been there before have the least exponent.
template <class T>
CALIBRANT_INLINE void row_exponents(const T* row, std::int64_t from, std::int64_t to, T top, T beta, T* e) {
    constexpr std::int64_t lanes = kLanes<T>;
    const std::int64_t whole = (to - from) / lanes * lanes, seen = from + whole - (to - lanes);
    const T *part = row + from, *window = row + to - lanes;
#pragma omp simd
    for (std::int64_t j = 0; j < whole; ++j) e[j] = exponent_of(beta, part[j] - top);
    if (from + whole == to) return;
#pragma omp simd
    for (std::int64_t l = 0; l < lanes; ++l)
        e[whole + l] = l < seen ? least_exponent<T> : exponent_of(beta, window[l] - top);
}

// For up to kLanes rows, the largest score in top[r] and sum s over the scores in sums[s][r]. `Lanes` holds its sums in lanes,
// T sum[kCount][kLanes], and add(e, d) adds what a vector of exponents e = beta * (z - max) comes to; d are those for a beta of
// one, where Lanes::kPlain asks for them. The least exponent must come to nothing.
template <class Lanes, class T>
CALIBRANT_INLINE void sum_rows(const T* z, std::int64_t rows, std::int64_t k, const T* beta, T* top,
                               double (*sums)[kLanes<T>]) {
    constexpr std::int64_t lanes = kLanes<T>, room = kSteps * lanes, step = Lanes::kPlain ? lanes : 0;
    alignas(64) T e[room], d[Lanes::kPlain ? room : lanes];
    if (k <= kShort<T>) {
        alignas(64) T scores[kShort<T> * lanes], one[lanes];
        for (std::int64_t r = 0; r < lanes; ++r) one[r] = 1;
        side_by_side(z, rows, k, scores);
        lane_tops(scores, k, top);
        lane_exponents(scores, k, top, beta, e);
        if constexpr (Lanes::kPlain) lane_exponents(scores, k, top, one, d);
        Lanes found{};
        for (std::int64_t j = 0; j < k; ++j) found.add(e + j * lanes, d + j * step);
        for (std::int64_t s = 0; s < Lanes::kCount; ++s)
            for (std::int64_t r = 0; r < lanes; ++r) sums[s][r] = found.sum[s][r];
        return;
    }
    for (std::int64_t r = 0; r < rows; ++r) {
        const T* row = z + r * k;
        top[r] = row_max(row, k);
        for (std::int64_t s = 0; s < Lanes::kCount; ++s) sums[s][r] = 0;
        for (std::int64_t from = 0; from < k; from += room) {
            const std::int64_t to = k - from < room ? k : from + room;
            row_exponents(row, from, to, top[r], beta[r], e);
            if constexpr (Lanes::kPlain) row_exponents(row, from, to, top[r], T(1), d);
            Lanes found{};
            for (std::int64_t j = 0; from + j * lanes < to; ++j) found.add(e + j * lanes, d + j * step);
            for (std::int64_t s = 0; s < Lanes::kCount; ++s) sums[s][r] += folded_sum<lanes>(found.sum[s]);
        }
    }
}

}  // namespace calibrant
