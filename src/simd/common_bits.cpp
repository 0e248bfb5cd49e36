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
void common_bits_target(
        size_t words,
        const uint64_t* HWY_RESTRICT set,
        const void* HWY_RESTRICT sets,
        size_t n,
        const uint32_t* HWY_RESTRICT numbers,
        uint32_t* HWY_RESTRICT counts) {
    constexpr size_t ahead = 8;
    const auto* bytes = static_cast<const uint8_t*>(sets);
    const size_t size = words * sizeof(uint64_t);
    for (size_t i = 0; i < n; i++) {
        if (i + ahead < n) {
            prefetch_row(bytes + size * numbers[i + ahead], size);
        }
        const uint8_t* HWY_RESTRICT other = bytes + size * numbers[i];
        uint32_t count = 0;
        for (size_t w = 0; w < words; w++) {
            uint64_t word;
            std::memcpy(&word, other + w * sizeof(word), sizeof(word));
            count += uint32_t(std::popcount(set[w] & word));
        }
        counts[i] = count;
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

namespace {

HWY_EXPORT(common_bits_target);

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

} // namespace faiss_ext::simd
#endif
