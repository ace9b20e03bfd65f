// The log-loss of a mixture of given columns, with its derivatives in the weights, and the best weights.
#pragma once

#include <cstdint>

namespace calibrant {

// out[0]: sum of -weight * log(m) with m = <columns[i], w>; out[1..parts]: gradient in w; then the parts x parts Hessian.
// A row with m <= 0 and a positive weight makes the loss infinite. weights may be null (all one).
void mixture_sums(const double* columns, const double* weights, std::int64_t n, std::int64_t parts, const double* w,
                  int threads, double* out);

// w: the point of the simplex that minimises w'Gw / 2 - c'w, G positive semidefinite. Face by face, the largest first: the
// first answer that is feasible and whose absent weights would not pay (Karush, Kuhn and Tucker) is the optimum. For few
// parts, as there are 2^parts faces.
void best_quadratic(const double* gram, const double* linear, std::int64_t parts, double* w);

// w, in and out: from there to the point of the simplex with the least loss of mixture_sums, a convex problem. Newton's
// model is minimised exactly by best_quadratic, with a line search, until the promised gain is negligible.
void best_mixture(const double* columns, const double* weights, std::int64_t n, std::int64_t parts, int most, int threads,
                  double* w);

}  // namespace calibrant
