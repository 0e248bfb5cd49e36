// SPDX-License-Identifier: MIT
// Kernels of bits, and IndexBinaryFlatKernel with each of them, against counts
// of single bits.

#include <faiss_ext/kernels/BitKernel.h>

#include <cmath>
#include <map>
#include <random>

#include <faiss_ext/indexes/IndexBinaryFlatKernel.h>
#include <faiss_ext/io/index_factory.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

using Codes = std::vector<uint8_t>;

/// The value of a kernel, by its definition.
long double value_of(
        const std::string& kernel,
        long double c,
        long double x,
        long double y,
        long double d) {
    const auto divided = [](long double a, long double b) {
        return b > 0 ? a / b : 1.0L;
    };
    if (kernel == "jaccard") {
        return divided(c, x + y - c);
    }
    if (kernel == "dice") {
        return divided(2 * c, x + y);
    }
    if (kernel == "cosine") {
        return x * y > 0 ? c / std::sqrt(x * y) : 0;
    }
    if (kernel == "russellrao") {
        return c / d;
    }
    if (kernel == "hamming") {
        return (d - (x + y - 2 * c)) / d;
    }
    std::map<std::string, std::pair<long double, long double>> weights = {
            {"tversky(alpha=0.5,beta=0.5)", {0.5L, 0.5L}},
            {"tversky(alpha=1,beta=0)", {1, 0}},
            {"tversky(alpha=0,beta=1)", {0, 1}},
            {"tversky(alpha=0,beta=0)", {0, 0}},
            {"tversky(alpha=2,beta=0.25)", {2, 0.25L}},
    };
    const auto [alpha, beta] = weights.at(kernel);
    return divided(c, c + alpha * (x - c) + beta * (y - c));
}

bool has(const uint8_t* code, int bit) {
    return code[bit / 8] >> bit % 8 & 1;
}

long double value_of(
        const std::string& kernel,
        const uint8_t* x,
        const uint8_t* y,
        int d) {
    int common = 0, of_x = 0, of_y = 0;
    for (int i = 0; i < d; i++) {
        common += has(x, i) && has(y, i);
        of_x += has(x, i);
        of_y += has(y, i);
    }
    return value_of(kernel, common, of_x, of_y, d);
}

/// Codes with few and with many ones, some of them near others, some empty or
/// full.
Codes random_codes(size_t n, int d, uint64_t seed) {
    std::mt19937_64 rng(seed);
    const size_t size = d / 8;
    Codes codes(n * size);
    std::uniform_real_distribution<double> uniform;
    for (size_t i = 0; i < n; i++) {
        uint8_t* code = &codes[i * size];
        if (i % 2 == 1) {
            std::copy_n(&codes[rng() % i * size], size, code);
        }
        const double share = i % 2 == 1 ? 0.02
                : rng() % 20 == 0       ? double(rng() % 2)
                                        : std::pow(uniform(rng), 3);
        for (int b = 0; b < d; b++) {
            code[b / 8] ^= uint8_t((uniform(rng) < share) << b % 8);
        }
    }
    return codes;
}

const auto all_kernels = testing::Values(
        "jaccard",
        "dice",
        "cosine",
        "russellrao",
        "hamming",
        "tversky(alpha=0.5,beta=0.5)",
        "tversky(alpha=1,beta=0)",
        "tversky(alpha=0,beta=1)",
        "tversky(alpha=0,beta=0)",
        "tversky(alpha=2,beta=0.25)");

struct BitKernels : testing::TestWithParam<const char*> {};

} // namespace

TEST_P(BitKernels, FollowTheirDefinition) {
    const auto kernel = bit_kernel_factory(GetParam());
    constexpr int d = 24;
    for (int x = 0; x <= d; x++) {
        for (int y = 0; y <= d; y++) {
            for (int c = std::max(0, x + y - d); c <= std::min(x, y); c++) {
                EXPECT_NEAR(
                        kernel->distance({d, x, y, c}),
                        double(1 - value_of(GetParam(), c, x, y, d)),
                        1e-15);
            }
        }
    }
}

// The two rules by which a search skips codes.
TEST_P(BitKernels, AreMonotone) {
    const auto kernel = bit_kernel_factory(GetParam());
    constexpr int d = 40;
    for (int x = 0; x <= d; x++) {
        for (int y = 0; y <= d; y++) {
            for (int c = 1; c <= std::min(x, y); c++) {
                EXPECT_LE(
                        kernel->distance({d, x, y, c}),
                        kernel->distance({d, x, y, c - 1}));
            }
            const auto least = [&](int ones) {
                return kernel->distance({d, x, ones, std::min(x, ones)});
            };
            if (y < d && y >= x) {
                EXPECT_LE(least(y), least(y + 1)) << x << " " << y;
            } else if (y < d) {
                EXPECT_GE(least(y), least(y + 1)) << x << " " << y;
            }
        }
    }
}

TEST_P(BitKernels, CommonBitsOfADistance) {
    const auto kernel = bit_kernel_factory(GetParam());
    constexpr int d = 40;
    for (int x = 1; x <= d; x++) {
        for (int y = 1; y <= d; y++) {
            for (int c = 1; c < std::min(x, y); c++) {
                const double distance = kernel->distance({d, x, y, c});
                if (distance > 0) { // otherwise several have the same
                    EXPECT_NEAR(
                            kernel->common_bits(distance, {d, x, y, 0}),
                            c,
                            1e-9);
                }
            }
        }
    }
}

TEST_P(BitKernels, Search) {
    // from 512 on, codes are folded
    for (const int d : {8, 72, 512, 1024, 2048, 2240}) {
        const size_t size = d / 8, n = 600, nq = 40;
        const Codes codes = random_codes(n, d, 1);
        const Codes queries = random_codes(nq, d, 2);
        const auto index = index_binary_factory(
                d, "BKFlat(" + std::string(GetParam()) + ")");
        index->add(n, codes.data());
        constexpr idx_t k = 12;
        std::vector<int32_t> distances(nq * k);
        std::vector<idx_t> labels(nq * k);
        index->search(nq, queries.data(), k, distances.data(), labels.data());
        for (size_t q = 0; q < nq; q++) {
            const uint8_t* query = &queries[q * size];
            std::vector<double> exact(n);
            for (size_t i = 0; i < n; i++) {
                const long double value =
                        value_of(GetParam(), query, &codes[i * size], d);
                exact[i] = std::round(double(std::ldexp(1 - value, 30)));
            }
            std::vector<double> nearest = exact;
            std::sort(nearest.begin(), nearest.end());
            for (idx_t j = 0; j < k; j++) {
                const size_t at = q * k + j;
                // the last digit is rounded
                EXPECT_NEAR(distances[at], nearest[j], 1);
                EXPECT_NEAR(distances[at], exact[labels[at]], 1);
                EXPECT_TRUE(
                        j == 0 ||
                        std::pair(distances[at - 1], labels[at - 1]) <
                                std::pair(distances[at], labels[at]));
            }
            // one at a time
            std::vector<int32_t> alone(k);
            std::vector<idx_t> ids(k);
            index->search(1, query, k, alone.data(), ids.data());
            EXPECT_TRUE(
                    std::equal(ids.begin(), ids.end(), labels.begin() + q * k));
            EXPECT_TRUE(std::equal(
                    alone.begin(), alone.end(), distances.begin() + q * k));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, BitKernels, all_kernels);

TEST(BitKernel, Strings) {
    const auto kernel = bit_kernel_factory("tversky(beta=0,alpha=1)");
    EXPECT_EQ(kernel->description(), "tversky(alpha=1,beta=0)");
    EXPECT_EQ(bit_kernel_factory("dice")->clone()->description(), "dice");
    EXPECT_THROW(bit_kernel_factory("chi2"), faiss::FaissException);
    EXPECT_THROW(
            bit_kernel_factory("tversky(alpha=-1)"), faiss::FaissException);
    EXPECT_THROW(TverskyBitKernel(1, NAN), faiss::FaissException);
}

// Searches with other instances compare with codes whose folded forms are equal
// or far nearer than they are themselves.
TEST(FoldedCodes, LoseNothing) {
    constexpr int d = 2048, n = 3000;
    constexpr size_t size = d / 8;
    std::mt19937_64 rng(3);
    Codes codes(n * size);
    for (int i = 0; i < n; i++) {
        // pairs of bits that are folded onto each other cancel out
        for (int pair = 0; pair < 30; pair++) {
            const int bit = int(rng() % 256);
            for (const int at : {bit, bit + 256 * int(1 + rng() % 7)}) {
                if (rng() % 4 != 0) {
                    codes[i * size + at / 8] |= uint8_t(1 << at % 8);
                }
            }
        }
    }
    const auto index = index_binary_factory(d, "BKFlat(jaccard)");
    index->add(n, codes.data());
    for (int q = 0; q < 50; q++) {
        const uint8_t* query = &codes[q * size];
        std::vector<std::pair<double, idx_t>> expected;
        for (idx_t i = 0; i < n; i++) {
            expected.emplace_back(
                    double(-value_of("jaccard", query, &codes[i * size], d)),
                    i);
        }
        std::sort(expected.begin(), expected.end());
        constexpr idx_t k = 20;
        std::vector<int32_t> distances(k);
        std::vector<idx_t> labels(k);
        index->search(1, query, k, distances.data(), labels.data());
        for (idx_t j = 0; j < k; j++) {
            EXPECT_NEAR(
                    IndexBinaryFlatKernel::kernel_value(distances[j]),
                    -expected[j].first,
                    1e-9);
        }
        EXPECT_EQ(labels[0], q);
    }
}
