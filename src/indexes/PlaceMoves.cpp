// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/PlaceMoves.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace faiss_ext {

PlaceMoves::PlaceMoves(idx_t ntotal, const std::vector<idx_t>& holes)
        : before(ntotal), after(ntotal - idx_t(holes.size())) {
    const auto first_of_last =
            std::lower_bound(holes.begin(), holes.end(), after);
    moves.reserve(first_of_last - holes.begin());
    auto removed = first_of_last;
    idx_t from = after;
    for (auto to = holes.begin(); to != first_of_last; ++to, ++from) {
        while (removed != holes.end() && *removed == from) {
            ++removed;
            ++from;
        }
        moves.push_back({from, *to});
    }
}

PlaceMoves PlaceMoves::of_last(idx_t ntotal, const std::vector<idx_t>& to) {
    PlaceMoves result;
    result.before = ntotal;
    result.after = ntotal - idx_t(to.size());
    result.moves.reserve(to.size());
    idx_t from = result.after;
    for (const idx_t place : to) {
        result.moves.push_back({from++, place});
    }
    return result;
}

std::vector<idx_t> PlaceMoves::new_places() const {
    std::vector<idx_t> places(before);
    std::iota(places.begin(), places.end(), idx_t(0));
    for_removed([&](idx_t place) { places[place] = -1; });
    for (const auto [from, to] : moves) {
        places[from] = to;
    }
    return places;
}

void PlaceMoves::apply_to(uint8_t* rows, size_t size) const {
    for (const auto [from, to] : moves) {
        std::memcpy(rows + to * size, rows + from * size, size);
    }
}

} // namespace faiss_ext
