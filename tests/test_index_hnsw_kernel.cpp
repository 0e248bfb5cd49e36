// SPDX-License-Identifier: MIT
// Graphs over kernels, with exceptions and interrupts.

#include <faiss_ext/indexes/IndexHNSWKernel.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <tuple>

#include <faiss/impl/IDSelector.h>
#include <faiss/impl/io.h>

#include <faiss_ext/core/progress.h>
#include <faiss_ext/indexes/index_ids.h>
#include <faiss_ext/indexes/index_tree.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/CallbackKernel.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr int d = 8;

using Calls = std::shared_ptr<std::atomic<int64_t>>;

/// Computes inner products until no calls are left; then throws.
CallbackKernel limited_kernel(const Calls& left) {
    const std::shared_ptr<const Kernel> linear = kernel_factory("linear");
    return CallbackKernel([=](auto... arguments) {
        if (--*left < 0) {
            throw std::runtime_error("no more calls");
        }
        linear->block(arguments...);
    });
}

struct Graph {
    Calls left = std::make_shared<std::atomic<int64_t>>(INT64_MAX);
    IndexFlatKernel flat{d, limited_kernel(left)};
    IndexHNSWKernel index{&flat, 8};

    /// Returns whether f fails after this many calls of the kernel.
    bool fails_after(int calls, const std::function<void()>& f) {
        bool fails = false;
        *left = calls;
        try {
            f();
        } catch (const std::runtime_error& e) {
            fails = e.what() == std::string("no more calls");
        }
        *left = INT64_MAX;
        return fails;
    }
};

std::unique_ptr<faiss::Index> filled_flat(const std::vector<float>& x) {
    auto flat = index_factory(d, "KFlat(linear)");
    flat->add(idx_t(x.size() / d), x.data());
    return flat;
}

TEST(IndexHNSWKernel, AFailedAddToAnEmptyIndexLeavesNothing) {
    const auto x = uniform_vectors(300, d, 1);
    Graph fresh;
    fresh.index.add(300, x.data());
    for (int calls : {0, 1, 100, 2000}) {
        SCOPED_TRACE(calls);
        Graph graph;
        EXPECT_TRUE(graph.fails_after(
                calls, [&] { graph.index.add(300, x.data()); }));
        EXPECT_EQ(graph.index.ntotal, 0);
        EXPECT_EQ(graph.flat.ntotal, 0);
        EXPECT_EQ(graph.flat.codes.size(), 0u);
        EXPECT_EQ(graph.index.hnsw.levels.size(), 0u);
        // the next one builds the same as a new index
        graph.index.add(300, x.data());
        EXPECT_EQ(graph.index.hnsw.levels, fresh.index.hnsw.levels);
        expect_same(search(graph.index, x, 5), search(fresh.index, x, 5));
    }
}

TEST(IndexHNSWKernel, AFailedAddLeavesTheOtherVectors) {
    const auto x = uniform_vectors(400, d, 2);
    Graph graph;
    IndexHNSWKernel& index = graph.index;
    index.add(200, x.data());
    index.hnsw.efSearch = 400;
    const auto before = search(index, x, 10);
    for (int calls : {1, 30, 100, 500, 1500}) {
        SCOPED_TRACE(calls);
        EXPECT_TRUE(
                graph.fails_after(calls, [&] { index.add(200, &x[200 * d]); }));
        EXPECT_EQ(index.ntotal, 200);
        expect_same(search(index, x, 10), before);
        expect_same(search(*faiss_ext::clone_index(&index), x, 10), before);
    }
    EXPECT_TRUE(graph.fails_after(100, [&] { index.compact(); }));
    expect_same(search(index, x, 10), before);
    index.add(200, &x[200 * d]);
    EXPECT_EQ(index.ntotal, 400);
    const auto exact = search(*filled_flat(x), x, 10).labels;
    EXPECT_EQ(search(index, x, 10).labels, exact);
    index.compact();
    EXPECT_EQ(graph.flat.ntotal, 400);
    EXPECT_EQ(search(index, x, 10).labels, exact);

    // errors in a search reach the caller
    EXPECT_TRUE(graph.fails_after(5, [&] { search(index, x, 3); }));
    index.reset();
    index.add(10, x.data());
    search(index, x, 1);
}

TEST(IndexHNSWKernel, AllVectorsAreFoundIfAsManyAreWanted) {
    const idx_t n = 300;
    const auto x = uniform_vectors(n, d, 6), q = uniform_vectors(20, d, 7);
    Graph graph;
    graph.index.add(n, x.data());
    graph.index.hnsw.efSearch = 1;
    for (const idx_t k : {n, n + 1, 2 * n}) {
        expect_same(search(graph.index, q, k), search(graph.flat, q, k));
    }
}

TEST(IndexHNSWKernel, AnInterruptedAddLeavesNothing) {
    const auto x = uniform_vectors(3000, d, 5);
    std::atomic<bool> now{false};
    std::atomic<int> calls{0};
    const std::shared_ptr<const Kernel> linear = kernel_factory("linear");
    IndexFlatKernel flat(
            d, CallbackKernel([&](auto... arguments) {
                if (++calls ==
                    5000) { // in the middle; the check is made at intervals
                    now = true;
                }
                if (now) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                }
                linear->block(arguments...);
            }));
    IndexHNSWKernel index(&flat, 8);
    EXPECT_TRUE(interrupted_when(
            [&] { return now.load(); }, [&] { index.add(3000, x.data()); }));
    EXPECT_GE(calls, 5000);
    EXPECT_EQ(index.ntotal, 0);
    now = false;
    index.add(200, x.data());
    EXPECT_EQ(search(index, rows(x, d, 0, 200), 1).labels.size(), 200u);
}

TEST(IndexHNSWKernel, IsLeftAloneWhileItIsBuilt) {
    const auto x = uniform_vectors(3000, d, 6);
    const auto made = index_factory(d, "HNSW8,KFlat(linear)");
    auto& index = dynamic_cast<IndexHNSWKernel&>(*made);
    faiss::VectorIOWriter writer;
    int times = 0;
    const auto meddle = [&](const char*, size_t, size_t) {
        times++;
        expect_throws(
                {{[&] { index.reset(); }, "being built"},
                 {[&] { index.compact(); }, "being built"},
                 {[&] { index.add(1, x.data()); }, "being built"},
                 {[&] { search(index, rows(x, d, 0, 1), 1); }, "being built"},
                 {[&] { write_index(&index, &writer); }, "being built"}});
    };
    {
        const ProgressScope scope(meddle, std::chrono::milliseconds(0));
        index.add(2000, x.data());
        index.add(1000, &x[2000 * d]);
    }
    EXPECT_GT(times, 2);
    EXPECT_EQ(index.ntotal, 3000);
    // if the function lets the exception pass, the call ends
    const ProgressScope scope(
            [&](const char*, size_t, size_t) { index.reset(); },
            std::chrono::milliseconds(0));
    EXPECT_TRUE(throws([&] { index.compact(); }, "being built"));
    index.reset();
    EXPECT_TRUE(throws([&] { index.add(3000, x.data()); }, "being built"));
    EXPECT_EQ(index.ntotal, 0);
}

TEST(IndexHNSWKernel, Construction) {
    const auto x = uniform_vectors(100, d, 7);
    IndexFlatKernel flat(d, *kernel_factory("chi2"));
    EXPECT_TRUE(throws([&] { IndexHNSWKernel(&flat, 1); }, "M is 1"));
    flat.add(1, x.data());
    EXPECT_TRUE(throws([&] { IndexHNSWKernel(&flat, 8); }, "empty"));
    const auto index = index_factory(d, "HNSW8,KFlat(gaussian)");
    EXPECT_FALSE(index->is_trained);
    EXPECT_TRUE(throws([&] { index->add(1, x.data()); }, "train"));
    index->train(100, x.data());
    EXPECT_TRUE(index->is_trained);
}

// ------------------------------------------------------ searches and graphs

constexpr idx_t n = 1000, nq = 60;

/// Returns vectors with components >= 0 whose sum is 1.
std::vector<float> histograms(idx_t count, int seed) {
    auto x = uniform_vectors(count, d, seed);
    for (idx_t i = 0; i < count; i++) {
        float* row = &x[i * d];
        const float sum = std::accumulate(row, row + d, 0.0f);
        std::transform(row, row + d, row, [&](float v) { return v / sum; });
    }
    return x;
}

struct EachGraph
        : testing::TestWithParam<std::tuple<const char*, faiss::MetricType>> {
    const std::string flat_string = std::get<0>(GetParam());
    const faiss::MetricType metric = std::get<1>(GetParam());
    const std::vector<float> x = histograms(n, 1), q = histograms(nq, 2);
    const std::unique_ptr<faiss::Index> flat = filled(flat_string, n);
    const std::unique_ptr<faiss::Index> index =
            filled("HNSW8," + flat_string, n);
    IndexHNSWKernel& graph = dynamic_cast<IndexHNSWKernel&>(*index);

    std::unique_ptr<faiss::Index> filled(const std::string& s, idx_t count)
            const {
        auto made = faiss_ext::index_factory(d, s, metric);
        made->add(count, x.data());
        return made;
    }
};

INSTANTIATE_TEST_SUITE_P(
        IndexHNSWKernel,
        EachGraph,
        testing::Combine(
                testing::Values(
                        "KFlat(gaussian(gamma=1))",
                        "KFlat(chi2)",
                        "KFlat(chi2,store=u8)",
                        "KFlat(gaussian(gamma=1),store=i8)",
                        "KFlat(laplacian(gamma=1),store=f16)"),
                testing::Values(
                        faiss::METRIC_L2,
                        faiss::METRIC_INNER_PRODUCT)));

// Vectors of bytes are compared without decoding them.
TEST(IndexHNSWKernel, DistancesToBytesAreThoseOfAScan) {
    for (const int d : {1, 7, 16, 31, 64, 100}) {
        for (const std::string store : {"u8", "i8"}) {
            SCOPED_TRACE(store + " " + std::to_string(d));
            auto x = uniform_vectors(300, d, 5), q = uniform_vectors(9, d, 6);
            if (store == "i8") {
                for (float& v : x) {
                    v = v - 0.5f;
                }
            }
            const std::string kernel = "KFlat(linear,store=" + store + ")";
            const auto graph = faiss_ext::index_factory(d, "HNSW8," + kernel);
            const auto flat = faiss_ext::index_factory(d, kernel);
            graph->add(300, x.data());
            flat->add(300, x.data());
            dynamic_cast<faiss::IndexHNSW&>(*graph).hnsw.efSearch = 300;
            const auto found = search(*graph, q, 20);
            const auto expected = search(*flat, q, 20);
            for (size_t i = 0; i < found.distances.size(); i++) {
                ASSERT_NEAR(
                        found.distances[i], expected.distances[i], 1e-5f * d);
            }
        }
    }
}

/// Checks the assumptions of FAISS's own loops.

void expect_sound(const faiss::HNSW& hnsw, idx_t ntotal) {
    ASSERT_EQ(hnsw.levels.size(), size_t(ntotal));
    ASSERT_EQ(hnsw.offsets.size(), size_t(ntotal) + 1);
    ASSERT_EQ(hnsw.neighbors.size(), hnsw.offsets[ntotal]);
    const int highest =
            *std::max_element(hnsw.levels.begin(), hnsw.levels.end());
    EXPECT_EQ(hnsw.max_level, highest - 1);
    EXPECT_EQ(hnsw.levels[hnsw.entry_point], highest);
    for (idx_t i = 0; i < ntotal; i++) {
        for (int level = 0; level < hnsw.levels[i]; level++) {
            size_t begin, end;
            hnsw.neighbor_range(i, level, &begin, &end);
            ASSERT_LE(end, hnsw.offsets[i + 1]);
            std::set<int32_t> links;
            bool is_over = false;
            for (size_t j = begin; j < end; j++) {
                const int32_t to = hnsw.neighbors[j];
                ASSERT_FALSE(is_over && to != -1);
                is_over = is_over || to == -1;
                if (!is_over) {
                    ASSERT_TRUE(to >= 0 && to < ntotal && to != i);
                    ASSERT_GT(hnsw.levels[to], level);
                    ASSERT_TRUE(links.insert(to).second);
                }
            }
            const bool is_alone = level == highest - 1 &&
                    std::count(
                            hnsw.levels.begin(), hnsw.levels.end(), highest) ==
                            1;
            EXPECT_EQ(links.empty(), is_alone);
        }
    }
}

TEST_P(EachGraph, HasTheFormOfFaiss) {
    expect_sound(graph.hnsw, n);
    const auto parts = filled("HNSW8," + flat_string, 1);
    for (idx_t i = 1; i < 500; i += 1 + i / 2) {
        parts->add(std::min(1 + i / 2, 500 - i), &x[i * d]);
    }
    expect_sound(dynamic_cast<IndexHNSWKernel&>(*parts).hnsw, 500);
    // FAISS's own loops on the same graph find as many
    faiss::IndexHNSW theirs(graph.storage, 8);
    theirs.hnsw = graph.hnsw;
    theirs.ntotal = n;
    theirs.hnsw.efSearch = graph.hnsw.efSearch = n;
    const auto exact = search(*flat, q, 10);
    EXPECT_EQ(search(theirs, q, 10).distances, exact.distances);
}

TEST_P(EachGraph, AWalkOverAllOfItIsExhaustive) {
    graph.hnsw.efSearch = n;
    const auto exact = search(*flat, q, 10);
    const float radius = exact.distances[5];
    for (bool bounded : {true, false}) {
        for (bool relative : {true, false}) {
            graph.hnsw.search_bounded_queue = bounded;
            graph.hnsw.check_relative_distance = relative;
            expect_same(search(graph, q, 10), exact);
            EXPECT_EQ(
                    range_search(graph, q, radius),
                    range_search(*flat, q, radius));
        }
    }
    graph.hnsw.efSearch = 1; // k vectors are kept in any case
    const auto all = search(graph, rows(q, d, 0, 3), n + 5);
    for (idx_t i = 0; i < 3; i++) {
        for (idx_t j = n; j < n + 5; j++) {
            EXPECT_EQ(all.labels[i * (n + 5) + j], -1);
        }
    }
}

TEST_P(EachGraph, SelectorsAndParameters) {
    const faiss::IDSelectorRange selector(100, 700);
    faiss::SearchParameters of_flat;
    faiss::SearchParametersHNSW params;
    of_flat.sel = params.sel = const_cast<faiss::IDSelectorRange*>(&selector);
    params.efSearch = n;
    expect_same(search(graph, q, 10, &params), search(*flat, q, 10, &of_flat));
    graph.hnsw.efSearch = n;
    expect_same(search(graph, q, 10, &of_flat), search(*flat, q, 10, &of_flat));
    params.sel = nullptr;
    params.efSearch = 20;
    const auto found = search(graph, q, 10, &params);
    graph.hnsw.efSearch = 20;
    expect_same(search(graph, q, 10), found);
    params.efSearch = 0;
    EXPECT_TRUE(throws([&] { search(graph, q, 10, &params); }, "efSearch"));
    graph.hnsw.efConstruction = 0;
    EXPECT_TRUE(throws([&] { graph.add(1, x.data()); }, "efConstruction"));
    EXPECT_EQ(graph.ntotal, n);
}

TEST_P(EachGraph, ThreadsAndBatches) {
    const auto found = search(graph, q, 10);
    for (int count : {1, 2, 3}) {
        SCOPED_TRACE(count);
        const Threads threads(count);
        expect_same(search(graph, q, 10), found);
        const auto same = filled("HNSW8," + flat_string, n);
        const auto& hnsw = dynamic_cast<IndexHNSWKernel&>(*same).hnsw;
        EXPECT_TRUE(std::equal(
                hnsw.neighbors.data(),
                hnsw.neighbors.data() + hnsw.neighbors.size(),
                graph.hnsw.neighbors.data()));
        EXPECT_EQ(hnsw.entry_point, graph.hnsw.entry_point);
    }
    for (idx_t i = 0; i < nq; i += 7) {
        const auto one = search(graph, rows(q, d, i, i + 1), 10);
        for (idx_t j = 0; j < 10; j++) {
            EXPECT_EQ(one.labels[j], found.labels[i * 10 + j]);
        }
    }
}

TEST(IndexHNSWKernel, FindsAsMuchAsTheLoopsOfFaiss) {
    constexpr idx_t many = 5000;
    const auto x = histograms(2000, 1), q = histograms(many, 2);
    IndexFlatKernel flat(d, *kernel_factory("chi2")), empty(flat);
    flat.add(2000, x.data());
    const auto labels = search(flat, q, 10).labels;
    IndexFlatKernel storage(empty), their_storage(empty);
    IndexHNSWKernel ours(&storage, 4);
    faiss::IndexHNSW theirs(&their_storage, 4);
    ours.add(2000, x.data());
    theirs.add(2000, x.data());
    for (int ef : {10, 20, 40}) {
        SCOPED_TRACE(ef);
        ours.hnsw.efSearch = theirs.hnsw.efSearch = ef;
        // for each query, the recalls differ by a number from -1 to 1
        EXPECT_GT(
                recall(search(ours, q, 10).labels, labels, 10),
                recall(search(theirs, q, 10).labels, labels, 10) -
                        hoeffding(many, 2));
    }
}

TEST(IndexHNSWKernel, AddingANewGroupAtOnceLinksItWithin) {
    // add 300 vectors far from the first 3,000, in one round
    auto x = uniform_vectors(3300, d, 3);
    for (idx_t i = 3000 * d; i < 3300 * d; i++) {
        x[i] += 100;
    }
    const auto index =
            faiss_ext::index_factory(d, "HNSW8,KFlat(laplacian(gamma=0.01))");
    index->add(3000, x.data());
    index->add(300, &x[3000 * d]);
    const auto flat =
            faiss_ext::index_factory(d, "KFlat(laplacian(gamma=0.01))");
    flat->add(3300, x.data());
    const auto q = rows(x, d, 3000, 3300);
    const auto exact = search(*flat, q, 5);
    EXPECT_GT(recall(search(*index, q, 5).labels, exact.labels, 5), 0.9);
}

// ----------------------------------------------------------------- removal

/// A graph, and the vectors that are in it by their ids.
struct Collection {
    const std::vector<float> x;
    const std::unique_ptr<faiss::Index> index;
    IndexHNSWKernel& graph;
    std::vector<idx_t> rows; ///< of x, by place

    Collection(std::vector<float> vectors, const char* text)
            : x(std::move(vectors)),
              index(faiss_ext::index_factory(d, text)),
              graph(dynamic_cast<IndexHNSWKernel&>(*index)) {}

    void add(idx_t begin, idx_t end) {
        index->add(end - begin, &x[begin * d]);
        for (idx_t row = begin; row < end; row++) {
            rows.push_back(row);
        }
    }

    /// Removes vectors by places; later ones move up.
    void remove(const std::vector<idx_t>& places) {
        const faiss::IDSelectorBatch sel(places.size(), places.data());
        EXPECT_EQ(
                graph.IndexHNSWKernel::remove_ids(sel),
                std::set<idx_t>(places.begin(), places.end()).size());
        std::vector<idx_t> kept;
        for (idx_t place = 0; place < idx_t(rows.size()); place++) {
            if (std::find(places.begin(), places.end(), place) ==
                places.end()) {
                kept.push_back(rows[place]);
            }
        }
        rows = kept;
    }

    std::unique_ptr<faiss::Index> flat() const {
        auto exact = faiss_ext::index_factory(
                d, index_string(graph.storage).c_str());
        for (const idx_t row : rows) {
            exact->add(1, &x[row * d]);
        }
        return exact;
    }
};

/// Removes and adds vectors in turn.
void change_often(Collection& c, int seed) {
    std::mt19937 random(seed);
    idx_t next = idx_t(c.rows.size());
    for (int step = 0; step < 12; step++) {
        std::vector<idx_t> places(c.rows.size());
        std::iota(places.begin(), places.end(), idx_t(0));
        std::shuffle(places.begin(), places.end(), random);
        places.resize(1 + random() % 40);
        c.remove(places);
        const idx_t more = 1 + random() % 40;
        c.add(next, next + more);
        next += more;
    }
}

TEST(IndexHNSWKernel, RemovedVectorsAreNeverFoundAndOthersAlways) {
    for (const char* text :
         {"HNSW8,KFlat(chi2)", "HNSW16,KFlat(laplacian(gamma=1),store=f16)"}) {
        SCOPED_TRACE(text);
        Collection c(histograms(1500, 1), text);
        c.add(0, 300);
        change_often(c, 5);
        EXPECT_GT(c.graph.num_removed(), 0);
        c.graph.hnsw.efSearch = 1500;
        const auto q = histograms(50, 2);
        const auto exact = c.flat();
        const auto expected = search(*exact, q, 10);
        const auto expect_all = [&](const faiss::Index& index) {
            EXPECT_EQ(index.ntotal, exact->ntotal);
            expect_same(search(index, q, 10), expected);
            const float radius = expected.distances[5];
            EXPECT_EQ(
                    range_search(index, q, radius),
                    range_search(*exact, q, radius));
            const faiss::IDSelectorRange sel(20, 200);
            faiss::SearchParameters params;
            params.sel = const_cast<faiss::IDSelectorRange*>(&sel);
            expect_same(
                    search(index, q, 10, &params),
                    search(*exact, q, 10, &params));
            std::vector<float> mine(d), theirs(d);
            const std::unique_ptr<faiss::DistanceComputer> distance(
                    index.get_distance_computer());
            distance->set_query(q.data());
            for (idx_t i = 0; i < index.ntotal; i += 17) {
                index.reconstruct(i, mine.data());
                exact->reconstruct(i, theirs.data());
                EXPECT_EQ(mine, theirs);
            }
            EXPECT_EQ((*distance)(expected.labels[0]), expected.distances[0]);
        };
        expect_all(*c.index);
        expect_all(*faiss_ext::clone_index(c.index.get()));
        const auto read = reread(*c.index);
        expect_all(*read);
        // the same changes of both have the same result
        read->add(100, &c.x[1000 * d]);
        c.index->add(100, &c.x[1000 * d]);
        expect_same(search(*read, q, 10), search(*c.index, q, 10));
        std::vector<idx_t> last(100);
        std::iota(last.begin(), last.end(), exact->ntotal);
        c.rows.resize(exact->ntotal + 100);
        c.remove(last);
        expect_all(*c.index);
        c.graph.compact();
        EXPECT_EQ(c.graph.num_removed(), 0);
        EXPECT_EQ(c.graph.storage->ntotal, exact->ntotal);
        expect_all(*c.index);
    }
}

TEST(IndexHNSWKernel, TheGraphAfterRemovalsDoesNotDependOnThreads) {
    std::vector<int32_t> links;
    for (int count : {1, 3}) {
        const Threads threads(count);
        Collection c(histograms(1500, 1), "HNSW8,KFlat(chi2)");
        c.add(0, 300);
        change_often(c, 5);
        const auto& all = c.graph.hnsw.neighbors;
        const std::vector<int32_t> now(all.data(), all.data() + all.size());
        if (links.empty()) {
            links = now;
        }
        EXPECT_EQ(now, links);
    }
}

TEST(IndexHNSWKernel, VerticesOfRemovedVectorsAreUsedAgain) {
    Collection c(histograms(4000, 1), "HNSW8,KFlat(chi2)");
    c.add(0, 1000);
    for (idx_t i = 1000; i < 4000; i += 50) {
        std::vector<idx_t> first(50);
        std::iota(first.begin(), first.end(), idx_t(0));
        c.remove(first);
        c.add(i, i + 50);
    }
    EXPECT_EQ(c.graph.ntotal, 1000);
    EXPECT_LT(c.graph.storage->ntotal, 1200);
    std::vector<idx_t> all(c.graph.ntotal);
    std::iota(all.begin(), all.end(), idx_t(0));
    c.remove(all);
    EXPECT_EQ(c.graph.ntotal, 0);
    EXPECT_EQ(search(*c.index, rows(c.x, d, 0, 1), 3).labels[0], -1);
    c.add(0, 1000);
    EXPECT_LT(c.graph.storage->ntotal, 1200);
    c.graph.hnsw.efSearch = 1000;
    const auto q = histograms(50, 2);
    expect_same(search(*c.index, q, 10), search(*c.flat(), q, 10));
}

TEST(IndexHNSWKernel, FewSurvivorsAreFoundAsInAFreshGraph) {
    constexpr idx_t many = 2000;
    const auto x = histograms(many, 1), q = histograms(300, 2);
    for (const bool at_once : {true, false}) {
        SCOPED_TRACE(at_once);
        Collection c(x, "HNSW8,KFlat(chi2)");
        c.add(0, many - 100);
        std::mt19937 random(3);
        while (c.rows.size() > 200) {
            std::vector<idx_t> places(c.rows.size());
            std::iota(places.begin(), places.end(), idx_t(0));
            std::shuffle(places.begin(), places.end(), random);
            places.resize(
                    at_once ? places.size() - 200 : 1 + places.size() / 8);
            c.remove(places);
        }
        const auto expect_all = [&] {
            const auto flat = c.flat();
            const idx_t total = c.index->ntotal;
            expect_same(search(*c.index, q, total), search(*flat, q, total));
            expect_same(
                    search(*c.index, q, total + 9),
                    search(*flat, q, total + 9));
        };
        expect_all();
        c.add(many - 100, many);
        c.graph.hnsw.efSearch = many;
        expect_all();
        EXPECT_LT(c.graph.storage->ntotal, 700); // built again meanwhile
    }
}

TEST(IndexHNSWKernel, FewRemovedVerticesArePassed) {
    // a pass begins with 1/64 of the vertices; it takes changes of 1/64 of as
    // many vectors, half of which are removals
    Collection c(histograms(4000, 1), "HNSW8,KFlat(chi2)");
    c.add(0, 1000);
    for (idx_t i = 1000; i < 4000; i++) {
        c.remove({(i * 7) % 1000});
        c.add(i, i + 1);
        ASSERT_LE(
                128 * (c.graph.places.num_passed() - 1),
                3 * c.graph.storage->ntotal);
    }
    EXPECT_LE(c.graph.storage->ntotal, 1000 + 1000 / 32);
}

TEST(IndexHNSWKernel, RangesOfFewSelectedVectorsAreExact) {
    Collection c(histograms(2000, 1), "HNSW8,KFlat(chi2)");
    c.add(0, 1000);
    change_often(c, 5);
    c.graph.hnsw.efSearch = 10;
    const auto q = histograms(50, 2);
    const auto exact = c.flat();
    const float radius = search(*exact, q, 100).distances[99];
    const faiss::IDSelectorRange sel(20, 200);
    faiss::SearchParameters params;
    params.sel = const_cast<faiss::IDSelectorRange*>(&sel);
    EXPECT_EQ(
            range_search(*c.index, q, radius, &params),
            range_search(*exact, q, radius, &params));
}

TEST(IndexHNSWKernel, NoVertexLinksToAnUnlinkedOne) {
    constexpr idx_t n = 500;
    const auto x = uniform_vectors(n, d, 1);
    const auto index = faiss_ext::index_factory(d, "HNSW32,KFlat(chi2)");
    index->add(n, x.data());
    const auto& graph = dynamic_cast<const IndexHNSWKernel&>(*index);
    const faiss::HNSW& hnsw = graph.hnsw;
    std::mt19937 random(1);
    for (idx_t step = 0; step < 2 * n; step++) {
        const idx_t id = idx_t(random() % n);
        update_vectors(*index, 1, &id, &x[id * d]);
        const auto& unlinked = graph.places.unlinked;
        std::vector<bool> is_unlinked(hnsw.levels.size());
        for (const int32_t vertex : unlinked) {
            is_unlinked[vertex] = true;
        }
        for (size_t i = 0; i < hnsw.offsets.back(); i++) {
            const int32_t to = hnsw.neighbors[i];
            ASSERT_FALSE(to >= 0 && is_unlinked[to]) << step;
        }
    }
    for (const int ef : {20, int(n)}) {
        dynamic_cast<IndexHNSWKernel&>(*index).hnsw.efSearch = ef;
        const auto found = search(*index, x, 1).labels;
        for (idx_t i = 0; i < n; i++) {
            EXPECT_EQ(found[i], i);
        }
    }
}

TEST(IndexHNSWKernel, VectorsInARegionWhoseVectorsWereAllRemoved) {
    constexpr idx_t n = 1000, half = 90;
    auto x = uniform_vectors(n, d, 1);
    const char* text = "HNSW8,KFlat(laplacian(gamma=0.01))";
    Collection levels(x, text);
    levels.add(0, n);
    // searches begin in the region
    const idx_t entry = levels.graph.hnsw.entry_point;
    const idx_t begin = std::clamp<idx_t>(entry - half, 0, n - 2 * half);
    for (idx_t i = begin * d; i < (begin + 2 * half) * d; i++) {
        x[i] += 100;
    }
    const auto more = uniform_vectors(2 * half, d, 2);
    x.insert(x.end(), more.begin(), more.end());
    for (idx_t i = n * d; i < (n + 2 * half) * d; i++) {
        x[i] += 100;
    }
    Collection c(x, text);
    c.add(0, n);
    ASSERT_EQ(c.graph.hnsw.entry_point, entry);
    std::vector<idx_t> region(2 * half);
    std::iota(region.begin(), region.end(), begin);
    c.remove(region);
    for (idx_t i = n; i < n + 2 * half; i++) {
        c.add(i, i + 1);
        ASSERT_EQ(
                search(*c.index, rows(x, d, i, i + 1), 1).labels[0],
                c.graph.ntotal - 1);
        ASSERT_GE(search(*c.index, rows(x, d, 0, 1), 1).labels[0], 0);
    }
    EXPECT_EQ(c.graph.places.num_passed(), 0);
    const auto q = rows(x, d, 0, n + 2 * half);
    const auto exact = c.flat();
    EXPECT_GT(
            recall(search(*c.index, q, 5).labels,
                   search(*exact, q, 5).labels,
                   5),
            0.9);
}

TEST(IndexHNSWKernel, KernelValuesAfterRemovals) {
    Collection c(histograms(1500, 1), "HNSW8,KFlat(chi2)");
    c.add(0, 300);
    change_often(c, 5);
    const auto q = histograms(50, 2);
    const auto found = search(*c.index, q, 5);
    std::vector<float> values(50 * 5), expected(50 * 5);
    compute_kernel_values(
            *c.index, 50, q.data(), 5, found.labels.data(), values.data());
    const auto flat = c.flat();
    compute_kernel_values(
            *flat, 50, q.data(), 5, found.labels.data(), expected.data());
    EXPECT_EQ(values, expected);
}

TEST(IndexHNSWKernel, EntryPointsOutsideTheGraphAreErrors) {
    const auto x = histograms(100, 1);
    Collection c(x, "HNSW8,KFlat(chi2)");
    c.add(0, 100);
    for (const int entry : {-2000000000, -2, -1, 100, 2000000000}) {
        c.graph.hnsw.entry_point = entry;
        EXPECT_TRUE(throws([&] { search(*c.index, x, 1); }, "entry point"));
    }
}

TEST(IndexHNSWKernel, ARenewedGraphFindsAsMuchAsAFreshOne) {
    constexpr idx_t many = 5000, total = 4000, step = total / 20;
    Collection c(histograms(total + total / 2, 1), "HNSW8,KFlat(chi2)");
    c.add(0, total);
    std::mt19937 random(3);
    for (idx_t i = 0; i < total / 2; i += step) {
        std::vector<idx_t> places(c.rows.size());
        std::iota(places.begin(), places.end(), idx_t(0));
        std::shuffle(places.begin(), places.end(), random);
        places.resize(step);
        c.remove(places);
        c.add(total + i, total + i + step);
    }
    const auto fresh = faiss_ext::index_factory(d, "HNSW8,KFlat(chi2)");
    std::vector<float> now;
    for (const idx_t row : c.rows) {
        now.insert(now.end(), &c.x[row * d], &c.x[(row + 1) * d]);
    }
    fresh->add(total, now.data());
    const auto q = histograms(many, 2);
    const auto exact = search(*c.flat(), q, 10).labels;
    EXPECT_GT(
            recall(search(*c.index, q, 10).labels, exact, 10),
            recall(search(*fresh, q, 10).labels, exact, 10) -
                    hoeffding(many, 2));
}

/// Vectors of clusters far apart.
std::vector<float> clustered(idx_t n, int seed) {
    constexpr size_t num_clusters = 100;
    std::mt19937 random(seed), random_centres(99);
    std::normal_distribution<float> normal;
    std::vector<float> centres(num_clusters * d), x(n * d);
    for (float& value : centres) {
        value = 20 * normal(random_centres);
    }
    for (idx_t i = 0; i < n; i++) {
        const size_t cluster = random() % num_clusters;
        for (int j = 0; j < d; j++) {
            x[i * d + j] = centres[cluster * d + j] + normal(random);
        }
    }
    return x;
}

TEST(IndexHNSWKernel, ClustersWhoseVectorsWereReplacedOneByOneAreFound) {
    constexpr idx_t many = 2000, total = 10000;
    constexpr const char* text = "HNSW16,KFlat(gaussian(gamma=0.001))";
    auto x = clustered(2 * total, 1);
    const auto index = faiss_ext::index_factory(d, text);
    index->add(total, x.data());
    std::vector<idx_t> ids(total);
    std::iota(ids.begin(), ids.end(), idx_t(0));
    std::shuffle(ids.begin(), ids.end(), std::mt19937(3));
    for (idx_t i = 0; i < total; i++) {
        const float* row = &x[(total + i) * d];
        faiss_ext::update_vectors(*index, 1, &ids[i], row);
        std::copy_n(row, d, &x[ids[i] * d]);
    }
    const auto q = clustered(many, 2);
    const auto now = rows(x, d, 0, total);
    const auto flat = faiss_ext::index_factory(d, text + 7);
    flat->add(total, now.data());
    const auto exact = search(*flat, q, 10).labels;
    const auto fresh = faiss_ext::index_factory(d, text);
    fresh->add(total, now.data());
    EXPECT_GT(
            recall(search(*index, q, 10).labels, exact, 10),
            recall(search(*fresh, q, 10).labels, exact, 10) - 0.01);
}

TEST(IndexHNSWKernel, TightClustersThatComeAndGoAreFound) {
    constexpr idx_t per_cluster = 100, kept = 10, last = 40, dim = 16;
    constexpr const char* text = "HNSW16,KFlat(gaussian(gamma=1))";
    idx_t lost = 0, lost_fresh = 0;
    for (int seed = 0; seed < (is_sanitized ? 1 : 4); seed++) {
        std::mt19937 random(seed);
        std::gamma_distribution<float> gamma(0.5f);
        std::uniform_real_distribution<float> noise(0, 0.02f);
        std::vector<std::vector<float>> clusters;
        for (idx_t i = 0; i < last; i++) {
            std::vector<float> center(dim);
            for (float& value : center) {
                value = gamma(random) / (dim / 2);
            }
            auto& cluster = clusters.emplace_back();
            for (idx_t j = 0; j < per_cluster; j++) {
                for (float value : center) {
                    cluster.push_back(value + noise(random) / (dim / 2));
                }
            }
        }
        const auto index = faiss_ext::index_factory(dim, text);
        for (idx_t i = 0; i < last; i++) {
            index->add(per_cluster, clusters[i].data());
            if (i < kept) {
                continue;
            }
            const idx_t first = (i - kept + 1) * per_cluster; // id that is left
            index->remove_ids(faiss::IDSelectorRange(0, first));
            if (i % 3 > 0) {
                continue;
            }
            const auto fresh = faiss_ext::index_factory(dim, text);
            std::vector<float> now;
            for (idx_t j = i - kept + 1; j <= i; j++) {
                fresh->add(per_cluster, clusters[j].data());
                now.insert(now.end(), clusters[j].begin(), clusters[j].end());
            }
            const auto found = search(*index, now, 1).labels;
            const auto found_fresh = search(*fresh, now, 1).labels;
            for (idx_t j = 0; j < kept * per_cluster; j++) {
                lost += found[j] != first + j;
                lost_fresh += found_fresh[j] != j;
            }
        }
    }
    EXPECT_LE(lost, lost_fresh);
}

TEST(IndexHNSWKernel, CompactBuildsAGraphAgainThatHasNoRemovedVertex) {
    const char* text = "HNSW8,KFlat(chi2)";
    Collection c(histograms(440, 1), text);
    c.add(0, 400);
    std::vector<idx_t> places(40);
    std::iota(places.begin(), places.end(), idx_t(100));
    c.remove(places);
    compact(*c.index);
    EXPECT_TRUE(c.graph.places.are_equal());
    c.remove(places);
    c.add(400, 440);
    EXPECT_EQ(c.graph.num_removed(), 0);
    EXPECT_FALSE(c.graph.places.are_equal());
    compact(*c.index);
    EXPECT_TRUE(c.graph.places.are_equal());

    const auto n = idx_t(c.rows.size());
    std::vector<float> now(n * d);
    c.flat()->reconstruct_n(0, n, now.data());
    const auto fresh = faiss_ext::index_factory(d, text);
    fresh->add(n, now.data());
    const auto q = histograms(100, 2);
    expect_same(search(*c.index, q, 5), search(*fresh, q, 5));
}

// ------------------------------------------------------------------ merging

TEST(IndexHNSWKernel, MergingAddsTheVectorsThatAreLeft) {
    const char* text = "HNSW8,KFlat(chi2,store=u8)";
    const auto x = histograms(900, 1), q = histograms(50, 2);
    Collection a(x, text), b(x, text), whole(x, text);
    a.add(0, 400);
    b.add(400, 800);
    std::vector<idx_t> removed(60);
    std::iota(removed.begin(), removed.end(), idx_t(20));
    a.remove(removed);
    b.remove(removed);
    whole.add(0, 20);
    whole.add(80, 420);
    whole.add(480, 800);
    for (Collection* c : {&a, &b, &whole}) {
        c->graph.hnsw.efSearch = 1000;
    }
    a.index->merge_from(*b.index);
    EXPECT_EQ(a.index->ntotal, 680);
    expect_same(search(*a.index, q, 10), search(*whole.flat(), q, 10));
    EXPECT_EQ(b.index->ntotal, 0);
    EXPECT_EQ(b.graph.storage->ntotal, 0);
    b.rows.clear();
    b.add(800, 900); // an emptied index can still be used
    expect_same(search(*b.index, q, 10), search(*b.flat(), q, 10));
    a.index->merge_from(*faiss_ext::index_factory(d, text));
    EXPECT_EQ(a.index->ntotal, 680);
}

TEST(IndexHNSWKernel, MergingMovesIds) {
    for (const char* text :
         {"HNSW8,KFlat(linear)",
          "IDMap,HNSW8,KFlat(linear)",
          "Concurrent,HNSW8,KFlat(linear)",
          "RR8,HNSW8,KFlat(linear),Refine(KFlat(linear))"}) {
        SCOPED_TRACE(text);
        const auto x = uniform_vectors(400, d, 1);
        const auto a = faiss_ext::index_factory(d, text);
        const auto b = faiss_ext::index_factory(d, text);
        std::vector<idx_t> ids(400);
        std::iota(ids.begin(), ids.end(), idx_t(1000));
        for (faiss::Index* index : {a.get(), b.get()}) {
            index->train(400, x.data());
        }
        a->add_with_ids(200, x.data(), ids.data());
        b->add_with_ids(200, &x[200 * d], &ids[200]);
        b->remove_ids(faiss::IDSelectorRange(1210, 1220));
        const auto before = search(*b, x, 5);
        EXPECT_TRUE(throws([&] { a->merge_from(*b, -200); }));
        EXPECT_EQ(a->ntotal, 200);
        expect_same(search(*b, x, 5), before);
        a->merge_from(*b, 500);
        EXPECT_EQ(a->ntotal, 390);
        EXPECT_EQ(b->ntotal, 0);
        std::vector<float> vector(d);
        a->reconstruct(1730, vector.data());
        for (int j = 0; j < d; j++) { // a rotation and its inverse round
            EXPECT_NEAR(vector[j], x[230 * d + j], 1e-5);
        }
        EXPECT_TRUE(throws([&] { a->reconstruct(1715, vector.data()); }));
    }
}

TEST(IndexHNSWKernel, AFailedMergeLeavesBoth) {
    const auto x = uniform_vectors(400, d, 1), q = uniform_vectors(30, d, 2);
    Graph a, b;
    a.index.add(200, x.data());
    b.index.add(200, &x[200 * d]);
    b.index.IndexHNSWKernel::remove_ids(faiss::IDSelectorRange(0, 10));
    for (IndexHNSWKernel* index : {&a.index, &b.index}) {
        index->hnsw.efSearch = 500;
    }
    const auto of_a = search(a.index, q, 5), of_b = search(b.index, q, 5);
    const auto expect_both_as_before = [&] {
        EXPECT_EQ(a.index.ntotal, 200);
        EXPECT_EQ(b.index.ntotal, 190);
        expect_same(search(a.index, q, 5), of_a);
        expect_same(search(b.index, q, 5), of_b);
    };
    for (const int calls : {0, 100, 500, 1500}) {
        SCOPED_TRACE(calls);
        EXPECT_TRUE(a.fails_after(calls, [&] { a.index.merge_from(b.index); }));
        expect_both_as_before();
    }
    IndexFlatKernel flat(d, *kernel_factory("linear"));
    expect_throws(
            {{[&] { a.index.merge_from(a.index); }, "itself"},
             {[&] { a.index.merge_from(flat); }, "another IndexHNSWKernel"},
             {[&] { a.index.merge_from(b.index, 1); }, "add_id must be 0"}});
    expect_both_as_before();
    for (const char* other :
         {"HNSW8,KFlat(chi2)",
          "HNSW8,KFlat(linear,store=f16)",
          "HNSW8,KFlat(gaussian(gamma=1))"}) {
        const auto one = faiss_ext::index_factory(d, "HNSW8,KFlat(linear)");
        const auto two = faiss_ext::index_factory(d, other);
        EXPECT_TRUE(throws([&] { one->merge_from(*two); }, "cannot merge"));
    }
    const auto wide = faiss_ext::index_factory(d + 1, "HNSW8,KFlat(linear)");
    const auto one = faiss_ext::index_factory(d, "HNSW8,KFlat(linear)");
    EXPECT_TRUE(throws([&] { one->merge_from(*wide); }, "dimension"));
}

} // namespace
