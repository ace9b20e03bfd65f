#include "bind.hpp"
#include "binwise.hpp"
#include "curve.hpp"

namespace calibrant::python {
namespace {

calibrant::Curve curve_of(const Vector<double>& knots, const Vector<double>& stations, const Matrix<double>& values,
                          double beta) {
    if (knots.shape(0) < 2 || values.shape(1) != knots.shape(0))
        throw nb::value_error("values must be (stations, knots), with at least two knots");
    if (stations.shape(0) < 1 || values.shape(0) != stations.shape(0))
        throw nb::value_error("values must be (stations, knots), with at least one station");
    return {knots.data(), std::int64_t(knots.shape(0)), stations.data(), values.data(), std::int64_t(values.shape(0)), beta};
}

template <class T>
void bind_curve(nb::module_& m) {
    m.def(
        "curve_sums",
        [](Scores<T> logits, Labels labels, Weights weights, Vector<double> knots, Vector<double> stations,
           Matrix<double> values, double beta, Threads threads) {
            require_rows(logits, labels, weights);
            const auto curve = curve_of(knots, stations, values, beta);
            auto out = fresh<double>({std::size_t(calibrant::curve_width(curve))});
            nb::gil_scoped_release release;
            calibrant::curve_sums(logits.data(), labels.data(), data_of(weights), logits.shape(0), logits.shape(1), curve,
                                  threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "labels"_a, "weights"_a.none(), "knots"_a, "stations"_a, "values"_a, "beta"_a, "threads"_a);
    m.def(
        "largest_surprise",
        [](Scores<T> logits, Weights weights, double beta, Threads threads) {
            if (weights && weights->shape(0) != logits.shape(0)) throw nb::value_error("logits and weights differ in length");
            nb::gil_scoped_release release;
            return calibrant::largest_surprise(logits.data(), data_of(weights), logits.shape(0), logits.shape(1), beta,
                                               threads);
        },
        "logits"_a.noconvert(), "weights"_a.none(), "beta"_a, "threads"_a);
    m.def(
        "curve_apply",
        [](Scores<T> logits, Vector<double> knots, Vector<double> stations, Matrix<double> values, double beta, Threads threads,
           Output<T> out) {
            require_same_shape(logits, out);
            const auto curve = curve_of(knots, stations, values, beta);
            nb::gil_scoped_release release;
            calibrant::curve_apply(logits.data(), logits.shape(0), logits.shape(1), curve, threads, out.data());
        },
        "logits"_a.noconvert(), "knots"_a, "stations"_a, "values"_a, "beta"_a, "threads"_a, "out"_a.noconvert());
}

template <class T>
void bind_binwise(nb::module_& m) {
    m.def(
        "top_log_odds",
        [](Scores<T> logits, Threads threads) {
            auto out = fresh<double>({logits.shape(0)});
            nb::gil_scoped_release release;
            calibrant::top_log_odds(logits.data(), logits.shape(0), logits.shape(1), threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "threads"_a);
    m.def(
        "binwise_apply",
        [](Scores<T> logits, Vector<double> edges, Vector<double> betas, Threads threads, Output<T> out) {
            require_same_shape(logits, out);
            if (betas.shape(0) != edges.shape(0) + 1) throw nb::value_error("there must be one more temperature than edges");
            nb::gil_scoped_release release;
            calibrant::binwise_apply(logits.data(), logits.shape(0), logits.shape(1), edges.data(), betas.data(),
                                     betas.shape(0), threads, out.data());
        },
        "logits"_a.noconvert(), "edges"_a, "betas"_a, "threads"_a, "out"_a.noconvert());
}

}  // namespace

void add_curve(nb::module_& m) {
    bind_curve<float>(m);
    bind_curve<double>(m);
    bind_binwise<float>(m);
    bind_binwise<double>(m);
}

}  // namespace calibrant::python
