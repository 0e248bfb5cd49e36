// SPDX-License-Identifier: MIT
// Checks an index of FAISS or of this library, and the indexes inside it.

#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>
#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexIVF.h>
#include <faiss/VectorTransform.h>
#include <faiss/impl/HNSW.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/index_tree.h>

#include "core/errors.h"

namespace faiss_ext {

/// Throws if an IndexIDMap calls remove_ids of an index that keeps ids, since
/// the map assumes renumbering and would return wrong ids. Calls
/// check_no_blocks.
void check_removal(
        const AnyIndex& index,
        const faiss::IDSelector& sel,
        const char* where);

/// Whether FAISS's inverted lists in an index keep ids that no table can
/// translate, because their vectors cannot move to other ids: lists that store
/// more than their entries, or in blocks, such as `IVF,PQx4fs`.
bool has_unmovable_lists(const AnyIndex& index);

/// The ids of n new vectors for such lists: these ids, or, if null, the next
/// ones after all in the lists. Throws if an id is -1, in use, given twice, or
/// out of range.
std::vector<idx_t> ids_for_lists(
        const AnyIndex& index,
        idx_t n,
        const idx_t* ids,
        const std::string& where);

/// Throws if an id of the other index, plus add_id, is in use in such lists, or
/// out of range.
void check_ids_of_merge(
        const AnyIndex& index,
        const AnyIndex& other,
        idx_t add_id,
        const std::string& where);

/// Throws UnsupportedError if FAISS can only add vectors to the lists inside
/// and search them, such as the lists of `IVF,PQx4fs` in 1.7.3. Other calls
/// would end the process.
void check_no_blocks(const AnyIndex& index, const char* where);

/// Calls f with an index and all its parts, in the order of its string.
template <class F>
void for_all_parts(const AnyIndex& index, F&& f) {
    f(index);
    for (const IndexPart& part : parts_of(index)) {
        if (part.index) {
            for_all_parts(part.index, f);
        }
    }
}

/// Calls f with FAISS's inverted lists in an index.
template <class F>
void for_lists(const AnyIndex& index, F&& f) {
    if (const auto* lists = index.as<faiss::IndexIVF>()) {
        f(*lists);
    } else if (const auto* codes = index.as<faiss::IndexBinaryIVF>()) {
        f(*codes);
    }
    for (const IndexPart& part : parts_of(index)) {
        if (part.is_searched && part.index) {
            for_lists(part.index, f);
        }
    }
}

/// Throws UnsupportedError if FAISS's inverted lists in an index cannot decode
/// their vectors. Calls check_no_blocks.
void check_decodes(const AnyIndex& index, const char* where);

/// Throws if FAISS's inverted lists in an index are mapped from a file.
void check_lists_not_mapped(const AnyIndex& index, const char* where);

/// Whether FAISS's inverted lists in an index have a direct map. With one,
/// FAISS neither merges them nor, if it is an array, removes from them.
bool has_direct_map(const AnyIndex& index);

/// Makes these maps, for lists without one.
void make_direct_maps(const AnyIndex& index);

/// Removes these maps. A removal behind an IndexIDTable makes them again.
void forget_direct_maps(const AnyIndex& index);

/// Returns the next id, at least 0. The largest id has no next one and is
/// returned itself.
inline idx_t above(idx_t id) {
    return std::clamp<idx_t>(id, -1, std::numeric_limits<idx_t>::max() - 1) + 1;
}

/// Throws unless n ids are free from `next` on.
void check_free_ids(idx_t next, idx_t n, const char* where);

/// The id that a plain add gives to its first vector. It is ntotal for indexes
/// that number vectors by position, and for BIVF from a file, which does not
/// know the ids of removed vectors.
idx_t next_new_id(const AnyIndex& index);

/// id + add_id; throws if that is out of range, or -1.
idx_t shifted_id(idx_t id, idx_t add_id, const char* where);

/// Throws if one of n ids is -1. ids may be null.
void check_new_ids(idx_t n, const idx_t* ids, const char* where);

/// Returns whether the labels of searches are in [0, limit). IndexIDMap and
/// IndexRefine use the labels of the inner index as positions. An index with
/// `limit` vectors that has ids of its own must have each label once. FAISS's
/// own lists are not inspected. No index gives true.
bool labels_are_below(const AnyIndex& index, idx_t limit);

/// Returns whether the sizes of a graph match the number of its vectors and it
/// has an entry point. Otherwise a search or an addition would read beyond its
/// arrays.
bool graph_fits(const faiss::HNSW& hnsw, idx_t num_vertices, bool has_entry);

/** Checks vectors before they are passed to a class of FAISS. Throws if they
 * are not finite or their squares would overflow: FAISS's k-means and lists
 * would end the process, and its distances would be wrong. Also throws if the
 * graph of a faiss::IndexHNSW does not fit its vectors. Classes of this library
 * check their own input.
 */
void check_faiss_input(
        const faiss::Index& index,
        idx_t n,
        const float* x,
        const char* where);
void check_faiss_input(
        const faiss::VectorTransform& vt,
        idx_t n,
        const float* x,
        const char* where);

/// Throws if a class of FAISS would be trained with no vectors, since its
/// scalar quantizers would end the process, or with fewer than lists.
void check_training(const AnyIndex& index, idx_t n, const char* where);

/// Throws if search parameters are not of the class that FAISS's flat indexes,
/// scalar quantizers, lists or graphs want. Indexes of this library check them
/// in search.
void check_params_for(
        const faiss::Index& index,
        const faiss::SearchParameters* params,
        const char* where);
void check_params_for(
        const faiss::IndexBinary& index,
        const faiss::SearchParameters* params,
        const char* where);

/** Describes how the vector count of an index differs from the counts of the
 * parts directly inside it. Returns an empty string if they agree. They differ
 * if vectors were added to a part, or removed from it, by a call of the part
 * itself.
 */
std::string unequal_counts(const AnyIndex& index);

/// Throws if the counts differ; the message says how to correct that. Call it
/// first in every function that reads or changes the vectors of an index with
/// parts.
void check_counts(const AnyIndex& index);

/// check_counts for an index of a known class with these parts. It returns at
/// once if their counts agree.
template <class IndexT, class... Parts>
void check_counts_with(const IndexT& index, const Parts*... parts) {
    if ((... || (!parts || parts->ntotal != index.ntotal))) {
        check_counts(index);
    }
}

/// Applies check_counts to an index and to all indexes inside it.
void check_all_counts(const AnyIndex& index);

/// Throws if an index with vectors cannot compute the distance to a vector by
/// its position. Inside FAISS's parallel loops this would end the process.
void check_computes_distances(const faiss::Index& index);

} // namespace faiss_ext
