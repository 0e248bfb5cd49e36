// SPDX-License-Identifier: MIT
// A hash table from ids to positions.

#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// Ids are any numbers but -1. Each is stored once; open addressing with linear
/// probing, at most two thirds full.
class IdPositions {
   public:
    /// Makes room for `n` ids in all.
    void reserve(size_t n) {
        if (3 * n > 2 * slots.size()) {
            grow(std::bit_ceil(3 * n / 2 + 1));
        }
    }

    /// Returns false, and changes nothing, if the id is there already.
    bool insert(idx_t id, idx_t position) {
        reserve(count + 1);
        Slot& slot = slots[place_of(id)];
        if (slot.id != none) {
            return false;
        }
        slot = {id, position};
        count++;
        return true;
    }

    /// Gives an id that is there another position.
    void move(idx_t id, idx_t position) {
        slots[place_of(id)].position = position;
    }

    /// Returns false if the id is not there.
    bool erase(idx_t id) {
        if (find(id) < 0) {
            return false;
        }
        const size_t mask = slots.size() - 1;
        size_t hole = place_of(id);
        for (size_t at = hole;;) {
            at = (at + 1) & mask;
            if (slots[at].id == none) {
                break;
            }
            // an entry moves back to the hole, but not to before its home
            const size_t from_home = (at - home_of(slots[at].id)) & mask;
            if (from_home >= ((at - hole) & mask)) {
                slots[std::exchange(hole, at)] = slots[at];
            }
        }
        slots[hole] = {};
        count--;
        return true;
    }

    /// Returns -1 if the id is not there.
    idx_t find(idx_t id) const {
        return slots.empty() || id == none ? -1 : slots[place_of(id)].position;
    }

   private:
    static constexpr idx_t none = -1;

    struct Slot {
        idx_t id = none, position = -1;
    };

    std::vector<Slot> slots; ///< a power of 2
    size_t count = 0;

    /// Returns the first slot in which an id may be.
    size_t home_of(idx_t id) const {
        constexpr uint64_t golden = 0x9e3779b97f4a7c15;
        const int bits = std::countr_zero(slots.size());
        return bits == 0 ? 0 : (uint64_t(id) * golden) >> (64 - bits);
    }

    /// Returns the slot of an id, or the empty one in which it belongs.
    size_t place_of(idx_t id) const {
        const size_t mask = slots.size() - 1;
        size_t place = home_of(id);
        while (slots[place].id != none && slots[place].id != id) {
            place = (place + 1) & mask;
        }
        return place;
    }

    void grow(size_t size) {
        const std::vector<Slot> before =
                std::exchange(slots, std::vector<Slot>(size));
        for (const Slot& slot : before) {
            if (slot.id != none) {
                slots[place_of(slot.id)] = slot;
            }
        }
    }
};

/// Returns whether every id is there once, and none is -1.
inline bool are_unique(const std::vector<idx_t>& ids) {
    const auto is_wrong = [](idx_t a, idx_t b) { return a >= b || a == -1; };
    if (std::adjacent_find(ids.begin(), ids.end(), is_wrong) == ids.end()) {
        return ids.empty() || ids.back() != -1; // they ascend
    }
    IdPositions seen;
    seen.reserve(ids.size());
    return std::all_of(ids.begin(), ids.end(), [&](idx_t id) {
        return id != -1 && seen.insert(id, 0);
    });
}

} // namespace faiss_ext
