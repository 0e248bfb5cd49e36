// SPDX-License-Identifier: MIT
// The indexes that an index of FAISS, or of this library, is made of.

#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>
#include <faiss/VectorTransform.h>
#include <faiss/impl/HNSW.h>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// Those directly inside IndexIDMap, IndexPreTransform, IndexRefine, IndexHNSW,
/// IndexShards and IndexReplicas; none for other classes.
std::vector<const faiss::Index*> parts_of(const faiss::Index& index);
std::vector<const faiss::IndexBinary*> parts_of(
        const faiss::IndexBinary& index);

/// The transformations of a faiss::IndexPreTransform; none for other classes.
std::vector<const faiss::VectorTransform*> transforms_of(
        const faiss::Index& index);

/// Whether an index takes ids, and keeps those of what is left after a removal,
/// as inverted lists do; flat indexes number it anew.
bool keeps_ids(const faiss::Index& index);
bool keeps_ids(const faiss::IndexBinary& index);

/// Throws if an IndexIDMap calls remove_ids of an index that keeps ids: the map
/// takes what is left to be numbered anew, and would return wrong ids.
template <class IndexT>
void check_removal(
        const IndexT& index,
        const faiss::IDSelector& sel,
        const char* where);

/// The id after another one, at least 0; the largest one if there is none.
inline idx_t above(idx_t id) {
    return std::clamp<idx_t>(id, -1, std::numeric_limits<idx_t>::max() - 1) + 1;
}

/// Throws if there are no n ids from `next` on.
void check_free_ids(idx_t next, idx_t n, const char* where);

/// The id that a plain add gives to its first vector. It is ntotal for indexes
/// that number vectors by position, and for BIVF from a file, which does not
/// know the ids of removed vectors.
idx_t next_new_id(const faiss::Index& index);
idx_t next_new_id(const faiss::IndexBinary& index);

/// id + add_id; throws if that is out of range, or -1.
idx_t shifted_id(idx_t id, idx_t add_id, const char* where);

/// Throws if an id is in both lists, naming the first of `added` that is.
void check_disjoint_ids(
        std::vector<idx_t> present,
        const std::vector<idx_t>& added,
        const char* where);

/// Throws if one of n ids, if there are any, is -1.
void check_new_ids(idx_t n, const idx_t* ids, const char* where);

/// Whether labels of searches are below a limit, and not negative: IndexIDMap
/// and IndexRefine take labels of the index inside for positions. Those of an
/// IndexIVFPQ4 with as many vectors have to be there once each. FAISS's own
/// lists are not looked into. True for no index.
bool labels_are_below(const faiss::Index* index, idx_t limit);
bool labels_are_below(const faiss::IndexBinary* index, idx_t limit);

/// Whether the sizes of a graph fit the number of its vectors, and it has an
/// entry point: a search or an addition would read beyond its arrays if not.
bool graph_fits(const faiss::HNSW& hnsw, idx_t ntotal);

/** Throws if vectors that a class of FAISS is to take are not finite, or their
 * squares would overflow: its k-means and its lists end the process then, and
 * its distances are wrong. Throws as well if the graph of a faiss::IndexHNSW
 * does not fit its vectors. Classes of this library check what they take.
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

/// Throws if search parameters are of a class that FAISS's flat indexes, scalar
/// quantizers or graphs ignore. Indexes of this library check them in search.
void check_params_for(
        const faiss::Index& index,
        const faiss::SearchParameters* params,
        const char* where);
void check_params_for(
        const faiss::IndexBinary& index,
        const faiss::SearchParameters* params,
        const char* where);

/** Says how the counts of vectors of an index and of the parts directly inside
 * it differ; empty if they agree. Vectors that were added to a part, or removed
 * from it, behind the back of the index make them differ.
 */
std::string unequal_counts(const faiss::Index& index);
std::string unequal_counts(const faiss::IndexBinary& index);

/// Throws if the counts differ, and says how to mend that. Every function that
/// reads or changes the vectors of an index with parts begins with it.
void check_counts(const faiss::Index& index);
void check_counts(const faiss::IndexBinary& index);

/// check_counts of an index of a known class, whose parts are these: at once if
/// their counts agree.
template <class IndexT, class... Parts>
void check_counts_with(const IndexT& index, const Parts*... parts) {
    if ((... || (!parts || parts->ntotal != index.ntotal))) {
        check_counts(index);
    }
}

/// check_counts of an index and of all indexes inside it.
void check_all_counts(const faiss::Index& index);
void check_all_counts(const faiss::IndexBinary& index);

/// Throws where an index with vectors cannot compute the distance to each of
/// them by its position; inside FAISS's parallel loops that would end the
/// process.
void check_computes_distances(const faiss::Index& index);

} // namespace faiss_ext
