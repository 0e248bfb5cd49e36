// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/OverlapKernel.h>

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
 * Source: L. R. Dice, Measures of the amount of ecologic association between
 * species, Ecology 1945; for counts, J. R. Bray and J. T. Curtis, An ordination
 * of the upland forest communities of southern Wisconsin, Ecological Monographs
 * 1957.
 */
struct DiceKernel : OverlapKernel {
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

   protected:
    double least_share(double k) const override {
        return k / 2;
    }
};

} // namespace faiss_ext
