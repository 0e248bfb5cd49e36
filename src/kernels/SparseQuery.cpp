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
    bits.resize(num_bits / 32);
    slots.resize(num_slots);
    bits_shift = 32 - std::countr_zero(num_bits);
    slots_shift = 32 - std::countr_zero(num_slots);
    for (size_t i = 0; i < x.size(); i++) {
        const uint32_t hash = simd::hash_of_column(x.columns[i]);
        const size_t bit = hash >> bits_shift;
        bits[bit / 32] |= uint32_t(1) << (bit % 32);
        size_t s = hash >> slots_shift;
        while (slots[s].column >= 0) {
            s = (s + 1) & (num_slots - 1);
        }
        slots[s] = {x.columns[i], int32_t(i)};
    }
}

namespace {

size_t most_components_of(std::span<const SparseRow> rows) {
    size_t most = 0;
    for (const SparseRow& row : rows) {
        most = std::max(most, row.size());
    }
    return most;
}

} // namespace

size_t SparseQuery::most_components(std::span<const SparseRow> rows) const {
    for (const SparseRow& row : rows) {
        if (row.size() > 0) {
            prefetch_row(row.columns.data(), row.columns.size_bytes());
            prefetch_row(row.values.data(), row.values.size_bytes());
        }
    }
    // no vector is empty
    return x.size() + 1 +
            (norm == ComponentNorm::none ? most_components_of(rows) : 0);
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

/** Writes the columns of the vector to y, and the values of the other ones to
 * `rest`. Returns how many others there are.
 *
 * @param found  memory of row.size() + spare numbers
 */
size_t SparseQuery::write_shared(
        const SparseRow& row,
        uint32_t* found,
        float* y,
        float* rest) const {
    std::fill_n(y, x.size(), 0.0f);
    const size_t may_be_shared = simd::split_columns(
            row.size(),
            row.columns.data(),
            row.values.data(),
            bits.data(),
            bits_shift,
            found,
            rest);
    size_t others = row.size() - may_be_shared;
    for (size_t i = 0; i < may_be_shared; i++) {
        const size_t position = position_of(row.columns[found[i]]);
        const float value = row.values[found[i]];
        if (position < x.size()) {
            y[position] = value;
        } else {
            rest[others++] = value;
        }
    }
    return others;
}

namespace {

/// Returns the sum of size(value).
template <class Size>
double sum_of(std::span<const float> values, Size&& size) {
    constexpr size_t at_a_time = 4; // they do not wait for each other
    double sums[at_a_time] = {};
    size_t i = 0;
    for (; i + at_a_time <= values.size(); i += at_a_time) {
        for (size_t j = 0; j < at_a_time; j++) {
            sums[j] += size(values[i + j]);
        }
    }
    for (; i < values.size(); i++) {
        sums[0] += size(values[i]);
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

double norm_of(ComponentNorm norm, std::span<const float> values) {
    return norm == ComponentNorm::l1
            ? sum_of(values, [](float v) { return double(std::abs(v)); })
            : std::sqrt(sum_of(values, [](float v) { return double(v) * v; }));
}

} // namespace

/// Writes rows as the columns of the vector, and the norm of the others.
size_t SparseQuery::write_norms(std::span<const SparseRow> rows, float* y)
        const {
    const size_t n = x.size(), most = most_components_of(rows) + spare;
    const auto found = std::make_unique_for_overwrite<uint32_t[]>(most);
    const Scratch rest(most);
    for (const SparseRow& row : rows) {
        const size_t others = write_shared(row, found.get(), y, rest.get());
        y[n] = float(norm_of(norm, {rest.get(), others}));
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
    const auto found = std::make_unique_for_overwrite<uint32_t[]>(
            most_components_of(rows) + spare);
    size_t width = n + 1;
    size_t ends[together];
    for (size_t i = 0; i < rows.size(); i++) {
        float* y = dense + i * most;
        ends[i] = n + write_shared(rows[i], found.get(), y, y + n);
        width = std::max(width, ends[i]);
    }
    for (size_t i = 0; i < rows.size(); i++) { // bring the rows together
        float* to = dense + i * width;
        std::copy_n(dense + i * most, ends[i], to);
        std::fill(to + ends[i], to + width, 0.0f);
    }
    return width;
}

} // namespace faiss_ext
