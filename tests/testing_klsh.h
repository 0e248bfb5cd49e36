// What the tests of kernelised hashing share: data, errors, bounds.

#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <omp.h>
#include <unistd.h>

#include <faiss/impl/FaissException.h>

#include <faiss_ext/core/compat.h>

namespace testing_klsh {

using faiss_ext::idx_t;

// Data.

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

inline std::vector<float> normal_vectors(
        size_t n,
        size_t d,
        uint64_t seed,
        double sigma = 1) {
    std::mt19937_64 rng(seed);
    std::normal_distribution<double> normal(0, sigma);
    std::vector<float> x(n * d);
    for (float& v : x) {
        v = float(normal(rng));
    }
    return x;
}

/// n histograms that sum to 1, from a Dirichlet distribution around one of
/// `ncenters` such histograms (concentration `focus`); many components are
/// small
inline std::vector<float> clustered_histograms(
        size_t n,
        size_t d,
        int ncenters,
        double focus,
        uint64_t seed) {
    std::mt19937_64 rng(seed);
    const auto dirichlet = [&](const std::vector<double>& alpha) {
        std::vector<double> h(alpha.size());
        double sum = 0;
        for (size_t k = 0; k < h.size(); k++) {
            h[k] = std::gamma_distribution<double>(alpha[k])(rng);
            sum += h[k];
        }
        for (double& v : h) {
            v /= sum;
        }
        return h;
    };
    std::vector<std::vector<double>> centers;
    for (int c = 0; c < ncenters; c++) {
        centers.push_back(dirichlet(std::vector<double>(d, 0.3)));
        for (double& v : centers.back()) {
            v = focus * (v + 0.01 / double(d));
        }
    }
    std::vector<float> x;
    for (size_t i = 0; i < n; i++) {
        for (double v : dirichlet(centers[rng() % centers.size()])) {
            x.push_back(float(v));
        }
    }
    return x;
}

inline std::vector<uint8_t> random_bytes(size_t n, uint64_t seed) {
    std::mt19937_64 rng(seed);
    std::vector<uint8_t> bytes(n);
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
        size_t begin,
        size_t end) {
    return std::vector<T>(
            x.begin() + begin * row_size, x.begin() + end * row_size);
}

/// Whether two arrays hold the same bits, NaN and the sign of 0 included.
template <class Vector>
bool same_bits(const Vector& a, const Vector& b) {
    return a.size() == b.size() &&
            (a.empty() ||
             std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0);
}

// Errors.

/// Whether f throws a faiss::FaissException that says all the texts.
template <class F>
::testing::AssertionResult throws(
        F&& f,
        const std::vector<std::string>& texts = {}) {
    try {
        f();
    } catch (const faiss::FaissException& e) {
        const std::string what = e.what();
        for (const std::string& text : texts) {
            if (what.find(text) == std::string::npos) {
                return ::testing::AssertionFailure()
                        << "the message lacks '" << text << "': " << what;
            }
        }
        return ::testing::AssertionSuccess();
    } catch (const std::exception& e) {
        return ::testing::AssertionFailure()
                << "not a FaissException: " << e.what();
    }
    return ::testing::AssertionFailure() << "no exception";
}

// Bounds. Each executable asserts at most 10,000 random statements, all of
// which hold for a correct library but for a probability of 1e-9.

inline double log_failure() {
    return std::log(1e-9 / 10000);
}

/// Hoeffding: P(|mean - expectation| > e) <= 2 exp(-2 n e^2) for n independent
/// values in [0, 1]
inline double hoeffding(double n) {
    return std::sqrt((std::log(2.0) - log_failure()) / (2 * n));
}

/// Whether `ones` of n independent trials are plausible for a probability of at
/// most p: P(mean >= q) <= exp(-n KL(q, p)) (Hoeffding 1963, theorem 1).
inline bool plausibly_at_most(double ones, double n, double p) {
    const double q = ones / n;
    const auto term = [](double a, double b) {
        return a == 0 ? 0 : b == 0 ? HUGE_VAL : a * std::log(a / b);
    };
    return q <= p || n * (term(q, p) + term(1 - q, 1 - p)) <= -log_failure();
}

/// Largest difference between the empirical distribution and a continuous one.
/// Dvoretzky, Kiefer, Wolfowitz and Massart: above e with probability of at
/// most 2 exp(-2 n e^2), so that hoeffding(n) is its limit too.
inline double kolmogorov_smirnov(
        std::vector<double> samples,
        const std::function<double(double)>& cdf) {
    std::sort(samples.begin(), samples.end());
    const double n = double(samples.size());
    double largest = 0;
    for (size_t i = 0; i < samples.size(); i++) {
        const double f = cdf(samples[i]);
        largest = std::max({largest, (i + 1) / n - f, f - i / n});
    }
    return largest;
}

inline double normal_cdf(double x) {
    return std::erfc(-x / std::sqrt(2.0)) / 2;
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

/// A file name that is free, and removed in the end.
struct TemporaryFile {
    std::string name;

    TemporaryFile() {
        static std::atomic<int> counter{0};
        name = ::testing::TempDir() + "faiss_ext_klsh_" +
                std::to_string(getpid()) + "_" + std::to_string(counter++);
    }
    ~TemporaryFile() {
        std::error_code error;
        std::filesystem::remove(name, error);
    }
};

} // namespace testing_klsh
