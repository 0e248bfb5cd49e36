// Functions of single values, in place.

#pragma once

#include <cstddef>

namespace faiss_ext::simd {

/// v[i] = exp(a v[i] + b), with a relative error of about 1e-7 (1 + |a v[i]| +
/// |b|); below -87 the exponential is 0
void exp_affine(size_t n, float a, float b, float* v);

/// v[i] = v[i] (a b[i])
void multiply(size_t n, float a, const float* b, float* v);

} // namespace faiss_ext::simd
