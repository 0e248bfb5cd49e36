// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/kernel_registry.h>

#include <faiss_ext/kernels/AdditiveKernel.h>
#include <faiss_ext/kernels/CallbackKernel.h>
#include <faiss_ext/kernels/DiceKernel.h>
#include <faiss_ext/kernels/ExpChi2Kernel.h>
#include <faiss_ext/kernels/ExponentialKernel.h>
#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/JaccardKernel.h>
#include <faiss_ext/kernels/LaplacianKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>
#include <faiss_ext/kernels/MaternKernel.h>
#include <faiss_ext/kernels/NormalizedKernel.h>
#include <faiss_ext/kernels/PolynomialKernel.h>
#include <faiss_ext/kernels/ProductKernel.h>
#include <faiss_ext/kernels/SumKernel.h>

#include "core/class_table_impl.h"
#include "core/field_strings.h"

namespace faiss_ext {

template struct ClassTable<Kernel>;

namespace {

/// CallbackKernel has a name in files, but none in strings.
ClassEntry<Kernel> callback_entry() {
    auto entry = class_entry<Kernel, CallbackKernel>("callback.named");
    entry.variant.of = "callback";
    return entry;
}

} // namespace

template <>
ClassTable<Kernel>& class_table<Kernel>() {
    static ClassTable<Kernel> table(
            "kernel",
            Names::inside,
            {
                    callback_entry(),
                    class_entry<Kernel, Chi2Kernel>("chi2"),
                    class_entry<Kernel, CosineKernel>("cosine"),
                    class_entry<Kernel, DiceKernel>("dice"),
                    class_entry<Kernel, ExpChi2Kernel>("expchi2"),
                    class_entry<Kernel, ExponentialKernel>("exponential"),
                    class_entry<Kernel, GaussianKernel>("gaussian"),
                    class_entry<Kernel, HellingerKernel>("hellinger"),
                    class_entry<Kernel, IntersectionKernel>("intersection"),
                    class_entry<Kernel, JaccardKernel>("jaccard"),
                    class_entry<Kernel, JensenShannonKernel>("js"),
                    class_entry<Kernel, LaplacianKernel>("laplacian"),
                    class_entry<Kernel, LinearKernel>("linear"),
                    class_entry<Kernel, MaternKernel>("matern"),
                    class_entry<Kernel, NormalizedKernel>("normalized"),
                    class_entry<Kernel, PolynomialKernel>("poly"),
                    class_entry<Kernel, ProductKernel>("product"),
                    class_entry<Kernel, SumKernel>("sum"),
            });
    return table;
}

std::vector<std::string> kernel_names() {
    return class_table<Kernel>().names();
}

std::unique_ptr<Kernel> kernel_factory(const std::string& description) {
    Spec spec = Spec::parse(description);
    const auto entry = class_table<Kernel>().find(spec.name);
    if (!entry) {
        spec.fail(
                spec.begin,
                "unknown kernel '" + spec.name + "'",
                kernel_names());
    }
    auto kernel = entry->make();
    read_string(*kernel, spec);
    return kernel;
}

} // namespace faiss_ext
