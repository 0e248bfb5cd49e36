// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/WrappedKernel.h>

namespace faiss_ext {

/** Normalises another kernel k: k(x, y) / sqrt(k(x, x) k(y, y)). String:
 * `normalized(chi2)`.
 *
 * The value is 0 if k(x, x) or k(y, y) is 0. Both must be within the range of
 * float.
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
    bool ignores_zeros() const override;
    ComponentNorm norm_of_unshared() const override;
    bool has_unit_vectors() const override;
    bool is_normalized() const override {
        return true;
    }
    std::optional<SharedSum> shared_sum(
            faiss::MetricType metric) const override;
};

/** The cosine of the angle between x and y, for vectors of any length. It is 0
 * if one of them is 0. String: `cosine`.
 *
 * Vectors whose squared length exceeds the range of float, or is so small that
 * it would lose digits, are scaled by a power of two first. Sparse vectors
 * whose length exceeds the range of float are an error. A sparse vector that is
 * shorter than 1e-38 loses digits.
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
    /// Throws unless all components are finite.
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;
    bool is_normalized() const override {
        return true;
    }
    bool ignores_zeros() const override {
        return true;
    }
    ComponentNorm norm_of_unshared() const override {
        return ComponentNorm::l2;
    }
    std::optional<SharedSum> shared_sum(
            faiss::MetricType metric) const override;
};

} // namespace faiss_ext
