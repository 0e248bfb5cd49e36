// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/** A kernel of vectors with components >= 0 that depends only on
 * sum_i min(x_i, y_i) and on the sums of the two vectors.
 *
 * It is from 0 to 1, and k(x, x) = 1, also for two rows of zeros.
 *
 * A negative component, a component above 1e37, and a sum of components above
 * max_self_value are errors. Values are accurate to 1e-4 relative for any
 * dimension, typically to 1e-6.
 */
struct OverlapKernel : Kernel {
    void self_values(size_t n, const float* x, size_t d, float* out)
            const override;
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;
    bool has_unit_vectors() const override {
        return true;
    }
    bool ignores_zeros() const override {
        return true;
    }
    ComponentNorm norm_of_unshared() const override {
        return ComponentNorm::l1;
    }
    std::optional<SharedSum> shared_sum(
            faiss::MetricType metric) const override;

   protected:
    /// The least part of the sum of both vectors that their overlap is, if the
    /// kernel value is k > 0.
    virtual double least_share(double k) const = 0;
};

} // namespace faiss_ext
