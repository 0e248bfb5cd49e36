// SPDX-License-Identifier: MIT
// Structured projections: transforms under every instruction set, the
// distribution of the random directions, and the hashes that draw them.

#include <faiss_ext/projections/StructuredProjection.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <faiss_ext/hashes/AdditiveKernelHash.h>
#include <faiss_ext/hashes/HyperplaneHash.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/projections/DenseProjection.h>

#include "core/field_files.h"
#include "simd/hadamard.h"
#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

/// A vector for the transforms of order d, and their output.
struct RoundsCase {
    std::vector<float> x, signs;
    std::vector<double> exact;
    double length = 0;

    /** @param whole  components are small integers: all results and
     *               intermediate sums are below d^(3/2) |x| < 2^24
     */
    RoundsCase(size_t d, size_t d_x, bool whole)
            : x(normal_vectors(1, d_x, d + d_x)) {
        for (float v : normal_vectors(3, d, d)) {
            signs.push_back(v < 0 ? -1.0f : 1.0f);
        }
        const float most = d <= 256 ? 4 : 1;
        for (float& v : x) {
            v = whole ? std::clamp(std::round(v), -most, most) : v;
        }
        length = faiss_ext_test::length(x.data(), d_x);
        EXPECT_TRUE(!whole || std::pow(double(d), 1.5) * length < 0x1p24);
        std::vector<double> padded(x.begin(), x.end());
        padded.resize(d);
        exact = hadamard_rounds(signs.data(), padded);
    }
};

/// Powers of two of both signs; 1 at i = 8.
float power_of_two(size_t i) {
    return std::ldexp(i % 3 == 1 ? -1.0f : 1.0f, int(i) - 8);
}

/// Computes the outputs in unaligned memory. Memory after them stays unchanged,
/// and the content of `work` does not matter.
std::vector<float> outputs_of(
        const RoundsCase& c,
        const std::vector<float>& norms) {
    const size_t d = c.exact.size(), d_x = c.x.size(), d_y = norms.size();
    std::vector<float> work(d + 1, NAN), y(d_y + 20, 42);
    const float *x = c.x.data(), *signs = c.signs.data();
    float *w = work.data() + 1, *to = y.data() + 1;
    simd::hadamard_rounds(d_x, x, d, signs, d_y, norms.data(), w, to);
    EXPECT_EQ(y[0], 42);
    EXPECT_EQ(std::count(y.begin() + 1 + d_y, y.end(), 42), 19);
    return {y.begin() + 1, y.begin() + 1 + d_y};
}

/// Returns numbers from 1 to d, on both sides of the sizes of smaller
/// transforms; for the smallest orders, all numbers.
std::vector<size_t> numbers_of_outputs(size_t d) {
    std::vector<size_t> found;
    for (size_t d_y = 1; d_y <= d; d_y++) {
        const bool edge = std::has_single_bit(d_y) ||
                std::has_single_bit(d_y - 1) || std::has_single_bit(d_y + 1);
        if (d <= 32 || edge) {
            found.push_back(d_y);
        }
    }
    return found;
}

/// Makes a projection with rows of length 1.
StructuredProjection unit_projection(int d, int d_out, int64_t seed) {
    return StructuredProjection(
            d, d_out, seed, std::vector<double>(d_out, 1.0));
}

std::vector<float> unit_vector(size_t d, size_t k) {
    std::vector<float> x(d);
    x[k] = 1;
    return x;
}

const StructuredProjection& structured_of(const KernelHash& hash) {
    return projection_of<StructuredProjection>(hash);
}

/// Maurer and Pontil 2009, theorem 4: the mean of n independent values in [0,
/// 1] with sample variance V is off by more than sqrt(2 V l / n) + 7 l / (3 (n
/// - 1)) with probability at most 4 exp(-l).
double empirical_bernstein(const Moments& m) {
    const double l = std::log(4.0) - log_failure();
    return std::sqrt(2 * m.variance * l / m.n) + 7 * l / (3 * (m.n - 1));
}

// Integers, for which every order of additions is exact, with a power of two as
// the factor of each output. Real numbers are within the bound of rounds_error
// plus a unit for the factor. Every instruction set computes sums in the same
// order.
TEST(HadamardRounds, AreThoseOfTheDefinition) {
    const std::vector<double> last = {1, -1, -1, 1};
    EXPECT_EQ(hadamard_product({0, 0, 0, 1}), last);
    for (size_t d = 16; d <= 4096; d *= 2) {
        for (size_t i = 0; i < 10; i++) {
            const bool whole = i % 2;
            const size_t d_x = std::array{
                    size_t(1), size_t(3), d / 2 + 1, d - 1, d}[i / 2];
            const RoundsCase c(d, d_x, whole);
            for (size_t d_y : numbers_of_outputs(d)) {
                SCOPED_TRACE(
                        std::to_string(d_x) + " of " + std::to_string(d) +
                        " to " + std::to_string(d_y));
                std::vector<float> norms = normal_vectors(1, d_y, d_y), first;
                for (size_t j = 0; j < d_y && whole; j++) {
                    norms[j] = power_of_two(j % 16);
                }
                const double unit = float_unit * std::pow(double(d), 1.5);
                const double bound =
                        whole ? 0 : c.length * (rounds_error(d, d_y) + unit);
                for (int64_t target : targets()) {
                    const Target guard(target);
                    const std::vector<float> y = outputs_of(c, norms);
                    for (size_t j = 0; j < d_y; j++) {
                        const double norm = norms[j];
                        ASSERT_NEAR(
                                y[j], norm * c.exact[j], std::abs(norm) * bound)
                                << hwy::TargetName(target);
                    }
                    first = first.empty() ? y : first;
                    ASSERT_TRUE(same_bits(y, first));
                }
            }
        }
    }
}

// 16 vectors side by side, each the same times a power of two, which does not
// change rounding.
TEST(HadamardRounds, OfAPanel) {
    for (size_t d = 1; d <= 4096; d *= 2) {
        const size_t stride = d == 64 ? 16 : 19;
        for (bool whole : {true, false}) {
            const RoundsCase c(d, d, whole);
            const double bound = whole ? 0 : c.length * rounds_error(d, d);
            std::vector<float> side(16 * d), first;
            for (size_t i = 0; i < 16 * d; i++) {
                side[i] = c.x[i / 16] * power_of_two(i % 16);
            }
            const float *x = side.data(), *signs = c.signs.data();
            for (int64_t target : targets()) {
                SCOPED_TRACE(hwy::TargetName(target));
                const Target guard(target);
                std::vector<float> work(16 * d, NAN), y(stride * d, 42);
                simd::hadamard_rounds_of_panel(
                        d, signs, x, work.data(), y.data(), stride);
                for (size_t i = 0; i < y.size(); i++) {
                    const size_t k = i / stride, column = i % stride;
                    const float one = y[k * stride + 8];
                    ASSERT_NEAR(one, c.exact[k], bound) << d;
                    ASSERT_EQ(
                            y[i],
                            column < 16 ? power_of_two(column) * one : 42);
                }
                first = first.empty() ? y : first;
                ASSERT_TRUE(same_bits(y, first));
            }
        }
    }
}

TEST(StructuredProjection, OrderAndArguments) {
    for (auto [d, D] :
         {std::pair(1, 256), {256, 256}, {257, 512}, {1 << 30, 1 << 30}}) {
        EXPECT_EQ(StructuredProjection::order(d), D);
    }
    for (int d : {0, -1, (1 << 30) + 1}) {
        const std::string name = std::to_string(d);
        EXPECT_TRUE(throws([&] { StructuredProjection::order(d); }, name));
        EXPECT_TRUE(throws([&] { StructuredProjection(d, 0, 1, {}); }, name));
    }
    EXPECT_TRUE(
            throws([] { StructuredProjection(3, 2, 1, {1.0}); }, "1 ", "2 "));
    EXPECT_TRUE(throws([] { StructuredProjection(3, -1, 1, {}); }, "-1"));
    const StructuredProjection none(3, 0, 1, {});
    EXPECT_TRUE(none.matrix().empty() && applied(none, {1, 2, 3}).empty());
}

// Row j is |w_j| D^(-3/2) times row j mod D of the product of its transforms.
// Every D rows have their own signs and are orthogonal. The rounds give
// integers, and the product with the factor is rounded once. apply gives the
// product with the matrix up to rounding, and the same bits for every
// instruction set and in every batch.
TEST(StructuredProjection, MatrixAndProducts) {
    for (auto [d, d_out] :
         {std::pair<int, int>{1, 8}, {5, 600}, {256, 300}, {784, 1032}}) {
        SCOPED_TRACE(std::to_string(d) + " to " + std::to_string(d_out));
        const size_t D = StructuredProjection::order(d), n = 3;
        std::vector<double> lengths;
        for (int j = 0; j < d_out; j++) {
            lengths.push_back(1 + j / 7.0);
        }
        const StructuredProjection p(d, d_out, 8, lengths);
        ASSERT_EQ(p.signs.size(), 3 * D * ((d_out + D - 1) / D));
        ASSERT_EQ(p.norms.size(), size_t(d_out));
        const std::vector<float> A = p.matrix(), x = normal_vectors(n, d, d);
        ASSERT_EQ(A.size(), size_t(d) * d_out);
        for (int k = 0; k < d; k++) {
            std::vector<double> column;
            for (int j = 0; j < d_out; j++) {
                if (j % D == 0) {
                    std::vector<double> unit(D);
                    unit[k] = 1;
                    column = hadamard_rounds(&p.signs[3 * j], unit);
                }
                const float norm = float(lengths[j] * std::pow(D, -1.5));
                ASSERT_EQ(p.norms[j], norm);
                ASSERT_EQ(A[j * d + k], float(column[j % D] * norm));
            }
        }
        const std::vector<float> y = applied(p, x);
        for (size_t i = 0; i < n; i++) {
            const std::vector<float> one = rows(x, d, i, i + 1);
            const double of_x = length(one.data(), d);
            for (int j = 0; j < d_out; j++) {
                const double product = dot_product(&A[j * d], one.data(), d);
                const double bound = structured_error(p, j) * of_x;
                ASSERT_NEAR(y[i * d_out + j], product, bound);
            }
            for (int64_t target : targets()) {
                const Target guard(target);
                ASSERT_TRUE(
                        same_bits(applied(p, one), rows(y, d_out, i, i + 1)));
            }
        }
    }
}

// Both signs are equally frequent, and independent between positions, rounds
// and rotations.
TEST(StructuredProjection, SignsAreIndependent) {
    const size_t D = 256;
    const StructuredProjection p = unit_projection(D, D * 200, 4);
    const size_t n = p.signs.size();
    for (float s : p.signs) {
        ASSERT_EQ(std::abs(s), 1);
    }
    EXPECT_TRUE(plausible(
            double(std::count(p.signs.begin(), p.signs.end(), 1)),
            double(n),
            0.5,
            0.5));
    for (size_t shift : {size_t(1), D, 2 * D, 3 * D}) {
        double agree = 0, total = 0;
        for (size_t i = 0; i + shift < n; i++) {
            if (i / shift % 2 == 0) { // disjoint pairs
                agree += p.signs[i] == p.signs[i + shift];
                total++;
            }
        }
        EXPECT_TRUE(plausible(agree, total, 0.5, 0.5)) << shift;
    }
}

// Rows depend only on the seed and on their number.
TEST(StructuredProjection, SeedsAndPrefixes) {
    const int d = 20;
    const StructuredProjection p = unit_projection(d, 700, 5);
    const std::vector<float> A = p.matrix();
    for (int d_out : {8, 129, 256, 257}) {
        const auto part = unit_projection(d, d_out, 5).matrix();
        EXPECT_TRUE(same_bits(part, rows(A, d, 0, d_out))) << d_out;
    }
    for (int64_t seed : {0L, 6L, -1L, 5L << 32, INT64_MAX}) {
        const StructuredProjection other = unit_projection(d, 700, seed);
        const double agree = std::inner_product(
                p.signs.begin(),
                p.signs.end(),
                other.signs.begin(),
                0.0,
                std::plus<>(),
                std::equal_to<>());
        EXPECT_TRUE(plausible(agree, double(p.signs.size()), 0.5, 0.5)) << seed;
    }
    // signs and lengths of many rotations, drawn by several threads
    for (const char* s : {"SIK1032(matern,gamma=1)", "RHBE1032"}) {
        const auto hash = kernel_hash_factory(d, s);
        const Threads threads(4);
        kernel_hash_factory(d, s)->check_identical(*hash);
    }
}

/* Distribution of an output y = |w| u of a fixed x, |x| = 1, over seeds.
 *
 * y is |w| / sqrt(D) times s = sum_k +-z_k, with the independent signs of S_3
 * and z = H S_2 H S_1 x / D, |z| = 1. So E y = 0, and E y^2 = E |w|^2 / D = 1.
 * E s^4 = 3 - 2 sum E z_k^4, and likewise for z_k and the vector before it. For
 * the latter, the sum is from 1 / D to 3 / D, so that E y^4 = (1 + 2 / D) (3 -
 * 6 / D + c / D^2) with c from 4 to 12, which is 3 up to 9 / D^2.
 *
 * Distribution: for sums that are not identically distributed, Berry and Esseen
 * (Shevtsova 2010: constant 0.56) give |F_s - Phi| <= 0.56 E sum |z_k|^3 <=
 * 0.56 sqrt(E sum z_k^4) <= 0.56 sqrt(3 / D). The factor |w| / sqrt(D),
 * independent of s, has a standard deviation of less than sqrt(1 / (2 D)), and
 * Phi(t / f) - Phi(t) is at most 0.25 |f - 1| for f >= 1/2 (as |t| phi(t) <=
 * 0.242; for f near 1). Outputs are independent between seeds, so the bound of
 * Dvoretzky, Kiefer, Wolfowitz and Massart holds.
 */
TEST(Law, OutputsAreNearlyGaussian) {
    const int d = 300, n = 10000;
    const double D = StructuredProjection::order(d);
    std::vector<float> ends = unit_vector(d, 0);
    ends[d - 1] = -1;
    const std::vector<float> x =
            joined(joined(normal_vectors(1, d, 1), unit_vector(d, 7)), ends);
    std::vector<double> first[3], last[3], product[3];
    for (int seed = 0; seed < n; seed++) {
        const HyperplaneHash hash(d, 8, false, seed);
        const std::vector<float> y = applied(*hash.projection, x);
        for (size_t i = 0; i < 3; i++) {
            const double of_x = length(&x[i * d], d);
            first[i].push_back(y[8 * i] / of_x);
            last[i].push_back(y[8 * i + 7] / of_x);
            product[i].push_back(first[i].back() * last[i].back());
        }
    }
    const double more = 0.56 * std::sqrt(3 / D) + 0.25 * std::sqrt(1 / (2 * D));
    for (size_t i = 0; i < 3; i++) {
        for (const std::vector<double>* y : {&first[i], &last[i]}) {
            EXPECT_TRUE(follows(*y, normal_cdf, more)) << "vector " << i;
            std::vector<double> square, fourth;
            for (double v : *y) {
                square.push_back(v * v);
                fourth.push_back(v * v * v * v);
            }
            const Moments one(*y), two(square), four(fourth);
            EXPECT_NEAR(one.mean, 0, one.mean_error());
            EXPECT_NEAR(two.mean, 1, two.mean_error());
            EXPECT_NEAR(four.mean, 3, four.mean_error() + 9 / (D * D));
        }
        // outputs of one rotation are not correlated
        const Moments both(product[i]);
        EXPECT_NEAR(both.mean, 0, both.mean_error());
    }
}

struct Pair {
    std::string name;
    std::vector<float> x, y;
    double share = 0; ///< expected normalised Hamming distance
};

/// Returns pairs of all angles, and pairs with few components, which use few
/// columns of a rotation.
std::vector<Pair> pairs_of_all_angles(size_t d) {
    const std::vector<float> a = normal_vectors(1, d, d);
    const std::vector<float> b = normal_vectors(1, d, d + 1);
    const auto mixture = [&](float of_a, float of_b) {
        std::vector<float> y(d);
        for (size_t k = 0; k < d; k++) {
            y[k] = of_a * a[k] + of_b * b[k];
        }
        return y;
    };
    const std::vector<float> e = unit_vector(d, 3), f = unit_vector(d, 9);
    std::vector<float> sum = e, difference = e;
    sum[9] = 1;
    difference[9] = -1;
    std::vector<Pair> all = {
            {"opposite", a, mixture(-1, 0.3f)},
            {"two axes", e, f},
            {"an axis and a diagonal", e, sum},
            {"two diagonals", sum, difference}};
    for (float share : {0.01f, 0.05f, 0.2f, 0.5f, 1.0f}) {
        all.push_back({"mixture", a, mixture(1 - share, share)});
    }
    for (Pair& pair : all) {
        pair.share = normalized_angle(cosine(pair.x.data(), pair.y.data(), d));
    }
    return all;
}

/* Charikar's theta / pi. Codes of different rotations are independent values in
 * [0, 1]. They are bounded by Hoeffding 1963, theorem 1 (`plausible`), and by
 * Maurer and Pontil, whose bound takes their small variance into account.
 *
 * Fourth moments of outputs equal a rotation's up to 12 / D^2 (see Law), for
 * all vectors and so, by polarisation, for pairs. Hence the distribution of the
 * outputs for x and y is a rotation's up to this and to sixth moments. 1 / D is
 * allowed.
 *
 * The variance is at most that of independent bits, p (1 - p) / D (which moves
 * by bias / D with p). At right angles it is 1 - 4 / pi^2 times this: for a, b
 * = sqrt(D) R x, sqrt(D) R y, the sum of a_i b_i is fixed. Only the part of sum
 * sgn(a_i) sgn(b_i) that is not correlated with it varies, and E |a| |b| = 2 /
 * pi. The omitted terms are smaller by 1 / D; with the constant of 4 that is
 * 1 / 64.
 */
TEST(Hamming, OfManyRotations) {
    const int D = 256, n = 4096;
    for (int d : {16, 200}) {
        const HyperplaneHash hash(
                ClonePtr<Projection>(unit_projection(d, n * D, d)), false, 1);
        for (const Pair& pair : pairs_of_all_angles(d)) {
            const std::vector<bool> differ =
                    differing_bits(hash, pair.x, pair.y);
            std::vector<double> shares(n);
            for (int j = 0; j < n * D; j++) {
                shares[j / D] += differ[j] / double(D);
            }
            const Moments m(shares);
            const double p = pair.share, bias = 1.0 / D;
            const double dense = p * (1 - p) / D;
            SCOPED_TRACE(
                    "d = " + std::to_string(d) + ", " + pair.name +
                    ": p = " + std::to_string(p));
            EXPECT_NEAR(m.mean, p, empirical_bernstein(m) + bias);
            EXPECT_TRUE(plausible(m.mean * n, n, p - bias, p + bias));
            EXPECT_NEAR(
                    hash.expected_hamming(std::cos(pi * p)),
                    double(n) * D * p,
                    1e-6 * n * D);
            EXPECT_LE(m.variance, dense + bias / D + m.variance_error());
            if (std::abs(p - 0.5) < 1e-6) {
                EXPECT_NEAR(
                        m.variance,
                        (1 - 4 / (pi * pi)) * dense,
                        dense / 64 + m.variance_error());
                EXPECT_LT(m.variance + m.variance_error(), 0.8 * dense);
            }
            EXPECT_LT(empirical_bernstein(m), 0.03); // the test is meaningful
        }
    }
}

TEST(Hashes, Strings) {
    for (const auto& [text, structured, dense] :
         {std::tuple<std::string, bool, bool>("SIK64(gaussian,gamma=1", 1, 0),
          {"SIK64(matern,nu=0.8,gamma=1", 1, 0},
          {"SIK64(laplacian,gamma=1", 0, 1},
          {"AHK64(chi2", 1, 0},
          {"AHK64(js,order=2,center=1", 1, 0},
          {"RHBE64(center=0", 1, 0},
          {"RHBE64(center=1,proj=structured", 1, 0},
          {"RHBE64(proj=bilinear,shape=3x4", 0, 0}}) {
        SCOPED_TRACE(text);
        const auto hash = kernel_hash_factory(12, text + ")");
        const Projection* p = &projection_of(*hash);
        EXPECT_EQ(
                dynamic_cast<const StructuredProjection*>(p) != 0, structured);
        EXPECT_EQ(dynamic_cast<const DenseProjection*>(p) != 0, dense);
        if (text.find("proj=") == std::string::npos) {
            const auto other = kernel_hash_factory(12, text + ",proj=dense)");
            projection_of<DenseProjection>(*other);
            EXPECT_TRUE(throws(
                    [&text = text] {
                        kernel_hash_factory(12, text + ",proj=sparse)");
                    },
                    "proj"));
        }
    }
}

// In RHBE and AHK, lengths are distributed as for Gaussian vectors of D
// dimensions, and in SIK as for frequencies of D dimensions.
//
// For the Gaussian kernel |omega|^2 / gamma is chi-square with D degrees.
// Matern's omega is this divided by sqrt(g / nu), where g has the gamma
// distribution of shape nu. With nu = 1/2, 2 g is chi-square with one degree,
// and its root the absolute value of a normal number: P(|omega| <= t) = E P(|n|
// >= |w| / t) with |w|^2 = D (1 +- sqrt(2 / D) ...). Here |w| / sqrt(D) has a
// standard deviation of 1 / sqrt(2 D) and a mean within 1 / (4 D) of 1. Its
// distribution moves P by at most 0.25 (1 / sqrt(2 D) + 1 / (4 D)) (|t| phi(t)
// < 0.242, twice that for |n|).
TEST(Hashes, Lengths) {
    const auto lengths_of = [](const std::string& text, int d, double scale) {
        const auto hash = kernel_hash_factory(d, text);
        const StructuredProjection& p = structured_of(*hash);
        std::vector<double> lengths;
        for (int j = 0; j < p.d_out; j++) {
            lengths.push_back(
                    scale * row_length(p, j) / std::sqrt(p.order(p.d_in)));
        }
        return lengths;
    };
    const auto chi = [](int D) {
        return [D](double v) { return chi_square_cdf(D * v * v, D); };
    };
    EXPECT_TRUE(follows(lengths_of("RHBE8192(seed=3)", 5, 1), chi(256)));
    EXPECT_TRUE(follows(lengths_of("AHK8192(chi2,seed=4)", 100, 1), chi(512)));
    const double scale = 2 * pi / std::sqrt(6.25), D = 256;
    EXPECT_TRUE(
            follows(lengths_of("SIK8192(gaussian,gamma=6.25,seed=3)", 5, scale),
                    chi(256)));
    EXPECT_TRUE(follows(
            lengths_of("SIK8192(matern,nu=0.5,gamma=6.25,seed=3)", 5, scale),
            [](double v) { return 2 * normal_cdf(-1 / v); },
            0.5 * (1 / std::sqrt(2 * D) + 1 / (4 * D))));
}

// The fields in order: d_in, d_out, then the signs and the norms, each preceded
// by their number. All except signs and norms have 8 bytes.
TEST(Files, FieldsOfAProjection) {
    const int d = 5, d_out = 24, D = 256;
    faiss::VectorIOWriter writer;
    write_fields(unit_projection(d, d_out, 1), &writer);
    const size_t signs_at = 24, norms_at = signs_at + 4 * 3 * D + 8;
    ASSERT_EQ(writer.data.size(), norms_at + 4 * d_out);
    const auto read = [&](size_t at, auto value) {
        faiss::VectorIOReader reader;
        reader.data = writer.data;
        std::memcpy(&reader.data.at(at), &value, sizeof(value));
        StructuredProjection p;
        read_fields(p, &reader);
        return p.matrix();
    };
    EXPECT_TRUE(same_bits(
            read(0, int64_t(d)), unit_projection(d, d_out, 1).matrix()));
    struct Damage {
        size_t at;
        std::string name;
        std::vector<int64_t> bad;
    };
    const int64_t large = int64_t(1) << 32;
    for (const Damage& damage : std::vector<Damage>{
                 {0, "d_in", {-1, INT32_MIN, int64_t(1) << 31, large | d}},
                 {0, "", {0, D + 1, (1 << 30) + 1, INT32_MAX}},
                 {8, "d_out", {-1, INT32_MAX, large | d_out}},
                 {8, "", {0, d_out - 1, d_out + 1, D + 1}},
                 {signs_at - 8, "signs", {0, 3 * D - 1, 3 * D + 1, -1}},
                 {norms_at - 8, "norms", {0, d_out - 1, d_out + 1, large}}}) {
        for (int64_t bad : damage.bad) {
            EXPECT_TRUE(throws([&] { read(damage.at, bad); }, damage.name))
                    << damage.at << ": " << bad;
        }
    }
    for (float bad : {0.0f, 0.5f, -2.0f, NAN}) {
        EXPECT_TRUE(throws([&] { read(signs_at + 4 * 7, bad); })) << bad;
    }
    EXPECT_TRUE(throws([&] { read(norms_at, NAN); }, "norms"));
}

// A valid projection that does not fit the hash, or a missing one, is refused
// by use and by reading; so is a projection before training.
TEST(Files, PartsThatDoNotFit) {
    const std::vector<float> x(5, 0.5f);
    for (const char* text :
         {"SIK16(gaussian,gamma=1)",
          "SIK16(laplacian,gamma=1)",
          "RHBE16",
          "AHK16(chi2,order=0)"}) {
        const auto hash = hash_as<ProjectionHash>(5, text);
        ASSERT_EQ(hash->projection->d_in, 5);
        reread(*hash);
        for (const ClonePtr<Projection>& other :
             {ClonePtr<Projection>(unit_projection(6, 16, 1)),
              ClonePtr<Projection>(unit_projection(5, 24, 1)),
              ClonePtr<Projection>()}) {
            hash->projection = other;
            EXPECT_TRUE(throws([&] { reread(*hash); }, "projection"));
            EXPECT_TRUE(throws([&] { codes_of(*hash, x); }, "projection"));
        }
    }
    ShiftInvariantHash untrained(5, 16, GaussianKernel());
    reread(untrained);
    untrained.projection = unit_projection(5, 16, 1);
    EXPECT_TRUE(throws([&] { reread(untrained); }, "projection"));
}

} // namespace
