#include <faiss_ext/hashes/KernelizedHash.h>

#include <algorithm>
#include <cfloat>
#include <cinttypes>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <string_view>
#include <unordered_set>

#include <Eigen/Dense>

#include <faiss/IndexBinaryFlat.h>

#include <faiss_ext/kernels/ShiftInvariantKernel.h>
#include <faiss_ext/kernels/kernel_registry.h>

#include "core/check.h"
#include "core/eigen_symmetric.h"
#include "core/errors.h"
#include "core/io_fields.h"
#include "core/parallel.h"
#include "core/sample.h"
#include "core/scratch.h"
#include "hashes/angle.h"
#include "hashes/features.h"
#include "kernels/kernel_io.h"
#include "simd/elementwise.h"
#include "simd/margins.h"

namespace faiss_ext {

namespace {

using std::numbers::pi;

using Matrix =
        Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int max_landmarks = 8192;

/// Kernel PCA of the landmarks: what of K the weights are made of.
struct Spectrum {
    std::vector<double> values; ///< descending, those kept
    Matrix vectors;             ///< one in each row
    std::vector<double> means;  ///< mean_j K_ij
};

Spectrum decompose(const KernelizedHash& hash, const float* K) {
    const size_t p = hash.p;
    Spectrum s;
    s.means.assign(p, 0);
    double mean = 0, largest = 0;
    for (size_t i = 0; i < p; i++) {
        for (size_t j = 0; j < p; j++) {
            s.means[i] += K[i * p + j] / double(p);
            largest = std::max(largest, std::abs(double(K[i * p + j])));
        }
        mean += s.means[i] / double(p);
    }
    const auto [low, high] = std::minmax_element(K, K + p * p);
    FAISS_EXT_THROW_IF_NOT_FMT(
            double(*high) - *low > 1e-6 * largest,
            "KernelizedHash: the kernel is (nearly) the same for all pairs of the %zu landmarks",
            p);
    std::vector<double> a(p * p);
    for (size_t i = 0; i < p; i++) {
        for (size_t j = 0; j < p; j++) {
            // K is symmetric up to rounding
            const double k =
                    0.5 * (double(K[i * p + j]) + double(K[j * p + i]));
            a[i * p + j] =
                    hash.nystrom ? k : k - s.means[i] - s.means[j] + mean;
        }
    }
    std::vector<double> values;
    eigen_symmetric(p, a, values, hash.verbose);
    const double top = values.back();
    FAISS_EXT_THROW_IF_NOT_FMT(
            // rounding alone gives eigenvalues of 1e-7 sqrt(p)
            std::max(top, -values[0]) > 1e-6 * std::sqrt(double(p)) * largest,
            "KernelizedHash: the kernel is (nearly) the same for all pairs of the %zu landmarks",
            p);
    FAISS_EXT_THROW_IF_NOT_FMT(
            top > 0 && values[0] >= -1e-3 * top,
            "KernelizedHash: the kernel is not positive semi-definite: its matrix has the eigenvalues %g and %g",
            values[0],
            top);
    // what is smaller is rounding
    const double tolerance = std::max(
            hash.tolerance, double(p) * std::numeric_limits<double>::epsilon());
    size_t rank = 0;
    while (rank < p && values[p - 1 - rank] > tolerance * top) {
        rank++;
    }
    s.vectors.resize(rank, p);
    for (size_t i = 0; i < rank; i++) {
        s.values.push_back(values[p - 1 - i]);
        std::copy_n(&a[(p - 1 - i) * p], p, s.vectors.row(i).data());
    }
    return s;
}

/// The t landmarks of each bit (clt), or g for each bit (gauss): the part of a
/// draw that does not depend on the kernel.
struct Draws {
    std::vector<std::vector<int>> landmarks;
    Matrix normal;
};

Draws make_draws(const KernelizedHash& hash) {
    Draws draws;
    std::mt19937_64 rng(uint64_t(hash.seed) + 1);
    if (hash.draw == KernelizedHash::Draw::gauss) {
        std::normal_distribution<double> normal;
        draws.normal.resize(hash.nbits, hash.p);
        for (int i = 0; i < hash.nbits; i++) {
            for (int j = 0; j < hash.p; j++) {
                draws.normal(i, j) = normal(rng);
            }
        }
        return draws;
    }
    std::vector<int> ids(hash.p);
    for (int i = 0; i < hash.p; i++) {
        ids[i] = i;
    }
    for (int b = 0; b < hash.nbits; b++) {
        for (int i = 0; i < hash.t; i++) {
            std::uniform_int_distribution<int> rest(i, hash.p - 1);
            std::swap(ids[i], ids[rest(rng)]);
        }
        draws.landmarks.emplace_back(ids.begin(), ids.begin() + hash.t);
    }
    return draws;
}

/// w for every bit, from the `rank` largest eigenvalues.
Matrix make_weights(
        const KernelizedHash& hash,
        const Draws& draws,
        const Spectrum& s,
        int rank) {
    const auto U = s.vectors.topRows(rank);
    Matrix g;
    if (hash.draw == KernelizedHash::Draw::gauss) {
        g = draws.normal.leftCols(rank);
    } else {
        g = Matrix::Zero(hash.nbits, rank);
        for (int b = 0; b < hash.nbits; b++) {
            for (int i : draws.landmarks[b]) {
                g.row(b) += U.col(i).transpose();
            }
        }
    }
    for (int i = 0; i < rank; i++) {
        g.col(i) /= std::sqrt(s.values[i]);
    }
    return g * U;
}

void set_weights(KernelizedHash& hash, const Matrix& w, const Spectrum& s) {
    hash.weights = DenseProjection(hash.p, hash.nbits);
    hash.threshold.assign(hash.nbits, 0);
    std::vector<float> row(hash.p);
    for (int b = 0; b < hash.nbits; b++) {
        double c = 0;
        for (int i = 0; i < hash.p; i++) {
            row[i] = float(w(b, i));
            c += w(b, i) * s.means[i];
        }
        hash.weights.set_row(b, row.data());
        hash.threshold[b] = hash.center ? float(c) : 0;
    }
}

/// 1 / sqrt(k(x, x)) of each vector, 0 where that is 0
std::vector<float> inverse_norms(
        const Kernel& kernel,
        size_t n,
        const float* x,
        size_t d) {
    std::vector<float> norms(n);
    kernel.self_values(n, x, d, norms.data());
    for (float& v : norms) {
        v = v > 0 && std::isfinite(v) ? 1 / std::sqrt(v) : 0;
    }
    return norms;
}

/// Large values may overflow in kernels that are not bounded.
void check_values(size_t n, const float* values, const KernelizedHash& hash) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            all_finite(n, values),
            "KernelizedHash: values of the kernel %s are not finite on these vectors",
            hash.kernel ? hash.kernel->description().c_str() : "given");
}

void rows_to_margins(
        const KernelizedHash& hash,
        size_t n,
        const float* rows,
        float* margins) {
    check_projection(&hash.weights, hash.p, hash.nbits);
    hash.weights.apply(n, rows, margins);
    subtract_thresholds(hash.threshold, n, margins);
}

} // namespace

namespace {

/// The papers' 30, and fewer where these would be more than half.
int default_t(int p) {
    return std::min(30, p / 2);
}

} // namespace

KernelizedHash::KernelizedHash(int d, int nbits, const Kernel* kernel)
        : KernelHash(d, nbits) {
    is_trained = false;
    if (kernel) {
        this->kernel = kernel->clone();
    } else {
        p = d;
        t = default_t(p);
    }
}

KernelizedHash::KernelizedHash(int d, int nbits, Spec& spec)
        : KernelHash(d, nbits) {
    is_trained = false;
    std::vector<std::string> names = kernel_names();
    names.push_back("precomputed");
    Spec item = spec.get_item(0, names);
    const bool precomputed = item.name == "precomputed";
    p = int(spec.get_int("p", precomputed ? d : 300, 2, max_landmarks));
    if (precomputed && p != d) {
        spec.fail_value(
                "p",
                "rows of kernel values have as many components as there are landmarks, " +
                        std::to_string(d));
    }
    t = int(spec.get_int("t", default_t(p), 1, p - 1));
    auto_rank = spec.get("rank") == "auto";
    if (!auto_rank) {
        rank = int(spec.get_int("rank", 0, 0, p));
    }
    auto_scale = spec.get("scale") == "auto";
    if (!auto_scale) {
        scale = spec.get_double("scale", 0.0, 0, 1e4);
    }
    draw = spec.get_word("draw", "clt", {"clt", "gauss"}) == "clt"
            ? Draw::clt
            : Draw::gauss;
    nystrom = spec.get_flag("nystrom", false);
    center = spec.get_flag("center", true);
    normalize = spec.get_flag("normalize", true);
    tolerance = spec.get_double("tolerance", 1e-6, 0, 0.999);
    for (const char* key : {"rank", "scale"}) {
        if (precomputed && spec.get(key) == "auto") {
            spec.fail_value(
                    key,
                    "precomputed values cannot be tried out: auto needs vectors");
        }
    }
    seed = spec.get_int("seed", 1234, 0, INT64_MAX);
    spec.hand_over_keys(item);
    if (precomputed) {
        item.finish();
    } else {
        kernel = make_kernel(item);
    }
}

void KernelizedHash::check_parameters() const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            p >= 2 && p <= max_landmarks && t >= 1 && t < p && rank >= 0 &&
                    rank <= p,
            "KernelizedHash: p is %d, t %d and rank %d; expected p from 2 to %d, t from 1 to p - 1, rank from 0 to p",
            p,
            t,
            rank,
            max_landmarks);
    FAISS_EXT_THROW_IF_NOT_FMT(
            landmarks.empty() || landmarks.size() == size_t(p) * d_in,
            "KernelizedHash: p is %d, but %zu landmarks are given",
            p,
            landmarks.size() / d_in);
    FAISS_EXT_THROW_IF_NOT_FMT(
            scale >= 0 && std::isfinite(scale) && tolerance >= 0 &&
                    tolerance < 1,
            "KernelizedHash: scale is %g and tolerance %g; expected a number >= 0 and one from 0 to 1",
            scale,
            tolerance);
}

void KernelizedHash::apply_scale(double s, size_t n, float* values) const {
    if (s > 0) {
        simd::exp_affine(n, float(s), float(-s), values);
    }
}

void KernelizedHash::set_landmark_scale() {
    landmark_scale.clear();
    if (kernel && normalize &&
        !dynamic_cast<const ShiftInvariantKernel*>(kernel.get())) {
        landmark_scale = inverse_norms(*kernel, p, landmarks.data(), d_in);
    }
}

/// Normalises a block of kernel values of n vectors and m others, whose inverse
/// norms are given.
void KernelizedHash::normalize_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y_scale,
        float* block) const {
    const std::vector<float> x_scale = inverse_norms(*kernel, n, x, d_in);
    for (size_t i = 0; i < n; i++) {
        simd::multiply(m, x_scale[i], y_scale, block + i * m);
    }
}

void KernelizedHash::kernel_rows(size_t n, const float* x, float* rows) const {
    if (!kernel) {
        std::copy_n(x, n * p, rows);
        return;
    }
    kernel->block(n, x, p, landmarks.data(), d_in, rows);
    if (!landmark_scale.empty()) {
        normalize_block(n, x, p, landmark_scale.data(), rows);
    }
}

void KernelizedHash::set_landmarks(idx_t n, const float* x) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            kernel, "precomputed kernel values have no landmarks to set");
    FAISS_EXT_THROW_IF_NOT_FMT(
            n >= 2 && n <= max_landmarks,
            "KernelizedHash::set_landmarks: %" PRId64
            " landmarks, expected 2 to %d",
            int64_t(n),
            max_landmarks);
    kernel->check_input(n, x, d_in, "KernelizedHash::set_landmarks");
    FAISS_EXT_THROW_IF_NOT_MSG(
            !is_trained,
            "KernelizedHash::set_landmarks: the hash is trained; landmarks must be given before");
    landmarks.assign(x, x + n * d_in);
    p = int(n);
    t = std::min(t, p - 1);
}

void KernelizedHash::learn(idx_t n, const float* x) {
    check_parameters();
    if (kernel) {
        kernel->verbose = verbose;
        kernel->train(n, x, d_in);
        if (landmarks.empty()) {
            FAISS_EXT_THROW_IF_NOT_FMT(
                    n >= p,
                    "KernelizedHash::train: %" PRId64
                    " training vectors, expected at least p = %d, of which the landmarks are drawn",
                    int64_t(n),
                    p);
            landmarks = gather_rows(sample_ids(n, p, seed), x, d_in);
        }
        set_landmark_scale();
    } else {
        FAISS_EXT_THROW_IF_NOT_FMT(
                n == p,
                "KernelizedHash::train: %" PRId64
                " rows of precomputed values, expected the %d x %d matrix of the landmarks",
                int64_t(n),
                p,
                p);
        for (int i = 0; i < p; i++) {
            for (int j = 0; j < i; j++) {
                const float a = x[size_t(i) * p + j], b = x[size_t(j) * p + i];
                FAISS_EXT_THROW_IF_NOT_FMT(
                        std::abs(a - b) <=
                                1e-4 * (std::abs(a) + std::abs(b)) + 1e-6,
                        "KernelizedHash::train: the matrix is not symmetric: %g at (%d, %d), %g at (%d, %d)",
                        a,
                        i,
                        j,
                        b,
                        j,
                        i);
            }
        }
    }
    std::vector<float> K(size_t(p) * p);
    parallel_blocks(p, 16, [&](idx_t begin, idx_t end) {
        const float* from = kernel ? landmarks.data() : x;
        kernel_rows(end - begin, from + begin * d_in, &K[begin * p]);
    });
    if (auto_rank || auto_scale) {
        choose_parameters(n, x, K.data());
    }
    apply_scale(scale, K.size(), K.data());
    check_values(K.size(), K.data(), *this);

    const Spectrum s = decompose(*this, K.data());
    const int found = int(s.values.size());
    FAISS_EXT_THROW_IF_NOT_FMT(
            rank <= found,
            "KernelizedHash::train: rank = %d is asked for, but the kernel matrix of the %d landmarks has rank %d (eigenvalues above %g of the largest)",
            rank,
            p,
            found,
            tolerance);
    const int kept = rank > 0 ? rank : found;
    eigenvalues.assign(s.values.begin(), s.values.begin() + kept);
    set_weights(*this, make_weights(*this, make_draws(*this), s, kept), s);
    double sum = 0;
    for (int i = 0; i < p; i++) {
        sum += s.means[i] * p - K[size_t(i) * p + i];
    }
    mean_value = center ? sum / (double(p) * (p - 1)) : 0;
    if (verbose) {
        printf("KernelizedHash::train: %d landmarks, rank %d of %d, scale %g, eigenvalues %g to %g\n",
               p,
               kept,
               found,
               scale,
               eigenvalues.front(),
               eigenvalues.back());
    }
}

void KernelizedHash::choose_parameters(
        idx_t n,
        const float* x,
        const float* K) {
    constexpr idx_t max_queries = 200, max_base = 5000, k = 10, within = 100;
    FAISS_EXT_THROW_IF_NOT_MSG(
            kernel,
            "KernelizedHash: rank=auto and scale=auto need vectors, not precomputed values");
    std::vector<idx_t> ids =
            sample_ids(n, max_queries + max_base + p, uint64_t(seed) + 2);
    // queries are held out: none of them is a landmark
    const auto bytes = [&](const float* row) {
        return std::string_view(
                reinterpret_cast<const char*>(row), d_in * sizeof(float));
    };
    std::unordered_set<std::string_view> known;
    for (int i = 0; i < p; i++) {
        known.insert(bytes(&landmarks[size_t(i) * d_in]));
    }
    const auto others =
            std::stable_partition(ids.begin(), ids.end(), [&](idx_t id) {
                return !known.contains(bytes(x + id * d_in));
            });
    const idx_t m = std::min<idx_t>(ids.size(), max_queries + max_base);
    const idx_t nq =
            std::min({max_queries, m / 5, idx_t(others - ids.begin())});
    const idx_t nb = std::min(max_base, m - nq);
    FAISS_EXT_THROW_IF_NOT_FMT(
            nq >= 1 && nb > within,
            "KernelizedHash: rank=auto and scale=auto need at least %d training vectors, and some that are not landmarks to try them as queries; got %" PRId64
            " vectors and %d landmarks",
            126, // a fifth of which are queries
            int64_t(n),
            p);
    ids.resize(nq + nb);
    const std::vector<float> sample = gather_rows(ids, x, d_in);
    const float *queries = sample.data(), *base = queries + nq * d_in;

    // the true neighbours, and the kernel rows that all candidates share
    std::vector<float> truth(nq * nb), rows((nq + nb) * p);
    const std::vector<float> base_scale =
            inverse_norms(*kernel, nb, base, d_in);
    parallel_blocks(nq, 4, [&](idx_t begin, idx_t end) {
        const float* x = queries + begin * d_in;
        float* block = &truth[begin * nb];
        kernel->block(end - begin, x, nb, base, d_in, block);
        if (normalize) {
            normalize_block(end - begin, x, nb, base_scale.data(), block);
        }
    });
    parallel_blocks(nq + nb, 16, [&](idx_t begin, idx_t end) {
        kernel_rows(end - begin, queries + begin * d_in, &rows[begin * p]);
    });

    const Draws draws = make_draws(*this);
    double best = -1;
    int best_rank = rank;
    double best_scale = scale;
    const std::vector<double> scales = auto_scale
            ? std::vector<double>{0, 1, 3, 5, 7, 9}
            : std::vector<double>{scale};
    for (double s : scales) {
        std::vector<float> K_s(K, K + size_t(p) * p), rows_s = rows;
        apply_scale(s, K_s.size(), K_s.data());
        apply_scale(s, rows_s.size(), rows_s.data());
        const Spectrum spectrum = decompose(*this, K_s.data());
        const int full = int(spectrum.values.size());
        std::vector<int> ranks;
        for (int r = 16; auto_rank && r < full; r *= 2) {
            ranks.push_back(r);
        }
        ranks.push_back(auto_rank || rank == 0 ? full : std::min(rank, full));
        for (int r : ranks) {
            set_weights(
                    *this, make_weights(*this, draws, spectrum, r), spectrum);
            std::vector<uint8_t> codes((nq + nb) * code_size());
            parallel_blocks(nq + nb, 16, [&](idx_t begin, idx_t end) {
                std::vector<float> block((end - begin) * nbits);
                rows_to_margins(
                        *this, end - begin, &rows_s[begin * p], block.data());
                simd::pack_signs(
                        end - begin,
                        nbits,
                        block.data(),
                        &codes[begin * code_size()]);
            });
            faiss::IndexBinaryFlat flat(nbits);
            flat.add(nb, &codes[nq * code_size()]);
            std::vector<int32_t> distances(nq * within);
            std::vector<idx_t> labels(nq * within);
            flat.search(
                    nq, codes.data(), within, distances.data(), labels.data());
            size_t hits = 0;
            for (idx_t q = 0; q < nq; q++) {
                std::vector<float> sorted(
                        truth.begin() + q * nb, truth.begin() + (q + 1) * nb);
                std::nth_element(
                        sorted.begin(),
                        sorted.begin() + (k - 1),
                        sorted.end(),
                        std::greater<float>());
                size_t hit = 0;
                for (idx_t j = 0; j < within; j++) {
                    hit += truth[q * nb + labels[q * within + j]] >=
                            sorted[k - 1];
                }
                hits += std::min<size_t>(hit, k);
            }
            const double recall = double(hits) / double(nq * k);
            if (verbose) {
                printf("KernelizedHash::train: scale %g, rank %d: recall %.3f\n",
                       s,
                       r,
                       recall);
            }
            if (recall > best) {
                best = recall;
                best_rank = r == full && !auto_rank ? rank : r;
                best_scale = s;
            }
        }
    }
    rank = best_rank;
    scale = best_scale;
}

void KernelizedHash::margins(size_t n, const float* x, float* margins) const {
    check_projection(&weights, p, nbits);
    const Scratch rows(n * p);
    kernel_rows(n, x, rows.get());
    apply_scale(scale, n * p, rows.get());
    rows_to_margins(*this, n, rows.get(), margins);
    // a kernel value that is not finite makes all margins so
    for (size_t i = 0; i < n; i++) {
        check_values(1, margins + i * nbits, *this);
    }
}

void KernelizedHash::check_input(idx_t n, const float* x, const char* where)
        const {
    if (kernel) {
        kernel->check_input(n, x, d_in, where);
    } else {
        check_finite(n, x, d_in, where);
    }
}

double KernelizedHash::scaled_value(double k) const {
    FAISS_EXT_THROW_IF_NOT_MSG(
            is_trained && !std::isnan(k),
            "KernelizedHash::expected_hamming: the hash is not trained, or the kernel value is NaN");
    return scale > 0 ? std::exp(scale * (k - 1)) : k;
}

double KernelizedHash::expected_hamming(double kernel_value) const {
    const double k = scaled_value(kernel_value);
    const double cosine = (k - mean_value) / (1 - mean_value);
    return nbits * angle_share(cosine);
}

double KernelizedHash::kernel_estimate(double hamming) const {
    const double cosine = std::cos(pi * normalized_hamming(hamming));
    const double k = mean_value + cosine * (1 - mean_value);
    if (scale == 0) {
        return k;
    }
    // kernel values below that of k = -1 cannot occur
    return std::max(-1.0, 1 + std::log(std::max(k, 1e-300)) / scale);
}

void KernelizedHash::write_fields(faiss::IOWriter* f) const {
    write_value(f, bool(kernel));
    if (kernel) {
        write_kernel(f, *kernel);
    }
    write_value(f, p);
    write_value(f, t);
    write_value(f, rank);
    write_value(f, auto_rank);
    write_value(f, scale);
    write_value(f, auto_scale);
    write_value(f, draw);
    write_value(f, nystrom);
    write_value(f, center);
    write_value(f, normalize);
    write_value(f, tolerance);
    write_value(f, seed);
    write_vector(f, landmarks);
    weights.write(f);
    write_vector(f, threshold);
    write_vector(f, eigenvalues);
    write_value(f, mean_value);
}

void KernelizedHash::read_fields(faiss::IOReader* f) {
    kernel = read_value<bool>(f, "has_kernel") ? read_kernel(f) : nullptr;
    p = read_value_in<int>(f, "p", 2, max_landmarks);
    t = read_value_in<int>(f, "t", 1, p - 1);
    rank = read_value_in<int>(f, "rank", 0, p);
    auto_rank = read_value<bool>(f, "auto_rank");
    scale = read_value<double>(f, "scale");
    auto_scale = read_value<bool>(f, "auto_scale");
    draw = Draw(read_value_in<int>(f, "draw", 0, 1));
    nystrom = read_value<bool>(f, "nystrom");
    center = read_value<bool>(f, "center");
    normalize = read_value<bool>(f, "normalize");
    tolerance = read_value<double>(f, "tolerance");
    seed = read_value<int64_t>(f, "seed");
    const size_t rows = is_trained ? nbits : 0;
    read_vector(f, landmarks, "landmarks");
    weights.read(f);
    read_finite_vector(f, threshold, rows, "threshold");
    read_vector(f, eigenvalues, "eigenvalues");
    mean_value = read_value<double>(f, "mean_value");
    FAISS_EXT_THROW_IF_NOT_FMT(
            size_t(weights.d_out) == rows && (rows == 0 || weights.d_in == p) &&
                    (!is_trained ||
                     landmarks.size() == (kernel ? size_t(p) * d_in : 0)) &&
                    (landmarks.empty() ||
                     landmarks.size() == size_t(p) * d_in) &&
                    (kernel || p == d_in) &&
                    (!kernel || !is_trained || kernel->is_trained),
            "%s is damaged: the parts of a hash do not fit",
            f->name.c_str());
    FAISS_EXT_THROW_IF_NOT_FMT(
            scale >= 0 && std::isfinite(scale) && tolerance >= 0 &&
                    tolerance < 1 && std::abs(mean_value) <= FLT_MAX &&
                    all_finite(eigenvalues.size(), eigenvalues.data()),
            "%s is damaged: a number of a hash is out of range (scale %g, tolerance %g, mean value %g, or an eigenvalue)",
            f->name.c_str(),
            scale,
            tolerance,
            mean_value);
    if (kernel) {
        kernel->check_input(
                landmarks.size() / d_in, landmarks.data(), d_in, "landmarks");
    }
    if (is_trained) {
        set_landmark_scale();
    }
}

} // namespace faiss_ext
