#include "resample.hpp"

#include <vector>

#include "parallel.hpp"

namespace calibrant {
namespace {

constexpr std::int64_t kGlance = 1 << 18;  // rows of one resample between two looks

// splitmix64 (Steele, Lea and Flood 2014): one addition and a mix a number, every seed a full period.
struct Generator {
    std::uint64_t state;
    std::uint64_t operator()() {
        std::uint64_t z = (state += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
};

// Two indices below n < 2^32 from each number by multiplication of its halves; the bias is below n / 2^32.
void draw(Generator& next, std::int64_t n, std::vector<std::uint32_t>& counts) {
    const std::uint64_t range = static_cast<std::uint64_t>(n);
    std::int64_t i = 0;
    for (; i + 1 < n; i += 2) {
        if (i % kGlance == 0) Watch::look();
        const std::uint64_t bits = next();
        ++counts[((bits & 0xffffffffull) * range) >> 32];
        ++counts[((bits >> 32) * range) >> 32];
    }
    if (i < n) ++counts[((next() >> 32) * range) >> 32];
}

}  // namespace

void resample_sums(const std::int64_t* group, const double* outcomes, const double* excess, const double* weights,
                   const double* rows, const std::uint64_t* seeds, std::int64_t count, std::int64_t n, std::int64_t m,
                   std::int64_t q, int threads, double* mass, double* events, double* gaps, double* row_sums) {
    for_blocks(count, 65536, threads, [&](std::int64_t r, std::int64_t, std::int64_t) {
        std::vector<std::uint32_t> counts(n);
        Generator next{seeds[r]};
        draw(next, n, counts);
        double *w_out = mass + r * (m + 1), *e_out = events + r * (m + 1), *g_out = gaps + r * (m + 1);
        double w_sum = 0, e_sum = 0, g_sum = 0;
        w_out[0] = e_out[0] = g_out[0] = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            if (i % kGlance == 0) Watch::look();
            const double w = weights ? counts[i] * weights[i] : counts[i];
            w_sum += w;
            e_sum += w * outcomes[i];
            g_sum += w * excess[i];
            const std::int64_t g = group[i] + 1;
            w_out[g] = w_sum;
            e_out[g] = e_sum;
            g_out[g] = g_sum;
        }
        double* sums = row_sums + r * q;
        for (std::int64_t j = 0; j < q; ++j) sums[j] = 0;
        for (std::int64_t i = 0; i < n && q; ++i) {
            if (i % kGlance == 0) Watch::look();
            const double w = weights ? counts[i] * weights[i] : counts[i];
            if (w > 0)
                for (std::int64_t j = 0; j < q; ++j) sums[j] += w * rows[i * q + j];
        }
    });
}

}  // namespace calibrant
