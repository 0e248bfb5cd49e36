// SPDX-License-Identifier: MIT
// HomogeneousKernelMap against the formulas of Vedaldi and Zisserman, PAMI
// 2012, in double precision, and before FAISS's indexes.

#include <faiss_ext/maps/HomogeneousKernelMap.h>

#include <faiss/VectorTransform.h>
#include <faiss/index_factory.h>

#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/kernels/kernel_registry.h>

#include "simd/homogeneous_map.h"
#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;
using Window = AdditiveKernel::Window;
using Map = HomogeneousKernelMap;

namespace {

const std::vector<std::string> sampled = {"chi2", "js", "intersection"};

std::unique_ptr<AdditiveKernel> make_additive(const std::string& name) {
    return std::unique_ptr<AdditiveKernel>(
            dynamic_cast<AdditiveKernel*>(kernel_factory(name).release()));
}

// Formulas of the paper's table 1.

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

/// Computes the transform of the signature, cut off at +-end; the signature is
/// even. It uses Gauss's rule with 5 points on pieces of a fraction of an
/// oscillation; its error is below rounding.
double transform(const std::string& kernel, double end, double omega) {
    constexpr double node[] = {0, 0.5384693101056831, 0.9061798459386640};
    constexpr double weight[] = {
            0.5688888888888889, 0.4786286704993665, 0.2369268850561891};
    const auto f = [&](double lambda) {
        return signature(kernel, lambda) * std::cos(omega * lambda);
    };
    const int pieces = int(std::ceil(end * 4 * (1 + omega)));
    const double half = end / pieces / 2;
    double sum = 0;
    for (int i = 0; i < pieces; i++) {
        const double mid = (2 * i + 1) * half;
        sum += weight[0] * f(mid);
        for (int j = 1; j < 3; j++) {
            sum += weight[j] *
                    (f(mid - half * node[j]) + f(mid + half * node[j]));
        }
    }
    return sum * half / pi;
}

/// Computes component c = 0..2m of value v, for an amplitude of 1.
double exact_component(int c, double frequency, double degree, double v) {
    const double angle = (c + 1) / 2 * frequency * std::log(v);
    return std::pow(v, degree / 2) *
            (c % 2 == 1 || c == 0 ? std::cos(angle) : std::sin(angle));
}

/** Bounds the error of a component, relative to a_j v^(g / 2). The header
 * states 1e-6 (j + |j L log v|); for j = 0, 1e-6 is used, because the header's
 * formula leaves no room for rounding there.
 *
 * For a degree other than 1 the root is exp(g / 2 log v). An error of two units
 * in the logarithm or the product, a number (g / 2) |log v|, is an absolute
 * error of the exponent, and so a relative error of the result.
 */
double component_bound(int c, double frequency, double degree, double v) {
    const int j = (c + 1) / 2;
    const double log = std::abs(std::log(v));
    const double power =
            degree == 1 ? 0 : 4 * float_unit * (degree / 2 * log + 1);
    return 1e-6 * (std::max(j, 1) + j * frequency * log) + power;
}

double frequency_of(const Map& map) {
    return map.period > 0 ? 2 * pi / map.period : 0;
}

/** Checks the components of a map.
 *
 * With norm=l1 the library multiplies by a rounded inverse of the mass, and
 * once more if that is huge. This is an error of 4 units of v; the angle j L
 * log v gets 4 units times j L, and the root 2.
 *
 * @return  the mean error, divided by the bound in the header
 */
double expect_components(const Map& map, const std::vector<float>& x) {
    double sum = 0;
    const double L = frequency_of(map), g = map.degree;
    const bool l1 = map.norm == Map::Norm::l1;
    const size_t d = map.d_in, n = x.size() / d;
    const std::vector<float> xt = applied(map, x);
    for (size_t i = 0; i < n; i++) {
        const float* row = &x[i * d];
        const double mass = l1 ? std::accumulate(row, row + d, 0.0) : 1;
        for (size_t k = 0; k < d; k++) {
            const double v = row[k] / std::max(mass, 1e-300);
            for (int c = 0; c < map.components(); c++) {
                const double got = xt[i * map.d_out + c * d + k];
                if (v < 1e-37f) {
                    EXPECT_EQ(got, 0);
                    continue;
                }
                const int j = (c + 1) / 2;
                const double a = map.amplitudes[j];
                const double scale = a * std::pow(v, g / 2);
                const double bound = component_bound(c, L, g, v) +
                        (l1 ? 4 * float_unit * (1 + j * L) : 0);
                const double expected = a * exact_component(c, L, g, v);
                EXPECT_NEAR(got, expected, bound * scale + 1e-44)
                        << map.description() << ", component " << c << " of "
                        << v << ", mass " << mass;
                const double log = std::abs(std::log(v));
                sum += std::abs(got - expected) /
                        (1e-6 * (1 + j + j * L * log) * scale + 1e-44);
            }
        }
    }
    return sum / double(xt.size());
}

struct EveryTarget : testing::TestWithParam<int64_t> {
    Target guard{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(
        Simd,
        EveryTarget,
        testing::ValuesIn(targets()),
        [](const auto& info) { return hwy::TargetName(info.param); });

} // namespace

TEST(Signatures, AreTheFormulas) {
    for (const std::string kernel :
         {"chi2", "js", "intersection", "hellinger"}) {
        SCOPED_TRACE(kernel);
        const auto k = make_additive(kernel);
        EXPECT_DOUBLE_EQ(k->signature(0), 1);
        for (double lambda = 0; lambda < 80; lambda += 0.37) {
            // the formula adds few terms of one sign
            const double expected = signature(kernel, lambda);
            EXPECT_NEAR(k->signature(lambda), expected, 1e-13 * expected);
            EXPECT_DOUBLE_EQ(k->signature(lambda), k->signature(-lambda));
        }
        for (double lambda : {100., 700., 1400., 1480., 1500., 3000., 1e5}) {
            for (double value : {k->signature(lambda), k->signature(-lambda)}) {
                EXPECT_TRUE(value >= 0 && value <= 1) << lambda;
            }
        }
    }
}

// Beyond 100 the signatures are below 100 exp(-50).
TEST(Signatures, TransformIsTheSpectrum) {
    for (const std::string& kernel : sampled) {
        const auto k = make_additive(kernel);
        for (double omega : {0.0, 0.1, 1.0, 2.3, 5.0}) {
            const double kappa = k->spectrum(omega);
            EXPECT_NEAR(kappa, transform(kernel, 100, omega), 1e-11) << kernel;
            EXPECT_NEAR(kappa, spectrum(kernel, omega), 1e-15);
            EXPECT_DOUBLE_EQ(kappa, k->spectrum(-omega));
        }
    }
    EXPECT_EQ(HellingerKernel().spectrum(1), 0);
    EXPECT_EQ(HellingerKernel().spectrum(0), HUGE_VAL);
}

// A sample of the spectrum with the uniform window equals its formula.
// With the rectangular window the library integrates by Simpson's rule with
// steps h <= 1 / (64 (1 + omega / 2 pi)) on [0, period / 2]. The error is at
// most period / 2 h^4 / 180 max |f''''| / pi. For f = K(lambda) cos(omega
// lambda), |f''''| <= (1 + omega)^4, since derivatives of K up to the fourth
// are at most 1. This gives at most 1e-6 period / 2 / pi in the spectrum.
TEST(Amplitudes, AreSamplesOfTheSpectrum) {
    const std::pair<int, double> orders[] = {{0, 4}, {1, 0}, {3, 0}, {20, 4}};
    for (const std::string& kernel : sampled) {
        for (Window window : {Window::uniform, Window::rectangular}) {
            for (auto [m, given] : orders) {
                const Map map(3, *make_additive(kernel), m, window, given);
                SCOPED_TRACE(map.description());
                const double period =
                        given > 0 ? given : default_period(kernel, m, window);
                EXPECT_DOUBLE_EQ(map.period, period);
                ASSERT_EQ(int(map.amplitudes.size()), m + 1);
                EXPECT_EQ(map.components(), 2 * m + 1);
                EXPECT_EQ(map.d_out, 3 * (2 * m + 1));
                const double L = 2 * pi / period;
                for (int j = 0; j <= m; j++) {
                    const double factor = (j == 0 ? 1 : 2) * L;
                    const double square = std::pow(map.amplitudes[j], 2.0);
                    double kappa = spectrum(kernel, j * L), simpson = 0;
                    if (window == Window::rectangular) {
                        kappa = transform(kernel, period / 2, j * L);
                        kappa = std::max(0.0, kappa);
                        simpson = 1e-6 * period / 2 / pi;
                    }
                    const double error = simpson + 3 * float_unit * kappa;
                    EXPECT_NEAR(square, factor * kappa, factor * error + 1e-40)
                            << j;
                }
            }
        }
    }
}

// Order 0 has one component. The default period makes it sqrt(x), up to
// Simpson's error with the rectangular window.
TEST(Amplitudes, OrderZero) {
    for (const std::string& kernel : sampled) {
        const auto k = make_additive(kernel);
        const Map map(4, *k, 0), rectangular(4, *k, 0, Window::rectangular);
        EXPECT_EQ(map.d_out, 4);
        EXPECT_EQ(map.amplitudes, std::vector<float>{1});
        EXPECT_DOUBLE_EQ(map.period, 2 * pi * spectrum(kernel, 0));
        EXPECT_NEAR(rectangular.amplitudes[0], 1, 1e-6);
    }
}

// The documented accuracy holds for values of any size. Coordinates take every
// lane.
TEST_P(EveryTarget, ComponentsAreTheFormula) {
    std::vector<float> x = {
            0, 1e-45f, 1e-40f, 9.9e-38f, 1.01e-37f, 1, 2, 0.5f, 1e36f};
    for (float exponent : uniform_vectors(1, 994, 5, -36, 36)) {
        x.push_back(float(std::pow(10, double(exponent))));
    }
    const int d = 17; // 59 rows
    for (const std::string& kernel : sampled) {
        for (int m : {0, 1, 3, 10}) {
            const auto window = m == 3 ? Window::rectangular : Window::uniform;
            for (double degree : {0.5, 1.0, 2.0}) {
                const Map map(d, *make_additive(kernel), m, window, 0, degree);
                if (degree < 2) { // squares of 1e36 are beyond float
                    expect_components(map, x);
                }
                expect_components(map, uniform_vectors(5, d, m));
            }
        }
    }
    // angles up to 5e5, and many multiples of an angle
    for (auto [period, m] : {std::pair<double, int>{1e-3, 2}, {50, 100}}) {
        const IntersectionKernel intersection;
        const Map map(1003, intersection, m, Window::uniform, period);
        EXPECT_LT(expect_components(map, x), 0.1); // "typically a tenth"
    }
}

// The inner loop alone: a scale, signs, and every length up to more than two
// vectors of lanes. Memory beside the output must stay unchanged.
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
                const double expected = a * exact_component(c, float(L), 1, v);
                const double bound = component_bound(c, L, 1, v);
                EXPECT_NEAR(
                        out[c * d + k],
                        std::copysign(expected, expected * x[k]),
                        bound * a * std::sqrt(v));
            }
        }
    }
}

// The inner product of the components of two values is K of the difference of
// their logarithms. By Poisson's formula, all samples of the spectrum together
// would give the periodic sum of the signature.
TEST(Maps, SignatureIsThatOfTheComponents) {
    for (const char* text :
         {"HKM1(chi2)", "HKM3(js)", "HKM5(intersection,period=4)"}) {
        const auto made = map_factory(1, text);
        const Map& map = dynamic_cast<const Map&>(*made);
        for (double share = -1.5; share <= 1.5; share += 1.0 / 32) {
            double sum = 0, norm = 0;
            for (size_t j = 0; j < map.amplitudes.size(); j++) {
                const double square = std::pow(map.amplitudes[j], 2.0);
                norm += square;
                sum += square * std::cos(2 * pi * double(j) * share);
            }
            const double lambda = share * map.period;
            EXPECT_NEAR(map.map_signature(lambda), sum, 1e-12) << text;
            EXPECT_NEAR(map.squared_norm(), norm, 1e-12) << text;
        }
    }
}

// No pair of histograms is further from its kernel value than the distortion,
// and some pair with two components is as far. Grid and map have errors of 1e-4
// and 1e-5.
TEST(Maps, Distortion) {
    for (const char* text :
         {"HKM1(chi2)",
          "HKM3(chi2)",
          "HKM2(js)",
          "HKM4(intersection)",
          "HKM2(chi2,window=rectangular)",
          "HKM5(chi2,period=7)"}) {
        SCOPED_TRACE(text);
        const auto error_of = [&](size_t d, const std::vector<float>& x) {
            const auto made = map_factory(int(d), text);
            const auto& map = dynamic_cast<const Map&>(*made);
            const std::vector<float> z = applied(map, x);
            const std::vector<float> k = kernel_block(*map.kernel, x, x, d);
            const size_t n = x.size() / d, size = map.d_out;
            double largest = 0;
            for (size_t i = 0; i < n; i++) {
                for (size_t j = 0; j < i; j++) {
                    const double mapped =
                            dot_product(&z[i * size], &z[j * size], size);
                    largest =
                            std::max(largest, std::abs(k[i * n + j] - mapped));
                }
            }
            return largest;
        };
        const auto map = map_factory(2, text);
        const double most = dynamic_cast<const Map&>(*map).distortion();
        EXPECT_GT(most, 1e-4);
        const std::vector<float> many = clustered_histograms(60, 20, 6, 10, 1);
        EXPECT_LE(error_of(20, many), most * (1 + 1e-4) + 1e-5);
        // pairs of two components, of all ratios, and of disjoint components
        double attained = 0;
        for (double lambda = 0; lambda < 8; lambda += 0.01) {
            const float p = float(1 / (1 + std::exp(lambda)));
            attained = std::max(attained, error_of(2, {p, 1 - p, 1 - p, p}));
        }
        EXPECT_NEAR(attained, most, 1e-3 * most + 1e-5);
    }
    const auto exact = map_factory(2, "HKM1(hellinger)");
    EXPECT_NEAR(dynamic_cast<const Map&>(*exact).distortion(), 0, 1e-6);
    const auto square = map_factory(2, "HKM1(chi2,degree=2)");
    EXPECT_TRUE(
            throws([&] { dynamic_cast<const Map&>(*square).distortion(); },
                   "degree is 2"));
}

// For every order the map has one component, sqrt(x), correctly rounded.
TEST(Maps, HellingerIsExact) {
    std::vector<float> x = uniform_vectors(9, 21, 3);
    x[5] = 0;
    x[6] = 1e36f;
    for (Window window : {Window::uniform, Window::rectangular}) {
        const Map map(21, HellingerKernel(), 7, window);
        EXPECT_EQ(map.d_out, 21);
        EXPECT_EQ(map.components(), 1);
        EXPECT_EQ(map.period, 0);
        EXPECT_EQ(map.squared_norm(), 1);
        EXPECT_EQ(map.map_signature(7), 1);
        const std::vector<float> xt = applied(map, x);
        for (size_t i = 0; i < x.size(); i++) {
            EXPECT_EQ(xt[i], std::sqrt(x[i]));
        }
    }
}

TEST(Maps, NegativeComponents) {
    const size_t n = 6, d = 19;
    const std::vector<float> x = uniform_vectors(n, d, 3, -1, 1);
    std::vector<float> absolute = x;
    for (float& v : absolute) {
        v = std::abs(v);
    }
    for (double degree : {1.0, 0.5}) {
        Map map(d, JensenShannonKernel(), 2, Window::uniform, 0, degree);
        std::vector<float> expected = applied(map, absolute);
        for (size_t i = 0; i < expected.size(); i++) {
            const size_t row = i / map.d_out, k = i % map.d_out % d;
            expected[i] *= std::copysign(1.0f, x[row * d + k]);
        }
        map.negative = Map::Negative::sign;
        EXPECT_EQ(applied(map, x), expected);
        // NaN, infinite and too large components are named, and nothing is
        // written
        for (float bad : {NAN, HUGE_VALF, -HUGE_VALF, 2e37f}) {
            std::vector<float> y = x, out(n * map.d_out, 42);
            y[2 * d + 3] = bad;
            EXPECT_TRUE(
                    throws([&] { map.apply_noalloc(n, y.data(), out.data()); },
                           "component 3 of vector 2"));
            EXPECT_EQ(out, std::vector<float>(out.size(), 42));
        }
    }
    // -0 is not negative
    EXPECT_EQ(applied(Map(1, Chi2Kernel()), {-0.0f}), std::vector<float>(3, 0));
}

// A row of any mass gives the map of the normalised row. Below 1e-37 all
// components are 0.
TEST(Maps, NormL1) {
    const size_t d = 23;
    Map map(d, Chi2Kernel(), 3);
    map.norm = Map::Norm::l1;
    std::vector<float> x = clustered_histograms(1, d, 6, 20, 3);
    x[4] = 0;
    for (double mass : {1e-44, 1e-39, 1e-36, 1e-3, 7., 1e29, 1e31, 1e37}) {
        std::vector<float> row(d);
        for (size_t k = 0; k < d; k++) {
            row[k] = float(x[k] * mass);
        }
        expect_components(map, row);
    }
    EXPECT_EQ(
            applied(map, std::vector<float>(d)), std::vector<float>(map.d_out));
    // a mass whose inverse is not a normal float
    Map wide(2000, Chi2Kernel(), 1);
    wide.norm = Map::Norm::l1;
    expect_components(wide, std::vector<float>(2000, 9e36f));
    // with signs, the mass is the sum of absolute values
    map.negative = Map::Negative::sign;
    std::vector<float> expected = applied(map, x);
    for (auto* v : {&x, &expected}) {
        std::transform(v->begin(), v->end(), v->begin(), std::negate());
    }
    EXPECT_EQ(applied(map, x), expected);
}

// The squared length of the components of a coordinate is squared_norm() v^g. A
// relative error b of the amplitudes changes v^g by 2 b, and v by 2 b / g.
TEST(Maps, ReverseTransform) {
    std::vector<float> x = uniform_vectors(6, 13, 1, -1, 1);
    x[3] = 0;
    x[4] = 1e-12f;
    x[5] = -1e12f;
    for (const char* text :
         {"HKM0(chi2",
          "HKM1(js,degree=0.5",
          "HKM1(intersection,degree=2",
          "HKM4(chi2",
          "HKM4(hellinger,degree=0.5"}) {
        const auto made =
                map_factory(13, text + std::string(",negative=sign)"));
        const Map& map = dynamic_cast<const Map&>(*made);
        const double g = map.degree;
        const std::vector<float> xt = applied(map, x);
        std::vector<float> back(x.size(), NAN);
        map.reverse_transform(6, xt.data(), back.data());
        for (size_t i = 0; i < x.size(); i++) {
            const double v = std::max(std::abs(x[i]), 1e-37f);
            const double b = component_bound(
                    map.components() - 1, frequency_of(map), g, v);
            const double bound = 2.1 * b / g + float_unit;
            EXPECT_NEAR(back[i], x[i], bound * std::abs(x[i])) << text;
        }
    }
    Map map(2, Chi2Kernel());
    map.norm = Map::Norm::l1;
    const std::vector<float> xt = applied(map, {3, 1});
    float back[2];
    map.reverse_transform(1, xt.data(), back);
    // the angle and its errors are small here: below 2 (1 + 2) 1e-6
    EXPECT_NEAR(back[0], 0.75, 6e-6);
    EXPECT_NEAR(back[1], 0.25, 6e-6);
    // maps with errors are inverted by squared lengths
    const std::vector<float> other = {1, 2, 0.5f, 3, 4, 5};
    map.reverse_transform(1, other.data(), back);
    EXPECT_NEAR(back[1], (4 + 9 + 25) / map.squared_norm(), 1e-5);
    const std::vector<float> bad = {1, 2, NAN, 3, 4, 5};
    const auto reverse = [&] { map.reverse_transform(1, bad.data(), back); };
    EXPECT_TRUE(throws(reverse, "component 2"));
}

TEST(Strings, MakeMaps) {
    Map all(6, IntersectionKernel(), 3, Window::rectangular, 8, 0.5);
    all.negative = Map::Negative::sign;
    all.norm = Map::Norm::l1;
    const JensenShannonKernel js;
    const Chi2Kernel chi2;
    const std::pair<const char*, Map> cases[] = {
            {"HKM3(intersection,period=8,window=rectangular,degree=0.5,"
             "negative=sign,norm=l1)",
             all},
            {"HKM2(js)", Map(6, js, 2)},
            {"HKM(js,order=2)", Map(6, js, 2)},
            {"HKM(chi2,period=0)", Map(6, chi2)},
            {"HKM0(chi2,window=uniform,negative=error,norm=none)",
             Map(6, chi2, 0)},
            {"HKM1(hellinger)", Map(6, HellingerKernel())}};
    for (const auto& [text, expected] : cases) {
        const auto map = map_factory(6, text);
        expected.check_identical(*map);
        // the description of a map makes an identical one
        map->check_identical(*map_factory(6, map->description()));
    }
    EXPECT_EQ(Map(Map()).kernel, nullptr);
    // different maps
    const Map map(4, chi2, 2);
    map.check_identical(Map(4, chi2, 2, Window::uniform, map.period));
    for (const char* text :
         {"HKM2(js)",
          "HKM3(chi2)",
          "HKM2(chi2,window=rectangular)",
          "HKM2(chi2,period=20)",
          "HKM2(chi2,degree=0.5)",
          "HKM2(chi2,negative=sign)",
          "HKM2(chi2,norm=l1)"}) {
        const auto other = map_factory(4, text);
        EXPECT_TRUE(throws([&] { map.check_identical(*other); })) << text;
        EXPECT_TRUE(throws([&] { other->check_identical(map); })) << text;
    }
    EXPECT_TRUE(throws([&] { map.check_identical(Map(5, chi2, 2)); }));
    const faiss::RandomRotationMatrix rotation(4, 20);
    EXPECT_TRUE(throws([&] { map.check_identical(rotation); }));
}

TEST(Strings, Errors) {
    const std::pair<const char*, const char*> cases[] = {
            {"HKM101(chi2),Flat", "'101' of order"},
            {"HKM99999999999(chi2),Flat", "'99999999999' of order"},
            {"HKM1(gaussian),Flat", "'gaussian'"},
            {"HKM1(chi2)", ",Flat"},
            {"HKM1,Flat", "chi2"},
            {"HKM1(chi2,degree=0),Flat", "'0' of degree"},
            {"HKM1(chi2,degree=3),Flat", "'3' of degree"},
            {"HKM1(chi2,period=1e-4),Flat", "period is 0.0001"},
            {"HKM1(chi2,period=1e5),Flat", "'1e5' of period"},
            {"HKM1(chi2(a=1)),Flat", "'a'"}};
    for (const auto& [text, names] : cases) {
        EXPECT_TRUE(throws(
                [&text = text] { index_factory(8, text); }, text, names));
    }
    const Chi2Kernel chi2;
    EXPECT_TRUE(throws([&] { Map(-3, chi2); }, "dimension is -3"));
    EXPECT_TRUE(throws([&] { Map(4, chi2, -1); }, "order is -1"));
    EXPECT_TRUE(throws([&] { Map(1 << 28, chi2, 10); }, "dimensions"));
}

// An index over a map finds the same as one of FAISS's over mapped vectors.
TEST(Indexes, FindWhatMappingByHandFinds) {
    const int d = 12;
    const idx_t n = 300;
    const auto x = clustered_histograms(n, d, 6, 20, 1);
    const auto q = clustered_histograms(20, d, 6, 20, 2);
    const std::pair<std::string, std::string> cases[] = {
            {"HKM2(js)", "HNSW16"},
            {"HKM3(js,norm=l1)", "IVF4,SQ8"},
            {"HKM2(chi2)", "L2norm,Flat"}};
    for (const auto& [text, behind] : cases) {
        const auto map = map_factory(d, text);
        const std::vector<float> z = applied(*map, x);
        for (auto metric : {faiss::METRIC_INNER_PRODUCT, faiss::METRIC_L2}) {
            const auto index =
                    faiss_ext::index_factory(d, text + "," + behind, metric);
            const std::unique_ptr<faiss::Index> expected(
                    faiss::index_factory(map->d_out, behind.c_str(), metric));
            index->train(n, x.data());
            index->add(n, x.data());
            expected->train(n, z.data());
            expected->add(n, z.data());
            expect_same(
                    search(*index, q, 10),
                    search(*expected, applied(*map, q), 10));
        }
    }
    // PCA gives some negative values
    const auto index = faiss_ext::index_factory(d, "PCA8,HKM1(chi2),Flat");
    index->train(n, x.data());
    EXPECT_TRUE(throws([&] { index->add(n, x.data()); }, "of vector"));
    EXPECT_EQ(index->ntotal, 0);
}
