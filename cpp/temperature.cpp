#include "temperature.hpp"

#include <cmath>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

// Moments of e = beta * (z - max) under q = exp(e): s0 = sum q, s1 = sum q e, s2 = sum q e^2, and the same for q^2. They
// are of the order of one whatever the scale of z: a sum of d^2 for logits of 1e30 would leave single precision.
struct Moments {
    double s0 = 0, s1 = 0, s2 = 0, t0 = 0, t1 = 0, t2 = 0;
};

constexpr std::int64_t kChunk = 512;  // float lanes are emptied into doubles this often

// beta * d where exp of it is not 0, and else the largest value where it is: 0 times it is then 0.
template <class T>
CALIBRANT_INLINE T exponent_of(T beta, T d) {
    const T e = beta * d;
    return e < least_exponent<T> ? least_exponent<T> : e;
}

template <bool squares, class T>
CALIBRANT_INLINE Moments row_moments(const T* z, std::int64_t k, T top, T beta) {
    Moments m;
    for (std::int64_t from = 0; from < k; from += kChunk) {
        const std::int64_t to = from + kChunk < k ? from + kChunk : k;
        T s0 = 0, s1 = 0, s2 = 0, t0 = 0, t1 = 0, t2 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, t0, t1, t2)
        for (std::int64_t j = from; j < to; ++j) {
            const T e = exponent_of(beta, z[j] - top);
            const T q = exp_clamped(e);
            const T qe = q * e;
            s0 += q;
            s1 += qe;
            s2 += qe * e;
            if constexpr (squares) {
                t0 += q * q;
                t1 += q * qe;
                t2 += qe * qe;
            }
        }
        m.s0 += s0, m.s1 += s1, m.s2 += s2, m.t0 += t0, m.t1 += t1, m.t2 += t2;
    }
    return m;
}

// p * x where a probability of 0 makes nothing of even an infinite x.
CALIBRANT_INLINE double times(double p, double x) { return p == 0.0 ? 0.0 : p * x; }

template <class T>
CALIBRANT_INLINE void nll_row(const T* z, std::int64_t y, std::int64_t k, double beta, double weight, double* out) {
    const T top = row_max(z, k);
    const Moments m = row_moments<false>(z, k, top, static_cast<T>(beta));
    const double ey = beta * (static_cast<double>(z[y]) - top), mean = m.s1 / m.s0, unit = weight / beta;
    out[0] += weight * (std::log(m.s0) - ey);
    out[1] += unit * (mean - ey);
    out[2] += unit * (m.s2 / m.s0 - mean * mean) / beta;
}

template <class T>
CALIBRANT_INLINE void brier_row(const T* z, std::int64_t y, std::int64_t k, double beta, double weight, double* out) {
    const T top = row_max(z, k);
    const Moments m = row_moments<true>(z, k, top, static_cast<T>(beta));
    const double ey = beta * (static_cast<double>(z[y]) - top), mean = m.s1 / m.s0;
    const double variance = m.s2 / m.s0 - mean * mean;
    const double py = std::exp(ey) / m.s0, cy = ey - mean, square = m.s0 * m.s0, unit = weight / beta;
    const double p2 = m.t0 / square;                                                            // sum p^2
    const double p2c = m.t1 / square - mean * p2;                                               // sum p^2 (e - mean)
    const double p2cc = m.t2 / square - 2 * mean * (m.t1 / square) + mean * mean * p2;          // sum p^2 (e - mean)^2
    out[0] += weight * (p2 - 2 * py + 1);
    out[1] += unit * (2 * p2c - times(2 * py, cy));
    out[2] += unit * (4 * p2cc - 2 * variance * p2 - times(2 * py, cy * cy - variance)) / beta;
}

template <class T>
CALIBRANT_INLINE void sums_block(const T* logits, const std::int64_t* labels, const double* weights,
                                 const std::int64_t* places, std::int64_t from, std::int64_t to, std::int64_t k,
                                 const double* betas, Loss loss, double* out) {
    for (std::int64_t i = from; i < to; ++i) {
        const double weight = weights ? weights[i] : 1.0;
        if (weight == 0.0) continue;
        const std::int64_t group = places ? places[i] : 0;
        double* target = out + group * kSums;
        if (loss == Loss::nll)
            nll_row(logits + i * k, labels[i], k, betas[group], weight, target);
        else
            brier_row(logits + i * k, labels[i], k, betas[group], weight, target);
    }
}

CALIBRANT_CLONES void sums_block_of(const float* logits, const std::int64_t* labels, const double* weights,
                                    const std::int64_t* places, std::int64_t from, std::int64_t to, std::int64_t k,
                                    const double* betas, Loss loss, double* out) {
    sums_block(logits, labels, weights, places, from, to, k, betas, loss, out);
}
CALIBRANT_CLONES void sums_block_of(const double* logits, const std::int64_t* labels, const double* weights,
                                    const std::int64_t* places, std::int64_t from, std::int64_t to, std::int64_t k,
                                    const double* betas, Loss loss, double* out) {
    sums_block(logits, labels, weights, places, from, to, k, betas, loss, out);
}

template <class T>
CALIBRANT_INLINE void rows_block(const T* logits, const std::int64_t* labels, std::int64_t from, std::int64_t to,
                                 std::int64_t k, double beta, double* out) {
    for (std::int64_t i = from; i < to; ++i) {
        const T* z = logits + i * k;
        const T top = row_max(z, k);
        const Moments m = row_moments<false>(z, k, top, static_cast<T>(beta));
        const double ey = beta * (static_cast<double>(z[labels[i]]) - top), mean = m.s1 / m.s0;
        const double py = std::exp(ey) / m.s0, cy = ey - mean;
        out[3 * i] = py;
        out[3 * i + 1] = times(py, cy);
        out[3 * i + 2] = times(py, cy * cy + cy - (m.s2 / m.s0 - mean * mean));
    }
}

CALIBRANT_CLONES void rows_block_of(const float* logits, const std::int64_t* labels, std::int64_t from, std::int64_t to,
                                    std::int64_t k, double beta, double* out) {
    rows_block(logits, labels, from, to, k, beta, out);
}
CALIBRANT_CLONES void rows_block_of(const double* logits, const std::int64_t* labels, std::int64_t from, std::int64_t to,
                                    std::int64_t k, double beta, double* out) {
    rows_block(logits, labels, from, to, k, beta, out);
}

template <class T>
CALIBRANT_INLINE void ensemble_row(const T* z, std::int64_t y, std::int64_t k, double beta, double weight, double* out) {
    const T top = row_max(z, k);
    const T b = static_cast<T>(beta);
    double s0 = 0, s1 = 0, s2 = 0, t0 = 0, t1 = 0, t2 = 0, r0 = 0, u0 = 0, v0 = 0, v1 = 0, v2 = 0;
    for (std::int64_t from = 0; from < k; from += kChunk) {
        const std::int64_t to = from + kChunk < k ? from + kChunk : k;
        T a0 = 0, a1 = 0, a2 = 0, c0 = 0, c1 = 0, c2 = 0, e0 = 0, f0 = 0, g0 = 0, g1 = 0, g2 = 0;
#pragma omp simd reduction(+ : a0, a1, a2, c0, c1, c2, e0, f0, g0, g1, g2)
        for (std::int64_t j = from; j < to; ++j) {
            const T d = z[j] - top, e = exponent_of(b, d);
            const T q = exp_clamped(e), r = exp_nonpositive(d);
            const T qe = q * e;
            a0 += q, a1 += qe, a2 += qe * e;
            c0 += q * q, c1 += q * qe, c2 += qe * qe;
            e0 += r, f0 += r * r;
            g0 += q * r, g1 += qe * r, g2 += qe * e * r;
        }
        s0 += a0, s1 += a1, s2 += a2, t0 += c0, t1 += c1, t2 += c2, r0 += e0, u0 += f0, v0 += g0, v1 += g1, v2 += g2;
    }
    const double mean = s1 / s0, variance = s2 / s0 - mean * mean, square = s0 * s0, cross = s0 * r0;
    const double dy = static_cast<double>(z[y]) - top, ay = std::exp(beta * dy) / s0, cy = beta * dy - mean;
    const double aa = t0 / square, aac = t1 / square - mean * aa;
    const double aacc = t2 / square - 2 * mean * (t1 / square) + mean * mean * aa;
    const double ab = v0 / cross, abc = v1 / cross - mean * ab;
    const double abcc = v2 / cross - 2 * mean * (v1 / cross) + mean * mean * ab;
    out[0] += weight * aa;
    out[1] += weight * aac;
    out[2] += weight * ab;
    out[3] += weight * abc;
    out[4] += weight * ay;
    out[5] += weight * times(ay, cy);
    out[6] += weight * std::exp(dy) / r0;
    out[7] += weight * u0 / (r0 * r0);
    out[8] += weight * (2 * aacc - variance * aa + aac);
    out[9] += weight * (abcc - variance * ab + abc);
    out[10] += weight * times(ay, cy * cy + cy - variance);
}

template <class T>
CALIBRANT_INLINE void ensemble_block(const T* logits, const std::int64_t* labels, const double* weights, std::int64_t from,
                                     std::int64_t to, std::int64_t k, double beta, double* out) {
    for (std::int64_t i = from; i < to; ++i) {
        const double weight = weights ? weights[i] : 1.0;
        if (weight != 0.0) ensemble_row(logits + i * k, labels[i], k, beta, weight, out);
    }
}

CALIBRANT_CLONES void ensemble_block_of(const float* logits, const std::int64_t* labels, const double* weights,
                                        std::int64_t from, std::int64_t to, std::int64_t k, double beta, double* out) {
    ensemble_block(logits, labels, weights, from, to, k, beta, out);
}
CALIBRANT_CLONES void ensemble_block_of(const double* logits, const std::int64_t* labels, const double* weights,
                                        std::int64_t from, std::int64_t to, std::int64_t k, double beta, double* out) {
    ensemble_block(logits, labels, weights, from, to, k, beta, out);
}

template <class T>
CALIBRANT_INLINE T exp_row(const T* z, std::int64_t k, T top, T beta, T* out) {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < k; ++j) {
        out[j] = exp_nonpositive(beta * (z[j] - top));
        sum += out[j];
    }
    return sum;
}

template <class T>
CALIBRANT_INLINE void apply_block(const T* logits, std::int64_t from, std::int64_t to, std::int64_t k, double beta,
                                  const double* w, T* out) {
    const bool plain = w[1] != 0.0 || w[2] != 0.0;
    std::vector<T> scratch(w[1] != 0.0 ? k : 0);
    for (std::int64_t i = from; i < to; ++i) {
        const T* z = logits + i * k;
        T* p = out + i * k;
        const T top = row_max(z, k);
        const T scale = static_cast<T>(w[0] / exp_row(z, k, top, static_cast<T>(beta), p));
        if (!plain) {
#pragma omp simd
            for (std::int64_t j = 0; j < k; ++j) p[j] *= scale;
            continue;
        }
        T other = 0;
        if (w[1] != 0.0) other = static_cast<T>(w[1] / exp_row(z, k, top, T(1), scratch.data()));
        const T uniform = static_cast<T>(w[2] / k);
        const T* q = w[1] != 0.0 ? scratch.data() : p;
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) p[j] = p[j] * scale + q[j] * other + uniform;
    }
}

CALIBRANT_CLONES void apply_block_of(const float* logits, std::int64_t from, std::int64_t to, std::int64_t k, double beta,
                                     const double* w, float* out) {
    apply_block(logits, from, to, k, beta, w, out);
}
CALIBRANT_CLONES void apply_block_of(const double* logits, std::int64_t from, std::int64_t to, std::int64_t k, double beta,
                                     const double* w, double* out) {
    apply_block(logits, from, to, k, beta, w, out);
}

// Adds the blocks' partial sums in the order of the blocks.
void add_up(const std::vector<double>& parts, std::int64_t width, double* out) {
    for (std::int64_t j = 0; j < width; ++j) out[j] = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) out[i % width] += parts[i];
}

}  // namespace

template <class T>
void temperature_sums(const T* logits, const std::int64_t* labels, const double* weights, const std::int64_t* places,
                      std::int64_t n, std::int64_t k, const double* betas, std::int64_t groups, Loss loss, int threads,
                      double* out) {
    const std::int64_t width = groups * kSums;
    std::vector<double> parts(block_count(n, k) * width);
    for_blocks(n, k, threads, [&](std::int64_t b, std::int64_t from, std::int64_t to) {
        sums_block_of(logits, labels, weights, places, from, to, k, betas, loss, parts.data() + b * width);
    });
    add_up(parts, width, out);
}

template <class T>
void temperature_rows(const T* logits, const std::int64_t* labels, std::int64_t n, std::int64_t k, double beta,
                      int threads, double* out) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        rows_block_of(logits, labels, from, to, k, beta, out);
    });
}

template <class T>
void ensemble_sums(const T* logits, const std::int64_t* labels, const double* weights, std::int64_t n, std::int64_t k,
                   double beta, int threads, double* out) {
    std::vector<double> parts(block_count(n, k) * kEnsembleSums);
    for_blocks(n, k, threads, [&](std::int64_t b, std::int64_t from, std::int64_t to) {
        ensemble_block_of(logits, labels, weights, from, to, k, beta, parts.data() + b * kEnsembleSums);
    });
    add_up(parts, kEnsembleSums, out);
}

template <class T>
void ensemble_apply(const T* logits, std::int64_t n, std::int64_t k, double beta, const double* w, int threads, T* out) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        apply_block_of(logits, from, to, k, beta, w, out);
    });
}

#define CALIBRANT_INSTANTIATE(T)                                                                                       \
    template void temperature_sums<T>(const T*, const std::int64_t*, const double*, const std::int64_t*, std::int64_t, \
                                      std::int64_t, const double*, std::int64_t, Loss, int, double*);                 \
    template void temperature_rows<T>(const T*, const std::int64_t*, std::int64_t, std::int64_t, double, int, double*); \
    template void ensemble_sums<T>(const T*, const std::int64_t*, const double*, std::int64_t, std::int64_t, double,  \
                                   int, double*);                                                                     \
    template void ensemble_apply<T>(const T*, std::int64_t, std::int64_t, double, const double*, int, T*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
