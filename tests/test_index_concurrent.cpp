// SPDX-License-Identifier: MIT
// IndexConcurrent: threads that search beside threads that add and remove. Run
// with ThreadSanitizer, too.

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexIDMap.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/indexes/IndexConcurrent.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/index_ids.h>
#include <faiss_ext/indexes/index_tree.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/AdditiveKernel.h>
#include <faiss_ext/kernels/CallbackKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>

#include "core/fair_lock.h"
#include "testing.h"

using namespace faiss_ext_test;
using std::chrono::milliseconds;

namespace {

constexpr int d = 16;

/// Runs functions at the same time, each on one thread of OpenMP.
void at_once(const std::vector<std::function<void()>>& functions) {
    std::vector<std::thread> threads;
    for (const auto& f : functions) {
        threads.emplace_back([&f] {
            omp_set_num_threads(1);
            EXPECT_NO_THROW(f());
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

/// Calls f on a thread that has begun.
template <class F>
std::future<void> begin(F f) {
    const auto begun = std::make_shared<std::promise<void>>();
    auto future = std::async(std::launch::async, [f, begun] {
        begun->set_value();
        f();
    });
    begun->get_future().wait();
    return future;
}

bool waits(const std::future<void>& future) {
    return future.wait_for(milliseconds(50)) != std::future_status::ready;
}

bool ends(const std::future<void>& future) {
    return future.wait_for(milliseconds(20000)) == std::future_status::ready;
}

// The lock.

TEST(FairLock, ChangesDoNotStarve) {
    FairLock lock;
    std::atomic<int> changes{0};
    std::vector<std::function<void()>> all(4, [&] {
        const auto end = std::chrono::steady_clock::now() + milliseconds(20000);
        while (changes < 20 && std::chrono::steady_clock::now() < end) {
            lock.lock_shared();
            std::this_thread::sleep_for(milliseconds(1));
            lock.unlock_shared();
        }
    });
    all.push_back([&] {
        for (int i = 0; i < 20; i++) {
            lock.lock();
            changes++;
            lock.unlock();
        }
    });
    const auto start = std::chrono::steady_clock::now();
    at_once(all);
    EXPECT_LT(
            std::chrono::steady_clock::now() - start,
            milliseconds(20000)); // with std::shared_mutex it is the limit
}

TEST(FairLock, ReadersWaitForOneChange) {
    FairLock lock;
    std::atomic<bool> stop{false};
    std::atomic<int> changes{0};
    int value = 0; // TSan watches it
    int num_prompt = 0;
    std::vector<std::function<void()>> all(3, [&] {
        while (!stop) {
            lock.lock();
            value++;
            std::this_thread::sleep_for(milliseconds(1));
            changes++;
            lock.unlock();
        }
    });
    all.push_back([&] {
        for (int i = 0; i < 50; i++) {
            const int before = changes;
            lock.lock_shared();
            // one may have ended before the call, and more if the system has
            // given the processor to another process
            num_prompt += changes - before <= 2;
            EXPECT_EQ(value, changes);
            lock.unlock_shared();
        }
        stop = true;
    });
    at_once(all);
    EXPECT_GE(num_prompt, 25);
}

TEST(FairLock, NobodyWaitsForLongReadsButChanges) {
    for (const bool is_long : {false, true}) {
        FairLock lock;
        is_long ? lock.lock_shared_for_long() : lock.lock_shared();
        const auto change = begin([&] {
            lock.lock();
            lock.unlock();
        });
        EXPECT_TRUE(waits(change));
        const auto reader = begin([&] {
            lock.lock_shared();
            lock.unlock_shared();
        });
        EXPECT_TRUE(is_long ? ends(reader) : waits(reader));
        is_long ? lock.unlock_shared_for_long() : lock.unlock_shared();
        change.wait();
        reader.wait();
    }
    // a reader that waits already
    FairLock lock;
    lock.lock_shared();
    const auto change = begin([&] {
        lock.lock();
        lock.unlock();
    });
    EXPECT_TRUE(waits(change));
    const auto long_read = begin([&] {
        lock.lock_shared_for_long();
        std::this_thread::sleep_for(milliseconds(1000));
        lock.unlock_shared_for_long();
    });
    EXPECT_TRUE(waits(long_read));
    lock.unlock_shared();
    change.wait();
    long_read.wait();
}

// Threads that search, and one that changes.

/// What differs between the two kinds of indexes.
template <class IndexT>
struct Kind;

template <>
struct Kind<faiss::Index> {
    static std::unique_ptr<faiss::Index> make(const std::string& text) {
        return index_factory(d, text);
    }
    static Floats data(idx_t n, uint64_t seed) {
        return normalized_histograms(n, d, seed);
    }
    static constexpr int width = d;
    static constexpr float radius = 0.05f;
    static std::unique_ptr<faiss::Index> clone(const faiss::Index& index) {
        return clone_index(&index);
    }
};

template <>
struct Kind<faiss::IndexBinary> {
    static std::unique_ptr<faiss::IndexBinary> make(const std::string& text) {
        return index_binary_factory(8 * d, text);
    }
    static Bytes data(idx_t n, uint64_t seed) {
        return random_bytes(n * d, seed);
    }
    static constexpr int width = d;
    static constexpr int radius = 50;
    static std::unique_ptr<faiss::IndexBinary> clone(
            const faiss::IndexBinary& index) {
        return clone_binary_index(&index);
    }
};

/// Vectors 0 to `stable` stay. Each of the others is added once, and then
/// removed; some of them are replaced before.
template <class IndexT>
struct Changing {
    using Component = typename IndexT::component_t;
    using Distance = typename IndexT::distance_t;

    static constexpr idx_t stable = 150, all = 650, nq = 6, k = 8, step = 5;

    const std::vector<Component> x = Kind<IndexT>::data(2 * all, 1);
    const std::vector<Component> q = Kind<IndexT>::data(nq, 2);
    /// of each query and vector, and of the vectors that replace them
    std::vector<Distance> distances;
    std::unique_ptr<IndexT> index;
    /// of vectors: set before they are added, and after they were removed
    std::array<std::atomic<bool>, all> is_added{}, is_removed{};
    std::atomic<bool> stop{false};

    explicit Changing(const std::string& string) {
        omp_set_num_threads(1);
        const std::string exact =
                std::is_same_v<IndexT, faiss::Index> ? "KFlat(chi2)" : "BFlat";
        const auto flat = Kind<IndexT>::make(exact);
        flat->add(2 * all, x.data());
        distances.resize(nq * 2 * all);
        std::vector<idx_t> labels(nq * 2 * all);
        std::vector<Distance> found(nq * 2 * all);
        flat->search(nq, q.data(), 2 * all, found.data(), labels.data());
        for (idx_t i = 0; i < nq * 2 * all; i++) {
            distances[i / (2 * all) * 2 * all + labels[i]] = found[i];
        }
        index = Kind<IndexT>::make(string);
        index->train(stable, x.data());
        add(0, stable);
    }

    const Component* row(idx_t i) const {
        return x.data() + i * Kind<IndexT>::width;
    }

    void add(idx_t begin, idx_t end) {
        std::vector<idx_t> ids;
        for (idx_t id = begin; id < end; id++) {
            is_added[id] = true;
            ids.push_back(id);
        }
        index->add_with_ids(ids.size(), row(begin), ids.data());
    }

    void remove(idx_t begin, idx_t end) {
        const faiss::IDSelectorRange range(begin, end);
        EXPECT_EQ(index->remove_ids(range), size_t(end - begin));
        for (idx_t id = begin; id < end; id++) {
            is_removed[id] = true;
        }
    }

    void change() {
        for (idx_t id = stable; id < all; id += step) {
            add(id, id + step);
            if (id % 2 == 0) {
                update_vectors(*index, 1, &id, row(all + id));
            }
            if (id - 3 * step >= stable) {
                remove(id - 3 * step, id - 2 * step);
            }
            if (id % 20 == 0) {
                compact(*index);
            }
            std::this_thread::yield();
        }
        stop = true;
    }

    std::set<idx_t> removed() const {
        std::set<idx_t> ids;
        for (idx_t id = 0; id < all; id++) {
            if (is_removed[id]) {
                ids.insert(id);
            }
        }
        return ids;
    }

    /// Checks a vector that was found by query i.
    void check(
            idx_t i,
            idx_t id,
            Distance distance,
            const std::set<idx_t>& removed_before) {
        ASSERT_TRUE(id >= 0 && id < all) << id;
        EXPECT_TRUE(is_added[id]) << id;
        EXPECT_FALSE(removed_before.contains(id)) << id;
        const auto* own = &distances[i * 2 * all];
        EXPECT_TRUE(distance == own[id] || distance == own[all + id])
                << id << ": " << distance << ", expected " << own[id] << " or "
                << own[all + id];
    }

    void search_once(bool is_exact) {
        const std::set<idx_t> removed_before = removed();
        const auto found = search(*index, q, k);
        for (idx_t i = 0; i < nq; i++) {
            std::set<idx_t> ids;
            for (idx_t j = i * k; j < (i + 1) * k; j++) {
                check(i, found.labels[j], found.distances[j], removed_before);
                ids.insert(found.labels[j]);
            }
            EXPECT_EQ(ids.size(), size_t(k));
            const Distance last = found.distances[(i + 1) * k - 1];
            for (idx_t id = 0; is_exact && id < stable; id++) {
                EXPECT_TRUE(
                        distances[i * 2 * all + id] >= last || ids.contains(id))
                        << id;
            }
        }
    }

    void range_search_once() {
        const std::set<idx_t> removed_before = removed();
        const auto found = range_search(*index, q, Kind<IndexT>::radius);
        ASSERT_EQ(found.size(), size_t(nq));
        for (idx_t i = 0; i < nq; i++) {
            for (const auto& [id, distance] : found[i]) {
                check(i, id, Distance(distance), removed_before);
            }
        }
    }

    void look() {
        index_text(*index);
        index_string(*index);
        for (const SearchParameter& parameter : search_parameters(*index)) {
            set_search_parameter(*index, parameter.name, parameter.get());
        }
        std::vector<Component> vector(Kind<IndexT>::width);
        index->reconstruct(3, vector.data());
        EXPECT_TRUE(std::equal(vector.begin(), vector.end(), row(3)));
        std::vector<idx_t> ids(all);
        std::iota(ids.begin(), ids.end(), 0);
        std::vector<Component> many(stable * Kind<IndexT>::width);
        reconstruct_batch(*index, stable, ids.data(), many.data());
        EXPECT_TRUE(std::equal(many.begin(), many.end(), x.begin()));
        const auto found = std::make_unique<bool[]>(all);
        contains(*index, all, ids.data(), found.get());
        EXPECT_TRUE(std::all_of(&found[0], &found[stable], std::identity()));
        EXPECT_GE(index_ids(*index).size(), size_t(stable));
    }

    /// A copy has the vectors of one moment: a run of steps.
    void check_copy(const IndexT& copy) {
        std::vector<idx_t> ids = index_ids(copy);
        EXPECT_EQ(ids.size(), size_t(copy.ntotal));
        std::sort(ids.begin(), ids.end());
        ASSERT_GE(ids.size(), size_t(stable));
        EXPECT_EQ(ids[stable - 1], stable - 1);
        for (size_t i = stable + 1; i < ids.size(); i++) {
            EXPECT_EQ(ids[i], ids[i - 1] + 1);
        }
        EXPECT_EQ((ids.size() - stable) % step, 0u);
        EXPECT_LE(ids.size() - stable, size_t(4 * step));
        search(copy, q, k);
    }

    void run(bool is_exact) {
        const auto until_stop = [&](auto f) {
            return [this, f] {
                do {
                    f();
                } while (!stop);
            };
        };
        at_once(
                {[&] { change(); },
                 until_stop([&] { search_once(is_exact); }),
                 until_stop([&] { range_search_once(); }),
                 until_stop([&] { look(); }),
                 until_stop([&] {
                     check_copy(*Kind<IndexT>::clone(*index));
                     check_copy(*reread(*index));
                 })});
        // all is as without threads
        check_copy(*index);
        const auto expected = reread(*index);
        expect_same(search(*index, q, k), search(*expected, q, k));
        remove(all - 3 * step, all);
        EXPECT_EQ(index->ntotal, stable);
        search_once(is_exact);
    }
};

TEST(IndexConcurrent, ThreadsSearchWhileOneChanges) {
    for (const char* string :
         {"Concurrent,KFlat(chi2)",
          "Concurrent,AHK64(chi2),BFlat,Refine(KFlat(chi2))",
          "Concurrent,HKM1(chi2),PCA8,KIVF4(nprobe=2),Refine(KFlat(chi2))",
          "Concurrent,IDMap,KFlat(chi2)",
          "Concurrent,HNSW8,KFlat(chi2)"}) {
        SCOPED_TRACE(string);
        const std::string text = string;
        const bool is_exact = text.ends_with(",KFlat(chi2)") &&
                text.find("HNSW") == text.npos;
        Changing<faiss::Index>(string).run(is_exact);
    }
}

TEST(IndexConcurrent, ThreadsSearchWhileOneChangesCodes) {
    for (const char* string :
         {"BConcurrent,BFlat", "BConcurrent,IDMap,BFlat"}) {
        SCOPED_TRACE(string);
        Changing<faiss::IndexBinary>(string).run(true);
    }
}

TEST(IndexConcurrent, ThreadsMergeInBothDirections) {
    constexpr idx_t n = 40;
    const Floats x = normalized_histograms(n, d, 1);
    const auto make = [&](idx_t first) {
        auto index = index_factory(d, "Concurrent,KFlat(chi2)");
        std::vector<idx_t> ids(n);
        std::iota(ids.begin(), ids.end(), first);
        index->add_with_ids(n, x.data(), ids.data());
        return index;
    };
    const auto a = make(0), b = make(1000);
    const auto move = [](faiss::Index& to, faiss::Index& from) {
        return [&to, &from] {
            for (int i = 0; i < 100; i++) {
                to.check_compatible_for_merge(from);
                to.merge_from(from);
            }
        };
    };
    at_once({move(*a, *b), move(*b, *a)});
    EXPECT_EQ(a->ntotal + b->ntotal, 2 * n);
    const auto other = index_factory(d, "KFlat(chi2)");
    const idx_t id = 7000;
    other->add_with_ids(1, x.data(), &id);
    a->merge_from(*other);
    EXPECT_EQ(a->ntotal + b->ntotal, 2 * n + 1);
    EXPECT_EQ(other->ntotal, 0);
}

TEST(IndexConcurrent, MergesIntoPlainIndexes) {
    constexpr idx_t n = 60;
    const Floats x = normalized_histograms(n, d, 1);
    for (const std::string string :
         {"KFlat(chi2)",
          "IDMap,KFlat(chi2)",
          "HNSW8,KFlat(chi2)",
          "AHK64(chi2),BFlat,Refine(KFlat(chi2))",
          "HKM1(chi2),Flat"}) {
        SCOPED_TRACE(string);
        const auto make = [&](const std::string& text) {
            auto index = index_factory(d, text.c_str());
            index->train(n, x.data());
            return index;
        };
        const auto plain = make(string), all = make(string),
                   shared = make("Concurrent," + string);
        all->add(n, x.data());
        plain->add(n / 2, x.data());
        shared->add(n / 2, &x[n / 2 * d]);
        plain->check_compatible_for_merge(*shared);
        plain->merge_from(*shared, string[0] == 'I' ? n / 2 : 0);
        EXPECT_EQ(plain->ntotal, n);
        EXPECT_EQ(shared->ntotal, 0);
        expect_same(search(*plain, x, 3), search(*all, x, 3));
        shared->add(1, x.data());
        EXPECT_EQ(shared->ntotal, 1);
    }
}

// Flat indexes of FAISS are of another class after they have been in a file.
TEST(IndexConcurrent, MergesFlatIndexesFromFiles) {
    constexpr idx_t n = 10;
    const Floats x = normalized_histograms(n, d, 1);
    for (const bool is_concurrent : {false, true}) {
        faiss::IndexFlatL2 of_l2(d);
        faiss::IndexFlat of_file(d);
        const auto around =
                [&](faiss::Index& flat) -> std::unique_ptr<faiss::Index> {
            if (is_concurrent) {
                return std::make_unique<IndexConcurrent>(&flat);
            }
            return std::make_unique<IndexIDTable>(&flat);
        };
        const auto a = around(of_l2), b = around(of_file);
        a->add(n / 2, x.data());
        b->add(n / 2, &x[n / 2 * d]);
        a->check_compatible_for_merge(*b);
        a->merge_from(*b, is_concurrent ? 0 : n / 2);
        EXPECT_EQ(a->ntotal, n);
        EXPECT_EQ(b->ntotal, 0);
        faiss::IndexFlatL2 all(d);
        all.add(n, x.data());
        expect_same(search(*a, x, 3), search(all, x, 3));
    }
}

// Alone.

TEST(IndexConcurrent, GivesTheResultsOfTheIndexInside) {
    constexpr idx_t n = 500, nq = 300, k = 4;
    const Floats x = normalized_histograms(n, d, 1),
                 q = normalized_histograms(nq, d, 2);
    IndexFlatKernel flat(d, Chi2Kernel());
    flat.add(n, x.data());
    IndexConcurrent index(&flat); // filled
    EXPECT_EQ(index.ntotal, n);
    EXPECT_EQ(index_string(index), "Concurrent,KFlat(chi2)");
    for (int i = 0; i < 3; i++) { // the steps grow
        expect_same(search(index, q, k), search(flat, q, k));
        EXPECT_EQ(range_search(index, q, 0.05f), range_search(flat, q, 0.05f));
    }
    Floats distances(nq * k), expected(nq * k), vectors(nq * k * d),
            of_flat(nq * k * d);
    std::vector<idx_t> labels(nq * k), expected_labels(nq * k);
    index.search_and_reconstruct(
            nq, q.data(), k, distances.data(), labels.data(), vectors.data());
    flat.search_and_reconstruct(
            nq,
            q.data(),
            k,
            expected.data(),
            expected_labels.data(),
            of_flat.data());
    EXPECT_EQ(distances, expected);
    EXPECT_EQ(labels, expected_labels);
    EXPECT_EQ(vectors, of_flat);

    Floats values(nq * k), expected_values(nq * k);
    compute_kernel_values(index, nq, q.data(), k, labels.data(), values.data());
    compute_kernel_values(
            flat, nq, q.data(), k, labels.data(), expected_values.data());
    EXPECT_EQ(values, expected_values);

    std::vector<idx_t> keys{7, 3, 7};
    Floats batch(3 * d);
    index.reconstruct_batch(3, keys.data(), batch.data());
    EXPECT_TRUE(std::equal(&batch[d], &batch[2 * d], &x[3 * d]));
    index.reconstruct_n(2, 3, batch.data());
    EXPECT_TRUE(std::equal(batch.begin(), batch.end(), &x[2 * d]));
    Bytes codes(2 * index.sa_code_size());
    index.sa_encode(2, x.data(), codes.data());
    index.sa_decode(2, codes.data(), batch.data());
    EXPECT_TRUE(std::equal(&batch[0], &batch[2 * d], x.begin()));

    index.change([&](faiss::Index& inside) {
        EXPECT_EQ(&inside, &flat);
        inside.add(2, x.data());
        index.add(1, x.data()); // by the same thread
    });
    EXPECT_EQ(index.ntotal, n + 3);
    index.reset();
    EXPECT_EQ(index.ntotal, 0);
    EXPECT_EQ(flat.ntotal, 0);
}

TEST(IndexConcurrent, ErrorsLeaveTheIndexUsable) {
    constexpr idx_t n = 100;
    const Floats x = normalized_histograms(n, d, 1);
    const auto index = index_factory(
            d, "Concurrent,AHK64(chi2,center=1),BFlat,Refine(KFlat(chi2))");
    EXPECT_FALSE(index->is_trained);
    index->train(n, x.data());
    EXPECT_TRUE(index->is_trained);
    index->add(n, x.data());
    const auto found = search(*index, x, 3);

    Floats bad = x;
    bad[(n - 1) * d + 5] = NAN;
    try { // the number of the vector is that in the call, not in the step
        search(*index, bad, 3);
        ADD_FAILURE();
    } catch (const VectorError& e) {
        EXPECT_EQ(e.vector, n - 1);
    }
    EXPECT_TRUE(throws([&] { index->add(n, bad.data()); }));
    EXPECT_TRUE(throws([&] {
        const idx_t id = n;
        update_vectors(*index, 1, &id, x.data());
    }));
    EXPECT_TRUE(throws([&] { search(*index, x, 0); }));
    EXPECT_TRUE(throws([&] { index->reconstruct(n, bad.data()); }));
    EXPECT_TRUE(throws([&] { index->merge_from(*index_factory(d, "Flat")); }));
    EXPECT_EQ(index->ntotal, n);
    // no step is left: another thread can change it
    std::thread([&] { index->add(1, x.data()); }).join();
    EXPECT_EQ(index->ntotal, n + 1);
    index->remove_ids(faiss::IDSelectorRange(n, n + 1));
    expect_same(search(*index, x, 3), found);
}

TEST(IndexConcurrent, CannotBeChangedFromWithinASearch) {
    const Floats x = uniform_vectors(3, d, 1);
    faiss::Index* own = nullptr;
    bool calls = false;
    std::function<void()> call;
    const CallbackKernel kernel([&](size_t n,
                                    const float* a,
                                    size_t m,
                                    const float* b,
                                    size_t size,
                                    float* out) {
        if (std::exchange(calls, false)) {
            call();
        }
        LinearKernel().block(n, a, m, b, size, out);
    });
    omp_set_num_threads(1);
    IndexFlatKernel flat(d, kernel, faiss::METRIC_INNER_PRODUCT);
    flat.add(3, x.data());
    IndexConcurrent index(&flat);
    own = &index;
    const auto run = [&](const std::function<void()>& f) {
        call = f;
        calls = true;
        return search(index, x, 2);
    };
    const auto expected = search(flat, x, 2);
    expect_same(run([&] { search(*own, x, 1); }), expected); // it may read
    EXPECT_TRUE(
            throws([&] { run([&] { own->reset(); }); },
                   "a call that reads the index cannot change it"));
    EXPECT_EQ(index.ntotal, 3);
    expect_same(search(index, x, 2), expected);
}

TEST(IndexConcurrent, RefusesWhatItCannotProtect) {
    faiss::IndexFlat flat(d);
    IndexConcurrent index(&flat);
    faiss::IndexBinaryFlat codes(8 * d);
    IndexBinaryConcurrent of_codes(&codes);
    EXPECT_TRUE(
            throws([&] { IndexConcurrent again(&index); }, "one is enough"));
    EXPECT_TRUE(throws([] { IndexConcurrent none(nullptr); }, "null"));
    EXPECT_TRUE(
            throws([&] { index.get_distance_computer(); }, "not supported"));
    EXPECT_EQ(index_text(of_codes).find("IndexBinaryConcurrent("), 0u);
    for (const auto& [text, named] :
         std::vector<std::pair<const char*, const char*>>{
                 {"Concurrent", "expected an index inside Concurrent"},
                 {"Concurrent(x=1),Flat", "x"},
                 {"Concurrent2,Flat", "Concurrent2"},
                 {"Concurrent,Concurrent,Flat", "must come first"},
                 {"IDMap,Concurrent,Flat", "must come first"},
                 {"PCA4,Concurrent,Flat", "must come first"},
                 {"HKM1(chi2),Concurrent,Flat", "must come first"},
                 {"Flat,Refine(Concurrent,KFlat(chi2))", "must come first"},
                 {"SIK64(gaussian),BConcurrent,BFlat", "must come first"},
                 {"Concurrent,IDMap,KIVF4", "keep ids themselves"},
                 {"BConcurrent,BFlat", "index_binary_factory"}}) {
        EXPECT_TRUE(throws([&, text = text] { index_factory(d, text); }, named))
                << text;
    }
    for (const auto& [text, named] :
         std::vector<std::pair<const char*, const char*>>{
                 {"BConcurrent", "expected an index inside BConcurrent"},
                 {"IDMap,BConcurrent,BFlat", "must come first"},
                 {"BConcurrent,BConcurrent,BFlat", "must come first"},
                 {"Concurrent,BFlat", "Concurrent"}}) {
        EXPECT_TRUE(throws(
                [&, text = text] { index_binary_factory(8 * d, text); }, named))
                << text;
    }
    // a wrapper around it has no string
    faiss::IndexIDMap map(&index);
    EXPECT_TRUE(throws([&] { index_string(map); }, "cannot make"));
}

TEST(IndexConcurrent, HasStringsFilesAndCopies) {
    const Floats x = normalized_histograms(50, d, 1);
    for (const char* text :
         {"Concurrent,Flat",
          "Concurrent,IDMap,KFlat(chi2)",
          "Concurrent,HNSW8,KFlat(chi2)",
          "Concurrent,PCA8,IVF4,Flat",
          "Concurrent,IDMap,Flat",
          "Concurrent,IVF4,Flat,RFlat",
          "Concurrent,KIVF4(M=4),Refine(KFlat(chi2,store=u8))"}) {
        SCOPED_TRACE(text);
        const auto index = index_factory(d, text);
        EXPECT_EQ(index_string(*index), text);
        index->train(50, x.data());
        index->add(50, x.data());
        for (const auto& copy : {reread(*index), clone_index(index.get())}) {
            EXPECT_TRUE(dynamic_cast<const IndexConcurrent*>(copy.get()));
            EXPECT_EQ(index_string(*copy), text);
            // FAISS's distances depend on the size of a batch
            EXPECT_EQ(search(*copy, x, 3).labels, search(*index, x, 3).labels);
        }
    }
    const auto hashed = index_binary_factory(
            d, "BConcurrent,SIK64(gaussian(gamma=1)),BFlat");
    EXPECT_EQ(hashed->d, 64);
    EXPECT_EQ(
            index_string(*reread(*hashed)),
            "BConcurrent,SIK64(gaussian(gamma=1)),BFlat");
    for (const char* text :
         {"BConcurrent,BHash8",
          "BConcurrent,BIVF4",
          "BConcurrent,BHNSW8,BKFlat(jaccard)",
          "BConcurrent,BIVF4,Refine(BKFlat(dice))",
          "BConcurrent,IDMap,BKFlat(jaccard)"}) {
        EXPECT_EQ(index_string(*reread(*index_binary_factory(64, text))), text);
    }
}

} // namespace
