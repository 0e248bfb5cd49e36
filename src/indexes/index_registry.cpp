// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/index_registry.h>

#include <faiss_ext/indexes/IndexBinaryFlatKernel.h>
#include <faiss_ext/indexes/IndexBinaryPermuted.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexIVFPQ4.h>

#include "core/class_table_impl.h"

namespace faiss_ext {

template struct ClassTable<faiss::Index>;
template struct ClassTable<faiss::IndexBinary>;

template <>
ClassTable<faiss::Index>& class_table<faiss::Index>() {
    static ClassTable<faiss::Index> table(
            "index",
            Names::prefix,
            {class_entry<faiss::Index, IndexFlatKernel>("KFlat"),
             class_entry<faiss::Index, IndexIVFPQ4>("KIVF", "nlist")});
    return table;
}

template <>
ClassTable<faiss::IndexBinary>& class_table<faiss::IndexBinary>() {
    static ClassTable<faiss::IndexBinary> table(
            "binary index",
            Names::prefix,
            {class_entry<faiss::IndexBinary, IndexBinaryFlatKernel>("BKFlat"),
             class_entry<faiss::IndexBinary, IndexBinaryPermuted>("BPerm")});
    return table;
}

} // namespace faiss_ext
