// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>
#include <faiss/VectorTransform.h>

namespace faiss {
struct IOReader;
struct IOWriter;
} // namespace faiss

namespace faiss_ext {

/** Writes an index to a file. The index may belong to this library or to FAISS,
 * or be one of FAISS's wrappers around an index of this library.
 *
 * These wrappers are IndexIDMap, IndexIDMap2, IndexPreTransform, IndexRefine,
 * IndexShards, IndexReplicas, and IndexHNSW over IndexFlatKernel.
 *
 * An index that holds no object of this library is written by
 * faiss::write_index, in FAISS's own format. So are binary flat indexes,
 * inverted lists, and an IndexBinaryIDTable in front of them. Any other index
 * is written with checksums (docs/file-format.md). It is written to a temporary
 * file in the same folder and then renamed, so it appears under its name only
 * when it is complete. Throws a faiss::FaissException on any failure, or for an
 * unsupported class.
 */
void write_index(const faiss::Index* index, const char* fname);
void write_index(const faiss::Index* index, faiss::IOWriter* f);

/** Reads an index that write_index of this library or of FAISS has written.
 *
 * Throws a faiss::FaissException for a truncated, damaged or foreign file. No
 * byte is used before its checksum has been verified.
 *
 * @param io_flags  with faiss::IO_FLAG_MMAP, codes, vectors and lists stay in
 *                  the file. The file is read once to verify its checksums.
 *                  The index can be searched, but not changed. Other flags
 *                  apply to FAISS's own classes
 */
std::unique_ptr<faiss::Index> read_index(const char* fname, int io_flags = 0);
std::unique_ptr<faiss::Index> read_index(faiss::IOReader* f, int io_flags = 0);

/// The same functions for binary indexes.
void write_index_binary(const faiss::IndexBinary* index, const char* fname);
void write_index_binary(const faiss::IndexBinary* index, faiss::IOWriter* f);
std::unique_ptr<faiss::IndexBinary> read_index_binary(
        const char* fname,
        int io_flags = 0);
std::unique_ptr<faiss::IndexBinary> read_index_binary(
        faiss::IOReader* f,
        int io_flags = 0);

/// The same functions for transformations, including hashes.
void write_VectorTransform(const faiss::VectorTransform* vt, const char* fname);
void write_VectorTransform(
        const faiss::VectorTransform* vt,
        faiss::IOWriter* f);
std::unique_ptr<faiss::VectorTransform> read_VectorTransform(const char* fname);
std::unique_ptr<faiss::VectorTransform> read_VectorTransform(
        faiss::IOReader* f);

/// Whether an object belongs to this library or holds one that does. FAISS's
/// own functions cannot write, read or copy such an object.
bool holds_faiss_ext(const faiss::Index* index);
bool holds_faiss_ext(const faiss::IndexBinary* index);
bool holds_faiss_ext(const faiss::VectorTransform* vt);

} // namespace faiss_ext
