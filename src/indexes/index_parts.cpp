#include "indexes/index_parts.h"

#include <algorithm>
#include <memory>

#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/IndexReplicas.h>
#include <faiss/IndexShards.h>
#include <faiss/impl/DistanceComputer.h>

#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexIVFPQ4.h>
#include <faiss_ext/indexes/IndexKernelHash.h>

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

template <class IndexT>
bool labels_are_positions_of_both(const IndexT& index) {
    if (dynamic_cast<const faiss::IndexIDMapTemplate<IndexT>*>(&index)) {
        return false;
    }
    const auto parts = parts_of_both(index);
    return std::all_of(parts.begin(), parts.end(), [](const IndexT* part) {
        return labels_are_positions(part);
    });
}

bool ids_are_positions(const IndexIVFPQ4& index) {
    for (const IndexIVFPQ4::List& list : index.lists) {
        for (idx_t id : list.ids) {
            if (id < 0 || id >= index.ntotal) {
                return false;
            }
        }
    }
    return true;
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

bool labels_are_positions(const faiss::IndexBinary* index) {
    if (auto* hash = dynamic_cast<const IndexBinaryKernelHash*>(index)) {
        return labels_are_positions(hash->storage);
    }
    return !index || labels_are_positions_of_both(*index);
}

bool labels_are_positions(const faiss::Index* index) {
    if (auto* lists = dynamic_cast<const IndexIVFPQ4*>(index)) {
        return ids_are_positions(*lists);
    }
    if (auto* hash = dynamic_cast<const IndexKernelHash*>(index)) {
        return labels_are_positions(hash->storage);
    }
    if (auto* pre = dynamic_cast<const faiss::IndexPreTransform*>(index)) {
        return labels_are_positions(pre->index);
    }
    if (auto* refine = dynamic_cast<const faiss::IndexRefine*>(index)) {
        return labels_are_positions(refine->base_index);
    }
    return !index || labels_are_positions_of_both(*index);
}

void check_computes_distances(const faiss::Index& index) {
    if (index.ntotal == 0 || dynamic_cast<const IndexFlatKernel*>(&index)) {
        return;
    }
    const std::vector<float> query(index.d);
    const std::unique_ptr<faiss::DistanceComputer> distance(
            index.get_distance_computer());
    distance->set_query(query.data());
    (*distance)(0);
}

} // namespace faiss_ext
