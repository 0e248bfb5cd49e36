// Data and small helpers that the tests share.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <omp.h>

#include <faiss/impl/FaissException.h>

namespace testing_data {

/// n * d independent normal numbers of standard deviation sigma
inline std::vector<float> normal_vectors(
        size_t n,
        size_t d,
        uint64_t seed,
        double sigma = 1) {
    std::mt19937_64 rng(seed);
    std::normal_distribution<double> normal;
    std::vector<float> x(n * d);
    for (float& v : x) {
        v = float(sigma * normal(rng));
    }
    return x;
}

/// n * d independent numbers, uniform on [low, high]
inline std::vector<float> uniform_vectors(
        size_t n,
        size_t d,
        uint64_t seed,
        double low = 0,
        double high = 1) {
    std::mt19937_64 rng(seed);
    std::uniform_real_distribution<double> uniform(low, high);
    std::vector<float> x(n * d);
    for (float& v : x) {
        v = float(uniform(rng));
    }
    return x;
}

/// The message of the faiss::FaissException that fn throws; a test failure, and
/// an empty string, if it throws none.
template <class F>
std::string message_of(F&& fn) {
    try {
        fn();
    } catch (const faiss::FaissException& e) {
        return e.what();
    } catch (const std::exception& e) {
        ADD_FAILURE() << "not a FaissException: " << e.what();
        return "";
    }
    ADD_FAILURE() << "no exception";
    return "";
}

inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// Whether two arrays hold the same bits, NaN and the sign of 0 included.
template <class Vector>
bool same_bits(const Vector& a, const Vector& b) {
    return a.size() == b.size() &&
            (a.empty() ||
             std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0);
}

/// Sets the number of OpenMP threads until the end of the scope.
struct ThreadCount {
    int before = omp_get_max_threads();
    explicit ThreadCount(int n) {
        omp_set_num_threads(n);
    }
    ~ThreadCount() {
        omp_set_num_threads(before);
    }
    ThreadCount(const ThreadCount&) = delete;
    ThreadCount& operator=(const ThreadCount&) = delete;
};

} // namespace testing_data
