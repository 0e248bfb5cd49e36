// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <string>

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
 * Such a kernel has no string. Objects that hold it can be written to files
 * only if it has a name, which the file contains in place of the function. A
 * program that reads the file makes a kernel with this name first; otherwise
 * reading throws.
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
    std::string name; ///< name in files; empty if it cannot be written

    /// @param name  name in files, at most max_name_length bytes. From now on,
    ///              files that contain the name are read with this function,
    ///              until another kernel takes the name.
    explicit CallbackKernel(Function function, const std::string& name = "");

    /// An empty kernel, to be filled from a file.
    CallbackKernel() = default;

    static constexpr size_t max_name_length = 1000;

    void fields(FieldVisitor& v) const override;
    /// Throws if there is no name, or no function with this name.
    void restore() override;

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
};

} // namespace faiss_ext
