// SPDX-License-Identifier: MIT
#include "indexes/SparseScan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/prefetch.h"
#include "core/scratch.h"
#include "core/sort_keys.h"
#include "indexes/SumBound.h"
#include "simd/sparse_scan.h"

namespace faiss_ext {

namespace {

constexpr size_t num_levels = SparseLists::num_levels;

/// Sums of 16 bits.
constexpr size_t most_sum = 32767;
static_assert(2 * SparseScan::most_terms < most_sum);

/// Sums beyond the block that simd::add_levels may write.
constexpr size_t spare = 128;

} // namespace

SparseScan::SparseScan(
        const SparseLists& lists,
        const SharedSum& sum,
        const SparseRow& query,
        double weight)
        : lists(lists), sum(sum), weight(weight) {
    error = relative_error(query.size());
    comparison = 72 + 2 * lists.mean_components;
    find_terms(query);
    find_full_terms(query);
    set_bounds();
    left.resize(terms.size() + 2);
    mass_left.resize(terms.size() + 2);
    time = 64 * terms.size();
    const size_t most = std::min(lists.block, lists.num_rows);
    sums = std::make_unique_for_overwrite<int16_t[]>(most + spare);
    positions = std::make_unique_for_overwrite<uint32_t[]>(most + 16);
}

void SparseScan::find_terms(const SparseRow& query) {
    std::vector<Term> found;
    std::vector<uint64_t> by_length;
    for (size_t i = 0; i < query.size(); i++) {
        const size_t l = lists.list_of(query.columns[i]);
        if (l == none) {
            continue;
        }
        Term term = {
                l,
                none,
                query.values[i],
                0,
                lists.starts[l],
                lists.starts[l + 1],
                0,
                0};
        if (lists.length(l) >= SparseLists::least_long) {
            term.directory = lists.directory(query.columns[i], l);
        }
        by_length.push_back(uint64_t(lists.length(l)) << 32 | found.size());
        found.push_back(term);
    }
    sort_keys(by_length.data(), by_length.size());
    terms.reserve(found.size());
    for (const uint64_t key : by_length) {
        Term& term = terms.emplace_back(found[uint32_t(key)]);
        sum.terms->self_values(1, &term.value, 1, &term.mass);
    }
}

void SparseScan::find_full_terms(const SparseRow& query) {
    auto column = lists.full_columns.begin();
    const auto end = lists.full_columns.end();
    for (size_t i = 0; i < query.size(); i++) {
        column = std::lower_bound(column, end, query.columns[i]);
        if (column == end || *column != query.columns[i]) {
            continue;
        }
        FullTerm term = {};
        term.column = column - lists.full_columns.begin();
        term.value = query.values[i];
        sum.terms->self_values(1, &term.value, 1, &term.mass);
        full_terms.push_back(term);
    }
}

/// Chooses the step, and computes bounds for all codes and levels.
void SparseScan::set_bounds() {
    const size_t n = terms.size() + full_terms.size();
    const auto num_codes = [&](const Term& term) -> size_t {
        return lists.high_codes[term.list] - lists.low_codes[term.list] + 1;
    };
    // bounds are computed of all these codes, or of each entry of a short list
    const auto is_short = [&](const Term& term) {
        return term.end - term.next < num_codes(term);
    };
    const auto num_bounds = [&](const Term& term) {
        return std::min(num_codes(term), term.end - term.next);
    };
    size_t num_most = 0, num_all = num_levels * full_terms.size();
    for (const Term& term : terms) {
        num_most += num_codes(term);
        num_all += num_bounds(term);
    }
    const Scratch bounds(num_all), of_entries(SparseLists::num_codes);
    float* to = bounds.get();
    double total = 0; // of the largest sizes
    const auto compute = [&](float value, size_t count, const float* values) {
        sum.terms->block(1, &value, count, values, 1, to);
        float largest = 0;
        for (size_t i = 0; i < count; i++) {
            largest = std::max(largest, std::abs(to[i]));
        }
        total += largest;
        to += count;
    };
    // terms rise with the value, or fall if the query's value is negative
    for (const Term& term : terms) {
        const auto& values = term.value > 0 ? lists.highs : lists.lows;
        const float* from = values.data() + lists.low_codes[term.list];
        if (is_short(term)) {
            for (size_t at = term.next; at < term.end; at++) {
                of_entries[at - term.next] = values[lists.codes[at]];
            }
            from = of_entries.get();
        }
        compute(term.value, num_bounds(term), from);
    }
    for (const FullTerm& term : full_terms) {
        const auto& values =
                term.value > 0 ? lists.level_highs : lists.level_lows;
        float* const first = to;
        compute(term.value, num_levels, values[term.column].data());
        first[0] = 0; // no component
    }
    step = total > 0 ? total / double(most_sum - n) : 1;
    const double inverse = 1 / step;
    const auto in_steps = [&](float bound) { // std::ceil is a call
        const double steps = bound * inverse;
        const int below = int(steps);
        return int16_t(below + (below < steps));
    };
    const float* from = bounds.get();
    most.resize(num_most); // few bytes, so that they stay in the cache
    size_t used = 0;
    for (Term& term : terms) {
        const size_t count = num_bounds(term);
        term.bounds = ptrdiff_t(used) - ptrdiff_t(lists.low_codes[term.list]);
        if (is_short(term)) {
            for (size_t i = 0; i < count; i++) {
                most[term.bounds + lists.codes[term.next + i]] =
                        in_steps(from[i]);
            }
        } else {
            std::transform(from, from + count, &most[used], in_steps);
        }
        from += count;
        used += num_codes(term);
    }
    for (FullTerm& term : full_terms) {
        for (size_t i = 0; i < num_levels; i++) {
            term.most[i] = in_steps(*from++);
            term.table[i] = uint8_t(term.most[i]);
            term.table[i + num_levels] = uint8_t(uint16_t(term.most[i]) >> 8);
        }
    }
}

std::vector<uint32_t> SparseScan::rows_of_shortest(size_t enough) const {
    std::vector<uint32_t> rows;
    for (const Term& term : terms) {
        const size_t n = std::min(enough - rows.size(), term.end - term.next);
        const auto from = lists.rows.begin() + term.next;
        rows.insert(rows.end(), from, from + n);
    }
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    if (rows.empty()) { // all columns are full
        const size_t first = blocks().front() * lists.block;
        rows.resize(std::min(enough, lists.num_rows - first));
        std::iota(rows.begin(), rows.end(), uint32_t(first));
    }
    for (uint32_t& row : rows) {
        row = lists.order[row];
    }
    return rows;
}

std::vector<uint32_t> SparseScan::blocks() const {
    std::vector<uint32_t> all(lists.num_blocks());
    std::iota(all.begin(), all.end(), 0u);
    const auto distance = [&](uint32_t number) {
        return std::abs(lists.mean_weights[number] - weight);
    };
    std::stable_sort(all.begin(), all.end(), [&](uint32_t a, uint32_t b) {
        return distance(a) < distance(b);
    });
    return all;
}

namespace {

/// How many of some ascending numbers are below a bound. Branches would often
/// be mispredicted.
size_t number_below(std::span<const uint16_t> ascending, size_t bound) {
    const uint16_t* from = ascending.data();
    size_t n = ascending.size();
    while (n > 1) {
        const size_t half = n / 2;
        from += half * (from[half - 1] < bound);
        n -= half;
    }
    return from - ascending.data() + (n == 1 && *from < bound);
}

} // namespace

/// Finds the entries of a term in the block, and the largest of their bounds.
void SparseScan::find_entries(size_t i) {
    Term& term = terms[i];
    const auto largest = [&](uint8_t low, uint8_t high) {
        const uint8_t code = term.value > 0 ? high : low;
        return std::max(0, int(most[term.bounds + code]));
    };
    term.largest = 0;
    if (term.directory == none) {
        const size_t first = lists.starts[term.list];
        term.end = lists.starts[term.list + 1];
        term.next =
                first +
                number_below(
                        {lists.rows.data() + first, term.end - first}, begin);
        if (term.next < term.end && lists.rows[term.next] < end) {
            term.largest = largest(
                    lists.low_codes[term.list], lists.high_codes[term.list]);
        }
        return;
    }
    const SparseLists::Part& part =
            lists
                    .parts[term.directory * lists.num_blocks() +
                           begin / lists.block];
    term.next = lists.starts[term.list] + part.begin;
    term.end = lists.starts[term.list] + part.end;
    if (part.begin < part.end) {
        term.largest = largest(part.low_code, part.high_code);
    }
}

void SparseScan::begin_block(size_t first, size_t last) {
    begin = first;
    end = last;
    num_read = 0;
    read_at_last = none;
    std::fill_n(sums.get(), end - begin + spare, int16_t(0));
    const size_t at = begin / lists.block, n = terms.size();
    left[n] = mass_left[n] = 0;
    for (const FullTerm& term : full_terms) {
        const size_t i = term.column * lists.num_blocks() + at;
        const uint8_t level = term.value > 0 ? lists.largest_levels[i]
                                             : lists.least_levels[i];
        left[n] += std::max(0, int(term.most[level]));
        mass_left[n] += term.most[level] > 0 ? term.mass : 0;
    }
    for (size_t i = terms.size(); i > 0; i--) {
        find_entries(i - 1);
        const Term& term = terms[i - 1];
        const bool is_there = term.largest > 0;
        left[i - 1] = left[i] + term.largest;
        mass_left[i - 1] = mass_left[i] + (is_there ? term.mass : 0);
    }
}

/// Adds the levels of full columns to the sums. Returns how many entries take
/// about as long.
size_t SparseScan::read_levels() {
    const size_t size = lists.levels_size();
    std::vector<const uint8_t*> tables, levels;
    for (const FullTerm& term : full_terms) {
        tables.push_back(term.table);
        levels.push_back(lists.levels.data() + term.column * size + begin / 2);
    }
    simd::add_levels(
            tables.size(),
            tables.data(),
            levels.data(),
            end - begin,
            sums.get());
    num_read++;
    return length_of_levels();
}

/// The number of entries that take as long as the levels of a block.
size_t SparseScan::length_of_levels() const {
    return full_terms.size() * (end - begin) / 32;
}

/// The same for the next part, at most.
size_t SparseScan::length_of_next() const {
    if (num_read == terms.size()) {
        return length_of_levels();
    }
    const Term& term = terms[num_read];
    return term.directory == none ? std::min<size_t>(term.end - term.next, 16)
                                  : term.end - term.next;
}

/// Adds the entries of the next term to the sums. Returns their number.
size_t SparseScan::read_next() {
    if (num_read == terms.size()) {
        return read_levels();
    }
    constexpr size_t ahead = 4, most_entries = 256;
    if (num_read + ahead < terms.size()) {
        const Term& later = terms[num_read + ahead];
        const size_t n = std::min(later.end - later.next, most_entries);
        if (n > 0) {
            prefetch_row(lists.rows.data() + later.next, n * sizeof(uint16_t));
            prefetch_row(lists.codes.data() + later.next, n);
        }
    }
    Term& term = terms[num_read];
    const int16_t* bounds = most.data();
    const ptrdiff_t first = term.bounds;
    const uint16_t* rows = lists.rows.data();
    const uint8_t* codes = lists.codes.data();
    int16_t* block = sums.get() - begin;
    size_t at = term.next;
    if (term.directory == none) {
        for (; at < term.end && rows[at] < end; at++) {
            block[rows[at]] += bounds[first + codes[at]];
        }
    } else {
        for (; at < term.end; at++) {
            block[rows[at]] += bounds[first + codes[at]];
        }
    }
    const size_t n = at - term.next;
    term.next = at;
    num_read++;
    return n;
}

/// Bounds the amount that the terms from the i-th on add to a sum.
SparseScan::Line SparseScan::left_out(size_t i) const {
    const size_t number = begin / lists.block;
    const double usual = lists.mean_weights[number];
    const double root = std::sqrt(mass_left[i]) / step;
    Line line = {0, root};
    if (!sum.has_roots) { // a line above the root of the weight
        const double of_weight = std::sqrt(usual);
        line = usual > 0 ? Line{root * of_weight / 2, root / of_weight / 2}
                         : Line{left[i], 0};
    }
    const Line largest = {left[i], 0};
    const Line& less = line.at(usual) < largest.at(usual) ? line : largest;
    return {less.offset * (1 + error), less.slope * (1 + error)};
}

void SparseScan::set_least(double score) {
    if (score != last_score) {
        last_score = score;
        least = least_with_error(sum, score, weight, error);
        least.slope = std::max(least.slope, 0.0);
    }
}

/// The least sum that a row needs, over the terms before the i-th.
SparseScan::Line SparseScan::required(size_t i) const {
    if (!std::isfinite(least.offset)) {
        return {least.offset, 0};
    }
    const Line others = left_out(i);
    constexpr double rounding = 0.02; // steps
    return {least.offset / step - others.offset - rounding,
            least.slope / step - others.slope};
}

/// How many parts to read, such that only rows in their lists may have the
/// score.
size_t SparseScan::num_needed() const {
    size_t low = 0, high = num_parts();
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (least_required(required(middle)) > 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return high;
}

/// The least of these sums for all rows of the block.
double SparseScan::least_required(const Line& line) const {
    const size_t number = begin / lists.block;
    return line.at(
            line.slope > 0 ? lists.least_weights[number]
                           : lists.largest_weights[number]);
}

void SparseScan::set_required(double score) {
    set_least(score);
    last_required = required(num_read);
    read_at_last = num_read;
}

void SparseScan::find(size_t number, double score) {
    const size_t first = number * lists.block;
    found = {};
    set_least(score);
    if (sum.is_at_most_weight) { // of the largest row in the block
        const double largest = lists.largest_weights[number];
        if (least.offset + least.slope * largest > largest * (1 + error)) {
            return;
        }
    }
    begin_block(first, std::min(first + lists.block, lists.num_rows));
    size_t num_entries = 0;
    for (const size_t needed = num_needed(); num_read < needed;) {
        num_entries += read_next();
    }
    const Line line = required(num_read);
    const size_t count = simd::positions_at_least(
            end - begin,
            sums.get(),
            lists.weights.data() + begin,
            float(line.offset),
            float(line.slope),
            float(least_required(line) - 0.01),
            positions.get());
    found = {positions.get(), count};
    while (!found.empty()) {
        // more lists, if reading them takes less than the comparisons that they
        // may save
        const size_t worth = found.size() * comparison / 2;
        const size_t before = num_entries;
        while (num_read < num_parts() && num_entries - before < worth / 4) {
            if (length_of_next() + (end - begin) / 16 > worth) {
                break;
            }
            num_entries += read_next() + 1;
        }
        if (num_entries == before) {
            break;
        }
        keep_possible(score);
    }
    time += num_entries + terms.size() + (end - begin) / 16;
}

uint32_t SparseScan::row(uint32_t number) const {
    return lists.order[begin + number];
}

} // namespace faiss_ext
