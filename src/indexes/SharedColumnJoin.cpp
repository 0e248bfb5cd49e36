// SPDX-License-Identifier: MIT
#include "indexes/SharedColumnJoin.h"

#include <algorithm>
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

SharedColumnJoin::SharedColumnJoin(
        const OrderedRows& rows,
        const SumBound& bound)
        : rows(rows), bound(bound), first_row(0) {
    if (bound.sum.has_roots) { // a value is 0 if one of the weights is 0
        first_row = std::upper_bound(
                            rows.weights.begin(), rows.weights.end(), 0.0) -
                rows.weights.begin();
    }
    starts.resize(rows.frequency.size() + 1);
    for (size_t i = first_row; i < rows.size(); i++) {
        if (i % 1024 == 0) {
            check_interrupt();
        }
        for_listed(i, [&](uint32_t column, Entry) { starts[column + 1]++; });
    }
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    entries.resize(starts.back());
    std::vector<size_t> next(starts.begin(), starts.end() - 1);
    for (size_t i = first_row; i < rows.size(); i++) {
        if (i % 1024 == 0) {
            check_interrupt();
        }
        for_listed(i, [&](uint32_t column, const Entry& entry) {
            entries[next[column]++] = entry;
        });
    }
}

/// The place of a component such that the products of all others from it on
/// with the largest terms of their columns add up to less than `least`.
int64_t SharedColumnJoin::prefix_limit(size_t row, double least) const {
    int64_t at = rows.starts[row + 1];
    if (bound.has_minima) {
        return at;
    }
    double most = 0;
    while (at > rows.starts[row]) {
        most += double(std::abs(rows.terms[at - 1])) *
                rows.largest[rows.columns[at - 1]];
        if (!(most < least)) {
            break;
        }
        at--;
    }
    return at;
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
    double rest = mass(row);
    for (int64_t at = rows.starts[row];
         at < rows.starts[row + 1] && !bound.excludes(line, rest, low, high);
         at++) {
        const float term = rows.terms[at];
        rest = std::max(0.0, rest - term_mass(term));
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
        const Entry* entry = std::lower_bound(
                entries.data() + starts[column],
                last,
                begin,
                [](const Entry& e, size_t row) { return e.row < row; });
        for (; entry < last && entry->row < end; entry++) {
            float& sum = sums[entry->row];
            if (sum == 0) {
                state.touched.push_back(entry->row);
            }
            const float now = sum + term_of<has_minima>(term, entry->term);
            const float most = now + term_of<has_minima>(rest, entry->rest);
            sum = most < offset + slope * entry->weight ? excluded : now;
        }
    }
}

/// Keeps the touched rows that may reach the least sum with a row.
void SharedColumnJoin::compare(size_t row, const Line& line, State& state)
        const {
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
    constexpr size_t ahead = 4, bytes = 128;
    for (size_t i = 0; i < state.candidates.size(); i++) {
        if (i + ahead < state.candidates.size()) {
            const int64_t at = rows.starts[state.candidates[i + ahead]];
            prefetch_row(rows.columns.data() + at, bytes);
            prefetch_row(rows.terms.data() + at, bytes);
        }
        const uint32_t other = state.candidates[i];
        if (reaches(row, other, line.at(rows.weights[other]))) {
            state.found.push_back(other);
        }
    }
}

void SharedColumnJoin::find(size_t row, State& state) const {
    state.found.clear();
    state.sums.resize(rows.size());
    if (row < first_row) {
        return;
    }
    const double weight = rows.weights[row];
    const Line line = bound.least(weight, weight);
    const auto first = rows.weights.begin();
    // rows that need no shared column
    const size_t light = std::partition_point(
                                 first + first_row,
                                 first + row,
                                 [&](double w) { return line.at(w) <= 0; }) -
            first;
    for (size_t i = first_row; i < light; i++) {
        state.found.push_back(uint32_t(i));
    }
    size_t begin = light;
    if (bound.excludes_light(line)) {
        begin = std::partition_point(
                        first + light,
                        first + row,
                        [&](double w) {
                            return !bound.may_reach(line, weight, w);
                        }) -
                first;
    }
    if (begin == row) {
        return;
    }
    state.prefix.clear();
    for_prefix(row, line, first[begin], weight, [&](const Part& part) {
        state.prefix.push_back(part);
        __builtin_prefetch(&starts[part.column]);
    });
    state.touched.clear();
    if (bound.has_minima) {
        read_lists<true>(line, begin, row, state);
    } else {
        read_lists<false>(line, begin, row, state);
    }
    compare(row, line, state);
    std::sort(state.found.begin(), state.found.end());
}

/// Whether the sum over shared columns may be `least` or more.
bool SharedColumnJoin::reaches(size_t a, size_t b, double least) const {
    constexpr int steps = 16; // between two checks
    int64_t i = rows.starts[a], j = rows.starts[b];
    const int64_t i_end = rows.starts[a + 1], j_end = rows.starts[b + 1];
    double sum = 0, i_rest = mass(a), j_rest = mass(b);
    const auto add = [&] {
        const uint32_t x = rows.columns[i], y = rows.columns[j];
        const float u = rows.terms[i], v = rows.terms[j];
        const float term = bound.has_minima ? std::min(u, v) : u * v;
        sum += x == y ? term : 0;
        i_rest -= x <= y ? term_mass(u) : 0;
        j_rest -= y <= x ? term_mass(v) : 0;
        i += x <= y;
        j += y <= x;
    };
    while (i + steps <= i_end && j + steps <= j_end) {
        for (int step = 0; step < steps; step++) {
            add();
        }
        if (sum + bound.most(std::max(0.0, i_rest), std::max(0.0, j_rest)) <
            least) {
            return false;
        }
    }
    while (i < i_end && j < j_end) {
        add();
    }
    return sum >= least;
}

} // namespace faiss_ext
