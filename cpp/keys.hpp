// A number for each row that depends on its content alone: what folds and samples of rows are drawn by.
#pragma once

#include <cstdint>

namespace calibrant {

// keys[i]: a hash of row i's label and scores. With `relative` the scores count as their distance to the label's score, so
// that a shift of the row changes nothing. At most kKeyColumns of the scores are rounded to eleven binary digits first, the
// others to five: the same row in another precision, or read back from a file, keeps its key though there be a thousand
// classes, and rows of few values (k-NN, forests) that differ in any column have keys of their own. Rows may share a key.
// With `fine` each key is split by all digits of all scores (33 of a double's): rows that are much alike are told apart,
// and so may be the same row in another precision.
constexpr std::int64_t kKeyColumns = 8;
template <class T>
void row_keys(const T* values, const std::int64_t* labels, std::int64_t n, std::int64_t k, bool relative, bool fine,
              int threads, std::uint64_t* keys);

// The key, not the fine one, of a row of two classes whose other score less the label's begins with these eleven binary
// digits, sign and exponent before them.
std::uint64_t key_of_two(std::int64_t label, std::uint32_t leading);

}  // namespace calibrant
