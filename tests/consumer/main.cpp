// What a project that depends on the installed faiss_ext does.

#include <cstdio>
#include <vector>

#include <faiss/utils/random.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/io/index_factory.h>

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
    return 0;
}
