// SPDX-License-Identifier: MIT
// Packed bits as vectors of zeros and ones.

#pragma once

#include <cstdint>

#include <faiss_ext/core/SparseVectors.h>

namespace faiss_ext {

/** The vectors of packed bits, as sparse vectors of ones.
 *
 * Bit j is the bit 0x80 >> j % 8 of byte j / 8, as for numpy.packbits. Bits
 * behind the first d must be 0.
 *
 * @param codes  size n * ceil(d / 8)
 */
SparseRows rows_of_bits(idx_t n, int d, const uint8_t* codes);

} // namespace faiss_ext
