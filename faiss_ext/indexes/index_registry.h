// SPDX-License-Identifier: MIT
// The list of index classes that factory strings and files know by a name.
// Wrappers, of FAISS and of this library, have their own grammar: see
// io/index_factory.h.

#pragma once

#include <string>
#include <type_traits>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>

#include <faiss_ext/core/fields.h>
#include <faiss_ext/indexes/index_tree.h>

namespace faiss_ext {

template <>
ClassTable<faiss::Index>& class_table();
template <>
ClassTable<faiss::IndexBinary>& class_table();

/** Registers a class of indexes under a name. `NAME(...)` then works in
 * factories wherever an index that takes vectors is expected (for a binary
 * index, codes), and the index can be written, read and copied.
 *
 * I must derive from faiss::Index or faiss::IndexBinary, and from HasFields,
 * and have a default constructor. I::fields() lists its parameters and its
 * stored data. register_index_class adds more, such as its search parameters. d
 * and the metric are set before I::init() is called; before I::restore(),
 * ntotal and is_trained are set as well. If I has other indexes inside,
 * IndexClass::take_parts gets them next.
 */
template <class I>
void register_index(const std::string& name) {
    static_assert(std::is_base_of_v<HasFields, I>);
    using Base = std::conditional_t<
            std::is_base_of_v<faiss::Index, I>,
            faiss::Index,
            faiss::IndexBinary>;
    class_table<Base>().add(class_entry<Base, I>(name));
    internal::forget_facts();
}

} // namespace faiss_ext
