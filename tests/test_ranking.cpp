#include <algorithm>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "core/ranking.h"
#include "indexes/best_hits.h"

#include "testing.h"

using namespace faiss_ext;

namespace {

constexpr float infinite = std::numeric_limits<float>::infinity();

/// Scores of which some are equal, and all kinds of edges.
std::vector<float> some_scores(size_t n, size_t different, int seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values = {
            0.0f,
            -0.0f,
            infinite,
            -infinite,
            std::numeric_limits<float>::max(),
            std::numeric_limits<float>::lowest(),
            std::numeric_limits<float>::denorm_min(),
            -std::numeric_limits<float>::denorm_min()};
    while (values.size() < different) {
        values.push_back(normal(generator));
    }
    std::vector<float> scores(n);
    for (float& score : scores) {
        score = values[generator() % different];
    }
    return scores;
}

constexpr size_t sizes[] = {0, 1, 2, 47, 48, 49, 50, 300, 5000};

} // namespace

TEST(Ranking, KeepSmallest) {
    for (size_t n : sizes) {
        for (size_t different : {1, 8, 30, 100000}) {
            const auto scores = some_scores(n, different, int(n));
            std::vector<Ranked> all(n);
            for (size_t i = 0; i < n; i++) {
                all[i] = {scores[i], uint32_t(i)};
            }
            auto expected = all;
            std::sort(expected.begin(), expected.end());
            for (size_t m : {size_t(0), size_t(1), n / 3, n, n + 1}) {
                auto found = all;
                keep_smallest(found, m);
                const auto end = expected.begin() + std::min(n, m);
                EXPECT_EQ(found, std::vector<Ranked>(expected.begin(), end))
                        << m << " of " << n;
            }
        }
    }
}

TEST(Ranking, KeepBest) {
    std::mt19937 generator(1);
    for (size_t n : sizes) {
        for (size_t different : {1, 8, 30, 100000}) {
            const auto scores = some_scores(n, different, int(n));
            std::vector<Hit> all(n);
            for (size_t i = 0; i < n; i++) {
                all[i] = {scores[i], idx_t(generator())};
            }
            auto expected = all;
            std::sort(expected.begin(), expected.end());
            for (size_t m : {size_t(0), size_t(1), n / 3, n, n + 1}) {
                auto found = all;
                keep_best(found, m);
                const auto end = expected.begin() + std::min(n, m);
                EXPECT_EQ(found, std::vector<Hit>(expected.begin(), end))
                        << m << " of " << n;
            }
        }
    }
}
