// SPDX-License-Identifier: MIT
// Packed bits of the rows of a join.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/hamming.h"
#include "indexes/OrderedRows.h"

namespace faiss_ext {

/// The packed bits of each row, padded with zeros to words of 8 bytes, and the
/// numbers of ones.
struct BitRows {
    size_t words;
    std::vector<uint64_t> all;
    std::vector<uint32_t> ones;

    /// @param codes  of the vectors of which the rows are, each of code_size
    ///               bytes
    BitRows(const OrderedRows& rows, const uint8_t* codes, size_t code_size)
            : words((code_size + 7) / 8),
              all(rows.size() * words),
              ones(rows.size()) {
        for (size_t i = 0; i < rows.size(); i++) {
            const uint8_t* code =
                    codes + size_t(rows.equal(i).front()) * code_size;
            std::memcpy(&all[i * words], code, code_size);
            ones[i] = uint32_t(number_of_ones(code, code_size));
        }
    }

    const uint64_t* row(size_t i) const {
        return all.data() + i * words;
    }
};

} // namespace faiss_ext
