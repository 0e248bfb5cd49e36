// SPDX-License-Identifier: MIT
#include "simd/sparse_scan.h"

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
        const float* HWY_RESTRICT sums,
        const float* HWY_RESTRICT weights,
        float offset,
        float slope,
        uint32_t* HWY_RESTRICT found) {
    const hn::CappedTag<float, 16> tag;
    const hn::RebindToUnsigned<decltype(tag)> positions;
    const size_t lanes = hn::Lanes(tag);
    const auto offsets = hn::Set(tag, offset), slopes = hn::Set(tag, slope);
    size_t count = 0, i = 0;
    for (; i + lanes <= n; i += lanes) {
        const auto least =
                hn::MulAdd(slopes, hn::LoadU(tag, weights + i), offsets);
        const auto is_enough = hn::Ge(hn::LoadU(tag, sums + i), least);
        if (!hn::AllFalse(tag, is_enough)) {
            count += hn::CompressStore(
                    hn::Iota(positions, uint32_t(i)),
                    hn::RebindMask(positions, is_enough),
                    positions,
                    found + count);
        }
    }
    for (; i < n; i++) {
        found[count] = uint32_t(i);
        count += sums[i] >= offset + slope * weights[i];
    }
    return count;
}

void add_levels_target(
        size_t num_tables,
        const uint8_t* const* HWY_RESTRICT tables,
        const uint8_t* const* HWY_RESTRICT levels,
        size_t n,
        float step,
        float* HWY_RESTRICT sums) {
#if HWY_TARGET == HWY_SCALAR
    for (size_t i = 0; i < n; i++) {
        const size_t at = i / 32 * 16 + i % 16, shift = i % 32 < 16 ? 0 : 4;
        uint32_t total = 0;
        for (size_t j = 0; j < num_tables; j++) {
            const size_t level = levels[j][at] >> shift & 15;
            total += tables[j][level] + 256u * tables[j][level + 16];
        }
        sums[i] += step * float(total);
    }
#else
    constexpr size_t rows = 32, size = 16, part = 8;
    const hn::CappedTag<uint8_t, 64> bytes;
    const hn::RepartitionToWide<decltype(bytes)> words;
    const size_t lanes = hn::Lanes(bytes), groups = lanes / size;
    const auto low = hn::Set(bytes, 15);
    const hn::CappedTag<float, part> floats;
    const hn::RebindToSigned<decltype(floats)> numbers;
    const hn::Rebind<uint16_t, decltype(floats)> halves;
    const auto steps = hn::Set(floats, step);
    HWY_ALIGN uint16_t totals[4][32];
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
                float* to = sums + i + g * rows + p * part;
                for (size_t r = 0; r < part; r += hn::Lanes(floats)) {
                    const auto total = hn::PromoteTo(
                            numbers,
                            hn::LoadU(halves, &totals[p][g * part + r]));
                    hn::StoreU(
                            hn::MulAdd(
                                    steps,
                                    hn::ConvertTo(floats, total),
                                    hn::LoadU(floats, to + r)),
                            floats,
                            to + r);
                }
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
        const float* sums,
        const float* weights,
        float offset,
        float slope,
        uint32_t* found) {
    return HWY_DYNAMIC_DISPATCH(positions_at_least_target)(
            n, sums, weights, offset, slope, found);
}

HWY_EXPORT(add_levels_target);

void add_levels(
        size_t num_tables,
        const uint8_t* const* tables,
        const uint8_t* const* levels,
        size_t n,
        float step,
        float* sums) {
    HWY_DYNAMIC_DISPATCH(add_levels_target)
    (num_tables, tables, levels, n, step, sums);
}

} // namespace faiss_ext::simd
#endif
