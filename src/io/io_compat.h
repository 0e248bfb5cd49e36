// SPDX-License-Identifier: MIT
// Differences between FAISS versions in files; see core/compat.h.

#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include <faiss/impl/io.h>
#include <faiss/index_io.h>
#if __has_include(<faiss/impl/mapped_io.h>)
#include <faiss/impl/mapped_io.h>
#define FAISS_EXT_HAS_MAPPED_FILES
#endif

#include "core/aligned_arrays.h"
#include "core/errors.h"
#include "core/mapped_file.h"

namespace faiss_ext {

/// Reads a file and maps our arrays. FAISS recognises the base class and maps
/// its own lists.
struct MappingFileReader : faiss::FileIOReader, MapsArrays {
    explicit MappingFileReader(const faiss::FileIOReader& from)
            : FileIOReader(from.f) {
        name = from.name;
        file = std::make_shared<MappedFile>(::fileno(f), name);
    }
    uint64_t position() const override {
        return ftell(f);
    }
    void skip(uint64_t n) override {
        fseek(f, long(n), SEEK_CUR);
    }
};

#ifdef FAISS_EXT_HAS_MAPPED_FILES
/// Like MappingFileReader, but also maps FAISS's own vectors. It needs FAISS
/// 1.14, the first version that installs the header.
struct MappingMemoryReader : faiss::MappedFileIOReader, MapsArrays {
    explicit MappingMemoryReader(const faiss::FileIOReader& from)
            : MappedFileIOReader(
                      std::make_shared<faiss::MmappedFileMappingOwner>(
                              from.f)) {
        name = from.name;
        file = std::make_shared<MappedFile>(::fileno(from.f), name);
    }
    uint64_t position() const override {
        return pos;
    }
    void skip(uint64_t n) override {
        pos += n;
    }
};
#endif

/// Returns whether the flags ask for mapped parts.
inline bool asks_for_mapping(int io_flags) {
#ifdef FAISS_EXT_HAS_MAPPED_FILES
    if ((io_flags & faiss::IO_FLAG_MMAP_IFC) == faiss::IO_FLAG_MMAP_IFC) {
        return true;
    }
#endif
    return (io_flags & faiss::IO_FLAG_MMAP) == faiss::IO_FLAG_MMAP;
}

/// Opens a file and maps it if the flags ask for that.
inline std::unique_ptr<faiss::IOReader> open_file(
        const char* fname,
        [[maybe_unused]] int io_flags) {
    std::FILE* opened = std::fopen(fname, "rb");
    FAISS_EXT_THROW_IF_NOT_FMT(
            opened, "cannot open %s: %s", fname, std::strerror(errno));
    auto file = std::make_unique<faiss::FileIOReader>(opened);
    file->need_close = true;
    file->name = fname;
#ifdef FAISS_EXT_HAS_MAPPED_FILES
    if ((io_flags & faiss::IO_FLAG_MMAP_IFC) == faiss::IO_FLAG_MMAP_IFC) {
        return std::make_unique<MappingMemoryReader>(*file);
    }
#endif
    return file;
}

/// Returns the position of a reader in its file, if it can tell it and seek
/// back.
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

/// Returns a reader that continues at the position of f and maps arrays, if f
/// is a file that can be mapped and does not map it itself; otherwise null.
inline std::unique_ptr<faiss::IOReader> mapping_reader(faiss::IOReader* f) {
    const auto* file = dynamic_cast<const faiss::FileIOReader*>(f);
    if (!file || !position_of(f) || dynamic_cast<const MapsArrays*>(f)) {
        return nullptr;
    }
    return std::make_unique<MappingFileReader>(*file);
}

/// Moves back by n bytes; returns false if the reader cannot.
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
