// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/bandwidth.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/LaplacianKernel.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "core/sample.h"
#include "kernels/sparse_blocks.h"
#include "simd/elementwise.h"
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

/// Parameters of mean_neighbor_distance.
struct NeighborSample {
    int neighbor;
    idx_t max_queries;
    idx_t max_points;
    int64_t seed;
};

void check(const VectorBatch& x, const NeighborSample& how) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            x.n >= 2,
            "mean_neighbor_distance: %" PRId64
            " vectors given, expected at least 2 to choose a bandwidth; give more vectors, or gamma",
            int64_t(x.n));
    FAISS_EXT_THROW_IF_NOT_FMT(
            how.neighbor >= 1 && how.max_queries >= 1 &&
                    (how.max_points == 0 || how.max_points >= 2),
            "mean_neighbor_distance: neighbor = %d, max_queries = %" PRId64
            ", max_points = %" PRId64
            "; expected at least 1, 1 and 2 (or 0 for all)",
            how.neighbor,
            int64_t(how.max_queries),
            int64_t(how.max_points));
}

/// The largest component in magnitude.
float largest_component(const VectorBatch& x) {
    if (!x.is_sparse) {
        return simd::max_abs(x.n * x.d, x.dense);
    }
    const int64_t begin = x.sparse.indptr[0], end = x.sparse.indptr[x.n];
    return simd::max_abs(end - begin, x.sparse.values + begin);
}

/// Sums the distances of queries to their count-th nearest points. The distance
/// of a query to itself is 0 and comes first.
double sum_of_radii(
        bool l1,
        const VectorBatch& queries,
        const VectorBatch& points,
        size_t count) {
    // the scores of these kernels are distances, squared if they are Euclidean
    const GaussianKernel gaussian(1);
    const LaplacianKernel laplacian(1);
    const Kernel& kernel =
            l1 ? static_cast<const Kernel&>(laplacian) : gaussian;
    const idx_t block = 4096;
    std::vector<double> radius(queries.n);
    parallel_blocks("bandwidth", queries.n, 16, [&](idx_t begin, idx_t end) {
        std::vector<TopK<float>> nearest(
                end - begin,
                TopK(count, std::numeric_limits<float>::infinity()));
        std::vector<float> distances((end - begin) * block);
        for (idx_t i = 0; i < points.n; i += block) {
            const idx_t m = std::min(block, points.n - i);
            score_block_of(
                    kernel,
                    faiss::METRIC_L2,
                    queries.slice(begin, end),
                    points.slice(i, i + m),
                    distances.data());
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
    return std::accumulate(radius.begin(), radius.end(), 0.0);
}

/// Computes the mean distance of checked vectors.
double mean_distance(bool l1, const VectorBatch& x, const NeighborSample& how) {
    const int power = l1 ? 0 : power_of_scale(largest_component(x));
    const idx_t npoints =
            how.max_points == 0 ? x.n : std::min(x.n, how.max_points);
    const idx_t nqueries = std::min(how.max_queries, npoints);
    const bool whole = npoints == x.n;
    std::vector<idx_t> ids =
            sample_ids(x.n, whole ? nqueries : npoints, how.seed);
    VectorSample copied;
    if (!whole) {
        copied = gather_rows(ids, x);
    } else if (power != 0) {
        copied = gather_rows(all_ids(x.n), x);
    }
    ids.resize(nqueries);
    VectorSample queries = gather_rows(ids, x);
    scale_down(copied.components(), power);
    scale_down(queries.components(), power);
    const double sum = sum_of_radii(
            l1,
            queries.get(),
            copied.n == 0 ? x : copied.get(),
            std::min<idx_t>(how.neighbor, npoints - 1) + 1);
    return std::ldexp(sum / double(nqueries), power);
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
    return mean_neighbor_distance(
            l1,
            VectorBatch(n, x, idx_t(d)),
            neighbor,
            max_queries,
            max_points,
            seed);
}

double mean_neighbor_distance(
        bool l1,
        const VectorBatch& x,
        int neighbor,
        idx_t max_queries,
        idx_t max_points,
        int64_t seed) {
    const NeighborSample how = {neighbor, max_queries, max_points, seed};
    check(x, how);
    if (x.is_sparse) {
        const CanonicalVectors canonical(x.sparse, "mean_neighbor_distance");
        return mean_distance(l1, canonical.get(), how);
    }
    check_finite(x.n, x.dense, x.d, "mean_neighbor_distance");
    return mean_distance(l1, x, how);
}

} // namespace faiss_ext
