// Sums of logistic regressions on log-odds x with the features u = log sigmoid(x), v = -log sigmoid(-x) and 1: what Newton
// steps of Platt scaling (one slope for u and v, as u + v = x) and of beta calibration need.
#pragma once

#include <cstdint>

namespace calibrant {

constexpr std::int64_t kLogisticSums = 10;  // loss, gradient (3), upper triangle of the Hessian (6)

// For each group of classes, over the pairs (score of a class, is it the label): weighted sums of the log-loss of
// sigmoid(c0 u + c1 v + c2) and its derivatives in c. targets[g] = (target of negatives, target of positives);
// coefficients[g] = c. Classes of a negative group are left out; weights may be null.
template <class T>
void logistic_sums(const T* logits, const std::int64_t* labels, const double* weights, std::int64_t n, std::int64_t k,
                   const std::int64_t* groups, std::int64_t group_count, const double* coefficients, const double* targets,
                   int threads, double* out);

}  // namespace calibrant
