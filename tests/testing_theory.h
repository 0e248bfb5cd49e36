// What the tests compare the library with: kernels and expected Hamming
// distances computed in another way, and bounds on the deviation of random
// quantities.

#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numbers>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/LaplacianKernel.h>
#include <faiss_ext/kernels/MaternKernel.h>

namespace testing_theory {

using std::numbers::pi;

/// unit roundoff of float
constexpr double float_unit = 0x1p-24;

/// z^p K_nu(z), K_nu(z) = int_0^inf exp(-z cosh t) cosh(nu t) dt by the
/// trapezoidal rule. The integrand is analytic for |Im t| < pi / 2, so that the
/// rule errs by the order of exp(-pi^2 / step); where z is large it is a bell
/// of width z^(-1/2), and the rule errs by exp(-2 pi^2 / (step^2 z)). Both are
/// below 1e-34.
inline double power_bessel_k(double p, double nu, double z) {
    const double step = std::min(1.0 / 8, 0.5 / std::sqrt(z));
    const double power = p * std::log(z);
    double sum = 0.5 * std::exp(power - z);
    for (double t = step;; t += step) {
        const double grow = power + nu * t, fall = z * std::cosh(t);
        if (fall > std::abs(grow) + 750) {
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

    std::unique_ptr<faiss_ext::ShiftInvariantKernel> make(double gamma) const {
        if (name == "gaussian") {
            return std::make_unique<faiss_ext::GaussianKernel>(gamma);
        }
        if (name == "laplacian") {
            return std::make_unique<faiss_ext::LaplacianKernel>(gamma);
        }
        return std::make_unique<faiss_ext::MaternKernel>(nu, gamma);
    }

    /// r / |x - y|
    double scale(double gamma) const {
        return l1() ? gamma : std::sqrt(gamma);
    }

    bool closed_form() const {
        return name != "matern" || nu == 0.5 || nu == 1.5 || nu == 2.5;
    }

    /// K
    double profile(double r) const {
        if (name == "gaussian") {
            return std::exp(-r * r / 2);
        }
        if (name == "laplacian") {
            return std::exp(-r);
        }
        return matern(nu, std::sqrt(2 * nu) * r);
    }

    /// 1 - K, accurate to 1e-9 relative
    double one_minus_profile(double r) const {
        if (name == "gaussian") {
            return -std::expm1(-r * r / 2);
        }
        if (name == "laplacian") {
            return -std::expm1(-r);
        }
        const double z = std::sqrt(2 * nu) * r;
        if (nu == 0.5) {
            return -std::expm1(-z);
        }
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
        if (z == 0) {
            return 1;
        }
        return std::exp2(1 - nu) / std::tgamma(nu) * power_bessel_k(nu, nu, z);
    }

    /// d/dt (t^nu K_nu(t)) = -t^nu K_{nu-1}(t), so 1 - K is proportional to the
    /// integral of t^nu K_{|nu-1|}(t) from 0 to z, whose terms are positive.
    /// With t = z exp(-v) the integrand is smooth and falls as exp(-2 min(nu,
    /// 1) v): Gauss's rule of 5 points on pieces of length 1/2, cut at
    /// exp(-36).
    double one_minus_matern(double z) const {
        constexpr double node[] = {
                0,
                0.5384693101056831,
                -0.5384693101056831,
                0.9061798459386640,
                -0.9061798459386640};
        constexpr double weight[] = {
                0.5688888888888889,
                0.4786286704993665,
                0.4786286704993665,
                0.2369268850561891,
                0.2369268850561891};
        const double end = 18 / std::min(nu, 1.0), half = 1.0 / 4;
        double sum = 0;
        for (double v = half; v < end; v += 2 * half) {
            for (int i = 0; i < 5; i++) {
                const double t = z * std::exp(-(v + half * node[i]));
                sum += half * weight[i] *
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
    return {{"gaussian"},
            {"laplacian"},
            {"matern", 0.5},
            {"matern", 0.8},
            {"matern", 1.5},
            {"matern", 2.5},
            {"matern", 4}};
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

/// Largest difference between the empirical distribution and a continuous one.
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

/// Dvoretzky, Kiefer and Wolfowitz with Massart's constant: P(KS > e) <= 2
/// exp(-2 n e^2), the same form as Hoeffding's bound. Samples rounded to float
/// once or twice move the distribution by less than 1e-6 where its density f
/// has |x| f(x) < 1.
inline double kolmogorov_smirnov_limit(size_t n) {
    return hoeffding(double(n)) + 1e-6;
}

} // namespace testing_theory
