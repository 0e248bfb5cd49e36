// SPDX-License-Identifier: MIT
// Scores between the vectors of a graph's vertices.

#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_ext {

/** Computes scores on the calling thread, without checks. Smaller is nearer.
 *
 * Vectors are given as d() floats. Codes are, too: their bytes fill the floats.
 */
struct VertexScores {
    virtual ~VertexScores() = default;

    virtual size_t d() const = 0;

    /// Writes the vector of a vertex.
    virtual void decode(int32_t vertex, float* x) const = 0;

    virtual void prefetch(int32_t vertex) const = 0;

    /// Computes the scores of all pairs. x: size n * d; y: size m * d; scores:
    /// size n * m
    virtual void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            float* scores) const = 0;

    /// Scores a vector against the vectors of these vertices.
    virtual void operator()(
            const float* x,
            size_t n,
            const int32_t* vertices,
            float* scores) const = 0;
};

} // namespace faiss_ext
