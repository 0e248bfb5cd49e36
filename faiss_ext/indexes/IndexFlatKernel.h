#pragma once

#include <faiss/IndexFlatCodes.h>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/KernelExceptions.h>
#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/** Exact search under a kernel, by scanning all vectors.
 *
 * METRIC_INNER_PRODUCT is k(x, y), METRIC_L2 is |phi(x) - phi(y)|^2 in the
 * kernel's feature space. Vectors are stored as floats, so that the index is
 * also the refine index of faiss::IndexRefine and the storage of
 * faiss::IndexHNSW. Results are ordered by distance and then by id, whatever
 * the number of threads or the split into batches. String: `KFlat(gaussian)`.
 *
 * Functions that take vectors throw a faiss::FaissException, and change
 * nothing, where the kernel is not defined on one of them. Removing vectors
 * moves the ids of those behind them, as in faiss::IndexFlat.
 */
struct IndexFlatKernel : faiss::IndexFlatCodes, HasFields {
    ClonePtr<Kernel> kernel;

    /// @param kernel  is copied
    IndexFlatKernel(
            int d,
            const Kernel& kernel,
            faiss::MetricType metric = faiss::METRIC_L2);
    IndexFlatKernel() = default;

    void fields(FieldVisitor& v) override;
    void init() override;
    void restore() override;

    /// Trains the kernel, if a parameter was left to the data.
    void train(idx_t n, const float* x) override;

    void add(idx_t n, const float* x) override;

    /// params: `sel` is honoured
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Distances < radius, or kernel values > radius; by ascending id for each
    /// query. params: `sel` is honoured
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /** The metric between each query and vectors of its own: what ranks
     * candidates again. As faiss::IndexFlat::compute_distance_subset; a label
     * of -1 gets the distance that search pads with, an id that does not exist
     * is an error.
     *
     * @param x          queries, size n * d
     * @param distances  size n * k
     * @param labels     ids of stored vectors, or -1, size n * k
     */
    void compute_distance_subset(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            const idx_t* labels) const;

    /// Throws if there is no such id.
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;

    void sa_encode(idx_t n, const float* x, uint8_t* bytes) const override;
    void sa_decode(idx_t n, const uint8_t* bytes, float* x) const override;

    faiss::FlatCodesDistanceComputer* get_FlatCodesDistanceComputer()
            const override;

    void check_compatible_for_merge(const faiss::Index& other) const override;

    /// what the kernel has thrown in FAISS's own loops
    mutable KernelExceptions exceptions;

    /// the stored vectors, size ntotal * d
    const float* get_xb() const {
        return reinterpret_cast<const float*>(codes.data());
    }
};

} // namespace faiss_ext
