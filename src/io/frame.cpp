// SPDX-License-Identifier: MIT
#include "io/frame.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/aligned_arrays.h"
#include "core/errors.h"
#include "core/io_fields.h"
#include "io/io_compat.h"

namespace faiss_ext {

namespace {

using faiss::IOReader;
using faiss::IOWriter;

constexpr size_t block_size = size_t(1) << 20;

size_t block_count(uint64_t length) {
    return length / block_size + (length % block_size != 0);
}

/// Counts bytes and computes the checksums of their blocks. Passes the bytes on
/// to another writer, if there is one.
struct ChecksumWriter : AligningWriter {
    IOWriter* to;
    std::vector<uint64_t> checksums; ///< of complete blocks

    explicit ChecksumWriter(IOWriter* to) : to(to) {
        XXH3_64bits_reset(&state);
    }

    size_t operator()(const void* data, size_t size, size_t nitems) override {
        const size_t items = to ? (*to)(data, size, nitems) : nitems;
        auto* bytes = static_cast<const char*>(data);
        for (size_t n = size * items; n > 0;) {
            const size_t m = std::min(n, block_size - length % block_size);
            XXH3_64bits_update(&state, bytes, m);
            bytes += m;
            n -= m;
            length += m;
            if (length % block_size == 0) {
                end_block();
            }
        }
        return items;
    }

    void finish() {
        if (length % block_size != 0) {
            end_block();
        }
    }

   private:
    XXH3_state_t state;

    void end_block() {
        checksums.push_back(XXH3_64bits_digest(&state));
        XXH3_64bits_reset(&state);
    }
};

struct CountingWriter : IOWriter {
    uint64_t length = 0;

    size_t operator()(const void*, size_t size, size_t nitems) override {
        length += size * nitems;
        return nitems;
    }
};

ChecksumWriter summed(
        const WriteContent& content,
        IOWriter* to,
        const std::string& name) {
    ChecksumWriter writer(to);
    writer.name = name;
    content(&writer);
    writer.finish();
    return writer;
}

/// The part of a frame before the content.
struct FrameHeader {
    uint64_t length = 0;
    std::vector<uint64_t> checksums; ///< of the blocks
    std::array<char, array_alignment> padding = {};

    /// Returns the padding that aligns the content in the frame.
    size_t padding_size() const {
        const size_t rest = magic_size + sizeof(format_version) +
                sizeof(length) + (checksums.size() + 1) * sizeof(uint64_t);
        return -rest % array_alignment;
    }

    uint64_t checksum(const char* magic) const {
        XXH3_state_t state;
        XXH3_64bits_reset(&state);
        const auto add = [&](const void* data, size_t size) {
            XXH3_64bits_update(&state, data, size);
        };
        add(magic, magic_size);
        add(&format_version, sizeof(format_version));
        add(&length, sizeof(length));
        add(checksums.data(), checksums.size() * sizeof(uint64_t));
        add(padding.data(), padding_size());
        return XXH3_64bits_digest(&state);
    }

    void write(const char* magic, IOWriter* f) const {
        write_bytes(f, magic, magic_size);
        write_value(f, format_version);
        write_value(f, length);
        write_bytes(f, checksums.data(), checksums.size() * sizeof(uint64_t));
        write_bytes(f, padding.data(), padding_size());
        write_value(f, checksum(magic));
    }

    void read(const char* magic, IOReader* f) {
        const auto version = read_value<uint32_t>(f, "version");
        FAISS_EXT_THROW_IF_NOT_FMT(
                version == format_version,
                "%s has format version %u, this library reads version %u",
                name_of(*f).c_str(),
                version,
                format_version);
        length = read_value<uint64_t>(f, "length");
        read_items(
                f,
                block_count(length),
                sizeof(uint64_t),
                [&](size_t n) { checksums.resize(n); },
                [&] { return checksums.data(); },
                "checksums");
        read_bytes(f, padding.data(), padding_size(), "the header");
        const auto given = read_value<uint64_t>(f, "the header's checksum");
        FAISS_EXT_THROW_IF_NOT_FMT(
                given == checksum(magic),
                "%s is damaged: its header does not match its checksum",
                name_of(*f).c_str());
    }
};

/// Reads the content of a frame and verifies it block by block.
struct BlockReader : IOReader {
    IOReader* f;
    const FrameHeader& header;
    uint64_t position = 0;

    BlockReader(IOReader* f, const FrameHeader& header) : f(f), header(header) {
        name = name_of(*f);
    }

    size_t operator()(void* data, size_t size, size_t nitems) override {
        if (size == 0) {
            return 0;
        }
        const size_t n =
                std::min<uint64_t>(nitems, (header.length - position) / size);
        auto* to = static_cast<char*>(data);
        for (size_t rest = n * size; rest > 0;) {
            const size_t m = read_some(to, rest);
            to += m;
            rest -= m;
        }
        return n;
    }

    /// Reads to the end, only to verify the checksums.
    void verify() {
        for (size_t block = 0; block < header.checksums.size(); block++) {
            load(block, room_for(block));
        }
    }

   private:
    std::vector<char> buffer; ///< the block at the position

    size_t size_of(size_t block) const {
        return std::min<uint64_t>(
                block_size, header.length - block * block_size);
    }

    char* room_for(size_t block) {
        buffer.resize(size_of(block));
        return buffer.data();
    }

    void load(size_t block, char* to) {
        const size_t size = size_of(block);
        read_bytes(f, to, size, "its content");
        FAISS_EXT_THROW_IF_NOT_FMT(
                XXH3_64bits(to, size) == header.checksums[block],
                "%s is damaged: block %zu of %zu does not match its checksum",
                name_of(*f).c_str(),
                block + 1,
                header.checksums.size());
    }

    /// Copies bytes of one block.
    size_t read_some(char* to, size_t wanted) {
        const size_t block = position / block_size;
        const size_t begin = position % block_size;
        const size_t n = std::min(wanted, size_of(block) - begin);
        if (n == size_of(block)) {
            load(block, to);
        } else {
            if (begin == 0) {
                load(block, room_for(block));
            }
            std::memcpy(to, buffer.data() + begin, n);
        }
        position += n;
        return n;
    }
};

/// Limits another reader to a number of bytes.
struct LimitedReader : IOReader {
    IOReader* f;
    uint64_t rest;

    LimitedReader(IOReader* f, uint64_t rest) : f(f), rest(rest) {
        name = f->name;
    }

    size_t operator()(void* data, size_t size, size_t nitems) override {
        if (size == 0) {
            return 0;
        }
        const size_t n =
                (*f)(data, size, std::min<uint64_t>(nitems, rest / size));
        rest -= n * size;
        return n;
    }
};

void check_end(const IOReader* f, uint64_t rest) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            rest == 0,
            "%s is damaged: %" PRIu64 " bytes follow the end of an object",
            name_of(*f).c_str(),
            rest);
}

/// Calls read() and throws unless it consumes exactly `length` bytes of f.
template <class Read>
void read_exactly(IOReader* f, uint64_t length, Read&& read) {
    const uint64_t begin = *position_of(f);
    read();
    const uint64_t done = *position_of(f) - begin;
    FAISS_EXT_THROW_IF_NOT_FMT(
            done == length,
            "%s is damaged: an object ends after %" PRIu64 " of %" PRIu64
            " bytes",
            name_of(*f).c_str(),
            done,
            length);
}

} // namespace

void write_frame(const char* magic, const WriteContent& content, IOWriter* f) {
    const ChecksumWriter expected = summed(content, nullptr, name_of(*f));
    const FrameHeader header{expected.length, expected.checksums, {}};
    header.write(magic, f);
    const ChecksumWriter written = summed(content, f, name_of(*f));
    FAISS_EXT_THROW_IF_NOT_FMT(
            written.checksums == expected.checksums,
            "%s is not complete: the object changed while it was written",
            name_of(*f).c_str());
}

void read_frame(
        const char* magic,
        IOReader* f,
        int io_flags,
        const ReadContent& content) {
    FrameHeader header;
    header.read(magic, f);
    BlockReader blocks(f, header);
    if (asks_for_mapping(io_flags) && position_of(f)) {
        blocks.verify();
        step_back(f, header.length);
        read_exactly(f, header.length, [&] { content(f); });
    } else {
        content(&blocks);
        check_end(f, header.length - blocks.position);
    }
}

void write_with_length(const WriteContent& content, IOWriter* f) {
    CountingWriter counter;
    content(&counter);
    write_value(f, counter.length);
    content(f);
}

void read_with_length(IOReader* f, const ReadContent& content) {
    const auto length = read_value<uint64_t>(f, "length of a part");
    if (position_of(f)) { // mapped: otherwise f would be a BlockReader
        read_exactly(f, length, [&] { content(f); });
    } else {
        LimitedReader part(f, length);
        content(&part);
        check_end(f, part.rest);
    }
}

} // namespace faiss_ext
