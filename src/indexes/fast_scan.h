// SPDX-License-Identifier: MIT
// Replaces FAISS's binary indexes by the faster classes of this library.

#pragma once

#include <memory>

#include <faiss/IndexBinary.h>

namespace faiss_ext {

/// Whether graphs become IndexBinaryHNSWSIMD, which finds other codes and which
/// FAISS cannot write.
enum class Graphs { keep, convert };

/// Converts flat indexes and inverted lists to the classes with the faster
/// scan, and ID maps, with the index inside, to IndexBinaryIDTable. An ID map
/// stays as it is if an id occurs twice or is -1. Other indexes stay unchanged.
std::unique_ptr<faiss::IndexBinary> with_simd_hamming(
        std::unique_ptr<faiss::IndexBinary> index,
        Graphs graphs = Graphs::keep);

} // namespace faiss_ext
