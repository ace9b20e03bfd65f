// Products of rows with a matrix D, each sum formed in the same order whatever the number of rows: a row answers the same
// bits alone and among others, which a BLAS does not promise.
#pragma once

#include <cstdint>

namespace calibrant {

// D lies in panels of so many of its rows, one panel after the other, each column by column: it streams by in one go. The
// last panel is filled up with zeros.
template <class T>
constexpr std::int64_t kPanel = 64 / sizeof(T);

template <class T>
constexpr std::int64_t padded_rows(std::int64_t k) {
    return (k + kPanel<T> - 1) / kPanel<T> * kPanel<T>;
}

constexpr std::int64_t kPanelBlock = 48;  // rows for which a panel is read once, from the nearest cache

// out[i][j] = sum over l of x[i][l] d[j][l], for rows of x that are x_stride apart and k rows of D of `columns` each; rows
// of out are out_stride apart.
void panel_products(const float* x, std::int64_t rows, std::int64_t x_stride, const float* panels, std::int64_t columns,
                    std::int64_t k, float* out, std::int64_t out_stride);
void panel_products(const double* x, std::int64_t rows, std::int64_t x_stride, const double* panels, std::int64_t columns,
                    std::int64_t k, double* out, std::int64_t out_stride);

}  // namespace calibrant
