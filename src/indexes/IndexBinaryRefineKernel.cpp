// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexBinaryRefineKernel.h>

#include <algorithm>
#include <cinttypes>
#include <limits>
#include <memory>
#include <vector>

#include <faiss/impl/FaissException.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/indexes/IndexBinaryFlatKernel.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>

#include "core/bit_rows.h"
#include "core/check.h"
#include "core/errors.h"
#include "core/hamming.h"
#include "core/parallel.h"
#include "indexes/index_compat.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"
#include "indexes/search_params.h"
#include "indexes/selected_places.h"
#include "indexes/supported_calls.h"
#include "simd/top_k.h"

namespace faiss_ext {

namespace {

using faiss::IndexBinary;

constexpr const char* name = "IndexBinaryRefineKernel";

/// The hash in front of the codes of an index; null if it takes them as they
/// are.
template <class IndexT>
auto* hashed(IndexT* index) {
    using Hashed = std::conditional_t<
            std::is_const_v<IndexT>,
            const IndexBinaryKernelHash,
            IndexBinaryKernelHash>;
    return dynamic_cast<Hashed*>(index);
}

int bits_of(const IndexBinary& index) {
    const auto* with_hash = hashed(&index);
    return with_hash ? int(with_hash->hash->d_in) : index.d;
}

void check_alike(const IndexBinary& base, const IndexBinaryFlatKernel& exact) {
    const bool is_padded =
            !hashed(&base) && bits_of(base) == padded_bits(exact.d);
    FAISS_EXT_THROW_IF_NOT_FMT(
            is_padded || bits_of(base) == exact.d,
            "%s: base_index takes %d bits and refine_index %d, expected the same",
            name,
            bits_of(base),
            exact.d);
}

/// Searches with the codes as the index takes them.
void search_base(
        const IndexBinary& base,
        idx_t n,
        const uint8_t* x,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) {
    if (const auto* with_hash = hashed(&base)) {
        const SparseRows rows = rows_of_bits(n, bits_of(base), x);
        with_hash->search(rows.get(), k, distances, labels, params);
    } else {
        base.search(n, x, k, distances, labels, params);
    }
}

/// Removes the codes from n0 on, if the index supports removal.
void truncate(IndexBinary& index, idx_t n0) {
    if (index.ntotal > n0) {
        try {
            index.remove_ids(PlaceSelector::from(n0, index.ntotal));
        } catch (const faiss::FaissException&) {
            // check_counts reports it
        }
    }
}

/// Candidates for each query of a search.
struct Plan {
    const faiss::SearchParameters* params; ///< of base_index
    const faiss::IDSelector* sel;          ///< of the results; may be null
    idx_t number;                          ///< for each query
    std::unique_ptr<faiss::SearchParameters> wider;

    Plan(const IndexBinaryRefineKernel& index,
         const faiss::SearchParameters* given,
         double selected,
         double wanted)
            : params(given), sel(selector_inside(given)) {
        if (is_plain(given)) {
            params = nullptr;
            if (sel) {
                wider = params_for_selected(*index.base_index, selected);
                if (selects(*index.base_index)) {
                    wider->sel = given->sel;
                } else {
                    wanted /= selected;
                }
                params = wider->sel || !is_plain(wider.get()) ? wider.get()
                                                              : nullptr;
            }
        }
        number = wanted < index.ntotal ? idx_t(wanted) : index.ntotal;
    }
};

} // namespace

IndexBinaryRefineKernel::IndexBinaryRefineKernel(
        IndexBinary* base_index,
        IndexBinaryFlatKernel* refine_index)
        : base_index(base_index), refine_index(refine_index) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            base_index && refine_index, "%s: an index is null", name);
    FAISS_EXT_THROW_IF_NOT_FMT(
            base_index->ntotal == refine_index->ntotal,
            "%s: base_index has %" PRId64 " codes and refine_index %" PRId64
            ", expected the same number",
            name,
            int64_t(base_index->ntotal),
            int64_t(refine_index->ntotal));
    d = refine_index->d;
    code_size = refine_index->code_size;
    ntotal = refine_index->ntotal;
    is_trained = base_index->is_trained;
    check_parts();
    refine_index->remember_places();
}

IndexBinaryRefineKernel::~IndexBinaryRefineKernel() {
    if (own_fields) {
        delete base_index;
        delete refine_index;
    }
}

void IndexBinaryRefineKernel::check_parts() const {
    check_counts_with(*this, base_index, refine_index);
    FAISS_EXT_THROW_IF_NOT_FMT(
            !id_table_of(base_index) && !id_table_of(refine_index),
            "%s: a part has ids of its own, expected positions; give ids to the whole index",
            name);
    check_alike(*base_index, *refine_index);
    FAISS_EXT_THROW_IF_NOT_FMT(
            d == refine_index->d && code_size == refine_index->code_size,
            "%s: the index has %d bits and refine_index %d, expected the same",
            name,
            d,
            refine_index->d);
}

void IndexBinaryRefineKernel::train(idx_t n, const uint8_t* x) {
    check_batch(n, x, "IndexBinaryRefineKernel::train");
    check_bits(n, d, x, "IndexBinaryRefineKernel::train");
    check_training(*base_index, n, "IndexBinaryRefineKernel::train");
    if (auto* with_hash = hashed(base_index)) {
        with_hash->train(rows_of_bits(n, d, x).get());
    } else {
        base_index->train(n, x);
    }
    is_trained = base_index->is_trained;
}

void IndexBinaryRefineKernel::add(idx_t n, const uint8_t* x) {
    constexpr const char* where = "IndexBinaryRefineKernel::add";
    check_trained(is_trained, where);
    check_parts();
    check_batch(n, x, where);
    check_bits(n, d, x, where);
    check_addition(*this, n, where);
    const idx_t n0 = ntotal;
    try {
        refine_index->add(n, x);
        if (auto* with_hash = hashed(base_index)) {
            with_hash->add(rows_of_bits(n, d, x).get());
        } else {
            base_index->add(n, x);
        }
        ntotal = refine_index->ntotal;
    } catch (...) {
        truncate(*refine_index, n0);
        truncate(*base_index, n0);
        throw;
    }
}

void IndexBinaryRefineKernel::search(
        idx_t n,
        const uint8_t* x,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    constexpr const char* where = "IndexBinaryRefineKernel::search";
    constexpr int32_t no_distance = std::numeric_limits<int32_t>::max();
    check_parts();
    check_trained(is_trained, where);
    check_batch(n, x, where);
    check_bits(n, d, x, where);
    check_k(k, where);
    const RefineSearch how = refine_search(k_factor, params);
    check_params_for(*base_index, how.base_params, where);
    if (ntotal == 0) {
        std::fill_n(distances, n * k, no_distance);
        std::fill_n(labels, n * k, -1);
        return;
    }
    const faiss::IDSelector* sel = selector_inside(how.base_params);
    const double wanted = double(k) * how.k_factor;
    double part = 1;
    faiss::SearchParameters exact;
    exact.sel = const_cast<faiss::IDSelector*>(sel); // FAISS's type
    if (sel) {
        const Selected selected(*sel, ntotal, most_compared(wanted, ntotal));
        if (selected.few) {
            refine_index->search(n, x, k, distances, labels, &exact);
            return;
        }
        part = selected.fraction;
    }
    const Plan plan(*this, how.base_params, part, wanted);
    const idx_t m = plan.number;
    const idx_t together = std::max<idx_t>(1, (1 << 22) / m);
    std::vector<idx_t> ids;
    std::vector<int32_t> values;
    std::vector<uint8_t> are_too_few(n);
    for (idx_t first = 0; first < n; first += together) {
        const idx_t nq = std::min(together, n - first);
        const uint8_t* queries = x + first * code_size;
        ids.resize(nq * m);
        values.resize(nq * m);
        search_base(
                *base_index,
                nq,
                queries,
                m,
                values.data(),
                ids.data(),
                plan.params);
        for (idx_t& id : ids) {
            if (id >= 0 && sel && !sel->is_member(id)) {
                id = -1;
            }
        }
        refine_index->compute_distance_subset(
                nq, queries, m, values.data(), ids.data());
        parallel_blocks(nq, 16, [&](idx_t begin, idx_t end) {
            for (idx_t i = begin; i < end; i++) {
                TopK<int32_t> nearest(std::min(k, m));
                for (idx_t j = i * m; j < (i + 1) * m; j++) {
                    if (ids[j] >= 0) {
                        nearest.push(values[j], ids[j]);
                    }
                }
                const auto hits = nearest.sorted(std::min(k, m));
                const idx_t row = (first + i) * k;
                for (idx_t j = 0; j < k; j++) {
                    const bool is_there = j < idx_t(hits.size());
                    distances[row + j] = is_there ? hits[j].first : no_distance;
                    labels[row + j] = is_there ? hits[j].second : -1;
                }
                if (sel && is_plain(how.base_params)) {
                    std::vector<idx_t> farther(
                            &ids[i * m + m - m / 2], &ids[i * m] + m);
                    std::sort(farther.begin(), farther.end());
                    const idx_t far = std::count_if(
                            hits.begin(), hits.end(), [&](const auto& hit) {
                                return std::binary_search(
                                        farther.begin(),
                                        farther.end(),
                                        hit.second);
                            });
                    are_too_few[first + i] = idx_t(hits.size()) < k ||
                            (m < ntotal && 4 * far > k);
                }
            }
        });
    }
    for (idx_t i = 0; i < n; i++) {
        if (are_too_few[i]) {
            refine_index->search(
                    1,
                    x + i * code_size,
                    k,
                    distances + i * k,
                    labels + i * k,
                    &exact);
        }
    }
}

void IndexBinaryRefineKernel::range_search(
        idx_t n,
        const uint8_t* x,
        int radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_parts();
    const RefineSearch how = refine_search(k_factor, params);
    faiss::SearchParameters exact;
    exact.sel = const_cast<faiss::IDSelector*>( // FAISS's type
            selector_inside(how.base_params));
    refine_index->range_search(n, x, radius, result, &exact);
}

void IndexBinaryRefineKernel::add_with_ids(
        idx_t,
        const uint8_t*,
        const idx_t*) {
    throw_unsupported(
            name,
            "add_with_ids",
            "put an IDMap or IndexIDTable in front of the index");
}

size_t IndexBinaryRefineKernel::remove_ids(const faiss::IDSelector&) {
    throw_unsupported(
            name,
            "remove_ids",
            "put an IDMap or IndexIDTable in front of the index");
}

void IndexBinaryRefineKernel::reset() {
    reset_binary_index(*base_index);
    refine_index->reset();
    ntotal = 0;
}

void IndexBinaryRefineKernel::check_compatible_for_merge(
        const IndexBinary& other) const {
    check_not_itself(&other == this);
    check_before_merge(*this, other);
    const auto* source = dynamic_cast<const IndexBinaryRefineKernel*>(&other);
    FAISS_EXT_THROW_IF_NOT_MSG(
            source, "cannot merge: expected another index with Refine");
    check_parts();
    source->check_parts();
    if (!has_direct_map(base_index) && !has_direct_map(source->base_index)) {
        check_merge(base_index, source->base_index);
    } // otherwise FAISS refuses; merge_from removes the maps first
    check_merge(refine_index, source->refine_index);
}

void IndexBinaryRefineKernel::merge_from(IndexBinary& other, idx_t add_id) {
    check_compatible_for_merge(other);
    check_no_add_id(add_id);
    auto& source = dynamic_cast<IndexBinaryRefineKernel&>(other);
    forget_direct_maps(base_index);
    forget_direct_maps(source.base_index);
    check_merge(base_index, source.base_index);
    merge_and_empty(
            *base_index,
            *source.base_index,
            keeps_ids(base_index) ? ntotal : 0);
    merge_and_empty(*refine_index, *source.refine_index);
    ntotal = refine_index->ntotal;
    source.ntotal = source.refine_index->ntotal;
}

void IndexBinaryRefineKernel::reconstruct(idx_t key, uint8_t* recons) const {
    reconstruct_n(key, 1, recons);
}

void IndexBinaryRefineKernel::reconstruct_n(idx_t i0, idx_t ni, uint8_t* recons)
        const {
    check_parts();
    refine_index->reconstruct_n(i0, ni, recons);
}

} // namespace faiss_ext
