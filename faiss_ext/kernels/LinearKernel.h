// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/** The inner product, k(x, y) = <x, y>. String: `linear`.
 *
 * Its METRIC_L2 is the squared Euclidean distance, computed from differences.
 * Values and distances are accurate to 1e-5 relative to the sum of the absolute
 * values of their terms for any dimension, typically to 1e-7.
 */
struct LinearKernel : Kernel {
    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    void distance_block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    /// Throws also if the squared norm of a vector is below least_self_value,
    /// where products lose digits. Zeros are accepted.
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;
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
