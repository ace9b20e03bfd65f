// Sums by class and bin: all that a binned calibration error needs of the rows.
#pragma once

#include <cstdint>

namespace calibrant {

// out[0..2][class][bin]: sums over rows of the weight, of weight * p and of weight * [label is the class], for the
// entries above their class's floor. Bins are [edges[b], edges[b + 1]), the last one closed. weights may be null.
template <class T>
void class_bins(const T* values, const std::int64_t* labels, const double* weights, std::int64_t n, std::int64_t k,
                const double* edges, std::int64_t bins, const double* floors, int threads, double* out);

// out[0..2][bin]: sums over pairs of the weight, of weight * score and of weight * outcome. weights may be null.
void pair_bins(const double* scores, const double* outcomes, const double* weights, std::int64_t n, const double* edges,
               std::int64_t bins, double* out);

}  // namespace calibrant
