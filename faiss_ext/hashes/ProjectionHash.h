// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/projections/ProjectionChoice.h>

namespace faiss_ext {

/** A hash that projects features of the vector and compares the projections
 * with thresholds. All schemes of this library have this form, except
 * SpectralHash and ConsistentSamplingHash.
 *
 * Margin j is (A phi(x))_j - threshold_j, unless finish() computes another one.
 */
struct ProjectionHash : KernelHash {
    ClonePtr<Projection> projection; ///< A, from num_features() to nbits
    std::vector<float> threshold;    ///< size nbits; empty for none

    using KernelHash::KernelHash;
    ProjectionHash() = default;

    void margins(size_t n, const float* x, float* margins) const override;
    void map_sparse(const SparseVectors& x, float* margins) const override;

   protected:
    /// Dimension of phi(x). By default phi(x) = x.
    virtual int num_features() const;

    /** Computes phi of a few vectors, size n * num_features().
     *
     * Returns x itself, as by default, or `space`, filled, which has n *
     * features_space() floats.
     */
    virtual const float* features(size_t n, const float* x, float* space) const;
    virtual size_t features_space() const;

    /** Computes phi of sparse vectors as sparse vectors.
     *
     * Returns x itself, or sets `space` and returns its vectors. By default it
     * returns none, and hashes make dense copies. Columns must ascend, and phi
     * must have the same components as features().
     */
    virtual std::optional<SparseVectors> sparse_features(
            const SparseVectors& x,
            SparseRows& space) const;

    /// Computes the margins of n vectors, a few at a time. compute(begin, end,
    /// space) returns their phi, as features() does.
    void project(
            size_t n,
            float* margins,
            const std::function<const float*(size_t, size_t, float*)>& compute)
            const;

    /// Turns projections into margins, in place.
    virtual void finish(size_t n, float* margins) const;

    /// Shows the projection and the thresholds.
    void learned_fields(FieldVisitor& v, size_t num_thresholds) const;

    /// Throws unless the projection, if there must be one, has the right size.
    void check_projection(bool is_drawn) const;
};

/// Hyperplanes in a feature space, through the origin or through the mean of
/// the training vectors: bit = [w . phi(x) >= w . mu].
struct CenteredHash : ProjectionHash {
    /** How the directions w are chosen.
     *
     * - random: as `proj` draws them, independent of the data
     * - pca: projects phi(x) - mu onto its first r = min(nbits, dimension of
     *   phi) principal directions, then rotates the result at random
     * - itq: as pca, with a learnt rotation R that brings the projections v of
     *   the sample close to their signs. It starts from the rotation of pca and
     *   does 50 rounds of iterative quantisation: signs of R v, then the best R
     *   for these signs (Y. Gong and S. Lazebnik, Iterative quantization: a
     *   Procrustean approach to learning binary codes, CVPR 2011).
     *
     * If there are more bits than dimensions, each group of r bits has its own
     * rotation. Directions are learnt from up to 16,384 vectors, with features
     * of up to 8,192 dimensions, in memory of 32 bytes times the square of the
     * dimension. Rotations are learnt from up to 4,096 of these vectors, or 10
     * r if that is more, in time that grows like r^3.
     */
    enum class Rotation { random, pca, itq };
    Rotation rot = Rotation::random;

    bool center = false; ///< pca and itq are always centred
    int64_t seed = 1234;
    ProjectionChoice proj; ///< how w is drawn, if rot is random

    /// |mu|^2 / mean |phi(x)|^2, the mean kernel value of two training vectors;
    /// 0 without centring.
    double mean_value = 0;

    using ProjectionHash::ProjectionHash;

    /// Expected Hamming distance by the angle between phi(x) and phi(y). Exact
    /// for Gaussian directions; for center, rot or proj=bilinear see
    /// KernelHash.
    double expected_hamming_of_pair(const float* x, const float* y)
            const override;

    void init() override;
    void restore() override;

   protected:
    /// The kinds that `proj` can have; the first one is the default.
    virtual std::vector<ProjectionChoice::Kind> projection_kinds() const;

    /// Shows rot, center, seed and proj, and then what was drawn and learnt.
    void centered_fields(FieldVisitor& v) const;

    /// Learns the mean, from at most 65,536 vectors, and the projection, unless
    /// the projection is random.
    void learn(idx_t n, const float* x) override;
    /// Does the same without dense copies, unless rot is learnt.
    bool learn_sparse(const SparseVectors& x) override;
    bool has_independent_bits() const override;
    bool is_centered() const {
        return center || rot != Rotation::random;
    }

   private:
    /// Returns the mean, and sets mean_square to the mean of |phi(x)|^2.
    std::vector<float> learn_mean(
            const std::vector<idx_t>& ids,
            const float* x,
            double& mean_square);
};

} // namespace faiss_ext
