// SPDX-License-Identifier: MIT
#include "core/bit_rows.h"

#include <bit>
#include <numeric>

#include "core/hamming.h"
#include "core/parallel.h"

namespace faiss_ext {

SparseRows rows_of_bits(idx_t n, int d, const uint8_t* codes) {
    const size_t size = bytes_of_bits(d);
    SparseRows rows;
    rows.d = d;
    rows.indptr.resize(n + 1);
    parallel_blocks(n, 1024, [&](idx_t begin, idx_t end) {
        for (idx_t i = begin; i < end; i++) {
            rows.indptr[i + 1] = number_of_ones(codes + i * size, size);
        }
    });
    std::partial_sum(
            rows.indptr.begin(), rows.indptr.end(), rows.indptr.begin());
    rows.indices.resize(rows.indptr.back());
    rows.values.assign(rows.indices.size(), 1.0f);
    parallel_blocks(n, 1024, [&](idx_t begin, idx_t end) {
        for (idx_t i = begin; i < end; i++) {
            int32_t* column = rows.indices.data() + rows.indptr[i];
            for (size_t byte = 0; byte < size; byte++) {
                for (uint8_t bits = codes[i * size + byte]; bits > 0;) {
                    const int first = std::countl_zero(bits);
                    *column++ = int32_t(8 * byte) + first;
                    bits ^= uint8_t(0x80 >> first);
                }
            }
        }
    });
    return rows;
}

} // namespace faiss_ext
