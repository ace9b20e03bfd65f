// What rows of probabilities come down to, in one read: their largest entry, whether it is the label's, their validity.
#pragma once

#include <cstdint>

namespace calibrant {

// For each row its largest entry, the first column that has it, and its sum of squares. Returns the first row that is
// not a distribution (entries in [0, 1] that sum to one within the tolerance), or -1; with `marginals` the sum is free.
template <class T>
std::int64_t row_tops(const T* values, std::int64_t n, std::int64_t k, double tolerance, bool marginals, int threads,
                      double* top, std::int64_t* column, double* squares);

// hits[i]: whether fewer than `most` entries of row i come before its label's. Larger ones do, and equal ones in earlier
// columns. Returns the first row that is not a distribution, as row_tops does.
template <class T>
std::int64_t label_hits(const T* values, const std::int64_t* labels, std::int64_t n, std::int64_t k, std::int64_t most,
                        double tolerance, bool marginals, int threads, bool* hits);

}  // namespace calibrant
