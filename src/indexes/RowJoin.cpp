// SPDX-License-Identifier: MIT
#include "indexes/RowJoin.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/prefetch.h"

namespace faiss_ext {

double RowJoin::time_to_compare(const OrderedRows& rows) {
    constexpr double once = 20, component = 2;
    return once + component * double(rows.columns.size()) / double(rows.size());
}

double RowJoin::estimated_time() const {
    // enough rows for a mean, and few enough for a small part of the time
    constexpr size_t most_rows = 256;
    constexpr double most_time = 2e7;
    const size_t n = rows.size();
    const double to_compare = n > 0 ? time_to_compare(rows) : 0;
    State state;
    double time = 0;
    size_t sampled = 0, found = 0;
    while (sampled < std::min(most_rows, n) && time < most_time) {
        // fractions of multiples of the golden ratio are spread evenly
        const double turns = double(++sampled) * std::numbers::phi;
        find(size_t((turns - std::floor(turns)) * double(n)), state);
        found += state.found.size();
        time = double(state.entries) +
                pairs.bits.time_to_count() * double(state.counted) +
                to_compare * double(state.compared) +
                time_of_kernel * double(found);
    }
    return sampled == 0 ? 0 : time * double(n) / double(sampled);
}

RowPairs::Range RowJoin::start(size_t row, State& state) const {
    const RowPairs::Range range = pairs.range_of(row);
    state.found.clear();
    state.candidates.clear();
    for (size_t i = pairs.first_row; i < range.light; i++) {
        state.found.push_back(uint32_t(i));
    }
    return range;
}

void RowJoin::compare(size_t row, const Line& line, State& state) const {
    constexpr size_t ahead = 4, bytes = 128;
    state.counted += state.candidates.size();
    pairs.keep_possible(row, line, state.candidates, state.common);
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
