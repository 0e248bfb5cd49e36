// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexRefineKernel.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include <faiss/impl/FaissException.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/KernelExceptions.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "indexes/index_compat.h"
#include "indexes/index_parts.h"
#include "indexes/row_scores.h"
#include "simd/top_k.h"

namespace faiss_ext {

namespace {

/// Throws unless the two indexes take and give the same: both can be set.
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

/// Throws unless the parts of an index fit.
void check_parts(const IndexRefineKernel& index) {
    check_counts_with(index, index.base_index, index.refine_index);
    check_alike(*index.base_index, *index.refine_index);
    FAISS_EXT_THROW_IF_NOT_FMT(
            index.d == index.refine_index->d,
            "IndexRefineKernel: the index has %d dimensions and its parts %d, expected the same",
            index.d,
            index.refine_index->d);
}

/// Removes the vectors from n0 on, if the index supports removal.
void truncate(faiss::Index& index, idx_t n0) {
    if (index.ntotal > n0) {
        try {
            index.remove_ids(faiss::IDSelectorRange(n0, index.ntotal));
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
    // train the index in front last, as it may take long: if it fails, it is
    // left unchanged, and a kernel can be restored
    auto* flat = dynamic_cast<IndexFlatKernel*>(refine_index);
    const std::unique_ptr<Kernel> before =
            flat && !flat->is_trained ? flat->kernel->clone() : nullptr;
    refine_index->train(n, x);
    try {
        check_faiss_input(*base_index, n, x, "IndexRefineKernel::train");
        base_index->train(n, x);
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
    FAISS_EXT_THROW_IF_NOT_MSG(
            is_trained,
            "IndexRefineKernel::add: the index is not trained; call train first");
    check_parts(*this);
    check_counts(*this); // also the ids of new vectors
    check_faiss_input(*base_index, n, x, "IndexRefineKernel::add");
    const idx_t n0 = ntotal;
    try {
        // exact search refuses invalid vectors, and can remove them
        refine_index->add(n, x);
        base_index->add(n, x);
        ntotal = refine_index->ntotal;
    } catch (...) {
        truncate(*refine_index, n0);
        truncate(*base_index, n0);
        throw;
    }
}

void IndexRefineKernel::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    check_parts(*this);
    FAISS_EXT_THROW_IF_NOT_MSG(
            is_trained,
            "IndexRefineKernel::search: the index is not trained; call train first");
    check_batch(n, x, "IndexRefineKernel::search");
    check_faiss_input(*base_index, n, x, "IndexRefineKernel::search");
    FAISS_EXT_THROW_IF_NOT_FMT(
            k > 0,
            "IndexRefineKernel::search: k is %" PRId64
            ", expected a positive number",
            int64_t(k));
    const auto* flat = dynamic_cast<const IndexFlatKernel*>(refine_index);
    if (!flat) {
        check_computes_distances(*refine_index);
    }
    KernelExceptionGuard guard(this); // this checks k_factor, too
    const RefineSearch how = refine_search(*this, params);
    check_params_for(*base_index, how.base_params, "search of a Refine index");
    if (ntotal == 0) { // FAISS's flat indexes may not write labels
        std::fill_n(distances, n * k, worst_of(metric_type));
        std::fill_n(labels, n * k, -1);
        return;
    }
    if (!flat) {
        IndexRefine::search(n, x, k, distances, labels, params);
        guard.rethrow();
        return;
    }
    // more candidates than vectors would be padding
    const float wanted = float(k) * how.k_factor;
    const idx_t k_base =
            std::max(k, wanted < float(ntotal) ? idx_t(wanted) : ntotal);
    FAISS_EXT_THROW_IF_NOT_FMT(
            n <= std::numeric_limits<idx_t>::max() / k_base,
            "IndexRefineKernel::search: %" PRId64
            " candidates for each of %" PRId64 " queries are too many",
            int64_t(k_base),
            int64_t(n));
    // filling gigabytes with zeros takes seconds, without a check for
    // interrupts
    const auto candidates = std::make_unique_for_overwrite<idx_t[]>(n * k_base);
    const auto scores = std::make_unique_for_overwrite<float[]>(n * k_base);
    base_index->search(
            n, x, k_base, scores.get(), candidates.get(), how.base_params);
    guard.rethrow();
    flat->compute_score_subset(n, x, k_base, scores.get(), candidates.get());
    parallel_blocks(n, 64, [&](idx_t begin, idx_t end) {
        std::vector<Hit> found;
        for (idx_t i = begin; i < end; i++) {
            found.clear();
            for (idx_t j = i * k_base; j < (i + 1) * k_base; j++) {
                if (candidates[j] >= 0 && !std::isnan(scores[j])) {
                    found.emplace_back(scores[j], candidates[j]);
                }
            }
            keep_smallest(found, k);
            found.resize(k, {worst_score, -1});
            for (idx_t j = 0; j < k; j++) {
                std::tie(distances[i * k + j], labels[i * k + j]) = found[j];
            }
            finish_results(*flat, k, distances + i * k, labels + i * k);
        }
    });
}

void IndexRefineKernel::range_search(
        idx_t,
        const float*,
        float,
        faiss::RangeSearchResult*,
        const faiss::SearchParameters*) const {
    throw UnsupportedError(
            "range_search: not supported by an index with Refine; call range_search of base_index (approximate) or refine_index (exact)");
}

void IndexRefineKernel::add_with_ids(idx_t, const float*, const idx_t*) {
    throw_unsupported(
            "IndexRefineKernel",
            "add_with_ids",
            "put an IDMap in front of the index");
}

size_t IndexRefineKernel::remove_ids(const faiss::IDSelector&) {
    throw_unsupported(
            "IndexRefineKernel",
            "remove_ids",
            "build the index again without the vectors");
}

void IndexRefineKernel::check_compatible_for_merge(const faiss::Index&) const {
    throw_unsupported(
            "IndexRefineKernel",
            "merge_from",
            "add the vectors of both to one index");
}

void IndexRefineKernel::merge_from(faiss::Index& other, idx_t) {
    check_compatible_for_merge(other);
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
