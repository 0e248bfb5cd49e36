// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <utility>

#include <faiss_ext/core/AlignedVector.h>
#include <faiss_ext/core/FileRange.h>

namespace faiss_ext {

/// An AlignedVector, or items in a file that is mapped into memory. The
/// constant functions read the items; make_owned() gives access to change them.
template <class T>
struct MappableVector {
    size_t size() const {
        return range ? range.size / sizeof(T) : items.size();
    }
    bool empty() const {
        return size() == 0;
    }
    const T* data() const { ///< for random access
        return range ? typed(range.random_access) : items.data();
    }
    const T* sequential() const { ///< for sequential access
        return range ? typed(range.sequential) : items.data();
    }
    const T& operator[](size_t i) const {
        return data()[i];
    }
    const T* begin() const {
        return data();
    }
    const T* end() const {
        return data() + size();
    }

    /// Returns the vector, to be changed. Throws if the items are in a file.
    AlignedVector<T>& make_owned() {
        check_not_mapped(bool(range), "own");
        return items;
    }

    /// Replaces the items by these bytes.
    void map(FileRange bytes) {
        items = {};
        range = std::move(bytes);
    }
    const FileRange& mapped() const {
        return range;
    }

   private:
    AlignedVector<T> items; ///< empty if there is a range
    FileRange range;

    static const T* typed(const uint8_t* bytes) {
        return static_cast<const T*>(static_cast<const void*>(bytes));
    }
};

/// The same for an index that keeps its bytes in one of FAISS's vectors, or
/// refers to a range of a file instead.
template <class Vector>
struct MappableBytes {
    Vector& items;
    FileRange& range;

    size_t size() const {
        return range ? range.size : items.size();
    }
    const uint8_t* data() const {
        return range ? range.random_access : std::as_const(items).data();
    }
    const uint8_t* sequential() const {
        return range ? range.sequential : std::as_const(items).data();
    }
    Vector& make_owned() {
        check_not_mapped(bool(range), "own");
        return items;
    }
    void map(FileRange bytes) {
        items.clear();
        range = std::move(bytes);
    }
};

template <class Vector>
MappableBytes(Vector&, FileRange&) -> MappableBytes<Vector>;

} // namespace faiss_ext
