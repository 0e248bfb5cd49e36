// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexFileKernel.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <filesystem>
#include <utility>

#include <faiss/impl/IDSelector.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/mapped_file.h"
#include "core/parallel.h"
#include "core/scratch.h"
#include "indexes/row_codec.h"

namespace faiss_ext {

namespace {

namespace fs = std::filesystem;

/// Bytes of vectors that are prefetched at a time.
constexpr size_t bytes_at_a_time = size_t(64) << 20;

/// Bytes of vectors per checksum; a block has at least one vector.
constexpr size_t block_size = size_t(1) << 20;

RowCodec codec_of(const IndexFileKernel& index) {
    return {index.store, size_t(index.d), false};
}

} // namespace

IndexFileKernel::IndexFileKernel(
        int d,
        const std::string& path,
        Store store,
        int64_t offset,
        int64_t stride,
        int64_t capacity,
        const Kernel& kernel,
        faiss::MetricType metric)
        : offset(offset), stride(stride), capacity(capacity) {
    this->d = d;
    this->store = store;
    metric_type = metric;
    this->kernel = kernel.clone();
    open(path);
    init();
}

void IndexFileKernel::open(const std::string& name) {
    std::error_code error;
    const fs::path absolute = fs::absolute(name, error);
    file = std::make_shared<MappedFile>(error ? name : absolute.string());
    path = file->path;
    file_size = int64_t(file->size());
    file_time = file->modified();
}

void IndexFileKernel::fields(FieldVisitor& v) const {
    parameters(v);
    v.array("path", path);
    const std::vector<int64_t> layout = {
            offset, stride, capacity, file_size, file_time};
    v.array("layout", layout, layout.size());
    v.assign(offset, layout[0]);
    v.assign(stride, layout[1]);
    v.assign(capacity, layout[2]);
    v.assign(file_size, layout[3]);
    v.assign(file_time, layout[4]);
    v.array("checksums", checksums);
}

void IndexFileKernel::init() {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d > 0, "the dimension is %d, expected a positive number", d);
    check_metric(metric_type);
    check_fields(*this);
    code_size = codec_of(*this).code_size();
    is_trained = kernel->is_trained;
    const auto row = int64_t(code_size);
    const bool fits = offset >= 0 && stride >= row && capacity > 0 &&
            offset <= file_size - row &&
            capacity - 1 <= (file_size - row - offset) / stride;
    FAISS_EXT_THROW_IF_NOT_FMT(
            fits,
            "'%s' has %" PRId64 " bytes, too few for %" PRId64
            " vectors of %" PRId64 " bytes, %" PRId64
            " bytes apart, from byte %" PRId64 " on",
            path.c_str(),
            file_size,
            capacity,
            row,
            stride,
            offset);
    const size_t component = row / d;
    FAISS_EXT_THROW_IF_NOT_FMT(
            offset % component == 0 && stride % component == 0,
            "'%s': components of %zu bytes at byte %" PRId64
            ", vectors %" PRId64 " bytes apart, expected multiples of %zu",
            path.c_str(),
            component,
            offset,
            stride,
            component);
}

void IndexFileKernel::open_again(const std::string& name) {
    const int64_t size = file_size;
    open(name);
    const int64_t found = std::exchange(file_size, size);
    FAISS_EXT_THROW_IF_NOT_FMT(
            found == size,
            "'%s' has changed: it has %" PRId64 " bytes, expected %" PRId64,
            path.c_str(),
            found,
            size);
}

void IndexFileKernel::check_unchanged() const {
    IndexFileKernel now(*this);
    now.open_again(path);
    if (now.file_time != file_time) {
        now.verify();
    }
}

void IndexFileKernel::check_restorable() const {
    check_unchanged();
    check_checksums();
}

void IndexFileKernel::check_checksums() const {
    FAISS_EXT_THROW_IF_NOT_MSG(
            ntotal <= capacity &&
                    int64_t(checksums.size()) ==
                            (ntotal + vectors_per_block() - 1) /
                                    vectors_per_block(),
            "the numbers of vectors and of checksums are inconsistent");
}

void IndexFileKernel::restore() {
    const int64_t time = file_time;
    const bool was_trained = is_trained;
    const auto use = [&](const std::string& name) {
        open_again(name);
        init();
        FAISS_EXT_THROW_IF_NOT_MSG(
                is_trained == was_trained,
                "the kernel and the index are inconsistent: either both or neither must be trained");
        check_checksums();
        if (file_time != time) {
            verify();
        }
    };
    const std::string there = path;
    const fs::path beside = fs::path(folder) / fs::path(path).filename();
    std::error_code error;
    if (!fs::exists(beside, error) || fs::equivalent(there, beside, error)) {
        use(there);
    } else if (!fs::exists(there, error)) {
        use(beside.string());
    } else {
        try {
            use(there);
        } catch (const InterruptedError&) {
            throw;
        } catch (const faiss::FaissException&) { // the file was replaced
            const auto exception = std::current_exception();
            try {
                use(beside.string());
            } catch (const faiss::FaissException&) {
                std::rethrow_exception(exception);
            }
        }
    }
}

IndexFlatKernel::Rows IndexFileKernel::rows(const char* where) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            file && ntotal <= capacity &&
                    code_size == codec_of(*this).code_size() &&
                    offset + (ntotal - 1) * stride + int64_t(code_size) <=
                            int64_t(file->size()),
            "%s: the index has %" PRId64
            " vectors, but its file has fewer; do not set fields by hand",
            where,
            int64_t(ntotal));
    return {file->random_access() + offset,
            file->sequential() + offset,
            size_t(stride),
            false};
}

void IndexFileKernel::add(idx_t n, const float* x) {
    constexpr const char* where = "IndexFileKernel::add";
    check_add(n, where);
    kernel->check_input(n, x, d, where);
    const StoredRows stored = StoredRows::of(*this, where);
    std::atomic<idx_t> first_other{n};
    parallel_blocks(n, 256, [&](idx_t begin, idx_t end) {
        const Scratch rows((end - begin) * d);
        stored.decode(ntotal + begin, end - begin, rows.get());
        for (idx_t i = begin; i < end; i++) {
            if (!std::equal(
                        x + i * d,
                        x + (i + 1) * d,
                        rows.get() + (i - begin) * d)) {
                idx_t other = first_other;
                while (i < other &&
                       !first_other.compare_exchange_weak(other, i)) {
                }
                break;
            }
        }
    });
    FAISS_EXT_THROW_VECTOR_IF_NOT(
            first_other == n,
            first_other,
            format_message("%s: ", where),
            format_message(
                    " is not vector %" PRId64
                    " of '%s'; expected the vectors of the file, in their order",
                    int64_t(ntotal + first_other),
                    path.c_str()));
    extend(n);
}

void IndexFileKernel::add_next(idx_t n) {
    constexpr const char* where = "IndexFileKernel::add_next";
    check_add(n, where);
    const std::string quoted = "'" + path + "'";
    const StoredRows stored = StoredRows::of(*this, where);
    const idx_t step = std::clamp<idx_t>(block_size / (4 * d), 1, 4096);
    parallel_blocks(n, step, [&](idx_t begin, idx_t end) {
        const Scratch rows((end - begin) * d);
        stored.decode(ntotal + begin, end - begin, rows.get());
        with_numbers_from(ntotal + begin, [&] {
            kernel->check_input(end - begin, rows.get(), d, quoted.c_str());
        });
    });
    extend(n);
}

void IndexFileKernel::check_add(idx_t n, const char* where) const {
    check_trained(is_trained, where);
    rows(where);
    FAISS_EXT_THROW_IF_NOT_FMT(
            n >= 0 && n <= capacity - ntotal,
            "%s: %" PRId64 " vectors, but '%s' has %" PRId64
            ", of which %" PRId64 " have been added",
            where,
            int64_t(n),
            path.c_str(),
            capacity,
            int64_t(ntotal));
}

void IndexFileKernel::extend(idx_t n) {
    const idx_t size = vectors_per_block(), total = ntotal + n;
    if (ntotal % size != 0) { // its checksum is about to change
        verify_block(ntotal / size);
    }
    std::vector<uint64_t> sums = checksums;
    sums.resize((total + size - 1) / size);
    const idx_t first = ntotal / size;
    parallel_blocks(idx_t(sums.size()) - first, 1, [&](idx_t i, idx_t) {
        sums[first + i] = checksum(first + i, total);
    });
    checksums.swap(sums);
    ntotal = total;
}

idx_t IndexFileKernel::vectors_per_block() const {
    return std::max<idx_t>(1, block_size / stride);
}

/// Returns the checksum of a block when the index has n vectors.
uint64_t IndexFileKernel::checksum(idx_t block, idx_t n) const {
    const idx_t begin = block * vectors_per_block(),
                end = std::min(begin + vectors_per_block(), n);
    return XXH3_64bits(
            file->sequential() + offset + begin * stride,
            (end - begin - 1) * stride + code_size);
}

void IndexFileKernel::verify() const {
    IndexFileKernel now(*this);
    now.open_again(path); // may be another file than the mapped one
    now.rows("IndexFileKernel::verify");
    parallel_blocks(checksums.size(), 1, [&](idx_t block, idx_t) {
        now.verify_block(block);
    });
}

void IndexFileKernel::verify_block(idx_t block) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            checksum(block, ntotal) == checksums.at(block),
            "'%s' has changed: its vectors %" PRId64 " to %" PRId64
            " are not the ones that were added; build the index again",
            path.c_str(),
            int64_t(block * vectors_per_block()),
            int64_t(std::min((block + 1) * vectors_per_block(), ntotal) - 1));
}

void IndexFileKernel::compare_subset(
        Subset what,
        idx_t n,
        const float* x,
        idx_t k,
        float* out,
        const idx_t* labels) const {
    rows("IndexFileKernel::compute_distance_subset");
    const idx_t step = k <= 0
            ? n
            : std::max<idx_t>(1, bytes_at_a_time / code_size / size_t(k));
    if (k > 0) {
        prefetch(std::min(n, step) * k, labels);
    }
    for (idx_t i = 0; i < n; i += step) {
        const idx_t m = std::min(step, n - i), next = i + m;
        if (next < n) { // while these are compared
            prefetch(std::min(n - next, step) * k, labels + next * k);
        }
        IndexFlatKernel::compare_subset(
                what, m, x + i * d, k, out + i * k, labels + i * k);
    }
}

void IndexFileKernel::prefetch(size_t n, const idx_t* labels) const {
    const auto is_stored = [&](idx_t id) { return id >= 0 && id < ntotal; };
    // prefetching resident vectors takes longer than comparing them
    constexpr size_t sample = 64;
    bool are_resident = true;
    for (size_t i = 0; i < std::min(n, sample) && are_resident; i++) {
        const idx_t id = labels[i * n / std::min(n, sample)];
        are_resident =
                !is_stored(id) || file->is_resident(offset + id * stride);
    }
    if (are_resident) {
        return;
    }
    std::vector<idx_t> ids;
    std::copy_if(labels, labels + n, std::back_inserter(ids), is_stored);
    std::sort(ids.begin(), ids.end());
    constexpr size_t close = 4096; // nearby vectors are prefetched together
    const auto place = [&](size_t i) {
        return size_t(offset + ids[i] * stride);
    };
    for (size_t i = 0; i < ids.size();) {
        const size_t begin = place(i);
        size_t end = begin + code_size;
        for (i++; i < ids.size() && place(i) <= end + close; i++) {
            end = place(i) + code_size;
        }
        file->prefetch(begin, end);
    }
}

size_t IndexFileKernel::remove_ids(const faiss::IDSelector& sel) {
    idx_t kept = ntotal;
    while (kept > 0 && sel.is_member(kept - 1)) {
        kept--;
    }
    for (idx_t i = 0; i < kept; i++) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                !sel.is_member(i),
                "IndexFileKernel::remove_ids: vector %" PRId64
                " of '%s' cannot be removed; only the last vectors can",
                int64_t(i),
                path.c_str());
    }
    if (kept % vectors_per_block() != 0) {
        const idx_t last = kept / vectors_per_block();
        verify_block(last);
        checksums.at(last) = checksum(last, kept);
        checksums.resize(last + 1);
    } else {
        checksums.resize(kept / vectors_per_block());
    }
    return std::exchange(ntotal, kept) - kept;
}

void IndexFileKernel::reset() {
    checksums.clear();
    ntotal = 0;
}

void IndexFileKernel::sa_encode(idx_t, const float*, uint8_t*) const {
    throw_unsupported(
            "IndexFileKernel",
            "sa_encode",
            "the vectors stay in '" + path + "'");
}

void IndexFileKernel::sa_decode(idx_t n, const uint8_t* bytes, float* x) const {
    codec_of(*this).decode(n, bytes, code_size, x);
}

void IndexFileKernel::add_sa_codes(idx_t, const uint8_t*, const idx_t*) {
    throw_unsupported(
            "IndexFileKernel",
            "add_sa_codes",
            "the vectors stay in '" + path + "': use add_next");
}

void IndexFileKernel::permute_entries(const idx_t*) {
    throw_unsupported(
            "IndexFileKernel",
            "permute_entries",
            "the vectors stay in '" + path + "'");
}

void IndexFileKernel::check_compatible_for_merge(const faiss::Index&) const {
    throw_unsupported(
            "IndexFileKernel",
            "merge_from",
            "the vectors stay in '" + path +
                    "': build an index of one file with all vectors");
}

} // namespace faiss_ext
