// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/** A kernel that a function computes.
 *
 * The function is called from several threads at once, on vectors without NaN
 * and infinities. Exceptions in it reach the caller, but in C++ for those
 * inside FAISS's own loops (faiss::IndexHNSW and IndexRefine over
 * IndexFlatKernel), where the pair counts as farthest (see
 * KernelExceptionGuard). Values that are not finite are an error as well. Such
 * a kernel has no string, so that what holds it cannot be written to files.
 *
 * In Python: CallbackKernel(f), where f(X, Y) takes float32 arrays of shape
 * (n, d) and (m, d) and returns the kernel values, shape (n, m); it is called
 * by one thread at a time.
 */
struct CallbackKernel : Kernel {
    /// What block() of the class Kernel does.
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
    /// From the diagonals of small blocks, to call the function less often.
    void self_values(size_t n, const float* x, size_t d, float* out)
            const override;
    /// All components must be finite; the function's values are checked where
    /// it is called.
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;
    /// "callback", which no factory takes.
    std::string description() const override;
    std::unique_ptr<Kernel> clone() const override;
    void assign(const Kernel& other) override;
};

} // namespace faiss_ext
