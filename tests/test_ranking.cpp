// SPDX-License-Identifier: MIT
#include "core/ranking.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "testing.h"

namespace {

/// Returns scores with duplicates and extreme values.
std::vector<float> some_scores(size_t n, size_t different, int seed) {
    using Limits = std::numeric_limits<float>;
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values = {
            0.0f,
            -0.0f,
            Limits::infinity(),
            -Limits::infinity(),
            Limits::max(),
            Limits::lowest(),
            Limits::denorm_min(),
            -Limits::denorm_min()};
    while (values.size() < different) {
        values.push_back(normal(generator));
    }
    std::vector<float> scores(n);
    for (float& score : scores) {
        score = values[generator() % different];
    }
    return scores;
}

} // namespace

template <class Id>
struct Ranking : ::testing::Test {};

using Ids = ::testing::Types<uint32_t, int64_t>;
TYPED_TEST_SUITE(Ranking, Ids);

TYPED_TEST(Ranking, KeepsWhatASortDoes) {
    std::mt19937_64 generator(1);
    for (size_t n : {0, 1, 2, 47, 48, 49, 50, 300, 5000}) {
        for (size_t different : {1, 2, 8, 30, 100000}) {
            const auto scores = some_scores(n, different, int(n));
            std::vector<std::pair<float, TypeParam>> all(n);
            for (size_t i = 0; i < n; i++) {
                all[i] = {scores[i], TypeParam(generator())};
            }
            auto sorted = all;
            std::sort(sorted.begin(), sorted.end());
            for (size_t m : {size_t(0), size_t(1), n / 20, n / 3, n, n + 1}) {
                auto found = all;
                faiss_ext::keep_smallest(found, m);
                auto expected = sorted;
                expected.resize(std::min(m, n));
                EXPECT_EQ(found, expected) << m << " of " << n;
            }
        }
    }
}
