// SPDX-License-Identifier: MIT
// The choice of KLSH's rank and scale.

#pragma once

#include <faiss_ext/hashes/KernelizedLSH.h>

namespace faiss_ext {

/** Sets the rank and the scale that are left open to those of the best recall
 * on a held-out part of the training set.
 *
 * @param K  matrix of the landmarks, without the transform
 * @param t  landmarks in a clt draw
 */
void choose_parameters(
        KernelizedLSH& hash,
        idx_t n,
        const float* x,
        const float* K,
        int t);

} // namespace faiss_ext
