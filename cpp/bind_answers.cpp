#include "answers.hpp"
#include "bind.hpp"

namespace calibrant::python {
namespace {

template <class T>
void bind_answers(nb::module_& m) {
    m.def(
        "finite_logs",
        [](Scores<T> probabilities, std::optional<Scores<T>> logits, double share, double level, bool keep_top, double depth,
           Threads threads, Output<T> out) {
            require_same_shape(probabilities, out);
            if (logits) require_same_shape(*logits, out);
            if (keep_top && !logits) throw nb::value_error("the top of a row without logits is not known");
            nb::gil_scoped_release release;
            calibrant::finite_logs(probabilities.data(), logits ? logits->data() : nullptr, out.shape(0), out.shape(1),
                                   {share, level, keep_top, depth}, threads, out.data());
        },
        "probabilities"_a.noconvert(), "logits"_a.noconvert().none(), "share"_a, "level"_a, "keep_top"_a, "depth"_a,
        "threads"_a, "out"_a.noconvert());
    m.def(
        "keep_top",
        [](Scores<T> logits, Threads threads, Output<T> probabilities) {
            require_same_shape(logits, probabilities);
            nb::gil_scoped_release release;
            calibrant::keep_top(logits.data(), logits.shape(0), logits.shape(1), threads, probabilities.data());
        },
        "logits"_a.noconvert(), "threads"_a, "probabilities"_a.noconvert());
    m.def(
        "lowest",
        [](Scores<T> values, Threads threads) {
            nb::gil_scoped_release release;
            return calibrant::lowest(values.data(), values.shape(0), values.shape(1), threads);
        },
        "values"_a.noconvert(), "threads"_a);
}

}  // namespace

void add_answers(nb::module_& m) {
    bind_answers<float>(m);
    bind_answers<double>(m);
}

}  // namespace calibrant::python
