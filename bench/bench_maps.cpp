// SPDX-License-Identifier: MIT
// Explicit maps, on one thread: a map and the matrix of a PCA behind it beside
// sgemm with that matrix alone, whose vectors are compared with a plain product
// before they are timed, and maps that are learnt or drawn.

#include <cmath>
#include <map>
#include <memory>
#include <string>

#include <faiss/IndexPreTransform.h>
#include <faiss/VectorTransform.h>

#include <faiss_ext/indexes/IndexPreTransformSIMD.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/maps/FeatureMap.h>

#include "bench_common.h"
#include "blas_sgemm.h"

using namespace faiss_ext;
using namespace faiss_ext::bench;

namespace {

/// Whether a batch is mapped and multiplied, by products in double.
bool is_right(const IndexPreTransformSIMD& index, const std::vector<float>& x) {
    const auto& map = *index.chain[0];
    const auto& pca =
            dynamic_cast<const faiss::LinearTransform&>(*index.chain[1]);
    std::vector<float> mapped(map.d_out);
    const std::vector<float> found = index.transformed(batch, x.data(), 2);
    for (idx_t row : {idx_t(0), batch / 2, batch - 1}) {
        map.apply_noalloc(1, &x[row * map.d_in], mapped.data());
        for (int i = 0; i < pca.d_out; i++) {
            double sum = pca.b[i];
            for (int j = 0; j < pca.d_in; j++) {
                sum += double(pca.A[i * pca.d_in + j]) * mapped[j];
            }
            if (std::abs(sum - found[row * pca.d_out + i]) > 1e-4) {
                return false;
            }
        }
    }
    return true;
}

/// D is the dimension of the map, three times that of vectors.
void map_and_matrix(benchmark::State& state) {
    const int d = int(state.range(0)) / 3, m = int(state.range(1));
    static std::map<std::pair<int, int>, std::unique_ptr<faiss::Index>> made;
    auto& index = made[{d, m}];
    const auto x = random_histograms(batch, d, 1);
    const bool is_new = !index;
    if (is_new) {
        index = index_factory(
                d, ("HKM1(chi2),PCA" + std::to_string(m) + ",Flat").c_str());
        index->train(batch, x.data());
    }
    const auto& chain = dynamic_cast<const IndexPreTransformSIMD&>(*index);
    if (is_new && !is_right(chain, x)) {
        index.reset();
        state.SkipWithError("mapped vectors are wrong");
        return;
    }
    for (auto _ : state) {
        benchmark::DoNotOptimize(chain.transformed(batch, x.data(), 2));
    }
    set_items(state, double(batch));
    set_flops(state, 2.0 * double(batch) * state.range(0) * m);
}

void apply(benchmark::State& state, const char* string) {
    const int d = int(state.range(0));
    static std::map<std::string, std::unique_ptr<FeatureMap>> made;
    auto& map = made[string + (" " + std::to_string(d))];
    const auto x = random_histograms(2 * batch, d, 1);
    if (!map) {
        map = map_factory(d, string);
        map->train(2 * batch, x.data());
    }
    std::vector<float> out(batch * map->d_out);
    for (auto _ : state) {
        map->apply_noalloc(batch, x.data(), out.data());
    }
    set_items(state, double(batch));
    const auto rows = double(state.range(1)); // of a matrix as large
    set_flops(state, 2.0 * double(batch) * rows * d);
}

void sizes(benchmark::internal::Benchmark* b) {
    b->ArgNames({"D", "rows"})
            ->ArgsProduct({{384, 450, 2352}, {64, 128}})
            ->UseRealTime();
}

void sizes_of_maps(benchmark::internal::Benchmark* b) {
    b->ArgNames({"d", "rows"})
            ->ArgsProduct({{128, 784}, {1000}})
            ->UseRealTime();
}

BENCHMARK(blas_sgemm)->Apply(sizes)->Apply(sizes_of_maps);
BENCHMARK(map_and_matrix)->Apply(sizes);
// a matrix of 1,000 rows and, for KPCA, a second one of 64 x 1,000
BENCHMARK_CAPTURE(apply, kpca, "KPCA64(gaussian,p=1000,gamma=1)")
        ->Apply(sizes_of_maps);
BENCHMARK_CAPTURE(apply, rff_dense, "RFF2000(gaussian,gamma=1,proj=dense)")
        ->Apply(sizes_of_maps);
BENCHMARK_CAPTURE(apply, rff_structured, "RFF2000(gaussian,gamma=1)")
        ->Apply(sizes_of_maps);

} // namespace

int main(int argc, char** argv) {
    return run_benchmarks(argc, argv);
}
