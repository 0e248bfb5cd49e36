#pragma once

#include <vector>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/kernels/Kernel.h>
#include <faiss_ext/projections/DenseProjection.h>

namespace faiss_ext {

struct Spec;

/** KLSH: kernelised locality-sensitive hashing (Kulis and Grauman, PAMI 2012),
 * with the low-rank projections, the monotone transform and the Gaussian draws
 * of its revision (Jiang, Que and Kulis, CVPR 2015). For any kernel, through
 * its values against p landmarks alone.
 *
 * K is the kernel matrix of the landmarks, K' = HKH with H = I - 11'/p its
 * centred form, K' = U Theta U' its eigenvectors, of which the `rank` largest
 * are kept (all above `tolerance`, if rank is 0). Bit: sum_i w_i k(x, x_i) >= c
 * with
 *
 *     draw=clt    w = U Theta^(-1/2) U' e_S, e_S the indicator of t landmarks
 *                 drawn at random (2012, equation 8)
 *     draw=gauss  w = U Theta^(-1/2) g, g ~ N(0, I): hyperplanes after kernel
 *                 PCA (2015, section 3)
 *
 * and c = 0 as in the papers (center=0), or c = sum_i w_i mean_j k(x_i, x_j)
 * (center=1, the default), which centres the query too and balances the bits.
 * nystrom=1 leaves K uncentred; with clt draws and center=0 all bits are then
 * nearly constant, as the papers' theory says.
 *
 * Kernels that are not normalised are used as k(x, y) / sqrt(k(x, x) k(y, y))
 * (normalize=0 leaves them as they are), and scale=s replaces k by
 * exp(s (k - 1)).
 *
 * String: `KLSH256(chi2,p=1000,t=50,rank=64,scale=5)`, and the keys `draw`,
 * `nystrom`, `center`, `normalize`, `tolerance`, `seed`. rank=auto and
 * scale=auto choose among powers of two from 16 and the full rank, and among
 * none, 1, 3, 5, 7 and 9, by the recall of a held-out part of the training set
 * (10 nearest of up to 200 queries among the 100 nearest by Hamming distance in
 * up to 5,000 vectors). `KLSH256(precomputed,...)` takes in place of a vector
 * its row of kernel values against the landmarks, so d = p, and train takes the
 * p x p matrix of the landmarks; these values are not normalised here. t is by
 * default 30, or p / 2 if that is less.
 *
 * Training takes O(p^3) time and 28 p^2 bytes (rank=auto and scale=auto: 32 p^2
 * and 50 KB for each landmark), and with verbose tells how far
 * it has come.
 */
struct KernelizedHash : KernelHash {
    enum class Draw { clt, gauss };

    /// null if kernel values are precomputed
    ClonePtr<Kernel> kernel;

    int p = 300; ///< landmarks, from 2 to 8192
    int t = 30;  ///< landmarks in a clt draw, from 1 to p - 1
    int rank = 0;
    bool auto_rank = false;
    double scale = 0; ///< 0: no transform
    bool auto_scale = false;
    Draw draw = Draw::clt;
    bool nystrom = false;
    bool center = true;
    bool normalize = true;
    /// Eigenvalues below tolerance (at least p 2^-52) times the largest one are
    /// dropped. Kernels are computed in float.
    double tolerance = 1e-6;
    int64_t seed = 1234;

    std::vector<float> landmarks;   ///< size p * d_in; empty if precomputed
    DenseProjection weights;        ///< w_i, nbits rows of p
    std::vector<float> threshold;   ///< c, size nbits
    std::vector<float> eigenvalues; ///< those kept, descending

    /// mean kernel value of two landmarks, for expected_hamming
    double mean_value = 0;

    /// @param kernel  is copied; null for precomputed values, with d = p
    KernelizedHash(int d, int nbits, const Kernel* kernel);
    KernelizedHash(int d, int nbits, Spec& spec);
    KernelizedHash() = default;

    /// Has train use these landmarks and not a sample. x: size n * d_in; p
    /// becomes n.
    void set_landmarks(idx_t n, const float* x);

    /** By the angle between the two vectors in feature space, centred with the
     * mean kernel value: nbits acos((k - m) / (1 - m)) / pi, m = 0 if
     * center=0. An approximation: a pair's own means may differ from the mean,
     * and the landmarks span only a part of the space. kernel_value is that
     * before normalisation and transform have been applied, but of a
     * normalised kernel: with normalize=0 it assumes k(x, x) = 1.
     */
    double expected_hamming(double kernel_value) const override;
    double kernel_estimate(double hamming) const override;

    void margins(size_t n, const float* x, float* margins) const override;
    void check_input(idx_t n, const float* x, const char* where) const override;
    void write_fields(faiss::IOWriter* f) const override;
    void read_fields(faiss::IOReader* f) override;

   protected:
    /** Draws the landmarks, if none are given, and computes the weights. Throws
     * if there are fewer vectors than landmarks, if the kernel matrix is
     * constant, not positive semi-definite (an eigenvalue below -1e-3 of the
     * largest one), or of a lower rank than asked for.
     */
    void learn(idx_t n, const float* x) override;

   private:
    /// 1 / sqrt(k(x_i, x_i)), size p; empty if nothing is to be normalised
    std::vector<float> landmark_scale;

    void set_landmark_scale();
    void check_parameters() const;
    void normalize_block(
            size_t n,
            const float* x,
            size_t m,
            const float* y_scale,
            float* block) const;
    void kernel_rows(size_t n, const float* x, float* rows) const;
    void apply_scale(double s, size_t n, float* values) const;
    double scaled_value(double k) const;
    void choose_parameters(idx_t n, const float* x, const float* K);
};

} // namespace faiss_ext
