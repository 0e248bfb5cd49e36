// SPDX-License-Identifier: MIT
// Searches of FAISS's inverted lists among selected vectors.

#pragma once

#include <faiss/IndexIVF.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// Finds the k nearest selected vectors of each query. A query visits lists
/// until it has met as many selected vectors as nprobe lists hold on average,
/// and until it has k results.
void search_selected(
        const faiss::IndexIVF& index,
        const faiss::IDSelector& sel,
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels);

} // namespace faiss_ext
