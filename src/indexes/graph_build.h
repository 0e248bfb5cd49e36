// SPDX-License-Identifier: MIT
// Insertion into the graph of a faiss::HNSW.

#pragma once

#include <faiss/impl/HNSW.h>

#include <faiss_ext/indexes/IndexFlatKernel.h>

namespace faiss_ext {

/** Links the stored vectors from n0 on, whose levels are drawn unless they are
 * set already.
 *
 * Vertices come in rounds, from the highest level down and in random order
 * within one (the order of FAISS). Those of a round look for neighbours in the
 * graph as it was before and among those that come before them in the round, on
 * all threads; then all of them are linked. So the graph does not depend on the
 * number of threads. (Prefix doubling: Manohar et al., "ParlayANN", PPoPP 2024,
 * which leaves the other vertices of a round out.)
 */
void build_graph(faiss::HNSW& hnsw, const IndexFlatKernel& vectors, idx_t n0);

} // namespace faiss_ext
