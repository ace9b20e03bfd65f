// What every binding file needs: array types, fresh results, and checks of shapes.
// Callers (src/calibrant) have validated already; the checks here only keep a wrong call from touching foreign memory.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <tuple>
#include <vector>

namespace calibrant::python {

namespace nb = nanobind;
using namespace nb::literals;

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

// Each row's place must be one of `count` groups.
inline void require_places(const Labels& places, std::size_t rows, std::size_t count) {
    if (places.shape(0) != rows) throw nb::value_error("places differ from the rows in length");
    for (std::size_t i = 0; i < rows; ++i)
        if (places.data()[i] < 0 || places.data()[i] >= static_cast<std::int64_t>(count))
            throw nb::value_error("a place is outside the groups");
}

inline const double* data_of(const Weights& weights) { return weights ? weights->data() : nullptr; }

template <class T>
void require_same_shape(const Matrix<T>& values, const Output<T>& out) {
    if (out.shape(0) != values.shape(0) || out.shape(1) != values.shape(1))
        throw nb::value_error("the output differs from the scores in shape");
}

}  // namespace calibrant::python
