// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>
#include <faiss/VectorTransform.h>

namespace faiss_ext {

/** Makes a deep copy of any index that write_index can write. The index may
 * also have a CallbackKernel.
 *
 * The copy goes through the file format, in memory. Fields that files do not
 * store, such as `verbose`, have their default values in the copy.
 */
std::unique_ptr<faiss::Index> clone_index(const faiss::Index* index);

std::unique_ptr<faiss::IndexBinary> clone_binary_index(
        const faiss::IndexBinary* index);

} // namespace faiss_ext
