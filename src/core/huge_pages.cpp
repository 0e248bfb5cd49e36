// SPDX-License-Identifier: MIT
#include "core/huge_pages.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

namespace faiss_ext {

namespace {

/// Reads the first line of a file, or an empty one.
void read_line(const char* path, std::span<char> line) {
    line[0] = 0;
    if (FILE* f = fopen(path, "r")) {
        if (!fgets(line.data(), int(line.size()), f)) {
            line[0] = 0;
        }
        fclose(f);
    }
}

/// Returns the size of a huge page, or 0 if none may be used, or if it is very
/// large: 512 MB on arm64 with pages of 64 KB.
size_t size_of_huge_page() {
    char modes[100], bytes[100];
    read_line("/sys/kernel/mm/transparent_hugepage/enabled", modes);
    read_line("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", bytes);
    constexpr size_t largest = size_t(32) << 20;
    const size_t size = strtoull(bytes, nullptr, 10);
    return strstr(modes, "[never]") || size > largest ? 0 : size;
}

/// Asks for huge pages for a run of blocks of this size.
void advise(uintptr_t begin, size_t length, size_t size, bool is_array) {
    constexpr int collapse = 25; // MADV_COLLAPSE, from Linux 6.1 on
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    char* const address = reinterpret_cast<char*>(begin);
    // for pages that come later; makes a mapping of its own, and the system
    // limits their number
    if (is_array) {
        madvise(address, length * size, MADV_HUGEPAGE);
    }
    // for pages in use; stops at a block of which nothing is in use
    if (madvise(address, length * size, collapse) != 0 && errno == EINVAL) {
        for (size_t i = 0; i < length; i++) {
            madvise(address + i * size, size, collapse);
        }
    }
}

} // namespace

void prefer_huge_pages(std::span<Piece> pieces) noexcept {
    const int error = errno;
    static const size_t size = size_of_huge_page();
    size_t total = 0;
    for (const Piece& piece : pieces) {
        total += piece.bytes;
    }
    if (size == 0 || total < size) {
        errno = error;
        return;
    }
    std::ranges::sort(pieces, std::ranges::less(), &Piece::begin);
    uintptr_t block = 0, first = 0; // the run of blocks to become pages
    size_t covered = 0, length = 0;
    const auto end_run = [&] {
        if (length > 0) {
            advise(first * size, length, size, pieces.size() == 1);
        }
        length = 0;
    };
    const auto end_block = [&] {
        if (covered < size / 4 * 3) {
            return;
        }
        if (first + length != block) {
            end_run();
            first = block;
        }
        length++;
    };
    for (const Piece& piece : pieces) {
        auto at = reinterpret_cast<uintptr_t>(piece.begin);
        const uintptr_t end = at + piece.bytes;
        while (at < end) {
            if (at / size != block) {
                end_block();
                block = at / size;
                covered = 0;
            }
            const uintptr_t until = std::min(end, (block + 1) * size);
            covered += until - at;
            at = until;
        }
    }
    end_block();
    end_run();
    errno = error;
}

} // namespace faiss_ext
