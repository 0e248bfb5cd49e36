// SPDX-License-Identifier: MIT
#include "hashes/klsh_draws.h"

#include <cmath>
#include <memory>
#include <numeric>
#include <random>

#include <faiss_ext/projections/DenseProjection.h>

#include "core/parallel.h"
#include "core/random_streams.h"

namespace faiss_ext {

Draws::Draws(const KernelizedLSH& hash, int t) {
    const int p = hash.map.p;
    std::mt19937_64 rng(uint64_t(hash.map.seed) + 1);
    if (hash.draw == KernelizedLSH::Draw::gauss) {
        std::normal_distribution<double> gauss;
        normal.resize(hash.nbits, p);
        Steps steps;
        for (int i = 0; i < hash.nbits; i++) {
            for (int j = 0; j < p; j++) {
                steps.next();
                normal(i, j) = gauss(rng);
            }
        }
        return;
    }
    std::vector<int> ids(p);
    std::iota(ids.begin(), ids.end(), 0);
    for (int b = 0; b < hash.nbits; b++) {
        partial_shuffle(ids, t, rng);
        landmarks.emplace_back(ids.begin(), ids.begin() + t);
    }
}

Matrix make_weights(const Draws& draws, const KernelSpectrum& s, int rank) {
    const auto U = s.vectors.topRows(rank);
    Matrix g;
    if (draws.landmarks.empty()) {
        g = draws.normal.leftCols(rank);
    } else {
        g = Matrix::Zero(draws.landmarks.size(), rank);
        for (size_t b = 0; b < draws.landmarks.size(); b++) {
            for (int i : draws.landmarks[b]) {
                g.row(b) += U.col(i).transpose();
            }
        }
    }
    for (int i = 0; i < rank; i++) {
        g.col(i) /= std::sqrt(s.values[i]);
    }
    return g * U;
}

void set_weights(
        KernelizedLSH& hash,
        const Matrix& w,
        const KernelSpectrum& s) {
    const int p = hash.map.p;
    auto weights = std::make_unique<DenseProjection>(p, hash.nbits);
    hash.threshold.assign(hash.nbits, 0);
    std::vector<float> row(p);
    for (int b = 0; b < hash.nbits; b++) {
        double c = 0;
        for (int i = 0; i < p; i++) {
            row[i] = float(w(b, i));
            c += w(b, i) * s.means[i];
        }
        weights->set_row(b, row.data());
        hash.threshold[b] = hash.map.center ? float(c) : 0;
    }
    hash.projection = std::move(weights);
}

} // namespace faiss_ext
