// SPDX-License-Identifier: MIT
// Changes of the graph of a faiss::HNSW: new vertices, and links past removed
// ones.

#pragma once

#include <cstdint>
#include <vector>

#include <faiss/impl/HNSW.h>

#include <faiss_ext/indexes/GraphPlaces.h>

#include "indexes/vertex_scores.h"

namespace faiss_ext {

/** Links vertices, which have no links so far, to the graph and to each other.
 * Their levels are set already.
 *
 * Vertices are inserted in rounds, from the highest level down and in random
 * order within a level, as in FAISS. On all threads, the vertices of a round
 * search the graph as it was before the round, and also compare themselves with
 * the earlier vertices of the round. Then all of them are linked. Hence the
 * graph does not depend on the number of threads.
 *
 * This is prefix doubling (Manohar et al., "ParlayANN", PPoPP 2024), which does
 * not compare the vertices of a round with each other.
 *
 * No vertex gets a link to a removed one.
 *
 * @param scores      of all vertices
 * @param num_linked  number of vertices that the graph links already
 */
void link_vertices(
        faiss::HNSW& hnsw,
        const VertexScores& scores,
        const GraphPlaces& places,
        std::vector<int32_t> vertices,
        size_t num_linked);

/** Visits some vertices, if at least a 64th of all are removed and passed, and
 * links them past these. Each call goes on at the vertex after the last one
 * visited before. Once all were visited, no link leads to a vertex that was
 * removed before the first of these calls: it is unlinked.
 *
 * Each link to a removed vertex is replaced by one to a vertex that the removed
 * one links to, which links back. This is the nearest of those that are nearer
 * to the removed vertex, so that links between clusters stay. The first 16 are
 * compared. A graph keeps about as many links as it had. The consolidation of
 * FreshDiskANN (Singh et al., arXiv 2105.09613, algorithm 4) selects all links
 * of such vertices again, which leaves fewer.
 *
 * If it fails, the vertices are visited again by the next call.
 *
 * @param num_visits  how many vertices to visit
 */
void link_past_removed(
        faiss::HNSW& hnsw,
        const VertexScores& scores,
        GraphPlaces& places,
        size_t num_visits);

} // namespace faiss_ext
