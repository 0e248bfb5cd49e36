// Graphs over kernels: exceptions and interrupts.

#include <faiss_ext/indexes/IndexHNSWKernel.h>

#include <atomic>
#include <stdexcept>

#include <faiss/impl/io.h>

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

/// Inner products, until as many calls as are left have been made.
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

    /// Whether f fails after as many calls of the kernel.
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
        // and the next one makes what a new index would have
        graph.index.add(300, x.data());
        EXPECT_EQ(graph.index.hnsw.levels, fresh.index.hnsw.levels);
        expect_same(search(graph.index, x, 5), search(fresh.index, x, 5));
    }
}

TEST(IndexHNSWKernel, AFailedAddToOthersPutsItOutOfUse) {
    const auto x = uniform_vectors(400, d, 2);
    Graph graph;
    IndexHNSWKernel& index = graph.index;
    index.add(200, x.data());
    const auto before = search(index, x, 3);
    EXPECT_TRUE(graph.fails_after(500, [&] { index.add(200, &x[200 * d]); }));
    EXPECT_EQ(index.ntotal, 200);
    EXPECT_EQ(graph.flat.ntotal, 200);
    EXPECT_FALSE(index.graph_is_complete);
    faiss::VectorIOWriter writer;
    expect_throws(
            {{[&] { index.add(1, x.data()); }, "incomplete"},
             {[&] { search(index, x, 1); }, "incomplete"},
             {[&] { range_search(index, x, 1); }, "incomplete"},
             {[&] { write_index(&index, &writer); }, "incomplete"},
             {[&] { faiss_ext::clone_index(&index); }, "incomplete"}});
    // a rebuilding that fails loses no vectors
    EXPECT_TRUE(graph.fails_after(300, [&] { index.rebuild(); }));
    EXPECT_FALSE(index.graph_is_complete);
    EXPECT_EQ(index.ntotal, 200);
    index.rebuild();
    EXPECT_TRUE(index.graph_is_complete);
    EXPECT_GT(recall(search(index, x, 3).labels, before.labels, 3), 0.9);
    index.add(200, &x[200 * d]);
    EXPECT_EQ(index.ntotal, 400);

    // a reset helps, too; what fails in a search reaches the caller
    EXPECT_TRUE(graph.fails_after(10, [&] { index.add(1, x.data()); }));
    index.reset();
    EXPECT_TRUE(index.graph_is_complete);
    index.add(10, x.data());
    EXPECT_TRUE(graph.fails_after(5, [&] { search(index, x, 3); }));
    EXPECT_TRUE(index.graph_is_complete);
    search(index, x, 1);
}

/// Interrupts at the third question.
struct Interrupter : faiss::InterruptCallback {
    int left = 2;

    bool want_interrupt() override {
        return --left < 0;
    }
};

TEST(IndexHNSWKernel, AnInterruptedAddLeavesNothing) {
    const auto x = uniform_vectors(3000, d, 5);
    const auto index = faiss_ext::index_factory(d, "HNSW8,KFlat(linear)");
    faiss::InterruptCallback::instance = std::make_unique<Interrupter>();
    EXPECT_TRUE(throws([&] { index->add(3000, x.data()); }, "interrupted"));
    faiss::InterruptCallback::clear_instance();
    EXPECT_EQ(index->ntotal, 0);
    index->add(200, x.data());
    EXPECT_EQ(search(*index, rows(x, d, 0, 200), 1).labels.size(), 200u);
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

} // namespace
