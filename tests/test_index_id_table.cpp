// SPDX-License-Identifier: MIT
// The table of ids, against a map from ids to vectors.

#include <atomic>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <thread>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/IndexPreTransformSIMD.h>
#include <faiss_ext/indexes/index_ids.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/GaussianKernel.h>

#include "indexes/id_positions.h"
#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr int d = 8;
constexpr idx_t largest = std::numeric_limits<idx_t>::max();

/// A table in front of exact search, which it owns.
std::unique_ptr<IndexIDTable> make_table() {
    auto index = std::make_unique<IndexIDTable>(
            new IndexFlatKernel(d, GaussianKernel(0.1)));
    index->own_fields = true;
    return index;
}

std::vector<float> vector_of(const IndexIDTable& index, idx_t id) {
    std::vector<float> x(d);
    index.reconstruct(id, x.data());
    return x;
}

TEST(IdPositions, IsAMap) {
    std::mt19937_64 random(1);
    std::map<idx_t, idx_t> expected;
    IdPositions table;
    EXPECT_EQ(table.find(3), -1);
    const idx_t edges[] = {
            0, 1, -2, largest, largest - 1, std::numeric_limits<idx_t>::min()};
    for (idx_t i = 0; i < 3000; i++) {
        // near, far apart, and multiples that collide in simple hashes
        const idx_t id = i < 6 ? edges[i]
                : i % 3 == 0   ? idx_t(random() % 1000)
                : i % 3 == 1   ? idx_t(random() | 1) - 1
                               : idx_t(random() % 1000) << 40;
        EXPECT_EQ(table.insert(id, i), expected.emplace(id, i).second) << id;
    }
    for (const auto& [id, position] : expected) {
        EXPECT_EQ(table.find(id), position);
    }
    EXPECT_EQ(table.find(-1), -1);
    EXPECT_EQ(table.find(1001), -1);
}

TEST(IndexIDTable, RandomChanges) {
    std::mt19937 random(2);
    const auto index = make_table();
    const auto x = uniform_vectors(600, d, 3);
    std::map<idx_t, std::vector<float>> expected;
    const auto row = [&](idx_t i) { return rows(x, d, i, i + 1); };
    idx_t used = 0, next = 0;
    for (int step = 0; step < 60; step++) {
        const idx_t n = random() % 10;
        const float* more = &x[used * d];
        if (step % 3 == 0) {
            index->add(n, more);
            for (idx_t i = 0; i < n; i++) {
                expected[next++] = row(used++);
            }
        } else if (step % 3 == 1) {
            std::vector<idx_t> ids;
            for (idx_t id = random() % 50; idx_t(ids.size()) < n; id += 7) {
                if (!expected.contains(id) && id != -1) {
                    ids.insert(ids.begin(), id);
                }
            }
            index->add_with_ids(n, more, ids.data());
            for (idx_t id : ids) {
                expected[id] = row(used++);
                next = std::max(next, id + 1);
            }
        } else {
            const idx_t begin = random() % 60;
            const idx_t end = begin + random() % 20;
            const size_t removed =
                    index->remove_ids(faiss::IDSelectorRange(begin, end));
            EXPECT_EQ(removed, std::erase_if(expected, [&](const auto& one) {
                          return one.first >= begin && one.first < end;
                      }));
        }
        EXPECT_EQ(index->next_id, next);
        EXPECT_EQ(index->ntotal, idx_t(expected.size()));
        for (const auto& [id, v] : expected) {
            EXPECT_EQ(vector_of(*index, id), v);
            EXPECT_EQ(search(*index, v, 1).labels[0], id);
        }
    }
    const auto copy = clone_index(index.get());
    EXPECT_EQ(dynamic_cast<IndexIDTable&>(*copy).next_id, next);
    expect_same(search(*copy, x, 5), search(*index, x, 5));
}

TEST(IndexIDTable, BadCallsChangeNothing) {
    const auto x = uniform_vectors(10, d, 4);
    const auto index = make_table();
    const std::vector<idx_t> ids{5, 3, 9, -7};
    index->add_with_ids(4, x.data(), ids.data());
    const auto expected = search(*index, x, 4);
    auto bad = x;
    bad[d] = NAN;
    float out[2 * d];
    const auto add = [&](std::vector<idx_t> more, const float* v) {
        return [&index, more, v] {
            index->add_with_ids(idx_t(more.size()), v, more.data());
        };
    };
    faiss::IndexFlatL2 filled(d), flat(d);
    filled.add(1, x.data());
    faiss::IndexIVFFlat lists(&flat, d, 2);
    faiss::IndexIDMap of_faiss(&flat);
    const auto table = make_table();
    IndexPreTransformSIMD mapped(table.get());
    expect_throws(
            {{add({10, 3}, x.data()), "id 3 is already in use"},
             {add({10, 11, 10}, x.data()), "id 10 is given twice"},
             {add({10, -1}, x.data()), "an id is -1"},
             {add({10, 11}, bad.data()), "vector 1"},
             {add({2, 1}, bad.data()), "vector 1"},
             {[&] { index->add(2, bad.data()); }, "vector 1"},
             {[&] { index->reconstruct(4, out); }, "no vector with id 4"},
             {[&] { index->reconstruct(-1, out); }, "no vector with id -1"},
             {[&] { index->reconstruct_n(4, 2, out); }, "id 4"},
             {[&] { index->merge_from(*index); }, "merged with itself"},
             {[&] { index->merge_from(of_faiss); }, "another IndexIDTable"},
             {[&] { IndexIDTable table(nullptr); }, "null"},
             {[&] { IndexIDTable table(&filled); }, "has 1 vectors"},
             {[&] { IndexIDTable table(&lists); }, "keeps ids itself"},
             {[&] { IndexIDTable of(table.get()); }, "keeps ids itself"},
             {[&] { IndexIDTable of(&of_faiss); }, "keeps ids itself"},
             {[&] { IndexIDTable of(&mapped); }, "keeps ids itself"}});
    EXPECT_EQ(index->ntotal, 4);
    EXPECT_EQ(index->next_id, 10);
    expect_same(search(*index, x, 4), expected);
    index->index->add(1, x.data());
    expect_throws(
            {{[&] { search(*index, x, 1); }, "parts do not match"},
             {[&] { index->reconstruct(5, out); }, "parts do not match"},
             {add({20}, x.data()), "parts do not match"}});
}

TEST(IndexIDTable, IdsAreNeverGivenTwice) {
    const auto x = uniform_vectors(10, d, 5);
    const auto index = make_table();
    index->add(3, x.data());
    index->remove_ids(faiss::IDSelectorRange(2, 3));
    index->add(1, x.data());
    EXPECT_EQ(index->id_map, (std::vector<idx_t>{0, 1, 3}));
    const auto copy = clone_index(index.get());
    copy->remove_ids(faiss::IDSelectorRange(3, 4));
    const auto again = clone_index(copy.get());
    again->add(1, x.data());
    EXPECT_EQ(
            dynamic_cast<IndexIDTable&>(*again).id_map,
            (std::vector<idx_t>{0, 1, 4}));
    const idx_t last[] = {largest};
    index->add_with_ids(1, x.data(), last);
    expect_throws(
            {{[&] { index->add(1, x.data()); },
              "new vectors is 1, expected at most 0"},
             {[&] { index->add_with_ids(1, x.data(), last); },
              "already in use"}});
    index->reset();
    index->add(1, x.data());
    EXPECT_EQ(index->id_map, std::vector<idx_t>{0});
}

TEST(IndexIDTable, Merges) {
    const auto x = uniform_vectors(10, d, 6);
    const auto a = make_table(), b = make_table(), c = make_table();
    a->add(3, x.data());
    b->add(3, &x[3 * d]);
    EXPECT_TRUE(throws([&] { a->merge_from(*b); }, "id 0 is already in use"));
    EXPECT_EQ(b->ntotal, 3);
    a->merge_from(*b, 100);
    EXPECT_EQ(a->id_map, (std::vector<idx_t>{0, 1, 2, 100, 101, 102}));
    EXPECT_EQ(a->next_id, 103);
    EXPECT_EQ(b->ntotal, 0);
    EXPECT_EQ(vector_of(*a, 101), rows(x, d, 4, 5));
    const idx_t far[] = {largest - 50};
    c->add_with_ids(1, x.data(), far);
    EXPECT_TRUE(throws([&] { a->merge_from(*c, 100); }, "out of range"));
    EXPECT_EQ(c->ntotal, 1);
}

// FAISS 1.7.3 gives its ID maps no selectors, and later versions do not look
// into parameters inside others.
TEST(IndexIDTable, SelectorsSelectIds) {
    const auto x = uniform_vectors(60, 16, 7);
    std::vector<idx_t> ids(60);
    std::iota(ids.rbegin(), ids.rend(), 1000);
    for (const std::string string :
         {"KFlat(gaussian)",
          "HNSW8,KFlat(gaussian)",
          "SIK64(gaussian),BFlat",
          "HKM1(chi2),Flat",
          "PCA8,KFlat(gaussian)"}) {
        const auto index = index_factory(16, "IDMap," + string);
        index->train(60, x.data());
        index->add_with_ids(60, x.data(), ids.data());
        if (auto* graph = dynamic_cast<faiss::IndexHNSW*>(
                    dynamic_cast<IndexIDTable&>(*index).index)) {
            graph->hnsw.efSearch = 60; // finds all
        }
        const faiss::IDSelectorRange some(1010, 1020);
        faiss::SearchParameters params;
        params.sel = const_cast<faiss::IDSelectorRange*>(&some);
        faiss::SearchParametersPreTransform outer;
        outer.index_params = &params;
        const bool is_behind = string.find(',') == 4 || string[0] == 'P';
        for (const faiss::SearchParameters* given :
             {(const faiss::SearchParameters*)&params,
              (const faiss::SearchParameters*)&outer}) {
            if (given == &outer && !is_behind) {
                continue;
            }
            const auto found = search(*index, x, 10, given);
            for (idx_t q = 0; q < 60; q++) {
                std::vector<idx_t> labels(
                        &found.labels[q * 10], &found.labels[q * 10] + 10);
                std::sort(labels.begin(), labels.end());
                std::vector<idx_t> expected(10);
                std::iota(expected.begin(), expected.end(), 1010);
                EXPECT_EQ(labels, expected) << string << q;
            }
            EXPECT_EQ(params.sel, &some); // as before
        }
        struct Unknown : faiss::SearchParameters {
        } unknown;
        unknown.sel = params.sel;
        EXPECT_TRUE(throws([&] { search(*index, x, 10, &unknown); }, "class"));
    }
}

TEST(IndexIDTable, ParametersOfManyThreads) {
    const auto x = uniform_vectors(200, d, 8);
    const auto index = make_table();
    std::vector<idx_t> ids(200);
    std::iota(ids.begin(), ids.end(), 1000);
    index->add_with_ids(200, x.data(), ids.data());
    const faiss::IDSelectorRange some(1010, 1020);
    faiss::SearchParameters params;
    params.sel = const_cast<faiss::IDSelectorRange*>(&some);
    const auto expected = search(*index, x, 5, &params);
    std::vector<std::thread> threads;
    std::atomic<int> same = 0;
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([&] {
            for (int i = 0; i < 20; i++) {
                same += search(*index, x, 5, &params).labels == expected.labels;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(same, 80);
}

TEST(IndexIDTable, NegativeIdsAreIds) {
    const auto x = uniform_vectors(5, d, 9);
    const auto index = make_table();
    const std::vector<idx_t> ids{
            -2, -3, std::numeric_limits<idx_t>::min(), 7, 8};
    index->add_with_ids(5, x.data(), ids.data());
    std::vector<float> distances(10), found(10 * d);
    std::vector<idx_t> labels(10);
    const faiss::IDSelectorRange below(-5, 0);
    faiss::SearchParameters params;
    params.sel = const_cast<faiss::IDSelectorRange*>(&below);
    index->search_and_reconstruct(
            5, x.data(), 2, distances.data(), labels.data(), found.data());
    for (idx_t i = 0; i < 5; i++) {
        EXPECT_EQ(labels[2 * i], ids[i]);
        EXPECT_EQ(rows(found, d, 2 * i, 2 * i + 1), rows(x, d, i, i + 1));
    }
    index->search_and_reconstruct(
            1,
            x.data(),
            10,
            distances.data(),
            labels.data(),
            found.data(),
            &params);
    EXPECT_EQ(labels[2], -1);
    EXPECT_TRUE(std::isnan(found[2 * d]));
}

// Such files cannot be tables, in which an id is there once.
TEST(IndexIDTable, FilesOfFaissWithAnIdTwice) {
    const auto codes = random_bytes(3 * 8, 8);
    for (const std::vector<idx_t>& ids :
         {std::vector<idx_t>{5, 6, 5}, {5, -1, 6}}) {
        faiss::IndexBinaryFlat flat(64);
        faiss::IndexBinaryIDMap2 map(&flat);
        map.add_with_ids(3, codes.data(), ids.data());
        const auto again = reread(map);
        EXPECT_TRUE(typeid(*again) == typeid(faiss::IndexBinaryIDMap2));
        EXPECT_EQ(dynamic_cast<faiss::IndexBinaryIDMap&>(*again).id_map, ids);
    }
}

TEST(IndexIDTable, BinaryTablesKeepTheNextIdInFiles) {
    const auto codes = random_bytes(20 * 8, 8);
    const auto index = index_binary_factory(64, "IDMap2,BFlat");
    std::vector<idx_t> ids(20);
    std::iota(ids.begin(), ids.end(), 100);
    index->add_with_ids(20, codes.data(), ids.data());
    index->remove_ids(faiss::IDSelectorRange(115, 120));
    const auto copy = clone_binary_index(index.get());
    copy->add(1, codes.data());
    const auto given = index_ids(*copy);
    EXPECT_EQ(*std::max_element(given.begin(), given.end()), 120);
}

TEST(IndexIDTable, FilesOfFaissBecomeTables) {
    const auto codes = random_bytes(20 * 8, 8);
    faiss::IndexBinaryFlat flat(64);
    faiss::IndexBinaryIDMap2 index(&flat);
    std::vector<idx_t> ids(20);
    std::iota(ids.begin(), ids.end(), 100);
    index.add_with_ids(20, codes.data(), ids.data());
    const auto again = reread(index);
    auto& table = dynamic_cast<IndexBinaryIDTable&>(*again);
    EXPECT_EQ(table.next_id, 120);
    std::vector<uint8_t> code(8);
    table.reconstruct(103, code.data());
    EXPECT_EQ(code, rows(codes, 8, 3, 4));
}

TEST(IndexIDTable, ErrorsOfUpsertNameTheVectorOfTheCaller) {
    const auto index = index_factory(4, "KFlat(chi2)");
    const Floats x = uniform_vectors(5, 4, 1);
    index->add(5, x.data());
    for (const std::vector<idx_t>& ids :
         {std::vector<idx_t>{77, 0, 99}, {0, 1, 99}, {0, 98, 99}}) {
        for (const idx_t bad : {0, 1, 2}) {
            Floats rows(x.begin(), x.begin() + 12);
            rows[bad * 4 + 2] = NAN;
            try {
                upsert(*index, 3, rows.data(), ids.data());
                ADD_FAILURE() << "NaN was taken";
            } catch (const VectorError& e) {
                EXPECT_EQ(e.vector, bad);
            }
        }
    }
    EXPECT_EQ(index->ntotal, 5);
}

} // namespace
