// SPDX-License-Identifier: MIT
// Example: a project that uses the installed faiss_ext.

#include <cmath>
#include <cstdio>
#include <vector>

#include <faiss/utils/random.h>
#include <faiss_ext/faiss_ext.h>

/// A user-defined additive kernel: the harmonic mean, which is chi2.
struct HarmonicKernel : faiss_ext::AdditiveKernel {
    double signature(double lambda) const override {
        return 1 / std::cosh(lambda / 2);
    }
    double spectrum(double omega) const override {
        return 1 / std::cosh(M_PI * omega);
    }
    double default_period(int order, Window) const override {
        return 6 * std::sqrt(order) + 4;
    }
};

int main() {
    const int d = 16, n = 1000, k = 5;
    std::vector<float> x(n * d);
    faiss::float_randn(x.data(), x.size(), 1);
    auto index = faiss_ext::index_factory(
            d, "SIK256(gaussian),BFlat,Refine(KFlat(gaussian))");
    index->train(n, x.data());
    index->add(n, x.data());
    std::vector<float> distances(n * k);
    std::vector<faiss_ext::idx_t> labels(n * k);
    index->search(n, x.data(), k, distances.data(), labels.data());
    for (int i = 0; i < n; i++) {
        if (labels[i * k] != i || distances[i * k] != 0) {
            printf("vector %d is not its own nearest neighbour\n", i);
            return 1;
        }
    }
    // compares this file's kernel with chi2
    faiss_ext::register_kernel<HarmonicKernel>("harmonic");
    for (float& v : x) {
        v = std::abs(v);
    }
    std::vector<faiss_ext::idx_t> expected(n * k);
    auto flat = faiss_ext::index_factory(d, "KFlat(chi2)");
    flat->add(n, x.data());
    flat->search(n, x.data(), k, distances.data(), expected.data());
    flat = faiss_ext::index_factory(d, "KFlat(harmonic)");
    flat->add(n, x.data());
    flat->search(n, x.data(), k, distances.data(), labels.data());
    int same = 0;
    for (int i = 0; i < n * k; i++) {
        same += labels[i] == expected[i];
    }
    if (same < 0.99 * n * k) { // all, except for rounding
        printf("only %d of %d neighbours agree\n", same, n * k);
        return 1;
    }
    return 0;
}
