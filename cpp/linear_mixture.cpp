#include "linear_mixture.hpp"

#include <cstring>
#include <vector>

#include "linear_rows.hpp"

namespace calibrant {
namespace {

// Room for one row.
template <class T>
struct Row {
    std::vector<T> scores, features;
    std::vector<double> products;
    double centres[kCentres];
    explicit Row(std::int64_t k) : scores(k), features(k + 1), products(padded_rows<T>(k)) {}
};

// sums += D x for the rows of D in one panel: a few columns are summed in T, all of them in double.
template <class T>
CALIBRANT_INLINE void panel_product(const T* panel, std::int64_t columns, const T* x, double* sums) {
    constexpr std::int64_t height = kPanel<T>, few = 64;
    for (std::int64_t from = 0; from < columns; from += few) {
        const std::int64_t to = from + few < columns ? from + few : columns;
        T even[height] = {}, odd[height] = {};  // two of each: sums that wait for one another are slow
        std::int64_t l = from;
        for (; l + 2 <= to; l += 2) {
            const T *d = panel + l * height, first = x[l], second = x[l + 1];
#pragma omp simd
            for (std::int64_t j = 0; j < height; ++j) even[j] += first * d[j];
#pragma omp simd
            for (std::int64_t j = 0; j < height; ++j) odd[j] += second * d[height + j];
        }
        for (; l < to; ++l)
            for (std::int64_t j = 0; j < height; ++j) even[j] += x[l] * panel[l * height + j];
        for (std::int64_t j = 0; j < height; ++j) sums[j] += even[j] + odd[j];
    }
}

// products = D x.
template <class T>
CALIBRANT_INLINE void full_product(const T* d, std::int64_t columns, const T* x, std::int64_t k, double* products) {
    const std::int64_t padded = padded_rows<T>(k);
    for (std::int64_t j = 0; j < padded; ++j) products[j] = 0;
    for (std::int64_t j = 0; j < padded; j += kPanel<T>) panel_product(d + j * columns, columns, x, products + j);
}

// row.scores = u + D x + b.
template <class T>
CALIBRANT_INLINE void full_row(const T* z, std::int64_t k, const LinearPart<T>& part, Row<T>& row) {
    T *x = row.features.data(), *a = row.scores.data();
    const double* products = row.products.data();
    const T *b = part.intercept, beta = static_cast<T>(part.frame.beta), c = static_cast<T>(row.centres[0]);
    feature_row(z, row.centres, k, part.frame, x);
    x[k] = static_cast<T>((row.centres[1] - part.mean) * part.scale);
    full_product(part.weights, part.columns, x, k, row.products.data());
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) a[j] = static_cast<T>(products[j]) + ((beta * z[j] - c) + b[j]);
}

template <class T>
CALIBRANT_INLINE void add_mixture(const T* z, std::int64_t k, const LinearPart<T>* parts, std::int64_t count, Row<T>& row,
                                  T* out) {
    T *a = row.scores.data(), *x = row.features.data();
    for (std::int64_t i = 0; i < count; ++i) {
        const Frame frame = parts[i].frame;
        const bool known = i > 0 && frame.beta == parts[i - 1].frame.beta && frame.floor == parts[i - 1].frame.floor;
        if (!known) centres_row(z, k, frame.beta, frame.floor, a, row.centres);
        if (parts[i].columns == 1)
            vector_row(z, row.centres, k, frame, parts[i].weights, parts[i].intercept, a, x);
        else
            full_row(z, k, parts[i], row);
        const T scale = static_cast<T>(1 / exponentials(a, k, row_max(a, k))), share = static_cast<T>(parts[i].share);
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) out[j] += share * (a[j] * scale);
    }
}

template <class T>
CALIBRANT_INLINE void add_rows(const T* logits, std::int64_t n, std::int64_t k, const LinearPart<T>* parts,
                               std::int64_t count, T* out) {
    Row<T> row(k);
    for (std::int64_t i = 0; i < n; ++i) add_mixture(logits + i * k, k, parts, count, row, out + i * k);
}

CALIBRANT_CLONES void add_rows_of(const float* logits, std::int64_t n, std::int64_t k, const LinearPart<float>* parts,
                                  std::int64_t count, float* out) {
    add_rows(logits, n, k, parts, count, out);
}
CALIBRANT_CLONES void add_rows_of(const double* logits, std::int64_t n, std::int64_t k, const LinearPart<double>* parts,
                                  std::int64_t count, double* out) {
    add_rows(logits, n, k, parts, count, out);
}

}  // namespace

template <class T>
void add_linear_mixture(const T* logits, std::int64_t n, std::int64_t k, const LinearPart<T>* parts, std::int64_t count,
                        T* out) {
    add_rows_of(logits, n, k, parts, count, out);
}

#define CALIBRANT_INSTANTIATE(T) \
    template void add_linear_mixture<T>(const T*, std::int64_t, std::int64_t, const LinearPart<T>*, std::int64_t, T*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
