#include <faiss_ext/kernels/kernel_registry.h>

#include <algorithm>
#include <cctype>

#include <faiss_ext/kernels/AdditiveKernel.h>
#include <faiss_ext/kernels/ExpChi2Kernel.h>
#include <faiss_ext/kernels/ExponentialKernel.h>
#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/LaplacianKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>
#include <faiss_ext/kernels/MaternKernel.h>
#include <faiss_ext/kernels/NormalizedKernel.h>
#include <faiss_ext/kernels/PolynomialKernel.h>

#include "core/class_table.h"

namespace faiss_ext {

namespace {

// One line for each class of this library.

ClassTable<KernelEntry>& kernels() {
    static ClassTable<KernelEntry> table{
            {kernel_entry<Chi2Kernel>("chi2"),
             kernel_entry<CosineKernel>("cosine"),
             kernel_entry<ExpChi2Kernel>("expchi2"),
             kernel_entry<ExponentialKernel>("exponential"),
             kernel_entry<GaussianKernel>("gaussian"),
             kernel_entry<HellingerKernel>("hellinger"),
             kernel_entry<IntersectionKernel>("intersection"),
             kernel_entry<JensenShannonKernel>("js"),
             kernel_entry<LaplacianKernel>("laplacian"),
             kernel_entry<LinearKernel>("linear"),
             kernel_entry<MaternKernel>("matern"),
             kernel_entry<NormalizedKernel>("normalized"),
             kernel_entry<PolynomialKernel>("poly")}};
    return table;
}

} // namespace

void register_kernel_entry(KernelEntry entry) {
    const std::string& name = entry.name;
    const bool good = !name.empty() &&
            std::isalpha(static_cast<unsigned char>(name[0])) &&
            std::all_of(name.begin(), name.end(), [](unsigned char c) {
                return std::isalnum(c) || c == '_';
            });
    FAISS_EXT_THROW_IF_NOT_FMT(
            good,
            "'%s' cannot be the name of a kernel: expected a letter, then letters, digits and '_'",
            name.c_str());
    kernels().add(std::move(entry));
}

std::vector<std::string> kernel_names() {
    return kernels().names();
}

KernelEntry find_kernel(const Kernel& kernel) {
    return kernels().find(typeid(kernel));
}

std::unique_ptr<Kernel> make_kernel(
        Spec& spec,
        const std::vector<std::string>& expected) {
    const auto entry = kernels().find(spec.name);
    if (!entry) {
        spec.fail(
                spec.begin,
                "'" + spec.name + "' is no kernel",
                expected.empty() ? kernel_names() : expected);
    }
    auto kernel = entry->make(spec);
    spec.finish();
    return kernel;
}

std::unique_ptr<Kernel> kernel_factory(const std::string& description) {
    Spec spec = Spec::parse(description);
    return make_kernel(spec);
}

} // namespace faiss_ext
