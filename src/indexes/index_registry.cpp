// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/index_registry.h>

#include <faiss_ext/indexes/IndexBinaryFlatKernel.h>
#include <faiss_ext/indexes/IndexBinaryPermuted.h>
#include <faiss_ext/indexes/IndexConcurrent.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexIVFPQ4.h>
#include <faiss_ext/indexes/IndexSparseKernel.h>

#include "core/class_table_impl.h"
#include "indexes/with_ids.h"

namespace faiss_ext {

namespace {

/// The entry of a class of indexes that can have a table of ids.
template <class Base, class C>
ClassEntry<Base> entry_with_ids(
        const std::string& name,
        const std::string& number_key = "") {
    ClassEntry<Base> entry = class_entry<Base, C>(name, number_key);
    entry.make = [] { return make_with_ids<C>(); };
    return entry;
}

ClassEntry<faiss::Index> sparse_entry() {
    auto entry =
            entry_with_ids<faiss::Index, IndexSparseKernel>("KFlat.sparse");
    entry.variant = {"KFlat", "store", {"sparse", "auto"}};
    return entry;
}

} // namespace

template <>
const std::type_info& class_of(const faiss::Index& index) {
    return AnyIndex(index).type();
}

template <>
const std::type_info& class_of(const faiss::IndexBinary& index) {
    return AnyIndex(index).type();
}

template struct ClassTable<faiss::Index>;
template struct ClassTable<faiss::IndexBinary>;

template <>
ClassTable<faiss::Index>& class_table<faiss::Index>() {
    static ClassTable<faiss::Index> table(
            "index",
            Names::prefix,
            {entry_with_ids<faiss::Index, IndexFlatKernel>("KFlat"),
             sparse_entry(),
             entry_with_ids<faiss::Index, IndexIVFPQ4>("KIVF", "nlist"),
             class_entry<faiss::Index, IndexConcurrent>("Concurrent")});
    return table;
}

template <>
ClassTable<faiss::IndexBinary>& class_table<faiss::IndexBinary>() {
    static ClassTable<faiss::IndexBinary> table(
            "binary index",
            Names::prefix,
            {entry_with_ids<faiss::IndexBinary, IndexBinaryFlatKernel>(
                     "BKFlat"),
             entry_with_ids<faiss::IndexBinary, IndexBinaryPermuted>("BPerm"),
             class_entry<faiss::IndexBinary, IndexBinaryConcurrent>(
                     "BConcurrent")});
    return table;
}

} // namespace faiss_ext
