// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/GraphPlaces.h>

#include <algorithm>
#include <numeric>

namespace faiss_ext {

void GraphPlaces::list(idx_t n) {
    if (are_equal()) {
        vertices.reserve(n);
        places.reserve(n);
        vertices.resize(n);
        places.resize(n);
        std::iota(vertices.begin(), vertices.end(), 0);
        std::iota(places.begin(), places.end(), 0);
    }
}

void GraphPlaces::reserve(idx_t ntotal, idx_t num_vertices) {
    const auto make_room = [](std::vector<int32_t>& v, size_t total) {
        if (total > v.capacity()) {
            v.reserve(std::max(total, 2 * v.size()));
        }
    };
    make_room(vertices, ntotal);
    make_room(places, num_vertices);
}

void GraphPlaces::append(const std::vector<int32_t>& added) {
    for (const int32_t vertex : added) {
        const auto place = int32_t(vertices.size());
        if (size_t(vertex) == places.size()) {
            places.push_back(place);
        } else {
            places[vertex] = place;
            unlinked.pop_back();
        }
        vertices.push_back(vertex);
    }
}

void GraphPlaces::apply(const PlaceMoves& moves) {
    moves.for_removed([&](idx_t place) { places[vertices[place]] = -1; });
    for (const auto [from, to] : moves.moves) {
        vertices[to] = vertices[from];
        places[vertices[to]] = int32_t(to);
    }
    vertices.resize(moves.after);
}

void GraphPlaces::remove_last(idx_t n) {
    for (; n > 0; n--) {
        places[vertices.back()] = -1;
        vertices.pop_back();
    }
}

void GraphPlaces::begin_pass() {
    std::vector<bool> are_unlinked(places.size());
    for (const int32_t vertex : unlinked) {
        are_unlinked[vertex] = true;
    }
    std::vector<int32_t> found;
    found.reserve(num_passed());
    for (size_t vertex = 0; vertex < places.size(); vertex++) {
        if (places[vertex] < 0 && !are_unlinked[vertex]) {
            found.push_back(int32_t(vertex));
        }
    }
    unlinked.reserve(unlinked.size() + found.size());
    leaving.swap(found);
    next_visited = 0;
}

void GraphPlaces::end_pass() {
    unlinked.insert(unlinked.end(), leaving.begin(), leaving.end());
    leaving.clear();
    next_visited = 0;
}

void GraphPlaces::find_vertices(idx_t ntotal) {
    const bool can_fit = size_t(ntotal) <= places.size();
    vertices.assign(can_fit ? ntotal : 0, -1);
    for (size_t vertex = 0; vertex < places.size(); vertex++) {
        if (places[vertex] >= 0 && size_t(places[vertex]) < vertices.size()) {
            vertices[places[vertex]] = int32_t(vertex);
        }
    }
}

bool GraphPlaces::fit(idx_t ntotal, idx_t num_vertices) const {
    if (are_equal()) {
        return vertices.empty() && unlinked.empty() && ntotal == num_vertices;
    }
    const auto is_vertex = [&](int32_t vertex) {
        return vertex >= 0 && vertex < num_vertices;
    };
    bool good = vertices.size() == size_t(ntotal) &&
            places.size() == size_t(num_vertices);
    for (idx_t place = 0; good && place < ntotal; place++) {
        good = is_vertex(vertices[place]) && places[vertices[place]] == place;
    }
    const auto num_removed = std::count(places.begin(), places.end(), -1);
    good = good && num_removed == num_vertices - ntotal;
    std::vector<bool> seen(good ? num_vertices : 0);
    for (size_t i = 0; good && i < unlinked.size(); i++) {
        good = is_vertex(unlinked[i]) && places[unlinked[i]] == -1 &&
                !seen[unlinked[i]];
        if (good) {
            seen[unlinked[i]] = true;
        }
    }
    return good;
}

} // namespace faiss_ext
