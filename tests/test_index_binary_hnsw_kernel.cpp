// SPDX-License-Identifier: MIT
// IndexBinaryHNSWKernel beside IndexBinaryFlatKernel, which is exact.

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/impl/io.h>

#include <faiss_ext/indexes/IndexBinaryFlatKernel.h>
#include <faiss_ext/indexes/IndexBinaryHNSWKernel.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

/// Sets of very different sizes, in clusters: members of 20 others come and go.
Bytes sets(idx_t n, int d, int seed) {
    std::mt19937 rng(seed), of_centers(1);
    const size_t size = (d + 7) / 8;
    const auto used = uint8_t(0xff << (8 * size - d)); // of the last byte
    Bytes x(n * size), centers(20 * size);
    for (int b = 0; b < 20 * d; b++) {
        const bool is_in = of_centers() % 20 < unsigned(b / d) + 1;
        centers[b / 8] |= uint8_t(is_in << b % 8);
    }
    for (idx_t i = 0; i < n; i++) {
        const uint8_t* center = &centers[rng() % 20 * size];
        for (size_t j = 0; j < size; j++) {
            x[i * size + j] =
                    uint8_t(center[j] ^ (rng() & rng() & rng() & rng() & 255));
        }
        x[(i + 1) * size - 1] &= used;
    }
    return x;
}

using FoundCodes = Found<int32_t>;

struct Graphs : testing::TestWithParam<std::pair<const char*, int>> {
    const std::string kernel = GetParam().first;
    const int d = GetParam().second;

    std::unique_ptr<IndexBinaryHNSWKernel> graph() const {
        return std::make_unique<IndexBinaryHNSWKernel>(
                d, *bit_kernel_factory(kernel), 16);
    }
    std::unique_ptr<IndexBinaryFlatKernel> exact() const {
        return std::make_unique<IndexBinaryFlatKernel>(
                d, *bit_kernel_factory(kernel));
    }
};

INSTANTIATE_TEST_SUITE_P(
        All,
        Graphs,
        testing::Values(
                std::pair("jaccard", 8),
                std::pair("jaccard", 168),
                std::pair("jaccard", 2048),
                std::pair("jaccard", 166),
                std::pair("hamming", 61),
                std::pair("dice", 256),
                std::pair("cosine", 256),
                std::pair("tversky(alpha=0.3,beta=0.3)", 64),
                std::pair("hamming", 128)));

} // namespace

TEST_P(Graphs, AnExhaustiveSearchIsExact) {
    const idx_t n = 500;
    const Bytes x = sets(n, d, 2), q = sets(20, d, 3);
    const auto index = graph(), flat = graph();
    const auto all = exact();
    index->add(n, x.data());
    all->add(n, x.data());
    index->hnsw.efSearch = 2 * n;
    for (const idx_t k : {idx_t(1), idx_t(10), n + 5}) {
        expect_same(search(*index, q, k), search(*all, q, k));
    }
    for (const double value : {0.1, 0.4, 0.9}) {
        const int radius = IndexBinaryFlatKernel::distance(value);
        EXPECT_EQ(
                range_search(*index, q, radius), range_search(*all, q, radius));
    }
}

TEST_P(Graphs, AllCodesAreFoundIfAsManyAreWanted) {
    const idx_t n = 300;
    const Bytes x = sets(n, d, 2), q = sets(20, d, 3);
    const auto index = graph();
    const auto all = exact();
    index->add(n, x.data());
    all->add(n, x.data());
    index->hnsw.efSearch = 1;
    for (const idx_t k : {n, n + 1, 2 * n}) {
        expect_same(search(*index, q, k), search(*all, q, k));
    }
}

TEST_P(Graphs, FindsMostNeighbors) {
    const idx_t n = 3000, k = 10;
    const Bytes x = sets(n, d, 2), q = sets(50, d, 3);
    const auto index = graph();
    const auto all = exact();
    index->add(n, x.data());
    all->add(n, x.data());
    index->hnsw.efSearch = 200;
    const FoundCodes found = search(*index, q, k), best = search(*all, q, k);
    idx_t good = 0;
    for (size_t i = 0; i < found.labels.size(); i++) {
        good += found.distances[i] <= best.distances[i / k * k + k - 1];
    }
    EXPECT_GE(good, idx_t(0.95 * 50 * k));
}

TEST_P(Graphs, FewSelectedCodesAreAllCompared) {
    const idx_t n = 1500;
    const Bytes x = sets(n, d, 4), q = sets(10, d, 5);
    const auto index = graph();
    const auto all = exact();
    index->add(n, x.data());
    all->add(n, x.data());
    const faiss::IDSelectorRange range(100, 140);
    faiss::SearchParameters params;
    params.sel = const_cast<faiss::IDSelectorRange*>(&range);
    for (const idx_t k : {3, 50}) {
        expect_same(search(*index, q, k, &params), search(*all, q, k, &params));
    }
}

TEST_P(Graphs, ChangesAndFiles) {
    const idx_t n = 400;
    const Bytes x = sets(n, d, 6), more = sets(60, d, 7), q = sets(10, d, 8);
    const auto index = graph(), other = graph();
    const auto all = exact();
    index->add(n, x.data());
    other->add(60, more.data());
    all->add(n, x.data());
    all->add(60, more.data());
    index->merge_from(*other);
    EXPECT_EQ(other->ntotal, 0);
    const faiss::IDSelectorRange removed(50, 300);
    EXPECT_EQ(index->remove_ids(removed), 250u);
    all->remove_ids(removed);
    index->hnsw.efSearch = 1000;
    expect_same(search(*index, q, 12), search(*all, q, 12));
    index->compact();
    expect_same(search(*index, q, 12), search(*all, q, 12));
    const auto copy = reread(*index);
    const auto* read = dynamic_cast<IndexBinaryHNSWKernel*>(copy.get());
    ASSERT_TRUE(read);
    EXPECT_EQ(read->kernel->description(), index->kernel->description());
    expect_same(search(*copy, q, 12), search(*index, q, 12));
    const auto cloned = clone_binary_index(index.get());
    expect_same(search(*cloned, q, 12), search(*index, q, 12));
}

TEST(Graph, Strings) {
    const auto index = index_binary_factory(64, "BHNSW8,BKFlat(dice)");
    ASSERT_TRUE(dynamic_cast<IndexBinaryHNSWKernel*>(index.get()));
    EXPECT_EQ(index_string(index.get()), "BHNSW8,BKFlat(dice)");
    const auto refused = [](int d, const char* string, const char* message) {
        EXPECT_TRUE(throws([&] { index_binary_factory(d, string); }, message));
    };
    refused(64, "BHNSW1,BKFlat(dice)", "invalid number of links '1'");
    refused(64, "BHNSW8,BKFlat(chi2)", "unknown kernel of bits 'chi2'");
    refused(64, "BHNSW8,BKFlat(tversky(alpha=1,beta=0))", "symmetric kernel");
    refused(64, "BHNSW8,BKFlat(russellrao)", "k(x, x) = 1");
    refused(12, "BHNSW8", "multiple of 8");
    EXPECT_EQ(index_binary_factory(12, "BHNSW8,BKFlat(dice)")->d, 12);
    refused(1 << 16, "BHNSW8,BKFlat(dice)", "expected 1 to 32768");
    refused(16, "SIK64(gaussian),BHNSW8,BKFlat(dice)", "BHNSW8");
}

TEST(Graph, MergesOnlyWithTheSameKernel) {
    const Bytes x = sets(20, 64, 1);
    const auto make = [&](const char* string) {
        auto index = index_binary_factory(64, string);
        index->add(20, x.data());
        return index;
    };
    const auto index = make("BHNSW8,BKFlat(jaccard)");
    for (const char* string : {"BHNSW8,BKFlat(dice)", "BHNSW8"}) {
        const auto other = make(string);
        EXPECT_TRUE(throws([&] { index->merge_from(*other); }, "cannot merge"));
        EXPECT_TRUE(throws([&] { other->merge_from(*index); }, "cannot merge"));
        EXPECT_EQ(other->ntotal, 20);
    }
    const auto flat = make("BKFlat(jaccard)"), dice = make("BKFlat(dice)");
    EXPECT_TRUE(
            throws([&] { flat->merge_from(*dice); },
                   "this index has the kernel jaccard and the other one dice"));
    EXPECT_EQ(index->ntotal, 20);
}
