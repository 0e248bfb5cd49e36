// The fast Hamming scan: against distances counted bit by bit, and beside
// faiss::IndexBinaryFlat.

#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexIDMap.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/impl/io.h>
#include <faiss/index_io.h>

#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

using Codes = std::vector<uint8_t>;

/// Codes of which many are equal, or differ in a bit: full of ties.
Codes tied_codes(size_t n, int d, uint64_t seed) {
    const size_t size = d / 8;
    const Codes few = random_bytes(4 * size, seed);
    Codes codes;
    std::mt19937_64 rng(seed + 1);
    for (size_t i = 0; i < n; i++) {
        const auto from = few.begin() + rng() % 4 * size;
        codes.insert(codes.end(), from, from + size);
        if (rng() % 2) {
            const int bit = int(rng() % d);
            codes[i * size + bit / 8] ^= uint8_t(1 << bit % 8);
        }
    }
    return codes;
}

struct EveryTarget : testing::TestWithParam<int64_t> {
    const Target guard{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(
        Targets,
        EveryTarget,
        testing::ValuesIn(targets()),
        [](const auto& info) { return hwy::TargetName(info.param); });

TEST_P(EveryTarget, EverySizeOfCode) {
    for (int d :
         {8, 56, 64, 72, 128, 136, 192, 256, 264, 520, 1000, 1024, 2048}) {
        for (size_t n : {1, 7, 8, 65, 300}) {
            IndexBinaryFlatSIMD index(d);
            const Codes codes = tied_codes(n, d, d + n);
            index.add(n, codes.data());
            expect_hamming_search(
                    index, codes, random_bytes(3 * d / 8, d), 10, d / 2);
        }
    }
}

TEST(IndexBinaryFlatSIMD, EveryKRadiusAndSelector) {
    const int d = 72;
    const idx_t n = 3000;
    const Codes codes = tied_codes(n, d, 1), queries = tied_codes(5, d, 2);
    IndexBinaryFlatSIMD index(d);
    index.add(n, codes.data());
    for (idx_t k : {1, 2, 31, 100, 1000, 2999, 3000, 3003}) {
        expect_hamming_search(index, codes, queries, k, 2);
    }
    for (int radius : {-5, 0, 1, d / 2, d, d + 1, d + 100}) {
        expect_hamming_search(index, codes, queries, 1, radius);
    }
    faiss::IDSelectorRange few(100, 130), none(3000, 4000), most(10, 2990);
    for (faiss::IDSelector* sel : {&few, &none, &most}) {
        expect_hamming_search(index, codes, queries, 50, 20, sel);
    }
}

TEST(IndexBinaryFlatSIMD, LongCodes) {
    const int d = 65536;
    const Codes codes = random_bytes(50 * d / 8, 1);
    IndexBinaryFlatSIMD index(d);
    index.add(50, codes.data());
    // the complement of a code is at the distance d
    Codes queries = rows(codes, d / 8, 0, 1);
    for (uint8_t byte : Codes(queries)) {
        queries.push_back(uint8_t(~byte));
    }
    expect_hamming_search(index, codes, queries, 50, d);
    EXPECT_EQ(search(index, queries, 50).distances[99], d);
}

// Few queries are compared with slices of the codes, many are not.
TEST(IndexBinaryFlatSIMD, ThreadsAndBatchesDoNotMatter) {
    const int d = 128, size = d / 8;
    const idx_t n = 40000;
    const Codes codes = tied_codes(n, d, 1), queries = tied_codes(70, d, 2);
    IndexBinaryFlatSIMD index(d);
    index.add(n, codes.data());
    const auto found = search(index, queries, 20);
    const auto ranges = range_search(index, queries, 3);
    for (int nthreads : {2, 7}) {
        const Threads threads(nthreads);
        expect_same(search(index, queries, 20), found);
        EXPECT_EQ(range_search(index, queries, 3), ranges);
        for (idx_t q : {0, 69}) {
            const Codes one = rows(queries, size, q, q + 1);
            EXPECT_EQ(
                    search(index, one, 20).labels,
                    rows(found.labels, 20, q, q + 1));
            EXPECT_EQ(range_search(index, one, 3)[0], ranges[q]);
            expect_hamming_search(index, codes, one, n, d + 1); // all of them
        }
    }
}

TEST(IndexBinaryFlatSIMD, NothingToDoAndBadCalls) {
    IndexBinaryFlatSIMD index(64);
    const Codes query = random_bytes(8, 1);
    expect_hamming_search(index, {}, query, 3, 10);
    expect_hamming_search(index, {}, {}, 3, 10);
    index.search(0, nullptr, 3, nullptr, nullptr);
    int32_t distance;
    idx_t label;
    EXPECT_TRUE(
            throws([&] { index.search(1, query.data(), 0, &distance, &label); },
                   "k is 0"));
    EXPECT_TRUE(throws(
            [&] { index.search(1, nullptr, 1, &distance, &label); }, "null"));
    EXPECT_TRUE(throws([] { IndexBinaryFlatSIMD(12); }, "8"));
    EXPECT_TRUE(throws([] { IndexBinaryFlatSIMD(0); }, "0"));
}

std::unique_ptr<faiss::IndexBinary> index_of(const Codes& bytes) {
    faiss::VectorIOReader reader;
    reader.data = bytes;
    return faiss_ext::read_index_binary(&reader);
}

bool is_simd(const faiss::IndexBinary* index) {
    return dynamic_cast<const IndexBinaryFlatSIMD*>(index);
}

TEST(IndexBinaryFlatSIMD, IsBFlatAndItsFilesAreThoseOfFaiss) {
    const auto made = index_binary_factory(64, "BFlat");
    EXPECT_TRUE(is_simd(made.get()));
    const auto codes = tied_codes(20, 64, 1);
    made->add(20, codes.data());
    faiss::IndexBinaryFlat reference(64);
    reference.add(20, codes.data());

    faiss::VectorIOWriter mine, theirs;
    faiss_ext::write_index_binary(made.get(), &mine);
    faiss::write_index_binary(&reference, &theirs);
    EXPECT_EQ(mine.data, theirs.data);
    const auto read = index_of(theirs.data);
    const auto clone = clone_binary_index(made.get());
    for (const faiss::IndexBinary* copy : {read.get(), clone.get()}) {
        EXPECT_TRUE(is_simd(copy));
        EXPECT_EQ(copy->ntotal, 20);
        expect_hamming_search(*copy, codes, codes, 4, 9);
    }
    // inside FAISS's own, when its files are read here
    for (const char* string : {"IDMap,BFlat", "IDMap2,BFlat"}) {
        const auto with_ids = index_binary_factory(64, string);
        const std::vector<idx_t> ids(20, 5);
        with_ids->add_with_ids(20, codes.data(), ids.data());
        faiss::VectorIOWriter writer;
        faiss_ext::write_index_binary(with_ids.get(), &writer);
        const auto again = index_of(writer.data);
        const auto& map = dynamic_cast<const faiss::IndexBinaryIDMap&>(*again);
        EXPECT_TRUE(is_simd(map.index));
        EXPECT_TRUE(map.own_fields);
        EXPECT_EQ(map.ntotal, 20);
        EXPECT_EQ(map.id_map, ids);
    }
    // inside other indexes, also after reading
    const auto index = index_factory(8, "SIK64(gaussian,gamma=1),BFlat");
    faiss::VectorIOWriter writer;
    faiss_ext::write_index(index.get(), &writer);
    faiss::VectorIOReader reader;
    reader.data = writer.data;
    const auto whole = faiss_ext::read_index(&reader);
    for (const faiss::Index* i : {index.get(), whole.get()}) {
        EXPECT_TRUE(is_simd(dynamic_cast<const IndexKernelHash&>(*i).storage));
    }
}

TEST(IndexBinaryFlatSIMD, ChangesLikeIndexBinaryFlat) {
    const Codes codes = tied_codes(100, 32, 1);
    IndexBinaryFlatSIMD index(32);
    index.add(60, codes.data());
    index.add(40, &codes[240]);
    EXPECT_EQ(index.remove_ids(faiss::IDSelectorRange(10, 20)), 10u);
    Codes rest = codes;
    rest.erase(rest.begin() + 40, rest.begin() + 80);
    expect_hamming_search(index, rest, codes, 5, 3);
    Codes some(8);
    index.reconstruct_n(88, 2, some.data());
    EXPECT_EQ(some, rows(codes, 4, 98, 100));
    Codes one(4);
    index.reconstruct(10, one.data());
    EXPECT_EQ(one, rows(codes, 4, 20, 21));
    for (idx_t id : {-1, 90}) {
        EXPECT_TRUE(throws([&] { index.reconstruct(id, one.data()); }, "90"));
    }
    EXPECT_TRUE(throws([&] { index.reconstruct_n(89, 2, some.data()); }, "90"));
    index.reset();
    EXPECT_EQ(index.ntotal, 0);
    expect_hamming_search(index, {}, one, 1, 5);
}

} // namespace
