// Kernels of temperature scaling and its ensemble. beta is 1/T throughout.
#pragma once

#include <cstdint>

namespace calibrant {

constexpr std::int64_t kSums = 3;  // loss, first and second derivative in beta

enum class Loss : int { nll = 0, brier = 1 };

// out[g][0..2]: weighted sums over the rows of group g of the loss of softmax(betas[g] * z) and its two derivatives in
// betas[g], which are positive. weights may be null (all one), places may be null (all rows are in group 0).
template <class T>
void temperature_sums(const T* logits, const std::int64_t* labels, const double* weights, const std::int64_t* places,
                      std::int64_t n, std::int64_t k, const double* betas, std::int64_t groups, Loss loss, int threads,
                      double* out);

// out[i][0..2]: p_y = softmax(beta * z)_y of row i and its two derivatives in log beta.
template <class T>
void temperature_rows(const T* logits, const std::int64_t* labels, std::int64_t n, std::int64_t k, double beta,
                      int threads, double* out);

// out[0..3]: weighted sums of <a, a>, <a, a'>, <a, b>, <a', b> with a = softmax(beta * z), b = softmax(z), a' = da/dlog beta;
// out[4..6]: weighted sums of a_y, a'_y, b_y; out[7]: of <b, b>; out[8], out[9]: of <a', a'> + <a, a''>, <a'', b>;
// out[10]: of a''_y. What a quadratic programme in the ensemble's weights and its derivatives in log beta need.
constexpr std::int64_t kEnsembleSums = 11;
template <class T>
void ensemble_sums(const T* logits, const std::int64_t* labels, const double* weights, std::int64_t n, std::int64_t k,
                   double beta, int threads, double* out);

// out = w[0] * softmax(beta * z) + w[1] * softmax(z) + w[2] / k, row by row.
template <class T>
void ensemble_apply(const T* logits, std::int64_t n, std::int64_t k, double beta, const double* w, int threads, T* out);

}  // namespace calibrant
