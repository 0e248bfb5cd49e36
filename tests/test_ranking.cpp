// SPDX-License-Identifier: MIT
#include "simd/ranking.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "simd/top_k.h"
#include "testing.h"

namespace {

/// Returns scores with duplicates and extreme values.
template <class Score>
std::vector<Score> some_scores(size_t n, size_t different, int seed) {
    using Limits = std::numeric_limits<Score>;
    std::mt19937 generator(seed);
    std::normal_distribution<double> normal;
    std::vector<Score> values = {
            Score(0.0f),
            Score(-0.0f),
            Limits::infinity(),
            -Limits::infinity(),
            Limits::max(),
            Limits::lowest(),
            Limits::denorm_min(),
            -Limits::denorm_min()};
    const double scale = Limits::is_integer ? 1e8 : 1;
    while (values.size() < different) {
        values.push_back(Score(scale * normal(generator)));
    }
    std::vector<Score> scores(n);
    for (Score& score : scores) {
        score = values[generator() % different];
    }
    return scores;
}

} // namespace

template <class Hit>
struct Ranking : ::testing::Test {};

using Hits = ::testing::Types<
        std::pair<float, uint32_t>,
        std::pair<float, int64_t>,
        std::pair<int32_t, int64_t>>;
TYPED_TEST_SUITE(Ranking, Hits);

TYPED_TEST(Ranking, KeepsWhatASortDoes) {
    using Score = typename TypeParam::first_type;
    using Id = typename TypeParam::second_type;
    std::mt19937_64 generator(1);
    for (size_t n : {0, 1, 2, 15, 16, 17, 32, 33, 47, 48, 49, 50, 300, 5000}) {
        for (size_t different : {1, 2, 8, 30, 100000}) {
            const auto scores = some_scores<Score>(n, different, int(n));
            std::vector<TypeParam> all(n);
            for (size_t i = 0; i < n; i++) {
                all[i] = {scores[i], Id(generator())};
            }
            auto sorted = all;
            std::sort(sorted.begin(), sorted.end());
            for (size_t m : {size_t(0), size_t(1), n / 20, n / 3, n, n + 1}) {
                auto expected = sorted;
                expected.resize(std::min(m, n));
                for (int64_t target : faiss_ext_test::targets()) {
                    const faiss_ext_test::Target guard(target);
                    auto found = all;
                    faiss_ext::keep_smallest(found, m);
                    EXPECT_EQ(found, expected) << m << " of " << n;
                }
            }
        }
    }
}

template <class Score>
struct TopKOf : ::testing::Test {};

using Scores = ::testing::Types<float, int32_t>;
TYPED_TEST_SUITE(TopKOf, Scores);

TYPED_TEST(TopKOf, AStreamKeepsWhatASortDoes) {
    using Limits = std::numeric_limits<TypeParam>;
    const auto bound =
            Limits::has_infinity ? Limits::infinity() : Limits::max();
    std::mt19937_64 generator(1);
    for (size_t n : {1, 40, 300, 5000}) {
        for (size_t different : {1, 8, 30, 100000}) {
            const auto scores = some_scores<TypeParam>(n, different, int(n));
            std::vector<std::pair<TypeParam, faiss_ext::idx_t>> sorted;
            for (size_t i = 0; i < n; i++) {
                sorted.emplace_back(scores[i], i);
            }
            const auto all = sorted;
            std::sort(sorted.begin(), sorted.end());
            for (size_t k : {size_t(1), size_t(7), size_t(100), n}) {
                auto expected = sorted;
                expected.resize(std::min(k, n));
                auto shuffled = all;
                std::shuffle(shuffled.begin(), shuffled.end(), generator);
                faiss_ext::TopK<TypeParam> best(k, bound);
                for (const auto& [score, id] : shuffled) {
                    best.push(score, id);
                }
                EXPECT_EQ(best.sorted(k), expected) << k << " of " << n;
            }
        }
    }
}

TEST(TopK, GroupsKeepWhatASortDoes) {
    std::mt19937_64 generator(2);
    for (size_t n : {1, 40, 300, 5000}) {
        for (size_t different : {8, 30, 100000}) {
            auto scores = some_scores<float>(n, different, int(n));
            for (size_t i = 0; i < n; i += 9) {
                scores[i] = std::numeric_limits<float>::quiet_NaN();
            }
            std::vector<faiss_ext::idx_t> ids(n);
            std::iota(ids.begin(), ids.end(), 0);
            std::shuffle(ids.begin(), ids.end(), generator);
            std::vector<faiss_ext::Hit> sorted;
            for (size_t i = 0; i < n; i++) {
                if (scores[i] == scores[i]) {
                    sorted.emplace_back(scores[i], ids[i]);
                }
            }
            std::sort(sorted.begin(), sorted.end());
            for (size_t k : {size_t(1), size_t(7), size_t(100), n}) {
                auto expected = sorted;
                expected.resize(std::min(k, sorted.size()));
                for (size_t group : {1, 37, 500}) {
                    faiss_ext::TopK<float> best(
                            k, std::numeric_limits<float>::infinity());
                    for (size_t i = 0; i < n; i += group) {
                        best.push_all(
                                std::min(group, n - i), &scores[i], &ids[i]);
                    }
                    EXPECT_EQ(best.sorted(k), expected) << k << " of " << n;
                }
            }
        }
    }
}

TEST(TopK, BlocksKeepWhatASortDoes) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const auto is_wanted = [](faiss_ext::idx_t id) { return id % 5 != 2; };
    for (size_t n : {1, 40, 300, 5000}) {
        for (size_t different : {1, 8, 30, 100000}) {
            auto scores = some_scores<float>(n, different, int(n));
            for (size_t i = 0; i < n; i += 9) {
                scores[i] = nan;
            }
            std::vector<faiss_ext::Hit> sorted;
            for (size_t i = 0; i < n; i++) {
                if (is_wanted(faiss_ext::idx_t(i)) && scores[i] == scores[i]) {
                    sorted.emplace_back(scores[i], i);
                }
            }
            std::sort(sorted.begin(), sorted.end());
            for (size_t k : {size_t(1), size_t(7), size_t(100), n}) {
                auto expected = sorted;
                expected.resize(std::min(k, sorted.size()));
                faiss_ext::TopK<float> best(
                        k, std::numeric_limits<float>::infinity());
                for (size_t i = 0; i < n; i += 64) {
                    best.push_block(
                            faiss_ext::idx_t(i),
                            std::min<size_t>(64, n - i),
                            &scores[i],
                            is_wanted);
                }
                EXPECT_EQ(best.sorted(k), expected) << k << " of " << n;
            }
        }
    }
}
