// SPDX-License-Identifier: MIT
// Checks of what callers hand in.

#pragma once

#include <cfloat>
#include <cstddef>
#include <functional>
#include <string>

#include <faiss_ext/core/compat.h>

#include "core/errors.h"

namespace faiss_ext {

/// Throws unless n >= 0, and x is there if n > 0. Every matrix of n rows that a
/// caller hands in passes here. `where` names the function for the message.
void check_batch(idx_t n, const void* x, const char* where);

/// check_batch, and throws if a component is NaN or infinite, naming one such
/// vector and component.
void check_finite(idx_t n, const float* x, size_t d, const char* where);

/** Calls fn(), which checks some of the caller's vectors; a VectorError that it
 * throws has the caller's number(N) of its vector N.
 */
template <class F>
void rethrow_with_index(const std::function<idx_t(idx_t)>& number, F&& fn) {
    try {
        fn();
    } catch (VectorError& e) {
        e.set_vector(number(e.vector));
        throw;
    }
}

/// rethrow_with_index for a block of vectors that begins with number `first`.
template <class F>
void with_numbers_from(idx_t first, F&& fn) {
    rethrow_with_index([first](idx_t i) { return first + i; }, fn);
}

/// Whether none is NaN or infinite; on the calling thread.
bool all_finite(size_t n, const float* x);

/// check_finite, and throws if a component is negative, or above 1e37, where
/// sums of two may overflow.
void check_histograms(idx_t n, const float* x, size_t d, const char* where);

/** Throws if the components of a row of numbers >= 0 (or of their magnitudes)
 * have a sum that is positive, but below d times 1e-30: additive kernels lose
 * what is below 1e-37 of a component, which changes them by less than 1e-6 of
 * other sums.
 */
void check_sums(idx_t n, const float* x, size_t d, const char* where);

/// check_finite, and check(i, row) of each vector, unless no component is above
/// `safe` in magnitude.
void check_rows_exceeding(
        float safe,
        idx_t n,
        const float* x,
        size_t d,
        const char* where,
        const std::function<void(idx_t, const float*)>& check);

/// check_finite, and throws if a squared L2 norm is above max_squared_norm.
void check_norms(idx_t n, const float* x, size_t d, const char* where);

/// Up to it, squared distances and inner products are in the range of float.
constexpr double max_squared_norm = FLT_MAX / 8;

/// Throws unless ids i0 to i0 + ni - 1 are among ntotal ones.
void check_ids(idx_t i0, idx_t ni, idx_t ntotal, const char* where);

/// Throws unless an index that says that it has ntotal vectors holds as many
/// bytes: fields may have been set by hand.
void check_stored(
        idx_t ntotal,
        size_t bytes,
        size_t code_size,
        const char* where);

/// A metric in words: "METRIC_L2".
std::string metric_name(faiss::MetricType metric);

/// Throws unless the metric is L2 or inner product.
void check_metric(faiss::MetricType metric);

/// check_finite, and throws if a component is beyond +-1e37.
void check_signed_histograms(
        idx_t n,
        const float* x,
        size_t d,
        const char* where);

} // namespace faiss_ext
