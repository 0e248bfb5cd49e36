// SPDX-License-Identifier: MIT
// Differences between FAISS versions in indexes; see core/compat.h.

#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>
#include <typeinfo>
#include <utility>

#include <faiss/IndexBinary.h>
#include <faiss/IndexBinaryHash.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/impl/HNSW.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/invlists/BlockInvertedLists.h>

#include <faiss_ext/indexes/SearchParametersRefine.h>
#include <faiss_ext/indexes/search_limits.h>

#include "core/errors.h"
#include "indexes/search_params.h"

namespace faiss {
struct IndexRefineSearchParameters; // defined since 1.8.0
}

namespace faiss_ext {

/// Throws unless a k_factor is in its range.
inline void check_k_factor(float k_factor, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            k_factor >= 1 && k_factor <= max_k_factor,
            "%s: k_factor is %g, expected a number from 1 to %g",
            where,
            k_factor,
            max_k_factor);
}

/// Throws unless an efSearch or efConstruction, called `name`, is in its range.
inline void check_ef(int ef, const char* name, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            ef > 0 && ef <= max_ef,
            "%s: %s is %d, expected a number from 1 to %d",
            where,
            name,
            ef,
            max_ef);
}

/// Settings of a search of an index with Refine.
struct RefineSearch {
    float k_factor;
    const faiss::SearchParameters* base_params;
    std::unique_ptr<faiss::SearchParameters> plain = nullptr; ///< owned
};

/// Reads parameters of this library.
inline RefineSearch refine_search(const SearchParametersRefine& params) {
    check_k_factor(params.k_factor, "search of a Refine index");
    if (!params.sel) {
        return {params.k_factor, params.base_params};
    }
    FAISS_EXT_THROW_IF_NOT_MSG(
            !params.base_params,
            "search of a Refine index: put the selector into base_params; sel and base_params cannot be combined");
    auto plain = std::make_unique<faiss::SearchParameters>();
    plain->sel = params.sel;
    const faiss::SearchParameters* base_params = plain.get();
    return {params.k_factor, base_params, std::move(plain)};
}

/// Reads the settings from the index or the search parameters. Plain search
/// parameters, which hold only a selector, are passed to the index in front.
/// @param k_factor  of the index
template <class Params = faiss::IndexRefineSearchParameters>
RefineSearch refine_search(
        float k_factor,
        const faiss::SearchParameters* params) {
    if (!params || is_plain(params)) {
        check_k_factor(k_factor, "search of a Refine index");
        return {k_factor, params};
    }
    if (const auto* ours =
                dynamic_cast<const SearchParametersRefine*>(params)) {
        return refine_search(*ours);
    }
    if constexpr (requires { sizeof(Params); }) {
        const auto* refine = dynamic_cast<const Params*>(params);
        FAISS_EXT_THROW_IF_NOT_MSG(
                refine,
                "search of a Refine index: the search parameters are of another class, expected SearchParametersRefine or IndexRefineSearchParameters, with the others in base_params");
        check_k_factor(refine->k_factor, "search of a Refine index");
        FAISS_EXT_THROW_IF_NOT_MSG(
                !params->sel,
                "search of a Refine index: put the selector into base_index_params; sel and k_factor cannot be combined");
        return {refine->k_factor, refine->base_index_params};
    } else {
        FAISS_EXT_THROW_FMT(
                "search of a Refine index: the search parameters are a %s, expected SearchParametersRefine with them in base_params",
                type_name(typeid(*params)).c_str());
    }
}

/// Returns the search parameters for the index inside, which parameters of
/// transformations and of Refine contain; null for other parameters.
template <class Params = faiss::IndexRefineSearchParameters>
const faiss::SearchParameters* params_inside(
        const faiss::SearchParameters* params) {
    if (const auto* pre =
                dynamic_cast<const faiss::SearchParametersPreTransform*>(
                        params)) {
        return pre->index_params;
    }
    if (const auto* ours =
                dynamic_cast<const SearchParametersRefine*>(params)) {
        return ours->base_params;
    }
    if constexpr (requires { sizeof(Params); }) {
        if (const auto* refine = dynamic_cast<const Params*>(params)) {
            return refine->base_index_params;
        }
    }
    return nullptr;
}

/// Returns the innermost selector of search parameters, or null.
inline const faiss::IDSelector* selector_inside(
        const faiss::SearchParameters* params) {
    const faiss::IDSelector* sel = nullptr;
    for (; params; params = params_inside(params)) {
        sel = params->sel ? params->sel : sel;
    }
    return sel;
}

/// Sets what params_inside returns, if the parameters have it.
template <class Params = faiss::IndexRefineSearchParameters>
void set_params_inside(
        faiss::SearchParameters& params,
        const faiss::SearchParameters* inside) {
    auto* value = const_cast<faiss::SearchParameters*>(inside); // FAISS's type
    if (auto* pre =
                dynamic_cast<faiss::SearchParametersPreTransform*>(&params)) {
        pre->index_params = value;
    }
    if (auto* ours = dynamic_cast<SearchParametersRefine*>(&params)) {
        ours->base_params = value;
    }
    if constexpr (requires { sizeof(Params); }) {
        if (auto* refine = dynamic_cast<Params*>(&params)) {
            refine->base_index_params = value;
        }
    }
}

/// Settings of a search of a faiss::IndexHNSW.
struct GraphSearch {
    int ef;
    bool check_relative_distance, bounded_queue;
};

/// Reads the settings from the index or the search parameters. Since FAISS
/// 1.9.0 these have a bounded_queue. Plain search parameters give only a
/// selector.
template <class Params = faiss::SearchParametersHNSW>
GraphSearch graph_search(
        const faiss::HNSW& hnsw,
        const faiss::SearchParameters* params,
        const char* where) {
    GraphSearch how = {
            hnsw.efSearch,
            hnsw.check_relative_distance,
            hnsw.search_bounded_queue};
    if (const auto* given = known_params<Params>(params, where)) {
        how.ef = given->efSearch;
        how.check_relative_distance = given->check_relative_distance;
        if constexpr (requires { given->bounded_queue; }) {
            how.bounded_queue = given->bounded_queue;
        }
    }
    return how;
}

/// Gives search parameters the settings of a graph.
template <class Params>
void set_graph_params(Params& params, const faiss::HNSW& hnsw) {
    params.efSearch = hnsw.efSearch;
    params.check_relative_distance = hnsw.check_relative_distance;
    if constexpr (requires { params.bounded_queue; }) {
        params.bounded_queue = hnsw.search_bounded_queue;
    }
}

/// Search parameters for a graph of which a part of the vertices is selected.
/// The k nearest selected vertices lie farther away.
inline std::unique_ptr<faiss::SearchParameters> params_of_graph(
        const faiss::HNSW& hnsw,
        idx_t k,
        double selected) {
    auto params = std::make_unique<faiss::SearchParametersHNSW>();
    set_graph_params(*params, hnsw);
    const auto ef = double(std::max<idx_t>(hnsw.efSearch, k));
    params->efSearch = int(std::min<double>(std::ceil(ef / selected), max_ef));
    return params;
}

/// Whether a vector that may lie in a file is in memory (FAISS since 1.11).
template <class Vector>
bool is_in_memory(const Vector& v) {
    if constexpr (requires { v.is_owned; }) {
        return v.is_owned;
    } else {
        return true;
    }
}

/// Returns whether an IndexIDMap called remove_ids. Its selector is in an
/// unnamed namespace in 1.7.3.
inline bool is_from_id_map(const faiss::IDSelector& sel) {
    const std::string_view name = typeid(sel).name();
    return name.find("IDTranslatedSelector") != name.npos ||
            name.find("IDSelectorTranslated") != name.npos;
}

/// Copies a field of IndexBinaryIVF that 1.7.3 does not have.
template <class IVF>
void copy_per_invlist_search(IVF& to, const IVF& from) {
    if constexpr (requires { to.per_invlist_search; }) {
        to.per_invlist_search = from.per_invlist_search;
    }
}

/// Whether FAISS can remove vectors from lists of blocks, and merge such lists.
/// 1.7.3 throws in a parallel loop, which ends the process.
template <class Lists = faiss::BlockInvertedLists>
inline constexpr bool can_remove_from =
        requires(Lists& lists, const faiss::IDSelector& sel) {
    lists.remove_ids(sel);
};
inline constexpr bool removes_from_blocks = can_remove_from<>;

/// Calls storage.reset() and clears the hash tables. In 1.7.3,
/// faiss::IndexBinaryMultiHash::reset leaves them filled, so later searches
/// would return ids that no longer exist.
inline void reset_binary_index(faiss::IndexBinary& storage) {
    storage.reset();
    if (auto* multi = dynamic_cast<faiss::IndexBinaryMultiHash*>(&storage)) {
        for (auto& map : multi->maps) {
            map.clear();
        }
    }
}

/// Makes a faiss::IndexShards or IndexReplicas the owner of its parts.
template <class Group>
void own_group(Group& group) {
    if constexpr (requires { group.own_indices; }) {
        group.own_indices = true;
    } else {
        group.own_fields = true;
    }
}

} // namespace faiss_ext
