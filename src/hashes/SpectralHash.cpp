// SPDX-License-Identifier: MIT
#include <faiss_ext/hashes/SpectralHash.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <queue>
#include <tuple>

#include <faiss_ext/projections/DenseProjection.h>

#include "core/errors.h"
#include "core/parallel.h"
#include "core/sample.h"
#include "core/scratch.h"
#include "projections/principal_components.h"
#include "simd/elementwise.h"

namespace faiss_ext {

namespace {

using Floats = std::vector<float>;

constexpr int most_dimensions = 8192;
constexpr idx_t most_for_directions = 16384;

/// Returns the first r principal directions of a sample, row by row.
Floats principal_directions(
        idx_t n,
        const float* x,
        int d,
        int r,
        int64_t seed) {
    const auto ids = sample_ids(n, most_for_directions, seed);
    Floats sample = gather_rows(ids, x, d);
    // scale, so that squares neither overflow nor vanish
    const float largest = simd::max_abs(sample.size(), sample.data());
    const int exponent = largest > 0 ? std::ilogb(largest) : 0;
    const float factor = std::ldexp(1.0f, std::clamp(-exponent, -126, 126));
    for (float& v : sample) {
        v *= factor;
    }
    return principal_components(ids.size(), sample.data(), d, r, true).vectors;
}

/// Ranges of the projections of all vectors.
struct Ranges {
    Floats lowest, highest;

    Ranges(const Projection& directions, idx_t n, const float* x)
            : Ranges(directions.d_out) {
        constexpr idx_t block = 192, part = 20 * block;
        const size_t d = directions.d_in, r = directions.d_out;
        std::vector<Ranges> parts((n + part - 1) / part, Ranges(r));
        parallel_blocks(parts.size(), 1, [&](idx_t p, idx_t) {
            const idx_t end = std::min(n, (p + 1) * part);
            for (idx_t i = p * part; i < end; i += block) {
                const idx_t m = std::min(block, end - i);
                const Scratch y(m * r);
                directions.apply(m, x + i * d, y.get());
                parts[p].widen(m, y.get());
            }
        });
        for (const Ranges& other : parts) {
            widen(1, other.lowest.data());
            widen(1, other.highest.data());
        }
    }

    double width(size_t component) const {
        return double(highest[component]) - lowest[component];
    }

   private:
    explicit Ranges(size_t r)
            : lowest(r, std::numeric_limits<float>::infinity()),
              highest(r, -std::numeric_limits<float>::infinity()) {}

    void widen(size_t n, const float* y) {
        const size_t r = lowest.size();
        for (size_t i = 0; i < n; i++, y += r) {
            for (size_t c = 0; c < r; c++) {
                lowest[c] = std::min(lowest[c], y[c]);
                highest[c] = std::max(highest[c], y[c]);
            }
        }
    }
};

struct Mode {
    double frequency; ///< divided by pi
    int component, number;

    bool operator>(const Mode& other) const {
        return std::tie(frequency, component) >
                std::tie(other.frequency, other.component);
    }
};

/// Returns the nbits modes of lowest frequency, in this order.
std::vector<Mode> lowest_modes(const Ranges& ranges, int nbits) {
    std::priority_queue<Mode, std::vector<Mode>, std::greater<>> next;
    for (size_t c = 0; c < ranges.lowest.size(); c++) {
        const double width = ranges.width(c);
        FAISS_EXT_THROW_IF_NOT_MSG(
                std::isfinite(width),
                "train: projections of the vectors overflow; scale the vectors down");
        if (width > 0) {
            next.push({1 / width, int(c), 1});
        }
    }
    FAISS_EXT_THROW_IF_NOT_MSG(
            !next.empty(),
            "train: all vectors are the same, expected at least two different ones");
    std::vector<Mode> modes;
    while (modes.size() < size_t(nbits)) {
        const Mode mode = next.top();
        next.pop();
        modes.push_back(mode);
        const int number = mode.number + 1;
        next.push(
                {number / ranges.width(mode.component),
                 mode.component,
                 number});
    }
    return modes;
}

} // namespace

SpectralHash::SpectralHash() {
    is_trained = false;
}

SpectralHash::SpectralHash(int d, int nbits, int64_t seed)
        : KernelHash(d, nbits), seed(seed) {
    init();
}

void SpectralHash::fields(FieldVisitor& v) const {
    v.integer("seed", seed, 0, INT64_MAX, "seed of the sample for training");
    v.learned_part("projection", projection);
    const size_t used = projection ? projection->d_out : 0;
    v.array("lowest", lowest, used);
    v.array("highest", highest, used);
    v.array("component", component, projection ? nbits : 0);
    v.array("mode", mode, projection ? nbits : 0);
}

void SpectralHash::init() {
    check_fields(*this);
    is_trained = false;
}

void SpectralHash::restore() {
    bool fits = bool(projection) == is_trained &&
            (!projection || projection->d_in == d_in);
    for (size_t c = 0; c < lowest.size(); c++) {
        fits = fits && lowest[c] < highest[c];
    }
    for (size_t j = 0; j < mode.size(); j++) {
        fits = fits && mode[j] > 0 && component[j] >= 0 &&
                component[j] < projection->d_out;
    }
    FAISS_EXT_THROW_IF_NOT_MSG(fits, "the parts of the hash are inconsistent");
}

/// Throws unless the hash can learn from n vectors.
void SpectralHash::check_training(idx_t n) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            n >= 2,
            "train: %" PRId64 " vectors, expected at least 2",
            int64_t(n));
    FAISS_EXT_THROW_IF_NOT_FMT(
            d_in <= most_dimensions,
            "train: the vectors have %d dimensions, expected at most %d",
            d_in,
            most_dimensions);
}

bool SpectralHash::learn_sparse(const SparseVectors& x) {
    check_training(x.n); // before dense copies
    return false;
}

void SpectralHash::learn(idx_t n, const float* x) {
    check_training(n);
    const int r = std::min(nbits, d_in);
    const Floats directions = principal_directions(n, x, d_in, r, seed);
    const Ranges ranges(DenseProjection(d_in, r, directions.data()), n, x);
    const std::vector<Mode> modes = lowest_modes(ranges, nbits);

    std::vector<int> used;
    used.reserve(modes.size());
    for (const Mode& m : modes) {
        used.push_back(m.component);
    }
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    Floats rows;
    for (const int c : used) {
        const float* row = &directions[size_t(c) * d_in];
        rows.insert(rows.end(), row, row + d_in);
        lowest.push_back(ranges.lowest[c]);
        highest.push_back(ranges.highest[c]);
    }
    projection = std::make_unique<DenseProjection>(
            d_in, int(used.size()), rows.data());
    for (const Mode& m : modes) {
        const auto at = std::lower_bound(used.begin(), used.end(), m.component);
        component.push_back(int32_t(at - used.begin()));
        mode.push_back(m.number);
    }
    if (verbose) {
        printf("SpectralHash::train: %d bits of %zu principal directions, up to mode %d\n",
               nbits,
               used.size(),
               *std::max_element(mode.begin(), mode.end()));
    }
}

void SpectralHash::margins(size_t n, const float* x, float* margins) const {
    // beyond this the phase has no digits left; products stay finite
    constexpr double most_turns = 0x1p24;
    const size_t used = lowest.size();
    const Scratch projected(n * used), sines(n * nbits);
    projection->apply(n, x, projected.get());
    for (size_t i = 0; i < n; i++) {
        float* turns = projected.get() + i * used; // of mode 1
        for (size_t c = 0; c < used; c++) {
            const double a = lowest[c], b = highest[c];
            turns[c] = float(std::clamp(
                    (turns[c] - a) / (2 * (b - a)), -most_turns, most_turns));
        }
        for (int j = 0; j < nbits; j++) {
            margins[i * nbits + j] = float(mode[j]) * turns[component[j]];
        }
    }
    // sin(pi / 2 + t) = cos(t)
    simd::cos_sin_turns(n * nbits, 1, margins, margins, sines.get());
}

double SpectralHash::expected_hamming(double) const {
    FAISS_EXT_THROW_MSG(
            "expected_hamming: not available for SH, whose codes are learnt and estimate no kernel");
}

double SpectralHash::kernel_estimate(double) const {
    FAISS_EXT_THROW_MSG(
            "kernel_estimate: not available for SH, whose codes are learnt and estimate no kernel");
}

} // namespace faiss_ext
