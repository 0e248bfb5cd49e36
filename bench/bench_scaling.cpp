// SPDX-License-Identifier: MIT
// How the cost of encoding, of the Hamming scan and of exact search grows with
// the number of vectors, their dimension and the bits, and falls with threads.

#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>
#include <faiss_ext/io/index_factory.h>

#include "bench_common.h"

using namespace faiss_ext;
using namespace faiss_ext::bench;

namespace {

struct Threads {
    explicit Threads(int n) {
        omp_set_num_threads(n);
    }
    ~Threads() {
        omp_set_num_threads(1);
    }
};

/// Arguments: vectors, dimension, bits, threads.
void encode(benchmark::State& state, const char* scheme) {
    const idx_t n = state.range(0);
    const int d = int(state.range(1)), nbits = int(state.range(2));
    char text[100];
    snprintf(text, sizeof(text), scheme, nbits);
    const auto hash = kernel_hash_factory(d, text);
    const auto x = random_histograms(n, d, 1);
    std::vector<uint8_t> codes(n * hash->code_size());
    const Threads threads{int(state.range(3))};
    for (auto _ : state) {
        hash->encode(n, x.data(), codes.data());
    }
    set_items(state, double(n));
}

/// Arguments: codes, queries, bits, threads.
void scan(benchmark::State& state) {
    const idx_t n = state.range(0), nq = state.range(1), k = 10;
    const int bits = int(state.range(2));
    IndexBinaryFlatSIMD index(bits);
    index.add(n, random_codes(n * (bits / 8), 1).data());
    const auto queries = random_codes(nq * (bits / 8), 2);
    std::vector<int32_t> distances(nq * k);
    std::vector<idx_t> labels(nq * k);
    const Threads threads{int(state.range(3))};
    for (auto _ : state) {
        index.search(nq, queries.data(), k, distances.data(), labels.data());
    }
    set_items(state, double(n * nq));
}

/// Arguments: vectors, queries, dimension, threads.
void exact(benchmark::State& state, const char* kernel) {
    const idx_t n = state.range(0), nq = state.range(1), k = 10;
    const int d = int(state.range(2));
    const auto index = index_factory(d, kernel);
    index->add(n, random_histograms(n, d, 1).data());
    const auto queries = random_histograms(nq, d, 2);
    std::vector<float> distances(nq * k);
    std::vector<idx_t> labels(nq * k);
    const Threads threads{int(state.range(3))};
    for (auto _ : state) {
        index->search(nq, queries.data(), k, distances.data(), labels.data());
    }
    set_items(state, double(n * nq));
}

const char* const structured = "AHK%d(chi2)";
const char* const dense = "AHK%d(chi2,proj=dense)";

void encode_arguments(benchmark::internal::Benchmark* b) {
    b->ArgNames({"n", "d", "bits", "threads"})->UseRealTime();
    b->Args({20000, 256, 512, 1})->Args({20000, 256, 512, 2});
    for (int n : {100, 1000, 10000, 100000}) {
        b->Args({n, 128, 512, 1});
    }
    for (int d : {32, 64, 128, 256, 512, 1024, 2048, 4096}) {
        b->Args({2000, d, 512, 1});
    }
    for (int bits : {64, 256, 1024, 4096, 16384}) {
        b->Args({2000, 256, bits, 1});
    }
}

void scan_arguments(benchmark::internal::Benchmark* b) {
    b->ArgNames({"n", "queries", "bits", "threads"})->UseRealTime();
    b->Args({1000000, 100, 256, 1})->Args({1000000, 100, 256, 2});
    b->Args({4000000, 1, 256, 1})->Args({4000000, 1, 256, 2});
    for (int n : {10000, 100000, 1000000, 10000000}) {
        b->Args({n, 20, 256, 1});
    }
    for (int bits : {64, 128, 256, 512, 1024, 4096, 16384, 65536}) {
        b->Args({20000, 20, bits, 1});
    }
}

void exact_arguments(benchmark::internal::Benchmark* b) {
    b->ArgNames({"n", "queries", "d", "threads"})->UseRealTime();
    b->Args({50000, 64, 128, 1})->Args({50000, 64, 128, 2});
    for (int n : {1000, 10000, 100000}) {
        b->Args({n, 16, 128, 1});
    }
    for (int d : {32, 128, 512, 2048, 8192, 32768}) {
        b->Args({2000, 16, d, 1});
    }
}

BENCHMARK_CAPTURE(encode, structured, structured)->Apply(encode_arguments);
BENCHMARK_CAPTURE(encode, dense, dense)->Apply(encode_arguments);
BENCHMARK(scan)->Apply(scan_arguments);
BENCHMARK_CAPTURE(exact, chi2, "KFlat(chi2)")->Apply(exact_arguments);
BENCHMARK_CAPTURE(exact, js, "KFlat(js)")->Apply(exact_arguments);

} // namespace

int main(int argc, char** argv) {
    return run_benchmarks(argc, argv);
}
