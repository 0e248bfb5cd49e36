// SPDX-License-Identifier: MIT
// Maps, hashes and projections of sparse vectors.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <set>

#include <faiss/impl/io.h>

#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/hashes/ProjectionHash.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/kernel_registry.h>
#include <faiss_ext/maps/FeatureMap.h>
#include <faiss_ext/projections/BilinearProjection.h>
#include <faiss_ext/projections/DenseProjection.h>
#include <faiss_ext/projections/GeneratedProjection.h>
#include <faiss_ext/projections/StructuredProjection.h>

#include "testing.h"
#include "testing_sparse.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

using Kind = ProjectionChoice::Kind;

constexpr int widest = std::numeric_limits<int32_t>::max();

/// The same vectors with components in another order, and each in two parts.
Rows scattered(const Rows& rows) {
    Rows other{rows.d, {0}, {}, {}};
    for (idx_t i = 0; i < rows.n(); i++) {
        for (int part = 0; part < 2; part++) {
            for (int64_t j = rows.indptr[i + 1] - 1; j >= rows.indptr[i]; j--) {
                other.indices.push_back(rows.indices[j]);
                other.values.push_back(rows.values[j] / 2);
            }
        }
        other.indptr.push_back(int64_t(other.indices.size()));
    }
    return other;
}

std::vector<uint32_t> bits(const Floats& values) {
    std::vector<uint32_t> all;
    for (float v : values) {
        all.push_back(std::bit_cast<uint32_t>(v));
    }
    return all;
}

/// Vectors with few components, with all, with none, and with one.
Rows mixed(idx_t d, bool is_signed, int seed) {
    Rows rows = draw(60, d, 6, false, seed);
    std::map<int32_t, float> full;
    std::mt19937 rng(seed);
    std::uniform_real_distribution<float> value(0.1f, 1);
    for (int32_t k = 0; k < d; k++) {
        full[k] = value(rng) / float(d);
    }
    rows.add(full);
    rows.add({});
    rows.add({{int32_t(d - 1), 1.0f}});
    return is_signed ? with_signs(rows) : rows;
}

template <class T>
void expect_same_results(const T& transform, const Rows& rows) {
    const idx_t n = rows.n();
    const Floats x = rows.dense();
    Floats expected(n * transform.d_out), got(expected);
    transform.apply_noalloc(n, x.data(), expected.data());
    for (const Rows& form : {rows, scattered(rows)}) {
        std::fill(got.begin(), got.end(), -1.0f);
        transform.apply_sparse(form.get(), got.data());
        EXPECT_EQ(bits(got), bits(expected));
    }
    // one at a time, as queries are
    for (idx_t i = 0; i < n; i++) {
        transform.apply_sparse(
                rows.get().slice(i, i + 1), got.data() + i * transform.d_out);
    }
    EXPECT_EQ(bits(got), bits(expected));
}

} // namespace

struct SparseHashes : testing::TestWithParam<const char*> {};

TEST_P(SparseHashes, EqualDenseOnes) {
    const std::string text = GetParam();
    const bool is_signed = text.starts_with("SIK") ||
            text.starts_with("RHBE") || text.find("sign") != std::string::npos;
    for (idx_t d : {50, 300}) {
        const auto hash = kernel_hash_factory(int(d), text);
        const Rows train = draw(200, d, 8, false, 3);
        hash->train(train.n(), train.dense().data());
        const Rows rows = mixed(d, is_signed, 4);
        expect_same_results(*hash, rows);
        std::vector<uint8_t> codes(rows.n() * hash->code_size()), same(codes);
        const Floats x = rows.dense();
        hash->encode(rows.n(), x.data(), codes.data());
        hash->encode_sparse(scattered(rows).get(), same.data());
        EXPECT_EQ(codes, same);
    }
}

INSTANTIATE_TEST_SUITE_P(
        Strings,
        SparseHashes,
        testing::Values(
                "SIK64(gaussian)",
                "SIK40(gaussian,proj=dense)",
                "SIK64(gaussian,proj=generated)",
                "SIK64(laplacian)",
                "SIK24(laplacian,gamma=2,proj=generated)",
                "SIK64(matern,nu=2.2,gamma=1,proj=generated)",
                "BSIK64",
                "RHBE64",
                "RHBE72(center=1,proj=dense)",
                "RHBE72(center=1,proj=generated)",
                "RHBE64(rot=pca)",
                "RHBE64(proj=bilinear)",
                "AHK64(chi2)",
                "AHK64(js,order=2,center=1)",
                "AHK264(chi2,proj=dense)",
                "AHK64(chi2,proj=generated)",
                "AHK64(js,proj=generated,norm=l1,order=3,negative=sign)",
                "AHK64(hellinger,proj=generated)",
                "AHK64(chi2,rot=itq)",
                "CWS64",
                "SCR64",
                "SH64",
                "KLSH64(chi2,p=40)"));

// 2,500 vectors are several blocks. The features of some are all 0.
TEST(SparseTraining, EqualsDenseTraining) {
    for (const char* text :
         {"RHBE64(center=1)",
          "RHBE64(center=1,proj=generated)",
          "AHK64(chi2,center=1,proj=dense)",
          "AHK64(js,order=2,center=1,proj=generated)"}) {
        SCOPED_TRACE(text);
        Rows rows = draw(2500, 90, 6, false, 8);
        rows.add({});
        const auto dense = kernel_hash_factory(90, text);
        const auto sparse = kernel_hash_factory(90, text);
        dense->train(rows.n(), rows.dense().data());
        sparse->train_sparse(scattered(rows).get());
        EXPECT_TRUE(sparse->is_trained);
        dense->check_identical(*sparse);
        sparse->train_sparse(rows.get()); // no effect
        dense->check_identical(*sparse);
    }
    // the others learn from dense copies
    for (const char* text :
         {"AHK64(chi2,rot=pca)", "SH64", "RHBE64(rot=itq)"}) {
        const auto hash = kernel_hash_factory(90, text);
        hash->train_sparse(draw(2500, 90, 6, false, 8).get());
        EXPECT_TRUE(hash->is_trained);
    }
    const auto hash = kernel_hash_factory(90, "RHBE64(center=1)");
    EXPECT_TRUE(
            throws([&] { hash->train_sparse(draw(0, 90, 6, false, 8).get()); },
                   "0 vectors"));
    EXPECT_FALSE(hash->is_trained);
    // wide ones, whose mean is sparse, too
    const auto wide = kernel_hash_factory(10'000'000, "AHK64(chi2,center=1)");
    Rows rows = draw(300, 1000, 6, false, 9);
    rows.d = 10'000'000;
    for (int32_t& column : rows.indices) {
        column *= 10'000;
    }
    wide->train_sparse(rows.get());
    std::vector<uint8_t> codes(rows.n() * 8);
    wide->encode_sparse(rows.get(), codes.data());
    int ones = 0;
    for (uint8_t byte : codes) {
        ones += std::popcount(byte);
    }
    // bits are balanced over the draw
    EXPECT_NEAR(ones / (64.0 * double(rows.n())), 0.5, hoeffding(64));
}

struct SparseMaps : testing::TestWithParam<const char*> {};

TEST_P(SparseMaps, EqualDenseOnes) {
    const std::string text = GetParam();
    const bool is_signed =
            text.starts_with("RFF") || text.find("sign") != std::string::npos;
    for (idx_t d : {50, 300}) {
        const auto map = map_factory(int(d), text);
        const Rows train = draw(200, d, 8, false, 3);
        map->train(train.n(), train.dense().data());
        expect_same_results(*map, mixed(d, is_signed, 4));
    }
}

INSTANTIATE_TEST_SUITE_P(
        Strings,
        SparseMaps,
        testing::Values(
                "HKM0(chi2)",
                "HKM2(chi2)",
                "HKM1(js,norm=l1,degree=0.7)",
                "HKM3(intersection,negative=sign)",
                "HKM1(hellinger)",
                "KPCA12(chi2,p=40)",
                "KPCA8(gaussian,p=30)",
                "RFF16(gaussian)",
                "RFF40(gaussian,proj=dense)",
                "RFF40(gaussian,proj=generated)",
                "RFF32(matern,nu=0.7,gamma=0.2,proj=generated)",
                "RFF16(laplacian)",
                "RFF16(laplacian,proj=generated)"));

// Sums of components whose products are too small for float, and components
// that must be scaled, are among them.
TEST(SparseProjections, EqualDenseOnes) {
    const int d = 1000;
    for (int d_out : {8, 40, 200}) {
        std::vector<double> scales(d_out, 2);
        std::vector<std::unique_ptr<Projection>> all;
        const Floats A = normal_vectors(d_out, d, 5);
        all.push_back(std::make_unique<DenseProjection>(d, d_out, A.data()));
        all.push_back(
                std::make_unique<StructuredProjection>(d, d_out, 6, scales));
        all.push_back(std::make_unique<BilinearProjection>(
                25, 40, d_out, 2, true, 7));
        for (auto law :
             {GeneratedProjection::Law::normal,
              GeneratedProjection::Law::cauchy}) {
            all.push_back(
                    std::make_unique<GeneratedProjection>(d, d_out, 8, law));
            all.push_back(std::make_unique<GeneratedProjection>(
                    d, d_out, 9, law, scales));
        }
        Rows rows = with_signs(draw(30, d, 20, false, d_out));
        for (float v : {1e-45f, 1e-44f, 3e30f, 1e38f}) {
            rows.add({{3, v}, {700, -v}, {999, v / 3}});
            rows.add({{600, -v}});
            rows.add({{3, v}, {4, 1e-30f}, {5, -1.0f}});
        }
        std::map<int32_t, float> full;
        for (int32_t k = 0; k < d; k++) {
            full[k] = float(k % 7) - 2.5f;
        }
        rows.add(full);
        const Floats x = rows.dense();
        for (const auto& p : all) {
            Floats expected(rows.n() * d_out), got(expected), one(expected);
            p->apply(rows.n(), x.data(), expected.data());
            p->apply_sparse(rows.get(), got.data());
            EXPECT_EQ(bits(got), bits(expected)) << typeid(*p).name();
            for (idx_t i = 0; i < rows.n(); i++) {
                p->apply(1, &x[i * d], &one[i * d_out]);
            }
            EXPECT_EQ(bits(one), bits(expected)) << typeid(*p).name();
        }
        EXPECT_TRUE(throws(
                [&] {
                    all[0]->apply_sparse(draw(1, 9, 2, false, 1).get(), {});
                },
                "9 dimensions, expected 1000"));
    }
}

TEST(GeneratedProjection, AgreesWithItsMatrix) {
    const int d = 600, d_out = 70;
    for (auto law :
         {GeneratedProjection::Law::normal, GeneratedProjection::Law::cauchy}) {
        std::vector<double> scales;
        for (int j = 0; j < d_out; j++) {
            scales.push_back(0.1 + j);
        }
        const GeneratedProjection p(d, d_out, 3, law, scales);
        const GeneratedProjection unscaled(d, d_out, 3, law);
        const Floats A = p.matrix(), B = unscaled.matrix();
        const Floats x = normal_vectors(2, d, 4);
        Floats y(2 * d_out);
        p.apply(2, x.data(), y.data());
        for (int j = 0; j < 2 * d_out; j++) {
            const float* row = &A[j % d_out * d];
            double sum = 0, absolute = 0;
            for (int k = 0; k < d; k++) {
                const double product = double(row[k]) * x[j / d_out * d + k];
                sum += product;
                absolute += std::abs(product);
                EXPECT_NEAR(
                        row[k],
                        scales[j % d_out] * B[j % d_out * d + k],
                        4 * float_unit * std::abs(row[k]));
            }
            EXPECT_NEAR(y[j], sum, 262 * float_unit * absolute);
        }
        // rows do not depend on the dimensions, nor do columns
        const Floats part = GeneratedProjection(d - 7, 9, 3, law).matrix();
        for (int j = 0; j < 9; j++) {
            EXPECT_TRUE(std::equal(
                    &part[j * (d - 7)], &part[(j + 1) * (d - 7)], &B[j * d]));
        }
        EXPECT_NE(GeneratedProjection(d, d_out, 4, law).matrix(), B);
    }
}

// The header states moments and the distance of the distribution functions. A
// 16-bit number takes 22,287 values.
TEST(GeneratedProjection, EntriesFollowTheirLaws) {
    const int d = 512, d_out = 512;
    using Law = GeneratedProjection::Law;
    const auto numbers = [&](Law law) {
        const Floats A = GeneratedProjection(d, d_out, 11, law).matrix();
        return std::vector<double>(A.begin(), A.end());
    };
    const std::vector<double> normal = numbers(Law::normal);
    EXPECT_TRUE(follows(normal, normal_cdf, 5.3e-4));
    EXPECT_TRUE(follows(numbers(Law::cauchy), [](double v) {
        return 0.5 + std::atan(v) / std::numbers::pi;
    }));
    std::set<double> values(normal.begin(), normal.end());
    EXPECT_LE(values.size(), 22287u);
    EXPECT_GT(values.size(), 15000u);
    EXPECT_LT(*values.rbegin(), 4.38);
    std::vector<double> squares, fourths;
    for (double v : normal) {
        squares.push_back(v * v);
        fourths.push_back(v * v * v * v);
    }
    const Moments first(normal), second(squares), fourth(fourths);
    EXPECT_NEAR(first.mean, 0, first.mean_error());
    EXPECT_NEAR(second.mean, 1, second.mean_error());
    EXPECT_NEAR(fourth.mean, 3, fourth.mean_error());
}

// Products of entries of different places have the mean 0: neighbours in rows
// and columns, halves of the same random bits (16 rows apart), and corners of
// rectangles. The same holds for squares and for signs.
TEST(GeneratedProjection, EntriesAreIndependent) {
    const int d = 700, d_out = 512;
    Floats A = GeneratedProjection(d, d_out, 5).matrix();
    const std::vector<std::function<double(double)>> functions = {
            [](double v) { return v; },
            [](double v) { return v * v - 1; },
            [](double v) { return v < 0 ? -1.0 : 1.0; }};
    for (const auto& f : functions) {
        for (auto [rows, columns] : std::vector<std::pair<int, int>>{
                     {0, 1},
                     {0, 2},
                     {0, 64},
                     {0, 256},
                     {1, 0},
                     {2, 0},
                     {16, 0},
                     {32, 0},
                     {256, 0},
                     {1, 1},
                     {16, 1},
                     {16, 256}}) {
            std::vector<double> pairs, corners;
            for (int j = 0; j + rows < d_out; j++) {
                for (int k = 0; k + columns < d; k++) {
                    const auto at = [&](int row, int column) {
                        return f(A[(j + row) * d + k + column]);
                    };
                    pairs.push_back(at(0, 0) * at(rows, columns));
                    if (rows && columns) {
                        corners.push_back(
                                pairs.back() * at(0, columns) * at(rows, 0));
                    }
                }
            }
            const Moments moments(pairs);
            EXPECT_NEAR(moments.mean, 0, moments.mean_error())
                    << rows << " " << columns;
            if (!corners.empty()) {
                const Moments four(corners);
                EXPECT_NEAR(four.mean, 0, four.mean_error())
                        << rows << " " << columns;
            }
        }
    }
}

// For Laplacian kernels too, and as bits of pairs with very few components.
TEST(GeneratedProjection, ExpectedHammingOfSparseVectors) {
    const int nbits = 16384;
    for (auto [name, arguments] : std::vector<std::array<std::string, 2>>{
                 {"RHBE", "(proj=generated)"},
                 {"AHK", "(chi2,proj=generated)"},
                 {"AHK", "(hellinger,proj=generated)"},
                 {"SIK", "(gaussian,gamma=3,proj=generated)"},
                 {"SIK", "(laplacian,gamma=2,proj=generated)"},
                 {"SIK", "(matern,nu=1.5,gamma=3,proj=generated)"}}) {
        const int d = 40;
        const auto hash = kernel_hash_factory(
                d, name + std::to_string(nbits) + arguments);
        const Rows rows = draw(12, d, 2, false, 17);
        const Floats x = rows.dense();
        std::vector<uint8_t> codes(rows.n() * nbits / 8);
        hash->encode_sparse(rows.get(), codes.data());
        for (idx_t i = 0; i < rows.n(); i++) {
            for (idx_t j = 0; j < i; j++) {
                const double expected =
                        hash->expected_hamming_of_pair(&x[i * d], &x[j * d]);
                EXPECT_NEAR(
                        double(hamming(codes, nbits / 8, i, j)) / nbits,
                        expected / nbits,
                        hoeffding(nbits) + 2.5e-4)
                        << name << arguments << " " << i << " " << j;
            }
        }
        EXPECT_EQ(hash->covariance_of_pair(&x[0], &x[d]), 0);
        const auto [low, high] = hash->kernel_interval(nbits / 4.0, 0.01);
        EXPECT_LT(low, high);
    }
}

// Codes of columns that two hashes have in common are the same. Files contain
// nothing of the size of the dimension.
TEST(WideTransforms, AreMadeAtOnce) {
    struct Made {
        const char* text;
        int d;
        Kind kind;
    };
    for (const Made& c : std::vector<Made>{
                 {"AHK512(chi2)", 10'000'000, Kind::generated},
                 {"AHK512(chi2,center=1)", 10'000'000, Kind::generated},
                 {"AHK64(js)", widest / 3, Kind::generated},
                 {"AHK64(hellinger)", widest, Kind::generated},
                 {"AHK64(chi2)", 43'690, Kind::structured},
                 {"AHK64(chi2)", 43'691, Kind::generated},
                 {"RHBE512", widest, Kind::generated},
                 {"RHBE512", 131'072, Kind::structured},
                 {"RHBE512", 131'073, Kind::generated},
                 {"RHBE8(proj=structured)", 131'073, Kind::structured},
                 {"RHBE8(proj=dense)", 131'073, Kind::dense},
                 {"SIK512(gaussian,gamma=1)", widest, Kind::generated},
                 {"SIK512(gaussian)", widest, Kind::generated},
                 {"SIK512(laplacian,gamma=1)", widest, Kind::generated},
                 {"SIK8(laplacian,gamma=1)", 131'072, Kind::dense},
                 {"SIK8(laplacian,gamma=1,proj=dense)", 131'073, Kind::dense},
                 {"SIK512(matern,nu=2,gamma=1)", widest, Kind::generated},
                 {"SCR512", widest, Kind::automatic}}) {
        SCOPED_TRACE(c.text);
        const auto hash = kernel_hash_factory(c.d, c.text);
        const std::string description = hash->description();
        EXPECT_EQ(
                description.find("proj=") == std::string::npos,
                std::string(c.text).find("proj=") == std::string::npos);
        kernel_hash_factory(c.d, description)->check_identical(*hash);
        if (const auto* h = dynamic_cast<CenteredHash*>(hash.get())) {
            EXPECT_EQ(h->proj.kind, c.kind);
        } else if (
                const auto* s = dynamic_cast<ShiftInvariantHash*>(hash.get())) {
            EXPECT_EQ(s->proj.kind, c.kind);
        }
        const Bytes file = bytes_of(*hash);
        if (c.kind == Kind::generated || c.kind == Kind::automatic) {
            EXPECT_LT(file.size(), 8000u);
        }
        const auto transform = from_bytes<faiss::VectorTransform>(file);
        const auto* read = dynamic_cast<const KernelHash*>(transform.get());
        ASSERT_TRUE(read);
        EXPECT_EQ(read->description(), description);
        hash->check_identical(*read);
        if (!hash->is_trained) {
            continue;
        }
        Rows rows{c.d, {0}, {}, {}};
        rows.add({{0, 0.25f}, {77, 0.5f}, {c.d - 1, 0.25f}});
        rows.add({{5, 1.0f}});
        std::vector<uint8_t> codes(2 * hash->code_size()), same(codes);
        hash->encode_sparse(rows.get(), codes.data());
        read->encode_sparse(rows.get(), same.data());
        EXPECT_EQ(codes, same);
        EXPECT_FALSE(std::equal(
                codes.begin(),
                codes.begin() + hash->code_size(),
                codes.begin() + hash->code_size()));
    }
    const Rows rows = mixed(300, true, 4);
    Rows wide = rows;
    wide.d = widest;
    for (const char* text :
         {"RHBE64(proj=generated)", "SIK64(matern,gamma=2,proj=generated)"}) {
        const auto a = kernel_hash_factory(300, text);
        const auto b = kernel_hash_factory(widest, text);
        std::vector<uint8_t> codes(rows.n() * 8), same(codes);
        a->encode_sparse(rows.get(), codes.data());
        b->encode_sparse(wide.get(), same.data());
        EXPECT_EQ(codes, same);
    }
    const auto map = map_factory(10'000'000, "RFF64(gaussian,gamma=1)");
    map_factory(10'000'000, map->description())->check_identical(*map);
    Rows one{10'000'000, {0}, {}, {}};
    one.add({{9'999'999, 0.5f}});
    Floats y(64);
    map->apply_sparse(one.get(), y.data());
    EXPECT_NEAR(dot_product(y.data(), y.data(), 64), 1, 1e-5);
}

TEST(WideTransforms, RefuseClearly) {
    EXPECT_TRUE(
            throws([] { kernel_hash_factory(widest, "AHK64(chi2)"); },
                   "expected at most 2^31 - 1"));
    EXPECT_TRUE(throws(
            [] { kernel_hash_factory(widest, "RHBE64(proj=structured)"); },
            "expected 1 to 2^30"));
    const auto hash = kernel_hash_factory(10'000'000, "AHK64(chi2)");
    std::vector<uint8_t> codes(16);
    Rows rows{10'000'000, {0}, {}, {}};
    rows.add({{1, 1.0f}});
    rows.add({{3, 1.0f}, {9'999'999, -1.0f}});
    EXPECT_TRUE(
            throws([&] { hash->encode_sparse(rows.get(), codes.data()); },
                   "vector 1",
                   "component 9999999"));
    EXPECT_TRUE(throws(
            [&] {
                kernel_hash_factory(64, "SIK64(gaussian)")
                        ->encode_sparse(draw(1, 64, 3, false, 1).get(), {});
            },
            "is not trained"));
}

namespace {

/// A kernel of a program that tells no scale of its frequencies.
struct PlainKernel : GaussianKernel {
    using GaussianKernel::GaussianKernel;
    std::optional<double> sample_scale(std::mt19937_64&) const override {
        return std::nullopt;
    }
};

} // namespace

TEST(GeneratedProjection, NeedsTheScaleOfFrequencies) {
    register_kernel<PlainKernel>("plain");
    EXPECT_TRUE(throws(
            [] {
                kernel_hash_factory(8, "SIK8(plain,gamma=1,proj=generated)");
            },
            "'generated' of proj"));
    const auto hash = kernel_hash_factory(200'000, "SIK8(plain,gamma=1)");
    const auto& sik = dynamic_cast<const ShiftInvariantHash&>(*hash);
    EXPECT_EQ(sik.proj.kind, Kind::structured);
    EXPECT_EQ(hash->description(), "SIK8(plain(gamma=1))");
}

TEST(GeneratedProjection, RefusesBadSizes) {
    for (auto [d_in, d_out] : {std::pair(0, 8), {8, 0}, {-1, 8}}) {
        EXPECT_TRUE(throws(
                [&, d_in = d_in, d_out = d_out] {
                    GeneratedProjection(d_in, d_out, 1);
                },
                "expected positive numbers"));
    }
    EXPECT_TRUE(throws(
            [] {
                GeneratedProjection(
                        8, 8, 1, GeneratedProjection::Law::normal, {1, 2});
            },
            "2 scales given"));
    EXPECT_TRUE(
            throws([] { GeneratedProjection().apply(1, nullptr, nullptr); },
                   "is empty"));
}
