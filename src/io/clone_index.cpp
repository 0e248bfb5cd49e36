#include <faiss_ext/io/clone_index.h>

#include <faiss/impl/io.h>

#include <faiss_ext/io/index_io.h>

#include "core/errors.h"
#include "core/field_files.h"

namespace faiss_ext {

namespace {

template <class IndexT, class Write, class Read>
std::unique_ptr<IndexT> copy(const IndexT* index, Write write, Read read) {
    FAISS_EXT_THROW_IF_NOT_MSG(index, "the index is null");
    const PartsInMemory parts;
    faiss::VectorIOWriter writer;
    write(index, &writer);
    faiss::VectorIOReader reader;
    reader.data.swap(writer.data);
    return read(&reader);
}

} // namespace

std::unique_ptr<faiss::Index> clone_index(const faiss::Index* index) {
    return copy(
            index,
            [](const faiss::Index* from, faiss::IOWriter* f) {
                write_index(from, f);
            },
            [](faiss::IOReader* f) { return read_index(f); });
}

std::unique_ptr<faiss::IndexBinary> clone_binary_index(
        const faiss::IndexBinary* index) {
    return copy(
            index,
            [](const faiss::IndexBinary* from, faiss::IOWriter* f) {
                write_index_binary(from, f);
            },
            [](faiss::IOReader* f) { return read_index_binary(f); });
}

} // namespace faiss_ext
