#include <faiss_ext/CallbackKernel.h>

#include <algorithm>

#include <faiss/impl/FaissAssert.h>

namespace faiss_ext {

CallbackKernel::CallbackKernel(Function function)
        : function(std::move(function)) {
    FAISS_THROW_IF_NOT_MSG(
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

std::string CallbackKernel::description() const {
    return "callback";
}

std::unique_ptr<Kernel> CallbackKernel::clone() const {
    return std::make_unique<CallbackKernel>(*this);
}

} // namespace faiss_ext
