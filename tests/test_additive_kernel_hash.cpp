// SPDX-License-Identifier: MIT
// AdditiveKernelHash (AHK) against the theory of additive kernels. Tests shared
// with other schemes are in test_hyperplane_hashes.cpp, tests of the map in
// test_homogeneous_kernel_map.cpp.

#include <faiss_ext/hashes/AdditiveKernelHash.h>

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr size_t d = 20;

struct Case {
    std::string kernel;
    int order;

    auto make(int nbits, const std::string& more) const {
        const std::string bits = std::to_string(nbits);
        const std::string terms = ",order=" + std::to_string(order);
        return hash_as<AdditiveKernelHash>(
                d, "AHK" + bits + "(" + kernel + terms + more + ")");
    }
};

void PrintTo(const Case& c, std::ostream* out) {
    *out << c.kernel << " of order " << c.order;
}

/// Returns histograms with many different angles between them.
std::vector<float> test_histograms() {
    std::vector<float> x = clustered_histograms(7, d, 7, 30, 5);
    for (float share : {0.001f, 0.01f, 0.05f, 0.2f, 0.5f, 0.9f}) {
        for (size_t k = 0; k < d; k++) { // sums to 1 up to rounding
            x.push_back((1 - share) * x[k] + share * x[3 * d + k]);
        }
    }
    return x;
}

struct AdditiveKernelHashes : testing::TestWithParam<Case> {
    const Case& c = GetParam();

    /// of vector x
    static size_t doubtful(const AdditiveKernelHash& hash, const float* x) {
        const auto phi = applied(hash.map, std::vector<float>(x, x + d));
        return ExactMargins(hash, hash.projection->matrix(), phi.data())
                .doubtful();
    }
};

} // namespace

// Two vectors differ in a bit with the probability of the angle of their maps
// (test_hyperplane_hashes.cpp). This is near the kernel's: with |K - Psi . Psi|
// <= delta the cosine is between (K - delta) and (K + delta) over |Psi|^2. It
// is also between the bounds from the distortion of the map; masses and the
// map's components are rounded.
TEST_P(AdditiveKernelHashes, HammingTellsTheKernel) {
    const int nbits = 8192;
    const auto hash = c.make(nbits, ",seed=7,proj=dense");
    const std::vector<float> x = test_histograms();
    const std::vector<float> phi = applied(hash->map, x);
    const size_t n = x.size() / d, size = hash->map.d_out;
    const std::vector<uint8_t> codes = codes_of(*hash, x);
    const std::vector<float> k = kernel_block(*hash->map.kernel, x, x, d);
    const double squared = hash->map.squared_norm(); // masses are 1
    double delta = std::abs(1 - squared) + d * float_unit;
    std::vector<size_t> unsure;
    for (size_t i = 0; i < n; i++) {
        unsure.push_back(doubtful(*hash, &x[i * d]));
        for (size_t j = 0; j < i; j++) {
            const double mapped =
                    dot_product(&phi[i * size], &phi[j * size], size);
            // the map itself has an error of a few units
            delta = std::max(delta, std::abs(k[i * n + j] - mapped) + 1e-5);
        }
    }
    EXPECT_LT(delta, 0.2);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            const double u = k[i * n + j], bits = unsure[i] + unsure[j];
            const size_t ham = hamming(codes, nbits / 8, i, j);
            const auto is_between = [&](double low, double high) {
                EXPECT_TRUE(plausible(ham, nbits, low, high, bits))
                        << "k = " << u << ": " << ham << " bits";
            };
            is_between(
                    normalized_angle((u + delta) / squared),
                    normalized_angle((u - delta) / squared));
            const auto [least, most] = hash->hamming_bounds(u);
            is_between(least / nbits - 1e-5, most / nbits + 1e-5);
            // the cosine changes by at most pi times the error of the
            // normalised angle
            const double error = hoeffding(nbits) + bits / nbits;
            EXPECT_NEAR(hash->kernel_estimate(ham), u, 2 * delta + pi * error);
        }
    }
}

// Psi(c x) is sqrt(c) Psi(x) turned by the angles j L log c. The bits of x and
// c x differ with the normalised angle whose cosine is map_signature(log c) /
// squared_norm(). For Hellinger's kernel nothing turns.
TEST_P(AdditiveKernelHashes, ScaleTurnsTheMap) {
    const int nbits = 4096;
    const std::vector<float> x = clustered_histograms(1, d, 1, 30, 3);
    const auto hash = c.make(nbits, ",proj=dense");
    for (int power : {-20, -2, 4, 20}) {
        const std::vector<float> y = scaled(x, std::ldexp(1.0f, power));
        const std::vector<bool> differ = differing_bits(*hash, x, y);
        const auto ham = std::count(differ.begin(), differ.end(), true);
        if (c.kernel == "hellinger") {
            EXPECT_EQ(ham, 0); // powers of 4: exact
            continue;
        }
        const double p = normalized_angle(
                hash->map.map_signature(power * std::log(2.0)) /
                hash->map.squared_norm());
        const double bits = doubtful(*hash, &x[0]) + doubtful(*hash, &y[0]);
        EXPECT_TRUE(plausible(ham, nbits, p - 1e-5, p + 1e-5, bits))
                << power << ": " << ham << " bits, p = " << p;
    }
}

// norm=l1 removes a power of two exactly, whatever the thresholds. It removes
// other scales up to bits that rounding decides: margins are the map's, turned
// by a few units by the rounding of the sum.
TEST_P(AdditiveKernelHashes, NormL1TakesScaleOut) {
    const std::vector<float> x = clustered_histograms(8, d, 3, 30, 3);
    for (const std::string more : {"0", "1", "1,proj=dense"}) {
        const auto hash = c.make(1024, ",norm=l1,center=" + more);
        hash->train(8, x.data());
        for (float factor : {0x1p-80f, 2.0f, 0x1p90f}) {
            EXPECT_EQ(codes_of(*hash, scaled(x, factor)), codes_of(*hash, x));
        }
        const std::vector<float> margins = applied(*hash, x),
                                 others = applied(*hash, scaled(x, 3));
        for (size_t i = 0; i < margins.size(); i++) {
            ASSERT_NEAR(others[i], margins[i], 1e-3);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        Kernels,
        AdditiveKernelHashes,
        testing::ValuesIn(std::vector<Case>{
                {"chi2", 1},
                {"chi2", 3},
                {"js", 1},
                {"intersection", 10},
                {"hellinger", 0}}));

// Theorem 1: for any map with |K - Psi . Psi| <= delta and |Psi|^2 from 1 -
// delta to 1 the angle is between f and g. (g applies if u >= delta.) Our
// bounds are sharper.
TEST(Theory, BoundsOfThePaper) {
    for (const Case& c :
         {Case{"chi2", 1}, {"chi2", 3}, {"js", 1}, {"intersection", 10}}) {
        const auto hash = c.make(256, "");
        const double delta = hash->map.distortion();
        EXPECT_LE(hash->map.squared_norm(), 1 + 1e-7);
        for (double u = delta; u <= 1; u += 1.0 / 64) {
            const auto [lower, upper] = hash->hamming_bounds(u);
            const double v = (u + delta) / (1 - delta), w = u - delta;
            const double f = 0.5 - v / pi - 3 / (5 * pi) * v * v * v;
            const double g = 0.5 - w / pi - w * w * w / (6 * pi);
            EXPECT_GE(lower, 256 * f);
            EXPECT_LE(upper, 256 * g + 1e-4);
            EXPECT_LE(lower, hash->expected_hamming(u));
            EXPECT_GE(upper, hash->expected_hamming(u) - 1e-4);
        }
        EXPECT_GE(hash->hamming_bounds(0).second, 128);
    }
    // a hash that learns has no bounds
    const auto centred = Case{"chi2", 1}.make(256, ",center=1");
    EXPECT_EQ(centred->hamming_bounds(0.5), std::pair(0.0, 256.0));
}

TEST(Theory, EstimatesInvertExpectedDistances) {
    const std::vector<float> x = clustered_histograms(300, d, 3, 30, 1);
    for (const char* text : {"AHK256(chi2)", "AHK256(chi2,center=1)"}) {
        const auto hash = hash_as<AdditiveKernelHash>(d, text);
        hash->train(300, x.data());
        const double m = hash->mean_value, least = std::max(0.0, 2 * m - 1);
        EXPECT_TRUE(hash->center ? m > 0.1 && m < 0.99 : m == 0) << m;
        for (double k = 0; k <= 1; k += 1.0 / 32) {
            const double got = hash->expected_hamming(k);
            EXPECT_NEAR(got, 256 * normalized_angle((k - m) / (1 - m)), 1e-10);
            if (k > least) {
                EXPECT_NEAR(hash->kernel_estimate(got), k, 1e-7);
            }
        }
        EXPECT_EQ(hash->expected_hamming(1), 0);
        EXPECT_EQ(hash->kernel_estimate(0), 1);
        EXPECT_NEAR(hash->kernel_estimate(256), least, 1e-12);
        for (double bad : {-0.01, 1.01}) {
            EXPECT_TRUE(throws(
                    [&] { hash->expected_hamming(bad); }, "from 0 to 1"));
        }
    }
}

// mean_value is 1 or just below, and other vectors are expected to differ in
// half of the bits.
TEST(Center, EqualTrainingVectors) {
    const auto hash = hash_as<AdditiveKernelHash>(4, "AHK64(chi2,center=1)");
    hash->train(3, std::vector<float>(12, 0.25f).data());
    EXPECT_NEAR(hash->mean_value, 1, 6 * float_unit);
    EXPECT_EQ(hash->expected_hamming(1), 0);
    EXPECT_TRUE(std::isfinite(hash->expected_hamming(0.5)));
    EXPECT_GE(hash->expected_hamming(0.5), 32);
    EXPECT_NEAR(hash->kernel_estimate(10), 1, 12 * float_unit);
}

// One factor for all vectors turns all maps alike, so angles from the mean do
// not change. The errors of the map grow with the logarithm, to 1e-6 (1 + L 90)
// < 1e-4, and count twice. This holds even if |Psi|^2 is beyond the largest
// float.
TEST(Center, MeanOfVectorsOfAnySize) {
    const size_t n = 200, wide = 150;
    const std::vector<float> x = uniform_vectors(n, wide, 3, 1e-9, 1);
    double expected = NAN;
    for (int power : {0, -60, 20, 122}) {
        const auto hash =
                hash_as<AdditiveKernelHash>(wide, "AHK64(chi2,center=1)");
        hash->train(n, scaled(x, std::ldexp(1.0f, power)).data());
        for (float v : hash->threshold) {
            EXPECT_TRUE(std::isfinite(v));
        }
        expected = power == 0 ? hash->mean_value : expected;
        EXPECT_NEAR(hash->mean_value, expected, 5e-4) << power;
    }
}
