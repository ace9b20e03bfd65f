// Venn-Abers tables: isotonic values at a new score, were its outcome 1, for every place that it can have at once.
#pragma once

#include <cstdint>

namespace calibrant {

// The rows are grouped by score, in order: weight and positives of each of the `count` groups. out[i] = the isotonic value
// at a new row of weight `unit` and outcome 1 that equals score i, or lies between score i - 1 and score i. Linear time
// (Vovk, Petej & Fedorova 2015, algorithms 1 and 2).
void upper_venn_abers(const double* weights, const double* positives, std::int64_t count, double unit, double* out);

}  // namespace calibrant
