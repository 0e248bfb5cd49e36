// SPDX-License-Identifier: MIT
// Inserts vectors into the graph of a faiss::HNSW.

#pragma once

#include <faiss/impl/HNSW.h>

#include <faiss_ext/indexes/IndexFlatKernel.h>

namespace faiss_ext {

/** Links the stored vectors from n0 on. Levels are drawn unless they are set
 * already.
 *
 * Vertices are inserted in rounds, from the highest level down and in random
 * order within a level, as in FAISS. On all threads, the vertices of a round
 * search the graph as it was before the round, and also compare themselves with
 * the earlier vertices of the round. Then all of them are linked. Hence the
 * graph does not depend on the number of threads.
 *
 * This is prefix doubling (Manohar et al., "ParlayANN", PPoPP 2024), which does
 * not compare the vertices of a round with each other.
 */
void build_graph(faiss::HNSW& hnsw, const IndexFlatKernel& vectors, idx_t n0);

} // namespace faiss_ext
