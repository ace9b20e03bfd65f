// A mixture of linear maps of the same few rows, in one sweep: what a service asks for that sends one row at a time.
#pragma once

#include <cstdint>

#include "linear.hpp"

namespace calibrant {

// D lies in panels of so many of its rows, one panel after the other, each column by column: it streams by in one go. The
// last panel is filled up with zeros.
template <class T>
constexpr std::int64_t kPanel = 128 / sizeof(T);

template <class T>
constexpr std::int64_t padded_rows(std::int64_t k) {
    return (k + kPanel<T> - 1) / kPanel<T> * kPanel<T>;
}

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

// out += sum of share * softmax(u + D x + b) over the parts, row by row, on the caller's thread.
template <class T>
void add_linear_mixture(const T* logits, std::int64_t n, std::int64_t k, const LinearPart<T>* parts, std::int64_t count,
                        T* out);

}  // namespace calibrant
