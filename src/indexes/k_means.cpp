// SPDX-License-Identifier: MIT
#include "indexes/k_means.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>

#include "core/errors.h"
#include "core/parallel.h"
#include "core/progress.h"
#include "core/sample.h"
#include "core/scratch.h"
#include "simd/projection.h"
#include "simd/selection.h"

namespace faiss_ext {

namespace {

/// vectors whose distances to the centroids are computed together
constexpr idx_t vectors_together = 16;

/// The numbers 0 to n - 1, grouped by cluster and ascending within a cluster.
struct Clusters {
    std::vector<idx_t> members;
    std::vector<idx_t> begin; ///< cluster c spans begin[c] to begin[c + 1]

    Clusters(size_t k, const std::vector<idx_t>& cluster_of)
            : members(cluster_of.size()), begin(k + 1) {
        for (idx_t c : cluster_of) {
            begin[c + 1]++;
        }
        std::partial_sum(begin.begin(), begin.end(), begin.begin());
        std::vector<idx_t> next(begin.begin(), begin.end() - 1);
        for (size_t i = 0; i < cluster_of.size(); i++) {
            members[next[cluster_of[i]]++] = i;
        }
    }

    idx_t size(size_t c) const {
        return begin[c + 1] - begin[c];
    }
};

void move_to_means(
        const Clusters& clusters,
        size_t d,
        const float* x,
        AlignedVector<float>& centroids) {
    parallel_blocks(centroids.size() / d, 16, [&](idx_t first, idx_t last) {
        std::vector<double> sum(d);
        for (idx_t c = first; c < last; c++) {
            if (clusters.size(c) == 0) {
                continue;
            }
            std::fill(sum.begin(), sum.end(), 0);
            for (idx_t m = clusters.begin[c]; m < clusters.begin[c + 1]; m++) {
                const float* v = x + clusters.members[m] * d;
                for (size_t j = 0; j < d; j++) {
                    sum[j] += v[j];
                }
            }
            for (size_t j = 0; j < d; j++) {
                centroids[c * d + j] = float(sum[j] / clusters.size(c));
            }
        }
    });
}

/// Moves the centroid of each empty cluster beside the largest cluster's, which
/// counts as half as large from then on.
void split_for_empty(
        const Clusters& clusters,
        size_t d,
        AlignedVector<float>& centroids) {
    constexpr float relative_step = 1.0f / 1024;
    const size_t k = centroids.size() / d;
    std::vector<idx_t> sizes(k);
    for (size_t c = 0; c < k; c++) {
        sizes[c] = clusters.size(c);
    }
    for (size_t c = 0; c < k; c++) {
        if (clusters.size(c) > 0) {
            continue;
        }
        const size_t largest =
                std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
        for (size_t j = 0; j < d; j++) {
            float& value = centroids[largest * d + j];
            const float step = (j % 2 ? -relative_step : relative_step) * value;
            centroids[c * d + j] = value + step;
            value -= step;
        }
        sizes[c] = sizes[largest] / 2;
        sizes[largest] -= sizes[c];
    }
}

} // namespace

PackedCentroids::PackedCentroids(size_t d, size_t count, const float* centroids)
        : d(d),
          count(count),
          panels(simd::packed_size(d, count)),
          half_squares(count) {
    for (size_t c = 0; c < count; c++) {
        for (size_t j = 0; j < d; j++) {
            const float value = centroids[c * d + j];
            panels[simd::panel_index(d, c, j)] = value;
            half_squares[c] += value * value / 2;
        }
        FAISS_EXT_THROW_IF_NOT_FMT(
                std::isfinite(half_squares[c]),
                "the squared length of centroid %zu overflows; scale the vectors down",
                c);
    }
}

void PackedCentroids::products(idx_t n, const float* x, float* y) const {
    simd::project(n, x, count, panels.data(), d, y);
}

void PackedCentroids::half_distances(idx_t n, const float* x, float* y) const {
    products(n, x, y);
    for (idx_t i = 0; i < n; i++) {
        for (size_t c = 0; c < count; c++) {
            y[i * count + c] = half_squares[c] - y[i * count + c];
        }
    }
}

std::vector<idx_t> PackedCentroids::nearest(idx_t n, const float* x) const {
    std::vector<idx_t> found(n);
    parallel_blocks(
            "assigning to lists",
            n,
            vectors_together,
            [&](idx_t begin, idx_t end) {
                const Scratch distances((end - begin) * count);
                half_distances(end - begin, x + begin * d, distances.get());
                for (idx_t i = begin; i < end; i++) {
                    found[i] = simd::first_smallest(
                            count, distances.get() + (i - begin) * count);
                }
            });
    return found;
}

AlignedVector<float> k_means(
        size_t d,
        size_t k,
        idx_t n,
        const float* x,
        int iterations,
        uint64_t seed,
        bool verbose) {
    const auto begin = gather_rows(sample_ids(n, k, seed), x, d);
    AlignedVector<float> centroids(begin.begin(), begin.end());
    std::vector<idx_t> last;
    Progress progress("k-means", iterations);
    for (int i = 0; i < iterations; i++) {
        progress.at(i);
        const PackedCentroids packed(d, k, centroids.data());
        auto cluster_of = packed.nearest(n, x);
        if (verbose) {
            last.resize(n, -1);
            const idx_t moved = std::transform_reduce(
                    last.begin(),
                    last.end(),
                    cluster_of.begin(),
                    idx_t(0),
                    std::plus<>(),
                    std::not_equal_to<>());
            printf("k-means, %zu centroids: iteration %d of %d, %" PRId64
                   " of %" PRId64 " vectors change cluster\n",
                   k,
                   i + 1,
                   iterations,
                   int64_t(moved),
                   int64_t(n));
            fflush(stdout);
            last = cluster_of;
        }
        const Clusters clusters(k, cluster_of);
        move_to_means(clusters, d, x, centroids);
        split_for_empty(clusters, d, centroids);
    }
    progress.at(iterations);
    return centroids;
}

} // namespace faiss_ext
