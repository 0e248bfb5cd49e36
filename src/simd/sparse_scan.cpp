// SPDX-License-Identifier: MIT
#include "simd/sparse_scan.h"

#include <algorithm>
#include <cmath>

#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/sparse_scan.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

size_t positions_at_least_target(
        size_t n,
        const int16_t* HWY_RESTRICT sums,
        const float* HWY_RESTRICT weights,
        float offset,
        float slope,
        float least,
        uint32_t* HWY_RESTRICT found) {
    const hn::CappedTag<float, 16> tag;
    const hn::RebindToSigned<decltype(tag)> integers;
    const hn::RebindToUnsigned<decltype(tag)> positions;
    const hn::Rebind<int16_t, decltype(tag)> parts;
    const hn::CappedTag<int16_t, 32> tested;
    const size_t lanes = hn::Lanes(tag), step = hn::Lanes(tested);
    const auto offsets = hn::Set(tag, offset), slopes = hn::Set(tag, slope);
    constexpr float lowest = -32768, highest = 32767;
    size_t count = 0, i = 0;
    if (!(least <= highest)) {
        return 0;
    }
    const auto floor =
            hn::Set(tested, int16_t(std::ceil(std::max(least, lowest))));
    for (; i + step <= n; i += step) {
        if (hn::AllTrue(tested, hn::Lt(hn::LoadU(tested, sums + i), floor))) {
            continue;
        }
        for (size_t at = i; at < i + step; at += lanes) {
            const auto needed =
                    hn::MulAdd(slopes, hn::LoadU(tag, weights + at), offsets);
            const auto sum = hn::ConvertTo(
                    tag, hn::PromoteTo(integers, hn::LoadU(parts, sums + at)));
            const auto is_found =
                    hn::RebindMask(positions, hn::Ge(sum, needed));
            hn::StoreU(
                    hn::Compress(hn::Iota(positions, uint32_t(at)), is_found),
                    positions,
                    found + count);
            count += hn::CountTrue(positions, is_found);
        }
    }
    for (; i < n; i++) {
        found[count] = uint32_t(i);
        count += sums[i] >= offset + slope * weights[i];
    }
    return count;
}

size_t float_positions_target(
        size_t n,
        const float* HWY_RESTRICT sums,
        const float* HWY_RESTRICT weights,
        float offset,
        float slope,
        uint32_t first,
        uint32_t* HWY_RESTRICT found) {
    const hn::CappedTag<float, 16> tag;
    const hn::RebindToUnsigned<decltype(tag)> positions;
    const size_t lanes = hn::Lanes(tag);
    const auto offsets = hn::Set(tag, offset), slopes = hn::Set(tag, slope);
    size_t count = 0, i = 0;
    for (; i + lanes <= n; i += lanes) {
        const auto needed =
                hn::MulAdd(slopes, hn::LoadU(tag, weights + i), offsets);
        const auto at_least = hn::Ge(hn::LoadU(tag, sums + i), needed);
        if (hn::AllFalse(tag, at_least)) {
            continue;
        }
        const auto is_found = hn::RebindMask(positions, at_least);
        hn::StoreU(
                hn::Compress(
                        hn::Iota(positions, first + uint32_t(i)), is_found),
                positions,
                found + count);
        count += hn::CountTrue(positions, is_found);
    }
    for (; i < n; i++) {
        found[count] = first + uint32_t(i);
        count += sums[i] >= offset + slope * weights[i];
    }
    return count;
}

void add_levels_target(
        size_t num_tables,
        const uint8_t* const* HWY_RESTRICT tables,
        const uint8_t* const* HWY_RESTRICT levels,
        size_t n,
        int16_t* HWY_RESTRICT sums) {
#if HWY_TARGET == HWY_SCALAR
    for (size_t i = 0; i < n; i++) {
        const size_t at = i / 32 * 16 + i % 16, shift = i % 32 < 16 ? 0 : 4;
        uint32_t total = 0;
        for (size_t j = 0; j < num_tables; j++) {
            const size_t level = levels[j][at] >> shift & 15;
            total += tables[j][level] + 256u * tables[j][level + 16];
        }
        sums[i] = int16_t(uint32_t(sums[i]) + total);
    }
#else
    constexpr size_t rows = 32, size = 16, part = 8;
    const hn::CappedTag<uint8_t, 64> bytes;
    const hn::Repartition<int16_t, decltype(bytes)> words;
    const size_t lanes = hn::Lanes(bytes), groups = lanes / size;
    const auto low = hn::Set(bytes, 15);
    const hn::FixedTag<int16_t, part> added;
    HWY_ALIGN int16_t totals[4][32];
    for (size_t i = 0; i < n; i += groups * rows) {
        auto a = hn::Zero(words), b = a, c = a, d = a;
        for (size_t j = 0; j < num_tables; j++) {
            const auto lower = hn::LoadDup128(bytes, tables[j]);
            const auto upper = hn::LoadDup128(bytes, tables[j] + size);
            const auto both = hn::LoadU(bytes, levels[j] + i / 2);
            const auto first = hn::And(both, low);
            const auto second = hn::ShiftRight<4>(both);
            const auto l = hn::TableLookupBytes(lower, first);
            const auto u = hn::TableLookupBytes(upper, first);
            const auto m = hn::TableLookupBytes(lower, second);
            const auto v = hn::TableLookupBytes(upper, second);
            const auto add = [&](auto& to, auto numbers) HWY_ATTR {
                to = hn::Add(to, hn::BitCast(words, numbers));
            };
            add(a, hn::InterleaveLower(bytes, l, u));
            add(b, hn::InterleaveUpper(bytes, l, u));
            add(c, hn::InterleaveLower(bytes, m, v));
            add(d, hn::InterleaveUpper(bytes, m, v));
        }
        hn::Store(a, words, totals[0]);
        hn::Store(b, words, totals[1]);
        hn::Store(c, words, totals[2]);
        hn::Store(d, words, totals[3]);
        for (size_t g = 0; g < groups; g++) {
            for (size_t p = 0; p < 4; p++) {
                int16_t* to = sums + i + g * rows + p * part;
                const auto total = hn::Load(added, &totals[p][g * part]);
                hn::StoreU(hn::Add(hn::LoadU(added, to), total), added, to);
            }
        }
    }
#endif
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(positions_at_least_target);

size_t positions_at_least(
        size_t n,
        const int16_t* sums,
        const float* weights,
        float offset,
        float slope,
        float least,
        uint32_t* found) {
    return HWY_DYNAMIC_DISPATCH(positions_at_least_target)(
            n, sums, weights, offset, slope, least, found);
}

HWY_EXPORT(float_positions_target);

size_t positions_at_least(
        size_t n,
        const float* sums,
        const float* weights,
        float offset,
        float slope,
        uint32_t first,
        uint32_t* found) {
    return HWY_DYNAMIC_DISPATCH(float_positions_target)(
            n, sums, weights, offset, slope, first, found);
}

HWY_EXPORT(add_levels_target);

void add_levels(
        size_t num_tables,
        const uint8_t* const* tables,
        const uint8_t* const* levels,
        size_t n,
        int16_t* sums) {
    HWY_DYNAMIC_DISPATCH(add_levels_target)
    (num_tables, tables, levels, n, sums);
}

} // namespace faiss_ext::simd
#endif
