#include "logistic.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "lift.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kParts = 16;   // partial sums, whatever the number of threads
constexpr std::int64_t kSpan = 4096;  // scores answered at a time where all share their coefficients
constexpr double kFar = 1e30;         // an infinite score times a coefficient of zero is zero

// Adds the terms of one row to sums of every column: `sums` holds logistic_width rows of m columns, c three.
template <bool TwoSlopes, class T>
CALIBRANT_INLINE void add_row(const T* odds, std::int64_t m, const double* c, const double* target, double weight,
                              double* sums) {
    const double *c0 = c, *c1 = c + m, *c2 = c + 2 * m;
#pragma omp simd
    for (std::int64_t j = 0; j < m; ++j) {
        const double given = odds[j], x = given < -kFar ? -kFar : given > kFar ? kFar : given;
        const double v = TwoSlopes ? softplus(x) : 0.0, u = x - v;
        const double margin = TwoSlopes ? c0[j] * u + c1[j] * v + c2[j] : c0[j] * x + c2[j];
        const double e = exp_nonpositive(margin > 0 ? -margin : margin), part = 1 / (1 + e);
        const double loss = (margin > 0 ? margin : 0.0) + log1p_unit(e) - target[j] * margin;
        const double s = weight * ((margin > 0 ? part : e * part) - target[j]), h = weight * e * part * part;
        sums[j] += weight * loss;
        sums[m + j] += s * u;
        if (TwoSlopes) {
            sums[2 * m + j] += s * v, sums[3 * m + j] += s;
            sums[4 * m + j] += h * u * u, sums[5 * m + j] += h * u * v, sums[6 * m + j] += h * u;
            sums[7 * m + j] += h * v * v, sums[8 * m + j] += h * v, sums[9 * m + j] += h;
        } else {
            sums[2 * m + j] += s;
            sums[3 * m + j] += h * x * x, sums[4 * m + j] += h * x, sums[5 * m + j] += h;
        }
    }
}

template <class T>
CALIBRANT_INLINE void answer(const T* odds, std::int64_t m, const T* c, bool two_slopes, T* out) {
    const T *c0 = c, *c1 = c + m, *c2 = c + 2 * m;
#pragma omp simd
    for (std::int64_t j = 0; j < m; ++j) {
        const T x = odds[j] < T(-kFar) ? T(-kFar) : odds[j] > T(kFar) ? T(kFar) : odds[j];
        const T v = two_slopes ? softplus(x) : T(0);
        const T margin = two_slopes ? c0[j] * (x - v) + c1[j] * v + c2[j] : c0[j] * x + c2[j];
        const T e = exp_nonpositive(margin > T(0) ? -margin : margin);
        const T p = (margin > T(0) ? T(1) : e) / (T(1) + e);
        out[j] = p < std::numeric_limits<T>::min() ? std::numeric_limits<T>::min() : p;  // a sigmoid is never zero
    }
}

#define CALIBRANT_LOGISTIC_ROWS(T)                                                                                        \
    CALIBRANT_CLONES void add_row_of(const T* odds, std::int64_t m, const double* c, const double* target, double weight, \
                                     bool two_slopes, double* sums) {                                                     \
        if (two_slopes)                                                                                                   \
            add_row<true>(odds, m, c, target, weight, sums);                                                              \
        else                                                                                                              \
            add_row<false>(odds, m, c, target, weight, sums);                                                             \
    }                                                                                                                     \
    CALIBRANT_CLONES void answer_of(const T* odds, std::int64_t m, const T* c, bool two_slopes, T* out) {                 \
        if (two_slopes)                                                                                                   \
            answer(odds, m, c, true, out);                                                                                \
        else                                                                                                              \
            answer(odds, m, c, false, out);                                                                               \
    }
CALIBRANT_LOGISTIC_ROWS(float)
CALIBRANT_LOGISTIC_ROWS(double)
#undef CALIBRANT_LOGISTIC_ROWS

// The classes that count, with coefficients and targets of their own: what add_row walks along.
struct Columns {
    std::vector<std::int64_t> places, where;  // class of each column; column of each class, or -1
    std::vector<double> c, negative;
    std::int64_t count() const { return static_cast<std::int64_t>(places.size()); }

    Columns(const std::int64_t* groups, std::int64_t k, const double* coefficients, const double* targets) : where(k, -1) {
        for (std::int64_t j = 0; j < k; ++j)
            if (groups[j] >= 0) where[j] = count(), places.push_back(j);
        for (int i = 0; i < 3; ++i)
            for (std::int64_t j : places) c.push_back(coefficients[3 * groups[j] + i]);
        for (std::int64_t j : places) negative.push_back(targets[2 * groups[j]]);
    }
};

// Coefficients of every column, three rows of `columns`, and whether any has two slopes.
template <class T>
bool spread(const double* coefficients, std::int64_t tables, std::int64_t columns, std::vector<T>& c) {
    bool two_slopes = false;
    c.resize(3 * columns);
    for (std::int64_t j = 0; j < columns; ++j) {
        const double* own = coefficients + (tables == 1 ? 0 : 3 * j);
        for (int i = 0; i < 3; ++i) c[i * columns + j] = static_cast<T>(own[i]);
        two_slopes = two_slopes || own[0] != own[1];
    }
    return two_slopes;
}

}  // namespace

template <class T>
void logistic_sums(const T* logits, const std::int64_t* labels, const double* weights, std::int64_t n, std::int64_t k,
                   const std::int64_t* groups, std::int64_t group_count, const double* coefficients, const double* targets,
                   bool two_slopes, int threads, double* out) {
    const Columns columns(groups, k, coefficients, targets);
    const std::int64_t m = columns.count(), width = logistic_width(two_slopes), parts = std::min(n, kParts);
    std::vector<double> sums(parts * width * m, 0.0);
    for_blocks(parts, 1 << 16, threads, [&](std::int64_t part, std::int64_t, std::int64_t) {
        std::vector<T> odds(k);
        std::vector<double> target = columns.negative;
        for (std::int64_t i = n * part / parts; i < n * (part + 1) / parts; ++i) {
            if (i % 256 == 0) Watch::look();
            const double weight = weights ? weights[i] : 1.0;
            if (weight == 0) continue;
            near_log_odds_row(logits + i * k, k, odds.data());
            if (m < k)  // places rise, so that nothing is overwritten before it is read
                for (std::int64_t j = 0; j < m; ++j) odds[j] = odds[columns.places[j]];
            const std::int64_t y = columns.where[labels[i]];
            if (y >= 0) target[y] = targets[2 * groups[labels[i]] + 1];
            add_row_of(odds.data(), m, columns.c.data(), target.data(), weight, two_slopes, sums.data() + part * width * m);
            if (y >= 0) target[y] = columns.negative[y];
        }
    });
    std::fill(out, out + group_count * width, 0.0);
    for (std::int64_t part = 0; part < parts; ++part)
        for (std::int64_t s = 0; s < width; ++s)
            for (std::int64_t j = 0; j < m; ++j)
                out[groups[columns.places[j]] * width + s] += sums[(part * width + s) * m + j];
}

template <class T>
void logistic_apply(const T* odds, std::int64_t n, std::int64_t k, const double* coefficients, std::int64_t tables,
                    int threads, T* out) {
    const std::int64_t span = tables == 1 ? std::min(kSpan, n * k) : k, spans = span ? (n * k + span - 1) / span : 0;
    std::vector<T> c;
    const bool two_slopes = spread(coefficients, tables, span, c);
    for_blocks(spans, span, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        for (std::int64_t s = from; s < to; ++s) {
            const std::int64_t begin = s * span, count = std::min(span, n * k - begin);
            if (count == span) {
                answer_of(odds + begin, span, c.data(), two_slopes, out + begin);
                continue;
            }
            std::vector<T> rest(span, T(0)), answers(span);
            std::copy(odds + begin, odds + begin + count, rest.begin());
            answer_of(rest.data(), span, c.data(), two_slopes, answers.data());
            std::copy(answers.begin(), answers.begin() + count, out + begin);
        }
    });
}

template <class T>
void logistic_lift(const T* logits, std::int64_t n, std::int64_t k, const double* coefficients, std::int64_t tables,
                   bool normalize, int threads, T* out) {
    std::vector<T> c;
    const bool two_slopes = spread(coefficients, tables, k, c);
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        std::vector<T> odds(k);
        for (std::int64_t i = from; i < to; ++i) {
            std::is_same_v<T, double> ? near_log_odds_row(logits + i * k, k, odds.data())
                                      : log_odds_row(logits + i * k, k, odds.data());
            answer_of(odds.data(), k, c.data(), two_slopes, out + i * k);
        }
        if (normalize) normalize_rows(logits + from * k, to - from, k, false, 1, out + from * k);
    });
}

#define CALIBRANT_LOGISTIC(T)                                                                                              \
    template void logistic_sums<T>(const T*, const std::int64_t*, const double*, std::int64_t, std::int64_t,               \
                                   const std::int64_t*, std::int64_t, const double*, const double*, bool, int, double*);   \
    template void logistic_apply<T>(const T*, std::int64_t, std::int64_t, const double*, std::int64_t, int, T*);           \
    template void logistic_lift<T>(const T*, std::int64_t, std::int64_t, const double*, std::int64_t, bool, int, T*);
CALIBRANT_LOGISTIC(float)
CALIBRANT_LOGISTIC(double)

}  // namespace calibrant
