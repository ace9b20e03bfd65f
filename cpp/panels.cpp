#include "panels.hpp"

#include <algorithm>
#include <cstring>

#include "simd.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kColumns = 128;  // of D summed in T; the sums of these are summed in double
constexpr std::int64_t kGroup = 8;      // panels whose sums are held at once: with kPanelBlock rows they stay in the cache

// Half a panel: compilers split it where registers are narrower.
template <class T>
struct Lanes {
    typedef T Type __attribute__((vector_size(32)));
};

// sums (+)= products of R rows with P panels over columns from .. to. Every element is summed column by column, so R and P
// change nothing but the speed.
template <int R, int P, class T>
CALIBRANT_INLINE void add_tile(const T* x, std::int64_t x_stride, const T* panels, std::int64_t columns, std::int64_t from,
                               std::int64_t to, double* sums) {
    using V = typename Lanes<T>::Type;
    constexpr std::int64_t height = kPanel<T>, half = height / 2;
    V found[R][P][2] = {};
    for (std::int64_t l = from; l < to; ++l) {
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) {
            V left, right;
            std::memcpy(&left, panels + (p * columns + l) * height, sizeof left);
            std::memcpy(&right, panels + (p * columns + l) * height + half, sizeof right);
#pragma GCC unroll 6
            for (int r = 0; r < R; ++r) {
                const T factor = x[r * x_stride + l];
                found[r][p][0] += factor * left;
                found[r][p][1] += factor * right;
            }
        }
    }
    for (int r = 0; r < R; ++r)
        for (int p = 0; p < P; ++p) {
            T lanes[height];
            std::memcpy(lanes, found[r][p], sizeof lanes);
            double* out = sums + (r * kGroup + p) * height;
            for (std::int64_t j = 0; j < height; ++j) out[j] = (from ? out[j] : 0.0) + lanes[j];
        }
}

// The sums of up to kPanelBlock rows with up to kGroup panels, kGroup panels apart for each row.
template <class T>
CALIBRANT_INLINE void group_sums(const T* x, std::int64_t rows, std::int64_t x_stride, const T* panels, std::int64_t columns,
                                 std::int64_t count, double* sums) {
    constexpr std::int64_t height = kPanel<T>;
    for (std::int64_t from = 0; from < columns; from += kColumns) {
        const std::int64_t to = std::min(columns, from + kColumns);
        std::int64_t i = 0;
        for (; i + 6 <= rows; i += 6)
            for (std::int64_t p = 0; p < count; ++p)
                add_tile<6, 1>(x + i * x_stride, x_stride, panels + p * columns * height, columns, from, to,
                               sums + (i * kGroup + p) * height);
        for (; i < rows; ++i) {
            std::int64_t p = 0;
            for (; p + 4 <= count; p += 4)
                add_tile<1, 4>(x + i * x_stride, x_stride, panels + p * columns * height, columns, from, to,
                               sums + (i * kGroup + p) * height);
            for (; p < count; ++p)
                add_tile<1, 1>(x + i * x_stride, x_stride, panels + p * columns * height, columns, from, to,
                               sums + (i * kGroup + p) * height);
        }
    }
}

template <class T>
CALIBRANT_INLINE void products(const T* x, std::int64_t rows, std::int64_t x_stride, const T* panels, std::int64_t columns,
                               std::int64_t k, T* out, std::int64_t out_stride) {
    constexpr std::int64_t width = kGroup * kPanel<T>;
    double sums[kPanelBlock * width];
    if (!columns) {
        for (std::int64_t i = 0; i < rows; ++i) std::fill(out + i * out_stride, out + i * out_stride + k, T(0));
        return;
    }
    for (std::int64_t first = 0; first < rows; first += kPanelBlock) {
        const std::int64_t some = std::min(kPanelBlock, rows - first);
        for (std::int64_t j = 0; j < k; j += width) {
            const std::int64_t here = std::min(width, k - j);
            group_sums(x + first * x_stride, some, x_stride, panels + j * columns, columns,
                       padded_rows<T>(here) / kPanel<T>, sums);
            for (std::int64_t i = 0; i < some; ++i) {
                T* row = out + (first + i) * out_stride + j;
                const double* found = sums + i * width;
#pragma omp simd
                for (std::int64_t c = 0; c < here; ++c) row[c] = static_cast<T>(found[c]);
            }
        }
    }
}

}  // namespace

CALIBRANT_CLONES void panel_products(const float* x, std::int64_t rows, std::int64_t x_stride, const float* panels,
                                     std::int64_t columns, std::int64_t k, float* out, std::int64_t out_stride) {
    products(x, rows, x_stride, panels, columns, k, out, out_stride);
}
CALIBRANT_CLONES void panel_products(const double* x, std::int64_t rows, std::int64_t x_stride, const double* panels,
                                     std::int64_t columns, std::int64_t k, double* out, std::int64_t out_stride) {
    products(x, rows, x_stride, panels, columns, k, out, out_stride);
}

}  // namespace calibrant
