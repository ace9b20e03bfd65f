#include "bind.hpp"
#include "imax.hpp"
#include "partition.hpp"

namespace calibrant::python {
namespace {

using Doubles = Vector<double>;

std::vector<calibrant::ImaxCells> groups_of(const Doubles& scores, const Doubles& weights, const Doubles& outcomes,
                                            const Labels& starts) {
    const std::int64_t size = scores.shape(0), count = static_cast<std::int64_t>(starts.shape(0)) - 1;
    bool good = count >= 0 && weights.shape(0) == scores.shape(0) && outcomes.shape(0) == scores.shape(0);
    std::vector<calibrant::ImaxCells> groups;
    for (std::int64_t g = 0; good && g < count; ++g) {
        const std::int64_t from = starts.data()[g], to = starts.data()[g + 1];
        good = from >= 0 && from < to && to <= size;
        if (good) groups.push_back({scores.data() + from, weights.data() + from, outcomes.data() + from, to - from});
    }
    if (!good) throw nb::value_error("cells and starts do not fit one another");
    if (!all_finite(scores) || !all_finite(weights) || !all_finite(outcomes)) throw nb::value_error("a cell is not finite");
    return groups;
}

nb::ndarray<nb::numpy, std::int64_t> as_array(const std::vector<std::int64_t>& values) {
    auto out = fresh<std::int64_t>({values.size()});
    std::copy(values.begin(), values.end(), out.data());
    return out;
}

auto as_tuple(const calibrant::ImaxFound& found) {
    auto losses = fresh<double>({found.losses.size()});
    std::copy(found.losses.begin(), found.losses.end(), losses.data());
    return std::make_tuple(as_array(found.bounds), losses, found.converged, found.slope, found.offset);
}

}  // namespace

void add_imax(nb::module_& m) {
    m.def(
        "imax",
        [](Doubles scores, Doubles weights, Doubles outcomes, Labels starts, std::int64_t bins, bool affine,
           Matrix<double> uniforms, Threads threads) {
            const auto groups = groups_of(scores, weights, outcomes, starts);
            const std::int64_t rows = uniforms.shape(0), trials = uniforms.shape(1);
            if (bins < 1 || rows != bins || trials < 1) throw nb::value_error("a row of uniforms for each bin");
            const calibrant::ImaxOptions options{bins, affine, uniforms.data(), trials};
            std::vector<calibrant::ImaxFound> found;
            {
                nb::gil_scoped_release release;
                found = calibrant::imax(groups, options, threads);
            }
            std::vector<decltype(as_tuple(found[0]))> out;
            for (const auto& one : found) out.push_back(as_tuple(one));
            return out;
        },
        "scores"_a, "weights"_a, "outcomes"_a, "starts"_a, "bins"_a, "affine"_a, "uniforms"_a, "threads"_a);
    m.def(
        "best_partition",
        [](Doubles weights, Doubles positives, std::int64_t bins) {
            if (positives.shape(0) != weights.shape(0) || !weights.shape(0) || bins < 1)
                throw nb::value_error("cells and bins do not fit one another");
            std::vector<std::int64_t> bounds;
            {
                nb::gil_scoped_release release;
                bounds = calibrant::best_partition(weights.data(), positives.data(), weights.shape(0), bins);
            }
            return as_array(bounds);
        },
        "weights"_a, "positives"_a, "bins"_a);
}

}  // namespace calibrant::python
