// SPDX-License-Identifier: MIT
#include <faiss_ext/maps/FrequencyMap.h>

#include "core/cache_sizes.h"
#include "core/errors.h"
#include "core/field_strings.h"
#include "maps/fourier_features.h"
#include "projections/given_frequencies.h"

namespace faiss_ext {

FrequencyMap::FrequencyMap(int d, int n, const float* omega)
        : projection(given_frequencies(d, n, omega, "FrequencyMap")) {
    d_in = d;
    restore();
}

void FrequencyMap::fields(FieldVisitor& v) const {
    v.learned_part("projection", projection);
}

void FrequencyMap::restore() {
    FAISS_EXT_THROW_IF_NOT_MSG(
            is_trained && projection && projection->d_in == d_in &&
                    projection->d_out <= most_frequencies,
            "the parts of the map are inconsistent");
    d_out = 2 * projection->d_out;
    longest = longest_vector(*projection);
}

std::string FrequencyMap::description() const {
    return "RFF" + std::to_string(d_out) + "(" + text_of_given("frequencies") +
            ")";
}

idx_t FrequencyMap::rows_per_block(idx_t n) const {
    return rows_to_multiply(n, d_out, cache::half_l2);
}

void FrequencyMap::check_vectors(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_given_phases(projection.get(), d_in, longest, n, x, d, where);
}

void FrequencyMap::map(size_t n, const float* x, float* xt) const {
    fourier_features(n, d_out / 2, xt, [&](float* turns) {
        projection->apply(n, x, turns);
    });
}

void FrequencyMap::map_sparse(const SparseVectors& x, float* xt) const {
    fourier_features(x.n, d_out / 2, xt, [&](float* turns) {
        projection->apply_sparse(x, turns);
    });
}

} // namespace faiss_ext
