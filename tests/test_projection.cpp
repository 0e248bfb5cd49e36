// What all projections promise.

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include <faiss_ext/projections/BilinearProjection.h>
#include <faiss_ext/projections/DenseProjection.h>
#include <faiss_ext/projections/StructuredProjection.h>

#include "simd/elementwise.h"
#include "testing_data.h"
#include "testing_targets.h"

using namespace faiss_ext;
using namespace testing_data;

namespace {

constexpr int d = 40, d_out = 64;

std::vector<std::unique_ptr<Projection>> projections() {
    std::vector<std::unique_ptr<Projection>> all;
    all.push_back(std::make_unique<DenseProjection>(
            d, d_out, normal_vectors(d_out, d, 1).data()));
    all.push_back(std::make_unique<StructuredProjection>(
            d, d_out, 1, std::vector<double>(d_out, 1.0)));
    for (bool structured : {false, true}) {
        all.push_back(std::make_unique<BilinearProjection>(
                5, 8, d_out, 2, structured, 1, 1.0, structured));
    }
    return all;
}

/// Powers of two change no digit, however large the vectors become.
TEST(Projections, ScaleWithTheirInput) {
    const size_t n = 7;
    std::vector<float> x = normal_vectors(n, d, 2);
    for (float& v : x) { // below 2 in any case
        v = std::clamp(v / 4, -1.99f, 1.99f);
    }
    for (const auto& projection : projections()) {
        std::vector<float> y(n * d_out);
        projection->apply(n, x.data(), y.data());
        for (int power : {1, 40, 63, 64, 65, 100, 120, 127}) {
            // huge vectors among small ones
            std::vector<float> scaled = x, got(n * d_out);
            for (size_t i = 0; i < n * d; i++) {
                scaled[i] = std::ldexp(x[i], i / d % 2 ? power - 1 : 0);
            }
            projection->apply(n, scaled.data(), got.data());
            for (size_t i = 0; i < n * d_out; i++) {
                const float expected =
                        std::ldexp(y[i], i / d_out % 2 ? power - 1 : 0);
                EXPECT_EQ(got[i], expected) << "2^" << power;
            }
        }
    }
}

TEST(Projections, EmptyOnesSaySo) {
    const std::vector<float> x(4);
    std::vector<float> y(4);
    for (const std::function<void()>& call : std::vector<std::function<void()>>{
                 [&] { DenseProjection().apply(1, x.data(), y.data()); },
                 [&] { BilinearProjection().apply(1, x.data(), y.data()); },
                 [&] {
                     StructuredProjection().apply(1, x.data(), y.data());
                 }}) {
        EXPECT_TRUE(contains(message_of(call), "empty"));
    }
    for (const auto& [d_in, d_out] :
         std::vector<std::pair<int, int>>{{4, -1}, {-1, 4}, {0, 4}, {4, 0}}) {
        EXPECT_TRUE(contains(
                message_of([&] { DenseProjection(d_in, d_out); }), "positive"));
    }
}

TEST(MaxAbs, EveryTarget) {
    for (int64_t target : testing_targets::targets()) {
        const testing_targets::Target guard(target);
        EXPECT_EQ(simd::max_abs(0, nullptr), 0);
        for (size_t n : {1, 2, 3, 15, 16, 17, 31, 32, 33, 64, 100}) {
            std::vector<float> x = normal_vectors(n, 1, n);
            for (size_t i = 0; i < n; i++) {
                const float kept = x[i];
                x[i] = i % 2 ? -100.5f : 100.5f;
                EXPECT_EQ(simd::max_abs(n, x.data()), 100.5f) << n;
                x[i] = kept;
            }
        }
    }
}

} // namespace
