// SPDX-License-Identifier: MIT
#include "kernels/SparseQuery.h"

#include <bit>
#include <cmath>
#include <memory>

#include "core/prefetch.h"

namespace faiss_ext {

SparseQuery::SparseQuery(const Kernel& kernel, const SparseRow& x)
        : kernel(kernel), x(x), norm(kernel.norm_of_unshared()) {
    constexpr size_t most = size_t(1) << 32; // hashes
    const size_t num_bits = std::min(std::bit_ceil(16 * x.size() + 64), most);
    const size_t num_slots = std::min(std::bit_ceil(4 * x.size() + 2), most);
    bits.resize(num_bits / 64);
    slots.resize(num_slots);
    bits_shift = 32 - std::countr_zero(num_bits);
    slots_shift = 32 - std::countr_zero(num_slots);
    for (size_t i = 0; i < x.size(); i++) {
        const size_t bit = hash(x.columns[i]) >> bits_shift;
        bits[bit / 64] |= uint64_t(1) << (bit % 64);
        size_t s = hash(x.columns[i]) >> slots_shift;
        while (slots[s].column >= 0) {
            s = (s + 1) & (num_slots - 1);
        }
        slots[s] = {x.columns[i], int32_t(i)};
    }
}

size_t SparseQuery::most_components(std::span<const SparseRow> rows) const {
    size_t most = 0;
    for (const SparseRow& row : rows) {
        most = std::max(most, row.size());
        if (row.size() > 0) {
            prefetch_row(row.columns.data(), row.columns.size_bytes());
            prefetch_row(row.values.data(), row.values.size_bytes());
        }
    }
    // no vector is empty
    return x.size() + 1 + (norm == ComponentNorm::none ? most : 0);
}

size_t SparseQuery::write(
        std::span<const SparseRow> rows,
        size_t most,
        float* dense) const {
    const size_t width = norm == ComponentNorm::none
            ? write_components(rows, most, dense)
            : write_norms(rows, dense);
    float* query = dense + rows.size() * width;
    std::fill(
            std::copy(x.values.begin(), x.values.end(), query),
            query + width,
            0.0f);
    return width;
}

namespace {

std::unique_ptr<uint32_t[]> room_for(std::span<const SparseRow> rows) {
    size_t most = 0;
    for (const SparseRow& row : rows) {
        most = std::max(most, row.size());
    }
    return std::make_unique_for_overwrite<uint32_t[]>(most);
}

} // namespace

/** Writes the columns of the vector, and returns the sum of the sizes of the
 * other ones.
 *
 * A first loop, without branches that would often be mispredicted, finds the
 * components that may be shared. These are looked up.
 */
template <class Size>
double SparseQuery::write_shared(
        const SparseRow& row,
        uint32_t* candidates,
        float* y,
        Size&& size) const {
    constexpr double unless[] = {1, 0};
    constexpr size_t at_a_time = 4; // sums do not wait for each other
    const int32_t* columns = row.columns.data();
    const float* values = row.values.data();
    double sums[at_a_time] = {};
    size_t m = 0;
    const auto add = [&](size_t j, double& to) {
        const size_t may_be_shared = may_have(columns[j]);
        candidates[m] = uint32_t(j);
        m += may_be_shared;
        to += unless[may_be_shared] * size(values[j]);
    };
    size_t j = 0;
    for (; j + at_a_time <= row.size(); j += at_a_time) {
        for (size_t i = 0; i < at_a_time; i++) {
            add(j + i, sums[i]);
        }
    }
    for (; j < row.size(); j++) {
        add(j, sums[0]);
    }
    double others = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    std::fill_n(y, x.size(), 0.0f);
    for (size_t i = 0; i < m; i++) {
        const float value = values[candidates[i]];
        const size_t position = position_of(columns[candidates[i]]);
        if (position < x.size()) {
            y[position] = value;
        } else {
            others += size(value);
        }
    }
    return others;
}

/// Writes rows as the columns of the vector, and the norm of the others.
size_t SparseQuery::write_norms(std::span<const SparseRow> rows, float* y)
        const {
    const size_t n = x.size();
    const auto candidates = room_for(rows);
    for (const SparseRow& row : rows) {
        if (norm == ComponentNorm::l1) {
            y[n] = float(write_shared(row, candidates.get(), y, [](float v) {
                return double(std::abs(v));
            }));
        } else {
            y[n] = float(std::sqrt(
                    write_shared(row, candidates.get(), y, [](float v) {
                        return double(v) * v;
                    })));
        }
        y += n + 1;
    }
    return n + 1;
}

/// Writes rows as the columns of the vector, and all others.
size_t SparseQuery::write_components(
        std::span<const SparseRow> rows,
        size_t most,
        float* dense) const {
    const size_t n = x.size();
    const auto candidates = room_for(rows);
    float* y = dense;
    size_t width = n + 1;
    size_t ends[together];
    for (size_t i = 0; i < rows.size(); i++, y += most) {
        std::fill_n(y, n, 0.0f);
        const int32_t* columns = rows[i].columns.data();
        const float* values = rows[i].values.data();
        size_t next = n, m = 0;
        for (size_t j = 0; j < rows[i].size(); j++) {
            const size_t may_be_shared = may_have(columns[j]);
            candidates[m] = uint32_t(j);
            m += may_be_shared;
            y[next] = values[j];
            next += !may_be_shared;
        }
        for (size_t j = 0; j < m; j++) {
            const size_t position = position_of(columns[candidates[j]]);
            y[position < n ? position : next] = values[candidates[j]];
            next += position == n;
        }
        ends[i] = next;
        width = std::max(width, next);
    }
    for (size_t i = 0; i < rows.size(); i++) { // bring the rows together
        float* to = dense + i * width;
        std::copy_n(dense + i * most, ends[i], to);
        std::fill(to + ends[i], to + width, 0.0f);
    }
    return width;
}

} // namespace faiss_ext
