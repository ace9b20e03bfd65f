// Density estimates with the triweight kernel.
#pragma once

#include <cstdint>

namespace calibrant {

// out[set][x]: sum over points of weights[set][i] * K((places[x] - points[i]) / h) / h, K(u) = 35/32 (1 - u^2)^3 on
// [-1, 1]; points increase. A kernel of degree 6 needs the moments 0..6 of its window: O(n + m log n), exact.
void triweight(const double* places, std::int64_t m, const double* points, const double* weights, std::int64_t n,
               std::int64_t sets, double h, double* out);

}  // namespace calibrant
