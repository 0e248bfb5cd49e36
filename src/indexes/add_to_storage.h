// SPDX-License-Identifier: MIT
// Adds codes to FAISS's binary indexes; on failure nothing changes.

#pragma once

#include <faiss/IndexBinary.h>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/** Calls storage.add(n, codes), or add_with_ids if ids are given.
 *
 * An interrupt leaves the storage unchanged, and any failure leaves hash tables
 * unchanged. If memory runs out in a graph or in lists, they may keep some of
 * the vectors, or the process may end inside FAISS's parallel loops.
 */
void add_to_storage(
        faiss::IndexBinary& storage,
        idx_t n,
        const uint8_t* codes,
        const idx_t* ids);

} // namespace faiss_ext
