// SPDX-License-Identifier: MIT
// Number of bits for a set of vectors (Raginsky and Lazebnik 2009, theorem
// 2.4).

#include <faiss_ext/hashes/bits_for.h>

#include <faiss_ext/hashes/ShiftInvariantHash.h>

#include <cmath>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

TEST(BitsFor, IsTheFormula) {
    for (int64_t n : {1L, 2L, 1000L, 80'000'000L, 1L << 62}) {
        for (double delta : {0.01, 0.1, 0.999}) {
            for (double epsilon : {1e-9, 0.05, 0.999}) {
                const auto failure = [&](double bits) {
                    return 2 * std::log(double(n)) - 2 * bits * delta * delta;
                };
                const int64_t bits = bits_for(n, delta, epsilon);
                const double limit = std::log(epsilon);
                EXPECT_EQ(bits % 8, 0);
                EXPECT_LE(failure(double(bits)), limit + 1e-9);
                EXPECT_GT(failure(double(bits) - 8), limit - 1e-9);
            }
        }
    }
}

// In every repeat all pairs are within delta. Each repeat fails with a
// probability below epsilon, in fact far below.
TEST(BitsFor, IsEnough) {
    const int n = 60, d = 5;
    const double delta = 0.05;
    const int nbits = int(bits_for(n, delta, 0.01));
    const auto x = normal_vectors(n, d, 1);
    for (int seed : {1, 2, 3}) {
        const ShiftInvariantHash hash(
                d, nbits, GaussianKernel(0.5), seed, proj_dense);
        const auto codes = codes_of(hash, x);
        const auto k = kernel_block(*hash.kernel, x, x, d);
        double largest = 0;
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                const double share =
                        double(hamming(codes, nbits / 8, i, j)) / nbits;
                const double expected =
                        hash.expected_hamming(k[i * n + j]) / nbits;
                largest = std::max(largest, std::abs(share - expected));
            }
        }
        EXPECT_LT(largest, delta);
        EXPECT_GT(largest, delta / 10);
    }
}

TEST(BitsFor, Errors) {
    const auto call = [](int64_t n, double delta, double epsilon) {
        return [=] { bits_for(n, delta, epsilon); };
    };
    expect_throws(
            {{call(0, 0.1, 0.1), "n = 0"},
             {call(2, 0, 0.1), "delta = 0"},
             {call(2, 1, 0.1), "delta = 1"},
             {call(2, NAN, 0.1), "delta = nan"},
             {call(2, 0.1, 0), "epsilon = 0"},
             {call(2, 0.1, 1), "epsilon = 1"},
             {call(2, 1e-6, 0.1), "bits are needed"}});
}
