// SPDX-License-Identifier: MIT
// Collects the nearest codes of a Hamming scan.

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <faiss_ext/core/compat.h>

#include "core/cache_sizes.h"
#include "indexes/blocked_scan.h"
#include "simd/hamming_scan.h"

namespace faiss_ext {

/// The largest number of codes in a scan.
constexpr idx_t most_codes = (idx_t(1) << simd::hamming_shift) - 1;

inline idx_t position_of(uint64_t key) {
    return idx_t(key) & most_codes;
}

inline int32_t distance_of(uint64_t key) {
    return int32_t(key >> simd::hamming_shift);
}

/// Scans the codes at positions [begin, end) and checks for interrupts. The
/// arguments are those of simd::hamming_scan.
inline void scan_codes(
        size_t nq,
        const uint64_t* queries,
        idx_t begin,
        idx_t end,
        const uint8_t* codes,
        size_t code_size,
        simd::HammingSink* const* sinks) {
    const idx_t chunk = std::max<idx_t>(
            4096, idx_t(cache::codes_in_turn) / idx_t(code_size * nq));
    for_chunks(begin, end, chunk, [&](idx_t from, idx_t to) {
        simd::hamming_scan(
                nq,
                queries,
                to - from,
                codes + from * code_size,
                code_size,
                from,
                sinks);
    });
}

/// Keeps the k smallest keys of a scan, or, if k = 0, all below the bound.
struct HammingHits : simd::HammingSink {
    size_t k, nbits;
    std::function<bool(idx_t)> is_wanted; ///< takes a position; empty: all
    std::vector<uint64_t> buffer;
    std::vector<uint32_t> counts; ///< number of keys at each distance
    bool in_order = true;         ///< whether positions ascend

    HammingHits(
            size_t k,
            size_t nbits,
            uint32_t bound,
            std::function<bool(idx_t)> is_wanted)
            : k(k), nbits(nbits), is_wanted(std::move(is_wanted)) {
        this->bound = bound;
        set_capacity(2 * k + 64);
        make_room = [](simd::HammingSink& sink) {
            static_cast<HammingHits&>(sink).shrink();
        };
    }
    HammingHits(const HammingHits&) = delete;
    HammingHits& operator=(const HammingHits&) = delete;

    void set_capacity(size_t n) {
        buffer.resize(n + simd::hamming_group);
        capacity = n;
        keys = buffer.data();
    }

    void shrink() {
        remove_rejected();
        if (k > 0 && size >= k) {
            keep_k_smallest();
        } else if (2 * size >= capacity) {
            set_capacity(2 * capacity);
        }
    }

    /// Returns the remaining keys, sorted.
    std::vector<uint64_t> sorted() {
        remove_rejected();
        if (k > 0 && size > k) {
            keep_k_smallest();
        }
        std::vector<uint64_t> result(keys, keys + size);
        if (k == 0) {
            return result; // positions already ascend
        }
        if (!in_order || !counting_pays()) {
            std::sort(result.begin(), result.end());
            return result;
        }
        count_distances();
        size_t begin = 0;
        for (uint32_t& c : counts) {
            begin += std::exchange(c, uint32_t(begin));
        }
        for (size_t i = 0; i < size; i++) {
            result[counts[keys[i] >> simd::hamming_shift]++] = keys[i];
        }
        return result;
    }

   private:
    void remove_rejected() {
        if (is_wanted) {
            const auto rejected = [&](uint64_t key) {
                return !is_wanted(position_of(key));
            };
            size = std::remove_if(keys, keys + size, rejected) - keys;
        }
    }

    bool counting_pays() const {
        return size >= nbits / 8;
    }

    void count_distances() {
        counts.assign(nbits + 1, 0);
        for (size_t i = 0; i < size; i++) {
            counts[keys[i] >> simd::hamming_shift]++;
        }
    }

    /// Codes to come have larger positions, so at the distance of the k-th code
    /// they are not among the first k. Hence this distance is the new bound.
    void keep_k_smallest() {
        if (!in_order || !counting_pays()) {
            std::nth_element(keys, keys + (k - 1), keys + size);
            bound = uint32_t(keys[k - 1] >> simd::hamming_shift);
            in_order = false;
        } else {
            count_distances();
            size_t nearer = 0;
            uint32_t last = 0;
            while (nearer + counts[last] < k) {
                nearer += counts[last++];
            }
            size_t equal = k - nearer, kept = 0;
            for (size_t i = 0; i < size; i++) {
                const uint32_t distance =
                        uint32_t(keys[i] >> simd::hamming_shift);
                const bool keep =
                        distance < last || (distance == last && equal > 0);
                equal -= keep && distance == last;
                keys[kept] = keys[i];
                kept += keep;
            }
            bound = last;
        }
        size = k;
    }
};

} // namespace faiss_ext
