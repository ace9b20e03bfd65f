#include "product.hpp"

#include <cstring>

#include "simd.hpp"

namespace calibrant {
namespace {

// Half the columns of a tile: compilers split it where registers are narrower.
template <class T>
struct Lanes {
    typedef T Type __attribute__((vector_size(32)));
};

// c += a b for one tile of six rows by 64 bytes of columns: its sums fill the vector registers, and every load of b
// serves six rows. Element (r, l) of a lies at a[r * row + l * step].
template <class T>
CALIBRANT_INLINE void add_tile(const T* a, std::int64_t row, std::int64_t step, const T* b, std::int64_t columns,
                               std::int64_t length, T* c) {
    using V = typename Lanes<T>::Type;
    constexpr std::int64_t half = kTileColumns<T> / 2;
    V sums[kTileRows][2];
#pragma GCC unroll 6
    for (std::int64_t r = 0; r < kTileRows; ++r) std::memcpy(sums[r], c + r * columns, sizeof sums[r]);
    for (std::int64_t l = 0; l < length; ++l) {
        V left, right;
        std::memcpy(&left, b + l * columns, sizeof left);
        std::memcpy(&right, b + l * columns + half, sizeof right);
#pragma GCC unroll 6
        for (std::int64_t r = 0; r < kTileRows; ++r) {
            const T factor = a[r * row + l * step];
            sums[r][0] += factor * left;
            sums[r][1] += factor * right;
        }
    }
#pragma GCC unroll 6
    for (std::int64_t r = 0; r < kTileRows; ++r) std::memcpy(c + r * columns, sums[r], sizeof sums[r]);
}

template <class T>
CALIBRANT_INLINE void add_tiles(const T* a, std::int64_t row, std::int64_t step, const T* b, std::int64_t length, T* c,
                                std::int64_t rows, std::int64_t columns) {
    for (std::int64_t j = 0; j < columns; j += kTileColumns<T>)
        for (std::int64_t r = 0; r < rows; r += kTileRows)
            add_tile(a + r * row, row, step, b + j, columns, length, c + r * columns + j);
}

}  // namespace

// A function each: with both loops in one, compilers run out of registers.
#define CALIBRANT_PRODUCTS(T)                                                                                            \
    CALIBRANT_CLONES void add_product(const T* a, std::int64_t a_columns, const T* b, std::int64_t length, T* c,        \
                                      std::int64_t rows, std::int64_t columns) {                                        \
        add_tiles(a, a_columns, 1, b, length, c, rows, columns);                                                        \
    }                                                                                                                   \
    CALIBRANT_CLONES void add_cross_product(const T* a, std::int64_t a_columns, const T* b, std::int64_t length, T* c,  \
                                            std::int64_t rows, std::int64_t columns) {                                  \
        add_tiles(a, 1, a_columns, b, length, c, rows, columns);                                                        \
    }
CALIBRANT_PRODUCTS(float)
CALIBRANT_PRODUCTS(double)

}  // namespace calibrant
