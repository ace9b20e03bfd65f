#include "binning.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lift.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

// The smallest T that is not below an edge: score >= edge exactly when score >= ceiling(edge).
template <class T>
T ceiling(double edge) {
    T rounded = static_cast<T>(edge);
    if (static_cast<double>(rounded) < edge) rounded = std::nextafter(rounded, std::numeric_limits<T>::infinity());
    return rounded;
}

template <class T>
std::vector<T> ceilings(const double* edges, std::int64_t count) {
    std::vector<T> out(count);
    for (std::int64_t m = 0; m < count; ++m) out[m] = ceiling<T>(edges[m]);
    return out;
}

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

// Bins of a row of scores: few edges by counting, many by a search of fixed length (edges padded to
// 2^steps - 1).
constexpr std::int64_t kCounted = 32;

template <class T>
struct Edges {
    std::vector<T> values;
    std::int64_t count = 0;  // edges in use
    int steps = 0;           // of the search; 0 where edges are counted
};

template <class T>
Edges<T> prepared(const double* edges, std::int64_t count) {
    Edges<T> out{ceilings<T>(edges, count), count, 0};
    if (count <= kCounted) return out;
    while ((std::int64_t(1) << out.steps) - 1 < count) ++out.steps;
    out.values.resize((std::size_t(1) << out.steps) - 1, std::numeric_limits<T>::quiet_NaN());  // at or above which nothing is
    return out;
}

// Counts the edges at or below each score, a few vectors of scores at a time so that the counts stay in registers.
template <class T>
CALIBRANT_INLINE void count_edges(const T* scores, std::int64_t k, const T* edges, std::int64_t count, std::int32_t* bin) {
    constexpr std::int64_t width = 32;
    std::int64_t j = 0;
    for (; j + width <= k; j += width) {
        std::int32_t found[width] = {};
        for (std::int64_t m = 0; m < count; ++m) {
            const T edge = edges[m];
#pragma omp simd
            for (std::int64_t l = 0; l < width; ++l) found[l] += scores[j + l] >= edge ? 1 : 0;
        }
        for (std::int64_t l = 0; l < width; ++l) bin[j + l] = found[l];
    }
    for (; j < k; ++j) {
        std::int32_t found = 0;
        for (std::int64_t m = 0; m < count; ++m) found += scores[j] >= edges[m] ? 1 : 0;
        bin[j] = found;
    }
}

template <class T>
CALIBRANT_INLINE void row_bins(const T* scores, std::int64_t k, const T* edges, std::int64_t count, int steps,
                               std::int32_t* bin) {
    if (steps == 0) {
        count_edges(scores, k, edges, count, bin);
        return;
    }
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) {
        std::int32_t at = 0;
        for (int step = 1 << (steps - 1); step > 0; step >>= 1) at += scores[j] >= edges[at + step - 1] ? step : 0;
        bin[j] = at;
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

// Answers of a row of scores, a few vectors at a time: each edge at or below a score replaces its answer, so that no bin is
// written down and no table is gathered from. `out` may be `scores`.
constexpr std::int64_t kWidth = 32;

template <class T>
CALIBRANT_INLINE void choose_shared(const T* scores, std::int64_t k, const T* edges, const T* table, std::int64_t count,
                                    T* out) {
    std::int64_t j = 0;
    for (; j + kWidth <= k; j += kWidth) {
        T own[kWidth], answer[kWidth];
        for (std::int64_t l = 0; l < kWidth; ++l) own[l] = scores[j + l], answer[l] = table[0];
        for (std::int64_t m = 0; m < count; ++m) {
            const T edge = edges[m], next = table[m + 1];
#pragma omp simd
            for (std::int64_t l = 0; l < kWidth; ++l) answer[l] = own[l] >= edge ? next : answer[l];
        }
        for (std::int64_t l = 0; l < kWidth; ++l) out[j + l] = answer[l];
    }
    for (; j < k; ++j) {
        T answer = table[0];
        for (std::int64_t m = 0; m < count; ++m) answer = scores[j] >= edges[m] ? table[m + 1] : answer;
        out[j] = answer;
    }
}

// The same for kWidth columns with a table each; edge by edge, kWidth to an edge.
template <class T>
CALIBRANT_INLINE void choose_own(const T* scores, const T* edges, const T* table, std::int64_t count, T* out) {
    T own[kWidth], answer[kWidth];
    for (std::int64_t l = 0; l < kWidth; ++l) own[l] = scores[l], answer[l] = table[l];
    for (std::int64_t m = 0; m < count; ++m) {
        const T *edge = edges + m * kWidth, *next = table + (m + 1) * kWidth;
#pragma omp simd
        for (std::int64_t l = 0; l < kWidth; ++l) answer[l] = own[l] >= edge[l] ? next[l] : answer[l];
    }
    for (std::int64_t l = 0; l < kWidth; ++l) out[l] = answer[l];
}

// One table for all classes.
template <class T>
CALIBRANT_INLINE void row_shared(const T* odds, std::int64_t k, const T* edges, const T* table, std::int64_t count,
                                 int steps, std::int32_t* bin, T* out) {
    if (steps == 0) {
        choose_shared(odds, k, edges, table, count, out);
        return;
    }
    row_bins(odds, k, edges, count, steps, bin);
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) out[j] = table[bin[j]];
}

// One table a class. Edges and tables of kWidth classes lie together (see tiled) and serve a few rows before they leave
// the cache.
constexpr std::int64_t kBatch = 4;

template <class T>
CALIBRANT_INLINE void rows_own(const T* odds, std::int64_t rows, std::int64_t k, const T* edges, const T* table,
                               std::int64_t count, T* out) {
    for (std::int64_t j = 0; j < k; j += kWidth, edges += count * kWidth, table += (count + 1) * kWidth) {
        const std::int64_t width = std::min(kWidth, k - j);
        for (std::int64_t i = 0; i < rows; ++i) {
            const T* own = odds + i * k + j;
            T* answer = out + i * k + j;
            if (width == kWidth) {
                choose_own(own, edges, table, count, answer);
                continue;
            }
            T padded[kWidth] = {};
            std::copy(own, own + width, padded);
            choose_own(padded, edges, table, count, padded);
            std::copy(padded, padded + width, answer);
        }
    }
}

template <class T>
CALIBRANT_INLINE double row_sum(const T* q, std::int64_t k) {
    constexpr std::int64_t chunk = 2048;  // lanes are emptied into a double this often
    double sum = 0;
    for (std::int64_t from = 0; from < k; from += chunk) {
        T lanes[kWidth] = {};
        const std::int64_t to = std::min(from + chunk, k);
        std::int64_t j = from;
        for (; j + kWidth <= to; j += kWidth) {
#pragma omp simd
            for (std::int64_t l = 0; l < kWidth; ++l) lanes[l] += q[j + l];
        }
        for (std::int64_t l = 0; l < kWidth; ++l) sum += lanes[l];
        for (; j < to; ++j) sum += q[j];
    }
    return sum;
}

template <class T>
CALIBRANT_INLINE void normalized(const T* logits, std::int64_t k, const T* answers, T* q) {
    const double sum = row_sum(answers, k);
    const T inverse = static_cast<T>(1.0 / sum);
    if (!(sum > 0) || !std::isfinite(inverse)) {
        std::copy(answers, answers + k, q);
        normalize_rows(logits, 1, k, false, 1, q);
        return;
    }
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) q[j] = answers[j] * inverse;
}

// odds has room for a batch of rows.
template <class T>
CALIBRANT_INLINE void lift_rows(const T* logits, std::int64_t from, std::int64_t to, std::int64_t k, const T* edges,
                                const T* table, bool shared, std::int64_t count, int steps, bool normalize, T* odds,
                                std::int32_t* bin, T* out) {
    const std::int64_t batch = shared ? 1 : kBatch;
    for (std::int64_t i = from; i < to; i += batch) {
        const std::int64_t rows = std::min(batch, to - i);
        T* answers = normalize ? odds : out + i * k;  // answers stay in the cache until their sum is known
        for (std::int64_t r = 0; r < rows; ++r) log_odds_row(logits + (i + r) * k, k, odds + r * k);
        if (shared)
            row_shared(odds, k, edges, table, count, steps, bin, answers);
        else
            rows_own(odds, rows, k, edges, table, count, answers);
        for (std::int64_t r = 0; normalize && r < rows; ++r)
            normalized(logits + (i + r) * k, k, odds + r * k, out + (i + r) * k);
    }
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
    CALIBRANT_CLONES void lift_rows_of(const T* logits, std::int64_t from, std::int64_t to, std::int64_t k,               \
                                       const T* edges, const T* table, bool shared, std::int64_t count, int steps,        \
                                       bool normalize, T* odds, std::int32_t* bin, T* out) {                              \
        lift_rows(logits, from, to, k, edges, table, shared, count, steps, normalize, odds, bin, out);                    \
    }                                                                                                                     \
    CALIBRANT_CLONES void look_up_of(const T* scores, std::int64_t n, const T* edges, const T* table, std::int64_t count, \
                                     int steps, std::int32_t* bin, T* out) {                                              \
        row_shared(scores, n, edges, table, count, steps, bin, out);                                                      \
    }
CALIBRANT_BINNING_BLOCKS(float)
CALIBRANT_BINNING_BLOCKS(double)
#undef CALIBRANT_BINNING_BLOCKS

template <class T>
std::vector<T> cast(const double* values, std::int64_t count) {
    return std::vector<T>(values, values + count);
}

// (tables, count) to (tables / kWidth, count, kWidth), the last tile filled up with zeros.
template <class T>
std::vector<T> tiled(const std::vector<T>& values, std::int64_t tables, std::int64_t count) {
    std::vector<T> out((tables + kWidth - 1) / kWidth * kWidth * count);
    for (std::int64_t t = 0; t < tables; ++t)
        for (std::int64_t m = 0; m < count; ++m)
            out[(t / kWidth * count + m) * kWidth + t % kWidth] = values[t * count + m];
    return out;
}

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
void bin_lift(const T* logits, std::int64_t n, std::int64_t k, const double* edges, const double* table,
              std::int64_t tables, std::int64_t n_edges, bool normalize, int threads, T* out) {
    const bool shared = tables == 1;
    Edges<T> found = shared ? prepared<T>(edges, n_edges) : Edges<T>{ceilings<T>(edges, tables * n_edges), n_edges, 0};
    std::vector<T> answers = cast<T>(table, tables * (n_edges + 1));
    if (!shared) {
        found.values = tiled(found.values, tables, n_edges);
        answers = tiled(answers, tables, n_edges + 1);
    }
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        std::vector<T> odds((shared ? 1 : kBatch) * k);
        std::vector<std::int32_t> bin(k);
        lift_rows_of(logits, from, to, k, found.values.data(), answers.data(), shared, n_edges, found.steps, normalize,
                     odds.data(), bin.data(), out);
    });
}

template <class T>
void bin_look_up(const T* scores, std::int64_t n, const double* edges, const double* table, std::int64_t n_edges,
                 int threads, T* out) {
    const Edges<T> found = prepared<T>(edges, n_edges);
    const std::vector<T> answers = cast<T>(table, n_edges + 1);
    constexpr std::int64_t strip = 4096;
    for_blocks(n, 1, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        std::vector<std::int32_t> bin(strip);
        for (std::int64_t at = from; at < to; at += strip)
            look_up_of(scores + at, std::min(strip, to - at), found.values.data(), answers.data(), n_edges, found.steps,
                       bin.data(), out + at);
    });
}

#define CALIBRANT_BINNING_INSTANCES(T)                                                                                    \
    template void cell_sums<T>(const T*, const std::int64_t*, const double*, const bool*, std::int64_t, std::int64_t,     \
                               const std::int32_t*, const std::int32_t*, std::int64_t, int, double*);                     \
    template void bin_sums<T>(const T*, const std::int64_t*, const double*, const bool*, const T*, std::int64_t,          \
                              std::int64_t, const double*, std::int64_t, int, double*);                                   \
    template void bin_lift<T>(const T*, std::int64_t, std::int64_t, const double*, const double*, std::int64_t,           \
                              std::int64_t, bool, int, T*);                                                               \
    template void bin_look_up<T>(const T*, std::int64_t, const double*, const double*, std::int64_t, int, T*);
CALIBRANT_BINNING_INSTANCES(float)
CALIBRANT_BINNING_INSTANCES(double)

}  // namespace calibrant
