// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/// A kernel made from another one, whose training and checks it uses.
struct WrappedKernel : Kernel {
    ClonePtr<Kernel> kernel;

    WrappedKernel() = default;

    /// @param kernel  is copied
    explicit WrappedKernel(const Kernel& kernel);

    void fields(FieldVisitor& v) const override;
    void init() override;
    void train(idx_t n, const float* x, size_t d) override;
    void train_sparse(const SparseVectors& x) override;
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;
};

} // namespace faiss_ext
