// SPDX-License-Identifier: MIT
#include "indexes/SparseSegment.h"

#include <numeric>
#include <span>

#include "core/errors.h"
#include "core/scratch.h"
#include "indexes/SparseScan.h"
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

/// Compares the rows that a scan found, some at a time, because comparisons
/// lower the bound.
template <class Scan>
void SparseSegment::compare_found(
        const SparseSearch& how,
        Scan& scan,
        SparseHits& hits) const {
    constexpr size_t few = 16, many = 256;
    std::vector<uint32_t> rows;
    if (!hits.are_within() && scan.found.size() > many) {
        // the nearest ones exclude most others, which need not be sorted
        for (const uint32_t number : scan.take_promising(few, hits.bound())) {
            rows.push_back(scan.row(number));
        }
        compare(how, rows, hits);
        scan.keep_possible(hits.bound());
    }
    scan.sort_found(hits.bound());
    for (size_t i = 0; i < scan.found.size();) {
        rows.clear();
        for (; i < scan.found.size() && rows.size() < few; i++) {
            if (scan.may_have(scan.found[i], hits.bound())) {
                rows.push_back(scan.row(scan.found[i]));
            }
        }
        compare(how, rows, hits);
    }
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
    DenseScan scan(all, *current, given);
    for_chunks(0, num_rows, scan.block_size(), [&](size_t begin, size_t end) {
        scan.set_block(begin, end);
        for (size_t i = 0; i < n; i++) {
            scan.find(i, hits[i].bound());
            compare_found(queries[i], scan, hits[i]);
        }
    });
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
        scan.find(blocks[begin], hits.bound());
        compare_found(how, scan, hits);
    });
}

} // namespace faiss_ext
