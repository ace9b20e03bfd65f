// Matrix products of blocks that stay in the cache.
#pragma once

#include <cstdint>

namespace calibrant {

constexpr std::int64_t kTileRows = 6;
template <class T>
constexpr std::int64_t kTileColumns = 64 / sizeof(T);

constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

// c += a b: a has `rows` rows, a_columns apart; b has `length` rows; b and c have `columns` columns, a multiple of
// kTileColumns. Rows are read and written kTileRows at a time: leave room.
void add_product(const float* a, std::int64_t a_columns, const float* b, std::int64_t length, float* c, std::int64_t rows,
                 std::int64_t columns);
void add_product(const double* a, std::int64_t a_columns, const double* b, std::int64_t length, double* c, std::int64_t rows,
                 std::int64_t columns);

// c += aᵀ b, the same way: a and b have `length` rows, c has `rows`.
void add_cross_product(const float* a, std::int64_t a_columns, const float* b, std::int64_t length, float* c,
                       std::int64_t rows, std::int64_t columns);
void add_cross_product(const double* a, std::int64_t a_columns, const double* b, std::int64_t length, double* c,
                       std::int64_t rows, std::int64_t columns);

}  // namespace calibrant
