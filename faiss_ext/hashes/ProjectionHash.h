// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/projections/ProjectionChoice.h>

namespace faiss_ext {

/** Features of a vector, a random projection of them, and thresholds: what all
 * schemes of this library but SpectralHash are.
 *
 * Margin j is (A phi(x))_j - threshold_j, unless finish() is another.
 */
struct ProjectionHash : KernelHash {
    ClonePtr<Projection> projection; ///< A, from num_features() to nbits
    std::vector<float> threshold;    ///< size nbits; empty for none

    using KernelHash::KernelHash;
    ProjectionHash() = default;

    void margins(size_t n, const float* x, float* margins) const override;

   protected:
    /// Dimension of phi(x); by default phi(x) = x.
    virtual int num_features() const;

    /** phi of a few vectors, size n * num_features(): either x itself, as by
     * default, or `space`, of n * features_space() floats, filled.
     */
    virtual const float* features(size_t n, const float* x, float* space) const;
    virtual size_t features_space() const;

    /// Turns projections into margins, in place.
    virtual void finish(size_t n, float* margins) const;

    /// Shows the projection and the thresholds.
    void learned_fields(FieldVisitor& v, size_t num_thresholds) const;

    /// Throws unless the projection, if there must be one, fits.
    void check_projection(bool is_drawn) const;
};

/** Hyperplanes through the origin or through the mean of the training vectors,
 * in a feature space: bit = [w . phi(x) >= w . mu].
 */
struct CenteredHash : ProjectionHash {
    /** How the directions w are chosen.
     *
     * - random: as `proj` draws them, whatever the data
     * - pca: phi(x) - mu is projected onto its first r = min(nbits, dimension
     *   of phi) principal directions, and what that gives is rotated at random
     * - itq: the same with a rotation R that brings the projections v of the
     *   sample close to their signs, by 50 rounds of iterative quantisation (Y.
     *   Gong and S. Lazebnik, Iterative quantization: a Procrustean approach to
     *   learning binary codes, CVPR 2011): signs of R v, then the R that is
     *   best for them. The rotation of pca is where it starts.
     *
     * Where there are more bits than dimensions, every r bits have another
     * rotation. Directions are learnt from up to 16,384 vectors, of features of
     * up to 8,192 dimensions, in memory of 32 bytes times the square of the
     * dimension; rotations from up to 4,096 of them, or 10 r if that is more,
     * in time that grows like r^3.
     */
    enum class Rotation { random, pca, itq };
    Rotation rot = Rotation::random;

    bool center = false; ///< pca and itq are always centred
    int64_t seed = 1234;
    ProjectionChoice proj; ///< of w, if random

    /// |mu|^2 / mean |phi(x)|^2, the mean kernel value of two training vectors;
    /// 0 if nothing is centred
    double mean_value = 0;

    using ProjectionHash::ProjectionHash;

    /// By the angle between phi(x) and phi(y), exact where directions are
    /// Gaussian; with center, rot or proj=bilinear as KernelHash says.
    double expected_hamming_of_pair(const float* x, const float* y)
            const override;

    void init() override;
    void restore() override;

   protected:
    /// Shows rot, center, seed and proj, and then what was drawn and learned.
    void centered_fields(
            FieldVisitor& v,
            const std::vector<ProjectionChoice::Kind>& kinds) const;

    /// Learns the mean, from at most 65,536 vectors, and the projection, unless
    /// that is random.
    void learn(idx_t n, const float* x) override;
    bool has_independent_bits() const override;

   private:
    bool is_centered() const {
        return center || rot != Rotation::random;
    }
    /// Returns the mean; mean_square becomes that of |phi(x)|.
    std::vector<float> learn_mean(
            const std::vector<idx_t>& ids,
            const float* x,
            double& mean_square);
};

} // namespace faiss_ext
