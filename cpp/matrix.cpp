#include "matrix.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "linear_rows.hpp"
#include "parallel.hpp"
#include "product.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kBlock = 96;       // rows worked on at a time, a multiple of kTileRows
constexpr std::int64_t kFlush = 4;        // blocks after which sums in T are emptied into doubles
constexpr std::int64_t kMostParts = 64;   // partial sums of a pass
constexpr std::int64_t kMemory = 1 << 21; // numbers that these may take together, from eight parts on

// A matrix of T with columns up to a whole number of tiles, all zero, with room for a tile beyond its last row.
template <class T>
struct Padded {
    std::int64_t rows, columns;
    std::vector<T> memory;

    Padded(std::int64_t r, std::int64_t c)
        : rows(r), columns(round_up(c, kTileColumns<T>)), memory((r + kTileRows) * columns + kTileColumns<T>) {}
    Padded(const double* values, std::int64_t r, std::int64_t c) : Padded(r, c) {
        for (std::int64_t i = 0; i < r; ++i) std::copy(values + i * c, values + (i + 1) * c, row(i));
    }
    // Tiles are read fastest from the beginning of a cache line.
    T* data() { return reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) & ~std::uintptr_t(63)); }
    const T* data() const { return const_cast<Padded*>(this)->data(); }
    T* row(std::int64_t i) { return data() + i * columns; }
    const T* row(std::int64_t i) const { return data() + i * columns; }
    void clear() { std::fill(memory.begin(), memory.end(), T(0)); }
};

// What one thread works in: the features of a block of rows and their scores, then probabilities.
template <class T>
struct Block {
    Padded<T> x, a;

    explicit Block(const MatrixRows<T>& rows) : x(kBlock, rows.side()), a(kBlock, rows.k) {}
};

// Features and exponentials of the scores of rows from ..; totals[i] is the sum of row i, tops[i] its largest score.
// Where labels are given, at_label[i] is the score of the label less the largest.
template <class T>
CALIBRANT_INLINE void judge(const MatrixRows<T>& rows, const Padded<T>* weights, std::int64_t from, std::int64_t count,
                            const std::int64_t* labels, Block<T>& block, double* totals, double* at_label) {
    Watch::look();
    const std::int64_t k = rows.k, side = rows.side();
    const T beta = static_cast<T>(rows.frame.beta);
    for (std::int64_t i = 0; i < count; ++i) {
        const T* z = rows.logits + (from + i) * k;
        const double* centre = rows.centres + kCentres * (from + i);
        T *x = block.x.row(i), *a = block.a.row(i);
        feature_row(z, centre, k, rows.frame, x);
        if (side > k + 1) x[k] = static_cast<T>((centre[1] - rows.sure.mean) * rows.sure.scale);
        x[side - 1] = T(1);
        const T c = static_cast<T>(centre[0]);
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) a[j] = beta * z[j] - c;
    }
    if (weights)
        add_product(block.x.data(), block.x.columns, weights->data(), side, block.a.data(), count, block.a.columns);
    for (std::int64_t i = 0; i < count; ++i) {
        T* a = block.a.row(i);
        const T top = row_max(a, k);
        if (labels) at_label[i] = static_cast<double>(a[labels[from + i]]) - top;
        totals[i] = exponentials(a, k, top);
    }
    for (std::int64_t i = count; i < kBlock; ++i) {
        std::fill(block.x.row(i), block.x.row(i + 1), T(0));
        std::fill(block.a.row(i), block.a.row(i + 1), T(0));
    }
}

// Adds sums in T to doubles and empties them.
template <class T>
CALIBRANT_INLINE void flush(Padded<T>& sums, std::int64_t columns, std::int64_t stride, double* out) {
    for (std::int64_t i = 0; i < sums.rows; ++i) {
        const T* row = sums.row(i);
        for (std::int64_t j = 0; j < columns; ++j) out[i * stride + j] += row[j];
    }
    sums.clear();
}

template <class T>
CALIBRANT_INLINE double sums_part(const MatrixRows<T>& rows, const Padded<T>* weights, const std::int64_t* labels,
                                  std::int64_t from, std::int64_t to, double* out) {
    const std::int64_t k = rows.k, side = rows.side();
    Block<T> block(rows);
    Padded<T> sums(side, k);
    double totals[kBlock], at_label[kBlock], loss = 0;
    for (std::int64_t start = from, blocks = 1; start < to; start += kBlock, ++blocks) {
        const std::int64_t count = std::min(kBlock, to - start);
        judge(rows, weights, start, count, labels, block, totals, at_label);
        for (std::int64_t i = 0; i < count; ++i) {
            const double weight = rows.weight(start + i);
            loss += weight * (std::log(totals[i]) - at_label[i]);
            T* a = block.a.row(i);
            const T scale = static_cast<T>(weight / totals[i]);
#pragma omp simd
            for (std::int64_t j = 0; j < k; ++j) a[j] *= scale;
            a[labels[start + i]] -= static_cast<T>(weight);
        }
        add_cross_product(block.x.data(), block.x.columns, block.a.data(), kBlock, sums.data(), side, sums.columns);
        if (blocks % kFlush == 0 || start + kBlock >= to) flush(sums, k, k, out);
    }
    return loss;
}

template <class T>
CALIBRANT_INLINE void blocks_part(const MatrixRows<T>& rows, const Padded<T>* weights, std::int64_t from, std::int64_t to,
                                  double* out) {
    const std::int64_t k = rows.k, side = rows.side();
    Block<T> block(rows);
    double totals[kBlock];
    for (std::int64_t start = from; start < to; start += kBlock) {
        const std::int64_t count = std::min(kBlock, to - start);
        judge(rows, weights, start, count, nullptr, block, totals, nullptr);
        for (std::int64_t i = 0; i < count; ++i) {
            const T *a = block.a.row(i), *x = block.x.row(i);
            const double weight = rows.weight(start + i);
            Watch::look();
            for (std::int64_t j = 0; j < k; ++j) {
                const double p = a[j] / totals[i], v = weight * p * (1 - p);
                if (v < 1e-9 * weight || v == 0) continue;
                double* to_block = out + j * side * side;
                for (std::int64_t l = 0; l < side; ++l) {
                    const double f = v * x[l];
#pragma omp simd
                    for (std::int64_t h = 0; h < side; ++h) to_block[l * side + h] += f * x[h];
                }
            }
        }
    }
}

template <class T>
CALIBRANT_INLINE void moment_part(const MatrixRows<T>& rows, const Padded<T>* weights, const Padded<T>& shift,
                                  std::int64_t from, std::int64_t to, double* out) {
    const std::int64_t k = rows.k, side = rows.side();
    Block<T> block(rows);
    Padded<T> scaled(kBlock, side), sums(side, side);
    double totals[kBlock];
    for (std::int64_t start = from, blocks = 1; start < to; start += kBlock, ++blocks) {
        const std::int64_t count = std::min(kBlock, to - start);
        judge(rows, weights, start, count, nullptr, block, totals, nullptr);
        for (std::int64_t i = 0; i < kBlock; ++i) {
            const T *a = block.a.row(i), *away = shift.row(0);
            T squares = 0, *x = block.x.row(i), *s = scaled.row(i);
#pragma omp simd reduction(+ : squares)
            for (std::int64_t j = 0; j < k; ++j) squares += a[j] * a[j];
            const T factor = i < count ? static_cast<T>(rows.weight(start + i) * (1 - squares / (totals[i] * totals[i]))) : T(0);
#pragma omp simd
            for (std::int64_t j = 0; j < side; ++j) {
                x[j] -= away[j];
                s[j] = factor * x[j];
            }
        }
        add_cross_product(block.x.data(), block.x.columns, scaled.data(), kBlock, sums.data(), side, sums.columns);
        if (blocks % kFlush == 0 || start + kBlock >= to) flush(sums, side, side, out);
    }
}

// Adds v times the products of a class's own features, a row of sums each.
template <class T>
CALIBRANT_INLINE void add_own(const T* v, const T* x, std::int64_t k, T sure, Padded<T>& own) {
    T* s[kOwn];
    for (std::int64_t e = 0; e < kOwn; ++e) s[e] = own.row(e);
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) {
        const T vx = v[j] * x[j], vs = v[j] * sure;
        s[0][j] += vx * x[j];
        s[1][j] += vx;
        s[2][j] += v[j];
        s[3][j] += vx * sure;
        s[4][j] += vs;
        s[5][j] += vs * sure;
    }
}

template <class T>
CALIBRANT_INLINE void along_part(const MatrixRows<T>& rows, const Padded<T>* weights, const Padded<T>& directions,
                                 std::int64_t r, std::int64_t from, std::int64_t to, double* out) {
    const std::int64_t k = rows.k, side = rows.side(), width = r + kOwn;
    Block<T> block(rows);
    Padded<T> turned(kBlock, r), sums(k, r), own(kOwn, k);
    double totals[kBlock];
    for (std::int64_t start = from, blocks = 1; start < to; start += kBlock, ++blocks) {
        const std::int64_t count = std::min(kBlock, to - start);
        judge(rows, weights, start, count, nullptr, block, totals, nullptr);
        for (std::int64_t i = 0; i < count; ++i) {
            T* a = block.a.row(i);
            const T weight = static_cast<T>(rows.weight(start + i)), scale = static_cast<T>(1 / totals[i]);
#pragma omp simd
            for (std::int64_t j = 0; j < k; ++j) a[j] = weight * (a[j] * scale) * (T(1) - a[j] * scale);
            add_own(a, block.x.row(i), k, side > k + 1 ? block.x.row(i)[k] : T(0), own);
        }
        turned.clear();
        add_product(block.x.data(), block.x.columns, directions.data(), side, turned.data(), kBlock, turned.columns);
        for (auto& value : turned.memory) value *= value;
        add_cross_product(block.a.data(), block.a.columns, turned.data(), kBlock, sums.data(), k, sums.columns);
        if (blocks % kFlush && start + kBlock < to) continue;
        flush(sums, r, width, out);
        for (std::int64_t e = 0; e < kOwn; ++e)
            for (std::int64_t j = 0; j < k; ++j) out[j * width + r + e] += own.row(e)[j];
        own.clear();
    }
}

#define CALIBRANT_MATRIX_CLONES(T)                                                                                       \
    CALIBRANT_CLONES double sums_of(const MatrixRows<T>& rows, const Padded<T>* weights, const std::int64_t* labels,    \
                                    std::int64_t from, std::int64_t to, double* out) {                                  \
        return sums_part(rows, weights, labels, from, to, out);                                                         \
    }                                                                                                                   \
    CALIBRANT_CLONES void blocks_of(const MatrixRows<T>& rows, const Padded<T>* weights, std::int64_t from,             \
                                    std::int64_t to, double* out) {                                                     \
        blocks_part(rows, weights, from, to, out);                                                                      \
    }                                                                                                                   \
    CALIBRANT_CLONES void moment_of(const MatrixRows<T>& rows, const Padded<T>* weights, const Padded<T>& shift,        \
                                    std::int64_t from, std::int64_t to, double* out) {                                  \
        moment_part(rows, weights, shift, from, to, out);                                                               \
    }                                                                                                                   \
    CALIBRANT_CLONES void along_of(const MatrixRows<T>& rows, const Padded<T>* weights, const Padded<T>& directions,    \
                                   std::int64_t r, std::int64_t from, std::int64_t to, double* out) {                   \
        along_part(rows, weights, directions, r, from, to, out);                                                        \
    }
CALIBRANT_MATRIX_CLONES(float)
CALIBRANT_MATRIX_CLONES(double)

// Runs part(weights, from, to, sums) over parts of the rows, in threads, and adds up their sums in order. The parts
// depend on the shape alone; their number is bounded by the memory they take.
template <class T, class Part>
void add_parts(const MatrixRows<T>& rows, std::int64_t width, int threads, double* out, Part part) {
    const std::int64_t most = std::clamp<std::int64_t>(kMemory / width, 8, kMostParts);
    const std::int64_t step = std::max(round_up((rows.n + most - 1) / most, kBlock), 3 * kBlock);
    const std::int64_t parts = (rows.n + step - 1) / step, size = rows.side() * rows.k;
    const bool moved = std::any_of(rows.weights, rows.weights + size, [](double w) { return w != 0; });
    const Padded<T> weights(rows.weights, rows.side(), rows.k);
    std::vector<double> sums(parts * width);
    for_blocks(parts, 65536, threads, [&](std::int64_t p, std::int64_t, std::int64_t) {
        part(moved ? &weights : nullptr, p * step, std::min(rows.n, (p + 1) * step), sums.data() + p * width);
    });
    std::fill(out, out + width, 0.0);
    for (std::int64_t p = 0; p < parts; ++p)
        for (std::int64_t j = 0; j < width; ++j) out[j] += sums[p * width + j];
}

}  // namespace

template <class T>
double matrix_sums(const MatrixRows<T>& rows, const std::int64_t* labels, int threads, double* out) {
    const std::int64_t width = rows.side() * rows.k;
    std::vector<double> sums(width + 1);  // the last is the loss
    add_parts(rows, width + 1, threads, sums.data(),
              [&](const Padded<T>* weights, std::int64_t from, std::int64_t to, double* part) {
                  part[width] = sums_of(rows, weights, labels, from, to, part);
              });
    std::copy(sums.begin(), sums.end() - 1, out);
    return sums[width];
}

template <class T>
void matrix_blocks(const MatrixRows<T>& rows, int threads, double* out) {
    add_parts(rows, rows.k * rows.side() * rows.side(), threads, out,
              [&](const Padded<T>* weights, std::int64_t from, std::int64_t to, double* part) {
                  blocks_of(rows, weights, from, to, part);
              });
}

template <class T>
void matrix_moment(const MatrixRows<T>& rows, const double* shift, int threads, double* out) {
    Padded<T> away(1, rows.side());
    std::copy(shift, shift + rows.side() - 1, away.row(0));
    add_parts(rows, rows.side() * rows.side(), threads, out,
              [&](const Padded<T>* weights, std::int64_t from, std::int64_t to, double* part) {
                  moment_of(rows, weights, away, from, to, part);
              });
}

template <class T>
void matrix_along(const MatrixRows<T>& rows, const double* directions, std::int64_t r, int threads, double* out) {
    const Padded<T> turned(directions, rows.side(), r);
    add_parts(rows, rows.k * (r + kOwn), threads, out,
              [&](const Padded<T>* weights, std::int64_t from, std::int64_t to, double* part) {
                  along_of(rows, weights, turned, r, from, to, part);
              });
}

#define CALIBRANT_INSTANTIATE(T)                                                                       \
    template double matrix_sums<T>(const MatrixRows<T>&, const std::int64_t*, int, double*);           \
    template void matrix_blocks<T>(const MatrixRows<T>&, int, double*);                                \
    template void matrix_moment<T>(const MatrixRows<T>&, const double*, int, double*);                 \
    template void matrix_along<T>(const MatrixRows<T>&, const double*, std::int64_t, int, double*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
