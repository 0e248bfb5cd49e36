// How much work is done at a time, so that it stays in a cache: in floats,
// measured on processors with 1 MB or more of second-level cache.

#pragma once

#include <cstddef>

namespace faiss_ext::cache {

/// of the vectors that a block of queries is compared with (KFlat), and of the
/// features that are projected at a time: half a second-level cache
constexpr size_t half_l2 = 131072;

/// of the margins that a thread makes at a time: more would leave the caches,
/// fewer have a large matrix pass by more often
constexpr size_t margins = 1048576;

/// of the vectors v of a bilinear projection that are used together
constexpr size_t bilinear_v = 163840;

/// of the products w' X, which pass by once while the v stay in the cache
constexpr size_t bilinear_products = 327680;

/// of mapped vectors that a thread makes at a time
constexpr size_t mapped = 65536;

/// Bytes of binary codes that a block of queries is compared with between two
/// looks at interrupts, times the queries.
constexpr size_t hamming_chunk = size_t(1) << 28;

} // namespace faiss_ext::cache
