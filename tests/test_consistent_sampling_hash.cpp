// SPDX-License-Identifier: MIT
// One-bit consistent weighted sampling: the samples under every instruction
// set, and the distances of codes.

#include <cmath>
#include <limits>

#include <faiss_ext/hashes/ConsistentSamplingHash.h>
#include <faiss_ext/kernels/JaccardKernel.h>

#include "simd/weighted_samples.h"
#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

/// Returns histograms with few and with many components, sets, a subset, a
/// multiple, components of very different sizes, and a zero row.
std::vector<float> histograms(size_t d, uint64_t seed) {
    constexpr size_t n = 12;
    std::vector<float> x = uniform_vectors(n, d, seed);
    std::mt19937_64 rng(seed);
    for (size_t k = 0; k < d; k++) {
        x[1 * d + k] = k % 3 == 0 ? x[1 * d + k] : 0;
        x[2 * d + k] = float(rng() % 2);
        x[3 * d + k] = float(rng() % 2);
        x[4 * d + k] = x[3 * d + k] * float(rng() % 2);
        x[5 * d + k] = 2 * x[d + k];
        x[6 * d + k] = std::exp(20 * x[6 * d + k] - 10);
        x[7 * d + k] = x[6 * d + k] * (0.8f + 0.4f * x[k]);
        x[8 * d + k] = 0;
        x[9 * d + k] = x[d + k] * 1.01f;
        x[10 * d + k] = 1e-30f * x[k];
        x[11 * d + k] = 1e30f * x[k];
    }
    return x;
}

double jaccard(const float* x, const float* y, size_t d) {
    double smaller = 0, larger = 0;
    for (size_t k = 0; k < d; k++) {
        smaller += std::min(x[k], y[k]);
        larger += std::max(x[k], y[k]);
    }
    return larger > 0 ? smaller / larger : 1;
}

/// Computes the cost of a component and its level by the formula, in double
/// precision.
std::pair<double, double> cost_and_level(
        const ConsistentSamplingHash& hash,
        float value,
        size_t k,
        int j) {
    const size_t at = k * hash.nbits + j;
    const double r = hash.rate[at], l = std::log(double(value));
    const double t = std::floor(l / r + hash.shift[at]);
    return {hash.cost[at] - r * (t - hash.shift[at]) - r, t};
}

TEST(ConsistentSampling, SamplesHaveTheSmallestCostOnEveryTarget) {
    for (int64_t t : targets()) {
        SCOPED_TRACE(hwy::TargetName(t));
        const Target target(t);
        for (const auto& [d, nbits] : {std::pair{1, 8}, {7, 40}, {60, 136}}) {
            const ConsistentSamplingHash hash(d, nbits, 5);
            const auto x = histograms(d, 3);
            std::vector<int32_t> chosen(nbits), level(nbits);
            for (size_t i = 0; i < x.size() / d; i++) {
                const float* row = &x[i * d];
                std::vector<int32_t> components;
                std::vector<float> logarithms;
                for (int k = 0; k < d; k++) {
                    if (row[k] > 0) {
                        components.push_back(k);
                        logarithms.push_back(std::log(row[k]));
                    }
                }
                simd::weighted_samples(
                        components.size(),
                        components.data(),
                        logarithms.data(),
                        nbits,
                        hash.rate.data(),
                        hash.shift.data(),
                        hash.cost.data(),
                        chosen.data(),
                        level.data());
                int far = 0;
                for (int j = 0; j < nbits; j++) {
                    if (components.empty()) {
                        EXPECT_EQ(chosen[j], -1);
                        EXPECT_EQ(level[j], 0);
                        continue;
                    }
                    double least = INFINITY;
                    for (int32_t k : components) {
                        least = std::min(
                                least,
                                cost_and_level(hash, row[k], k, j).first);
                    }
                    ASSERT_GT(row[chosen[j]], 0);
                    const auto [cost, exact] =
                            cost_and_level(hash, row[chosen[j]], chosen[j], j);
                    // l / r is rounded, so its floor may be off by 1
                    if (level[j] != exact) {
                        far++;
                        EXPECT_LE(std::abs(level[j] - exact), 1);
                    } else {
                        EXPECT_NEAR(cost, least, 1e-4);
                    }
                }
                EXPECT_LE(far, 1);
            }
        }
    }
}

// Bits are independent, so Hoeffding's bound holds for each pair, here with
// probability 1 - 1e-9.
TEST(ConsistentSampling, HammingTellsJaccard) {
    const int nbits = 8192;
    const double bound = std::sqrt(std::log(2 / 1e-9) / (2 * nbits));
    for (size_t d : {1, 3, 50, 400}) {
        const ConsistentSamplingHash hash(int(d), nbits, 100 + d);
        const auto x = histograms(d, 11);
        const auto codes = codes_of(hash, x);
        JaccardKernel kernel;
        for (size_t i = 0; i < x.size() / d; i++) {
            for (size_t j = 0; j <= i; j++) {
                const float *a = &x[i * d], *b = &x[j * d];
                const double value = jaccard(a, b, d);
                const int distance =
                        hamming(&codes[i * nbits / 8],
                                &codes[j * nbits / 8],
                                nbits / 8);
                EXPECT_NEAR(double(distance) / nbits, (1 - value) / 2, bound)
                        << "d = " << d << ", vectors " << i << ", " << j;
                EXPECT_NEAR(hash.kernel_value(a, b), value, 1e-9);
                EXPECT_NEAR(kernel(a, b, d), value, 1e-4);
                EXPECT_EQ(hash.covariance_of_pair(a, b), 0);
            }
        }
    }
}

TEST(ConsistentSampling, Theory) {
    const ConsistentSamplingHash hash(4, 64);
    for (double value : {0.0, 0.25, 1.0}) {
        EXPECT_EQ(hash.expected_hamming(value), 32 * (1 - value));
        EXPECT_EQ(hash.kernel_estimate(32 * (1 - value)), value);
        EXPECT_EQ(hash.asymmetric_kernel_estimate(32 * (1 - value)), value);
        const auto [low, high] = hash.hamming_bounds(value);
        EXPECT_EQ(low, high);
    }
    EXPECT_EQ(hash.kernel_estimate(60), 0);
    EXPECT_TRUE(throws([&] { hash.expected_hamming(-0.1); }, "-0.1"));
}

TEST(ConsistentSampling, MoreBitsBeginWithTheSame) {
    const auto x = histograms(20, 1);
    const auto few = codes_of(ConsistentSamplingHash(20, 64, 9), x),
               many = codes_of(ConsistentSamplingHash(20, 192, 9), x);
    for (size_t i = 0; i < x.size() / 20; i++) {
        EXPECT_EQ(rows(few, 8, i, i + 1), rows(many, 8, 3 * i, 3 * i + 1));
    }
}

} // namespace
