// How each class of index is written to and read from files: one entry for each
// of this library's classes and of FAISS's wrappers around them.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <typeindex>
#include <vector>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>
#include <faiss/impl/io.h>

namespace faiss_ext {

template <class IndexT>
struct IndexCodec {
    std::string name; ///< in files
    std::type_index type;
    /// whether an object of the class holds one of this library
    std::function<bool(const IndexT*)> holds_ours;
    std::function<void(const IndexT*, faiss::IOWriter*)> write;
    std::function<std::unique_ptr<IndexT>(faiss::IOReader*, int io_flags)> read;
};

const std::vector<IndexCodec<faiss::Index>>& index_codecs();
const std::vector<IndexCodec<faiss::IndexBinary>>& index_binary_codecs();

} // namespace faiss_ext
