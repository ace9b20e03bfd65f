// A number that rises with a score, of which the upper bits name a cell; see binning.hpp.
#pragma once

#include <cstdint>
#include <cstring>

#include "simd.hpp"

namespace calibrant {

// The bits of a float32, reordered so that as integers they are in the order of the numbers.
CALIBRANT_INLINE std::int32_t rising_bits(float score) {
    const float positive_zero = score + 0.0f;  // -0 becomes +0
    std::int32_t bits;
    std::memcpy(&bits, &positive_zero, 4);
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

CALIBRANT_INLINE std::uint32_t key_of(float score) { return static_cast<std::uint32_t>(rising_bits(score)) ^ 0x80000000u; }

}  // namespace calibrant
