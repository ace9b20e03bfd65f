// The monotone sweep: the most bins whose heights never decrease.
#pragma once

#include <cstdint>

namespace calibrant {

struct Swept {
    std::int64_t bins;
    double error;
};

// The most bins such that heights never decrease with them or with fewer. values[0..m) increase; prefix holds three
// rows of m + 1 prefix sums: weights, weighted scores, weighted outcomes. norm: 1, 2, or 0 for the largest gap.
Swept sweep(const double* values, const double* prefix, std::int64_t m, bool equal_width, int norm);

}  // namespace calibrant
