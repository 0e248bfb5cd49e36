// Kernels, encoding and exact search, each beside what FAISS or BLAS does with
// the same data. Run with OMP_NUM_THREADS=1 to compare inner loops.

#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include <faiss/IndexFlat.h>
#include <faiss/utils/random.h>

#include <faiss_ext/compat.h>
#include <faiss_ext/index_factory.h>
#include <faiss_ext/registry.h>

#include "simd/pairwise.h"

extern "C" int sgemm_(
        const char* transa,
        const char* transb,
        const int* m,
        const int* n,
        const int* k,
        const float* alpha,
        const float* a,
        const int* lda,
        const float* b,
        const int* ldb,
        const float* beta,
        float* c,
        const int* ldc);

namespace {

using faiss_ext::idx_t;

std::vector<float> random_vectors(idx_t n, int d, int seed) {
    std::vector<float> x(n * d);
    faiss::float_rand(x.data(), x.size(), seed);
    return x;
}

void set_flops(benchmark::State& state, double pairs, int d) {
    state.counters["FLOP/s"] = benchmark::Counter(
            2 * pairs * d,
            benchmark::Counter::kIsIterationInvariantRate,
            benchmark::Counter::kIs1000);
}

void sgemm(benchmark::State& state) {
    const int d = state.range(0), n = 1000, m = 1024;
    const auto x = random_vectors(n, d, 1), y = random_vectors(m, d, 2);
    std::vector<float> out(n * m);
    const float one = 1, zero = 0;
    for (auto _ : state) {
        sgemm_("T",
               "N",
               &m,
               &n,
               &d,
               &one,
               y.data(),
               &d,
               x.data(),
               &d,
               &zero,
               out.data(),
               &m);
    }
    set_flops(state, double(n) * m, d);
}

void pairwise(benchmark::State& state) {
    const int d = state.range(0), n = 1000, m = 1024;
    const auto op = faiss_ext::simd::PairOp(state.range(1));
    const auto x = random_vectors(n, d, 1), y = random_vectors(m, d, 2);
    std::vector<float> out(n * m);
    for (auto _ : state) {
        faiss_ext::simd::pairwise(
                op, n, x.data(), m, y.data(), d, out.data(), m);
    }
    state.SetLabel(faiss_ext::simd::target_name());
    set_flops(state, double(n) * m, d);
}

void encode(benchmark::State& state) {
    const int d = state.range(0), nbits = state.range(1), n = 1000;
    const auto x = random_vectors(n, d, 1);
    const auto hash = faiss_ext::kernel_hash_factory(
            d, "SIK" + std::to_string(nbits) + "(gaussian,gamma=1)");
    std::vector<uint8_t> codes(n * hash->code_size());
    for (auto _ : state) {
        hash->encode(n, x.data(), codes.data());
    }
    set_flops(state, double(n) * nbits, d);
    state.counters["vectors/s"] = benchmark::Counter(
            n, benchmark::Counter::kIsIterationInvariantRate);
}

void search(benchmark::State& state, const char* description) {
    const int d = state.range(0), n = 20000, nq = state.range(1), k = 10;
    const auto x = random_vectors(n, d, 1), q = random_vectors(nq, d, 2);
    const auto index = faiss_ext::index_factory(d, description);
    index->add(n, x.data());
    std::vector<float> distances(nq * k);
    std::vector<idx_t> labels(nq * k);
    for (auto _ : state) {
        index->search(nq, q.data(), k, distances.data(), labels.data());
    }
    state.counters["queries/s"] = benchmark::Counter(
            nq, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(sgemm)->ArgName("d")->Arg(128)->Arg(784)->Arg(4096)->UseRealTime();
BENCHMARK(pairwise)
        ->ArgNames({"d", "op"})
        ->ArgsProduct({{128, 784, 4096}, {0, 1, 2}})
        ->UseRealTime();
BENCHMARK(encode)
        ->ArgNames({"d", "nbits"})
        ->ArgsProduct({{128, 784, 4096}, {256, 1024}})
        ->UseRealTime();
BENCHMARK_CAPTURE(search, L2, "Flat")
        ->ArgNames({"d", "queries"})
        ->ArgsProduct({{128, 784}, {1, 1000}})
        ->UseRealTime();
BENCHMARK_CAPTURE(search, gaussian, "KFlat(gaussian,gamma=1)")
        ->ArgNames({"d", "queries"})
        ->ArgsProduct({{128, 784}, {1, 1000}})
        ->UseRealTime();
BENCHMARK_CAPTURE(search, laplacian, "KFlat(laplacian,gamma=1)")
        ->ArgNames({"d", "queries"})
        ->ArgsProduct({{128, 784}, {1, 1000}})
        ->UseRealTime();

} // namespace

BENCHMARK_MAIN();
