// Files, buffers and copies.

#include <csignal>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <typeinfo>
#include <vector>

#include <sys/resource.h>
#include <sys/stat.h>

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
#include <faiss/IndexReplicas.h>
#include <faiss/IndexShards.h>
#include <faiss/VectorTransform.h>
#include <faiss/impl/io.h>
#include <faiss/index_factory.h>
#include <faiss/index_io.h>

#include <faiss_ext/hashes/BilinearShiftInvariantHash.h>
#include <faiss_ext/hashes/KernelizedLSH.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>
#include <faiss_ext/projections/BilinearProjection.h>
#include <faiss_ext/projections/DenseProjection.h>
#include <faiss_ext/projections/StructuredProjection.h>

#include "indexes/index_compat.h"
#include "testing_indexes.h"
#include "testing_projections.h"

using namespace faiss_ext;
using namespace faiss_ext_test;
using testing_projections::proj_of;

namespace fs = std::filesystem;

namespace {

using Bytes = std::vector<uint8_t>;
using FloatIndex = std::unique_ptr<faiss::Index>;
using BinaryIndex = std::unique_ptr<faiss::IndexBinary>;
using Transform = std::unique_ptr<faiss::VectorTransform>;

// One name for the three kinds of objects.

template <class To>
void write(const faiss::Index* index, To to) {
    faiss_ext::write_index(index, to);
}
template <class To>
void write(const faiss::IndexBinary* index, To to) {
    faiss_ext::write_index_binary(index, to);
}
template <class To>
void write(const faiss::VectorTransform* vt, To to) {
    faiss_ext::write_VectorTransform(vt, to);
}

template <class T, class From>
std::unique_ptr<T> read(From from) {
    if constexpr (std::is_same_v<T, faiss::Index>) {
        return faiss_ext::read_index(from);
    } else if constexpr (std::is_same_v<T, faiss::IndexBinary>) {
        return faiss_ext::read_index_binary(from);
    } else {
        return faiss_ext::read_VectorTransform(from);
    }
}

template <class T>
Bytes to_bytes(const T* object) {
    faiss::VectorIOWriter writer;
    write(object, static_cast<faiss::IOWriter*>(&writer));
    return writer.data;
}

template <class T>
std::unique_ptr<T> from_bytes(const Bytes& bytes) {
    faiss::VectorIOReader reader;
    reader.data = bytes;
    return read<T>(static_cast<faiss::IOReader*>(&reader));
}

template <class T>
std::unique_ptr<T> clone(const T* object) {
    if constexpr (std::is_same_v<T, faiss::Index>) {
        return faiss_ext::clone_index(object);
    } else if constexpr (std::is_same_v<T, faiss::IndexBinary>) {
        return faiss_ext::clone_binary_index(object);
    } else {
        return dynamic_cast<const KernelHash&>(*object).clone();
    }
}

// Objects to write.

constexpr int d = 6;
constexpr idx_t n = 60;

std::vector<float> base_vectors(idx_t count = n) {
    return random_vectors(count, d, 1);
}

void train_and_add(faiss::Index& index, idx_t count = n) {
    const auto x = base_vectors(count);
    std::vector<idx_t> ids(count);
    for (idx_t i = 0; i < count; i++) {
        ids[i] = 1000 - 3 * i;
    }
    if (!index.is_trained) {
        index.train(count, x.data());
    }
    if (dynamic_cast<faiss::IndexIDMap*>(&index)) {
        index.add_with_ids(count, x.data(), ids.data());
    } else {
        index.add(count, x.data());
    }
}

FloatIndex make(
        const std::string& string,
        faiss::MetricType metric = faiss::METRIC_L2) {
    auto index = faiss_ext::index_factory(d, string, metric);
    train_and_add(*index);
    return index;
}

FloatIndex make_untrained(const std::string& string) {
    auto index = faiss_ext::index_factory(d, string);
    EXPECT_FALSE(index->is_trained);
    return index;
}

FloatIndex make_refine_flat(const std::string& string) {
    auto index = std::make_unique<faiss::IndexRefineFlat>(
            faiss_ext::index_factory(d, string).release());
    index->own_fields = true;
    index->k_factor = 3;
    train_and_add(*index);
    return index;
}

template <class Group>
std::unique_ptr<Group> make_group(
        std::unique_ptr<Group> group,
        const std::string& string,
        int count) {
    own_group(*group);
    for (int i = 0; i < count; i++) {
        group->addIndex(faiss_ext::index_factory(d, string).release());
    }
    return group;
}

FloatIndex make_shards(
        const std::string& string,
        bool threaded,
        bool successive) {
    auto shards = make_group(
            std::make_unique<faiss::IndexShards>(d, threaded, successive),
            string,
            3);
    const auto x = base_vectors();
    shards->add(n, x.data());
    return shards;
}

FloatIndex make_replicas(const std::string& string, bool threaded) {
    auto replicas = make_group(
            std::make_unique<faiss::IndexReplicas>(d, threaded), string, 2);
    const auto x = base_vectors();
    replicas->add(n, x.data());
    return replicas;
}

/// A hash as a transformation in front of an index of FAISS.
FloatIndex make_hash_transform(const std::string& string) {
    auto index = std::make_unique<faiss::IndexPreTransform>(
            kernel_hash_factory(d, "SIK16(gaussian)").release(),
            faiss::index_factory(16, string.c_str()));
    index->own_fields = true;
    train_and_add(*index);
    return index;
}

FloatIndex make_hnsw(faiss::MetricType metric) {
    auto index = make("HNSW4,KFlat(gaussian,gamma=1)", metric);
    auto& hnsw = dynamic_cast<faiss::IndexHNSW&>(*index).hnsw;
    hnsw.efSearch = 33;
    hnsw.efConstruction = 44;
    return index;
}

struct FloatCase {
    const char* name;
    std::function<FloatIndex()> make;
};

const std::string sik = "SIK64(gaussian,gamma=1)";

const std::vector<FloatCase> float_cases = {
        {"HashFlat", [] { return make(sik + ",BFlat"); }},
        {"HashFlatIP",
         [] {
             return make("SIK64(laplacian),BFlat", faiss::METRIC_INNER_PRODUCT);
         }},
        {"HashHash",
         [] {
             auto index = make("SIK64(matern,nu=0.7),BHash8");
             auto* storage = dynamic_cast<IndexKernelHash&>(*index).storage;
             dynamic_cast<faiss::IndexBinaryHash&>(*storage).nflip = 2;
             return index;
         }},
        {"HashMultiHash",
         [] {
             auto index = make(sik + ",BHash4x8");
             auto* storage = dynamic_cast<IndexKernelHash&>(*index).storage;
             dynamic_cast<faiss::IndexBinaryMultiHash&>(*storage).nflip = 1;
             return index;
         }},
        {"HashIVF",
         [] {
             auto index = make("SIK64(gaussian),BIVF2");
             auto* storage = dynamic_cast<IndexKernelHash&>(*index).storage;
             dynamic_cast<faiss::IndexBinaryIVF&>(*storage).nprobe = 2;
             return index;
         }},
        {"HashHNSW", [] { return make(sik + ",BHNSW8"); }},
        {"HashUntrained",
         [] { return make_untrained("SIK64(gaussian,seed=5),BFlat"); }},
        {"HashEmpty",
         [] { return faiss_ext::index_factory(d, sik + ",BFlat"); }},
        {"FlatLinear", [] { return make("KFlat(linear)"); }},
        {"FlatGaussian", [] { return make("KFlat(gaussian,gamma=0.3)"); }},
        {"FlatLaplacianAuto", [] { return make("KFlat(laplacian)"); }},
        {"FlatMaternIP",
         [] {
             return make("KFlat(matern,nu=2.5)", faiss::METRIC_INNER_PRODUCT);
         }},
        {"FlatUntrained", [] { return make_untrained("KFlat(gaussian)"); }},
        {"FlatEmpty",
         [] { return faiss_ext::index_factory(d, "KFlat(linear)"); }},
        {"IDMap", [] { return make("IDMap," + sik + ",BFlat"); }},
        {"IDMap2", [] { return make("IDMap2,KFlat(gaussian)"); }},
        {"PreTransform", [] { return make("PCA4,L2norm," + sik + ",BFlat"); }},
        {"PreTransformFlat",
         [] {
             return make("RR5,KFlat(laplacian)", faiss::METRIC_INNER_PRODUCT);
         }},
        {"Refine",
         [] {
             auto index = make(sik + ",BFlat,Refine(KFlat(gaussian,gamma=1))");
             dynamic_cast<faiss::IndexRefine&>(*index).k_factor = 2.5;
             return index;
         }},
        {"RefineOfFaiss", [] { return make("SQ8,Refine(KFlat(gaussian))"); }},
        {"RefineByFaiss", [] { return make(sik + ",BFlat,Refine(Flat)"); }},
        {"RefineFlat", [] { return make_refine_flat(sik + ",BFlat"); }},
        {"Shards", [] { return make_shards(sik + ",BFlat", false, true); }},
        {"ShardsThreaded",
         [] { return make_shards("KFlat(linear)", true, true); }},
        {"ShardsOfIDMaps",
         [] { return make_shards("IDMap2," + sik + ",BFlat", false, false); }},
        {"Replicas", [] { return make_replicas(sik + ",BFlat", false); }},
        {"ReplicasThreaded",
         [] { return make_replicas("KFlat(linear)", true); }},
        {"HNSW", [] { return make_hnsw(faiss::METRIC_L2); }},
        {"HNSWIP", [] { return make_hnsw(faiss::METRIC_INNER_PRODUCT); }},
        {"HNSWUntrained",
         [] { return make_untrained("HNSW4,KFlat(gaussian)"); }},
        {"HashTransform", [] { return make_hash_transform("Flat"); }},
        {"HashTransformHNSW", [] { return make_hash_transform("HNSW8"); }},
        {"ThreeDeep",
         [] {
             return make(
                     "IDMap2,PCA4," + sik +
                     ",BFlat,Refine(L2norm,KFlat(gaussian))");
         }},
        {"GroupsOfGroups", [] {
             auto outer = std::make_unique<faiss::IndexReplicas>(d, false);
             own_group(*outer);
             outer->addIndex(make_shards("IDMap," + sik + ",BFlat", true, false)
                                     .release());
             outer->addIndex(make_shards("IDMap,KFlat(linear)", false, false)
                                     .release());
             return outer;
         }}};

void PrintTo(const FloatCase& c, std::ostream* out) {
    *out << c.name;
}

BinaryIndex make_binary(const std::string& string) {
    auto index = faiss_ext::index_binary_factory(d, string);
    auto* hashing = dynamic_cast<IndexBinaryKernelHash*>(index.get());
    const auto x = base_vectors();
    hashing->train(n, x.data());
    hashing->add(n, x.data());
    return index;
}

Bytes base_codes(idx_t count = n) {
    return codes_of(
            ShiftInvariantHash(d, 64, GaussianKernel(1)), base_vectors(count));
}

BinaryIndex make_binary_map(const std::string& string) {
    auto index = faiss_ext::index_binary_factory(d, string);
    std::vector<idx_t> ids(n);
    for (idx_t i = 0; i < n; i++) {
        ids[i] = 7 * i + 3;
    }
    index->add_with_ids(n, base_codes().data(), ids.data());
    return index;
}

template <class Group>
BinaryIndex make_binary_group(std::unique_ptr<Group> group) {
    own_group(*group);
    for (int i = 0; i < 2; i++) {
        group->addIndex(
                faiss_ext::index_binary_factory(d, sik + ",BFlat").release());
    }
    group->add(n, base_codes().data());
    return group;
}

struct BinaryCase {
    const char* name;
    std::function<BinaryIndex()> make;
};

const std::vector<BinaryCase> binary_cases = {
        {"Flat", [] { return make_binary(sik + ",BFlat"); }},
        {"FlatAuto", [] { return make_binary("SIK64(laplacian),BFlat"); }},
        {"Hash", [] { return make_binary(sik + ",BHash8"); }},
        {"MultiHash", [] { return make_binary(sik + ",BHash4x8"); }},
        {"IVF", [] { return make_binary(sik + ",BIVF2"); }},
        {"HNSW", [] { return make_binary(sik + ",BHNSW8"); }},
        {"IDMap", [] { return make_binary_map("IDMap," + sik + ",BFlat"); }},
        {"IDMap2", [] { return make_binary_map("IDMap2," + sik + ",BFlat"); }},
        {"Shards",
         [] {
             return make_binary_group(
                     std::make_unique<faiss::IndexBinaryShards>(
                             64, false, true));
         }},
        {"ShardsThreaded",
         [] {
             return make_binary_group(
                     std::make_unique<faiss::IndexBinaryShards>(
                             64, true, true));
         }},
        {"Replicas", [] {
             return make_binary_group(
                     std::make_unique<faiss::IndexBinaryReplicas>(64, true));
         }}};

void PrintTo(const BinaryCase& c, std::ostream* out) {
    *out << c.name;
}

// Comparison.

template <class Group>
bool is_threaded(const Group& group) {
    struct Access : Group {
        static bool get(const Group& g) {
            return g.*(&Access::isThreaded_);
        }
    };
    return Access::get(group);
}

template <class Group>
bool owns_parts(const Group& group) {
    if constexpr (requires { group.own_indices; }) {
        return group.own_indices;
    } else {
        return group.own_fields;
    }
}

/// The parts of an index, whatever it is.
std::vector<const faiss::Index*> parts_of(const faiss::Index& index) {
    if (auto* map = dynamic_cast<const faiss::IndexIDMap*>(&index)) {
        return {map->index};
    } else if (
            auto* pre = dynamic_cast<const faiss::IndexPreTransform*>(&index)) {
        return {pre->index};
    } else if (auto* refine = dynamic_cast<const faiss::IndexRefine*>(&index)) {
        return {refine->base_index, refine->refine_index};
    } else if (auto* hnsw = dynamic_cast<const faiss::IndexHNSW*>(&index)) {
        return {hnsw->storage};
    }
    std::vector<const faiss::Index*> parts;
    if (auto* shards = dynamic_cast<const faiss::IndexShards*>(&index)) {
        for (int i = 0; i < shards->count(); i++) {
            parts.push_back(shards->at(i));
        }
    } else if (
            auto* replicas =
                    dynamic_cast<const faiss::IndexReplicas*>(&index)) {
        for (int i = 0; i < replicas->count(); i++) {
            parts.push_back(replicas->at(i));
        }
    }
    return parts;
}

void expect_same_fields(const KernelHash& a, const KernelHash& b) {
    ASSERT_EQ(typeid(a), typeid(b));
    EXPECT_EQ(a.d_in, b.d_in);
    EXPECT_EQ(a.d_out, b.d_out);
    EXPECT_EQ(a.nbits, b.nbits);
    EXPECT_EQ(a.is_trained, b.is_trained);
    const auto& c = dynamic_cast<const ShiftInvariantHash&>(a);
    const auto& e = dynamic_cast<const ShiftInvariantHash&>(b);
    EXPECT_NE(c.kernel.get(), e.kernel.get());
    EXPECT_EQ(c.kernel->description(), e.kernel->description());
    EXPECT_EQ(c.kernel->gamma, e.kernel->gamma);
    EXPECT_EQ(c.seed, e.seed);
    EXPECT_EQ(c.proj.kind, e.proj.kind);
    ASSERT_EQ(bool(c.projection), bool(e.projection));
    if (c.projection) {
        EXPECT_EQ(typeid(*c.projection), typeid(*e.projection));
        EXPECT_EQ(c.projection->d_in, e.projection->d_in);
        EXPECT_EQ(c.projection->d_out, e.projection->d_out);
        EXPECT_EQ(c.projection->matrix(), e.projection->matrix());
    }
    EXPECT_EQ(c.offset, e.offset);
    EXPECT_EQ(c.threshold, e.threshold);
}

void expect_same_fields(
        const faiss::IndexBinary& a,
        const faiss::IndexBinary& b) {
    ASSERT_EQ(typeid(a), typeid(b));
    EXPECT_NE(&a, &b);
    EXPECT_EQ(a.d, b.d);
    EXPECT_EQ(b.code_size, b.d / 8);
    EXPECT_EQ(a.ntotal, b.ntotal);
    EXPECT_EQ(a.is_trained, b.is_trained);
    EXPECT_EQ(a.metric_type, b.metric_type);
    if (auto* hashing = dynamic_cast<const IndexBinaryKernelHash*>(&a)) {
        auto& other = dynamic_cast<const IndexBinaryKernelHash&>(b);
        EXPECT_TRUE(other.own_fields);
        expect_same_fields(*hashing->hash, *other.hash);
        expect_same_fields(*hashing->storage, *other.storage);
    } else if (auto* map = dynamic_cast<const faiss::IndexBinaryIDMap*>(&a)) {
        auto& other = dynamic_cast<const faiss::IndexBinaryIDMap&>(b);
        EXPECT_TRUE(other.own_fields);
        EXPECT_EQ(map->id_map, other.id_map);
        expect_same_fields(*map->index, *other.index);
    } else if (
            auto* shards = dynamic_cast<const faiss::IndexBinaryShards*>(&a)) {
        auto& other = dynamic_cast<const faiss::IndexBinaryShards&>(b);
        EXPECT_EQ(shards->successive_ids, other.successive_ids);
        EXPECT_EQ(is_threaded(*shards), is_threaded(other));
        EXPECT_TRUE(owns_parts(other));
        ASSERT_EQ(shards->count(), other.count());
        for (int i = 0; i < other.count(); i++) {
            expect_same_fields(*shards->at(i), *other.at(i));
        }
    } else if (
            auto* replicas =
                    dynamic_cast<const faiss::IndexBinaryReplicas*>(&a)) {
        auto& other = dynamic_cast<const faiss::IndexBinaryReplicas&>(b);
        EXPECT_EQ(is_threaded(*replicas), is_threaded(other));
        EXPECT_TRUE(owns_parts(other));
        ASSERT_EQ(replicas->count(), other.count());
        for (int i = 0; i < other.count(); i++) {
            expect_same_fields(*replicas->at(i), *other.at(i));
        }
    } else if (auto* hash = dynamic_cast<const faiss::IndexBinaryHash*>(&a)) {
        auto& other = dynamic_cast<const faiss::IndexBinaryHash&>(b);
        EXPECT_EQ(hash->b, other.b);
        EXPECT_EQ(hash->nflip, other.nflip);
    } else if (auto* ivf = dynamic_cast<const faiss::IndexBinaryIVF*>(&a)) {
        auto& other = dynamic_cast<const faiss::IndexBinaryIVF&>(b);
        EXPECT_EQ(ivf->nlist, other.nlist);
        EXPECT_EQ(ivf->nprobe, other.nprobe);
    }
}

void expect_same_fields(const faiss::Index& a, const faiss::Index& b) {
    // FAISS reads an IndexFlat as an IndexFlatL2 or IndexFlatIP
    if (!dynamic_cast<const faiss::IndexFlat*>(&a) ||
        !dynamic_cast<const faiss::IndexFlat*>(&b)) {
        ASSERT_EQ(typeid(a), typeid(b));
    }
    EXPECT_NE(&a, &b);
    EXPECT_EQ(a.d, b.d);
    EXPECT_EQ(a.ntotal, b.ntotal);
    EXPECT_EQ(a.is_trained, b.is_trained);
    EXPECT_EQ(a.metric_type, b.metric_type);
    if (auto* hashing = dynamic_cast<const IndexKernelHash*>(&a)) {
        auto& other = dynamic_cast<const IndexKernelHash&>(b);
        EXPECT_TRUE(other.own_fields);
        expect_same_fields(*hashing->hash, *other.hash);
        expect_same_fields(*hashing->storage, *other.storage);
    } else if (auto* flat = dynamic_cast<const IndexFlatKernel*>(&a)) {
        auto& other = dynamic_cast<const IndexFlatKernel&>(b);
        EXPECT_EQ(flat->kernel->description(), other.kernel->description());
        EXPECT_EQ(flat->code_size, other.code_size);
        ASSERT_EQ(flat->codes.size(), other.codes.size());
        EXPECT_EQ(
                Bytes(flat->codes.data(),
                      flat->codes.data() + flat->codes.size()),
                Bytes(other.codes.data(),
                      other.codes.data() + other.codes.size()));
    } else if (auto* map = dynamic_cast<const faiss::IndexIDMap*>(&a)) {
        auto& other = dynamic_cast<const faiss::IndexIDMap&>(b);
        EXPECT_TRUE(other.own_fields);
        EXPECT_EQ(map->id_map, other.id_map);
        if (auto* map2 = dynamic_cast<const faiss::IndexIDMap2*>(&b)) {
            map2->check_consistency();
        }
    } else if (auto* refine = dynamic_cast<const faiss::IndexRefine*>(&a)) {
        auto& other = dynamic_cast<const faiss::IndexRefine&>(b);
        EXPECT_TRUE(other.own_fields && other.own_refine_index);
        EXPECT_EQ(refine->k_factor, other.k_factor);
    } else if (auto* pre = dynamic_cast<const faiss::IndexPreTransform*>(&a)) {
        auto& other = dynamic_cast<const faiss::IndexPreTransform&>(b);
        EXPECT_TRUE(other.own_fields);
        ASSERT_EQ(pre->chain.size(), other.chain.size());
        for (size_t i = 0; i < pre->chain.size(); i++) {
            EXPECT_EQ(typeid(*pre->chain[i]), typeid(*other.chain[i]));
            EXPECT_EQ(to_bytes(pre->chain[i]), to_bytes(other.chain[i]));
        }
    } else if (auto* shards = dynamic_cast<const faiss::IndexShards*>(&a)) {
        auto& other = dynamic_cast<const faiss::IndexShards&>(b);
        EXPECT_EQ(shards->successive_ids, other.successive_ids);
        EXPECT_EQ(is_threaded(*shards), is_threaded(other));
        EXPECT_TRUE(owns_parts(other));
    } else if (auto* replicas = dynamic_cast<const faiss::IndexReplicas*>(&a)) {
        auto& other = dynamic_cast<const faiss::IndexReplicas&>(b);
        EXPECT_EQ(is_threaded(*replicas), is_threaded(other));
        EXPECT_TRUE(owns_parts(other));
    } else if (auto* hnsw = dynamic_cast<const faiss::IndexHNSW*>(&a)) {
        const auto& other = dynamic_cast<const faiss::IndexHNSW&>(b);
        EXPECT_TRUE(other.own_fields);
        EXPECT_EQ(hnsw->hnsw.efSearch, other.hnsw.efSearch);
        EXPECT_EQ(hnsw->hnsw.efConstruction, other.hnsw.efConstruction);
        EXPECT_EQ(hnsw->hnsw.entry_point, other.hnsw.entry_point);
        EXPECT_EQ(hnsw->hnsw.max_level, other.hnsw.max_level);
        EXPECT_EQ(hnsw->hnsw.levels, other.hnsw.levels);
    }
    const auto parts = parts_of(a), other_parts = parts_of(b);
    ASSERT_EQ(parts.size(), other_parts.size());
    for (size_t i = 0; i < parts.size(); i++) {
        expect_same_fields(*parts[i], *other_parts[i]);
    }
}

/// Whether an object is or holds a graph, which draws levels for new vectors
/// from a generator that is not in files.
bool draws_levels(const std::string& name) {
    return name.find("HNSW") != std::string::npos;
}

/// Whether its file holds an unordered map.
bool is_unordered(const std::string& name) {
    return name.find("Hash") != std::string::npos;
}

template <class T>
void expect_same_object(const T* object, const T* copy, bool compare_bytes) {
    ASSERT_TRUE(copy);
    expect_same_fields(*object, *copy);
    if (compare_bytes) {
        EXPECT_EQ(to_bytes(object), to_bytes(copy));
    }
}

/// Through a file, a buffer and a clone.
template <class T>
std::vector<std::unique_ptr<T>> copies_of(const T* object) {
    TemporaryFolder folder;
    const std::string name = folder / "object";
    std::vector<std::unique_ptr<T>> copies;
    write(object, name.c_str());
    EXPECT_EQ(folder.names(), std::vector<std::string>{"object"});
    copies.push_back(read<T>(name.c_str()));
    EXPECT_EQ(file_bytes(name), to_bytes(object));
    copies.push_back(from_bytes<T>(to_bytes(object)));
    copies.push_back(clone(object));
    return copies;
}

struct EachFloatIndex : testing::TestWithParam<FloatCase> {};

INSTANTIATE_TEST_SUITE_P(
        Io,
        EachFloatIndex,
        testing::ValuesIn(float_cases),
        [](const auto& info) { return info.param.name; });

TEST_P(EachFloatIndex, CopiesAreTheSame) {
    const std::string name = GetParam().name;
    const auto q = random_vectors(15, d, 2), more = random_vectors(20, d, 3);
    std::vector<idx_t> more_ids(20);
    for (idx_t i = 0; i < 20; i++) {
        more_ids[i] = 5000 + i;
    }
    const auto add_more = [&](faiss::Index& index) {
        if (!index.is_trained) {
            index.train(20, more.data());
        }
        auto* shards = dynamic_cast<faiss::IndexShards*>(&index);
        if (dynamic_cast<faiss::IndexIDMap*>(&index) ||
            (shards && !shards->successive_ids)) {
            index.add_with_ids(20, more.data(), more_ids.data());
        } else if (shards) { // takes one batch only
            index.reset();
            index.add(20, more.data());
        } else {
            index.add(20, more.data());
        }
    };

    const auto index = GetParam().make();
    EXPECT_TRUE(holds_faiss_ext(index.get()));
    const bool trained = index->is_trained;
    const auto copies = copies_of(index.get());
    const Found<float> found = trained ? search(*index, q, 7) : Found<float>();
    for (const auto& copy : copies) {
        expect_same_object(index.get(), copy.get(), !is_unordered(name));
        if (trained) {
            expect_same(search(*copy, q, 7), found);
        } else if (!draws_levels(name)) { // FAISS searches an empty graph
            EXPECT_TRUE(throws([&] { search(*copy, q, 7); }));
        }
    }

    // the copies can be used on, and are independent of each other
    if (name == "GroupsOfGroups") {
        return; // FAISS adds to neither
    }
    add_more(*index);
    const auto expected = search(*index, q, 7);
    for (const auto& copy : copies) {
        add_more(*copy);
        EXPECT_EQ(copy->ntotal, index->ntotal);
        if (draws_levels(name)) {
            EXPECT_EQ(
                    search(*copy, more, 1).distances,
                    search(*index, more, 1).distances);
        } else {
            expect_same(search(*copy, q, 7), expected);
        }
    }
}

struct EachBinaryIndex : testing::TestWithParam<BinaryCase> {};

INSTANTIATE_TEST_SUITE_P(
        Io,
        EachBinaryIndex,
        testing::ValuesIn(binary_cases),
        [](const auto& info) { return info.param.name; });

TEST_P(EachBinaryIndex, CopiesAreTheSame) {
    const std::string name = GetParam().name;
    const auto q = rows(base_codes(n + 15), 8, n, n + 15);
    const auto more = rows(base_codes(n + 40), 8, n + 20, n + 40);
    std::vector<idx_t> more_ids(20);
    for (idx_t i = 0; i < 20; i++) {
        more_ids[i] = 5000 + i;
    }
    const auto add_more = [&](faiss::IndexBinary& index) {
        if (dynamic_cast<faiss::IndexBinaryIDMap*>(&index)) {
            index.add_with_ids(20, more.data(), more_ids.data());
            return;
        }
        if (dynamic_cast<faiss::IndexBinaryShards*>(&index)) {
            index.reset();
        }
        index.add(20, more.data());
    };
    const auto index = GetParam().make();
    EXPECT_TRUE(holds_faiss_ext(index.get()));
    const auto copies = copies_of(index.get());
    const auto found = search(*index, q, 7);
    for (const auto& copy : copies) {
        expect_same_object(index.get(), copy.get(), !is_unordered(name));
        expect_same(search(*copy, q, 7), found);
        if (auto* hashing = dynamic_cast<IndexBinaryKernelHash*>(copy.get())) {
            const auto x = random_vectors(15, d, 4);
            expect_same(
                    search(*hashing, x, 7),
                    search(dynamic_cast<const IndexBinaryKernelHash&>(*index),
                           x,
                           7));
        }
    }
    add_more(*index);
    const auto expected = search(*index, q, 7);
    for (const auto& copy : copies) {
        add_more(*copy);
        EXPECT_EQ(copy->ntotal, index->ntotal);
        if (draws_levels(name)) {
            EXPECT_EQ(
                    search(*copy, more, 1).distances,
                    search(*index, more, 1).distances);
        } else {
            expect_same(search(*copy, q, 7), expected);
        }
    }
}

TEST(Io, Hashes) {
    const auto x = base_vectors();
    for (const char* string :
         {"SIK64(gaussian,gamma=1)",
          "SIK24(laplacian,seed=77)",
          "SIK8(matern,nu=0.3,gamma=0.125)",
          "SIK136(gaussian)",
          "SIK136(gaussian,proj=dense)"}) {
        SCOPED_TRACE(string);
        for (bool train : {false, true}) {
            const auto hash = kernel_hash_factory(d, string);
            if (train) {
                hash->train(n, x.data());
            }
            EXPECT_TRUE(holds_faiss_ext(hash.get()));
            const faiss::VectorTransform* vt = hash.get();
            for (const Transform& copy : copies_of(vt)) {
                const auto& other = dynamic_cast<const KernelHash&>(*copy);
                expect_same_fields(*hash, other);
                EXPECT_EQ(to_bytes(copy.get()), to_bytes(vt));
                hash->check_identical(other);
                if (hash->is_trained) {
                    EXPECT_EQ(codes_of(other, x), codes_of(*hash, x));
                } else {
                    EXPECT_TRUE(throws([&] { codes_of(other, x); }));
                    // and trains to the same
                    copy->train(n, x.data());
                    const auto trained = kernel_hash_factory(d, string);
                    trained->train(n, x.data());
                    EXPECT_EQ(codes_of(other, x), codes_of(*trained, x));
                }
            }
        }
    }
}

// A trained bandwidth is still one that was left to the data.
TEST(Io, CopiesTrainAnewAsTheirOriginals) {
    const auto x = base_vectors();
    std::vector<float> wide = x;
    for (float& v : wide) {
        v *= 10;
    }
    const auto index = faiss_ext::index_factory(d, "KFlat(gaussian)");
    index->train(n, x.data());
    const auto copies = copies_of(index.get());
    index->train(n, wide.data());
    for (const auto& copy : copies) {
        copy->train(n, wide.data());
        expect_same_fields(*index, *copy);
    }
}

TEST(Io, SeveralObjectsInOneStream) {
    const auto a = make("IDMap,KFlat(gaussian)"), b = make(sik + ",BFlat");
    const auto c = make("IVF2,Flat");
    const auto e = make_binary(sik + ",BFlat");
    const auto hash = kernel_hash_factory(d, sik);
    faiss::VectorIOWriter writer;
    faiss_ext::write_index(a.get(), &writer);
    faiss_ext::write_VectorTransform(hash.get(), &writer);
    faiss_ext::write_index(c.get(), &writer);
    faiss_ext::write_index_binary(e.get(), &writer);
    faiss_ext::write_index(b.get(), &writer);
    faiss::VectorIOReader reader;
    reader.data = writer.data;
    expect_same_fields(*a, *faiss_ext::read_index(&reader));
    const auto vt = faiss_ext::read_VectorTransform(&reader);
    expect_same_fields(*hash, dynamic_cast<const KernelHash&>(*vt));
    expect_same_fields(*c, *faiss_ext::read_index(&reader));
    expect_same_fields(*e, *faiss_ext::read_index_binary(&reader));
    expect_same_fields(*b, *faiss_ext::read_index(&reader));
    EXPECT_EQ(reader.rp, writer.data.size());
}

TEST(Io, BufferedStreams) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    const auto index = make("PCA4," + sik + ",BFlat,Refine(KFlat(gaussian))");
    {
        faiss::FileIOWriter file(name.c_str());
        faiss::BufferedIOWriter buffered(&file, 37);
        faiss_ext::write_index(index.get(), &buffered);
    }
    EXPECT_EQ(file_bytes(name), to_bytes(index.get()));
    faiss::FileIOReader file(name.c_str());
    faiss::BufferedIOReader buffered(&file, 37);
    expect_same_fields(*index, *faiss_ext::read_index(&buffered));
}

// FAISS's own objects.

TEST(Io, FaissIndexesAreFaissFiles) {
    TemporaryFolder folder;
    const auto q = random_vectors(9, d, 5);
    for (const char* string :
         {"Flat",
          "IVF2,Flat",
          "PCA4,L2norm,Flat",
          "HNSW8,Flat",
          "IDMap,Flat",
          "IDMap2,IVF2,SQ8",
          "Flat,RFlat",
          "SQ8,Refine(Flat)",
          "LSH"}) {
        SCOPED_TRACE(string);
        const auto index = make(string);
        EXPECT_FALSE(holds_faiss_ext(index.get()));
        const std::string mine = folder / "mine", theirs = folder / "theirs";
        faiss_ext::write_index(index.get(), mine.c_str());
        faiss::write_index(index.get(), theirs.c_str());
        EXPECT_EQ(file_bytes(mine), file_bytes(theirs));
        EXPECT_EQ(to_bytes(index.get()), file_bytes(theirs));

        const auto read_by_us = faiss_ext::read_index(theirs.c_str());
        const FloatIndex read_by_them(faiss::read_index(mine.c_str()));
        const auto from_buffer = from_bytes<faiss::Index>(file_bytes(theirs));
        const auto expected = search(*read_by_them, q, 5);
        for (const faiss::Index* copy : {read_by_us.get(), from_buffer.get()}) {
            EXPECT_EQ(typeid(*copy), typeid(*read_by_them));
            expect_same(search(*copy, q, 5), expected);
        }
    }
}

TEST(Io, FaissBinaryIndexesAreFaissFiles) {
    TemporaryFolder folder;
    const auto codes = base_codes();
    for (const char* string :
         {"BFlat", "BHash8", "BHash4x8", "BIVF2", "BHNSW8"}) {
        SCOPED_TRACE(string);
        const auto index = faiss_ext::index_binary_factory(64, string);
        index->train(n, codes.data());
        index->add(n, codes.data());
        EXPECT_FALSE(holds_faiss_ext(index.get()));
        const std::string mine = folder / "mine", theirs = folder / "theirs";
        faiss_ext::write_index_binary(index.get(), mine.c_str());
        faiss::write_index_binary(index.get(), theirs.c_str());
        EXPECT_EQ(file_bytes(mine), file_bytes(theirs));
        EXPECT_EQ(to_bytes(index.get()), file_bytes(theirs));
        const auto expected = search(*index, codes, 5);
        expect_same(
                search(*faiss_ext::read_index_binary(theirs.c_str()), codes, 5),
                expected);
        const BinaryIndex read_by_them(faiss::read_index_binary(mine.c_str()));
        expect_same(search(*read_by_them, codes, 5), expected);
        expect_same(
                search(*faiss_ext::clone_binary_index(index.get()), codes, 5),
                expected);
    }
}

TEST(Io, FaissTransformationsAreFaissFiles) {
    TemporaryFolder folder;
    const auto x = base_vectors();
    faiss::PCAMatrix pca(d, 3);
    pca.train(n, x.data());
    EXPECT_FALSE(holds_faiss_ext(&pca));
    const std::string mine = folder / "mine", theirs = folder / "theirs";
    faiss_ext::write_VectorTransform(&pca, mine.c_str());
    faiss::write_VectorTransform(&pca, theirs.c_str());
    EXPECT_EQ(file_bytes(mine), file_bytes(theirs));
    const auto copy = faiss_ext::read_VectorTransform(theirs.c_str());
    const Transform read_by_them(faiss::read_VectorTransform(mine.c_str()));
    EXPECT_EQ(dynamic_cast<const faiss::PCAMatrix&>(*copy).A, pca.A);
    EXPECT_EQ(dynamic_cast<const faiss::PCAMatrix&>(*read_by_them).A, pca.A);
}

TEST(Io, FaissIndexesInMemoryMaps) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    const auto q = random_vectors(9, d, 6);
    const auto index = make("IVF2,Flat");
    faiss_ext::write_index(index.get(), name.c_str());
    const auto mapped =
            faiss_ext::read_index(name.c_str(), faiss::IO_FLAG_MMAP);
    expect_same(search(*mapped, q, 5), search(*index, q, 5));

    // inside a file of ours FAISS's index is copied, or an exception says that
    // it cannot be mapped
    const auto inside = make_hash_transform("IVF2,Flat");
    faiss_ext::write_index(inside.get(), name.c_str());
    const std::string error = error_of([&] {
        const auto copy =
                faiss_ext::read_index(name.c_str(), faiss::IO_FLAG_MMAP);
        expect_same(search(*copy, q, 5), search(*inside, q, 5));
    });
    if (!error.empty()) {
        expect_same(
                search(*faiss_ext::read_index(name.c_str()), q, 5),
                search(*inside, q, 5));
    }
}

TEST(Io, ClonesOfFaissIndexes) {
    const auto q = random_vectors(9, d, 7);
    for (const char* string :
         {"Flat",
          "IVF2,Flat",
          "PCA4,Flat",
          "PCA4,L2norm,Flat",
          "HNSW8,Flat",
          "IDMap,Flat",
          "IDMap2,Flat",
          "Flat,RFlat",
          "SQ8,Refine(Flat)",
          "LSH"}) {
        const auto index = make(string);
        FloatIndex copy;
        const std::string error =
                error_of([&] { copy = faiss_ext::clone_index(index.get()); });
        ASSERT_EQ(error, "") << string;
        EXPECT_EQ(
                typeid(*copy),
                typeid(*from_bytes<faiss::Index>(to_bytes(index.get()))))
                << string;
        expect_same(search(*copy, q, 5), search(*index, q, 5));
    }
}

TEST(Io, HoldsFaissExt) {
    faiss::IndexFlat flat(d);
    faiss::IndexBinaryFlat binary(64);
    const faiss::Index* no_index = nullptr;
    const faiss::IndexBinary* no_binary = nullptr;
    const faiss::VectorTransform* no_transform = nullptr;
    EXPECT_FALSE(holds_faiss_ext(&flat));
    EXPECT_FALSE(holds_faiss_ext(&binary));
    EXPECT_FALSE(holds_faiss_ext(no_index));
    EXPECT_FALSE(holds_faiss_ext(no_binary));
    EXPECT_FALSE(holds_faiss_ext(no_transform));
    for (const char* string :
         {"IDMap,Flat", "PCA4,Flat", "Flat,RFlat", "HNSW8,Flat"}) {
        EXPECT_FALSE(holds_faiss_ext(make(string).get())) << string;
    }
    faiss::IndexShards shards(d, false, false);
    EXPECT_FALSE(holds_faiss_ext(&shards));
    shards.addIndex(&flat);
    EXPECT_FALSE(holds_faiss_ext(&shards));
    IndexFlatKernel ours(d, LinearKernel());
    shards.addIndex(&ours);
    EXPECT_TRUE(holds_faiss_ext(&shards));
}

TEST(Io, Nothing) {
    const faiss::Index* no_index = nullptr;
    const faiss::IndexBinary* no_binary = nullptr;
    const faiss::VectorTransform* no_transform = nullptr;
    faiss::VectorIOWriter writer;
    faiss::IOWriter* w = &writer;
    EXPECT_TRUE(throws([&] { write(no_index, w); }, "null"));
    EXPECT_TRUE(throws([&] { write(no_binary, w); }, "null"));
    EXPECT_TRUE(throws([&] { write(no_transform, w); }, "null"));
    TemporaryFolder folder;
    const std::string name = folder / "nothing";
    EXPECT_TRUE(throws([&] { write(no_index, name.c_str()); }, "null"));
    EXPECT_TRUE(folder.names().empty());
    EXPECT_TRUE(throws([&] { faiss_ext::clone_index(nullptr); }, "null"));
    EXPECT_TRUE(
            throws([&] { faiss_ext::clone_binary_index(nullptr); }, "null"));
    const char* no_name = nullptr;
    const auto index = make("KFlat(linear)");
    EXPECT_TRUE(throws(
            [&] { faiss_ext::write_index(index.get(), no_name); }, "null"));
    EXPECT_TRUE(throws([&] { faiss_ext::read_index(no_name); }, "null"));
}

// Damage.

/// Small objects of every class whose format is ours.
struct Sample {
    const char* name;
    Bytes bytes;
    /// which bytes are in FAISS's format
    std::vector<bool> is_faiss;
};

void mark_faiss(Sample& sample, const faiss::IndexBinary* part) {
    const Bytes bytes = to_bytes(part);
    auto at = sample.bytes.begin();
    while (true) {
        at = std::search(at, sample.bytes.end(), bytes.begin(), bytes.end());
        if (at == sample.bytes.end()) {
            return;
        }
        std::fill_n(
                sample.is_faiss.begin() + (at - sample.bytes.begin()),
                bytes.size(),
                true);
        ++at;
    }
}

template <class T>
Sample make_sample(const char* name, const T* object) {
    Sample sample{name, to_bytes(object), {}};
    sample.is_faiss.resize(sample.bytes.size(), false);
    return sample;
}

std::vector<Sample> float_samples() {
    const int dim = 3;
    const idx_t count = 6;
    const auto x = random_vectors(count, dim, 8);
    std::vector<Sample> samples;
    const auto keep = [&](const char* name, const faiss::Index& index) {
        samples.push_back(make_sample(name, &index));
        const faiss::Index* inner = &index;
        while (inner && !dynamic_cast<const IndexKernelHash*>(inner)) {
            const auto parts = parts_of(*inner);
            inner = parts.empty() ? nullptr : parts[0];
        }
        if (inner) {
            mark_faiss(
                    samples.back(),
                    dynamic_cast<const IndexKernelHash*>(inner)->storage);
        }
    };
    const auto add = [&](const char* name, const std::string& string) {
        const auto index = faiss_ext::index_factory(dim, string);
        index->train(count, x.data());
        if (dynamic_cast<faiss::IndexIDMap*>(index.get())) {
            const std::vector<idx_t> ids = {5, 4, 3, 2, 1, 0};
            index->add_with_ids(count, x.data(), ids.data());
        } else {
            index->add(count, x.data());
        }
        keep(name, *index);
    };
    add("flat", "KFlat(gaussian,gamma=1)");
    add("hash", "SIK8(laplacian),BFlat");
    add("map", "IDMap,KFlat(linear)");
    add("map2", "IDMap2,SIK8(gaussian),BFlat");
    add("refine", "KFlat(linear),Refine(KFlat(gaussian))");
    add("hnsw", "HNSW2,KFlat(linear)");
    keep("untrained", *faiss_ext::index_factory(dim, "SIK8(gaussian),BFlat"));
    {
        faiss::IndexShards shards(dim, true, true);
        IndexFlatKernel a(dim, LinearKernel()), b(dim, LinearKernel());
        shards.addIndex(&a);
        shards.addIndex(&b);
        shards.add(count, x.data());
        keep("shards", shards);
    }
    {
        faiss::IndexReplicas replicas(dim, false);
        IndexFlatKernel a(dim, LinearKernel()), b(dim, LinearKernel());
        replicas.addIndex(&a);
        replicas.addIndex(&b);
        replicas.add(count, x.data());
        keep("replicas", replicas);
    }
    {
        ShiftInvariantHash hash(dim, 8, GaussianKernel(1));
        IndexFlatKernel flat(8, LinearKernel());
        faiss::IndexPreTransform pre(&hash, &flat);
        pre.add(count, x.data());
        keep("transform", pre);
    }
    return samples;
}

std::vector<Sample> binary_samples() {
    const auto x = random_vectors(6, 3, 9);
    std::vector<Sample> samples;
    const auto index =
            faiss_ext::index_binary_factory(3, "SIK8(gaussian,gamma=1),BFlat");
    auto& hashing = dynamic_cast<IndexBinaryKernelHash&>(*index);
    hashing.add(6, x.data());
    samples.push_back(make_sample("binary", index.get()));
    mark_faiss(samples.back(), hashing.storage);
    hashing.reset();
    faiss::IndexBinaryIDMap2 map(index.get());
    const Bytes codes(6, 1);
    const std::vector<idx_t> ids = {5, 4, 3, 2, 1, 0};
    map.add_with_ids(6, codes.data(), ids.data());
    samples.push_back(make_sample("binary map", &map));
    mark_faiss(samples.back(), hashing.storage);
    return samples;
}

std::vector<Sample> transform_samples() {
    std::vector<Sample> samples;
    for (const char* string :
         {"SIK8(gaussian,gamma=1)",
          "SIK8(gaussian,gamma=1,proj=dense)",
          "SIK8(laplacian)"}) {
        const auto hash = kernel_hash_factory(3, string);
        samples.push_back(make_sample<faiss::VectorTransform>(
                "transformation", hash.get()));
    }
    return samples;
}

template <class T>
void check_truncation(const std::vector<Sample>& samples) {
    for (const Sample& sample : samples) {
        EXPECT_TRUE(from_bytes<T>(sample.bytes)) << sample.name;
        for (size_t size = 0; size < sample.bytes.size(); size++) {
            const Bytes part(sample.bytes.begin(), sample.bytes.begin() + size);
            ASSERT_TRUE(throws([&] { from_bytes<T>(part); }))
                    << sample.name << ", " << size << " of "
                    << sample.bytes.size() << " bytes";
        }
    }
}

TEST(Io, TruncatedAtEveryLength) {
    check_truncation<faiss::Index>(float_samples());
    check_truncation<faiss::IndexBinary>(binary_samples());
    check_truncation<faiss::VectorTransform>(transform_samples());
}

TEST(Io, TruncatedFiles) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    for (const Sample& sample : float_samples()) {
        for (size_t size :
             {size_t(0),
              size_t(1),
              size_t(4),
              size_t(9),
              sample.bytes.size() / 2,
              sample.bytes.size() - 1}) {
            write_file(
                    name,
                    Bytes(sample.bytes.begin(), sample.bytes.begin() + size));
            const auto error =
                    error_of([&] { faiss_ext::read_index(name.c_str()); });
            // the message names the file, unless it is FAISS's
            EXPECT_NE(error, "");
            if (size < 10) {
                EXPECT_NE(error.find(name), std::string::npos) << error;
            }
        }
        write_file(name, sample.bytes);
        EXPECT_TRUE(faiss_ext::read_index(name.c_str()));
    }
}

/// Reads a damaged object and destroys it; reading may fail.
template <class T>
bool survives(const Bytes& bytes) {
    try {
        from_bytes<T>(bytes);
        return true;
    } catch (const faiss::FaissException&) {
    } catch (const std::bad_alloc&) {
    }
    return false;
}

template <class T>
void check_corruption(const std::vector<Sample>& samples) {
    int which = 0;
    for (const Sample& sample : samples) {
        Bytes bytes = sample.bytes;
        idx_t objects = 0, errors = 0;
        for (size_t i = 0; i < bytes.size(); i++) {
            if (sample.is_faiss[i]) {
                continue;
            }
            const uint8_t before = bytes[i];
            const uint8_t values[] = {
                    uint8_t(before ^ (1 << i % 8)), uint8_t(~before), 0};
            bytes[i] = values[which++ % 3];
            if (bytes[i] != before) {
                EXPECT_NO_THROW((survives<T>(bytes) ? objects : errors)++)
                        << sample.name << ", byte " << i << " is "
                        << int(bytes[i]);
            }
            bytes[i] = before;
        }
        EXPECT_GT(objects, 0) << sample.name; // a value, say
        EXPECT_GT(errors, 20) << sample.name;
    }
}

TEST(Io, CorruptedAtEveryByte) {
    check_corruption<faiss::Index>(float_samples());
    check_corruption<faiss::IndexBinary>(binary_samples());
    check_corruption<faiss::VectorTransform>(transform_samples());
}

TEST(Io, ForeignFiles) {
    TemporaryFolder folder;
    const std::string name = folder / "file";
    const auto text = [](const std::string& s) {
        return Bytes(s.begin(), s.end());
    };
    std::vector<Bytes> files = {
            {},
            text("x"),
            text("FxI"),
            text("FxIx"),
            text("FxIB"),
            text("FxVT"),
            text("Dear reader,\nthis is a letter and not an index.\n"),
            {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13,
             'I',  'H', 'D', 'R', 0,    0,    1,    0,    0, 0, 1, 0},
            {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0},
            Bytes(1000, 0),
            Bytes(1000, 0xff)};
    for (const Bytes& bytes : files) {
        write_file(name, bytes);
        EXPECT_TRUE(throws([&] { faiss_ext::read_index(name.c_str()); }));
        EXPECT_TRUE(
                throws([&] { faiss_ext::read_index_binary(name.c_str()); }));
        EXPECT_TRUE(
                throws([&] { faiss_ext::read_VectorTransform(name.c_str()); }));
        EXPECT_TRUE(throws([&] { from_bytes<faiss::Index>(bytes); }));
        EXPECT_TRUE(throws([&] { from_bytes<faiss::IndexBinary>(bytes); }));
        EXPECT_TRUE(throws([&] { from_bytes<faiss::VectorTransform>(bytes); }));
    }

    // one kind of object is not another
    const Bytes index = to_bytes(make(sik + ",BFlat").get());
    const Bytes binary = to_bytes(make_binary(sik + ",BFlat").get());
    const auto hash = kernel_hash_factory(d, sik);
    const Bytes transform = to_bytes<faiss::VectorTransform>(hash.get());
    EXPECT_TRUE(throws([&] { from_bytes<faiss::Index>(binary); }));
    EXPECT_TRUE(throws([&] { from_bytes<faiss::Index>(transform); }));
    EXPECT_TRUE(throws([&] { from_bytes<faiss::IndexBinary>(index); }));
    EXPECT_TRUE(throws([&] { from_bytes<faiss::IndexBinary>(transform); }));
    EXPECT_TRUE(throws([&] { from_bytes<faiss::VectorTransform>(index); }));
    EXPECT_TRUE(throws([&] { from_bytes<faiss::VectorTransform>(binary); }));

    EXPECT_TRUE(throws(
            [&] { faiss_ext::read_index((folder / "none").c_str()); }, "none"));
    EXPECT_TRUE(throws([&] { faiss_ext::read_index(folder.path.c_str()); }));
    EXPECT_TRUE(throws([&] { faiss_ext::read_index(""); }));
}

/// `from` replaced by `to`, of the same length, where it stands first
Bytes patched(Bytes bytes, const std::string& from, const std::string& to) {
    EXPECT_EQ(from.size(), to.size());
    const auto at =
            std::search(bytes.begin(), bytes.end(), from.begin(), from.end());
    EXPECT_NE(at, bytes.end()) << from;
    std::copy(to.begin(), to.end(), at);
    return bytes;
}

TEST(Io, FilesOfNewerVersions) {
    const Bytes index = to_bytes(make("IDMap," + sik + ",BFlat").get());
    Bytes newer = index;
    ASSERT_EQ(std::string(newer.begin(), newer.begin() + 4), "FxIx");
    ASSERT_EQ(newer[4], 2);
    for (int version : {0, 1, 3}) {
        newer[4] = uint8_t(version);
        EXPECT_TRUE(
                throws([&] { from_bytes<faiss::Index>(newer); },
                       "version " + std::to_string(version)));
    }
    // inside, too
    EXPECT_TRUE(throws(
            [&] {
                from_bytes<faiss::Index>(
                        patched(index,
                                std::string("FxVT\x02\0", 6),
                                std::string("FxVT\x03\0", 6)));
            },
            "version 3"));
    EXPECT_TRUE(throws(
            [&] { from_bytes<faiss::Index>(patched(index, "SIK", "XYZ")); },
            "XYZ"));
    EXPECT_TRUE(throws(
            [&] { from_bytes<faiss::Index>(patched(index, "SIK", "XYZ")); },
            "register_hash"));
    EXPECT_TRUE(throws(
            [&] {
                from_bytes<faiss::Index>(
                        patched(index, "KernelHash", "KernelHull"));
            },
            "'KernelHull'"));
    EXPECT_TRUE(throws(
            [&] {
                from_bytes<faiss::Index>(
                        patched(index, "gaussian", "caussian"));
            },
            "caussian"));
}

void append(Bytes& bytes, const void* p, size_t size) {
    const auto* begin = static_cast<const uint8_t*>(p);
    bytes.insert(bytes.end(), begin, begin + size);
}

TEST(Io, NestingWithoutEnd) {
    // an IDMap of an IDMap of an IDMap ...
    const Bytes index =
            to_bytes(faiss_ext::index_factory(d, "IDMap,KFlat(linear)").get());
    const Bytes inner =
            to_bytes(faiss_ext::index_factory(d, "KFlat(linear)").get());
    const Bytes level(index.begin(), index.end() - inner.size());
    Bytes bytes;
    for (int i = 0; i < 100000; i++) {
        append(bytes, level.data(), level.size());
    }
    append(bytes, inner.data(), inner.size());
    EXPECT_TRUE(throws([&] { from_bytes<faiss::Index>(bytes); }, "inside"));
    // the exception leaves no trace
    EXPECT_TRUE(from_bytes<faiss::Index>(index));

    bytes.clear();
    for (int i = 0; i < 50; i++) {
        append(bytes, level.data(), level.size());
    }
    append(bytes, inner.data(), inner.size());
    EXPECT_EQ(to_bytes(from_bytes<faiss::Index>(bytes).get()), bytes);
}

TEST(Io, WhatIsTooDeepToBeReadIsNotWritten) {
    std::string string = "KFlat(linear)";
    for (int i = 0; i < 80; i++) {
        string = "IDMap," + string;
    }
    const auto index = faiss_ext::index_factory(d, string);
    Bytes bytes;
    if (error_of([&] { bytes = to_bytes(index.get()); }).empty()) {
        EXPECT_NO_THROW(from_bytes<faiss::Index>(bytes));
    }
}

// Files that are complete but do not make sense.

TEST(Io, GraphWithBadLinks) {
    const idx_t count = 400;
    const auto x = random_vectors(count, d, 10);
    const auto index = faiss_ext::index_factory(d, "HNSW4,KFlat(linear)");
    index->add(count, x.data());
    auto& hnsw = dynamic_cast<faiss::IndexHNSW&>(*index).hnsw;
    ASSERT_GE(hnsw.max_level, 1);
    const auto is_read = [&] {
        return survives<faiss::Index>(to_bytes(index.get()));
    };
    EXPECT_TRUE(is_read());

    // beyond the vectors
    const auto first = hnsw.neighbors[0];
    for (int bad : {int(count), -2, 1 << 30}) {
        hnsw.neighbors[0] = bad;
        EXPECT_FALSE(is_read()) << bad;
    }
    hnsw.neighbors[0] = first;

    // from an upper level to a vector that is not there
    const auto on_level_1 = [&](idx_t i) { return hnsw.levels[i] >= 2; };
    idx_t from = 0, to = count - 1;
    while (!on_level_1(from)) {
        from++;
    }
    while (on_level_1(to)) {
        to--;
    }
    size_t begin, end;
    hnsw.neighbor_range(from, 1, &begin, &end);
    const auto link = hnsw.neighbors[begin];
    hnsw.neighbors[begin] = to;
    EXPECT_FALSE(is_read());
    hnsw.neighbors[begin] = link;
    EXPECT_TRUE(is_read());

    // more levels to draw for new vectors than there are
    const auto probas = hnsw.assign_probas;
    hnsw.assign_probas.assign(hnsw.cum_nneighbor_per_level.size() + 5, 0.1);
    EXPECT_FALSE(is_read());
    hnsw.assign_probas.clear();
    EXPECT_FALSE(is_read());
    hnsw.assign_probas = probas;

    const auto level = hnsw.levels[0];
    for (int bad : {0, -1, 1000}) {
        hnsw.levels[0] = bad;
        EXPECT_FALSE(is_read()) << bad;
    }
    hnsw.levels[0] = level;
    const auto entry = hnsw.entry_point;
    for (int bad : {-1, int(count)}) {
        hnsw.entry_point = bad;
        EXPECT_FALSE(is_read()) << bad;
    }
    hnsw.entry_point = entry;
    const int max_level = hnsw.max_level;
    for (int bad : {-1, max_level + 1, 1000}) {
        hnsw.max_level = bad;
        EXPECT_FALSE(is_read()) << bad;
    }
    hnsw.max_level = max_level;
    for (int* ef : {&hnsw.efSearch, &hnsw.efConstruction}) {
        const int before = *ef;
        *ef = 0;
        EXPECT_FALSE(is_read());
        *ef = before;
    }
    EXPECT_TRUE(is_read());
}

TEST(Io, PartsThatDoNotFit) {
    const auto rejected = [](const faiss::Index& index) {
        return !survives<faiss::Index>(to_bytes(&index));
    };
    {
        const auto index = make("IDMap,KFlat(linear)");
        auto& map = dynamic_cast<faiss::IndexIDMap&>(*index);
        map.id_map.pop_back();
        EXPECT_TRUE(rejected(map));
        map.ntotal--;
        EXPECT_TRUE(rejected(map));
    }
    {
        const auto index = make(sik + ",BFlat");
        auto& hashing = dynamic_cast<IndexKernelHash&>(*index);
        hashing.ntotal++;
        EXPECT_TRUE(rejected(hashing));
        hashing.ntotal--;
        hashing.d = 7;
        EXPECT_TRUE(rejected(hashing));
        hashing.d = d;
        EXPECT_FALSE(rejected(hashing));
        faiss::IndexBinaryFlat narrow(56);
        narrow.add(n, Bytes(n * 7, 0).data());
        auto* storage = hashing.storage;
        hashing.storage = &narrow;
        EXPECT_TRUE(rejected(hashing));
        hashing.storage = storage;
    }
    {
        const auto index = make("PCA4,KFlat(linear)");
        auto& pre = dynamic_cast<faiss::IndexPreTransform&>(*index);
        faiss::NormalizationTransform three(3);
        pre.chain.push_back(&three);
        EXPECT_TRUE(rejected(pre));
        pre.chain.pop_back();
        auto* inner = pre.index;
        IndexFlatKernel wide(5, LinearKernel());
        wide.ntotal = n;
        pre.index = &wide;
        EXPECT_TRUE(rejected(pre));
        pre.index = inner;
        EXPECT_FALSE(rejected(pre));
    }
    {
        const auto index = make(sik + ",BFlat,Refine(KFlat(linear))");
        auto& refine = dynamic_cast<faiss::IndexRefine&>(*index);
        refine.refine_index->reset();
        EXPECT_TRUE(rejected(refine));
    }
    {
        const auto index = make("KFlat(linear)");
        auto& flat = dynamic_cast<IndexFlatKernel&>(*index);
        flat.codes.resize(flat.codes.size() - 4);
        EXPECT_TRUE(rejected(flat));
    }
}

TEST(Io, GroupsOfPartsThatDoNotFit) {
    // FAISS notices some of it before it has taken a part, some after that;
    // either way the part is deleted once
    const auto rejected = [](const faiss::Index& index) {
        return !survives<faiss::Index>(to_bytes(&index));
    };
    const auto x = base_vectors();
    IndexFlatKernel a(d, LinearKernel()), b(d, LinearKernel());
    {
        faiss::IndexReplicas replicas(d, false);
        replicas.addIndex(&a);
        replicas.addIndex(&b);
        EXPECT_FALSE(rejected(replicas));
        b.add(5, x.data()); // unlike a
        EXPECT_TRUE(rejected(replicas));
    }
    {
        faiss::IndexShards shards(d, false, true);
        shards.addIndex(&a);
        shards.addIndex(&b);
        EXPECT_FALSE(rejected(shards));
        b.metric_type = faiss::METRIC_INNER_PRODUCT;
        EXPECT_TRUE(rejected(shards));
        b.metric_type = faiss::METRIC_L2;
        shards.d = d + 1;
        EXPECT_TRUE(rejected(shards));
        shards.d = d;
        EXPECT_FALSE(rejected(shards));
    }
    {
        const auto trained = faiss_ext::index_factory(d, "KFlat(gaussian)");
        const auto not_yet = faiss_ext::index_factory(d, "KFlat(gaussian)");
        faiss::IndexShards shards(d, false, true);
        shards.addIndex(trained.get());
        shards.addIndex(not_yet.get());
        EXPECT_FALSE(rejected(shards));
        trained->train(n, x.data());
        EXPECT_TRUE(rejected(shards));
    }
}

TEST(Io, MatrixOfTheWrongShape) {
    // as many numbers as there must be, in other rows
    for (bool structured : {false, true}) {
        ShiftInvariantHash hash(
                16, 8, GaussianKernel(1), 1234, proj_of(structured));
        EXPECT_TRUE(survives<faiss::VectorTransform>(
                to_bytes<faiss::VectorTransform>(&hash)));
        std::swap(hash.projection->d_in, hash.projection->d_out);
        EXPECT_FALSE(survives<faiss::VectorTransform>(
                to_bytes<faiss::VectorTransform>(&hash)));
    }
}

TEST(Io, NumbersThatAreNotFinite) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    for (bool structured : {false, true}) {
        const ShiftInvariantHash good(
                16, 8, GaussianKernel(1), 1234, proj_of(structured));
        const auto is_refused = [](const ShiftInvariantHash& hash) {
            return !survives<faiss::VectorTransform>(
                    to_bytes<faiss::VectorTransform>(&hash));
        };
        EXPECT_FALSE(is_refused(good));
        ShiftInvariantHash bad(good);
        bad.offset[3] = nan;
        EXPECT_TRUE(is_refused(bad));
        ShiftInvariantHash other(good);
        other.threshold[3] = nan;
        EXPECT_TRUE(is_refused(other));
        ShiftInvariantHash third(good);
        if (structured) {
            dynamic_cast<StructuredProjection&>(*third.projection).norms[1] =
                    nan;
        } else {
            dynamic_cast<DenseProjection&>(*third.projection).panels[1] = nan;
        }
        EXPECT_TRUE(is_refused(third));
    }
}

TEST(Io, TrainedOnlyIfTheKernelIs) {
    const auto index = faiss_ext::index_factory(d, "KFlat(gaussian)");
    index->is_trained = true; // a lie
    EXPECT_FALSE(survives<faiss::Index>(to_bytes(index.get())));
}

// Writing that fails.

/// Takes some bytes and no more.
struct FullWriter : faiss::IOWriter {
    size_t room;

    explicit FullWriter(size_t room) : room(room) {
        name = "full";
    }
    size_t operator()(const void*, size_t size, size_t nitems) override {
        const size_t items = size == 0 ? 0 : std::min(nitems, room / size);
        room -= items * size;
        return items;
    }
};

TEST(Io, WritersThatFail) {
    for (const Sample& sample : float_samples()) {
        const auto index = from_bytes<faiss::Index>(sample.bytes);
        const size_t size = sample.bytes.size();
        for (size_t room = 0; room < size; room++) {
            FullWriter writer(room);
            ASSERT_TRUE(throws([&] {
                faiss_ext::write_index(index.get(), &writer);
            })) << sample.name
                << ": " << room << " of " << size;
        }
        FullWriter writer(size);
        faiss_ext::write_index(index.get(), &writer);
        EXPECT_EQ(writer.room, 0u);
    }
}

/// An index that neither FAISS nor this library knows.
struct StrangeIndex : faiss::Index {
    StrangeIndex() : Index(::d) {}
    void add(idx_t, const float*) override {}
    void search(
            idx_t,
            const float*,
            idx_t,
            float*,
            idx_t*,
            const faiss::SearchParameters*) const override {}
    void reset() override {}
};

/// Holds an index of this library and, behind it, one that cannot be written.
struct Unwritable {
    IndexFlatKernel ours{d, LinearKernel()};
    StrangeIndex strange;
    faiss::IndexShards shards{d, false, false};
    faiss::IndexIDMap map, outer;

    Unwritable()
            : map((shards.addIndex(&ours), shards.addIndex(&strange), &shards)),
              outer(&map) {}
};

TEST(Io, FailuresLeaveNoFile) {
    TemporaryFolder folder;
    Unwritable index;
    EXPECT_TRUE(holds_faiss_ext(&index.outer));
    EXPECT_TRUE(throws([&] {
        faiss_ext::write_index(&index.outer, (folder / "index").c_str());
    }));
    EXPECT_TRUE(folder.names().empty());
    EXPECT_TRUE(throws([&] { faiss_ext::clone_index(&index.outer); }));

    const auto good = make("KFlat(linear)");
    const std::string name = folder / "index";
    faiss_ext::write_index(good.get(), name.c_str());
    const Bytes before = file_bytes(name);
    EXPECT_TRUE(throws(
            [&] { faiss_ext::write_index(&index.outer, name.c_str()); }));
    EXPECT_EQ(folder.names(), std::vector<std::string>{"index"});
    EXPECT_EQ(file_bytes(name), before);
    EXPECT_TRUE(faiss_ext::read_index(name.c_str()));
}

TEST(Io, FailuresInsideFaissClassesLeaveNoFile) {
    // a class of FAISS that is not in the list, around ours
    IndexFlatKernel quantizer(d, LinearKernel());
    faiss::IndexIVFFlat ivf(&quantizer, d, 2);
    TemporaryFolder folder;
    const std::string name = folder / "index";
    EXPECT_TRUE(throws([&] { faiss_ext::write_index(&ivf, name.c_str()); }));
    EXPECT_TRUE(folder.names().empty());
    const auto good = make("KFlat(linear)");
    faiss_ext::write_index(good.get(), name.c_str());
    const Bytes before = file_bytes(name);
    EXPECT_TRUE(throws([&] { faiss_ext::write_index(&ivf, name.c_str()); }));
    EXPECT_EQ(file_bytes(name), before);
}

TEST(Io, FullDisks) {
    // no file may grow beyond a few bytes
    TemporaryFolder folder;
    const std::string name = folder / "index";
    const auto small = make("KFlat(linear)");
    faiss_ext::write_index(small.get(), name.c_str());
    const Bytes before = file_bytes(name);
    const auto big = faiss_ext::index_factory(d, "IDMap,KFlat(linear)");
    train_and_add(*big, 5000);

    rlimit limit;
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit low = limit;
    low.rlim_cur = 50000;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
    const auto error =
            error_of([&] { faiss_ext::write_index(big.get(), name.c_str()); });
    setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, handler);

    EXPECT_NE(error, "");
    EXPECT_EQ(folder.names(), std::vector<std::string>{"index"});
    EXPECT_EQ(file_bytes(name), before);
    faiss_ext::write_index(big.get(), name.c_str());
    EXPECT_EQ(faiss_ext::read_index(name.c_str())->ntotal, 5000);
}

TEST(Io, FoldersThatTakeNoFiles) {
    TemporaryFolder folder;
    const auto index = make("KFlat(linear)");
    const std::string none = folder / "none/index";
    EXPECT_TRUE(throws(
            [&] { faiss_ext::write_index(index.get(), none.c_str()); }, none));
    write_file(folder / "file", {1, 2, 3});
    EXPECT_TRUE(throws([&] {
        faiss_ext::write_index(index.get(), (folder / "file/index").c_str());
    }));
    fs::create_directory(folder / "folder");
    EXPECT_TRUE(throws([&] {
        faiss_ext::write_index(index.get(), (folder / "folder").c_str());
    }));
    EXPECT_TRUE(throws([&] { faiss_ext::write_index(index.get(), ""); }));
    EXPECT_EQ(folder.names(), (std::vector<std::string>{"file", "folder"}));
    EXPECT_EQ(file_bytes(folder / "file"), (Bytes{1, 2, 3}));
    EXPECT_TRUE(fs::is_empty(folder / "folder"));

    if (geteuid() == 0) {
        return; // nothing is forbidden
    }
    fs::permissions(folder / "folder", fs::perms::owner_read);
    EXPECT_TRUE(throws([&] {
        faiss_ext::write_index(index.get(), (folder / "folder/index").c_str());
    }));
    fs::permissions(folder / "folder", fs::perms::owner_all);
    EXPECT_TRUE(fs::is_empty(folder / "folder"));
}

TEST(Io, SymbolicLinks) {
    TemporaryFolder folder;
    const auto index = make("KFlat(linear)");
    fs::create_directory(folder / "data");
    write_file(folder / "data/target", {1, 2, 3});
    fs::create_symlink("data/target", folder / "link");
    fs::create_symlink("link", folder / "link_to_link");
    for (const char* link : {"link", "link_to_link"}) {
        write_file(folder / "data/target", {1, 2, 3});
        const std::string name = folder / link;
        faiss_ext::write_index(index.get(), name.c_str());
        EXPECT_TRUE(fs::is_symlink(name));
        EXPECT_FALSE(fs::is_symlink(folder / "data/target"));
        EXPECT_EQ(file_bytes(folder / "data/target"), to_bytes(index.get()));
        EXPECT_TRUE(faiss_ext::read_index(name.c_str()));
    }
    EXPECT_EQ(fs::read_symlink(folder / "link"), "data/target");
    EXPECT_EQ(
            folder.names(),
            (std::vector<std::string>{"data", "link", "link_to_link"}));
    EXPECT_EQ(
            std::distance(
                    fs::directory_iterator(folder / "data"),
                    fs::directory_iterator()),
            1);
}

TEST(Io, SymbolicLinksToWhatIsNotThereYet) {
    TemporaryFolder folder;
    const auto index = make("KFlat(linear)");
    fs::create_symlink("target", folder / "link");
    faiss_ext::write_index(index.get(), (folder / "link").c_str());
    EXPECT_TRUE(fs::is_symlink(folder / "link"));
    EXPECT_EQ(folder.names(), (std::vector<std::string>{"link", "target"}));
    EXPECT_TRUE(faiss_ext::read_index((folder / "link").c_str()));
}

TEST(Io, PermissionsOfReplacedFiles) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    const auto index = make("KFlat(linear)");
    faiss_ext::write_index(index.get(), name.c_str());
    // a new file is as one of FAISS
    faiss::IndexFlat flat(d);
    faiss::write_index(&flat, (folder / "faiss").c_str());
    EXPECT_EQ(
            fs::status(name).permissions(),
            fs::status(folder / "faiss").permissions());
    fs::permissions(name, fs::perms::owner_read | fs::perms::owner_write);
    faiss_ext::write_index(index.get(), name.c_str());
    EXPECT_EQ(
            fs::status(name).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST(Io, LongNames) {
    TemporaryFolder folder;
    const auto index = make("KFlat(linear)");
    const std::string name(255, 'n'); // the longest that there may be
    faiss_ext::write_index(index.get(), (folder / name).c_str());
    EXPECT_EQ(folder.names(), std::vector<std::string>{name});
}

TEST(Io, Pipes) {
    TemporaryFolder folder;
    const std::string name = folder / "pipe";
    ASSERT_EQ(mkfifo(name.c_str(), 0600), 0);
    const auto index = make("IDMap," + sik + ",BFlat");
    std::thread writer(
            [&] { faiss_ext::write_index(index.get(), name.c_str()); });
    const auto copy = faiss_ext::read_index(name.c_str());
    writer.join();
    expect_same_fields(*index, *copy);
    EXPECT_EQ(folder.names(), std::vector<std::string>{"pipe"});
    EXPECT_TRUE(fs::is_fifo(name));
}

TEST(Io, PipesWithFaissIndexes) {
    // what comes from a pipe can be read once only
    for (const char* string : {"KFlat(linear)", "Flat", "IVF2,Flat"}) {
        const auto index = make(string);
        const Bytes bytes = to_bytes(index.get());
        int ends[2];
        ASSERT_EQ(pipe(ends), 0);
        ASSERT_EQ(
                ::write(ends[1], bytes.data(), bytes.size()),
                ssize_t(bytes.size()));
        close(ends[1]);
        const std::string name = "/dev/fd/" + std::to_string(ends[0]);
        FloatIndex copy;
        EXPECT_EQ(
                error_of([&] { copy = faiss_ext::read_index(name.c_str()); }),
                "")
                << string;
        close(ends[0]);
        if (copy) {
            EXPECT_EQ(to_bytes(copy.get()), bytes);
        }
    }
}

TEST(Io, Devices) {
    const auto index = make("KFlat(linear)");
    if (fs::exists("/dev/full")) {
        EXPECT_TRUE(throws(
                [&] { faiss_ext::write_index(index.get(), "/dev/full"); }));
        EXPECT_TRUE(fs::is_character_file("/dev/full"));
    }
}

TEST(Io, SeveralWritersOfOneFile) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    const auto a = make("KFlat(linear)"), b = make(sik + ",BFlat");
    const Bytes bytes_a = to_bytes(a.get()), bytes_b = to_bytes(b.get());
    faiss_ext::write_index(a.get(), name.c_str());
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 10; i++) {
                const auto& index = (i + t) % 2 ? a : b;
                faiss_ext::write_index(index.get(), name.c_str());
                // what is there is complete at any time
                const Bytes bytes = file_bytes(name);
                EXPECT_TRUE(bytes == bytes_a || bytes == bytes_b);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(folder.names(), std::vector<std::string>{"index"});
}

// Numbers that are not finite, or out of range, in any field that has some.
TEST(DamagedFiles, NumbersAreChecked) {
    constexpr int d = 6, nbits = 64;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float inf = std::numeric_limits<float>::infinity();
    const auto x = random_vectors(100, d, 60);
    const auto check = [&](const std::string& scheme, auto&& damage) {
        SCOPED_TRACE(scheme);
        for (float bad : {nan, inf, -inf}) {
            const auto hash = kernel_hash_factory(d, scheme);
            hash->train(100, x.data());
            damage(*hash, bad);
            faiss::VectorIOWriter writer;
            faiss_ext::write_VectorTransform(hash.get(), &writer);
            faiss::VectorIOReader reader;
            reader.data = writer.data;
            EXPECT_TRUE(throws([&] {
                faiss_ext::read_VectorTransform(&reader);
            })) << bad;
        }
    };
    const auto field = [&](const std::string& scheme, auto get) {
        check(scheme, [&](KernelHash& hash, float bad) { get(hash) = bad; });
    };
    const auto bsik = [](KernelHash& h) -> BilinearShiftInvariantHash& {
        return dynamic_cast<BilinearShiftInvariantHash&>(h);
    };
    const auto klsh = [](KernelHash& h) -> KernelizedLSH& {
        return dynamic_cast<KernelizedLSH&>(h);
    };
    using H = KernelHash;
    const char* b = "BSIK64(2x3)";
    field(b, [&](H& h) -> float& { return bsik(h).offset[nbits - 1]; });
    field(b, [&](H& h) -> float& { return bsik(h).threshold[3]; });
    const auto bilinear = [&](KernelHash& h) -> BilinearProjection& {
        return dynamic_cast<BilinearProjection&>(*bsik(h).projection);
    };
    field(b, [&](H& h) -> float& { return bilinear(h).V[0]; });
    field(b, [&](H& h) -> float& { return bilinear(h).norms[0]; });
    field(b, [&](H& h) -> double& { return bsik(h).kernel->gamma; });
    const char* k = "KLSH64(chi2,p=20)";
    field(k, [&](H& h) -> float& { return klsh(h).threshold[5]; });
    field(k, [&](H& h) -> float& { return klsh(h).map.eigenvalues[0]; });
    field(k, [&](H& h) -> float& { return klsh(h).map.landmarks[7]; });
    field(k, [&](H& h) -> float& {
        return dynamic_cast<DenseProjection&>(*klsh(h).projection).panels[9];
    });
    field(k, [&](H& h) -> double& { return klsh(h).mean_value; });
    field(k, [&](H& h) -> double& { return klsh(h).map.scale; });
    field(k, [&](H& h) -> double& { return klsh(h).map.tolerance; });
}

TEST(DamagedFiles, VectorsOfFlatIndexesAreChecked) {
    IndexFlatKernel index(3, *kernel_factory("chi2"));
    index.add(4, random_vectors(4, 3, 61).data());
    for (float bad : {-1.0f, std::numeric_limits<float>::quiet_NaN(), 1e38f}) {
        std::memcpy(&index.codes[5 * sizeof(float)], &bad, sizeof(bad));
        faiss::VectorIOWriter writer;
        faiss_ext::write_index(&index, &writer);
        faiss::VectorIOReader reader;
        reader.data = writer.data;
        EXPECT_TRUE(
                throws([&] { faiss_ext::read_index(&reader); }, "component 2"));
    }
}

TEST(Files, NullReadersAndWriters) {
    const IndexFlatKernel index(3, LinearKernel());
    faiss::IOWriter* writer = nullptr;
    faiss::IOReader* reader = nullptr;
    EXPECT_TRUE(
            throws([&] { faiss_ext::write_index(&index, writer); }, "null"));
    EXPECT_TRUE(throws([&] { faiss_ext::read_index(reader); }, "null"));
    EXPECT_TRUE(throws([&] { faiss_ext::read_index_binary(reader); }, "null"));
    EXPECT_TRUE(
            throws([&] { faiss_ext::read_VectorTransform(reader); }, "null"));
}

} // namespace
