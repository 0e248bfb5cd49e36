// HomogeneousKernelMap against VLFeat, the implementation by the authors of the
// paper, where it is installed.

#ifdef FAISS_EXT_HAVE_VLFEAT

#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

extern "C" {
#include <vl/homkermap.h>
}

#include <faiss_ext/kernels/kernel_registry.h>
#include <faiss_ext/maps/HomogeneousKernelMap.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;
using Window = AdditiveKernel::Window;

namespace {

struct Case {
    std::string kernel;
    VlHomogeneousKernelType type;
    Window window;

    std::unique_ptr<AdditiveKernel> make() const {
        return std::unique_ptr<AdditiveKernel>(dynamic_cast<AdditiveKernel*>(
                kernel_factory(kernel).release()));
    }

    /// the components of x
    std::vector<double> by_vlfeat(
            double gamma,
            int m,
            double period,
            const std::vector<float>& x) const {
        const std::unique_ptr<
                VlHomogeneousKernelMap,
                void (*)(VlHomogeneousKernelMap*)>
                vl(vl_homogeneouskernelmap_new(
                           type,
                           gamma,
                           m,
                           period,
                           window == Window::uniform
                                   ? VlHomogeneousKernelMapWindowUniform
                                   : VlHomogeneousKernelMapWindowRectangular),
                   vl_homogeneouskernelmap_delete);
        std::vector<double> xt(x.size() * (2 * m + 1));
        for (size_t i = 0; i < x.size(); i++) {
            vl_homogeneouskernelmap_evaluate_d(
                    vl.get(), &xt[i * (2 * m + 1)], 1, x[i]);
        }
        return xt;
    }
};

std::vector<Case> cases() {
    std::vector<Case> all;
    for (Window window : {Window::uniform, Window::rectangular}) {
        all.push_back({"chi2", VlHomogeneousKernelChi2, window});
        all.push_back(
                {"intersection", VlHomogeneousKernelIntersection, window});
        all.push_back({"js", VlHomogeneousKernelJS, window});
    }
    return all;
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

/// Numbers of both signs in the range of VLFeat's table, every other one of
/// them at a node of it (but for rounding to float).
std::vector<float> numbers(int m) {
    std::vector<float> x;
    for (float exponent : uniform_vectors(60, 1, m, -18.9, 6.9)) {
        const int i = int(x.size()), nodes = 8 + 8 * m;
        const double node =
                std::ldexp(1 + i % nodes / double(nodes), int(exponent));
        const double v = i % 2 ? node : std::exp2(double(exponent));
        x.push_back(float(i % 3 ? v : -v));
    }
    return x;
}

} // namespace

// (Of the rectangular window VLFeat's spectrum is that of a sum cut off.)
TEST(VLFeat, GivesTheSameMaps) {
    for (const Case& c : cases()) {
        if (c.window == Window::rectangular) {
            continue;
        }
        for (auto [m, degree, period] :
             {std::tuple<int, double, double>{1, 1, 0},
              {2, 0.5, 0},
              {3, 1, 8},
              {5, 1, 0},
              {5, 0.5, 8}}) {
            HomogeneousKernelMap map(1, *c.make(), m, c.window, period, degree);
            map.negative = HomogeneousKernelMap::Negative::sign;
            const double L = 2 * pi / map.period;
            const std::vector<float> x = numbers(m), xt = applied(map, x);
            const std::vector<double> expected =
                    c.by_vlfeat(degree, m, map.period, x);
            for (size_t i = 0; i < xt.size(); i++) {
                const size_t row = i / (2 * m + 1);
                const int j = int(i % (2 * m + 1) + 1) / 2;
                const double v = std::abs(x[row]);
                // nodes rounded to float are off by 6e-8: with the slope |s|,
                // 1e-6 covers both
                double bound = 1e-6 * (2 + j + j * L * std::abs(std::log(v)));
                if (row % 2 == 0) { // not at a node
                    bound += interpolation(m, degree, j * L);
                }
                bound *= std::pow(v, degree / 2) * map.amplitudes[j];
                ASSERT_NEAR(xt[i], expected[i], bound)
                        << map.description() << ", order " << j << " of " << v;
            }
        }
    }
}

// VLFeat takes its default for a period below 0.
TEST(VLFeat, HasTheSameDefaultPeriods) {
    const std::vector<float> x = {0.001f, 0.3f, 1, 20};
    for (const Case& c : cases()) {
        for (int m : {1, 2, 3, 8}) {
            const double period = c.make()->default_period(m, c.window);
            const auto p = c.by_vlfeat(1, m, -1, x);
            const auto q = c.by_vlfeat(1, m, period, x);
            for (size_t i = 0; i < p.size(); i++) {
                EXPECT_NEAR(p[i], q[i], 1e-12) << c.kernel << ", " << m;
            }
        }
    }
}

#endif // FAISS_EXT_HAVE_VLFEAT
