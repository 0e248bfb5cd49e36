// SPDX-License-Identifier: MIT
// Frames, with arbitrary content: lengths, blocks and checksums.

#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include <faiss/impl/io.h>

#include "core/io_fields.h"
#include "io/frame.h"
#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

using Bytes = std::vector<uint8_t>;
using faiss::IOReader;
using faiss::IOWriter;

constexpr size_t block = 1 << 20;
const char* const magic = "Test";

Bytes random_bytes(size_t size, uint64_t seed = 1) {
    Bytes bytes(size);
    for (size_t i = 0; i < size; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = uint8_t(seed >> 56);
    }
    return bytes;
}

Bytes framed(const Bytes& content, size_t piece = SIZE_MAX) {
    faiss::VectorIOWriter writer;
    write_frame(
            magic,
            [&](IOWriter* f) {
                for (size_t i = 0; i < content.size();) {
                    const size_t m = std::min(piece, content.size() - i);
                    write_bytes(f, &content[i], m);
                    i += m;
                }
            },
            &writer);
    return writer.data;
}

/// Reads the content in pieces. The rest of the stream must remain unread.
Bytes unframed(
        const Bytes& file,
        size_t length,
        size_t piece = SIZE_MAX,
        size_t rest = 0) {
    faiss::VectorIOReader reader;
    reader.data = file;
    reader.rp = magic_size;
    Bytes content(length);
    read_frame(magic, &reader, 0, [&](IOReader* f) {
        for (size_t i = 0; i < length;) {
            const size_t m = std::min(piece, length - i);
            read_bytes(f, &content[i], m, "content");
            i += m;
        }
    });
    EXPECT_EQ(reader.rp + rest, file.size());
    return content;
}

TEST(Frame, ContentsOfAllLengths) {
    for (size_t length :
         {size_t(0), size_t(1), block - 1, block, block + 1, 3 * block + 7}) {
        const Bytes content = random_bytes(length);
        const Bytes file = framed(content);
        const size_t blocks = (length + block - 1) / block;
        const size_t header = 4 + 4 + 8 + 8 * blocks + 8;
        EXPECT_EQ(file.size(), (header + 63) / 64 * 64 + length);
        for (size_t piece : {SIZE_MAX, block, size_t(1000003), size_t(4097)}) {
            EXPECT_EQ(framed(content, piece), file) << piece;
            EXPECT_EQ(unframed(file, length, piece), content) << piece;
        }
    }
}

TEST(Frame, DamageIsSeenBeforeABlockIsUsed) {
    const Bytes content = random_bytes(3 * block + 100), file = framed(content);
    const size_t begin = file.size() - content.size();
    for (size_t at : {size_t(0), block - 1, block, 2 * block + 17, 3 * block}) {
        Bytes bad = file;
        bad[begin + at] ^= 4;
        for (size_t piece : {SIZE_MAX, block, size_t(1000)}) {
            faiss::VectorIOReader reader;
            reader.data = bad;
            reader.rp = magic_size;
            size_t used = 0; // bytes handed out so far
            EXPECT_TRUE(throws(
                    [&] {
                        read_frame(magic, &reader, 0, [&](IOReader* f) {
                            Bytes out(content.size());
                            while (used < out.size()) {
                                const size_t m =
                                        std::min(piece, out.size() - used);
                                read_bytes(f, &out[used], m, "content");
                                used += m;
                            }
                        });
                    },
                    "block " + std::to_string(at / block + 1) + " of 4"));
            EXPECT_LE(used, at / block * block);
        }
    }
    // swapped blocks, and headers of other frames
    Bytes swapped = file;
    std::swap_ranges(
            swapped.begin() + begin,
            swapped.begin() + begin + block,
            swapped.begin() + begin + block);
    EXPECT_TRUE(throws([&] { unframed(swapped, content.size()); }, "block 1"));
    Bytes other = framed(random_bytes(3 * block + 100, 2));
    std::copy_n(other.begin(), begin, swapped.begin());
    EXPECT_TRUE(throws([&] { unframed(swapped, content.size()); }, "block 1"));
}

TEST(Frame, HeadersThatLie) {
    const Bytes file = framed(random_bytes(1000));
    // lengths of terabytes, and lengths that overflow
    for (uint64_t length :
         {uint64_t(999),
          uint64_t(1001),
          uint64_t(1) << 30,
          uint64_t(1) << 45,
          uint64_t(1) << 63,
          ~uint64_t(0)}) {
        Bytes bad = file;
        std::memcpy(&bad[8], &length, sizeof(length));
        EXPECT_TRUE(throws([&] { unframed(bad, 1000); })) << length;
    }
    for (size_t i = magic_size; i < 64; i++) {
        Bytes bad = file;
        bad[i] ^= 1;
        EXPECT_TRUE(throws([&] { unframed(bad, 1000); })) << i;
    }
}

TEST(Frame, AllOfTheContentIsRead) {
    const Bytes file = framed(random_bytes(1000));
    EXPECT_TRUE(throws([&] { unframed(file, 999); }, "1 bytes follow"));
    EXPECT_TRUE(throws([&] { unframed(file, 1001); }, "truncated"));
    Bytes two = file;
    two.insert(two.end(), file.begin(), file.end());
    EXPECT_EQ(unframed(two, 1000, SIZE_MAX, file.size()), random_bytes(1000));
}

TEST(Frame, ContentThatChangesMeanwhile) {
    faiss::VectorIOWriter writer;
    int calls = 0;
    EXPECT_TRUE(throws(
            [&] {
                write_frame(
                        magic,
                        [&](IOWriter* f) { write_value(f, calls++); },
                        &writer);
            },
            "changed while it was written"));
    EXPECT_EQ(calls, 2);
}

TEST(Frame, PartsWithALength) {
    faiss::VectorIOWriter writer;
    write_frame(
            magic,
            [](IOWriter* f) {
                write_with_length(
                        [](IOWriter* part) { write_string(part, "inside"); },
                        f);
                write_value(f, 7);
            },
            &writer);
    const auto with = [&](const ReadContent& inside) {
        faiss::VectorIOReader reader;
        reader.data = writer.data;
        reader.rp = magic_size;
        read_frame(magic, &reader, 0, [&](IOReader* f) {
            read_with_length(f, inside);
            EXPECT_EQ(read_value<int>(f, "number"), 7);
        });
    };
    with([](IOReader* f) { EXPECT_EQ(read_string(f, "text"), "inside"); });
    EXPECT_TRUE(throws(
            [&] { with([](IOReader* f) { read_value<int>(f, "length"); }); },
            "10 bytes follow"));
    EXPECT_TRUE(throws(
            [&] {
                with([](IOReader* f) {
                    read_string(f, "text");
                    read_value<int>(f, "more");
                });
            },
            "truncated"));
}

} // namespace
