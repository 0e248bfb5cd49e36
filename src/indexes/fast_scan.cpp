// SPDX-License-Identifier: MIT
#include "indexes/fast_scan.h"

#include <typeinfo>
#include <utility>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexIDMap.h>

#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>
#include <faiss_ext/indexes/IndexBinaryIVFSIMD.h>

namespace faiss_ext {

std::unique_ptr<faiss::IndexBinary> with_simd_hamming(
        std::unique_ptr<faiss::IndexBinary> index) {
    if (typeid(*index) == typeid(faiss::IndexBinaryFlat)) {
        return std::make_unique<IndexBinaryFlatSIMD>(
                dynamic_cast<faiss::IndexBinaryFlat&&>(*index));
    }
    if (typeid(*index) == typeid(faiss::IndexBinaryIVF)) {
        return std::make_unique<IndexBinaryIVFSIMD>(
                dynamic_cast<faiss::IndexBinaryIVF&&>(*index));
    }
    if (auto* map = dynamic_cast<faiss::IndexBinaryIDMap*>(index.get())) {
        std::unique_ptr<faiss::IndexBinary> inside(
                std::exchange(map->index, nullptr));
        map->index = with_simd_hamming(std::move(inside)).release();
    }
    return index;
}

} // namespace faiss_ext
