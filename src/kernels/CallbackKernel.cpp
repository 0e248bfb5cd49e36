// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/CallbackKernel.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "core/check.h"
#include "core/errors.h"
#include "core/field_strings.h"

namespace faiss_ext {

namespace {

/// The functions of all kernels with names.
struct NamedFunctions {
    std::mutex mutex;
    std::map<std::string, CallbackKernel::Function> functions;
};

/// Is never destroyed, because the functions may belong to an interpreter that
/// ends earlier.
NamedFunctions& named_functions() {
    static auto* const named = new NamedFunctions;
    return *named;
}

} // namespace

CallbackKernel::CallbackKernel(Function function, const std::string& name)
        : function(std::move(function)), name(name) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            this->function, "CallbackKernel: the function is empty");
    FAISS_EXT_THROW_IF_NOT_FMT(
            name.size() <= max_name_length,
            "CallbackKernel: the name has %zu bytes, expected at most %zu",
            name.size(),
            max_name_length);
    if (!name.empty()) {
        NamedFunctions& named = named_functions();
        const std::lock_guard lock(named.mutex);
        named.functions[name] = this->function;
    }
}

void CallbackKernel::fields(FieldVisitor& v) const {
    v.array("name", name);
}

void CallbackKernel::restore() {
    FAISS_EXT_THROW_IF_NOT_MSG(
            !name.empty(),
            "it contains a CallbackKernel without a name, whose function no file can contain; give the kernel a name");
    if (!function) {
        NamedFunctions& named = named_functions();
        const std::lock_guard lock(named.mutex);
        const auto found = named.functions.find(name);
        FAISS_EXT_THROW_IF_NOT_FMT(
                found != named.functions.end(),
                "its kernel is the function '%s', which no file can contain; make a CallbackKernel with this name first",
                printable(name).c_str());
        function = found->second;
    }
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
    return text_of_given("callback");
}

} // namespace faiss_ext
