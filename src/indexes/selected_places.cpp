// SPDX-License-Identifier: MIT
#include "indexes/selected_places.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <typeinfo>
#include <utility>

namespace faiss_ext {

namespace {

/// Returns a selector as one of this very class, or null.
template <class Selector>
const Selector* exactly(const faiss::IDSelector& sel) {
    return typeid(sel) == typeid(Selector) ? dynamic_cast<const Selector*>(&sel)
                                           : nullptr;
}

std::vector<idx_t> sorted_once(std::vector<idx_t> ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
}

/// Calls f(place) for up to `count` different places of 0 to ntotal - 1 that
/// look random.
template <class F>
void for_sample(idx_t ntotal, idx_t count, F&& f) {
    // steps of a fraction near the golden ratio spread evenly, and meet no
    // period of the data
    idx_t step = std::max<idx_t>(1, idx_t(double(ntotal) * 0.6180339887498949));
    while (std::gcd(step, ntotal) != 1) {
        step++;
    }
    idx_t place = 0;
    for (idx_t i = 0; i < std::min(count, ntotal); i++) {
        f(place);
        place += step;
        place -= place >= ntotal ? ntotal : 0;
    }
}

} // namespace

std::optional<std::vector<idx_t>> listed_ids(
        const faiss::IDSelector& sel,
        size_t most) {
    if (const auto* some = exactly<PlaceSelector>(sel)) {
        if (some->places.size() <= most) {
            return some->places;
        }
    } else if (const auto* some = exactly<faiss::IDSelectorBatch>(sel)) {
        if (some->set.size() <= most) {
            return sorted_once({some->set.begin(), some->set.end()});
        }
    } else if (const auto* some = exactly<faiss::IDSelectorBitmap>(sel)) {
        std::vector<idx_t> ids;
        for (size_t i = 0; i < some->n; i++) {
            if (ids.size() + std::popcount(some->bitmap[i]) > most) {
                return std::nullopt;
            }
            for (unsigned bits = some->bitmap[i]; bits; bits &= bits - 1) {
                ids.push_back(idx_t(8 * i) + std::countr_zero(bits));
            }
        }
        return ids;
    } else if (const auto* some = exactly<faiss::IDSelectorArray>(sel)) {
        if (some->n <= most) {
            return sorted_once({some->ids, some->ids + some->n});
        }
    } else if (const auto* some = exactly<faiss::IDSelectorRange>(sel)) {
        const uint64_t n = some->imax > some->imin
                ? uint64_t(some->imax) - uint64_t(some->imin)
                : 0;
        if (n <= most) {
            std::vector<idx_t> ids(n);
            std::iota(ids.begin(), ids.end(), some->imin);
            return ids;
        }
    }
    return std::nullopt;
}

PlaceSelector::PlaceSelector(std::vector<idx_t> given, idx_t ntotal)
        : places(sorted_once(std::move(given))), bits((ntotal + 63) / 64) {
    for (const idx_t place : places) {
        bits[place / 64] |= uint64_t(1) << (place % 64);
    }
}

PlaceSelector PlaceSelector::from(idx_t begin, idx_t ntotal) {
    std::vector<idx_t> places(ntotal - begin);
    std::iota(places.begin(), places.end(), begin);
    return PlaceSelector(std::move(places), ntotal);
}

idx_t most_compared(double candidates, idx_t ntotal) {
    constexpr idx_t few = 16384;
    const idx_t more = std::max(ntotal / 64, std::min(few, ntotal / 4));
    return std::max(
            more, 4 * candidates < ntotal ? idx_t(4 * candidates) : ntotal);
}

idx_t nprobe_for_selected(size_t nprobe, size_t nlist, double selected) {
    return idx_t(std::min(std::ceil(double(nprobe) / selected), double(nlist)));
}

Selected::Selected(const faiss::IDSelector& sel, idx_t ntotal, idx_t most) {
    if (ntotal == 0) {
        few.emplace();
        return;
    }
    if (auto ids = listed_ids(sel, most)) {
        std::erase_if(
                *ids, [ntotal](idx_t id) { return id < 0 || id >= ntotal; });
        fraction = std::max<double>(1, ids->size()) / double(ntotal);
        few = std::move(ids);
        return;
    }
    idx_t met = 0;
    for_sample(ntotal, selection_sample, [&](idx_t place) {
        met += sel.is_member(place);
    });
    const double seen = double(std::min(selection_sample, ntotal));
    fraction = std::max<double>(1, met) / seen;
    // a list of twice `most` is hardly ever taken for a short one
    if (double(met) / seen * double(ntotal) > 2 * double(most)) {
        return;
    }
    std::vector<idx_t> places;
    for (idx_t place = 0; place < ntotal; place++) {
        if (sel.is_member(place)) {
            if (places.size() == size_t(most)) {
                return;
            }
            places.push_back(place);
        }
    }
    fraction = std::max<double>(1, places.size()) / double(ntotal);
    few = std::move(places);
}

} // namespace faiss_ext
