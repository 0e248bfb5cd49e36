#include <faiss_ext/hashes/KernelHash.h>

#include <algorithm>
#include <typeinfo>
#include <vector>

#include <faiss/impl/io.h>

#include <faiss_ext/hashes/hash_registry.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "core/scratch.h"
#include "simd/margins.h"

namespace faiss_ext {

namespace {

/// Vectors to hash at a time: work for every thread, and margins of at most 4
/// MB. (More would leave the caches; fewer have a large matrix pass by more
/// often.)
idx_t rows_per_block(idx_t n, int nbits) {
    const idx_t threads = omp_get_max_threads();
    // tiles of a projection are 6 vectors high
    const idx_t share = (n / threads + 5) / 6 * 6;
    return std::clamp<idx_t>(
            share, 1, std::clamp<idx_t>(1048576 / nbits, 1, 192));
}

} // namespace

KernelHash::KernelHash(int d, int nbits)
        : VectorTransform(d, nbits), nbits(nbits) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d > 0, "the input dimension is %d, expected a positive number", d);
    FAISS_EXT_THROW_IF_NOT_FMT(
            nbits > 0 && nbits % 8 == 0,
            "the number of bits is %d, expected a positive multiple of 8",
            nbits);
}

void KernelHash::check_input(idx_t n, const float* x, const char* where) const {
    check_finite(n, x, d_in, where);
}

void KernelHash::check_ready(idx_t n, const float* x, const char* where) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            is_trained, "%s: the hash is not trained; call train first", where);
    check_input(n, x, where);
}

void KernelHash::train(idx_t n, const float* x) {
    check_input(n, x, "KernelHash::train");
    if (is_trained) {
        return;
    }
    const std::unique_ptr<KernelHash> before = clone();
    try {
        learn(n, x);
        is_trained = true;
    } catch (...) {
        assign(*before);
        throw;
    }
}

void KernelHash::learn(idx_t, const float*) {}

void KernelHash::encode(idx_t n, const float* x, uint8_t* codes) const {
    check_ready(n, x, "KernelHash::encode");
    parallel_blocks(n, rows_per_block(n, nbits), [&](idx_t begin, idx_t end) {
        const Scratch block((end - begin) * nbits);
        margins(end - begin, x + begin * d_in, block.get());
        simd::pack_signs(
                end - begin, nbits, block.get(), codes + begin * code_size());
    });
}

void KernelHash::apply_noalloc(idx_t n, const float* x, float* xt) const {
    check_ready(n, x, "KernelHash::apply");
    parallel_blocks(n, rows_per_block(n, nbits), [&](idx_t begin, idx_t end) {
        margins(end - begin, x + begin * d_in, xt + begin * nbits);
    });
}

void KernelHash::check_identical(const faiss::VectorTransform& other) const {
    FAISS_EXT_THROW_IF_NOT_MSG(
            typeid(*this) == typeid(other), "hashes of different schemes");
    const auto& hash = dynamic_cast<const KernelHash&>(other);
    faiss::VectorIOWriter mine, theirs;
    write_fields(&mine);
    hash.write_fields(&theirs);
    FAISS_EXT_THROW_IF_NOT_MSG(
            d_in == hash.d_in && nbits == hash.nbits &&
                    is_trained == hash.is_trained && mine.data == theirs.data,
            "hashes of the same scheme with different parameters, seeds or training");
}

std::unique_ptr<KernelHash> KernelHash::clone() const {
    return find_hash(*this).copy(*this);
}

void KernelHash::assign(const KernelHash& other) {
    find_hash(*this).assign(*this, other);
}

double KernelHash::normalized_hamming(double hamming) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            hamming >= 0 && hamming <= nbits,
            "the Hamming distance is %g, expected 0 to %d bits",
            hamming,
            nbits);
    return hamming / nbits;
}

} // namespace faiss_ext
