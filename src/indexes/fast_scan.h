// SPDX-License-Identifier: MIT
// Binary indexes of FAISS as those of this library.

#pragma once

#include <memory>

#include <faiss/IndexBinary.h>

namespace faiss_ext {

/// Makes a flat index and one of inverted lists the same with the faster scan,
/// inside IDMap as well; others stay what they are.
std::unique_ptr<faiss::IndexBinary> with_simd_hamming(
        std::unique_ptr<faiss::IndexBinary> index);

} // namespace faiss_ext
