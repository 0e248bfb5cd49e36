// The Hamming scan beside that of the FAISS that is linked, in one run, on one
// thread; and one query over many codes beside the bandwidth of the memory.
//
//   bench_hamming [CODES]
//
// Results are compared before they are timed.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <stdexcept>
#include <vector>

#include <omp.h>

#include <faiss/IndexBinaryFlat.h>

#include <faiss_ext/IndexBinaryFlatSIMD.h>

#include "simd/pairwise.h"

namespace {

using faiss_ext::idx_t;

std::vector<uint8_t> random_codes(size_t size, int seed) {
    std::vector<uint8_t> codes((size + 7) / 8 * 8);
    std::mt19937_64 rng(seed);
    auto* words = reinterpret_cast<uint64_t*>(codes.data());
    for (size_t i = 0; i < codes.size() / 8; i++) {
        words[i] = rng();
    }
    codes.resize(size);
    return codes;
}

struct Results {
    std::vector<int32_t> distances;
    std::vector<idx_t> labels;
    double seconds = 1e30; ///< the least of several turns
};

Results search(
        const faiss::IndexBinary& index,
        idx_t nq,
        const uint8_t* queries,
        idx_t k,
        int turns) {
    Results r;
    r.distances.resize(nq * k);
    r.labels.resize(nq * k);
    for (int turn = 0; turn < turns; turn++) {
        const auto start = std::chrono::steady_clock::now();
        index.search(nq, queries, k, r.distances.data(), r.labels.data());
        const std::chrono::duration<double> time =
                std::chrono::steady_clock::now() - start;
        r.seconds = std::min(r.seconds, time.count());
    }
    return r;
}

void check(bool good, const char* what) {
    if (!good) {
        throw std::runtime_error(what);
    }
}

/// bytes per second of a loop that only reads
double read_bandwidth(const std::vector<uint8_t>& data) {
    const auto* words = reinterpret_cast<const uint64_t*>(data.data());
    const size_t n = data.size() / 8 / 16 * 16;
    double best = 0;
    volatile uint64_t keep = 0;
    for (int turn = 0; turn < 7; turn++) {
        const auto start = std::chrono::steady_clock::now();
        uint64_t sums[16] = {};
        for (size_t i = 0; i < n; i += 16) {
            for (size_t j = 0; j < 16; j++) {
                sums[j] ^= words[i + j];
            }
        }
        for (uint64_t s : sums) {
            keep = keep ^ s;
        }
        const std::chrono::duration<double> time =
                std::chrono::steady_clock::now() - start;
        best = std::max(best, double(n) * 8 / time.count());
    }
    return best;
}

} // namespace

int main(int argc, char** argv) {
    try {
        const idx_t n = argc > 1 ? std::atoll(argv[1]) : 500000;
        const idx_t nq = 200;
        omp_set_num_threads(1);
        printf("%s, 1 thread; %lld codes, %lld queries; ns for each code and query\n\n",
               faiss_ext::simd::target_name(),
               static_cast<long long>(n),
               static_cast<long long>(nq));
        printf("  bits      k     ours    FAISS    ratio\n");
        for (int bits : {64, 128, 256, 512, 1024}) {
            const auto codes = random_codes(n * (bits / 8), bits);
            const auto queries = random_codes(nq * (bits / 8), 1);
            faiss_ext::IndexBinaryFlatSIMD ours(bits);
            faiss::IndexBinaryFlat theirs(bits);
            ours.add(n, codes.data());
            theirs.add(n, codes.data());
            for (idx_t k : {10, 1000, 10000}) {
                const idx_t few = 20; // are enough for the slower one
                const auto a = search(ours, nq, queries.data(), k, 5);
                const auto b = search(theirs, few, queries.data(), k, 1);
                check(std::equal(
                              b.distances.begin(),
                              b.distances.end(),
                              a.distances.begin()),
                      "the results differ from those of FAISS");
                const double mine = 1e9 * a.seconds / double(nq * n);
                const double other = 1e9 * b.seconds / double(few * n);
                printf("%6d %6lld %8.3f %8.3f %8.1f%s\n",
                       bits,
                       static_cast<long long>(k),
                       mine,
                       other,
                       other / mine,
                       bits != 256 || k != 10 ? ""
                               : other / mine >= 15
                               ? "   (bar: 15, reached)"
                               : "   (bar: 15, NOT reached)");
                fflush(stdout);
            }
        }
        const idx_t many = 10000000;
        const auto codes = random_codes(many * 32, 1);
        faiss_ext::IndexBinaryFlatSIMD index(256);
        index.add(many, codes.data());
        const auto one = search(index, 1, random_codes(32, 2).data(), 10, 7);
        const double rate = double(many) * 32 / one.seconds;
        const double bandwidth = read_bandwidth(index.xb);
        printf("\none query, 10 million codes of 256 bits: %.1f GB/s, memory reads %.1f GB/s: %.0f %% (bar: 70 %%, %s)\n",
               1e-9 * rate,
               1e-9 * bandwidth,
               100 * rate / bandwidth,
               rate >= 0.7 * bandwidth ? "reached" : "NOT reached");
    } catch (const std::exception& e) {
        fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
