// The log-loss of a mixture of given columns, with its derivatives in the weights, and quadratics on the simplex.
#pragma once

#include <cstdint>

namespace calibrant {

// out[0]: sum of -weight * log(m) with m = <columns[i], w>; out[1..parts]: gradient in w; then the parts x parts Hessian.
// A row with m <= 0 and a positive weight makes the loss infinite. weights may be null (all one).
void mixture_sums(const double* columns, const double* weights, std::int64_t n, std::int64_t parts, const double* w,
                  int threads, double* out);

// Whether w'Gw is convex for weights that sum to one, but for rounding.
bool convex_on_simplex(const double* gram, std::int64_t parts);

// w, in and out: from there to the point of the simplex that minimises w'Gw / 2 - c'w, which is convex there; where that
// is more than a point, to about the nearest. By an active set: from the optimum over some parts, the one whose weight would
// pay most is taken in, and those that would become negative are let go (as Lawson and Hanson do for least squares).
void best_quadratic(const double* gram, const double* linear, std::int64_t parts, double* w);

}  // namespace calibrant
