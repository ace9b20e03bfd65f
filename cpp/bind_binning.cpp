#include <algorithm>
#include <cstdint>

#include "bind.hpp"
#include "binning.hpp"
#include "one_score.hpp"
#include "regression.hpp"

namespace calibrant::python {
namespace {

void require_edges(std::size_t edges, std::size_t table) {
    if (table != edges + 1) throw nb::value_error("a table has one answer more than there are edges");
}

// Each class belongs to a group below the count, or to none.
void require_groups(const Labels& groups, std::size_t k, std::int64_t count) {
    bool good = groups.shape(0) == k;
    for (std::size_t j = 0; good && j < k; ++j) good = groups.data()[j] < count;
    if (!good) throw nb::value_error("groups do not fit the classes");
}

using Places = std::optional<Vector<std::int32_t>>;

using Counts = nb::ndarray<std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// One label of two a row, and counts that no row can lie outside of.
void require_two_classes(const Labels& labels, std::size_t rows) {
    if (labels.shape(0) != rows) throw nb::value_error("scores and labels differ in length");
    if (!all_between(labels, 0, 2)) throw nb::value_error("a label is not 0 or 1");
}

template <class Counted>
void require_glances(const Counted& counts, std::size_t there) {
    if (counts.shape(0) != std::size_t(calibrant::kGlances) || counts.shape(1) != 2)
        throw nb::value_error("counts are of 2^20 cells and two labels");
    if (there != std::size_t(calibrant::kCoarse)) throw nb::value_error("there are 2^16 marks");
}

// The cells are those that a score can have, and no more: their number is that of sums in memory.
void require_cells(const Places& first, const Places& shift, std::int64_t coarse, int bits, std::int64_t cells) {
    if (first.has_value() != shift.has_value() || (!first && cells != coarse) ||
        (first && (first->shape(0) != std::size_t(coarse) || shift->shape(0) != std::size_t(coarse))))
        throw nb::value_error("first and shift have one entry a coarse cell");
    const std::uint32_t widest = (std::uint32_t(1) << (32 - bits)) - 1;
    std::int64_t last = 0;
    std::int32_t outside = 0;
    for (std::int64_t c = 0; first && c < coarse; ++c) {  // without a branch: there are millions
        const std::int32_t begin = first->data()[c], shift_of = shift->data()[c];
        outside |= begin | shift_of | (31 - (shift_of & INT32_MAX));  // negative where one of them is
        last = std::max(last, begin + std::int64_t(widest >> (shift_of & 31)));
    }
    const bool good = outside >= 0;
    if (!good || (first && last + 1 != cells)) throw nb::value_error("a cell lies outside, or no score has it");
}

template <class T>
void bind_binning(nb::module_& m) {
    m.def(
        "cell_sums",
        [](Scores<T> logits, Labels labels, Weights weights, Labels groups, std::int64_t group_count, int bits, Places first,
           Places shift, Threads threads, Output<double> out) {
            require_rows(logits, labels, weights);
            if (bits < 1 || bits > 16 || group_count < 1 || group_count >= std::int64_t(1) << (31 - bits))
                throw nb::value_error("too many coarse cells");
            require_groups(groups, logits.shape(1), group_count);
            require_cells(first, shift, group_count << bits, bits, out.shape(0));
            if (out.shape(1) != 2) throw nb::value_error("a cell has two sums");
            nb::gil_scoped_release release;
            calibrant::cell_sums(logits.data(), labels.data(), data_of(weights), groups.data(), logits.shape(0),
                                 logits.shape(1), bits, first ? first->data() : nullptr, shift ? shift->data() : nullptr,
                                 out.shape(0), threads, out.data());
        },
        "logits"_a.noconvert(), "labels"_a, "weights"_a.none(), "groups"_a, "group_count"_a, "bits"_a, "first"_a.none(),
        "shift"_a.none(), "threads"_a, "out"_a.noconvert());
    m.def(
        "bin_sums",
        [](Scores<T> logits, Labels labels, Weights weights, Labels groups, std::optional<Scores<T>> values,
           Matrix<double> edges, Threads threads) {
            require_rows(logits, labels, weights);
            require_groups(groups, logits.shape(1), edges.shape(0));
            if (edges.shape(0) == 0) throw nb::value_error("there are no edges");
            if (values && (values->shape(0) != logits.shape(0) || values->shape(1) != logits.shape(1)))
                throw nb::value_error("values differ from logits in shape");
            auto out = fresh<double>({edges.shape(0), edges.shape(1) + 1, std::size_t(4)});
            nb::gil_scoped_release release;
            calibrant::bin_sums(logits.data(), labels.data(), data_of(weights), groups.data(),
                                values ? values->data() : nullptr, logits.shape(0), logits.shape(1), edges.data(),
                                edges.shape(0), edges.shape(1), threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "labels"_a, "weights"_a.none(), "groups"_a, "values"_a.noconvert().none(), "edges"_a,
        "threads"_a);
    m.def(
        "bin_lift",
        [](Scores<T> logits, Matrix<double> edges, Matrix<double> table, bool normalize, Threads threads, Output<T> out) {
            require_same_shape(logits, out);
            require_edges(edges.shape(1), table.shape(1));
            if (edges.shape(0) != table.shape(0) || (edges.shape(0) != 1 && edges.shape(0) != logits.shape(1)))
                throw nb::value_error("one table, or one a class");
            nb::gil_scoped_release release;
            calibrant::bin_lift(logits.data(), logits.shape(0), logits.shape(1), edges.data(), table.data(),
                                edges.shape(0), edges.shape(1), normalize, threads, out.data());
        },
        "logits"_a.noconvert(), "edges"_a, "table"_a, "normalize"_a, "threads"_a, "out"_a.noconvert());
    m.def(
        "bin_look_up",
        [](Vector<T> scores, Vector<double> edges, Vector<double> table, Threads threads,
           nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu> out) {
            if (out.shape(0) != scores.shape(0)) throw nb::value_error("out differs from scores in length");
            require_edges(edges.shape(0), table.shape(0));
            nb::gil_scoped_release release;
            calibrant::bin_look_up(scores.data(), scores.shape(0), edges.data(), table.data(), edges.shape(0), threads,
                                   out.data());
        },
        "scores"_a.noconvert(), "edges"_a, "table"_a, "threads"_a, "out"_a.noconvert());
}

template <class T>
void bind_score_cells(nb::module_& m) {
    m.def(
        "score_cells",
        [](Vector<T> odds, Labels labels, nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> cell_keys,
           Counts counts, nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> there) {
            require_two_classes(labels, odds.shape(0));
            if (cell_keys.shape(0) != odds.shape(0)) throw nb::value_error("scores and their keys differ in length");
            require_glances(counts, there.shape(0));
            nb::gil_scoped_release release;
            calibrant::score_cells(odds.data(), labels.data(), odds.shape(0), cell_keys.data(), counts.data(),
                                   there.data());
        },
        "odds"_a.noconvert(), "labels"_a, "cell_keys"_a.noconvert(), "counts"_a.noconvert(),
        "there"_a.noconvert());
}

void bind_folds(nb::module_& m) {
    m.def(
        "split_glances",
        [](Matrix<std::int32_t> counts, Vector<std::uint8_t> there, std::int64_t folds) {
            require_glances(counts, there.shape(0));
            if (folds < 2) throw nb::value_error("there are two folds or more");
            auto coarse = fresh<double>({std::size_t(calibrant::kCoarse), std::size_t(2)});
            auto held = fresh<std::int32_t>({std::size_t(calibrant::kCoarse)});
            std::int64_t most = 0;
            {
                nb::gil_scoped_release release;
                most = calibrant::split_glances(counts.data(), there.data(), folds, coarse.data(), held.data());
            }
            return std::make_tuple(coarse, held, most);
        },
        "counts"_a.noconvert(), "there"_a.noconvert(), "folds"_a);
    m.def(
        "fold_cells",
        [](Vector<std::int32_t> cell_keys, Labels labels, Vector<std::int32_t> first, Vector<std::int32_t> shift,
           Vector<std::int32_t> held, Counts out) {
            require_two_classes(labels, cell_keys.shape(0));
            require_cells(first, shift, calibrant::kCoarse, 16, out.shape(0));
            if (held.shape(0) != std::size_t(calibrant::kCoarse)) throw nb::value_error("held has one entry a coarse cell");
            if (out.shape(1) != 4) throw nb::value_error("a cell has four counts");
            nb::gil_scoped_release release;
            calibrant::fold_cells(cell_keys.data(), labels.data(), cell_keys.shape(0), first.data(), shift.data(),
                                  held.data(), out.data());
        },
        "cell_keys"_a.noconvert(), "labels"_a, "first"_a.noconvert(), "shift"_a.noconvert(), "held"_a.noconvert(),
        "out"_a.noconvert());
}

}  // namespace

void add_binning(nb::module_& m) {
    bind_binning<float>(m);
    bind_binning<double>(m);
    bind_score_cells<float>(m);
    bind_score_cells<double>(m);
    bind_folds(m);
    m.def(
        "cell_loss",
        [](Vector<double> scores, Vector<double> weights, Vector<double> outcomes) {
            if (scores.shape(0) != weights.shape(0) || scores.shape(0) != outcomes.shape(0))
                throw nb::value_error("scores, weights and outcomes differ in length");
            nb::gil_scoped_release release;
            return calibrant::cell_loss(scores.data(), weights.data(), outcomes.data(), scores.shape(0));
        },
        "scores"_a, "weights"_a, "outcomes"_a);
    m.def(
        "cell_regression",
        [](Matrix<double> features, Vector<double> weights, Vector<double> outcomes, Vector<double> theta) {
            const std::size_t d = features.shape(0), n = features.shape(1);
            if (weights.shape(0) != n || outcomes.shape(0) != n || theta.shape(0) != d)
                throw nb::value_error("features, weights, outcomes and theta do not fit one another");
            auto out = fresh<double>({1 + d + d * d});
            nb::gil_scoped_release release;
            calibrant::cell_regression(features.data(), weights.data(), outcomes.data(), theta.data(), n, d, out.data());
            return out;
        },
        "features"_a, "weights"_a, "outcomes"_a, "theta"_a);
}

}  // namespace calibrant::python
