// SPDX-License-Identifier: MIT
// Transformations before an index, and principal components.

#include <cmath>
#include <cstring>
#include <string>

#include <omp.h>

#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/VectorTransform.h>

#include <faiss_ext/indexes/IndexPreTransformSIMD.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "projections/principal_components.h"
#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

std::unique_ptr<IndexPreTransformSIMD> make_index(
        int d,
        const std::string& text) {
    auto made = index_factory(d, text);
    auto* index = dynamic_cast<IndexPreTransformSIMD*>(made.release());
    return std::unique_ptr<IndexPreTransformSIMD>(index);
}

/// Returns the result of FAISS's loop.
std::vector<float> by_faiss(
        const faiss::IndexPreTransform& index,
        const std::vector<float>& x) {
    const idx_t n = x.size() / index.d;
    const float* xt = index.apply_chain(n, x.data());
    const std::vector<float> copy(xt, xt + n * index.index->d);
    if (xt != x.data()) {
        delete[] xt;
    }
    return copy;
}

/// Computes sum_i |V (x_i - mean)|^2 for orthonormal rows V.
double captured(
        const std::vector<float>& V,
        const std::vector<float>& x,
        const std::vector<float>& mean) {
    const size_t d = mean.size();
    double sum = 0;
    for (size_t i = 0; i < x.size(); i += d) {
        for (size_t v = 0; v < V.size(); v += d) {
            double product = 0;
            for (size_t j = 0; j < d; j++) {
                product += double(V[v + j]) * (double(x[i + j]) - mean[j]);
            }
            sum += product * product;
        }
    }
    return sum;
}

/// Returns vectors with distinct principal axes: variances decrease like 1 /
/// j^2.
std::vector<float> with_axes(idx_t n, int d, int seed) {
    auto z = normal_vectors(n, d, seed);
    for (idx_t i = 0; i < n; i++) {
        for (int j = 0; j < d; j++) {
            z[i * d + j] *= 10.0f / float(j + 1);
        }
    }
    faiss::RandomRotationMatrix rotation(d, d);
    rotation.init(seed);
    std::vector<float> x(n * d);
    rotation.apply_noalloc(n, z.data(), x.data());
    for (float& v : x) {
        v += 3;
    }
    return x;
}

// Components are computed by LAPACK (d = 40), by subspace iteration (d = 600),
// and from products of vectors if there are few vectors.
TEST(PrincipalComponents, AreThoseOfFaiss) {
    for (auto [d, k, n] :
         {std::tuple<int, int, idx_t>{40, 7, 500},
          {600, 20, 900},
          {600, 20, 90},
          {1500, 9, 10}}) {
        SCOPED_TRACE(n);
        const auto x = with_axes(n, d, 1);
        const auto found = principal_components(n, x.data(), d, k, true);
        faiss::PCAMatrix pca(d, k);
        pca.train(n, x.data());
        const std::vector<float> theirs(
                pca.PCAMat.begin(), pca.PCAMat.begin() + k * d);
        for (int j = 0; j < d; j++) {
            EXPECT_NEAR(found.mean[j], pca.mean[j], 1e-4);
        }
        for (int i = 0; i < k; i++) {
            EXPECT_NEAR(
                    found.values[i],
                    pca.eigenvalues[i],
                    2e-3 * pca.eigenvalues[i]);
            for (int l = 0; l <= i; l++) { // orthonormal
                double product = 0;
                for (int j = 0; j < d; j++) {
                    product += double(found.vectors[i * d + j]) *
                            found.vectors[l * d + j];
                }
                EXPECT_NEAR(product, i == l, 1e-5);
            }
        }
        const double ours = captured(found.vectors, x, found.mean);
        EXPECT_GT(ours, (1 - 1e-4) * captured(theirs, x, found.mean));
        EXPECT_LT(ours, (1 + 1e-4) * captured(theirs, x, found.mean));
    }
}

TEST(PrincipalComponents, WithoutCentring) {
    const idx_t n = 300;
    const int d = 12;
    const auto x = with_axes(n, d, 2);
    const auto found = principal_components(n, x.data(), d, d, false);
    EXPECT_EQ(found.mean, std::vector<float>(d));
    // the sum of all eigenvalues equals the sum of squares
    double values = 0, squares = 0;
    for (float v : found.values) {
        values += v;
    }
    for (float v : x) {
        squares += double(v) * v;
    }
    EXPECT_NEAR(values, squares, 1e-5 * squares);
}

TEST(PrincipalComponents, RankBelowK) {
    for (int d : {20, 600}) {
        const idx_t n = 50;
        std::vector<float> x(n * d, 1);
        for (idx_t i = 0; i < n; i++) {
            x[i * d + 3] = float(i);
        }
        const auto found = principal_components(n, x.data(), d, 5, true);
        EXPECT_NEAR(std::abs(found.vectors[3]), 1, 1e-5);
        EXPECT_NEAR(found.values[0], n * (n * n - 1) / 12.0, 1);
        for (int i = 1; i < 5; i++) {
            EXPECT_NEAR(found.values[i], 0, 0.1);
        }
        const std::vector<float> equal(n * d, 2);
        const auto none = principal_components(n, equal.data(), d, 5, true);
        EXPECT_EQ(none.values, std::vector<float>(5));
    }
}

TEST(IndexPreTransformSIMD, TransformsAsFaissDoes) {
    const int d = 24;
    const idx_t n = 700;
    const auto x = clustered_histograms(n, d, 10, 50, 3);
    for (const char* text :
         {"HKM1(chi2),PCAR10,Flat",
          "HKM2(chi2),PCAW10,KIVF4(M=5)",
          "HKM1(intersection),PCA8,SQ8",
          "PCA12,KFlat(gaussian)",
          "L2norm,HKM1(chi2),PCA16,L2norm,Flat",
          "HKM1(hellinger),ITQ16,LSH",
          "RFF32(gaussian),Pad40,Flat",
          "KPCA8(chi2,p=50),RR4,Flat"}) {
        SCOPED_TRACE(text);
        const auto index = make_index(d, text);
        ASSERT_TRUE(index);
        index->train(n, x.data());
        EXPECT_TRUE(index->is_trained);
        const auto ours = index->transformed(n, x.data(), index->chain.size());
        const auto theirs = by_faiss(*index, x);
        ASSERT_EQ(ours.size(), theirs.size());
        for (size_t i = 0; i < ours.size(); i++) {
            ASSERT_NEAR(ours[i], theirs[i], 1e-5 * (1 + std::abs(theirs[i])));
        }
        index->add(n, x.data());
        EXPECT_EQ(index->ntotal, n);
        EXPECT_EQ(index->index->ntotal, n);
    }
}

TEST(IndexPreTransformSIMD, BatchesAndThreadsDoNotMatter) {
    const int d = 300;
    const idx_t n = 150;
    const auto x = clustered_histograms(n, d, 10, 50, 4);
    const auto index = make_index(d, "HKM1(chi2),PCAR20,Flat");
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    index->train(n, x.data());
    const auto alone = index->transformed(n, x.data(), 2);
    const auto other = make_index(d, "HKM1(chi2),PCAR20,Flat");
    omp_set_num_threads(4);
    other->train(n, x.data());
    EXPECT_EQ(other->transformed(n, x.data(), 2), alone);
    omp_set_num_threads(threads);
    for (idx_t i = 0; i < n; i += 37) {
        const auto one = index->transformed(1, &x[i * d], 2);
        EXPECT_TRUE(std::equal(one.begin(), one.end(), &alone[i * 20]));
    }
}

// A single vector is mapped without its zeros.
TEST(IndexPreTransformSIMD, ZerosDoNotMatter) {
    const int d = 100;
    const idx_t n = 200;
    auto x = clustered_histograms(n, d, 10, 50, 6);
    for (idx_t i = 0; i < n; i++) { // vector i has about i / 2 components
        for (int j = 0; j < d; j++) {
            x[i * d + j] *= float((7 * j + i) % d < i / 2);
        }
    }
    x[80 * d] = 1e-38f; // is mapped to 0
    for (const char* map :
         {"HKM1(chi2)",
          "HKM0(chi2)",
          "HKM2(intersection,norm=l1)",
          "HKM1(chi2,negative=sign)"}) {
        for (const char* rest :
             {"PCA20,Flat", "PCA3,Flat", "PCA40,PCA20,L2norm,Flat"}) {
            SCOPED_TRACE(std::string(map) + "," + rest);
            const auto index = make_index(d, std::string(map) + "," + rest);
            ASSERT_TRUE(index);
            index->train(n, x.data());
            auto y = x;
            if (std::string(map).ends_with("sign)")) {
                for (idx_t i = 0; i < n * d; i += 3) {
                    y[i] = -y[i];
                }
            }
            const size_t steps = index->chain.size(), size = index->index->d;
            const auto all = index->transformed(n, y.data(), steps);
            for (idx_t i = 0; i < n; i++) {
                const auto one = index->transformed(1, &y[i * d], steps);
                ASSERT_EQ(one.size(), size);
                EXPECT_EQ(
                        std::memcmp(
                                one.data(),
                                &all[i * size],
                                size * sizeof(float)),
                        0)
                        << i;
            }
        }
    }
}

TEST(IndexPreTransformSIMD, SeesThatOneNumberOfAMatrixHasChanged) {
    const int d = 64;
    const Floats x = normal_vectors(1, d, 5);
    faiss::LinearTransform matrix(d, d);
    matrix.A = normal_vectors(d, d, 6);
    matrix.is_trained = true;
    faiss::IndexFlatL2 behind(d);
    IndexPreTransformSIMD index(&behind);
    index.prepend_transform(&matrix);
    EXPECT_TRUE(index.verify_chain);
    const auto made = make_index(d, "RR64,KFlat(linear)");
    auto& rotation = dynamic_cast<faiss::LinearTransform&>(*made->chain[0]);
    EXPECT_FALSE(made->verify_chain);
    made->train(1, x.data());
    made->transformed(1, x.data(), 1);
    made->verify_chain = true;
    for (int i = 0; i < d * d; i += 7) {
        const std::pair<IndexPreTransformSIMD*, faiss::LinearTransform*>
                pairs[] = {{&index, &matrix}, {made.get(), &rotation}};
        for (const auto& [chained, changed] : pairs) {
            changed->A[i] += 1000;
            const auto found = chained->transformed(1, x.data(), 1);
            Floats expected(d);
            changed->apply_noalloc(1, x.data(), expected.data());
            for (int j = 0; j < d; j++) {
                EXPECT_NEAR(found[j], expected[j], 0.05);
            }
        }
    }
}

TEST(IndexPreTransformSIMD, SeesThatAMatrixHasChanged) {
    const int d = 16;
    const idx_t n = 100;
    const auto x = normal_vectors(n, d, 5);
    const auto index = make_index(d, "PCA4,KFlat(gaussian)");
    index->verify_chain = true;
    index->train(n, x.data());
    const auto before = index->transformed(n, x.data(), 1);
    auto& pca = dynamic_cast<faiss::PCAMatrix&>(*index->chain[0]);
    for (float& v : pca.A) {
        v *= 2;
    }
    for (float& v : pca.b) {
        v *= 2;
    }
    const auto after = index->transformed(n, x.data(), 1);
    for (size_t i = 0; i < before.size(); i++) {
        EXPECT_FLOAT_EQ(after[i], 2 * before[i]);
    }
}

TEST(IndexPreTransformSIMD, BadInput) {
    const int d = 16;
    const idx_t n = 300;
    auto x = clustered_histograms(n, d, 10, 50, 6);
    const auto index = make_index(d, "L2norm,HKM1(chi2),PCAR12,Flat");
    std::vector<float> D(n);
    std::vector<idx_t> I(n);
    expect_throws(
            {{[&] { index->add(n, x.data()); }, "call train first"},
             {[&] { index->train(5, x.data()); }, "at least 12"}});
    EXPECT_FALSE(index->is_trained);
    index->train(n, x.data());
    index->add(n, x.data());
    const auto zeros = make_index(d, "PCAW4,KFlat(linear)");
    const std::vector<float> equal(n * d, 1);
    const auto wide = make_index(d, "PCA20,KFlat(linear)");
    auto none = x;
    none[7 * d + 1] = NAN;
    expect_throws(
            {{[&] { zeros->train(n, equal.data()); }, "keeps more dimensions"},
             {[&] { zeros->train(n, none.data()); }, "vector 7"},
             {[&] { wide->train(n, x.data()); },
              "20 output dimensions, expected at most 16"}});
    x[290 * d + 2] = -1;
    expect_throws(
            {{[&] { index->add(n, x.data()); }, "290"},
             {[&] { index->search(n, x.data(), 1, D.data(), I.data()); },
              "290"},
             {[&] { index->search(3, x.data(), 0, D.data(), I.data()); },
              "k is 0"}});
    EXPECT_EQ(index->ntotal, n);
    index->search(3, x.data(), 1, D.data(), I.data());
    EXPECT_EQ(I[2], 2);
}

// A failed training restores the previous state for the next one.
TEST(IndexPreTransformSIMD, FailedTrainingLeavesNothingTrained) {
    const auto x = uniform_vectors(400, 16, 1);
    for (const char* text :
         {"HKM1(chi2),PCA8,KIVF128",
          "RFF16(gaussian),KIVF128",
          "KPCA8(chi2,p=20),KIVF128",
          "PCAR12,RFF16(gaussian),KIVF128",
          "HKM1(chi2),OPQ4_8,KIVF128",
          "HKM1(chi2),PCA8,IVF128,Flat"}) {
        SCOPED_TRACE(text);
        const auto index = make_index(16, text), fresh = make_index(16, text);
        EXPECT_TRUE(throws([&] { index->train(100, x.data()); }));
        EXPECT_FALSE(index->is_trained);
        for (const auto* after : {index.get(), fresh.get()}) {
            for (size_t i = 0; i < after->chain.size(); i++) {
                EXPECT_EQ(
                        after->chain[i]->is_trained,
                        fresh->chain[i]->is_trained);
            }
        }
        index->train(400, x.data());
        fresh->train(400, x.data());
        EXPECT_EQ(by_faiss(*index, x), by_faiss(*fresh, x));
    }
    const auto wide = make_index(16, "PCA8,PCA12,KIVF4");
    EXPECT_TRUE(
            throws([&] { wide->train(5, x.data()); },
                   "12 output dimensions, expected at most 8"));
}

TEST(IndexPreTransformSIMD, MergingLeavesTheOtherEmpty) {
    const auto x = normal_vectors(300, 16, 1);
    const auto a = make_index(16, "PCA8,KIVF4");
    a->train(300, x.data());
    const auto b = clone_index(a.get());
    a->add(100, x.data());
    b->add(200, &x[100 * 16]);
    a->merge_from(*b, 100);
    EXPECT_EQ(a->ntotal, 300);
    EXPECT_EQ(b->ntotal, 0);
    b->add(10, x.data());
    EXPECT_EQ(b->ntotal, 10);
    EXPECT_TRUE(throws([&] { a->merge_from(*a); }, "itself"));
    EXPECT_EQ(a->ntotal, 300);
}

/// FAISS's flat index has another class after it was read from a file.
TEST(IndexPreTransformSIMD, CopiesCanBeMerged) {
    const auto x = uniform_vectors(300, 16, 1);
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const auto fresh = index_factory(16, "HKM1(chi2),Flat", metric);
        fresh->add(300, x.data());
        const auto a = index_factory(16, "HKM1(chi2),Flat", metric);
        const auto b = reread(*a), c = clone_index(a.get());
        a->add(100, x.data());
        b->add(150, &x[100 * 16]);
        c->add(50, &x[250 * 16]);
        b->merge_from(*c);
        a->merge_from(*b);
        EXPECT_EQ(b->ntotal, 0);
        EXPECT_EQ(c->ntotal, 0);
        expect_same(search(*a, x, 10), search(*fresh, x, 10));
        const auto other = index_factory(16, "HKM2(chi2),Flat", metric);
        EXPECT_TRUE(throws([&] { a->merge_from(*other); }, ""));
        const auto longer = index_factory(16, "HKM1(chi2),RR48,Flat", metric);
        EXPECT_TRUE(throws([&] { a->merge_from(*longer); }, ""));
        EXPECT_EQ(a->ntotal, 300);
    }
}

TEST(IndexPreTransformSIMD, NullAndPartsThatDoNotFit) {
    const auto x = uniform_vectors(60, 16, 1);
    const auto index = make_index(16, "PCA8,KFlat(gaussian)");
    index->train(60, x.data());
    index->add(60, x.data());
    const std::vector<idx_t> ids(60, -1);
    const auto found = search(*index, x, 3);
    expect_throws(
            {{[&] { IndexPreTransformSIMD none(nullptr); }, "null"},
             {[&] { index->prepend_transform(nullptr); }, "null"},
             {[&] { index->add_with_ids(60, x.data(), ids.data()); },
              "an id is -1"}});
    expect_same(search(*index, x, 3), found);
    index->index->reset();
    const char* reason = "parts do not match";
    expect_throws(
            {{[&] { index->get_distance_computer(); }, reason},
             {[&] { search(*index, x, 3); }, reason}});
}

// FAISS takes only the index_params of parameters, and would ignore a selector.
TEST(IndexPreTransformSIMD, SelectorsInParametersAreNotIgnored) {
    const auto x = uniform_vectors(60, 16, 1);
    const faiss::IDSelectorRange some(0, 5);
    const auto inner = make_index(16, "HKM1(chi2),Flat");
    IndexPreTransformSIMD outer(inner.get());
    outer.add(60, x.data());
    faiss::SearchParametersPreTransform of_inner, of_outer;
    of_outer.index_params = &of_inner;
    search(outer, x, 3, &of_outer);
    for (faiss::SearchParameters* params :
         {(faiss::SearchParameters*)&of_inner,
          (faiss::SearchParameters*)&of_outer}) {
        params->sel = const_cast<faiss::IDSelectorRange*>(&some);
        EXPECT_TRUE(
                throws([&] { search(outer, x, 3, &of_outer); },
                       "a selector in SearchParametersPreTransform"));
        params->sel = nullptr;
    }
}

TEST(IndexPreTransformSIMD, AGraphOfFaissSearchesWithASoundEf) {
    const auto x = uniform_vectors(60, 16, 1);
    const auto index = make_index(16, "HKM1(chi2),HNSW8");
    index->add(60, x.data());
    faiss::SearchParametersHNSW params;
    params.efSearch = 0;
    EXPECT_TRUE(
            throws([&] { search(*index, x, 3, &params); }, "efSearch is 0"));
    dynamic_cast<faiss::IndexHNSW&>(*index->index).hnsw.efSearch = -5;
    EXPECT_TRUE(throws([&] { search(*index, x, 3); }, "efSearch is -5"));
    params.efSearch = 16;
    EXPECT_EQ(search(*index, x, 1, &params).labels[7], 7);
}

TEST(IndexPreTransformSIMD, ListsWithoutTransformationsReconstruct) {
    constexpr int d = 8;
    const Floats x = uniform_vectors(200, d, 1);
    const auto index = index_factory(d, "Concurrent,IVF4,Flat");
    index->train(200, x.data());
    index->add(200, x.data());
    Floats found(d);
    for (const idx_t id : {0, 7, 199}) {
        index->reconstruct(id, found.data());
        EXPECT_EQ(found, Floats(&x[id * d], &x[id * d] + d));
    }
}

TEST(IndexPreTransformSIMD, EmptyIndexesGivePadding) {
    const auto x = uniform_vectors(60, 16, 1);
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const auto index = index_factory(16, "HKM1(chi2),Flat", metric);
        const Found<float> found = search(*index, x, 3);
        const float worst = std::numeric_limits<float>::max();
        for (size_t i = 0; i < found.labels.size(); i++) {
            EXPECT_EQ(found.labels[i], -1);
            EXPECT_EQ(
                    found.distances[i],
                    metric == faiss::METRIC_L2 ? worst : -worst);
        }
    }
}

// FAISS does not restore the quantizer that decodes fast-scan lists, and gives
// a clone that of the original.
TEST(IndexPreTransformSIMD, FastScanListsThatCannotDecode) {
    if (faiss_version < 11000) {
        GTEST_SKIP() << "this version of FAISS decodes no such lists";
    }
    const int d = 16;
    const idx_t n = 300;
    const Floats x = normalized_histograms(n, d, 1);
    for (const std::string lists : {"IVF4,PQ8x4fs", "IVF4,RQ4x4fs_32_Nrq2x4"}) {
        SCOPED_TRACE(lists);
        const auto index = index_factory(d, "HKM1(chi2)," + lists);
        index->train(n, x.data());
        index->add(n, x.data());
        Floats one(d), some(10 * d);
        index->reconstruct(7, one.data());
        index->reconstruct_n(3, 10, some.data());
        EXPECT_EQ(one, rows(some, d, 4, 5));
        const auto read = reread(*index);
        const auto clone = clone_index(index.get());
        for (faiss::Index* other : {read.get(), clone.get()}) {
            const std::string why =
                    "cannot decode its vectors after it was read from a file or cloned";
            const Bytes codes(other->sa_code_size());
            EXPECT_TRUE(
                    throws([&] { other->reconstruct(7, one.data()); }, why));
            EXPECT_TRUE(throws(
                    [&] { other->reconstruct_n(3, 10, some.data()); }, why));
            EXPECT_TRUE(throws(
                    [&] { other->sa_decode(1, codes.data(), one.data()); },
                    why));
            expect_same(search(*other, x, 5), search(*index, x, 5));
        }
    }
}

} // namespace
