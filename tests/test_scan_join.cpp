// SPDX-License-Identifier: MIT
// The exact joins of near_duplicates find all pairs, also where it would not
// choose them.

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <faiss_ext/kernels/Kernel.h>
#include <faiss_ext/kernels/kernel_registry.h>

#include "indexes/ScanJoin.h"
#include "indexes/SharedColumnJoin.h"
#include "kernels/SparseQuery.h"
#include "testing.h"
#include "testing_kernels.h"
#include "testing_pairs.h"
#include "testing_sparse.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr auto metric = faiss::METRIC_INNER_PRODUCT;

/// Both joins of the pairs whose score is at most `score`.
struct Joins : KernelPairs {
    ScanJoin scan;
    SharedColumnJoin shared;

    Joins(const SparseVectors& x, const Kernel& kernel, float score)
            : KernelPairs(x, kernel, score), scan(pairs, x), shared(pairs) {}
};

struct EachKernel : testing::TestWithParam<std::string> {
    const std::unique_ptr<Kernel> kernel = kernel_factory(GetParam());

    Floats scores_of(const Rows& x, idx_t i) const {
        std::vector<SparseRow> all;
        for (idx_t j = 0; j < x.n(); j++) {
            all.push_back(SparseRow::of(x.get(), j));
        }
        Floats scores(x.n());
        const SparseQuery query(*kernel, all[i]);
        query.scores(metric, all, scores.data());
        return scores;
    }

    /// Both joins find the rows before a row whose scores are small enough.
    /// Returns how many there are.
    size_t check(const Rows& x, const Joins& joins, float score, size_t row)
            const {
        size_t near = 0;
        const Floats scores = scores_of(x, joins.rows.equal(row).front());
        RowJoin::State state;
        for (const RowJoin* join :
             {static_cast<const RowJoin*>(&joins.scan),
              static_cast<const RowJoin*>(&joins.shared)}) {
            join->find(row, state);
            EXPECT_TRUE(std::is_sorted(state.found.begin(), state.found.end()));
            EXPECT_TRUE(state.found.empty() || state.found.back() < row);
            for (size_t other = 0; other < row; other++) {
                if (scores[joins.rows.equal(other).front()] <= score) {
                    near++;
                    EXPECT_TRUE(std::binary_search(
                            state.found.begin(), state.found.end(), other))
                            << row << " " << other;
                }
            }
        }
        return near;
    }
};

TEST_P(EachKernel, FindAllPairs) {
    const bool has_signs = !kernel->shared_sum(metric)->is_of_histograms;
    for (const bool are_counts : {false, true}) {
        // enough rows for columns that are kept as levels
        const Rows drawn = draw(1500, 60, 12, are_counts, 1);
        const Rows x = has_signs ? with_signs(drawn) : drawn;
        for (const double share : {0.001, 0.05, 0.5}) {
            Floats some = scores_of(x, 7);
            std::sort(some.begin(), some.end());
            const float score = some[size_t(share * double(some.size()))];
            const Joins joins(x.get(), *kernel, score);
            size_t near = 0;
            for (size_t row = 0; row < joins.rows.size(); row += 13) {
                near += check(x, joins, score, row);
            }
            EXPECT_GT(near, 0) << share;
        }
    }
}

TEST_P(EachKernel, FindPairsOfManyRows) {
    const Rows x = draw(75000, 3000, 6, false, 2);
    Floats some = scores_of(x, 7);
    std::nth_element(some.begin(), some.begin() + 20, some.end());
    const float score = some[20];
    const Joins joins(x.get(), *kernel, score);
    ASSERT_GT(joins.rows.size(), SparseLists::most_rows);
    size_t near = 0;
    for (size_t row = 501; row < joins.rows.size(); row += 4999) {
        near += check(x, joins, score, row);
    }
    near += check(x, joins, score, joins.rows.size() - 1);
    EXPECT_GT(near, 0);
}

/// Squared lengths that floats cannot represent.
TEST(Joins, CompareRowsWhoseWeightsOverflow) {
    const auto kernel = kernel_factory("cosine");
    Rows x = draw(1500, 60, 12, false, 1);
    for (float& value : x.values) {
        value *= 1e25f;
    }
    const Joins joins(x.get(), *kernel, -0.95f);
    RowJoin::State by_scan, by_columns;
    size_t found = 0;
    for (size_t row = 0; row < joins.rows.size(); row++) {
        joins.scan.find(row, by_scan);
        joins.shared.find(row, by_columns);
        EXPECT_EQ(by_scan.found, by_columns.found);
        found += by_scan.found.size();
    }
    EXPECT_GT(found, 0);
}

TEST_P(EachKernel, AreEstimatedFromASample) {
    const Rows x = draw(1000, 100, 10, false, 3);
    const Joins joins(x.get(), *kernel, scores_of(x, 7)[8]);
    for (const RowJoin* join :
         {static_cast<const RowJoin*>(&joins.scan),
          static_cast<const RowJoin*>(&joins.shared)}) {
        double total = 0, longest = 0;
        const size_t n = joins.rows.size();
        for (size_t row = 0; row < n; row++) {
            RowJoin::State state;
            join->find(row, state);
            const double time = double(state.entries) +
                    joins.pairs.bits.time_to_count() * double(state.counted) +
                    RowJoin::time_to_compare(joins.rows) *
                            double(state.compared) +
                    RowJoin::time_of_kernel * double(state.found.size());
            total += time;
            longest = std::max(longest, time);
        }
        // Hoeffding's inequality for 256 rows, missed once in a million samples
        const double error =
                double(n) * longest * std::sqrt(std::log(2e6) / (2 * 256));
        EXPECT_LT(error, total); // so that the next line tells something
        EXPECT_NEAR(join->estimated_time(), total, error);
    }
}

INSTANTIATE_TEST_SUITE_P(
        Joins,
        EachKernel,
        testing::ValuesIn(
                joined(plain_kernels,
                       {"normalized(chi2)",
                        "gaussian(gamma=2)",
                        "laplacian(gamma=1)"})),
        [](const auto& info) {
            std::string name = info.param;
            std::erase_if(name, [](char c) { return !std::isalnum(c); });
            return name;
        });

} // namespace
