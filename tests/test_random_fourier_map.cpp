// SPDX-License-Identifier: MIT
// Random Fourier features against the kernels that they approximate.

#include <faiss_ext/maps/RandomFourierMap.h>
#include <faiss_ext/projections/BilinearProjection.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

std::unique_ptr<RandomFourierMap> make(int d, const std::string& text) {
    auto map = map_factory(d, text).release();
    return std::unique_ptr<RandomFourierMap>(
            &dynamic_cast<RandomFourierMap&>(*map));
}

double dot(const std::vector<float>& z, size_t dims, size_t i, size_t j) {
    const float *a = &z[i * dims], *b = &z[j * dims];
    return std::inner_product(a, a + dims, b, 0.0);
}

/// Returns proj=dense and proj=generated, and proj=structured if the kernel
/// supports it.
std::vector<ProjectionChoice::Kind> forms_of(const KernelCase& c) {
    constexpr auto generated = ProjectionChoice::Kind::generated;
    return c.l1() ? std::vector{proj_dense, generated}
                  : std::vector{proj_dense, generated, proj_structured};
}

struct Kernels : testing::TestWithParam<KernelCase> {
    const KernelCase& c = GetParam();
};

INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::ValuesIn(kernel_cases()));

} // namespace

// Component i is sqrt(2 / dims) cos(omega_i . x), and component dims / 2 + i is
// the sine. omega_i / 2 pi are the rows of the projection. This holds in
// double, up to the rounding of the phases.
TEST_P(Kernels, ComponentsAreCosinesAndSines) {
    const size_t d = 10, n = 20;
    for (size_t dims : {2, 34, 256}) {
        for (auto proj : forms_of(c)) {
            const RandomFourierMap map(d, dims, *c.make(0.4), 3, proj);
            ASSERT_EQ(map.d_out, int(dims));
            EXPECT_EQ(is_structured(map.proj), proj == proj_structured);
            const std::vector<float> x = normal_vectors(n, d, dims);
            const std::vector<float> z = applied(map, x);
            const std::vector<float> A = map.projection->matrix();
            const double length = std::sqrt(2.0 / double(dims));
            for (size_t i = 0; i < n; i++) {
                EXPECT_NEAR(dot(z, dims, i, i), 1, 1e-6);
                for (size_t j = 0; j < dims / 2; j++) {
                    double turns = 0, absolute = 0;
                    for (size_t k = 0; k < d; k++) {
                        const double term = double(A[j * d + k]) * x[i * d + k];
                        turns += term;
                        absolute += std::abs(term);
                    }
                    const double cosine = length * std::cos(2 * pi * turns);
                    const double sine = length * std::sin(2 * pi * turns);
                    const double bound = (1e-6 + 2e-5 * absolute) * length;
                    const float* zj = &z[i * dims + j];
                    EXPECT_NEAR(zj[0], cosine, bound);
                    EXPECT_NEAR(zj[dims / 2], sine, bound);
                }
            }
        }
    }
}

// For a pair, P(|z(x) . z(y) - K| > e) <= 2 exp(-dims e^2 / 4) with dense
// projections, because it is the mean of dims / 2 cosines. Structured ones are
// not worse.
TEST_P(Kernels, InnerProductsAreWithinHoeffdingsBound) {
    const size_t d = 16, n = 16, dims = 16384;
    const double gamma = 0.7, enough = hoeffding(dims / 2, 2);
    ASSERT_LT(enough, 0.1); // the bound is meaningful
    std::vector<float> x = normal_vectors(n, d, 5, 1 / (c.scale(gamma) * d));
    for (size_t i = 1; i < n; i++) { // from near to far
        for (size_t k = 0; k < d; k++) {
            x[i * d + k] *= float(std::exp2(double(i) / 2 - 4));
        }
    }
    for (auto proj : forms_of(c)) {
        const RandomFourierMap map(d, dims, *c.make(gamma), 8, proj);
        const std::vector<float> z = applied(map, x);
        double least = 1, most = 0;
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                const double r = distance(c, &x[i * d], &x[j * d], d);
                const double k = c.profile(c.scale(gamma) * r);
                EXPECT_NEAR(dot(z, dims, i, j), k, enough) << i << ", " << j;
                least = std::min(least, k);
                most = std::max(most, k);
            }
        }
        EXPECT_LT(least, 0.3); // pairs of all kinds
        EXPECT_GT(most, 0.9);
    }
}

// With independent entries of w and v, E cos(w' (X - Y) v) = prod_j (1 + gamma
// s_j^2)^(-1/2), with the singular values s_j of X - Y. The variance of a mean
// of k cosines is at most 1 / k + 2 / k_w, because 1 / k_w of the others share
// the w of an output, and as many its v.
TEST(RandomFourierMap, BilinearProjections) {
    const int d_w = 4, d_v = 6, d = d_w * d_v, dims = 1 << 15;
    const double gamma = 0.4;
    const auto map = make(
            d,
            "RFF" + std::to_string(dims) +
                    "(gaussian,gamma=0.4,proj=bilinear,shape=4x6,w=dense,shuffle=0,m=40)");
    EXPECT_TRUE(map->is_trained);
    EXPECT_EQ(map->kernel->description(), "gaussian(gamma=0.4)");
    const auto& projection =
            dynamic_cast<const BilinearProjection&>(*map->projection);
    const double enough = 5 * std::sqrt(2.0 / dims + 2.0 / projection.k_w);
    ASSERT_LT(enough, 0.12);
    for (int rank : {1, 2, 4}) {
        // X - Y has `rank` singular values of the same size, in the first rows
        // and columns
        for (float size : {0.3f, 1.0f, 2.5f}) {
            Floats x = rows(normal_vectors(1, d, 7), d, 0, 1), y = x;
            for (int i = 0; i < rank; i++) {
                y[i * d_v + i] += size;
            }
            x.insert(x.end(), y.begin(), y.end());
            const Floats z = applied(*map, x);
            const double expected =
                    std::pow(1 + gamma * size * size, -rank / 2.0);
            EXPECT_NEAR(dot(z, dims, 0, 1), expected, enough)
                    << rank << ", " << size;
        }
    }
    map->check_identical(dynamic_cast<const RandomFourierMap&>(*reread(*map)));
    // strings have the keys of bilinear projections only if they are chosen
    EXPECT_EQ(make(d, "RFF8(gaussian)")->description(), "RFF(gaussian,dims=8)");
    EXPECT_EQ(
            make(d, "RFF8(gaussian,proj=bilinear,shape=6x4,m=2)")
                    ->description(),
            "RFF(gaussian,dims=8,proj=bilinear,shape=6x4,m=2,w=structured,shuffle=1)");
}

// After training the map behaves as if the bandwidth had been given.
TEST(RandomFourierMap, WaitsForTheBandwidth) {
    const int d = 6;
    const idx_t n = 200;
    const std::vector<float> x = normal_vectors(n, d, 1), same(n * d, 1);
    for (const std::string kernel :
         {"gaussian", "laplacian", "matern,nu=2.5", "gaussian,proj=dense"}) {
        const auto map = make(d, "RFF32(" + kernel + ")");
        EXPECT_TRUE(throws([&] { map->train(n, same.data()); }, "same"));
        EXPECT_FALSE(map->is_trained);
        EXPECT_FALSE(map->projection);
        map->train(n, x.data());
        EXPECT_TRUE(map->is_trained);
        EXPECT_GT(map->kernel->gamma, 0);
        const RandomFourierMap given(d, 32, *map->kernel, 1234, map->proj);
        EXPECT_TRUE(given.is_trained);
        given.check_identical(*map);
        EXPECT_TRUE(same_bits(applied(given, x), applied(*map, x))) << kernel;
    }
}

TEST(RandomFourierMap, ParametersMatter) {
    const std::vector<float> x = normal_vectors(20, 7, 1);
    const auto map = make(7, "RFF64(gaussian,gamma=1,seed=3)");
    map->check_identical(RandomFourierMap(7, 64, GaussianKernel(1), 3));
    for (const char* arguments :
         {"gaussian,gamma=1,seed=4",
          "gaussian,gamma=2,seed=3",
          "matern,gamma=1,seed=3",
          "gaussian,gamma=1,seed=3,proj=dense"}) {
        SCOPED_TRACE(arguments);
        const auto other = make(7, std::string("RFF64(") + arguments + ")");
        EXPECT_TRUE(throws([&] { map->check_identical(*other); }));
        EXPECT_NE(applied(*map, x), applied(*other, x));
    }
}

TEST(RandomFourierMap, Errors) {
    const std::pair<const char*, const char*> cases[] = {
            {"RFF(gaussian)", "dims"},
            {"RFF0(gaussian)", "dims"},
            {"RFF33(gaussian)", "even"},
            {"RFF64", "gaussian"},
            {"RFF64(chi2)", "gaussian, laplacian, matern"},
            {"RFF64(laplacian,proj=structured)", "'structured' of proj"},
            {"RFF64(matern,proj=bilinear)", "'bilinear' of proj"},
            {"RFF64(gaussian,proj=bilinear,shape=2x3)", "2x3"},
            {"RFF64(gaussian,m=3)", "'m'"},
            {"RFF64(gaussian,gamma=0)", "'0' of gamma"},
            {"RFF64(gaussian,dims=32)", "dims"}};
    for (const auto& [text, names] : cases) {
        EXPECT_TRUE(
                throws([&text = text] { map_factory(4, text); }, text, names));
    }
    make(4, "RFF(gaussian,gamma=1,dims=64)")
            ->check_identical(*make(4, "RFF64(gaussian,gamma=1)"));
    const auto construct = [](int d, int dims, int seed) {
        RandomFourierMap(d, dims, GaussianKernel(1), seed);
    };
    EXPECT_TRUE(throws([&] { construct(0, 8, 1); }, "dimension"));
    EXPECT_TRUE(throws([&] { construct(4, 0, 1); }, "dims"));
    EXPECT_TRUE(throws([&] { construct(4, 8, -1); }, "seed"));
}
