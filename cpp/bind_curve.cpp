#include "bind.hpp"
#include "curve.hpp"

namespace calibrant::python {
namespace {

template <class T>
void require_curve(const Matrix<T>& logits, const Vector<double>& places, const Vector<double>& knots,
                   const Matrix<double>& values) {
    if (places.shape(0) != logits.shape(0)) throw nb::value_error("logits and places differ in length");
    if (knots.shape(0) < 2 || values.shape(0) < 1 || values.shape(1) != knots.shape(0))
        throw nb::value_error("values must be (stations, knots), with at least two knots");
    for (std::size_t i = 0; i < places.shape(0); ++i)
        if (!(places.data()[i] >= 0 && places.data()[i] <= values.shape(0) - 1.0))
            throw nb::value_error("a place is outside the stations");
}

calibrant::Curve curve_of(const Vector<double>& knots, const Matrix<double>& values, double beta) {
    return {knots.data(), std::int64_t(knots.shape(0)), values.data(), std::int64_t(values.shape(0)), beta};
}

template <class T>
void bind_curve(nb::module_& m) {
    m.def(
        "curve_sums",
        [](Matrix<T> logits, Labels labels, Weights weights, Vector<double> places, Vector<double> knots,
           Matrix<double> values, double beta, int threads) {
            require_rows(logits, labels, weights);
            require_curve(logits, places, knots, values);
            const auto curve = curve_of(knots, values, beta);
            auto out = fresh<double>({std::size_t(calibrant::kCurveFolds), std::size_t(calibrant::curve_width(curve))});
            nb::gil_scoped_release release;
            calibrant::curve_sums(logits.data(), labels.data(), data_of(weights), places.data(), logits.shape(0),
                                  logits.shape(1), curve, threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "labels"_a, "weights"_a.none(), "places"_a, "knots"_a, "values"_a, "beta"_a, "threads"_a);
    m.def(
        "curve_apply",
        [](Matrix<T> logits, Vector<double> places, Vector<double> knots, Matrix<double> values, double beta, int threads,
           Output<T> out) {
            require_curve(logits, places, knots, values);
            if (out.shape(0) != logits.shape(0) || out.shape(1) != logits.shape(1))
                throw nb::value_error("out differs from logits in shape");
            const auto curve = curve_of(knots, values, beta);
            nb::gil_scoped_release release;
            calibrant::curve_apply(logits.data(), places.data(), logits.shape(0), logits.shape(1), curve, threads,
                                   out.data());
        },
        "logits"_a.noconvert(), "places"_a, "knots"_a, "values"_a, "beta"_a, "threads"_a, "out"_a.noconvert());
}

}  // namespace

void add_curve(nb::module_& m) {
    bind_curve<float>(m);
    bind_curve<double>(m);
}

}  // namespace calibrant::python
