// SPDX-License-Identifier: MIT
// Reports of long calls to a ProgressScope.

#include <faiss_ext/core/progress.h>

#include <memory>
#include <set>
#include <stdexcept>

#include <faiss/IndexBinaryFlat.h>

#include <faiss_ext/indexes/IndexBinaryIVFSIMD.h>
#include <faiss_ext/io/index_factory.h>

#include "core/parallel.h"
#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;
using std::chrono::milliseconds;

namespace {

constexpr int d = 32;
constexpr idx_t n = 2000;

struct Told {
    std::string task;
    size_t done, total;
};

/// Returns all reports of a call.
template <class F>
std::vector<Told> told_by(F&& call) {
    std::vector<Told> told;
    const ProgressScope scope(
            [&](const char* task, size_t done, size_t total) {
                told.push_back({task, done, total});
            },
            milliseconds(0));
    call();
    return told;
}

std::set<std::string> tasks(const std::vector<Told>& told) {
    std::set<std::string> names;
    for (const Told& t : told) {
        names.insert(t.task);
    }
    return names;
}

/// Returns the tasks of training and filling an index of a string. Each task
/// must ascend to its total.
std::set<std::string> tasks_of(const std::string& string) {
    const auto x = uniform_vectors(n, d, 1);
    const auto index = index_factory(d, string);
    const auto told = told_by([&] {
        index->train(n, x.data());
        index->add(n, x.data());
    });
    for (size_t i = 0; i < told.size(); i++) {
        EXPECT_LE(told[i].done, told[i].total) << told[i].task;
        const bool is_last =
                i + 1 == told.size() || told[i + 1].task != told[i].task;
        if (is_last || told[i + 1].done < told[i].done) {
            EXPECT_EQ(told[i].done, told[i].total) << told[i].task;
        }
    }
    return tasks(told);
}

} // namespace

TEST(Progress, LongCallsTellHowFarTheyAre) {
    using Names = std::set<std::string>;
    EXPECT_EQ(
            tasks_of("SIK64(gaussian),BFlat"),
            (Names{"bandwidth", "encoding"}));
    EXPECT_EQ(tasks_of("AHK64(chi2),BIVF8"), (Names{"encoding", "k-means"}));
    EXPECT_EQ(tasks_of("AHK64(chi2),BHNSW8"), (Names{"encoding", "graph"}));
    EXPECT_EQ(
            tasks_of("RHBE64,BPerm(M=5)"), (Names{"encoding", "sorted lists"}));
    EXPECT_EQ(tasks_of("HNSW8,KFlat(chi2)"), Names{"graph"});
    EXPECT_EQ(
            tasks_of("KIVF16"),
            (Names{"assigning to lists", "codebooks", "encoding", "k-means"}));
    EXPECT_EQ(tasks_of("HKM1(chi2),Flat"), Names{"mapping"});
    EXPECT_EQ(
            tasks_of("KLSH64(chi2,p=300),BFlat"),
            (Names{"eigenvectors", "encoding", "kernel of the landmarks"}));
    EXPECT_EQ(
            tasks_of("AHK32(chi2,rot=itq),BFlat"),
            (Names{"eigenvectors", "encoding", "rotation"}));
    // 96 features: a rotation and a part of another
    EXPECT_EQ(
            tasks_of("AHK128(chi2,rot=itq),BFlat"),
            (Names{"eigenvectors", "encoding", "rotation"}));
}

TEST(Progress, TrainingOfListsHasOneTaskForAllParts) {
    const auto x = uniform_vectors(n, d, 1);
    const auto told =
            told_by([&] { index_factory(d, "KIVF16")->train(n, x.data()); });
    std::vector<std::string> in_order;
    for (const Told& t : told) {
        if (in_order.empty() || in_order.back() != t.task) {
            in_order.push_back(t.task);
        }
    }
    EXPECT_EQ(
            in_order,
            (std::vector<std::string>{
                    "k-means", "assigning to lists", "codebooks"}));
}

TEST(Progress, TrainingOfListsIsAsWithoutProgress) {
    constexpr int nbits = 64;
    const Bytes codes = random_bytes(n * nbits / 8, 1);
    for (int nredo : {1, 2}) {
        faiss::IndexBinaryFlat ours(nbits), theirs(nbits);
        IndexBinaryIVFSIMD told(&ours, nbits, 16);
        faiss::IndexBinaryIVF silent(&theirs, nbits, 16);
        told.cp.nredo = silent.cp.nredo = nredo;
        size_t last = 0;
        {
            const ProgressScope scope(
                    [&](const char*, size_t done, size_t total) {
                        EXPECT_LE(last, done);
                        EXPECT_LE(done, total);
                        last = done;
                    },
                    milliseconds(0));
            told.train(n, codes.data());
        }
        silent.train(n, codes.data());
        EXPECT_EQ(ours.xb, theirs.xb);
        EXPECT_EQ(told.clustering_index, nullptr);
        EXPECT_EQ(last, size_t(n) * told.cp.niter * nredo);
    }
}

TEST(Progress, OnlyTheInnermostScopeAndOnlyItsThreadAreTold) {
    const auto run = [] {
        parallel_blocks("task", 1000, 10, [](idx_t, idx_t) {});
    };
    std::vector<Told> inner;
    const auto outer = told_by([&] {
        inner = told_by(run);
        std::thread(run).join();
    });
    EXPECT_EQ(tasks(inner), std::set<std::string>{"task"});
    EXPECT_TRUE(outer.empty());
    EXPECT_FALSE(told_by(run).empty()); // the previous scopes have ended
}

TEST(Progress, ScopesEndInAnyOrder) {
    const auto run = [] { Progress("task", 1).at(1); };
    const auto counting = [](size_t& count) {
        return std::make_unique<ProgressScope>(
                [&](const char*, size_t, size_t) { count++; }, milliseconds(0));
    };
    size_t first = 0, second = 0;
    auto a = counting(first);
    auto b = counting(second);
    a.reset();
    run();
    EXPECT_EQ(first, 0u);
    EXPECT_EQ(second, 1u);
    b.reset();
    run();
    EXPECT_EQ(second, 1u);
}

TEST(Progress, ScopesEndOnOtherThreads) {
    const auto run = [] { Progress("task", 1).at(1); };
    size_t outer = 0, inner = 0;
    const ProgressScope scope(
            [&](const char*, size_t, size_t) { outer++; }, milliseconds(0));
    auto ended = std::make_unique<ProgressScope>(
            [&](const char*, size_t, size_t) { inner++; }, milliseconds(0));
    std::thread([&] { ended.reset(); }).join();
    run();
    EXPECT_EQ(inner, 0u);
    EXPECT_EQ(outer, 1u);
    std::thread([&] {
        ended = std::make_unique<ProgressScope>(
                [&](const char*, size_t, size_t) { inner++; }, milliseconds(0));
    }).join();
    ended.reset(); // its thread ended before
    run();
    EXPECT_EQ(inner, 0u);
    EXPECT_EQ(outer, 2u);
}

TEST(Progress, TheFunctionMayEndItsScope) {
    std::unique_ptr<ProgressScope> scope;
    size_t num_told = 0;
    const std::string captured(100, 'a');
    scope = std::make_unique<ProgressScope>(
            [&num_told, &scope, captured](const char*, size_t, size_t) {
                scope.reset();
                num_told += captured == std::string(100, 'a');
            },
            milliseconds(0));
    Progress progress("task", 2);
    progress.at(1);
    progress.at(2);
    EXPECT_EQ(num_told, 1u);
}

TEST(Progress, ATaskInsideAnotherIsSilent) {
    const auto told = told_by([] {
        Progress progress("outer", 2);
        parallel_blocks("inner", 1000, 10, [](idx_t, idx_t) {});
        progress.at(2);
    });
    EXPECT_EQ(tasks(told), std::set<std::string>{"outer"});
}

TEST(Progress, AnIntervalLiesBetweenTwoCallsButTheEndIsTold) {
    size_t num_told = 0, last = 0;
    const ProgressScope scope(
            [&](const char*, size_t done, size_t) {
                num_told++;
                last = done;
            },
            milliseconds(50));
    const auto start = std::chrono::steady_clock::now();
    {
        Progress progress("long", 100);
        for (size_t i = 0; i < 100; i++) {
            std::this_thread::sleep_for(milliseconds(2));
            progress.at(i + 1);
        }
    }
    const auto time = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(last, 100u);
    EXPECT_LE(num_told, size_t(time / milliseconds(50)) + 1);
    num_told = 0;
    Progress("short", 1).at(1);
    EXPECT_EQ(num_told, 0u);
}

TEST(Progress, AnExceptionOfTheFunctionEndsTheCallAndLeavesTheIndex) {
    const auto x = uniform_vectors(n, d, 1);
    for (const char* string :
         {"AHK64(chi2),BFlat", "AHK64(chi2),BHNSW8", "KIVF16"}) {
        const auto index = index_factory(d, string);
        const auto failing = [](const char*, size_t, size_t) {
            throw std::runtime_error("enough");
        };
        if (!index->is_trained) {
            const ProgressScope scope(failing, milliseconds(0));
            EXPECT_THROW(index->train(n, x.data()), std::runtime_error);
            EXPECT_FALSE(index->is_trained) << string;
        }
        index->train(n, x.data());
        {
            const ProgressScope scope(failing, milliseconds(0));
            EXPECT_THROW(index->add(n, x.data()), std::runtime_error);
        }
        EXPECT_EQ(index->ntotal, 0) << string;
        index->add(n, x.data());
        EXPECT_EQ(index->ntotal, n) << string;
    }
}
