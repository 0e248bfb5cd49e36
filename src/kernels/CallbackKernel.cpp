// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/CallbackKernel.h>

#include <algorithm>

#include "core/check.h"
#include "core/errors.h"

namespace faiss_ext {

CallbackKernel::CallbackKernel(Function function)
        : function(std::move(function)) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            this->function, "CallbackKernel: the function is empty");
}

void CallbackKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    function(n, x, m, y, d, out);
    FAISS_EXT_THROW_IF_NOT_MSG(
            all_finite(n * m, out),
            "CallbackKernel: the function returned values that are not finite");
}

void CallbackKernel::self_values(size_t n, const float* x, size_t d, float* out)
        const {
    constexpr size_t side = 16;
    float values[side * side];
    for (size_t i = 0; i < n; i += side) {
        const size_t m = std::min(side, n - i);
        block(m, x + i * d, m, x + i * d, d, values);
        for (size_t j = 0; j < m; j++) {
            out[i + j] = values[j * m + j];
        }
    }
}

void CallbackKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_finite(n, x, d, where);
}

std::string CallbackKernel::description() const {
    return "callback";
}

std::unique_ptr<Kernel> CallbackKernel::clone() const {
    return std::make_unique<CallbackKernel>(*this);
}

void CallbackKernel::assign(const Kernel& other) {
    *this = dynamic_cast<const CallbackKernel&>(other);
}

} // namespace faiss_ext
