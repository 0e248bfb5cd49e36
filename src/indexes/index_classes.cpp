// SPDX-License-Identifier: MIT
// Describes the index classes of FAISS and of this library.

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <functional>
#include <limits>
#include <typeinfo>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryHNSW.h>
#include <faiss/IndexBinaryHash.h>
#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVFAdditiveQuantizer.h>
#include <faiss/IndexIVFFastScan.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexIVFPQR.h>
#include <faiss/IndexLSH.h>
#include <faiss/IndexPQ.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/IndexReplicas.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/IndexShards.h>
#if __has_include(<faiss/IndexShardsIVF.h>)
#include <faiss/IndexShardsIVF.h>
#endif

#include <faiss_ext/core/Transform.h>
#include <faiss_ext/core/fields.h>
#include <faiss_ext/indexes/IndexAsymmetricHash.h>
#include <faiss_ext/indexes/IndexBinaryFlatKernel.h>
#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>
#include <faiss_ext/indexes/IndexBinaryHNSWKernel.h>
#include <faiss_ext/indexes/IndexBinaryHNSWSIMD.h>
#include <faiss_ext/indexes/IndexBinaryIVFSIMD.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexBinaryPermuted.h>
#include <faiss_ext/indexes/IndexBinaryRefineKernel.h>
#include <faiss_ext/indexes/IndexConcurrent.h>
#include <faiss_ext/indexes/IndexFileKernel.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/IndexIVFPQ4.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/IndexPreTransformSIMD.h>
#include <faiss_ext/indexes/IndexRefineKernel.h>
#include <faiss_ext/indexes/IndexSparseKernel.h>
#include <faiss_ext/indexes/index_ids.h>
#include <faiss_ext/indexes/loaded_fields.h>
#include <faiss_ext/indexes/search_limits.h>
#include <faiss_ext/maps/FeatureMap.h>

#include "core/errors.h"
#include "core/field_strings.h"
#include "indexes/graph_settings.h"
#include "indexes/hash_table_moves.h"
#include "indexes/index_compat.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"
#include "indexes/ivf_fields.h"
#include "indexes/list_moves.h"
#include "indexes/selected_places.h"
#include "simd/pq4_scan.h"

namespace faiss_ext {

namespace {

using faiss::Index;
using faiss::IndexBinary;
using faiss::VectorTransform;

using Parts = std::vector<IndexPart>;
using Parameters = std::vector<SearchParameter>;
using Texts = std::vector<std::string>;
using Ids = std::vector<idx_t>;
using Transforms = std::vector<const VectorTransform*>;

// Search parameters.

/// The powers of 2 from `least` to below `end`.
std::vector<double> powers_of_2(double least, double end) {
    std::vector<double> values;
    for (double value = least; value < end; value *= 2) {
        values.push_back(value);
    }
    return values;
}

/// The parameter that a member holds.
template <class T>
SearchParameter parameter(
        const std::string& name,
        T& member,
        double least,
        double most,
        std::vector<double> values) {
    return {name,
            std::is_integral_v<T>,
            least,
            most,
            std::move(values),
            {{[&member] { return double(member); },
              [&member](double value) { member = T(value); }}}};
}

template <class T>
SearchParameter nprobe_parameter(T& nprobe, double most, size_t nlist) {
    std::vector<double> values = powers_of_2(1, double(nlist));
    if (values.empty()) {
        values = {1};
    }
    return parameter("nprobe", nprobe, 1, most, values);
}

template <class IVF>
Parameters ivf_parameters(IVF& index) {
    constexpr double most = std::numeric_limits<int>::max();
    return {nprobe_parameter(nprobe_of(index), most, index.nlist),
            parameter("max_codes", max_codes_of(index), 0, 0x1p62, {})};
}

template <class Float>
SearchParameter k_factor_parameter(Float& k_factor) {
    return parameter("k_factor", k_factor, 1, max_k_factor, powers_of_2(1, 65));
}

/// Search parameters of inverted lists for a part of all vectors. The nearest
/// selected ones lie farther apart, in more lists.
template <class IVF>
std::unique_ptr<faiss::SearchParameters> lists_for_selected(
        const IVF& index,
        double selected) {
    auto params = std::make_unique<faiss::SearchParametersIVF>();
    params->nprobe = size_t(
            nprobe_for_selected(nprobe_of(index), index.nlist, selected));
    if constexpr (requires { index.max_codes; }) {
        params->max_codes = max_codes_of(index);
    }
    return params;
}

/// Plain parameters: the index itself chooses the width of a search.
template <class C>
std::unique_ptr<faiss::SearchParameters> plain_params(const C&, double) {
    return std::make_unique<faiss::SearchParameters>();
}

SearchParameter ef_parameter(faiss::HNSW& hnsw) {
    return parameter("efSearch", hnsw.efSearch, 1, max_ef, powers_of_2(8, 513));
}

template <class Hash>
Parameters hash_parameters(Hash& index) {
    std::vector<double> values;
    for (int i = 0; i <= std::min(index.b, 2); i++) {
        values.push_back(i);
    }
    return {parameter("nflip", index.nflip, 0, index.b, values)};
}

int number_of_tables(const faiss::IndexBinaryHash&) {
    return 1;
}

int number_of_tables(const faiss::IndexBinaryMultiHash& index) {
    return index.nhash;
}

/// Bytes of the hash tables of n codes.
template <class Hash>
double hash_memory(const Hash& index, idx_t n) {
    constexpr double bytes_of_entry = 100; // approximately
    const double entries = double(index.hashtable_size()) /
            double(std::max<idx_t>(index.ntotal, 1)) * double(n);
    return bytes_of_entry *
            std::min(
                    entries,
                    number_of_tables(index) * std::ldexp(1.0, index.b));
}

// Texts and strings.

template <class T>
std::string setting(const char* name, const T& value) {
    if constexpr (std::is_integral_v<T>) {
        return std::string(name) + "=" + std::to_string(value);
    } else {
        return format_message("%s=%g", name, double(value));
    }
}

template <class IVF>
Texts ivf_settings(const IVF& index) {
    return {setting("nlist", index.nlist), setting("nprobe", nprobe_of(index))};
}

Texts ef_setting(const faiss::HNSW& hnsw) {
    return {setting("efSearch", hnsw.efSearch)};
}

/// The string of a kernel of bits, unless a text shows its kernel of vectors.
Texts kernel_without_vectors(const BitKernel& kernel) {
    return kernel.on_vectors() ? Texts() : Texts{kernel.description()};
}

std::string in_parentheses(const std::string& text) {
    return text.empty() ? "" : "(" + text + ")";
}

std::string links_of(const faiss::HNSW& hnsw) {
    return std::to_string(hnsw.nb_neighbors(1));
}

/// The part of a factory string that makes a graph of ours. FAISS's strings
/// have no settings.
std::string graph_string(const std::string& name, const faiss::HNSW& hnsw) {
    return name + links_of(hnsw) +
            in_parentheses(
                    fields_to_string(GraphSettings(hnsw), GraphSettings()));
}

/// The factory string of a transformation. Throws if there is none.
std::string transform_string(const VectorTransform* vt) {
    if (const auto* map = dynamic_cast<const FeatureMap*>(vt)) {
        return map->description();
    }
    const std::string d_out = std::to_string(vt->d_out);
    if (const auto* pca = dynamic_cast<const faiss::PCAMatrix*>(vt)) {
        const bool whitens = pca->eigen_power == -0.5f;
        if (whitens || pca->eigen_power == 0) {
            return std::string("PCA") + (whitens ? "W" : "") +
                    (pca->random_rotation ? "R" : "") + d_out;
        }
    }
    const auto* unit = dynamic_cast<const faiss::NormalizationTransform*>(vt);
    if (unit && unit->norm == 2) {
        return "L2norm";
    }
    if (const auto* opq = dynamic_cast<const faiss::OPQMatrix*>(vt)) {
        return "OPQ" + std::to_string(opq->M) + "_" + d_out;
    }
    if (dynamic_cast<const faiss::RandomRotationMatrix*>(vt)) {
        return "RR" + d_out;
    }
    FAISS_EXT_THROW_FMT(
            "index_string cannot make a factory string for %s",
            type_name(typeid(*vt)).c_str());
}

/// The fields of an object after its first one, whose value follows the name.
std::string fields_behind_number(
        const HasFields& object,
        const HasFields& fresh,
        const std::string& key) {
    std::string text = fields_to_string(object, fresh);
    if (!text.starts_with(key + "=")) {
        return text;
    }
    const size_t comma = text.find(',');
    return comma == std::string::npos ? "" : text.substr(comma + 1);
}

/// The string of indexes of these classes; empty for classes derived from them,
/// which are other indexes.
template <class... Classes, class IndexT>
std::string string_if(const IndexT& index, const std::string& string) {
    const std::type_info& type = AnyIndex(index).type();
    return ((type == typeid(Classes)) || ...) ? string : "";
}

// Ids.

/// The positions of ids in the index behind an ID map of FAISS.
template <class Map>
Ids positions_in_map(const Map& map, const Ids& ids) {
    Ids wanted = ids;
    std::sort(wanted.begin(), wanted.end());
    Ids places(wanted.size(), -1);
    for (size_t place = 0; place < map.id_map.size(); place++) {
        const idx_t id = map.id_map[place];
        const auto at = std::lower_bound(wanted.begin(), wanted.end(), id);
        if (at != wanted.end() && *at == id) {
            idx_t& known = places[at - wanted.begin()];
            FAISS_EXT_THROW_IF_NOT_FMT(
                    id == -1 || known == -1,
                    "the index has %d vectors with id %" PRId64
                    ", expected one",
                    int(std::count(map.id_map.begin(), map.id_map.end(), id)),
                    int64_t(id));
            known = idx_t(place);
        }
    }
    Ids found;
    for (const idx_t id : ids) {
        const auto at = std::lower_bound(wanted.begin(), wanted.end(), id);
        found.push_back(id == -1 ? -1 : places[at - wanted.begin()]);
    }
    return found;
}

/// The ids in one of several shards.
template <class Shards>
Ids ids_in_shard(const Shards& shards, size_t number, const Ids& ids) {
    const AnyIndex shard = shards.at(int(number));
    Ids found = ids;
    if (shards.successive_ids) {
        idx_t first = 0;
        for (size_t i = 0; i < number; i++) {
            first += shards.at(int(i))->ntotal;
        }
        for (idx_t& id : found) {
            const bool is_here = id >= first && id < first + shard.ntotal();
            id = is_here ? id - first : -1;
        }
    } else {
        const std::vector<bool> is_here = holds_ids(shard, ids);
        for (size_t i = 0; i < ids.size(); i++) {
            found[i] = is_here[i] ? ids[i] : -1;
        }
    }
    return found;
}

// Removal by places.

using Action = std::function<void()>;

/// For an index that stores one code after another.
template <class IndexT, class Codes>
Action move_codes(IndexT& index, Codes& codes, const PlaceMoves& moves) {
    if (!is_in_memory(codes)) {
        return nullptr;
    }
    const size_t size = index.code_size;
    return [&index, &codes, &moves, size] {
        moves.apply_to(codes.data(), size);
        codes.resize(moves.after * size);
        index.ntotal = moves.after;
    };
}

/// For an index with these parts, which hold all vectors.
template <class IndexT, class... Parts>
Action move_in_parts(IndexT& index, const PlaceMoves& moves, Parts*... parts) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            (... && !id_table_of(parts)),
            "%s: a part has ids of its own, so the index cannot be changed; reset the index and add the vectors again",
            AnyIndex(index).class_name().c_str());
    const std::vector<Action> actions{prepare_moves(parts, moves)...};
    if (std::any_of(actions.begin(), actions.end(), std::logical_not<>())) {
        return nullptr;
    }
    return [&index, &moves, actions] {
        for (const Action& action : actions) {
            action();
        }
        index.ntotal = moves.after;
    };
}

// Wrappers that exist for float and binary indexes.

/// The parts of Shards or Replicas.
template <class Group>
Parts parts_of_group(const Group& group, const char* name, bool by_position) {
    Parts parts;
    for (int p = 0; p < group.count(); p++) {
        parts.push_back(
                {.name = name,
                 .index = group.at(p),
                 .is_searched = true,
                 .compares = true,
                 .by_position = by_position});
    }
    return parts;
}

template <class Shards>
Parts parts_of_shards(const Shards& shards) {
    return parts_of_group(shards, "shard", shards.successive_ids);
}

template <class IndexT>
void register_wrappers() {
    using Map = faiss::IndexIDMapTemplate<IndexT>;
    IndexClass<Map> map;
    map.parts = [](const Map& i) {
        return Parts{
                {.name = "index inside",
                 .index = i.index,
                 .is_searched = true,
                 .compares = true,
                 .by_position = true,
                 .answers = true}};
    };
    map.string = [](const Map& i) -> std::string {
        return comes_first(i.index) ? "" : "IDMap," + index_string(i.index);
    };
    map.ids = [](const Map& i) {
        return Ids(i.id_map.begin(), i.id_map.end());
    };
    map.ids_in_part = [](const Map& i, size_t, const Ids& ids) {
        return positions_in_map(i, ids);
    };
    map.next_id = [](const Map& i) { return i.ntotal; };
    map.counts = [](const Map& i) {
        return std::vector<std::pair<std::string, idx_t>>{
                {"id_map", idx_t(i.id_map.size())}};
    };
    map.selects = false; // FAISS 1.7.3 passes selectors of ids on
    map.keeps_ids = true;
    register_index_class(map);

    using Map2 = faiss::IndexIDMap2Template<IndexT>;
    IndexClass<Map2> map2;
    map2.string = [](const Map2& i) -> std::string {
        return comes_first(i.index) ? "" : "IDMap2," + index_string(i.index);
    };
    register_index_class(map2);

    using Table = IndexIDTableTemplate<IndexT>;
    IndexClass<Table> ids;
    ids.ids_in_part = [](const Table& i, size_t, const Ids& ids) {
        Ids places;
        for (const idx_t id : ids) {
            places.push_back(id == -1 ? -1 : i.position_of(id));
        }
        return places;
    };
    ids.next_id = [](const Table& i) { return i.next_id; };
    ids.is_foreign_to_faiss = true;
    register_index_class(ids);

    using Positions = IndexPositions<IndexT>;
    IndexClass<Positions> positions;
    positions.parts = [](const Positions& i) {
        return Parts{
                {.name = "index",
                 .index = i.owner,
                 .is_searched = true,
                 .compares = true,
                 .answers = true}};
    };
    positions.next_id = [](const Positions& i) {
        return next_id_of_lists(i.owner);
    };
    positions.prepare_moves = [](Positions& i,
                                 const PlaceMoves& moves) -> Action {
        const Action action = prepare_moves(i.owner, moves);
        if (!action) {
            return nullptr;
        }
        return [&i, &moves, action] {
            action();
            i.ntotal = moves.after;
        };
    };
    positions.keeps_ids = false;
    positions.checks_calls = true;
    register_index_class(positions);

    using Concurrent = IndexConcurrentTemplate<IndexT>;
    IndexClass<Concurrent> concurrent;
    concurrent.parts = [](const Concurrent& i) {
        return Parts{
                {.name = "index inside",
                 .index = i.index,
                 .is_searched = true,
                 .compares = true,
                 .answers = true}};
    };
    concurrent.take_parts = [](Concurrent& i, OwnedParts<Concurrent> parts) {
        FAISS_EXT_THROW_IF_NOT_MSG(
                !dynamic_cast<const Concurrent*>(parts[0].get()),
                "the index inside is an IndexConcurrent, too; one is enough");
        i.own_fields = true;
        i.index = parts[0].release();
    };
    concurrent.string = [](const Concurrent& i) {
        const bool is_float = std::is_same_v<IndexT, Index>;
        const auto* table = dynamic_cast<const Table*>(i.index);
        // the factory makes this table also without IDMap
        const bool is_implied = !is_float && table &&
                !dynamic_cast<const HasIds<IndexT>*>(table->index);
        return (is_float ? "Concurrent," : "BConcurrent,") +
                index_string(is_implied ? table->index : i.index);
    };
    register_index_class(concurrent);

    using Shards = faiss::IndexShardsTemplate<IndexT>;
    IndexClass<Shards> shards;
    shards.parts = parts_of_shards<Shards>;
    shards.ids_in_part = ids_in_shard<Shards>;
    shards.next_id = [](const Shards& i) { return i.ntotal; };
    shards.selects = false; // a shard would take the ids for its own
    shards.keeps_ids = false;
    shards.divides_vectors = true;
    shards.remedy = "call syncWithSubIndexes()";
    register_index_class(shards);

    using Replicas = faiss::IndexReplicasTemplate<IndexT>;
    IndexClass<Replicas> replicas;
    replicas.parts = [](const Replicas& i) {
        return parts_of_group(i, "replica", false);
    };
    replicas.ids_in_part = [](const Replicas&, size_t part, const Ids& ids) {
        return part == 0 ? ids : Ids(ids.size(), -1);
    };
    replicas.next_id = [](const Replicas& i) { return i.ntotal; };
    replicas.selects = false;
    replicas.keeps_ids = false;
    replicas.remedy = "call syncWithSubIndexes()";
    register_index_class(replicas);
}

template <class IVF>
IndexPart quantizer_part(const IVF& index) {
    return {.name = "quantizer",
            .index = index.quantizer,
            .is_quantizer = true};
}

bool makes_lists_alone(const faiss::IndexIVF& index) {
    return index.quantizer_trains_alone == 1;
}

bool makes_lists_alone(const faiss::IndexBinaryIVF&) {
    return false;
}

/// Inverted files of FAISS, float or binary.
template <class IVF>
IndexClass<IVF> ivf_class() {
    IndexClass<IVF> ivf;
    ivf.parts = [](const IVF& i) { return Parts{quantizer_part(i)}; };
    ivf.settings = ivf_settings<IVF>;
    ivf.parameters = ivf_parameters<IVF>;
    ivf.list_sizes = [](const IVF& i) {
        Ids sizes;
        for (size_t list = 0; list < i.nlist; list++) {
            sizes.push_back(idx_t(invlists_of(i)->list_size(list)));
        }
        return sizes;
    };
    ivf.least_training = [](const IVF& i) -> idx_t {
        // other quantizers make their lists by themselves
        const bool is_clustered = i.quantizer && !makes_lists_alone(i) &&
                !(i.quantizer->is_trained &&
                  size_t(i.quantizer->ntotal) == i.nlist);
        return is_clustered ? idx_t(i.nlist) : 1;
    };
    ivf.keeps_ids = true;
    ivf.params_for_selected = lists_for_selected<IVF>;
    ivf.prepare_moves = [](IVF& i, const PlaceMoves& moves) -> Action {
        return has_movable_vectors(i) ? prepare_list_moves(i, moves) : nullptr;
    };
    ivf.check = [](const IVF& i) {
        // FAISS would end the process, or not find vectors
        FAISS_EXT_THROW_IF_NOT_FMT(
                !i.is_trained || !i.quantizer ||
                        size_t(i.quantizer->ntotal) == i.nlist,
                "the quantizer of an %s has %" PRId64
                " vectors, expected one for each of %zu lists",
                AnyIndex(i).class_name().c_str(),
                int64_t(i.quantizer->ntotal),
                size_t(i.nlist));
    };
    return ivf;
}

/// Graphs of FAISS, float or binary.
template <class Graph>
IndexClass<Graph> graph_class() {
    IndexClass<Graph> graph;
    graph.parts = [](const Graph& i) {
        return Parts{{.name = "storage", .index = i.storage}};
    };
    graph.settings = [](const Graph& i) { return ef_setting(i.hnsw); };
    graph.parameters = [](Graph& i) {
        return Parameters{ef_parameter(i.hnsw)};
    };
    return graph;
}

/// Graphs of this library, float or binary.
template <class Graph>
IndexClass<Graph> changing_graph_class() {
    IndexClass<Graph> graph;
    graph.selects = true;
    graph.params_for_selected = plain_params<Graph>;
    graph.merges_slowly = true; // links each vector again
    graph.parts = [](const Graph& i) {
        return Parts{
                {.name = "storage",
                 .index = i.storage,
                 .compares = true,
                 .num_removed = i.num_removed()}};
    };
    graph.counts = [](const Graph& i) {
        const idx_t num_vertices = i.hnsw.offsets.size() - 1;
        return std::vector<std::pair<std::string, idx_t>>{
                {"graph", num_vertices - i.num_removed()}};
    };
    graph.ids_in_part = [](const Graph& i, size_t, const Ids& ids) {
        Ids vertices = ids;
        for (idx_t& id : vertices) {
            id = id >= 0 && id < i.ntotal ? i.places.vertex(id) : -1;
        }
        return vertices;
    };
    graph.check = [](const Graph& i) { i.check_graph("check"); };
    graph.prepare_moves = [](Graph& i, const PlaceMoves& moves) {
        return i.prepare_moves(moves);
    };
    graph.unused_places = [](const Graph& i) { return i.num_removed(); };
    graph.compact = [](Graph& i) {
        i.check_graph("compact");
        if (!i.places.are_equal()) {
            i.compact();
        }
    };
    graph.checks_calls = true;
    graph.is_foreign_to_faiss = true;
    return graph;
}

/// Hash tables of FAISS.
template <class Hash>
IndexClass<Hash> hash_tables_class() {
    IndexClass<Hash> tables;
    tables.parameters = hash_parameters<Hash>;
    tables.extra_memory = hash_memory<Hash>;
    tables.prepare_moves = [](Hash& i, const PlaceMoves& moves) {
        return prepare_table_moves(i, moves);
    };
    return tables;
}

/// A hash in front of a binary index.
template <class HashIndex>
IndexClass<HashIndex> hash_class() {
    IndexClass<HashIndex> hash;
    hash.parts = [](const HashIndex& i) {
        return Parts{
                {.name = "storage", .index = i.storage, .is_searched = true}};
    };
    hash.transforms = [](const HashIndex& i) { return Transforms{i.hash}; };
    hash.string = [](const HashIndex& i) {
        return string_behind(i.hash->description(), i.storage);
    };
    hash.distance_kind = DistanceKind::hamming;
    hash.checks_calls = true;
    hash.is_foreign_to_faiss = true;
    hash.prepare_moves = [](HashIndex& i, const PlaceMoves& moves) {
        return move_in_parts(i, moves, i.storage);
    };
    return hash;
}

bool has_feature_map(const faiss::IndexPreTransform& index) {
    return std::any_of(
            index.chain.begin(),
            index.chain.end(),
            [](const VectorTransform* vt) {
                return dynamic_cast<const FeatureMap*>(vt);
            });
}

void register_float_classes() {
    IndexClass<faiss::IndexFlatCodes> codes;
    codes.prepare_moves = [](faiss::IndexFlatCodes& i,
                             const PlaceMoves& moves) -> Action {
        const bool is_known = typeid(i) == typeid(faiss::IndexFlat) ||
                typeid(i) == typeid(faiss::IndexFlatL2) ||
                typeid(i) == typeid(faiss::IndexFlatIP) ||
                typeid(i) == typeid(faiss::IndexPQ) ||
                typeid(i) == typeid(faiss::IndexScalarQuantizer) ||
                typeid(i) == typeid(faiss::IndexLSH);
        return is_known ? move_codes(i, i.codes, moves) : nullptr;
    };
    register_index_class(codes);

    IndexClass<faiss::IndexFlat> flat;
    flat.selects = true;
    flat.string = [](const faiss::IndexFlat& i) {
        return string_if<
                faiss::IndexFlat,
                faiss::IndexFlatL2,
                faiss::IndexFlatIP>(i, "Flat");
    };
    register_index_class(flat);

    auto ivf = ivf_class<faiss::IndexIVF>();
    ivf.selects = true;
    register_index_class(ivf);
    IndexClass<faiss::IndexIVFFastScan> fast;
    fast.selects = false; // newer versions do
    fast.params_for_selected = plain_params<faiss::IndexIVFFastScan>;
    register_index_class(fast);
    IndexClass<faiss::IndexIVFFlat> ivf_flat;
    ivf_flat.string = [](const faiss::IndexIVFFlat& i) -> std::string {
        const bool is_plain = typeid(i) == typeid(faiss::IndexIVFFlat) &&
                dynamic_cast<const faiss::IndexFlat*>(i.quantizer) &&
                i.quantizer->metric_type == i.metric_type;
        return is_plain ? format_message("IVF%zu,Flat", i.nlist) : "";
    };
    register_index_class(ivf_flat);
    IndexClass<faiss::IndexIVFPQR> pqr;
    pqr.parameters = [](faiss::IndexIVFPQR& i) {
        Parameters all = ivf_parameters<faiss::IndexIVF>(i);
        all.push_back(
                k_factor_parameter(i.*loaded<&faiss::IndexIVFPQR::k_factor>));
        return all;
    };
    register_index_class(pqr);

    IndexClass<faiss::IndexPreTransform> pre;
    pre.parts = [](const faiss::IndexPreTransform& i) {
        // behind a map, a kernel is one of mapped vectors
        return Parts{
                {.name = "index behind the transformations",
                 .index = i.index,
                 .is_searched = true,
                 .compares = !has_feature_map(i),
                 .answers = true}};
    };
    pre.transforms = [](const faiss::IndexPreTransform& i) {
        return Transforms(i.chain.begin(), i.chain.end());
    };
    pre.string = [](const faiss::IndexPreTransform& i) {
        std::string text;
        for (const VectorTransform* vt : i.chain) {
            text += (text.empty() ? "" : ",") + transform_string(vt);
        }
        return text.empty() ? string_inside(i.index)
                            : string_behind(text, i.index);
    };
    pre.transformed = [](const faiss::IndexPreTransform& i,
                         const VectorBatch& x) {
        std::vector<float> now(x.dense, x.dense + x.n * i.d);
        for (const VectorTransform* vt : i.chain) {
            std::vector<float> next(x.n * vt->d_out);
            vt->apply_noalloc(x.n, now.data(), next.data());
            now = std::move(next);
        }
        return now;
    };
    pre.prepare_moves = [](faiss::IndexPreTransform& i,
                           const PlaceMoves& moves) {
        return move_in_parts(i, moves, i.index);
    };
    register_index_class(pre);
    IndexClass<IndexPreTransformSIMD> simd;
    simd.transformed = [](const IndexPreTransformSIMD& i,
                          const VectorBatch& x) {
        return x.is_sparse ? i.transformed(x.sparse, i.chain.size())
                           : i.transformed(x.n, x.dense, i.chain.size());
    };
    simd.checks_calls = true;
    register_index_class(simd);

    IndexClass<faiss::IndexRefine> refine;
    refine.parts = [](const faiss::IndexRefine& i) {
        return Parts{
                {.name = "base_index",
                 .index = i.base_index,
                 .is_searched = true,
                 .by_position = true},
                {.name = "refine_index",
                 .index = i.refine_index,
                 .compares = true,
                 .by_position = true}};
    };
    refine.settings = [](const faiss::IndexRefine& i) {
        return Texts{setting("k_factor", i.k_factor)};
    };
    refine.parameters = [](faiss::IndexRefine& i) {
        return Parameters{k_factor_parameter(i.k_factor)};
    };
    refine.string = [](const faiss::IndexRefine& i) -> std::string {
        if (comes_first(i.base_index)) {
            return ""; // the string would put it in front of Refine
        }
        const std::string base = index_string(i.base_index) + ",";
        if (dynamic_cast<const IndexFlatKernel*>(i.refine_index)) {
            return base + "Refine(" + index_string(i.refine_index) + ")";
        }
        const bool is_flat =
                dynamic_cast<const faiss::IndexFlat*>(i.refine_index);
        return is_flat ? base + "RFlat" : "";
    };
    refine.check = [](const faiss::IndexRefine& i) {
        check_k_factor(i.k_factor, "IndexRefine");
    };
    refine.prepare_moves = [](faiss::IndexRefine& i, const PlaceMoves& moves) {
        return move_in_parts(i, moves, i.base_index, i.refine_index);
    };
    refine.keeps_ids = false;
    register_index_class(refine);
    IndexClass<IndexRefineKernel> refine_kernel;
    refine_kernel.checks_calls = true;
    register_index_class(refine_kernel);

    auto hnsw = graph_class<faiss::IndexHNSW>();
    hnsw.string = [](const faiss::IndexHNSW& i) -> std::string {
        return typeid(i) == typeid(faiss::IndexHNSWFlat)
                ? "HNSW" + links_of(i.hnsw)
                : "";
    };
    hnsw.params_for_selected = [](const faiss::IndexHNSW& i, double selected) {
        return params_of_graph(i.hnsw, 0, selected);
    };
    hnsw.counts = [](const faiss::IndexHNSW& i) {
        return std::vector<std::pair<std::string, idx_t>>{
                {"graph", idx_t(i.hnsw.offsets.size()) - 1}};
    };
    hnsw.check = [](const faiss::IndexHNSW& i) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                graph_fits(i.hnsw, i.ntotal, i.ntotal > 0),
                "the graph of an IndexHNSW does not fit its %" PRId64
                " vectors; reset the index and add the vectors again",
                int64_t(i.ntotal));
    };
    register_index_class(hnsw);
    auto graph = changing_graph_class<IndexHNSWKernel>();
    graph.string = [](const IndexHNSWKernel& i) {
        return graph_string("HNSW", i.hnsw) + "," + index_string(i.storage);
    };
    register_index_class(graph);

    auto hash = hash_class<IndexKernelHash>();
    hash.exceptions = [](const IndexKernelHash& i) { return &i.exceptions; };
    register_index_class(hash);

    IndexClass<IndexAsymmetricHash> asymmetric;
    asymmetric.selects = true;
    asymmetric.distance_kind = DistanceKind::asymmetric;
    asymmetric.transforms = [](const IndexAsymmetricHash& i) {
        return Transforms{i.hash.get()};
    };
    asymmetric.string = [](const IndexAsymmetricHash& i) {
        return i.hash->description() + ",AFlat";
    };
    asymmetric.prepare_moves = [](IndexAsymmetricHash& i,
                                  const PlaceMoves& moves) {
        return i.prepare_moves(moves);
    };
    asymmetric.checks_calls = true;
    asymmetric.is_foreign_to_faiss = true;
    register_index_class(asymmetric);

    IndexClass<IndexFlatKernel> exact;
    exact.selects = true;
    exact.kernel = [](const IndexFlatKernel& i) { return i.kernel.get(); };
    exact.distance_kind = DistanceKind::kernel;
    exact.settings = [](const IndexFlatKernel& i) {
        const std::string fields = fields_to_string(i, IndexFlatKernel());
        const size_t store = fields.rfind(",store=");
        return store == std::string::npos ? Texts()
                                          : Texts{fields.substr(store + 1)};
    };
    exact.exceptions = [](const IndexFlatKernel& i) { return &i.exceptions; };
    exact.prepare_moves = [](IndexFlatKernel& i, const PlaceMoves& moves) {
        check_not_mapped(bool(i.mapped), "IndexFlatKernel::remove_ids");
        i.rows("IndexFlatKernel::remove_ids");
        return move_codes(i, i.codes, moves);
    };
    register_index_class(exact);
    IndexClass<IndexFileKernel> file;
    file.prepare_moves = [](IndexFileKernel&, const PlaceMoves&) -> Action {
        return nullptr;
    };
    file.string = [](const IndexFileKernel& i) {
        return "KFlat" + in_parentheses(fields_to_string(i, IndexFlatKernel()));
    };
    file.checks_calls = true;
    file.is_foreign_to_faiss = true;
    register_index_class(file);
    IndexClass<IndexSparseKernel> sparse;
    sparse.prepare_moves = [](IndexSparseKernel& i, const PlaceMoves& moves) {
        check_not_mapped(i.is_mapped(), "IndexSparseKernel::remove_ids");
        return [&i, &moves] { i.move(moves); };
    };
    sparse.string = [](const IndexSparseKernel& i) {
        return "KFlat" + in_parentheses(fields_to_string(i, IndexFlatKernel()));
    };
    sparse.checks_calls = true;
    sparse.is_foreign_to_faiss = true;
    register_index_class(sparse);

    IndexClass<IndexIVFPQ4> lists;
    lists.selects = true;
    lists.settings = [](const IndexIVFPQ4& i) {
        return Texts{
                setting("nlist", i.nlist),
                setting("M", i.M),
                setting("nprobe", i.nprobe)};
    };
    lists.parameters = [](IndexIVFPQ4& i) {
        return Parameters{nprobe_parameter(i.nprobe, 1 << 24, i.nlist)};
    };
    lists.string = [](const IndexIVFPQ4& i) {
        return "KIVF" + std::to_string(i.nlist) +
                in_parentheses(fields_behind_number(i, IndexIVFPQ4(), "nlist"));
    };
    lists.ids = [](const IndexIVFPQ4& i) {
        Ids ids;
        ids.reserve(i.ntotal);
        for (const auto& list : i.lists) {
            ids.insert(ids.end(), list.ids.begin(), list.ids.end());
        }
        return ids;
    };
    lists.next_id = [](const IndexIVFPQ4& i) { return i.next_id; };
    lists.prepare_moves = [](IndexIVFPQ4& i, const PlaceMoves& moves) {
        return i.prepare_moves(moves);
    };
    lists.unused_places = [](const IndexIVFPQ4& i) {
        return i.nlist * idx_t(simd::pq4_block) /
                2; // the last blocks are half full
    };
    lists.list_sizes = [](const IndexIVFPQ4& i) {
        Ids sizes(i.nlist); // before training, there are no lists
        for (size_t list = 0; list < i.lists.size(); list++) {
            sizes[list] = idx_t(i.lists[list].ids.size());
        }
        return sizes;
    };
    lists.keeps_ids = true;
    register_index_class(lists);
}

void register_binary_classes() {
    IndexClass<faiss::IndexBinaryFlat> flat;
    flat.string = [](const faiss::IndexBinaryFlat& i) {
        return string_if<faiss::IndexBinaryFlat, IndexBinaryFlatSIMD>(
                i, "BFlat");
    };
    flat.prepare_moves = [](faiss::IndexBinaryFlat& i,
                            const PlaceMoves& moves) {
        return move_codes(i, i.xb, moves);
    };
    register_index_class(flat);
    IndexClass<IndexBinaryFlatSIMD> flat_simd;
    flat_simd.selects = true;
    flat_simd.prepare_moves = [](IndexBinaryFlatSIMD& i,
                                 const PlaceMoves& moves) {
        check_not_mapped(bool(i.mapped), "IndexBinaryFlatSIMD::remove_ids");
        return move_codes(i, i.xb, moves);
    };
    register_index_class(flat_simd);

    auto hnsw = graph_class<faiss::IndexBinaryHNSW>();
    hnsw.string = [](const faiss::IndexBinaryHNSW& i) {
        return string_if<faiss::IndexBinaryHNSW, IndexBinaryHNSWSIMD>(
                i, graph_string("BHNSW", i.hnsw));
    };
    register_index_class(hnsw);
    register_index_class(changing_graph_class<IndexBinaryHNSWSIMD>());
    auto graph = changing_graph_class<IndexBinaryHNSWKernel>();
    graph.parts = [](const IndexBinaryHNSWKernel& i) {
        return Parts{
                {.name = "storage",
                 .index = i.storage,
                 .num_removed = i.num_removed()}};
    };
    graph.kernel = [](const IndexBinaryHNSWKernel& i) {
        return i.kernel->on_vectors();
    };
    graph.distance_kind = DistanceKind::scaled;
    graph.settings = [](const IndexBinaryHNSWKernel& i) {
        Texts texts = kernel_without_vectors(*i.kernel);
        texts.push_back(ef_setting(i.hnsw)[0]);
        return texts;
    };
    graph.string = [](const IndexBinaryHNSWKernel& i) {
        return graph_string("BHNSW", i.hnsw) + ",BKFlat(" +
                i.kernel->description() + ")";
    };
    register_index_class(graph);

    auto ivf = ivf_class<faiss::IndexBinaryIVF>();
    ivf.string = [](const faiss::IndexBinaryIVF& i) -> std::string {
        std::string text = string_if<faiss::IndexBinaryIVF, IndexBinaryIVFSIMD>(
                i, "BIVF" + std::to_string(i.nlist));
        if (text.empty()) {
            return text;
        }
        if (auto* graph =
                    dynamic_cast<const faiss::IndexBinaryHNSW*>(i.quantizer)) {
            return text + "_HNSW" + links_of(graph->hnsw);
        }
        const bool is_flat =
                dynamic_cast<const faiss::IndexBinaryFlat*>(i.quantizer);
        return is_flat ? text : "";
    };
    register_index_class(ivf);
    IndexClass<IndexBinaryIVFSIMD> lists;
    lists.selects = true;
    lists.params_for_selected = plain_params<IndexBinaryIVFSIMD>;
    lists.next_id = [](const IndexBinaryIVFSIMD& i) { return i.next_new_id(); };
    lists.prepare_moves = [](IndexBinaryIVFSIMD& i, const PlaceMoves& moves) {
        return i.prepare_moves(moves);
    };
    register_index_class(lists);

    auto table = hash_tables_class<faiss::IndexBinaryHash>();
    table.string = [](const faiss::IndexBinaryHash& i) {
        return string_if<faiss::IndexBinaryHash>(
                i, format_message("BHash%d", i.b));
    };
    register_index_class(table);
    auto tables = hash_tables_class<faiss::IndexBinaryMultiHash>();
    tables.string = [](const faiss::IndexBinaryMultiHash& i) {
        return string_if<faiss::IndexBinaryMultiHash>(
                i, format_message("BHash%dx%d", i.nhash, i.b));
    };
    tables.counts = [](const faiss::IndexBinaryMultiHash& i) {
        return std::vector<std::pair<std::string, idx_t>>{
                {"storage", i.storage ? i.storage->ntotal : i.ntotal}};
    };
    register_index_class(tables);

    register_index_class(hash_class<IndexBinaryKernelHash>());

    IndexClass<IndexBinaryFlatKernel> exact;
    exact.selects = true;
    exact.kernel = [](const IndexBinaryFlatKernel& i) {
        return i.kernel->on_vectors();
    };
    exact.distance_kind = DistanceKind::scaled;
    exact.settings = [](const IndexBinaryFlatKernel& i) {
        return kernel_without_vectors(*i.kernel);
    };
    exact.prepare_moves = [](IndexBinaryFlatKernel& i,
                             const PlaceMoves& moves) {
        return i.prepare_moves(moves);
    };
    register_index_class(exact);

    using BitRefine = IndexBinaryRefineKernel;
    IndexClass<BitRefine> refine;
    refine.parts = [](const BitRefine& i) {
        return Parts{
                {.name = "base_index",
                 .index = i.base_index,
                 .is_searched = true,
                 .by_position = true,
                 .is_of_other_kind = dynamic_cast<const IndexBinaryKernelHash*>(
                                             i.base_index) != nullptr},
                {.name = "refine_index",
                 .index = i.refine_index,
                 .compares = true,
                 .by_position = true}};
    };
    refine.settings = [](const BitRefine& i) {
        return Texts{setting("k_factor", i.k_factor)};
    };
    refine.parameters = [](BitRefine& i) {
        return Parameters{k_factor_parameter(i.k_factor)};
    };
    refine.string = [](const BitRefine& i) -> std::string {
        return comes_first(i.base_index) ? ""
                                         : index_string(i.base_index) +
                        ",Refine(" + index_string(i.refine_index) + ")";
    };
    refine.check = [](const BitRefine& i) {
        check_k_factor(i.k_factor, "IndexBinaryRefineKernel");
    };
    refine.prepare_moves = [](BitRefine& i, const PlaceMoves& moves) {
        return move_in_parts(i, moves, i.base_index, i.refine_index);
    };
    refine.keeps_ids = false;
    refine.selects = true;
    refine.params_for_selected = plain_params<BitRefine>;
    refine.checks_calls = true;
    refine.is_foreign_to_faiss = true;
    register_index_class(refine);

    IndexClass<IndexBinaryPermuted> permuted;
    permuted.selects = true;
    permuted.prepare_moves = [](IndexBinaryPermuted& i,
                                const PlaceMoves& moves) {
        return i.prepare_moves(moves);
    };
    permuted.settings = [](const IndexBinaryPermuted& i) {
        return Texts{
                i.M ? setting("M", i.M) : setting("eps", i.eps),
                setting("B", i.B)};
    };
    permuted.extra_memory = [](const IndexBinaryPermuted& i, idx_t n) {
        return i.bytes_of_lists(n);
    };
    permuted.parameters = [](IndexBinaryPermuted& i) {
        auto values = powers_of_2(1, 1025);
        values.insert(values.begin(), 0);
        return Parameters{parameter("B", i.B, 0, 1 << 30, values)};
    };
    register_index_class(permuted);
}

} // namespace

void register_known_index_classes() {
    register_wrappers<Index>();
    register_wrappers<IndexBinary>();
    register_float_classes();
    register_binary_classes();
#if __has_include(<faiss/IndexShardsIVF.h>)
    IndexClass<faiss::IndexShardsIVF> shards;
    shards.parts = [](const faiss::IndexShardsIVF& i) {
        Parts parts = parts_of_shards(i);
        parts.push_back(quantizer_part(i));
        return parts;
    };
    register_index_class(shards);
#endif
}

} // namespace faiss_ext
