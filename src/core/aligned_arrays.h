// SPDX-License-Identifier: MIT
// Arrays in files that begin where vector instructions like to read, so that
// they can be used where they lie; docs/file-format.md.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <faiss/impl/io.h>

#include <faiss_ext/core/FileRange.h>

#include "core/errors.h"
#include "core/io_fields.h"

namespace faiss_ext {

/// Where an array, and the content of a frame, begins: at a multiple of this.
constexpr size_t array_alignment = 64;

/// A writer that counts its bytes, the first of which lies on an alignment.
struct AligningWriter : faiss::IOWriter {
    uint64_t length = 0;
};

/// What a reader of a file is, too, where arrays are to be used where they lie.
struct MapsArrays {
    std::shared_ptr<const MappedFile> file;

    virtual ~MapsArrays() = default;
    virtual uint64_t position() const = 0;
    virtual void skip(uint64_t n) = 0;
};

/// The next n items, which are skipped, if f maps arrays and they are aligned;
/// otherwise they are to be read. Throws if the file ends before.
std::optional<FileRange> map_items(
        faiss::IOReader* f,
        uint64_t n,
        size_t item_size,
        size_t alignment,
        const char* field);

/// Writes the number of items, zeros up to an alignment, if there are any and f
/// knows where it is, and the items.
void write_aligned(
        faiss::IOWriter* f,
        const void* items,
        uint64_t n,
        size_t item_size);

/// The number of items; the zeros are read, too.
uint64_t read_aligned_size(faiss::IOReader* f, const char* field);

/// The same of what is mappable, as a MappableVector.
template <class Mappable>
void write_aligned(faiss::IOWriter* f, const Mappable& array) {
    write_aligned(f, array.sequential(), array.size(), sizeof(*array.data()));
}

/// Reads, or maps, any number of items.
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
