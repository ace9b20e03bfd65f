#include "bind.hpp"
#include "matrix.hpp"

namespace calibrant::python {
namespace {

template <class T>
MatrixRows<T> rows_of(const Matrix<T>& logits, const Matrix<double>& centres, const Weights& row_weights, Frame frame, Sure sure,
                      const Matrix<double>& weights) {
    const std::size_t n = logits.shape(0), k = logits.shape(1);
    const MatrixRows<T> rows{logits.data(), centres.data(), data_of(row_weights), std::int64_t(n), std::int64_t(k), frame,
                             sure, weights.data()};
    if (centres.shape(0) != n || centres.shape(1) != std::size_t(kCentres))
        throw nb::value_error("centres must have two columns and one row for each row of the logits");
    if (row_weights && row_weights->shape(0) != n) throw nb::value_error("row_weights differ in length");
    if (weights.shape(0) != std::size_t(rows.side()) || weights.shape(1) != k)
        throw nb::value_error("weights must have a row for each feature and the intercept, and a column for each class");
    return rows;
}

template <class T>
void bind_matrix(nb::module_& m) {
    m.def(
        "matrix_sums",
        [](Scores<T> logits, Matrix<double> centres, Labels labels, Weights row_weights, double beta, double floor,
           bool centred, double mean, double scale, Matrix<double> weights, Threads threads) {
            require_rows(logits, labels, row_weights);
            const auto rows = rows_of(logits, centres, row_weights, {beta, floor, centred}, {mean, scale}, weights);
            auto out = fresh<double>({weights.shape(0), weights.shape(1)});
            double loss;
            {
                nb::gil_scoped_release release;
                loss = matrix_sums(rows, labels.data(), threads, out.data());
            }
            return std::make_tuple(loss, out);
        },
        "logits"_a.noconvert(), "centres"_a, "labels"_a, "row_weights"_a.none(), "beta"_a, "floor"_a, "centred"_a, "mean"_a,
        "scale"_a, "weights"_a, "threads"_a);
    m.def(
        "matrix_blocks",
        [](Scores<T> logits, Matrix<double> centres, Weights row_weights, double beta, double floor, bool centred,
           double mean, double scale, Matrix<double> weights, Threads threads) {
            const auto rows = rows_of(logits, centres, row_weights, {beta, floor, centred}, {mean, scale}, weights);
            auto out = fresh<double>({weights.shape(1), weights.shape(0), weights.shape(0)});
            nb::gil_scoped_release release;
            matrix_blocks(rows, threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "centres"_a, "row_weights"_a.none(), "beta"_a, "floor"_a, "centred"_a, "mean"_a, "scale"_a,
        "weights"_a, "threads"_a);
    m.def(
        "matrix_moment",
        [](Scores<T> logits, Matrix<double> centres, Weights row_weights, double beta, double floor, bool centred,
           double mean, double scale, Matrix<double> weights, Vector<double> shift, Threads threads) {
            const auto rows = rows_of(logits, centres, row_weights, {beta, floor, centred}, {mean, scale}, weights);
            if (shift.shape(0) + 1 != weights.shape(0)) throw nb::value_error("shift must have a number for each feature");
            auto out = fresh<double>({weights.shape(0), weights.shape(0)});
            nb::gil_scoped_release release;
            matrix_moment(rows, shift.data(), threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "centres"_a, "row_weights"_a.none(), "beta"_a, "floor"_a, "centred"_a, "mean"_a, "scale"_a,
        "weights"_a, "shift"_a, "threads"_a);
    m.def(
        "matrix_along",
        [](Scores<T> logits, Matrix<double> centres, Weights row_weights, double beta, double floor, bool centred,
           double mean, double scale, Matrix<double> weights, Matrix<double> directions, Threads threads) {
            const auto rows = rows_of(logits, centres, row_weights, {beta, floor, centred}, {mean, scale}, weights);
            if (directions.shape(0) != weights.shape(0)) throw nb::value_error("directions must have a row for each feature");
            auto out = fresh<double>({weights.shape(1), directions.shape(1) + kOwn});
            nb::gil_scoped_release release;
            matrix_along(rows, directions.data(), directions.shape(1), threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "centres"_a, "row_weights"_a.none(), "beta"_a, "floor"_a, "centred"_a, "mean"_a, "scale"_a,
        "weights"_a, "directions"_a, "threads"_a);
}

}  // namespace

void add_matrix(nb::module_& m) {
    bind_matrix<float>(m);
    bind_matrix<double>(m);
}

}  // namespace calibrant::python
