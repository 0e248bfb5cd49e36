// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/bandwidth.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "core/SparsePairs.h"
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

/// The vectors whose neighbours are searched, and those that are searched.
struct Sample {
    idx_t num_points, num_queries;
    /// All points, which begin with the queries. If all vectors are points,
    /// only the queries.
    std::vector<idx_t> ids;
    bool is_whole; ///< whether all vectors are points

    Sample(idx_t n,
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
        num_points = max_points == 0 ? n : std::min(n, max_points);
        num_queries = std::min(max_queries, num_points);
        is_whole = num_points == n;
        ids = sample_ids(n, is_whole ? num_queries : num_points, seed);
    }
};

/// The mean distance from a query to its neighbor-th nearest point but itself.
/// compare(begin, end, i, m, out) computes the distances of queries to m points
/// from the i-th on; for L2, their squares.
template <class F>
double mean_distance(const Sample& sample, bool l1, int neighbor, F&& compare) {
    // the distance of a query to itself is 0 and comes first
    const size_t count = std::min<idx_t>(neighbor, sample.num_points - 1) + 1;
    const idx_t block = 4096;
    std::vector<double> radius(sample.num_queries);
    const auto search = [&](idx_t begin, idx_t end) {
        std::vector<TopK<float>> nearest(
                end - begin,
                TopK(count, std::numeric_limits<float>::infinity()));
        std::vector<float> distances((end - begin) * block);
        for (idx_t i = 0; i < sample.num_points; i += block) {
            const idx_t m = std::min(block, sample.num_points - i);
            compare(begin, end, i, m, distances.data());
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
    };
    parallel_blocks("bandwidth", sample.num_queries, 16, search);
    return std::accumulate(radius.begin(), radius.end(), 0.0) /
            double(sample.num_queries);
}

simd::PairOp distance(bool l1) {
    return l1 ? simd::PairOp::l1 : simd::PairOp::squared_l2;
}

/// Computes distances of a query, as SparsePairs calls it.
auto distances_of(bool l1) {
    return [=](const float* query,
               size_t m,
               const float* rows,
               size_t width,
               float* out) {
        simd::pairwise(distance(l1), 1, query, m, rows, width, out, m);
    };
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
    Sample sample(n, neighbor, max_queries, max_points, seed);
    check_finite(n, x, d, "mean_neighbor_distance");
    const int power = l1 ? 0 : power_of_scale(simd::max_abs(n * d, x));
    std::vector<float> copied;
    if (!sample.is_whole) {
        copied = gather_rows(sample.ids, x, d);
    } else if (power != 0) {
        copied.assign(x, x + n * d);
    }
    const float* points = copied.empty() ? x : copied.data();
    sample.ids.resize(sample.num_queries);
    std::vector<float> queries = gather_rows(sample.ids, x, d);
    scale_down(copied, power);
    scale_down(queries, power);
    const double mean = mean_distance(
            sample,
            l1,
            neighbor,
            [&](idx_t begin, idx_t end, idx_t i, idx_t m, float* out) {
                simd::pairwise(
                        distance(l1),
                        end - begin,
                        &queries[begin * d],
                        m,
                        points + i * d,
                        d,
                        out,
                        m);
            });
    return std::ldexp(mean, power);
}

double mean_neighbor_distance(
        bool l1,
        const SparseVectors& given,
        int neighbor,
        idx_t max_queries,
        idx_t max_points,
        int64_t seed) {
    const Sample sample(given.n, neighbor, max_queries, max_points, seed);
    const CanonicalVectors canonical(given, "mean_neighbor_distance");
    const SparseVectors& x = canonical.get();
    const float* first = x.values + x.indptr[0];
    const size_t size = x.indptr[x.n] - x.indptr[0];
    const int power = l1 ? 0 : power_of_scale(simd::max_abs(size, first));
    std::vector<float> scaled;
    if (power != 0) {
        scaled.assign(first, first + size);
        scale_down(scaled, power);
    }
    const auto row = [&](idx_t i) {
        const SparseRow found = SparseRow::of(x, i);
        const float* values = power == 0
                ? found.values.data()
                : scaled.data() + (x.indptr[i] - x.indptr[0]);
        return SparseRow{found.columns, {values, found.size()}};
    };
    std::vector<SparseRow> points;
    for (idx_t i = 0; i < sample.num_points; i++) {
        points.push_back(row(sample.is_whole ? i : sample.ids[i]));
    }
    const auto norm = l1 ? ComponentNorm::l1 : ComponentNorm::l2;
    const double mean = mean_distance(
            sample,
            l1,
            neighbor,
            [&](idx_t begin, idx_t end, idx_t i, idx_t m, float* out) {
                const auto some = std::span(points).subspan(i, m);
                for (idx_t q = begin; q < end; q++, out += m) {
                    SparsePairs(row(sample.ids[q]), norm)
                            .for_rows(some, out, distances_of(l1));
                }
            });
    return std::ldexp(mean, power);
}

} // namespace faiss_ext
