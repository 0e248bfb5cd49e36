// SPDX-License-Identifier: MIT
// Which hashes there are. Factories, files, copies and Python all learn of a
// class here and nowhere else.

#pragma once

#include <string>
#include <vector>

#include <faiss_ext/hashes/KernelHash.h>

namespace faiss_ext {

/** Makes a class of hashes known by a name: from then on `NAME256(...)` works
 * in all factories, and the hash and the indexes that hold it can be written,
 * read and copied.
 *
 * H has a default constructor, can be copied and assigned, and shows its fields
 * in H::fields(); d_in and nbits are set when it and H::init() are called.
 */
template <class H>
void register_hash(const std::string& name) {
    class_table<KernelHash>().add(class_entry<KernelHash, H>(name));
}

/// The names known, sorted.
std::vector<std::string> hash_names();

} // namespace faiss_ext
