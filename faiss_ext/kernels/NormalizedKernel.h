// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/WrappedKernel.h>

namespace faiss_ext {

/** k(x, y) / sqrt(k(x, x) k(y, y)) of another kernel k; 0 where k(x, x) or
 * k(y, y) is 0. Both must be within the range of float. String:
 * `normalized(chi2)`.
 */
struct NormalizedKernel : WrappedKernel {
    NormalizedKernel() = default;

    /// @param kernel  is copied
    explicit NormalizedKernel(const Kernel& kernel) : WrappedKernel(kernel) {}

    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    void self_values(size_t n, const float* x, size_t d, float* out)
            const override;
};

/** The cosine of the angle between x and y, whatever their lengths; 0 where one
 * is 0. String: `cosine`.
 *
 * Vectors whose squared length is beyond the range of float, or so small that
 * it would lose digits, are scaled by a power of two first.
 */
struct CosineKernel : Kernel {
    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    void self_values(size_t n, const float* x, size_t d, float* out)
            const override;
    /// All components must be finite.
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;
};

} // namespace faiss_ext
