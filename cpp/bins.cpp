#include "bins.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

// Edges of which the first is -∞ and the last is never reached, and where to look for a score among them.
class Bounds {
public:
    Bounds(const double* edges, std::int64_t bins) : edges_(edges, edges + bins + 1), bins_(bins) {
        edges_.front() = -std::numeric_limits<double>::infinity();
        edges_.back() = std::numeric_limits<double>::quiet_NaN();  // nothing reaches it, not even infinity
        for (std::int64_t b = 0; b <= bins && even_; ++b)
            even_ = edges[b] == static_cast<double>(b) / static_cast<double>(bins);
        if (even_) return;
        first_.resize(kSlots);
        for (std::int64_t slot = 1, b = 0; slot < kSlots; ++slot) {  // the bin of the smallest score of a slot
            while (edges_[b + 1] <= lowest(slot)) ++b;
            first_[slot] = static_cast<std::int32_t>(b);
        }
    }

    // The second edge, below which most scores of many classes lie; above every score where there is one bin.
    double second() const { return bins_ > 1 ? edges_[1] : 2.0; }

    // Whether the bins are equally wide.
    bool even() const { return even_; }

    // The bin of a score. NaN has one too, and the sums tell of it.
    CALIBRANT_INLINE std::int64_t bin_of(double p) const {
        if (even_) {  // a guess that is right for equal width, then a step to where it belongs
            const double least = p > 0 ? p : 0.0, inside = least < 1 ? least : 1.0;
            const std::int64_t guess = std::min(static_cast<std::int64_t>(inside * static_cast<double>(bins_)), bins_ - 1);
            const bool above = p >= edges_[guess + 1];
            return guess + above - (p < edges_[guess]);  // no branch: rounding moves it by one at most
        }
        std::int64_t b = first_[slot_of(p)];
        b += p >= edges_[b + 1];  // without a branch: few slots hold two edges
        while (p >= edges_[b + 1]) ++b;
        return b;
    }

private:
    // Scores are looked up by their leading bits: 128 slots for each halving of a score, down to 2^-20.
    static constexpr int kShift = 45, kHalvings = 20;
    static constexpr std::int64_t kSlots = (kHalvings << 7) + 2;
    static constexpr std::uint64_t kLeast = std::uint64_t(1023 - kHalvings) << 52;

    static double lowest(std::int64_t slot) {
        return std::bit_cast<double>(kLeast + (static_cast<std::uint64_t>(slot - 1) << kShift));
    }

    static CALIBRANT_INLINE std::int64_t slot_of(double p) {
        if (!(p >= 1.0 / (1 << kHalvings))) return 0;  // NaN too
        const std::uint64_t place = (std::bit_cast<std::uint64_t>(p) - kLeast) >> kShift;
        return std::min(static_cast<std::int64_t>(place) + 1, kSlots - 1);
    }

    std::vector<double> edges_;
    std::vector<std::int32_t> first_;
    std::int64_t bins_;
    bool even_ = true;
};

struct BinTask {
    const std::int64_t* labels;
    const double* weights;
    std::int64_t k;
    const Bounds& bounds;
    std::int64_t bins;
    const double* floors;
};

// A weight and a score, which are added in one instruction.
typedef double Two __attribute__((vector_size(16), aligned(8)));

// One part's sums: the first bin dense by class (most entries of many classes lie there), the others scattered.
struct BinSums {
    double *count0, *score0;  // [class]
    Two* both;                // [class][bin]
    double* hit;              // [class][bin]
};

template <class T>
CALIBRANT_INLINE void low_entries(const T* p, std::int64_t k, double weight, double second, const double* floors,
                                  double* count0, double* score0) {
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) {
        const double value = p[j];
        const double counted = (value < second) & (value > floors[j]) ? weight : 0.0;
        count0[j] += counted;
        score0[j] += counted * value;
    }
}

template <class T>
CALIBRANT_INLINE void high_entries(const T* p, double weight, const BinTask& task, const BinSums& sums) {
    const double second = task.bounds.second();
    for (std::int64_t from = 0; from < task.k; from += 64) {
        const std::int64_t to = std::min<std::int64_t>(from + 64, task.k);
        int high = 0;
#pragma omp simd reduction(+ : high)
        for (std::int64_t j = from; j < to; ++j) high += static_cast<double>(p[j]) >= second;
        if (!high) continue;
        for (std::int64_t j = from; j < to; ++j) {
            const double value = p[j];
            if (!(value >= second && value > task.floors[j])) continue;
            sums.both[j * task.bins + task.bounds.bin_of(value)] += Two{weight, weight * value};
        }
    }
}

// Every entry to its bin: where bins are narrow, few lie in the first.
template <class T>
CALIBRANT_INLINE void entries(const T* p, double weight, const BinTask& task, const BinSums& sums) {
    Two* own = sums.both;
    for (std::int64_t j = 0; j < task.k; ++j, own += task.bins) {
        const double value = p[j];
        const double counted = value > task.floors[j] ? weight : 0.0;
        own[task.bounds.bin_of(value)] += Two{counted, counted * value};
    }
}

template <class T>
CALIBRANT_INLINE void bins_block(const T* values, std::int64_t from, std::int64_t to, const BinTask& task,
                                 const BinSums& sums) {
    const double second = task.bounds.second();
    for (std::int64_t i = from; i < to; ++i) {
        if (i % 256 == 0) Watch::look();
        const double weight = task.weights ? task.weights[i] : 1.0;
        if (weight == 0.0) continue;
        const T* p = values + i * task.k;
        if (task.bounds.even()) {
            low_entries(p, task.k, weight, second, task.floors, sums.count0, sums.score0);
            high_entries(p, weight, task, sums);
        } else {
            entries(p, weight, task, sums);
        }
        const std::int64_t y = task.labels[i];
        if (p[y] > task.floors[y]) sums.hit[y * task.bins + task.bounds.bin_of(p[y])] += weight;
    }
}

CALIBRANT_CLONES void bins_block_of(const float* values, std::int64_t from, std::int64_t to, const BinTask& task,
                                    const BinSums& sums) {
    bins_block(values, from, to, task, sums);
}
CALIBRANT_CLONES void bins_block_of(const double* values, std::int64_t from, std::int64_t to, const BinTask& task,
                                    const BinSums& sums) {
    bins_block(values, from, to, task, sums);
}

}  // namespace

template <class T>
void class_bins(const T* values, const std::int64_t* labels, const double* weights, std::int64_t n, std::int64_t k,
                const double* edges, std::int64_t bins, const double* floors, int threads, double* out) {
    // A few parts of many rows, each with sums of its own: as many as eight threads need, whatever their number is, and
    // fewer where the sums are not much less than the scores.
    const std::int64_t cells = k * bins, width = 2 * k + 3 * cells, most = std::min(block_count(n, k), n * k / (2 * width));
    const std::int64_t parts = std::clamp<std::int64_t>(most, 1, 8), rows = (n + parts - 1) / parts;
    const Bounds bounds(edges, bins);
    const BinTask task{labels, weights, k, bounds, bins, floors};
    std::vector<double> sums(parts * width);
    for_blocks(parts, 65536, threads, [&](std::int64_t part, std::int64_t, std::int64_t) {  // one part a block
        double* own = sums.data() + part * width;
        const BinSums mine{own, own + k, reinterpret_cast<Two*>(own + 2 * k), own + 2 * k + 2 * cells};
        bins_block_of(values, std::min(n, part * rows), std::min(n, (part + 1) * rows), task, mine);
    });
    std::fill(out, out + 3 * cells, 0.0);
    for (std::int64_t part = 0; part < parts; ++part) {
        const double* own = sums.data() + part * width;
        const double *both = own + 2 * k, *hit = both + 2 * cells;
        for (std::int64_t j = 0; j < cells; ++j) {
            out[j] += both[2 * j];
            out[cells + j] += both[2 * j + 1];
            out[2 * cells + j] += hit[j];
        }
        for (std::int64_t j = 0; j < k; ++j) out[j * bins] += own[j], out[cells + j * bins] += own[k + j];
    }
}

void pair_bins(const double* scores, const double* outcomes, const double* weights, std::int64_t n, const double* edges,
               std::int64_t bins, double* out) {
    constexpr std::int64_t lanes = 4;  // scores crowd in a bin: sums that wait for one another are slow
    const Bounds bounds(edges, bins);
    std::vector<double> sums(lanes * bins * 3);
    const auto add = [&](std::int64_t i, double* own) {
        const double weight = weights ? weights[i] : 1.0;
        double* cell = own + 3 * bounds.bin_of(scores[i]);
        cell[0] += weight;
        cell[1] += weight * scores[i];
        cell[2] += weight * outcomes[i];
    };
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
        for (std::int64_t lane = 0; lane < lanes; ++lane) add(i + lane, sums.data() + lane * bins * 3);
    for (; i < n; ++i) add(i, sums.data());
    std::fill(out, out + 3 * bins, 0.0);
    for (std::int64_t j = 0; j < lanes * bins * 3; ++j) out[(j % 3) * bins + j / 3 % bins] += sums[j];
}

#define CALIBRANT_INSTANTIATE(T)                                                                                       \
    template void class_bins<T>(const T*, const std::int64_t*, const double*, std::int64_t, std::int64_t, const double*, \
                                std::int64_t, const double*, int, double*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
