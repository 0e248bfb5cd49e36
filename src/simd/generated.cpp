// SPDX-License-Identifier: MIT
#include "simd/generated.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/generated.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

// A normal number is a weighted sum of four table entries, each chosen by four
// random bits. A search found tables and weights that give the moments and the
// distribution function of normal numbers; see GeneratedProjection.h.
#ifndef FAISS_EXT_SIMD_GENERATED_TABLES
#define FAISS_EXT_SIMD_GENERATED_TABLES
namespace faiss_ext::simd {
namespace {

alignas(16) constexpr int8_t low_table[16] = {
        -1,
        -12,
        -14,
        -47,
        -66,
        -62,
        -72,
        -126,
        1,
        12,
        14,
        47,
        66,
        62,
        72,
        126};
alignas(16) constexpr int8_t high_table[16] =
        {-11, -4, -2, -16, -18, -22, -26, -127, 11, 4, 2, 16, 18, 22, 26, 127};
// of the even and of the odd byte
constexpr uint8_t low_weights[2] = {48, 70}, high_weights[2] = {50, 51};

/// Number of products summed in float.
constexpr size_t generated_run = 256;

} // namespace
} // namespace faiss_ext::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::CappedTag<uint32_t, generated_block>;
using Ints = hn::RebindToSigned<Words>;
using Floats = hn::RebindToFloat<Words>;
using Word = hn::Vec<Words>;
using Int = hn::Vec<Ints>;
using Float = hn::Vec<Floats>;

constexpr size_t lanes = hn::MaxLanes(Words());

/// Returns the keys of consecutive rows or pairs of rows. Mixing is invertible,
/// so they differ from each other.
HWY_INLINE Word row_keys(size_t begin, const RowsKey& key) {
    const Words tag;
    Word t = hn::Iota(tag, uint32_t(begin) + key.offset);
    t = hn::Xor(t, hn::ShiftRight<16>(t));
    t = hn::Mul(t, hn::Set(tag, 0x7feb352du));
    t = hn::Xor(t, hn::ShiftRight<15>(t));
    t = hn::Mul(t, hn::Set(tag, 0x846ca68bu));
    t = hn::Xor(t, hn::ShiftRight<16>(t));
    return hn::Xor(t, hn::Set(tag, key.mask));
}

/// Mixes keys to random bits, of which a Cauchy number takes all, and a normal
/// one half.
HWY_INLINE Word random_bits(Word row, Word first, Word second) {
    const Words tag;
    Word t = hn::Mul(hn::Xor(row, first), hn::Set(tag, 0x7feb352du));
    t = hn::Add(hn::Xor(t, hn::ShiftRight<15>(t)), second);
    t = hn::Mul(t, hn::Set(tag, 0x846ca68bu));
    return hn::Xor(t, hn::ShiftRight<16>(t));
}

struct Normal {
    static constexpr size_t numbers = 2; // of a word

#if HWY_TARGET == HWY_SCALAR
    void compute(Word t, Float* out) const {
        const uint32_t word = hn::GetLane(t);
        for (int h = 0; h < 2; h++) {
            int sum = 0;
            for (int b = 0; b < 2; b++) {
                const uint32_t byte = word >> (16 * h + 8 * b);
                sum += low_weights[b] * low_table[byte % 16] +
                        high_weights[b] * high_table[byte / 16 % 16];
            }
            out[h] = hn::Set(Floats(), float(sum) * 65536);
        }
    }
#else
    using Bytes = hn::Repartition<uint8_t, Words>;
    using Shorts = hn::Repartition<int16_t, Words>;
    using Short = hn::Vec<Shorts>;

    hn::Vec<Bytes> low, high;
    Short low_pairs, high_pairs;

    HWY_INLINE Normal()
            : low(table(low_table)),
              high(table(high_table)),
              low_pairs(weights(low_weights)),
              high_pairs(weights(high_weights)) {}

    static HWY_INLINE hn::Vec<Bytes> table(const int8_t* entries) {
        return hn::LoadDup128(
                Bytes(), reinterpret_cast<const uint8_t*>(entries));
    }

    static HWY_INLINE Short weights(const uint8_t* pair) {
        return hn::Set(Shorts(), int16_t(pair[0] | pair[1] << 8));
    }

    /// Computes weighted sums of pairs of signed bytes.
    static HWY_INLINE Short sum_pairs(Short weights, hn::Vec<Bytes> entries) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
        return Short{_mm512_maddubs_epi16(weights.raw, entries.raw)};
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
        return Short{_mm256_maddubs_epi16(weights.raw, entries.raw)};
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
        return Short{_mm_maddubs_epi16(weights.raw, entries.raw)};
#else
        const Shorts tag;
        const Short pair = hn::BitCast(tag, entries);
        const Short even = hn::ShiftRight<8>(hn::ShiftLeft<8>(pair));
        const Short even_weight = hn::And(weights, hn::Set(tag, 0xff));
        return hn::Add(
                hn::Mul(even, even_weight),
                hn::Mul(hn::ShiftRight<8>(pair), hn::ShiftRight<8>(weights)));
#endif
    }

    HWY_INLINE void compute(Word t, Float* out) const {
        const Words words;
        const Bytes bytes;
        const Ints ints;
        const Word nibbles = hn::Set(words, 0x0f0f0f0fu);
        const auto choose = [&](hn::Vec<Bytes> table, Word indices) {
            return hn::TableLookupBytes(table, hn::BitCast(bytes, indices));
        };
        const Short sum = hn::Add(
                sum_pairs(low_pairs, choose(low, hn::And(t, nibbles))),
                sum_pairs(
                        high_pairs,
                        choose(high, hn::And(hn::ShiftRight<4>(t), nibbles))));
        // both halves of a word, times 65536
        const Int pair = hn::BitCast(ints, sum);
        out[0] = hn::ConvertTo(Floats(), hn::ShiftLeft<16>(pair));
        out[1] = hn::ConvertTo(
                Floats(), hn::And(pair, hn::Set(ints, int32_t(0xffff0000))));
    }
#endif
};

struct Cauchy {
    static constexpr size_t numbers = 1;

    /// tan(pi u) for u = (|t| + 1/2) / 2^32 and the sign of t. Beyond 1/4 it is
    /// 1 / tan(pi (1/2 - u)).
    HWY_INLINE void compute(Word t, Float* out) const {
        const Ints ints;
        const Floats tag;
        const auto set = [&](float v) { return hn::Set(tag, v); };
        const Int most = hn::Set(ints, 0x7fffffff);
        const Int size = hn::And(hn::BitCast(ints, t), most);
        const auto is_far = hn::Gt(size, hn::Set(ints, 0x3fffffff));
        const Int near = hn::IfThenElse(is_far, hn::Sub(most, size), size);
        constexpr float pi = 3.14159265f;
        const Float x =
                hn::Add(hn::Mul(hn::ConvertTo(tag, near), set(pi * 0x1p-32f)),
                        set(pi * 0x1p-33f));
        const Float s = hn::Mul(x, x);
        const auto polynomial = [&](float a, float b, float c) {
            return hn::Add(
                    hn::Mul(hn::Add(hn::Mul(set(c), s), set(b)), s), set(a));
        };
        // the Pade approximation of order 5 and 4
        const Float sine = hn::Mul(x, polynomial(945, -105, 1));
        const Float cosine = polynomial(945, -420, 15);
        const auto swap = hn::RebindMask(tag, is_far);
        const Float tangent =
                hn::Div(hn::IfThenElse(swap, cosine, sine),
                        hn::IfThenElse(swap, sine, cosine));
        out[0] = hn::CopySign(tangent, hn::BitCast(tag, t));
    }
};

/// Computes the sums of the rows of V vectors of keys. Sums of the other half
/// of the bits follow after a block.
template <class Law, size_t V>
HWY_NOINLINE void sums_of_rows(
        size_t count,
        const ColumnKey* HWY_RESTRICT columns,
        const float* HWY_RESTRICT values,
        size_t first_row,
        const RowsKey& key,
        float* HWY_RESTRICT sums) {
    const Words words;
    const Floats tag;
    const Law law;
    constexpr size_t N = Law::numbers;
    Word rows[V];
    for (size_t v = 0; v < V; v++) {
        rows[v] = row_keys(first_row + v * lanes, key);
    }
    double total[V * N * lanes] = {};
    for (size_t begin = 0; begin < count; begin += generated_run) {
        const size_t end = std::min(begin + generated_run, count);
        Float sum[V][N];
        for (size_t v = 0; v < V; v++) {
            for (size_t h = 0; h < N; h++) {
                sum[v][h] = hn::Zero(tag);
            }
        }
        for (size_t i = begin; i < end; i++) {
            const Word first = hn::Set(words, columns[i].first);
            const Word second = hn::Set(words, columns[i].second);
            const Float value = hn::Set(tag, values[i]);
            for (size_t v = 0; v < V; v++) {
                Float numbers[N];
                law.compute(random_bits(rows[v], first, second), numbers);
                for (size_t h = 0; h < N; h++) {
                    // the file is compiled without fused multiply-adds, which
                    // not all instruction sets have
                    sum[v][h] = hn::Add(sum[v][h], hn::Mul(value, numbers[h]));
                }
            }
        }
        for (size_t v = 0; v < V; v++) {
            for (size_t h = 0; h < N; h++) {
                float* to = sums + h * generated_block + v * lanes;
                hn::StoreU(sum[v][h], tag, to);
                double* more = total + (v * N + h) * lanes;
                for (size_t k = 0; k < lanes && count > generated_run; k++) {
                    more[k] += to[k];
                    to[k] = float(more[k]);
                }
            }
        }
    }
}

template <class Law>
void sums_of_law(
        size_t count,
        const ColumnKey* columns,
        const float* values,
        size_t num_keys,
        const RowsKey& key,
        float* sums) {
    constexpr size_t together = lanes * 2 <= generated_block ? 2 : 1;
    for (size_t at = 0; at < num_keys; at += lanes * together) {
        const size_t in_block = at % generated_block;
        sums_of_rows<Law, together>(
                count,
                columns,
                values,
                at,
                key,
                sums + (at - in_block) * Law::numbers + in_block);
    }
}

void generated_sums_target(
        Law law,
        size_t count,
        const ColumnKey* columns,
        const float* values,
        size_t rows,
        const RowsKey& key,
        float* sums) {
    const size_t n = num_sums(law, rows);
    if (law == Law::normal) {
        sums_of_law<Normal>(
                count, columns, values, n / Normal::numbers, key, sums);
    } else {
        sums_of_law<Cauchy>(count, columns, values, n, key, sums);
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(generated_sums_target);

namespace {

double mean_square(const int8_t* table) {
    double sum = 0;
    for (int i = 0; i < 16; i++) {
        sum += double(table[i]) * table[i];
    }
    return sum / 16;
}

double square(double v) {
    return v * v;
}

} // namespace

double generated_deviation() {
    return 65536 *
            std::sqrt(
                    mean_square(low_table) *
                            (square(low_weights[0]) + square(low_weights[1])) +
                    mean_square(high_table) *
                            (square(high_weights[0]) +
                             square(high_weights[1])));
}

void generated_sums(
        Law law,
        size_t count,
        const ColumnKey* columns,
        const float* values,
        size_t rows,
        const RowsKey& key,
        float* sums) {
    if (count == 0) {
        std::fill_n(sums, num_sums(law, rows), 0.0f);
        return;
    }
    HWY_DYNAMIC_DISPATCH(generated_sums_target)
    (law, count, columns, values, rows, key, sums);
}

} // namespace faiss_ext::simd
#endif
