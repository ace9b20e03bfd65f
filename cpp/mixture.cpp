#include "mixture.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "parallel.hpp"

namespace calibrant {
namespace {

void sums_block(const double* columns, const double* weights, std::int64_t from, std::int64_t to, std::int64_t parts,
                const double* w, double* out) {
    double* gradient = out + 1;
    double* hessian = gradient + parts;
    for (std::int64_t i = from; i < to; ++i) {
        const double weight = weights ? weights[i] : 1.0;
        if (weight == 0.0) continue;
        const double* c = columns + i * parts;
        double mixed = 0;
        for (std::int64_t j = 0; j < parts; ++j) mixed += w[j] * c[j];
        if (!(mixed > 0)) {
            out[0] = std::numeric_limits<double>::infinity();
            continue;
        }
        out[0] -= weight * std::log(mixed);
        const double inverse = 1.0 / mixed;
        for (std::int64_t j = 0; j < parts; ++j) {
            const double share = weight * c[j] * inverse;
            gradient[j] -= share;
            for (std::int64_t l = j; l < parts; ++l) hessian[j * parts + l] += share * c[l] * inverse;
        }
    }
}

}  // namespace

void mixture_sums(const double* columns, const double* weights, std::int64_t n, std::int64_t parts, const double* w,
                  int threads, double* out) {
    const std::int64_t width = 1 + parts + parts * parts;
    std::vector<double> sums(block_count(n, parts) * width);
    for_blocks(n, parts, threads, [&](std::int64_t b, std::int64_t from, std::int64_t to) {
        sums_block(columns, weights, from, to, parts, w, sums.data() + b * width);
    });
    for (std::int64_t j = 0; j < width; ++j) out[j] = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) out[i % width] += sums[i];
    double* hessian = out + 1 + parts;
    for (std::int64_t j = 0; j < parts; ++j)
        for (std::int64_t l = 0; l < j; ++l) hessian[j * parts + l] = hessian[l * parts + j];
}

}  // namespace calibrant
