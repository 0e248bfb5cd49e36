// SPDX-License-Identifier: MIT
// Spectral hashing (SpectralHash, SH): modes, ranges and bits.

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>

#include <faiss_ext/hashes/SpectralHash.h>
#include <faiss_ext/indexes/IndexRefineKernel.h>
#include <faiss_ext/io/index_factory.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

SpectralHash trained(int nbits, int d, const Floats& x) {
    SpectralHash hash(d, nbits);
    hash.train(x.size() / d, x.data());
    return hash;
}

/// Returns all corners of a box around `center` whose principal directions are
/// the axes.
Floats corners(const Floats& sides, const Floats& center) {
    const size_t d = sides.size();
    Floats x;
    for (size_t i = 0; i < size_t(1) << d; i++) {
        for (size_t k = 0; k < d; k++) {
            x.push_back(center[k] + (float(i >> k & 1) - 0.5f) * sides[k]);
        }
    }
    return x;
}

/// Returns (component, mode) of each bit.
std::vector<std::pair<int, int>> modes_of(const SpectralHash& hash) {
    std::vector<std::pair<int, int>> modes;
    for (int j = 0; j < hash.nbits; j++) {
        modes.emplace_back(hash.component[j], hash.mode[j]);
    }
    return modes;
}

/// Returns vectors of independent components with decreasing deviation.
Floats slanted(size_t n, size_t d, uint64_t seed) {
    Floats x = normal_vectors(n, d, seed);
    for (size_t i = 0; i < x.size(); i++) {
        x[i] *= 1 / float(1 + i % d);
    }
    return x;
}

} // namespace

// Frequencies by hand: 1/8, 2/8 = 1/4, 3/8, 4/8 = 2/4, ...; equal ones are in
// the order of the directions. The third side is short, the fourth has length
// 0.
TEST(SpectralHash, TakesTheModesOfLowestFrequency) {
    const Floats x = corners({4, 8, 0.5, 0}, {3, -2, 1, 5});
    const SpectralHash hash = trained(16, 4, x);
    EXPECT_EQ(hash.projection->d_out, 2);
    EXPECT_EQ(hash.projection->matrix(), (Floats{0, 1, 0, 0, 1, 0, 0, 0}));
    EXPECT_EQ(hash.lowest, (Floats{-6, 1}));
    EXPECT_EQ(hash.highest, (Floats{2, 5}));
    const std::vector<std::pair<int, int>> expected = {
            {0, 1},
            {0, 2},
            {1, 1},
            {0, 3},
            {0, 4},
            {1, 2},
            {0, 5},
            {0, 6},
            {1, 3},
            {0, 7},
            {0, 8},
            {1, 4},
            {0, 9},
            {0, 10},
            {1, 5},
            {0, 11}};
    EXPECT_EQ(modes_of(hash), expected);
    // the first mode of the third side follows equal ones of the other sides
    const SpectralHash longer = trained(32, 4, x);
    const auto modes = modes_of(longer);
    EXPECT_EQ(longer.projection->d_out, 3);
    EXPECT_EQ(std::count(modes.begin(), modes.end(), std::pair(2, 1)), 1);
    EXPECT_EQ(modes[24], std::pair(2, 1));
}

// Margins are sin(pi / 2 + omega (v . x - a)), even far beyond the range. The
// error of a phase comes from the projection and three roundings; the error of
// the sine is 2e-7.
TEST(SpectralHash, MarginsAreSines) {
    for (const auto& [d, nbits] :
         {std::pair<int, int>{1, 8}, {3, 64}, {40, 32}, {70, 136}}) {
        const SpectralHash hash = trained(nbits, d, slanted(500, d, 1));
        Floats q = slanted(60, d, 2);
        for (size_t i = q.size() / 2; i < q.size(); i++) {
            q[i] *= 50;
        }
        const Floats y = applied(hash, q), A = hash.projection->matrix();
        for (size_t i = 0; i < 60; i++) {
            for (int j = 0; j < nbits; j++) {
                const int c = hash.component[j];
                const float *v = &A[size_t(c) * d], *x = &q[i * d];
                const double a = hash.lowest[c], b = hash.highest[c];
                const double omega = hash.mode[j] * pi / (b - a);
                const double t = dot_product(v, x, d) - a;
                double size = 0;
                for (int k = 0; k < d; k++) {
                    size += std::abs(double(v[k]) * x[k]);
                }
                const double error = 2e-5 * size + 3 * float_unit * std::abs(t);
                ASSERT_NEAR(
                        y[i * nbits + j],
                        std::sin(pi / 2 + omega * t),
                        omega * error + 3e-7);
            }
        }
    }
}

// More vectors than are used for the directions: all are inside the ranges, and
// each end is reached.
TEST(SpectralHash, RangesAreThoseOfAllVectors) {
    const int d = 6, n = 30000;
    const Floats x = slanted(n, d, 3);
    const SpectralHash hash = trained(64, d, x);
    const size_t used = hash.projection->d_out;
    EXPECT_EQ(used, hash.lowest.size());
    const Floats y = applied(*hash.projection, x);
    for (size_t c = 0; c < used; c++) {
        float low = y[c], high = y[c];
        for (size_t i = 0; i < n; i++) {
            low = std::min(low, y[i * used + c]);
            high = std::max(high, y[i * used + c]);
        }
        EXPECT_EQ(hash.lowest[c], low);
        EXPECT_EQ(hash.highest[c], high);
    }
}

// The seed draws the sample. For a small training set the sample is the whole
// set, up to the order of its sums.
TEST(SpectralHash, SeedsChooseTheSample) {
    const int d = 4, n = 20000;
    const Floats x = slanted(n, d, 5);
    std::set<Floats> found;
    for (int64_t seed : {int64_t(0), int64_t(1), int64_t(1) << 32, INT64_MAX}) {
        SpectralHash hash(d, 32, seed);
        hash.train(n, x.data());
        found.insert(hash.projection->matrix());
    }
    EXPECT_EQ(found.size(), 4);
}

TEST(SpectralHash, DoesNotDependOnThreadsAndBatches) {
    const int d = 20, n = 20000;
    const Floats x = slanted(n, d, 7);
    const SpectralHash hash = trained(128, d, x);
    const Floats q = rows(x, d, 0, 700), y = applied(hash, q);
    for (idx_t i = 0; i < 700; i++) {
        const Floats one = applied(hash, rows(q, d, i, i + 1));
        ASSERT_TRUE(same_bits(one, rows(y, 128, i, i + 1)));
    }
    const Threads threads(3);
    trained(128, d, x).check_identical(hash);
    EXPECT_TRUE(same_bits(applied(hash, q), y));
}

// Powers of two do not change rounding.
TEST(SpectralHash, ScaleDoesNotMatter) {
    const Floats x = slanted(300, 12, 9), q = slanted(40, 12, 10);
    const auto codes = codes_of(trained(64, 12, x), q);
    for (float factor : {0x1p-90f, 0x1p-20f, 0x1p60f, 0x1p120f}) {
        const SpectralHash hash = trained(64, 12, scaled(x, factor));
        EXPECT_EQ(codes_of(hash, scaled(q, factor)), codes) << factor;
    }
}

TEST(SpectralHash, FarVectorsHaveFiniteMargins) {
    const SpectralHash hash = trained(64, 5, slanted(300, 5, 11));
    for (float far : {1e10f, -1e30f, 3.4e38f, -3.4e38f}) {
        for (float v : applied(hash, Floats(5, far))) {
            EXPECT_LE(std::abs(v), 1);
        }
    }
}

TEST(SpectralHash, RefusesWhatHasNoRange) {
    const auto error = [](int d, const Floats& x) {
        return error_of([&] { trained(16, d, x); });
    };
    EXPECT_NE(error(3, {}).find("0 vectors"), std::string::npos);
    EXPECT_NE(error(3, {1, 2, 3}).find("1 vectors"), std::string::npos);
    EXPECT_NE(error(3, Floats(30, 0.1f)).find("the same"), std::string::npos);
    EXPECT_NE(error(2, Floats(8)).find("the same"), std::string::npos);
    const Floats wide = {3e38f, 3e38f, -3e38f, -3e38f};
    EXPECT_NE(error(2, wide).find("overflow"), std::string::npos);
    EXPECT_NE(error(9000, Floats(18000)).find("8192"), std::string::npos);
    EXPECT_EQ(error(3, {1, 2, 3, 1, 2, 4}), ""); // two are enough
    EXPECT_TRUE(throws(
            [] { applied(SpectralHash(4, 16), Floats(4)); }, "not trained"));
}

// Strings of FAISS contain `SH`, too.
TEST(SpectralHash, LeavesStringsOfFaissAlone) {
    for (const char* text :
         {"IVF4,PCA8,SH1.2g", "IVF4,ITQ8,SH8", "IVF4,PCAR8,SH"}) {
        const auto index = index_factory(16, text);
        EXPECT_EQ(
                std::string(typeid(*index).name()).find("SpectralHash") ==
                        std::string::npos,
                false)
                << text;
        const auto refined =
                index_factory(16, std::string(text) + ",Refine(KFlat(linear))");
        const auto& refine = dynamic_cast<IndexRefineKernel&>(*refined);
        EXPECT_EQ(typeid(*refine.base_index), typeid(*index)) << text;
    }
    EXPECT_TRUE(
            throws([] { index_factory(16, "IVF4,PCA8,SH64,BFlat"); },
                   "inside its cells"));
    EXPECT_TRUE(throws([] { index_factory(16, "SH64"); }, "binary index"));
    EXPECT_TRUE(throws([] { index_factory(16, "PCA8,SH64"); }, "binary index"));
}
