// SPDX-License-Identifier: MIT
// Hyperplanes along rotated principal directions, trained on a sample.

#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/hashes/ProjectionHash.h>
#include <faiss_ext/projections/DenseProjection.h>

namespace faiss_ext {

/// A sample of feature vectors.
struct FeatureSample {
    idx_t n;
    int size;                ///< components of a vector
    std::vector<float> mean; ///< is subtracted
    double length;           ///< typical length of the vectors
    /// Computes features i0 to i0 + m, size m * size.
    std::function<void(idx_t i0, idx_t m, float* features)> compute;
};

/// Throws if there are more than 8,192 features.
void check_rotated_features(int num_features);

/** Trains the projection onto nbits hyperplanes for a CenteredHash::Rotation
 * other than `random`.
 *
 * Throws as check_rotated_features.
 */
std::unique_ptr<DenseProjection> learn_rotation(
        CenteredHash::Rotation rot,
        const FeatureSample& sample,
        int nbits,
        int64_t seed,
        bool verbose);

} // namespace faiss_ext
