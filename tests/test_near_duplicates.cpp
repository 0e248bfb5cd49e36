// SPDX-License-Identifier: MIT
// near_duplicates finds the pairs that a comparison of all pairs finds.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <faiss_ext/indexes/near_duplicates.h>
#include <faiss_ext/kernels/Kernel.h>

#include "testing.h"
#include "testing_kernels.h"
#include "testing_sparse.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

using Pairs = std::map<std::pair<idx_t, idx_t>, float>;

/// Whether values are exact: Jaccard kernels of small integers.
bool is_exact(const std::string& kernel, bool are_counts) {
    return kernel == "jaccard" && are_counts;
}

bool takes_signs(const Kernel& kernel) {
    return !kernel.shared_sum(faiss::METRIC_INNER_PRODUCT)->is_of_histograms;
}

/// The pairs, after checks that they are in order and that none is twice there.
Pairs pairs_of(const NearDuplicates& found) {
    EXPECT_EQ(found.pairs.size(), 2 * found.values.size());
    Pairs pairs;
    std::pair<idx_t, idx_t> last(-1, -1);
    for (size_t k = 0; k < found.values.size(); k++) {
        const std::pair pair(found.pairs[2 * k], found.pairs[2 * k + 1]);
        EXPECT_LT(pair.first, pair.second);
        EXPECT_LT(last, pair);
        pairs[pair] = found.values[k];
        last = pair;
    }
    return pairs;
}

std::vector<idx_t> groups_of(const Pairs& pairs, idx_t n) {
    std::vector<idx_t> groups(n);
    std::iota(groups.begin(), groups.end(), idx_t(0));
    for (bool changed = true; changed;) {
        changed = false;
        for (const auto& [pair, value] : pairs) {
            idx_t &a = groups[pair.first], &b = groups[pair.second];
            changed = changed || a != b;
            a = b = std::min(a, b);
        }
    }
    return groups;
}

/// Rows that are copies of others with few changes, equal to others, of zeros,
/// or neither.
Rows planted(idx_t n, idx_t d, bool are_counts, bool have_signs, int seed) {
    std::mt19937 rng(seed);
    const auto below = [&](idx_t most) { return int32_t(rng() % most); };
    const auto value = [&] {
        const float v =
                are_counts ? float(1 + below(3)) : float(1 + below(1000)) / 100;
        return have_signs && below(4) == 0 ? -v : v;
    };
    // few columns are frequent
    const auto column = [&] { return std::min(below(d), below(d)); };
    std::vector<std::map<int32_t, float>> rows;
    for (idx_t i = 0; i < n; i++) {
        std::map<int32_t, float> row;
        if (i > 0 && below(3) == 0) {
            row = rows[below(i)];
            for (int change = below(3); change > 0; change--) {
                const int32_t c = column();
                if (row.erase(c) == 0) {
                    row[c] = value();
                }
            }
        } else {
            for (int m = below(d + 1); m > 0; m--) {
                row[column()] = value();
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

/// Compares the pairs with those of all kernel values.
void expect_all_pairs(
        const Rows& x,
        const Kernel& kernel,
        float threshold,
        const Floats& gram,
        bool is_exact) {
    const Pairs found = pairs_of(near_duplicates(x.get(), kernel, threshold));
    const float size = std::max(1.0f, std::abs(threshold));
    const float tolerance = is_exact ? 0 : 2e-6f * size;
    for (idx_t i = 0; i < x.n(); i++) {
        for (idx_t j = i + 1; j < x.n(); j++) {
            const float value = gram[i * x.n() + j];
            const auto pair = found.find({i, j});
            if (pair == found.end()) {
                // an exact value that equals the threshold reaches it
                ASSERT_TRUE(
                        value < threshold ||
                        (!is_exact && value < threshold + tolerance))
                        << i << " " << j << " " << value;
            } else {
                ASSERT_GE(value, threshold - tolerance) << i << " " << j;
                ASSERT_GE(pair->second, threshold);
                ASSERT_NEAR(
                        pair->second,
                        value,
                        is_exact ? 0 : 1e-5 * std::max(1.0f, std::abs(value)))
                        << i << " " << j;
            }
        }
    }
    EXPECT_EQ(
            near_duplicate_groups(x.get(), kernel, threshold),
            groups_of(found, x.n()));
}

class EachKernel : public testing::TestWithParam<std::string> {
   protected:
    const std::unique_ptr<Kernel> kernel = kernel_factory(GetParam());
};

TEST_P(EachKernel, FindsAllPairs) {
    std::mt19937 rng(1);
    for (int round = 0; round < 120; round++) {
        const bool are_counts = round % 2 == 0;
        const idx_t n = rng() % 60, d = 1 + rng() % 30;
        const Rows x = planted(n, d, are_counts, takes_signs(*kernel), round);
        const Floats dense = x.dense();
        Floats gram(n * n);
        kernel->gram(n, dense.data(), n, dense.data(), d, gram.data());
        // the value of a pair, so that it and its like just reach the threshold
        float threshold = round % 3 == 0 || n == 0
                ? float(1 + rng() % 1000) / 1000
                : gram[rng() % n * n + rng() % n];
        if (threshold <= 0) {
            threshold = 0.5f;
        } else if (kernel->is_normalized()) {
            threshold = std::min(threshold, 1.0f);
        }
        SCOPED_TRACE(
                testing::Message()
                << "round " << round << ", threshold " << threshold);
        ASSERT_NO_FATAL_FAILURE(expect_all_pairs(
                x, *kernel, threshold, gram, is_exact(GetParam(), are_counts)));
    }
}

TEST_P(EachKernel, FindsTheSameWithAnyNumberOfThreads) {
    const Rows x = draw(1000, 2000, 10, takes_signs(*kernel), 3);
    const float threshold = kernel->is_normalized() ? 0.6f : 0.3f;
    const auto find = [&](int threads) {
        const Threads use(threads);
        const NearDuplicates found =
                near_duplicates(x.get(), *kernel, threshold);
        return std::tuple(
                found.pairs,
                found.values,
                near_duplicate_groups(x.get(), *kernel, threshold));
    };
    const auto expected = find(1);
    EXPECT_GT(std::get<1>(expected).size(), 10);
    EXPECT_EQ(find(2), expected);
    EXPECT_EQ(find(5), expected);
}

INSTANTIATE_TEST_SUITE_P(
        Near,
        EachKernel,
        testing::ValuesIn(
                joined(plain_kernels,
                       {"normalized(chi2)",
                        "normalized(intersection)",
                        "normalized(js)",
                        "normalized(hellinger)",
                        "poly(degree=2,c=1)",
                        "gaussian(gamma=0.3)",
                        "laplacian(gamma=0.3)",
                        "matern(nu=1.5,gamma=1)",
                        "expchi2(gamma=5)"})));

/// Sets of numbers, as rows of ones.
Rows sets(const std::vector<std::vector<int32_t>>& all, idx_t d) {
    Rows rows{d, {0}, {}, {}};
    for (const auto& set : all) {
        std::map<int32_t, float> row;
        for (const int32_t c : set) {
            row[c] = 1;
        }
        rows.add(row);
    }
    return rows;
}

std::vector<int32_t> range(int32_t begin, int32_t end) {
    std::vector<int32_t> numbers(end - begin);
    std::iota(numbers.begin(), numbers.end(), begin);
    return numbers;
}

TEST(NearDuplicates, ReachTheThresholdWithEqualValues) {
    const auto kernel = kernel_factory("jaccard");
    // 4 of 5, 8 of 10, 79 of 99
    const Rows x =
            sets({range(0, 5),
                  range(0, 4),
                  range(100, 108),
                  range(100, 110),
                  range(200, 279),
                  range(200, 299)},
                 1000);
    const NearDuplicates found = near_duplicates(x.get(), *kernel, 0.8f);
    EXPECT_EQ(found.pairs, (std::vector<idx_t>{0, 1, 2, 3}));
    EXPECT_EQ(found.values, (Floats{0.8f, 0.8f}));
    const float more = std::nextafter(0.8f, 1.0f);
    EXPECT_TRUE(near_duplicates(x.get(), *kernel, more).values.empty());
}

TEST(NearDuplicates, TreatZerosAsTheKernelDoes) {
    const Rows x = sets({{}, {3}, {}, {3}, {}}, 10);
    using Ids = std::vector<idx_t>;
    const auto jaccard = kernel_factory("jaccard");
    const NearDuplicates found = near_duplicates(x.get(), *jaccard, 1);
    EXPECT_EQ(found.pairs, (Ids{0, 2, 0, 4, 1, 3, 2, 4}));
    EXPECT_EQ(found.values, Floats(4, 1.0f));
    EXPECT_EQ(
            near_duplicate_groups(x.get(), *jaccard, 1), (Ids{0, 1, 0, 1, 0}));
    // the cosine with a vector of zeros is 0
    const auto cosine = kernel_factory("cosine");
    EXPECT_EQ(near_duplicates(x.get(), *cosine, 1e-3f).pairs, (Ids{1, 3}));
    EXPECT_EQ(
            near_duplicate_groups(x.get(), *cosine, 1e-3f),
            (Ids{0, 1, 2, 1, 4}));
    // exp(-|x|^2)
    const auto gaussian = kernel_factory("gaussian(gamma=1)");
    EXPECT_EQ(near_duplicates(x.get(), *gaussian, 0.3f).values.size(), 10);
}

TEST(NearDuplicates, OfFewVectors) {
    const auto kernel = kernel_factory("jaccard");
    const Rows none = sets({}, 10), one = sets({{1, 2}}, 10);
    EXPECT_TRUE(near_duplicates(none.get(), *kernel, 0.5f).values.empty());
    EXPECT_TRUE(near_duplicate_groups(none.get(), *kernel, 0.5f).empty());
    EXPECT_TRUE(near_duplicates(one.get(), *kernel, 0.5f).values.empty());
    EXPECT_EQ(
            near_duplicate_groups(one.get(), *kernel, 0.5f),
            std::vector<idx_t>{0});
}

TEST(NearDuplicates, ConnectGroups) {
    // each set shares 9 of 11 numbers with the next one
    std::vector<std::vector<int32_t>> chain;
    for (int32_t i = 19; i >= 0; i--) {
        chain.push_back(range(i, i + 10));
    }
    chain.push_back({500});
    const Rows x = sets(chain, 1000);
    const auto kernel = kernel_factory("jaccard");
    std::vector<idx_t> expected(20, 0);
    expected.push_back(20);
    EXPECT_EQ(near_duplicate_groups(x.get(), *kernel, 0.8f), expected);
    EXPECT_EQ(near_duplicates(x.get(), *kernel, 0.8f).values.size(), 19);
}

TEST(NearDuplicates, OfEqualVectorsHaveTheKernelsOwnValue) {
    const Rows x = sets({{1, 2, 3}, {1, 2, 3}, {1, 2}, {1, 2}}, 10);
    const auto kernel = kernel_factory("linear");
    const NearDuplicates found = near_duplicates(x.get(), *kernel, 2.5f);
    EXPECT_EQ(found.pairs, (std::vector<idx_t>{0, 1}));
    EXPECT_EQ(found.values, (Floats{3}));
    EXPECT_EQ(
            near_duplicate_groups(x.get(), *kernel, 2.5f),
            (std::vector<idx_t>{0, 0, 2, 3}));
}

TEST(NearDuplicates, OfVectorsOfAnyLength) {
    // squares of these components leave the range of float
    Rows x{1000, {0}, {}, {}};
    for (const float scale : {1e-30f, 1e-22f, 1.0f, 1e22f, 1e30f}) {
        x.add({{1, scale}, {7, 2 * scale}, {999, scale}});
    }
    const auto kernel = kernel_factory("cosine");
    EXPECT_EQ(near_duplicates(x.get(), *kernel, 0.9999f).values.size(), 10);
}

TEST(NearDuplicates, InAnyDimension) {
    // more columns than components: they are numbered in another way
    constexpr int32_t d = std::numeric_limits<int32_t>::max();
    std::mt19937 rng(1);
    std::vector<std::vector<int32_t>> wide, narrow;
    std::map<int32_t, int32_t> number;
    for (int i = 0; i < 200; i++) {
        std::vector<int32_t> set;
        for (int k = 0; k < 20; k++) {
            set.push_back(int32_t(rng() % d));
        }
        wide.push_back(set);
        set.resize(18);
        wide.push_back(set);
    }
    wide.push_back({0, d - 1});
    wide.push_back({0, d - 1, 5});
    for (const auto& set : wide) {
        narrow.emplace_back();
        for (const int32_t c : set) {
            narrow.back().push_back(
                    number.try_emplace(c, int32_t(number.size()))
                            .first->second);
        }
    }
    const Rows x = sets(wide, d), y = sets(narrow, idx_t(number.size()));
    const auto kernel = kernel_factory("jaccard");
    const NearDuplicates found = near_duplicates(x.get(), *kernel, 0.6f);
    EXPECT_EQ(found.values.size(), 201);
    EXPECT_EQ(found.pairs, near_duplicates(y.get(), *kernel, 0.6f).pairs);
}

TEST(NearDuplicates, OfPackedBits) {
    std::mt19937 rng(1);
    for (const idx_t d : {8, 64, 200}) {
        std::vector<std::vector<int32_t>> bits(100);
        std::vector<uint8_t> codes(bits.size() * d / 8);
        for (size_t i = 0; i < bits.size(); i++) {
            for (int32_t c = 0; c < d; c++) {
                const bool is_like_the_last = i > 0 && rng() % 8 > 0;
                const auto& last = bits[i - is_like_the_last];
                if (is_like_the_last ? std::find(last.begin(), last.end(), c) !=
                                    last.end()
                                     : rng() % 2 == 0) {
                    bits[i].push_back(c);
                    codes[i * d / 8 + c / 8] |= uint8_t(1 << c % 8);
                }
            }
        }
        const Rows x = sets(bits, d);
        for (const char* name :
             {"jaccard",
              "cosine",
              "normalized(js)",
              "normalized(intersection)",
              "chi2",
              "gaussian(gamma=0.03)",
              "laplacian(gamma=0.03)"}) {
            SCOPED_TRACE(name);
            const auto kernel = kernel_factory(name);
            const auto expected = near_duplicates(x.get(), *kernel, 0.7f);
            const auto found =
                    near_duplicates(x.n(), d, codes.data(), *kernel, 0.7f);
            EXPECT_GT(found.values.size(), 10);
            EXPECT_EQ(found.pairs, expected.pairs);
            EXPECT_EQ(found.values, expected.values);
            EXPECT_EQ(
                    near_duplicate_groups(
                            x.n(), d, codes.data(), *kernel, 0.7f),
                    near_duplicate_groups(x.get(), *kernel, 0.7f));
        }
    }
    const auto kernel = kernel_factory("jaccard");
    const uint8_t code = 1;
    EXPECT_TRUE(near_duplicates(0, 8, nullptr, *kernel, 0.7f).values.empty());
    expect_throws(
            {{[&] { near_duplicates(1, 12, &code, *kernel, 0.7f); },
              "near_duplicates"},
             {[&] { near_duplicate_groups(1, 0, &code, *kernel, 0.7f); },
              "near_duplicate_groups"},
             {[&] { near_duplicates(1, 8, nullptr, *kernel, 0.7f); },
              "near_duplicates"}});
}

TEST(NearDuplicates, RefuseInput) {
    Rows x = sets({{1, 2}, {2, 3}}, 10);
    const auto jaccard = kernel_factory("jaccard");
    const auto refuses = [&](const Kernel& kernel,
                             float threshold,
                             const std::string& message) {
        EXPECT_TRUE(throws(
                [&] { near_duplicates(x.get(), kernel, threshold); }, message));
        EXPECT_TRUE(throws(
                [&] { near_duplicate_groups(x.get(), kernel, threshold); },
                message));
    };
    refuses(*jaccard, 0, "threshold is 0, expected a finite number above 0");
    refuses(*jaccard, -1, "threshold is -1");
    refuses(*jaccard, NAN, "threshold is nan");
    refuses(*jaccard, INFINITY, "threshold is inf");
    refuses(*jaccard, 1.5f, "expected at most 1");
    refuses(*kernel_factory("gaussian"), 0.5f, "bandwidth");
    refuses(*kernel_factory("normalized(gaussian(gamma=1))"),
            0.5f,
            "no bound by the columns");
    x.values[3] = -1;
    refuses(*jaccard, 0.5f, "component 3 of vector 1 is -1");
    refuses(*kernel_factory("laplacian(gamma=1)"),
            0.5f,
            "component 3 of vector 1 is -1");
    x.values[3] = NAN;
    refuses(*jaccard, 0.5f, "component 3 of vector 1 is nan");
    x.values[3] = 1;
    x.indices[3] = 10;
    refuses(*jaccard, 0.5f, "column 10");
}

TEST(NearDuplicates, AreInterrupted) {
    const Rows x = draw(3000, 2000, 10, true, 3);
    const auto kernel = kernel_factory("jaccard");
    // in the first loop, and among the pairs
    for (const int n : {1, 2}) {
        EXPECT_TRUE(interrupted_at(
                n, [&] { near_duplicates(x.get(), *kernel, 0.5f); }));
        EXPECT_TRUE(interrupted_at(
                n, [&] { near_duplicate_groups(x.get(), *kernel, 0.5f); }));
    }
}

} // namespace
