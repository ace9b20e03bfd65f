#include "curve.hpp"

#include <cmath>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kMostChunks = 64;  // partial sums are large here: few of them, whatever the number of rows
constexpr std::int64_t kFewest = 512;      // rows of a chunk: their work outweighs the adding of its sums

// Room for one row: t and the probability of each class, the row's own curve, moments by knot.
struct Row {
    std::vector<double> t, p, values, slopes, widths, inverse, beyond, first, second;
    Row(std::int64_t k, const Curve& c)
        : t(k), p(k), values(c.count), slopes(c.count), widths(c.count), inverse(c.count), beyond(3 * c.count),
          first(c.count), second(2 * c.count) {
        for (std::int64_t j = 0; j + 1 < c.count; ++j) inverse[j] = 1 / (c.knots[j + 1] - c.knots[j]);
        for (std::int64_t j = 0; j + 2 < c.count; ++j) widths[j] = c.knots[j + 1] - c.knots[j];
        widths[c.count - 2] = INFINITY;
    }
};

// t = -log softmax(beta * z); for -inf it is +inf.
template <class T>
CALIBRANT_INLINE void surprises(const T* z, std::int64_t k, double beta, double* t) {
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
}

// The row's own values and slopes.
CALIBRANT_INLINE void bend(const Curve& c, std::int64_t station, double share, Row& row) {
    const double* v = c.values + station * c.count;
    const double* next = station + 1 < c.stations ? v + c.count : v;
    for (std::int64_t j = 0; j < c.count; ++j) row.values[j] = (1 - share) * v[j] + share * next[j];
    for (std::int64_t j = 0; j + 1 < c.count; ++j)
        row.slopes[j] = (row.values[j + 1] - row.values[j]) * row.inverse[j];
}

// Fills row.t and row.p with v(t), the sum over segments of slope times the part of [0, t] inside; returns the largest.
// Where all slopes are negative every term falls with t, and so does the rounded sum: the order is kept exactly.
template <class T>
CALIBRANT_INLINE double scores_row(const T* z, std::int64_t k, const Curve& c, Row& row) {
    double *t = row.t.data(), *f = row.p.data();
    surprises(z, k, c.beta, t);
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

// Sums of p, p d and p d^2 over the classes beyond each knot, d the distance to it; and 0 beyond the last segment's end.
CALIBRANT_INLINE void sums_beyond(const Curve& c, std::int64_t k, Row& row) {
    const double *t = row.t.data(), *p = row.p.data();
    double* beyond = row.beyond.data();
    for (std::int64_t knot = 0; knot + 1 < c.count; ++knot) {
        const double at = c.knots[knot];
        double s0 = 0, s1 = 0, s2 = 0;
#pragma omp simd reduction(+ : s0, s1, s2)
        for (std::int64_t j = 0; j < k; ++j) {
            const double apart = t[j] - at, all = p[j];
            const double q = apart >= 0 ? all : 0.0, d = apart >= 0 ? apart : 0.0, qd = all * d;
            s0 += q;
            s1 += qd;
            s2 += qd * d;
        }
        beyond[3 * knot] = s0, beyond[3 * knot + 1] = s1, beyond[3 * knot + 2] = s2;
    }
    for (std::int64_t j = 3 * c.count - 3; j < 3 * c.count; ++j) beyond[j] = 0;
}

// First and second moments under p of the hat functions at the knots; second[2j] is of (j, j), second[2j + 1] of (j, j + 1).
CALIBRANT_INLINE void moments(const Curve& c, std::int64_t k, double sum, Row& row) {
    sums_beyond(c, k, row);
    const double scale = 1 / sum;
    for (std::int64_t j = 0; j < c.count; ++j) row.first[j] = row.second[2 * j] = row.second[2 * j + 1] = 0;
    for (std::int64_t s = 0; s + 1 < c.count; ++s) {
        const double width = c.knots[s + 1] - c.knots[s], inverse = row.inverse[s];
        const double *here = row.beyond.data() + 3 * s, *next = here + 3;
        const double p = (here[0] - next[0]) * scale;
        const double pa = (here[1] - next[1] - width * next[0]) * (scale * inverse);
        const double paa = (here[2] - next[2] - width * (2 * next[1] + width * next[0])) * (scale * inverse * inverse);
        row.first[s] += p - pa;
        row.first[s + 1] += pa;
        row.second[2 * s] += p - 2 * pa + paa;
        row.second[2 * s + 1] += pa - paa;
        row.second[2 * s + 2] += paa;
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

CALIBRANT_INLINE void split_place(const Curve& c, const double* places, std::int64_t i, std::int64_t& station, double& share) {
    station = static_cast<std::int64_t>(places[i]);
    if (station > c.stations - 2) station = c.stations > 1 ? c.stations - 2 : 0;
    share = c.stations > 1 ? places[i] - static_cast<double>(station) : 0.0;
}

template <class T>
CALIBRANT_INLINE void sums_chunk(const T* logits, const std::int64_t* labels, const double* weights, const double* places,
                                 std::int64_t from, std::int64_t to, std::int64_t k, const Curve& c, double* out) {
    Row row(k, c);
    const std::int64_t count = c.count, stride = c.parameters();
    double *first = row.first.data(), *second = row.second.data();
    for (std::int64_t i = from; i < to; ++i) {
        const double w = weights ? weights[i] : 1.0;
        if (w == 0) continue;
        std::int64_t station;
        double share;
        split_place(c, places, i, station, share);
        bend(c, station, share, row);
        const double best = scores_row(logits + i * k, k, c, row), chosen = row.p[labels[i]];
        const double sum = exponentials(k, best, row);
        moments(c, k, sum, row);
        double* fold = out + (i % kCurveFolds) * curve_width(c);
        fold[0] += w * (std::log(sum) + best - chosen);
        double* hessian = fold + 1 + stride + station * count * (stride + 1);
        add_covariance(count, w * (1 - share) * (1 - share), first, second, stride, hessian);
        add_covariance(count, w * share * (1 - share), first, second, stride, hessian + count);
        add_covariance(count, w * share * share, first, second, stride, hessian + count * (stride + 1));
        const double t = row.t[labels[i]];
        std::int64_t s = 0;
        while (s + 2 < count && t >= c.knots[s + 1]) ++s;
        const double a = (t - c.knots[s]) * row.inverse[s];
        first[s] -= 1 - a;
        first[s + 1] -= a;
        double* gradient = fold + 1 + station * count;
        for (std::int64_t j = 0; j < count; ++j) gradient[j] += w * (1 - share) * first[j];
        if (share != 0)
            for (std::int64_t j = 0; j < count; ++j) gradient[count + j] += w * share * first[j];
    }
}

template <class T>
CALIBRANT_INLINE void apply_block(const T* logits, const double* places, std::int64_t from, std::int64_t to, std::int64_t k,
                                  const Curve& c, T* out) {
    Row row(k, c);
    for (std::int64_t i = from; i < to; ++i) {
        std::int64_t station;
        double share;
        split_place(c, places, i, station, share);
        bend(c, station, share, row);
        const double scale = 1 / exponentials(k, scores_row(logits + i * k, k, c, row), row);
        T* p = out + i * k;
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) p[j] = static_cast<T>(row.p[j] * scale);
    }
}

CALIBRANT_CLONES void sums_chunk_of(const float* logits, const std::int64_t* labels, const double* weights,
                                    const double* places, std::int64_t from, std::int64_t to, std::int64_t k,
                                    const Curve& c, double* out) {
    sums_chunk(logits, labels, weights, places, from, to, k, c, out);
}
CALIBRANT_CLONES void sums_chunk_of(const double* logits, const std::int64_t* labels, const double* weights,
                                    const double* places, std::int64_t from, std::int64_t to, std::int64_t k,
                                    const Curve& c, double* out) {
    sums_chunk(logits, labels, weights, places, from, to, k, c, out);
}
CALIBRANT_CLONES void apply_block_of(const float* logits, const double* places, std::int64_t from, std::int64_t to,
                                     std::int64_t k, const Curve& c, float* out) {
    apply_block(logits, places, from, to, k, c, out);
}
CALIBRANT_CLONES void apply_block_of(const double* logits, const double* places, std::int64_t from, std::int64_t to,
                                     std::int64_t k, const Curve& c, double* out) {
    apply_block(logits, places, from, to, k, c, out);
}

}  // namespace

template <class T>
void curve_sums(const T* logits, const std::int64_t* labels, const double* weights, const double* places, std::int64_t n,
                std::int64_t k, const Curve& curve, int threads, double* out) {
    const std::int64_t width = kCurveFolds * curve_width(curve);
    const std::int64_t rows = std::max(kFewest, (n + kMostChunks - 1) / kMostChunks), chunks = (n + rows - 1) / rows;
    std::vector<double> parts(chunks * width);
    constexpr std::int64_t one_each = 65536;  // so wide a "row" makes every chunk a block of its own
    for_blocks(chunks, one_each, threads, [&](std::int64_t b, std::int64_t, std::int64_t) {
        sums_chunk_of(logits, labels, weights, places, b * rows, std::min(n, (b + 1) * rows), k, curve,
                      parts.data() + b * width);
    });
    for (std::int64_t j = 0; j < width; ++j) out[j] = 0;
    for (std::int64_t i = 0; i < chunks * width; ++i) out[i % width] += parts[i];
}

template <class T>
void curve_apply(const T* logits, const double* places, std::int64_t n, std::int64_t k, const Curve& curve, int threads,
                 T* out) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        apply_block_of(logits, places, from, to, k, curve, out);
    });
}

#define CALIBRANT_INSTANTIATE(T)                                                                                       \
    template void curve_sums<T>(const T*, const std::int64_t*, const double*, const double*, std::int64_t,            \
                                std::int64_t, const Curve&, int, double*);                                            \
    template void curve_apply<T>(const T*, const double*, std::int64_t, std::int64_t, const Curve&, int, T*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
