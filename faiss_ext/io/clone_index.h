// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>
#include <faiss/VectorTransform.h>

namespace faiss_ext {

/** A deep copy of anything that write_index can write, and of what it cannot
 * write because of a CallbackKernel.
 *
 * It is copied through its file format in memory. What files do not hold
 * (`verbose`, say) has its default value in the copy.
 */
std::unique_ptr<faiss::Index> clone_index(const faiss::Index* index);

std::unique_ptr<faiss::IndexBinary> clone_binary_index(
        const faiss::IndexBinary* index);

} // namespace faiss_ext
