// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/kernels/ShiftInvariantKernel.h>
#include <faiss_ext/maps/FeatureMap.h>
#include <faiss_ext/projections/ProjectionChoice.h>

namespace faiss_ext {

/** RFF: feature map of a Gaussian, Laplacian or Matern kernel by random Fourier
 * features. Any FAISS index can then search under the kernel. SIK makes bits of
 * the same features.
 *
 * With omega_i from the spectral density of the shift-invariant kernel K, i =
 * 1..dims / 2,
 *
 *     z(x) = sqrt(2 / dims) (cos(omega_1 . x), ..., sin(omega_1 . x), ...),
 *
 * first all cosines, then all sines. |z(x)| = 1, and E z(x) . z(y) = K(x - y).
 *
 * If the omega_i are independent, as they are with proj=dense and
 * proj=generated, then P(|z(x) . z(y) - K| > e) <= 2 exp(-dims e^2 / 4) for one
 * pair (Hoeffding's inequality for the mean of dims / 2 cosines).
 * proj=structured, the default for kernels of the L2 norm and up to 2^17
 * dimensions, takes them from random rotations, which is faster and more
 * accurate. proj=bilinear, for the Gaussian kernel, reads vectors as matrices
 * (BilinearProjection). It needs far less memory if vectors have thousands of
 * dimensions, but approximates another kernel: E z(x) . z(y) = prod_j (1 +
 * gamma s_j^2)^(-1/2), where s_j are the singular values of the matrix x - y.
 * The smaller they all are, the nearer this is to K.
 *
 *     auto index = index_factory(d, "RFF512(gaussian),IVF1024,PQ64");
 *     index->train(n, x); // sets the bandwidth
 *     index->add(n, x);
 *     index->search(nq, xq, 10, distances, labels);
 *
 * String, in front of any index: `RFF512(gaussian,gamma=0.02)`, where the
 * number is `dims`. If the bandwidth is left out, train sets it.
 *
 * Source: A. Rahimi and B. Recht, Random features for large-scale kernel
 * machines, NIPS 2007.
 */
struct RandomFourierMap : FeatureMap {
    ClonePtr<ShiftInvariantKernel> kernel;
    int dims = 0; ///< output dimension, even
    int64_t seed = 1234;
    ProjectionChoice proj;

    /// omega_i / 2 pi at the current bandwidth, dims / 2 rows. Drawn once the
    /// bandwidth is known.
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
    void map_sparse(const SparseVectors& x, float* xt) const override;
    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;

   protected:
    idx_t rows_per_block(idx_t n) const override;
    /// Sets the bandwidth and draws the frequencies.
    void learn(idx_t n, const float* x) override;
    bool learn_sparse(const SparseVectors& x) override;
    /// Throws also if a vector is too far from the origin
    /// (ShiftInvariantKernel::check_phases).
    void check_vectors(idx_t n, const float* x, size_t d, const char* where)
            const override;

   private:
    void draw();
    /// The projections that the kernel can have.
    std::vector<ProjectionChoice::Kind> kinds() const;
    /// Calls project(phases), and maps the phases of n vectors.
    template <class F>
    void map_phases(size_t n, float* xt, F&& project) const;
};

} // namespace faiss_ext
