// SPDX-License-Identifier: MIT
// Threads of the caller: concurrent searches of one index, and concurrent work
// on different indexes.

#include <thread>

#include <gtest/gtest.h>

#include <faiss_ext/hashes/hash_registry.h>
#include <faiss_ext/indexes/index_tree.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/describe.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/kernel_registry.h>
#include <faiss_ext/maps/FeatureMap.h>

#include "testing.h"
#include "testing_strings.h"

using namespace faiss_ext_test;
using namespace testing_strings;

namespace {

constexpr idx_t n = 200, nq = 12;
constexpr int num_threads = 4;

/// Runs f(0), f(1), ... concurrently.
template <class F>
void at_once(F&& f) {
    std::vector<std::thread> threads;
    for (int t = 0; t < num_threads; t++) {
        threads.emplace_back([&, t] {
            omp_set_num_threads(1);
            EXPECT_NO_THROW(f(t));
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

/// Returns L1-normalised vectors, which suit every kernel.
const Floats x = normalized_histograms(n, d, 1),
             q = normalized_histograms(nq, d, 2);

std::unique_ptr<faiss::Index> filled(const std::string& text) {
    auto index = index_factory(d, text);
    index->train(n, x.data());
    if (text.find("IDMap") == 0) {
        std::vector<idx_t> ids(n);
        std::iota(ids.begin(), ids.end(), 0);
        index->add_with_ids(n, x.data(), ids.data());
    } else {
        index->add(n, x.data());
    }
    return index;
}

/// All that is shown of an index and of the indexes inside it.
std::string shown(faiss::Index& index) {
    std::string all = index_text(index) + "\n" + index_string(index);
    for (const std::string& setting : settings_of(index)) {
        all += "\n" + setting;
    }
    for (const SearchParameter& parameter : search_parameters(index)) {
        all += "\n" + parameter.name + "=" + std::to_string(parameter.get());
    }
    for (const IndexPart& part : parts_of(index)) {
        all += "\n" + std::string(part.name) + ": " + index_text(part.index);
    }
    return all;
}

struct EachIndex : testing::TestWithParam<Row> {
    void SetUp() override {
        omp_set_num_threads(1); // OpenMP's threads are not tested here
    }
};

INSTANTIATE_TEST_SUITE_P(
        Concurrency,
        EachIndex,
        testing::ValuesIn(indexes),
        name_of_row);

TEST_P(EachIndex, SearchesOfOneIndex) {
    const auto index = filled(GetParam().text);
    const auto expected = search(*index, q, 5);
    const std::string text = shown(*index);
    at_once([&](int t) {
        for (int i = 0; i < 3; i++) {
            expect_same(search(*index, q, 5), expected);
            EXPECT_EQ(shown(*index), text);
            const idx_t one = (t + i) % nq;
            search(*index, rows(q, d, one, one + 1), 2);
        }
        bytes_of(*index); // also reads
        clone_index(index.get());
    });
}

TEST_P(EachIndex, WorkOnDifferentIndexes) {
    const std::string text = GetParam().text;
    const auto expected = search(*filled(text), q, 5);
    at_once([&](int) { expect_same(search(*filled(text), q, 5), expected); });
}

struct EachHash : testing::TestWithParam<HashRow> {
    void SetUp() override {
        omp_set_num_threads(1);
    }
};

INSTANTIATE_TEST_SUITE_P(
        Concurrency,
        EachHash,
        testing::ValuesIn(hashes),
        name_of_row);

TEST_P(EachHash, EncodingByOneHash) {
    const auto hash = kernel_hash_factory(d, GetParam().with_bits(64));
    hash->train(n, x.data());
    const Bytes expected = codes_of(*hash, q);
    const Floats margins = applied(*hash, q);
    at_once([&](int) {
        EXPECT_EQ(codes_of(*hash, q), expected);
        EXPECT_EQ(applied(*hash, q), margins);
        hash->description();
        if (GetParam().theory == Theory::known) {
            hash->expected_hamming(0.5);
        }
        EXPECT_EQ(codes_of(*hash->clone(), q), expected);
    });
}

TEST(Concurrency, MapsAndKernels) {
    omp_set_num_threads(1);
    for (const Row& row : maps) {
        const auto map = map_factory(d, row.text);
        map->train(n, x.data());
        const Floats expected = applied(*map, q);
        at_once([&](int) {
            EXPECT_EQ(applied(*map, q), expected);
            map->description();
            bytes_of(*map);
        });
    }
    for (const Row& row : kernels) {
        const auto kernel = kernel_factory(row.text);
        kernel->train(n, x.data(), d);
        const Floats expected = kernel_block(*kernel, q, x, d);
        at_once([&](int) {
            EXPECT_EQ(kernel_block(*kernel, q, x, d), expected);
            kernel->description();
        });
    }
}

TEST(Concurrency, ObjectsAreShownAndWritten) {
    for (const char* text :
         {"KLSH64(precomputed)", "SIK64(laplacian)", "BSIK64(4x6)"}) {
        const auto hash = kernel_hash_factory(d, text);
        const std::string expected = hash->description();
        at_once([&](int) {
            EXPECT_EQ(hash->description(), expected);
            bytes_of(*hash);
            hash->clone();
            describe("KLSH");
            describe("KIVF");
        });
    }
}

} // namespace
