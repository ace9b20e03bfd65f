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
        Watch::look();
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

// x: the optimum over weights of any sign that sum to one, only those of a face not zero; false where its equations are
// singular to rounding.
bool best_on_face(const double* gram, const double* linear, std::int64_t parts, const std::vector<char>& chosen, double* x) {
    std::vector<std::int64_t> face;
    for (std::int64_t j = 0; j < parts; ++j)
        if (chosen[j]) face.push_back(j);
    const std::int64_t size = face.size(), width = size + 2;
    std::vector<double> rows((size + 1) * width, 1.0), inside(size + 1);
    for (std::int64_t i = 0; i < size; ++i) {
        for (std::int64_t j = 0; j < size; ++j) rows[i * width + j] = gram[face[i] * parts + face[j]];
        rows[i * width + size + 1] = linear[face[i]];
    }
    rows[size * width + size] = 0.0;  // the last equation: the weights sum to one
    if (!solve(rows.data(), size + 1, inside.data())) return false;
    double sum = 0;
    for (std::int64_t i = 0; i < size; ++i) sum += inside[i];
    if (!(std::abs(sum - 1.0) <= 1e-6)) return false;
    std::fill(x, x + parts, 0.0);
    for (std::int64_t i = 0; i < size; ++i) x[face[i]] = inside[i] / sum;
    return true;
}

double dot(const double* a, const double* b, std::int64_t size) {
    double sum = 0;
    for (std::int64_t i = 0; i < size; ++i) sum += a[i] * b[i];
    return sum;
}

constexpr double kHold = 1e-10;     // part of the largest entry that holds a quadratic to its start
constexpr double kSlack = 1e-10;    // part of the largest curvature by which a curvature below zero is rounding
constexpr double kFlat = 1e-14;     // a slope that differs by less, in the same units, is the same
constexpr double kMoved = 1e-12;    // a step of a weight below is rounding
constexpr double kNothing = 1e-15;  // a weight below is rounding
constexpr std::int64_t kTurns = 10;  // more than enough: a part is seldom taken in twice

// Moves w to the optimum over the chosen parts, and on the way lets go of those that would have a negative weight. Tells
// whether w has moved.
bool move_to_best(const double* gram, const double* linear, std::int64_t parts, std::vector<char>& chosen, double* x,
                  double* w) {
    bool moved = false;
    while (best_on_face(gram, linear, parts, chosen, x)) {
        double share = 1.0;
        std::int64_t first = -1;
        for (std::int64_t j = 0; j < parts; ++j)
            if (chosen[j] && x[j] <= kNothing && w[j] <= share * (w[j] - x[j])) {
                share = w[j] > x[j] ? w[j] / (w[j] - x[j]) : 0.0;
                first = j;
            }
        for (std::int64_t j = 0; j < parts; ++j) {
            const double step = share * (x[j] - w[j]);
            moved = moved || std::abs(step) > kMoved;
            w[j] = chosen[j] ? std::max(w[j] + step, 0.0) : 0.0;
        }
        if (first < 0) return moved;
        for (std::int64_t j = 0; j < parts; ++j)
            if (j == first || (chosen[j] && x[j] <= kNothing && w[j] <= kNothing)) chosen[j] = 0, w[j] = 0;
    }
    return moved;
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

bool convex_on_simplex(const double* gram, std::int64_t parts) {
    const std::int64_t size = parts - 1;  // directions e_j - e_0 span those in which weights still sum to one
    const Alone alone;
    std::vector<double> a(size * size);
    double scale = 0;
    for (std::int64_t i = 0; i < size; ++i)
        for (std::int64_t j = 0; j < size; ++j) {
            const double* row = gram + (i + 1) * parts;
            a[i * size + j] = row[j + 1] - row[0] - gram[j + 1] + gram[0];
            if (i == j) scale = std::max(scale, std::abs(a[i * size + j]));
        }
    for (std::int64_t p = 0; p < size; ++p) {  // Cholesky, with what rounding may take from a curvature of zero added
        Watch::look();
        double* row = a.data() + p * size;
        row[p] += kSlack * scale;
        if (!(row[p] >= 0)) return false;
        if (row[p] == 0) continue;
        for (std::int64_t i = p + 1; i < size; ++i) {
            const double factor = a[i * size + p] / row[p];
            for (std::int64_t j = p; j < size; ++j) a[i * size + j] -= factor * row[j];
        }
    }
    return true;
}

void best_quadratic(const double* gram, const double* linear, std::int64_t parts, double* w) {
    const Alone alone;
    double scale = 0;
    for (std::int64_t j = 0; j < parts * parts; ++j) scale = std::max(scale, std::abs(gram[j]));
    for (std::int64_t j = 0; j < parts; ++j) scale = std::max(scale, std::abs(linear[j]));
    if (!(scale > 0) || !std::isfinite(scale)) return;
    // In units of its largest entry, and held to the start a little: so the optimum is one point, and equations are sound.
    std::vector<double> g(parts * parts), c(parts), x(parts), slope(parts);
    for (std::int64_t j = 0; j < parts * parts; ++j) g[j] = gram[j] / scale;
    for (std::int64_t j = 0; j < parts; ++j) g[j * parts + j] += kHold, c[j] = linear[j] / scale + kHold * w[j];
    std::vector<char> chosen(parts), refused(parts, 0);
    for (std::int64_t j = 0; j < parts; ++j) chosen[j] = w[j] > 0;
    for (std::int64_t turn = 0; turn < kTurns * (parts + 1); ++turn) {
        if (move_to_best(g.data(), c.data(), parts, chosen, x.data(), w)) std::fill(refused.begin(), refused.end(), 0);
        for (std::int64_t j = 0; j < parts; ++j) slope[j] = dot(g.data() + j * parts, w, parts) - c[j];
        const double level = dot(slope.data(), w, parts) - kFlat;
        std::int64_t next = -1;
        for (std::int64_t j = 0; j < parts; ++j)
            if (!chosen[j] && !refused[j] && slope[j] < (next < 0 ? level : slope[next])) next = j;
        if (next < 0) return;
        chosen[next] = refused[next] = 1;  // refused until another step has moved the weights
    }
}

}  // namespace calibrant
