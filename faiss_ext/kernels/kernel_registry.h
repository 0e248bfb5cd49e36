// SPDX-License-Identifier: MIT
// The list of kernel classes. Factories, files, copies and Python find a class
// only here.

#pragma once

#include <string>
#include <vector>

#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/** Registers a class of kernels under a name. Its strings then work wherever a
 * kernel is expected, and objects that hold it can be written, read and copied.
 *
 * K must have a default constructor, be copyable and assignable, and show its
 * parameters in K::fields().
 */
template <class K>
void register_kernel(const std::string& name) {
    class_table<Kernel>().add(class_entry<Kernel, K>(name));
}

/// The registered names, sorted.
std::vector<std::string> kernel_names();

} // namespace faiss_ext
