// SPDX-License-Identifier: MIT
// FAISS's own format of flat binary indexes, alone or behind IDMap, where their
// codes are mapped from a file: FAISS 1.7.3 cannot.

#pragma once

#include <memory>

#include <faiss/IndexBinary.h>
#include <faiss/impl/io.h>

namespace faiss_ext {

/// Reads on, if f maps arrays and such an index comes next; otherwise null, and
/// f is where it was. Such files have no checksums.
std::unique_ptr<faiss::IndexBinary> read_mapped_flat(faiss::IOReader* f);

/// Returns false, and writes nothing, where there are no mapped codes.
bool write_mapped_flat(const faiss::IndexBinary& index, faiss::IOWriter* f);

} // namespace faiss_ext
