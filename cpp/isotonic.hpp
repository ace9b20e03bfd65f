// Isotonic regression of one-hot outcomes on log-odds, without sorting all n * k scores.
//
// A rise of the isotonic fit can only lie right before a positive, so the sorted positives and, from each to the next,
// the weight and the largest of the negatives are all a fit needs. Groups of classes are fitted side by side: group g
// owns the sorted, distinct values starts[g] .. starts[g + 1] - 1.
#pragma once

#include <cstdint>

namespace calibrant {

// out[i] = log-odds of row i's own label.
template <class T>
void label_log_odds(const T* logits, const std::int64_t* labels, std::int64_t n, std::int64_t k, int threads, T* out);

// Scores that differ by rounding alone are one score: fresh[i] = 1 where sorted[i] is the first of its like within its
// group, and bounds[i] (set there only) is what still counts as equal to it from below. With resolution > 0 probabilities
// within that of one another are equal too.
template <class T>
void merge_close(const T* sorted, const std::int64_t* starts, std::int64_t group_count, double resolution,
                 std::uint8_t* fresh, T* bounds);

// The negatives of group g that lie in [bound i - 1, bound i) are summed up at starts[g] + g + i: their weight into
// counts, their largest into largest (-inf where there are none). Rows of weight zero and classes of a negative group are
// passed over; weights may be null.
template <class T>
void negatives_between(const T* logits, const std::int64_t* labels, const double* weights, std::int64_t n, std::int64_t k,
                       const std::int64_t* groups, const std::int64_t* starts, std::int64_t group_count, const T* bounds,
                       int threads, double* counts, T* largest);

// Pools adjacent violators: levels[i] = the isotonic fit of sums[i] / weights[i] within each group; weights are positive.
void pool_adjacent(const double* sums, const double* weights, const std::int64_t* starts, std::int64_t group_count,
                   double* levels);

// out = (1 - epsilon) * f(x) + epsilon * sigmoid(x), f piecewise linear in sigmoid(x) through (knots, values) of the
// column's group and constant outside; with steps f(x) is the value of the last knot at or below x. groups may be null:
// one group for all.
template <class T>
void isotonic_apply(const T* x, std::int64_t n, std::int64_t k, const std::int64_t* groups, const std::int64_t* starts,
                    std::int64_t group_count, const T* knots, const double* values, bool steps, double epsilon, int threads,
                    T* out);

}  // namespace calibrant
