// SPDX-License-Identifier: MIT
// Removal by places from FAISS's inverted lists whose ids are places.

#pragma once

#include <cinttypes>
#include <functional>
#include <type_traits>
#include <typeinfo>

#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexIVFAdditiveQuantizer.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/invlists/DirectMap.h>
#include <faiss/invlists/InvertedLists.h>

#include <faiss_ext/indexes/IndexBinaryIVFSIMD.h>
#include <faiss_ext/indexes/PlaceMoves.h>

#include "core/errors.h"
#include "indexes/index_compat.h"
#include "indexes/ivf_fields.h"

namespace faiss_ext {

/// Whether the vectors in inverted lists can move to other ids. Other classes
/// store more than their entries.
template <class IVF>
bool has_movable_vectors(const IVF& ivf) {
    if (invlists_of(ivf) &&
        typeid(*invlists_of(ivf)) != typeid(faiss::ArrayInvertedLists)) {
        return false;
    }
    if constexpr (std::is_same_v<IVF, faiss::IndexBinaryIVF>) {
        return typeid(ivf) == typeid(faiss::IndexBinaryIVF) ||
                dynamic_cast<const IndexBinaryIVFSIMD*>(&ivf);
    } else {
        return typeid(ivf) == typeid(faiss::IndexIVFFlat) ||
                typeid(ivf) == typeid(faiss::IndexIVFPQ) ||
                typeid(ivf) == typeid(faiss::IndexIVFScalarQuantizer) ||
                typeid(ivf) == typeid(faiss::IndexIVFResidualQuantizer) ||
                typeid(ivf) == typeid(faiss::IndexIVFLocalSearchQuantizer);
    }
}

/// Implements IndexClass::prepare_moves for a faiss::IndexIVF or
/// IndexBinaryIVF. It needs the direct map, and makes it if there is none.
template <class IVF>
std::function<void()> prepare_list_moves(IVF& ivf, const PlaceMoves& moves) {
    auto* lists = dynamic_cast<faiss::ArrayInvertedLists*>(invlists_of(ivf));
    if (!lists || typeid(*lists) != typeid(faiss::ArrayInvertedLists)) {
        return nullptr;
    }
    for (size_t l = 0; l < lists->nlist; l++) {
        if (!is_in_memory(lists->codes[l]) || !is_in_memory(lists->ids[l])) {
            return nullptr;
        }
    }
    faiss::DirectMap& map = direct_map_of(ivf);
    if (map.type != faiss::DirectMap::Array) {
        try {
            ivf.set_direct_map_type(faiss::DirectMap::Array);
        } catch (...) {
            map.type = faiss::DirectMap::NoMap;
            map.array.clear();
            throw;
        }
    }
    const auto check = [&](idx_t place) {
        if (place >= ivf.ntotal) {
            return; // added before the change
        }
        const idx_t at =
                size_t(place) < map.array.size() ? map.array[place] : -1;
        const size_t list = at < 0 ? lists->nlist : faiss::lo_listno(at);
        FAISS_EXT_THROW_IF_NOT_FMT(
                list < lists->nlist &&
                        size_t(faiss::lo_offset(at)) <
                                lists->ids[list].size() &&
                        lists->ids[list][faiss::lo_offset(at)] == place,
                "remove_ids: the inverted lists have no vector with id %" PRId64,
                int64_t(place));
    };
    moves.for_removed(check);
    for (const auto& move : moves.moves) {
        check(move.from);
    }
    return [&ivf, &moves, lists] {
        auto& places = direct_map_of(ivf).array;
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
