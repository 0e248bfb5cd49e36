// SPDX-License-Identifier: MIT
#include "indexes/index_parts.h"

#include <algorithm>
#include <cinttypes>
#include <memory>
#include <string>
#include <typeinfo>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryHNSW.h>
#include <faiss/IndexBinaryHash.h>
#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVF.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/IndexReplicas.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/IndexShards.h>
#include <faiss/impl/DistanceComputer.h>

#include <faiss_ext/core/Transform.h>
#include <faiss_ext/core/fields.h>
#include <faiss_ext/indexes/IndexAsymmetricHash.h>
#include <faiss_ext/indexes/IndexBinaryIVFSIMD.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/IndexIVFPQ4.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/IndexPreTransformSIMD.h>
#include <faiss_ext/indexes/IndexRefineKernel.h>

#include "core/check.h"
#include "core/errors.h"
#include "indexes/index_compat.h"
#include "indexes/search_params.h"

namespace faiss_ext {

namespace {

/// Returns the parts of wrappers that exist for float and binary indexes.
template <class IndexT>
std::vector<const IndexT*> parts_of_both(const IndexT& index) {
    std::vector<const IndexT*> parts;
    const auto add_all = [&](const auto* group) {
        for (int i = 0; group && i < group->count(); i++) {
            parts.push_back(group->at(i));
        }
    };
    if (const auto* map =
                dynamic_cast<const faiss::IndexIDMapTemplate<IndexT>*>(
                        &index)) {
        parts.push_back(map->index);
    }
    add_all(dynamic_cast<const faiss::IndexShardsTemplate<IndexT>*>(&index));
    add_all(dynamic_cast<const faiss::IndexReplicasTemplate<IndexT>*>(&index));
    return parts;
}

template <class... C>
bool is_any(const faiss::Index& index) {
    return (dynamic_cast<const C*>(&index) || ...);
}

template <class Ids>
bool are_below(const Ids& ids, idx_t limit) {
    return std::all_of(ids.begin(), ids.end(), [&](idx_t id) {
        return id >= 0 && id < limit;
    });
}

template <class IndexT>
bool labels_are_below_of_both(const IndexT& index, idx_t limit) {
    if (const auto* map =
                dynamic_cast<const faiss::IndexIDMapTemplate<IndexT>*>(
                        &index)) {
        return are_below(map->id_map, limit);
    }
    const auto* shards =
            dynamic_cast<const faiss::IndexShardsTemplate<IndexT>*>(&index);
    const bool are_numbered = shards && shards->successive_ids;
    const auto parts = parts_of_both(index);
    return std::all_of(parts.begin(), parts.end(), [&](const IndexT* part) {
        return labels_are_below(
                part, part && are_numbered ? part->ntotal : limit);
    });
}

std::vector<idx_t> ids_of(const IndexIVFPQ4& index) {
    std::vector<idx_t> ids;
    ids.reserve(index.ntotal);
    for (const IndexIVFPQ4::List& list : index.lists) {
        ids.insert(ids.end(), list.ids.begin(), list.ids.end());
    }
    return ids;
}

/// Returns whether every position is the id of a vector.
bool are_all_positions(std::vector<idx_t> ids) {
    std::sort(ids.begin(), ids.end());
    for (size_t i = 0; i < ids.size(); i++) {
        if (ids[i] != idx_t(i)) {
            return false;
        }
    }
    return true;
}

/// Returns the ids by which an index reconstructs its vectors, if it has its
/// own.
std::vector<idx_t> own_ids(const faiss::Index& index) {
    if (auto* pre = dynamic_cast<const faiss::IndexPreTransform*>(&index)) {
        return own_ids(*pre->index);
    }
    if (auto* lists = dynamic_cast<const IndexIVFPQ4*>(&index)) {
        return ids_of(*lists);
    }
    auto* map = dynamic_cast<const faiss::IndexIDMap*>(&index);
    return map ? map->id_map : std::vector<idx_t>();
}

/// Finds the first part whose number of vectors differs.
struct UnequalCount {
    idx_t expected;
    std::string text; ///< empty if there is none

    void see(const char* part, idx_t count) {
        if (count != expected && text.empty()) {
            text = "the index has " + std::to_string(expected) +
                    " vectors, and its " + part + " " + std::to_string(count);
        }
    }

    template <class IndexT>
    void see(const char* part, const IndexT* index) {
        if (index) {
            see(part, index->ntotal);
        }
    }

    /// The index takes the ids of a part for positions.
    template <class IndexT>
    void see_positions(const char* part, const IndexT* index) {
        see(part, index);
        const idx_t next = index ? next_new_id(*index) : expected;
        if (next != expected && text.empty()) {
            text = "the " + std::string(part) + " has " +
                    std::to_string(expected) +
                    " vectors and numbers new ones from " +
                    std::to_string(next) +
                    " on, since others have been removed: reset() lets it begin at 0";
        }
    }
};

template <class IndexT>
UnequalCount unequal_count_of_both(const IndexT& index) {
    UnequalCount unequal{index.ntotal, ""};
    if (const auto* hash = dynamic_cast<const HashAndStorage*>(&index)) {
        unequal.see("storage", hash->storage);
    }
    if (const auto* map =
                dynamic_cast<const faiss::IndexIDMapTemplate<IndexT>*>(
                        &index)) {
        unequal.see("id_map", idx_t(map->id_map.size()));
        unequal.see_positions("index inside", map->index);
    }
    if (const auto* shards =
                dynamic_cast<const faiss::IndexShardsTemplate<IndexT>*>(
                        &index)) {
        idx_t sum = 0;
        for (int i = 0; i < shards->count(); i++) {
            sum += shards->at(i)->ntotal;
            if (shards->successive_ids) {
                UnequalCount of_shard{shards->at(i)->ntotal, unequal.text};
                of_shard.see_positions("shard", shards->at(i));
                unequal.text = of_shard.text;
            }
        }
        unequal.see("shards together", sum);
    }
    if (const auto* replicas =
                dynamic_cast<const faiss::IndexReplicasTemplate<IndexT>*>(
                        &index)) {
        for (int i = 0; i < replicas->count(); i++) {
            unequal.see("replica", replicas->at(i));
        }
    }
    return unequal;
}

template <class IndexT>
bool is_group(const IndexT& index) {
    return dynamic_cast<const faiss::IndexShardsTemplate<IndexT>*>(&index) ||
            dynamic_cast<const faiss::IndexReplicasTemplate<IndexT>*>(&index);
}

template <class IndexT>
void check_counts_of_both(const IndexT& index) {
    const std::string unequal = unequal_counts(index);
    if (unequal.empty()) {
        return;
    }
    const char* remedy = "reset the index and add the vectors again";
    if (dynamic_cast<const IndexHNSWKernel*>(&index)) {
        remedy = "call rebuild(), or reset the index and add the vectors again";
    } else if (is_group(index)) {
        remedy = "call syncWithSubIndexes()";
    }
    FAISS_EXT_THROW_FMT(
            "%s: its parts do not fit: %s, expected as many: vectors were added to one of them, or removed from it, alone; %s",
            type_name(typeid(index)).c_str(),
            unequal.c_str(),
            remedy);
}

template <class IndexT>
void check_all_counts_of_both(const IndexT& index) {
    check_counts(index);
    for (const IndexT* part : parts_of(index)) {
        if (part) {
            check_all_counts(*part);
        }
    }
}

} // namespace

std::vector<const faiss::IndexBinary*> parts_of(
        const faiss::IndexBinary& index) {
    return parts_of_both(index);
}

std::vector<const faiss::Index*> parts_of(const faiss::Index& index) {
    if (auto* pre = dynamic_cast<const faiss::IndexPreTransform*>(&index)) {
        return {pre->index};
    }
    if (auto* refine = dynamic_cast<const faiss::IndexRefine*>(&index)) {
        return {refine->base_index, refine->refine_index};
    }
    if (auto* hnsw = dynamic_cast<const faiss::IndexHNSW*>(&index)) {
        return {hnsw->storage};
    }
    return parts_of_both(index);
}

std::vector<const faiss::VectorTransform*> transforms_of(
        const faiss::Index& index) {
    auto* pre = dynamic_cast<const faiss::IndexPreTransform*>(&index);
    return pre ? std::vector<const faiss::VectorTransform*>(
                         pre->chain.begin(), pre->chain.end())
               : std::vector<const faiss::VectorTransform*>();
}

bool labels_are_below(const faiss::IndexBinary* index, idx_t limit) {
    if (auto* hash = dynamic_cast<const IndexBinaryKernelHash*>(index)) {
        return labels_are_below(hash->storage, limit);
    }
    return !index || labels_are_below_of_both(*index, limit);
}

void check_free_ids(idx_t next, idx_t n, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            n <= std::numeric_limits<idx_t>::max() - next,
            "%s: there are no %" PRId64 " ids above %" PRId64
            ", up to which ids have been given; use add_with_ids",
            where,
            int64_t(n),
            int64_t(next) - 1);
}

idx_t next_new_id(const faiss::IndexBinary& index) {
    if (auto* hash = dynamic_cast<const IndexBinaryKernelHash*>(&index)) {
        return next_new_id(*hash->storage);
    }
    if (auto* table = dynamic_cast<const IndexBinaryIDTable*>(&index)) {
        return table->next_id;
    }
    auto* lists = dynamic_cast<const IndexBinaryIVFSIMD*>(&index);
    return lists && lists->next_id >= 0 ? lists->next_id : index.ntotal;
}

idx_t next_new_id(const faiss::Index& index) {
    if (auto* lists = dynamic_cast<const IndexIVFPQ4*>(&index)) {
        return lists->next_id;
    }
    if (auto* table = dynamic_cast<const IndexIDTable*>(&index)) {
        return table->next_id;
    }
    if (auto* pre = dynamic_cast<const faiss::IndexPreTransform*>(&index)) {
        return pre->index ? next_new_id(*pre->index) : index.ntotal;
    }
    if (auto* hash = dynamic_cast<const IndexKernelHash*>(&index)) {
        return next_new_id(*hash->storage);
    }
    if (auto* refine = dynamic_cast<const faiss::IndexRefine*>(&index)) {
        return refine->base_index ? next_new_id(*refine->base_index)
                                  : index.ntotal;
    }
    return index.ntotal;
}

idx_t shifted_id(idx_t id, idx_t add_id, const char* where) {
    idx_t sum = -1;
    FAISS_EXT_THROW_IF_NOT_FMT(
            !__builtin_add_overflow(id, add_id, &sum) && sum != -1,
            "%s: id %" PRId64 " + %" PRId64
            " is out of range, or -1, which stands for none",
            where,
            int64_t(id),
            int64_t(add_id));
    return sum;
}

void check_new_ids(idx_t n, const idx_t* ids, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            !ids || std::find(ids, ids + n, -1) == ids + n,
            "%s: an id is -1, which stands for none in the results of searches",
            where);
}

bool keeps_ids(const faiss::IndexBinary& index) {
    if (auto* hash = dynamic_cast<const IndexBinaryKernelHash*>(&index)) {
        return keeps_ids(*hash->storage);
    }
    return dynamic_cast<const faiss::IndexBinaryIVF*>(&index) ||
            dynamic_cast<const faiss::IndexBinaryIDMap*>(&index);
}

bool keeps_ids(const faiss::Index& index) {
    if (auto* pre = dynamic_cast<const faiss::IndexPreTransform*>(&index)) {
        return keeps_ids(*pre->index);
    }
    if (auto* hash = dynamic_cast<const IndexKernelHash*>(&index)) {
        return keeps_ids(*hash->storage);
    }
    return is_any<IndexIVFPQ4, faiss::IndexIVF, faiss::IndexIDMap>(index);
}

template <class IndexT>
void check_removal(
        const IndexT& index,
        const faiss::IDSelector& sel,
        const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            !is_from_id_map(sel) || !keeps_ids(index),
            "%s: an IndexIDMap in front of inverted lists, which keep ids themselves, would return wrong ids after a removal; use add_with_ids and remove_ids of the index inside, without the IndexIDMap",
            where);
}

template void check_removal(
        const faiss::Index&,
        const faiss::IDSelector&,
        const char*);
template void check_removal(
        const faiss::IndexBinary&,
        const faiss::IDSelector&,
        const char*);

bool labels_are_below(const faiss::Index* index, idx_t limit) {
    if (auto* lists = dynamic_cast<const IndexIVFPQ4*>(index)) {
        return std::all_of(
                       lists->lists.begin(),
                       lists->lists.end(),
                       [&](const auto& list) {
                           return are_below(list.ids, limit);
                       }) &&
                (lists->ntotal != limit || are_all_positions(ids_of(*lists)));
    }
    if (auto* hash = dynamic_cast<const IndexKernelHash*>(index)) {
        return labels_are_below(hash->storage, limit);
    }
    if (auto* pre = dynamic_cast<const faiss::IndexPreTransform*>(index)) {
        return labels_are_below(pre->index, limit);
    }
    if (auto* refine = dynamic_cast<const faiss::IndexRefine*>(index)) {
        return labels_are_below(refine->base_index, limit);
    }
    return !index || labels_are_below_of_both(*index, limit);
}

namespace {

/// Throws unless a trained index has a centroid for each list: FAISS would end
/// the process, or not find vectors.
void check_quantizer(const faiss::IndexIVF& index, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            !index.is_trained || !index.quantizer ||
                    size_t(index.quantizer->ntotal) == index.nlist,
            "%s: the quantizer of an IndexIVF has %" PRId64
            " vectors, expected one for each of %zu lists",
            where,
            int64_t(index.quantizer->ntotal),
            index.nlist);
}

} // namespace

bool graph_fits(const faiss::HNSW& hnsw, idx_t ntotal) {
    const idx_t entry = hnsw.entry_point;
    return hnsw.offsets.size() == size_t(ntotal) + 1 &&
            hnsw.neighbors.size() == hnsw.offsets.back() &&
            (ntotal == 0 ||
             (entry >= 0 && entry < ntotal &&
              hnsw.levels[entry] == hnsw.max_level + 1));
}

void check_faiss_input(
        const faiss::Index& index,
        idx_t n,
        const float* x,
        const char* where) {
    if (is_any<HasFields,
               HashAndStorage,
               IndexAsymmetricHash,
               IndexHNSWKernel,
               IndexPreTransformSIMD,
               IndexRefineKernel>(index)) {
        return;
    }
    if (const auto* graph = dynamic_cast<const faiss::IndexHNSW*>(&index)) {
        check_counts_with(index, graph->storage);
        FAISS_EXT_THROW_IF_NOT_FMT(
                graph_fits(graph->hnsw, index.ntotal),
                "%s: the graph of an IndexHNSW does not fit its %" PRId64
                " vectors; reset the index and add the vectors again",
                where,
                int64_t(index.ntotal));
    }
    if (const auto* lists = dynamic_cast<const faiss::IndexIVF*>(&index)) {
        check_quantizer(*lists, where);
    }
    const auto parts = parts_of_both(index);
    for (const faiss::Index* part : parts) {
        check_faiss_input(*part, n, x, where);
    }
    if (parts.empty()) {
        check_norms(n, x, index.d, where);
    }
}

void check_faiss_input(
        const faiss::VectorTransform& vt,
        idx_t n,
        const float* x,
        const char* where) {
    if (dynamic_cast<const Transform*>(&vt)) {
        return;
    }
    const bool squares =
            !dynamic_cast<const faiss::RemapDimensionsTransform*>(&vt);
    (squares ? check_norms : check_finite)(n, x, vt.d_in, where);
}

void check_params_for(
        const faiss::Index& index,
        const faiss::SearchParameters* params,
        const char* where) {
    if (is_any<faiss::IndexFlat, faiss::IndexScalarQuantizer>(index)) {
        known_params(params, where);
    } else if (
            const auto* graph = dynamic_cast<const faiss::IndexHNSW*>(&index)) {
        const auto* given =
                known_params<faiss::SearchParametersHNSW>(params, where);
        check_ef(
                given ? given->efSearch : graph->hnsw.efSearch,
                "efSearch",
                where);
    }
}

void check_params_for(
        const faiss::IndexBinary& index,
        const faiss::SearchParameters* params,
        const char* where) {
    if (dynamic_cast<const faiss::IndexBinaryFlat*>(&index)) {
        known_params(params, where);
    }
}

std::string unequal_counts(const faiss::IndexBinary& index) {
    UnequalCount unequal = unequal_count_of_both(index);
    if (auto* tables =
                dynamic_cast<const faiss::IndexBinaryMultiHash*>(&index)) {
        unequal.see("storage", tables->storage);
    }
    if (auto* graph = dynamic_cast<const faiss::IndexBinaryHNSW*>(&index)) {
        unequal.see("storage", graph->storage);
    }
    return unequal.text;
}

std::string unequal_counts(const faiss::Index& index) {
    UnequalCount unequal = unequal_count_of_both(index);
    if (auto* pre = dynamic_cast<const faiss::IndexPreTransform*>(&index)) {
        unequal.see("index behind the transformations", pre->index);
    }
    if (auto* refine = dynamic_cast<const faiss::IndexRefine*>(&index)) {
        unequal.see_positions("base_index", refine->base_index);
        unequal.see_positions("refine_index", refine->refine_index);
    }
    if (auto* hnsw = dynamic_cast<const faiss::IndexHNSW*>(&index)) {
        unequal.see("storage", hnsw->storage);
        const auto* ours = dynamic_cast<const IndexHNSWKernel*>(hnsw);
        if (!ours || ours->graph_is_complete) {
            unequal.see("graph", idx_t(hnsw->hnsw.offsets.size()) - 1);
        }
    }
    return unequal.text;
}

void check_counts(const faiss::Index& index) {
    check_counts_of_both(index);
}

void check_counts(const faiss::IndexBinary& index) {
    check_counts_of_both(index);
}

/// Checks the binary index inside a hash, which parts_of does not list.
template <class IndexT>
void check_counts_of_storage(const IndexT& index) {
    const auto* hash = dynamic_cast<const HashAndStorage*>(&index);
    if (hash && hash->storage) {
        check_all_counts(*hash->storage);
    }
}

void check_all_counts(const faiss::Index& index) {
    check_all_counts_of_both(index);
    check_counts_of_storage(index);
}

void check_all_counts(const faiss::IndexBinary& index) {
    check_all_counts_of_both(index);
    check_counts_of_storage(index);
}

void check_computes_distances(const faiss::Index& index) {
    if (index.ntotal == 0 || dynamic_cast<const IndexFlatKernel*>(&index)) {
        return;
    }
    FAISS_EXT_THROW_IF_NOT_MSG(
            are_all_positions(own_ids(index)),
            "its ids are not the positions of its vectors");
    const std::vector<float> query(index.d);
    const std::unique_ptr<faiss::DistanceComputer> distance(
            index.get_distance_computer());
    distance->set_query(query.data());
    (*distance)(0);
}

} // namespace faiss_ext
