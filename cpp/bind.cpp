// The one file that knows Python: shapes in, arrays out, the GIL released while a kernel runs.
// Callers (src/calibrant) have validated already; the checks here only keep a wrong call from touching foreign memory.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <memory>
#include <optional>

#include "curve.hpp"
#include "isotonic.hpp"
#include "lift.hpp"
#include "logistic.hpp"
#include "mixture.hpp"
#include "metrics.hpp"
#include "linear.hpp"
#include "resample.hpp"
#include "scan.hpp"
#include "temperature.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
// Large results are written into an array the caller allocates: NumPy asks the system for huge pages, we would not.
template <class T>
using Output = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Labels = Vector<std::int64_t>;
using Weights = std::optional<Vector<double>>;

// A fresh C-ordered NumPy array for small results; memory is left unset.
template <class T>
nb::ndarray<nb::numpy, T> fresh(std::initializer_list<std::size_t> shape) {
    std::size_t size = 1;
    for (std::size_t s : shape) size *= s;
    T* data = static_cast<T*>(::operator new(sizeof(T) * (size ? size : 1)));
    nb::capsule owner(data, [](void* p) noexcept { ::operator delete(p); });
    return nb::ndarray<nb::numpy, T>(data, shape, owner);
}

template <class T>
void require_rows(const Matrix<T>& logits, const Labels& labels, const Weights& weights) {
    if (labels.shape(0) != logits.shape(0) || (weights && weights->shape(0) != logits.shape(0)))
        throw nb::value_error("logits, labels and weights differ in length");
    const std::int64_t k = logits.shape(1);
    for (std::size_t i = 0; i < labels.shape(0); ++i)
        if (labels.data()[i] < 0 || labels.data()[i] >= k) throw nb::value_error("a label is outside the columns");
}

const double* data_of(const Weights& weights) { return weights ? weights->data() : nullptr; }

template <class T>
void bind_metrics(nb::module_& m) {
    m.def(
        "row_tops",
        [](Matrix<T> values, double tolerance, bool marginals, int threads) {
            auto top = fresh<double>({values.shape(0)}), squares = fresh<double>({values.shape(0)});
            auto column = fresh<std::int64_t>({values.shape(0)});
            std::int64_t wrong;
            {
                nb::gil_scoped_release release;
                wrong = calibrant::row_tops(values.data(), values.shape(0), values.shape(1), tolerance, marginals, threads,
                                            top.data(), column.data(), squares.data());
            }
            return nb::make_tuple(top, column, squares, wrong);
        },
        "values"_a.noconvert(), "tolerance"_a, "marginals"_a, "threads"_a);
    m.def(
        "class_bins",
        [](Matrix<T> values, Labels labels, Weights weights, Vector<double> edges, Vector<double> floors, int threads) {
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
            calibrant::Swept swept;
            {
                nb::gil_scoped_release release;
                swept = calibrant::sweep(values.data(), prefix.data(), values.shape(0), equal_width, norm);
            }
            return nb::make_tuple(swept.bins, swept.error);
        },
        "values"_a, "prefix"_a, "equal_width"_a, "norm"_a);
}

template <class T>
void bind_scan(nb::module_& m) {
    m.def(
        "scan",
        [](Matrix<T> values, double tolerance, int threads) {
            calibrant::Findings found;
            {
                nb::gil_scoped_release release;
                found = calibrant::scan(values.data(), values.shape(0), values.shape(1), tolerance, threads);
            }
            return nb::make_tuple(found.nan, found.plus_infinity, found.minus_infinity, found.no_finite, found.off_simplex);
        },
        "values"_a.noconvert(), "tolerance"_a, "threads"_a);
}

template <class T>
void bind_temperature(nb::module_& m) {
    m.def(
        "temperature_sums",
        [](Matrix<T> logits, Labels labels, Weights weights, double beta, int loss, int threads) {
            require_rows(logits, labels, weights);
            auto out = fresh<double>({std::size_t(calibrant::kFolds), std::size_t(calibrant::kSums)});
            nb::gil_scoped_release release;
            calibrant::temperature_sums(logits.data(), labels.data(), data_of(weights), logits.shape(0), logits.shape(1),
                                        beta, static_cast<calibrant::Loss>(loss), threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "labels"_a, "weights"_a.none(), "beta"_a, "loss"_a, "threads"_a);
    m.def(
        "temperature_rows",
        [](Matrix<T> logits, Labels labels, double beta, int threads) {
            require_rows(logits, labels, std::nullopt);
            auto out = fresh<double>({logits.shape(0), std::size_t(3)});
            nb::gil_scoped_release release;
            calibrant::temperature_rows(logits.data(), labels.data(), logits.shape(0), logits.shape(1), beta, threads,
                                        out.data());
            return out;
        },
        "logits"_a.noconvert(), "labels"_a, "beta"_a, "threads"_a);
    m.def(
        "ensemble_sums",
        [](Matrix<T> logits, Labels labels, Weights weights, double beta, int threads) {
            require_rows(logits, labels, weights);
            auto out = fresh<double>({std::size_t(calibrant::kEnsembleSums)});
            nb::gil_scoped_release release;
            calibrant::ensemble_sums(logits.data(), labels.data(), data_of(weights), logits.shape(0), logits.shape(1),
                                     beta, threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "labels"_a, "weights"_a.none(), "beta"_a, "threads"_a);
    m.def(
        "ensemble_apply",
        [](Matrix<T> logits, double beta, double w_scaled, double w_identity, double w_uniform, int threads, Output<T> out) {
            if (out.shape(0) != logits.shape(0) || out.shape(1) != logits.shape(1))
                throw nb::value_error("out differs from logits in shape");
            const double w[3] = {w_scaled, w_identity, w_uniform};
            nb::gil_scoped_release release;
            calibrant::ensemble_apply(logits.data(), logits.shape(0), logits.shape(1), beta, w, threads, out.data());
        },
        "logits"_a.noconvert(), "beta"_a, "w_scaled"_a, "w_identity"_a, "w_uniform"_a, "threads"_a, "out"_a.noconvert());
}

void bind_mixture(nb::module_& m) {
    m.def(
        "mixture_sums",
        [](Matrix<double> columns, Weights weights, Vector<double> w, int threads) {
            const std::size_t parts = columns.shape(1);
            if (w.shape(0) != parts || (weights && weights->shape(0) != columns.shape(0)))
                throw nb::value_error("columns, weights and w do not fit");
            auto out = fresh<double>({1 + parts + parts * parts});
            nb::gil_scoped_release release;
            calibrant::mixture_sums(columns.data(), data_of(weights), columns.shape(0), parts, w.data(), threads, out.data());
            return out;
        },
        "columns"_a.noconvert(), "weights"_a.none(), "w"_a, "threads"_a);
}

template <class T>
void require_same_shape(const Matrix<T>& values, const Output<T>& out) {
    if (out.shape(0) != values.shape(0) || out.shape(1) != values.shape(1))
        throw nb::value_error("the output differs from the scores in shape");
}

template <class T>
void bind_lift(nb::module_& m) {
    m.def(
        "log_odds",
        [](Matrix<T> logits, int threads, Output<T> out) {
            require_same_shape(logits, out);
            nb::gil_scoped_release release;
            calibrant::log_odds(logits.data(), logits.shape(0), logits.shape(1), threads, out.data());
        },
        "logits"_a.noconvert(), "threads"_a, "out"_a.noconvert());
    m.def(
        "normalize_rows",
        [](Matrix<T> logits, bool keep_top, int threads, Output<T> marginals) {
            require_same_shape(logits, marginals);
            nb::gil_scoped_release release;
            calibrant::normalize_rows(logits.data(), logits.shape(0), logits.shape(1), keep_top, threads, marginals.data());
        },
        "logits"_a.noconvert(), "keep_top"_a, "threads"_a, "marginals"_a.noconvert());
}

// starts must rise from 0 to the number of values, and groups lie among them.
inline void require_groups(const Labels& groups, const Labels& starts, std::size_t values, std::size_t k) {
    const std::int64_t count = static_cast<std::int64_t>(starts.shape(0)) - 1;
    bool good = count >= 1 && starts.data()[0] == 0 && starts.data()[count] == static_cast<std::int64_t>(values) &&
                groups.shape(0) == k;
    for (std::int64_t g = 0; good && g < count; ++g) good = starts.data()[g] <= starts.data()[g + 1];
    for (std::size_t j = 0; good && j < k; ++j) good = groups.data()[j] >= 0 && groups.data()[j] < count;
    if (!good) throw nb::value_error("groups, starts and values do not fit one another");
}

template <class T>
void bind_isotonic(nb::module_& m) {
    m.def(
        "label_log_odds",
        [](Matrix<T> logits, Labels labels, int threads) {
            require_rows(logits, labels, std::nullopt);
            auto out = fresh<T>({logits.shape(0)});
            nb::gil_scoped_release release;
            calibrant::label_log_odds(logits.data(), labels.data(), logits.shape(0), logits.shape(1), threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "labels"_a, "threads"_a);
    m.def(
        "negatives_between",
        [](Matrix<T> logits, Labels labels, Weights weights, Labels groups, Labels starts, Vector<T> positives,
           double limit, int threads) {
            require_rows(logits, labels, weights);
            require_groups(groups, starts, positives.shape(0), logits.shape(1));
            const std::size_t count = starts.shape(0) - 1, size = positives.shape(0) + count;
            auto counts = fresh<double>({size});
            auto largest = fresh<T>({size});
            {
                nb::gil_scoped_release release;
                calibrant::negatives_between(logits.data(), labels.data(), data_of(weights), logits.shape(0), logits.shape(1),
                                             groups.data(), starts.data(), count, positives.data(), static_cast<T>(limit), threads,
                                             counts.data(), largest.data());
            }
            return nb::make_tuple(counts, largest);
        },
        "logits"_a.noconvert(), "labels"_a, "weights"_a.none(), "groups"_a, "starts"_a, "positives"_a.noconvert(),
        "limit"_a, "threads"_a);
    m.def(
        "isotonic_apply",
        [](Matrix<T> scores, Labels groups, Labels starts, Vector<T> knots, Vector<double> values, bool steps,
           double epsilon, int threads, Output<T> out) {
            require_same_shape(scores, out);
            require_groups(groups, starts, knots.shape(0), scores.shape(1));
            const std::size_t count = starts.shape(0) - 1;
            for (std::size_t g = 0; g < count; ++g)
                if (starts.data()[g] == starts.data()[g + 1]) throw nb::value_error("a group has no knots");
            if (values.shape(0) != knots.shape(0)) throw nb::value_error("knots and values differ in length");
            nb::gil_scoped_release release;
            calibrant::isotonic_apply(scores.data(), scores.shape(0), scores.shape(1), groups.data(), starts.data(), count,
                                      knots.data(), values.data(), steps, epsilon, threads, out.data());
        },
        "scores"_a.noconvert(), "groups"_a, "starts"_a, "knots"_a.noconvert(), "values"_a, "steps"_a, "epsilon"_a,
        "threads"_a, "out"_a.noconvert());
}

template <class T>
void bind_logistic(nb::module_& m) {
    m.def(
        "logistic_sums",
        [](Matrix<T> logits, Labels labels, Weights weights, Labels groups, Matrix<double> coefficients,
           Matrix<double> targets, int threads) {
            require_rows(logits, labels, weights);
            const std::int64_t count = coefficients.shape(0);
            bool good = coefficients.shape(1) == 3 && targets.shape(0) == coefficients.shape(0) && targets.shape(1) == 2 &&
                        groups.shape(0) == logits.shape(1);
            for (std::size_t j = 0; good && j < groups.shape(0); ++j) good = groups.data()[j] < count;
            if (!good) throw nb::value_error("groups, coefficients and targets do not fit one another");
            auto out = fresh<double>({std::size_t(count), std::size_t(calibrant::kLogisticSums)});
            nb::gil_scoped_release release;
            calibrant::logistic_sums(logits.data(), labels.data(), data_of(weights), logits.shape(0), logits.shape(1),
                                     groups.data(), count, coefficients.data(), targets.data(), threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "labels"_a, "weights"_a.none(), "groups"_a, "coefficients"_a, "targets"_a, "threads"_a);
}

void bind_pooling(nb::module_& m) {
    m.def(
        "pool_adjacent",
        [](Vector<double> sums, Vector<double> weights, Labels starts) {
            const std::size_t count = starts.shape(0) - 1;
            if (starts.shape(0) < 2 || sums.shape(0) != weights.shape(0) || starts.data()[0] != 0 ||
                starts.data()[count] != static_cast<std::int64_t>(sums.shape(0)))
                throw nb::value_error("sums, weights and starts do not fit one another");
            auto levels = fresh<double>({sums.shape(0)});
            nb::gil_scoped_release release;
            calibrant::pool_adjacent(sums.data(), weights.data(), starts.data(), count, levels.data());
            return levels;
        },
        "sums"_a, "weights"_a, "starts"_a);
}

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

void require_centres(const Matrix<double>& centres, std::size_t n) {
    if (centres.shape(0) != n || centres.shape(1) != std::size_t(calibrant::kCentres))
        throw nb::value_error("centres must have two columns and one row for each row of the logits");
}

template <class T>
void require_columns(const Matrix<T>& logits, const Vector<double>& values) {
    if (values.shape(0) != logits.shape(1)) throw nb::value_error("one value a column is needed");
}

template <class T>
void require_weights(const Matrix<T>& logits, const Matrix<double>& weights, double scale) {
    if (weights.shape(0) != logits.shape(1) + (scale != 0) || weights.shape(1) != logits.shape(1))
        throw nb::value_error("weights must have a row for each feature and a column for each class");
}

template <class T>
void bind_linear(nb::module_& m) {
    m.def(
        "linear_centres",
        [](Matrix<T> logits, double beta, double floor, int threads) {
            auto out = fresh<double>({logits.shape(0), std::size_t(calibrant::kCentres)});
            nb::gil_scoped_release release;
            calibrant::linear_centres(logits.data(), logits.shape(0), logits.shape(1), beta, floor, threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "beta"_a, "floor"_a, "threads"_a);
    m.def(
        "linear_features",
        [](Matrix<T> logits, Matrix<double> centres, double beta, double floor, bool centred, int threads, Output<T> out) {
            require_same_shape(logits, out);
            require_centres(centres, logits.shape(0));
            nb::gil_scoped_release release;
            calibrant::linear_features(logits.data(), centres.data(), logits.shape(0), logits.shape(1),
                                       {beta, floor, centred}, threads, out.data());
        },
        "logits"_a.noconvert(), "centres"_a, "beta"_a, "floor"_a, "centred"_a, "threads"_a, "out"_a.noconvert());
    m.def(
        "vector_sums",
        [](Matrix<T> logits, Matrix<double> centres, Labels labels, Weights weights, double beta, double floor, bool centred,
           Vector<double> d, Vector<double> b, bool curvature, int threads) {
            require_rows(logits, labels, weights);
            require_centres(centres, logits.shape(0));
            require_columns(logits, d);
            require_columns(logits, b);
            auto out = fresh<double>({std::size_t(calibrant::kVectorRows), logits.shape(1)});
            double loss;
            {
                nb::gil_scoped_release release;
                loss = calibrant::vector_sums(logits.data(), centres.data(), labels.data(), data_of(weights),
                                              logits.shape(0), logits.shape(1), {beta, floor, centred}, d.data(), b.data(),
                                              curvature, threads, out.data());
            }
            return nb::make_tuple(loss, out);
        },
        "logits"_a.noconvert(), "centres"_a, "labels"_a, "weights"_a.none(), "beta"_a, "floor"_a, "centred"_a, "d"_a, "b"_a,
        "curvature"_a, "threads"_a);
    m.def(
        "matrix_sums",
        [](Matrix<T> logits, Matrix<double> centres, Labels labels, Weights row_weights, double beta, double floor,
           bool centred, double mean, double scale, Matrix<double> weights, Vector<double> b, int threads) {
            require_rows(logits, labels, row_weights);
            require_centres(centres, logits.shape(0));
            require_weights(logits, weights, scale);
            require_columns(logits, b);
            auto out = fresh<double>({weights.shape(0) + 1, logits.shape(1)});
            double loss;
            {
                nb::gil_scoped_release release;
                loss = calibrant::matrix_sums(logits.data(), centres.data(), labels.data(), data_of(row_weights),
                                              logits.shape(0), logits.shape(1), {beta, floor, centred}, {mean, scale},
                                              weights.data(), b.data(), threads, out.data());
            }
            return nb::make_tuple(loss, out);
        },
        "logits"_a.noconvert(), "centres"_a, "labels"_a, "row_weights"_a.none(), "beta"_a, "floor"_a, "centred"_a, "mean"_a,
        "scale"_a, "weights"_a, "b"_a, "threads"_a);
    m.def(
        "matrix_blocks",
        [](Matrix<T> logits, Matrix<double> centres, Weights row_weights, double beta, double floor, bool centred,
           double mean, double scale, Matrix<double> weights, Vector<double> b, int threads) {
            if (row_weights && row_weights->shape(0) != logits.shape(0)) throw nb::value_error("row_weights differ in length");
            require_centres(centres, logits.shape(0));
            require_weights(logits, weights, scale);
            require_columns(logits, b);
            const std::size_t side = weights.shape(0) + 1;
            auto out = fresh<double>({logits.shape(1), side, side});
            nb::gil_scoped_release release;
            calibrant::matrix_blocks(logits.data(), centres.data(), data_of(row_weights), logits.shape(0), logits.shape(1),
                                     {beta, floor, centred}, {mean, scale}, weights.data(), b.data(), threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "centres"_a, "row_weights"_a.none(), "beta"_a, "floor"_a, "centred"_a, "mean"_a, "scale"_a,
        "weights"_a, "b"_a, "threads"_a);
    m.def(
        "vector_apply",
        [](Matrix<T> logits, Matrix<double> centres, double beta, double floor, bool centred, Vector<double> d,
           Vector<double> b, int threads, Output<T> out) {
            require_same_shape(logits, out);
            require_centres(centres, logits.shape(0));
            require_columns(logits, d);
            require_columns(logits, b);
            nb::gil_scoped_release release;
            calibrant::vector_apply(logits.data(), centres.data(), logits.shape(0), logits.shape(1),
                                    {beta, floor, centred}, d.data(), b.data(), threads, out.data());
        },
        "logits"_a.noconvert(), "centres"_a, "beta"_a, "floor"_a, "centred"_a, "d"_a, "b"_a, "threads"_a,
        "out"_a.noconvert());
    m.def(
        "softmax_residual",
        [](Output<T> scores, Matrix<T> logits, Matrix<double> centres, std::optional<Labels> labels, Weights weights,
           double beta, Vector<double> b, int threads) {
            require_same_shape(logits, scores);
            require_centres(centres, logits.shape(0));
            require_columns(logits, b);
            if (labels) require_rows(logits, *labels, weights);
            auto losses = fresh<double>({labels ? logits.shape(0) : 0});
            nb::gil_scoped_release release;
            calibrant::softmax_residual(scores.data(), logits.data(), centres.data(), labels ? labels->data() : nullptr,
                                        labels ? data_of(weights) : nullptr, logits.shape(0), logits.shape(1), beta,
                                        b.data(), threads, losses.data());
            return losses;
        },
        "scores"_a.noconvert(), "logits"_a.noconvert(), "centres"_a, "labels"_a.none(), "weights"_a.none(), "beta"_a, "b"_a,
        "threads"_a);
}

void bind_resample(nb::module_& m) {
    m.def(
        "resample_sums",
        [](Labels group, Vector<double> outcomes, Vector<double> excess, Weights weights, Matrix<double> rows,
           Vector<std::uint64_t> seeds, int threads, Output<double> mass, Output<double> events, Output<double> gaps,
           Output<double> row_sums) {
            const std::size_t n = group.shape(0), r = seeds.shape(0), m = mass.shape(1) - 1, q = rows.shape(1);
            for (std::size_t i = 0; i < n; ++i)
                if (group.data()[i] < 0 || group.data()[i] >= std::int64_t(m)) throw nb::value_error("no such group");
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

NB_MODULE(_core, m) {
    m.doc() = "Compiled kernels. Arrays in, arrays out; no estimator is known here.";
    bind_metrics<float>(m);
    bind_metrics<double>(m);
    bind_pairs(m);
    bind_sweep(m);
    bind_resample(m);
    bind_scan<float>(m);
    bind_scan<double>(m);
    bind_temperature<float>(m);
    bind_temperature<double>(m);
    bind_mixture(m);
    bind_lift<float>(m);
    bind_lift<double>(m);
    bind_curve<float>(m);
    bind_curve<double>(m);
    bind_isotonic<float>(m);
    bind_isotonic<double>(m);
    bind_logistic<float>(m);
    bind_logistic<double>(m);
    bind_pooling(m);
    bind_linear<float>(m);
    bind_linear<double>(m);
}
