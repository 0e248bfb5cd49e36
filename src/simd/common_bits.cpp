// SPDX-License-Identifier: MIT
#include "simd/common_bits.h"

#include <bit>
#include <cstring>

#include "core/prefetch.h"
#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/common_bits.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

// Sets are a few words, for which the processor's own count of one word is as
// fast as vectors.
template <class At>
HWY_INLINE void common_bits_of(
        size_t words,
        const uint64_t* HWY_RESTRICT set,
        size_t n,
        At&& at,
        uint32_t* HWY_RESTRICT counts) {
    constexpr size_t ahead = 8;
    for (size_t i = 0; i < n; i++) {
        if (i + ahead < n) {
            prefetch_row(at(i + ahead), words * sizeof(uint64_t));
        }
        const uint8_t* HWY_RESTRICT other = at(i);
        uint32_t count = 0;
        for (size_t w = 0; w < words; w++) {
            uint64_t word;
            std::memcpy(&word, other + w * sizeof(word), sizeof(word));
            count += uint32_t(std::popcount(set[w] & word));
        }
        counts[i] = count;
    }
}

void common_bits_target(
        size_t words,
        const uint64_t* HWY_RESTRICT set,
        const void* HWY_RESTRICT sets,
        size_t n,
        const uint32_t* HWY_RESTRICT numbers,
        uint32_t* HWY_RESTRICT counts) {
    const auto* bytes = static_cast<const uint8_t*>(sets);
    const size_t size = words * sizeof(uint64_t);
    common_bits_of(
            words,
            set,
            n,
            [=](size_t i) { return bytes + size * numbers[i]; },
            counts);
}

void common_bits_at_target(
        size_t words,
        const uint64_t* HWY_RESTRICT set,
        size_t n,
        const uint8_t* const* sets,
        uint32_t* HWY_RESTRICT counts) {
    common_bits_of(
            words, set, n, [=](size_t i) { return sets[i]; }, counts);
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

namespace {

HWY_EXPORT(common_bits_target);
HWY_EXPORT(common_bits_at_target);

} // namespace

void common_bits(
        size_t words,
        const uint64_t* set,
        const void* sets,
        size_t n,
        const uint32_t* numbers,
        uint32_t* counts) {
    HWY_DYNAMIC_DISPATCH(common_bits_target)
    (words, set, sets, n, numbers, counts);
}

void common_bits(
        size_t words,
        const uint64_t* set,
        size_t n,
        const uint8_t* const* sets,
        uint32_t* counts) {
    HWY_DYNAMIC_DISPATCH(common_bits_at_target)
    (words, set, n, sets, counts);
}

} // namespace faiss_ext::simd
#endif
