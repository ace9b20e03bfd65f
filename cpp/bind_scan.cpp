#include "bind.hpp"
#include "keys.hpp"
#include "scan.hpp"

namespace calibrant::python {
namespace {

template <class T>
void bind_scan(nb::module_& m) {
    m.def(
        "scan",
        [](Scores<T> values, double tolerance, Threads threads) {
            calibrant::Findings found;
            {
                nb::gil_scoped_release release;
                found = calibrant::scan(values.data(), values.shape(0), values.shape(1), tolerance, threads);
            }
            return std::make_tuple(found.nan, found.plus_infinity, found.minus_infinity, found.no_finite, found.off_simplex,
                                   found.largest);
        },
        "values"_a.noconvert(), "tolerance"_a, "threads"_a);
    m.def(
        "row_keys",
        [](Scores<T> values, Labels labels, bool relative, bool fine, Threads threads) {
            if (relative) require_rows(values, labels, std::nullopt);
            if (labels.shape(0) != values.shape(0) || values.shape(1) == 0)
                throw nb::value_error("values and labels differ in length, or there are no columns");
            auto keys = fresh<std::uint64_t>({values.shape(0)});
            nb::gil_scoped_release release;
            calibrant::row_keys(values.data(), labels.data(), values.shape(0), values.shape(1), relative, fine, threads,
                                keys.data());
            return keys;
        },
        "values"_a.noconvert(), "labels"_a, "relative"_a, "fine"_a, "threads"_a);
}

}  // namespace

void add_scan(nb::module_& m) {
    bind_scan<float>(m);
    bind_scan<double>(m);
}

}  // namespace calibrant::python
