// How often noise on the logits keeps the top label: by sampling, and by quadrature.
#pragma once

#include <cstdint>

namespace calibrant {

// out[i]: the share of the m noise vectors, times scale, under which no class exceeds the top class of row i. noise is (k, m):
// one row a class, so that the vectors lie side by side. Classes that no noise vector can lift over the top are never touched.
template <class T>
void keep_shares(const T* logits, const T* noise, double scale, std::int64_t n, std::int64_t k, std::int64_t m, int threads,
                 double* out);

enum class Noise : int { gaussian = 0, uniform = 1 };

// out[i]: the same for noise that is independent over classes, as the integral over the top class's noise e of
// density(e) * prod_k F(z_top - z_k + e), by the trapezoidal rule (Gaussian) or midpoints (uniform) on `nodes` points.
// scale is the standard deviation, or the width of the uniform law; a common mean changes nothing.
template <class T>
void keep_probabilities(const T* logits, std::int64_t n, std::int64_t k, Noise noise, double scale, std::int64_t nodes,
                        int threads, double* out);

}  // namespace calibrant
