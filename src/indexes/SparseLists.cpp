// SPDX-License-Identifier: MIT
#include "indexes/SparseLists.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include <faiss_ext/kernels/Kernel.h>
#include <faiss_ext/kernels/LinearKernel.h>

#include "core/parallel.h"

namespace faiss_ext {

namespace {

constexpr size_t most_codes = SparseLists::num_codes;

/// The different values, ascending, if there are at most most_codes.
std::vector<float> few_different(std::span<const float> values) {
    std::set<float> found;
    float last = 0; // no value is 0
    for (const float v : values) {
        if (v != last && found.insert(v).second && found.size() > most_codes) {
            return {};
        }
        last = v;
    }
    return {found.begin(), found.end()};
}

/// Numbers that divide the values of one sign into intervals: `quantiles` of
/// them hold equally many values, and `steps` equal ratios.
void add_edges(
        const std::vector<float>& sorted,
        size_t quantiles,
        size_t steps,
        std::vector<float>& edges) {
    if (sorted.empty()) {
        return;
    }
    for (size_t i = 1; i < quantiles; i++) {
        edges.push_back(sorted[i * sorted.size() / quantiles]);
    }
    const double low = sorted.front(), high = sorted.back();
    for (size_t i = 1; i < steps; i++) {
        const double part = double(i) / double(steps);
        edges.push_back(
                float(std::copysign(1.0, low) *
                      std::exp(
                              std::log(std::abs(low)) * (1 - part) +
                              std::log(std::abs(high)) * part)));
    }
}

} // namespace

void AppendedRows::truncate(size_t n) {
    ends.resize(n);
    const size_t end = n == 0 ? 0 : ends.back();
    columns.make_owned().resize(end);
    values.make_owned().resize(end);
}

void AppendedRows::append(const SparseVectors& x) {
    if (x.n == 0) {
        return;
    }
    const int64_t begin = x.indptr[0], end = x.indptr[x.n];
    const size_t first = columns.size();
    auto& own_columns = columns.make_owned();
    auto& own_values = values.make_owned();
    ends.reserve(ends.size() + x.n);
    own_columns.reserve(first + (end - begin));
    own_values.insert(own_values.end(), x.values + begin, x.values + end);
    own_columns.insert(own_columns.end(), x.indices + begin, x.indices + end);
    for (idx_t i = 1; i <= x.n; i++) {
        ends.push_back(first + (x.indptr[i] - begin));
    }
}

void AppendedRows::append(const SparseRow& row) {
    auto& own_columns = columns.make_owned();
    auto& own_values = values.make_owned();
    own_columns.insert(
            own_columns.end(), row.columns.begin(), row.columns.end());
    own_values.insert(own_values.end(), row.values.begin(), row.values.end());
    ends.push_back(own_columns.size());
}

SparseVectors AppendedRows::vectors(idx_t d, std::vector<int64_t>& indptr)
        const {
    indptr.assign(1, 0);
    indptr.insert(indptr.end(), ends.begin(), ends.end());
    return {idx_t(size()),
            d,
            indptr.data(),
            columns.sequential(),
            values.sequential()};
}

float weight_of(const SharedSum& sum, const SparseRow& row) {
    constexpr float zero = 0;
    float weight = 0;
    const bool is_zero = row.size() == 0;
    sum.terms->self_values(
            1,
            is_zero ? &zero : row.values.data(),
            std::max<size_t>(1, row.size()),
            &weight);
    if (weight < Kernel::least_self_value) {
        weight = 0; // it has lost digits
    }
    return sum.has_roots ? std::sqrt(weight) : weight;
}

SparseLists::SparseLists(
        const AppendedRows& from,
        size_t num_rows,
        size_t d,
        const SharedSum& sum)
        : num_rows(num_rows) {
    const std::span<const float> values(
            from.values.sequential(),
            num_rows == 0 ? 0 : from.ends[num_rows - 1]);
    are_histograms = std::all_of(
            values.begin(), values.end(), [](float v) { return v >= 0; });
    set_order(from, sum);
    const std::vector<float> different = few_different(values);
    const bool are_few = !different.empty() && different.size() < num_levels;
    if (sum.has_roots && dynamic_cast<const LinearKernel*>(sum.terms) &&
        !are_few) {
        const std::vector<float> scaled = scale_rows(from);
        choose_intervals(scaled, few_different(scaled));
    } else {
        choose_intervals(values, different);
    }
    have_finite_weights =
            std::all_of(weights.begin(), weights.end(), [](float w) {
                return std::isfinite(w);
            });
    choose_block();
    fill(from, d);
    for (size_t i = 0; i < num_rows; i += block) {
        const auto begin = weights.begin() + i;
        const auto end = begin + std::min(block, num_rows - i);
        const auto [least, largest] = std::minmax_element(begin, end);
        least_weights.push_back(*least);
        largest_weights.push_back(*largest);
        mean_weights.push_back(
                float(std::accumulate(begin, end, 0.0) / double(end - begin)));
    }
    divide_long_lists();
}

/// Numbers the rows by ascending weight. Weights that differ by less than an
/// eighth of an octave count as equal.
void SparseLists::set_order(const AppendedRows& from, const SharedSum& sum) {
    std::vector<float> by_row(num_rows);
    parallel_blocks(num_rows, small_block, [&](idx_t begin, idx_t end) {
        for (idx_t i = begin; i < end; i++) {
            by_row[i] = weight_of(sum, from[i]);
        }
    });
    std::vector<int32_t> rank(num_rows);
    for (size_t i = 0; i < num_rows; i++) {
        const float w = by_row[i];
        rank[i] = w > 0 && std::isfinite(w)
                ? int32_t(std::lround(8 * std::log2(w)))
                : std::numeric_limits<int32_t>::min();
    }
    order.resize(num_rows);
    std::iota(order.begin(), order.end(), uint16_t(0));
    std::stable_sort(order.begin(), order.end(), [&](uint16_t a, uint16_t b) {
        return rank[a] < rank[b];
    });
    weights.resize(num_rows);
    for (size_t i = 0; i < num_rows; i++) {
        weights[i] = by_row[order[i]];
    }
}

/// Chooses large blocks if seven of eight rows have about the same weight.
void SparseLists::choose_block() {
    if (num_rows == 0 || !have_finite_weights) {
        return;
    }
    constexpr float alike = 1.25;
    const size_t lighter = num_rows / 16, heavier = num_rows - 1 - lighter;
    std::vector<float> sorted = weights;
    std::sort(sorted.begin(), sorted.end());
    if (sorted[heavier] <= alike * sorted[lighter]) {
        block = large_block;
    }
}

void SparseLists::divide_long_lists() {
    long_groups.assign(groups.size(), 0);
    for (size_t l = 0; l < columns.size(); l++) {
        if (length(l) < least_long) {
            continue;
        }
        long_lists.push_back(uint32_t(l));
        long_groups[(columns[l] >> group_shift) + 1]++;
        const size_t first = parts.size();
        parts.resize(first + num_blocks());
        for (size_t at = starts[l]; at < starts[l + 1]; at++) {
            Part& part = parts[first + rows[at] / block];
            const auto number = uint32_t(at - starts[l]);
            part.begin = part.end == 0 ? number : part.begin;
            part.end = number + 1;
            part.low_code = std::min(part.low_code, codes[at]);
            part.high_code = std::max(part.high_code, codes[at]);
        }
    }
    std::partial_sum(
            long_groups.begin(), long_groups.end(), long_groups.begin());
}

/// Divides the rows by their weights, which are 1 then, unless digits would be
/// lost. Returns their values.
std::vector<float> SparseLists::scale_rows(const AppendedRows& from) {
    scales.assign(num_rows, 1);
    std::vector<float> values;
    for (size_t i = 0; i < num_rows; i++) {
        const float scale = 1 / weights[i];
        if (std::isnormal(weights[i]) && std::isnormal(scale)) {
            scales[i] = scale;
            weights[i] = 1;
        }
        for (const float v : from[order[i]].values) {
            values.push_back(v * scales[i]);
        }
    }
    return values;
}

/// @param different  the values, if they are few
void SparseLists::choose_intervals(
        std::span<const float> values,
        const std::vector<float>& different) {
    if (!different.empty()) {
        edges.assign(different.begin() + 1, different.end());
    } else if (!values.empty()) {
        constexpr size_t most_sampled = 1 << 16;
        const size_t step = values.size() / most_sampled + 1;
        std::vector<float> negative, positive;
        for (size_t i = 0; i < values.size(); i += step) {
            (values[i] < 0 ? negative : positive).push_back(values[i]);
        }
        const auto [least, most] =
                std::minmax_element(values.begin(), values.end());
        (*least < 0 ? negative : positive).push_back(*least);
        (*most < 0 ? negative : positive).push_back(*most);
        const bool have_both = !negative.empty() && !positive.empty();
        const size_t share = have_both ? most_codes / 4 : most_codes / 2;
        for (std::vector<float>* part : {&negative, &positive}) {
            std::sort(part->begin(), part->end());
            add_edges(*part, share, share, edges);
        }
        if (have_both) {
            edges.push_back(0);
        }
        std::sort(edges.begin(), edges.end());
        edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    }
    constexpr float inf = std::numeric_limits<float>::infinity();
    lows.assign(edges.size() + 1, inf);
    highs.assign(edges.size() + 1, -inf);
}

uint8_t SparseLists::code(float value) const {
    return uint8_t(
            std::upper_bound(edges.begin(), edges.end(), value) -
            edges.begin());
}

namespace {

/// The number of each column among those that occur.
class ColumnNumbers {
   public:
    std::vector<int32_t> columns; ///< ascending

    ColumnNumbers(std::span<const int32_t> all, size_t d) {
        if (d / 16 <= all.size()) {
            numbers.resize(d);
            for (const int32_t c : all) {
                numbers[c] = 1;
            }
            for (size_t c = 0; c < d; c++) {
                if (numbers[c]) {
                    numbers[c] = uint32_t(columns.size());
                    columns.push_back(int32_t(c));
                }
            }
        } else {
            columns.assign(all.begin(), all.end());
            std::sort(columns.begin(), columns.end());
            columns.erase(
                    std::unique(columns.begin(), columns.end()), columns.end());
        }
    }

    size_t operator[](int32_t column) const {
        return numbers.empty()
                ? std::lower_bound(columns.begin(), columns.end(), column) -
                        columns.begin()
                : numbers[column];
    }

   private:
    std::vector<uint32_t> numbers; ///< by column; empty if there are too many
};

/// Divides codes into at most `most` intervals, such that the values are close
/// to the largest ones of their intervals. counts and highs: of each code.
/// Returns the number of each code's interval, from 1 on; 0 for unused codes.
std::vector<uint8_t> divide_codes(
        std::span<const uint32_t> counts,
        std::span<const float> highs,
        size_t most) {
    std::vector<size_t> used;
    for (size_t c = 0; c < counts.size(); c++) {
        if (counts[c] > 0) {
            used.push_back(c);
        }
    }
    // costs[j][i]: the least sum of distances to the largest value of the
    // interval, if the first i codes are in j intervals
    const size_t n = used.size();
    constexpr double inf = std::numeric_limits<double>::infinity();
    most = std::min(most, n);
    std::vector<std::vector<double>> costs(
            most + 1, std::vector<double>(n + 1, inf));
    std::vector<std::vector<size_t>> begins(
            most + 1, std::vector<size_t>(n + 1));
    costs[0][0] = 0;
    for (size_t j = 1; j <= most; j++) {
        for (size_t i = j; i <= n; i++) {
            const double high = highs[used[i - 1]];
            double cost = 0;
            for (size_t b = i; b >= j; b--) { // the interval begins with code b
                cost += counts[used[b - 1]] * (high - highs[used[b - 1]]);
                const double all = costs[j - 1][b - 1] + cost;
                if (all < costs[j][i]) {
                    costs[j][i] = all;
                    begins[j][i] = b - 1;
                }
            }
        }
    }
    std::vector<uint8_t> numbers(counts.size());
    for (size_t j = most, end = n; j > 0; j--) {
        const size_t begin = begins[j][end];
        for (size_t i = begin; i < end; i++) {
            numbers[used[i]] = uint8_t(j);
        }
        end = begin;
    }
    return numbers;
}

} // namespace

void SparseLists::fill(const AppendedRows& from, size_t d) {
    constexpr size_t full = 16, least_rows = 1024;
    const size_t total = num_rows == 0 ? 0 : from.ends[num_rows - 1];
    mean_components = total / std::max<size_t>(num_rows, 1);
    const std::span<const int32_t> all(from.columns.sequential(), total);
    const ColumnNumbers numbers(all, d);
    std::vector<size_t> counts(numbers.columns.size());
    for (const int32_t c : all) {
        counts[numbers[c]]++;
    }
    // the list, or full column, of each column that occurs
    std::vector<uint32_t> list_of(counts.size());
    std::vector<bool> is_full(counts.size());
    starts.push_back(0);
    for (size_t i = 0; i < counts.size(); i++) {
        is_full[i] = num_rows >= least_rows && counts[i] * full >= num_rows;
        std::vector<int32_t>& to = is_full[i] ? full_columns : columns;
        list_of[i] = uint32_t(to.size());
        to.push_back(numbers.columns[i]);
        if (!is_full[i]) {
            starts.push_back(starts.back() + counts[i]);
        }
    }
    group_columns();
    std::vector<size_t> next(starts.begin(), starts.end() - 1);
    rows.resize(starts.back());
    codes.resize(starts.back());
    low_codes.assign(columns.size(), 255);
    high_codes.assign(columns.size(), 0);
    std::vector<uint32_t> code_counts(full_columns.size() * most_codes);
    for (size_t row = 0; row < num_rows; row++) {
        const SparseRow components = from[order[row]];
        for (size_t at = 0; at < components.size(); at++) {
            const size_t number = numbers[components.columns[at]];
            const size_t l = list_of[number];
            const float value = components.values[at] * scale(row);
            const uint8_t c = code(value);
            lows[c] = std::min(lows[c], value);
            highs[c] = std::max(highs[c], value);
            if (is_full[number]) {
                code_counts[l * most_codes + c]++;
                continue;
            }
            const size_t to = next[l]++;
            rows[to] = uint16_t(row);
            codes[to] = c;
            low_codes[l] = std::min(low_codes[l], c);
            high_codes[l] = std::max(high_codes[l], c);
        }
    }
    for (size_t c = 0; c < lows.size(); c++) { // codes that no value has
        if (lows[c] > highs[c]) {
            lows[c] = highs[c] = 0;
        }
    }
    fill_levels(from, code_counts);
}

/// Makes about a fourth as many groups as columns.
void SparseLists::group_columns() {
    const size_t most = columns.size() / 4 + 1;
    const size_t last = columns.empty() ? 0 : columns.back();
    while ((last >> group_shift) >= most) {
        group_shift++;
    }
    groups.assign((last >> group_shift) + 2, 0);
    for (const int32_t c : columns) {
        groups[(c >> group_shift) + 1]++;
    }
    std::partial_sum(groups.begin(), groups.end(), groups.begin());
}

void SparseLists::fill_levels(
        const AppendedRows& from,
        const std::vector<uint32_t>& code_counts) {
    const size_t n = full_columns.size(), size = levels_size();
    std::vector<uint8_t> level_of;
    for (size_t f = 0; f < n; f++) {
        const auto found = divide_codes(
                {&code_counts[f * most_codes], lows.size()},
                highs,
                num_levels - 1);
        level_of.insert(level_of.end(), found.begin(), found.end());
    }
    constexpr size_t padding = 64; // see simd::add_levels
    levels.resize(n == 0 ? 0 : n * size + padding);
    least_levels.assign(n * num_blocks(), num_levels - 1);
    largest_levels.assign(n * num_blocks(), 0);
    Levels none;
    none.fill(std::numeric_limits<float>::infinity());
    level_lows.assign(n, none);
    none.fill(-std::numeric_limits<float>::infinity());
    level_highs.assign(n, none);
    for (size_t row = 0; row < num_rows; row++) {
        const SparseRow components = from[order[row]];
        auto column = full_columns.begin();
        for (size_t at = 0; at < components.size(); at++) {
            column = std::lower_bound(
                    column, full_columns.end(), components.columns[at]);
            if (column == full_columns.end()) {
                break;
            }
            if (*column != components.columns[at]) {
                continue;
            }
            const size_t f = column - full_columns.begin();
            const float value = components.values[at] * scale(row);
            const uint8_t level = level_of[f * lows.size() + code(value)];
            level_lows[f][level] = std::min(level_lows[f][level], value);
            level_highs[f][level] = std::max(level_highs[f][level], value);
            const size_t group = row / rows_per_group;
            const size_t in_group = row % rows_per_group;
            levels[f * size + group * 16 + in_group % 16] |=
                    uint8_t(level << (in_group < 16 ? 0 : 4));
            uint8_t& least = least_levels[f * num_blocks() + row / block];
            uint8_t& largest = largest_levels[f * num_blocks() + row / block];
            least = std::min(least, level);
            largest = std::max(largest, level);
        }
    }
    for (size_t f = 0; f < n; f++) { // levels that no value has
        for (size_t level = 0; level < num_levels; level++) {
            if (level_lows[f][level] > level_highs[f][level]) {
                level_lows[f][level] = level_highs[f][level] = 0;
            }
        }
    }
}

} // namespace faiss_ext
