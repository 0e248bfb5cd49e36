// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace faiss_ext {

struct MappedFile;

/// Bytes of a file that is mapped into memory, read-only. The file stays mapped
/// as long as a FileRange refers to it.
struct FileRange {
    std::shared_ptr<const MappedFile> file; ///< null: no bytes
    size_t begin = 0;                       ///< position in the file
    size_t size = 0;
    const uint8_t* sequential = nullptr; ///< for sequential access
    const uint8_t* random_access =
            nullptr; ///< the same bytes, for random access

    FileRange() = default;
    FileRange(
            std::shared_ptr<const MappedFile> file,
            size_t begin,
            size_t size);

    explicit operator bool() const {
        return bool(file);
    }
};

/// Throws a faiss::FaissException if the data to be changed is mapped from a
/// file. `where` names the function.
void check_not_mapped(bool is_mapped, const char* where);

} // namespace faiss_ext
