// SPDX-License-Identifier: MIT
// What the benchmarks share: data, one thread, checks before timing.

#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <omp.h>

#include <faiss_ext/core/compat.h>

#include "simd/pairwise.h"

namespace faiss_ext::bench {

/// Histograms with many small components, all below 1.
inline std::vector<float> random_histograms(idx_t n, int d, int seed) {
    uint64_t state = seed;
    std::vector<float> x(n * d);
    for (idx_t i = 0; i < n; i++) {
        float sum = 1e-9f;
        for (int k = 0; k < d; k++) {
            state = state * 6364136223846793005 + 1442695040888963407;
            const float u = float(state >> 40) * 0x1p-24f;
            x[i * d + k] = u * u * u;
            sum += x[i * d + k];
        }
        for (int k = 0; k < d; k++) {
            x[i * d + k] /= sum;
        }
    }
    return x;
}

inline std::vector<float> random_normals(idx_t n, int d, int seed) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal;
    std::vector<float> x(n * d);
    for (float& v : x) {
        v = normal(rng);
    }
    return x;
}

inline std::vector<uint8_t> random_codes(size_t size, int seed) {
    std::vector<uint8_t> codes((size + 7) / 8 * 8);
    std::mt19937_64 rng(seed);
    auto* words = reinterpret_cast<uint64_t*>(codes.data());
    for (size_t i = 0; i < codes.size() / 8; i++) {
        words[i] = rng();
    }
    codes.resize(size);
    return codes;
}

/// Vectors of a .fvecs or .bvecs file, at most `limit`; d is their dimension.
template <class T>
std::vector<T> read_vecs(const std::string& name, idx_t limit, int& d) {
    std::ifstream file(name, std::ios::binary);
    std::vector<T> x, row;
    int32_t size = 0;
    d = 0;
    while (idx_t(x.size()) < limit * std::max(d, 1) &&
           file.read(reinterpret_cast<char*>(&size), sizeof(size))) {
        if (size <= 0 || size > (1 << 20) || (d > 0 && size != d)) {
            throw std::runtime_error(name + " is no file of vectors");
        }
        d = size;
        row.resize(d);
        if (!file.read(
                    reinterpret_cast<char*>(row.data()),
                    sizeof(T) * row.size())) {
            throw std::runtime_error(name + " is truncated");
        }
        x.insert(x.end(), row.begin(), row.end());
    }
    if (x.empty()) {
        throw std::runtime_error("nothing can be read from " + name);
    }
    return x;
}

/// Multiply-adds count as two operations.
inline void set_flops(benchmark::State& state, double flops) {
    state.counters["FLOP/s"] = benchmark::Counter(
            flops,
            benchmark::Counter::kIsIterationInvariantRate,
            benchmark::Counter::kIs1000);
}

/// Items in an iteration: vectors, or pairs of vectors or codes.
inline void set_items(benchmark::State& state, double items) {
    state.counters["items/s"] = benchmark::Counter(
            items, benchmark::Counter::kIsIterationInvariantRate);
}

/// Runs what is registered, on one thread unless a benchmark says otherwise.
inline int run_benchmarks(int argc, char** argv) {
    omp_set_num_threads(1);
    benchmark::AddCustomContext("simd", simd::target_name());
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 1;
    }
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}

} // namespace faiss_ext::bench
