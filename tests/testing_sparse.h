// SPDX-License-Identifier: MIT
// Sparse vectors for tests.

#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <faiss_ext/core/SparseVectors.h>

#include "testing.h"

namespace faiss_ext_test {

struct Rows {
    idx_t d;
    std::vector<int64_t> indptr{0};
    std::vector<int32_t> indices;
    std::vector<float> values;

    idx_t n() const {
        return idx_t(indptr.size()) - 1;
    }
    void add(const std::map<int32_t, float>& row) {
        for (const auto& [column, value] : row) {
            indices.push_back(column);
            values.push_back(value);
        }
        indptr.push_back(int64_t(indices.size()));
    }
    SparseVectors get() const {
        return {n(), d, indptr.data(), indices.data(), values.data()};
    }
    Floats dense() const {
        Floats x(n() * d);
        for (idx_t i = 0; i < n(); i++) {
            for (int64_t j = indptr[i]; j < indptr[i + 1]; j++) {
                x[i * d + indices[j]] += values[j];
            }
        }
        return x;
    }
};

/// Columns as frequent as words: the c-th in proportion to 1 / (c + 1).
inline Rows draw(idx_t n, idx_t d, int components, bool are_counts, int seed) {
    std::mt19937 rng(seed);
    Floats weights(d);
    for (idx_t c = 0; c < d; c++) {
        weights[c] = 1 / float(c + 1);
    }
    std::discrete_distribution<int32_t> column(weights.begin(), weights.end());
    std::uniform_real_distribution<float> value(0.1f, 1);
    Rows rows{d, {0}, {}, {}};
    for (idx_t i = 0; i < n; i++) {
        std::map<int32_t, float> row;
        const int m = 1 + int(rng() % (2 * components));
        for (int j = 0; j < m; j++) {
            row[column(rng)] += are_counts ? 1 : value(rng);
        }
        if (!are_counts) { // histograms that sum to 1 suit all kernels
            double sum = 0;
            for (const auto& component : row) {
                sum += component.second;
            }
            for (auto& component : row) {
                component.second = float(component.second / sum);
            }
        }
        rows.add(row);
    }
    return rows;
}

/// Gives every other component the other sign.
inline Rows with_signs(Rows rows) {
    for (size_t j = 0; j < rows.values.size(); j += 2) {
        rows.values[j] *= -1;
    }
    return rows;
}

} // namespace faiss_ext_test
