// SPDX-License-Identifier: MIT
// What the tests share: data, results, errors, surroundings, references, and
// bounds on rounding and on random quantities.

#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <numbers>
#include <numeric>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <omp.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissException.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/impl/io.h>
#include <faiss/utils/distances.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/hashes/ProjectionHash.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/index_tree.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/LaplacianKernel.h>
#include <faiss_ext/kernels/MaternKernel.h>
#include <faiss_ext/projections/Projection.h>
#include <faiss_ext/projections/ProjectionChoice.h>
#include <faiss_ext/projections/StructuredProjection.h>

#include "core/io_fields.h"
#include "io/frame.h"
#include "simd/pairwise.h"

// defined if the program is linked with AddressSanitizer
extern "C" void __asan_init() __attribute__((weak));

namespace faiss_ext_test {

using namespace faiss_ext;
using std::numbers::pi;

using Floats = std::vector<float>;
using Bytes = std::vector<uint8_t>;
using Params = const faiss::SearchParameters*;

/// True if the library is compiled with AddressSanitizer. Then, tests that
/// measure many cases take some of them.
inline const bool is_sanitized = &__asan_init != nullptr;

/// FAISS allocates a block for each product of matrices: 16 MB by default,
/// which AddressSanitizer would mark from end to end each time.
inline const int block_of_products = [] {
    if (is_sanitized) {
        faiss::distance_compute_blas_database_bs = 128;
        faiss::distance_compute_blas_query_bs = 128;
    }
    return faiss::distance_compute_blas_query_bs;
}();

/// The parts with the vectors of an index that are float as it is, or binary as
/// it is.
template <class IndexT>
std::vector<IndexT*> parts_alike(const IndexT& index) {
    std::vector<IndexT*> found;
    for (const IndexPart& part : parts_of(index)) {
        const auto* inside = part.index.template as<IndexT>();
        if (inside && !part.is_quantizer) {
            found.push_back(const_cast<IndexT*>(inside));
        }
    }
    return found;
}

// Data.

/// n numbers of a distribution
template <class Distribution>
Floats numbers(size_t n, uint64_t seed, Distribution draw) {
    std::mt19937_64 rng(seed);
    Floats x(n);
    for (float& v : x) {
        v = float(draw(rng));
    }
    return x;
}

/// n * d independent normal numbers of standard deviation sigma
inline Floats normal_vectors(
        size_t n,
        size_t d,
        uint64_t seed,
        double sigma = 1) {
    std::normal_distribution<double> normal;
    return numbers(n * d, seed, [&](auto& rng) { return sigma * normal(rng); });
}

/// n * d independent numbers, uniform on [low, high]
inline Floats uniform_vectors(
        size_t n,
        size_t d,
        uint64_t seed,
        double low = 0,
        double high = 1) {
    // as std::uniform_real_distribution, which without optimization computes
    // logarithms for each number
    return numbers(n * d, seed, [&](auto& rng) {
        const double below_1 = std::min(double(rng()) * 0x1p-64, 1 - 0x1p-53);
        return low + (high - low) * below_1;
    });
}

/// n rows of x with a little noise
inline Floats near_vectors(
        const Floats& x,
        idx_t n,
        int d,
        float noise,
        uint32_t seed) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal(0, noise);
    Floats q(n * d);
    const idx_t nx = x.size() / d;
    for (idx_t i = 0; i < n; i++) {
        const float* row = &x[rng() % nx * d];
        for (int k = 0; k < d; k++) {
            q[i * d + k] = row[k] + normal(rng);
        }
    }
    return q;
}

/// n histograms that sum to 1, from a Dirichlet distribution around one of
/// `ncenters` such histograms (concentration `focus`); many components are
/// small
inline Floats clustered_histograms(
        size_t n,
        size_t d,
        int ncenters,
        double focus,
        uint64_t seed) {
    std::mt19937_64 rng(seed);
    const auto dirichlet = [&](std::vector<double> alpha) {
        double sum = 0;
        for (double& v : alpha) {
            v = std::gamma_distribution<double>(v)(rng);
            sum += v;
        }
        for (double& v : alpha) {
            v /= sum;
        }
        return alpha;
    };
    std::vector<std::vector<double>> centers;
    for (int c = 0; c < ncenters; c++) {
        centers.push_back(dirichlet(std::vector<double>(d, 0.3)));
        for (double& v : centers.back()) {
            v = focus * (v + 0.01 / double(d));
        }
    }
    Floats x;
    for (size_t i = 0; i < n; i++) {
        for (double v : dirichlet(centers[rng() % centers.size()])) {
            x.push_back(float(v));
        }
    }
    return x;
}

/// L1-normalised vectors, which suit every kernel.
inline Floats normalized_histograms(size_t n, size_t d, uint64_t seed) {
    Floats x = uniform_vectors(n, d, seed);
    for (size_t i = 0; i < n; i++) {
        const float sum = std::accumulate(&x[i * d], &x[i * d] + d, 0.0f);
        std::for_each(&x[i * d], &x[i * d] + d, [&](float& v) { v /= sum; });
    }
    return x;
}

inline Bytes random_bytes(size_t n, uint64_t seed) {
    std::mt19937_64 rng(seed);
    Bytes bytes(n);
    for (uint8_t& b : bytes) {
        b = uint8_t(rng());
    }
    return bytes;
}

/// rows [begin, end)
template <class T>
std::vector<T> rows(
        const std::vector<T>& x,
        size_t row_size,
        idx_t begin,
        idx_t end) {
    return std::vector<T>(
            x.begin() + begin * row_size, x.begin() + end * row_size);
}

inline Bytes codes_of(const KernelHash& hash, const Floats& x) {
    const idx_t n = x.size() / hash.d_in;
    Bytes codes(n * hash.code_size());
    hash.encode(n, x.data(), codes.data());
    return codes;
}

/// what a transformation makes of the rows of x
inline Floats applied(const faiss::VectorTransform& vt, const Floats& x) {
    const idx_t n = x.size() / vt.d_in;
    Floats y(n * vt.d_out, -1);
    vt.apply_noalloc(n, x.data(), y.data());
    return y;
}

inline Floats applied(const Projection& p, const Floats& x) {
    const size_t n = x.size() / p.d_in;
    Floats y(n * p.d_out, NAN);
    p.apply(n, x.data(), y.data());
    return y;
}

// Files in memory.

/// faiss::Index, faiss::IndexBinary or faiss::VectorTransform, of which T is
/// one
template <class T>
using FileKind = std::conditional_t<
        std::is_base_of_v<faiss::Index, T>,
        faiss::Index,
        std::conditional_t<
                std::is_base_of_v<faiss::IndexBinary, T>,
                faiss::IndexBinary,
                faiss::VectorTransform>>;

template <class T>
Bytes bytes_of(const T& object) {
    faiss::VectorIOWriter writer;
    if constexpr (std::is_same_v<FileKind<T>, faiss::Index>) {
        faiss_ext::write_index(&object, &writer);
    } else if constexpr (std::is_same_v<FileKind<T>, faiss::IndexBinary>) {
        faiss_ext::write_index_binary(&object, &writer);
    } else {
        faiss_ext::write_VectorTransform(&object, &writer);
    }
    return writer.data;
}

template <class T = faiss::Index>
std::unique_ptr<T> from_bytes(const Bytes& bytes) {
    faiss::VectorIOReader reader;
    reader.data = bytes;
    if constexpr (std::is_same_v<T, faiss::Index>) {
        return faiss_ext::read_index(&reader);
    } else if constexpr (std::is_same_v<T, faiss::IndexBinary>) {
        return faiss_ext::read_index_binary(&reader);
    } else {
        return faiss_ext::read_VectorTransform(&reader);
    }
}

/// the same, written and read
template <class T>
std::unique_ptr<FileKind<T>> reread(const T& object) {
    return from_bytes<FileKind<T>>(bytes_of(object));
}

/// the hash of a string, by its class
template <class Hash>
std::unique_ptr<Hash> hash_as(int d, const std::string& text) {
    auto hash = kernel_hash_factory(d, text);
    return std::unique_ptr<Hash>(&dynamic_cast<Hash&>(*hash.release()));
}

template <class P = Projection>
const P& projection_of(const KernelHash& hash) {
    return dynamic_cast<const P&>(
            *dynamic_cast<const ProjectionHash&>(hash).projection);
}

inline Floats scaled(Floats x, float factor) {
    for (float& v : x) {
        v *= factor;
    }
    return x;
}

template <class T>
double dot_product(const T* x, const T* y, size_t d) {
    double sum = 0;
    for (size_t k = 0; k < d; k++) {
        sum += double(x[k]) * y[k];
    }
    return sum;
}

template <class T>
double length(const T* x, size_t d) {
    return std::sqrt(dot_product(x, x, d));
}

template <class T>
double cosine(const T* x, const T* y, size_t d) {
    return dot_product(x, y, d) / (length(x, d) * length(y, d));
}

/// k(x_i, y_j) of the rows of x and y
inline Floats kernel_block(
        const Kernel& kernel,
        const Floats& x,
        const Floats& y,
        size_t d) {
    const size_t n = x.size() / d, m = y.size() / d;
    Floats values(n * m, -1);
    kernel.block(n, x.data(), m, y.data(), d, values.data());
    return values;
}

/// the distances in feature space of the same pairs
inline Floats kernel_distances(
        const Kernel& kernel,
        const Floats& x,
        const Floats& y,
        size_t d) {
    const size_t n = x.size() / d, m = y.size() / d;
    Floats values(n * m, -1);
    kernel.distance_block(n, x.data(), m, y.data(), d, values.data());
    return values;
}

// Results.

template <class Distance>
struct Found {
    std::vector<Distance> distances;
    std::vector<idx_t> labels;
};

template <class Distance>
void expect_same(const Found<Distance>& a, const Found<Distance>& b) {
    EXPECT_EQ(a.labels, b.labels);
    EXPECT_EQ(a.distances, b.distances);
}

/// the k nearest of n queries; `search` writes distances and labels
template <class Distance, class Search>
Found<Distance> found_by(idx_t n, idx_t k, Search&& search) {
    Found<Distance> found;
    found.distances.assign(n * k, -12345);
    found.labels.assign(n * k, -12345);
    search(found.distances.data(), found.labels.data());
    return found;
}

inline Found<float> search(
        const faiss::Index& index,
        const Floats& x,
        idx_t k,
        Params params = nullptr) {
    const idx_t n = x.size() / index.d;
    return found_by<float>(n, k, [&](float* distances, idx_t* labels) {
        index.search(n, x.data(), k, distances, labels, params);
    });
}

inline Found<int32_t> search(
        const faiss::IndexBinary& index,
        const Bytes& codes,
        idx_t k,
        Params params = nullptr) {
    const idx_t n = codes.size() / index.code_size;
    return found_by<int32_t>(n, k, [&](int32_t* distances, idx_t* labels) {
        index.search(n, codes.data(), k, distances, labels, params);
    });
}

inline Found<int32_t> search(
        const IndexBinaryKernelHash& index,
        const Floats& x,
        idx_t k,
        Params params = nullptr) {
    const idx_t n = x.size() / index.hash->d_in;
    return found_by<int32_t>(n, k, [&](int32_t* distances, idx_t* labels) {
        index.search(n, x.data(), k, distances, labels, params);
    });
}

/// For each query the pairs (id, distance) as they come.
using Ranges = std::vector<std::vector<std::pair<idx_t, float>>>;

inline Ranges to_ranges(const faiss::RangeSearchResult& result) {
    Ranges ranges(result.nq);
    for (size_t i = 0; i < result.nq; i++) {
        for (size_t j = result.lims[i]; j < result.lims[i + 1]; j++) {
            ranges[i].emplace_back(result.labels[j], result.distances[j]);
        }
    }
    return ranges;
}

inline Ranges sorted(Ranges ranges) {
    for (auto& range : ranges) {
        std::sort(range.begin(), range.end());
    }
    return ranges;
}

inline size_t total_size(const Ranges& ranges) {
    size_t n = 0;
    for (const auto& range : ranges) {
        n += range.size();
    }
    return n;
}

inline Ranges range_search(
        const faiss::Index& index,
        const Floats& x,
        float radius,
        Params params = nullptr) {
    const idx_t n = x.size() / index.d;
    faiss::RangeSearchResult result(n);
    index.range_search(n, x.data(), radius, &result, params);
    return to_ranges(result);
}

inline Ranges range_search(
        const faiss::IndexBinary& index,
        const Bytes& codes,
        int radius) {
    const idx_t n = codes.size() / index.code_size;
    faiss::RangeSearchResult result(n);
    index.range_search(n, codes.data(), radius, &result);
    return to_ranges(result);
}

inline Ranges range_search(
        const IndexBinaryKernelHash& index,
        const Floats& x,
        int radius) {
    const idx_t n = x.size() / index.hash->d_in;
    faiss::RangeSearchResult result(n);
    index.range_search(n, x.data(), radius, &result);
    return to_ranges(result);
}

/// The average part of the true neighbors (the first k labels of a query) that
/// are found.
inline double recall(
        const std::vector<idx_t>& found,
        const std::vector<idx_t>& truth,
        idx_t k) {
    idx_t common = 0;
    for (size_t i = 0; i < truth.size(); i += k) {
        for (idx_t j = 0; j < k; j++) {
            common += std::count(
                    found.begin() + i, found.begin() + i + k, truth[i + j]);
        }
    }
    return double(common) / truth.size();
}

/// Lets searches of graphs in an index examine all vertices.
template <class IndexT>
void walk_over_all(IndexT& index) {
    for (const faiss_ext::SearchParameter& parameter :
         faiss_ext::search_parameters(index)) {
        if (parameter.name == "efSearch") {
            parameter.set(1000);
        }
    }
}

/// Whether two arrays hold the same bits, NaN and the sign of 0 included.
template <class Vector>
bool same_bits(const Vector& a, const Vector& b) {
    return a.size() == b.size() &&
            (a.empty() ||
             std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0);
}

// FAISS's versions.

constexpr int faiss_version = 10000 * FAISS_VERSION_MAJOR +
        100 * FAISS_VERSION_MINOR + FAISS_VERSION_PATCH;

// Errors.

/// What the faiss::FaissException that f throws says; empty if it throws none.
template <class F>
std::string error_of(F&& f) {
    try {
        f();
    } catch (const faiss::FaissException& e) {
        const std::string what = e.what();
        return what.empty() ? "(no message)" : what;
    }
    return "";
}

/// Whether f throws a faiss::FaissException that says all the texts.
template <class F, class... Texts>
::testing::AssertionResult throws(F&& f, const Texts&... texts) {
    const std::string error = error_of(f);
    if (error.empty()) {
        return ::testing::AssertionFailure() << "no exception";
    }
    for (const std::string& text : std::vector<std::string>{texts...}) {
        if (error.find(text) == std::string::npos) {
            return ::testing::AssertionFailure()
                    << "the message lacks '" << text << "': " << error;
        }
    }
    return ::testing::AssertionSuccess();
}

/// Each call throws a faiss::FaissException that says its text.
inline void expect_throws(
        const std::vector<std::pair<std::function<void()>, std::string>>&
                calls) {
    for (size_t i = 0; i < calls.size(); i++) {
        EXPECT_TRUE(throws(calls[i].first, calls[i].second)) << "call " << i;
    }
}

/// Interrupts as soon as now() holds.
template <class Now>
struct Interrupter : faiss::InterruptCallback {
    Now now;

    explicit Interrupter(Now now) : now(std::move(now)) {}
    bool want_interrupt() override {
        return now();
    }
};

/// Whether f ends with an exception when it is to be interrupted as soon as
/// now() holds.
template <class Now, class F>
::testing::AssertionResult interrupted_when(Now now, F&& f) {
    faiss::InterruptCallback::instance =
            std::make_unique<Interrupter<Now>>(std::move(now));
    auto result = throws(f, "interrupted");
    faiss::InterruptCallback::clear_instance();
    return result;
}

/// The same for the n-th time that f asks, however fast it is: loops ask ten
/// times a second.
template <class F>
::testing::AssertionResult interrupted_at(int n, F&& f) {
    const auto wait = [] {
        std::this_thread::sleep_for(std::chrono::milliseconds(110));
    };
    wait();
    return interrupted_when(
            [=, left = n]() mutable {
                wait();
                return --left <= 0;
            },
            f);
}

// Exact search.

inline int hamming(const uint8_t* a, const uint8_t* b, size_t size) {
    int count = 0;
    for (size_t i = 0; i < size; i++) {
        count += std::popcount(uint8_t(a[i] ^ b[i]));
    }
    return count;
}

/// a, and b behind it
template <class T>
std::vector<T> joined(std::vector<T> a, const std::vector<T>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

/// Appends the k smallest pairs (distance, id); what is missing has id -1.
template <class Distance>
void append_nearest(
        Found<Distance>& found,
        std::vector<std::pair<Distance, idx_t>> all,
        idx_t k) {
    std::sort(all.begin(), all.end());
    all.resize(k, {std::numeric_limits<Distance>::max(), -1});
    for (const auto& [distance, id] : all) {
        found.distances.push_back(distance);
        found.labels.push_back(id);
    }
}

/// Counts bits: the index finds the k nearest of those codes that are
/// candidates of a query (all of them by default) and that `sel` takes, equal
/// ones by id, and those nearer than `radius`, by id.
inline void expect_hamming_search(
        const faiss::IndexBinary& index,
        const Bytes& codes,
        const Bytes& queries,
        idx_t k,
        int radius,
        faiss::IDSelector* sel = nullptr,
        const std::function<std::vector<int32_t>(const uint8_t*)>& candidates =
                {}) {
    const size_t size = index.code_size, nq = queries.size() / size;
    std::vector<int32_t> ids(codes.size() / size);
    std::iota(ids.begin(), ids.end(), 0);
    faiss::SearchParameters params;
    params.sel = sel;
    faiss::RangeSearchResult result(nq);
    index.range_search(nq, queries.data(), radius, &result, &params);
    Found<int32_t> expected;
    Ranges expected_ranges(nq);
    for (size_t q = 0; q < nq; q++) {
        const uint8_t* query = &queries[q * size];
        std::vector<std::pair<int32_t, idx_t>> all;
        for (int32_t id : candidates ? candidates(query) : ids) {
            const int distance = hamming(&codes[id * size], query, size);
            if (!sel || sel->is_member(id)) {
                all.emplace_back(distance, id);
                if (distance < radius) {
                    expected_ranges[q].emplace_back(id, distance);
                }
            }
        }
        append_nearest(expected, all, k);
    }
    expect_same(search(index, queries, k, &params), expected);
    EXPECT_EQ(to_ranges(result), expected_ranges);
}

// Surroundings.

/// A number of OpenMP threads for as long as this lives.
struct Threads {
    int before = omp_get_max_threads();

    explicit Threads(int n) {
        omp_set_num_threads(n);
    }
    ~Threads() {
        omp_set_num_threads(before);
    }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
};

/// Tests run on one thread unless they say otherwise: many small loops on
/// several threads take long on a busy machine.
struct OneThread : ::testing::Environment {
    void SetUp() override {
        omp_set_num_threads(1);
    }
};
inline const ::testing::Environment* const one_thread =
        ::testing::AddGlobalTestEnvironment(new OneThread);

/// A folder that exists for as long as this lives.
struct TemporaryFolder {
    std::filesystem::path path;

    TemporaryFolder() {
        static std::atomic<int> counter{0};
        path = std::filesystem::path(::testing::TempDir()) /
                ("faiss_ext_test_" + std::to_string(getpid()) + "_" +
                 std::to_string(counter++));
        std::filesystem::create_directories(path);
    }
    ~TemporaryFolder() {
        std::error_code error;
        std::filesystem::remove_all(path, error);
    }

    std::string operator/(const std::string& name) const {
        return (path / name).string();
    }

    /// the names of what is in it, sorted
    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(path)) {
            names.push_back(entry.path().filename().string());
        }
        std::sort(names.begin(), names.end());
        return names;
    }
};

/// The content of a file of this library, without its frame;
/// docs/file-format.md.
inline Bytes content_of(const Bytes& file) {
    uint64_t length;
    std::memcpy(&length, &file.at(8), sizeof(length));
    return Bytes(file.end() - length, file.end());
}

/// A file with this content, whose checksums fit.
inline Bytes sealed(const Bytes& content, const std::string& magic = "FxIx") {
    faiss::VectorIOWriter writer;
    write_frame(
            magic.c_str(),
            [&](faiss::IOWriter* f) {
                write_bytes(f, content.data(), content.size());
            },
            &writer);
    return writer.data;
}

inline Bytes file_bytes(const std::string& name) {
    std::ifstream file(name, std::ios::binary);
    EXPECT_TRUE(file.good()) << name;
    return std::vector<uint8_t>(
            std::istreambuf_iterator<char>(file),
            std::istreambuf_iterator<char>());
}

inline void write_file(const std::string& name, const Bytes& bytes) {
    std::ofstream file(name, std::ios::binary);
    file.write(
            reinterpret_cast<const char*>(bytes.data()),
            std::streamsize(bytes.size()));
    EXPECT_TRUE(file.good()) << name;
}

/// Has the library use one instruction set until the end of the scope.
struct Target {
    explicit Target(int64_t target) {
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().DeInit(); // choose again at the next call
    }
    ~Target() {
        hwy::SetSupportedTargetsForTest(0);
        hwy::GetChosenTarget().DeInit();
    }
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;
};

/// The instruction sets that this processor has and the library was compiled
/// for: with another one in force, target_name would differ. (The compiler of
/// the tests may know other ones than the library's.)
inline std::vector<int64_t> targets() {
    std::vector<int64_t> found;
    uint64_t left = uint64_t(hwy::SupportedTargets()) | HWY_EMU128 | HWY_SCALAR;
    for (; left != 0; left &= left - 1) {
        const auto target = int64_t(left & -left);
        const Target guard(target);
        if (std::string(simd::target_name()) == hwy::TargetName(target)) {
            found.push_back(target);
        }
    }
    return found;
}

// References.

/// unit roundoff of float
constexpr double float_unit = 0x1p-24;

/// z^p K_nu(z), K_nu(z) = int_0^inf exp(-z cosh t) cosh(nu t) dt by the
/// trapezoidal rule. The integrand is analytic for |Im t| < pi / 2, so that the
/// rule errs by the order of exp(-pi^2 / step); where z is large it is a bell
/// of width z^(-1/2), and the rule errs by exp(-2 pi^2 / (step^2 z)). Both are
/// below 1e-34, and what is cut off below exp(-45) of the first term.
inline double power_bessel_k(double p, double nu, double z) {
    const double step = std::min(1.0 / 8, 0.5 / std::sqrt(z));
    const double power = p * std::log(z), first = power - z;
    double sum = 0.5 * std::exp(first);
    for (double t = step;; t += step) {
        const double grow = power + nu * t, fall = z * std::cosh(t);
        if (fall > std::abs(grow) + 45 - std::min(first, 0.0)) {
            return step * sum;
        }
        sum += 0.5 * (std::exp(grow - fall) + std::exp(power - nu * t - fall));
    }
}

/// A shift-invariant kernel and its reference.
struct KernelCase {
    std::string name;
    double nu = 0; ///< Matern only

    bool l1() const {
        return name == "laplacian";
    }

    std::unique_ptr<ShiftInvariantKernel> make(double gamma) const {
        if (name == "gaussian") {
            return std::make_unique<GaussianKernel>(gamma);
        }
        if (l1()) {
            return std::make_unique<LaplacianKernel>(gamma);
        }
        return std::make_unique<MaternKernel>(nu, gamma);
    }

    /// r / |x - y|
    double scale(double gamma) const {
        return l1() ? gamma : std::sqrt(gamma);
    }

    bool closed_form() const {
        return nu == 0 || nu == 0.5 || nu == 1.5 || nu == 2.5;
    }

    /// K
    double profile(double r) const {
        return nu == 0 ? std::exp(l1() ? -r : -r * r / 2)
                       : matern(nu, std::sqrt(2 * nu) * r);
    }

    /// 1 - K, accurate to 1e-9 relative
    double one_minus_profile(double r) const {
        if (nu == 0 || nu == 0.5) {
            return -std::expm1(nu || l1() ? -r : -r * r / 2);
        }
        const double z = std::sqrt(2 * nu) * r;
        return z == 0 ? 0 : z > 1 ? 1 - matern(nu, z) : one_minus_matern(z);
    }

    static double matern(double nu, double z) {
        if (nu == 0.5) {
            return std::exp(-z);
        }
        if (nu == 1.5) {
            return (1 + z) * std::exp(-z);
        }
        if (nu == 2.5) {
            return (1 + z + z * z / 3) * std::exp(-z);
        }
        const double factor = std::exp2(1 - nu) / std::tgamma(nu);
        return z == 0 ? 1 : factor * power_bessel_k(nu, nu, z);
    }

    /// d/dt (t^nu K_nu(t)) = -t^nu K_{nu-1}(t), so 1 - K is proportional to the
    /// integral of t^nu K_{|nu-1|}(t) from 0 to z, whose terms are positive.
    /// With t = z exp(-v) the integrand is smooth and falls as exp(-2 min(nu,
    /// 1) v): Gauss's rule of 5 points on pieces of length 1/2, cut at
    /// exp(-36).
    double one_minus_matern(double z) const {
        constexpr double node[] = {0, 0.5384693101056831, 0.9061798459386640};
        constexpr double weight[] = {
                0.5688888888888889 / 2, 0.4786286704993665, 0.2369268850561891};
        const double end = 18 / std::min(nu, 1.0), half = 1.0 / 4;
        double sum = 0;
        for (double v = half; v < end; v += 2 * half) {
            for (int i = 0; i < 6; i++) {
                const double at = v + (i % 2 ? half : -half) * node[i / 2];
                const double t = z * std::exp(-at);
                sum += half * weight[i / 2] *
                        power_bessel_k(nu + 1, std::abs(nu - 1), t);
            }
        }
        return std::exp2(1 - nu) / std::tgamma(nu) * sum;
    }
};

inline void PrintTo(const KernelCase& c, std::ostream* out) {
    *out << c.name << (c.nu ? " nu=" + std::to_string(c.nu) : "");
}

/// for INSTANTIATE_TEST_SUITE_P
inline std::string case_name(const KernelCase& c) {
    std::string name = c.name + (c.nu ? std::to_string(c.nu) : "");
    name = name.substr(0, name.find_last_not_of("0") + 1);
    name = name.substr(0, name.find_last_not_of(".") + 1);
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
}

inline std::vector<KernelCase> kernel_cases() {
    std::vector<KernelCase> cases = {{"gaussian"}, {"laplacian"}};
    for (double nu : {0.5, 0.8, 1.5, 2.5, 4.0}) {
        cases.push_back({"matern", nu});
    }
    return cases;
}

/// |x - y| in the kernel's norm
inline double distance(
        const KernelCase& c,
        const float* x,
        const float* y,
        size_t d) {
    long double sum = 0;
    for (size_t k = 0; k < d; k++) {
        const long double diff = static_cast<long double>(x[k]) - y[k];
        sum += c.l1() ? std::abs(diff) : diff * diff;
    }
    return double(c.l1() ? sum : std::sqrt(sum));
}

/** A lower and an upper bound of the expected normalised Hamming distance of
 * SIK at scaled distance r, h_K = 8/pi^2 sum_{m>=1} (1 - K(m r)) / (4 m^2 - 1).
 *
 * The part without K is closed: sum_{m>=1} 1 / (4 m^2 - 1) = 1/2. The terms in
 * K are summed one by one up to M; what is left is between 0 and K(M r) times
 * sum_{m>M} 1 / (4 m^2 - 1) = 1 / (4 M + 2), since K decreases. Rounding is
 * below 1e-12.
 */
inline std::pair<double, double> series(const KernelCase& c, double r) {
    const int limit = c.closed_form() ? 2000000 : 20000;
    long double sum = 0; // in double, 2e6 additions might err by 1e-10
    double k = 1;
    int m = 0;
    while (m < limit && k > 1e-18) {
        m++;
        k = c.profile(m * r);
        sum += k / (4.0 * m * m - 1);
    }
    const double tail = k / (4.0 * m + 2), factor = 8 / (pi * pi);
    const double rest = double(0.5L - sum);
    return {factor * (rest - tail) - 1e-12, factor * rest + 1e-12};
}

/// Each executable asserts at most this many random statements, all of which
/// hold for a correct library but for a probability of 1e-9 (union bound).
inline double log_failure() {
    constexpr double statements = 10000;
    return std::log(1e-9 / statements);
}

/// Hoeffding's bound for the mean of n independent values in an interval of
/// length `range`: P(|mean - expectation| > e) <= 2 exp(-2 n e^2 / range^2).
inline double hoeffding(double n, double range = 1) {
    return range * std::sqrt((std::log(2.0) - log_failure()) / (2 * n));
}

/// Relative entropy of coins of probabilities p and q.
inline double relative_entropy(double p, double q) {
    const auto term = [](double a, double b) {
        return a == 0 ? 0 : b == 0 ? HUGE_VAL : a * std::log(a / b);
    };
    return term(p, q) + term(1 - p, 1 - q);
}

/** Whether `ones` of n independent trials are plausible for a probability
 * between low and high, when up to `doubtful` of them may have been decided by
 * rounding.
 *
 * Hoeffding 1963, theorem 1: for e >= 0, P(mean >= p + e) <= exp(-n
 * relative_entropy(p + e, p)) and the same below. It implies exp(-2 n e^2) and
 * is far sharper near p = 0.
 */
inline bool plausible(
        double ones,
        double n,
        double low,
        double high,
        double doubtful = 0) {
    const double least = std::max(0.0, ones - doubtful) / n;
    const double most = std::min(n, ones + doubtful) / n;
    low = std::clamp(low, 0.0, 1.0);
    high = std::clamp(high, 0.0, 1.0);
    const double enough = std::log(2.0) - log_failure();
    return !(least > high && n * relative_entropy(least, high) > enough) &&
            !(most < low && n * relative_entropy(most, low) > enough);
}

/** Whether the empirical distribution is near a continuous one.
 *
 * Dvoretzky, Kiefer and Wolfowitz with Massart's constant: P(largest difference
 * > e) <= 2 exp(-2 n e^2), the same form as Hoeffding's bound. Samples rounded
 * to float once or twice move the distribution by less than 1e-6 where its
 * density f has |x| f(x) < 1; `more` is for what else moves it.
 */
inline ::testing::AssertionResult follows(
        std::vector<double> samples,
        const std::function<double(double)>& cdf,
        double more = 1e-6) {
    std::sort(samples.begin(), samples.end());
    const double n = double(samples.size()), limit = hoeffding(n) + more;
    double largest = 0;
    for (size_t i = 0; i < samples.size(); i++) {
        const double f = cdf(samples[i]);
        largest = std::max({largest, (i + 1) / n - f, f - i / n});
    }
    return ::testing::AssertionResult(largest < limit)
            << largest << " from it, above " << limit;
}

/// Means and moments of independent values.
struct Moments {
    double n = 0, mean = 0, variance = 0, fourth = 0; ///< central ones

    explicit Moments(const std::vector<double>& values)
            : n(double(values.size())) {
        for (double v : values) {
            mean += v / n;
        }
        for (double v : values) {
            const double square = (v - mean) * (v - mean);
            variance += square / (n - 1);
            fourth += square * square / n;
        }
    }

    /// A Gaussian number is beyond 7.4 of its standard deviations with the
    /// probability of a failure, 1e-13. The mean and the variance of many
    /// independent values with few extremes are nearly Gaussian, with the
    /// standard deviations that the values themselves tell.
    static constexpr double beyond = 7.4;

    double mean_error() const {
        return beyond * std::sqrt(variance / n);
    }
    double variance_error() const {
        return beyond * std::sqrt(fourth / n);
    }
};

inline double normal_cdf(double x) {
    return std::erfc(-x / std::sqrt(2.0)) / 2;
}

/// of the squared length of a Gaussian vector of an even number of dimensions
inline double chi_square_cdf(double x, int degrees) {
    double term = std::exp(-x / 2), sum = 0;
    for (int i = 0; i < degrees / 2; i++) {
        sum += term;
        term *= x / 2 / (i + 1);
    }
    return 1 - sum;
}

// Projections.

constexpr auto proj_dense = ProjectionChoice::Kind::dense;
constexpr auto proj_structured = ProjectionChoice::Kind::structured;

inline ProjectionChoice proj_of(bool structured) {
    return structured ? proj_structured : proj_dense;
}

inline bool is_structured(const ProjectionChoice& proj) {
    return proj.kind == proj_structured;
}

/// Sylvester's matrix times x
inline std::vector<double> hadamard_product(std::vector<double> x) {
    for (size_t h = 1; h < x.size(); h *= 2) {
        for (size_t i = 0; i < x.size(); i++) {
            if ((i & h) == 0) {
                const double a = x[i], b = x[i + h];
                x[i] = a + b;
                x[i + h] = a - b;
            }
        }
    }
    return x;
}

/// H S_3 H S_2 H S_1 x, in double
inline std::vector<double> hadamard_rounds(
        const float* signs,
        std::vector<double> x) {
    for (size_t round = 0; round < 3; round++) {
        for (double& v : x) {
            v *= *signs++;
        }
        x = hadamard_product(x);
    }
    return x;
}

/** How far an output of simd::hadamard_rounds, not scaled, may be from the true
 * one, over |x|.
 *
 * A level of butterflies errs by one unit of its results, and what follows is
 * orthogonal but for a factor, so that a level adds one unit of d^(3/2) |x|.
 * Where the d / d_last = c parts of the input of the last transform are added
 * up, the sum of i of them is at most sqrt(i) times as long as the input, and
 * the output moves by sum_{i = 2..c} sqrt(i / c) units of d^(3/2) |x|. The
 * factor 1.001 is for products of such terms.
 */
inline double rounds_error(size_t d, size_t d_y) {
    const size_t last = std::min(d, std::bit_ceil(std::max<size_t>(16, d_y)));
    const double d_last = double(last), c = double(d) / d_last;
    double units = 2 * std::log2(double(d)) + std::log2(d_last);
    for (double i = 2; i <= c; i++) {
        units += std::sqrt(i / c);
    }
    return 1.001 * float_unit * units * std::pow(double(d), 1.5);
}

/// How far output j may be from the product of row j of matrix() with x, over
/// |x|: that of the rounds, and a unit each for the product with the norm and
/// for that of matrix(), whose rounds are whole numbers below 2^24.
inline double structured_error(const StructuredProjection& p, size_t j) {
    const size_t D = p.order(p.d_in), begin = j / D * D;
    const double rounds = rounds_error(D, std::min(D, size_t(p.d_out) - begin));
    return p.norms[j] * (rounds + 2.001 * float_unit * std::pow(D, 1.5));
}

/// |w_j|
inline double row_length(const StructuredProjection& p, size_t j) {
    return p.norms[j] * std::pow(double(p.order(p.d_in)), 1.5);
}

/** How far the products of a projection may be from the sum of the terms
 * A_jk x_k, in double.
 *
 * @param absolute  sum |A_jk x_k|
 * @param length    |x|
 */
inline double product_error(
        const Projection& p,
        size_t j,
        double absolute,
        double length) {
    const auto* structured = dynamic_cast<const StructuredProjection*>(&p);
    return structured ? structured_error(*structured, j) * length
                      : 2e-5 * absolute; // DenseProjection.h
}

// Codes.

inline bool bit(const Bytes& codes, size_t size, size_t i, int j) {
    return codes[i * size + j / 8] >> (j % 8) & 1;
}

/// between codes i and j, of `size` bytes
inline size_t hamming(const Bytes& codes, size_t size, size_t i, size_t j) {
    return hamming(&codes[i * size], &codes[j * size], size);
}

/// for every bit, whether it differs in the codes of x and y
inline std::vector<bool> differing_bits(
        const KernelHash& hash,
        const Floats& x,
        const Floats& y) {
    const Bytes codes = codes_of(hash, joined(x, y));
    std::vector<bool> differ(hash.nbits);
    for (int j = 0; j < hash.nbits; j++) {
        differ[j] = bit(codes, hash.code_size(), 0, j) !=
                bit(codes, hash.code_size(), 1, j);
    }
    return differ;
}

inline double differing_share(
        const KernelHash& hash,
        const Floats& x,
        const Floats& y) {
    const std::vector<bool> differ = differing_bits(hash, x, y);
    return double(std::count(differ.begin(), differ.end(), true)) / hash.nbits;
}

/// the angle of a cosine, 1 for opposite vectors
inline double normalized_angle(double cosine) {
    return std::acos(std::clamp(cosine, -1.0, 1.0)) / pi;
}

/// The margins of one vector in double, and how far the library's may be from
/// them.
struct ExactValues {
    std::vector<double> value, bound;

    /// number of bits that rounding may decide
    size_t doubtful() const {
        size_t count = 0;
        for (size_t i = 0; i < value.size(); i++) {
            count += std::abs(value[i]) <= bound[i];
        }
        return count;
    }
};

/// By its features, the matrix of the projection and the thresholds.
struct ExactMargins : ExactValues {
    ExactMargins(
            const ProjectionHash& hash,
            const Floats& matrix,
            const float* features) {
        const size_t d = hash.projection->d_in;
        for (int j = 0; j < hash.nbits; j++) {
            double sum = 0, absolute = 0;
            for (size_t k = 0; k < d; k++) {
                const double term = double(matrix[j * d + k]) * features[k];
                sum += term;
                absolute += std::abs(term);
            }
            double error = product_error(
                    *hash.projection, j, absolute, length(features, d));
            if (!hash.threshold.empty()) {
                sum -= hash.threshold[j];
                error += float_unit * (absolute + std::abs(hash.threshold[j]));
            }
            value.push_back(sum);
            bound.push_back(error);
        }
    }
};

} // namespace faiss_ext_test
