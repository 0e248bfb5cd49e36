// The vectorised loops against scalar references, under every instruction set
// that this processor has, and DenseProjection on top of them.

#include <faiss_ext/projections/DenseProjection.h>

#include <cmath>
#include <limits>

#include <Eigen/Core>

#include <faiss/impl/io.h>
#include <faiss/utils/hamming.h>

#include "core/field_files.h"
#include "simd/margins.h"
#include "simd/pairwise.h"
#include "testing_data.h"
#include "testing_targets.h"

using namespace faiss_ext;
using namespace testing_data;
using namespace testing_targets;
using simd::PairOp;

namespace {

constexpr double float_unit = 0x1p-24;
const PairOp all_ops[] = {PairOp::dot, PairOp::squared_l2, PairOp::l1};

class EveryTarget : public ::testing::TestWithParam<int64_t> {
   protected:
    Target guard{GetParam()};
};

/// The sum and the sum of the absolute values of its terms.
std::pair<double, double> reference(
        PairOp op,
        const float* x,
        const float* y,
        size_t d) {
    long double sum = 0, absolute = 0;
    for (size_t k = 0; k < d; k++) {
        const long double a = x[k], b = y[k];
        const long double term = op == PairOp::dot ? a * b
                : op == PairOp::squared_l2         ? (a - b) * (a - b)
                                                   : std::abs(a - b);
        sum += term;
        absolute += std::abs(term);
    }
    return {double(sum), double(absolute)};
}

/// Error of pairwise relative to the sum of |term|. A term has at most 3
/// roundings. A lane adds at most 2048 / lanes + 1 terms of a run; at most 15
/// additions join the lanes, and the result is rounded. Runs are added in
/// double. (1 + u)^n - 1 <= 1.001 n u for these n. Every instruction set but
/// SCALAR has 4 lanes or more.
double pairwise_bound(size_t d) {
    const double lanes = simd::target_name() == std::string("SCALAR") ? 1 : 4;
    const double additions = std::ceil(std::min<size_t>(d, 2048) / lanes) + 1;
    return 1.001 * (additions + 3 + 15 + 1) * float_unit;
}

std::vector<float> pairwise(
        PairOp op,
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d) {
    std::vector<float> out(n * m);
    simd::pairwise(op, n, x, m, y, d, out.data(), m);
    return out;
}

} // namespace

// At least the best one, and with it one without any special instructions.
TEST(Targets, ThereAreSeveral) {
    const std::vector<int64_t> all = targets();
    ASSERT_FALSE(all.empty());
    const std::string best = simd::target_name();
    bool found = false;
    for (int64_t target : all) {
        found = found || best == hwy::TargetName(target);
        printf("%s ", hwy::TargetName(target));
    }
    printf("(%s in use)\n", best.c_str());
    EXPECT_TRUE(found) << best;
}

TEST_P(EveryTarget, PairwiseAgreesWithReference) {
    for (PairOp op : all_ops) {
        for (size_t d : {1,    2,    3,    4,    5,    7,     8,     9,   15,
                         16,   17,   31,   33,   63,   64,    65,    100, 784,
                         2047, 2048, 2049, 2064, 4099, 20000, 100000}) {
            const size_t n = d > 3000 ? 2 : 5, m = d > 3000 ? 5 : 9;
            // beginning one float off any alignment
            const std::vector<float> x = normal_vectors(n * d + 1, 1, d);
            const std::vector<float> y = normal_vectors(m * d + 1, 1, d + 1, 2);
            const std::vector<float> out = pairwise(op, n, &x[1], m, &y[1], d);
            for (size_t i = 0; i < n; i++) {
                for (size_t j = 0; j < m; j++) {
                    const auto [sum, absolute] =
                            reference(op, &x[1 + i * d], &y[1 + j * d], d);
                    const double error = std::abs(out[i * m + j] - sum);
                    EXPECT_LE(error, pairwise_bound(d) * absolute)
                            << "op " << int(op) << ", d = " << d;
                    EXPECT_LE(error, 1e-4 * absolute)
                            << "op " << int(op) << ", d = " << d;
                }
            }
        }
    }
}

// Equal terms: their rounding errors do not cancel.
TEST_P(EveryTarget, PairwiseOfEqualTerms) {
    for (PairOp op : all_ops) {
        for (size_t d : {100, 784, 2048, 5000, 100000, 1000000}) {
            for (float a : {0.1f, 0.7f, 3.3f}) {
                const std::vector<float> x(d, a), y(d, -0.3f);
                const auto [sum, absolute] =
                        reference(op, x.data(), y.data(), d);
                const float out = pairwise(op, 1, x.data(), 1, y.data(), d)[0];
                EXPECT_NEAR(out, sum, pairwise_bound(d) * absolute)
                        << "op " << int(op) << ", d = " << d;
                EXPECT_NEAR(out, sum, 1e-4 * absolute)
                        << "op " << int(op) << ", d = " << d;
            }
        }
    }
}

// The worst case: beside a few large terms, all others are just too small to
// change a sum in float.
TEST_P(EveryTarget, PairwiseOfSwampedTerms) {
    for (size_t large : {1, 2, 4, 8, 16}) {
        const size_t d = 2048;
        std::vector<float> x(d, 0.999f * float(float_unit)), y(d);
        std::fill_n(x.begin(), large, 1.0f);
        const auto [sum, absolute] =
                reference(PairOp::l1, x.data(), y.data(), d);
        const float out = pairwise(PairOp::l1, 1, x.data(), 1, y.data(), d)[0];
        EXPECT_NEAR(out, sum, pairwise_bound(d) * absolute);
        EXPECT_NEAR(out, sum, 1e-4 * absolute) << large << " large terms";
    }
}

// Small integers: every sum is exact in any order.
TEST_P(EveryTarget, PairwiseOfIntegers) {
    for (PairOp op : all_ops) {
        for (size_t d : {1, 6, 20, 777, 5001}) {
            const size_t n = 13, m = 10;
            std::vector<float> x(n * d), y(m * d);
            for (size_t i = 0; i < x.size(); i++) {
                x[i] = float(int(i * 7 % 11) - 5);
            }
            for (size_t i = 0; i < y.size(); i++) {
                y[i] = float(int(i * 5 % 13) - 6);
            }
            const std::vector<float> out =
                    pairwise(op, n, x.data(), m, y.data(), d);
            for (size_t i = 0; i < n; i++) {
                for (size_t j = 0; j < m; j++) {
                    EXPECT_EQ(
                            out[i * m + j],
                            reference(op, &x[i * d], &y[j * d], d).first);
                }
            }
        }
    }
}

// All shapes from nothing to more than two tiles of 4, with rows of `out` that
// are longer than m: what is behind m stays. The bits are those of the pair on
// its own, and of the pair the other way round.
TEST_P(EveryTarget, PairwiseShapes) {
    for (PairOp op : all_ops) {
        for (size_t d : {0, 1, 5, 16, 19, 2060}) {
            const std::vector<float> x = normal_vectors(10, d, d);
            const std::vector<float> y = normal_vectors(10, d, d + 1);
            std::vector<float> pairs(100);
            for (size_t i = 0; i < 10; i++) {
                for (size_t j = 0; j < 10; j++) {
                    simd::pairwise(
                            op,
                            1,
                            x.data() + i * d,
                            1,
                            y.data() + j * d,
                            d,
                            &pairs[i * 10 + j],
                            1);
                    float turned = 42;
                    simd::pairwise(
                            op,
                            1,
                            y.data() + j * d,
                            1,
                            x.data() + i * d,
                            d,
                            &turned,
                            1);
                    EXPECT_EQ(turned, pairs[i * 10 + j]);
                    if (d == 0) {
                        EXPECT_EQ(turned, 0);
                    }
                }
            }
            for (size_t n = 0; n <= 10; n++) {
                for (size_t m = 0; m <= 10; m++) {
                    for (size_t ldout : {m, m + 1, m + 7}) {
                        // vectors that end with the array, so that reading
                        // beyond is seen by a sanitizer
                        const std::vector<float> xn(x.end() - n * d, x.end());
                        const std::vector<float> ym(y.end() - m * d, y.end());
                        std::vector<float> out(n * ldout, 42);
                        simd::pairwise(
                                op,
                                n,
                                xn.data(),
                                m,
                                ym.data(),
                                d,
                                out.data(),
                                ldout);
                        for (size_t i = 0; i < n; i++) {
                            for (size_t j = 0; j < ldout; j++) {
                                const float expected = j < m
                                        ? pairs[(10 - n + i) * 10 + 10 - m + j]
                                        : 42;
                                ASSERT_EQ(out[i * ldout + j], expected)
                                        << n << " x " << m << ", d = " << d;
                            }
                        }
                    }
                }
            }
        }
    }
}

// More rows of y than are taken in one pass (65536 / d, at least 4).
TEST_P(EveryTarget, PairwiseInSeveralPasses) {
    for (PairOp op : all_ops) {
        for (auto [d, m] :
             {std::pair<size_t, size_t>{1, 9001}, {5000, 40}, {40000, 11}}) {
            const size_t n = 5;
            const std::vector<float> x = normal_vectors(n, d, d);
            const std::vector<float> y = normal_vectors(m, d, d + 1);
            const std::vector<float> out =
                    pairwise(op, n, x.data(), m, y.data(), d);
            for (size_t i = 0; i < n; i++) {
                for (size_t j = 0; j < m; j += 1 + m / 97) {
                    ASSERT_EQ(
                            out[i * m + j],
                            pairwise(op, 1, &x[i * d], 1, &y[j * d], d)[0])
                            << "d = " << d << ", pair " << i << ", " << j;
                }
            }
        }
    }
}

// Overflow leads to infinity, not to NaN, where all terms have one sign.
TEST_P(EveryTarget, PairwiseOfExtremes) {
    const float values[] = {0, -0.0f, 1e-45f, 1e-30f, 1e18f, 1e25f, 3e38f};
    for (PairOp op : all_ops) {
        for (size_t d : {1, 7, 40}) {
            for (float a : values) {
                for (float b : values) {
                    const std::vector<float> x(d, a), y(d, b);
                    const float out =
                            pairwise(op, 1, x.data(), 1, y.data(), d)[0];
                    const double sum =
                            reference(op, x.data(), y.data(), d).first;
                    EXPECT_FALSE(std::isnan(out));
                    if (sum > 1e39) {
                        EXPECT_EQ(out, HUGE_VALF);
                    } else {
                        // products below the least float are lost
                        EXPECT_NEAR(
                                out, sum, pairwise_bound(d) * sum + d * 1e-45);
                    }
                }
            }
        }
    }
}

// All operations are exact or correctly rounded once, so that every instruction
// set gives the bits of the scalar formula. (Rounding ties to even or away from
// 0 makes no difference in |r|.)
TEST_P(EveryTarget, FoldPhases) {
    for (size_t nbits : {8, 16, 24, 40, 256, 1000}) {
        for (size_t n : {0, 1, 3, 10}) {
            std::vector<float> u = normal_vectors(n, nbits, nbits + n, 5);
            const float special[] = {
                    0,
                    -0.0f,
                    0.5f,
                    -0.5f,
                    1.5f,
                    -2.5f,
                    0.49999997f,
                    1e-30f,
                    -1e-45f,
                    4194303.5f,
                    -8388607.5f,
                    8388608,
                    16777216,
                    2147483648.f,
                    -2147483648.f,
                    9.3e18f,
                    1e30f,
                    -3e38f};
            for (size_t i = 0; i < u.size(); i += 5) {
                u[i] = special[(i / 5) % std::size(special)];
            }
            const std::vector<float> offset =
                    uniform_vectors(1, nbits, nbits, 0, 1);
            const std::vector<float> threshold =
                    uniform_vectors(1, nbits, nbits + 1, 0, 0.5);
            std::vector<float> expected = u;
            for (size_t i = 0; i < u.size(); i++) {
                const float v = u[i] + offset[i % nbits];
                const float r = v - std::nearbyint(v);
                expected[i] = threshold[i % nbits] - std::abs(r);
            }
            u.push_back(42); // stays
            expected.push_back(42);
            simd::fold_phases(
                    n, nbits, offset.data(), threshold.data(), u.data());
            EXPECT_TRUE(same_bits(u, expected)) << n << " x " << nbits;
        }
    }
}

// cos(2 pi v) >= cos(2 pi threshold) is what the sign tells.
TEST_P(EveryTarget, FoldPhasesTellsTheCosine) {
    const size_t nbits = 4096;
    const std::vector<float> offset = uniform_vectors(1, nbits, 1);
    const std::vector<float> threshold = uniform_vectors(1, nbits, 2, 0, 0.5);
    std::vector<float> u = normal_vectors(1, nbits, 3, 10);
    const std::vector<float> before = u;
    simd::fold_phases(1, nbits, offset.data(), threshold.data(), u.data());
    const double pi = std::acos(-1.0);
    for (size_t j = 0; j < nbits; j++) {
        const float v = before[j] + offset[j];
        // margins below 1e-6 are at the mercy of rounding
        if (std::abs(u[j]) > 1e-6) {
            EXPECT_EQ(
                    u[j] >= 0,
                    std::cos(2 * pi * v) >= std::cos(2 * pi * threshold[j]));
        }
    }
}

TEST_P(EveryTarget, PackSigns) {
    const float inf = HUGE_VALF;
    const float special[] = {
            0.0f,
            -0.0f,
            1e-45f,
            -1e-45f,
            inf,
            -inf,
            std::numeric_limits<float>::quiet_NaN(),
            -std::numeric_limits<float>::quiet_NaN(),
            3e38f,
            -3e38f};
    for (size_t nbits : {8, 16, 24, 64, 72, 1000}) {
        for (size_t n : {0, 1, 2, 9}) {
            std::vector<float> margins =
                    normal_vectors(n * nbits + 1, 1, n + nbits);
            for (size_t i = 0; i < margins.size(); i += 3) {
                margins[i] = special[(i / 3) % std::size(special)];
            }
            // beginning one float off any alignment
            std::vector<uint8_t> expected(n * nbits / 8);
            std::vector<uint8_t> codes(n * nbits / 8 + 1, 42);
            faiss::fvecs2bitvecs(&margins[1], expected.data(), nbits, n);
            expected.push_back(42); // stays
            simd::pack_signs(n, nbits, &margins[1], codes.data());
            EXPECT_EQ(codes, expected) << n << " x " << nbits;
        }
    }
}

// Every pattern of a byte.
TEST_P(EveryTarget, PackSignsOfAllBytes) {
    std::vector<float> margins(256 * 8);
    for (size_t i = 0; i < 256; i++) {
        for (size_t j = 0; j < 8; j++) {
            margins[i * 8 + j] = i >> j & 1 ? 0.0f : -1e-45f;
        }
    }
    std::vector<uint8_t> codes(256);
    simd::pack_signs(32, 64, margins.data(), codes.data());
    for (size_t i = 0; i < 256; i++) {
        EXPECT_EQ(codes[i], i);
    }
}

INSTANTIATE_TEST_SUITE_P(
        Targets,
        EveryTarget,
        ::testing::ValuesIn(targets()),
        [](const auto& info) { return hwy::TargetName(info.param); });

TEST(DenseProjection, AgreesWithMatrixProduct) {
    for (auto [d_in, d_out] :
         {std::pair<int, int>{1, 1},
          {3, 8},
          {17, 5},
          {128, 64},
          {784, 30},
          {5000, 9}}) {
        EXPECT_EQ(
                DenseProjection(d_in, d_out).matrix(),
                std::vector<float>(d_in * d_out));
        const std::vector<float> A = normal_vectors(d_out, d_in, d_in);
        const DenseProjection projection(d_in, d_out, A.data());
        EXPECT_EQ(projection.matrix(), A);
        const size_t n = 7;
        const std::vector<float> x = normal_vectors(n, d_in, d_out, 3);
        std::vector<float> y(n * d_out);
        projection.apply(n, x.data(), y.data());

        using Matrix = Eigen::
                Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
        const Eigen::MatrixXd a =
                Eigen::Map<const Matrix>(A.data(), d_out, d_in).cast<double>();
        const Eigen::MatrixXd b =
                Eigen::Map<const Matrix>(x.data(), n, d_in).cast<double>();
        const Eigen::MatrixXd expected = b * a.transpose();
        const Eigen::MatrixXd absolute =
                b.cwiseAbs() * a.transpose().cwiseAbs();
        for (size_t i = 0; i < n; i++) {
            for (int j = 0; j < d_out; j++) {
                EXPECT_NEAR(
                        y[i * d_out + j],
                        expected(i, j),
                        pairwise_bound(d_in) * absolute(i, j));
            }
            // vector by vector
            std::vector<float> one(d_out);
            projection.apply(1, &x[i * d_in], one.data());
            EXPECT_TRUE(std::equal(one.begin(), one.end(), &y[i * d_out]));
        }
    }
    // nothing to do
    DenseProjection(3, 4).apply(0, nullptr, nullptr);
    EXPECT_TRUE(contains(
            message_of([] { DenseProjection().apply(2, nullptr, nullptr); }),
            "empty"));
    EXPECT_TRUE(
            contains(message_of([] { DenseProjection(4, -1); }), "positive"));
}

TEST(DenseProjection, WriteAndRead) {
    const DenseProjection projection(5, 3, normal_vectors(3, 5, 1).data());
    faiss::VectorIOWriter writer;
    write_fields(projection, &writer);
    faiss::VectorIOReader reader;
    reader.data = writer.data;
    DenseProjection again;
    read_fields(again, &reader);
    EXPECT_EQ(again.d_in, 5);
    EXPECT_EQ(again.d_out, 3);
    EXPECT_EQ(again.matrix(), projection.matrix());
    EXPECT_EQ(reader.rp, writer.data.size());
    // cut anywhere, the file is refused
    for (size_t size = 0; size < writer.data.size(); size++) {
        faiss::VectorIOReader cut;
        cut.data.assign(writer.data.begin(), writer.data.begin() + size);
        DenseProjection unread;
        EXPECT_FALSE(message_of([&] { read_fields(unread, &cut); }).empty())
                << size;
    }
}
