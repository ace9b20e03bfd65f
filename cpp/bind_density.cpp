#include "bind.hpp"
#include "density.hpp"

namespace calibrant::python {
namespace {

template <class T>
void bind_density(nb::module_& m) {
    m.def(
        "class_kernel_sums",
        [](Matrix<T> products, Vector<double> half_norms, Weights weights, Labels starts, std::optional<Labels> skip,
           double scale, int threads, Output<double> out) {
            const std::size_t rows = products.shape(0), support = products.shape(1), classes = starts.shape(0) - 1;
            if (half_norms.shape(0) != support || (weights && weights->shape(0) != support) ||
                (skip && skip->shape(0) != rows) || out.shape(0) != rows || out.shape(1) != classes)
                throw nb::value_error("products, norms, weights, starts and out do not fit");
            for (std::size_t c = 0; c < classes; ++c)
                if (starts.data()[c] > starts.data()[c + 1] || starts.data()[c] < 0)
                    throw nb::value_error("starts must rise");
            if (starts.data()[classes] != static_cast<std::int64_t>(support)) throw nb::value_error("starts must end at the support");
            for (std::size_t i = 0; skip && i < rows; ++i)
                if (skip->data()[i] >= static_cast<std::int64_t>(support)) throw nb::value_error("skip is outside the support");
            auto peaks = fresh<double>({rows});
            nb::gil_scoped_release release;
            class_kernel_sums(products.data(), half_norms.data(), data_of(weights), starts.data(),
                              skip ? skip->data() : nullptr, rows, support, classes, scale, threads, out.data(), peaks.data());
            return peaks;
        },
        "products"_a.noconvert(), "half_norms"_a, "weights"_a.none(), "starts"_a, "skip"_a.none(), "scale"_a, "threads"_a,
        "out"_a.noconvert());
}

}  // namespace

void add_density(nb::module_& m) {
    bind_density<float>(m);
    bind_density<double>(m);
}

}  // namespace calibrant::python
