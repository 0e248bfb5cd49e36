// SPDX-License-Identifier: MIT
// Limits of search parameters, the same for setters, searches and files.

#pragma once

namespace faiss_ext {

/// Of efSearch and efConstruction: more asks for memory without end.
constexpr int max_ef = 1 << 24;

/// Of the k_factor of Refine.
constexpr float max_k_factor = 1e9f;

} // namespace faiss_ext
