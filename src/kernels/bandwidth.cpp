#include <faiss_ext/kernels/bandwidth.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/check.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "core/sample.h"
#include "simd/pairwise.h"

namespace faiss_ext {

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
            " vectors given, expected at least 2 (a bandwidth that is not given is chosen from training vectors)",
            int64_t(n));
    FAISS_EXT_THROW_IF_NOT_FMT(
            neighbor >= 1 && max_queries >= 1 && max_points >= 2,
            "mean_neighbor_distance: neighbor = %d, max_queries = %" PRId64
            ", max_points = %" PRId64 "; expected at least 1, 1 and 2",
            neighbor,
            int64_t(max_queries),
            int64_t(max_points));

    check_finite(n, x, d, "mean_neighbor_distance");

    std::vector<idx_t> ids = sample_ids(n, max_points, seed);
    const size_t npoints = ids.size();
    const bool whole = idx_t(npoints) == n; // in any order
    const std::vector<float> sampled =
            whole ? std::vector<float>() : gather_rows(ids, x, d);
    const float* points = whole ? x : sampled.data();
    const size_t nqueries = std::min<size_t>(max_queries, npoints);
    ids.resize(nqueries);
    const std::vector<float> queries = gather_rows(ids, x, d);

    // the distance of a query to itself is 0 and sorts first
    const size_t rank = std::min<size_t>(neighbor, npoints - 1);
    std::vector<double> radius(nqueries);
    parallel_blocks(nqueries, 16, [&](idx_t begin, idx_t end) {
        std::vector<float> distances((end - begin) * npoints);
        simd::pairwise(
                l1 ? simd::PairOp::l1 : simd::PairOp::squared_l2,
                end - begin,
                &queries[begin * d],
                npoints,
                points,
                d,
                distances.data(),
                npoints);
        for (idx_t q = begin; q < end; q++) {
            const auto row = distances.begin() + (q - begin) * npoints;
            std::nth_element(row, row + rank, row + npoints);
            radius[q] = l1 ? row[rank] : std::sqrt(double(row[rank]));
        }
    });
    return std::accumulate(radius.begin(), radius.end(), 0.0) / nqueries;
}

} // namespace faiss_ext
