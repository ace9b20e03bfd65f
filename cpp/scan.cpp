#include "scan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

// x - x is 0 for finite x and NaN otherwise, so one sum tells whether a row is finite.
template <class T>
CALIBRANT_INLINE bool finite_row(const T* z, std::int64_t k, double& largest) {
    T probe = 0, most = 0;
#pragma omp simd reduction(+ : probe) reduction(max : most)
    for (std::int64_t j = 0; j < k; ++j) {
        const T size = z[j] < 0 ? -z[j] : z[j];
        probe += z[j] - z[j];
        most = size > most ? size : most;
    }
    if (probe != T(0)) return false;
    largest = most > largest ? most : largest;
    return true;
}

template <class T>
CALIBRANT_INLINE bool on_simplex(const T* z, std::int64_t k, double tolerance) {
    double sum = 0;
    for (std::int64_t j = 0; j < k; ++j) {
        if (!(z[j] >= T(0) && z[j] <= T(1 + tolerance))) return false;
        sum += z[j];
    }
    return std::abs(sum - 1) <= tolerance;
}

void note(std::int64_t& first, std::int64_t row) {
    if (first < 0) first = row;
}

template <class T>
CALIBRANT_INLINE Findings scan_block(const T* values, std::int64_t from, std::int64_t to, std::int64_t k, double tolerance) {
    Findings found;
    for (std::int64_t i = from; i < to; ++i) {
        const T* z = values + i * k;
        if (found.off_simplex < 0 && !on_simplex(z, k, tolerance)) found.off_simplex = i;
        if (finite_row(z, k, found.largest)) continue;
        bool any = false;
        for (std::int64_t j = 0; j < k; ++j) {
            if (std::isnan(z[j]))
                note(found.nan, i);
            else if (std::isinf(z[j]))
                note(z[j] > 0 ? found.plus_infinity : found.minus_infinity, i);
            else
                any = true, found.largest = std::max(found.largest, std::abs(static_cast<double>(z[j])));
        }
        if (!any) note(found.no_finite, i);
    }
    return found;
}

CALIBRANT_CLONES Findings scan_block_of(const float* values, std::int64_t from, std::int64_t to, std::int64_t k, double tolerance) {
    return scan_block(values, from, to, k, tolerance);
}
CALIBRANT_CLONES Findings scan_block_of(const double* values, std::int64_t from, std::int64_t to, std::int64_t k, double tolerance) {
    return scan_block(values, from, to, k, tolerance);
}

}  // namespace

template <class T>
Findings scan(const T* values, std::int64_t n, std::int64_t k, double tolerance, int threads) {
    std::vector<Findings> parts(block_count(n, k));
    for_blocks(n, k, threads, [&](std::int64_t b, std::int64_t from, std::int64_t to) {
        parts[b] = scan_block_of(values, from, to, k, tolerance);
    });
    Findings all;
    for (const Findings& part : parts) {
        all.largest = std::max(all.largest, part.largest);
        if (part.nan >= 0) note(all.nan, part.nan);
        if (part.plus_infinity >= 0) note(all.plus_infinity, part.plus_infinity);
        if (part.minus_infinity >= 0) note(all.minus_infinity, part.minus_infinity);
        if (part.no_finite >= 0) note(all.no_finite, part.no_finite);
        if (part.off_simplex >= 0) note(all.off_simplex, part.off_simplex);
    }
    return all;
}

template Findings scan<float>(const float*, std::int64_t, std::int64_t, double, int);
template Findings scan<double>(const double*, std::int64_t, std::int64_t, double, int);

}  // namespace calibrant
