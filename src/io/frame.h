// SPDX-License-Identifier: MIT
// The frame around an object in a file: its length and checksums stand before
// it, so that nothing is used that was not verified; docs/file-format.md.

#pragma once

#include <cstdint>
#include <functional>

#include <faiss/impl/io.h>

namespace faiss_ext {

constexpr uint32_t format_version = 6;
constexpr size_t magic_size = 4;

using WriteContent = std::function<void(faiss::IOWriter*)>;
using ReadContent = std::function<void(faiss::IOReader*)>;

/** Writes a frame. `content` is called twice, first to know what the header
 * says, and has to write the same bytes both times; otherwise, or if a write
 * fails, throws a faiss::FaissException.
 */
void write_frame(
        const char* magic,
        const WriteContent& content,
        faiss::IOWriter* f);

/** Reads the frame behind its magic characters, which have been read.
 *
 * `content` gets a reader that ends where the frame does, and has to read all
 * of it. It hands out verified bytes only: each block is verified before the
 * first of its bytes, or, where io_flags ask for mapped files and f can go
 * back, all of them are verified first, and `content` then reads from f itself.
 * Throws a faiss::FaissException on damage.
 */
void read_frame(
        const char* magic,
        faiss::IOReader* f,
        int io_flags,
        const ReadContent& content);

/// Writes the length of the content, and the content, which is called twice.
void write_with_length(const WriteContent& content, faiss::IOWriter* f);

/// Reads what write_with_length wrote; `content` cannot read beyond it, and has
/// to read all of it.
void read_with_length(faiss::IOReader* f, const ReadContent& content);

} // namespace faiss_ext
