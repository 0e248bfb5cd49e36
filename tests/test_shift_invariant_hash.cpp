// SPDX-License-Identifier: MIT
// ShiftInvariantHash (SIK) against the theory of Raginsky and Lazebnik 2009.

#include <faiss_ext/hashes/ShiftInvariantHash.h>

#include <cmath>
#include <functional>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

std::unique_ptr<ShiftInvariantHash> make(int d, const std::string& text) {
    return hash_as<ShiftInvariantHash>(d, text);
}

/// Returns proj=dense, and proj=structured if the kernel supports it.
std::vector<bool> forms_of(const KernelCase& c) {
    return c.l1() ? std::vector<bool>{false} : std::vector<bool>{false, true};
}

struct ExactFolds : ExactValues {
    std::vector<double> cosine; ///< cos(omega . x + b) + t

    /// The offset, the fold and the threshold each add a unit of numbers of at
    /// most |u| + 1 to the error of the product. The distance to the nearest
    /// integer changes by at most the change of its argument. The error of a
    /// dense product of d terms is at most (d + 4) units of the sum of their
    /// absolute values.
    ExactFolds(
            const ShiftInvariantHash& hash,
            const std::vector<float>& A,
            const float* x) {
        const size_t d = hash.d_in;
        for (int j = 0; j < hash.nbits; j++) {
            double u = hash.offset[j], absolute = 0;
            for (size_t k = 0; k < d; k++) {
                u += double(A[j * d + k]) * x[k];
                absolute += std::abs(double(A[j * d + k]) * x[k]);
            }
            const double t = hash.threshold[j];
            value.push_back(t - std::abs(u - std::round(u)));
            cosine.push_back(std::cos(2 * pi * u) - std::cos(2 * pi * t));
            const double product = is_structured(hash.proj)
                    ? product_error(*hash.projection, j, 0, length(x, d))
                    : float_unit * (d + 4) * absolute;
            bound.push_back(product + float_unit * (std::abs(u) + 3));
        }
    }
};

struct ShiftInvariantHashes : testing::TestWithParam<KernelCase> {
    const KernelCase& c = GetParam();
};

} // namespace

// Hamming distances of near and far pairs, along an axis or not, agree with
// h_K. Bits are independent with proj=dense and proj=generated. A frequency of
// one dimension is generated from a distribution within 5.3e-4 of the true one,
// and a bit changes with it at most twice a turn.
TEST_P(ShiftInvariantHashes, HammingAgreesWithTheory) {
    using Kind = ProjectionChoice::Kind;
    const int nbits = 8192;
    for (auto [d, proj] : std::vector<std::pair<size_t, Kind>>{
                 {1, Kind::dense},
                 {33, Kind::dense},
                 {1, Kind::generated},
                 {33, Kind::generated}}) {
        const double away = proj == Kind::generated ? 1e-3 : 0;
        const double gamma = d > 1 ? 0.02 : 3.1, scale = c.scale(gamma);
        const auto kernel = c.make(gamma);
        const ShiftInvariantHash hash(d, nbits, *kernel, 100 + d, proj);
        const std::vector<float> A = hash.projection->matrix();
        const std::vector<float> x = normal_vectors(1, d, d, 1 / (scale * d));
        const size_t first = ExactFolds(hash, A, &x[0]).doubtful();
        bool axis = false;
        for (double r : {1e-6, 0.02, 0.1, 0.4, 0.5, 1.0, 2.0, 4.0, 30.0}) {
            std::vector<float> y = normal_vectors(1, d, d + 1), zero(d);
            if (axis) {
                y = zero;
                y[d / 2] = -1;
            }
            axis = !axis;
            const double far = r / scale / distance(c, &y[0], &zero[0], d);
            for (size_t k = 0; k < d; k++) {
                y[k] = float(x[k] + far * y[k]);
            }
            const auto [low, high] =
                    series(c, scale * distance(c, &x[0], &y[0], d));
            const auto differ = differing_bits(hash, x, y);
            const auto ham = std::count(differ.begin(), differ.end(), true);
            const size_t doubtful =
                    first + ExactFolds(hash, A, &y[0]).doubtful();
            EXPECT_TRUE(
                    plausible(ham, nbits, low - away, high + away, doubtful))
                    << "d = " << d << ", r = " << r << ": Hamming " << ham
                    << ", expected " << low * nbits << " to " << high * nbits
                    << ", doubtful " << doubtful;
            EXPECT_LT(doubtful, 0.01 * nbits); // the test is meaningful
        }
    }
}

// Estimates invert the expected distance: |dh / dK| >= 8 / (3 pi^2), since
// K(delta) has this weight, and K(m delta) increases with it. h is a sum of
// fewer than 8000 terms, whose rounding moves it by at most 8000 / 2^53, and
// terms with K < 1e-16 are dropped.
TEST_P(ShiftInvariantHashes, ExpectedHamming) {
    const ShiftInvariantHash hash(1, 8, *c.make(1));
    const double bound = 3 * pi * pi / 8 * (8000 * 0x1p-53 + 1e-16);
    for (double r : {1e-5, 1e-3, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0}) {
        SCOPED_TRACE(r);
        const double k = hash.kernel->profile(r);
        const double h = hash.expected_hamming(k) / 8;
        // at small r, K does not determine r to 1e-9 of h
        const auto [low, high] = series(c, hash.kernel->inverse_profile(k));
        const auto [least, most] = hash.hamming_bounds(k);
        EXPECT_GE(h, std::max(low, least / 8) - 1e-9);
        EXPECT_LE(h, std::min(high, most / 8) + 1e-9);
        EXPECT_NEAR(hash.kernel_estimate(8 * h), k, bound);
    }
    const double most = 4 / (pi * pi);
    EXPECT_NEAR(hash.expected_hamming(0), 8 * most, 1e-11);
    EXPECT_NEAR(hash.expected_hamming(1), 0, 1e-8);
    EXPECT_EQ(hash.kernel_estimate(0), 1);
    EXPECT_EQ(hash.kernel_estimate(8 * most + 1e-9), 0);
    EXPECT_EQ(hash.kernel_estimate(8), 0);
}

// The bit without a cosine is the bit of equation 2, up to rounding.
TEST_P(ShiftInvariantHashes, MarginsAreThoseOfTheCosine) {
    const int nbits = 1000;
    const size_t n = 5;
    for (size_t d : {1, 16, 33}) {
        for (bool structured : forms_of(c)) {
            const ShiftInvariantHash hash(
                    d, nbits, *c.make(0.4), 7, proj_of(structured));
            const std::vector<float> A = hash.projection->matrix();
            const std::vector<float> x = normal_vectors(n, d, d, 2);
            const std::vector<float> margins = applied(hash, x);
            size_t doubtful = 0;
            for (size_t i = 0; i < n; i++) {
                const ExactFolds exact(hash, A, &x[i * d]);
                doubtful += exact.doubtful();
                for (int j = 0; j < nbits; j++) {
                    const double margin = margins[i * nbits + j];
                    ASSERT_NEAR(margin, exact.value[j], exact.bound[j]);
                    ASSERT_LE(std::abs(margin), 0.5);
                    if (std::abs(exact.value[j]) > exact.bound[j]) {
                        ASSERT_EQ(margin >= 0, exact.cosine[j] >= 0);
                    }
                }
            }
            // |r| is uniform on [0, 1/2], so that a margin is doubtful with
            // probability 4 * bound, which is 1e-4 or so for most bits
            EXPECT_LT(doubtful, 0.01 * n * nbits);
        }
    }
}

// With proj=dense and proj=generated, the rows of the projection times 2 pi, at
// gamma = 1, follow the spectral density. This is tested for the distribution
// of coordinates, and in two dimensions for length and direction. There
// P(|omega|^2 > s) = (1 + s / (2 nu))^-nu for Student's t with 2 nu degrees of
// freedom, and exp(-s / 2) for the normal distribution; the direction is
// uniform.
TEST_P(ShiftInvariantHashes, DistributionOfFrequencies) {
    using Kind = ProjectionChoice::Kind;
    const size_t nbits = 8192;
    const double gamma = 6.25;
    Kind proj = Kind::dense;
    const auto frequencies = [&](int d, int seed) {
        const auto kernel = c.make(gamma);
        const ShiftInvariantHash hash(d, nbits, *kernel, seed, proj);
        return scaled(hash.projection->matrix(), 2 * pi / c.scale(gamma));
    };
    std::function<double(double)> cdf;
    if (c.name == "gaussian") {
        cdf = normal_cdf;
    } else if (c.l1() || c.nu == 0.5) {
        cdf = [](double w) { return 0.5 + std::atan(w) / pi; };
    } else if (c.nu == 1.5) { // Student's t with 3 degrees of freedom
        cdf = [](double w) {
            const double s = w / std::sqrt(3);
            return 0.5 + (s / (1 + s * s) + std::atan(s)) / pi;
        };
    }
    const auto squared_cdf = [&](double s) {
        return c.nu ? 1 - std::pow(1 + s / (2 * c.nu), -c.nu)
                    : 1 - std::exp(-s / 2);
    };
    for (Kind kind : {Kind::dense, Kind::generated}) {
        proj = kind;
        // of the distribution functions of one generated number and of two
        const bool is_generated = kind == Kind::generated;
        const double more = is_generated ? 5.3e-4 : 1e-6, both = 2 * more;
        const std::vector<float> A = frequencies(3, 5), B = frequencies(2, 6);
        for (size_t k = 0; cdf && k < 3; k++) {
            std::vector<double> sample;
            for (size_t i = 0; i < nbits; i++) {
                sample.push_back(A[i * 3 + k]);
            }
            EXPECT_TRUE(follows(sample, cdf, more)) << "coordinate " << k;
        }
        std::vector<double> squared, angle;
        for (size_t i = 0; i < nbits; i++) {
            squared.push_back(dot_product(&B[i * 2], &B[i * 2], 2));
            angle.push_back(std::atan2(B[i * 2 + 1], B[i * 2]));
        }
        const auto uniform = [](double a) { return 0.5 + a / (2 * pi); };
        if (!c.l1()) {
            EXPECT_TRUE(follows(squared, squared_cdf, both));
            EXPECT_TRUE(follows(angle, uniform, both));
        }
    }
}

// Changing the bandwidth gives the bits of scaled vectors; a power of 2 does
// not change rounding. Offsets and thresholds stay the same.
TEST_P(ShiftInvariantHashes, BandwidthScalesTheProjection) {
    for (bool structured : forms_of(c)) {
        const auto proj = proj_of(structured);
        const ShiftInvariantHash one(9, 64, *c.make(1), 4, proj);
        const ShiftInvariantHash other(9, 64, *c.make(16), 4, proj);
        EXPECT_EQ(
                other.projection->matrix(),
                scaled(one.projection->matrix(), float(c.scale(16))));
        EXPECT_EQ(one.offset, other.offset);
        EXPECT_EQ(one.threshold, other.threshold);
    }
}

INSTANTIATE_TEST_SUITE_P(
        Kernels,
        ShiftInvariantHashes,
        testing::ValuesIn(kernel_cases()),
        [](const auto& info) { return case_name(info.param); });

// b / 2 pi is uniform on [0, 1]. With t uniform on [-1, 1], the threshold T =
// acos(-t) / 2 pi has P(T <= x) = (1 - cos(2 pi x)) / 2 on [0, 1/2]. The two
// are independent, and so are the signs of their deviations from medians.
TEST(ShiftInvariantHash, DistributionOfOffsetsAndThresholds) {
    const size_t nbits = 8192;
    const ShiftInvariantHash hash(2, nbits, GaussianKernel(1), 8);
    const auto &b = hash.offset, &t = hash.threshold;
    ASSERT_EQ(b.size(), nbits);
    ASSERT_EQ(t.size(), nbits);
    size_t same = 0;
    for (size_t i = 0; i < nbits; i++) {
        EXPECT_TRUE(b[i] >= 0 && b[i] <= 1 && t[i] >= 0 && t[i] <= 0.5);
        same += (b[i] > 0.5) == (t[i] > 0.25);
    }
    EXPECT_TRUE(plausible(same, nbits, 0.5, 0.5));
    EXPECT_TRUE(follows({b.begin(), b.end()}, [](double x) { return x; }));
    EXPECT_TRUE(follows({t.begin(), t.end()}, [](double x) {
        return (1 - std::cos(2 * pi * x)) / 2;
    }));
    const ShiftInvariantHash dense(2, nbits, GaussianKernel(1), 8, proj_dense);
    EXPECT_EQ(dense.offset, b);
    EXPECT_EQ(dense.threshold, t);
}

TEST(ShiftInvariantHash, Lemma23) {
    const ShiftInvariantHash hash(1, 8, GaussianKernel(1));
    const auto lower = [&](double u) { return hash.hamming_bounds(u).first; };
    const auto upper = [&](double u) { return hash.hamming_bounds(u).second; };
    EXPECT_EQ(lower(1), 0);
    EXPECT_EQ(upper(1), 0);
    EXPECT_NEAR(lower(0.25), 8 * 3 / (pi * pi), 1e-14);
    // the linear branch, and the root
    EXPECT_NEAR(upper(0.3), 8 * 4 / (pi * pi) * (1 - 0.2), 1e-14);
    EXPECT_NEAR(upper(0.91), 8 * 0.15, 1e-14);
    for (double u : {-2e-4, 1 + 2e-4, HUGE_VAL, std::nan("")}) {
        EXPECT_TRUE(throws([&] { lower(u); }, "kernel value"));
        EXPECT_TRUE(throws([&] { hash.expected_hamming(u); }, "kernel value"));
    }
}

// A rough kernel is nearly vertical at 0: at nu = 0.1, K = 0.9999 is near r =
// 1e-20. The bound is explained at ExpectedHamming.
TEST(ShiftInvariantHash, SmallSmoothness) {
    const ShiftInvariantHash hash(3, 64, MaternKernel(0.1, 1));
    EXPECT_NEAR(hash.expected_hamming(1), 0, 64e-9);
    EXPECT_EQ(hash.kernel_estimate(0), 1);
    for (double k : {0.1, 0.9999, 0.999999}) {
        EXPECT_NEAR(hash.kernel_estimate(hash.expected_hamming(k)), k, 4e-12);
    }
}

// gamma comes from the mean distance to the neighbour (kernel->neighbor),
// computed by brute force. The relative error of a distance is (d + 4) units,
// and of gamma at most twice as much. Codes equal those of a hash with this
// bandwidth. If squares leave the range of float, training throws.
TEST(ShiftInvariantHash, AutomaticBandwidth) {
    const size_t n = 70, d = 6;
    for (const std::string kernel :
         {"gaussian", "gaussian,proj=dense", "laplacian", "matern,nu=0.8"}) {
        const KernelCase norm = {
                kernel == "laplacian" ? "laplacian" : "gaussian"};
        for (auto [size, neighbor] :
             {std::pair(1.0, 50), {1e17, 69}, {1e-17, 1}, {1e25, 1}}) {
            SCOPED_TRACE(kernel + " of size " + std::to_string(size));
            const std::vector<float> x = normal_vectors(n, d, 5, size);
            const auto hash = make(d, "SIK64(" + kernel + ")");
            EXPECT_EQ(hash->kernel->neighbor, 50);
            hash->kernel->neighbor = neighbor;
            if (size == 1e25 && !norm.l1()) {
                EXPECT_TRUE(throws([&] { hash->train(n, x.data()); }));
                continue;
            }
            hash->train(n, x.data());
            double radius = 0;
            for (size_t i = 0; i < n; i++) {
                std::vector<double> all;
                for (size_t j = 0; j < n; j++) {
                    all.push_back(distance(norm, &x[i * d], &x[j * d], d));
                }
                std::sort(all.begin(), all.end());
                radius += all[neighbor] / n; // 0 is the vector itself
            }
            const double gamma = norm.l1() ? 1 / radius : 1 / (radius * radius);
            const double bound = 2 * (d + 6) * float_unit * gamma;
            EXPECT_NEAR(hash->kernel->gamma, gamma, bound);
            for (float v : applied(*hash, x)) {
                EXPECT_LE(std::abs(v), 0.5);
            }
            const ShiftInvariantHash given(
                    d, 64, *hash->kernel, 1234, hash->proj);
            EXPECT_EQ(codes_of(*hash, x), codes_of(given, x));
        }
    }
}

TEST(ShiftInvariantHash, TrainingErrors) {
    const std::vector<float> x = normal_vectors(2, 4, 4), same(8, 1.5f);
    for (const std::string kernel :
         {"gaussian", "gaussian,proj=dense", "laplacian"}) {
        const std::string text = "SIK32(" + kernel;
        const auto hash = make(4, text + ")");
        EXPECT_TRUE(throws([&] { hash->train(1, x.data()); }, "at least 2"));
        EXPECT_TRUE(throws([&] { hash->train(2, same.data()); }, "same"));
        EXPECT_FALSE(hash->kernel->is_trained);
        make(4, text + ",gamma=1e20)");
        EXPECT_TRUE(throws([&] { make(4, text + ",gamma=1e200)"); }, "large"));
    }
}

TEST(ShiftInvariantHash, Strings) {
    const auto same = [](const std::string& text, auto&&... arguments) {
        const ShiftInvariantHash hash(5, arguments...);
        make(5, text)->check_identical(hash);
    };
    const MaternKernel matern(2.5, 1);
    const LaplacianKernel laplacian(1);
    same("SIK512(gaussian,gamma=0.02,seed=1)", 512, GaussianKernel(0.02), 1);
    same("SIK256(matern(nu=2.5,gamma=1),proj=dense)",
         256,
         matern,
         1234,
         proj_dense);
    // frequencies of the L1 norm have only one form
    same("SIK8(laplacian,gamma=1)", 8, laplacian, 1234, proj_structured);
    EXPECT_FALSE(is_structured(make(5, "SIK8(laplacian,gamma=1)")->proj));
    EXPECT_TRUE(is_structured(make(5, "SIK8(matern,gamma=1)")->proj));
    EXPECT_TRUE(
            throws([] { make(5, "SIK64(laplacian,proj=structured)"); },
                   "dense",
                   "laplacian"));
}

TEST(KernelHash, Interrupt) {
    const ShiftInvariantHash hash(4, 16, GaussianKernel(0.5));
    const GaussianKernel kernel(1);
    const std::vector<float> x = normal_vectors(1000, 4, 1);
    const std::vector<uint8_t> codes = codes_of(hash, x);
    EXPECT_TRUE(interrupted_at(1, [&] { codes_of(hash, x); }));
    std::vector<float> K(10000);
    EXPECT_TRUE(interrupted_at(1, [&] {
        kernel.gram(1000, x.data(), 10, x.data(), 4, K.data());
    }));
    EXPECT_EQ(codes_of(hash, x), codes);
}
