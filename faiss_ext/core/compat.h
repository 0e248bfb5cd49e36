// SPDX-License-Identifier: MIT
// What differs between the FAISS versions that faiss_ext supports (1.7.3 to
// 1.15), with indexes/index_compat.h and io/io_compat.h. No other file of the
// project asks which version it is built with.

#pragma once

#include <faiss/Index.h>

/// Of what is an override since FAISS 1.10.
#if FAISS_VERSION_MAJOR > 1 || FAISS_VERSION_MINOR >= 10
#define FAISS_EXT_OVERRIDE_1_10 override
#else
#define FAISS_EXT_OVERRIDE_1_10
#endif

namespace faiss_ext {

/// Vector ids and counts. A member of faiss::Index in old versions, of
/// namespace faiss in new ones.
using idx_t = decltype(faiss::Index::ntotal);

} // namespace faiss_ext
