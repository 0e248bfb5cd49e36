// ShiftInvariantHash (SIK) against the theory of Raginsky and Lazebnik 2009.

#include <faiss_ext/hashes/ShiftInvariantHash.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <thread>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

std::unique_ptr<ShiftInvariantHash> make(int d, const std::string& text) {
    auto hash = kernel_hash_factory(d, text);
    return std::unique_ptr<ShiftInvariantHash>(
            &dynamic_cast<ShiftInvariantHash&>(*hash.release()));
}

/// proj=dense, and proj=structured where the kernel has it
std::vector<bool> forms_of(const KernelCase& c) {
    return c.l1() ? std::vector<bool>{false} : std::vector<bool>{false, true};
}

/// The margins of one vector in double precision, and how far the library's may
/// be from them.
struct ExactFolds {
    std::vector<double> value, bound;
    std::vector<double> cosine; ///< cos(omega . x + b) + t

    /// The offset, the fold and the threshold add one unit each of numbers at
    /// most |u| + 1 to the error of the product. The distance to the nearest
    /// integer changes by no more than its argument. A dense product of d terms
    /// errs by at most (d + 4) units of the sum of their absolute values.
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
            const double threshold = hash.threshold[j];
            value.push_back(threshold - std::abs(u - std::round(u)));
            cosine.push_back(
                    std::cos(2 * pi * u) - std::cos(2 * pi * threshold));
            const double product = is_structured(hash.proj)
                    ? product_error(*hash.projection, j, 0, length(x, d))
                    : float_unit * (d + 4) * absolute;
            bound.push_back(product + float_unit * (std::abs(u) + 3));
        }
    }

    /// number of bits that rounding may decide
    size_t doubtful() const {
        size_t count = 0;
        for (size_t j = 0; j < value.size(); j++) {
            count += std::abs(value[j]) <= bound[j];
        }
        return count;
    }
};

struct ShiftInvariantHashes : testing::TestWithParam<KernelCase> {
    const KernelCase& c = GetParam();
};

} // namespace

// Hamming distances of pairs from near to far against h_K; bits are independent
// with proj=dense.
TEST_P(ShiftInvariantHashes, HammingAgreesWithTheory) {
    const std::vector<double> distances = {1e-6, 0.01, 0.1, 0.4, 1, 2, 4, 30};
    for (size_t d : {1, 17, 64}) {
        const int nbits = 8192;
        const double gamma = d % 2 ? 3.1 : 0.02;
        const ShiftInvariantHash hash(
                d, nbits, *c.make(gamma), 100 + d, proj_dense);
        const std::vector<float> A = hash.projection->matrix();
        std::vector<float> x =
                normal_vectors(1, d, d, 1 / (c.scale(gamma) * d));
        const std::vector<float> origin(d);
        for (size_t i = 0; i < 2 * distances.size(); i++) {
            std::vector<float> direction = normal_vectors(1, d, d + 1 + i);
            if (i % 2) { // along one axis
                std::fill_n(direction.begin(), d, 0);
                direction[i % d] = -1;
            }
            const double far = distances[i / 2] / c.scale(gamma) /
                    distance(c, direction.data(), origin.data(), d);
            for (size_t k = 0; k < d; k++) {
                x.push_back(float(x[k] + far * direction[k]));
            }
        }
        const std::vector<uint8_t> codes = codes_of(hash, x);
        const size_t first = ExactFolds(hash, A, &x[0]).doubtful();
        for (size_t i = 1; i < x.size() / d; i++) {
            const double r = c.scale(gamma) * distance(c, &x[0], &x[i * d], d);
            const auto [low, high] = series(c, r);
            const size_t ham = hamming(codes, nbits / 8, 0, i);
            const size_t doubtful =
                    first + ExactFolds(hash, A, &x[i * d]).doubtful();
            EXPECT_TRUE(plausible(ham, nbits, low, high, doubtful))
                    << "d = " << d << ", r = " << r << ": Hamming " << ham
                    << ", expected " << low * nbits << " to " << high * nbits
                    << ", doubtful " << doubtful;
            EXPECT_LT(
                    doubtful, 0.01 * nbits); // so that the test says something
        }
    }
}

TEST_P(ShiftInvariantHashes, ExpectedHammingAgreesWithSeries) {
    const ShiftInvariantHash hash(1, 8, *c.make(1));
    for (double r : {1e-5, 1e-3, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0}) {
        const double k = hash.kernel->profile(r);
        const double h = hash.expected_hamming(k) / 8;
        // at small r, K does not tell r to 1e-9 of h
        const auto [low, high] = series(c, hash.kernel->inverse_profile(k));
        EXPECT_GE(h, low - 1e-9) << "r = " << r;
        EXPECT_LE(h, high + 1e-9) << "r = " << r;
    }
}

// Estimates invert it: |dh / dK| >= 8 / (3 pi^2), since K(delta) has that
// weight, and K(m delta) rises with it. h is a sum of less than 8000 terms,
// whose rounding moves it by at most 8000 / 2^53, and terms in K < 1e-16 are
// dropped.
TEST_P(ShiftInvariantHashes, ExpectedHammingDecreasesBetweenItsBounds) {
    const int nbits = 512;
    const ShiftInvariantHash hash(1, nbits, *c.make(1));
    const double bound = 3 * pi * pi / 8 * (8000 * 0x1p-53 + 1e-16);
    double before = HUGE_VAL;
    for (double k :
         {0.0, 1e-9, 1e-3, 0.3, 0.7, 0.99, 1 - 1e-6, 1 - 1e-9, 1.0}) {
        SCOPED_TRACE(k);
        const double h = hash.expected_hamming(k);
        EXPECT_GE(h / nbits, ShiftInvariantHash::lower_bound(k) - 1e-9);
        EXPECT_LE(h / nbits, ShiftInvariantHash::upper_bound(k) + 1e-9);
        EXPECT_LT(h, before);
        before = h;
        EXPECT_NEAR(hash.kernel_estimate(h), k, bound);
    }
    EXPECT_NEAR(hash.expected_hamming(0), nbits * 4 / (pi * pi), 1e-12 * nbits);
    EXPECT_NEAR(hash.expected_hamming(1), 0, 1e-9 * nbits);
    EXPECT_EQ(hash.kernel_estimate(0), 1);
    for (double h : {nbits * 4 / (pi * pi) + 1e-9, 208.0, 512.0}) {
        EXPECT_EQ(hash.kernel_estimate(h), 0) << "h = " << h;
    }
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

// With proj=dense. Rows of the projection times 2 pi, at gamma = 1, follow the
// spectral density: the distribution of their coordinates, and in two
// dimensions of the length and the direction.
TEST_P(ShiftInvariantHashes, DistributionOfFrequencies) {
    const size_t nbits = 16384;
    const double gamma = 6.25, scale = c.scale(gamma) / (2 * pi);
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
    const ShiftInvariantHash hash(3, nbits, *c.make(gamma), 5, proj_dense);
    const std::vector<float> A = hash.projection->matrix();
    for (size_t k = 0; cdf && k < 3; k++) {
        std::vector<double> sample;
        for (size_t i = 0; i < nbits; i++) {
            sample.push_back(A[i * 3 + k] / scale);
        }
        EXPECT_LT(
                kolmogorov_smirnov(sample, cdf),
                kolmogorov_smirnov_limit(nbits))
                << "coordinate " << k;
    }

    // In two dimensions, P(|omega|^2 > s) = (1 + s / (2 nu))^-nu for Student's
    // t with 2 nu degrees of freedom and exp(-s / 2) for the normal
    // distribution; the direction is uniform.
    const ShiftInvariantHash flat(2, nbits, *c.make(gamma), 6, proj_dense);
    const std::vector<float> B = flat.projection->matrix();
    std::vector<double> squared, angle;
    for (size_t i = 0; !c.l1() && i < nbits; i++) {
        const double a = B[i * 2] / scale, b = B[i * 2 + 1] / scale;
        squared.push_back(a * a + b * b);
        angle.push_back(std::atan2(b, a));
    }
    const auto squared_cdf = [&](double s) {
        return c.nu ? 1 - std::pow(1 + s / (2 * c.nu), -c.nu)
                    : 1 - std::exp(-s / 2);
    };
    const auto angle_cdf = [](double a) { return 0.5 + a / (2 * pi); };
    EXPECT_LT(
            kolmogorov_smirnov(squared, squared_cdf),
            kolmogorov_smirnov_limit(nbits));
    EXPECT_LT(
            kolmogorov_smirnov(angle, angle_cdf),
            kolmogorov_smirnov_limit(nbits));
}

// Bits of the projection in another bandwidth are those of scaled vectors: a
// power of 2 changes no rounding. Offsets and thresholds are the same.
TEST_P(ShiftInvariantHashes, BandwidthScalesTheProjection) {
    for (bool structured : forms_of(c)) {
        const auto proj = proj_of(structured);
        const ShiftInvariantHash one(9, 64, *c.make(1), 4, proj);
        const ShiftInvariantHash other(9, 64, *c.make(16), 4, proj);
        std::vector<float> A = one.projection->matrix();
        for (float& v : A) {
            v *= float(c.scale(16));
        }
        EXPECT_EQ(other.projection->matrix(), A);
        EXPECT_EQ(one.offset, other.offset);
        EXPECT_EQ(one.threshold, other.threshold);
    }
}

INSTANTIATE_TEST_SUITE_P(
        Kernels,
        ShiftInvariantHashes,
        testing::ValuesIn(kernel_cases()),
        [](const auto& info) { return case_name(info.param); });

// b / 2 pi is uniform on [0, 1]; with t uniform on [-1, 1], the threshold T =
// acos(-t) / 2 pi has P(T <= x) = (1 - cos(2 pi x)) / 2 on [0, 1/2]. The two
// are independent, and so are the signs of their deviations from medians.
TEST(ShiftInvariantHash, DistributionOfOffsetsAndThresholds) {
    const size_t nbits = 16384;
    const ShiftInvariantHash hash(2, nbits, GaussianKernel(1), 8);
    const auto& offset = hash.offset;
    const auto& threshold = hash.threshold;
    ASSERT_EQ(offset.size(), nbits);
    ASSERT_EQ(threshold.size(), nbits);
    size_t same = 0;
    for (size_t i = 0; i < nbits; i++) {
        EXPECT_TRUE(offset[i] >= 0 && offset[i] <= 1);
        EXPECT_TRUE(threshold[i] >= 0 && threshold[i] <= 0.5);
        same += (offset[i] > 0.5) == (threshold[i] > 0.25);
    }
    EXPECT_TRUE(plausible(same, nbits, 0.5, 0.5));
    EXPECT_LT(
            kolmogorov_smirnov(
                    {offset.begin(), offset.end()}, [](double x) { return x; }),
            kolmogorov_smirnov_limit(nbits));
    EXPECT_LT(
            kolmogorov_smirnov(
                    {threshold.begin(), threshold.end()},
                    [](double x) { return (1 - std::cos(2 * pi * x)) / 2; }),
            kolmogorov_smirnov_limit(nbits));
    const ShiftInvariantHash dense(2, nbits, GaussianKernel(1), 8, proj_dense);
    EXPECT_EQ(dense.offset, offset);
    EXPECT_EQ(dense.threshold, threshold);
}

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

TEST(ShiftInvariantHash, Lemma23) {
    const auto lower = ShiftInvariantHash::lower_bound;
    const auto upper = ShiftInvariantHash::upper_bound;
    EXPECT_EQ(lower(1), 0);
    EXPECT_EQ(upper(1), 0);
    EXPECT_NEAR(lower(0.25), 3 / (pi * pi), 1e-15);
    // the linear branch and the root
    EXPECT_NEAR(upper(0.3), 4 / (pi * pi) * (1 - 0.2), 1e-15);
    EXPECT_NEAR(upper(0.91), 0.15, 1e-15);
    const ShiftInvariantHash hash(1, 8, GaussianKernel(1));
    for (double u : {-2e-4, 1 + 2e-4, HUGE_VAL, std::nan("")}) {
        EXPECT_TRUE(throws([&] { lower(u); }, "kernel value"));
        EXPECT_TRUE(throws([&] { upper(u); }, "kernel value"));
        EXPECT_TRUE(throws([&] { hash.expected_hamming(u); }, "kernel value"));
    }
}

// A rough kernel is nearly vertical at 0: at nu = 0.1, K = 0.9999 is at r =
// 1e-20 or so.
TEST(ShiftInvariantHash, SmallSmoothness) {
    for (double nu : {0.1, 0.3}) {
        const ShiftInvariantHash hash(3, 64, MaternKernel(nu, 1));
        EXPECT_NEAR(hash.expected_hamming(1), 0, 64e-9) << "nu = " << nu;
        EXPECT_EQ(hash.kernel_estimate(0), 1) << "nu = " << nu;
        for (double k : {0.1, 0.9, 0.9999, 0.999999}) {
            // see ExpectedHammingDecreasesBetweenItsBounds
            EXPECT_NEAR(
                    hash.kernel_estimate(hash.expected_hamming(k)), k, 4e-12)
                    << "nu = " << nu << ", K = " << k;
        }
    }
}

// gamma is that of the mean distance to the neighbour (kernel->neighbor), by
// brute force; a distance errs by (d + 4) units relatively, and gamma by twice
// as much at most. Codes are those of a hash that got this bandwidth. Where
// squares leave the range of float, training says so.
TEST(ShiftInvariantHash, AutomaticBandwidth) {
    const size_t n = 70, d = 6;
    for (const char* kernel :
         {"gaussian", "gaussian,proj=dense", "laplacian", "matern,nu=0.8"}) {
        const KernelCase norm = {
                kernel == std::string("laplacian") ? "laplacian" : "gaussian"};
        for (auto [size, neighbor] :
             {std::pair<double, int>{1, 50},
              {1e17, 69},
              {1e-17, 1},
              {1e25, 1}}) {
            SCOPED_TRACE(kernel + (" of size " + std::to_string(size)));
            const std::vector<float> x = normal_vectors(n, d, 5, size);
            const auto hash = make(d, "SIK64(" + std::string(kernel) + ")");
            EXPECT_EQ(hash->kernel->neighbor, 50);
            hash->kernel->neighbor = neighbor;
            if (size == 1e25 && !norm.l1()) {
                EXPECT_TRUE(throws([&] { hash->train(n, x.data()); }));
                EXPECT_FALSE(hash->is_trained);
                continue;
            }
            hash->train(n, x.data());
            double radius = 0;
            for (size_t i = 0; i < n; i++) {
                std::vector<double> distances;
                for (size_t j = 0; j < n; j++) {
                    distances.push_back(
                            distance(norm, &x[i * d], &x[j * d], d));
                }
                std::sort(distances.begin(), distances.end());
                radius += distances[neighbor] / n; // 0 is its own
            }
            const double gamma = norm.l1() ? 1 / radius : 1 / (radius * radius);
            EXPECT_NEAR(
                    hash->kernel->gamma,
                    gamma,
                    2 * (d + 6) * float_unit * gamma);
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
        const auto hash = make(4, "SIK32(" + kernel + ")");
        EXPECT_TRUE(throws([&] { hash->train(1, x.data()); }, "at least 2"));
        EXPECT_TRUE(throws([&] { hash->train(2, same.data()); }, "same"));
        EXPECT_FALSE(hash->kernel->is_trained);
        make(4, "SIK32(" + kernel + ",gamma=1e20)");
        EXPECT_TRUE(
                throws([&] { make(4, "SIK32(" + kernel + ",gamma=1e200)"); },
                       "too large for codes"));
    }
}

TEST(ShiftInvariantHash, Strings) {
    make(5, "SIK512(gaussian,gamma=0.02,seed=1)")
            ->check_identical(
                    ShiftInvariantHash(5, 512, GaussianKernel(0.02), 1));
    make(5, "SIK256(matern(nu=2.5,gamma=1),proj=dense)")
            ->check_identical(ShiftInvariantHash(
                    5, 256, MaternKernel(2.5, 1), 1234, proj_dense));
    // frequencies of the L1 norm have one form
    make(5, "SIK8(laplacian,gamma=1,proj=dense)")
            ->check_identical(ShiftInvariantHash(
                    5, 8, LaplacianKernel(1), 1234, proj_structured));
    EXPECT_FALSE(is_structured(make(5, "SIK8(laplacian,gamma=1)")->proj));
    EXPECT_TRUE(is_structured(make(5, "SIK8(matern,gamma=1)")->proj));
    EXPECT_TRUE(
            throws([] { make(5, "SIK64(laplacian,proj=structured)"); },
                   "accepted here: dense",
                   "laplacian"));
    EXPECT_TRUE(
            throws([] { make(5, "SIK64(gaussian,proj=sparse)"); },
                   "sparse",
                   "structured"));
}

TEST(ShiftInvariantHash, CopiesAreDeep) {
    const std::vector<float> x = normal_vectors(9, 6, 1);
    auto hash = std::make_unique<ShiftInvariantHash>(
            6, 32, MaternKernel(2.5, 0.3), 9, proj_dense);
    hash->verbose = true;
    hash->kernel->neighbor = 3;
    const std::vector<uint8_t> codes = codes_of(*hash, x);
    ShiftInvariantHash copy = *hash;
    hash.reset();
    EXPECT_TRUE(copy.verbose);
    EXPECT_EQ(copy.kernel->neighbor, 3);
    EXPECT_EQ(codes_of(copy, x), codes);
    const auto clone = copy.clone();
    EXPECT_TRUE(clone->verbose);
    copy.offset[31] += 0.1f;
    EXPECT_EQ(codes_of(*clone, x), codes);
    EXPECT_TRUE(throws([&] { copy.check_identical(*clone); }));
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
    const ShiftInvariantHash hash(4, 16, GaussianKernel(0.5));
    const std::vector<float> x = normal_vectors(1000, 4, 1);
    const std::vector<uint8_t> codes = codes_of(hash, x);
    std::vector<float> out(10000);
    {
        const Guard guard;
        const auto pause = [] { // a thread asks ten times a second
            std::this_thread::sleep_for(std::chrono::milliseconds(150));
        };
        pause();
        EXPECT_TRUE(throws([&] { codes_of(hash, x); }, "interrupted"));
        pause();
        EXPECT_TRUE(throws(
                [&] {
                    GaussianKernel(1).gram(
                            1000, x.data(), 10, x.data(), 4, out.data());
                },
                "interrupted"));
    }
    EXPECT_EQ(codes_of(hash, x), codes);
}
