// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <vector>

#include <faiss/IndexBinary.h>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/core/MappableVector.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/core/fields.h>
#include <faiss_ext/indexes/PlaceMoves.h>
#include <faiss_ext/kernels/BitKernel.h>

namespace faiss_ext {

/** Exact search under a similarity of packed bits (BitKernel), such as sets or
 * fingerprints of molecules. The Jaccard kernel is called Tanimoto similarity
 * in chemistry.
 *
 * The number of bits need not be a multiple of 8. The last byte of a code is
 * then padded with zeros at its low end, as by numpy.packbits.
 *
 * Distances are integers, as in every binary index: 1 - k in units of 2^-30. An
 * index can have up to 32,768 bits. Up to this number, different values of the
 * Jaccard kernel have different distances, so the order is exact.
 *
 *     std::unique_ptr<faiss::IndexBinary> index =
 *             index_binary_factory(2048, "BKFlat(jaccard)");
 *     index->add(n, fingerprints);
 *     index->search(nq, queries, 10, distances, labels);
 *     double k = IndexBinaryFlatKernel::kernel_value(distances[0]);
 *
 * String: `BKFlat(jaccard)`, or another BitKernel, as `BKFlat(tversky(alpha=1,
 * beta=0))`.
 *
 * Results are ordered by distance and then by id. If there are fewer than k,
 * the rest have id -1 and the largest distance. After a removal, later codes
 * move up to smaller ids, as in faiss::IndexBinaryFlat.
 *
 * The codes are stored by their number of ones, which bounds the kernel value:
 * that of the Jaccard kernel is at most the smaller number of ones divided by
 * the larger. A search therefore begins with the codes that have as many ones
 * as the query, and ends when no better code can follow. From d = 129 on, codes
 * are first compared as folded to 64 bits, and from d = 449 on to 256 bits, if
 * few enough of them can be of interest. Results are the same.
 *
 * A code takes d / 8 bytes of memory, rounded up to a multiple of 8, another 8,
 * and 8 or 32 more if it is folded. The first removal or replacement by ids of
 * your own adds 8 bytes per code. If the lists are mapped from a file,
 * functions that change the index throw.
 *
 * Source of the bound: S. J. Swamidass and P. Baldi, Bounds and algorithms for
 * fast exact searches of chemical fingerprints in linear and sublinear time, J.
 * Chem. Inf. Model. 2007.
 */
struct IndexBinaryFlatKernel : faiss::IndexBinary, HasFields {
    ClonePtr<BitKernel> kernel;

    /// The codes with the same number of ones, in any order.
    struct List {
        int32_t ones = 0;
        MappableVector<idx_t> ids;
        MappableVector<uint8_t> codes;  ///< size ids.size() * stride()
        MappableVector<uint8_t> folded; ///< of the same codes, or empty
    };

    std::vector<List> lists; ///< by ascending numbers of ones; may be empty

    /// @param d  number of bits, up to 32,768
    explicit IndexBinaryFlatKernel(int d);

    /// @param kernel  is copied
    IndexBinaryFlatKernel(int d, const BitKernel& kernel);
    IndexBinaryFlatKernel() = default;

    /// Bytes from a stored code to the next one, a multiple of 8.
    size_t stride() const;

    /// Whether codes are mapped from a file.
    bool is_mapped() const;

    /// The kernel value of a distance, which must not be negative. It is 0 for
    /// the largest distance, which marks a missing result.
    static double kernel_value(int32_t distance);

    /// The distance of a kernel value from 0 to 1. A range search with it as
    /// the radius finds codes with larger kernel values.
    static int32_t distance(double kernel_value);

    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;
    void check_restorable() const override;

    /// Checks the codes. There is nothing to learn.
    void train(idx_t n, const uint8_t* x) override;
    void add(idx_t n, const uint8_t* x) override;

    /// Throws UnsupportedError: ids are positions.
    void add_with_ids(idx_t n, const uint8_t* x, const idx_t* xids) override;
    void reset() override;

    /// Supports `params->sel`.
    void search(
            idx_t n,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Finds codes at a distance < radius, by ascending id. As floats,
    /// distances are rounded down to 24 bits. Supports `params->sel`.
    void range_search(
            idx_t n,
            const uint8_t* x,
            int radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    size_t remove_ids(const faiss::IDSelector& sel) override;

    /// See IndexClass::prepare_moves. The first call takes time proportional to
    /// ntotal.
    std::function<void()> prepare_moves(const PlaceMoves& moves);

    /** Computes distances between each query and given codes.
     *
     * @param x          size n * ceil(d / 8)
     * @param distances  size n * k; INT32_MAX if the label is -1
     * @param labels     size n * k
     */
    void compute_distance_subset(
            idx_t n,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            const idx_t* labels) const;

    /// Remembers where each code is. Afterwards, finding a code by its id takes
    /// no search in the lists, and adds 8 bytes per code.
    void remember_places();

    void reconstruct(idx_t key, uint8_t* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, uint8_t* recons) const override;
    void merge_from(faiss::IndexBinary& other, idx_t add_id = 0) override;
    void check_compatible_for_merge(
            const faiss::IndexBinary& other) const override;

   private:
    /// By id, the list of a code and its position there, if they are
    /// remembered. Otherwise ids ascend in each list.
    std::vector<uint64_t> places;
    bool has_places = false;

    /// By the number of ones, the number of its list in `lists`, or -1.
    std::vector<int32_t> numbers;

    List& list_at(uint64_t place);
    const List& list_at(uint64_t place) const;
    void add_lists(const std::vector<idx_t>& sizes);
    void number_lists();
    void check_lists() const;
    void append(List& list, idx_t id, const uint8_t* code);
    void move_code(List& list, size_t from, size_t to);
    void truncate(List& list, size_t n);
    void reserve(List& list, size_t more);
    void fill_places();
    uint64_t place_of(idx_t id) const;
    uint64_t find_place(idx_t id) const;
};

} // namespace faiss_ext
