#pragma once

#include <vector>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/projections/ProjectionChoice.h>

namespace faiss_ext {

/** Features of a vector, a random projection of them, and thresholds: what all
 * schemes of this library are.
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
    void learned_fields(FieldVisitor& v, size_t num_thresholds);

    /// Throws unless the projection, if there must be one, fits.
    void check_projection(bool is_drawn) const;
};

/** Hyperplanes through the origin or through the mean of the training vectors,
 * in a feature space: bit = [w . phi(x) >= w . mu].
 */
struct CenteredHash : ProjectionHash {
    bool center = false;
    int64_t seed = 1234;
    ProjectionChoice proj; ///< of w

    /// |mu|^2 / mean |phi(x)|^2, the mean kernel value of two training vectors;
    /// 0 if center=0
    double mean_value = 0;

    using ProjectionHash::ProjectionHash;

    void init() override;
    void restore() override;

   protected:
    /// Shows center, seed and proj, and then what was drawn and learned.
    void centered_fields(
            FieldVisitor& v,
            const std::vector<ProjectionChoice::Kind>& kinds);

    /// Learns the mean (center=1), from at most 65,536 vectors.
    void learn(idx_t n, const float* x) override;
};

} // namespace faiss_ext
