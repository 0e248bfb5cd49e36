// SPDX-License-Identifier: MIT
// The Hamming scan, of all codes and of inverted lists, beside that of the
// FAISS that is linked, on one thread; and one query over many codes beside the
// bandwidth of the memory. Results are compared before they are timed.

#include <algorithm>
#include <memory>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryIVF.h>

#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>
#include <faiss_ext/indexes/IndexBinaryIVFSIMD.h>

#include "bench_common.h"

using namespace faiss_ext;
using namespace faiss_ext::bench;

namespace {

constexpr idx_t num_codes = 500000, num_queries = 200, many_codes = 10000000;

struct Results {
    std::vector<int32_t> distances;
    std::vector<idx_t> labels;

    void search(
            const faiss::IndexBinary& index,
            const std::vector<uint8_t>& queries,
            idx_t k) {
        const idx_t nq = queries.size() / index.code_size;
        distances.resize(nq * k);
        labels.resize(nq * k);
        index.search(nq, queries.data(), k, distances.data(), labels.data());
    }
};

template <class Index>
void scan(benchmark::State& state) {
    const int bits = int(state.range(0));
    const idx_t k = state.range(1);
    const auto codes = random_codes(num_codes * (bits / 8), bits);
    // FAISS's scan takes its time: fewer queries will do
    const idx_t nq = std::is_same_v<Index, faiss::IndexBinaryFlat>
            ? num_queries / 10
            : num_queries;
    auto queries = random_codes(num_queries * (bits / 8), 1);
    queries.resize(nq * (bits / 8));
    Index index(bits);
    index.add(num_codes, codes.data());
    Results results, expected;
    results.search(index, queries, k);
    if (nq == num_queries) {
        faiss::IndexBinaryFlat reference(bits);
        reference.add(num_codes, codes.data());
        auto few = queries;
        few.resize(5 * (bits / 8));
        expected.search(reference, few, k);
        if (!std::equal(
                    expected.distances.begin(),
                    expected.distances.end(),
                    results.distances.begin())) {
            state.SkipWithError("the results differ from those of FAISS");
            return;
        }
    }
    for (auto _ : state) {
        results.search(index, queries, k);
    }
    set_items(state, double(nq * num_codes));
}

/// Lists around random codes, of which each query visits 16.
template <class Index, class Quantizer>
void lists(benchmark::State& state) {
    const int bits = int(state.range(0));
    const idx_t nq = state.range(1), nlist = 256, n = 60000, k = 10;
    const auto codes = random_codes(n * (bits / 8), bits);
    const auto centroids = random_codes(nlist * (bits / 8), 1);
    const auto queries = random_codes(nq * (bits / 8), 2);
    Quantizer quantizer(bits);
    quantizer.add(nlist, centroids.data());
    Index index(&quantizer, bits, nlist);
    index.is_trained = true;
    index.nprobe = 16;
    index.add(n, codes.data());
    Results results, expected;
    results.search(index, queries, k);
    faiss::IndexBinaryFlat slow(bits);
    slow.add(nlist, centroids.data());
    faiss::IndexBinaryIVF reference(&slow, bits, nlist);
    reference.is_trained = true;
    reference.nprobe = 16;
    reference.add(n, codes.data());
    expected.search(reference, queries, k);
    // of centroids at equal distances others may be visited
    idx_t different = 0;
    for (size_t i = 0; i < expected.distances.size(); i++) {
        different += expected.distances[i] != results.distances[i];
    }
    if (different > nq * k / 10) {
        state.SkipWithError("the results differ from those of FAISS");
        return;
    }
    for (auto _ : state) {
        results.search(index, queries, k);
    }
    set_items(state, double(nq));
}

void one_query(benchmark::State& state) {
    const auto codes = random_codes(many_codes * 32, 1);
    IndexBinaryFlatSIMD index(256);
    index.add(many_codes, codes.data());
    const auto query = random_codes(32, 2);
    Results results;
    for (auto _ : state) {
        results.search(index, query, 10);
    }
    state.SetBytesProcessed(state.iterations() * many_codes * 32);
}

/// A loop that only reads, early enough for the memory.
void read_memory(benchmark::State& state) {
    const auto data = random_codes(many_codes * 32, 1);
    const auto* words = reinterpret_cast<const uint64_t*>(data.data());
    const size_t n = data.size() / 8 / 16 * 16;
    for (auto _ : state) {
        uint64_t sums[16] = {};
        for (size_t i = 0; i < n; i += 16) {
            __builtin_prefetch(words + i + 512);
            __builtin_prefetch(words + i + 520);
            for (size_t j = 0; j < 16; j++) {
                sums[j] ^= words[i + j];
            }
        }
        benchmark::DoNotOptimize(sums);
    }
    state.SetBytesProcessed(state.iterations() * data.size());
}

void bits_and_k(benchmark::internal::Benchmark* b) {
    b->ArgNames({"bits", "k"})
            ->ArgsProduct({{64, 128, 256, 512, 1024}, {10, 1000, 10000}})
            ->UseRealTime();
}

BENCHMARK_TEMPLATE(scan, IndexBinaryFlatSIMD)->Apply(bits_and_k);
BENCHMARK_TEMPLATE(scan, faiss::IndexBinaryFlat)->Apply(bits_and_k);
void bits_and_batch(benchmark::internal::Benchmark* b) {
    b->ArgNames({"bits", "nq"})
            ->ArgsProduct({{64, 128, 256, 512, 1024}, {1, 200}})
            ->UseRealTime();
}

BENCHMARK_TEMPLATE(lists, IndexBinaryIVFSIMD, IndexBinaryFlatSIMD)
        ->Apply(bits_and_batch);
BENCHMARK_TEMPLATE(lists, faiss::IndexBinaryIVF, faiss::IndexBinaryFlat)
        ->Apply(bits_and_batch);
BENCHMARK(one_query)->UseRealTime();
BENCHMARK(read_memory)->UseRealTime();

} // namespace

int main(int argc, char** argv) {
    return run_benchmarks(argc, argv);
}
