// SPDX-License-Identifier: MIT
#include <faiss_ext/projections/BilinearProjection.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <tuple>
#include <unordered_set>

#include "core/cache_sizes.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "core/scratch.h"
#include "projections/random_projection.h"
#include "simd/bilinear.h"
#include "simd/hadamard.h"
#include "simd/projection.h"

namespace faiss_ext {

namespace {

constexpr int panel = int(simd::panel_width);
constexpr int max_m = 1000;

/// Draws k different numbers below n, in random order.
std::vector<int64_t> draw_different(int64_t n, int64_t k, std::mt19937_64 rng) {
    std::vector<int64_t> ids;
    if (n <= 4 * k) {
        ids.resize(n);
        std::iota(ids.begin(), ids.end(), 0);
        partial_shuffle(ids, k, rng);
        ids.resize(k);
        return ids;
    }
    std::unordered_set<int64_t> seen;
    std::uniform_int_distribution<int64_t> any(0, n - 1);
    Steps steps;
    while (int64_t(ids.size()) < k) {
        steps.next();
        const int64_t id = any(rng);
        if (seen.insert(id).second) {
            ids.push_back(id);
        }
    }
    return ids;
}

} // namespace

BilinearProjection::BilinearProjection(
        int d_w,
        int d_v,
        int d_out,
        int m,
        bool structured,
        int64_t seed,
        double factor,
        bool shuffle)
        : d_w(d_w), d_v(d_v), m(m), structured(structured) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d_w > 0 && d_v > 0 && d_out > 0 && m > 0 && m <= max_m,
            "BilinearProjection: shape %d x %d, %d outputs, m = %d; expected positive numbers, and m up to %d",
            d_w,
            d_v,
            d_out,
            m,
            max_m);
    FAISS_EXT_THROW_IF_NOT_FMT(
            int64_t(d_w) * d_v <= (1 << 30),
            "BilinearProjection: shape %d x %d is too large",
            d_w,
            d_v);
    this->d_in = d_w * d_v;
    this->d_out = d_out;
    k_w = int(std::ceil(m * std::sqrt(double(d_out))));
    k_v = m > 1 ? k_w : (d_out + k_w - 1) / k_w;

    if (shuffle) {
        std::mt19937_64 rng = row_rng(seed, 0, stream_shuffle);
        source.resize(d_in);
        std::iota(source.begin(), source.end(), 0);
        partial_shuffle(source, d_in, rng);
        for (int32_t& i : source) {
            i = rng() & 1 ? -1 - i : i;
        }
    }
    if (structured) {
        const int D = hadamard_order(d_w);
        const int blocks = (k_w + D - 1) / D;
        signs.resize(size_t(3) * D * blocks);
        parallel_blocks(blocks, 1, [&](idx_t b, idx_t) {
            random_signs(seed, b, 3 * D, &signs[size_t(3) * D * b]);
        });
        const double scale = std::pow(D, -1.5);
        norms.resize(k_w);
        parallel_blocks(k_w, 256, [&](idx_t begin, idx_t end) {
            for (idx_t i = begin; i < end; i++) {
                norms[i] = float(gaussian_length(seed, i, D) * scale);
            }
        });
    } else {
        W.resize(size_t(k_w) * d_w);
        parallel_blocks(k_w, 1, [&](idx_t i, idx_t) {
            std::mt19937_64 rng = row_rng(seed, i, stream_w);
            std::normal_distribution<double> normal;
            for (int k = 0; k < d_w; k++) {
                W[i * d_w + k] = float(normal(rng));
            }
        });
    }
    V.resize(size_t(k_v) * padded_d_v());
    parallel_blocks(k_v, 1, [&](idx_t i, idx_t) {
        std::mt19937_64 rng = row_rng(seed, i, stream_v);
        std::normal_distribution<double> normal;
        for (int k = 0; k < d_v; k++) {
            V[i * padded_d_v() + k] = float(factor * normal(rng));
        }
    });
    for (int64_t id : draw_different(
                 int64_t(k_w) * k_v, d_out, row_rng(seed, 0, stream_pairs))) {
        pair_w.push_back(int32_t(id / k_v));
        pair_v.push_back(int32_t(id % k_v));
    }
    make_plan();
}

/// Returns how many w have their products with X in memory at the same time.
int BilinearProjection::block_size() const {
    return structured ? hadamard_order(d_w) : std::min(k_w, 96);
}

/// Returns the distance between the products w' X of two w. With powers of 2
/// the rows that a transform writes together would share a few cache lines.
size_t BilinearProjection::row_stride() const {
    return padded_d_v() + (structured ? panel : 0);
}

/// Returns the number of rows of X in panels; transforms need their order.
int BilinearProjection::panel_height() const {
    return structured ? hadamard_order(d_w) : d_w;
}

/// Pairs sorted by blocks of w and v that fit into the cache.
struct BilinearProjection::Plan {
    struct Run {
        int32_t w, count;
    };
    std::vector<int32_t> sorted_v, position;
    std::vector<Run> runs;         ///< pairs with the same w
    std::vector<size_t> block_run; ///< first run of each block of w
};

void BilinearProjection::make_plan() {
    auto made = std::make_shared<Plan>();
    auto& [sorted_v, position, runs, block_run] = *made;
    const int w_block = block_size();
    const int v_block = std::max<int>(1, cache::bilinear_v / padded_d_v());
    std::vector<int32_t> order(d_out);
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](int32_t j) {
        return std::make_tuple(
                pair_w[j] / w_block, pair_v[j] / v_block, pair_w[j], pair_v[j]);
    };
    Steps steps;
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        steps.next();
        return key(a) < key(b);
    });
    position.resize(d_out);
    for (int i = 0; i < d_out; i++) {
        position[order[i]] = i;
    }
    const int nblocks = (k_w + w_block - 1) / w_block;
    block_run.assign(nblocks + 1, 0);
    int v_last = -1;
    for (int32_t j : order) {
        const int v_now = pair_v[j] / v_block;
        if (runs.empty() || runs.back().w != pair_w[j] || v_now != v_last) {
            runs.push_back({pair_w[j], 0});
            block_run[pair_w[j] / w_block + 1]++;
        }
        v_last = v_now;
        runs.back().count++;
        sorted_v.push_back(pair_v[j]);
    }
    sorted_v.resize(d_out + simd::ids_ahead);
    std::partial_sum(block_run.begin(), block_run.end(), block_run.begin());
    plan = std::move(made);
}

/// Computes t[j * padded_d_v] = w' X for the j-th w of a block, not scaled,
/// from X in panels. work: size 16 * block_size()
void BilinearProjection::left_products(
        int block,
        const float* panels,
        float* work,
        float* t) const {
    const int size = block_size(), dv = padded_d_v();
    if (!structured) {
        const int count = std::min(size, k_w - block * size);
        simd::project(
                count, &W[size_t(block) * size * d_w], dv, panels, d_w, t);
        return;
    }
    for (int c = 0; c < dv; c += panel) {
        simd::hadamard_rounds_of_panel(
                size,
                &signs[size_t(3) * size * block],
                panels + size_t(c) * size,
                work,
                t + c,
                row_stride());
    }
}

void BilinearProjection::multiply(size_t n, const float* x, float* y) const {
    const int size = block_size(), dv = padded_d_v();
    const int height = panel_height();
    const size_t packed = simd::packed_size(height, dv);
    const size_t t_stride = size_t(size) * row_stride();
    const size_t batch = std::min<size_t>(
            n, std::clamp<size_t>(cache::bilinear_products / t_stride, 1, 4));
    const auto& [sorted_v, position, runs, block_run] = *plan;
    const Scratch panels(batch * packed), t(batch * t_stride),
            sorted(batch * d_out), work(structured ? size_t(size) * panel : 0);

    for (size_t i0 = 0; i0 < n; i0 += batch) {
        const size_t rows = std::min(batch, n - i0);
        for (size_t i = 0; i < rows; i++) {
            for (int p = 0; p < dv / panel; p++) {
                float* end =
                        &panels[i * packed + size_t(p + 1) * height * panel];
                std::fill(end - (height - d_w) * panel, end, 0.0f);
                const int columns = std::min(panel, d_v - p * panel);
                for (int k = 0; k < d_w; k++) {
                    float* to =
                            &panels[i * packed +
                                    (size_t(p) * height + k) * panel];
                    const size_t first = size_t(k) * d_v + p * panel;
                    const float* from = x + (i0 + i) * d_in + first;
                    if (!source.empty()) {
                        for (int c = 0; c < panel; c++) {
                            to[c] = c < columns
                                    ? component(x + (i0 + i) * d_in, first + c)
                                    : 0;
                        }
                    } else if (columns == panel) {
                        std::memcpy(to, from, panel * sizeof(float));
                    } else {
                        std::copy_n(from, columns, to);
                        std::fill_n(to + columns, panel - columns, 0.0f);
                    }
                }
            }
        }
        size_t at = 0;
        for (size_t b = 0; b + 1 < block_run.size(); b++) {
            for (size_t i = 0; i < rows; i++) {
                left_products(
                        int(b),
                        &panels[i * packed],
                        work.get(),
                        &t[i * t_stride]);
            }
            for (size_t r = block_run[b]; r < block_run[b + 1]; r++) {
                simd::selected_dots(
                        rows,
                        &t[(runs[r].w - b * size) * row_stride()],
                        t_stride,
                        structured ? norms[runs[r].w] : 1.0f,
                        runs[r].count,
                        &sorted_v[at],
                        V.data(),
                        dv,
                        &sorted[at],
                        d_out);
                at += runs[r].count;
            }
        }
        for (size_t i = 0; i < rows; i++) {
            const float* from = &sorted[i * d_out];
            for (int j = 0; j < d_out; j++) {
                y[(i0 + i) * d_out + j] = from[position[j]];
            }
        }
    }
}

std::vector<float> BilinearProjection::matrix() const {
    // compute w as rows, by products with the unit matrix
    BilinearProjection unit;
    unit.d_w = d_w;
    unit.d_v = d_w;
    unit.k_w = k_w;
    unit.structured = structured;
    unit.W = W;
    unit.signs = signs;
    unit.norms = norms;
    const int size = unit.block_size(), dv = unit.padded_d_v();
    const int height = unit.panel_height();
    std::vector<float> panels(simd::packed_size(height, dv));
    for (int k = 0; k < d_w; k++) {
        panels[simd::panel_index(height, k, k)] = 1;
    }
    const int nblocks = (k_w + size - 1) / size;
    std::vector<float> w(nblocks * size * unit.row_stride()),
            work(size_t(size) * panel);
    for (int b = 0; b < nblocks; b++) {
        unit.left_products(
                b,
                panels.data(),
                work.data(),
                &w[b * size * unit.row_stride()]);
    }
    std::vector<float> A(size_t(d_out) * d_in);
    for (int j = 0; j < d_out; j++) {
        const float norm = structured ? norms[pair_w[j]] : 1.0f;
        for (int r = 0; r < d_w; r++) {
            for (int c = 0; c < d_v; c++) {
                const size_t i = size_t(r) * d_v + c;
                const int32_t from = source.empty() ? int32_t(i) : source[i];
                const float value = norm *
                        w[pair_w[j] * unit.row_stride() + r] *
                        V[size_t(pair_v[j]) * padded_d_v() + c];
                A[size_t(j) * d_in + (from < 0 ? -1 - from : from)] =
                        from < 0 ? -value : value;
            }
        }
    }
    return A;
}

size_t BilinearProjection::memory() const {
    return sizeof(*this) +
            sizeof(float) *
            (W.size() + signs.size() + norms.size() + V.size()) +
            sizeof(int32_t) * (source.size() + pair_w.size() + pair_v.size()) +
            (plan ? sizeof(int32_t) *
                                     (plan->sorted_v.size() +
                                      plan->position.size()) +
                             sizeof(Plan::Run) * plan->runs.size() +
                             sizeof(size_t) * plan->block_run.size()
                  : 0);
}

int BilinearProjection::nearly_square(int d) {
    int d_w = int(std::sqrt(double(d)));
    while (d_w > 1 && (d_w > d / d_w || d % d_w != 0)) {
        d_w--;
    }
    return std::max(d_w, 1);
}

void BilinearProjection::fields(FieldVisitor& v) const {
    Projection::fields(v);
    v.shape("shape", d_w, d_v, d_in, "shape of X");
    v.integer("m", m, 1, max_m, "vectors w and v for each root of d_out");
    v.flag("structured", structured, "whether the w are from rotations");
    v.integer("k_w", k_w, 0, 1 << 30, "number of vectors w");
    v.integer("k_v", k_v, 0, 1 << 30, "number of vectors v");
    const bool is_shuffled = !source.empty();
    bool shuffle = is_shuffled;
    v.flag("shuffle", shuffle, "whether components are shuffled");
    v.array("source", source, shuffle ? d_in : 0);
    const size_t D = hadamard_order(std::max(d_w, 1));
    v.array("W", W, structured ? 0 : size_t(k_w) * d_w);
    v.array("signs", signs, structured ? 3 * D * ((k_w + D - 1) / D) : 0);
    v.array("norms", norms, structured ? k_w : 0);
    v.array("V", V, size_t(k_v) * padded_d_v());
    v.array("pair_w", pair_w, d_out);
    v.array("pair_v", pair_v, d_out);
}

void BilinearProjection::restore() {
    FAISS_EXT_THROW_IF_NOT_MSG(
            d_w > 0 && d_v > 0,
            "the shape of a bilinear projection is not positive");
    for (int32_t i : source) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                i >= -d_in && i < d_in,
                "a projection shuffles component %d, but has only %d components",
                i < 0 ? -1 - i : i,
                d_in);
    }
    check_signs(signs);
    for (int j = 0; j < d_out; j++) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                pair_w[j] >= 0 && pair_w[j] < k_w && pair_v[j] >= 0 &&
                        pair_v[j] < k_v,
                "an output of a projection refers to the pair %d, %d, which is out of range",
                pair_w[j],
                pair_v[j]);
    }
    make_plan();
}

} // namespace faiss_ext
