// SPDX-License-Identifier: MIT
#include "simd/rows.h"

#include <algorithm>
#include <cstring>

#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/rows.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;

/// Computes out = factor * promote(numbers), vector by vector.
template <class T, class Promote>
HWY_INLINE void scale_promoted(
        size_t n,
        const T* HWY_RESTRICT numbers,
        float factor,
        float* HWY_RESTRICT out,
        Promote promote) {
    const Tag tag;
    const size_t lanes = hn::Lanes(tag);
    const auto scale = hn::Set(tag, factor);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        hn::StoreU(hn::Mul(scale, promote(numbers + i)), tag, out + i);
    }
    if (i < n) {
        HWY_ALIGN T rest[hn::MaxLanes(Tag())] = {};
        HWY_ALIGN float floats[hn::MaxLanes(Tag())];
        std::memcpy(rest, numbers + i, (n - i) * sizeof(T));
        hn::Store(hn::Mul(scale, promote(rest)), tag, floats);
        std::copy_n(floats, n - i, out + i);
    }
}

void halves_to_floats_target(
        size_t n,
        const uint16_t* bits,
        float factor,
        float* out) {
    const Tag tag;
    const hn::Rebind<uint16_t, Tag> bits_tag;
    const hn::Rebind<hwy::float16_t, Tag> half_tag;
    scale_promoted(n, bits, factor, out, [&](const uint16_t* p) HWY_ATTR {
        return hn::PromoteTo(
                tag, hn::BitCast(half_tag, hn::LoadU(bits_tag, p)));
    });
}

void bytes_to_floats_target(
        size_t n,
        const uint8_t* bytes,
        float factor,
        float* out) {
    const Tag tag;
    const hn::RebindToSigned<Tag> int_tag;
    const hn::Rebind<uint8_t, Tag> byte_tag;
    scale_promoted(n, bytes, factor, out, [&](const uint8_t* p) HWY_ATTR {
        return hn::ConvertTo(
                tag, hn::PromoteTo(int_tag, hn::LoadU(byte_tag, p)));
    });
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(halves_to_floats_target);
HWY_EXPORT(bytes_to_floats_target);

void halves_to_floats(
        size_t n,
        const uint16_t* bits,
        float factor,
        float* out) {
    HWY_DYNAMIC_DISPATCH(halves_to_floats_target)(n, bits, factor, out);
}

void bytes_to_floats(size_t n, const uint8_t* bytes, float factor, float* out) {
    HWY_DYNAMIC_DISPATCH(bytes_to_floats_target)(n, bytes, factor, out);
}

} // namespace faiss_ext::simd
#endif
