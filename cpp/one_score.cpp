#include "one_score.hpp"

#include <algorithm>

#include "cell_keys.hpp"
#include "keys.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kRun = 8192;  // rows between two looks whether the user wants to stop
constexpr std::int64_t kParts = kGlances / kCoarse;
constexpr std::int32_t kSign = 1 << (kGlanceBits - 1);

CALIBRANT_INLINE std::uint32_t upper_half(std::int32_t cell_key) { return static_cast<std::uint32_t>(cell_key) ^ 0x80000000u; }

// A full count begins anew, as an unsigned one does: the caller says how many rows there may be.
CALIBRANT_INLINE void count_one(std::int32_t* count) { ++*reinterpret_cast<std::uint32_t*>(count); }

template <class T>
CALIBRANT_INLINE void count_run(const T* odds, const std::int64_t* labels, std::int64_t n, std::int32_t* cell_keys,
                                std::int32_t* counts, std::uint8_t* there) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) cell_keys[i] = rising_bits(static_cast<float>(odds[i]));
    for (std::int64_t i = 0; i < n; ++i) {
        const std::uint32_t key = upper_half(cell_keys[i]);
        there[key >> 16] = 1;
        count_one(counts + 2 * std::int64_t(key >> (32 - kGlanceBits)) + labels[i]);
    }
}

#define CALIBRANT_ONE_SCORE(T)                                                                                         \
    CALIBRANT_CLONES void count_run_of(const T* odds, const std::int64_t* labels, std::int64_t n,                      \
                                       std::int32_t* cell_keys, std::int32_t* counts, std::uint8_t* there) {           \
        count_run(odds, labels, n, cell_keys, counts, there);                                                          \
    }
CALIBRANT_ONE_SCORE(float)
CALIBRANT_ONE_SCORE(double)
#undef CALIBRANT_ONE_SCORE

CALIBRANT_CLONES void fold_run(const std::int32_t* cell_keys, const std::int64_t* labels, std::int64_t n,
                               const std::int32_t* first, const std::int32_t* shift, const std::int32_t* held,
                               std::int32_t* out) {
    for (std::int64_t i = 0; i < n; ++i) {
        const std::uint32_t key = upper_half(cell_keys[i]), coarse = key >> 16;
        const std::int64_t cell = first[coarse] + static_cast<std::int32_t>((key & 0xffff) >> shift[coarse]);
        const std::uint32_t place = 2 * ((key >> (32 - kGlanceBits)) & (kParts - 1)) + static_cast<std::uint32_t>(labels[i]);
        const std::uint32_t inside = (static_cast<std::uint32_t>(held[coarse]) >> place) & 1;
        count_one(out + 4 * cell + 2 * inside + labels[i]);
    }
}

// Sign and size of the log-odds whose cell keys begin with these bits, as the bits of a float begin.
std::int32_t float_bits(std::int64_t glance) {
    return static_cast<std::int32_t>(glance >= kSign ? glance - kSign : kGlances - 1 - glance);
}

std::int64_t glance_of(std::int32_t bits) { return bits < kSign ? bits + kSign : kGlances - 1 - bits; }

// Keys look at eleven digits, rounded: two neighbours by their twelfth share one. The other of the two, or -1.
std::int64_t neighbour(std::int64_t glance) {
    const std::int32_t bits = float_bits(glance), size = bits & (kSign - 1);
    if (size == 0 || size == kSign - 1) return -1;
    return glance_of((bits & kSign) | (size % 2 ? size + 1 : size - 1));
}

// The key of a row of this label: that of the other class's score less the label's.
std::uint64_t key_of_row(std::int64_t glance, std::int64_t label) {
    std::int32_t bits = float_bits(glance);
    if (label == 1) bits ^= kSign;
    if ((bits & (kSign - 1)) == 0) bits = 0;  // zero has no sign
    return key_of_two(label, static_cast<std::uint32_t>(bits + 1) >> 1);
}

}  // namespace

template <class T>
void score_cells(const T* odds, const std::int64_t* labels, std::int64_t n, std::int32_t* cell_keys, std::int32_t* counts,
                 std::uint8_t* there) {
    for (std::int64_t from = 0; from < n; from += kRun) {
        Watch::look();
        count_run_of(odds + from, labels + from, std::min(kRun, n - from), cell_keys + from, counts, there);
    }
}

std::int64_t split_glances(const std::int32_t* counts, const std::uint8_t* there, std::int64_t folds, double* coarse,
                           std::int32_t* held) {
    std::int64_t most = 0;
    for (std::int64_t c = 0; c < kCoarse; ++c) {
        std::int64_t sums[2] = {0, 0};
        std::uint32_t chosen = 0;
        for (std::int64_t s = 0; there[c] && s < kParts; ++s) {
            const std::int64_t glance = kParts * c + s, beside = neighbour(glance);
            for (std::int64_t label = 0; label < 2; ++label) {
                const std::int64_t count = counts[2 * glance + label];
                if (count == 0) continue;
                sums[label] += count;
                most = std::max<std::int64_t>(most, count + (beside < 0 ? 0 : counts[2 * beside + label]));
                if (key_of_row(glance, label) % folds == 0) chosen |= std::uint32_t(1) << (2 * s + label);
            }
        }
        coarse[2 * c] = static_cast<double>(sums[0] + sums[1]), coarse[2 * c + 1] = static_cast<double>(sums[1]);
        held[c] = static_cast<std::int32_t>(chosen);
    }
    return most;
}

void fold_cells(const std::int32_t* cell_keys, const std::int64_t* labels, std::int64_t n, const std::int32_t* first,
                const std::int32_t* shift, const std::int32_t* held, std::int32_t* out) {
    for (std::int64_t from = 0; from < n; from += kRun) {
        Watch::look();
        fold_run(cell_keys + from, labels + from, std::min(kRun, n - from), first, shift, held, out);
    }
}

template void score_cells<float>(const float*, const std::int64_t*, std::int64_t, std::int32_t*, std::int32_t*,
                                 std::uint8_t*);
template void score_cells<double>(const double*, const std::int64_t*, std::int64_t, std::int32_t*, std::int32_t*,
                                 std::uint8_t*);

}  // namespace calibrant
