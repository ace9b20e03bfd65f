// Sigmoids of piecewise cubic curves of log-odds: the answers of quadratic scaling and of logit splines.
#pragma once

#include <cstdint>

namespace calibrant {

// out = sigmoid(c0 + c1 t + c2 t^2 + c3 t^3), t the distance of x from the knot at or below it; x is held between the
// first and the last knot of its column's group. Group g owns the knots starts[g] .. starts[g + 1] - 1, two at least,
// and as many rows of four coefficients, of which the last is not used.
template <class T>
void pieces_apply(const T* x, std::int64_t n, std::int64_t k, const std::int64_t* groups, const std::int64_t* starts,
                  std::int64_t group_count, const double* knots, const double* pieces, int threads, T* out);

}  // namespace calibrant
