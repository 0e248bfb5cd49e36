// SPDX-License-Identifier: MIT
// Kernel PCA: inner products and distances of mapped vectors against those in
// the feature space, computed with Eigen.

#include <faiss_ext/maps/KernelPCA.h>

#include <Eigen/Dense>

#include <faiss_ext/hashes/KernelizedLSH.h>
#include <faiss_ext/hashes/hash_registry.h>
#include <faiss_ext/kernels/CallbackKernel.h>
#include <faiss_ext/kernels/NormalizedKernel.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using FloatRows =
        Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int dim = 24;

std::vector<float> histograms(size_t n, uint64_t seed = 1) {
    return clustered_histograms(n, dim, 8, 40, seed);
}

std::unique_ptr<KernelPCA> make(int d, const std::string& text) {
    auto map = map_factory(d, text).release();
    return std::unique_ptr<KernelPCA>(&dynamic_cast<KernelPCA&>(*map));
}

std::unique_ptr<KernelPCA> trained(
        const std::string& text,
        const std::vector<float>& x,
        int d = dim) {
    auto map = make(d, text);
    map->train(x.size() / d, x.data());
    return map;
}

MatrixXd matrix(const std::vector<float>& values, size_t nrows) {
    const size_t ncolumns = values.size() / nrows;
    return Eigen::Map<const FloatRows>(values.data(), nrows, ncolumns)
            .cast<double>();
}

/// Returns one row per vector.
MatrixXd mapped(const KernelPCA& map, const std::vector<float>& x) {
    return matrix(applied(map, x), x.size() / dim);
}

/// Computes kernel values with the map's parameters: normalised, transformed.
MatrixXd kernel_values(
        const KernelPCA& map,
        const std::vector<float>& x,
        const std::vector<float>& y) {
    const NormalizedKernel normalized(*map.kernel);
    const Kernel* kernel = map.normalize ? &normalized : map.kernel.get();
    MatrixXd K = matrix(kernel_block(*kernel, x, y, dim), x.size() / dim);
    if (map.scale > 0) {
        K = (map.scale * (K.array() - 1)).exp().matrix();
    }
    return K;
}

MatrixXd centred(const MatrixXd& K) {
    const VectorXd means = K.rowwise().mean();
    return (K.colwise() - means).rowwise() - means.transpose() +
            MatrixXd::Constant(K.rows(), K.cols(), K.mean());
}

/// Computes squared distances of points from their inner products.
MatrixXd distances(const MatrixXd& G) {
    const MatrixXd self = G.diagonal().replicate(1, G.cols());
    return self + self.transpose() - 2 * G;
}

double largest(const MatrixXd& A) {
    return A.cwiseAbs().maxCoeff();
}

} // namespace

// At full rank, landmarks are mapped without loss: Z Z' is their kernel matrix,
// centred unless center=0, and distances equal those in the feature space. The
// coordinates lose a part of 1e-6 sqrt(K'_ii / theta) each. For other vectors,
// the map is the projection of the feature space onto the span of the
// landmarks, so distances shrink.
TEST(KernelPCA, KeepsTheFeatureSpaceOfTheLandmarks) {
    const auto x = histograms(300), q = histograms(40, 5);
    // 40 landmarks in general position
    for (const std::string parameters :
         {"39(gaussian,gamma=30",
          "39(laplacian,gamma=0.5",
          "39(chi2,scale=3",
          "39(chi2,normalize=0",
          "40(js,nystrom=1,center=0",
          "40(gaussian,gamma=30,nystrom=1",
          "39(expchi2"}) {
        SCOPED_TRACE(parameters);
        const auto map = trained("KPCA" + parameters + ",p=40)", x);
        const auto& y = map->landmarks;
        ASSERT_EQ(y.size(), size_t(40 * dim));
        EXPECT_EQ(map->d_out, map->rank);
        // the test is meaningful: the smallest eigenvalue matters
        EXPECT_GT(map->eigenvalues.back(), 1e-3);
        const MatrixXd K = kernel_values(*map, y, y), Z = mapped(*map, y);
        const MatrixXd G = Z * Z.transpose();
        EXPECT_LT(largest(G - (map->center ? centred(K) : K)), 1e-4);
        EXPECT_LT(largest(distances(G) - distances(K)), 2e-4);
        if (map->center) { // the mean of the landmarks is the origin
            EXPECT_LT(largest(Z.colwise().mean()), 1e-4);
        }
        const MatrixXd Zq = mapped(*map, q);
        const MatrixXd found = distances(Zq * Zq.transpose());
        const MatrixXd all = distances(kernel_values(*map, q, q));
        EXPECT_LT((found - all).maxCoeff(), 1e-3);
        EXPECT_GT(found.sum(), 0.02 * all.sum());
    }
}

// For any vector z(x) = Theta^(-1/2) U' (k(x) - c), in double. For a zero
// vector k(x) is 0.
TEST(KernelPCA, EqualsTheFormula) {
    const auto x = histograms(300);
    auto q = histograms(50, 2);
    std::fill_n(q.begin(), dim, 0);
    for (const std::string parameters :
         {"chi2,rank=10",
          "chi2,rank=10,center=0",
          "chi2,rank=10,nystrom=1",
          "js,rank=10,nystrom=1,center=0",
          "linear,rank=6,normalize=0",
          "poly,degree=2,rank=8,scale=2",
          "gaussian,rank=12"}) {
        const auto map = trained("KPCA(" + parameters + ",p=60)", x);
        const MatrixXd K = kernel_values(*map, map->landmarks, map->landmarks);
        const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(
                map->nystrom ? K : centred(K));
        const VectorXd theta = solver.eigenvalues().reverse().head(map->rank);
        const MatrixXd U =
                solver.eigenvectors().rowwise().reverse().leftCols(map->rank);
        MatrixXd values = kernel_values(*map, q, map->landmarks);
        if (map->center) {
            values.rowwise() -= K.colwise().mean();
        }
        const MatrixXd expected =
                values * U * theta.cwiseSqrt().cwiseInverse().asDiagonal();
        const MatrixXd Z = mapped(*map, q);
        ASSERT_EQ(map->eigenvalues.size(), size_t(map->rank));
        for (int i = 0; i < map->rank; i++) {
            EXPECT_NEAR(map->eigenvalues[i], theta[i], 1e-5 * theta[0]);
        }
        // signs, and bases of nearly equal eigenvalues, are not unique
        EXPECT_LT(
                (Z * Z.transpose() - expected * expected.transpose()).norm(),
                1e-3 * expected.squaredNorm())
                << parameters;
    }
}

TEST(KernelPCA, PrecomputedRows) {
    const auto x = histograms(300), q = histograms(50, 2);
    for (const std::string parameters :
         {"", ",scale=3", ",nystrom=1,center=0"}) {
        const auto map =
                trained("KPCA9(gaussian,gamma=10,p=60" + parameters + ")", x);
        const auto values = [&](const std::vector<float>& v) {
            return kernel_block(*map->kernel, v, map->landmarks, dim);
        };
        const std::string text = "KPCA9(precomputed" + parameters + ")";
        const auto precomputed = trained(text, values(map->landmarks), 60);
        EXPECT_FALSE(precomputed->kernel);
        EXPECT_EQ(precomputed->p, 60);
        EXPECT_EQ(applied(*precomputed, values(q)), applied(*map, q));
        EXPECT_EQ(applied(*precomputed->clone(), values(q)), applied(*map, q));
    }
    // matrices that are not from a kernel
    const int p = 20;
    const auto train = [&](int rows, float at_0_0, float at_3_1) {
        FloatRows K = FloatRows::Identity(p, p);
        K(0, 0) = at_0_0;
        K(3, 1) = at_3_1;
        const auto map = make(p, "KPCA4(precomputed)");
        map->train(rows, K.data());
        return map->is_trained;
    };
    EXPECT_TRUE(train(p, 1, 0));
    EXPECT_TRUE(throws([&] { train(p - 1, 1, 0); }, "19", "20 x 20"));
    EXPECT_TRUE(throws([&] { train(p, 1, 0.01f); }, "symmetric", "(3, 1)"));
    EXPECT_TRUE(throws([&] { train(p, -0.1f, 0); }, "semi-definite"));
    EXPECT_TRUE(throws([&] { train(p, NAN, 0); }, "component 0 of vector 0"));
}

TEST(KernelPCA, GivenLandmarksAndSeeds) {
    const auto x = histograms(300);
    const auto drawn = trained("KPCA9(chi2,p=40,seed=3)", x);
    const auto other = trained("KPCA9(chi2,p=40,seed=4)", x);
    drawn->check_identical(*trained("KPCA9(chi2,p=40,seed=3)", x));
    EXPECT_TRUE(throws([&] { drawn->check_identical(*other); }));
    EXPECT_NE(drawn->landmarks, other->landmarks);
    auto given = make(dim, "KPCA9(chi2,p=300)");
    given->set_landmarks(40, drawn->landmarks.data());
    EXPECT_EQ(given->p, 40);
    given->train(0, nullptr);
    EXPECT_EQ(applied(*given, x), applied(*drawn, x));
    const auto set_again = [&] { given->set_landmarks(40, x.data()); };
    EXPECT_TRUE(throws(set_again, "already trained"));
    // the landmarks are the same as KLSH's
    const auto hash = kernel_hash_factory(dim, "KLSH64(chi2,p=40,seed=3)");
    hash->train(300, x.data());
    const auto& klsh = dynamic_cast<const KernelizedLSH&>(*hash);
    EXPECT_EQ(klsh.map.landmarks, drawn->landmarks);
}

TEST(KernelPCA, Errors) {
    const std::pair<const char*, const char*> cases[] = {
            {"KPCA(chi2)", "rank"},
            {"KPCA0(chi2)", "rank"},
            {"KPCA64", "argument"},
            {"KPCA64(chi2,p=63)", "1 to 63"},
            {"KPCA4(chi2,p=1)", "2 to 8192"},
            {"KPCA4(chi2,p=8193)", "2 to 8192"},
            {"KPCA4(chi2,rank=5)", "rank"},
            {"KPCA(chi2,rank=auto)", "'auto' of rank"},
            {"KPCA4(chi2,scale=auto)", "'auto' of scale"},
            {"KPCA4(precomputed,gamma=1)", "gamma"},
            {"KPCA4(precomputed,p=20)", "p"}};
    for (const auto& [text, names] : cases) {
        EXPECT_TRUE(throws([&text = text] { make(dim, text); }, text, names));
    }
    const GaussianKernel gaussian(2);
    EXPECT_TRUE(throws([&] { KernelPCA(dim, 0, &gaussian); }, "rank"));
    EXPECT_EQ(KernelPCA(dim, 301, &gaussian).p, 301);
    EXPECT_TRUE(throws([&] { KernelPCA(dim, 8193, &gaussian); }, "8193"));
    EXPECT_TRUE(throws([&] { KernelPCA(0, 4, &gaussian); }, "dimension"));

    const auto x = histograms(100);
    const std::vector<float> zeros(100 * dim);
    const auto map = make(dim, "KPCA4(chi2,p=40)");
    EXPECT_TRUE(throws([&] { map->train(39, x.data()); }, "39", "40"));
    EXPECT_TRUE(throws([&] { map->train(100, zeros.data()); }, "same"));
    EXPECT_FALSE(map->is_trained);
    EXPECT_TRUE(map->landmarks.empty());
    EXPECT_TRUE(throws([&] { map->set_landmarks(3, x.data()); }, "4", "3"));
    EXPECT_TRUE(map->landmarks.empty());
    const auto too_many = [&] {
        trained("KPCA25(linear,normalize=0,p=90)", x);
    };
    EXPECT_TRUE(throws(too_many, "rank is 25", "rank 2"));

    // not positive semi-definite
    const CallbackKernel negative([](auto... arguments) {
        const auto [n, x, m, y, d, out] = std::make_tuple(arguments...);
        std::fill_n(out, n * m, -1.0f);
    });
    KernelPCA indefinite(dim, 4, &negative);
    const auto many = histograms(400);
    EXPECT_TRUE(throws(
            [&] { indefinite.train(400, many.data()); }, "semi-definite"));
    EXPECT_FALSE(indefinite.is_trained);
}
