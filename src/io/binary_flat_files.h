// SPDX-License-Identifier: MIT
// FAISS's own format of binary indexes, alone or behind IDMap, where FAISS's
// functions fail: flat ones whose codes are mapped from a file (FAISS 1.7.3
// cannot), and multi-hash tables with a bucket that holds all vectors (FAISS
// loses it if their number is a power of 2).

#pragma once

#include <memory>

#include <faiss/IndexBinary.h>
#include <faiss/impl/io.h>

namespace faiss_ext {

/// Reads on, if f maps arrays and such an index comes next; otherwise null, and
/// f is where it was. Such files have no checksums.
std::unique_ptr<faiss::IndexBinary> read_mapped_flat(faiss::IOReader* f);

/// Writes such an index. Returns false, and writes nothing, if it is for
/// FAISS's own function.
bool write_where_faiss_fails(
        const faiss::IndexBinary& index,
        faiss::IOWriter* f);

} // namespace faiss_ext
