// SPDX-License-Identifier: MIT
#include "simd/margins.h"

#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/margins.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// At most 8 lanes, so that multiples of 8 bits have no remainder.
using Tag = hn::CappedTag<float, 8>;

template <class D>
HWY_INLINE void fold_phase(
        D tag,
        const float* HWY_RESTRICT offset,
        const float* HWY_RESTRICT threshold,
        float* HWY_RESTRICT u) {
    const auto v = hn::Add(hn::LoadU(tag, u), hn::LoadU(tag, offset));
    const auto r = hn::Sub(v, hn::Round(v));
    hn::StoreU(hn::Sub(hn::LoadU(tag, threshold), hn::Abs(r)), tag, u);
}

void fold_phases_target(
        size_t n,
        size_t nbits,
        const float* HWY_RESTRICT offset,
        const float* HWY_RESTRICT threshold,
        float* HWY_RESTRICT u) {
    const Tag tag;
    const size_t lanes = hn::Lanes(tag);
    for (size_t i = 0; i < n; i++) {
        float* row = u + i * nbits;
        size_t j = 0;
        for (; j + lanes <= nbits; j += lanes) {
            fold_phase(tag, offset + j, threshold + j, row + j);
        }
        for (; j < nbits; j++) {
            fold_phase(
                    hn::CappedTag<float, 1>(),
                    offset + j,
                    threshold + j,
                    row + j);
        }
    }
}

void pack_signs_target(
        size_t n,
        size_t nbits,
        const float* HWY_RESTRICT margins,
        uint8_t* HWY_RESTRICT codes) {
    const Tag tag;
    const size_t lanes = hn::Lanes(tag);
    const size_t nbytes = n * nbits / 8;
    for (size_t b = 0; b < nbytes; b++) {
        unsigned byte = 0;
        for (size_t j = 0; j < 8; j += lanes) {
            uint8_t bits[8] = {};
            const auto v = hn::LoadU(tag, margins + b * 8 + j);
            hn::StoreMaskBits(tag, hn::Ge(v, hn::Zero(tag)), bits);
            byte |= static_cast<unsigned>(bits[0]) << j;
        }
        codes[b] = static_cast<uint8_t>(byte);
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(fold_phases_target);
HWY_EXPORT(pack_signs_target);

void fold_phases(
        size_t n,
        size_t nbits,
        const float* offset,
        const float* threshold,
        float* u) {
    HWY_DYNAMIC_DISPATCH(fold_phases_target)(n, nbits, offset, threshold, u);
}

void pack_signs(size_t n, size_t nbits, const float* margins, uint8_t* codes) {
    if (nbits % 8 == 0) {
        HWY_DYNAMIC_DISPATCH(pack_signs_target)(n, nbits, margins, codes);
        return;
    }
    const size_t whole = nbits / 8;
    for (size_t i = 0; i < n; i++, margins += nbits, codes += whole + 1) {
        HWY_DYNAMIC_DISPATCH(pack_signs_target)(1, 8 * whole, margins, codes);
        codes[whole] = 0;
        for (size_t j = 8 * whole; j < nbits; j++) {
            codes[whole] |= uint8_t((margins[j] >= 0) << j % 8);
        }
    }
}

} // namespace faiss_ext::simd
#endif
