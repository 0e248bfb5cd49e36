// SPDX-License-Identifier: MIT
#include "indexes/BandJoin.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <faiss_ext/projections/GeneratedProjection.h>

#include "core/parallel.h"
#include "core/prefetch.h"
#include "core/random_streams.h"
#include "core/scratch.h"
#include "core/sort_keys.h"
#include "simd/weighted_samples.h"

namespace faiss_ext {

namespace {

constexpr int most_samples = 32; ///< of a band
constexpr int most_bands = 512;
constexpr idx_t rows_at_a_time = 16;

/// Computes the samples of rows, and a key for each band. Rows with the same
/// samples in a band have the same key there; others may have by chance.
class BandKeys {
   public:
    BandKeys(
            const OrderedRows& rows,
            bool has_minima,
            const Bands& bands,
            int64_t seed)
            : rows(rows),
              bands(bands),
              num_samples(size_t(bands.number) * bands.samples),
              has_minima(has_minima) {
        if (has_minima) {
            for (size_t at = 0; at < num_samples; at += samples_at_a_time) {
                auto rng = row_rng(seed, idx_t(seeds.size()), stream_bands);
                seeds.push_back(rng());
            }
        } else {
            projection = GeneratedProjection(
                    std::max(1, int(rows.frequency.size())),
                    int(num_samples),
                    seed);
        }
    }

    /// Calls set(row, band, key) for the rows from `begin` to `end`.
    template <class F>
    void compute(size_t begin, size_t end, F&& set) const {
        if (has_minima) {
            Work work;
            for (size_t row = begin; row < end; row++) {
                draw(row, work);
                const uint32_t* sample = work.samples.data();
                for (int band = 0; band < bands.number; band++) {
                    set(row, band, key_of_samples(sample));
                    sample += bands.samples;
                }
            }
            return;
        }
        const Scratch margins((end - begin) * num_samples);
        projection.apply_sparse(
                {idx_t(end - begin),
                 projection.d_in,
                 rows.starts.data() + begin,
                 reinterpret_cast<const int32_t*>(rows.columns.data()),
                 rows.terms.data()},
                margins.get());
        const float* margin = margins.get();
        for (size_t row = begin; row < end; row++) {
            for (int band = 0; band < bands.number; band++) {
                set(row, band, key_of_signs(margin));
                margin += bands.samples;
            }
        }
    }

   private:
    const OrderedRows& rows;
    Bands bands;
    size_t num_samples;
    bool has_minima;
    std::vector<uint64_t> seeds;    ///< for minima
    GeneratedProjection projection; ///< for products

    static constexpr size_t samples_at_a_time = simd::max_weighted_samples;

    struct Work {
        std::vector<int32_t> columns;
        std::vector<float> weights;
        std::vector<uint32_t> samples, memory;
    };

    /// Draws consistent weighted samples.
    void draw(size_t row, Work& work) const {
        work.columns.clear();
        work.weights.clear();
        for (int64_t at = rows.starts[row]; at < rows.starts[row + 1]; at++) {
            if (rows.terms[at] > 0) { // a term may have been rounded to 0
                work.columns.push_back(int32_t(rows.columns[at]));
                work.weights.push_back(rows.terms[at]);
            }
        }
        work.samples.assign(num_samples, 0);
        if (work.columns.empty()) {
            return;
        }
        for (size_t i = 0; i < seeds.size(); i++) {
            const size_t begin = i * samples_at_a_time;
            simd::weighted_samples(
                    work.columns.size(),
                    work.columns.data(),
                    work.weights.data(),
                    uint32_t(seeds[i]),
                    uint32_t(seeds[i] >> 32),
                    std::min(samples_at_a_time, num_samples - begin),
                    work.samples.data() + begin,
                    work.memory);
        }
    }

    uint32_t key_of_samples(const uint32_t* samples) const {
        uint64_t key = 0;
        for (int i = 0; i < bands.samples; i++) {
            key = (key ^ samples[i]) * 0x9e3779b97f4a7c15;
            key ^= key >> 32;
        }
        return uint32_t(key);
    }

    uint32_t key_of_signs(const float* margins) const {
        uint32_t key = 0;
        for (int i = 0; i < bands.samples; i++) {
            key = key << 1 | uint32_t(margins[i] >= 0);
        }
        return key;
    }
};

struct SampledPair {
    double same;      ///< probability that a random sample is the same
    bool is_possible; ///< whether it is compared if it shares a bucket
};

std::vector<SampledPair> sampled_pairs(const RowPairs& pairs, int64_t seed) {
    constexpr double most_pairs = 16384, most_components = 4e6;
    const OrderedRows& rows = pairs.rows;
    const double components =
            double(rows.columns.size()) / double(rows.size()) + 1;
    const auto n =
            size_t(std::min(most_pairs, most_components / components)) + 1;
    auto rng = row_rng(seed, 0, stream_pairs);
    std::uniform_int_distribution<size_t> row(pairs.first_row, rows.size() - 1);
    std::vector<SampledPair> sampled;
    Steps steps;
    std::vector<uint32_t> other, common;
    while (sampled.size() < n) {
        steps.next();
        const size_t a = row(rng), b = row(rng);
        if (a == b) {
            continue;
        }
        const size_t last = std::max(a, b);
        other = {uint32_t(std::min(a, b))};
        pairs.keep_possible(last, pairs.range_of(last).line, other, common);
        sampled.push_back(
                {probability_of_equal_samples(
                         pairs.bound.has_minima, pairs.similarity(a, b)),
                 !other.empty()});
    }
    return sampled;
}

/// Estimates the time of bands.
class BandTimes {
   public:
    BandTimes(const RowPairs& pairs, int64_t seed)
            : sampled(sampled_pairs(pairs, seed)),
              has_minima(pairs.bound.has_minima),
              num_rows(double(pairs.rows.size() - pairs.first_row)),
              components(
                      double(pairs.rows.columns.size()) /
                      double(pairs.rows.size())),
              to_count(pairs.bits.time_to_count()),
              to_compare(RowJoin::time_to_compare(pairs.rows)) {}

    double operator()(const Bands& bands) const {
        constexpr double of_bucket = 200, of_entry = 4;
        double of_pairs = 0;
        for (const SampledPair& pair : sampled) {
            const double same = power(pair.same, bands.samples);
            const double found = 1 - power(1 - same, bands.number);
            of_pairs += of_entry * bands.number * same +
                    found * (to_count + (pair.is_possible ? to_compare : 0));
        }
        const double pairs =
                num_rows * (num_rows - 1) / 2 / double(sampled.size());
        return num_rows *
                (of_samples(double(bands.number) * bands.samples) +
                 of_bucket * bands.number) +
                pairs * of_pairs;
    }

   private:
    std::vector<SampledPair> sampled;
    bool has_minima;
    double num_rows, components, to_count, to_compare;

    static double power(double base, int exponent) {
        double product = 1;
        for (; exponent > 0; exponent /= 2, base *= base) {
            product *= exponent % 2 == 1 ? base : 1;
        }
        return product;
    }

    double of_samples(double number) const {
        if (!has_minima) {
            constexpr double of_product = 0.25;
            return of_product * components * number;
        }
        constexpr double of_component = 5, of_point = 2,
                         at_a_time = simd::max_weighted_samples;
        const double points = std::log(std::min(number, at_a_time)) + 1;
        return of_component * components * std::ceil(number / at_a_time) +
                of_point * points * number;
    }
};

/// The least similarity of pairs that may reach the threshold.
double least_similarity(const RowPairs& pairs) {
    double least = 1;
    Steps steps;
    for (size_t row = pairs.first_row; row < pairs.rows.size() && least > 0;
         row++) {
        steps.next();
        least = std::min(least, pairs.least_similarity(row));
    }
    return least;
}

} // namespace

double probability_of_equal_samples(bool has_minima, double similarity) {
    // of signs of GeneratedProjection, whose numbers are not quite normal
    constexpr double error = 1e-3;
    return has_minima
            ? similarity
            : std::max(
                      0.0,
                      1 - std::acos(similarity) / std::numbers::pi - error);
}

std::optional<Bands> choose_bands(
        const RowPairs& pairs,
        double missed,
        int64_t seed) {
    if (pairs.rows.size() < pairs.first_row + 2) {
        return std::nullopt;
    }
    const double similarity = least_similarity(pairs);
    if (!(similarity > 0)) {
        return std::nullopt;
    }
    const double probability =
            probability_of_equal_samples(pairs.bound.has_minima, similarity);
    const BandTimes time_of(pairs, seed);
    std::optional<Bands> best;
    for (int samples = 1; samples <= most_samples; samples++) {
        const double same = std::pow(probability, samples);
        const double number =
                same < 1 ? std::ceil(std::log(missed) / std::log1p(-same)) : 1;
        if (!(number <= most_bands)) {
            break;
        }
        Bands bands{std::max(1, int(number)), samples};
        bands.missed = std::pow(1 - same, bands.number);
        bands.time = time_of(bands);
        if (!best || bands.time < best->time) {
            best = bands;
        }
    }
    return best;
}

BandJoin::BandJoin(const RowPairs& pairs, const Bands& bands, int64_t seed)
        : RowJoin(pairs), num_bands(bands.number) {
    const size_t n = rows.size();
    order.resize(num_bands * n);
    buckets.resize(num_bands * n);
    const BandKeys keys(rows, bound.has_minima, bands, seed);
    parallel_blocks(idx_t(n), rows_at_a_time, [&](idx_t begin, idx_t end) {
        check_interrupt();
        keys.compute(begin, end, [&](size_t row, size_t band, uint32_t key) {
            buckets[band * n + row] = key;
        });
    });
    parallel_blocks(idx_t(num_bands), 1, [&](idx_t band, idx_t) {
        check_interrupt();
        set_buckets(band);
    });
}

/// Sorts the rows by the keys that stand in place of their buckets.
void BandJoin::set_buckets(size_t band) {
    const size_t n = rows.size();
    uint32_t* bucket = buckets.data() + band * n;
    uint32_t* sorted = order.data() + band * n;
    std::vector<uint64_t> keys(n);
    for (size_t row = 0; row < n; row++) {
        keys[row] = uint64_t(bucket[row]) << 32 | row;
    }
    sort_keys(keys.data(), n);
    size_t begin = 0;
    for (size_t i = 0; i < n; i++) {
        if (keys[i] >> 32 != keys[begin] >> 32) {
            begin = i;
        }
        sorted[i] = uint32_t(keys[i]);
        bucket[sorted[i]] = uint32_t(begin);
    }
}

void BandJoin::find(size_t row, State& state) const {
    constexpr size_t ahead = 4;
    const size_t n = rows.size();
    const auto [line, light, begin] = start(row, state);
    state.sums.resize(n);
    if (begin == row) {
        return;
    }
    for (size_t band = 0; band < num_bands; band++) {
        if (band + ahead < num_bands) {
            const size_t next = (band + ahead) * n;
            __builtin_prefetch(&order[next + buckets[next + row]]);
        }
        const uint32_t* other =
                order.data() + band * n + buckets[band * n + row];
        for (; *other < row; other++) {
            if (*other >= begin && state.sums[*other] == 0) {
                state.sums[*other] = 1;
                state.candidates.push_back(*other);
            }
        }
    }
    for (const uint32_t other : state.candidates) {
        state.sums[other] = 0;
    }
    compare(row, line, state);
}

} // namespace faiss_ext
