// What carries one-score maps to K classes: log-odds of every class, and rows of marginals made distributions.
#pragma once

#include <cstdint>

namespace calibrant {

// out[j] = z[j] - log(sum of exp z over the other classes), never through a saturated probability. Non-decreasing in
// z[j]. Single precision too is computed in double and rounded once, so that whoever computes it otherwise in double has
// the same bits. Of more than two classes they are multiples of 2^-36: rows of the same scores in another order, whose
// sums differ in their last bits, stay together. All kernels that compare log-odds call this one compiled function, so
// that a score met in a fit and again in a prediction has the same bits. -inf gives -inf; a row with one possible class
// gives +inf for it. Where the log-odds of one class only are asked for, the other places of out hold anything.
constexpr std::int64_t kEvery = -1;
void log_odds_row(const float* z, std::int64_t k, float* out, std::int64_t only = kEvery);
void log_odds_row(const double* z, std::int64_t k, double* out, std::int64_t only = kEvery);

// The same without the grid, and to about 1e-6 in single precision throughout where the scores are: for sums and smooth
// curves, which compare nothing.
void near_log_odds_row(const float* z, std::int64_t k, float* out);
void near_log_odds_row(const double* z, std::int64_t k, double* out);

template <class T>
void log_odds(const T* logits, std::int64_t n, std::int64_t k, int threads, T* out);

// Divides each row of marginals by its sum; a row that sums to zero becomes softmax of its logits. With keep_top
// a class whose logit is the largest of its row also ends strictly above every class with a smaller logit.
template <class T>
void normalize_rows(const T* logits, std::int64_t n, std::int64_t k, bool keep_top, int threads, T* marginals);

}  // namespace calibrant
