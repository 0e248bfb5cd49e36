// HomogeneousKernelMap against the formulas of Vedaldi and Zisserman, PAMI
// 2012, in double precision, and in front of FAISS's indexes.

#include <faiss_ext/maps/HomogeneousKernelMap.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <faiss/IndexFlat.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/impl/io.h>
#include <faiss/index_factory.h>

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/GaussianKernel.h>
#include "core/Spec.h"

#include "simd/homogeneous_map.h"
#include "testing_data.h"
#include "testing_indexes.h"
#include "testing_targets.h"
#include "testing_theory.h"

using namespace faiss_ext;
using namespace testing_data;
using namespace testing_targets;
using faiss_ext_test::throws;
using testing_theory::float_unit;
using testing_theory::pi;
using Window = AdditiveKernel::Window;
using Map = HomogeneousKernelMap;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();
const std::vector<std::string> sampled = {"chi2", "js", "intersection"};

std::unique_ptr<AdditiveKernel> make_additive(const std::string& name) {
    return std::unique_ptr<AdditiveKernel>(
            dynamic_cast<AdditiveKernel*>(kernel_factory(name).release()));
}

// The formulas of the paper's table 1.

double signature(const std::string& kernel, double lambda) {
    const double e = std::exp(lambda / 2), f = 1 / e;
    if (kernel == "chi2") {
        return 2 / (e + f);
    }
    if (kernel == "intersection") {
        return std::min(e, f);
    }
    if (kernel == "js") {
        return (e * std::log1p(f / e) + f * std::log1p(e / f)) / std::log(4.0);
    }
    return 1;
}

double spectrum(const std::string& kernel, double omega) {
    const double sech = 2 / (std::exp(pi * omega) + std::exp(-pi * omega));
    if (kernel == "chi2") {
        return sech;
    }
    const double square = 1 + 4 * omega * omega;
    return kernel == "js" ? 2 / std::log(4.0) * sech / square : 2 / pi / square;
}

double default_period(const std::string& kernel, int m, Window window) {
    if (window == Window::uniform) {
        return kernel == "chi2"  ? 5.86 * std::sqrt(m) + 3.65
                : kernel == "js" ? 6.64 * std::sqrt(m) + 7.24
                                 : 2.38 * std::log(m + 0.8) + 5.6;
    }
    return kernel == "chi2"  ? 8.80 * std::sqrt(m + 4.44) - 12.6
            : kernel == "js" ? 9.63 * std::sqrt(m + 1.0) - 2.93
                             : 2.00 * std::log(m + 0.99) + 3.52;
}

/// Gauss's rule of 5 points on pieces of length `step`, whose error is of the
/// order of step^10.
double integral(
        const std::function<double(double)>& f,
        double begin,
        double end,
        double step) {
    constexpr double node[] = {0, 0.5384693101056831, 0.9061798459386640};
    constexpr double weight[] = {
            0.5688888888888889, 0.4786286704993665, 0.2369268850561891};
    const int pieces = int(std::ceil((end - begin) / step));
    const double half = (end - begin) / pieces / 2;
    double sum = 0;
    for (int i = 0; i < pieces; i++) {
        const double mid = begin + (2 * i + 1) * half;
        sum += weight[0] * f(mid);
        for (int j = 1; j < 3; j++) {
            sum += weight[j] *
                    (f(mid - half * node[j]) + f(mid + half * node[j]));
        }
    }
    return sum * half;
}

/// The kernel's spectrum, or that of the signature cut off at +-period / 2.
double sampled_spectrum(
        const std::string& kernel,
        Window window,
        double period,
        double omega) {
    if (window == Window::uniform) {
        return spectrum(kernel, omega);
    }
    // the signature is even, and smooth on each side
    return integral(
                   [&](double lambda) {
                       return signature(kernel, lambda) *
                               std::cos(omega * lambda);
                   },
                   0,
                   period / 2,
                   0.25 / (1 + omega)) /
            pi;
}

/** Bound of the error of component c = 0..2m of value v, relative to the
 * amplitude a_j v^(g / 2), by the header: 1e-6 (j + |j L log v|), and 1e-6 for
 * j = 0. (There the header's formula leaves no room for rounding; 1e-6 is what
 * it says of the others.)
 *
 * For a degree other than 1 the root is exp(g / 2 log v): an error of the
 * logarithm or the product of two units of a number (g / 2) |log v| is one of
 * the exponent, and so a relative one of the result.
 */
double component_bound(int c, double frequency, double degree, double v) {
    const int j = (c + 1) / 2;
    const double log = std::abs(std::log(v));
    const double power =
            degree == 1 ? 0 : 4 * float_unit * (degree / 2 * log + 1);
    return 1e-6 * (std::max(j, 1) + j * frequency * log) + power;
}

double exact_component(
        int c,
        double amplitude,
        double frequency,
        double degree,
        double v) {
    const int j = (c + 1) / 2;
    const double angle = j * frequency * std::log(v);
    return amplitude * std::pow(v, degree / 2) *
            (c % 2 == 1 || c == 0 ? std::cos(angle) : std::sin(angle));
}

double frequency_of(const Map& map) {
    return map.period > 0 ? 2 * pi / map.period : 0;
}

std::vector<float> mapped(
        const faiss::VectorTransform& vt,
        const std::vector<float>& x) {
    const size_t n = x.size() / vt.d_in;
    std::vector<float> xt(n * vt.d_out, nan_value);
    vt.apply_noalloc(n, x.data(), xt.data());
    return xt;
}

void expect_components(
        const Map& map,
        const std::vector<float>& x,
        const std::vector<float>& xt,
        const std::string& what) {
    const double L = frequency_of(map);
    const size_t d = map.d_in, n = x.size() / d;
    ASSERT_EQ(xt.size(), n * d * map.components());
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < d; k++) {
            const double v = x[i * d + k];
            for (int c = 0; c < map.components(); c++) {
                const double got = xt[i * map.d_out + c * d + k];
                if (v < 1e-37f) {
                    ASSERT_EQ(got, 0) << what;
                    continue;
                }
                const double a = map.amplitudes[(c + 1) / 2];
                const double scale = a * std::pow(v, map.degree / 2);
                ASSERT_NEAR(
                        got,
                        exact_component(c, a, L, map.degree, v),
                        component_bound(c, L, map.degree, v) * scale + 1e-44)
                        << what << ", component " << c << " of " << v;
            }
        }
    }
}

/// n histograms from a Dirichlet distribution of parameter alpha
std::vector<float> dirichlet(size_t n, size_t d, double alpha, uint64_t seed) {
    std::mt19937_64 rng(seed);
    std::vector<float> x;
    for (size_t i = 0; i < n; i++) {
        std::vector<double> h(d);
        double sum = 0;
        for (double& v : h) {
            v = std::gamma_distribution<double>(alpha)(rng);
            sum += v;
        }
        for (double v : h) {
            x.push_back(float(v / sum));
        }
    }
    return x;
}

double kernel_value(
        const std::string& kernel,
        const float* x,
        const float* y,
        size_t d) {
    double sum = 0;
    for (size_t k = 0; k < d; k++) {
        const double a = x[k], b = y[k];
        if (a > 0 && b > 0) {
            sum += std::sqrt(a * b) * signature(kernel, std::log(b / a));
        }
    }
    return sum;
}

double dot(const float* a, const float* b, size_t d) {
    double sum = 0;
    for (size_t k = 0; k < d; k++) {
        sum += double(a[k]) * b[k];
    }
    return sum;
}

std::vector<uint8_t> bytes_of(const faiss::VectorTransform& vt) {
    faiss::VectorIOWriter writer;
    faiss_ext::write_VectorTransform(&vt, &writer);
    return writer.data;
}

std::unique_ptr<Map> from_bytes(const std::vector<uint8_t>& bytes) {
    faiss::VectorIOReader reader;
    reader.data = bytes;
    auto vt = read_VectorTransform(&reader);
    auto& map = dynamic_cast<Map&>(*vt);
    vt.release();
    return std::unique_ptr<Map>(&map);
}

std::unique_ptr<Map> from_string(int d, const std::string& text) {
    auto index = faiss_ext::index_factory(d, text + ",Flat");
    auto& pre = dynamic_cast<faiss::IndexPreTransform&>(*index);
    return std::make_unique<Map>(dynamic_cast<Map&>(*pre.chain[0]));
}

/// The largest error of the map for a pair of components up to 1: that of
/// (1, exp(-lambda)), exp(-lambda / 2) |K(lambda) - map_signature(lambda)|.
double largest_error(const Map& map, const std::string& kernel) {
    double largest = 0;
    // beyond 60 it is below 2 exp(-30)
    for (double lambda = 0; lambda < 60; lambda += 1.0 / 256) {
        const double error =
                signature(kernel, lambda) - map.map_signature(lambda);
        largest = std::max(largest, std::exp(-lambda / 2) * std::abs(error));
    }
    return largest;
}

class EveryTarget : public ::testing::TestWithParam<int64_t> {
   protected:
    Target guard{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(
        Simd,
        EveryTarget,
        ::testing::ValuesIn(targets()),
        [](const auto& info) {
            return std::string(hwy::TargetName(info.param));
        });

} // namespace

// A sample of the spectrum with the uniform window is its formula. With the
// rectangular window the library integrates by Simpson's rule with steps h <= 1
// / (64 (1 + omega / 2 pi)) on [0, period / 2]: it errs by at most period / 2
// h^4 / 180 max |f''''| / pi, and |f''''| <= (1 + omega)^4 for f = K(lambda)
// cos(omega lambda), since derivatives of K up to the fourth are at most 1.
// That makes at most 1e-6 period / 2 / pi in the spectrum.
TEST(Amplitudes, AreSamplesOfTheSpectrum) {
    for (const std::string& kernel : sampled) {
        for (Window window : {Window::uniform, Window::rectangular}) {
            for (int m : {1, 2, 3, 10, 40}) {
                for (double given : {0.0, 4.0, 17.5}) {
                    const Map map(3, *make_additive(kernel), m, window, given);
                    const double period = given > 0
                            ? given
                            : default_period(kernel, m, window);
                    EXPECT_DOUBLE_EQ(map.period, period);
                    ASSERT_EQ(int(map.amplitudes.size()), m + 1);
                    EXPECT_EQ(map.components(), 2 * m + 1);
                    EXPECT_EQ(map.d_out, 3 * (2 * m + 1));
                    const double L = 2 * pi / period;
                    for (int j = 0; j <= m; j++) {
                        const double factor = (j == 0 ? 1 : 2) * L;
                        const double kappa = std::max(
                                0.0,
                                sampled_spectrum(
                                        kernel, window, period, j * L));
                        const double simpson = window == Window::uniform
                                ? 0
                                : 1e-6 * period / 2 / pi;
                        const double a = map.amplitudes[j];
                        EXPECT_NEAR(
                                a * a,
                                factor * kappa,
                                factor * (simpson + 3 * float_unit * kappa) +
                                        1e-40)
                                << kernel << ", window " << int(window)
                                << ", m = " << m << ", period " << given
                                << ", sample " << j;
                    }
                }
            }
        }
    }
}

// Order 0: one component; the period of the default makes it sqrt(x).
TEST(Amplitudes, OrderZero) {
    for (const std::string& kernel : sampled) {
        const auto k = make_additive(kernel);
        const Map map(4, *k, 0);
        EXPECT_EQ(map.d_out, 4);
        ASSERT_EQ(map.amplitudes.size(), 1u);
        EXPECT_NEAR(map.amplitudes[0], 1, 2 * float_unit);
        EXPECT_DOUBLE_EQ(map.period, 2 * pi * spectrum(kernel, 0));
        const Map given(4, *k, 0, Window::uniform, 7);
        EXPECT_NEAR(
                given.amplitudes[0],
                std::sqrt(2 * pi / 7 * spectrum(kernel, 0)),
                2 * float_unit);
    }
}

// The default period of order 0 makes the map sqrt(x) with either window.
TEST(Amplitudes, OrderZeroOfTheRectangularWindow) {
    for (const std::string& kernel : sampled) {
        const Map map(4, *make_additive(kernel), 0, Window::rectangular);
        // Simpson's rule: see above
        EXPECT_NEAR(map.amplitudes[0], 1, 1e-6) << kernel;
    }
}

// Windows beyond the range in which exp(-lambda / 2) is a number above 0: the
// signature is 0 there, and what is cut off is nothing, so that the amplitudes
// are those of the uniform window, up to Simpson's error, 1e-6 period / 2 / pi
// in the spectrum.
TEST(Amplitudes, WideRectangularWindows) {
    for (const std::string& kernel : sampled) {
        const auto k = make_additive(kernel);
        for (double period : {100.0, 2000.0, 4000.0, 10000.0}) {
            const Map wide(1, *k, 1, Window::rectangular, period);
            const Map uniform(1, *k, 1, Window::uniform, period);
            const double simpson = 2 * 2 * pi / period * 1e-6 * period / 2 / pi;
            for (int j = 0; j <= 1; j++) {
                const double a = wide.amplitudes[j], b = uniform.amplitudes[j];
                EXPECT_NEAR(a * a, b * b, simpson + 4 * float_unit * b * b)
                        << kernel << ", period " << period;
            }
        }
    }
}

TEST(Signatures, AreTheFormulasAndEven) {
    for (const std::string kernel :
         {"chi2", "js", "intersection", "hellinger"}) {
        const auto k = make_additive(kernel);
        for (double lambda = 0; lambda < 80; lambda += 0.37) {
            // the formula adds few terms of one sign
            EXPECT_NEAR(
                    k->signature(lambda),
                    signature(kernel, lambda),
                    1e-13 * signature(kernel, lambda))
                    << kernel << ", " << lambda;
            EXPECT_DOUBLE_EQ(k->signature(lambda), k->signature(-lambda));
        }
        EXPECT_DOUBLE_EQ(k->signature(0), 1);
    }
}

// 0 <= K(lambda) <= 1 for every lambda: a kernel of positive numbers with k(x,
// x) = x.
TEST(Signatures, AreNumbersEverywhere) {
    for (const std::string kernel :
         {"chi2", "js", "intersection", "hellinger"}) {
        const auto k = make_additive(kernel);
        for (double lambda : {100., 700., 1400., 1480., 1500., 3000., 1e5}) {
            for (double sign : {-1., 1.}) {
                const double value = k->signature(sign * lambda);
                EXPECT_TRUE(value >= 0 && value <= 1)
                        << kernel << " at " << sign * lambda << ": " << value;
            }
        }
    }
}

// The kernel of two components is sqrt(x y) K(log y / x); its values are
// accurate to 1e-4.
TEST(Signatures, AreThoseOfTheKernels) {
    std::mt19937_64 rng(1);
    std::uniform_real_distribution<double> exponent(-30, 30);
    for (const std::string kernel :
         {"chi2", "js", "intersection", "hellinger"}) {
        const auto k = make_additive(kernel);
        for (int i = 0; i < 500; i++) {
            const float x = float(std::exp(exponent(rng)));
            const float y = i % 2 ? float(std::exp(exponent(rng))) : x * 1.25f;
            float value = nan_value;
            k->block(1, &x, 1, &y, 1, &value);
            const double expected = std::sqrt(double(x) * y) *
                    k->signature(std::log(double(y) / x));
            EXPECT_NEAR(value, expected, 1e-4 * expected) << x << ", " << y;
        }
    }
}

// The spectrum is the transform of the signature. Beyond 100 the signatures
// are below 100 exp(-50); Gauss's rule is exact to rounding with pieces of a
// fraction of an oscillation.
TEST(Signatures, TransformIsTheSpectrum) {
    for (const std::string& kernel : sampled) {
        const auto k = make_additive(kernel);
        for (double omega : {0.0, 0.1, 0.5, 1.0, 2.3, 5.0}) {
            const auto f = [&](double lambda) {
                return k->signature(lambda) * std::cos(omega * lambda);
            };
            const double transform =
                    integral(f, 0, 100, 0.25 / (1 + omega)) / pi;
            EXPECT_NEAR(k->spectrum(omega), transform, 1e-11) << kernel;
            EXPECT_DOUBLE_EQ(k->spectrum(omega), k->spectrum(-omega));
            EXPECT_NEAR(k->spectrum(omega), spectrum(kernel, omega), 1e-15);
        }
    }
    EXPECT_EQ(HellingerKernel().spectrum(1), 0);
    EXPECT_EQ(HellingerKernel().spectrum(0), HUGE_VAL);
}

// And the signature that of the spectrum. By Poisson's formula the sum h sum_j
// kappa(j h) cos(j h lambda) over all j is sum_n K(lambda + 2 pi n / h), whose
// other terms are below 1e-20 for h = 1 / 16; the terms left out behind W are
// at most 2 int_W^inf kappa: nothing for chi2 and js at W = 20, and below 1 /
// (pi W) for intersection.
TEST(Signatures, AreTransformsOfTheSpectrum) {
    for (const std::string& kernel : sampled) {
        const auto k = make_additive(kernel);
        const double h = 1.0 / 16, W = kernel == "intersection" ? 2000 : 20;
        const double tail = kernel == "intersection" ? 1 / (pi * W) : 0;
        for (double lambda : {0.0, 0.2, 1.0, 3.0, 8.0}) {
            double sum = k->spectrum(0);
            for (int j = 1; j * h <= W; j++) {
                sum += 2 * k->spectrum(j * h) * std::cos(j * h * lambda);
            }
            EXPECT_NEAR(h * sum, k->signature(lambda), tail + 1e-12) << kernel;
        }
    }
}

TEST(Maps, EqualTheFormula) {
    for (const std::string& kernel : sampled) {
        const auto k = make_additive(kernel);
        for (int m : {0, 1, 2, 3, 10}) {
            for (Window window : {Window::uniform, Window::rectangular}) {
                for (double degree : {0.5, 1.0, 2.0}) {
                    for (int d : {1, 2, 3, 7, 15, 17, 33, 100}) {
                        const double period = d == 3 ? 11 : 0;
                        const Map map(d, *k, m, window, period, degree);
                        std::vector<float> x =
                                uniform_vectors(5, d, d + 100 * m);
                        std::fill_n(x.begin(), d, 0);
                        x[2 * d - 1] = 1;
                        x[2 * d] = 1e-10f;
                        expect_components(
                                map,
                                x,
                                mapped(map, x),
                                kernel + " of order " + std::to_string(m));
                    }
                }
            }
        }
    }
}

// The documented accuracy for values of any size, on every instruction set. The
// coordinates go round all lanes.
TEST_P(EveryTarget, AccuracyOverTheWholeRange) {
    std::vector<float> x = {
            0, 1e-45f, 1e-40f, 9.9e-38f, 1.01e-37f, 1, 2, 0.5f, 1e36f};
    std::mt19937_64 rng(5);
    std::uniform_real_distribution<double> exponent(-36, 36);
    while (x.size() < 1003) {
        x.push_back(float(std::pow(10, exponent(rng))));
    }
    const int d = int(x.size());
    for (const std::string& kernel : sampled) {
        for (int m : {0, 1, 3, 10}) {
            for (double degree : {1.0, 0.5}) {
                const Map map(
                        d,
                        *make_additive(kernel),
                        m,
                        Window::uniform,
                        0,
                        degree);
                expect_components(map, x, mapped(map, x), kernel);
            }
        }
    }
    // angles up to 5e5, and many multiples of an angle
    for (auto [period, m] : {std::pair<double, int>{1e-3, 2}, {50, 100}}) {
        const Map map(d, IntersectionKernel(), m, Window::uniform, period);
        expect_components(map, x, mapped(map, x), "period");
    }
}

// The loop alone: a scale, signs, and every length up to beyond two vectors of
// lanes, beside memory that must stay as it is.
TEST_P(EveryTarget, LoopOfEveryLength) {
    const std::vector<float> amplitudes = {0.9f, 0.5f, 0.25f};
    const double L = 0.7;
    const simd::HomogeneousMap map = {2, amplitudes.data(), float(L), 0.5f};
    const float scale = 0.375f; // products with it are rounded once
    for (size_t d = 0; d <= 40; d++) {
        std::vector<float> x = uniform_vectors(1, d, d + 1, -1, 1);
        std::vector<float> out(5 * d + 1, 42);
        simd::homogeneous_map(map, d, x.data(), scale, out.data());
        EXPECT_EQ(out[5 * d], 42);
        for (size_t k = 0; k < d; k++) {
            const double v = std::abs(double(x[k])) * scale;
            for (int c = 0; c < 5; c++) {
                const double a = amplitudes[(c + 1) / 2];
                EXPECT_NEAR(
                        out[c * d + k],
                        std::copysign(1.0, x[k]) *
                                exact_component(c, a, float(L), 1, v),
                        component_bound(c, L, 1, v) * a * std::sqrt(v));
            }
        }
    }
}

// A vector's map does not depend on its batch or the threads.
TEST(Maps, DoNotDependOnThreadsAndBatches) {
    const size_t n = 3000, d = 37;
    const Map map(d, Chi2Kernel(), 2);
    const std::vector<float> x = dirichlet(n, d, 0.5, 3);
    std::vector<float> one(n * map.d_out), all;
    {
        const ThreadCount threads(1);
        for (size_t i = 0; i < n; i++) {
            map.apply_noalloc(1, &x[i * d], &one[i * map.d_out]);
        }
        all = mapped(map, x);
    }
    EXPECT_TRUE(same_bits(one, all));
    const ThreadCount threads(4);
    EXPECT_TRUE(same_bits(one, mapped(map, x)));
    map.apply_noalloc(0, nullptr, nullptr);
}

// Inner products are sums of (x y)^(g / 2) map_signature(log y / x), squared
// lengths squared_norm() times the sum of x^g: what errors of the components,
// b_x and b_y of their amplitudes, do to a product is at most a^2 (x y)^(g / 2)
// (b_x + b_y
// + b_x b_y).
TEST(Maps, InnerProductsAreKnown) {
    for (const std::string& kernel : sampled) {
        for (Window window : {Window::uniform, Window::rectangular}) {
            for (auto [m, degree] :
                 {std::pair<int, double>{0, 1},
                  {1, 1},
                  {2, 1},
                  {5, 1},
                  {2, 0.5},
                  {1, 2}}) {
                const size_t n = 12, d = 20;
                const Map map(d, *make_additive(kernel), m, window, 0, degree);
                const double L = frequency_of(map);
                const std::vector<float> x = dirichlet(n, d, 0.5, m + 1);
                const std::vector<float> xt = mapped(map, x);
                for (size_t i = 0; i < n; i++) {
                    for (size_t j = 0; j <= i; j++) {
                        double expected = 0, bound = 1e-12, mass = 0;
                        for (size_t k = 0; k < d; k++) {
                            const double a = x[i * d + k], b = x[j * d + k];
                            if (a < 1e-37f || b < 1e-37f) {
                                continue;
                            }
                            const double root = std::pow(a * b, degree / 2);
                            mass += root;
                            expected +=
                                    root * map.map_signature(std::log(b / a));
                            for (int c = 0; c < map.components(); c++) {
                                const double amp = map.amplitudes[(c + 1) / 2];
                                const double p =
                                        component_bound(c, L, degree, a);
                                const double q =
                                        component_bound(c, L, degree, b);
                                bound += amp * amp * root * (p + q + p * q);
                            }
                        }
                        EXPECT_NEAR(
                                dot(&xt[i * map.d_out],
                                    &xt[j * map.d_out],
                                    map.d_out),
                                expected,
                                bound);
                        if (i == j) { // sum x^g
                            EXPECT_NEAR(
                                    expected,
                                    map.squared_norm() * mass,
                                    1e-12 * mass);
                            if (degree == 1) { // 1 but for rounding
                                EXPECT_NEAR(mass, 1, (d + 2) * float_unit);
                            }
                        }
                    }
                }
            }
        }
    }
}

TEST(Maps, SquaredNormAndSignature) {
    const Map map(1, Chi2Kernel(), 2, Window::uniform, 9);
    const double L = 2 * pi / 9;
    for (double lambda : {0.0, 0.5, 3.0, 20.0}) {
        double sum = 0;
        for (int j = -2; j <= 2; j++) {
            sum += L * spectrum("chi2", j * L) * std::cos(j * L * lambda);
        }
        // three squares of floats
        EXPECT_NEAR(map.map_signature(lambda), sum, 4 * float_unit);
        EXPECT_DOUBLE_EQ(map.map_signature(lambda), map.map_signature(-lambda));
    }
    EXPECT_EQ(map.squared_norm(), map.map_signature(0));
    const Map hellinger(3, HellingerKernel(), 5);
    EXPECT_EQ(hellinger.squared_norm(), 1);
    EXPECT_EQ(hellinger.map_signature(7), 1);
}

// By Poisson's formula the samples at all j give sum_n K(lambda + n Lambda).
// The samples left out, |j| > m, change that by at most T = 2 L sum_{j>m}
// kappa(j L); the copies n != 0, weighted by exp(-lambda / 2), are each at most
// C exp(-|n| Lambda / 2) for 0 <= lambda <= Lambda, where K(lambda) <= C
// exp(-|lambda| / 2). C = 2 for chi2; for js (|lambda| + 2) / log 4, lambda up
// to 2 Lambda for those that count. (Beyond Lambda both functions are at most
// about 1, and the weight below exp(-Lambda / 2).) Three times exp(-Lambda / 2)
// covers the other copies.
//
// With the default periods both parts fall as exp(-c sqrt m): kappa(m L) ~
// exp(-2 pi^2 m / Lambda), c = 3.37 and 2.93 for chi2, 2.97 and 3.32 for js.
// The constant terms of the periods flatten T for small m. c >= 2 is asked for.
TEST(Errors, FallExponentiallyForSmoothKernels) {
    for (const std::string kernel : {"chi2", "js"}) {
        double first = 0, before = 1;
        for (int m : {1, 2, 3, 5, 8, 12}) {
            const Map map(1, *make_additive(kernel), m);
            const double L = frequency_of(map);
            double tail = 0;
            for (int j = m + 1; j * L < 15; j++) {
                tail += 2 * L * spectrum(kernel, j * L);
            }
            const double C =
                    kernel == "chi2" ? 2 : (2 * map.period + 2) / std::log(4.0);
            const double bound = tail + 3 * C * std::exp(-map.period / 2);
            const double error = largest_error(map, kernel);
            EXPECT_LE(error, bound + 4 * float_unit) << kernel << ", " << m;
            EXPECT_LT(error, before);
            before = error;
            if (m == 1) {
                first = error;
            } else {
                EXPECT_LE(
                        std::log(error / first),
                        -2 * (std::sqrt(m) - 1) + 4 * float_unit)
                        << kernel << ", " << m;
            }
        }
    }
}

// intersection: kappa falls as 1 / omega^2, and the samples left out sum to T
// = 2 L sum_{j>m} kappa(j L), from 2 int_{(m+1) L}^inf kappa to 2 int_{m L}^inf
// kappa, where 2 int_w^inf kappa = 2 / pi (pi / 2 - atan 2 w). At lambda = 0
// the copies add 2 / (exp(Lambda / 2) - 1), so that the error is at least the
// difference, and anywhere it is at most T plus the copies, as above.
TEST(Errors, FallSlowlyForIntersection) {
    const auto rest = [](double w) { return 1 - 2 / pi * std::atan(2 * w); };
    double first = 0;
    for (int m : {2, 3, 5, 8, 12, 20}) {
        const Map map(1, IntersectionKernel(), m);
        const double L = frequency_of(map);
        const double copies = std::exp(-map.period / 2);
        const double error = largest_error(map, "intersection");
        EXPECT_GE(error, rest((m + 1) * L) - 2 * copies / (1 - copies));
        EXPECT_LE(error, rest(m * L) + 3 * copies);
        if (m == 2) {
            first = error;
        } else { // T is about Lambda / (pi^2 m), and Lambda grows
            EXPECT_GT(error / first, std::pow(m / 2.0, -1.5)) << m;
        }
    }
}

// Measured elsewhere on 50 such histograms: the same order of magnitude.
TEST(Errors, OnRandomHistograms) {
    const size_t n = 50, d = 20;
    const std::vector<float> x = dirichlet(n, d, 0.5, 7);
    const auto largest = [&](const std::string& kernel, int m) {
        const Map map(d, *make_additive(kernel), m);
        const std::vector<float> xt = mapped(map, x);
        double error = 0;
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                const double product =
                        dot(&xt[i * map.d_out], &xt[j * map.d_out], map.d_out);
                const double value =
                        kernel_value(kernel, &x[i * d], &x[j * d], d);
                error = std::max(error, std::abs(product - value));
            }
        }
        return error;
    };
    const struct {
        std::string kernel;
        int m;
        double error;
    } rows[] = {
            {"chi2", 1, 0.050},
            {"chi2", 2, 0.017},
            {"chi2", 3, 0.0068},
            {"chi2", 5, 0.0017},
            {"js", 1, 0.024},
            {"js", 2, 0.0089},
            {"js", 3, 0.0039},
            {"js", 5, 0.0008},
            {"intersection", 1, 0.158},
            {"intersection", 2, 0.122},
            {"intersection", 3, 0.100},
            {"intersection", 5, 0.074},
            {"intersection", 10, 0.047}};
    for (const auto& row : rows) {
        const double error = largest(row.kernel, row.m);
        EXPECT_LT(error, 2 * row.error) << row.kernel << ", " << row.m;
        EXPECT_GT(error, row.error / 4) << row.kernel << ", " << row.m;
    }
}

// sqrt(x), correctly rounded, of one component whatever the order.
TEST(Maps, HellingerIsExact) {
    for (int order : {0, 1, 7}) {
        for (Window window : {Window::uniform, Window::rectangular}) {
            const Map map(21, HellingerKernel(), order, window, 5);
            EXPECT_EQ(map.d_out, 21);
            EXPECT_EQ(map.components(), 1);
            EXPECT_EQ(map.period, 0);
            std::vector<float> x = uniform_vectors(9, 21, 3);
            x[5] = 0;
            x[6] = 1e36f;
            const std::vector<float> xt = mapped(map, x);
            for (size_t i = 0; i < x.size(); i++) {
                EXPECT_EQ(xt[i], std::sqrt(x[i]));
            }
        }
    }
}

TEST(Maps, NegativeComponents) {
    const size_t n = 6, d = 19;
    std::vector<float> x = uniform_vectors(n, d, 3, -1, 1);
    std::vector<float> absolute = x;
    for (float& v : absolute) {
        v = std::abs(v);
    }
    for (double degree : {1.0, 0.5}) {
        Map map(d, JensenShannonKernel(), 2, Window::uniform, 0, degree);
        const std::string error = message_of([&] { mapped(map, x); });
        EXPECT_TRUE(contains(error, "expected a finite number >= 0")) << error;
        EXPECT_TRUE(contains(error, "of vector")) << error;
        map.negative = Map::Negative::sign;
        const std::vector<float> xt = mapped(map, x);
        const std::vector<float> positive = mapped(map, absolute);
        for (size_t i = 0; i < n; i++) {
            for (int k = 0; k < map.d_out; k++) {
                const float sign = x[i * d + k % d] < 0 ? -1.0f : 1.0f;
                ASSERT_EQ(
                        xt[i * map.d_out + k],
                        sign * positive[i * map.d_out + k]);
            }
        }
        map.negative = Map::Negative::error;
        EXPECT_TRUE(same_bits(mapped(map, absolute), positive));
    }
    // -0 is no negative component
    const Map map(1, Chi2Kernel());
    for (float v : mapped(map, {-0.0f})) {
        EXPECT_EQ(v, 0);
    }
}

TEST(Maps, NotFinite) {
    for (auto negative : {Map::Negative::error, Map::Negative::sign}) {
        for (float bad : {nan_value, infinity, -infinity}) {
            Map map(5, Chi2Kernel(), 2);
            map.negative = negative;
            std::vector<float> x = uniform_vectors(4, 5, 1);
            x[13] = bad;
            std::vector<float> xt(4 * map.d_out, 42);
            const std::string error = message_of(
                    [&] { map.apply_noalloc(4, x.data(), xt.data()); });
            EXPECT_TRUE(contains(error, "component 3 of vector 2")) << error;
            EXPECT_EQ(xt, std::vector<float>(4 * map.d_out, 42));
        }
    }
    const Map map(5, Chi2Kernel(), 2);
    EXPECT_TRUE(
            throws([&] { map.apply_noalloc(1, nullptr, nullptr); }, "null"));
    EXPECT_TRUE(throws([&] { map.apply_noalloc(-1, nullptr, nullptr); }, "-1"));
}

// Rows of any mass give the map of the normalised row. The library multiplies
// by a rounded inverse, and once more where the mass is huge: 4 units of v, of
// which the angle j L log v takes 4 units times j L, and the root 2.
TEST(Maps, NormL1) {
    const size_t d = 23;
    Map map(d, Chi2Kernel(), 3);
    const double L = frequency_of(map);
    map.norm = Map::Norm::l1;
    std::vector<float> x = dirichlet(1, d, 1, 3);
    x[4] = 0;
    for (double mass :
         {1e-44,
          1e-39,
          1e-36,
          1e-30,
          1e-3,
          1.,
          7.,
          1e10,
          1e29,
          1e31,
          1e36,
          1e37}) {
        std::vector<float> row(d);
        double sum = 0;
        for (size_t k = 0; k < d; k++) {
            row[k] = float(x[k] * mass);
            sum += row[k];
        }
        const std::vector<float> xt = mapped(map, row);
        for (size_t k = 0; k < d; k++) {
            for (int c = 0; c < map.components(); c++) {
                const float got = xt[c * d + k];
                if (row[k] == 0 || mass < 1e-38) { // counts as 0
                    EXPECT_EQ(got, 0) << mass;
                    continue;
                }
                const double v = row[k] / sum;
                const double a = map.amplitudes[(c + 1) / 2];
                EXPECT_NEAR(
                        got,
                        exact_component(c, a, L, 1, v),
                        (component_bound(c, L, 1, v) +
                         4 * float_unit * (1 + (c + 1) / 2 * L)) *
                                a * std::sqrt(v))
                        << "mass " << mass << ", component " << c;
            }
        }
    }
    EXPECT_EQ(
            mapped(map, std::vector<float>(d)), std::vector<float>(map.d_out));
    // with signs, the mass is that of the absolute values
    map.negative = Map::Negative::sign;
    std::vector<float> negated = x;
    for (float& v : negated) {
        v = -v;
    }
    std::vector<float> expected = mapped(map, x);
    for (float& v : expected) {
        v = -v;
    }
    EXPECT_EQ(mapped(map, negated), expected);
}

// Powers of two change nothing in a normalised row.
TEST(Maps, NormL1TakesPowersOfTwoOut) {
    Map map(9, IntersectionKernel(), 2);
    map.norm = Map::Norm::l1;
    const std::vector<float> x = uniform_vectors(5, 9, 3, 0.1, 1);
    const std::vector<float> expected = mapped(map, x);
    for (int power : {-90, -3, 1, 50, 95}) {
        std::vector<float> scaled = x;
        for (float& v : scaled) {
            v = std::ldexp(v, power);
        }
        EXPECT_TRUE(same_bits(mapped(map, scaled), expected)) << power;
    }
}

// The squared length of the components of a coordinate is squared_norm() v^g.
// An error of b of the amplitudes changes v^g by 2 b, and v by 2 b / g.
TEST(Maps, ReverseTransform) {
    for (const std::string kernel :
         {"chi2", "js", "intersection", "hellinger"}) {
        for (double degree : {0.5, 1.0, 2.0}) {
            for (int m : {0, 1, 4}) {
                Map map(13,
                        *make_additive(kernel),
                        m,
                        Window::uniform,
                        0,
                        degree);
                map.negative = Map::Negative::sign;
                const double L = frequency_of(map);
                std::vector<float> x = uniform_vectors(6, 13, 1, -1, 1);
                x[3] = 0;
                x[4] = 1e-12f;
                x[5] = -1e12f;
                const std::vector<float> xt = mapped(map, x);
                std::vector<float> back(x.size(), nan_value);
                map.reverse_transform(6, xt.data(), back.data());
                for (size_t i = 0; i < x.size(); i++) {
                    const double v = std::abs(x[i]);
                    const double b = v == 0
                            ? 0
                            : component_bound(
                                      map.components() - 1, L, degree, v);
                    EXPECT_NEAR(
                            back[i], x[i], (2.1 * b / degree + float_unit) * v)
                            << kernel << ", degree " << degree;
                }
            }
        }
    }
    Map map(2, Chi2Kernel());
    map.norm = Map::Norm::l1;
    const std::vector<float> xt = mapped(map, {3, 1});
    float back[2];
    map.reverse_transform(1, xt.data(), back);
    // the angle and its errors are small here: below 2 (1 + 2) 1e-6
    EXPECT_NEAR(back[0], 0.75, 6e-6);
    EXPECT_NEAR(back[1], 0.25, 6e-6);
    const std::vector<float> bad = {1, 2, nan_value, 3, 4, 5};
    EXPECT_TRUE(
            throws([&] { map.reverse_transform(1, bad.data(), back); },
                   "component 2"));
}

TEST(Maps, BadParameters) {
    const Chi2Kernel chi2;
    EXPECT_TRUE(throws([&] { Map(0, chi2); }, "dimension is 0"));
    EXPECT_TRUE(throws([&] { Map(-3, chi2); }, "dimension is -3"));
    EXPECT_TRUE(throws([&] { Map(4, chi2, -1); }, "order is -1"));
    EXPECT_TRUE(throws([&] { Map(4, chi2, 101); }, "order is 101"));
    EXPECT_TRUE(throws([&] { Map(1 << 28, chi2, 10); }, "too many"));
    for (double period : {double(nan_value), -1.0, HUGE_VAL, 1e-4, 1e5}) {
        EXPECT_TRUE(throws(
                [&] { Map(4, chi2, 1, Window::uniform, period); }, "period is"))
                << period;
    }
    for (double degree : {double(nan_value), 0.0, -1.0, 3.0, HUGE_VAL}) {
        EXPECT_TRUE(
                throws([&] { Map(4, chi2, 1, Window::uniform, 0, degree); },
                       "degree is"))
                << degree;
    }
}

TEST(Maps, CheckIdentical) {
    const Map map(4, Chi2Kernel(), 2);
    map.check_identical(Map(4, Chi2Kernel(), 2));
    map.check_identical(Map(4, Chi2Kernel(), 2, Window::uniform, map.period));
    Map sign = map, l1 = map;
    sign.negative = Map::Negative::sign;
    l1.norm = Map::Norm::l1;
    const std::vector<Map> others = {
            Map(5, Chi2Kernel(), 2),
            Map(4, JensenShannonKernel(), 2),
            Map(4, Chi2Kernel(), 3),
            Map(4, Chi2Kernel(), 2, Window::rectangular),
            Map(4, Chi2Kernel(), 2, Window::uniform, 20),
            Map(4, Chi2Kernel(), 2, Window::uniform, 0, 0.5),
            sign,
            l1};
    for (size_t i = 0; i < others.size(); i++) {
        EXPECT_TRUE(throws([&] { map.check_identical(others[i]); })) << i;
        EXPECT_TRUE(throws([&] { others[i].check_identical(map); })) << i;
    }
    const faiss::RandomRotationMatrix rotation(4, 20);
    EXPECT_TRUE(throws([&] { map.check_identical(rotation); }));
}

namespace {

std::vector<Map> various_maps() {
    std::vector<Map> maps = {
            Map(7, Chi2Kernel(), 0),
            Map(7, Chi2Kernel(), 3),
            Map(1, JensenShannonKernel(), 1, Window::rectangular),
            Map(20, IntersectionKernel(), 2, Window::uniform, 9.25, 0.5),
            Map(3, HellingerKernel(), 2)};
    maps[1].negative = Map::Negative::sign;
    maps[3].norm = Map::Norm::l1;
    return maps;
}

} // namespace

TEST(Copies, GiveTheSameMaps) {
    for (const Map& map : various_maps()) {
        const std::vector<float> x = uniform_vectors(5, map.d_in, 2);
        const std::vector<float> expected = mapped(map, x);
        auto original = std::make_unique<Map>(map);
        EXPECT_NE(original->kernel.get(), map.kernel.get());
        const Map copy(*original);
        const auto read = from_bytes(bytes_of(*original));
        original.reset();
        for (const Map* other : {&copy, static_cast<const Map*>(read.get())}) {
            map.check_identical(*other);
            EXPECT_EQ(other->d_out, map.d_out);
            EXPECT_TRUE(other->is_trained);
            EXPECT_EQ(other->amplitudes, map.amplitudes);
            EXPECT_EQ(other->kernel->description(), map.kernel->description());
            EXPECT_EQ(other->order, map.order);
            EXPECT_EQ(other->window, map.window);
            EXPECT_EQ(other->period, map.period);
            EXPECT_EQ(other->degree, map.degree);
            EXPECT_EQ(other->negative, map.negative);
            EXPECT_EQ(other->norm, map.norm);
            EXPECT_TRUE(same_bits(mapped(*other, x), expected));
        }
        EXPECT_TRUE(holds_faiss_ext(&map));
    }
    EXPECT_EQ(Map(Map()).kernel, nullptr);
}

TEST(Copies, InFiles) {
    const faiss_ext_test::TemporaryFolder folder;
    const std::string name = folder / "map";
    for (const Map& map : various_maps()) {
        write_VectorTransform(&map, name.c_str());
        map.check_identical(*read_VectorTransform(name.c_str()));
    }
    EXPECT_EQ(folder.names(), std::vector<std::string>{"map"});
}

TEST(Copies, TruncatedFiles) {
    for (const Map& map : various_maps()) {
        const std::vector<uint8_t> bytes = bytes_of(map);
        for (size_t size = 0; size < bytes.size(); size++) {
            const std::vector<uint8_t> part(
                    bytes.begin(), bytes.begin() + size);
            ASSERT_TRUE(throws([&] { from_bytes(part); }))
                    << size << " of " << bytes.size();
        }
    }
}

// What is read from a damaged file is an error or a map that works.
TEST(Copies, DamagedFiles) {
    const auto maps = various_maps();
    for (const Map& map : {maps[1], maps[3], maps[4]}) {
        const std::vector<uint8_t> bytes = bytes_of(map);
        int objects = 0, errors = 0;
        for (size_t i = 0; i < bytes.size(); i++) {
            for (int change : {1, 0x10, 0x40, 0x80, 0xff}) {
                std::vector<uint8_t> damaged = bytes;
                damaged[i] = uint8_t(damaged[i] ^ change);
                std::unique_ptr<Map> read;
                try {
                    read = from_bytes(damaged);
                } catch (const faiss::FaissException& e) {
                    EXPECT_NE(std::string(e.what()), "");
                    errors++;
                    continue;
                } catch (const std::bad_cast&) {
                    continue; // of the test: another class
                }
                objects++;
                if (read->d_in > 10000) {
                    continue;
                }
                const std::vector<float> x(read->d_in, 0.25f);
                for (float v : mapped(*read, x)) {
                    ASSERT_TRUE(std::isfinite(v)) << "byte " << i;
                }
            }
        }
        EXPECT_GT(objects, 0);
        EXPECT_GT(errors, 20);
    }
}

TEST(Strings, AllKeys) {
    const auto map = from_string(
            6,
            "HKM3(intersection,period=8,window=rectangular,degree=0.5,negative=sign,norm=l1)");
    EXPECT_EQ(map->order, 3);
    EXPECT_EQ(map->period, 8);
    EXPECT_EQ(map->window, Window::rectangular);
    EXPECT_EQ(map->degree, 0.5);
    EXPECT_EQ(map->negative, Map::Negative::sign);
    EXPECT_EQ(map->norm, Map::Norm::l1);
    EXPECT_EQ(map->d_out, 42);
    Map made(6, IntersectionKernel(), 3, Window::rectangular, 8, 0.5);
    made.negative = Map::Negative::sign;
    made.norm = Map::Norm::l1;
    made.check_identical(*map);
    Map(6, JensenShannonKernel(), 2)
            .check_identical(*from_string(6, "HKM2(js)"));
    Map(6, JensenShannonKernel(), 2)
            .check_identical(*from_string(6, "HKM(js,order=2)"));
    Map(6, Chi2Kernel()).check_identical(*from_string(6, "HKM(chi2)"));
    Map(6, Chi2Kernel()).check_identical(*from_string(6, "HKM(chi2,period=0)"));
    // what describes a map makes it again
    for (const char* text :
         {"HKM2(js)",
          "HKM(chi2)",
          "HKM3(intersection,period=8,window=rectangular,degree=0.5)",
          "HKM0(chi2,negative=sign,norm=l1)"}) {
        const auto original = map_factory(6, text);
        original->check_identical(*map_factory(6, original->description()));
    }
    Map(6, Chi2Kernel(), 0)
            .check_identical(*from_string(
                    6, "HKM0(chi2,window=uniform,negative=error,norm=none)"));
    Map(6, HellingerKernel())
            .check_identical(*from_string(6, "HKM1(hellinger)"));
}

TEST(Strings, Errors) {
    const auto error = [](const std::string& text) {
        const std::string what =
                message_of([&] { faiss_ext::index_factory(8, text); });
        EXPECT_TRUE(contains(what, text)) << what;
        return what;
    };
    const std::vector<std::vector<std::string>> cases = {
            {"HKM(chi2,order=101),Flat", "'101' of order", "0 to 100"},
            {"HKM1(chi2,order=2),Flat", "order is given twice"},
            {"HKM101(chi2),Flat", "'101' of order", "0 to 100"},
            {"HKM99999999999(chi2),Flat", "'99999999999' of order"},
            {"HKM1(gaussian),Flat",
             "unknown kernel 'gaussian'",
             "intersection"},
            {"HKM1(nothing),Flat", "unknown kernel 'nothing'", "hellinger"},
            {"HKM1(chi2)", "expected an index", ",Flat"},
            {"HKM1(chi2,foo=1),Flat", "unknown key 'foo'", "period="},
            {"HKM1(chi2,js),Flat", "unknown argument 'js'"},
            {"HKM1,Flat", "HKM needs an argument", "chi2"},
            {"HKM1(),Flat", "expected an argument"},
            {"HKM1(chi2,period=nan),Flat", "'nan' of period"},
            {"HKM1(chi2,period=-1),Flat", "'-1' of period"},
            {"HKM1(chi2,period=1e-4),Flat", "period is 0.0001"},
            {"HKM1(chi2,degree=3),Flat", "'3' of degree"},
            {"HKM1(chi2,degree=0),Flat", "'0' of degree"},
            {"HKM1(chi2,window=hann),Flat", "'hann' of window", "rectangular"},
            {"HKM1(chi2,negative=abs),Flat", "'abs' of negative", "sign"},
            {"HKM1(chi2,norm=l2),Flat", "'l2' of norm", "l1"},
            {"HKM1(chi2(a=1)),Flat", "unknown key 'a'"},
            {"HKM1(chi2),Nothing", "HKM1(chi2),Nothing"},
            {"HKM1(chi2,Flat", "'(' without ')'"},
            {"HKM1(chi2)x,Flat", "HKM1(chi2)x"}};
    for (const auto& c : cases) {
        const std::string what = error(c[0]);
        for (const std::string& part : c) {
            EXPECT_TRUE(contains(what, part))
                    << "'" << part << "' is missing: " << what;
        }
    }
}

namespace {

/// What an index finds, and the same of an index for mapped vectors.
void expect_same_as_by_hand(
        int d,
        const std::string& front,
        const std::string& behind,
        faiss::MetricType metric) {
    const ThreadCount threads(1);
    const std::vector<float> xb = dirichlet(700, d, 0.5, 1);
    const std::vector<float> xq = dirichlet(30, d, 0.5, 2);
    auto index = faiss_ext::index_factory(d, front + "," + behind, metric);
    const auto map = from_string(d, front);
    const std::unique_ptr<faiss::Index> by_hand(
            faiss::index_factory(map->d_out, behind.c_str(), metric));
    const std::vector<float> by_map = mapped(*map, xb);
    EXPECT_EQ(index->d, d);
    EXPECT_EQ(index->metric_type, metric);
    index->train(700, xb.data());
    by_hand->train(700, by_map.data());
    index->add(700, xb.data());
    by_hand->add(700, by_map.data());
    const auto found = faiss_ext_test::search(*index, xq, 10);
    faiss_ext_test::expect_same(
            found, faiss_ext_test::search(*by_hand, mapped(*map, xq), 10));

    // files and copies
    faiss::VectorIOWriter writer;
    faiss_ext::write_index(index.get(), &writer);
    faiss::VectorIOReader reader;
    reader.data = writer.data;
    const auto read = faiss_ext::read_index(&reader);
    const auto clone = faiss_ext::clone_index(index.get());
    index.reset();
    for (const faiss::Index* other : {read.get(), clone.get()}) {
        EXPECT_EQ(other->ntotal, 700);
        faiss_ext_test::expect_same(
                faiss_ext_test::search(*other, xq, 10), found);
    }
}

} // namespace

TEST(Indexes, FindWhatMappingByHandFinds) {
    for (faiss::MetricType metric :
         {faiss::METRIC_INNER_PRODUCT, faiss::METRIC_L2}) {
        expect_same_as_by_hand(12, "HKM1(chi2)", "Flat", metric);
        expect_same_as_by_hand(12, "HKM2(js)", "HNSW32", metric);
        expect_same_as_by_hand(12, "HKM1(intersection)", "IVF16,Flat", metric);
        expect_same_as_by_hand(12, "HKM3(js,norm=l1)", "IVF4,SQ4", metric);
        expect_same_as_by_hand(12, "HKM1(hellinger)", "SQ8", metric);
        expect_same_as_by_hand(12, "HKM2(chi2)", "PCA10,Flat", metric);
    }
}

// The neighbours under the approximate kernel are those under the kernel, up
// to the map's error: the kernel's value of what is found first is at most two
// errors below the best.
TEST(Indexes, FindNeighboursUnderTheKernel) {
    const int d = 20;
    const std::vector<float> xb = dirichlet(400, d, 0.5, 1);
    const std::vector<float> xq = dirichlet(40, d, 0.5, 2);
    for (const std::string& kernel : sampled) {
        auto index = faiss_ext::index_factory(
                d, "HKM2(" + kernel + "),Flat", faiss::METRIC_INNER_PRODUCT);
        index->add(400, xb.data());
        const auto found = faiss_ext_test::search(*index, xq, 1);
        for (size_t i = 0; i < 40; i++) {
            double best = 0, error = 0;
            const auto map = from_string(d, "HKM2(" + kernel + ")");
            const std::vector<float> q(&xq[i * d], &xq[i * d] + d);
            const std::vector<float> mq = mapped(*map, q);
            const std::vector<float> mb = mapped(*map, xb);
            for (size_t j = 0; j < 400; j++) {
                const double value =
                        kernel_value(kernel, q.data(), &xb[j * d], d);
                best = std::max(best, value);
                error = std::max(
                        error,
                        std::abs(
                                value -
                                dot(mq.data(),
                                    &mb[j * map->d_out],
                                    map->d_out)));
            }
            EXPECT_GE(
                    kernel_value(kernel, q.data(), &xb[found.labels[i] * d], d),
                    best - 2 * error - 1e-5);
        }
    }
}

// Refine(KFlat(...)) sees the vectors as they come: the exact kernel ranks.
TEST(Indexes, RefineByTheKernelItself) {
    const ThreadCount threads(1);
    const int d = 20;
    const std::vector<float> xb = dirichlet(300, d, 0.5, 1);
    const std::vector<float> xq = dirichlet(20, d, 0.5, 2);
    for (faiss::MetricType metric :
         {faiss::METRIC_INNER_PRODUCT, faiss::METRIC_L2}) {
        auto index = faiss_ext::index_factory(
                d, "HKM1(chi2),Flat,Refine(KFlat(chi2))", metric);
        auto exact = faiss_ext::index_factory(d, "KFlat(chi2)", metric);
        index->add(300, xb.data());
        exact->add(300, xb.data());
        const auto clone = faiss_ext::clone_index(index.get());
        const auto best = faiss_ext_test::search(*exact, xq, 300);
        const auto found = faiss_ext_test::search(*index, xq, 300);
        faiss_ext_test::expect_same(
                faiss_ext_test::search(*clone, xq, 300), found);
        // all vectors pass through, in the exact order
        EXPECT_EQ(found.labels, best.labels);
        for (size_t i = 0; i < found.distances.size(); i++) {
            // both are kernel values or distances, good to 1e-4 of the mass
            EXPECT_NEAR(found.distances[i], best.distances[i], 2e-4);
        }
    }
}

TEST(Indexes, TruncatedFiles) {
    auto index = faiss_ext::index_factory(2, "IDMap,HKM1(chi2),Flat");
    const std::vector<float> x = {0.5f, 0.5f, 0.25f, 0.75f};
    const std::vector<idx_t> ids = {7, 8};
    index->add_with_ids(2, x.data(), ids.data());
    faiss::VectorIOWriter writer;
    faiss_ext::write_index(index.get(), &writer);
    for (size_t size = 0; size < writer.data.size(); size++) {
        faiss::VectorIOReader reader;
        reader.data.assign(writer.data.begin(), writer.data.begin() + size);
        ASSERT_TRUE(throws([&] { faiss_ext::read_index(&reader); }))
                << size << " of " << writer.data.size();
    }
}

TEST(Indexes, InIDMaps) {
    const int d = 10;
    const std::vector<float> x = dirichlet(50, d, 1, 1);
    std::vector<idx_t> ids(50);
    for (idx_t i = 0; i < 50; i++) {
        ids[i] = 1000 + 7 * i;
    }
    for (const std::string name : {"IDMap", "IDMap2"}) {
        auto index = faiss_ext::index_factory(d, name + ",HKM1(chi2),Flat");
        index->add_with_ids(50, x.data(), ids.data());
        const auto clone = faiss_ext::clone_index(index.get());
        for (const faiss::Index* each : {index.get(), clone.get()}) {
            const auto found = faiss_ext_test::search(*each, x, 1);
            EXPECT_EQ(found.labels, ids);
        }
        if (name == "IDMap2") { // the map is inverted, up to its accuracy
            std::vector<float> back(d);
            clone->reconstruct(1000 + 7 * 3, back.data());
            for (int k = 0; k < d; k++) {
                EXPECT_NEAR(back[k], x[3 * d + k], 3e-5 * x[3 * d + k]);
            }
        }
    }
}

TEST(Indexes, BehindTransformations) {
    const ThreadCount threads(1);
    const int d = 12;
    const std::vector<float> xb = dirichlet(300, d, 0.5, 1);
    const std::vector<float> xq = dirichlet(20, d, 0.5, 2);
    for (const std::string front : {"L2norm", "PCA8", "PCA8,L2norm"}) {
        const bool pca = front.starts_with("PCA");
        const std::string map = pca ? "HKM1(chi2,negative=sign)" : "HKM1(chi2)";
        auto index = faiss_ext::index_factory(d, front + "," + map + ",Flat");
        index->train(300, xb.data());
        index->add(300, xb.data());
        std::unique_ptr<faiss::Index> plain(
                faiss::index_factory(d, (front + ",Flat").c_str()));
        plain->train(300, xb.data());
        auto& pre = dynamic_cast<faiss::IndexPreTransform&>(*plain);
        const auto hand_map = from_string(pre.index->d, map);
        const auto through = [&](const std::vector<float>& x) {
            const size_t n = x.size() / d;
            const float* y = pre.apply_chain(n, x.data());
            const std::vector<float> v(y, y + n * pre.index->d);
            if (y != x.data()) {
                delete[] y;
            }
            return mapped(*hand_map, v);
        };
        faiss::IndexFlatL2 flat(hand_map->d_out);
        flat.add(300, through(xb).data());
        const auto found = faiss_ext_test::search(*index, xq, 5);
        faiss_ext_test::expect_same(
                found, faiss_ext_test::search(flat, through(xq), 5));
        faiss_ext_test::expect_same(
                faiss_ext_test::search(
                        *faiss_ext::clone_index(index.get()), xq, 5),
                found);
    }
    // what PCA gives is negative in part
    auto index = faiss_ext::index_factory(d, "PCA8,HKM1(chi2),Flat");
    index->train(300, xb.data());
    EXPECT_TRUE(
            throws([&] { index->add(300, xb.data()); },
                   "expected a finite number >= 0"));
    EXPECT_EQ(index->ntotal, 0);
}

TEST(Indexes, BadVectorsChangeNothing) {
    auto index = faiss_ext::index_factory(3, "HKM1(chi2),Flat");
    const std::vector<float> good = {0.5f, 0.25f, 0.25f};
    const std::vector<float> bad = {0.5f, 0.25f, 0.25f, 0, nan_value, 0};
    index->add(1, good.data());
    EXPECT_TRUE(throws(
            [&] { index->add(2, bad.data()); }, "component 1 of vector 1"));
    EXPECT_EQ(index->ntotal, 1);
    EXPECT_TRUE(throws([&] { faiss_ext_test::search(*index, bad, 1); }, "nan"));
}
