// Logistic regressions on log-odds x with the features u = log sigmoid(x), v = -log sigmoid(-x) and 1, of which u + v = x:
// the sums that Newton steps of Platt scaling (one slope, on x) and of beta calibration (two) need, and their answers.
#pragma once

#include <cstdint>

namespace calibrant {

// Loss, gradient and upper triangle of the Hessian, in the features (x, 1) or (u, v, 1).
constexpr std::int64_t logistic_width(bool two_slopes) { return two_slopes ? 10 : 6; }

// For each group of classes, over the pairs (score of a class, is it the label): weighted sums of the log-loss of
// sigmoid(c0 u + c1 v + c2) and its derivatives; with one slope c0 stands for both. targets[g] = (target of negatives,
// target of positives); coefficients[g] = c. Classes of a negative group are left out, and cost little; weights may be
// null.
template <class T>
void logistic_sums(const T* logits, const std::int64_t* labels, const double* weights, std::int64_t n, std::int64_t k,
                   const std::int64_t* groups, std::int64_t group_count, const double* coefficients, const double* targets,
                   bool two_slopes, int threads, double* out);

// out_ij = sigmoid(c0 u + c1 v + c2) of log-odds; coefficients are (1, 3) or (k, 3).
template <class T>
void logistic_apply(const T* odds, std::int64_t n, std::int64_t k, const double* coefficients, std::int64_t tables,
                    int threads, T* out);

// The same of logits; with normalize each row is divided by its sum (softmax of the logits where that is 0).
template <class T>
void logistic_lift(const T* logits, std::int64_t n, std::int64_t k, const double* coefficients, std::int64_t tables,
                   bool normalize, int threads, T* out);

}  // namespace calibrant
