// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>

namespace faiss_ext {

/** Makes a float index from a string.
 *
 *     scheme,storage             SIK512(gaussian),BHash16x16  (IndexKernelHash)
 *     KFlat(kernel)              KFlat(laplacian)             (IndexFlatKernel)
 *     HNSWm,KFlat(kernel)        HNSW32,KFlat(gaussian)       (IndexHNSWKernel)
 *
 * - storage is any string of faiss::index_binary_factory.
 * - As in FAISS, `IDMap,` or `IDMap2,` (both make an IndexIDTable) and
 *   transformations such as `PCA64,` or `L2norm,` can precede each of them.
 * - `,Refine(KFlat(...))`, `,Refine(...)` with any other index, or `,RFlat` can
 *   follow (IndexRefineKernel).
 * - Any other string goes to faiss::index_factory unchanged.
 *
 * Throws a faiss::FaissException that quotes the string and marks the place of
 * an error.
 *
 * @param d       input dimension
 * @param metric  METRIC_L2 or METRIC_INNER_PRODUCT; the classes define their
 *                meaning
 */
std::unique_ptr<faiss::Index> index_factory(
        int d,
        const std::string& description,
        faiss::MetricType metric = faiss::METRIC_L2);

/** Makes a binary index from a string: `scheme,storage` as in index_factory
 * (IndexBinaryKernelHash), or a storage alone. `IDMap,` or `IDMap2,` can
 * precede it (IndexBinaryIDTable).
 *
 * @param d   input dimension if the string begins with a scheme, else the
 *            number of bits
 */
std::unique_ptr<faiss::IndexBinary> index_binary_factory(
        int d,
        const std::string& description);

/// Whether a string names a kernel, a hash or an index of this library. The
/// factories above pass all other strings to FAISS. Throws for more than 4,096
/// characters or 64 nested parentheses, which may crash FAISS's parser.
bool is_faiss_ext_string(const std::string& description);

/// Returns whether a string, if it is valid, makes a binary index that takes
/// codes, not vectors.
bool is_string_for_codes(const std::string& description);

} // namespace faiss_ext
