#include <faiss_ext/registry.h>

#include <algorithm>
#include <cctype>
#include <mutex>

#include <faiss_ext/AdditiveKernel.h>
#include <faiss_ext/AdditiveKernelHash.h>
#include <faiss_ext/BilinearShiftInvariantHash.h>
#include <faiss_ext/ExpChi2Kernel.h>
#include <faiss_ext/ExponentialKernel.h>
#include <faiss_ext/GaussianKernel.h>
#include <faiss_ext/HyperplaneHash.h>
#include <faiss_ext/KernelizedHash.h>
#include <faiss_ext/LaplacianKernel.h>
#include <faiss_ext/LinearKernel.h>
#include <faiss_ext/MaternKernel.h>
#include <faiss_ext/NormalizedKernel.h>
#include <faiss_ext/PolynomialKernel.h>
#include <faiss_ext/ShiftInvariantHash.h>
#include <faiss_ext/SignCauchyHash.h>

#include "errors.h"

namespace faiss_ext {

namespace {

template <class Entry>
struct Table {
    std::vector<Entry> entries;
    std::mutex mutex = {};

    void add(Entry entry) {
        std::lock_guard<std::mutex> lock(mutex);
        for (const Entry& e : entries) {
            FAISS_EXT_THROW_IF_NOT_FMT(
                    e.name != entry.name && e.type != entry.type,
                    "%s, or its class, is already registered (as %s)",
                    entry.name.c_str(),
                    e.name.c_str());
        }
        entries.push_back(std::move(entry));
    }

    std::unique_ptr<Entry> find(const std::string& name) {
        std::lock_guard<std::mutex> lock(mutex);
        for (const Entry& e : entries) {
            if (e.name == name) {
                return std::make_unique<Entry>(e);
            }
        }
        return nullptr;
    }

    Entry find(const std::type_info& type) {
        std::lock_guard<std::mutex> lock(mutex);
        for (const Entry& e : entries) {
            if (e.type == type) {
                return e;
            }
        }
        FAISS_EXT_THROW_FMT(
                "class %s is not registered with faiss_ext", type.name());
    }

    std::vector<std::string> names() {
        std::lock_guard<std::mutex> lock(mutex);
        std::vector<std::string> names;
        for (const Entry& e : entries) {
            names.push_back(e.name);
        }
        std::sort(names.begin(), names.end());
        return names;
    }
};

// One line for each class of this library.

Table<KernelEntry>& kernels() {
    static Table<KernelEntry> table{
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

Table<HashEntry>& hashes() {
    static Table<HashEntry> table{
            {hash_entry<AdditiveKernelHash>("AHK"),
             hash_entry<BilinearShiftInvariantHash>("BSIK"),
             hash_entry<HyperplaneHash>("RHBE"),
             hash_entry<KernelizedHash>("KLSH"),
             hash_entry<SignCauchyHash>("SCR"),
             hash_entry<ShiftInvariantHash>("SIK")}};
    return table;
}

void check_name(const std::string& name, bool digits) {
    bool good =
            !name.empty() && std::isalpha(static_cast<unsigned char>(name[0]));
    for (unsigned char c : name) {
        good = good && (digits ? std::isalnum(c) || c == '_' : std::isalpha(c));
    }
    if (!digits) {
        // before a number these mean something else in factory strings
        for (const char* taken :
             {"HKM",  "PCA",       "PCAR",  "PCAW", "PCAWR", "OPQ",
              "RR",   "ITQ",       "Pad",   "IVF",  "IMI",   "HNSW",
              "NSG",  "PQ",        "SQ",    "RQ",   "LSQ",   "PRQ",
              "PLSQ", "ZnLattice", "IDMap", "BIVF", "BHash", "BHNSW"}) {
            FAISS_EXT_THROW_IF_NOT_FMT(
                    name != taken,
                    "'%s' cannot be the name of a hash: it has another meaning in factory strings",
                    taken);
        }
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            good,
            "'%s' cannot be the name of a %s: expected %s",
            name.c_str(),
            digits ? "kernel" : "hash",
            digits ? "a letter, then letters, digits and '_'" : "letters");
}

} // namespace

void register_kernel_entry(KernelEntry entry) {
    check_name(entry.name, true);
    kernels().add(std::move(entry));
}

void register_hash_entry(HashEntry entry) {
    check_name(entry.name, false);
    hashes().add(std::move(entry));
}

std::vector<std::string> kernel_names() {
    return kernels().names();
}

std::vector<std::string> hash_names() {
    return hashes().names();
}

KernelEntry find_kernel(const Kernel& kernel) {
    return kernels().find(typeid(kernel));
}

HashEntry find_hash(const KernelHash& hash) {
    return hashes().find(typeid(hash));
}

std::unique_ptr<HashEntry> find_hash(const std::string& name) {
    return hashes().find(name);
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
