#include "bind.hpp"
#include "density.hpp"

namespace calibrant::python {
namespace {

template <class T>
void bind_density(nb::module_& m) {
    m.def(
        "add_class_kernels",
        [](Scores<T> products, Vector<double> half_norms, Weights weights, Labels starts, std::int64_t first,
           std::optional<Labels> skip, double scale, Threads threads, Output<double> shifts, Output<double> sums) {
            if (starts.shape(0) < 2) throw nb::value_error("starts must hold a beginning and an end");
            const std::size_t rows = products.shape(0), support = products.shape(1), classes = starts.shape(0) - 1;
            if (half_norms.shape(0) != support || (weights && weights->shape(0) != support) ||
                (skip && skip->shape(0) != rows) || shifts.shape(0) != rows || shifts.shape(1) != 1 ||
                sums.shape(0) != rows || sums.shape(1) != classes)
                throw nb::value_error("products, norms, weights, skip, shifts and sums do not fit");
            for (std::size_t c = 0; c < classes; ++c)
                if (starts.data()[c] > starts.data()[c + 1] || starts.data()[c] < 0)
                    throw nb::value_error("starts must rise");
            if (first < 0 || first > starts.data()[classes] - static_cast<std::int64_t>(support))
                throw nb::value_error("the block lies outside the support");
            nb::gil_scoped_release release;
            add_class_kernels(products.data(), half_norms.data(), data_of(weights), starts.data(),
                              skip ? skip->data() : nullptr, rows, support, first, classes, scale, threads, shifts.data(),
                              sums.data());
        },
        "products"_a.noconvert(), "half_norms"_a, "weights"_a.none(), "starts"_a, "first"_a, "skip"_a.none(), "scale"_a,
        "threads"_a, "shifts"_a.noconvert(), "sums"_a.noconvert());
    m.def(
        "finish_class_kernels",
        [](Matrix<double> sums, Matrix<double> shifts, Vector<double> own, Vector<double> prior, double scale, double zero_log,
           double clip, Threads threads, Output<T> out) {
            const std::size_t rows = sums.shape(0), classes = sums.shape(1);
            if (shifts.shape(0) != rows || shifts.shape(1) != 1 || own.shape(0) != rows || prior.shape(0) != classes || out.shape(0) != rows ||
                out.shape(1) != classes)
                throw nb::value_error("sums, shifts, own, prior and out do not fit");
            nb::gil_scoped_release release;
            finish_class_kernels(sums.data(), shifts.data(), own.data(), prior.data(), rows, classes, scale, zero_log, clip,
                                 threads, out.data());
        },
        "sums"_a.noconvert(), "shifts"_a.noconvert(), "own"_a, "prior"_a, "scale"_a, "zero_log"_a, "clip"_a, "threads"_a,
        "out"_a.noconvert());
}

}  // namespace

void add_density(nb::module_& m) {
    bind_density<float>(m);
    bind_density<double>(m);
}

}  // namespace calibrant::python
