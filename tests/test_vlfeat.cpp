// HomogeneousKernelMap against VLFeat, the implementation by the authors of the
// paper, where it is installed.

#ifdef FAISS_EXT_HAVE_VLFEAT

#include <cmath>
#include <memory>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include <vl/homkermap.h>
}

#include <faiss_ext/maps/HomogeneousKernelMap.h>

using namespace faiss_ext;
using std::numbers::pi;
using Window = AdditiveKernel::Window;

namespace {

struct Case {
    std::string name;
    VlHomogeneousKernelType type;
    std::unique_ptr<AdditiveKernel> kernel;
};

std::vector<Case> cases() {
    std::vector<Case> all;
    all.push_back(
            {"chi2", VlHomogeneousKernelChi2, std::make_unique<Chi2Kernel>()});
    all.push_back(
            {"intersection",
             VlHomogeneousKernelIntersection,
             std::make_unique<IntersectionKernel>()});
    all.push_back(
            {"js",
             VlHomogeneousKernelJS,
             std::make_unique<JensenShannonKernel>()});
    return all;
}

using VlMap = std::
        unique_ptr<VlHomogeneousKernelMap, void (*)(VlHomogeneousKernelMap*)>;

VlMap vl_map(const Case& c, double gamma, int m, double period, Window window) {
    return VlMap(
            vl_homogeneouskernelmap_new(
                    c.type,
                    gamma,
                    m,
                    period,
                    window == Window::uniform
                            ? VlHomogeneousKernelMapWindowUniform
                            : VlHomogeneousKernelMapWindowRectangular),
            vl_homogeneouskernelmap_delete);
}

/** VLFeat keeps a table at x = 2^e (1 + i / (8 + 8 m)), e from -19 to 7, in
 * double, and interpolates it linearly: an error of at most h^2 / 8 max |f''|.
 * A component is a Re x^s, s = g / 2 + i j L, |f''| <= a |s| |s - 1| x^(g / 2 -
 * 2), and h is at most x / (8 + 8 m) at the lower end of a piece.
 */
double interpolation(int m, double degree, double frequency) {
    const double s = std::hypot(degree / 2, frequency);
    const double t = std::hypot(degree / 2 - 1, frequency);
    const double h = 1.0 / (8 + 8 * m);
    return h * h / 8 * s * t;
}

/** How far VLFeat's sample of the windowed spectrum may be from the integral.
 * It convolves the spectrum with sin(Lambda w / 2) / (pi w), cut off at |w| = W
 * = 200 / Lambda, by a sum of 2049 steps. Without the cut the sum would be
 * exact: the product's transform ends at Lambda / 2, far below half of 2 pi /
 * step = 32 Lambda. What is cut is at most 1 / (pi W) times the integral of the
 * spectrum outside of +-(W - omega), and one step at each end.
 */
double cut(const std::string& kernel, double period, double omega) {
    const double W = 200 / period, step = 2 * W / 2049;
    const double from = W - omega - step;
    // integrals and largest values of 2 / pi / (1 + 4 w^2) and of 2 / log 2
    // exp(-pi w), which is above both of the other spectra
    const double outside = kernel == "intersection"
            ? 1 / (pi * from) + step / (pi * from * from)
            : 6 * std::exp(-pi * from) * (1 + step);
    return outside / (pi * (W - step));
}

} // namespace

TEST(VLFeat, GivesTheSameMaps) {
    std::mt19937_64 rng(1);
    std::uniform_real_distribution<double> exponent(-18.9, 6.9);
    int compared = 0, all = 0;
    for (const Case& c : cases()) {
        for (Window window : {Window::uniform, Window::rectangular}) {
            for (double degree : {0.5, 1.0}) {
                for (int m : {1, 2, 3, 5}) {
                    for (double given : {0.0, 8.0}) {
                        HomogeneousKernelMap map(
                                1, *c.kernel, m, window, given, degree);
                        map.negative = HomogeneousKernelMap::Negative::sign;
                        const double L = 2 * pi / map.period;
                        const VlMap vl =
                                vl_map(c, degree, m, map.period, window);
                        // what the spectra may differ by, in units of kappa
                        std::vector<double> doubt(m + 1, 0);
                        bool skips = false;
                        for (int j = 0; j <= m; j++) {
                            if (window == Window::rectangular) {
                                // and ours, by Simpson's rule
                                doubt[j] = cut(c.name, map.period, j * L) +
                                        1e-6 * map.period / 2 / pi;
                            }
                            const double a = map.amplitudes[j];
                            // VLFeat leaves out frequencies of no weight
                            skips = skips || a * a <= 2 * L * doubt[j];
                        }
                        all++;
                        if (skips) {
                            EXPECT_EQ(int(window), int(Window::rectangular));
                            continue;
                        }
                        compared++;
                        for (int i = 0; i < 200; i++) {
                            double x = std::exp2(exponent(rng));
                            const bool at_node = i % 2;
                            if (at_node) { // of the table
                                const int e = int(std::floor(std::log2(x)));
                                x = std::ldexp(
                                        1 +
                                                double(i % (8 + 8 * m)) /
                                                        (8 + 8 * m),
                                        e);
                            }
                            // a float between nodes is at one almost
                            const float value = float(i % 3 ? x : -x);
                            std::vector<double> wide(2 * m + 1);
                            std::vector<float> narrow(2 * m + 1),
                                    ours(2 * m + 1);
                            vl_homogeneouskernelmap_evaluate_d(
                                    vl.get(), wide.data(), 1, value);
                            vl_homogeneouskernelmap_evaluate_f(
                                    vl.get(), narrow.data(), 1, value);
                            map.apply_noalloc(1, &value, ours.data());
                            const double v = std::abs(value);
                            const double root = std::pow(v, degree / 2);
                            for (int k = 0; k <= 2 * m; k++) {
                                const int j = (k + 1) / 2;
                                const double a = map.amplitudes[j];
                                // nodes rounded to float are off by 6e-8: with
                                // the slope |s|, 1e-6 covers both
                                double bound = 1e-6 *
                                        (2 + j + j * L * std::abs(std::log(v)));
                                if (!at_node) {
                                    bound += interpolation(m, degree, j * L);
                                }
                                // sqrt(kappa + e) - sqrt(kappa) <= e / 2 sqrt(
                                // kappa - e)
                                const double factor = (j ? 2 : 1) * L;
                                const double e = factor * doubt[j];
                                const double spectral =
                                        e / 2 / std::sqrt(a * a - e);
                                bound = root * (a * bound + spectral);
                                const std::string what = c.name +
                                        ", m = " + std::to_string(m) +
                                        ", component " + std::to_string(k) +
                                        " of " + std::to_string(value);
                                ASSERT_NEAR(ours[k], wide[k], bound) << what;
                                ASSERT_NEAR(
                                        ours[k],
                                        narrow[k],
                                        bound + 1e-7 * std::abs(wide[k]))
                                        << what;
                            }
                        }
                    }
                }
            }
        }
    }
    EXPECT_GT(compared, all * 3 / 4) << all;
}

// The default periods are the same: VLFeat takes its own for a period below 0.
TEST(VLFeat, HasTheSameDefaultPeriods) {
    for (const Case& c : cases()) {
        for (Window window : {Window::uniform, Window::rectangular}) {
            for (int m : {1, 2, 3, 5, 8}) {
                const double period = c.kernel->default_period(m, window);
                const VlMap by_default = vl_map(c, 1, m, -1, window);
                const VlMap given = vl_map(c, 1, m, period, window);
                for (double x : {0.001, 0.3, 1.0, 20.0}) {
                    std::vector<double> p(2 * m + 1), q(2 * m + 1);
                    vl_homogeneouskernelmap_evaluate_d(
                            by_default.get(), p.data(), 1, x);
                    vl_homogeneouskernelmap_evaluate_d(
                            given.get(), q.data(), 1, x);
                    for (int k = 0; k <= 2 * m; k++) {
                        // rounding only, in double
                        EXPECT_NEAR(p[k], q[k], 1e-12) << c.name << ", " << m;
                    }
                }
            }
        }
    }
}

#endif // FAISS_EXT_HAVE_VLFEAT
