// SPDX-License-Identifier: MIT
// The list of hash classes. Factories, files, copies and Python find a class
// only here.

#pragma once

#include <string>
#include <vector>

#include <faiss_ext/hashes/KernelHash.h>

namespace faiss_ext {

/** Registers a class of hashes under a name. `NAME256(...)` then works in all
 * factories, and the hash and the indexes that hold it can be written, read and
 * copied.
 *
 * H must have a default constructor, be copyable and assignable, and show its
 * fields in H::fields(). d_in and nbits are set before H::fields() and
 * H::init() are called.
 */
template <class H>
void register_hash(const std::string& name) {
    class_table<KernelHash>().add(class_entry<KernelHash, H>(name));
}

/// The registered names, sorted.
std::vector<std::string> hash_names();

} // namespace faiss_ext
