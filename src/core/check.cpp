// SPDX-License-Identifier: MIT
#include "core/check.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cctype>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "core/errors.h"
#include "core/parallel.h"

namespace faiss_ext {

namespace {

thread_local const int32_t* component_numbers = nullptr;

bool is_finite(float v) {
    constexpr uint32_t exponent = 0x7f800000;
    return (std::bit_cast<uint32_t>(v) & exponent) != exponent;
}

/// Returns whether good(v) holds for all components. It has no branch per
/// component, so that it is vectorised.
template <class Good>
bool all_good(size_t n, const float* x, Good good) {
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        bad |= !good(x[i]);
    }
    return bad == 0;
}

idx_t vectors_at_a_time(size_t d) {
    return std::max<idx_t>(1, idx_t((1 << 18) / (d + 1)));
}

template <class Good>
void check_components(
        idx_t n,
        const float* x,
        size_t d,
        const char* where,
        const char* expected,
        Good good) {
    check_batch(n, x, where);
    parallel_blocks(n, vectors_at_a_time(d), [&](idx_t begin, idx_t end) {
        if (all_good((end - begin) * d, x + begin * d, good)) {
            return;
        }
        for (size_t i = begin * d; i < end * d; i++) {
            FAISS_EXT_THROW_VECTOR_IF_NOT(
                    good(x[i]),
                    idx_t(i / d),
                    format_message(
                            "%s: component %zu of ",
                            where,
                            component_numbers ? size_t(component_numbers[i % d])
                                              : i % d),
                    format_message(" is %g, expected %s", x[i], expected));
        }
    });
}

} // namespace

ComponentNumbers::ComponentNumbers(const int32_t* numbers) {
    component_numbers = numbers;
}

ComponentNumbers::~ComponentNumbers() {
    component_numbers = nullptr;
}

void check_batch(idx_t n, const void* x, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            n >= 0,
            "%s: the number of vectors is %" PRId64 ", expected 0 or more",
            where,
            int64_t(n));
    FAISS_EXT_THROW_IF_NOT_FMT(
            n == 0 || x, "%s: the pointer to the vectors is null", where);
}

void check_finite(idx_t n, const float* x, size_t d, const char* where) {
    check_components(n, x, d, where, "a finite number", [](float v) {
        return is_finite(v);
    });
}

bool all_finite(size_t n, const float* x) {
    return all_good(n, x, [](float v) { return is_finite(v); });
}

void check_histograms(idx_t n, const float* x, size_t d, const char* where) {
    check_components(
            n,
            x,
            d,
            where,
            "a finite number >= 0 (a histogram), at most 1e37",
            [](float v) { return (v >= 0) & (v <= 1e37f); });
}

void check_sums(idx_t n, const float* x, size_t d, const char* where) {
    const double least = 1e-30 * double(d);
    parallel_blocks(n, 256, [&](idx_t begin, idx_t end) {
        for (idx_t i = begin; i < end; i++) {
            const float* row = x + i * d;
            // nearly always one component suffices
            if (std::any_of(row, row + d, [least](float v) {
                    return std::abs(v) >= least;
                })) {
                continue;
            }
            double sum = 0;
            for (size_t k = 0; k < d && sum < least; k++) {
                sum += std::abs(row[k]);
            }
            FAISS_EXT_THROW_VECTOR_IF_NOT(
                    sum == 0 || sum >= least,
                    i,
                    format_message("%s: the components of ", where),
                    format_message(
                            " add up to %g, expected 0 or at least %g, because smaller sums lose digits; scale the vectors up, or set this vector to 0",
                            sum,
                            least));
        }
    });
}

void check_rows_exceeding(
        float safe,
        idx_t n,
        const float* x,
        size_t d,
        const char* where,
        const std::function<void(idx_t, const float*)>& check) {
    check_batch(n, x, where);
    std::atomic<bool> all{true};
    parallel_blocks(n, vectors_at_a_time(d), [&](idx_t begin, idx_t end) {
        if (!all_good((end - begin) * d, x + begin * d, [safe](float v) {
                return (v >= -safe) & (v <= safe);
            })) {
            all = false;
        }
    });
    if (all) {
        return;
    }
    check_finite(n, x, d, where);
    parallel_blocks(n, 256, [&](idx_t begin, idx_t end) {
        for (idx_t i = begin; i < end; i++) {
            check(i, x + i * d);
        }
    });
}

void check_norms(idx_t n, const float* x, size_t d, const char* where) {
    check_norms_up_to(max_squared_norm, n, x, d, where);
}

void check_norms_up_to(
        double most,
        idx_t n,
        const float* x,
        size_t d,
        const char* where) {
    // if no component exceeds this, the norm is small enough
    const auto safe = float(std::sqrt(most / (double(d) + 1)));
    check_rows_exceeding(safe, n, x, d, where, [&](idx_t i, const float* row) {
        double sum = 0;
        for (size_t k = 0; k < d; k++) {
            sum += double(row[k]) * row[k];
        }
        FAISS_EXT_THROW_VECTOR_IF_NOT(
                sum <= most,
                i,
                format_message("%s: ", where),
                format_message(
                        " is too large: its squared L2 norm is %g, expected at most %g; scale the vectors down",
                        sum,
                        most));
    });
}

void check_ids(idx_t i0, idx_t ni, idx_t ntotal, const char* where) {
    const bool are_there = ni == 0 || (i0 >= 0 && ni > 0 && i0 <= ntotal - ni);
    FAISS_EXT_THROW_IF_NOT_FMT(
            are_there || ni != 1,
            "%s: id %" PRId64 " is out of range: the index has %" PRId64
            " vectors",
            where,
            int64_t(i0),
            int64_t(ntotal));
    FAISS_EXT_THROW_IF_NOT_FMT(
            are_there,
            "%s: ids %" PRId64 " to %" PRId64
            " are out of range: the index has %" PRId64 " vectors",
            where,
            int64_t(i0),
            int64_t(i0 + ni - 1),
            int64_t(ntotal));
}

void check_stored(
        idx_t ntotal,
        size_t bytes,
        size_t code_size,
        const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            ntotal >= 0 && bytes == size_t(ntotal) * code_size,
            "%s: ntotal is %" PRId64
            ", but %zu vectors are stored; ntotal must not be set by hand",
            where,
            int64_t(ntotal),
            bytes / std::max<size_t>(code_size, 1));
}

namespace {

/// The name of one of FAISS's metrics, some of which older versions do not
/// have.
std::string faiss_metric_name(int metric) {
    static const std::map<int, const char*> names = {
            {0, "INNER_PRODUCT"},
            {1, "L2"},
            {2, "L1"},
            {3, "Linf"},
            {4, "Lp"},
            {20, "Canberra"},
            {21, "BrayCurtis"},
            {22, "JensenShannon"},
            {23, "Jaccard"},
            {24, "NaNEuclidean"},
            {25, "GOWER"}};
    const auto found = names.find(metric);
    return found == names.end() ? std::to_string(metric) : found->second;
}

} // namespace

void check_labels(
        idx_t n,
        idx_t k,
        const idx_t* labels,
        idx_t ntotal,
        const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            k >= 0,
            "%s: k is %" PRId64 ", expected 0 or more",
            where,
            int64_t(k));
    for (idx_t i = 0; i < n * k; i++) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                labels[i] >= -1 && labels[i] < ntotal,
                "%s: id %" PRId64 " of query %" PRId64
                " is out of range: the index has %" PRId64 " vectors",
                where,
                int64_t(labels[i]),
                int64_t(i / k),
                int64_t(ntotal));
    }
}

void check_permutation(idx_t ntotal, const idx_t* perm, const char* where) {
    std::vector<bool> seen(ntotal);
    for (idx_t i = 0; i < ntotal; i++) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                perm[i] >= 0 && perm[i] < ntotal && !seen[perm[i]],
                "%s: position %" PRId64 " has id %" PRId64
                ", expected each of the %" PRId64 " ids once",
                where,
                int64_t(i),
                int64_t(perm[i]),
                int64_t(ntotal));
        seen[perm[i]] = true;
    }
}

int checked_bits(idx_t d, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d > 0 && d % 8 == 0,
            "%s: the number of bits is %" PRId64
            ", expected a positive multiple of 8",
            where,
            int64_t(d));
    return int(d);
}

void check_k(idx_t k, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            k > 0,
            "%s: k is %" PRId64 ", expected a positive number",
            where,
            int64_t(k));
}

void check_radius(float radius, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            !std::isnan(radius),
            "%s: the radius is NaN, expected a number",
            where);
}

void check_trained(bool is_trained, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            is_trained,
            "%s: the index is not trained; call train first",
            where);
}

void check_not_itself(bool is_itself) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            !is_itself, "an index cannot be merged with itself");
}

void check_no_add_id(idx_t add_id) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            add_id == 0,
            "cannot merge: add_id must be 0, because ids are positions");
}

std::string metric_name(faiss::MetricType metric) {
    return "METRIC_" + faiss_metric_name(metric);
}

std::string short_metric_name(faiss::MetricType metric) {
    if (metric == faiss::METRIC_INNER_PRODUCT) {
        return "ip";
    }
    std::string name = faiss_metric_name(metric);
    for (char& letter : name) {
        letter = char(std::tolower(static_cast<unsigned char>(letter)));
    }
    return name;
}

void check_metric(faiss::MetricType metric) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            metric == faiss::METRIC_L2 || metric == faiss::METRIC_INNER_PRODUCT,
            "%s is not supported, expected METRIC_L2 or METRIC_INNER_PRODUCT",
            metric_name(metric).c_str());
}

void check_signed_histograms(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) {
    check_components(
            n,
            x,
            d,
            where,
            "a finite number, at most 1e37 in magnitude",
            [](float v) { return (v >= -1e37f) & (v <= 1e37f); });
}

} // namespace faiss_ext
