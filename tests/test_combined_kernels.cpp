// SPDX-License-Identifier: MIT
// Sums and products of kernels against identities and references in double
// precision.

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/kernels/CallbackKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>
#include <faiss_ext/kernels/ProductKernel.h>
#include <faiss_ext/kernels/SumKernel.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

/// Pairs from far to near: y_i = x_i + 4^-i z_i.
struct Pairs {
    static constexpr size_t n = 20, d = 7;
    std::vector<float> x = normal_vectors(n, d, 1, 0.3), y = x;

    Pairs() {
        const auto z = normal_vectors(n, d, 2);
        for (size_t i = 0; i < n * d; i++) {
            y[i] += float(std::ldexp(z[i], -2 * int(i / d)));
        }
    }

    double squared_distance(size_t i) const {
        double sum = 0;
        for (size_t k = i * d; k < (i + 1) * d; k++) {
            sum += (double(x[k]) - y[k]) * (double(x[k]) - y[k]);
        }
        return sum;
    }

    double product(
            const std::vector<float>& a,
            const std::vector<float>& b,
            size_t i) const {
        return std::inner_product(&a[i * d], &a[i * d] + d, &b[i * d], 0.0);
    }
};

/// Checks values and distances of pairs.
void expect_values(
        const std::string& text,
        const std::function<double(const Pairs&, size_t)>& value,
        const std::function<double(const Pairs&, size_t)>& distance) {
    const Pairs pairs;
    const auto kernel = kernel_factory(text);
    const auto values = kernel_block(*kernel, pairs.x, pairs.y, pairs.d);
    const auto distances = kernel_distances(*kernel, pairs.x, pairs.y, pairs.d);
    for (size_t i = 0; i < pairs.n; i++) {
        const size_t at = i * pairs.n + i;
        EXPECT_NEAR(values[at], value(pairs, i), 1e-5 * value(pairs, i))
                << text << ", pair " << i;
        EXPECT_NEAR(
                distances[at], distance(pairs, i), 3e-5 * distance(pairs, i))
                << text << ", pair " << i;
    }
}

} // namespace

// Gaussians of widths a and b multiply to one of width a + b. Distances have
// all digits however close the vectors are.
TEST(CombinedKernels, ProductsOfGaussiansAreGaussians) {
    for (const auto& [text, gamma] :
         {std::pair("product(gaussian(gamma=0.25),gaussian(gamma=0.5))", 0.75),
          std::pair(
                  "product(gaussian(gamma=0.5),gaussian(gamma=1),gaussian(gamma=0.25))",
                  1.75)}) {
        const auto exponent = [gamma = gamma](const Pairs& p, size_t i) {
            return -gamma * p.squared_distance(i) / 2;
        };
        expect_values(
                text,
                [&](const Pairs& p, size_t i) {
                    return std::exp(exponent(p, i));
                },
                [&](const Pairs& p, size_t i) {
                    return -2 * std::expm1(exponent(p, i));
                });
    }
}

TEST(CombinedKernels, SumsOfGaussians) {
    const auto part = [](const Pairs& p, size_t i, double gamma) {
        return std::expm1(-gamma * p.squared_distance(i) / 2);
    };
    expect_values(
            "sum(0.25*gaussian(gamma=0.5),3*gaussian(gamma=2))",
            [&](const Pairs& p, size_t i) {
                return 3.25 + 0.25 * part(p, i, 0.5) + 3 * part(p, i, 2);
            },
            [&](const Pairs& p, size_t i) {
                return -2 * (0.25 * part(p, i, 0.5) + 3 * part(p, i, 2));
            });
}

// k(x, x) is not 1 here. The product of linear kernels is <x, y>^2, and its
// distance is |x x' - y y'|^2, Frobenius's norm.
TEST(CombinedKernels, ProductsOfLinearKernelsArePowers) {
    const Pairs pairs;
    const ProductKernel square = [] {
        ProductKernel product;
        product.add(LinearKernel());
        product.add(LinearKernel());
        return product;
    }();
    const auto values = kernel_block(square, pairs.x, pairs.y, pairs.d);
    const auto distances = kernel_distances(square, pairs.x, pairs.y, pairs.d);
    for (size_t i = 0; i < pairs.n; i++) {
        const double xy = pairs.product(pairs.x, pairs.y, i);
        const double xx = pairs.product(pairs.x, pairs.x, i);
        const double yy = pairs.product(pairs.y, pairs.y, i);
        double distance = 0;
        for (size_t k = 0; k < pairs.d; k++) {
            for (size_t l = 0; l < pairs.d; l++) {
                const size_t a = i * pairs.d + k, b = i * pairs.d + l;
                distance += std::pow(
                        double(pairs.x[a]) * pairs.x[b] -
                                double(pairs.y[a]) * pairs.y[b],
                        2);
            }
        }
        const size_t at = i * pairs.n + i;
        EXPECT_NEAR(values[at], xy * xy, 1e-5 * xx * yy);
        // a linear kernel's distance is rounded at |x|^2
        EXPECT_NEAR(distances[at], distance, 1e-5 * distance + 3e-6 * xx * yy);
    }
}

TEST(CombinedKernels, StringsAndTheirErrors) {
    for (const std::string text :
         {"sum(0.3*chi2,0.7*js)",
          "sum(chi2,2.5*product(gaussian(gamma=0.5),linear))",
          "product(normalized(sum(linear,poly(degree=2))),cosine)",
          "sum(linear)"}) {
        EXPECT_EQ(kernel_factory(text)->description(), text);
        EXPECT_EQ(kernel_factory(text)->clone()->description(), text);
    }
    EXPECT_EQ(
            kernel_factory("sum( 3 * chi2 , 1*js )")->description(),
            "sum(3*chi2,js)");
    const std::pair<std::string, std::string> bad[] = {
            {"sum", "argument"},
            {"sum()", "argument"},
            {"sum(chi)", "unknown kernel"},
            {"sum(chi2,chi)", "unknown kernel 'chi'"},
            {"sum(0*chi2)", "weight '0'"},
            {"sum(-1*chi2)", "weight '-1'"},
            {"sum(x*chi2)", "weight 'x'"},
            {"sum(1e7*chi2)", "1e+06"},
            {"sum(0.5*)", "name"},
            {"sum(chi2*0.5)", "weight 'chi2'"},
            {"product(0.5*chi2)", "name"},
            {"sum(gaussian,gamma=2)", "gamma"},
            {"exponential(0.5*chi2,scale=1)", "name"}};
    for (const auto& [text, says] : bad) {
        EXPECT_TRUE(
                throws([&text = text] { kernel_factory(text); }, text, says))
                << text;
    }
    SumKernel sum;
    EXPECT_TRUE(throws([&] { sum.add(LinearKernel(), 0); }, "weight is 0"));
    EXPECT_TRUE(sum.kernels.empty());
    EXPECT_TRUE(throws([&] { sum.init(); }, "no kernels"));
}

// If one of the kernels cannot be trained, the others stay untrained.
TEST(CombinedKernels, AreTrainedAllOrNone) {
    const size_t n = 50, d = 3;
    const auto x = uniform_vectors(n, d, 1);
    const auto kernel =
            kernel_factory("sum(gaussian,0.5*product(linear,expchi2))");
    EXPECT_FALSE(kernel->is_trained);
    auto negative = x;
    negative[4] = -1; // gaussian is defined there, expchi2 is not
    const std::string before = kernel->description();
    const std::vector<float> zeros(n * d);
    EXPECT_TRUE(throws([&] { kernel->train(n, zeros.data(), d); }));
    EXPECT_EQ(kernel->description(), before);
    EXPECT_FALSE(kernel->is_trained);
    kernel->train(n, x.data(), d);
    EXPECT_TRUE(kernel->is_trained);
    auto gaussian = kernel_factory("gaussian"),
         chi2 = kernel_factory("expchi2");
    gaussian->train(n, x.data(), d);
    chi2->train(n, x.data(), d);
    EXPECT_EQ(
            kernel->description(),
            "sum(" + gaussian->description() + ",0.5*product(linear," +
                    chi2->description() + "))");
    IndexFlatKernel index(d, *kernel);
    EXPECT_TRUE(throws([&] { index.add(n, negative.data()); }, "component 1"));
    EXPECT_EQ(index.ntotal, 0);
}

// Vectors whose value overflows or underflows are refused, also if each kernel
// alone accepts them.
TEST(CombinedKernels, RangesOfValues) {
    const auto check = [](const std::string& text, float component) {
        kernel_factory(text)->check_input(1, &component, 1, "here");
    };
    check("product(linear,linear)", 1e9f);
    check("product(linear,linear)", 1e-8f);
    check("product(linear,linear)", 0);
    check("sum(1000*linear)", 1e17f);
    const std::tuple<std::string, float, std::string> bad[] = {
            {"product(linear,linear)", 1e10f, "overflows"},
            {"product(linear,linear)", 1e-10f, "underflows"},
            {"sum(1000*linear)", 1e18f, "overflows"}};
    for (const auto& [text, component, says] : bad) {
        check("linear", component);
        EXPECT_TRUE(throws(
                [&, &text = text, &component = component] {
                    check(text, component);
                },
                "here",
                text,
                says));
    }
}
