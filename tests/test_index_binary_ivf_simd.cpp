// SPDX-License-Identifier: MIT
// The fast search of inverted lists, against distances counted bit by bit and
// against faiss::IndexBinaryIVF.

#include <faiss_ext/indexes/IndexBinaryIVFSIMD.h>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVF.h>
#include <faiss/impl/io.h>
#include <faiss/index_io.h>

#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

using Codes = std::vector<uint8_t>;

Codes random_codes(size_t n, int d, uint64_t seed) {
    return random_bytes(n * d / 8, seed);
}

/// An index whose centroids are random codes. Ids are 3 * position + 1.
struct Lists {
    int d;
    Codes codes;
    IndexBinaryIVFSIMD index;

    Lists(int d, size_t n, size_t nlist)
            : d(d),
              codes(random_codes(n, d, 1)),
              index(new IndexBinaryFlatSIMD(d), d, nlist) {
        index.own_fields = true;
        const Codes centroids = random_codes(nlist, d, 2);
        index.quantizer->add(nlist, centroids.data());
        index.is_trained = true;
        std::vector<idx_t> ids(n);
        for (size_t i = 0; i < n; i++) {
            ids[i] = 3 * idx_t(i) + 1;
        }
        index.add_with_ids(n, codes.data(), ids.data());
    }

    /// Returns (distance, id) of the codes in the probed lists, list after list
    /// by distance of the centroids.
    std::vector<std::pair<int32_t, idx_t>> probed(
            const uint8_t* query,
            size_t nprobe,
            size_t max_codes,
            const faiss::IDSelector* sel) const {
        const auto nearest =
                search(*index.quantizer, Codes(query, query + d / 8), nprobe);
        std::vector<std::pair<int32_t, idx_t>> all;
        size_t seen = 0;
        for (idx_t list : nearest.labels) {
            for (size_t i = 0; i < index.invlists->list_size(list); i++) {
                const idx_t id = index.invlists->get_single_id(list, i);
                const int32_t distance =
                        hamming(&codes[(id - 1) / 3 * d / 8], query, d / 8);
                if (!sel || sel->is_member(id)) {
                    all.emplace_back(distance, id);
                }
                seen++;
            }
            if (max_codes > 0 && seen >= max_codes) {
                break;
            }
        }
        return all;
    }

    void expect_search(
            const Codes& queries,
            idx_t k,
            int radius,
            size_t nprobe,
            size_t max_codes = 0,
            faiss::IDSelector* sel = nullptr) {
        faiss::SearchParametersIVF params;
        params.nprobe = nprobe;
        params.max_codes = max_codes;
        params.sel = sel;
        Found<int32_t> expected;
        Ranges ranges;
        for (size_t q = 0; q < queries.size() / (d / 8); q++) {
            auto all =
                    probed(&queries[q * d / 8],
                           std::min(nprobe, index.nlist),
                           max_codes,
                           sel);
            ranges.emplace_back();
            for (const auto& [distance, id] :
                 probed(&queries[q * d / 8],
                        std::min(nprobe, index.nlist),
                        0,
                        sel)) {
                if (distance < radius) {
                    ranges.back().emplace_back(id, distance);
                }
            }
            std::stable_sort(
                    all.begin(), all.end(), [](const auto& a, const auto& b) {
                        return a.first < b.first;
                    });
            all.resize(k, {std::numeric_limits<int32_t>::max(), -1});
            for (const auto& [distance, id] : all) {
                expected.distances.push_back(distance);
                expected.labels.push_back(id);
            }
        }
        expect_same(search(index, queries, k, &params), expected);
        faiss::RangeSearchResult result(ranges.size());
        index.range_search(
                ranges.size(), queries.data(), radius, &result, &params);
        EXPECT_EQ(to_ranges(result), ranges);
        if (!sel) { // also without parameters
            index.nprobe = nprobe;
            index.max_codes = max_codes;
            expect_same(search(index, queries, k), expected);
            EXPECT_EQ(range_search(index, queries, radius), ranges);
        }
    }
};

TEST(IndexBinaryIVFSIMD, EverySizeOfCodeOnEveryTarget) {
    for (int64_t t : targets()) {
        const Target target(t);
        for (int d : {8, 64, 72, 128, 256, 264, 512, 1024}) {
            SCOPED_TRACE(testing::Message() << hwy::TargetName(t) << ", " << d);
            Lists lists(d, 700, 20);
            const Codes queries = random_codes(3, d, 3);
            lists.expect_search(queries, 10, d / 2, 7);
        }
    }
}

TEST(IndexBinaryIVFSIMD, EveryParameter) {
    const int d = 72;
    Lists lists(d, 3000, 31);
    const Codes queries = random_codes(5, d, 3);
    for (idx_t k : {1, 2, 31, 100, 1000, 3003}) {
        lists.expect_search(queries, k, 25, 9);
    }
    for (int radius : {-5, 0, 1, d / 2, d, d + 1, d + 100}) {
        lists.expect_search(queries, 1, radius, 4);
    }
    for (size_t nprobe : {1, 2, 30, 31, 1000}) {
        for (size_t max_codes : {0, 1, 200, 1000000}) {
            lists.expect_search(queries, 40, 30, nprobe, max_codes);
        }
    }
    faiss::IDSelectorRange few(100, 130), none(9001, 9002), most(10, 8990);
    for (faiss::IDSelector* sel : {&few, &none, &most}) {
        lists.expect_search(queries, 50, 30, 11, 0, sel);
    }
}

// Plain parameters widen a search; those of lists say how wide it is.
TEST(IndexBinaryIVFSIMD, SearchesWidenUntilAllSelectedAreFound) {
    const int d = 64;
    Lists lists(d, 3000, 31);
    lists.index.nprobe = 1;
    const Codes queries = random_codes(5, d, 3);
    faiss::IDSelectorRange some(100, 200); // 34 codes
    faiss::SearchParameters plain;
    faiss::SearchParametersIVF one;
    plain.sel = one.sel = &some;
    one.nprobe = 1;
    const auto few = search(lists.index, queries, 20, &one);
    EXPECT_GT(std::count(few.labels.begin(), few.labels.end(), -1), 0);
    for (const idx_t id : search(lists.index, queries, 20, &plain).labels) {
        EXPECT_TRUE(some.is_member(id));
    }
    const auto all = search(lists.index, queries, 50, &plain);
    EXPECT_EQ(std::count(all.labels.begin(), all.labels.end(), -1), 5 * 16);
}

TEST(IndexBinaryIVFSIMD, FindsTheDistancesThatFaissFinds) {
    const int d = 128;
    Lists lists(d, 5000, 40);
    lists.index.nprobe = 6;
    const Codes queries = random_codes(20, d, 3);
    const faiss::IndexBinaryIVF& index = lists.index;
    for (bool use_heap : {false, true}) {
        if (!use_heap && faiss_version >= 11400) {
            continue; // here FAISS's counting scan finds nothing
        }
        lists.index.use_heap = use_heap;
        const auto theirs =
                found_by<int32_t>(20, 10, [&](int32_t* D, idx_t* I) {
                    index.IndexBinaryIVF::search(20, queries.data(), 10, D, I);
                });
        EXPECT_EQ(search(index, queries, 10).distances, theirs.distances);
    }
    faiss::RangeSearchResult result(20);
    index.IndexBinaryIVF::range_search(20, queries.data(), 50, &result);
    EXPECT_EQ(range_search(index, queries, 50), to_ranges(result));
}

TEST(IndexBinaryIVFSIMD, ThreadsAndBatchesDoNotMatter) {
    const int d = 64;
    Lists lists(d, 20000, 50);
    lists.index.nprobe = 10;
    const Codes queries = random_codes(70, d, 3);
    const auto found = search(lists.index, queries, 20);
    const auto ranges = range_search(lists.index, queries, 20);
    EXPECT_GT(total_size(ranges), 70);
    for (int nthreads : {1, 2, 7}) {
        const Threads threads(nthreads);
        expect_same(search(lists.index, queries, 20), found);
        EXPECT_EQ(range_search(lists.index, queries, 20), ranges);
        const Codes one = rows(queries, d / 8, 69, 70);
        EXPECT_EQ(
                search(lists.index, one, 20).labels,
                rows(found.labels, 20, 69, 70));
    }
}

/// Returns the lists that it is given.
struct FixedQuantizer : faiss::IndexBinaryFlat {
    std::vector<idx_t> lists;

    FixedQuantizer(int d, std::vector<idx_t> lists)
            : IndexBinaryFlat(d), lists(std::move(lists)) {}
    void search(
            idx_t n,
            const uint8_t*,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const faiss::SearchParameters*) const override {
        for (idx_t i = 0; i < n * k; i++) {
            distances[i] = 0;
            labels[i] = lists[i % k];
        }
    }
};

TEST(IndexBinaryIVFSIMD, QuantizersMayFindFewerLists) {
    Lists lists(64, 300, 3);
    const Codes query = random_codes(1, 64, 3);
    const auto found_in = [&](std::vector<idx_t> numbers) {
        FixedQuantizer fixed(64, std::move(numbers));
        fixed.ntotal = 3;
        const auto before = std::exchange(lists.index.quantizer, &fixed);
        lists.index.nprobe = fixed.lists.size();
        idx_t found = 0;
        const auto search_and_count = [&] {
            for (idx_t label : search(lists.index, query, 300).labels) {
                found += label >= 0;
            }
        };
        const bool throws_out = bool(throws(search_and_count, "list 3 of 3"));
        lists.index.quantizer = before;
        return throws_out ? -1 : found;
    };
    const auto size = [&](size_t list) {
        return idx_t(lists.index.get_list_size(list));
    };
    EXPECT_EQ(found_in({-1, -1}), 0);
    EXPECT_EQ(found_in({2, -1, 0}), size(2) + size(0));
    EXPECT_EQ(found_in({-1, 1}), size(1));
    EXPECT_EQ(found_in({1, 3}), -1);
}

TEST(IndexBinaryIVFSIMD, NothingToDoAndBadCalls) {
    Lists lists(64, 0, 5);
    auto& index = lists.index;
    const Codes query = random_codes(1, 64, 1);
    lists.expect_search(query, 3, 10, 2);
    index.search(0, nullptr, 3, nullptr, nullptr);
    const auto find = [&](const uint8_t* x, idx_t k) {
        index.search(1, x, k, nullptr, nullptr);
    };
    faiss::SearchParametersIVF no_probes;
    no_probes.nprobe = 0;
    faiss::IndexBinaryFlat flat(64);
    IndexBinaryIVFSIMD untrained(&flat, 64, 4);
    expect_throws(
            {{[&] { find(query.data(), 0); }, "k is 0"},
             {[&] { find(nullptr, 1); }, "null"},
             {[&] { search(index, query, 1, &no_probes); }, "nprobe is 0"},
             {[&] { search(untrained, query, 1); }, "not trained"},
             {[&] { untrained.add(1, query.data()); }, "not trained"},
             {[&] { IndexBinaryIVFSIMD(nullptr, 64, 4); }, "null"},
             {[&] { IndexBinaryIVFSIMD(&flat, 128, 4); }, "64"},
             {[&] { IndexBinaryIVFSIMD(&flat, 64, 0); }, "lists is 0"}});
}

// FAISS would write to a list that does not exist, and end the process.
TEST(IndexBinaryIVFSIMD, AQuantizerWithMoreVectorsThanLists) {
    Lists lists(64, 100, 5);
    auto& index = lists.index;
    const Codes codes = random_codes(3, 64, 1);
    const std::vector<idx_t> ids{7, 8, 9};
    const auto before = search(index, codes, 2);
    index.quantizer->add(3, codes.data());
    const char* reason = "expected one of 64 bits for each of";
    expect_throws(
            {{[&] { index.add(3, codes.data()); }, reason},
             {[&] { index.add_with_ids(3, codes.data(), ids.data()); }, reason},
             {[&] { search(index, codes, 2); }, reason}});
    const faiss::IDSelectorRange added(
            idx_t(index.nlist), idx_t(index.nlist) + 3);
    index.quantizer->remove_ids(added);
    expect_same(search(index, codes, 2), before);
}

/// Returns whether the index and its quantizer are of this library's classes.
bool is_simd(const faiss::IndexBinary* index) {
    auto* lists = dynamic_cast<const IndexBinaryIVFSIMD*>(index);
    return lists && lists->own_fields && lists->own_invlists &&
            dynamic_cast<const IndexBinaryFlatSIMD*>(lists->quantizer);
}

TEST(IndexBinaryIVFSIMD, IsBIVFAndItsFilesAreThoseOfFaiss) {
    const Codes codes = random_codes(400, 64, 1);
    const auto made = index_binary_factory(64, "BIVF4");
    EXPECT_TRUE(is_simd(made.get()));
    made->train(400, codes.data());
    made->add(400, codes.data());
    const auto found = search(*made, codes, 5);

    auto* quantizer = new faiss::IndexBinaryFlat(64);
    faiss::IndexBinaryIVF reference(quantizer, 64, 4);
    reference.own_fields = true;
    reference.train(400, codes.data());
    reference.add(400, codes.data());
    faiss::VectorIOWriter theirs;
    faiss::write_index_binary(&reference, &theirs);
    EXPECT_EQ(bytes_of(*made), theirs.data);

    const auto read = from_bytes<faiss::IndexBinary>(theirs.data);
    const auto clone = clone_binary_index(made.get());
    for (const faiss::IndexBinary* copy : {read.get(), clone.get()}) {
        EXPECT_TRUE(is_simd(copy));
        expect_same(search(*copy, codes, 5), found);
    }
    // behind a hash
    const auto behind = index_factory(8, "SIK64(gaussian,gamma=1),BIVF4");
    EXPECT_TRUE(is_simd(dynamic_cast<const IndexKernelHash&>(*behind).storage));
}

TEST(IndexBinaryIVFSIMD, TakesOverListsAndQuantizers) {
    const Codes codes = random_codes(200, 64, 1);
    faiss::IndexBinaryFlat quantizer(64);
    faiss::IndexBinaryIVF other(&quantizer, 64, 3);
    other.train(200, codes.data());
    other.add(200, codes.data());
    other.nprobe = 3;
    other.make_direct_map();
    faiss::IndexFlatL2 centroids(64);
    other.max_codes = 150;
    other.use_heap = false;
    other.verbose = true;
    other.cp.niter = 7;
    other.clustering_index = &centroids;
    {
        IndexBinaryIVFSIMD index(std::move(other));
        EXPECT_EQ(index.nprobe, 3);
        EXPECT_EQ(index.max_codes, 150);
        EXPECT_FALSE(index.use_heap);
        EXPECT_TRUE(index.verbose);
        EXPECT_TRUE(index.is_trained);
        EXPECT_EQ(index.cp.niter, 7);
        EXPECT_EQ(index.clustering_index, &centroids);
        index.max_codes = 0;
        EXPECT_FALSE(index.own_fields); // and so the quantizer stays
        EXPECT_EQ(index.quantizer, &quantizer);
        EXPECT_FALSE(other.own_invlists);
        EXPECT_EQ(index.ntotal, 200);
        EXPECT_EQ(search(index, codes, 1).distances, std::vector<int32_t>(200));
        Codes one(8);
        index.reconstruct(17, one.data());
        EXPECT_EQ(one, rows(codes, 8, 17, 18));
    }
    EXPECT_EQ(quantizer.ntotal, 3);
}

TEST(IndexBinaryIVFSIMD, CopiesTheCodesThatAreFound) {
    const int d = 72;
    Lists lists(d, 400, 6);
    auto& index = lists.index;
    index.nprobe = 2;
    const Codes queries = random_codes(5, d, 3);
    const idx_t k = 390; // more than two lists contain
    Codes recons(5 * k * d / 8, 7);
    const auto found = found_by<int32_t>(5, k, [&](int32_t* D, idx_t* I) {
        index.search_and_reconstruct(5, queries.data(), k, D, I, recons.data());
    });
    expect_same(found, search(index, queries, k));
    EXPECT_GE(found.labels[0], 0);
    EXPECT_EQ(found.labels[k - 1], -1);
    for (size_t i = 0; i < found.labels.size(); i++) {
        const idx_t id = found.labels[i];
        EXPECT_EQ(
                rows(recons, d / 8, i, i + 1),
                id < 0 ? Codes(d / 8, 255)
                       : rows(lists.codes, d / 8, (id - 1) / 3, (id + 2) / 3))
                << i;
    }
}

TEST(IndexBinaryIVFSIMD, CopiesCodesByIdWithoutADirectMap) {
    const int d = 64;
    Lists lists(d, 300, 4);
    auto& index = lists.index; // ids 1, 4, 7, ...
    Codes one(8);
    index.reconstruct_n(4, 1, one.data());
    EXPECT_EQ(one, rows(lists.codes, 8, 1, 2));
    index.reconstruct_n(0, 0, nullptr);
    index.reconstruct(7, one.data());
    EXPECT_EQ(one, rows(lists.codes, 8, 2, 3));
    Codes two(16);
    expect_throws(
            {{[&] { index.reconstruct_n(4, 2, two.data()); }, "id 5"},
             {[&] { index.reconstruct_n(-1, 1, two.data()); }, "id -1"},
             {[&] { index.reconstruct_n(4, -1, two.data()); }, "-1 codes"},
             {[&] { index.reconstruct_n(INT64_MAX, 2, two.data()); }, "id"},
             {[&] { index.reconstruct_n(INT64_MIN, 2, two.data()); }, "id -9"},
             {[&] { index.reconstruct(INT64_MIN + 5, two.data()); }, "id -9"},
             {[&] { index.reconstruct_n(0, 301, nullptr); }, "301 codes"},
             {[&] { index.reconstruct(2, one.data()); }, "id 2"}});

    IndexBinaryIVFSIMD numbered(index.quantizer, d, 4);
    numbered.add(300, lists.codes.data());
    Codes all(300 * 8);
    numbered.reconstruct_n(0, 300, all.data());
    EXPECT_EQ(all, lists.codes);
    numbered.reconstruct_n(40, 2, two.data());
    EXPECT_EQ(two, rows(lists.codes, 8, 40, 42));
}

TEST(IndexBinaryIVFSIMD, MergesListsThatFit) {
    Lists a(64, 300, 4), b(64, 200, 4), narrow(32, 10, 4), few(64, 10, 3);
    faiss::IndexBinaryFlat flat(64);
    const auto merge = [&](faiss::IndexBinary& other) {
        a.index.merge_from(other, 1000);
    };
    expect_throws(
            {{[&] { merge(narrow.index); }, "32 and 64 bits"},
             {[&] { merge(few.index); }, "lists"},
             {[&] { merge(flat); }, "inverted lists"},
             {[&] { merge(a.index); }, "merged with itself"}});
    Lists elsewhere(64, 100, 4);
    elsewhere.index.quantizer->reset();
    elsewhere.index.quantizer->add(4, random_codes(4, 64, 9).data());
    expect_throws({{[&] { merge(elsewhere.index); }, "centroids"}});
    EXPECT_EQ(a.index.ntotal, 300);
    merge(b.index);
    EXPECT_EQ(a.index.ntotal, 500);
    EXPECT_EQ(b.index.ntotal, 0);
    a.index.nprobe = 4;
    const Codes query = rows(b.codes, 8, 5, 6); // a code in both
    EXPECT_EQ(search(a.index, query, 1).distances.front(), 0);
    auto ids = search(a.index, query, 500).labels;
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(ids.front(), 1);
    EXPECT_EQ(ids.back(), 1000 + 3 * 199 + 1);

    Lists mapped(64, 0, 4);
    mapped.index.add(200, b.codes.data());
    mapped.index.make_direct_map();
    expect_throws({{[&] { merge(mapped.index); }, "direct map"}});
    EXPECT_EQ(mapped.index.ntotal, 200);
}

TEST(IndexBinaryIVFSIMD, IdsAreNeverGivenTwice) {
    Lists lists(64, 50, 4);
    IndexBinaryIVFSIMD& index = lists.index;
    const uint8_t* code = lists.codes.data();
    Codes found(8);
    const auto add_one = [&](faiss::IndexBinary& to, idx_t expected) {
        EXPECT_ANY_THROW(to.reconstruct(expected, found.data()));
        to.add(1, code);
        EXPECT_NO_THROW(to.reconstruct(expected, found.data()));
    };
    const idx_t largest = 3 * 49 + 1;
    add_one(index, largest + 1);
    EXPECT_EQ(index.remove_ids(faiss::IDSelectorRange(0, 100)), 33u);
    add_one(index, largest + 2);
    index.remove_ids(faiss::IDSelectorRange(largest + 2, largest + 3));
    add_one(index, largest + 3);
    const idx_t far = 1000;
    index.add_with_ids(1, code, &far);
    const idx_t none = -1;
    EXPECT_TRUE(throws([&] { index.add_with_ids(1, code, &none); }, "-1"));
    const auto copy = clone_binary_index(&index);
    add_one(*copy, far + 1);
    add_one(index, far + 1);

    Lists other(64, 50, 4);
    other.index.merge_from(index, 0);
    add_one(other.index, far + 2);
    index.reset();
    add_one(index, 0);
}

TEST(IndexBinaryIVFSIMD, ChangesLikeIndexBinaryIVF) {
    Lists lists(32, 500, 6);
    auto& index = lists.index;
    EXPECT_EQ(index.remove_ids(faiss::IDSelectorRange(100, 400)), 100u);
    EXPECT_EQ(index.ntotal, 400);
    const Codes queries = random_codes(4, 32, 3);
    lists.expect_search(queries, 450, 12, 6);
    const auto found = search(index, queries, 450);
    EXPECT_EQ(std::count(found.labels.begin(), found.labels.end(), -1), 200);
    index.reset();
    lists.expect_search(queries, 3, 12, 6);
}

} // namespace
