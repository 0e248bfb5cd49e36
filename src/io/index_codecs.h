// SPDX-License-Identifier: MIT
// Writes and reads the classes of indexes in files. There is one entry for each
// class of this library and for each of FAISS's wrappers around them.

#pragma once

#include <functional>
#include <memory>
#include <optional>
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
    std::function<void(const IndexT*, faiss::IOWriter*)> write;
    std::function<std::unique_ptr<IndexT>(faiss::IOReader*, int io_flags)> read;

    /// Throws if `read` would refuse the output of `write`. The parts have been
    /// checked before.
    std::function<void(const IndexT*, const std::string& file)> check;
};

/// IndexT is faiss::Index or faiss::IndexBinary.
template <class IndexT>
std::optional<IndexCodec<IndexT>> find_codec(const IndexT& index);
template <class IndexT>
std::optional<IndexCodec<IndexT>> find_codec(const std::string& name);

/// The codec of an index as if its ids were positions.
template <class IndexT>
std::optional<IndexCodec<IndexT>> find_codec_without_ids(const IndexT& index);

} // namespace faiss_ext
