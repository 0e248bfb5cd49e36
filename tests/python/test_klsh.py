"""Kernelised LSH: its formulas, its gains on real data, kernels computed by
Python functions, and search in sorted permutations."""

import copy
import functools
import gc
import importlib.util
import os
import pickle
import re
import subprocess
import sys
import traceback
import weakref
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA
from sklearn.kernel_approximation import Nystroem

import faiss
import faiss_ext

ROOT = Path(__file__).resolve().parents[2]
INNER_PRODUCT = faiss.METRIC_INNER_PRODUCT

# chance that a right hash fails one of the statistical tests
FAILURE = 1e-9


def l1_normalized(x):
    return (x / np.maximum(x.sum(axis=1, keepdims=True), 1e-30)).astype("f4")


def shuffled_digits():
    x = load_digits().data
    return x[np.random.default_rng(1).permutation(len(x))]


X = l1_normalized(shuffled_digits())
BASE, QUERIES = X[200:], X[:200]
for array in (X, BASE, QUERIES):
    array.setflags(write=False)


def chi2(x, y):
    """The chi-square kernel, in double precision."""
    a, b = x[:, None, :].astype(float), y[None, :, :].astype(float)
    return (2 * a * b / np.where(a + b > 0, a + b, 1)).sum(axis=2)


def intersection(x, y):
    return np.minimum(x[:, None, :], y[None, :, :]).sum(axis=2, dtype=float)


REFERENCES = {"chi2": chi2, "intersection": intersection}


def transformed(k, scale):
    return np.exp(scale * (k - 1)) if scale else k


def trained(keys="", kernel="chi2", nbits=256, x=BASE, p=100, t=20):
    arguments = ",".join(filter(None, [kernel, f"p={p}", f"t={t}", keys]))
    string = f"KLSH{nbits}({arguments})"
    hash = faiss_ext.kernel_hash_factory(x.shape[1], string)
    hash.train(x)
    return hash


def landmarks_of(hash):
    return faiss.vector_to_array(hash.map.landmarks).reshape(
        hash.map.p, hash.d_in
    )


def weights_of(hash):
    A = hash.projection.matrix()
    assert A.shape == (hash.nbits, hash.map.p)
    return A.astype(float)


def vector(v):
    return faiss.vector_to_array(v).astype(float)


def spectrum(K, nystrom=False, tolerance=1e-6):
    """Eigenvalues, descending, and eigenvectors, in columns, that are kept."""
    p = len(K)
    H = np.eye(p) if nystrom else np.eye(p) - 1 / p
    theta, U = np.linalg.eigh(H @ K @ H)
    theta, U = theta[::-1], U[:, ::-1]
    kept = theta > tolerance * theta[0]
    return theta[kept], U[:, kept]


def drawn_landmarks(**sizes):
    """e_S of every bit, found in the weights: K^(1/2) w = e_S where K has full
    rank and is not centred."""
    hash = trained("nystrom=1,center=0,tolerance=0", **sizes)
    K = chi2(landmarks_of(hash), landmarks_of(hash))
    theta, U = spectrum(K, nystrom=True, tolerance=0)
    root = (U * np.sqrt(theta)) @ U.T
    found = weights_of(hash) @ root
    e_S = np.round(found)
    assert np.abs(found - e_S).max() < 0.01
    return e_S


def hamming(a, b):
    """All Hamming distances between two sets of codes."""
    a = np.unpackbits(a, axis=1).astype("float32")
    b = np.unpackbits(b, axis=1).astype("float32")
    return a @ (1 - b.T) + (1 - a) @ b.T


def hoeffding(n, nbits):
    """How far the mean of nbits bits may stray from its expectation, for n
    such means at once."""
    return np.sqrt(np.log(2 * n / FAILURE) / (2 * nbits))


def relative_error(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


# ----------------------------------------------------------------- weights


def test_each_clt_bit_has_t_landmarks_drawn_evenly():
    e_S = drawn_landmarks(nbits=2048)
    assert set(np.unique(e_S)) == {0, 1}
    assert (e_S.sum(axis=1) == 20).all()
    assert len(np.unique(e_S, axis=0)) == 2048
    # each landmark is in Binomial(2048, 20 / 100) of them
    low, high = stats.binom.ppf([FAILURE / 200, 1 - FAILURE / 200], 2048, 0.2)
    counts = e_S.sum(axis=0)
    assert counts.min() >= low and counts.max() <= high
    # and pairs are together as often as they should be
    together = (e_S.T @ e_S)[np.triu_indices(100, 1)]
    share = 20 * 19 / (100 * 99)
    low, high = stats.binom.ppf([FAILURE / 1e4, 1 - FAILURE / 1e4], 2048, share)
    assert together.min() >= low and together.max() <= high


@pytest.mark.parametrize("kernel", REFERENCES)
@pytest.mark.parametrize("nystrom", [0, 1])
@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("rank", [0, 16, 64])
@pytest.mark.parametrize("scale", [0, 5])
def test_weights_follow_the_formula(kernel, nystrom, center, rank, scale):
    """w = U Theta^(-1/2) U' e_S of the rank largest eigenvalues."""
    hash = trained(
        f"nystrom={nystrom},center={center},rank={rank},scale={scale}", kernel
    )
    y, kappa = landmarks_of(hash), REFERENCES[kernel]
    K = transformed(kappa(y, y), scale)
    theta, U = spectrum(K, nystrom)
    theta, U = theta[: rank or None], U[:, : rank or None]
    e_S = drawn_landmarks()  # same seed, same S
    w = e_S @ (U / np.sqrt(theta)) @ U.T
    threshold = w @ K.mean(axis=1) if center else np.zeros(256)

    np.testing.assert_allclose(vector(hash.map.eigenvalues), theta, rtol=1e-4)
    # what kernels in float leave of the smallest eigenvectors
    allowed = 1e-2 if rank == 0 else 1e-3
    assert relative_error(weights_of(hash), w) <= allowed
    np.testing.assert_allclose(
        vector(hash.threshold), threshold, atol=allowed * np.abs(w).max()
    )
    assert center or not vector(hash.threshold).any()

    margins = transformed(kappa(QUERIES, y), scale) @ w.T - threshold
    found = hash.apply(QUERIES)
    assert relative_error(found, margins) <= allowed
    bits = np.unpackbits(hash.encode(QUERIES), axis=1, bitorder="little")
    np.testing.assert_array_equal(bits, found >= 0)


def test_landmarks_are_drawn_without_replacement_from_the_training_set():
    x = np.unique(BASE, axis=0)
    hash = trained(x=x, p=300)
    rows = {tuple(row) for row in x}
    drawn = [tuple(row) for row in landmarks_of(hash)]
    assert set(drawn) <= rows and len(set(drawn)) == 300
    other = trained("seed=5", x=x, p=300)
    common = set(drawn) & {tuple(row) for row in landmarks_of(other)}
    # hypergeometric
    n = len(x)
    low, high = stats.hypergeom.ppf([1e-9, 1 - 1e-9], n, 300, 300)
    assert low <= len(common) <= high


def test_given_landmarks_are_used():
    hash = faiss_ext.kernel_hash_factory(64, "KLSH64(chi2,p=300,t=30)")
    hash.set_landmarks(BASE[40:90])
    assert hash.map.p == 50 and hash.t == 30
    hash.train(BASE)
    np.testing.assert_array_equal(landmarks_of(hash), BASE[40:90])
    same = faiss_ext.kernel_hash_factory(64, "KLSH64(chi2,p=50,t=30)")
    same.set_landmarks(BASE[40:90])
    same.train(QUERIES[:1])
    np.testing.assert_array_equal(hash.encode(QUERIES), same.encode(QUERIES))


def test_what_is_trained_stays():
    hash = trained()
    codes = hash.encode(BASE)
    hash.train(QUERIES)
    np.testing.assert_array_equal(hash.encode(BASE), codes)


def test_training_that_fails_leaves_no_landmarks():
    repeated = np.tile(BASE[:10], (20, 1))
    hash = faiss_ext.kernel_hash_factory(64, "KLSH64(chi2,p=50,t=9,rank=30)")
    with pytest.raises(RuntimeError, match="rank = 30 is asked for"):
        hash.train(repeated)
    assert not hash.is_trained
    hash.train(BASE)
    expected = trained("rank=30", nbits=64, p=50, t=9)
    np.testing.assert_array_equal(
        hash.encode(QUERIES), expected.encode(QUERIES)
    )


def test_kernels_are_normalised_unless_told_otherwise():
    counts = shuffled_digits()[200:]
    one = trained("draw=gauss,rank=16", x=counts)
    for other in (
        trained("draw=gauss,rank=16,normalize=0", "normalized(chi2)", x=counts),
        trained("draw=gauss,rank=16", "normalized(chi2)", x=counts),
    ):
        assert relative_error(other.apply(counts), one.apply(counts)) < 1e-3
    raw = trained("draw=gauss,rank=16,normalize=0", x=counts)
    K = chi2(landmarks_of(raw), landmarks_of(raw))
    np.testing.assert_allclose(
        vector(raw.map.eigenvalues), spectrum(K)[0][:16], rtol=1e-4
    )
    norms = np.sqrt(np.diag(K))
    np.testing.assert_allclose(
        vector(one.map.eigenvalues),
        spectrum(K / norms / norms[:, None])[0][:16],
        rtol=1e-4,
    )


def test_the_scale_is_the_exponential_kernel():
    one = trained("rank=32,scale=5")
    other = trained("rank=32", "exponential(chi2,scale=5)")
    assert relative_error(other.apply(QUERIES), one.apply(QUERIES)) < 1e-3
    unscaled = trained("rank=32").apply(QUERIES)
    assert relative_error(unscaled, one.apply(QUERIES)) > 0.1


@given(
    draw=st.sampled_from(["clt", "gauss"]),
    rank=st.sampled_from([0, 8]),
    scale=st.sampled_from([0, 3]),
    seed=st.integers(0, 2**32),
    cuts=st.lists(st.integers(0, 200), max_size=5),
    threads=st.integers(1, 4),
)
@settings(deadline=None, derandomize=True, max_examples=25)
def test_codes_depend_on_neither_batches_nor_threads(
    draw, rank, scale, seed, cuts, threads
):
    keys = f"draw={draw},rank={rank},scale={scale},seed={seed}"
    hash = trained(keys, nbits=64, p=40, t=8)
    codes, margins = hash.encode(QUERIES), hash.apply(QUERIES)
    ends = sorted([0, *cuts, 200])
    before = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(threads)
        parts = [QUERIES[a:b] for a, b in zip(ends, ends[1:])]
        np.testing.assert_array_equal(
            np.vstack([hash.encode(part) for part in parts]), codes
        )
        np.testing.assert_array_equal(
            np.vstack([hash.apply(part) for part in parts]), margins
        )
        # training too
        twin = trained(keys, nbits=64, p=40, t=8)
        np.testing.assert_array_equal(weights_of(twin), weights_of(hash))
    finally:
        faiss.omp_set_num_threads(before)


# ------------------------------------------------- kernel PCA, and Nystroem


@pytest.mark.parametrize("kernel", REFERENCES)
@pytest.mark.parametrize("rank", [4, 32, 64])
@pytest.mark.parametrize("scale", [0, 3])
def test_gaussian_draws_are_hyperplanes_after_kernel_pca(kernel, rank, scale):
    """Margins are <z(x), g>, z the scores of scikit-learn's KernelPCA and g a
    standard normal vector."""
    nbits = 512
    hash = trained(
        f"draw=gauss,rank={rank},scale={scale}", kernel, nbits=nbits
    )
    y, kappa = landmarks_of(hash), REFERENCES[kernel]
    pca = KernelPCA(rank, kernel="precomputed", eigen_solver="dense")
    Z = pca.fit_transform(transformed(kappa(y, y), scale))
    np.testing.assert_allclose(
        vector(hash.map.eigenvalues), pca.eigenvalues_, rtol=1e-4
    )
    G, _, found_rank, _ = np.linalg.lstsq(Z, hash.apply(y).astype(float), None)
    assert found_rank == rank

    # held out
    Z_held = pca.transform(transformed(kappa(QUERIES, y), scale))
    margins = hash.apply(QUERIES)
    assert relative_error(margins, Z_held @ G) <= 1e-3

    # G has independent standard normal entries
    assert stats.kstest(G.ravel(), "norm").pvalue > FAILURE
    low, high = stats.chi2.ppf([FAILURE / rank, 1 - FAILURE / rank], nbits)
    squares = (G**2).sum(axis=1)
    assert squares.min() >= low and squares.max() <= high
    off = (G @ G.T)[np.triu_indices(rank, 1)] / nbits
    assert np.abs(off).max() <= 8 / np.sqrt(nbits)


def test_hamming_distances_of_landmarks_are_angles_in_feature_space():
    """Charikar's theorem, for the centred features of the landmarks."""
    nbits = 1 << 14
    for center, rank in ((1, 0), (1, 8), (0, 8)):
        hash = trained(
            f"draw=gauss,center={center},rank={rank}", nbits=nbits, p=60
        )
        y = landmarks_of(hash)
        K = chi2(y, y)
        theta, U = spectrum(K)
        U = U[:, : rank or None]
        theta = theta[: rank or None]
        rows = K - K.mean(axis=0) if center else K
        Z = rows @ U / np.sqrt(theta)
        norms = np.linalg.norm(Z, axis=1)
        angle = np.arccos(np.clip(Z @ Z.T / norms / norms[:, None], -1, 1))
        pairs = np.triu_indices(60, 1)
        measured = hamming(hash.encode(y), hash.encode(y))[pairs] / nbits
        expected = angle[pairs] / np.pi
        bound = hoeffding(len(expected), nbits)
        assert bound < 0.04 < np.ptp(expected)
        assert np.abs(measured - expected).max() <= bound


@pytest.mark.parametrize("kernel", REFERENCES)
def test_nystrom_features_are_those_of_scikit_learn_up_to_rotation(kernel):
    hash = trained("nystrom=1,draw=gauss,center=0,tolerance=0", kernel)
    y, kappa = landmarks_of(hash), REFERENCES[kernel]
    reference = Nystroem(
        lambda a, b: kappa(a[None], b[None])[0, 0], n_components=100
    ).fit(y)
    Z, Z_held = reference.transform(y), reference.transform(QUERIES)
    # g from the landmarks' rows; then the features behind held-out margins
    G = np.linalg.lstsq(Z, hash.apply(y).astype(float), None)[0]
    margins = hash.apply(QUERIES).astype(float)
    assert relative_error(margins, Z_held @ G) <= 1e-3
    assert stats.kstest(G.ravel(), "norm").pvalue > FAILURE
    features = margins @ np.linalg.pinv(G)
    assert relative_error(features @ features.T, Z_held @ Z_held.T) <= 1e-3

    # and without scikit-learn's basis, from the weights: W W' is the mean of
    # K^-1/2 g g' K^-1/2, so that features are W K up to a rotation
    K = kappa(y, y)
    theta, U = spectrum(K, nystrom=True, tolerance=0)
    own = weights_of(hash) @ (U * np.sqrt(theta))
    assert stats.kstest(own.ravel(), "norm").pvalue > FAILURE


@pytest.mark.parametrize("rank", [0, 16])
def test_centred_nystrom_and_kernel_pca_differ(rank):
    one, other = (
        trained(f"nystrom={n},draw=gauss,rank={rank}") for n in (0, 1)
    )
    assert vector(other.map.eigenvalues)[0] > 5 * vector(one.map.eigenvalues)[0]
    assert relative_error(other.apply(QUERIES), one.apply(QUERIES)) > 0.1


def test_expected_hamming_is_the_angle():
    for keys in ("", "center=0", "scale=3", "scale=3,center=0"):
        hash = trained(keys, nbits=64)
        y = landmarks_of(hash)
        K = transformed(chi2(y, y), hash.map.scale)
        off = K[~np.eye(100, dtype=bool)].mean() if hash.map.center else 0
        assert hash.mean_value == pytest.approx(off, rel=1e-4, abs=1e-9)
        # where the cosine is in range
        lowest = 2 * off - 1
        if hash.map.scale:
            lowest = 1 + np.log(max(lowest, 1e-3)) / hash.map.scale
        values = np.linspace(max(0, lowest) + 0.01, 1, 30)
        cosine = (transformed(values, hash.map.scale) - off) / (1 - off)
        bits = [hash.expected_hamming(float(k)) for k in values]
        np.testing.assert_allclose(
            bits, 64 * np.arccos(np.clip(cosine, -1, 1)) / np.pi, atol=1e-2
        )
        np.testing.assert_allclose(
            [hash.kernel_estimate(b) for b in bits], values, atol=1e-5
        )


# --------------------------------------------------------------- real data


def data_set(name):
    """20,000 histograms and 500 queries of real data, and all kernel values."""
    folder = os.environ.get("FAISS_EXT_DATA")
    if name == "digits":
        return BASE, QUERIES, 200, 20
    if not folder or not (Path(folder) / name).is_dir():
        pytest.skip(
            f"needs real data: let FAISS_EXT_DATA name a folder with {name}/"
        )
    data = script("datasets").load(folder, name, queries=500, limit=20_000)
    return l1_normalized(data.base), l1_normalized(data.queries), 500, 50


def script(name):
    path = ROOT / "scripts" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"script_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.lru_cache(maxsize=1)
def recalls(name):
    """A function from the keys of a string to each query's share of the 100
    nearest among the first 100, and to the codes of the base."""
    base, queries, p, t = data_set(name)
    exact = faiss.index_factory(base.shape[1], "KFlat(chi2)", INNER_PRODUCT)
    exact.add(base)
    _, truth = exact.search(queries, 100)
    order = np.random.default_rng(3).permutation(len(base))
    y = base[order[:p]]
    kernel = faiss_ext.Chi2Kernel()
    K, rows, query_rows = (kernel.gram(z, y) for z in (y, base, queries))

    @functools.lru_cache(maxsize=None)
    def measure(keys):
        shares, codes = [], []
        for seed in (1, 2, 3) if name == "digits" else (1, 2):
            index = faiss.index_factory(
                p, f"KLSH256(precomputed,t={t},seed={seed},{keys}),BFlat"
            )
            index.train(K)
            index.add(rows)
            _, found = index.search(query_rows, 100)
            shares.append(
                [len(np.intersect1d(a, b)) / 100 for a, b in zip(found, truth)]
            )
            codes.append(index.hash.encode(rows[:1000]))
        return np.mean(shares, axis=0), np.vstack(codes)

    return measure


def assert_gain(measure, better, worse, least=0.0):
    """The recall of one variant is above another's: the mean difference of
    each query's is above `least` by four standard errors."""
    difference = measure(better)[0] - measure(worse)[0]
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    assert difference.mean() - 4 * error > least, (
        f"{better}: {measure(better)[0].mean():.3f}, "
        f"{worse}: {measure(worse)[0].mean():.3f}, standard error {error:.4f}"
    )


def mean_imbalance(codes):
    return np.abs(np.unpackbits(codes, axis=1).mean(axis=0) - 0.5).mean()


DATA = ["digits", "sceaux_sift", "mnist"]


@pytest.mark.parametrize("name", DATA)
def test_centring_the_query_gains(name):
    measure = recalls(name)
    least = 0.03 if name == "sceaux_sift" else 0
    assert_gain(measure, "center=1", "center=0", least)
    centred, plain = measure("center=1")[1], measure("center=0")[1]
    assert mean_imbalance(centred) < 0.5 * mean_imbalance(plain)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("center", [0, 1])
def test_low_rank_and_scale_gain(name, center):
    # which ones gain depends on the data
    keys = {
        "digits": "rank=32,scale=5",
        "sceaux_sift": "rank=64,scale=5",
        "mnist": "rank=128",
    }[name]
    assert_gain(
        recalls(name), f"center={center},{keys}", f"center={center}"
    )


@pytest.mark.parametrize("name", DATA)
def test_nystrom_collapses_with_clt_draws_only(name):
    measure = recalls(name)
    clt, gauss = "nystrom=1,center=0", "nystrom=1,center=0,draw=gauss,rank=64"
    assert_gain(measure, "center=0", clt, 0.1)
    assert_gain(measure, gauss, clt, 0.1)
    share = np.unpackbits(measure(clt)[1][:1000], axis=1).mean(axis=0)
    assert np.mean(np.minimum(share, 1 - share) < 0.01) > 0.9
    share = np.unpackbits(measure(gauss)[1][:1000], axis=1).mean(axis=0)
    assert np.mean(np.minimum(share, 1 - share) < 0.01) < 0.5


# --------------------------------------------------- choices made for the user


@pytest.mark.parametrize(
    "keys", ["rank=auto", "scale=auto", "rank=auto,scale=auto"]
)
def test_auto_parameters_are_seeded_and_then_as_if_given(keys):
    x = BASE[:500]
    one, same = (trained(f"{keys},center=0", p=120, x=x) for _ in range(2))
    rank, scale = one.map.rank, one.map.scale
    assert (rank, scale) == (same.map.rank, same.map.scale)
    np.testing.assert_array_equal(one.encode(QUERIES), same.encode(QUERIES))
    assert one.map.auto_rank == ("rank=" in keys)
    assert one.map.auto_scale == ("scale=" in keys)
    if one.map.auto_rank:
        full = trained(f"scale={scale}", p=120, x=x).map.eigenvalues.size()
        assert rank in (16, 32, 64, full)
    else:
        assert rank == 0
    assert scale in ((0, 1, 3, 5, 7, 9) if one.map.auto_scale else (0,))
    given = trained(f"rank={rank},scale={scale},center=0", p=120, x=x)
    assert not given.map.auto_rank and not given.map.auto_scale
    np.testing.assert_array_equal(given.encode(QUERIES), one.encode(QUERIES))


def test_auto_parameters_gain_on_other_queries():
    exact = faiss.index_factory(64, "KFlat(chi2)", INNER_PRODUCT)
    exact.add(BASE)
    truth = exact.search(QUERIES, 10)[1]
    shares = {}
    for keys in ("center=0", "rank=auto,scale=auto,center=0"):
        index = faiss.index_factory(64, f"KLSH64(chi2,p=150,t=20,{keys}),BFlat")
        index.train(BASE)
        index.add(BASE)
        found = index.search(QUERIES, 100)[1]
        shares[keys] = np.array(
            [len(np.intersect1d(a, b)) for a, b in zip(found, truth)]
        )
    plain, auto = shares.values()
    difference = auto - plain
    assert difference.mean() > 5 * difference.std(ddof=1) / np.sqrt(200)


def test_auto_needs_vectors_and_enough_of_them():
    with pytest.raises(RuntimeError, match="at least 126 training vectors"):
        trained("rank=auto", x=BASE[:110], p=100)
    with pytest.raises(RuntimeError, match="'auto' of rank"):
        faiss_ext.kernel_hash_factory(100, "KLSH64(precomputed,rank=auto)")


# ------------------------------------------------------------- precomputed


@pytest.mark.parametrize(
    "keys", ["", "rank=16", "draw=gauss,scale=3", "center=0", "nystrom=1"]
)
def test_precomputed_rows_give_the_codes_of_the_kernel(keys):
    hash = trained(keys)
    y, kernel = landmarks_of(hash), faiss_ext.Chi2Kernel()
    rows = faiss_ext.kernel_hash_factory(
        100, ",".join(filter(None, ["KLSH256(precomputed,t=20", keys])) + ")"
    )
    assert rows.map.kernel is None and rows.map.p == rows.d_in == 100
    # no kernel here to normalise by, so that it must be the same one
    plain = trained(f"normalize=0,{keys}" if keys else "normalize=0")
    rows.train(kernel.gram(y))
    np.testing.assert_array_equal(landmarks_of(plain), y)
    np.testing.assert_array_equal(weights_of(rows), weights_of(plain))
    np.testing.assert_array_equal(
        rows.encode(kernel.gram(QUERIES, y)), plain.encode(QUERIES)
    )
    assert relative_error(plain.apply(QUERIES), hash.apply(QUERIES)) < 1e-2
    twin = pickle.loads(pickle.dumps(rows))
    assert twin.map.kernel is None
    np.testing.assert_array_equal(
        twin.encode(kernel.gram(QUERIES, y)), plain.encode(QUERIES)
    )


def test_precomputed_matrices_are_checked():
    def train(K):
        hash = faiss_ext.kernel_hash_factory(40, "KLSH64(precomputed)")
        hash.train(K)

    K = faiss_ext.Chi2Kernel().gram(BASE[:40])
    train(K)
    with pytest.raises(RuntimeError, match="40 x 40 matrix"):
        train(K[:39])
    bent = K.copy()
    bent[3, 7] += 0.1
    with pytest.raises(RuntimeError, match=r"not symmetric.*\(7, 3\)"):
        train(bent)
    signs = np.diag([1.0, -1.0] * 20)
    with pytest.raises(RuntimeError, match="not positive semi-definite"):
        train(signs)
    # distances in place of kernel values
    with pytest.raises(RuntimeError, match="not positive semi-definite"):
        train(2 - 2 * K)
    with pytest.raises(RuntimeError, match="same for all pairs"):
        train(np.ones((40, 40)))
    bent[3, 7] = np.nan
    with pytest.raises(RuntimeError, match="component 7 of vector 3"):
        train(bent)
    hash = faiss_ext.kernel_hash_factory(40, "KLSH64(precomputed)")
    with pytest.raises(RuntimeError, match="no landmarks to set"):
        hash.set_landmarks(K)


def test_strings_are_found_by_their_misspellings():
    example = script("example_strings")
    words = example.python_words()
    assert len(words) > 2000 and {"separate", "receive"} <= set(words)
    rng = np.random.default_rng(1)
    meant = rng.choice([w for w in words if len(w) >= 6], 200, replace=False)
    misspelt = []  # two neighbouring letters inside have changed places
    for word in meant:
        i = rng.integers(1, len(word) - 2)
        misspelt.append(word[:i] + word[i + 1] + word[i] + word[i + 2:])
    results = list(example.search(words, misspelt))
    assert all(len(set(found)) == 50 for found in results)
    hits = sum(found[0] == word for word, found in zip(meant, results))
    # by chance: 1 in thousands. More than four in five, beyond doubt
    assert stats.binom.sf(hits - 1, 200, 0.8) < 1e-6, f"{hits} of 200"

    # the candidates are in the order of the kernel, by its definition
    def features(word):
        pairs = Counter(a + b for a, b in zip("^" + word, word + "$"))
        return pairs + Counter(word)

    def product(a, b):
        a, b = features(a), features(b)
        return sum(a[gram] * b[gram] for gram in a)

    for word, found in zip(misspelt[:20], results):
        values = [
            product(word, other) / np.sqrt(product(other, other))
            for other in found
        ]
        assert (np.diff(values) <= 1e-6).all()


def test_the_example_of_strings_shows_what_is_right():
    lines = run_script(ROOT / "scripts" / "example_strings.py").splitlines()
    header = next(i for i, l in enumerate(lines) if l.startswith("misspelt"))
    rows = [line.split() for line in lines[header + 1:-2]]
    assert len(rows) >= 10 and {"recieve", "seperate"} <= {r[0] for r in rows}
    first = 0
    for misspelt, meant, found, right, *_ in rows:
        assert misspelt != meant
        assert right == ("yes" if found == meant else "no")
        first += found == meant
    assert first >= 0.9 * len(rows)
    n = len(rows)
    said = re.search(rf" (\d+) of {n}, .*first five .* (\d+) of {n}", lines[-1])
    assert int(said[1]) == first <= int(said[2]) <= n


# -------------------------------------------------- processes of their own


def environment():
    path = [str(Path(faiss_ext.__file__).resolve().parents[1])]
    path += filter(None, [os.environ.get("PYTHONPATH")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def run_script(*command, timeout=120):
    """What Python prints that runs a script in a process of its own."""
    result = subprocess.run(
        [sys.executable, *map(str, command)],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert result.returncode == 0, (
        f"exit status {result.returncode}\n{result.stderr}"
    )
    return result.stdout


def run_code(code):
    """The same for code, which finds x and f, a slow kernel of NumPy's."""
    return run_script(
        "-c",
        """
import faiss, faiss_ext, numpy as np, os, signal, sys, threading, time
x = np.random.default_rng(1).random((300, 8)).astype("float32")
def f(X, Y):
    return X @ Y.T
"""
        + code,
    )


# --------------------------------------------------- kernels of functions


def callback(function=chi2):
    return faiss_ext.CallbackKernel(function)


def callback_hash(kernel, nbits=64, p=50, x=BASE):
    hash = faiss_ext.KernelizedLSH(x.shape[1], nbits, kernel)
    hash.map.p, hash.t = p, 10
    return hash


@pytest.mark.parametrize("name", REFERENCES)
def test_a_callback_gives_the_values_of_the_built_in_kernel(name):
    built_in = faiss_ext.kernel_factory(name)
    kernel = callback(REFERENCES[name])
    assert isinstance(kernel, faiss_ext.Kernel) and kernel.is_trained
    for x, y in ((QUERIES, BASE[:300]), (QUERIES[:1], BASE), (BASE, BASE[:1])):
        values = kernel.gram(x, y)
        assert values.dtype == np.float32
        np.testing.assert_allclose(values, built_in.gram(x, y), rtol=1e-5)
    assert kernel(BASE[0], BASE[1]) == pytest.approx(
        built_in(BASE[0], BASE[1]), rel=1e-5
    )


def test_a_callback_sees_float32_arrays_of_its_own():
    seen = []

    def f(X, Y):
        seen.append((X, Y))
        X, Y = X * 1, Y * 1
        return X @ Y.T

    kernel = callback(f)
    x, y = QUERIES[:70], BASE[:30]
    expected = x @ y.T
    np.testing.assert_allclose(kernel.gram(x, y), expected, rtol=1e-5)
    assert seen
    for X, Y in seen:
        for z in (X, Y):
            assert type(z) is np.ndarray and z.dtype == np.float32
            assert z.flags.c_contiguous and z.shape[1] == 64
    # they stay valid: together they are all rows
    rows = np.vstack([X for X, _ in seen])
    np.testing.assert_array_equal(np.unique(rows, axis=0), np.unique(x, axis=0))
    for _, Y in seen:
        np.testing.assert_array_equal(Y, y)


def test_what_a_callback_does_to_its_arguments_stays_there():
    def f(X, Y):
        values = X @ Y.T
        X[...] = 7
        Y[...] = 7
        return values

    x = QUERIES[:70].copy()
    index = faiss_ext.IndexFlatKernel(64, callback(f), INNER_PRODUCT)
    index.add(BASE[:100])
    index.search(x, 3)
    np.testing.assert_array_equal(x, QUERIES[:70])
    np.testing.assert_array_equal(index.reconstruct_n(0, 100), BASE[:100])


@pytest.mark.parametrize(
    "convert",
    [
        lambda values: values.astype("float64"),
        lambda values: np.asfortranarray(values),
        lambda values: values.tolist(),
        lambda values: np.round(values * 8).astype("int16"),
        lambda values: values > 0.5,
    ],
    ids="float64 fortran list int16 bool".split(),
)
def test_a_callback_may_return_any_kind_of_array(convert):
    x, y = QUERIES[:9], BASE[:20]
    values = callback(lambda X, Y: convert(chi2(X, Y))).gram(x, y)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, convert(chi2(x, y)), rtol=1e-6)


@pytest.mark.parametrize("metric", [faiss.METRIC_L2, INNER_PRODUCT])
def test_exact_search_by_a_callback(metric):
    ours = faiss_ext.IndexFlatKernel(64, callback(), metric)
    theirs = faiss_ext.IndexFlatKernel(64, faiss_ext.Chi2Kernel(), metric)
    for index in (ours, theirs):
        index.add(BASE[:500])
    D, I = ours.search(QUERIES[:50], 5)
    expected_D, expected_I = theirs.search(QUERIES[:50], 5)
    np.testing.assert_allclose(D, expected_D, atol=1e-6)
    assert (I == expected_I).mean() > 0.99  # ties of rounding


@pytest.mark.parametrize("keys", [{}, {"scale": 3.0}, {"rank": 16}])
def test_a_hash_by_a_callback(keys):
    ours = callback_hash(callback(), 256)
    theirs = callback_hash(faiss_ext.Chi2Kernel(), 256)
    for hash in (ours, theirs):
        for key, value in keys.items():
            setattr(hash.map, key, value)
        hash.train(BASE)
    np.testing.assert_array_equal(landmarks_of(ours), landmarks_of(theirs))
    found, expected = ours.apply(QUERIES), theirs.apply(QUERIES)
    assert relative_error(found, expected) < 1e-2
    sure = np.abs(expected) > 1e-2 * np.abs(expected).max()
    assert sure.mean() > 0.9
    np.testing.assert_array_equal((found >= 0)[sure], (expected >= 0)[sure])

    for cls in (faiss_ext.IndexKernelHash, faiss_ext.IndexBinaryKernelHash):
        index = cls(ours, faiss.IndexBinaryFlat(256))
        index.add(BASE)
        D, _ = index.search(BASE[:20], 1)
        assert (D == 0).all()
        del index


def test_a_kernel_made_of_a_callback():
    counts = shuffled_digits()[:50]
    kernel = faiss_ext.NormalizedKernel(callback())
    expected = faiss_ext.kernel_factory("normalized(chi2)").gram(counts)
    np.testing.assert_allclose(kernel.gram(counts), expected, rtol=1e-5)
    kernel = faiss_ext.ExponentialKernel(kernel, 3.0)
    np.testing.assert_allclose(
        kernel.gram(counts), np.exp(3 * (expected - 1)), rtol=1e-5
    )


def test_a_graph_of_a_callback():
    base = BASE[:150]
    exact = faiss_ext.IndexFlatKernel(64, faiss_ext.Chi2Kernel(), INNER_PRODUCT)
    exact.add(base)
    flat = faiss_ext.IndexFlatKernel(64, callback(), INNER_PRODUCT)
    graph = faiss.IndexHNSW(flat, 8)
    graph.add(base)
    graph.hnsw.efSearch = 64
    expected = exact.search(QUERIES[:20], 1)[1]
    D, I = graph.search(QUERIES[:20], 1)
    assert (I == expected).mean() >= 0.9
    np.testing.assert_allclose(
        np.abs(D[:, 0]), chi2(QUERIES[:20], base)[range(20), I[:, 0]], rtol=1e-5
    )


def test_reranking_by_a_callback():
    codes = faiss.index_factory(64, "KLSH64(chi2,p=50,t=10),BFlat")
    codes.train(BASE)
    flat = faiss_ext.IndexFlatKernel(64, callback(), faiss.METRIC_L2)
    index = faiss.IndexRefine(codes, flat)
    index.add(BASE[:300])
    index.k_factor = 300
    D, I = index.search(QUERIES[:20], 3)
    distance = 2 - 2 * chi2(QUERIES[:20], BASE[:300])
    np.testing.assert_allclose(D, np.sort(distance, axis=1)[:, :3], atol=1e-5)


class Custom(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)
        self.two = two


class Base(BaseException):
    pass


ERRORS = [
    ValueError("no such value"),
    ZeroDivisionError("one by zero"),
    KeyError("key"),
    RuntimeError("a message"),
    MemoryError(),
    StopIteration(3),
    OSError(2, "No such file"),
    UnicodeDecodeError("utf-8", b"x", 0, 1, "why"),
    Custom("one", 2),
    Base(),
    SystemExit(5),
    GeneratorExit(),
    KeyboardInterrupt(),
]


def raising_after(calls, error):
    count = [0]

    def the_callback(X, Y):
        count[0] += 1
        if count[0] > calls:
            raise error
        return chi2(X, Y)

    return callback(the_callback)


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("calls", [0, 2])
def test_exceptions_of_a_callback_reach_the_caller(error, calls):
    error.__traceback__ = None
    with pytest.raises(type(error)) as info:
        raising_after(calls, error).gram(BASE, BASE)
    assert info.value is error
    names = [f.name for f in traceback.extract_tb(error.__traceback__)]
    assert names[-1] == "the_callback" and "gram" in names
    # and all is well afterwards
    assert callback().gram(BASE[:3]).shape == (3, 3)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_exceptions_reach_every_caller(threads):
    error = Custom("one", 2)
    working = callback_hash(callback())
    working.train(BASE)
    codes = working.encode(QUERIES)
    broken = [False]

    def f(X, Y):
        if broken[0]:
            raise error
        return chi2(X, Y)

    hash = callback_hash(callback(f))
    hash.train(BASE)
    index = faiss_ext.IndexKernelHash(hash, faiss.IndexBinaryFlat(64))
    flat = faiss_ext.IndexFlatKernel(64, callback(f))
    index.add(BASE[:100])
    flat.add(BASE[:100])
    untrained = callback_hash(callback(f))
    before = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(threads)
        broken[0] = True
        for function in (
            lambda: hash.encode(BASE),
            lambda: hash.apply(BASE),
            lambda: untrained.train(BASE),
            lambda: index.add(BASE),
            lambda: index.search(QUERIES, 3),
            lambda: index.range_search(QUERIES, 3),
            lambda: flat.search(QUERIES, 3),
            lambda: flat.search(QUERIES[:1], 3),
            lambda: flat.range_search(QUERIES, 0.5),
            lambda: hash.map.kernel(BASE[0], BASE[1]),
        ):
            with pytest.raises(Custom) as info:
                function()
            assert info.value is error and error.two == 2
    finally:
        faiss.omp_set_num_threads(before)
    assert not untrained.is_trained and index.ntotal == flat.ntotal == 100
    broken[0] = False
    np.testing.assert_array_equal(hash.encode(QUERIES), codes)
    untrained.train(BASE)
    np.testing.assert_array_equal(untrained.encode(QUERIES), codes)


@pytest.mark.parametrize(
    "wrap, call, error",
    [
        ("faiss.IndexHNSW(flat, 8)", "index.add(x)", "Custom()"),
        ("faiss.IndexHNSW(flat, 8)", "index.search(x[:1], 3)", "Custom()"),
        ("faiss.IndexHNSW(flat, 8)", "index.search(x, 3)", "SystemExit()"),
        (
            "faiss.IndexRefine(faiss.IndexFlatIP(8), flat)",
            "index.search(x, 3)",
            "Custom()",
        ),
    ],
)
def test_exceptions_inside_loops_of_faiss_are_raised_at_the_end(
    wrap, call, error
):
    output = run_code(
        f"""
x = x[:60]
class Custom(Exception): pass
broken = False
def g(X, Y):
    if broken:
        raise {error}
    return f(X, Y)
flat = faiss_ext.IndexFlatKernel(
    8, faiss_ext.CallbackKernel(g), faiss.METRIC_INNER_PRODUCT)
index = {wrap}
index.add(x)
broken = True
try:
    {call}
except BaseException as e:
    print(type(e).__name__)
print("goes on")
"""
    )
    assert output == error.removesuffix("()") + "\ngoes on\n"


@pytest.mark.parametrize("threads", [1, 3])
def test_exceptions_inside_loops_of_faiss_reach_their_own_caller(threads):
    """Several Python threads at once, each with an index of its own."""
    output = run_code(
        f"""
faiss.omp_set_num_threads({threads})
class Custom(Exception): pass
def make(i):
    broken = []
    def g(X, Y):
        if i and broken:
            raise Custom(i)
        return f(X, Y)
    parts = faiss.IndexFlatIP(8), faiss_ext.IndexFlatKernel(
        8, faiss_ext.CallbackKernel(g), faiss.METRIC_INNER_PRODUCT)
    index = faiss.IndexRefine(*parts)
    index.add(x)
    index.k_factor = 3
    broken.append(True)
    return index, parts
indexes = [make(i) for i in range(4)]
results = [[] for _ in indexes]
def work(i):
    for _ in range(20):
        try:
            indexes[i][0].search(x[:10], 2)
            results[i].append(0)
        except Custom as e:
            results[i].append(e.args[0])
workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(results == [[i] * 20 for i in range(4)])
"""
    )
    assert output == "True\n"


def test_interrupts_end_loops_of_faiss_over_callbacks():
    """Soon, although those loops look for no interrupts themselves."""
    output = run_code(
        """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
def slow(X, Y):
    time.sleep(0.005)
    return f(X, Y)
flat = faiss_ext.IndexFlatKernel(8, faiss_ext.CallbackKernel(slow))
index = faiss.IndexRefine(faiss.IndexFlatL2(8), flat)
index.add(x)
index.k_factor = 100
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
start = time.time()
try:
    index.search(x[:100], 2)  # 20,000 calls
except KeyboardInterrupt:
    print("interrupted", time.time() - start < 20)
"""
    )
    assert output == "interrupted True\n"


def returning(values):
    return lambda X, Y: values(np.zeros((len(X), len(Y))))


@pytest.mark.parametrize(
    "function, error, message",
    [
        (returning(lambda v: v.T), ValueError, r"shape \(40, 30\), got"),
        (returning(lambda v: v[:-1]), ValueError, r"shape \(40, 30\)"),
        (returning(lambda v: v[:, :, None]), ValueError, r"\(40, 30, 1\)"),
        (returning(lambda v: v.ravel()), ValueError, r"got \(1200,\)"),
        (returning(lambda v: 0.5), ValueError, r"got \(\)"),
        (returning(lambda v: None), ValueError, r"got \(\)"),
        (returning(lambda v: v + np.nan), ValueError, "not finite"),
        (returning(lambda v: v + np.inf), ValueError, "not finite"),
        (returning(lambda v: v - 1e39), ValueError, "not finite"),
        (returning(lambda v: v + 1j), (TypeError, ValueError), ""),
        (returning(lambda v: v.astype("U1")), (TypeError, ValueError), ""),
        (returning(lambda v: v.astype(object)), (TypeError, ValueError), ""),
        (lambda X: X, TypeError, "argument"),
        (lambda: 1, TypeError, "argument"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_kernel_matrix_is_refused(function, error, message):
    with pytest.raises(error, match=message):
        callback(function).gram(QUERIES[:40], BASE[:30])


@pytest.mark.parametrize("thing", [None, 3, "chi2", np.zeros((2, 2))])
def test_what_cannot_be_called_is_refused(thing):
    with pytest.raises(TypeError, match="not callable"):
        callback(thing)


def test_numbers_that_are_not_finite_do_not_reach_a_callback():
    x = BASE.copy()
    x[5, 3] = np.nan
    calls = []
    with pytest.raises(RuntimeError, match="component 3 of vector 5"):
        callback(lambda X, Y: calls.append(1)).gram(x)
    assert not calls
    # negative components are the function's business
    assert callback(lambda X, Y: X @ Y.T).gram(-BASE[:3]).shape == (3, 3)


def test_no_vectors_need_no_call():
    calls = []
    kernel = callback(lambda X, Y: calls.append(1))
    nothing = np.zeros((0, 64))
    assert kernel.gram(nothing).shape == (0, 0)
    assert kernel.gram(nothing, BASE).shape == (0, 1597)
    assert kernel.gram(BASE, nothing).shape == (1597, 0)
    assert not calls


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "call", ["kernel.gram(X, X[:500])", "hash.encode(X)", "flat.search(X, 3)"]
)
def test_an_interrupt_inside_a_callback(threads, call):
    """Whichever thread the callback is in, and long before all is done."""
    output = run_code(
        f"""
faiss.omp_set_num_threads({threads})
armed, calls = False, 0
def g(X, Y):
    global calls
    if armed:
        calls += 1
        if calls == 3:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.02)
    return f(X, Y)
kernel = faiss_ext.CallbackKernel(g)
hash = faiss_ext.KernelizedLSH(8, 64, kernel)
hash.map.p, hash.t, hash.map.normalize = 50, 10, False
hash.train(x)
X = np.tile(x, (200, 1))
flat = faiss_ext.IndexFlatKernel(8, kernel, faiss.METRIC_INNER_PRODUCT)
flat.add(x)
armed = True
# a shell may have started this process with interrupts ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    {call}
    print("went on", calls)
except KeyboardInterrupt:
    print("interrupted", calls)
armed = False
np.testing.assert_allclose(kernel.gram(x), x @ x.T, rtol=1e-5)
"""
    )
    word, calls = output.split()
    assert word == "interrupted" and int(calls) < 200  # of more than 300


def test_callbacks_from_several_python_threads():
    """Many at once, some of which fail, on many threads each."""
    output = run_code(
        """
import faulthandler
from concurrent.futures import ThreadPoolExecutor
faulthandler.dump_traceback_later(60, exit=True)
class Custom(Exception): pass
def g(X, Y):
    if X[0, 0] < 0:
        time.sleep(0.001)
        raise Custom(threading.get_ident())
    return f(X, Y)
kernel = faiss_ext.CallbackKernel(g)
hash = faiss_ext.KernelizedLSH(8, 64, kernel)
hash.map.p, hash.t = 50, 10
hash.train(x)
codes, gram = hash.encode(x), kernel.gram(x)
flat = faiss_ext.IndexFlatKernel(8, kernel)
flat.add(x)
D, I = flat.search(x, 3)
def work(i):
    if i % 5 == 0:
        try:
            kernel.gram(-x)
        except Custom:
            return
        raise AssertionError("no exception")
    if i % 5 == 1:
        np.testing.assert_array_equal(hash.encode(x[:50]), codes[:50])
    elif i % 5 == 2:
        np.testing.assert_array_equal(flat.search(x, 3)[1], I)
    elif i % 5 == 3:
        own = faiss_ext.CallbackKernel(lambda X, Y: f(X, Y) + i)
        np.testing.assert_allclose(own.gram(x), gram + i, rtol=1e-5)
    else:
        np.testing.assert_allclose(kernel.gram(x), gram, rtol=1e-5)
with ThreadPoolExecutor(8) as pool:
    list(pool.map(work, range(100)))
print("end")
"""
    )
    assert output == "end\n"


def test_a_callback_may_use_faiss_ext_itself():
    output = run_code(
        """
import faulthandler
faulthandler.dump_traceback_later(60, exit=True)
inner = faiss_ext.Chi2Kernel()
innermost = faiss_ext.CallbackKernel(lambda X, Y: inner.gram(X, Y))
def g(X, Y):
    index = faiss_ext.index_factory(8, "KLSH64(chi2,p=20,t=5),BFlat")
    index.train(x)
    index.add(x[:30])
    index.search(X[:1], 3)
    return innermost.gram(X, Y)
kernel = faiss_ext.CallbackKernel(g)
np.testing.assert_allclose(
    kernel.gram(x[:200], x), inner.gram(x[:200], x), rtol=1e-6)
hash = faiss_ext.KernelizedLSH(8, 64, kernel)
hash.map.p, hash.t, hash.map.normalize = 20, 5, False
hash.train(x)
same = faiss_ext.KernelizedLSH(8, 64, inner)
same.map.p, same.t, same.map.normalize = 20, 5, False
same.train(x)
np.testing.assert_array_equal(hash.encode(x), same.encode(x))
# an exception through two of them
def bad(X, Y):
    raise LookupError("deep")
deep = faiss_ext.CallbackKernel(bad)
outer = faiss_ext.CallbackKernel(lambda X, Y: deep.gram(X, Y))
try:
    outer.gram(x)
except LookupError as e:
    print(e)
"""
    )
    assert output == "deep\n"


def test_a_callback_is_freed_with_the_last_that_holds_it():
    class Function:
        def __call__(self, X, Y):
            return chi2(X, Y)

    function = Function()
    gone = weakref.ref(function)
    kernel = callback(function)
    del function
    holders = {
        "kernel": kernel,
        "copy": kernel.copy(),
        "normalized": faiss_ext.NormalizedKernel(kernel),
        "hash": callback_hash(kernel),
        "flat": faiss_ext.IndexFlatKernel(64, kernel),
    }
    holders["index"] = faiss_ext.IndexKernelHash(
        holders["hash"], faiss.IndexBinaryFlat(64)
    )
    holders["hash copy"] = holders["hash"].copy()
    holders["graph"] = faiss.IndexHNSW(
        faiss_ext.IndexFlatKernel(64, kernel), 8
    )
    holders["inner"] = holders["normalized"]
    del kernel
    for name in list(holders):
        gc.collect()
        assert gone() is not None, name
        holder = holders.pop(name)
        if name == "copy":
            np.testing.assert_allclose(
                holder.gram(BASE[:3]), chi2(BASE[:3], BASE[:3]), rtol=1e-5
            )
        if name.startswith("hash"):
            holder.train(BASE)
            assert holder.map.kernel(BASE[0], BASE[0]) == pytest.approx(1)
        del holder
    gc.collect()
    assert gone() is None


def test_failed_calls_do_not_keep_callbacks_or_exceptions():
    class Local(Exception):
        pass

    def make():
        def function(X, Y):
            raise Local

        kernel = callback(function)
        with pytest.raises(Local) as info:
            kernel.gram(BASE)
        return weakref.ref(function), weakref.ref(info.value)

    references = make()
    gc.collect()
    assert [r() for r in references] == [None, None]


def test_callbacks_left_at_exit_are_no_trouble():
    output = run_code(
        """
kernel = faiss_ext.CallbackKernel(f)
hash = faiss_ext.KernelizedLSH(8, 64, kernel)
flat = faiss_ext.IndexFlatKernel(8, kernel)
class Holder: pass
cycle = Holder()
cycle.itself, cycle.kernel = cycle, faiss_ext.CallbackKernel(lambda X, Y: 0)
print("end")
"""
    )
    assert output == "end\n"


@pytest.mark.parametrize(
    "make",
    [
        callback,
        lambda: faiss_ext.NormalizedKernel(callback()),
        lambda: faiss_ext.ExponentialKernel(callback(), 2.0),
        lambda: callback_hash(callback()),
        lambda: faiss_ext.IndexFlatKernel(64, callback()),
        lambda: faiss_ext.IndexKernelHash(
            callback_hash(callback()), faiss.IndexBinaryFlat(64)
        ),
        lambda: faiss_ext.IndexBinaryKernelHash(
            callback_hash(callback()), faiss.IndexBinaryFlat(64)
        ),
    ],
    ids="kernel normalized exponential hash flat index binary".split(),
)
def test_callbacks_are_not_pickled_and_the_message_says_so(make):
    thing = make()
    with pytest.raises(Exception, match="(?i)callback.*(cannot be|no files)"):
        pickle.dumps(thing)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_callbacks_are_copied(copied):
    for kernel in (callback(), faiss_ext.NormalizedKernel(callback())):
        twin = copied(kernel)
        assert type(twin) is type(kernel)
        np.testing.assert_array_equal(
            twin.gram(BASE[:9]), kernel.gram(BASE[:9])
        )
    hash = callback_hash(callback())
    hash.train(BASE)
    np.testing.assert_array_equal(
        copied(hash).encode(QUERIES), hash.encode(QUERIES)
    )


def indexes_of_callbacks():
    hash = callback_hash(callback())
    hash.train(BASE)
    codes = faiss_ext.IndexKernelHash(hash, faiss.IndexBinaryFlat(64))
    flat = faiss_ext.IndexFlatKernel(64, callback())
    for index in (codes, flat):
        index.add(BASE[:100])
    return {"codes": codes, "flat": flat}


@pytest.mark.parametrize("name", ["codes", "flat"])
def test_indexes_of_callbacks_are_not_written(name, tmp_path):
    index = indexes_of_callbacks()[name]
    path = tmp_path / "index"
    for write in (
        lambda: faiss.write_index(index, str(path)),
        lambda: faiss.serialize_index(index),
    ):
        with pytest.raises(RuntimeError, match="CallbackKernel.*no files"):
            write()


@pytest.mark.parametrize("name", ["codes", "flat"])
@pytest.mark.parametrize("clone", [faiss.clone_index, copy.deepcopy])
def test_indexes_of_callbacks_are_cloned(name, clone):
    """Although copies go through a file format, which has no place for them."""
    index = indexes_of_callbacks()[name]
    twin = clone(index)
    for expected, found in zip(index.search(QUERIES, 5), twin.search(QUERIES, 5)):
        np.testing.assert_array_equal(found, expected)
    index.reset()
    assert twin.ntotal == 100
    # and files are written as before
    with pytest.raises(RuntimeError, match="CallbackKernel.*no files"):
        faiss.serialize_index(twin)


def test_a_callback_is_not_called_for_single_values_of_a_batch():
    """Calls cost more than values: a few per batch, not one per vector."""
    calls = [0]

    def f(X, Y):
        calls[0] += 1
        return chi2(X, Y)

    hash = callback_hash(callback(f))
    hash.train(BASE)
    calls[0] = 0
    hash.encode(BASE)
    assert calls[0] <= len(BASE) / 4
    index = faiss_ext.IndexFlatKernel(64, callback(f))
    index.add(BASE)
    calls[0] = 0
    index.search(QUERIES[:16], 3)
    assert calls[0] <= len(BASE) / 4


# ------------------------------------------------------ sorted permutations


def brute_force(codes, queries, k):
    index = faiss.IndexBinaryFlat(8 * codes.shape[1])
    index.add(codes)
    return index.search(queries, k)


def permuted_stats():
    s = faiss_ext.cvar.indexBinaryPermuted_stats
    return s.nq, s.ncandidates, s.ntotal


BPERM = "KLSH128(chi2,p=100,t=20),BPerm"


@pytest.mark.parametrize(
    "string",
    [
        f"{BPERM}",
        f"{BPERM}(eps=0.5,B=10)",
        f"{BPERM}(eps=1)",
        f"{BPERM}(M=40,B=5)",
        f"{BPERM}(M=20,B=0,seed=7,max_gb=1)",
        "SIK128(gaussian),BPerm(eps=1,B=10)",
        f"IDMap2,{BPERM}(M=20,B=20)",
        f"{BPERM}(M=10,B=20),Refine(KFlat(chi2))",
        "PCA32,SIK128(gaussian),BPerm(M=10)",
    ],
)
def test_permuted_search_by_string(string, tmp_path):
    index = faiss.index_factory(64, string)
    index.train(BASE)
    if "IDMap" in string:
        index.add_with_ids(BASE, np.arange(len(BASE)))
    else:
        index.add(BASE)
    D, I = index.search(QUERIES, 10)
    assert I.max() < len(BASE)
    # a vector is found itself, at distance 0
    own_D, own_I = index.search(BASE[:50], 1)
    assert np.abs(own_D).max() < 1e-5
    path = str(tmp_path / "index")
    faiss.write_index(index, path)
    for twin in (
        faiss.read_index(path),
        faiss.deserialize_index(faiss.serialize_index(index)),
        faiss.clone_index(index),
        pickle.loads(pickle.dumps(index)),
        copy.deepcopy(index),
    ):
        found = twin.search(QUERIES, 10)
        np.testing.assert_array_equal(found[0], D)
        np.testing.assert_array_equal(found[1], I)


@pytest.mark.parametrize("string", ["BPerm(M=30,B=5)", "BPerm(eps=0.8,B=3)"])
def test_permuted_binary_indexes_by_string(string, tmp_path):
    hash = trained(nbits=128)
    codes, queries = hash.encode(BASE), hash.encode(QUERIES)
    index = faiss.index_binary_factory(64, f"KLSH128(chi2,p=100,t=20),{string}")
    index.train(BASE)
    index.add(BASE)
    storage = index.storage
    assert type(storage) is faiss_ext.IndexBinaryPermuted
    D, I = index.search(QUERIES, 5)
    for found in (storage.search(queries, 5), index.search(queries, 5)):
        np.testing.assert_array_equal(found[0], D)
        np.testing.assert_array_equal(found[1], I)
    # the true distances, in order, ties by id
    distance = hamming(queries, codes)
    np.testing.assert_array_equal(np.take_along_axis(distance, I, 1), D)
    key = D.astype(np.int64) * len(BASE) + I
    assert (np.diff(key, axis=1) > 0).all()
    assert (D[:, 0] == distance.min(axis=1)).mean() > 0.9

    path = str(tmp_path / "index")
    for thing in (index, storage):
        faiss.write_index_binary(thing, path)
        for twin in (
            faiss.read_index_binary(path),
            faiss_ext.clone_binary_index(thing),
            pickle.loads(pickle.dumps(thing)),
        ):
            assert type(twin) is type(thing)
            found = twin.search(queries, 5)
            np.testing.assert_array_equal(found[0], D)
            np.testing.assert_array_equal(found[1], I)


def test_permuted_parameters_by_string():
    index = faiss.index_factory(
        64, f"{BPERM}(eps=0.7,B=3,seed=9,max_gb=0.5)"
    )
    storage = index.storage
    assert (storage.eps, storage.M, storage.B) == (0.7, 0, 3)
    assert storage.seed == 9 and storage.max_gb == 0.5
    assert storage.num_lists(1000) == np.ceil(2 * 1000 ** (1 / 1.7))
    assert faiss.index_factory(64, f"{BPERM}(M=13)").storage.num_lists(9) == 13
    for bad in ("eps=0", "M=-1", "B=-1", "M=3,eps=1", "x=1", "eps=nan"):
        with pytest.raises(RuntimeError, match="BPerm"):
            faiss.index_factory(64, f"{BPERM}({bad})")


@given(
    n=st.integers(0, 300),
    nbytes=st.integers(1, 40),
    cuts=st.lists(st.integers(0, 300), max_size=4),
    k=st.integers(1, 20),
    spread=st.integers(1, 255),
    seed=st.integers(0, 1 << 30),
)
@settings(deadline=None, derandomize=True, max_examples=60)
def test_permuted_search_with_all_candidates_is_the_flat_scan(
    n, nbytes, cuts, k, spread, seed
):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, spread, (n, nbytes), dtype="uint8")
    queries = rng.integers(0, spread, (10, nbytes), dtype="uint8")
    index = faiss_ext.IndexBinaryPermuted(8 * nbytes, 0.5, n)
    index.M = 3
    ends = sorted([0, *(min(c, n) for c in cuts), n])
    for a, b in zip(ends, ends[1:]):
        index.add(codes[a:b])
    faiss_ext.cvar.indexBinaryPermuted_stats.reset()
    D, I = index.search(queries, k)
    assert permuted_stats() == (10, 10 * n, 10 * n)

    distance = hamming(queries, codes).astype(int).reshape(10, n)
    order = np.argsort(distance, axis=1, kind="stable")[:, :k]
    m = order.shape[1]
    np.testing.assert_array_equal(I[:, :m], order)
    np.testing.assert_array_equal(
        D[:, :m], np.take_along_axis(distance, order, 1)
    )
    assert (I[:, m:] == -1).all()
    radius = 4 * nbytes
    lims, D, I = index.range_search(queries, radius)
    for i in range(10):
        expected = np.flatnonzero(distance[i] < radius)
        np.testing.assert_array_equal(I[lims[i] : lims[i + 1]], expected)
        np.testing.assert_array_equal(
            D[lims[i] : lims[i + 1]], distance[i, expected]
        )


def test_permuted_search_does_not_depend_on_batches_and_removal():
    codes = trained().encode(BASE)
    queries = trained().encode(QUERIES)

    def made(*parts):
        index = faiss_ext.IndexBinaryPermuted(256, 1.0, 2)
        for part in parts:
            index.add(part)
        return index

    expected = made(codes).search(queries, 5)
    index = made(codes[:3], codes[3:900], codes[900:])
    longer = made(codes[:900], queries[:20], codes[900:])
    removed = longer.remove_ids(np.arange(900, 920))
    assert removed == 20
    assert longer.ntotal == len(codes)
    for each in (index, longer):
        for a, b in zip(each.search(queries, 5), expected):
            np.testing.assert_array_equal(a, b)
    index.reset()
    assert index.ntotal == 0 and (index.search(queries, 1)[1] == -1).all()


def test_permuted_stats_count_what_is_examined():
    codes, queries = trained().encode(BASE), trained().encode(QUERIES)
    s = faiss_ext.cvar.indexBinaryPermuted_stats
    shares, found = [], []
    for M in (2, 8, 32):
        index = faiss_ext.IndexBinaryPermuted(256, 0.5, 1)
        index.M = M
        index.add(codes)
        s.reset()
        assert permuted_stats() == (0, 0, 0)
        D, _ = index.search(queries[:50], 1)
        index.search(queries[50:], 1)
        assert s.nq == 200 and s.ntotal == 200 * len(codes)
        # from 2 M entries, all alike, to those and B on each side in M lists
        assert 200 <= s.ncandidates <= 200 * (2 * M + 2 * M)
        shares.append(s.ncandidates / s.ntotal)
        found.append(D.mean())
    assert shares == sorted(shares) and shares[0] < shares[2] < 0.15
    assert found[2] <= found[1] <= found[0]


def test_permuted_search_finds_close_codes_among_many():
    """The nearest of 20,000 random codes is at about 90 bits of 256; one at 5
    bits is found by a small part of them."""
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 256, (20_000, 32), dtype="uint8")
    bits = np.unpackbits(codes[:200], axis=1)
    for row in bits:
        row[rng.choice(256, 5, replace=False)] ^= 1
    queries = np.packbits(bits, axis=1)
    index = faiss_ext.IndexBinaryPermuted(256, 0.5, 0)
    index.M = 10
    index.add(codes)
    s = faiss_ext.cvar.indexBinaryPermuted_stats
    s.reset()
    D, I = index.search(queries, 1)
    assert s.ncandidates <= 200 * 20
    # it shares L permuted bits with the query with probability about
    # (1 - 5/256)^L, 0.75 for the 15 that single it out, in each list
    assert (I[:, 0] == np.arange(200)).mean() > 0.98
    assert (D[I[:, 0] == np.arange(200), 0] == 5).all()


def test_too_many_lists_are_refused_before_they_are_built():
    index = faiss_ext.IndexBinaryPermuted(256, 0.01, 10)
    index.max_gb = 1e-3
    codes = trained().encode(BASE)
    with pytest.raises(RuntimeError, match="max_gb"):
        index.add(codes)
    assert index.ntotal == 0
    index.add(codes[:50])
    assert index.search(codes[:50], 1)[0].max() == 0


@pytest.mark.parametrize("refine", ["KFlat(chi2)", "KFlat(intersection)"])
def test_refine_ranks_candidates_by_the_kernel(refine):
    index = faiss.index_factory(
        64, f"KLSH128(chi2,p=100,t=20),BPerm(M=20,B=20),Refine({refine})"
    )
    index.train(BASE)
    index.add(BASE)
    index.k_factor = 20
    D, I = index.search(QUERIES, 5)
    kappa = REFERENCES[refine[6:-1]](QUERIES, BASE)
    chosen = np.take_along_axis(kappa, I, axis=1)
    np.testing.assert_allclose(D, 2 - 2 * chosen, atol=1e-5)
    # the best of the 100 codes found
    codes = index.base_index.search(QUERIES, 100)[1]
    best = np.sort(np.take_along_axis(kappa, codes, axis=1), axis=1)[:, :-6:-1]
    np.testing.assert_allclose(chosen, best, atol=1e-5)


# -------------------------------------------------------- files and pickles


@pytest.mark.parametrize(
    "keys", ["", "rank=16,scale=5", "draw=gauss,center=0", "rank=auto"]
)
@pytest.mark.parametrize(
    "copied",
    [
        lambda hash: hash.copy(),
        copy.copy,
        copy.deepcopy,
        lambda hash: pickle.loads(pickle.dumps(hash)),
    ],
    ids=["copy()", "copy.copy", "copy.deepcopy", "pickle"],
)
@pytest.mark.parametrize("kernel", ["chi2", "expchi2"])
def test_copies_of_a_hash_give_the_same_codes(keys, copied, kernel):
    hash = trained(keys, kernel, x=shuffled_digits())
    twin = copied(hash)
    assert type(twin) is faiss_ext.KernelizedLSH and twin is not hash
    for name in "t draw mean_value is_trained nbits d_in".split():
        assert getattr(twin, name) == getattr(hash, name), name
    for name in (
        "p rank auto_rank scale auto_scale nystrom center normalize "
        "tolerance seed is_trained d_in"
    ).split():
        assert getattr(twin.map, name) == getattr(hash.map, name), name
    kernel = twin.map.kernel.description()
    assert kernel == hash.map.kernel.description()
    assert twin.description() == hash.description()
    expected = hash.apply(shuffled_digits())
    del hash
    np.testing.assert_array_equal(twin.apply(shuffled_digits()), expected)
    twin.check_identical(twin)


@pytest.mark.parametrize(
    "keys, message",
    [
        ({"x": BASE[:99]}, "99 training vectors.*p = 100"),
        ({"keys": "rank=100"}, "rank = 100 is asked for.*has rank 99"),
        ({"x": np.tile(BASE[:1], (200, 1))}, "the same for all pairs"),
        ({"p": 10, "t": 11}, "t"),
        ({"keys": "rank=101"}, "rank"),
        ({"p": 1, "t": 1}, "p"),
        ({"p": 8193}, "p"),
    ],
)
def test_what_cannot_be_trained_is_said(keys, message):
    with pytest.raises(RuntimeError, match=message):
        trained(**keys)


# ------------------------------------------------------ the papers' table


def test_the_table_of_recalls_is_printed(tmp_path):
    np.save(tmp_path / "base.npy", BASE[:300])
    np.save(tmp_path / "query.npy", QUERIES)
    output = run_script(
        ROOT / "bench" / "papers" / "klsh_recall.py",
        *f"--data {tmp_path} --bits 64 --landmarks 100 --t 10".split(),
        *"--seeds 1 --queries 100 --kernels chi2,intersection".split(),
    )
    assert output.startswith(f"{tmp_path.name}: 300 base vectors, 100 queries")
    assert "d = 64; 64 bits, p = 100, t = 10; mean of 1 seeds" in output
    for kernel in ("chi2", "intersection"):
        assert f"| {kernel} | recall@1 | recall@10 | recall@100 |" in output
    rows = re.findall(
        r"^\| (.+?) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| (.*) \|$",
        output,
        re.M,
    )
    assert len(rows) == 2 * 11
    recall = {}
    for label, *values, chosen in rows:
        values = [float(v) for v in values]
        assert 0 <= values[0] <= values[1] <= values[2] <= 1
        assert bool(re.fullmatch(r"\d+/\d+", chosen)) == (
            "auto" in label
        )
        recall.setdefault(label, []).append(values[1])
    clt = recall["Nyström, CLT draw, as in the papers"]
    # recall@10 of 300: far above and near chance
    assert max(clt) < 0.3 and min(recall["plain, centred query"]) > 0.7
