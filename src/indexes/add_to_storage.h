// SPDX-License-Identifier: MIT
// Adding to FAISS's binary indexes so that a failure changes nothing.

#pragma once

#include <faiss/IndexBinary.h>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/** storage.add(n, codes), or add_with_ids where ids are given. If that is
 * interrupted, the storage is as it was, and so are hash tables if it fails.
 * (Where memory runs out in a graph or in lists, they may be left with a part
 * of the vectors, or the process ends inside FAISS's parallel loops.)
 */
void add_to_storage(
        faiss::IndexBinary& storage,
        idx_t n,
        const uint8_t* codes,
        const idx_t* ids);

} // namespace faiss_ext
