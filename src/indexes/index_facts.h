// SPDX-License-Identifier: MIT
// Access to the facts that classes of indexes tell about themselves.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <faiss_ext/indexes/index_tree.h>

namespace faiss_ext {

using IndexFacts = IndexClass<const AnyIndex>;

/// The facts about the class of an index, with those of its base classes and
/// the defaults of registered classes. The reference stays valid.
const IndexFacts& facts_of(const AnyIndex& index);

/// The facts about FAISS's classes and those of this library.
void register_known_index_classes();

/// Whether the class of an index has take_parts.
bool takes_parts(const AnyIndex& index);

/// Calls take_parts of the class of an index. Throws unless the index then has
/// these parts.
template <class IndexT>
void give_parts(IndexT& index, std::vector<std::unique_ptr<IndexT>> parts);

/// Whether nothing can stand in front of an index in a string.
bool comes_first(const AnyIndex& index);

/// The string of an index inside another one; empty if the factory would take
/// it for something else there: ID maps come first in a string, Refine last.
std::string string_inside(const AnyIndex& index);

/// The string of an index behind others; empty if that has none there.
std::string string_behind(const std::string& front, const AnyIndex& index);

/// The number of vectors that an index needs for its training; 0 if it is
/// trained.
idx_t least_training(const AnyIndex& index);

/// The table of ids that an index has of its own, or none.
AnyIndex id_table_of(const AnyIndex& index);

/// The ids by which an index knows its vectors, or none if these are positions.
std::optional<std::vector<idx_t>> ids_of(const AnyIndex& index);

/// For each of the ids, whether an index has a vector with it.
std::vector<bool> holds_ids(
        const AnyIndex& index,
        const std::vector<idx_t>& ids);

/// Whether searches of an index return only vectors that the selector of plain
/// search parameters selects.
bool selects(const AnyIndex& index);

/// Search parameters, without the selector, for a search among a part of all
/// vectors; see IndexClass.
std::unique_ptr<faiss::SearchParameters> params_for_selected(
        const AnyIndex& index,
        double selected);

/// The part of an index whose class has no prepare_moves, or the index itself.
AnyIndex part_that_keeps_places(const AnyIndex& index);

/// Calls prepare_moves of the class of an index; null if it has none.
std::function<void()> prepare_moves(
        const AnyIndex& index,
        const PlaceMoves& moves);

} // namespace faiss_ext
