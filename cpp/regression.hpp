// Logistic regressions on cells: sums over scores and outcomes that are counted already.
#pragma once

#include <cstdint>

namespace calibrant {

// With s = X'theta of each cell, X being (d, n): out = the sum of w log(1 + exp s) - o s, of which w is the weight of a cell
// and o that of its positives; its gradient, d numbers; and its Hessian, (d, d).
void cell_regression(const double* features, const double* weights, const double* outcomes, const double* theta,
                     std::int64_t n, std::int64_t d, double* out);

}  // namespace calibrant
