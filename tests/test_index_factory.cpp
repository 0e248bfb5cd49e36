#include <memory>
#include <new>
#include <random>
#include <string>
#include <typeinfo>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryHNSW.h>
#include <faiss/IndexBinaryHash.h>
#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/VectorTransform.h>
#include <faiss/index_factory.h>

#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/IndexRefineKernel.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/MaternKernel.h>

#include "testing_indexes.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr int d = 24;
const faiss::MetricType metrics[] = {
        faiss::METRIC_L2,
        faiss::METRIC_INNER_PRODUCT};

/// Casts, or fails with the class that is there.
template <class T, class From>
const T& as(const From* object) {
    const T* cast = dynamic_cast<const T*>(object);
    if (!cast) {
        throw std::runtime_error(
                object ? std::string("the class is ") + typeid(*object).name()
                       : "null");
    }
    return *cast;
}

/// The same, and the class must be T itself.
template <class T, class From>
const T& exactly(const From* object) {
    const T& cast = as<T>(object);
    if (typeid(cast) != typeid(T)) {
        throw std::runtime_error(
                std::string("the class is ") + typeid(cast).name());
    }
    return cast;
}

struct HashCase {
    const char* string;
    int nbits;
    const char* kernel;
    int64_t seed;
    bool is_trained;
};

const HashCase hash_cases[] = {
        {"SIK512(gaussian,gamma=0.02)",
         512,
         "gaussian(gamma=0.02)",
         1234,
         true},
        {"SIK512(laplacian)", 512, "laplacian", 1234, false},
        {"SIK256(matern,nu=1.5)", 256, "matern", 1234, false},
        {"SIK256(matern(nu=2.5),gamma=0.5,seed=7)",
         256,
         "matern(gamma=0.5,nu=2.5)",
         7,
         true},
        {"SIK64(seed=3,gaussian(gamma=0.5))",
         64,
         "gaussian(gamma=0.5)",
         3,
         true},
        {"SIK8(gaussian,gamma=auto)", 8, "gaussian", 1234, false},
        {"SIK72(gaussian,gamma=1e-3,proj=dense,seed=0)",
         72,
         "gaussian(gamma=0.001)",
         0,
         true},
        {"SIK64(matern)", 64, "matern", 1234, false}};

void check_hash(const faiss::VectorTransform* vt, const HashCase& expected) {
    const auto& hash = exactly<ShiftInvariantHash>(vt);
    EXPECT_EQ(hash.d_in, d);
    EXPECT_EQ(hash.nbits, expected.nbits);
    EXPECT_EQ(hash.d_out, expected.nbits);
    EXPECT_EQ(hash.code_size(), size_t(expected.nbits / 8));
    EXPECT_EQ(hash.kernel->description(), expected.kernel);
    EXPECT_EQ(hash.seed, expected.seed);
    EXPECT_EQ(hash.is_trained, expected.is_trained);
    EXPECT_EQ(hash.kernel->is_trained, expected.is_trained);
}

TEST(IndexFactory, Schemes) {
    for (const HashCase& c : hash_cases) {
        SCOPED_TRACE(c.string);
        check_hash(kernel_hash_factory(d, c.string).get(), c);

        const std::string string = c.string + std::string(",BFlat");
        const auto binary = faiss_ext::index_binary_factory(d, string);
        const auto& b = exactly<IndexBinaryKernelHash>(binary.get());
        check_hash(b.hash, c);
        EXPECT_EQ(b.d, c.nbits);
        EXPECT_TRUE(b.own_fields);
        EXPECT_EQ(b.is_trained, c.is_trained);
        exactly<IndexBinaryFlatSIMD>(b.storage);
        EXPECT_EQ(b.storage->d, c.nbits);

        for (auto metric : metrics) {
            const auto index = faiss_ext::index_factory(d, string, metric);
            const auto& f = exactly<IndexKernelHash>(index.get());
            check_hash(f.hash, c);
            EXPECT_EQ(f.d, d);
            EXPECT_EQ(f.metric_type, metric);
            EXPECT_TRUE(f.own_fields);
            EXPECT_EQ(f.is_trained, c.is_trained);
            exactly<IndexBinaryFlatSIMD>(f.storage);
        }
    }
}

TEST(IndexFactory, SeedsMatter) {
    const auto x = random_vectors(30, d, 1);
    const auto codes = [&](const char* string) {
        return codes_of(*kernel_hash_factory(d, string), x);
    };
    const auto a = codes("SIK64(gaussian,gamma=0.1)");
    EXPECT_EQ(a, codes("SIK64(gaussian,gamma=0.1,seed=1234)"));
    EXPECT_NE(a, codes("SIK64(gaussian,gamma=0.1,seed=1235)"));
    EXPECT_NE(a, codes("SIK64(gaussian,gamma=0.2)"));
    EXPECT_NE(a, codes("SIK64(laplacian,gamma=0.1)"));
}

TEST(IndexFactory, BinaryStorages) {
    const auto make = [](const std::string& scheme,
                         const std::string& storage) {
        const std::string string = scheme + "," + storage;
        auto floats = faiss_ext::index_factory(d, string);
        auto binary = faiss_ext::index_binary_factory(d, string);
        const auto& f = exactly<IndexKernelHash>(floats.get());
        const auto& b = exactly<IndexBinaryKernelHash>(binary.get());
        EXPECT_EQ(typeid(*f.storage), typeid(*b.storage)) << string;
        EXPECT_EQ(f.is_trained, b.is_trained) << string;
        return floats;
    };
    const auto storage_of = [](const std::unique_ptr<faiss::Index>& index) {
        return as<IndexKernelHash>(index.get()).storage;
    };
    const std::string sik64 = "SIK64(gaussian,gamma=1)",
                      sik256 = "SIK256(gaussian,gamma=1)";
    {
        const auto index = make(sik64, "BFlat");
        EXPECT_EQ(exactly<IndexBinaryFlatSIMD>(storage_of(index)).code_size, 8);
    }
    {
        const auto index = make(sik256, "BHash24");
        EXPECT_EQ(exactly<faiss::IndexBinaryHash>(storage_of(index)).b, 24);
        EXPECT_TRUE(index->is_trained);
    }
    for (const char* b : {"1", "8", "63"}) {
        const auto index = make(sik64, std::string("BHash") + b);
        EXPECT_EQ(
                exactly<faiss::IndexBinaryHash>(storage_of(index)).b,
                std::stoi(b));
    }
    {
        const auto index = make(sik256, "BHash16x16");
        const auto& hash =
                exactly<faiss::IndexBinaryMultiHash>(storage_of(index));
        EXPECT_EQ(hash.nhash, 16);
        EXPECT_EQ(hash.b, 16);
    }
    {
        const auto index = make(sik64, "BHash4x10");
        const auto& hash =
                exactly<faiss::IndexBinaryMultiHash>(storage_of(index));
        EXPECT_EQ(hash.nhash, 4);
        EXPECT_EQ(hash.b, 10);
    }
    {
        const auto index = make(sik64, "BIVF1024");
        const auto& ivf = exactly<faiss::IndexBinaryIVF>(storage_of(index));
        EXPECT_EQ(ivf.nlist, 1024u);
        exactly<faiss::IndexBinaryFlat>(ivf.quantizer);
        EXPECT_FALSE(index->is_trained);
    }
    {
        const auto index = make(sik64, "BIVF16_HNSW8");
        const auto& ivf = exactly<faiss::IndexBinaryIVF>(storage_of(index));
        EXPECT_EQ(ivf.nlist, 16u);
        const auto& hnsw = exactly<faiss::IndexBinaryHNSW>(ivf.quantizer);
        EXPECT_EQ(hnsw.hnsw.nb_neighbors(1), 8);
    }
    {
        const auto index = make(sik64, "BHNSW32");
        const auto& hnsw = exactly<faiss::IndexBinaryHNSW>(storage_of(index));
        EXPECT_EQ(hnsw.hnsw.nb_neighbors(0), 64);
        EXPECT_EQ(hnsw.hnsw.nb_neighbors(1), 32);
        EXPECT_EQ(hnsw.d, 64);
    }
    {
        const auto index = make("SIK64(gaussian)", "BIVF4");
        EXPECT_FALSE(index->is_trained);
        EXPECT_FALSE(as<IndexKernelHash>(index.get()).hash->is_trained);
    }
}

TEST(IndexFactory, Flat) {
    struct Case {
        const char* string;
        const char* kernel;
        bool is_trained;
    };
    const Case cases[] = {
            {"KFlat(linear)", "linear", true},
            {"KFlat(gaussian)", "gaussian", false},
            {"KFlat(gaussian,gamma=0.5)", "gaussian(gamma=0.5)", true},
            {"KFlat(gaussian(gamma=0.5))", "gaussian(gamma=0.5)", true},
            {"KFlat(laplacian,gamma=auto)", "laplacian", false},
            {"KFlat(matern(nu=2.5),gamma=2)", "matern(gamma=2,nu=2.5)", true}};
    for (const Case& c : cases) {
        SCOPED_TRACE(c.string);
        for (auto metric : metrics) {
            const auto index = faiss_ext::index_factory(d, c.string, metric);
            const auto& flat = exactly<IndexFlatKernel>(index.get());
            EXPECT_EQ(flat.d, d);
            EXPECT_EQ(flat.metric_type, metric);
            EXPECT_EQ(flat.kernel->description(), c.kernel);
            EXPECT_EQ(flat.is_trained, c.is_trained);
        }
        // the default metric
        EXPECT_EQ(
                faiss_ext::index_factory(d, c.string)->metric_type,
                faiss::METRIC_L2);
    }
    const auto index = faiss_ext::index_factory(d, "KFlat(matern,nu=0.7)");
    const auto& flat = exactly<IndexFlatKernel>(index.get());
    EXPECT_EQ(as<MaternKernel>(flat.kernel.get()).nu, 0.7);
}

TEST(IndexFactory, HNSW) {
    for (auto metric : metrics) {
        const auto index =
                faiss_ext::index_factory(d, "HNSW12,KFlat(laplacian)", metric);
        const auto& hnsw = exactly<IndexHNSWKernel>(index.get());
        EXPECT_EQ(hnsw.d, d);
        EXPECT_EQ(hnsw.metric_type, metric);
        EXPECT_TRUE(hnsw.own_fields);
        EXPECT_EQ(hnsw.hnsw.nb_neighbors(0), 24);
        EXPECT_EQ(hnsw.hnsw.nb_neighbors(1), 12);
        EXPECT_FALSE(hnsw.is_trained);
        const auto& flat = exactly<IndexFlatKernel>(hnsw.storage);
        EXPECT_EQ(flat.metric_type, metric);
        EXPECT_EQ(flat.kernel->description(), "laplacian");
    }
    EXPECT_TRUE(
            faiss_ext::index_factory(d, "HNSW32,KFlat(linear)")->is_trained);
}

TEST(IndexFactory, IDMaps) {
    {
        const auto index = faiss_ext::index_factory(d, "IDMap,KFlat(linear)");
        const auto& map = exactly<faiss::IndexIDMap>(index.get());
        EXPECT_TRUE(map.own_fields);
        EXPECT_EQ(map.d, d);
        exactly<IndexFlatKernel>(map.index);
    }
    {
        const auto index = faiss_ext::index_factory(
                d, "IDMap2,SIK64(gaussian),BFlat", faiss::METRIC_INNER_PRODUCT);
        const auto& map = exactly<faiss::IndexIDMap2>(index.get());
        EXPECT_TRUE(map.own_fields);
        EXPECT_EQ(map.metric_type, faiss::METRIC_INNER_PRODUCT);
        EXPECT_FALSE(map.is_trained);
        exactly<IndexKernelHash>(map.index);
    }
    {
        // outside of everything else
        const auto index = faiss_ext::index_factory(
                d, "IDMap2,SIK64(gaussian),BFlat,Refine(KFlat(gaussian))");
        const auto& map = exactly<faiss::IndexIDMap2>(index.get());
        const auto& refine = exactly<IndexRefineKernel>(map.index);
        exactly<IndexKernelHash>(refine.base_index);
        exactly<IndexFlatKernel>(refine.refine_index);
    }
    {
        const auto index = faiss_ext::index_factory(
                d, "IDMap,HNSW8,KFlat(gaussian,gamma=1)");
        const auto& map = exactly<faiss::IndexIDMap>(index.get());
        exactly<IndexHNSWKernel>(map.index);
        EXPECT_TRUE(map.is_trained);
    }
    {
        const auto index = faiss_ext::index_binary_factory(
                d, "IDMap2,SIK64(gaussian),BHash8");
        const auto& map = exactly<faiss::IndexBinaryIDMap2>(index.get());
        EXPECT_TRUE(map.own_fields);
        EXPECT_EQ(map.d, 64);
        exactly<IndexBinaryKernelHash>(map.index);
    }
    {
        const auto index = faiss_ext::index_binary_factory(
                d, "IDMap,SIK64(gaussian),BFlat");
        exactly<IndexBinaryKernelHash>(
                exactly<faiss::IndexBinaryIDMap>(index.get()).index);
    }
}

TEST(IndexFactory, IDMapsOverStoragesAlone) {
    {
        const auto index = faiss_ext::index_binary_factory(64, "IDMap,BFlat");
        exactly<IndexBinaryFlatSIMD>(
                exactly<faiss::IndexBinaryIDMap>(index.get()).index);
    }
    {
        const auto index = faiss_ext::index_binary_factory(64, "IDMap2,BHNSW8");
        exactly<faiss::IndexBinaryHNSW>(
                exactly<faiss::IndexBinaryIDMap2>(index.get()).index);
    }
}

TEST(IndexFactory, Refine) {
    for (auto metric : metrics) {
        {
            const auto index = faiss_ext::index_factory(
                    d,
                    "SIK512(matern,nu=1.5,gamma=1),BHash16x16,Refine(KFlat(matern(nu=1.5,gamma=2)))",
                    metric);
            const auto& refine = exactly<IndexRefineKernel>(index.get());
            EXPECT_TRUE(refine.own_fields);
            EXPECT_TRUE(refine.own_refine_index);
            EXPECT_TRUE(refine.is_trained);
            EXPECT_EQ(refine.metric_type, metric);
            const auto& base = exactly<IndexKernelHash>(refine.base_index);
            exactly<faiss::IndexBinaryMultiHash>(base.storage);
            const auto& flat = exactly<IndexFlatKernel>(refine.refine_index);
            EXPECT_EQ(flat.kernel->description(), "matern(gamma=2)");
            EXPECT_EQ(flat.metric_type, metric);
        }
        {
            const auto index = faiss_ext::index_factory(
                    d,
                    "SIK64(gaussian,gamma=1),BFlat,Refine(KFlat(gaussian))",
                    metric);
            EXPECT_FALSE(index->is_trained);
        }
        for (const char* string :
             {"SIK64(gaussian),BFlat,RFlat",
              "SIK64(gaussian),BFlat,Refine(Flat)"}) {
            const auto index = faiss_ext::index_factory(d, string, metric);
            const auto& refine = as<faiss::IndexRefine>(index.get());
            exactly<IndexKernelHash>(refine.base_index);
            const auto& flat = as<faiss::IndexFlat>(refine.refine_index);
            EXPECT_EQ(flat.metric_type, metric);
        }
        {
            // FAISS's index filters, the kernel decides
            const auto index = faiss_ext::index_factory(
                    d, "IVF16,Flat,Refine(KFlat(laplacian))", metric);
            const auto& refine = exactly<IndexRefineKernel>(index.get());
            exactly<faiss::IndexIVFFlat>(refine.base_index);
            exactly<IndexFlatKernel>(refine.refine_index);
        }
        {
            const auto index = faiss_ext::index_factory(
                    d,
                    "SIK64(gaussian),BFlat,Refine(KFlat(gaussian)),Refine(KFlat(linear))",
                    metric);
            const auto& outer = exactly<IndexRefineKernel>(index.get());
            const auto& inner = exactly<IndexRefineKernel>(outer.base_index);
            exactly<IndexKernelHash>(inner.base_index);
        }
        {
            // what refines may have transformations of its own
            const auto index = faiss_ext::index_factory(
                    d, "KFlat(linear),Refine(L2norm,KFlat(gaussian))", metric);
            const auto& refine = exactly<IndexRefineKernel>(index.get());
            exactly<faiss::IndexPreTransform>(refine.refine_index);
        }
    }
}

TEST(IndexFactory, Transformations) {
    {
        const auto index =
                faiss_ext::index_factory(d, "PCA16,SIK64(gaussian),BFlat");
        const auto& pre = exactly<faiss::IndexPreTransform>(index.get());
        EXPECT_TRUE(pre.own_fields);
        EXPECT_EQ(pre.d, d);
        EXPECT_FALSE(pre.is_trained);
        ASSERT_EQ(pre.chain.size(), 1u);
        const auto& pca = exactly<faiss::PCAMatrix>(pre.chain[0]);
        EXPECT_EQ(pca.d_in, d);
        EXPECT_EQ(pca.d_out, 16);
        const auto& hash = exactly<IndexKernelHash>(pre.index);
        EXPECT_EQ(hash.d, 16);
        EXPECT_EQ(hash.hash->d_in, 16);
        EXPECT_EQ(hash.hash->nbits, 64);
    }
    {
        const auto index = faiss_ext::index_factory(
                d, "L2norm,KFlat(linear)", faiss::METRIC_INNER_PRODUCT);
        const auto& pre = exactly<faiss::IndexPreTransform>(index.get());
        EXPECT_EQ(pre.metric_type, faiss::METRIC_INNER_PRODUCT);
        EXPECT_TRUE(pre.is_trained);
        exactly<faiss::NormalizationTransform>(pre.chain[0]);
        EXPECT_EQ(exactly<IndexFlatKernel>(pre.index).d, d);
    }
    {
        const auto index = faiss_ext::index_factory(
                d, "PCAR16,L2norm,RR8,HNSW8,KFlat(gaussian)");
        const auto& pre = exactly<faiss::IndexPreTransform>(index.get());
        ASSERT_EQ(pre.chain.size(), 3u);
        exactly<faiss::PCAMatrix>(pre.chain[0]);
        EXPECT_TRUE(as<faiss::PCAMatrix>(pre.chain[0]).random_rotation);
        exactly<faiss::NormalizationTransform>(pre.chain[1]);
        EXPECT_EQ(pre.chain[1]->d_in, 16);
        exactly<faiss::RandomRotationMatrix>(pre.chain[2]);
        EXPECT_EQ(pre.chain[2]->d_out, 8);
        EXPECT_EQ(exactly<IndexHNSWKernel>(pre.index).d, 8);
    }
    {
        const auto index =
                faiss_ext::index_factory(d, "Pad32,SIK64(laplacian),BHash8");
        const auto& pre = exactly<faiss::IndexPreTransform>(index.get());
        exactly<faiss::RemapDimensionsTransform>(pre.chain[0]);
        EXPECT_EQ(exactly<IndexKernelHash>(pre.index).d, 32);
    }
    {
        const auto index =
                faiss_ext::index_factory(d, "OPQ4_16,SIK64(gaussian),BFlat");
        const auto& pre = exactly<faiss::IndexPreTransform>(index.get());
        exactly<faiss::OPQMatrix>(pre.chain[0]);
        EXPECT_EQ(pre.index->d, 16);
    }
    {
        // the refine index sees the vectors as they come
        const auto index = faiss_ext::index_factory(
                d, "IDMap,PCA16,SIK64(gaussian),BFlat,Refine(KFlat(gaussian))");
        const auto& map = exactly<faiss::IndexIDMap>(index.get());
        const auto& refine = exactly<IndexRefineKernel>(map.index);
        const auto& pre = exactly<faiss::IndexPreTransform>(refine.base_index);
        EXPECT_EQ(exactly<IndexKernelHash>(pre.index).d, 16);
        EXPECT_EQ(exactly<IndexFlatKernel>(refine.refine_index).d, d);
    }
}

TEST(IndexFactory, WhatIsMadeWorks) {
    const idx_t n = 300, nq = 20;
    const auto x = random_vectors(n, d, 2);
    const auto q = rows(x, d, 0, nq);
    std::vector<idx_t> ids(n);
    for (idx_t i = 0; i < n; i++) {
        ids[i] = i;
    }
    for (const std::string string :
         {"SIK256(gaussian),BFlat",
          "SIK256(laplacian,seed=2),BHash16",
          "SIK256(matern,nu=1.5),BHash16x16",
          "SIK256(gaussian),BIVF4",
          "SIK256(gaussian),BIVF4_HNSW4",
          "SIK256(gaussian),BHNSW16",
          "KFlat(gaussian)",
          "KFlat(linear)",
          "HNSW16,KFlat(laplacian)",
          "PCA16,SIK256(gaussian),BFlat",
          "L2norm,KFlat(linear)",
          "SIK256(gaussian),BFlat,Refine(KFlat(gaussian))",
          "SIK256(gaussian),BFlat,RFlat",
          "IVF4,Flat,Refine(KFlat(matern))",
          "PCA16,SIK256(gaussian),BFlat,Refine(L2norm,KFlat(laplacian))",
          "IDMap,SIK256(gaussian),BFlat",
          "IDMap2,PCA16,HNSW16,KFlat(gaussian),Refine(KFlat(linear))"}) {
        SCOPED_TRACE(string);
        const auto index = faiss_ext::index_factory(d, string);
        index->train(n, x.data());
        EXPECT_TRUE(index->is_trained);
        if (dynamic_cast<const faiss::IndexIDMap*>(index.get())) {
            index->add_with_ids(n, x.data(), ids.data());
        } else {
            index->add(n, x.data());
        }
        EXPECT_EQ(index->ntotal, n);
        const auto found = search(*index, q, 3);
        idx_t right = 0;
        for (idx_t i = 0; i < nq; i++) {
            right += found.labels[i * 3] == i;
            EXPECT_NEAR(found.distances[i * 3], 0, 1e-5);
        }
        EXPECT_GE(right, nq - 1);
    }
}

TEST(IndexFactory, FaissStrings) {
    for (const char* string :
         {"Flat",
          "IVF16,Flat",
          "IVF16,PQ4x4",
          "IVF16(IVF4,Flat),SQ8",
          "PCA8,Flat",
          "PCA8,L2norm,IVF8,Flat",
          "HNSW16",
          "HNSW16,Flat",
          "HNSW16,SQ8",
          "IDMap,Flat",
          "IDMap2,IVF8,Flat",
          "Flat,RFlat",
          "SQ8,Refine(Flat)",
          "LSH",
          "SQfp16",
          "OPQ4,PQ4",
          "IVF8,PQ4x4fs,RFlat"}) {
        SCOPED_TRACE(string);
        for (auto metric : metrics) {
            std::unique_ptr<faiss::Index> theirs;
            try {
                theirs.reset(faiss::index_factory(d, string, metric));
            } catch (const faiss::FaissException&) { // not in this metric
                EXPECT_TRUE(throws(
                        [&] { faiss_ext::index_factory(d, string, metric); }));
                continue;
            }
            const auto mine = faiss_ext::index_factory(d, string, metric);
            EXPECT_EQ(typeid(*mine), typeid(*theirs));
            EXPECT_EQ(mine->d, theirs->d);
            EXPECT_EQ(mine->metric_type, metric);
            EXPECT_EQ(mine->is_trained, theirs->is_trained);
            EXPECT_FALSE(holds_faiss_ext(mine.get()));
            if (auto* pre = dynamic_cast<const faiss::IndexPreTransform*>(
                        mine.get())) {
                EXPECT_EQ(
                        typeid(*pre->index),
                        typeid(*as<faiss::IndexPreTransform>(theirs.get())
                                        .index));
            }
        }
    }
    // metrics that only FAISS knows
    EXPECT_EQ(
            faiss_ext::index_factory(d, "Flat", faiss::METRIC_L1)->metric_type,
            faiss::METRIC_L1);
    for (const char* string :
         {"BHash16", "BHash4x8", "BIVF8", "BIVF8_HNSW4", "BHNSW16"}) {
        SCOPED_TRACE(string);
        const auto mine = faiss_ext::index_binary_factory(64, string);
        const std::unique_ptr<faiss::IndexBinary> theirs(
                faiss::index_binary_factory(64, string));
        EXPECT_EQ(typeid(*mine), typeid(*theirs));
        EXPECT_EQ(mine->d, 64);
        EXPECT_EQ(mine->is_trained, theirs->is_trained);
        EXPECT_FALSE(holds_faiss_ext(mine.get()));
    }
    for (const char* string :
         {"", "Falt", "IVF16", "PCA8", "IVF16,Falt", "("}) {
        EXPECT_TRUE(throws([&] { faiss_ext::index_factory(d, string); }))
                << string;
    }
    for (const char* string : {"", "BFalt", "Flat", "KFlat", "BIVF"}) {
        EXPECT_TRUE(throws([&] {
            faiss_ext::index_binary_factory(64, string);
        })) << string;
    }
}

TEST(IndexFactory, IsFaissExtString) {
    for (const char* string :
         {"SIK512(gaussian),BFlat",
          "SIK512",
          "SIK",
          "SIK(gaussian)",
          "SIK64(gaussian",
          "SIK64,BFlat",
          "KFlat(linear)",
          "KFlat",
          "KFlat(",
          "HNSW32,KFlat(gaussian)",
          "IDMap,KFlat(linear)",
          "IDMap2,SIK64(gaussian),BFlat",
          "PCA64,SIK64(gaussian),BFlat",
          "Flat,Refine(KFlat(linear))",
          "IVF16,PQ8,Refine(PCA8,SIK64(gaussian),BFlat)",
          "IVF16(KFlat(linear)),Flat"}) {
        EXPECT_TRUE(is_faiss_ext_string(string)) << string;
    }
    for (const char* string :
         {"",
          "Flat",
          "BFlat",
          "IVF16,Flat",
          "PCA64,IVF16,PQ8",
          "HNSW32",
          "HNSW32,Flat",
          "IDMap,Flat",
          "IDMap2,Flat",
          "Flat,RFlat",
          "SQ8,Refine(Flat)",
          "LSH",
          "BHash16x16",
          "XKFlat(linear)",
          "KFlats",
          "kflat(linear)",
          "XSIK64(gaussian)",
          "sik64(gaussian)",
          "SIKX64(gaussian)",
          "gaussian(gamma=1)",
          ",",
          "((((",
          "))))"}) {
        EXPECT_FALSE(is_faiss_ext_string(string)) << string;
    }
}

// Errors.

struct BadString {
    const char* string;
    int position;         ///< where the mark must stand
    const char* expected; ///< what the list of alternatives must hold
};

template <class F>
void check_errors(const std::vector<BadString>& cases, F&& factory) {
    for (const BadString& c : cases) {
        const std::string error = error_of([&] { factory(c.string); });
        const auto says = [&](const std::string& text) {
            return error.find(text) != std::string::npos;
        };
        const std::string position = std::to_string(c.position);
        const std::string mark = std::string("\n  ") + c.string + "\n  " +
                std::string(c.position, ' ') + "^";
        const size_t list = error.find("\n  accepted here: ");
        EXPECT_TRUE(
                says(std::string("\"") + c.string + "\"") &&
                says(" at position " + position + "\n") && says(mark) &&
                (!*c.expected || error.find(c.expected, list) < error.size()))
                << c.string << ": expected a mark at " << position
                << " and a list with '" << c.expected
                << "', got: " << (error.empty() ? "no exception" : error);
    }
}

// Where parentheses do not match there is nothing to list.
const std::vector<BadString> bad_schemes = {
        {"SIK0(gaussian),BFlat", 3, "multiple of 8"},
        {"SIK7(gaussian),BFlat", 3, "multiple of 8"},
        {"SIK12(gaussian),BFlat", 3, "multiple of 8"},
        {"SIK1000000000000(gaussian),BFlat", 3, "multiple of 8"},
        {"SIK99999999999999999999999999(gaussian),BFlat", 3, "multiple of 8"},
        {"SIK134217728(gaussian),BFlat", 3, "67108864"},
        {"SIK(gaussian),BFlat", 3, "multiple of 8"},
        {"SIK,BFlat", 3, "multiple of 8"},
        {"SIK64,BFlat", 5, "gaussian"},
        {"SIK64(),BFlat", 6, ""},
        {"SIK64(,),BFlat", 6, ""},
        {"SIK64(gaussian,),BFlat", 15, ""},
        {"SIK64(gausian),BFlat", 6, "laplacian"},
        {"SIK64(linear),BFlat", 6, "gaussian, laplacian, matern"},
        {"SIK64(gamma=1),BFlat", 6, "gaussian"},
        {"SIK64(gaussian,gama=1),BFlat", 15, "gamma="},
        {"SIK64(gaussian,sed=1),BFlat", 15, "seed="},
        {"SIK64(gaussian,nu=1),BFlat", 15, "gamma="},
        {"SIK64(gaussian,laplacian),BFlat", 15, ""},
        {"SIK64(gaussian,gamma=-1),BFlat", 21, "a number from"},
        {"SIK64(gaussian,gamma=0),BFlat", 21, "a number from"},
        {"SIK64(gaussian,gamma=nan),BFlat", 21, "a number from"},
        {"SIK64(gaussian,gamma=inf),BFlat", 21, "a number from"},
        {"SIK64(gaussian,gamma=1e400),BFlat", 21, "a number from"},
        {"SIK64(gaussian,gamma=1x),BFlat", 21, "a number from"},
        {"SIK64(gaussian,gamma=),BFlat", 21, ""},
        {"SIK64(gaussian,gamma=1,gamma=2),BFlat", 23, ""},
        {"SIK64(gaussian(gamma=1),gamma=2),BFlat", 24, ""},
        {"SIK64(gaussian,seed=1.5),BFlat", 20, "an integer from"},
        {"SIK64(gaussian,seed=-1),BFlat", 20, "an integer from 0"},
        {"SIK64(gaussian,seed=99999999999999999999),BFlat",
         20,
         "an integer from 0"},
        {"SIK64(gaussian,proj=sparse),BFlat", 20, "dense"},
        {"SIK64(matern,nu=0),BFlat", 16, "a number from"},
        {"SIK64(matern,nu=21),BFlat", 16, "a number from"},
        {"SIK64(gaussian,BFlat", 5, ""},
        {"SIK64(gaussian)),BFlat", 15, ""},
        {"SIK64(gaussian(,BFlat", 14, ""},
        {"SIK64(gaussian)x,BFlat", 15, ""},
        {"SIK64(gaussian),", 16, "BFlat"},
        {"SIK64(gaussian),BFlt", 16, "BFlat"},
        {"SIK64(gaussian),Flat", 16, "BFlat"},
        {"SIK64(gaussian),BFlat(x)", 16, "BFlat"},
        {"SIK64(gaussian),BHash", 16, "BHash<b>"},
        {"SIK64(gaussian),BHash0", 21, "from 1"},
        {"SIK64(gaussian),BHash64", 16, "up to 63"},
        {"SIK64(gaussian),BHash5x16", 16, "up to 64"},
        {"SIK64(gaussian),BHash0x4", 21, "from 1"},
        {"SIK64(gaussian),BHash4x0", 23, "from 1"},
        {"SIK64(gaussian),BHash4x4x4", 16, "BHash<nhash>x<b>"},
        {"SIK64(gaussian),BIVF", 16, "BIVF<nlist>"},
        {"SIK64(gaussian),BIVF0", 20, "from 1"},
        {"SIK64(gaussian),BIVF-3", 16, "BIVF<nlist>"},
        {"SIK64(gaussian),BIVF99999999999999", 20, "from 1"},
        {"SIK64(gaussian),BHNSW0", 21, ""},
        {"SIK64(gaussian),BHNSW", 16, "BHNSW<M>"},
        {"SIK64(gaussian),SIK64(gaussian)", 16, "BFlat"}};

TEST(IndexFactory, BadSchemes) {
    check_errors(bad_schemes, [](const char* string) {
        return faiss_ext::index_factory(d, string);
    });
}

TEST(IndexFactory, BadSchemesOfBinaryIndexes) {
    check_errors(bad_schemes, [](const char* string) {
        return faiss_ext::index_binary_factory(d, string);
    });
    check_errors(
            {{"SIK64(gaussian)", 0, "SIK256(gaussian),BFlat"},
             {"KFlat(linear)", 0, "SIK256(gaussian),BFlat"},
             {"IDMap,SIK64(gaussian)", 6, "SIK256(gaussian),BFlat"},
             {"SIK64(gaussian),BFlat,BFlat", 0, "SIK256(gaussian),BFlat"},
             {"SIK64(gaussian),BFlat,Refine(KFlat(linear))",
              0,
              "SIK256(gaussian),BFlat"}},
            [](const char* string) {
                return faiss_ext::index_binary_factory(d, string);
            });
}

TEST(IndexFactory, BadFloatIndexes) {
    check_errors(
            {{"SIK64(gaussian)", 15, ",BFlat"},
             {"IDMap,SIK64(gaussian)", 21, ",BFlat"},
             {"SIK64(gaussian),BFlat,Flat", 21, ",Refine(KFlat(...))"},
             {"SIK64(gaussian),BFlat,", 21, "the end"},
             {"KFlat", 5, "gaussian, hellinger"},
             {"KFlat()", 6, ""},
             {"KFlat(foo)", 6, "gaussian, hellinger"},
             {"KFlat(1)", 6, ""},
             {"KFlat(gamma=1)", 6, "gaussian"},
             {"KFlat(linear,gamma=1)", 13, ""},
             {"KFlat(linear,linear)", 13, ""},
             {"KFlat(gaussian(gamma=0))", 21, "a number from"},
             {"KFlat(gaussian(foo))", 15, "gamma="},
             {"KFlat(gaussian(gamma=1),gamma=2)", 24, ""},
             {"KFlat(linear)x", 13, ""},
             {"KFlat(linear", 5, ""},
             {"KFlat(linear))", 13, ""},
             {"KFlat(linear),BFlat", 13, ",Refine(...)"},
             {"KFlat(linear),", 13, "the end"},
             {"HNSW1,KFlat(linear)", 4, "a number from 2"},
             {"HNSW0,KFlat(linear)", 4, "a number from 2"},
             {"HNSW99999999999999,KFlat(linear)", 4, "a number from 2"},
             {"HNSW8,KFlat(foo)", 12, "gaussian, hellinger"},
             {"HNSW8,SIK64(gaussian),BFlat", 0, "HNSW<M>,KFlat(<kernel>)"},
             {"IVF8,KFlat(linear)", 0, "KFlat(<kernel>)"},
             {"Flat,KFlat(linear)", 0, "KFlat(<kernel>)"},
             {"Foo,KFlat(linear)", 0, "KFlat(<kernel>)"},
             {"PCA8,Foo,KFlat(linear)", 0, "KFlat(<kernel>)"},
             {",KFlat(linear)", 0, "KFlat(<kernel>)"},
             {"PCA8,KFlat(foo)", 11, "gaussian"},
             {"PCA0,KFlat(linear)", 0, ""},
             {"Refine(KFlat(linear))", 0, "Refine(KFlat(<kernel>))"},
             {"IVF8(KFlat(linear)),Flat", 0, "SIK<bits>(...)"},
             {"SIK64(gaussian),BFlat,Refine(KFlat(foo))", 35, "gaussian"},
             {"SIK64(gaussian),BFlat,Refine(KFlat(linear)))", 43, ""},
             {"SIK64(gaussian),BFlat,Refine(KFlat(linear)", 28, ""}},
            [](const char* string) {
                return faiss_ext::index_factory(d, string);
            });
}

TEST(IndexFactory, BadHashes) {
    check_errors(
            {{"", 0, "SIK<bits>(...)"},
             {"SIK-8(gaussian)", 3, "multiple of 8"},
             {"SIK1e12(gaussian)", 3, "multiple of 8"},
             {"SIK0(gaussian)", 3, "multiple of 8"},
             {"SIK64(gaussian),BFlat", 15, ""},
             {"SOK64(gaussian)", 0, "SIK<bits>(...)"},
             {"64(gaussian)", 0, "SIK<bits>(...)"},
             {"KFlat(gaussian)", 0, "SIK<bits>(...)"}},
            [](const char* string) { return kernel_hash_factory(d, string); });
}

// A number that is none is an error of ours, not of FAISS.
TEST(IndexFactory, BadNumbersOfBits) {
    for (const char* string :
         {"SIK-8(gaussian),BFlat",
          "SIK1e12(gaussian),BFlat",
          "SIK6.4(gaussian),BFlat"}) {
        check_errors({{string, 3, "multiple of 8"}}, [](const char* s) {
            return faiss_ext::index_factory(d, s);
        });
        check_errors({{string, 3, "multiple of 8"}}, [](const char* s) {
            return faiss_ext::index_binary_factory(d, s);
        });
    }
}

// What FAISS cannot parse inside a string of ours.
TEST(IndexFactory, BadPartsForFaiss) {
    for (const std::string string :
         {"SIK64(gaussian),BFlat,Refine(Falt)",
          "SIK64(gaussian),BFlat,Refine()",
          "Falt,Refine(KFlat(linear))",
          "IVF0x,Flat,Refine(KFlat(linear))"}) {
        EXPECT_TRUE(
                throws([&] { faiss_ext::index_factory(d, string); },
                       "\"" + string + "\""))
                << string;
    }
}

// FAISS's parser stops at the first number.
TEST(IndexFactory, TextBehindAStorage) {
    for (const char* storage :
         {"BIVF8_foo", "BIVF8(foo)", "BIVF8_HNSW", "BIVF8_HNSW4x", "BIVF8_"}) {
        const std::string string = std::string("SIK64(gaussian),") + storage;
        EXPECT_TRUE(
                throws([&] { faiss_ext::index_factory(d, string); },
                       "\"" + string + "\""))
                << string;
    }
}

TEST(IndexFactory, NumbersBeyondAnInt) {
    for (const std::string string :
         {"PCA99999999999999,KFlat(linear)",
          "RR99999999999999,SIK64(gaussian),BFlat",
          "OPQ4_99999999999999,SIK64(gaussian),BFlat",
          "IVF99999999999999,Flat,Refine(KFlat(linear))",
          "KFlat(linear),Refine(IVF99999999999999,Flat)"}) {
        EXPECT_TRUE(
                throws([&] { faiss_ext::index_factory(d, string); },
                       "\"" + string + "\""))
                << string;
    }
}

// A graph of one link a vertex has no levels; FAISS fails at the first vector.
TEST(IndexFactory, GraphsHaveSeveralLinks) {
    const auto x = random_vectors(20, d, 3);
    for (const char* string :
         {"SIK64(gaussian,gamma=1),BHNSW1",
          "SIK64(gaussian,gamma=1),BIVF2_HNSW1"}) {
        EXPECT_TRUE(throws([&] {
            const auto index = faiss_ext::index_factory(d, string);
        })) << string;
    }
}

TEST(IndexFactory, BadDimensions) {
    for (int bad : {0, -1, -1000000}) {
        for (const char* string :
             {"SIK64(gaussian),BFlat", "KFlat(linear)", "Flat"}) {
            EXPECT_TRUE(
                    throws([&] { faiss_ext::index_factory(bad, string); },
                           "dimension"));
        }
        for (const char* string : {"SIK64(gaussian),BFlat", "BFlat"}) {
            EXPECT_TRUE(throws(
                    [&] { faiss_ext::index_binary_factory(bad, string); },
                    "dimension"));
        }
        EXPECT_TRUE(
                throws([&] { kernel_hash_factory(bad, "SIK64(gaussian)"); },
                       "dimension"));
    }
    // a number of bits that is no multiple of 8
    EXPECT_TRUE(throws([&] { faiss_ext::index_binary_factory(12, "BFlat"); }));
}

TEST(IndexFactory, BadMetrics) {
    for (auto metric :
         {faiss::METRIC_L1,
          faiss::METRIC_Linf,
          faiss::METRIC_Lp,
          faiss::METRIC_JensenShannon,
          faiss::METRIC_BrayCurtis}) {
        for (const char* string :
             {"SIK64(gaussian),BFlat",
              "KFlat(linear)",
              "HNSW8,KFlat(linear)",
              "IDMap,KFlat(linear)",
              "PCA8,SIK64(gaussian),BFlat",
              "SIK64(gaussian),BFlat,RFlat",
              "Flat,Refine(KFlat(linear))"}) {
            EXPECT_TRUE(
                    throws([&] { faiss_ext::index_factory(d, string, metric); },
                           "metric"))
                    << string;
        }
    }
}

// An index or an exception, but no crash: FAISS asks the refine index for
// distances where no exception can pass.
TEST(IndexFactory, RefineByWhatGivesNoDistances) {
    const auto x = random_vectors(100, d, 5);
    for (const std::string string :
         {"KFlat(linear),Refine(SIK64(gaussian),BFlat)",
          "SIK64(gaussian),BFlat,Refine(SIK256(gaussian),BFlat)",
          "SIK64(gaussian),BFlat,Refine(SIK256(gaussian),BHash8x8)",
          "SIK64(gaussian),BFlat,Refine(SIK256(gaussian),BHash8)",
          "SIK64(gaussian),BFlat,Refine(SIK256(gaussian),BHNSW8)",
          "SIK64(gaussian),BFlat,Refine(SIK256(gaussian),BIVF2)",
          "SIK64(gaussian),BFlat,Refine(PCA8,SIK256(gaussian),BIVF2)"}) {
        const std::string error = error_of([&] {
            const auto index = faiss_ext::index_factory(d, string);
            index->train(100, x.data());
            index->add(100, x.data());
            search(*index, x, 5);
        });
        EXPECT_TRUE(error.empty() || error.find(string) != std::string::npos)
                << error;
    }
}

// Random damage.

std::string mutate(std::string s, std::mt19937& rng) {
    static const std::string alphabet = "(),=_.-+ x019BFHKSIMaegkqz%\n\x80\xff";
    static const std::vector<std::string> words = {
            "SIK64",    "KFlat",  "(gaussian)", "gamma=", "Refine(",
            "IDMap,",   "HNSW8,", "BFlat",      ",RFlat", "PCA4,",
            "(matern)", "nu=1.5", "BHash4x4",   "BIVF4",  "seed=1",
            "L2norm,",  "auto",   "linear",     "Flat",   "IDMap2,"};
    const int edits = 1 + rng() % 3;
    for (int i = 0; i < edits; i++) {
        const size_t at = rng() % (s.size() + 1);
        switch (rng() % 6) {
            case 0:
                s.insert(at, 1, alphabet[rng() % alphabet.size()]);
                break;
            case 1:
                s.erase(at, 1 + rng() % 3);
                break;
            case 2:
                if (at < s.size()) {
                    s[at] = alphabet[rng() % alphabet.size()];
                }
                break;
            case 3:
                s.insert(at, words[rng() % words.size()]);
                break;
            case 4: // a piece comes twice
                s.insert(at, s.substr(at, rng() % 12));
                break;
            default: // a piece moves
                const std::string piece = s.substr(at, rng() % 12);
                s.erase(at, piece.size());
                s.insert(rng() % (s.size() + 1), piece);
        }
    }
    return s;
}

/// Whether a number is so long that objects of its size are not for a test.
bool is_big(const std::string& s) {
    int run = 0;
    for (char c : s) {
        run = c >= '0' && c <= '9' ? run + 1 : 0;
        if (run > 3) {
            return true;
        }
    }
    return false;
}

TEST(IndexFactory, RandomStringsGiveObjectsOrExceptions) {
    const std::vector<std::string> good = {
            "SIK64(gaussian,gamma=0.5),BFlat",
            "SIK64(matern,nu=1.5),BHash4x16",
            "SIK64(laplacian,seed=7),BIVF4_HNSW4",
            "PCA4,SIK64(gaussian),BFlat",
            "IDMap2,SIK64(gaussian),BHNSW4,Refine(KFlat(gaussian))",
            "L2norm,RR,KFlat(linear)",
            "HNSW8,KFlat(gaussian(gamma=2))",
            "SIK64(gaussian),BFlat,RFlat",
            "IVF4,Flat,Refine(KFlat(matern(nu=2.5)))"};
    std::mt19937 rng(4);
    int objects = 0, exceptions = 0;
    const auto attempt = [&](const std::string& s, auto&& make) {
        try {
            const auto object = make(s);
            ASSERT_TRUE(object) << s;
            objects++;
        } catch (const faiss::FaissException& e) {
            exceptions++;
            EXPECT_NE(*e.what(), 0) << s;
        } catch (const std::bad_alloc&) {
        } catch (const std::exception& e) {
            ADD_FAILURE() << s << ": " << e.what();
        }
    };
    for (int i = 0; i < 4000; i++) {
        const std::string s = mutate(good[rng() % good.size()], rng);
        if (is_big(s)) {
            continue;
        }
        attempt(s, [](const std::string& string) {
            return kernel_hash_factory(8, string);
        });
        attempt(s, [](const std::string& string) {
            return faiss_ext::index_binary_factory(8, string);
        });
        // FAISS's parser is slow, and not what is tested here
        if (is_faiss_ext_string(s) || i % 40 == 0) {
            const auto metric = metrics[i % 2];
            attempt(s, [metric](const std::string& string) {
                return faiss_ext::index_factory(8, string, metric);
            });
        }
    }
    EXPECT_GT(objects, 100);
    EXPECT_GT(exceptions, 1000);
}

TEST(IndexFactory, LongStrings) {
    const std::string a(300000, 'a'), one(300000, '1'), open(300000, '(');
    for (const std::string& string :
         {"KFlat(" + a + ")",
          "KFlat(linear," + a + "=1)",
          "KFlat(gaussian,gamma=" + one + ")",
          "KFlat(" + open,
          "KFlat" + open,
          "SIK" + one + "(gaussian),BFlat",
          "SIK64(gaussian,seed=" + one + "),BFlat",
          "SIK64(gaussian)," + a}) {
        EXPECT_TRUE(throws([&] { faiss_ext::index_factory(d, string); }))
                << string.substr(0, 30);
    }
}

TEST(IndexFactory, LongNumbers) {
    const std::string one(300000, '1');
    for (const std::string& string :
         {"SIK64(gaussian),BHash" + one,
          "SIK64(gaussian),BIVF" + one,
          "SIK64(gaussian),BIVF8_" + one,
          "HNSW" + one + ",KFlat(linear)"}) {
        EXPECT_TRUE(throws([&] { faiss_ext::index_factory(d, string); }))
                << string.substr(0, 30);
    }
}

} // namespace
