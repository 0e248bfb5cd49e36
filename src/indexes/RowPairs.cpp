// SPDX-License-Identifier: MIT
#include "indexes/RowPairs.h"

#include <algorithm>
#include <limits>

namespace faiss_ext {

namespace {

size_t first_similar_row(const OrderedRows& rows, const SumBound& bound) {
    if (!bound.sum.has_roots) {
        return 0;
    }
    // a value is 0 if one of the weights is 0
    return std::upper_bound(rows.weights.begin(), rows.weights.end(), 0.0) -
            rows.weights.begin();
}

} // namespace

RowPairs::RowPairs(const OrderedRows& rows, const SumBound& bound)
        : rows(rows),
          bound(bound),
          bits(rows, bound.has_minima),
          first_row(first_similar_row(rows, bound)) {}

RowPairs::Range RowPairs::range_of(size_t row) const {
    const double weight = rows.weights[row];
    Range range = {bound.least(weight, weight), row, row};
    if (row < first_row) {
        return range;
    }
    const auto first = rows.weights.begin();
    range.light = std::partition_point(
                          first + first_row,
                          first + row,
                          [&](double w) { return range.line.at(w) <= 0; }) -
            first;
    range.begin = range.light;
    if (bound.excludes_light(range.line)) {
        range.begin =
                std::partition_point(
                        first + range.light,
                        first + row,
                        [&](double w) {
                            return !bound.may_reach(range.line, weight, w);
                        }) -
                first;
    }
    return range;
}

void RowPairs::keep_possible(
        size_t row,
        const SumBound::Line& line,
        std::vector<uint32_t>& others,
        std::vector<uint32_t>& common) const {
    common.resize(others.size());
    bits.count_common(row, others.size(), others.data(), common.data());
    const double row_mass = mass(row);
    size_t kept = 0;
    for (size_t i = 0; i < others.size(); i++) {
        const uint32_t other = others[i];
        const double shared = bits.mass_shared(row, row_mass, common[i]);
        const double other_shared =
                bits.mass_shared(other, mass(other), common[i]);
        others[kept] = other;
        kept += bound.most(
                        std::max(0.0, shared), std::max(0.0, other_shared)) >=
                line.at(rows.weights[other]);
    }
    others.resize(kept);
}

bool RowPairs::reaches(size_t a, size_t b, double least) const {
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

double RowPairs::similarity(double sum, double mass, double other_mass) const {
    const double largest = bound.has_minima ? mass + other_mass - sum
                                            : bound.most(mass, other_mass);
    return largest > 0 ? std::clamp(sum / largest, 0.0, 1.0) : 0;
}

double RowPairs::similarity(size_t a, size_t b) const {
    double sum = 0;
    int64_t i = rows.starts[a], j = rows.starts[b];
    while (i < rows.starts[a + 1] && j < rows.starts[b + 1]) {
        const uint32_t x = rows.columns[i], y = rows.columns[j];
        const double u = rows.terms[i], v = rows.terms[j];
        if (x == y) {
            sum += bound.has_minima ? std::min(u, v) : u * v;
        }
        i += x <= y;
        j += y <= x;
    }
    return similarity(sum, mass(a), mass(b));
}

double RowPairs::least_similarity(size_t row) const {
    const Range range = range_of(row);
    if (row < first_row || (range.light > first_row && row > first_row)) {
        return row < first_row ? std::numeric_limits<double>::infinity() : 0;
    }
    if (range.begin == row) {
        return std::numeric_limits<double>::infinity();
    }
    const auto at = [&](double weight) {
        return similarity(
                range.line.at(weight), mass(row), bound.mass_of_weight(weight));
    };
    // As a function of the other weight, the similarity descends and then
    // ascends, or the reverse; its least value within is at the place where the
    // offset of the line equals the rest of it.
    const double low = rows.weights[range.begin], high = rows.weights[row - 1];
    double least = std::min(at(low), at(high));
    const auto [offset, slope] = range.line;
    if (!bound.has_minima && slope > 0 && offset > 0) {
        least = std::min(least, at(std::clamp(offset / slope, low, high)));
    }
    return least;
}

} // namespace faiss_ext
