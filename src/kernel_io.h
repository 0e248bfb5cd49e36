// Kernels in files: their strings.

#pragma once

#include <memory>

#include <faiss/impl/FaissAssert.h>

#include <faiss_ext/Kernel.h>

#include "io_fields.h"

namespace faiss_ext {

/// Throws if the kernel's string does not make it again.
inline void write_kernel(faiss::IOWriter* f, const Kernel& kernel) {
    const std::string description = kernel.description();
    try {
        kernel_factory(description);
    } catch (const faiss::FaissException&) {
        FAISS_THROW_FMT(
                "the kernel %s cannot be written to a file: no string makes it",
                description.c_str());
    }
    write_string(f, description);
}

inline std::unique_ptr<Kernel> read_kernel(faiss::IOReader* f) {
    return kernel_factory(read_string(f, "kernel"));
}

} // namespace faiss_ext
