// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>

#include "core/cache_sizes.h"
#include "core/check.h"
#include "core/errors.h"
#include "core/huge_pages.h"
#include "indexes/hamming_hits.h"
#include "indexes/index_positions.h"
#include "indexes/range_result.h"
#include "indexes/search_params.h"
#include "simd/hamming_scan.h"

namespace faiss_ext {

namespace {

using simd::HammingSink;
using Keys = std::vector<uint64_t>;

constexpr idx_t query_block = 32;

/// Returns a predicate for positions, which are ids here.
std::function<bool(idx_t)> wanted(const faiss::IDSelector* sel) {
    if (!sel) {
        return nullptr;
    }
    return [sel](idx_t id) { return sel->is_member(id); };
}

/** Compares all codes with all queries, in blocks of queries. If there are too
 * few blocks for all threads, the codes are scanned in slices.
 *
 * @param k       nearest codes per query, or 0 for all below the bound
 * @param result  result(query, keys) receives the keys of one query: sorted,
 *                or, if k = 0, by ascending ids
 */
template <class Result>
void scan_all(
        const IndexBinaryFlatSIMD& index,
        idx_t n,
        const uint8_t* x,
        idx_t k,
        uint32_t bound,
        const faiss::IDSelector* sel,
        Result&& result) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            index.ntotal < most_codes,
            "IndexBinaryFlatSIMD: %" PRId64
            " codes are too many, expected less than 2^40",
            int64_t(index.ntotal));
    const size_t words = (index.code_size + 7) / 8;
    const auto is_wanted = wanted(sel);
    const idx_t threads = omp_get_max_threads();
    // a large k makes blocks smaller
    const idx_t largest = std::clamp<idx_t>(
            idx_t(cache::kept_distances) /
                    std::max<idx_t>(1, std::min(k, index.ntotal)),
            1,
            query_block);
    // the same number of blocks for each thread
    const idx_t rounds = (n + threads * largest - 1) / (threads * largest);
    const BlockedScan blocks(
            n,
            index.ntotal,
            (n + threads * rounds - 1) / (threads * rounds),
            1,
            16384);
    std::vector<uint64_t> queries(n * words);
    for (idx_t i = 0; i < n; i++) {
        std::memcpy(
                &queries[i * words], x + i * index.code_size, index.code_size);
    }
    const auto scan = [&](idx_t q0,
                          idx_t nq,
                          idx_t,
                          idx_t begin,
                          idx_t end,
                          auto&& found) {
        std::vector<std::unique_ptr<HammingHits>> sinks;
        std::vector<HammingSink*> pointers;
        for (idx_t q = 0; q < nq; q++) {
            sinks.push_back(std::make_unique<HammingHits>(
                    std::min(k, index.ntotal), index.d, bound, is_wanted));
            pointers.push_back(sinks.back().get());
        }
        scan_codes(
                nq,
                &queries[q0 * words],
                begin,
                end,
                index.codes(),
                index.code_size,
                pointers.data());
        for (idx_t q = 0; q < nq; q++) {
            found(q0 + q, sinks[q]->sorted());
            sinks[q].reset();
        }
    };
    scan_slices<Keys>(
            blocks, index.ntotal, scan, [&](idx_t q, std::span<Keys> slices) {
                if (k == 0) {
                    result(q, concatenated(slices));
                    return;
                }
                Keys& keys = slices[0];
                for (const Keys& more : slices.subspan(1)) {
                    const auto middle =
                            keys.insert(keys.end(), more.begin(), more.end());
                    std::inplace_merge(keys.begin(), middle, keys.end());
                }
                result(q, keys);
            });
}

// Overloads for an index that is ours or of FAISS's class.

const IndexBinaryFlatSIMD* ours(const faiss::IndexBinaryFlat& index) {
    return dynamic_cast<const IndexBinaryFlatSIMD*>(&index);
}

const uint8_t* codes_of(const faiss::IndexBinaryFlat& index) {
    return ours(index) ? ours(index)->codes() : index.xb.data();
}

size_t bytes_of(const faiss::IndexBinaryFlat& index) {
    return ours(index) ? ours(index)->num_bytes() : index.xb.size();
}

} // namespace

IndexBinaryFlatSIMD::IndexBinaryFlatSIMD(idx_t d)
        : IndexBinaryFlat(checked_bits(d, "IndexBinaryFlatSIMD")) {}

IndexBinaryFlatSIMD::IndexBinaryFlatSIMD(faiss::IndexBinaryFlat&& other)
        : IndexBinaryFlat(std::move(other)) {}

void IndexBinaryFlatSIMD::train(idx_t n, const uint8_t* x) {
    check_not_mapped(bool(mapped), "IndexBinaryFlatSIMD::train");
    IndexBinaryFlat::train(n, x);
}

void IndexBinaryFlatSIMD::add(idx_t n, const uint8_t* x) {
    check_not_mapped(bool(mapped), "IndexBinaryFlatSIMD::add");
    check_stored(ntotal, num_bytes(), code_size, "IndexBinaryFlatSIMD");
    const StaysInHugePages huge(xb);
    IndexBinaryFlat::add(n, x);
}

size_t IndexBinaryFlatSIMD::remove_ids(const faiss::IDSelector& sel) {
    check_not_mapped(bool(mapped), "IndexBinaryFlatSIMD::remove_ids");
    check_stored(ntotal, num_bytes(), code_size, "IndexBinaryFlatSIMD");
    return IndexBinaryFlat::remove_ids(sel);
}

void IndexBinaryFlatSIMD::reset() {
    mapped = {};
    IndexBinaryFlat::reset();
}

void IndexBinaryFlatSIMD::add_with_ids(idx_t, const uint8_t*, const idx_t*) {
    throw_unsupported(
            "IndexBinaryFlatSIMD",
            "add_with_ids",
            "put an IDMap or IndexIDTable in front of the index");
}

void IndexBinaryFlatSIMD::search(
        idx_t n,
        const uint8_t* x,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    check_batch(n, x, "IndexBinaryFlatSIMD::search");
    const faiss::IDSelector* sel =
            plain_selector(params, "IndexBinaryFlatSIMD::search");
    check_stored(ntotal, num_bytes(), code_size, "IndexBinaryFlatSIMD");
    check_k(k, "IndexBinaryFlatSIMD::search");
    if (n == 0) {
        return;
    }
    const auto fill = [&](idx_t q, std::vector<uint64_t>& keys) {
        for (idx_t i = 0; i < k; i++) {
            const bool found = i < idx_t(keys.size());
            distances[q * k + i] = found ? distance_of(keys[i])
                                         : std::numeric_limits<int32_t>::max();
            labels[q * k + i] = found ? position_of(keys[i]) : -1;
        }
    };
    scan_all(*this, n, x, k, uint32_t(d) + 1, sel, fill);
}

void IndexBinaryFlatSIMD::range_search(
        idx_t n,
        const uint8_t* x,
        int radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_batch(n, x, "IndexBinaryFlatSIMD::range_search");
    const faiss::IDSelector* sel =
            plain_selector(params, "IndexBinaryFlatSIMD::range_search");
    check_stored(ntotal, num_bytes(), code_size, "IndexBinaryFlatSIMD");
    std::vector<std::vector<uint64_t>> found(n);
    if (n > 0) {
        const uint32_t bound = std::clamp(radius, 0, d + 1);
        const auto keep = [&](idx_t q, std::vector<uint64_t>& keys) {
            found[q].swap(keys);
        };
        scan_all(*this, n, x, 0, bound, sel, keep);
    }
    fill_range_result(
            found,
            result,
            [](uint64_t key) { return float(distance_of(key)); },
            position_of);
}

void IndexBinaryFlatSIMD::reconstruct(idx_t key, uint8_t* recons) const {
    reconstruct_n(key, 1, recons);
}

void IndexBinaryFlatSIMD::reconstruct_n(idx_t i0, idx_t ni, uint8_t* recons)
        const {
    check_stored(ntotal, num_bytes(), code_size, "IndexBinaryFlatSIMD");
    check_ids(i0, ni, ntotal, "IndexBinaryFlatSIMD::reconstruct");
    if (ni > 0) {
        std::memcpy(recons, codes() + i0 * code_size, ni * code_size);
    }
}

void IndexBinaryFlatSIMD::merge_from(faiss::IndexBinary& other, idx_t add_id) {
    check_not_mapped(bool(mapped), "IndexBinaryFlatSIMD::merge_from");
    check_compatible_for_merge(other);
    check_no_add_id(add_id);
    auto& source = dynamic_cast<faiss::IndexBinaryFlat&>(other);
    add(source.ntotal, codes_of(source));
    source.reset();
}

void IndexBinaryFlatSIMD::check_compatible_for_merge(
        const faiss::IndexBinary& other) const {
    check_not_itself(&other == this);
    check_before_merge(*this, other);
    const auto* source = dynamic_cast<const faiss::IndexBinaryFlat*>(&other);
    FAISS_EXT_THROW_IF_NOT_MSG(
            source && source->d == d,
            "cannot merge: expected another flat index with the same number of bits");
    check_stored(
            source->ntotal,
            bytes_of(*source),
            source->code_size,
            "IndexBinaryFlatSIMD::merge_from");
}

} // namespace faiss_ext
