// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <faiss_ext/indexes/IndexFlatKernel.h>

namespace faiss_ext {

struct MappedFile;

/** Exact search under a kernel in the vectors of a file, which is mapped into
 * memory and may be larger than memory. As the index of `Refine` it re-ranks
 * the candidates that codes find.
 *
 * It is an IndexFlatKernel that keeps no vectors of its own, and can be used
 * wherever an IndexFlatKernel can. add() takes the vectors of the file in
 * order, from the first one on. It throws a faiss::FaissException for any other
 * vectors. This ensures that an index in front holds the same vectors. Only the
 * last vectors can be removed. Merging is not supported.
 *
 * When the index is written, only the path and checksums of the added vectors
 * are stored. write_index throws if the vectors' file has changed. read_index
 * looks for the vectors' file at its path, and for a file of the same name
 * beside the index's file. A file of another size is refused. If the time of
 * its last change differs, its vectors are read once, and the file is refused
 * if they have changed.
 *
 * Warning: do not truncate the file or write to it while it is in use. The
 * system ends a process that reads beyond the end of a mapped file.
 */
struct IndexFileKernel : IndexFlatKernel {
    std::string path; ///< absolute
    /// bytes before the first component of the first vector
    int64_t offset = 0;
    int64_t stride = 0;   ///< bytes from one vector to the next
    int64_t capacity = 0; ///< vectors in the file

    /**
     * @param path      a regular file
     * @param store     type of the components, little-endian: float, half
     *                  precision, or bytes
     * @param offset    bytes before the first component: 4 in .fvecs and .bvecs
     * @param stride    bytes from one vector to the next: 4 + 4 d in .fvecs, 4
     *                  + d in .bvecs
     * @param capacity  vectors in the file
     * @param kernel    is copied
     */
    IndexFileKernel(
            int d,
            const std::string& path,
            Store store,
            int64_t offset,
            int64_t stride,
            int64_t capacity,
            const Kernel& kernel,
            faiss::MetricType metric = faiss::METRIC_L2);
    IndexFileKernel() = default;

    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;
    void check_restorable() const override;

    /// Adds the next n vectors of the file. x must hold the same vectors, as
    /// floats.
    void add(idx_t n, const float* x) override;

    /// Adds the next n vectors of the file without comparing them.
    void add_next(idx_t n);

    /// Removes the last vectors. Throws, and removes nothing, if the ids belong
    /// to other vectors.
    size_t remove_ids(const faiss::IDSelector& sel) override;
    void reset() override;

    /// Throws: the vectors stay in their file.
    void sa_encode(idx_t n, const float* x, uint8_t* bytes) const override;
    /// Returns vectors with the components of the file.
    void sa_decode(idx_t n, const uint8_t* bytes, float* x) const override;

    /// These throw: the vectors stay in their file.
    void add_sa_codes(idx_t n, const uint8_t* bytes, const idx_t* xids)
            override;
    void permute_entries(const idx_t* perm) override;
    void check_compatible_for_merge(const faiss::Index& other) const override;

    Rows rows(const char* where) const override;

    /// Reads the vectors that were added from the file at the path, and throws
    /// if they have changed.
    void verify() const;

    /// Throws unless the file at the path still has the same size, and the same
    /// time of its last change or the same vectors.
    void check_unchanged() const;

    /// The folder of the index's file, if read_index has read one. The vectors'
    /// file is also looked for there.
    std::string folder;

   protected:
    /// Requests vectors that are not in memory in the order of the file, for
    /// many queries at once.
    void compare_subset(
            Subset what,
            idx_t n,
            const float* x,
            idx_t k,
            float* out,
            const idx_t* labels) const override;

   private:
    std::shared_ptr<const MappedFile> file;
    int64_t file_size = 0, file_time = 0; ///< in bytes, and ns since 1970
    std::vector<uint64_t> checksums;      ///< of blocks of added vectors

    void open(const std::string& name);
    void open_again(const std::string& name);
    void check_add(idx_t n, const char* where) const;
    void check_checksums() const;
    void extend(idx_t n);
    idx_t vectors_per_block() const;
    uint64_t checksum(idx_t block, idx_t n) const;
    void verify_block(idx_t block) const;
    void prefetch(size_t n, const idx_t* labels) const;
};

} // namespace faiss_ext
