// SPDX-License-Identifier: MIT
// How much of the time of KernelizedLSH::encode is spent on kernel values, and
// how much on the rest: normalisation, weights, thresholds, packing, checks.
//
//   bench_klsh [FILE.bvecs]
//
// encodes 200,000 vectors from the file, SIFT descriptors say, or random ones
// of dimension 128; L1-normalised; p = 1000, t = 50, 256 bits. The two are
// timed by turns, on all threads.

#include <algorithm>
#include <chrono>
#include <memory>

#include <faiss_ext/hashes/KernelizedLSH.h>
#include <faiss_ext/io/index_factory.h>

#include "bench_common.h"
#include "core/parallel.h"

namespace {

using faiss_ext::idx_t;

constexpr idx_t max_vectors = 200000;

template <class F>
double seconds(F&& f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(
                   std::chrono::steady_clock::now() - start)
            .count();
}

double median(std::vector<double> v) {
    std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
    return v[v.size() / 2];
}

void measure(const char* kernel, idx_t n, int d, const std::vector<float>& x) {
    const auto made = faiss_ext::kernel_hash_factory(
            d, "KLSH256(" + std::string(kernel) + ",p=1000,t=50)");
    auto& hash = dynamic_cast<faiss_ext::KernelizedLSH&>(*made);
    hash.train(n, x.data());

    std::vector<uint8_t> codes(n * hash.code_size());
    std::vector<double> all, values;
    for (int turn = 0; turn < 5; turn++) {
        all.push_back(seconds([&] { hash.encode(n, x.data(), codes.data()); }));
        values.push_back(seconds([&] {
            faiss_ext::parallel_blocks(n, 192, [&](idx_t begin, idx_t end) {
                const auto block = std::make_unique_for_overwrite<float[]>(
                        (end - begin) * hash.map.p);
                hash.map.kernel->block(
                        end - begin,
                        x.data() + begin * d,
                        hash.map.p,
                        hash.map.landmarks.data(),
                        d,
                        block.get());
            });
        }));
    }
    const double rest = 1 - median(values) / median(all);
    printf("%-13s encode %6.2f s = %8.0f vectors/s   kernel alone %6.2f s   the rest %4.1f %%   %s\n",
           kernel,
           median(all),
           double(n) / median(all),
           median(values),
           100 * rest,
           rest < 0.25 ? "(bar: under 25 %, reached)"
                       : "(bar: under 25 %, NOT reached)");
    fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
    try {
        int d = 128;
        std::vector<float> x;
        if (argc > 1) {
            const auto bytes = faiss_ext::bench::read_vecs<uint8_t>(
                    argv[1], max_vectors, d);
            x.assign(bytes.begin(), bytes.end());
        } else {
            x = faiss_ext::bench::random_histograms(max_vectors, d, 1);
        }
        const idx_t n = idx_t(x.size()) / d;
        for (idx_t i = 0; i < n; i++) {
            float sum = 0;
            for (int k = 0; k < d; k++) {
                sum += x[i * d + k];
            }
            for (int k = 0; k < d && sum > 0; k++) {
                x[i * d + k] /= sum;
            }
        }
        printf("%lld vectors, d = %d, %d threads, %s\n",
               static_cast<long long>(n),
               d,
               omp_get_max_threads(),
               faiss_ext::simd::target_name());
        for (const char* kernel :
             {"chi2", "intersection", "js", "hellinger", "gaussian"}) {
            measure(kernel, n, d, x);
        }
    } catch (const std::exception& e) {
        fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
