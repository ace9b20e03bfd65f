// How often noise on the logits keeps the top label: by sampling, and by quadrature.
#pragma once

#include <cstdint>
#include <optional>

namespace calibrant {

// Noise vectors are looked at in tiles of 32, held in registers; a tile has a row for each class and stays in the
// second-level cache while a block of rows passes. Lanes beyond the last vector are NaN: they compare false and never count.
constexpr std::int64_t kTile = 32;
constexpr std::int64_t tile_count(std::int64_t m) { return (m + kTile - 1) / kTile; }

// m noise vectors for k classes, by tile, class and lane; the lowest and the highest noise of each class.
template <class T>
struct Noises {
    std::int64_t k, m;
    const T *packed, *low, *high;
    const T* tile(std::int64_t t) const { return packed + t * k * kTile; }
};

// Lays out noise of shape (k, m): packed has tile_count(m) * k * kTile numbers, low and high have k.
template <class T>
void pack_noise(const T* noise, std::int64_t k, std::int64_t m, T* packed, T* low, T* high);

// out[i]: the share of the noise vectors, times scale, under which no class exceeds the top class of row i. Classes that no
// noise vector can lift over the top are never touched.
template <class T>
void keep_shares(const T* logits, const Noises<T>& noises, double scale, std::int64_t n, int threads, double* out);

enum class Noise : int { gaussian = 0, uniform = 1 };

// out[i]: the same for noise that is independent over classes, as the integral over the top class's noise e of
// density(e) * prod_k F(z_top - z_k + e), by the trapezoidal rule (Gaussian) or midpoints (uniform) on `nodes` points.
// scale is the standard deviation, or the width of the uniform law; a common mean changes nothing.
template <class T>
void keep_probabilities(const T* logits, std::int64_t n, std::int64_t k, Noise noise, double scale, std::int64_t nodes,
                        int threads, double* out);

// The steps that Hoki learnt, (steps, bins): in bin j of the present confidence p, the next is (alpha_j - beta_j) share +
// beta_j; a bin that was empty leaves p alone. Bins are (j / bins, (j + 1) / bins], with 0 in the first.
struct Steps {
    const double *alphas, *betas;
    const bool* filled;
    std::int64_t steps, bins;
};

// Gives each row's top class the confidence that the steps lead to, kept off 0 and 1 by a margin, and shares the rest out as
// out does, which holds softmax(logits); evenly where that leaves nothing. p starts at start, or at the row's own confidence.
template <class T>
void spread_confidence(const T* logits, const double* shares, const Steps& steps, std::optional<double> start, double margin,
                       std::int64_t n, std::int64_t k, int threads, T* out);

}  // namespace calibrant
