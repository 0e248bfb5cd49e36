// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/near_duplicates.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include <faiss_ext/kernels/BitKernel.h>

#include "core/bisection.h"
#include "core/check.h"
#include "core/errors.h"
#include "core/hamming.h"
#include "core/parallel.h"
#include "core/sparse_input.h"
#include "indexes/BandJoin.h"
#include "indexes/BitJoin.h"
#include "indexes/BitRows.h"
#include "indexes/OrderedRows.h"
#include "indexes/RowJoin.h"
#include "indexes/RowPairs.h"
#include "indexes/ScanJoin.h"
#include "indexes/SharedColumnJoin.h"
#include "kernels/SparseQuery.h"
#include "simd/common_bits.h"

namespace faiss_ext {

namespace {

constexpr auto metric = faiss::METRIC_INNER_PRODUCT;
constexpr idx_t rows_at_a_time = 16;

SharedSum checked_sum(
        const Kernel& kernel,
        float threshold,
        const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            kernel.is_trained,
            "%s: the bandwidth of the kernel %s is not set; give gamma in its string, or train it",
            where,
            kernel.description().c_str());
    FAISS_EXT_THROW_IF_NOT_FMT(
            std::isfinite(threshold) && threshold > 0,
            "%s: the threshold is %g, expected a finite number above 0",
            where,
            threshold);
    FAISS_EXT_THROW_IF_NOT_FMT(
            threshold <= 1 || !kernel.is_normalized(),
            "%s: the threshold is %.9g, expected at most 1, the largest value of the kernel %s",
            where,
            threshold,
            kernel.description().c_str());
    const auto sum = kernel.shared_sum(metric);
    FAISS_EXT_THROW_IF_NOT_FMT(
            sum && kernel.ignores_zeros(),
            "%s: the kernel %s has no bound by the columns that two vectors share; use one that has, such as jaccard, cosine or normalized(chi2)",
            where,
            kernel.description().c_str());
    return *sum;
}

void check_vectors(
        const CanonicalVectors& x,
        const Kernel& kernel,
        const SharedSum& sum,
        const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            x->n <= std::numeric_limits<int32_t>::max(),
            "%s: %" PRId64 " vectors, expected fewer than 2^31",
            where,
            int64_t(x->n));
    for_components(x.get(), [&](size_t size, const float* values) {
        if (sum.is_of_histograms) {
            check_histograms(1, values, size, where);
        }
        kernel.check_input(1, values, size, where);
    });
}

/// The largest score of a kernel value that reaches the threshold.
double largest_score(const Kernel& kernel, float threshold) {
    return largest_float([&](float score) {
        float value = score;
        kernel.values_of_scores(metric, 1, &value);
        // no distance is negative
        return std::isnan(value) ? score < 0 : value >= threshold;
    });
}

void check_missed(double missed, int64_t seed, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            missed >= 0 && missed < 1,
            "%s: the share of pairs that may be missed is %g, expected a number from 0 (none) to below 1",
            where,
            missed);
    FAISS_EXT_THROW_IF_NOT_FMT(
            seed >= 0,
            "%s: the seed is %" PRId64 ", expected a number from 0 on",
            where,
            int64_t(seed));
}

size_t most_components(const SparseVectors& x) {
    size_t most = 0;
    for (idx_t i = 0; i < x.n; i++) {
        most = std::max(most, x.num_components(i));
    }
    return most;
}

/// States of the threads. A thread takes one for a block of rows.
template <class State>
class States {
   public:
    std::unique_ptr<State> take() {
        const std::lock_guard<std::mutex> hold(mutex);
        if (unused.empty()) {
            return std::make_unique<State>();
        }
        auto state = std::move(unused.back());
        unused.pop_back();
        return state;
    }

    void give_back(std::unique_ptr<State> state) {
        const std::lock_guard<std::mutex> hold(mutex);
        unused.push_back(std::move(state));
    }

    /// All states, if no thread has one.
    std::vector<std::unique_ptr<State>>& all() {
        return unused;
    }

   private:
    std::mutex mutex;
    std::vector<std::unique_ptr<State>> unused;
};

/// Whether the value of vectors of zeros and ones depends only on their numbers
/// of ones, alone and in common.
bool counts_bits(const Kernel& kernel) {
    const std::vector<std::string> names = bit_kernel_names();
    return std::any_of(
            names.begin(), names.end(), [&](const std::string& name) {
                const auto of_bits = bit_kernel_factory(name);
                const Kernel* same = of_bits->on_vectors();
                return same && same->description() == kernel.description();
            });
}

/// The values of a row of bits with others, each computed only once for the
/// same numbers of ones.
class ValuesOfBits {
   public:
    ValuesOfBits(
            const BitRows& bits,
            size_t row,
            const std::vector<uint32_t>& others)
            : bits(bits), others(others), common(others.size()) {
        simd::common_bits(
                bits.words,
                bits.row(row),
                bits.all.data(),
                others.size(),
                others.data(),
                common.data());
    }

    /// @param compute  computes the value
    template <class Compute>
    float at(size_t number, Compute&& compute) {
        const uint64_t key =
                uint64_t(bits.ones[others[number]]) << 32 | common[number];
        const auto [place, is_new] = values.try_emplace(key);
        if (is_new) {
            place->second = compute();
        }
        return place->second;
    }

   private:
    const BitRows& bits;
    const std::vector<uint32_t>& others;
    std::vector<uint32_t> common;
    std::unordered_map<uint64_t, float> values;
};

/// The vectors of a call, and the values of pairs. If the vectors are bits,
/// codes are the packed ones, and otherwise null.
class Join {
   public:
    Join(const SparseVectors& given,
         const Kernel& kernel,
         float threshold,
         double most_missed,
         int64_t seed,
         const uint8_t* codes,
         const char* where)
            : kernel(kernel),
              threshold(threshold),
              sum(checked_sum(kernel, threshold, where)),
              x(checked(given, where)),
              bound(sum,
                    largest_score(kernel, threshold),
                    most_components(x->get())),
              rows(x->get(), bound),
              pairs(rows, bound) {
        check_missed(most_missed, seed, where);
        if (codes) {
            bits.emplace(rows, codes, x->get().d / 8);
            compares_bits = counts_bits(kernel);
        }
        choose_join(most_missed, seed);
    }

    /// The share of pairs that may be missed.
    double missed() const {
        return share_missed;
    }

    idx_t num_vectors() const {
        return x->get().n;
    }
    size_t num_rows() const {
        return rows.size();
    }
    std::span<const int32_t> equal(size_t row) const {
        return rows.equal(row);
    }

    /// The value of vectors that are equal to a row, if it reaches the
    /// threshold.
    std::optional<float> self_value(size_t row) const {
        constexpr float zero = 0;
        const SparseRow vector = vector_of(row);
        const bool is_zero = vector.size() == 0;
        float value = 0;
        kernel.self_values(
                1,
                is_zero ? &zero : vector.values.data(),
                std::max<size_t>(1, vector.size()),
                &value);
        return value >= threshold ? std::optional(value) : std::nullopt;
    }

    /// Calls found(state, row, other, value) for each pair of different rows,
    /// unless skip(row, other); on all threads.
    template <class State, class Skip, class Found>
    void find(States<State>& states, Skip&& skip, Found&& found) const {
        parallel_blocks(
                "near duplicates",
                num_rows(),
                rows_at_a_time,
                [&](idx_t begin, idx_t end) {
                    auto state = states.take();
                    for (idx_t row = begin; row < end; row++) {
                        check_interrupt();
                        join->find(row, state->join);
                        compare(row, *state, skip, found);
                    }
                    states.give_back(std::move(state));
                });
    }

   private:
    const Kernel& kernel;
    float threshold;
    SharedSum sum;
    std::unique_ptr<CanonicalVectors> x;
    SumBound bound;
    OrderedRows rows;
    RowPairs pairs;
    std::optional<BitRows> bits;
    bool compares_bits = false;
    std::unique_ptr<RowJoin> join;
    double share_missed = 0;

    /// Takes the exact join that is the fastest, or bands if they may miss
    /// pairs, and if the exact joins are slow and take far longer.
    void choose_join(double most_missed, int64_t seed) {
        constexpr double slow = 1e8, times_longer = 2;
        join = std::make_unique<SharedColumnJoin>(pairs);
        double time = join->estimated_time();
        if (bits) {
            const double of_bits = BitJoin::estimated_time(pairs, *bits);
            if (of_bits < time) {
                time = of_bits;
                join.reset();
                join = std::make_unique<BitJoin>(pairs, *bits);
            }
        }
        if (time <= slow) {
            return;
        }
        const auto bands = most_missed > 0
                ? choose_bands(pairs, most_missed, seed)
                : std::nullopt;
        const double of_bands = bands ? times_longer * bands->time
                                      : std::numeric_limits<double>::infinity();
        if (ScanJoin::least_time(pairs) < std::min(time, of_bands)) {
            auto scan = std::make_unique<ScanJoin>(pairs, x->get());
            const double of_scan = scan->estimated_time();
            if (of_scan < time) {
                time = of_scan;
                join = std::move(scan);
            }
        }
        if (of_bands < time) {
            join.reset();
            join = std::make_unique<BandJoin>(pairs, *bands, seed);
            share_missed = bands->missed;
        }
    }

    std::unique_ptr<CanonicalVectors> checked(
            const SparseVectors& given,
            const char* where) const {
        auto vectors = std::make_unique<CanonicalVectors>(given, where);
        check_vectors(*vectors, kernel, sum, where);
        return vectors;
    }

    SparseRow vector_of(size_t row) const {
        return SparseRow::of(x->get(), rows.equal(row).front());
    }

    template <class State, class Skip, class Found>
    void compare(size_t row, State& state, Skip&& skip, Found&& found) const {
        if (state.join.found.empty()) {
            return;
        }
        const SparseQuery query(kernel, vector_of(row));
        const std::vector<uint32_t>& others = state.join.found;
        std::optional<ValuesOfBits> of_bits;
        if (compares_bits) {
            of_bits.emplace(*bits, row, others);
        }
        for (size_t number = 0; number < others.size(); number++) {
            if (number % 256 == 255) {
                check_interrupt();
            }
            const uint32_t other = others[number];
            if (skip(row, other)) {
                continue;
            }
            const auto compute = [&] {
                // alone: the last bits of a value may depend on the other rows
                const SparseRow vector = vector_of(other);
                float value;
                query.scores(metric, {&vector, 1}, &value);
                kernel.values_of_scores(metric, 1, &value);
                return value;
            };
            const float value =
                    of_bits ? of_bits->at(number, compute) : compute();
            if (value >= threshold) {
                found(state, row, other, value);
            }
        }
    }
};

struct Pair {
    int32_t first, second;
    float value;
};

struct PairState {
    RowJoin::State join;
    std::vector<Pair> pairs;

    void add(int32_t a, int32_t b, float value) {
        pairs.push_back({std::min(a, b), std::max(a, b), value});
    }
};

/// Orders the pairs of all threads by their vectors.
NearDuplicates ordered(
        std::vector<std::unique_ptr<PairState>>& states,
        idx_t num_vectors) {
    std::vector<size_t> starts(num_vectors + 1);
    for (const auto& state : states) {
        for (const Pair& pair : state->pairs) {
            starts[pair.first + 1]++;
        }
    }
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<Pair> all(starts.back());
    std::vector<size_t> next = starts;
    for (const auto& state : states) {
        for (const Pair& pair : state->pairs) {
            all[next[pair.first]++] = pair;
        }
        std::vector<Pair>().swap(state->pairs);
    }
    NearDuplicates result;
    result.pairs.resize(2 * all.size());
    result.values.resize(all.size());
    parallel_blocks(num_vectors, 1024, [&](idx_t begin, idx_t end) {
        for (idx_t i = begin; i < end; i++) {
            std::sort(
                    all.begin() + starts[i],
                    all.begin() + starts[i + 1],
                    [](const Pair& a, const Pair& b) {
                        return a.second < b.second;
                    });
        }
        for (size_t k = starts[begin]; k < starts[end]; k++) {
            result.pairs[2 * k] = all[k].first;
            result.pairs[2 * k + 1] = all[k].second;
            result.values[k] = all[k].value;
        }
    });
    return result;
}

/// Groups of numbers, which threads unite at the same time. The least number of
/// a group is its root.
class Groups {
   public:
    explicit Groups(size_t n) : parents(n) {
        for (size_t i = 0; i < n; i++) {
            parents[i] = uint32_t(i);
        }
    }

    uint32_t root(uint32_t i) {
        for (;;) {
            uint32_t parent = parents[i];
            if (parent == i) {
                return i;
            }
            const uint32_t next = parents[parent];
            // shortens the path, unless another thread has done so
            parents[i].compare_exchange_weak(parent, next);
            i = next;
        }
    }

    bool are_united(uint32_t a, uint32_t b) {
        return root(a) == root(b); // once united, they remain so
    }

    void unite(uint32_t a, uint32_t b) {
        for (;;) {
            a = root(a);
            b = root(b);
            if (a == b) {
                return;
            }
            uint32_t larger = std::max(a, b);
            if (parents[larger].compare_exchange_strong(
                        larger, std::min(a, b))) {
                return;
            }
        }
    }

   private:
    std::vector<std::atomic<uint32_t>> parents;
};

/// The vectors of packed bits, after checks.
SparseRows checked_bit_rows(
        idx_t n,
        idx_t d,
        const uint8_t* codes,
        const char* where) {
    check_batch(n, codes, where);
    return rows_of_bits(n, checked_bits(d, where), codes);
}

NearDuplicates find_pairs(
        const SparseVectors& x,
        const Kernel& kernel,
        float threshold,
        double missed,
        int64_t seed,
        const uint8_t* codes,
        const char* where) {
    const Join join(x, kernel, threshold, missed, seed, codes, where);
    States<PairState> states;
    join.find(
            states,
            [](size_t, uint32_t) { return false; },
            [&](PairState& state, size_t row, uint32_t other, float value) {
                for (const int32_t a : join.equal(row)) {
                    for (const int32_t b : join.equal(other)) {
                        state.add(a, b, value);
                    }
                }
            });
    auto state = states.take();
    for (size_t row = 0; row < join.num_rows(); row++) {
        const auto vectors = join.equal(row);
        if (vectors.size() == 1) {
            continue;
        }
        if (const auto value = join.self_value(row)) {
            for (size_t i = 0; i < vectors.size(); i++) {
                check_interrupt();
                for (size_t j = i + 1; j < vectors.size(); j++) {
                    state->add(vectors[i], vectors[j], *value);
                }
            }
        }
    }
    states.give_back(std::move(state));
    NearDuplicates result = ordered(states.all(), join.num_vectors());
    result.missed = join.missed();
    for (const auto& used : states.all()) {
        result.compared += used->join.compared;
    }
    return result;
}

std::vector<idx_t> find_groups(
        const SparseVectors& x,
        const Kernel& kernel,
        float threshold,
        double missed,
        int64_t seed,
        const uint8_t* codes,
        const char* where) {
    const Join join(x, kernel, threshold, missed, seed, codes, where);
    struct State {
        RowJoin::State join;
    };
    States<State> states;
    Groups groups(join.num_rows());
    std::vector<std::atomic<bool>> has_other(join.num_rows());
    join.find(
            states,
            [&](size_t row, uint32_t other) {
                return groups.are_united(uint32_t(row), other);
            },
            [&](State&, size_t row, uint32_t other, float) {
                groups.unite(uint32_t(row), other);
                has_other[row] = has_other[other] = true;
            });
    std::vector<idx_t> labels(join.num_vectors());
    std::iota(labels.begin(), labels.end(), idx_t(0));
    // the first vector of each group of rows
    std::vector<idx_t> first(join.num_rows(), join.num_vectors());
    for (size_t row = 0; row < join.num_rows(); row++) {
        idx_t& least = first[groups.root(uint32_t(row))];
        least = std::min<idx_t>(least, join.equal(row).front());
    }
    for (size_t row = 0; row < join.num_rows(); row++) {
        if (has_other[row] || join.self_value(row)) {
            for (const int32_t vector : join.equal(row)) {
                labels[vector] = first[groups.root(uint32_t(row))];
            }
        }
    }
    return labels;
}

} // namespace

NearDuplicates near_duplicates(
        const SparseVectors& x,
        const Kernel& kernel,
        float threshold,
        double missed,
        int64_t seed) {
    return find_pairs(
            x, kernel, threshold, missed, seed, nullptr, "near_duplicates");
}

NearDuplicates near_duplicates(
        idx_t n,
        idx_t d,
        const uint8_t* codes,
        const Kernel& kernel,
        float threshold,
        double missed,
        int64_t seed) {
    constexpr auto where = "near_duplicates";
    const SparseRows x = checked_bit_rows(n, d, codes, where);
    return find_pairs(x.get(), kernel, threshold, missed, seed, codes, where);
}

std::vector<idx_t> near_duplicate_groups(
        const SparseVectors& x,
        const Kernel& kernel,
        float threshold,
        double missed,
        int64_t seed) {
    return find_groups(
            x,
            kernel,
            threshold,
            missed,
            seed,
            nullptr,
            "near_duplicate_groups");
}

std::vector<idx_t> near_duplicate_groups(
        idx_t n,
        idx_t d,
        const uint8_t* codes,
        const Kernel& kernel,
        float threshold,
        double missed,
        int64_t seed) {
    constexpr auto where = "near_duplicate_groups";
    const SparseRows x = checked_bit_rows(n, d, codes, where);
    return find_groups(x.get(), kernel, threshold, missed, seed, codes, where);
}

} // namespace faiss_ext
