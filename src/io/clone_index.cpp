// SPDX-License-Identifier: MIT
#include <faiss_ext/io/clone_index.h>

#include <faiss/impl/io.h>

#include "core/errors.h"
#include "core/field_files.h"
#include "indexes/index_steps.h"
#include "io/nested_io.h"

namespace faiss_ext {

namespace {

template <class IndexT>
std::unique_ptr<IndexT> copy(const IndexT* index) {
    FAISS_EXT_THROW_IF_NOT_MSG(index, "the index is null");
    const LongReadingStep step(*index);
    const PartsInMemory parts;
    check_sound(index, "the index");
    faiss::VectorIOWriter writer;
    write_nested(index, &writer);
    faiss::VectorIOReader reader;
    reader.data.swap(writer.data);
    return read_nested<IndexT>(&reader, 0);
}

} // namespace

std::unique_ptr<faiss::Index> clone_index(const faiss::Index* index) {
    return copy(index);
}

std::unique_ptr<faiss::IndexBinary> clone_binary_index(
        const faiss::IndexBinary* index) {
    return copy(index);
}

} // namespace faiss_ext
