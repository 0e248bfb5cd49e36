// SPDX-License-Identifier: MIT
// Steps after a projection: folds phases to the period of a cosine and packs
// signs into codes.

#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_ext::simd {

/** Computes u[i * nbits + j] = threshold[j] - |r|, where r = v - round(v) and v
 * = u[...] + offset[j].
 *
 * With phases in turns and thresholds in [0, 1/2], the result is >= 0 exactly
 * if cos(2 pi v) >= cos(2 pi threshold[j]).
 *
 * @param offset     size nbits
 * @param threshold  size nbits
 * @param u          size n * nbits, changed in place
 */
void fold_phases(
        size_t n,
        size_t nbits,
        const float* offset,
        const float* threshold,
        float* u);

/** Packs signs: bit j mod 8 of byte j / 8 of a vector's code is 1 if its
 * margins[j] >= 0, as in faiss::fvecs2bitvecs.
 *
 * If nbits is not a multiple of 8, the remaining bits of the last byte are 0.
 *
 * @param margins  size n * nbits
 * @param codes    size n * ceil(nbits / 8)
 */
void pack_signs(size_t n, size_t nbits, const float* margins, uint8_t* codes);

} // namespace faiss_ext::simd
