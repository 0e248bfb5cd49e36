// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// A norm of some components of a vector.
enum class ComponentNorm {
    none,
    l1, ///< the sum of their absolute values
    l2, ///< the root of the sum of their squares
};

/** Sparse vectors in compressed rows (CSR), in arrays of the caller.
 *
 * They have the layout of scipy.sparse.csr_array: the components of vector i
 * are values[j] in the columns indices[j], for j from indptr[i] to
 * indptr[i + 1] - 1. All other components are 0. Columns may be in any order.
 * Components of the same column add up.
 */
struct SparseVectors {
    idx_t n = 0;                      ///< vectors
    idx_t d = 0;                      ///< dimension, at most 2^31 - 1
    const int64_t* indptr = nullptr;  ///< size n + 1; need not begin at 0
    const int32_t* indices = nullptr; ///< from 0 to d - 1
    const float* values = nullptr;

    /// Number of components of vector i.
    size_t num_components(idx_t i) const {
        return size_t(indptr[i + 1] - indptr[i]);
    }

    /// Writes vector i to an array of d floats.
    void copy_dense(idx_t i, float* x) const {
        std::fill_n(x, d, 0.0f);
        for (int64_t j = indptr[i]; j < indptr[i + 1]; j++) {
            x[indices[j]] += values[j];
        }
    }

    /// The vectors from `begin` up to `end`.
    SparseVectors slice(idx_t begin, idx_t end) const {
        return {end - begin, d, indptr + begin, indices, values};
    }
};

/// Sparse vectors that own their arrays.
struct SparseRows {
    idx_t d = 0;
    std::vector<int64_t> indptr; ///< may be empty if there are no vectors
    std::vector<int32_t> indices;
    std::vector<float> values;

    idx_t n() const {
        return indptr.empty() ? 0 : idx_t(indptr.size()) - 1;
    }

    SparseVectors get() const {
        return {n(), d, indptr.data(), indices.data(), values.data()};
    }
};

/** Makes sparse vectors of zeros and ones of packed bits. Indexes behind a hash
 * then take packed bits without dense copies.
 *
 * Bit j is the bit 0x80 >> j % 8 of byte j / 8, as for numpy.packbits. Throws a
 * faiss::FaissException if n, d or the pointer is wrong, or if a code has ones
 * behind the first d bits.
 *
 * @param d      number of bits
 * @param codes  size n * ceil(d / 8)
 */
SparseRows rows_of_bits(idx_t n, int d, const uint8_t* codes);

/** Checks sparse vectors, and brings them into canonical form: columns ascend,
 * each occurs once, and no component is 0. Vectors that have this form already
 * are not copied.
 *
 * Throws a faiss::FaissException if n, d or a pointer is wrong, if indptr
 * descends, or if a column is out of range. Throws one that names the vector
 * and the column if a component is NaN or infinite. `where` names the caller in
 * messages.
 */
class CanonicalVectors {
   public:
    CanonicalVectors(const SparseVectors& x, const char* where);
    CanonicalVectors(const CanonicalVectors&) = delete;
    CanonicalVectors& operator=(const CanonicalVectors&) = delete;

    const SparseVectors& get() const {
        return vectors;
    }
    const SparseVectors* operator->() const {
        return &vectors;
    }

   private:
    SparseVectors vectors;
    // of a copy
    std::vector<int64_t> indptr;
    std::vector<int32_t> indices;
    std::vector<float> values;
};

} // namespace faiss_ext
