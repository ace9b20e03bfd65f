// Edges as the kernels of binned maps use them, and the bins of a row of scores.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "simd.hpp"

namespace calibrant {

// The smallest T that is not below an edge: score >= edge exactly when score >= ceiling(edge).
template <class T>
T ceiling(double edge) {
    T rounded = static_cast<T>(edge);
    if (static_cast<double>(rounded) < edge) rounded = std::nextafter(rounded, std::numeric_limits<T>::infinity());
    return rounded;
}

template <class T>
std::vector<T> ceilings(const double* edges, std::int64_t count) {
    std::vector<T> out(count);
    for (std::int64_t m = 0; m < count; ++m) out[m] = ceiling<T>(edges[m]);
    return out;
}

// Bins of a row of scores: few edges by counting, many by a search of fixed length (edges padded to
// 2^steps - 1).
constexpr std::int64_t kCounted = 32;

template <class T>
struct Edges {
    std::vector<T> values;
    std::int64_t count = 0;  // edges in use
    int steps = 0;           // of the search; 0 where edges are counted
};

template <class T>
Edges<T> prepared(const double* edges, std::int64_t count) {
    Edges<T> out{ceilings<T>(edges, count), count, 0};
    if (count <= kCounted) return out;
    while ((std::int64_t(1) << out.steps) - 1 < count) ++out.steps;
    out.values.resize((std::size_t(1) << out.steps) - 1, std::numeric_limits<T>::quiet_NaN());  // at or above which nothing is
    return out;
}

// Counts the edges at or below each score, a few vectors of scores at a time so that the counts stay in registers.
template <class T>
CALIBRANT_INLINE void count_edges(const T* scores, std::int64_t k, const T* edges, std::int64_t count, std::int32_t* bin) {
    constexpr std::int64_t width = 32;
    std::int64_t j = 0;
    for (; j + width <= k; j += width) {
        std::int32_t found[width] = {};
        for (std::int64_t m = 0; m < count; ++m) {
            const T edge = edges[m];
#pragma omp simd
            for (std::int64_t l = 0; l < width; ++l) found[l] += scores[j + l] >= edge ? 1 : 0;
        }
        for (std::int64_t l = 0; l < width; ++l) bin[j + l] = found[l];
    }
    for (; j < k; ++j) {
        std::int32_t found = 0;
        for (std::int64_t m = 0; m < count; ++m) found += scores[j] >= edges[m] ? 1 : 0;
        bin[j] = found;
    }
}

template <class T>
CALIBRANT_INLINE void row_bins(const T* scores, std::int64_t k, const T* edges, std::int64_t count, int steps,
                               std::int32_t* bin) {
    if (steps == 0) {
        count_edges(scores, k, edges, count, bin);
        return;
    }
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) {
        std::int32_t at = 0;
        for (int step = 1 << (steps - 1); step > 0; step >>= 1) at += scores[j] >= edges[at + step - 1] ? step : 0;
        bin[j] = at;
    }
}

// Edges of several groups one after the other, each padded to `stride` = 2^steps - 1.
template <class T>
struct GroupEdges {
    std::vector<T> values;
    std::int64_t stride = 0;
    int steps = 0;
};

template <class T>
GroupEdges<T> prepared_groups(const double* edges, std::int64_t groups, std::int64_t count) {
    GroupEdges<T> out;
    while ((std::int64_t(1) << out.steps) - 1 < count) ++out.steps;
    out.stride = (std::int64_t(1) << out.steps) - 1;
    out.values.assign(groups * out.stride, std::numeric_limits<T>::quiet_NaN());
    for (std::int64_t g = 0; g < groups; ++g)
        for (std::int64_t m = 0; m < count; ++m) out.values[g * out.stride + m] = ceiling<T>(edges[g * count + m]);
    return out;
}

// Bins of a row whose column j is looked up in the edges that begin at start[j].
template <class T>
CALIBRANT_INLINE void row_bins_of_groups(const T* scores, std::int64_t k, const T* edges, const std::int64_t* start,
                                         int steps, std::int32_t* bin) {
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) {
        std::int32_t at = 0;
        for (int step = steps ? 1 << (steps - 1) : 0; step > 0; step >>= 1)
            at += scores[j] >= edges[start[j] + at + step - 1] ? step : 0;
        bin[j] = at;
    }
}

}  // namespace calibrant
