// SPDX-License-Identifier: MIT
// The index behind a table of ids that belongs to another index.

#pragma once

#include <string>
#include <utility>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/index_tree.h>

#include "core/errors.h"
#include "indexes/index_facts.h"

namespace faiss_ext {

/// Knows the vectors of another index, its owner, by their positions. See
/// with_ids.h.
template <class IndexT>
struct IndexPositions : IndexT {
    IndexT* owner;
    std::string owner_name; ///< the class of the owner, for messages

    /// The index whose methods run in this thread, called by the table of its
    /// ids.
    static thread_local const void* inside;

    IndexPositions(IndexT& index, const std::string& name)
            : owner(&index), owner_name(name) {
        static_cast<IndexT&>(*this) = index;
    }
};

template <class IndexT>
thread_local const void* IndexPositions<IndexT>::inside = nullptr;

/// While it lives, calls of an index by this thread mean positions. The pointer
/// is to the class of the index, without its table of ids.
template <class IndexT>
struct InsideStep {
    const void* before;
    explicit InsideStep(const void* index)
            : before(std::exchange(IndexPositions<IndexT>::inside, index)) {}
    ~InsideStep() {
        IndexPositions<IndexT>::inside = before;
    }
    InsideStep(const InsideStep&) = delete;
    InsideStep& operator=(const InsideStep&) = delete;
};

/// The id that add gives to the next vector of an index without a table.
idx_t next_id_of_lists(const AnyIndex& index);

/// Whether inverted lists or a part of an index keep ids, if it has no table.
bool lists_keep_ids(const AnyIndex& index);

/// Whether the ids of an index without a table are positions, also those of new
/// vectors. False if the ids are not known.
bool ids_are_positions(const AnyIndex& index);

/// Whether an index inside another one has a table of ids.
bool part_has_table(const AnyIndex& index);

/// Throws unless two indexes are trained. FAISS's lists need it.
void check_trained_for_merge(const AnyIndex& index, const AnyIndex& other);

/// Throws unless two indexes are trained, and if a merge by positions would
/// lose the ids of the other index. A table may merge its own index by
/// positions.
template <class C, class IndexT>
void check_before_merge(const C& index, const IndexT& other) {
    check_trained_for_merge(index, other);
    const bool is_of_tables = IndexPositions<IndexT>::inside == &index;
    FAISS_EXT_THROW_IF_NOT_MSG(
            is_of_tables || !id_table_of(other),
            "cannot merge: the other index has a table of ids; an index that a factory string makes can have one, too");
}

} // namespace faiss_ext
