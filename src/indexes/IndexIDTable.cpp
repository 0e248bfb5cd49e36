// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexIDTable.h>

#include <algorithm>
#include <cinttypes>
#include <utility>

#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>

#include "core/check.h"
#include "core/errors.h"
#include "indexes/id_positions.h"
#include "indexes/index_compat.h"
#include "indexes/index_parts.h"

namespace faiss_ext {

namespace {

/// Selects positions by the ids of their vectors. index_compat.h knows its
/// name.
struct IDSelectorTranslated : faiss::IDSelector {
    const std::vector<idx_t>& ids;
    const faiss::IDSelector& sel;

    IDSelectorTranslated(
            const std::vector<idx_t>& ids,
            const faiss::IDSelector& sel)
            : ids(ids), sel(sel) {}

    bool is_member(idx_t position) const override {
        return sel.is_member(ids[position]);
    }
};

/// Makes the selectors in search parameters select positions, until its end.
class TranslatedParams {
   public:
    TranslatedParams(
            const std::vector<idx_t>& ids,
            const faiss::SearchParameters* params) {
        for (; params; params = params_inside(params)) {
            if (params->sel) {
                translated.push_back(std::make_unique<IDSelectorTranslated>(
                        ids, *params->sel));
                // as in FAISS's ID maps
                auto* changed = const_cast<faiss::SearchParameters*>(params);
                before.emplace_back(changed, params->sel);
                changed->sel = translated.back().get();
            }
        }
    }

    TranslatedParams(const TranslatedParams&) = delete;
    TranslatedParams& operator=(const TranslatedParams&) = delete;

    ~TranslatedParams() {
        for (const auto& [params, sel] : before) {
            params->sel = sel;
        }
    }

   private:
    std::vector<std::unique_ptr<IDSelectorTranslated>> translated;
    std::vector<std::pair<faiss::SearchParameters*, faiss::IDSelector*>> before;
};

template <class IndexT>
IndexT* checked(IndexT* index) {
    FAISS_EXT_THROW_IF_NOT_MSG(index, "IndexIDTable: the index is null");
    FAISS_EXT_THROW_IF_NOT_FMT(
            index->ntotal == 0,
            "IndexIDTable: the index has %" PRId64
            " vectors, expected an empty one",
            int64_t(index->ntotal));
    FAISS_EXT_THROW_IF_NOT_MSG(
            !keeps_ids(*index),
            "IndexIDTable: the index keeps ids itself, as inverted lists do; use it without an IndexIDTable");
    return index;
}

/// Sets what FAISS's constructors leave out.
void complete(faiss::Index&, const faiss::Index*) {}

void complete(faiss::IndexBinary& table, const faiss::IndexBinary* index) {
    table.code_size = index ? index->code_size : 0; // 0 in 1.7.3
}

void check_input(
        const faiss::Index& index,
        idx_t n,
        const float* x,
        const char* where) {
    check_batch(n, x, where);
    check_faiss_input(index, n, x, where);
}

void check_input(
        const faiss::IndexBinary&,
        idx_t n,
        const uint8_t* x,
        const char* where) {
    check_batch(n, x, where);
}

} // namespace

template <class IndexT>
IndexIDTableTemplate<IndexT>::IndexIDTableTemplate(IndexT* index)
        : faiss::IndexIDMapTemplate<IndexT>(checked(index)) {
    complete(*this, index);
}

template <class IndexT>
IndexIDTableTemplate<IndexT>::IndexIDTableTemplate(
        faiss::IndexIDMapTemplate<IndexT>&& map)
        : faiss::IndexIDMapTemplate<IndexT>(map) {
    map.index = nullptr;
    complete(*this, this->index);
    for (idx_t id : this->id_map) {
        next_id = std::max(next_id, above(id));
    }
}

template <class IndexT>
IndexIDTableTemplate<IndexT>::IndexIDTableTemplate() = default;

template <class IndexT>
IndexIDTableTemplate<IndexT>::~IndexIDTableTemplate() = default;

template <class IndexT>
void IndexIDTableTemplate<IndexT>::check_parts() const {
    if (!this->index || this->index->ntotal != this->ntotal ||
        this->id_map.size() != size_t(this->ntotal)) {
        check_counts(static_cast<const IndexT&>(*this));
    }
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::train(idx_t n, const component_t* x) {
    check_input(*this->index, n, x, "IndexIDTable::train");
    this->index->train(n, x);
    this->is_trained = this->index->is_trained;
}

template <class IndexT>
IdPositions& IndexIDTableTemplate<IndexT>::positions() const {
    const std::lock_guard lock(mutex);
    if (!known) {
        auto made = std::make_shared<IdPositions>();
        made->reserve(this->id_map.size());
        for (size_t i = 0; i < this->id_map.size(); i++) {
            made->insert(this->id_map[i], idx_t(i));
        }
        known = std::move(made);
    }
    return *known;
}

template <class IndexT>
idx_t IndexIDTableTemplate<IndexT>::position_of(idx_t id) const {
    return positions().find(id);
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::check_unused(
        idx_t n,
        const idx_t* ids,
        const char* where) const {
    check_new_ids(n, ids, where);
    idx_t before = next_id - 1;
    const bool all_are_new = std::all_of(ids, ids + n, [&](idx_t id) {
        return id > std::exchange(before, id);
    });
    if (all_are_new) { // and ascend
        return;
    }
    const IdPositions& used = positions();
    IdPositions given;
    given.reserve(n);
    for (idx_t i = 0; i < n; i++) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                used.find(ids[i]) < 0,
                "%s: id %" PRId64 " is in use",
                where,
                int64_t(ids[i]));
        FAISS_EXT_THROW_IF_NOT_FMT(
                given.insert(ids[i], i),
                "%s: id %" PRId64 " is given twice",
                where,
                int64_t(ids[i]));
    }
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::append(idx_t n, const idx_t* ids) {
    for (idx_t i = 0; i < n; i++) {
        if (known) {
            known->insert(ids[i], idx_t(this->id_map.size()));
        }
        this->id_map.push_back(ids[i]);
        next_id = std::max(next_id, above(ids[i]));
    }
    this->ntotal = this->index->ntotal;
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::add(idx_t n, const component_t* x) {
    check_free_ids(next_id, n, "IndexIDTable::add");
    std::vector<idx_t> ids(std::max<idx_t>(n, 0));
    for (idx_t i = 0; i < n; i++) {
        ids[i] = next_id + i;
    }
    add_with_ids(n, x, ids.data());
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::add_with_ids(
        idx_t n,
        const component_t* x,
        const idx_t* xids) {
    const char* where = "IndexIDTable::add_with_ids";
    check_input(*this->index, n, x, where);
    check_batch(n, xids, where);
    check_parts();
    check_unused(n, xids, where);
    const size_t total = this->id_map.size() + n;
    if (total > this->id_map.capacity()) { // no failure after index->add
        this->id_map.reserve(std::max(total, 2 * this->id_map.size()));
    }
    if (known) {
        known->reserve(total);
    }
    this->index->add(n, x);
    append(n, xids);
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::search(
        idx_t n,
        const component_t* x,
        idx_t k,
        distance_t* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    const char* where = "IndexIDTable::search";
    check_input(*this->index, n, x, where);
    check_parts();
    check_params_for(*this->index, params, where);
    const TranslatedParams translated(this->id_map, params);
    this->index->search(n, x, k, distances, labels, params);
    for (idx_t i = 0; i < n * k; i++) {
        labels[i] = labels[i] < 0 ? -1 : this->id_map[labels[i]];
    }
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::range_search(
        idx_t n,
        const component_t* x,
        distance_t radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    const char* where = "IndexIDTable::range_search";
    check_input(*this->index, n, x, where);
    check_parts();
    check_params_for(*this->index, params, where);
    const TranslatedParams translated(this->id_map, params);
    this->index->range_search(n, x, radius, result, params);
    for (size_t i = 0; i < result->lims[result->nq]; i++) {
        result->labels[i] = this->id_map[result->labels[i]];
    }
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::reconstruct(idx_t key, component_t* recons)
        const {
    check_parts();
    const idx_t position = position_of(key);
    FAISS_EXT_THROW_IF_NOT_FMT(
            position >= 0,
            "IndexIDTable::reconstruct: there is no vector with id %" PRId64,
            int64_t(key));
    this->index->reconstruct(position, recons);
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::reconstruct_n(
        idx_t i0,
        idx_t ni,
        component_t* recons) const {
    constexpr bool is_binary = std::is_same_v<IndexT, faiss::IndexBinary>;
    const size_t length = is_binary ? this->d / 8 : this->d;
    for (idx_t i = 0; i < ni; i++) {
        reconstruct(i0 + i, recons + i * length);
    }
}

template <class IndexT>
size_t IndexIDTableTemplate<IndexT>::remove_ids(const faiss::IDSelector& sel) {
    check_parts();
    const IDSelectorTranslated translated(this->id_map, sel);
    std::vector<idx_t> kept;
    kept.reserve(this->id_map.size());
    for (idx_t id : this->id_map) {
        if (!sel.is_member(id)) {
            kept.push_back(id);
        }
    }
    const size_t removed = this->id_map.size() - kept.size();
    if (removed == 0) {
        return 0;
    }
    this->index->remove_ids(translated);
    this->id_map = std::move(kept);
    this->ntotal = this->index->ntotal;
    known = nullptr;
    return removed;
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::check_compatible_for_merge(
        const IndexT& other) const {
    const auto* source = dynamic_cast<const IndexIDTableTemplate*>(&other);
    FAISS_EXT_THROW_IF_NOT_MSG(
            source && source != this,
            "IndexIDTable: only another IndexIDTable can be merged in");
    check_parts();
    source->check_parts();
    this->index->check_compatible_for_merge(*source->index);
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::merge_from(IndexT& other, idx_t add_id) {
    const char* where = "IndexIDTable::merge_from";
    check_compatible_for_merge(other);
    auto& source = dynamic_cast<IndexIDTableTemplate&>(other);
    std::vector<idx_t> ids = source.id_map;
    for (idx_t& id : ids) {
        id = shifted_id(id, add_id, where);
    }
    check_unused(idx_t(ids.size()), ids.data(), where);
    this->id_map.reserve(this->id_map.size() + ids.size());
    this->index->merge_from(*source.index);
    append(idx_t(ids.size()), ids.data());
    source.id_map.clear();
    source.known = nullptr;
    source.ntotal = source.index->ntotal;
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::reset() {
    this->index->reset();
    this->id_map.clear();
    this->ntotal = 0;
    known = nullptr;
    next_id = 0;
}

template struct IndexIDTableTemplate<faiss::Index>;
template struct IndexIDTableTemplate<faiss::IndexBinary>;

} // namespace faiss_ext
