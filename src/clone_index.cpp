#include <faiss_ext/clone_index.h>

#include <faiss/impl/FaissAssert.h>
#include <faiss/impl/io.h>

#include <faiss_ext/index_io.h>

namespace faiss_ext {

std::unique_ptr<faiss::Index> clone_index(const faiss::Index* index) {
    FAISS_THROW_IF_NOT_MSG(index, "the index is null");
    faiss::VectorIOWriter writer;
    write_index(index, &writer);
    faiss::VectorIOReader reader;
    reader.data.swap(writer.data);
    return read_index(&reader);
}

std::unique_ptr<faiss::IndexBinary> clone_binary_index(
        const faiss::IndexBinary* index) {
    FAISS_THROW_IF_NOT_MSG(index, "the index is null");
    faiss::VectorIOWriter writer;
    write_index_binary(index, &writer);
    faiss::VectorIOReader reader;
    reader.data.swap(writer.data);
    return read_index_binary(&reader);
}

} // namespace faiss_ext
