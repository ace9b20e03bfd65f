#include "curve.hpp"

#include <cmath>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kChunks = 64;  // partial sums are large here: few of them, whatever the number of rows

// Room for one row: t, the segment of each class, where in the segment it lies, and its probability.
struct Row {
    std::vector<double> t, place, p, values, slopes, low, high;
    std::vector<std::int64_t> segment;
    Row(std::int64_t k, const Curve& c)
        : t(k), place(k), p(k), values(c.count), slopes(c.count), low(c.count), high(c.count), segment(k) {}
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

// The row's own values, slopes, and the range of each segment (the last one is open).
CALIBRANT_INLINE void bend(const Curve& c, std::int64_t station, double share, Row& row) {
    const double* v = c.values + station * c.count;
    const double* next = station + 1 < c.stations ? v + c.count : v;
    for (std::int64_t j = 0; j < c.count; ++j) row.values[j] = (1 - share) * v[j] + share * next[j];
    for (std::int64_t j = 0; j + 1 < c.count; ++j) {
        row.slopes[j] = (row.values[j + 1] - row.values[j]) / (c.knots[j + 1] - c.knots[j]);
        row.low[j] = row.values[j] < row.values[j + 1] ? row.values[j] : row.values[j + 1];
        row.high[j] = row.values[j] < row.values[j + 1] ? row.values[j + 1] : row.values[j];
    }
    row.low[c.count - 2] = -INFINITY;
    row.high[c.count - 2] = INFINITY;
}

// Fills row.segment and row.p with the unnormalised probabilities exp(v - max v); returns their sum and max v.
template <class T>
CALIBRANT_INLINE double curve_row(const T* z, std::int64_t k, const Curve& c, Row& row, double& largest) {
    double* t = row.t.data();
    double* p = row.p.data();
    std::int64_t* segment = row.segment.data();
    surprises(z, k, c.beta, t);
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) segment[j] = 0;
    for (std::int64_t knot = 1; knot + 1 < c.count; ++knot) {
        const double at = c.knots[knot];
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) segment[j] += t[j] >= at;
    }
    const double *knots = c.knots, *values = row.values.data(), *slopes = row.slopes.data();
    const double *low = row.low.data(), *high = row.high.data();
    double best = -INFINITY;
    for (std::int64_t j = 0; j < k; ++j) {
        const std::int64_t s = segment[j];
        double f = values[s] + slopes[s] * (t[j] - knots[s]);
        f = f < low[s] ? low[s] : f;
        f = f > high[s] ? high[s] : f;
        p[j] = t[j] == INFINITY ? -INFINITY : f;
        best = p[j] > best ? p[j] : best;
    }
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < k; ++j) {
        p[j] = exp_nonpositive(p[j] - best);
        sum += p[j];
    }
    largest = best;
    return sum;
}

CALIBRANT_INLINE double within(const Curve& c, double t, std::int64_t s) {
    return (t - c.knots[s]) / (c.knots[s + 1] - c.knots[s]);
}

// First and second moments under p of the hat functions at the knots; second[j] holds (j, j) and (j, j + 1).
CALIBRANT_INLINE void moments(const Curve& c, const Row& row, std::int64_t k, double sum, double* first, double* second) {
    for (std::int64_t j = 0; j < c.count; ++j) first[j] = second[2 * j] = second[2 * j + 1] = 0;
    for (std::int64_t j = 0; j < k; ++j) {
        if (row.p[j] == 0) continue;
        const std::int64_t s = row.segment[j];
        const double a = within(c, row.t[j], s), p = row.p[j] / sum, pa = p * a, paa = pa * a;
        first[s] += p - pa;
        first[s + 1] += pa;
        second[2 * s] += p - 2 * pa + paa;
        second[2 * s + 1] += pa - paa;
        second[2 * s + 2] += paa;
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
    std::vector<double> first(c.count), second(2 * c.count + 2);
    const std::int64_t count = c.count, stride = c.parameters();
    for (std::int64_t i = from; i < to; ++i) {
        const double w = weights ? weights[i] : 1.0;
        if (w == 0) continue;
        std::int64_t station;
        double share, largest;
        split_place(c, places, i, station, share);
        bend(c, station, share, row);
        const double sum = curve_row(logits + i * k, k, c, row, largest);
        moments(c, row, k, sum, first.data(), second.data());
        const std::int64_t y = labels[i], s = row.segment[y];
        const double a = within(c, row.t[y], s);
        double* fold = out + (i % kCurveFolds) * curve_width(c);
        fold[0] += w * (std::log(sum) + largest - (row.values[s] + row.slopes[s] * (row.t[y] - c.knots[s])));
        double* hessian = fold + 1 + stride + station * count * (stride + 1);
        add_covariance(count, w * (1 - share) * (1 - share), first.data(), second.data(), stride, hessian);
        if (c.stations > 1) {
            add_covariance(count, w * share * (1 - share), first.data(), second.data(), stride, hessian + count);
            add_covariance(count, w * share * share, first.data(), second.data(), stride, hessian + count * (stride + 1));
        }
        first[s] -= 1 - a;
        first[s + 1] -= a;
        double* gradient = fold + 1 + station * count;
        for (std::int64_t j = 0; j < count; ++j) gradient[j] += w * (1 - share) * first[j];
        if (c.stations > 1)
            for (std::int64_t j = 0; j < count; ++j) gradient[count + j] += w * share * first[j];
    }
}

template <class T>
CALIBRANT_INLINE void apply_block(const T* logits, const double* places, std::int64_t from, std::int64_t to, std::int64_t k,
                                  const Curve& c, T* out) {
    Row row(k, c);
    for (std::int64_t i = from; i < to; ++i) {
        std::int64_t station;
        double share, largest;
        split_place(c, places, i, station, share);
        bend(c, station, share, row);
        const double scale = 1 / curve_row(logits + i * k, k, c, row, largest);
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
    const std::int64_t width = kCurveFolds * curve_width(curve), rows = (n + kChunks - 1) / kChunks;
    const std::int64_t chunks = rows ? (n + rows - 1) / rows : 0;
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
