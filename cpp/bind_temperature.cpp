#include <algorithm>

#include "bind.hpp"
#include "mixture.hpp"
#include "temperature.hpp"

namespace calibrant::python {
namespace {

template <class T>
void bind_temperature(nb::module_& m) {
    m.def(
        "temperature_sums",
        [](Scores<T> logits, Labels labels, Weights weights, std::optional<Labels> places, Vector<double> betas, int loss,
           Threads threads) {
            require_rows(logits, labels, weights);
            const std::size_t groups = betas.shape(0);
            if (groups == 0 || loss < 0 || loss > 1) throw nb::value_error("betas need one value, loss must be 0 or 1");
            if (places) require_places(*places, logits.shape(0), groups);
            auto out = fresh<double>({groups, std::size_t(calibrant::kSums)});
            nb::gil_scoped_release release;
            calibrant::temperature_sums(logits.data(), labels.data(), data_of(weights), places ? places->data() : nullptr,
                                        logits.shape(0), logits.shape(1), betas.data(), groups,
                                        static_cast<calibrant::Loss>(loss), threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "labels"_a, "weights"_a.none(), "places"_a.none(), "betas"_a, "loss"_a, "threads"_a);
    m.def(
        "temperature_rows",
        [](Scores<T> logits, Labels labels, double beta, Threads threads) {
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
        [](Scores<T> logits, Labels labels, Weights weights, double beta, Threads threads) {
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
        [](Scores<T> logits, double beta, double w_scaled, double w_identity, double w_uniform, Threads threads, Output<T> out) {
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
        [](Matrix<double> columns, Weights weights, Vector<double> w, Threads threads) {
            const std::size_t parts = columns.shape(1);
            if (w.shape(0) != parts || (weights && weights->shape(0) != columns.shape(0)))
                throw nb::value_error("columns, weights and w do not fit");
            auto out = fresh<double>({1 + parts + parts * parts});
            nb::gil_scoped_release release;
            calibrant::mixture_sums(columns.data(), data_of(weights), columns.shape(0), parts, w.data(), threads, out.data());
            return out;
        },
        "columns"_a.noconvert(), "weights"_a.none(), "w"_a, "threads"_a);
    m.def(
        "convex_on_simplex",
        [](Matrix<double> gram) {
            if (gram.shape(0) != gram.shape(1)) throw nb::value_error("gram is not square");
            return calibrant::convex_on_simplex(gram.data(), gram.shape(0));
        },
        "gram"_a);
    m.def(
        "best_quadratic",
        [](Matrix<double> gram, Vector<double> linear, Vector<double> start) {
            const std::size_t parts = linear.shape(0);
            if (gram.shape(0) != parts || gram.shape(1) != parts || start.shape(0) != parts)
                throw nb::value_error("gram, linear and start do not fit");
            auto out = fresh<double>({parts});
            std::copy(start.data(), start.data() + parts, out.data());
            nb::gil_scoped_release release;
            calibrant::best_quadratic(gram.data(), linear.data(), parts, out.data());
            return out;
        },
        "gram"_a, "linear"_a, "start"_a);
}

}  // namespace

void add_temperature(nb::module_& m) {
    bind_temperature<float>(m);
    bind_temperature<double>(m);
    bind_mixture(m);
}

}  // namespace calibrant::python
