// SPDX-License-Identifier: MIT
// Indexes that change: additions, removals, replacements and filters, against a
// dictionary of vectors and an index that is built anew.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/IndexIVFPQ4.h>
#include <faiss_ext/indexes/IndexRefineKernel.h>
#include <faiss_ext/indexes/PlaceMoves.h>
#include <faiss_ext/indexes/index_ids.h>
#include <faiss_ext/indexes/index_tree.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>

#include "core/errors.h"
#include "indexes/selected_places.h"
#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr int d = 16;
using Vectors = std::map<idx_t, Floats>;

TEST(PlaceMoves, FillHolesWithTheLast) {
    std::mt19937 random(1);
    for (idx_t n : {0, 1, 2, 5, 40}) {
        for (int round = 0; round < 30; round++) {
            std::vector<idx_t> holes;
            const unsigned often = 1 + round % 4;
            for (idx_t i = 0; i < n; i++) {
                if (random() % 4 < often) {
                    holes.push_back(i);
                }
            }
            const PlaceMoves moves(n, holes);
            EXPECT_EQ(moves.after, n - idx_t(holes.size()));
            std::vector<idx_t> removed;
            moves.for_removed([&](idx_t place) { removed.push_back(place); });
            std::sort(removed.begin(), removed.end());
            EXPECT_EQ(removed, holes);
            std::vector<idx_t> rows(n), kept;
            std::iota(rows.begin(), rows.end(), 0);
            moves.apply_to((uint8_t*)rows.data(), sizeof(idx_t));
            rows.resize(moves.after);
            for (idx_t i = 0; i < n; i++) {
                if (!std::binary_search(holes.begin(), holes.end(), i)) {
                    kept.push_back(i);
                }
            }
            std::sort(rows.begin(), rows.end());
            EXPECT_EQ(rows, kept);
            EXPECT_LE(moves.moves.size(), holes.size());
        }
    }
}

TEST(Selected, CountsAndLists) {
    for (idx_t n : {1, 10, 5000, 100000}) {
        for (idx_t period : {1, 2, 100}) {
            struct Multiples : faiss::IDSelector {
                idx_t period;
                explicit Multiples(idx_t period) : period(period) {}
                bool is_member(idx_t id) const override {
                    return id % period == 0;
                }
            } sel(period);
            const Selected selected(sel, n, n / 64);
            const idx_t count = (n + period - 1) / period;
            EXPECT_EQ(selected.few.has_value(), count <= n / 64);
            if (selected.few) {
                EXPECT_EQ(idx_t(selected.few->size()), count);
                EXPECT_EQ(selected.few->back(), (count - 1) * period);
            }
            // Hoeffding: 2,048 places, an error of 0.06 has p < 1e-6
            EXPECT_NEAR(selected.fraction, double(count) / double(n), 0.06);
        }
    }
    const std::vector<idx_t> ids{7, 3, 7, 99, -2};
    const faiss::IDSelectorBatch batch(ids.size(), ids.data());
    const Selected few(batch, 10, 5);
    EXPECT_EQ(few.few, (std::vector<idx_t>{3, 7}));
    const faiss::IDSelectorRange all(0, 10), none(5, 5);
    EXPECT_FALSE(Selected(all, 10, 5).few);
    EXPECT_EQ(Selected(none, 10, 0).few, std::vector<idx_t>());
}

TEST(ListsForSelected, AreVisitedUntilEnoughAreMet) {
    // ten lists of 100 vectors; those of the last three are selected
    const faiss::IDSelectorRange sel(700, 1000), none(-2, -1);
    const auto lists_for = [](const faiss::IDSelector& sel) {
        return ListsForSelected(
                sel,
                2,
                10,
                1000,
                [](size_t) { return size_t(100); },
                [](size_t list, size_t i) { return idx_t(100 * list + i); });
    };
    const auto up = [](size_t i) { return idx_t(i); };
    const auto down = [](size_t i) { return idx_t(9 - i); };
    const auto some = lists_for(sel);
    EXPECT_EQ(some.visited(10, up), 9u);
    EXPECT_EQ(some.visited(10, down), 2u);
    EXPECT_EQ(some.visited(8, up), std::nullopt);
    EXPECT_EQ(some.first(), 10u);
    EXPECT_EQ(lists_for(none).visited(10, up), 10u);
    const faiss::IDSelectorRange all(0, 1000);
    EXPECT_EQ(lists_for(all).visited(10, up), 2u);
    EXPECT_EQ(lists_for(all).first(), 4u);
}

struct Row {
    std::string string;
    bool is_exact;
    bool is_ordered = true; ///< ties are in the order of the positions
};

const std::vector<Row> rows_ = {
        {"KFlat(chi2)", true},
        {"KFlat(chi2,store=u8)", false},
        {"KFlat(chi2,store=i8)", false},
        {"KFlat(chi2,store=sparse)", false},
        {"SIK64(gaussian),BFlat,Refine(KFlat(chi2,store=sparse))", false},
        {"SIK64(gaussian),BFlat", false},
        {"AHK64(chi2),AFlat", false},
        {"HKM1(chi2),Flat", false},
        {"HKM1(chi2),PCA8,SQ8", false},
        {"SIK64(gaussian),BFlat,Refine(KFlat(chi2))", true},
        {"SIK64(gaussian),BPerm(M=3,B=9),Refine(KFlat(chi2))", false},
        {"SIK64(gaussian),BIVF4,Refine(KFlat(chi2))", true},
        {"AHK64(chi2),AFlat,Refine(KFlat(chi2,store=f16))", false},
        {"KIVF4,Refine(KFlat(chi2))", true},
        {"HKM1(chi2),PCA16,KIVF4,Refine(KFlat(chi2))", true},
        {"IVF4,Flat,Refine(KFlat(chi2))", true},
        {"PQ4x4np,Refine(KFlat(chi2))", true}};

/// These have ids of their own, but no IDMap in front.
const std::vector<Row> lists_ = {
        {"KIVF4", false, false},
        {"SIK64(gaussian),BIVF4", false, false},
        {"HKM1(chi2),IVF4,Flat", false, false}};

std::string name_of_string(const testing::TestParamInfo<Row>& info) {
    std::string name;
    for (const char c : info.param.string) {
        name += std::isalnum(c) ? c : '_';
    }
    return name;
}

/// Each row with IDMap in front, and with ids of its own.
std::vector<Row> with_and_without_map(std::vector<Row> rows) {
    std::vector<Row> all;
    for (const Row& row : rows) {
        all.push_back({"IDMap," + row.string, row.is_exact});
        all.push_back(row);
    }
    return all;
}

IndexRefineKernel* refine_in(faiss::Index& index) {
    auto* table = dynamic_cast<IndexIDTable*>(&index);
    return dynamic_cast<IndexRefineKernel*>(table ? table->index : &index);
}

struct ChangingIndex : testing::TestWithParam<Row> {
    std::mt19937 random{3};
    const Floats x = normalized_histograms(3000, d, 4),
                 q = normalized_histograms(20, d, 5);
    std::unique_ptr<faiss::Index> empty;
    Vectors expected;

    void SetUp() override {
        empty = index_factory(d, GetParam().string);
        empty->train(1000, x.data());
        if (auto* refine = refine_in(*empty)) {
            refine->k_factor = 2000; // all are candidates
        }
    }

    Floats row(idx_t i) const {
        return rows(x, d, i, i + 1);
    }

    /// Ids that are in the index, or not.
    std::vector<idx_t> some_ids(idx_t n, bool known) {
        std::map<idx_t, bool> found;
        while (idx_t(found.size()) < n) {
            if (!known) {
                const idx_t id = idx_t(random()) * 1000003 % 100000;
                found[expected.contains(id) ? 100000 + random() : id];
            } else {
                auto at = expected.begin();
                std::advance(at, random() % expected.size());
                found[at->first];
            }
        }
        std::vector<idx_t> ids;
        for (const auto& [id, unused] : found) {
            ids.push_back(id);
        }
        std::shuffle(ids.begin(), ids.end(), random);
        return ids;
    }

    /// Compares the index with one that gets the same vectors in the order of
    /// the places.
    void check(const faiss::Index& index) const {
        const std::vector<idx_t> ids = index_ids(index);
        ASSERT_EQ(index.ntotal, idx_t(expected.size()));
        ASSERT_EQ(ids.size(), expected.size());
        Floats all;
        for (const idx_t id : ids) {
            ASSERT_TRUE(expected.contains(id)) << id;
            const Floats& v = expected.at(id);
            all.insert(all.end(), v.begin(), v.end());
        }
        const auto anew = clone_index(empty.get());
        anew->add_with_ids(index.ntotal, all.data(), ids.data());
        const auto found = search(index, q, 12), wanted = search(*anew, q, 12);
        if (GetParam().is_ordered) {
            EXPECT_EQ(found.labels, wanted.labels);
        } // others return equal distances in the order of the lists
        EXPECT_EQ(found.distances, wanted.distances);
        if (const auto* refine = refine_in(const_cast<faiss::Index&>(index))) {
            const auto base = search(*refine->base_index, q, 12);
            const auto wanted_base =
                    search(*refine_in(*anew)->base_index, q, 12);
            if (GetParam().string.find("BIVF") == std::string::npos) {
                EXPECT_EQ(base.labels, wanted_base.labels);
            }
            EXPECT_EQ(base.distances, wanted_base.distances);
        }
    }
};

INSTANTIATE_TEST_SUITE_P(
        Strings,
        ChangingIndex,
        testing::ValuesIn([] {
            std::vector<Row> all = with_and_without_map(rows_);
            // filters reject its candidates without replacing them
            all.push_back({"SIK64(gaussian),BPerm(M=3,B=9)", false});
            all.insert(all.end(), lists_.begin(), lists_.end());
            return all;
        }()),
        name_of_string);

TEST_P(ChangingIndex, RandomChanges) {
    const auto index = clone_index(empty.get());
    idx_t used = 0;
    for (int step = 0; step < 120; step++) {
        const idx_t n = random() % 12;
        const auto more = [&] { return &x[(used += n) % 2900 * d]; };
        const auto keep = [&](const std::vector<idx_t>& ids, const float* v) {
            for (size_t i = 0; i < ids.size(); i++) {
                expected[ids[i]] = Floats(v + i * d, v + (i + 1) * d);
            }
        };
        const int kind = expected.size() < 30 ? 0 : random() % 6;
        if (kind <= 1) {
            const auto ids = some_ids(n, false);
            const float* v = more();
            index->add_with_ids(n, v, ids.data());
            keep(ids, v);
        } else if (kind == 2) {
            auto ids = some_ids(n, true);
            ids.push_back(-5);
            ids.push_back(123456);
            const faiss::IDSelectorBatch sel(ids.size(), ids.data());
            EXPECT_EQ(index->remove_ids(sel), size_t(n));
            for (const idx_t id : ids) {
                expected.erase(id);
            }
        } else if (kind == 3) {
            const idx_t least = random() % 90000;
            const faiss::IDSelectorRange sel(least, least + 10000);
            const faiss::IDSelectorNot others(&sel);
            const faiss::IDSelectorNot again(&others); // lists no ids
            EXPECT_EQ(
                    index->remove_ids(again),
                    std::erase_if(expected, [&](const auto& one) {
                        return sel.is_member(one.first);
                    }));
        } else if (kind == 4) {
            const auto ids = some_ids(n, true);
            const float* v = more();
            update_vectors(*index, n, ids.data(), v);
            keep(ids, v);
        } else {
            auto ids = some_ids(n / 2, true);
            const auto others = some_ids(n - n / 2, false);
            ids.insert(ids.end(), others.begin(), others.end());
            std::shuffle(ids.begin(), ids.end(), random);
            const float* v = more();
            EXPECT_EQ(upsert(*index, n, v, ids.data()), n / 2);
            keep(ids, v);
        }
        if (step % 10 == 9) {
            check(*index);
        }
    }
    const auto copy = clone_index(index.get());
    check(*copy);
    const faiss::IDSelectorAll all;
    EXPECT_EQ(index->remove_ids(all), expected.size());
    EXPECT_EQ(index->ntotal, 0);
    EXPECT_EQ(search(*index, q, 1).labels, std::vector<idx_t>(20, -1));
    expected.clear();
    const std::vector<idx_t> ids{5, 6};
    index->add_with_ids(2, x.data(), ids.data());
    expected = {{5, row(0)}, {6, row(1)}};
    check(*index);
}

TEST_P(ChangingIndex, FailedCallsChangeNothing) {
    const auto index = clone_index(empty.get());
    const std::vector<idx_t> ids{5, 3, 9, 70};
    index->add_with_ids(4, x.data(), ids.data());
    for (idx_t i = 0; i < 4; i++) {
        expected[ids[i]] = row(i);
    }
    Floats bad = rows(x, d, 10, 12);
    bad[d] = NAN;
    const idx_t twice[] = {3, 3}, unknown[] = {3, 4}, none[] = {3, -1},
                known[] = {3, 5};
    const float* v = &x[10 * d];
    expect_throws(
            {{[&] { update_vectors(*index, 2, twice, v); }, "given twice"},
             {[&] { update_vectors(*index, 2, unknown, v); }, "no vector with"},
             {[&] { update_vectors(*index, 2, none, v); }, "an id is -1"},
             {[&] { update_vectors(*index, 2, known, bad.data()); }, ""},
             {[&] { update_vectors(*index, 2, nullptr, v); }, "null"},
             {[&] { update_vectors(*index, 2, known, nullptr); }, "null"},
             {[&] { upsert(*index, 2, v, twice); }, "given twice"},
             {[&] { upsert(*index, 2, v, none); }, "an id is -1"},
             {[&] { upsert(*index, 2, bad.data(), unknown); }, ""}});
    check(*index);
    const idx_t absent[] = {1, 2, -1};
    const faiss::IDSelectorBatch sel(3, absent);
    EXPECT_EQ(index->remove_ids(sel), 0u);
    check(*index);
}

/// The best of the vectors that are selected, by exhaustive search.
Found<float> filtered(
        const Vectors& vectors,
        const faiss::IDSelector& sel,
        const Floats& q,
        idx_t k) {
    const auto exact = index_factory(d, "IDMap,KFlat(chi2)");
    for (const auto& [id, v] : vectors) {
        if (sel.is_member(id)) {
            exact->add_with_ids(1, v.data(), &id);
        }
    }
    return search(*exact, q, k);
}

struct FilteredIndex : testing::TestWithParam<Row> {
    const Floats x = normalized_histograms(3000, d, 4),
                 q = normalized_histograms(20, d, 5);
    Vectors expected;

    Floats row(idx_t i) const {
        return rows(x, d, i, i + 1);
    }
};

INSTANTIATE_TEST_SUITE_P(
        Strings,
        FilteredIndex,
        testing::ValuesIn([] {
            std::vector<Row> all = rows_;
            all.push_back({"HNSW8,KFlat(chi2)", false});
            all.push_back(
                    {"HNSW8,KFlat(chi2,store=u8),Refine(KFlat(chi2))", false});
            return with_and_without_map(all);
        }()),
        name_of_string);

TEST_P(FilteredIndex, FindsSelectedOnly) {
    const auto index = index_factory(d, GetParam().string);
    index->train(1000, x.data());
    if (auto* refine = refine_in(*index)) {
        refine->k_factor = 2000; // all are candidates
    }
    const idx_t n = 2500;
    std::vector<idx_t> ids(n);
    std::iota(ids.rbegin(), ids.rend(), 10000);
    index->add_with_ids(n, x.data(), ids.data());
    for (idx_t i = 0; i < n; i++) {
        expected[ids[i]] = row(i);
    }
    for (const idx_t count : {0, 3, 30, 300, 1500}) {
        const faiss::IDSelectorRange range(10100, 10100 + count);
        std::vector<idx_t> listed(count);
        std::iota(listed.begin(), listed.end(), 10100);
        const faiss::IDSelectorBatch batch(listed.size(), listed.data());
        const faiss::IDSelectorNot others(&range), same(&others);
        for (const faiss::IDSelector* sel :
             {(const faiss::IDSelector*)&range,
              (const faiss::IDSelector*)&batch,
              (const faiss::IDSelector*)&same}) {
            faiss::SearchParameters params;
            params.sel = const_cast<faiss::IDSelector*>(sel);
            const idx_t k = 10;
            const auto found = search(*index, q, k, &params);
            const idx_t complete = std::min(k, count);
            for (idx_t i = 0; i < 20; i++) {
                for (idx_t j = 0; j < k; j++) {
                    const idx_t id = found.labels[i * k + j];
                    EXPECT_EQ(id >= 0, j < complete) << i << " " << j;
                    EXPECT_TRUE(id < 0 || range.is_member(id)) << id;
                }
            }
            if (GetParam().is_exact) {
                expect_same(found, filtered(expected, range, q, k));
            }
        }
    }
}

// If the visited lists hold too few selected vectors, all of these are
// compared.
TEST(RefineWithSelector, MissesNoResult) {
    const Floats x = normalized_histograms(2500, d, 8),
                 q = normalized_histograms(30, d, 9);
    const auto index = index_factory(d, "KIVF64(nprobe=1),Refine(KFlat(chi2))");
    index->train(2500, x.data());
    index->add(2500, x.data());
    auto& refine = dynamic_cast<IndexRefineKernel&>(*index);
    const auto& lists = dynamic_cast<IndexIVFPQ4&>(*refine.base_index).lists;
    std::vector<idx_t> ids; // of lists next to each other
    for (size_t l = 0; ids.size() < 120; l++) {
        ids.insert(ids.end(), lists[l].ids.begin(), lists[l].ids.end());
    }
    const faiss::IDSelectorBatch sel(ids.size(), ids.data());
    faiss::SearchParameters params;
    params.sel = const_cast<faiss::IDSelectorBatch*>(&sel);
    const idx_t k = 20; // fewer are few
    const auto found = search(*index, q, k, &params);
    for (const idx_t id : found.labels) {
        EXPECT_TRUE(sel.is_member(id)) << id;
    }
    const auto exact = search(*refine.refine_index, q, k, &params);
    EXPECT_GT(recall(found.labels, exact.labels, k), 0.5);
}

// A graph is asked for k_factor * k selected vectors. It may end before it came
// to the nearest of them.
TEST(FilterOfRefine, FindsVectorsThatAGraphDoesNotReach) {
    constexpr idx_t n = 4000, nq = 20, k = 10;
    const Floats x = uniform_vectors(n, 8, 10), q = uniform_vectors(nq, 8, 11);
    const auto index = index_factory(
            8,
            "HNSW16,KFlat(gaussian(gamma=1)),Refine(KFlat(gaussian(gamma=1)))");
    index->train(n, x.data());
    index->add(n, x.data());
    auto& refine = dynamic_cast<IndexRefineKernel&>(*index);
    for (idx_t i = 0; i < nq; i++) {
        const Floats query = rows(q, 8, i, i + 1);
        const auto near = search(*refine.refine_index, query, 200);
        const faiss::IDSelectorBatch nearest(200, near.labels.data());
        const faiss::IDSelectorNot others(&nearest);
        faiss::SearchParameters params;
        params.sel = const_cast<faiss::IDSelectorNot*>(&others);
        const auto exact = search(*refine.refine_index, query, k, &params);
        for (const float factor : {1, 4}) {
            refine.k_factor = factor;
            EXPECT_EQ(search(*index, query, k, &params).labels, exact.labels)
                    << i << " " << factor;
        }
    }
}

// If all candidates are within the radius, there may be more.
TEST(RangeSearchOfRefine, ContinuesWhileHalfOfTheCandidatesAreWithin) {
    const Floats x = normalized_histograms(2000, d, 6),
                 q = normalized_histograms(10, d, 7);
    const auto index = index_factory(d, "KFlat(chi2),Refine(KFlat(chi2))");
    index->add(2000, x.data());
    auto& refine = dynamic_cast<IndexRefineKernel&>(*index);
    EXPECT_EQ(refine.k_factor, 1);
    const float radius = search(*refine.refine_index, q, 500).distances[499];
    const auto expected = range_search(*refine.refine_index, q, radius);
    EXPECT_GT(total_size(expected), 1000u);
    EXPECT_EQ(range_search(*index, q, radius), expected);
}

// With as many candidates as vectors, a range search is exact.
TEST(RangeSearchOfRefine, IsExactAmongItsCandidates) {
    const Floats x = normalized_histograms(2000, d, 6),
                 q = normalized_histograms(30, d, 7);
    const auto exact = index_factory(d, "KFlat(chi2)");
    exact->add(2000, x.data());
    for (const std::string front :
         {"SIK64(gaussian),BFlat", "KIVF4(nprobe=4)", "HKM1(chi2),Flat"}) {
        const auto index = index_factory(d, front + ",Refine(KFlat(chi2))");
        index->train(2000, x.data());
        index->add(2000, x.data());
        auto& refine = dynamic_cast<IndexRefineKernel&>(*index);
        const auto nearest = search(*exact, q, 100);
        for (const idx_t rank : {0, 1, 99}) {
            const float radius = nearest.distances[rank];
            refine.k_factor = 2000;
            const auto wanted = range_search(*exact, q, radius);
            const auto found = range_search(*index, q, radius);
            EXPECT_EQ(found, wanted) << front;
            // fewer candidates find a part of them
            refine.k_factor = 1;
            const auto some = range_search(*index, q, radius);
            for (size_t i = 0; i < some.size(); i++) {
                EXPECT_TRUE(std::includes(
                        wanted[i].begin(),
                        wanted[i].end(),
                        some[i].begin(),
                        some[i].end()));
            }
        }
        const faiss::IDSelectorRange range(100, 1100);
        faiss::SearchParameters params;
        params.sel = const_cast<faiss::IDSelectorRange*>(&range);
        refine.k_factor = 2000;
        const float radius = nearest.distances[99];
        EXPECT_EQ(
                range_search(*index, q, radius, &params),
                range_search(*exact, q, radius, &params));
        EXPECT_TRUE(throws(
                [&] { range_search(*index, q, NAN); }, "the radius is NaN"));
        const auto none = index_factory(d, front + ",Refine(KFlat(chi2))");
        none->train(2000, x.data());
        EXPECT_EQ(total_size(range_search(*none, q, 1)), 0u);
    }
}

} // namespace
