// What every binding file needs: array types, fresh results, and the checks that keep a wrong call, whoever makes it, from
// touching foreign memory, from hanging and from ending the process. Types say what can be said by a type (at least one column,
// a sensible number of threads), so that no binding can forget it; `require_…` say the rest. Each looks at its values once.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <new>
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


// Scores: a matrix of at least one column, as every kernel that looks for a row's largest value needs.
template <class T>
struct Scores : Matrix<T> {};

// How many threads a kernel may use. The limit keeps products with it far from overflow.
struct Threads {
    static constexpr int kMost = 1024;
    int count = 1;
    operator int() const {
        if (count < 1 || count > kMost) throw nb::value_error("threads must be between 1 and 1024");
        return count;
    }
};

// Large results are written into an array the caller allocates: NumPy asks the system for huge pages, we would not.
template <class T>
using Output = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Labels = Vector<std::int64_t>;
using Weights = std::optional<Vector<double>>;

// A fresh C-ordered NumPy array for small results; memory is left unset.
template <class T>
nb::ndarray<nb::numpy, T> fresh(std::initializer_list<std::size_t> shape) {
    std::size_t size = sizeof(T);
    for (std::size_t s : shape)
        if (__builtin_mul_overflow(size, s, &size) || size > std::size_t(std::numeric_limits<std::ptrdiff_t>::max()))
            throw std::bad_alloc();
    T* data = static_cast<T*>(::operator new(size ? size : 1, std::nothrow));
    if (!data) throw std::bad_alloc();  // by us: under AddressSanitizer the other operator ends the process
    nb::capsule owner(data, [](void* p) noexcept { ::operator delete(p); });
    return nb::ndarray<nb::numpy, T>(data, shape, owner);
}

// Off only to see what the checks that look at every value cost (benchmarks/checks.py).
#ifdef CALIBRANT_UNCHECKED
constexpr bool kChecked = false;
#else
constexpr bool kChecked = true;
#endif

// Whether every value is at least `low` and below `high`: in one reduction, which compilers vectorise.
inline bool all_between(const Labels& values, std::int64_t low, std::int64_t high) {
    if constexpr (!kChecked) return true;
    const std::int64_t* v = values.data();
    std::int64_t least = low, most = low - 1;
    for (std::size_t i = 0; i < values.shape(0); ++i) {
        least = v[i] < least ? v[i] : least;
        most = v[i] > most ? v[i] : most;
    }
    return least >= low && most < high;
}

template <class T>
void require_rows(const Matrix<T>& logits, const Labels& labels, const Weights& weights) {
    if (labels.shape(0) != logits.shape(0) || (weights && weights->shape(0) != logits.shape(0)))
        throw nb::value_error("logits, labels and weights differ in length");
    if (!all_between(labels, 0, logits.shape(1))) throw nb::value_error("a label is outside the columns");
}

// Each row's place must be one of `count` groups.
inline void require_places(const Labels& places, std::size_t rows, std::size_t count) {
    if (places.shape(0) != rows) throw nb::value_error("places differ from the rows in length");
    if (!all_between(places, 0, count)) throw nb::value_error("a place is outside the groups");
}

template <class Array>
bool all_finite(const Array& values) {
    if constexpr (!kChecked) return true;
    double probe = 0;  // x - x is 0 for finite x and NaN otherwise
#pragma omp simd reduction(+ : probe)
    for (std::size_t i = 0; i < values.size(); ++i) probe += values.data()[i] - values.data()[i];
    return probe == 0;
}

// No value may be below the one before it, nor be NaN.
template <class T>
bool rises(const T* values, std::int64_t count) {
    if constexpr (!kChecked) return true;
    std::int64_t falls = count > 0 && std::isnan(values[0]);
#pragma omp simd reduction(+ : falls)
    for (std::int64_t i = 1; i < count; ++i) falls += !(values[i - 1] <= values[i]);
    return falls == 0;
}

template <class T>
void require_rising(const T* values, std::int64_t count) {
    if (!rises(values, count)) throw nb::value_error("values that must rise do not, or are NaN");
}

// An array of indices `starts` that rise from 0 to the number of values.
inline void require_starts(const Labels& starts, std::size_t values) {
    const std::int64_t count = static_cast<std::int64_t>(starts.shape(0)) - 1;
    bool good = count >= 1 && starts.data()[0] == 0 && starts.data()[count] == static_cast<std::int64_t>(values);
    for (std::int64_t g = 0; good && g < count; ++g) good = starts.data()[g] <= starts.data()[g + 1];
    if (!good) throw nb::value_error("starts and values do not fit one another");
}

inline const double* data_of(const Weights& weights) { return weights ? weights->data() : nullptr; }

template <class T>
void require_same_shape(const Matrix<T>& values, const Output<T>& out) {
    if (out.shape(0) != values.shape(0) || out.shape(1) != values.shape(1))
        throw nb::value_error("the output differs from the scores in shape");
}

}  // namespace calibrant::python

namespace nanobind::detail {

template <class T>
struct type_caster<calibrant::python::Scores<T>> {
    using Base = type_caster<calibrant::python::Matrix<T>>;
    NB_TYPE_CASTER(calibrant::python::Scores<T>, Base::Name)

    bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
        Base base;
        if (!base.from_python(source, flags, cleanup) || !base.value.is_valid() || base.value.shape(1) == 0) return false;
        static_cast<calibrant::python::Matrix<T>&>(value) = std::move(base.value);
        return true;
    }
};

template <>
struct type_caster<calibrant::python::Threads> {
    NB_TYPE_CASTER(calibrant::python::Threads, const_name("int"))

    bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
        type_caster<int> base;
        if (!base.from_python(source, flags, cleanup)) return false;
        value.count = base.value;
        return true;
    }
};

}  // namespace nanobind::detail
