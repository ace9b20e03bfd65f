#include "bind.hpp"
#include "binning.hpp"

namespace calibrant::python {
namespace {

void require_edges(std::size_t edges, std::size_t table) {
    if (table != edges + 1) throw nb::value_error("a table has one answer more than there are edges");
}

template <class T>
void bind_binning(nb::module_& m) {
    using Columns = std::optional<Vector<bool>>;
    m.def(
        "cell_sums",
        [](Matrix<T> logits, Labels labels, Weights weights, Columns columns, std::optional<Vector<std::int32_t>> first,
           std::optional<Vector<std::int32_t>> shift, std::int64_t cells, int threads) {
            require_rows(logits, labels, weights);
            if (columns && columns->shape(0) != logits.shape(1)) throw nb::value_error("columns differ in number");
            if (first.has_value() != shift.has_value() || (!first && cells != calibrant::kCoarse) ||
                (first && (first->shape(0) != calibrant::kCoarse || shift->shape(0) != calibrant::kCoarse)))
                throw nb::value_error("first and shift have one entry a coarse cell");
            for (std::int64_t c = 0; first && c < calibrant::kCoarse; ++c)
                if (shift->data()[c] < 0 || shift->data()[c] > 16 || first->data()[c] < 0 ||
                    first->data()[c] + (0xffff >> shift->data()[c]) >= cells)
                    throw nb::value_error("a cell lies outside");
            auto out = fresh<double>({std::size_t(cells), std::size_t(2)});
            nb::gil_scoped_release release;
            calibrant::cell_sums(logits.data(), labels.data(), data_of(weights), columns ? columns->data() : nullptr,
                                 logits.shape(0), logits.shape(1), first ? first->data() : nullptr,
                                 shift ? shift->data() : nullptr, cells, threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "labels"_a, "weights"_a.none(), "columns"_a.none(), "first"_a.none(), "shift"_a.none(),
        "cells"_a, "threads"_a);
    m.def(
        "bin_sums",
        [](Matrix<T> logits, Labels labels, Weights weights, Columns columns, std::optional<Matrix<T>> values,
           Vector<double> edges, int threads) {
            require_rows(logits, labels, weights);
            if (columns && columns->shape(0) != logits.shape(1)) throw nb::value_error("columns differ in number");
            if (values && (values->shape(0) != logits.shape(0) || values->shape(1) != logits.shape(1)))
                throw nb::value_error("values differ from logits in shape");
            auto out = fresh<double>({edges.shape(0) + 1, std::size_t(4)});
            nb::gil_scoped_release release;
            calibrant::bin_sums(logits.data(), labels.data(), data_of(weights), columns ? columns->data() : nullptr,
                                values ? values->data() : nullptr, logits.shape(0), logits.shape(1), edges.data(),
                                edges.shape(0), threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "labels"_a, "weights"_a.none(), "columns"_a.none(), "values"_a.noconvert().none(),
        "edges"_a, "threads"_a);
    m.def(
        "pair_sums",
        [](Vector<T> scores, Vector<bool> outcomes, Weights weights, std::optional<Vector<T>> values, Vector<double> edges) {
            const std::size_t n = scores.shape(0);
            if (outcomes.shape(0) != n || (weights && weights->shape(0) != n) || (values && values->shape(0) != n))
                throw nb::value_error("scores, outcomes, weights and values differ in length");
            auto out = fresh<double>({edges.shape(0) + 1, std::size_t(4)});
            nb::gil_scoped_release release;
            calibrant::pair_sums(scores.data(), outcomes.data(), data_of(weights), values ? values->data() : nullptr, n,
                                 edges.data(), edges.shape(0), out.data());
            return out;
        },
        "scores"_a.noconvert(), "outcomes"_a, "weights"_a.none(), "values"_a.noconvert().none(), "edges"_a);
    m.def(
        "bin_lift",
        [](Matrix<T> logits, Matrix<double> edges, Matrix<double> table, bool normalize, int threads, Output<T> out) {
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
        [](Vector<T> scores, Vector<double> edges, Vector<double> table, int threads,
           nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu> out) {
            if (out.shape(0) != scores.shape(0)) throw nb::value_error("out differs from scores in length");
            require_edges(edges.shape(0), table.shape(0));
            nb::gil_scoped_release release;
            calibrant::bin_look_up(scores.data(), scores.shape(0), edges.data(), table.data(), edges.shape(0), threads,
                                   out.data());
        },
        "scores"_a.noconvert(), "edges"_a, "table"_a, "threads"_a, "out"_a.noconvert());
}

}  // namespace

void add_binning(nb::module_& m) {
    bind_binning<float>(m);
    bind_binning<double>(m);
    m.def(
        "cell_loss",
        [](Vector<double> scores, Vector<double> weights, Vector<double> outcomes) {
            if (scores.shape(0) != weights.shape(0) || scores.shape(0) != outcomes.shape(0))
                throw nb::value_error("scores, weights and outcomes differ in length");
            nb::gil_scoped_release release;
            return calibrant::cell_loss(scores.data(), weights.data(), outcomes.data(), scores.shape(0));
        },
        "scores"_a, "weights"_a, "outcomes"_a);
}

}  // namespace calibrant::python
