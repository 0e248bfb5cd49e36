// ShiftInvariantHash against the theory of Raginsky and Lazebnik 2009, and what
// KernelHash promises of every hash.

#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <thread>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/utils/hamming.h>

#include <faiss_ext/kernels/LinearKernel.h>
#include <faiss_ext/projections/StructuredProjection.h>

#include "testing_data.h"
#include "testing_projections.h"
#include "testing_theory.h"

using namespace faiss_ext;
using namespace testing_data;
using testing_projections::is_structured;
using testing_projections::proj_dense;
using testing_projections::proj_of;
using testing_projections::proj_structured;
using namespace testing_theory;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<uint8_t> encode(
        const KernelHash& hash,
        size_t n,
        const std::vector<float>& x) {
    std::vector<uint8_t> codes(n * hash.code_size());
    hash.encode(n, x.data(), codes.data());
    return codes;
}

std::vector<float> apply(
        const KernelHash& hash,
        size_t n,
        const std::vector<float>& x) {
    std::vector<float> margins(n * hash.nbits);
    hash.apply_noalloc(n, x.data(), margins.data());
    return margins;
}

bool bit(const uint8_t* code, size_t j) {
    return code[j / 8] >> (j % 8) & 1;
}

size_t hamming(const uint8_t* a, const uint8_t* b, size_t nbits) {
    size_t count = 0;
    for (size_t j = 0; j < nbits; j++) {
        count += bit(a, j) != bit(b, j);
    }
    return count;
}

/// proj=dense, and proj=structured where the kernel has it
std::vector<bool> forms_of(const KernelCase& c) {
    return c.l1() ? std::vector<bool>{false} : std::vector<bool>{false, true};
}

/// The margins of one vector in double precision, and bounds on how far float
/// arithmetic may lead away from them.
struct ExactMargins {
    std::vector<double> value;
    std::vector<double> cosine; ///< cos(omega . x + b) + t
    std::vector<double> bound;

    /// A dot product of d terms, in any order, errs by at most (d + 4) units of
    /// the sum of the absolute values of its terms, and a structured one by its
    /// own bound. The offset, the fold and
    /// the threshold add one unit each of numbers at most |u| + 1. The distance
    /// to the nearest integer changes by no more than its argument.
    ExactMargins(const ShiftInvariantHash& hash, const float* x) {
        const size_t d = hash.d_in;
        const std::vector<float> A = hash.projection->matrix();
        const auto* structured = dynamic_cast<const StructuredProjection*>(
                hash.projection.get());
        const double length = testing_projections::length(x, d);
        for (int i = 0; i < hash.nbits; i++) {
            const float* a = &A[i * d];
            double u = hash.offset[i], absolute = 0;
            for (size_t k = 0; k < d; k++) {
                u += double(a[k]) * x[k];
                absolute += std::abs(double(a[k]) * x[k]);
            }
            const double threshold = hash.threshold[i];
            value.push_back(threshold - std::abs(u - std::round(u)));
            cosine.push_back(
                    std::cos(2 * pi * u) - std::cos(2 * pi * threshold));
            const double product = structured
                    ? testing_projections::structured_error(*structured, i) *
                            length
                    : float_unit * (d + 4) * absolute;
            bound.push_back(product + float_unit * (std::abs(u) + 3));
        }
    }

    /// number of bits that rounding may decide
    size_t doubtful() const {
        size_t count = 0;
        for (size_t i = 0; i < value.size(); i++) {
            count += std::abs(value[i]) <= bound[i];
        }
        return count;
    }
};

class ShiftInvariantHashes : public ::testing::TestWithParam<KernelCase> {};

} // namespace

// Hamming distances of pairs from near to far against h_K, within Hoeffding's
// bound for independent bits.
TEST_P(ShiftInvariantHashes, HammingAgreesWithTheory) {
    const KernelCase& c = GetParam();
    const std::vector<double> targets = {
            1e-6, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 0.6, 1, 1.5, 2.5, 4, 8, 30};
    for (size_t d : {1, 2, 17, 64}) {
        const int nbits = d < 64 ? 16384 : 8192;
        const double gamma = d % 2 ? 3.1 : 0.02;
        const ShiftInvariantHash hash(
                d, nbits, *c.make(gamma), 100 + d, proj_dense);
        std::vector<float> x =
                normal_vectors(1, d, d, 1 / (c.scale(gamma) * d));
        size_t n = 1;
        std::vector<float> directions =
                normal_vectors(2 * targets.size(), d, d + 1);
        for (size_t i = 0; i < 2 * targets.size(); i++) {
            float* direction = &directions[i * d];
            if (i % 2) { // along one axis
                std::fill_n(direction, d, 0);
                direction[i % d] = -1;
            }
            const std::vector<float> origin(d);
            const double length = distance(c, direction, origin.data(), d);
            const double far = targets[i / 2] / c.scale(gamma);
            for (size_t k = 0; k < d; k++) {
                x.push_back(float(x[k] + far * direction[k] / length));
            }
            n++;
        }
        const std::vector<uint8_t> codes = encode(hash, n, x);
        const size_t first_doubtful = ExactMargins(hash, &x[0]).doubtful();
        for (size_t i = 1; i < n; i++) {
            const double r = c.scale(gamma) * distance(c, &x[0], &x[i * d], d);
            const auto [low, high] = series(c, r);
            const size_t ham =
                    hamming(&codes[0], &codes[i * hash.code_size()], nbits);
            const size_t doubtful =
                    first_doubtful + ExactMargins(hash, &x[i * d]).doubtful();
            EXPECT_TRUE(plausible(ham, nbits, low, high, doubtful))
                    << "d = " << d << ", r = " << r << ": Hamming " << ham
                    << ", expected " << low * nbits << " to " << high * nbits
                    << ", doubtful " << doubtful;
            // few bits are doubtful, so that the test says something
            EXPECT_LT(doubtful, 0.01 * nbits);
        }
    }
}

TEST_P(ShiftInvariantHashes, ExpectedHammingAgreesWithSeries) {
    const KernelCase& c = GetParam();
    const ShiftInvariantHash hash(1, 8, *c.make(1));
    for (double r :
         {1e-5,
          1e-4,
          1e-3,
          0.01,
          0.02,
          0.05,
          0.1,
          0.3,
          0.5,
          0.8,
          1.0,
          1.5,
          2.0,
          3.0,
          4.0,
          5.0}) {
        const double k = hash.kernel->profile(r);
        const double h = hash.expected_hamming(k) / 8;
        // at small r, K does not tell r to 1e-9 of h
        const double actual = hash.kernel->inverse_profile(k);
        const auto [low, high] = series(c, actual);
        EXPECT_GE(h, low - 1e-9) << "r = " << r;
        EXPECT_LE(h, high + 1e-9) << "r = " << r;
    }
}

TEST_P(ShiftInvariantHashes, ExpectedHammingDecreasesBetweenItsBounds) {
    const KernelCase& c = GetParam();
    const int nbits = 64;
    const ShiftInvariantHash hash(1, nbits, *c.make(1));
    EXPECT_NEAR(hash.expected_hamming(0), nbits * 4 / (pi * pi), 1e-12 * nbits);
    // h_K is computed to 1e-9, and K = 1 means r = 0
    EXPECT_NEAR(hash.expected_hamming(1), 0, 1e-9 * nbits);
    std::vector<double> values = {
            0, 1e-12, 1e-6, 0.001, 1 - 1e-3, 1 - 1e-4, 1 - 1e-6, 1 - 1e-9, 1};
    for (int i = 1; i < 50; i++) {
        values.push_back(i / 50.0);
    }
    std::sort(values.begin(), values.end());
    double before = HUGE_VAL;
    for (double u : values) {
        const double h = hash.expected_hamming(u) / nbits;
        EXPECT_GE(h, ShiftInvariantHash::lower_bound(u) - 1e-9) << "K = " << u;
        EXPECT_LE(h, ShiftInvariantHash::upper_bound(u) + 1e-9) << "K = " << u;
        EXPECT_LT(h, before) << "K = " << u;
        before = h;
    }
}

// |dh / dK| >= 8 / (3 pi^2): K(delta) has that weight, and K(m delta) rises
// with it. h is a sum of less than 8000 terms, whose rounding moves it by at
// most 8000 / 2^53, and terms in K < 1e-16 are dropped.
TEST_P(ShiftInvariantHashes, KernelEstimateInvertsExpectedHamming) {
    const KernelCase& c = GetParam();
    const ShiftInvariantHash hash(1, 512, *c.make(1));
    const double bound = 3 * pi * pi / 8 * (8000 * 0x1p-53 + 1e-16);
    for (double k :
         {0.0,
          1e-15,
          1e-9,
          1e-3,
          0.1,
          0.35,
          0.5,
          0.77,
          0.9,
          0.99,
          0.9999,
          1 - 1e-6,
          1 - 1e-9,
          1 - 1e-12,
          1.0}) {
        const double h = hash.expected_hamming(k);
        EXPECT_NEAR(hash.kernel_estimate(h), k, bound) << "K = " << k;
    }
    EXPECT_EQ(hash.kernel_estimate(0), 1);
    // beyond the range
    for (double h : {512 * 4 / (pi * pi) + 1e-9, 208.0, 300.0, 512.0}) {
        EXPECT_EQ(hash.kernel_estimate(h), 0) << "h = " << h;
    }
    // estimates decrease
    double before = 1.1;
    for (int h = 0; h <= 207; h += 9) {
        const double k = hash.kernel_estimate(h);
        EXPECT_LT(k, before);
        before = k;
    }
}

TEST_P(ShiftInvariantHashes, EstimatesOutOfRange) {
    const KernelCase& c = GetParam();
    const ShiftInvariantHash hash(1, 512, *c.make(1));
    for (double u : {-2e-4, -1.0, 1 + 2e-4, HUGE_VAL, double(nan_value)}) {
        for (const std::function<void()>& call :
             {std::function<void()>([&] { hash.expected_hamming(u); }),
              std::function<void()>(
                      [&] { ShiftInvariantHash::lower_bound(u); }),
              std::function<void()>(
                      [&] { ShiftInvariantHash::upper_bound(u); })}) {
            EXPECT_TRUE(contains(message_of(call), "kernel value"));
        }
    }
    for (double h : {-1e-9, 512.0001, HUGE_VAL, double(nan_value)}) {
        const std::string message =
                message_of([&] { hash.kernel_estimate(h); });
        EXPECT_TRUE(contains(message, "512")) << message;
    }
}

// The bit without a cosine is the bit of equation 2, up to rounding.
TEST_P(ShiftInvariantHashes, MarginsAreThoseOfTheCosine) {
    const KernelCase& c = GetParam();
    const int nbits = 1000;
    for (size_t d : {1, 5, 16, 33}) {
        for (bool structured : forms_of(c)) {
            const ShiftInvariantHash hash(
                    d, nbits, *c.make(0.4), 7, proj_of(structured));
            const size_t n = 12;
            const std::vector<float> x = normal_vectors(n, d, d, 2);
            const std::vector<float> margins = apply(hash, n, x);
            size_t doubtful = 0;
            for (size_t i = 0; i < n; i++) {
                const ExactMargins exact(hash, &x[i * d]);
                doubtful += exact.doubtful();
                for (int j = 0; j < nbits; j++) {
                    const double margin = margins[i * nbits + j];
                    EXPECT_NEAR(margin, exact.value[j], exact.bound[j]);
                    EXPECT_LE(std::abs(margin), 0.5);
                    if (std::abs(exact.value[j]) > exact.bound[j]) {
                        EXPECT_EQ(margin >= 0, exact.cosine[j] >= 0);
                    }
                }
            }
            // the fold |r| is uniform on [0, 1/2], so that a margin is doubtful
            // with probability 4 * bound, which is 1e-4 or so for most bits
            EXPECT_LT(doubtful, 0.01 * n * nbits);
        }
    }
}

// Frequencies with proj=dense. Rows of the projection times 2 pi, at gamma = 1,
// follow the spectral density: the distribution of their coordinates, and in
// two dimensions of the length and the direction.
TEST_P(ShiftInvariantHashes, DistributionOfFrequencies) {
    const KernelCase& c = GetParam();
    const size_t nbits = 131072, d = 3;
    const double gamma = 6.25;
    const ShiftInvariantHash hash(d, nbits, *c.make(gamma), 5, proj_dense);
    const double scale = c.scale(gamma);

    std::function<double(double)> cdf;
    if (c.name == "gaussian") {
        cdf = [](double w) { return 0.5 * std::erfc(-w / std::sqrt(2)); };
    } else if (c.name == "laplacian" || c.nu == 0.5) {
        cdf = [](double w) { return 0.5 + std::atan(w) / pi; };
    } else if (c.nu == 1.5) { // t with 3 degrees of freedom
        cdf = [](double w) {
            const double s = w / std::sqrt(3);
            return 0.5 + (s / (1 + s * s) + std::atan(s)) / pi;
        };
    } else if (c.nu == 2.5) { // 5 degrees
        cdf = [](double w) {
            const double s = w / std::sqrt(5), q = 1 / (1 + s * s);
            return 0.5 + (s * q * (1 + q * 2 / 3) + std::atan(s)) / pi;
        };
    } else if (c.nu == 4) { // 8 degrees, a finite sum for even ones
        cdf = [](double w) {
            const double q = 8 / (8 + w * w);
            const double sum = 1 + q / 2 + q * q * 3 / 8 + q * q * q * 5 / 16;
            return 0.5 + 0.5 * w / std::sqrt(8 + w * w) * sum;
        };
    }
    if (cdf && !c.nu) { // independent coordinates
        std::vector<double> sample;
        for (float a : hash.projection->matrix()) {
            sample.push_back(2 * pi * a / scale);
        }
        EXPECT_LT(
                kolmogorov_smirnov(sample, cdf),
                kolmogorov_smirnov_limit(sample.size()));
    } else if (cdf) {
        const std::vector<float> A = hash.projection->matrix();
        for (size_t k = 0; k < d; k++) {
            std::vector<double> sample(nbits);
            for (size_t i = 0; i < nbits; i++) {
                sample[i] = 2 * pi * A[i * d + k] / scale;
            }
            EXPECT_LT(
                    kolmogorov_smirnov(sample, cdf),
                    kolmogorov_smirnov_limit(nbits))
                    << "coordinate " << k;
        }
    }
    if (c.l1()) {
        return;
    }

    // In two dimensions, P(|omega|^2 > s) = (1 + s / (2 nu))^-nu for Student's
    // t with 2 nu degrees of freedom and exp(-s / 2) for the normal
    // distribution; the direction is uniform.
    const ShiftInvariantHash flat(2, nbits, *c.make(gamma), 6, proj_dense);
    const std::vector<float> A = flat.projection->matrix();
    std::vector<double> squared(nbits), angle(nbits);
    for (size_t i = 0; i < nbits; i++) {
        const double a = 2 * pi * A[i * 2] / scale;
        const double b = 2 * pi * A[i * 2 + 1] / scale;
        squared[i] = a * a + b * b;
        angle[i] = std::atan2(b, a);
    }
    const auto length_cdf = [&](double s) {
        return c.nu ? 1 - std::pow(1 + s / (2 * c.nu), -c.nu)
                    : 1 - std::exp(-s / 2);
    };
    EXPECT_LT(
            kolmogorov_smirnov(squared, length_cdf),
            kolmogorov_smirnov_limit(nbits));
    EXPECT_LT(
            kolmogorov_smirnov(
                    angle, [](double a) { return 0.5 + a / (2 * pi); }),
            kolmogorov_smirnov_limit(nbits));
}

// E cos(omega . delta) = K(delta), and K(delta)^2 for the product of two rows,
// which are independent with proj=dense; values in [-1, 1].
TEST_P(ShiftInvariantHashes, CharacteristicFunctionOfFrequencies) {
    const KernelCase& c = GetParam();
    const size_t nbits = 32768;
    for (size_t d : {1, 4, 20}) {
        const double gamma = 0.7;
        const ShiftInvariantHash hash(
                d, nbits, *c.make(gamma), 3 * d, proj_dense);
        const std::vector<float> A = hash.projection->matrix();
        for (double r : {0.1, 0.5, 1.0, 2.0, 5.0}) {
            std::vector<float> delta = normal_vectors(1, d, 10 + d);
            const std::vector<float> origin(d);
            const double length = distance(c, delta.data(), origin.data(), d);
            for (float& v : delta) {
                v *= float(r / c.scale(gamma) / length);
            }
            const double k = c.profile(
                    c.scale(gamma) *
                    distance(c, delta.data(), origin.data(), d));
            double sum = 0, rounding = 0, product = 0, last = 0;
            for (size_t i = 0; i < nbits; i++) {
                double phase = 0, absolute = 0;
                for (size_t j = 0; j < d; j++) {
                    const double term = 2 * pi * A[i * d + j] * delta[j];
                    phase += term;
                    absolute += std::abs(term);
                }
                // frequencies are rounded twice
                rounding += std::min(2.0, 2 * float_unit * absolute);
                sum += std::cos(phase);
                if (i % 2) {
                    product += last * std::cos(phase);
                }
                last = std::cos(phase);
            }
            const double n = nbits;
            EXPECT_NEAR(sum / n, k, hoeffding(n, 2) + rounding / n)
                    << "d = " << d << ", r = " << r;
            EXPECT_NEAR(
                    product / (n / 2),
                    k * k,
                    hoeffding(n / 2, 2) + 4 * rounding / n)
                    << "d = " << d << ", r = " << r;
        }
    }
}

// b / 2 pi is uniform on [0, 1]; with t uniform on [-1, 1], the threshold T =
// acos(-t) / 2 pi has P(T <= x) = (1 - cos(2 pi x)) / 2 on [0, 1/2].
// (Those of proj=structured are the same.)
TEST_P(ShiftInvariantHashes, DistributionOfOffsetsAndThresholds) {
    const KernelCase& c = GetParam();
    const size_t nbits = 65536;
    const ShiftInvariantHash hash(2, nbits, *c.make(1), 8, proj_dense);
    std::vector<double> offset(hash.offset.begin(), hash.offset.end());
    std::vector<double> threshold(hash.threshold.begin(), hash.threshold.end());
    ASSERT_EQ(offset.size(), nbits);
    ASSERT_EQ(threshold.size(), nbits);
    const ShiftInvariantHash small(2, 8, *c.make(1), 8);
    const ShiftInvariantHash dense(2, 8, *c.make(1), 8, proj_dense);
    EXPECT_EQ(small.offset, dense.offset);
    EXPECT_EQ(small.threshold, dense.threshold);
    for (size_t i = 0; i < nbits; i++) {
        EXPECT_TRUE(offset[i] >= 0 && offset[i] <= 1);
        EXPECT_TRUE(threshold[i] >= 0 && threshold[i] <= 0.5);
    }
    EXPECT_LT(
            kolmogorov_smirnov(offset, [](double x) { return x; }),
            kolmogorov_smirnov_limit(nbits));
    EXPECT_LT(
            kolmogorov_smirnov(
                    threshold,
                    [](double x) { return (1 - std::cos(2 * pi * x)) / 2; }),
            kolmogorov_smirnov_limit(nbits));
    // independent of each other: so are the signs of deviations from medians
    size_t same = 0;
    for (size_t i = 0; i < nbits; i++) {
        same += (offset[i] > 0.5) == (threshold[i] > 0.25);
    }
    EXPECT_TRUE(plausible(same, nbits, 0.5, 0.5));
}

// Bits of the projection in another bandwidth are those of scaled vectors.
TEST_P(ShiftInvariantHashes, BandwidthScalesTheProjection) {
    const KernelCase& c = GetParam();
    for (bool structured : forms_of(c)) {
        const ShiftInvariantHash one(9, 64, *c.make(1), 4, proj_of(structured));
        const ShiftInvariantHash other(
                9, 64, *c.make(16), 4, proj_of(structured));
        const std::vector<float> A = one.projection->matrix();
        const std::vector<float> B = other.projection->matrix();
        ASSERT_EQ(A.size(), B.size());
        for (size_t i = 0; i < A.size(); i++) {
            // a power of 2 changes no rounding
            EXPECT_EQ(B[i], c.scale(16) * A[i]);
        }
        EXPECT_EQ(one.offset, other.offset);
        EXPECT_EQ(one.threshold, other.threshold);
    }
}

INSTANTIATE_TEST_SUITE_P(
        Kernels,
        ShiftInvariantHashes,
        ::testing::ValuesIn(kernel_cases()),
        [](const auto& info) { return case_name(info.param); });

// sum_{m>=1} q^m / (4 m^2 - 1) = 1/2 + 1/2 (s - 1/s) artanh(s), s = sqrt(q), so
// that the Laplacian kernel has h = 4/pi^2 sinh(r / 2) log coth(r / 4).
TEST(ShiftInvariantHash, LaplacianClosedForm) {
    const ShiftInvariantHash hash(1, 8, LaplacianKernel(1));
    for (double r = 1e-15; r < 30; r *= 1.7) {
        const double k = std::exp(-r);
        const double s = hash.kernel->inverse_profile(k);
        const double h = s == 0 ? 0
                                : 4 / (pi * pi) * std::sinh(s / 2) *
                        -std::log(std::tanh(s / 4));
        EXPECT_NEAR(hash.expected_hamming(k) / 8, h, 1e-9) << "r = " << r;
    }
}

// The bits differ with probability 2/pi |sin(phi / 2)| when the phases differ
// by phi, so that h = 2/pi E|sin(r Z / 2)| for the Gaussian kernel, Z ~ N(0,
// 1): r sqrt(2/pi) / pi less at most r^3 E|Z|^3 / 24 pi.
TEST(ShiftInvariantHash, GaussianNearZero) {
    const ShiftInvariantHash hash(1, 8, GaussianKernel(1));
    for (double r = 1e-8; r < 1e-2; r *= 2) {
        const double k = std::exp(-r * r / 2);
        const double s = hash.kernel->inverse_profile(k);
        const double h = hash.expected_hamming(k) / 8;
        const double linear = s * std::sqrt(2 / pi) / pi;
        EXPECT_LE(h, linear + 1e-9) << "r = " << r;
        EXPECT_GE(h, linear - s * s * s * 1.6 / (24 * pi) - 1e-9)
                << "r = " << r;
    }
}

TEST(ShiftInvariantHash, Lemma23) {
    EXPECT_EQ(ShiftInvariantHash::lower_bound(1), 0);
    EXPECT_EQ(ShiftInvariantHash::upper_bound(1), 0);
    EXPECT_NEAR(ShiftInvariantHash::lower_bound(0), 4 / (pi * pi), 1e-15);
    EXPECT_NEAR(ShiftInvariantHash::upper_bound(0), 4 / (pi * pi), 1e-15);
    EXPECT_NEAR(ShiftInvariantHash::lower_bound(0.25), 3 / (pi * pi), 1e-15);
    // the linear branch and the root
    EXPECT_NEAR(
            ShiftInvariantHash::upper_bound(0.3),
            4 / (pi * pi) * (1 - 0.2),
            1e-15);
    EXPECT_NEAR(ShiftInvariantHash::upper_bound(0.91), 0.15, 1e-15);
}

// A rough kernel is nearly vertical at 0: at nu = 0.1, K = 0.9999 is at r =
// 1e-20 or so.
TEST(ShiftInvariantHash, SmallSmoothness) {
    for (double nu : {0.1, 0.3, 0.5}) {
        const ShiftInvariantHash hash(3, 64, MaternKernel(nu, 1));
        EXPECT_NEAR(hash.expected_hamming(1), 0, 64e-9) << "nu = " << nu;
        EXPECT_EQ(hash.kernel_estimate(0), 1) << "nu = " << nu;
        for (double k : {0.1, 0.5, 0.9, 0.99, 0.9999, 0.999999}) {
            // see KernelEstimateInvertsExpectedHamming
            EXPECT_NEAR(
                    hash.kernel_estimate(hash.expected_hamming(k)), k, 4e-12)
                    << "nu = " << nu << ", K = " << k;
        }
    }
}

namespace {

/// A hash for the tests of what does not depend on the kernel.
ShiftInvariantHash make_hash(
        int d,
        int nbits,
        int64_t seed = 1234,
        bool structured = true) {
    return ShiftInvariantHash(
            d, nbits, GaussianKernel(0.5), seed, proj_of(structured));
}

} // namespace

TEST(KernelHash, EncodePacksTheSignsOfApply) {
    for (int nbits : {8, 16, 24, 40, 64, 72, 104, 512, 1000}) {
        for (size_t n : {1, 2, 7, 130}) {
            for (bool structured : {false, true}) {
                const ShiftInvariantHash hash =
                        make_hash(19, nbits, nbits, structured);
                EXPECT_EQ(hash.code_size(), size_t(nbits / 8));
                EXPECT_EQ(hash.d_out, nbits);
                EXPECT_EQ(hash.d_in, 19);
                const std::vector<float> x = normal_vectors(n, 19, n);
                const std::vector<float> margins = apply(hash, n, x);
                std::vector<uint8_t> packed(n * hash.code_size());
                faiss::fvecs2bitvecs(margins.data(), packed.data(), nbits, n);
                const std::vector<uint8_t> codes = encode(hash, n, x);
                EXPECT_EQ(codes, packed)
                        << "nbits = " << nbits << ", n = " << n;
                for (size_t j = 0; j < n * nbits; j++) {
                    ASSERT_EQ(bit(codes.data(), j), margins[j] >= 0);
                }
                // through the base class, as faiss::IndexPreTransform calls it
                const faiss::VectorTransform& base = hash;
                const std::unique_ptr<float[]> applied(base.apply(n, x.data()));
                EXPECT_TRUE(std::equal(
                        margins.begin(), margins.end(), applied.get()));
            }
        }
    }
}

TEST(KernelHash, CodesDoNotDependOnThreadsOrBatches) {
    const size_t n = 301, d = 37;
    for (auto [nbits, structured] :
         {std::pair<int, bool>{200, false}, {200, true}, {1000, true}}) {
        const ShiftInvariantHash hash = make_hash(d, nbits, 1234, structured);
        const std::vector<float> x = normal_vectors(n, d, 2);
        std::vector<uint8_t> codes;
        std::vector<float> margins;
        {
            const ThreadCount guard(1);
            codes = encode(hash, n, x);
            margins = apply(hash, n, x);
        }
        for (int threads : {1, 2, 7}) {
            const ThreadCount guard(threads);
            EXPECT_EQ(encode(hash, n, x), codes);
            EXPECT_TRUE(same_bits(apply(hash, n, x), margins));
            for (size_t batch : {1, 3, 64, 65, 300}) {
                std::vector<uint8_t> batched(codes.size());
                std::vector<float> batched_margins(margins.size());
                for (size_t i = 0; i < n; i += batch) {
                    const size_t count = std::min(batch, n - i);
                    hash.encode(
                            count, &x[i * d], &batched[i * hash.code_size()]);
                    hash.apply_noalloc(
                            count, &x[i * d], &batched_margins[i * hash.nbits]);
                }
                EXPECT_EQ(batched, codes) << "batch = " << batch;
                EXPECT_TRUE(same_bits(batched_margins, margins))
                        << "batch = " << batch;
            }
        }
    }
}

TEST(KernelHash, SeedsRepeatAndDiffer) {
    const size_t n = 5, d = 8;
    const std::vector<float> x = normal_vectors(n, d, 2);
    for (bool structured : {false, true}) {
        std::set<std::string> codes;
        std::set<std::vector<float>> matrices;
        const std::vector<int64_t> seeds = {
                0, 1, 2, 1234, 1LL << 40, INT64_MAX};
        for (int64_t seed : seeds) {
            const ShiftInvariantHash a = make_hash(d, 64, seed, structured);
            const ShiftInvariantHash b = make_hash(d, 64, seed, structured);
            EXPECT_EQ(a.seed, seed);
            EXPECT_EQ(a.projection->matrix(), b.projection->matrix());
            EXPECT_EQ(a.offset, b.offset);
            EXPECT_EQ(a.threshold, b.threshold);
            EXPECT_EQ(encode(a, n, x), encode(b, n, x));
            const std::vector<uint8_t> code = encode(a, n, x);
            codes.emplace(code.begin(), code.end());
            matrices.insert(a.projection->matrix());
        }
        EXPECT_EQ(codes.size(), seeds.size());
        EXPECT_EQ(matrices.size(), seeds.size());
    }
}

TEST(KernelHash, NoVectors) {
    const ShiftInvariantHash hash = make_hash(4, 16);
    uint8_t code = 42;
    float margin = 42;
    hash.encode(0, nullptr, &code);
    hash.apply_noalloc(0, nullptr, &margin);
    hash.encode(0, nullptr, nullptr);
    EXPECT_EQ(code, 42);
    EXPECT_EQ(margin, 42);
}

TEST(KernelHash, BadInput) {
    const size_t n = 100, d = 4;
    ShiftInvariantHash hash = make_hash(d, 16);
    const std::vector<float> good = normal_vectors(n, d, 1);
    const std::vector<uint8_t> expected = encode(hash, n, good);
    std::vector<uint8_t> codes(n * 2, 42);
    std::vector<float> margins(n * 16, 42);

    // both functions, and how they name themselves
    const std::vector<
            std::pair<std::string, std::function<void(idx_t, const float*)>>>
            calls = {
                    {"encode",
                     [&](idx_t count, const float* x) {
                         hash.encode(count, x, codes.data());
                     }},
                    {"apply", [&](idx_t count, const float* x) {
                         hash.apply_noalloc(count, x, margins.data());
                     }}};
    for (const auto& [name, call] : calls) {
        for (float v : {nan_value, infinity, -infinity}) {
            for (size_t at : {size_t(0), size_t(5), n * d - 1}) {
                std::vector<float> bad = good;
                bad[at] = v;
                const std::string message =
                        message_of([&] { call(n, bad.data()); });
                EXPECT_TRUE(contains(message, name)) << message;
                EXPECT_TRUE(contains(
                        message,
                        "component " + std::to_string(at % d) + " of vector " +
                                std::to_string(at / d)))
                        << message;
                EXPECT_TRUE(contains(message, std::isnan(v) ? "nan" : "inf"))
                        << message;
            }
        }
        std::string message = message_of([&] { call(1, nullptr); });
        EXPECT_TRUE(contains(message, "null")) << message;
        message = message_of([&] { call(-3, good.data()); });
        EXPECT_TRUE(contains(message, "-3")) << message;
        // a bad vector beyond n is not looked at
        std::vector<float> bad = good;
        bad[d] = nan_value;
        call(1, bad.data());
    }
    // what failed wrote nothing: only the first vector is there
    EXPECT_EQ(codes[2], 42);
    EXPECT_EQ(margins[16], 42);
    EXPECT_EQ(encode(hash, n, good), expected);
}

TEST(KernelHash, Untrained) {
    for (bool structured : {false, true}) {
        ShiftInvariantHash hash(
                4, 16, GaussianKernel(), 1234, proj_of(structured));
        EXPECT_FALSE(hash.is_trained);
        EXPECT_FALSE(hash.projection);
        const std::vector<float> x = normal_vectors(60, 4, 1);
        uint8_t code[2];
        float margins[16];
        for (const std::function<void()>& call :
             {std::function<void()>([&] { hash.encode(1, x.data(), code); }),
              std::function<void()>([&] { hash.encode(0, x.data(), code); }),
              std::function<void()>(
                      [&] { hash.apply_noalloc(1, x.data(), margins); })}) {
            EXPECT_TRUE(contains(message_of(call), "not trained"));
        }
        hash.train(60, x.data());
        EXPECT_TRUE(hash.is_trained);
        EXPECT_TRUE(hash.projection);
        hash.encode(1, x.data(), code);
    }
}

TEST(KernelHash, BadShapes) {
    for (int nbits : {0, -8, 7, 12, 1}) {
        EXPECT_TRUE(contains(message_of([&] { make_hash(4, nbits); }), "bits"));
    }
    for (int d : {0, -1}) {
        EXPECT_TRUE(
                contains(message_of([&] { make_hash(d, 8); }), "dimension"));
    }
}

TEST(KernelHash, CheckIdentical) {
    const ShiftInvariantHash hash = make_hash(6, 32, 5);
    make_hash(6, 32, 5).check_identical(hash);
    hash.check_identical(hash);
    hash.clone()->check_identical(hash);
    const std::vector<ShiftInvariantHash> others = {
            make_hash(6, 32, 6),
            make_hash(7, 32, 5),
            make_hash(6, 40, 5),
            make_hash(6, 32, 5, false),
            ShiftInvariantHash(6, 32, GaussianKernel(0.25), 5),
            ShiftInvariantHash(6, 32, GaussianKernel(), 5),
            ShiftInvariantHash(6, 32, LaplacianKernel(0.5), 5),
            ShiftInvariantHash(6, 32, MaternKernel(1.5, 0.5), 5),
            ShiftInvariantHash(6, 32, MaternKernel(2.5, 0.5), 5)};
    for (size_t i = 0; i < others.size(); i++) {
        EXPECT_FALSE(
                message_of([&] { hash.check_identical(others[i]); }).empty())
                << i;
        EXPECT_FALSE(
                message_of([&] { others[i].check_identical(hash); }).empty())
                << i;
    }
    // one number changed by hand
    ShiftInvariantHash changed = hash;
    changed.offset[31] += 0.1f;
    EXPECT_FALSE(message_of([&] { hash.check_identical(changed); }).empty());
    // another class
    const faiss::RandomRotationMatrix rotation(6, 32);
    EXPECT_FALSE(message_of([&] { hash.check_identical(rotation); }).empty());
}

TEST(KernelHash, CopiesAreDeep) {
    const size_t n = 9, d = 6;
    const std::vector<float> x = normal_vectors(n, d, 1);
    for (bool structured : {false, true}) {
        auto hash = std::make_unique<ShiftInvariantHash>(
                d, 32, MaternKernel(2.5, 0.3), 9, proj_of(structured));
        hash->verbose = true;
        hash->kernel->neighbor = 3;
        const std::vector<uint8_t> codes = encode(*hash, n, x);
        const ShiftInvariantHash copy = *hash;
        const std::unique_ptr<KernelHash> clone = hash->clone();
        EXPECT_NE(copy.kernel.get(), hash->kernel.get());
        EXPECT_NE(copy.projection.get(), hash->projection.get());
        hash.reset();
        for (const KernelHash* other :
             {static_cast<const KernelHash*>(&copy),
              static_cast<const KernelHash*>(clone.get())}) {
            EXPECT_EQ(other->d_in, int(d));
            EXPECT_EQ(other->d_out, 32);
            EXPECT_EQ(other->nbits, 32);
            EXPECT_TRUE(other->is_trained);
            EXPECT_TRUE(other->verbose);
            EXPECT_EQ(encode(*other, n, x), codes);
            const auto& sik = dynamic_cast<const ShiftInvariantHash&>(*other);
            EXPECT_EQ(sik.seed, 9);
            EXPECT_EQ(is_structured(sik.proj), structured);
            EXPECT_EQ(sik.kernel->gamma, 0.3);
            EXPECT_EQ(sik.kernel->neighbor, 3);
            EXPECT_EQ(dynamic_cast<MaternKernel&>(*sik.kernel).nu, 2.5);
        }
    }
    // of an untrained hash, and of an empty one
    EXPECT_FALSE(
            ShiftInvariantHash(4, 8, GaussianKernel()).clone()->is_trained);
    const ShiftInvariantHash empty;
    EXPECT_EQ(ShiftInvariantHash(empty).kernel, nullptr);
}

TEST(KernelHash, Interrupt) {
    struct Always : faiss::InterruptCallback {
        bool want_interrupt() override {
            return true;
        }
    };
    struct Guard {
        Guard() {
            faiss::InterruptCallback::instance = std::make_unique<Always>();
        }
        ~Guard() {
            faiss::InterruptCallback::clear_instance();
        }
    };
    const ThreadCount threads(1);
    const ShiftInvariantHash hash = make_hash(4, 16);
    const std::vector<float> x = normal_vectors(1000, 4, 1);
    std::vector<uint8_t> codes(2000);
    std::vector<float> out(10000);
    {
        const Guard guard;
        for (const std::function<void()>& call :
             {std::function<void()>(
                      [&] { hash.encode(1000, x.data(), codes.data()); }),
              std::function<void()>([&] {
                  GaussianKernel(1).gram(
                          1000, x.data(), 10, x.data(), 4, out.data());
              })}) {
            // a thread asks ten times a second
            std::this_thread::sleep_for(std::chrono::milliseconds(150));
            EXPECT_TRUE(contains(message_of(call), "interrupted"));
        }
    }
    hash.encode(1000, x.data(), codes.data());
    EXPECT_EQ(codes, encode(hash, 1000, x));
}

namespace {

/// The radius of the protocol, by its definition and in double precision.
double brute_force_radius(
        bool l1,
        size_t n,
        const std::vector<float>& x,
        size_t d,
        size_t neighbor = 50) {
    const KernelCase norm = {l1 ? "laplacian" : "gaussian"};
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        std::vector<double> distances;
        for (size_t j = 0; j < n; j++) {
            if (j != i) {
                distances.push_back(distance(norm, &x[i * d], &x[j * d], d));
            }
        }
        std::sort(distances.begin(), distances.end());
        sum += distances[std::min(neighbor, distances.size()) - 1];
    }
    return sum / n;
}

} // namespace

// A distance errs by (d + 4) units relatively, and so does a quantile of
// distances; gamma by twice as much at most.
TEST(ShiftInvariantHash, AutomaticBandwidth) {
    for (const std::string kernel :
         {"gaussian",
          "gaussian,proj=dense",
          "laplacian",
          "matern",
          "matern,nu=0.8"}) {
        for (size_t n : {2, 3, 40, 50, 51, 52, 300}) {
            for (size_t d : {1, 6}) {
                const std::vector<float> x = normal_vectors(n, d, n + d, 3);
                const bool l1 = kernel == "laplacian";
                const double radius = brute_force_radius(l1, n, x, d);
                const double gamma = l1 ? 1 / radius : 1 / (radius * radius);
                auto hash = kernel_hash_factory(d, "SIK64(" + kernel + ")");
                EXPECT_FALSE(hash->is_trained);
                hash->train(n, x.data());
                EXPECT_TRUE(hash->is_trained);
                auto& sik = dynamic_cast<ShiftInvariantHash&>(*hash);
                EXPECT_TRUE(sik.kernel->is_trained);
                EXPECT_NEAR(
                        sik.kernel->gamma,
                        gamma,
                        2 * (d + 6) * float_unit * gamma)
                        << kernel << ", n = " << n << ", d = " << d;
                // codes are those of a hash that got this bandwidth
                const auto given = sik.kernel->clone();
                auto& kernel_given =
                        dynamic_cast<ShiftInvariantKernel&>(*given);
                kernel_given.auto_gamma = false;
                EXPECT_EQ(
                        encode(*hash, n, x),
                        encode(ShiftInvariantHash(
                                       d, 64, kernel_given, 1234, sik.proj),
                               n,
                               x));
            }
        }
    }
}

// `neighbor` and the size of the sample are the kernel's.
TEST(ShiftInvariantHash, BandwidthParameters) {
    const size_t n = 80, d = 3;
    const std::vector<float> x = normal_vectors(n, d, 4);
    for (int neighbor : {1, 5, 79}) {
        ShiftInvariantHash hash(d, 8, GaussianKernel());
        hash.kernel->neighbor = neighbor;
        hash.train(n, x.data());
        const double radius = brute_force_radius(false, n, x, d, neighbor);
        EXPECT_NEAR(
                hash.kernel->gamma * radius * radius,
                1,
                2 * (d + 6) * float_unit);
    }
}

// What training cannot use ends in an error that names the problem, and leaves
// the hash as it was.
TEST(ShiftInvariantHash, TrainingErrors) {
    const size_t n = 100, d = 4;
    const std::vector<float> good = normal_vectors(n, d, 4);
    const std::vector<float> same(n * d, 1.5f);
    std::vector<float> bad = good;
    bad[7] = nan_value;
    for (const char* kernel :
         {"gaussian", "gaussian,proj=dense", "laplacian", "matern(nu=0.8)"}) {
        auto hash =
                kernel_hash_factory(d, "SIK32(" + std::string(kernel) + ")");
        const auto failures = [&] {
            std::string text;
            text = message_of([&] { hash->train(1, good.data()); });
            EXPECT_TRUE(contains(text, "at least 2")) << text;
            text = message_of([&] { hash->train(0, nullptr); });
            EXPECT_TRUE(contains(text, "at least 2")) << text;
            text = message_of([&] { hash->train(n, same.data()); });
            EXPECT_TRUE(contains(text, "the same")) << text;
            text = message_of([&] { hash->train(2, same.data()); });
            EXPECT_TRUE(contains(text, "the same")) << text;
            text = message_of([&] { hash->train(n, bad.data()); });
            EXPECT_TRUE(contains(text, "component 3 of vector 1")) << text;
            text = message_of([&] { hash->train(n, nullptr); });
            EXPECT_TRUE(contains(text, "null")) << text;
            text = message_of([&] { hash->train(-2, good.data()); });
            EXPECT_TRUE(contains(text, "-2")) << text;
        };
        failures();
        EXPECT_FALSE(hash->is_trained);
        std::vector<uint8_t> codes(n * 4);
        EXPECT_TRUE(contains(
                message_of([&] { hash->encode(n, good.data(), codes.data()); }),
                "not trained"));
        // still usable
        hash->train(n, good.data());
        EXPECT_TRUE(hash->is_trained);
        codes = encode(*hash, n, good);
        // an error in training again leaves the codes as they were
        EXPECT_NE(message_of([&] { hash->train(n, bad.data()); }), "");
        EXPECT_TRUE(hash->is_trained);
        EXPECT_EQ(encode(*hash, n, good), codes);
    }
}

// KernelHash: every function that takes vectors refuses those that are not
// finite, even where there is nothing to train.
TEST(ShiftInvariantHash, TrainingChecksVectorsWithGivenBandwidth) {
    ShiftInvariantHash hash = make_hash(2, 8);
    const std::vector<float> bad = {1, 2, nan_value, 3};
    EXPECT_FALSE(message_of([&] { hash.train(2, bad.data()); }).empty());
}

// With a bandwidth there is nothing to train, and training changes nothing.
TEST(ShiftInvariantHash, GivenBandwidthStays) {
    ShiftInvariantHash hash = make_hash(3, 64);
    const ShiftInvariantHash before = hash;
    EXPECT_TRUE(hash.is_trained);
    const std::vector<float> x = normal_vectors(100, 3, 1);
    hash.train(100, x.data());
    hash.check_identical(before);
    EXPECT_EQ(hash.kernel->gamma, 0.5);
}

// Training again on other vectors sets the bandwidth again.
TEST(ShiftInvariantHash, TrainingAgain) {
    const std::vector<float> x = normal_vectors(100, 3, 1);
    const std::vector<float> y = normal_vectors(100, 3, 1, 2); // twice as far
    ShiftInvariantHash hash(3, 64, GaussianKernel());
    hash.train(100, x.data());
    const double gamma = hash.kernel->gamma;
    const std::vector<uint8_t> codes = encode(hash, 100, x);
    hash.train(100, y.data()); // what is trained stays as it is
    EXPECT_EQ(hash.kernel->gamma, gamma);
    EXPECT_EQ(encode(hash, 100, x), codes);
}

// Vectors of any size: the bandwidth is that of the protocol, or training says
// that it cannot be had. It can be written to a file and read back.
TEST(ShiftInvariantHash, FrequenciesMustBeFloats) {
    for (const char* kernel :
         {"gaussian", "gaussian,proj=dense", "laplacian"}) {
        const std::string string = "SIK32(" + std::string(kernel) + ",gamma=";
        const std::string message =
                message_of([&] { kernel_hash_factory(4, string + "1e200)"); });
        EXPECT_TRUE(contains(message, "too large for codes")) << message;
        EXPECT_TRUE(kernel_hash_factory(4, string + "1e20)"));
    }
}

TEST(ShiftInvariantHash, BandwidthOfSmallAndLargeVectors) {
    const size_t n = 70, d = 3;
    for (const char* kernel :
         {"gaussian", "gaussian,proj=dense", "laplacian", "matern"}) {
        for (double size : {1e-25, 1e-17, 1e-10, 1e10, 1e17, 1e25}) {
            const std::vector<float> x = normal_vectors(n, d, 5, size);
            const bool l1 = kernel == std::string("laplacian");
            auto hash = kernel_hash_factory(
                    d, "SIK32(" + std::string(kernel) + ")");
            auto& sik = dynamic_cast<ShiftInvariantHash&>(*hash);
            const std::string where =
                    kernel + (", size " + std::to_string(std::log10(size)));
            try {
                hash->train(n, x.data());
            } catch (const faiss::FaissException& e) {
                // squares leave the range of float
                EXPECT_FALSE(contains(e.what(), "all the same"))
                        << where << ": " << e.what();
                EXPECT_TRUE(!l1 && (size < 1e-20 || size > 1e18)) << where;
                EXPECT_FALSE(hash->is_trained) << where;
                continue;
            }
            const double radius = brute_force_radius(l1, n, x, d);
            const double gamma = l1 ? 1 / radius : 1 / (radius * radius);
            EXPECT_NEAR(
                    sik.kernel->gamma, gamma, 2 * (d + 6) * float_unit * gamma)
                    << where;
            try {
                const auto again = kernel_factory(sik.kernel->description());
                EXPECT_EQ(
                        dynamic_cast<ShiftInvariantKernel&>(*again).gamma,
                        sik.kernel->gamma)
                        << where;
            } catch (const faiss::FaissException& e) {
                ADD_FAILURE() << where << ": " << e.what();
            }
            for (float v : apply(*hash, n, x)) {
                EXPECT_TRUE(std::abs(v) <= 0.5) << where;
            }
        }
    }
}

TEST(ShiftInvariantHash, Strings) {
    const auto make = [](const std::string& text) {
        auto hash = kernel_hash_factory(5, text);
        return std::unique_ptr<ShiftInvariantHash>(
                dynamic_cast<ShiftInvariantHash*>(hash.release()));
    };
    auto hash = make("SIK512(gaussian,gamma=0.02,seed=1)");
    ASSERT_NE(hash, nullptr);
    EXPECT_EQ(hash->nbits, 512);
    EXPECT_EQ(hash->d_in, 5);
    EXPECT_EQ(hash->seed, 1);
    EXPECT_EQ(hash->kernel->gamma, 0.02);
    EXPECT_TRUE(hash->is_trained);
    EXPECT_NE(dynamic_cast<GaussianKernel*>(hash->kernel.get()), nullptr);
    hash->check_identical(ShiftInvariantHash(5, 512, GaussianKernel(0.02), 1));
    hash->check_identical(*make("SIK512(gaussian(gamma=0.02),seed=1)"));

    hash = make("SIK512(laplacian)");
    EXPECT_EQ(hash->seed, 1234);
    EXPECT_FALSE(hash->is_trained);
    EXPECT_NE(dynamic_cast<LaplacianKernel*>(hash->kernel.get()), nullptr);

    hash = make("SIK256(matern,nu=2.5,gamma=auto,proj=dense)");
    EXPECT_FALSE(hash->is_trained);
    EXPECT_FALSE(is_structured(hash->proj));
    EXPECT_EQ(dynamic_cast<MaternKernel&>(*hash->kernel).nu, 2.5);

    // the form, by default the structured one where there is one
    EXPECT_TRUE(is_structured(make("SIK8(gaussian)")->proj));
    EXPECT_TRUE(is_structured(make("SIK8(matern,proj=structured)")->proj));
    EXPECT_FALSE(is_structured(make("SIK8(gaussian,proj=dense)")->proj));
    EXPECT_FALSE(is_structured(make("SIK8(laplacian)")->proj));
    make("SIK8(laplacian,gamma=1,proj=dense)")
            ->check_identical(*make("SIK8(laplacian,gamma=1)"));
    make("SIK8(gaussian,gamma=1,proj=structured)")
            ->check_identical(*make("SIK8(gaussian,gamma=1)"));
    make("SIK8(gaussian,gamma=1,proj=dense)")
            ->check_identical(ShiftInvariantHash(
                    5, 8, GaussianKernel(1), 1234, proj_dense));
    // from C++ there is the dense one where there is no other
    EXPECT_FALSE(is_structured(
            ShiftInvariantHash(5, 8, LaplacianKernel(1), 1234, proj_structured)
                    .proj));
    std::string error =
            message_of([&] { make("SIK64(laplacian,proj=structured)"); });
    EXPECT_TRUE(contains(error, "accepted here: dense")) << error;
    EXPECT_TRUE(contains(error, "laplacian")) << error;
    error = message_of([&] { make("SIK64(gaussian,proj=sparse)"); });
    EXPECT_TRUE(contains(error, "'sparse'")) << error;
    EXPECT_TRUE(contains(error, "structured")) << error;
    EXPECT_TRUE(contains(error, "dense")) << error;
}
