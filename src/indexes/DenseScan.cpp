// SPDX-License-Identifier: MIT
#include "indexes/DenseScan.h"

#include <algorithm>

#include "indexes/SparseScan.h"
#include "indexes/SparseSegment.h"
#include "indexes/SumBound.h"
#include "indexes/blocked_scan.h"
#include "simd/sparse_scan.h"

namespace faiss_ext {

DenseScan::DenseScan(
        const AppendedRows& all,
        const SparseLists& lists,
        const DenseQueries& queries)
        : all(all),
          lists(lists),
          queries(queries),
          rows(at_a_time * queries.d),
          sums(queries.searches.size() * block_size()),
          positions(std::make_unique_for_overwrite<uint32_t[]>(
                  block_size() + 16)) {}

size_t DenseScan::block_size() const {
    constexpr size_t most_sums = size_t(1) << 20, most_rows = 4096;
    return std::clamp(
            most_sums / queries.searches.size() / at_a_time * at_a_time,
            at_a_time,
            most_rows);
}

void DenseScan::set_block(size_t first, size_t last) {
    begin = first;
    end = last;
    for_chunks(first, last, at_a_time, [&](size_t from, size_t to) {
        std::fill_n(rows.get(), (to - from) * queries.d, 0.0f);
        for (size_t i = from; i < to; i++) {
            const SparseRow row = all[lists.order[i]];
            const float scale = lists.scale(i);
            float* dense = &rows[(i - from) * queries.d];
            for (size_t at = 0; at < row.size(); at++) {
                dense[row.columns[at]] = scale * row.values[at];
            }
        }
        queries.searches[0].sum->terms->block(
                queries.searches.size(),
                queries.x,
                to - from,
                rows.get(),
                queries.d,
                sums_from(0, from - first));
    });
}

void DenseScan::set_score(double score) {
    if (score == last_score) {
        return;
    }
    last_score = score;
    const SparseSearch& how = queries.searches[query];
    const SharedSum::Least least = least_with_error(
            *how.sum,
            score,
            how.weight,
            SparseScan::relative_error(how.query.components().size()));
    offset = least.offset;
    slope = std::max(least.slope, 0.0);
}

void DenseScan::find(size_t of, double score) {
    query = of;
    last_score = std::numeric_limits<double>::quiet_NaN();
    set_score(score);
    size_t count = 0;
    const size_t n = end - begin;
    for (size_t first = 0; first < n; first += at_a_time) {
        count += simd::positions_at_least(
                std::min(at_a_time, n - first),
                sums_from(query, first),
                &lists.weights[begin + first],
                float(offset),
                float(slope),
                uint32_t(first),
                &positions[count]);
    }
    found = {positions.get(), count};
}

} // namespace faiss_ext
