#include <faiss_ext/bandwidth.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <faiss/impl/FaissAssert.h>

#include "check.h"
#include "parallel.h"
#include "simd/pairwise.h"

namespace faiss_ext {

namespace {

/// k of the numbers below n without replacement, in random order; all of them
/// if k >= n
std::vector<idx_t> sample(idx_t n, idx_t k, int64_t seed) {
    std::vector<idx_t> ids(n);
    std::iota(ids.begin(), ids.end(), 0);
    std::mt19937_64 rng(seed);
    k = std::min(n, k);
    for (idx_t i = 0; i < k; i++) {
        std::uniform_int_distribution<idx_t> rest(i, n - 1);
        std::swap(ids[i], ids[rest(rng)]);
    }
    ids.resize(k);
    return ids;
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
    FAISS_THROW_IF_NOT_FMT(
            n >= 2,
            "mean_neighbor_distance: %" PRId64
            " vectors given, expected at least 2 (a bandwidth that is not given is chosen from training vectors)",
            int64_t(n));
    FAISS_THROW_IF_NOT_FMT(
            neighbor >= 1 && max_queries >= 1 && max_points >= 2,
            "mean_neighbor_distance: neighbor = %d, max_queries = %" PRId64
            ", max_points = %" PRId64 "; expected at least 1, 1 and 2",
            neighbor,
            int64_t(max_queries),
            int64_t(max_points));

    check_finite(n, x, d, "mean_neighbor_distance");

    const std::vector<idx_t> ids = sample(n, max_points, seed);
    const size_t npoints = ids.size();
    const size_t nqueries = std::min<size_t>(max_queries, npoints);
    const auto gather = [&](size_t count) {
        std::vector<float> rows(count * d);
        for (size_t i = 0; i < count; i++) {
            std::copy_n(x + ids[i] * d, d, &rows[i * d]);
        }
        return rows;
    };
    const std::vector<float> queries = gather(nqueries);
    const bool whole = idx_t(npoints) == n; // in any order
    const std::vector<float> sampled = gather(whole ? 0 : npoints);
    const float* points = whole ? x : sampled.data();

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
