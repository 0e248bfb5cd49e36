// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <utility>

#include <faiss_ext/core/AlignedVector.h>
#include <faiss_ext/core/FileRange.h>

namespace faiss_ext {

/// An AlignedVector, or items that lie in a file that is mapped into memory.
/// They are read through the constant functions, and changed through
/// make_owned().
template <class T>
struct MappableVector {
    size_t size() const {
        return range ? range.size / sizeof(T) : items.size();
    }
    bool empty() const {
        return size() == 0;
    }
    const T* data() const { ///< to read here and there
        return range ? typed(range.random_access) : items.data();
    }
    const T* sequential() const { ///< to read one after another
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

    /// What can be changed; throws if it lies in a file.
    AlignedVector<T>& make_owned() {
        check_not_mapped(bool(range), "own");
        return items;
    }

    /// Takes these bytes in place of what it has.
    void map(FileRange bytes) {
        items = {};
        range = std::move(bytes);
    }
    const FileRange& mapped() const {
        return range;
    }

   private:
    AlignedVector<T> items; ///< empty while there is a range
    FileRange range;

    static const T* typed(const uint8_t* bytes) {
        return static_cast<const T*>(static_cast<const void*>(bytes));
    }
};

/// The same of two fields of an index: bytes of its own, in one of FAISS's
/// vectors, and a range that stands for them.
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
