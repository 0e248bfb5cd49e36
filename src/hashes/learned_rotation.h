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

/** Trains the projection onto nbits hyperplanes for a CenteredHash::Rotation
 * other than `random`.
 *
 * Throws if the features have more than 8,192 components.
 */
std::unique_ptr<DenseProjection> learn_rotation(
        CenteredHash::Rotation rot,
        const FeatureSample& sample,
        int nbits,
        int64_t seed,
        bool verbose);

} // namespace faiss_ext
