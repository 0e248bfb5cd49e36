// SPDX-License-Identifier: MIT
// The steps of KernelPCA, for hashes that hold a map and replace its last step.

#pragma once

#include <vector>

#include <faiss_ext/maps/KernelPCA.h>

#include "maps/kernel_spectrum.h"

namespace faiss_ext {

struct KernelPCA::Steps {
    /// Sets p to the dimension if kernel values are precomputed.
    static void set_precomputed_p(KernelPCA& map);
    /// Shows the parameters.
    static void parameters(const KernelPCA& map, FieldVisitor& v);
    /// Shows the landmarks and the eigenvalues.
    static void learned_fields(const KernelPCA& map, FieldVisitor& v);
    /// Checks the fields that were read, and computes what files do not store.
    static void restore_landmarks(KernelPCA& map);

    /// The landmarks, if they are set.
    static VectorBatch landmarks(const KernelPCA& map);

    /** Whether landmarks can be learnt from these sparse vectors without dense
     * copies of them.
     *
     * Throws if they cannot, and dense copies of p landmarks take too much
     * memory.
     */
    static bool takes_sparse(const KernelPCA& map, const SparseVectors& x);

    /** Trains the kernel, draws the landmarks, if none are set, and returns
     * their matrix K, size p * p, without `scale` applied.
     *
     * Throws if there are fewer vectors than landmarks.
     */
    static std::vector<float> learn_landmarks(
            KernelPCA& map,
            const VectorBatch& x);

    /// Kernel values of n vectors against the landmarks, size n * p, without
    /// `scale` applied.
    static void kernel_rows(
            const KernelPCA& map,
            const VectorBatch& x,
            float* rows);

    /// A block of kernel values, size n * m, without `scale` applied. Both
    /// batches are of the same form.
    static void kernel_block(
            const KernelPCA& map,
            const VectorBatch& x,
            const VectorBatch& y,
            float* block);

    /// Replaces values k by exp(s (k - 1)). Does nothing if s = 0.
    static void transform(double s, size_t n, float* values);

    /** The eigenvalues and eigenvectors of K, after `scale` is applied.
     *
     * Throws if K is constant, not finite, not positive semi-definite (an
     * eigenvalue below -1e-3 of the largest one), or of a lower rank than asked
     * for.
     */
    static KernelSpectrum decompose(const KernelPCA& map, const float* K);

    /// Throws unless all values are finite, since kernels may overflow.
    static void check_values(
            const KernelPCA& map,
            size_t n,
            const float* values);

   private:
    static void train_kernel(KernelPCA& map, const VectorBatch& x);
    static void draw_landmarks(KernelPCA& map, const VectorBatch& x);
    static void check_landmarks(const KernelPCA& map);
    static void set_inverse_norms(KernelPCA& map);
    static void check_precomputed(
            const KernelPCA& map,
            idx_t n,
            const float* x);
};

} // namespace faiss_ext
