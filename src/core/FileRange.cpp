// SPDX-License-Identifier: MIT
#include <faiss_ext/core/FileRange.h>

#include <utility>

#include "core/errors.h"
#include "core/mapped_file.h"

namespace faiss_ext {

FileRange::FileRange(
        std::shared_ptr<const MappedFile> mapped,
        size_t begin,
        size_t size)
        : file(std::move(mapped)),
          begin(begin),
          size(size),
          sequential(file->sequential() + begin),
          random_access(file->random_access() + begin) {}

void check_not_mapped(bool is_mapped, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            !is_mapped,
            "%s: the index is mapped from a file and can only be searched; read it without IO_FLAG_MMAP to change it",
            where);
}

} // namespace faiss_ext
