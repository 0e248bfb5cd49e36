// SPDX-License-Identifier: MIT
#include "core/aligned_arrays.h"

#include <algorithm>

#include "core/mapped_file.h"

namespace faiss_ext {

namespace {

constexpr char zeros[array_alignment] = {};

} // namespace

std::optional<FileRange> map_items(
        faiss::IOReader* f,
        uint64_t n,
        size_t item_size,
        size_t alignment,
        const char* field) {
    auto* mapping = dynamic_cast<MapsArrays*>(f);
    if (!mapping || n == 0 || mapping->position() % alignment != 0) {
        return std::nullopt;
    }
    const uint64_t begin = mapping->position(), end = mapping->file->size();
    FAISS_EXT_THROW_IF_NOT_FMT(
            begin <= end && n <= (end - begin) / item_size,
            "%s is truncated: %" PRIu64 " items of %s are missing",
            name_of(*f).c_str(),
            n,
            field);
    mapping->skip(n * item_size);
    return FileRange(mapping->file, begin, n * item_size);
}

void write_aligned(
        faiss::IOWriter* f,
        const void* items,
        uint64_t n,
        size_t item_size) {
    write_value(f, n);
    const auto* aligning = dynamic_cast<const AligningWriter*>(f);
    // after the byte that holds the number of zeros
    const uint64_t begin = aligning && n > 0 ? aligning->length + 1 : 0;
    const auto count = uint8_t(-begin % array_alignment);
    write_value(f, count);
    write_bytes(f, zeros, count);
    write_bytes(f, items, n * item_size);
}

uint64_t read_aligned_size(faiss::IOReader* f, const char* field) {
    const auto n = read_value<uint64_t>(f, field);
    const auto count = read_value_in<uint8_t>(f, field, 0, array_alignment - 1);
    char padding[array_alignment];
    read_bytes(f, padding, count, field);
    FAISS_EXT_THROW_IF_NOT_FMT(
            std::equal(padding, padding + count, zeros),
            "%s is damaged: the padding before %s is not zero",
            name_of(*f).c_str(),
            field);
    return n;
}

} // namespace faiss_ext
