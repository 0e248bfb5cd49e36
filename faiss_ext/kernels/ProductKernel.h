// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/CombinedKernel.h>

namespace faiss_ext {

/** The product of other kernels, k_1(x, y) k_2(x, y) ..., which is large only
 * if all of them are. String: `product(chi2,gaussian)`.
 *
 * Distances are computed from the distances of the kernels, without
 * cancellation between close vectors. Values below least_self_value lose
 * digits, so if k(x, x) is below it, x must be 0.
 */
struct ProductKernel : CombinedKernel {
    ProductKernel() = default;

    /// Adds a factor, which is copied.
    void add(const Kernel& kernel);

    void fields(FieldVisitor& v) const override;
    void distance_block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;

   protected:
    void combine(size_t size, float* out, const Values& values) const override;
};

} // namespace faiss_ext
