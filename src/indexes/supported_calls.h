// SPDX-License-Identifier: MIT
// What FAISS's classes support depends on its version. FAISS is asked by calls
// without vectors.

#pragma once

#include <memory>

#include <faiss/VectorTransform.h>

#include <faiss_ext/indexes/index_tree.h>

namespace faiss_ext {

/// Throws UnsupportedError if an index of FAISS cannot be searched with search
/// parameters, or with a selector. Classes of this library check that in
/// search. params may be null.
void check_params_supported(
        const AnyIndex& index,
        const faiss::SearchParameters* params,
        const char* where);

/// Whether search_and_reconstruct of an index of FAISS takes the parameters.
/// Otherwise only search takes them. Throws UnsupportedError if the index
/// supports search, but not search_and_reconstruct.
bool takes_params_with_vectors(
        const faiss::Index& index,
        const faiss::SearchParameters* params,
        const char* where);

/// Throws UnsupportedError if an index of FAISS supports search, but not
/// range_search.
void check_range_search_supported(const AnyIndex& index, const char* where);

/// Throws UnsupportedError if a transformation of FAISS cannot be inverted.
void check_inverse_supported(
        const faiss::VectorTransform& vt,
        const char* where);

/// Throws if merge_and_empty cannot move the vectors of an index to another
/// one. FAISS's classes do not say why.
void check_merge(const AnyIndex& index, const AnyIndex& other);

/// Calls index.merge_from(other, add_id), and sets ntotal of the emptied index,
/// which FAISS's IndexPreTransform leaves as it was. FAISS requires that flat
/// indexes are of the same class, which depends on whether they have been in a
/// file; this function does not.
void merge_and_empty(
        faiss::Index& index,
        faiss::Index& other,
        idx_t add_id = 0);
void merge_and_empty(
        faiss::IndexBinary& index,
        faiss::IndexBinary& other,
        idx_t add_id = 0);

/// Throws UnsupportedError if an index of FAISS, or a part of the index, cannot
/// take n vectors. FAISS would find out after other parts have taken them.
void check_addition(const AnyIndex& index, idx_t n, const char* where);

/// Returns search parameters of the class that an index of FAISS requires, with
/// the same selector. Null if these are not plain, or if it takes plain ones.
std::unique_ptr<faiss::SearchParameters> params_of_its_class(
        const AnyIndex& index,
        const faiss::SearchParameters* params);

} // namespace faiss_ext
