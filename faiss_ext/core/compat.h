// SPDX-License-Identifier: MIT
// Differences between the FAISS versions that faiss_ext supports (1.7.3 to
// 1.15). Only this file, indexes/index_compat.h and io/io_compat.h ask for the
// version of FAISS.

#pragma once

#include <faiss/Index.h>

/// Expands to `override` since FAISS 1.10, which has add_sa_codes.
#if FAISS_VERSION_MAJOR > 1 || FAISS_VERSION_MINOR >= 10
#define FAISS_EXT_OVERRIDE_1_10 override
#define FAISS_EXT_HAS_ADD_SA_CODES 1
/// Whether IndexIVFFastScan decodes vectors.
#define FAISS_EXT_HAS_FINE_QUANTIZER 1
#else
#define FAISS_EXT_OVERRIDE_1_10
#define FAISS_EXT_HAS_ADD_SA_CODES 0
#define FAISS_EXT_HAS_FINE_QUANTIZER 0
#endif

/// Whether float indexes have search1 and search_subset.
#if FAISS_VERSION_MAJOR > 1 || FAISS_VERSION_MINOR >= 14
#define FAISS_EXT_HAS_SEARCH1 1
#else
#define FAISS_EXT_HAS_SEARCH1 0
#endif

/// Whether methods exist for several types of numbers, such as add_ex.
#if FAISS_VERSION_MAJOR > 1 || FAISS_VERSION_MINOR >= 13
#define FAISS_EXT_HAS_NUMERIC_TYPES 1
#else
#define FAISS_EXT_HAS_NUMERIC_TYPES 0
#endif

namespace faiss_ext {

/// Vector ids and counts. Old versions of FAISS have this type as a member of
/// faiss::Index, new ones in namespace faiss.
using idx_t = decltype(faiss::Index::ntotal);

} // namespace faiss_ext
