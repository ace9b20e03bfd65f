#include "mixture.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kChunk = 64;  // rows that are laid out column by column, so that sums over them are vectors

// Adds the sums of kChunk rows. c: parts x kChunk, left as each part's share of the mixture.
CALIBRANT_CLONES void sums_chunk(double* c, const double* weight, std::int64_t parts, const double* w, double* out) {
    double mixed[kChunk] = {}, inverse[kChunk];
    for (std::int64_t j = 0; j < parts; ++j) {
#pragma omp simd
        for (std::int64_t i = 0; i < kChunk; ++i) mixed[i] += w[j] * c[j * kChunk + i];
    }
    double least = std::numeric_limits<double>::infinity(), loss = 0;
#pragma omp simd reduction(min : least) reduction(+ : loss)
    for (std::int64_t i = 0; i < kChunk; ++i) {
        least = mixed[i] < least ? mixed[i] : least;
        inverse[i] = 1.0 / mixed[i];
        loss -= weight[i] * log_positive(mixed[i]);
    }
    if (least < std::numeric_limits<double>::min()) {  // log_positive is for normal numbers
        loss = 0;
        for (std::int64_t i = 0; i < kChunk; ++i) {
            if (weight[i] != 0) loss -= weight[i] * std::log(std::max(mixed[i], 0.0));
            if (!(mixed[i] > 0)) inverse[i] = 0;
        }
    }
    out[0] += loss;
    for (std::int64_t j = 0; j < parts; ++j) {
#pragma omp simd
        for (std::int64_t i = 0; i < kChunk; ++i) c[j * kChunk + i] *= inverse[i];
    }
    double* hessian = out + 1 + parts;
    for (std::int64_t j = 0; j < parts; ++j) {
        for (std::int64_t l = j; l < parts; ++l) {
            double sum = 0;
#pragma omp simd reduction(+ : sum)
            for (std::int64_t i = 0; i < kChunk; ++i) sum += weight[i] * c[j * kChunk + i] * c[l * kChunk + i];
            hessian[j * parts + l] += sum;
        }
        double slope = 0;
#pragma omp simd reduction(+ : slope)
        for (std::int64_t i = 0; i < kChunk; ++i) slope += weight[i] * c[j * kChunk + i];
        out[1 + j] -= slope;
    }
}

void sums_block(const double* columns, const double* weights, std::int64_t from, std::int64_t to, std::int64_t parts,
                const double* w, double* out) {
    std::vector<double> c(parts * kChunk);
    double weight[kChunk];
    for (std::int64_t first = from; first < to; first += kChunk) {
        for (std::int64_t i = 0; i < kChunk; ++i) {
            weight[i] = first + i >= to ? 0.0 : weights ? weights[first + i] : 1.0;
            const double* row = columns + (first + i) * parts;
            for (std::int64_t j = 0; j < parts; ++j) c[j * kChunk + i] = weight[i] != 0 ? row[j] : 1.0;
        }
        sums_chunk(c.data(), weight, parts, w, out);
    }
}

// Solves `size` equations, each a row with its right side at the end, in place; false where they are singular.
bool solve(double* rows, std::int64_t size, double* x) {
    const std::int64_t width = size + 1;
    for (std::int64_t p = 0; p < size; ++p) {
        std::int64_t pivot = p;
        for (std::int64_t i = p + 1; i < size; ++i)
            if (std::abs(rows[i * width + p]) > std::abs(rows[pivot * width + p])) pivot = i;
        if (!(std::abs(rows[pivot * width + p]) > 0)) return false;
        for (std::int64_t j = 0; j < width; ++j) std::swap(rows[p * width + j], rows[pivot * width + j]);
        for (std::int64_t i = p + 1; i < size; ++i) {
            const double factor = rows[i * width + p] / rows[p * width + p];
            for (std::int64_t j = p; j < width; ++j) rows[i * width + j] -= factor * rows[p * width + j];
        }
    }
    for (std::int64_t p = size - 1; p >= 0; --p) {
        x[p] = rows[p * width + size];
        for (std::int64_t j = p + 1; j < size; ++j) x[p] -= rows[p * width + j] * x[j];
        x[p] /= rows[p * width + p];
    }
    return true;
}

// The optimum where only the parts of a face have weight; false where it leaves the simplex. A face whose equations are
// singular needs no answer: a smaller one has an optimum that is as good.
bool best_on_face(const double* gram, const double* linear, std::int64_t parts, const std::vector<std::int64_t>& face,
                  double* w) {
    const std::int64_t size = face.size(), width = size + 2;
    std::vector<double> rows((size + 1) * width, 1.0), x(size + 1);
    for (std::int64_t i = 0; i < size; ++i) {
        for (std::int64_t j = 0; j < size; ++j) rows[i * width + j] = gram[face[i] * parts + face[j]];
        rows[i * width + size + 1] = linear[face[i]];
    }
    rows[size * width + size] = 0.0;  // the last equation: the weights sum to one
    if (!solve(rows.data(), size + 1, x.data())) return false;
    double sum = 0, total = 0;
    for (std::int64_t i = 0; i < size; ++i) {
        if (!(x[i] >= -1e-12)) return false;
        sum += x[i];
        total += std::max(x[i], 0.0);
    }
    if (!(std::abs(sum - 1.0) <= 1e-9)) return false;
    std::fill(w, w + parts, 0.0);
    for (std::int64_t i = 0; i < size; ++i) w[face[i]] = std::max(x[i], 0.0) / total;
    return true;
}

double dot(const double* a, const double* b, std::int64_t size) {
    double sum = 0;
    for (std::int64_t i = 0; i < size; ++i) sum += a[i] * b[i];
    return sum;
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

void best_quadratic(const double* gram, const double* linear, std::int64_t parts, double* w) {
    std::vector<double> trial(parts), slope(parts);
    std::fill(w, w + parts, 1.0 / parts);
    double best = std::numeric_limits<double>::infinity();
    for (std::int64_t size = parts; size > 0; --size) {
        std::vector<char> chosen(parts, 0);
        std::fill(chosen.begin(), chosen.begin() + size, 1);
        do {
            std::vector<std::int64_t> face;
            for (std::int64_t j = 0; j < parts; ++j)
                if (chosen[j]) face.push_back(j);
            if (!best_on_face(gram, linear, parts, face, trial.data())) continue;
            for (std::int64_t j = 0; j < parts; ++j) slope[j] = dot(gram + j * parts, trial.data(), parts) - linear[j];
            const double level = dot(slope.data(), trial.data(), parts);
            const double value = 0.5 * (level - dot(linear, trial.data(), parts));
            const bool optimal = *std::min_element(slope.begin(), slope.end()) >= level - 1e-12 * (1 + std::abs(level));
            if (optimal || value < best) {
                best = value;
                std::copy(trial.begin(), trial.end(), w);
            }
            if (optimal) return;
        } while (std::prev_permutation(chosen.begin(), chosen.end()));
    }
}

void best_mixture(const double* columns, const double* weights, std::int64_t n, std::int64_t parts, int most, int threads,
                  double* w) {
    const std::int64_t width = 1 + parts + parts * parts;
    std::vector<double> here(width), there(width), linear(parts), step(parts), trial(parts);
    mixture_sums(columns, weights, n, parts, w, threads, here.data());
    if (!std::isfinite(here[0])) {
        std::fill(w, w + parts, 1.0 / parts);
        mixture_sums(columns, weights, n, parts, w, threads, here.data());
    }
    for (int i = 0; i < most; ++i) {
        const double *slope = here.data() + 1, *curvature = slope + parts;
        for (std::int64_t j = 0; j < parts; ++j) linear[j] = dot(curvature + j * parts, w, parts) - slope[j];
        best_quadratic(curvature, linear.data(), parts, step.data());
        for (std::int64_t j = 0; j < parts; ++j) step[j] -= w[j];
        const double gain = dot(slope, step.data(), parts);
        if (!(gain < -1e-13 * std::abs(here[0]))) break;
        double size = 2.0;
        do {
            size *= 0.5;
            for (std::int64_t j = 0; j < parts; ++j) trial[j] = w[j] + size * step[j];
            mixture_sums(columns, weights, n, parts, trial.data(), threads, there.data());
        } while (!(there[0] <= here[0] + 1e-4 * size * gain) && size > 1e-10);
        if (size <= 1e-10) break;
        std::copy(trial.begin(), trial.end(), w);
        std::swap(here, there);
    }
    double total = 0;
    for (std::int64_t j = 0; j < parts; ++j) total += w[j] = std::max(w[j], 0.0);
    for (std::int64_t j = 0; j < parts; ++j) w[j] /= total;
}

}  // namespace calibrant
