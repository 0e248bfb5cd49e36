// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/bandwidth.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/check.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "core/sample.h"
#include "simd/elementwise.h"
#include "simd/pairwise.h"
#include "simd/top_k.h"

namespace faiss_ext {

namespace {

/// Returns the power of two that scales vectors up to `largest` so that squares
/// are in the range of float; 0 if they are already.
int power_of_scale(float largest) {
    return largest == 0 || (largest >= 1e-10f && largest <= 1e10f)
            ? 0
            : std::ilogb(largest);
}

void scale_down(std::vector<float>& values, int power) {
    if (power != 0) {
        for (float& v : values) {
            v = std::ldexp(v, -power);
        }
    }
}

} // namespace

double mean_neighbor_distance(
        bool l1,
        idx_t n,
        const float* x,
        size_t d,
        int neighbor,
        idx_t max_queries,
        idx_t max_points,
        int64_t seed) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            n >= 2,
            "mean_neighbor_distance: %" PRId64
            " vectors given, expected at least 2 to choose a bandwidth; give more vectors, or gamma",
            int64_t(n));
    FAISS_EXT_THROW_IF_NOT_FMT(
            neighbor >= 1 && max_queries >= 1 &&
                    (max_points == 0 || max_points >= 2),
            "mean_neighbor_distance: neighbor = %d, max_queries = %" PRId64
            ", max_points = %" PRId64
            "; expected at least 1, 1 and 2 (or 0 for all)",
            neighbor,
            int64_t(max_queries),
            int64_t(max_points));

    check_finite(n, x, d, "mean_neighbor_distance");
    const int power = l1 ? 0 : power_of_scale(simd::max_abs(n * d, x));
    const idx_t npoints = max_points == 0 ? n : std::min(n, max_points);
    const idx_t nqueries = std::min(max_queries, npoints);
    const bool whole = npoints == n;
    std::vector<idx_t> ids = sample_ids(n, whole ? nqueries : npoints, seed);
    std::vector<float> copied;
    if (!whole) {
        copied = gather_rows(ids, x, d);
    } else if (power != 0) {
        copied.assign(x, x + n * d);
    }
    const float* points = copied.empty() ? x : copied.data();
    ids.resize(nqueries);
    std::vector<float> queries = gather_rows(ids, x, d);
    scale_down(copied, power);
    scale_down(queries, power);

    // the distance of a query to itself is 0 and comes first
    const size_t count = std::min<idx_t>(neighbor, npoints - 1) + 1;
    const idx_t block = 4096;
    std::vector<double> radius(nqueries);
    parallel_blocks("bandwidth", nqueries, 16, [&](idx_t begin, idx_t end) {
        std::vector<TopK<float>> nearest(
                end - begin,
                TopK(count, std::numeric_limits<float>::infinity()));
        std::vector<float> distances((end - begin) * block);
        for (idx_t i = 0; i < npoints; i += block) {
            const idx_t m = std::min(block, npoints - i);
            simd::pairwise(
                    l1 ? simd::PairOp::l1 : simd::PairOp::squared_l2,
                    end - begin,
                    &queries[begin * d],
                    m,
                    points + i * d,
                    d,
                    distances.data(),
                    m);
            for (idx_t q = 0; q < end - begin; q++) {
                nearest[q].push_block(
                        i, m, &distances[q * m], [](idx_t) { return true; });
            }
        }
        for (idx_t q = begin; q < end; q++) {
            nearest[q - begin].shrink();
            const double largest = nearest[q - begin].bound;
            radius[q] = l1 ? largest : std::sqrt(largest);
        }
    });
    const double sum = std::accumulate(radius.begin(), radius.end(), 0.0);
    return std::ldexp(sum / nqueries, power);
}

} // namespace faiss_ext
