// Kernel PCA: inner products and distances of mapped vectors against those of
// the feature space, computed here with Eigen.

#include <faiss_ext/maps/KernelPCA.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <faiss/IndexPreTransform.h>
#include <faiss/impl/io.h>

#include <faiss_ext/hashes/KernelizedLSH.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/CallbackKernel.h>
#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>

#include "testing_klsh.h"

using namespace faiss_ext;
using namespace testing_klsh;

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
    auto map = map_factory(d, text);
    return std::unique_ptr<KernelPCA>(
            &dynamic_cast<KernelPCA&>(*map.release()));
}

std::unique_ptr<KernelPCA> trained(
        int d,
        const std::string& text,
        const std::vector<float>& x) {
    auto map = make(d, text);
    map->train(x.size() / d, x.data());
    return map;
}

std::vector<float> transformed(
        const faiss::VectorTransform& map,
        const std::vector<float>& x) {
    const size_t n = x.size() / map.d_in;
    std::vector<float> z(n * map.d_out);
    map.apply_noalloc(n, x.data(), z.data());
    return z;
}

/// one row for each vector
MatrixXd mapped(
        const faiss::VectorTransform& map,
        const std::vector<float>& x) {
    const std::vector<float> z = transformed(map, x);
    return Eigen::Map<const FloatRows>(z.data(), x.size() / map.d_in, map.d_out)
            .cast<double>();
}

/// kernel values as the parameters say: normalised, transformed
MatrixXd kernel_values(
        const KernelPCA& map,
        const std::vector<float>& x,
        const std::vector<float>& y) {
    const size_t d = map.d_in, n = x.size() / d, m = y.size() / d;
    FloatRows values(n, m);
    map.kernel->gram(n, x.data(), m, y.data(), d, values.data());
    MatrixXd K = values.cast<double>();
    for (size_t i = 0; i < n && map.normalize; i++) {
        const float xx = (*map.kernel)(&x[i * d], &x[i * d], d);
        K.row(i) *= xx > 0 ? 1 / std::sqrt(double(xx)) : 0;
    }
    for (size_t j = 0; j < m && map.normalize; j++) {
        const float yy = (*map.kernel)(&y[j * d], &y[j * d], d);
        K.col(j) *= yy > 0 ? 1 / std::sqrt(double(yy)) : 0;
    }
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

struct Case {
    std::string parameters;
    int rank; ///< full
};

/// of 40 landmarks in general position; the linear kernel has the rank of the
/// space
const std::vector<Case> cases = {
        {"gaussian,gamma=30", 39},
        {"laplacian,gamma=0.5", 39},
        {"chi2", 39},
        {"chi2,scale=3", 39},
        {"chi2,normalize=0", 39},
        {"js,nystrom=1,center=0", 40},
        {"gaussian,gamma=30,nystrom=1", 40},
        {"expchi2", 39}};

std::string text_of(const std::string& parameters, int rank, int p = 40) {
    return "KPCA" + std::to_string(rank) + "(" + parameters +
            ",p=" + std::to_string(p) + ")";
}

} // namespace

// At full rank nothing of the landmarks is lost: Z Z' is their kernel matrix,
// centred unless center=0, and distances are those in the feature space. The
// coordinates lose a part of 1e-6 sqrt(K'_ii / theta) each.
TEST(KernelPCA, LandmarksAtFullRank) {
    const auto x = histograms(300);
    for (const Case& c : cases) {
        const auto map = trained(dim, text_of(c.parameters, c.rank), x);
        ASSERT_EQ(map->landmarks.size(), size_t(40 * dim)) << c.parameters;
        EXPECT_EQ(map->d_out, c.rank);
        const MatrixXd K = kernel_values(*map, map->landmarks, map->landmarks);
        const MatrixXd expected = map->center ? centred(K) : K;
        const MatrixXd Z = mapped(*map, map->landmarks), G = Z * Z.transpose();
        ASSERT_EQ(Z.cols(), c.rank);
        // it says something: the smallest eigenvalue counts
        EXPECT_GT(map->eigenvalues.back(), 1e-3) << c.parameters;
        for (int i = 0; i < 40; i++) {
            for (int j = 0; j < 40; j++) {
                EXPECT_NEAR(G(i, j), expected(i, j), 1e-4) << c.parameters;
                const double distance = K(i, i) + K(j, j) - 2 * K(i, j);
                EXPECT_NEAR((Z.row(i) - Z.row(j)).squaredNorm(), distance, 2e-4)
                        << c.parameters;
            }
        }
        // the mean of the landmarks is the origin
        if (map->center) {
            EXPECT_LT(Z.colwise().mean().cwiseAbs().maxCoeff(), 1e-4)
                    << c.parameters;
        }
    }
}

// Of lower rank it is the best approximation of that rank: what is lost is the
// sum of the other eigenvalues.
TEST(KernelPCA, LowRankKeepsTheLargestEigenvalues) {
    const auto x = histograms(300);
    for (const std::string parameters : {"chi2", "gaussian,gamma=8,scale=2"}) {
        const auto all = trained(dim, text_of(parameters, 39), x);
        for (int rank : {1, 5, 20}) {
            const auto map = trained(dim, text_of(parameters, rank), x);
            EXPECT_EQ(map->landmarks, all->landmarks);
            ASSERT_EQ(map->eigenvalues.size(), size_t(rank));
            const MatrixXd K =
                    kernel_values(*map, map->landmarks, map->landmarks);
            const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(centred(K));
            const VectorXd theta = solver.eigenvalues().reverse();
            const MatrixXd U = solver.eigenvectors().rowwise().reverse();
            const MatrixXd Z = mapped(*map, map->landmarks);
            EXPECT_NEAR(
                    (centred(K) - Z * Z.transpose()).norm(),
                    theta.tail(40 - rank).norm(),
                    1e-4);
            // coordinates are the first ones of the full map, and those of the
            // formula but for their signs
            const MatrixXd first = mapped(*all, map->landmarks).leftCols(rank);
            for (int i = 0; i < rank; i++) {
                EXPECT_NEAR(map->eigenvalues[i], theta[i], 1e-5 * theta[0]);
                EXPECT_NEAR(Z.col(i).norm(), std::sqrt(theta[i]), 1e-4);
                EXPECT_LT((Z.col(i) - first.col(i)).norm(), 1e-4);
                const double gap = std::min(
                        i > 0 ? theta[i - 1] - theta[i] : 1,
                        theta[i] - theta[i + 1]);
                EXPECT_NEAR(
                        std::abs(Z.col(i).dot(U.col(i))),
                        std::sqrt(theta[i]),
                        1e-4 / gap);
            }
        }
    }
}

// Any vectors: z(x) = Theta^(-1/2) U' (k(x) - c), in double.
TEST(KernelPCA, EqualsTheFormula) {
    const auto x = histograms(300), q = histograms(50, 2);
    for (const std::string parameters :
         {"chi2,rank=10",
          "chi2,rank=10,center=0",
          "chi2,rank=10,nystrom=1",
          "js,rank=10,nystrom=1,center=0",
          "linear,rank=6,normalize=0",
          "linear,rank=6",
          "poly,degree=2,rank=8,scale=2",
          "gaussian,rank=12"}) {
        const auto map = trained(dim, "KPCA(" + parameters + ",p=60)", x);
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
        // (signs, and bases of nearly equal eigenvalues, are free)
        EXPECT_LT(
                (Z * Z.transpose() - expected * expected.transpose()).norm(),
                1e-3 * expected.squaredNorm())
                << parameters;
    }
}

// Away from the landmarks, the map is the projection of the feature space onto
// their span: distances shrink.
TEST(KernelPCA, DistancesOfOthersAreNoLarger) {
    const auto x = histograms(300), q = histograms(60, 5);
    for (const Case& c : cases) {
        const auto map = trained(dim, text_of(c.parameters, c.rank), x);
        const MatrixXd K = kernel_values(*map, q, q), Z = mapped(*map, q);
        double kept = 0, all = 0;
        for (int i = 0; i < 60; i++) {
            for (int j = 0; j < i; j++) {
                const double distance = K(i, i) + K(j, j) - 2 * K(i, j);
                const double found = (Z.row(i) - Z.row(j)).squaredNorm();
                EXPECT_LT(found, distance + 1e-3) << c.parameters;
                kept += found;
                all += distance;
            }
        }
        EXPECT_GT(kept, 0.02 * all) << c.parameters;
    }
}

// The linear kernel without normalisation spans the space: the map is a
// rotation about the landmarks' mean.
TEST(KernelPCA, OfTheLinearKernelIsPCA) {
    const int d = 12;
    const auto x = normal_vectors(400, d, 6), q = normal_vectors(30, d, 7);
    const auto map = trained(d, "KPCA12(linear,p=100,normalize=0)", x);
    const MatrixXd Z = mapped(*map, q);
    for (int i = 0; i < 30; i++) {
        for (int j = 0; j < i; j++) {
            double distance = 0;
            for (int k = 0; k < d; k++) {
                distance += std::pow(double(q[i * d + k]) - q[j * d + k], 2);
            }
            EXPECT_NEAR(
                    (Z.row(i) - Z.row(j)).squaredNorm(),
                    distance,
                    1e-4 * distance);
        }
    }
    EXPECT_TRUE(
            throws([&] { trained(d, "KPCA13(linear,p=100,normalize=0)", x); },
                   {"rank = 13", "rank 12"}));
}

TEST(KernelPCA, PrecomputedRows) {
    const auto x = histograms(300), q = histograms(50, 2);
    for (const std::string parameters :
         {"", ",scale=3", ",nystrom=1", ",nystrom=1,center=0"}) {
        const auto map = trained(
                dim, "KPCA9(gaussian,gamma=10,p=60" + parameters + ")", x);
        const auto gram = [&](const std::vector<float>& v) {
            std::vector<float> values(v.size() / dim * 60);
            map->kernel->gram(
                    v.size() / dim,
                    v.data(),
                    60,
                    map->landmarks.data(),
                    dim,
                    values.data());
            return values;
        };
        const auto precomputed =
                trained(60,
                        "KPCA9(precomputed" + parameters + ")",
                        gram(map->landmarks));
        EXPECT_FALSE(precomputed->kernel);
        EXPECT_EQ(precomputed->p, 60);
        EXPECT_EQ(transformed(*precomputed, gram(q)), transformed(*map, q))
                << parameters;
        EXPECT_EQ(
                transformed(*precomputed->clone(), gram(q)),
                transformed(*map, q));
    }
}

TEST(KernelPCA, GivenLandmarksAndSeeds) {
    const auto x = histograms(300);
    const auto drawn = trained(dim, "KPCA9(chi2,p=40,seed=3)", x);
    drawn->check_identical(*trained(dim, "KPCA9(chi2,p=40,seed=3)", x));
    EXPECT_TRUE(throws([&] {
        drawn->check_identical(*trained(dim, "KPCA9(chi2,p=40,seed=4)", x));
    }));
    auto given = make(dim, "KPCA9(chi2,p=300)");
    given->set_landmarks(40, drawn->landmarks.data());
    given->train(0, nullptr);
    EXPECT_EQ(transformed(*given, x), transformed(*drawn, x));
    EXPECT_TRUE(throws(
            [&] { given->set_landmarks(40, x.data()); }, {"is trained"}));
    // the landmarks are those of KLSH
    const auto hash = kernel_hash_factory(dim, "KLSH64(chi2,p=40,seed=3)");
    hash->train(300, x.data());
    EXPECT_EQ(
            dynamic_cast<const KernelizedLSH&>(*hash).map.landmarks,
            drawn->landmarks);
}

TEST(KernelPCA, ThreadsAndBatches) {
    const auto x = histograms(300), q = histograms(101, 3);
    std::unique_ptr<KernelPCA> one;
    std::vector<float> z;
    {
        const Threads threads(1);
        one = trained(dim, "KPCA20(chi2,p=100)", x);
        z = transformed(*one, q);
    }
    for (int n : {2, 5}) {
        const Threads threads(n);
        const auto map = trained(dim, "KPCA20(chi2,p=100)", x);
        map->check_identical(*one);
        EXPECT_EQ(transformed(*map, q), z);
    }
    for (size_t batch : {1, 7, 64}) {
        std::vector<float> parts;
        for (size_t i = 0; i < 101; i += batch) {
            const auto part = transformed(
                    *one, rows(q, dim, i, std::min<size_t>(101, i + batch)));
            parts.insert(parts.end(), part.begin(), part.end());
        }
        EXPECT_EQ(parts, z) << batch;
    }
}

TEST(KernelPCA, FilesAndCopies) {
    const auto x = histograms(300);
    for (const std::string text :
         {"KPCA9(chi2,p=40)",
          "KPCA9(gaussian,p=40,seed=9,scale=2)",
          "KPCA6(linear,p=40,center=0,normalize=0)",
          "KPCA9(expchi2,p=40,nystrom=1,tolerance=0.0001)"}) {
        for (bool train : {false, true}) {
            auto map = make(dim, text);
            if (train) {
                map->train(300, x.data());
            }
            const TemporaryFile file;
            write_VectorTransform(map.get(), file.name.c_str());
            const auto read = read_VectorTransform(file.name.c_str());
            const auto copy = map->clone();
            for (faiss::VectorTransform* vt :
                 {static_cast<faiss::VectorTransform*>(copy.get()),
                  read.get()}) {
                auto& other = dynamic_cast<KernelPCA&>(*vt);
                map->check_identical(other);
                EXPECT_EQ(other.is_trained, train) << text;
                EXPECT_EQ(other.d_in, dim);
                EXPECT_EQ(other.d_out, map->d_out);
                EXPECT_EQ(other.landmarks, map->landmarks);
                EXPECT_EQ(other.eigenvalues, map->eigenvalues);
                if (!train) {
                    other.train(300, x.data());
                }
                EXPECT_EQ(
                        transformed(other, x),
                        transformed(*trained(dim, text, x), x));
            }
            // its string makes it again, and so does that of a trained one
            const auto again = make(dim, map->description());
            again->train(300, x.data());
            EXPECT_EQ(
                    transformed(*again, x),
                    transformed(*trained(dim, text, x), x))
                    << map->description();
        }
    }
    // cut anywhere, a file is refused
    const auto map = trained(dim, "KPCA3(chi2,p=10)", x);
    faiss::VectorIOWriter writer;
    write_VectorTransform(map.get(), &writer);
    for (size_t size = 0; size < writer.data.size(); size++) {
        faiss::VectorIOReader reader;
        reader.data.assign(writer.data.begin(), writer.data.begin() + size);
        ASSERT_TRUE(throws([&] { read_VectorTransform(&reader); })) << size;
    }
}

// What is read from a damaged file is an error or a map that works.
TEST(KernelPCA, DamagedFiles) {
    const auto x = histograms(60);
    const auto map = trained(dim, "KPCA3(chi2,p=5)", x);
    faiss::VectorIOWriter writer;
    write_VectorTransform(map.get(), &writer);
    size_t errors = 0;
    for (size_t i = 0; i < writer.data.size(); i++) {
        for (int change : {1, 0x40, 0x80, 0xff}) {
            faiss::VectorIOReader reader;
            reader.data = writer.data;
            reader.data[i] = uint8_t(reader.data[i] ^ change);
            std::unique_ptr<faiss::VectorTransform> read;
            try {
                read = read_VectorTransform(&reader);
            } catch (const faiss::FaissException&) {
                errors++;
                continue;
            }
            ASSERT_LE(read->d_in, 1000) << i;
            if (!read->is_trained) {
                continue;
            }
            try {
                transformed(*read, std::vector<float>(read->d_in, 0.5f));
            } catch (const faiss::FaissException&) {
                // values that overflow, by a damaged matrix
            }
        }
    }
    EXPECT_GT(errors, 100u);
}

TEST(KernelPCA, InIndexes) {
    const auto x = histograms(400), q = histograms(20, 3);
    for (const std::string behind : {"Flat", "IVF8,Flat", "HNSW16"}) {
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            const std::string text = "KPCA12(chi2,p=60)," + behind;
            const auto index = index_factory(dim, text, metric);
            EXPECT_FALSE(index->is_trained);
            index->train(400, x.data());
            index->add(400, x.data());
            std::vector<float> found(20 * 5), again(20 * 5);
            std::vector<idx_t> labels(20 * 5), labels_again(20 * 5);
            index->search(20, q.data(), 5, found.data(), labels.data());
            if (behind == "Flat" && metric == faiss::METRIC_L2) {
                // by hand
                const auto map = trained(dim, "KPCA12(chi2,p=60)", x);
                const MatrixXd Z = mapped(*map, x), Q = mapped(*map, q);
                for (int i = 0; i < 20; i++) {
                    const VectorXd distances =
                            (Z.rowwise() - Q.row(i)).rowwise().squaredNorm();
                    EXPECT_NEAR(found[i * 5], distances.minCoeff(), 1e-4);
                    EXPECT_NEAR(found[i * 5], distances[labels[i * 5]], 1e-4);
                }
            }
            const TemporaryFile file;
            write_index(index.get(), file.name.c_str());
            const auto read = read_index(file.name.c_str());
            const auto copy = clone_index(index.get());
            for (const faiss::Index* other : {read.get(), copy.get()}) {
                other->search(
                        20, q.data(), 5, again.data(), labels_again.data());
                EXPECT_EQ(again, found) << text;
                EXPECT_EQ(labels_again, labels) << text;
            }
        }
    }
}

TEST(KernelPCA, Errors) {
    for (const auto& [text, says] :
         std::vector<std::pair<std::string, std::string>>{
                 {"KPCA(chi2)", "rank"},
                 {"KPCA0(chi2)", "rank"},
                 {"KPCA64", "argument"},
                 {"KPCA64(nothing)", "unknown kernel 'nothing'"},
                 {"KPCA64(chi2,p=63)", "1 to 63"},
                 {"KPCA4(chi2,p=1)", "2 to 8192"},
                 {"KPCA4(chi2,p=8193)", "2 to 8192"},
                 {"KPCA4(chi2,rank=5)", "rank is given twice"},
                 {"KPCA(chi2,rank=auto)", "'auto' of rank"},
                 {"KPCA4(chi2,scale=auto)", "'auto' of scale"},
                 {"KPCA4(chi2,scale=-1)", "'-1' of scale"},
                 {"KPCA4(chi2,center=2)", "'2' of center"},
                 {"KPCA4(chi2,t=3)", "unknown key 't'"},
                 {"KPCA4(precomputed,gamma=1)", "gamma"},
                 {"KPCA4(precomputed,p=20)", "p"}}) {
        EXPECT_TRUE(throws([&] { make(dim, text); }, {text, says})) << text;
    }
    const auto x = histograms(100);
    auto map = make(dim, "KPCA4(chi2,p=40)");
    EXPECT_TRUE(throws([&] { transformed(*map, x); }, {"not trained"}));
    EXPECT_TRUE(throws([&] { map->train(39, x.data()); }, {"39", "40"}));
    auto bad = x;
    bad[70 * dim + 5] = -1;
    EXPECT_TRUE(
            throws([&] { map->train(100, bad.data()); },
                   {"component 5 of vector 70"}));
    const std::vector<float> zeros(100 * dim);
    EXPECT_TRUE(throws([&] { map->train(100, zeros.data()); }, {"same"}));
    EXPECT_FALSE(map->is_trained);
    EXPECT_TRUE(map->landmarks.empty());
    map->train(100, x.data());
    EXPECT_EQ(
            transformed(*map, x),
            transformed(*trained(dim, "KPCA4(chi2,p=40)", x), x));
    EXPECT_TRUE(throws(
            [&] { transformed(*map, bad); }, {"component 5 of vector 70"}));
    // training again has no effect
    const auto z = transformed(*map, x);
    map->train(100, histograms(100, 2).data());
    EXPECT_EQ(transformed(*map, x), z);
    // constructors
    const GaussianKernel gaussian(2);
    EXPECT_TRUE(throws([&] { KernelPCA(dim, 0, &gaussian); }, {"rank"}));
    EXPECT_EQ(KernelPCA(dim, 301, &gaussian).p, 301);
    EXPECT_TRUE(throws([&] { KernelPCA(dim, 8193, &gaussian); }));
    EXPECT_TRUE(throws([&] { KernelPCA(0, 4, &gaussian); }, {"dimension"}));
    // not positive semi-definite
    const CallbackKernel negative([](size_t n,
                                     const float* a,
                                     size_t m,
                                     const float* b,
                                     size_t d,
                                     float* out) {
        LinearKernel().block(n, a, m, b, d, out);
        for (size_t i = 0; i < n * m; i++) {
            out[i] = -out[i];
        }
    });
    KernelPCA indefinite(dim, 4, &negative);
    indefinite.p = 40;
    indefinite.normalize = false;
    EXPECT_TRUE(throws([&] { indefinite.train(100, x.data()); }));
    EXPECT_FALSE(indefinite.is_trained);
}
