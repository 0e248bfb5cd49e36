// SPDX-License-Identifier: MIT
// Elementwise functions, in place.

#pragma once

#include <cstddef>

namespace faiss_ext::simd {

/// Computes v[i] = exp(a v[i] + b), with a relative error of about 1e-7 (1 + |a
/// v[i]| + |b|). The exponential of less than -87 is 0.
void exp_affine(size_t n, float a, float b, float* v);

/// Computes v[i] = b (exp(a v[i]) - 1) for a v[i] <= 0, with a relative error
/// of about 3e-7 (1 + |a v[i]|).
void expm1_scaled(size_t n, float a, float b, float* v);

/// Computes v[i] = v[i] (a b[i]).
void multiply(size_t n, float a, const float* b, float* v);

/** Computes cos[i] = a cos(2 pi u[i]) and sin[i] = a sin(2 pi u[i]). If u[i] is
 * exact, the error is 2e-7 a. u may be cos or sin.
 */
void cos_sin_turns(size_t n, float a, const float* u, float* cos, float* sin);

/// Returns the largest absolute value, or 0 if n = 0.
float max_abs(size_t n, const float* v);

} // namespace faiss_ext::simd
