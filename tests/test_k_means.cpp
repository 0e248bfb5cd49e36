// SPDX-License-Identifier: MIT
// k-means.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include <omp.h>

#include "indexes/k_means.h"
#include "simd/byte_products.h"
#include "simd/projection.h"
#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr size_t d = 7;

double squared_distance(const float* a, const float* b) {
    double sum = 0;
    for (size_t j = 0; j < d; j++) {
        sum += (double(a[j]) - b[j]) * (double(a[j]) - b[j]);
    }
    return sum;
}

/// Sums the squared distances to the nearest centroids.
double cost(const std::vector<float>& x, const AlignedVector<float>& c) {
    double sum = 0;
    for (size_t i = 0; i < x.size(); i += d) {
        double least = INFINITY;
        for (size_t k = 0; k < c.size(); k += d) {
            least = std::min(least, squared_distance(&x[i], &c[k]));
        }
        sum += least;
    }
    return sum;
}

TEST(KMeans, NearestIsNearest) {
    constexpr idx_t n = 100;
    const auto x = normal_vectors(n, d, 1);
    for (size_t k : {1, 5, 16, 37}) {
        const auto c = normal_vectors(k, d, 2);
        const PackedCentroids packed(d, k, c.data());
        const auto found = packed.nearest(n, x.data());
        const PackedCentroids::Estimates half(packed, n, x.data(), true);
        for (idx_t i = 0; i < n; i++) {
            double square = 0;
            for (size_t j = 0; j < d; j++) {
                square += double(x[i * d + j]) * x[i * d + j];
            }
            const double own = squared_distance(&x[i * d], &c[found[i] * d]);
            for (size_t l = 0; l < k; l++) {
                const double other = squared_distance(&x[i * d], &c[l * d]);
                ASSERT_LE(own, other + 1e-5);
                ASSERT_NEAR(half.values[i * k + l], (other - square) / 2, 1e-5);
            }
        }
    }
}

/// Centroids of which many are rounded to bytes.
struct ManyCentroids {
    static constexpr size_t d = 35, k = 1500;
    static constexpr idx_t n = 40;
    AlignedVector<float> c;
    std::vector<float> x;

    /// spread: of the lengths
    explicit ManyCentroids(double spread) : x(normal_vectors(n, d, 2)) {
        const auto values = normal_vectors(k, d, 1);
        c.assign(values.begin(), values.end());
        for (size_t i = 0; i < k; i++) {
            scale(&c[i * d], std::pow(spread, double(i % 7) / 6));
        }
        for (idx_t i = 0; i < n; i++) {
            scale(&x[i * d], std::pow(spread, double(i % 5) / 4));
        }
        std::copy_n(&c[0], d, &c[700 * d]); // at equal distances
        std::copy_n(&c[0], d, &x[0]);
        std::fill_n(&x[d], d, 0.0f);
    }

    /// Returns the scores of all centroids for one vector, which are not
    /// estimated.
    std::vector<std::pair<float, uint32_t>> scores(idx_t i, bool by_distance) {
        AlignedVector<float> panels(simd::packed_size(d, k));
        for (size_t j = 0; j < k * d; j++) {
            panels[simd::panel_index(d, j / d, j % d)] = c[j];
        }
        std::vector<float> products(k);
        simd::project(1, &x[i * d], k, panels.data(), d, products.data());
        std::vector<std::pair<float, uint32_t>> found(k);
        for (size_t l = 0; l < k; l++) {
            float half_square = 0;
            for (size_t j = 0; j < d; j++) {
                half_square += c[l * d + j] * c[l * d + j] / 2;
            }
            found[l] = {
                    by_distance ? half_square - products[l] : -products[l],
                    uint32_t(l)};
        }
        std::sort(found.begin(), found.end());
        return found;
    }

   private:
    static void scale(float* v, double factor) {
        for (size_t j = 0; j < d; j++) {
            v[j] *= float(factor);
        }
    }
};

TEST(KMeans, EstimatesLoseNoneOfTheNearest) {
    for (int64_t target : targets()) {
        const Target guard(target);
        for (double spread : {1.0, 1e3, 1e-3, 1e8}) {
            ManyCentroids made(spread);
            constexpr size_t d = ManyCentroids::d, k = ManyCentroids::k;
            constexpr idx_t n = ManyCentroids::n;
            const PackedCentroids packed(d, k, made.c.data());
            const auto nearest = packed.nearest(n, made.x.data());
            std::vector<std::pair<float, uint32_t>> found;
            std::vector<float> work;
            for (bool by_distance : {true, false}) {
                const PackedCentroids::Estimates estimates(
                        packed, n, made.x.data(), by_distance);
                for (idx_t i = 0; i < n; i++) {
                    const auto expected = made.scores(i, by_distance);
                    for (const auto& [score, c] : expected) {
                        ASSERT_LE(
                                std::abs(estimates.values[i * k + c] - score),
                                estimates.slack[i] / 2);
                    }
                    for (size_t few : {1, 8, 100}) {
                        packed.smallest(estimates, i, few, found, work);
                        ASSERT_EQ(found.size(), few);
                        ASSERT_TRUE(std::equal(
                                found.begin(), found.end(), expected.begin()));
                    }
                    if (by_distance) {
                        ASSERT_EQ(nearest[i], expected[0].second);
                    }
                }
            }
        }
    }
}

// All components lose nearly half a byte, and the losses are parallel to the
// other vector: no bound could be smaller.
TEST(KMeans, BoundsOfEstimatesAreTight) {
    constexpr size_t d = 64, k = 1100;
    std::vector<float> whole(d, 127), rounded(d, 30.49f);
    rounded[0] = 127; // a byte stands for 1
    for (bool is_centroid_rounded : {true, false}) {
        const auto& first = is_centroid_rounded ? rounded : whole;
        const auto& x = is_centroid_rounded ? whole : rounded;
        AlignedVector<float> c(k * d, 1);
        std::copy(first.begin(), first.end(), c.begin());
        const PackedCentroids packed(d, k, c.data());
        const PackedCentroids::Estimates estimates(packed, 1, x.data(), false);
        const double score =
                -std::inner_product(x.begin(), x.end(), first.begin(), 0.0);
        const double error = std::abs(estimates.values[0] - score);
        EXPECT_LE(error, estimates.slack[0] / 2);
        if (simd::has_byte_products()) {
            EXPECT_GE(error, 0.9 * estimates.slack[0] / 2);
        }
    }
}

// Lloyd's algorithm reduces the cost until centroids are means.
TEST(KMeans, CostFallsUntilCentroidsAreMeans) {
    constexpr idx_t n = 2000;
    constexpr size_t k = 12;
    const auto x = normal_vectors(n, d, 3);
    double before = INFINITY;
    for (int iterations : {0, 1, 2, 5, 20, 400}) {
        const auto c = k_means(d, k, n, x.data(), iterations, 4);
        ASSERT_EQ(c.size(), k * d);
        const double now = cost(x, c);
        EXPECT_LE(now, before * (1 + 1e-6));
        before = now;
    }
    const auto c = k_means(d, k, n, x.data(), 400, 4);
    const auto cluster = PackedCentroids(d, k, c.data()).nearest(n, x.data());
    for (size_t l = 0; l < k; l++) {
        std::vector<double> mean(d);
        double size = 0;
        for (idx_t i = 0; i < n; i++) {
            if (cluster[i] == idx_t(l)) {
                size++;
                for (size_t j = 0; j < d; j++) {
                    mean[j] += x[i * d + j];
                }
            }
        }
        for (size_t j = 0; j < d; j++) {
            EXPECT_NEAR(c[l * d + j], mean[j] / size, 1e-5);
        }
    }
}

TEST(KMeans, FindsClustersThatAreFarApart) {
    constexpr idx_t n = 900;
    constexpr size_t k = 3;
    auto x = normal_vectors(n, d, 5);
    for (idx_t i = 0; i < n; i++) {
        x[i * d] += 1000 * float(i % k);
    }
    // one of its vectors is enough to find a cluster; every seed finds all,
    // since empty clusters split large ones
    for (uint64_t seed = 0; seed < 20; seed++) {
        const auto c = k_means(d, k, n, x.data(), 30, seed);
        std::set<float> first;
        for (size_t l = 0; l < k; l++) {
            first.insert(std::round(c[l * d] / 1000));
        }
        if (first.size() == k) {
            EXPECT_LT(cost(x, c), 2.0 * n * d);
            return;
        }
    }
    FAIL() << "no seed finds the three clusters";
}

TEST(KMeans, EmptyClustersSplitTheLargest) {
    constexpr idx_t n = 64;
    // all centroids start at one point, which gets all vectors except ties
    std::vector<float> x(n * d, 1);
    for (idx_t i = n / 2; i < n; i++) {
        x[i * d] = 1 + float(i) / n;
    }
    const auto c = k_means(d, n / 2, n, x.data(), 20, 6);
    for (float value : c) {
        EXPECT_TRUE(std::isfinite(value));
    }
    EXPECT_LT(cost(x, c), cost(x, k_means(d, 1, n, x.data(), 1, 6)) / 10);
    // there is nothing to split
    const std::vector<float> zeros(n * d);
    for (float value : k_means(d, 5, n, zeros.data(), 5, 6)) {
        EXPECT_EQ(value, 0);
    }
}

TEST(KMeans, ThreadsDoNotMatter) {
    constexpr idx_t n = 3000;
    const auto x = normal_vectors(n, d, 7);
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    const auto alone = k_means(d, 50, n, x.data(), 8, 8);
    omp_set_num_threads(4);
    const auto together = k_means(d, 50, n, x.data(), 8, 8);
    omp_set_num_threads(threads);
    EXPECT_EQ(alone, together);
    EXPECT_NE(alone, k_means(d, 50, n, x.data(), 8, 9));
}

} // namespace
