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

} // namespace faiss_ext::simd
#endif
