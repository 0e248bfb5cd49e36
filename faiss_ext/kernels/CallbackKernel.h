// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/** A kernel that your own function computes.
 *
 * The function is called from several threads at once, on vectors without NaN
 * and infinities. It must return finite values; any other value is an error.
 *
 * In Python: CallbackKernel(f), where f(X, Y) takes float32 arrays of shape (n,
 * d) and (m, d) and returns the kernel values, shape (n, m). It is called by
 * one thread at a time.
 *
 * If the function throws, the exception reaches the caller. Only FAISS's own
 * loops (faiss::IndexHNSW and IndexRefine over IndexFlatKernel) lose it, and
 * the pair then counts as the farthest. In C++, KernelExceptionGuard rethrows
 * it.
 *
 * Such a kernel has no string, so objects that hold it cannot be written to
 * files.
 */
struct CallbackKernel : Kernel {
    /// The arguments are those of Kernel::block().
    using Function = std::function<void(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out)>;

    Function function;

    explicit CallbackKernel(Function function);

    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    /// Takes the values from the diagonals of small blocks, which needs fewer
    /// calls of the function.
    void self_values(size_t n, const float* x, size_t d, float* out)
            const override;
    /// Throws unless all components are finite. The function's values are
    /// checked after each call.
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;
    /// "callback", which no factory accepts.
    std::string description() const override;
    std::unique_ptr<Kernel> clone() const override;
    void assign(const Kernel& other) override;
};

} // namespace faiss_ext
