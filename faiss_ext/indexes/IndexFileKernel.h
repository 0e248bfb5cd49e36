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
 * memory: an IndexFlatKernel that keeps no vectors of its own. With codes in
 * front of it, `Refine` ranks candidates again by vectors that need not fit
 * into memory.
 *
 * It stands wherever an IndexFlatKernel does. add() takes the vectors of the
 * file, from the first one on, and throws a faiss::FaissException where it is
 * given others, so that an index in front has the same ones. Only the last
 * vectors can be removed. There is no merging.
 *
 * Written to a file, it is the path, and checksums of the vectors that were
 * added; it is not written if the file of the vectors has changed. read_index
 * looks for that file at its path, and for one of its name beside the index's
 * file. One of another size is refused; where the time of its last change is
 * another one, its vectors are read once, and refused if they are others. While
 * it is in use the file must not be cut short or written to: the system ends a
 * process that reads beyond the end of a mapped file.
 */
struct IndexFileKernel : IndexFlatKernel {
    std::string path;     ///< absolute
    int64_t offset = 0;   ///< of the first component of the first vector, bytes
    int64_t stride = 0;   ///< bytes from one vector to the next
    int64_t capacity = 0; ///< vectors in the file

    /**
     * @param path      a regular file
     * @param store     components, little-endian: float, half precision, or
     *                  bytes
     * @param offset    of the first component, in bytes: 4 in .fvecs and .bvecs
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

    /// The next n vectors of the file, as floats.
    void add(idx_t n, const float* x) override;

    /// The same without being given them.
    void add_next(idx_t n);

    /// Throws, and removes nothing, unless they are the last ones.
    size_t remove_ids(const faiss::IDSelector& sel) override;
    void reset() override;

    /// Throws: the vectors stay in their file.
    void sa_encode(idx_t n, const float* x, uint8_t* bytes) const override;
    /// Vectors with the components of the file.
    void sa_decode(idx_t n, const uint8_t* bytes, float* x) const override;

    /// These throw: the vectors stay where they are.
    void add_sa_codes(idx_t n, const uint8_t* bytes, const idx_t* xids)
            FAISS_EXT_OVERRIDE_1_10;
    void permute_entries(const idx_t* perm) override;
    void check_compatible_for_merge(const faiss::Index& other) const override;

    Rows rows(const char* where) const override;

    /// Reads the vectors that were added, and throws if they have changed.
    void verify() const;

    /// Throws unless the file that is at the path now has the same size, and
    /// the same time of its last change or the same vectors.
    void check_unchanged() const;

    /// what read_index has read the index from, where the file is looked for
    std::string folder;

   protected:
    /// Vectors that are not in memory are asked for in the order of the file,
    /// those of many queries at once.
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
