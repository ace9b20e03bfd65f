#include "temperature.hpp"

#include <cmath>
#include <vector>

#include "lanes.hpp"
#include "parallel.hpp"
#include "simd.hpp"
#include "tempered.hpp"

namespace calibrant {
namespace {

// Moments of e = beta * (z - max) under q = exp(e): sum q, sum q e, sum q e^2, and the same for q^2. They are of the order
// of one whatever the scale of z: a sum of (z - max)^2 for logits of 1e30 would leave single precision.
template <class T, bool squares>
struct Moments {
    static constexpr std::int64_t kCount = squares ? 6 : 3;
    static constexpr bool kPlain = false;
    alignas(64) T sum[kCount][kLanes<T>];

    CALIBRANT_INLINE void add(const T* exponent, const T*) {
#pragma omp simd
        for (std::int64_t l = 0; l < kLanes<T>; ++l) {
            const T e = exponent[l], q = exp_clamped(e), qe = q * e;
            sum[0][l] += q;
            sum[1][l] += qe;
            sum[2][l] += qe * e;
            if constexpr (squares) {
                sum[3][l] += q * q;
                sum[4][l] += q * qe;
                sum[5][l] += qe * qe;
            }
        }
    }
};

// log of the sum of the q, of which the largest is 1; NaN where beta is no number.
CALIBRANT_INLINE double log_sum(double s0) { return s0 >= 1.0 ? log_positive(s0) : NAN; }

template <class T>
CALIBRANT_INLINE void nll_rows(const Rows<T, Moments<T, false>>& rows, double (*out)[kLanes<T>]) {
#pragma omp simd
    for (std::int64_t r = 0; r < kLanes<T>; ++r) {
        const double s0 = rows.sums[0][r], mean = rows.sums[1][r] / s0, beta = rows.beta[r], ey = beta * rows.dy[r];
        out[0][r] = log_sum(s0) - ey;
        out[1][r] = (mean - ey) / beta;
        out[2][r] = (rows.sums[2][r] / s0 - mean * mean) / beta / beta;
    }
}

template <class T>
CALIBRANT_INLINE void brier_rows(const Rows<T, Moments<T, true>>& rows, double (*out)[kLanes<T>]) {
    alignas(64) double qy[kLanes<T>];
    exponentials<kLanes<T>>(rows.beta, rows.dy, qy);
#pragma omp simd
    for (std::int64_t r = 0; r < kLanes<T>; ++r) {
        const double s0 = rows.sums[0][r], mean = rows.sums[1][r] / s0, beta = rows.beta[r];
        const double variance = rows.sums[2][r] / s0 - mean * mean;
        const double py = qy[r] / s0, cy = beta * rows.dy[r] - mean, square = s0 * s0;
        const double p2 = rows.sums[3][r] / square, p2e = rows.sums[4][r] / square;  // sum p^2, sum p^2 e
        const double p2c = p2e - mean * p2;                                          // sum p^2 (e - mean)
        const double p2cc = rows.sums[5][r] / square - 2 * mean * p2e + mean * mean * p2;  // sum p^2 (e - mean)^2
        out[0][r] = p2 - 2 * py + 1;
        out[1][r] = (2 * p2c - times(2 * py, cy)) / beta;
        out[2][r] = (4 * p2cc - 2 * variance * p2 - times(2 * py, cy * cy - variance)) / beta / beta;
    }
}

// Adds rows to their groups' sums.
template <class T, bool brier>
CALIBRANT_INLINE void sums_block(const T* logits, const std::int64_t* labels, const double* weights,
                                 const std::int64_t* places, std::int64_t from, std::int64_t to, std::int64_t k,
                                 const double* betas, double* out) {
    constexpr std::int64_t lanes = kLanes<T>;
    Rows<T, Moments<T, brier>> rows{};
    alignas(64) double terms[kSums][lanes];
    for (std::int64_t i = from; i < to; i += lanes) {
        const std::int64_t count = to - i < lanes ? to - i : lanes;
        for (std::int64_t r = 0; r < lanes; ++r) rows.beta[r] = betas[places && r < count ? places[i + r] : 0];
        rows.look(logits + i * k, labels + i, count, k);
        if constexpr (brier)
            brier_rows<T>(rows, terms);
        else
            nll_rows<T>(rows, terms);
        for (std::int64_t r = 0; r < count; ++r) {
            const double weight = weights ? weights[i + r] : 1.0;
            if (weight == 0.0) continue;
            double* target = out + (places ? places[i + r] : 0) * kSums;
            for (std::int64_t s = 0; s < kSums; ++s) target[s] += weight * terms[s][r];
        }
    }
}

template <class T>
CALIBRANT_INLINE void sums_block(const T* logits, const std::int64_t* labels, const double* weights,
                                 const std::int64_t* places, std::int64_t from, std::int64_t to, std::int64_t k,
                                 const double* betas, Loss loss, double* out) {
    if (loss == Loss::nll)
        sums_block<T, false>(logits, labels, weights, places, from, to, k, betas, out);
    else
        sums_block<T, true>(logits, labels, weights, places, from, to, k, betas, out);
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
    constexpr std::int64_t lanes = kLanes<T>;
    Rows<T, Moments<T, false>> rows{};
    alignas(64) double terms[3][lanes], qy[lanes];
    for (std::int64_t r = 0; r < lanes; ++r) rows.beta[r] = beta;
    for (std::int64_t i = from; i < to; i += lanes) {
        const std::int64_t count = to - i < lanes ? to - i : lanes;
        rows.look(logits + i * k, labels + i, count, k);
        exponentials<lanes>(rows.beta, rows.dy, qy);
#pragma omp simd
        for (std::int64_t r = 0; r < lanes; ++r) {
            const double s0 = rows.sums[0][r], mean = rows.sums[1][r] / s0, py = qy[r] / s0;
            const double cy = beta * rows.dy[r] - mean;
            terms[0][r] = py;
            terms[1][r] = times(py, cy);
            terms[2][r] = times(py, cy * cy + cy - (rows.sums[2][r] / s0 - mean * mean));
        }
        for (std::int64_t r = 0; r < count; ++r)
            for (std::int64_t s = 0; s < 3; ++s) out[3 * (i + r) + s] = terms[s][r];
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

}  // namespace

template <class T>
void temperature_sums(const T* logits, const std::int64_t* labels, const double* weights, const std::int64_t* places,
                      std::int64_t n, std::int64_t k, const double* betas, std::int64_t groups, Loss loss, int threads,
                      double* out) {
    const std::int64_t width = groups * kSums;
    std::vector<double> parts(block_count(n, k) * width);
    for_blocks(n, k, threads, [&](std::int64_t b, std::int64_t from, std::int64_t to) {
        sums_block_of(logits, labels, weights, places, from, to, k, betas, loss, parts.data() + b * width);
    }, kReadersRun);
    add_up(parts, width, out);
}

template <class T>
void temperature_rows(const T* logits, const std::int64_t* labels, std::int64_t n, std::int64_t k, double beta,
                      int threads, double* out) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        rows_block_of(logits, labels, from, to, k, beta, out);
    }, kReadersRun);
}

#define CALIBRANT_INSTANTIATE(T)                                                                                       \
    template void temperature_sums<T>(const T*, const std::int64_t*, const double*, const std::int64_t*, std::int64_t, \
                                      std::int64_t, const double*, std::int64_t, Loss, int, double*);                 \
    template void temperature_rows<T>(const T*, const std::int64_t*, std::int64_t, std::int64_t, double, int, double*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
