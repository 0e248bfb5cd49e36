// SPDX-License-Identifier: MIT
// IndexBinaryRefineKernel beside IndexBinaryFlatKernel, which is exact.

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <omp.h>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/impl/io.h>
#include <faiss/index_io.h>

#include <faiss_ext/hashes/ConsistentSamplingHash.h>
#include <faiss_ext/indexes/IndexBinaryFlatKernel.h>
#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>
#include <faiss_ext/indexes/IndexBinaryHNSWKernel.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexBinaryRefineKernel.h>
#include <faiss_ext/indexes/SearchParametersRefine.h>
#include <faiss_ext/indexes/index_ids.h>
#include <faiss_ext/indexes/index_tree.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

/// Sets near 15 others, of which each bit changes with chance 1/16, or of which
/// each member stays with chance 7/8.
Bytes sets(idx_t n, int d, int seed) {
    std::mt19937 rng(seed), of_centers(1);
    const size_t size = (d + 7) / 8;
    Bytes x(n * size), centers(15 * size);
    for (int c = 0; c < 15; c++) {
        for (int b = 0; b < d; b++) {
            const bool is_in = of_centers() % 5 == 0;
            centers[c * size + b / 8] |= uint8_t(is_in << (7 - b % 8));
        }
    }
    for (idx_t i = 0; i < n; i++) {
        const size_t center = rng() % 15;
        for (int b = 0; b < d; b++) {
            const auto bit = uint8_t(0x80 >> b % 8);
            const bool was_in = centers[center * size + b / 8] & bit;
            const bool is_in = was_in ? rng() % 8 > 0 : rng() % 64 == 0;
            x[i * size + b / 8] |= is_in ? bit : 0;
        }
    }
    return x;
}

std::unique_ptr<IndexBinaryRefineKernel> make(
        const std::string& string,
        int d,
        idx_t n,
        int seed = 1) {
    auto made = index_binary_factory(d, string);
    const Bytes x = sets(n, d, seed);
    if (!made->is_trained) {
        made->train(n, x.data());
    }
    made->add(n, x.data());
    auto* index = dynamic_cast<IndexBinaryRefineKernel*>(made.get());
    if (!index) {
        throw std::logic_error("another class");
    }
    made.release();
    return std::unique_ptr<IndexBinaryRefineKernel>(index);
}

std::unique_ptr<IndexBinaryFlatKernel> exact(int d, idx_t n, int seed = 1) {
    auto index = std::make_unique<IndexBinaryFlatKernel>(d);
    index->add(n, sets(n, d, seed).data());
    return index;
}

using FoundCodes = Found<int32_t>;

/// Bits, and an index in front that finds all codes if it is asked for them.
struct Strings : testing::TestWithParam<std::pair<int, const char*>> {
    const int d = GetParam().first;
    const std::string string =
            GetParam().second + std::string(",Refine(BKFlat(jaccard))");
};

INSTANTIATE_TEST_SUITE_P(
        All,
        Strings,
        testing::Values(
                std::pair(256, "BFlat"),
                std::pair(256, "BHNSW16"),
                std::pair(256, "BHNSW16,BKFlat(dice)"),
                std::pair(256, "BKFlat(cosine)"),
                std::pair(256, "BIVF1"),
                std::pair(256, "CWS64,BFlat"),
                std::pair(166, "CWS64,BFlat"),
                std::pair(166, "BFlat"),
                std::pair(166, "BHNSW16"),
                std::pair(166, "BHNSW16,BKFlat(dice)"),
                std::pair(166, "BIVF1"),
                std::pair(166, "BKFlat(dice)"),
                std::pair(256, "KLSH64(jaccard),BFlat"),
                std::pair(256, "CWS64,BHNSW16"),
                std::pair(256, "CWS256,BFlat")));

} // namespace

TEST_P(Strings, AllCandidatesGiveTheExactResults) {
    const idx_t n = 400;
    const auto index = make(string, d, n);
    const auto all = exact(d, n);
    index->k_factor = 400;
    const Bytes q = sets(12, d, 2);
    for (const idx_t k : {1, 10}) {
        expect_same(search(*index, q, k), search(*all, q, k));
    }
    FoundCodes more = search(*index, q, n + 3);
    expect_same(more, search(*all, q, n + 3));
    for (const double value : {0.2, 0.7}) {
        const int radius = IndexBinaryFlatKernel::distance(value);
        EXPECT_EQ(
                range_search(*index, q, radius), range_search(*all, q, radius));
    }
    EXPECT_EQ(kernel_of(part_that_compares(*index))->description(), "jaccard");
    Bytes codes(2 * index->code_size);
    index->reconstruct_n(5, 2, codes.data());
    const Bytes x = sets(n, d, 1);
    EXPECT_TRUE(
            std::equal(codes.begin(), codes.end(), &x[5 * index->code_size]));
}

// Distances are exact even if there are few candidates.
TEST_P(Strings, RanksItsCandidates) {
    const idx_t n = 600, k = 10;
    const auto index = make(string, d, n);
    const auto all = exact(d, n);
    index->k_factor = 4;
    const Bytes q = sets(20, d, 2);
    const FoundCodes found = search(*index, q, k), best = search(*all, q, n);
    idx_t good = 0;
    for (idx_t i = 0; i < 20; i++) {
        for (idx_t j = i * k; j < (i + 1) * k; j++) {
            const auto at = std::find(
                    &best.labels[i * n],
                    &best.labels[i * n] + n,
                    found.labels[j]);
            ASSERT_NE(at, &best.labels[i * n] + n);
            EXPECT_EQ(
                    found.distances[j],
                    best.distances[at - best.labels.data()]);
            good += found.distances[j] <= best.distances[i * n + k - 1];
        }
        EXPECT_TRUE(std::is_sorted(
                &found.distances[i * k], &found.distances[i * k] + k));
    }
    EXPECT_GE(good, 20 * k / 2);
}

TEST_P(Strings, Filters) {
    const idx_t n = 3000, k = 7;
    const auto index = make(string, d, n);
    const auto all = exact(d, n);
    index->k_factor = 8;
    const Bytes q = sets(10, d, 2);
    faiss::SearchParameters params;
    // few codes, which are all compared
    faiss::IDSelectorRange few(100, 130);
    params.sel = &few;
    for (const idx_t many : {k, idx_t(50)}) {
        expect_same(
                search(*index, q, many, &params),
                search(*all, q, many, &params));
    }
    std::vector<uint8_t> bitmap((n + 7) / 8, 0x55); // half of the codes
    faiss::IDSelectorBitmap half(bitmap.size(), bitmap.data());
    params.sel = &half;
    const FoundCodes found = search(*index, q, k, &params),
                     best = search(*all, q, k, &params);
    idx_t good = 0;
    for (size_t i = 0; i < found.labels.size(); i++) {
        EXPECT_EQ(found.labels[i] % 2, 0);
        good += found.distances[i] <= best.distances[i / k * k + k - 1];
    }
    EXPECT_GE(good, idx_t(found.labels.size() * 6 / 10));
    const int radius = IndexBinaryFlatKernel::distance(0.5);
    faiss::RangeSearchResult a(10), b(10);
    index->range_search(10, q.data(), radius, &a, &params);
    all->range_search(10, q.data(), radius, &b, &params);
    EXPECT_TRUE(std::equal(a.labels, a.labels + a.lims[10], b.labels));
    EXPECT_EQ(a.lims[10], b.lims[10]);
}

TEST_P(Strings, ChangesAndFiles) {
    const idx_t n = 300;
    const bool learns = string.find("KLSH") == 0 || string.find("BIVF") == 0;
    std::unique_ptr<faiss::IndexBinary> index = make(string, d, n);
    const auto all = exact(d, n);
    all->add(50, sets(50, d, 3).data());
    const auto x = sets(n, d, 1);
    if (learns) { // another one would learn another hash
        index->add(50, sets(50, d, 3).data());
    } else {
        const auto other = make(string, d, 50, 3);
        index->merge_from(*other);
        EXPECT_EQ(other->ntotal, 0);
    }
    ASSERT_EQ(index->ntotal, n + 50);
    const Bytes q = sets(8, d, 2);
    const auto check = [&](faiss::IndexBinary& tested) {
        for (SearchParameter& parameter : search_parameters(tested)) {
            if (parameter.name == "k_factor") {
                parameter.set(400);
            }
        }
        expect_same(search(tested, q, 9), search(*all, q, 9));
    };
    check(*index);
    const auto copy = clone_binary_index(index.get());
    check(*copy);
    TemporaryFolder folder;
    const std::string file = folder / "index";
    faiss_ext::write_index_binary(index.get(), file.c_str());
    check(*faiss_ext::read_index_binary(file.c_str()));
    check(*faiss_ext::read_index_binary(file.c_str(), faiss::IO_FLAG_MMAP));
    EXPECT_EQ(
            index_string(faiss_ext::read_index_binary(file.c_str()).get()),
            index_string(index.get()));

    // ids of its own: removed vectors leave no gap in the exact index
    const faiss::IDSelectorRange removed(20, 120);
    EXPECT_EQ(index->remove_ids(removed), 100u);
    EXPECT_EQ(index->ntotal, n - 50);
    faiss::SearchParameters rest;
    const faiss::IDSelectorRange gone(20, 120);
    const faiss::IDSelectorNot others(&gone);
    rest.sel = const_cast<faiss::IDSelectorNot*>(&others);
    // equal distances are ordered by position
    EXPECT_EQ(
            search(*index, q, 9).distances,
            search(*all, q, 9, &rest).distances);
    index->reset();
    EXPECT_EQ(index->ntotal, 0);
    EXPECT_EQ(search(*index, q, 1).labels, std::vector<idx_t>(8, -1));
    index->add(1, x.data());
    EXPECT_EQ(search(*index, q, 1).labels, std::vector<idx_t>(8, 0));
}

TEST(Refine, IsTheSameOnAnyNumberOfThreads) {
    const int d = 256;
    const auto index = make("CWS64,BFlat,Refine(BKFlat(jaccard))", d, 3000);
    index->k_factor = 5;
    const Bytes q = sets(40, d, 2);
    const Threads one(1);
    const FoundCodes alone = search(*index, q, 10);
    const Threads five(5);
    expect_same(search(*index, q, 10), alone);
}

TEST(Refine, SearchParameters) {
    const int d = 256;
    const auto index = make("BFlat,Refine(BKFlat(jaccard))", d, 500);
    const auto all = exact(d, 500);
    const Bytes q = sets(10, d, 2);
    SearchParametersRefine params;
    params.k_factor = 500;
    expect_same(search(*index, q, 5, &params), search(*all, q, 5));
    params.k_factor = 0.5;
    EXPECT_TRUE(throws([&] { search(*index, q, 5, &params); }, "k_factor"));
    index->k_factor = std::nanf("");
    EXPECT_TRUE(throws([&] { search(*index, q, 5); }, "k_factor"));
    index->k_factor = 1;
    EXPECT_TRUE(throws([&] { search(*index, q, 0); }, "k is 0"));
}

TEST(Refine, AnErrorChangesNothing) {
    const int d = 166;
    const auto index = make("CWS64,BFlat,Refine(BKFlat(jaccard))", d, 50);
    Bytes x = sets(3, d, 2);
    x[3 * index->code_size - 1] |= 1;
    EXPECT_TRUE(
            throws([&] { index->add(3, x.data()); },
                   "code 2 has ones beyond its first 166 bits"));
    EXPECT_TRUE(throws([&] { search(*index, x, 1); }, "code 2 has ones"));
    EXPECT_EQ(index->ntotal, 50);
    EXPECT_EQ(index->base_index->ntotal, 50);
    EXPECT_EQ(index->refine_index->ntotal, 50);
    index->refine_index->add(1, x.data());
    EXPECT_TRUE(throws([&] { index->add(1, x.data()); }, "refine_index"));
    EXPECT_TRUE(
            throws([&] { search(*index, sets(1, d, 2), 1); }, "refine_index"));
}

TEST(Refine, PartsMustMatch) {
    IndexBinaryFlatSIMD flat(64);
    IndexBinaryFlatKernel bits(64), more(128);
    EXPECT_TRUE(throws(
            [&] { IndexBinaryRefineKernel index(&flat, nullptr); }, "null"));
    EXPECT_TRUE(
            throws([&] { IndexBinaryRefineKernel index(&flat, &more); },
                   "base_index takes 64 bits and refine_index 128"));
    ConsistentSamplingHash hash(64, 32);
    IndexBinaryFlatSIMD codes(32);
    IndexBinaryKernelHash hashed(&hash, &codes);
    IndexBinaryRefineKernel good(&hashed, &bits);
    EXPECT_EQ(good.d, 64);
    EXPECT_TRUE(
            throws([&] { IndexBinaryRefineKernel index(&hashed, &more); },
                   "base_index takes 64 bits and refine_index 128"));
    const uint8_t code[8] = {1};
    flat.add(1, code);
    EXPECT_TRUE(
            throws([&] { IndexBinaryRefineKernel index(&flat, &bits); },
                   "base_index has 1 codes and refine_index 0"));
    EXPECT_TRUE(throws([&] { good.add_with_ids(1, code, nullptr); }, "IDMap"));
}

TEST(Refine, Merges) {
    const auto index = make("BFlat,Refine(BKFlat(jaccard))", 64, 20);
    for (const char* string :
         {"BFlat,Refine(BKFlat(dice))", "BHNSW8,Refine(BKFlat(jaccard))"}) {
        const auto other = make(string, 64, 20);
        EXPECT_TRUE(throws([&] { index->merge_from(*other); }, "merge"));
        EXPECT_EQ(other->ntotal, 20);
    }
    IndexBinaryFlatKernel flat(64);
    EXPECT_TRUE(throws(
            [&] { index->merge_from(flat); }, "another index with Refine"));
    EXPECT_EQ(index->ntotal, 20);
}

TEST(Refine, StringsThatAreRefused) {
    const auto refused = [](const char* string, const char* message) {
        EXPECT_TRUE(throws([&] { index_binary_factory(64, string); }, message));
    };
    refused("BFlat,Refine(KFlat(chi2))", "cannot re-rank by 'KFlat(chi2)'");
    refused("BFlat,Refine(BFlat)", "cannot re-rank by 'BFlat'");
    refused("BFlat,Refine()", "cannot re-rank by ''");
    refused("KFlat(chi2),Refine(BKFlat(dice))", "KFlat");
    refused("IDMap,BFlat,Refine(BKFlat(chi2))", "unknown kernel of bits");
    EXPECT_TRUE(throws(
            [] { index_factory(64, "CWS64,BFlat,Refine(BKFlat(dice))"); },
            "index_binary_factory"));
    EXPECT_TRUE(is_string_for_codes("CWS64,BFlat,Refine(BKFlat(dice))"));
    EXPECT_FALSE(is_string_for_codes("CWS64,BFlat,Refine(KFlat(jaccard))"));
}

// The second part of a file is of another class.
TEST(Refine, DamagedFiles) {
    const auto index = make("BFlat,Refine(BKFlat(jaccard))", 64, 20);
    const Bytes bytes = bytes_of(*index);
    for (size_t i = 0; i < bytes.size(); i += 7) {
        Bytes bad = bytes;
        bad[i] ^= 4;
        const auto read = [&] { from_bytes<faiss::IndexBinary>(bad); };
        EXPECT_TRUE(throws(read)) << i;
        bad.resize(i);
        EXPECT_TRUE(throws(read)) << i;
    }
}
