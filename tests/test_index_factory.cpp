// SPDX-License-Identifier: MIT
// Results of strings in all factories, and messages about bad strings.

#include <array>
#include <memory>
#include <new>
#include <random>
#include <regex>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryHNSW.h>
#include <faiss/IndexBinaryHash.h>
#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/VectorTransform.h>
#include <faiss/index_factory.h>

#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>
#include <faiss_ext/indexes/IndexBinaryHNSWSIMD.h>
#include <faiss_ext/indexes/IndexBinaryIVFSIMD.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/IndexRefineKernel.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/kernel_registry.h>
#include <faiss_ext/maps/FeatureMap.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr int d = 24;
const faiss::MetricType metrics[] = {
        faiss::METRIC_L2,
        faiss::METRIC_INNER_PRODUCT};

// Descriptions of objects as text: classes and their numbers, from the outside
// in.

std::string number(const char* name, idx_t value) {
    return std::string(" ") + name + "=" + std::to_string(value);
}

std::string what_is(const faiss::VectorTransform* vt) {
    if (auto* ours = dynamic_cast<const faiss_ext::Transform*>(vt)) {
        return ours->description() + number("d", vt->d_in);
    }
    const auto& type = typeid(*vt);
    const std::string name = type == typeid(faiss::PCAMatrix) ? "PCA"
            : type == typeid(faiss::NormalizationTransform)   ? "L2norm"
            : type == typeid(faiss::RandomRotationMatrix)     ? "RR"
            : type == typeid(faiss::RemapDimensionsTransform) ? "Pad"
            : type == typeid(faiss::OPQMatrix)                ? "OPQ"
                                                              : type.name();
    return name + number("d", vt->d_in) + number("to", vt->d_out);
}

std::string what_is(const faiss::IndexBinary* index);
std::string what_is(const faiss::Index* index);

/// Describes a hash with its storage, float or binary.
template <class IndexT>
std::string hash_and_storage(const IndexT& index) {
    EXPECT_TRUE(index.own_fields);
    EXPECT_EQ(
            index.is_trained,
            index.hash->is_trained && index.storage->is_trained);
    return "[" + what_is(index.hash) + " | " + what_is(index.storage) + "]";
}

template <class IndexT>
std::string id_map(const faiss::IndexIDMapTemplate<IndexT>& index) {
    EXPECT_TRUE(index.own_fields);
    const bool ours = typeid(index) == typeid(IndexIDTableTemplate<IndexT>);
    return (ours ? "IDTable " : "FAISS IDMap ") + what_is(index.index);
}

std::string what_is(const faiss::IndexBinary* index) {
    const auto& type = AnyIndex(index).type();
    if (auto* x = dynamic_cast<const IndexBinaryKernelHash*>(index)) {
        return hash_and_storage(*x);
    } else if (auto* x = dynamic_cast<const faiss::IndexBinaryIDMap*>(index)) {
        return id_map(*x);
    } else if (auto* x = dynamic_cast<const faiss::IndexBinaryHash*>(index)) {
        return "Hash" + number("b", x->b);
    } else if (
            auto* x = dynamic_cast<const faiss::IndexBinaryMultiHash*>(index)) {
        return "MultiHash" + number("nhash", x->nhash) + number("b", x->b);
    } else if (auto* x = dynamic_cast<const faiss::IndexBinaryIVF*>(index)) {
        const bool ours = type == typeid(IndexBinaryIVFSIMD);
        return (ours ? "IVFSIMD" : "IVF") + number("nlist", x->nlist) + " by " +
                what_is(x->quantizer);
    } else if (auto* x = dynamic_cast<const faiss::IndexBinaryHNSW*>(index)) {
        return "HNSW" + number("M", x->hnsw.nb_neighbors(1));
    }
    return type == typeid(IndexBinaryFlatSIMD)       ? "FlatSIMD"
            : type == typeid(faiss::IndexBinaryFlat) ? "Flat"
                                                     : type.name();
}

std::string what_is(const faiss::Index* index) {
    const auto& type = AnyIndex(index).type();
    if (auto* x = dynamic_cast<const IndexKernelHash*>(index)) {
        EXPECT_EQ(x->d, x->hash->d_in);
        return hash_and_storage(*x);
    } else if (auto* x = dynamic_cast<const IndexFlatKernel*>(index)) {
        EXPECT_EQ(x->is_trained, x->kernel->is_trained);
        return "KFlat " + x->kernel->description() + number("d", x->d);
    } else if (auto* x = dynamic_cast<const faiss::IndexIDMap*>(index)) {
        return id_map(*x);
    } else if (auto* x = dynamic_cast<const faiss::IndexPreTransform*>(index)) {
        EXPECT_TRUE(x->own_fields);
        std::string all;
        for (const faiss::VectorTransform* vt : x->chain) {
            all += what_is(vt) + ", ";
        }
        return all + what_is(x->index);
    } else if (auto* x = dynamic_cast<const faiss::IndexRefine*>(index)) {
        EXPECT_TRUE(x->own_fields && x->own_refine_index);
        EXPECT_EQ(x->refine_index->metric_type, x->metric_type);
        const bool ours = type == typeid(IndexRefineKernel);
        return (ours ? "refine " : "FAISS refine ") + what_is(x->base_index) +
                " by " + what_is(x->refine_index);
    } else if (auto* x = dynamic_cast<const IndexHNSWKernel*>(index)) {
        EXPECT_TRUE(x->own_fields);
        EXPECT_EQ(x->storage->metric_type, x->metric_type);
        return "HNSW" + number("M", x->hnsw.nb_neighbors(1)) + " " +
                what_is(x->storage);
    } else if (dynamic_cast<const faiss::IndexFlat*>(index)) {
        return "Flat" + number("d", index->d);
    } else if (auto* x = dynamic_cast<const faiss::IndexIVFFlat*>(index)) {
        return "IVFFlat" + number("nlist", x->nlist);
    }
    return type.name();
}

std::string what_is(const Kernel* kernel) {
    return kernel->description();
}

// All factories by one name.

enum class Factory { index, binary, hash, map, kernel };

/// Returns what a factory makes of a string, and whether it is trained.
std::pair<std::string, bool> made(
        Factory factory,
        const std::string& string,
        int dimension = d) {
    const auto result = [](const auto& object) {
        return std::pair(what_is(object.get()), bool(object->is_trained));
    };
    switch (factory) {
        case Factory::index:
            return result(faiss_ext::index_factory(dimension, string));
        case Factory::binary:
            return result(faiss_ext::index_binary_factory(dimension, string));
        case Factory::hash:
            return result(kernel_hash_factory(dimension, string));
        case Factory::map:
            return result(map_factory(dimension, string));
        default:
            return result(kernel_factory(string));
    }
}

struct GoodString {
    Factory factory;
    std::string string, makes;
    bool is_trained;
};

const std::string hash = "SIK64(gaussian(gamma=1)) d=24";
constexpr auto index_ = Factory::index, binary_ = Factory::binary,
               hash_ = Factory::hash, map_ = Factory::map,
               kernel_ = Factory::kernel;

const GoodString good_strings[] = {
        {kernel_, "laplacian(gamma=auto)", "laplacian", false},
        {kernel_, "gaussian(gamma=.5)", "gaussian(gamma=0.5)", true},
        {kernel_, " gaussian ( gamma = 2 ) ", "gaussian(gamma=2)", true},
        {kernel_, "matern(gamma=3,nu=20)", "matern(gamma=3,nu=20)", true},
        {kernel_, "matern(nu=1.5)", "matern", false},
        {kernel_, "linear", "linear", true},
        {hash_, "SIK8(gaussian,gamma=auto)", "SIK8(gaussian) d=24", false},
        {hash_,
         "SIK256(matern(nu=2.5),gamma=0.5,seed=7)",
         "SIK256(matern(gamma=0.5,nu=2.5),seed=7) d=24",
         true},
        {hash_, "SIK64(proj=structured,gaussian(gamma=1))", hash, true},
        {hash_, "SIK64(kernel=gaussian,gamma=1)", hash, true},
        {hash_, "SIK64(gamma=1,kernel=gaussian)", hash, true},
        {hash_, "SIK64(kernel=gaussian(gamma=1))", hash, true},
        {hash_, "RHBE64(center=false)", "RHBE64 d=24", true},
        {hash_, "RHBE64(center=true)", "RHBE64(center=1) d=24", false},
        {hash_, "BSIK64(4x6)", "BSIK64(shape=4x6) d=24", false},
        {index_,
         "KFlat(matern(nu=2.5),gamma=2)",
         "KFlat matern(gamma=2,nu=2.5) d=24",
         true},
        {index_,
         "IDMap,HNSW2,KFlat(laplacian)",
         "IDTable HNSW M=2 KFlat laplacian d=24",
         false},
        {index_,
         "IVF16,Flat,Refine(KFlat(linear))",
         "refine IVFFlat nlist=16 by KFlat linear d=24",
         false},
        {index_,
         "SIK64(gaussian),BFlat,RFlat,Refine(L2norm,KFlat(linear))",
         "refine refine [SIK64(gaussian) d=24 | FlatSIMD] by Flat d=24 by "
         "L2norm d=24 to=24, KFlat linear d=24",
         false},
        {index_,
         "PCAR16,L2norm,RR8,HNSW8,KFlat(linear)",
         "PCA d=24 to=16, L2norm d=16 to=16, RR d=16 to=8, "
         "HNSW M=8 KFlat linear d=8",
         false},
        {index_,
         "Pad32,SIK64(laplacian),BHash8",
         "Pad d=24 to=32, [SIK64(laplacian) d=32 | Hash b=8]",
         false},
        {index_,
         "OPQ4_16,KFlat(linear)",
         "OPQ d=24 to=16, KFlat linear d=16",
         false},
        // the refine index gets the untransformed vectors
        {index_,
         "IDMap,PCA16,SIK64(gaussian),BFlat,Refine(KFlat(gaussian))",
         "IDTable refine PCA d=24 to=16, [SIK64(gaussian) d=16 | FlatSIMD] "
         "by KFlat gaussian d=24",
         false}};

TEST(Factories, GoodStrings) {
    for (const GoodString& good : good_strings) {
        SCOPED_TRACE(good.string);
        if (good.factory == index_) {
            for (auto metric : metrics) {
                const auto index =
                        faiss_ext::index_factory(d, good.string, metric);
                EXPECT_EQ(what_is(index.get()), good.makes);
                EXPECT_EQ(index->is_trained, good.is_trained);
                EXPECT_EQ(index->d, d);
                EXPECT_EQ(index->metric_type, metric);
            }
        }
        EXPECT_EQ(
                made(good.factory, good.string),
                std::pair(good.makes, good.is_trained));
    }
    // storages of codes
    const std::pair<const char*, const char*> storages[] = {
            {"BFlat", "FlatSIMD"},
            {"BHash1", "Hash b=1"},
            {"BHash63", "Hash b=63"},
            {"BHash4x16", "MultiHash nhash=4 b=16"},
            {"BIVF1024", "IVFSIMD nlist=1024 by FlatSIMD"},
            {"BIVF16_HNSW8", "IVFSIMD nlist=16 by HNSW M=8"},
            {"BHNSW32", "HNSW M=32"}};
    for (const auto& [storage, makes] : storages) {
        const std::string string =
                "SIK64(gaussian,gamma=1)," + std::string(storage);
        const std::string both = "[" + hash + " | " + makes + "]";
        EXPECT_EQ(made(index_, string).first, both);
        EXPECT_EQ(made(binary_, string).first, both);
        // inverted lists keep ids
        if (string.find("BIVF") == std::string::npos) {
            EXPECT_EQ(
                    made(binary_, "IDMap2," + string).first, "IDTable " + both);
        }
    }
    // alone; the dimension is a number of bits
    EXPECT_EQ(made(binary_, "IDMap,BFlat", 64).first, "IDTable FlatSIMD");
    EXPECT_EQ(made(binary_, "IDMap2,BHNSW8", 64).first, "IDTable HNSW M=8");
}

TEST(Factories, SettingsOfGraphs) {
    const auto settings = [](const faiss::HNSW& hnsw) {
        return std::array{
                hnsw.nb_neighbors(1), hnsw.efConstruction, hnsw.efSearch};
    };
    const std::array expected = {8, 100, 64};
    const std::string graph = "HNSW8(efSearch=64,efConstruction=100)";
    const auto vectors = faiss_ext::index_factory(d, graph + ",KFlat(linear)");
    EXPECT_EQ(
            settings(dynamic_cast<IndexHNSWKernel&>(*vectors).hnsw), expected);
    for (const std::string& string :
         {"B" + graph, "B" + graph + ",BKFlat(jaccard)"}) {
        const auto bits = faiss_ext::index_binary_factory(64, string);
        EXPECT_EQ(
                settings(dynamic_cast<IndexBinaryHNSWSIMD&>(*bits).hnsw),
                expected);
    }
    const auto codes = faiss_ext::index_factory(d, "SIK64(gaussian),B" + graph);
    EXPECT_EQ(
            settings(dynamic_cast<IndexBinaryHNSWSIMD&>(
                             *dynamic_cast<IndexKernelHash&>(*codes).storage)
                             .hnsw),
            expected);
    EXPECT_TRUE(is_faiss_ext_string("B" + graph));
    EXPECT_FALSE(is_faiss_ext_string("BHNSW8"));
}

/// A bad string, the position marked in it, and the text that the message
/// contains there or lists as accepted.
struct BadString {
    Factory factory;
    std::string string;
    size_t position;
    std::string named;
};

const std::string bits = "number from 1", known = "laplacian";

const BadString bad_strings[] = {
        {index_, "AHK64(chi2),AFlat(x=1)", 12, "BHNSW<M>, AFlat, BPerm"},
        {index_, "IDMap,IDMap2,KFlat(linear)", 6, "IDMap is given twice"},
        // an unknown separator is marked, not what is missing behind it
        {index_, "SH16/SH16", 4, "'/'"},
        {index_, "AHK64(chi2)/BFlat", 11, "'/'"},
        {index_, "HKM1(chi2)/Flat", 10, "'/'"},
        {index_, "SH16/SH16,BFlat", 2, bits},
        {index_,
         "KFlat(linear),Refine(AHK64(chi2),AFlat)",
         14,
         "cannot re-rank"},
        // kernels
        {kernel_, "(gaussian)", 0, "name"},
        {kernel_, "gausian", 0, known},
        {kernel_, "gaussian(gamma=1)x", 17, "'x'"},
        {kernel_, "gaussian(gamma=1),laplacian", 17, "end"},
        {kernel_, "gaussian(gama=1)", 9, "gamma="},
        {kernel_, "gaussian(gamma=1,2)", 17, "gamma="},
        {kernel_, "gaussian(gamma=1,gamma=2)", 17, "twice"},
        {kernel_, "gaussian(gamma=Auto)", 15, "auto"},
        {kernel_, "gaussian(gamma=laplacian)", 15, "number"},
        {kernel_, "gaussian(gamma=0)", 15, "'0'"},
        {kernel_, "linear(gamma=1)", 7, "no argument"},
        {kernel_, "matern(nu=0.05)", 10, "0.1"},
        {kernel_, "matern(nu=20.5)", 10, "20"},
        {kernel_, "matern(1.5)", 7, "nu="},
        // hashes
        {hash_, "", 0, "SIK<bits>(...)"},
        {hash_, "XYZ64(gaussian)", 0, "SIK<bits>(...)"},
        {hash_, "SIK64(5)", 6, "name"},
        {hash_, "SIK64(gaussian,kernel=laplacian)", 15, "given twice"},
        {hash_, "SIK64(kernel=linear)", 13, "'linear'"},
        {hash_, "SIK64(gaussian(seed=1))", 15, "gamma="},
        {hash_, "BSIK64(4x5)", 7, "4x5"},
        {hash_, "RHBE64(center=yes)", 14, "0, 1, false, true"},
        {hash_, "KLSH64(poly(degree=2,degree=3))", 21, "twice"},
        // maps
        {map_, "HKN(chi2)", 0, "HKM<order>(...)"},
        {map_, "HKM(gaussian)", 4, "intersection"},
        {map_, "HKM1(chi2,order=2)", 10, "twice"},
        {map_, "RFF16", 5, known},
        {map_, "KPCA8(chi2,p=1.5)", 13, "integer"},
        // errors behind a map are found before the map is drawn
        {index_, "RFF63(gaussian),KFlat(nothing)", 22, known},
        {index_, "RFF63(gaussian),KFlat(linear)", 3, "even"},
        // hashes in indexes
        {index_, "SIK0(gaussian),BFlat", 3, bits},
        {index_, "SIK0(gaussian),BFlat", 3, bits},
        {index_, "SIK1e12(gaussian),BFlat", 3, bits},
        {index_, "SIK99999999999999999999999999(gaussian),BFlat", 3, bits},
        {index_, "SIK134217728(gaussian),BFlat", 3, "67108864"},
        {index_, "SIK,BFlat", 3, bits},
        {index_, "SIK64,BFlat", 5, "gaussian"},
        {index_, "SIK64(gaussian,),BFlat", 15, ""},
        {index_, "SIK64(gaussian,laplacian),BFlat", 15, "laplacian"},
        {index_, "SIK64(gaussian(gamma=1),gamma=2),BFlat", 24, "twice"},
        {index_, "SIK64(gaussian,seed=1.5),BFlat", 20, "an integer >= 0"},
        {index_, "SIK64(gaussian,proj=sparse),BFlat", 20, "dense"},
        {index_, "SIK64(gaussian)),BFlat", 15, ""},
        // storages of codes
        {index_, "SIK64(gaussian)", 15, ",BFlat"},
        {index_, "IDMap,SIK64(gaussian)", 21, ",BFlat"},
        {index_, "SIK64(gaussian),", 16, "BFlat"},
        {index_, "SIK64(gaussian),BHash", 16, "BHash<b>"},
        {index_, "SIK64(gaussian),BHash64", 16, "up to 63"},
        {index_, "SIK64(gaussian),BHash5x16", 16, "up to 64"},
        {index_, "SIK64(gaussian),BHash4x0", 23, "from 1"},
        {index_, "SIK64(gaussian),BHash4x4x4", 16, "BHash<nhash>x<b>"},
        {index_, "SIK64(gaussian),BIVF-3", 16, "BIVF<nlist>"},
        {index_, "SIK64(gaussian),BIVF99999999999999", 20, "from 1"},
        {index_, "SIK64(gaussian),BHNSW1", 21, ""},
        // exact search, graphs, and wrappers
        {index_, "SIK64(gaussian),BFlat,Flat", 21, ",Refine(KFlat(...))"},
        {index_, "SIK64(gaussian),BFlat,", 21, "the end"},
        {index_, "KFlat", 5, "gaussian, hellinger"},
        {index_, "KFlat(foo)", 6, "gaussian, hellinger"},
        {index_, "KFlat(linear),BFlat", 13, ",Refine(...)"},
        {index_, "KFlat(linear),", 13, "the end"},
        {index_, "HNSW1,KFlat(linear)", 4, "a number from 2"},
        {index_, "HNSW99999999999999,KFlat(linear)", 4, "a number from 2"},
        {index_, "HNSW8,SIK64(gaussian),BFlat", 0, "HNSW<M>,KFlat(<kernel>)"},
        {index_, "HNSW8(efSearch=0),KFlat(linear)", 15, "an integer from 1"},
        {index_, "HNSW8(ef=9),KFlat(linear)", 6, "efConstruction"},
        {index_, "HNSW8(100),KFlat(linear)", 6, "efConstruction"},
        {index_, "SCR64,BHNSW8(efSearch=1.5)", 22, "an integer from 1"},
        {index_, "HNSW16(efSearch=64),Flat", 6, "set_index_parameter"},
        {index_,
         "PCA4,HNSW8(efSearch=9)",
         10,
         "parentheses are for HNSW in front of KFlat"},
        {index_,
         "HKM1(chi2),HNSW8(efSearch=9),Flat",
         16,
         "hnsw.efConstruction before"},
        {index_, "IVF8,KFlat(linear)", 0, "KFlat(<kernel>)"},
        {index_, "HKM1(chi2),IDMap,Flat", 11, "IDMap must come first"},
        {index_, "RFF8(gaussian),IDMap2,IVF4,Flat", 15, "must come first"},
        {index_, "IDMap2,PCA8,KIVF8", 0, "add_with_ids"},
        {index_, "IDMap,SIK64(gaussian),BIVF8", 0, "add_with_ids"},
        {index_, "IDMap2,HKM1(chi2),IVF8,Flat", 0, "add_with_ids"},
        {binary_, "IDMap2,SIK64(gaussian),BIVF8", 0, "add_with_ids"},
        {index_, ",KFlat(linear)", 0, "KFlat(<kernel>)"},
        {index_, "PCA0,KFlat(linear)", 3, "a number from 1"},
        {index_, "Refine(KFlat(linear))", 0, "Refine(KFlat(<kernel>))"},
        {index_, "IVF8(KFlat(linear)),Flat", 0, "SIK<bits>(...)"},
        {index_, "SIK64(gaussian),BFlat,Refine(KFlat(foo))", 35, "gaussian"},
        {index_, "SIK64(gaussian),BFlat,Refine(KFlat(linear)))", 43, ""},
        {index_, "SIK64(gaussian),BFlat,Refine(KFlat(linear)", 28, ""},
        // given twice, without effect, or known but invalid here
        {hash_, "BSIK64(4x4,shape=4x4)", 11, "shape is given twice"},
        {kernel_, "normalized(linear,kernel=poly)", 18, "given twice"},
        {hash_, "RHBE64(m=3)", 7, "'m' of RHBE has no effect"},
        {hash_, "KLSH64(chi2,draw=gauss,t=5)", 23, "'t' of KLSH has no effect"},
        {map_, "HKM1(hellinger,window=uniform)", 15, "no effect"},
        {hash_, "SIK64(gaussian,gamma=1,neighbor=3)", 23, "no effect"},
        {hash_, "SIK64(chi2)", 6, "'chi2' cannot be used in SIK"},
        {map_, "RFF(gaussian,32)", 13, "'32'"},
        // binary indexes
        {binary_, "SIK64(gaussian)", 0, "SIK256(gaussian),BFlat"},
        {binary_, "IDMap,SIK64(gaussian)", 6, "SIK256(gaussian),BFlat"},
        {binary_, "SIK64(gaussian),BFlat,BFlat", 0, "SIK256(gaussian),BFlat"},
        {binary_,
         "SIK64(gaussian),BFlat,Refine(KFlat(linear))",
         29,
         "index_factory makes indexes of vectors"},
        {binary_, "BFlat,Refine(BKFlat(foo))", 20, "jaccard"},
        {binary_, "BFlat,Refine(BKFlat(dice),BFlat)", 13, "BKFlat(<kernel>)"},
        {binary_, "BHNSW1,BKFlat(dice)", 5, "a number from 2 to 1024"},
        {binary_, "BHNSW1(efSearch=9)", 5, "a number from 2 to 1024"},
        {binary_, "BHNSW8(efsearch=9)", 7, "efSearch"},
        {binary_, "BHNSW8,BKFlat(russellrao)", 0, "k(x, x) = 1"}};

TEST(Factories, BadStrings) {
    for (const BadString& bad : bad_strings) {
        const auto check = [&](Factory factory) {
            const std::string mark = "\n  " + bad.string + "\n  " +
                    std::string(bad.position, ' ') + "^";
            EXPECT_TRUE(
                    throws([&] { made(factory, bad.string); },
                           "\"" + bad.string + "\"",
                           ", position " + std::to_string(bad.position) + ": ",
                           mark,
                           bad.named))
                    << bad.string;
        };
        check(bad.factory);
        // errors in a hash or its storage are the same in a binary index
        const size_t comma = bad.string.rfind(",B");
        if (bad.factory == index_ && bad.string.rfind("SIK", 0) == 0 &&
            comma != std::string::npos &&
            bad.string.find("Flat,", comma) == std::string::npos) {
            check(binary_);
        }
    }
}

// Words of newer FAISS versions: the message gives the version they need.
TEST(Factories, StringsOfNewerFaiss) {
    for (const auto& [string, word, since, number] :
         std::vector<std::tuple<std::string, std::string, std::string, int>>{
                 {"IVF4,RaBitQ", "RaBitQ ", "1.11.0", 11100},
                 {"HKM1(chi2),IVF4,RaBitQ", "RaBitQ ", "1.11.0", 11100},
                 {"KPCA8(chi2),IVF4,RaBitQfs,Refine(KFlat(chi2))",
                  "RaBitQfs ",
                  "1.13.0",
                  11300},
                 {"HR,RFF64(gaussian),Flat", "HR ", "1.14.1", 11401},
                 {"RFF64(gaussian),EDEN4,RFlat", "EDEN ", "1.15.0", 11500},
                 {"RFF64(gaussian),SQ8_direct",
                  "SQ8_direct ",
                  "1.9.0",
                  10900}}) {
        if (faiss_version < number) {
            EXPECT_TRUE(
                    throws([&, &string = string] { made(index_, string); },
                           string,
                           word,
                           since,
                           "this is FAISS "))
                    << string;
        } else {
            EXPECT_NO_THROW(made(index_, string)) << string;
        }
    }
}

// Strings whose errors FAISS finds, or does not find; the message quotes them.
TEST(Factories, BadStringsForFaiss) {
    for (const std::string string :
         {"SIK64(gaussian),BFlat,Refine(Falt)",
          "SIK64(gaussian),BFlat,Refine()",
          "Falt,Refine(KFlat(linear))",
          "IVF0x,Flat,Refine(KFlat(linear))",
          // FAISS's parser stops at the first number
          "SIK64(gaussian),BIVF8_foo",
          "SIK64(gaussian),BIVF8_HNSW4x",
          "SIK64(gaussian),BHash#x#",
          "SIK64(gaussian),BIVF#",
          // a graph with one link per vertex has no levels
          "SIK64(gaussian),BIVF2_HNSW1",
          // numbers too large for an int
          "PCA99999999999999,KFlat(linear)",
          "IVF99999999999999,Flat,Refine(KFlat(linear))",
          "KFlat(linear),Refine(IVF99999999999999,Flat)"}) {
        EXPECT_TRUE(
                throws([&, &string = string] { made(index_, string); },
                       "\"" + string + "\""));
    }
    // numbers for which FAISS's indexes crash or find nothing
    for (const std::string behind :
         {"HNSW0",
          "HNSW1,Flat",
          "PQ0",
          "IVF0,Flat",
          "IVF00,Flat",
          "IVF4,PQ4x0",
          "OPQ0,PQ4",
          "NSG0",
          "RQ0x8",
          "LSQ0x8",
          "PCA0,Flat",
          "IVF4_HNSW0,Flat",
          "RR0,Flat"}) {
        EXPECT_TRUE(
                throws([&] { made(index_, "HKM1(chi2)," + behind); },
                       "is out of range"))
                << behind;
    }
    for (const std::string behind : {"PQ4x4fs_64", "IVF4,PQ4x4fs_16"}) {
        EXPECT_TRUE(
                throws([&] { made(index_, "HKM1(chi2)," + behind); },
                       "cannot search blocks of"))
                << behind;
    }
    EXPECT_NO_THROW(made(index_, "HKM1(chi2),PQ4x4fs_32"));
    EXPECT_TRUE(
            throws([&] { made(index_, "OPQ0,KFlat(linear)"); },
                   "'0' is out of range"));
    for (const std::string string :
         {"BIVF0",
          "BIVF-1",
          "BIVF4294967297",
          "BIVF99999999999",
          "BHash0",
          "BHash65",
          "BHash0x8",
          "BHash-1",
          "BHash2x-1",
          "BHNSW0",
          "BHNSW-1",
          "BIVF4_HNSW0",
          "BIVF0_HNSW32",
          "BIVF+4",
          "BFlatx"}) {
        EXPECT_TRUE(
                throws([&] { made(binary_, string, 64); },
                       "\"" + string + "\"",
                       "accepted here: "))
                << string;
    }
    EXPECT_NO_THROW(made(binary_, "BIVF04", 64));
    EXPECT_NO_THROW(made(index_, "HKM1(chi2),IVF04,Flat"));
    // long strings
    const std::string ones(100000, '1'), open(100000, '(');
    for (const std::string& string :
         {"KFlat(gaussian,gamma=" + ones + ")",
          "KFlat(" + open,
          "SIK" + ones + "(gaussian),BFlat",
          "SIK64(gaussian),BIVF8_" + ones,
          "HNSW" + ones + ",KFlat(linear)"}) {
        EXPECT_TRUE(throws([&] { made(index_, string); }));
    }
    for (const char* string : {"", "Falt", "IVF16", "PCA8", "("}) {
        EXPECT_TRUE(throws([&] { made(index_, string); })) << string;
        EXPECT_TRUE(throws([&] { made(binary_, string, 64); })) << string;
    }
}

TEST(IndexFactory, FaissStrings) {
    for (const char* string :
         {"Flat",
          "IVF16(IVF4,Flat),SQ8",
          "PCA8,L2norm,IVF8,Flat",
          "HNSW16",
          "IDMap2,IVF8,Flat",
          "Flat,RFlat",
          "SQ8,Refine(Flat)",
          "IVF8,PQ4x4fs,RFlat"}) {
        SCOPED_TRACE(string);
        for (auto metric : metrics) {
            std::unique_ptr<faiss::Index> theirs;
            try {
                theirs.reset(faiss::index_factory(d, string, metric));
            } catch (const faiss::FaissException&) { // not with this metric
                EXPECT_TRUE(throws(
                        [&] { faiss_ext::index_factory(d, string, metric); }));
                continue;
            }
            const auto mine = faiss_ext::index_factory(d, string, metric);
            EXPECT_EQ(what_is(mine.get()), what_is(theirs.get()));
            EXPECT_EQ(mine->d, theirs->d);
            EXPECT_EQ(mine->metric_type, metric);
            EXPECT_EQ(mine->is_trained, theirs->is_trained);
            EXPECT_FALSE(holds_faiss_ext(mine.get()));
        }
    }
    // metrics that only FAISS has
    EXPECT_EQ(
            faiss_ext::index_factory(d, "Flat", faiss::METRIC_L1)->metric_type,
            faiss::METRIC_L1);
    for (const char* string : {"BHash16", "BIVF8", "BHNSW16"}) {
        SCOPED_TRACE(string);
        const auto mine = faiss_ext::index_binary_factory(64, string);
        const std::unique_ptr<faiss::IndexBinary> theirs(
                faiss::index_binary_factory(64, string));
        if (string == std::string("BIVF8")) { // the faster search
            EXPECT_EQ(AnyIndex(*mine).type(), typeid(IndexBinaryIVFSIMD));
        } else if (string == std::string("BHNSW16")) { // which can be changed
            EXPECT_EQ(AnyIndex(*mine).type(), typeid(IndexBinaryHNSWSIMD));
            EXPECT_TRUE(holds_faiss_ext(mine.get()));
            continue;
        } else {
            EXPECT_EQ(typeid(*mine), typeid(*theirs));
        }
        EXPECT_EQ(mine->d, 64);
        EXPECT_EQ(mine->is_trained, theirs->is_trained);
        EXPECT_FALSE(holds_faiss_ext(mine.get()));
    }
}

TEST(IndexFactory, IsFaissExtString) {
    for (const char* string :
         {"SIK512",
          "SIK(gaussian)",
          "SIK64(gaussian",
          "KFlat(",
          "HNSW32,KFlat(gaussian)",
          "IDMap2,SIK64(gaussian),BFlat",
          "IVF16,PQ8,Refine(PCA8,SIK64(gaussian),BFlat)",
          "IVF16(KFlat(linear)),Flat",
          "SH64",
          "IDMap,SH64(seed=3),BFlat",
          "IVF16,PCA8,SH64,BFlat",
          "PCA8,SH64",
          "IVF16,Flat,Refine(PCA8,SH64,AFlat)",
          "IVF16,PCA8,SH1.2,Refine(KFlat(linear))"}) {
        EXPECT_TRUE(is_faiss_ext_string(string)) << string;
    }
    for (const char* string :
         {"",
          "BFlat",
          "PCA64,IVF16,PQ8",
          "IDMap2,HNSW32,Flat",
          "SQ8,Refine(Flat)",
          "XKFlat(linear)",
          "KFlats",
          "kflat(linear)",
          "SIKX64(gaussian)",
          "gaussian(gamma=1)",
          "IVF16,PCA8,SH",
          "IVF16,ITQ8,SH8",
          "IDMap,IVF16_HNSW8,PCAR,SH1.2g",
          "IVF16,PCA8,SH-1e2,RFlat",
          "IVF16,PCA8,SH8,Refine(Flat)",
          "Refine(IVF16,PCA8,SH8)",
          "((((",
          "))))"}) {
        EXPECT_FALSE(is_faiss_ext_string(string)) << string;
    }
}

TEST(IndexFactory, BadDimensions) {
    for (const auto& [factory, string] :
         {std::pair(index_, "Flat"),
          {binary_, "SIK64(gaussian),BFlat"},
          {binary_, "BFlat"},
          {hash_, "SIK64(gaussian)"},
          {map_, "HKM(chi2)"}}) {
        for (int bad : {0, -1}) {
            EXPECT_TRUE(throws(
                    [&, factory = factory, &string = string] {
                        made(factory, string, bad);
                    },
                    "dimension"))
                    << string;
        }
    }
    // a number of bits that is not a multiple of 8
    EXPECT_TRUE(throws([] { made(binary_, "BFlat", 12); }));
}

// Gives an index or an exception, but no crash. FAISS asks the refine index for
// distances where exceptions cannot pass.
TEST(IndexFactory, RefineByWhatGivesNoDistances) {
    const auto x = uniform_vectors(100, d, 5);
    for (const std::string string :
         {"SIK64(gaussian),BFlat,Refine(SIK256(gaussian),BFlat)",
          "SIK64(gaussian),BFlat,Refine(SIK256(gaussian),BHash8x8)",
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

/// Changes one to three pieces of the string.
std::string mutate(std::string s, std::mt19937& rng) {
    static const std::string alphabet = "(),=_.-+ x019BFHKSIMaegkqz%\n\x80\xff";
    for (int edits = 1 + rng() % 3; edits > 0; edits--) {
        const size_t at = rng() % (s.size() + 1), to = rng() % (at + 1);
        const std::string piece = s.substr(at, rng() % 12);
        switch (rng() % 4) {
            case 0:
                s.insert(at, 1, alphabet[rng() % alphabet.size()]);
                break;
            case 1:
                s.erase(at, 1 + rng() % 3);
                break;
            case 2:
                s.insert(at, piece);
                break;
            default:
                s.erase(at, piece.size());
                s.insert(to, piece);
        }
    }
    return s;
}

TEST(IndexFactory, RandomStringsGiveObjectsOrExceptions) {
    const std::string good[] = {
            "SIK64(matern,nu=1.5),BHash4x16",
            "PCA4,SIK64(laplacian,seed=7),BIVF4_HNSW4",
            "IDMap2,SIK64(gaussian),BHNSW4,Refine(KFlat(gaussian))",
            "L2norm,RR,HNSW8,KFlat(gaussian(gamma=2))",
            "IVF4,Flat,Refine(KFlat(matern(nu=2.5)))"};
    // objects of this size are too large for a test
    const std::regex long_number("[0-9]{4}");
    std::mt19937 rng(4);
    int objects = 0, exceptions = 0;
    for (int i = 0; i < 1000; i++) {
        const std::string s = mutate(good[rng() % std::size(good)], rng);
        SCOPED_TRACE(s);
        if (std::regex_search(s, long_number)) {
            continue;
        }
        for (Factory factory : {hash_, binary_, index_}) {
            if (factory == index_ && !is_faiss_ext_string(s)) {
                continue; // FAISS's parser is slow, and not under test
            }
            try {
                made(factory, s, 8);
                objects++;
            } catch (const faiss::FaissException&) {
                exceptions++;
            } catch (const std::bad_alloc&) {
            }
        }
    }
    EXPECT_GT(objects, 50);
    EXPECT_GT(exceptions, 250);
}

} // namespace
