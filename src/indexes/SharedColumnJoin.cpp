// SPDX-License-Identifier: MIT
#include "indexes/SharedColumnJoin.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/parallel.h"
#include "core/prefetch.h"

namespace faiss_ext {

namespace {

constexpr float excluded = -std::numeric_limits<float>::infinity();

template <bool has_minima>
float term_of(float a, float b) {
    return has_minima ? std::min(a, b) : a * b;
}

} // namespace

SharedColumnJoin::SharedColumnJoin(const RowPairs& pairs) : RowJoin(pairs) {
    starts.resize(rows.frequency.size() + 1);
    for (size_t i = pairs.first_row; i < rows.size(); i++) {
        if (i % 1024 == 0) {
            check_interrupt();
        }
        for_listed(i, [&](uint32_t column, Entry) { starts[column + 1]++; });
    }
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    entries.resize(starts.back());
    std::vector<size_t> next(starts.begin(), starts.end() - 1);
    for (size_t i = pairs.first_row; i < rows.size(); i++) {
        if (i % 1024 == 0) {
            check_interrupt();
        }
        for_listed(i, [&](uint32_t column, const Entry& entry) {
            entries[next[column]++] = entry;
        });
    }
}

/// Calls f(part) for the columns of a row until the rest is too small for rows
/// that weigh from `low` to `high`. Leaves out columns of this row only.
template <class F>
void SharedColumnJoin::for_prefix(
        size_t row,
        const Line& line,
        double low,
        double high,
        F&& f) const {
    double rest = pairs.mass(row);
    for (int64_t at = rows.starts[row];
         at < rows.starts[row + 1] && !bound.excludes(line, rest, low, high);
         at++) {
        const float term = rows.terms[at];
        rest = std::max(0.0, rest - pairs.term_mass(term));
        if (rows.frequency[rows.columns[at]] > 1) {
            f(Part{rows.columns[at], term, rest_term(rest)});
        }
    }
}

/// Calls f(column, entry) for the entries of a row.
template <class F>
void SharedColumnJoin::for_listed(size_t row, F&& f) const {
    const double weight = rows.weights[row];
    const Line line = bound.least(weight, heaviest());
    for_prefix(row, line, weight, heaviest(), [&](const Part& part) {
        f(part.column,
          Entry{uint32_t(row), part.term, part.rest, float(weight)});
    });
}

/// Adds up the terms of a prefix with the rows from `begin` to `end`.
template <bool has_minima>
void SharedColumnJoin::read_lists(
        const Line& line,
        size_t begin,
        size_t end,
        State& state) const {
    constexpr size_t ahead = 4;
    const auto offset = float(line.offset), slope = float(line.slope);
    float* sums = state.sums.data();
    for (size_t i = 0; i < state.prefix.size(); i++) {
        if (i + ahead < state.prefix.size()) {
            prefetch_row(
                    entries.data() + starts[state.prefix[i + ahead].column],
                    4 * sizeof(Entry));
        }
        const auto [column, term, rest] = state.prefix[i];
        const Entry* last = entries.data() + starts[column + 1];
        const Entry* const from = std::lower_bound(
                entries.data() + starts[column],
                last,
                begin,
                [](const Entry& e, size_t row) { return e.row < row; });
        const Entry* entry = from;
        for (; entry < last && entry->row < end; entry++) {
            float& sum = sums[entry->row];
            if (sum == 0) {
                state.touched.push_back(entry->row);
            }
            const float now = sum + term_of<has_minima>(term, entry->term);
            const float most = now + term_of<has_minima>(rest, entry->rest);
            sum = most < offset + slope * entry->weight ? excluded : now;
        }
        state.entries += uint64_t(entry - from);
    }
}

/// Makes candidates of the touched rows that are not excluded.
void SharedColumnJoin::collect(State& state) const {
    state.candidates.clear();
    for (const uint32_t other : state.touched) {
        if (state.sums[other] != excluded) {
            state.sums[other] = excluded; // a sum of 0 is touched repeatedly
            state.candidates.push_back(other);
            __builtin_prefetch(&rows.starts[other]);
        }
    }
    for (const uint32_t other : state.touched) {
        state.sums[other] = 0;
    }
}

void SharedColumnJoin::find(size_t row, State& state) const {
    const auto [line, light, begin] = start(row, state);
    state.sums.resize(rows.size());
    if (begin == row) {
        return;
    }
    const double weight = rows.weights[row];
    state.prefix.clear();
    for_prefix(row, line, rows.weights[begin], weight, [&](const Part& part) {
        state.prefix.push_back(part);
        __builtin_prefetch(&starts[part.column]);
    });
    state.touched.clear();
    if (bound.has_minima) {
        read_lists<true>(line, begin, row, state);
    } else {
        read_lists<false>(line, begin, row, state);
    }
    collect(state);
    compare(row, line, state);
}

} // namespace faiss_ext
