// SPDX-License-Identifier: MIT
// Additive kernels, kernels made of other kernels, and user-defined kernels,
// against their formulas in long double.

#include <stdexcept>
#include <tuple>

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/CallbackKernel.h>
#include <faiss_ext/kernels/ExpChi2Kernel.h>
#include <faiss_ext/kernels/ExponentialKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>
#include <faiss_ext/kernels/NormalizedKernel.h>
#include <faiss_ext/kernels/SumKernel.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

using real = long double;
using Term = real (*)(real, real);
using Formula = std::function<real(const float*, const float*, size_t)>;

real chi2(real a, real b) {
    return a + b == 0 ? 0 : 2 * a * b / (a + b);
}
real jensen_shannon(real a, real b) {
    // log2((a + b) / a) = log1p(b / a) / log 2
    return a == 0 || b == 0
            ? 0
            : (a * std::log1p(b / a) + b * std::log1p(a / b)) / std::log(4.0L);
}
real hellinger(real a, real b) {
    return std::sqrt(a * b);
}
real intersection(real a, real b) {
    return std::min(a, b);
}
real product(real a, real b) {
    return a * b;
}

Formula additive(Term term) {
    return [term](const float* x, const float* y, size_t d) {
        real sum = 0;
        for (size_t k = 0; k < d; k++) {
            sum += term(x[k], y[k]);
        }
        return sum;
    };
}

/// Computes |phi(x) - phi(y)|^2, component by component. If components differ
/// by 1e-6, 7 of 19 digits are left.
Formula distance_of(Term term) {
    return [term](const float* x, const float* y, size_t d) {
        real sum = 0;
        for (size_t k = 0; k < d; k++) {
            const real a = x[k], b = y[k];
            sum += term(a, a) + term(b, b) - 2 * term(a, b);
        }
        return sum;
    };
}

Formula normalized(Formula k) {
    return [k](const float* x, const float* y, size_t d) {
        const real xx = k(x, x, d), yy = k(y, y, d);
        return xx > 0 && yy > 0 ? k(x, y, d) / std::sqrt(xx) / std::sqrt(yy)
                                : 0;
    };
}

Formula exponential(Formula k, real s) {
    return [=](const float* x, const float* y, size_t d) {
        return std::exp(s * (k(x, y, d) - 1));
    };
}

Formula polynomial(int degree, real c) {
    return [=](const float* x, const float* y, size_t d) {
        return std::pow(additive(product)(x, y, d) + c, real(degree));
    };
}

/// Computes exp(-2 |phi(x) - phi(y)|^2).
real exp_chi2(const float* x, const float* y, size_t d) {
    return std::exp(-2 * distance_of(chi2)(x, y, d));
}

real exp_chi2_distance(const float* x, const float* y, size_t d) {
    return -2 * std::expm1(-2 * distance_of(chi2)(x, y, d));
}

/// Divides the sum of the smaller components by the sum of the larger ones.
real jaccard(const float* x, const float* y, size_t d) {
    const real both = additive(intersection)(x, y, d);
    real sum = 0;
    for (size_t k = 0; k < d; k++) {
        sum += real(x[k]) + y[k];
    }
    return sum > 0 ? both / (sum - both) : 1;
}

real jaccard_distance(const float* x, const float* y, size_t d) {
    real smaller = 0, larger = 0;
    for (size_t k = 0; k < d; k++) {
        smaller += std::min(x[k], y[k]);
        larger += std::max(x[k], y[k]);
    }
    return larger > 0 ? 2 * (larger - smaller) / larger : 0;
}

real dice(const float* x, const float* y, size_t d) {
    const real j = jaccard(x, y, d);
    return 2 * j / (1 + j);
}

real dice_distance(const float* x, const float* y, size_t d) {
    real apart = 0, sum = 0;
    for (size_t k = 0; k < d; k++) {
        apart += std::abs(real(x[k]) - y[k]);
        sum += real(x[k]) + y[k];
    }
    return sum > 0 ? 2 * apart / sum : 0;
}

struct Case {
    std::string kernel;
    Formula formula;
};

void PrintTo(const Case& c, std::ostream* out) {
    *out << c.kernel;
}

const std::vector<Case> additive_cases = {
        {"chi2", additive(chi2)},
        {"intersection", additive(intersection)},
        {"js", additive(jensen_shannon)},
        {"hellinger", additive(hellinger)}};

const std::vector<Case> all_cases = joined(
        additive_cases,
        {{"linear", additive(product)},
         {"cosine", normalized(additive(product))},
         {"poly", polynomial(3, 1)},
         {"jaccard", jaccard},
         {"dice", dice},
         {"normalized(intersection)", normalized(additive(intersection))},
         {"normalized(poly(degree=2,c=0.5))", normalized(polynomial(2, 0.5))},
         {"exponential(normalized(chi2),scale=5)",
          exponential(normalized(additive(chi2)), 5)},
         {"expchi2(gamma=0.5)", exp_chi2}});

/// Returns vectors of L1 norm 1 or 2, so that exponentials and powers stay in
/// range: without zeros, with half zeros, with almost only zeros, and one zero
/// vector.
std::vector<float> histograms(size_t n, size_t d, uint64_t seed) {
    std::vector<float> x = uniform_vectors(n, d, seed);
    std::mt19937_64 rng(seed + 1);
    for (size_t i = 0; i < n; i++) {
        const unsigned zeros[] = {0, 0, 5, 9, i < 5 ? 10u : 0u}; // in 10
        double sum = 0;
        for (size_t k = 0; k < d; k++) {
            x[i * d + k] *= float(rng() % 10 >= zeros[i % 5]);
            sum += x[i * d + k];
        }
        for (size_t k = 0; k < d && sum > 0; k++) {
            x[i * d + k] *= float((1 + i % 2) / sum);
        }
    }
    return x;
}

std::vector<float> self_values(
        const Kernel& kernel,
        const std::vector<float>& x,
        size_t d) {
    std::vector<float> values(x.size() / d, -1);
    kernel.self_values(values.size(), x.data(), d, values.data());
    return values;
}

struct Kernels : testing::TestWithParam<Case> {
    const Case& c = GetParam();
    const std::unique_ptr<Kernel> kernel = kernel_factory(c.kernel);
};
struct Additive : Kernels {};

INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::ValuesIn(all_cases));
INSTANTIATE_TEST_SUITE_P(All, Additive, testing::ValuesIn(additive_cases));

} // namespace

// Sums of positive terms have a relative error below 1e-6. Powers and
// exponentials multiply the error of their arguments.
TEST_P(Kernels, AgreeWithTheirFormulas) {
    // below, at and above the lanes of a register and a run of components
    for (size_t d : {1, 7, 16, 63, 128, 5000}) {
        SCOPED_TRACE(d);
        const size_t n = 11, m = 9;
        const auto x = histograms(n, d, 10 + d);
        const auto y = // equal vectors first
                joined(rows(x, d, 0, 2), histograms(m - 2, d, 20 + d));
        const auto values = kernel_block(*kernel, x, y, d);
        const auto distances = kernel_distances(*kernel, x, y, d);
        const auto self = self_values(*kernel, x, d);
        const double bound = d <= 128 ? 4e-6 : 2e-5;
        for (size_t k = 0; k < n * m; k++) {
            const float *a = &x[k / m * d], *b = &y[k % m * d];
            const double aa = double(c.formula(a, a, d));
            const double bb = double(c.formula(b, b, d));
            const double ab = double(c.formula(a, b, d));
            EXPECT_NEAR(self[k / m], aa, 2e-5 * aa);
            EXPECT_NEAR(values[k], ab, bound * ab);
            EXPECT_NEAR(distances[k], aa + bb - 2 * ab, 2e-5 * (aa + bb));
            EXPECT_GE(distances[k], 0);
        }
    }
}

// The error of a term is at most 4e-7 for values and 1e-6 for distances, and
// the result is rounded.
TEST_P(Additive, SingleComponents) {
    const std::vector<float> x = {0.7f};
    std::vector<float> y;
    for (double v = 1e-3; v < 1e3; v *= 1.003) {
        y.push_back(float(v));
    }
    for (int64_t target : targets()) {
        const Target guard(target);
        const auto values = kernel_block(*kernel, x, y, 1);
        const auto distances = kernel_distances(*kernel, x, y, 1);
        for (size_t k = 0; k < y.size(); k++) {
            const real value = c.formula(&x[0], &y[k], 1);
            const double distance = double(real(x[0]) + y[k] - 2 * value);
            const double v = double(value);
            EXPECT_NEAR(values[k], v, 4.7e-7 * v) << y[k];
            EXPECT_NEAR(distances[k], distance, 1.07e-6 * distance) << y[k];
        }
    }
}

// Components from 1e-36 to 1e20, alone and together, with zeros between them.
TEST_P(Additive, TinyAndHugeComponents) {
    const std::vector<float> sizes = {
            0, 1e-36f, 1e-30f, 1e-20f, 1e-3f, 1, 1e10f, 1e20f};
    const auto check = [&](const auto& x, const auto& y) {
        const size_t d = x.size();
        const double expected = double(c.formula(x.data(), y.data(), d));
        const float value = kernel_block(*kernel, x, y, d)[0];
        EXPECT_NEAR(value, expected, 1e-4 * expected)
                << x[0] << " and " << y[0] << ", d = " << d;
        EXPECT_TRUE(std::isfinite(kernel_distances(*kernel, x, y, d)[0]));
    };
    for (float a : sizes) {
        for (float b : sizes) {
            check(std::vector<float>{a}, std::vector<float>{b});
            check(std::vector<float>(63, a), std::vector<float>(63, b));
        }
    }
    std::mt19937_64 rng(1);
    for (size_t d : {7, 5000}) {
        std::vector<float> x(d), y(d);
        for (size_t k = 0; k < d; k++) {
            x[k] = sizes[rng() % sizes.size()];
            y[k] = sizes[rng() % sizes.size()];
        }
        check(x, y);
    }
}

// "Components below 1e-37 count as 0": results are finite. Large components
// give finite results, too, unless they are refused.
TEST_P(Kernels, NothingButFiniteNumbers) {
    const auto check = [&](const std::vector<float>& x, size_t d) {
        for (float v :
             joined(kernel_block(*kernel, x, x, d),
                    kernel_distances(*kernel, x, x, d))) {
            EXPECT_TRUE(std::isfinite(v));
        }
    };
    std::vector<float> tiny;
    for (float v : {0.0f, 1e-45f, 1e-44f, 1e-40f, 1e-38f, 1e-37f, 1.0f}) {
        tiny.insert(tiny.end(), 5, v);
    }
    check(tiny, 5);
    const size_t n = 6, d = 63;
    auto x = histograms(n, d, 90 + d);
    for (float& v : x) {
        v *= 1e20f;
    }
    const std::string refused = "linear poly normalized(poly(degree=2,c=0.5))";
    const auto test = [&] { kernel->check_input(n, x.data(), d, "test"); };
    if (refused.find(c.kernel) != std::string::npos) {
        EXPECT_TRUE(throws(test, "test"));
    } else {
        test();
        check(x, d);
    }
}

// Distances of close histograms are computed from differences and keep their
// digits. Computed from kernel values, they would lose all digits at a
// difference of 1e-4.
TEST(Distances, PreciseForCloseHistograms) {
    const std::vector<Case> cases = {
            {"chi2", distance_of(chi2)},
            {"intersection", distance_of(intersection)},
            {"hellinger", distance_of(hellinger)},
            {"js", distance_of(jensen_shannon)},
            {"linear", distance_of(product)},
            {"jaccard", jaccard_distance},
            {"dice", dice_distance},
            {"expchi2(gamma=0.5)", exp_chi2_distance}};
    for (const Case& c : cases) {
        const auto kernel = kernel_factory(c.kernel);
        for (size_t d : {7, 128, 5000}) {
            const auto x = histograms(1, d, 100 + d);
            for (double difference : {1e-1, 1e-3, 1e-5, 1e-6}) {
                auto y = normal_vectors(1, d, d, difference);
                for (size_t k = 0; k < d; k++) {
                    y[k] = x[k] * (1 + std::clamp(y[k], -0.5f, 0.5f));
                }
                const double expected = double(c.formula(&x[0], &y[0], d));
                const float found = kernel_distances(*kernel, x, y, d)[0];
                EXPECT_NEAR(found, expected, 1e-5 * expected)
                        << c.kernel << ", d = " << d << ", " << difference;
            }
            EXPECT_EQ(kernel_distances(*kernel, x, x, d)[0], 0);
        }
    }
}

// The mean is over all pairs of different vectors if there are at most 1,000
// vectors, otherwise over a sample of 1,000. Distances are in [0, 2]. The mean
// over pairs of a sample without replacement is a U-statistic, so Hoeffding's
// bound holds for it with floor(m / 2) pairs.
TEST(ExpChi2, AutoGammaIsTheMeanDistance) {
    const size_t d = 8;
    const Formula distance = distance_of(chi2);
    for (size_t n : {100, 1500}) {
        const auto x = clustered_histograms(n, d, 4, 20, 5);
        real sum = 0;
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                sum += distance(&x[i * d], &x[j * d], d);
            }
        }
        const double expected = double(2 * sum / (real(n) * (n - 1)));
        const double bound = n > 1000 ? 2 * hoeffding(500) : 1e-5 * expected;
        const auto kernel = kernel_factory("exponential(expchi2,scale=2)");
        EXPECT_FALSE(kernel->is_trained);
        kernel->train(n, x.data(), d);
        EXPECT_TRUE(kernel->is_trained);
        const Kernel& inner = *dynamic_cast<ExponentialKernel&>(*kernel).kernel;
        const double gamma = dynamic_cast<const ExpChi2Kernel&>(inner).gamma;
        EXPECT_NEAR(gamma, expected, bound);
    }
    // distances beyond the range of float
    const auto huge = uniform_vectors(100, 500, 1, 0, 1e37);
    ExpChi2Kernel kernel;
    EXPECT_TRUE(throws([&] { kernel.train(100, huge.data(), 500); }, "gamma"));
    EXPECT_FALSE(kernel.is_trained);
}

TEST(Strings, NestedKernelsAndErrors) {
    for (const std::string name :
         {"normalized(exponential(normalized(poly(degree=2,c=0)),scale=0.25))",
          "exponential(exponential(cosine,scale=2),scale=3)"}) {
        EXPECT_EQ(kernel_factory(name)->description(), name);
        EXPECT_EQ(kernel_factory(name)->clone()->description(), name);
    }
    const std::pair<std::string, std::string> bad[] = {
            {"chi", "unknown kernel"},
            {"chi2(2)", "2"},
            {"expchi2(gamma=0)", "gamma"},
            {"poly(degree=0)", "degree"},
            {"poly(degree=1.5)", "degree"},
            {"poly(c=-1)", "c"},
            {"normalized(chi2,js)", "js"},
            {"exponential(chi2)", "scale"},
            {"exponential(scale=2)", "argument"},
            {"exponential(chi2,scale=0)", "scale"},
            {"exponential(chi2,scale=nan)", "scale"}};
    for (const auto& [name, says] : bad) {
        EXPECT_TRUE(
                throws([&name = name] { kernel_factory(name); }, name, says))
                << name;
    }
}

// User-defined kernels, copies, and copies inside other kernels.
TEST(Callback, IsTheFunction) {
    const size_t n = 19, d = 6;
    const auto x = normal_vectors(n, d, 1);
    const CallbackKernel kernel(
            [](auto... arguments) { LinearKernel().block(arguments...); });
    EXPECT_EQ(self_values(kernel, x, d), self_values(LinearKernel(), x, d));
    EXPECT_EQ(
            kernel_block(*NormalizedKernel(kernel).clone(), x, x, d),
            kernel_block(CosineKernel(), x, x, d));
}

TEST(Callback, TakesAndReturnsFiniteNumbers) {
    const CallbackKernel::Function none;
    EXPECT_TRUE(throws([&] { CallbackKernel{none}; }, "empty"));
    int calls = 0;
    const CallbackKernel kernel([&](auto... arguments) {
        calls++;
        *std::get<5>(std::make_tuple(arguments...)) = NAN;
    });
    const std::vector<float> x = {1, 2, 3, NAN};
    float out;
    const auto gram = [&](idx_t n) {
        kernel.gram(n, x.data(), 1, x.data(), 2, &out);
    };
    EXPECT_TRUE(throws([&] { gram(2); }, "component 1 of vector 1"));
    EXPECT_EQ(calls, 0);
    EXPECT_TRUE(throws([&] { gram(1); }, "finite"));
}

// A file has the name of the function. Whoever reads it must know the function.
TEST(Callback, NamesInFiles) {
    const size_t n = 30, d = 4;
    const auto x = uniform_vectors(n, d, 1);
    const auto linear = [](auto... arguments) {
        LinearKernel().block(arguments...);
    };
    const auto file_of = [&](const Kernel& kernel) {
        IndexFlatKernel index(int(d), kernel);
        index.add(n, x.data());
        return bytes_of(index);
    };
    const CallbackKernel without(linear), with(linear, "mine");
    SumKernel sum;
    sum.add(with, 2);
    const NormalizedKernel normalized(sum);
    for (const Kernel* kernel :
         std::vector<const Kernel*>{&with, &sum, &normalized}) {
        const auto bytes = file_of(*kernel);
        const auto index = from_bytes(bytes);
        IndexFlatKernel original(int(d), *kernel);
        original.add(n, x.data());
        expect_same(search(*index, x, 3), search(original, x, 3));
    }
    EXPECT_TRUE(throws([&] { file_of(without); }, "without a name"));
    EXPECT_TRUE(throws(
            [&] { file_of(NormalizedKernel(without)); }, "without a name"));
    // a program that does not know the function
    auto bytes = file_of(with);
    const std::string name = "mine", other = "mime";
    Bytes content = content_of(bytes);
    const auto at = std::search(
            content.begin(), content.end(), name.begin(), name.end());
    std::copy(other.begin(), other.end(), at);
    EXPECT_TRUE(throws([&] { from_bytes(sealed(content)); }, "'mime'"));
    const CallbackKernel known(linear, other);
    EXPECT_EQ(from_bytes(sealed(content))->ntotal, n);
    EXPECT_TRUE(throws(
            [&] { CallbackKernel(linear, std::string(1001, 'x')); }, "1001"));
    EXPECT_TRUE(throws([] { kernel_factory("callback"); }, "unknown kernel"));
}

TEST(Callback, ExceptionsReachTheCaller) {
    const size_t n = 300, d = 4;
    const auto x = uniform_vectors(n, d, 1);
    bool fail = true;
    const CallbackKernel kernel([&fail](auto... arguments) {
        if (fail) {
            throw std::out_of_range("no kernel today");
        }
        LinearKernel().block(arguments...);
    });
    std::vector<float> out(n * n);
    const auto gram = [&] {
        kernel.gram(n, x.data(), n, x.data(), d, out.data());
    };
    for (int threads : {1, 4}) {
        const Threads with(threads);
        fail = true;
        EXPECT_THROW(gram(), std::out_of_range);
        // it works again afterwards
        fail = false;
        gram();
        EXPECT_EQ(out, kernel_block(LinearKernel(), x, x, d));
    }
}
