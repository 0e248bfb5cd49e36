// SPDX-License-Identifier: MIT
// Huge pages of memory for large arrays, which make random access to them
// faster: a processor remembers the addresses of only a few pages.

#pragma once

#include <cstddef>
#include <span>

namespace faiss_ext {

/// A piece of memory.
struct Piece {
    const void* begin;
    size_t bytes;
};

/** Asks the system to keep pieces of memory in huge pages, mostly of 2 MB. This
 * is only a hint; no content changes.
 *
 * A block of the size of a huge page becomes one if the pieces cover at least
 * three quarters of it. Small pieces that lie together in the heap count, too.
 * Linux 6.1 and newer move the content at once. Older ones do so in the
 * background, for a single piece only.
 *
 * Does nothing if the system has no huge pages of at most 32 MB, or if they are
 * turned off (`never` in /sys/kernel/mm/transparent_hugepage/enabled).
 *
 * @param pieces  are sorted
 */
void prefer_huge_pages(std::span<Piece> pieces) noexcept;

inline void prefer_huge_pages(Piece piece) noexcept {
    prefer_huge_pages(std::span(&piece, 1));
}

/// The memory of a vector, or of FAISS's MaybeOwnedVector, including its room
/// for growth.
template <class Vector>
Piece memory_of(const Vector& v) {
    if constexpr (requires { v.owned_data; }) {
        return memory_of(v.owned_data);
    } else {
        return {v.data(), v.capacity() * sizeof(*v.data())};
    }
}

/** Keeps a vector in huge pages: at the end of its life, this object asks for
 * them if the vector has moved to other memory. A vector that grows moves
 * rarely, so this takes little time.
 */
template <class Vector>
class StaysInHugePages {
   public:
    explicit StaysInHugePages(const Vector& v) : v(v), before(v.data()) {}
    ~StaysInHugePages() {
        if (v.data() != before) {
            prefer_huge_pages(memory_of(v));
        }
    }
    StaysInHugePages(const StaysInHugePages&) = delete;
    StaysInHugePages& operator=(const StaysInHugePages&) = delete;

   private:
    const Vector& v;
    const void* const before;
};

} // namespace faiss_ext
