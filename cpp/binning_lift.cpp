#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "binning.hpp"
#include "binning_edges.hpp"
#include "lift.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

// Scores are compared as integers whose order is theirs, which processors do more of at a time than of floating point;
// answers are carried as their bits.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

template <class T>
CALIBRANT_INLINE Bits<T> key_of(T score) {
    const auto bits = std::bit_cast<Bits<T>>(score + T(0));  // -0 becomes +0
    return bits ^ ((bits >> (8 * sizeof(T) - 1)) & std::numeric_limits<Bits<T>>::max());
}

// The key before this one; that of the lowest NaN has none.
template <class Key>
Key below(Key key) {
    return key > std::numeric_limits<Key>::min() ? key - 1 : key;
}

// A table as steps: the first answer, then for each edge the key above which the next answer holds. Steps come in pieces
// of kPiece, few enough to stay in registers while many scores walk past; kLanes tables lie side by side in a tile.
constexpr std::int64_t kPiece = 7;
template <class T>
constexpr std::int64_t kLanes = 32 / sizeof(T);

template <class T>
struct Steps {
    std::int64_t pieces = 0;     // of a tile
    std::vector<Bits<T>> first;  // (tiles, kLanes)
    std::vector<Bits<T>> steps;  // (tiles, pieces, keys or answers, kPiece, kLanes)

    std::int64_t tile_size() const { return pieces * 2 * kPiece * kLanes<T>; }
};

template <class T>
Steps<T> stepped(const double* edges, const double* table, std::int64_t tables, std::int64_t n_edges) {
    constexpr std::int64_t lanes = kLanes<T>;
    const std::int64_t tiles = (tables + lanes - 1) / lanes;
    Steps<T> out;
    out.pieces = std::max<std::int64_t>(1, (n_edges + kPiece - 1) / kPiece);
    out.first.resize(tiles * lanes);
    out.steps.resize(tiles * out.tile_size());
    for (std::int64_t t = 0; t < tiles * lanes; ++t) {
        const std::int64_t own = std::min(t, tables - 1);  // a tile is filled up with its last table
        const double *edge = edges + own * n_edges, *answer = table + own * (n_edges + 1);
        out.first[t] = std::bit_cast<Bits<T>>(static_cast<T>(answer[0]));
        for (std::int64_t m = 0; m < out.pieces * kPiece; ++m) {
            const std::int64_t row = m / kPiece * 2 * kPiece + m % kPiece;
            Bits<T>* key = out.steps.data() + t / lanes * out.tile_size() + row * lanes + t % lanes;
            key[0] = m < n_edges ? below(key_of(ceiling<T>(edge[m]))) : std::numeric_limits<Bits<T>>::max();
            key[kPiece * lanes] = std::bit_cast<Bits<T>>(static_cast<T>(answer[std::min(m + 1, n_edges)]));
        }
    }
    return out;
}

// Answers of `walk` times kLanes keys, `stride` apart, after one piece of their tables.
template <class T, bool First>
CALIBRANT_INLINE void choose_piece(const Bits<T>* __restrict keys, std::int64_t walk, std::int64_t stride,
                                   const Bits<T>* __restrict first, const Bits<T>* __restrict steps,
                                   Bits<T>* __restrict answers) {
    constexpr std::int64_t lanes = kLanes<T>;
    for (std::int64_t i = 0; i < walk; ++i) {
#pragma omp simd
        for (std::int64_t l = 0; l < lanes; ++l) {
            const Bits<T> own = keys[i * stride + l];
            Bits<T> answer = First ? first[l] : answers[i * stride + l];
#pragma GCC unroll 8
            for (std::int64_t m = 0; m < kPiece; ++m) {
                const Bits<T> key = steps[m * lanes + l], next = steps[(kPiece + m) * lanes + l];
                answer = own > key ? next : answer;
            }
            answers[i * stride + l] = answer;
        }
    }
}

template <class T>
CALIBRANT_INLINE void choose(const Bits<T>* keys, std::int64_t walk, std::int64_t stride, const Bits<T>* first,
                             const Bits<T>* steps, std::int64_t pieces, Bits<T>* answers) {
    choose_piece<T, true>(keys, walk, stride, first, steps, answers);
    for (std::int64_t p = 1; p < pieces; ++p)
        choose_piece<T, false>(keys, walk, stride, first, steps + p * 2 * kPiece * kLanes<T>, answers);
}

template <class T>
CALIBRANT_INLINE double row_sum(const Bits<T>* q, std::int64_t k) {
    constexpr std::int64_t width = 32, chunk = 2048;  // lanes are emptied into a double this often
    double sum = 0;
    for (std::int64_t from = 0; from < k; from += chunk) {
        T lanes[width] = {};
        const std::int64_t to = std::min(from + chunk, k);
        std::int64_t j = from;
        for (; j + width <= to; j += width) {
#pragma omp simd
            for (std::int64_t l = 0; l < width; ++l) lanes[l] += std::bit_cast<T>(q[j + l]);
        }
        for (std::int64_t l = 0; l < width; ++l) sum += lanes[l];
        for (; j < to; ++j) sum += std::bit_cast<T>(q[j]);
    }
    return sum;
}

template <class T>
CALIBRANT_INLINE void write_row(const T* logits, std::int64_t k, const Bits<T>* answers, bool normalize, T* q) {
    const double sum = normalize ? row_sum<T>(answers, k) : 1.0;
    const T inverse = static_cast<T>(1.0 / sum);
    const bool divides = normalize && sum > 0 && std::isfinite(inverse);
    const T factor = divides ? inverse : T(1);
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) q[j] = std::bit_cast<T>(answers[j]) * factor;
    if (normalize && !divides) normalize_rows(logits, 1, k, false, 1, q);
}

// Columns of a row of keys: whole tiles, and an odd number of cache lines, so that rows do not share a few sets of these.
template <class T>
std::int64_t stride_of(std::int64_t k) {
    constexpr std::int64_t line = 64 / sizeof(T);
    return ((k + line - 1) / line | 1) * line;
}

// Rows that share a walk: enough for a tile's steps to be worth loading, few enough for keys and answers to stay in the
// second-level cache, or in the first where all classes share one tile.
template <class T>
std::int64_t batch_of(std::int64_t k, std::int64_t rows, bool shared) {
    const std::int64_t fit = (shared ? 4096 : 65536) / static_cast<std::int64_t>(sizeof(T)) / stride_of<T>(k);
    const std::int64_t most = std::max<std::int64_t>(shared ? 1 : 16, fit);
    const std::int64_t batches = (rows + most - 1) / most;
    return (rows + batches - 1) / batches;
}

// Memory for a batch of rows: keys and answers, whose vectors do not straddle cache lines.
template <class T>
struct Room {
    explicit Room(std::int64_t k, std::int64_t rows)
        : odds(k), storage(2 * rows * stride_of<T>(k) + 64 / sizeof(Bits<T>)), stride(stride_of<T>(k)) {
        const auto place = reinterpret_cast<std::uintptr_t>(storage.data());
        keys = storage.data() + (64 - place % 64) % 64 / sizeof(Bits<T>);
        answers = keys + rows * stride;
    }
    std::vector<T> odds;
    std::vector<Bits<T>> storage;
    std::int64_t stride;
    Bits<T>*keys, *answers;
};

template <class T>
CALIBRANT_INLINE void lift_rows(const T* logits, std::int64_t rows, std::int64_t k, const Bits<T>* first,
                                const Bits<T>* steps, std::int64_t pieces, bool shared, bool normalize, T* odds,
                                Bits<T>* keys, Bits<T>* answers, std::int64_t stride, T* out) {
    constexpr std::int64_t lanes = kLanes<T>;
    for (std::int64_t r = 0; r < rows; ++r) {
        log_odds_row(logits + r * k, k, odds);
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) keys[r * stride + j] = key_of(odds[j]);
    }
    if (shared)
        choose<T>(keys, rows * stride / lanes, lanes, first, steps, pieces, answers);
    else
        for (std::int64_t j = 0; j < k; j += lanes)
            choose<T>(keys + j, rows, stride, first + j, steps + j * pieces * 2 * kPiece, pieces, answers + j);
    for (std::int64_t r = 0; r < rows; ++r)
        write_row<T>(logits + r * k, k, answers + r * stride, normalize, out + r * k);
}

// One long table for all scores: bins by a search, answers by their places.
template <class T>
CALIBRANT_INLINE void search_row(const T* scores, std::int64_t k, const T* edges, const Bits<T>* table,
                                 std::int64_t n_edges, int steps, std::int32_t* bin, Bits<T>* answers) {
    row_bins(scores, k, edges, n_edges, steps, bin);
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) answers[j] = table[bin[j]];
}

template <class T>
CALIBRANT_INLINE void look_up(const T* scores, std::int64_t n, const Bits<T>* first, const Bits<T>* steps,
                              std::int64_t pieces, Bits<T>* keys, Bits<T>* answers, T* out) {
    constexpr std::int64_t lanes = kLanes<T>;
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) keys[j] = key_of(scores[j]);
    choose<T>(keys, (n + lanes - 1) / lanes, lanes, first, steps, pieces, answers);
    write_row<T>(scores, n, answers, false, out);
}

#define CALIBRANT_BINNING_BLOCKS(T)                                                                                       \
    CALIBRANT_CLONES void lift_rows_of(const T* logits, std::int64_t rows, std::int64_t k, const Bits<T>* first,          \
                                       const Bits<T>* steps, std::int64_t pieces, bool shared, bool normalize, T* odds,   \
                                       Bits<T>* keys, Bits<T>* answers, std::int64_t stride, T* out) {                    \
        lift_rows(logits, rows, k, first, steps, pieces, shared, normalize, odds, keys, answers, stride, out);            \
    }                                                                                                                     \
    CALIBRANT_CLONES void search_row_of(const T* scores, std::int64_t k, const T* edges, const Bits<T>* table,            \
                                        std::int64_t n_edges, int steps, std::int32_t* bin, Bits<T>* answers) {           \
        search_row<T>(scores, k, edges, table, n_edges, steps, bin, answers);                                             \
    }                                                                                                                     \
    CALIBRANT_CLONES void write_row_of(const T* logits, std::int64_t k, const Bits<T>* answers, bool normalize, T* q) {   \
        write_row<T>(logits, k, answers, normalize, q);                                                                   \
    }                                                                                                                     \
    CALIBRANT_CLONES void look_up_of(const T* scores, std::int64_t n, const Bits<T>* first, const Bits<T>* steps,         \
                                     std::int64_t pieces, Bits<T>* keys, Bits<T>* answers, T* out) {                      \
        look_up<T>(scores, n, first, steps, pieces, keys, answers, out);                                                  \
    }
CALIBRANT_BINNING_BLOCKS(float)
CALIBRANT_BINNING_BLOCKS(double)
#undef CALIBRANT_BINNING_BLOCKS

template <class T>
std::vector<Bits<T>> bits_of(const double* table, std::int64_t count) {
    std::vector<Bits<T>> out(count);
    for (std::int64_t m = 0; m < count; ++m) out[m] = std::bit_cast<Bits<T>>(static_cast<T>(table[m]));
    return out;
}

template <class T>
void search_lift(const T* logits, std::int64_t n, std::int64_t k, const double* edges, const double* table,
                 std::int64_t n_edges, bool normalize, int threads, T* out) {
    const Edges<T> found = prepared<T>(edges, n_edges);
    const std::vector<Bits<T>> bits = bits_of<T>(table, n_edges + 1);
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        std::vector<T> odds(k);
        std::vector<std::int32_t> bin(k);
        std::vector<Bits<T>> answers(k);
        for (std::int64_t i = from; i < to; ++i) {
            log_odds_row(logits + i * k, k, odds.data());
            search_row_of(odds.data(), k, found.values.data(), bits.data(), n_edges, found.steps, bin.data(),
                          answers.data());
            write_row_of(logits + i * k, k, answers.data(), normalize, out + i * k);
        }
    });
}

}  // namespace

template <class T>
void bin_lift(const T* logits, std::int64_t n, std::int64_t k, const double* edges, const double* table,
              std::int64_t tables, std::int64_t n_edges, bool normalize, int threads, T* out) {
    const bool shared = tables == 1;
    if (shared && n_edges > kCounted) {
        search_lift(logits, n, k, edges, table, n_edges, normalize, threads, out);
        return;
    }
    const Steps<T> found = stepped<T>(edges, table, tables, n_edges);
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        const std::int64_t batch = batch_of<T>(k, to - from, shared);
        Room<T> room(k, batch);
        for (std::int64_t i = from; i < to; i += batch)
            lift_rows_of(logits + i * k, std::min(batch, to - i), k, found.first.data(), found.steps.data(), found.pieces,
                         shared, normalize, room.odds.data(), room.keys, room.answers, room.stride, out + i * k);
    });
}

template <class T>
void bin_look_up(const T* scores, std::int64_t n, const double* edges, const double* table, std::int64_t n_edges,
                 int threads, T* out) {
    constexpr std::int64_t strip = 4096;
    const bool searched = n_edges > kCounted;
    const Edges<T> sought = searched ? prepared<T>(edges, n_edges) : Edges<T>{};
    const std::vector<Bits<T>> bits = bits_of<T>(table, n_edges + 1);
    const Steps<T> found = searched ? Steps<T>{} : stepped<T>(edges, table, 1, n_edges);
    for_blocks(n, 1, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        Room<T> room(strip, 1);
        std::vector<std::int32_t> bin(searched ? strip : 0);
        for (std::int64_t at = from; at < to; at += strip) {
            const std::int64_t count = std::min(strip, to - at);
            if (!searched) {
                look_up_of(scores + at, count, found.first.data(), found.steps.data(), found.pieces, room.keys,
                           room.answers, out + at);
                continue;
            }
            search_row_of(scores + at, count, sought.values.data(), bits.data(), n_edges, sought.steps, bin.data(),
                          room.answers);
            write_row_of(scores + at, count, room.answers, false, out + at);
        }
    });
}

#define CALIBRANT_BINNING_INSTANCES(T)                                                                                    \
    template void bin_lift<T>(const T*, std::int64_t, std::int64_t, const double*, const double*, std::int64_t,           \
                              std::int64_t, bool, int, T*);                                                               \
    template void bin_look_up<T>(const T*, std::int64_t, const double*, const double*, std::int64_t, int, T*);
CALIBRANT_BINNING_INSTANCES(float)
CALIBRANT_BINNING_INSTANCES(double)

}  // namespace calibrant
