// A mixture of linear maps of the same rows, in one sweep. A row answers the same bits alone and among others.
#pragma once

#include <cstdint>

#include "linear.hpp"
#include "panels.hpp"

namespace calibrant {

// One map of the mixture, softmax(u + D x + b).
template <class T>
struct LinearPart {
    Frame frame;
    double mean, scale;    // the feature after the K-th: the mean of max(u, floor), less this, times that
    double share;
    std::int64_t columns;  // of D: K, or K + 1 with that feature; 1 where D is diagonal
    const T* weights;      // D in panels, or its diagonal
    const T* intercept;    // b
};

// out += sum of share * softmax(u + D x + b) over the parts, row by row.
template <class T>
void add_linear_mixture(const T* logits, std::int64_t n, std::int64_t k, const LinearPart<T>* parts, std::int64_t count,
                        int threads, T* out);

}  // namespace calibrant
