// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexRefineKernel.h>

#include <algorithm>
#include <cinttypes>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <faiss/impl/FaissException.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexSparseKernel.h>
#include <faiss_ext/indexes/KernelExceptions.h>
#include <faiss_ext/indexes/sparse_calls.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "indexes/batch_calls.h"
#include "indexes/index_compat.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"
#include "indexes/range_result.h"
#include "indexes/row_scores.h"
#include "indexes/search_params.h"
#include "indexes/selected_places.h"
#include "indexes/supported_calls.h"
#include "simd/ranking.h"
#include "simd/top_k.h"

namespace faiss_ext {

namespace {

/// Throws unless both indexes have the same dimension and metric. Users may set
/// both members.
void check_alike(
        const faiss::Index& base_index,
        const faiss::Index& refine_index) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            base_index.d == refine_index.d,
            "IndexRefineKernel: base_index has %d dimensions and refine_index %d, expected the same",
            base_index.d,
            refine_index.d);
    FAISS_EXT_THROW_IF_NOT_FMT(
            base_index.metric_type == refine_index.metric_type,
            "IndexRefineKernel: base_index has the metric_type %d and refine_index %d, expected the same",
            int(base_index.metric_type),
            int(refine_index.metric_type));
}

/// Returns the first index, after checks of both.
faiss::Index* checked(faiss::Index* base_index, faiss::Index* refine_index) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            base_index && refine_index, "IndexRefineKernel: an index is null");
    check_alike(*base_index, *refine_index);
    FAISS_EXT_THROW_IF_NOT_FMT(
            base_index->ntotal == refine_index->ntotal,
            "IndexRefineKernel: base_index has %" PRId64
            " vectors and refine_index %" PRId64 ", expected the same number",
            int64_t(base_index->ntotal),
            int64_t(refine_index->ntotal));
    return base_index;
}

/// Throws unless the parts of an index match.
void check_parts(const IndexRefineKernel& index) {
    check_counts_with(index, index.base_index, index.refine_index);
    FAISS_EXT_THROW_IF_NOT_MSG(
            !id_table_of(index.base_index) && !id_table_of(index.refine_index),
            "IndexRefineKernel: a part has ids of its own, expected positions; give ids to the whole index");
    check_alike(*index.base_index, *index.refine_index);
    FAISS_EXT_THROW_IF_NOT_FMT(
            index.d == index.refine_index->d,
            "IndexRefineKernel: the index has %d dimensions and its parts %d, expected the same",
            index.d,
            index.refine_index->d);
}

/// Candidates that the index in front finds for each query.
struct Candidates {
    const faiss::SearchParameters* params; ///< of the index in front
    const faiss::IDSelector* sel;          ///< of the results; may be null
    idx_t number = 0;                      ///< for each query
    std::unique_ptr<idx_t[]> ids;          ///< -1 for none
    std::unique_ptr<float[]> scores;
    bool is_filtered = false; ///< whether only selected vectors are found

    /// Plans a search for `wanted` candidates: at least `least`, and no more
    /// than there are vectors if these are enough. `selected` is the part of
    /// the vectors that the selector selects.
    Candidates(
            const IndexRefineKernel& index,
            const faiss::SearchParameters* given,
            double selected,
            double wanted,
            idx_t least)
            : params(given), sel(selector_inside(given)) {
        if (!sel && is_plain(given)) {
            params = nullptr; // they say nothing
        }
        if (sel && is_plain(given)) {
            wider = params_for_selected(*index.base_index, selected);
            params = wider.get();
            if (selects(*index.base_index)) {
                wider->sel = given->sel;
                is_filtered = true;
            } else {
                params = is_plain(params) ? nullptr : params;
                wanted /= selected;
            }
        }
        number = std::max(
                least, wanted < index.ntotal ? idx_t(wanted) : index.ntotal);
    }

    void find(const faiss::Index& base, const VectorBatch& x) {
        const idx_t n = x.n;
        FAISS_EXT_THROW_IF_NOT_FMT(
                n <= std::numeric_limits<idx_t>::max() / number,
                "IndexRefineKernel::search: %" PRId64
                " candidates for each of %" PRId64
                " queries exceed the range of a 64-bit number",
                int64_t(number),
                int64_t(n));
        // filling gigabytes with zeros takes seconds, without a check for
        // interrupts
        ids = std::make_unique_for_overwrite<idx_t[]>(n * number);
        scores = std::make_unique_for_overwrite<float[]>(n * number);
        search(base, x, number, scores.get(), ids.get(), params);
    }

    /// Chooses the k nearest selected candidates by exact scores.
    void compare(
            const IndexFlatKernel& flat,
            const VectorBatch& x,
            idx_t k,
            float* found,
            idx_t* labels) {
        const idx_t n = x.n;
        for (idx_t i = 0; is_filtered && i < n; i++) {
            are_missing.push_back(
                    std::find(&ids[i * number], &ids[(i + 1) * number], -1) !=
                    &ids[(i + 1) * number]);
        }
        for (idx_t i = 0; sel && i < n * number; i++) {
            ids[i] = is_selected(ids[i]) ? ids[i] : -1;
        }
        compute_score_subset(flat, x, number, scores.get(), ids.get());
        choose_nearest(n, number, scores.get(), ids.get(), k, found, labels);
    }

    /// Whether there are probably nearer vectors than the candidates of query
    /// i. This is so if a graph found fewer selected vectors than it was asked
    /// for: it may have ended before it came to them. It is also so if more
    /// than a quarter of the results are in the farther half of the candidates.
    /// Candidates that are no nearer than others would have half of them there.
    bool are_too_few(idx_t i, idx_t k, const idx_t* labels) const {
        if (is_filtered && are_missing[i]) {
            return true;
        }
        const idx_t* end = &ids[i * number] + number;
        std::vector<idx_t> farther(end - number / 2, end);
        std::sort(farther.begin(), farther.end());
        const idx_t far = std::count_if(
                labels + i * k, labels + (i + 1) * k, [&](idx_t id) {
                    return id >= 0 &&
                            std::binary_search(
                                    farther.begin(), farther.end(), id);
                });
        return 4 * far > k;
    }

    /// Takes the selected candidates of query i within a radius, by ascending
    /// id. Returns how many are within it, selected or not. The scores are
    /// distances or kernel values.
    size_t take_within(
            idx_t i,
            float radius,
            faiss::MetricType metric,
            std::vector<Hit>& hits) const {
        size_t within = 0;
        hits.clear();
        for (idx_t j = i * number; j < (i + 1) * number; j++) {
            if (ids[j] >= 0 && is_within(metric, scores[j], radius)) {
                within++;
                if (!sel || is_selected(ids[j])) {
                    hits.emplace_back(scores[j], ids[j]);
                }
            }
        }
        std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) {
            return a.second < b.second;
        });
        return within;
    }

   private:
    std::unique_ptr<faiss::SearchParameters> wider;
    std::vector<bool> are_missing; ///< candidates of each query

    bool is_selected(idx_t id) const {
        return id >= 0 && sel->is_member(id);
    }
};

/// Finds the vectors within a radius among the given ones, exactly.
std::vector<std::vector<Hit>> within_radius(
        const IndexFlatKernel& flat,
        const std::vector<idx_t>& places,
        const VectorBatch& x,
        float radius) {
    std::vector<std::vector<Hit>> found(x.n);
    const idx_t m = idx_t(places.size());
    std::vector<float> values(m);
    for (idx_t i = 0; i < x.n; i++) {
        compute_distance_subset(
                flat, x.slice(i, i + 1), m, values.data(), places.data());
        for (idx_t j = 0; j < m; j++) {
            if (is_within(flat.metric_type, values[j], radius)) {
                found[i].emplace_back(values[j], places[j]);
            }
        }
    }
    return found;
}

/// Throws for dense vectors that an index of FAISS would not refuse.
void check_faiss_part(
        const faiss::Index& index,
        const VectorBatch& x,
        const char* where) {
    if (!x.is_sparse) {
        check_batch(x.n, x.dense, where);
        check_faiss_input(index, x.n, x.dense, where);
    }
}

/// Removes the vectors from n0 on, if the index supports removal.
void truncate(faiss::Index& index, idx_t n0) {
    if (index.ntotal > n0) {
        try {
            forget_direct_maps(index); // FAISS removes nothing from these
            index.remove_ids(PlaceSelector::from(n0, index.ntotal));
        } catch (const faiss::FaissException&) {
            // check_counts reports it
        }
    }
}

} // namespace

IndexRefineKernel::IndexRefineKernel(
        faiss::Index* base_index,
        faiss::Index* refine_index)
        : IndexRefine(checked(base_index, refine_index), refine_index) {}

void IndexRefineKernel::train(idx_t n, const float* x) {
    train_batch({n, x, d});
}

void IndexRefineKernel::train_batch(const VectorBatch& x) {
    // train the index in front last, as it may take long: if it fails, it is
    // left unchanged, and a kernel can be restored
    auto* flat = dynamic_cast<IndexFlatKernel*>(refine_index);
    const std::unique_ptr<Kernel> before =
            flat && !flat->is_trained ? flat->kernel->clone() : nullptr;
    check_training(*refine_index, x.n, "IndexRefineKernel::train");
    check_training(*base_index, x.n, "IndexRefineKernel::train");
    faiss_ext::train(*refine_index, x);
    try {
        check_faiss_part(*base_index, x, "IndexRefineKernel::train");
        faiss_ext::train(*base_index, x);
    } catch (...) {
        if (before) {
            flat->kernel->assign(*before);
            flat->is_trained = before->is_trained;
        }
        throw;
    }
    is_trained = base_index->is_trained && refine_index->is_trained;
}

void IndexRefineKernel::add(idx_t n, const float* x) {
    add_batch({n, x, d});
}

bool IndexRefineKernel::takes_sparse() const {
    return faiss_ext::takes_sparse(*base_index) &&
            dynamic_cast<const IndexSparseKernel*>(refine_index);
}

void IndexRefineKernel::add_batch(const VectorBatch& x) {
    check_trained(is_trained, "IndexRefineKernel::add");
    check_parts(*this);
    check_counts(*this); // also the ids of new vectors
    check_faiss_part(*base_index, x, "IndexRefineKernel::add");
    check_addition(*this, x.n, "IndexRefineKernel::add");
    const idx_t n0 = ntotal;
    try {
        // exact search refuses invalid vectors, and can remove them
        faiss_ext::add(*refine_index, x);
        if (x.n > 0) { // FAISS's fast scan does not take no vectors
            faiss_ext::add(*base_index, x);
        }
        ntotal = refine_index->ntotal;
    } catch (...) {
        truncate(*refine_index, n0);
        truncate(*base_index, n0);
        throw;
    }
}

const IndexFlatKernel* IndexRefineKernel::checked_search(
        const char* where,
        const VectorBatch& x) const {
    check_parts(*this);
    check_trained(is_trained, where);
    check_faiss_part(*base_index, x, where);
    const auto* flat = dynamic_cast<const IndexFlatKernel*>(refine_index);
    if (!flat) {
        check_computes_distances(*refine_index);
    }
    return flat;
}

void IndexRefineKernel::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    search_batch({n, x, d}, k, distances, labels, params);
}

void IndexRefineKernel::search_batch(
        const VectorBatch& x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    const idx_t n = x.n;
    const IndexFlatKernel* flat =
            checked_search("IndexRefineKernel::search", x);
    check_k(k, "IndexRefineKernel::search");
    KernelExceptionGuard guard(this); // this checks k_factor, too
    const RefineSearch how = refine_search(k_factor, params);
    check_params_for(*base_index, how.base_params, "search of a Refine index");
    if (!is_plain(how.base_params)) {
        check_params_supported(
                *base_index, how.base_params, "search of a Refine index");
    }
    if (ntotal == 0) { // FAISS's flat indexes may not write labels
        std::fill_n(distances, n * k, worst_of(metric_type));
        std::fill_n(labels, n * k, -1);
        return;
    }
    const faiss::IDSelector* sel = selector_inside(how.base_params);
    if (!flat) {
        FAISS_EXT_THROW_IF_NOT_MSG(
                !sel || params != how.base_params,
                "IndexRefineKernel::search: a selector needs Refine(KFlat(...)); FAISS 1.8 or newer also takes one in IndexRefineSearchParameters");
        FAISS_EXT_THROW_IF_NOT_MSG(
                !dynamic_cast<const SearchParametersRefine*>(params),
                "IndexRefineKernel::search: SearchParametersRefine needs Refine(KFlat(...))");
        IndexRefine::search(
                n,
                x.dense,
                k,
                distances,
                labels,
                is_plain(params) ? nullptr : params);
        guard.rethrow();
        return;
    }
    const double wanted = double(k) * how.k_factor;
    double part = 1;
    if (sel) {
        const Selected selected(*sel, ntotal, most_compared(wanted, ntotal));
        if (selected.few) {
            const PlaceSelector few(*selected.few, ntotal);
            faiss::SearchParameters exact;
            exact.sel = const_cast<PlaceSelector*>(&few); // FAISS's type
            faiss_ext::search(*flat, x, k, distances, labels, &exact);
            return;
        }
        part = selected.fraction;
    }
    Candidates candidates(*this, how.base_params, part, wanted, k);
    candidates.find(*base_index, x);
    guard.rethrow();
    candidates.compare(*flat, x, k, distances, labels);
    if (sel) {
        const bool may_miss =
                is_plain(how.base_params) && candidates.number < ntotal;
        parallel_blocks(may_miss ? n : 0, 16, [&](idx_t begin, idx_t end) {
            for (idx_t i = begin; i < end; i++) {
                if (candidates.are_too_few(i, k, labels)) {
                    labels[(i + 1) * k - 1] = -1; // search for it again
                }
            }
        });
        complete_results(*flat, *sel, x, k, distances, labels);
    }
    flat->values_of_scores(n, k, distances, labels);
}

void IndexRefineKernel::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    range_search_batch({n, x, d}, radius, result, params);
}

void IndexRefineKernel::range_search_batch(
        const VectorBatch& x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    constexpr const char* where = "IndexRefineKernel::range_search";
    const idx_t n = x.n;
    const IndexFlatKernel* flat = checked_search(where, x);
    check_radius(radius, "IndexRefineKernel::range_search");
    if (!flat) {
        throw_unsupported(
                "IndexRefineKernel",
                "range_search",
                "use Refine(KFlat(...)), which computes the distances");
    }
    KernelExceptionGuard guard(this);
    const RefineSearch how = refine_search(k_factor, params);
    check_params_for(*base_index, how.base_params, where);
    if (!is_plain(how.base_params)) {
        check_params_supported(*base_index, how.base_params, where);
    }
    const faiss::IDSelector* sel = selector_inside(how.base_params);
    const double first = 16 * how.k_factor;
    std::vector<std::vector<Hit>> found(n);
    std::vector<idx_t> rows(ntotal > 0 ? n : 0);
    double part = 1;
    if (sel) {
        const Selected selected(*sel, ntotal, most_compared(first, ntotal));
        if (selected.few) {
            found = within_radius(*flat, *selected.few, x, radius);
            rows.clear();
        }
        part = selected.fraction;
    }
    std::iota(rows.begin(), rows.end(), idx_t(0));
    // as many candidates as a search for the hits would have, but at least
    // twice as many as hits: with k_factor = 1, any number would be enough
    const double least_factor = std::max<double>(how.k_factor, 2);
    for (double wanted = first; !rows.empty(); wanted *= 4) {
        Candidates candidates(*this, how.base_params, part, wanted, 1);
        const idx_t m = candidates.number;
        const idx_t group = std::max<idx_t>(1, (1 << 22) / m);
        std::vector<idx_t> unfinished;
        for (size_t r = 0; r < rows.size(); r += group) {
            const idx_t nq = std::min<idx_t>(group, rows.size() - r);
            const GatheredVectors queries(
                    x, {rows.begin() + r, rows.begin() + r + nq});
            candidates.find(*base_index, queries.get());
            guard.rethrow();
            compute_distance_subset(
                    *flat,
                    queries.get(),
                    m,
                    candidates.scores.get(),
                    candidates.ids.get());
            for (idx_t i = 0; i < nq; i++) {
                const size_t within = candidates.take_within(
                        i, radius, metric_type, found[rows[r + i]]);
                const bool are_enough = double(within) * least_factor <= m;
                if (!are_enough && m < ntotal) {
                    unfinished.push_back(rows[r + i]);
                }
            }
        }
        rows = std::move(unfinished);
    }
    fill_range_result(
            found,
            result,
            [](const Hit& hit) { return hit.first; },
            [](const Hit& hit) { return hit.second; });
}

void IndexRefineKernel::add_with_ids(idx_t, const float*, const idx_t*) {
    throw_unsupported(
            "IndexRefineKernel",
            "add_with_ids",
            "put an IDMap or IndexIDTable in front of the index");
}

size_t IndexRefineKernel::remove_ids(const faiss::IDSelector& sel) {
    throw_unsupported(
            "IndexRefineKernel",
            "remove_ids",
            is_from_id_map(sel)
                    ? "use add_with_ids and remove_ids of the index inside, without the IndexIDMap"
                    : "put an IDMap or IndexIDTable in front of the index");
}

void IndexRefineKernel::check_compatible_for_merge(
        const faiss::Index& other) const {
    check_not_itself(&other == this);
    check_before_merge(*this, other);
    const auto* source = dynamic_cast<const IndexRefineKernel*>(&other);
    FAISS_EXT_THROW_IF_NOT_MSG(
            source, "cannot merge: expected another index with Refine");
    check_parts(*this);
    check_parts(*source);
    if (!has_direct_map(base_index) && !has_direct_map(source->base_index)) {
        check_merge(*base_index, *source->base_index);
    } // otherwise FAISS refuses; merge_from removes the maps first
    check_merge(*refine_index, *source->refine_index);
}

void IndexRefineKernel::merge_from(faiss::Index& other, idx_t add_id) {
    check_compatible_for_merge(other);
    check_no_add_id(add_id);
    auto& source = dynamic_cast<IndexRefineKernel&>(other);
    forget_direct_maps(base_index);
    forget_direct_maps(source.base_index);
    check_merge(*base_index, *source.base_index);
    merge_and_empty(
            *base_index,
            *source.base_index,
            keeps_ids(base_index) ? ntotal : 0);
    merge_and_empty(*refine_index, *source.refine_index);
    ntotal = refine_index->ntotal;
    source.ntotal = source.refine_index->ntotal;
}

void IndexRefineKernel::reconstruct(idx_t key, float* recons) const {
    reconstruct_n(key, 1, recons);
}

void IndexRefineKernel::reconstruct_n(idx_t i0, idx_t ni, float* recons) const {
    check_parts(*this);
    check_ids(i0, ni, ntotal, "IndexRefineKernel::reconstruct");
    refine_index->reconstruct_n(i0, ni, recons);
}

void IndexRefineKernel::sa_decode(idx_t n, const uint8_t* bytes, float* x)
        const {
    const size_t skipped = base_index->sa_code_size();
    const size_t size = refine_index->sa_code_size();
    std::vector<uint8_t> codes(n * size);
    for (idx_t i = 0; i < n; i++) {
        std::copy_n(
                bytes + i * (skipped + size) + skipped, size, &codes[i * size]);
    }
    refine_index->sa_decode(n, codes.data(), x);
}

} // namespace faiss_ext
