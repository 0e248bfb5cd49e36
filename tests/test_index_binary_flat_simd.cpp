// The fast Hamming scan: against distances counted bit by bit, and beside
// faiss::IndexBinaryFlat.

#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>

#include <algorithm>
#include <limits>
#include <random>
#include <tuple>

#include <gtest/gtest.h>
#include <omp.h>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexIDMap.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/impl/io.h>
#include <faiss/index_io.h>

#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "testing_indexes.h"
#include "testing_targets.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

using Codes = std::vector<uint8_t>;

Codes random_codes(size_t n, int d, uint64_t seed) {
    Codes codes(n * (d / 8));
    std::mt19937_64 rng(seed);
    for (uint8_t& byte : codes) {
        byte = uint8_t(rng());
    }
    return codes;
}

/// Codes of which many are equal, or differ in a bit: full of ties.
Codes tied_codes(size_t n, int d, uint64_t seed) {
    const size_t size = d / 8;
    const Codes few = random_codes(4, d, seed);
    Codes codes;
    std::mt19937_64 rng(seed + 1);
    for (size_t i = 0; i < n; i++) {
        const size_t from = rng() % 4;
        codes.insert(
                codes.end(),
                few.begin() + from * size,
                few.begin() + (from + 1) * size);
        if (rng() % 2) {
            const int bit = int(rng() % d);
            codes[i * size + bit / 8] ^= uint8_t(1 << bit % 8);
        }
    }
    return codes;
}

int count_bits(const uint8_t* a, const uint8_t* b, size_t size) {
    int sum = 0;
    for (size_t i = 0; i < size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            sum += (a[i] ^ b[i]) >> bit & 1;
        }
    }
    return sum;
}

/// (distance, id) of all codes that a selector takes, ascending.
std::vector<std::pair<int32_t, idx_t>> ranked(
        const Codes& codes,
        const uint8_t* query,
        size_t size,
        const faiss::IDSelector* sel = nullptr) {
    std::vector<std::pair<int32_t, idx_t>> all;
    for (size_t i = 0; i < codes.size() / size; i++) {
        if (!sel || sel->is_member(idx_t(i))) {
            all.emplace_back(
                    count_bits(query, &codes[i * size], size), idx_t(i));
        }
    }
    std::sort(all.begin(), all.end());
    return all;
}

void expect_right(
        const faiss::IndexBinary& index,
        const Codes& codes,
        const Codes& queries,
        idx_t k,
        const faiss::SearchParameters* params = nullptr) {
    const size_t size = index.code_size, nq = queries.size() / size;
    const auto found = search(index, queries, k, params);
    for (size_t q = 0; q < nq; q++) {
        const auto expected =
                ranked(codes,
                       &queries[q * size],
                       size,
                       params ? params->sel : nullptr);
        for (idx_t i = 0; i < k; i++) {
            const bool there = i < idx_t(expected.size());
            ASSERT_EQ(found.labels[q * k + i], there ? expected[i].second : -1)
                    << "bits " << index.d << ", query " << q << ", rank " << i;
            ASSERT_EQ(
                    found.distances[q * k + i],
                    there ? expected[i].first
                          : std::numeric_limits<int32_t>::max());
        }
    }
}

class EveryTarget : public ::testing::TestWithParam<int64_t> {
   protected:
    testing_targets::Target guard{GetParam()};
};

} // namespace

TEST_P(EveryTarget, EverySizeOfCode) {
    for (int d :
         {8,
          16,
          56,
          64,
          72,
          120,
          128,
          136,
          192,
          256,
          264,
          512,
          520,
          1000,
          1024,
          1032,
          2048}) {
        for (size_t n : {1, 7, 8, 9, 65, 300}) {
            IndexBinaryFlatSIMD index(d);
            const Codes codes = tied_codes(n, d, d + n);
            index.add(n, codes.data());
            expect_right(index, codes, random_codes(3, d, d), 10);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        Targets,
        EveryTarget,
        ::testing::ValuesIn(testing_targets::targets()),
        [](const auto& info) { return hwy::TargetName(info.param); });

TEST(IndexBinaryFlatSIMD, EveryK) {
    const int d = 64;
    const size_t n = 5000;
    const Codes codes = tied_codes(n, d, 1), queries = tied_codes(9, d, 2);
    IndexBinaryFlatSIMD index(d);
    index.add(n, codes.data());
    for (idx_t k : {1, 2, 31, 100, 1000, 4999, 5000, 5003}) {
        expect_right(index, codes, queries, k);
    }
}

TEST(IndexBinaryFlatSIMD, LongCodes) {
    const int d = 65536;
    const Codes codes = random_codes(50, d, 1);
    IndexBinaryFlatSIMD index(d);
    index.add(50, codes.data());
    // the complement of a code is at the distance d
    Codes queries(codes.begin(), codes.begin() + d / 8);
    for (uint8_t byte : Codes(queries)) {
        queries.push_back(uint8_t(~byte));
    }
    expect_right(index, codes, queries, 50);
    EXPECT_EQ(search(index, queries, 50).distances[99], d);
}

// Distances are those of FAISS; so are ids, where distances differ.
TEST(IndexBinaryFlatSIMD, AgreesWithFaiss) {
    for (int d : {64, 256, 1000}) {
        const Codes codes = random_codes(3000, d, 1);
        const Codes queries = random_codes(50, d, 2);
        IndexBinaryFlatSIMD index(d);
        faiss::IndexBinaryFlat reference(d);
        index.add(3000, codes.data());
        reference.add(3000, codes.data());
        for (idx_t k : {1, 10, 500}) {
            const auto mine = search(index, queries, k);
            const auto theirs = search(reference, queries, k);
            EXPECT_EQ(mine.distances, theirs.distances);
            expect_right(index, codes, queries, k);
        }
        for (int radius : {0, 1, d / 3, d / 2, d, d + 1, d + 100, -5}) {
            EXPECT_EQ(
                    range_search(index, queries, radius),
                    range_search(reference, queries, radius))
                    << radius;
        }
    }
}

TEST(IndexBinaryFlatSIMD, ThreadsAndBatchesDoNotMatter) {
    const int d = 128, before = omp_get_max_threads();
    const size_t n = 70000;
    const Codes codes = tied_codes(n, d, 1), queries = tied_codes(100, d, 2);
    IndexBinaryFlatSIMD index(d);
    index.add(n, codes.data());
    omp_set_num_threads(1);
    const auto expected = search(index, queries, 20);
    const auto ranges = range_search(index, queries, 3);
    for (int threads : {2, 3, 7}) {
        omp_set_num_threads(threads);
        expect_same(search(index, queries, 20), expected);
        EXPECT_EQ(range_search(index, queries, 3), ranges);
        for (size_t q : {0, 99}) {
            const Codes one(
                    queries.begin() + q * d / 8,
                    queries.begin() + (q + 1) * d / 8);
            const auto found = search(index, one, 20);
            EXPECT_TRUE(std::equal(
                    found.labels.begin(),
                    found.labels.end(),
                    &expected.labels[q * 20]));
            EXPECT_EQ(range_search(index, one, 3)[0], ranges[q]);
        }
    }
    omp_set_num_threads(before);
}

TEST(IndexBinaryFlatSIMD, Selectors) {
    const int d = 72;
    const Codes codes = tied_codes(2000, d, 1), queries = tied_codes(5, d, 2);
    IndexBinaryFlatSIMD index(d);
    index.add(2000, codes.data());
    faiss::IDSelectorRange few(100, 130), none(3000, 4000), most(10, 1990);
    for (faiss::IDSelector* sel : {&few, &none, &most}) {
        faiss::SearchParameters params;
        params.sel = sel;
        expect_right(index, codes, queries, 50, &params);
        faiss::RangeSearchResult result(5);
        index.range_search(5, queries.data(), 20, &result, &params);
        const Ranges ranges = to_ranges(result);
        for (size_t q = 0; q < 5; q++) {
            auto expected = ranked(codes, &queries[q * 9], 9, sel);
            expected.erase(
                    std::lower_bound(
                            expected.begin(),
                            expected.end(),
                            std::make_pair(20, idx_t(-1))),
                    expected.end());
            EXPECT_EQ(ranges[q].size(), expected.size());
            for (const auto& [id, distance] : ranges[q]) {
                EXPECT_TRUE(std::count(
                        expected.begin(),
                        expected.end(),
                        std::make_pair(int32_t(distance), id)));
            }
        }
    }
}

TEST(IndexBinaryFlatSIMD, NothingToDo) {
    IndexBinaryFlatSIMD index(64);
    const Codes query = random_codes(1, 64, 1);
    const auto found = search(index, query, 3);
    EXPECT_EQ(found.labels, (std::vector<idx_t>{-1, -1, -1}));
    EXPECT_EQ(
            found.distances,
            std::vector<int32_t>(3, std::numeric_limits<int32_t>::max()));
    index.search(0, nullptr, 3, nullptr, nullptr);
    faiss::RangeSearchResult result(0);
    index.range_search(0, nullptr, 3, &result);
    EXPECT_TRUE(range_search(index, query, 10)[0].empty());
    // errors
    int32_t distance;
    idx_t label;
    EXPECT_TRUE(
            throws([&] { index.search(1, query.data(), 0, &distance, &label); },
                   "k is 0"));
    EXPECT_TRUE(throws(
            [&] { index.search(1, nullptr, 1, &distance, &label); }, "null"));
    EXPECT_TRUE(throws([] { IndexBinaryFlatSIMD(12); }, "% 8"));
    EXPECT_TRUE(throws([] { IndexBinaryFlatSIMD(0); }, "multiple of 8"));
}

TEST(IndexBinaryFlatSIMD, IsBFlatAndItsFilesAreThoseOfFaiss) {
    const auto made = index_binary_factory(64, "BFlat");
    EXPECT_TRUE(dynamic_cast<IndexBinaryFlatSIMD*>(made.get()));
    const auto codes = random_codes(20, 64, 1);
    made->add(20, codes.data());

    faiss::VectorIOWriter mine, theirs;
    faiss_ext::write_index_binary(made.get(), &mine);
    faiss::IndexBinaryFlat reference(64);
    reference.add(20, codes.data());
    faiss::write_index_binary(&reference, &theirs);
    EXPECT_EQ(mine.data, theirs.data);
    faiss::VectorIOReader reader;
    reader.data = theirs.data;
    const auto read = faiss_ext::read_index_binary(&reader);
    const auto clone = clone_binary_index(made.get());
    for (const faiss::IndexBinary* copy : {read.get(), clone.get()}) {
        const auto* flat = dynamic_cast<const IndexBinaryFlatSIMD*>(copy);
        ASSERT_TRUE(flat);
        EXPECT_EQ(flat->xb, codes);
        EXPECT_EQ(flat->ntotal, 20);
        expect_right(*copy, codes, codes, 4);
    }
    // inside FAISS's own, when its files are read here
    for (const char* string : {"IDMap,BFlat", "IDMap2,BFlat"}) {
        const auto with_ids = index_binary_factory(64, string);
        const std::vector<idx_t> ids(20, 5);
        with_ids->add_with_ids(20, codes.data(), ids.data());
        faiss::VectorIOWriter out;
        faiss_ext::write_index_binary(with_ids.get(), &out);
        faiss::VectorIOReader in;
        in.data = out.data;
        const auto read_again = faiss_ext::read_index_binary(&in);
        const auto& map =
                dynamic_cast<const faiss::IndexBinaryIDMap&>(*read_again);
        EXPECT_TRUE(dynamic_cast<const IndexBinaryFlatSIMD*>(map.index));
        EXPECT_TRUE(map.own_fields);
        EXPECT_EQ(map.ntotal, 20);
        EXPECT_EQ(map.id_map, ids);
    }
    // inside other indexes, also after reading
    const auto index = index_factory(8, "SIK64(gaussian,gamma=1),BFlat");
    faiss::VectorIOWriter writer;
    faiss_ext::write_index(index.get(), &writer);
    faiss::VectorIOReader again;
    again.data = writer.data;
    const auto whole = faiss_ext::read_index(&again);
    for (const faiss::Index* i : {index.get(), whole.get()}) {
        EXPECT_TRUE(dynamic_cast<const IndexBinaryFlatSIMD*>(
                dynamic_cast<const IndexKernelHash&>(*i).storage));
    }
}

TEST(IndexBinaryFlatSIMD, ChangesLikeIndexBinaryFlat) {
    const Codes codes = random_codes(100, 32, 1);
    IndexBinaryFlatSIMD index(32);
    index.add(60, codes.data());
    index.add(40, codes.data() + 240);
    faiss::IDSelectorRange sel(10, 20);
    EXPECT_EQ(index.remove_ids(sel), 10);
    Codes rest = codes;
    rest.erase(rest.begin() + 40, rest.begin() + 80);
    expect_right(index, rest, codes, 5);
    Codes one(4);
    index.reconstruct(10, one.data());
    EXPECT_TRUE(std::equal(one.begin(), one.end(), &codes[80]));
    index.reset();
    EXPECT_EQ(index.ntotal, 0);
    EXPECT_EQ(search(index, one, 1).labels[0], -1);
}
