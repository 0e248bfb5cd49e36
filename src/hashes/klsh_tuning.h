// SPDX-License-Identifier: MIT
// Chooses the rank and the scale of KLSH.

#pragma once

#include <faiss_ext/hashes/KernelizedLSH.h>

namespace faiss_ext {

/** Chooses the rank and the scale, if they are `auto`, for the best recall on a
 * held-out part of the training set.
 *
 * @param x  training vectors
 * @param K  kernel matrix of the landmarks, without the transform
 * @param t  landmarks in a clt draw
 */
void choose_parameters(
        KernelizedLSH& hash,
        const VectorBatch& x,
        const float* K,
        int t);

} // namespace faiss_ext
