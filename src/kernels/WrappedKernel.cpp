// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/WrappedKernel.h>

namespace faiss_ext {

WrappedKernel::WrappedKernel(const Kernel& kernel) : kernel(kernel.clone()) {
    is_trained = kernel.is_trained;
}

void WrappedKernel::fields(FieldVisitor& v) const {
    v.part("kernel", kernel, "the kernel to change");
}

void WrappedKernel::init() {
    check_fields(*this);
    is_trained = kernel->is_trained;
}

void WrappedKernel::train(idx_t n, const float* x, size_t d) {
    kernel->verbose = verbose;
    kernel->train(n, x, d);
    is_trained = kernel->is_trained;
}

void WrappedKernel::train_sparse(const SparseVectors& x) {
    kernel->verbose = verbose;
    kernel->train_sparse(x);
    is_trained = kernel->is_trained;
}

void WrappedKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    kernel->check_input(n, x, d, where);
}

} // namespace faiss_ext
