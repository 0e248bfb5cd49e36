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
    if (i < n && n >= lanes) { // computes some numbers again
        i = n - lanes;
        hn::StoreU(hn::Mul(scale, promote(numbers + i)), tag, out + i);
    } else if (i < n) {
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

/// Loads bytes, signed or not, as floats.
template <class Byte>
HWY_INLINE hn::Vec<Tag> load_bytes(const Byte* HWY_RESTRICT bytes) {
    const hn::RebindToSigned<Tag> int_tag;
    const hn::Rebind<Byte, Tag> byte_tag;
    return hn::ConvertTo(
            Tag(), hn::PromoteTo(int_tag, hn::LoadU(byte_tag, bytes)));
}

void bytes_to_floats_target(
        size_t n,
        const uint8_t* bytes,
        float factor,
        float* out) {
    scale_promoted(n, bytes, factor, out, [](const uint8_t* p) HWY_ATTR {
        return load_bytes(p);
    });
}

void signed_bytes_to_floats_target(
        size_t n,
        const int8_t* bytes,
        float factor,
        float* out) {
    scale_promoted(n, bytes, factor, out, [](const int8_t* p) HWY_ATTR {
        return load_bytes(p);
    });
}

template <class Byte>
HWY_INLINE float squared_l2_of_bytes(
        size_t d,
        const float* HWY_RESTRICT x,
        const Byte* HWY_RESTRICT bytes,
        float factor) {
    const Tag tag;
    const size_t lanes = hn::Lanes(tag);
    const auto scale = hn::Set(tag, factor);
    auto even = hn::Zero(tag), odd = even;
    const auto difference = [&](const float* a, const Byte* b) HWY_ATTR {
        return hn::NegMulAdd(scale, load_bytes(b), hn::LoadU(tag, a));
    };
    const auto add = [&](auto& sum, const float* a, const Byte* b) HWY_ATTR {
        const auto v = difference(a, b);
        sum = hn::MulAdd(v, v, sum);
    };
    size_t i = 0;
    for (; i + 2 * lanes <= d; i += 2 * lanes) {
        add(even, x + i, bytes + i);
        add(odd, x + i + lanes, bytes + i + lanes);
    }
    for (; i + lanes <= d; i += lanes) {
        add(even, x + i, bytes + i);
    }
    if (i < d && d >= lanes) { // the last vector has some old components
        const size_t last = d - lanes;
        const auto is_old = hn::FirstN(tag, i - last);
        const auto v =
                hn::IfThenZeroElse(is_old, difference(x + last, bytes + last));
        odd = hn::MulAdd(v, v, odd);
    } else if (i < d) {
        HWY_ALIGN Byte rest[hn::MaxLanes(Tag())] = {};
        HWY_ALIGN float floats[hn::MaxLanes(Tag())] = {};
        std::copy_n(bytes + i, d - i, rest);
        std::copy_n(x + i, d - i, floats);
        add(odd, floats, rest);
    }
    return hn::GetLane(hn::SumOfLanes(tag, hn::Add(even, odd)));
}

template <class Byte>
HWY_INLINE void squared_l2_of_rows(
        size_t d,
        const float* x,
        const uint8_t* rows,
        size_t stride,
        size_t n,
        const int32_t* ids,
        float* distances) {
    for (size_t i = 0; i < n; i++) {
        const uint8_t* row = rows + ids[i] * stride;
        float factor;
        std::memcpy(&factor, row, sizeof(factor));
        distances[i] = squared_l2_of_bytes(
                d,
                x,
                reinterpret_cast<const Byte*>(row + sizeof(factor)),
                factor);
    }
}

void squared_l2_of_byte_rows_target(
        bool has_signs,
        size_t d,
        const float* x,
        const uint8_t* rows,
        size_t stride,
        size_t n,
        const int32_t* ids,
        float* distances) {
    if (has_signs) {
        squared_l2_of_rows<int8_t>(d, x, rows, stride, n, ids, distances);
    } else {
        squared_l2_of_rows<uint8_t>(d, x, rows, stride, n, ids, distances);
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(halves_to_floats_target);
HWY_EXPORT(bytes_to_floats_target);
HWY_EXPORT(signed_bytes_to_floats_target);
HWY_EXPORT(squared_l2_of_byte_rows_target);

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

void bytes_to_floats(size_t n, const int8_t* bytes, float factor, float* out) {
    HWY_DYNAMIC_DISPATCH(signed_bytes_to_floats_target)(n, bytes, factor, out);
}

void squared_l2_of_byte_rows(
        bool has_signs,
        size_t d,
        const float* x,
        const uint8_t* rows,
        size_t stride,
        size_t n,
        const int32_t* ids,
        float* distances) {
    HWY_DYNAMIC_DISPATCH(squared_l2_of_byte_rows_target)
    (has_signs, d, x, rows, stride, n, ids, distances);
}

} // namespace faiss_ext::simd
#endif
