// Bootstrap resamples of sorted rows as prefix sums over groups of tied scores.
#pragma once

#include <cstdint>

namespace calibrant {

// Row i of n (sorted by score) belongs to group group[i] of m, groups ascending. Resample r draws n rows with a generator
// seeded by seeds[r]; weights may be null. Written for each resample: the prefix sums before each group and in all
// (m + 1 entries) of the drawn weight, of weight * outcomes and of weight * excess, and for q columns of rows (n x q) the
// weighted sums.
void resample_sums(const std::int64_t* group, const double* outcomes, const double* excess, const double* weights,
                   const double* rows, const std::uint64_t* seeds, std::int64_t count, std::int64_t n, std::int64_t m,
                   std::int64_t q, int threads, double* mass, double* events, double* gaps, double* row_sums);

}  // namespace calibrant
