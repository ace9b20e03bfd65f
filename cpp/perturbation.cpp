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
struct Rival {
    T reach;  // the highest score that any noise vector gives the class, relative to the top class
    T gap;    // its score relative to the top class
    std::int32_t place;
};

// Raises best by rivals from..to in one tile, in falling order of reach, until none can beat the top class's lowest noise among
// the vectors that still keep the label, or no vector keeps it. Returns whether that point was reached.
// Four rivals at a time, the last one again where fewer are left.
template <class T>
CALIBRANT_INLINE bool contest(const Rival<T>* rivals, std::int64_t from, std::int64_t to, const T* tile, const T* own,
                              T* best) {
    for (std::int64_t r = from; r < to; r += 4) {
        const Rival<T>&a = rivals[r], &b = rivals[std::min(r + 1, to - 1)], &c = rivals[std::min(r + 2, to - 1)],
              &d = rivals[std::min(r + 3, to - 1)];
        const T *va = tile + a.place * kTile, *vb = tile + b.place * kTile, *vc = tile + c.place * kTile,
                *vd = tile + d.place * kTile;
        const T ga = a.gap, gb = b.gap, gc = c.gap, gd = d.gap;
        T lowest = std::numeric_limits<T>::infinity();
#pragma omp simd reduction(min : lowest)
        for (std::int64_t l = 0; l < kTile; ++l) {
            const T first = ga + va[l], second = gb + vb[l], third = gc + vc[l], fourth = gd + vd[l];
            const T one = first > second ? first : second, two = third > fourth ? third : fourth;
            const T most = one > two ? one : two;
            const T high = most > best[l] ? most : best[l];
            best[l] = high;
            const T kept = high <= own[l] ? own[l] : std::numeric_limits<T>::infinity();
            lowest = kept < lowest ? kept : lowest;
        }
        if (std::isinf(lowest) || (r + 4 < to && rivals[r + 4].reach <= lowest)) return true;
    }
    return false;
}

CALIBRANT_CLONES bool contest_of(const Rival<float>* rivals, std::int64_t from, std::int64_t to, const float* tile,
                                 const float* own, float* best) {
    return contest(rivals, from, to, tile, own, best);
}
CALIBRANT_CLONES bool contest_of(const Rival<double>* rivals, std::int64_t from, std::int64_t to, const double* tile,
                                 const double* own, double* best) {
    return contest(rivals, from, to, tile, own, best);
}

// One row: its top class and the classes that some noise vector can lift over it. Scores are taken relative to the top
// class's, so a shift of the row changes nothing. The first rivals are sorted by reach at once, the rest when asked for.
template <class T>
struct Row {
    static constexpr std::size_t kFirst = 64;
    std::int64_t top = 0, kept = 0;
    std::vector<Rival<T>> rivals;
    bool sorted = false;

    static bool before(const Rival<T>& a, const Rival<T>& b) { return a.reach > b.reach; }
    std::int64_t ready() const { return sorted ? rivals.size() : std::min(rivals.size(), kFirst); }
    void sort_rest() {
        if (!sorted) std::sort(rivals.begin() + ready(), rivals.end(), before);
        sorted = true;
    }

    void read(const T* z, double scale, const Noises<T>& noises) {
        top = top_of(z, noises.k), kept = 0;
        rivals.clear();
        for (std::int64_t c = 0; c < noises.k; ++c) {
            const T gap = static_cast<T>((static_cast<double>(z[c]) - z[top]) / scale), reach = gap + noises.high[c];
            if (c != top && reach > noises.low[top]) rivals.push_back({reach, gap, static_cast<std::int32_t>(c)});
        }
        sorted = rivals.size() <= kFirst;
        if (!sorted) std::nth_element(rivals.begin(), rivals.begin() + kFirst, rivals.end(), before);
        std::sort(rivals.begin(), rivals.begin() + std::min(rivals.size(), kFirst), before);
    }

    void count(const T* tile) {
        alignas(64) T best[kTile];
        std::fill(best, best + kTile, -std::numeric_limits<T>::infinity());
        const T* own = tile + top * kTile;
        const std::int64_t first = ready();
        const bool done = contest_of(rivals.data(), 0, first, tile, own, best);
        if (!done && first < static_cast<std::int64_t>(rivals.size())) {
            sort_rest();
            contest_of(rivals.data(), first, rivals.size(), tile, own, best);
        }
        for (std::int64_t l = 0; l < kTile; ++l) kept += best[l] <= own[l] ? 1 : 0;
    }
};

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
        if (i % 16 == 0) Watch::look();  // each meets every class
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
        if (i % 16 == 0) Watch::look();
        const double e = (i + 0.5) / nodes;
        double product = 1;
        for (std::size_t r = 0; r < gap.size() && gap[r] + e < 1 && product > 1e-14; ++r) product *= gap[r] + e;
        sum += product;
    }
    return sum / nodes;
}

double replayed(const Steps& s, double share, double p) {
    for (std::int64_t t = 0; t < s.steps; ++t) {
        const double place = p > 0 ? (p < 1 ? p : 1.0) : 0.0;  // NaN too
        const std::int64_t bin = std::clamp<std::int64_t>(std::ceil(place * s.bins) - 1, 0, s.bins - 1), at = t * s.bins + bin;
        if (s.filled[at]) p = std::clamp((s.alphas[at] - s.betas[at]) * share + s.betas[at], 0.0, 1.0);
    }
    return p;
}

}  // namespace

template <class T>
void pack_noise(const T* noise, std::int64_t k, std::int64_t m, T* packed, T* low, T* high) {
    std::fill(packed, packed + tile_count(m) * k * kTile, std::numeric_limits<T>::quiet_NaN());
    for (std::int64_t c = 0; c < k; ++c) {
        const auto [least, most] = std::minmax_element(noise + c * m, noise + (c + 1) * m);
        low[c] = *least, high[c] = *most;
        for (std::int64_t j = 0; j < m; ++j) packed[(j / kTile * k + c) * kTile + j % kTile] = noise[c * m + j];
    }
}

template <class T>
void keep_shares(const T* logits, const Noises<T>& noises, double scale, std::int64_t n, int threads, double* out) {
    const std::int64_t k = noises.k, m = noises.m;
    for_blocks(n, std::max(k, m), threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        std::vector<Row<T>> rows(to - from);
        for (std::int64_t i = from; i < to; ++i) rows[i - from].read(logits + i * k, scale, noises);
        for (std::int64_t t = 0; t < tile_count(m); ++t) {
            Watch::look();
            for (Row<T>& row : rows) row.count(noises.tile(t));
        }
        for (std::int64_t i = from; i < to; ++i) out[i] = static_cast<double>(rows[i - from].kept) / m;
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

template <class T>
void spread_confidence(const T* logits, const double* shares, const Steps& steps, std::optional<double> start, double margin,
                       std::int64_t n, std::int64_t k, int threads, T* out) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        std::vector<double> e(k);
        for (std::int64_t i = from; i < to; ++i) {
            const std::int64_t top = top_of(logits + i * k, k);
            T* p = out + i * k;
            const double found = replayed(steps, shares[i], start.value_or(p[top]));
            const double confidence = std::clamp(found, margin, 1.0 - margin);
            // The others relative to the largest of them: however far they are behind, they share what is left.
            const T* z = logits + i * k;
            T second = -std::numeric_limits<T>::infinity();
            for (std::int64_t c = 0; c < k; ++c)
                if (c != top) second = std::max(second, z[c]);
            if (std::isinf(second)) {
                std::fill(p, p + k, static_cast<T>((1.0 - confidence) / (k - 1)));
            } else {
                double rest = 0;
                for (std::int64_t c = 0; c < k; ++c) {
                    e[c] = c == top ? 0.0 : exp_nonpositive(static_cast<double>(z[c]) - second);
                    rest += e[c];
                }
                for (std::int64_t c = 0; c < k; ++c) p[c] = static_cast<T>(e[c] * ((1.0 - confidence) / rest));
            }
            p[top] = static_cast<T>(confidence);
        }
    });
}

#define CALIBRANT_INSTANTIATE(T)                                                                                           \
    template void pack_noise<T>(const T*, std::int64_t, std::int64_t, T*, T*, T*);                                         \
    template void keep_shares<T>(const T*, const Noises<T>&, double, std::int64_t, int, double*);                          \
    template void keep_probabilities<T>(const T*, std::int64_t, std::int64_t, Noise, double, std::int64_t, int, double*);  \
    template void spread_confidence<T>(const T*, const double*, const Steps&, std::optional<double>, double, std::int64_t, \
                                       std::int64_t, int, T*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
