// The partition of cells into intervals whose mutual information with the outcome is greatest.
#pragma once

#include <cstdint>
#include <vector>

namespace calibrant {

// Cells of weights and positives become min(bins, count) intervals; the first cells of all but the first. A dynamic
// programme: best[m, stop] = max over start of best[m - 1, start] + information of the cells start .. stop - 1, which is
// p log p + (w - p) log(w - p) - w log w of their weight w and positives p. Of equals the first start.
std::vector<std::int64_t> best_partition(const double* weights, const double* positives, std::int64_t count,
                                         std::int64_t bins);

}  // namespace calibrant
