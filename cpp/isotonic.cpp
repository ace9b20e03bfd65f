#include "isotonic.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "lift.hpp"
#include "parallel.hpp"
#include "search.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kParts = 16;    // at most so many partial sums, whatever the number of threads
constexpr std::int64_t kGlance = 1 << 18;  // sorted scores between two looks
constexpr std::int64_t kSpan = 4096;   // scores mapped at a time where all share one map

// Runs work(part) for fixed parts: blocks of one row each.
template <class Work>
void for_parts(std::int64_t parts, int threads, Work work) {
    for_blocks(parts, 1 << 16, threads, [&](std::int64_t part, std::int64_t, std::int64_t) { work(part); });
}

template <class T>
struct Tally {
    struct Gap {
        double count = 0;
        T largest = -std::numeric_limits<T>::infinity();
    };
    std::vector<Gap> gaps;
    explicit Tally(std::int64_t size) : gaps(size) {}
    void add(std::int64_t place, double weight, T x) {
        Gap& gap = gaps[place];
        gap.count += weight;
        if (x > gap.largest) gap.largest = x;
    }
};

// Scores of each class below every positive of its group, most of all: how much they weigh, and the largest.
template <class T>
struct Under {
    std::vector<T> low, largest;
    std::vector<double> count;
    Under(const std::int64_t* groups, std::int64_t k, const Search<T>& search)
        : low(k), largest(k, -std::numeric_limits<T>::infinity()), count(k) {
        for (std::int64_t j = 0; j < k; ++j) low[j] = groups[j] < 0 ? T(0) : search.low(groups[j]);
    }
};

// Counts what lies below, without a look into the tables, and returns how many scores do not.
template <class T>
CALIBRANT_INLINE std::int32_t count_under(const T* odds, std::int64_t k, double weight, const T* low, T* largest,
                                          double* count) {
    std::int32_t above = 0;
#pragma omp simd reduction(+ : above)
    for (std::int64_t j = 0; j < k; ++j) {
        const bool under = odds[j] < low[j];
        count[j] += under ? weight : 0.0;
        largest[j] = under & (odds[j] > largest[j]) ? odds[j] : largest[j];
        above += !under;
    }
    return above;
}
CALIBRANT_CLONES std::int32_t count_under_of(const float* odds, std::int64_t k, double weight, const float* low,
                                             float* largest, double* count) {
    return count_under(odds, k, weight, low, largest, count);
}
CALIBRANT_CLONES std::int32_t count_under_of(const double* odds, std::int64_t k, double weight, const double* low,
                                             double* largest, double* count) {
    return count_under(odds, k, weight, low, largest, count);
}

template <class T>
void tally_row(const T* odds, std::int64_t label, double weight, std::int64_t k, const std::int64_t* groups,
               const std::int64_t* starts, const Search<T>& search, Under<T>& under, Tally<T>& tally) {
    constexpr std::int64_t stretch = 64;
    for (std::int64_t from = 0; from < k; from += stretch) {
        const std::int64_t to = std::min(from + stretch, k);
        if (!count_under_of(odds + from, to - from, weight, under.low.data() + from, under.largest.data() + from,
                            under.count.data() + from))
            continue;
        for (std::int64_t j = from; j < to; ++j) {
            const std::int64_t g = groups[j];
            if (j == label || g < 0 || odds[j] < under.low[j]) continue;
            tally.add(starts[g] + g + search.at_or_below(g, odds[j]), weight, odds[j]);
        }
    }
}

// What lay below goes to the first gap of its group.
template <class T>
void tally_under(const Under<T>& under, const std::int64_t* groups, const std::int64_t* starts, Tally<T>& tally) {
    for (std::size_t j = 0; j < under.low.size(); ++j)
        if (groups[j] >= 0 && under.count[j] > 0) tally.add(starts[groups[j]] + groups[j], under.count[j], under.largest[j]);
}

// The same for scores that share one bound: the largest of those below it, and how many are not.
template <class T>
CALIBRANT_INLINE std::int32_t largest_under(const T* odds, std::int64_t k, T low, T& largest) {
    std::int32_t above = 0;
    T top = largest;
#pragma omp simd reduction(+ : above) reduction(max : top)
    for (std::int64_t j = 0; j < k; ++j) {
        const bool under = odds[j] < low;
        above += !under;
        top = under & (odds[j] > top) ? odds[j] : top;
    }
    largest = top;
    return above;
}
CALIBRANT_CLONES std::int32_t largest_under_of(const float* odds, std::int64_t k, float low, float& largest) {
    return largest_under(odds, k, low, largest);
}
CALIBRANT_CLONES std::int32_t largest_under_of(const double* odds, std::int64_t k, double low, double& largest) {
    return largest_under(odds, k, low, largest);
}

// One group for all: the scores below every positive, most of them, are counted without a look into the tables.
template <class T>
void tally_row_shared(const T* odds, std::int64_t label, double weight, std::int64_t k, const Search<T>& search,
                      Tally<T>& tally) {
    constexpr std::int64_t stretch = 64;
    const T low = search.low(0);
    std::int64_t below = k;
    for (std::int64_t from = 0; from < k; from += stretch) {
        const std::int64_t to = std::min(from + stretch, k);
        const std::int32_t above = largest_under_of(odds + from, to - from, low, tally.gaps[0].largest);
        if (above == 0) continue;
        below -= above;
        for (std::int64_t j = from; j < to; ++j)
            if (!(odds[j] < low) && j != label) tally.add(search.at_or_below(0, odds[j]), weight, odds[j]);
    }
    tally.gaps[0].count += weight * static_cast<double>(below);
}

CALIBRANT_INLINE float logistic(float x) {
    const float e = exp_nonpositive(x < 0 ? x : -x);
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}
CALIBRANT_INLINE double logistic(double x) {
    const double e = exp_nonpositive(x < 0 ? x : -x);
    return (x < 0 ? e : 1.0) / (1.0 + e);
}

template <class T>
CALIBRANT_INLINE void logistic_span(const T* x, std::int64_t count, T* out) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) out[i] = logistic(x[i]);
}
CALIBRANT_CLONES void logistic_span_of(const float* x, std::int64_t count, float* out) { logistic_span(x, count, out); }
CALIBRANT_CLONES void logistic_span_of(const double* x, std::int64_t count, double* out) { logistic_span(x, count, out); }

// (sigmoid(x) - sigmoid(a)) / (sigmoid(b) - sigmoid(a)) for a <= x <= b, without cancellation where they saturate.
double share_of_rise(double x, double a, double b) {
    if (std::isinf(a) || std::isinf(b)) return x == b ? 1.0 : 0.0;
    const double ratio = b < 0 ? std::exp(x - b) * (1 + std::exp(b)) / (1 + std::exp(x)) : (1 + std::exp(-b)) / (1 + std::exp(-x));
    return std::clamp(std::expm1(a - x) / std::expm1(a - b) * ratio, 0.0, 1.0);
}

// The least score that counts as equal to x. Log-odds of equal probabilities differ by the rounding of their rows' sums.
template <class T>
double equal_from(T x, double resolution) {
    const double rounding = std::is_same_v<T, float> ? 1e-6 : 1e-14;
    const double near = x - rounding * (1 + std::abs(static_cast<double>(x)));
    if (resolution == 0) return near;
    const double e = std::exp(-std::abs(static_cast<double>(x)));
    const double p = x < 0 ? e / (1 + e) - resolution : 1 / (1 + e) - resolution;
    const double c = x < 0 ? 1 - p : e / (1 + e) + resolution;
    return std::min(near, p > 0 ? std::log(p / c) : -1e30);
}

template <class T>
struct Curve {
    const Search<T>& search;
    const std::int64_t *groups, *starts;
    const T* knots;
    const double* values;
    bool steps;
    double epsilon;

    double at(std::int64_t g, T x) const {
        const std::int64_t from = starts[g], size = starts[g + 1] - from, i = search.at_or_below(g, x);
        const T* own = knots + from;
        const double* level = values + from;
        if (i == 0) return level[0];
        if (i == size || steps || level[i] == level[i - 1] || own[i - 1] == x) return level[i - 1];
        return level[i - 1] + (level[i] - level[i - 1]) * share_of_rise(x, own[i - 1], own[i]);
    }

    // x[i] belongs to groups[i], or all to one group.
    void apply(const T* x, std::int64_t count, T* out) const {
        if (epsilon > 0) logistic_span_of(x, count, out);
        for (std::int64_t i = 0; i < count; ++i) {
            const double f = at(groups ? groups[i] : 0, x[i]);
            out[i] = static_cast<T>(epsilon > 0 ? (1 - epsilon) * f + epsilon * out[i] : f);
        }
    }
};

}  // namespace

template <class T>
void label_log_odds(const T* logits, const std::int64_t* labels, std::int64_t n, std::int64_t k, int threads, T* out) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        std::vector<T> odds(k);
        for (std::int64_t i = from; i < to; ++i) {
            log_odds_row(logits + i * k, k, odds.data(), labels[i]);
            out[i] = odds[labels[i]];
        }
    });
}

template <class T>
void merge_close(const T* sorted, const std::int64_t* starts, std::int64_t group_count, double resolution,
                 std::uint8_t* fresh, T* bounds) {
    const Alone alone;
    for (std::int64_t g = 0; g < group_count; ++g) {
        T anchor = 0;
        for (std::int64_t i = starts[g]; i < starts[g + 1]; ++i) {
            if (i % kGlance == 0) Watch::look();
            const bool first = i == starts[g];
            const double from = equal_from(sorted[i], resolution);
            fresh[i] = first || from > anchor;
            if (!fresh[i]) continue;
            anchor = sorted[i];
            const T bound = static_cast<T>(from);
            bounds[i] = first ? bound : std::max(bound, std::nextafter(sorted[i - 1], sorted[i]));
        }
    }
}

template <class T>
void negatives_between(const T* logits, const std::int64_t* labels, const double* weights, std::int64_t n, std::int64_t k,
                       const std::int64_t* groups, const std::int64_t* starts, std::int64_t group_count, const T* bounds,
                       int threads, double* counts, T* largest) {
    const std::int64_t size = starts[group_count] + group_count;
    const std::int64_t parts = std::clamp<std::int64_t>(n * k / size, 1, kParts);  // few where the sums outweigh the rows
    const bool all = group_count == 1 && std::all_of(groups, groups + k, [](std::int64_t g) { return g == 0; });
    const Search<T> search(bounds, starts, group_count, n * k);
    std::vector<Tally<T>> tallies(parts, Tally<T>(size));
    for_parts(parts, threads, [&](std::int64_t part) {
        std::vector<T> odds(k);
        Under<T> under(groups, k, search);
        for (std::int64_t i = n * part / parts; i < n * (part + 1) / parts; ++i) {
            if (i % 256 == 0) Watch::look();
            const double weight = weights ? weights[i] : 1.0;
            if (weight == 0) continue;
            log_odds_row(logits + i * k, k, odds.data());
            if (all)
                tally_row_shared(odds.data(), labels[i], weight, k, search, tallies[part]);
            else
                tally_row(odds.data(), labels[i], weight, k, groups, starts, search, under, tallies[part]);
        }
        tally_under(under, groups, starts, tallies[part]);
    });
    std::fill(counts, counts + size, 0.0);
    std::fill(largest, largest + size, -std::numeric_limits<T>::infinity());
    for (const auto& tally : tallies)
        for (std::int64_t i = 0; i < size; ++i) {
            counts[i] += tally.gaps[i].count;
            largest[i] = std::max(largest[i], tally.gaps[i].largest);
        }
}

void pool_adjacent(const double* sums, const double* weights, const std::int64_t* starts, std::int64_t group_count,
                   double* levels) {
    std::vector<double> sum, weight;
    std::vector<std::int64_t> last;
    const Alone alone;
    for (std::int64_t g = 0; g < group_count; ++g) {
        sum.clear(), weight.clear(), last.clear();
        for (std::int64_t i = starts[g]; i < starts[g + 1]; ++i) {
            if (i % kGlance == 0) Watch::look();
            double s = sums[i], w = weights[i];
            while (!sum.empty() && sum.back() * w >= s * weight.back()) {
                s += sum.back(), w += weight.back();
                sum.pop_back(), weight.pop_back(), last.pop_back();
            }
            sum.push_back(s), weight.push_back(w), last.push_back(i);
        }
        std::int64_t i = starts[g];
        for (std::size_t b = 0; b < last.size(); ++b)
            for (; i <= last[b]; ++i) levels[i] = sum[b] / weight[b];
    }
}

template <class T>
void isotonic_apply(const T* x, std::int64_t n, std::int64_t k, const std::int64_t* groups, const std::int64_t* starts,
                    std::int64_t group_count, const T* knots, const double* values, bool steps, double epsilon, int threads,
                    T* out) {
    const Search<T> search(knots, starts, group_count, n * k);
    const bool shared = group_count == 1;
    const Curve<T> curve{search, shared ? nullptr : groups, starts, knots, values, steps, epsilon};
    const std::int64_t span = shared ? kSpan : k, spans = (n * k + span - 1) / span;
    for_blocks(spans, span, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        for (std::int64_t s = from; s < to; ++s) {
            const std::int64_t begin = s * span, count = std::min(span, n * k - begin);
            curve.apply(x + begin, count, out + begin);
        }
    });
}

#define CALIBRANT_ISOTONIC(T)                                                                                              \
    template void merge_close<T>(const T*, const std::int64_t*, std::int64_t, double, std::uint8_t*, T*);                    \
    template void label_log_odds<T>(const T*, const std::int64_t*, std::int64_t, std::int64_t, int, T*);                     \
    template void negatives_between<T>(const T*, const std::int64_t*, const double*, std::int64_t, std::int64_t,           \
                                       const std::int64_t*, const std::int64_t*, std::int64_t, const T*, int, double*, T*); \
    template void isotonic_apply<T>(const T*, std::int64_t, std::int64_t, const std::int64_t*, const std::int64_t*,        \
                                    std::int64_t, const T*, const double*, bool, double, int, T*);
CALIBRANT_ISOTONIC(float)
CALIBRANT_ISOTONIC(double)

}  // namespace calibrant
