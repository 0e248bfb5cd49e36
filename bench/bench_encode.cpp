// SPDX-License-Identifier: MIT
// Encoding, on one thread: dense schemes beside sgemm of the same size, and
// structured projections beside dense ones, in batches and for a query alone.
// Codes are compared with those of a plain product before they are timed.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>

#include <faiss_ext/hashes/AdditiveKernelHash.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/io/index_factory.h>

#include "bench_common.h"
#include "blas_sgemm.h"
#include "eigen_sgemm.h"

using namespace faiss_ext;
using namespace faiss_ext::bench;

namespace {

void eigen_sgemm(benchmark::State& state) {
    const size_t d = state.range(0), m = state.range(1);
    const auto x = random_normals(batch, d, 1), y = random_normals(m, d, 2);
    std::vector<float> out(batch * m);
    for (auto _ : state) {
        bench::eigen_sgemm(batch, m, d, x.data(), y.data(), out.data());
    }
    set_flops(state, 2.0 * double(batch * m * d));
}

/// Whether the codes are the signs of margins by matrix() in double, but for
/// margins within rounding.
bool is_right(const KernelHash& hash, const std::vector<float>& x) {
    const auto* sik = dynamic_cast<const ShiftInvariantHash*>(&hash);
    const auto* ahk = dynamic_cast<const AdditiveKernelHash*>(&hash);
    const auto& projection = sik ? sik->projection : ahk->projection;
    std::vector<float> features(x.begin(), x.begin() + hash.d_in);
    if (ahk) {
        features.resize(ahk->map.d_out);
        ahk->map.map(1, x.data(), features.data());
    }
    const auto A = projection->matrix();
    std::vector<uint8_t> code(hash.code_size());
    hash.encode(1, x.data(), code.data());
    for (int j = 0; j < hash.nbits; j++) {
        double sum = 0, absolute = 0;
        for (size_t k = 0; k < features.size(); k++) {
            const double term =
                    double(A[j * features.size() + k]) * features[k];
            sum += term;
            absolute += std::abs(term);
        }
        double margin = sum;
        if (sik) {
            const double u = sum + sik->offset[j];
            margin = sik->threshold[j] - std::abs(u - std::round(u));
        }
        const bool bit = code[j / 8] >> (j % 8) & 1;
        if (bit != (margin >= 0) && std::abs(margin) > 1e-4 * (1 + absolute)) {
            return false;
        }
    }
    return true;
}

/// d is the dimension of what is projected: of x for SIK, of its map for AHK.
void encode(benchmark::State& state, const char* scheme, bool single) {
    const bool is_ahk = scheme[0] == 'A';
    const int D = int(state.range(0)), nbits = int(state.range(1));
    const int d = is_ahk ? D / 3 : D;
    char text[100];
    snprintf(text, sizeof(text), scheme, nbits);
    // the same for all repetitions
    static std::map<std::string, std::unique_ptr<KernelHash>> hashes;
    auto& hash = hashes[text + (" " + std::to_string(d))];
    const bool is_new = !hash;
    if (is_new) {
        hash = kernel_hash_factory(d, text);
    }
    const idx_t n = single && D * double(nbits) > 1e7 ? 100 : batch;
    const auto x =
            is_ahk ? random_histograms(n, d, 1) : random_normals(n, d, 1);
    if (is_new && !is_right(*hash, x)) {
        state.SkipWithError("codes are wrong");
        return;
    }
    std::vector<uint8_t> codes(n * hash->code_size());
    for (auto _ : state) {
        if (single) {
            for (idx_t i = 0; i < n; i++) {
                hash->encode(1, &x[i * d], &codes[i * hash->code_size()]);
            }
        } else {
            hash->encode(n, x.data(), codes.data());
        }
    }
    set_items(state, double(n));
    set_flops(state, 2.0 * double(n) * nbits * D);
}

void sizes(benchmark::internal::Benchmark* b) {
    b->ArgNames({"D", "bits"})
            ->ArgsProduct({{128, 784, 2352, 4096}, {256, 1024, 8192}})
            ->UseRealTime();
}

void sizes_of_maps(benchmark::internal::Benchmark* b) {
    b->ArgNames({"D", "bits"})
            ->ArgsProduct({{384, 2352}, {256, 512, 1024, 8192}})
            ->UseRealTime();
}

void more_sizes(benchmark::internal::Benchmark* b) {
    b->ArgNames({"D", "bits"})
            ->ArgsProduct({{16, 64, 128, 784, 2352}, {256, 512, 8192}})
            ->UseRealTime();
}

BENCHMARK(blas_sgemm)->Apply(sizes)->Apply(sizes_of_maps);
BENCHMARK(eigen_sgemm)->Apply(sizes)->Apply(sizes_of_maps);
BENCHMARK_CAPTURE(
        encode,
        sik_dense,
        "SIK%d(gaussian,gamma=1,proj=dense)",
        false)
        ->Apply(sizes);
BENCHMARK_CAPTURE(encode, ahk_dense, "AHK%d(chi2,proj=dense)", false)
        ->Apply(sizes_of_maps);
BENCHMARK_CAPTURE(encode, ahk_structured, "AHK%d(chi2)", false)
        ->Apply(sizes_of_maps);
BENCHMARK_CAPTURE(encode, ahk_dense_single, "AHK%d(chi2,proj=dense)", true)
        ->Apply(sizes_of_maps);
BENCHMARK_CAPTURE(encode, ahk_structured_single, "AHK%d(chi2)", true)
        ->Apply(sizes_of_maps);
BENCHMARK_CAPTURE(
        encode,
        small_dense,
        "SIK%d(gaussian,gamma=1,proj=dense)",
        false)
        ->Apply(more_sizes);
BENCHMARK_CAPTURE(encode, small_structured, "SIK%d(gaussian,gamma=1)", false)
        ->Apply(more_sizes);
BENCHMARK_CAPTURE(
        encode,
        small_dense_single,
        "SIK%d(gaussian,gamma=1,proj=dense)",
        true)
        ->Apply(more_sizes);
BENCHMARK_CAPTURE(
        encode,
        small_structured_single,
        "SIK%d(gaussian,gamma=1)",
        true)
        ->Apply(more_sizes);

} // namespace

int main(int argc, char** argv) {
    return run_benchmarks(argc, argv);
}
