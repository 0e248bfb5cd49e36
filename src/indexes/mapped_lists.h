// SPDX-License-Identifier: MIT
// FAISS's inverted lists in a file. FAISS ends the process if several threads
// change them.

#pragma once

#include <faiss/IndexBinaryIVF.h>
#include <faiss/invlists/OnDiskInvertedLists.h>

#include <faiss_ext/core/FileRange.h>

namespace faiss_ext {

inline bool is_mapped(const faiss::IndexBinaryIVF& index) {
    const auto* lists =
            dynamic_cast<const faiss::OnDiskInvertedLists*>(index.invlists);
    return lists && lists->read_only;
}

} // namespace faiss_ext
