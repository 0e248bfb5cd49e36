// SPDX-License-Identifier: MIT
// Checks the class of search parameters, as an unknown class would be ignored.

#pragma once

#include <type_traits>
#include <typeinfo>

#include <faiss/Index.h>

#include "core/errors.h"

namespace faiss_ext {

/// Returns whether search parameters hold only a selector.
inline bool is_plain(const faiss::SearchParameters* params) {
    return params && typeid(*params) == typeid(faiss::SearchParameters);
}

/// Returns search parameters of the class Known or of one derived from it, and
/// null if there are none. Plain search parameters, which hold only a selector,
/// give null as well. Throws for any other class.
template <class Known = faiss::SearchParameters>
const Known* known_params(
        const faiss::SearchParameters* params,
        const char* where) {
    if (!params || is_plain(params)) {
        return nullptr;
    }
    const auto* known = dynamic_cast<const Known*>(params);
    const bool is_base = std::is_same_v<Known, faiss::SearchParameters>;
    FAISS_EXT_THROW_IF_NOT_FMT(
            known && !is_base,
            "%s: the search parameters are of class %s, expected %s",
            where,
            type_name(typeid(*params)).c_str(),
            type_name(typeid(Known)).c_str());
    return known;
}

/// Returns the selector of plain search parameters, or null if there is none.
/// Throws for any other class.
inline const faiss::IDSelector* plain_selector(
        const faiss::SearchParameters* params,
        const char* where) {
    known_params(params, where);
    return params ? params->sel : nullptr;
}

} // namespace faiss_ext
