// SPDX-License-Identifier: MIT
// Which indexes there are that factory strings and files know by a name.
// (Indexes that are made of others, such as FAISS's wrappers, have grammar of
// their own: see io/index_factory.h.)

#pragma once

#include <string>
#include <type_traits>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>

#include <faiss_ext/core/fields.h>

namespace faiss_ext {

template <>
ClassTable<faiss::Index>& class_table();
template <>
ClassTable<faiss::IndexBinary>& class_table();

/** Makes a class of indexes known by a name: from then on `NAME(...)` works in
 * factories wherever an index stands that takes vectors (or, for a binary
 * index, codes), and the index can be written, read and copied.
 *
 * I derives from faiss::Index or faiss::IndexBinary, and from HasFields. It has
 * a default constructor; I::fields() shows its parameters and what it stores;
 * d and the metric are set when I::init() is called, ntotal and is_trained as
 * well when I::restore() is.
 */
template <class I>
void register_index(const std::string& name) {
    static_assert(std::is_base_of_v<HasFields, I>);
    using Base = std::conditional_t<
            std::is_base_of_v<faiss::Index, I>,
            faiss::Index,
            faiss::IndexBinary>;
    class_table<Base>().add(class_entry<Base, I>(name));
}

} // namespace faiss_ext
