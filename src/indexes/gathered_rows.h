// SPDX-License-Identifier: MIT
// Vectors that lie apart in memory, as blocks for a kernel.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <faiss_ext/core/compat.h>

#include "core/prefetch.h"
#include "core/scratch.h"
#include "indexes/row_codec.h"

namespace faiss_ext {

/** Calls fn(begin, count, rows) for consecutive pieces of the ids, where `rows`
 * are their vectors one after the other. Those behind it come from memory
 * meanwhile, 16 kB of them: a vector that has to be waited for takes several
 * times as long as to compare it.
 *
 * @param codes  of the stored vectors, by id
 * @param ids    size n, each with a vector
 */
template <class Id, class F>
void for_gathered_rows(
        const RowCodec& codec,
        const uint8_t* codes,
        size_t n,
        const Id* ids,
        F&& fn) {
    const size_t d = codec.d, code_size = codec.code_size();
    if (n == 1 && codec.store == IndexFlatKernel::Store::f32) {
        fn(size_t(0),
           size_t(1),
           reinterpret_cast<const float*>(codes + size_t(ids[0]) * code_size));
        return;
    }
    const size_t piece = std::clamp<size_t>(4096 / d, 4, 8);
    const size_t ahead = std::clamp<size_t>(16384 / code_size, 4, 32);
    const Scratch rows(std::min(piece, n) * d);
    const auto code = [&](size_t i) {
        return codes + size_t(ids[i]) * code_size;
    };
    for (size_t i = 0; i < std::min(ahead, n); i++) {
        prefetch_row(code(i), code_size);
    }
    for (size_t begin = 0; begin < n; begin += piece) {
        const size_t count = std::min(piece, n - begin);
        for (size_t i = begin; i < begin + count; i++) {
            if (i + ahead < n) {
                prefetch_row(code(i + ahead), code_size);
            }
            codec.decode(1, code(i), rows.get() + (i - begin) * d);
        }
        fn(begin, count, rows.get());
    }
}

} // namespace faiss_ext
