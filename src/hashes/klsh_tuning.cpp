// SPDX-License-Identifier: MIT
#include "hashes/klsh_tuning.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <unordered_set>

#include "core/errors.h"
#include "core/hamming.h"
#include "core/parallel.h"
#include "core/sample.h"
#include "hashes/klsh_draws.h"
#include "maps/kernel_pca_steps.h"
#include "simd/margins.h"

namespace faiss_ext {

namespace {

constexpr idx_t k = 10, within = 100;

/** Returns the fraction of the k nearest vectors of each query, by kernel
 * value, that are among the `within` nearest by Hamming distance.
 *
 * @param codes  codes of nq queries, then of nb vectors
 * @param truth  kernel values, size nq * nb
 */
double recall_of(
        idx_t nq,
        idx_t nb,
        const uint8_t* codes,
        size_t code_size,
        const float* truth) {
    std::vector<size_t> hits(nq);
    parallel_blocks(nq, 1, [&](idx_t q, idx_t) {
        std::vector<std::pair<int32_t, idx_t>> found(nb);
        for (idx_t i = 0; i < nb; i++) {
            found[i] = {
                    hamming_distance(
                            codes + q * code_size,
                            codes + (nq + i) * code_size,
                            code_size),
                    i};
        }
        std::nth_element(
                found.begin(), found.begin() + (within - 1), found.end());
        std::vector<float> sorted(truth + q * nb, truth + (q + 1) * nb);
        std::nth_element(
                sorted.begin(),
                sorted.begin() + (k - 1),
                sorted.end(),
                std::greater<float>());
        for (idx_t j = 0; j < within; j++) {
            hits[q] += truth[q * nb + found[j].second] >= sorted[k - 1];
        }
        hits[q] = std::min<size_t>(hits[q], k);
    });
    const auto all = std::accumulate(hits.begin(), hits.end(), size_t(0));
    return double(all) / double(nq * k);
}

/// The components that are not 0, with their columns, as a string.
std::string components_of(const VectorBatch& x, idx_t i) {
    std::string bytes;
    const auto append = [&](int32_t column, float value) {
        if (value != 0) {
            bytes.append(
                    reinterpret_cast<const char*>(&column), sizeof(column));
            bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
        }
    };
    if (x.is_sparse) {
        for (int64_t j = x.sparse.indptr[i]; j < x.sparse.indptr[i + 1]; j++) {
            append(x.sparse.indices[j], x.sparse.values[j]);
        }
    } else {
        for (idx_t c = 0; c < x.d; c++) {
            append(int32_t(c), x.dense[i * x.d + c]);
        }
    }
    return bytes;
}

} // namespace

void choose_parameters(
        KernelizedLSH& hash,
        const VectorBatch& x,
        const float* K,
        int t) {
    constexpr idx_t max_queries = 200, max_base = 5000;
    KernelPCA& map = hash.map;
    const int p = map.p, nbits = hash.nbits;
    std::vector<idx_t> ids =
            sample_ids(x.n, max_queries + max_base + p, uint64_t(map.seed) + 2);
    // queries are held out, so none of them may be a landmark
    const VectorBatch landmarks = KernelPCA::Steps::landmarks(map);
    std::unordered_set<std::string> known;
    for (int i = 0; i < p; i++) {
        known.insert(components_of(landmarks, i));
    }
    const auto others =
            std::stable_partition(ids.begin(), ids.end(), [&](idx_t id) {
                return !known.contains(components_of(x, id));
            });
    const idx_t m = std::min<idx_t>(ids.size(), max_queries + max_base);
    const idx_t nq =
            std::min({max_queries, m / 5, idx_t(others - ids.begin())});
    const idx_t nb = std::min(max_base, m - nq);
    FAISS_EXT_THROW_IF_NOT_FMT(
            nq >= 1 && nb > within,
            "train: rank=auto and scale=auto need at least %d training vectors, and more vectors than landmarks; got %" PRId64
            " vectors and %d landmarks",
            126, // a fifth of these are queries
            int64_t(x.n),
            p);
    ids.resize(nq + nb);
    const VectorSample gathered = gather_rows(ids, x);
    const VectorBatch sample = gathered.get(), base = sample.slice(nq, nq + nb);

    // compute the true neighbours, and the kernel rows for all candidates
    std::vector<float> truth(nq * nb), rows((nq + nb) * p);
    parallel_blocks(nq, 4, [&](idx_t begin, idx_t end) {
        KernelPCA::Steps::kernel_block(
                map, sample.slice(begin, end), base, &truth[begin * nb]);
    });
    parallel_blocks(nq + nb, 16, [&](idx_t begin, idx_t end) {
        KernelPCA::Steps::kernel_rows(
                map, sample.slice(begin, end), &rows[begin * p]);
    });

    const Draws draws(hash, t);
    double best = -1;
    int best_rank = map.rank;
    double best_scale = map.scale;
    const std::vector<double> scales = map.auto_scale
            ? std::vector<double>{0, 1, 3, 5, 7, 9}
            : std::vector<double>{map.scale};
    for (double s : scales) {
        std::vector<float> K_s(K, K + size_t(p) * p), rows_s = rows;
        KernelPCA::Steps::transform(s, K_s.size(), K_s.data());
        KernelPCA::Steps::transform(s, rows_s.size(), rows_s.data());
        const KernelSpectrum spectrum = decompose_kernel(
                p, K_s.data(), !map.nystrom, map.tolerance, hash.verbose);
        const int full = spectrum.rank();
        std::vector<int> ranks;
        for (int r = 16; map.auto_rank && r < full; r *= 2) {
            ranks.push_back(r);
        }
        ranks.push_back(
                map.auto_rank || map.rank == 0 ? full
                                               : std::min(map.rank, full));
        for (int r : ranks) {
            set_weights(hash, make_weights(draws, spectrum, r), spectrum);
            std::vector<uint8_t> codes((nq + nb) * hash.code_size());
            parallel_blocks(nq + nb, 16, [&](idx_t begin, idx_t end) {
                std::vector<float> block((end - begin) * nbits);
                hash.projection->apply(
                        end - begin, &rows_s[begin * p], block.data());
                for (idx_t i = 0; i < end - begin; i++) {
                    for (int b = 0; b < nbits; b++) {
                        block[i * nbits + b] -= hash.threshold[b];
                    }
                }
                simd::pack_signs(
                        end - begin,
                        nbits,
                        block.data(),
                        &codes[begin * hash.code_size()]);
            });
            const double recall = recall_of(
                    nq, nb, codes.data(), hash.code_size(), truth.data());
            if (hash.verbose) {
                printf("KernelizedLSH::train: scale %g, rank %d: recall %.3f\n",
                       s,
                       r,
                       recall);
            }
            if (recall > best) {
                best = recall;
                best_rank = r == full && !map.auto_rank ? map.rank : r;
                best_scale = s;
            }
        }
    }
    map.rank = best_rank;
    map.scale = best_scale;
}

} // namespace faiss_ext
