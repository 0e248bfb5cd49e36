// SPDX-License-Identifier: MIT
#include "indexes/ScanJoin.h"

#include <algorithm>

#include "core/parallel.h"
#include "indexes/SparseScan.h"

namespace faiss_ext {

ScanJoin::ScanJoin(const RowPairs& pairs, const SparseVectors& x)
        : RowJoin(pairs), x(x) {
    for (size_t first = 0; first < rows.size();
         first += SparseLists::most_rows) {
        const size_t end =
                std::min(first + SparseLists::most_rows, rows.size());
        AppendedRows all;
        for (size_t row = first; row < end; row++) {
            check_interrupt();
            all.append(vector_of(row));
        }
        Segment segment;
        segment.first = first;
        segment.lists = std::make_unique<const SparseLists>(
                all, all.size(), x.d, bound.sum);
        const auto& order = segment.lists->order;
        const size_t block = segment.lists->block;
        for (size_t i = 0; i < order.size(); i += block) {
            const auto [least, largest] = std::minmax_element(
                    order.begin() + i,
                    order.begin() + std::min(i + block, order.size()));
            segment.least_rows.push_back(*least);
            segment.largest_rows.push_back(*largest);
        }
        segments.push_back(std::move(segment));
    }
}

double ScanJoin::least_time(const RowPairs& pairs) {
    constexpr double of_pair = 0.5, of_column = 0.02, of_list = 40;
    const double n = double(pairs.rows.size());
    const double components = double(pairs.rows.columns.size());
    return (of_pair * n + of_column * components) * n / 2 +
            of_list * components;
}

void ScanJoin::find(size_t row, State& state) const {
    const auto [line, light, begin] = start(row, state);
    if (begin == row) {
        return;
    }
    const SparseRow query = vector_of(row);
    for (const Segment& segment : segments) {
        if (segment.first >= row) {
            break;
        }
        if (!segment.lists->have_finite_weights ||
            query.size() > SparseScan::most_terms) {
            const size_t end = segment.first + segment.lists->num_rows;
            for (size_t other = std::max(begin, segment.first);
                 other < std::min(row, end);
                 other++) {
                state.candidates.push_back(uint32_t(other));
            }
            continue;
        }
        SparseScan scan(*segment.lists, bound.sum, query, rows.weights[row]);
        for (size_t i = 0; i < segment.least_rows.size(); i++) {
            if (segment.first + segment.least_rows[i] >= row ||
                segment.first + segment.largest_rows[i] < begin) {
                continue;
            }
            scan.find(i, bound.score);
            for (const uint32_t number : scan.found) {
                const size_t other = segment.first + scan.row(number);
                if (other >= begin && other < row) {
                    state.candidates.push_back(uint32_t(other));
                }
            }
        }
        state.entries += scan.time;
    }
    compare(row, line, state);
}

} // namespace faiss_ext
