// SPDX-License-Identifier: MIT
// near_duplicates by bands of random samples: which pairs it misses, and how
// many it compares.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <faiss_ext/indexes/near_duplicates.h>
#include <faiss_ext/kernels/Kernel.h>

#include "indexes/BandJoin.h"
#include "testing.h"
#include "testing_kernels.h"
#include "testing_pairs.h"
#include "testing_sparse.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr auto metric = faiss::METRIC_INNER_PRODUCT;

/// Pairs of vectors with a kernel value. No two pairs have a column in common.
Rows planted_pairs(
        idx_t n,
        const std::map<int32_t, float>& first,
        const std::map<int32_t, float>& second) {
    const int32_t width = 10;
    Rows x{n * width, {0}, {}, {}};
    for (idx_t i = 0; i < n; i++) {
        for (const auto& row : {first, second}) {
            std::map<int32_t, float> moved;
            for (const auto& [column, value] : row) {
                moved[int32_t(i) * width + column] = value;
            }
            x.add(moved);
        }
    }
    return x;
}

std::map<int32_t, float> ones(const std::vector<int32_t>& columns) {
    std::map<int32_t, float> row;
    for (const int32_t c : columns) {
        row[c] = 1;
    }
    return row;
}

/// The share of vectors 2 i and 2 i + 1 that the bands miss.
double share_missed(const KernelPairs& near, const Bands& bands, int64_t seed) {
    const BandJoin join(near.pairs, bands, seed);
    BandJoin::State state;
    size_t found = 0;
    for (size_t row = 0; row < near.rows.size(); row++) {
        join.find(row, state);
        for (const uint32_t other : state.found) {
            EXPECT_LT(other, row);
            EXPECT_EQ(
                    near.rows.equal(row).front() / 2,
                    near.rows.equal(other).front() / 2);
            found++;
        }
    }
    return 1 - 2 * double(found) / double(near.rows.size());
}

struct Planted {
    const char* kernel;
    float value; ///< of the pairs
    std::map<int32_t, float> first, second;
    double same; ///< the probability that a sample is the same
};

class EachPlanted : public testing::TestWithParam<Planted> {
   protected:
    const idx_t n = is_sanitized ? 1000 : 8000;
    const std::unique_ptr<Kernel> kernel = kernel_factory(GetParam().kernel);
    const Rows x = planted_pairs(n, GetParam().first, GetParam().second);
    const KernelPairs near{x.get(), *kernel, -GetParam().value};
};

// Samples of vectors without common columns are independent, and so Hoeffding's
// bound holds for the share.
TEST_P(EachPlanted, MissesTheShareOfTheTheory) {
    for (const Bands& bands : {Bands{1, 4}, Bands{9, 8}, Bands{30, 16}}) {
        const auto missed = [&](double same) {
            return std::pow(1 - std::pow(same, bands.samples), bands.number);
        };
        // numbers of projections are not quite normal; see GeneratedProjection
        const double error = near.bound.has_minima ? 0 : 2e-4;
        const double share = share_missed(near, bands, 1);
        const std::string text = std::to_string(bands.number) + " bands of " +
                std::to_string(bands.samples);
        EXPECT_LE(share, missed(GetParam().same - error) + hoeffding(n))
                << text;
        EXPECT_GE(share, missed(GetParam().same + error) - hoeffding(n))
                << text;
    }
}

TEST_P(EachPlanted, MissesNoMoreThanAllowed) {
    for (const double missed : {0.5, 0.1, 1e-3}) {
        for (const int64_t seed : {1, 2}) {
            const auto bands = choose_bands(near.pairs, missed, seed);
            ASSERT_TRUE(bands);
            EXPECT_LE(bands->missed, missed);
            EXPECT_LE(
                    share_missed(near, *bands, seed),
                    bands->missed + hoeffding(n));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        Bands,
        EachPlanted,
        testing::Values(
                Planted{"jaccard",
                        0.8f,
                        ones({0, 1, 2, 3, 4, 5, 6, 7, 8}),
                        ones({0, 1, 2, 3, 4, 5, 6, 7, 9}),
                        0.8},
                Planted{"jaccard",
                        0.6f,
                        {{0, 3e-3f}, {1, 1e-3f}},
                        {{0, 4e-3f}},
                        3.0 / 5},
                Planted{"cosine",
                        0.8f,
                        {{0, -1}},
                        {{0, -0.8f}, {1, 0.6f}},
                        1 - std::acos(0.8) / M_PI},
                Planted{"normalized(hellinger)",
                        0.8f,
                        {{0, 16}, {1, 9}},
                        {{0, 25}},
                        1 - std::acos(0.8) / M_PI},
                // at least the square of the kernel value
                Planted{"normalized(intersection)",
                        0.5f,
                        {{0, 1}},
                        {{0, 1}, {1, 3}},
                        0.25},
                // the value is 2/3, and the cosine of the roots is larger
                Planted{"normalized(chi2)",
                        0.66f,
                        {{0, 1}},
                        {{0, 0.5f}, {1, 0.5f}},
                        0.75}));

TEST(Bands, AreTheFewestThatAreEnough) {
    const auto kernel = kernel_factory("jaccard");
    const Rows x = draw(500, 60, 30, true, 1);
    for (const float threshold : {0.5f, 0.9f}) {
        const KernelPairs near(x.get(), *kernel, -threshold);
        for (const double missed : {0.5, 0.01, 1e-6}) {
            const auto bands = choose_bands(near.pairs, missed, 1);
            ASSERT_TRUE(bands);
            EXPECT_LE(bands->missed, missed);
            const double same = std::pow(threshold, bands->samples);
            // the threshold itself, but for the rounding of sums
            EXPECT_GE(std::pow(1 - same, bands->number - 2), missed)
                    << bands->number << " bands of " << bands->samples;
            EXPECT_NEAR(bands->missed, std::pow(1 - same, bands->number), 1e-3);
        }
    }
}

/// Vectors of which no column is rare, every other one like an earlier one.
Rows dense_rows(idx_t n, idx_t d, int seed, bool have_signs = false) {
    std::mt19937 rng(seed);
    std::exponential_distribution<float> magnitude(1);
    const auto value = [&] {
        const float v = magnitude(rng);
        return have_signs && rng() % 2 == 0 ? -v : v;
    };
    std::uniform_real_distribution<float> uniform(0, 1);
    std::vector<std::map<int32_t, float>> rows;
    for (idx_t i = 0; i < n; i++) {
        std::map<int32_t, float> row;
        if (i % 2 == 1) {
            row = rows[rng() % i];
            for (auto& component : row) {
                component.second *= 1 + 0.2f * uniform(rng);
            }
        } else {
            for (int32_t c = 0; c < d; c++) {
                row[c] = value();
            }
        }
        rows.push_back(row);
    }
    Rows x{d, {0}, {}, {}};
    for (const auto& row : rows) {
        x.add(row);
    }
    return x;
}

class Dense : public testing::TestWithParam<const char*> {
   protected:
    const std::unique_ptr<Kernel> kernel = kernel_factory(GetParam());

    Rows draw_rows(idx_t n, int seed) const {
        const bool have_signs = !kernel->shared_sum(metric)->is_of_histograms;
        return dense_rows(n, 32, seed, have_signs);
    }
};

TEST_P(Dense, FindPairsOfTheExactSearch) {
    const float threshold = 0.9f;
    const Rows x = draw_rows(16000, 1);
    const auto exact = near_duplicates(x.get(), *kernel, threshold);
    EXPECT_EQ(exact.missed, 0);
    EXPECT_GT(exact.values.size(), 6000);
    const auto found = near_duplicates(x.get(), *kernel, threshold, 0.3);
    EXPECT_GT(found.missed, 0);
    EXPECT_LE(found.missed, 0.3);
    EXPECT_LT(found.values.size(), exact.values.size());
    std::map<std::pair<idx_t, idx_t>, float> values;
    for (size_t i = 0; i < exact.values.size(); i++) {
        values[{exact.pairs[2 * i], exact.pairs[2 * i + 1]}] = exact.values[i];
    }
    for (size_t i = 0; i < found.values.size(); i++) {
        const std::pair pair(found.pairs[2 * i], found.pairs[2 * i + 1]);
        ASSERT_TRUE(values.count(pair));
        EXPECT_EQ(values[pair], found.values[i]);
    }
    // with so small a chance that none is missing
    const auto all = near_duplicates(x.get(), *kernel, threshold, 1e-9);
    EXPECT_EQ(all.pairs, exact.pairs);
    EXPECT_EQ(all.values, exact.values);
}

TEST_P(Dense, FindTheSameWithAnyNumberOfThreads) {
    const Rows x = draw_rows(16000, 2);
    const auto find = [&](int threads, int64_t seed) {
        const Threads use(threads);
        const auto found = near_duplicates(x.get(), *kernel, 0.9f, 0.3, seed);
        EXPECT_GT(found.missed, 0);
        return std::tuple(
                found.pairs,
                found.values,
                found.missed,
                found.compared,
                near_duplicate_groups(x.get(), *kernel, 0.9f, 0.3, seed));
    };
    const auto expected = find(1, 1);
    EXPECT_EQ(find(3, 1), expected);
    EXPECT_NE(find(3, 2), expected);
}

// Between linear and quadratic: four times as many vectors would need 16 times
// as many comparisons of all pairs.
TEST_P(Dense, CompareFewerPairsThanAll) {
    if (is_sanitized) {
        GTEST_SKIP() << "numbers, not memory";
    }
    const auto compared = [&](idx_t n) {
        const Rows x = draw_rows(n, 3);
        const auto found = near_duplicates(x.get(), *kernel, 0.9f, 0.3);
        EXPECT_GT(found.missed, 0);
        return double(found.compared);
    };
    const double few = compared(16000), many = compared(64000);
    EXPECT_LT(few, 16e3 * 16e3 / 2 / 10);
    EXPECT_LT(std::log(many / few), 1.5 * std::log(4));
}

INSTANTIATE_TEST_SUITE_P(Bands, Dense, testing::Values("jaccard", "cosine"));

/// The similarity of every pair that reaches the threshold is at least the
/// least similarity of its heavier row.
TEST(RowPairs, BoundSimilarities) {
    std::mt19937 rng(1);
    for (const std::string& name :
         joined(plain_kernels,
                {"normalized(chi2)",
                 "normalized(intersection)",
                 "poly(degree=2,c=1)",
                 "gaussian(gamma=0.3)",
                 "laplacian(gamma=0.3)",
                 "expchi2(gamma=5)"})) {
        const auto kernel = kernel_factory(name);
        size_t bounds = 0;
        for (int round = 0; round < 100; round++) {
            const idx_t n = 40, d = 1 + idx_t(rng() % 12);
            const Rows x = draw(n, d, 6, round % 2 == 0, round);
            const Floats dense = x.dense();
            Floats scores(n * n);
            kernel->score_block(
                    metric, n, dense.data(), n, dense.data(), d, scores.data());
            const float score = scores[rng() % scores.size()];
            float value = score;
            kernel->values_of_scores(metric, 1, &value);
            if (!(value > 0)) {
                continue;
            }
            const KernelPairs near(x.get(), *kernel, score);
            for (size_t a = 0; a < near.rows.size(); a++) {
                const double least = near.pairs.least_similarity(a);
                bounds += least > 0.1 && least < 1;
                for (size_t b = 0; b < a; b++) {
                    const idx_t i = near.rows.equal(a).front(),
                                j = near.rows.equal(b).front();
                    if (scores[i * n + j] <= score) {
                        EXPECT_GE(near.pairs.similarity(a, b), least - 1e-6)
                                << name << ", round " << round;
                    }
                }
            }
        }
        EXPECT_GT(bounds, 100) << name;
    }
}

TEST(Bands, NeedABound) {
    // a pair of any directions near the origin is near each other
    Rows x = dense_rows(10, 8, 1);
    const auto gaussian = kernel_factory("gaussian(gamma=1)");
    const float radius = 0.5f;
    EXPECT_TRUE(choose_bands(
            KernelPairs(x.get(), *gaussian, radius).pairs, 0.1, 1));
    x.add({});
    x.add({{0, 0.1f}});
    EXPECT_FALSE(choose_bands(
            KernelPairs(x.get(), *gaussian, radius).pairs, 0.1, 1));
}

TEST(Bands, AreDrawnForFewRows) {
    const auto kernel = kernel_factory("jaccard");
    for (const idx_t n : {0, 1, 2}) {
        const Rows x = dense_rows(n, 4, 1);
        const auto found = near_duplicates(x.get(), *kernel, 0.5f, 0.5);
        EXPECT_EQ(found.missed, 0); // exact
        EXPECT_EQ(found.values.size(), n == 2);
        const KernelPairs near(x.get(), *kernel, -0.5f);
        EXPECT_EQ(bool(choose_bands(near.pairs, 0.5, 1)), n == 2);
    }
}

TEST(Bands, RefuseOtherShares) {
    const Rows x = dense_rows(4, 4, 1);
    const auto kernel = kernel_factory("jaccard");
    const auto refuses = [&](double missed,
                             int64_t seed,
                             const std::string& message) {
        EXPECT_TRUE(throws(
                [&] { near_duplicates(x.get(), *kernel, 0.5f, missed, seed); },
                "near_duplicates: ",
                message));
        EXPECT_TRUE(throws(
                [&] {
                    near_duplicate_groups(x.get(), *kernel, 0.5f, missed, seed);
                },
                "near_duplicate_groups: ",
                message));
    };
    refuses(1, 1, "may be missed is 1, expected a number from 0");
    refuses(-0.1, 1, "may be missed is -0.1");
    refuses(NAN, 1, "may be missed is nan");
    refuses(0.1, -1, "seed is -1, expected");
}

TEST(Bands, AreInterrupted) {
    const Rows x = dense_rows(20000, 32, 1);
    const auto kernel = kernel_factory("jaccard");
    for (const int n : {2, 4}) {
        EXPECT_TRUE(interrupted_at(
                n, [&] { near_duplicates(x.get(), *kernel, 0.7f, 0.01); }));
    }
}

} // namespace
