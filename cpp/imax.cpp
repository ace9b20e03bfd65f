#include "imax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "imax_start.hpp"
#include "parallel.hpp"

namespace calibrant {
namespace {

constexpr int kMost = 1000;      // updates; a fixed point is usually met within a hundred
constexpr double kFlat = 700.0;  // beyond this log-odds the other probability leaves double precision

using Bounds = std::vector<std::int64_t>;

double log_softplus(double x) { return x < -36.0 ? x : std::log(std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)))); }

// log[sp(high) - sp(low)] without leaving the log domain.
double log_difference(double high, double low) {
    const double top = log_softplus(high);
    return top + std::log(-std::expm1(log_softplus(low) - top));
}

// The score at which neighbouring representatives fit equally well (Eq. 5).
double closed_form_edge(double low, double high) {
    if (!(high - low > 1e-9 * std::max(1.0, std::abs(high)))) return 0.5 * (low + high);
    return log_difference(high, low) - log_difference(-low, -high);
}

// Cells under the sigmoid model: sums of what the updates need.
class Model {
public:
    Model(const ImaxCells& cells, double slope, double offset) : weights_(cells.weights), x_(cells.count) {
        const std::int64_t n = cells.count;
        ones_.assign(n + 1, 0.0), zeros_.assign(n + 1, 0.0);
        for (std::int64_t i = 0; i < n; ++i) {
            const double x = slope * cells.scores[i] + offset;
            x_[i] = x > -kFlat ? std::min(x, kFlat) : -kFlat;  // NaN too: sorting needs numbers
            total_ += weights_[i];
        }
        // Sums of small terms first, so that their differences keep their digits in both tails.
        for (std::int64_t i = 0; i < n; ++i) ones_[i + 1] = ones_[i] + weights_[i] * expit(x_[i]);
        for (std::int64_t i = n; i-- > 0;) zeros_[i] = zeros_[i + 1] + weights_[i] * expit(-x_[i]);
        prior_entropy_ = entropy_of(ones_[n] / total_) + entropy_of(zeros_[0] / total_);
    }

    Doubles start(const ImaxOptions& options) const { return imax_start(x_, weights_, total_, options); }

    // The log-odds of the mean probability of each bin.
    Doubles representatives(const Bounds& bounds) const {
        Doubles out;
        for (std::size_t m = 0; m <= bounds.size(); ++m) out.push_back(representative(bin(bounds, m)));
        return out;
    }

    // Eq. 4 in bits, at the best representatives: minus the mutual information the model believes in.
    double loss(const Bounds& bounds) const {
        double sum = 0;
        for (std::size_t m = 0; m <= bounds.size(); ++m) sum += distortion(bin(bounds, m));
        return (sum / total_ - prior_entropy_) / std::log(2.0);
    }

    // Bins of increasing representatives.
    Bounds bounds(const Doubles& centres) const {
        Bounds found;
        for (std::size_t m = 0; m + 1 < centres.size(); ++m) {
            const std::int64_t at = place(closed_form_edge(centres[m], centres[m + 1]));
            if (at > 0 && at < count()) found.push_back(at);
        }
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return found;
    }

    // Splits the bins that lose most until there are as many as asked for, or none can be split.
    Bounds filled(Bounds bounds, std::int64_t bins) {
        while (static_cast<std::int64_t>(bounds.size()) + 1 < bins) {
            Watch::look();
            double most = -1;
            Bin worst{};
            for (std::size_t m = 0; m <= bounds.size(); ++m) {
                const Bin own = bin(bounds, m);
                if (own.to - own.from < 2) continue;
                const double cost = std::max(distortion(own) - kept(own), 0.0);
                if (cost > most) most = cost, worst = own;
            }
            if (most < 0) break;
            const std::int64_t middle = std::min(std::max(place(representative(worst)), worst.from + 1), worst.to - 1);
            bounds.insert(std::lower_bound(bounds.begin(), bounds.end(), middle), middle);
        }
        return bounds;
    }

private:
    struct Bin {
        std::int64_t from, to;
    };

    std::int64_t count() const { return static_cast<std::int64_t>(x_.size()); }
    std::int64_t place(double score) const { return std::lower_bound(x_.begin(), x_.end(), score) - x_.begin(); }
    Bin bin(const Bounds& bounds, std::size_t m) const {
        return {m ? bounds[m - 1] : 0, m < bounds.size() ? bounds[m] : count()};
    }

    double representative(Bin b) const {
        constexpr double tiny = std::numeric_limits<double>::min();
        return std::log(std::max(ones_[b.to] - ones_[b.from], tiny)) - std::log(std::max(zeros_[b.from] - zeros_[b.to], tiny));
    }

    // Cross-entropy of a bin with its own best representative, in nats.
    double distortion(Bin b) const {
        const double phi = representative(b);
        return -((ones_[b.to] - ones_[b.from]) * log_expit(phi) + (zeros_[b.from] - zeros_[b.to]) * log_expit(-phi));
    }

    // What is left of a bin's distortion where all its cells are kept apart.
    double kept(Bin b) {
        if (entropies_.empty())
            for (std::int64_t i = 0; i < count(); ++i)
                entropies_.push_back(weights_[i] * (entropy_of(expit(x_[i])) + entropy_of(expit(-x_[i]))));
        double sum = 0;
        for (std::int64_t i = b.from; i < b.to; ++i) sum += entropies_[i];
        return sum;
    }

    const double* weights_;
    Doubles x_, ones_, zeros_, entropies_;
    double total_ = 0, prior_entropy_ = 0;
};

ImaxFound imax_of(const ImaxCells& cells, const ImaxOptions& options) {
    ImaxFound out;
    if (options.affine) std::tie(out.slope, out.offset) = imax_model(cells);
    Model model(cells, out.slope, out.offset);
    out.bounds = model.filled(model.bounds(model.start(options)), options.bins);
    out.losses.push_back(model.loss(out.bounds));
    for (int round = 0; round < kMost && !out.converged; ++round) {
        Bounds moved = model.filled(model.bounds(model.representatives(out.bounds)), options.bins);
        out.converged = moved == out.bounds;
        if (out.converged) break;
        out.bounds.swap(moved);
        out.losses.push_back(model.loss(out.bounds));
    }
    return out;
}

}  // namespace

std::vector<ImaxFound> imax(const std::vector<ImaxCells>& groups, const ImaxOptions& options, int threads) {
    std::vector<ImaxFound> out(groups.size());
    for_blocks(groups.size(), 65536, threads, [&](std::int64_t g, std::int64_t, std::int64_t) {  // one group a block
        out[g] = imax_of(groups[g], options);
    });
    return out;
}

}  // namespace calibrant
