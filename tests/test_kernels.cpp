// Kernels against references in double precision.

#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/Kernel.h>
#include <faiss_ext/kernels/LaplacianKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>
#include <faiss_ext/kernels/MaternKernel.h>

#include <cmath>
#include <limits>

#include <Eigen/Eigenvalues>

#include "testing_data.h"
#include "testing_targets.h"
#include "testing_theory.h"

using namespace faiss_ext;
using namespace testing_data;
using namespace testing_targets;
using namespace testing_theory;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

const size_t dimensions[] = {1, 2, 3, 7, 16, 17, 63, 128, 784, 5000, 100000};

std::vector<float> gram(
        const Kernel& kernel,
        size_t n,
        const std::vector<float>& x,
        size_t m,
        const std::vector<float>& y,
        size_t d) {
    std::vector<float> out(n * m);
    kernel.gram(n, x.data(), m, y.data(), d, out.data());
    return out;
}

std::vector<float> distances(
        const Kernel& kernel,
        size_t n,
        const std::vector<float>& x,
        size_t m,
        const std::vector<float>& y,
        size_t d) {
    std::vector<float> out(n * m);
    kernel.distance_block(n, x.data(), m, y.data(), d, out.data());
    return out;
}

/// What ShiftInvariantKernel promises. Below FLT_MIN floats have fewer digits.
double value_bound(const KernelCase& c, double r, double k) {
    const double s = c.name == "matern" ? std::sqrt(2 * c.nu) * r
            : c.l1()                    ? r
                                        : r * r;
    return s <= 1 ? 2e-6
                  : 2e-6 * s * k + std::numeric_limits<float>::denorm_min();
}

/// Differences of one length, of several shapes: spread over all components, in
/// one alone, all the same (whose rounding errors do not cancel), and random.
std::vector<std::vector<float>> differences(
        const KernelCase& c,
        size_t d,
        double length) {
    std::vector<std::vector<float>> all(3, std::vector<float>(d));
    const std::vector<float> normal = normal_vectors(1, d, 9 + d);
    double norm = 0;
    for (float v : normal) {
        norm += c.l1() ? std::abs(v) : v * v;
    }
    norm = c.l1() ? norm : std::sqrt(norm);
    all[1][d / 2] = float(length);
    for (size_t k = 0; k < d; k++) {
        all[0][k] = float(length * normal[k] / norm);
        all[2][k] = float(length / (c.l1() ? d : std::sqrt(d)));
    }
    return all;
}

class ShiftInvariantKernels : public ::testing::TestWithParam<KernelCase> {};

} // namespace

TEST_P(ShiftInvariantKernels, ValuesAgreeWithReference) {
    const KernelCase& c = GetParam();
    const std::vector<int64_t> all_targets = targets();
    for (size_t d : dimensions) {
        const double gamma = d % 2 ? 0.37 : 5.1;
        const auto kernel = c.make(gamma);
        const std::vector<float> origin = normal_vectors(1, d, d, 0.01);
        for (double r : {0.0, 0.003, 0.1, 0.5, 0.9, 1.5, 3.0, 6.0, 10.0}) {
            for (std::vector<float> y : differences(c, d, r / c.scale(gamma))) {
                for (size_t k = 0; k < d; k++) {
                    y[k] += origin[k];
                }
                const double actual = c.scale(gamma) *
                        distance(c, origin.data(), y.data(), d);
                const double k = c.profile(actual);
                const double far = 2 * c.one_minus_profile(actual);
                for (int64_t target : all_targets) {
                    const Target guard(target);
                    const auto where = [&] {
                        return std::string(hwy::TargetName(target)) +
                                ", d = " + std::to_string(d) +
                                ", r = " + std::to_string(actual);
                    };
                    EXPECT_NEAR(
                            (*kernel)(origin.data(), y.data(), d),
                            k,
                            value_bound(c, actual, k))
                            << where();
                    float dis;
                    kernel->distance_block(
                            1, origin.data(), 1, y.data(), d, &dis);
                    EXPECT_NEAR(dis, far, 1e-5 * far) << where();
                }
            }
        }
    }
}

// To the smallest values that a float holds: r^2 / 2 = 87 or r = 87.
TEST_P(ShiftInvariantKernels, SmallValuesAgreeWithReference) {
    const KernelCase& c = GetParam();
    for (size_t d : {1, 3, 16, 100, 784, 5000}) {
        const auto kernel = c.make(1);
        const std::vector<float> origin(d);
        for (double r : {11.0, 13.0, 20.0, 40.0, 60.0, 85.0}) {
            for (const std::vector<float>& y : differences(c, d, r)) {
                const double actual = distance(c, origin.data(), y.data(), d);
                const double k = c.profile(actual);
                EXPECT_NEAR(
                        (*kernel)(origin.data(), y.data(), d),
                        k,
                        value_bound(c, actual, k))
                        << "d = " << d << ", r = " << actual << ", error "
                        << (*kernel)(origin.data(), y.data(), d) / k - 1;
            }
        }
    }
}

// Distances keep their digits where 1 - K would have none. |x - y|^2 stays in
// the range of float: 1e-18^2 = 1e-36.
TEST_P(ShiftInvariantKernels, DistancesOfNearVectorsAreAccurate) {
    const KernelCase& c = GetParam();
    for (double length = 1e-18; length < 2; length *= 10) {
        for (size_t d : {1, 40}) {
            for (double gamma : {1.0, 30.0}) {
                const auto kernel = c.make(gamma);
                const std::vector<float> x(d);
                for (const std::vector<float>& y : differences(c, d, length)) {
                    const double r =
                            c.scale(gamma) * distance(c, x.data(), y.data(), d);
                    const double expected = 2 * c.one_minus_profile(r);
                    if (expected < std::numeric_limits<float>::min()) {
                        continue;
                    }
                    float dis;
                    kernel->distance_block(1, x.data(), 1, y.data(), d, &dis);
                    EXPECT_NEAR(dis, expected, 1e-5 * expected)
                            << "d = " << d << ", r = " << r;
                }
            }
        }
    }
}

// Neighbouring floats: their difference is exact.
TEST_P(ShiftInvariantKernels, DistancesOfNeighbouringFloatsAreAccurate) {
    const KernelCase& c = GetParam();
    const size_t d = 20;
    std::vector<float> x = normal_vectors(1, d, 3), y = x;
    for (size_t k = 0; k < d; k++) {
        y[k] = std::nextafter(x[k], k % 2 ? 100.0f : -100.0f);
    }
    const auto kernel = c.make(0.8);
    const double r = c.scale(0.8) * distance(c, x.data(), y.data(), d);
    const double expected = 2 * c.one_minus_profile(r);
    float dis;
    kernel->distance_block(1, x.data(), 1, y.data(), d, &dis);
    EXPECT_NEAR(dis, expected, 1e-5 * expected) << "r = " << r;
    EXPECT_GT(dis, 0);
}

TEST_P(ShiftInvariantKernels, IdenticalVectors) {
    const KernelCase& c = GetParam();
    const auto kernel = c.make(2.5);
    for (size_t d : dimensions) {
        const std::vector<float> x = normal_vectors(2, d, d);
        std::vector<float> self(2);
        kernel->self_values(2, x.data(), d, self.data());
        const std::vector<float> k = gram(*kernel, 2, x, 2, x, d);
        const std::vector<float> dis = distances(*kernel, 2, x, 2, x, d);
        for (size_t i = 0; i < 2; i++) {
            EXPECT_EQ(self[i], 1);
            EXPECT_EQ(k[i * 3], 1);
            EXPECT_EQ(dis[i * 3], 0);
        }
    }
}

// Huge, tiny and mixed components: differences and their squares overflow to
// infinity or underflow to 0, never to NaN.
TEST_P(ShiftInvariantKernels, ExtremeVectors) {
    const KernelCase& c = GetParam();
    for (double gamma : {1e-30, 1e-3, 1.0, 1e30}) {
        const auto kernel = c.make(gamma);
        for (size_t d : {1, 2, 17}) {
            std::vector<float> x;
            const float values[] = {
                    0,
                    1e-45f,
                    -1e-30f,
                    1e-30f,
                    1,
                    -1,
                    1e18f,
                    -1e18f,
                    3e38f,
                    -3e38f};
            const size_t n = std::size(values);
            for (float v : values) {
                for (size_t k = 0; k < d; k++) {
                    x.push_back(k % 3 == 1 ? -v : v);
                }
            }
            const std::vector<float> k = gram(*kernel, n, x, n, x, d);
            const std::vector<float> dis = distances(*kernel, n, x, n, x, d);
            for (size_t i = 0; i < n; i++) {
                EXPECT_EQ(k[i * n + i], 1);
                EXPECT_EQ(dis[i * n + i], 0);
                for (size_t j = 0; j < n; j++) {
                    // a comparison with NaN is false
                    EXPECT_TRUE(k[i * n + j] >= 0 && k[i * n + j] <= 1)
                            << k[i * n + j] << " at " << i << ", " << j;
                    EXPECT_TRUE(dis[i * n + j] >= 0 && dis[i * n + j] <= 2)
                            << dis[i * n + j] << " at " << i << ", " << j;
                }
            }
        }
    }
}

TEST_P(ShiftInvariantKernels, BeyondUnderflow) {
    const KernelCase& c = GetParam();
    const auto kernel = c.make(1);
    for (float far : {1e3f, 1e6f, 1e18f, 3e38f}) {
        const std::vector<float> x = {0, 0}, y = {0, far};
        EXPECT_EQ((*kernel)(x.data(), y.data(), 2), 0);
        EXPECT_EQ(distances(*kernel, 1, x, 1, y, 2)[0], 2);
    }
}

TEST_P(ShiftInvariantKernels, ProfileAndItsInverse) {
    const KernelCase& c = GetParam();
    const auto kernel = c.make(1);
    EXPECT_EQ(kernel->profile(0), 1);
    EXPECT_EQ(kernel->one_minus_profile(0), 0);
    EXPECT_EQ(kernel->profile(HUGE_VAL), 0);
    EXPECT_EQ(kernel->one_minus_profile(HUGE_VAL), 1);
    double before = 1;
    for (double r = 1e-3; r < 80; r *= 1.3) {
        const double k = kernel->profile(r);
        // rounding of r^2 / 2 <= 3200, or of z, moves the exponential by as
        // many units; the Bessel function has a few more
        EXPECT_NEAR(k, c.profile(r), 1e-12 * k) << "r = " << r;
        EXPECT_TRUE(k < before || k == 0) << "r = " << r;
        before = k;
        EXPECT_NEAR(
                kernel->one_minus_profile(r),
                c.one_minus_profile(r),
                1e-8 * c.one_minus_profile(r))
                << "r = " << r;
    }
    EXPECT_EQ(kernel->inverse_profile(1), 0);
    EXPECT_EQ(kernel->inverse_profile(0), HUGE_VAL);
    for (double k :
         {1e-250, 1e-100, 1e-20, 1e-5, 0.01, 0.3, 0.5, 0.9, 0.999, 1 - 1e-9}) {
        const double r = kernel->inverse_profile(k);
        EXPECT_GE(r, 0);
        // |d log K / d log r| is at most 1200 at K = 1e-250
        EXPECT_NEAR(kernel->profile(r), k, 1200 * 4e-16 * k) << "k = " << k;
    }
}

// K(x - y) = profile(|x - y| / R) with gamma = gamma_of_radius(R)
TEST_P(ShiftInvariantKernels, BandwidthOfRadius) {
    const KernelCase& c = GetParam();
    for (double radius : {1e-3, 0.7, 1.0, 250.0}) {
        const double gamma = c.make(1)->gamma_of_radius(radius);
        EXPECT_NEAR(
                gamma,
                c.l1() ? 1 / radius : 1 / (radius * radius),
                1e-14 * gamma);
        EXPECT_NEAR(c.make(gamma)->inverse_length() * radius, 1, 1e-14);
    }
}

TEST_P(ShiftInvariantKernels, DescriptionMakesTheSameKernel) {
    const KernelCase& c = GetParam();
    for (double gamma : {0.0, 1e-30, 1.0 / 3, 1.0, 12345.678901234567, 1e30}) {
        const auto kernel = c.make(gamma);
        EXPECT_EQ(kernel->is_trained, gamma > 0);
        EXPECT_EQ(kernel->auto_gamma, gamma == 0);
        const auto again = kernel_factory(kernel->description());
        ASSERT_EQ(typeid(*again), typeid(*kernel));
        const auto& same = dynamic_cast<ShiftInvariantKernel&>(*again);
        EXPECT_EQ(same.gamma, gamma);
        EXPECT_EQ(same.auto_gamma, gamma == 0);
        EXPECT_EQ(same.is_trained, gamma > 0);
        EXPECT_EQ(same.description(), kernel->description());
        if (c.nu) {
            EXPECT_EQ(dynamic_cast<const MaternKernel&>(same).nu, c.nu);
        }
    }
}

TEST_P(ShiftInvariantKernels, CloneKeepsAllFields) {
    const KernelCase& c = GetParam();
    const auto kernel = c.make(0.25);
    kernel->verbose = true;
    kernel->is_trained = false;
    kernel->auto_gamma = true;
    kernel->neighbor = 7;
    kernel->sample_queries = 11;
    kernel->sample_points = 13;
    kernel->sample_seed = 17;
    const auto clone = kernel->clone();
    ASSERT_NE(clone.get(), kernel.get());
    ASSERT_EQ(typeid(*clone), typeid(*kernel));
    const auto& copy = dynamic_cast<ShiftInvariantKernel&>(*clone);
    EXPECT_TRUE(copy.verbose);
    EXPECT_FALSE(copy.is_trained);
    EXPECT_TRUE(copy.auto_gamma);
    EXPECT_EQ(copy.gamma, 0.25);
    EXPECT_EQ(copy.neighbor, 7);
    EXPECT_EQ(copy.sample_queries, 11);
    EXPECT_EQ(copy.sample_points, 13);
    EXPECT_EQ(copy.sample_seed, 17);
    EXPECT_EQ(copy.description(), kernel->description());
    if (c.nu) {
        EXPECT_EQ(dynamic_cast<const MaternKernel&>(copy).nu, c.nu);
    }
}

TEST_P(ShiftInvariantKernels, BadBandwidths) {
    const KernelCase& c = GetParam();
    for (double gamma : {-1.0, -1e-300, HUGE_VAL, double(nan_value)}) {
        EXPECT_TRUE(contains(message_of([&] { c.make(gamma); }), "gamma"));
    }
}

TEST_P(ShiftInvariantKernels, UntrainedKernelRefusesGram) {
    const KernelCase& c = GetParam();
    const auto kernel = c.make(0);
    EXPECT_FALSE(kernel->is_trained);
    const std::vector<float> x(6);
    float out;
    const std::string message = message_of(
            [&] { kernel->gram(1, x.data(), 1, x.data(), 6, &out); });
    EXPECT_TRUE(contains(message, c.name)) << message;
    EXPECT_TRUE(contains(message, "train")) << message;
}

// The Gram matrix is the exact one, which has no negative eigenvalue, plus an
// error E, and eigenvalues move by at most |E|_2 <= n max |E_ij|. A value errs
// by its own rounding and by |r K'(r)| <= 0.74 times the relative error of r,
// which is at most (d + 8) units.
TEST_P(ShiftInvariantKernels, GramIsPositiveSemiDefinite) {
    const KernelCase& c = GetParam();
    const size_t n = 80;
    for (size_t d : {1, 3, 10}) {
        std::vector<float> x = normal_vectors(n, d, 77);
        for (size_t k = 0; k < 5 * d; k++) {
            x[k] = x[(n - 5) * d + k]; // five vectors twice
        }
        const std::vector<float> k = gram(*c.make(0.7), n, x, n, x, d);
        Eigen::MatrixXd matrix(n, n);
        for (size_t i = 0; i < n * n; i++) {
            matrix(i / n, i % n) = k[i];
        }
        const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
                matrix, Eigen::EigenvaluesOnly);
        EXPECT_GE(
                solver.eigenvalues().minCoeff(),
                -double(n) * (d + 10) * float_unit);
        EXPECT_NEAR(matrix.trace(), n, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(
        Kernels,
        ShiftInvariantKernels,
        ::testing::ValuesIn(kernel_cases()),
        [](const auto& info) { return case_name(info.param); });

// The power z^nu in the kernel of a rough process is nearly vertical at 0.
TEST(MaternKernel, SmallSmoothness) {
    for (double nu : {0.1, 0.3, 0.4}) {
        const KernelCase c = {"matern", nu};
        const MaternKernel kernel(nu, 1);
        EXPECT_EQ(kernel.profile(0), 1) << "nu = " << nu;
        EXPECT_EQ(kernel.one_minus_profile(0), 0) << "nu = " << nu;
        const std::vector<float> x = {1, 2, 3};
        EXPECT_EQ(kernel(x.data(), x.data(), 3), 1) << "nu = " << nu;
        EXPECT_EQ(distances(kernel, 1, x, 1, x, 3)[0], 0) << "nu = " << nu;
        for (double r : {1e-300, 1e-100, 1e-12, 1e-3, 0.1, 1.0, 10.0}) {
            EXPECT_NEAR(kernel.profile(r), c.profile(r), 1e-12)
                    << "nu = " << nu << ", r = " << r;
        }
    }
}

TEST(MaternKernel, LargeSmoothness) {
    for (double nu : {10.0, 13.7, 20.0}) {
        const KernelCase c = {"matern", nu};
        const MaternKernel kernel(nu, 1);
        EXPECT_EQ(kernel.profile(0), 1);
        for (double r : {1e-100, 1e-9, 1e-8, 1e-7, 1e-3, 0.1, 1.0, 5.0, 30.0}) {
            // the reference adds and subtracts exponents up to 5000
            EXPECT_NEAR(kernel.profile(r), c.profile(r), 1e-11)
                    << "nu = " << nu << ", r = " << r;
        }
    }
}

// K = E exp(-r^2 nu / (2 G)), G ~ Gamma(nu), tends to the Gaussian kernel as
// the law of nu / G contracts to 1: the difference falls as 1 / nu.
TEST(MaternKernel, TendsToGaussian) {
    for (double r : {0.5, 1.0, 2.0}) {
        const double limit = std::exp(-r * r / 2);
        double before = HUGE_VAL;
        for (double nu : {2.5, 5.0, 10.0, 20.0}) {
            const double difference =
                    std::abs(MaternKernel(nu, 1).profile(r) - limit);
            EXPECT_LT(difference, 0.7 * before) << "nu = " << nu;
            before = difference;
        }
    }
}

TEST(MaternKernel, BadSmoothness) {
    for (double nu : {0.0, 0.09, 20.1, -1.5, HUGE_VAL, double(nan_value)}) {
        EXPECT_TRUE(contains(message_of([&] { MaternKernel(nu, 1.0); }), "nu"));
    }
}

// The error of each sum is at most 1e-4 times the sum of the absolute values of
// its terms, as LinearKernel promises.
TEST(LinearKernel, AgreesWithReference) {
    const LinearKernel kernel;
    for (size_t d : dimensions) {
        const size_t n = 3, m = 5;
        const std::vector<float> x = normal_vectors(n, d, d);
        const std::vector<float> y = normal_vectors(m, d, d + 1, 3);
        const std::vector<float> k = gram(kernel, n, x, m, y, d);
        const std::vector<float> dis = distances(kernel, n, x, m, y, d);
        std::vector<float> self(n);
        kernel.self_values(n, x.data(), d, self.data());
        for (size_t i = 0; i < n; i++) {
            long double squares = 0;
            for (size_t j = 0; j < m; j++) {
                long double dot = 0, absolute = 0, squared = 0;
                squares = 0;
                for (size_t l = 0; l < d; l++) {
                    const long double a = x[i * d + l], b = y[j * d + l];
                    dot += a * b;
                    absolute += std::abs(a * b);
                    squared += (a - b) * (a - b);
                    squares += a * a;
                }
                EXPECT_NEAR(k[i * m + j], dot, 1e-4 * absolute) << "d = " << d;
                EXPECT_NEAR(dis[i * m + j], squared, 1e-4 * squared)
                        << "d = " << d;
                EXPECT_EQ(k[i * m + j], kernel(&x[i * d], &y[j * d], d));
            }
            EXPECT_NEAR(self[i], squares, 1e-4 * squares) << "d = " << d;
        }
    }
}

// Differences of neighbouring floats are exact, their squares are rounded once,
// and 20 terms are added: 24 units.
TEST(LinearKernel, DistancesOfNearVectorsAreAccurate) {
    const size_t d = 20;
    const std::vector<float> x = normal_vectors(1, d, 5, 100);
    std::vector<float> y = x;
    double expected = 0;
    for (size_t k = 0; k < d; k++) {
        y[k] = std::nextafter(x[k], 0.0f);
        expected += std::pow(double(x[k]) - y[k], 2);
    }
    EXPECT_NEAR(
            distances(LinearKernel(), 1, x, 1, y, d)[0],
            expected,
            24 * float_unit * expected);
}

TEST(LinearKernel, ExtremeVectors) {
    const LinearKernel kernel;
    for (size_t d : {1, 7, 17, 63}) {
        for (float v : {1e-30f, 1e18f}) {
            const std::vector<float> x(d, v), y(d, -v);
            for (float value : gram(kernel, 1, x, 1, y, d)) {
                // the sum of equal terms errs by at most d + 4 units; 1e-60 is
                // no float
                EXPECT_NEAR(
                        value,
                        -double(v) * v * d,
                        (d + 4) * float_unit * double(v) * v * d + 1e-45);
            }
            EXPECT_EQ(distances(kernel, 1, x, 1, x, d)[0], 0);
        }
    }
}

TEST(LinearKernel, Description) {
    const auto kernel = kernel_factory("linear");
    EXPECT_EQ(kernel->description(), "linear");
    EXPECT_TRUE(kernel->is_trained);
    EXPECT_NE(dynamic_cast<LinearKernel*>(kernel.get()), nullptr);
    kernel->verbose = true;
    EXPECT_TRUE(kernel->clone()->verbose);
}

// A is exact up to n max |E_ij|, each error at most (d + 4) units of
// sum |x_k y_k| <= |x| |y|.
TEST(LinearKernel, GramIsPositiveSemiDefinite) {
    const size_t n = 60, d = 5;
    const std::vector<float> x = normal_vectors(n, d, 8);
    const std::vector<float> k = gram(LinearKernel(), n, x, n, x, d);
    Eigen::MatrixXd matrix(n, n);
    for (size_t i = 0; i < n * n; i++) {
        matrix(i / n, i % n) = k[i];
    }
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
            matrix, Eigen::EigenvaluesOnly);
    EXPECT_GE(
            solver.eigenvalues().minCoeff(),
            -double(n) * (d + 4) * float_unit * matrix.diagonal().maxCoeff());
}

namespace {

class AllKernels : public ::testing::TestWithParam<const char*> {
   protected:
    std::unique_ptr<Kernel> kernel = kernel_factory(GetParam());
};

} // namespace

// Every sub-block, on its own and in gram, has the bits of the whole block. At
// d = 5000, more than 13 rows of y are taken in several passes.
TEST_P(AllKernels, ValuesDoNotDependOnTheBlock) {
    for (size_t d : {1, 3, 17, 64, 784, 5000}) {
        const size_t n = 11, m = d > 1000 ? 30 : 70;
        const std::vector<float> x = normal_vectors(n, d, 1, 0.3);
        const std::vector<float> y = normal_vectors(m, d, 2, 0.3);
        std::vector<float> whole(n * m), whole_dis(n * m);
        kernel->block(n, x.data(), m, y.data(), d, whole.data());
        kernel->distance_block(n, x.data(), m, y.data(), d, whole_dis.data());
        for (int threads : {1, 2, 7}) {
            const ThreadCount guard(threads);
            EXPECT_TRUE(same_bits(gram(*kernel, n, x, m, y, d), whole));
        }
        for (size_t rows : {1, 2, 3, 4, 5, 9}) {
            for (size_t columns : {1, 2, 3, 4, 5, 6, 7, 8, 29}) {
                std::vector<float> part(rows * columns);
                std::vector<float> part_dis(rows * columns);
                const size_t i0 = n - rows,
                             j0 = m - columns - (m - columns) / 3;
                kernel->block(
                        rows, &x[i0 * d], columns, &y[j0 * d], d, part.data());
                kernel->distance_block(
                        rows,
                        &x[i0 * d],
                        columns,
                        &y[j0 * d],
                        d,
                        part_dis.data());
                for (size_t i = 0; i < rows; i++) {
                    for (size_t j = 0; j < columns; j++) {
                        const size_t at = (i0 + i) * m + j0 + j;
                        ASSERT_EQ(part[i * columns + j], whole[at])
                                << rows << " x " << columns << ", d = " << d;
                        ASSERT_EQ(part_dis[i * columns + j], whole_dis[at])
                                << rows << " x " << columns << ", d = " << d;
                    }
                }
            }
        }
        EXPECT_EQ((*kernel)(&x[2 * d], &y[5 * d], d), whole[2 * m + 5]);
    }
}

TEST_P(AllKernels, SymmetricBitForBit) {
    for (size_t d : {1, 3, 17, 784, 5000, 100000}) {
        const size_t n = d > 10000 ? 4 : 9;
        const std::vector<float> x = normal_vectors(n, d, 1, 0.3);
        const std::vector<float> k = gram(*kernel, n, x, n, x, d);
        const std::vector<float> dis = distances(*kernel, n, x, n, x, d);
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                EXPECT_EQ(k[i * n + j], k[j * n + i]);
                EXPECT_EQ(dis[i * n + j], dis[j * n + i]);
            }
        }
    }
}

TEST_P(AllKernels, SelfValuesAreTheDiagonal) {
    const size_t n = 6, d = 33;
    const std::vector<float> x = normal_vectors(n, d, 4);
    const std::vector<float> k = gram(*kernel, n, x, n, x, d);
    std::vector<float> self(n);
    kernel->self_values(n, x.data(), d, self.data());
    for (size_t i = 0; i < n; i++) {
        EXPECT_EQ(self[i], k[i * n + i]);
    }
}

TEST_P(AllKernels, EmptyBlocks) {
    const std::vector<float> x = {1, 2, 3};
    float out = 42;
    kernel->gram(0, nullptr, 1, x.data(), 3, &out);
    kernel->gram(1, x.data(), 0, nullptr, 3, &out);
    kernel->gram(0, nullptr, 0, nullptr, 3, nullptr);
    kernel->block(0, nullptr, 1, x.data(), 3, &out);
    kernel->distance_block(1, x.data(), 0, nullptr, 3, &out);
    EXPECT_EQ(out, 42);
}

TEST_P(AllKernels, GramErrors) {
    const size_t d = 3;
    std::vector<float> good = {1, 2, 3, 4, 5, 6}, bad = good;
    std::vector<float> out(4, 42);
    const auto message = [&](idx_t n, const float* x, idx_t m, const float* y) {
        return message_of([&] { kernel->gram(n, x, m, y, d, out.data()); });
    };
    for (float v : {nan_value, infinity, -infinity}) {
        bad = good;
        bad[4] = v;
        for (const std::string& text :
             {message(2, bad.data(), 2, good.data()),
              message(2, good.data(), 2, bad.data())}) {
            EXPECT_TRUE(contains(text, "component 1 of vector 1")) << text;
            EXPECT_TRUE(contains(text, std::isnan(v) ? "nan" : "inf")) << text;
            EXPECT_TRUE(contains(text, "Kernel::gram")) << text;
        }
    }
    for (const std::string& text :
         {message(-1, good.data(), 2, good.data()),
          message(2, good.data(), -1, good.data())}) {
        EXPECT_TRUE(contains(text, "-1")) << text;
    }
    for (const std::string& text :
         {message(1, nullptr, 2, good.data()),
          message(2, good.data(), 1, nullptr)}) {
        EXPECT_TRUE(contains(text, "null")) << text;
    }
    EXPECT_EQ(out, std::vector<float>(4, 42)); // nothing was written
    kernel->gram(2, good.data(), 2, good.data(), d, out.data());
}

INSTANTIATE_TEST_SUITE_P(
        Kernels,
        AllKernels,
        ::testing::Values(
                "gaussian(gamma=0.05)",
                "laplacian(gamma=0.03)",
                "linear",
                "matern(nu=0.5,gamma=0.05)",
                "matern(nu=0.8,gamma=0.05)",
                "matern(nu=1.5,gamma=0.05)",
                "matern(nu=2.5,gamma=0.05)",
                "matern(nu=4,gamma=0.05)"));

namespace {

/// A kernel that implements as little as possible.
struct QuadraticKernel : Kernel {
    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override {
        LinearKernel().block(n, x, m, y, d, out);
        for (size_t i = 0; i < n * m; i++) {
            out[i] *= out[i];
        }
    }
    std::string description() const override {
        return "quadratic";
    }
};

} // namespace

TEST(Kernel, Defaults) {
    QuadraticKernel kernel;
    EXPECT_TRUE(kernel.is_trained);
    kernel.train(0, nullptr, 2);
    // small integers: all sums are exact
    const std::vector<float> x = {1, 2, 3, -1}, y = {0, 1, 3, -1, 2, 2};
    const std::vector<float> self_x = {25, 100}, self_y = {1, 100, 64};
    const std::vector<float> dots = {2, 1, 6, -1, 10, 4};
    std::vector<float> self(2);
    kernel.self_values(2, x.data(), 2, self.data());
    EXPECT_EQ(self, self_x);
    const std::vector<float> dis = distances(kernel, 2, x, 3, y, 2);
    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < 3; j++) {
            const float dot = dots[i * 3 + j];
            EXPECT_EQ(dis[i * 3 + j], self_x[i] + self_y[j] - 2 * dot * dot);
        }
    }
    // rounding leaves no negative distance
    const std::vector<float> z = normal_vectors(40, 2, 6);
    for (float v : distances(kernel, 40, z, 40, z, 2)) {
        EXPECT_GE(v, 0);
    }
    // not registered
    EXPECT_THROW(kernel.clone(), faiss::FaissException);
}
