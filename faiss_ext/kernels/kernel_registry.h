// SPDX-License-Identifier: MIT
// Which kernels there are. Factories, files, copies and Python all learn of a
// class here and nowhere else.

#pragma once

#include <string>
#include <vector>

#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/** Makes a class of kernels known by a name: from then on its strings work
 * wherever a kernel is asked for, and objects that hold it can be written, read
 * and copied.
 *
 * K has a default constructor, can be copied and assigned, and shows its
 * parameters in K::fields().
 */
template <class K>
void register_kernel(const std::string& name) {
    class_table<Kernel>().add(class_entry<Kernel, K>(name));
}

/// The names known, sorted.
std::vector<std::string> kernel_names();

} // namespace faiss_ext
