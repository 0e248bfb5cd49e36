// SPDX-License-Identifier: MIT
#include "indexes/index_parts.h"

#include <algorithm>
#include <cinttypes>
#include <memory>

#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVF.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/IndexReplicas.h>
#include <faiss/IndexShards.h>
#include <faiss/impl/DistanceComputer.h>

#include <faiss_ext/core/Transform.h>
#include <faiss_ext/core/fields.h>
#include <faiss_ext/indexes/IndexAsymmetricHash.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/indexes/IndexIVFPQ4.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/IndexPreTransformSIMD.h>
#include <faiss_ext/indexes/IndexRefineKernel.h>

#include "core/check.h"
#include "core/errors.h"
#include "indexes/index_compat.h"

namespace faiss_ext {

namespace {

/// The wrappers that exist for both kinds of indexes.
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

/// Whether every position is the id of a vector.
bool are_all_positions(std::vector<idx_t> ids) {
    std::sort(ids.begin(), ids.end());
    for (size_t i = 0; i < ids.size(); i++) {
        if (ids[i] != idx_t(i)) {
            return false;
        }
    }
    return true;
}

/// The ids by which an index reconstructs its vectors, where these are its own.
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

bool keeps_ids(const faiss::IndexBinary& index) {
    if (auto* hash = dynamic_cast<const IndexBinaryKernelHash*>(&index)) {
        return keeps_ids(*hash->storage);
    }
    return dynamic_cast<const faiss::IndexBinaryIVF*>(&index);
}

bool keeps_ids(const faiss::Index& index) {
    if (auto* pre = dynamic_cast<const faiss::IndexPreTransform*>(&index)) {
        return keeps_ids(*pre->index);
    }
    if (auto* hash = dynamic_cast<const IndexKernelHash*>(&index)) {
        return keeps_ids(*hash->storage);
    }
    return is_any<IndexIVFPQ4, faiss::IndexIVF>(index);
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

void check_for(
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
    const auto parts = parts_of_both(index);
    for (const faiss::Index* part : parts) {
        check_for(*part, n, x, where);
    }
    if (parts.empty()) {
        check_norms(n, x, index.d, where);
    }
}

void check_for(
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
