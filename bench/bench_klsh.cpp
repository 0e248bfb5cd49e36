// How much of the time of KernelizedHash::encode is spent on kernel values, and
// how much on the rest: normalisation, weights, thresholds, packing, checks.
//
//   bench_klsh [FILE.bvecs]
//
// encodes 200,000 vectors from the file, SIFT descriptors say, or random ones
// of dimension 128; L1-normalised; p = 1000, t = 50, 256 bits. The two are
// timed by turns, on all threads.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <omp.h>

#include <faiss_ext/KernelizedHash.h>
#include <faiss_ext/index_factory.h>

#include "parallel.h"
#include "simd/pairwise.h"

namespace {

using faiss_ext::idx_t;

constexpr idx_t max_vectors = 200000;

std::vector<float> read_bvecs(const std::string& name, int& d) {
    std::ifstream file(name, std::ios::binary);
    std::vector<float> x;
    std::vector<uint8_t> row;
    int32_t size = 0;
    d = 0;
    while (idx_t(x.size()) < max_vectors * std::max(d, 1) &&
           file.read(reinterpret_cast<char*>(&size), sizeof(size))) {
        if (size <= 0 || size > 4096 || (d > 0 && size != d)) {
            throw std::runtime_error(name + " is no .bvecs file");
        }
        d = size;
        row.resize(d);
        file.read(reinterpret_cast<char*>(row.data()), d);
        x.insert(x.end(), row.begin(), row.end());
    }
    if (x.empty()) {
        throw std::runtime_error("nothing can be read from " + name);
    }
    return x;
}

std::vector<float> random_histograms(int d) {
    std::mt19937 rng(1);
    std::gamma_distribution<float> gamma(0.5f);
    std::vector<float> x(max_vectors * d);
    for (float& v : x) {
        v = gamma(rng);
    }
    return x;
}

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
    auto& hash = dynamic_cast<faiss_ext::KernelizedHash&>(*made);
    hash.train(n, x.data());

    std::vector<uint8_t> codes(n * hash.code_size());
    std::vector<double> all, values;
    for (int turn = 0; turn < 5; turn++) {
        all.push_back(seconds([&] { hash.encode(n, x.data(), codes.data()); }));
        values.push_back(seconds([&] {
            faiss_ext::parallel_blocks(n, 192, [&](idx_t begin, idx_t end) {
                const auto block = std::make_unique_for_overwrite<float[]>(
                        (end - begin) * hash.p);
                hash.kernel->block(
                        end - begin,
                        x.data() + begin * d,
                        hash.p,
                        hash.landmarks.data(),
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
        auto x = argc > 1 ? read_bvecs(argv[1], d) : random_histograms(d);
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
