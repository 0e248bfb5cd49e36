// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/maps/FeatureMap.h>
#include <faiss_ext/projections/Projection.h>

namespace faiss_ext {

/** Random Fourier features of your own shift-invariant kernel: RFF with
 * frequencies that you draw.
 *
 * A kernel k(x, y) = K(x - y) with K(0) = 1 is the Fourier transform of a
 * probability density (Bochner's theorem). Draw omega_i from it, i = 1..n. The
 * map is
 *
 *     z(x) = sqrt(1 / n) (cos(omega_1 . x), ..., sin(omega_1 . x), ...),
 *
 * first all cosines, then all sines. |z(x)| = 1, and z(x) . z(y) is the mean of
 * cos(omega_i . (x - y)). Its expectation is K(x - y). If the omega_i are
 * independent, P(|z(x) . z(y) - K| > e) <= 2 exp(-n e^2 / 2) for one pair
 * (Hoeffding's inequality).
 *
 *     std::vector<float> omega(n * d); // drawn by your program
 *     FrequencyMap map(d, n, omega.data());
 *     std::vector<float> z(nx * map.d_out);
 *     map.apply_noalloc(nx, x, z.data());
 *
 * Phases are floats, so their errors are about 1e-7 of their size. A vector is
 * refused if its phases at the omega_i of median length would have errors of
 * more than about a hundredth of a turn. Longer omega_i are not checked. If the
 * errors exceed a turn, features of vectors near each other are unrelated.
 *
 * The map needs no training. Files contain the frequencies, so they can be read
 * without the program that drew them. No string makes such a map;
 * description() shows it as `RFF<2 n>(frequencies)`, which no factory accepts.
 */
struct FrequencyMap : FeatureMap {
    ClonePtr<Projection> projection; ///< omega_i / 2 pi, n rows

    /// An empty map, to be filled from a file.
    FrequencyMap() = default;

    /**
     * @param d      dimension of vectors
     * @param n      number of frequencies; d_out is 2 n
     * @param omega  omega_i row by row, finite, size n * d
     */
    FrequencyMap(int d, int n, const float* omega);

    void map(size_t n, const float* x, float* xt) const override;
    void map_sparse(const SparseVectors& x, float* xt) const override;
    void fields(FieldVisitor& v) const override;
    void restore() override;

    /// "RFF<2 n>(frequencies)".
    std::string description() const override;

   protected:
    idx_t rows_per_block(idx_t n) const override;
    /// Throws also if a vector is so far from the origin that phases would be
    /// inaccurate.
    void check_vectors(idx_t n, const float* x, size_t d, const char* where)
            const override;

   private:
    double longest = 0; ///< length of the longest vectors that are mapped
};

} // namespace faiss_ext
