// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <faiss_ext/core/class_table.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/core/fields.h>

namespace faiss_ext {

struct Kernel;

/// How many bits two codes have.
struct BitCounts {
    int d;      ///< bits of a code
    int x, y;   ///< bits that are 1 in the query x and in the stored code y
    int common; ///< bits that are 1 in both
};

/** A similarity k(x, y) of codes of bits, from 0 to 1, as a function of their
 * BitCounts.
 *
 * k must not fall if there are more common bits. Among codes y with all the
 * common bits that they can have, min(x, y), it must not rise with the distance
 * of y from x, neither below nor above. Exact search skips codes by these two
 * rules.
 *
 * Strings: `jaccard`, `dice`, `cosine`, `tversky(alpha=0.5,beta=0.5)`,
 * `russellrao`, `hamming`.
 */
struct BitKernel : HasFields {
    using Registered = BitKernel;

    /// 1 - k(x, y), without cancellation if k is near 1.
    virtual double distance(const BitCounts& n) const = 0;

    /// The number of common bits of codes at this distance, up to rounding. It
    /// may be any number if there are none.
    /// @param n  its `common` is ignored
    virtual double common_bits(double distance, const BitCounts& n) const = 0;

    /// Whether k(x, y) = k(y, x).
    virtual bool is_symmetric() const {
        return true;
    }

    /// Whether k(x, x) = 1 for all codes that have ones.
    virtual bool is_one_for_equal() const {
        return true;
    }

    /** Computes k for all pairs of codes.
     *
     * @param x    codes of d bits, size n * ceil(d / 8)
     * @param y    size m * ceil(d / 8)
     * @param out  size n * m
     */
    void gram(
            idx_t n,
            const uint8_t* x,
            idx_t m,
            const uint8_t* y,
            int d,
            float* out) const;

    /// The kernel of the same values for vectors of zeros and ones, or null.
    virtual const Kernel* on_vectors() const {
        return nullptr;
    }

    /// By default there are no parameters.
    void fields(FieldVisitor& v) const override;

    /// Checks the parameters.
    void init() override;
    void restore() override;

    /// The factory string.
    std::string description() const;

    std::unique_ptr<BitKernel> clone() const;
    void assign(const BitKernel& other);
};

/// k = common / (x + y - common), the Tanimoto similarity of chemistry; 1 if
/// both codes are all zeros.
struct JaccardBitKernel : BitKernel {
    double distance(const BitCounts& n) const override;
    double common_bits(double distance, const BitCounts& n) const override;
    const Kernel* on_vectors() const override;
};

/// k = 2 common / (x + y); 1 if both codes are all zeros.
struct DiceBitKernel : BitKernel {
    double distance(const BitCounts& n) const override;
    double common_bits(double distance, const BitCounts& n) const override;
    const Kernel* on_vectors() const override;
};

/// k = common / sqrt(x y); 0 if one of the codes is all zeros.
struct CosineBitKernel : BitKernel {
    double distance(const BitCounts& n) const override;
    double common_bits(double distance, const BitCounts& n) const override;
    const Kernel* on_vectors() const override;
};

/** k = common / (common + alpha (x - common) + beta (y - common)), where x is
 * the query.
 *
 * It is not symmetric unless alpha = beta, and no positive definite kernel in
 * general. alpha = 1, beta = 0 tells how much of the query a code contains, and
 * alpha = 0, beta = 1 how much of the code is in the query. If the divisor is
 * 0, k is 1: all of no bits are contained.
 *
 * Source: A. Tversky, Features of similarity, Psychological Review 1977.
 */
struct TverskyBitKernel : BitKernel {
    double alpha = 0.5, beta = 0.5;

    TverskyBitKernel() = default;
    TverskyBitKernel(double alpha, double beta);

    bool is_symmetric() const override {
        return alpha == beta;
    }
    double distance(const BitCounts& n) const override;
    double common_bits(double distance, const BitCounts& n) const override;
    void fields(FieldVisitor& v) const override;
};

/// k = common / d, the similarity of Russell and Rao.
struct RussellRaoBitKernel : BitKernel {
    bool is_one_for_equal() const override {
        return false;
    }
    double distance(const BitCounts& n) const override;
    double common_bits(double distance, const BitCounts& n) const override;
};

/// k = 1 - h / d for the Hamming distance h = x + y - 2 common.
struct HammingBitKernel : BitKernel {
    double distance(const BitCounts& n) const override;
    double common_bits(double distance, const BitCounts& n) const override;
};

template <>
ClassTable<BitKernel>& class_table();

/// Registers a class of kernels of bits under a name. K must have a default
/// constructor, be copyable and assignable, and show its parameters in
/// K::fields().
template <class K>
void register_bit_kernel(const std::string& name) {
    class_table<BitKernel>().add(class_entry<BitKernel, K>(name));
}

/// The registered names, sorted.
std::vector<std::string> bit_kernel_names();

/// Makes a kernel from a string, such as "tversky(alpha=1,beta=0)".
std::unique_ptr<BitKernel> bit_kernel_factory(const std::string& description);

} // namespace faiss_ext
