#include "answers.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

// log(x) of any x >= 0; zero gives -inf.
template <class T>
CALIBRANT_INLINE T log_of(T x) {
    constexpr bool single = sizeof(T) == 4;
    constexpr T least = single ? T(1.17549435e-38) : T(2.2250738585072014e-308);  // the least normal number
    constexpr T lift = single ? T(16777216.0) : T(9007199254740992.0);             // 2^24 and 2^53 make the others normal
    constexpr T fall = (single ? T(24) : T(53)) * T(0.69314718055994530942);
    const bool small = x < least;
    const T log = log_positive(small ? x * lift : x) - (small ? fall : T(0));
    return x == 0 ? -T(INFINITY) : log;
}

// Raises the zeros of a row of logarithms.
template <class T>
CALIBRANT_INLINE void raise_zeros(const T* z, std::int64_t k, T depth, T* logs) {
    T smallest = INFINITY;
    for (std::int64_t j = 0; j < k; ++j) smallest = logs[j] > -INFINITY && logs[j] < smallest ? logs[j] : smallest;
    const T floor = std::min(row_max(logs, k) - depth, smallest);
    for (std::int64_t j = 0; j < k; ++j)
        if (logs[j] == -INFINITY && (!z || z[j] > -INFINITY)) logs[j] = floor;
}

template <class T>
CALIBRANT_INLINE void tops_block(const T* logits, std::int64_t from, std::int64_t to, std::int64_t k, T* out) {
    for (std::int64_t i = from; i < to; ++i) {
        const T* z = logits + i * k;
        T* p = out + i * k;
        const T top = row_max(z, k), most = row_max(p, k);
        if (first_place(z, k, top) == first_place(p, k, most)) continue;
        const T above = std::nextafter(most, T(2));
        for (std::int64_t j = 0; j < k; ++j) p[j] = z[j] == top ? above : p[j];
    }
}

template <class T>
CALIBRANT_INLINE void logs_block(const T* p, const T* logits, std::int64_t from, std::int64_t to, std::int64_t k, Handing h,
                                 T* out) {
    const T share = static_cast<T>(h.share), level = static_cast<T>(h.level), depth = static_cast<T>(h.depth);
#pragma omp simd
    for (std::int64_t j = from * k; j < to * k; ++j) out[j] = share * p[j] + level;
    if (h.keeps_top) tops_block(logits, from, to, k, out);
    int zeros = 0;
#pragma omp simd reduction(| : zeros)
    for (std::int64_t j = from * k; j < to * k; ++j) {
        zeros |= out[j] == 0;
        out[j] = log_of(out[j]);
    }
    for (std::int64_t i = from; zeros && i < to; ++i)
        raise_zeros(logits ? logits + i * k : nullptr, k, depth, out + i * k);
}

template <class T>
CALIBRANT_INLINE T lowest_block(const T* values, std::int64_t from, std::int64_t to, std::int64_t k) {
    T least = INFINITY;
#pragma omp simd reduction(min : least)
    for (std::int64_t j = from * k; j < to * k; ++j) least = values[j] < least ? values[j] : least;
    return least;
}

#define CALIBRANT_ANSWER_CLONES(T)                                                                                      \
    CALIBRANT_CLONES void logs_block_of(const T* p, const T* logits, std::int64_t from, std::int64_t to,               \
                                        std::int64_t k, Handing handing, T* out) {                                     \
        logs_block(p, logits, from, to, k, handing, out);                                                              \
    }                                                                                                                  \
    CALIBRANT_CLONES void tops_block_of(const T* logits, std::int64_t from, std::int64_t to, std::int64_t k, T* out) { \
        tops_block(logits, from, to, k, out);                                                                          \
    }                                                                                                                  \
    CALIBRANT_CLONES T lowest_block_of(const T* values, std::int64_t from, std::int64_t to, std::int64_t k) {          \
        return lowest_block(values, from, to, k);                                                                      \
    }
CALIBRANT_ANSWER_CLONES(float)
CALIBRANT_ANSWER_CLONES(double)

}  // namespace

template <class T>
void finite_logs(const T* p, const T* logits, std::int64_t n, std::int64_t k, Handing handing, int threads, T* out) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        logs_block_of(p, logits, from, to, k, handing, out);
    });
}

template <class T>
void keep_top(const T* logits, std::int64_t n, std::int64_t k, int threads, T* p) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        tops_block_of(logits, from, to, k, p);
    });
}

template <class T>
double lowest(const T* values, std::int64_t n, std::int64_t k, int threads) {
    std::vector<T> parts(block_count(n, k));
    for_blocks(
        n, k, threads,
        [&](std::int64_t b, std::int64_t from, std::int64_t to) { parts[b] = lowest_block_of(values, from, to, k); },
        kReadersRun);
    return parts.empty() ? INFINITY : *std::min_element(parts.begin(), parts.end());
}

#define CALIBRANT_INSTANTIATE(T)                                                                                        \
    template void finite_logs<T>(const T*, const T*, std::int64_t, std::int64_t, Handing, int, T*);                    \
    template void keep_top<T>(const T*, std::int64_t, std::int64_t, int, T*);                                          \
    template double lowest<T>(const T*, std::int64_t, std::int64_t, int);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
