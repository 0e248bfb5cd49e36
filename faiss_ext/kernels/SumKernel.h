// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/CombinedKernel.h>

namespace faiss_ext {

/** The weighted sum of other kernels, sum_i w_i k_i(x, y). Its feature space
 * joins theirs, each scaled by sqrt(w_i), so distances are sums, too. String:
 * `sum(0.3*chi2,0.7*gaussian)`; a kernel without a weight has the weight 1.
 */
struct SumKernel : CombinedKernel {
    std::vector<double> weights; ///< of each kernel, > 0

    SumKernel() = default;

    /// Adds a kernel, which is copied.
    void add(const Kernel& kernel, double weight = 1);

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
    bool has_unit_vectors() const override;
    bool is_normalized() const override;

    static constexpr double min_weight = 1e-6, max_weight = 1e6;

   protected:
    void combine(size_t size, float* out, const Values& values) const override;

   private:
    bool weights_sum_to_1() const;
};

} // namespace faiss_ext
