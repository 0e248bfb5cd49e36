// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <vector>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/// A kernel made from several others, each of which is trained by itself.
/// Vectors must be valid for all of them.
struct CombinedKernel : Kernel {
    std::vector<ClonePtr<Kernel>> kernels;

    void init() override;

    /// Trains all kernels. If one fails, none of them is changed.
    void train(idx_t n, const float* x, size_t d) override;
    void train_sparse(const SparseVectors& x) override;

    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    void self_values(size_t n, const float* x, size_t d, float* out)
            const override;

    /// Checks vectors for each kernel.
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;
    bool ignores_zeros() const override;
    /// The norm that all kernels have, or none if they differ.
    ComponentNorm norm_of_unshared() const override;
    bool has_unit_vectors() const override;
    bool is_normalized() const override;

   protected:
    /// Writes as many values of one kernel as there are results.
    using Values = std::function<void(const Kernel& kernel, float* values)>;

    /// Computes `size` results from the values of all kernels.
    virtual void combine(size_t size, float* out, const Values& values)
            const = 0;

   private:
    template <class Train>
    void train_all(Train&& train);
};

} // namespace faiss_ext
