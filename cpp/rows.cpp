#include "rows.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kChunk = 1024;  // float lanes are emptied into doubles this often
constexpr std::int64_t kShort = 32;    // few columns: one plain loop costs less than setting up vectors
constexpr std::int64_t kAhead = 1024;  // bytes: the hardware alone stops at the end of a page

template <class T>
struct RowFacts {
    double sum = 0, squares = 0;  // a NaN shows in the sum
    T smallest, largest;
};

template <class T>
CALIBRANT_INLINE void add_entry(RowFacts<T>& facts, T value) {
    facts.sum += value;
    facts.squares += static_cast<double>(value) * static_cast<double>(value);
    facts.smallest = value < facts.smallest ? value : facts.smallest;
    facts.largest = value > facts.largest ? value : facts.largest;
}

// Two cache lines a turn, and a lane of its own for each place in a line: sums that wait for one another are slow.
template <class T>
struct Lanes {
    static constexpr std::int64_t width = 64 / sizeof(T);
    T sum[width], squares[width], smallest[width], largest[width];

    CALIBRANT_INLINE explicit Lanes(T first) {
        for (std::int64_t l = 0; l < width; ++l) sum[l] = squares[l] = 0, smallest[l] = largest[l] = first;
    }

    CALIBRANT_INLINE void add(const T* p) {
#pragma omp simd
        for (std::int64_t l = 0; l < width; ++l) {
            const T a = p[l], b = p[width + l];
            const T low = a < b ? a : b, high = a < b ? b : a;
            sum[l] += a + b;
            squares[l] += a * a + b * b;
            smallest[l] = low < smallest[l] ? low : smallest[l];
            largest[l] = high > largest[l] ? high : largest[l];
        }
    }

    CALIBRANT_INLINE void empty_into(RowFacts<T>& facts) {
        double sums[width], sums_of_squares[width];
        for (std::int64_t l = 0; l < width; ++l) sums[l] = sum[l], sums_of_squares[l] = squares[l];
#pragma GCC unroll 4
        for (std::int64_t half = width / 2; half > 0; half /= 2)
            for (std::int64_t l = 0; l < half; ++l) {
                sums[l] += sums[l + half];
                sums_of_squares[l] += sums_of_squares[l + half];
                smallest[l] = smallest[l + half] < smallest[l] ? smallest[l + half] : smallest[l];
                largest[l] = largest[l + half] > largest[l] ? largest[l + half] : largest[l];
            }
        facts.sum += sums[0], facts.squares += sums_of_squares[0];
        facts.smallest = smallest[0] < facts.smallest ? smallest[0] : facts.smallest;
        facts.largest = largest[0] > facts.largest ? largest[0] : facts.largest;
    }
};

template <class T>
CALIBRANT_INLINE RowFacts<T> row_facts(const T* p, std::int64_t k) {
    constexpr std::int64_t step = 2 * Lanes<T>::width;
    RowFacts<T> facts{0, 0, p[0], p[0]};
    std::int64_t j = 0;
    while (j + step <= k) {
        Lanes<T> lanes(p[0]);
        for (const std::int64_t end = std::min(k, j + kChunk); j + step <= end; j += step) {
            __builtin_prefetch(reinterpret_cast<const char*>(p + j) + kAhead);
            __builtin_prefetch(reinterpret_cast<const char*>(p + j) + kAhead + 64);
            lanes.add(p + j);
        }
        lanes.empty_into(facts);
    }
    for (; j < k; ++j) add_entry(facts, p[j]);
    return facts;
}

template <class T>
struct Top {
    RowFacts<T> facts;
    std::int64_t column;
};

template <class T>
CALIBRANT_INLINE Top<T> short_row(const T* p, std::int64_t k) {
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

// What a row of probabilities has to be.
struct Rule {
    double tolerance;
    bool marginals;

    template <class T>
    CALIBRANT_INLINE bool broken_by(const RowFacts<T>& facts) const {
        const double most = marginals ? 1.0 : 1.0 + tolerance;
        const double off = marginals ? facts.sum - facts.sum : std::abs(facts.sum - 1);
        return !(facts.smallest >= 0 && facts.largest <= most && off <= tolerance);
    }
};

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
CALIBRANT_INLINE std::int64_t tops_block(const T* values, std::int64_t from, std::int64_t to, std::int64_t k, Rule rule,
                                         double* top, std::int64_t* column, double* squares) {
    if (k == 1 && rule.marginals) return event_block(values, from, to, top, column, squares);
    std::int64_t wrong = -1;
    for (std::int64_t i = from; i < to; ++i) {
        const T* p = values + i * k;
        Top<T> row;
        if (k <= kShort) {
            row = short_row(p, k);
        } else {
            row.facts = row_facts(p, k);
            const bool there = row.facts.sum == row.facts.sum;  // in a row with a NaN the largest may be nowhere
            row.column = there ? first_place(p, k, row.facts.largest) : 0;
        }
        if (wrong < 0 && rule.broken_by(row.facts)) wrong = i;
        top[i] = row.facts.largest;
        column[i] = row.column;
        squares[i] = row.facts.squares;
    }
    return wrong;
}

template <class T>
CALIBRANT_INLINE std::int64_t count_equal(const T* p, std::int64_t k, T value) {
    std::int32_t count = 0;
#pragma omp simd reduction(+ : count)
    for (std::int64_t j = 0; j < k; ++j) count += p[j] == value;
    return count;
}

template <class T>
CALIBRANT_INLINE std::int64_t count_above(const T* p, std::int64_t k, T value) {
    std::int32_t count = 0;
#pragma omp simd reduction(+ : count)
    for (std::int64_t j = 0; j < k; ++j) count += p[j] > value;
    return count;
}

// The row is in the first-level cache by now. Ties are looked for only where they could decide.
template <class T>
CALIBRANT_INLINE bool label_hit(const T* p, std::int64_t k, std::int64_t label, T largest, std::int64_t most) {
    const T own = p[label];
    if (most == 1 && own < largest) return false;
    const std::int64_t above = own < largest ? count_above(p, k, own) : 0;
    return above < most && above + count_equal(p, label, own) < most;
}

template <class T>
CALIBRANT_INLINE std::int64_t hits_block(const T* values, const std::int64_t* labels, std::int64_t from, std::int64_t to,
                                         std::int64_t k, std::int64_t most, Rule rule, bool* hits) {
    std::int64_t wrong = -1;
    for (std::int64_t i = from; i < to; ++i) {
        const T* p = values + i * k;
        const RowFacts<T> facts = k <= kShort ? short_row(p, k).facts : row_facts(p, k);
        if (wrong < 0 && rule.broken_by(facts)) wrong = i;
        hits[i] = label_hit(p, k, labels[i], facts.largest, most);
    }
    return wrong;
}

#define CALIBRANT_BLOCKS(T)                                                                                           \
    CALIBRANT_CLONES std::int64_t tops_block_of(const T* values, std::int64_t from, std::int64_t to, std::int64_t k,  \
                                                Rule rule, double* top, std::int64_t* column, double* squares) {      \
        return tops_block(values, from, to, k, rule, top, column, squares);                                           \
    }                                                                                                                 \
    CALIBRANT_CLONES std::int64_t hits_block_of(const T* values, const std::int64_t* labels, std::int64_t from,       \
                                                std::int64_t to, std::int64_t k, std::int64_t most, Rule rule,        \
                                                bool* hits) {                                                         \
        return hits_block(values, labels, from, to, k, most, rule, hits);                                             \
    }
CALIBRANT_BLOCKS(float)
CALIBRANT_BLOCKS(double)

// Runs a check over all blocks and returns the first row that any of them found wrong.
template <class Check>
std::int64_t first_wrong(std::int64_t n, std::int64_t k, int threads, Check check) {
    std::vector<std::int64_t> wrong(block_count(n, k), -1);
    for_blocks(
        n, k, threads, [&](std::int64_t b, std::int64_t from, std::int64_t to) { wrong[b] = check(from, to); },
        kReadersRun);
    for (std::int64_t row : wrong)
        if (row >= 0) return row;
    return -1;
}

}  // namespace

template <class T>
std::int64_t row_tops(const T* values, std::int64_t n, std::int64_t k, double tolerance, bool marginals, int threads,
                      double* top, std::int64_t* column, double* squares) {
    return first_wrong(n, k, threads, [&](std::int64_t from, std::int64_t to) {
        return tops_block_of(values, from, to, k, {tolerance, marginals}, top, column, squares);
    });
}

template <class T>
std::int64_t label_hits(const T* values, const std::int64_t* labels, std::int64_t n, std::int64_t k, std::int64_t most,
                        double tolerance, bool marginals, int threads, bool* hits) {
    return first_wrong(n, k, threads, [&](std::int64_t from, std::int64_t to) {
        return hits_block_of(values, labels, from, to, k, most, {tolerance, marginals}, hits);
    });
}

#define CALIBRANT_INSTANTIATE(T)                                                                                       \
    template std::int64_t row_tops<T>(const T*, std::int64_t, std::int64_t, double, bool, int, double*, std::int64_t*, \
                                      double*);                                                                        \
    template std::int64_t label_hits<T>(const T*, const std::int64_t*, std::int64_t, std::int64_t, std::int64_t,       \
                                        double, bool, int, bool*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
