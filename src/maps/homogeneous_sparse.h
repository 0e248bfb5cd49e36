// SPDX-License-Identifier: MIT
// The homogeneous kernel map from sparse vectors to sparse vectors.

#pragma once

#include <faiss_ext/maps/HomogeneousKernelMap.h>

namespace faiss_ext {

/// Maps sparse vectors in canonical form. Columns of the results ascend. Each
/// component of x becomes map.components() components, some of which may be 0.
SparseRows map_to_sparse(
        const HomogeneousKernelMap& map,
        const SparseVectors& x);

} // namespace faiss_ext
