// SPDX-License-Identifier: MIT
// Fails every allocation in turn. The operation must throw and leave the index
// unchanged.

#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include <faiss/IndexIDMap.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/index_ids.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "core/errors.h"
#include "testing.h"
#include "testing_strings.h"

namespace {

/// Allocations that succeed before one fails; negative: all succeed.
thread_local long before_failure = -1;
thread_local bool has_failed = false;

void* allocate(size_t size, size_t alignment) {
    if (before_failure == 0) {
        before_failure = -1;
        has_failed = true;
        return nullptr;
    }
    before_failure -= before_failure > 0;
    size = (size + alignment - 1) / alignment * alignment;
    return std::aligned_alloc(alignment, std::max(size, alignment));
}

void* allocate_or_throw(size_t size, size_t alignment) {
    void* p = allocate(size, alignment);
    if (!p) {
        throw std::bad_alloc();
    }
    return p;
}

/// Not inlined, since GCC warns if it sees only one half of a pair.
__attribute__((noinline)) void release(void* p) noexcept {
    std::free(p);
}

} // namespace

void* operator new(size_t size) {
    return allocate_or_throw(size, 16);
}
void* operator new[](size_t size) {
    return allocate_or_throw(size, 16);
}
void* operator new(size_t size, std::align_val_t alignment) {
    return allocate_or_throw(size, size_t(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
    return allocate_or_throw(size, size_t(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
    return allocate(size, 16);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
    return allocate(size, 16);
}
void operator delete(void* p) noexcept {
    release(p);
}
void operator delete[](void* p) noexcept {
    release(p);
}
void operator delete(void* p, size_t) noexcept {
    release(p);
}
void operator delete[](void* p, size_t) noexcept {
    release(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
    release(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
    release(p);
}
void operator delete(void* p, size_t, std::align_val_t) noexcept {
    std::free(p);
}
void operator delete[](void* p, size_t, std::align_val_t) noexcept {
    std::free(p);
}

using namespace faiss_ext_test;
using testing_strings::d;
using testing_strings::Row;

namespace {

constexpr idx_t n = 60, nq = 3;

const long step = is_sanitized ? 7 : 1; // sanitizers are slow

/// Lets each allocation of f fail in turn (every seventh with a sanitizer),
/// until f succeeds, and calls check after each failure. Returns the number of
/// allocations.
template <class F, class Check>
long with_failures(F&& f, Check&& check) {
    for (long i = 0;; i += step) {
        has_failed = false;
        before_failure = i;
        std::string error;
        try {
            f();
        } catch (const std::exception& e) {
            before_failure = -1;
            error = e.what();
        }
        before_failure = -1;
        if (!has_failed) {
            EXPECT_EQ(error, "");
            return i;
        }
        // some allocations are optional, such as memory kept for later
        if (!error.empty()) {
            check();
        } else {
            return i + 1;
        }
    }
}

void add(faiss::Index& index, const Floats& x) {
    std::vector<idx_t> ids(x.size() / d);
    std::iota(ids.begin(), ids.end(), 1000 + index.ntotal);
    if (dynamic_cast<faiss::IndexIDMap*>(&index)) {
        index.add_with_ids(ids.size(), x.data(), ids.data());
    } else {
        index.add(ids.size(), x.data());
    }
}

/// Returns the rows whose storage is ours or a plain vector of FAISS's.
std::vector<Row> rows_with_own_storage() {
    std::vector<Row> chosen;
    for (const Row& row : testing_strings::indexes) {
        const std::string text = row.text;
        const bool has_faiss = text.find("),Flat") != std::string::npos ||
                text.find("BHash") != std::string::npos ||
                text.find("BIVF") != std::string::npos ||
                text.find("BHNSW") != std::string::npos ||
                text.find(",IVF4") != std::string::npos ||
                text.find("IVF4,Flat") != std::string::npos ||
                text.find("RFlat") != std::string::npos ||
                text.find(",HNSW") != std::string::npos;
        if (!has_faiss) {
            chosen.push_back(row);
        }
    }
    return chosen;
}

struct EachIndex : testing::TestWithParam<Row> {
    const std::string text = GetParam().text;
    const Floats x = clustered_histograms(n, d, 3, 20, 1);
    const Floats more = clustered_histograms(9, d, 3, 20, 2);
    const Floats q = clustered_histograms(nq, d, 3, 20, 3);

    void SetUp() override {
        omp_set_num_threads(1); // all allocations are then on this thread
    }

    std::unique_ptr<faiss::Index> trained() const {
        auto index = index_factory(d, text);
        index->train(n, x.data());
        return index;
    }
};

INSTANTIATE_TEST_SUITE_P(
        AllocationFailures,
        EachIndex,
        testing::ValuesIn(rows_with_own_storage()),
        testing_strings::name_of_row);

TEST_P(EachIndex, Construction) {
    std::unique_ptr<faiss::Index> index;
    const auto make = [&] { index = index_factory(d, text); };
    EXPECT_GT(with_failures(make, [&] { EXPECT_FALSE(index); }), 3);
    EXPECT_TRUE(index);
}

TEST_P(EachIndex, Training) {
    const auto expected = trained();
    add(*expected, x);
    auto index = index_factory(d, text);
    with_failures([&] { index->train(n, x.data()); }, [] {});
    add(*index, x);
    expect_same(search(*index, q, 5), search(*expected, q, 5));
}

TEST_P(EachIndex, Adding) {
    const bool is_graph = text.find("HNSW") == 0;
    const auto expected = trained();
    add(*expected, x);
    add(*expected, more);
    const auto index = trained();
    add(*index, x);
    const Bytes before = bytes_of(*index);
    const auto found = search(*index, q, 5);
    with_failures(
            [&] { add(*index, more); },
            [&] {
                ASSERT_EQ(index->ntotal, n);
                // vertices of failed calls stay in a graph
                ASSERT_TRUE(is_graph || bytes_of(*index) == before);
                expect_same(search(*index, q, 5), found);
            });
    EXPECT_EQ(index->ntotal, n + 9);
    if (is_graph) {
        expect_same(search(*index, q, 5), search(*expected, q, 5));
    } else {
        EXPECT_EQ(bytes_of(*index), bytes_of(*expected));
    }
}

/// After a failure the new entries are removed from FAISS's tables.
TEST(AllocationFailures, AddingToHashTables) {
    omp_set_num_threads(1);
    const Floats x = clustered_histograms(n, d, 3, 20, 1);
    const Floats more = clustered_histograms(9, d, 3, 20, 2);
    std::vector<idx_t> ids(9);
    std::iota(ids.begin(), ids.end(), 1000);
    for (const std::string text :
         {"AHK64(chi2),BHash8", "AHK64(chi2),BHash2x8"}) {
        for (const bool with_ids : {false, true}) {
            if (with_ids && text.find("2x8") != std::string::npos) {
                continue; // does not accept ids
            }
            SCOPED_TRACE(text + (with_ids ? ", ids" : ""));
            const auto made = index_factory(d, text);
            auto& index = dynamic_cast<IndexKernelHash&>(*made);
            index.train(n, x.data());
            index.add(n, x.data());
            const auto found = search(index, x, n);
            const auto add = [&](faiss::Index& to) {
                if (with_ids) {
                    to.add_with_ids(9, more.data(), ids.data());
                } else {
                    to.add(9, more.data());
                }
            };
            EXPECT_GT(
                    with_failures(
                            [&] { add(index); },
                            [&] {
                                ASSERT_EQ(index.ntotal, n);
                                ASSERT_EQ(index.storage->ntotal, n);
                                expect_same(search(index, x, n), found);
                            }),
                    15);
            EXPECT_EQ(index.ntotal, n + 9);
            const auto again = index_factory(d, text);
            again->train(n, x.data());
            again->add(n, x.data());
            add(*again);
            expect_same(
                    search(index, more, n + 9), search(*again, more, n + 9));
        }
    }
}

/// Removals, replacements and filtered searches behind an ID table.
TEST_P(EachIndex, Changes) {
    const std::string string = text.find("IDMap") == 0 ? text : "IDMap," + text;
    std::unique_ptr<faiss::Index> made;
    try {
        made = index_factory(d, string);
    } catch (const faiss::FaissException&) {
        GTEST_SKIP() << "lists keep ids themselves";
    }
    auto* index = dynamic_cast<IndexIDTable*>(made.get());
    if (!index) {
        GTEST_SKIP() << "not changed by ids";
    }
    const bool is_graph = text.find("HNSW") == 0;
    index->train(n, x.data());
    add(*index, x);
    Bytes before;
    Found<float> found;
    const auto save = [&] {
        before = bytes_of(*index);
        found = search(*index, q, 5);
    };
    const auto unchanged = [&] {
        ASSERT_TRUE(is_graph || bytes_of(*index) == before);
        expect_same(search(*index, q, 5), found);
    };
    const idx_t ids[] = {1003, 1040, 1059, 77, 78};
    save();
    const faiss::IDSelectorBatch some(4, ids);
    with_failures([&] { index->remove_ids(some); }, unchanged);
    EXPECT_EQ(index->ntotal, n - 3);
    save();
    const faiss::IDSelectorRange range(1010, 1020);
    const faiss::IDSelectorNot others(&range), same(&others);
    with_failures([&] { index->remove_ids(same); }, unchanged);
    EXPECT_EQ(index->ntotal, n - 13);
    const idx_t there[] = {1001, 1058}, mixed[] = {1002, 77};
    save();
    const auto copy = clone_index(index);
    bool replaces = true;
    try {
        dynamic_cast<IndexIDTable&>(*copy).update_vectors(
                2, there, more.data());
    } catch (const UnsupportedError&) {
        replaces = false;
    }
    if (replaces) {
        with_failures(
                [&] { index->update_vectors(2, there, more.data()); },
                unchanged);
        save();
        with_failures([&] { index->upsert(2, more.data(), mixed); }, unchanged);
        EXPECT_EQ(index->ntotal, n - 12);
    }
    save();
    faiss::SearchParameters params;
    params.sel = const_cast<faiss::IDSelectorNot*>(&others);
    const auto filtered = search(*index, q, 5, &params);
    std::vector<float> distances(5 * nq);
    std::vector<idx_t> labels(5 * nq);
    with_failures(
            [&] {
                index->search(
                        nq,
                        q.data(),
                        5,
                        distances.data(),
                        labels.data(),
                        &params);
            },
            unchanged);
    EXPECT_EQ(labels, filtered.labels);
}

TEST(AllocationFailures, ChangesOfSets) {
    omp_set_num_threads(1);
    const auto index = index_binary_factory(64, "BKFlat(jaccard)");
    const Bytes codes = random_bytes((n + 3) * 8, 1);
    const uint8_t* more = &codes[n * 8];
    index->add(n, codes.data());
    Found<int32_t> found;
    const auto save = [&] { found = search(*index, codes, 5); };
    const auto unchanged = [&] {
        expect_same(search(*index, codes, 5), found);
    };
    const idx_t ids[] = {3, 40, 59, 77};
    const faiss::IDSelectorBatch some(4, ids);
    save();
    with_failures([&] { index->remove_ids(some); }, unchanged);
    EXPECT_EQ(index->ntotal, n - 3);
    const idx_t there[] = {1, 58}, mixed[] = {2, 77, 58};
    save();
    with_failures([&] { update_vectors(*index, 2, there, more); }, unchanged);
    save();
    with_failures([&] { upsert(*index, 3, more, mixed); }, unchanged);
    EXPECT_EQ(index->ntotal, n - 2);
}

TEST_P(EachIndex, SearchesFilesAndCopies) {
    const auto index = trained();
    add(*index, x);
    const Bytes before = bytes_of(*index);
    const auto found = search(*index, q, 5);
    const auto unchanged = [&] { ASSERT_EQ(bytes_of(*index), before); };
    std::vector<float> distances(5 * nq);
    std::vector<idx_t> labels(5 * nq);
    with_failures(
            [&] {
                index->search(nq, q.data(), 5, distances.data(), labels.data());
            },
            unchanged);
    EXPECT_EQ(labels, found.labels);
    EXPECT_EQ(distances, found.distances);
    with_failures([&] { clone_index(index.get()); }, unchanged);
    std::unique_ptr<faiss::Index> copy;
    with_failures(
            [&] { copy = from_bytes(before); }, [&] { EXPECT_FALSE(copy); });
    expect_same(search(*copy, q, 5), found);
}

} // namespace
