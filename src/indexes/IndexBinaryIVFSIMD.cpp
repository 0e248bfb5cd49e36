// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexBinaryIVFSIMD.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <typeinfo>
#include <utility>
#include <vector>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexIVF.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/invlists/InvertedLists.h>

#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "indexes/hamming_hits.h"
#include "indexes/index_compat.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"
#include "indexes/list_moves.h"
#include "indexes/mapped_lists.h"
#include "indexes/range_result.h"
#include "indexes/search_params.h"
#include "indexes/selected_places.h"

namespace faiss_ext {

namespace {

faiss::IndexBinary* checked_quantizer(
        faiss::IndexBinary* quantizer,
        size_t d,
        size_t nlist) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            quantizer, "IndexBinaryIVFSIMD: the quantizer is null");
    FAISS_EXT_THROW_IF_NOT_FMT(
            size_t(quantizer->d) == d && d > 0 && d % 8 == 0,
            "IndexBinaryIVFSIMD: the index has %zu bits and its quantizer %d, expected the same positive multiple of 8",
            d,
            quantizer->d);
    FAISS_EXT_THROW_IF_NOT_MSG(
            nlist > 0,
            "IndexBinaryIVFSIMD: the number of lists is 0, expected a positive number");
    return quantizer;
}

/// Settings of a search, from the index and its parameters.
struct ListSearch {
    size_t nprobe, max_codes;
    const faiss::SearchParameters* quantizer_params = nullptr;
    const faiss::IDSelector* sel;
    std::optional<ListsForSelected> lists; ///< or nprobe of them

    /// @param in_range  whether all codes of the lists are of interest
    ListSearch(
            const faiss::IndexBinaryIVF& index,
            bool in_range,
            const faiss::SearchParameters* params)
            : nprobe(index.nprobe),
              max_codes(index.max_codes),
              sel(params ? params->sel : nullptr) {
        const auto* given = known_params<faiss::SearchParametersIVF>(
                params, "IndexBinaryIVFSIMD::search");
        if (given) {
            nprobe = given->nprobe;
            max_codes = given->max_codes;
            quantizer_params = given->quantizer_params;
        }
        if (in_range) {
            max_codes = 0;
        }
        FAISS_EXT_THROW_IF_NOT_MSG(
                nprobe > 0,
                "IndexBinaryIVFSIMD: nprobe is 0, expected a positive number");
        nprobe = std::min(nprobe, index.nlist);
        if (sel && is_plain(params) && !in_range && max_codes == 0) {
            lists.emplace(
                    *sel,
                    nprobe,
                    index.nlist,
                    index.ntotal,
                    [&](size_t list) {
                        return index.invlists->list_size(list);
                    },
                    [&](size_t list, size_t i) {
                        return index.invlists->get_single_id(list, i);
                    });
            nprobe = lists->first();
        }
    }

    /// Returns how many of nprobe lists to visit, or nothing if more are
    /// needed.
    std::optional<size_t> visited(const idx_t* nearest) const {
        return lists
                ? lists->visited(nprobe, [&](size_t i) { return nearest[i]; })
                : nprobe;
    }
};

/// Finds the nprobe nearest lists of each query.
std::vector<idx_t> nearest_lists(
        const faiss::IndexBinaryIVF& index,
        idx_t n,
        const uint8_t* x,
        const ListSearch& how) {
    std::vector<idx_t> nearest(n * how.nprobe);
    std::vector<int32_t> distances(nearest.size());
    index.quantizer->search(
            n,
            x,
            idx_t(how.nprobe),
            distances.data(),
            nearest.data(),
            how.quantizer_params);
    return nearest;
}

/// Throws unless the quantizer and the lists match: callers can set both.
void check_lists(const faiss::IndexBinaryIVF& index, const char* where) {
    check_trained(index.is_trained, where);
    FAISS_EXT_THROW_IF_NOT_FMT(
            index.quantizer && index.invlists,
            "%s: the quantizer or the inverted lists are null",
            where);
    FAISS_EXT_THROW_IF_NOT_FMT(
            index.quantizer->d == index.d &&
                    size_t(index.quantizer->ntotal) == index.nlist,
            "%s: the quantizer has %" PRId64
            " vectors of %d bits, expected one of %d bits for each of %zu lists",
            where,
            int64_t(index.quantizer->ntotal),
            index.quantizer->d,
            index.d,
            index.nlist);
    FAISS_EXT_THROW_IF_NOT_FMT(
            index.invlists->nlist == index.nlist &&
                    index.invlists->code_size == size_t(index.code_size),
            "%s: invlists has %zu lists of codes with %zu bytes, expected %zu of %d",
            where,
            index.invlists->nlist,
            index.invlists->code_size,
            index.nlist,
            index.code_size);
}

/// The lists that are scanned for one query. Positions number their codes
/// consecutively across the lists.
struct ProbedLists {
    const faiss::InvertedLists& lists;
    std::vector<idx_t> numbers;
    std::vector<idx_t> ends; ///< end positions of the lists

    /// @param nearest  list numbers by distance; -1: none
    ProbedLists(
            const faiss::IndexBinaryIVF& index,
            const idx_t* nearest,
            const ListSearch& how)
            : lists(*index.invlists) {
        idx_t end = 0;
        const size_t visited = how.visited(nearest).value_or(how.nprobe);
        for (size_t i = 0; i < visited; i++) {
            if (nearest[i] < 0) {
                continue;
            }
            FAISS_EXT_THROW_IF_NOT_FMT(
                    size_t(nearest[i]) < index.nlist,
                    "IndexBinaryIVFSIMD: the quantizer returned list %" PRId64
                    " of %zu",
                    int64_t(nearest[i]),
                    index.nlist);
            const size_t size = lists.list_size(nearest[i]);
            if (size > 0) {
                end += idx_t(size);
                numbers.push_back(nearest[i]);
                ends.push_back(end);
            }
            if (how.max_codes > 0 && size_t(end) >= how.max_codes) {
                break;
            }
        }
        FAISS_EXT_THROW_IF_NOT_FMT(
                end < most_codes,
                "IndexBinaryIVFSIMD: %" PRId64
                " codes are too many, expected less than 2^40",
                int64_t(end));
    }

    idx_t size() const {
        return ends.empty() ? 0 : ends.back();
    }

    idx_t begin_of(size_t i) const {
        return i == 0 ? 0 : ends[i - 1];
    }

    /// Returns the list number and the offset in the list.
    std::pair<idx_t, idx_t> place_of(idx_t position) const {
        const size_t i = std::upper_bound(ends.begin(), ends.end(), position) -
                ends.begin();
        return {numbers[i], position - begin_of(i)};
    }

    idx_t id_at(idx_t position) const {
        const auto [list, offset] = place_of(position);
        return lists.get_single_id(list, offset);
    }
};

/// scan_lists for queries whose lists are ranked together; `first` is the
/// number of the first one.
template <class Result>
void scan_batch(
        const faiss::IndexBinaryIVF& index,
        idx_t n,
        const uint8_t* x,
        idx_t k,
        uint32_t bound,
        ListSearch how,
        idx_t first,
        Result&& result) {
    const size_t code_size = index.code_size;
    std::vector<idx_t> nearest = nearest_lists(index, n, x, how);
    const auto are_enough = [&] {
        for (idx_t q = 0; q < n; q++) {
            if (!how.visited(&nearest[q * how.nprobe])) {
                return false;
            }
        }
        return true;
    };
    while (how.nprobe < index.nlist && !are_enough()) {
        how.nprobe = how.lists->more_than(how.nprobe);
        nearest = nearest_lists(index, n, x, how);
    }
    const auto scanned = [&](idx_t q, const ProbedLists& probed) {
        std::vector<uint64_t> query((code_size + 7) / 8);
        std::memcpy(query.data(), x + q * code_size, code_size);
        std::function<bool(idx_t)> is_wanted;
        if (how.sel) {
            is_wanted = [&](idx_t position) {
                return how.sel->is_member(probed.id_at(position));
            };
        }
        HammingHits hits(
                std::min(k, std::max<idx_t>(probed.size(), 1)),
                index.d,
                bound,
                is_wanted);
        simd::HammingSink* sinks[] = {&hits};
        for (size_t i = 0; i < probed.numbers.size(); i++) {
            faiss::InvertedLists::ScopedCodes codes(
                    &probed.lists, probed.numbers[i]);
            simd::hamming_scan(
                    1,
                    query.data(),
                    probed.ends[i] - probed.begin_of(i),
                    codes.get(),
                    code_size,
                    probed.begin_of(i),
                    sinks);
        }
        return hits.sorted();
    };
    parallel_blocks(n, 1, [&](idx_t q, idx_t) {
        const ProbedLists probed(index, &nearest[q * how.nprobe], how);
        const auto keys = scanned(q, probed);
        const bool visited_all = probed.numbers.size() == index.nlist;
        if (!how.lists || visited_all || idx_t(keys.size()) >= k) {
            result(first + q, keys, probed);
            return;
        }
        // the sample has misled, or a graph has not found all lists
        ListSearch all = how;
        all.lists.reset();
        all.nprobe = index.nlist;
        std::vector<idx_t> every(index.nlist);
        std::iota(every.begin(), every.end(), idx_t(0));
        const ProbedLists lists(index, every.data(), all);
        result(first + q, scanned(q, lists), lists);
    });
}

/** Compares each query with the codes of its lists.
 *
 * @param k       nearest codes per query, or 0 for all below the bound
 * @param result  result(query, keys, lists) receives the keys of one query:
 *                sorted, or, if k = 0, by their positions in the lists
 */
template <class Result>
void scan_lists(
        const faiss::IndexBinaryIVF& index,
        idx_t n,
        const uint8_t* x,
        idx_t k,
        uint32_t bound,
        const faiss::SearchParameters* params,
        Result&& result) {
    check_lists(
            index,
            k == 0 ? "IndexBinaryIVFSIMD::range_search"
                   : "IndexBinaryIVFSIMD::search");
    const ListSearch how(index, k == 0, params);
    // a selector may need many lists, of which a batch ranks some at a time
    const idx_t most = how.lists ? 1024 : std::max<idx_t>(n, 1);
    for (idx_t first = 0; first < n; first += most) {
        scan_batch(
                index,
                std::min(most, n - first),
                x + first * index.code_size,
                k,
                bound,
                how,
                first,
                result);
    }
}

/** The index in which FAISS's k-means searches for the nearest centroids. It
 * reports progress as "k-means".
 *
 * FAISS adds the centroids before the first iteration and after each.
 */
struct ProgressFlatL2 : faiss::IndexFlatL2 {
    size_t vectors_together, total;
    size_t num_added = 0;
    mutable size_t num_searched = 0; ///< since centroids were added
    mutable Progress progress;

    ProgressFlatL2(const faiss::IndexBinaryIVF& index, idx_t n)
            : IndexFlatL2(index.d),
              vectors_together(std::min(
                      size_t(n),
                      index.nlist * index.cp.max_points_per_centroid)),
              total(vectors_together * index.cp.niter * index.cp.nredo),
              progress("k-means", total) {}

    void add(idx_t n, const float* x) override {
        IndexFlatL2::add(n, x);
        num_added++;
        num_searched = 0;
        tell();
    }

    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override {
        IndexFlatL2::search(n, x, k, distances, labels, params);
        num_searched += n;
        tell();
    }

   private:
    void tell() const {
        const size_t searched = std::min(num_searched, vectors_together);
        const size_t done = (num_added - 1) * vectors_together + searched;
        progress.at(std::min(done, total));
    }
};

std::vector<uint8_t> centroids_of(const faiss::IndexBinaryIVF& index) {
    std::vector<uint8_t> codes(index.nlist * index.code_size);
    for (size_t i = 0; i < index.nlist; i++) {
        index.quantizer->reconstruct(idx_t(i), &codes[i * index.code_size]);
    }
    return codes;
}

std::vector<idx_t> all_ids(const faiss::IndexBinaryIVF& index) {
    std::vector<idx_t> all;
    for (size_t list = 0; list < index.nlist; list++) {
        const faiss::InvertedLists::ScopedIds ids(index.invlists, list);
        const size_t size = index.invlists->list_size(list);
        for (size_t i = 0; i < size; i++) {
            all.push_back(ids[i]);
        }
    }
    return all;
}

/// The index in which k-means searches, or null.
faiss::Index*& clustering_index_of(faiss::IndexBinaryIVF& index) {
    return index.*loaded<&faiss::IndexBinaryIVF::clustering_index>;
}

/// Returns an id above all ids in the lists, at least 0.
idx_t first_free_id(const faiss::IndexBinaryIVF& index) {
    const std::vector<idx_t> ids = all_ids(index);
    return ids.empty() ? 0 : above(*std::max_element(ids.begin(), ids.end()));
}

} // namespace

IndexBinaryIVFSIMD::IndexBinaryIVFSIMD(
        faiss::IndexBinary* quantizer,
        size_t d,
        size_t nlist)
        : IndexBinaryIVF(checked_quantizer(quantizer, d, nlist), d, nlist) {}

IndexBinaryIVFSIMD::IndexBinaryIVFSIMD(faiss::IndexBinaryIVF&& other) {
    // IndexBinaryIVF's copy constructor would be compiled here, and copy the
    // fields of the headers' layout
    static_cast<faiss::IndexBinary&>(*this) = other;
    invlists = other.invlists;
    own_invlists = std::exchange(other.own_invlists, false);
    nprobe = other.nprobe;
    max_codes = other.max_codes;
    use_heap = other.use_heap;
    copy_per_invlist_search<faiss::IndexBinaryIVF>(*this, other);
    direct_map = std::move(other.direct_map);
    quantizer = other.quantizer;
    nlist = other.nlist;
    own_fields = std::exchange(other.own_fields, false);
    cp = other.cp;
    clustering_index_of(*this) = clustering_index_of(other);
    if (own_fields && typeid(*quantizer) == typeid(faiss::IndexBinaryFlat)) {
        const std::unique_ptr<faiss::IndexBinary> slow(quantizer);
        quantizer = nullptr;
        quantizer = new IndexBinaryFlatSIMD(
                dynamic_cast<faiss::IndexBinaryFlat&&>(*slow));
    }
}

void IndexBinaryIVFSIMD::train(idx_t n, const uint8_t* x) {
    check_not_mapped(is_mapped(*this), "IndexBinaryIVFSIMD::train");
    faiss::Index*& search = clustering_index_of(*this);
    if (search) {
        IndexBinaryIVF::train(n, x);
        return;
    }
    ProgressFlatL2 centroids(*this, n);
    search = &centroids;
    const std::unique_ptr<faiss::Index*, void (*)(faiss::Index**)> restore(
            &search, [](faiss::Index** p) { *p = nullptr; });
    IndexBinaryIVF::train(n, x);
}

void IndexBinaryIVFSIMD::search(
        idx_t n,
        const uint8_t* x,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    search_and_reconstruct(n, x, k, distances, labels, nullptr, params);
}

void IndexBinaryIVFSIMD::search_and_reconstruct(
        idx_t n,
        const uint8_t* x,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        uint8_t* recons,
        const faiss::SearchParameters* params) const {
    check_batch(n, x, "IndexBinaryIVFSIMD::search");
    check_k(k, "IndexBinaryIVFSIMD::search");
    if (n == 0) {
        return;
    }
    const auto fill = [&](idx_t q,
                          const std::vector<uint64_t>& keys,
                          const ProbedLists& probed) {
        for (idx_t i = 0; i < k; i++) {
            const idx_t to = q * k + i;
            const bool found = i < idx_t(keys.size());
            distances[to] = found ? distance_of(keys[i])
                                  : std::numeric_limits<int32_t>::max();
            labels[to] = found ? probed.id_at(position_of(keys[i])) : -1;
            if (recons && found) {
                const auto [list, offset] =
                        probed.place_of(position_of(keys[i]));
                reconstruct_from_offset(list, offset, recons + to * code_size);
            } else if (recons) {
                std::memset(recons + to * code_size, 255, code_size);
            }
        }
    };
    scan_lists(*this, n, x, k, uint32_t(d) + 1, params, fill);
}

void IndexBinaryIVFSIMD::reconstruct(idx_t key, uint8_t* recons) const {
    if (direct_map.no()) {
        reconstruct_n(key, 1, recons);
    } else {
        IndexBinaryIVF::reconstruct(key, recons);
    }
}

void IndexBinaryIVFSIMD::reconstruct_n(idx_t i0, idx_t ni, uint8_t* recons)
        const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            ni >= 0 && ni <= ntotal,
            "IndexBinaryIVFSIMD::reconstruct_n: %" PRId64
            " codes are requested, the index has %" PRId64,
            int64_t(ni),
            int64_t(ntotal));
    check_lists(*this, "IndexBinaryIVFSIMD::reconstruct_n");
    std::vector<bool> is_found(ni);
    for (size_t list = 0; list < nlist; list++) {
        faiss::InvertedLists::ScopedIds ids(invlists, list);
        const auto* bytes = reinterpret_cast<const uint8_t*>(ids.get());
        const size_t size = invlists->list_size(list);
        for (size_t offset = 0; offset < size; offset++) {
            // in files ids may be unaligned; any values are allowed, as
            // unsigned differences do not overflow
            uint64_t i;
            std::memcpy(&i, bytes + offset * sizeof(i), sizeof(i));
            i -= uint64_t(i0);
            if (i < uint64_t(ni)) {
                reconstruct_from_offset(list, offset, recons + i * code_size);
                is_found[i] = true;
            }
        }
    }
    const idx_t missing = std::find(is_found.begin(), is_found.end(), false) -
            is_found.begin();
    FAISS_EXT_THROW_IF_NOT_FMT(
            missing == ni,
            "IndexBinaryIVFSIMD::reconstruct_n: there is no code with id %" PRId64,
            int64_t(uint64_t(i0) + uint64_t(missing)));
}

void IndexBinaryIVFSIMD::add_with_ids(
        idx_t n,
        const uint8_t* x,
        const idx_t* xids) {
    add_core(n, x, xids, nullptr);
}

void IndexBinaryIVFSIMD::add_core(
        idx_t n,
        const uint8_t* x,
        const idx_t* xids,
        const idx_t* precomputed_idx) {
    check_lists(*this, "IndexBinaryIVFSIMD::add");
    check_not_mapped(is_mapped(*this), "IndexBinaryIVFSIMD::add");
    if (xids) {
        check_new_ids(n, xids, "IndexBinaryIVFSIMD::add_with_ids");
        IndexBinaryIVF::add_core(n, x, xids, precomputed_idx);
        const idx_t largest = n == 0 ? -1 : *std::max_element(xids, xids + n);
        next_id = next_id < 0 ? -1 : std::max(next_id, above(largest));
        return;
    }
    find_next_id();
    check_free_ids(next_id, n, "IndexBinaryIVFSIMD::add");
    std::vector<idx_t> ids;
    if (next_id != ntotal) { // otherwise pass null, as a direct map requires
        ids.resize(n);
        std::iota(ids.begin(), ids.end(), next_id);
    }
    IndexBinaryIVF::add_core(
            n, x, ids.empty() ? nullptr : ids.data(), precomputed_idx);
    next_id += n;
}

idx_t IndexBinaryIVFSIMD::next_new_id() const {
    return next_id >= 0 ? next_id : ntotal;
}

void IndexBinaryIVFSIMD::find_next_id() {
    if (next_id < 0) {
        next_id = first_free_id(*this);
    }
}

void IndexBinaryIVFSIMD::merge_from(faiss::IndexBinary& other, idx_t add_id) {
    check_compatible_for_merge(other);
    for (idx_t id :
         all_ids(dynamic_cast<const faiss::IndexBinaryIVF&>(other))) {
        shifted_id(id, add_id, "IndexBinaryIVFSIMD::merge_from");
    }
    IndexBinaryIVF::merge_from(other, add_id);
    if (next_id >= 0) {
        next_id = std::max(next_id, first_free_id(*this));
    }
    if (auto* source = dynamic_cast<IndexBinaryIVFSIMD*>(&other)) {
        source->next_id = 0; // as in the float lists
    }
}

size_t IndexBinaryIVFSIMD::remove_ids(const faiss::IDSelector& sel) {
    check_removal(*this, sel, "IndexBinaryIVFSIMD::remove_ids");
    check_not_mapped(is_mapped(*this), "IndexBinaryIVFSIMD::remove_ids");
    find_next_id(); // count the ids to be removed, too
    return IndexBinaryIVF::remove_ids(sel);
}

std::function<void()> IndexBinaryIVFSIMD::prepare_moves(
        const PlaceMoves& moves) {
    check_not_mapped(is_mapped(*this), "IndexBinaryIVFSIMD");
    auto move = prepare_list_moves<IndexBinaryIVF>(*this, moves);
    return !move ? nullptr : std::function<void()>([this, &moves, move] {
        move();
        next_id = moves.after;
    });
}

void IndexBinaryIVFSIMD::reset() {
    if (is_mapped(*this)) {
        replace_invlists(new faiss::ArrayInvertedLists(nlist, code_size), true);
    }
    IndexBinaryIVF::reset();
    next_id = 0;
}

void IndexBinaryIVFSIMD::check_compatible_for_merge(
        const faiss::IndexBinary& other) const {
    check_not_itself(&other == this);
    check_before_merge(*this, other);
    const auto* lists = dynamic_cast<const faiss::IndexBinaryIVF*>(&other);
    FAISS_EXT_THROW_IF_NOT_MSG(
            lists,
            "IndexBinaryIVFSIMD: cannot merge: expected another index of inverted lists");
    check_lists(*this, "IndexBinaryIVFSIMD::merge_from");
    check_lists(*lists, "IndexBinaryIVFSIMD::merge_from, of the other index");
    check_not_mapped(is_mapped(*this), "IndexBinaryIVFSIMD::merge_from");
    check_not_mapped(
            is_mapped(*lists),
            "IndexBinaryIVFSIMD::merge_from, which empties the other index");
    FAISS_EXT_THROW_IF_NOT_FMT(
            lists->d == d && lists->nlist == nlist,
            "IndexBinaryIVFSIMD: cannot merge: the indexes have %d and %d bits and %zu and %zu lists, expected the same numbers",
            lists->d,
            d,
            lists->nlist,
            nlist);
    FAISS_EXT_THROW_IF_NOT_MSG(
            direct_map.no() && lists->direct_map.no(),
            "IndexBinaryIVFSIMD: cannot merge: an index has a direct map; remove it first");
    FAISS_EXT_THROW_IF_NOT_MSG(
            is_trained && lists->is_trained &&
                    (quantizer == lists->quantizer ||
                     centroids_of(*this) == centroids_of(*lists)),
            "IndexBinaryIVFSIMD: cannot merge: the centroids differ; train one index, and make the others as copies of it");
}

void IndexBinaryIVFSIMD::range_search(
        idx_t n,
        const uint8_t* x,
        int radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_batch(n, x, "IndexBinaryIVFSIMD::range_search");
    using Hit = std::pair<int32_t, idx_t>;
    std::vector<std::vector<Hit>> found(n);
    if (n > 0) {
        const auto keep = [&](idx_t q,
                              const std::vector<uint64_t>& keys,
                              const ProbedLists& probed) {
            found[q].reserve(keys.size());
            for (uint64_t key : keys) {
                found[q].emplace_back(
                        distance_of(key), probed.id_at(position_of(key)));
            }
        };
        scan_lists(*this, n, x, 0, std::clamp(radius, 0, d + 1), params, keep);
    }
    fill_range_result(
            found,
            result,
            [](const Hit& hit) { return float(hit.first); },
            [](const Hit& hit) { return hit.second; });
}

} // namespace faiss_ext
