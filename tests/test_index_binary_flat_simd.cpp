// SPDX-License-Identifier: MIT
// The fast Hamming scan, against distances counted bit by bit and against
// faiss::IndexBinaryFlat.

#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>

#include <numeric>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/impl/io.h>
#include <faiss/index_io.h>

#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

using Codes = std::vector<uint8_t>;

/// Returns random codes; many are at the same distance.
Codes random_codes(size_t n, int d, uint64_t seed) {
    return random_bytes(n * d / 8, seed);
}

TEST(IndexBinaryFlatSIMD, EverySizeOfCodeOnEveryTarget) {
    for (int64_t t : targets()) {
        const Target target(t);
        for (int d :
             {8, 56, 64, 72, 128, 136, 192, 256, 264, 520, 1000, 1024, 2048}) {
            const Codes queries = random_codes(3, d, 1);
            for (size_t n : {1, 7, 8, 65, 300}) {
                SCOPED_TRACE(
                        testing::Message() << hwy::TargetName(t) << ", " << n
                                           << " codes of " << d << " bits");
                IndexBinaryFlatSIMD index(d);
                const Codes codes = random_codes(n, d, 2);
                index.add(n, codes.data());
                expect_hamming_search(index, codes, queries, 10, d / 2);
            }
        }
    }
}

TEST(IndexBinaryFlatSIMD, EveryKRadiusAndSelector) {
    const int d = 72;
    const idx_t n = 3000;
    const Codes codes = random_codes(n, d, 1), queries = random_codes(5, d, 2);
    IndexBinaryFlatSIMD index(d);
    index.add(n, codes.data());
    for (idx_t k : {1, 2, 31, 100, 1000, 2999, 3000, 3003}) {
        expect_hamming_search(index, codes, queries, k, 25);
    }
    for (int radius : {-5, 0, 1, d / 2, d, d + 1, d + 100}) {
        expect_hamming_search(index, codes, queries, 1, radius);
    }
    faiss::IDSelectorRange few(100, 130), none(3000, 4000), most(10, 2990);
    for (faiss::IDSelector* sel : {&few, &none, &most}) {
        expect_hamming_search(index, codes, queries, 50, 30, sel);
    }
}

TEST(IndexBinaryFlatSIMD, LongCodes) {
    const int d = 65536;
    const Codes codes = random_codes(50, d, 1);
    IndexBinaryFlatSIMD index(d);
    index.add(50, codes.data());
    Codes opposite = rows(codes, d / 8, 0, 1);
    for (uint8_t& byte : opposite) {
        byte = uint8_t(~byte);
    }
    expect_hamming_search(index, codes, opposite, 50, d);
    EXPECT_EQ(search(index, opposite, 50).distances[49], d);
}

// Few queries are compared with slices of the codes, many queries are not.
TEST(IndexBinaryFlatSIMD, ThreadsAndBatchesDoNotMatter) {
    const int d = 128, radius = 45;
    const idx_t n = 40000;
    const Codes codes = random_codes(n, d, 1), queries = random_codes(70, d, 2);
    IndexBinaryFlatSIMD index(d);
    index.add(n, codes.data());
    const auto found = search(index, queries, 20);
    const auto ranges = range_search(index, queries, radius);
    EXPECT_GT(total_size(ranges), 70);
    for (int nthreads : {2, 7}) {
        const Threads threads(nthreads);
        expect_same(search(index, queries, 20), found);
        EXPECT_EQ(range_search(index, queries, radius), ranges);
        for (idx_t q : {0, 69}) {
            const Codes one = rows(queries, d / 8, q, q + 1);
            const auto nearest = search(index, one, 20).labels;
            EXPECT_EQ(nearest, rows(found.labels, 20, q, q + 1));
            EXPECT_EQ(range_search(index, one, radius)[0], ranges[q]);
            expect_hamming_search(index, codes, one, n, d + 1); // all of them
        }
    }
}

TEST(IndexBinaryFlatSIMD, NothingToDoAndBadCalls) {
    IndexBinaryFlatSIMD index(64);
    const Codes query = random_codes(1, 64, 1);
    expect_hamming_search(index, {}, query, 3, 10);
    expect_hamming_search(index, {}, {}, 3, 10);
    index.search(0, nullptr, 3, nullptr, nullptr);
    const auto find = [&](const uint8_t* x, idx_t k) {
        index.search(1, x, k, nullptr, nullptr);
    };
    expect_throws(
            {{[&] { find(query.data(), 0); }, "k is 0"},
             {[&] { find(nullptr, 1); }, "null"},
             {[] { IndexBinaryFlatSIMD(12); }, "8"},
             {[] { IndexBinaryFlatSIMD(0); }, "0"}});
}

bool is_simd(const faiss::IndexBinary* index) {
    return dynamic_cast<const IndexBinaryFlatSIMD*>(index);
}

TEST(IndexBinaryFlatSIMD, IsBFlatAndItsFilesAreThoseOfFaiss) {
    const auto made = index_binary_factory(64, "BFlat");
    EXPECT_TRUE(is_simd(made.get()));
    const auto codes = random_codes(20, 64, 1);
    made->add(20, codes.data());
    faiss::IndexBinaryFlat reference(64);
    reference.add(20, codes.data());
    faiss::VectorIOWriter theirs;
    faiss::write_index_binary(&reference, &theirs);
    EXPECT_EQ(bytes_of(*made), theirs.data);
    const auto read = from_bytes<faiss::IndexBinary>(theirs.data);
    const auto clone = clone_binary_index(made.get());
    for (const faiss::IndexBinary* copy : {read.get(), clone.get()}) {
        EXPECT_TRUE(is_simd(copy));
        expect_hamming_search(*copy, codes, codes, 4, 9);
    }
    // inside a FAISS index, when our reader reads its files
    const auto with_ids = index_binary_factory(64, "IDMap2,BFlat");
    std::vector<idx_t> ids(20);
    std::iota(ids.begin(), ids.end(), 5);
    with_ids->add_with_ids(20, codes.data(), ids.data());
    const auto again = reread(*with_ids);
    const auto& map = dynamic_cast<const IndexBinaryIDTable&>(*again);
    EXPECT_EQ(map.next_id, 25);
    EXPECT_TRUE(is_simd(map.index));
    EXPECT_TRUE(map.own_fields);
    EXPECT_EQ(map.id_map, ids);
}

TEST(IndexBinaryFlatSIMD, ChangesLikeIndexBinaryFlat) {
    const Codes codes = random_codes(100, 32, 1);
    IndexBinaryFlatSIMD index(32);
    index.add(60, codes.data());
    index.add(40, &codes[240]);
    EXPECT_EQ(index.remove_ids(faiss::IDSelectorRange(10, 20)), 10u);
    const Codes rest = joined(rows(codes, 4, 0, 10), rows(codes, 4, 20, 100));
    expect_hamming_search(index, rest, codes, 5, 3);
    Codes some(8), one(4);
    index.reconstruct_n(88, 2, some.data());
    EXPECT_EQ(some, rows(codes, 4, 98, 100));
    index.reconstruct(10, one.data());
    EXPECT_EQ(one, rows(codes, 4, 20, 21));
    expect_throws(
            {{[&] { index.reconstruct(-1, one.data()); }, "90"},
             {[&] { index.reconstruct(90, one.data()); }, "90"},
             {[&] { index.reconstruct_n(89, 2, some.data()); }, "90"}});
}

} // namespace
