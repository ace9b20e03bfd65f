#include "metrics.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kChunk = 512;  // float lanes are emptied into doubles this often

struct RowFacts {
    double sum = 0, squares = 0, smallest = 0, largest = 0;  // a NaN shows in the sum
};

template <class T>
CALIBRANT_INLINE RowFacts row_facts(const T* p, std::int64_t k) {
    double total = 0, total_squares = 0;
    T smallest = p[0], largest = p[0];
    for (std::int64_t from = 0; from < k; from += kChunk) {
        const std::int64_t to = std::min(from + kChunk, k);
        T sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum, squares) reduction(min : smallest) reduction(max : largest)
        for (std::int64_t j = from; j < to; ++j) {
            sum += p[j];
            squares += p[j] * p[j];
            smallest = p[j] < smallest ? p[j] : smallest;
            largest = p[j] > largest ? p[j] : largest;
        }
        total += sum, total_squares += squares;
    }
    return {total, total_squares, smallest, largest};
}

template <class T>
CALIBRANT_INLINE std::int64_t first_equal(const T* p, std::int64_t k, T value) {
    for (std::int64_t from = 0; from < k; from += 64) {
        const std::int64_t to = std::min<std::int64_t>(from + 64, k);
        int hits = 0;
#pragma omp simd reduction(+ : hits)
        for (std::int64_t j = from; j < to; ++j) hits += p[j] == value;
        if (!hits) continue;
        for (std::int64_t j = from; j < to; ++j)
            if (p[j] == value) return j;
    }
    return 0;
}

struct Top {
    RowFacts facts;
    std::int64_t column;
};

// Few columns: one plain loop costs less than setting up vectors.
template <class T>
CALIBRANT_INLINE Top short_row(const T* p, std::int64_t k) {
    T sum = 0, squares = 0, smallest = p[0], largest = p[0];
    std::int64_t column = 0;
    for (std::int64_t j = 0; j < k; ++j) {
        sum += p[j];
        squares += p[j] * p[j];
        smallest = p[j] < smallest ? p[j] : smallest;
        column = p[j] > largest ? j : column;
        largest = p[j] > largest ? p[j] : largest;
    }
    return {{sum, squares, smallest, largest}, column};
}

template <class T>
CALIBRANT_INLINE Top long_row(const T* p, std::int64_t k) {
    const RowFacts facts = row_facts(p, k);
    return {facts, first_equal(p, k, static_cast<T>(facts.largest))};
}

// One column: values of one event, with no sum to check.
template <class T>
CALIBRANT_INLINE std::int64_t event_block(const T* values, std::int64_t from, std::int64_t to, double* top,
                                          std::int64_t* column, double* squares) {
    std::int64_t bad = 0;
#pragma omp simd reduction(+ : bad)
    for (std::int64_t i = from; i < to; ++i) {
        const double p = values[i];
        top[i] = p;
        column[i] = 0;
        squares[i] = p * p;
        bad += !((p >= 0) & (p <= 1));
    }
    if (bad)
        for (std::int64_t i = from; i < to; ++i)
            if (!(values[i] >= 0 && values[i] <= 1)) return i;
    return -1;
}

template <class T>
CALIBRANT_INLINE std::int64_t tops_block(const T* values, std::int64_t from, std::int64_t to, std::int64_t k,
                                         double tolerance, bool marginals, double* top, std::int64_t* column,
                                         double* squares) {
    if (k == 1 && marginals) return event_block(values, from, to, top, column, squares);
    const double most = marginals ? 1.0 : 1.0 + tolerance;
    std::int64_t wrong = -1;
    for (std::int64_t i = from; i < to; ++i) {
        const T* p = values + i * k;
        const Top row = k <= 32 ? short_row(p, k) : long_row(p, k);
        const double off = marginals ? row.facts.sum - row.facts.sum : std::abs(row.facts.sum - 1);
        if (wrong < 0 && !(row.facts.smallest >= 0 && row.facts.largest <= most && off <= tolerance)) wrong = i;
        top[i] = row.facts.largest;
        column[i] = row.column;
        squares[i] = row.facts.squares;
    }
    return wrong;
}

CALIBRANT_CLONES std::int64_t tops_block_of(const float* values, std::int64_t from, std::int64_t to, std::int64_t k,
                                            double tolerance, bool marginals, double* top, std::int64_t* column,
                                            double* squares) {
    return tops_block(values, from, to, k, tolerance, marginals, top, column, squares);
}
CALIBRANT_CLONES std::int64_t tops_block_of(const double* values, std::int64_t from, std::int64_t to, std::int64_t k,
                                            double tolerance, bool marginals, double* top, std::int64_t* column,
                                            double* squares) {
    return tops_block(values, from, to, k, tolerance, marginals, top, column, squares);
}

// The bin of p among edges: a guess that is right for equal width, then steps to where it belongs.
CALIBRANT_INLINE std::int64_t bin_of(double p, const double* edges, std::int64_t bins, bool even) {
    if (!even) {
        const std::int64_t b = std::upper_bound(edges, edges + bins + 1, p) - edges - 1;
        return std::clamp<std::int64_t>(b, 0, bins - 1);
    }
    const std::int64_t guess = std::min(static_cast<std::int64_t>(p * static_cast<double>(bins)), bins - 1);
    const std::int64_t up = (p >= edges[guess + 1]) & (guess + 1 < bins), down = p < edges[guess];
    return guess + up - down;  // without branches: rounding moves the guess by one at most
}

bool is_even(const double* edges, std::int64_t bins) {
    for (std::int64_t b = 0; b <= bins; ++b)
        if (edges[b] != static_cast<double>(b) / static_cast<double>(bins)) return false;
    return true;
}

struct BinTask {
    const std::int64_t* labels;
    const double* weights;
    std::int64_t k;
    const double* edges;
    std::int64_t bins;
    const double* floors;
    bool even;
};

// One part's sums: the first bin dense by class (most entries of many classes lie there), the others scattered.
struct BinSums {
    double *count0, *score0;   // [class]
    double *count, *score, *hit;  // [class][bin]
};

template <class T>
CALIBRANT_INLINE void low_entries(const T* p, std::int64_t k, double weight, double second, const double* floors,
                                  double* count0, double* score0) {
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) {
        const double value = p[j];
        const double counted = (value < second) & (value > floors[j]) ? weight : 0.0;
        count0[j] += counted;
        score0[j] += counted * value;
    }
}

template <class T>
CALIBRANT_INLINE void high_entries(const T* p, double weight, const BinTask& task, const BinSums& sums) {
    const double second = task.bins > 1 ? task.edges[1] : 2.0;
    for (std::int64_t from = 0; from < task.k; from += 64) {
        const std::int64_t to = std::min<std::int64_t>(from + 64, task.k);
        int high = 0;
#pragma omp simd reduction(+ : high)
        for (std::int64_t j = from; j < to; ++j) high += static_cast<double>(p[j]) >= second;
        if (!high) continue;
        for (std::int64_t j = from; j < to; ++j) {
            const double value = p[j];
            if (!(value >= second && value > task.floors[j])) continue;
            const std::int64_t cell = j * task.bins + bin_of(value, task.edges, task.bins, task.even);
            sums.count[cell] += weight;
            sums.score[cell] += weight * value;
        }
    }
}

template <class T>
CALIBRANT_INLINE void bins_block(const T* values, std::int64_t from, std::int64_t to, const BinTask& task,
                                 const BinSums& sums) {
    const double second = task.bins > 1 ? task.edges[1] : 2.0;
    for (std::int64_t i = from; i < to; ++i) {
        const double weight = task.weights ? task.weights[i] : 1.0;
        if (weight == 0.0) continue;
        const T* p = values + i * task.k;
        low_entries(p, task.k, weight, second, task.floors, sums.count0, sums.score0);
        high_entries(p, weight, task, sums);
        const std::int64_t y = task.labels[i];
        if (p[y] > task.floors[y]) sums.hit[y * task.bins + bin_of(p[y], task.edges, task.bins, task.even)] += weight;
    }
}

CALIBRANT_CLONES void bins_block_of(const float* values, std::int64_t from, std::int64_t to, const BinTask& task,
                                    const BinSums& sums) {
    bins_block(values, from, to, task, sums);
}
CALIBRANT_CLONES void bins_block_of(const double* values, std::int64_t from, std::int64_t to, const BinTask& task,
                                    const BinSums& sums) {
    bins_block(values, from, to, task, sums);
}

// Cells below one of b equal-mass or equal-width bins' lower border: the first cell that belongs to bin `bin` or later.
struct Sweeper {
    const double* values;
    const double *weight, *score, *outcome;  // prefix sums
    std::int64_t m;
    bool equal_width;

    std::int64_t start(std::int64_t bin, std::int64_t b, std::int64_t from) const {
        if (equal_width) {
            const double edge = static_cast<double>(bin) / static_cast<double>(b);
            return std::lower_bound(values + from, values + m, edge) - values;
        }
        // A cell is in bin floor(C * b / n), C being the weight below it: exact in doubles for counts.
        const double total = weight[m], target = static_cast<double>(bin) * total, parts = static_cast<double>(b);
        return std::partition_point(weight + from, weight + m, [=](double below) { return below * parts < target; }) - weight;
    }

    template <class Visit>
    bool each_bin(std::int64_t b, Visit visit) const {
        for (std::int64_t from = 0, to; from < m; from = to) {
            to = end_of_bin(from, b);
            if (!visit(weight[to] - weight[from], score[to] - score[from], outcome[to] - outcome[from])) return false;
        }
        return true;
    }

    // The first cell beyond the bin that cell `from` opens. Empty bins before it are jumped over, by a guess that
    // rounding may leave one or two short.
    std::int64_t end_of_bin(std::int64_t from, std::int64_t b) const {
        const double place = equal_width ? values[from] : weight[from] / weight[m];
        std::int64_t bin = std::max<std::int64_t>(1, static_cast<std::int64_t>(place * static_cast<double>(b)) - 1);
        for (; bin < b; ++bin) {
            const std::int64_t to = start(bin, b, from);
            if (to > from) return to;
        }
        return m;
    }

    bool monotone(std::int64_t b) const {
        double height = -1;
        return each_bin(b, [&](double w, double, double y) {
            const double next = y / w;
            const bool kept = next >= height - 1e-13;  // rounding of fractional weights is no decrease
            height = next;
            return kept;
        });
    }

    // Whether no cell is lower than the one before it: then no binning is ever broken.
    bool always_monotone() const {
        for (std::int64_t i = 1; i < m; ++i) {
            const double before = (outcome[i] - outcome[i - 1]) / (weight[i] - weight[i - 1]);
            const double here = (outcome[i + 1] - outcome[i]) / (weight[i + 1] - weight[i]);
            if (here < before - 1e-13) return false;
        }
        return true;
    }

    double error(std::int64_t b, int norm) const {
        double total = 0, largest = 0;
        each_bin(b, [&](double w, double s, double y) {
            const double gap = std::abs(s - y) / w;
            largest = std::max(largest, gap);
            total += norm == 2 ? w * gap * gap : w * gap;
            return true;
        });
        if (norm == 0) return largest;
        return norm == 2 ? std::sqrt(total / weight[m]) : total / weight[m];
    }
};

}  // namespace

template <class T>
std::int64_t row_tops(const T* values, std::int64_t n, std::int64_t k, double tolerance, bool marginals, int threads,
                      double* top, std::int64_t* column, double* squares) {
    std::vector<std::int64_t> wrong(block_count(n, k), -1);
    for_blocks(n, k, threads, [&](std::int64_t b, std::int64_t from, std::int64_t to) {
        wrong[b] = tops_block_of(values, from, to, k, tolerance, marginals, top, column, squares);
    });
    for (std::int64_t row : wrong)
        if (row >= 0) return row;
    return -1;
}

template <class T>
void class_bins(const T* values, const std::int64_t* labels, const double* weights, std::int64_t n, std::int64_t k,
                const double* edges, std::int64_t bins, const double* floors, int threads, double* out) {
    // A few parts of many rows, each with sums of its own: as many as eight threads need, whatever their number is.
    const std::int64_t parts = std::min<std::int64_t>(8, block_count(n, k)), rows = (n + parts - 1) / parts;
    const std::int64_t cells = k * bins, width = 2 * k + 3 * cells;
    const BinTask task{labels, weights, k, edges, bins, floors, is_even(edges, bins)};
    std::vector<double> sums(parts * width);
    for_blocks(parts, 65536, threads, [&](std::int64_t part, std::int64_t, std::int64_t) {  // one part a block
        double* own = sums.data() + part * width;
        const BinSums mine{own, own + k, own + 2 * k, own + 2 * k + cells, own + 2 * k + 2 * cells};
        bins_block_of(values, std::min(n, part * rows), std::min(n, (part + 1) * rows), task, mine);
    });
    std::fill(out, out + 3 * cells, 0.0);
    for (std::int64_t part = 0; part < parts; ++part) {
        const double* own = sums.data() + part * width;
        for (std::int64_t j = 0; j < 3 * cells; ++j) out[j] += own[2 * k + j];
        for (std::int64_t j = 0; j < k; ++j) out[j * bins] += own[j], out[cells + j * bins] += own[k + j];
    }
}

void pair_bins(const double* scores, const double* outcomes, const double* weights, std::int64_t n, const double* edges,
               std::int64_t bins, double* out) {
    constexpr std::int64_t lanes = 4;  // scores crowd in a bin: sums that wait for one another are slow
    const bool even = is_even(edges, bins);
    std::vector<double> sums(lanes * bins * 3);
    for (std::int64_t i = 0; i < n; ++i) {
        const double weight = weights ? weights[i] : 1.0;
        double* cell = sums.data() + 3 * ((i % lanes) * bins + bin_of(scores[i], edges, bins, even));
        cell[0] += weight;
        cell[1] += weight * scores[i];
        cell[2] += weight * outcomes[i];
    }
    std::fill(out, out + 3 * bins, 0.0);
    for (std::int64_t j = 0; j < lanes * bins * 3; ++j) out[(j % 3) * bins + j / 3 % bins] += sums[j];
}

void triweight(const double* places, std::int64_t m, const double* points, const double* weights, std::int64_t n,
               std::int64_t sets, double h, double* out) {
    // Prefix sums of w * u^j, u being the distance from the middle of the point's cell of width h: no digits cancel.
    const std::int64_t width = sets * 7;
    std::vector<double> prefix((n + 1) * width);
    std::vector<double> cell(n);
    for (std::int64_t i = 0; i < n; ++i) {
        cell[i] = std::floor(points[i] / h);
        const double u = points[i] / h - (cell[i] + 0.5);
        const double *before = prefix.data() + i * width;
        double* after = prefix.data() + (i + 1) * width;
        for (std::int64_t s = 0; s < sets; ++s) {
            double power = weights[s * n + i];
            for (int j = 0; j < 7; ++j, power *= u) after[s * 7 + j] = before[s * 7 + j] + power;
        }
    }
    for (std::int64_t x = 0; x < m; ++x) {
        const std::int64_t first = std::lower_bound(points, points + n, places[x] - h) - points;
        const std::int64_t last = std::upper_bound(points + first, points + n, places[x] + h) - points;
        for (std::int64_t s = 0; s < sets; ++s) out[s * m + x] = 0;
        for (std::int64_t from = first, to; from < last; from = to) {  // at most three cells
            to = std::upper_bound(cell.data() + from, cell.data() + last, cell[from]) - cell.data();
            const double v = places[x] / h - (cell[from] + 0.5), vv = v * v, a = 1 - vv;
            const double c[7] = {a * a * a,           6 * a * a * v, 12 * a * vv - 3 * a * a, 8 * v * vv - 12 * a * v,
                                 3 * a - 12 * vv,     6 * v,         -1};
            const double *low = prefix.data() + from * width, *high = prefix.data() + to * width;
            for (std::int64_t s = 0; s < sets; ++s)
                for (int j = 0; j < 7; ++j) out[s * m + x] += c[j] * (high[s * 7 + j] - low[s * 7 + j]);
        }
        for (std::int64_t s = 0; s < sets; ++s) out[s * m + x] = std::max(0.0, out[s * m + x]) * (35.0 / 32.0 / h);
    }
}

Swept sweep(const double* values, const double* prefix, std::int64_t m, bool equal_width, int norm) {
    const Sweeper sweeper{values, prefix, prefix + (m + 1), prefix + 2 * (m + 1), m, equal_width};
    const std::int64_t most = std::max<std::int64_t>(m, static_cast<std::int64_t>(std::floor(prefix[m] + 1e-9)));
    std::int64_t b = most;
    if (!sweeper.always_monotone())
        for (b = 1; b < most && sweeper.monotone(b + 1);) ++b;
    return {b, sweeper.error(b, norm)};
}

#define CALIBRANT_INSTANTIATE(T)                                                                                        \
    template std::int64_t row_tops<T>(const T*, std::int64_t, std::int64_t, double, bool, int, double*, std::int64_t*, \
                                      double*);                                                                        \
    template void class_bins<T>(const T*, const std::int64_t*, const double*, std::int64_t, std::int64_t, const double*, \
                                std::int64_t, const double*, int, double*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
