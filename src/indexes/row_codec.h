// SPDX-License-Identifier: MIT
// Storage formats of the vectors of IndexFlatKernel.

#pragma once

#include <cstddef>
#include <cstdint>

#include <faiss_ext/indexes/IndexFlatKernel.h>

namespace faiss_ext {

struct RowCodec {
    IndexFlatKernel::Store store;
    size_t d;
    bool has_factors = true; ///< one precedes each vector, unless f32

    /// Returns the bytes per vector.
    size_t code_size() const;

    /// Throws before writing anything if a vector cannot be stored in this
    /// format. x: size n * d; bytes: size n * code_size()
    void encode(idx_t n, const float* x, uint8_t* bytes, const char* where)
            const;

    /// Decodes on the calling thread. bytes: rows that are `stride` bytes apart
    void decode(size_t n, const uint8_t* bytes, size_t stride, float* x) const;
};

/// The vectors of an index.
struct StoredRows {
    RowCodec codec;
    const uint8_t *data, *sequential; ///< see IndexFlatKernel::Rows
    size_t stride;                    ///< bytes from one vector to the next

    /// Throws unless the index holds ntotal vectors.
    static StoredRows of(const IndexFlatKernel& index, const char* where);

    const uint8_t* row(size_t i) const {
        return data + i * stride;
    }

    /// Decodes one vector, on the calling thread.
    void decode(size_t i, float* x) const {
        codec.decode(1, row(i), stride, x);
    }

    /// Decodes vectors i to i + n - 1 of a scan, on the calling thread.
    void decode(size_t i, size_t n, float* x) const {
        codec.decode(n, sequential + i * stride, stride, x);
    }

    /// Returns all vectors if they are contiguous floats, otherwise null.
    const float* floats() const {
        return codec.store == IndexFlatKernel::Store::f32 &&
                        stride == codec.code_size()
                ? reinterpret_cast<const float*>(sequential)
                : nullptr;
    }
};

} // namespace faiss_ext
