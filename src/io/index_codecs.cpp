// SPDX-License-Identifier: MIT
#include "io/index_codecs.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryHNSW.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/IndexReplicas.h>
#include <faiss/IndexShards.h>

#include <faiss_ext/indexes/IndexAsymmetricHash.h>
#include <faiss_ext/indexes/IndexBinaryFlatKernel.h>
#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>
#include <faiss_ext/indexes/IndexBinaryHNSWKernel.h>
#include <faiss_ext/indexes/IndexBinaryHNSWSIMD.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexBinaryRefineKernel.h>
#include <faiss_ext/indexes/IndexFileKernel.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/IndexPreTransformSIMD.h>
#include <faiss_ext/indexes/IndexRefineKernel.h>
#include <faiss_ext/indexes/index_registry.h>

#include "core/aligned_arrays.h"
#include "core/check.h"
#include "core/errors.h"
#include "core/field_files.h"
#include "core/hamming.h"
#include "core/io_fields.h"
#include "indexes/id_positions.h"
#include "indexes/index_compat.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/with_ids.h"
#include "io/nested_io.h"

namespace faiss_ext {

namespace {

using faiss::Index;
using faiss::IndexBinary;
using faiss::IOReader;
using faiss::IOWriter;
using faiss::VectorTransform;

void check_file(bool good, IOReader* f, const char* what) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            good, "%s is damaged: %s", name_of(*f).c_str(), what);
}

/// The file that an index is read from or written to, for messages.
struct Place {
    std::string file;
    bool is_read;

    explicit Place(const IOReader& f) : file(name_of(f)), is_read(true) {}
    explicit Place(const std::string& file) : file(file), is_read(false) {}

    std::string prefix() const {
        return file + (is_read ? " is damaged: " : " cannot be written: ");
    }

    void require(bool good, const std::string& what) const {
        FAISS_EXT_THROW_IF_NOT_FMT(
                good, "%s%s", prefix().c_str(), what.c_str());
    }

    /// Calls check(), which throws on errors.
    template <class F>
    void pass(F&& check) const {
        try {
            check();
        } catch (const faiss::FaissException&) {
            rethrow_with_prefix(prefix());
        }
    }
};

/// Checks an index inside a wrapper that uses its labels as the positions of
/// its ntotal vectors.
template <class IndexT>
void check_positions(
        const IndexT* index,
        idx_t ntotal,
        const std::string& file) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            labels_are_below(index, ntotal),
            "%s: the ids of an index behind IDMap or in front of Refine are not the positions of its vectors",
            file.c_str());
}

/// Returns the trained flag of a part. FAISS's readers accept any byte as a
/// flag.
bool says_trained(const bool& is_trained, const std::string& file) {
    uint8_t byte;
    std::memcpy(&byte, &is_trained, 1);
    FAISS_EXT_THROW_IF_NOT_FMT(
            byte <= 1,
            "%s is damaged: is_trained of a part is %d, expected 0 or 1",
            file.c_str(),
            int(byte));
    return byte == 1;
}

/// Checks that an index has the metric of its parts, and is trained only if
/// they are. The parts may have been trained by themselves, and an empty graph
/// of FAISS's claims to be trained.
template <class IndexT>
void check_parts(const IndexT& index, const std::string& file) {
    bool are_trained = true;
    for (const IndexPart& part : parts_of(index)) {
        if (!part.index || part.is_quantizer) {
            continue;
        }
        part.index.visit([&](const auto& inside) {
            FAISS_EXT_THROW_IF_NOT_FMT(
                    inside.metric_type == index.metric_type,
                    "%s: an index with %s has a part with %s, expected the same",
                    file.c_str(),
                    metric_name(index.metric_type).c_str(),
                    metric_name(inside.metric_type).c_str());
            are_trained &= says_trained(inside.is_trained, file);
        });
    }
    for (const VectorTransform* vt : transforms_of(index)) {
        are_trained &= !vt || says_trained(vt->is_trained, file);
    }
    const bool is_empty_graph =
            index.ntotal == 0 && typeid(index) == typeid(faiss::IndexHNSW);
    FAISS_EXT_THROW_IF_NOT_FMT(
            are_trained || !index.is_trained || is_empty_graph,
            "%s: a trained index has a part that is not trained",
            file.c_str());
}

/// Checks an index that FAISS asks for single distances in a parallel loop.
void check_distances(const Index* index, const std::string& file) {
    const std::string prefix = file +
            ": the index that re-ranks, or holds the vectors of a graph, cannot compute distances: ";
    try {
        if (index) {
            check_computes_distances(*index);
        }
    } catch (const faiss::FaissException&) {
        rethrow_with_prefix(prefix);
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& e) {
        FAISS_EXT_THROW_FMT("%s%s", prefix.c_str(), e.what());
    }
}

/// Checks that an index and its parts have the same number of vectors.
template <class IndexT>
void check_counts(const IndexT& index, const Place& place) {
    if (place.is_read) {
        const std::string unequal = unequal_counts(index);
        place.require(unequal.empty(), "its parts do not match: " + unequal);
    } else { // its message also says what to do
        place.pass([&] { faiss_ext::check_counts(index); });
    }
}

// Fields of the base classes, float and binary.

/// The metrics that an index can have; codes have only distances.
template <class IndexT>
constexpr int lowest_metric =
        std::is_base_of_v<IndexBinary, IndexT> ? faiss::METRIC_L2
                                               : faiss::METRIC_INNER_PRODUCT;
constexpr int highest_metric = faiss::METRIC_L2;
template <class IndexT> // float indexes may be of sparse vectors
constexpr int32_t max_dimension =
        std::is_base_of_v<IndexBinary, IndexT> ? 1 << 24 : INT32_MAX;
constexpr int64_t max_ntotal = int64_t(1) << 36;

/// Throws unless each field of a header can be read. A reader checks the fields
/// one by one, before it reads the rest of the file.
template <class IndexT>
void check_header(const IndexT& index, const std::string& file) {
    const auto check =
            [&](const char* field, int64_t v, int64_t lo, int64_t hi) {
                FAISS_EXT_THROW_IF_NOT_FMT(
                        v >= lo && v <= hi,
                        "%s: an index with the %s %" PRId64
                        " cannot be written, expected %" PRId64 " to %" PRId64,
                        file.c_str(),
                        field,
                        v,
                        lo,
                        hi);
            };
    check("metric",
          int(index.metric_type),
          lowest_metric<IndexT>,
          highest_metric);
    check("dimension", index.d, 0, max_dimension<IndexT>);
    check("ntotal", index.ntotal, 0, max_ntotal);
}

template <class IndexT>
void write_header(const IndexT& index, bool is_trained, IOWriter* f) {
    const int metric = index.metric_type;
    write_value(f, int32_t(index.d));
    write_value(f, int64_t(index.ntotal));
    write_value(f, is_trained);
    write_value(f, int32_t(metric));
}

template <class IndexT>
void write_header(const IndexT& index, IOWriter* f) {
    write_header(index, index.is_trained, f);
}

struct Header {
    int32_t d;
    int64_t ntotal;
    bool is_trained;
    int32_t metric_type;

    Header(IOReader* f, int lowest, int32_t max_dimension)
            : d(read_value_in<int32_t>(f, "d", 0, max_dimension)),
              ntotal(read_value_in<int64_t>(f, "ntotal", 0, max_ntotal)),
              is_trained(read_value<bool>(f, "is_trained")),
              metric_type(read_value_in<int32_t>(
                      f,
                      "metric_type",
                      lowest,
                      highest_metric)) {}

    template <class Class>
    void apply(Class& index) const {
        index.d = d;
        index.ntotal = ntotal;
        index.is_trained = is_trained;
        index.metric_type = faiss::MetricType(metric_type);
        if constexpr (std::is_base_of_v<IndexBinary, Class>) {
            index.code_size = bytes_of_bits(d);
        }
    }
};

template <class IndexT>
Header read_header(IOReader* f) {
    return Header(f, lowest_metric<IndexT>, max_dimension<IndexT>);
}

// Indexes of a hash and a binary index.

template <class HashIndex, class IndexT>
void write_hash_index(const HashIndex& index, IOWriter* f) {
    // ask the parts themselves, as they may have been trained separately
    write_header<IndexT>(
            index, index.hash->is_trained && index.storage->is_trained, f);
    write_nested<VectorTransform>(index.hash, f);
    write_nested<IndexBinary>(index.storage, f);
}

template <class HashIndex>
void check_hash_index(const HashIndex& index, const Place& place) {
    check_counts(index, place);
    const int bits = padded_bits(index.hash->nbits);
    const int d =
            std::is_base_of_v<IndexBinary, HashIndex> ? bits : index.hash->d_in;
    place.require(
            index.storage->d == bits && index.d == d &&
                    index.storage->metric_type == faiss::METRIC_L2,
            "its hash and its binary index do not match");
    says_trained(index.storage->is_trained, place.file);
    if (auto* graph =
                dynamic_cast<const faiss::IndexBinaryHNSW*>(index.storage)) {
        place.pass([&] {
            check_ef(graph->hnsw.efSearch, "efSearch", "the storage");
        });
    }
}

template <class HashIndex>
std::unique_ptr<HashIndex> read_hash_index(IOReader* f, int io_flags) {
    auto index = make_with_ids<HashIndex>();
    index->own_fields = true;
    read_header<HashIndex>(f).apply(*index);
    auto vt = read_nested<VectorTransform>(f, io_flags);
    index->hash = dynamic_cast<KernelHash*>(vt.get());
    check_file(index->hash, f, "it has no hash, expected one");
    vt.release();
    index->storage = read_nested<IndexBinary>(f, io_flags).release();
    check_hash_index(*index, Place(*f));
    check_file(
            index->is_trained ==
                    (index->hash->is_trained && index->storage->is_trained),
            f,
            "its hash and its binary index do not match");
    return index;
}

// Asymmetric hashing.

void write_asymmetric_hash(const IndexAsymmetricHash& index, IOWriter* f) {
    write_header<Index>(index, index.hash->is_trained, f);
    write_nested<VectorTransform>(index.hash.get(), f);
    write_aligned(f, index.codes);
}

void check_asymmetric_hash(
        const IndexAsymmetricHash& index,
        const Place& place) {
    place.pass([&] { index.check_parts(); });
}

std::unique_ptr<IndexAsymmetricHash> read_asymmetric_hash(
        IOReader* f,
        int io_flags) {
    auto index = make_with_ids<IndexAsymmetricHash>();
    read_header<Index>(f).apply(*index);
    auto vt = read_nested<VectorTransform>(f, io_flags);
    auto* hash = dynamic_cast<KernelHash*>(vt.get());
    check_file(hash, f, "it has no hash, expected one");
    vt.release();
    index->hash = std::unique_ptr<KernelHash>(hash);
    read_aligned(f, index->codes, "codes");
    check_file(
            index->is_trained == index->hash->is_trained,
            f,
            "its hash and its index do not match: they differ in dimension, or the hash is not trained");
    check_asymmetric_hash(*index, Place(*f));
    return index;
}

// Flat indexes of codes.

template <class Flat>
void write_binary_flat(const Flat& index, IOWriter* f) {
    write_header<IndexBinary>(index, f);
    if constexpr (std::is_same_v<Flat, IndexBinaryFlatSIMD>) {
        write_aligned(f, index.codes(), index.num_bytes(), 1);
    } else {
        write_aligned(f, index.xb.data(), index.xb.size(), 1);
    }
}

void check_code_length(int d, bool is_trained, const Place& place) {
    place.require(
            d > 0 && d % 8 == 0 && is_trained,
            "its bits are not a positive multiple of 8, or it is not trained");
}

template <class Flat>
void check_binary_flat(const Flat& index, const Place& place) {
    check_code_length(index.d, index.is_trained, place);
    size_t bytes = index.xb.size();
    if constexpr (std::is_same_v<Flat, IndexBinaryFlatSIMD>) {
        bytes = index.num_bytes();
    }
    place.require(
            bytes == size_t(index.ntotal) * index.code_size,
            "its number of codes is not ntotal; ntotal must not be set by hand");
}

std::unique_ptr<IndexBinaryFlatSIMD> read_binary_flat(IOReader* f, int) {
    const Header header = read_header<IndexBinary>(f);
    check_code_length(header.d, header.is_trained, Place(*f));
    auto index = make_with_ids<IndexBinaryFlatSIMD>(header.d);
    header.apply(*index);
    read_aligned(f, MappableBytes{index->xb, index->mapped}, "codes");
    check_binary_flat(*index, Place(*f));
    return index;
}

// Registered classes of indexes, written as their fields and the parts that
// they take over.

constexpr int32_t max_parts = 1 << 20;

template <class IndexT>
void write_registered(const IndexT& index, IOWriter* f) {
    write_header<IndexT>(index, f);
    write_fields(dynamic_cast<const HasFields&>(index), f);
    if (takes_parts(index)) {
        const std::vector<IndexPart> parts = parts_of(index);
        write_value(f, int32_t(parts.size()));
        for (const IndexPart& part : parts) {
            write_nested<IndexT>(part.index.as<IndexT>(), f);
        }
    }
}

/// Checks the parts that an index has taken over.
template <class IndexT>
void check_taken_parts(const IndexT& index, const Place& place) {
    const std::vector<IndexPart> parts = parts_of(index);
    place.require(
            parts.size() <= size_t(max_parts),
            "it has " + std::to_string(parts.size()) +
                    " parts, expected at most " + std::to_string(max_parts));
    for (const IndexPart& part : parts) {
        const std::string name = part.name;
        const auto* inside = part.index.as<IndexT>();
        place.require(
                inside,
                "its " + name +
                        (std::is_base_of_v<IndexBinary, IndexT>
                                 ? " is a float index, expected a binary one"
                                 : " is a binary index, expected a float one"));
        place.require(
                part.is_quantizer || inside->d == index.d,
                "its " + name + " has " + std::to_string(inside->d) +
                        " dimensions, expected " + std::to_string(index.d));
        place.require(
                !part.by_position || labels_are_below(inside, inside->ntotal),
                "the ids of its " + name +
                        " are not the positions of its vectors");
    }
    check_counts<IndexT>(index, place);
    check_parts<IndexT>(index, place.file);
}

template <class IndexT>
void check_registered(const IndexT& index, const Place& place) {
    const auto& fields = dynamic_cast<const HasFields&>(index);
    check_fields_in_file(fields, place.file);
    place.pass([&] { fields.check_restorable(); });
    if (takes_parts(index)) {
        check_taken_parts(index, place);
    }
}

template <class IndexT>
std::unique_ptr<IndexT> read_registered(
        const ClassEntry<IndexT>& entry,
        IOReader* f,
        int io_flags) {
    auto index = entry.make();
    read_header<IndexT>(f).apply(*index);
    read_fields(dynamic_cast<HasFields&>(*index), f);
    if (takes_parts(*index)) {
        const auto n = read_value_in<int32_t>(f, "parts", 0, max_parts);
        std::vector<std::unique_ptr<IndexT>> parts;
        parts.reserve(n);
        for (int i = 0; i < n; i++) {
            parts.push_back(read_nested<IndexT>(f, io_flags));
        }
        const Place place(*f);
        place.pass([&] { give_parts(*index, std::move(parts)); });
        check_taken_parts(*index, place);
    }
    return index;
}

// Indexes on the vectors of a file.

std::unique_ptr<IndexFileKernel> read_file_kernel(IOReader* f, int) {
    auto index = std::make_unique<IndexFileKernel>();
    read_header<Index>(f).apply(*index);
    index->folder = std::filesystem::path(f->name).parent_path().string();
    read_fields(*index, f);
    return index;
}

// ID maps.

template <class IndexT>
void write_id_map(const faiss::IndexIDMapTemplate<IndexT>& index, IOWriter* f) {
    write_header<IndexT>(index, f);
    write_vector(f, index.id_map);
    write_nested<IndexT>(index.index, f);
}

template <class IndexT>
void check_id_map(
        const faiss::IndexIDMapTemplate<IndexT>& index,
        const Place& place) {
    place.require(
            index.index->d == index.d, "its ids and its index do not match");
    check_counts<IndexT>(index, place);
    check_parts<IndexT>(index, place.file);
    check_positions(index.index, index.ntotal, place.file);
}

template <class Map, class IndexT>
std::unique_ptr<Map> read_id_map(IOReader* f, int io_flags) {
    auto index = std::make_unique<Map>();
    index->own_fields = true;
    read_header<IndexT>(f).apply(*index);
    read_vector(f, index->id_map, index->ntotal, "id_map");
    index->index = read_nested<IndexT>(f, io_flags).release();
    check_id_map<IndexT>(*index, Place(*f));
    if constexpr (std::is_same_v<Map, faiss::IndexIDMap2Template<IndexT>>) {
        index->construct_rev_map();
    }
    return index;
}

template <class IndexT>
void write_id_table(const IndexIDTableTemplate<IndexT>& index, IOWriter* f) {
    write_header<IndexT>(index, f);
    write_value(f, int64_t(index.next_id));
    write_vector(f, index.id_map);
    write_nested<IndexT>(index.index, f);
}

/// Checks the ids of a table.
void check_ids(
        const std::vector<idx_t>& ids,
        idx_t next_id,
        const Place& place) {
    place.require(are_unique(ids), "an id occurs twice, or is -1");
    const bool are_below =
            next_id >= 0 && std::all_of(ids.begin(), ids.end(), [&](idx_t id) {
                return above(id) <= next_id;
            });
    place.require(are_below, "an id is not below next_id");
}

template <class IndexT>
void check_id_table(
        const IndexIDTableTemplate<IndexT>& index,
        const Place& place) {
    check_id_map<IndexT>(index, place);
    place.require(!keeps_ids(*index.index), "its index has ids of its own");
    check_ids(index.id_map, index.next_id, place);
}

template <class IndexT>
std::unique_ptr<IndexIDTableTemplate<IndexT>> read_id_table(
        IOReader* f,
        int io_flags) {
    auto index = std::make_unique<IndexIDTableTemplate<IndexT>>();
    index->own_fields = true;
    read_header<IndexT>(f).apply(*index);
    index->next_id = read_value<int64_t>(f, "next_id");
    read_vector(f, index->id_map, index->ntotal, "id_map");
    index->index = read_nested<IndexT>(f, io_flags).release();
    check_id_table<IndexT>(*index, Place(*f));
    return index;
}

// Indexes with ids of their own, written as a table and the index without it.

template <class IndexT>
void write_with_ids(const IndexT& index, IOWriter* f) {
    const auto& table =
            *id_table_of(index).template as<IndexIDTableTemplate<IndexT>>();
    write_header<IndexT>(index, f);
    write_value(f, int64_t(table.next_id));
    write_vector(f, table.id_map);
    write_without_ids(&index, f);
}

template <class IndexT>
void check_with_ids(const IndexT& index, const std::string& file) {
    const auto& table =
            *id_table_of(index).template as<IndexIDTableTemplate<IndexT>>();
    const Place place(file);
    place.require(
            table.id_map.size() == size_t(index.ntotal),
            "its ids and its vectors do not match");
    check_ids(table.id_map, table.next_id, place);
}

template <class IndexT>
std::unique_ptr<IndexT> read_with_ids(IOReader* f, int io_flags) {
    const Header header = read_header<IndexT>(f);
    const auto next_id = read_value<int64_t>(f, "next_id");
    std::vector<idx_t> ids;
    read_vector(f, ids, header.ntotal, "ids");
    auto index = read_nested<IndexT>(f, io_flags);
    auto* own = dynamic_cast<HasIds<IndexT>*>(index.get());
    check_file(
            own && !own->id_table() && index->ntotal == header.ntotal &&
                    index->d == header.d && ids_are_positions(*index),
            f,
            "its ids and its index do not match");
    check_ids(ids, next_id, Place(*f));
    own->set_ids(std::move(ids), next_id);
    return index;
}

// IndexPreTransform.

void write_pre_transform(const faiss::IndexPreTransform& index, IOWriter* f) {
    write_header<Index>(index, f);
    write_value(f, int32_t(index.chain.size()));
    for (const VectorTransform* vt : index.chain) {
        write_nested<VectorTransform>(vt, f);
    }
    write_nested<Index>(index.index, f);
}

constexpr int32_t max_chain = 1000;

void check_pre_transform(
        const faiss::IndexPreTransform& index,
        const Place& place) {
    place.require(
            index.chain.size() <= size_t(max_chain),
            "a chain of " + std::to_string(index.chain.size()) +
                    " transformations, expected at most " +
                    std::to_string(max_chain));
    int d = index.d;
    for (const VectorTransform* vt : index.chain) {
        place.require(
                vt->d_in == d,
                "a transformation does not take the dimension that it receives");
        d = vt->d_out;
    }
    place.require(
            index.index->d == d,
            "its transformations and its index do not match");
    check_counts<Index>(index, place);
    check_parts<Index>(index, place.file);
}

template <class Class>
std::unique_ptr<Class> read_pre_transform(IOReader* f, int io_flags) {
    auto index = make_known<Class>();
    index->own_fields = true;
    read_header<Index>(f).apply(*index);
    const auto n = read_value_in<int32_t>(f, "transformations", 0, max_chain);
    index->chain.reserve(n); // nothing may fail between release and push_back
    for (int i = 0; i < n; i++) {
        index->chain.push_back(
                read_nested<VectorTransform>(f, io_flags).release());
    }
    index->index = read_nested<Index>(f, io_flags).release();
    check_pre_transform(*index, Place(*f));
    return index;
}

std::unique_ptr<IndexPreTransformSIMD> read_pre_transform_simd(
        IOReader* f,
        int io_flags) {
    auto index = read_pre_transform<IndexPreTransformSIMD>(f, io_flags);
    index->verify_chain = false;
    return index;
}

// IndexRefine.

void write_refine(const faiss::IndexRefine& index, IOWriter* f) {
    write_header<Index>(index, f);
    write_value(f, index.k_factor);
    write_nested<Index>(index.base_index, f);
    write_nested<Index>(index.refine_index, f);
}

void check_refine(const faiss::IndexRefine& index, const Place& place) {
    place.pass([&] { check_k_factor(index.k_factor, "Refine"); });
    for (const Index* part : {index.base_index, index.refine_index}) {
        place.require(
                part->d == index.d,
                "its index and its refine index do not match");
    }
    check_counts<Index>(index, place);
    check_parts<Index>(index, place.file);
    check_positions(index.base_index, index.ntotal, place.file);
    check_distances(index.refine_index, place.file);
}

template <class Refine>
std::unique_ptr<Refine> read_refine(IOReader* f, int io_flags) {
    auto index = make_known<Refine>();
    index->own_fields = true;
    index->own_refine_index = true;
    read_header<Index>(f).apply(*index);
    index->k_factor = read_value<float>(f, "k_factor");
    index->base_index = read_nested<Index>(f, io_flags).release();
    index->refine_index = read_nested<Index>(f, io_flags).release();
    check_refine(*index, Place(*f));
    return index;
}

// Shards and replicas.

/// Returns whether the parts run in threads of their own. FAISS has no
/// accessor.
template <class Group>
bool is_threaded(const Group& group) {
    struct Access : Group {
        static bool get(const Group& group) {
            return group.*(&Access::isThreaded_);
        }
    };
    return Access::get(group);
}

template <class Group>
constexpr bool is_shards = requires(Group& group) {
    group.successive_ids;
};

template <class Group, class IndexT>
void write_group(const Group& index, IOWriter* f) {
    write_header<IndexT>(index, f);
    write_value(f, is_threaded(index));
    if constexpr (is_shards<Group>) {
        write_value(f, index.successive_ids);
    }
    write_value(f, int32_t(index.count()));
    for (int i = 0; i < index.count(); i++) {
        write_nested<IndexT>(index.at(i), f);
    }
}

template <class Group, class IndexT>
void check_group(const Group& index, const Place& place) {
    place.require(
            index.count() >= 1 && index.count() <= max_parts,
            "it has " + std::to_string(index.count()) +
                    " parts, expected 1 to " + std::to_string(max_parts));
    for (int i = 0; i < index.count(); i++) {
        place.require(
                index.at(i)->d == index.d &&
                        index.at(i)->is_trained == index.at(0)->is_trained,
                "its parts do not match");
    }
    check_counts<IndexT>(index, place);
    check_parts<IndexT>(index, place.file);
}

template <class Group, class IndexT>
std::unique_ptr<Group> read_group(IOReader* f, int io_flags) {
    const Header header = read_header<IndexT>(f);
    const bool threaded = read_value<bool>(f, "threaded");
    std::unique_ptr<Group> index;
    if constexpr (is_shards<Group>) {
        const bool successive_ids = read_value<bool>(f, "successive_ids");
        index = std::make_unique<Group>(header.d, threaded, successive_ids);
    } else {
        index = std::make_unique<Group>(header.d, threaded);
    }
    own_group(*index);
    const auto n = read_value_in<int32_t>(f, "count", 1, max_parts);
    for (int i = 0; i < n; i++) {
        auto part = read_nested<IndexT>(f, io_flags);
        // check this while we own the part: if addIndex refuses it, the group
        // owns it already
        check_file(
                part->d == header.d && part->metric_type == header.metric_type,
                f,
                "its parts do not match");
        index->addIndex(part.release());
    }
    header.apply(*index);
    check_group<Group, IndexT>(*index, Place(*f));
    return index;
}

// Graphs over vectors and a kernel.

void write_graph(const faiss::HNSW& hnsw, IOWriter* f) {
    write_vector(f, hnsw.assign_probas);
    write_vector(f, hnsw.cum_nneighbor_per_level);
    write_vector(f, hnsw.levels);
    write_vector(f, hnsw.offsets);
    write_vector(f, hnsw.neighbors);
    write_value(f, hnsw.entry_point);
    write_value(f, hnsw.max_level);
    write_value(f, hnsw.efConstruction);
    write_value(f, hnsw.efSearch);
}

void read_graph(IOReader* f, faiss::HNSW& hnsw) {
    read_vector(f, hnsw.assign_probas, "assign_probas");
    read_vector(f, hnsw.cum_nneighbor_per_level, "cum_nneighbor_per_level");
    read_vector(f, hnsw.levels, "levels");
    read_vector(f, hnsw.offsets, "offsets");
    read_vector(f, hnsw.neighbors, "neighbors");
    hnsw.entry_point = read_value<int32_t>(f, "entry_point");
    hnsw.max_level = read_value<int>(f, "max_level");
    hnsw.efConstruction = read_value<int>(f, "efConstruction");
    hnsw.efSearch = read_value<int>(f, "efSearch");
}

void write_places(const GraphPlaces& places, IOWriter* f) {
    write_vector(f, places.places);
    write_vector(f, places.unlinked);
}

void read_places(IOReader* f, idx_t ntotal, GraphPlaces& places) {
    read_vector(f, places.places, "places");
    read_vector(f, places.unlinked, "unlinked");
    places.find_vertices(ntotal);
}

void write_hnsw(const faiss::IndexHNSW& index, IOWriter* f) {
    write_header<Index>(index, f);
    write_graph(index.hnsw, f);
    write_nested<Index>(index.storage, f);
}

void write_kernel_graph(const IndexHNSWKernel& index, IOWriter* f) {
    write_hnsw(index, f);
    write_places(index.places, f);
}

void write_code_graph(const IndexBinaryHNSWSIMD& index, IOWriter* f) {
    write_header<IndexBinary>(index, f);
    write_graph(index.hnsw, f);
    write_nested<IndexBinary>(index.storage, f);
    write_places(index.places, f);
}

/// Returns whether all links of a graph with n vertices lead to these. If all
/// of them were removed, it has no entry point.
bool is_sound(const faiss::HNSW& hnsw, int64_t n, bool has_entry) {
    const auto& cum = hnsw.cum_nneighbor_per_level;
    const int nlevels = int(cum.size()) - 1;
    bool good = nlevels >= 1 && cum[0] == 0 &&
            hnsw.levels.size() == size_t(n) &&
            hnsw.offsets.size() == size_t(n) + 1 && hnsw.offsets[0] == 0 &&
            hnsw.max_level < nlevels &&
            (!has_entry ? hnsw.entry_point == -1 && hnsw.max_level == -1
                        : hnsw.entry_point >= 0 && hnsw.entry_point < n &&
                             hnsw.max_level >= 0 &&
                             hnsw.levels[hnsw.entry_point] ==
                                     hnsw.max_level + 1);
    for (int l = 0; good && l < nlevels; l++) {
        good = cum[l + 1] >= cum[l];
    }
    for (int64_t i = 0; good && i < n; i++) {
        const int level = hnsw.levels[i];
        good = level >= 1 && level <= nlevels &&
                hnsw.offsets[i + 1] == hnsw.offsets[i] + cum[level];
    }
    good = good && hnsw.neighbors.size() == hnsw.offsets[n] &&
            hnsw.assign_probas.size() == size_t(nlevels);
    double sum = 0;
    for (double p : hnsw.assign_probas) {
        good = good && p >= 0 && p <= 1;
        sum += p;
    }
    good = good && sum > 0.99;
    // the target of a link must exist on the level of the link
    for (int64_t i = 0; good && i < n; i++) {
        for (int l = 0; good && l < hnsw.levels[i]; l++) {
            for (size_t j = hnsw.offsets[i] + cum[l];
                 good && j < hnsw.offsets[i] + cum[l + 1];
                 j++) {
                const auto to = hnsw.neighbors[j];
                good = to == -1 || (to >= 0 && to < n && hnsw.levels[to] > l);
            }
        }
    }
    return good;
}

/// Whether vectors of a graph can be removed.
template <class Graph>
constexpr bool can_change = requires(Graph& graph) {
    graph.places;
};

/// The dimension of the storage of a graph.
int stored_width(const Index& index) {
    return index.d;
}

int stored_width(const IndexBinary& index) {
    return padded_bits(index.d);
}

/// Checks a graph, and the class and dimension of its storage.
template <class IndexT, class Storage, class Class>
void check_graph(const Class& index, const Place& place) {
    const faiss::HNSW& hnsw = index.hnsw;
    check_counts<IndexT>(index, place);
    place.pass([&] {
        check_ef(hnsw.efSearch, "efSearch", "HNSW");
        check_ef(hnsw.efConstruction, "efConstruction", "HNSW");
        if constexpr (can_change<Class>) {
            index.check_graph("write_index");
        }
    });
    int64_t num_vertices = index.ntotal;
    bool has_entry = index.ntotal > 0;
    if constexpr (can_change<Class>) {
        num_vertices += index.num_removed();
        has_entry = has_entry || hnsw.entry_point >= 0;
        place.require(
                index.places.fit(index.ntotal, num_vertices),
                "the places of its vertices are inconsistent");
    }
    place.require(
            is_sound(hnsw, num_vertices, has_entry),
            "its graph is inconsistent");
    place.require(
            index.storage->d == stored_width(index),
            "its graph and its vectors do not match");
    place.require(
            dynamic_cast<const Storage*>(index.storage),
            "its graph is not one of an " + type_name(typeid(Storage)));
    check_parts<IndexT>(index, place.file);
}

void check_hnsw(const faiss::IndexHNSW& index, const Place& place) {
    check_graph<Index, Index>(index, place);
    check_distances(index.storage, place.file);
}

void check_kernel_graph(const IndexHNSWKernel& index, const Place& place) {
    check_graph<Index, IndexFlatKernel>(index, place);
    check_distances(index.storage, place.file);
}

void check_graph_of_codes(
        const IndexBinaryHNSWSIMD& index,
        const Place& place) {
    check_graph<IndexBinary, IndexBinaryFlatSIMD>(index, place);
}

void check_code_graph(const IndexBinaryHNSWSIMD& index, const Place& place) {
    check_code_length(index.d, index.is_trained, place);
    check_graph_of_codes(index, place);
}

void write_bit_graph(const IndexBinaryHNSWKernel& index, IOWriter* f) {
    write_code_graph(index, f);
    write_string(f, index.kernel->description());
}

void check_bit_graph(const IndexBinaryHNSWKernel& index, const Place& place) {
    place.pass([&] { index.check_kernel(); });
    place.require(index.is_trained, "it is not trained");
    check_graph_of_codes(index, place);
}

template <class Class>
std::unique_ptr<Class> read_hnsw(IOReader* f, int io_flags) {
    const Header header = read_header<Index>(f);
    auto index = make_known<Class>();
    // new versions of FAISS store the metric in the graph; the graph's
    // generator is too large for the stack
    index->hnsw = std::make_unique<faiss::IndexHNSW>(
                          header.d, 32, faiss::MetricType(header.metric_type))
                          ->hnsw;
    index->own_fields = true;
    header.apply(*index);
    read_graph(f, index->hnsw);
    index->storage = read_nested<Index>(f, io_flags).release();
    if constexpr (can_change<Class>) {
        read_places(f, index->ntotal, index->places);
        check_kernel_graph(*index, Place(*f));
    } else {
        check_hnsw(*index, Place(*f));
    }
    return index;
}

template <class Graph>
std::unique_ptr<Graph> read_graph_of_codes(IOReader* f, int io_flags) {
    const Header header = read_header<IndexBinary>(f);
    auto index = make_with_ids<Graph>();
    index->own_fields = true;
    header.apply(*index);
    read_graph(f, index->hnsw);
    index->storage = read_nested<IndexBinary>(f, io_flags).release();
    read_places(f, index->ntotal, index->places);
    return index;
}

std::unique_ptr<IndexBinaryHNSWSIMD> read_code_graph(
        IOReader* f,
        int io_flags) {
    auto index = read_graph_of_codes<IndexBinaryHNSWSIMD>(f, io_flags);
    check_code_graph(*index, Place(*f));
    return index;
}

std::unique_ptr<IndexBinaryHNSWKernel> read_bit_graph(
        IOReader* f,
        int io_flags) {
    auto index = read_graph_of_codes<IndexBinaryHNSWKernel>(f, io_flags);
    const std::string kernel = read_string(f, "kernel");
    Place(*f).pass([&] { index->kernel = bit_kernel_factory(kernel); });
    check_bit_graph(*index, Place(*f));
    return index;
}

// Packed bits that are ranked again.

void write_bit_refine(const IndexBinaryRefineKernel& index, IOWriter* f) {
    write_header<IndexBinary>(index, f);
    write_value(f, index.k_factor);
    write_nested<IndexBinary>(index.base_index, f);
    write_nested<IndexBinary>(index.refine_index, f);
}

void check_bit_refine(
        const IndexBinaryRefineKernel& index,
        const Place& place) {
    check_counts(index, place);
    place.pass([&] {
        index.check_parts();
        check_k_factor(index.k_factor, "IndexBinaryRefineKernel");
    });
    place.require(
            labels_are_below(index.base_index, index.ntotal),
            "the ids of its base_index are not the positions of its codes");
    check_parts<IndexBinary>(index, place.file);
}

std::unique_ptr<IndexBinaryRefineKernel> read_bit_refine(
        IOReader* f,
        int io_flags) {
    auto index = make_with_ids<IndexBinaryRefineKernel>();
    index->own_fields = true;
    read_header<IndexBinary>(f).apply(*index);
    index->k_factor = read_value<float>(f, "k_factor");
    index->base_index = read_nested<IndexBinary>(f, io_flags).release();
    auto exact = read_nested<IndexBinary>(f, io_flags);
    index->refine_index = dynamic_cast<IndexBinaryFlatKernel*>(exact.get());
    check_file(
            index->refine_index,
            f,
            "its refine_index is of another class, expected an IndexBinaryFlatKernel");
    exact.release();
    check_bit_refine(*index, Place(*f));
    check_file(
            index->is_trained == index->base_index->is_trained,
            f,
            "it is trained and its base_index is not, or the other way round");
    index->refine_index->remember_places();
    return index;
}

// The tables of codecs.

template <class Class, class IndexT, class Write, class Read, class Check>
IndexCodec<IndexT> codec(
        const char* name,
        Write write,
        Read read,
        Check check) {
    return {name,
            typeid(Class),
            [=](const IndexT* index, IOWriter* f) {
                write(dynamic_cast<const Class&>(*index), f);
            },
            [=](IOReader* f, int io_flags) -> std::unique_ptr<IndexT> {
                return read(f, io_flags);
            },
            [=](const IndexT* index, const std::string& file) {
                check_header(*index, file);
                check(dynamic_cast<const Class&>(*index), Place(file));
            }};
}

/// Adds the wrappers that exist for float and binary indexes.
template <class IndexT>
void add_wrappers(std::vector<IndexCodec<IndexT>>& codecs) {
    using Map = faiss::IndexIDMapTemplate<IndexT>;
    using Map2 = faiss::IndexIDMap2Template<IndexT>;
    using Shards = faiss::IndexShardsTemplate<IndexT>;
    using Replicas = faiss::IndexReplicasTemplate<IndexT>;
    codecs.push_back(codec<Map, IndexT>(
            "IDMap",
            write_id_map<IndexT>,
            read_id_map<Map, IndexT>,
            check_id_map<IndexT>));
    codecs.push_back(codec<Map2, IndexT>(
            "IDMap2",
            write_id_map<IndexT>,
            read_id_map<Map2, IndexT>,
            check_id_map<IndexT>));
    codecs.push_back(codec<IndexIDTableTemplate<IndexT>, IndexT>(
            "IDTable",
            write_id_table<IndexT>,
            read_id_table<IndexT>,
            check_id_table<IndexT>));
    codecs.push_back(codec<Shards, IndexT>(
            "Shards",
            write_group<Shards, IndexT>,
            read_group<Shards, IndexT>,
            check_group<Shards, IndexT>));
    codecs.push_back(codec<Replicas, IndexT>(
            "Replicas",
            write_group<Replicas, IndexT>,
            read_group<Replicas, IndexT>,
            check_group<Replicas, IndexT>));
}

std::vector<IndexCodec<Index>> make_index_codecs() {
    using faiss::IndexHNSW;
    using faiss::IndexPreTransform;
    using faiss::IndexRefine;
    using faiss::IndexRefineFlat;
    std::vector<IndexCodec<Index>> codecs = {
            codec<IndexKernelHash, Index>(
                    "KernelHash",
                    write_hash_index<IndexKernelHash, Index>,
                    read_hash_index<IndexKernelHash>,
                    check_hash_index<IndexKernelHash>),
            codec<IndexAsymmetricHash, Index>(
                    "AsymmetricHash",
                    write_asymmetric_hash,
                    read_asymmetric_hash,
                    check_asymmetric_hash),
            codec<IndexFileKernel, Index>(
                    "KFile",
                    write_registered<Index>,
                    read_file_kernel,
                    check_registered<Index>),
            codec<IndexPreTransform, Index>(
                    "PreTransform",
                    write_pre_transform,
                    read_pre_transform<IndexPreTransform>,
                    check_pre_transform),
            codec<IndexPreTransformSIMD, Index>(
                    "PreTransformSIMD",
                    write_pre_transform,
                    read_pre_transform_simd,
                    check_pre_transform),
            codec<IndexRefine, Index>(
                    "Refine",
                    write_refine,
                    read_refine<IndexRefine>,
                    check_refine),
            codec<IndexRefineKernel, Index>(
                    "RefineKernel",
                    write_refine,
                    read_refine<IndexRefineKernel>,
                    check_refine),
            codec<IndexRefineFlat, Index>(
                    "RefineFlat",
                    write_refine,
                    read_refine<IndexRefineFlat>,
                    check_refine),
            codec<IndexHNSW, Index>(
                    "HNSW", write_hnsw, read_hnsw<IndexHNSW>, check_hnsw),
            codec<IndexHNSWKernel, Index>(
                    "HNSWKernel",
                    write_kernel_graph,
                    read_hnsw<IndexHNSWKernel>,
                    check_kernel_graph)};
    add_wrappers(codecs);
    return codecs;
}

std::vector<IndexCodec<IndexBinary>> make_index_binary_codecs() {
    std::vector<IndexCodec<IndexBinary>> codecs = {
            codec<IndexBinaryKernelHash, IndexBinary>(
                    "BinaryKernelHash",
                    write_hash_index<IndexBinaryKernelHash, IndexBinary>,
                    read_hash_index<IndexBinaryKernelHash>,
                    check_hash_index<IndexBinaryKernelHash>),
            codec<IndexBinaryFlatSIMD, IndexBinary>(
                    "BFlat",
                    write_binary_flat<IndexBinaryFlatSIMD>,
                    read_binary_flat,
                    check_binary_flat<IndexBinaryFlatSIMD>),
            codec<faiss::IndexBinaryFlat, IndexBinary>(
                    "BFlat",
                    write_binary_flat<faiss::IndexBinaryFlat>,
                    read_binary_flat,
                    check_binary_flat<faiss::IndexBinaryFlat>),
            codec<IndexBinaryHNSWSIMD, IndexBinary>(
                    "BHNSW",
                    write_code_graph,
                    read_code_graph,
                    check_code_graph),
            codec<IndexBinaryHNSWKernel, IndexBinary>(
                    "BKHNSW", write_bit_graph, read_bit_graph, check_bit_graph),
            codec<IndexBinaryRefineKernel, IndexBinary>(
                    "BRefine",
                    write_bit_refine,
                    read_bit_refine,
                    check_bit_refine)};
    add_wrappers(codecs);
    return codecs;
}

template <class IndexT>
const std::vector<IndexCodec<IndexT>>& codecs() {
    if constexpr (std::is_same_v<IndexT, Index>) {
        static const auto codecs = make_index_codecs();
        return codecs;
    } else {
        static const auto codecs = make_index_binary_codecs();
        return codecs;
    }
}

template <class IndexT>
IndexCodec<IndexT> registered_codec(const ClassEntry<IndexT>& entry) {
    return {entry.name,
            entry.type,
            [](const IndexT* index, IOWriter* f) {
                write_registered(*index, f);
            },
            [entry](IOReader* f, int io_flags) {
                return read_registered(entry, f, io_flags);
            },
            [](const IndexT* index, const std::string& file) {
                check_header(*index, file);
                check_registered(*index, Place(file));
            }};
}

template <class IndexT>
IndexCodec<IndexT> codec_with_ids() {
    return {"WithIds",
            typeid(HasIds<IndexT>),
            [](const IndexT* index, IOWriter* f) { write_with_ids(*index, f); },
            read_with_ids<IndexT>,
            [](const IndexT* index, const std::string& file) {
                if (const auto inside = find_codec_without_ids(*index)) {
                    inside->check(index, file);
                }
                check_with_ids(*index, file);
            }};
}

} // namespace

template <class IndexT>
std::optional<IndexCodec<IndexT>> find_codec(const IndexT& index) {
    return id_table_of(index) ? codec_with_ids<IndexT>()
                              : find_codec_without_ids(index);
}

template <class IndexT>
std::optional<IndexCodec<IndexT>> find_codec_without_ids(const IndexT& index) {
    if (class_table<IndexT>().knows(index)) {
        return registered_codec(class_table<IndexT>().find(index));
    }
    for (const IndexCodec<IndexT>& codec : codecs<IndexT>()) {
        if (codec.type == AnyIndex(index).type()) {
            return codec;
        }
    }
    return std::nullopt;
}

template <class IndexT>
std::optional<IndexCodec<IndexT>> find_codec(const std::string& name) {
    if (const auto entry = class_table<IndexT>().find(name)) {
        return registered_codec(*entry);
    }
    if (name == "WithIds") {
        return codec_with_ids<IndexT>();
    }
    for (const IndexCodec<IndexT>& codec : codecs<IndexT>()) {
        if (codec.name == name) {
            return codec;
        }
    }
    return std::nullopt;
}

template std::optional<IndexCodec<Index>> find_codec(const Index& index);
template std::optional<IndexCodec<IndexBinary>> find_codec(
        const IndexBinary& index);
template std::optional<IndexCodec<Index>> find_codec_without_ids(
        const Index& index);
template std::optional<IndexCodec<IndexBinary>> find_codec_without_ids(
        const IndexBinary& index);
template std::optional<IndexCodec<Index>> find_codec(const std::string& name);
template std::optional<IndexCodec<IndexBinary>> find_codec(
        const std::string& name);

} // namespace faiss_ext
