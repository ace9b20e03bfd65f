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

// The classes that count, in order, and where each class is among them.
struct Used {
    std::vector<std::int64_t> places, where, group;  // class of each column; column of each class, or -1; group of each column
    std::int64_t count() const { return static_cast<std::int64_t>(places.size()); }

    Used(const std::int64_t* groups, std::int64_t k) : where(k, -1) {
        for (std::int64_t j = 0; j < k; ++j)
            if (groups[j] >= 0) where[j] = count(), places.push_back(j), group.push_back(groups[j]);
    }
};

// Log-odds of the columns that count.
template <class T>
CALIBRANT_INLINE void used_odds(const T* z, std::int64_t k, const std::int64_t* places, std::int64_t m, T* odds) {
    log_odds_row(z, k, odds);
    if (m < k)  // places rise, so that nothing is overwritten before it is read
        for (std::int64_t j = 0; j < m; ++j) odds[j] = odds[places[j]];
}

// Cells of some log-odds of one group, whose coarse cells begin at `offset`.
template <class T>
CALIBRANT_INLINE void run_cells(const T* odds, std::int64_t m, std::int32_t offset, int bits, const std::int32_t* first,
                                const std::int32_t* shift, std::int32_t* cell) {
    const int low = 32 - bits;
    const std::uint32_t mask = (std::uint32_t(1) << low) - 1;
    if (!first) {
#pragma omp simd
        for (std::int64_t j = 0; j < m; ++j)
            cell[j] = offset + static_cast<std::int32_t>(key_of(static_cast<float>(odds[j])) >> low);
        return;
    }
    first += offset, shift += offset;
#pragma omp simd
    for (std::int64_t j = 0; j < m; ++j) {
        const std::uint32_t key = key_of(static_cast<float>(odds[j]));
        cell[j] = first[key >> low] + static_cast<std::int32_t>((key & mask) >> shift[key >> low]);
    }
}

template <class T>
CALIBRANT_INLINE T sigmoid(T x) {
    const T e = exp_nonpositive(x < T(0) ? x : -x);
    return (x < T(0) ? e : T(1)) / (T(1) + e);
}

// Adds a row whose bins are known to the sums; those of column j begin at target[j].
template <class T>
CALIBRANT_INLINE void add_row(T* odds, std::int64_t m, const std::int32_t* bin, const std::int64_t* target, std::int64_t own,
                              double weight, const T* values, const std::int64_t* places, double* out) {
#pragma omp simd
    for (std::int64_t j = 0; j < m; ++j) odds[j] = sigmoid(odds[j]);
    for (std::int64_t j = 0; j < m; ++j) {
        double* sums = out + target[j] + 4 * std::int64_t(bin[j]);
        sums[0] += weight;
        sums[2] += weight * odds[j];
        if (values) sums[3] += weight * values[places[j]];
    }
    if (own >= 0) out[target[own] + 4 * bin[own] + 1] += weight;
}

CALIBRANT_CLONES double cell_loss_of(const double* scores, const double* weights, const double* outcomes, std::int64_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < n; ++j) sum += weights[j] * softplus(scores[j]) - outcomes[j] * scores[j];
    return sum;
}

#define CALIBRANT_BINNING_BLOCKS(T)                                                                                       \
    CALIBRANT_CLONES void run_cells_of(const T* odds, std::int64_t m, std::int32_t offset, int bits,                      \
                                       const std::int32_t* first, const std::int32_t* shift, std::int32_t* cell) {        \
        run_cells(odds, m, offset, bits, first, shift, cell);                                                             \
    }                                                                                                                     \
    CALIBRANT_CLONES void row_bins_of(const T* scores, std::int64_t m, const Edges<T>& edges, std::int32_t* bin) {        \
        row_bins(scores, m, edges.values.data(), edges.count, edges.steps, bin);                                          \
    }                                                                                                                     \
    CALIBRANT_CLONES void row_bins_of(const T* scores, std::int64_t m, const GroupEdges<T>& edges,                        \
                                      const std::int64_t* start, std::int32_t* bin) {                                     \
        row_bins_of_groups(scores, m, edges.values.data(), start, edges.steps, bin);                                      \
    }                                                                                                                     \
    CALIBRANT_CLONES void add_row_of(T* odds, std::int64_t m, const std::int32_t* bin, const std::int64_t* target,        \
                                     std::int64_t own, double weight, const T* values, const std::int64_t* places,        \
                                     double* out) {                                                                       \
        add_row(odds, m, bin, target, own, weight, values, places, out);                                                  \
    }
CALIBRANT_BINNING_BLOCKS(float)
CALIBRANT_BINNING_BLOCKS(double)
#undef CALIBRANT_BINNING_BLOCKS

// Calls work(from, to, sums) for stripes of rows, each with sums of its own, and adds these to `out`. The stripes depend on
// the sizes alone, so that the number of threads changes no bit; there are fewer where the sums are large or the scores few.
template <class Work>
void sum_stripes(std::int64_t n, std::int64_t k, std::int64_t size, int threads, double* out, Work work) {
    constexpr std::int64_t most = 8, together = std::int64_t(1) << 23;  // doubles: 64 MB
    const std::int64_t stripes = std::clamp<std::int64_t>(std::min(together, n * k) / size, 1, most);
    std::vector<std::vector<double>> parts(stripes - 1);
    for_blocks(stripes, 65536, threads, [&](std::int64_t s, std::int64_t, std::int64_t) {  // one stripe a block
        if (s) parts[s - 1].assign(size, 0.0);
        work(n * s / stripes, n * (s + 1) / stripes, s ? parts[s - 1].data() : out);
    });
    for (const auto& part : parts)
        for (std::int64_t c = 0; c < size; ++c) out[c] += part[c];
}

// What cell_sums is given, but the rows and the sums.
template <class T>
struct Cells {
    const T* logits;
    const std::int64_t* labels;
    const double* weights;
    std::int64_t k;
    const Used& used;
    int bits;
    const std::int32_t *first, *shift;

    double weight(std::int64_t i) const { return weights ? weights[i] : 1.0; }

    void run(const T* odds, std::int64_t m, std::int64_t group, std::int32_t* cell) const {
        run_cells_of(odds, m, static_cast<std::int32_t>(group << bits), bits, first, shift, cell);
    }

    // One group: a row at a time.
    void add_rows(std::int64_t from, std::int64_t to, double* out) const {
        const std::int64_t m = used.count();
        std::vector<T> odds(k);
        std::vector<std::int32_t> cell(k);
        for (std::int64_t i = from; i < to; ++i) {
            if (i % 256 == 0) Watch::look();
            const double w = weight(i);
            if (w == 0.0) continue;
            used_odds(logits + i * k, k, used.places.data(), m, odds.data());
            run(odds.data(), m, 0, cell.data());
            for (std::int64_t j = 0; j < m; ++j) out[2 * std::int64_t(cell[j])] += w;
            const std::int64_t own = used.where[labels[i]];
            if (own >= 0) out[2 * std::int64_t(cell[own]) + 1] += w;
        }
    }

    // Many groups: a class of many rows at a time, as the cells of all classes do not fit into a cache.
    void add_columns(std::int64_t from, std::int64_t to, double* out) const {
        const std::int64_t m = used.count(), most = std::clamp<std::int64_t>((1 << 19) / k, 16, 1024);
        std::vector<T> tile(m * most);
        std::vector<double> w(most);
        std::vector<std::int64_t> own(most);
        std::vector<std::int32_t> cell(most);
        for (std::int64_t i = from; i < to;) {
            Watch::look();
            std::int64_t count = 0;
            while (i < to && count < most) i = turn_rows(i, to, most, tile.data(), w.data(), own.data(), count);
            for (std::int64_t j = 0; j < m; ++j) {
                run(tile.data() + j * most, count, used.group[j], cell.data());
                for (std::int64_t r = 0; r < count; ++r) out[2 * std::int64_t(cell[r])] += w[r];
            }
            for (std::int64_t r = 0; r < count; ++r) {
                if (own[r] < 0) continue;
                run(tile.data() + own[r] * most + r, 1, used.group[own[r]], cell.data());
                out[2 * std::int64_t(cell[0]) + 1] += w[r];
            }
        }
    }

    // Writes the log-odds of the next few rows that count into columns of the tile; returns the row after them.
    std::int64_t turn_rows(std::int64_t i, std::int64_t to, std::int64_t most, T* tile, double* w, std::int64_t* own,
                           std::int64_t& count) const {
        const std::int64_t m = used.count(), few = std::min<std::int64_t>(16, most - count);
        std::vector<T> odds(few * k);
        std::int64_t rows = 0;
        for (; i < to && rows < few; ++i) {
            if (weight(i) == 0.0) continue;
            used_odds(logits + i * k, k, used.places.data(), m, odds.data() + rows * k);
            w[count + rows] = weight(i), own[count + rows] = used.where[labels[i]], ++rows;
        }
        for (std::int64_t j = 0; j < m; ++j)
            for (std::int64_t r = 0; r < rows; ++r) tile[j * most + count + r] = odds[r * k + j];
        count += rows;
        return i;
    }
};

}  // namespace

template <class T>
void cell_sums(const T* logits, const std::int64_t* labels, const double* weights, const std::int64_t* groups,
               std::int64_t n, std::int64_t k, int bits, const std::int32_t* first, const std::int32_t* shift,
               std::int64_t cells, int threads, double* out) {
    const Used used(groups, k);
    const Cells<T> counted{logits, labels, weights, k, used, bits, first, shift};
    const bool alone = std::all_of(used.group.begin(), used.group.end(), [](std::int64_t g) { return g == 0; });
    sum_stripes(n, k, 2 * cells, threads, out, [&](std::int64_t from, std::int64_t to, double* sums) {
        if (alone)
            counted.add_rows(from, to, sums);
        else
            counted.add_columns(from, to, sums);
    });
}

template <class T>
void bin_sums(const T* logits, const std::int64_t* labels, const double* weights, const std::int64_t* groups,
              const T* values, std::int64_t n, std::int64_t k, const double* edges, std::int64_t group_count,
              std::int64_t n_edges, int threads, double* out) {
    const Used used(groups, k);
    const std::int64_t m = used.count(), width = 4 * (n_edges + 1);
    const bool alone = group_count == 1;
    const Edges<T> shared = prepared<T>(edges, alone ? n_edges : 0);
    const GroupEdges<T> own = prepared_groups<T>(edges, alone ? 0 : group_count, n_edges);
    std::vector<std::int64_t> start, target;
    for (const std::int64_t g : used.group) start.push_back(g * own.stride), target.push_back(g * width);
    std::fill(out, out + group_count * width, 0.0);
    sum_stripes(n, k, group_count * width, threads, out, [&](std::int64_t from, std::int64_t to, double* sums) {
        std::vector<T> odds(k);
        std::vector<std::int32_t> bin(k);
        for (std::int64_t i = from; i < to; ++i) {
            if (i % 256 == 0) Watch::look();
            const double weight = weights ? weights[i] : 1.0;
            if (weight == 0.0) continue;
            used_odds(logits + i * k, k, used.places.data(), m, odds.data());
            if (alone)
                row_bins_of(odds.data(), m, shared, bin.data());
            else
                row_bins_of(odds.data(), m, own, start.data(), bin.data());
            add_row_of(odds.data(), m, bin.data(), target.data(), used.where[labels[i]], weight,
                       values ? values + i * k : nullptr, used.places.data(), sums);
        }
    });
}

double cell_loss(const double* scores, const double* weights, const double* outcomes, std::int64_t n) {
    return cell_loss_of(scores, weights, outcomes, n);
}

#define CALIBRANT_BINNING_INSTANCES(T)                                                                                    \
    template void cell_sums<T>(const T*, const std::int64_t*, const double*, const std::int64_t*, std::int64_t,           \
                               std::int64_t, int, const std::int32_t*, const std::int32_t*, std::int64_t, int, double*);  \
    template void bin_sums<T>(const T*, const std::int64_t*, const double*, const std::int64_t*, const T*, std::int64_t,  \
                              std::int64_t, const double*, std::int64_t, std::int64_t, int, double*);
CALIBRANT_BINNING_INSTANCES(float)
CALIBRANT_BINNING_INSTANCES(double)

}  // namespace calibrant
