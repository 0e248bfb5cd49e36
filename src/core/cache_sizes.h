// SPDX-License-Identifier: MIT
// Sizes of blocks that stay in a cache, in floats. Measured on processors with
// at least 1 MB of second-level cache.

#pragma once

#include <cstddef>

namespace faiss_ext::cache {

/// Vectors that a block of queries is compared with (KFlat), and features that
/// are projected at a time: half a second-level cache.
constexpr size_t half_l2 = 131072;

/// Rows of y that are streamed past x in a block of kernel values.
constexpr size_t pairwise_rows = 65536;

/// Margins that a thread computes at a time. More would leave the caches; with
/// fewer, a large matrix is read more often.
constexpr size_t margins = 1048576;

/// Vectors v of a bilinear projection that are used together.
constexpr size_t bilinear_v = 163840;

/// Products w' X, which are streamed once while the v stay in the cache.
constexpr size_t bilinear_products = 327680;

/// Mapped vectors that a thread computes at a time.
constexpr size_t mapped = 65536;

/// Queries times vectors between two checks for interrupts (KFlat).
constexpr size_t pairs_in_turn = size_t(1) << 19;

/// Bytes of codes times queries between two checks for interrupts: 10 ms.
constexpr size_t codes_in_turn = size_t(1) << 28;

/// Hamming distances that a thread keeps for a block of queries: 128 MB.
constexpr size_t kept_distances = size_t(1) << 23;

} // namespace faiss_ext::cache
