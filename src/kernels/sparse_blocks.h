// SPDX-License-Identifier: MIT
// Blocks of kernel values of vectors that are all dense or all sparse.

#pragma once

#include <faiss_ext/core/VectorBatch.h>
#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/// Throws unless the kernel can compare sparse vectors (Kernel::ignores_zeros).
void check_ignores_zeros(const Kernel& kernel, const char* where);

/// Like Kernel::block. Both batches are of the same form; if they are sparse,
/// they are in canonical form, and the kernel must ignore zeros.
void block_of(
        const Kernel& kernel,
        const VectorBatch& x,
        const VectorBatch& y,
        float* out);

/// Does the same for Kernel::score_block.
void score_block_of(
        const Kernel& kernel,
        faiss::MetricType metric,
        const VectorBatch& x,
        const VectorBatch& y,
        float* out);

/// Does the same for Kernel::self_values.
void self_values_of(const Kernel& kernel, const VectorBatch& x, float* out);

} // namespace faiss_ext
