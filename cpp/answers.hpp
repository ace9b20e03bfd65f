// What happens to the probabilities of any map on their way: into the next link of a chain, or out to the user.
#pragma once

#include <cstdint>

namespace calibrant {

// What a link hands on: out = log q of q = share * p + level, with the top kept as `keep_top` does where wanted. Where q is
// zero: the largest of the row less `depth`, or its smallest that is not zero if that is lower; but -inf where the logit
// was -inf too. logits may be null where no top is to be kept.
struct Handing {
    double share, level;
    bool keeps_top;
    double depth;
};
template <class T>
void finite_logs(const T* p, const T* logits, std::int64_t n, std::int64_t k, Handing handing, int threads, T* out);

// Where the first of the largest probabilities of a row is not at the first of its largest logits: raises the classes with
// the largest logit to the next number above all probabilities.
template <class T>
void keep_top(const T* logits, std::int64_t n, std::int64_t k, int threads, T* p);

// The smallest value; +inf where there is none.
template <class T>
double lowest(const T* values, std::int64_t n, std::int64_t k, int threads);

}  // namespace calibrant
