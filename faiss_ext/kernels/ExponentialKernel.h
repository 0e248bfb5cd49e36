// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/WrappedKernel.h>

namespace faiss_ext {

/** The monotone transform exp(s (k(x, y) - 1)) of another kernel k, which
 * should be normalised (Jiang, Que and Kulis 2015, section 4.2).
 *
 * Ranks stay the same, but the eigenvalues of kernel matrices decay more
 * slowly. String: `exponential(normalized(chi2),scale=5)`.
 */
struct ExponentialKernel : WrappedKernel {
    double scale = 0; ///< s

    ExponentialKernel() = default;

    /// @param kernel  is copied
    ExponentialKernel(const Kernel& kernel, double scale);

    void fields(FieldVisitor& v) const override;
    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    void self_values(size_t n, const float* x, size_t d, float* out)
            const override;
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;
    bool ignores_zeros() const override;
    ComponentNorm norm_of_unshared() const override;
    bool has_unit_vectors() const override;
    bool is_normalized() const override;
};

} // namespace faiss_ext
