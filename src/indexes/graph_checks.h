// SPDX-License-Identifier: MIT
// Checks of an index with a graph, IndexHNSWKernel or IndexBinaryHNSWSIMD.
// Errors name the class and the function.

#pragma once

#include <cinttypes>
#include <cstddef>

#include <faiss/impl/HNSW.h>

#include "core/errors.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"

namespace faiss_ext {

inline void check_not_being_built(
        bool is_being_built,
        const char* class_name,
        const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            !is_being_built,
            "%s::%s: the graph is being built; do not use the index in a progress function",
            class_name,
            where);
}

inline idx_t num_vertices(const faiss::HNSW& hnsw) {
    return idx_t(hnsw.offsets.size()) - 1;
}

/// Checks that the graph, the places and the number of vectors fit.
template <class IndexT>
void check_graph_of(
        const IndexT& index,
        const char* class_name,
        const char* where) {
    const idx_t ntotal = index.ntotal, total = ntotal + index.num_removed();
    if (num_vertices(index.hnsw) != total || !index.storage ||
        index.storage->ntotal != total) {
        check_counts(index);
    }
    const bool has_places = index.places.are_equal() ||
            index.places.vertices.size() == size_t(ntotal);
    const bool has_entry = ntotal > 0 || index.hnsw.entry_point != -1;
    FAISS_EXT_THROW_IF_NOT_FMT(
            has_places && graph_fits(index.hnsw, total, has_entry),
            "%s::%s: the graph's entry point, levels and links are inconsistent; reset the index and add the vectors again",
            class_name,
            where);
}

/// Checks that the graph has levels for its vertices, or also for n new ones.
template <class IndexT>
void check_levels(const IndexT& index, idx_t n, const char* class_name) {
    const size_t levels = index.hnsw.levels.size();
    const idx_t total = num_vertices(index.hnsw);
    FAISS_EXT_THROW_IF_NOT_FMT(
            levels == size_t(total) ||
                    (index.places.are_equal() && levels == size_t(total + n)),
            "%s::add: the graph has levels for %zu vectors, expected %" PRId64
            ", or %" PRId64 " with the new ones",
            class_name,
            levels,
            int64_t(total),
            int64_t(total + n));
}

} // namespace faiss_ext
