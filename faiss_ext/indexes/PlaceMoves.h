// SPDX-License-Identifier: MIT
#pragma once

#include <utility>
#include <vector>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/** Which vectors of an index take the places of removed ones.
 *
 * An index that numbers its vectors by their places from 0 on has no holes. A
 * removal therefore moves the last vectors into the holes, so its time depends
 * on the number of removed vectors, not on the size of the index.
 */
struct PlaceMoves {
    idx_t before; ///< vectors before the removal
    idx_t after;  ///< vectors after it

    /// The places from which and to which a vector moves, by ascending `from`.
    /// from >= after > to
    struct Move {
        idx_t from, to;
    };
    std::vector<Move> moves;

    /// @param holes  places of the vectors to remove, ascending, each once
    PlaceMoves(idx_t ntotal, const std::vector<idx_t>& holes);

    /// The last of ntotal vectors take the places `to`, in their order.
    static PlaceMoves of_last(idx_t ntotal, const std::vector<idx_t>& to);

    /// Calls f with the place of each removed vector.
    template <class F>
    void for_removed(F&& f) const {
        auto move = moves.begin();
        for (idx_t place = after; place < before; place++) {
            if (move != moves.end() && move->from == place) {
                f((move++)->to);
            } else {
                f(place);
            }
        }
    }

    /// For each place before the removal, the place after it, or -1.
    std::vector<idx_t> new_places() const;

    /// Moves rows of `size` bytes.
    void apply_to(uint8_t* rows, size_t size) const;

   private:
    PlaceMoves() = default;
};

} // namespace faiss_ext
