// SPDX-License-Identifier: MIT
// Fields of binary files. Numbers are written as in memory (little-endian on
// all supported machines); vectors and strings are preceded by their length.
// Every failure is a faiss::FaissException that names the file and the field.

#pragma once

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include <faiss/impl/io.h>

#include "core/errors.h"
#include "core/huge_pages.h"

namespace faiss_ext {

/// Returns the name of a reader or writer for messages; a buffer has none.
template <class Stream>
std::string name_of(const Stream& stream) {
    return stream.name.empty() ? "the data" : stream.name;
}

inline void write_bytes(faiss::IOWriter* f, const void* p, size_t size) {
    errno = 0;
    const size_t done = size == 0 ? 0 : (*f)(p, 1, size);
    const int error = errno;
    FAISS_EXT_THROW_IF_NOT_FMT(
            done == size,
            "cannot write to %s: %zu of %zu bytes written%s%s",
            name_of(*f).c_str(),
            done,
            size,
            error == 0 ? "" : ", ",
            error == 0 ? "" : strerror(error));
}

inline void read_bytes(
        faiss::IOReader* f,
        void* p,
        size_t size,
        const char* field) {
    const size_t done = size == 0 ? 0 : (*f)(p, 1, size);
    FAISS_EXT_THROW_IF_NOT_FMT(
            done == size,
            "%s is truncated: only %zu of %zu bytes of %s are present",
            name_of(*f).c_str(),
            done,
            size,
            field);
}

template <class T>
void write_value(faiss::IOWriter* f, const T& v) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    write_bytes(f, &v, sizeof(v));
}

template <class T>
T read_value(faiss::IOReader* f, const char* field) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    if constexpr (std::is_same_v<T, bool>) {
        const auto byte = read_value<uint8_t>(f, field);
        FAISS_EXT_THROW_IF_NOT_FMT(
                byte <= 1,
                "%s is damaged: %s is %d, expected 0 or 1",
                name_of(*f).c_str(),
                field,
                int(byte));
        return byte == 1;
    } else {
        T v;
        read_bytes(f, &v, sizeof(v), field);
        return v;
    }
}

/// Reads an integer in [low, high]; any other value means that the file is
/// damaged.
template <class T>
T read_value_in(faiss::IOReader* f, const char* field, T low, T high) {
    const T v = read_value<T>(f, field);
    FAISS_EXT_THROW_IF_NOT_FMT(
            v >= low && v <= high,
            "%s is damaged: %s is %" PRId64 ", expected %" PRId64
            " to %" PRId64,
            name_of(*f).c_str(),
            field,
            int64_t(v),
            int64_t(low),
            int64_t(high));
    return v;
}

template <class Vector>
void write_vector(faiss::IOWriter* f, const Vector& v) {
    write_value(f, uint64_t(v.size()));
    write_bytes(f, v.data(), v.size() * sizeof(*v.data()));
}

/// Reads n items into an array with resize(n) and data(). Memory grows with the
/// bytes that were read, so that a damaged length cannot ask for terabytes.
template <class Resize, class Data>
void read_items(
        faiss::IOReader* f,
        uint64_t size,
        size_t item_size,
        Resize&& resize,
        Data&& data,
        const char* field) {
    const uint64_t step = (uint64_t(1) << 20) / item_size;
    resize(0);
    for (uint64_t i = 0; i < size; i += step) {
        const uint64_t m = std::min(step, size - i);
        resize(i + m);
        char* to = static_cast<char*>(static_cast<void*>(data()));
        read_bytes(f, to + i * item_size, m * item_size, field);
    }
    prefer_huge_pages(Piece{data(), size * item_size});
}

/// Reads a vector of any length.
template <class Vector>
void read_vector(faiss::IOReader* f, Vector& v, const char* field) {
    using T = std::remove_reference_t<decltype(*v.data())>;
    const auto size = read_value<uint64_t>(f, field);
    read_items(
            f,
            size,
            sizeof(T),
            [&](size_t n) { v.resize(n); },
            [&] { return v.data(); },
            field);
}

/// Reads a vector that must have `size` elements.
template <class Vector>
void read_vector(
        faiss::IOReader* f,
        Vector& v,
        uint64_t size,
        const char* field) {
    read_vector(f, v, field);
    FAISS_EXT_THROW_IF_NOT_FMT(
            v.size() == size,
            "%s is damaged: %s has %zu elements, expected %" PRIu64,
            name_of(*f).c_str(),
            field,
            size_t(v.size()),
            size);
}

inline void write_string(faiss::IOWriter* f, const std::string& s) {
    write_vector(f, s);
}

inline std::string read_string(faiss::IOReader* f, const char* field) {
    std::string s;
    s.resize(read_value_in<uint64_t>(f, field, 0, 1 << 20));
    read_bytes(f, s.data(), s.size(), field);
    return s;
}

} // namespace faiss_ext
