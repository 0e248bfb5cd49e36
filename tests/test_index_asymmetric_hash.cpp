// SPDX-License-Identifier: MIT
// IndexAsymmetricHash and the weights of queries.

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <faiss/impl/IDSelector.h>
#include <gtest/gtest.h>

#include <faiss_ext/hashes/AdditiveKernelHash.h>
#include <faiss_ext/hashes/HyperplaneHash.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/indexes/IndexAsymmetricHash.h>
#include <faiss_ext/io/index_factory.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr size_t d = 20;

/// Returns the weights of a query, rounded as the header states.
std::vector<double> rounded_weights(const KernelHash& hash, const Floats& q) {
    Floats w = applied(hash, q);
    hash.query_weights(1, w.data());
    // bits of bytes r and r + 2 of a code are added up together
    const auto with = [&](int j) {
        const int r = j / 8;
        return r % 4 < 2 ? r : r - 2;
    };
    const auto sums = [&](const auto& weights) {
        std::vector<float> of(hash.nbits / 8);
        for (int j = 0; j < hash.nbits; j++) {
            of[with(j)] += std::abs(float(weights[j]));
        }
        return *std::max_element(of.begin(), of.end());
    };
    const int most = std::min(255, 4 * 65535 / (hash.nbits / 4));
    const double factor = (most - 8) / sums(w);
    std::vector<double> rounded;
    for (float v : w) {
        rounded.push_back(std::copysign(std::round(v * factor), v));
    }
    EXPECT_LE(sums(rounded), most);
    return rounded;
}

/// Computes the distances of all codes bit by bit.
std::vector<std::pair<float, idx_t>> sorted_distances(
        const KernelHash& hash,
        const Floats& q,
        const Bytes& codes) {
    const std::vector<double> w = rounded_weights(hash, q);
    double total = 0;
    for (double v : w) {
        total += std::abs(v);
    }
    std::vector<std::pair<float, idx_t>> found;
    for (size_t i = 0; i < codes.size() / hash.code_size(); i++) {
        double sum = 0;
        for (int j = 0; j < hash.nbits; j++) {
            const bool is_set = bit(codes, hash.code_size(), i, j);
            sum += is_set == !std::signbit(w[j]) ? 0 : std::abs(w[j]);
        }
        const float scale = float(hash.nbits) / float(total);
        found.emplace_back(float(sum) * scale, i);
    }
    std::sort(found.begin(), found.end());
    return found;
}

struct Case {
    std::string hash;
    size_t n;
};

void PrintTo(const Case& c, std::ostream* out) {
    *out << c.hash;
}

struct AsymmetricScans : testing::TestWithParam<Case> {};

} // namespace

// Lists of all lengths up to several slices, more results than codes, both
// metrics, ranges and selectors.
TEST_P(AsymmetricScans, EqualTheDefinition) {
    const auto& [text, n] = GetParam();
    const Floats x = clustered_histograms(n, d, 7, 30, 5);
    const Floats q = clustered_histograms(9, d, 7, 30, 6);
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const bool is_l2 = metric == faiss::METRIC_L2;
        const auto made = index_factory(d, text + ",AFlat", metric);
        auto& index = dynamic_cast<IndexAsymmetricHash&>(*made);
        index.train(n, x.data());
        index.add(n / 3, x.data());
        index.add(n - n / 3, &x[n / 3 * d]);
        const Bytes codes = codes_of(*index.hash, x);
        const auto value = [&](float distance) {
            return is_l2 ? distance : float(index.hash->nbits) - 2 * distance;
        };
        const idx_t k = n < 1000 ? n + 2 : 10;
        for (int threads : {1, 3}) {
            const Threads set(threads);
            const auto found = search(index, q, k);
            const faiss::IDSelectorRange some(n / 4, n / 2);
            faiss::SearchParameters params;
            params.sel = const_cast<faiss::IDSelectorRange*>(&some);
            for (size_t i = 0; i < 9; i++) {
                const Floats qi = rows(q, d, i, i + 1);
                const auto expected = sorted_distances(*index.hash, qi, codes);
                for (idx_t j = 0; j < k; j++) {
                    const bool is_there = size_t(j) < n;
                    ASSERT_EQ(
                            found.labels[i * k + j],
                            is_there ? expected[j].second : -1);
                    if (is_there) {
                        ASSERT_EQ(
                                found.distances[i * k + j],
                                value(expected[j].first));
                    }
                }
                // start in the middle of equal distances
                const float radius = value(expected[n / 5].first);
                Ranges within(1), chosen(1);
                Floats best(1);
                std::vector<idx_t> label(1, -1);
                for (const auto& [distance, id] : expected) {
                    const float v = value(distance);
                    if (is_l2 ? v < radius : v > radius) {
                        within[0].emplace_back(id, v);
                    }
                    if (some.is_member(id) && label[0] < 0) {
                        label[0] = id;
                    }
                }
                EXPECT_EQ(
                        sorted(range_search(index, qi, radius)),
                        sorted(within));
                idx_t got = -1;
                float distance = 0;
                index.search(1, qi.data(), 1, &distance, &got, &params);
                EXPECT_EQ(got, label[0]);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        Hashes,
        AsymmetricScans,
        testing::ValuesIn(std::vector<Case>{
                {"RHBE64(center=1)", 1},
                {"RHBE8", 33},
                {"RHBE24(rot=itq)", 320},
                {"AHK256(chi2,center=1)", 20000},
                {"AHK4096(js)", 100},
                {"SIK104(gaussian)", 500},
                {"BSIK64(4x5)", 100},
                {"SCR64", 500},
                {"KLSH64(chi2,p=40)", 500}}));

// The mean of nbits independent w . q sign(w . x) is sqrt(2 / pi) |q| cos, with
// a deviation of at most |q| / sqrt(nbits). The mean of |w . q| is sqrt(2 / pi)
// |q|, with a smaller deviation. Weights are rounded to 1/12 of their mean
// here, without bias except at the edges.
TEST(AsymmetricDistances, TellTheCosine) {
    constexpr int nbits = 8192;
    const HyperplaneHash hash(int(d), nbits, false, 7, proj_dense);
    IndexAsymmetricHash index(hash);
    const Floats x = normal_vectors(1, d, 1);
    Floats others;
    for (float share : {0.0f, 0.1f, 0.3f, 0.5f, 0.8f, 1.0f, 2.0f}) {
        const Floats away = normal_vectors(1, d, 2);
        for (size_t k = 0; k < d; k++) {
            others.push_back((1 - share) * x[k] + share * away[k]);
        }
    }
    index.add(others.size() / d, others.data());
    const auto found = search(index, x, others.size() / d);
    for (size_t i = 0; i < found.labels.size(); i++) {
        const double got = hash.asymmetric_kernel_estimate(found.distances[i]);
        EXPECT_NEAR(got, 1 - 2 * found.distances[i] / nbits, 1e-6);
        const double expected =
                cosine(x.data(), &others[found.labels[i] * d], d);
        const double deviation = std::sqrt(pi / 2) / std::sqrt(nbits);
        EXPECT_NEAR(
                got,
                expected,
                Moments::beyond * deviation * (1 + std::abs(expected)) + 0.02);
    }
    EXPECT_EQ(found.distances[0], 0);
}

// Like estimates from Hamming distances, the estimate refers to the cosine from
// the mean.
TEST(AsymmetricDistances, EstimatesOfCentredHashes) {
    const Floats x = clustered_histograms(300, d, 3, 30, 1);
    const auto hash = hash_as<AdditiveKernelHash>(d, "AHK64(chi2,center=1)");
    hash->train(300, x.data());
    const double m = hash->mean_value;
    for (double distance : {0.0, 5.0, 20.0}) {
        const double cosine = 1 - distance / 32;
        EXPECT_NEAR(
                hash->asymmetric_kernel_estimate(distance),
                std::max(0.0, m + cosine * (1 - m)),
                1e-12);
    }
    EXPECT_TRUE(throws([&] { hash->asymmetric_kernel_estimate(65); }, "65"));
    for (const char* text : {"SIK64(gaussian,gamma=1)", "SCR64"}) {
        EXPECT_TRUE(throws(
                [&] {
                    kernel_hash_factory(d, text)->asymmetric_kernel_estimate(3);
                },
                "use kernel_estimate with Hamming"));
    }
}

// For the Gaussian kernel omega . (q - x) is N(0, s^2) with K = exp(-s^2 / 2).
// Hence normal distribution functions give the probability of a 1 at phase a.
TEST(QueryWeights, OfSikAreThoseOfItsLikelihood) {
    const int nbits = 2048;
    const auto hash = hash_as<ShiftInvariantHash>(
            d, "SIK2048(gaussian,gamma=0.3,seed=5)");
    const Floats q = uniform_vectors(1, d, 3);
    Floats weights = applied(*hash, q);
    const Floats margins = weights;
    hash->query_weights(1, weights.data());
    const auto expected_sign = [](double a, double alpha, double K) {
        const double s = std::sqrt(-2 * std::log(K));
        double p = 0;
        for (int turn = -3; turn <= 3; turn++) {
            const double at = 2 * pi * turn - a;
            p += normal_cdf((at + alpha) / s) - normal_cdf((at - alpha) / s);
        }
        return 2 * p - 1;
    };
    for (int j = 0; j < nbits; j++) {
        const double alpha = 2 * pi * hash->threshold[j];
        const double a = alpha - 2 * pi * margins[j];
        const double e = expected_sign(a, alpha, 0.5), h = 1e-4;
        const double slope = (expected_sign(a, alpha, 0.5 + h) -
                              expected_sign(a, alpha, 0.5 - h)) /
                (2 * h);
        const double weight = slope / std::max(1 - e * e, 1e-4);
        // terms below 1e-4 are omitted
        EXPECT_NEAR(weights[j], weight, 0.01 + 0.01 * std::abs(weight));
    }
}

TEST(IndexAsymmetricHash, RefusesWhatDoesNotFit) {
    EXPECT_TRUE(
            throws([] { index_factory(d, "RHBE8200,AFlat"); }, "8200", "8192"));
    const Floats x = uniform_vectors(10, d, 1);
    const auto a = index_factory(d, "RHBE64,AFlat");
    const auto b = index_factory(d, "RHBE64(seed=2),AFlat");
    const auto c =
            index_factory(d, "RHBE64,AFlat", faiss::METRIC_INNER_PRODUCT);
    a->add(10, x.data());
    for (auto* other : {b.get(), c.get(), a.get()}) {
        EXPECT_TRUE(throws([&] { a->merge_from(*other, 0); }));
    }
    const auto same = index_factory(d, "RHBE64,AFlat");
    const IndexAsymmetricHash plain(
            dynamic_cast<IndexAsymmetricHash&>(*a)); // without ids of its own
    EXPECT_TRUE(
            throws([&] { IndexAsymmetricHash(plain).merge_from(*same, 3); },
                   "add_id must be 0"));
    a->ntotal = 40;
    EXPECT_TRUE(throws([&] { search(*a, x, 1); }, "ntotal"));
}
