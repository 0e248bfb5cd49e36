// SPDX-License-Identifier: MIT
// Common tests of the schemes with projections and thresholds, and the theory
// of HyperplaneHash (RHBE) and SignCauchyHash (SCR).

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
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

/// A scheme with known features: the vectors themselves, or a map's output.
struct Scheme {
    std::string name, arguments;

    std::unique_ptr<ProjectionHash> make(int d, int nbits) const {
        const std::string text = name + std::to_string(nbits);
        return hash_as<ProjectionHash>(
                d, arguments.empty() ? text : text + "(" + arguments + ")");
    }

    auto trained(int d, int nbits, const std::vector<float>& x) const {
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

/// Returns the threshold of bit j for a mean, and a bound on its rounding
/// error: from the product, and from the components of the mean.
std::pair<double, double> threshold_of(
        const ProjectionHash& hash,
        const std::vector<float>& matrix,
        const std::vector<double>& mean,
        int j) {
    const size_t d = mean.size();
    double sum = 0, size = 0;
    for (size_t k = 0; k < d; k++) {
        sum += matrix[j * d + k] * mean[k];
        size += std::abs(matrix[j * d + k] * mean[k]);
    }
    const double error =
            product_error(*hash.projection, j, size, length(mean.data(), d));
    return {sum, error + 2 * float_unit * size};
}

/// Returns vectors with angles from small to large.
std::vector<float> fan(const Scheme& scheme, size_t d, uint64_t seed) {
    const bool histograms = scheme.name != "RHBE";
    std::vector<float> x = histograms ? clustered_histograms(6, d, 6, 30, seed)
                                      : normal_vectors(6, d, seed);
    for (float share : {0.001f, 0.01f, 0.2f, 0.7f}) {
        for (size_t k = 0; k < d; k++) {
            x.push_back((1 - share) * x[k] + share * x[3 * d + k]);
        }
    }
    for (float noise : {0.0f, 0.05f}) { // opposite, or nearly so
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

// Margins for matrices of less than a panel, and of several.
TEST_P(ProjectionHashes, MarginsAreThoseOfTheFeatures) {
    for (auto [d, nbits] :
         {std::pair<int, int>{1, 8}, {5, 24}, {33, 1032}, {300, 72}}) {
        std::vector<float> x = scheme.vectors(6, d, d);
        x[d - 1] = 0;
        x[d] = 1e-30f;
        const auto hash = scheme.trained(d, nbits, x);
        const std::vector<float> A = hash->projection->matrix();
        const std::vector<float> y = applied(*hash, x);
        const std::vector<float> phi = features(*hash, x);
        for (size_t i = 0; i < 6; i++) {
            const ExactMargins exact(
                    *hash, A, &phi[i * hash->projection->d_in]);
            for (int j = 0; j < nbits; j++) {
                ASSERT_NEAR(y[i * nbits + j], exact.value[j], exact.bound[j])
                        << "d = " << d;
            }
        }
    }
}

// The matrix of a shorter code is the beginning of a longer code's matrix. With
// proj=structured, too: a smaller last transform gives the rows of the large
// one. All bits of the seed matter.
TEST_P(ProjectionHashes, RowsDependOnTheSeedAndTheirNumber) {
    const auto small = scheme.make(10, 16), large = scheme.make(10, 64);
    const std::vector<float> matrix = small->projection->matrix();
    EXPECT_EQ(
            rows(large->projection->matrix(), small->projection->d_in, 0, 16),
            matrix);
    if (scheme.takes("seed")) {
        GTEST_SKIP() << "has a seed";
    }
    std::set<std::vector<float>> drawn = {matrix};
    const std::string before = scheme.arguments.empty() ? "" : ",";
    for (int64_t seed : {int64_t(0), int64_t(1), int64_t(1) << 32, INT64_MAX}) {
        Scheme other = scheme;
        other.arguments += before + "seed=" + std::to_string(seed);
        drawn.insert(other.make(10, 16)->projection->matrix());
    }
    EXPECT_EQ(drawn.size(), 5);
}

TEST_P(ProjectionHashes, RowsOfZeros) {
    const int d = 15;
    const std::vector<float> zeros(2 * d);
    const auto hash = scheme.trained(d, 64, scheme.vectors(50, d, 1));
    const std::vector<uint8_t> codes = codes_of(*hash, zeros);
    for (int j = 0; j < 64; j++) {
        const bool is_set = hash->threshold.empty() || hash->threshold[j] <= 0;
        EXPECT_EQ(bit(codes, 8, 1, j), is_set);
    }
    // the mean of zeros is 0
    const auto nothing = scheme.trained(d, 64, zeros);
    EXPECT_EQ(codes_of(*nothing, zeros), std::vector<uint8_t>(16, 255));
    if (const auto* c = dynamic_cast<const CenteredHash*>(nothing.get())) {
        EXPECT_EQ(c->mean_value, 0);
    }
}

// Powers of two do not change rounding, and products do not overflow.
TEST_P(ProjectionHashes, ScaleDoesNotMatter) {
    if (!scheme.takes("norm=l1") &&
        (scheme.name == "AHK" || scheme.takes("center"))) {
        GTEST_SKIP() << "turns the map, or has thresholds";
    }
    const std::vector<float> x = scheme.vectors(20, 17, 3);
    const auto hash = scheme.trained(17, 512, x);
    for (float factor : {0x1p-50f, 0.5f, 0x1p122f}) {
        EXPECT_EQ(codes_of(*hash, scaled(x, factor)), codes_of(*hash, x));
    }
}

// Two vectors differ in a bit with the probability of the angle of their
// features, seen from the mean with center=1, except for bits that rounding
// decides. Bits are independent with proj=dense and proj=generated, whose
// probabilities are within 2e-4 of those.
TEST_P(ProjectionHashes, HammingTellsTheAngle) {
    const bool is_generated = scheme.takes("proj=generated");
    if (!scheme.takes("proj=dense") && !is_generated) {
        GTEST_SKIP() << "for independent bits";
    }
    const int nbits = 8192;
    for (size_t d : {2, 20}) {
        std::vector<float> train = fan(scheme, d, 9), x = fan(scheme, d, 5);
        const bool is_centered = scheme.takes("center=1");
        const float away = is_centered && scheme.name == "RHBE" ? 2 : 0;
        for (std::vector<float>* vectors : {&train, &x}) {
            for (float& v : *vectors) {
                v += away;
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
                const double p = normalized_angle(
                        cosine(&seen[i * size], &seen[j * size], size));
                const size_t ham = hamming(codes, nbits / 8, i, j);
                const size_t unsure = doubtful[i] + doubtful[j];
                const double e = is_generated ? 2e-4 : 0;
                EXPECT_TRUE(plausible(ham, nbits, p - e, p + e, unsure))
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
                {"RHBE", "proj=generated"},
                {"RHBE", "center=1,seed=3"},
                {"RHBE", "center=1,proj=dense"},
                {"AHK", "chi2"},
                {"AHK", "hellinger,proj=dense"},
                {"AHK", "chi2,center=1,proj=generated"},
                {"AHK", "intersection,order=3,norm=l1,center=1"},
                {"AHK", "js,order=2,norm=l1,center=1,proj=dense"},
                {"SCR", ""}}));

// The mean is over the features; the library rounds each component to float.
// mean_value is |mu|^2 / mean |phi|^2. 2,500 vectors are several blocks. From
// more than 65,536 a sample is taken. By Hoeffding's bound, which covers draws
// without replacement, its mean is near the mean of all, for each component;
// the range of a component is below 2.
TEST_P(CenteredHashes, ThresholdsAreThoseOfTheMean) {
    for (auto [d, n] : {std::pair<size_t, size_t>{14, 2500}, {2, 70000}}) {
        const int nbits = 48;
        const bool is_sample = n > 65536;
        const std::vector<float> x = uniform_vectors(n, d, 3, 0.1, 1);
        const auto hash = scheme.trained(d, nbits, x);
        const std::vector<float> phi = features(*hash, x);
        const size_t size = hash->projection->d_in;
        const std::vector<double> mean = mean_of(phi, size);
        const std::vector<float> matrix = hash->projection->matrix();
        ASSERT_EQ(hash->threshold.size(), size_t(nbits));
        for (int j = 0; j < nbits; j++) {
            const auto [sum, bound] = threshold_of(*hash, matrix, mean, j);
            double moved = 0;
            for (size_t k = 0; is_sample && k < size; k++) {
                moved += std::abs(matrix[j * size + k]) * hoeffding(65536, 2);
            }
            // the error of the product changes with the mean
            EXPECT_NEAR(hash->threshold[j], sum, bound + 1.0001 * moved);
        }
        const double squares = dot_product(phi.data(), phi.data(), phi.size());
        const double value =
                dot_product(mean.data(), mean.data(), size) / (squares / n);
        const double got = dynamic_cast<CenteredHash&>(*hash).mean_value;
        EXPECT_NEAR(got, value, is_sample ? 0.1 : 6 * float_unit * value);
    }
}

INSTANTIATE_TEST_SUITE_P(Schemes, CenteredHashes, testing::ValuesIn(centered));

// More vectors than a thread multiplies at a time, with codes longer and
// shorter than a panel of the matrix.
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
            const std::vector<float> y = applied(*hash, x);
            for (size_t i = 0; i < n; i += 17) {
                SCOPED_TRACE(i);
                const auto one = applied(*hash, rows(x, d, i, i + 1));
                EXPECT_TRUE(same_bits(rows(y, nbits, i, i + 1), one));
            }
            const std::vector<uint8_t> codes = codes_of(*hash, x);
            const Threads threads(3);
            const auto other = scheme.trained(d, nbits, x);
            other->check_identical(*hash);
            EXPECT_TRUE(same_bits(applied(*other, x), y));
            EXPECT_EQ(codes_of(*other, x), codes);
        }
    }
}

// Errors name the function, the component and the value. Nothing is written,
// and vectors beyond n are not read.
TEST(AllHashes, BadInput) {
    const size_t n = 100, d = 4;
    const std::vector<float> good = uniform_vectors(n, d, 1);
    for (const auto& [scheme, value, name] :
         {std::tuple(Scheme{"SIK", "gaussian"}, NAN, "nan"),
          {Scheme{"RHBE", "center=1"}, HUGE_VALF, "inf"},
          {Scheme{"SCR", ""}, -1e-45f, "-1"},
          {Scheme{"AHK", "js"}, -0.5f, "-0.5"},
          {Scheme{"AHK", "js,negative=sign"}, -HUGE_VALF, "-inf"},
          {Scheme{"KLSH", "chi2,p=40"}, -1e-3f, "-0.001"}}) {
        SCOPED_TRACE(testing::PrintToString(scheme));
        const auto hash = scheme.trained(d, 16, good);
        std::vector<uint8_t> codes(2 * n, 42);
        std::vector<float> y(16 * n, 42), x = good;
        x[4 * d + 2] = value;
        const std::string place = "component 2 of vector 4", what = name;
        const auto encode = [&] { hash->encode(n, x.data(), codes.data()); };
        const auto apply = [&] { hash->apply_noalloc(n, x.data(), y.data()); };
        const auto train = [&] { hash->train(n, x.data()); };
        EXPECT_TRUE(throws(encode, "encode", place, what));
        EXPECT_TRUE(throws(apply, "apply", place, what));
        EXPECT_TRUE(throws(train, "train", place, what));
        EXPECT_EQ(codes, std::vector<uint8_t>(2 * n, 42));
        EXPECT_EQ(y, std::vector<float>(16 * n, 42));
        EXPECT_TRUE(throws(
                [&] { hash->encode(1, nullptr, codes.data()); }, "null"));
        EXPECT_TRUE(throws([&] { hash->train(-3, x.data()); }, "-3"));
        hash->encode(4, x.data(), codes.data());
    }
}

TEST(AllHashes, Arguments) {
    const HomogeneousKernelMap map(4, Chi2Kernel());
    for (int nbits : {0, -8}) {
        EXPECT_TRUE(throws([&] { HyperplaneHash(4, nbits); }, "bits"));
        EXPECT_TRUE(throws([&] { AdditiveKernelHash(map, nbits); }, "bits"));
    }
    for (int d : {0, -1}) {
        const GaussianKernel kernel(1);
        EXPECT_TRUE(throws([&] { SignCauchyHash(d, 8); }, "dimension"));
        EXPECT_TRUE(
                throws([&] { ShiftInvariantHash(d, 8, kernel); }, "dimension"));
    }
    EXPECT_TRUE(throws([] { AdditiveKernelHash({}, 8); }, "dimension"));
    EXPECT_TRUE(throws([] { SignCauchyHash(10, 16, -1); }, "seed", "-1"));
    const HyperplaneHash rhbe(4, 256, false, 1234, proj_structured);
    const SignCauchyHash scr(4, 1024, 1234);
    EXPECT_TRUE(throws([&] { rhbe.check_identical(scr); }));

    const auto same = [](const std::string& text, const KernelHash& hash) {
        SCOPED_TRACE(text);
        kernel_hash_factory(4, text)->check_identical(hash);
    };
    same("RHBE256", rhbe);
    same("RHBE8(center=1,seed=3,proj=dense)",
         HyperplaneHash(4, 8, true, 3, proj_dense));
    same("SCR1024", scr);
    same("AHK1024(chi2)", AdditiveKernelHash(map, 1024, false, 1234));
    same("AHK8(chi2,center=1,seed=9,proj=dense)",
         AdditiveKernelHash(map, 8, true, 9, proj_dense));

    for (const auto& [text, name] :
         {std::pair<std::string, std::string>("RHBE", "bits"),
          {"SCR0", "0"},
          {"AHK64", "intersection"},
          {"RHBE64(gaussian)", "center="},
          {"RHBE64(proj=sparse)", "bilinear"},
          {"SCR64(proj=dense)", "seed="},
          {"AHK64(gaussian)", "hellinger"},
          {"AHK64(chi2,proj=bilinear)", "dense"},
          {"AHK64(chi2,center=1,center=1)", "center"}}) {
        EXPECT_TRUE(throws(
                [&text = text] { kernel_hash_factory(8, text); }, text, name));
    }
}

// Entries are independent with proj=dense: the signs of horizontal and of
// vertical neighbours agree in half of the disjoint pairs.
TEST(Entries, FollowTheirDistribution) {
    const auto cauchy = [](double x) { return 0.5 + std::atan(x) / pi; };
    for (const std::string text :
         {"RHBE256(proj=dense,seed=5)",
          "AHK256(chi2,proj=dense,seed=5)",
          "SCR256(seed=5)"}) {
        SCOPED_TRACE(text);
        const auto hash = hash_as<ProjectionHash>(100, text);
        const std::vector<float> A = hash->projection->matrix();
        for (float v : A) {
            ASSERT_TRUE(std::isfinite(v));
        }
        const std::vector<double> sample(A.begin(), A.end());
        EXPECT_TRUE(
                text[0] == 'S' ? follows(sample, cauchy)
                               : follows(sample, normal_cdf));
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
    for (const std::string text : {"RHBE256", "SCR256"}) {
        const auto hash = kernel_hash_factory(3, text);
        const double least = text[0] == 'R' ? -1 : 0; // chi2 is never negative
        for (double c = least; c <= 1; c += 1.0 / 32) {
            const double expected = hash->expected_hamming(c);
            EXPECT_NEAR(expected, 256 * normalized_angle(c), 1e-10);
            EXPECT_NEAR(hash->kernel_estimate(expected), c, 1e-12);
        }
        EXPECT_EQ(hash->expected_hamming(1), 0);
        EXPECT_EQ(hash->kernel_estimate(256), least);
        EXPECT_TRUE(least < 0 || hash->kernel_estimate(200) == 0);
        const std::string range = "from " + std::to_string(int(least));
        for (double bad : {least - 0.01, 1.01}) {
            EXPECT_TRUE(throws([&] { hash->expected_hamming(bad); }, range));
        }
    }
}

// ------------------------------------------------------------------------ SCR

namespace {

using Shares = std::vector<double>; // the sum is 1

Shares shares_of(const float* x, size_t d) {
    Shares shares(x, x + d);
    const double sum = std::accumulate(x, x + d, 0.0);
    for (double& v : shares) {
        v /= sum;
    }
    return shares;
}

double chi2(const Shares& x, const Shares& y) {
    double sum = 0;
    for (size_t k = 0; k < x.size(); k++) {
        sum += x[k] + y[k] > 0 ? 2 * x[k] * y[k] / (x[k] + y[k]) : 0;
    }
    return sum;
}

/// Integrates by the double exponential rule, for integrands that are smooth
/// inside and may have logarithms at the ends. Pieces have a length up to 1.
template <class F>
double integral(F&& f, double begin, double end) {
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

/** Computes the probability that sum c_i x_i and sum c_i y_i have different
 * signs, for independent Cauchy numbers c_i.
 *
 * The two sums have the characteristic function phi(s, t) = exp(-sum |s x_i + t
 * y_i|). With sign(u) = 1 / pi int sin(s u) / s ds, the expected product of the
 * signs is -2 / pi^2 int_0^inf int_0^inf (phi(s, t) - phi(s, -t)) / (s t) ds
 * dt. In polar coordinates the radius integrates to a logarithm (Frullani).
 * With e^v = t / s,
 *
 *     E = 2 / pi^2 int ln(A / B) dv,
 *
 * where A = sum x_i + e^v y_i, B = sum |x_i - e^v y_i|, and v takes all values.
 * The probability is (1 - E) / 2.
 *
 * ln(A / B) = log1p((A - B) / B) with A - B = 2 sum min(x_i, e^v y_i). It
 * decreases as exp(-|v|) for vectors of the same mass. B has kinks at e^v = x_i
 * / y_i.
 */
double cauchy_probability(const Shares& x, const Shares& y) {
    std::set<double> cuts;
    for (int v = -40; v <= 40; v++) {
        cuts.insert(v);
    }
    for (size_t k = 0; k < x.size(); k++) {
        const double v = std::log(x[k] / y[k]);
        if (std::abs(v) < 40) {
            cuts.insert(v);
        }
    }
    const auto f = [&](double v) {
        const double e = std::exp(v);
        double apart = 0, common = 0;
        for (size_t k = 0; k < x.size(); k++) {
            apart += std::abs(x[k] - e * y[k]);
            common += std::min(x[k], e * y[k]);
        }
        return std::log1p(2 * common / std::max(apart, 1e-300));
    };
    double sum = 0;
    for (auto end = std::next(cuts.begin()); end != cuts.end(); end++) {
        sum += integral(f, *std::prev(end), *end);
    }
    return (1 - 2 / (pi * pi) * sum) / 2;
}

/// Largest difference between acos(chi2) / pi and the probability: 0.0345, for
/// near vectors with a kernel value of 0.95.
constexpr double scr_error = 0.035;

} // namespace

// Hamming distances agree with the exact probability, which agrees with
// acos(chi2) / pi.
TEST(SignCauchyHash, HammingTellsChi2) {
    const int nbits = 8192;
    for (size_t d : {1, 2, 20}) {
        const SignCauchyHash hash(int(d), nbits, 100 + d);
        const std::vector<float> matrix = hash.projection->matrix();
        std::vector<float> x = fan({"SCR", ""}, d, d);
        for (size_t k = 0; k < d; k++) { // a different mass
            x[d + k] *= 5;
        }
        const std::vector<uint8_t> codes = codes_of(hash, x);
        std::vector<Shares> shares;
        std::vector<size_t> doubtful;
        for (size_t i = 0; i < x.size() / d; i++) {
            shares.push_back(shares_of(&x[i * d], d));
            doubtful.push_back(
                    ExactMargins(hash, matrix, &x[i * d]).doubtful());
            for (size_t j = 0; j < i; j++) {
                const double p = cauchy_probability(shares[i], shares[j]);
                const size_t ham = hamming(codes, nbits / 8, i, j);
                const size_t unsure = doubtful[i] + doubtful[j];
                EXPECT_TRUE(plausible(ham, nbits, p - 1e-9, p + 1e-9, unsure))
                        << "d = " << d << ": " << ham << " bits, p = " << p;
                const double by_chi2 =
                        normalized_angle(chi2(shares[i], shares[j]));
                EXPECT_NEAR(p, by_chi2, scr_error);
                EXPECT_TRUE(d > 1 || ham == 0) << ham;
            }
        }
    }
}
