#include "lift.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kChunk = 512;  // float lanes are emptied into doubles this often
constexpr std::int64_t kGlance = 64;  // scores are looked through for large ones only in stretches that have one
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

// out = exp(z - top) and their sum, for a chunk, in the precision of out; with Skips the term at one place is 0.
template <bool Skips, class T, class E>
CALIBRANT_INLINE E exponentials_in(const T* z, std::int32_t size, T top, std::int32_t place, E* out) {
    E sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int32_t j = 0; j < size; ++j) {
        const E e = exp_nonpositive(static_cast<E>(z[j]) - static_cast<E>(top));
        out[j] = Skips && j == place ? E(0) : e;
        sum += out[j];
    }
    return sum;
}

// out = exp(z - max), 0 in the place of the first largest; returns the sum without that one, which keeps its digits.
template <class T, class E>
CALIBRANT_INLINE double exponentials(const T* z, std::int64_t k, T top, E* out, std::int64_t& place) {
    place = first_place(z, k, top);
    double sum = 0;
    for (std::int64_t from = 0; from < k; from += kChunk) {
        const auto size = static_cast<std::int32_t>(std::min(kChunk, k - from));
        const auto skipped = static_cast<std::int32_t>(std::clamp<std::int64_t>(place - from, -1, size));
        sum += skipped >= 0 && skipped < size ? exponentials_in<true>(z + from, size, top, skipped, out + from)
                                              : exponentials_in<false>(z + from, size, top, skipped, out + from);
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

// The log-odds of the large ones of a stretch, which are few: d - log(S - exp d).
template <class T, class E>
CALIBRANT_INLINE void log_odds_of_large(const T* z, const E* e, std::int64_t from, std::int64_t to, T top, double total,
                                        E large, double most, T* out) {
    constexpr std::int64_t step = 16;
    for (std::int64_t s = from; s < to; s += step) {
        const std::int64_t stop = std::min(s + step, to);
        int candidates = 0;
#pragma omp simd reduction(+ : candidates)
        for (std::int64_t j = s; j < stop; ++j) candidates += e[j] >= large;
        if (candidates == 0) continue;
        for (std::int64_t j = s; j < stop; ++j) {
            if (e[j] < large) continue;
            const double d = static_cast<double>(z[j]) - top;
            out[j] = static_cast<T>(d == 0.0 ? most : std::min(d - log_positive(total - e[j]), most));
        }
    }
}

// log p = d - log S dominates and is monotone; -log(1 - p) adds less than its rounding could undo. `e` has room for k numbers
// in the precision that all is computed in. Where only one class is asked for, the others far from it are left out.
template <class T, class E>
CALIBRANT_INLINE void log_odds_of(const T* z, std::int64_t k, E* e, T* out, std::int64_t only = kEvery) {
    const T top = row_max(z, k);
    std::int64_t place;
    const double rest = exponentials(z, k, top, e, place), total = 1.0 + rest;
    const double most = -(rest > 1e-30 ? std::log(rest) : log_rest(z, k, top, place));  // the first largest's
    const E log_total = static_cast<E>(std::log1p(rest)), inverse = static_cast<E>(1.0 / total);
    const E large = static_cast<E>(kLarge<T> * total);
    const std::int64_t begin = only == kEvery ? 0 : only / kGlance * kGlance, end = only == kEvery ? k : only + 1;
    for (std::int64_t from = begin; from < end; from += kGlance) {
        const std::int64_t to = std::min(from + kGlance, k);
        int exact = 0;
#pragma omp simd reduction(+ : exact)
        for (std::int64_t j = from; j < to; ++j) {
            const E own = e[j];
            exact += own >= large;
            const E series = minus_log1m(own >= large ? E(0) : own * inverse);
            out[j] = static_cast<T>((static_cast<E>(z[j]) - static_cast<E>(top)) - log_total + series);
        }
        if (exact) log_odds_of_large(z, e, from, to, top, total, large, most, out);
    }
    out[place] = static_cast<T>(most);
}

// Of two classes they are one difference, without an exponential: a score on an edge is on it everywhere.
template <class T>
CALIBRANT_INLINE void log_odds_of_two(const T* z, T* out) {
    out[1] = z[1] - z[0];
    out[0] = -out[1];
}

// Rows of the same scores in another order have the same log-odds then, and fall on the same side of an edge.
template <class T>
CALIBRANT_INLINE void to_grid(std::int64_t k, T* odds, std::int64_t only) {
    if (only != kEvery) odds += only, k = 1;
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) odds[j] = static_cast<T>(on_grid(odds[j]));
}

template <class T>
CALIBRANT_INLINE void softmax_row(const T* z, std::int64_t k, T* out) {
    std::int64_t place;
    const double rest = exponentials(z, k, row_max(z, k), out, place);
    out[place] = 1;
    const T inverse = static_cast<T>(1.0 / (1.0 + rest));
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) out[j] *= inverse;
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
            softmax_row(z, k, q);
        }
        if (keep_top) lift_top(z, k, q);
    }
}

// Room of this thread for the exponentials of a row.
template <class E>
E* room_for(std::int64_t k) {
    thread_local std::vector<E> room;
    if (static_cast<std::int64_t>(room.size()) < k) room.resize(k);
    return room.data();
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
    log_odds_of(z, k, room_for<double>(k), out, only);
    to_grid(k, out, only);
}
CALIBRANT_CLONES void log_odds_row(const double* z, std::int64_t k, double* out, std::int64_t only) {
    if (k == 2) return log_odds_of_two(z, out);
    log_odds_of(z, k, room_for<double>(k), out, only);
    to_grid(k, out, only);
}

CALIBRANT_CLONES void near_log_odds_row(const float* z, std::int64_t k, float* out) {
    k == 2 ? log_odds_of_two(z, out) : log_odds_of(z, k, room_for<float>(k), out);
}
CALIBRANT_CLONES void near_log_odds_row(const double* z, std::int64_t k, double* out) {
    k == 2 ? log_odds_of_two(z, out) : log_odds_of(z, k, room_for<double>(k), out);
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
