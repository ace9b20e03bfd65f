// Class-wise sums of a Gaussian kernel from a block of matrix products.
#pragma once

#include <cstdint>

namespace calibrant {

// products (rows, m) holds <test_i, support_j>; half_norms |support_j|^2 / 2; the support is sorted by class and class c
// lies at starts[c] .. starts[c + 1]. With e_ij = (products_ij - half_norms_j) * scale, out[i][c] is the weighted sum over the
// class of exp(e_ij - peak_i), and peaks[i] is peak_i, the row's largest e: the sums never all vanish. skip[i], where not
// negative, is a support row to leave out. weights may be null.
template <class T>
void class_kernel_sums(const T* products, const double* half_norms, const double* weights, const std::int64_t* starts,
                       const std::int64_t* skip, std::int64_t rows, std::int64_t m, std::int64_t classes, double scale,
                       int threads, double* out, double* peaks);

}  // namespace calibrant
