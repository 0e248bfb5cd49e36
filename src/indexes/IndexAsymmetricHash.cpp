// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexAsymmetricHash.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "core/slices.h"
#include "indexes/blocked_scan.h"
#include "indexes/index_positions.h"
#include "indexes/no_vectors.h"
#include "indexes/pq4_codes.h"
#include "indexes/range_result.h"
#include "indexes/search_params.h"
#include "simd/elementwise.h"
#include "simd/ranking.h"
#include "simd/top_k.h"

namespace faiss_ext {

namespace {

using simd::pq4_block;

constexpr int most_bits = 8192;

size_t blocks_of(size_t n) {
    return (n + pq4_block - 1) / pq4_block;
}

Pq4Slot slot_of(IndexAsymmetricHash& index, size_t i) {
    return Pq4Slot(index.codes.make_owned().data(), i, index.hash->code_size());
}

void check_bits(const KernelHash& hash) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            hash.nbits <= most_bits,
            "IndexAsymmetricHash: the hash has %d bits, expected at most %d",
            hash.nbits,
            most_bits);
}

/// A query's weights as tables, and the scale of a sum of table entries.
struct AsymmetricQuery {
    AlignedVector<uint8_t> tables;
    float scale = 0;

    /// @param weights  are rounded in place
    void make(size_t nbits, float* weights) {
        const size_t parts = parts_of(nbits);
        const int most = std::min<int>(simd::pq4_max_sum, 4 * 65535 / parts);
        round_weights(nbits, weights, float(most));
        float total = 0;
        AlignedVector<uint8_t> entries(parts * pq4_numbers);
        for (size_t p = 0; p < parts; p++) {
            for (size_t j = 0; j < 4; j++) {
                // the bits that fill the last byte have no weight
                const size_t bit = 4 * p + j;
                const float w = bit < nbits ? weights[bit] : 0;
                total += std::abs(w);
                for (size_t e = 0; e < pq4_numbers; e++) {
                    const bool is_set = e >> j & 1;
                    entries[p * pq4_numbers + e] +=
                            is_set == (w >= 0) ? 0 : uint8_t(std::abs(w));
                }
            }
        }
        scale = float(nbits) / total;
        tables.resize(simd::pq4_tables_size(parts / 2));
        simd::arrange_pq4_tables(parts / 2, entries.data(), tables.data());
    }

   private:
    /// Parts of 4 bits in the bytes of a code.
    static size_t parts_of(size_t nbits) {
        return 2 * ((nbits + 7) / 8);
    }

    /// Rounds the weights to integers. A sum over the parts that are added up
    /// as bytes does not exceed `most`. If all weights are 0, each bit gets
    /// weight 1.
    static void round_weights(size_t nbits, float* weights, float most) {
        FAISS_EXT_THROW_IF_NOT_MSG(
                all_finite(nbits, weights),
                "IndexAsymmetricHash: the projections of a query overflow; scale the vectors down");
        const float longest = simd::max_abs(nbits, weights);
        // beyond these, sums or the factor might overflow
        if (longest > 1e30f || (longest > 0 && longest < 1e-30f)) {
            for (size_t j = 0; j < nbits; j++) {
                weights[j] = std::ldexp(weights[j], -std::ilogb(longest));
            }
        }
        std::vector<float> width(parts_of(nbits));
        for (size_t j = 0; j < nbits; j++) {
            width[j / 4] += std::abs(weights[j]);
        }
        const float largest = simd::widest_pq4_pair(width.size(), width.data());
        // rounding may raise each of sixteen weights by a half
        const float factor = (most - 8) / largest;
        for (size_t j = 0; j < nbits; j++) {
            float& w = weights[j];
            w = largest > 0 ? std::round(w * factor) : w >= 0 ? 1.0f : -1.0f;
        }
    }
};

/// Queries that are searched for together. The tables and weights of a query
/// take at least 4 bytes per bit.
constexpr idx_t most_queries = 4096;

/// Makes queries [q0, q1) of a batch.
std::vector<AsymmetricQuery> make_queries(
        const IndexAsymmetricHash& index,
        idx_t q0,
        idx_t q1,
        const VectorBatch& x) {
    const KernelHash& hash = *index.hash;
    const idx_t n = q1 - q0;
    std::vector<float> weights(n * hash.nbits);
    with_numbers_from(q0, [&] {
        const VectorBatch queries = x.slice(q0, q1);
        if (x.is_sparse) {
            hash.apply_sparse(queries.sparse, weights.data());
        } else {
            hash.apply_noalloc(n, queries.dense, weights.data());
        }
    });
    std::vector<AsymmetricQuery> queries(n);
    parallel_blocks(n, 16, [&](idx_t begin, idx_t end) {
        float* first = &weights[begin * hash.nbits];
        hash.query_weights(end - begin, first);
        for (idx_t i = begin; i < end; i++, first += hash.nbits) {
            queries[i].make(hash.nbits, first);
        }
    });
    return queries;
}

/// Calls fn(distance, id) for the codes in blocks [begin, end) whose distance
/// is below bound().
template <class Bound, class F>
void scan_blocks(
        const IndexAsymmetricHash& index,
        const AsymmetricQuery& query,
        idx_t begin,
        idx_t end,
        const faiss::IDSelector* sel,
        Bound&& bound,
        F&& fn) {
    constexpr size_t together = 32, slack = 16;
    constexpr size_t size = together * pq4_block;
    static const std::array<float, size> zeros{};
    const size_t rows = index.hash->code_size();
    float scores[size + slack];
    uint32_t positions[size + slack];
    std::array<float, size> last;
    for (idx_t b = begin; b < end; b += together) {
        const size_t first = b * pq4_block;
        const size_t nblocks = std::min<idx_t>(together, end - b);
        const float* offsets = zeros.data();
        if (first + nblocks * pq4_block > size_t(index.ntotal)) {
            last.fill(worst_score);
            std::fill_n(last.begin(), index.ntotal - first, 0.0f);
            offsets = last.data();
        }
        simd::Pq4Hits hits{scores, positions, 0};
        simd::scan_pq4(
                rows,
                query.tables.data(),
                query.scale,
                nblocks,
                index.codes.sequential() + b * rows * pq4_block,
                offsets,
                bound(),
                hits);
        for (size_t i = 0; i < hits.size; i++) {
            const idx_t id = first + positions[i];
            if (!sel || sel->is_member(id)) {
                fn(scores[i], id);
            }
        }
    }
}

/** Scans all codes for all queries.
 *
 * @param empty   copied for each query and slice; scan(hits, query, begin, end)
 *                adds the hits of some blocks to it
 * @param result  result(query, hits) receives the hits of all slices
 */
template <class Hits, class Scan, class Result>
void scan_all(
        const IndexAsymmetricHash& index,
        idx_t n,
        const Hits& empty,
        Scan&& scan,
        Result&& result) {
    constexpr idx_t query_block = 16, least_slice = 512;
    constexpr size_t chunk_bytes = 65536;
    const idx_t nblocks = blocks_of(index.ntotal);
    const idx_t chunk = std::max<idx_t>(
            1, chunk_bytes / (index.hash->code_size() * pq4_block));
    scan_slices<Hits>(
            BlockedScan(n, nblocks, query_block, 1, least_slice),
            nblocks,
            [&](idx_t q0,
                idx_t nq,
                idx_t,
                idx_t begin,
                idx_t end,
                auto&& found) {
                std::vector<Hits> hits(nq, empty);
                for_chunks(begin, end, chunk, [&](idx_t from, idx_t to) {
                    for (idx_t q = 0; q < nq; q++) {
                        scan(hits[q], q0 + q, from, to);
                    }
                });
                for (idx_t q = 0; q < nq; q++) {
                    found(q0 + q, std::move(hits[q]));
                }
            },
            result);
}

float metric_of(const IndexAsymmetricHash& index, float distance) {
    return index.metric_type == faiss::METRIC_L2
            ? distance
            : float(index.hash->nbits) - 2 * distance;
}

/// Writes the hits in order and pads them to k.
void write_hits(
        const IndexAsymmetricHash& index,
        const std::vector<Hit>& hits,
        idx_t k,
        float* distances,
        idx_t* labels) {
    const bool is_l2 = index.metric_type == faiss::METRIC_L2;
    for (idx_t j = 0; j < k; j++) {
        const bool is_there = size_t(j) < hits.size();
        distances[j] = is_there ? metric_of(index, hits[j].first)
                                : (is_l2 ? worst_score : -worst_score);
        labels[j] = is_there ? hits[j].second : -1;
    }
}

void check_ready(const IndexAsymmetricHash& index, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            index.hash,
            "IndexAsymmetricHash::%s: the index has no hash",
            where);
    check_stored(
            blocks_of(index.ntotal) * pq4_block,
            index.codes.size(),
            index.hash->code_size(),
            "IndexAsymmetricHash");
}

} // namespace

IndexAsymmetricHash::IndexAsymmetricHash(
        const KernelHash& hash,
        faiss::MetricType metric)
        : Index(hash.d_in, metric), hash(hash.clone()) {
    check_metric(metric);
    check_bits(hash);
    is_trained = hash.is_trained;
}

void IndexAsymmetricHash::check_parts() const {
    check_ready(*this, "read");
    check_bits(*hash);
    FAISS_EXT_THROW_IF_NOT_MSG(
            hash->d_in == d && (hash->is_trained || ntotal == 0),
            "the hash and the index are inconsistent: they differ in dimension, or the hash is not trained");
}

void IndexAsymmetricHash::train(idx_t n, const float* x) {
    train_batch({n, x, d});
}

void IndexAsymmetricHash::train_batch(const VectorBatch& x) {
    check_ready(*this, "train");
    check_not_mapped(bool(codes.mapped()), "IndexAsymmetricHash::train");
    hash->verbose = verbose;
    if (x.is_sparse) {
        hash->train_sparse(x.sparse);
    } else {
        hash->train(x.n, x.dense);
    }
    is_trained = true;
}

void IndexAsymmetricHash::add(idx_t n, const float* x) {
    add_batch({n, x, d});
}

void IndexAsymmetricHash::add_batch(const VectorBatch& x) {
    const idx_t n = x.n;
    check_ready(*this, "add");
    check_not_mapped(bool(codes.mapped()), "IndexAsymmetricHash::add");
    const size_t size = hash->code_size();
    std::vector<uint8_t> added(std::max<idx_t>(n, 0) * size);
    if (x.is_sparse) {
        hash->encode_sparse(x.sparse, added.data());
    } else {
        check_batch(n, x.dense, "IndexAsymmetricHash::add");
        hash->encode(n, x.dense, added.data());
    }
    codes.make_owned().resize(blocks_of(ntotal + n) * size * pq4_block);
    for (idx_t i = 0; i < n; i++) {
        uint8_t* to = slot_of(*this, ntotal + i).bytes;
        for (size_t r = 0; r < size; r++) {
            to[r * pq4_block] = added[i * size + r];
        }
    }
    ntotal += n;
}

void IndexAsymmetricHash::add_with_ids(idx_t, const float*, const idx_t*) {
    throw_unsupported(
            "IndexAsymmetricHash",
            "add_with_ids",
            "put an IDMap or IndexIDTable in front of the index");
}

void IndexAsymmetricHash::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    check_batch(n, x, "IndexAsymmetricHash::search");
    search_batch({n, x, d}, k, distances, labels, params);
}

void IndexAsymmetricHash::search_batch(
        const VectorBatch& x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    check_ready(*this, "search");
    check_k(k, "IndexAsymmetricHash::search");
    const faiss::IDSelector* sel =
            plain_selector(params, "IndexAsymmetricHash::search");
    const size_t kept = std::max<idx_t>(1, std::min(k, ntotal));
    for_batches(x.n, most_queries, [&](idx_t q0, idx_t q1) {
        const auto queries = make_queries(*this, q0, q1, x);
        scan_all(
                *this,
                q1 - q0,
                TopK<float>(kept),
                [&](TopK<float>& best, idx_t q, idx_t begin, idx_t end) {
                    scan_blocks(
                            *this,
                            queries[q],
                            begin,
                            end,
                            sel,
                            [&] { return best.bound; },
                            [&](float score, idx_t id) {
                                best.push(score, id);
                            });
                },
                [&](idx_t q, std::span<const TopK<float>> found) {
                    write_hits(
                            *this,
                            smallest_of(found, k),
                            k,
                            distances + (q0 + q) * k,
                            labels + (q0 + q) * k);
                });
    });
}

void IndexAsymmetricHash::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_batch(n, x, "IndexAsymmetricHash::range_search");
    range_search_batch({n, x, d}, radius, result, params);
}

void IndexAsymmetricHash::range_search_batch(
        const VectorBatch& x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_ready(*this, "range_search");
    check_radius(radius, "IndexAsymmetricHash::range_search");
    const faiss::IDSelector* sel =
            plain_selector(params, "IndexAsymmetricHash::range_search");
    const bool is_l2 = metric_type == faiss::METRIC_L2;
    // rounding may make a distance too large: admit it here, and check it later
    const float limit = is_l2 ? radius : (float(hash->nbits) - radius) / 2;
    const float bound =
            std::min(limit + 1e-6f * (hash->nbits + 1), worst_score);
    std::vector<std::vector<Hit>> all(x.n);
    for_batches(x.n, most_queries, [&](idx_t q0, idx_t q1) {
        const auto queries = make_queries(*this, q0, q1, x);
        scan_all(
                *this,
                q1 - q0,
                std::vector<Hit>(),
                [&](std::vector<Hit>& hits, idx_t q, idx_t begin, idx_t end) {
                    scan_blocks(
                            *this,
                            queries[q],
                            begin,
                            end,
                            sel,
                            [&] { return bound; },
                            [&](float score, idx_t id) {
                                const float value = metric_of(*this, score);
                                if (is_within(metric_type, value, radius)) {
                                    hits.emplace_back(value, id);
                                }
                            });
                },
                [&](idx_t q, std::span<std::vector<Hit>> found) {
                    all[q0 + q] = std::move(concatenated(found));
                });
    });
    fill_range_result(
            all,
            result,
            [](const Hit& hit) { return hit.first; },
            [](const Hit& hit) { return hit.second; });
}

void IndexAsymmetricHash::reconstruct(idx_t, float*) const {
    throw_no_vectors("IndexAsymmetricHash");
}

void IndexAsymmetricHash::reconstruct_n(idx_t, idx_t, float* recons) const {
    reconstruct(0, recons);
}

void IndexAsymmetricHash::reconstruct_batch(idx_t, const idx_t*, float*) const {
    throw_no_vectors("IndexAsymmetricHash");
}

faiss::DistanceComputer* IndexAsymmetricHash::get_distance_computer() const {
    throw UnsupportedError(
            "IndexAsymmetricHash computes no single distances, so it can neither re-rank nor hold the vectors of a graph");
}

void IndexAsymmetricHash::reset() {
    codes = {};
    ntotal = 0;
}

size_t IndexAsymmetricHash::remove_ids(const faiss::IDSelector& sel) {
    check_ready(*this, "remove_ids");
    check_not_mapped(bool(codes.mapped()), "IndexAsymmetricHash::remove_ids");
    const size_t size = hash->code_size();
    idx_t kept = 0;
    for (idx_t i = 0; i < ntotal; i++) {
        if (!sel.is_member(i)) {
            slot_of(*this, kept++).copy(slot_of(*this, i), size);
        }
    }
    const size_t removed = ntotal - kept;
    codes.make_owned().resize(blocks_of(kept) * size * pq4_block);
    ntotal = kept;
    return removed;
}

std::function<void()> IndexAsymmetricHash::prepare_moves(
        const PlaceMoves& moves) {
    check_ready(*this, "remove_ids");
    check_not_mapped(bool(codes.mapped()), "IndexAsymmetricHash");
    return [this, &moves] {
        const size_t size = hash->code_size();
        for (const auto [from, to] : moves.moves) {
            slot_of(*this, to).copy(slot_of(*this, from), size);
        }
        codes.make_owned().resize(blocks_of(moves.after) * size * pq4_block);
        ntotal = moves.after;
    };
}

void IndexAsymmetricHash::check_compatible_for_merge(
        const faiss::Index& other) const {
    check_not_itself(&other == this);
    check_before_merge(*this, other);
    const auto* source = dynamic_cast<const IndexAsymmetricHash*>(&other);
    FAISS_EXT_THROW_IF_NOT_MSG(
            source, "cannot merge: expected another IndexAsymmetricHash");
    check_ready(*this, "merge_from");
    check_ready(*source, "merge_from");
    FAISS_EXT_THROW_IF_NOT_MSG(
            metric_type == source->metric_type,
            "cannot merge: the metrics differ");
    hash->check_identical(*source->hash);
}

void IndexAsymmetricHash::merge_from(faiss::Index& other, idx_t add_id) {
    check_not_mapped(bool(codes.mapped()), "IndexAsymmetricHash::merge_from");
    check_compatible_for_merge(other);
    check_no_add_id(add_id);
    auto& source = dynamic_cast<IndexAsymmetricHash&>(other);
    const size_t size = hash->code_size();
    codes.make_owned().resize(
            blocks_of(ntotal + source.ntotal) * size * pq4_block);
    for (idx_t i = 0; i < source.ntotal; i++) {
        slot_of(*this, ntotal + i)
                .copy(read_slot(source.codes.sequential(), i, size), size);
    }
    ntotal += source.ntotal;
    source.reset();
}

size_t IndexAsymmetricHash::sa_code_size() const {
    return hash->code_size();
}

void IndexAsymmetricHash::sa_encode(idx_t n, const float* x, uint8_t* bytes)
        const {
    hash->encode(n, x, bytes);
}

void IndexAsymmetricHash::sa_decode(idx_t, const uint8_t*, float*) const {
    throw_no_vectors("IndexAsymmetricHash");
}

} // namespace faiss_ext
