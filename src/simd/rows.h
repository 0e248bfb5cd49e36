// SPDX-License-Identifier: MIT
// Converts vectors of small components to float.

#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_ext::simd {

/// out[i] = factor times the half-precision number bits[i]
void halves_to_floats(size_t n, const uint16_t* bits, float factor, float* out);

/// out[i] = factor bytes[i]
void bytes_to_floats(size_t n, const uint8_t* bytes, float factor, float* out);
void bytes_to_floats(size_t n, const int8_t* bytes, float factor, float* out);

/** Squared L2 distances between x and rows at scattered places, without a copy
 * of the rows.
 *
 * Row i begins at rows + ids[i] * stride. It is a float, the factor, and d
 * bytes, by which the factor is multiplied.
 *
 * @param has_signs  whether bytes are int8_t instead of uint8_t
 */
void squared_l2_of_byte_rows(
        bool has_signs,
        size_t d,
        const float* x,
        const uint8_t* rows,
        size_t stride,
        size_t n,
        const int32_t* ids,
        float* distances);

} // namespace faiss_ext::simd
