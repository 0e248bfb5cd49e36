// SPDX-License-Identifier: MIT
// Codes of many bits from many dimensions: bilinear projections beside a dense
// one, in one run, on one thread.
//
//   bench_bilinear [DENSE_BITS [FILE.fvecs]]
//
// d = 64,000 as 250 x 256: vectors of the file, VLAD of 500 centres and 128
// dimensions say, or random ones. The dense scheme is timed at DENSE_BITS
// (6400, which take 1.6 GB) and extrapolated linearly to the others; the
// default form of the bilinear one (structured, shuffled) and the paper's
// (dense) at m = 1, 5 and 10.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include <faiss/impl/io.h>

#include <faiss_ext/hashes/BilinearShiftInvariantHash.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/projections/BilinearProjection.h>

#include "bench_common.h"

namespace {

constexpr int d_w = 250, d_v = 256, d = d_w * d_v;
constexpr double gamma_value = 1e-4;

/// seconds for one of n vectors: the least of several turns
double encode_time(
        const faiss_ext::KernelHash& hash,
        const std::vector<float>& x,
        int n,
        int turns) {
    n = std::min(n, int(x.size() / d));
    std::vector<uint8_t> codes(n * hash.code_size());
    double best = 1e30;
    for (int turn = 0; turn < turns; turn++) {
        const auto start = std::chrono::steady_clock::now();
        hash.encode(n, x.data(), codes.data());
        best = std::min(
                best,
                std::chrono::duration<double>(
                        std::chrono::steady_clock::now() - start)
                        .count());
    }
    return best / n;
}

size_t file_size(const faiss_ext::KernelHash& hash) {
    faiss::VectorIOWriter writer;
    faiss_ext::write_VectorTransform(&hash, &writer);
    return writer.data.size();
}

const char* reached(bool yes) {
    return yes ? "reached" : "NOT reached";
}

} // namespace

int main(int argc, char** argv) {
    try {
        const int dense_bits = argc > 1 ? std::atoi(argv[1]) : 6400;
        omp_set_num_threads(1);
        std::vector<float> x;
        if (argc > 2) {
            int found;
            x = faiss_ext::bench::read_vecs<float>(argv[2], 96, found);
            if (found != d) {
                throw std::runtime_error(
                        "the vectors have " + std::to_string(found) +
                        " dimensions, expected 64000");
            }
        } else {
            x = faiss_ext::bench::random_normals(96, d, 1);
        }
        double dense_per_bit;
        {
            const faiss_ext::ShiftInvariantHash dense(
                    d,
                    dense_bits,
                    faiss_ext::GaussianKernel(gamma_value),
                    1234,
                    faiss_ext::ProjectionChoice::Kind::dense);
            dense_per_bit = encode_time(dense, x, 48, 3) / dense_bits;
            printf("%s, 1 thread; %s, d = %d as %d x %d\n",
                   faiss_ext::simd::target_name(),
                   argc > 2 ? argv[2] : "random vectors",
                   d,
                   d_w,
                   d_v);
            printf("dense: %d bits, %.3f ms/vector, %.0f MB\n\n",
                   dense_bits,
                   1e3 * dense_per_bit * dense_bits,
                   4e-6 * dense_bits * d);
        }
        printf("  bits  m  form        ms/vector  of m = 1  dense/this  memory MB  file MB\n");
        double largest_memory = 0;
        for (int nbits : {4904, 6400, 16904, 25600, 40000, 62504}) {
            for (bool structured : {true, false}) {
                double first = 0;
                for (int m : {1, 5, 10}) {
                    const faiss_ext::BilinearShiftInvariantHash hash(
                            d_w,
                            d_v,
                            nbits,
                            gamma_value,
                            m,
                            structured,
                            1234,
                            structured);
                    const double time = encode_time(hash, x, 24, 7);
                    first = m == 1 ? time : first;
                    const double memory =
                            double(dynamic_cast<const faiss_ext::
                                                        BilinearProjection&>(
                                           *hash.projection)
                                           .memory()) +
                            8.0 * nbits;
                    largest_memory = std::max(largest_memory, memory);
                    const double ratio = dense_per_bit * nbits / time;
                    printf("%6d %2d  %-10s %10.3f %9.2f %11.0f %10.2f %8.2f",
                           nbits,
                           m,
                           structured ? "structured" : "dense",
                           1e3 * time,
                           time / first,
                           ratio,
                           1e-6 * memory,
                           1e-6 * double(file_size(hash)));
                    if (nbits == 62504 && m == 5) {
                        printf("   bars: 1.5 of m = 1 %s, 20 x dense %s",
                               reached(time <= 1.5 * first),
                               reached(ratio >= 20));
                    }
                    printf("\n");
                    fflush(stdout);
                }
            }
        }
        printf("\nlargest memory of the scheme %.2f MB (bar: below 100, %s)\n",
               1e-6 * largest_memory,
               reached(largest_memory < 1e8));
    } catch (const std::exception& e) {
        fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
