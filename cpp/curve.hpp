// Kernels of maps that send every class's -log p through one shared piecewise-linear curve.
//
// Of a row, t_k = -log softmax(beta * z)_k >= 0, and the map is softmax(v(t)), v linear between its values at the knots
// and on the last two knots' line beyond them. The values may vary with the row, through the log-odds of its top class:
// they are given at `stations` and linear between these.
#pragma once

#include <cstdint>

namespace calibrant {

struct Curve {
    const double* knots;     // (count), rising, knots[0] = 0
    std::int64_t count;
    const double* stations;  // (places), log-odds of the top class, rising
    const double* values;    // (places, count)
    std::int64_t places;
    double beta;
    std::int64_t parameters() const { return count * places; }
};

// Width of the result: the weighted sum of the log-loss, its gradient in the values, its Hessian (the upper blocks of
// stations alone).
inline std::int64_t curve_width(const Curve& c) { return 1 + c.parameters() + c.parameters() * c.parameters(); }

// out: (curve_width). weights may be null.
template <class T>
void curve_sums(const T* logits, const std::int64_t* labels, const double* weights, std::int64_t n, std::int64_t k,
                const Curve& curve, int threads, double* out);

// The largest t = -log softmax(beta * z) of any class of any row that has a weight; 0 where there is none.
template <class T>
double largest_surprise(const T* logits, const double* weights, std::int64_t n, std::int64_t k, double beta, int threads);

// out = the map's probabilities; -inf gives 0. Where the values fall from knot to knot the order of a row is kept.
template <class T>
void curve_apply(const T* logits, std::int64_t n, std::int64_t k, const Curve& curve, int threads, T* out);

}  // namespace calibrant
