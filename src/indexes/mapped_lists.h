// SPDX-License-Identifier: MIT
// FAISS's inverted lists in a file. FAISS ends the process if several threads
// change them.

#pragma once

#include <faiss/invlists/OnDiskInvertedLists.h>

#include <faiss_ext/core/FileRange.h>

#include "indexes/ivf_fields.h"

namespace faiss_ext {

/// @param index  an IndexIVF or IndexBinaryIVF
template <class IndexT>
bool is_mapped(const IndexT& index) {
    const auto* lists =
            dynamic_cast<const faiss::OnDiskInvertedLists*>(invlists_of(index));
    return lists && lists->read_only;
}

} // namespace faiss_ext
