// SPDX-License-Identifier: MIT
#include "indexes/fast_scan.h"

#include <typeinfo>
#include <utility>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryHNSW.h>
#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexIDMap.h>

#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>
#include <faiss_ext/indexes/IndexBinaryHNSWSIMD.h>
#include <faiss_ext/indexes/IndexBinaryIVFSIMD.h>
#include <faiss_ext/indexes/IndexIDTable.h>

#include "indexes/id_positions.h"
#include "indexes/index_parts.h"
#include "indexes/with_ids.h"

namespace faiss_ext {

std::unique_ptr<faiss::IndexBinary> with_simd_hamming(
        std::unique_ptr<faiss::IndexBinary> index,
        Graphs graphs) {
    if (typeid(*index) == typeid(faiss::IndexBinaryFlat)) {
        return make_with_ids<IndexBinaryFlatSIMD>(
                dynamic_cast<faiss::IndexBinaryFlat&&>(*index));
    }
    if (typeid(*index) == typeid(faiss::IndexBinaryIVF)) {
        return make_with_ids<IndexBinaryIVFSIMD>(
                dynamic_cast<faiss::IndexBinaryIVF&&>(*index));
    }
    if (graphs == Graphs::convert &&
        typeid(*index) == typeid(faiss::IndexBinaryHNSW)) {
        auto& graph = dynamic_cast<faiss::IndexBinaryHNSW&>(*index);
        if (graph.own_fields && graph.storage &&
            typeid(*graph.storage) == typeid(faiss::IndexBinaryFlat)) {
            return make_with_ids<IndexBinaryHNSWSIMD>(std::move(graph));
        }
    }
    using Map = faiss::IndexBinaryIDMap;
    if (auto* map = dynamic_cast<Map*>(index.get())) {
        std::unique_ptr<faiss::IndexBinary> inside(
                std::exchange(map->index, nullptr));
        map->index = with_simd_hamming(std::move(inside), graphs).release();
        map->own_fields = true;
        if (!dynamic_cast<IndexBinaryIDTable*>(map) && map->index &&
            !keeps_ids(*map->index) && are_unique(map->id_map)) {
            return std::make_unique<IndexBinaryIDTable>(std::move(*map));
        }
    }
    return index;
}

} // namespace faiss_ext
