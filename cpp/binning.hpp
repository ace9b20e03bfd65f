// Kernels of binned maps: fine cells of log-odds, sums by bin, and the look-up. Scores are logits; a score of class k is
// its log-odds (lift.hpp). groups[k] is the group that class k belongs to, below group_count; a class of a negative group
// is left out.
#pragma once

#include <cstdint>

namespace calibrant {

// A score's key: the bits of its float32 value, reordered so that keys rise with scores. The upper `bits` bits name a
// coarse cell; coarse cell c of group g is number (g << bits) + c. Each is split into 2^(32 - bits - shift[number]) fine
// cells, the first of which has index first[number]. Adds to out[cell][0..1] the weight of all scores and of the positives
// in each fine cell. With first = null: in each coarse cell.
template <class T>
void cell_sums(const T* logits, const std::int64_t* labels, const double* weights, const std::int64_t* groups,
               std::int64_t n, std::int64_t k, int bits, const std::int32_t* first, const std::int32_t* shift,
               std::int64_t cells, int threads, double* out);

// out[group][bin][0..3]: weight, weight of the positives, sum of sigmoid(score), sum of values (0 without) of the group's
// scores in [edges[group][bin - 1], edges[group][bin]). values is (n, k) or null.
template <class T>
void bin_sums(const T* logits, const std::int64_t* labels, const double* weights, const std::int64_t* groups,
              const T* values, std::int64_t n, std::int64_t k, const double* edges, std::int64_t group_count,
              std::int64_t n_edges, int threads, double* out);

// Sum of w log(1 + exp s) - o s over cells: the log-loss of scores s as they are, o of the weight w being positive.
double cell_loss(const double* scores, const double* weights, const double* outcomes, std::int64_t n);

// out_ij = table[t][bin of the log-odds of logits_ij], t = 0 (tables = 1) or j (tables = k); edges is (tables, n_edges),
// table (tables, n_edges + 1). With normalize each row is divided by its sum (softmax of the logits where that is 0).
template <class T>
void bin_lift(const T* logits, std::int64_t n, std::int64_t k, const double* edges, const double* table,
              std::int64_t tables, std::int64_t n_edges, bool normalize, int threads, T* out);

// out_i = table[bin of scores_i] for plain scores. Both look-ups are in binning_lift.cpp.
template <class T>
void bin_look_up(const T* scores, std::int64_t n, const double* edges, const double* table, std::int64_t n_edges,
                 int threads, T* out);

}  // namespace calibrant
