#include "perturbation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

template <class T>
std::int64_t top_of(const T* z, std::int64_t k) {
    return std::max_element(z, z + k) - z;
}

template <class T>
CALIBRANT_INLINE void raise(T* best, const T* noise, T z, std::int64_t m) {
#pragma omp simd
    for (std::int64_t j = 0; j < m; ++j) {
        const T value = z + noise[j];
        best[j] = value > best[j] ? value : best[j];
    }
}

template <class T>
CALIBRANT_INLINE std::int64_t count_kept(const T* best, const T* own, std::int64_t m) {
    std::int64_t kept = 0;
#pragma omp simd reduction(+ : kept)
    for (std::int64_t j = 0; j < m; ++j) kept += best[j] <= own[j] ? 1 : 0;
    return kept;
}

CALIBRANT_CLONES void raise_of(float* best, const float* noise, float z, std::int64_t m) { raise(best, noise, z, m); }
CALIBRANT_CLONES void raise_of(double* best, const double* noise, double z, std::int64_t m) { raise(best, noise, z, m); }
CALIBRANT_CLONES std::int64_t count_of(const float* best, const float* own, std::int64_t m) {
    return count_kept(best, own, m);
}
CALIBRANT_CLONES std::int64_t count_of(const double* best, const double* own, std::int64_t m) {
    return count_kept(best, own, m);
}

// Scores are taken relative to the top class's, so a shift of the row changes nothing. Classes come in the order of their
// best perturbed score: once the next one's cannot beat the lowest noise of the top class among the vectors that still keep
// the label, no later one can.
template <class T>
double kept_share(const T* z, const T* noise, const std::vector<T>& low, const std::vector<T>& high, std::int64_t k,
                  std::int64_t m, std::vector<T>& best, std::vector<std::int64_t>& rivals) {
    const std::int64_t top = top_of(z, k);
    const auto reach = [&](std::int64_t c) { return (z[c] - z[top]) + high[c]; };
    rivals.clear();
    for (std::int64_t c = 0; c < k; ++c)
        if (c != top && reach(c) > low[top]) rivals.push_back(c);
    std::sort(rivals.begin(), rivals.end(), [&](std::int64_t a, std::int64_t b) { return reach(a) > reach(b); });
    std::fill(best.begin(), best.end(), -std::numeric_limits<T>::infinity());
    const T* own = noise + top * m;
    T lowest = low[top];
    for (std::size_t r = 0; r < rivals.size(); ++r) {
        const std::int64_t c = rivals[r];
        if (reach(c) <= lowest) break;
        raise_of(best.data(), noise + c * m, z[c] - z[top], m);
        if (r % 8 == 7) {  // vectors that lost the label already need no further look
            lowest = std::numeric_limits<T>::infinity();
            for (std::int64_t j = 0; j < m; ++j)
                if (best[j] <= own[j]) lowest = std::min(lowest, own[j]);
            if (std::isinf(lowest)) return 0.0;
        }
    }
    return static_cast<double>(count_of(best.data(), own, m)) / m;
}

double normal_below(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }

// Differences z_top - z_k in units of the scale, for the classes that matter: beyond `reach` the factor is one.
template <class T>
void gaps(const T* z, std::int64_t k, double scale, double reach, std::vector<double>& out) {
    const std::int64_t top = top_of(z, k);
    out.clear();
    for (std::int64_t c = 0; c < k; ++c) {
        const double gap = (static_cast<double>(z[top]) - z[c]) / scale;
        if (c != top && gap < reach) out.push_back(gap);
    }
    std::sort(out.begin(), out.end());
}

double kept_gaussian(const std::vector<double>& gap, std::int64_t nodes) {
    constexpr double edge = 7.0;  // the normal density beyond is below 1e-11
    constexpr double sure = 6.5;  // a factor above this differs from one by less than 1e-10
    const double step = 2 * edge / (nodes - 1);
    double sum = 0, mass = 0;
    for (std::int64_t i = 0; i < nodes; ++i) {
        const double e = -edge + i * step;
        double product = std::exp(-0.5 * e * e);
        mass += product;
        for (std::size_t r = 0; r < gap.size() && gap[r] + e < sure && product > 1e-12; ++r)
            product *= normal_below(gap[r] + e);
        sum += product;
    }
    return sum / mass;
}

double kept_uniform(const std::vector<double>& gap, std::int64_t nodes) {
    double sum = 0;
    for (std::int64_t i = 0; i < nodes; ++i) {
        const double e = (i + 0.5) / nodes;
        double product = 1;
        for (std::size_t r = 0; r < gap.size() && gap[r] + e < 1 && product > 1e-14; ++r) product *= gap[r] + e;
        sum += product;
    }
    return sum / nodes;
}

}  // namespace

template <class T>
void keep_shares(const T* logits, const T* noise, std::int64_t n, std::int64_t k, std::int64_t m, int threads, double* out) {
    std::vector<T> low(k), high(k);
    for (std::int64_t c = 0; c < k; ++c) {
        const auto [least, most] = std::minmax_element(noise + c * m, noise + (c + 1) * m);
        low[c] = *least, high[c] = *most;
    }
    for_blocks(n, std::max(k, m), threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        std::vector<T> best(m);
        std::vector<std::int64_t> rivals;
        for (std::int64_t i = from; i < to; ++i) out[i] = kept_share(logits + i * k, noise, low, high, k, m, best, rivals);
    });
}

template <class T>
void keep_probabilities(const T* logits, std::int64_t n, std::int64_t k, Noise noise, double scale, std::int64_t nodes,
                        int threads, double* out) {
    const double reach = noise == Noise::gaussian ? 13.5 : 1.0;
    for_blocks(n, std::max(k, nodes), threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        std::vector<double> gap;
        for (std::int64_t i = from; i < to; ++i) {
            gaps(logits + i * k, k, scale, reach, gap);
            out[i] = noise == Noise::gaussian ? kept_gaussian(gap, nodes) : kept_uniform(gap, nodes);
        }
    });
}

#define CALIBRANT_INSTANTIATE(T)                                                                                         \
    template void keep_shares<T>(const T*, const T*, std::int64_t, std::int64_t, std::int64_t, int, double*);            \
    template void keep_probabilities<T>(const T*, std::int64_t, std::int64_t, Noise, double, std::int64_t, int, double*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
