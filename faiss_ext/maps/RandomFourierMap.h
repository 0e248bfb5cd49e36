// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/kernels/ShiftInvariantKernel.h>
#include <faiss_ext/maps/FeatureMap.h>
#include <faiss_ext/projections/ProjectionChoice.h>

namespace faiss_ext {

/** RFF: random Fourier features, the explicit feature map of a shift-invariant
 * kernel. For searching under a Gaussian, Laplacian or Matern kernel by any
 * FAISS index: what SIK makes bits of, as floats.
 *
 * With omega_i from the spectral density of the kernel K, i = 1..dims / 2,
 *
 *     z(x) = sqrt(2 / dims) (cos(omega_1 . x), ..., sin(omega_1 . x), ...),
 *
 * first all cosines, then all sines. |z(x)| = 1, and E z(x) . z(y) = K(x - y).
 * For one pair P(|z(x) . z(y) - K| > e) <= 2 exp(-dims e^2 / 4) where the
 * omega_i are independent, as with proj=dense (Hoeffding's inequality: the mean
 * of dims / 2 cosines). proj=structured, the default for kernels of the L2
 * norm, takes them from random rotations, which is faster and more accurate.
 *
 *     auto index = index_factory(d, "RFF512(gaussian),IVF1024,PQ64");
 *     index->train(n, x); // sets the bandwidth
 *     index->add(n, x);
 *     index->search(nq, xq, 10, distances, labels);
 *
 * Source: A. Rahimi and B. Recht, Random features for large-scale kernel
 * machines, NIPS 2007.
 *
 * String, in front of any index: `RFF512(gaussian,gamma=0.02)`, with the number
 * for `dims`. A bandwidth that is left out is set by train.
 */
struct RandomFourierMap : FeatureMap {
    ClonePtr<ShiftInvariantKernel> kernel;
    int dims = 0; ///< output dimension, even
    int64_t seed = 1234;
    ProjectionChoice proj;

    /// omega_i / 2 pi in the present bandwidth, dims / 2 rows; drawn when the
    /// bandwidth is known
    ClonePtr<Projection> projection;

    RandomFourierMap() = default;

    /// @param kernel  is copied
    RandomFourierMap(
            int d,
            int dims,
            const ShiftInvariantKernel& kernel,
            int64_t seed = 1234,
            const ProjectionChoice& proj = {});

    void map(size_t n, const float* x, float* xt) const override;
    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;

   protected:
    idx_t rows_per_block(idx_t n) const override;
    /// Sets the bandwidth, and draws.
    void learn(idx_t n, const float* x) override;
    /// Throws also for vectors too far from the origin
    /// (ShiftInvariantKernel::check_phases).
    void check_input(idx_t n, const float* x, const char* where) const override;

   private:
    void draw();
};

} // namespace faiss_ext
