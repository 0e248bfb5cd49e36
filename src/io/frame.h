// SPDX-License-Identifier: MIT
// The frame around an object in a file. Its length and checksums precede the
// object, so that only verified bytes are used; see docs/file-format.md.

#pragma once

#include <cstdint>
#include <functional>

#include <faiss/impl/io.h>

namespace faiss_ext {

constexpr uint32_t format_version = 11;
constexpr size_t magic_size = 4;

using WriteContent = std::function<void(faiss::IOWriter*)>;
using ReadContent = std::function<void(faiss::IOReader*)>;

/** Writes a frame. `content` is called twice, first to compute the header, and
 * must write the same bytes both times. Otherwise, or if a write fails, throws
 * a faiss::FaissException.
 */
void write_frame(
        const char* magic,
        const WriteContent& content,
        faiss::IOWriter* f);

/** Reads a frame whose magic characters have been read already.
 *
 * `content` gets a reader that ends with the frame, and must read all of it. It
 * receives only verified bytes. Usually each block is verified before its first
 * byte is used. If io_flags ask for mapped files and f can seek back, all
 * blocks are verified first, and `content` then reads from f itself.
 *
 * Throws a faiss::FaissException on damage.
 */
void read_frame(
        const char* magic,
        faiss::IOReader* f,
        int io_flags,
        const ReadContent& content);

/// Writes the length of the content, then the content, which is called twice.
void write_with_length(const WriteContent& content, faiss::IOWriter* f);

/// Reads the output of write_with_length. `content` must read all of it and
/// cannot read beyond it.
void read_with_length(faiss::IOReader* f, const ReadContent& content);

} // namespace faiss_ext
