// SPDX-License-Identifier: MIT
// Read-only memory-mapped files.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace faiss_ext {

/** A regular file, mapped read-only twice: once for sequential reading, with
 * read-ahead by the system, and once for random access, without it.
 */
struct MappedFile {
    const std::string path;

    /// Throws a faiss::FaissException if the file cannot be opened, with the
    /// reason.
    explicit MappedFile(const std::string& path);
    /// Maps a file that is open.
    MappedFile(int descriptor, const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    size_t size() const {
        return num_bytes;
    }
    int64_t modified() const { ///< in ns since 1970
        return time;
    }
    const uint8_t* sequential() const {
        return static_cast<const uint8_t*>(ordered);
    }
    const uint8_t* random_access() const {
        return static_cast<const uint8_t*>(scattered);
    }

    /// Returns whether a byte can be read without waiting for the disk; true if
    /// the system does not say.
    bool is_resident(size_t at) const;

    /// Asks the system to read these bytes; returns at once.
    void prefetch(size_t begin, size_t end) const;

   private:
    int descriptor = -1;
    size_t num_bytes = 0;
    int64_t time = 0;
    void *ordered = nullptr, *scattered = nullptr;

    void map();
    void check(bool good);
    void close_all();
};

} // namespace faiss_ext
