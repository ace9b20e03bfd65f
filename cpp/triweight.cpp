#include "triweight.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "interrupt.hpp"

namespace calibrant {

void triweight(const double* places, std::int64_t m, const double* points, const double* weights, std::int64_t n,
               std::int64_t sets, double h, double* out) {
    // Prefix sums of w * u^j, u being the distance from the middle of the point's cell of width h: no digits cancel.
    const std::int64_t width = sets * 7;
    const Alone alone;
    const auto prefix = std::make_unique_for_overwrite<double[]>((n + 1) * width);
    const auto cell = std::make_unique_for_overwrite<double[]>(n);
    std::fill(prefix.get(), prefix.get() + width, 0.0);
    for (std::int64_t i = 0; i < n; ++i) {
        if (i % 4096 == 0) Watch::look();
        cell[i] = std::floor(points[i] / h);
        const double u = points[i] / h - (cell[i] + 0.5);
        const double* before = prefix.get() + i * width;
        double* after = prefix.get() + (i + 1) * width;
        for (std::int64_t s = 0; s < sets; ++s) {
            double power = weights[s * n + i];
            for (int j = 0; j < 7; ++j, power *= u) after[s * 7 + j] = before[s * 7 + j] + power;
        }
    }
    std::int64_t first = 0, last = 0;
    for (std::int64_t x = 0; x < m; ++x) {
        if (x % 256 == 0) Watch::look();
        if (x > 0 && places[x] >= places[x - 1]) {  // places that rise move both ends on
            while (first < n && points[first] < places[x] - h) ++first;
            for (last = std::max(first, last); last < n && points[last] <= places[x] + h;) ++last;
        } else {
            first = std::lower_bound(points, points + n, places[x] - h) - points;
            last = std::upper_bound(points + first, points + n, places[x] + h) - points;
        }
        for (std::int64_t s = 0; s < sets; ++s) out[s * m + x] = 0;
        for (std::int64_t from = first, to; from < last; from = to) {  // at most three cells
            to = std::upper_bound(cell.get() + from, cell.get() + last, cell[from]) - cell.get();
            const double v = places[x] / h - (cell[from] + 0.5), vv = v * v, a = 1 - vv;
            const double c[7] = {a * a * a,           6 * a * a * v, 12 * a * vv - 3 * a * a, 8 * v * vv - 12 * a * v,
                                 3 * a - 12 * vv,     6 * v,         -1};
            const double *low = prefix.get() + from * width, *high = prefix.get() + to * width;
            for (std::int64_t s = 0; s < sets; ++s)
                for (int j = 0; j < 7; ++j) out[s * m + x] += c[j] * (high[s * 7 + j] - low[s * 7 + j]);
        }
        for (std::int64_t s = 0; s < sets; ++s) out[s * m + x] = std::max(0.0, out[s * m + x]) * (35.0 / 32.0 / h);
    }
}

}  // namespace calibrant
