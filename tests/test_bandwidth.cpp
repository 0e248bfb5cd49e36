// The radius by which bandwidths are chosen.

#include <faiss_ext/kernels/bandwidth.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "testing_data.h"

using namespace faiss_ext;
using namespace testing_data;

namespace {

constexpr double float_unit = 0x1p-24;

/// By definition, in double precision: for each vector the neighbor-th smallest
/// of the distances to all others, or the largest if there are fewer.
double brute_force(
        bool l1,
        size_t n,
        const std::vector<float>& x,
        size_t d,
        size_t neighbor) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        std::vector<double> distances;
        for (size_t j = 0; j < n; j++) {
            double s = 0;
            for (size_t k = 0; k < d; k++) {
                const double diff = double(x[i * d + k]) - x[j * d + k];
                s += l1 ? std::abs(diff) : diff * diff;
            }
            if (j != i) {
                distances.push_back(l1 ? s : std::sqrt(s));
            }
        }
        std::sort(distances.begin(), distances.end());
        sum += distances[std::min(neighbor, distances.size()) - 1];
    }
    return sum / n;
}

/// n vectors at the distance sqrt(2) * length (L1: 2 * length) from each other
std::vector<float> simplex(size_t n, float length) {
    std::vector<float> x(n * n);
    for (size_t i = 0; i < n; i++) {
        x[i * n + i] = length;
    }
    return x;
}

} // namespace

// A float distance errs by at most (d + 4) units relatively, and the rank-th
// smallest of such distances by no more.
TEST(Bandwidth, AgreesWithBruteForce) {
    for (bool l1 : {false, true}) {
        for (size_t n : {2, 3, 20, 51, 52, 200, 700}) {
            for (size_t d : {1, 2, 9, 100}) {
                const std::vector<float> x = normal_vectors(n, d, n * d, 3);
                for (int neighbor : {1, 2, 50, 199, 1000000}) {
                    const double expected = brute_force(l1, n, x, d, neighbor);
                    EXPECT_NEAR(
                            mean_neighbor_distance(
                                    l1, n, x.data(), d, neighbor),
                            expected,
                            (d + 4) * float_unit * expected)
                            << "l1 = " << l1 << ", n = " << n << ", d = " << d
                            << ", neighbor = " << neighbor;
                    if (n > 200) {
                        break; // once is enough
                    }
                }
            }
        }
    }
}

TEST(Bandwidth, DefaultsAreThoseOfThePaper) {
    const size_t n = 90, d = 3;
    const std::vector<float> x = uniform_vectors(n, d, 1);
    EXPECT_EQ(
            mean_neighbor_distance(false, n, x.data(), d),
            mean_neighbor_distance(false, n, x.data(), d, 50));
}

// Vectors that occur twice have a neighbour at distance 0, which is not the
// vector itself.
TEST(Bandwidth, Duplicates) {
    const std::vector<float> x = {0, 0, 3, 3, 10, 10};
    EXPECT_EQ(mean_neighbor_distance(false, 6, x.data(), 1, 1), 0);
    // 3, 3, 3, 3, 7, 7
    EXPECT_EQ(mean_neighbor_distance(false, 6, x.data(), 1, 2), 26.0 / 6);
    EXPECT_EQ(mean_neighbor_distance(true, 6, x.data(), 1, 3), 26.0 / 6);
    // all the same
    const std::vector<float> same(30, 7);
    EXPECT_EQ(mean_neighbor_distance(false, 30, same.data(), 1, 5), 0);
}

// In a simplex every sample gives the same: queries and points are different
// vectors, and a query is not its own neighbour.
TEST(Bandwidth, SampleOfSimplex) {
    const size_t n = 150;
    const std::vector<float> x = simplex(n, 2);
    for (int neighbor : {1, 7, 50}) {
        for (idx_t queries : {1, 3, 40, 150, 1000}) {
            for (idx_t points : {2, 10, 60, 149, 150, 1000}) {
                for (int64_t seed : {1, 2, 3}) {
                    // 8 and 4 are exact, their roots in double; the mean
                    // rounds
                    EXPECT_NEAR(
                            mean_neighbor_distance(
                                    false,
                                    n,
                                    x.data(),
                                    n,
                                    neighbor,
                                    queries,
                                    points,
                                    seed),
                            std::sqrt(8.0),
                            1e-12);
                    EXPECT_EQ(
                            mean_neighbor_distance(
                                    true,
                                    n,
                                    x.data(),
                                    n,
                                    neighbor,
                                    queries,
                                    points,
                                    seed),
                            4);
                }
            }
        }
    }
}

// The nearest neighbour in a sample of two is the other one: over many seeds,
// pairs of different vectors are drawn, all of them with the same chance.
// Hoeffding: the frequency of a pair among 4000 seeds is within 0.054 of 1/3
// but for 2 exp(-2 * 4000 * 0.054^2) = 1.5e-10 each.
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
        EXPECT_NEAR(double(count[r]) / n, 1.0 / 3, 0.054) << "r = " << r;
    }
}

// Queries are a part of the points, and all points count: one query among n
// vectors gives the distance from some vector to its neighbour in the whole
// set.
TEST(Bandwidth, QueriesSeeAllPoints) {
    const size_t n = 300, d = 2;
    const std::vector<float> x = normal_vectors(n, d, 3);
    std::vector<double> all;
    for (size_t i = 0; i < n; i++) {
        std::vector<double> distances;
        for (size_t j = 0; j < n; j++) {
            if (j != i) {
                distances.push_back(std::hypot(
                        double(x[i * d]) - x[j * d],
                        double(x[i * d + 1]) - x[j * d + 1]));
            }
        }
        std::nth_element(
                distances.begin(), distances.begin() + 9, distances.end());
        all.push_back(distances[9]);
    }
    std::vector<double> seen;
    for (int64_t seed = 0; seed < 20; seed++) {
        const double r = mean_neighbor_distance(
                false, n, x.data(), d, 10, 1, 65536, seed);
        EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](double v) {
            return std::abs(v - r) <= 6 * float_unit * v;
        })) << r;
        seen.push_back(r);
    }
    // seeds draw different queries: 20 draws from 300 have more than 10
    // different ones but for a probability below (300 choose 10) (10 / 300)^20
    // = 4e-12
    std::sort(seen.begin(), seen.end());
    EXPECT_GT(std::unique(seen.begin(), seen.end()) - seen.begin(), 10);
}

// A sample finds farther neighbours, and a seed repeats.
TEST(Bandwidth, Sample) {
    const size_t n = 2000, d = 3;
    const std::vector<float> x = uniform_vectors(n, d, 1);
    const auto radius = [&](idx_t points, int64_t seed) {
        return mean_neighbor_distance(
                false, n, x.data(), d, 50, 100, points, seed);
    };
    EXPECT_EQ(radius(500, 7), radius(500, 7));
    EXPECT_NE(radius(500, 7), radius(500, 8));
    // a quarter of the points: 4^(1/3) = 1.6 times as far
    EXPECT_GT(radius(500, 7), 1.3 * radius(2000, 7));
}

TEST(Bandwidth, IndependentOfThreads) {
    const size_t n = 500, d = 5;
    const std::vector<float> x = normal_vectors(n, d, 1);
    const double expected = mean_neighbor_distance(false, n, x.data(), d);
    for (int threads : {1, 2, 7}) {
        const ThreadCount guard(threads);
        EXPECT_EQ(mean_neighbor_distance(false, n, x.data(), d), expected);
    }
}

// L1 distances of any size. Euclidean ones lose those whose squares are no
// floats, to 0 or to infinity, never to a wrong number in between.
TEST(Bandwidth, SmallAndLargeDistances) {
    for (float size : {1e-25f, 1e-18f, 1e18f, 1e25f}) {
        const std::vector<float> x = {0, size, 3 * size};
        const double expected = (1.0 + 1 + 2) / 3 * size;
        EXPECT_NEAR(
                mean_neighbor_distance(true, 3, x.data(), 1, 1),
                expected,
                5 * float_unit * expected);
        double radius = HUGE_VAL;
        try {
            radius = mean_neighbor_distance(false, 3, x.data(), 1, 1);
        } catch (const faiss::FaissException&) {
            EXPECT_TRUE(size < 1e-20f || size > 1e20f) << "size " << size;
        }
        if (size < 1e-20f && radius == 0) {
            continue;
        }
        if (size > 1e20f && radius == HUGE_VAL) {
            continue;
        }
        EXPECT_NEAR(radius, expected, 5 * float_unit * expected)
                << "size " << size;
    }
}

TEST(Bandwidth, Errors) {
    const std::vector<float> x = {1, 2, 3};
    const auto message =
            [&](idx_t n, int neighbor, idx_t queries, idx_t points) {
                return message_of([&] {
                    mean_neighbor_distance(
                            false, n, x.data(), 1, neighbor, queries, points);
                });
            };
    for (idx_t n : {-1, 0, 1}) {
        const std::string text = message(n, 50, 1000, 65536);
        EXPECT_TRUE(contains(text, std::to_string(n) + " vectors")) << text;
        EXPECT_TRUE(contains(text, "at least 2")) << text;
    }
    for (int neighbor : {0, -1}) {
        const std::string text = message(3, neighbor, 1000, 65536);
        EXPECT_TRUE(contains(text, "neighbor = " + std::to_string(neighbor)))
                << text;
    }
    EXPECT_TRUE(contains(message(3, 50, 0, 65536), "max_queries = 0"));
    EXPECT_TRUE(contains(message(3, 50, 1000, 1), "max_points = 1"));
    EXPECT_TRUE(contains(message(3, 50, 1000, -5), "max_points = -5"));
}
