// SPDX-License-Identifier: MIT
// FrequencyMap and FrequencyHash: objects that files and callers may have
// damaged. The theory is tested in Python.

#include <faiss_ext/hashes/FrequencyHash.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/maps/FrequencyMap.h>
#include <faiss_ext/maps/RandomFourierMap.h>

#include <cmath>
#include <limits>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

const int d = 5, n = 24;
const Floats omega = normal_vectors(n, d, 1);

/// The frequencies of a dense projection.
Floats frequencies_of(const Projection& turns) {
    Floats all = turns.matrix();
    for (float& v : all) {
        v = float(2 * pi * v);
    }
    return all;
}

} // namespace

// A factor of 2 pi and back moves a float by one unit at most.
TEST(Frequencies, AreThoseOfTheKernelsOfTheLibrary) {
    const auto x = normal_vectors(200, d, 2);
    for (const double gamma : {0.01, 1.0}) {
        const LaplacianKernel kernel(gamma);
        const ShiftInvariantHash sik(d, 512, kernel, 7, proj_dense);
        const FrequencyHash hash(
                d, 512, frequencies_of(*sik.projection).data(), 7);
        EXPECT_EQ(hash.offset, sik.offset);
        EXPECT_EQ(hash.threshold, sik.threshold);
        const auto a = applied(hash, x), b = applied(sik, x);
        const auto A = sik.projection->matrix();
        for (size_t i = 0; i < a.size(); i++) {
            double absolute = 1;
            for (int k = 0; k < d; k++) {
                absolute += std::abs(
                        double(A[i % 512 * d + k]) * x[i / 512 * d + k]);
            }
            ASSERT_NEAR(a[i], b[i], 4 * d * float_unit * absolute);
        }
        const RandomFourierMap rff(d, 64, kernel, 7, proj_dense);
        const FrequencyMap map(d, 32, frequencies_of(*rff.projection).data());
        const auto z = applied(map, x), expected = applied(rff, x);
        ASSERT_EQ(z.size(), expected.size());
        const auto B = rff.projection->matrix();
        for (size_t i = 0; i < z.size(); i++) {
            double absolute = 1;
            for (int k = 0; k < d; k++) {
                absolute +=
                        std::abs(double(B[i % 32 * d + k]) * x[i / 64 * d + k]);
            }
            ASSERT_NEAR(z[i], expected[i], 32 * d * float_unit * absolute);
        }
    }
}

// The weights of SIK come from differences of the profile, with a step of 1e-4.
TEST(Frequencies, WeightsAreThoseOfAGaussianKernel) {
    const ShiftInvariantHash sik(d, 512, GaussianKernel(0.3), 7, proj_dense);
    const FrequencyHash hash(d, 512, frequencies_of(*sik.projection).data(), 7);
    const auto margins = applied(sik, normal_vectors(20, d, 2));
    Floats mine = margins, expected = margins;
    hash.query_weights(20, mine.data());
    sik.query_weights(20, expected.data());
    double largest = 0;
    for (size_t i = 0; i < mine.size(); i++) {
        largest = std::max<double>(largest, std::abs(expected[i]));
    }
    for (size_t i = 0; i < mine.size(); i++) {
        ASSERT_NEAR(mine[i], expected[i], 1e-3 * largest);
    }
}

TEST(Frequencies, Arguments) {
    Floats bad = omega;
    bad[2 * d + 3] = std::numeric_limits<float>::infinity();
    for (const std::string name : {"FrequencyMap", "FrequencyHash"}) {
        const auto make = [&](int dim, int rows, const float* from) {
            if (name == "FrequencyMap") {
                FrequencyMap(dim, rows, from);
            } else {
                FrequencyHash(dim, rows, from);
            }
        };
        expect_throws(
                {{[&] { make(0, n, omega.data()); }, "0 dimensions"},
                 {[&] { make(d, 0, omega.data()); }, "0 frequencies"},
                 {[&] { make(d, -1, omega.data()); }, "-1 frequencies"},
                 {[&] { make(1, (1 << 26) + 1, omega.data()); }, "67108864"},
                 {[&] { make(d, n, nullptr); }, "null"},
                 {[&] { make(d, n, bad.data()); },
                  name + ": component 3 of frequency 2 is inf"}});
    }
    EXPECT_TRUE(throws(
            [&] { FrequencyHash(d, n, omega.data(), -1); }, "seed is -1"));
}

// Members are public, and objects can be empty.
TEST(Frequencies, InconsistentObjects) {
    const auto x = normal_vectors(1, d, 3);
    Floats z(2 * n);
    Bytes code(n / 8);
    FrequencyMap map(d, n, omega.data()), empty_map;
    FrequencyHash hash(d, n, omega.data()), empty_hash;
    empty_map.d_in = empty_hash.d_in = d;
    const float zero[d] = {};
    for (const float* v : {x.data(), zero}) {
        expect_throws(
                {{[&] { empty_map.apply_noalloc(1, v, z.data()); },
                  "no frequencies"},
                 {[&] { empty_hash.encode(1, v, code.data()); },
                  "no frequencies"},
                 {[&] { empty_hash.kernel_value(v, v); }, "no frequencies"}});
    }
    EXPECT_TRUE(throws([&] { empty_map.restore(); }, "inconsistent"));
    EXPECT_TRUE(throws([&] { empty_hash.restore(); }, "inconsistent"));
    map.is_trained = hash.is_trained = false;
    EXPECT_TRUE(throws([&] { map.restore(); }, "inconsistent"));
    EXPECT_TRUE(throws([&] { hash.restore(); }, "needs no training"));
    map.is_trained = hash.is_trained = true;
    map.restore();
    hash.restore();
    map.d_in = hash.d_in = d - 1;
    EXPECT_TRUE(throws([&] { map.restore(); }, "inconsistent"));
    EXPECT_TRUE(throws([&] { hash.restore(); }, "inconsistent"));
}

// Both are assigned in place, and copies share nothing.
TEST(Frequencies, Assignment) {
    const auto x = normal_vectors(10, d, 4), others = normal_vectors(n, d, 5);
    FrequencyMap map(d, n, omega.data());
    FrequencyHash hash(d, n, omega.data(), 3);
    const FrequencyMap other_map(d, n, others.data());
    const FrequencyHash other_hash(d, n, others.data(), 4);
    const auto map_before = map.clone();
    const auto hash_before = hash.clone();
    const auto z = applied(map, x);
    const auto codes = codes_of(hash, x);
    map.assign(other_map);
    hash.assign(other_hash);
    EXPECT_EQ(applied(map, x), applied(other_map, x));
    EXPECT_EQ(codes_of(hash, x), codes_of(other_hash, x));
    EXPECT_NE(applied(map, x), z);
    EXPECT_EQ(applied(*map_before, x), z);
    EXPECT_EQ(codes_of(*hash_before, x), codes);
    EXPECT_TRUE(throws([&] { map.check_identical(*map_before); }, "differ"));
    EXPECT_TRUE(throws([&] { hash.check_identical(*hash_before); }, "differ"));
}
