// SPDX-License-Identifier: MIT
#include "simd/pq4_scan.h"

#include <algorithm>
#include <cstring>

#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/pq4_scan.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::CappedTag<float, 16>;

void make_pq4_tables_target(
        size_t parts,
        size_t size,
        const float* HWY_RESTRICT codebook,
        const float* HWY_RESTRICT q,
        float factor,
        const float* HWY_RESTRICT plus,
        uint8_t* HWY_RESTRICT tables,
        float& scale,
        float& bias,
        float* HWY_RESTRICT scratch) {
    const Lanes tag;
    constexpr size_t lanes = hn::MaxLanes(Lanes()), vectors = 16 / lanes;
    float* const lowest = scratch + 16 * parts;
    float* const width = lowest + parts;
    bias = 0;
    for (size_t m = 0; m < parts; m++) {
        hn::Vec<Lanes> sum[vectors];
        for (size_t v = 0; v < vectors; v++) {
            sum[v] = plus ? hn::LoadU(tag, plus + 16 * m + v * lanes)
                          : hn::Zero(tag);
        }
        for (size_t j = m * size; j < (m + 1) * size; j++) {
            const auto component = hn::Set(tag, factor * q[j]);
            for (size_t v = 0; v < vectors; v++) {
                sum[v] = hn::MulAdd(
                        component,
                        hn::LoadU(tag, codebook + 16 * j + v * lanes),
                        sum[v]);
            }
        }
        auto low = sum[0], high = sum[0];
        for (size_t v = 0; v < vectors; v++) {
            low = hn::Min(low, sum[v]);
            high = hn::Max(high, sum[v]);
            hn::StoreU(sum[v], tag, scratch + 16 * m + v * lanes);
        }
        lowest[m] = hn::GetLane(hn::MinOfLanes(tag, low));
        bias += lowest[m];
        width[m] = hn::GetLane(hn::MaxOfLanes(tag, high)) - lowest[m];
    }
    // rounding may raise each of the four entries by a half
    const float widest = widest_pq4_pair(parts, width);
    scale = widest > 0 ? widest / (pq4_max_sum - 2) : 1;
    const auto inverse = hn::Set(tag, 1 / scale), half = hn::Set(tag, 0.5f);
    const hn::RebindToSigned<Lanes> ints;
    const hn::Rebind<uint8_t, Lanes> bytes;
    for (size_t m = 0; m < parts; m++) {
        const auto low = hn::Set(tag, lowest[m]);
        for (size_t i = 16 * m; i < 16 * (m + 1); i += lanes) {
            // NaN, from a query that is too long, becomes 0
            const auto entry =
                    hn::Max(hn::MulAdd(
                                    hn::Sub(hn::LoadU(tag, scratch + i), low),
                                    inverse,
                                    half),
                            hn::Zero(tag));
            hn::StoreU(
                    hn::DemoteTo(
                            bytes,
                            hn::ConvertTo(
                                    ints,
                                    hn::Min(entry, hn::Set(tag, pq4_max_sum)))),
                    bytes,
                    tables + i);
        }
    }
}

#if HWY_TARGET == HWY_SCALAR

size_t pq4_tables_size_target(size_t rows) {
    return rows * 32;
}

void arrange_pq4_tables_target(
        size_t rows,
        const uint8_t* tables,
        uint8_t* arranged) {
    std::memcpy(arranged, tables, rows * 32);
}

void scan_pq4_target(
        size_t rows,
        const uint8_t* tables,
        float scale,
        size_t nblocks,
        const uint8_t* codes,
        const float* offsets,
        float bound,
        Pq4Hits& hits) {
    for (size_t i = 0; i < nblocks * pq4_block; i++) {
        const uint8_t* code = codes + i / pq4_block * rows * pq4_block +
                pq4_byte(i % pq4_block);
        int sum = 0;
        for (size_t r = 0; r < rows; r++) {
            const uint8_t numbers = code[r * pq4_block];
            sum += tables[32 * r + numbers % 16] +
                    tables[32 * r + 16 + numbers / 16];
        }
        const float score = offsets[i] + scale * float(sum);
        if (score < bound) {
            hits.positions[hits.size] = uint32_t(i);
            hits.scores[hits.size++] = score;
        }
    }
}

#else

using Bytes = hn::CappedTag<uint8_t, 64>;
using Words = hn::Repartition<uint16_t, Bytes>;
using Floats = hn::CappedTag<float, 16>;

constexpr size_t vector_bytes = hn::MaxLanes(Bytes());
/// rows in one vector, or vectors for one row
constexpr size_t rows_per_vector =
        vector_bytes > pq4_block ? vector_bytes / pq4_block : 1;
constexpr size_t vectors_per_row =
        vector_bytes < pq4_block ? pq4_block / vector_bytes : 1;

/// Returns the number of steps. A step has one vector for the low numbers and
/// one for the high numbers.
size_t num_steps(size_t rows) {
    return (rows + rows_per_vector - 1) / rows_per_vector;
}

size_t pq4_tables_size_target(size_t rows) {
    return num_steps(rows) * 2 * vector_bytes;
}

void arrange_pq4_tables_target(
        size_t rows,
        const uint8_t* tables,
        uint8_t* arranged) {
    for (size_t step = 0; step < num_steps(rows); step++) {
        for (size_t high = 0; high < 2; high++) {
            for (size_t part = 0; part < vector_bytes / 16; part++) {
                // a shuffle stays within 16 bytes
                const size_t row =
                        step * rows_per_vector + part * 16 / pq4_block;
                if (row < rows) {
                    std::memcpy(arranged, tables + (2 * row + high) * 16, 16);
                } else {
                    std::memset(arranged, 0, 16);
                }
                arranged += 16;
            }
        }
    }
}

/// Returns the high 4 bits of each byte.
HWY_INLINE hn::Vec<Bytes> high_numbers(hn::Vec<Bytes> numbers) {
    const Bytes bytes;
    const auto shifted = hn::ShiftRight<4>(hn::BitCast(Words(), numbers));
    return hn::And(hn::BitCast(bytes, shifted), hn::Set(bytes, 15));
}

/// Looks up the entries of the two parts of a row and adds them.
HWY_INLINE hn::Vec<Bytes> look_up(
        const uint8_t* numbers_at,
        hn::Vec<Bytes> low,
        hn::Vec<Bytes> high) {
    const Bytes bytes;
    const auto numbers = hn::LoadU(bytes, numbers_at);
    return hn::Add(
            hn::TableLookupBytes(low, hn::And(numbers, hn::Set(bytes, 15))),
            hn::TableLookupBytes(high, high_numbers(numbers)));
}

/// Adds bytes to the sums of words and to the sums of their high bytes.
HWY_INLINE void add_bytes(
        hn::Vec<Bytes> bytes,
        hn::Vec<Words>& all,
        hn::Vec<Words>& odd) {
    const auto both = hn::BitCast(Words(), bytes);
    all = hn::Add(all, both);
    odd = hn::Add(odd, hn::ShiftRight<8>(both));
}

/// Stores sums of codes of a block. If the vector holds several rows side by
/// side, they are added together.
HWY_INLINE void store_sums(hn::Vec<Words> sums, uint16_t* HWY_RESTRICT out) {
    const Words words;
    if constexpr (rows_per_vector == 1) {
        hn::StoreU(sums, words, out);
    } else {
        const hn::Half<Words> half;
        hn::StoreU(
                hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums)),
                half,
                out);
    }
}

/// Computes the sums of B blocks: first the even bytes, then the odd ones.
template <size_t B>
HWY_INLINE void sum_blocks(
        size_t rows,
        const uint8_t* HWY_RESTRICT tables,
        const uint8_t* HWY_RESTRICT codes,
        uint16_t* HWY_RESTRICT sums) {
    const Bytes bytes;
    const size_t block_bytes = rows * pq4_block;
    hn::Vec<Words> all[B][vectors_per_row], odd[B][vectors_per_row];
    for (size_t b = 0; b < B; b++) {
        for (size_t v = 0; v < vectors_per_row; v++) {
            all[b][v] = odd[b][v] = hn::Zero(Words());
        }
    }
    const auto table = [&](size_t step, size_t high) HWY_ATTR {
        return hn::LoadU(bytes, tables + (2 * step + high) * vector_bytes);
    };
    const auto at = [&](size_t step, size_t b, size_t v) HWY_ATTR {
        return codes + b * block_bytes +
                (step * vectors_per_row + v) * vector_bytes;
    };
    // rows r and r + 2 of four are added up as bytes
    constexpr size_t apart = 2 / rows_per_vector;
    const size_t whole = rows / rows_per_vector;
    size_t s = 0;
    for (; s + 2 * apart <= whole; s += 2 * apart) {
        for (size_t i = s; i < s + apart; i++) {
            const auto low = table(i, 0), high = table(i, 1);
            const auto low2 = table(i + apart, 0), high2 = table(i + apart, 1);
            for (size_t b = 0; b < B; b++) {
                for (size_t v = 0; v < vectors_per_row; v++) {
                    const auto sum =
                            hn::Add(look_up(at(i, b, v), low, high),
                                    look_up(at(i + apart, b, v), low2, high2));
                    add_bytes(sum, all[b][v], odd[b][v]);
                }
            }
        }
    }
    for (; s < whole; s++) {
        for (size_t b = 0; b < B; b++) {
            for (size_t v = 0; v < vectors_per_row; v++) {
                const auto sum = look_up(at(s, b, v), table(s, 0), table(s, 1));
                add_bytes(sum, all[b][v], odd[b][v]);
            }
        }
    }
    // the tables of missing rows are zeros
    if (whole * rows_per_vector < rows) {
        for (size_t b = 0; b < B; b++) {
            HWY_ALIGN uint8_t rest[vector_bytes] = {};
            std::memcpy(
                    rest, at(whole, b, 0), block_bytes - whole * vector_bytes);
            add_bytes(
                    look_up(rest, table(whole, 0), table(whole, 1)),
                    all[b][0],
                    odd[b][0]);
        }
    }
    for (size_t b = 0; b < B; b++) {
        for (size_t v = 0; v < vectors_per_row; v++) {
            uint16_t* out = sums + b * pq4_block + v * vector_bytes / 2;
            const auto even = hn::Sub(all[b][v], hn::ShiftLeft<8>(odd[b][v]));
            store_sums(even, out);
            store_sums(odd[b][v], out + pq4_block / 2);
        }
    }
}

/// Appends the codes of a block whose score is below the bound.
HWY_INLINE void append_hits(
        const uint16_t* HWY_RESTRICT sums,
        const float* HWY_RESTRICT offsets,
        float scale,
        float bound,
        size_t position,
        Pq4Hits& hits) {
    const Floats floats;
    const hn::RebindToSigned<Floats> ints;
    const hn::RebindToUnsigned<Floats> positions;
    const hn::Rebind<uint16_t, Floats> words;
    const size_t lanes = hn::Lanes(floats);
    const auto first = hn::Iota(positions, 0);
    for (size_t i = 0; i < pq4_block; i += lanes) {
        const auto sum = hn::ConvertTo(
                floats, hn::PromoteTo(ints, hn::LoadU(words, sums + i)));
        const auto score = hn::MulAdd(
                hn::Set(floats, scale), sum, hn::LoadU(floats, offsets + i));
        const auto is_below = hn::Lt(score, hn::Set(floats, bound));
        if (HWY_UNLIKELY(!hn::AllFalse(floats, is_below))) {
            // CompressStore is many times slower on Zen 4
            hn::StoreU(
                    hn::Compress(
                            hn::Add(first,
                                    hn::Set(positions, uint32_t(position + i))),
                            hn::RebindMask(positions, is_below)),
                    positions,
                    hits.positions + hits.size);
            hn::StoreU(
                    hn::Compress(score, is_below),
                    floats,
                    hits.scores + hits.size);
            hits.size += hn::CountTrue(floats, is_below);
        }
    }
}

void scan_pq4_target(
        size_t rows,
        const uint8_t* tables,
        float scale,
        size_t nblocks,
        const uint8_t* codes,
        const float* offsets,
        float bound,
        Pq4Hits& hits) {
    constexpr size_t together = 2;
    const size_t block_bytes = rows * pq4_block;
    HWY_ALIGN uint16_t sums[together * pq4_block];
    size_t block = 0;
    for (; block + together <= nblocks; block += together) {
        sum_blocks<together>(rows, tables, codes + block * block_bytes, sums);
        for (size_t b = 0; b < together; b++) {
            const size_t at = (block + b) * pq4_block;
            append_hits(
                    sums + b * pq4_block, offsets + at, scale, bound, at, hits);
        }
    }
    for (; block < nblocks; block++) {
        const size_t at = block * pq4_block;
        sum_blocks<1>(rows, tables, codes + block * block_bytes, sums);
        append_hits(sums, offsets + at, scale, bound, at, hits);
    }
}

#endif // HWY_SCALAR

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(make_pq4_tables_target);
HWY_EXPORT(pq4_tables_size_target);
HWY_EXPORT(arrange_pq4_tables_target);
HWY_EXPORT(scan_pq4_target);

void make_pq4_tables(
        size_t parts,
        size_t size,
        const float* codebook,
        const float* q,
        float factor,
        const float* plus,
        uint8_t* tables,
        float& scale,
        float& bias,
        float* scratch) {
    HWY_DYNAMIC_DISPATCH(make_pq4_tables_target)
    (parts, size, codebook, q, factor, plus, tables, scale, bias, scratch);
}

size_t pq4_tables_size(size_t rows) {
    return HWY_DYNAMIC_DISPATCH(pq4_tables_size_target)(rows);
}

void arrange_pq4_tables(size_t rows, const uint8_t* tables, uint8_t* arranged) {
    HWY_DYNAMIC_DISPATCH(arrange_pq4_tables_target)(rows, tables, arranged);
}

void scan_pq4(
        size_t rows,
        const uint8_t* tables,
        float scale,
        size_t nblocks,
        const uint8_t* codes,
        const float* offsets,
        float bound,
        Pq4Hits& hits) {
    HWY_DYNAMIC_DISPATCH(scan_pq4_target)
    (rows, tables, scale, nblocks, codes, offsets, bound, hits);
}

} // namespace faiss_ext::simd
#endif
