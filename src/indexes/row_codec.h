// SPDX-License-Identifier: MIT
// How the vectors of IndexFlatKernel are stored.

#pragma once

#include <cstddef>
#include <cstdint>

#include <faiss_ext/indexes/IndexFlatKernel.h>

namespace faiss_ext {

struct RowCodec {
    IndexFlatKernel::Store store;
    size_t d;

    explicit RowCodec(const IndexFlatKernel& index)
            : store(index.store), d(index.d) {}

    /// bytes of a vector
    size_t code_size() const;

    /// Throws if a vector cannot be stored that way, before it has written
    /// anything. x: size n * d; bytes: size n * code_size()
    void encode(idx_t n, const float* x, uint8_t* bytes, const char* where)
            const;

    /// On the calling thread.
    void decode(size_t n, const uint8_t* bytes, float* x) const;
};

} // namespace faiss_ext
