// SPDX-License-Identifier: MIT
#include "indexes/OrderedRows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include <faiss_ext/kernels/AdditiveKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>

#include "core/parallel.h"
#include "core/scratch.h"
#include "core/sort_keys.h"

namespace faiss_ext {

namespace {

constexpr idx_t rows_at_a_time = 1024;

/// Computes the terms of vectors. Kernels that divide by roots of weights do
/// not change if a vector is scaled, so their vectors are brought to a range
/// in which squares lose no digits.
class Terms {
   public:
    explicit Terms(const SumBound& bound)
            : kernel(*bound.sum.terms),
              is_product(dynamic_cast<const LinearKernel*>(&kernel) != nullptr),
              is_additive(
                      dynamic_cast<const AdditiveKernel*>(&kernel) != nullptr),
              has_minima(bound.has_minima),
              is_scaled(bound.sum.has_roots) {}

    void compute(size_t n, const float* values, float* out) const {
        const double scale = is_scaled ? scale_of(n, values) : 1;
        for (size_t k = 0; k < n; k++) {
            out[k] = float(scale * values[k]);
        }
        if (is_product) {
            return;
        }
        if (!is_additive) {
            const Scratch masses(n);
            kernel.self_values(n, out, 1, masses.get());
            std::copy_n(masses.get(), n, out);
        } // else the mass of v is v
        for (size_t k = 0; k < n && !has_minima; k++) {
            out[k] = std::sqrt(out[k]);
        }
    }

   private:
    const Kernel& kernel;
    bool is_product, is_additive, has_minima, is_scaled;

    static double scale_of(size_t n, const float* values) {
        float largest = 0;
        for (size_t k = 0; k < n; k++) {
            largest = std::max(largest, std::abs(values[k]));
        }
        if (largest == 0 || (largest > 0x1p-30f && largest < 0x1p30f)) {
            return 1;
        }
        return std::ldexp(1.0, -std::ilogb(largest));
    }
};

uint64_t hash_of(const SparseVectors& x, idx_t i) {
    uint64_t hash = x.num_components(i);
    for (int64_t j = x.indptr[i]; j < x.indptr[i + 1]; j++) {
        const uint64_t word = uint64_t(uint32_t(x.indices[j])) << 32 |
                std::bit_cast<uint32_t>(x.values[j]);
        hash = (std::rotl(hash, 23) ^ word) * 0x9e3779b97f4a7c15;
    }
    return hash ^ hash >> 32;
}

bool are_equal(const SparseVectors& x, idx_t a, idx_t b) {
    const size_t n = x.num_components(a);
    const int64_t i = x.indptr[a], j = x.indptr[b];
    return n == x.num_components(b) &&
            std::equal(x.indices + i, x.indices + i + n, x.indices + j) &&
            std::equal(x.values + i, x.values + i + n, x.values + j);
}

/// Numbers columns that occur. The memory depends on the number of components,
/// not on the dimension.
class ColumnNumbers {
   public:
    explicit ColumnNumbers(const SparseVectors& x) {
        const int64_t begin = x.indptr[0], end = x.indptr[x.n];
        if (x.d <= 2 * (end - begin) + 1024) {
            count = size_t(x.d);
            return; // all columns
        }
        found.assign(x.indices + begin, x.indices + end);
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        count = found.size();
        // columns with the same first bits are near each other
        const auto largest = uint32_t(x.d - 1);
        shift = std::bit_width(largest) - std::bit_width(count);
        shift = std::max(shift, 0);
        first.assign((largest >> shift) + 2, 0);
        for (const int32_t c : found) {
            first[(uint32_t(c) >> shift) + 1]++;
        }
        std::partial_sum(first.begin(), first.end(), first.begin());
    }

    size_t size() const {
        return count;
    }

    size_t operator()(int32_t column) const {
        if (first.empty()) {
            return size_t(column);
        }
        const size_t part = uint32_t(column) >> shift;
        return std::lower_bound(
                       found.begin() + first[part],
                       found.begin() + first[part + 1],
                       column) -
                found.begin();
    }

   private:
    size_t count;
    std::vector<int32_t> found;  ///< ascending
    std::vector<uint32_t> first; ///< number of found columns before these bits
    int shift = 0;
};

} // namespace

OrderedRows::OrderedRows(const SparseVectors& x, const SumBound& bound) {
    starts.push_back(0);
    member_starts.push_back(0);
    if (x.n > 0) {
        set_rows(x, bound);
        set_columns(x, bound);
    }
}

/// Orders the vectors, and finds equal ones.
void OrderedRows::set_rows(const SparseVectors& x, const SumBound& bound) {
    struct Key {
        double weight;
        uint64_t hash;
        int32_t vector;
    };
    std::vector<Key> keys(x.n);
    const Terms terms_of(bound);
    parallel_blocks(x.n, rows_at_a_time, [&](idx_t begin, idx_t end) {
        for (idx_t i = begin; i < end; i++) {
            const size_t n = x.num_components(i);
            const Scratch row(n);
            terms_of.compute(n, x.values + x.indptr[i], row.get());
            double mass = 0;
            for (size_t k = 0; k < n; k++) {
                const double term = row[k];
                mass += bound.has_minima ? term : term * term;
            }
            keys[i] = {
                    bound.sum.has_roots ? std::sqrt(mass) : mass,
                    hash_of(x, i),
                    int32_t(i)};
        }
    });
    std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
        return std::tie(a.weight, a.hash, a.vector) <
                std::tie(b.weight, b.hash, b.vector);
    });
    members.reserve(x.n);
    for (size_t k = 0; k < keys.size(); k++) {
        const Key& key = keys[k];
        // vectors with equal hashes that differ may hide equal ones, which are
        // then found as any pair is
        const bool is_new = k == 0 || keys[k - 1].hash != key.hash ||
                !are_equal(x, keys[k - 1].vector, key.vector);
        if (is_new) {
            if (k > 0) {
                member_starts.push_back(int64_t(k));
            }
            weights.push_back(key.weight);
            starts.push_back(
                    starts.back() + int64_t(x.num_components(key.vector)));
        }
        members.push_back(key.vector);
    }
    member_starts.push_back(x.n);
}

/// Orders the components of each row.
void OrderedRows::set_columns(const SparseVectors& x, const SumBound& bound) {
    const ColumnNumbers number(x);
    std::vector<uint32_t> counts(number.size());
    for (size_t i = 0; i < size(); i++) {
        const idx_t vector = equal(i).front();
        if (i % rows_at_a_time == 0) {
            check_interrupt();
        }
        for (int64_t j = x.indptr[vector]; j < x.indptr[vector + 1]; j++) {
            counts[number(x.indices[j])]++;
        }
    }
    // counting sort of the columns that occur
    std::vector<uint32_t> next;
    for (const uint32_t count : counts) {
        next.resize(std::max<size_t>(next.size(), count + 2));
        next[count + 1] += count > 0;
    }
    std::partial_sum(next.begin(), next.end(), next.begin());
    frequency.resize(next.empty() ? 0 : next.back());
    std::vector<uint32_t>& rank = counts;
    for (uint32_t& count : rank) {
        if (count > 0) {
            const uint32_t place = next[count]++;
            frequency[place] = count;
            count = place;
        }
    }
    columns.resize(starts.back());
    terms.resize(starts.back());
    const Terms terms_of(bound);
    parallel_blocks(size(), rows_at_a_time, [&](idx_t begin, idx_t end) {
        std::vector<uint64_t> sorted;
        for (idx_t i = begin; i < end; i++) {
            const idx_t vector = equal(i).front();
            const size_t n = x.num_components(vector);
            const int64_t from = x.indptr[vector], to = starts[i];
            const Scratch row(n);
            terms_of.compute(n, x.values + from, row.get());
            sorted.resize(n);
            for (size_t k = 0; k < n; k++) {
                sorted[k] = uint64_t(rank[number(x.indices[from + k])]) << 32 |
                        std::bit_cast<uint32_t>(row[k]);
            }
            sort_keys(sorted.data(), n);
            for (size_t k = 0; k < n; k++) {
                columns[to + k] = uint32_t(sorted[k] >> 32);
                terms[to + k] = std::bit_cast<float>(uint32_t(sorted[k]));
            }
        }
    });
    largest.resize(frequency.size());
    for (size_t k = 0; k < terms.size(); k++) {
        float& most = largest[columns[k]];
        most = std::max(most, std::abs(terms[k]));
    }
}

} // namespace faiss_ext
