#include "kernels/kernel_io.h"

#include "core/errors.h"
#include "core/io_fields.h"

namespace faiss_ext {

namespace {

thread_local KernelsInMemory* in_memory = nullptr;

} // namespace

KernelsInMemory::KernelsInMemory() {
    in_memory = this;
}

KernelsInMemory::~KernelsInMemory() {
    in_memory = nullptr;
}

void write_kernel(faiss::IOWriter* f, const Kernel& kernel) {
    if (in_memory) {
        in_memory->kernels.push_back(kernel.clone());
        return;
    }
    const std::string description = kernel.description();
    try {
        kernel_factory(description);
    } catch (const faiss::FaissException&) {
        FAISS_EXT_THROW_FMT(
                "the kernel %s cannot be written to a file: no string makes it",
                description.c_str());
    }
    write_string(f, description);
}

std::unique_ptr<Kernel> read_kernel(faiss::IOReader* f) {
    if (in_memory) {
        FAISS_EXT_THROW_IF_NOT_MSG(
                in_memory->read < in_memory->kernels.size(),
                "more kernels are read than were written");
        return std::move(in_memory->kernels[in_memory->read++]);
    }
    return kernel_factory(read_string(f, "kernel"));
}

} // namespace faiss_ext
