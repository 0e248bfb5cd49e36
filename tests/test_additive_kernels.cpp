// Additive kernels, those made of other kernels, and kernels of the user,
// against their formulas in long double.

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numbers>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <faiss_ext/hashes/KernelizedLSH.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/AdditiveKernel.h>
#include <faiss_ext/kernels/CallbackKernel.h>
#include <faiss_ext/kernels/ExpChi2Kernel.h>
#include <faiss_ext/kernels/ExponentialKernel.h>
#include <faiss_ext/kernels/Kernel.h>
#include <faiss_ext/kernels/LinearKernel.h>
#include <faiss_ext/kernels/NormalizedKernel.h>
#include <faiss_ext/kernels/PolynomialKernel.h>

#include "testing_klsh.h"

using namespace faiss_ext;
using namespace testing_klsh;

namespace {

using real = long double;
using Formula = std::function<real(const float*, const float*, size_t)>;

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

real sum_of(
        const float* x,
        const float* y,
        size_t d,
        const std::function<real(real, real)>& term) {
    real sum = 0;
    for (size_t k = 0; k < d; k++) {
        sum += term(x[k], y[k]);
    }
    return sum;
}

real chi2_term(real a, real b) {
    return a + b == 0 ? 0 : 2 * a * b / (a + b);
}

real chi2_distance_term(real a, real b) {
    return a + b == 0 ? 0 : (a - b) * (a - b) / (a + b);
}

real js_term(real a, real b) {
    if (a == 0 || b == 0) {
        return 0;
    }
    // log2((a + b) / a) = log1p(b / a) / log 2
    return (a / 2 * std::log1p(b / a) + b / 2 * std::log1p(a / b)) /
            std::log(real(2));
}

real hellinger_term(real a, real b) {
    return std::sqrt(a * b);
}

real hellinger_distance_term(real a, real b) {
    const real diff = std::sqrt(a) - std::sqrt(b);
    return diff * diff;
}

Formula additive(real (*term)(real, real)) {
    return [term](const float* x, const float* y, size_t d) {
        return sum_of(x, y, d, term);
    };
}

real intersection_term(real a, real b) {
    return std::min(a, b);
}

real dot_term(real a, real b) {
    return a * b;
}

Formula normalized(Formula k) {
    return [k](const float* x, const float* y, size_t d) {
        const real xx = k(x, x, d), yy = k(y, y, d);
        return xx > 0 && yy > 0 ? k(x, y, d) / std::sqrt(xx) / std::sqrt(yy)
                                : 0;
    };
}

Formula exponential(Formula k, real s) {
    return [k, s](const float* x, const float* y, size_t d) {
        return std::exp(s * (k(x, y, d) - 1));
    };
}

Formula polynomial(int degree, real c) {
    return [degree, c](const float* x, const float* y, size_t d) {
        return std::pow(sum_of(x, y, d, dot_term) + c, real(degree));
    };
}

struct Case {
    std::string kernel;
    Formula formula;

    std::unique_ptr<Kernel> make() const {
        return kernel_factory(kernel);
    }
};

void PrintTo(const Case& c, std::ostream* out) {
    *out << c.kernel;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
    std::string name;
    for (char c : info.param.kernel) {
        if (std::isalnum(static_cast<unsigned char>(c))) {
            name += c;
        } else if (!name.empty() && name.back() != '_') {
            name += '_';
        }
    }
    return name.substr(0, name.find_last_not_of('_') + 1);
}

std::vector<Case> additive_cases() {
    return {{"chi2", additive(chi2_term)},
            {"intersection", additive(intersection_term)},
            {"js", additive(js_term)},
            {"hellinger", additive(hellinger_term)}};
}

std::vector<Case> all_cases() {
    std::vector<Case> cases = additive_cases();
    cases.push_back(
            {"expchi2(gamma=0.5)",
             [](const float* x, const float* y, size_t d) {
                 return std::exp(-2 * sum_of(x, y, d, chi2_distance_term));
             }});
    cases.push_back({"cosine", normalized(additive(dot_term))});
    cases.push_back({"poly(degree=3,c=1)", polynomial(3, 1)});
    cases.push_back({"poly(degree=2,c=0)", polynomial(2, 0)});
    for (const Case& c : additive_cases()) {
        cases.push_back(
                {"normalized(" + c.kernel + ")", normalized(c.formula)});
    }
    cases.push_back(
            {"normalized(poly(degree=2,c=0.5))",
             normalized(polynomial(2, 0.5))});
    cases.push_back(
            {"exponential(normalized(chi2),scale=5)",
             exponential(normalized(additive(chi2_term)), 5)});
    cases.push_back(
            {"exponential(cosine,scale=0.5)",
             exponential(normalized(additive(dot_term)), 0.5)});
    return cases;
}

/// Vectors of each kind: uniform, normalised, half zero, almost all zero, and
/// all zero.
std::vector<float> histograms(size_t n, size_t d, uint64_t seed) {
    std::vector<float> x = uniform_vectors(n, d, seed);
    std::mt19937_64 rng(seed + 1);
    for (size_t i = 0; i < n; i++) {
        float* row = &x[i * d];
        const size_t kind = i % 5;
        double sum = 0;
        for (size_t k = 0; k < d; k++) {
            if ((kind == 2 && rng() % 2) || (kind == 3 && rng() % 10) ||
                (kind == 4 && i < 5)) {
                row[k] = 0;
            }
            sum += row[k];
        }
        // L1 norm 1, so that exponentials and powers stay in range
        for (size_t k = 0; k < d && sum > 0 && kind != 0; k++) {
            row[k] = float(row[k] / sum);
        }
        for (size_t k = 0; k < d && kind == 0; k++) {
            row[k] *= 2 / float(d);
        }
    }
    return x;
}

std::vector<float> block(
        const Kernel& kernel,
        const std::vector<float>& x,
        const std::vector<float>& y,
        size_t d) {
    const size_t n = x.size() / d, m = y.size() / d;
    std::vector<float> values(n * m, nan_value);
    kernel.block(n, x.data(), m, y.data(), d, values.data());
    return values;
}

std::vector<float> distances(
        const Kernel& kernel,
        const std::vector<float>& x,
        const std::vector<float>& y,
        size_t d) {
    const size_t n = x.size() / d, m = y.size() / d;
    std::vector<float> values(n * m, nan_value);
    kernel.distance_block(n, x.data(), m, y.data(), d, values.data());
    return values;
}

std::vector<float> self_values(
        const Kernel& kernel,
        const std::vector<float>& x,
        size_t d) {
    std::vector<float> values(x.size() / d, nan_value);
    kernel.self_values(values.size(), x.data(), d, values.data());
    return values;
}

/// the d that go through every path: below, at and above the lanes of a
/// register and a run of components
const std::vector<size_t> dimensions = {1, 7, 16, 63, 128, 5000};

class Kernels : public ::testing::TestWithParam<Case> {};
class AdditiveKernels : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
        All,
        Kernels,
        ::testing::ValuesIn(all_cases()),
        case_name);
INSTANTIATE_TEST_SUITE_P(
        All,
        AdditiveKernels,
        ::testing::ValuesIn(additive_cases()),
        case_name);

} // namespace

// Below 1e-6 relative for those of positive terms that are added; powers and
// exponentials multiply the error of what they are made of.
TEST_P(Kernels, AgreeWithTheirFormulas) {
    const Case& c = GetParam();
    const auto kernel = c.make();
    for (size_t d : dimensions) {
        const size_t n = 11, m = 9;
        const auto x = histograms(n, d, 10 + d), y = histograms(m, d, 20 + d);
        const auto values = block(*kernel, x, y, d);
        const double bound = d <= 128 ? 4e-6 : 2e-5;
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < m; j++) {
                const double expected =
                        double(c.formula(&x[i * d], &y[j * d], d));
                const double tolerance = bound * expected;
                EXPECT_NEAR(values[i * m + j], expected, tolerance)
                        << "d = " << d << ", pair " << i << ", " << j;
            }
        }
    }
}

TEST_P(Kernels, SelfValuesAgreeWithTheirFormulas) {
    const Case& c = GetParam();
    const auto kernel = c.make();
    for (size_t d : dimensions) {
        const size_t n = 10;
        const auto x = histograms(n, d, 30 + d);
        const auto values = self_values(*kernel, x, d);
        for (size_t i = 0; i < n; i++) {
            const double expected = double(c.formula(&x[i * d], &x[i * d], d));
            EXPECT_NEAR(values[i], expected, 2e-5 * expected) << "d = " << d;
        }
    }
}

// |phi(x) - phi(y)|^2 = k(x, x) + k(y, y) - 2 k(x, y)
TEST_P(Kernels, DistancesAgreeWithTheirDefinition) {
    const Case& c = GetParam();
    const auto kernel = c.make();
    for (size_t d : dimensions) {
        const size_t n = 8;
        auto x = histograms(n, d, 40 + d), y = histograms(n, d, 50 + d);
        std::copy_n(x.begin(), 2 * d, y.begin()); // equal vectors
        const auto values = distances(*kernel, x, y, d);
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < n; j++) {
                const float *a = &x[i * d], *b = &y[j * d];
                const real aa = c.formula(a, a, d), bb = c.formula(b, b, d);
                const real expected = aa + bb - 2 * c.formula(a, b, d);
                EXPECT_NEAR(
                        values[i * n + j],
                        double(expected),
                        double(2e-5L * (aa + bb)))
                        << "d = " << d;
                EXPECT_GE(values[i * n + j], 0);
            }
        }
    }
}

// The value of a pair depends on nothing but the pair.
TEST_P(Kernels, SymmetricAndIndependentOfTheBlock) {
    const auto kernel = GetParam().make();
    for (size_t d : dimensions) {
        const size_t n = 13;
        const auto x = histograms(n, d, 60 + d);
        const auto values = block(*kernel, x, x, d);
        const auto between = distances(*kernel, x, x, d);
        std::vector<float> gram(n * n);
        for (int threads : {1, 3}) {
            const Threads with(threads);
            kernel->gram(n, x.data(), n, x.data(), d, gram.data());
            EXPECT_TRUE(same_bits(values, gram));
        }
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < n; j++) {
                EXPECT_EQ(values[i * n + j], values[j * n + i]);
                EXPECT_EQ(between[i * n + j], between[j * n + i]);
                EXPECT_EQ(
                        values[i * n + j], (*kernel)(&x[i * d], &x[j * d], d));
            }
        }
    }
}

// Gram matrices have no eigenvalue below 0, up to the rounding of their
// entries: an error of e in each of n^2 entries moves eigenvalues by n e.
TEST_P(Kernels, PositiveSemiDefinite) {
    const Case& c = GetParam();
    const auto kernel = c.make();
    for (size_t d : {1, 7, 63}) {
        const size_t n = 60;
        const auto x = histograms(n, d, 70 + d);
        const auto values = block(*kernel, x, x, d);
        const Eigen::MatrixXd K =
                Eigen::Map<const Eigen::MatrixXf>(values.data(), n, n)
                        .cast<double>();
        const double bound = 4e-6 * double(n) * K.cwiseAbs().maxCoeff();
        const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
                K, Eigen::EigenvaluesOnly);
        EXPECT_GE(solver.eigenvalues()[0], -bound) << "d = " << d;
        // it says something: the kernel is not constant
        EXPECT_GT(solver.eigenvalues()[n - 1], 1000 * bound);
    }
}

TEST_P(Kernels, DescriptionMakesTheSameKernel) {
    const Case& c = GetParam();
    const auto kernel = c.make();
    // (without what is as by default)
    const std::string description =
            c.kernel == "poly(degree=3,c=1)" ? "poly" : c.kernel;
    EXPECT_EQ(kernel->description(), description);
    const auto again = kernel_factory(kernel->description());
    const auto copy = kernel->clone();
    const size_t d = 16;
    const auto x = histograms(6, d, 80);
    const auto values = block(*kernel, x, x, d);
    EXPECT_TRUE(same_bits(values, block(*again, x, x, d)));
    EXPECT_TRUE(same_bits(values, block(*copy, x, x, d)));
    EXPECT_EQ(copy->description(), description);
}

// Components from 1e-30 to 1e20, alone and together, zeros in between.
TEST_P(AdditiveKernels, TinyAndHugeComponents) {
    const Case& c = GetParam();
    const auto kernel = c.make();
    const std::vector<float> sizes = {
            0, 1e-36f, 1e-30f, 1e-20f, 1e-3f, 1, 1e10f, 1e20f};
    for (float a : sizes) {
        for (float b : sizes) {
            for (size_t d : {1, 16, 63}) {
                const std::vector<float> x(d, a), y(d, b);
                const double expected =
                        double(c.formula(x.data(), y.data(), d));
                const float value = (*kernel)(x.data(), y.data(), d);
                EXPECT_NEAR(value, expected, 1e-4 * expected)
                        << a << " and " << b << ", d = " << d;
                const float distance = distances(*kernel, x, y, d)[0];
                EXPECT_TRUE(distance >= 0 && distance < infinity)
                        << a << " and " << b << ": " << distance;
            }
        }
    }
    for (size_t d : {7, 63, 128, 5000}) {
        std::mt19937_64 rng(d);
        std::vector<float> x(d), y(d);
        for (size_t k = 0; k < d; k++) {
            x[k] = sizes[rng() % sizes.size()];
            y[k] = sizes[rng() % sizes.size()];
        }
        const double expected = double(c.formula(x.data(), y.data(), d));
        const float value = (*kernel)(x.data(), y.data(), d);
        EXPECT_NEAR(value, expected, 1e-4 * expected) << "d = " << d;
    }
}

// "Components below 1e-37 count as 0": nothing but finite numbers comes out.
TEST_P(Kernels, VanishingComponents) {
    const auto kernel = GetParam().make();
    const float least = std::numeric_limits<float>::denorm_min();
    for (float a : {0.0f, least, 1e-44f, 1e-40f, 1e-38f, 1e-37f}) {
        for (float b : {0.0f, least, 1e-40f, 1e-37f, 1.0f}) {
            const std::vector<float> x(5, a), y(5, b);
            const float value = (*kernel)(x.data(), y.data(), 5);
            EXPECT_TRUE(std::isfinite(value))
                    << a << " and " << b << ": " << value;
            const float distance = distances(*kernel, x, y, 5)[0];
            EXPECT_TRUE(std::isfinite(distance))
                    << a << " and " << b << ": " << distance;
        }
    }
}

// No NaN from large components. Values beyond the range of float may be
// infinite; sums of components are not.
TEST_P(Kernels, HugeComponentsGiveNoNaN) {
    const Case& c = GetParam();
    const auto kernel = c.make();
    for (size_t d : {1, 16, 63}) {
        auto x = histograms(6, d, 90 + d);
        for (float& v : x) {
            v *= 1e20f;
        }
        if (c.kernel.find("poly") != std::string::npos) {
            EXPECT_THROW(
                    kernel->check_input(6, x.data(), d, "test"),
                    faiss::FaissException);
            continue;
        }
        kernel->check_input(6, x.data(), d, "test");
        const auto values = block(*kernel, x, x, d);
        for (size_t i = 0; i < values.size(); i++) {
            EXPECT_TRUE(std::isfinite(values[i])) << "d = " << d;
            if (c.kernel.find("normalized(") == 0) {
                EXPECT_NEAR(
                        values[i],
                        double(c.formula(&x[i / 6 * d], &x[i % 6 * d], d)),
                        1e-4)
                        << "d = " << d;
            }
        }
        for (float v : distances(*kernel, x, x, d)) {
            EXPECT_TRUE(std::isfinite(v)) << "d = " << d;
        }
    }
}

namespace {

/// x and histograms whose components differ by 1e-1 to 1e-6 relative
std::vector<float> neighbors_of(
        const std::vector<float>& x,
        double difference,
        uint64_t seed) {
    std::mt19937_64 rng(seed);
    std::normal_distribution<double> normal(0, difference);
    std::vector<float> y = x;
    for (float& v : y) {
        v = float(v * (1 + std::clamp(normal(rng), -0.5, 0.5)));
    }
    return y;
}

void expect_precise_distances(
        const std::string& name,
        const std::function<real(real, real)>& term,
        const std::function<real(real, real)>& error) {
    const auto kernel = kernel_factory(name);
    for (size_t d : {7, 128, 5000}) {
        const auto x = rows(histograms(5, d, 100 + d), d, 0, 2);
        for (double difference : {1e-1, 1e-3, 1e-5, 1e-6}) {
            const auto y = neighbors_of(x, difference, d);
            const auto values = distances(*kernel, x, y, d);
            for (size_t i = 0; i < 2; i++) {
                const float *a = &x[i * d], *b = &y[i * d];
                const double expected = double(sum_of(a, b, d, term));
                const double bound = double(sum_of(a, b, d, error));
                EXPECT_NEAR(
                        values[i * 2 + i], expected, bound + 1e-5 * expected)
                        << name << ", d = " << d << ", difference "
                        << difference;
            }
        }
        for (size_t i = 0; i < 2; i++) {
            EXPECT_EQ(distances(*kernel, x, x, d)[i * 3], 0);
        }
    }
}

} // namespace

// Computed from differences, distances of close histograms keep their digits:
// through kernel values, all would be lost at a difference of 1e-4.
TEST(Distances, PreciseForCloseHistograms) {
    const auto exact = [](real, real) { return real(0); };
    expect_precise_distances("chi2", chi2_distance_term, exact);
    expect_precise_distances(
            "intersection",
            [](real a, real b) { return std::abs(a - b); },
            exact);
    expect_precise_distances("hellinger", hellinger_distance_term, exact);
    // x log2(2 x / (x + y)) + y log2(2 y / (x + y)), with log1p near 0
    expect_precise_distances(
            "js",
            [](real a, real b) {
                if (a + b == 0) {
                    return real(0);
                }
                const real delta = (a - b) / (a + b);
                const auto part = [](real v) {
                    return v <= -1 ? real(0) : (1 + v) * std::log1p(v);
                };
                return (a + b) /
                        (2 * std::numbers::ln2_v<real>)*(
                                part(delta) + part(-delta));
            },
            exact);
    expect_precise_distances(
            "linear", [](real a, real b) { return (a - b) * (a - b); }, exact);
    // a small distance is 2 D / gamma
    const auto kernel = kernel_factory("expchi2(gamma=0.5)");
    const size_t d = 128;
    const auto x = rows(histograms(5, d, 200), d, 0, 1);
    for (double difference : {1e-1, 1e-3, 1e-5, 1e-6}) {
        const auto y = neighbors_of(x, difference, 201);
        const real D = sum_of(x.data(), y.data(), d, chi2_distance_term);
        const double expected = double(-2 * std::expm1(-2 * D));
        EXPECT_NEAR(distances(*kernel, x, y, d)[0], expected, 1e-5 * expected);
    }
}

TEST(Distances, AreTheDistancesOfTheirNames) {
    const std::vector<float> x = {0.5f, 0, 0.25f}, y = {0.125f, 0.5f, 0};
    const auto value = [&](const char* name) {
        return distances(*kernel_factory(name), x, y, 3)[0];
    };
    EXPECT_NEAR(value("chi2"), 0.375 * 0.375 / 0.625 + 0.75, 1e-6);
    EXPECT_NEAR(value("intersection"), 0.375 + 0.75, 1e-6);
    const double root = std::sqrt(0.5) - std::sqrt(0.125);
    EXPECT_NEAR(value("hellinger"), root * root + 0.75, 1e-6);
}

TEST_P(AdditiveKernels, SelfValueIsTheSum) {
    const auto kernel = GetParam().make();
    for (size_t d : dimensions) {
        const auto x = uniform_vectors(3, d, d);
        const auto values = self_values(*kernel, x, d);
        for (size_t i = 0; i < 3; i++) {
            real sum = 0;
            for (size_t k = 0; k < d; k++) {
                sum += x[i * d + k];
            }
            EXPECT_NEAR(values[i], double(sum), 2e-7 * double(sum));
        }
    }
}

// Input.

TEST(Input, NegativeAndNotFiniteComponentsAreNamed) {
    for (const std::string name :
         {"chi2",
          "intersection",
          "js",
          "hellinger",
          "expchi2(gamma=1)",
          "normalized(chi2)",
          "exponential(normalized(js),scale=3)"}) {
        const auto kernel = kernel_factory(name);
        const size_t d = 37, n = 50;
        const auto good = uniform_vectors(n, d, 1);
        std::vector<float> out(n * n);
        for (float bad : {-1e-30f, -1.0f, nan_value, infinity, -infinity}) {
            std::vector<float> x = good;
            x[41 * d + 36] = bad;
            const std::vector<std::string> place = {
                    "component 36 of vector 41", ">= 0"};
            EXPECT_TRUE(throws(
                    [&] {
                        kernel->gram(
                                n, x.data(), n, good.data(), d, out.data());
                    },
                    place))
                    << name << ", " << bad;
            EXPECT_TRUE(throws(
                    [&] {
                        kernel->gram(
                                n, good.data(), n, x.data(), d, out.data());
                    },
                    place))
                    << name << ", " << bad;
            IndexFlatKernel index(int(d), *kernel);
            EXPECT_TRUE(throws([&] { index.add(n, x.data()); }, place));
            EXPECT_EQ(index.ntotal, 0);
        }
        std::vector<float> zeros = good;
        zeros[5] = -0.0f;
        EXPECT_NO_THROW(
                kernel->gram(n, zeros.data(), n, zeros.data(), d, out.data()));
        EXPECT_FALSE(std::isnan(out[0]));
    }
}

TEST(Input, SignedKernelsTakeNegativeComponents) {
    const size_t d = 33;
    const auto x = normal_vectors(4, d, 1);
    const auto cosine = normalized(additive(dot_term));
    const auto poly = polynomial(3, 1);
    const auto a = block(CosineKernel(), x, x, d);
    const auto b = block(PolynomialKernel(3, 1), x, x, d);
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < 4; j++) {
            const float *u = &x[i * d], *v = &x[j * d];
            EXPECT_NEAR(a[i * 4 + j], double(cosine(u, v, d)), 1e-6);
            const double scale = double(poly(u, u, d) + poly(v, v, d));
            EXPECT_NEAR(b[i * 4 + j], double(poly(u, v, d)), 1e-5 * scale);
        }
    }
    std::vector<float> bad = x, out(16);
    bad[2 * d + 3] = nan_value;
    for (const char* name : {"cosine", "poly(degree=2)"}) {
        EXPECT_TRUE(throws(
                [&] {
                    kernel_factory(name)->gram(
                            4, bad.data(), 4, x.data(), d, out.data());
                },
                {"component 3 of vector 2"}));
    }
}

TEST(NormalizedKernels, ZeroVectorsHaveValueZero) {
    const size_t d = 9;
    std::vector<float> x = uniform_vectors(2, d, 1);
    std::fill_n(x.begin(), d, 0);
    for (const char* name :
         {"cosine", "normalized(chi2)", "normalized(intersection)"}) {
        const auto kernel = kernel_factory(name);
        const auto values = block(*kernel, x, x, d);
        EXPECT_EQ(values[0], 0) << name;
        EXPECT_EQ(values[1], 0) << name;
        EXPECT_EQ(values[2], 0) << name;
        EXPECT_NEAR(values[3], 1, 1e-6) << name;
        EXPECT_EQ(self_values(*kernel, x, d), (std::vector<float>{0, 1}));
    }
}

// Parameters.

// The mean over all pairs of different vectors, while there are no more than
// 1,000.
TEST(ExpChi2, AutoGammaIsTheMeanDistance) {
    const size_t n = 100, d = 20;
    const auto x = clustered_histograms(n, d, 4, 30, 5);
    real sum = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            sum += sum_of(&x[i * d], &x[j * d], d, chi2_distance_term);
        }
    }
    const double expected = double(sum / (n * (n - 1)));
    for (const std::string name : {"expchi2", "expchi2(gamma=auto)"}) {
        const auto kernel = kernel_factory(name);
        auto& chi2 = dynamic_cast<ExpChi2Kernel&>(*kernel);
        EXPECT_FALSE(kernel->is_trained);
        EXPECT_EQ(kernel->description(), "expchi2");
        std::vector<float> out(1);
        EXPECT_TRUE(throws(
                [&] { kernel->gram(1, x.data(), 1, x.data(), d, out.data()); },
                {"bandwidth"}));
        kernel->train(n, x.data(), d);
        EXPECT_TRUE(kernel->is_trained);
        EXPECT_NEAR(chi2.gamma, expected, 1e-5 * expected);
        // the string tells all digits
        const auto again = kernel_factory(kernel->description());
        EXPECT_EQ(dynamic_cast<ExpChi2Kernel&>(*again).gamma, chi2.gamma);
        EXPECT_TRUE(again->is_trained);
    }
    // within another kernel
    const auto outer = kernel_factory("exponential(expchi2,scale=2)");
    EXPECT_FALSE(outer->is_trained);
    outer->train(n, x.data(), d);
    EXPECT_TRUE(outer->is_trained);
    EXPECT_NEAR(
            dynamic_cast<ExpChi2Kernel&>(
                    *dynamic_cast<ExponentialKernel&>(*outer).kernel)
                    .gamma,
            expected,
            1e-5 * expected);
}

TEST(ExpChi2, AutoGammaOfASample) {
    // mean of 1,000 of 3,000 vectors; the distances lie in [0, 2]. The mean
    // over pairs of a sample without replacement is a U-statistic: Hoeffding's
    // bound holds for it with floor(m / 2) pairs.
    const size_t n = 3000, d = 8;
    const auto x = clustered_histograms(n, d, 3, 20, 6);
    real sum = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            double a = 0;
            for (size_t k = 0; k < d; k++) {
                const double u = x[i * d + k], v = x[j * d + k];
                a += u + v > 0 ? (u - v) * (u - v) / (u + v) : 0;
            }
            sum += a;
        }
    }
    const double expected = double(2 * sum / (real(n) * (n - 1)));
    ExpChi2Kernel kernel, same;
    kernel.train(n, x.data(), d);
    EXPECT_NEAR(kernel.gamma, expected, 2 * hoeffding(500));
    same.train(n, x.data(), d);
    EXPECT_EQ(kernel.gamma, same.gamma);
    // a given gamma stays
    ExpChi2Kernel given(3);
    given.train(n, x.data(), d);
    EXPECT_EQ(given.gamma, 3);
}

TEST(ExpChi2, AutoGammaNeedsDifferentVectors) {
    const std::vector<float> same(40, 0.25f);
    ExpChi2Kernel kernel;
    EXPECT_TRUE(throws([&] { kernel.train(10, same.data(), 4); }, {"same"}));
    EXPECT_TRUE(throws([&] { kernel.train(1, same.data(), 4); }, {"2"}));
    EXPECT_TRUE(throws([&] { kernel.train(0, same.data(), 4); }));
    EXPECT_FALSE(kernel.is_trained);
    // distances that leave the range of float
    auto huge = uniform_vectors(100, 500, 1);
    for (float& v : huge) {
        v *= 1e37f;
    }
    EXPECT_TRUE(
            throws([&] { kernel.train(100, huge.data(), 500); }, {"gamma"}));
    EXPECT_FALSE(kernel.is_trained);
    const auto x = uniform_vectors(10, 4, 1);
    kernel.train(10, x.data(), 4);
    EXPECT_GT(kernel.gamma, 0);
}

TEST(Strings, Nested) {
    for (const std::string name :
         {"exponential(normalized(chi2),scale=5)",
          "normalized(exponential(normalized(poly(degree=2,c=0)),scale=0.25))",
          "exponential(exponential(cosine,scale=2),scale=3)",
          "normalized(gaussian(gamma=0.5))",
          "normalized(expchi2(gamma=2))"}) {
        const auto kernel = kernel_factory(name);
        EXPECT_EQ(kernel->description(), name);
        EXPECT_EQ(kernel->clone()->description(), name);
    }
    EXPECT_EQ(kernel_factory("poly")->description(), "poly");
    EXPECT_EQ(kernel_factory("poly(c=2)")->description(), "poly(c=2)");
    EXPECT_EQ(kernel_factory("cosine")->description(), "cosine");
}

TEST(Strings, Errors) {
    const std::vector<std::pair<std::string, std::string>> bad = {
            {"chi", "unknown kernel"},
            {"chi2(gamma=1)", "gamma"},
            {"chi2(2)", "2"},
            {"expchi2(gamma=0)", "gamma"},
            {"expchi2(gamma=-1)", "gamma"},
            {"expchi2(gama=1)", "gama"},
            {"poly(degree=0)", "degree"},
            {"poly(degree=101)", "degree"},
            {"poly(degree=1.5)", "degree"},
            {"poly(c=-1)", "c"},
            {"cosine(1)", "1"},
            {"normalized", "argument"},
            {"normalized()", "argument"},
            {"normalized(nothing)", "unknown kernel"},
            {"normalized(chi2,js)", "js"},
            {"normalized(chi2,scale=1)", "scale"},
            {"exponential(chi2)", "scale"},
            {"exponential(scale=2)", "argument"},
            {"exponential(chi2,scale=0)", "scale"},
            {"exponential(chi2,scale=nan)", "scale"},
            {"exponential(normalized(chi2,scale=5)", "("},
    };
    for (const auto& [name, says] : bad) {
        EXPECT_TRUE(throws([&] { kernel_factory(name); }, {name, says}))
                << name;
    }
    EXPECT_TRUE(throws([] { PolynomialKernel(0, 1); }));
    EXPECT_TRUE(throws([] { PolynomialKernel(3, -1); }));
    EXPECT_TRUE(throws([] { ExponentialKernel(Chi2Kernel(), 0); }));
    EXPECT_TRUE(throws([] { ExponentialKernel(Chi2Kernel(), HUGE_VAL); }));
    EXPECT_TRUE(throws([] { ExpChi2Kernel(-1); }));
}

// Kernels of the user.

namespace {

CallbackKernel::Function dot_function() {
    return [](size_t n,
              const float* x,
              size_t m,
              const float* y,
              size_t d,
              float* out) { LinearKernel().block(n, x, m, y, d, out); };
}

} // namespace

TEST(Callback, IsTheFunction) {
    const size_t n = 9, d = 6;
    const auto x = normal_vectors(n, d, 1);
    const CallbackKernel kernel(dot_function());
    const LinearKernel linear;
    EXPECT_TRUE(same_bits(block(kernel, x, x, d), block(linear, x, x, d)));
    EXPECT_TRUE(
            same_bits(self_values(kernel, x, d), self_values(linear, x, d)));
    const auto between = distances(kernel, x, x, d);
    const auto expected = distances(linear, x, x, d);
    for (size_t i = 0; i < n * n; i++) {
        EXPECT_NEAR(between[i], expected[i], 1e-4);
        EXPECT_GE(between[i], 0);
    }
    // copies call the same function
    const auto copy = kernel.clone();
    EXPECT_TRUE(dynamic_cast<CallbackKernel*>(copy.get()));
    EXPECT_TRUE(same_bits(block(*copy, x, x, d), block(linear, x, x, d)));
    // within other kernels
    const NormalizedKernel cosine(kernel);
    EXPECT_TRUE(
            same_bits(block(cosine, x, x, d), block(CosineKernel(), x, x, d)));
    const ExponentialKernel outer(cosine, 2);
    EXPECT_TRUE(same_bits(
            block(*outer.clone(), x, x, d),
            block(ExponentialKernel(CosineKernel(), 2), x, x, d)));
}

TEST(Callback, EmptyFunction) {
    EXPECT_TRUE(throws(
            [] { CallbackKernel{CallbackKernel::Function()}; }, {"empty"}));
}

TEST(Callback, ExceptionsReachTheCaller) {
    const size_t n = 500, d = 4;
    const auto x = uniform_vectors(n, d, 1);
    bool fail = true;
    const CallbackKernel kernel([&fail, linear = dot_function()](
                                        size_t n,
                                        const float* x,
                                        size_t m,
                                        const float* y,
                                        size_t d,
                                        float* out) {
        if (fail) {
            throw std::out_of_range("no kernel today");
        }
        linear(n, x, m, y, d, out);
    });
    const auto message = [](const std::function<void()>& f) -> std::string {
        try {
            f();
        } catch (const std::out_of_range& e) {
            return e.what();
        }
        return "nothing thrown";
    };
    std::vector<float> out(n * n);
    for (int threads : {1, 4}) {
        const Threads with(threads);
        fail = true;
        EXPECT_EQ(
                message([&] {
                    kernel.gram(n, x.data(), n, x.data(), d, out.data());
                }),
                "no kernel today");
        IndexFlatKernel index(int(d), kernel);
        index.add(n, x.data());
        std::vector<float> found(n);
        std::vector<idx_t> labels(n);
        EXPECT_EQ(
                message([&] {
                    index.search(n, x.data(), 1, found.data(), labels.data());
                }),
                "no kernel today");
        KernelizedLSH hash(int(d), 16, &kernel);
        hash.map.p = 20;
        hash.t = 5;
        EXPECT_EQ(message([&] { hash.train(n, x.data()); }), "no kernel today");
        EXPECT_FALSE(hash.is_trained);
        // all work afterwards
        fail = false;
        kernel.gram(n, x.data(), n, x.data(), d, out.data());
        EXPECT_TRUE(same_bits(out, block(LinearKernel(), x, x, d)));
        index.search(n, x.data(), 1, found.data(), labels.data());
        hash.train(n, x.data());
        EXPECT_TRUE(hash.is_trained);
        std::vector<uint8_t> codes(n * 2);
        fail = true;
        EXPECT_EQ(
                message([&] { hash.encode(n, x.data(), codes.data()); }),
                "no kernel today");
    }
}

TEST(Callback, GetsFiniteVectorsOnly) {
    const CallbackKernel kernel(
            [](size_t, const float*, size_t, const float*, size_t, float*) {
                ADD_FAILURE() << "called";
            });
    std::vector<float> x = {1, 2, 3, nan_value}, out(4);
    EXPECT_TRUE(throws(
            [&] { kernel.gram(2, x.data(), 2, x.data(), 2, out.data()); },
            {"component 1 of vector 1"}));
}

TEST(Callback, CannotBeWritten) {
    const CallbackKernel kernel(dot_function());
    const auto x = uniform_vectors(30, 4, 1);
    const TemporaryFile file;
    IndexFlatKernel index(4, kernel);
    index.add(30, x.data());
    EXPECT_TRUE(
            throws([&] { write_index(&index, file.name.c_str()); },
                   {"CallbackKernel", "no files"}));
    EXPECT_FALSE(std::filesystem::exists(file.name));
    const NormalizedKernel outer(kernel);
    KernelizedLSH hash(4, 8, &outer);
    hash.map.p = 10;
    hash.t = 3;
    hash.train(30, x.data());
    EXPECT_TRUE(
            throws([&] { write_VectorTransform(&hash, file.name.c_str()); },
                   {"CallbackKernel", "no files"}));
    EXPECT_FALSE(std::filesystem::exists(file.name));
    // but it can be copied
    const auto copy = hash.clone();
    std::vector<uint8_t> a(30), b(30);
    hash.encode(30, x.data(), a.data());
    copy->encode(30, x.data(), b.data());
    EXPECT_EQ(a, b);
}
