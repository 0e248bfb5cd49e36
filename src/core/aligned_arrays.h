// SPDX-License-Identifier: MIT
// Arrays that are aligned in files, so that vector instructions can read them
// in mapped memory; see docs/file-format.md.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <faiss/impl/io.h>

#include <faiss_ext/core/FileRange.h>

#include "core/errors.h"
#include "core/io_fields.h"

namespace faiss_ext {

/// Arrays, and the content of a frame, begin at multiples of this.
constexpr size_t array_alignment = 64;

/// A writer that counts its bytes; the first byte is aligned.
struct AligningWriter : faiss::IOWriter {
    uint64_t length = 0;
};

/// A base class of readers whose file is mapped, so that arrays are not copied.
struct MapsArrays {
    std::shared_ptr<const MappedFile> file;

    virtual ~MapsArrays() = default;
    virtual uint64_t position() const = 0;
    virtual void skip(uint64_t n) = 0;
};

/// Maps and skips the next n items if f maps arrays and they are aligned.
/// Otherwise returns none, and the items must be read. Throws if the file ends
/// too early.
std::optional<FileRange> map_items(
        faiss::IOReader* f,
        uint64_t n,
        size_t item_size,
        size_t alignment,
        const char* field);

/// Writes the number of items, then the items. If there are any and f knows its
/// position, zeros up to the alignment precede them.
void write_aligned(
        faiss::IOWriter* f,
        const void* items,
        uint64_t n,
        size_t item_size);

/// Reads the number of items and skips the zeros.
uint64_t read_aligned_size(faiss::IOReader* f, const char* field);

/// Overload for mappable arrays, such as MappableVector.
template <class Mappable>
void write_aligned(faiss::IOWriter* f, const Mappable& array) {
    write_aligned(f, array.sequential(), array.size(), sizeof(*array.data()));
}

/// Reads or maps any number of items.
template <class Mappable>
void read_aligned(faiss::IOReader* f, Mappable&& array, const char* field) {
    constexpr size_t item_size = sizeof(*array.data());
    const uint64_t size = read_aligned_size(f, field);
    if (auto range = map_items(f, size, item_size, array_alignment, field)) {
        array.map(*std::move(range));
        return;
    }
    read_items(
            f,
            size,
            item_size,
            [&](size_t n) { array.make_owned().resize(n); },
            [&] { return array.make_owned().data(); },
            field);
}

} // namespace faiss_ext
