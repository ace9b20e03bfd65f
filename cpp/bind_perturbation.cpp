#include "bind.hpp"
#include "perturbation.hpp"

namespace calibrant::python {
namespace {

template <class T>
using Tiles = nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

template <class T>
void bind_perturbation(nb::module_& m) {
    m.def(
        "pack_noise",
        [](Matrix<T> noise) {
            const std::size_t k = noise.shape(0), m = noise.shape(1);
            auto packed = fresh<T>({std::size_t(calibrant::tile_count(m)), k, std::size_t(calibrant::kTile)});
            auto reach = fresh<T>({2, k});
            if (m == 0) throw nb::value_error("there is no noise vector");
            calibrant::pack_noise(noise.data(), k, m, packed.data(), reach.data(), reach.data() + k);
            return std::make_tuple(packed, reach);
        },
        "noise"_a.noconvert());
    m.def(
        "keep_shares",
        [](Scores<T> logits, Tiles<T> packed, Matrix<T> reach, std::int64_t draws, double scale, Threads threads) {
            const std::size_t k = logits.shape(1);
            const bool fits = packed.shape(1) == k && reach.shape(0) == 2 && reach.shape(1) == k;
            if (!fits || draws < 1 || draws > std::int64_t(packed.shape(0)) * calibrant::kTile || packed.shape(2) != std::size_t(calibrant::kTile) ||
                packed.shape(0) != std::size_t(calibrant::tile_count(draws)))
                throw nb::value_error("the noise does not fit the columns");
            const calibrant::Noises<T> noises{std::int64_t(k), draws, packed.data(), reach.data(), reach.data() + k};
            auto out = fresh<double>({logits.shape(0)});
            nb::gil_scoped_release release;
            calibrant::keep_shares(logits.data(), noises, scale, logits.shape(0), threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "packed"_a.noconvert(), "reach"_a.noconvert(), "draws"_a, "scale"_a, "threads"_a);
    m.def(
        "spread_confidence",
        [](Scores<T> logits, Vector<double> shares, Matrix<double> alphas, Matrix<double> betas, Matrix<bool> filled,
           std::optional<double> start, double margin, Threads threads, Output<T> out) {
            require_same_shape(logits, out);
            const std::size_t steps = alphas.shape(0), bins = alphas.shape(1);
            if (shares.shape(0) != logits.shape(0) || bins == 0 || betas.shape(0) != steps || betas.shape(1) != bins ||
                filled.shape(0) != steps || filled.shape(1) != bins)
                throw nb::value_error("the steps differ in shape, or a row has no share");
            const calibrant::Steps learnt{alphas.data(), betas.data(), filled.data(), std::int64_t(steps),
                                          std::int64_t(bins)};
            nb::gil_scoped_release release;
            calibrant::spread_confidence(logits.data(), shares.data(), learnt, start, margin, logits.shape(0),
                                         logits.shape(1), threads, out.data());
        },
        "logits"_a.noconvert(), "shares"_a, "alphas"_a, "betas"_a, "filled"_a, "start"_a.none(), "margin"_a, "threads"_a,
        "out"_a.noconvert());
    m.def(
        "keep_probabilities",
        [](Scores<T> logits, int noise, double scale, std::int64_t nodes, Threads threads) {
            if (noise < 0 || noise > 1) throw nb::value_error("noise must be 0 or 1");
            if (nodes < 2 || nodes > (1 << 16)) throw nb::value_error("nodes must be between 2 and 2^16");
            auto out = fresh<double>({logits.shape(0)});
            nb::gil_scoped_release release;
            calibrant::keep_probabilities(logits.data(), logits.shape(0), logits.shape(1),
                                          static_cast<calibrant::Noise>(noise), scale, nodes, threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "noise"_a, "scale"_a, "nodes"_a, "threads"_a);
}

}  // namespace

void add_perturbation(nb::module_& m) {
    bind_perturbation<float>(m);
    bind_perturbation<double>(m);
}

}  // namespace calibrant::python
