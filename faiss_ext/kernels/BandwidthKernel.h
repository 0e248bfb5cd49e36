// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/core/VectorBatch.h>
#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/// A kernel that falls from k(x, x) = 1 as a distance between x and y grows.
/// That distance is its score for both metrics. The kernel has a single scale,
/// gamma, which train() can choose from the data.
struct BandwidthKernel : Kernel {
    /// Bandwidth; 0 until train() sets it.
    double gamma = 0;

    /// Whether train() sets gamma. The string of a trained kernel has the
    /// chosen bandwidth, without the parameters of the choice.
    bool auto_gamma = true;

    void fields(FieldVisitor& v) const override;
    void init() override;

    /// Chooses gamma from the data, if it was left out.
    void train(idx_t n, const float* x, size_t d) override;
    void train_sparse(const SparseVectors& x) override;

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

    /// @param gamma  from min_gamma to max_gamma, or 0 to let train() set it
    explicit BandwidthKernel(double gamma);

    /// Chooses the bandwidth for these vectors, which have been checked; sparse
    /// ones are in canonical form. train() throws if it is out of range.
    virtual double choose_gamma(const VectorBatch& x) const = 0;

    /// True if a bandwidth is out of range because the distances to a
    /// neighbour, whose rank is a parameter, are about 0.
    virtual bool nearest_are_equal(double /*chosen*/) const {
        return false;
    }

   private:
    void learn_gamma(const VectorBatch& x);
};

} // namespace faiss_ext
