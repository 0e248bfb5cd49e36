// SPDX-License-Identifier: MIT
#include "indexes/RowJoin.h"

#include <algorithm>

#include "core/prefetch.h"

namespace faiss_ext {

double RowJoin::time_to_compare(const OrderedRows& rows) {
    constexpr double once = 20, component = 2;
    return once + component * double(rows.columns.size()) / double(rows.size());
}

void RowJoin::compare(size_t row, const Line& line, State& state) const {
    constexpr size_t ahead = 4, bytes = 128;
    for (size_t i = 0; i < state.candidates.size(); i++) {
        if (i + ahead < state.candidates.size()) {
            const int64_t at = rows.starts[state.candidates[i + ahead]];
            prefetch_row(rows.columns.data() + at, bytes);
            prefetch_row(rows.terms.data() + at, bytes);
        }
        const uint32_t other = state.candidates[i];
        if (pairs.reaches(row, other, line.at(rows.weights[other]))) {
            state.found.push_back(other);
        }
    }
    state.compared += state.candidates.size();
    std::sort(state.found.begin(), state.found.end());
}

} // namespace faiss_ext
