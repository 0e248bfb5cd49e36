// SPDX-License-Identifier: MIT
// HomogeneousKernelMap against VLFeat, the implementation by the authors of the
// paper, if it is installed.

#ifdef FAISS_EXT_HAVE_VLFEAT

#include <tuple>

extern "C" {
#include <vl/homkermap.h>
}

#include <faiss_ext/kernels/kernel_registry.h>
#include <faiss_ext/maps/HomogeneousKernelMap.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

struct Case {
    std::string kernel;
    VlHomogeneousKernelType type;
    std::unique_ptr<Kernel> ours = kernel_factory(kernel);
    const AdditiveKernel& additive = dynamic_cast<AdditiveKernel&>(*ours);

    /// Computes the components of x.
    std::vector<double> by_vlfeat(
            double gamma,
            int m,
            double period,
            const std::vector<float>& x) const {
        auto* vl = vl_homogeneouskernelmap_new(
                type, gamma, m, period, VlHomogeneousKernelMapWindowUniform);
        const int size = 2 * m + 1;
        std::vector<double> xt(x.size() * size);
        for (size_t i = 0; i < x.size(); i++) {
            vl_homogeneouskernelmap_evaluate_d(vl, &xt[i * size], 1, x[i]);
        }
        vl_homogeneouskernelmap_delete(vl);
        return xt;
    }
};

const Case cases[] = {
        {"chi2", VlHomogeneousKernelChi2},
        {"intersection", VlHomogeneousKernelIntersection},
        {"js", VlHomogeneousKernelJS}};

/** Bounds the interpolation error of VLFeat.
 *
 * VLFeat keeps a table at x = 2^e (1 + i / (8 + 8 m)), e from -19 to 7, in
 * double, and interpolates it linearly; the error is at most h^2 / 8 max |f''|.
 * A component is a Re x^s with s = g / 2 + i j L, |f''| <= a |s| |s - 1| x^(g /
 * 2 - 2), and h is at most x / (8 + 8 m) at the lower end of a piece.
 */
double interpolation(int m, double degree, double frequency) {
    const double s = std::hypot(degree / 2, frequency);
    const double t = std::hypot(degree / 2 - 1, frequency);
    const double h = 1.0 / (8 + 8 * m);
    return h * h / 8 * s * t;
}

/// Returns numbers of both signs in the range of VLFeat's table. Every second
/// number is at one of its nodes, up to rounding to float.
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

// For the rectangular window VLFeat computes the spectrum of a truncated sum.
TEST(VLFeat, GivesTheSameMaps) {
    for (const Case& c : cases) {
        for (auto [m, degree, period] :
             {std::tuple<int, double, double>{1, 1, 0},
              {2, 0.5, 0},
              {3, 1, 8},
              {5, 1, 0},
              {5, 0.5, 8}}) {
            HomogeneousKernelMap map(
                    1,
                    c.additive,
                    m,
                    AdditiveKernel::Window::uniform,
                    period,
                    degree);
            map.negative = HomogeneousKernelMap::Negative::sign;
            const double L = 2 * pi / map.period;
            const std::vector<float> x = numbers(m), xt = applied(map, x);
            // a period below 0 selects its default
            const std::vector<double> expected =
                    c.by_vlfeat(degree, m, period > 0 ? period : -1, x);
            for (size_t i = 0; i < xt.size(); i++) {
                const size_t row = i / (2 * m + 1);
                const int j = int(i % (2 * m + 1) + 1) / 2;
                const double v = std::abs(x[row]);
                // nodes rounded to float have errors of 6e-8; with the slope
                // |s|, 1e-6 covers both
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

#endif // FAISS_EXT_HAVE_VLFEAT
