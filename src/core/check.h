// SPDX-License-Identifier: MIT
// Checks of the caller's arguments.

#pragma once

#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <faiss_ext/core/compat.h>

#include "core/errors.h"

namespace faiss_ext {

/// Throws unless n >= 0, and x is not null if n > 0. Every matrix of n rows
/// from a caller is checked here. `where` names the function in the message.
void check_batch(idx_t n, const void* x, const char* where);

/// Like check_batch, and throws if a component is NaN or infinite. The message
/// names one such vector and component.
void check_finite(idx_t n, const float* x, size_t d, const char* where);

/** Calls fn(), which checks some of the caller's vectors. If it throws a
 * VectorError about vector N, throws a copy of it about number(N), which is the
 * caller's number of that vector. The first error does not change, since other
 * threads may hold it.
 */
template <class F>
void rethrow_with_index(const std::function<idx_t(idx_t)>& number, F&& fn) {
    try {
        fn();
    } catch (const VectorError& e) {
        throw e.with_vector(number(e.vector));
    }
}

/// Like rethrow_with_index, for a block of vectors that starts at number
/// `first`.
template <class F>
void with_numbers_from(idx_t first, F&& fn) {
    rethrow_with_index([first](idx_t i) { return first + i; }, fn);
}

/// Returns whether no component is NaN or infinite; on the calling thread.
bool all_finite(size_t n, const float* x);

/// While it lives, errors that this thread finds call component k of a vector
/// numbers[k].
struct ComponentNumbers {
    explicit ComponentNumbers(const int32_t* numbers);
    ~ComponentNumbers();
    ComponentNumbers(const ComponentNumbers&) = delete;
    ComponentNumbers& operator=(const ComponentNumbers&) = delete;
};

/// Like check_finite, and throws if a component is negative, or above
/// 1e37. The sum of two larger components may overflow.
void check_histograms(idx_t n, const float* x, size_t d, const char* where);

/** Throws if the components of a row (or their magnitudes) have a positive sum
 * below d times 1e-30.
 *
 * Additive kernels lose the part of a component that is below 1e-37. With
 * larger sums this changes them by less than 1e-6.
 */
void check_sums(idx_t n, const float* x, size_t d, const char* where);

/// Like check_finite. Then calls check(i, row) for each vector, unless all
/// components are at most `safe` in magnitude.
void check_rows_exceeding(
        float safe,
        idx_t n,
        const float* x,
        size_t d,
        const char* where,
        const std::function<void(idx_t, const float*)>& check);

/// Up to this norm, squared distances and inner products are in the range of
/// float.
constexpr double max_squared_norm = FLT_MAX / 8;

/// Like check_finite, and throws if a squared L2 norm exceeds max_squared_norm.
void check_norms(idx_t n, const float* x, size_t d, const char* where);

/// Like check_norms, with another limit.
void check_norms_up_to(
        double most,
        idx_t n,
        const float* x,
        size_t d,
        const char* where);

/// Throws unless ids i0 to i0 + ni - 1 are below ntotal.
void check_ids(idx_t i0, idx_t ni, idx_t ntotal, const char* where);

/// Throws unless an index with ntotal vectors holds the bytes for them; fields
/// may have been set by hand.
void check_stored(
        idx_t ntotal,
        size_t bytes,
        size_t code_size,
        const char* where);

/// Throws unless the k labels of each of n queries are positions of vectors, or
/// -1.
void check_labels(
        idx_t n,
        idx_t k,
        const idx_t* labels,
        idx_t ntotal,
        const char* where);

/// Throws unless perm has each of the numbers below ntotal once.
void check_permutation(idx_t ntotal, const idx_t* perm, const char* where);

/// Returns the number of bits of a binary index. Throws unless it is a positive
/// multiple of 8.
int checked_bits(idx_t d, const char* where);

/// Throws unless k, a number of results, is positive.
void check_k(idx_t k, const char* where);

/// Throws if the radius of a range search is NaN.
void check_radius(float radius, const char* where);

/// Throws unless an index is trained.
void check_trained(bool is_trained, const char* where);

/// Throws if the index whose vectors are to be moved is the same one.
void check_not_itself(bool is_itself);

/// Throws unless add_id of a merge is 0, for an index whose ids are positions.
void check_no_add_id(idx_t add_id);

/// Returns the name of a metric: "METRIC_L2".
std::string metric_name(faiss::MetricType metric);

/// The name of a metric in texts and commands: "l2", "ip".
std::string short_metric_name(faiss::MetricType metric);

/// Throws unless the metric is L2 or inner product.
void check_metric(faiss::MetricType metric);

/// Like check_finite, and throws if a component is beyond +-1e37.
void check_signed_histograms(
        idx_t n,
        const float* x,
        size_t d,
        const char* where);

} // namespace faiss_ext
