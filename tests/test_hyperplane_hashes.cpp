// What schemes of projections and thresholds have in common, and the theory of
// HyperplaneHash (RHBE) and SignCauchyHash (SCR).

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <faiss_ext/hashes/AdditiveKernelHash.h>
#include <faiss_ext/hashes/HyperplaneHash.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/hashes/SignCauchyHash.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

std::unique_ptr<ProjectionHash> make(
        int d,
        int nbits,
        const std::string& name,
        const std::string& arguments = "") {
    auto hash = kernel_hash_factory(
            d,
            name + std::to_string(nbits) +
                    (arguments.empty() ? "" : "(" + arguments + ")"));
    return std::unique_ptr<ProjectionHash>(
            &dynamic_cast<ProjectionHash&>(*hash.release()));
}

/// Whose features are known: the vectors themselves, or a map's.
struct Scheme {
    std::string name, arguments;

    std::unique_ptr<ProjectionHash> make(int d, int nbits) const {
        return ::make(d, nbits, name, arguments);
    }

    std::unique_ptr<ProjectionHash> trained(
            int d,
            int nbits,
            const std::vector<float>& x) const {
        auto hash = make(d, nbits);
        hash->train(x.size() / d, x.data());
        return hash;
    }

    bool takes(const std::string& argument) const {
        return arguments.find(argument) != std::string::npos;
    }

    std::vector<float> vectors(size_t n, size_t d, uint64_t seed) const {
        return name == "RHBE" ? normal_vectors(n, d, seed)
                              : uniform_vectors(n, d, seed);
    }
};

void PrintTo(const Scheme& scheme, std::ostream* out) {
    *out << scheme.name << "(" << scheme.arguments << ")";
}

std::vector<float> features(
        const ProjectionHash& hash,
        const std::vector<float>& x) {
    const auto* ahk = dynamic_cast<const AdditiveKernelHash*>(&hash);
    return ahk ? applied(ahk->map, x) : x;
}

std::vector<double> mean_of(const std::vector<float>& x, size_t d) {
    std::vector<double> mean(d);
    for (size_t i = 0; i < x.size(); i++) {
        mean[i % d] += x[i] / double(x.size() / d);
    }
    return mean;
}

double dot(const double* x, const double* y, size_t d) {
    double sum = 0;
    for (size_t k = 0; k < d; k++) {
        sum += x[k] * y[k];
    }
    return sum;
}

/// The threshold of bit j for a mean, and how far rounding may lead away from
/// it: that of the product, and of the components of the mean.
std::pair<double, double> threshold_of(
        const ProjectionHash& hash,
        const std::vector<float>& matrix,
        const std::vector<double>& mean,
        int j) {
    const size_t d = mean.size();
    double sum = 0, absolute = 0;
    for (size_t k = 0; k < d; k++) {
        const double term = matrix[j * d + k] * mean[k];
        sum += term;
        absolute += std::abs(term);
    }
    const double error = product_error(
            *hash.projection, j, absolute, length(mean.data(), d));
    return {sum, error + 2 * float_unit * absolute};
}

std::vector<float> scaled(std::vector<float> x, int power) {
    for (float& v : x) {
        v = std::ldexp(v, power);
    }
    return x;
}

/// Vectors with angles from small to large.
std::vector<float> fan(const Scheme& scheme, size_t d, uint64_t seed) {
    const bool histograms = scheme.name != "RHBE";
    std::vector<float> x = histograms ? clustered_histograms(6, d, 6, 30, seed)
                                      : normal_vectors(6, d, seed);
    for (float share : {0.001f, 0.01f, 0.2f, 0.7f}) {
        for (size_t k = 0; k < d; k++) {
            x.push_back((1 - share) * x[k] + share * x[3 * d + k]);
        }
    }
    for (float noise : {0.0f, 0.05f}) { // opposite, or almost
        for (size_t k = 0; !histograms && k < d; k++) {
            x.push_back(-x[k] + noise * x[2 * d + k]);
        }
    }
    return x;
}

struct ProjectionHashes : testing::TestWithParam<Scheme> {
    const Scheme& scheme = GetParam();
};
struct CenteredHashes : ProjectionHashes {};

const Scheme centered[] = {
        {"RHBE", "center=1,seed=3"},
        {"RHBE", "center=1,proj=dense"},
        {"AHK", "chi2,center=1"},
        {"AHK", "js,order=2,norm=l1,center=1,proj=dense"}};

} // namespace

// From less than a panel of the matrix to several.
TEST_P(ProjectionHashes, MarginsAreThoseOfTheFeatures) {
    for (auto [d, nbits] :
         {std::pair<int, int>{1, 8}, {5, 24}, {33, 1032}, {300, 72}}) {
        std::vector<float> x = scheme.vectors(6, d, d);
        x[d - 1] = 0;
        x[d] = 1e-30f;
        const auto hash = scheme.trained(d, nbits, x);
        const std::vector<float> matrix = hash->projection->matrix();
        const std::vector<float> margins = applied(*hash, x);
        const std::vector<float> phi = features(*hash, x);
        for (size_t i = 0; i < 6; i++) {
            const ExactMargins exact(
                    *hash, matrix, &phi[i * hash->projection->d_in]);
            for (int j = 0; j < nbits; j++) {
                ASSERT_NEAR(
                        margins[i * nbits + j], exact.value[j], exact.bound[j])
                        << "d = " << d;
            }
        }
    }
}

// The first rows of a longer code's matrix are those of a shorter one. (With
// proj=structured as well: rows of a smaller last transform are those of the
// large one.) All bits of the seed count.
TEST_P(ProjectionHashes, RowsDependOnTheSeedAndTheirNumber) {
    const auto small = scheme.make(10, 16), large = scheme.make(10, 64);
    const std::vector<float> matrix = small->projection->matrix();
    EXPECT_EQ(
            rows(large->projection->matrix(), small->projection->d_in, 0, 16),
            matrix);
    if (scheme.takes("seed")) {
        GTEST_SKIP() << "has a seed";
    }
    std::vector<std::vector<float>> drawn = {matrix};
    for (const char* seed :
         {"0",
          "1",
          "4294967296",
          "1311768467463790320",
          "9223372036854775807"}) {
        const Scheme other = {
                scheme.name,
                scheme.arguments + (scheme.arguments.empty() ? "" : ",") +
                        "seed=" + seed};
        drawn.push_back(other.make(10, 16)->projection->matrix());
        EXPECT_EQ(std::count(drawn.begin(), drawn.end(), drawn.back()), 1)
                << seed;
    }
}

TEST_P(ProjectionHashes, RowsOfZeros) {
    const int d = 15;
    const std::vector<float> zeros(2 * d);
    const auto hash = scheme.trained(d, 64, scheme.vectors(50, d, 1));
    const std::vector<uint8_t> codes = codes_of(*hash, zeros);
    for (int j = 0; j < 64; j++) {
        EXPECT_EQ(
                bit(codes, 8, 1, j),
                hash->threshold.empty() || hash->threshold[j] <= 0);
    }
    // the mean of nothing but zeros is 0
    const auto nothing = scheme.trained(d, 64, zeros);
    EXPECT_EQ(codes_of(*nothing, zeros), std::vector<uint8_t>(16, 255));
    if (const auto* c = dynamic_cast<const CenteredHash*>(nothing.get())) {
        EXPECT_EQ(c->mean_value, 0);
    }
}

// Powers of two change no rounding, and products do not overflow.
TEST_P(ProjectionHashes, ScaleDoesNotMatter) {
    if (scheme.takes("norm=l1") ||
        (scheme.name != "AHK" && !scheme.takes("center"))) {
        const std::vector<float> x = scheme.vectors(20, 17, 3);
        const auto hash = scheme.trained(17, 512, x);
        for (int power : {-50, -1, 122}) {
            EXPECT_EQ(codes_of(*hash, scaled(x, power)), codes_of(*hash, x));
        }
    } else {
        GTEST_SKIP() << "turns the map, or has thresholds";
    }
}

// Two vectors differ in a bit with the probability of the angle of their
// features, as seen from the mean with center=1, but for bits that rounding
// decides. Bits are independent with proj=dense.
TEST_P(ProjectionHashes, HammingTellsTheAngle) {
    if (!scheme.takes("proj=dense")) {
        GTEST_SKIP() << "for independent bits";
    }
    const int nbits = 8192;
    for (size_t d : {2, 20}) {
        std::vector<float> train = fan(scheme, d, 9), x = fan(scheme, d, 5);
        const bool is_centered = scheme.takes("center=1");
        if (is_centered && scheme.name == "RHBE") {
            for (float& v : train) {
                v += 2;
            }
            for (float& v : x) {
                v += 2;
            }
        }
        const auto hash = scheme.trained(d, nbits, train);
        const std::vector<float> matrix = hash->projection->matrix();
        const size_t size = hash->projection->d_in, n = x.size() / d;
        std::vector<double> mean(size);
        if (is_centered) {
            mean = mean_of(features(*hash, train), size);
        }
        const std::vector<float> phi = features(*hash, x);
        std::vector<double> seen(phi.begin(), phi.end());
        std::vector<size_t> doubtful;
        for (size_t i = 0; i < n; i++) {
            ExactMargins exact(*hash, matrix, &phi[i * size]);
            for (int j = 0; is_centered && j < nbits; j++) {
                exact.bound[j] += threshold_of(*hash, matrix, mean, j).second;
            }
            doubtful.push_back(exact.doubtful());
            for (size_t k = 0; k < size; k++) {
                seen[i * size + k] -= mean[k];
            }
        }
        const std::vector<uint8_t> codes = codes_of(*hash, x);
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                const double *a = &seen[i * size], *b = &seen[j * size];
                const double p = normalized_angle(
                        dot(a, b, size) /
                        std::sqrt(dot(a, a, size) * dot(b, b, size)));
                const size_t ham = hamming(codes, nbits / 8, i, j);
                EXPECT_TRUE(
                        plausible(ham, nbits, p, p, doubtful[i] + doubtful[j]))
                        << "d = " << d << ": " << ham << " bits, p = " << p;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        Schemes,
        ProjectionHashes,
        testing::ValuesIn(std::vector<Scheme>{
                {"RHBE", ""},
                {"RHBE", "proj=dense"},
                {"RHBE", "center=1,seed=3"},
                {"RHBE", "center=1,proj=dense"},
                {"AHK", "chi2"},
                {"AHK", "hellinger,proj=dense"},
                {"AHK", "intersection,order=3,norm=l1,center=1"},
                {"AHK", "js,order=2,norm=l1,center=1,proj=dense"},
                {"SCR", ""}}));

// The mean is that of the features, of which the library rounds each component
// to float; mean_value is |mu|^2 / mean |phi|^2. 2,500 vectors are several
// blocks.
TEST_P(CenteredHashes, ThresholdsAreThoseOfTheMean) {
    const size_t d = 14, n = 2500;
    const int nbits = 96;
    std::vector<float> x = scheme.vectors(n, d, 3);
    for (float& v : x) {
        v += 0.5f;
    }
    const auto hash = scheme.trained(d, nbits, x);
    const std::vector<float> phi = features(*hash, x);
    const size_t size = hash->projection->d_in;
    const std::vector<double> mean = mean_of(phi, size);
    const std::vector<float> matrix = hash->projection->matrix();
    ASSERT_EQ(hash->threshold.size(), size_t(nbits));
    for (int j = 0; j < nbits; j++) {
        const auto [sum, bound] = threshold_of(*hash, matrix, mean, j);
        EXPECT_NEAR(hash->threshold[j], sum, bound);
    }
    double squares = 0;
    for (float v : phi) {
        squares += double(v) * v / n;
    }
    const double expected = dot(mean.data(), mean.data(), size) / squares;
    EXPECT_NEAR(
            dynamic_cast<CenteredHash&>(*hash).mean_value,
            expected,
            6 * float_unit * expected);
}

// A sample of at most 65,536 vectors: by Hoeffding, who covers draws without
// replacement, the mean of its features is near that of all, component by
// component, each of a range below 2.
TEST_P(CenteredHashes, ManyTrainingVectors) {
    const size_t d = 2, n = 70000;
    const std::vector<float> x = uniform_vectors(n, d, 3);
    const auto hash = scheme.trained(d, 8, x);
    const size_t size = hash->projection->d_in;
    const std::vector<double> mean = mean_of(features(*hash, x), size);
    const std::vector<float> matrix = hash->projection->matrix();
    for (int j = 0; j < 8; j++) {
        const auto [sum, bound] = threshold_of(*hash, matrix, mean, j);
        double moved = 0;
        for (size_t k = 0; k < size; k++) {
            moved += std::abs(matrix[j * size + k]) * hoeffding(65536, 2);
        }
        // the error of the product moves with the mean
        EXPECT_NEAR(hash->threshold[j], sum, bound + 1.0001 * moved);
    }
}

INSTANTIATE_TEST_SUITE_P(Schemes, CenteredHashes, testing::ValuesIn(centered));

// More vectors than a thread multiplies at a time, in codes longer and shorter
// than a panel of the matrix.
TEST(AllHashes, DoNotDependOnThreadsAndBatches) {
    const size_t d = 20, n = 700;
    const std::vector<float> x = uniform_vectors(n, d, 1);
    for (const Scheme& scheme : std::vector<Scheme>{
                 {"RHBE", "center=1"},
                 {"RHBE", "proj=dense"},
                 {"AHK", "chi2,order=2,center=1"},
                 {"SCR", ""},
                 {"SIK", "gaussian"},
                 {"SIK", "gaussian,proj=dense"},
                 {"KLSH", "chi2,p=200,rank=auto,draw=gauss"}}) {
        for (int nbits : {8, 1032}) {
            SCOPED_TRACE(testing::PrintToString(scheme));
            const auto hash = scheme.trained(d, nbits, x);
            std::vector<float> margins;
            for (size_t i = 0; i < n; i++) {
                const auto one = applied(*hash, rows(x, d, i, i + 1));
                margins.insert(margins.end(), one.begin(), one.end());
            }
            const std::vector<uint8_t> codes = codes_of(*hash, x);
            EXPECT_TRUE(same_bits(applied(*hash, x), margins));
            const Threads threads(3);
            const auto other = scheme.trained(d, nbits, x);
            other->check_identical(*hash);
            EXPECT_TRUE(same_bits(applied(*other, x), margins));
            EXPECT_EQ(codes_of(*other, x), codes);
        }
    }
}

// Errors name the function, the component and the value; nothing is written,
// and vectors beyond n are not looked at.
TEST(AllHashes, BadInput) {
    const size_t n = 100, d = 4;
    const std::vector<float> good = uniform_vectors(n, d, 1);
    struct Bad {
        Scheme scheme;
        float value;
        const char* name;
    };
    for (const auto& [scheme, value, name] : std::vector<Bad>{
                 {{"SIK", "gaussian"}, NAN, "nan"},
                 {{"SIK", "gaussian"}, -HUGE_VALF, "-inf"},
                 {{"RHBE", "center=1"}, HUGE_VALF, "inf"},
                 {{"SCR", ""}, -1e-45f, "-1"},
                 {{"AHK", "js"}, -0.5f, "-0.5"},
                 {{"AHK", "js,negative=sign"}, -HUGE_VALF, "-inf"},
                 {{"KLSH", "chi2,p=40"}, -1e-3f, "-0.001"}}) {
        SCOPED_TRACE(testing::PrintToString(scheme));
        const auto hash = scheme.trained(d, 16, good);
        const std::vector<uint8_t> no_codes(2 * n, 42);
        const std::vector<float> no_margins(16 * n, 42);
        std::vector<uint8_t> codes = no_codes;
        std::vector<float> margins = no_margins;
        const auto expect_errors = [&](idx_t count,
                                       const float* x,
                                       const std::string& what) {
            EXPECT_TRUE(
                    throws([&] { hash->encode(count, x, codes.data()); },
                           "encode",
                           what));
            EXPECT_TRUE(throws(
                    [&] { hash->apply_noalloc(count, x, margins.data()); },
                    "apply",
                    what));
            EXPECT_TRUE(throws([&] { hash->train(count, x); }, "train", what));
        };
        std::vector<float> x = good;
        x[4 * d + 2] = value;
        expect_errors(n, x.data(), "component 2 of vector 4");
        expect_errors(n, x.data(), name);
        expect_errors(1, nullptr, "null");
        expect_errors(-3, good.data(), "-3");
        EXPECT_EQ(codes, no_codes);
        EXPECT_EQ(margins, no_margins);
        hash->encode(4, x.data(), codes.data());
    }
}

TEST(AllHashes, Arguments) {
    const HomogeneousKernelMap map(4, Chi2Kernel());
    const GaussianKernel kernel(1);
    for (int nbits : {0, -8, 12}) {
        EXPECT_TRUE(throws([&] { HyperplaneHash(4, nbits); }, "bits"));
        EXPECT_TRUE(throws([&] { AdditiveKernelHash(map, nbits); }, "bits"));
    }
    for (int d : {0, -1}) {
        EXPECT_TRUE(throws([&] { SignCauchyHash(d, 8); }, "dimension"));
        EXPECT_TRUE(
                throws([&] { ShiftInvariantHash(d, 8, kernel); }, "dimension"));
    }
    EXPECT_TRUE(throws([] { AdditiveKernelHash({}, 8); }, "dimension"));
    EXPECT_TRUE(throws([] { SignCauchyHash(10, 16, -1); }, "seed", "-1"));
    EXPECT_TRUE(throws([] {
        HyperplaneHash(4, 16).check_identical(SignCauchyHash(4, 16));
    }));

    const auto same = [](const std::string& text, const KernelHash& hash) {
        SCOPED_TRACE(text);
        kernel_hash_factory(4, text)->check_identical(hash);
    };
    same("RHBE256", HyperplaneHash(4, 256, false, 1234, proj_structured));
    same("RHBE8(center=1,seed=3,proj=dense)",
         HyperplaneHash(4, 8, true, 3, proj_dense));
    same("SCR1024", SignCauchyHash(4, 1024, 1234));
    same("AHK1024(chi2)", AdditiveKernelHash(map, 1024, false, 1234));
    same("AHK8(chi2,center=1,seed=9,proj=dense)",
         AdditiveKernelHash(map, 8, true, 9, proj_dense));

    for (const auto& [text, name] :
         std::vector<std::pair<std::string, std::string>>{
                 {"RHBE", "bits"},
                 {"RHBE(center=1)", "bits"},
                 {"SCR20", "20"},
                 {"AHK64", "intersection"},
                 {"RHBE64(gaussian)", "center="},
                 {"RHBE64(proj=sparse)", "bilinear"},
                 {"SCR64(proj=dense)", "seed="},
                 {"AHK64(gaussian)", "hellinger"},
                 {"AHK64(chi2,js)", "js"},
                 {"AHK64(chi2,proj=bilinear)", "dense"},
                 {"AHK64(chi2,center=1,center=1)", "center"}}) {
        EXPECT_TRUE(throws([&] { kernel_hash_factory(8, text); }, text, name));
    }
}

// Entries are independent with proj=dense: signs of neighbours, and of those
// below one another, agree in half of the disjoint pairs.
TEST(Entries, FollowTheirDistribution) {
    const auto cauchy = [](double x) { return 0.5 + std::atan(x) / pi; };
    const std::vector<std::pair<Scheme, std::function<double(double)>>> cases =
            {{{"RHBE", "proj=dense,seed=5"}, normal_cdf},
             {{"AHK", "chi2,proj=dense,seed=5"}, normal_cdf},
             {{"SCR", "seed=5"}, cauchy}};
    for (const auto& [scheme, cdf] : cases) {
        SCOPED_TRACE(testing::PrintToString(scheme));
        const auto hash = scheme.make(100, 256);
        const std::vector<float> A = hash->projection->matrix();
        for (float v : A) {
            ASSERT_TRUE(std::isfinite(v));
        }
        EXPECT_LT(
                kolmogorov_smirnov({A.begin(), A.end()}, cdf),
                kolmogorov_smirnov_limit(A.size()));
        for (size_t shift : {1, hash->projection->d_in}) {
            size_t agree = 0, total = 0;
            for (size_t i = 0; i + 2 * shift <= A.size(); i += 2 * shift) {
                for (size_t k = i; k < i + shift; k++) {
                    agree += (A[k] > 0) == (A[k + shift] > 0);
                    total++;
                }
            }
            EXPECT_TRUE(plausible(agree, total, 0.5, 0.5)) << shift;
        }
    }
}

TEST(Estimates, InvertExpectedDistances) {
    const HyperplaneHash rhbe(3, 256);
    const SignCauchyHash scr(3, 256);
    for (const KernelHash* hash :
         {static_cast<const KernelHash*>(&rhbe),
          static_cast<const KernelHash*>(&scr)}) {
        const double least = hash == &rhbe ? -1 : 0;
        for (double c = least; c <= 1; c += 1.0 / 32) {
            const double expected = hash->expected_hamming(c);
            EXPECT_NEAR(expected, 256 * normalized_angle(c), 1e-10);
            EXPECT_NEAR(hash->kernel_estimate(expected), c, 1e-12);
        }
        EXPECT_EQ(hash->expected_hamming(1), 0);
        EXPECT_EQ(hash->kernel_estimate(256), least);
        for (double bad : {least - 0.01, 1.01}) {
            EXPECT_TRUE(
                    throws([&] { hash->expected_hamming(bad); },
                           "from " + std::to_string(int(least)) + " to 1"));
        }
    }
    EXPECT_EQ(scr.kernel_estimate(200), 0); // chi2 is not negative
}

// ------------------------------------------------------------------------ SCR

namespace {

/// chi2 of the L1-normalised vectors
double chi2(const float* x, const float* y, size_t d) {
    double sx = 0, sy = 0, sum = 0;
    for (size_t k = 0; k < d; k++) {
        sx += x[k];
        sy += y[k];
    }
    for (size_t k = 0; k < d; k++) {
        const double a = x[k] / sx, b = y[k] / sy;
        sum += a + b > 0 ? 2 * a * b / (a + b) : 0;
    }
    return sum;
}

/// Integral by the double exponential rule, for integrands that are smooth
/// inside and may have logarithms at the ends; pieces of length up to 1.
double integral(
        const std::function<double(double)>& f,
        double begin,
        double end) {
    const double half = (end - begin) / 2, h = 1.0 / 8;
    double sum = 0;
    for (int i = -28; i <= 28; i++) {
        const double t = i * h, s = pi / 2 * std::sinh(t);
        const double weight =
                pi / 2 * std::cosh(t) / (std::cosh(s) * std::cosh(s));
        sum += weight * f(begin + half + half * std::tanh(s));
    }
    return sum * h * half;
}

/** The probability that sum c_i x_i and sum c_i y_i have different signs, c_i
 * independent Cauchy.
 *
 * The two sums have the characteristic function phi(s, t) = exp(-sum |s x_i + t
 * y_i|). With sign(u) = 1 / pi int sin(s u) / s ds, the expected product of the
 * signs is -2 / pi^2 int_0^inf int_0^inf (phi(s, t) - phi(s, -t)) / (s t) ds
 * dt. In polar coordinates the radius integrates to a logarithm (Frullani), and
 * with e^v = t / s
 *
 *     E = 2 / pi^2 int ln(A / B) dv, A = sum x_i + e^v y_i, B = sum |x_i - e^v
 *     y_i|, over all v,
 *
 * and the probability is (1 - E) / 2. ln(A / B) = log1p((A - B) / B) with A - B
 * = 2 sum min(x_i, e^v y_i); it falls as exp(-|v|) for vectors of the same
 * mass. B has kinks where e^v = x_i / y_i.
 */
double cauchy_probability(const float* x, const float* y, size_t d) {
    double sx = 0, sy = 0;
    for (size_t k = 0; k < d; k++) {
        sx += x[k];
        sy += y[k];
    }
    std::vector<double> cuts;
    for (int v = -40; v <= 40; v++) {
        cuts.push_back(v);
    }
    for (size_t k = 0; k < d; k++) {
        if (x[k] > 0 && y[k] > 0) {
            const double v = std::log(x[k] / sx * sy / y[k]);
            if (std::abs(v) < 40) {
                cuts.push_back(v);
            }
        }
    }
    std::sort(cuts.begin(), cuts.end());
    const auto f = [&](double v) {
        const double e = std::exp(v);
        double apart = 0, common = 0;
        for (size_t k = 0; k < d; k++) {
            const double a = x[k] / sx, b = e * y[k] / sy;
            apart += std::abs(a - b);
            common += std::min(a, b);
        }
        return std::log1p(2 * common / std::max(apart, 1e-300));
    };
    double sum = 0;
    for (size_t i = 0; i + 1 < cuts.size(); i++) {
        if (cuts[i + 1] - cuts[i] > 1e-12) {
            sum += integral(f, cuts[i], cuts[i + 1]);
        }
    }
    return (1 - 2 / (pi * pi) * sum) / 2;
}

/// How far acos(chi2) / pi is from the probability, at most: see
/// LargestErrorOfTheApproximation.
constexpr double scr_error = 0.035;

} // namespace

// All pairs of a grid of vectors of two components, and those of three with one
// in common, x = (c, 1 - c, 0) and y = (c, 0, 1 - c). It is near vectors, of a
// kernel value of 0.95, for which acos(chi2) / pi is too large by most.
TEST(SignCauchyHash, LargestErrorOfTheApproximation) {
    double low = 0, high = 0;
    const auto see = [&](const float* x, const float* y, size_t d) {
        const double error =
                cauchy_probability(x, y, d) - normalized_angle(chi2(x, y, d));
        low = std::min(low, error);
        high = std::max(high, error);
    };
    for (float s = -9; s <= 9; s += 0.75f) {
        for (float t = -9; t < s; t += 0.75f) {
            const float a = 1 / (1 + std::exp(-s)), b = 1 / (1 + std::exp(-t));
            const float x[] = {a, 1 - a}, y[] = {b, 1 - b};
            see(x, y, 2);
        }
    }
    for (float c = 0.04f; c < 1; c += 0.04f) {
        const float x[] = {c, 1 - c, 0}, y[] = {c, 0, 1 - c};
        see(x, y, 3);
    }
    EXPECT_GT(low, -scr_error);
    EXPECT_LT(high, scr_error);
    EXPECT_LT(low, -0.03); // no identity
}

// Hamming distances against the exact probability, and that against acos(chi2)
// / pi.
TEST(SignCauchyHash, HammingTellsChi2) {
    const int nbits = 8192;
    for (size_t d : {1, 2, 20}) {
        const SignCauchyHash hash(int(d), nbits, 100 + d);
        const std::vector<float> matrix = hash.projection->matrix();
        std::vector<float> x = fan({"SCR", ""}, d, d);
        for (size_t k = 0; k < d; k++) { // another mass
            x[d + k] *= 5;
        }
        const size_t n = x.size() / d;
        const std::vector<uint8_t> codes = codes_of(hash, x);
        std::vector<size_t> doubtful;
        for (size_t i = 0; i < n; i++) {
            doubtful.push_back(
                    ExactMargins(hash, matrix, &x[i * d]).doubtful());
            for (size_t j = 0; j < i; j++) {
                const float *a = &x[i * d], *b = &x[j * d];
                const double p = cauchy_probability(a, b, d);
                const double by_chi2 = normalized_angle(chi2(a, b, d));
                const size_t ham = hamming(codes, nbits / 8, i, j);
                EXPECT_TRUE(plausible(
                        ham,
                        nbits,
                        p - 1e-9,
                        p + 1e-9,
                        doubtful[i] + doubtful[j]))
                        << "d = " << d << ": " << ham << " bits, p = " << p;
                EXPECT_LT(std::abs(p - by_chi2), scr_error);
                EXPECT_TRUE(d > 1 || ham == 0) << ham;
            }
        }
    }
}
