// SPDX-License-Identifier: MIT
#include "indexes/SparseSegment.h"

#include <numeric>
#include <span>

#include "core/scratch.h"
#include "indexes/blocked_scan.h"
#include "simd/sparse_scan.h"

namespace faiss_ext {

namespace {

constexpr size_t block_size = SparseLists::block;

/// The time to compare a vector, in the time of an entry of a list.
constexpr size_t entries_per_comparison = 64;

/// A list that a query reads.
struct Term {
    size_t list;
    float value;       ///< of the query
    const float* most; ///< bound of the term by code
    float largest;     ///< of these for codes in the list, or 0
    size_t next, end;  ///< entries that are left
};

/// Rows whose sums reach this are compared: offset + slope * weight.
struct Required {
    float offset, slope;

    /// @param left  the lists that were left out add at most this
    Required(
            const SparseSearch& how,
            const SparseHits& hits,
            size_t num_terms,
            double left) {
        const auto least = how.sum->least(hits.bound(), how.weight);
        // sums and scores are rounded
        const double error = 1e-5 + 2e-7 * double(num_terms);
        const double size =
                std::abs(least.offset) + (how.sum->has_roots ? 0 : how.weight);
        offset =
                float(std::isfinite(least.offset)
                              ? least.offset - error * size - left * (1 + error)
                              : least.offset);
        slope = float(least.slope * (1 - error));
    }

    float at(float weight) const {
        return offset + slope * weight;
    }
};

} // namespace

void SparseHits::push(float score, idx_t id) {
    if (std::isnan(score)) {
        return;
    }
    if (are_within()) {
        if (score <= limit) {
            hits.emplace_back(score, id);
        }
        return;
    }
    const Hit hit(score, id);
    if (hits.size() < k) {
        hits.push_back(hit);
        std::push_heap(hits.begin(), hits.end());
    } else if (hit < hits.front()) {
        std::pop_heap(hits.begin(), hits.end());
        hits.back() = hit;
        std::push_heap(hits.begin(), hits.end());
    }
    if (hits.size() == k) {
        set_bound(hits.front().first);
    }
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

void SparseSegment::prepare(
        const Kernel& kernel,
        const SharedSum& sum,
        size_t d) const {
    const std::string name = kernel.description();
    const std::lock_guard<std::mutex> hold(mutex);
    const size_t listed = lists ? lists->num_rows : 0;
    const bool are_few_others = size() - listed <= 1024 + listed / 4;
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
    for (const uint32_t i : rows) {
        gathered.push_back(all[i]);
    }
    const Scratch scores(rows.size());
    how.query.scores(how.metric, gathered, scores.get());
    for (size_t i = 0; i < rows.size(); i++) {
        hits.push(scores[i], ids[rows[i]]);
    }
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

void SparseSegment::search(const SparseSearch& how, SparseHits& hits) const {
    std::shared_ptr<const SparseLists> current;
    if (how.sum && (how.is_histogram || !how.sum->is_of_histograms)) {
        const std::lock_guard<std::mutex> hold(mutex);
        current = lists;
    }
    const bool can_scan = current &&
            (current->are_histograms || !how.sum->is_of_histograms) &&
            std::isfinite(how.weight) &&
            std::all_of(current->weights.begin(),
                        current->weights.end(),
                        [](float w) { return std::isfinite(w); });
    size_t begin = 0;
    if (can_scan) {
        scan_lists(*current, how, hits);
        begin = current->num_rows;
    }
    compare_all(how, begin, size(), hits);
}

namespace {

/// Bounds of the terms of a query with the values of each code.
void set_bounds(
        const SharedSum& sum,
        const SparseLists& lists,
        Term& term,
        float* bounds) {
    const size_t first = lists.low_codes[term.list];
    const size_t n = lists.high_codes[term.list] - first + 1;
    // terms rise with the value, or fall if that of the query is negative
    const auto& values = term.value > 0 ? lists.highs : lists.lows;
    sum.terms->block(
            1, &term.value, n, values.data() + first, 1, bounds + first);
    term.most = bounds;
    term.largest = std::max(
            0.0f, *std::max_element(bounds + first, bounds + first + n));
}

/// The lists of a query's columns, the shortest first.
std::vector<Term> terms_of(
        const SharedSum& sum,
        const SparseLists& lists,
        const SparseRow& x,
        std::vector<float>& bounds) {
    std::vector<Term> terms;
    auto list = lists.columns.begin();
    for (size_t i = 0; i < x.size(); i++) {
        list = std::lower_bound(list, lists.columns.end(), x.columns[i]);
        if (list != lists.columns.end() && *list == x.columns[i]) {
            const size_t l = list - lists.columns.begin();
            terms.push_back(
                    {l,
                     x.values[i],
                     nullptr,
                     0,
                     lists.starts[l],
                     lists.starts[l + 1]});
        }
    }
    std::stable_sort(
            terms.begin(), terms.end(), [&](const Term& a, const Term& b) {
                return a.end - a.next < b.end - b.next;
            });
    bounds.resize(256 * terms.size());
    for (size_t i = 0; i < terms.size(); i++) {
        set_bounds(sum, lists, terms[i], bounds.data() + 256 * i);
    }
    return terms;
}

/// Adds the bounds of a term to the sums of the rows from `begin` up to `end`.
/// Returns the number of entries.
size_t add_term(
        const SparseLists& lists,
        Term& term,
        size_t begin,
        size_t end,
        float* sums) {
    const uint16_t* rows = lists.rows.data();
    const uint8_t* codes = lists.codes.data();
    size_t at = term.next;
    if (at < term.end && rows[at] < begin) { // it was left out before
        at = std::lower_bound(
                     rows + at,
                     rows + term.end,
                     begin,
                     [](uint16_t row, size_t value) { return row < value; }) -
                rows;
    }
    const size_t first = at;
    const float* most = term.most;
    while (at < term.end && rows[at] < end) {
        sums[rows[at] - begin] += most[codes[at]];
        at++;
    }
    term.next = at;
    return at - first;
}

} // namespace

void SparseSegment::scan_lists(
        const SparseLists& lists,
        const SparseSearch& how,
        SparseHits& hits) const {
    std::vector<float> bounds;
    std::vector<Term> terms =
            terms_of(*how.sum, lists, how.query.components(), bounds);
    const size_t m = terms.size();
    std::vector<double> left(m + 1); // bounds of the sums of the last terms
    for (size_t j = m; j > 0; j--) {
        left[j - 1] = left[j] + terms[j - 1].largest;
    }
    std::vector<uint32_t> rows;
    if (!hits.are_within() && std::isinf(hits.bound())) {
        // vectors with the rarest columns give a first bound
        const size_t enough = std::max<size_t>(64, 2 * hits.most());
        for (const Term& term : terms) {
            const size_t n =
                    std::min(enough - rows.size(), term.end - term.next);
            rows.insert(
                    rows.end(),
                    lists.rows.begin() + term.next,
                    lists.rows.begin() + term.next + n);
        }
        std::sort(rows.begin(), rows.end());
        rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
        SparseHits first(hits.most());
        compare(how, rows, first);
        hits.set_bound(first.bound());
    }
    const Scratch sums(block_size);
    std::vector<uint32_t> found(block_size + 16);
    for_chunks(
            0,
            idx_t(lists.num_rows),
            block_size,
            [&](size_t begin, size_t end) {
                const size_t n = end - begin;
                const float* weights = lists.weights.data() + begin;
                const float least_weight =
                        lists.least_weights[begin / block_size];
                std::fill_n(sums.get(), n, 0.0f);
                size_t num_found = 0, num_added = 0;
                size_t num_entries = 0;
                const auto add_next = [&] {
                    num_entries += add_term(
                            lists,
                            terms[num_added++],
                            begin,
                            begin + n,
                            sums.get());
                };
                // until rows that are not in these lists are too far
                const Required none(how, hits, m, 0);
                while (num_added < m &&
                       left[num_added] >= none.at(least_weight)) {
                    add_next();
                }
                for (;;) {
                    const Required required(how, hits, m, left[num_added]);
                    num_found = simd::positions_at_least(
                            n,
                            sums.get(),
                            weights,
                            required.offset,
                            required.slope,
                            found.data());
                    // more lists, if these are shorter than it takes to compare
                    // the rows that they may leave out
                    const size_t worth = num_found * entries_per_comparison / 2;
                    const size_t before = num_entries;
                    while (num_added < m && num_entries - before < worth / 4) {
                        const Term& term = terms[num_added];
                        const size_t length = (term.end - term.next) * n /
                                (lists.num_rows - begin);
                        if (length + n / 16 > worth) {
                            break;
                        }
                        add_next();
                    }
                    if (num_entries == before) {
                        break;
                    }
                }
                for (size_t i = 0; i < num_found;) {
                    const Required now(how, hits, m, left[num_added]);
                    rows.clear();
                    for (; i < num_found && rows.size() < 32; i++) {
                        const uint32_t at = found[i];
                        if (sums[at] >= now.at(weights[at])) {
                            rows.push_back(uint32_t(begin) + at);
                        }
                    }
                    compare(how, rows, hits);
                }
            });
}

} // namespace faiss_ext
