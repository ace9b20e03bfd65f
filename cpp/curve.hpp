// Kernels of maps that send every class's -log p through one shared piecewise-linear curve.
//
// Of a row, t_k = -log softmax(beta * z)_k >= 0, and the map is softmax(v(t)), v linear between its values at the knots
// and on the last two knots' line beyond them. The values may vary with the row: they are given at `stations`, and a
// row at place 2.25 uses 0.75 of the values at station 2 and 0.25 of those at station 3.
#pragma once

#include <cstdint>

namespace calibrant {

struct Curve {
    const double* knots;   // (count), rising, knots[0] = 0
    std::int64_t count;
    const double* values;  // (stations, count)
    std::int64_t stations;
    double beta;
    std::int64_t parameters() const { return count * stations; }
};

constexpr std::int64_t kCurveFolds = 5;  // rows i, i + 5, i + 10, ... form a fold

// Width of one fold of the result: the weighted sum of the log-loss, its gradient in the values, its Hessian (the upper
// blocks of stations alone).
inline std::int64_t curve_width(const Curve& c) { return 1 + c.parameters() + c.parameters() * c.parameters(); }

// out: (kCurveFolds, curve_width). places (n) lie in [0, stations - 1]; weights may be null.
template <class T>
void curve_sums(const T* logits, const std::int64_t* labels, const double* weights, const double* places, std::int64_t n,
                std::int64_t k, const Curve& curve, int threads, double* out);

// out = the map's probabilities; -inf gives 0. Where the values fall from knot to knot the order of a row is kept.
template <class T>
void curve_apply(const T* logits, const double* places, std::int64_t n, std::int64_t k, const Curve& curve, int threads,
                 T* out);

}  // namespace calibrant
