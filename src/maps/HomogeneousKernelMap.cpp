#include <faiss_ext/maps/HomogeneousKernelMap.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <numbers>

#include <faiss/impl/io.h>

#include <faiss_ext/kernels/kernel_registry.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/io_fields.h"
#include "core/parallel.h"
#include "kernels/kernel_io.h"
#include "simd/homogeneous_map.h"

namespace faiss_ext {

namespace {

using std::numbers::pi;

constexpr int max_order = 100;
constexpr double min_period = 1e-3, max_period = 1e4;

std::unique_ptr<AdditiveKernel> as_additive(std::unique_ptr<Kernel> kernel) {
    auto* cast = dynamic_cast<AdditiveKernel*>(kernel.get());
    FAISS_EXT_THROW_IF_NOT_FMT(
            cast, "%s is no additive kernel", kernel->description().c_str());
    kernel.release();
    return std::unique_ptr<AdditiveKernel>(cast);
}

std::unique_ptr<AdditiveKernel> kernel_of_spec(Spec& spec) {
    const std::vector<std::string> names = {
            "chi2", "hellinger", "intersection", "js"};
    Spec item = spec.get_item(0, names);
    auto kernel = make_kernel(item, names);
    if (!dynamic_cast<AdditiveKernel*>(kernel.get())) {
        item.fail(item.begin, item.name + " is no additive kernel", names);
    }
    return as_additive(std::move(kernel));
}

/// 1 / (2 pi) times the integral of K(lambda) cos(omega lambda) over a period,
/// by Simpson's rule.
double windowed_spectrum(
        const AdditiveKernel& kernel,
        double period,
        double omega) {
    const double end = period / 2;
    // some 64 steps for each oscillation and each unit
    const int steps = 2 * int(std::ceil(32 * end * (1 + omega / (2 * pi))));
    const double h = end / steps;
    double sum = 0;
    for (int i = 0; i <= steps; i++) {
        const double weight = i == 0 || i == steps ? 1 : i % 2 == 1 ? 4 : 2;
        sum += weight * kernel.signature(i * h) * std::cos(omega * i * h);
    }
    return std::max(0.0, sum * h / 3 / pi);
}

} // namespace

HomogeneousKernelMap::HomogeneousKernelMap(
        int d,
        const AdditiveKernel& kernel,
        int order,
        Window window,
        double period,
        double degree)
        : VectorTransform(d, 0),
          kernel(as_additive(kernel.clone())),
          order(order),
          window(window),
          period(period),
          degree(degree) {
    init();
}

HomogeneousKernelMap::HomogeneousKernelMap(int d, int order, Spec& spec)
        : VectorTransform(d, 0), kernel(kernel_of_spec(spec)), order(order) {
    period = spec.get_double("period", 0.0, min_period, max_period);
    if (spec.get_word("window", "uniform", {"uniform", "rectangular"}) ==
        "rectangular") {
        window = Window::rectangular;
    }
    degree = spec.get_double("degree", 1.0, 1e-6, 2);
    if (spec.get_word("negative", "error", {"error", "sign"}) == "sign") {
        negative = Negative::sign;
    }
    if (spec.get_word("norm", "none", {"none", "l1"}) == "l1") {
        norm = Norm::l1;
    }
    init();
}

void HomogeneousKernelMap::init() {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d_in > 0,
            "HomogeneousKernelMap: the input dimension is %d, expected a positive number",
            d_in);
    FAISS_EXT_THROW_IF_NOT_FMT(
            order >= 0 && order <= max_order,
            "HomogeneousKernelMap: the order is %d, expected 0 to %d",
            order,
            max_order);
    FAISS_EXT_THROW_IF_NOT_FMT(
            degree > 0 && degree <= 2,
            "HomogeneousKernelMap: the degree is %g, expected a number above 0 and up to 2",
            degree);
    FAISS_EXT_THROW_IF_NOT_FMT(
            window == Window::uniform || window == Window::rectangular,
            "HomogeneousKernelMap: there is no window %d",
            int(window));
    const double default_period = kernel->default_period(order, window);
    if (default_period == 0) { // a single line: the map is exact
        period = 0;
        amplitudes = {1};
    } else {
        const bool is_root = order == 0 && period == 0;
        if (period == 0) {
            // the fits of the defaults do not reach down to order 0
            period = order > 0 ? default_period : 2 * pi * kernel->spectrum(0);
        }
        FAISS_EXT_THROW_IF_NOT_FMT(
                period >= min_period && period <= max_period,
                "HomogeneousKernelMap: the period is %g, expected %g to %g, or 0 for the default",
                period,
                min_period,
                max_period);
        const double L = 2 * pi / period;
        amplitudes.clear();
        for (int j = 0; j <= order; j++) {
            const double kappa = window == Window::uniform
                    ? kernel->spectrum(j * L)
                    : windowed_spectrum(*kernel, period, j * L);
            amplitudes.push_back(
                    float(std::sqrt((j == 0 ? 1 : 2) * L * kappa)));
        }
        if (is_root) {
            amplitudes = {1};
        }
    }
    const int64_t dimension = int64_t(d_in) * components();
    FAISS_EXT_THROW_IF_NOT_FMT(
            dimension <= (1 << 30),
            "HomogeneousKernelMap: %d dimensions of order %d make %" PRId64
            " dimensions, too many",
            d_in,
            order,
            dimension);
    d_out = int(dimension);
}

void HomogeneousKernelMap::check_input(
        idx_t n,
        const float* x,
        const char* where) const {
    const auto check = negative == Negative::error ? check_histograms
                                                   : check_signed_histograms;
    check(n, x, d_in, where);
}

void HomogeneousKernelMap::map(size_t n, const float* x, float* xt) const {
    const simd::HomogeneousMap map = {
            amplitudes.size() - 1,
            amplitudes.data(),
            period > 0 ? float(2 * pi / period) : 0,
            float(degree / 2)};
    for (size_t i = 0; i < n; i++) {
        const float* row = x + i * d_in;
        float scale = 1;
        std::vector<float> smaller;
        if (norm == Norm::l1) {
            double sum = 0;
            for (int k = 0; k < d_in; k++) {
                sum += std::abs(row[k]);
            }
            if (sum > 1e30) { // the inverse would underflow
                smaller.assign(row, row + d_in);
                for (float& v : smaller) {
                    v *= 1e-30f;
                }
                sum *= 1e-30f;
                row = smaller.data();
            }
            scale = sum < 1e-37 ? 0 : float(1 / sum);
        }
        simd::homogeneous_map(map, d_in, row, scale, xt + i * d_out);
    }
}

void HomogeneousKernelMap::apply_noalloc(idx_t n, const float* x, float* xt)
        const {
    check_input(n, x, "HomogeneousKernelMap::apply");
    const idx_t block = std::max<idx_t>(1, 65536 / d_out);
    parallel_blocks(n, block, [&](idx_t begin, idx_t end) {
        map(end - begin, x + begin * d_in, xt + begin * d_out);
    });
}

void HomogeneousKernelMap::reverse_transform(idx_t n, const float* xt, float* x)
        const {
    check_finite(n, xt, d_out, "HomogeneousKernelMap::reverse_transform");
    const double unit = squared_norm();
    for (idx_t i = 0; i < n; i++) {
        const float* mapped = xt + i * d_out;
        for (int k = 0; k < d_in; k++) {
            double sum = 0;
            for (int c = 0; c < components(); c++) {
                const double v = mapped[int64_t(c) * d_in + k];
                sum += v * v;
            }
            const double value = std::pow(sum / unit, 1 / degree);
            x[i * d_in + k] = float(
                    negative == Negative::sign ? std::copysign(value, mapped[k])
                                               : value);
        }
    }
}

void HomogeneousKernelMap::check_identical(
        const faiss::VectorTransform& other) const {
    const auto* map = dynamic_cast<const HomogeneousKernelMap*>(&other);
    FAISS_EXT_THROW_IF_NOT_MSG(map, "the other is not a HomogeneousKernelMap");
    faiss::VectorIOWriter mine, theirs;
    write_fields(&mine);
    map->write_fields(&theirs);
    FAISS_EXT_THROW_IF_NOT_MSG(
            d_in == map->d_in && mine.data == theirs.data,
            "maps with different parameters");
}

double HomogeneousKernelMap::squared_norm() const {
    return map_signature(0);
}

double HomogeneousKernelMap::map_signature(double lambda) const {
    const double L = period > 0 ? 2 * pi / period : 0;
    double sum = 0;
    for (size_t j = 0; j < amplitudes.size(); j++) {
        sum += double(amplitudes[j]) * amplitudes[j] *
                std::cos(double(j) * L * lambda);
    }
    return sum;
}

void HomogeneousKernelMap::write_fields(faiss::IOWriter* f) const {
    write_kernel(f, *kernel);
    write_value(f, order);
    write_value(f, window);
    write_value(f, period);
    write_value(f, degree);
    write_value(f, negative);
    write_value(f, norm);
}

void HomogeneousKernelMap::read_fields(faiss::IOReader* f) {
    kernel = as_additive(read_kernel(f));
    order = read_value_in<int>(f, "order", 0, max_order);
    window = Window(read_value_in<int>(f, "window", 0, 1));
    period = read_value<double>(f, "period");
    degree = read_value<double>(f, "degree");
    negative = Negative(read_value_in<int>(f, "negative", 0, 1));
    norm = Norm(read_value_in<int>(f, "norm", 0, 1));
    init();
}

} // namespace faiss_ext
