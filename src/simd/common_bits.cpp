// SPDX-License-Identifier: MIT
#include "simd/common_bits.h"

#include <bit>

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
        const uint64_t* HWY_RESTRICT sets,
        size_t n,
        const uint32_t* HWY_RESTRICT numbers,
        uint32_t* HWY_RESTRICT counts) {
    constexpr size_t ahead = 8;
    for (size_t i = 0; i < n; i++) {
        if (i + ahead < n) {
            prefetch_row(sets + words * numbers[i + ahead], 8 * words);
        }
        const uint64_t* HWY_RESTRICT other = sets + words * numbers[i];
        uint32_t count = 0;
        for (size_t w = 0; w < words; w++) {
            count += uint32_t(std::popcount(set[w] & other[w]));
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
        const uint64_t* sets,
        size_t n,
        const uint32_t* numbers,
        uint32_t* counts) {
    HWY_DYNAMIC_DISPATCH(common_bits_target)
    (words, set, sets, n, numbers, counts);
}

} // namespace faiss_ext::simd
#endif
