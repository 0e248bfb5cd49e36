// SPDX-License-Identifier: MIT
// Index classes that can keep ids of the user's choice; see index_ids.h.

#pragma once

#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <faiss/IndexBinaryIVF.h>
#include <faiss/impl/DistanceComputer.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/indexes/IndexConcurrent.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/IndexSparseKernel.h>
#include <faiss_ext/indexes/index_ids.h>

#include "core/check.h"
#include "core/errors.h"
#include "indexes/index_compat.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"
#include "indexes/index_steps.h"
#include "indexes/selected_places.h"
#include "indexes/translated_params.h"

namespace faiss_ext {

template <class C>
using BaseIndex = std::conditional_t<
        std::is_base_of_v<faiss::Index, C>,
        faiss::Index,
        faiss::IndexBinary>;

/// An index of class C by the positions of its vectors: the index behind the
/// table of ids of this index.
template <class C>
struct PositionsOf : IndexPositions<BaseIndex<C>> {
    using IndexT = BaseIndex<C>;
    using component_t = typename IndexT::component_t;
    using distance_t = typename IndexT::distance_t;

    explicit PositionsOf(C& index)
            : IndexPositions<IndexT>(
                      index,
                      AnyIndex(static_cast<IndexT&>(index)).class_name()) {}

    struct Inside : InsideStep<IndexT> {
        explicit Inside(const C& index) : InsideStep<IndexT>(&index) {}
    };

    C& index() const {
        return static_cast<C&>(*this->owner);
    }

    void synchronize() {
        this->ntotal = index().ntotal;
    }

    void train(idx_t n, const component_t* x) override {
        const Inside inside(index());
        index().C::train(n, x);
    }

    void add(idx_t n, const component_t* x) override {
        const Inside inside(index());
        index().C::add(n, x);
        synchronize();
    }

    void add_sa_codes(idx_t n, const uint8_t* codes, const idx_t*)
            FAISS_EXT_OVERRIDE_1_10 {
        if constexpr (requires(C & c) { c.add_sa_codes(n, codes, nullptr); }) {
            const Inside inside(index());
            index().C::add_sa_codes(n, codes, nullptr);
            synchronize();
        }
    }

    void search(
            idx_t n,
            const component_t* x,
            idx_t k,
            distance_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params) const override {
        const Inside inside(index());
        index().C::search(n, x, k, distances, labels, params);
    }

    void range_search(
            idx_t n,
            const component_t* x,
            distance_t radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params) const override {
        const Inside inside(index());
        index().C::range_search(n, x, radius, result, params);
    }

    void reconstruct(idx_t key, component_t* recons) const override {
        const Inside inside(index());
        index().C::reconstruct(key, recons);
    }

    void reset() override {
        const Inside inside(index());
        index().C::reset();
        synchronize();
    }

    size_t remove_ids(const faiss::IDSelector& sel) override {
        const Inside inside(index());
        const size_t removed = index().C::remove_ids(sel);
        synchronize();
        return removed;
    }

    void merge_from(IndexT& other, idx_t) override {
        auto& source = dynamic_cast<PositionsOf&>(other);
        {
            const Inside inside(index());
            const bool has_lists = lists_keep_ids(&index());
            index().C::merge_from(
                    source.index(), has_lists ? index().ntotal : 0);
        }
        synchronize();
        source.synchronize();
    }

    void check_compatible_for_merge(const IndexT& other) const override {
        const Inside inside(index());
        index().C::check_compatible_for_merge(
                dynamic_cast<const PositionsOf&>(other).index());
    }
};

/// An index of class C that can have a table of ids.
template <class C>
struct WithIds : C, HasIds<BaseIndex<C>> {
    using IndexT = BaseIndex<C>;
    using Table = IndexIDTableTemplate<IndexT>;
    using component_t = typename IndexT::component_t;
    using distance_t = typename IndexT::distance_t;

    using C::C;
    WithIds() = default;

    Table* id_table() const override {
        return ids ? &ids->table : nullptr;
    }

    bool change(const std::function<bool(Table&)>& f) override {
        if (ids) {
            f(ids->table);
            return true;
        }
        if (!can_have_table()) {
            return false;
        }
        std::vector<idx_t> positions(this->ntotal);
        std::iota(positions.begin(), positions.end(), idx_t(0));
        set_ids(std::move(positions), this->ntotal);
        const auto forget = [had_map = has_direct_map(this)](WithIds* index) {
            index->ids = nullptr;
            if (!had_map) { // f may have made one
                forget_direct_maps(index);
            }
        };
        std::unique_ptr<WithIds, decltype(forget)> undo(this, forget);
        if (f(ids->table)) {
            undo.release();
        }
        return true;
    }

    void set_ids(std::vector<idx_t> all, idx_t next_id) override {
        ids = std::make_unique<Ids>(*this, std::move(all), next_id);
    }

    const std::type_info& index_class() const override {
        return typeid(C);
    }

    const void* as_index_class() const override {
        return static_cast<const C*>(this);
    }

    void add(idx_t n, const component_t* x) override {
        if (uses_ids()) {
            ids->table.add(n, x);
        } else if (!is_called_inside() && has_unmovable_lists(this)) {
            add_to_lists(n, x, nullptr, "add");
        } else {
            C::add(n, x);
        }
    }

    void add_with_ids(idx_t n, const component_t* x, const idx_t* xids)
            override {
        const auto add = [&](Table& table) {
            table.add_with_ids(n, x, xids);
            return n > 0;
        };
        if (is_called_inside() || (!xids && adds_by_ids) || !change(add)) {
            if (!is_called_inside()) {
                check_all_counts(this);
                if (has_unmovable_lists(this)) {
                    add_to_lists(n, x, xids, "add_with_ids");
                    return;
                }
            }
            C::add_with_ids(n, x, xids);
        }
    }

    void search(
            idx_t n,
            const component_t* x,
            idx_t k,
            distance_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override {
        if (uses_ids()) {
            ids->table.search(n, x, k, distances, labels, params);
        } else {
            C::search(n, x, k, distances, labels, params);
        }
    }

    void range_search(
            idx_t n,
            const component_t* x,
            distance_t radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override {
        if (uses_ids()) {
            ids->table.range_search(n, x, radius, result, params);
        } else {
            C::range_search(n, x, radius, result, params);
        }
    }

    void search_and_reconstruct(
            idx_t n,
            const component_t* x,
            idx_t k,
            distance_t* distances,
            idx_t* labels,
            component_t* recons,
            const faiss::SearchParameters* params = nullptr) const override {
        if (uses_ids()) {
            ids->table.search_and_reconstruct(
                    n, x, k, distances, labels, recons, params);
        } else {
            C::search_and_reconstruct(
                    n, x, k, distances, labels, recons, params);
        }
    }

    void reconstruct(idx_t key, component_t* recons) const override {
        if (uses_ids()) {
            ids->table.reconstruct(key, recons);
        } else {
            C::reconstruct(key, recons);
        }
    }

    void reconstruct_n(idx_t i0, idx_t ni, component_t* recons) const override {
        if (uses_ids()) {
            ids->table.reconstruct_n(i0, ni, recons);
        } else {
            C::reconstruct_n(i0, ni, recons);
        }
    }

#if FAISS_EXT_HAS_ADD_SA_CODES
    void add_sa_codes(idx_t n, const uint8_t* codes, const idx_t* xids)
            override {
        const auto add = [&](Table& table) {
            table.add_sa_codes(n, codes, xids);
            return n > 0;
        };
        if (is_called_inside() || (!ids && !xids) || !change(add)) {
            C::add_sa_codes(n, codes, xids);
        }
    }
#endif

    size_t remove_ids(const faiss::IDSelector& sel) override {
        // a table or an ID map in front of this index removes by positions
        const bool is_by_position =
                is_from_id_map(sel) || dynamic_cast<const PlaceSelector*>(&sel);
        if (is_called_inside() || (!ids && is_by_position)) {
            return C::remove_ids(sel);
        }
        check_removal(this, sel, "remove_ids");
        size_t removed = 0;
        const auto remove = [&](Table& table) {
            removed = table.remove_ids(sel);
            return removed > 0;
        };
        if (!change(remove)) {
            check_all_counts(this);
            removed = C::remove_ids(sel);
        }
        return removed;
    }

    void reset() override {
        if (uses_ids() && is_being_merged) { // the table is in use
            ids->table.reset();
        } else {
            check_lists_not_mapped(this, "reset");
            C::reset();
            if (uses_ids()) { // with it go maps that it made
                ids = nullptr;
                forget_direct_maps(this);
            }
        }
    }

    void check_compatible_for_merge(const IndexT& other) const override {
        if (const auto* shared =
                    dynamic_cast<const IndexConcurrentTemplate<IndexT>*>(
                            &other)) {
            const ReadingStep step(other);
            check_compatible_for_merge(*shared->index);
            return;
        }
        check_not_itself(&other == this);
        const auto* source = dynamic_cast<const WithIds*>(&other);
        check_kind_for_merge(source);
        const bool have_tables = ids || (source && source->ids);
        const bool forgets_maps = have_tables && source &&
                (has_direct_map(this) || has_direct_map(source));
        if (forgets_maps && !is_called_inside()) {
            return;
        }
        if (source) { // ids do not matter: merge_from takes both tables
            const typename PositionsOf<C>::Inside inside(*this);
            C::check_compatible_for_merge(other);
        } else {
            C::check_compatible_for_merge(other);
        }
    }

    void merge_from(IndexT& other, idx_t add_id = 0) override {
        if (auto* shared =
                    dynamic_cast<IndexConcurrentTemplate<IndexT>*>(&other)) {
            shared->change([&](IndexT& from) { merge_from(from, add_id); });
            return;
        }
        check_not_itself(&other == this);
        auto* source = dynamic_cast<WithIds*>(&other);
        check_kind_for_merge(source);
        const bool have_tables = ids || (source && source->ids);
        // with this add_id, ids that are positions stay so
        const bool has_lists = lists_keep_ids(this);
        const bool needs_table =
                add_id != this->ntotal && (add_id != 0 || has_lists);
        if (is_called_inside() || !source || !(have_tables || needs_table)) {
            C::merge_from(other, source && !has_lists ? 0 : add_id);
            return;
        }
        check_compatible_for_merge(other);
        bool is_done = false;
        const WithoutDirectMaps maps(this, source, is_done);
        change([&](Table& table) {
            source->change([&](Table& from) {
                source->is_being_merged = true;
                const std::unique_ptr<bool, void (*)(bool*)> end(
                        &source->is_being_merged,
                        [](bool* flag) { *flag = false; });
                const idx_t next = from.next_id;
                table.merge_from(from, add_id);
                from.next_id = next; // a reset by the merge has set it to 0
                return is_done = true;
            });
            return is_done;
        });
        if (!is_done) {
            FAISS_EXT_THROW_IF_NOT_MSG(
                    !have_tables,
                    "cannot merge: the inverted lists of one index have ids of their own");
            if (has_unmovable_lists(this)) {
                check_ids_of_merge(
                        this,
                        source,
                        add_id,
                        AnyIndex(this).class_name() + "::merge_from");
            }
            C::merge_from(other, add_id);
        }
    }

   protected:
    bool is_called_inside() const {
        return IndexPositions<IndexT>::inside == static_cast<const C*>(this);
    }

    /// FAISS's lists add vectors by add_with_ids, with null for their ids.
    static constexpr bool adds_by_ids =
            std::is_base_of_v<faiss::IndexBinaryIVF, C>;

    /// Whether a call from outside means ids of a table.
    bool uses_ids() const {
        return ids && !is_called_inside();
    }

    Table& table() const {
        return ids->table;
    }

   private:
    bool is_being_merged = false; ///< into another index

    /// Removes the direct maps of two indexes for a merge: FAISS merges no
    /// lists that have them. Makes them again if the merge fails.
    struct WithoutDirectMaps {
        AnyIndex indexes[2];
        bool had_map[2];
        const bool& is_done;

        WithoutDirectMaps(WithIds* to, WithIds* from, const bool& is_done)
                : indexes{to, from},
                  had_map{has_direct_map(to), has_direct_map(from)},
                  is_done(is_done) {
            forget_direct_maps(to);
            forget_direct_maps(from);
        }

        ~WithoutDirectMaps() {
            for (int i = 0; i < 2; i++) {
                if (had_map[i] && !is_done) {
                    make_direct_maps(indexes[i]);
                }
            }
        }
    };

    /// Throws if another index, null if it cannot have a table, has no ids for
    /// the table of this one.
    void check_kind_for_merge(const WithIds* other) const {
        FAISS_EXT_THROW_IF_NOT_FMT(
                other || !ids || is_called_inside(),
                "cannot merge: this index has a table of ids, so the other index must also be an %s made by a factory string",
                AnyIndex(static_cast<const IndexT&>(*this))
                        .class_name()
                        .c_str());
    }

    struct Ids {
        PositionsOf<C> positions;
        Table table;

        Ids(C& index, std::vector<idx_t> all, idx_t next_id)
                : positions(index),
                  table(&positions, std::move(all), next_id) {}
    };
    std::unique_ptr<Ids> ids;

    void add_to_lists(
            idx_t n,
            const component_t* x,
            const idx_t* xids,
            const char* method) {
        const auto chosen = ids_for_lists(
                this, n, xids, AnyIndex(this).class_name() + "::" + method);
        C::add_with_ids(n, x, chosen.data());
    }

    /// Whether a table can know the vectors by positions. Lists from files may
    /// have other ids, and some cannot remove by positions.
    bool can_have_table() {
        if (part_has_table(this) || !ids_are_positions(this)) {
            return false;
        }
        if (!lists_keep_ids(this)) {
            return true;
        }
        const bool has_map = has_direct_map(this);
        const PlaceMoves none(this->ntotal, {});
        const bool can_move = bool(prepare_moves(this, none));
        if (!has_map) {
            forget_direct_maps(this);
        }
        return can_move;
    }
};

/// Adds the methods that only float indexes have.
template <class C>
struct FloatWithIds : WithIds<C> {
    using WithIds<C>::WithIds;
    FloatWithIds() = default;

    faiss::DistanceComputer* get_distance_computer() const override {
        std::unique_ptr<faiss::DistanceComputer> distances(
                C::get_distance_computer());
        return this->uses_ids() ? new DistancesById(*this, std::move(distances))
                                : distances.release();
    }

#if FAISS_EXT_HAS_SEARCH1
    void search1(
            const float* x,
            faiss::ResultHandler& handler,
            faiss::SearchParameters* params = nullptr) const override {
        refuse_by_position("search1");
        C::search1(x, handler, params);
    }

    void search_subset(
            idx_t n,
            const float* x,
            idx_t k_base,
            const idx_t* base_labels,
            idx_t k,
            float* distances,
            idx_t* labels) const override {
        refuse_by_position("search_subset");
        C::search_subset(n, x, k_base, base_labels, k, distances, labels);
    }
#endif

   protected:
    /// Throws if a method that takes positions is called from outside
    /// and the index has a table.
    void refuse_by_position(const char* method) const {
        if (this->uses_ids()) {
            throw UnsupportedError(
                    AnyIndex(static_cast<const faiss::Index&>(*this))
                            .class_name() +
                    "::" + method +
                    ": this method takes positions, and the index has a table of ids; use search");
        }
    }

   private:
    /// Computes distances to vectors by their ids.
    struct DistancesById : faiss::DistanceComputer {
        const FloatWithIds& index;
        std::unique_ptr<faiss::DistanceComputer> distances;

        DistancesById(
                const FloatWithIds& index,
                std::unique_ptr<faiss::DistanceComputer> distances)
                : index(index), distances(std::move(distances)) {}

        void set_query(const float* x) override {
            distances->set_query(x);
        }
        // For ids that are not there they return the worst distance, since
        // FAISS calls them in parallel loops.
        float operator()(idx_t id) override {
            const idx_t at = index.table().position_of(id);
            const typename PositionsOf<C>::Inside inside(index);
            return at < 0 ? worst() : (*distances)(at);
        }
        float symmetric_dis(idx_t a, idx_t b) override {
            const idx_t at_a = index.table().position_of(a),
                        at_b = index.table().position_of(b);
            const typename PositionsOf<C>::Inside inside(index);
            return at_a < 0 || at_b < 0 ? worst()
                                        : distances->symmetric_dis(at_a, at_b);
        }

        float worst() const {
            constexpr float most = std::numeric_limits<float>::max();
            return index.metric_type == faiss::METRIC_INNER_PRODUCT ? -most
                                                                    : most;
        }
    };
};

/// Adds search_scores, for indexes that have it.
template <class C>
struct ScoresWithIds : FloatWithIds<C> {
    using FloatWithIds<C>::FloatWithIds;
    ScoresWithIds() = default;

    void search_scores(
            idx_t n,
            const float* x,
            idx_t k,
            float* scores,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override {
        if (!this->uses_ids()) {
            C::search_scores(n, x, k, scores, labels, params);
            return;
        }
        const typename PositionsOf<C>::Inside inside(*this);
        const TranslatedParams translated(this->table(), params);
        C::search_scores(n, x, k, scores, labels, translated.get());
        this->table().to_ids(n * k, labels);
    }
};

/// Adds the methods of exact search.
template <class C>
struct FlatKernelWithIds : ScoresWithIds<C> {
    using ScoresWithIds<C>::ScoresWithIds;
    FlatKernelWithIds() = default;

    void permute_entries(const idx_t* perm) override {
        this->refuse_by_position("permute_entries");
        C::permute_entries(perm);
    }

#if !FAISS_EXT_HAS_ADD_SA_CODES
    void add_sa_codes(idx_t n, const uint8_t* codes, const idx_t* xids)
            override {
        this->refuse_by_position("add_sa_codes");
        C::add_sa_codes(n, codes, xids);
    }
#endif

   protected:
    void compare_subset(
            IndexFlatKernel::Subset what,
            idx_t n,
            const float* x,
            idx_t k,
            float* out,
            const idx_t* labels) const override {
        if (!this->uses_ids()) {
            C::compare_subset(what, n, x, k, out, labels);
            return;
        }
        std::vector<idx_t> positions(n * k);
        this->table().to_positions(n * k, labels, positions.data());
        C::compare_subset(what, n, x, k, out, positions.data());
    }
};

template <class C>
constexpr bool is_of_faiss = std::is_same_v<C, faiss::IndexHNSW> ||
        std::is_same_v<C, faiss::IndexPreTransform> ||
        std::is_same_v<C, faiss::IndexRefine> ||
        std::is_same_v<C, faiss::IndexRefineFlat>;

/// The class of indexes of class C that can have a table of ids.
template <class C>
struct ClassWithIds {
    using type = std::conditional_t<
            std::is_base_of_v<faiss::Index, C>,
            FloatWithIds<C>,
            WithIds<C>>;
};
template <>
struct ClassWithIds<IndexFlatKernel> {
    using type = FlatKernelWithIds<IndexFlatKernel>;
};
template <>
struct ClassWithIds<IndexSparseKernel> {
    using type = FlatKernelWithIds<IndexSparseKernel>;
};
template <>
struct ClassWithIds<IndexHNSWKernel> {
    using type = ScoresWithIds<IndexHNSWKernel>;
};

/// Makes an index of class C that can have a table of ids.
template <class C, class... Args>
std::unique_ptr<C> make_with_ids(Args&&... args) {
    return std::make_unique<typename ClassWithIds<C>::type>(
            std::forward<Args>(args)...);
}

/// Makes an index of FAISS's class C, or one of this library that can have a
/// table of ids.
template <class C, class... Args>
std::unique_ptr<C> make_known(Args&&... args) {
    if constexpr (is_of_faiss<C>) {
        return std::make_unique<C>(std::forward<Args>(args)...);
    } else {
        return make_with_ids<C>(std::forward<Args>(args)...);
    }
}

} // namespace faiss_ext
