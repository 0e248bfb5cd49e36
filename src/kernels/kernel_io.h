// Kernels in files: their strings.

#pragma once

#include <memory>
#include <vector>

#include <faiss/impl/io.h>

#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/// Throws if the kernel's string does not make it again.
void write_kernel(faiss::IOWriter* f, const Kernel& kernel);
std::unique_ptr<Kernel> read_kernel(faiss::IOReader* f);

/** While one of these lives, write_kernel of this thread copies kernels into
 * it, and read_kernel takes them out again in the same order: copies made
 * through a file in memory may hold kernels that no string makes.
 */
struct KernelsInMemory {
    std::vector<std::unique_ptr<Kernel>> kernels;
    size_t read = 0; ///< how many are out again

    KernelsInMemory();
    ~KernelsInMemory();
    KernelsInMemory(const KernelsInMemory&) = delete;
    KernelsInMemory& operator=(const KernelsInMemory&) = delete;
};

} // namespace faiss_ext
