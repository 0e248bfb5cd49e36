// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/** A kernel that falls from k(x, x) = 1 with a distance between x and y, which
 * is its score for both metrics, and whose one scale, gamma, train() can choose
 * from the data.
 */
struct BandwidthKernel : Kernel {
    /// Bandwidth; 0 while it waits for train().
    double gamma = 0;

    /// Whether train() sets gamma. The string of a trained kernel has the
    /// bandwidth that was chosen, and not the parameters of the choice.
    bool auto_gamma = true;

    void fields(FieldVisitor& v) const override;
    void init() override;

    /// Sets gamma, if it was left to the data.
    void train(idx_t n, const float* x, size_t d) override;

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
    void score_block(
            faiss::MetricType metric,
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override = 0;
    void values_of_scores(faiss::MetricType metric, size_t n, float* scores)
            const override = 0;
    void self_values(size_t n, const float* x, size_t d, float* out)
            const override;

    static constexpr double min_gamma = 1e-200, max_gamma = 1e200;

   protected:
    BandwidthKernel();

    /// @param gamma  from min_gamma to max_gamma, or 0 to have train() set it
    explicit BandwidthKernel(double gamma);

    /// The bandwidth for these vectors, which have been checked. train() throws
    /// if it is out of range.
    virtual double choose_gamma(idx_t n, const float* x, size_t d) const = 0;

    /// Whether a bandwidth that is out of range comes from distances of about 0
    /// to a neighbor whose rank is a parameter.
    virtual bool nearest_are_equal(double /*chosen*/) const {
        return false;
    }
};

} // namespace faiss_ext
