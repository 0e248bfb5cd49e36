// SPDX-License-Identifier: MIT
// The vectorised loops against scalar references, under every instruction set
// of this processor, and the projections that use them.

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include <faiss_ext/projections/BilinearProjection.h>
#include <faiss_ext/projections/DenseProjection.h>
#include <faiss_ext/projections/GeneratedProjection.h>
#include <faiss_ext/projections/StructuredProjection.h>

#include "simd/byte_products.h"
#include "simd/elementwise.h"
#include "simd/hamming_scan.h"
#include "simd/homogeneous_map.h"
#include "simd/margins.h"
#include "simd/pairwise.h"
#include "simd/pq4_scan.h"
#include "simd/projection.h"
#include "simd/rows.h"
#include "simd/selection.h"
#include "simd/sparse_scan.h"
#include "simd/split_columns.h"
#include "testing.h"
#include "testing_sparse.h"

using namespace faiss_ext;
using namespace faiss_ext_test;
using simd::PairOp;

namespace {

const PairOp all_ops[] = {PairOp::dot, PairOp::squared_l2, PairOp::l1};

struct EveryTarget : testing::TestWithParam<int64_t> {
    Target guard{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(
        Targets,
        EveryTarget,
        testing::ValuesIn(targets()),
        [](const auto& info) { return hwy::TargetName(info.param); });

/// Returns the sum of the terms and the sum of their absolute values.
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

/// Bounds the error of pairwise relative to the sum of |term|. A term has at
/// most 3 roundings. A lane adds at most 2048 / lanes + 1 terms of a run; at
/// most 15 additions join the lanes, and the result is rounded. Runs are added
/// in double. For these n, (1 + u)^n - 1 <= 1.001 n u. All instruction sets
/// except SCALAR have at least 4 lanes.
double pairwise_bound(size_t d) {
    const double lanes = simd::target_name() == std::string("SCALAR") ? 1 : 4;
    const double additions = std::ceil(std::min<size_t>(d, 2048) / lanes) + 1;
    return 1.001 * (additions + 3 + 15 + 1) * float_unit;
}

float pair(PairOp op, const float* x, const float* y, size_t d) {
    float value;
    simd::pairwise(op, 1, x, 1, y, d, &value, 1);
    return value;
}

void expect_pair(PairOp op, std::vector<float> x, std::vector<float> y) {
    const size_t d = x.size();
    const auto [sum, absolute] = reference(op, x.data(), y.data(), d);
    const double error = std::abs(pair(op, x.data(), y.data(), d) - sum);
    EXPECT_LE(error, std::min(1e-4, pairwise_bound(d)) * absolute)
            << "op " << int(op) << ", d = " << d;
}

} // namespace

TEST(Targets, HoldTheOneInUse) {
    std::vector<std::string> names;
    for (int64_t target : targets()) {
        names.push_back(hwy::TargetName(target));
        printf("%s ", names.back().c_str());
    }
    printf("(%s in use)\n", simd::target_name());
    EXPECT_EQ(std::count(names.begin(), names.end(), simd::target_name()), 1);
}

TEST_P(EveryTarget, PairwiseAgreesWithReference) {
    for (PairOp op : all_ops) {
        for (size_t d :
             {1, 3, 4, 7, 16, 17, 63, 100, 784, 2048, 2049, 4099, 20000}) {
            const auto y = normal_vectors(1, d, d + 1, 2);
            expect_pair(op, normal_vectors(1, d, d), y);
        }
        // equal terms, whose rounding errors do not cancel
        for (size_t d : {100, 2048, 5000, 300000}) {
            const std::vector<float> y(d, -0.3f);
            expect_pair(op, std::vector<float>(d, 0.1f), y);
            expect_pair(op, std::vector<float>(d, 3.3f), y);
        }
    }
    // the worst case: all terms except a few large ones are just too small to
    // change a sum in float
    for (size_t large : {1, 4, 16}) {
        std::vector<float> x(2048, 0.999f * float(float_unit));
        std::fill_n(x.begin(), large, 1.0f);
        expect_pair(PairOp::l1, x, std::vector<float>(2048));
    }
}

// A pair has the same bits by itself and in reverse order, and memory after the
// m values of a row stays unchanged. This is tested for all shapes from nothing
// to more than two tiles of 4, and for more rows of y than fit in one pass
// (65536 / d, at least 4).
TEST_P(EveryTarget, PairwiseDoesNotDependOnTheShape) {
    const auto check = [](PairOp op, size_t n, size_t m, size_t d) {
        SCOPED_TRACE(testing::Message() << n << " x " << m << ", d = " << d);
        // of exactly this size, so that a sanitizer detects reading beyond
        const auto x = normal_vectors(n, d, d);
        const auto y = normal_vectors(m, d, d + 1);
        const size_t width = m + n % 3;
        std::vector<float> out(n * width, 42);
        simd::pairwise(op, n, x.data(), m, y.data(), d, out.data(), width);
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < width; j += 1 + m / 97) {
                const float value = out[i * width + j];
                if (j >= m) { // after the row
                    ASSERT_EQ(value, 42);
                    continue;
                }
                const float *a = x.data() + i * d, *b = y.data() + j * d;
                ASSERT_EQ(value, pair(op, a, b, d));
                ASSERT_EQ(value, pair(op, b, a, d));
                ASSERT_TRUE(d > 0 || value == 0);
            }
        }
    };
    for (PairOp op : all_ops) {
        for (size_t shape = 0; shape < 100; shape++) {
            for (size_t d : {0, 1, 19}) {
                check(op, shape / 10, shape % 10, d);
            }
        }
        check(op, 7, 9, 2060);
        check(op, 5, 9001, 1);
        check(op, 5, 20, 5000);
        check(op, 5, 70, 9000);
    }
}

// If all terms have one sign, overflow gives infinity, not NaN.
TEST_P(EveryTarget, PairwiseOfExtremes) {
    const float values[] = {0, -0.0f, 1e-45f, 1e-30f, 1e18f, 1e25f, 3e38f};
    for (PairOp op : all_ops) {
        for (size_t d : {1, 7, 40}) {
            for (float a : values) {
                for (float b : values) {
                    const std::vector<float> x(d, a), y(d, b);
                    const float out = pair(op, x.data(), y.data(), d);
                    const auto [sum, _] = reference(op, x.data(), y.data(), d);
                    if (sum > 1e39) {
                        EXPECT_EQ(out, HUGE_VALF);
                    } else { // products below the smallest float are lost
                        const double lost = double(d) * 1e-45;
                        EXPECT_NEAR(out, sum, pairwise_bound(d) * sum + lost);
                    }
                }
            }
        }
    }
}

// All operations are exact or correctly rounded once, so every instruction set
// gives the bits of the scalar formula. Rounding ties to even or away from 0
// makes no difference in |r|.
TEST_P(EveryTarget, FoldPhases) {
    const float special[] = {
            0, -0.0f, 0.5f, -2.5f, 0.49999997f, -1e-45f, 8388607.5f, 1e30f};
    for (size_t nbits : {8, 24, 256, 1000}) {
        for (size_t n : {0, 1, 10}) {
            std::vector<float> u = normal_vectors(n, nbits, nbits + n, 5);
            for (size_t i = 0; i < u.size(); i += 5) {
                u[i] = special[(i / 5) % std::size(special)];
            }
            const auto offset = uniform_vectors(1, nbits, nbits);
            const auto threshold = uniform_vectors(1, nbits, nbits + 1, 0, 0.5);
            std::vector<float> expected;
            for (size_t i = 0; i < u.size(); i++) {
                const float v = u[i] + offset[i % nbits];
                const float r = v - std::nearbyint(v);
                expected.push_back(threshold[i % nbits] - std::abs(r));
            }
            u.push_back(42); // stays unchanged
            expected.push_back(42);
            const float *b = offset.data(), *t = threshold.data();
            simd::fold_phases(n, nbits, b, t, u.data());
            EXPECT_TRUE(same_bits(u, expected)) << n << " x " << nbits;
        }
    }
}

TEST_P(EveryTarget, PackSigns) {
    const float inf = HUGE_VALF, nan = std::nanf("");
    const float special[] = {0, -0.0f, 1e-45f, -1e-45f, inf, -inf, nan, -nan};
    for (size_t nbits : {8, 24, 64, 1000}) {
        for (size_t n : {0, 1, 9}) {
            // the array starts one float after an aligned address
            auto margins = normal_vectors(n * nbits + 1, 1, n + nbits);
            for (size_t i = 0; i < margins.size(); i += 3) {
                margins[i] = special[(i / 3) % std::size(special)];
            }
            std::vector<uint8_t> expected(n * nbits / 8);
            std::vector<uint8_t> codes(n * nbits / 8 + 1, 42);
            for (size_t i = 0; i < n * nbits; i++) { // as faiss::fvecs2bitvecs
                expected[i / 8] |= (margins[i + 1] >= 0) << i % 8;
            }
            expected.push_back(42); // stays unchanged
            simd::pack_signs(n, nbits, &margins[1], codes.data());
            EXPECT_EQ(codes, expected) << n << " x " << nbits;
        }
    }
}

TEST_P(EveryTarget, NarrowComponents) {
    for (size_t n : {0, 1, 7, 16, 67}) {
        std::vector<uint8_t> bytes(n + 1);
        std::vector<uint16_t> halves(n + 1);
        for (size_t i = 0; i < n; i++) {
            bytes[i] = uint8_t(37 * i);
            // every exponent of half precision, with subnormal numbers
            halves[i] =
                    uint16_t((i % 31) << 10 | (i * 619 & 1023) | (i % 2) << 15);
        }
        std::vector<float> out(n + 1, 42);
        simd::bytes_to_floats(n, bytes.data(), 0.25f, out.data());
        for (size_t i = 0; i < n; i++) {
            EXPECT_EQ(out[i], 0.25f * float(bytes[i]));
        }
        simd::halves_to_floats(n, halves.data(), 0.25f, out.data());
        for (size_t i = 0; i < n; i++) {
            const int exponent = halves[i] >> 10 & 31;
            const float fraction = float(halves[i] & 1023);
            const float size = exponent == 0
                    ? std::ldexp(fraction, -24)
                    : std::ldexp(1024 + fraction, exponent - 25);
            EXPECT_EQ(out[i], (i % 2 ? -0.25f : 0.25f) * size);
        }
        EXPECT_EQ(out[n], 42);
    }
}

template <class Byte>
void expect_l2_of_byte_rows(size_t d) {
    constexpr size_t num_rows = 5;
    const size_t stride = sizeof(float) + d;
    std::vector<uint8_t> rows(num_rows * stride);
    std::vector<float> x(d);
    for (size_t k = 0; k < d; k++) {
        x[k] = float(int(k * 29 % 101) - 50) / 3;
    }
    for (size_t i = 0; i < num_rows; i++) {
        const float factor = float(i + 1) / 7;
        std::memcpy(&rows[i * stride], &factor, sizeof(factor));
        for (size_t k = 0; k < d; k++) {
            rows[i * stride + sizeof(factor) + k] =
                    uint8_t(i * 71 + k * 37 + 1);
        }
    }
    const std::vector<int32_t> ids = {4, 0, 3, 3};
    std::vector<float> found(ids.size() + 1, 42);
    simd::squared_l2_of_byte_rows(
            std::is_signed_v<Byte>,
            d,
            x.data(),
            rows.data(),
            stride,
            ids.size(),
            ids.data(),
            found.data());
    for (size_t j = 0; j < ids.size(); j++) {
        const float factor = float(ids[j] + 1) / 7;
        constexpr double unit = 0x1p-24;
        double expected = 0, error = 0;
        for (size_t k = 0; k < d; k++) {
            const Byte byte = Byte(rows[ids[j] * stride + sizeof(float) + k]);
            const double product = double(factor) * byte;
            const double difference = x[k] - product;
            const double rounding =
                    unit * (std::abs(product) + std::abs(difference));
            expected += difference * difference;
            error += rounding * (2 * std::abs(difference) + rounding);
        }
        // squares and sums are rounded, too
        error += (double(d) + 1) * unit * (expected + error);
        EXPECT_NEAR(found[j], expected, error) << "d = " << d;
    }
    EXPECT_EQ(found.back(), 42);
}

TEST_P(EveryTarget, SquaredL2OfByteRows) {
    for (size_t d : {1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 60, 64, 67, 100}) {
        expect_l2_of_byte_rows<uint8_t>(d);
        expect_l2_of_byte_rows<int8_t>(d);
    }
}

TEST_P(EveryTarget, HammingDistances) {
    std::mt19937 rng(1);
    for (size_t code_size : {4, 8, 12, 16, 20, 32, 44, 64, 100, 256}) {
        for (size_t n : {0, 1, 9}) {
            // the codes start one byte after an aligned address
            std::vector<uint8_t> bytes(1 + (n + 1) * code_size);
            for (uint8_t& byte : bytes) {
                byte = uint8_t(rng());
            }
            const uint8_t* code = &bytes[1];
            const uint8_t* codes = code + code_size;
            std::vector<float> expected(n), found(n + 1, -1);
            for (size_t i = 0; i < n * code_size; i++) {
                expected[i / code_size] +=
                        std::popcount(uint8_t(codes[i] ^ code[i % code_size]));
            }
            expected.push_back(-1); // stays unchanged
            simd::hamming_distances(code, n, codes, code_size, found.data());
            EXPECT_EQ(found, expected) << n << " x " << code_size;
        }
    }
}

// The zeros of a single vector are skipped if there are many.
TEST_P(EveryTarget, ZerosDoNotChangeProducts) {
    for (int d_in : {70, 256, 1000}) {
        for (int d_out : {17, 64, 200}) {
            const idx_t n = 9;
            auto x = normal_vectors(n, d_in, 1);
            std::mt19937 random(3);
            for (size_t i = 0; i < x.size(); i++) {
                // from all zeros to few
                const unsigned row = unsigned(i / d_in);
                x[i] = random() % 9 < row ? x[i] : 0;
            }
            const auto A = normal_vectors(d_out, d_in, 2);
            const DenseProjection projection(d_in, d_out, A.data());
            std::vector<float> together(n * d_out), alone(d_out);
            projection.apply(n, x.data(), together.data());
            for (idx_t i = 0; i < n; i++) {
                projection.apply(1, &x[i * d_in], alone.data());
                EXPECT_TRUE(std::equal(
                        alone.begin(), alone.end(), &together[i * d_out]));
            }
            EXPECT_EQ(together[0], 0);
            x.assign(d_in, 0);
            x[d_in / 2] = std::numeric_limits<float>::quiet_NaN();
            simd::project(
                    1,
                    x.data(),
                    d_out,
                    projection.panels.data(),
                    d_in,
                    alone.data());
            EXPECT_TRUE(std::all_of(alone.begin(), alone.end(), [](float v) {
                return std::isnan(v);
            }));
        }
    }
}

// Vectors whose lanes are all 0 take a shortcut.
TEST_P(EveryTarget, ComponentsThatAreNotZero) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float some[] = {0, -0.0f, 0, 1e-45f, -2, 0, nan, 3};
    std::mt19937 random(1);
    for (size_t d : {0, 1, 7, 15, 16, 17, 31, 32, 100}) {
        for (size_t kinds : {1, 3, 8}) { // up to 3 there are only zeros
            std::vector<float> x(d), values(d), expected_values;
            std::vector<int32_t> columns(d), expected_columns;
            for (size_t i = 0; i < d; i++) {
                x[i] = some[random() % kinds];
                if (x[i] != 0) {
                    expected_columns.push_back(int32_t(i));
                    expected_values.push_back(x[i]);
                }
            }
            const size_t count = simd::take_nonzero(
                    d, x.data(), columns.data(), values.data());
            ASSERT_EQ(count, expected_columns.size());
            columns.resize(count);
            EXPECT_EQ(columns, expected_columns);
            EXPECT_TRUE(
                    count == 0 ||
                    std::memcmp(
                            values.data(),
                            expected_values.data(),
                            count * sizeof(float)) == 0);
        }
    }
}

TEST_P(EveryTarget, ZerosAreMappedAloneAsBesideOthers) {
    constexpr float amplitudes[] = {1, 0.5f, 0.25f};
    const std::vector<float> values = {0, -0.0f, 1e-38f, -1e-38f};
    const size_t d = 64;
    for (size_t order : {0, 1, 2}) {
        for (float half_degree : {0.5f, 0.3f}) {
            const simd::HomogeneousMap map{
                    order, amplitudes, 0.8f, half_degree};
            const size_t components = 2 * order + 1;
            std::vector<float> x(d), beside(2 * d, 1);
            for (size_t k = 0; k < d; k++) {
                x[k] = beside[2 * k] = values[k % values.size()];
            }
            std::vector<float> out(components * d), other(2 * components * d);
            simd::homogeneous_map(map, d, x.data(), 1, out.data());
            simd::homogeneous_map(map, 2 * d, beside.data(), 1, other.data());
            for (size_t i = 0; i < out.size(); i++) {
                EXPECT_EQ(out[i], 0);
                EXPECT_EQ(std::signbit(out[i]), std::signbit(other[2 * i]));
                EXPECT_EQ(other[2 * i], 0);
            }
        }
    }
}

TEST_P(EveryTarget, SmallestValues) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    constexpr float infinity = std::numeric_limits<float>::infinity();
    std::mt19937 random(2);
    std::vector<std::pair<float, uint32_t>> found{{1, 2}};
    std::vector<float> work{3};
    for (size_t n : {0, 1, 5, 16, 40, 333, 1024, 5000}) {
        // with few different values there are ties
        for (unsigned different : {1, 7, 100000}) {
            for (bool special : {false, true}) {
                std::vector<float> v(n), numbers;
                std::vector<std::pair<float, uint32_t>> expected;
                for (size_t i = 0; i < n; i++) {
                    v[i] = float(random() % different) - 3;
                    if (special && random() % 3 == 0) {
                        v[i] = random() % 3    ? nan
                                : random() % 2 ? infinity
                                               : -infinity;
                    }
                    if (v[i] == v[i]) {
                        expected.emplace_back(v[i], i);
                        numbers.push_back(v[i]);
                    }
                }
                std::sort(expected.begin(), expected.end());
                EXPECT_EQ(
                        simd::first_smallest(n, v.data()),
                        expected.empty() ? 0 : expected[0].second);
                for (float bound : {-4.0f, -3.0f, 0.0f, infinity, nan}) {
                    for (size_t from : {size_t(0), n / 3, n}) {
                        size_t first = from;
                        while (first < n && !(v[first] < bound)) {
                            first++;
                        }
                        ASSERT_EQ(
                                simd::first_below(n, v.data(), from, bound),
                                first);
                    }
                }
                for (size_t k : {0, 1, 3, 16, 100, 1000, 6000}) {
                    if (k > 0 && k <= numbers.size()) {
                        ASSERT_EQ(
                                simd::kth_smallest(
                                        numbers.size(), numbers.data(), k),
                                expected[k - 1].first);
                    }
                    simd::k_smallest(n, v.data(), k, found, work);
                    size_t m = std::min(k, expected.size());
                    ASSERT_EQ(found.size(), m);
                    ASSERT_TRUE(std::equal(
                            found.begin(), found.end(), expected.begin()));
                    constexpr float slack = 0.5f;
                    while (m > 0 && m < expected.size() &&
                           expected[m].first <= expected[k - 1].first + slack) {
                        m++;
                    }
                    simd::k_smallest(n, v.data(), k, found, work, slack);
                    std::sort(found.begin(), found.end());
                    ASSERT_EQ(found.size(), m);
                    ASSERT_TRUE(std::equal(
                            found.begin(), found.end(), expected.begin()));
                }
            }
        }
    }
}

TEST_P(EveryTarget, ByteProductsAreExact) {
    std::mt19937 random(3);
    const auto byte = [&](bool is_extreme) {
        return is_extreme ? (random() % 2 ? 127 : -127)
                          : int(random() % 255) - 127;
    };
    for (size_t d : {1, 4, 7, 64, 100, 1000}) {
        for (size_t m : {1, 16, 17, 64, 70, 150}) {
            for (size_t n : {1, 2, 5, 7, 13}) {
                const bool is_extreme = m == 17;
                const size_t padded = simd::padded_bytes(d);
                std::vector<int> a(m * d);
                std::vector<uint8_t> packed(simd::byte_panels_size(d, m), 128);
                for (size_t i = 0; i < a.size(); i++) {
                    a[i] = byte(is_extreme);
                    packed[simd::byte_panel_index(d, i / d, i % d)] =
                            uint8_t(a[i] + 128);
                }
                std::vector<int8_t> x(n * padded);
                std::vector<float> factors(n), plus(m + 15), y(n * m);
                for (size_t i = 0; i < n; i++) {
                    factors[i] = float(1 + i % 2);
                    for (size_t k = 0; k < d; k++) {
                        x[i * padded + k] = int8_t(byte(is_extreme));
                    }
                }
                std::iota(plus.begin(), plus.begin() + m, -20.0f);
                simd::byte_products(
                        n,
                        x.data(),
                        factors.data(),
                        m,
                        packed.data(),
                        d,
                        plus.data(),
                        y.data());
                for (size_t i = 0; i < n; i++) {
                    for (size_t j = 0; j < m; j++) {
                        int sum = 0; // below 2^24 / 2
                        for (size_t k = 0; k < d; k++) {
                            sum += x[i * padded + k] * a[j * d + k];
                        }
                        const float expected =
                                plus[j] - factors[i] * float(sum);
                        const float error = std::abs(sum) < (1 << 22)
                                ? 0
                                : 4 * float_unit * std::abs(expected);
                        ASSERT_NEAR(y[i * m + j], expected, error);
                    }
                }
            }
        }
    }
}

TEST_P(EveryTarget, RoundingToBytes) {
    for (size_t d : {1, 3, 8, 16, 37, 200}) {
        const auto x = normal_vectors(1, d, int(d));
        float largest = 0;
        for (float v : x) {
            largest = std::max(largest, std::abs(v));
        }
        ASSERT_EQ(simd::largest_magnitude(d, x.data()), largest);
        for (float scale : {largest / 127, 2 * largest / 127, 0.0f}) {
            std::vector<int8_t> bytes(d);
            float square, square_of_lost;
            simd::round_to_bytes(
                    d, x.data(), scale, bytes.data(), square, square_of_lost);
            double length = 0, lost = 0;
            for (size_t k = 0; k < d; k++) {
                const double back = double(scale) * bytes[k];
                ASSERT_LE(
                        std::abs(x[k] - back),
                        scale > 0 ? 0.5001 * scale : largest);
                length += double(x[k]) * x[k];
                lost += (x[k] - back) * (x[k] - back);
            }
            EXPECT_NEAR(square, length, 1e-5 * length);
            EXPECT_NEAR(square_of_lost, lost, 1e-5 * (lost + length * 1e-2));
        }
    }
}

TEST_P(EveryTarget, ProductsWithScatteredRowsEqualThoseOfPanels) {
    constexpr size_t m = 50;
    std::mt19937 random(5);
    for (size_t d : {1, 7, 64, 256, 257, 600}) {
        const auto a = normal_vectors(m, d, 1);
        const auto x = normal_vectors(1, d, 2);
        std::vector<float> panels(simd::packed_size(d, m)), all(m);
        for (size_t i = 0; i < m * d; i++) {
            panels[simd::panel_index(d, i / d, i % d)] = a[i];
        }
        simd::project(1, x.data(), m, panels.data(), d, all.data());
        for (size_t n : {0, 1, 2, 3, 8, 9, 21}) {
            std::vector<uint32_t> ids(n);
            std::vector<float> some(n);
            for (uint32_t& id : ids) {
                id = random() % m;
            }
            simd::project_on_rows(
                    x.data(), a.data(), d, n, ids.data(), some.data());
            for (size_t i = 0; i < n; i++) {
                ASSERT_EQ(
                        std::bit_cast<uint32_t>(some[i]),
                        std::bit_cast<uint32_t>(all[ids[i]]));
            }
        }
    }
}

TEST_P(EveryTarget, Pq4Sums) {
    std::mt19937 random(1);
    for (size_t rows : {1, 2, 3, 7, 32, 33, 256}) {
        const size_t nblocks = 5, n = nblocks * simd::pq4_block;
        std::vector<uint8_t> codes(n * rows), tables(rows * 32);
        for (uint8_t& byte : codes) {
            byte = uint8_t(random());
        }
        for (uint8_t& entry : tables) {
            entry = uint8_t(random() % (simd::pq4_max_sum / 4 + 1));
        }
        // the largest entry, with zeros in the parts that are added to it
        std::fill_n(tables.begin(), 32, 0);
        if (rows > 2) {
            std::fill_n(tables.begin() + 64, 32, 0);
        }
        tables[3] = simd::pq4_max_sum;
        std::vector<float> offsets(n);
        for (float& offset : offsets) {
            offset = float(random() % 1000);
        }
        offsets[11] = offsets[n - 1] = std::numeric_limits<float>::max();
        std::vector<uint8_t> arranged(simd::pq4_tables_size(rows));
        simd::arrange_pq4_tables(rows, tables.data(), arranged.data());
        std::vector<std::pair<uint32_t, float>> all;
        for (size_t i = 0; i < n; i++) {
            const uint8_t* code =
                    &codes[i / 32 * rows * 32 + simd::pq4_byte(i % 32)];
            int sum = 0;
            for (size_t r = 0; r < rows; r++) {
                sum += tables[32 * r + code[32 * r] % 16] +
                        tables[32 * r + 16 + code[32 * r] / 16];
            }
            all.emplace_back(uint32_t(i), offsets[i] + 0.5f * float(sum));
        }
        // bounds that admit some codes, all codes, and none
        for (float bound :
             {all[17].second, std::numeric_limits<float>::max(), 0.0f}) {
            std::vector<float> scores(n + 16);
            std::vector<uint32_t> positions(n + 16);
            simd::Pq4Hits hits{scores.data(), positions.data(), 0};
            simd::scan_pq4(
                    rows,
                    arranged.data(),
                    0.5f,
                    nblocks,
                    codes.data(),
                    offsets.data(),
                    bound,
                    hits);
            size_t found = 0;
            for (const auto& [position, score] : all) {
                if (score < bound) {
                    ASSERT_LT(found, hits.size);
                    EXPECT_EQ(positions[found], position);
                    EXPECT_EQ(scores[found], score);
                    found++;
                }
            }
            EXPECT_EQ(found, hits.size);
        }
    }
}

// Values after the last full register count as well.
TEST_P(EveryTarget, PositionsOfSums) {
    constexpr float inf = std::numeric_limits<float>::infinity();
    std::mt19937 random(1);
    for (size_t n : {0, 1, 15, 32, 33, 100, 4096}) {
        std::vector<int16_t> sums(n);
        std::vector<float> weights(n);
        for (size_t i = 0; i < n; i++) {
            sums[i] = int16_t(random());
            weights[i] = float(random() % 1000);
        }
        if (n > 1) {
            sums[0] = std::numeric_limits<int16_t>::min();
            sums[1] = std::numeric_limits<int16_t>::max();
        }
        for (float offset :
             {-inf, -40000.0f, -31000.5f, 0.0f, 123.0f, 32700.0f, inf}) {
            for (float slope : {-30.0f, 0.0f, 0.25f}) {
                const float least = offset + std::min(slope * 1000, 0.0f);
                std::vector<uint32_t> found(n + 16), expected;
                found.resize(simd::positions_at_least(
                        n,
                        sums.data(),
                        weights.data(),
                        offset,
                        slope,
                        least,
                        found.data()));
                for (size_t i = 0; i < n; i++) {
                    // exact: these products have few digits
                    if (float(sums[i]) >= offset + slope * weights[i]) {
                        expected.push_back(uint32_t(i));
                    }
                }
                EXPECT_EQ(found, expected) << n << " " << offset;
            }
        }
        const float nan = std::nanf("");
        std::vector<uint32_t> none(n + 16);
        EXPECT_EQ(
                simd::positions_at_least(
                        n, sums.data(), weights.data(), nan, 0, nan, &none[0]),
                0u);
    }
}

TEST_P(EveryTarget, PositionsOfSumsInFloat) {
    constexpr float inf = std::numeric_limits<float>::infinity();
    std::mt19937 random(2);
    for (size_t n : {0, 1, 15, 16, 17, 64, 1000}) {
        std::vector<float> sums(n), weights(n);
        for (size_t i = 0; i < n; i++) {
            sums[i] = float(random() % 2000);
            weights[i] = float(random() % 1000);
        }
        if (n > 1) {
            sums[0] = std::nanf("");
            sums[1] = inf;
        }
        for (float offset : {-inf, -1.0f, 0.0f, 700.0f, 1999.0f, inf}) {
            for (float slope : {-2.0f, 0.0f, 0.25f}) {
                constexpr uint32_t first = 128;
                std::vector<uint32_t> found(n + 16), expected;
                found.resize(simd::positions_at_least(
                        n,
                        sums.data(),
                        weights.data(),
                        offset,
                        slope,
                        first,
                        found.data()));
                for (size_t i = 0; i < n; i++) {
                    // exact: these products have few digits
                    if (sums[i] >= offset + slope * weights[i]) {
                        expected.push_back(uint32_t(first + i));
                    }
                }
                EXPECT_EQ(found, expected) << n << " " << offset;
            }
        }
    }
}

TEST_P(EveryTarget, ComponentsWhoseColumnsMayBeShared) {
    std::mt19937 random(3);
    for (const int log_bits : {6, 10, 20}) {
        std::vector<uint32_t> bits((size_t(1) << log_bits) / 32);
        for (size_t i = 0; i < std::min<size_t>(bits.size(), 4096); i++) {
            bits[i] = random() & random();
        }
        for (size_t n : {0, 1, 15, 16, 17, 40, 1000}) {
            std::vector<int32_t> columns(n);
            std::vector<float> values(n);
            std::vector<uint32_t> expected;
            std::vector<float> expected_rest;
            for (size_t i = 0; i < n; i++) {
                columns[i] = int32_t(random() >> (i % 2 ? 1 : 20));
                values[i] = float(random());
                const uint32_t at =
                        uint32_t(columns[i]) * 0x9e3779b1u >> (32 - log_bits);
                if (bits[at / 32] >> (at % 32) & 1) {
                    expected.push_back(uint32_t(i));
                } else {
                    expected_rest.push_back(values[i]);
                }
            }
            std::vector<uint32_t> found(n + 16);
            std::vector<float> rest(n + 16);
            found.resize(simd::split_columns(
                    n,
                    columns.data(),
                    values.data(),
                    bits.data(),
                    32 - log_bits,
                    found.data(),
                    rest.data()));
            rest.resize(n - found.size());
            EXPECT_EQ(found, expected) << n << " " << log_bits;
            EXPECT_EQ(rest, expected_rest) << n << " " << log_bits;
        }
    }
}

TEST_P(EveryTarget, SumsOfLevels) {
    std::mt19937 random(2);
    for (size_t n : {1, 31, 32, 33, 64, 200, 1000}) {
        for (size_t num : {0, 1, 2, 7}) {
            const size_t size = (n + 31) / 32 * 16 + 64;
            std::vector<uint8_t> tables(num * 32), levels(num * size);
            std::vector<const uint8_t*> table_of, levels_of;
            for (uint8_t& byte : tables) {
                byte = uint8_t(random());
            }
            for (uint8_t& byte : levels) {
                byte = uint8_t(random());
            }
            for (size_t j = 0; j < num; j++) {
                table_of.push_back(&tables[j * 32]);
                levels_of.push_back(&levels[j * size]);
            }
            std::vector<int16_t> sums(n + 128), expected(n);
            for (size_t i = 0; i < n; i++) {
                sums[i] = int16_t(random());
                uint32_t sum = uint16_t(sums[i]);
                for (size_t j = 0; j < num; j++) {
                    const uint8_t byte = levels_of[j][i / 32 * 16 + i % 16];
                    const size_t level = i % 32 < 16 ? byte % 16 : byte / 16;
                    sum += table_of[j][level] + 256u * table_of[j][level + 16];
                }
                expected[i] = int16_t(uint16_t(sum));
            }
            simd::add_levels(
                    num, table_of.data(), levels_of.data(), n, sums.data());
            sums.resize(n);
            EXPECT_EQ(sums, expected) << n << " rows, " << num << " tables";
        }
    }
}

TEST_P(EveryTarget, LargestValueAndProducts) {
    EXPECT_EQ(simd::max_abs(0, nullptr), 0);
    for (size_t n : {1, 2, 15, 16, 17, 33, 100}) {
        const auto x = normal_vectors(n, 1, n), b = normal_vectors(n, 1, n + 1);
        std::vector<float> product = x;
        simd::multiply(n, 1.5f, b.data(), product.data());
        for (size_t i = 0; i < n; i++) {
            EXPECT_EQ(product[i], x[i] * (1.5f * b[i])) << n;
            std::vector<float> with = x;
            with[i] = i % 2 ? -100.5f : 100.5f;
            EXPECT_EQ(simd::max_abs(n, with.data()), 100.5f) << n;
        }
    }
}

TEST_P(EveryTarget, DenseProjectionAgreesWithMatrixProduct) {
    const std::pair<int, int> shapes[] = {
            {1, 1}, {3, 8}, {128, 64}, {784, 130}, {5000, 9}};
    for (auto [d_in, d_out] : shapes) {
        const auto A = normal_vectors(d_out, d_in, d_in);
        const DenseProjection projection(d_in, d_out, A.data());
        EXPECT_EQ(projection.matrix(), A);
        const size_t n = 7;
        const auto x = normal_vectors(n, d_in, d_out, 3);
        std::vector<float> y(n * d_out);
        projection.apply(n, x.data(), y.data());
        for (size_t i = 0; i < n; i++) {
            const float* xi = &x[i * d_in];
            for (int j = 0; j < d_out; j++) {
                const auto [sum, absolute] =
                        reference(PairOp::dot, xi, &A[j * d_in], d_in);
                const double bound = product_error(projection, j, absolute, 0);
                EXPECT_NEAR(y[i * d_out + j], sum, bound);
            }
        }
    }
}

// Generated numbers and sums of products with them are the same everywhere.
// These checksums come from a processor with AVX-512.
TEST_P(EveryTarget, GeneratedProjectionIsTheSame) {
    using Law = GeneratedProjection::Law;
    for (auto [law, expected] :
         {std::pair(Law::normal, uint64_t(6999335258305752497)),
          {Law::cauchy, uint64_t(2785001199136681952)}}) {
        const int d = 700, d_out = 90;
        const GeneratedProjection projection(d, d_out, 7, law);
        Floats x(3 * d), y(3 * d_out);
        for (size_t k = 0; k < x.size(); k++) { // one vector has zeros
            x[k] = k < d && k % 3 ? 0 : float(k % 101) / 8 - 5;
        }
        projection.apply(3, x.data(), y.data());
        uint64_t sum = 0;
        for (float v : y) {
            sum = sum * 0x9e3779b97f4a7c15 + std::bit_cast<uint32_t>(v);
        }
        EXPECT_EQ(sum, expected);
    }
}

TEST_P(EveryTarget, SparseProductsEqualDenseOnes) {
    for (int d : {10, 256, 1000}) {
        const int d_out = 72;
        const auto A = normal_vectors(d_out, d, 2);
        std::vector<std::unique_ptr<Projection>> projections;
        projections.push_back(
                std::make_unique<DenseProjection>(d, d_out, A.data()));
        projections.push_back(
                std::make_unique<GeneratedProjection>(d, d_out, 3));
        const Rows rows = with_signs(draw(20, d, 9, false, d));
        const Floats x = rows.dense();
        for (const auto& projection : projections) {
            Floats y(rows.n() * d_out), got(y);
            projection->apply(rows.n(), x.data(), y.data());
            projection->apply_sparse(rows.get(), got.data());
            EXPECT_EQ(got, y);
        }
    }
}

// Powers of two do not change digits, however large the vectors become.
TEST(Projections, ScaleWithTheirInput) {
    constexpr int n = 7, d = 40, d_out = 64;
    auto x = uniform_vectors(n, d, 2, -1.99, 1.99);
    std::vector<std::unique_ptr<Projection>> projections;
    projections.push_back(std::make_unique<DenseProjection>(
            d, d_out, normal_vectors(d_out, d, 1).data()));
    projections.push_back(std::make_unique<StructuredProjection>(
            d, d_out, 1, std::vector<double>(d_out, 1.0)));
    for (bool structured : {false, true}) {
        projections.push_back(std::make_unique<BilinearProjection>(
                5, 8, d_out, 2, structured, 1, 1.0, structured));
    }
    projections.push_back(std::make_unique<GeneratedProjection>(d, d_out, 1));
    for (const auto& projection : projections) {
        std::vector<float> y(n * d_out), got(n * d_out);
        projection->apply(n, x.data(), y.data());
        for (int power : {1, 40, 63, 65, 120, 127}) {
            // huge vectors between small ones
            const auto scaled = [&](std::vector<float> v, int size) {
                for (size_t k = 0; k < v.size(); k++) {
                    v[k] *= k / size % 2 ? std::ldexp(1.0f, power - 1) : 1;
                }
                return v;
            };
            projection->apply(n, scaled(x, d).data(), got.data());
            EXPECT_EQ(got, scaled(y, d_out)) << "2^" << power;
        }
    }
}

TEST(Projections, EmptyOnesSaySo) {
    std::vector<float> x(4);
    const auto use = [&](const Projection& projection) {
        projection.apply(1, x.data(), x.data());
    };
    expect_throws(
            {{[&] { use(DenseProjection()); }, "empty"},
             {[&] { use(BilinearProjection()); }, "empty"},
             {[&] { use(StructuredProjection()); }, "empty"},
             {[] { DenseProjection(4, -1); }, "positive"},
             {[] { DenseProjection(0, 4); }, "positive"}});
    EXPECT_EQ(DenseProjection(3, 4).matrix(), std::vector<float>(12));
    DenseProjection(3, 4).apply(0, nullptr, nullptr);
}
