// What differs between FAISS versions in indexes; see core/compat.h.

#pragma once

#include <faiss/IndexBinary.h>
#include <faiss/IndexBinaryHash.h>

namespace faiss_ext {

/// storage.reset(). In 1.7.3, faiss::IndexBinaryMultiHash::reset leaves its
/// hash tables filled, and later searches follow ids that no longer exist.
inline void reset_binary_index(faiss::IndexBinary& storage) {
    storage.reset();
    if (auto* multi = dynamic_cast<faiss::IndexBinaryMultiHash*>(&storage)) {
        for (auto& map : multi->maps) {
            map.clear();
        }
    }
}

/// Has a faiss::IndexShards or IndexReplicas delete its parts.
template <class Group>
void own_group(Group& group) {
    if constexpr (requires { group.own_indices; }) {
        group.own_indices = true;
    } else {
        group.own_fields = true;
    }
}

} // namespace faiss_ext
