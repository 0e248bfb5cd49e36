// SPDX-License-Identifier: MIT
// Indexes that strings make, with ids of their own: each call must answer like
// that of an index without ids, with ids in the place of positions.

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/DistanceComputer.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexConcurrent.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/indexes/IndexIVFPQ4.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/index_ids.h>
#include <faiss_ext/indexes/index_tree.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "core/errors.h"
#include "indexes/index_parts.h"
#include "testing.h"
#include "testing_strings.h"

using namespace faiss_ext;
using namespace faiss_ext_test;
using testing_strings::d;

namespace {

constexpr idx_t n = 300, nq = 20;

/// n different ids in a random order.
std::vector<idx_t> random_ids(idx_t n) {
    std::vector<idx_t> ids(n);
    for (idx_t i = 0; i < n; i++) {
        ids[i] = 7 * i - 500;
    }
    ids[3] = idx_t(1) << 40;
    std::replace(ids.begin(), ids.end(), idx_t(-1), idx_t(-2));
    std::shuffle(ids.begin(), ids.end(), std::mt19937(5));
    return ids;
}

/// The distances and labels of a call, or that it threw.
template <class F>
Found<float> answer(F&& f) {
    try {
        return f();
    } catch (const std::exception&) {
        return {{}, {-4711}};
    }
}

struct EachIndexWithIds : testing::TestWithParam<testing_strings::Row> {
    const std::string text = GetParam().text;
    // FAISS's Flat and its inverse of PCA round differently in batches of
    // different sizes, and an index behind a lock chooses them by the time that
    // they take
    const float rounding =
            text.ends_with(",Flat") || text.starts_with("PCA") ? 1e-5f : 0;
    const Floats x = normalized_histograms(n, d, 1),
                 q = normalized_histograms(nq, d, 2);
    const std::vector<idx_t> ids = random_ids(n);
    std::unique_ptr<faiss::Index> plain, own;

    void SetUp() override {
        plain = index_factory(d, text);
        plain->train(n, x.data());
        own = clone_index(plain.get());
        add(200);
        add(n - 200);
    }

    /// Adds vectors to both indexes.
    void add(idx_t count) {
        const idx_t begin = plain->ntotal;
        plain->add(count, &x[begin * d]);
        own->add_with_ids(count, &x[begin * d], &ids[begin]);
    }

    std::vector<idx_t> as_ids(std::vector<idx_t> labels) const {
        for (idx_t& label : labels) {
            label = label < 0 ? label : ids[label];
        }
        return labels;
    }

    /// f(index, ids of positions) gives the same answers for both.
    template <class F>
    void expect_equal(const char* what, F&& f) const {
        std::vector<idx_t> positions(n);
        std::iota(positions.begin(), positions.end(), idx_t(0));
        auto expected = answer([&] { return f(*plain, positions); });
        expected.labels = as_ids(expected.labels);
        const auto found = answer([&] { return f(*own, ids); });
        EXPECT_EQ(found.labels, expected.labels) << what;
        EXPECT_TRUE(std::equal(
                found.distances.begin(),
                found.distances.end(),
                expected.distances.begin(),
                expected.distances.end(),
                [&](float a, float b) {
                    return a == b || (std::isnan(a) && std::isnan(b)) ||
                            std::abs(a - b) <= rounding;
                }))
                << what;
    }

    void expect_alike(const Found<float>& a, const Found<float>& b) const {
        EXPECT_EQ(a.labels, b.labels);
        for (size_t i = 0; i < a.distances.size(); i++) {
            EXPECT_NEAR(a.distances[i], b.distances[i], rounding);
        }
    }
};

INSTANTIATE_TEST_SUITE_P(
        Strings,
        EachIndexWithIds,
        testing::ValuesIn(testing_strings::indexes),
        testing_strings::name_of_row);

INSTANTIATE_TEST_SUITE_P(
        FlatOfFaiss,
        EachIndexWithIds,
        testing::Values(
                testing_strings::Row{"Concurrent,Flat"},
                testing_strings::Row{"Concurrent,IDMap,Flat"}),
        testing_strings::name_of_row);

TEST_P(EachIndexWithIds, AnswersLikeOneWithPositions) {
    using Ids = std::vector<idx_t>;
    expect_equal("search", [&](auto& index, const Ids&) {
        return search(index, q, 7);
    });
    expect_equal("search for all", [&](auto& index, const Ids&) {
        return search(index, q, n + 3);
    });
    expect_equal("search with a selector", [&](auto& index, const Ids& of) {
        const faiss::IDSelectorBatch sel(100, of.data());
        faiss::SearchParameters params;
        params.sel = const_cast<faiss::IDSelectorBatch*>(&sel);
        return search(index, q, 7, &params);
    });
    expect_equal(
            "search with another selector", [&](auto& index, const Ids& of) {
                const faiss::IDSelectorBatch few(9, of.data());
                const faiss::IDSelectorNot sel(&few);
                faiss::SearchParameters params;
                params.sel = const_cast<faiss::IDSelectorNot*>(&sel);
                return search(index, q, 7, &params);
            });
    // between two distances, since their last bits depend on the batch
    const auto near = search(*plain, q, 9).distances;
    const float radius = (near[7] + near[8]) / 2;
    expect_equal("range_search", [&](auto& index, const Ids&) {
        Found<float> found;
        for (const auto& range : range_search(index, q, radius)) {
            for (const auto& [id, distance] : range) {
                found.labels.push_back(id);
                found.distances.push_back(distance);
            }
            found.labels.push_back(-2);
        }
        return found;
    });
    expect_equal("search_and_reconstruct", [&](auto& index, const Ids&) {
        auto found = search(index, q, 4);
        Floats recons(nq * 4 * d, 3);
        index.search_and_reconstruct(
                nq,
                q.data(),
                4,
                found.distances.data(),
                found.labels.data(),
                recons.data());
        found.distances.insert(
                found.distances.end(), recons.begin(), recons.end());
        return found;
    });
    expect_equal("assign", [&](auto& index, const Ids&) {
        Found<float> found{{}, Ids(nq)};
        index.assign(nq, q.data(), found.labels.data());
        return found;
    });
    expect_equal("reconstruct", [&](auto& index, const Ids& of) {
        Floats one(d);
        index.reconstruct(of[17], one.data());
        return Found<float>{one, {}};
    });
    expect_equal("reconstruct_batch", [&](auto& index, const Ids& of) {
        Floats some(5 * d);
        for (idx_t i = 0; i < 5; i++) { // FAISS does so in a parallel loop
            index.reconstruct(of[50 + i], &some[i * d]);
        }
        index.reconstruct_batch(5, &of[50], some.data());
        return Found<float>{some, {}};
    });
    expect_equal("get_distance_computer", [&](auto& index, const Ids& of) {
        const std::unique_ptr<faiss::DistanceComputer> distances(
                index.get_distance_computer());
        distances->set_query(q.data());
        Floats all;
        for (const idx_t id : {of[0], of[44], of[299]}) {
            all.push_back((*distances)(id));
        }
        all.push_back(distances->symmetric_dis(of[1], of[2]));
        return Found<float>{all, {}};
    });
    expect_equal("compute_kernel_values", [&](auto& index, const Ids& of) {
        Floats values(nq * 3);
        Ids wanted(nq * 3);
        for (size_t i = 0; i < wanted.size(); i++) {
            wanted[i] = i % 5 == 4 ? -1 : of[i];
        }
        compute_kernel_values(
                index, nq, q.data(), 3, wanted.data(), values.data());
        return Found<float>{values, {}};
    });
    expect_equal("search_scores", [&](auto& index, const Ids&) {
        return found_by<float>(nq, 6, [&](float* scores, idx_t* labels) {
            if (auto* flat = dynamic_cast<const IndexFlatKernel*>(&index)) {
                flat->search_scores(nq, q.data(), 6, scores, labels);
            } else if (
                    auto* graph =
                            dynamic_cast<const IndexHNSWKernel*>(&index)) {
                graph->search_scores(nq, q.data(), 6, scores, labels);
            } else {
                std::fill_n(labels, nq * 6, -1);
            }
        });
    });
    expect_equal("compute_distance_subset", [&](auto& index, const Ids& of) {
        Floats values(nq * 3);
        Ids wanted(of.begin(), of.begin() + nq * 3);
        wanted[4] = -1;
        if (auto* flat = dynamic_cast<const IndexFlatKernel*>(&index)) {
            flat->compute_distance_subset(
                    nq, q.data(), 3, values.data(), wanted.data());
        }
        return Found<float>{values, {}};
    });
}

TEST_P(EachIndexWithIds, FilesAndClonesKeepIds) {
    const auto clone = clone_index(own.get());
    const Bytes bytes = bytes_of(*own);
    const auto read = from_bytes(bytes);
    const auto found = search(*own, q, 5);
    for (faiss::Index* copy : {clone.get(), read.get()}) {
        EXPECT_EQ(index_text(*copy), index_text(*own));
        EXPECT_EQ(index_string(*copy), index_string(*own));
        expect_alike(search(*copy, q, 5), found);
        EXPECT_EQ(index_ids(*copy), index_ids(*own));
        if (text.find("BHash") == text.npos) { // it has no order
            EXPECT_EQ(bytes_of(*copy), bytes);
        }
        EXPECT_TRUE(
                throws([&] { copy->add_with_ids(1, x.data(), &ids[9]); },
                       "already in use"));
    }
    // each byte of the ids matters
    const size_t step = std::max<size_t>(1, bytes.size() / 300);
    for (size_t i = 0; i < bytes.size(); i += step) {
        Bytes bad = bytes;
        bad[i] ^= 1;
        EXPECT_NE(error_of([&] { from_bytes(bad); }), "") << i;
    }
}

TEST_P(EachIndexWithIds, BadCallsChangeNothing) {
    for (faiss::Index* index : {own.get(), plain.get()}) {
        const Bytes before = bytes_of(*index);
        Floats bad = rows(x, d, 0, 2);
        bad[d] = NAN;
        const idx_t used = index == own.get() ? ids[5] : 5;
        const std::vector<idx_t> fresh{5000, 5001}, twice{5000, 5000},
                again{5000, used}, none{5000, -1}, absent{-77, 123456};
        const auto add = [&](const std::vector<idx_t>& ids, const Floats& v) {
            return [index, &ids, &v] {
                index->add_with_ids(2, v.data(), ids.data());
            };
        };
        expect_throws(
                {{add(twice, x), "id 5000 is given twice"},
                 {add(again, x),
                  "id " + std::to_string(used) + " is already in use"},
                 {add(none, x), "an id is -1"},
                 {add(fresh, bad), ""},
                 {[&] { update_vectors(*index, 2, fresh.data(), x.data()); },
                  "no vector with id 5000"}});
        const faiss::IDSelectorBatch sel(2, absent.data());
        EXPECT_EQ(index->remove_ids(sel), 0u);
        index->add_with_ids(0, nullptr, nullptr);
        EXPECT_EQ(bytes_of(*index), before);
    }
}

TEST_P(EachIndexWithIds, ARefusedFirstChangeLeavesNoTables) {
    Floats bad = rows(x, d, 0, 1);
    bad[0] = NAN;
    const idx_t id = 5;
    EXPECT_TRUE(throws([&] { update_vectors(*plain, 1, &id, bad.data()); }));
    EXPECT_FALSE(has_id_table(plain.get()));
    EXPECT_FALSE(has_direct_map(plain.get()));
}

TEST_P(EachIndexWithIds, NewIdsWereNeverGiven) {
    for (faiss::Index* index : {own.get(), plain.get()}) {
        const idx_t gone = index == own.get() ? ids[n - 1] : n - 1;
        const faiss::IDSelectorBatch sel(1, &gone);
        if (!error_of([&] { index->remove_ids(sel); }).empty()) {
            return; // a graph, or hash tables
        }
        EXPECT_EQ(index->ntotal, n - 1);
        const std::vector<idx_t> before = index_ids(*index);
        EXPECT_EQ(std::count(before.begin(), before.end(), gone), 0);
        const idx_t most = *std::max_element(before.begin(), before.end());
        for (const bool is_copy : {false, true}) {
            const auto copy = is_copy ? clone_index(index) : nullptr;
            faiss::Index* to = is_copy ? copy.get() : index;
            to->add(1, x.data());
            const std::vector<idx_t> now = index_ids(*to);
            const idx_t added = *std::max_element(now.begin(), now.end());
            EXPECT_GT(added, std::max(most, gone));
        }
        index->reset();
        EXPECT_EQ(index->ntotal, 0);
        index->add(2, x.data());
        std::vector<idx_t> two = index_ids(*index); // in the order of lists
        std::sort(two.begin(), two.end());
        EXPECT_EQ(two, (std::vector<idx_t>{0, 1}));
    }
}

TEST_P(EachIndexWithIds, Merge) {
    const auto empty = clone_index(plain.get());
    empty->reset();
    const auto filled = [&](idx_t begin, idx_t end, bool with_ids) {
        auto index = clone_index(empty.get());
        if (with_ids) {
            index->add_with_ids(end - begin, &x[begin * d], &ids[begin]);
        } else {
            index->add(end - begin, &x[begin * d]);
        }
        return index;
    };
    {
        auto one = filled(0, 200, false);
        const auto other = filled(200, n, false);
        if (!error_of([&] { one->merge_from(*other, 200); }).empty()) {
            return; // a graph, for example
        }
        EXPECT_EQ(other->ntotal, 0);
        expect_alike(search(*one, q, 7), search(*plain, q, 7));
    }
    {
        const auto one = filled(0, 200, true), other = filled(200, n, true);
        one->merge_from(*other);
        EXPECT_EQ(other->ntotal, 0);
        expect_alike(search(*one, q, 7), search(*own, q, 7));
        // new ids were never given, even in the emptied index
        const auto copy = clone_index(other.get());
        for (auto* emptied : {other.get(), copy.get()}) {
            emptied->add(1, x.data());
            EXPECT_EQ(
                    index_ids(*emptied),
                    std::vector<idx_t>{
                            *std::max_element(ids.begin() + 200, ids.end()) +
                            1});
            emptied->reset();
            emptied->add(1, x.data());
            EXPECT_EQ(index_ids(*emptied), std::vector<idx_t>{0});
        }
    }
    for (const bool first_has_ids : {false, true}) {
        const auto one = filled(0, 200, first_has_ids);
        const auto other = filled(200, n, !first_has_ids);
        const Bytes before = bytes_of(*one);
        const idx_t used = first_has_ids ? ids[0] - 50 : 1 - ids[200];
        EXPECT_TRUE(throws(
                [&] { one->merge_from(*other, used); }, "is already in use"));
        EXPECT_EQ(bytes_of(*one), before);
        one->merge_from(*other, 10000);
        auto expected = search(*plain, q, 7);
        for (idx_t& label : expected.labels) {
            if (label >= 0) {
                const bool has_id = first_has_ids == (label < 200);
                label = (has_id ? ids[label] : label % 200) +
                        (label < 200 ? 0 : 10000);
            }
        }
        expect_alike(search(*one, q, 7), expected);
    }
}

TEST_P(EachIndexWithIds, HandMadeMapsAreRightOrRefused) {
    plain->reset();
    for (auto* index : {plain.get(), own.get()}) { // the graphs differ
        walk_over_all(*index);
    }
    faiss::IndexIDMap map(plain.get());
    map.add_with_ids(n, x.data(), ids.data());
    const auto found = search(map, q, 5);
    const faiss::IDSelectorBatch sel(1, &ids[4]);
    if (error_of([&] { map.remove_ids(sel); }).empty()) {
        own->remove_ids(sel);
        const auto expected = search(*own, q, 5);
        const auto after = search(map, q, 5);
        for (size_t i = 0; i < after.distances.size(); i++) {
            EXPECT_NEAR(after.distances[i], expected.distances[i], 1e-5);
        }
        for (idx_t i = 0; i < n; i++) {
            Floats a(d), b(d);
            if (i != 4 &&
                error_of([&] { own->reconstruct(ids[i], a.data()); }).empty()) {
                const auto one = search(map, rows(x, d, i, i + 1), 1);
                EXPECT_EQ(one.labels[0], ids[i]);
            }
        }
    } else {
        expect_alike(search(map, q, 5), found);
    }
}

// The vectors of other threads are not those of a call from within.
TEST(IndexWithIds, SearchesInSeveralThreads) {
    const Floats x = normalized_histograms(n, d, 1);
    const auto ids = random_ids(n);
    const auto index = index_factory(d, "KFlat(chi2)");
    index->add_with_ids(n, x.data(), ids.data());
    const auto expected = search(*index, x, 3);
    EXPECT_EQ(
            [&] {
                std::vector<idx_t> first;
                for (idx_t i = 0; i < n; i++) {
                    first.push_back(expected.labels[3 * i]);
                }
                return first;
            }(),
            ids);
    bool all_equal = true;
#pragma omp parallel for reduction(&& : all_equal)
    for (int i = 0; i < 8; i++) {
        const auto found = search(*index, x, 3);
        all_equal = all_equal && found.labels == expected.labels;
    }
    EXPECT_TRUE(all_equal);
}

std::unique_ptr<faiss::Index> filled(const char* text, const Floats& x) {
    auto index = index_factory(d, text);
    index->train(n, x.data());
    const auto ids = random_ids(n);
    index->add_with_ids(n, x.data(), ids.data());
    return index;
}

// FAISS's lists leave holes after a removal.
TEST(IndexWithIds, ListsThatCannotRemoveByPositions) {
    const Floats x = normalized_histograms(n, d, 1);
    const auto ids = random_ids(n);
    for (const char* text :
         {"HKM1(chi2),IVF4,RQ4x4",

          "HKM1(chi2),IVF4,ITQ16,SH1.2"}) {
        SCOPED_TRACE(text);
        const auto index = filled(text, x);
        const auto found = search(*index, x, 1).labels;
        const faiss::IDSelectorBatch sel(3, ids.data());
        const bool removes = error_of([&] { index->remove_ids(sel); }).empty();
        EXPECT_EQ(index->ntotal, removes ? n - 3 : n);
        const auto now = search(*index, x, 1).labels;
        for (idx_t i = 0; i < n; i++) {
            if (!removes || !sel.is_member(found[i])) {
                EXPECT_EQ(now[i], found[i]);
            }
        }
    }
}

// FAISS does not move vectors of these lists to other ids, so there is no
// table.
TEST(IndexWithIds, ListsWithoutATable) {
    const Floats x = normalized_histograms(n, d, 1);
    for (const char* text :
         {"HKM1(chi2),IVF4,PQ4x4fs",
          "RFF16(gaussian),IVF4,PQ4x4fs",
          "Concurrent,IVF4,PQ4x4fs",
          "HKM1(chi2),IVF4,ITQ16,SH1.2"}) {
        SCOPED_TRACE(text);
        const auto index = index_factory(d, text);
        index->train(n, x.data());
        std::vector<idx_t> ids(50);
        std::iota(ids.begin(), ids.end(), 1000);
        index->add_with_ids(50, x.data(), ids.data());
        const auto refused = [&](std::vector<idx_t> wrong, const char* why) {
            EXPECT_TRUE(throws(
                    [&] {
                        index->add_with_ids(
                                idx_t(wrong.size()), x.data(), wrong.data());
                    },
                    why));
            EXPECT_EQ(index->ntotal, 50);
        };
        refused({3, 1007}, "id 1007 is already in use");
        refused({3, 4, 3}, "id 3 is given twice");
        refused({3, -1}, "an id is -1");
        index->add(10, x.data());
        ids.resize(60);
        std::iota(ids.begin(), ids.end(), 1000);
        std::vector<idx_t> now = index_ids(*index);
        std::sort(now.begin(), now.end());
        EXPECT_EQ(now, ids);
        EXPECT_TRUE(
                throws([&] { update_vectors(*index, 1, &ids[0], x.data()); },
                       "cannot replace vectors in lists of this class"));
    }
}

// FAISS takes a list for empty if the number of its vectors is a multiple of a
// block's bytes, and would write behind it. PQ4x4fs has blocks of 64 bytes.
TEST(IndexWithIds, ListsThatFAISSCannotAppendTo) {
    if (faiss_version < 10704) {
        GTEST_SKIP() << "this version of FAISS does not merge such lists";
    }
    const Floats x = normalized_histograms(n, d, 1);
    for (const char* text :
         {"HKM1(chi2),IVF1,PQ4x4fs",
          "HKM1(chi2),IVF1,PQ4x4fs,Refine(KFlat(chi2))"}) {
        SCOPED_TRACE(text);
        const auto empty = index_factory(d, text);
        empty->train(n, x.data());
        const bool keeps_ids =
                !dynamic_cast<const faiss::IndexRefine*>(empty.get());
        for (const idx_t size : {63, 64, 65, 128}) {
            const auto index = clone_index(empty.get());
            const auto other = clone_index(empty.get());
            const auto merge = [&] {
                index->merge_from(*other, keeps_ids ? index->ntotal : 0);
            };
            index->add(size, x.data());
            other->add(10, x.data() + size * d);
            if (size % 64 == 0) {
                const std::string why = "list 0 of IndexIVFPQFastScan has " +
                        std::to_string(size) + " vectors, a multiple of 64";
                EXPECT_THROW(merge(), UnsupportedError);
                EXPECT_TRUE(throws(merge, why));
                EXPECT_EQ(index->ntotal, size);
                EXPECT_EQ(other->ntotal, 10);
                index->add(1, x.data() + (size + 10) * d);
            }
            merge();
            const auto all = clone_index(empty.get());
            all->add(size, x.data());
            if (size % 64 == 0) {
                all->add(1, x.data() + (size + 10) * d);
            }
            all->add(10, x.data() + size * d);
            expect_same(search(*index, x, 5), search(*all, x, 5));
        }
    }
}

// FAISS takes their ids for positions, and would end the process.
TEST(IndexWithIds, IVFPQRTakesPositions) {
    const Floats x = normalized_histograms(n, d, 1);
    const auto index = index_factory(d, "HKM1(chi2),IVF4,PQ4+2");
    index->train(n, x.data());
    std::vector<idx_t> ids(50);
    std::iota(ids.begin(), ids.end(), 1000);
    EXPECT_TRUE(throws(
            [&] { index->add_with_ids(50, x.data(), ids.data()); },
            "IndexIVFPQR takes ids for positions; expected the ids from 0"));
    index->add(40, x.data());
    std::iota(ids.begin(), ids.end(), 40);
    index->add_with_ids(10, x.data() + 40 * d, ids.data());
    EXPECT_EQ(search(*index, rows(x, d, 0, 50), 1).labels.size(), 50u);
    EXPECT_EQ(index->ntotal, 50);
}

// A list may have ids of its own, as in files of earlier versions.
TEST(IndexWithIds, ListsWithOtherIds) {
    const Floats x = normalized_histograms(n, d, 1);
    const auto made = index_factory(d, "KIVF4");
    made->train(n, x.data());
    IndexIVFPQ4 plain(dynamic_cast<IndexIVFPQ4&>(*made)); // without a table
    std::vector<idx_t> ids(50);
    std::iota(ids.begin(), ids.end(), 1000);
    plain.add_with_ids(50, x.data(), ids.data());
    const auto index = clone_index(&plain);
    const faiss::IDSelectorAll all;
    EXPECT_EQ(index->remove_ids(all), 50u);
    ids.resize(10);
    index->add_with_ids(10, x.data(), ids.data());
    const auto found = search(*index, rows(x, d, 0, 10), 1);
    for (const idx_t id : found.labels) {
        EXPECT_TRUE(id >= 1000 && id < 1010) << id;
    }
    EXPECT_EQ(index_ids(*index).size(), 10u);
}

TEST(IndexWithIds, MergesOnlyItsKind) {
    const Floats x = normalized_histograms(n, d, 1);
    const auto index = filled("KFlat(chi2)", x);
    IndexFlatKernel plain(dynamic_cast<IndexFlatKernel&>(*index));
    EXPECT_TRUE(throws([&] { index->merge_from(plain); }, "table of ids"));
    EXPECT_TRUE(throws([&] { plain.merge_from(*index); }, "table of ids"));
    EXPECT_EQ(index->ntotal, n);
    EXPECT_EQ(plain.ntotal, n);
    // FAISS's flat index becomes one of another class in a file
    const auto mapped = filled("HKM1(chi2),Flat", x);
    const auto copy = clone_index(mapped.get());
    mapped->merge_from(*copy, 100000);
    EXPECT_EQ(mapped->ntotal, 2 * n);
}

TEST(IndexWithIds, PartsWithIdsAreRefused) {
    const Floats x = normalized_histograms(n, d, 1);
    const auto index = index_factory(d, "PCA8,KFlat(linear)");
    index->train(n, x.data());
    index->add(10, x.data());
    auto& part = *dynamic_cast<faiss::IndexPreTransform&>(*index).index;
    const idx_t nine = 9;
    upsert(part, 1, x.data(), &nine);
    const faiss::IDSelectorRange first(0, 1);
    // the part keeps the ids
    EXPECT_EQ(index->remove_ids(first), 1u);
    EXPECT_EQ(index->ntotal, 9);
    EXPECT_EQ(part.ntotal, 9);
    index->add(2, x.data());
    EXPECT_EQ(index->ntotal, 11);

    const auto refine = filled("KFlat(linear),Refine(KFlat(chi2))", x);
    auto& base = *dynamic_cast<faiss::IndexRefine&>(*refine).base_index;
    EXPECT_EQ(base.remove_ids(first), 1u);
    base.add(1, x.data());
    EXPECT_TRUE(throws([&] { search(*refine, x, 3); }, "ids of its own"));
}

TEST(IndexWithIds, CountsAreCheckedBeforeARemoval) {
    const Floats x = normalized_histograms(n, d, 1);
    const auto ids = random_ids(n);
    const faiss::IDSelectorBatch sel(1, ids.data());
    for (const char* text :
         {"SIK64(gaussian),BIVF4",
          "SIK64(gaussian),BFlat",
          "HKM1(chi2),IVF4,Flat",
          "HKM1(chi2),PCAR8,KIVF4"}) {
        const auto index = filled(text, x);
        if (auto* hash = dynamic_cast<IndexKernelHash*>(index.get())) {
            hash->storage->reset();
        } else {
            dynamic_cast<faiss::IndexPreTransform&>(*index).index->reset();
        }
        EXPECT_TRUE(throws(
                [&] { index->remove_ids(sel); }, "its parts do not match"))
                << text;
    }
}

TEST(IndexWithIds, CountsAreCheckedBeforeATableIsMade) {
    const Floats x = normalized_histograms(n, d, 1);
    const idx_t id = 1;
    const faiss::IDSelectorRange sel(0, 3);
    for (const char* text :
         {"HNSW8,KFlat(chi2)",
          "SIK64(gaussian),BFlat",
          "PCA8,KFlat(linear)",
          "SIK64(gaussian),BFlat,Refine(KFlat(chi2))",
          "Concurrent,HNSW8,KFlat(chi2)"}) {
        SCOPED_TRACE(text);
        const auto index = index_factory(d, text);
        index->train(n, x.data());
        index->add(n, x.data());
        faiss::Index* inside = index.get();
        if (auto* shared = dynamic_cast<IndexConcurrent*>(inside)) {
            inside = shared->index;
        }
        if (auto* graph = dynamic_cast<faiss::IndexHNSW*>(inside)) {
            graph->storage->remove_ids(sel);
        } else if (auto* hash = dynamic_cast<IndexKernelHash*>(inside)) {
            hash->storage->remove_ids(sel);
        } else if (auto* refine = dynamic_cast<faiss::IndexRefine*>(inside)) {
            refine->refine_index->remove_ids(sel);
        } else {
            dynamic_cast<faiss::IndexPreTransform&>(*inside).index->remove_ids(
                    sel);
        }
        const char* reason = "its parts do not match";
        expect_throws(
                {{[&] { index->add_with_ids(1, x.data(), &id); }, reason},
                 {[&] { index->remove_ids(sel); }, reason},
                 {[&] { update_vectors(*index, 1, &id, x.data()); }, reason},
                 {[&] { upsert(*index, 1, x.data(), &id); }, reason}});
    }
}

TEST(IndexWithIds, TakesNoVectorsWhereFaissDoesNot) {
    for (const char* text :
         {"HKM1(chi2),PQ12x4fs", "PQ12x4fs,Refine(KFlat(chi2))"}) {
        const Floats x = normalized_histograms(n, d, 1);
        const auto index = index_factory(d, text);
        index->train(n, x.data());
        index->add(0, x.data());
        index->add_with_ids(0, x.data(), nullptr);
        EXPECT_EQ(index->ntotal, 0);
    }
}

TEST(IndexWithIds, NothingIsRemovedFromIndexesThatWouldStoreWrongCodesThen) {
    const Floats x = normalized_histograms(n, d, 1);
    const faiss::IDSelectorRange sel(0, 10);
    for (const char* text :
         {"HKM1(chi2),PQ12x4fs",
          "IDMap,HKM1(chi2),PQ12x4fs",
          "PQ12x4fs,Refine(KFlat(chi2))"}) {
        const auto index = filled(text, x);
        EXPECT_TRUE(
                throws([&] { index->remove_ids(sel); },
                       "IndexPQFastScan cannot remove vectors"))
                << text;
        EXPECT_EQ(index->ntotal, n);
    }
}

TEST(IndexWithIds, UnknownIdsAreFarAway) {
    const Floats x = normalized_histograms(n, d, 1);
    const auto index = filled("HKM1(chi2),Flat", x);
    const std::unique_ptr<faiss::DistanceComputer> distances(
            index->get_distance_computer());
    distances->set_query(x.data());
    EXPECT_EQ((*distances)(123456), std::numeric_limits<float>::max());
}

struct EachBinaryIndexWithIds : testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(
        Strings,
        EachBinaryIndexWithIds,
        testing::Values(
                "BKFlat(jaccard)",
                "BHNSW8,BKFlat(jaccard)",
                "BFlat,Refine(BKFlat(jaccard))",
                "BIVF4,Refine(BKFlat(jaccard))",
                "CWS64,BFlat,Refine(BKFlat(dice))",
                "BPerm(M=3,B=300)",
                "SIK64(gaussian),BFlat",
                "SIK64(gaussian),BIVF4",
                "SIK64(gaussian),BHNSW8",
                "SIK64(gaussian),BHash8",
                "SIK64(gaussian),BPerm(M=3,B=300)",
                "IDMap,BKFlat(jaccard)",
                "IDMap,BHNSW8,BKFlat(jaccard)",
                "IDMap,BHNSW8,Refine(BKFlat(jaccard))",
                "BConcurrent,BHNSW8,BKFlat(jaccard)",
                "BConcurrent,CWS64,BFlat,Refine(BKFlat(jaccard))",
                "BConcurrent,BFlat",
                "BConcurrent,BIVF4",
                "BConcurrent,BHNSW8",
                "BConcurrent,BHash8"),
        testing_strings::name_of_row);

TEST_P(EachBinaryIndexWithIds, Changes) {
    const std::string text = GetParam();
    const bool has_hash = text.find("SIK") == 0;
    const auto plain = index_binary_factory(has_hash ? d : 64, text);
    if (auto* hash = dynamic_cast<IndexBinaryKernelHash*>(plain.get())) {
        const Floats v = normalized_histograms(n, d, 1);
        hash->train(n, v.data());
    }
    const Bytes x = random_bytes(n * 8, 3);
    plain->train(n, x.data());
    const auto own = clone_binary_index(plain.get());
    const auto ids = random_ids(n);
    plain->add(n, x.data());
    own->add_with_ids(n, x.data(), ids.data());
    const auto check = [&](const faiss::IndexBinary& index) {
        auto expected = search(*plain, x, 4);
        for (idx_t& label : expected.labels) {
            label = label < 0 ? label : ids[label];
        }
        expect_same(search(index, x, 4), expected);
    };
    check(*own);
    check(*clone_binary_index(own.get()));
    check(*reread(*own));
    bool found[2];
    const idx_t wanted[] = {ids[8], 1234567};
    contains(*own, 2, wanted, found);
    EXPECT_TRUE(found[0] && !found[1]);
    EXPECT_TRUE(
            throws([&] { own->add_with_ids(1, x.data(), &ids[0]); },
                   "already in use"));
    const faiss::IDSelectorBatch sel(1, &ids[8]);
    if (error_of([&] { own->remove_ids(sel); }).empty()) {
        EXPECT_EQ(own->ntotal, n - 1);
        const idx_t last = *std::max_element(ids.begin(), ids.end());
        own->remove_ids(faiss::IDSelectorBatch(1, &last));
        for (const auto& copy : {clone_binary_index(own.get()), reread(*own)}) {
            copy->add(1, x.data());
            bool given_again = true;
            contains(*copy, 1, &last, &given_again);
            EXPECT_FALSE(given_again);
        }
        own->add_with_ids(
                1,
                &x[8 * (std::find(ids.begin(), ids.end(), last) - ids.begin())],
                &last);
        contains(*own, 2, wanted, found);
        EXPECT_FALSE(found[0]);
        own->add_with_ids(1, &x[8 * 8], &ids[8]);
        const auto again = search(*own, x, 1);
        EXPECT_EQ(again.distances, search(*plain, x, 1).distances);
    } else {
        check(*own);
    }
}

/// Merges two indexes twice, the second time after new vectors went into the
/// emptied one, then removes ids.
template <class Index, class Add, class Search, class Copies>
void merge_twice(
        const Index& empty,
        bool a_has_ids,
        bool b_has_ids,
        Add&& add,
        Search&& search_own,
        Copies&& copies) {
    const auto a = copies(empty)[0], b = copies(empty)[0];
    std::map<idx_t, idx_t> in_a, in_b; // positions in x by id
    const auto fill = [&](Index& index,
                          auto& rows,
                          idx_t begin,
                          idx_t end,
                          idx_t first_id) {
        std::vector<idx_t> ids;
        for (idx_t i = begin; i < end; i++) {
            const idx_t id = first_id < 0 ? i - begin : first_id + i;
            rows[id] = i;
            ids.push_back(id);
        }
        add(index, begin, end, first_id < 0 ? nullptr : ids.data());
    };
    const auto check = [&](const Index& index, const auto& rows) {
        ASSERT_EQ(index.ntotal, idx_t(rows.size()));
        const auto found = index_ids(index);
        std::set<idx_t> expected;
        for (const auto& [id, row] : rows) {
            expected.insert(id);
        }
        EXPECT_EQ(std::set<idx_t>(found.begin(), found.end()), expected);
        search_own(index, rows);
    };
    fill(*a, in_a, 0, 100, a_has_ids ? 3000 : -1);
    fill(*b, in_b, 100, 160, b_has_ids ? 5000 : -1);
    const auto merge = [&](idx_t add_id) {
        a->merge_from(*b, add_id);
        for (const auto& [id, row] : in_b) {
            in_a[id + add_id] = row;
        }
        in_b.clear();
        check(*b, in_b);
    };
    merge(a_has_ids || b_has_ids ? 10000 : 100);
    check(*a, in_a);
    // new ids were never given if an index had ids of its own
    const idx_t next = b_has_ids ? 5160 : a_has_ids ? 60 : 0;
    for (const auto& copy : copies(*b)) {
        check(*copy, in_b);
    }
    add(*b, 160, 170, nullptr);
    for (idx_t i = 0; i < 10; i++) {
        in_b[next + i] = 160 + i;
    }
    check(*b, in_b);
    fill(*b, in_b, 170, 180, 20000);
    check(*b, in_b);
    for (const auto& copy : copies(*b)) {
        check(*copy, in_b);
    }
    merge(50000);
    check(*a, in_a);
    std::vector<idx_t> gone;
    for (const auto& [id, row] : in_a) {
        if (row % 3 == 0) {
            gone.push_back(id);
        }
    }
    const faiss::IDSelectorBatch sel(gone.size(), gone.data());
    EXPECT_EQ(a->remove_ids(sel), gone.size());
    for (const idx_t id : gone) {
        in_a.erase(id);
    }
    check(*a, in_a);
    for (const auto& copy : copies(*a)) {
        check(*copy, in_a);
    }
}

constexpr bool merged_ids[][2] = {
        {false, false},
        {false, true},
        {true, false},
        {true, true}};

struct EachBinaryMerge : testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(
        Strings,
        EachBinaryMerge,
        testing::Values(
                "BFlat",
                "BIVF4",
                "BKFlat(jaccard)",
                "BHNSW8,BKFlat(jaccard)",
                "BIVF4,Refine(BKFlat(jaccard))",
                "CWS64,BFlat,Refine(BKFlat(jaccard))",
                "SIK64(gaussian),BFlat",
                "SIK64(gaussian),BIVF4",
                "BConcurrent,BFlat",
                "BConcurrent,BIVF4"),
        testing_strings::name_of_row);

TEST_P(EachBinaryMerge, LeavesIndexesThatCanBeUsed) {
    const std::string text = GetParam();
    const bool has_hash = text.find("SIK") == 0;
    const auto empty = index_binary_factory(has_hash ? d : 64, text);
    if (auto* hash = dynamic_cast<IndexBinaryKernelHash*>(empty.get())) {
        hash->train(n, normalized_histograms(n, d, 1).data());
    }
    const Bytes x = random_bytes(n * 8, 3);
    empty->train(n, x.data());
    const auto add =
            [&](auto& index, idx_t begin, idx_t end, const idx_t* ids) {
                if (ids) {
                    index.add_with_ids(end - begin, &x[begin * 8], ids);
                } else {
                    index.add(end - begin, &x[begin * 8]);
                }
            };
    const auto search_own = [&](const auto& index, const auto& rows) {
        for (const auto& [id, row] : rows) {
            const Bytes one(&x[row * 8], &x[row * 8] + 8);
            EXPECT_EQ(search(index, one, 1).labels[0], id);
        }
    };
    const auto copies = [](const faiss::IndexBinary& index) {
        std::vector<std::unique_ptr<faiss::IndexBinary>> all;
        all.push_back(clone_binary_index(&index));
        all.push_back(reread(index));
        return std::array{
                std::shared_ptr<faiss::IndexBinary>(std::move(all[0])),
                std::shared_ptr<faiss::IndexBinary>(std::move(all[1]))};
    };
    for (const auto& [a, b] : merged_ids) {
        SCOPED_TRACE(testing::Message() << a << b);
        merge_twice(*empty, a, b, add, search_own, copies);
    }
}

struct EachMerge : testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(
        Strings,
        EachMerge,
        testing::Values(
                "KFlat(chi2)",
                "KIVF4(M=24)",
                "SIK64(gaussian),BIVF4",
                "SIK64(gaussian),BIVF4,Refine(KFlat(gaussian))",
                "SIK64(gaussian),BFlat,Refine(KFlat(gaussian))",
                "PCA8,IVF4,Flat,Refine(KFlat(chi2))",
                "PCA8,IVF4,PQ4x4np,Refine(KFlat(chi2))",
                "HKM1(chi2),IVF4,Flat,Refine(KFlat(chi2))",
                "Concurrent,PCA8,IVF4,Flat",
                "Concurrent,KFlat(chi2)"),
        testing_strings::name_of_row);

TEST_P(EachMerge, LeavesIndexesThatCanBeUsed) {
    const Floats x = normalized_histograms(n, d, 1);
    const auto empty = index_factory(d, GetParam());
    empty->train(n, x.data());
    const auto add =
            [&](auto& index, idx_t begin, idx_t end, const idx_t* ids) {
                if (ids) {
                    index.add_with_ids(end - begin, &x[begin * d], ids);
                } else {
                    index.add(end - begin, &x[begin * d]);
                }
            };
    const auto search_own = [&](const auto& index, const auto& rows) {
        for (const auto& [id, row] : rows) {
            const Floats one(&x[row * d], &x[row * d] + d);
            const auto labels = search(index, one, 5).labels;
            EXPECT_EQ(std::count(labels.begin(), labels.end(), id), 1);
        }
    };
    const auto copies = [](const faiss::Index& index) {
        return std::array{
                std::shared_ptr<faiss::Index>(clone_index(&index)),
                std::shared_ptr<faiss::Index>(reread(index))};
    };
    for (const auto& [a, b] : merged_ids) {
        SCOPED_TRACE(testing::Message() << a << b);
        merge_twice(*empty, a, b, add, search_own, copies);
    }
}

} // namespace
