// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace faiss_ext {

struct MappedFile;

/// Bytes of a file that is mapped into memory, read-only, and stays so as long
/// as there is one of these.
struct FileRange {
    std::shared_ptr<const MappedFile> file; ///< null: there are none
    size_t begin = 0;                       ///< in the file
    size_t size = 0;
    const uint8_t* sequential = nullptr; ///< to read one after another
    const uint8_t* random_access =
            nullptr; ///< the same, to read here and there

    FileRange() = default;
    FileRange(
            std::shared_ptr<const MappedFile> file,
            size_t begin,
            size_t size);

    explicit operator bool() const {
        return bool(file);
    }
};

/// Throws a faiss::FaissException where what is to be changed is mapped from a
/// file. `where` names the function.
void check_not_mapped(bool is_mapped, const char* where);

} // namespace faiss_ext
