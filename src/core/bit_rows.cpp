// SPDX-License-Identifier: MIT
#include <bit>
#include <cinttypes>
#include <numeric>

#include <faiss_ext/core/SparseVectors.h>

#include "core/bit_rows.h"
#include "core/check.h"
#include "core/errors.h"
#include "core/hamming.h"
#include "core/parallel.h"

namespace faiss_ext {

void check_bits(idx_t n, int d, const uint8_t* codes, const char* where) {
    const int size = bytes_of_bits(d), padding = 8 * size - d;
    const auto beyond = uint8_t((1 << padding) - 1);
    for (idx_t i = 0; padding > 0 && i < n; i++) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                (codes[(i + 1) * size - 1] & beyond) == 0,
                "%s: code %" PRId64
                " has ones beyond its first %d bits; expected zeros in the %d low bits of the last byte, as numpy.packbits gives",
                where,
                int64_t(i),
                d,
                padding);
    }
}

SparseRows rows_of_bits(idx_t n, int d, const uint8_t* codes) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d > 0, "rows_of_bits: d is %d, expected a positive number", d);
    check_batch(n, codes, "rows_of_bits");
    check_bits(n, d, codes, "rows_of_bits");
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
