#include "sweep.hpp"

#include <algorithm>
#include <cmath>

#include "interrupt.hpp"

namespace calibrant {
namespace {

constexpr double kMostBins = 1 << 20;  // of weights beyond the number of cells: more could not be told apart, nor waited for

// Cells below one of b equal-mass or equal-width bins' lower border: the first cell that belongs to bin `bin` or later.
struct Sweeper {
    const double* values;
    const double *weight, *score, *outcome;  // prefix sums
    std::int64_t m;
    bool equal_width;

    std::int64_t start(std::int64_t bin, std::int64_t b, std::int64_t from) const {
        if (equal_width) {
            const double edge = static_cast<double>(bin) / static_cast<double>(b);
            return std::lower_bound(values + from, values + m, edge) - values;
        }
        // A cell is in bin floor(C * b / n), C being the weight below it: exact in doubles for counts.
        const double total = weight[m], target = static_cast<double>(bin) * total, parts = static_cast<double>(b);
        return std::partition_point(weight + from, weight + m, [=](double below) { return below * parts < target; }) - weight;
    }

    template <class Visit>
    bool each_bin(std::int64_t b, Visit visit) const {
        for (std::int64_t from = 0, to; from < m; from = to) {
            to = end_of_bin(from, b);
            if (!visit(weight[to] - weight[from], score[to] - score[from], outcome[to] - outcome[from])) return false;
        }
        return true;
    }

    // The first cell beyond the bin that cell `from` opens. Empty bins before it are jumped over, by a guess that
    // rounding may leave one or two short.
    std::int64_t end_of_bin(std::int64_t from, std::int64_t b) const {
        const double place = equal_width ? values[from] : weight[from] / weight[m];
        const double share = place > 0 ? std::min(place, 1.0) : 0.0;  // NaN too, where there is no weight
        std::int64_t bin = std::max<std::int64_t>(1, static_cast<std::int64_t>(share * static_cast<double>(b)) - 1);
        for (; bin < b; ++bin) {
            const std::int64_t to = start(bin, b, from);
            if (to > from) return to;
        }
        return m;
    }

    bool monotone(std::int64_t b) const {
        double height = -1;
        return each_bin(b, [&](double w, double, double y) {
            const double next = y / w;
            const bool kept = next >= height - 1e-13;  // rounding of fractional weights is no decrease
            height = next;
            return kept;
        });
    }

    // Whether no cell is lower than the one before it: then no binning is ever broken.
    bool always_monotone() const {
        for (std::int64_t i = 1; i < m; ++i) {
            const double before = (outcome[i] - outcome[i - 1]) / (weight[i] - weight[i - 1]);
            const double here = (outcome[i + 1] - outcome[i]) / (weight[i + 1] - weight[i]);
            if (here < before - 1e-13) return false;
        }
        return true;
    }

    double error(std::int64_t b, int norm) const {
        double total = 0, largest = 0;
        each_bin(b, [&](double w, double s, double y) {
            const double gap = std::abs(s - y) / w;
            largest = std::max(largest, gap);
            total += norm == 2 ? w * gap * gap : w * gap;
            return true;
        });
        if (norm == 0) return largest;
        return norm == 2 ? std::sqrt(total / weight[m]) : total / weight[m];
    }
};

}  // namespace

Swept sweep(const double* values, const double* prefix, std::int64_t m, bool equal_width, int norm) {
    const Sweeper sweeper{values, prefix, prefix + (m + 1), prefix + 2 * (m + 1), m, equal_width};
    const double rows = std::min(std::floor(prefix[m] + 1e-9), kMostBins);  // a weight counts as so many rows
    const std::int64_t most = std::max(m, rows > 0 ? static_cast<std::int64_t>(rows) : 0);
    const Alone alone;
    std::int64_t b = most;
    if (!sweeper.always_monotone())
        for (b = 1; b < most && sweeper.monotone(b + 1); ++b) Watch::look();
    return {b, sweeper.error(b, norm)};
}

}  // namespace calibrant
