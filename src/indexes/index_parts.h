// SPDX-License-Identifier: MIT
// The indexes that an index of FAISS, or of this library, is made of.

#pragma once

#include <vector>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>
#include <faiss/VectorTransform.h>

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

/// Whether labels of searches are below a limit, and not negative: IndexIDMap
/// and IndexRefine take labels of the index inside for positions. Those of an
/// IndexIVFPQ4 with as many vectors have to be there once each. FAISS's own
/// lists are not looked into. True for no index.
bool labels_are_below(const faiss::Index* index, idx_t limit);
bool labels_are_below(const faiss::IndexBinary* index, idx_t limit);

/** Throws if vectors that a class of FAISS is to take are not finite, or their
 * squares would overflow: its k-means and its lists end the process then, and
 * its distances are wrong. Classes of this library check what they take.
 */
void check_for(
        const faiss::Index& index,
        idx_t n,
        const float* x,
        const char* where);
void check_for(
        const faiss::VectorTransform& vt,
        idx_t n,
        const float* x,
        const char* where);

/// Throws where an index with vectors cannot compute the distance to each of
/// them by its position; inside FAISS's parallel loops that would end the
/// process.
void check_computes_distances(const faiss::Index& index);

} // namespace faiss_ext
