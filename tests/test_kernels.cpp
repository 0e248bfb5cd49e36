// SPDX-License-Identifier: MIT
// Shift-invariant kernels against references in double precision, and
// properties of all kernels that the contract does not cover.

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/kernels/Kernel.h>
#include <faiss_ext/kernels/LinearKernel.h>

#include <cfloat>

#include "testing.h"
#include "testing_strings.h"

using namespace faiss_ext;
using namespace faiss_ext_test;
using testing_strings::Data;
using testing_strings::kernels;
using testing_strings::Row;

namespace {

/// The error bound that ShiftInvariantKernel promises. Below FLT_MIN floats
/// have fewer digits.
double value_bound(const KernelCase& c, double r, double k) {
    const double s = c.name == "matern" ? std::sqrt(2 * c.nu) * r
            : c.l1()                    ? r
                                        : r * r;
    return s <= 1 ? 2e-6 : 2e-6 * s * k + FLT_TRUE_MIN;
}

/// Checks the value and the distance of one pair, under every instruction set.
void expect_pair(
        const KernelCase& c,
        double gamma,
        const std::vector<float>& x,
        const std::vector<float>& y) {
    static const std::vector<int64_t> all_targets = targets();
    const auto kernel = c.make(gamma);
    const size_t d = x.size();
    const double r = c.scale(gamma) * distance(c, x.data(), y.data(), d);
    const double k = c.profile(r), far = 2 * c.one_minus_profile(r);
    SCOPED_TRACE("d = " + std::to_string(d) + ", r = " + std::to_string(r));
    for (int64_t target : all_targets) {
        const Target guard(target);
        const float value = kernel_block(*kernel, x, y, d)[0];
        const float between = kernel_distances(*kernel, x, y, d)[0];
        const char* name = hwy::TargetName(target);
        EXPECT_NEAR(value, k, value_bound(c, r, k)) << name;
        EXPECT_NEAR(between, far, 1e-5 * far + FLT_MIN) << name;
    }
}

/// Returns differences of one length and several shapes: spread over all
/// components, in only one, and all equal, so that rounding errors do not
/// cancel.
std::vector<std::vector<float>> differences(
        const KernelCase& c,
        size_t d,
        double length) {
    std::vector<std::vector<float>> all(3, std::vector<float>(d));
    const auto normal = normal_vectors(1, d, 9 + d);
    const double norm = distance(c, normal.data(), all[0].data(), d);
    all[1][d / 2] = float(length);
    for (size_t k = 0; k < d; k++) {
        all[0][k] = float(length * normal[k] / norm);
        all[2][k] = float(length / (c.l1() ? d : std::sqrt(d)));
    }
    return all;
}

struct ShiftInvariantKernels : testing::TestWithParam<KernelCase> {
    const KernelCase& c = GetParam();
};

INSTANTIATE_TEST_SUITE_P(
        Kernels,
        ShiftInvariantKernels,
        testing::ValuesIn(kernel_cases()),
        [](const auto& info) { return case_name(info.param); });

} // namespace

// Distances go up to the smallest values that a float can hold, r^2 / 2 = 87 or
// r = 87, and down to |x - y|^2 = 1e-36, at which 1 - K would have no digits.
TEST_P(ShiftInvariantKernels, AgreeWithReference) {
    for (size_t d : {1, 3, 17, 128, 5000}) {
        const double gamma = d % 2 ? 0.37 : 5.1;
        // half a decade apart, and some chosen ones
        std::vector<double> radii = {0, 1e-17, 1e-12, 1e-7, 1e-4, 0.9, 1.5, 85};
        for (double r = 1e-3; r < 80; r *= std::sqrt(10)) {
            radii.push_back(r);
        }
        for (double r : radii) {
            const auto origin = normal_vectors(1, d, d, r < 1e-2 ? 0 : 0.01);
            for (std::vector<float> y : differences(c, d, r / c.scale(gamma))) {
                for (size_t k = 0; k < d; k++) {
                    y[k] += origin[k];
                }
                expect_pair(c, gamma, origin, y);
            }
        }
    }
    // neighbouring floats have exact differences
    const auto x = normal_vectors(1, 20, 3);
    std::vector<float> y = x;
    for (size_t k = 0; k < 20; k++) {
        y[k] = std::nextafter(x[k], k % 2 ? 100.0f : -100.0f);
    }
    expect_pair(c, 0.8, x, y);
}

// Huge, tiny and mixed components: differences and their squares overflow to
// infinity or underflow to 0, but never become NaN. Equal vectors give exact
// results.
TEST_P(ShiftInvariantKernels, ExtremeVectors) {
    const float values[] = {
            0, 1e-45f, -1e-30f, 1e-30f, 1, -1, 1e18f, -1e18f, 3e38f, -3e38f};
    const size_t n = std::size(values);
    for (double gamma : {1e-30, 1.0, 1e30}) {
        const auto kernel = c.make(gamma);
        for (size_t d : {1, 17}) {
            std::vector<float> x, self(n);
            for (float v : values) {
                for (size_t k = 0; k < d; k++) {
                    x.push_back(k % 3 == 1 ? -v : v);
                }
            }
            const auto k = kernel_block(*kernel, x, x, d);
            const auto dis = kernel_distances(*kernel, x, x, d);
            kernel->self_values(n, x.data(), d, self.data());
            EXPECT_EQ(self, std::vector<float>(n, 1));
            for (size_t i = 0; i < n * n; i++) {
                // a comparison with NaN is false
                EXPECT_TRUE(k[i] >= 0 && k[i] <= 1) << k[i];
                EXPECT_TRUE(dis[i] >= 0 && dis[i] <= 2) << dis[i];
                EXPECT_TRUE(i % (n + 1) || (k[i] == 1 && dis[i] == 0));
            }
        }
    }
    for (float far : {1e3f, 1e18f, 3e38f}) { // values underflow
        EXPECT_EQ(kernel_block(*c.make(1), {0, 0}, {0, far}, 2)[0], 0);
        EXPECT_EQ(kernel_distances(*c.make(1), {0, 0}, {0, far}, 2)[0], 2);
    }
}

// With a suitable bandwidth, vectors of any size have correct values or are
// refused. In L2, vectors are refused if their squares leave the range of
// float.
TEST_P(ShiftInvariantKernels, AnyScale) {
    for (size_t d : {1, 40}) {
        const auto directions = normal_vectors(4, d, 2);
        int taken = 0;
        for (int e = -44; e <= 38; e++) {
            const double scale = std::pow(10.0, e);
            std::vector<float> x(directions);
            for (float& v : x) {
                v = float(v * scale);
            }
            const double gamma =
                    c.make(1)->gamma_of_radius(scale * std::sqrt(double(d)));
            const auto kernel = c.make(gamma);
            try {
                kernel->check_input(4, x.data(), d, "test");
            } catch (const faiss::FaissException& error) {
                EXPECT_TRUE(error.msg.find("too large") != std::string::npos)
                        << error.msg;
                continue;
            }
            taken++;
            for (size_t i = 0; i < 16; i++) {
                expect_pair(
                        c,
                        gamma,
                        rows(x, d, i / 4, i / 4 + 1),
                        rows(x, d, i % 4, i % 4 + 1));
            }
        }
        EXPECT_GE(taken, c.l1() ? 80 : 32);
    }
}

// A norm at the limit is accepted, also in a search; the next larger one is
// named.
TEST_P(ShiftInvariantKernels, LargestVectors) {
    const size_t d = 9;
    const float most =
            float(c.l1() ? FLT_MAX / 4 / 9.0 : std::sqrt(FLT_MAX / 8.0 / 9.0));
    const float less = std::nextafter(most, 0.0f);
    const double gamma = c.make(1)->gamma_of_radius(4 * double(most));
    IndexFlatKernel index(d, *c.make(gamma));
    std::vector<float> x(2 * d, less);
    std::fill_n(x.begin(), d, -less);
    index.add(2, x.data());
    expect_pair(c, gamma, rows(x, d, 0, 1), rows(x, d, 1, 2));
    EXPECT_EQ(search(index, x, 1).labels, (std::vector<idx_t>{0, 1}));
    x[d + 3] = most * 1.01f;
    for (const auto& call :
         {std::function<void()>([&] { index.add(2, x.data()); }),
          std::function<void()>([&] { search(index, x, 1); })}) {
        EXPECT_TRUE(throws(call, "vector 1 is too large"));
    }
    EXPECT_EQ(index.ntotal, 2);
}

TEST_P(ShiftInvariantKernels, ProfileAndItsInverse) {
    const auto kernel = c.make(1);
    EXPECT_EQ(kernel->profile(0), 1);
    EXPECT_EQ(kernel->one_minus_profile(0), 0);
    EXPECT_EQ(kernel->profile(HUGE_VAL), 0);
    EXPECT_EQ(kernel->one_minus_profile(HUGE_VAL), 1);
    for (double r = 1e-3; r < 80; r *= 1.3) {
        // rounding of r^2 / 2 <= 3200, or of z, moves the exponential by as
        // many units; the Bessel function adds a few
        const double k = c.profile(r), rest = c.one_minus_profile(r);
        EXPECT_NEAR(kernel->profile(r), k, 1e-12 * k) << r;
        EXPECT_NEAR(kernel->one_minus_profile(r), rest, 1e-8 * rest) << r;
    }
    EXPECT_EQ(kernel->inverse_profile(1), 0);
    EXPECT_EQ(kernel->inverse_profile(0), HUGE_VAL);
    for (double k : {1e-250, 1e-100, 1e-5, 0.01, 0.3, 0.5, 0.9, 1 - 1e-9}) {
        const double r = kernel->inverse_profile(k);
        EXPECT_GE(r, 0);
        // |d log K / d log r| is at most 1200 at K = 1e-250
        EXPECT_NEAR(kernel->profile(r), k, 1200 * 4e-16 * k) << "k = " << k;
    }
}

// With gamma = gamma_of_radius(R), K(x - y) = profile(|x - y| / R).
TEST_P(ShiftInvariantKernels, Bandwidths) {
    for (double radius : {1e-3, 0.7, 250.0}) {
        const double gamma = c.make(1)->gamma_of_radius(radius);
        EXPECT_NEAR(gamma, std::pow(radius, c.l1() ? -1 : -2), 1e-14 * gamma);
        EXPECT_NEAR(c.make(gamma)->inverse_length() * radius, 1, 1e-14);
    }
    EXPECT_FALSE(kernel_factory(c.name)->is_trained);
    for (double gamma : {-1.0, -1e-300, HUGE_VAL, std::nan("")}) {
        EXPECT_TRUE(throws([&] { c.make(gamma); }, "gamma"));
    }
}

// 2 (1 - K) is the squared distance of the features of two points, at most
// L_K^2 times their squared distance. In one dimension it is near this bound at
// short distances. If L_K is infinite, the ratio grows without bound.
TEST_P(ShiftInvariantKernels, LipschitzConstant) {
    const double gamma = 0.3;
    const auto kernel = c.make(gamma);
    const double L = kernel->lipschitz_constant(1);
    const auto square = [&](double distance) {
        return 2 *
                kernel->one_minus_profile(kernel->inverse_length() * distance) /
                (distance * distance);
    };
    EXPECT_EQ(std::isinf(L), c.l1() || (c.name == "matern" && c.nu <= 1));
    if (std::isinf(L)) {
        EXPECT_GT(square(1e-8), 4 * square(1e-4));
        return;
    }
    EXPECT_NEAR(square(1e-4), L * L, 1e-3 * L * L);
    for (double distance : {0.01, 0.3, 1.0, 5.0}) {
        EXPECT_LE(square(distance), L * L * (1 + 1e-9));
    }
    EXPECT_NEAR(kernel->lipschitz_constant(9), 3 * L, 1e-12 * L);
    EXPECT_TRUE(throws([&] { kernel->lipschitz_constant(0); }, "0 dimensions"));
    EXPECT_TRUE(
            throws([&] { c.make(0)->lipschitz_constant(2); }, "no bandwidth"));
}

// In the kernel of a rough process the power z^nu is nearly vertical at 0. In a
// smooth one the reference adds and subtracts exponents up to 5000.
TEST(MaternKernel, RoughAndSmooth) {
    for (double nu : {0.1, 0.3, 0.4, 10.0, 13.7, 20.0}) {
        SCOPED_TRACE(nu);
        const KernelCase c = {"matern", nu};
        const MaternKernel kernel(nu, 1);
        EXPECT_EQ(kernel.profile(0), 1);
        EXPECT_EQ(kernel.one_minus_profile(0), 0);
        for (double r : {1e-300, 1e-100, 1e-12, 1e-8, 1e-3, 0.1, 1.0, 10.0}) {
            const double bound = nu < 1 ? 1e-12 : 1e-11;
            EXPECT_NEAR(kernel.profile(r), c.profile(r), bound) << "r = " << r;
        }
    }
    for (double nu : {0.09, 20.1, -1.5, HUGE_VAL, std::nan("")}) {
        EXPECT_TRUE(throws([&] { MaternKernel(nu, 1.0); }, "nu"));
    }
}

namespace {

/// Returns the kernels of the contract, and the closed forms of Matern's.
std::vector<Row> all_kernels() {
    return joined<Row>(
            {{"matern(nu=0.5)"}, {"matern(nu=1.5)"}, {"matern(nu=2.5)"}},
            {std::begin(kernels), std::end(kernels)});
}

struct AllKernels : testing::TestWithParam<Row> {};

INSTANTIATE_TEST_SUITE_P(All, AllKernels, testing::ValuesIn(all_kernels()));

} // namespace

TEST_P(AllKernels, KnowWhoseSelfValueIs1) {
    const size_t n = 30, d = 17;
    auto x = GetParam().data == Data::histograms
            ? uniform_vectors(n, d, 1, 0, 0.1)
            : normal_vectors(n, d, 1, 0.3);
    const auto kernel = kernel_factory(GetParam().text);
    kernel->train(n, x.data(), d);
    std::fill_n(x.begin(), d, 0.f);
    std::vector<float> values(n);
    kernel->self_values(n, x.data(), d, values.data());
    const auto is_1 = [](float value) { return std::abs(value - 1) < 1e-5f; };
    const bool others = std::all_of(values.begin() + 1, values.end(), is_1);
    EXPECT_EQ(kernel->is_normalized(), others);
    EXPECT_TRUE(!kernel->has_unit_vectors() || (others && is_1(values[0])));
    EXPECT_LE(values[0], 1 + 1e-5f);
}

// The value of a pair depends only on the pair and is symmetric. At d = 5000,
// more than 13 rows of y need several passes.
TEST_P(AllKernels, ValuesDoNotDependOnTheBlock) {
    const size_t n = 30;
    for (size_t d : {1, 17, 64, 5000}) {
        SCOPED_TRACE(d);
        const auto x = GetParam().data == Data::histograms
                ? uniform_vectors(n, d, 1, 0, 2.0 / double(d))
                : normal_vectors(n, d, 1, 0.3);
        const auto kernel = kernel_factory(GetParam().text);
        kernel->train(n, x.data(), d);
        const auto whole = kernel_block(*kernel, x, x, d);
        const auto whole_distances = kernel_distances(*kernel, x, x, d);
        std::vector<float> gram(n * n);
        const Threads guard(7);
        kernel->gram(n, x.data(), n, x.data(), d, gram.data());
        EXPECT_EQ(gram, whole);
        for (size_t ni : {1, 4, 9}) {
            for (size_t nj : {1, 2, 5, 29}) {
                // rows i0 to the end and columns j0 to j0 + nj, transposed
                const size_t i0 = n - ni, j0 = (n - nj) / 2;
                const auto a = rows(x, d, i0, n), b = rows(x, d, j0, j0 + nj);
                const auto part = kernel_block(*kernel, b, a, d);
                const auto distances = kernel_distances(*kernel, b, a, d);
                SCOPED_TRACE(testing::Message() << ni << " x " << nj);
                for (size_t k = 0; k < ni * nj; k++) {
                    const size_t at = (i0 + k % ni) * n + j0 + k / ni;
                    ASSERT_EQ(part[k], whole[at]);
                    ASSERT_EQ(distances[k], whole_distances[at]);
                }
            }
        }
    }
}

namespace {

/// A kernel with as few functions as possible.
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
    EXPECT_TRUE(throws([&] { kernel.clone(); })); // not registered
    // small integers, so all sums are exact; products 2, 1, 6, -1, 10 and 4
    const std::vector<float> x = {1, 2, 3, -1}, y = {0, 1, 3, -1, 2, 2};
    const std::vector<float> self = {25, 100};
    const std::vector<float> distances = {18, 123, 17, 99, 0, 132};
    std::vector<float> values(2);
    kernel.self_values(2, x.data(), 2, values.data());
    EXPECT_EQ(values, self);
    EXPECT_EQ(kernel_distances(kernel, x, y, 2), distances);
    // rounding gives no negative distance
    const auto z = normal_vectors(40, 2, 6);
    for (float v : kernel_distances(kernel, z, z, 2)) {
        EXPECT_GE(v, 0);
    }
}

// k(x, x) may be up to a quarter of the largest float, so that distances are
// floats.
TEST(Kernel, TooLargeVectors) {
    const QuadraticKernel kernel;
    const float most = float(std::pow(FLT_MAX / 4, 0.25));
    const std::vector<float> large = {0.999f * most, -0.999f * most};
    const std::vector<float> larger = {0, 1.02f * most};
    kernel.check_input(2, large.data(), 1, "here");
    for (float v : kernel_distances(kernel, large, large, 1)) {
        EXPECT_TRUE(std::isfinite(v));
    }
    const auto check = [&] { kernel.check_input(2, larger.data(), 1, "here"); };
    EXPECT_TRUE(throws(check, "here", "quadratic", "vector 1"));
}
