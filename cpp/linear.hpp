// Kernels of the linear scaling maps. With u = beta * z - lse(beta * z) a row's tempered log-probabilities and
// x = max(u, floor) - shift its features, these maps answer softmax(u + D x + b): D = 0, b = 0 is temperature scaling.
#pragma once

#include <cstdint>

namespace calibrant {

constexpr std::int64_t kCentres = 2;     // lse(beta * z), and the mean of max(u, floor), which is the shift if wanted
constexpr std::int64_t kVectorRows = 5;  // gradient in d and b; curvature dd, db, bb

// What turns logits into features. centres has kCentres columns; the second counts as 0 unless centred.
struct Frame {
    double beta, floor;
    bool centred;
};

template <class T>
void linear_centres(const T* logits, std::int64_t n, std::int64_t k, double beta, double floor, int threads, double* out);

// out = x, row by row.
template <class T>
void linear_features(const T* logits, const double* centres, std::int64_t n, std::int64_t k, Frame frame, int threads, T* out);

// out[k]: the weighted sum of each feature over the rows; weights may be null (all one).
template <class T>
void linear_sums(const T* logits, const double* centres, const double* weights, std::int64_t n, std::int64_t k, Frame frame,
                  int threads, double* out);

// For diagonal D = diag(d): the weighted log-loss (returned) and, in out[5][k], its gradient in d and b and, where
// curvature is set, the diagonal blocks of the Hessian. Rows of weight 0 are skipped; weights may be null (all one).
template <class T>
double vector_sums(const T* logits, const double* centres, const std::int64_t* labels, const double* weights, std::int64_t n,
                   std::int64_t k, Frame frame, const double* d, const double* b, bool curvature, int threads, double* out);

// scores holds D x on entry. Without labels it becomes softmax(u + scores + b); with labels it becomes
// w (softmax(u + scores + b) - onehot(y)), and losses[i] the row's unweighted log-loss.
template <class T>
void softmax_residual(T* scores, const T* logits, const double* centres, const std::int64_t* labels, const double* weights,
                      std::int64_t n, std::int64_t k, double beta, const double* b, int threads, double* losses);

}  // namespace calibrant
