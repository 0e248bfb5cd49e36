// SPDX-License-Identifier: MIT
// One-bit consistent weighted sampling: the samples under every instruction
// set, the distances of codes, and sparse vectors.

#include <bit>
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

uint32_t mixed(uint32_t v) {
    v = (v ^ v >> 16) * 0x7feb352d;
    v = (v ^ v >> 15) * 0x846ca68b;
    return v ^ v >> 16;
}

uint32_t stirred(uint32_t v, uint32_t multiplier) {
    v = (v ^ v >> 16) * multiplier;
    return v ^ v >> 15;
}

/// Cells of the same size, as in weighted_samples.cpp.
struct Family {
    int log_levels;
    double begin, width, mean;
};

constexpr int num_levels = 278;
constexpr Family families[] = {
        {0, 1, 1, 1},
        {0, 1 / 4.0, 3 / 4.0, 3 / 4.0},
        {0, 1 / 32.0, 7 / 32.0, 7 / 32.0},
        {3, 1 / 256.0, 7 / 256.0, 7 / 32.0},
        {6, 1 / 2048.0, 7 / 2048.0, 7 / 32.0},
        {9, 0, 1 / 2048.0, 1 / 4.0}};

/// Visits all cells whose ranks begin below `limit`, one point after the other,
/// and returns the least keys.
std::vector<uint32_t> samples_of_all_cells(
        const std::vector<int32_t>& components,
        const Floats& weights,
        uint32_t seed_a,
        uint32_t seed_b,
        uint32_t nbits,
        double limit) {
    std::vector<uint32_t> keys(nbits, 0xffffffff);
    for (size_t i = 0; i < components.size(); i++) {
        int exponent;
        const double mantissa = std::frexp(double(weights[i]), &exponent);
        // the number of floats below the weight, if floats of all sizes had 24
        // bits
        const double weight =
                std::ldexp(double(exponent + 149) + 2 * mantissa - 1, 23);
        const uint32_t k = components[i], hash_a = mixed(k + seed_a),
                       start_b = stirred(k * 0x9e3779b1 + seed_b, 0x2c1b3c6d) *
                0x297a2d39,
                       hash_b = start_b ^ start_b >> 16;
        for (int f = 0; f < 6; f++) {
            const Family& family = families[f];
            const int levels = 1 << family.log_levels;
            for (int group = 0; std::ldexp(group * levels, 23) < weight;
                 group++) {
                const double width = std::ldexp(
                        1.0, std::max((group + 1) * levels - 1, 1) - 150);
                const uint32_t salt = 1 + 2 * (f * num_levels + group);
                for (int q = f == 0 ? 1 : 0;
                     (f == 0 ? q : family.begin) < limit * width && q * f == 0;
                     q++) {
                    const uint32_t a = hash_a + mixed(salt) + q * 0x9e3779b9u,
                                   b = hash_b + mixed(salt + 1) +
                            q * 0x85ebca6bu;
                    const double uniform =
                            stirred(a, 0x7feb352d) * 0x846ca68bu * 0x1p-32;
                    double probability = std::exp(-family.mean),
                           sum = probability;
                    for (uint32_t n = 0; uniform > sum - 0x1p-32 && n < 13;
                         n++) {
                        const uint32_t x =
                                stirred(a + n * 0xc2b2ae35, 0x7feb352d);
                        const uint32_t y =
                                stirred(b + n * 0x27d4eb2f, 0x2c1b3c6d);
                        const uint32_t random = y * 0x297a2d39;
                        const double fraction =
                                ((random >> 10 & 0x1fffff) | 1) * 0x1p-21;
                        const float rank =
                                float((f == 0 ? q : family.begin) +
                                      family.width * fraction);
                        const int level = group * levels +
                                (levels > 1 ? x >> (32 - family.log_levels)
                                            : 0);
                        probability *= family.mean / (n + 1);
                        sum += probability;
                        if (std::ldexp(level, 23) + (y * 0x9e3779b1 >> 9) >=
                            weight) {
                            continue;
                        }
                        uint32_t& key =
                                keys[((x * 0x846ca68bu & 0xffff) * nbits) >>
                                     16];
                        key = std::min(
                                key,
                                ((std::bit_cast<uint32_t>(rank) +
                                  (uint32_t(277 - std::max(level, 1)) << 23)) &
                                 ~1u) | random >> 31);
                    }
                    if (f > 0) {
                        break;
                    }
                }
            }
        }
    }
    return keys;
}

TEST(ConsistentSampling, SamplesHaveTheLeastRankOfAllPointsOnEveryTarget) {
    for (const auto& [d, nbits] : {std::pair{1, 8}, {7, 40}, {60, 136}}) {
        const auto x = histograms(d, 3);
        for (size_t i = 0; i < x.size() / d; i++) {
            SCOPED_TRACE(i);
            std::vector<int32_t> components;
            Floats weights;
            double sum = 0;
            for (int k = 0; k < d; k++) {
                if (x[i * d + k] > 0) {
                    components.push_back(3 * k + 1);
                    weights.push_back(x[i * d + k]);
                    sum += double(x[i * d + k]);
                }
            }
            if (components.empty()) {
                continue;
            }
            const auto expected = samples_of_all_cells(
                    components,
                    weights,
                    12,
                    34,
                    nbits,
                    (std::log(nbits) + 9) * nbits / sum);
            std::vector<uint32_t> work, keys(nbits);
            for (int64_t t : targets()) {
                SCOPED_TRACE(hwy::TargetName(t));
                const Target target(t);
                simd::weighted_samples(
                        components.size(),
                        components.data(),
                        weights.data(),
                        12,
                        34,
                        nbits,
                        keys.data(),
                        work);
                EXPECT_EQ(keys, expected);
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

/// Checks the distances of all pairs of a few vectors. With 2^18 bits, errors
/// of the kernel value above 0.013 have a probability below 1e-8.
void expect_distances(
        const Floats& x,
        size_t d,
        uint64_t seed,
        int nbits = 1 << 18) {
    const double bound = std::sqrt(std::log(2 / 1e-8) / (2.0 * nbits));
    const ConsistentSamplingHash hash(int(d), nbits, seed);
    const Bytes codes = codes_of(hash, x);
    for (size_t i = 0; i < x.size() / d; i++) {
        for (size_t j = 0; j < i; j++) {
            const double value = jaccard(&x[i * d], &x[j * d], d);
            const int distance = hamming(
                    &codes[i * nbits / 8], &codes[j * nbits / 8], nbits / 8);
            EXPECT_NEAR(double(distance) / nbits, (1 - value) / 2, bound)
                    << "vectors " << i << ", " << j;
        }
    }
}

TEST(ConsistentSampling, DistancesAreUnbiased) {
    // two vectors without common components, a sum of both, and multiples
    const size_t d = 40;
    for (int kind = 0; kind < 3; kind++) {
        SCOPED_TRACE(kind);
        Floats x = uniform_vectors(1, d, 5 + kind);
        for (size_t k = 0; k < d; k++) {
            x[k] = kind == 0    ? 1
                    : kind == 1 ? std::floor(1 + 0.5f / (x[k] + 0.05f))
                                : std::exp(10 * x[k]);
        }
        x.resize(6 * d);
        for (size_t k = 0; k < d; k++) {
            x[d + k] = k % 2 == 0 ? x[k] : 0;
            x[2 * d + k] = k % 2 == 1 ? x[k] : 0;
            x[3 * d + k] = 2 * x[k];
            x[4 * d + k] = x[k] * 1.1f;
            x[5 * d + k] = k % 3 == 0 ? 3 * x[k] : x[k] / 5;
        }
        // the bound is 0.006 of the kernel value
        expect_distances(x, d, 100 + kind, 1 << 20);
    }
}

TEST(ConsistentSampling, OneComponent) {
    expect_distances({1, 1.5f, 2, 0.99f, 8, 1.0000001f, 5.5f}, 1, 7);
    // J is 0 or 1 / 2
    expect_distances({1, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 1}, 3, 8);
}

TEST(ConsistentSampling, WeightsOfAnySize) {
    for (float scale : {1e-37f, 1e-30f, 1e30f, 1e36f}) {
        SCOPED_TRACE(scale);
        Floats x{1, 2, 3, 4, 3, 2, 2, 0, 1, 9, 0, 3};
        for (float& v : x) {
            v *= scale;
        }
        expect_distances(x, 4, 21);
    }
    // the smallest floats, and sizes that are far apart
    expect_distances({3e-45f, 5e-44f, 4e-45f, 2e-44f, 2e-38f, 1e-38f}, 2, 22);
    expect_distances(
            {1e37f, 1e-37f, 1e36f, 1e-37f, 0, 1e-37f, 0, 2e-37f}, 2, 23);
}

TEST(ConsistentSampling, ManyComponents) {
    const size_t d = 100000;
    const int nbits = 8192;
    Floats x = uniform_vectors(3, d, 2);
    for (size_t k = 0; k < d; k++) {
        x[d + k] = k % 4 == 0 ? x[k] : 0;
        x[2 * d + k] = x[k] * (k % 2 == 0 ? 1.5f : 0.5f);
    }
    const ConsistentSamplingHash hash(int(d), nbits);
    const Bytes codes = codes_of(hash, x);
    const double bound = std::sqrt(std::log(2 / 1e-8) / (2.0 * nbits));
    for (size_t i = 1; i < 3; i++) {
        EXPECT_NEAR(
                double(hamming(
                        codes.data(), &codes[i * nbits / 8], nbits / 8)) /
                        nbits,
                (1 - jaccard(x.data(), &x[i * d], d)) / 2,
                bound);
    }
}

// The distance of n independent bits has variance n p (1 - p). Its mean over
// many seeds has a standard deviation of about sqrt(2 / seeds).
TEST(ConsistentSampling, BitsAreIndependent) {
    const int seeds = 8192, nbits = 64;
    const Floats x{1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0,
                   3, 2, 1, 1, 0, 0, 0, 0, 1, 2, 3, 1, 0, 0, 0, 1};
    double squares[2] = {};
    for (int seed = 0; seed < seeds; seed++) {
        const Bytes codes = codes_of(ConsistentSamplingHash(8, nbits, seed), x);
        for (size_t pair = 0; pair < 2; pair++) {
            const double p =
                    (1 - jaccard(&x[pair * 16], &x[pair * 16 + 8], 8)) / 2;
            const int distance =
                    hamming(&codes[pair * 16], &codes[pair * 16 + 8], 8);
            const double deviation = distance - nbits * p;
            squares[pair] += deviation * deviation / (nbits * p * (1 - p));
        }
    }
    for (double square : squares) {
        EXPECT_NEAR(square / seeds, 1, 6 * std::sqrt(2.0 / seeds));
    }
}

TEST(ConsistentSampling, SparseVectorsOfTheLargestDimension) {
    const int d = std::numeric_limits<int32_t>::max();
    const ConsistentSamplingHash hash(d, 4096);
    const std::vector<int64_t> indptr{0, 4, 8, 8, 8, 11};
    const std::vector<int32_t> indices{
            0, 5, 70000, d - 1, 0, 5, 70001, d - 1, 70000, d - 1, 1};
    const Floats values{1, 2, 1, 1, 1, 1, 1, 2, 0.5f, 0.25f, 8};
    Bytes codes(5 * hash.code_size());
    hash.encode_sparse(
            {5, d, indptr.data(), indices.data(), values.data()}, codes.data());
    const auto distance = [&](size_t i, size_t j) {
        return double(
                       hamming(&codes[i * hash.code_size()],
                               &codes[j * hash.code_size()],
                               hash.code_size())) /
                4096;
    };
    const double bound = std::sqrt(std::log(2 / 1e-8) / (2.0 * 4096));
    EXPECT_NEAR(distance(0, 1), (1 - 3.0 / 7) / 2, bound);
    EXPECT_NEAR(distance(0, 4), (1 - 0.75 / 13) / 2, bound);
    EXPECT_NEAR(distance(0, 2), 0.5, bound); // zeros have a code of their own
    EXPECT_EQ(distance(2, 3), 0);
}

TEST(ConsistentSampling, SparseVectorsHaveTheCodesOfDenseOnes) {
    for (int d : {1, 5, 333}) {
        const ConsistentSamplingHash hash(d, 5000, 3);
        const Floats x = histograms(d, 4);
        const size_t n = x.size() / d;
        std::vector<int64_t> indptr{0};
        std::vector<int32_t> indices;
        Floats values;
        for (size_t i = 0; i < n; i++) {
            for (int k = d; k-- > 0;) { // in any order
                if (x[i * d + k] != 0) {
                    indices.push_back(k);
                    values.push_back(x[i * d + k]);
                }
            }
            indptr.push_back(int64_t(indices.size()));
        }
        Bytes codes(n * hash.code_size());
        hash.encode_sparse(
                {idx_t(n), d, indptr.data(), indices.data(), values.data()},
                codes.data());
        const Bytes dense = codes_of(hash, x);
        EXPECT_EQ(codes, dense);
        for (int64_t t : targets()) {
            SCOPED_TRACE(hwy::TargetName(t));
            const Target target(t);
            EXPECT_EQ(codes_of(hash, x), dense);
        }
    }
}

} // namespace
