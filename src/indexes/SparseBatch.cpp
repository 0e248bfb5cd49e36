// SPDX-License-Identifier: MIT
#include "indexes/SparseBatch.h"

#include <algorithm>
#include <limits>
#include <list>

#include "core/parallel.h"
#include "core/scratch.h"
#include "core/thread_time.h"

namespace faiss_ext {

namespace {

size_t num_components(const SparseBatch::Segments& segments) {
    size_t components = 0;
    for (const auto& segment : segments) {
        components += segment->num_components();
    }
    return components;
}

/// Whether so many components are not 0 that dense rows may be faster.
bool are_many_components(const SparseBatch::Segments& segments, idx_t d) {
    constexpr double least_share = 1.0 / 16;
    constexpr idx_t most_dimensions = 1 << 20;
    size_t rows = 0;
    for (const auto& segment : segments) {
        rows += segment->size();
    }
    return rows > 0 && d <= most_dimensions &&
            double(num_components(segments)) >=
            least_share * double(rows) * double(d);
}

/// Most queries that have dense copies together.
idx_t most_dense_queries(idx_t d) {
    constexpr idx_t most_components = 1 << 22, always = 32;
    return std::clamp<idx_t>(
            most_components / d, always, DenseScan::most_queries);
}

bool is_histogram(const SparseRow& row) {
    return std::all_of(row.values.begin(), row.values.end(), [](float v) {
        return v >= 0;
    });
}

/// Some queries of a batch, as segments take them.
struct Searches {
    std::list<SparseQuery> queries;
    std::vector<SparseSearch> all;

    Searches(
            const SparseBatch& batch,
            const SharedSum* sum,
            const SparseVectors& x) {
        for (idx_t i = 0; i < x.n; i++) {
            const SparseRow row = SparseRow::of(x, i);
            all.push_back(
                    {queries.emplace_back(batch.kernel, row),
                     batch.metric,
                     sum,
                     sum ? weight_of(*sum, row) : 0,
                     is_histogram(row),
                     batch.sel});
        }
    }
};

/// Dense copies of sparse vectors.
struct DenseCopies {
    const Scratch x;

    explicit DenseCopies(const SparseVectors& from) : x(from.n * from.d) {
        for (idx_t i = 0; i < from.n; i++) {
            from.copy_dense(i, &x[i * from.d]);
        }
    }
};

/// Brings together the hits of the slices of each query.
SparseBatch::Hits joined(
        const std::vector<SparseHits>& found,
        size_t n,
        size_t num_slices) {
    SparseBatch::Hits hits(n);
    for (size_t i = 0; i < found.size(); i++) {
        found[i].append_to(hits[i / num_slices]);
    }
    return hits;
}

} // namespace

SparseBatch::Hits SparseBatch::compare(
        const SparseHits& empty,
        const std::vector<SparseRow>& rows,
        const std::vector<idx_t>& places) const {
    std::vector<SparseHits> found(x.n, empty);
    parallel_blocks(x.n, 1, [&](idx_t i, idx_t) {
        std::vector<float> scores(rows.size());
        SparseQuery(kernel, SparseRow::of(x, i))
                .scores(metric, rows, scores.data());
        found[i].push(scores.size(), scores.data(), places.data());
    });
    return joined(found, x.n, 1);
}

SparseBatch::Hits SparseBatch::search(
        const SparseHits& empty,
        SparseTimes& times) const {
    if (x.n == 0) {
        return {};
    }
    const auto sum = kernel.shared_sum(metric);
    for (const auto& segment : segments) {
        if (sum) {
            segment->prepare(kernel, *sum, x.d);
        }
    }
    const idx_t threads = omp_get_max_threads();
    // with few queries, threads divide the segments
    const idx_t num_slices = std::clamp<idx_t>(
            2 * threads / x.n, 1, std::max<idx_t>(segments.size(), 1));
    const auto num_blocks_of = [&](idx_t block) {
        return (x.n + block - 1) / block;
    };
    idx_t block = 1;
    bool is_dense = false;
    if (sum && are_many_components(segments, x.d)) {
        const idx_t dense_block = num_slices > 1
                ? 1
                : std::clamp<idx_t>(x.n / threads, 1, most_dense_queries(x.d));
        const SparseTimes::Seconds seconds = times.get(
                num_components(segments), [&] { return measure(*sum, empty); });
        is_dense = seconds.is_dense_faster(
                x.n, num_blocks_of(dense_block), x.indptr[x.n] - x.indptr[0]);
        block = is_dense ? dense_block : 1;
    }
    std::vector<SparseHits> found(x.n * num_slices, empty);
    const idx_t num_blocks = num_blocks_of(block);
    parallel_blocks(num_blocks * num_slices, 1, [&](idx_t task, idx_t) {
        const idx_t begin = task / num_slices * block;
        const SparseVectors some = x.slice(begin, std::min(begin + block, x.n));
        const Searches searches(*this, sum ? &*sum : nullptr, some);
        std::optional<DenseCopies> copies;
        if (is_dense) {
            copies.emplace(some);
        }
        // a block has one slice, or one query
        SparseHits* hits = &found[num_slices == 1 ? begin : task];
        const size_t n = segments.size(), slice = task % num_slices;
        for (size_t s = n * slice / num_slices;
             s < n * (slice + 1) / num_slices;
             s++) {
            if (is_dense) {
                segments[s]->search_dense(
                        {searches.all, size_t(x.d), copies->x.get()}, hits);
            } else {
                segments[s]->search(searches.all[0], *hits);
            }
        }
    });
    return joined(found, x.n, num_slices);
}

/// Measures the times of some of the queries in the first segment, on this
/// thread. If there are few queries, they are searched several times.
SparseTimes::Seconds SparseBatch::measure(
        const SharedSum& sum,
        const SparseHits& empty) const {
    const SparseSegment& segment = *segments.front();
    const idx_t few = 4, some_lists = 8;
    const idx_t many = std::min<idx_t>(64, most_dense_queries(x.d));
    AppendedRows rows;
    for (idx_t i = 0; i < many; i++) {
        rows.append(SparseRow::of(x, i % x.n));
    }
    std::vector<int64_t> indptr;
    const SparseVectors sample = rows.vectors(x.d, indptr);
    // the least time of two searches for the first n
    const auto seconds_of = [&](idx_t n, bool is_dense) {
        double least = std::numeric_limits<double>::infinity();
        for (int turn = 0; turn < 2; turn++) {
            const double start = thread_seconds();
            const SparseVectors some = sample.slice(0, n);
            const Searches searches(*this, &sum, some);
            std::vector<SparseHits> hits(n, empty);
            if (is_dense) {
                const DenseCopies copies(some);
                segment.search_dense(
                        {searches.all, size_t(x.d), copies.x.get()},
                        hits.data());
            }
            for (idx_t i = 0; i < n && !is_dense; i++) {
                segment.search(searches.all[i], hits[i]);
            }
            least = std::min(least, thread_seconds() - start);
        }
        return least;
    };
    const double of_few = seconds_of(few, true);
    const double of_many = seconds_of(many, true);
    const double by_dense =
            std::max(0.0, of_many - of_few) / double(many - few);
    const double components = std::max<double>(1, sample.indptr[some_lists]);
    return {seconds_of(some_lists, false) / components,
            std::max(0.0, of_few - double(few) * by_dense),
            by_dense};
}

} // namespace faiss_ext
