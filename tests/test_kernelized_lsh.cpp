// SPDX-License-Identifier: MIT
// KernelizedLSH (KLSH) against the formulas of Kulis and Grauman 2012 and of
// Jiang, Que and Kulis 2015, computed with Eigen.

#include <faiss_ext/hashes/KernelizedLSH.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <faiss/IndexBinaryFlat.h>

#include <faiss_ext/kernels/LinearKernel.h>

#include "testing.h"
#include "testing_kernels.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using FloatRows =
        Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int dim = 24;

/// Returns histograms with well-conditioned kernel matrices. Otherwise the
/// projections onto kept eigenvectors would not be unique.
std::vector<float> histograms(size_t n, uint64_t seed = 1) {
    return clustered_histograms(n, dim, 8, 40, seed);
}

std::unique_ptr<KernelizedLSH> make(int d, const std::string& text) {
    return hash_as<KernelizedLSH>(d, text);
}

std::unique_ptr<KernelizedLSH> trained(
        int d,
        const std::string& text,
        const std::vector<float>& x) {
    auto hash = make(d, text);
    hash->train(x.size() / d, x.data());
    return hash;
}

MatrixXd matrix_of(const std::vector<float>& values, size_t columns) {
    return Eigen::Map<const FloatRows>(
                   values.data(), values.size() / columns, columns)
            .cast<double>();
}

/// Returns one row per vector.
MatrixXd margins_of(const KernelHash& hash, const std::vector<float>& x) {
    return matrix_of(applied(hash, x), hash.nbits);
}

/// Returns one row per bit.
MatrixXd weights_of(const KernelizedLSH& hash) {
    return matrix_of(hash.projection->matrix(), hash.map.p);
}

std::vector<float> gram(
        const Kernel& kernel,
        const std::vector<float>& x,
        const std::vector<float>& y) {
    const size_t n = x.size() / dim, m = y.size() / dim;
    std::vector<float> values(n * m);
    kernel.gram(n, x.data(), m, y.data(), dim, values.data());
    return values;
}

/// Computes kernel values against the landmarks with the parameters of the
/// hash: normalised, transformed.
MatrixXd kernel_values(const KernelizedLSH& hash, const std::vector<float>& x) {
    const std::vector<float>& y = hash.map.landmarks;
    const Kernel& kernel = *hash.map.kernel;
    MatrixXd K = matrix_of(gram(kernel, x, y), hash.map.p);
    const auto factor = [&](const float* v) {
        const double self = kernel(v, v, dim);
        return self > 0 ? 1 / std::sqrt(self) : 0;
    };
    for (idx_t i = 0; i < K.rows() && hash.map.normalize; i++) {
        K.row(i) *= factor(&x[i * dim]);
    }
    for (idx_t j = 0; j < K.cols() && hash.map.normalize; j++) {
        K.col(j) *= factor(&y[j * dim]);
    }
    if (hash.map.scale > 0) {
        K = (hash.map.scale * (K.array() - 1)).exp().matrix();
    }
    return K;
}

MatrixXd landmark_matrix(const KernelizedLSH& hash) {
    return kernel_values(hash, hash.map.landmarks);
}

/// K' = U Theta U': eigenvalues descending, one eigenvector per column.
struct Spectrum {
    VectorXd values;
    MatrixXd vectors;

    explicit Spectrum(const KernelizedLSH& hash) {
        MatrixXd K = landmark_matrix(hash);
        const idx_t p = K.rows();
        if (!hash.map.nystrom) {
            const MatrixXd H = MatrixXd::Identity(p, p) -
                    MatrixXd::Constant(p, p, 1.0 / double(p));
            K = H * K * H;
        }
        const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(K);
        values = solver.eigenvalues().reverse();
        vectors = solver.eigenvectors().rowwise().reverse();
    }

    /// Computes U_r diag(Theta_r^power) U_r'.
    MatrixXd power(idx_t rank, double power) const {
        const MatrixXd U = vectors.leftCols(rank);
        return U * values.head(rank).array().pow(power).matrix().asDiagonal() *
                U.transpose();
    }
};

/// Recovers the indicators e_S of a hash whose K' keeps all but the constant
/// vector: K'^(1/2) w = H e_S = e_S - t / p. One row per bit, with t ones.
MatrixXd recovered_draws(const KernelizedLSH& hash, int t) {
    MatrixXd e = weights_of(hash) *
            Spectrum(hash).power(hash.map.eigenvalues.size(), 0.5);
    if (!hash.map.nystrom) {
        e.array() += double(t) / hash.map.p;
    }
    return e;
}

} // namespace

// The weights determine e_S, with t ones and otherwise zeros for every bit. By
// default t is 30, or fewer if there are few landmarks.
TEST(Weights, CltDrawsAreIndicatorsOfLandmarks) {
    const auto x = histograms(300);
    for (const auto& [parameters, t] :
         {std::pair<std::string, int>("chi2,p=40,t=7", 7),
          {"intersection,p=40,t=39,tolerance=0", 39},
          {"chi2,p=40,t=11,scale=4", 11},
          {"js,p=50,t=20,nystrom=1", 20},
          {"laplacian,gamma=3,p=50,center=0", 25},
          {"gaussian,gamma=20,p=70", 30}}) {
        SCOPED_TRACE(parameters);
        const auto hash = trained(dim, "KLSH64(" + parameters + ")", x);
        ASSERT_EQ(
                hash->map.eigenvalues.size(), hash->map.p - !hash->map.nystrom);
        const MatrixXd e = recovered_draws(*hash, t);
        EXPECT_LT((e - e.array().round().matrix()).cwiseAbs().maxCoeff(), 1e-3);
        EXPECT_NEAR(e.cwiseAbs2().sum(), 64 * t, 0.1);
        EXPECT_LT((e.rowwise().sum().array() - t).abs().maxCoeff(), 0.1);
    }
}

// Each landmark is in S with probability t / p, and a pair with t (t - 1) / (p
// (p - 1)), as draws are without replacement. Neighbouring bits draw
// independently, with an overlap of t^2 / p on average. Another seed gives
// other draws.
TEST(Weights, CltDrawsAreUniform) {
    const auto x = histograms(200);
    const auto hash = trained(dim, "KLSH2048(gaussian,gamma=30,p=20,t=5)", x);
    const MatrixXd e = recovered_draws(*hash, 5);
    const double n = hash->nbits;
    for (int i = 0; i < 20; i++) {
        EXPECT_NEAR(e.col(i).sum() / n, 0.25, hoeffding(n)) << "landmark " << i;
        for (int j = 0; j < i; j++) {
            EXPECT_NEAR(
                    e.col(i).dot(e.col(j)) / n, 20.0 / (20 * 19), hoeffding(n));
        }
    }
    double overlap = 0;
    for (int b = 0; b + 1 < hash->nbits; b += 2) {
        overlap += e.row(b).dot(e.row(b + 1)) / 5;
    }
    EXPECT_NEAR(overlap / (n / 2), 0.25, hoeffding(n / 2));
    const auto other = make(dim, "KLSH2048(gaussian,gamma=30,t=5,seed=4)");
    other->set_landmarks(20, hash->map.landmarks.data());
    other->train(0, nullptr);
    EXPECT_GT((recovered_draws(*other, 5) - e).norm(), 10);
}

// The weights are K'^(-1/2) e_S, where only the r largest eigenvalues are
// inverted. The draw does not depend on rank, scale, kernel or centring.
TEST(Weights, EqualTheFormula) {
    const auto x = histograms(300);
    const std::string draw = ",p=60,t=9,seed=5)";
    const auto first = trained(dim, "KLSH128(gaussian,gamma=30" + draw, x);
    const MatrixXd e = recovered_draws(*first, 9).array().round();
    ASSERT_EQ(e.sum(), 9 * 128);
    for (const std::string parameters :
         {"chi2",
          "chi2,rank=1",
          "chi2,rank=20,scale=5",
          "chi2,rank=7,nystrom=1",
          "js,rank=30,center=0",
          "linear,rank=6,normalize=0",
          "poly,degree=2,c=1,normalize=0,rank=12",
          "expchi2,scale=1,rank=8",
          "chi2,tolerance=0.02",
          "linear"}) {
        SCOPED_TRACE(parameters);
        const auto hash = trained(dim, "KLSH128(" + parameters + draw, x);
        const Spectrum s(*hash);
        idx_t rank = hash->map.rank;
        while (hash->map.rank == 0 && rank < 60 &&
               s.values[rank] > hash->map.tolerance * s.values[0]) {
            rank++;
        }
        ASSERT_EQ(hash->map.eigenvalues.size(), size_t(rank));
        for (idx_t i = 0; i < rank; i++) {
            EXPECT_NEAR(
                    hash->map.eigenvalues[i], s.values[i], 2e-5 * s.values[0]);
        }
        // the cut is unique: kernel values have errors of 1e-6
        ASSERT_GT(s.values[rank - 1] - s.values[rank], 1e-4 * s.values[0]);
        const MatrixXd expected = e * s.power(rank, -0.5);
        EXPECT_LT(
                (weights_of(*hash) - expected).norm(), 2e-3 * expected.norm());
    }
}

// Theta^(1/2) U' w is N(0, I), for each coordinate. Coordinates of a bit are
// uncorrelated: sums of products of independent N(0, 1) stay below 8 standard
// deviations. No part of w is outside the kept eigenvectors.
TEST(Weights, GaussDrawsAreNormal) {
    const auto x = histograms(300);
    for (const std::string parameters :
         {"gaussian,gamma=30",
          "chi2,rank=16,nystrom=1",
          "linear,rank=8,normalize=0,center=0"}) {
        SCOPED_TRACE(parameters);
        const auto hash =
                trained(dim, "KLSH512(" + parameters + ",p=60,draw=gauss)", x);
        const Spectrum s(*hash);
        const idx_t rank = hash->map.eigenvalues.size();
        const MatrixXd w = weights_of(*hash);
        const MatrixXd g = w * s.vectors.leftCols(rank) *
                s.values.head(rank).cwiseSqrt().asDiagonal();
        EXPECT_TRUE(follows({g.data(), g.data() + g.size()}, normal_cdf, 1e-4));
        MatrixXd products = g.transpose() * g;
        products.diagonal().setZero();
        EXPECT_LT(products.cwiseAbs().maxCoeff(), 8 * std::sqrt(512));
        EXPECT_LT((w * s.power(rank, 0) - w).norm(), 1e-3 * w.norm());
    }
}

TEST(Weights, ThresholdIsTheMeanOfTheLandmarks) {
    const auto x = histograms(300);
    for (const std::string parameters :
         {"chi2,nystrom=1,draw=gauss",
          "linear,normalize=0,rank=5",
          "js,scale=3,rank=9"}) {
        SCOPED_TRACE(parameters);
        const std::string text = "KLSH64(p=50," + parameters;
        const auto hash = trained(dim, text + ")", x);
        const MatrixXd w = weights_of(*hash);
        const VectorXd mean = landmark_matrix(*hash).rowwise().mean();
        const VectorXd expected = w * mean, size = w.cwiseAbs() * mean;
        for (int b = 0; b < 64; b++) {
            EXPECT_NEAR(hash->threshold[b], expected[b], 1e-6 * size[b] + 1e-7);
        }
        const auto papers = trained(dim, text + ",center=0)", x);
        EXPECT_EQ(papers->threshold, std::vector<float>(64, 0));
        EXPECT_EQ(papers->projection->matrix(), hash->projection->matrix());
    }
}

TEST(Weights, LandmarksAreDistinctTrainingVectors) {
    using Set = std::set<std::vector<float>>;
    const auto set_of = [](const std::vector<float>& x) {
        Set set;
        for (size_t i = 0; i < x.size() / dim; i++) {
            set.insert(rows(x, dim, i, i + 1));
        }
        return set;
    };
    const auto x = histograms(120);
    const Set all = set_of(x);
    for (size_t p : {2, 50, 120}) {
        const auto hash =
                trained(dim, "KLSH8(chi2,t=1,p=" + std::to_string(p) + ")", x);
        const Set used = set_of(hash->map.landmarks);
        EXPECT_EQ(used.size(), p);
        EXPECT_TRUE(std::includes(
                all.begin(), all.end(), used.begin(), used.end()));
    }
}

TEST(Margins, EqualBruteForce) {
    const auto x = histograms(300), q = histograms(70, 2);
    for (const std::string parameters :
         {"chi2,p=100,t=20",
          "chi2,p=30,rank=10,scale=5,center=0",
          "linear,p=50,rank=8,normalize=0",
          "poly,degree=3,p=33,rank=12",
          "gaussian,p=50,nystrom=1,draw=gauss,rank=20"}) {
        SCOPED_TRACE(parameters);
        const auto hash = trained(dim, "KLSH40(" + parameters + ")", x);
        const MatrixXd K = kernel_values(*hash, q);
        const MatrixXd w = weights_of(*hash).transpose();
        const MatrixXd found = margins_of(*hash, q), products = K * w,
                       size = K.cwiseAbs() * w.cwiseAbs();
        for (int b = 0; b < 40; b++) {
            for (int i = 0; i < 70; i++) {
                const double expected = products(i, b) - hash->threshold[b];
                EXPECT_NEAR(found(i, b), expected, 3e-6 * size(i, b));
            }
        }
    }
}

// With 20 and 51 equal landmarks, at least 19 + 50 eigenvalues are 0.
TEST(Margins, ZeroVectorsAndDuplicates) {
    auto x = histograms(200);
    std::fill_n(x.begin(), 20 * dim, 0);
    for (size_t i = 100; i < 150; i++) {
        std::copy_n(&x[60 * dim], dim, &x[i * dim]);
    }
    for (const std::string parameters :
         {"chi2,p=200,t=40", "cosine,p=200,nystrom=1,draw=gauss"}) {
        SCOPED_TRACE(parameters);
        const auto hash = trained(dim, "KLSH64(" + parameters + ")", x);
        EXPECT_LE(hash->map.eigenvalues.size(), 200u - 19 - 50);
        EXPECT_GE(hash->map.eigenvalues.size(), 20u);
        const MatrixXd margins = margins_of(*hash, x);
        EXPECT_TRUE(margins.allFinite());
        EXPECT_EQ(margins.row(60), margins.row(120));
        EXPECT_NE(margins.row(0), margins.row(60));
        for (int b = 0; b < 64; b++) { // kernel values of 0 are 0
            EXPECT_EQ(margins(0, b), -hash->threshold[b]);
        }
    }
}

TEST(Theory, EstimatesInvertExpectedDistances) {
    const auto x = histograms(100);
    for (const std::string parameters :
         {"chi2", "chi2,scale=5", "chi2,scale=5,center=0", "linear"}) {
        SCOPED_TRACE(parameters);
        const auto hash = trained(dim, "KLSH256(" + parameters + ",p=50)", x);
        const double m = hash->mean_value, s = hash->map.scale;
        // the mean over pairs of different landmarks
        MatrixXd K = landmark_matrix(*hash);
        K.diagonal().setZero();
        EXPECT_NEAR(m, hash->map.center ? K.sum() / (50.0 * 49) : 0, 1e-6);
        const double least = s > 0 ? -1 : std::max(-1.0, 2 * m - 1);
        for (int i = 0; i <= 50; i++) {
            const double k = least + (1 - least) * i / 50.0;
            const double h = hash->expected_hamming(k);
            const double transformed = s > 0 ? std::exp(s * (k - 1)) : k;
            const double share = normalized_angle((transformed - m) / (1 - m));
            EXPECT_NEAR(h, 256 * share, 1e-4);
            EXPECT_NEAR(hash->kernel_estimate(h), k, 1e-9);
        }
        EXPECT_EQ(hash->expected_hamming(1), 0);
        EXPECT_NEAR(hash->kernel_estimate(0), 1, 1e-15);
        EXPECT_LE(hash->kernel_estimate(256), least + 1e-9);
        EXPECT_GE(hash->kernel_estimate(256), -1 - 1e-9);
    }
}

TEST(Landmarks, Given) {
    const auto x = histograms(300);
    const auto drawn = trained(dim, "KLSH64(chi2,p=40,t=8)", x);
    const auto given = make(dim, "KLSH64(chi2,p=300,t=8)");
    auto bad = x;
    bad[3 * dim + 1] = -1;
    for (const auto& [n, names] : std::vector<std::pair<idx_t, std::string>>{
                 {1, "2"}, {8193, "8192"}, {10, "component 1 of vector 3"}}) {
        EXPECT_TRUE(throws(
                [&, n = n] { given->set_landmarks(n, bad.data()); }, names));
        EXPECT_TRUE(given->map.landmarks.empty());
        EXPECT_EQ(given->map.p, 300);
    }
    given->set_landmarks(40, drawn->map.landmarks.data());
    EXPECT_EQ(given->map.p, 40);
    EXPECT_FALSE(given->is_trained);
    given->train(0, nullptr);
    EXPECT_EQ(codes_of(*given, x), codes_of(*drawn, x));
    EXPECT_TRUE(throws(
            [&] { given->set_landmarks(40, x.data()); }, "already trained"));
    EXPECT_EQ(codes_of(*given, x), codes_of(*drawn, x));
}

TEST(Landmarks, PrecomputedRowsGiveTheSameCodes) {
    const auto x = histograms(300), q = histograms(90, 5);
    for (const std::string parameters :
         {"t=12,rank=20,scale=3)",
          "t=12,nystrom=1,center=0)",
          "draw=gauss,scale=5,nystrom=1)"}) {
        const std::string kernel = "normalized(chi2),normalize=0,p=60,";
        const auto hash = trained(dim, "KLSH64(" + kernel + parameters, x);
        const auto& y = hash->map.landmarks;
        const auto K = gram(*hash->map.kernel, y, y);
        const auto given = trained(60, "KLSH64(precomputed," + parameters, K);
        EXPECT_FALSE(given->map.kernel);
        EXPECT_EQ(given->map.p, 60);
        const auto values = gram(*hash->map.kernel, q, y);
        EXPECT_EQ(codes_of(*given, values), codes_of(*hash, q));
        EXPECT_EQ(codes_of(*given->clone(), values), codes_of(*hash, q));
    }
}

// Tests the held-out measure as the class describes it: recall of the 10
// nearest of 200 queries among the 100 nearest by Hamming distance. On fresh
// data, the choice is worse than the plain hash by at most the deviation of
// recalls; here, low rank pays.
TEST(Auto, ChoosesSomethingBetterThanPlain) {
    const auto all = clustered_histograms(2200, dim, 3, 30, 9);
    const auto x = rows(all, dim, 0, 1000);
    const auto base = rows(all, dim, 1000, 2000);
    const auto queries = rows(all, dim, 2000, 2200);
    const auto values = gram(*kernel_factory("chi2"), queries, base);
    Found<float> truth;
    for (size_t i = 0; i < 200; i++) {
        std::vector<std::pair<float, idx_t>> order;
        for (idx_t j = 0; j < 1000; j++) {
            order.emplace_back(-values[i * 1000 + j], j);
        }
        append_nearest(truth, order, 10);
    }
    const auto recall_of = [&](const KernelizedLSH& hash) {
        faiss::IndexBinaryFlat flat(hash.nbits);
        flat.add(1000, codes_of(hash, base).data());
        const auto found = search(flat, codes_of(hash, queries), 100).labels;
        double hits = 0;
        for (size_t i = 0; i < truth.labels.size(); i++) {
            const auto first = found.begin() + i / 10 * 100;
            hits += std::count(first, first + 100, truth.labels[i]);
        }
        return hits / double(truth.labels.size());
    };
    const std::string plain = "KLSH32(chi2,p=150,t=30";
    const double before = recall_of(*trained(dim, plain + ")", x));
    for (const std::string choice :
         {",rank=auto)", ",scale=auto)", ",rank=auto,scale=auto)"}) {
        SCOPED_TRACE(choice);
        const auto hash = trained(dim, plain + choice, x);
        const double gain = choice.size() > 12 ? 0.02 : -0.03;
        EXPECT_GT(recall_of(*hash), before + gain);
        // giving the chosen values as parameters makes the same codes
        const auto given = make(dim, plain + ")");
        given->map.rank = hash->map.rank;
        given->map.scale = hash->map.scale;
        given->train(1000, x.data());
        EXPECT_EQ(codes_of(*given, queries), codes_of(*hash, queries));
    }
    const auto few = make(dim, "KLSH64(chi2,p=30,rank=auto)");
    EXPECT_TRUE(throws([&] { few->train(125, x.data()); }, "126"));
    few->train(126, x.data());
}

// Invalid parameters and unusable data; afterwards the hash works as if nothing
// had happened.
TEST(Errors, FailedTrainingLeavesNoTrace) {
    const auto x = histograms(100);
    const std::string text = "KLSH64(chi2,p=100,t=30)";
    const auto hash = make(dim, text), untouched = trained(dim, text, x);
    using Change = std::function<void(KernelizedLSH&)>;
    for (const auto& [names, change] :
         {std::pair<std::string, Change>(
                  "p = 101", [](auto& h) { h.map.p = 101; }),
          {"8192", [](auto& h) { h.map.p = h.t = 1; }},
          {"8192", [](auto& h) { h.map.p = 8193; }},
          {"t is 101", [](auto& h) { h.t = 101; }},
          {"t is -1", [](auto& h) { h.t = -1; }},
          {"rank is 101", [](auto& h) { h.map.rank = 101; }},
          {"rank is -1", [](auto& h) { h.map.rank = -1; }},
          // the rank of K' is never p
          {"rank is 100", [](auto& h) { h.map.rank = 100; }},
          {"scale", [](auto& h) { h.map.scale = -1; }},
          {"scale", [](auto& h) { h.map.scale = HUGE_VAL; }},
          {"tolerance", [](auto& h) { h.map.tolerance = 1; }},
          {"tolerance", [](auto& h) { h.map.tolerance = NAN; }}}) {
        change(*hash);
        EXPECT_TRUE(throws([&] { hash->train(100, x.data()); }, names));
        EXPECT_FALSE(hash->is_trained);
        EXPECT_TRUE(hash->map.landmarks.empty());
        hash->assign(*make(dim, text));
    }
    const std::vector<float> same(100 * dim, 0.1f), zeros(100 * dim);
    EXPECT_TRUE(throws([&] { hash->train(100, same.data()); }, "same"));
    EXPECT_TRUE(throws([&] { hash->train(100, zeros.data()); }, "same"));
    EXPECT_TRUE(throws([&] { hash->train(5, nullptr); }, "null"));
    hash->train(100, x.data());
    hash->check_identical(*untouched);
    // the linear kernel has rank dim - 1 on centred histograms of sum 1
    const auto linear = make(dim, "KLSH64(linear,p=100,rank=30,normalize=0)");
    EXPECT_TRUE(throws([&] { linear->train(100, x.data()); }, "rank is 30"));
    linear->map.rank = 8;
    linear->train(100, x.data());
    EXPECT_EQ(linear->map.eigenvalues.size(), 8u);
}

TEST(Errors, Strings) {
    for (const auto& [text, names] :
         {std::pair<std::string, std::string>("KLSH64", "argument"),
          {"KLSH64(nothing)", "nothing"},
          {"KLSH64(chi2,p=20,t=20)", "0 to 19"},
          {"KLSH64(chi2,p=20,rank=21)", "rank"},
          {"KLSH64(precomputed,gamma=1)", "gamma"},
          {"KLSH64(precomputed,p=20)", "p"},
          {"KLSH64(precomputed,scale=auto)", "position 25"}}) {
        EXPECT_TRUE(throws([&text = text] { make(dim, text); }, text, names));
    }
}

TEST(Errors, KernelsThatOverflow) {
    const auto x = uniform_vectors(100, 6, 1);
    for (const char* text :
         {"KLSH16(poly(degree=8),p=50,normalize=0)",
          "KLSH16(linear,scale=1,p=50,normalize=0)"}) {
        const auto hash = trained(6, text, x);
        auto large = x;
        large[17] = 1e9f;
        EXPECT_TRUE(throws([&] { codes_of(*hash, large); })) << text;
    }
}

TEST(Errors, PrecomputedMatrices) {
    const size_t p = 30;
    const auto x = histograms(p);
    const std::vector<float> K =
            gram(*kernel_factory("normalized(chi2)"), x, x);
    auto asymmetric = K, nan = K;
    asymmetric[7 * p + 3] += 0.01f;
    nan[2 * p + 9] = NAN;
    using Matrix = std::vector<float>;
    for (const std::string text :
         {"KLSH64(precomputed,t=5)", "KLSH64(precomputed,t=5,nystrom=1)"}) {
        const auto hash = make(p, text);
        for (const auto& [matrix, names] :
             {std::pair<Matrix, std::string>(asymmetric, "(7, 3)"),
              {nan, "component 9 of vector 2"},
              {scaled(K, -1), ""},
              {Matrix(p * p, 0), "same"},
              {rows(K, p, 0, p - 1), "29"}}) {
            const size_t n = matrix.size() / p;
            EXPECT_TRUE(throws(
                    [&, x = matrix.data()] { hash->train(n, x); }, names));
            EXPECT_FALSE(hash->is_trained);
        }
        EXPECT_TRUE(throws(
                [&] { hash->set_landmarks(p, K.data()); }, "precomputed"));
        hash->train(p, K.data());
        hash->check_identical(*trained(p, text, K));
    }
    // |x - y|^2 is not positive definite
    const Matrix distances = kernel_distances(LinearKernel(), x, x, dim);
    EXPECT_TRUE(throws([&] { trained(p, "KLSH64(precomputed)", distances); }));
    EXPECT_TRUE(throws(
            [&] { trained(p, "KLSH64(precomputed,nystrom=1)", distances); },
            "positive semi-definite"));
}

// Histograms are accepted if floats have enough digits for their kernel values;
// smaller ones are refused.
TEST(KernelizedLSH, TinyHistograms) {
    const int n = 200, d = 12;
    const std::vector<float> ordinary = uniform_vectors(n, d, 3);
    for (const std::string& kernel : histogram_kernels) {
        const std::string text = "KLSH32(" + kernel + ",p=40)";
        const auto codes = codes_of(*trained(d, text, ordinary), ordinary);
        for (const float scale : {0x1p-60f, 0x1p-90f}) {
            const auto x = scaled(ordinary, scale);
            EXPECT_EQ(codes_of(*trained(d, text, x), x), codes) << text;
        }
        for (const float scale : {0x1p-100f, 0x1p-126f, 0x1p-140f}) {
            const auto x = scaled(ordinary, scale);
            EXPECT_TRUE(
                    kernel == "jaccard" || kernel == "dice" ||
                    throws([&] { trained(d, text, x); }, "vector 0 add up to"))
                    << text;
        }
    }
}
