// SPDX-License-Identifier: MIT
#pragma once

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

    /// Checks vectors for each kernel.
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;
    bool ignores_zeros() const override;
    /// The norm that all kernels have, or none if they differ.
    ComponentNorm norm_of_unshared() const override;
    bool has_unit_vectors() const override;
    bool is_normalized() const override;

   private:
    template <class Train>
    void train_all(Train&& train);
};

} // namespace faiss_ext
