// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/IndexBinaryHNSWSIMD.h>
#include <faiss_ext/kernels/BitKernel.h>

namespace faiss_ext {

/** Graph search under a similarity of packed bits: an IndexBinaryHNSWSIMD with
 * the distances of IndexBinaryFlatKernel.
 *
 *     auto index = index_binary_factory(2048, "BHNSW32,BKFlat(jaccard)");
 *
 * String: `BHNSW32,BKFlat(<kernel>)`. The kernel must be symmetric, with
 * k(x, x) = 1. The number of bits need not be a multiple of 8; the storage has
 * the bits of whole bytes.
 */
struct IndexBinaryHNSWKernel : IndexBinaryHNSWSIMD {
    ClonePtr<BitKernel> kernel;

    /**
     * @param d       number of bits, up to 32,768
     * @param kernel  is copied
     * @param M       links of a vertex, at least 2
     */
    IndexBinaryHNSWKernel(int d, const BitKernel& kernel, int M = 32);
    IndexBinaryHNSWKernel() = default;

    /// Throws unless the kernel is there and fit for a graph.
    void check_kernel() const;

   protected:
    std::unique_ptr<VertexScores> scores() const override;
    int32_t distance(const uint8_t* query, int32_t vertex, float score)
            const override;
    float largest_score(int radius) const override;
    void scan(
            const faiss::IDSelector& sel,
            idx_t n,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            idx_t* vertices) const override;
    void check_same_distance(const IndexBinaryHNSWSIMD& other) const override;
};

} // namespace faiss_ext
