// KernelizedLSH against the formulas of Kulis and Grauman 2012 and of Jiang,
// Que and Kulis 2015, computed here with Eigen.

#include <faiss_ext/hashes/KernelizedLSH.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexIDMap.h>

#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/AdditiveKernel.h>
#include <faiss_ext/kernels/CallbackKernel.h>
#include <faiss_ext/kernels/ExpChi2Kernel.h>
#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>

#include "testing_klsh.h"

using namespace faiss_ext;
using namespace testing_klsh;

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using std::numbers::pi;
using FloatRows =
        Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::unique_ptr<KernelizedLSH> make(int d, const std::string& description) {
    auto hash = kernel_hash_factory(d, description);
    return std::unique_ptr<KernelizedLSH>(
            &dynamic_cast<KernelizedLSH&>(*hash.release()));
}

std::unique_ptr<KernelizedLSH> trained(
        int d,
        const std::string& description,
        const std::vector<float>& x) {
    auto hash = make(d, description);
    hash->train(x.size() / d, x.data());
    return hash;
}

std::vector<uint8_t> encode(
        const KernelHash& hash,
        const std::vector<float>& x) {
    const size_t n = x.size() / hash.d_in;
    std::vector<uint8_t> codes(n * hash.code_size());
    hash.encode(n, x.data(), codes.data());
    return codes;
}

/// one row for each vector
MatrixXd margins_of(const KernelHash& hash, const std::vector<float>& x) {
    const size_t n = x.size() / hash.d_in;
    FloatRows margins(n, hash.nbits);
    hash.apply_noalloc(n, x.data(), margins.data());
    return margins.cast<double>();
}

bool bit(const std::vector<uint8_t>& codes, size_t size, size_t i, size_t j) {
    return codes[i * size + j / 8] >> (j % 8) & 1;
}

size_t hamming(
        const std::vector<uint8_t>& codes,
        size_t size,
        size_t i,
        size_t j) {
    size_t sum = 0;
    for (size_t b = 0; b < 8 * size; b++) {
        sum += bit(codes, size, i, b) != bit(codes, size, j, b);
    }
    return sum;
}

/// mean_j |part of ones of bit j - 1/2|
double imbalance(const KernelHash& hash, const std::vector<float>& x) {
    const auto codes = encode(hash, x);
    const size_t n = x.size() / hash.d_in;
    double sum = 0;
    for (int b = 0; b < hash.nbits; b++) {
        size_t ones = 0;
        for (size_t i = 0; i < n; i++) {
            ones += bit(codes, hash.code_size(), i, b);
        }
        sum += std::abs(double(ones) / double(n) - 0.5) / hash.nbits;
    }
    return sum;
}

// The formulas, in double.

/// kernel values as the parameters of the hash say: normalised, transformed
MatrixXd kernel_values(
        const KernelizedLSH& hash,
        const std::vector<float>& x,
        const std::vector<float>& y) {
    const size_t d = hash.d_in, n = x.size() / d, m = y.size() / d;
    FloatRows values(n, m);
    hash.map.kernel->gram(n, x.data(), m, y.data(), d, values.data());
    MatrixXd K = values.cast<double>();
    for (size_t i = 0; i < n && hash.map.normalize; i++) {
        const float xx = (*hash.map.kernel)(&x[i * d], &x[i * d], d);
        K.row(i) *= xx > 0 ? 1 / std::sqrt(double(xx)) : 0;
    }
    for (size_t j = 0; j < m && hash.map.normalize; j++) {
        const float yy = (*hash.map.kernel)(&y[j * d], &y[j * d], d);
        K.col(j) *= yy > 0 ? 1 / std::sqrt(double(yy)) : 0;
    }
    if (hash.map.scale > 0) {
        K = (hash.map.scale * (K.array() - 1)).exp().matrix();
    }
    return K;
}

MatrixXd landmark_matrix(const KernelizedLSH& hash) {
    return kernel_values(hash, hash.map.landmarks, hash.map.landmarks);
}

/// K', U Theta U': eigenvalues descending, one eigenvector in each column
struct Spectrum {
    VectorXd values;
    MatrixXd vectors;

    Spectrum(MatrixXd K, bool nystrom) {
        const idx_t p = K.rows();
        if (!nystrom) {
            const MatrixXd H = MatrixXd::Identity(p, p) -
                    MatrixXd::Constant(p, p, 1.0 / double(p));
            K = H * K * H;
        }
        const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(K);
        values = solver.eigenvalues().reverse();
        vectors = solver.eigenvectors().rowwise().reverse();
    }

    /// U_r diag(Theta_r^power) U_r'
    MatrixXd power(idx_t rank, double power) const {
        const MatrixXd U = vectors.leftCols(rank);
        const VectorXd theta = values.head(rank);
        return U * theta.array().pow(power).matrix().asDiagonal() *
                U.transpose();
    }
};

/// one row for each bit
MatrixXd weights_of(const KernelizedLSH& hash) {
    const std::vector<float> A = hash.projection->matrix();
    return Eigen::Map<const FloatRows>(A.data(), hash.nbits, hash.map.p)
            .cast<double>();
}

double relative_error(const MatrixXd& a, const MatrixXd& b) {
    return (a - b).norm() / b.norm();
}

/// The indicators e_S of a hash whose K' keeps all but the constant vector:
/// K'^(1/2) w = H e_S = e_S - t / p. One row for each bit.
MatrixXd recovered_draws(const KernelizedLSH& hash) {
    const Spectrum s(landmark_matrix(hash), hash.map.nystrom);
    const idx_t rank = hash.map.eigenvalues.size();
    MatrixXd e = weights_of(hash) * s.power(rank, 0.5);
    if (!hash.map.nystrom) {
        e.array() += double(hash.t) / hash.map.p;
    }
    return e;
}

/// data on which kernel matrices are well-conditioned, or the projections onto
/// kept eigenvectors would not be determined
std::vector<float> histograms(size_t n, uint64_t seed = 1) {
    return clustered_histograms(n, 24, 8, 40, seed);
}
constexpr int dim = 24;

} // namespace

// Weights.

// e_S comes out of the weights: t ones, the rest zeros, for every bit.
TEST(Weights, CltDrawsAreIndicatorsOfLandmarks) {
    const auto x = histograms(500);
    for (const std::string description :
         {"KLSH64(chi2,p=40,t=7)",
          "KLSH64(intersection,p=40,t=39,tolerance=0)",
          "KLSH64(gaussian,gamma=20,p=60,t=1)",
          "KLSH64(chi2,p=40,t=11,scale=4)",
          "KLSH64(js,p=50,t=20,nystrom=1)",
          "KLSH64(laplacian,gamma=3,p=50,t=20,center=0)",
          "KLSH64(poly,degree=2,p=50,t=9,scale=5)"}) {
        const auto hash = trained(dim, description, x);
        const bool nystrom = hash->map.nystrom;
        ASSERT_EQ(hash->map.eigenvalues.size(), hash->map.p - !nystrom)
                << description;
        const MatrixXd e = recovered_draws(*hash);
        for (int b = 0; b < hash->nbits; b++) {
            int ones = 0;
            for (int i = 0; i < hash->map.p; i++) {
                const double nearest = e(b, i) > 0.5 ? 1 : 0;
                ones += int(nearest);
                EXPECT_NEAR(e(b, i), nearest, 1e-3) << description;
            }
            EXPECT_EQ(ones, hash->t) << description;
        }
    }
}

// Each landmark is in S with probability t / p, whatever the bit, and S differs
// from bit to bit.
TEST(Weights, CltDrawsAreUniform) {
    const auto x = histograms(200);
    const auto hash = trained(dim, "KLSH2048(gaussian,gamma=30,p=20,t=5)", x);
    const MatrixXd e = recovered_draws(*hash);
    const double n = hash->nbits;
    for (int i = 0; i < hash->map.p; i++) {
        EXPECT_NEAR(e.col(i).sum() / n, 0.25, hoeffding(n)) << "landmark " << i;
        for (int j = 0; j < i; j++) {
            // without replacement: t (t - 1) / (p (p - 1))
            EXPECT_NEAR(
                    e.col(i).dot(e.col(j)) / n,
                    5.0 * 4 / (20 * 19),
                    hoeffding(n));
        }
    }
    // neighbouring bits draw independently: the overlap is t^2 / p on average
    double overlap = 0;
    for (int b = 0; b + 1 < hash->nbits; b += 2) {
        overlap += e.row(b).dot(e.row(b + 1)) / 5;
    }
    EXPECT_NEAR(overlap / (n / 2), 0.25, hoeffding(n / 2));
}

// The weights equal K'^(-1/2) e_S, in which only the r largest eigenvalues are
// inverted. The draw does not depend on rank, scale, kernel or centring.
TEST(Weights, EqualTheFormula) {
    const auto x = histograms(400);
    const std::string draw = ",p=60,t=9,seed=5)";
    const MatrixXd e =
            recovered_draws(
                    *trained(dim, "KLSH128(gaussian,gamma=30" + draw, x))
                    .array()
                    .round()
                    .matrix();
    ASSERT_EQ(e.sum(), 9 * 128);
    for (const std::string parameters :
         {"chi2",
          "chi2,rank=5",
          "chi2,rank=1",
          "chi2,rank=20,scale=5",
          "chi2,scale=2,nystrom=1",
          "chi2,rank=7,nystrom=1",
          "js,rank=30,center=0",
          "linear,rank=6",
          "linear,rank=6,normalize=0",
          "poly,degree=2,c=1,normalize=0,rank=12",
          "cosine,rank=10",
          "expchi2,scale=1,rank=8",
          "gaussian,gamma=8,rank=16",
          "chi2,tolerance=0.02",
          "linear"}) {
        const auto hash = trained(dim, "KLSH128(" + parameters + draw, x);
        const Spectrum s(landmark_matrix(*hash), hash->map.nystrom);
        idx_t rank = 0;
        while (rank < hash->map.p &&
               s.values[rank] > hash->map.tolerance * s.values[0]) {
            rank++;
        }
        rank = hash->map.rank > 0 ? hash->map.rank : rank;
        ASSERT_EQ(hash->map.eigenvalues.size(), size_t(rank)) << parameters;
        for (idx_t i = 0; i < rank; i++) {
            EXPECT_NEAR(
                    hash->map.eigenvalues[i], s.values[i], 2e-5 * s.values[0]);
        }
        // the cut is determined: kernel values err by 1e-6
        const double gap =
                s.values[rank - 1] - (rank < hash->map.p ? s.values[rank] : 0);
        ASSERT_GT(gap, 1e-4 * s.values[0]) << parameters;
        EXPECT_LT(
                relative_error(weights_of(*hash), e * s.power(rank, -0.5)),
                2e-3)
                << parameters;
    }
}

// Theta^(1/2) U' w is N(0, I): each coordinate, and coordinates of one bit are
// uncorrelated.
TEST(Weights, GaussDrawsAreNormal) {
    const auto x = histograms(400);
    for (const std::string parameters :
         {"gaussian,gamma=30",
          "chi2,scale=3",
          "chi2,rank=16",
          "chi2,rank=16,nystrom=1",
          "linear,rank=8,normalize=0,center=0"}) {
        const auto hash =
                trained(dim, "KLSH512(" + parameters + ",p=60,draw=gauss)", x);
        const Spectrum s(landmark_matrix(*hash), hash->map.nystrom);
        const idx_t rank = hash->map.eigenvalues.size();
        const MatrixXd g = weights_of(*hash) * s.vectors.leftCols(rank) *
                s.values.head(rank).cwiseSqrt().asDiagonal();
        const std::vector<double> samples(g.data(), g.data() + g.size());
        EXPECT_LT(
                kolmogorov_smirnov(samples, normal_cdf),
                hoeffding(double(g.size())) + 1e-4)
                << parameters;
        // for unit vectors, sums of products of independent N(0, 1) stay below
        // 8 standard deviations
        const double n = hash->nbits;
        for (idx_t i = 0; i < rank; i++) {
            for (idx_t j = 0; j < i; j++) {
                EXPECT_LT(std::abs(g.col(i).dot(g.col(j))), 8 * std::sqrt(n))
                        << parameters;
            }
        }
        // no part of w lies outside the kept eigenvectors
        const MatrixXd inside = weights_of(*hash) * s.power(rank, 0);
        EXPECT_LT(relative_error(inside, weights_of(*hash)), 1e-3)
                << parameters;
    }
}

TEST(Weights, ThresholdIsTheMeanOfTheLandmarks) {
    const auto x = histograms(300);
    for (const std::string parameters :
         {"chi2",
          "chi2,nystrom=1,draw=gauss",
          "linear,normalize=0,rank=5",
          "js,scale=3,draw=gauss,rank=9"}) {
        const auto hash = trained(dim, "KLSH64(" + parameters + ",p=50)", x);
        const MatrixXd K = landmark_matrix(*hash), w = weights_of(*hash);
        const VectorXd mean = K.rowwise().mean();
        for (int b = 0; b < hash->nbits; b++) {
            const double scale = w.row(b).cwiseAbs().dot(mean);
            EXPECT_NEAR(
                    hash->threshold[b], w.row(b).dot(mean), 1e-6 * scale + 1e-7)
                    << parameters;
        }
        const auto papers =
                trained(dim, "KLSH64(" + parameters + ",p=50,center=0)", x);
        EXPECT_EQ(papers->threshold, std::vector<float>(64, 0));
        EXPECT_EQ(papers->projection->matrix(), hash->projection->matrix());
        EXPECT_EQ(papers->map.landmarks, hash->map.landmarks);
        // seen from the landmarks, the margins have mean 0
        const VectorXd sums =
                margins_of(*hash, hash->map.landmarks).colwise().sum();
        for (int b = 0; b < hash->nbits; b++) {
            const double scale = w.row(b).cwiseAbs().dot(mean) * hash->map.p;
            EXPECT_NEAR(sums[b], 0, 1e-5 * scale) << parameters;
        }
    }
}

TEST(Weights, LandmarksAreDistinctTrainingVectors) {
    const size_t n = 120;
    const auto x = histograms(n);
    std::vector<std::vector<float>> all;
    for (size_t i = 0; i < n; i++) {
        all.push_back(rows(x, dim, i, i + 1));
    }
    for (int p : {2, 50, 120}) {
        const auto hash =
                trained(dim, "KLSH8(chi2,t=1,p=" + std::to_string(p) + ")", x);
        ASSERT_EQ(hash->map.landmarks.size(), size_t(p) * dim);
        std::vector<bool> used(n);
        for (int i = 0; i < p; i++) {
            const auto found = std::find(
                    all.begin(),
                    all.end(),
                    rows(hash->map.landmarks, dim, i, i + 1));
            ASSERT_NE(found, all.end());
            EXPECT_FALSE(used[found - all.begin()]);
            used[found - all.begin()] = true;
        }
    }
}

TEST(Weights, SeedsDraw) {
    const auto x = histograms(300);
    const auto a = trained(dim, "KLSH64(chi2,p=40,t=8,seed=3)", x);
    const auto b = trained(dim, "KLSH64(chi2,p=40,t=8,seed=3)", x);
    const auto c = trained(dim, "KLSH64(chi2,p=40,t=8,seed=4)", x);
    EXPECT_EQ(a->projection->matrix(), b->projection->matrix());
    a->check_identical(*b);
    EXPECT_NE(a->map.landmarks, c->map.landmarks);
    EXPECT_NE(encode(*a, x), encode(*c, x));
    EXPECT_TRUE(throws([&] { a->check_identical(*c); }, {"different"}));
    // with the same landmarks, the draws still differ
    auto d = make(dim, "KLSH64(chi2,t=8,seed=4)");
    d->set_landmarks(40, a->map.landmarks.data());
    d->train(300, x.data());
    EXPECT_NE(
            recovered_draws(*a).array().round().matrix(),
            recovered_draws(*d).array().round().matrix());
}

// Margins and codes.

TEST(Margins, EqualBruteForce) {
    const auto x = histograms(300), q = histograms(70, 2);
    for (const std::string parameters :
         {"chi2,p=100,t=20",
          "chi2,p=100,t=20,center=0",
          "chi2,p=30,rank=10,scale=5",
          "intersection,p=64,draw=gauss,rank=32",
          "linear,p=50,rank=8",
          "linear,p=50,rank=8,normalize=0",
          "poly,degree=3,p=33,rank=12",
          "gaussian,p=50,nystrom=1,draw=gauss,rank=20",
          "hellinger,p=50,rank=11,normalize=0"}) {
        const auto hash = trained(dim, "KLSH40(" + parameters + ")", x);
        const MatrixXd K = kernel_values(*hash, q, hash->map.landmarks);
        const MatrixXd w = weights_of(*hash), found = margins_of(*hash, q);
        const auto codes = encode(*hash, q);
        for (size_t i = 0; i < 70; i++) {
            for (int b = 0; b < hash->nbits; b++) {
                const double value =
                        K.row(i).dot(w.row(b)) - hash->threshold[b];
                const double scale =
                        K.row(i).cwiseAbs().dot(w.row(b).cwiseAbs());
                EXPECT_NEAR(found(i, b), value, 3e-6 * scale) << parameters;
                EXPECT_EQ(
                        bit(codes, hash->code_size(), i, b), found(i, b) >= 0);
            }
        }
    }
}

TEST(Margins, DoNotDependOnThreadsAndBatches) {
    const auto x = histograms(400), q = histograms(333, 3);
    const std::string description =
            "KLSH72(chi2,p=100,t=20,rank=auto,draw=gauss)";
    std::unique_ptr<KernelizedLSH> one;
    std::vector<uint8_t> codes;
    {
        const Threads threads(1);
        one = trained(dim, description, x);
        codes = encode(*one, q);
    }
    for (int n : {2, 5}) {
        const Threads threads(n);
        const auto hash = trained(dim, description, x);
        hash->check_identical(*one);
        EXPECT_EQ(encode(*hash, q), codes);
    }
    for (size_t batch : {1, 7, 64, 200}) {
        std::vector<uint8_t> parts;
        for (size_t i = 0; i < 333; i += batch) {
            const auto part = encode(
                    *one, rows(q, dim, i, std::min<size_t>(333, i + batch)));
            parts.insert(parts.end(), part.begin(), part.end());
        }
        EXPECT_EQ(parts, codes) << "batches of " << batch;
    }
    EXPECT_TRUE(encode(*one, {}).empty());
}

TEST(Margins, ZeroVectorsAndDuplicates) {
    auto x = histograms(200);
    std::fill_n(x.begin(), 20 * dim, 0); // ten per cent are zero
    for (size_t i = 100; i < 150; i++) { // and a quarter is the same
        std::copy_n(&x[60 * dim], dim, &x[i * dim]);
    }
    for (const std::string parameters :
         {"chi2,p=200,t=40",
          "chi2,p=200,t=40,normalize=0,scale=2",
          "intersection,p=200,draw=gauss",
          "cosine,p=200,nystrom=1,draw=gauss"}) {
        const auto hash = trained(dim, "KLSH64(" + parameters + ")", x);
        // 20 and 51 equal landmarks: at least 19 + 50 eigenvalues are 0
        EXPECT_LE(hash->map.eigenvalues.size(), 200u - 19 - 50) << parameters;
        EXPECT_GE(hash->map.eigenvalues.size(), 20u) << parameters;
        const MatrixXd margins = margins_of(*hash, x);
        EXPECT_TRUE(margins.allFinite()) << parameters;
        EXPECT_EQ(margins.row(60), margins.row(120)) << parameters;
        EXPECT_EQ(margins.row(0), margins.row(19)) << parameters;
        EXPECT_NE(margins.row(0), margins.row(60)) << parameters;
        // all kernel values of a zero vector are the same
        if (hash->map.scale == 0) {
            for (int b = 0; b < hash->nbits; b++) {
                EXPECT_EQ(margins(0, b), -hash->threshold[b]) << parameters;
            }
        }
    }
}

// Balance.

TEST(Balance, CenteredQueriesBalanceTheBits) {
    const auto x = clustered_histograms(1500, 32, 12, 25, 4);
    for (const char* draw : {"clt", "gauss"}) {
        const std::string parameters =
                std::string("KLSH256(chi2,p=150,t=20,draw=") + draw;
        const double centered = imbalance(*trained(32, parameters + ")", x), x);
        const double papers =
                imbalance(*trained(32, parameters + ",center=0)", x), x);
        EXPECT_LT(centered, 0.1) << draw;
        EXPECT_GT(papers, 1.5 * centered) << draw;
    }
}

// Without centring, e_S has the mean of K's first eigenvector, whose component
// outweighs all others: sqrt(p) t / p against sqrt(t (1 - t / p)) / sqrt(p).
TEST(Balance, NystromCollapsesUnderCltDraws) {
    const auto x = clustered_histograms(1500, 32, 12, 25, 5);
    const auto constant = [&](const std::string& parameters) {
        const auto hash = trained(32, "KLSH256(" + parameters + ")", x);
        const auto codes = encode(*hash, x);
        int count = 0;
        for (int b = 0; b < hash->nbits; b++) {
            size_t ones = 0;
            for (size_t i = 0; i < 1500; i++) {
                ones += bit(codes, hash->code_size(), i, b);
            }
            count += ones < 150 || ones > 1350;
        }
        return count / 256.0;
    };
    const std::string base = "chi2,p=150,t=30,rank=16,center=0,";
    EXPECT_GT(constant(base + "nystrom=1"), 0.9);
    EXPECT_LT(constant(base + "nystrom=1,draw=gauss"), 0.6);
    EXPECT_LT(constant(base + "nystrom=0"), 0.6);
    EXPECT_LT(constant("chi2,p=150,t=30,rank=16"), 0.1);
}

// A threshold of its own for each bit takes that component out again.
TEST(Balance, CenteredQueriesRescueNystromUnderCltDraws) {
    const auto x = clustered_histograms(1500, 32, 12, 25, 5);
    const std::string parameters = "KLSH256(chi2,p=150,t=30,nystrom=1,rank=16";
    EXPECT_LT(imbalance(*trained(32, parameters + ")", x), x), 0.1);
    EXPECT_GT(imbalance(*trained(32, parameters + ",center=0)", x), x), 0.4);
}

// Theory.

// In full rank with the linear kernel, the feature space of kernel PCA is the
// input space around the mean of the landmarks: P(bits differ) is the angle
// there, over pi.
TEST(Theory, GaussDrawsGiveTheAngle) {
    const int d = 12, nbits = 8192;
    for (bool normalize : {false, true}) {
        auto x = normal_vectors(400, d, 6);
        for (size_t i = 0; i < x.size(); i++) {
            x[i] += 0.5f * float(i % d); // not centred
        }
        const auto hash =
                trained(d,
                        "KLSH8192(linear,p=60,draw=gauss,normalize=" +
                                std::to_string(normalize) + ")",
                        x);
        ASSERT_EQ(hash->map.eigenvalues.size(), size_t(d));
        const auto points = [&](const std::vector<float>& v) {
            MatrixXd m = Eigen::Map<const FloatRows>(v.data(), v.size() / d, d)
                                 .cast<double>();
            if (normalize) {
                m.rowwise().normalize();
            }
            return m;
        };
        const Eigen::RowVectorXd mean =
                points(hash->map.landmarks).colwise().mean();
        const size_t n = 24;
        auto q = rows(x, d, 0, n);
        for (size_t i = 12; i < n; i++) { // from near to far
            const float step = std::ldexp(1.0f, int(i) - 20);
            for (int k = 0; k < d; k++) {
                q[i * d + k] = q[(i - 12) * d + k] +
                        step * (q[i * d + k] - q[(i - 12) * d + k]);
            }
        }
        const MatrixXd z = points(q).rowwise() - mean;
        const auto codes = encode(*hash, q);
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                const double cosine = z.row(i).dot(z.row(j)) / z.row(i).norm() /
                        z.row(j).norm();
                const double angle = std::acos(std::clamp(cosine, -1.0, 1.0));
                EXPECT_NEAR(
                        double(hamming(codes, hash->code_size(), i, j)) / nbits,
                        angle / pi,
                        hoeffding(nbits) + 1e-4)
                        << i << ", " << j << ", normalize=" << normalize;
            }
        }
        // the margins are the projections onto N(0, I)
        const MatrixXd margins = margins_of(*hash, q);
        for (size_t i = 0; i < n; i++) {
            std::vector<double> samples(nbits);
            for (int b = 0; b < nbits; b++) {
                samples[b] = margins(i, b) / z.row(i).norm();
            }
            EXPECT_LT(
                    kolmogorov_smirnov(samples, normal_cdf),
                    hoeffding(nbits) + 1e-3);
        }
    }
}

namespace {

/// Anderson and Darling's test of normality with unknown mean and variance at
/// 5 %: A^2 (1 + 0.75 / n + 2.25 / n^2) > 0.752 (Stephens 1986).
bool rejects_normality(const VectorXd& v) {
    const idx_t n = v.size();
    const double mean = v.mean();
    const double sd =
            std::sqrt((v.array() - mean).square().sum() / double(n - 1));
    std::vector<double> z(n);
    for (idx_t i = 0; i < n; i++) {
        z[i] = (v[i] - mean) / sd;
    }
    std::sort(z.begin(), z.end());
    double sum = 0;
    for (idx_t i = 0; i < n; i++) {
        sum += double(2 * i + 1) *
                (std::log(normal_cdf(z[i])) +
                 std::log(normal_cdf(-z[n - 1 - i])));
    }
    const double m = double(n), a2 = -m - sum / m;
    return a2 * (1 + 0.75 / m + 2.25 / (m * m)) > 0.752;
}

} // namespace

// Kulis and Grauman 2012, section 6.6 and figure 7: for the linear kernel the
// hyperplane is r = sum_i w_i x_i. Its 128 components look normal, as often as
// those of a normal vector do, with t = 0.2 p; those of randomly weighted
// landmarks do not. 1,000 hyperplanes, 40 for each set of landmarks. The
// components of the data, as those of image descriptors, are correlated and of
// different spread.
TEST(Theory, HyperplanesPassAndersonDarling) {
    const int d = 128, trials = 1000;
    const size_t pool = 5000;
    std::mt19937_64 rng(7);
    std::normal_distribution<double> normal;
    int true_normal = 0;
    for (int i = 0; i < trials; i++) {
        VectorXd v(d);
        for (double& c : v) {
            c = normal(rng);
        }
        true_normal += rejects_normality(v);
    }
    // the test itself has the size it should
    EXPECT_TRUE(plausibly_at_most(true_normal, trials, 0.055)) << true_normal;
    EXPECT_GT(true_normal, 15);

    auto x = normal_vectors(pool, d, 8);
    for (size_t i = 0; i < x.size(); i++) {
        const size_t k = i % d;
        const float before = k > 0 ? x[i - 1] : 0; // correlated
        x[i] = std::exp2(-float(k) / 32) * (x[i] + 2) + 0.5f * before;
    }
    for (int p : {150, 300}) {
        int rejected = 0, baseline = 0;
        for (int trial = 0; trial < trials; trial += 40) {
            std::vector<float> chosen;
            std::vector<idx_t> ids(pool);
            std::iota(ids.begin(), ids.end(), 0);
            std::shuffle(ids.begin(), ids.end(), rng);
            for (int i = 0; i < p; i++) {
                chosen.insert(
                        chosen.end(),
                        x.begin() + ids[i] * d,
                        x.begin() + (ids[i] + 1) * d);
            }
            LinearKernel linear;
            KernelizedLSH hash(d, 40, &linear);
            hash.map.normalize = false;
            hash.t = p / 5;
            hash.map.seed = trial;
            hash.map.p = p;
            hash.set_landmarks(p, chosen.data());
            hash.train(0, nullptr);
            ASSERT_EQ(hash.map.eigenvalues.size(), size_t(d));
            const MatrixXd points =
                    Eigen::Map<const FloatRows>(chosen.data(), p, d)
                            .cast<double>();
            const MatrixXd r = weights_of(hash) * points;
            for (int b = 0; b < 40; b++) {
                rejected += rejects_normality(r.row(b));
                VectorXd g(p);
                for (double& c : g) {
                    c = normal(rng);
                }
                baseline += rejects_normality(points.transpose() * g);
            }
        }
        EXPECT_TRUE(plausibly_at_most(rejected, trials, 0.06))
                << "p = " << p << ": " << rejected << " of " << trials
                << ", of normal vectors " << true_normal;
        EXPECT_GT(baseline, 500) << "p = " << p;
        RecordProperty("rejected_p" + std::to_string(p), rejected);
        RecordProperty("baseline_p" + std::to_string(p), baseline);
    }
}

TEST(Theory, EstimatesAreInverseOfExpectedDistances) {
    const auto x = histograms(300);
    for (const std::string parameters :
         {"chi2",
          "chi2,center=0",
          "chi2,scale=5",
          "chi2,scale=5,center=0",
          "gaussian,gamma=3",
          "linear"}) {
        const auto hash = trained(dim, "KLSH256(" + parameters + ",p=50)", x);
        const double m = hash->mean_value;
        const double least =
                std::max(-1.0, hash->map.scale > 0 ? -1.0 : 2 * m - 1);
        double before = HUGE_VAL;
        for (int i = 0; i <= 100; i++) {
            const double k = least + (1 - least) * i / 100.0;
            const double h = hash->expected_hamming(k);
            EXPECT_LT(h, before) << parameters << ", k = " << k;
            EXPECT_GE(h, 0);
            EXPECT_LE(h, 256);
            before = h;
            EXPECT_NEAR(hash->kernel_estimate(h), k, 1e-9) << parameters;
            // the formula of the comment
            const double s = hash->map.scale;
            const double transformed = s > 0 ? std::exp(s * (k - 1)) : k;
            EXPECT_NEAR(
                    h, 256 * std::acos((transformed - m) / (1 - m)) / pi, 1e-4);
        }
        EXPECT_EQ(hash->expected_hamming(1), 0) << parameters;
        EXPECT_NEAR(hash->kernel_estimate(0), 1, 1e-15) << parameters;
        // beyond the range
        EXPECT_LE(hash->kernel_estimate(256), least + 1e-9) << parameters;
        EXPECT_GE(hash->kernel_estimate(256), -1 - 1e-9) << parameters;
        for (double h : {-1e-9, 256.001, HUGE_VAL, std::nan("")}) {
            EXPECT_TRUE(throws([&] { hash->kernel_estimate(h); }));
        }
        // the mean over pairs of different landmarks
        MatrixXd K = landmark_matrix(*hash);
        K.diagonal().setZero();
        EXPECT_NEAR(m, hash->map.center ? K.sum() / (50.0 * 49) : 0, 1e-6);
    }
}

// Given landmarks, given rows.

TEST(Landmarks, Given) {
    const auto x = histograms(300);
    const auto drawn = trained(dim, "KLSH64(chi2,p=40,t=8)", x);
    auto given = make(dim, "KLSH64(chi2,p=300,t=8)");
    given->set_landmarks(40, drawn->map.landmarks.data());
    EXPECT_EQ(given->map.p, 40);
    EXPECT_FALSE(given->is_trained);
    given->train(0, nullptr);
    EXPECT_TRUE(given->is_trained);
    EXPECT_EQ(given->map.landmarks, drawn->map.landmarks);
    EXPECT_EQ(encode(*given, x), encode(*drawn, x));
    auto fresh = make(dim, "KLSH64(chi2,p=300,t=8)");
    EXPECT_TRUE(throws([&] { fresh->set_landmarks(1, x.data()); }, {"2"}));
    EXPECT_TRUE(
            throws([&] { fresh->set_landmarks(8193, x.data()); }, {"8192"}));
    auto bad = rows(x, dim, 0, 10);
    bad[3 * dim + 1] = -1;
    EXPECT_TRUE(
            throws([&] { fresh->set_landmarks(10, bad.data()); },
                   {"component 1 of vector 3"}));
    EXPECT_TRUE(fresh->map.landmarks.empty());
    EXPECT_EQ(fresh->map.p, 300);
    // the weights are those of the landmarks that it was trained with
    EXPECT_TRUE(throws(
            [&] { given->set_landmarks(40, x.data()); }, {"is trained"}));
    EXPECT_EQ(encode(*given, x), encode(*drawn, x));
}

TEST(Landmarks, PrecomputedRowsGiveTheSameCodes) {
    const auto x = histograms(300), q = histograms(90, 5);
    for (const std::string parameters :
         {"t=12",
          "t=12,rank=20,scale=3",
          "draw=gauss,rank=25",
          "t=12,nystrom=1,center=0",
          "draw=gauss,scale=5,nystrom=1"}) {
        for (const std::string kernel :
             {"gaussian,gamma=10", "normalized(chi2)"}) {
            const auto hash =
                    trained(dim,
                            "KLSH64(" + kernel + ",normalize=0,p=60," +
                                    parameters + ")",
                            x);
            const auto gram = [&](const std::vector<float>& v) {
                std::vector<float> values(v.size() / dim * 60);
                hash->map.kernel->gram(
                        v.size() / dim,
                        v.data(),
                        60,
                        hash->map.landmarks.data(),
                        dim,
                        values.data());
                return values;
            };
            const auto precomputed =
                    trained(60,
                            "KLSH64(precomputed," + parameters + ")",
                            gram(hash->map.landmarks));
            EXPECT_FALSE(precomputed->map.kernel);
            EXPECT_EQ(precomputed->map.p, 60);
            EXPECT_EQ(precomputed->d_in, 60);
            EXPECT_EQ(encode(*precomputed, gram(q)), encode(*hash, q))
                    << kernel << ", " << parameters;
            const auto copy = precomputed->clone();
            EXPECT_EQ(encode(*copy, gram(q)), encode(*hash, q));
        }
    }
}

// Automatic rank and scale.

namespace {

/// The held-out measure as the class describes it: recall of the 10 nearest of
/// 200 queries among the 100 nearest by Hamming distance.
double recall(
        const KernelizedLSH& hash,
        const std::vector<float>& queries,
        const std::vector<float>& base) {
    const size_t nq = queries.size() / dim, nb = base.size() / dim;
    faiss::IndexBinaryFlat flat(hash.nbits);
    flat.add(nb, encode(hash, base).data());
    std::vector<int32_t> distances(nq * 100);
    std::vector<idx_t> labels(nq * 100);
    flat.search(
            nq,
            encode(hash, queries).data(),
            100,
            distances.data(),
            labels.data());
    std::vector<float> truth(nq * nb);
    hash.map.kernel->gram(
            nq, queries.data(), nb, base.data(), dim, truth.data());
    size_t hits = 0;
    for (size_t q = 0; q < nq; q++) {
        const float* row = &truth[q * nb];
        std::vector<idx_t> order(nb);
        std::iota(order.begin(), order.end(), 0);
        std::partial_sort(
                order.begin(),
                order.begin() + 10,
                order.end(),
                [&](idx_t a, idx_t b) { return row[a] > row[b]; });
        for (int i = 0; i < 10; i++) {
            hits += std::count(
                    &labels[q * 100], &labels[q * 100] + 100, order[i]);
        }
    }
    return double(hits) / double(nq * 10);
}

} // namespace

// On fresh data, the choice loses no more to the plain hash than recalls of 200
// queries deviate; where plain KLSH is poor, it gains.
TEST(Auto, ChoosesSomethingBetterThanPlain) {
    // one draw of clusters
    const auto all = clustered_histograms(2700, dim, 3, 30, 9);
    const auto x = rows(all, dim, 0, 1200);
    const auto base = rows(all, dim, 1200, 2500);
    const auto queries = rows(all, dim, 2500, 2700);
    const auto plain = trained(dim, "KLSH32(chi2,p=150,t=30)", x);
    const double before = recall(*plain, queries, base);
    for (const std::string choice :
         {"rank=auto", "scale=auto", "rank=auto,scale=auto"}) {
        const auto hash =
                trained(dim, "KLSH32(chi2,p=150,t=30," + choice + ")", x);
        EXPECT_EQ(hash->map.auto_rank, choice.find("rank") != choice.npos);
        EXPECT_EQ(hash->map.auto_scale, choice.find("scale") != choice.npos);
        EXPECT_GT(recall(*hash, queries, base), before - 0.03) << choice;
        if (hash->map.auto_rank) {
            const int rank = hash->map.rank;
            EXPECT_TRUE(
                    (rank >= 16 && (rank & (rank - 1)) == 0) ||
                    rank == int(hash->map.eigenvalues.size()))
                    << rank;
        } else {
            EXPECT_EQ(hash->map.rank, 0);
        }
        const std::vector<double> scales = {0, 1, 3, 5, 7, 9};
        EXPECT_NE(
                std::find(scales.begin(), scales.end(), hash->map.scale),
                scales.end());
        if (choice != "rank=auto,scale=auto") {
            continue;
        }
        // here, low rank pays
        EXPECT_GT(recall(*hash, queries, base), before + 0.02) << before;
        // seeded
        const auto again =
                trained(dim, "KLSH32(chi2,p=150,t=30," + choice + ")", x);
        again->check_identical(*hash);
        EXPECT_EQ(again->map.rank, hash->map.rank);
        EXPECT_EQ(again->map.scale, hash->map.scale);
        // what it chose, given as parameters, makes the same codes
        auto given = make(dim, "KLSH32(chi2,p=150,t=30)");
        given->map.rank = hash->map.rank;
        given->map.scale = hash->map.scale;
        given->train(1200, x.data());
        EXPECT_EQ(encode(*given, queries), encode(*hash, queries));
    }
    EXPECT_FALSE(plain->map.auto_rank);
    EXPECT_FALSE(plain->map.auto_scale);
    EXPECT_EQ(plain->map.rank, 0);
    EXPECT_EQ(plain->map.scale, 0);
}

TEST(Auto, NeedsEnoughVectors) {
    const auto x = histograms(100), more = histograms(126);
    auto hash = make(dim, "KLSH64(chi2,p=30,rank=auto)");
    EXPECT_TRUE(throws([&] { hash->train(100, x.data()); }, {"126"}));
    EXPECT_TRUE(throws([&] { hash->train(125, more.data()); }, {"126"}));
    EXPECT_FALSE(hash->is_trained);
    hash->train(126, more.data());
    EXPECT_TRUE(hash->is_trained);
    EXPECT_TRUE(
            throws([] { make(30, "KLSH64(precomputed,scale=auto)"); },
                   {"precomputed", "position 25"}));
}

// Errors.

TEST(Errors, Untrained) {
    const auto hash = make(dim, "KLSH64(chi2,p=40,t=8)");
    const auto x = histograms(100);
    std::vector<uint8_t> codes(100 * 8);
    std::vector<float> margins(100 * 64);
    EXPECT_FALSE(hash->is_trained);
    EXPECT_TRUE(throws(
            [&] { hash->encode(100, x.data(), codes.data()); }, {"train"}));
    EXPECT_TRUE(
            throws([&] { hash->apply_noalloc(100, x.data(), margins.data()); },
                   {"train"}));
    const auto index = index_factory(dim, "KLSH64(chi2,p=40,t=8),BFlat");
    EXPECT_FALSE(index->is_trained);
    EXPECT_TRUE(throws([&] { index->add(100, x.data()); }, {"train"}));
    EXPECT_EQ(index->ntotal, 0);
    index->train(100, x.data());
    index->add(100, x.data());
    EXPECT_EQ(index->ntotal, 100);
}

TEST(Errors, BadInput) {
    const auto x = histograms(100);
    const auto hash = trained(dim, "KLSH64(chi2,p=40,t=8)", x);
    const auto codes = encode(*hash, x);
    for (float value : {-1e-3f, std::nanf(""), HUGE_VALF}) {
        auto bad = x;
        bad[70 * dim + 5] = value;
        const std::vector<std::string> place = {"component 5 of vector 70"};
        std::vector<uint8_t> out(100 * 8);
        EXPECT_TRUE(throws(
                [&] { hash->encode(100, bad.data(), out.data()); }, place));
        EXPECT_TRUE(throws([&] { hash->train(100, bad.data()); }, place));
        EXPECT_EQ(encode(*hash, x), codes);
        auto fresh = make(dim, "KLSH64(chi2,p=40,t=8)");
        EXPECT_TRUE(throws([&] { fresh->train(100, bad.data()); }, place));
        fresh->train(100, x.data());
        EXPECT_EQ(encode(*fresh, x), codes);
    }
    EXPECT_TRUE(throws([&] { hash->train(-1, x.data()); }));
    EXPECT_TRUE(throws([&] { hash->train(5, nullptr); }));
}

TEST(Errors, Parameters) {
    const auto x = histograms(100);
    auto hash = make(dim, "KLSH64(chi2,p=101)");
    EXPECT_TRUE(
            throws([&] { hash->train(100, x.data()); }, {"100", "p = 101"}));
    hash->map.p = 100;
    hash->t = 101;
    EXPECT_TRUE(throws([&] { hash->train(100, x.data()); }, {"t is 101"}));
    hash->t = -1;
    EXPECT_TRUE(throws([&] { hash->train(100, x.data()); }, {"t is -1"}));
    hash->t = 30;
    hash->map.rank = 101;
    EXPECT_TRUE(throws([&] { hash->train(100, x.data()); }, {"rank is 101"}));
    hash->map.rank = -1;
    EXPECT_TRUE(throws([&] { hash->train(100, x.data()); }));
    // K' never has rank p
    hash->map.rank = 100;
    EXPECT_TRUE(throws(
            [&] { hash->train(100, x.data()); }, {"rank = 100", "rank 99"}));
    hash->map.rank = 0;
    for (double scale : {-1.0, HUGE_VAL, std::nan("")}) {
        hash->map.scale = scale;
        EXPECT_TRUE(throws([&] { hash->train(100, x.data()); }, {"scale"}));
    }
    hash->map.scale = 0;
    for (double tolerance : {-1.0, 1.0, std::nan("")}) {
        hash->map.tolerance = tolerance;
        EXPECT_TRUE(throws([&] { hash->train(100, x.data()); }, {"tolerance"}));
    }
    hash->map.tolerance = 1e-6;
    for (int p : {0, 1, 8193}) {
        hash->map.p = p;
        hash->t = 1;
        EXPECT_TRUE(throws([&] { hash->train(100, x.data()); }, {"8192"}));
    }
    EXPECT_FALSE(hash->is_trained);
    hash->map.p = 100;
    hash->t = 30;
    hash->train(100, x.data());
    const auto fresh = trained(dim, "KLSH64(chi2,p=100)", x);
    EXPECT_EQ(encode(*hash, x), encode(*fresh, x));
    // the linear kernel has rank dim - 1 on centred histograms of sum 1
    auto linear = make(dim, "KLSH64(linear,p=100,rank=30,normalize=0)");
    EXPECT_TRUE(throws([&] { linear->train(100, x.data()); }, {"rank = 30"}));
    linear->map.rank = 8;
    linear->train(100, x.data());
    EXPECT_EQ(linear->map.eigenvalues.size(), 8u);
}

TEST(Errors, Strings) {
    for (const auto& [text, says] :
         std::vector<std::pair<std::string, std::string>>{
                 {"KLSH64", "argument"},
                 {"KLSH64()", "argument"},
                 {"KLSH64(nothing)", "unknown kernel 'nothing'"},
                 {"KLSH60(chi2)", "bits"},
                 {"KLSH64(chi2,p=1)", "p"},
                 {"KLSH64(chi2,p=8193)", "8192"},
                 {"KLSH64(chi2,p=20,t=20)", "0 to 19"},
                 {"KLSH64(chi2,t=-1)", "'-1' of t"},
                 {"KLSH64(chi2,p=20,rank=21)", "rank"},
                 {"KLSH64(chi2,rank=some)", "rank"},
                 {"KLSH64(chi2,scale=-1)", "scale"},
                 {"KLSH64(chi2,draw=normal)", "draw"},
                 {"KLSH64(chi2,center=2)", "center"},
                 {"KLSH64(chi2,nystrom=yes)", "nystrom"},
                 {"KLSH64(chi2,normalize=3)", "normalize"},
                 {"KLSH64(chi2,tolerance=2)", "tolerance"},
                 {"KLSH64(chi2,seed=-1)", "seed"},
                 {"KLSH64(chi2,ranks=3)", "ranks"},
                 {"KLSH64(chi2,js)", "js"},
                 {"KLSH64(precomputed,gamma=1)", "gamma"},
                 {"KLSH64(precomputed,p=20)", "p"}}) {
        EXPECT_TRUE(throws([&] { make(dim, text); }, {text, says})) << text;
    }
    const auto hash =
            make(dim,
                 "KLSH64(gaussian,gamma=2,p=77,t=7,rank=6,scale=1.5,draw=gauss,"
                 "nystrom=1,center=0,normalize=0,tolerance=1e-4,seed=9)");
    EXPECT_EQ(hash->map.kernel->description(), "gaussian(gamma=2)");
    EXPECT_EQ(hash->map.p, 77);
    EXPECT_EQ(hash->t, 7);
    EXPECT_EQ(hash->map.rank, 6);
    EXPECT_EQ(hash->map.scale, 1.5);
    EXPECT_EQ(hash->draw, KernelizedLSH::Draw::gauss);
    EXPECT_TRUE(hash->map.nystrom);
    EXPECT_FALSE(hash->map.center);
    EXPECT_FALSE(hash->map.normalize);
    EXPECT_EQ(hash->map.tolerance, 1e-4);
    EXPECT_EQ(hash->map.seed, 9);
    const auto plain = make(dim, "KLSH64(chi2)");
    EXPECT_EQ(plain->map.p, 300);
    EXPECT_EQ(plain->t, 0);
    EXPECT_EQ(plain->draw, KernelizedLSH::Draw::clt);
    EXPECT_FALSE(plain->map.nystrom);
    EXPECT_TRUE(plain->map.center);
    EXPECT_TRUE(plain->map.normalize);
    // 30 in a draw, fewer where there are few landmarks
    const auto x = histograms(100);
    for (const auto& [p, t] :
         {std::pair(100, 30), {60, 30}, {59, 29}, {20, 10}}) {
        const std::string start = "KLSH64(chi2,p=" + std::to_string(p);
        const auto codes = encode(*trained(dim, start + ")", x), x);
        const std::string draw = start + ",t=";
        EXPECT_EQ(
                codes,
                encode(*trained(dim, draw + std::to_string(t) + ")", x), x));
        EXPECT_NE(
                codes,
                encode(*trained(dim, draw + std::to_string(t - 1) + ")", x),
                       x));
    }
}

// A kernel matrix that cannot be used, and then data that can: as if nothing
// had happened.
TEST(Errors, ConstantKernel) {
    const auto x = histograms(100);
    std::vector<float> same(100 * dim);
    for (size_t i = 0; i < 100; i++) {
        std::copy_n(x.begin(), dim, &same[i * dim]);
    }
    auto hash = make(dim, "KLSH64(chi2,p=40,t=8)");
    EXPECT_TRUE(throws([&] { hash->train(100, same.data()); }, {"same"}));
    EXPECT_FALSE(hash->is_trained);
    EXPECT_NO_THROW(hash->train(100, x.data()));
    if (hash->is_trained) {
        EXPECT_EQ(
                encode(*hash, x),
                encode(*trained(dim, "KLSH64(chi2,p=40,t=8)", x), x));
    }
    // all zero: k = 0
    auto zero = make(dim, "KLSH64(chi2,p=40,t=8)");
    const std::vector<float> zeros(100 * dim);
    EXPECT_TRUE(throws([&] { zero->train(100, zeros.data()); }, {"same"}));
}

TEST(Errors, TrainingAgainAfterAFailure) {
    const auto a = histograms(100), b = histograms(100, 2);
    // untrained: the landmarks of the failed call are not kept
    auto hash = make(dim, "KLSH64(expchi2,p=40,t=8,rank=40)");
    EXPECT_TRUE(throws([&] { hash->train(100, a.data()); }, {"rank"}));
    hash->map.rank = 0;
    hash->train(100, b.data());
    EXPECT_EQ(
            encode(*hash, b),
            encode(*trained(dim, "KLSH64(expchi2,p=40,t=8)", b), b));
    // trained: the codes stay as they were
    const auto codes = encode(*hash, b);
    hash->train(100, a.data());
    EXPECT_TRUE(hash->is_trained);
    EXPECT_EQ(encode(*hash, b), codes);
}

TEST(Errors, IndefiniteKernel) {
    const auto x = normal_vectors(100, 6, 1);
    const CallbackKernel negative([](size_t n,
                                     const float* x,
                                     size_t m,
                                     const float* y,
                                     size_t d,
                                     float* out) {
        LinearKernel().block(n, x, m, y, d, out);
        for (size_t i = 0; i < n * m; i++) {
            out[i] = -out[i];
        }
    });
    // -|x - y|^2 / 2 is positive on centred weights only; its negative nowhere
    const CallbackKernel distance([](size_t n,
                                     const float* x,
                                     size_t m,
                                     const float* y,
                                     size_t d,
                                     float* out) {
        LinearKernel().distance_block(n, x, m, y, d, out);
    });
    for (const Kernel* kernel :
         std::vector<const Kernel*>{&negative, &distance}) {
        for (bool nystrom : {false, true}) {
            KernelizedLSH hash(6, 16, kernel);
            hash.map.p = 50;
            hash.map.nystrom = nystrom;
            hash.map.normalize = false;
            EXPECT_TRUE(throws([&] { hash.train(100, x.data()); }));
            EXPECT_FALSE(hash.is_trained);
        }
    }
    KernelizedLSH hash(6, 16, &distance);
    hash.map.p = 50;
    hash.map.nystrom = true;
    hash.map.normalize = false;
    EXPECT_TRUE(throws(
            [&] { hash.train(100, x.data()); }, {"positive semi-definite"}));
}

TEST(Errors, PrecomputedMatrices) {
    const size_t p = 30;
    const auto x = histograms(p);
    std::vector<float> K(p * p);
    kernel_factory("normalized(chi2)")
            ->gram(p, x.data(), p, x.data(), dim, K.data());
    auto hash = make(p, "KLSH64(precomputed,t=5)");
    auto bad = K;
    bad[7 * p + 3] += 0.01f;
    EXPECT_TRUE(
            throws([&] { hash->train(p, bad.data()); },
                   {"symmetric", "(7, 3)", "(3, 7)"}));
    EXPECT_TRUE(throws([&] { hash->train(p - 1, K.data()); }, {"29", "30"}));
    bad = K;
    bad[5] = std::nanf("");
    EXPECT_TRUE(throws(
            [&] { hash->train(p, bad.data()); }, {"component 5 of vector 0"}));
    bad = K;
    for (size_t i = 0; i < p; i++) {
        bad[i * p + i] = -1;
    }
    EXPECT_TRUE(throws(
            [&] { hash->train(p, bad.data()); }, {"positive semi-definite"}));
    EXPECT_TRUE(
            throws([&] { hash->train(p, std::vector<float>(p * p, 1).data()); },
                   {"same"}));
    EXPECT_TRUE(
            throws([&] { hash->set_landmarks(p, K.data()); }, {"precomputed"}));
    EXPECT_FALSE(hash->is_trained);
    hash->train(p, K.data());
    EXPECT_EQ(
            encode(*hash, K),
            encode(*trained(p, "KLSH64(precomputed,t=5)", K), K));
    bad = K;
    bad[2 * p + 9] = std::nanf("");
    std::vector<uint8_t> codes(p * 8);
    EXPECT_TRUE(
            throws([&] { hash->encode(p, bad.data(), codes.data()); },
                   {"component 9 of vector 2"}));
}

// Copies and files.

TEST(Copies, GiveTheSameCodes) {
    const auto x = histograms(400);
    for (const std::string description :
         {"KLSH64(chi2,p=40,t=8)",
          "KLSH64(gaussian,p=40,draw=gauss,rank=16,seed=9)",
          "KLSH64(linear,p=40,center=0,rank=4)",
          "KLSH64(poly,degree=2,p=40,nystrom=1,draw=gauss,normalize=0)",
          "KLSH64(chi2,p=30,rank=auto)",
          "KLSH64(exponential(normalized(js),scale=2),p=40,scale=1)",
          "KLSH64(expchi2,p=40,tolerance=0.01)"}) {
        for (bool train : {false, true}) {
            auto hash = make(dim, description);
            if (train) {
                hash->train(400, x.data());
            }
            const TemporaryFile file;
            write_VectorTransform(hash.get(), file.name.c_str());
            auto read = read_VectorTransform(file.name.c_str());
            const auto copy = hash->clone();
            hash->check_identical(*copy);
            hash->check_identical(*read);
            for (faiss::VectorTransform* vt :
                 {static_cast<faiss::VectorTransform*>(copy.get()),
                  read.get()}) {
                auto& other = dynamic_cast<KernelizedLSH&>(*vt);
                EXPECT_EQ(other.is_trained, train);
                EXPECT_EQ(other.map.p, hash->map.p);
                EXPECT_EQ(other.t, hash->t);
                EXPECT_EQ(other.map.rank, hash->map.rank);
                EXPECT_EQ(other.map.auto_rank, hash->map.auto_rank);
                EXPECT_EQ(other.map.scale, hash->map.scale);
                EXPECT_EQ(other.map.auto_scale, hash->map.auto_scale);
                EXPECT_EQ(other.draw, hash->draw);
                EXPECT_EQ(other.map.nystrom, hash->map.nystrom);
                EXPECT_EQ(other.map.center, hash->map.center);
                EXPECT_EQ(other.map.normalize, hash->map.normalize);
                EXPECT_EQ(other.map.tolerance, hash->map.tolerance);
                EXPECT_EQ(other.map.seed, hash->map.seed);
                EXPECT_EQ(other.map.eigenvalues, hash->map.eigenvalues);
                EXPECT_EQ(other.mean_value, hash->mean_value);
                if (!train) {
                    other.train(400, x.data());
                }
                EXPECT_EQ(
                        encode(other, x),
                        encode(*trained(dim, description, x), x));
            }
        }
    }
}

TEST(Copies, DifferencesAreSeen) {
    const auto x = histograms(200);
    const auto hash = trained(dim, "KLSH64(chi2,p=40,t=8)", x);
    for (const std::string other :
         {"KLSH64(js,p=40,t=8)",
          "KLSH64(chi2,p=41,t=8)",
          "KLSH64(chi2,p=40,t=9)",
          "KLSH64(chi2,p=40,t=8,center=0)",
          "KLSH64(chi2,p=40,t=8,nystrom=1)",
          "KLSH64(chi2,p=40,t=8,rank=9)",
          "KLSH64(chi2,p=40,t=8,scale=1)",
          "KLSH72(chi2,p=40,t=8)",
          "SIK64(gaussian,gamma=1)"}) {
        const auto hash2 = kernel_hash_factory(dim, other);
        if (!hash2->is_trained) {
            hash2->train(200, x.data());
        }
        EXPECT_TRUE(throws([&] { hash->check_identical(*hash2); })) << other;
    }
    EXPECT_TRUE(throws([&] {
        hash->check_identical(*make(dim, "KLSH64(chi2,p=40,t=8)"));
    }));
}

TEST(Copies, TruncatedFiles) {
    const auto x = histograms(100);
    const auto hash = trained(dim, "KLSH16(chi2,p=10,t=3)", x);
    const TemporaryFile file;
    write_VectorTransform(hash.get(), file.name.c_str());
    const auto size = std::filesystem::file_size(file.name);
    for (size_t left = 0; left < size; left += 13) {
        write_VectorTransform(hash.get(), file.name.c_str());
        std::filesystem::resize_file(file.name, left);
        EXPECT_TRUE(throws([&] { read_VectorTransform(file.name.c_str()); }))
                << left << " bytes of " << size;
    }
}

TEST(Indexes, WithEveryStorage) {
    const auto x = histograms(600), q = histograms(20, 3);
    const auto hash = trained(dim, "KLSH64(chi2,p=100,t=20)", x);
    faiss::IndexBinaryFlat flat(64);
    flat.add(600, encode(*hash, x).data());
    std::vector<int32_t> hamming(20 * 5);
    std::vector<idx_t> expected(20 * 5), labels(20 * 5);
    flat.search(
            20, encode(*hash, q).data(), 5, hamming.data(), expected.data());
    for (const std::string storage : {"BFlat", "BPerm(M=400,B=5)"}) {
        const auto index =
                index_factory(dim, "KLSH64(chi2,p=100,t=20)," + storage);
        index->train(600, x.data());
        index->add(600, x.data());
        std::vector<float> found(20 * 5);
        index->search(20, q.data(), 5, found.data(), labels.data());
        EXPECT_EQ(found, std::vector<float>(hamming.begin(), hamming.end()))
                << storage;
        const auto copy = clone_index(index.get());
        std::vector<float> found2(20 * 5);
        std::vector<idx_t> labels2(20 * 5);
        copy->search(20, q.data(), 5, found2.data(), labels2.data());
        EXPECT_EQ(found, found2);
        EXPECT_EQ(labels, labels2);
    }
    // re-ranked by the kernel: a vector finds itself first
    const auto refined = index_factory(
            dim, "KLSH64(chi2,p=100,t=20),BFlat,Refine(KFlat(chi2))");
    refined->train(600, x.data());
    refined->add(600, x.data());
    std::vector<float> one(600);
    std::vector<idx_t> ids(600);
    refined->search(600, x.data(), 1, one.data(), ids.data());
    for (idx_t i = 0; i < 600; i++) {
        EXPECT_EQ(one[i], 0);
    }
}
