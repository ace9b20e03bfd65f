#include "binning.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "binning_edges.hpp"
#include "lift.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

CALIBRANT_INLINE std::uint32_t key_of(float score) {
    const float positive_zero = score + 0.0f;  // -0 becomes +0
    std::int32_t bits;
    std::memcpy(&bits, &positive_zero, 4);
    return static_cast<std::uint32_t>(bits ^ ((bits >> 31) & 0x7fffffff)) ^ 0x80000000u;
}

// Cells of a row of log-odds.
template <class T>
CALIBRANT_INLINE void row_cells(const T* odds, std::int64_t k, const std::int32_t* first, const std::int32_t* shift,
                                std::int32_t* cell) {
    if (!first) {
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) cell[j] = static_cast<std::int32_t>(key_of(static_cast<float>(odds[j])) >> 16);
        return;
    }
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) {
        const std::uint32_t key = key_of(static_cast<float>(odds[j]));
        cell[j] = first[key >> 16] + static_cast<std::int32_t>((key & 0xffffu) >> shift[key >> 16]);
    }
}

template <class T>
CALIBRANT_INLINE void cell_rows(const T* logits, const std::int64_t* labels, const double* weights, const bool* columns,
                                std::int64_t from, std::int64_t to, std::int64_t k, const std::int32_t* first,
                                const std::int32_t* shift, T* odds, std::int32_t* cell, double* out) {
    for (std::int64_t i = from; i < to; ++i) {
        const double weight = weights ? weights[i] : 1.0;
        if (weight == 0.0) continue;
        log_odds_row(logits + i * k, k, odds);
        row_cells(odds, k, first, shift, cell);
        if (columns) {
            for (std::int64_t j = 0; j < k; ++j)
                if (columns[j]) out[2 * cell[j]] += weight;
        } else {
            for (std::int64_t j = 0; j < k; ++j) out[2 * cell[j]] += weight;
        }
        if (!columns || columns[labels[i]]) out[2 * cell[labels[i]] + 1] += weight;
    }
}

template <class T>
CALIBRANT_INLINE T sigmoid(T x) {
    const T e = exp_nonpositive(x < T(0) ? x : -x);
    return (x < T(0) ? e : T(1)) / (T(1) + e);
}

template <class T>
CALIBRANT_INLINE void bin_rows(const T* logits, const std::int64_t* labels, const double* weights, const bool* columns,
                               const T* values, std::int64_t from, std::int64_t to, std::int64_t k, const T* edges,
                               std::int64_t count, int steps, T* odds, std::int32_t* bin, double* out) {
    for (std::int64_t i = from; i < to; ++i) {
        const double weight = weights ? weights[i] : 1.0;
        if (weight == 0.0) continue;
        log_odds_row(logits + i * k, k, odds);
        row_bins(odds, k, edges, count, steps, bin);
        const bool counts = !columns || columns[labels[i]];
        if (counts) out[4 * bin[labels[i]] + 1] += weight;
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) odds[j] = sigmoid(odds[j]);
        for (std::int64_t j = 0; j < k; ++j) {
            if (columns && !columns[j]) continue;
            double* target = out + 4 * bin[j];
            target[0] += weight;
            target[2] += weight * odds[j];
            if (values) target[3] += weight * values[i * k + j];
        }
    }
}

template <class T>
CALIBRANT_INLINE void pair_strip(const T* scores, const bool* outcomes, const double* weights, const T* values,
                                 std::int64_t n, const T* edges, std::int64_t count, int steps, T* p, std::int32_t* bin,
                                 double* out) {
    row_bins(scores, n, edges, count, steps, bin);
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) p[j] = sigmoid(scores[j]);
    for (std::int64_t j = 0; j < n; ++j) {
        const double weight = weights ? weights[j] : 1.0;
        double* target = out + 4 * bin[j];
        target[0] += weight;
        target[1] += outcomes[j] ? weight : 0.0;
        target[2] += weight * p[j];
        if (values) target[3] += weight * values[j];
    }
}

CALIBRANT_CLONES double cell_loss_of(const double* scores, const double* weights, const double* outcomes, std::int64_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < n; ++j) sum += weights[j] * softplus(scores[j]) - outcomes[j] * scores[j];
    return sum;
}

#define CALIBRANT_BINNING_BLOCKS(T)                                                                                       \
    CALIBRANT_CLONES void cell_rows_of(const T* logits, const std::int64_t* labels, const double* weights,                \
                                       const bool* columns, std::int64_t from, std::int64_t to, std::int64_t k,           \
                                       const std::int32_t* first, const std::int32_t* shift, T* odds, std::int32_t* cell, \
                                       double* out) {                                                                     \
        cell_rows(logits, labels, weights, columns, from, to, k, first, shift, odds, cell, out);                          \
    }                                                                                                                     \
    CALIBRANT_CLONES void bin_rows_of(const T* logits, const std::int64_t* labels, const double* weights,                 \
                                      const bool* columns, const T* values, std::int64_t from, std::int64_t to,           \
                                      std::int64_t k, const T* edges, std::int64_t count, int steps, T* odds,             \
                                      std::int32_t* bin, double* out) {                                                   \
        bin_rows(logits, labels, weights, columns, values, from, to, k, edges, count, steps, odds, bin, out);             \
    }                                                                                                                     \
    CALIBRANT_CLONES void pair_strip_of(const T* scores, const bool* outcomes, const double* weights, const T* values,    \
                                        std::int64_t n, const T* edges, std::int64_t count, int steps, T* p,              \
                                        std::int32_t* bin, double* out) {                                                 \
        pair_strip(scores, outcomes, weights, values, n, edges, count, steps, p, bin, out);                               \
    }
CALIBRANT_BINNING_BLOCKS(float)
CALIBRANT_BINNING_BLOCKS(double)
#undef CALIBRANT_BINNING_BLOCKS

}  // namespace

template <class T>
void cell_sums(const T* logits, const std::int64_t* labels, const double* weights, const bool* columns, std::int64_t n,
               std::int64_t k, const std::int32_t* first, const std::int32_t* shift, std::int64_t cells, int threads,
               double* out) {
    std::vector<std::vector<double>> parts(kStripes);
    for_blocks(kStripes, 65536, threads, [&](std::int64_t s, std::int64_t, std::int64_t) {  // one stripe a block
        parts[s].assign(2 * cells, 0.0);
        std::vector<T> odds(k);
        std::vector<std::int32_t> cell(k);
        cell_rows_of(logits, labels, weights, columns, n * s / kStripes, n * (s + 1) / kStripes, k, first, shift,
                     odds.data(), cell.data(), parts[s].data());
    });
    std::fill(out, out + 2 * cells, 0.0);
    for (const auto& part : parts)
        for (std::int64_t c = 0; c < 2 * cells; ++c) out[c] += part[c];
}

template <class T>
void bin_sums(const T* logits, const std::int64_t* labels, const double* weights, const bool* columns, const T* values,
              std::int64_t n, std::int64_t k, const double* edges, std::int64_t n_edges, int threads, double* out) {
    const Edges<T> found = prepared<T>(edges, n_edges);
    const std::int64_t size = 4 * (n_edges + 1);
    std::vector<std::vector<double>> parts(block_count(n, k));
    for_blocks(n, k, threads, [&](std::int64_t b, std::int64_t from, std::int64_t to) {
        parts[b].assign(size, 0.0);
        std::vector<T> odds(k);
        std::vector<std::int32_t> bin(k);
        bin_rows_of(logits, labels, weights, columns, values, from, to, k, found.values.data(), n_edges, found.steps,
                    odds.data(), bin.data(), parts[b].data());
    });
    std::fill(out, out + size, 0.0);
    for (const auto& part : parts)
        for (std::int64_t c = 0; c < size; ++c) out[c] += part[c];
}

template <class T>
void pair_sums(const T* scores, const bool* outcomes, const double* weights, const T* values, std::int64_t n,
               const double* edges, std::int64_t n_edges, double* out) {
    constexpr std::int64_t strip = 4096;
    const Edges<T> found = prepared<T>(edges, n_edges);
    std::vector<T> p(std::min(n, strip));
    std::vector<std::int32_t> bin(std::min(n, strip));
    std::fill(out, out + 4 * (n_edges + 1), 0.0);
    for (std::int64_t at = 0; at < n; at += strip)
        pair_strip_of(scores + at, outcomes + at, weights ? weights + at : nullptr, values ? values + at : nullptr,
                      std::min(strip, n - at), found.values.data(), n_edges, found.steps, p.data(), bin.data(), out);
}

double cell_loss(const double* scores, const double* weights, const double* outcomes, std::int64_t n) {
    return cell_loss_of(scores, weights, outcomes, n);
}

#define CALIBRANT_BINNING_INSTANCES(T)                                                                                    \
    template void cell_sums<T>(const T*, const std::int64_t*, const double*, const bool*, std::int64_t, std::int64_t,     \
                               const std::int32_t*, const std::int32_t*, std::int64_t, int, double*);                     \
    template void bin_sums<T>(const T*, const std::int64_t*, const double*, const bool*, const T*, std::int64_t,          \
                              std::int64_t, const double*, std::int64_t, int, double*);                                   \
    template void pair_sums<T>(const T*, const bool*, const double*, const T*, std::int64_t, const double*, std::int64_t, \
                               double*);
CALIBRANT_BINNING_INSTANCES(float)
CALIBRANT_BINNING_INSTANCES(double)

}  // namespace calibrant
