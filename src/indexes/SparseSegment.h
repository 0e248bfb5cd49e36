// SPDX-License-Identifier: MIT
// A part of the vectors of an IndexSparseKernel, and its search.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <faiss/impl/IDSelector.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/core/fields.h>
#include <faiss_ext/kernels/Kernel.h>

#include "indexes/DenseScan.h"
#include "indexes/SparseLists.h"
#include "kernels/SparseQuery.h"
#include "simd/top_k.h"

namespace faiss_ext {

/// Results of a query, while vectors are compared: the k nearest, or all within
/// a bound.
class SparseHits {
   public:
    /// The k nearest, k > 0.
    explicit SparseHits(size_t k) : nearest(k, infinity) {}

    /// All with a score of at most `bound`.
    static SparseHits within(float bound) {
        SparseHits hits(0);
        hits.limit = bound;
        return hits;
    }

    /// Vectors with larger scores are not needed.
    float bound() const {
        return std::min(limit, nearest.bound);
    }

    /// Tells that enough vectors have this score or a smaller one.
    void set_bound(float score) {
        limit = std::min(limit, score);
    }

    /// Adds vectors. NaN is skipped.
    void push(size_t n, const float* scores, const idx_t* ids);

    bool are_within() const {
        return most() == 0;
    }
    size_t most() const {
        return nearest.k;
    }

    void append_to(std::vector<Hit>& hits) const;

   private:
    static constexpr float infinity = std::numeric_limits<float>::infinity();

    TopK<float> nearest;
    std::vector<Hit> all; ///< all within the limit
    float limit = infinity;
};

/// A query, and the sum that bounds its scores.
struct SparseSearch {
    const SparseQuery& query;
    faiss::MetricType metric;
    const SharedSum* sum;         ///< null if the kernel has none
    float weight;                 ///< of the query
    bool is_histogram;            ///< whether no component is negative
    const faiss::IDSelector* sel; ///< of places; may be null
};

/** Up to 65,536 sparse vectors, some of which may be removed.
 *
 * Searches may run in parallel. No other call may run during a change.
 */
class SparseSegment {
   public:
    static constexpr size_t most_rows = SparseLists::most_rows;
    static constexpr idx_t removed = -1;

    size_t size() const { ///< also removed ones
        return ids.size();
    }
    size_t num_removed() const {
        return removed_count;
    }

    /// Whether the vectors are in a file, and cannot be changed.
    bool is_mapped() const {
        return all.are_mapped();
    }

    SparseRow row(size_t i) const {
        return all[i];
    }

    /// The place of a vector in the index, or `removed`.
    idx_t place(size_t i) const {
        return ids[i];
    }

    /// Shows the vectors and their places.
    void fields(FieldVisitor& v) const;

    /// Throws unless the fields belong to vectors of dimension d. Returns the
    /// vectors.
    SparseVectors checked(idx_t d, std::vector<int64_t>& indptr) const;

    /// Computes what files do not store.
    void restore();

    /// Appends vectors with the places from `first` on.
    void append(const SparseVectors& x, idx_t first);
    void append(const SparseRow& row, idx_t place);

    /// Removes the last rows.
    void truncate(size_t n);

    void set_place(size_t i, idx_t place) {
        ids[i] = int32_t(place);
    }
    void remove(size_t i);

    /// Frees removed rows at the end, except those with lists. Returns how many
    /// rows there are.
    size_t free_last();

    /// Makes lists if a search for `sum` needs them and they are missing.
    void prepare(const Kernel& kernel, const SharedSum& sum, size_t d) const;

    void search(const SparseSearch& how, SparseHits& hits) const;

    /// The same for several queries, by the sums of dense rows. This is faster
    /// than lists if many components are not 0. `hits` has those of each query.
    void search_dense(const DenseQueries& queries, SparseHits* hits) const;

    size_t num_components() const {
        return all.columns.size();
    }

   private:
    AppendedRows all;
    std::vector<int32_t> ids; ///< places by row
    size_t removed_count = 0;

    mutable std::mutex mutex;
    mutable std::shared_ptr<const SparseLists> lists;
    mutable std::string lists_of; ///< the kernel that they are for

    void compare(
            const SparseSearch& how,
            std::vector<uint32_t>& rows,
            SparseHits& hits) const;
    void compare_all(
            const SparseSearch& how,
            size_t begin,
            size_t end,
            SparseHits& hits) const;
    template <class Scan>
    void compare_found(const SparseSearch& how, Scan& scan, SparseHits& hits)
            const;
    void scan_lists(
            const SparseLists& lists,
            const SparseSearch& how,
            SparseHits& hits) const;
    std::shared_ptr<const SparseLists> current_lists() const;
    std::shared_ptr<const SparseLists> lists_for(const SparseSearch& how) const;
    void set_first_bound(
            const SparseSearch& how,
            std::vector<uint32_t> rows,
            SparseHits& hits) const;
};

} // namespace faiss_ext
