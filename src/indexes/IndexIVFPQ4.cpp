// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexIVFPQ4.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
#include <typeinfo>
#include <utility>

#include <faiss/IndexIVF.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/huge_pages.h"
#include "core/mapped_file.h"
#include "core/parallel.h"
#include "core/prefetch.h"
#include "core/sample.h"
#include "core/slices.h"
#include "indexes/incomplete_rows.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"
#include "indexes/k_means.h"
#include "indexes/pq4_codes.h"
#include "indexes/range_result.h"
#include "indexes/row_scores.h"
#include "indexes/search_params.h"
#include "indexes/selected_places.h"
#include "projections/principal_components.h"
#include "simd/pairwise.h"
#include "simd/top_k.h"

namespace faiss_ext {

struct IndexIVFPQ4::Tables {
    PackedCentroids centroids;
    AlignedVector<float> squares; ///< of the codebook
};

namespace {

using simd::pq4_block;

/// queries whose distances to the centroids are computed together
constexpr idx_t query_block = 16;

Pq4Codes codes_of(const IndexIVFPQ4& index) {
    return Pq4Codes(index.d, index.M, index.codebook.data());
}

Pq4Slot slot_of(IndexIVFPQ4::List& list, size_t i, size_t rows) {
    return Pq4Slot(list.codes.make_owned().data(), i, rows);
}

/// Resizes a list to n vectors. New ones have no code yet.
void resize_list(IndexIVFPQ4::List& list, size_t n, size_t rows) {
    const size_t blocks = (n + pq4_block - 1) / pq4_block;
    list.codes.make_owned().resize(blocks * rows * pq4_block);
    auto& offsets = list.offsets.make_owned();
    offsets.resize(blocks * pq4_block, worst_score);
    std::fill(offsets.begin() + n, offsets.end(), worst_score);
    list.ids.make_owned().resize(n, -1);
}

/// Reserves memory for `more` vectors. The first ones may be all, so they get
/// no more than they need.
void reserve_list(IndexIVFPQ4::List& list, size_t more, size_t rows) {
    auto& ids = list.ids.make_owned();
    auto& codes = list.codes.make_owned();
    auto& offsets = list.offsets.make_owned();
    const auto padded = [](size_t n) {
        return (n + pq4_block - 1) / pq4_block * pq4_block;
    };
    const size_t n = ids.size() + more;
    if (n > ids.capacity() || padded(n) > offsets.capacity() ||
        padded(n) * rows > codes.capacity()) {
        const size_t room = n == more ? n : n + n / 2;
        codes.reserve(padded(room) * rows);
        offsets.reserve(padded(room));
        ids.reserve(room);
    }
}

/// Asks for huge pages for all lists together, since one list is small.
void prefer_huge_pages_for(std::vector<IndexIVFPQ4::List>& lists) try {
    std::vector<Piece> pieces;
    pieces.reserve(3 * lists.size());
    const auto insert = [&](auto& items) {
        if (!items.mapped()) {
            pieces.push_back(memory_of(items.make_owned()));
        }
    };
    for (IndexIVFPQ4::List& list : lists) {
        insert(list.ids);
        insert(list.codes);
        insert(list.offsets);
    }
    prefer_huge_pages(pieces);
} catch (const std::bad_alloc&) {
    // it is only a hint
}

/// Whether lists that grow have passed a step of about 4 % of their size.
bool have_passed_step(idx_t before, idx_t after) {
    const auto step = [](idx_t n) {
        return std::floor(16 * std::log2(double(n + 1)));
    };
    return step(before) < step(after);
}

/// Throws unless vectors are finite and their squared lengths leave room for
/// sums.
void check_vectors(size_t d, idx_t n, const float* x, const char* where) {
    check_norms_up_to(1e37, n, x, d, where);
}

void subtract(const AlignedVector<float>& mean, std::vector<float>& x) {
    for (auto row = x.begin(); row != x.end(); row += mean.size()) {
        std::transform(
                mean.begin(), mean.end(), row, row, [](float m, float v) {
                    return v - m;
                });
    }
}

/// Throws if squares of centred vectors lost digits as floats. This happens if
/// the vectors are nearly, but not all, 0.
void check_spread(idx_t n, const std::vector<float>& x) {
    constexpr double least = 1e-36;
    const double mean =
            std::accumulate(
                    x.begin(),
                    x.end(),
                    0.0,
                    [](double sum, float v) { return sum + double(v) * v; }) /
            double(n);
    FAISS_EXT_THROW_IF_NOT_FMT(
            mean == 0 || mean >= least,
            "IndexIVFPQ4::train: the mean squared length of the vectors (with METRIC_L2, from their mean) is %g, expected 0, or at least %g; scale the vectors up",
            mean,
            least);
}

/// Queries that are searched for together.
constexpr idx_t most_queries = 65536;

/// Returns the vectors minus the mean.
std::vector<float> centred(const IndexIVFPQ4& index, idx_t n, const float* x) {
    std::vector<float> y(x, x + n * index.d);
    subtract(index.mean, y);
    return y;
}

struct Search {
    idx_t nprobe;
    const faiss::IDSelector* sel;
    std::optional<ListsForSelected> lists = std::nullopt; ///< or nprobe of them
};

Search search_of(
        const IndexIVFPQ4& index,
        const faiss::SearchParameters* params) {
    Search search{index.nprobe, params ? params->sel : nullptr};
    if (const auto* ivf = known_params<faiss::SearchParametersIVF>(
                params, "IndexIVFPQ4::search")) {
        FAISS_EXT_THROW_IF_NOT_MSG(
                ivf->nprobe > 0,
                "IndexIVFPQ4::search: nprobe is 0, expected a positive number");
        FAISS_EXT_THROW_IF_NOT_FMT(
                ivf->max_codes == 0,
                "IndexIVFPQ4::search: max_codes is %zu, expected 0: the number of codes is not limited",
                ivf->max_codes);
        FAISS_EXT_THROW_IF_NOT_MSG(
                !ivf->quantizer_params,
                "IndexIVFPQ4::search: quantizer_params have no effect: the centroids are not in an index");
        search.nprobe = idx_t(std::min<size_t>(ivf->nprobe, index.nlist));
    }
    search.nprobe = std::min(search.nprobe, index.nlist);
    return search;
}

/// Chooses the number of lists for a selector in plain search parameters.
ListsForSelected lists_for(const IndexIVFPQ4& index, const Search& how) {
    return ListsForSelected(
            *how.sel,
            how.nprobe,
            index.nlist,
            index.ntotal,
            [&](size_t list) { return index.lists[list].ids.size(); },
            [&](size_t list, size_t i) { return index.lists[list].ids[i]; });
}

/// Prefetches the next list while one is scanned.
void prefetch(const IndexIVFPQ4::List& list) {
    prefetch_stream(list.codes.data(), list.codes.size());
    prefetch_stream(list.offsets.data(), list.offsets.size() * sizeof(float));
}

/// A list to probe for a query, and the addend for the scores of its vectors.
struct Probe {
    float base;
    idx_t list;
};

/// Prefetches all probed lists of a mapped index if the last one is not
/// resident. The last list is the least likely one to be, and checking each
/// would take as long as scanning a short one.
void prefetch(const IndexIVFPQ4& index, const std::vector<Probe>& probes) {
    const FileRange& last = index.lists[probes.back().list].codes.mapped();
    if (!last || last.file->is_resident(last.begin + last.size / 2)) {
        return;
    }
    for (const Probe& probe : probes) {
        const auto& list = index.lists[probe.list];
        const FileRange &ids = list.ids.mapped(),
                        &offsets = list.offsets.mapped();
        if (ids && offsets) { // its codes lie between these
            ids.file->prefetch(ids.begin, offsets.begin + offsets.size);
        }
    }
}

/// Largest rounding error, relative to the squared distance to the nearest
/// centroid and hence to the distances of neighbours. The error is the standard
/// deviation over all parts together. The first limit is for tables of the
/// query, the second for rounded tables of a list.
constexpr float most_of_query = 0.03f, most_of_list = 0.3f;

bool is_fine(const IndexIVFPQ4& index, float scale, float nearest, float most) {
    return scale * std::sqrt(float(index.M) / 12) <= most * nearest;
}

/// Returns the squared distance, or with METRIC_INNER_PRODUCT the negated
/// product; smaller is better. It avoids the cancellation in the scores that
/// order the lists.
float score_of_centroid(const IndexIVFPQ4& index, const float* q, idx_t list) {
    const bool is_l2 = index.metric_type == faiss::METRIC_L2;
    const float* in_cache = index.tables->centroids.row(list);
    float score;
    simd::pairwise(
            is_l2 ? simd::PairOp::squared_l2 : simd::PairOp::dot,
            1,
            q,
            1,
            in_cache ? in_cache : &index.centroids[list * index.d],
            index.d,
            &score,
            1);
    return is_l2 ? score : -score;
}

/// A query with its tables.
struct Query {
    const float* q;
    Pq4Tables tables;
    std::vector<Probe> probes; ///< the best lists first
    float nearest; ///< squared distance to the centroid of the best list
    bool by_list;  ///< whether each list has its own tables

    /// Makes tables for one list: |r|^2 - 2 <q - c, r>. Their rounding error is
    /// of the size of the residuals r, however far apart the lists are. If some
    /// centroids of the codebook are far longer than others, this is too
    /// coarse; `floats` then gets tables without rounding. Otherwise `floats`
    /// is empty.
    void make_tables(
            const IndexIVFPQ4& index,
            const Probe& probe,
            Pq4Tables& rounded,
            std::vector<float>& floats) const {
        const Pq4Codes codes = codes_of(index);
        thread_local std::vector<float> difference;
        difference.assign(q, q + index.d);
        if (index.residual) {
            const float* c = &index.centroids[probe.list * index.d];
            std::transform(
                    q, q + index.d, c, difference.begin(), std::minus<>());
        }
        rounded.make(
                codes, difference.data(), -2, index.tables->squares.data());
        floats.clear();
        if (!is_fine(index, rounded.scale, nearest, most_of_list)) {
            make_float_tables(
                    codes,
                    difference.data(),
                    -2,
                    index.tables->squares.data(),
                    floats);
        }
    }

    /// Chooses the lists by their scores. i: number of the query among the
    /// estimates
    void prepare(
            const IndexIVFPQ4& index,
            const float* q,
            const PackedCentroids::Estimates& estimates,
            idx_t i,
            const Search& how) {
        const bool is_l2 = index.metric_type == faiss::METRIC_L2;
        this->q = q;
        tables.make(codes_of(index), q, is_l2 ? -2 : -1);
        thread_local std::vector<std::pair<float, uint32_t>> chosen;
        thread_local std::vector<float> work;
        const size_t nlist = index.nlist;
        size_t nprobe = how.lists ? how.lists->first() : how.nprobe;
        const auto choose = [&] {
            index.tables->centroids.smallest(
                    estimates, i, nprobe, chosen, work);
        };
        choose();
        while (how.lists) {
            const auto list_at = [](size_t i) { return chosen[i].second; };
            if (const auto some = how.lists->visited(chosen.size(), list_at);
                some || nprobe == nlist) {
                chosen.resize(some.value_or(chosen.size()));
                break;
            }
            nprobe = how.lists->more_than(nprobe);
            choose();
        }
        float base = 0;
        if (!index.residual && is_l2) {
            base = std::inner_product(q, q + index.d, q, 0.0f);
        }
        probes.clear();
        for (const auto& [unused, l] : chosen) {
            if (index.residual) {
                base = score_of_centroid(index, q, l);
            }
            probes.push_back({base, idx_t(l)});
        }
        nearest = index.residual
                ? probes.front().base
                : score_of_centroid(index, q, probes.front().list);
        by_list =
                is_l2 && !is_fine(index, tables.scale, nearest, most_of_query);
    }
};

/// A slower scan_list that uses unrounded tables.
template <class Bound, class F>
void scan_list_by_floats(
        const IndexIVFPQ4& index,
        const float* tables,
        const Probe& probe,
        const faiss::IDSelector* sel,
        Bound&& bound,
        F&& fn) {
    const size_t rows = codes_of(index).rows;
    const auto& list = index.lists[probe.list];
    float sums[pq4_block];
    for (size_t i = 0; i < list.ids.size(); i++) {
        if (i % pq4_block == 0) {
            sum_block(rows, tables, list.codes.data() + i * rows, sums);
        }
        const float score = sums[i % pq4_block] + probe.base;
        if (score <= bound() && (!sel || sel->is_member(list.ids[i]))) {
            fn(1, &score, &list.ids[i]);
        }
    }
}

/** Calls fn(n, scores, ids) for the vectors of a list whose scores are at most
 * bound(), and perhaps for some more. The bound may fall meanwhile.
 *
 * @param without_bound  how many vectors are enough to have a bound
 */
template <class Bound, class F>
void scan_list(
        const IndexIVFPQ4& index,
        const Query& query,
        const Probe& probe,
        const faiss::IDSelector* sel,
        size_t without_bound,
        Bound&& bound,
        F&& fn) {
    constexpr size_t most_at_once = 16, slack = 16;
    float scores[most_at_once * pq4_block + slack];
    uint32_t positions[most_at_once * pq4_block + slack];
    idx_t ids[most_at_once * pq4_block];
    const size_t rows = codes_of(index).rows;
    const auto& list = index.lists[probe.list];
    const size_t nblocks = list.offsets.size() / pq4_block;
    thread_local Pq4Tables of_list;
    float no_offsets[most_at_once * pq4_block];
    if (query.by_list) {
        thread_local std::vector<float> floats;
        query.make_tables(index, probe, of_list, floats);
        if (!floats.empty()) {
            scan_list_by_floats(index, floats.data(), probe, sel, bound, fn);
            return;
        }
        std::fill_n(no_offsets, most_at_once * pq4_block, 0.0f);
    }
    const Pq4Tables& tables = query.by_list ? of_list : query.tables;
    const float base = probe.base + tables.bias;
    for (size_t b = 0; b < nblocks;) {
        const float limit = bound();
        size_t at_once = std::min(most_at_once, nblocks - b);
        if (limit == worst_score) {
            at_once = std::min(at_once, without_bound / pq4_block + 1);
        }
        const float* offsets = list.offsets.data() + b * pq4_block;
        if (query.by_list) { // offsets only exclude places beyond the end
            const size_t count = list.ids.size() - b * pq4_block;
            if (count < at_once * pq4_block) {
                std::fill(
                        no_offsets + count,
                        no_offsets + at_once * pq4_block,
                        worst_score);
            }
            offsets = no_offsets;
        }
        // a difference is rounded: admit scores that this made too large
        const float loose = 1e-6f * (std::abs(limit) + std::abs(base)) +
                std::numeric_limits<float>::min();
        simd::Pq4Hits hits{scores, positions, 0};
        simd::scan_pq4(
                rows,
                tables.arranged.data(),
                tables.scale,
                at_once,
                list.codes.data() + b * rows * pq4_block,
                offsets,
                std::min(limit - base + loose, worst_score),
                hits);
        const idx_t* all_ids = list.ids.data() + b * pq4_block;
        size_t n = 0;
        for (size_t i = 0; i < hits.size; i++) {
            ids[n] = all_ids[positions[i]];
            scores[n] = scores[i] + base;
            n += !sel || sel->is_member(ids[n]);
        }
        fn(n, scores, ids);
        b += at_once;
    }
}

/// Sorts items by their keys, which are below `keys`. The sort is stable.
template <class T, class Key>
std::vector<T> by_key(const std::vector<T>& items, size_t keys, Key&& key) {
    if (items.empty()) {
        return {};
    }
    std::vector<size_t> next(keys + 1);
    for (const T& item : items) {
        next[key(item) + 1]++;
    }
    std::partial_sum(next.begin(), next.end(), next.begin());
    std::vector<T> sorted(items.size());
    for (const T& item : items) {
        sorted[next[key(item)]++] = item;
    }
    return sorted;
}

/** Probes the lists of all queries in parallel. Calls scan(i, query, probe) for
 * each probe and then done(i), both on one thread for a query.
 *
 * First each query scans its nearest lists, which gives it a bound. After that,
 * the queries of a batch scan a list one after the other, so that it is loaded
 * once for all of them.
 */
template <class Scan, class Done>
void scan_probes(
        const IndexIVFPQ4& index,
        idx_t n,
        const float* x,
        const Search& how,
        Scan&& scan,
        Done&& done) {
    constexpr idx_t most_together = 256, nearest = 2;
    const size_t nlist = index.nlist, d = index.d;
    const idx_t per_thread = n / omp_get_max_threads() + 1;
    const idx_t together = std::clamp(per_thread, query_block, most_together);
    parallel_blocks(n, together, [&](idx_t begin, idx_t end) {
        thread_local std::vector<Query> queries;
        queries.resize(std::max<size_t>(queries.size(), end - begin));
        struct DeferredProbe {
            idx_t query;
            const Probe* probe;
        };
        std::vector<DeferredProbe> deferred;
        for (idx_t i0 = begin; i0 < end; i0 += query_block) {
            const idx_t m = std::min(query_block, end - i0);
            const PackedCentroids::Estimates estimates(
                    index.tables->centroids,
                    m,
                    x + i0 * d,
                    index.metric_type == faiss::METRIC_L2);
            for (idx_t i = i0; i < i0 + m; i++) {
                Query& query = queries[i - begin];
                query.prepare(index, x + i * d, estimates, i - i0, how);
                const auto& probes = query.probes;
                prefetch(index, probes);
                const size_t first = end - begin == 1
                        ? probes.size()
                        : std::min<size_t>(nearest, probes.size());
                for (size_t v = 0; v < first; v++) {
                    if (v + 1 < probes.size()) {
                        prefetch(index.lists[probes[v + 1].list]);
                    }
                    scan(i, query, probes[v]);
                }
                for (size_t v = first; v < probes.size(); v++) {
                    deferred.push_back({i, &probes[v]});
                }
            }
        }
        const auto list_of = [](const DeferredProbe& probe) {
            return probe.probe->list;
        };
        const auto in_turn = by_key(deferred, nlist, list_of);
        for (size_t j = 0; j < in_turn.size(); j++) {
            const auto& [i, probe] = in_turn[j];
            if (j + 1 < in_turn.size() &&
                list_of(in_turn[j + 1]) != probe->list) {
                prefetch(index.lists[list_of(in_turn[j + 1])]);
            }
            scan(i, queries[i - begin], *probe);
        }
        for (idx_t i = begin; i < end; i++) {
            done(i);
        }
    });
}

using Places = std::unordered_map<idx_t, IndexIVFPQ4::Place>;

/// Finds the vectors with ids from i0 to i0 + ni - 1.
Places places_of(
        const IndexIVFPQ4& index,
        idx_t i0 = std::numeric_limits<idx_t>::min(),
        uint64_t ni = std::numeric_limits<uint64_t>::max()) {
    Places places;
    places.reserve(std::min<uint64_t>(ni, index.ntotal));
    for (size_t l = 0; l < index.lists.size(); l++) {
        const auto& ids = index.lists[l].ids;
        for (size_t at = 0; at < ids.size(); at++) {
            if (uint64_t(ids[at]) - uint64_t(i0) < ni) {
                places[ids[at]] = {idx_t(l), idx_t(at)};
            }
        }
    }
    return places;
}

bool is_at(const IndexIVFPQ4& index, const Places::value_type& entry) {
    const auto& [id, place] = entry;
    const auto& ids = index.lists[place.list].ids;
    return place.at < idx_t(ids.size()) && ids[place.at] == id;
}

/// Rebuilds the direct map, if there is one, after a change.
struct RemakesDirectMap {
    IndexIVFPQ4& index;
    const bool has_map = index.direct_map.has_value();

    explicit RemakesDirectMap(IndexIVFPQ4& index) : index(index) {
        index.direct_map.reset();
    }
    void done() {
        index.make_direct_map(has_map);
    }
};

/// Turns a score (smaller is better) into the distance to report.
float distance_of(const IndexIVFPQ4& index, float score) {
    return index.metric_type == faiss::METRIC_L2 ? std::max(score, 0.0f)
                                                 : -score;
}

/// Searches lists for the k nearest vectors.
void search_lists(
        const IndexIVFPQ4& index,
        const Search& how,
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels) {
    for_batches(n, most_queries, [&](idx_t q0, idx_t q1) {
        const auto y = centred(index, q1 - q0, x + q0 * index.d);
        std::vector<TopK<float>> best(q1 - q0);
        scan_probes(
                index,
                q1 - q0,
                y.data(),
                how,
                [&](idx_t i, const Query& query, const Probe& probe) {
                    TopK<float>& found = best[i];
                    if (&probe == query.probes.data()) {
                        found.k = std::max<idx_t>(1, std::min(k, index.ntotal));
                        found.reserve();
                    }
                    scan_list(
                            index,
                            query,
                            probe,
                            how.sel,
                            found.room(),
                            [&] { return found.bound; },
                            [&](size_t n,
                                const float* scores,
                                const idx_t* ids) {
                                found.push_all(n, scores, ids);
                            });
                },
                [&](idx_t i) {
                    if (best[i].scores.size() > best[i].k) {
                        best[i].shrink();
                    }
                    std::vector<Hit> hits = best[i].sorted(k);
                    best[i] = TopK<float>();
                    hits.resize(k, {worst_score, -1});
                    for (idx_t j = 0; j < k; j++) {
                        const idx_t to = (q0 + i) * k + j;
                        distances[to] = distance_of(index, hits[j].first);
                        labels[to] = hits[j].second;
                    }
                });
    });
}

bool is_mapped(const IndexIVFPQ4& index) {
    const auto& lists = index.lists;
    return std::any_of(lists.begin(), lists.end(), [](const auto& list) {
        return list.ids.mapped() || list.codes.mapped() ||
                list.offsets.mapped();
    });
}

void check_ready(const IndexIVFPQ4& index, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            index.is_trained,
            "IndexIVFPQ4::%s: the index is not trained; call train first",
            where);
    FAISS_EXT_THROW_IF_NOT_FMT(
            index.nprobe > 0,
            "IndexIVFPQ4::%s: nprobe is %" PRId64
            ", expected a positive number",
            where,
            int64_t(index.nprobe));
}

} // namespace

IndexIVFPQ4::IndexIVFPQ4(int d, idx_t nlist, int M, faiss::MetricType metric)
        : Index(d, metric), nlist(nlist), M(M), auto_M(M == 0) {
    init();
}

void IndexIVFPQ4::fields(FieldVisitor& v) const {
    v.integer("nlist", nlist, 1, 1 << 24, "number of inverted lists");
    v.integer(
            "M",
            M,
            1,
            simd::pq4_max_parts,
            "parts of 4 bits; divides the dimension; auto: half of it, or all of it if it is odd; at most 512",
            &auto_M);
    v.flag("residual", residual, "encode x minus its centroid");
    v.integer("nprobe", nprobe, 1, 1 << 24, "lists that a search visits");
    v.integer("seed", seed, 0, INT64_MAX, "seed of the clustering");
    const std::vector<int64_t> next = {next_id};
    v.array("next_id", next, 1);
    v.assign(next_id, next[0]);
    v.array("mean", mean, is_trained ? d : 0);
    v.array("centroids", centroids, is_trained ? nlist * d : 0);
    v.array("codebook", codebook, is_trained ? d * pq4_numbers : 0);
    const size_t rows = (M + 1) / 2;
    v.items(lists, is_trained ? nlist : 0, [&](const List& list) {
        v.array("ids", list.ids);
        const size_t blocks = (list.ids.size() + pq4_block - 1) / pq4_block;
        v.array("codes", list.codes, blocks * rows * pq4_block);
        v.array("offsets", list.offsets, blocks * pq4_block);
    });
}

void IndexIVFPQ4::init() {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d > 0, "the dimension is %d, expected a positive number", d);
    check_metric(metric_type);
    if (auto_M && M == 0) {
        M = std::min(d % 2 == 0 ? d / 2 : d, int(simd::pq4_max_parts));
        while (d % M != 0) {
            M--;
        }
    }
    if (M > int(simd::pq4_max_parts) || M < 1 || d % M != 0) {
        throw FieldError(
                "M",
                format_message(
                        "M is %d, expected a number up to %zu that divides the dimension, %d",
                        M,
                        simd::pq4_max_parts,
                        d));
    }
    check_fields(*this);
    is_trained = false;
}

void IndexIVFPQ4::restore() {
    check_restorable();
    if (is_trained) {
        tables = std::make_shared<const Tables>(
                Tables{{size_t(d), size_t(nlist), centroids.data()},
                       codes_of(*this).squares()});
    }
    prefer_huge_pages_for(lists);
}

void IndexIVFPQ4::check_restorable() const {
    FAISS_EXT_THROW_IF_NOT_MSG(
            d > 0 && M > 0 && d % M == 0,
            "the dimension is not a multiple of M");
    size_t total = 0;
    for (const List& list : lists) {
        const size_t n = list.ids.size();
        const idx_t* ids = list.ids.sequential();
        const float* offsets = list.offsets.sequential();
        total += n;
        FAISS_EXT_THROW_IF_NOT_MSG(
                std::find(ids, ids + n, -1) == ids + n,
                "a vector has the id -1, which means \"no result\"");
        FAISS_EXT_THROW_IF_NOT_FMT(
                n == 0 || above(*std::max_element(ids, ids + n)) <= next_id,
                "an id is not below the next id, %" PRId64,
                int64_t(next_id));
        for (size_t i = n; i < list.offsets.size(); i++) {
            FAISS_EXT_THROW_IF_NOT_MSG(
                    offsets[i] == worst_score,
                    "a list has offsets without vectors");
        }
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            total == size_t(ntotal),
            "the lists hold %zu vectors, expected %" PRId64,
            total,
            int64_t(ntotal));
}

void IndexIVFPQ4::train(idx_t n, const float* x) {
    check_not_mapped(is_mapped(*this), "IndexIVFPQ4::train");
    check_vectors(d, n, x, "IndexIVFPQ4::train");
    if (is_trained) {
        return;
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            n >= nlist && n >= idx_t(pq4_numbers),
            "IndexIVFPQ4::train: %" PRId64
            " vectors, expected at least %" PRId64
            ": one for each list, and %zu for the codes",
            int64_t(n),
            int64_t(std::max<idx_t>(nlist, pq4_numbers)),
            pq4_numbers);
    AlignedVector<float> found_mean(d);
    auto sample = gather_rows(sample_ids(n, nlist * 256, seed), x, d);
    const idx_t nsample = sample.size() / d;
    if (metric_type == faiss::METRIC_L2) {
        const auto m = mean_of(nsample, sample.data(), d);
        found_mean.assign(m.begin(), m.end());
        subtract(found_mean, sample);
    }
    check_spread(nsample, sample);
    auto found = k_means(d, nlist, nsample, sample.data(), 10, seed, verbose);
    PackedCentroids packed(d, nlist, found.data());
    auto vectors = gather_rows(sample_ids(n, 256 * 64, seed + 1), x, d);
    subtract(found_mean, vectors);
    const idx_t nvectors = vectors.size() / d;
    if (residual) {
        const auto list = packed.nearest(nvectors, vectors.data());
        for (idx_t i = 0; i < nvectors; i++) {
            for (int j = 0; j < d; j++) {
                vectors[i * d + j] -= found[list[i] * d + j];
            }
        }
    }
    if (verbose) {
        printf("IndexIVFPQ4: training %d parts on %" PRId64 " vectors\n",
               M,
               int64_t(nvectors));
    }
    auto of_parts =
            train_pq4_codebook(d, M, nvectors, vectors.data(), seed + 2);
    mean = std::move(found_mean);
    centroids = std::move(found);
    codebook = std::move(of_parts);
    tables = std::make_shared<const Tables>(
            Tables{std::move(packed), codes_of(*this).squares()});
    lists.assign(nlist, {});
    is_trained = true;
}

void IndexIVFPQ4::add(idx_t n, const float* x) {
    IndexIVFPQ4::add_with_ids(n, x, nullptr);
}

void IndexIVFPQ4::add_with_ids(idx_t n, const float* x, const idx_t* xids) {
    check_ready(*this, "add");
    check_not_mapped(is_mapped(*this), "IndexIVFPQ4::add");
    check_vectors(d, n, x, "IndexIVFPQ4::add");
    check_new_ids(n, xids, "IndexIVFPQ4::add_with_ids");
    idx_t next_after = next_id;
    if (!xids) {
        check_free_ids(next_id, n, "IndexIVFPQ4::add");
        next_after += n;
    } else if (n > 0) {
        next_after =
                std::max(next_id, above(*std::max_element(xids, xids + n)));
    }
    const auto y = centred(*this, n, x);
    const auto list = tables->centroids.nearest(n, y.data());
    const Pq4Codes parts = codes_of(*this);
    std::vector<uint8_t> codes(n * M);
    std::vector<float> offsets(n);
    parallel_blocks("encoding", n, 64, [&](idx_t begin, idx_t end) {
        std::vector<float> r(d);
        for (idx_t i = begin; i < end; i++) {
            const float* c = &centroids[list[i] * d];
            for (int j = 0; j < d; j++) {
                r[j] = y[i * d + j] - (residual ? c[j] : 0);
            }
            parts.encode(r.data(), &codes[i * M]);
            parts.decode(&codes[i * M], r.data());
            float sum = 0;
            for (int j = 0; j < d; j++) {
                sum += r[j] * (r[j] + (residual ? 2 * c[j] : 0));
            }
            offsets[i] = metric_type == faiss::METRIC_L2 ? sum : 0;
        }
    });
    std::vector<size_t> added(nlist);
    for (idx_t l : list) {
        added[l]++;
    }
    for (idx_t l = 0; l < nlist; l++) { // first do all that may fail
        reserve_list(lists[l], added[l], parts.rows);
    }
    if (direct_map) {
        std::vector<idx_t> next(nlist);
        for (idx_t l = 0; l < nlist; l++) {
            next[l] = lists[l].ids.size();
        }
        for (idx_t i = 0; i < n; i++) {
            const idx_t id = xids ? xids[i] : next_id + i;
            (*direct_map)[id] = {list[i], next[list[i]]++};
        }
    }
    for (idx_t i = 0; i < n; i++) {
        List& to = lists[list[i]];
        const size_t at = to.ids.size();
        resize_list(to, at + 1, parts.rows);
        to.ids.make_owned()[at] = xids ? xids[i] : next_id + i;
        to.offsets.make_owned()[at] = offsets[i];
        slot_of(to, at, parts.rows).set(&codes[i * M], M);
    }
    ntotal += n;
    next_id = next_after;
    if (have_passed_step(ntotal - n, ntotal)) {
        prefer_huge_pages_for(lists);
    }
}

void IndexIVFPQ4::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    check_ready(*this, "search");
    check_k(k, "IndexIVFPQ4::search");
    check_vectors(d, n, x, "IndexIVFPQ4::search");
    Search how = search_of(*this, params);
    if (!how.sel || !is_plain(params)) {
        search_lists(*this, how, n, x, k, distances, labels);
        return;
    }
    how.lists = lists_for(*this, how);
    search_lists(*this, how, n, x, k, distances, labels);
    const IncompleteRows rows({n, x, d}, k, labels);
    if (rows.empty()) {
        return;
    }
    const Search all{nlist, how.sel};
    rows.search_again(
            distances, labels, [&](const VectorBatch& q, float* D, idx_t* I) {
                search_lists(*this, all, q.n, q.dense, k, D, I);
            });
}

void IndexIVFPQ4::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_ready(*this, "range_search");
    check_radius(radius, "IndexIVFPQ4::range_search");
    check_vectors(d, n, x, "IndexIVFPQ4::range_search");
    const Search how = search_of(*this, params);
    const bool is_l2 = metric_type == faiss::METRIC_L2;
    std::vector<std::vector<Hit>> found(n);
    // no distance is below 0, but a sum of rounded parts may be
    const float bound = !is_l2 ? -radius : radius > 0 ? radius : -worst_score;
    for_batches(n, most_queries, [&](idx_t q0, idx_t q1) {
        const auto y = centred(*this, q1 - q0, x + q0 * d);
        scan_probes(
                *this,
                q1 - q0,
                y.data(),
                how,
                [&](idx_t i, const Query& query, const Probe& probe) {
                    scan_list(
                            *this,
                            query,
                            probe,
                            how.sel,
                            0,
                            [&] { return bound; },
                            [&](size_t n,
                                const float* scores,
                                const idx_t* ids) {
                                for (size_t j = 0; j < n; j++) {
                                    if (scores[j] < bound) {
                                        found[q0 + i].emplace_back(
                                                scores[j], ids[j]);
                                    }
                                }
                            });
                },
                [&](idx_t i) {
                    std::vector<Hit>& hits = found[q0 + i];
                    std::sort(hits.begin(), hits.end());
                });
    });
    fill_range_result(
            found,
            result,
            [&](const Hit& hit) { return distance_of(*this, hit.first); },
            [](const Hit& hit) { return hit.second; });
}

void IndexIVFPQ4::make_direct_map(bool on) {
    direct_map.reset();
    if (on) {
        direct_map = places_of(*this);
    }
}

void IndexIVFPQ4::reconstruct(idx_t key, float* recons) const {
    reconstruct_n(key, 1, recons);
}

void IndexIVFPQ4::reconstruct_n(idx_t i0, idx_t ni, float* recons) const {
    check_ready(*this, "reconstruct");
    const Places found = direct_map
            ? Places()
            : places_of(*this, i0, std::max<idx_t>(0, ni));
    const Places& places = direct_map ? *direct_map : found;
    const Pq4Codes parts = codes_of(*this);
    std::vector<uint8_t> code(M);
    for (idx_t i = 0; i < ni; i++, recons += d) {
        const idx_t id = idx_t(uint64_t(i0) + uint64_t(i));
        const auto place = places.find(id);
        FAISS_EXT_THROW_IF_NOT_FMT(
                place != places.end() && is_at(*this, *place),
                "IndexIVFPQ4::reconstruct: there is no vector with id %" PRId64,
                int64_t(id));
        const auto [l, at] = place->second;
        read_slot(lists[l].codes.data(), at, parts.rows).get(code.data(), M);
        parts.decode(code.data(), recons);
        for (int j = 0; j < d; j++) {
            recons[j] += mean[j] + (residual ? centroids[l * d + j] : 0);
        }
    }
}

size_t IndexIVFPQ4::remove_ids(const faiss::IDSelector& sel) {
    check_removal(*this, sel, "IndexIVFPQ4::remove_ids");
    check_not_mapped(is_mapped(*this), "IndexIVFPQ4::remove_ids");
    const size_t rows = (M + 1) / 2;
    size_t removed = 0;
    RemakesDirectMap remaking(*this);
    for (List& list : lists) {
        const size_t n = list.ids.size();
        size_t kept = 0;
        for (size_t i = 0; i < n; i++) {
            if (!sel.is_member(list.ids[i])) {
                list.ids.make_owned()[kept] = list.ids[i];
                list.offsets.make_owned()[kept] = list.offsets[i];
                slot_of(list, kept, rows).copy(slot_of(list, i, rows), rows);
                kept++;
            }
        }
        if (kept < n) {
            resize_list(list, kept, rows);
            removed += n - kept;
        }
    }
    ntotal -= removed;
    remaking.done();
    return removed;
}

std::function<void()> IndexIVFPQ4::prepare_moves(const PlaceMoves& moves) {
    check_not_mapped(is_mapped(*this), "IndexIVFPQ4");
    if (!direct_map) {
        make_direct_map();
    }
    const auto check = [&](idx_t id) {
        const auto place = direct_map->find(id);
        FAISS_EXT_THROW_IF_NOT_FMT(
                id >= ntotal ||
                        (place != direct_map->end() && is_at(*this, *place)),
                "IndexIVFPQ4::remove_ids: there is no vector with id %" PRId64,
                int64_t(id));
    };
    moves.for_removed(check);
    for (const auto& move : moves.moves) {
        check(move.from);
    }
    return [this, &moves] {
        const size_t rows = (M + 1) / 2;
        moves.for_removed([&](idx_t id) {
            const auto [l, at] = direct_map->at(id);
            List& list = lists[l];
            const idx_t last = list.ids.size() - 1;
            if (at != last) {
                (*direct_map)[list.ids[last]].at = at;
                list.ids.make_owned()[at] = list.ids[last];
                list.offsets.make_owned()[at] = list.offsets[last];
                slot_of(list, at, rows).copy(slot_of(list, last, rows), rows);
            }
            resize_list(list, last, rows);
        });
        for (const auto [from, to] : moves.moves) {
            const Place place = direct_map->at(from);
            (*direct_map)[to] = place; // the id is there
            lists[place.list].ids.make_owned()[place.at] = to;
        }
        for (idx_t id = moves.after; id < moves.before; id++) {
            direct_map->erase(id);
        }
        ntotal = next_id = moves.after;
    };
}

void IndexIVFPQ4::reset() {
    for (List& list : lists) {
        list = {};
    }
    ntotal = next_id = 0;
    make_direct_map(direct_map.has_value());
}

void IndexIVFPQ4::check_compatible_for_merge(const faiss::Index& other) const {
    check_before_merge(*this, other);
    check_not_itself(&other == this);
    const auto* source = dynamic_cast<const IndexIVFPQ4*>(&other);
    FAISS_EXT_THROW_IF_NOT_FMT(
            source,
            "cannot merge: expected another IndexIVFPQ4, got %s",
            AnyIndex(other).class_name().c_str());
    FAISS_EXT_THROW_IF_NOT_MSG(
            d == source->d && metric_type == source->metric_type &&
                    nlist == source->nlist && M == source->M &&
                    residual == source->residual && mean == source->mean &&
                    centroids == source->centroids &&
                    codebook == source->codebook,
            "cannot merge: the indexes differ in parameters or training");
}

void IndexIVFPQ4::merge_from(faiss::Index& other, idx_t add_id) {
    check_not_mapped(is_mapped(*this), "IndexIVFPQ4::merge_from");
    check_compatible_for_merge(other);
    auto& source = dynamic_cast<IndexIVFPQ4&>(other);
    for (const List& list : source.lists) {
        for (idx_t id : list.ids) {
            shifted_id(id, add_id, "IndexIVFPQ4::merge_from");
        }
    }
    idx_t next_after = next_id;
    const size_t rows = (M + 1) / 2;
    for (idx_t l = 0; l < nlist; l++) { // first do all that may fail
        reserve_list(lists[l], source.lists[l].ids.size(), rows);
    }
    RemakesDirectMap remaking(*this);
    for (idx_t l = 0; l < nlist; l++) {
        List& to = lists[l];
        List& from = source.lists[l];
        const size_t n = to.ids.size();
        resize_list(to, n + from.ids.size(), rows);
        for (size_t i = 0; i < from.ids.size(); i++) {
            to.ids.make_owned()[n + i] = from.ids[i] + add_id;
            next_after = std::max(next_after, above(from.ids[i] + add_id));
            to.offsets.make_owned()[n + i] = from.offsets[i];
            slot_of(to, n + i, rows)
                    .copy(read_slot(from.codes.data(), i, rows), rows);
        }
    }
    ntotal += source.ntotal;
    next_id = next_after;
    source.reset();
    remaking.done();
    prefer_huge_pages_for(lists);
}

size_t IndexIVFPQ4::sa_code_size() const {
    throw_unsupported(
            "IndexIVFPQ4",
            "sa_code_size",
            "the lists hold codes in blocks of 32; FAISS's IVF,PQ encodes single vectors");
}

void IndexIVFPQ4::sa_encode(idx_t, const float*, uint8_t*) const {
    throw_unsupported(
            "IndexIVFPQ4",
            "sa_encode",
            "the lists hold codes in blocks of 32; FAISS's IVF,PQ encodes single vectors");
}

void IndexIVFPQ4::sa_decode(idx_t, const uint8_t*, float*) const {
    throw_unsupported(
            "IndexIVFPQ4",
            "sa_decode",
            "the lists hold codes in blocks of 32; FAISS's IVF,PQ encodes single vectors");
}

size_t IndexIVFPQ4::bytes_per_vector() const {
    return (M + 1) / 2 + sizeof(float) + sizeof(idx_t);
}

} // namespace faiss_ext
