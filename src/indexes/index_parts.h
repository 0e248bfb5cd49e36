// The indexes that an index of FAISS, or of this library, is made of.

#pragma once

#include <vector>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>
#include <faiss/VectorTransform.h>

namespace faiss_ext {

/// Those directly inside IndexIDMap, IndexPreTransform, IndexRefine, IndexHNSW,
/// IndexShards and IndexReplicas; none for other classes.
std::vector<const faiss::Index*> parts_of(const faiss::Index& index);
std::vector<const faiss::IndexBinary*> parts_of(
        const faiss::IndexBinary& index);

/// The transformations of a faiss::IndexPreTransform; none for other classes.
std::vector<const faiss::VectorTransform*> transforms_of(
        const faiss::Index& index);

/// Whether labels of searches are positions, from 0 to ntotal - 1, as
/// IndexIDMap and IndexRefine expect of the index that they stand in front of.
/// FAISS's own lists are not looked into. True for no index.
bool labels_are_positions(const faiss::Index* index);
bool labels_are_positions(const faiss::IndexBinary* index);

/// Has an index compute a distance, if it has vectors. One that cannot throws;
/// inside FAISS's parallel loops that would end the process.
void check_computes_distances(const faiss::Index& index);

} // namespace faiss_ext
