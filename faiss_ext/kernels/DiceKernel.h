// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/** The Dice kernel of vectors with components >= 0, which ecology calls
 * 1 - Bray-Curtis distance.
 *
 *     k(x, y) = 2 sum_i min(x_i, y_i) / sum_i (x_i + y_i)
 *
 * For vectors of zeros and ones it is the Dice or Sorensen coefficient of sets.
 * It is from 0 to 1, and k(x, x) = 1, also for two rows of zeros. It orders
 * pairs as the Jaccard kernel j does: k = 2 j / (1 + j). Its METRIC_L2 is
 * 2 - 2 k, twice faiss::METRIC_BrayCurtis.
 *
 * It is positive definite: min(x_i, y_i) is, and so is 1 / (a + b), the
 * integral of exp(-a t) exp(-b t) over t > 0.
 *
 * String: `dice`.
 *
 * A negative component, a component above 1e37, and a sum of components above
 * max_self_value are errors. Values are accurate to 1e-4 relative for any
 * dimension, typically to 1e-6.
 *
 * Source: L. R. Dice, Measures of the amount of ecologic association between
 * species, Ecology 1945; for counts, J. R. Bray and J. T. Curtis, An ordination
 * of the upland forest communities of southern Wisconsin, Ecological Monographs
 * 1957.
 */
struct DiceKernel : Kernel {
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
};

} // namespace faiss_ext
