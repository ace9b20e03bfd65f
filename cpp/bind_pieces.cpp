#include "bind.hpp"
#include "pieces.hpp"
#include "venn_abers.hpp"

namespace calibrant::python {
namespace {

// Each group has two knots at least, and each class a group.
void require_pieces(const Labels& groups, const Labels& starts, std::size_t k, const Vector<double>& knots,
                    const Matrix<double>& pieces) {
    const std::int64_t count = static_cast<std::int64_t>(starts.shape(0)) - 1;
    bool good = count >= 1 && starts.data()[0] == 0 && starts.data()[count] == std::int64_t(knots.shape(0));
    for (std::int64_t g = 0; good && g < count; ++g)  // which rise from 0, so that the difference is a number
        good = starts.data()[g] < starts.data()[g + 1] && starts.data()[g + 1] - starts.data()[g] >= 2;
    good = good && pieces.shape(0) == knots.shape(0) && pieces.shape(1) == 4 && groups.shape(0) == k;
    for (std::size_t j = 0; good && j < k; ++j) good = groups.data()[j] >= 0 && groups.data()[j] < count;
    if (!good) throw nb::value_error("groups, knots and pieces do not fit one another");
}

template <class T>
void bind_pieces(nb::module_& m) {
    m.def(
        "pieces_apply",
        [](Scores<T> scores, Labels groups, Labels starts, Vector<double> knots, Matrix<double> pieces, Threads threads,
           Output<T> out) {
            require_same_shape(scores, out);
            require_pieces(groups, starts, scores.shape(1), knots, pieces);
            nb::gil_scoped_release release;
            calibrant::pieces_apply(scores.data(), scores.shape(0), scores.shape(1), groups.data(), starts.data(),
                                    starts.shape(0) - 1, knots.data(), pieces.data(), threads, out.data());
        },
        "scores"_a.noconvert(), "groups"_a, "starts"_a, "knots"_a, "pieces"_a, "threads"_a, "out"_a.noconvert());
}

}  // namespace

void add_pieces(nb::module_& m) {
    bind_pieces<float>(m);
    bind_pieces<double>(m);
    m.def(
        "upper_venn_abers",
        [](Vector<double> weights, Vector<double> positives, double unit) {
            if (weights.shape(0) != positives.shape(0)) throw nb::value_error("weights and positives differ in length");
            auto out = fresh<double>({weights.shape(0)});
            nb::gil_scoped_release release;
            calibrant::upper_venn_abers(weights.data(), positives.data(), weights.shape(0), unit, out.data());
            return out;
        },
        "weights"_a, "positives"_a, "unit"_a);
}

}  // namespace calibrant::python
