#include <cstdint>
#include <vector>

#include "lanes.hpp"
#include "parallel.hpp"
#include "simd.hpp"
#include "temperature.hpp"
#include "tempered.hpp"

namespace calibrant {
namespace {

// As `Moments` with squares, then with r = exp(z - max): sum r, sum r^2, sum q r, sum q e r, sum q e^2 r.
template <class T>
struct EnsembleMoments {
    static constexpr std::int64_t kCount = 11;
    static constexpr bool kPlain = true;
    alignas(64) T sum[kCount][kLanes<T>];

    CALIBRANT_INLINE void add(const T* exponent, const T* plain) {
#pragma omp simd
        for (std::int64_t l = 0; l < kLanes<T>; ++l) {
            const T e = exponent[l], q = exp_clamped(e), r = exp_clamped(plain[l]), qe = q * e, qr = q * r;
            sum[0][l] += q, sum[1][l] += qe, sum[2][l] += qe * e;
            sum[3][l] += q * q, sum[4][l] += q * qe, sum[5][l] += qe * qe;
            sum[6][l] += r, sum[7][l] += r * r;
            sum[8][l] += qr, sum[9][l] += qr * e, sum[10][l] += qr * e * e;
        }
    }
};

template <class T>
CALIBRANT_INLINE void ensemble_rows(const Rows<T, EnsembleMoments<T>>& rows, double (*out)[kLanes<T>]) {
    alignas(64) double one[kLanes<T>], qy[kLanes<T>], ry[kLanes<T>];
    for (std::int64_t r = 0; r < kLanes<T>; ++r) one[r] = 1;
    exponentials<kLanes<T>>(rows.beta, rows.dy, qy);
    exponentials<kLanes<T>>(one, rows.dy, ry);
#pragma omp simd
    for (std::int64_t r = 0; r < kLanes<T>; ++r) {
        const double s0 = rows.sums[0][r], mean = rows.sums[1][r] / s0, variance = rows.sums[2][r] / s0 - mean * mean;
        const double r0 = rows.sums[6][r], square = s0 * s0, cross = s0 * r0;
        const double ay = qy[r] / s0, cy = rows.beta[r] * rows.dy[r] - mean;
        const double aa = rows.sums[3][r] / square, aae = rows.sums[4][r] / square, aac = aae - mean * aa;
        const double aacc = rows.sums[5][r] / square - 2 * mean * aae + mean * mean * aa;
        const double ab = rows.sums[8][r] / cross, abe = rows.sums[9][r] / cross, abc = abe - mean * ab;
        const double abcc = rows.sums[10][r] / cross - 2 * mean * abe + mean * mean * ab;
        out[0][r] = aa;
        out[1][r] = aac;
        out[2][r] = ab;
        out[3][r] = abc;
        out[4][r] = ay;
        out[5][r] = times(ay, cy);
        out[6][r] = ry[r] / r0;
        out[7][r] = rows.sums[7][r] / (r0 * r0);
        out[8][r] = 2 * aacc - variance * aa + aac;
        out[9][r] = abcc - variance * ab + abc;
        out[10][r] = times(ay, cy * cy + cy - variance);
    }
}

template <class T>
CALIBRANT_INLINE void ensemble_block(const T* logits, const std::int64_t* labels, const double* weights, std::int64_t from,
                                     std::int64_t to, std::int64_t k, double beta, double* out) {
    constexpr std::int64_t lanes = kLanes<T>;
    Rows<T, EnsembleMoments<T>> rows{};
    alignas(64) double terms[kEnsembleSums][lanes];
    for (std::int64_t r = 0; r < lanes; ++r) rows.beta[r] = beta;
    for (std::int64_t i = from; i < to; i += lanes) {
        const std::int64_t count = to - i < lanes ? to - i : lanes;
        rows.look(logits + i * k, labels + i, count, k);
        ensemble_rows<T>(rows, terms);
        for (std::int64_t r = 0; r < count; ++r) {
            const double weight = weights ? weights[i + r] : 1.0;
            if (weight == 0.0) continue;
            for (std::int64_t s = 0; s < kEnsembleSums; ++s) out[s] += weight * terms[s][r];
        }
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

// out[j] = exp(beta * (z[j] - top)) of a row of at least kLanes scores, and their sum. `out` may be z.
template <class T>
CALIBRANT_INLINE T exp_row(const T* z, std::int64_t k, T top, T beta, T* out) {
    constexpr std::int64_t lanes = kLanes<T>;
    const std::int64_t whole = k / lanes * lanes, first = k - lanes;
    alignas(64) T last[lanes], counted[lanes];
    T sum = 0;
#pragma omp simd
    for (std::int64_t l = 0; l < lanes; ++l) last[l] = exp_nonpositive(beta * (z[first + l] - top));
#pragma omp simd
    for (std::int64_t l = 0; l < lanes; ++l) counted[l] = first + l < whole ? T(0) : last[l];
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < whole; ++j) {
        out[j] = exp_nonpositive(beta * (z[j] - top));
        sum += out[j];
    }
    for (std::int64_t l = 0; l < lanes; ++l) out[first + l] = last[l];
    return sum + folded_sum<lanes>(counted);
}

template <class T>
CALIBRANT_INLINE void apply_row(const T* z, std::int64_t k, T beta, const double* w, T* scratch, T* p) {
    const T top = row_max(z, k);
    T other = 0;
    if (w[1] != 0.0) other = static_cast<T>(w[1] / exp_row(z, k, top, T(1), scratch));
    const T scale = static_cast<T>(w[0] / exp_row(z, k, top, beta, p)), uniform = static_cast<T>(w[2] / k);
    const T* q = w[1] != 0.0 ? scratch : p;
    if (w[1] == 0.0 && w[2] == 0.0) {
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) p[j] *= scale;
    } else {
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) p[j] = p[j] * scale + q[j] * other + uniform;
    }
}

// Scores that lie side by side turned into w * softmax(beta * z).
template <class T>
CALIBRANT_INLINE void soften(const T* scores, const T* top, std::int64_t k, T beta, double w, T* out) {
    constexpr std::int64_t lanes = kLanes<T>;
    alignas(64) T betas[lanes], sum[lanes] = {};
    for (std::int64_t r = 0; r < lanes; ++r) betas[r] = beta;
    lane_exponents(scores, k, top, betas, out);
    for (std::int64_t j = 0; j < k; ++j) {
        T* q = out + j * lanes;
#pragma omp simd
        for (std::int64_t r = 0; r < lanes; ++r) q[r] = exp_clamped(q[r]), sum[r] += q[r];
    }
    for (std::int64_t r = 0; r < lanes; ++r) sum[r] = static_cast<T>(w / sum[r]);
    for (std::int64_t j = 0; j < k; ++j)
        for (std::int64_t r = 0; r < lanes; ++r) out[j * lanes + r] *= sum[r];
}

template <class T>
CALIBRANT_INLINE void apply_short(const T* z, std::int64_t rows, std::int64_t k, T beta, const double* w, T* out) {
    constexpr std::int64_t lanes = kLanes<T>;
    alignas(64) T scores[kShort<T> * lanes], p[kShort<T> * lanes], q[kShort<T> * lanes], top[lanes];
    side_by_side(z, rows, k, scores);
    lane_tops(scores, k, top);
    soften(scores, top, k, beta, w[0], p);
    if (w[1] != 0.0) {
        soften(scores, top, k, T(1), w[1], q);
        for (std::int64_t j = 0; j < k * lanes; ++j) p[j] += q[j];
    }
    const T uniform = static_cast<T>(w[2] / k);
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t j = 0; j < k; ++j) out[r * k + j] = p[j * lanes + r] + uniform;
}

template <class T>
CALIBRANT_INLINE void apply_block(const T* logits, std::int64_t from, std::int64_t to, std::int64_t k, double beta,
                                  const double* w, T* out) {
    const T narrow = static_cast<T>(beta);
    if (k <= kShort<T>) {
        for (std::int64_t i = from; i < to; i += kLanes<T>)
            apply_short(logits + i * k, to - i < kLanes<T> ? to - i : kLanes<T>, k, narrow, w, out + i * k);
        return;
    }
    std::vector<T> scratch(w[1] != 0.0 ? k : 0);
    for (std::int64_t i = from; i < to; ++i) apply_row(logits + i * k, k, narrow, w, scratch.data(), out + i * k);
}

CALIBRANT_CLONES void apply_block_of(const float* logits, std::int64_t from, std::int64_t to, std::int64_t k, double beta,
                                     const double* w, float* out) {
    apply_block(logits, from, to, k, beta, w, out);
}
CALIBRANT_CLONES void apply_block_of(const double* logits, std::int64_t from, std::int64_t to, std::int64_t k, double beta,
                                     const double* w, double* out) {
    apply_block(logits, from, to, k, beta, w, out);
}

}  // namespace

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
    template void ensemble_sums<T>(const T*, const std::int64_t*, const double*, std::int64_t, std::int64_t, double,  \
                                   int, double*);                                                                     \
    template void ensemble_apply<T>(const T*, std::int64_t, std::int64_t, double, const double*, int, T*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
