// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/PlaceMoves.h>

namespace faiss_ext {

/** Which vertices of a graph belong to the vectors of an index.
 *
 * An index numbers its vectors by their places from 0 on. The vertex of a
 * removed vector stays in the graph, because paths to other vertices lead
 * through it. Hence the vertices and the places differ after a removal.
 *
 * Until the first removal all vectors are empty, and each place is the vertex
 * of the same number.
 */
struct GraphPlaces {
    std::vector<int32_t> vertices; ///< by place
    std::vector<int32_t> places;   ///< by vertex; -1 if its vector was removed
    /// Removed vertices that no link leads to. New vectors get the last of them
    /// first.
    std::vector<int32_t> unlinked;

    /// Removed vertices that a pass over all vertices is unlinking, ascending.
    /// The other vertices before `next_visited` have no links to them. Files
    /// store neither of the two. An index that was read from a file begins such
    /// a pass again.
    std::vector<int32_t> leaving;
    idx_t next_visited = 0;

    /// Whether vertices and places are equal.
    bool are_equal() const {
        return places.empty();
    }

    int32_t vertex(idx_t place) const {
        return are_equal() ? int32_t(place) : vertices[place];
    }

    /// The place of a vertex, or -1 if its vector was removed.
    idx_t place(int32_t vertex) const {
        return are_equal() ? vertex : places[vertex];
    }

    /// Number of removed vertices that links may lead to.
    idx_t num_passed() const {
        return idx_t(places.size() - vertices.size() - unlinked.size());
    }

    /// Gives each of n vertices the place of the same number, if none was
    /// removed so far. Does not fail after `reserve`.
    void list(idx_t n);

    /// Allocates memory for vectors and vertices.
    void reserve(idx_t ntotal, idx_t num_vertices);

    /// Gives new vertices the next places. The vertices must be new, or the
    /// last unlinked ones in reverse order. Does not fail after `reserve`.
    void append(const std::vector<int32_t>& added);

    /// Removes vectors by their places. Does not fail.
    void apply(const PlaceMoves& moves);

    /// Removes the last vectors. Does not fail.
    void remove_last(idx_t n);

    /// Begins a pass that unlinks the vertices removed so far.
    void begin_pass();

    /// Adds the vertices of `leaving` to `unlinked`. Does not fail.
    void end_pass();

    /// Computes `vertices` from `places`, if they belong to ntotal vectors.
    void find_vertices(idx_t ntotal);

    /// Whether the numbers are valid for an index of ntotal vectors and a graph
    /// of num_vertices vertices.
    bool fit(idx_t ntotal, idx_t num_vertices) const;
};

} // namespace faiss_ext
