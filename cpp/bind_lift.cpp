#include "bind.hpp"
#include "isotonic.hpp"
#include "lift.hpp"
#include "logistic.hpp"

namespace calibrant::python {
namespace {

template <class T>
void bind_lift(nb::module_& m) {
    m.def(
        "log_odds",
        [](Scores<T> logits, Threads threads, Output<T> out) {
            require_same_shape(logits, out);
            nb::gil_scoped_release release;
            calibrant::log_odds(logits.data(), logits.shape(0), logits.shape(1), threads, out.data());
        },
        "logits"_a.noconvert(), "threads"_a, "out"_a.noconvert());
    m.def(
        "normalize_rows",
        [](Scores<T> logits, bool keep_top, Threads threads, Output<T> marginals) {
            require_same_shape(logits, marginals);
            nb::gil_scoped_release release;
            calibrant::normalize_rows(logits.data(), logits.shape(0), logits.shape(1), keep_top, threads, marginals.data());
        },
        "logits"_a.noconvert(), "keep_top"_a, "threads"_a, "marginals"_a.noconvert());
}

constexpr std::size_t kMostKnots = (std::size_t(1) << 31) - 1;  // the search counts them in 32 bits

// Every class belongs to a group; with `lowest` = -1 to a group or to none.
void require_groups(const Labels& groups, const Labels& starts, std::size_t values, std::size_t k, std::int64_t lowest) {
    require_starts(starts, values);
    if (values > kMostKnots) throw nb::value_error("there are too many knots");
    bool good = groups.shape(0) == k;
    for (std::size_t j = 0; good && j < k; ++j)
        good = groups.data()[j] >= lowest && groups.data()[j] < static_cast<std::int64_t>(starts.shape(0)) - 1;
    if (!good) throw nb::value_error("groups and starts do not fit one another");
}

template <class T>
void bind_isotonic(nb::module_& m) {
    m.def(
        "label_log_odds",
        [](Scores<T> logits, Labels labels, Threads threads) {
            require_rows(logits, labels, std::nullopt);
            auto out = fresh<T>({logits.shape(0)});
            nb::gil_scoped_release release;
            calibrant::label_log_odds(logits.data(), labels.data(), logits.shape(0), logits.shape(1), threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "labels"_a, "threads"_a);
    m.def(
        "merge_close",
        [](Vector<T> sorted, Labels starts, double resolution) {
            require_starts(starts, sorted.shape(0));
            auto fresh_ones = fresh<std::uint8_t>({sorted.shape(0)});
            auto bounds = fresh<T>({sorted.shape(0)});
            calibrant::merge_close(sorted.data(), starts.data(), starts.shape(0) - 1, resolution, fresh_ones.data(),
                                   bounds.data());
            return std::make_tuple(fresh_ones, bounds);
        },
        "sorted"_a.noconvert(), "starts"_a, "resolution"_a);
    m.def(
        "negatives_between",
        [](Scores<T> logits, Labels labels, Weights weights, Labels groups, Labels starts, Vector<T> bounds, Threads threads) {
            require_rows(logits, labels, weights);
            require_groups(groups, starts, bounds.shape(0), logits.shape(1), -1);
            const std::size_t count = starts.shape(0) - 1, size = bounds.shape(0) + count;
            auto counts = fresh<double>({size});
            auto largest = fresh<T>({size});
            {
                nb::gil_scoped_release release;
                calibrant::negatives_between(logits.data(), labels.data(), data_of(weights), logits.shape(0), logits.shape(1),
                                             groups.data(), starts.data(), count, bounds.data(), threads, counts.data(),
                                             largest.data());
            }
            return std::make_tuple(counts, largest);
        },
        "logits"_a.noconvert(), "labels"_a, "weights"_a.none(), "groups"_a, "starts"_a, "bounds"_a.noconvert(),
        "threads"_a);
    m.def(
        "isotonic_apply",
        [](Scores<T> scores, Labels groups, Labels starts, Vector<T> knots, Vector<double> values, bool steps,
           double epsilon, Threads threads, Output<T> out) {
            require_same_shape(scores, out);
            require_groups(groups, starts, knots.shape(0), scores.shape(1), 0);
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
void require_coefficients(const Matrix<T>& scores, const Matrix<double>& coefficients) {
    if (coefficients.shape(1) != 3 || (coefficients.shape(0) != 1 && coefficients.shape(0) != scores.shape(1)))
        throw nb::value_error("three coefficients, or three a class");
}

template <class T>
void bind_logistic(nb::module_& m) {
    m.def(
        "logistic_sums",
        [](Scores<T> logits, Labels labels, Weights weights, Labels groups, Matrix<double> coefficients,
           Matrix<double> targets, bool two_slopes, Threads threads) {
            require_rows(logits, labels, weights);
            const std::int64_t count = coefficients.shape(0);
            bool good = count >= 1 && coefficients.shape(1) == 3 && targets.shape(0) == coefficients.shape(0) && targets.shape(1) == 2 &&
                        groups.shape(0) == logits.shape(1);
            for (std::size_t j = 0; good && j < groups.shape(0); ++j) good = groups.data()[j] < count;
            if (!good) throw nb::value_error("groups, coefficients and targets do not fit one another");
            auto out = fresh<double>({std::size_t(count), std::size_t(calibrant::logistic_width(two_slopes))});
            nb::gil_scoped_release release;
            calibrant::logistic_sums(logits.data(), labels.data(), data_of(weights), logits.shape(0), logits.shape(1),
                                     groups.data(), count, coefficients.data(), targets.data(), two_slopes, threads,
                                     out.data());
            return out;
        },
        "logits"_a.noconvert(), "labels"_a, "weights"_a.none(), "groups"_a, "coefficients"_a, "targets"_a,
        "two_slopes"_a, "threads"_a);
    m.def(
        "logistic_apply",
        [](Scores<T> odds, Matrix<double> coefficients, Threads threads, Output<T> out) {
            require_same_shape(odds, out);
            require_coefficients(odds, coefficients);
            nb::gil_scoped_release release;
            calibrant::logistic_apply(odds.data(), odds.shape(0), odds.shape(1), coefficients.data(),
                                      coefficients.shape(0), threads, out.data());
        },
        "odds"_a.noconvert(), "coefficients"_a, "threads"_a, "out"_a.noconvert());
    m.def(
        "logistic_lift",
        [](Scores<T> logits, Matrix<double> coefficients, bool normalize, Threads threads, Output<T> out) {
            require_same_shape(logits, out);
            require_coefficients(logits, coefficients);
            nb::gil_scoped_release release;
            calibrant::logistic_lift(logits.data(), logits.shape(0), logits.shape(1), coefficients.data(),
                                     coefficients.shape(0), normalize, threads, out.data());
        },
        "logits"_a.noconvert(), "coefficients"_a, "normalize"_a, "threads"_a, "out"_a.noconvert());
}

void bind_pooling(nb::module_& m) {
    m.def(
        "pool_adjacent",
        [](Vector<double> sums, Vector<double> weights, Labels starts) {
            require_starts(starts, sums.shape(0));
            if (sums.shape(0) != weights.shape(0)) throw nb::value_error("sums and weights differ in length");
            const std::size_t count = starts.shape(0) - 1;
            auto levels = fresh<double>({sums.shape(0)});
            nb::gil_scoped_release release;
            calibrant::pool_adjacent(sums.data(), weights.data(), starts.data(), count, levels.data());
            return levels;
        },
        "sums"_a, "weights"_a, "starts"_a);
}

}  // namespace

void add_lift(nb::module_& m) {
    bind_lift<float>(m);
    bind_lift<double>(m);
    bind_isotonic<float>(m);
    bind_isotonic<double>(m);
    bind_logistic<float>(m);
    bind_logistic<double>(m);
    bind_pooling(m);
}

}  // namespace calibrant::python
