#include "keys.hpp"

#include <bit>

#include "parallel.hpp"

namespace calibrant {
namespace {

// One step of a multiplicative hash, and its end: the constants are those of the splitmix64 generator.
std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
    return std::rotl((state ^ word) * 0x9e3779b97f4a7c15u, 29);
}

std::uint64_t finish(std::uint64_t state) {
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
    return state ^ (state >> 31);
}

// The leading bits of a float: sign, exponent and ten digits behind the leading one, rounded.
std::uint64_t leading_bits(double value) {
    const auto single = static_cast<float>(value + 0.0);  // -0 counts as 0
    return (std::bit_cast<std::uint32_t>(single) + (1u << 12)) >> 13;
}

template <class T>
std::uint64_t row_key(const T* row, std::int64_t label, std::int64_t k, bool relative) {
    const double origin = relative ? static_cast<double>(row[label]) : 0.0;
    const std::int64_t used = k < kKeyColumns ? k : kKeyColumns;
    std::uint64_t state = mix(1, static_cast<std::uint64_t>(label));
    for (std::int64_t j = 0; j < used; ++j) {
        const double value = static_cast<double>(row[j * k / used]) - origin;
        state = mix(state, leading_bits(value));
    }
    return finish(state);
}

}  // namespace

template <class T>
void row_keys(const T* values, const std::int64_t* labels, std::int64_t n, std::int64_t k, bool relative, int threads,
              std::uint64_t* keys) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        for (std::int64_t i = from; i < to; ++i) keys[i] = row_key(values + i * k, labels[i], k, relative);
    });
}

template void row_keys<float>(const float*, const std::int64_t*, std::int64_t, std::int64_t, bool, int, std::uint64_t*);
template void row_keys<double>(const double*, const std::int64_t*, std::int64_t, std::int64_t, bool, int, std::uint64_t*);

}  // namespace calibrant
