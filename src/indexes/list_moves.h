// SPDX-License-Identifier: MIT
// Removal by places from FAISS's inverted lists whose ids are places.

#pragma once

#include <functional>
#include <typeinfo>
#include <vector>

#include <faiss/invlists/DirectMap.h>
#include <faiss/invlists/InvertedLists.h>

#include <faiss_ext/indexes/PlaceMoves.h>

namespace faiss_ext {

/// Whether a vector that may lie in a file is in memory (FAISS since 1.11).
template <class Vector>
bool is_in_memory(const Vector& v) {
    if constexpr (requires { v.is_owned; }) {
        return v.is_owned;
    } else {
        return true;
    }
}

/// Implements IndexClass::prepare_moves for a faiss::IndexIVF or
/// IndexBinaryIVF. It needs the direct map, and makes it if there is none.
template <class IVF>
std::function<void()> prepare_list_moves(IVF& ivf, const PlaceMoves& moves) {
    auto* lists = dynamic_cast<faiss::ArrayInvertedLists*>(ivf.invlists);
    if (!lists || typeid(*lists) != typeid(faiss::ArrayInvertedLists)) {
        return nullptr;
    }
    for (size_t l = 0; l < lists->nlist; l++) {
        if (!is_in_memory(lists->codes[l]) || !is_in_memory(lists->ids[l])) {
            return nullptr;
        }
    }
    if (ivf.direct_map.type != faiss::DirectMap::Array) {
        ivf.set_direct_map_type(faiss::DirectMap::Array);
    }
    return [&ivf, &moves, lists] {
        auto& places = ivf.direct_map.array;
        moves.for_removed([&](idx_t place) {
            const auto list = faiss::lo_listno(places[place]);
            const size_t offset = faiss::lo_offset(places[place]);
            const size_t last = lists->list_size(list) - 1;
            if (offset != last) {
                const idx_t id = lists->ids[list][last];
                lists->update_entry(
                        list,
                        offset,
                        id,
                        &lists->codes[list][last * lists->code_size]);
                places[id] = faiss::lo_build(list, offset);
            }
            lists->resize(list, last);
        });
        for (const auto [from, to] : moves.moves) {
            places[to] = places[from];
            lists->ids[faiss::lo_listno(places[to])]
                      [faiss::lo_offset(places[to])] = to;
        }
        places.resize(moves.after);
        ivf.ntotal = moves.after;
    };
}

} // namespace faiss_ext
