#include "lift.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

template <class E>
constexpr std::int64_t kPad = 64 / sizeof(E);  // what the widest registers hold: rows are filled up to a multiple of it

// Above this probability -log(1 - p) is taken without its series, whose error is below 6e-17, or 6e-14 if it is rounded to
// single precision.
template <class T>
constexpr double kLarge = sizeof(T) == 4 ? 0.06 : 0.03;

// -log(1 - p) for 0 <= p < kLarge.
CALIBRANT_INLINE float minus_log1m(float p) {  // the terms left out are below 8e-9
    return p * (1.0f + p * (0.5f + p * (1.0f / 3 + p * (0.25f + p * 0.2f))));
}
CALIBRANT_INLINE double minus_log1m(double p) {
    double s = 1.0 / 9;
    s = s * p + 1.0 / 8;
    s = s * p + 1.0 / 7;
    s = s * p + 1.0 / 6;
    s = s * p + 1.0 / 5;
    s = s * p + 1.0 / 4;
    s = s * p + 1.0 / 3;
    s = s * p + 0.5;
    s = s * p + 1.0;
    return s * p;
}

template <class E>
CALIBRANT_INLINE std::int64_t filled_up(std::int64_t k) {
    return (k + kPad<E> - 1) / kPad<E> * kPad<E>;
}

// d = z - top in whole vectors, where -inf stands for the first largest and behind the row. Returns the place of that one.
template <class T, class E>
CALIBRANT_INLINE std::int64_t differences(const T* z, std::int64_t k, T top, E* d) {
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) d[j] = static_cast<E>(z[j]) - static_cast<E>(top);
    const std::int64_t place = first_place(z, k, top);
    std::fill(d + k, d + filled_up<E>(k), -std::numeric_limits<E>::infinity());
    d[place] = -std::numeric_limits<E>::infinity();
    return place;
}

// out = exp d and their sum; that of the first largest, which is not among them, would take digits from it.
template <class E>
CALIBRANT_INLINE double exponentials(const E* d, std::int64_t padded, E* out) {
    constexpr std::int64_t lanes = kPad<E>, steps = 32 * lanes;  // so often float lanes are emptied into doubles
    double sum = 0;
    for (std::int64_t from = 0; from < padded; from += steps) {
        E sums[lanes] = {};
        for (std::int64_t j = from; j < std::min(from + steps, padded); j += lanes) {
#pragma omp simd
            for (std::int64_t l = 0; l < lanes; ++l) {
                out[j + l] = exp_nonpositive(d[j + l]);
                sums[l] += out[j + l];
            }
        }
        sum += folded_sum<lanes>(sums);
    }
    return sum;
}

// log of the sum of exp(z - top) over all but one place, where the sum itself is too small for its exponents.
template <class T>
double log_rest(const T* z, std::int64_t k, T top, std::int64_t place) {
    double second = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::int64_t j = 0; j < k; ++j)
        if (j != place) second = std::max(second, static_cast<double>(z[j]));
    if (std::isinf(second)) return second;
    for (std::int64_t j = 0; j < k; ++j)
        if (j != place) sum += std::exp(z[j] - second);
    return second - top + std::log(sum);
}

// The log-odds of the large ones of a vector, d - log(S - exp d); a second largest is as the first.
template <class E>
CALIBRANT_INLINE void log_odds_of_large(const E* d, const E* e, double total, E large, double most, E* odds) {
    constexpr std::int64_t lanes = kPad<E>;
    double exact[lanes];
#pragma omp simd
    for (std::int64_t l = 0; l < lanes; ++l) {
        const double own = static_cast<double>(d[l]) - log_positive(total - static_cast<double>(e[l]));
        exact[l] = d[l] == E(0) || own > most ? most : own;
    }
#pragma omp simd
    for (std::int64_t l = 0; l < lanes; ++l) odds[l] = e[l] >= large ? static_cast<E>(exact[l]) : odds[l];
}

// log p = d - log S dominates and is monotone; -log(1 - p) adds less than its rounding could undo. `room` is for the
// differences and the exponentials, in the precision that all is computed in. Where only one class is asked for, the others
// far from it are left out.
template <bool Grid, class T, class E>
CALIBRANT_INLINE void log_odds_of(const T* z, std::int64_t k, E* room, T* out, std::int64_t only = kEvery) {
    constexpr std::int64_t lanes = kPad<E>;
    const std::int64_t padded = filled_up<E>(k);
    E *d = room, *e = room + padded;
    const T top = row_max(z, k);
    const std::int64_t place = differences(z, k, top, d);
    const double rest = exponentials(d, padded, e), total = 1.0 + rest;
    const double most = -(rest > 1e-30 ? log_positive(rest) : log_rest(z, k, top, place));  // the first largest's
    const E log_total = static_cast<E>(log_positive(total)), inverse = static_cast<E>(1.0 / total);
    const E large = static_cast<E>(kLarge<T> * total);
    const std::int64_t begin = only == kEvery ? 0 : only / lanes * lanes, end = only == kEvery ? k : only + 1;
    for (std::int64_t from = begin; from < end; from += lanes) {  // odds take the place of the differences
        E odds[lanes];
        int exact = 0;
#pragma omp simd reduction(+ : exact)
        for (std::int64_t l = 0; l < lanes; ++l) {
            const E own = e[from + l];
            exact += own >= large;
            odds[l] = d[from + l] - log_total + minus_log1m(own >= large ? E(0) : own * inverse);
        }
        if (exact) log_odds_of_large(d + from, e + from, total, large, most, odds);
        for (std::int64_t l = 0; l < lanes; ++l) d[from + l] = odds[l];
    }
    d[place] = static_cast<E>(most);
#pragma omp simd
    for (std::int64_t j = begin; j < std::min(end, k); ++j) {
        const T rounded = static_cast<T>(d[j]);
        out[j] = Grid ? static_cast<T>(on_grid(rounded)) : rounded;
    }
}

// Of two classes they are one difference, without an exponential: a score on an edge is on it everywhere.
template <class T>
CALIBRANT_INLINE void log_odds_of_two(const T* z, T* out) {
    out[1] = z[1] - z[0];
    out[0] = -out[1];
}

template <class T>
CALIBRANT_INLINE void softmax_row(const T* z, std::int64_t k, T* room, T* out) {
    T *d = room, *e = room + filled_up<T>(k);
    const std::int64_t place = differences(z, k, row_max(z, k), d);
    const T inverse = static_cast<T>(1.0 / (1.0 + exponentials(d, filled_up<T>(k), e)));
    e[place] = 1;
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) out[j] = e[j] * inverse;
}

template <class T>
CALIBRANT_INLINE void lift_top(const T* z, std::int64_t k, T* q) {
    const T top = row_max(z, k);
    T below = -1, above = 2;
    for (std::int64_t j = 0; j < k; ++j) {
        if (z[j] == top)
            above = std::min(above, q[j]);
        else
            below = std::max(below, q[j]);
    }
    if (above > below) return;
    const T least = std::nextafter(below, std::numeric_limits<T>::infinity());
    for (std::int64_t j = 0; j < k; ++j)
        if (z[j] == top) q[j] = std::max(q[j], least);
}

// Room of this thread for two rows filled up.
template <class E>
E* room_for(std::int64_t k) {
    thread_local std::vector<E> room;
    const std::size_t size = 2 * filled_up<E>(k);
    if (room.size() < size) room.resize(size);
    return room.data();
}

template <class T>
CALIBRANT_INLINE void normalize_block(const T* logits, std::int64_t from, std::int64_t to, std::int64_t k, bool keep_top,
                                      T* marginals) {
    for (std::int64_t i = from; i < to; ++i) {
        T* q = marginals + i * k;
        const T* z = logits + i * k;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t j = 0; j < k; ++j) sum += q[j];
        if (sum > 0) {
            const double inverse = 1.0 / sum;
#pragma omp simd
            for (std::int64_t j = 0; j < k; ++j) q[j] = static_cast<T>(q[j] * inverse);
        } else {
            softmax_row(z, k, room_for<T>(k), q);
        }
        if (keep_top) lift_top(z, k, q);
    }
}

CALIBRANT_CLONES void normalize_block_of(const float* logits, std::int64_t from, std::int64_t to, std::int64_t k,
                                         bool keep_top, float* marginals) {
    normalize_block(logits, from, to, k, keep_top, marginals);
}
CALIBRANT_CLONES void normalize_block_of(const double* logits, std::int64_t from, std::int64_t to, std::int64_t k,
                                         bool keep_top, double* marginals) {
    normalize_block(logits, from, to, k, keep_top, marginals);
}

}  // namespace

CALIBRANT_CLONES void log_odds_row(const float* z, std::int64_t k, float* out, std::int64_t only) {
    if (k == 2) return log_odds_of_two(z, out);
    log_odds_of<true>(z, k, room_for<double>(k), out, only);
}
CALIBRANT_CLONES void log_odds_row(const double* z, std::int64_t k, double* out, std::int64_t only) {
    if (k == 2) return log_odds_of_two(z, out);
    log_odds_of<true>(z, k, room_for<double>(k), out, only);
}

CALIBRANT_CLONES void near_log_odds_row(const float* z, std::int64_t k, float* out) {
    k == 2 ? log_odds_of_two(z, out) : log_odds_of<false>(z, k, room_for<float>(k), out);
}
CALIBRANT_CLONES void near_log_odds_row(const double* z, std::int64_t k, double* out) {
    k == 2 ? log_odds_of_two(z, out) : log_odds_of<false>(z, k, room_for<double>(k), out);
}

template <class T>
void log_odds(const T* logits, std::int64_t n, std::int64_t k, int threads, T* out) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        for (std::int64_t i = from; i < to; ++i) log_odds_row(logits + i * k, k, out + i * k);
    });
}

template <class T>
void normalize_rows(const T* logits, std::int64_t n, std::int64_t k, bool keep_top, int threads, T* marginals) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        normalize_block_of(logits, from, to, k, keep_top, marginals);
    });
}

template void log_odds<float>(const float*, std::int64_t, std::int64_t, int, float*);
template void log_odds<double>(const double*, std::int64_t, std::int64_t, int, double*);
template void normalize_rows<float>(const float*, std::int64_t, std::int64_t, bool, int, float*);
template void normalize_rows<double>(const double*, std::int64_t, std::int64_t, bool, int, double*);

}  // namespace calibrant
