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
 * In front of any of them, as in FAISS: `IDMap,` or `IDMap2,`, and
 * transformations such as `PCA64,` or `L2norm,`. Behind: `,Refine(KFlat(...))`,
 * `,Refine(...)` with any other index, or `,RFlat` (IndexRefineKernel). storage
 * is what faiss::index_binary_factory knows. All other strings go to
 * faiss::index_factory.
 *
 * Throws a faiss::FaissException that quotes the string and marks the place of
 * an error.
 *
 * @param d       input dimension
 * @param metric  METRIC_L2 or METRIC_INNER_PRODUCT; see the classes for what
 *                they mean
 */
std::unique_ptr<faiss::Index> index_factory(
        int d,
        const std::string& description,
        faiss::MetricType metric = faiss::METRIC_L2);

/** Makes a binary index from a string: `scheme,storage` as above
 * (IndexBinaryKernelHash), or a storage alone; `IDMap,` or `IDMap2,` in front.
 *
 * @param d   input dimension where a scheme stands in front, else the number of
 *            bits
 */
std::unique_ptr<faiss::IndexBinary> index_binary_factory(
        int d,
        const std::string& description);

/// Whether a string names a kernel, a hash or an index of this library, so
/// that the factories above do not just hand it to FAISS's. Throws for more
/// than 4,096 characters or 64 parentheses inside each other, which FAISS's
/// parser may not survive.
bool is_faiss_ext_string(const std::string& description);

} // namespace faiss_ext
