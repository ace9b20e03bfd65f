// A number for each row that depends on its content alone: what folds and samples of rows are drawn by.
#pragma once

#include <cstdint>

namespace calibrant {

// keys[i]: a hash of row i's label and of at most kKeyColumns of its scores. With `relative` the scores count as their
// distance to the label's score, so that a shift of the row changes nothing. Scores are rounded to eleven binary digits
// first: the same row in another precision, or read back from a file, keeps its key. Rows may share a key.
constexpr std::int64_t kKeyColumns = 8;
template <class T>
void row_keys(const T* values, const std::int64_t* labels, std::int64_t n, std::int64_t k, bool relative, int threads,
              std::uint64_t* keys);

}  // namespace calibrant
