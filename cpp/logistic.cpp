#include "logistic.hpp"

#include <algorithm>
#include <vector>

#include "lift.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kParts = 16;  // partial sums, whatever the number of threads

// log(1 + e) for 0 <= e <= 1 by the series of 2 artanh(e / (2 + e)).
CALIBRANT_INLINE double log1p_unit(double e) {
    const double s = e / (2 + e), q = s * s;
    double sum = 1.0 / 31;
    sum = sum * q + 1.0 / 29, sum = sum * q + 1.0 / 27, sum = sum * q + 1.0 / 25;
    sum = sum * q + 1.0 / 23, sum = sum * q + 1.0 / 21, sum = sum * q + 1.0 / 19;
    sum = sum * q + 1.0 / 17, sum = sum * q + 1.0 / 15, sum = sum * q + 1.0 / 13;
    sum = sum * q + 1.0 / 11, sum = sum * q + 1.0 / 9, sum = sum * q + 1.0 / 7;
    sum = sum * q + 1.0 / 5, sum = sum * q + 1.0 / 3, sum = sum * q + 1.0;
    return 2 * s * sum;
}

CALIBRANT_INLINE double softplus(double x) {
    return (x > 0 ? x : 0.0) + log1p_unit(exp_nonpositive(x > 0 ? -x : x));
}

// loss and margin's derivative, curvature and features of each pair of a row, into buffers of k doubles.
struct Buffers {
    double *u, *v, *loss, *slope, *curve;
};

template <class T>
CALIBRANT_INLINE void row_terms(const T* odds, std::int64_t k, const double* c0, const double* c1, const double* c2,
                                const double* target, const Buffers& b) {
    double *out_u = b.u, *out_v = b.v, *loss = b.loss, *slope = b.slope, *curve = b.curve;
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) {
        const double x = odds[j], v = softplus(x), u = x - v;
        const double m = c0[j] * u + c1[j] * v + c2[j];
        const double e = exp_nonpositive(m > 0 ? -m : m);
        const double q = (m > 0 ? 1.0 : e) / (1 + e);
        out_u[j] = u;
        out_v[j] = v;
        loss[j] = (m > 0 ? m : 0.0) + log1p_unit(e) - target[j] * m;
        slope[j] = q - target[j];
        curve[j] = e / ((1 + e) * (1 + e));
    }
}
CALIBRANT_CLONES void row_terms_of(const float* odds, std::int64_t k, const double* c0, const double* c1, const double* c2,
                                   const double* target, const Buffers& b) {
    row_terms(odds, k, c0, c1, c2, target, b);
}
CALIBRANT_CLONES void row_terms_of(const double* odds, std::int64_t k, const double* c0, const double* c1, const double* c2,
                                   const double* target, const Buffers& b) {
    row_terms(odds, k, c0, c1, c2, target, b);
}

void add_terms(std::int64_t j, double weight, const Buffers& b, double* sums) {
    const double u = b.u[j], v = b.v[j], s = weight * b.slope[j], h = weight * b.curve[j];
    sums[0] += weight * b.loss[j];
    sums[1] += s * u, sums[2] += s * v, sums[3] += s;
    sums[4] += h * u * u, sums[5] += h * u * v, sums[6] += h * u;
    sums[7] += h * v * v, sums[8] += h * v, sums[9] += h;
}

}  // namespace

template <class T>
void logistic_sums(const T* logits, const std::int64_t* labels, const double* weights, std::int64_t n, std::int64_t k,
                   const std::int64_t* groups, std::int64_t group_count, const double* coefficients, const double* targets,
                   int threads, double* out) {
    const std::int64_t size = group_count * kLogisticSums, parts = std::min(n, kParts);
    std::vector<double> c(3 * k, 0.0), negative(k, 0.0), sums(parts * size, 0.0);
    for (std::int64_t j = 0; j < k; ++j) {
        if (groups[j] < 0) continue;
        for (int i = 0; i < 3; ++i) c[i * k + j] = coefficients[3 * groups[j] + i];
        negative[j] = targets[2 * groups[j]];
    }
    for_blocks(parts, 1 << 16, threads, [&](std::int64_t part, std::int64_t, std::int64_t) {
        std::vector<T> odds(k);
        std::vector<double> memory(5 * k), target = negative;
        const Buffers b{&memory[0], &memory[k], &memory[2 * k], &memory[3 * k], &memory[4 * k]};
        double* own = &sums[part * size];
        for (std::int64_t i = n * part / parts; i < n * (part + 1) / parts; ++i) {
            const double weight = weights ? weights[i] : 1.0;
            if (weight == 0) continue;
            log_odds_row(logits + i * k, k, odds.data());
            const std::int64_t y = labels[i];
            if (groups[y] >= 0) target[y] = targets[2 * groups[y] + 1];
            row_terms_of(odds.data(), k, &c[0], &c[k], &c[2 * k], target.data(), b);
            target[y] = negative[y];
            for (std::int64_t j = 0; j < k; ++j)
                if (groups[j] >= 0) add_terms(j, weight, b, own + groups[j] * kLogisticSums);
        }
    });
    std::fill(out, out + size, 0.0);
    for (std::int64_t part = 0; part < parts; ++part)
        for (std::int64_t i = 0; i < size; ++i) out[i] += sums[part * size + i];
}

template void logistic_sums<float>(const float*, const std::int64_t*, const double*, std::int64_t, std::int64_t,
                                   const std::int64_t*, std::int64_t, const double*, const double*, int, double*);
template void logistic_sums<double>(const double*, const std::int64_t*, const double*, std::int64_t, std::int64_t,
                                    const std::int64_t*, std::int64_t, const double*, const double*, int, double*);

}  // namespace calibrant
