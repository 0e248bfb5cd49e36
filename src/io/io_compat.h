// SPDX-License-Identifier: MIT
// What differs between FAISS versions in files; see core/compat.h.

#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>

#include <faiss/impl/io.h>
#include <faiss/index_io.h>
#if __has_include(<faiss/impl/mapped_io.h>)
#include <faiss/impl/mapped_io.h>
#define FAISS_EXT_HAS_MAPPED_FILES
#endif

namespace faiss_ext {

/// Opens a file, mapped into memory if the flags ask for that: FAISS's own
/// parts are then used where they lie in the file (since FAISS 1.14, the first
/// that installs the header).
inline std::unique_ptr<faiss::IOReader> open_file(
        const char* fname,
        [[maybe_unused]] int io_flags) {
#ifdef FAISS_EXT_HAS_MAPPED_FILES
    if ((io_flags & faiss::IO_FLAG_MMAP_IFC) == faiss::IO_FLAG_MMAP_IFC) {
        return std::make_unique<faiss::MappedFileIOReader>(
                std::make_shared<faiss::MmappedFileMappingOwner>(fname));
    }
#endif
    return std::make_unique<faiss::FileIOReader>(fname);
}

/// Whether flags ask for parts that are used where they lie in the file.
inline bool asks_for_mapping(int io_flags) {
#ifdef FAISS_EXT_HAS_MAPPED_FILES
    if ((io_flags & faiss::IO_FLAG_MMAP_IFC) == faiss::IO_FLAG_MMAP_IFC) {
        return true;
    }
#endif
    return (io_flags & faiss::IO_FLAG_MMAP) == faiss::IO_FLAG_MMAP;
}

/// Where a reader is in its file, if it can tell and go back.
inline std::optional<uint64_t> position_of(const faiss::IOReader* f) {
    if (auto* file = dynamic_cast<const faiss::FileIOReader*>(f)) {
        const long position = ftell(file->f);
        return position < 0 ? std::nullopt : std::optional<uint64_t>(position);
    }
#ifdef FAISS_EXT_HAS_MAPPED_FILES
    if (auto* mapped = dynamic_cast<const faiss::MappedFileIOReader*>(f)) {
        return mapped->pos;
    }
#endif
    return std::nullopt;
}

/// Goes back by n bytes; returns whether this reader can.
inline bool step_back(faiss::IOReader* f, size_t n) {
    if (auto* file = dynamic_cast<faiss::FileIOReader*>(f)) {
        return fseek(file->f, -long(n), SEEK_CUR) == 0;
    }
#ifdef FAISS_EXT_HAS_MAPPED_FILES
    if (auto* mapped = dynamic_cast<faiss::MappedFileIOReader*>(f)) {
        mapped->pos -= n;
        return true;
    }
#endif
    return false;
}

} // namespace faiss_ext
