// SPDX-License-Identifier: MIT
// Exact search among packed bits.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <faiss/impl/IDSelector.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/IndexBinaryFlatKernel.h>

#include "simd/top_k.h"

namespace faiss_ext {

/// The distance at a kernel value of 0.
constexpr int64_t largest_bit_distance = int64_t(1) << 30;

/// The largest number of bits of codes under a kernel.
constexpr int most_kernel_bits = 1 << 15;

/// 1 - k in units of 2^-30.
int32_t scaled_distance(const BitKernel& kernel, const BitCounts& n);

/// Throws unless the codes of indexes with these kernels can be merged.
void check_same_kernel(const BitKernel& kernel, const BitKernel& other);

/** Codes that are folded to 256 or 64 bits: the exclusive or of their parts of
 * 32 or 8 bytes. The Hamming distance of two folded codes is at most that of
 * the codes themselves, and takes less memory to compute.
 */
struct FoldedCodes {
    static constexpr size_t most_bytes = 32; ///< of a folded code

    /// Bytes of the folded code of a code of this size, or 0 if it is not
    /// folded.
    static constexpr size_t size_of(size_t code_size) {
        return code_size >= 64 ? most_bytes : code_size >= 24 ? 8 : 0;
    }

    /// Whether codes of this size are folded.
    static constexpr bool are_used(size_t code_size) {
        return size_of(code_size) > 0;
    }

    /// @param code_size  a multiple of 8, of codes that are folded
    static void fold(const void* code, size_t code_size, void* folded);
};

/** Finds the nearest codes of queries.
 *
 * @param k        nearest codes per query
 * @param largest  largest distance of interest
 * @param sel      may be null
 * @param result   result(query, hits) receives the hits of one query, as a TopK
 *                 from each slice; on any thread
 */
void scan_bits(
        const IndexBinaryFlatKernel& index,
        idx_t n,
        const uint8_t* x,
        idx_t k,
        int32_t largest,
        const faiss::IDSelector* sel,
        const std::function<void(idx_t, std::span<const TopK<int32_t>>)>&
                result);

} // namespace faiss_ext
