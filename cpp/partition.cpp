#include "partition.hpp"

#include <algorithm>
#include <limits>
#include <memory>

#include "interrupt.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

CALIBRANT_INLINE double x_log_x(double x) {
    return x * log_positive(x > 1e-300 ? x : 1e-300);  // 0 for 0
}

// gain[start]: the information of cells start .. stop - 1, from running sums.
CALIBRANT_CLONES void gains(const double* mass, const double* positive, std::int64_t stop, double* gain) {
    const double all = mass[stop], good = positive[stop];
#pragma omp simd
    for (std::int64_t start = 0; start < stop; ++start) {
        const double w = all - mass[start], p = good - positive[start], rest = w - p > 0 ? w - p : 0.0;
        gain[start] = x_log_x(p) + x_log_x(rest) - x_log_x(w);
    }
}

// The greatest best[start] + gain[start], and the first start that has it.
CALIBRANT_CLONES double greatest(const double* best, const double* gain, std::int64_t stop, std::int64_t* first) {
    double most = -std::numeric_limits<double>::infinity();
#pragma omp simd reduction(max : most)
    for (std::int64_t start = 0; start < stop; ++start) {
        const double value = best[start] + gain[start];
        most = value > most ? value : most;
    }
    *first = 0;
    while (*first + 1 < stop && best[*first] + gain[*first] != most) ++*first;
    return most;
}

std::vector<double> running(const double* values, std::int64_t count) {
    std::vector<double> sums(count + 1, 0.0);
    for (std::int64_t i = 0; i < count; ++i) sums[i + 1] = sums[i] + values[i];
    return sums;
}

}  // namespace

std::vector<std::int64_t> best_partition(const double* weights, const double* positives, std::int64_t count,
                                         std::int64_t bins) {
    const std::int64_t most = std::min(bins, count), width = count + 1;
    const std::vector<double> mass = running(weights, count), positive = running(positives, count);
    const Alone alone;
    std::vector<double> gain(width);
    // Not filled, as that takes long where they are large: every stop writes its own, and no cells are a bin of none.
    const auto best = std::make_unique_for_overwrite<double[]>(most * width);
    const auto choice = std::make_unique_for_overwrite<std::int64_t[]>(most * width);
    for (std::int64_t m = 0; m < most; ++m) {
        best[m * width] = -std::numeric_limits<double>::infinity();
        choice[m * width] = 0;
    }
    for (std::int64_t stop = 1; stop < width; ++stop) {
        gains(mass.data(), positive.data(), stop, gain.data());
        best[stop] = gain[0];
        for (std::int64_t m = 1; m < most; ++m) {
            if (m % 16 == 1) Watch::look();
            const std::int64_t place = m * width + stop;
            best[place] = greatest(best.get() + (m - 1) * width, gain.data(), stop, &choice[place]);
        }
    }
    std::vector<std::int64_t> bounds(most - 1);
    for (std::int64_t m = most - 1, stop = count; m > 0; --m) bounds[m - 1] = stop = choice[m * width + stop];
    return bounds;
}

}  // namespace calibrant
