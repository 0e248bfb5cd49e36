// Structured projections: the transforms under every instruction set, the law
// of the random directions, and the codes and files of the hashes that draw
// them.

#include <faiss_ext/projections/StructuredProjection.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <faiss/impl/io.h>

#include <faiss_ext/hashes/AdditiveKernelHash.h>
#include <faiss_ext/hashes/HyperplaneHash.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/projections/DenseProjection.h>

#include "core/field_files.h"
#include "simd/hadamard.h"
#include "testing_data.h"
#include "testing_indexes.h"
#include "testing_klsh.h"
#include "testing_projections.h"
#include "testing_targets.h"
#include "testing_theory.h"

using namespace faiss_ext;
using namespace testing_data;
using namespace testing_projections;
using namespace testing_targets;
using faiss_ext_test::codes_of;
using faiss_ext_test::throws;
using testing_theory::float_unit;
using testing_theory::kolmogorov_smirnov;
using testing_theory::log_failure;
using testing_theory::pi;
using testing_theory::plausible;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_signs(size_t n, uint64_t seed) {
    std::vector<float> signs = normal_vectors(n, 1, seed);
    for (float& s : signs) {
        s = s < 0 ? -1.0f : 1.0f;
    }
    return signs;
}

/// H S_3 H S_2 H S_1 x with explicit matrices
std::vector<double> rounds(
        size_t d,
        const float* signs,
        std::vector<double> x) {
    x.resize(d);
    for (size_t round = 0; round < 3; round++) {
        std::vector<double> y(d);
        for (size_t j = 0; j < d; j++) {
            const double v = signs[round * d + j] * x[j];
            if (v != 0) {
                for (size_t i = 0; i < d; i++) {
                    y[i] += hadamard(i, j) * v;
                }
            }
        }
        x = y;
    }
    return x;
}

/// Vectors for the transforms of order d, and what the explicit matrices make
/// of them.
struct RoundsCase {
    std::vector<float> x, signs;
    std::vector<double> exact;
    double length = 0;
};

/** @param whole  components are small whole numbers: results, and all sums on
 *                the way to them, are below d^(3/2) |x| < 2^24
 */
const RoundsCase& rounds_case(size_t d, size_t d_x, bool whole) {
    static std::map<std::tuple<size_t, size_t, bool>, RoundsCase> cases;
    RoundsCase& c = cases[{d, d_x, whole}];
    if (c.x.empty()) {
        c.signs = random_signs(3 * d, d);
        c.x = normal_vectors(1, d_x, d + d_x);
        if (whole) {
            const float most = d <= 256 ? 4 : 1;
            for (float& v : c.x) {
                v = std::clamp(std::round(v), -most, most);
            }
        }
        c.length = length(c.x.data(), d_x);
        if (whole) {
            EXPECT_LT(std::pow(double(d), 1.5) * c.length, 0x1p24);
        }
        c.exact = rounds(d, c.signs.data(), {c.x.begin(), c.x.end()});
    }
    return c;
}

/// powers of two of either sign
std::vector<float> exact_norms(size_t n) {
    std::vector<float> norms(n);
    for (size_t j = 0; j < n; j++) {
        norms[j] = std::ldexp(j % 3 == 1 ? -1.0f : 1.0f, int(j % 7) - 4);
    }
    return norms;
}

/// The outputs, in memory that is aligned to nothing; nothing behind them is
/// touched, and what was in `work` does not matter.
std::vector<float> hadamard_rounds(
        const std::vector<float>& x,
        size_t d,
        const std::vector<float>& signs,
        const std::vector<float>& norms) {
    const size_t d_y = norms.size();
    std::vector<float> work(d + 1, nan_value), y(d_y + 20, 42);
    simd::hadamard_rounds(
            x.size(),
            x.data(),
            d,
            signs.data(),
            d_y,
            norms.data(),
            work.data() + 1,
            y.data() + 1);
    EXPECT_EQ(y[0], 42);
    for (size_t j = d_y + 1; j < y.size(); j++) {
        EXPECT_EQ(y[j], 42) << "d_y = " << d_y;
    }
    return {y.begin() + 1, y.begin() + 1 + d_y};
}

std::vector<size_t> inputs(size_t d) {
    return {1, 3, d / 2 + 1, d - 1, d};
}

/// 1 to d, on both sides of the smaller transforms' sizes; for the smallest
/// order all of them
std::vector<size_t> outputs(size_t d) {
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

class EveryTarget : public ::testing::TestWithParam<int64_t> {
   protected:
    Target guard{GetParam()};
};

/// of rows of length 1
StructuredProjection unit_projection(int d, int d_out, int64_t seed) {
    return StructuredProjection(
            d, d_out, seed, std::vector<double>(d_out, 1.0));
}

std::vector<float> outputs_of(
        const Projection& p,
        const std::vector<float>& x) {
    const size_t n = x.size() / p.d_in;
    std::vector<float> y(n * p.d_out, nan_value);
    p.apply(n, x.data(), y.data());
    return y;
}

std::vector<float> unit_vector(size_t d, size_t k) {
    std::vector<float> x(d);
    x[k] = 1;
    return x;
}

double cosine(const float* x, const float* y, size_t d) {
    double xy = 0;
    for (size_t k = 0; k < d; k++) {
        xy += double(x[k]) * y[k];
    }
    return xy / (length(x, d) * length(y, d));
}

double normalized_angle(double c) {
    return std::acos(std::clamp(c, -1.0, 1.0)) / pi;
}

std::vector<uint8_t> bytes_of(const KernelHash& hash) {
    faiss::VectorIOWriter writer;
    faiss_ext::write_VectorTransform(&hash, &writer);
    return writer.data;
}

std::unique_ptr<faiss::VectorTransform> from_bytes(
        const std::vector<uint8_t>& bytes) {
    faiss::VectorIOReader reader;
    reader.data = bytes;
    return faiss_ext::read_VectorTransform(&reader);
}

const Projection& projection_of(const KernelHash& hash) {
    if (const auto* sik = dynamic_cast<const ShiftInvariantHash*>(&hash)) {
        return *sik->projection;
    }
    if (const auto* ahk = dynamic_cast<const AdditiveKernelHash*>(&hash)) {
        return *ahk->projection;
    }
    return *dynamic_cast<const HyperplaneHash&>(hash).projection;
}

/// Means and moments of independent values.
struct Moments {
    double n = 0, mean = 0, variance = 0, fourth = 0; ///< central ones

    explicit Moments(const std::vector<double>& values)
            : n(double(values.size())) {
        for (double v : values) {
            mean += v / n;
        }
        for (double v : values) {
            const double square = (v - mean) * (v - mean);
            variance += square / (n - 1);
            fourth += square * square / n;
        }
    }

    /// A Gaussian number is beyond 7.4 of its standard deviations with the
    /// probability of a failure, 1e-13. The mean and the variance of hundreds
    /// of independent values with few extremes are nearly Gaussian, with the
    /// standard deviations that the values themselves tell.
    static constexpr double beyond = 7.4;

    double mean_error() const {
        return beyond * std::sqrt(variance / n);
    }
    double variance_error() const {
        return beyond * std::sqrt(fourth / n);
    }
};

/// Maurer and Pontil 2009, theorem 4: the mean of n independent values in [0,
/// 1] with sample variance V is off by more than sqrt(2 V l / n) + 7 l / (3 (n
/// - 1)) with probability at most 4 exp(-l).
double empirical_bernstein(const Moments& m) {
    const double l = std::log(4.0) - log_failure();
    return std::sqrt(2 * m.variance * l / m.n) + 7 * l / (3 * (m.n - 1));
}

} // namespace

// Whole numbers, for which every order of additions is exact, and a power of
// two as the factor of each output.
TEST_P(EveryTarget, RoundsOfWholeNumbersAreExact) {
    for (size_t d = 16; d <= 4096; d *= 2) {
        for (size_t d_x : inputs(d)) {
            const RoundsCase& c = rounds_case(d, d_x, true);
            for (size_t d_y : outputs(d)) {
                const std::vector<float> norms = exact_norms(d_y);
                const std::vector<float> y =
                        hadamard_rounds(c.x, d, c.signs, norms);
                for (size_t j = 0; j < d_y; j++) {
                    ASSERT_EQ(y[j], norms[j] * c.exact[j])
                            << "d = " << d << ", d_x = " << d_x
                            << ", d_y = " << d_y << ", j = " << j;
                }
            }
        }
    }
}

// Real numbers, within the bound of rounds_error and a unit for the factor.
TEST_P(EveryTarget, RoundsOfRealNumbers) {
    for (size_t d = 16; d <= 4096; d *= 2) {
        for (size_t d_x : inputs(d)) {
            const RoundsCase& c = rounds_case(d, d_x, false);
            for (size_t d_y : outputs(d)) {
                const std::vector<float> norms = normal_vectors(1, d_y, d_y);
                const std::vector<float> y =
                        hadamard_rounds(c.x, d, c.signs, norms);
                const double bound = c.length *
                        (rounds_error(d, d_y) +
                         float_unit * std::pow(double(d), 1.5));
                for (size_t j = 0; j < d_y; j++) {
                    ASSERT_NEAR(
                            y[j],
                            double(norms[j]) * c.exact[j],
                            std::abs(norms[j]) * bound)
                            << "d = " << d << ", d_x = " << d_x
                            << ", d_y = " << d_y << ", j = " << j;
                }
            }
        }
    }
}

// 16 vectors side by side: the first is compared with the explicit matrices,
// the others are multiples of it, by powers of two, and so are their outputs.
TEST_P(EveryTarget, RoundsOfAPanel) {
    for (size_t d = 16; d <= 4096; d *= 2) {
        const size_t stride = d == 64 ? 16 : 19;
        for (bool whole : {true, false}) {
            const RoundsCase& c = rounds_case(d, d, whole);
            std::vector<float> side(16 * d), work(16 * d, nan_value);
            std::vector<float> y(stride * d, 42);
            for (size_t k = 0; k < d; k++) {
                for (size_t i = 0; i < 16; i++) {
                    // vectors 0 and 9 are x, 1 is -x, others are multiples
                    side[16 * k + i] = c.x[k] *
                            (i == 0 || i == 9 ? 1.0f
                                     : i == 1 ? -1.0f
                                              : std::ldexp(1.0f, int(i) - 8));
                }
            }
            simd::hadamard_rounds_of_panel(
                    d,
                    c.signs.data(),
                    side.data(),
                    work.data(),
                    y.data(),
                    stride);
            const double bound = whole ? 0 : c.length * rounds_error(d, d);
            for (size_t k = 0; k < d; k++) {
                ASSERT_NEAR(y[stride * k], c.exact[k], bound) << d;
                ASSERT_EQ(y[stride * k + 9], y[stride * k]);
                ASSERT_EQ(y[stride * k + 1], -y[stride * k]);
                for (size_t i = 2; i < 16; i++) {
                    if (i != 9) { // powers of two change no rounding
                        ASSERT_EQ(
                                y[stride * k + i],
                                std::ldexp(y[stride * k], int(i) - 8));
                    }
                }
                for (size_t i = 16; i < stride && k + 1 < d; i++) {
                    ASSERT_EQ(y[stride * k + i], 42);
                }
            }
        }
    }
}

// An output is that of the vector alone, bit for bit, and that of the matrix up
// to rounding.
TEST_P(EveryTarget, ApplyAgreesWithTheMatrix) {
    for (auto [d, d_out] :
         {std::pair<int, int>{1, 8},
          {2, 300},
          {17, 256},
          {255, 16},
          {256, 520},
          {257, 24},
          {784, 1032}}) {
        std::vector<double> lengths;
        for (int j = 0; j < d_out; j++) {
            lengths.push_back(0.1 + j % 13);
        }
        const StructuredProjection p(d, d_out, 3, lengths);
        const std::vector<float> A = p.matrix();
        ASSERT_EQ(A.size(), size_t(d) * d_out);
        const std::vector<float> x = normal_vectors(5, d, d);
        const std::vector<float> y = outputs_of(p, x);
        for (size_t i = 0; i < 5; i++) {
            for (int j = 0; j < d_out; j++) {
                double sum = 0;
                for (int k = 0; k < d; k++) {
                    sum += double(A[size_t(j) * d + k]) * x[i * d + k];
                }
                ASSERT_NEAR(
                        y[i * d_out + j],
                        sum,
                        structured_error(p, j) * length(&x[i * d], d))
                        << "d = " << d << ", output " << j << " of " << d_out;
            }
            const std::vector<float> one(
                    x.begin() + i * d, x.begin() + (i + 1) * d);
            ASSERT_TRUE(same_bits(
                    outputs_of(p, one),
                    std::vector<float>(
                            y.begin() + i * d_out,
                            y.begin() + (i + 1) * d_out)));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        Targets,
        EveryTarget,
        ::testing::ValuesIn(targets()),
        [](const auto& info) {
            return std::string(hwy::TargetName(info.param));
        });

// Sums are made in the same order by every instruction set, and products with
// signs are exact.
TEST(HadamardRounds, AreTheSameForEveryTarget) {
    for (size_t d = 16; d <= 4096; d *= 2) {
        const RoundsCase& c = rounds_case(d, d - 1, false);
        std::vector<float> side = normal_vectors(16, d, d);
        std::vector<std::vector<float>> first;
        for (int64_t target : targets()) {
            const Target guard(target);
            std::vector<std::vector<float>> found;
            for (size_t d_y : outputs(d)) {
                found.push_back(hadamard_rounds(
                        c.x, d, c.signs, normal_vectors(1, d_y, d_y)));
            }
            std::vector<float> work(16 * d), y(16 * d);
            simd::hadamard_rounds_of_panel(
                    d, c.signs.data(), side.data(), work.data(), y.data(), 16);
            found.push_back(y);
            if (first.empty()) {
                first = found;
            }
            for (size_t i = 0; i < found.size(); i++) {
                ASSERT_TRUE(same_bits(found[i], first[i]))
                        << hwy::TargetName(target) << ", d = " << d;
            }
        }
    }
    const StructuredProjection p = unit_projection(300, 700, 1);
    const std::vector<float> x = normal_vectors(3, 300, 1),
                             y = outputs_of(p, x);
    for (int64_t target : targets()) {
        const Target guard(target);
        EXPECT_TRUE(same_bits(outputs_of(p, x), y)) << hwy::TargetName(target);
        EXPECT_TRUE(same_bits(unit_projection(300, 700, 1).signs, p.signs));
    }
}

TEST(StructuredProjection, Order) {
    EXPECT_EQ(StructuredProjection::order(1), 256);
    EXPECT_EQ(StructuredProjection::order(255), 256);
    EXPECT_EQ(StructuredProjection::order(256), 256);
    EXPECT_EQ(StructuredProjection::order(257), 512);
    EXPECT_EQ(StructuredProjection::order(784), 1024);
    EXPECT_EQ(StructuredProjection::order(1 << 30), 1 << 30);
    for (int d : {0, -1, (1 << 30) + 1}) {
        EXPECT_TRUE(throws([&] { StructuredProjection::order(d); }, "2^30"));
        EXPECT_TRUE(throws([&] { StructuredProjection(d, 0, 1, {}); }, "2^30"));
    }
    EXPECT_TRUE(
            throws([] { StructuredProjection(3, 2, 1, {1.0}); },
                   "1 lengths for 2 outputs"));
    EXPECT_TRUE(throws([] { StructuredProjection(3, -1, 1, {}); }, "lengths"));
    const StructuredProjection none(3, 0, 1, {});
    EXPECT_TRUE(none.matrix().empty());
    none.apply(1, std::vector<float>(3).data(), nullptr);
}

// Row j is |w_j| D^(-3/2) times row j mod D of the explicit product for signs
// of its own for every D rows; its rounds are whole numbers, and the product
// with the factor is rounded once.
TEST(StructuredProjection, MatrixIsThatOfTheDefinition) {
    for (auto [d, d_out] :
         {std::pair<int, int>{5, 600}, {256, 300}, {300, 24}}) {
        const size_t D = StructuredProjection::order(d);
        std::vector<double> lengths;
        for (int j = 0; j < d_out; j++) {
            lengths.push_back(1 + j / 7.0);
        }
        const StructuredProjection p(d, d_out, 8, lengths);
        EXPECT_EQ(p.d_in, d);
        EXPECT_EQ(p.d_out, d_out);
        ASSERT_EQ(p.signs.size(), 3 * D * ((d_out + D - 1) / D));
        ASSERT_EQ(p.norms.size(), size_t(d_out));
        for (float s : p.signs) {
            ASSERT_EQ(std::abs(s), 1);
        }
        for (int j = 0; j < d_out; j++) {
            ASSERT_EQ(
                    p.norms[j], float(lengths[j] * std::pow(double(D), -1.5)));
        }
        const std::vector<float> A = p.matrix();
        for (size_t begin = 0; begin < size_t(d_out); begin += D) {
            const size_t end = std::min(begin + D, size_t(d_out));
            for (int k = 0; k < d; k++) {
                std::vector<double> unit(D);
                unit[k] = 1;
                const std::vector<double> column =
                        rounds(D, &p.signs[3 * begin], unit);
                for (size_t j = begin; j < end; j++) {
                    ASSERT_EQ(
                            A[j * d + k],
                            float(column[j - begin] * p.norms[j]));
                }
            }
        }
    }
}

// In D dimensions the rows of one rotation are orthogonal, and have the lengths
// given. An entry of matrix() errs by a unit, so that a product of two rows
// errs by two of the product of their lengths; a norm is rounded once more.
// Rows of different rotations have cosines as random directions have: beyond
// 0.01, a sixth of the standard deviation, with probability of 0.87.
TEST(StructuredProjection, RowsOfARotationAreOrthogonal) {
    const int D = 256, d_out = 600;
    std::vector<double> lengths;
    for (int j = 0; j < d_out; j++) {
        lengths.push_back(0.5 + j % 11);
    }
    const StructuredProjection p(D, d_out, 9, lengths);
    const std::vector<float> A = p.matrix();
    double far = 0, others = 0;
    for (int i = 0; i < d_out; i++) {
        EXPECT_NEAR(
                length(&A[i * D], D),
                lengths[i],
                2.001 * float_unit * lengths[i]);
        for (int j = 0; j < i; j++) {
            const double c = cosine(&A[i * D], &A[j * D], D);
            if (i / D == j / D) {
                ASSERT_NEAR(c, 0, 2.001 * float_unit);
            } else {
                far += std::abs(c) > 0.01;
                others++;
            }
        }
    }
    EXPECT_GT(far, 0.5 * others);
}

// Signs are as many of each kind, and independent from place to place, round to
// round and rotation to rotation.
TEST(StructuredProjection, SignsAreIndependent) {
    const size_t D = 256;
    const StructuredProjection p = unit_projection(256, 256 * 200, 4);
    const size_t n = p.signs.size();
    for (size_t shift : {size_t(0), size_t(1), D, 2 * D, 3 * D}) {
        double agree = 0, total = 0;
        for (size_t i = 0; i < n; i++) {
            // products of disjoint pairs
            if (shift == 0) {
                agree += p.signs[i] > 0;
                total++;
            } else if (i / shift % 2 == 0 && i + shift < n) {
                agree += p.signs[i] == p.signs[i + shift];
                total++;
            }
        }
        EXPECT_TRUE(plausible(agree, total, 0.5, 0.5)) << shift;
    }
}

// Rows depend on the seed and on their number.
TEST(StructuredProjection, SeedsAndPrefixes) {
    const int d = 20;
    const StructuredProjection p = unit_projection(d, 700, 5);
    const std::vector<float> A = p.matrix();
    for (int d_out : {8, 128, 129, 256, 257, 512}) {
        const std::vector<float> B = unit_projection(d, d_out, 5).matrix();
        EXPECT_TRUE(same_bits(
                B, std::vector<float>(A.begin(), A.begin() + B.size())))
                << d_out;
    }
    for (int64_t seed :
         {int64_t(0), int64_t(6), int64_t(-1), int64_t(5) << 32, INT64_MAX}) {
        const StructuredProjection other = unit_projection(d, 700, seed);
        double agree = 0;
        for (size_t i = 0; i < p.signs.size(); i++) {
            agree += other.signs[i] == p.signs[i];
        }
        EXPECT_TRUE(plausible(agree, double(p.signs.size()), 0.5, 0.5)) << seed;
    }
    const std::unique_ptr<Projection> clone = p.clone();
    EXPECT_TRUE(same_bits(clone->matrix(), A));
    auto& copy = dynamic_cast<StructuredProjection&>(*clone);
    copy.norms.assign(copy.norms.size(), 0);
    EXPECT_TRUE(same_bits(p.matrix(), A));
}

/* The law of an output y = |w| u of a fixed x, |x| = 1, over seeds.
 *
 * y is |w| / sqrt(D) times s = sum_k +-z_k, with independent signs, those of
 * S_3, and z = H S_2 H S_1 x / D, |z| = 1. So E y = 0, and E y^2 = E |w|^2 / D
 * = 1. E s^4 = 3 - 2 sum E z_k^4, and the same for z_k and the vector before
 * it; that one's sum is from 1 / D to 3 / D, so that E y^4 = (1 + 2 / D) (3 - 6
 * / D + c / D^2) with c from 4 to 12, which is 3 up to 9 / D^2.
 *
 * Distribution: Berry and Esseen for sums that are not identically distributed
 * (Shevtsova 2010: constant 0.56) give |F_s - Phi| <= 0.56 E sum |z_k|^3 <=
 * 0.56 sqrt(E sum z_k^4) <= 0.56 sqrt(3 / D). The factor |w| / sqrt(D),
 * independent of s, has a standard deviation of less than sqrt(1 / (2 D)), and
 * Phi(t / f) - Phi(t) is at most 0.25 |f - 1| for f from 1/2 on (as |t| phi(t)
 * <= 0.242; for f near 1). Outputs do not depend on each other from seed to
 * seed: Dvoretzky, Kiefer, Wolfowitz and Massart.
 */
TEST(Law, OutputsAreNearlyGaussian) {
    for (auto [d, n] : {std::pair<int, int>{200, 40000}, {4096, 10000}}) {
        const double D = StructuredProjection::order(d);
        std::vector<float> dense = normal_vectors(1, d, 1);
        const double of_dense = length(dense.data(), d);
        std::vector<float> x = dense, unit = unit_vector(d, 7);
        std::vector<float> ends = unit_vector(d, 0);
        ends[d - 1] = -1;
        x.insert(x.end(), unit.begin(), unit.end());
        x.insert(x.end(), ends.begin(), ends.end());
        const std::vector<double> lengths = {of_dense, 1, std::sqrt(2.0)};
        std::vector<std::vector<double>> first(3), last(3), product(3);
        for (int seed = 0; seed < n; seed++) {
            const HyperplaneHash hash(d, 8, false, seed);
            const std::vector<float> y = outputs_of(*hash.projection, x);
            for (size_t i = 0; i < 3; i++) {
                first[i].push_back(y[8 * i] / lengths[i]);
                last[i].push_back(y[8 * i + 7] / lengths[i]);
                product[i].push_back(first[i].back() * last[i].back());
            }
        }
        const double limit = testing_theory::kolmogorov_smirnov_limit(n) +
                0.56 * std::sqrt(3 / D) + 0.25 * std::sqrt(1 / (2 * D));
        EXPECT_LT(limit, d == 200 ? 0.1 : 0.06);
        for (size_t i = 0; i < 3; i++) {
            for (const std::vector<double>* y : {&first[i], &last[i]}) {
                EXPECT_LT(
                        kolmogorov_smirnov(
                                *y,
                                [](double v) {
                                    return std::erfc(-v / std::sqrt(2)) / 2;
                                }),
                        limit)
                        << "d = " << d << ", vector " << i;
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
}

namespace {

struct Pair {
    std::string name;
    std::vector<float> x, y;
};

/// Pairs of all angles, and of few components: those see few columns of a
/// rotation.
std::vector<Pair> pairs_of(size_t d) {
    const std::vector<float> x = normal_vectors(2, d, d);
    const std::vector<float> a(x.begin(), x.begin() + d);
    const std::vector<float> b(x.begin() + d, x.end());
    std::vector<Pair> all;
    for (double share : {0.01, 0.05, 0.2, 0.5, 1.0}) {
        std::vector<float> y = a;
        for (size_t k = 0; k < d; k++) {
            y[k] = float((1 - share) * a[k] + share * b[k]);
        }
        all.push_back({"mixture " + std::to_string(share), a, y});
    }
    std::vector<float> opposite = b;
    for (size_t k = 0; k < d; k++) {
        opposite[k] = -a[k] + 0.3f * b[k];
    }
    all.push_back({"opposite", a, opposite});
    const std::vector<float> e = unit_vector(d, 3), f = unit_vector(d, 9);
    std::vector<float> sum = e, difference = e;
    sum[9] = 1;
    difference[9] = -1;
    all.push_back({"two axes", e, f});
    all.push_back({"an axis and a diagonal", e, sum});
    all.push_back({"two diagonals", sum, difference});
    return all;
}

} // namespace

/* Charikar's theta / pi. Codes of different rotations are independent values in
 * [0, 1], and so are bound by Hoeffding 1963, theorem 1 (`plausible`), and by
 * Maurer and Pontil, whose bound knows how little they vary.
 *
 * Fourth moments of outputs are those of a rotation but for 12 / D^2 (see Law),
 * for all vectors and so, by polarisation, for pairs: the law of the outputs
 * for x and y is that of a rotation but for this and for sixth moments. 1 / D
 * is allowed.
 *
 * The variance is not above that of independent bits, p (1 - p) / D (which
 * moves by bias / D with p). At right angles it is 1 - 4 / pi^2 of it: for a, b
 * = sqrt(D) R x, sqrt(D) R y, the sum of a_i b_i is fixed, and what varies of
 * sum sgn(a_i) sgn(b_i) is what is not correlated with it, where E |a| |b| = 2
 * / pi. Terms left out are smaller by 1 / D; with the constant of 4 that is 1
 * / 64.
 */
TEST(Hamming, OfManyRotations) {
    const int D = 256, n = 8192;
    for (int d : {16, 200, 256}) {
        const HyperplaneHash hash(
                ClonePtr<Projection>(unit_projection(d, n * D, d)), false, 1);
        for (const Pair& pair : pairs_of(d)) {
            const std::vector<uint8_t> a = codes_of(hash, pair.x);
            const std::vector<uint8_t> b = codes_of(hash, pair.y);
            std::vector<double> shares(n);
            double sum = 0;
            for (size_t i = 0; i < a.size(); i++) {
                const int bits = std::popcount(unsigned(a[i] ^ b[i]));
                shares[i / (D / 8)] += bits / double(D);
                sum += bits / double(D);
            }
            const double p =
                    normalized_angle(cosine(pair.x.data(), pair.y.data(), d));
            const Moments m(shares);
            const double bias = 1.0 / D, dense = p * (1 - p) / D;
            const std::string what = "d = " + std::to_string(d) + ", " +
                    pair.name + ": p = " + std::to_string(p);
            EXPECT_NEAR(m.mean, p, empirical_bernstein(m) + bias) << what;
            EXPECT_TRUE(plausible(sum, n, p - bias, p + bias)) << what;
            EXPECT_NEAR(
                    hash.expected_hamming(std::cos(pi * p)),
                    double(n) * D * p,
                    1e-6 * n * D);
            EXPECT_LE(m.variance, dense + bias / D + m.variance_error())
                    << what;
            if (std::abs(p - 0.5) < 1e-6) {
                EXPECT_NEAR(
                        m.variance,
                        (1 - 4 / (pi * pi)) * dense,
                        dense / 64 + m.variance_error())
                        << what;
                EXPECT_LT(m.variance + m.variance_error(), 0.8 * dense);
            }
            // the test can tell
            EXPECT_LT(empirical_bernstein(m), 0.015) << what;
        }
    }
}

namespace {

/// Hashes of all seeds, pairs, and how often they differ in a bit.
struct SeedsCase {
    std::string name;
    std::function<std::unique_ptr<KernelHash>(int64_t)> make;
    std::vector<Pair> pairs;
    std::vector<double> shares;
};

SeedsCase shift_invariant_case(const testing_theory::KernelCase& c) {
    const int d = 20;
    const double gamma = 0.3;
    SeedsCase result = {
            c.name,
            [=](int64_t seed) {
                return std::make_unique<ShiftInvariantHash>(
                        d, 256, *c.make(gamma), seed);
            },
            {},
            {}};
    const std::vector<float> x = normal_vectors(1, d, 1);
    for (double r : {0.1, 0.5, 1.5, 4.0}) {
        for (bool sparse : {false, true}) {
            std::vector<float> step =
                    sparse ? unit_vector(d, 4) : normal_vectors(1, d, 2);
            const double far =
                    r / c.scale(gamma) / length(step.data(), step.size());
            std::vector<float> y = x;
            for (int k = 0; k < d; k++) {
                y[k] += float(far * step[k]);
            }
            const double actual = c.scale(gamma) *
                    testing_theory::distance(c, x.data(), y.data(), d);
            const auto [low, high] = testing_theory::series(c, actual);
            result.pairs.push_back(
                    {(sparse ? "along an axis " : "") + std::to_string(r),
                     x,
                     y});
            result.shares.push_back((low + high) / 2);
        }
    }
    return result;
}

SeedsCase additive_case(const std::string& kernel) {
    const int d = 30;
    SeedsCase result = {
            kernel,
            [=](int64_t seed) {
                return kernel_hash_factory(
                        d,
                        "AHK256(" + kernel + ",seed=" + std::to_string(seed) +
                                ")");
            },
            {},
            {}};
    const auto hash = result.make(1);
    const auto& map = dynamic_cast<const AdditiveKernelHash&>(*hash).map;
    const std::vector<float> x =
            testing_klsh::clustered_histograms(4, d, 4, 30, 3);
    const auto add = [&](const std::string& name,
                         const std::vector<float>& a,
                         const std::vector<float>& b) {
        std::vector<float> u(map.d_out), v(map.d_out);
        map.apply_noalloc(1, a.data(), u.data());
        map.apply_noalloc(1, b.data(), v.data());
        result.pairs.push_back({name, a, b});
        result.shares.push_back(
                normalized_angle(cosine(u.data(), v.data(), u.size())));
    };
    const std::vector<float> a(x.begin(), x.begin() + d);
    for (int i = 1; i < 4; i++) {
        const std::vector<float> b(x.begin() + i * d, x.begin() + (i + 1) * d);
        add("histograms " + std::to_string(i), a, b);
        std::vector<float> near = a;
        for (int k = 0; k < d; k++) {
            near[k] += 0.05f * float(i) * (b[k] - a[k]);
        }
        add("neighbours " + std::to_string(i), a, near);
    }
    // maps of 3 components each
    add("one bin and another", unit_vector(d, 2), unit_vector(d, 5));
    add("one bin and all", unit_vector(d, 2), std::vector<float>(d, 0.03f));
    return result;
}

SeedsCase hyperplane_case() {
    const int d = 30;
    SeedsCase result = {
            "hyperplanes",
            [=](int64_t seed) {
                return std::make_unique<HyperplaneHash>(d, 256, false, seed);
            },
            pairs_of(d),
            {}};
    for (const Pair& p : result.pairs) {
        result.shares.push_back(
                normalized_angle(cosine(p.x.data(), p.y.data(), d)));
    }
    return result;
}

} // namespace

// The hashes as they are, over seeds: the mean of the normalised distances is
// the expected one, within its sampling error and the 1 / D of OfManyRotations
// (the kernel's series and the angle are means over the same law), and their
// variance not above that of independent bits.
TEST(Hamming, OverSeeds) {
    const int nbits = 256, n = 400;
    std::vector<SeedsCase> cases = {hyperplane_case()};
    for (const char* kernel : {"chi2", "intersection,order=3"}) {
        cases.push_back(additive_case(kernel));
    }
    cases.push_back(shift_invariant_case({"gaussian"}));
    cases.push_back(shift_invariant_case({"matern", 1.5}));
    cases.push_back(shift_invariant_case({"matern", 0.5}));
    for (const SeedsCase& c : cases) {
        std::vector<std::vector<double>> shares(c.pairs.size());
        for (int seed = 0; seed < n; seed++) {
            const auto hash = c.make(seed);
            ASSERT_NE(
                    dynamic_cast<const StructuredProjection*>(
                            &projection_of(*hash)),
                    nullptr);
            for (size_t i = 0; i < c.pairs.size(); i++) {
                const std::vector<uint8_t> a = codes_of(*hash, c.pairs[i].x);
                const std::vector<uint8_t> b = codes_of(*hash, c.pairs[i].y);
                double bits = 0;
                for (size_t k = 0; k < a.size(); k++) {
                    bits += std::popcount(unsigned(a[k] ^ b[k]));
                }
                shares[i].push_back(bits / nbits);
            }
        }
        for (size_t i = 0; i < c.pairs.size(); i++) {
            const double p = c.shares[i], bias = 1.0 / 256;
            const Moments m(shares[i]);
            const std::string what = c.name + ", " + c.pairs[i].name +
                    ": p = " + std::to_string(p);
            EXPECT_NEAR(m.mean, p, m.mean_error() + bias) << what;
            EXPECT_LE(
                    m.variance,
                    (p * (1 - p) + bias) / nbits + m.variance_error())
                    << what;
            // the test can tell
            EXPECT_LT(m.mean_error(), 0.015) << what;
        }
    }
}

namespace {

const std::vector<std::string> structured_strings = {
        "SIK%(gaussian,gamma=0.1",
        "SIK%(matern,nu=0.8,gamma=0.1",
        "AHK%(chi2",
        "AHK%(js,order=2,center=1",
        "RHBE%(center=0",
        "RHBE%(center=1"};

/// the string with a number of bits, and more arguments
std::string filled(std::string s, int nbits, const std::string& more = "") {
    s.replace(s.find('%'), 1, std::to_string(nbits));
    return s + more + ")";
}

} // namespace

// All codes and margins at once, one by one, on one thread or four.
TEST(Hashes, DoNotDependOnThreadsAndBatches) {
    for (const std::string& s : structured_strings) {
        for (const std::string form : {",proj=structured", ",proj=dense"}) {
            for (auto [d, nbits] :
                 {std::pair<int, int>{3, 8}, {20, 1032}, {300, 264}}) {
                const size_t n = 300;
                const std::vector<float> x = uniform_vectors(n, d, 1);
                std::unique_ptr<KernelHash> hash;
                std::vector<float> one(n * nbits), all(n * nbits);
                std::vector<uint8_t> codes(n * nbits / 8);
                {
                    const ThreadCount threads(1);
                    hash = kernel_hash_factory(d, filled(s, nbits, form));
                    hash->train(n, x.data());
                    for (size_t i = 0; i < n; i++) {
                        hash->apply_noalloc(1, &x[i * d], &one[i * nbits]);
                        hash->encode(1, &x[i * d], &codes[i * nbits / 8]);
                    }
                }
                const ThreadCount threads(4);
                const auto other =
                        kernel_hash_factory(d, filled(s, nbits, form));
                other->train(n, x.data());
                other->check_identical(*hash);
                other->apply_noalloc(n, x.data(), all.data());
                EXPECT_TRUE(same_bits(all, one)) << s << form;
                EXPECT_EQ(codes_of(*other, x), codes) << s << form;
            }
        }
    }
}

TEST(Hashes, SeedsRepeatAndDiffer) {
    const int d = 12;
    const std::vector<float> x = uniform_vectors(50, d, 1);
    for (const std::string& s : structured_strings) {
        std::vector<std::vector<uint8_t>> found;
        for (const std::string seed : {"0", "1", "4294967296", "1234"}) {
            std::vector<uint8_t> codes[2];
            for (std::vector<uint8_t>& c : codes) {
                const auto hash =
                        kernel_hash_factory(d, filled(s, 64, ",seed=" + seed));
                hash->train(50, x.data());
                c = codes_of(*hash, x);
            }
            EXPECT_EQ(codes[0], codes[1]);
            for (const std::vector<uint8_t>& other : found) {
                EXPECT_NE(codes[0], other) << s << seed;
            }
            found.push_back(codes[0]);
        }
    }
}

TEST(Hashes, Strings) {
    const auto is_structured = [](const std::string& s) {
        const auto hash = kernel_hash_factory(12, s);
        const Projection& p = projection_of(*hash);
        const bool structured = dynamic_cast<const StructuredProjection*>(&p);
        EXPECT_EQ(structured, !dynamic_cast<const DenseProjection*>(&p)) << s;
        return structured;
    };
    for (const std::string& s : structured_strings) {
        EXPECT_TRUE(is_structured(filled(s, 64)));
        EXPECT_TRUE(is_structured(filled(s, 64, ",proj=structured")));
        EXPECT_FALSE(is_structured(filled(s, 64, ",proj=dense")));
        kernel_hash_factory(12, filled(s, 64))
                ->check_identical(*kernel_hash_factory(
                        12, filled(s, 64, ",proj=structured")));
        EXPECT_TRUE(throws([&] {
            kernel_hash_factory(12, filled(s, 64))
                    ->check_identical(*kernel_hash_factory(
                            12, filled(s, 64, ",proj=dense")));
        }));
        for (const std::string word : {"", "Dense", "sparse", "1"}) {
            EXPECT_TRUE(throws(
                    [&] {
                        kernel_hash_factory(12, filled(s, 64, ",proj=" + word));
                    },
                    word.empty() ? "proj" : "structured"))
                    << s << word;
        }
    }
    EXPECT_FALSE(is_structured("SIK64(laplacian,gamma=1)"));
    EXPECT_FALSE(is_structured("SIK64(laplacian,gamma=1,proj=dense)"));
    const std::string error = message_of([] {
        kernel_hash_factory(12, "SIK64(laplacian,proj=structured)");
    });
    for (const std::string part :
         {"'structured' of proj", "accepted here: dense"}) {
        EXPECT_TRUE(contains(error, part)) << error;
    }
    // bilinear projections are as they were
    const auto bilinear =
            kernel_hash_factory(12, "RHBE64(proj=bilinear,shape=3x4)");
    const Projection& p = projection_of(*bilinear);
    EXPECT_EQ(dynamic_cast<const StructuredProjection*>(&p), nullptr);
    EXPECT_EQ(dynamic_cast<const DenseProjection*>(&p), nullptr);
}

// Lengths of RHBE and AHK are those of Gaussian vectors of D dimensions: |w|^2
// has the chi-square distribution of D = 2 h degrees, 1 - exp(-x / 2) sum_{i <
// h} (x / 2)^i / i!.
TEST(Hashes, LengthsOfHyperplanes) {
    const HyperplaneHash rhbe(5, 8192, false, 3);
    const AdditiveKernelHash ahk(
            HomogeneousKernelMap(100, Chi2Kernel()), 8192, false, 4);
    for (const KernelHash* hash :
         {static_cast<const KernelHash*>(&rhbe),
          static_cast<const KernelHash*>(&ahk)}) {
        const auto& p =
                dynamic_cast<const StructuredProjection&>(projection_of(*hash));
        const int D = p.order(p.d_in);
        EXPECT_EQ(D, hash == &rhbe ? 256 : 512);
        std::vector<double> squares;
        for (int j = 0; j < p.d_out; j++) {
            squares.push_back(std::pow(row_length(p, j), 2));
        }
        EXPECT_LT(
                kolmogorov_smirnov(
                        squares,
                        [&](double x) {
                            double term = std::exp(-x / 2), sum = 0;
                            for (int i = 0; i < D / 2; i++) {
                                sum += term;
                                term *= x / 2 / (i + 1);
                            }
                            return 1 - sum;
                        }),
                testing_theory::kolmogorov_smirnov_limit(squares.size()));
    }
}

// Lengths of SIK are those of frequencies of D dimensions. For the Gaussian
// kernel |omega|^2 / gamma is chi-square of D degrees; Matern's omega is that
// divided by sqrt(g / nu), g of the gamma distribution of shape nu. With nu =
// 1/2, 2 g is chi-square of one degree, and its root the absolute value of a
// normal number: P(|omega| <= t) = E P(|n| >= |w| / t) with |w|^2 = D (1 +-
// sqrt(2 / D) ...), where the law of |w| / sqrt(D), of a standard deviation of
// 1 / sqrt(2 D) and a mean within 1 / (4 D) of 1, moves P by no more than 0.25
// (1 / sqrt(2 D) + 1 / (4 D)) (|t| phi(t) < 0.242, twice that for |n|).
TEST(Hashes, LengthsOfFrequencies) {
    const double gamma = 6.25;
    const int nbits = 8192, D = 256;
    const ShiftInvariantHash gaussian(5, nbits, GaussianKernel(gamma), 3);
    const ShiftInvariantHash matern(5, nbits, MaternKernel(0.5, gamma), 3);
    const auto lengths_of = [&](const ShiftInvariantHash& hash) {
        const auto& p =
                dynamic_cast<const StructuredProjection&>(*hash.projection);
        std::vector<double> lengths;
        for (int j = 0; j < nbits; j++) {
            lengths.push_back(2 * pi * row_length(p, j) / std::sqrt(gamma * D));
        }
        return lengths;
    };
    const double limit = testing_theory::kolmogorov_smirnov_limit(nbits);
    EXPECT_LT(
            kolmogorov_smirnov(
                    lengths_of(gaussian),
                    [&](double length) {
                        const double x = D * length * length;
                        double term = std::exp(-x / 2), sum = 0;
                        for (int i = 0; i < D / 2; i++) {
                            sum += term;
                            term *= x / 2 / (i + 1);
                        }
                        return 1 - sum;
                    }),
            limit);
    EXPECT_LT(
            kolmogorov_smirnov(
                    lengths_of(matern),
                    [](double length) {
                        return std::erfc(1 / (length * std::sqrt(2)));
                    }),
            limit + 0.5 * (1 / std::sqrt(2.0 * D) + 1 / (4.0 * D)));
}

namespace {

std::vector<std::string> all_forms() {
    std::vector<std::string> all;
    for (const std::string& s : structured_strings) {
        all.push_back(filled(s, 24));
        all.push_back(filled(s, 24, ",proj=dense"));
    }
    all.push_back("SIK24(gaussian)");
    all.push_back("SIK24(gaussian,proj=dense)");
    all.push_back("SIK24(laplacian)");
    return all;
}

} // namespace

TEST(Files, RoundTrips) {
    const int d = 6;
    const std::vector<float> x = uniform_vectors(80, d, 3);
    for (const std::string& s : all_forms()) {
        for (bool trained : {false, true}) {
            const auto hash = kernel_hash_factory(d, s);
            if (trained) {
                hash->train(80, x.data());
            }
            const std::vector<uint8_t> bytes = bytes_of(*hash);
            const auto read = from_bytes(bytes);
            auto& other = dynamic_cast<KernelHash&>(*read);
            const auto copy = hash->clone();
            for (KernelHash* twin : {&other, copy.get()}) {
                hash->check_identical(*twin);
                EXPECT_EQ(bytes_of(*twin), bytes) << s;
                EXPECT_EQ(twin->is_trained, hash->is_trained);
            }
            hash->train(80, x.data());
            for (KernelHash* twin : {&other, copy.get()}) {
                twin->train(80, x.data());
                EXPECT_EQ(
                        typeid(projection_of(*twin)),
                        typeid(projection_of(*hash)));
                EXPECT_EQ(codes_of(*twin, x), codes_of(*hash, x)) << s;
            }
        }
    }
}

// 12 D bytes for each rotation and 4 for each length; SIK has an offset and a
// threshold more for each bit, others a threshold; and a head.
TEST(Files, AreSmall) {
    for (auto [d, nbits] :
         {std::pair<int, int>{784, 1024}, {784, 2048}, {2000, 256}}) {
        const size_t D = StructuredProjection::order(d), bits = nbits;
        const size_t bound = 12 * D * ((bits + D - 1) / D) + 20 * bits + 400;
        for (const std::string s :
             {"SIK%(gaussian,gamma=0.1", "RHBE%(center=1"}) {
            const auto hash = kernel_hash_factory(d, filled(s, nbits));
            const auto dense =
                    kernel_hash_factory(d, filled(s, nbits, ",proj=dense"));
            const std::vector<float> x = normal_vectors(10, d, 1);
            hash->train(10, x.data());
            dense->train(10, x.data());
            const size_t size = bytes_of(*hash).size();
            EXPECT_LE(size, bound);
            EXPECT_GE(size, 12 * D * ((bits + D - 1) / D) + 4 * bits);
            EXPECT_GE(bytes_of(*dense).size(), 4 * size_t(d) * nbits);
        }
    }
}

// What is read from a damaged file is an error or a hash that can be used.
TEST(Files, TruncatedAndDamaged) {
    const int d = 3;
    const std::vector<float> x = uniform_vectors(20, d, 3);
    for (const std::string& s : structured_strings) {
        const auto hash = kernel_hash_factory(d, filled(s, 8));
        hash->train(20, x.data());
        const std::vector<uint8_t> bytes = bytes_of(*hash);
        int errors = 0;
        for (size_t i = 0; i < bytes.size(); i++) {
            // the signs, of 3072 bytes, are all alike
            if (i > 1000 && i + 400 < bytes.size() && i % 16 > 3) {
                continue;
            }
            const std::vector<uint8_t> part(bytes.begin(), bytes.begin() + i);
            ASSERT_TRUE(throws([&] { from_bytes(part); }))
                    << i << " of " << bytes.size();
            for (int change : {1, 0x40, 0x80, 0xff}) {
                std::vector<uint8_t> damaged = bytes;
                damaged[i] = uint8_t(damaged[i] ^ change);
                std::unique_ptr<faiss::VectorTransform> read;
                try {
                    read = from_bytes(damaged);
                } catch (const faiss::FaissException&) {
                    errors++;
                    continue;
                }
                auto* other = dynamic_cast<KernelHash*>(read.get());
                ASSERT_NE(other, nullptr) << i;
                if (other->is_trained) {
                    codes_of(*other, std::vector<float>(other->d_in, 0.5f));
                }
            }
        }
        EXPECT_GT(errors, 20) << s;
    }
}

namespace {

template <class T>
std::vector<uint8_t> with(std::vector<uint8_t> bytes, size_t at, T value) {
    std::memcpy(&bytes.at(at), &value, sizeof(T));
    return bytes;
}

} // namespace

// The fields one by one: d_in, d_out, then the signs and the norms, each after
// their number.
TEST(Files, FieldsOfAProjection) {
    const int d = 5, d_out = 24, D = 256;
    faiss::VectorIOWriter writer;
    write_fields(unit_projection(d, d_out, 1), &writer);
    const std::vector<uint8_t> bytes = writer.data;
    const size_t norms_at = 16 + 8 + 4 * 3 * D;
    ASSERT_EQ(bytes.size(), norms_at + 8 + 4 * d_out);
    const auto read = [](const std::vector<uint8_t>& from) {
        faiss::VectorIOReader reader;
        reader.data = from;
        StructuredProjection p;
        read_fields(p, &reader);
        return p;
    };
    EXPECT_TRUE(same_bits(
            read(bytes).matrix(), unit_projection(d, d_out, 1).matrix()));
    std::vector<std::vector<uint8_t>> damaged;
    for (int64_t bad :
         {int64_t(0),
          int64_t(-1),
          int64_t(D + 1),
          int64_t(1 << 30) + 1,
          int64_t(INT32_MAX),
          int64_t(INT32_MIN),
          int64_t(1) << 32 | d}) {
        damaged.push_back(with(bytes, 0, bad));
    }
    for (int64_t bad :
         {int64_t(-1),
          int64_t(0),
          int64_t(d_out - 1),
          int64_t(d_out + 1),
          int64_t(D + 1),
          int64_t(INT32_MAX),
          int64_t(1) << 32 | d_out}) {
        damaged.push_back(with(bytes, 8, bad));
    }
    for (uint64_t bad :
         {uint64_t(0),
          uint64_t(3 * D - 1),
          uint64_t(3 * D + 1),
          ~uint64_t(0)}) {
        damaged.push_back(with(bytes, 16, bad));
    }
    for (uint64_t bad :
         {uint64_t(0),
          uint64_t(d_out - 1),
          uint64_t(d_out + 1),
          uint64_t(1) << 62}) {
        damaged.push_back(with(bytes, norms_at, bad));
    }
    for (size_t i = 0; i < damaged.size(); i++) {
        EXPECT_TRUE(throws([&] { read(damaged[i]); })) << i;
    }
    EXPECT_TRUE(throws([&] { read(with(bytes, 0, int64_t(-1))); }, "d_in"));
    EXPECT_TRUE(throws([&] { read(with(bytes, 0, int64_t(D + 1))); }, "signs"));
    EXPECT_TRUE(
            throws([&] { read(with(bytes, 8, int64_t(d_out + 1))); }, "norms"));

    // the class, in front of them
    const std::vector<uint8_t> whole = bytes_of(HyperplaneHash(d, d_out));
    const std::string name = "structured";
    const auto at =
            std::search(whole.begin(), whole.end(), name.begin(), name.end());
    ASSERT_NE(at, whole.end());
    from_bytes(whole);
    for (const std::string other :
         {"Structured", "structures", "bilinear\n\n"}) {
        std::vector<uint8_t> renamed = whole;
        std::copy(
                other.begin(),
                other.end(),
                renamed.begin() + (at - whole.begin()));
        EXPECT_TRUE(throws([&] { from_bytes(renamed); }, "unknown class"))
                << other;
    }
}

// A projection of its own right that does not fit the hash; a hash without one;
// and one that no such kernel has.
TEST(Files, PartsThatDoNotFit) {
    const std::vector<float> x = uniform_vectors(20, 5, 3);
    const auto broken = [](const KernelHash& hash) {
        return throws([&] { from_bytes(bytes_of(hash)); }, "no projection");
    };
    for (auto [d, nbits] : {std::pair<int, int>{6, 16}, {5, 24}}) {
        const StructuredProjection other = unit_projection(d, nbits, 1);
        ShiftInvariantHash sik(5, 16, GaussianKernel(1));
        HyperplaneHash rhbe(5, 16);
        AdditiveKernelHash ahk(HomogeneousKernelMap(5, Chi2Kernel(), 0), 16);
        ASSERT_EQ(ahk.map.d_out, 5);
        from_bytes(bytes_of(sik));
        from_bytes(bytes_of(rhbe));
        from_bytes(bytes_of(ahk));
        sik.projection = rhbe.projection = ahk.projection =
                ClonePtr<Projection>(other);
        EXPECT_TRUE(broken(sik));
        EXPECT_TRUE(broken(rhbe));
        EXPECT_TRUE(broken(ahk));
        std::vector<uint8_t> code(2);
        for (const KernelHash* hash :
             {static_cast<const KernelHash*>(&sik),
              static_cast<const KernelHash*>(&rhbe),
              static_cast<const KernelHash*>(&ahk)}) {
            EXPECT_TRUE(
                    throws([&] { hash->encode(1, x.data(), code.data()); },
                           "no projection"));
        }
        sik.projection = rhbe.projection = ahk.projection =
                ClonePtr<Projection>();
        EXPECT_TRUE(broken(sik));
        EXPECT_TRUE(broken(rhbe));
        EXPECT_TRUE(broken(ahk));
        EXPECT_TRUE(
                throws([&] { rhbe.encode(1, x.data(), code.data()); },
                       "no projection"));
    }
    ShiftInvariantHash laplacian(5, 16, LaplacianKernel(1));
    from_bytes(bytes_of(laplacian));
    laplacian.projection = unit_projection(6, 16, 1);
    EXPECT_TRUE(broken(laplacian));
    ShiftInvariantHash untrained(5, 16, GaussianKernel());
    from_bytes(bytes_of(untrained));
    untrained.projection = unit_projection(5, 16, 1);
    EXPECT_TRUE(broken(untrained));
}
