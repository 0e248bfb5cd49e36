// SPDX-License-Identifier: MIT
// Products of bytes with a fixed matrix, packed for instructions that add up
// four products at once.

#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_ext::simd {

/// Number of matrix rows in a panel.
constexpr size_t byte_panel_width = 16;

/// Most components of a row; sums of more products could overflow.
constexpr size_t most_byte_columns = 1 << 16;

/// Whether the instruction set in use multiplies bytes faster than floats.
bool has_byte_products();

/// Returns the largest |x_k|.
float largest_magnitude(size_t d, const float* x);

/** Rounds components to whole multiples of `scale`, which are bytes.
 *
 * @param scale          largest_magnitude / 127 or more, at least 1e-33; 0: all
 *                       multiples are 0
 * @param square         |x|^2
 * @param square_of_lost |x - scale * bytes|^2
 */
void round_to_bytes(
        size_t d,
        const float* x,
        float scale,
        int8_t* bytes,
        float& square,
        float& square_of_lost);

/// Returns d, rounded up to whole groups of four components.
constexpr size_t padded_bytes(size_t d) {
    return (d + 3) / 4 * 4;
}

/// Component k of row j of a matrix with d columns, plus 128, is at
/// packed[byte_panel_index(d, j, k)]. All others are 128.
inline size_t byte_panel_index(size_t d, size_t j, size_t k) {
    return (j / byte_panel_width * padded_bytes(d) + k / 4 * 4) *
            byte_panel_width +
            j % byte_panel_width * 4 + k % 4;
}

inline size_t byte_panels_size(size_t d, size_t rows) {
    return (rows + byte_panel_width - 1) / byte_panel_width * byte_panel_width *
            padded_bytes(d);
}

/** Computes y[i * m + j] = plus[j] - factors[i] * <x_i, a_j> on the calling
 * thread. Products are exact until they are rounded to float.
 *
 * @param x       from -127 to 127; n rows of padded_bytes(d), padded with zeros
 * @param packed  m rows of d components from -127 to 127, in panels
 * @param plus    size m, and readable up to a whole number of panels
 * @param y       size n * m
 */
void byte_products(
        size_t n,
        const int8_t* x,
        const float* factors,
        size_t m,
        const uint8_t* packed,
        size_t d,
        const float* plus,
        float* y);

} // namespace faiss_ext::simd
