// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>
#include <faiss/IndexIDMap.h>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

class IdPositions;

/** Gives the vectors of an index ids of your choice, as the strings `IDMap` and
 * `IDMap2` do.
 *
 * It is a faiss::IndexIDMap that can reconstruct vectors by their ids, and that
 * protects its ids:
 * - An id is used once. add_with_ids throws if an id is in use, occurs twice in
 *   one call, or is -1, which means "no result" in searches.
 * - add gives ids above all earlier ids, beginning with 0.
 * - A selector in search parameters selects ids, with every version of FAISS,
 *   also inside the parameters of transformations and Refine.
 * - After an error the index is unchanged.
 *
 * Do not change `index` and `id_map`, which are FAISS's members.
 *
 * The table of ids takes 8 bytes a vector. The first call that looks up ids
 * adds 16 to 32 bytes a vector. Such calls are reconstruct, and add_with_ids
 * unless its ids ascend above all earlier ones.
 *
 * The index inside numbers its vectors from 0 on and renumbers them after a
 * removal. The constructor throws for an index that has ids of its own, such as
 * inverted lists or another table.
 */
template <class IndexT>
struct IndexIDTableTemplate : faiss::IndexIDMapTemplate<IndexT> {
    using component_t = typename IndexT::component_t;
    using distance_t = typename IndexT::distance_t;

    /// The id that add gives to its next vector.
    idx_t next_id = 0;

    /// Takes an empty index, which is deleted only if own_fields is set.
    explicit IndexIDTableTemplate(IndexT* index);
    /// Takes an index and the ids of its vectors, in the order of their
    /// positions. next_id must be above the ids of removed vectors, which add
    /// must not give again. By default, add continues after the largest id.
    IndexIDTableTemplate(
            IndexT* index,
            std::vector<idx_t> ids,
            idx_t next_id = 0);
    /// Takes the index and the ids of an ID map of FAISS.
    explicit IndexIDTableTemplate(faiss::IndexIDMapTemplate<IndexT>&& map);
    IndexIDTableTemplate();
    ~IndexIDTableTemplate() override;

    void train(idx_t n, const component_t* x) override;
    void add(idx_t n, const component_t* x) override;
    void add_with_ids(idx_t n, const component_t* x, const idx_t* xids)
            override;

    void search(
            idx_t n,
            const component_t* x,
            idx_t k,
            distance_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    void range_search(
            idx_t n,
            const component_t* x,
            distance_t radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    void search_and_reconstruct(
            idx_t n,
            const component_t* x,
            idx_t k,
            distance_t* distances,
            idx_t* labels,
            component_t* recons,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Throws if no vector has the id.
    void reconstruct(idx_t key, component_t* recons) const override;

    /// The vectors with the ids i0 to i0 + ni - 1; throws if one is missing.
    void reconstruct_n(idx_t i0, idx_t ni, component_t* recons) const override;

    /// Adds codes of sa_encode, with ids if they are not null. Throws with
    /// FAISS before 1.10.
    void add_sa_codes(idx_t n, const uint8_t* codes, const idx_t* xids)
            FAISS_EXT_OVERRIDE_1_10;

    /** Removes vectors. Returns the number of removed vectors.
     *
     * The last vectors take the positions of removed ones, so the time depends
     * on the number of ids that the selector lists. Other selectors, such as
     * IDSelectorNot, are asked for each id. The first removal makes the table
     * that looks ids up. Indexes of unknown classes cannot remove by position.
     * Their later vectors move up, which takes time proportional to the size.
     * faiss::IndexFastScan is refused, because it stores wrong codes for
     * vectors that are added after a removal.
     */
    size_t remove_ids(const faiss::IDSelector& sel) override;

    /** Replaces vectors. All ids must exist, and each may be given only once.
     * After an error the index is unchanged.
     *
     * @param ids  size n
     * @param x    the new vectors, size n * d
     */
    void update_vectors(idx_t n, const idx_t* ids, const component_t* x);

    /// Replaces the vectors whose ids exist, and adds the others. Returns the
    /// number of replaced vectors.
    idx_t upsert(idx_t n, const component_t* x, const idx_t* ids);

#ifndef SWIG
    /// Adds n vectors by a call of the index inside, in forms that this class
    /// does not take. ids may be null. `method` is for messages.
    void add_by(
            idx_t n,
            const idx_t* ids,
            const char* method,
            const std::function<void(IndexT&)>& add);

    /// Replaces vectors by a call of the index inside. add(index, order) adds
    /// the n vectors in this order of their numbers. Vectors without an id are
    /// added if `adds`, and are an error otherwise. Returns the number of
    /// replaced vectors.
    idx_t change_by(
            idx_t n,
            const idx_t* ids,
            const char* method,
            bool adds,
            const std::function<void(IndexT&, const std::vector<idx_t>& order)>&
                    add);
#endif

    /// Moves the vectors of another IndexIDTable to this one. add_id is added
    /// to their ids. The resulting ids must not be in use in this index.
    void merge_from(IndexT& other, idx_t add_id = 0) override;
    void check_compatible_for_merge(const IndexT& other) const override;

    void reset() override;

    /// Tells for each of n ids whether a vector has it.
    void contains(idx_t n, const idx_t* ids, bool* found) const;

    /// The position of the vector with an id, or -1. Positions change when
    /// vectors are removed.
    idx_t position_of(idx_t id) const;

    /// Replaces n positions by ids; -1 stays.
    void to_ids(idx_t n, idx_t* labels) const;

    /// Turns n ids into positions; -1 stays. Throws if no vector has an id.
    void to_positions(idx_t n, const idx_t* ids, idx_t* found) const;

    /// Makes a selector of positions from one of ids. Neither the index nor the
    /// selector may change while it is in use.
    std::unique_ptr<faiss::IDSelector> translated(
            const faiss::IDSelector& sel) const;

#if FAISS_EXT_HAS_NUMERIC_TYPES
    // FAISS's ID maps pass these calls to the index inside. This class passes
    // them to its own train, add, add_with_ids and search.
    void train_ex(idx_t n, const void* x, faiss::NumericType type) override {
        IndexT::train_ex(n, x, type);
    }
    void add_ex(idx_t n, const void* x, faiss::NumericType type) override {
        IndexT::add_ex(n, x, type);
    }
    void add_with_ids_ex(
            idx_t n,
            const void* x,
            faiss::NumericType type,
            const idx_t* xids) override {
        IndexT::add_with_ids_ex(n, x, type, xids);
    }
    void search_ex(
            idx_t n,
            const void* x,
            faiss::NumericType type,
            idx_t k,
            distance_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override {
        IndexT::search_ex(n, x, type, k, distances, labels, params);
    }
#endif

   private:
    mutable std::mutex mutex;
    mutable std::shared_ptr<IdPositions> known; ///< null: not needed so far

    IdPositions& positions() const;
    /// The name of a method for messages: that of the index whose ids these
    /// are, or of the table.
    std::string named(const char* method) const;
    [[noreturn]] void throw_cannot_remove() const;
    void check_unused(
            idx_t n,
            const idx_t* ids,
            const char* where,
            const char* hint) const;
    void make_room(idx_t n); ///< nothing fails between it and append
    void append(idx_t n, const idx_t* ids);
    idx_t id_at(idx_t position) const;
    /// Places of the vectors with the ids that a selector lists; nothing if it
    /// lists none, or more than `most`.
    std::optional<std::vector<idx_t>> listed_places(
            const faiss::IDSelector& sel,
            idx_t most) const;
    /// Places of the vectors whose ids are selected, ascending.
    std::vector<idx_t> places_of(const faiss::IDSelector& sel) const;

    idx_t change_vectors(
            idx_t n,
            const idx_t* ids,
            const component_t* x,
            const char* method,
            bool adds);
};

using IndexIDTable = IndexIDTableTemplate<faiss::Index>;
using IndexBinaryIDTable = IndexIDTableTemplate<faiss::IndexBinary>;

} // namespace faiss_ext
