// Which hashes there are. Factories, files, copies and Python all learn of a
// class here and nowhere else.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <typeindex>
#include <vector>

#include <faiss_ext/core/Spec.h>
#include <faiss_ext/hashes/KernelHash.h>

namespace faiss_ext {

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
void register_hash_entry(HashEntry entry);

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
std::vector<std::string> hash_names();

/// The entry of an object's class; throws if it is not registered.
HashEntry find_hash(const KernelHash& hash);

/// The entry of a name, or null.
std::unique_ptr<HashEntry> find_hash(const std::string& name);

} // namespace faiss_ext
