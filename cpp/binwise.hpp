// Kernels of maps that treat a row by the log-odds of its top class.
#pragma once

#include <cstdint>

namespace calibrant {

// out (n) = log p/(1-p) of the largest p of softmax(z), from the logits, so that p = 1 has its own size too.
template <class T>
void top_log_odds(const T* logits, std::int64_t n, std::int64_t k, int threads, double* out);

// out = softmax(betas[b] * z), b the number of edges that the log-odds of the row's top class reach; the edges (bins - 1)
// rise. -inf gives 0.
template <class T>
void binwise_apply(const T* logits, std::int64_t n, std::int64_t k, const double* edges, const double* betas,
                   std::int64_t bins, int threads, T* out);

}  // namespace calibrant
