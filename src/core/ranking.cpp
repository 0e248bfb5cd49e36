#include "core/ranking.h"

#include <algorithm>
#include <bit>

namespace faiss_ext {

namespace {

constexpr size_t digits = 4, values = 256;

/// In the order of the score; -0 and 0 are equal.
uint32_t key_of(const Ranked& item) {
    const auto bits = std::bit_cast<uint32_t>(item.first + 0.0f);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}

uint8_t digit_of(uint32_t key, size_t digit) {
    return uint8_t(key >> (8 * digit));
}

/// Sorts by one byte of the keys after the other: no comparison, whose outcome
/// the processor would have to guess.
void radix_sort(std::vector<Ranked>& items) {
    const size_t n = items.size();
    size_t ends[digits][values] = {};
    for (const Ranked& item : items) {
        const uint32_t key = key_of(item);
        for (size_t i = 0; i < digits; i++) {
            ends[i][digit_of(key, i)]++;
        }
    }
    std::vector<Ranked> sorted(n);
    for (size_t i = 0; i < digits; i++) {
        size_t* next = ends[i];
        if (next[digit_of(key_of(items[0]), i)] == n) {
            continue; // the byte is the same in all keys
        }
        size_t sum = 0;
        for (size_t value = 0; value < values; value++) {
            sum += std::exchange(next[value], sum);
        }
        for (const Ranked& item : items) {
            sorted[next[digit_of(key_of(item), i)]++] = item;
        }
        items.swap(sorted);
    }
}

} // namespace

void keep_smallest(std::vector<Ranked>& items, size_t m) {
    constexpr size_t few = 48; // sorted by comparisons in less time
    m = std::min(m, items.size());
    if (items.size() > few) {
        radix_sort(items);
    } else {
        std::nth_element(items.begin(), items.begin() + m, items.end());
        std::sort(items.begin(), items.begin() + m);
    }
    items.resize(m);
}

} // namespace faiss_ext
