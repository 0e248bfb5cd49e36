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

} // namespace faiss_ext
