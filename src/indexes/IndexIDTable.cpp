// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexIDTable.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <numeric>
#include <string>
#include <typeinfo>
#include <utility>

#include <faiss/IndexFastScan.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/indexes/IndexConcurrent.h>

#include "core/check.h"
#include "core/errors.h"
#include "indexes/id_positions.h"
#include "indexes/index_compat.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"
#include "indexes/index_steps.h"
#include "indexes/selected_places.h"
#include "indexes/supported_calls.h"
#include "indexes/translated_params.h"

namespace faiss_ext {

namespace {

/// Selects positions by the ids of their vectors. is_from_id_map knows its
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

/// The next id after the largest one.
idx_t above_all(const std::vector<idx_t>& ids) {
    idx_t next = 0;
    for (idx_t id : ids) {
        next = std::max(next, above(id));
    }
    return next;
}

template <class IndexT>
constexpr bool is_binary = std::is_same_v<IndexT, faiss::IndexBinary>;

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
            "IndexIDTable: the index keeps ids itself, as inverted lists do; use its add_with_ids, without an IndexIDTable");
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

/// The index whose vectors have the ids of a table.
template <class IndexT>
const IndexT* owner_of(const IndexIDTableTemplate<IndexT>& table) {
    const auto* positions =
            dynamic_cast<const IndexPositions<IndexT>*>(table.index);
    return positions ? positions->owner : table.index;
}

/// The number of components of a vector.
template <class IndexT>
size_t length_of(const IndexIDTableTemplate<IndexT>& table) {
    if constexpr (is_binary<IndexT>) {
        return owner_of(table)->code_size;
    } else {
        return owner_of(table)->d;
    }
}

template <class IndexT>
void check_parts(const IndexIDTableTemplate<IndexT>& table) {
    const IndexT* owner = owner_of(table);
    if (!owner || owner->ntotal != table.ntotal ||
        table.index->ntotal != table.ntotal ||
        table.id_map.size() != size_t(table.ntotal)) {
        check_counts(static_cast<const IndexT&>(table));
    }
}

/// Checks the arguments of a search. Returns the parameters for the index
/// inside.
template <class IndexT>
TranslatedParams checked_search(
        const IndexIDTableTemplate<IndexT>& table,
        const std::string& name,
        idx_t n,
        const typename IndexT::component_t* x,
        const faiss::SearchParameters* params) {
    check_input(*table.index, n, x, name.c_str());
    check_parts(table);
    check_params_for(*table.index, params, name.c_str());
    check_params_supported(*table.index, params, name.c_str());
    return TranslatedParams(table, params);
}

} // namespace

template <class IndexT>
IndexIDTableTemplate<IndexT>::IndexIDTableTemplate(IndexT* index) {
    // not FAISS's constructor, which takes only multiples of 8 bits
    static_cast<IndexT&>(*this) = *checked(index);
    this->index = index;
}

template <class IndexT>
IndexIDTableTemplate<IndexT>::IndexIDTableTemplate(
        faiss::IndexIDMapTemplate<IndexT>&& map) {
    static_cast<IndexT&>(*this) = map;
    this->id_map = std::move(map.id_map);
    this->index = std::exchange(map.index, nullptr);
    this->own_fields = map.own_fields;
    complete(*this, this->index);
    next_id = above_all(this->id_map);
}

template <class IndexT>
IndexIDTableTemplate<IndexT>::IndexIDTableTemplate(
        IndexT* index,
        std::vector<idx_t> ids,
        idx_t next_id)
        : next_id(std::max(next_id, above_all(ids))) {
    static_cast<IndexT&>(*this) = *index;
    this->index = index;
    this->id_map.swap(ids);
}

template <class IndexT>
IndexIDTableTemplate<IndexT>::IndexIDTableTemplate() = default;

template <class IndexT>
IndexIDTableTemplate<IndexT>::~IndexIDTableTemplate() = default;

template <class IndexT>
void IndexIDTableTemplate<IndexT>::train(idx_t n, const component_t* x) {
    check_input(*this->index, n, x, named("train").c_str());
    check_training(*this->index, n, named("train").c_str());
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
std::string IndexIDTableTemplate<IndexT>::named(const char* method) const {
    const auto* owned =
            dynamic_cast<const IndexPositions<IndexT>*>(this->index);
    return (owned                       ? owned->owner_name
                    : is_binary<IndexT> ? "IndexBinaryIDTable"
                                        : "IndexIDTable") +
            std::string("::") + method;
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::to_ids(idx_t n, idx_t* labels) const {
    for (idx_t i = 0; i < n; i++) {
        labels[i] = id_at(labels[i]);
    }
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::to_positions(
        idx_t n,
        const idx_t* ids,
        idx_t* found) const {
    const IdPositions& at = positions();
    for (idx_t i = 0; i < n; i++) {
        found[i] = ids[i] == -1 ? -1 : at.find(ids[i]);
        FAISS_EXT_THROW_IF_NOT_FMT(
                ids[i] == -1 || found[i] >= 0,
                "there is no vector with id %" PRId64,
                int64_t(ids[i]));
    }
}

template <class IndexT>
idx_t IndexIDTableTemplate<IndexT>::id_at(idx_t position) const {
    const bool is_there = position >= 0 && position < this->ntotal;
    return is_there ? this->id_map[position] : -1;
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::contains(
        idx_t n,
        const idx_t* ids,
        bool* found) const {
    check_batch(n, ids, named("contains").c_str());
    const IdPositions& at = positions();
    std::transform(
            ids, ids + n, found, [&](idx_t id) { return at.find(id) >= 0; });
}

template <class IndexT>
idx_t IndexIDTableTemplate<IndexT>::position_of(idx_t id) const {
    return positions().find(id);
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::check_unused(
        idx_t n,
        const idx_t* ids,
        const char* where,
        const char* hint) const {
    check_new_ids(n, ids, where);
    idx_t before = next_id - 1;
    // ascending ids below the largest one, which has no next id
    const bool all_are_new = std::all_of(ids, ids + n, [&](idx_t id) {
        return id > std::exchange(before, id) && above(id) > id;
    });
    if (all_are_new) {
        return;
    }
    const IdPositions& used = positions();
    IdPositions given;
    given.reserve(n);
    for (idx_t i = 0; i < n; i++) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                used.find(ids[i]) < 0,
                "%s: id %" PRId64 " is already in use; %s",
                where,
                int64_t(ids[i]),
                hint);
        FAISS_EXT_THROW_IF_NOT_FMT(
                given.insert(ids[i], i),
                "%s: id %" PRId64 " is given twice",
                where,
                int64_t(ids[i]));
    }
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::make_room(idx_t n) {
    const size_t total = this->id_map.size() + n;
    if (total > this->id_map.capacity()) {
        this->id_map.reserve(std::max(total, 2 * this->id_map.size()));
    }
    if (known) {
        known->reserve(total);
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
void IndexIDTableTemplate<IndexT>::add_by(
        idx_t n,
        const idx_t* xids,
        const char* method,
        const std::function<void(IndexT&)>& add) {
    const std::string name = named(method);
    check_parts(*this);
    std::vector<idx_t> ids(xids, xids ? xids + n : xids);
    check_addition(*owner_of(*this), n, name.c_str());
    if (!xids) {
        check_free_ids(next_id, n, name.c_str());
        ids.resize(n);
        std::iota(ids.begin(), ids.end(), next_id);
    }
    check_unused(n, ids.data(), name.c_str(), "choose another id");
    make_room(n);
    if (n > 0) { // some of FAISS's indexes fail if n is 0
        add(*this->index);
    }
    append(n, ids.data());
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::add(idx_t n, const component_t* x) {
    check_input(*this->index, n, x, named("add").c_str());
    add_by(n, nullptr, "add", [&](IndexT& inside) { inside.add(n, x); });
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::add_with_ids(
        idx_t n,
        const component_t* x,
        const idx_t* xids) {
    const std::string name = named("add_with_ids");
    check_input(*this->index, n, x, name.c_str());
    check_batch(n, xids, name.c_str());
    add_by(n, xids, "add_with_ids", [&](IndexT& inside) { inside.add(n, x); });
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::add_sa_codes(
        idx_t n,
        const uint8_t* codes,
        const idx_t* xids) {
    check_batch(n, codes, named("add_sa_codes").c_str());
    if constexpr (requires(IndexT & index) {
                      index.add_sa_codes(n, codes, nullptr);
                  }) {
        add_by(n, xids, "add_sa_codes", [&](IndexT& inside) {
            inside.add_sa_codes(n, codes, nullptr);
        });
    } else {
        throw UnsupportedError(
                named("add_sa_codes") +
                ": FAISS before 1.10 has no such function");
    }
}

template <class IndexT>
std::unique_ptr<faiss::IDSelector> IndexIDTableTemplate<IndexT>::translated(
        const faiss::IDSelector& sel) const {
    // more ids cost more to look up than a search to ask; an array is slow to
    // ask
    const bool is_array = typeid(sel) == typeid(faiss::IDSelectorArray);
    const idx_t most = is_array ? this->ntotal : this->ntotal / 16;
    if (auto places = listed_places(sel, most)) {
        return std::make_unique<PlaceSelector>(
                std::move(*places), this->ntotal);
    }
    return std::make_unique<IDSelectorTranslated>(this->id_map, sel);
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::search(
        idx_t n,
        const component_t* x,
        idx_t k,
        distance_t* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    const auto inside = checked_search(*this, named("search"), n, x, params);
    this->index->search(n, x, k, distances, labels, inside.get());
    to_ids(n * k, labels);
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::range_search(
        idx_t n,
        const component_t* x,
        distance_t radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    const auto inside =
            checked_search(*this, named("range_search"), n, x, params);
    check_range_search_supported(*this->index, named("range_search").c_str());
    this->index->range_search(n, x, radius, result, inside.get());
    to_ids(idx_t(result->lims[result->nq]), result->labels);
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::search_and_reconstruct(
        idx_t n,
        const component_t* x,
        idx_t k,
        distance_t* distances,
        idx_t* labels,
        component_t* recons,
        const faiss::SearchParameters* params) const {
    const auto inside = checked_search(*this, named("search"), n, x, params);
    this->index->search(n, x, k, distances, labels, inside.get());
    const size_t length = length_of(*this);
    for (idx_t i = 0; i < n * k; i++) {
        component_t* to = recons + i * length;
        const idx_t position = std::exchange(labels[i], id_at(labels[i]));
        if (labels[i] == -1) { // as FAISS does: NaN, or bytes of 255
            std::memset(to, 255, length * sizeof(component_t));
        } else {
            this->index->reconstruct(position, to);
        }
    }
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::reconstruct(idx_t key, component_t* recons)
        const {
    reconstruct_n(key, 1, recons);
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::reconstruct_n(
        idx_t i0,
        idx_t ni,
        component_t* recons) const {
    check_parts(*this);
    const IdPositions& at = positions();
    const size_t length = length_of(*this);
    for (idx_t i = 0; i < ni; i++) {
        const idx_t position = at.find(i0 + i);
        FAISS_EXT_THROW_IF_NOT_FMT(
                position >= 0,
                "%s: there is no vector with id %" PRId64,
                named("reconstruct").c_str(),
                int64_t(i0 + i));
        this->index->reconstruct(position, recons + i * length);
    }
}

template <class IndexT>
std::optional<std::vector<idx_t>> IndexIDTableTemplate<IndexT>::listed_places(
        const faiss::IDSelector& sel,
        idx_t most) const {
    auto ids = listed_ids(sel, most);
    if (ids) {
        const IdPositions& at = positions();
        for (idx_t& id : *ids) {
            id = at.find(id);
        }
        std::erase(*ids, -1);
    }
    return ids;
}

template <class IndexT>
std::vector<idx_t> IndexIDTableTemplate<IndexT>::places_of(
        const faiss::IDSelector& sel) const {
    std::vector<idx_t> places;
    if (auto listed = listed_places(sel, this->ntotal)) {
        places = std::move(*listed);
        std::sort(places.begin(), places.end());
    } else {
        for (idx_t place = 0; place < this->ntotal; place++) {
            if (sel.is_member(this->id_map[place])) {
                places.push_back(place);
            }
        }
    }
    return places;
}

template <class IndexT>
size_t IndexIDTableTemplate<IndexT>::remove_ids(const faiss::IDSelector& sel) {
    check_removal(*this, sel, named("remove_ids").c_str());
    check_parts(*this);
    check_all_counts(*owner_of(*this));
    const std::vector<idx_t> holes = places_of(sel);
    if (holes.empty()) {
        return 0;
    }
    const PlaceMoves moves(this->ntotal, holes);
    if (const auto move = prepare_moves(this->index, moves)) {
        IdPositions& at = positions();
        move();
        for (const idx_t hole : holes) {
            at.erase(this->id_map[hole]);
        }
        for (const auto [from, to] : moves.moves) {
            this->id_map[to] = this->id_map[from];
            at.move(this->id_map[to], to);
        }
        this->id_map.resize(moves.after);
        this->ntotal = this->index->ntotal;
        return holes.size();
    }
    const AnyIndex owner = owner_of(*this);
    // lists would not renumber the rest, and faiss::IndexFastScan stores wrong
    // codes of the vectors added after a removal
    if (lists_keep_ids(owner) ||
        part_that_keeps_places(owner).as<faiss::IndexFastScan>()) {
        throw_cannot_remove();
    }
    const PlaceSelector removed(holes, this->ntotal);
    std::vector<idx_t> kept;
    kept.reserve(moves.after);
    for (idx_t place = 0; place < this->ntotal; place++) {
        if (!removed.is_member(place)) {
            kept.push_back(this->id_map[place]);
        }
    }
    try {
        this->index->remove_ids(removed);
    } catch (const UnsupportedError&) {
        throw_cannot_remove();
    }
    this->id_map = std::move(kept);
    this->ntotal = this->index->ntotal;
    known = nullptr;
    return holes.size();
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::throw_cannot_remove() const {
    throw UnsupportedError(
            named("remove_ids") + ": " +
            part_that_keeps_places(owner_of(*this)).class_name() +
            " cannot remove vectors; build the index again without them");
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::update_vectors(
        idx_t n,
        const idx_t* ids,
        const component_t* x) {
    change_vectors(n, ids, x, "update_vectors", false);
}

template <class IndexT>
idx_t IndexIDTableTemplate<IndexT>::upsert(
        idx_t n,
        const component_t* x,
        const idx_t* ids) {
    return change_vectors(n, ids, x, "upsert", true);
}

template <class IndexT>
idx_t IndexIDTableTemplate<IndexT>::change_vectors(
        idx_t n,
        const idx_t* ids,
        const component_t* x,
        const char* method,
        bool adds) {
    check_input(*this->index, n, x, named(method).c_str());
    const auto add = [&](IndexT& inside, const std::vector<idx_t>& order) {
        if (std::is_sorted(order.begin(), order.end())) {
            inside.add(n, x);
            return;
        }
        const size_t length = length_of(*this);
        std::vector<component_t> reordered;
        reordered.reserve(n * length);
        for (const idx_t i : order) {
            reordered.insert(
                    reordered.end(), x + i * length, x + (i + 1) * length);
        }
        inside.add(n, reordered.data());
    };
    return change_by(n, ids, method, adds, add);
}

template <class IndexT>
idx_t IndexIDTableTemplate<IndexT>::change_by(
        idx_t n,
        const idx_t* ids,
        const char* method,
        bool adds,
        const std::function<void(IndexT&, const std::vector<idx_t>&)>& add) {
    const std::string name = named(method);
    const char* where = name.c_str();
    check_batch(n, ids, where);
    check_parts(*this);
    check_new_ids(n, ids, where);
    // new vectors come first, then those that take the places of others
    std::vector<idx_t> added, replaced, new_ids, places;
    const IdPositions& at = positions();
    IdPositions given;
    given.reserve(n);
    for (idx_t i = 0; i < n; i++) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                given.insert(ids[i], i),
                "%s: id %" PRId64 " is given twice",
                where,
                int64_t(ids[i]));
        const idx_t place = at.find(ids[i]);
        FAISS_EXT_THROW_IF_NOT_FMT(
                place >= 0 || adds,
                "%s: there is no vector with id %" PRId64
                "; add_with_ids adds vectors, and upsert adds or replaces them",
                where,
                int64_t(ids[i]));
        if (place >= 0) {
            replaced.push_back(i);
            places.push_back(place);
        } else {
            added.push_back(i);
            new_ids.push_back(ids[i]);
        }
    }
    const PlaceMoves moves = PlaceMoves::of_last(this->ntotal + n, places);
    const auto move =
            places.empty() ? nullptr : prepare_moves(this->index, moves);
    if (!move && !places.empty()) {
        throw UnsupportedError(
                name + ": " +
                part_that_keeps_places(owner_of(*this)).class_name() +
                " cannot replace vectors; remove them and add the new ones, or build the index again if it cannot remove vectors either");
    }
    std::vector<idx_t> order = std::move(added);
    order.insert(order.end(), replaced.begin(), replaced.end());
    make_room(idx_t(new_ids.size()));
    if (n > 0) { // some of FAISS's indexes fail if n is 0
        try {
            rethrow_with_index(
                    [&](idx_t i) { return order[i]; },
                    [&] { add(*this->index, order); });
        } catch (const faiss::FaissException&) {
            rethrow_with_prefix(name + ": ", named("add") + ": ");
        }
    }
    if (!places.empty()) {
        move();
    }
    append(idx_t(new_ids.size()), new_ids.data());
    return idx_t(places.size());
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::check_compatible_for_merge(
        const IndexT& other) const {
    if (const auto* shared =
                dynamic_cast<const IndexConcurrentTemplate<IndexT>*>(&other)) {
        const ReadingStep step(other);
        check_compatible_for_merge(*shared->index);
        return;
    }
    check_not_itself(&other == this);
    const auto* source = dynamic_cast<const IndexIDTableTemplate*>(&other);
    FAISS_EXT_THROW_IF_NOT_MSG(
            source,
            "IndexIDTable: cannot merge: expected another IndexIDTable");
    check_parts(*this);
    check_parts(*source);
    check_merge(*this->index, *source->index);
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::merge_from(IndexT& other, idx_t add_id) {
    if (auto* shared = dynamic_cast<IndexConcurrentTemplate<IndexT>*>(&other)) {
        shared->change([&](IndexT& from) { merge_from(from, add_id); });
        return;
    }
    const std::string name = named("merge_from");
    const char* where = name.c_str();
    check_compatible_for_merge(other);
    auto& source = dynamic_cast<IndexIDTableTemplate&>(other);
    std::vector<idx_t> ids = source.id_map;
    for (idx_t& id : ids) {
        id = shifted_id(id, add_id, where);
    }
    check_unused(
            idx_t(ids.size()),
            ids.data(),
            where,
            "give an add_id that is added to the ids of the other index");
    make_room(idx_t(ids.size()));
    merge_and_empty(*this->index, *source.index);
    append(idx_t(ids.size()), ids.data());
    source.id_map.clear();
    source.known = nullptr;
    source.ntotal = source.index->ntotal;
}

template <class IndexT>
void IndexIDTableTemplate<IndexT>::reset() {
    check_lists_not_mapped(*this, named("reset").c_str());
    this->index->reset();
    this->id_map.clear();
    this->ntotal = 0;
    known = nullptr;
    next_id = 0;
}

template struct IndexIDTableTemplate<faiss::Index>;
template struct IndexIDTableTemplate<faiss::IndexBinary>;

} // namespace faiss_ext
