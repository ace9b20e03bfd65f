#include "regression.hpp"

#include <algorithm>

#include "interrupt.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kRun = 512;  // cells whose numbers stay in the first-level cache

CALIBRANT_INLINE double dot(const double* a, const double* b, std::int64_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

// Adds a run of cells; those of feature j begin at x + j * stride.
CALIBRANT_CLONES void add_run(const double* x, std::int64_t stride, const double* w, const double* o, const double* theta,
                              std::int64_t n, std::int64_t d, double* out) {
    double eta[kRun] = {}, residual[kRun], curvature[kRun], pulled[kRun], loss = 0;
    for (std::int64_t j = 0; j < d; ++j) {
#pragma omp simd
        for (std::int64_t i = 0; i < n; ++i) eta[i] += theta[j] * x[j * stride + i];
    }
#pragma omp simd reduction(+ : loss)
    for (std::int64_t i = 0; i < n; ++i) {
        const bool up = eta[i] > 0;
        const double small = exp_nonpositive(up ? -eta[i] : eta[i]), share = 1 / (1 + small);
        const double p = up ? share : small * share;
        loss += w[i] * ((up ? eta[i] : 0.0) + log1p_unit(small)) - o[i] * eta[i];
        residual[i] = w[i] * p - o[i];
        curvature[i] = w[i] * (share * (small * share));
    }
    out[0] += loss;
    for (std::int64_t j = 0; j < d; ++j) {
        out[1 + j] += dot(residual, x + j * stride, n);
#pragma omp simd
        for (std::int64_t i = 0; i < n; ++i) pulled[i] = curvature[i] * x[j * stride + i];
        for (std::int64_t l = 0; l <= j; ++l) out[1 + d + j * d + l] += dot(pulled, x + l * stride, n);
    }
}

}  // namespace

void cell_regression(const double* features, const double* weights, const double* outcomes, const double* theta,
                     std::int64_t n, std::int64_t d, double* out) {
    std::fill(out, out + 1 + d + d * d, 0.0);
    for (std::int64_t from = 0; from < n; from += kRun) {
        if (from % (64 * kRun) == 0) Watch::look();
        add_run(features + from, n, weights + from, outcomes + from, theta, std::min(kRun, n - from), d, out);
    }
    double* hessian = out + 1 + d;
    for (std::int64_t j = 0; j < d; ++j)
        for (std::int64_t l = j + 1; l < d; ++l) hessian[j * d + l] = hessian[l * d + j];
}

}  // namespace calibrant
