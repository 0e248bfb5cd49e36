// Which kernels and hashes there are. Factories, files, copies and Python all
// learn of a class here and nowhere else.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <typeindex>
#include <vector>

#include <faiss_ext/Kernel.h>
#include <faiss_ext/KernelHash.h>
#include <faiss_ext/Spec.h>

namespace faiss_ext {

/// A class of kernels.
struct KernelEntry {
    std::string name; ///< in strings: letters, digits and `_`
    std::type_index type;
    std::function<std::unique_ptr<Kernel>(Spec&)> make;
    std::function<std::unique_ptr<Kernel>(const Kernel&)> copy;
    std::function<void(Kernel& to, const Kernel& from)> assign;
};

/// A class of hashes.
struct HashEntry {
    std::string name; ///< in strings, before nbits, and in files: letters
    std::type_index type;
    std::function<std::unique_ptr<KernelHash>(int d, int nbits, Spec&)> make;
    std::function<std::unique_ptr<KernelHash>()> make_empty;
    std::function<std::unique_ptr<KernelHash>(const KernelHash&)> copy;
    std::function<void(KernelHash& to, const KernelHash& from)> assign;
};

/// Adds a class. Throws if the name is malformed or if it or the class is
/// already known. Thread-safe, as are all functions here.
void register_kernel_entry(KernelEntry entry);
void register_hash_entry(HashEntry entry);

/// The entry of class K.
template <class K>
KernelEntry kernel_entry(const std::string& name) {
    return {name,
            typeid(K),
            [](Spec& spec) { return std::make_unique<K>(spec); },
            [](const Kernel& kernel) {
                return std::make_unique<K>(dynamic_cast<const K&>(kernel));
            },
            [](Kernel& to, const Kernel& from) {
                dynamic_cast<K&>(to) = dynamic_cast<const K&>(from);
            }};
}

/// The entry of class H.
template <class H>
HashEntry hash_entry(const std::string& name) {
    return {name,
            typeid(H),
            [](int d, int nbits, Spec& spec) {
                return std::make_unique<H>(d, nbits, spec);
            },
            []() { return std::make_unique<H>(); },
            [](const KernelHash& hash) {
                return std::make_unique<H>(dynamic_cast<const H&>(hash));
            },
            [](KernelHash& to, const KernelHash& from) {
                dynamic_cast<H&>(to) = dynamic_cast<const H&>(from);
            }};
}

/** Makes a class of kernels known by a name: from then on its strings work
 * wherever a kernel is asked for, and objects that hold it can be written, read
 * and copied.
 *
 * K needs a constructor K(Spec&), which reads its arguments with Spec's get
 * functions, and can be copied and assigned; K::description() must give a
 * string that the constructor understands.
 */
template <class K>
void register_kernel(const std::string& name) {
    register_kernel_entry(kernel_entry<K>(name));
}

/** Makes a class of hashes known by a name: from then on `NAME256(...)` works
 * in all factories, and the hash and the indexes that hold it can be written,
 * read and copied.
 *
 * H needs the constructors H(int d, int nbits, Spec&) and H(), can be copied
 * and assigned, and has write_fields and read_fields.
 */
template <class H>
void register_hash(const std::string& name) {
    register_hash_entry(hash_entry<H>(name));
}

/// The names known, sorted.
std::vector<std::string> kernel_names();
std::vector<std::string> hash_names();

/// The entry of an object's class; throws if it is not registered.
KernelEntry find_kernel(const Kernel& kernel);
HashEntry find_hash(const KernelHash& hash);

/// The entry of a name, or null.
std::unique_ptr<HashEntry> find_hash(const std::string& name);

/// Makes the kernel that an item of a string describes. `expected` are the
/// names to list if there is none of its name (by default, all).
std::unique_ptr<Kernel> make_kernel(
        Spec& spec,
        const std::vector<std::string>& expected = {});

} // namespace faiss_ext
