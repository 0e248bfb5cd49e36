// SPDX-License-Identifier: MIT
#include "simd/split_columns.h"

#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/split_columns.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

size_t split_columns_target(
        size_t n,
        const int32_t* HWY_RESTRICT columns,
        const float* HWY_RESTRICT values,
        const uint32_t* HWY_RESTRICT bits,
        int shift,
        uint32_t* HWY_RESTRICT found,
        float* HWY_RESTRICT rest) {
    size_t count = 0, i = 0;
#if HWY_TARGET != HWY_SCALAR
    const hn::CappedTag<uint32_t, 16> tag;
    const hn::RebindToSigned<decltype(tag)> integers;
    const hn::RebindToFloat<decltype(tag)> floats;
    const size_t lanes = hn::Lanes(tag);
    const auto factor = hn::Set(tag, hash_of_column(1));
    const auto one = hn::Set(tag, 1), low = hn::Set(tag, 31);
    for (; i + lanes <= n; i += lanes) {
        const auto column = hn::BitCast(tag, hn::LoadU(integers, columns + i));
        const auto at = hn::ShiftRightSame(hn::Mul(column, factor), shift);
        const auto word = hn::BitCast(integers, hn::ShiftRight<5>(at));
        const auto bit = hn::And(
                hn::Shr(hn::GatherIndex(tag, bits, word), hn::And(at, low)),
                one);
        const auto is_found = hn::Eq(bit, one);
        hn::StoreU(
                hn::Compress(hn::Iota(tag, uint32_t(i)), is_found),
                tag,
                found + count);
        hn::StoreU(
                hn::Compress(
                        hn::LoadU(floats, values + i),
                        hn::RebindMask(floats, hn::Not(is_found))),
                floats,
                rest + (i - count));
        count += hn::CountTrue(tag, is_found);
    }
#endif
    for (; i < n; i++) {
        const uint32_t at = hash_of_column(columns[i]) >> shift;
        found[count] = uint32_t(i);
        rest[i - count] = values[i];
        count += bits[at / 32] >> (at % 32) & 1;
    }
    return count;
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(split_columns_target);

size_t split_columns(
        size_t n,
        const int32_t* columns,
        const float* values,
        const uint32_t* bits,
        int shift,
        uint32_t* found,
        float* rest) {
    return HWY_DYNAMIC_DISPATCH(split_columns_target)(
            n, columns, values, bits, shift, found, rest);
}

} // namespace faiss_ext::simd
#endif
