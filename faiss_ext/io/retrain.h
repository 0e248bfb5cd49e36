// SPDX-License-Identifier: MIT
// Training an index again when its vectors have drifted away from those that it
// was trained on.

#pragma once

#include <memory>

#include <faiss/Index.h>

#include <faiss_ext/core/SparseVectors.h>
#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/** Makes a new index with the vectors of another one, and trains all its parts
 * again: maps, PCA, lists, codebooks, landmarks, centres, ranges and
 * bandwidths.
 *
 * The new index has the same string, metric, metric_arg, search parameters,
 * efConstruction and clustering parameters. Its vectors have the same ids and
 * the same positions, and add continues with the same id. A bandwidth, rank,
 * scale or number of parts that training has chosen is chosen again; one that
 * was given stays. Landmarks are drawn again, even if set_landmarks has set
 * them. The frequencies of a FrequencyMap or FrequencyHash stay, and so does a
 * CallbackKernel in KFlat. The given index does not change, and threads may
 * search it meanwhile.
 *
 * The index must keep its vectors in Refine(KFlat(...)) or RFlat, or be a
 * KFlat, a Flat, a graph over one of them, or an IVF<n>,Flat. The vectors of
 * IVF are added by ascending id; index_ids gives them list by list, so in
 * another order than before. The new index gets the vectors of Refine bit by
 * bit as they are stored, and its other parts encode them anew. It is the index
 * that its string would make with the same training and additions, if these are
 * the stored vectors in blocks of at most 65,536.
 *
 * Throws UnsupportedError if the vectors are not kept, for shards and replicas,
 * and for indexes without a factory string (index_string). A CallbackKernel
 * inside another kernel, a map or a hash has none.
 *
 * @param x  training vectors, size n * d
 */
std::unique_ptr<faiss::Index> retrained(
        const faiss::Index& index,
        idx_t n,
        const float* x);

/// The same with sparse vectors, for an index that takes them.
std::unique_ptr<faiss::Index> retrained(
        const faiss::Index& index,
        const SparseVectors& x);

/// The same with a random sample of the index's own vectors: at most n, and at
/// most 1 GB.
std::unique_ptr<faiss::Index> retrained_on_sample(
        const faiss::Index& index,
        idx_t n = 100000,
        int64_t seed = 1234);

} // namespace faiss_ext
