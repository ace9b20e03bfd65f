#include "curve.hpp"

#include <cmath>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kMostChunks = 64;  // partial sums are large here: few of them, whatever the number of rows
constexpr std::int64_t kFewest = 512;      // rows of a chunk: their work outweighs the adding of its sums

constexpr double kFarthest = 1e150;  // beyond a knot: its square is finite, so that nothing times it is nothing

// Room for one row: t and the probability of each class, the row's own curve, moments by knot.
struct Row {
    std::vector<double> t, p, values, slopes, widths, inverse, first, second;
    Row(std::int64_t k, const Curve& c)
        : t(k), p(k), values(c.count), slopes(c.count), widths(c.count), inverse(c.count), first(c.count),
          second(2 * c.count) {
        for (std::int64_t j = 0; j + 1 < c.count; ++j) inverse[j] = 1 / (c.knots[j + 1] - c.knots[j]);
        for (std::int64_t j = 0; j + 2 < c.count; ++j) widths[j] = c.knots[j + 1] - c.knots[j];
        widths[c.count - 2] = INFINITY;
    }
};

// Fills t = -log softmax(beta * z), for -inf +inf; returns the log-odds of the top class, exact to some 30 nats.
template <class T>
CALIBRANT_INLINE double surprises(const T* z, std::int64_t k, double beta, double* t) {
    const double top = row_max(z, k);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < k; ++j) {
        t[j] = beta * (top - static_cast<double>(z[j]));
        sum += exp_nonpositive(-t[j]);
    }
    const double rest = std::log(sum);
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) t[j] += rest;
    return sum > 1 ? -std::log(sum - 1) : INFINITY;  // the top class itself has added 1
}

// Where a row lies between the stations: 0.25 of the way from station 2 to station 3, say.
struct Place {
    std::int64_t station = 0;
    double share = 0;
    Place(const Curve& c, double odds) {
        if (c.places == 1) return;
        while (station + 2 < c.places && odds >= c.stations[station + 1]) ++station;
        const double from = c.stations[station], to = c.stations[station + 1];
        share = odds <= from ? 0.0 : odds >= to ? 1.0 : (odds - from) / (to - from);
    }
};

// The row's own values and slopes.
CALIBRANT_INLINE void bend(const Curve& c, Place place, Row& row) {
    const double share = place.share, *v = c.values + place.station * c.count;
    const double* next = place.station + 1 < c.places ? v + c.count : v;
    for (std::int64_t j = 0; j < c.count; ++j) row.values[j] = (1 - share) * v[j] + share * next[j];
    for (std::int64_t j = 0; j + 1 < c.count; ++j)
        row.slopes[j] = (row.values[j + 1] - row.values[j]) * row.inverse[j];
}

// Fills row.p with v(t), the sum over segments of slope times the part of [0, t] inside; returns the largest.
// Where all slopes are negative every term falls with t, and so does the rounded sum: the order is kept exactly.
CALIBRANT_INLINE double scores_row(std::int64_t k, const Curve& c, Row& row) {
    double *t = row.t.data(), *f = row.p.data();
    const double start = row.values[0];
    for (std::int64_t j = 0; j < k; ++j) f[j] = start;
    for (std::int64_t knot = 0; knot + 1 < c.count; ++knot) {
        const double at = c.knots[knot], slope = row.slopes[knot], width = row.widths[knot];
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) {
            double inside = t[j] - at;
            inside = inside > 0 ? inside : 0;
            inside = inside < width ? inside : width;
            f[j] += slope * inside;
        }
    }
    double best = -INFINITY;
#pragma omp simd reduction(max : best)
    for (std::int64_t j = 0; j < k; ++j) {
        f[j] = t[j] == INFINITY ? -INFINITY : f[j];
        best = f[j] > best ? f[j] : best;
    }
    return best;
}

// Turns row.p from scores into unnormalised probabilities; returns their sum.
CALIBRANT_INLINE double exponentials(std::int64_t k, double best, Row& row) {
    double* p = row.p.data();
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < k; ++j) {
        p[j] = exp_nonpositive(p[j] - best);
        sum += p[j];
    }
    return sum;
}

// First and second moments under p of the hat functions at the knots; second[2j] is of (j, j), second[2j + 1] of (j, j + 1).
// A hat is the difference of two ramps, u = 0 before a segment and 1 after it, and of two ramps the later one is their
// product: E[u] and E[u^2] of each tell all. The last ramp goes on rising.
CALIBRANT_INLINE void moments(const Curve& c, std::int64_t k, double sum, Row& row) {
    const double *t = row.t.data(), *p = row.p.data(), scale = 1 / sum;
    row.first[0] = row.second[0] = 1;
    for (std::int64_t s = 0; s + 1 < c.count; ++s) {
        const double at = c.knots[s], inverse = row.inverse[s];
        const double width = std::min(row.widths[s], kFarthest);
        double first = 0, second = 0;
#pragma omp simd reduction(+ : first, second)
        for (std::int64_t j = 0; j < k; ++j) {
            double inside = t[j] - at;
            inside = inside > 0 ? inside : 0;
            inside = inside < width ? inside : width;
            const double part = p[j] * inside;
            first += part;
            second += part * inside;
        }
        first *= scale * inverse, second *= scale * inverse * inverse;
        row.first[s] -= first;
        row.first[s + 1] = first;
        row.second[2 * s] += second - 2 * first;
        row.second[2 * s + 1] = first - second;
        row.second[2 * s + 2] = second;
    }
}

// Adds scale * (E[h h'] - E[h] E[h]') to a block of the Hessian whose rows are `stride` apart.
CALIBRANT_INLINE void add_covariance(std::int64_t count, double scale, const double* first, const double* second,
                                     std::int64_t stride, double* out) {
    if (scale == 0) return;
    for (std::int64_t i = 0; i < count; ++i) {
        const double part = scale * first[i];
#pragma omp simd
        for (std::int64_t j = 0; j < count; ++j) out[i * stride + j] -= part * first[j];
        out[i * stride + i] += scale * second[2 * i];
        if (i + 1 < count) {
            out[i * stride + i + 1] += scale * second[2 * i + 1];
            out[(i + 1) * stride + i] += scale * second[2 * i + 1];
        }
    }
}

template <class T>
CALIBRANT_INLINE void sums_chunk(const T* logits, const std::int64_t* labels, const double* weights, std::int64_t from,
                                 std::int64_t to, std::int64_t k, const Curve& c, double* out) {
    Row row(k, c);
    const std::int64_t count = c.count, stride = c.parameters();
    double *first = row.first.data(), *second = row.second.data();
    for (std::int64_t i = from; i < to; ++i) {
        if (i % 64 == 0) Watch::look();
        const double w = weights ? weights[i] : 1.0;
        if (w == 0) continue;
        const Place place(c, surprises(logits + i * k, k, c.beta, row.t.data()));
        const double share = place.share;
        bend(c, place, row);
        const double best = scores_row(k, c, row), chosen = row.p[labels[i]];
        const double sum = exponentials(k, best, row);
        moments(c, k, sum, row);
        out[0] += w * (std::log(sum) + best - chosen);
        double* hessian = out + 1 + stride + place.station * count * (stride + 1);
        add_covariance(count, w * (1 - share) * (1 - share), first, second, stride, hessian);
        if (share != 0) {  // else there may be no next station
            add_covariance(count, w * share * (1 - share), first, second, stride, hessian + count);
            add_covariance(count, w * share * share, first, second, stride, hessian + count * (stride + 1));
        }
        const double t = row.t[labels[i]];
        std::int64_t s = 0;
        while (s + 2 < count && t >= c.knots[s + 1]) ++s;
        const double a = (t - c.knots[s]) * row.inverse[s];
        first[s] -= 1 - a;
        first[s + 1] -= a;
        double* gradient = out + 1 + place.station * count;
        for (std::int64_t j = 0; j < count; ++j) gradient[j] += w * (1 - share) * first[j];
        if (share != 0)
            for (std::int64_t j = 0; j < count; ++j) gradient[count + j] += w * share * first[j];
    }
}

template <class T>
CALIBRANT_INLINE void apply_block(const T* logits, std::int64_t from, std::int64_t to, std::int64_t k, const Curve& c,
                                  T* out) {
    Row row(k, c);
    for (std::int64_t i = from; i < to; ++i) {
        bend(c, Place(c, surprises(logits + i * k, k, c.beta, row.t.data())), row);
        const double scale = 1 / exponentials(k, scores_row(k, c, row), row);
        T* p = out + i * k;
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) p[j] = static_cast<T>(row.p[j] * scale);
    }
}

template <class T>
CALIBRANT_INLINE double largest_of(const T* logits, const double* weights, std::int64_t from, std::int64_t to,
                                   std::int64_t k, double beta) {
    std::vector<double> t(k);
    double largest = 0;
    for (std::int64_t i = from; i < to; ++i) {
        if (weights && weights[i] == 0) continue;
        surprises(logits + i * k, k, beta, t.data());
        for (std::int64_t j = 0; j < k; ++j) largest = t[j] > largest ? t[j] : largest;
    }
    return largest;
}

CALIBRANT_CLONES void sums_chunk_of(const float* logits, const std::int64_t* labels, const double* weights,
                                    std::int64_t from, std::int64_t to, std::int64_t k, const Curve& c, double* out) {
    sums_chunk(logits, labels, weights, from, to, k, c, out);
}
CALIBRANT_CLONES void sums_chunk_of(const double* logits, const std::int64_t* labels, const double* weights,
                                    std::int64_t from, std::int64_t to, std::int64_t k, const Curve& c, double* out) {
    sums_chunk(logits, labels, weights, from, to, k, c, out);
}
CALIBRANT_CLONES double largest_block_of(const float* logits, const double* weights, std::int64_t from, std::int64_t to,
                                         std::int64_t k, double beta) {
    return largest_of(logits, weights, from, to, k, beta);
}
CALIBRANT_CLONES double largest_block_of(const double* logits, const double* weights, std::int64_t from, std::int64_t to,
                                         std::int64_t k, double beta) {
    return largest_of(logits, weights, from, to, k, beta);
}
CALIBRANT_CLONES void apply_block_of(const float* logits, std::int64_t from, std::int64_t to, std::int64_t k,
                                     const Curve& c, float* out) {
    apply_block(logits, from, to, k, c, out);
}
CALIBRANT_CLONES void apply_block_of(const double* logits, std::int64_t from, std::int64_t to, std::int64_t k,
                                     const Curve& c, double* out) {
    apply_block(logits, from, to, k, c, out);
}

}  // namespace

template <class T>
void curve_sums(const T* logits, const std::int64_t* labels, const double* weights, std::int64_t n, std::int64_t k,
                const Curve& curve, int threads, double* out) {
    const std::int64_t width = curve_width(curve);
    const std::int64_t rows = std::max(kFewest, (n + kMostChunks - 1) / kMostChunks), chunks = (n + rows - 1) / rows;
    std::vector<double> parts(chunks * width);
    constexpr std::int64_t one_each = 65536;  // so wide a "row" makes every chunk a block of its own
    for_blocks(chunks, one_each, threads, [&](std::int64_t b, std::int64_t, std::int64_t) {
        sums_chunk_of(logits, labels, weights, b * rows, std::min(n, (b + 1) * rows), k, curve, parts.data() + b * width);
    });
    for (std::int64_t j = 0; j < width; ++j) out[j] = 0;
    for (std::int64_t i = 0; i < chunks * width; ++i) out[i % width] += parts[i];
}

template <class T>
double largest_surprise(const T* logits, const double* weights, std::int64_t n, std::int64_t k, double beta, int threads) {
    std::vector<double> parts(block_count(n, k));
    for_blocks(n, k, threads, [&](std::int64_t b, std::int64_t from, std::int64_t to) {
        parts[b] = largest_block_of(logits, weights, from, to, k, beta);
    });
    return parts.empty() ? 0.0 : *std::max_element(parts.begin(), parts.end());
}

template <class T>
void curve_apply(const T* logits, std::int64_t n, std::int64_t k, const Curve& curve, int threads, T* out) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        apply_block_of(logits, from, to, k, curve, out);
    });
}

#define CALIBRANT_INSTANTIATE(T)                                                                                       \
    template void curve_sums<T>(const T*, const std::int64_t*, const double*, std::int64_t, std::int64_t, const Curve&, \
                                int, double*);                                                                         \
    template double largest_surprise<T>(const T*, const double*, std::int64_t, std::int64_t, double, int);             \
    template void curve_apply<T>(const T*, std::int64_t, std::int64_t, const Curve&, int, T*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
