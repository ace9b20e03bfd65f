#include "imax_start.hpp"

#include <algorithm>
#include <limits>

namespace calibrant {
namespace {

constexpr std::int64_t kStartCells = 1024;  // cells the start looks at
constexpr double kModelCells = 4096;        // cells the sigmoid model is fitted on
constexpr int kMostSteps = 50;              // of Newton
constexpr double kHalfPi = 1.57079632679489661923;

struct Few {
    Doubles x, weights, outcomes;
};

// About kModelCells cells, neighbours merged at equal steps of the share of either outcome.
Few thinned(const ImaxCells& cells) {
    Few out;
    double positive = 0, negative = 0;
    for (std::int64_t i = 0; i < cells.count; ++i) {
        positive += cells.outcomes[i];
        negative += cells.weights[i] - cells.outcomes[i];
    }
    positive = std::max(positive, 1e-300), negative = std::max(negative, 1e-300);
    const bool few = cells.count <= static_cast<std::int64_t>(kModelCells);
    double ones = 0, zeros = 0, last = -1;
    for (std::int64_t i = 0; i < cells.count; ++i) {
        ones += cells.outcomes[i], zeros += cells.weights[i] - cells.outcomes[i];
        const double step = std::floor((ones / positive + zeros / negative) * (kModelCells / 2));
        if (few || i == 0 || step > last) {
            out.x.push_back(0), out.weights.push_back(0), out.outcomes.push_back(0);
        }
        last = step;
        out.x.back() += cells.weights[i] * cells.scores[i];
        out.weights.back() += cells.weights[i];
        out.outcomes.back() += cells.outcomes[i];
    }
    for (std::size_t i = 0; i < out.x.size(); ++i) out.x[i] = few ? cells.scores[i] : out.x[i] / out.weights[i];
    return out;
}

// The convex log-loss sum of w log(1 + e^x) - target x at x = a t + b.
struct LogLoss {
    const Doubles &t, &weights, &targets;

    double operator()(double a, double b) const {
        double sum = 0;
        for (std::size_t i = 0; i < t.size(); ++i) {
            const double x = a * t[i] + b;
            sum += weights[i] * (std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)))) - targets[i] * x;
        }
        return sum;
    }
};

// Damped Newton steps from (a, b).
void newton(const LogLoss& loss, double total, double& a, double& b) {
    double value = loss(a, b);
    for (int round = 0; round < kMostSteps; ++round) {
        double ga = 0, gb = 0, haa = 1e-12 * total, hab = 0, hbb = 1e-12 * total;
        for (std::size_t i = 0; i < loss.t.size(); ++i) {
            const double t = loss.t[i], p = expit(a * t + b), w = loss.weights[i];
            const double slack = w * p - loss.targets[i], curvature = w * p * (1 - p);
            ga += slack * t, gb += slack;
            haa += curvature * t * t, hab += curvature * t, hbb += curvature;
        }
        const double det = haa * hbb - hab * hab;
        const double sa = -(hbb * ga - hab * gb) / det, sb = -(haa * gb - hab * ga) / det;
        const double decrease = -(ga * sa + gb * sb);
        if (!(decrease >= 1e-12 * total)) break;
        double size = 1.0, moved = loss(a + sa, b + sb);
        while (moved > value - 1e-4 * size * decrease && size > 1e-9) {
            size /= 2;
            moved = loss(a + size * sa, b + size * sb);
        }
        a += size * sa, b += size * sb, value = moved;
    }
}

struct Centres {
    Doubles x, weights;
};

// At most about kStartCells cells: neighbours merged to equal spans of probability and of mass.
Centres merged(const Doubles& x, const double* weights, double total) {
    const auto n = static_cast<std::int64_t>(x.size());
    if (n <= kStartCells) return {x, Doubles(weights, weights + n)};
    Centres out;
    double mass = 0, last = -1;
    for (std::int64_t i = 0; i < n; ++i) {
        mass += weights[i];
        const double span = std::asin(std::sqrt(expit(x[i]))) / kHalfPi;  // steps of about equal Jensen-Shannon distance
        const double place = std::floor((mass / total + span) * (kStartCells / 2));
        if (i == 0 || place > last) out.x.push_back(0), out.weights.push_back(0);
        last = place;
        out.x.back() += weights[i] * x[i], out.weights.back() += weights[i];
    }
    for (std::size_t i = 0; i < out.x.size(); ++i) out.x[i] /= out.weights[i];
    return out;
}

// A cell in proportion to the differences of increasing sums.
std::size_t drawn(const Doubles& sums, double uniform) {
    const auto at = std::upper_bound(sums.begin(), sums.end(), uniform * sums.back()) - sums.begin();
    return std::min<std::size_t>(at, sums.size() - 1);
}

double binary_entropy(double p) { return entropy_of(p) + entropy_of(1 - p); }

// Distances of all cells to cell c where they are below those in `least`; returns their weighted sum.
double nearer(const Doubles& p, const Doubles& entropies, const Doubles& weights, std::size_t c, const Doubles& least,
              Doubles& out) {
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        const double apart = binary_entropy(0.5 * (p[i] + p[c])) - 0.5 * (entropies[i] + entropies[c]);
        out[i] = std::min(least[i], std::max(apart, 0.0));
        sum += out[i] * weights[i];
    }
    return sum;
}

}  // namespace

std::pair<double, double> imax_model(const ImaxCells& cells) {
    Few few = thinned(cells);
    double total = 0, positive = 0, centre = 0, spread = 0;
    for (std::size_t i = 0; i < few.x.size(); ++i) {
        total += few.weights[i], positive += few.outcomes[i], centre += few.weights[i] * few.x[i];
    }
    centre /= total;
    for (std::size_t i = 0; i < few.x.size(); ++i) spread += few.weights[i] * (few.x[i] - centre) * (few.x[i] - centre);
    const double negative = total - positive, scale = std::sqrt(spread / total);
    if (scale == 0 || positive == 0 || negative == 0) return {1.0, 0.0};
    Doubles targets(few.x.size());
    for (std::size_t i = 0; i < few.x.size(); ++i) {
        targets[i] = few.outcomes[i] * (positive + 1) / (positive + 2) + (few.weights[i] - few.outcomes[i]) / (negative + 2);
        few.x[i] = (few.x[i] - centre) / scale;
    }
    double a = scale, b = centre;
    newton({few.x, few.weights, targets}, total, a, b);
    const double slope = a / scale;
    if (!std::isfinite(a) || !std::isfinite(b) || slope <= 0) return {1.0, 0.0};
    return {slope, b - slope * centre};
}

Doubles imax_start(const Doubles& x, const double* weights, double total, const ImaxOptions& options) {
    const Centres cells = merged(x, weights, total);
    const std::size_t n = cells.x.size();
    Doubles p(n), entropies(n), sums(n), nearest(n, std::numeric_limits<double>::infinity()), tried(n), best(n);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
        p[i] = expit(cells.x[i]), entropies[i] = binary_entropy(p[i]);
        sums[i] = sum += cells.weights[i];
    }
    const std::size_t first = drawn(sums, options.uniforms[0]);
    Doubles centres{cells.x[first]};
    nearer(p, entropies, cells.weights, first, nearest, best);
    for (std::int64_t m = 1; m < options.bins; ++m) {
        nearest.swap(best);
        sum = 0;
        for (std::size_t i = 0; i < n; ++i) sums[i] = sum += cells.weights[i] * nearest[i];
        if (sum == 0) break;
        double least = std::numeric_limits<double>::infinity();
        std::size_t chosen = 0;
        for (std::int64_t t = 0; t < options.trials; ++t) {
            const std::size_t c = drawn(sums, options.uniforms[m * options.trials + t]);
            const double value = nearer(p, entropies, cells.weights, c, nearest, tried);
            if (value < least) least = value, chosen = c, best.swap(tried);
        }
        centres.push_back(cells.x[chosen]);
    }
    std::sort(centres.begin(), centres.end());
    centres.erase(std::unique(centres.begin(), centres.end()), centres.end());
    return centres;
}

}  // namespace calibrant
