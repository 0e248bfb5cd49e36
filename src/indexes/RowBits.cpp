// SPDX-License-Identifier: MIT
#include "indexes/RowBits.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/parallel.h"
#include "simd/common_bits.h"

namespace faiss_ext {

RowBits::RowBits(const OrderedRows& rows, bool has_minima) {
    // two to four bits a component: fewer coincide too often, more take longer
    const size_t n = rows.size();
    const size_t components = n > 0 ? rows.columns.size() / n : 0;
    words = std::bit_ceil(std::max<size_t>(64, 2 * components)) / 64;
    const size_t mask = 64 * words - 1;
    bits.resize(n * words);
    ones.resize(n);
    least_mass.resize(n);
    parallel_blocks(n, 1024, [&](idx_t begin, idx_t end) {
        for (idx_t row = begin; row < end; row++) {
            uint64_t* const word = bits.data() + row * words;
            float least = std::numeric_limits<float>::max();
            for (int64_t at = rows.starts[row]; at < rows.starts[row + 1];
                 at++) {
                const size_t bit = rows.columns[at] & mask;
                word[bit / 64] |= uint64_t(1) << bit % 64;
                const float term = rows.terms[at];
                least = std::min(least, has_minima ? term : term * term);
            }
            least_mass[row] = least;
            for (size_t w = 0; w < words; w++) {
                ones[row] += std::popcount(word[w]);
            }
        }
    });
}

void RowBits::count_common(
        size_t row,
        size_t n,
        const uint32_t* others,
        uint32_t* common) const {
    simd::common_bits(
            words, bits.data() + row * words, bits.data(), n, others, common);
}

} // namespace faiss_ext
