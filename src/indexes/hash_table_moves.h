// SPDX-License-Identifier: MIT
// Removal by places from FAISS's hash tables. It passes over all entries.

#pragma once

#include <cinttypes>
#include <cstring>
#include <functional>
#include <iterator>
#include <vector>

#include <faiss/IndexBinaryHash.h>

#include <faiss_ext/indexes/PlaceMoves.h>

#include "core/errors.h"
#include "indexes/index_facts.h"

namespace faiss_ext {

/// The ids in a bucket.
inline std::vector<idx_t>& ids_of_bucket(
        faiss::IndexBinaryHash::InvertedList& bucket) {
    return bucket.ids;
}
inline std::vector<idx_t>& ids_of_bucket(std::vector<idx_t>& bucket) {
    return bucket;
}

/// Keeps the entries of a bucket that stay, in their order.
inline void keep_entries(
        faiss::IndexBinaryHash::InvertedList& bucket,
        const std::vector<idx_t>& new_places) {
    if (bucket.ids.empty()) {
        return;
    }
    const size_t size = bucket.vecs.size() / bucket.ids.size();
    size_t kept = 0;
    for (size_t i = 0; i < bucket.ids.size(); i++) {
        const idx_t place = new_places[bucket.ids[i]];
        if (place >= 0) {
            std::memmove(
                    &bucket.vecs[kept * size], &bucket.vecs[i * size], size);
            bucket.ids[kept++] = place;
        }
    }
    bucket.ids.resize(kept);
    bucket.vecs.resize(kept * size);
}
inline void keep_entries(
        std::vector<idx_t>& bucket,
        const std::vector<idx_t>& new_places) {
    for (idx_t& id : bucket) {
        id = new_places[id];
    }
    std::erase(bucket, -1);
}

/// Throws unless the ids in a hash table are places of an index.
template <class Table>
void check_table(Table& table, idx_t ntotal) {
    idx_t count = 0;
    for (auto& [key, bucket] : table) {
        for (const idx_t id : ids_of_bucket(bucket)) {
            FAISS_EXT_THROW_IF_NOT_FMT(
                    id >= 0 && id < ntotal,
                    "remove_ids: the hash table has an id of its own, %" PRId64
                    "; reset the index and add the vectors again",
                    int64_t(id));
            count++;
        }
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            count == ntotal,
            "remove_ids: the hash table has %" PRId64
            " entries, expected %" PRId64,
            int64_t(count),
            int64_t(ntotal));
}

/// Removes entries by PlaceMoves::new_places. Does not fail.
template <class Table>
void move_in_table(Table& table, const std::vector<idx_t>& new_places) {
    for (auto entry = table.begin(); entry != table.end();) {
        keep_entries(entry->second, new_places);
        entry = ids_of_bucket(entry->second).empty() ? table.erase(entry)
                                                     : std::next(entry);
    }
}

/// Implements IndexClass::prepare_moves.
inline std::function<void()> prepare_table_moves(
        faiss::IndexBinaryHash& index,
        const PlaceMoves& moves) {
    check_table(index.invlists, index.ntotal);
    for (const auto& [key, bucket] : index.invlists) {
        FAISS_EXT_THROW_IF_NOT_MSG(
                bucket.vecs.size() == bucket.ids.size() * index.code_size,
                "remove_ids: a bucket of the hash table has more codes than ids, or fewer; reset the index and add the vectors again");
    }
    return [&index, &moves, places = moves.new_places()] {
        move_in_table(index.invlists, places);
        index.ntotal = moves.after;
    };
}

inline std::function<void()> prepare_table_moves(
        faiss::IndexBinaryMultiHash& index,
        const PlaceMoves& moves) {
    for (auto& table : index.maps) {
        check_table(table, index.ntotal);
    }
    const auto move_codes = prepare_moves(index.storage, moves);
    if (!move_codes) {
        return nullptr;
    }
    return [&index, &moves, move_codes, places = moves.new_places()] {
        for (auto& table : index.maps) {
            move_in_table(table, places);
        }
        move_codes();
        index.ntotal = moves.after;
    };
}

} // namespace faiss_ext
