// Portable building blocks of the kernels: run-time CPU choice and an exponential that compilers vectorise.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

// A function marked CALIBRANT_CLONES is compiled for several instruction sets and the loader picks one (GNU ifunc).
// Elsewhere (ARM, macOS, musl) the baseline is compiled alone. Helpers it calls must be inlined into every clone,
// which is what CALIBRANT_INLINE is for.
#if !defined(CALIBRANT_ONE_VERSION) && defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define CALIBRANT_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define CALIBRANT_CLONES
#endif
#define CALIBRANT_INLINE inline __attribute__((always_inline))

namespace calibrant {

// The nearest multiple of 2^-36 of a number below 32,000; larger ones stay as they are.
CALIBRANT_INLINE double on_grid(double x) {
    constexpr double magic = 98304.0;  // 1.5 * 2^16: its last bit is 2^-36
    return (x + magic) - magic;
}

// exp(x) for x <= 0, without branches: x = n ln 2 + r with |r| <= ln(2)/2, exp(r) by a polynomial (its terms in pairs: a
// processor waits for long chains), 2^n by its bits. Relative error below 2 ulp for what a normal number can hold; where n
// is below the least exponent of these (and for -inf) the answer is exactly 0.
// `exp_clamped` is the same for x that is at least `least_exponent` already, where the answer is 0.
template <class T>
constexpr T least_exponent = sizeof(T) == 4 ? T(-88) : T(-709);  // n = -127 or -1023: the bits of 2^n are those of 0

CALIBRANT_INLINE float exp_clamped(float safe) {
    constexpr float magic = 12582912.0f;  // 1.5 * 2^23: adding it leaves round(x) in the low mantissa bits
    const float shifted = safe * 1.44269504088896341f + magic;
    const float n = shifted - magic;
    float r = safe - n * 0.693145751953125f;
    r -= n * 1.428606765330187e-06f;
    const float square = r * r;
    const float low = 1.6666665459e-1f * r + 5.0000001201e-1f, middle = 8.3334519073e-3f * r + 4.1665795894e-2f;
    const float high = 1.9875691500e-4f * r + 1.3981999507e-3f;
    const float p = ((high * square + middle) * square + low) * square + r + 1.0f;
    std::uint32_t bits;
    std::memcpy(&bits, &shifted, 4);
    bits = (bits + 127) << 23;
    float scale;
    std::memcpy(&scale, &bits, 4);
    return p * scale;
}

CALIBRANT_INLINE double exp_clamped(double safe) {
    constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52
    const double shifted = safe * 1.4426950408889634074 + magic;
    const double n = shifted - magic;
    double r = safe - n * 6.93147180369123816490e-01;
    r -= n * 1.90821492927058770002e-10;
    const double r2 = r * r, r4 = r2 * r2;
    const double a = (r * (1.0 / 120.0) + 1.0 / 24.0) * r2 + (r * (1.0 / 6.0) + 0.5);
    const double b = (r * (1.0 / 362880.0) + 1.0 / 40320.0) * r2 + (r * (1.0 / 5040.0) + 1.0 / 720.0);
    const double c = (r * (1.0 / 6227020800.0) + 1.0 / 479001600.0) * r2 + (r * (1.0 / 39916800.0) + 1.0 / 3628800.0);
    const double p = ((c * r4 + b) * r4 + a) * r2 + r + 1.0;
    std::uint64_t bits;
    std::memcpy(&bits, &shifted, 8);
    bits = (bits + 1023) << 52;
    double scale;
    std::memcpy(&scale, &bits, 8);
    return p * scale;
}

template <class T>
CALIBRANT_INLINE T exp_nonpositive(T x) {
    return exp_clamped(x < least_exponent<T> ? least_exponent<T> : x);
}

// log(1 + e) for 0 <= e <= 1 by the series of 2 artanh(f / (2 + f)), 1 + f being 1 + e or half of it.
template <class T>
CALIBRANT_INLINE T log1p_unit(T e) {
    const bool upper = e > T(0.41421356237309503);
    const T f = upper ? T(0.5) * (e - T(1)) : e;
    const T s = f / (T(2) + f), q = s * s;
    T sum = T(1.0 / 9);
    if constexpr (sizeof(T) == 8) {
        sum = 1.0 / 21;
        sum = sum * q + 1.0 / 19, sum = sum * q + 1.0 / 17, sum = sum * q + 1.0 / 15;
        sum = sum * q + 1.0 / 13, sum = sum * q + 1.0 / 11, sum = sum * q + 1.0 / 9;
    }
    sum = sum * q + T(1.0 / 7), sum = sum * q + T(1.0 / 5), sum = sum * q + T(1.0 / 3), sum = sum * q + T(1);
    return T(2) * s * sum + (upper ? T(0.69314718055994530942) : T(0));
}

template <class T>
CALIBRANT_INLINE T softplus(T x) {
    return (x > T(0) ? x : T(0)) + log1p_unit(exp_nonpositive(x > T(0) ? -x : x));
}

// log(x) of a positive normal number: x = 2^n m with m in [sqrt(1/2), sqrt(2)), log m by the series of 2 artanh.
CALIBRANT_INLINE double log_positive(double x) {
    constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52: its low mantissa bits make an integer a double
    std::uint64_t bits, shifted;  // unsigned, as what is no positive number may overflow here
    std::memcpy(&bits, &x, 8);
    const std::int64_t n = static_cast<std::int64_t>(bits - 0x3fe6a09e667f3bcdu) >> 52;  // the bits of sqrt(1/2)
    bits -= static_cast<std::uint64_t>(n) << 52;
    double m, exponent = magic;
    std::memcpy(&m, &bits, 8);
    std::memcpy(&shifted, &exponent, 8);
    shifted += static_cast<std::uint64_t>(n);
    std::memcpy(&exponent, &shifted, 8);
    const double s = (m - 1.0) / (m + 1.0), q = s * s, q2 = q * q;
    const double low = (1.0 / 7 * q + 1.0 / 5) * q2 + (1.0 / 3 * q + 1.0);
    const double high = (1.0 / 15 * q + 1.0 / 13) * q2 + (1.0 / 11 * q + 1.0 / 9);
    const double last = (1.0 / 19 * q + 1.0 / 17);
    return (exponent - magic) * 0.69314718055994530942 + 2.0 * s * ((last * (q2 * q2) + high) * (q2 * q2) + low);
}

CALIBRANT_INLINE float log_positive(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, 4);
    const std::int32_t n = static_cast<std::int32_t>(bits - 0x3f3504f3u) >> 23;  // the bits of sqrt(1/2)
    bits -= static_cast<std::uint32_t>(n) << 23;
    float m;
    std::memcpy(&m, &bits, 4);
    const float s = (m - 1.0f) / (m + 1.0f), q = s * s, exponent = static_cast<float>(n);
    const float series = (1.0f / 9 * q + 1.0f / 7) * (q * q) + (1.0f / 5 * q + 1.0f / 3);
    return exponent * 0.693359375f + (exponent * -2.12194440e-4f + 2.0f * s * (series * q + 1.0f));  // ln 2 in two parts
}

// The sum and the largest of `count` values, a power of two, by halves: compilers make vectors of that.
template <std::int64_t count, class T>
CALIBRANT_INLINE T folded_sum(const T* values) {
    if constexpr (count == 1) {
        return values[0];
    } else {
        T sums[count / 2];
#pragma omp simd
        for (std::int64_t l = 0; l < count / 2; ++l) sums[l] = values[l] + values[l + count / 2];
        return folded_sum<count / 2>(sums);
    }
}

template <std::int64_t count, class T>
CALIBRANT_INLINE T folded_max(const T* values) {
    if constexpr (count == 1) {
        return values[0];
    } else {
        const T* upper = values + count / 2;
        T tops[count / 2];
#pragma omp simd
        for (std::int64_t l = 0; l < count / 2; ++l) tops[l] = values[l] > upper[l] ? values[l] : upper[l];
        return folded_max<count / 2>(tops);
    }
}

// The largest of at least `width` scores; the last window overlaps the one before, which a maximum does not mind.
template <std::int64_t width, class T>
CALIBRANT_INLINE T window_max(const T* z, std::int64_t k) {
    T tops[width];
    for (std::int64_t l = 0; l < width; ++l) tops[l] = z[l];
    for (std::int64_t j = width; j + width <= k; j += width) {
#pragma omp simd
        for (std::int64_t l = 0; l < width; ++l) tops[l] = z[j + l] > tops[l] ? z[j + l] : tops[l];
    }
    const T* last = z + k - width;
#pragma omp simd
    for (std::int64_t l = 0; l < width; ++l) tops[l] = last[l] > tops[l] ? last[l] : tops[l];
    return folded_max<width>(tops);
}

template <class T>
CALIBRANT_INLINE T row_max(const T* z, std::int64_t k) {
    constexpr std::int64_t wide = 64 / sizeof(T), narrow = 16 / sizeof(T);  // the largest and the smallest registers
    if (k >= wide) return window_max<wide>(z, k);
    if (k >= narrow) return window_max<narrow>(z, k);
    T top = z[0];
    for (std::int64_t j = 1; j < k; ++j) top = z[j] > top ? z[j] : top;
    return top;
}

// The first place of a value that is in the row; the last place where it is not, as in a row with a NaN.
template <class T>
CALIBRANT_INLINE std::int64_t first_place(const T* z, std::int64_t k, T value) {
    constexpr std::int64_t glance = 64;
    std::int64_t place = 0;
    for (int found = 0; place + glance <= k; place += glance) {
#pragma omp simd reduction(+ : found)
        for (std::int64_t j = place; j < place + glance; ++j) found += z[j] == value;
        if (found) break;
    }
    while (place < k - 1 && z[place] != value) ++place;
    return place < k ? place : k - 1;
}

}  // namespace calibrant
