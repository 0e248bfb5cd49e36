// What the tests of indexes, factories and files share.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <omp.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissException.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>

namespace faiss_ext_test {

using faiss_ext::idx_t;

/// The FAISS that the tests are compiled with, 1007003 for 1.7.3.
constexpr int faiss_version = FAISS_VERSION_MAJOR * 1000000 +
        FAISS_VERSION_MINOR * 1000 + FAISS_VERSION_PATCH;
constexpr bool is_faiss_1_7 = faiss_version < 1008000;

// Data.

/// n vectors, uniform in [0, 1)^d
inline std::vector<float> random_vectors(idx_t n, int d, uint32_t seed) {
    std::mt19937 rng(seed);
    std::uniform_real_distribution<float> uniform;
    std::vector<float> x(n * d);
    for (float& v : x) {
        v = uniform(rng);
    }
    return x;
}

/// n vectors, normal around one of the centers drawn by `center_seed`
inline std::vector<float> clustered_vectors(
        idx_t n,
        int d,
        int ncenters,
        float spread,
        uint32_t seed,
        uint32_t center_seed = 99) {
    const std::vector<float> centers = random_vectors(ncenters, d, center_seed);
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal(0, spread);
    std::vector<float> x(n * d);
    for (idx_t i = 0; i < n; i++) {
        const float* center = &centers[rng() % ncenters * d];
        for (int k = 0; k < d; k++) {
            x[i * d + k] = center[k] + normal(rng);
        }
    }
    return x;
}

/// n rows of x with a little noise
inline std::vector<float> near_vectors(
        const std::vector<float>& x,
        idx_t n,
        int d,
        float noise,
        uint32_t seed) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal(0, noise);
    std::vector<float> q(n * d);
    const idx_t nx = x.size() / d;
    for (idx_t i = 0; i < n; i++) {
        const float* row = &x[rng() % nx * d];
        for (int k = 0; k < d; k++) {
            q[i * d + k] = row[k] + normal(rng);
        }
    }
    return q;
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

inline std::vector<uint8_t> codes_of(
        const faiss_ext::KernelHash& hash,
        const std::vector<float>& x) {
    const idx_t n = x.size() / hash.d_in;
    std::vector<uint8_t> codes(n * hash.code_size());
    hash.encode(n, x.data(), codes.data());
    return codes;
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

inline Found<float> search(
        const faiss::Index& index,
        const std::vector<float>& x,
        idx_t k,
        const faiss::SearchParameters* params = nullptr) {
    const idx_t n = x.size() / index.d;
    Found<float> found{
            std::vector<float>(n * k, -12345),
            std::vector<idx_t>(n * k, -12345)};
    index.search(
            n,
            x.data(),
            k,
            found.distances.data(),
            found.labels.data(),
            params);
    return found;
}

inline Found<int32_t> search(
        const faiss::IndexBinary& index,
        const std::vector<uint8_t>& codes,
        idx_t k,
        const faiss::SearchParameters* params = nullptr) {
    const idx_t n = codes.size() / (index.d / 8);
    Found<int32_t> found{
            std::vector<int32_t>(n * k, -12345),
            std::vector<idx_t>(n * k, -12345)};
    index.search(
            n,
            codes.data(),
            k,
            found.distances.data(),
            found.labels.data(),
            params);
    return found;
}

inline Found<int32_t> search(
        const faiss_ext::IndexBinaryKernelHash& index,
        const std::vector<float>& x,
        idx_t k,
        const faiss::SearchParameters* params = nullptr) {
    const idx_t n = x.size() / index.hash->d_in;
    Found<int32_t> found{
            std::vector<int32_t>(n * k, -12345),
            std::vector<idx_t>(n * k, -12345)};
    index.search(
            n,
            x.data(),
            k,
            found.distances.data(),
            found.labels.data(),
            params);
    return found;
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
        const std::vector<float>& x,
        float radius,
        const faiss::SearchParameters* params = nullptr) {
    const idx_t n = x.size() / index.d;
    faiss::RangeSearchResult result(n);
    index.range_search(n, x.data(), radius, &result, params);
    return to_ranges(result);
}

inline Ranges range_search(
        const faiss::IndexBinary& index,
        const std::vector<uint8_t>& codes,
        int radius) {
    const idx_t n = codes.size() / (index.d / 8);
    faiss::RangeSearchResult result(n);
    index.range_search(n, codes.data(), radius, &result);
    return to_ranges(result);
}

inline Ranges range_search(
        const faiss_ext::IndexBinaryKernelHash& index,
        const std::vector<float>& x,
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

/// Whether f throws a faiss::FaissException that says `text`.
template <class F>
::testing::AssertionResult throws(F&& f, const std::string& text = "") {
    const std::string error = error_of(f);
    if (error.empty()) {
        return ::testing::AssertionFailure() << "no exception";
    }
    if (error.find(text) == std::string::npos) {
        return ::testing::AssertionFailure()
                << "the message lacks '" << text << "': " << error;
    }
    return ::testing::AssertionSuccess();
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

inline std::vector<uint8_t> file_bytes(const std::string& name) {
    std::ifstream file(name, std::ios::binary);
    EXPECT_TRUE(file.good()) << name;
    return std::vector<uint8_t>(
            std::istreambuf_iterator<char>(file),
            std::istreambuf_iterator<char>());
}

inline void write_file(
        const std::string& name,
        const std::vector<uint8_t>& bytes) {
    std::ofstream file(name, std::ios::binary);
    file.write(
            reinterpret_cast<const char*>(bytes.data()),
            std::streamsize(bytes.size()));
    EXPECT_TRUE(file.good()) << name;
}

} // namespace faiss_ext_test
