// SPDX-License-Identifier: MIT
// Objects inside other objects in a file; see docs/file-format.md.

#pragma once

#include <memory>
#include <string>

#include <faiss/impl/io.h>

namespace faiss_ext {

/// T is faiss::Index, faiss::IndexBinary or faiss::VectorTransform.
template <class T>
void write_nested(const T* object, faiss::IOWriter* f);

/// Writes an index as if its ids were positions.
template <class IndexT>
void write_without_ids(const IndexT* index, faiss::IOWriter* f);

/** Throws if an object, or a part of it at any depth, could not be read after
 * writing; the message says why. Call it before write_nested.
 *
 * @param file  the name of the file, for the message
 */
template <class T>
void check_sound(const T* object, const std::string& file);

template <class T>
std::unique_ptr<T> read_nested(faiss::IOReader* f, int io_flags);

} // namespace faiss_ext
