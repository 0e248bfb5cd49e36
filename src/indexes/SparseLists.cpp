// SPDX-License-Identifier: MIT
#include "indexes/SparseLists.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include <faiss_ext/kernels/Kernel.h>

#include "core/parallel.h"

namespace faiss_ext {

namespace {

constexpr size_t most_codes = 256;

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

void SparseRows::truncate(size_t n) {
    ends.resize(n);
    columns.resize(n == 0 ? 0 : ends.back());
    values.resize(columns.size());
}

void SparseRows::append(const SparseVectors& x) {
    if (x.n == 0) {
        return;
    }
    const int64_t begin = x.indptr[0], end = x.indptr[x.n];
    const size_t first = columns.size();
    ends.reserve(ends.size() + x.n);
    columns.reserve(first + (end - begin));
    values.insert(values.end(), x.values + begin, x.values + end);
    columns.insert(columns.end(), x.indices + begin, x.indices + end);
    for (idx_t i = 1; i <= x.n; i++) {
        ends.push_back(first + (x.indptr[i] - begin));
    }
}

void SparseRows::append(const SparseRow& row) {
    columns.insert(columns.end(), row.columns.begin(), row.columns.end());
    values.insert(values.end(), row.values.begin(), row.values.end());
    ends.push_back(columns.size());
}

SparseVectors SparseRows::vectors(idx_t d, std::vector<int64_t>& indptr) const {
    indptr.assign(1, 0);
    indptr.insert(indptr.end(), ends.begin(), ends.end());
    return {idx_t(size()), d, indptr.data(), columns.data(), values.data()};
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
        const SparseRows& from,
        size_t num_rows,
        size_t d,
        const SharedSum& sum)
        : num_rows(num_rows) {
    const std::span<const float> values(
            from.values.data(), num_rows == 0 ? 0 : from.ends[num_rows - 1]);
    are_histograms = std::all_of(
            values.begin(), values.end(), [](float v) { return v >= 0; });
    choose_intervals(values);
    set_order(from, sum);
    fill(from, d);
    have_finite_weights =
            std::all_of(weights.begin(), weights.end(), [](float w) {
                return std::isfinite(w);
            });
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
void SparseLists::set_order(const SparseRows& from, const SharedSum& sum) {
    std::vector<float> by_row(num_rows);
    parallel_blocks(num_rows, block, [&](idx_t begin, idx_t end) {
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

void SparseLists::divide_long_lists() {
    for (size_t l = 0; l < columns.size(); l++) {
        if (length(l) < least_long) {
            continue;
        }
        long_lists.push_back(uint32_t(l));
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
}

void SparseLists::choose_intervals(std::span<const float> values) {
    const std::vector<float> different = few_different(values);
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

void SparseLists::fill(const SparseRows& from, size_t d) {
    const size_t total = num_rows == 0 ? 0 : from.ends[num_rows - 1];
    const auto begin = from.columns.begin(), end = begin + total;
    // where the next entry of each column goes
    std::vector<uint32_t> counts;
    const bool is_dense = d / 16 <= total;
    if (is_dense) {
        counts.resize(d);
        std::for_each(begin, end, [&](int32_t c) { counts[c]++; });
        for (size_t c = 0; c < d; c++) {
            if (counts[c] > 0) {
                columns.push_back(int32_t(c));
            }
        }
    } else {
        columns.assign(begin, end);
        std::sort(columns.begin(), columns.end());
        columns.erase(
                std::unique(columns.begin(), columns.end()), columns.end());
        columns.shrink_to_fit();
    }
    std::vector<uint32_t> list_of(is_dense ? d : 0);
    for (size_t i = 0; is_dense && i < columns.size(); i++) {
        list_of[columns[i]] = uint32_t(i);
    }
    const auto list = [&](int32_t column) -> size_t {
        return is_dense
                ? list_of[column]
                : std::lower_bound(columns.begin(), columns.end(), column) -
                        columns.begin();
    };
    std::vector<size_t> next(columns.size() + 1);
    std::for_each(begin, end, [&](int32_t c) { next[list(c) + 1]++; });
    for (size_t i = 0; i < columns.size(); i++) {
        next[i + 1] += next[i];
    }
    starts = next;
    rows.resize(total);
    codes.resize(total);
    low_codes.assign(columns.size(), 255);
    high_codes.assign(columns.size(), 0);
    for (size_t row = 0; row < num_rows; row++) {
        const SparseRow components = from[order[row]];
        for (size_t at = 0; at < components.size(); at++) {
            const size_t l = list(components.columns[at]), to = next[l]++;
            const float value = components.values[at];
            const uint8_t c = code(value);
            rows[to] = uint16_t(row);
            codes[to] = c;
            lows[c] = std::min(lows[c], value);
            highs[c] = std::max(highs[c], value);
            low_codes[l] = std::min(low_codes[l], c);
            high_codes[l] = std::max(high_codes[l], c);
        }
    }
}

} // namespace faiss_ext
