// Passes of the linear maps with a full D: softmax(u + D x + b), in the words of linear.hpp. A row has m features: the k
// of the frame and, where sure.scale is not 0, how sure it is: (mean of max(u, floor) - sure.mean) * sure.scale. A one
// follows them, whose weight is the intercept.
#pragma once

#include "linear.hpp"

namespace calibrant {

struct Sure {
    double mean, scale;
};

// Rows and the map to judge them by. weights is D transposed with b below it, (m + 1, k); row_weights may be null.
template <class T>
struct MatrixRows {
    const T* logits;
    const double *centres, *row_weights;
    std::int64_t n, k;
    Frame frame;
    Sure sure;
    const double* weights;

    std::int64_t side() const { return k + (sure.scale != 0) + 1; }
    double weight(std::int64_t i) const { return row_weights ? row_weights[i] : 1.0; }
};

// Returns the weighted log-loss. out[m + 1][k]: its gradient in `weights`.
template <class T>
double matrix_sums(const MatrixRows<T>& rows, const std::int64_t* labels, int threads, double* out);

// out[k][m + 1][m + 1]: of each class, the block of the Hessian over its row of D and its intercept. For few classes.
template <class T>
void matrix_blocks(const MatrixRows<T>& rows, int threads, double* out);

// out[m + 1][m + 1]: the sum of w (1 - Σ p²) x xᵀ, the Hessian summed over the classes' blocks, for features less
// shift[m]. They are shifted row by row: what the sums could tell of small spreads around large means would be rounding.
template <class T>
void matrix_moment(const MatrixRows<T>& rows, const double* shift, int threads, double* out);

constexpr std::int64_t kOwn = 6;  // of the features (own, 1, sure): own², own, 1, own · sure, sure, sure²

// With directions (m + 1, r): out[k][r + kOwn], of each class the sums of w p (1 - p) times the squares along the
// directions, and times the products of what is its own: its own feature, one, and how sure the row is.
template <class T>
void matrix_along(const MatrixRows<T>& rows, const double* directions, std::int64_t r, int threads, double* out);

}  // namespace calibrant
