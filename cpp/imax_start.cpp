#include "imax_start.hpp"

#include <algorithm>
#include <limits>

#include "interrupt.hpp"
#include "simd.hpp"

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
};

CALIBRANT_CLONES double loss_at(const double* t, const double* weights, const double* targets, std::int64_t n, double a,
                                double b) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < n; ++i) {
        const double x = a * t[i] + b;
        sum += weights[i] * softplus(x) - targets[i] * x;
    }
    return sum;
}

double loss_at(const LogLoss& loss, double a, double b) {
    return loss_at(loss.t.data(), loss.weights.data(), loss.targets.data(), loss.t.size(), a, b);
}

// First derivatives by a and b, and second ones by aa, ab, bb.
CALIBRANT_CLONES void derivatives(const double* t, const double* weights, const double* targets, std::int64_t n, double a,
                                  double b, double* out) {
    double ga = 0, gb = 0, haa = 0, hab = 0, hbb = 0;
#pragma omp simd reduction(+ : ga, gb, haa, hab, hbb)
    for (std::int64_t i = 0; i < n; ++i) {
        const double x = a * t[i] + b, e = exp_nonpositive(x < 0 ? x : -x), part = 1.0 / (1.0 + e);
        const double p = x < 0 ? e * part : part, slack = weights[i] * p - targets[i];
        const double curvature = weights[i] * e * part * part;
        ga += slack * t[i], gb += slack;
        haa += curvature * t[i] * t[i], hab += curvature * t[i], hbb += curvature;
    }
    out[0] = ga, out[1] = gb, out[2] = haa, out[3] = hab, out[4] = hbb;
}

// Damped Newton steps from (a, b).
void newton(const LogLoss& loss, double total, double& a, double& b) {
    double value = loss_at(loss, a, b);
    for (int round = 0; round < kMostSteps; ++round) {
        double d[5];
        derivatives(loss.t.data(), loss.weights.data(), loss.targets.data(), loss.t.size(), a, b, d);
        const double ga = d[0], gb = d[1], haa = d[2] + 1e-12 * total, hab = d[3], hbb = d[4] + 1e-12 * total;
        const double det = haa * hbb - hab * hab;
        const double sa = -(hbb * ga - hab * gb) / det, sb = -(haa * gb - hab * ga) / det;
        const double decrease = -(ga * sa + gb * sb);
        if (!(decrease >= 1e-12 * total)) break;
        double size = 1.0, moved = loss_at(loss, a + sa, b + sb);
        while (moved > value - 1e-4 * size * decrease && size > 1e-9) {
            size /= 2;
            moved = loss_at(loss, a + size * sa, b + size * sb);
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
    for (std::size_t i = 0; i < out.x.size(); ++i) {
        const double mean = out.x[i] / out.weights[i];
        out.x[i] = mean == mean ? mean : 0.0;  // of no weight, or of infinite weight: sorting needs numbers
    }
    return out;
}

// A cell in proportion to the differences of increasing sums.
std::size_t drawn(const Doubles& sums, double uniform) {
    const auto at = std::upper_bound(sums.begin(), sums.end(), uniform * sums.back()) - sums.begin();
    return std::min<std::size_t>(at, sums.size() - 1);
}

double binary_entropy(double p) { return entropy_of(p) + entropy_of(1 - p); }

// Distances of n cells to one of probability q and entropy h where they are below those in `least`; returns their
// weighted sum. p log p is taken at 1e-300 where p is zero.
CALIBRANT_CLONES double nearer(const double* p, const double* entropies, const double* weights, std::int64_t n, double q,
                               double h, const double* least, double* out) {
    constexpr double tiny = 1e-300;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < n; ++i) {
        const double m = 0.5 * (p[i] + q), up = m < tiny ? tiny : m, down = 1.0 - m < tiny ? tiny : 1.0 - m;
        const double apart = -(up * log_positive(up) + down * log_positive(down)) - 0.5 * (entropies[i] + h);
        const double own = apart > 0.0 ? apart : 0.0;
        out[i] = own < least[i] ? own : least[i];
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
    const auto distances = [&](std::size_t c, Doubles& out) {
        return nearer(p.data(), entropies.data(), cells.weights.data(), n, p[c], entropies[c], nearest.data(), out.data());
    };
    distances(first, best);
    for (std::int64_t m = 1; m < options.bins; ++m) {
        nearest.swap(best);
        Watch::look();
        sum = 0;
        for (std::size_t i = 0; i < n; ++i) sums[i] = sum += cells.weights[i] * nearest[i];
        if (sum == 0) break;
        double least = std::numeric_limits<double>::infinity();
        std::size_t chosen = 0;
        for (std::int64_t t = 0; t < options.trials; ++t) {
            const std::size_t c = drawn(sums, options.uniforms[m * options.trials + t]);
            const double value = distances(c, tried);
            if (value < least) least = value, chosen = c, best.swap(tried);
        }
        centres.push_back(cells.x[chosen]);
    }
    std::sort(centres.begin(), centres.end());
    centres.erase(std::unique(centres.begin(), centres.end()), centres.end());
    return centres;
}

}  // namespace calibrant
