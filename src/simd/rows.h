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

} // namespace faiss_ext::simd
