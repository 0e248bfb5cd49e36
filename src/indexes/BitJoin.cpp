// SPDX-License-Identifier: MIT
#include "indexes/BitJoin.h"

#include <algorithm>

#include "core/parallel.h"
#include "indexes/hamming_hits.h"

namespace faiss_ext {

BitJoin::BitJoin(const RowPairs& pairs, const BitRows& bits)
        : RowJoin(pairs), bits(bits) {}

double BitJoin::estimated_time(const RowPairs& pairs, const BitRows& bits) {
    constexpr double of_pair = 1, of_byte = 0.05;
    double compared = 0;
    Steps steps;
    for (size_t row = pairs.first_row; row < pairs.rows.size(); row++) {
        steps.next();
        compared += double(row - pairs.range_of(row).begin);
    }
    return compared * (of_pair + of_byte * 8 * double(bits.words));
}

double BitJoin::largest_distance(size_t row, const Line& line, double weight)
        const {
    return pairs.mass(row) + bound.mass_of_weight(weight) - 2 * line.at(weight);
}

void BitJoin::find(size_t row, State& state) const {
    const auto [line, light, begin] = start(row, state);
    if (begin == row) {
        return;
    }
    // it is a convex function of the weight
    const double largest = std::max(
            largest_distance(row, line, rows.weights[begin]),
            largest_distance(row, line, rows.weights[row - 1]));
    if (largest < 0) {
        return;
    }
    const size_t code_size = 8 * bits.words, num_bits = 8 * code_size;
    HammingHits hits(
            0,
            num_bits,
            uint32_t(std::min(largest, double(num_bits))) + 1,
            nullptr);
    simd::HammingSink* sinks[] = {&hits};
    scan_codes(
            1,
            bits.row(row),
            idx_t(begin),
            idx_t(row),
            reinterpret_cast<const uint8_t*>(bits.all.data()),
            code_size,
            sinks);
    for (const uint64_t key : hits.sorted()) {
        const auto other = uint32_t(position_of(key));
        if (distance_of(key) <=
            largest_distance(row, line, rows.weights[other])) {
            state.found.push_back(other);
        }
    }
    state.compared += row - begin;
}

} // namespace faiss_ext
