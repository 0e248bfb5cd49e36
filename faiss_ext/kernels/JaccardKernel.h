// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/OverlapKernel.h>

namespace faiss_ext {

/** The generalised Jaccard kernel of vectors with components >= 0, also known
 * as the min-max kernel or Ruzicka similarity.
 *
 *     k(x, y) = sum_i min(x_i, y_i) / sum_i max(x_i, y_i)
 *
 * For vectors of zeros and ones it is the Tanimoto or Jaccard coefficient of
 * sets. It is from 0 to 1, and k(x, x) = 1, also for two rows of zeros. Its
 * METRIC_L2 is 2 - 2 k, twice the Jaccard distance, computed without
 * cancellation for close vectors. faiss::METRIC_Jaccard is k itself, but NaN if
 * both vectors are zero.
 *
 *     auto index = index_factory(
 *             d, "KFlat(jaccard)", faiss::METRIC_INNER_PRODUCT);
 *
 * String: `jaccard`.
 *
 * Source: S. Ioffe, Improved consistent sampling, weighted minhash and L1
 * sketching, ICDM 2010, equation 1; positive definite: Bouchard, Jousselme and
 * Dore, A proof for the positive definiteness of the Jaccard index matrix,
 * International Journal of Approximate Reasoning 2013.
 */
struct JaccardKernel : OverlapKernel {
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
        return k / (1 + k);
    }
};

} // namespace faiss_ext
