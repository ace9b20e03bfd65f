#include "linear.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "linear_rows.hpp"
#include "parallel.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kParts = 64;     // partial gradients of a pass: few, so that memory stays small for many classes
constexpr std::int64_t kFlush = 64;     // rows after which float sums are emptied into doubles

template <class T>
CALIBRANT_INLINE void centres_block(const T* logits, std::int64_t from, std::int64_t to, std::int64_t k, double beta,
                                    double floor, double* out) {
    std::vector<T> scratch(k);
    for (std::int64_t i = from; i < to; ++i)
        centres_row(logits + i * k, k, beta, floor, scratch.data(), out + kCentres * i);
}

template <class T>
CALIBRANT_INLINE void features_block(const T* logits, const double* centres, std::int64_t from, std::int64_t to,
                                     std::int64_t k, Frame frame, T* out) {
    for (std::int64_t i = from; i < to; ++i)
        feature_row(logits + i * k, centres + kCentres * i, k, frame, out + i * k);
}

template <class T>
CALIBRANT_INLINE void sums_part(const T* logits, const double* centres, const double* weights, std::int64_t from,
                                 std::int64_t to, std::int64_t k, Frame frame, double* out) {
    std::vector<T> x(k);
    for (std::int64_t i = from; i < to; ++i) {
        feature_row(logits + i * k, centres + kCentres * i, k, frame, x.data());
        const double weight = weights ? weights[i] : 1.0;
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) out[j] += weight * x[j];
    }
}

// Sums of a few rows in T (kVectorRows x k), and the same in double, into which they are emptied.
template <class T>
struct Sums {
    std::vector<T> fast;
    double* slow;
    std::int64_t k;

    CALIBRANT_INLINE void flush(bool curvature) {
        const std::int64_t width = (curvature ? kVectorRows : 2) * k;
        for (std::int64_t j = 0; j < width; ++j) slow[j] += fast[j], fast[j] = 0;
    }
};

template <class T>
CALIBRANT_INLINE void add_gradient(const T* q, const T* x, std::int64_t k, T scale, T* sums) {
    T *gd = sums, *gb = sums + k;
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) {
        const T r = q[j] * scale;
        gd[j] += r * x[j];
        gb[j] += r;
    }
}

template <class T>
CALIBRANT_INLINE void add_curvature(const T* q, const T* x, std::int64_t k, T inverse, T weight, T* sums) {
    T *dd = sums + 2 * k, *db = sums + 3 * k, *bb = sums + 4 * k;
#pragma omp simd
    for (std::int64_t j = 0; j < k; ++j) {
        const T p = q[j] * inverse;
        const T v = weight * p * (T(1) - p), vx = v * x[j];
        dd[j] += vx * x[j];
        db[j] += vx;
        bb[j] += v;
    }
}

template <class T>
CALIBRANT_INLINE double vector_part(const T* logits, const double* centres, const std::int64_t* labels, const double* weights,
                                    std::int64_t from, std::int64_t to, std::int64_t k, Frame frame, const T* d,
                                    const T* b, bool curvature, double* out) {
    std::vector<T> a(k), x(k);
    Sums<T> sums{std::vector<T>(kVectorRows * k), out, k};
    double loss = 0;
    std::int64_t waiting = 0;
    for (std::int64_t i = from; i < to; ++i) {
        const double weight = weights ? weights[i] : 1.0;
        if (weight == 0.0) continue;
        const std::int64_t y = labels[i];
        vector_row(logits + i * k, centres + kCentres * i, k, frame, d, b, a.data(), x.data());
        const T top = row_max(a.data(), k);
        const double at_label = static_cast<double>(a[y]) - top;
        const double total = exponentials(a.data(), k, top);
        loss += weight * (std::log(total) - at_label);
        add_gradient(a.data(), x.data(), k, static_cast<T>(weight / total), sums.fast.data());
        sums.fast[y] -= static_cast<T>(weight) * x[y];
        sums.fast[k + y] -= static_cast<T>(weight);
        if (curvature)
            add_curvature(a.data(), x.data(), k, static_cast<T>(1 / total), static_cast<T>(weight), sums.fast.data());
        if (++waiting == kFlush) sums.flush(curvature), waiting = 0, Watch::look();
    }
    sums.flush(curvature);
    return loss;
}

template <class T>
CALIBRANT_INLINE void apply_block(const T* logits, const double* centres, std::int64_t from, std::int64_t to, std::int64_t k,
                                  Frame frame, const T* d, const T* b, T* out) {
    std::vector<T> x(k);
    for (std::int64_t i = from; i < to; ++i) {
        T* p = out + i * k;
        vector_row(logits + i * k, centres + kCentres * i, k, frame, d, b, p, x.data());
        const T scale = static_cast<T>(1 / exponentials(p, k, row_max(p, k)));
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) p[j] *= scale;
    }
}

template <class T>
CALIBRANT_INLINE void residual_block(T* scores, const T* logits, const double* centres, const std::int64_t* labels,
                                     const double* weights, std::int64_t from, std::int64_t to, std::int64_t k,
                                     T beta, const T* b, double* losses) {
    for (std::int64_t i = from; i < to; ++i) {
        T* a = scores + i * k;
        const T* z = logits + i * k;
        const T c = static_cast<T>(centres[kCentres * i]);
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) a[j] += (beta * z[j] - c) + b[j];
        const T top = row_max(a, k);
        const double at_label = labels ? static_cast<double>(a[labels[i]]) - top : 0;
        const double total = exponentials(a, k, top), weight = weights ? weights[i] : 1.0;
        const T scale = static_cast<T>((labels ? weight : 1.0) / total);
#pragma omp simd
        for (std::int64_t j = 0; j < k; ++j) a[j] *= scale;
        if (!labels) continue;
        a[labels[i]] -= static_cast<T>(weight);
        losses[i] = std::log(total) - at_label;
    }
}

#define CALIBRANT_LINEAR_CLONES(T)                                                                                      \
    CALIBRANT_CLONES void centres_of(const T* logits, std::int64_t from, std::int64_t to, std::int64_t k, double beta, \
                                     double floor, double* out) {                                                      \
        centres_block(logits, from, to, k, beta, floor, out);                                                          \
    }                                                                                                                  \
    CALIBRANT_CLONES void features_of(const T* logits, const double* centres, std::int64_t from, std::int64_t to,      \
                                      std::int64_t k, Frame frame, T* out) {                                           \
        features_block(logits, centres, from, to, k, frame, out);                                                      \
    }                                                                                                                  \
    CALIBRANT_CLONES void sums_of(const T* logits, const double* centres, const double* weights, std::int64_t from,   \
                                   std::int64_t to, std::int64_t k, Frame frame, double* out) {                        \
        sums_part(logits, centres, weights, from, to, k, frame, out);                                                 \
    }                                                                                                                  \
    CALIBRANT_CLONES double vector_of(const T* logits, const double* centres, const std::int64_t* labels,              \
                                      const double* weights, std::int64_t from, std::int64_t to, std::int64_t k,       \
                                      Frame frame, const T* d, const T* b, bool curvature, double* out) {              \
        return vector_part(logits, centres, labels, weights, from, to, k, frame, d, b, curvature, out);                \
    }                                                                                                                  \
    CALIBRANT_CLONES void apply_of(const T* logits, const double* centres, std::int64_t from, std::int64_t to,         \
                                   std::int64_t k, Frame frame, const T* d, const T* b, T* out) {                      \
        apply_block(logits, centres, from, to, k, frame, d, b, out);                                                   \
    }                                                                                                                  \
    CALIBRANT_CLONES void residual_of(T* scores, const T* logits, const double* centres, const std::int64_t* labels,   \
                                      const double* weights, std::int64_t from, std::int64_t to, std::int64_t k,       \
                                      T beta, const T* b, double* losses) {                                            \
        residual_block(scores, logits, centres, labels, weights, from, to, k, beta, b, losses);                        \
    }
CALIBRANT_LINEAR_CLONES(float)
CALIBRANT_LINEAR_CLONES(double)

template <class T>
std::vector<T> cast(const double* values, std::int64_t k) {
    return std::vector<T>(values, values + k);
}

// Runs part(from, to, sums) over few parts of the rows and adds up their sums in order.
template <class Part>
void add_parts(std::int64_t n, std::int64_t k, std::int64_t width, int threads, double* out, Part part) {
    const std::int64_t rows = std::max((n + kParts - 1) / kParts, block_rows(k));
    const std::int64_t parts = (n + rows - 1) / rows;
    std::vector<double> sums(parts * width);
    for_blocks(parts, 65536, threads, [&](std::int64_t p, std::int64_t, std::int64_t) {
        part(p * rows, std::min(n, (p + 1) * rows), sums.data() + p * width);
    });
    for (std::int64_t j = 0; j < width; ++j) out[j] = 0;
    for (std::int64_t p = 0; p < parts; ++p)
        for (std::int64_t j = 0; j < width; ++j) out[j] += sums[p * width + j];
}

}  // namespace

template <class T>
void linear_centres(const T* logits, std::int64_t n, std::int64_t k, double beta, double floor, int threads, double* out) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        centres_of(logits, from, to, k, beta, floor, out);
    });
}

template <class T>
void linear_features(const T* logits, const double* centres, std::int64_t n, std::int64_t k, Frame frame, int threads, T* out) {
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        features_of(logits, centres, from, to, k, frame, out);
    });
}

template <class T>
void linear_sums(const T* logits, const double* centres, const double* weights, std::int64_t n, std::int64_t k, Frame frame,
                  int threads, double* out) {
    add_parts(n, k, k, threads, out, [&](std::int64_t from, std::int64_t to, double* part) {
        sums_of(logits, centres, weights, from, to, k, frame, part);
    });
}

template <class T>
double vector_sums(const T* logits, const double* centres, const std::int64_t* labels, const double* weights, std::int64_t n,
                   std::int64_t k, Frame frame, const double* d, const double* b, bool curvature, int threads, double* out) {
    const std::vector<T> dt = cast<T>(d, k), bt = cast<T>(b, k);
    const std::int64_t width = kVectorRows * k;
    std::vector<double> sums(width + 1);  // the last is the loss
    add_parts(n, k, width + 1, threads, sums.data(), [&](std::int64_t from, std::int64_t to, double* part) {
        part[width] = vector_of(logits, centres, labels, weights, from, to, k, frame, dt.data(), bt.data(), curvature, part);
    });
    std::copy(sums.begin(), sums.end() - 1, out);
    return sums[width];
}

template <class T>
void softmax_residual(T* scores, const T* logits, const double* centres, const std::int64_t* labels, const double* weights,
                      std::int64_t n, std::int64_t k, double beta, const double* b, int threads, double* losses) {
    const std::vector<T> bt = cast<T>(b, k);
    for_blocks(n, k, threads, [&](std::int64_t, std::int64_t from, std::int64_t to) {
        residual_of(scores, logits, centres, labels, weights, from, to, k, static_cast<T>(beta), bt.data(), losses);
    });
}

#define CALIBRANT_INSTANTIATE(T)                                                                                        \
    template void linear_centres<T>(const T*, std::int64_t, std::int64_t, double, double, int, double*);               \
    template void linear_features<T>(const T*, const double*, std::int64_t, std::int64_t, Frame, int, T*);             \
    template void linear_sums<T>(const T*, const double*, const double*, std::int64_t, std::int64_t, Frame, int,      \
                                  double*);                                                                            \
    template double vector_sums<T>(const T*, const double*, const std::int64_t*, const double*, std::int64_t,          \
                                   std::int64_t, Frame, const double*, const double*, bool, int, double*);             \
    template void softmax_residual<T>(T*, const T*, const double*, const std::int64_t*, const double*, std::int64_t,   \
                                      std::int64_t, double, const double*, int, double*);
CALIBRANT_INSTANTIATE(float)
CALIBRANT_INSTANTIATE(double)

}  // namespace calibrant
