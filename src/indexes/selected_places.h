// SPDX-License-Identifier: MIT
// Which vectors of an index a selector selects.

#pragma once

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

/// Vectors whose selection is looked at to estimate the selected part.
constexpr idx_t selection_sample = 2048;

/// How many of nlist lists a search visits if a part of the vectors is selected
/// and nprobe are visited without a selector. The nearest selected vectors lie
/// farther apart, in more lists.
idx_t nprobe_for_selected(size_t nprobe, size_t nlist, double selected);

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
