// What I-Max begins with: the sigmoid model of the outcomes, and centres by k-means++.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "imax.hpp"

namespace calibrant {

using Doubles = std::vector<double>;

inline double expit(double x) {
    const double e = std::exp(-std::abs(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
}

inline double log_expit(double x) { return std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x))); }

inline double entropy_of(double p) { return p > 0 ? -p * std::log(p) : 0.0; }

// Slope and offset of the logistic regression of the outcomes on the scores; (1, 0), the scores as they are, where they
// say nothing or the wrong thing about the outcomes.
std::pair<double, double> imax_model(const ImaxCells& cells);

// Increasing log-odds of centres, at most as many as bins: k-means++ with the Jensen-Shannon distance on cells of
// log-odds x. `total` is the sum of the weights.
Doubles imax_start(const Doubles& x, const double* weights, double total, const ImaxOptions& options);

}  // namespace calibrant
