// Adding to FAISS's binary indexes so that a failure changes nothing.

#pragma once

#include <faiss/IndexBinary.h>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/** storage.add(n, codes), or add_with_ids where ids are given. If that fails,
 * or is interrupted, the storage is as it was. (Where memory runs out inside
 * FAISS's parallel loops, the process ends.)
 */
void add_to_storage(
        faiss::IndexBinary& storage,
        idx_t n,
        const uint8_t* codes,
        const idx_t* ids);

} // namespace faiss_ext
