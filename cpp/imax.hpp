// I-Max on fine cells (Patel et al. 2021), many groups of cells at once.
#pragma once

#include <cstdint>
#include <vector>

namespace calibrant {

// Cells by increasing score: weight of all scores of a cell, and of those whose event happened.
struct ImaxCells {
    const double *scores, *weights, *outcomes;
    std::int64_t count;
};

struct ImaxOptions {
    std::int64_t bins;
    bool affine;             // fit P(y = 1 | s) = sigmoid(slope s + offset) first, by Newton with Platt's targets
    const double* uniforms;  // of the start: `trials` for each centre, of which the first uses one
    std::int64_t trials;
};

// bounds: cells at which bins begin, without the first. losses: Eq. 4 in bits after each update, never increasing.
struct ImaxFound {
    std::vector<std::int64_t> bounds;
    std::vector<double> losses;
    bool converged = false;
    double slope = 1.0, offset = 0.0;
};

// One answer for each group of cells; threads share the groups.
std::vector<ImaxFound> imax(const std::vector<ImaxCells>& groups, const ImaxOptions& options, int threads);

}  // namespace calibrant
