// SPDX-License-Identifier: MIT
// Reads and writes binary indexes in FAISS's own format if FAISS's functions
// fail. This holds for flat indexes with mapped codes (FAISS 1.7.3 cannot map
// them) and for multi-hash tables with a bucket that holds all vectors (FAISS
// loses it if their number is a power of 2). Either may be inside IDMap.

#pragma once

#include <memory>

#include <faiss/IndexBinary.h>
#include <faiss/impl/io.h>

namespace faiss_ext {

/// Reads such an index if f maps arrays and one comes next. Otherwise returns
/// null and leaves the position of f unchanged. These files have no checksums.
std::unique_ptr<faiss::IndexBinary> read_mapped_flat(faiss::IOReader* f);

/// Writes such an index. Returns false and writes nothing if FAISS's own
/// function shall write it.
bool write_where_faiss_fails(
        const faiss::IndexBinary& index,
        faiss::IOWriter* f);

} // namespace faiss_ext
