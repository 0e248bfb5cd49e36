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
#include "core/prefetch.h"
#include "core/progress.h"
#include "core/sample.h"
#include "simd/byte_products.h"
#include "simd/projection.h"
#include "simd/ranking.h"
#include "simd/selection.h"

namespace faiss_ext {

namespace {

/// vectors whose distances to the centroids are computed together
constexpr idx_t vectors_together = 16;

// with fewer centroids or components, floats are as fast
constexpr size_t least_for_bytes = 1024, least_columns_for_bytes = 16;

/// Returns a scale at which values can be rounded to bytes.
float scale_for_bytes(size_t n, const float* x) {
    constexpr float least = 1e-33f;
    const float scale = simd::largest_magnitude(n, x) / 127;
    return scale >= least ? scale : 0;
}

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
        : d(d), count(count), half_squares(count) {
    for (size_t c = 0; c < count; c++) {
        for (size_t j = 0; j < d; j++) {
            const float value = centroids[c * d + j];
            half_squares[c] += value * value / 2;
        }
        FAISS_EXT_THROW_IF_NOT_FMT(
                std::isfinite(half_squares[c]),
                "the squared length of centroid %zu overflows; scale the vectors down",
                c);
    }
    if (count >= least_for_bytes && d >= least_columns_for_bytes &&
        d <= simd::most_byte_columns && simd::has_byte_products()) {
        pack_bytes(centroids);
        return;
    }
    panels.resize(simd::packed_size(d, count));
    for (size_t c = 0; c < count; c++) {
        for (size_t j = 0; j < d; j++) {
            panels[simd::panel_index(d, c, j)] = centroids[c * d + j];
        }
    }
}

void PackedCentroids::pack_bytes(const float* centroids) {
    CentroidBytes& b = bytes.emplace();
    b.rows.assign(centroids, centroids + count * d);
    half_squares.resize(simd::byte_panels_size(1, count) / 4);
    b.zeros.resize(half_squares.size());
    b.panels.resize(simd::byte_panels_size(d, count), 128);
    b.scale = scale_for_bytes(count * d, centroids);
    std::vector<int8_t> row(d);
    for (size_t c = 0; c < count; c++) {
        float square, square_of_lost;
        simd::round_to_bytes(
                d,
                centroids + c * d,
                b.scale,
                row.data(),
                square,
                square_of_lost);
        for (size_t j = 0; j < d; j++) {
            b.panels[simd::byte_panel_index(d, c, j)] = uint8_t(row[j] + 128);
        }
        const float lost = std::sqrt(square_of_lost);
        b.most_lost = std::max(b.most_lost, lost);
        b.most_length = std::max(b.most_length, std::sqrt(square) + lost);
    }
}

PackedCentroids::Estimates::Estimates(
        const PackedCentroids& centroids,
        idx_t n,
        const float* x,
        bool by_distance)
        : x(x),
          by_distance(by_distance),
          values(n * centroids.count),
          slack(n) {
    const size_t d = centroids.d, count = centroids.count;
    const auto& bytes = centroids.bytes;
    const auto& half_squares = centroids.half_squares;
    float* y = values.get();
    if (!bytes) {
        simd::project(n, x, count, centroids.panels.data(), d, y);
        for (idx_t i = 0; i < n; i++) {
            for (size_t c = 0; c < count; c++) {
                const float product = y[i * count + c];
                y[i * count + c] =
                        by_distance ? half_squares[c] - product : -product;
            }
        }
        return;
    }
    const size_t padded = simd::padded_bytes(d);
    thread_local std::vector<int8_t> rounded;
    thread_local std::vector<float> factors;
    rounded.assign(n * padded, 0);
    factors.resize(n);
    for (idx_t i = 0; i < n; i++) {
        const float scale = scale_for_bytes(d, x + i * d);
        float square, square_of_lost;
        simd::round_to_bytes(
                d,
                x + i * d,
                scale,
                &rounded[i * padded],
                square,
                square_of_lost);
        factors[i] = scale * bytes->scale;
        const float length = std::sqrt(square),
                    lost = std::sqrt(square_of_lost);
        // the second part is for the rounding of floats
        slack[i] = 2 * (length * bytes->most_lost + lost * bytes->most_length) +
                1e-4f * (length + bytes->most_length) * bytes->most_length;
    }
    simd::byte_products(
            n,
            rounded.data(),
            factors.data(),
            count,
            bytes->panels.data(),
            d,
            by_distance ? half_squares.data() : bytes->zeros.data(),
            y);
}

void PackedCentroids::smallest(
        const Estimates& estimates,
        idx_t i,
        size_t k,
        std::vector<std::pair<float, uint32_t>>& found,
        std::vector<float>& work) const {
    simd::k_smallest(
            count,
            estimates.values.get() + i * count,
            k,
            found,
            work,
            estimates.slack[i]);
    if (!bytes) {
        return;
    }
    thread_local std::vector<uint32_t> numbers;
    numbers.resize(found.size());
    work.resize(std::max(work.size(), found.size()));
    std::transform(found.begin(), found.end(), numbers.begin(), [](auto& f) {
        return f.second;
    });
    for (uint32_t c : numbers) {
        prefetch_row(row(c), d * sizeof(float));
    }
    simd::project_on_rows(
            estimates.x + i * d,
            bytes->rows.data(),
            d,
            found.size(),
            numbers.data(),
            work.data());
    for (size_t j = 0; j < found.size(); j++) {
        const float product = work[j];
        found[j].first = estimates.by_distance
                ? half_squares[numbers[j]] - product
                : -product;
    }
    keep_smallest(found, k);
}

std::vector<idx_t> PackedCentroids::nearest(idx_t n, const float* x) const {
    std::vector<idx_t> found(n);
    parallel_blocks(
            "assigning to lists",
            n,
            vectors_together,
            [&](idx_t begin, idx_t end) {
                const Estimates near(*this, end - begin, x + begin * d, true);
                thread_local std::vector<std::pair<float, uint32_t>> best;
                thread_local std::vector<float> work;
                for (idx_t i = begin; i < end; i++) {
                    if (!bytes) {
                        found[i] = simd::first_smallest(
                                count, near.values.get() + (i - begin) * count);
                        continue;
                    }
                    smallest(near, i - begin, 1, best, work);
                    found[i] = best[0].second;
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
