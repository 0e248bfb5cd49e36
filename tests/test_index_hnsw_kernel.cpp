// Graphs over kernels: exceptions and interrupts.

#include <faiss_ext/indexes/IndexHNSWKernel.h>

#include <atomic>
#include <memory>

#include <faiss/impl/io.h>

#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/CallbackKernel.h>

#include "testing_indexes.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr int d = 8;

/// Inner products, until as many calls as are allowed have been made.
struct LimitedKernel {
    std::shared_ptr<std::atomic<int64_t>> left =
            std::make_shared<std::atomic<int64_t>>(INT64_MAX);

    CallbackKernel make() const {
        return CallbackKernel([left = left](
                                      size_t n,
                                      const float* x,
                                      size_t m,
                                      const float* y,
                                      size_t d,
                                      float* out) {
            if (--*left < 0) {
                throw std::runtime_error("no more calls");
            }
            for (size_t i = 0; i < n * m; i++) {
                out[i] = 0;
                for (size_t k = 0; k < d; k++) {
                    out[i] += x[i / m * d + k] * y[i % m * d + k];
                }
            }
        });
    }
};

struct Graph {
    IndexFlatKernel flat;
    IndexHNSWKernel index;

    explicit Graph(const Kernel& kernel) : flat(d, kernel), index(&flat, 8) {}
};

bool fails(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::runtime_error& e) {
        return std::string(e.what()) == "no more calls";
    } catch (...) {
    }
    return false;
}

TEST(IndexHNSWKernel, AFailedAddToAnEmptyIndexLeavesNothing) {
    const auto x = random_vectors(300, d, 1);
    for (int calls : {0, 1, 2, 100, 2000}) {
        LimitedKernel limit;
        Graph graph(limit.make()), fresh(limit.make());
        *limit.left = calls;
        EXPECT_TRUE(fails([&] { graph.index.add(300, x.data()); })) << calls;
        *limit.left = INT64_MAX;
        EXPECT_EQ(graph.index.ntotal, 0);
        EXPECT_EQ(graph.flat.ntotal, 0);
        EXPECT_TRUE(graph.flat.codes.empty());
        EXPECT_EQ(graph.index.hnsw.levels.size(), 0u);
        // and the next one makes what a new index would have
        graph.index.add(300, x.data());
        fresh.index.add(300, x.data());
        EXPECT_EQ(graph.index.hnsw.levels, fresh.index.hnsw.levels);
        expect_same(search(graph.index, x, 5), search(fresh.index, x, 5));
    }
}

TEST(IndexHNSWKernel, AFailedAddToOthersPutsItOutOfUse) {
    const auto x = random_vectors(400, d, 2);
    LimitedKernel limit;
    Graph graph(limit.make());
    graph.index.add(200, x.data());
    const auto before = search(graph.index, x, 3);
    *limit.left = 500;
    EXPECT_TRUE(fails([&] { graph.index.add(200, &x[200 * d]); }));
    *limit.left = INT64_MAX;
    EXPECT_EQ(graph.index.ntotal, 200);
    EXPECT_EQ(graph.flat.ntotal, 200);
    EXPECT_FALSE(graph.index.graph_is_complete);
    for (const std::function<void()>& call : std::vector<std::function<void()>>{
                 [&] { graph.index.add(1, x.data()); },
                 [&] { search(graph.index, x, 1); },
                 [&] {
                     faiss::RangeSearchResult result(1);
                     graph.index.range_search(1, x.data(), 1, &result);
                 },
                 [&] {
                     faiss::VectorIOWriter f;
                     write_index(&graph.index, &f);
                 },
                 [&] { faiss_ext::clone_index(&graph.index); }}) {
        EXPECT_TRUE(throws(call, "incomplete"));
    }
    // a rebuilding that fails loses no vectors
    *limit.left = 300;
    EXPECT_TRUE(fails([&] { graph.index.rebuild(); }));
    *limit.left = INT64_MAX;
    EXPECT_FALSE(graph.index.graph_is_complete);
    EXPECT_EQ(graph.index.ntotal, 200);
    graph.index.rebuild();
    EXPECT_TRUE(graph.index.graph_is_complete);
    const auto after = search(graph.index, x, 3);
    size_t same = 0;
    for (size_t i = 0; i < after.labels.size(); i++) {
        same += after.labels[i] == before.labels[i];
    }
    EXPECT_GT(same, 0.9 * after.labels.size());
    graph.index.add(200, &x[200 * d]);
    EXPECT_EQ(graph.index.ntotal, 400);

    *limit.left = 10;
    EXPECT_TRUE(fails([&] { graph.index.add(1, x.data()); }));
    *limit.left = INT64_MAX;
    graph.index.reset();
    EXPECT_TRUE(graph.index.graph_is_complete);
    graph.index.add(10, x.data());
    EXPECT_EQ(search(graph.index, x, 1).labels.size(), 400u);
}

TEST(IndexHNSWKernel, ExceptionsInSearchReachTheCaller) {
    const auto x = random_vectors(100, d, 3);
    LimitedKernel limit;
    Graph graph(limit.make());
    graph.index.add(100, x.data());
    *limit.left = 50;
    EXPECT_TRUE(fails([&] { search(graph.index, x, 3); }));
    *limit.left = INT64_MAX;
    EXPECT_TRUE(graph.index.graph_is_complete);
    search(graph.index, x, 3);
}

TEST(IndexHNSWKernel, QueriesAreChecked) {
    const auto index = faiss_ext::index_factory(d, "HNSW8,KFlat(chi2)");
    const auto x = random_vectors(100, d, 4);
    index->add(100, x.data());
    auto bad = x;
    bad[17] = NAN;
    EXPECT_TRUE(throws([&] { search(*index, bad, 3); }, "component 1"));
    bad[17] = -1;
    EXPECT_TRUE(throws([&] { search(*index, bad, 3); }, "histogram"));
    search(*index, x, 3);
}

/// Interrupts from the n-th question on.
struct Interrupter : faiss::InterruptCallback {
    static std::atomic<int> left;
    bool want_interrupt() override {
        return --left < 0;
    }
};
std::atomic<int> Interrupter::left{0};

TEST(IndexHNSWKernel, AnInterruptedAddLeavesNothing) {
    const auto x = random_vectors(30000, d, 5);
    const auto index = faiss_ext::index_factory(d, "HNSW8,KFlat(linear)");
    const std::unique_ptr<faiss::InterruptCallback> before =
            std::move(faiss::InterruptCallback::instance);
    Interrupter::left = 2;
    faiss::InterruptCallback::instance = std::make_unique<Interrupter>();
    EXPECT_TRUE(throws([&] { index->add(30000, x.data()); }, "interrupted"));
    faiss::InterruptCallback::clear_instance();
    EXPECT_EQ(index->ntotal, 0);
    index->add(200, x.data());
    const auto found = search(*index, rows(x, d, 0, 200), 1);
    EXPECT_EQ(found.labels.size(), 200u);
}

TEST(IndexHNSWKernel, FilesAndCopies) {
    const auto x = random_vectors(200, d, 6);
    const auto index = faiss_ext::index_factory(d, "HNSW8,KFlat(chi2)");
    index->add(200, x.data());
    const auto copy = faiss_ext::clone_index(index.get());
    ASSERT_TRUE(dynamic_cast<IndexHNSWKernel*>(copy.get()));
    expect_same(search(*copy, x, 5), search(*index, x, 5));
    copy->add(1, x.data());
    EXPECT_EQ(copy->ntotal, 201);
}

TEST(IndexHNSWKernel, Construction) {
    const auto kernel = kernel_factory("chi2");
    IndexFlatKernel flat(d, *kernel);
    EXPECT_TRUE(throws([&] { IndexHNSWKernel(&flat, 1); }, "M is 1"));
    flat.add(1, random_vectors(1, d, 7).data());
    EXPECT_TRUE(throws([&] { IndexHNSWKernel(&flat, 8); }, "empty"));
    IndexFlatKernel untrained(d, *kernel_factory("gaussian"));
    IndexHNSWKernel index(&untrained, 8);
    EXPECT_FALSE(index.is_trained);
    EXPECT_TRUE(throws(
            [&] { index.add(1, random_vectors(1, d, 7).data()); }, "train"));
    index.train(100, random_vectors(100, d, 8).data());
    EXPECT_TRUE(index.is_trained);
}

} // namespace
