#include "keys.hpp"

#include <bit>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

// One step of a multiplicative hash, and its end: the constants are those of the splitmix64 generator.
CALIBRANT_INLINE std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
    return std::rotl((state ^ word) * 0x9e3779b97f4a7c15u, 29);
}

CALIBRANT_INLINE std::uint64_t finish(std::uint64_t state) {
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
    return state ^ (state >> 31);
}

// The leading bits of a float: sign, exponent and `digits` behind the leading one, rounded.
template <int digits>
CALIBRANT_INLINE std::uint32_t leading_bits(float value) {
    constexpr int dropped = 23 - digits;
    return (std::bit_cast<std::uint32_t>(value + 0.0f) + (1u << (dropped - 1))) >> dropped;  // -0 counts as 0
}

// A number for each column, no two alike: the end of the MurmurHash3 generator, which undoes no difference.
std::uint32_t column_factor(std::uint32_t column) {
    column = (column ^ (column >> 16)) * 0x85ebca6bu;
    column = (column ^ (column >> 13)) * 0xc2b2ae35u;
    return column ^ (column >> 16);
}

// All bits of a float, and of a double those that the last bits of a sum do not change.
CALIBRANT_INLINE std::uint64_t all_bits(float value) { return std::bit_cast<std::uint32_t>(value + 0.0f); }
CALIBRANT_INLINE std::uint64_t all_bits(double value) {
    return (std::bit_cast<std::uint64_t>(value + 0.0) + (1u << 19)) >> 20;
}

// The sum over all columns of their leading, or of all their bits, times the columns' factors.
template <bool fine, class T>
CALIBRANT_INLINE std::uint64_t sum_of_columns(const T* row, T origin, std::int64_t k, const std::uint32_t* factors) {
    std::uint64_t sum = 0;
    for (std::int64_t j = 0; j < k; ++j) {
        const T value = row[j] - origin;
        const std::uint64_t bits = fine ? all_bits(value) : leading_bits<4>(static_cast<float>(value));
        sum += bits * factors[j];
    }
    return sum;
}

// One block of rows; keys of many columns begin with all of these, fine ones end with them.
template <class T>
CALIBRANT_INLINE void block_keys(const T* values, const std::int64_t* labels, std::int64_t from, std::int64_t to,
                                 std::int64_t k, bool relative, bool fine, const std::uint32_t* factors,
                                 std::uint64_t* keys) {
    const std::int64_t used = k < kKeyColumns ? k : kKeyColumns;
    for (std::int64_t i = from; i < to; ++i) {
        const T* row = values + i * k;
        const T origin = relative ? row[labels[i]] : T(0);
        std::uint64_t state = mix(1, static_cast<std::uint64_t>(labels[i]));
        for (std::int64_t j = 0; j < used; ++j) {
            const double value = static_cast<double>(row[j * k / used]) - static_cast<double>(origin);
            state = mix(state, leading_bits<10>(static_cast<float>(value)));
        }
        if (k > kKeyColumns) state = mix(state, sum_of_columns<false>(row, origin, k, factors));
        if (fine) state = mix(state, sum_of_columns<true>(row, origin, k, factors));
        keys[i] = finish(state);
    }
}
CALIBRANT_CLONES void block_keys_of(const float* values, const std::int64_t* labels, std::int64_t from, std::int64_t to,
                                    std::int64_t k, bool relative, bool fine, const std::uint32_t* factors,
                                    std::uint64_t* keys) {
    block_keys(values, labels, from, to, k, relative, fine, factors, keys);
}
CALIBRANT_CLONES void block_keys_of(const double* values, const std::int64_t* labels, std::int64_t from, std::int64_t to,
                                    std::int64_t k, bool relative, bool fine, const std::uint32_t* factors,
                                    std::uint64_t* keys) {
    block_keys(values, labels, from, to, k, relative, fine, factors, keys);
}

}  // namespace

template <class T>
void row_keys(const T* values, const std::int64_t* labels, std::int64_t n, std::int64_t k, bool relative, bool fine,
              int threads, std::uint64_t* keys) {
    std::vector<std::uint32_t> factors(k);
    for (std::int64_t j = 0; j < k; ++j) factors[j] = column_factor(static_cast<std::uint32_t>(j + 1));
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        block_keys_of(values, labels, from, to, k, relative, fine, factors.data(), keys);
    }, kReadersRun);
}

std::uint64_t key_of_two(std::int64_t label, std::uint32_t leading) {
    const std::uint64_t state = mix(1, static_cast<std::uint64_t>(label));
    return finish(mix(mix(state, label == 0 ? 0 : leading), label == 0 ? leading : 0));
}

template void row_keys<float>(const float*, const std::int64_t*, std::int64_t, std::int64_t, bool, bool, int, std::uint64_t*);
template void row_keys<double>(const double*, const std::int64_t*, std::int64_t, std::int64_t, bool, bool, int, std::uint64_t*);

}  // namespace calibrant
