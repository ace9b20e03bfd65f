// Class-wise sums of a Gaussian kernel from blocks of matrix products.
#pragma once

#include <cstdint>

namespace calibrant {

// products (rows, m) holds <test_i, support_j> for support rows first .. first + m; half_norms |support_j|^2 / 2 and weights
// (may be null) go with these m. The support is sorted by class, and class c lies at starts[c] .. starts[c + 1]. With
// e_ij = (products_ij - half_norms_j) * scale, the weighted sums of exp(e_ij - shifts_i) over each class are added to
// sums[i][c]. A shift follows the largest e seen so far (-inf before the first block; the sums are rescaled where it
// rises), so that a row's sums neither vanish all nor overflow. skip[i], where not negative, is a support row to leave out.
template <class T>
void add_class_kernels(const T* products, const double* half_norms, const double* weights, const std::int64_t* starts,
                       const std::int64_t* skip, std::int64_t rows, std::int64_t m, std::int64_t first, std::int64_t classes,
                       double scale, int threads, double* shifts, double* sums);

// From such sums to probabilities: out[i] is the share of each class, after a kernel of exp(zero_log) spread by the prior was
// added (own[i] is half the squared length of the test row, so that the largest kernel is known), and with a share of
// clip of the prior.
template <class T>
void finish_class_kernels(const double* sums, const double* shifts, const double* own, const double* prior,
                          std::int64_t rows, std::int64_t classes, double scale, double zero_log, double clip, int threads,
                          T* out);

}  // namespace calibrant
