// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace faiss_ext {

/// Allocates memory that begins on a cache line.
template <class T>
struct AlignedAllocator {
    using value_type = T;

    AlignedAllocator() = default;
    template <class U>
    AlignedAllocator(const AlignedAllocator<U>&) {}

    T* allocate(size_t n) {
        if (n > size_t(-1) / sizeof(T)) {
            throw std::bad_array_new_length();
        }
        return static_cast<T*>(::operator new(n * sizeof(T), alignment));
    }
    void deallocate(T* p, size_t) {
        ::operator delete(p, alignment);
    }
    template <class U>
    bool operator==(const AlignedAllocator<U>&) const {
        return true;
    }

    static constexpr std::align_val_t alignment{64};
};

/// A vector for vector instructions: loads of 64 bytes never cross a cache
/// line.
template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

} // namespace faiss_ext
