// SPDX-License-Identifier: MIT
// Bits of rows exclude no pair that reaches the threshold, and most others.

#include <memory>
#include <numeric>
#include <vector>

#include <faiss_ext/kernels/kernel_registry.h>

#include "testing.h"
#include "testing_pairs.h"
#include "testing_sparse.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

struct Counts {
    size_t pairs = 0, possible = 0, near = 0;
};

/// Compares what the bits exclude with the sums of all components.
Counts compare(const KernelPairs& near) {
    Counts counts;
    std::vector<uint32_t> others, common;
    for (size_t row = near.pairs.first_row; row < near.rows.size(); row++) {
        const auto line = near.pairs.range_of(row).line;
        others.resize(row - near.pairs.first_row);
        std::iota(others.begin(), others.end(), near.pairs.first_row);
        counts.pairs += others.size();
        near.pairs.keep_possible(row, line, others, common);
        counts.possible += others.size();
        size_t next = 0;
        for (size_t other = near.pairs.first_row; other < row; other++) {
            const bool is_possible =
                    next < others.size() && others[next] == other;
            next += is_possible;
            const double least = line.at(near.rows.weights[other]);
            const bool reaches = near.pairs.reaches(row, other, least);
            counts.near += reaches;
            EXPECT_TRUE(is_possible || !reaches) << row << " " << other;
        }
        EXPECT_EQ(next, others.size()); // in order, none twice
    }
    return counts;
}

struct EachKernel : testing::TestWithParam<const char*> {
    const std::unique_ptr<Kernel> kernel = kernel_factory(GetParam());
};

TEST_P(EachKernel, ExcludesNoPairThatReachesTheThreshold) {
    size_t excluded = 0;
    for (const bool are_counts : {false, true}) {
        for (const int components : {3, 20, 150}) {
            for (const float threshold : {0.2f, 0.5f, 0.8f}) {
                Rows x = draw(150, 400, components, are_counts, components);
                if (!kernel->shared_sum(faiss::METRIC_INNER_PRODUCT)
                             ->is_of_histograms) {
                    x = with_signs(x);
                }
                const KernelPairs near(x.get(), *kernel, -threshold);
                const Counts counts = compare(near);
                EXPECT_LE(counts.near, counts.possible);
                excluded += counts.pairs - counts.possible;
            }
        }
    }
    EXPECT_GT(excluded, 0);
}

INSTANTIATE_TEST_SUITE_P(
        Bits,
        EachKernel,
        testing::Values(
                "jaccard",
                "cosine",
                "normalized(chi2)",
                "normalized(intersection)",
                "normalized(js)",
                "normalized(hellinger)"));

TEST(RowBits, ExcludeMostPairsOfSets) {
    const auto kernel = kernel_factory("jaccard");
    Rows x = draw(300, 20000, 100, true, 1);
    x.values.assign(x.values.size(), 1);
    const KernelPairs near(x.get(), *kernel, -0.8f);
    const Counts counts = compare(near);
    EXPECT_LT(counts.possible, counts.pairs / 10);
}

TEST(RowBits, AreCounted) {
    // several words for each row, and a number of rows that no vector divides
    const Rows x = draw(61, 3000, 400, true, 1);
    const auto kernel = kernel_factory("jaccard");
    const KernelPairs near(x.get(), *kernel, -0.5f);
    std::vector<uint32_t> others(near.rows.size()), common(others.size());
    std::iota(others.begin(), others.end(), 0);
    near.pairs.bits.count_common(
            0, others.size(), others.data(), common.data());
    const size_t words = near.pairs.bits.num_words();
    EXPECT_GT(words, 4);
    for (size_t other = 0; other < others.size(); other++) {
        std::vector<bool> first(64 * words), second(64 * words);
        const auto set = [&](size_t row, std::vector<bool>& bits) {
            for (int64_t at = near.rows.starts[row];
                 at < near.rows.starts[row + 1];
                 at++) {
                bits[near.rows.columns[at] % bits.size()] = true;
            }
        };
        set(0, first);
        set(other, second);
        uint32_t expected = 0;
        for (size_t i = 0; i < first.size(); i++) {
            expected += first[i] && second[i];
        }
        EXPECT_EQ(common[other], expected);
    }
}

} // namespace
