#include "bind.hpp"
#include "bins.hpp"
#include "resample.hpp"
#include "rows.hpp"
#include "sweep.hpp"
#include "triweight.hpp"

namespace calibrant::python {
namespace {

template <class T>
void bind_rows(nb::module_& m) {
    m.def(
        "row_tops",
        [](Scores<T> values, double tolerance, bool marginals, Threads threads) {
            auto top = fresh<double>({values.shape(0)}), squares = fresh<double>({values.shape(0)});
            auto column = fresh<std::int64_t>({values.shape(0)});
            std::int64_t wrong;
            {
                nb::gil_scoped_release release;
                wrong = calibrant::row_tops(values.data(), values.shape(0), values.shape(1), tolerance, marginals, threads,
                                            top.data(), column.data(), squares.data());
            }
            return std::make_tuple(top, column, squares, wrong);
        },
        "values"_a.noconvert(), "tolerance"_a, "marginals"_a, "threads"_a);
    m.def(
        "label_hits",
        [](Scores<T> values, Labels labels, std::int64_t most, double tolerance, bool marginals, Threads threads) {
            require_rows(values, labels, {});
            auto hits = fresh<bool>({values.shape(0)});
            std::int64_t wrong;
            {
                nb::gil_scoped_release release;
                wrong = calibrant::label_hits(values.data(), labels.data(), values.shape(0), values.shape(1), most,
                                              tolerance, marginals, threads, hits.data());
            }
            return std::make_tuple(hits, wrong);
        },
        "values"_a.noconvert(), "labels"_a, "most"_a, "tolerance"_a, "marginals"_a, "threads"_a);
}

template <class T>
void bind_class_bins(nb::module_& m) {
    m.def(
        "class_bins",
        [](Scores<T> values, Labels labels, Weights weights, Vector<double> edges, Vector<double> floors, Threads threads) {
            require_rows(values, labels, weights);
            if (edges.shape(0) < 2 || floors.shape(0) != values.shape(1))
                throw nb::value_error("edges need two ends, floors one value a class");
            const std::size_t k = values.shape(1), bins = edges.shape(0) - 1;
            auto out = fresh<double>({std::size_t(3), k, bins});
            nb::gil_scoped_release release;
            calibrant::class_bins(values.data(), labels.data(), data_of(weights), values.shape(0), values.shape(1),
                                  edges.data(), bins, floors.data(), threads, out.data());
            return out;
        },
        "values"_a.noconvert(), "labels"_a, "weights"_a.none(), "edges"_a, "floors"_a, "threads"_a);
}

void bind_pairs(nb::module_& m) {
    m.def(
        "pair_bins",
        [](Vector<double> scores, Vector<double> outcomes, Weights weights, Vector<double> edges) {
            if (outcomes.shape(0) != scores.shape(0) || (weights && weights->shape(0) != scores.shape(0)) || edges.shape(0) < 2)
                throw nb::value_error("scores, outcomes and weights differ in length, or there are no edges");
            auto out = fresh<double>({std::size_t(3), edges.shape(0) - 1});
            nb::gil_scoped_release release;
            calibrant::pair_bins(scores.data(), outcomes.data(), data_of(weights), scores.shape(0), edges.data(),
                                 edges.shape(0) - 1, out.data());
            return out;
        },
        "scores"_a, "outcomes"_a, "weights"_a.none(), "edges"_a);
    m.def(
        "triweight",
        [](Vector<double> places, Vector<double> points, Matrix<double> weights, double h) {
            if (weights.shape(1) != points.shape(0)) throw nb::value_error("points and weights differ in length");
            if (!(h > 0) || !std::isfinite(h)) throw nb::value_error("h must be positive");
            require_rising(points.data(), points.shape(0));
            auto out = fresh<double>({weights.shape(0), places.shape(0)});
            nb::gil_scoped_release release;
            calibrant::triweight(places.data(), places.shape(0), points.data(), weights.data(), points.shape(0),
                                 weights.shape(0), h, out.data());
            return out;
        },
        "places"_a, "points"_a, "weights"_a, "h"_a);
}

void bind_sweep(nb::module_& m) {
    m.def(
        "sweep",
        [](Vector<double> values, Matrix<double> prefix, bool equal_width, int norm) {
            if (prefix.shape(0) != 3 || prefix.shape(1) != values.shape(0) + 1 || values.shape(0) == 0)
                throw nb::value_error("prefix needs three rows, one longer than values");
            require_rising(values.data(), values.shape(0));
            require_rising(prefix.data(), prefix.shape(1));
            if (!all_finite(values) || !all_finite(prefix)) throw nb::value_error("values and prefix must be finite");
            calibrant::Swept swept;
            {
                nb::gil_scoped_release release;
                swept = calibrant::sweep(values.data(), prefix.data(), values.shape(0), equal_width, norm);
            }
            return std::make_tuple(swept.bins, swept.error);
        },
        "values"_a, "prefix"_a, "equal_width"_a, "norm"_a);
}

void bind_resample(nb::module_& m) {
    m.def(
        "resample_sums",
        [](Labels group, Vector<double> outcomes, Vector<double> excess, Weights weights, Matrix<double> rows,
           Vector<std::uint64_t> seeds, Threads threads, Output<double> mass, Output<double> events, Output<double> gaps,
           Output<double> row_sums) {
            if (mass.shape(1) == 0) throw nb::value_error("outputs must be (seeds, groups + 1)");
            const std::size_t n = group.shape(0), r = seeds.shape(0), m = mass.shape(1) - 1, q = rows.shape(1);
            require_places(group, n, m);
            if (outcomes.shape(0) != n || excess.shape(0) != n || rows.shape(0) != n || (weights && weights->shape(0) != n))
                throw nb::value_error("the rows differ in number");
            for (const auto& out : {mass, events, gaps})
                if (out.shape(0) != r || out.shape(1) != m + 1) throw nb::value_error("outputs must be (seeds, groups + 1)");
            if (row_sums.shape(0) != r || row_sums.shape(1) != q) throw nb::value_error("row_sums must be (seeds, columns)");
            nb::gil_scoped_release release;
            calibrant::resample_sums(group.data(), outcomes.data(), excess.data(), data_of(weights), rows.data(),
                                     seeds.data(), r, n, m, q, threads, mass.data(), events.data(), gaps.data(),
                                     row_sums.data());
        },
        "group"_a, "outcomes"_a, "excess"_a, "weights"_a.none(), "rows"_a, "seeds"_a, "threads"_a, "mass"_a.noconvert(),
        "events"_a.noconvert(), "gaps"_a.noconvert(), "row_sums"_a.noconvert());
}

}  // namespace

void add_metrics(nb::module_& m) {
    bind_rows<float>(m);
    bind_rows<double>(m);
    bind_class_bins<float>(m);
    bind_class_bins<double>(m);
    bind_pairs(m);
    bind_sweep(m);
    bind_resample(m);
}

}  // namespace calibrant::python
