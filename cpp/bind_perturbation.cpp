#include "bind.hpp"
#include "perturbation.hpp"

namespace calibrant::python {
namespace {

template <class T>
void bind_perturbation(nb::module_& m) {
    m.def(
        "keep_shares",
        [](Matrix<T> logits, Matrix<T> noise, double scale, int threads) {
            if (noise.shape(0) != logits.shape(1) || noise.shape(1) == 0)
                throw nb::value_error("noise needs one row a class");
            auto out = fresh<double>({logits.shape(0)});
            nb::gil_scoped_release release;
            calibrant::keep_shares(logits.data(), noise.data(), scale, logits.shape(0), logits.shape(1), noise.shape(1),
                                   threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "noise"_a.noconvert(), "scale"_a, "threads"_a);
    m.def(
        "keep_probabilities",
        [](Matrix<T> logits, int noise, double scale, std::int64_t nodes, int threads) {
            auto out = fresh<double>({logits.shape(0)});
            nb::gil_scoped_release release;
            calibrant::keep_probabilities(logits.data(), logits.shape(0), logits.shape(1),
                                          static_cast<calibrant::Noise>(noise), scale, nodes, threads, out.data());
            return out;
        },
        "logits"_a.noconvert(), "noise"_a, "scale"_a, "nodes"_a, "threads"_a);
}

}  // namespace

void add_perturbation(nb::module_& m) {
    bind_perturbation<float>(m);
    bind_perturbation<double>(m);
}

}  // namespace calibrant::python
