// Which kernels there are. Factories, files, copies and Python all learn of a
// class here and nowhere else.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <typeindex>
#include <vector>

#include <faiss_ext/core/Spec.h>
#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/// A class of kernels.
struct KernelEntry {
    std::string name; ///< in strings: letters, digits and `_`
    std::type_index type;
    std::function<std::unique_ptr<Kernel>(Spec&)> make;
    std::function<std::unique_ptr<Kernel>(const Kernel&)> copy;
    std::function<void(Kernel& to, const Kernel& from)> assign;
};

/// Adds a class. Throws if the name is malformed or if it or the class is
/// already known. Thread-safe, as are all functions here.
void register_kernel_entry(KernelEntry entry);

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

/// The names known, sorted.
std::vector<std::string> kernel_names();

/// The entry of an object's class; throws if it is not registered.
KernelEntry find_kernel(const Kernel& kernel);

/// Makes the kernel that an item of a string describes. `expected` are the
/// names to list if there is none of its name (by default, all).
std::unique_ptr<Kernel> make_kernel(
        Spec& spec,
        const std::vector<std::string>& expected = {});

} // namespace faiss_ext
