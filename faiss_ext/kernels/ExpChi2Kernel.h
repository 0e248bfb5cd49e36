// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/BandwidthKernel.h>

namespace faiss_ext {

/** The exponential chi2 kernel for histograms: k(x, y) = exp(-1/gamma sum (x -
 * y)^2 / (x + y)), for components >= 0.
 *
 * It is the generalised Gaussian kernel on the chi-square distance. String:
 * `expchi2(gamma=2)`. If gamma is left out, or with `gamma=auto`, train sets it
 * to the mean chi-square distance of two vectors (in a sample of 1,000).
 */
struct ExpChi2Kernel : BandwidthKernel {
    /// @param gamma  > 0, or 0 to let train() set it
    explicit ExpChi2Kernel(double gamma = 0);

    /// The scores are chi-square distances.
    void score_block(
            faiss::MetricType metric,
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    void values_of_scores(faiss::MetricType metric, size_t n, float* scores)
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
    double choose_gamma(const VectorBatch& x) const override;
};

} // namespace faiss_ext
