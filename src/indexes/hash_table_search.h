// SPDX-License-Identifier: MIT
// Filtered searches of FAISS's hash tables, which take no selectors.

#pragma once

#include <cstdint>
#include <functional>

#include <faiss/IndexBinary.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// Whether an index is faiss::IndexBinaryHash or faiss::IndexBinaryMultiHash.
bool is_hash_table(const faiss::IndexBinary& index);

/// Searches for n codes without a selector.
using SearchCodes = std::function<void(
        idx_t n,
        const uint8_t* codes,
        idx_t k,
        int32_t* distances,
        idx_t* labels)>;

/** Finds the nearest codes that a selector selects.
 *
 * If few are selected, they are all compared. Otherwise `search` is called for
 * more and more candidates, until k of them are selected. Queries with less
 * than k selected candidates in their buckets are compared with all selected
 * codes.
 *
 * @param tables  a hash table
 * @param search  searches the tables
 */
void search_selected(
        const faiss::IndexBinary& tables,
        const SearchCodes& search,
        idx_t n,
        const uint8_t* codes,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        const faiss::IDSelector& sel);

/// If few codes are selected, finds those within a radius by comparing all of
/// them. Otherwise returns false, and changes nothing.
bool range_search_few(
        const faiss::IndexBinary& tables,
        idx_t n,
        const uint8_t* codes,
        int radius,
        const faiss::IDSelector& sel,
        faiss::RangeSearchResult* result);

/// Removes the results that a selector does not select.
void keep_selected(
        faiss::RangeSearchResult& result,
        const faiss::IDSelector& sel);

} // namespace faiss_ext
