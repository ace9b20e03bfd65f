#include "linear_mixture.hpp"

#include <algorithm>
#include <vector>

#include "linear_rows.hpp"
#include "parallel.hpp"

namespace calibrant {
namespace {

// Room for some rows: their features, their scores for one part, and their centres.
template <class T>
struct Rows {
    std::vector<T> features, scores;
    double centres[kPanelBlock * kCentres];
    Rows(std::int64_t count, std::int64_t k) : features(count * (k + 1)), scores(count * k) {}
};

// rows.scores = u + D x + b of `count` rows.
template <class T>
CALIBRANT_INLINE void full_rows(const T* logits, std::int64_t count, std::int64_t k, const LinearPart<T>& part,
                                Rows<T>& rows) {
    const T *b = part.intercept, beta = static_cast<T>(part.frame.beta);
    T *x = rows.features.data(), *scores = rows.scores.data();
    for (std::int64_t i = 0; i < count; ++i) {
        const double* centre = rows.centres + i * kCentres;
        feature_row(logits + i * k, centre, k, part.frame, x + i * (k + 1));
        x[i * (k + 1) + k] = static_cast<T>((centre[1] - part.mean) * part.scale);
    }
    panel_products(x, count, k + 1, part.weights, part.columns, k, scores, k);
    for (std::int64_t i = 0; i < count; ++i) {
        const T *z = logits + i * k, c = static_cast<T>(rows.centres[i * kCentres]);
        T* a = scores + i * k;
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) a[j] += (beta * z[j] - c) + b[j];
    }
}

template <class T>
CALIBRANT_INLINE void add_rows(const T* logits, std::int64_t count, std::int64_t k, const LinearPart<T>* parts,
                               std::int64_t part_count, Rows<T>& rows, T* out) {
    T *x = rows.features.data(), *scores = rows.scores.data();
    for (std::int64_t p = 0; p < part_count; ++p) {
        const LinearPart<T>& part = parts[p];
        const Frame frame = part.frame;
        const bool known = p > 0 && frame.beta == parts[p - 1].frame.beta && frame.floor == parts[p - 1].frame.floor;
        for (std::int64_t i = 0; i < count && !known; ++i)
            centres_row(logits + i * k, k, frame.beta, frame.floor, scores, rows.centres + i * kCentres);
        if (part.columns == 1) {
            for (std::int64_t i = 0; i < count; ++i)
                vector_row(logits + i * k, rows.centres + i * kCentres, k, frame, part.weights, part.intercept,
                           scores + i * k, x);
        } else {
            full_rows(logits, count, k, part, rows);
        }
        for (std::int64_t i = 0; i < count; ++i) {
            T *a = scores + i * k, *row = out + i * k;
            const T scale = static_cast<T>(1 / exponentials(a, k, row_max(a, k))), share = static_cast<T>(part.share);
#pragma omp simd
            for (std::int64_t j = 0; j < k; ++j) row[j] += share * (a[j] * scale);
        }
    }
}

CALIBRANT_CLONES void add_rows_of(const float* logits, std::int64_t count, std::int64_t k, const LinearPart<float>* parts,
                                  std::int64_t part_count, Rows<float>& rows, float* out) {
    add_rows(logits, count, k, parts, part_count, rows, out);
}
CALIBRANT_CLONES void add_rows_of(const double* logits, std::int64_t count, std::int64_t k, const LinearPart<double>* parts,
                                  std::int64_t part_count, Rows<double>& rows, double* out) {
    add_rows(logits, count, k, parts, part_count, rows, out);
}

}  // namespace

template <class T>
void add_linear_mixture(const T* logits, std::int64_t n, std::int64_t k, const LinearPart<T>* parts, std::int64_t count,
                        int threads, T* out) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t first, std::int64_t last) {
        Rows<T> rows(std::min(kPanelBlock, last - first), k);
        for (std::int64_t i = first; i < last; i += kPanelBlock)
            add_rows_of(logits + i * k, std::min(kPanelBlock, last - i), k, parts, count, rows, out + i * k);
    });
}

#define CALIBRANT_INSTANTIATE(T)                                                                                       \
    template void add_linear_mixture<T>(const T*, std::int64_t, std::int64_t, const LinearPart<T>*, std::int64_t, int, \
                                        T*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
