// SPDX-License-Identifier: MIT
// Gathers vectors from scattered places into blocks for a kernel.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <faiss_ext/core/compat.h>

#include "core/prefetch.h"
#include "core/scratch.h"
#include "indexes/row_codec.h"

namespace faiss_ext {

/** Calls fn(begin, count, rows) for consecutive pieces of the ids; `rows` holds
 * their vectors one after the other.
 *
 * The next 16 kB of vectors are prefetched meanwhile, because waiting for a
 * vector takes several times as long as comparing it.
 *
 * @param ids  size n; each is the id of a stored vector
 */
template <class Id, class F>
void for_gathered_rows(
        const StoredRows& stored,
        size_t n,
        const Id* ids,
        F&& fn) {
    const size_t d = stored.codec.d, code_size = stored.codec.code_size();
    if (n == 1 && stored.codec.store == IndexFlatKernel::Store::f32) {
        fn(size_t(0),
           size_t(1),
           reinterpret_cast<const float*>(stored.row(ids[0])));
        return;
    }
    const size_t piece = d > 512 ? 4 : 8; // kernels take four at a time
    const size_t ahead = std::clamp<size_t>(16384 / code_size, 4, 32);
    const Scratch rows(std::min(piece, n) * d);
    for (size_t i = 0; i < std::min(ahead, n); i++) {
        prefetch_row(stored.row(ids[i]), code_size);
    }
    for (size_t begin = 0; begin < n; begin += piece) {
        const size_t count = std::min(piece, n - begin);
        for (size_t i = begin; i < begin + count; i++) {
            if (i + ahead < n) {
                prefetch_row(stored.row(ids[i + ahead]), code_size);
            }
            stored.decode(ids[i], rows.get() + (i - begin) * d);
        }
        fn(begin, count, rows.get());
    }
}

} // namespace faiss_ext
