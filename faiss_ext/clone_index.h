#pragma once

#include <memory>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>
#include <faiss/VectorTransform.h>

namespace faiss_ext {

/** A deep copy of anything that write_index can write.
 *
 * What holds an object of this library is copied through its file format in
 * memory, everything else by FAISS.
 */
std::unique_ptr<faiss::Index> clone_index(const faiss::Index* index);

std::unique_ptr<faiss::IndexBinary> clone_binary_index(
        const faiss::IndexBinary* index);

} // namespace faiss_ext
