// One look over user input: what validation needs to know before anything is computed.
#pragma once

#include <cstdint>

namespace calibrant {

struct Findings {
    std::int64_t nan = -1;           // first row with a NaN, or -1
    std::int64_t plus_infinity = -1; // first row with +inf, or -1
    std::int64_t minus_infinity = -1;// first row with -inf, or -1
    std::int64_t no_finite = -1;     // first row with no finite value, or -1
    std::int64_t off_simplex = -1;   // first row outside the simplex (entries in [0, 1], sum within tolerance), or -1
    double largest = 0;              // the largest absolute value that is finite
};

template <class T>
Findings scan(const T* values, std::int64_t n, std::int64_t k, double tolerance, int threads);

}  // namespace calibrant
