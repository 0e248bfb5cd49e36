// SPDX-License-Identifier: MIT
// Functions of single values, in place.

#pragma once

#include <cstddef>

namespace faiss_ext::simd {

/// v[i] = exp(a v[i] + b), with a relative error of about 1e-7 (1 + |a v[i]| +
/// |b|); below -87 the exponential is 0
void exp_affine(size_t n, float a, float b, float* v);

/// v[i] = b (exp(a v[i]) - 1), with a relative error of about 3e-7 (1 + |a
/// v[i]|), for a v[i] <= 0
void expm1_scaled(size_t n, float a, float b, float* v);

/// v[i] = v[i] (a b[i])
void multiply(size_t n, float a, const float* b, float* v);

/** cos[i] = a cos(2 pi u[i]) and sin[i] = a sin(2 pi u[i]), to 2e-7 a where
 * u[i] is exact; u may be cos or sin.
 */
void cos_sin_turns(size_t n, float a, const float* u, float* cos, float* sin);

/// The largest absolute value, 0 for n = 0.
float max_abs(size_t n, const float* v);

} // namespace faiss_ext::simd
