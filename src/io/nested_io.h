// SPDX-License-Identifier: MIT
// Objects inside others in a file; docs/file-format.md.

#pragma once

#include <memory>

#include <faiss/impl/io.h>

namespace faiss_ext {

/// T is faiss::Index, faiss::IndexBinary or faiss::VectorTransform.
template <class T>
void write_nested(const T* object, faiss::IOWriter* f);

template <class T>
std::unique_ptr<T> read_nested(faiss::IOReader* f, int io_flags);

} // namespace faiss_ext
