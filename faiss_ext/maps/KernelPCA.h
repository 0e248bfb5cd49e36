// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/core/SparseVectors.h>
#include <faiss_ext/core/VectorBatch.h>
#include <faiss_ext/kernels/Kernel.h>
#include <faiss_ext/maps/FeatureMap.h>
#include <faiss_ext/projections/Projection.h>

namespace faiss_ext {

/** KPCA: feature map of any kernel by kernel principal component analysis on
 * landmarks. Any FAISS index can then search under the kernel. KLSH draws its
 * hyperplanes in the same space.
 *
 * K is the kernel matrix of p landmarks, drawn from the training set. K' = HKH
 * with H = I - 11'/p is its centred form; with nystrom=1 it is K itself. Of the
 * eigendecomposition K' = U Theta U' the `rank` largest eigenvalues are kept. A
 * vector becomes
 *
 *     z(x) = Theta^(-1/2) U' (k(x, x_i) - c_i)_i,
 *
 * with c_i = mean_j k(x_i, x_j), or c = 0 with center=0. z(x) . z(y) is the
 * inner product of the two vectors in feature space, as seen from the
 * landmarks' mean and as far as the landmarks span it. L2 distances therefore
 * approximate |phi(x) - phi(y)|.
 *
 *     auto index = index_factory(d, "KPCA64(chi2,p=500),IVF256,Flat");
 *     index->train(n, x); // draws 500 landmarks
 *     index->add(n, x);
 *     index->search(nq, xq, 10, distances, labels);
 *
 * String, in front of any index: `KPCA64(chi2,p=500)`, where the number is
 * `rank`.
 *
 * Kernels that are not normalised are replaced by k(x, y) / sqrt(k(x, x) k(y,
 * y)), which is 0 if k(x, x) is below 1e-36; normalize=0 leaves them as they
 * are. scale=s replaces k by exp(s (k - 1)).
 *
 * `KPCA64(precomputed)` is for objects that are not vectors. It takes rows of
 * their kernel values against the landmarks in place of vectors, so d = p, and
 * train takes the p x p matrix of the landmarks. These values are not
 * normalised here.
 *
 * Training takes O(p^3) time and 28 p^2 bytes.
 *
 * Landmarks are kept sparse if the map is trained with sparse vectors
 * (train_sparse) and the kernel ignores zeros (Kernel::ignores_zeros), as all
 * kernels of this library but CallbackKernel do. Time and memory then depend on
 * the components that are not 0, so that d_in may be up to 2^31 - 1. Otherwise
 * they are dense rows. Both kinds take dense and sparse vectors, with the same
 * results for both, bit for bit. Sparse and dense training draw the same
 * landmarks, and their kernel values agree up to rounding. The bandwidth of a
 * kernel is chosen from up to 65,536 sparse vectors (Kernel::train_sparse).
 *
 * Source: B. Schoelkopf, A. Smola and K.-R. Mueller, Nonlinear component
 * analysis as a kernel eigenvalue problem, Neural Computation 1998. With
 * nystrom=1 and center=0 it is the Nystroem map of C. Williams and M. Seeger,
 * Using the Nystroem method to speed up kernel machines, NIPS 2000.
 */
struct KernelPCA : FeatureMap {
    ClonePtr<Kernel> kernel; ///< null if kernel values are precomputed
    int p = 300;             ///< landmarks
    int rank = 0;            ///< output dimensions
    double scale = 0;        ///< s; 0: no transform
    bool nystrom = false;
    bool center = true;
    bool normalize = true;
    /// Eigenvalues below tolerance (at least p 2^-52) times the largest one are
    /// dropped. Kernel values are computed in float.
    double tolerance = 1e-6;
    int64_t seed = 1234;

    /// True if a hash (KLSH) holds this map and replaces its last step. rank 0
    /// then keeps all eigenvectors, and rank and scale may be left to train.
    bool owned_by_hash = false;
    bool auto_rank = false, auto_scale = false;

    /// Size p * d_in; empty if landmarks are sparse, or values precomputed.
    std::vector<float> landmarks;
    SparseRows sparse_landmarks;     ///< p rows in canonical form, or none
    std::vector<float> eigenvalues;  ///< the kept ones, descending
    ClonePtr<Projection> components; ///< Theta^(-1/2) U', rank rows of p
    std::vector<float> offset;       ///< components * c, size rank

    KernelPCA();

    /// @param kernel  is copied; null for precomputed values, with d = p
    KernelPCA(int d, int rank, const Kernel* kernel);

    /// Sets the landmarks instead of sampling them. x has size n * d_in; p
    /// becomes n.
    void set_landmarks(idx_t n, const float* x);
#ifndef SWIG
    /// The same for sparse landmarks. Throws unless the kernel ignores zeros.
    void set_landmarks(const SparseVectors& x);
#endif

    void map(size_t n, const float* x, float* xt) const override;
    void map_sparse(const SparseVectors& x, float* xt) const override;
    void check_vectors(idx_t n, const float* x, size_t d, const char* where)
            const override;
    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;

    struct Steps; ///< for hashes that hold a map and replace its last step

   protected:
    idx_t rows_per_block(idx_t n) const override;
    void learn(idx_t n, const float* x) override;
    bool learn_sparse(const SparseVectors& x) override;

   private:
    /// Throws unless n landmarks can be set.
    void check_new_landmarks(idx_t n) const;
    void learn_from(const VectorBatch& x);
    void map_batch(const VectorBatch& x, float* xt) const;

    /// 1 / sqrt(k(x_i, x_i)), size p; empty if values are not normalised.
    std::vector<float> inverse_norms;
};

} // namespace faiss_ext
