// SPDX-License-Identifier: MIT
// The radius from which bandwidths are chosen.

#include <faiss_ext/kernels/bandwidth.h>

#include <set>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

/// Computes the radius by definition, in double precision: for each vector, the
/// neighbor-th smallest of the distances to all others, or the largest if there
/// are fewer.
std::vector<double> radii(
        bool l1,
        const std::vector<float>& x,
        size_t d,
        size_t neighbor) {
    const KernelCase norm = {l1 ? "laplacian" : "gaussian"};
    std::vector<double> radii;
    for (size_t i = 0; i < x.size(); i += d) {
        std::vector<double> distances;
        for (size_t j = 0; j < x.size(); j += d) {
            if (j != i) {
                distances.push_back(distance(norm, &x[i], &x[j], d));
            }
        }
        std::sort(distances.begin(), distances.end());
        radii.push_back(distances[std::min(neighbor, distances.size()) - 1]);
    }
    return radii;
}

} // namespace

// The relative error of a float distance is at most (d + 4) units, and so is
// the error of the rank-th smallest of such distances.
TEST(Bandwidth, AgreesWithBruteForce) {
    for (bool l1 : {false, true}) {
        for (size_t n : {2, 51, 52, 130}) {
            for (size_t d : {1, 9, 100}) {
                const auto x = normal_vectors(n, d, n * d, 3);
                for (int neighbor : {1, 50, 129, 1000000}) {
                    const double mean = Moments(radii(l1, x, d, neighbor)).mean;
                    const double bound = double(d + 4) * float_unit * mean;
                    const double found = mean_neighbor_distance(
                            l1, n, x.data(), d, neighbor);
                    EXPECT_NEAR(found, mean, bound)
                            << l1 << ", n = " << n << ", d = " << d
                            << ", neighbor = " << neighbor;
                }
            }
        }
    }
    // 50 neighbours by default, as in the paper, on any number of threads
    const auto x = uniform_vectors(90, 3, 1);
    const double expected = mean_neighbor_distance(false, 90, x.data(), 3, 50);
    for (int n : {1, 7}) {
        const Threads threads(n);
        EXPECT_EQ(mean_neighbor_distance(false, 90, x.data(), 3), expected);
    }
}

// A vector that occurs twice has a neighbour at distance 0, which is not the
// vector itself.
TEST(Bandwidth, Duplicates) {
    const std::vector<float> x = {0, 0, 3, 3, 10, 10};
    EXPECT_EQ(mean_neighbor_distance(false, 6, x.data(), 1, 1), 0);
    // 3, 3, 3, 3, 7, 7
    EXPECT_EQ(mean_neighbor_distance(false, 6, x.data(), 1, 2), 26.0 / 6);
    EXPECT_EQ(mean_neighbor_distance(true, 6, x.data(), 1, 3), 26.0 / 6);
}

// The nearest neighbour in a sample of two is the other vector. Over many
// seeds, all pairs of different vectors are drawn with equal probability.
TEST(Bandwidth, SampleIsUniform) {
    const std::vector<float> x = {0, 1, 3}; // distances 1, 2, 3
    int count[4] = {};
    const int n = 4000;
    for (int64_t seed = 0; seed < n; seed++) {
        const double r =
                mean_neighbor_distance(false, 3, x.data(), 1, 1, 2, 2, seed);
        ASSERT_TRUE(r == 1 || r == 2 || r == 3);
        count[int(r)]++;
    }
    for (int r : {1, 2, 3}) {
        EXPECT_TRUE(plausible(count[r], n, 1.0 / 3, 1.0 / 3)) << count[r];
    }
}

// Queries are a sample of the points. All points count by default, and if there
// are fewer than the sample size: one query among n vectors gives the distance
// from some vector to its neighbour in the whole set. Different seeds draw
// different queries: 20 draws from 300 have more than 10 different ones except
// with a probability below (300 choose 10) (10 / 300)^20 = 4e-12.
TEST(Bandwidth, Sample) {
    const size_t n = 300, d = 2;
    const auto x = normal_vectors(n, d, 3);
    const std::vector<double> all = radii(false, x, d, 10);
    const auto radius = [&](idx_t queries, idx_t points, int64_t seed) {
        return mean_neighbor_distance(
                false, n, x.data(), d, 10, queries, points, seed);
    };
    std::set<double> seen;
    for (int64_t seed = 0; seed < 20; seed++) {
        const double r = radius(1, 0, seed);
        EXPECT_EQ(radius(1, n + seed, seed), r);
        EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](double v) {
            return std::abs(v - r) <= 6 * float_unit * v;
        })) << r;
        seen.insert(r);
    }
    EXPECT_GT(seen.size(), 10);
    EXPECT_EQ(radius(100, 75, 7), radius(100, 75, 7));
    EXPECT_NE(radius(100, 75, 7), radius(100, 75, 8));
    // with a quarter of the points, distances in the plane are doubled
    EXPECT_GT(radius(300, 75, 7), 1.5 * radius(300, 300, 7));
}

// More vectors than are compared at once, and more neighbours.
TEST(Bandwidth, ManyVectors) {
    const size_t n = 4200;
    std::vector<float> x(n);
    std::iota(x.begin(), x.end(), 0.0f);
    for (int neighbor : {1, 50, 3000}) {
        // the k-th nearest of a number i is k / 2 away, rounded up, unless i is
        // near an end
        double sum = 0;
        for (int i = 0; i < int(n); i++) {
            const int end = std::min(i, int(n) - 1 - i);
            sum += std::max((neighbor + 1) / 2, neighbor - end);
        }
        EXPECT_NEAR(
                mean_neighbor_distance(true, n, x.data(), 1, neighbor, n),
                sum / double(n),
                1e-9 * double(n));
    }
}

// Distances of any size, even if their squares leave the range of float.
TEST(Bandwidth, SmallAndLargeDistances) {
    const auto radius = [](bool l1, float size) {
        const std::vector<float> x = {0, size, 3 * size};
        return mean_neighbor_distance(l1, 3, x.data(), 1, 1) / size;
    };
    for (float size : {1e-37f, 1e-25f, 1e-18f, 1e18f, 1e25f, 1e38f}) {
        EXPECT_NEAR(radius(true, size), 4.0 / 3, 7 * float_unit);
        EXPECT_NEAR(radius(false, size), 4.0 / 3, 7 * float_unit);
    }
}

TEST(Bandwidth, Errors) {
    const std::vector<float> x = {1, 2, 3};
    const auto call = [&](idx_t n, int neighbor, idx_t queries, idx_t points) {
        return [=, &x] {
            mean_neighbor_distance(
                    false, n, x.data(), 1, neighbor, queries, points);
        };
    };
    expect_throws(
            {{call(-1, 50, 1000, 65536), "-1 vectors"},
             {call(1, 50, 1000, 65536), "1 vectors"},
             {call(3, 0, 1000, 65536), "neighbor = 0"},
             {call(3, -1, 1000, 65536), "neighbor = -1"},
             {call(3, 50, 0, 65536), "max_queries = 0"},
             {call(3, 50, 1000, 1), "max_points = 1"},
             {call(3, 50, 1000, -1), "max_points = -1"}});
}
