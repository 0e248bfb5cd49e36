// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <faiss_ext/core/compat.h>

/// The fields of FAISS's classes that a patch release of FAISS has moved. This
/// library uses them only by `loaded`. X(class, field) names a class that
/// Python can construct.
#define FAISS_EXT_MOVABLE_FIELDS(X)     \
    X(IndexIVFFlat, nprobe)             \
    X(IndexIVFFlat, max_codes)          \
    X(IndexIVFFlat, invlists)           \
    X(IndexIVFFlat, direct_map)         \
    X(IndexIVFPQR, k_factor)            \
    X(IndexBinaryIVF, clustering_index) \
    X(ProductQuantizer, centroids)      \
    FAISS_EXT_DECODER_FIELDS(X)

#if FAISS_EXT_HAS_FINE_QUANTIZER
#define FAISS_EXT_DECODER_FIELDS(X)       \
    X(IndexIVFPQFastScan, fine_quantizer) \
    X(IndexIVFPQFastScan, pq)             \
    X(IndexIVFResidualQuantizerFastScan, aq)
#else
#define FAISS_EXT_DECODER_FIELDS(X)
#endif

namespace faiss_ext {

/// How many bytes a patch release of FAISS may add to IndexBinaryIVF, from
/// which IndexBinaryIVFSIMD is derived.
inline constexpr std::size_t room_for_fields = 64;

/** A pointer to a field of a class of FAISS, for the FAISS that is loaded.
 * The operators .* and ->* take it.
 *
 * It points to the field's place in the headers until move_field is called.
 */
template <auto field>
inline auto loaded = field;

/** Sets where the loaded FAISS has a field. Python calls this at import, if
 * FAISS is another patch release than the headers that faiss_ext was compiled
 * with.
 *
 * @param name      one of FAISS_EXT_MOVABLE_FIELDS, such as
 *                  "IndexIVFFlat::nprobe"
 * @param distance  bytes from the present place to the new one
 */
void move_field(const char* name, std::ptrdiff_t distance);

} // namespace faiss_ext
