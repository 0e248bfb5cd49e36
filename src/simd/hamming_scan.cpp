// SPDX-License-Identifier: MIT
#include "simd/hamming_scan.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

// lets Highway use AVX-512's popcount if there is one
#define HWY_WANT_AVX3_DL

#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/hamming_scan.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/aligned_allocator.h>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<uint64_t>;
using Vec = hn::Vec<Tag>;

/// Codes that are compared side by side, one in each lane.
constexpr size_t group_size = hn::MaxLanes(Tag());
static_assert(group_size <= hamming_group);

/// Appends the keys of the lanes whose distance is below the bound.
HWY_INLINE void push(
        HammingSink& sink,
        Vec distances,
        hn::Mask<Tag> is_below,
        uint64_t position,
        size_t count) {
    const Tag tag;
    const Vec lane = hn::Iota(tag, 0);
    const Vec key =
            hn::Or(hn::ShiftLeft<hamming_shift>(distances),
                   hn::Add(lane, hn::Set(tag, position)));
    sink.size += hn::CompressStore(
            key,
            hn::And(is_below, hn::Lt(lane, hn::Set(tag, uint64_t(count)))),
            tag,
            sink.keys + sink.size);
    if (sink.size >= sink.capacity) {
        sink.make_room(sink);
    }
}

/// Whether load_group is defined for W words.
template <size_t W>
constexpr bool loads_groups = W >= 1 && W <= 4;

/// Loads a group of codes: word w of each into words[w].
template <size_t W>
HWY_INLINE void load_group(const uint8_t* codes, Vec* words) {
    const Tag tag;
    const auto* in = reinterpret_cast<const uint64_t*>(codes);
    if constexpr (W == 1) {
        words[0] = hn::LoadU(tag, in);
    } else if constexpr (W == 2) {
        hn::LoadInterleaved2(tag, in, words[0], words[1]);
    } else if constexpr (W == 3) {
        hn::LoadInterleaved3(tag, in, words[0], words[1], words[2]);
    } else if constexpr (W == 4) {
        hn::LoadInterleaved4(tag, in, words[0], words[1], words[2], words[3]);
    }
}

/// Writes word w of code i of a group to out[w * group_size + i].
template <size_t W>
HWY_INLINE void transpose_whole(const uint8_t* codes, uint64_t* out) {
    if constexpr (loads_groups<W>) {
        Vec words[W];
        load_group<W>(codes, words);
        for (size_t w = 0; w < W; w++) {
            hn::StoreU(words[w], Tag(), out + w * group_size);
        }
    }
}

/// Like transpose_whole, for any size and for groups that are not full. Pads
/// with zeros.
void transpose_any(
        size_t count,
        const uint8_t* codes,
        size_t code_size,
        size_t words,
        uint64_t* out) {
    const size_t whole = code_size / 8, rest = code_size % 8;
    if (count < group_size || rest > 0) {
        std::memset(out, 0, words * group_size * sizeof(uint64_t));
    }
    for (size_t i = 0; i < count; i++) {
        const uint8_t* code = codes + i * code_size;
        for (size_t w = 0; w < whole; w++) {
            std::memcpy(out + w * group_size + i, code + w * 8, 8);
        }
        if (rest > 0) {
            std::memcpy(out + whole * group_size + i, code + whole * 8, rest);
        }
    }
}

/// Compares one query with groups of codes. Meanwhile prefetches as many bytes
/// at `next` as are compared. W is the number of words, or 0 for any.
template <size_t W>
void scan_groups(
        size_t ngroups,
        const uint64_t* HWY_RESTRICT block,
        size_t words,
        const uint64_t* HWY_RESTRICT query,
        size_t n,
        uint64_t position,
        const uint8_t* next,
        HammingSink& sink) {
    const Tag tag;
    const size_t group_bytes = words * group_size * sizeof(uint64_t);
    Vec q[W == 0 ? 1 : W];
    for (size_t w = 0; w < W; w++) {
        q[w] = hn::Set(tag, query[w]);
    }
    Vec bound = hn::Set(tag, uint64_t(sink.bound));
    for (size_t g = 0; g < ngroups; g++) {
        const uint64_t* group = block + g * words * group_size;
        if (next) {
            for (size_t line = 0; line < group_bytes; line += 64) {
                hwy::Prefetch(next + g * group_bytes + line);
            }
        }
        Vec sum = hn::Zero(tag);
        if constexpr (W > 0) {
            for (size_t w = 0; w < W; w++) {
                sum = hn::Add(
                        sum,
                        hn::PopulationCount(hn::Xor(
                                hn::LoadU(tag, group + w * group_size), q[w])));
            }
        } else {
            Vec other = hn::Zero(tag);
            size_t w = 0;
            for (; w + 2 <= words; w += 2) {
                const uint64_t* at = group + w * group_size;
                sum = hn::Add(
                        sum,
                        hn::PopulationCount(hn::Xor(
                                hn::LoadU(tag, at), hn::Set(tag, query[w]))));
                other =
                        hn::Add(other,
                                hn::PopulationCount(
                                        hn::Xor(hn::LoadU(tag, at + group_size),
                                                hn::Set(tag, query[w + 1]))));
            }
            if (w < words) {
                sum =
                        hn::Add(sum,
                                hn::PopulationCount(hn::Xor(
                                        hn::LoadU(tag, group + w * group_size),
                                        hn::Set(tag, query[w]))));
            }
            sum = hn::Add(sum, other);
        }
        const auto is_below = hn::Lt(sum, bound);
        if (HWY_LIKELY(hn::AllFalse(tag, is_below))) {
            continue;
        }
        push(sink,
             sum,
             is_below,
             position + g * group_size,
             n - g * group_size);
        bound = hn::Set(tag, uint64_t(sink.bound));
    }
}

/// Compares one query with codes of `vectors` whole vectors each, without
/// transposing them, which pays only for several queries.
void scan_alone(
        const uint64_t* HWY_RESTRICT query,
        size_t n,
        const uint8_t* HWY_RESTRICT codes,
        size_t vectors,
        uint64_t position,
        HammingSink& sink) {
    constexpr size_t ahead = 4096;
    const Tag tag;
    const size_t code_size = vectors * group_size * sizeof(uint64_t);
    for (size_t i = 0; i < n; i++) {
        const uint8_t* code = codes + i * code_size;
        Vec sum = hn::Zero(tag);
        for (size_t v = 0; v < vectors; v++) {
            const auto* words = reinterpret_cast<const uint64_t*>(code);
            hwy::Prefetch(code + ahead + v * group_size * sizeof(uint64_t));
            sum =
                    hn::Add(sum,
                            hn::PopulationCount(hn::Xor(
                                    hn::LoadU(tag, words + v * group_size),
                                    hn::LoadU(tag, query + v * group_size))));
        }
        const uint64_t distance = hn::GetLane(hn::SumOfLanes(tag, sum));
        if (HWY_UNLIKELY(distance < sink.bound)) {
            sink.keys[sink.size++] = distance << hamming_shift | (position + i);
            if (sink.size >= sink.capacity) {
                sink.make_room(sink);
            }
        }
    }
}

/// Compares one query with codes of W whole words each.
template <size_t W>
void scan_few_words(
        const uint64_t* HWY_RESTRICT query,
        size_t n,
        const uint8_t* HWY_RESTRICT codes,
        uint64_t position,
        HammingSink& sink) {
    constexpr size_t bytes_of_group = group_size * W * sizeof(uint64_t);
    const Tag tag;
    Vec q[W];
    for (size_t w = 0; w < W; w++) {
        q[w] = hn::Set(tag, query[w]);
    }
    Vec bound = hn::Set(tag, uint64_t(sink.bound));
    const auto compare = [&](const uint8_t* group, size_t i, size_t count) {
        Vec words[W];
        load_group<W>(group, words);
        Vec sum = hn::PopulationCount(hn::Xor(words[0], q[0]));
        for (size_t w = 1; w < W; w++) {
            sum = hn::Add(sum, hn::PopulationCount(hn::Xor(words[w], q[w])));
        }
        const auto is_below = hn::Lt(sum, bound);
        if (HWY_UNLIKELY(!hn::AllFalse(tag, is_below))) {
            push(sink, sum, is_below, position + i, count);
            bound = hn::Set(tag, uint64_t(sink.bound));
        }
    };
    size_t i = 0;
    for (; i + group_size <= n; i += group_size) {
        compare(codes + i * W * sizeof(uint64_t), i, group_size);
    }
    if (i < n) {
        alignas(64) uint8_t rest[bytes_of_group] = {};
        std::memcpy(
                rest,
                codes + i * W * sizeof(uint64_t),
                (n - i) * W * sizeof(uint64_t));
        compare(rest, i, n - i);
    }
}

template <size_t W>
void scan(
        size_t nq,
        const uint64_t* queries,
        size_t n,
        const uint8_t* codes,
        size_t code_size,
        uint64_t position,
        HammingSink* const* sinks) {
    const size_t words = W > 0 ? W : (code_size + 7) / 8;
    constexpr size_t vector_bytes = group_size * sizeof(uint64_t);
    if (nq == 1 && words >= 8 && code_size % vector_bytes == 0) {
        scan_alone(
                queries,
                n,
                codes,
                code_size / vector_bytes,
                position,
                *sinks[0]);
        return;
    }
    const bool whole = loads_groups<W> && code_size == 8 * W;
    if constexpr (loads_groups<W>) {
        if (nq == 1 && whole) {
            scan_few_words<W>(queries, n, codes, position, *sinks[0]);
            return;
        }
    }
    // 16 KB of codes are transposed, then compared with all queries
    const size_t groups = std::clamp<size_t>(
            2048 / (words * group_size),
            1,
            std::max<size_t>(1, (n + group_size - 1) / group_size));
    const size_t step = groups * group_size;
    const auto block = hwy::AllocateAligned<uint64_t>(words * step);
    for (size_t i = 0; i < n; i += step) {
        const size_t count = std::min(step, n - i);
        const size_t ngroups = (count + group_size - 1) / group_size;
        for (size_t g = 0; g < ngroups; g++) {
            const size_t j = i + g * group_size;
            uint64_t* to = block.get() + g * words * group_size;
            if (whole && j + group_size <= n) {
                transpose_whole<W>(codes + j * code_size, to);
            } else {
                transpose_any(
                        std::min(group_size, n - j),
                        codes + j * code_size,
                        code_size,
                        words,
                        to);
            }
        }
        for (size_t q = 0; q < nq; q++) {
            scan_groups<W>(
                    ngroups,
                    block.get(),
                    words,
                    queries + q * words,
                    count,
                    position + i,
                    q == 0 && i + step < n ? codes + (i + step) * code_size
                                           : nullptr,
                    *sinks[q]);
        }
    }
}

void hamming_scan_target(
        size_t nq,
        const uint64_t* queries,
        size_t n,
        const uint8_t* codes,
        size_t code_size,
        uint64_t position,
        HammingSink* const* sinks) {
    switch ((code_size + 7) / 8) {
        case 1:
            return scan<1>(nq, queries, n, codes, code_size, position, sinks);
        case 2:
            return scan<2>(nq, queries, n, codes, code_size, position, sinks);
        case 3:
            return scan<3>(nq, queries, n, codes, code_size, position, sinks);
        case 4:
            return scan<4>(nq, queries, n, codes, code_size, position, sinks);
        case 8:
            return scan<8>(nq, queries, n, codes, code_size, position, sinks);
        case 16:
            return scan<16>(nq, queries, n, codes, code_size, position, sinks);
        default:
            return scan<0>(nq, queries, n, codes, code_size, position, sinks);
    }
}

/// W is the number of whole words, or 0 for any.
template <size_t W>
void distances_of(
        const uint8_t* code,
        size_t n,
        const uint8_t* codes,
        size_t code_size,
        float* distances) {
    const size_t words = W > 0 ? W : code_size / 8;
    const bool has_half = W == 0 && code_size % 8 != 0;
    const auto differing = [](const uint8_t* a, const uint8_t* b, size_t size) {
        uint64_t x = 0, y = 0;
        std::memcpy(&x, a, size);
        std::memcpy(&y, b, size);
        return size_t(std::popcount(x ^ y));
    };
    for (size_t i = 0; i < n; i++) {
        const uint8_t* other = codes + i * code_size;
        size_t sum = 0;
        for (size_t w = 0; w < words; w++) {
            sum += differing(code + 8 * w, other + 8 * w, 8);
        }
        if (has_half) {
            sum += differing(code + 8 * words, other + 8 * words, 4);
        }
        distances[i] = float(sum);
    }
}

void hamming_distances_target(
        const uint8_t* code,
        size_t n,
        const uint8_t* codes,
        size_t code_size,
        float* distances) {
    switch (code_size) {
        case 8:
            return distances_of<1>(code, n, codes, code_size, distances);
        case 16:
            return distances_of<2>(code, n, codes, code_size, distances);
        case 32:
            return distances_of<4>(code, n, codes, code_size, distances);
        case 64:
            return distances_of<8>(code, n, codes, code_size, distances);
        default:
            return distances_of<0>(code, n, codes, code_size, distances);
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(hamming_scan_target);
HWY_EXPORT(hamming_distances_target);

void hamming_scan(
        size_t nq,
        const uint64_t* queries,
        size_t n,
        const uint8_t* codes,
        size_t code_size,
        uint64_t position,
        HammingSink* const* sinks) {
    HWY_DYNAMIC_DISPATCH(hamming_scan_target)
    (nq, queries, n, codes, code_size, position, sinks);
}

void hamming_distances(
        const uint8_t* code,
        size_t n,
        const uint8_t* codes,
        size_t code_size,
        float* distances) {
    HWY_DYNAMIC_DISPATCH(hamming_distances_target)
    (code, n, codes, code_size, distances);
}

} // namespace faiss_ext::simd
#endif
