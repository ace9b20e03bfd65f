// Rows of two classes that have one score, its log-odds, and no weights: their fine cells (binning.hpp) and their folds
// (keys.hpp) by two goes through them. What binning.hpp calls the key of a score is its cell key here.
#pragma once

#include <cstdint>

namespace calibrant {

constexpr int kGlanceBits = 20;  // upper bits of a cell key that settle a row's key, and with it its fold
constexpr std::int64_t kGlances = std::int64_t(1) << kGlanceBits, kCoarse = std::int64_t(1) << 16;

// Writes the cell key of each row, less 2^31, adds to counts[upper 20 bits][label] how many rows have them, and marks
// there[upper 16 bits]: most counts are never touched, and take no memory.
template <class T>
void score_cells(const T* odds, const std::int64_t* labels, std::int64_t n, std::int32_t* cell_keys, std::int32_t* counts,
                 std::uint8_t* there);

// From these counts: coarse[c][0..1], rows and rows of label 1 by the upper 16 bits; held[c], in bit 2 s + label whether
// the rows of label and of upper 20 bits 16 c + s are in the first of so many folds by their keys; and returns how many
// rows at most share a key.
std::int64_t split_glances(const std::int32_t* counts, const std::uint8_t* there, std::int64_t folds, double* coarse,
                           std::int32_t* held);

// Adds each row to out[fine cell][2 in the first fold + label]; first and shift as in cell_sums with 16 bits.
void fold_cells(const std::int32_t* cell_keys, const std::int64_t* labels, std::int64_t n, const std::int32_t* first,
                const std::int32_t* shift, const std::int32_t* held, std::int32_t* out);

}  // namespace calibrant
