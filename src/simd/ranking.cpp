// SPDX-License-Identifier: MIT
#include "simd/ranking.h"

#include <algorithm>
#include <bit>

#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/ranking.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Counts the keys that are smaller than each. n is a multiple of 16.
void count_smaller_target(
        size_t n,
        const int32_t* HWY_RESTRICT keys,
        int32_t* HWY_RESTRICT smaller) {
    const hn::CappedTag<int32_t, 16> tag;
    const size_t lanes = hn::Lanes(tag);
    for (size_t i = 0; i < n; i += lanes) {
        const auto own = hn::LoadU(tag, keys + i);
        auto even = hn::Zero(tag), odd = even;
        const auto is_smaller = [&](size_t j) HWY_ATTR { // -1 if it is
            return hn::VecFromMask(tag, hn::Lt(hn::Set(tag, keys[j]), own));
        };
        for (size_t j = 0; j < n; j += 2) {
            even = hn::Sub(even, is_smaller(j));
            odd = hn::Sub(odd, is_smaller(j + 1));
        }
        hn::StoreU(hn::Add(even, odd), tag, smaller + i);
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(count_smaller_target);

static void count_smaller(size_t n, const int32_t* keys, int32_t* smaller) {
    HWY_DYNAMIC_DISPATCH(count_smaller_target)(n, keys, smaller);
}

} // namespace faiss_ext::simd

namespace faiss_ext {

namespace {

constexpr size_t digits = 4, values = 256;

/// Returns a key that has the order of the scores.
uint32_t key_of(float score) {
    // the sum turns -0 into 0, which is equal
    const auto bits = std::bit_cast<uint32_t>(score + 0.0f);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}

uint32_t key_of(int32_t score) {
    return uint32_t(score) ^ 1u << 31;
}

uint8_t digit_of(uint32_t key, size_t digit) {
    return uint8_t(key >> (8 * digit));
}

/// Sorts scores by one byte of the keys after the other. It needs no
/// comparisons, which the processor would have to predict.
template <class Hit>
void radix_sort(std::vector<Hit>& hits) {
    const size_t n = hits.size();
    size_t ends[digits][values] = {};
    for (const Hit& hit : hits) {
        const uint32_t key = key_of(hit.first);
        for (size_t i = 0; i < digits; i++) {
            ends[i][digit_of(key, i)]++;
        }
    }
    std::vector<Hit> sorted(n);
    for (size_t i = 0; i < digits; i++) {
        size_t* next = ends[i];
        if (next[digit_of(key_of(hits[0].first), i)] == n) {
            continue; // the byte is the same in all keys
        }
        size_t sum = 0;
        for (size_t value = 0; value < values; value++) {
            sum += std::exchange(next[value], sum);
        }
        for (const Hit& hit : hits) {
            sorted[next[digit_of(key_of(hit.first), i)]++] = hit;
        }
        hits.swap(sorted);
    }
}

/// Up to here, counting the smaller scores of each is fastest.
constexpr size_t few = 48;

/// Sorts few scores: the place of each is the number of smaller ones. No branch
/// depends on the scores. Returns false, and does nothing, if two are equal.
template <class Hit>
bool sort_distinct(std::vector<Hit>& hits) {
    constexpr size_t group = 16;
    static_assert(few % group == 0 && few <= 64);
    const size_t n = hits.size(), end = (n + group - 1) / group * group;
    int32_t keys[few], smaller[few];
    for (size_t i = 0; i < n; i++) {
        keys[i] = int32_t(key_of(hits[i].first) ^ 1u << 31);
    }
    std::fill(keys + n, keys + end, INT32_MAX);
    simd::count_smaller(end, keys, smaller);
    Hit sorted[few];
    uint64_t taken = 0;
    for (size_t i = 0; i < n; i++) {
        sorted[smaller[i]] = hits[i];
        taken |= uint64_t(1) << smaller[i];
    }
    const bool are_distinct = size_t(std::popcount(taken)) == n;
    if (are_distinct) {
        std::copy_n(sorted, n, hits.begin());
    }
    return are_distinct;
}

} // namespace

template <class Score, class Id>
void keep_smallest(std::vector<std::pair<Score, Id>>& hits, size_t m) {
    m = std::min(m, hits.size());
    if (m == 0) {
        hits.clear();
        return;
    }
    const auto begin = hits.begin(), end = hits.end();
    if (hits.size() <= few) {
        if (!sort_distinct(hits)) {
            std::sort(begin, end);
        }
    } else if (16 * m < hits.size()) { // one pass rejects nearly all
        std::partial_sort(begin, begin + m, end);
    } else {
        radix_sort(hits);
        const auto other = [](auto from, auto to) { // the next score
            return std::find_if(from, to, [&](const auto& hit) {
                return hit.first > from->first;
            });
        };
        const auto last = hits.begin() + m;
        for (auto from = hits.begin(); from < last;) {
            const auto to = other(from, hits.end());
            std::sort(from, to);
            from = to;
        }
    }
    hits.resize(m);
}

template void keep_smallest(std::vector<std::pair<float, uint32_t>>&, size_t);
template void keep_smallest(std::vector<std::pair<float, int64_t>>&, size_t);
template void keep_smallest(std::vector<std::pair<int32_t, int64_t>>&, size_t);

} // namespace faiss_ext
#endif // HWY_ONCE
