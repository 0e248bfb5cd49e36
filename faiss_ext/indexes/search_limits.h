// SPDX-License-Identifier: MIT
// Limits of search parameters, the same for setters, searches and files.

#pragma once

namespace faiss_ext {

/// Limit of efSearch and efConstruction; larger values would need unlimited
/// memory.
constexpr int max_ef = 1 << 24;

/// Limit of the k_factor of Refine.
constexpr float max_k_factor = 1e9f;

} // namespace faiss_ext
