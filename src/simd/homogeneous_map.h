// SPDX-License-Identifier: MIT
// The explicit feature map of homogeneous kernels, for one vector.

#pragma once

#include <cstddef>

namespace faiss_ext::simd {

struct HomogeneousMap {
    size_t order;            ///< m
    const float* amplitudes; ///< a_0 .. a_m
    float frequency;         ///< L
    float half_degree;       ///< r = v^half_degree
};

/** Maps each coordinate to 2 m + 1 components.
 *
 * With v = |x_k| scale and r = v^half_degree, signed as x_k, these are a_0 r,
 * then a_j r cos(j L log v) and a_j r sin(j L log v) for j = 1..m. Component i
 * of coordinate k goes to out[i * d + k]. If v < 1e-37, all are 0.
 *
 * The error of a component is at most 1e-6 (1 + j + |j L log v|) a_j r,
 * typically a tenth of it. For half_degree other than 1/2 add 1e-6 |log v| a_j
 * r.
 *
 * @param x    size d
 * @param out  size d * (2 m + 1)
 */
void homogeneous_map(
        const HomogeneousMap& map,
        size_t d,
        const float* x,
        float scale,
        float* out);

} // namespace faiss_ext::simd
