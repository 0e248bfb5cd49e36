// SPDX-License-Identifier: MIT
// How much work is done at a time, so that it stays in a cache: in floats,
// measured on processors with 1 MB or more of second-level cache.

#pragma once

#include <cstddef>

namespace faiss_ext::cache {

/// of the vectors that a block of queries is compared with (KFlat), and of the
/// features that are projected at a time: half a second-level cache
constexpr size_t half_l2 = 131072;

/// of the rows of y that x passes by in a block of kernel values
constexpr size_t pairwise_rows = 65536;

/// of the margins that a thread makes at a time: more would leave the caches,
/// fewer have a large matrix pass by more often
constexpr size_t margins = 1048576;

/// of the vectors v of a bilinear projection that are used together
constexpr size_t bilinear_v = 163840;

/// of the products w' X, which pass by once while the v stay in the cache
constexpr size_t bilinear_products = 327680;

/// of mapped vectors that a thread makes at a time
constexpr size_t mapped = 65536;

/// Queries times vectors between two looks at interrupts (KFlat).
constexpr size_t pairs_in_turn = size_t(1) << 19;

/// Bytes of codes times queries between two looks at interrupts: 10 ms.
constexpr size_t codes_in_turn = size_t(1) << 28;

/// Hamming distances that a thread keeps for a block of queries: 128 MB.
constexpr size_t kept_distances = size_t(1) << 23;

} // namespace faiss_ext::cache
