// SPDX-License-Identifier: MIT
#include "indexes/SparseSegment.h"

#include <limits>
#include <numeric>
#include <span>

#include "core/errors.h"
#include "core/scratch.h"
#include "indexes/SparseScan.h"
#include "indexes/SumBound.h"
#include "indexes/blocked_scan.h"

namespace faiss_ext {

void SparseHits::push(size_t n, const float* scores, const idx_t* ids) {
    for (size_t i = 0; i < n; i++) {
        if (!are_within()) {
            nearest.push(scores[i], ids[i]);
        } else if (scores[i] <= limit) {
            all.emplace_back(scores[i], ids[i]);
        }
    }
    if (!are_within() && nearest.scores.size() >= nearest.k) {
        nearest.shrink(); // each comparison that a bound spares costs more
    }
}

void SparseHits::append_to(std::vector<Hit>& hits) const {
    hits.insert(hits.end(), all.begin(), all.end());
    for (size_t i = 0; i < nearest.scores.size(); i++) {
        hits.emplace_back(nearest.scores[i], nearest.ids[i]);
    }
}

void SparseSegment::fields(FieldVisitor& v) const {
    v.array("row ends", all.ends);
    v.array("columns", all.columns, all.ends.empty() ? 0 : all.ends.back());
    v.array("values", all.values, all.columns.size());
    v.array("places", ids, all.ends.size());
}

SparseVectors SparseSegment::checked(idx_t d, std::vector<int64_t>& indptr)
        const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            size() <= most_rows && all.size() == size() &&
                    std::is_sorted(all.ends.begin(), all.ends.end()) &&
                    all.columns.size() ==
                            (all.ends.empty() ? 0 : all.ends.back()) &&
                    all.values.size() == all.columns.size(),
            "IndexSparseKernel: the arrays of %zu sparse vectors do not match",
            size());
    return all.vectors(d, indptr);
}

void SparseSegment::restore() {
    removed_count = std::count(ids.begin(), ids.end(), removed);
    lists = nullptr;
}

void SparseSegment::append(const SparseVectors& x, idx_t first) {
    ids.reserve(ids.size() + x.n);
    all.append(x);
    for (idx_t i = 0; i < x.n; i++) {
        ids.push_back(int32_t(first + i));
    }
}

void SparseSegment::append(const SparseRow& row, idx_t place) {
    ids.reserve(ids.size() + 1);
    all.append(row);
    ids.push_back(int32_t(place));
}

void SparseSegment::truncate(size_t n) {
    if (lists && lists->num_rows > n) {
        lists = nullptr;
    }
    for (size_t i = n; i < ids.size(); i++) {
        removed_count -= ids[i] == removed;
    }
    ids.resize(n);
    all.truncate(n);
}

void SparseSegment::remove(size_t i) {
    ids[i] = removed;
    removed_count++;
}

size_t SparseSegment::free_last() {
    const size_t listed = removed_count < size() && lists ? lists->num_rows : 0;
    size_t n = size();
    while (n > listed && ids[n - 1] == removed) {
        n--;
    }
    truncate(n);
    return n;
}

void SparseSegment::prepare(
        const Kernel& kernel,
        const SharedSum& sum,
        size_t d) const {
    const std::string name = kernel.description();
    const std::lock_guard<std::mutex> hold(mutex);
    const size_t listed = lists ? lists->num_rows : 0;
    const auto components = [&](size_t rows) {
        return rows == 0 ? 0 : all.ends[rows - 1];
    };
    const size_t in_lists = components(listed);
    const bool are_few_others = size() - listed <= 1024 + listed / 4 &&
            components(size()) - in_lists <= 65536 + in_lists / 4;
    if (lists && lists_of == name && are_few_others) {
        return;
    }
    if (!lists && are_few_others) {
        return;
    }
    lists = std::make_shared<const SparseLists>(all, size(), d, sum);
    lists_of = name;
}

void SparseSegment::compare(
        const SparseSearch& how,
        std::vector<uint32_t>& rows,
        SparseHits& hits) const {
    std::erase_if(rows, [&](uint32_t i) {
        return ids[i] == removed || (how.sel && !how.sel->is_member(ids[i]));
    });
    std::vector<SparseRow> gathered;
    gathered.reserve(rows.size());
    for (const uint32_t i : rows) {
        gathered.push_back(all[i]);
    }
    const Scratch scores(rows.size());
    how.query.scores(how.metric, gathered, scores.get());
    std::vector<idx_t> found(rows.size());
    std::transform(rows.begin(), rows.end(), found.begin(), [&](uint32_t i) {
        return ids[i];
    });
    hits.push(rows.size(), scores.get(), found.data());
}

void SparseSegment::compare_all(
        const SparseSearch& how,
        size_t begin,
        size_t end,
        SparseHits& hits) const {
    std::vector<uint32_t> rows;
    for_chunks(idx_t(begin), idx_t(end), 256, [&](idx_t first, idx_t last) {
        rows.resize(last - first);
        std::iota(rows.begin(), rows.end(), uint32_t(first));
        compare(how, rows, hits);
    });
}

std::shared_ptr<const SparseLists> SparseSegment::current_lists() const {
    const std::lock_guard<std::mutex> hold(mutex);
    return lists;
}

/// The lists, if they bound the scores of a query; otherwise null.
std::shared_ptr<const SparseLists> SparseSegment::lists_for(
        const SparseSearch& how) const {
    if (!how.sum || (how.sum->is_of_histograms && !how.is_histogram) ||
        !std::isfinite(how.weight)) {
        return nullptr;
    }
    auto current = current_lists();
    const bool have_bounds = current && current->have_finite_weights &&
            (current->are_histograms || !how.sum->is_of_histograms);
    return have_bounds ? current : nullptr;
}

void SparseSegment::search(const SparseSearch& how, SparseHits& hits) const {
    const auto current = lists_for(how);
    size_t begin = 0;
    if (current && how.query.components().size() <= SparseScan::most_terms) {
        scan_lists(*current, how, hits);
        begin = current->num_rows;
    }
    compare_all(how, begin, size(), hits);
}

/// Bounds the hits by a comparison with some rows.
void SparseSegment::set_first_bound(
        const SparseSearch& how,
        std::vector<uint32_t> rows,
        SparseHits& hits) const {
    SparseHits first(hits.most());
    compare(how, rows, first);
    hits.set_bound(first.bound());
}

namespace {

/// Sums of dense queries with the rows of lists, of which some are made dense
/// at a time.
struct DenseSums {
    const AppendedRows& all;
    const SparseLists& lists;
    const SharedSum& sum;
    const size_t n, d;
    const float* const x; ///< queries, size n * d

    static constexpr size_t at_a_time = 64;
    const Scratch rows{at_a_time * d};

    /// Writes sums with the rows from `begin` to `end`, n * (end - begin).
    void get(size_t begin, size_t end, float* sums) const {
        std::fill_n(rows.get(), (end - begin) * d, 0.0f);
        for (size_t i = begin; i < end; i++) {
            const SparseRow row = all[lists.order[i]];
            float* to = &rows[(i - begin) * d];
            for (size_t at = 0; at < row.size(); at++) {
                to[row.columns[at]] = lists.scale(i) * row.values[at];
            }
        }
        sum.terms->block(n, x, end - begin, rows.get(), d, sums);
    }
};

} // namespace

/** Compares rows some at a time, because comparisons lower the bound.
 *
 * @param n         rows, the most promising first
 * @param may_have  may_have(i) tells whether row i may have a score of
 *                  hits.bound()
 * @param row_of    row_of(i) is the row
 */
template <class MayHave, class RowOf>
void SparseSegment::compare_promising(
        const SparseSearch& how,
        size_t n,
        MayHave&& may_have,
        RowOf&& row_of,
        SparseHits& hits) const {
    constexpr size_t at_a_time = 16;
    std::vector<uint32_t> rows;
    for (size_t i = 0; i < n;) {
        rows.clear();
        for (; i < n && rows.size() < at_a_time; i++) {
            if (may_have(i)) {
                rows.push_back(row_of(i));
            }
        }
        compare(how, rows, hits);
    }
}

/** Compares the rows that may be needed by their sums, from the most promising
 * one on.
 *
 * @param weights  of the rows
 * @param sum_of   sum_of(number) is the sum with a row
 * @param row_of   row_of(number) is the row
 */
template <class SumOf, class RowOf>
void SparseSegment::compare_found(
        const SparseSearch& how,
        std::span<const float> weights,
        SumOf&& sum_of,
        RowOf&& row_of,
        SparseHits& hits) const {
    const double error =
            SparseScan::relative_error(how.query.components().size());
    float score = std::numeric_limits<float>::quiet_NaN();
    SharedSum::Least least;
    const auto margin = [&](uint32_t j) {
        if (score != hits.bound()) {
            score = hits.bound();
            least = least_with_error(*how.sum, score, how.weight, error);
            least.slope = std::max(least.slope, 0.0);
        }
        return sum_of(j) - (least.offset + least.slope * weights[j]);
    };
    std::vector<std::pair<float, uint32_t>> found; // -margin, number
    for (uint32_t j = 0; j < weights.size(); j++) {
        const double m = margin(j);
        if (m >= 0) {
            found.emplace_back(float(-m), j);
        }
    }
    std::sort(found.begin(), found.end());
    compare_promising(
            how,
            found.size(),
            [&](size_t i) { return margin(found[i].second) >= 0; },
            [&](size_t i) { return row_of(found[i].second); },
            hits);
}

void SparseSegment::search_dense(const DenseQueries& given, SparseHits* hits)
        const {
    const auto& queries = given.searches;
    const size_t n = queries.size();
    std::shared_ptr<const SparseLists> current = lists_for(queries[0]);
    for (size_t i = 1; i < n && current; i++) {
        current = lists_for(queries[i]);
    }
    if (!current) {
        for (size_t i = 0; i < n; i++) {
            search(queries[i], hits[i]);
        }
        return;
    }
    const size_t num_rows = current->num_rows;
    for (size_t i = 0; i < n; i++) {
        if (!hits[i].are_within() && std::isinf(hits[i].bound())) {
            std::vector<uint32_t> rows(std::min(hits[i].most(), num_rows));
            std::iota(rows.begin(), rows.end(), 0);
            set_first_bound(queries[i], std::move(rows), hits[i]);
        }
    }
    const DenseSums dense{all, *current, *queries[0].sum, n, given.d, given.x};
    constexpr size_t rows_per_sum = DenseSums::at_a_time;
    // rows whose sums are kept together, so that the nearest are compared first
    constexpr size_t together = 4096;
    const Scratch sums(n * together);
    const auto compare_with = [&](size_t first, size_t last) {
        for_chunks(first, last, rows_per_sum, [&](size_t begin, size_t end) {
            dense.get(begin, end, &sums[(begin - first) * n]);
        });
        for (size_t i = 0; i < n; i++) {
            const auto sum_of = [&](size_t number) {
                const size_t begin = number / rows_per_sum * rows_per_sum;
                const size_t m = std::min(rows_per_sum, last - first - begin);
                return sums[begin * n + i * m + number - begin];
            };
            compare_found(
                    queries[i],
                    {&current->weights[first], last - first},
                    sum_of,
                    [&](uint32_t number) {
                        return current->order[first + number];
                    },
                    hits[i]);
        }
    };
    for_chunks(0, num_rows, together, compare_with);
    for (size_t i = 0; i < n; i++) {
        compare_all(queries[i], num_rows, size(), hits[i]);
    }
}

void SparseSegment::scan_lists(
        const SparseLists& lists,
        const SparseSearch& how,
        SparseHits& hits) const {
    SparseScan scan(lists, *how.sum, how.query.components(), how.weight);
    if (!hits.are_within() && std::isinf(hits.bound())) {
        // vectors with the rarest columns give a first bound
        set_first_bound(
                how,
                scan.rows_of_shortest(std::max<size_t>(32, 2 * hits.most())),
                hits);
    }
    const std::vector<uint32_t> blocks = scan.blocks();
    for_chunks(0, idx_t(blocks.size()), 1, [&](size_t begin, size_t) {
        constexpr size_t few = 16, many = 256;
        scan.find(blocks[begin], hits.bound());
        if (!hits.are_within() && scan.found.size() > many) {
            // the nearest ones exclude most others, which need not be sorted
            std::vector<uint32_t> rows = scan.take_promising(few);
            for (uint32_t& row : rows) {
                row = scan.row(row);
            }
            compare(how, rows, hits);
            scan.keep_possible(hits.bound());
        }
        scan.sort_found();
        compare_promising(
                how,
                scan.found.size(),
                [&](size_t i) {
                    return scan.may_have(scan.found[i], hits.bound());
                },
                [&](size_t i) { return scan.row(scan.found[i]); },
                hits);
    });
}

} // namespace faiss_ext
