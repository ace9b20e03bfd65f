#include "binning.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "binning_edges.hpp"
#include "cell_keys.hpp"
#include "lift.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

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

template <class T>
CALIBRANT_INLINE void row_keys(const T* odds, std::int64_t m, std::uint32_t* key) {
#pragma omp simd
    for (std::int64_t j = 0; j < m; ++j) key[j] = key_of(static_cast<float>(odds[j]));
}

// Cells of some keys of one group, whose coarse cells begin at `offset`; they may take the keys' place.
CALIBRANT_INLINE void run_cells(const std::uint32_t* key, std::int64_t m, std::int32_t offset, int bits,
                                const std::int32_t* first, const std::int32_t* shift, std::int32_t* cell) {
    const int low = 32 - bits;
    const std::uint32_t mask = (std::uint32_t(1) << low) - 1;
    if (!first) {
#pragma omp simd
        for (std::int64_t j = 0; j < m; ++j) cell[j] = offset + static_cast<std::int32_t>(key[j] >> low);
        return;
    }
    first += offset, shift += offset;
#pragma omp simd
    for (std::int64_t j = 0; j < m; ++j) {
        const std::uint32_t own = key[j];
        cell[j] = first[own >> low] + static_cast<std::int32_t>((own & mask) >> shift[own >> low]);
    }
}

template <class T>
CALIBRANT_INLINE T sigmoid(T x) {
    const T e = exp_nonpositive(x < T(0) ? x : -x);
    return (x < T(0) ? e : T(1)) / (T(1) + e);
}

struct Range {
    std::int32_t first, last;
};

CALIBRANT_CLONES Range range_of(const std::int32_t* cell, std::int64_t n) {
    std::int32_t first = cell[0], last = cell[0];
#pragma omp simd reduction(min : first) reduction(max : last)
    for (std::int64_t i = 0; i < n; ++i) {
        first = cell[i] < first ? cell[i] : first;
        last = cell[i] > last ? cell[i] : last;
    }
    return {first, last};
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

CALIBRANT_CLONES void run_cells_of(const std::uint32_t* key, std::int64_t m, std::int32_t offset, int bits,
                                   const std::int32_t* first, const std::int32_t* shift, std::int32_t* cell) {
    run_cells(key, m, offset, bits, first, shift, cell);
}

#define CALIBRANT_BINNING_BLOCKS(T)                                                                                       \
    CALIBRANT_CLONES void row_keys_of(const T* odds, std::int64_t m, std::uint32_t* key) { row_keys(odds, m, key); }      \
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

    void run(const std::uint32_t* key, std::int64_t m, std::int64_t group, std::int32_t* cell) const {
        run_cells_of(key, m, static_cast<std::int32_t>(group << bits), bits, first, shift, cell);
    }

    // Keys of the columns that count.
    void row_keys(std::int64_t i, T* odds, std::uint32_t* key) const {
        used_odds(logits + i * k, k, used.places.data(), used.count(), odds);
        row_keys_of(odds, used.count(), key);
    }

    // One group: a row at a time.
    void add_rows(std::int64_t from, std::int64_t to, double* out) const {
        const std::int64_t m = used.count();
        std::vector<T> odds(k);
        std::vector<std::uint32_t> key(k);
        std::vector<std::int32_t> cell(k);
        for (std::int64_t i = from; i < to; ++i) {
            if (i % 256 == 0) Watch::look();
            const double w = weight(i);
            if (w == 0.0) continue;
            row_keys(i, odds.data(), key.data());
            run(key.data(), m, 0, cell.data());
            for (std::int64_t j = 0; j < m; ++j) out[2 * std::int64_t(cell[j])] += w;
            const std::int64_t own = used.where[labels[i]];
            if (own >= 0) out[2 * std::int64_t(cell[own]) + 1] += w;
        }
    }
};

// Many groups: the keys of many rows are turned into columns, then cells are counted a group at a time, as those of all groups
// do not fit into a cache. A group is one thread's, which adds its rows in their order: no thread has sums of its own.
template <class T>
class Columns {
public:
    Columns(const Cells<T>& cells, std::int64_t n, int threads)
        : cells_(cells), threads_(threads), m_(cells.used.count()), most_(rows_at_once(n)),
          stride_((most_ / kLine | 1) * kLine),  // an odd number of cache lines: columns do not share a few sets of these
          keys_(new std::uint32_t[m_ * stride_]), columns_(groups_of(cells.used)) {}

    void add(std::int64_t n, double* out) {
        for (std::int64_t i = 0; i < n;) {
            i = choose(i, n);
            if (rows_.empty()) return;
            turn();
            const std::int64_t groups = static_cast<std::int64_t>(columns_.size());
            for_blocks(groups, kAlone, threads_, [&](std::int64_t g, std::int64_t, std::int64_t) {
                std::vector<std::uint32_t> counts;
                for (const std::int64_t j : columns_[g]) count(j, counts, out);
            });
        }
    }

private:
    static constexpr std::int64_t kLine = 16;     // keys of a cache line: rows that are turned together
    static constexpr std::int64_t kAlone = 65536;  // elements that make a block of one
    static constexpr std::int64_t kWide = 4;  // cells a row beyond which going through them costs more than is gained
    // 16 MB: many scores of a class find each of its cells in a cache, where the first has brought it.
    static constexpr std::int64_t kKeys = std::int64_t(1) << 22;

    std::int64_t rows_at_once(std::int64_t n) const {
        const std::int64_t most = std::max<std::int64_t>(kLine, kKeys / std::max<std::int64_t>(m_, 1));
        return (std::min(most, n) + kLine - 1) / kLine * kLine;
    }

    static std::vector<std::vector<std::int64_t>> groups_of(const Used& used) {
        std::vector<std::vector<std::int64_t>> columns;
        for (std::int64_t j = 0; j < used.count(); ++j) {
            if (used.group[j] >= static_cast<std::int64_t>(columns.size())) columns.resize(used.group[j] + 1);
            columns[used.group[j]].push_back(j);
        }
        return columns;
    }

    // Lists the next rows that count, and the places among them of the rows of each class; returns the row after them.
    std::int64_t choose(std::int64_t i, std::int64_t n) {
        rows_.clear(), weights_.clear(), positives_.assign(m_, {});
        alike_ = true;
        for (; i < n && static_cast<std::int64_t>(rows_.size()) < most_; ++i) {
            const double weight = cells_.weight(i);
            if (weight == 0.0) continue;
            const std::int64_t own = cells_.used.where[cells_.labels[i]];
            if (own >= 0) positives_[own].push_back(static_cast<std::int64_t>(rows_.size()));
            rows_.push_back(i), weights_.push_back(weight);
            alike_ = alike_ && weight == 1.0;
        }
        return i;
    }

    // Writes the keys of the chosen rows into columns, a cache line of each at a time.
    void turn() {
        const std::int64_t count = static_cast<std::int64_t>(rows_.size());
        const std::int64_t lines = (count + kLine - 1) / kLine;
        for_blocks(lines, kLine * cells_.k, threads_, [&](std::int64_t, std::int64_t from, std::int64_t to) {
            std::vector<T> odds(cells_.k);
            std::vector<std::uint32_t> key(kLine * m_);
            for (std::int64_t line = from; line < to; ++line)
                turn_line(line * kLine, std::min(kLine, count - line * kLine), odds.data(), key.data());
        });
    }

    void turn_line(std::int64_t first, std::int64_t rows, T* odds, std::uint32_t* key) {
        for (std::int64_t r = 0; r < rows; ++r) cells_.row_keys(rows_[first + r], odds, key + r * m_);
        for (std::int64_t j = 0; j < m_; ++j)
            for (std::int64_t r = 0; r < rows; ++r) keys_[j * stride_ + first + r] = key[r * m_ + j];
    }

    // Adds a column to the sums; its cells take the place of its keys.
    void count(std::int64_t j, std::vector<std::uint32_t>& counts, double* out) {
        Watch::look();
        std::uint32_t* keys = keys_.get() + j * stride_;
        std::int32_t* cell = reinterpret_cast<std::int32_t*>(keys);
        const std::int64_t rows = static_cast<std::int64_t>(rows_.size());
        cells_.run(keys, rows, cells_.used.group[j], cell);
        if (alike_)
            count_alike(cell, rows, counts, out);
        else
            for (std::int64_t r = 0; r < rows; ++r) out[2 * std::int64_t(cell[r])] += weights_[r];
        for (const std::int64_t r : positives_[j]) out[2 * std::int64_t(cell[r]) + 1] += weights_[r];
    }

    // Rows that weigh one each are counted as integers, a quarter of the size of a cell's sums, which then get them in order.
    static void count_alike(const std::int32_t* cell, std::int64_t rows, std::vector<std::uint32_t>& counts, double* out) {
        const Range range = range_of(cell, rows);
        const std::int64_t width = std::int64_t(range.last) - range.first + 1;
        double* sums = out + 2 * std::int64_t(range.first);
        if (width > kWide * rows) {
            for (std::int64_t r = 0; r < rows; ++r) sums[2 * std::int64_t(cell[r] - range.first)] += 1.0;
            return;
        }
        counts.assign(width, 0);
        for (std::int64_t r = 0; r < rows; ++r) ++counts[cell[r] - range.first];
        for (std::int64_t c = 0; c < width; ++c) sums[2 * c] += counts[c];
    }

    const Cells<T>& cells_;
    const int threads_;
    const std::int64_t m_, most_, stride_;
    const std::unique_ptr<std::uint32_t[]> keys_;  // not filled with zeros: whoever writes first touches the pages
    const std::vector<std::vector<std::int64_t>> columns_;  // of each group
    std::vector<std::int64_t> rows_;
    std::vector<double> weights_;
    bool alike_ = true;  // whether all of these are one
    std::vector<std::vector<std::int64_t>> positives_;  // places of each column's rows
};

}  // namespace

template <class T>
void cell_sums(const T* logits, const std::int64_t* labels, const double* weights, const std::int64_t* groups,
               std::int64_t n, std::int64_t k, int bits, const std::int32_t* first, const std::int32_t* shift,
               std::int64_t cells, int threads, double* out) {
    const Used used(groups, k);
    const Cells<T> counted{logits, labels, weights, k, used, bits, first, shift};
    const bool alone = std::all_of(used.group.begin(), used.group.end(), [](std::int64_t g) { return g == 0; });
    if (!alone) return Columns<T>(counted, n, threads).add(n, out);
    sum_stripes(n, k, 2 * cells, threads, out,
                [&](std::int64_t from, std::int64_t to, double* sums) { counted.add_rows(from, to, sums); });
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
