// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include <faiss_ext/projections/Projection.h>

namespace faiss_ext {

/** A matrix of independent random numbers that is not stored: y_j = s_j sum_k
 * a_jk x_k, where a_jk is computed from the seed, j and k.
 *
 * It is meant for sparse vectors of many dimensions. Time is proportional to
 * the number of components that are not 0 times the number of outputs, some 0.2
 * ns each on one thread with AVX2 or AVX-512 (Cauchy: 0.5 to 1 ns). Nothing has
 * the size of the input dimension, which can be up to 2^31 - 1. Numbers do not
 * depend on d_in and d_out: a projection to fewer outputs gives the first of
 * them.
 *
 * Random bits come from 64 bits of a column, mixed with 32 bits of a row by two
 * rounds of multiplications and shifts. They are the same for every instruction
 * set and platform.
 *
 * - normal: a_jk takes 22,287 different values from 16 random bits, by integer
 *   arithmetic. It is symmetric, with variance 1, 4th moment 3.0001, 6th moment
 *   14.990 and a largest value of 4.37. The distribution function differs by at
 *   most 5.3e-4 from the normal one. Two vectors of two components each differ
 *   in a bit with a probability that was within 2e-4 of angle / pi for 300
 *   random pairs. With more components the sums are closer to normal.
 * - cauchy: a_jk is tan(pi u) for one of 2^32 values u between -1/2 and 1/2,
 *   accurate to 1e-6 relative.
 *
 * Results are the same for every instruction set, too. Products are summed in
 * the order of the columns, 256 at a time in float and the rest in double. The
 * error is at most 2e-5 sum_k |A_jk x_k|, typically 1e-7 of it.
 *
 * Memory: 4 bytes for each output if there are scales, and a few more.
 */
struct GeneratedProjection : Projection {
    enum class Law { normal, cauchy };

    int64_t seed = 1234;
    Law law = Law::normal;
    std::vector<float> scales; ///< s_j, size d_out; empty: all 1

    GeneratedProjection() = default;

    /// @param scales  size d_out, or empty if all are 1
    GeneratedProjection(
            int d_in,
            int d_out,
            int64_t seed,
            Law law = Law::normal,
            const std::vector<double>& scales = {});

    std::vector<float> matrix() const override;
    void fields(FieldVisitor& v) const override;
    void restore() override;

   protected:
    void multiply(size_t n, const float* x, float* y) const override;
    void multiply_sparse(const SparseVectors& x, float* y) const override;

   private:
    struct Columns;
    void multiply_columns(const Columns& columns, float* y) const;
};

} // namespace faiss_ext
