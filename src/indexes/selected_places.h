// SPDX-License-Identifier: MIT
// Which vectors of an index a selector selects.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include <faiss/impl/IDSelector.h>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// Returns the ids that a selector lists, ascending and each once. Returns
/// nothing for selectors that list none, or more than `most`.
std::optional<std::vector<idx_t>> listed_ids(
        const faiss::IDSelector& sel,
        size_t most);

/// Selects the given places among the first ntotal ones.
struct PlaceSelector : faiss::IDSelector {
    std::vector<idx_t> places; ///< ascending, each once

    /// The places may be in any order, and repeated.
    PlaceSelector(std::vector<idx_t> places, idx_t ntotal);

    bool is_member(idx_t place) const override {
        return uint64_t(place) < 64 * bits.size() &&
                bits[place / 64] >> (place % 64) & 1;
    }

    /// Selects the places from `begin` on.
    static PlaceSelector from(idx_t begin, idx_t ntotal);

   private:
    std::vector<uint64_t> bits;
};

/// Sampled vectors from which the selected share is estimated.
constexpr idx_t selection_sample = 2048;

/// The largest number of selected vectors that are compared exactly. Examining
/// as many selected vectors as a search without a selector examines would
/// hardly be faster. candidates: kept for a query without a selector
idx_t most_compared(double candidates, idx_t ntotal);

/// How many of nlist lists a search visits if a part of the vectors is selected
/// and nprobe are visited without a selector, so that it meets as many selected
/// vectors.
idx_t nprobe_for_selected(size_t nprobe, size_t nlist, double selected);

/** How many lists a search visits to meet as many selected vectors as nprobe
 * lists hold vectors on average. The nearest lists of a query may hold few of
 * them.
 */
class ListsForSelected {
   public:
    /**
     * Asks the selector for a sample of the vectors.
     *
     * @param size   size(list) is the number of vectors of a list
     * @param id_at  id_at(list, i) is the id of one
     */
    template <class Size, class IdAt>
    ListsForSelected(
            const faiss::IDSelector& sel,
            size_t nprobe,
            size_t nlist,
            idx_t ntotal,
            Size&& size,
            IdAt&& id_at)
            : nprobe(nprobe), selected(nlist) {
        const size_t most = std::max<size_t>(
                selection_sample, 8 * nlist / std::max<size_t>(1, nprobe));
        const size_t step = std::max<size_t>(1, ntotal / most);
        size_t at = 0, sampled = 0;
        for (size_t list = 0; list < nlist; list++) {
            for (; at < size(list); at += step) {
                sampled++;
                selected[list] += sel.is_member(id_at(list, at));
            }
            total += selected[list];
            at -= size(list);
        }
        enough = double(sampled) * double(nprobe) / double(nlist);
    }

    /// How many lists to rank at first.
    size_t first() const {
        // half of the queries need more than the average query
        const double lists = 2 * enough / double(std::max<size_t>(1, total)) *
                double(selected.size());
        return std::max(
                nprobe, size_t(std::min<double>(lists, selected.size())));
    }

    /// How many lists to rank next if n were too few.
    size_t more_than(size_t n) const {
        return std::min(4 * n, selected.size());
    }

    /// How many of the n nearest lists to visit: list_at(i) is the number of
    /// one, or negative. Returns nothing if n are too few.
    template <class ListAt>
    std::optional<size_t> visited(size_t n, ListAt&& list_at) const {
        double met = 0;
        for (size_t i = 0; i < n; i++) {
            if (i >= nprobe && met >= enough) {
                return i;
            }
            const auto list = list_at(i);
            met += list >= 0 && size_t(list) < selected.size() ? selected[list]
                                                               : 0;
        }
        return n == selected.size() || met >= enough ? std::optional(n)
                                                     : std::nullopt;
    }

   private:
    size_t nprobe, total = 0;
    std::vector<uint32_t> selected; ///< of each list, among the sampled ones
    double enough;
};

/// How many of ntotal places a selector selects.
struct Selected {
    /// The places, if there are at most `most`; ascending.
    std::optional<std::vector<idx_t>> few;
    /// The selected part of all vectors, estimated from a sample. At least
    /// 1 / ntotal.
    double fraction = 1;

    Selected(const faiss::IDSelector& sel, idx_t ntotal, idx_t most);
};

} // namespace faiss_ext
