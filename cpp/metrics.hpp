// Kernels of measuring: what rows of probabilities come down to, sums by class and bin, and the monotone sweep.
#pragma once

#include <cstdint>

namespace calibrant {

// For each row its largest entry, the first column that has it, and its sum of squares. Returns the first row that is
// not a distribution (entries in [0, 1] that sum to one within the tolerance), or -1; with `marginals` the sum is free.
template <class T>
std::int64_t row_tops(const T* values, std::int64_t n, std::int64_t k, double tolerance, bool marginals, int threads,
                      double* top, std::int64_t* column, double* squares);

// out[0..2][class][bin]: sums over rows of the weight, of weight * p and of weight * [label is the class], for the
// entries above their class's floor. Bins are [edges[b], edges[b + 1]), the last one closed. weights may be null.
template <class T>
void class_bins(const T* values, const std::int64_t* labels, const double* weights, std::int64_t n, std::int64_t k,
                const double* edges, std::int64_t bins, const double* floors, int threads, double* out);

// out[0..2][bin]: sums over pairs of the weight, of weight * score and of weight * outcome. weights may be null.
void pair_bins(const double* scores, const double* outcomes, const double* weights, std::int64_t n, const double* edges,
               std::int64_t bins, double* out);

// out[set][x]: sum over points of weights[set][i] * K((places[x] - points[i]) / h) / h, K(u) = 35/32 (1 - u^2)^3 on
// [-1, 1]; points increase. A kernel of degree 6 needs the moments 0..6 of its window: O(n + m log n), exact.
void triweight(const double* places, std::int64_t m, const double* points, const double* weights, std::int64_t n,
               std::int64_t sets, double h, double* out);

struct Swept {
    std::int64_t bins;
    double error;
};

// The most bins such that heights never decrease with them or with fewer. values[0..m) increase; prefix holds three
// rows of m + 1 prefix sums: weights, weighted scores, weighted outcomes. norm: 1, 2, or 0 for the largest gap.
Swept sweep(const double* values, const double* prefix, std::int64_t m, bool equal_width, int norm);

}  // namespace calibrant
