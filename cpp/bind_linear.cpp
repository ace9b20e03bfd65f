#include "bind.hpp"
#include "linear.hpp"
#include "linear_mixture.hpp"
#include "panels.hpp"
#include "parallel.hpp"

namespace calibrant::python {
namespace {

void require_centres(const Matrix<double>& centres, std::size_t n) {
    if (centres.shape(0) != n || centres.shape(1) != std::size_t(calibrant::kCentres))
        throw nb::value_error("centres must have two columns and one row for each row of the logits");
}

template <class T>
void require_columns(const Matrix<T>& logits, const Vector<double>& values) {
    if (values.shape(0) != logits.shape(1)) throw nb::value_error("one value a column is needed");
}

template <class T>
void bind_linear(nb::module_& m) {
    m.def(
        "linear_centres",
        [](Scores<T> logits, double beta, double floor, Threads threads) {
            auto out = fresh<double>({logits.shape(0), std::size_t(calibrant::kCentres)});
            nb::gil_scoped_release release;
            calibrant::linear_centres(logits.data(), logits.shape(0), logits.shape(1), beta, floor, threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "beta"_a, "floor"_a, "threads"_a);
    m.def(
        "linear_features",
        [](Scores<T> logits, Matrix<double> centres, double beta, double floor, bool centred, Threads threads, Output<T> out) {
            require_same_shape(logits, out);
            require_centres(centres, logits.shape(0));
            nb::gil_scoped_release release;
            calibrant::linear_features(logits.data(), centres.data(), logits.shape(0), logits.shape(1),
                                       {beta, floor, centred}, threads, out.data());
        },
        "logits"_a.noconvert(), "centres"_a, "beta"_a, "floor"_a, "centred"_a, "threads"_a, "out"_a.noconvert());
    m.def(
        "linear_sums",
        [](Scores<T> logits, Matrix<double> centres, Weights weights, double beta, double floor, bool centred, Threads threads) {
            require_centres(centres, logits.shape(0));
            if (weights && weights->shape(0) != logits.shape(0)) throw nb::value_error("weights differ in length");
            auto out = fresh<double>({logits.shape(1)});
            nb::gil_scoped_release release;
            calibrant::linear_sums(logits.data(), centres.data(), data_of(weights), logits.shape(0), logits.shape(1),
                                    {beta, floor, centred}, threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "centres"_a, "weights"_a.none(), "beta"_a, "floor"_a, "centred"_a, "threads"_a);
    m.def(
        "vector_sums",
        [](Scores<T> logits, Matrix<double> centres, Labels labels, Weights weights, double beta, double floor, bool centred,
           Vector<double> d, Vector<double> b, bool curvature, Threads threads) {
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
            return std::make_tuple(loss, out);
        },
        "logits"_a.noconvert(), "centres"_a, "labels"_a, "weights"_a.none(), "beta"_a, "floor"_a, "centred"_a, "d"_a, "b"_a,
        "curvature"_a, "threads"_a);
    m.def(
        "softmax_residual",
        [](Output<T> scores, Scores<T> logits, Matrix<double> centres, std::optional<Labels> labels, Weights weights,
           double beta, Vector<double> b, Threads threads) {
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

template <class T>
void bind_panels(nb::module_& m) {
    m.def(
        "panel_products",
        [](Matrix<T> x, Vector<T> panels, Threads threads, Output<T> out) {
            const std::int64_t columns = x.shape(1), k = out.shape(1);
            if (out.shape(0) != x.shape(0) || std::int64_t(panels.shape(0)) != columns * calibrant::padded_rows<T>(k))
                throw nb::value_error("the panels do not fit the rows and the output");
            nb::gil_scoped_release release;
            const std::int64_t rows = k ? x.shape(0) : 0;  // an array without columns may claim any number of rows
            calibrant::for_blocks(rows, k, threads, [&](std::int64_t, std::int64_t first, std::int64_t last) {
                calibrant::panel_products(x.data() + first * columns, last - first, columns, panels.data(), columns, k,
                                          out.data() + first * k, k);
            });
        },
        "x"_a.noconvert(), "panels"_a.noconvert(), "threads"_a, "out"_a.noconvert());
}

// The parts of a mixture from their tables: (beta, floor, centred, mean, scale, share) and the columns of D of each, their
// weights one after the other, and their intercepts.
template <class T>
std::vector<calibrant::LinearPart<T>> linear_parts(const Matrix<double>& frames, const Vector<std::int64_t>& columns,
                                                   const Vector<T>& weights, const Matrix<T>& intercepts, std::int64_t k) {
    const std::size_t count = frames.shape(0);
    if (frames.shape(1) != 6 || columns.shape(0) != count || intercepts.shape(0) != count ||
        std::int64_t(intercepts.shape(1)) != k)
        throw nb::value_error("the tables of the parts do not fit");
    std::vector<calibrant::LinearPart<T>> parts;
    parts.reserve(count);
    std::int64_t used = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const double* f = frames.data() + 6 * i;
        const std::int64_t width = columns.data()[i];
        if (width != 1 && width != k && width != k + 1) throw nb::value_error("D must have 1, K or K + 1 columns");
        parts.push_back({{f[0], f[1], f[2] != 0}, f[3], f[4], f[5], width, weights.data() + used, intercepts.data() + i * k});
        used += width == 1 ? k : width * calibrant::padded_rows<T>(k);
    }
    if (used != std::int64_t(weights.shape(0))) throw nb::value_error("the weights do not fit the columns");
    return parts;
}

template <class T>
void bind_linear_mixture(nb::module_& m) {
    m.def(
        "add_linear_mixture",
        [](Scores<T> logits, Matrix<double> frames, Vector<std::int64_t> columns, Vector<T> weights, Matrix<T> intercepts,
           Threads threads, Output<T> out) {
            require_same_shape(logits, out);
            const auto parts = linear_parts(frames, columns, weights, intercepts, logits.shape(1));
            nb::gil_scoped_release release;
            calibrant::add_linear_mixture(logits.data(), logits.shape(0), logits.shape(1), parts.data(), parts.size(),
                                          threads, out.data());
        },
        "logits"_a.noconvert(), "frames"_a, "columns"_a, "weights"_a.noconvert(), "intercepts"_a.noconvert(),
        "threads"_a, "out"_a.noconvert());
}

}  // namespace

void add_linear(nb::module_& m) {
    bind_linear<float>(m);
    bind_linear<double>(m);
    bind_panels<float>(m);
    bind_panels<double>(m);
    bind_linear_mixture<float>(m);
    bind_linear_mixture<double>(m);
}

}  // namespace calibrant::python
