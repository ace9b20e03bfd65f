// The log-loss of a mixture of given columns, with its derivatives in the weights.
#pragma once

#include <cstdint>

namespace calibrant {

// out[0]: sum of -weight * log(m) with m = <columns[i], w>; out[1..parts]: gradient in w; then the parts x parts Hessian.
// A row with m <= 0 and a positive weight makes the loss infinite. weights may be null (all one).
void mixture_sums(const double* columns, const double* weights, std::int64_t n, std::int64_t parts, const double* w,
                  int threads, double* out);

}  // namespace calibrant
