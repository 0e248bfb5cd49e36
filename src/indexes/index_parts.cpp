#include "indexes/index_parts.h"

#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/IndexReplicas.h>
#include <faiss/IndexShards.h>

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

} // namespace faiss_ext
