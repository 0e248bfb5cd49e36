"""Explicit maps of additive kernels (HKM), and the hashes AHK, RHBE and SCR:
their formulas and theory, and what they find on real data."""

import copy
import functools
import gc
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.metrics.pairwise import additive_chi2_kernel, manhattan_distances

import faiss
import faiss_ext

L2, IP = faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT

# chance that a right hash fails one of the statistical tests
FAILURE = 1e-9


def l1_normalized(x):
    return (x / x.sum(axis=1, keepdims=True)).astype("float32")


COUNTS = load_digits().data
COUNTS = COUNTS[np.random.default_rng(1).permutation(len(COUNTS))].astype("float32")
X = l1_normalized(COUNTS)
BASE, QUERIES = X[200:], X[:200]
# 50 histograms of 20 bins with many small components
SPARSE = np.random.default_rng(4).dirichlet(np.full(20, 0.5), 50).astype("float32")
for array in (COUNTS, X, BASE, QUERIES, SPARSE):
    array.setflags(write=False)


# --------------------------------------------------- references, in doubles


def sech(x):
    return 1 / np.cosh(np.clip(x, -300, 300))


# K(lambda) = k(exp(lambda / 2), exp(-lambda / 2))
SIGNATURES = {
    "chi2": lambda l: sech(l / 2),
    "intersection": lambda l: np.exp(-np.abs(l) / 2),
    "js": lambda l: (
        np.exp(l / 2) * np.logaddexp(0, -l) + np.exp(-l / 2) * np.logaddexp(0, l)
    )
    / (2 * np.log(2)),
}
SPECTRA = {
    "chi2": lambda w: sech(np.pi * w),
    "intersection": lambda w: 2 / np.pi / (1 + 4 * w**2),
    "js": lambda w: 2 / np.log(4) * sech(np.pi * w) / (1 + 4 * w**2),
}
# of order m, by Vedaldi and Zisserman
PERIODS = {
    ("chi2", "uniform"): lambda m: 5.86 * np.sqrt(m) + 3.65,
    ("js", "uniform"): lambda m: 6.64 * np.sqrt(m) + 7.24,
    ("intersection", "uniform"): lambda m: 2.38 * np.log(m + 0.8) + 5.6,
    ("chi2", "rectangular"): lambda m: 8.80 * np.sqrt(m + 4.44) - 12.6,
    ("js", "rectangular"): lambda m: 9.63 * np.sqrt(m + 1) - 2.93,
    ("intersection", "rectangular"): lambda m: 2.00 * np.log(m + 0.99) + 3.52,
}
CLASSES = {
    "chi2": faiss_ext.Chi2Kernel,
    "intersection": faiss_ext.IntersectionKernel,
    "js": faiss_ext.JensenShannonKernel,
    "hellinger": faiss_ext.HellingerKernel,
}
NAMES = list(SIGNATURES)
WINDOWS = ["uniform", "rectangular"]


@functools.lru_cache(maxsize=None)
def spectrum(name, window, period, omega):
    if window == "uniform":
        return SPECTRA[name](omega)
    half = quad(
        SIGNATURES[name], 0, period / 2, weight="cos", wvar=omega, epsabs=1e-13, limit=500
    )[0]
    return max(0.0, half / np.pi)


def amplitudes(name, order, window, period):
    L = 2 * np.pi / period
    kappa = np.array([spectrum(name, window, period, j * L) for j in range(order + 1)])
    return np.sqrt(np.where(np.arange(order + 1) > 0, 2, 1) * L * kappa)


def mapped(x, name, order=1, window="uniform", period=None, degree=1, sign=False, l1=False):
    """The map by its formula; component i of all coordinates, then i + 1."""
    x = np.asarray(x, dtype=float)
    if l1:
        total = np.abs(x).sum(axis=1, keepdims=True)
        x = np.divide(x, total, out=np.zeros_like(x), where=total > 0)
    signs = np.sign(x) if sign else 1.0
    x = np.abs(x)
    if name == "hellinger":
        return signs * x ** (degree / 2)
    period = period or PERIODS[name, window](order)
    a, L = amplitudes(name, order, window, period), 2 * np.pi / period
    log = np.log(np.where(x > 0, x, 1))
    root = np.where(x > 0, x ** (degree / 2), 0) * signs
    parts = [a[0] * root]
    for j in range(1, order + 1):
        parts += [a[j] * root * np.cos(j * L * log), a[j] * root * np.sin(j * L * log)]
    return np.hstack(parts)


def chi2(x, y):
    """Of L1-normalised vectors, by scikit-learn."""
    return 1 + additive_chi2_kernel(x.astype(float), y.astype(float)) / 2


def intersection(x, y):
    return 1 - manhattan_distances(x.astype(float), y.astype(float)) / 2


def js(x, y):
    a, b = x[:, None, :].astype(float), y[None, :, :].astype(float)
    s = np.where(a + b > 0, a + b, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(a > 0, a * np.log2(s / a), 0) + np.where(b > 0, b * np.log2(s / b), 0)
    return terms.sum(axis=2) / 2


def hellinger(x, y):
    return np.sqrt(x.astype(float)) @ np.sqrt(y.astype(float)).T


KERNELS = {"chi2": chi2, "intersection": intersection, "js": js, "hellinger": hellinger}


def made(name, d=64, order=1, window="uniform", period=0.0, degree=1.0, sign=False, l1=False):
    cls = faiss_ext.HomogeneousKernelMap
    map = cls(d, CLASSES[name](), order, window, period, degree)
    map.negative = "sign" if sign else "error"
    map.norm = "l1" if l1 else "none"
    return map


def gram(map, x, y=None):
    a = map.apply(x).astype(float)
    return a @ (a if y is None else map.apply(y).astype(float)).T


def hash_of(string, d=64):
    return faiss_ext.kernel_hash_factory(d, string)


def vector(v):
    return faiss.vector_to_array(v).astype(float)


def bits_of(codes):
    return np.unpackbits(codes, axis=1, bitorder="little")


def hamming(codes):
    bits = bits_of(codes).astype("float32")
    return bits @ (1 - bits.T) + (1 - bits) @ bits.T


def hoeffding(n, nbits):
    """How far the mean of nbits bits may stray from its expectation, for n such
    means at once."""
    return np.sqrt(np.log(2 * n / FAILURE) / (2 * nbits))


def angles(features):
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    return np.arccos(np.clip(unit @ unit.T, -1, 1))


def pairs(matrix):
    return matrix[np.triu_indices(len(matrix), 1)]


def recall(found, truth):
    return np.mean([np.isin(t, f).mean() for t, f in zip(truth, found)])


@functools.lru_cache(maxsize=None)
def neighbours(name, metric=IP):
    """The 10 nearest of each query, exactly."""
    exact = faiss.index_factory(64, f"KFlat({name})", metric)
    exact.add(BASE)
    return exact.search(QUERIES, 10)[1]


# -------------------------------------------------------------- the formula


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
@pytest.mark.parametrize("interval", [0.3, 0.5, 0.8])
@pytest.mark.parametrize("x", [SPARSE, QUERIES, COUNTS[:50]], ids=["sparse", "digits", "counts"])
def test_the_map_of_chi2_is_that_of_scikit_learn(x, steps, interval):
    sampler = AdditiveChi2Sampler(sample_steps=steps, sample_interval=interval)
    expected = sampler.fit(x).transform(x.astype(float))
    map = made("chi2", x.shape[1], steps - 1, period=2 * np.pi / interval)
    found = map.apply(x)
    assert found.dtype == np.float32 and found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=5e-6 * np.abs(expected).max())


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("order", [1, 2, 3, 8])
def test_maps_follow_the_formula(name, window, order):
    for x in (SPARSE, QUERIES[:40]):
        map = made(name, x.shape[1], order, window)
        assert map.period == pytest.approx(PERIODS[name, window](order), rel=1e-12)
        np.testing.assert_allclose(
            vector(map.amplitudes), amplitudes(name, order, window, map.period), atol=1e-6
        )
        np.testing.assert_allclose(map.apply(x), mapped(x, name, order, window), atol=5e-6)


def test_the_map_of_hellinger_is_the_square_root():
    for order in (0, 1, 7):
        map = made("hellinger", order=order)
        assert map.components() == 1 and map.d_out == 64 and map.period == 0
        np.testing.assert_allclose(map.apply(QUERIES), np.sqrt(QUERIES), rtol=1e-6)
        assert map.squared_norm() == 1 and map.map_signature(2.5) == 1


@pytest.mark.parametrize("name", NAMES)
def test_order_0_is_the_square_root(name):
    map = made(name, order=0)
    assert map.d_out == 64 and map.squared_norm() == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(map.apply(QUERIES), np.sqrt(QUERIES), rtol=1e-6)


@given(
    name=st.sampled_from(NAMES),
    window=st.sampled_from(WINDOWS),
    d=st.integers(1, 40),
    n=st.integers(1, 20),
    order=st.integers(0, 6),
    period=st.floats(0.5, 100),
    degree=st.sampled_from([0.5, 1.0, 1.5, 2.0]),
    sign=st.booleans(),
    l1=st.booleans(),
    decades=st.sampled_from([0.0, 3.0, 12.0]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None, derandomize=True, max_examples=100)
def test_maps_of_all_parameters_follow_the_formula(
    name, window, d, n, order, period, degree, sign, l1, decades, seed
):
    rng = np.random.default_rng(seed)
    x = 10 ** rng.uniform(-decades, decades, (n, d)) * (rng.random((n, d)) < 0.8)
    if sign:
        x *= rng.choice([-1, 1], (n, d))
    x = x.astype("float32")
    map = made(name, d, order, window, period, degree, sign, l1)
    expected = mapped(x, name, order, window, period, degree, sign, l1)
    y = np.abs(x.astype(float))
    if l1:
        y /= np.maximum(y.sum(axis=1, keepdims=True), 1e-300)
    log = np.abs(np.log(np.where(y > 0, y, 1)))
    a, L = amplitudes(name, order, window, period), 2 * np.pi / period
    allowed = [a[0] + 0 * y]
    for j in range(1, order + 1):
        allowed += 2 * [a[j] * (1 + j + j * L * log)]
    # 1e-6 (1 + j + |j L log x|), as the header says, and 1e-6 |log x| where the
    # root is a power
    root = np.where(y > 0, y ** (degree / 2), 0)
    allowed = np.hstack([1e-6 * (b + (degree != 1) * log * a[0]) for b in allowed])
    allowed *= np.tile(root, 2 * order + 1)
    # amplitudes of a cut-off spectrum are right to 1e-6 of the first
    allowed += 2e-6 * a[0] * np.tile(root, 2 * order + 1) * (window == "rectangular")
    assert (np.abs(map.apply(x) - expected) <= allowed + 1e-37).all()


@pytest.mark.parametrize("name", [*NAMES, "hellinger"])
@pytest.mark.parametrize("window", WINDOWS)
def test_inner_products_are_sums_of_the_signature(name, window):
    """Psi(x) . Psi(y) = sum sqrt(x y) map_signature(log y / x)."""
    map = made(name, 20, 3, window)
    a, b = SPARSE[:, None, :].astype(float), SPARSE[None, :, :].astype(float)
    expected = (np.sqrt(a * b) * map.map_signature(np.log(b / a))).sum(axis=2)
    assert expected.shape == (50, 50)
    np.testing.assert_allclose(gram(map, SPARSE), expected, atol=5e-6)
    assert map.squared_norm() == map.map_signature(0.0)
    np.testing.assert_allclose(
        np.diag(gram(map, SPARSE)), map.squared_norm() * SPARSE.sum(axis=1), rtol=1e-5
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("order", [1, 2, 5, 20])
@pytest.mark.parametrize("period", [4.0, 10.0, 25.0])
def test_the_signature_of_a_map_is_the_periodic_sum_of_the_true_one(name, order, period):
    """Poisson's formula: all samples of the spectrum give sum_k K(lambda + k
    period), and those that are left out at most twice L kappa(j L) each."""
    L = 2 * np.pi / period
    left_out = np.arange(order + 1, 400_000)
    tail = 2 * L * SPECTRA[name](left_out * L).sum()
    if name == "intersection":  # its sum goes on, below the integral
        tail += 2 / np.pi / (2 * L * left_out[-1])
    values = np.linspace(-1.5 * period, 1.5 * period, 301)
    shifts = period * np.arange(-30, 31)
    expected = SIGNATURES[name](values[:, None] + shifts).sum(axis=1)
    found = made(name, 1, order, period=period).map_signature(values)
    assert found.shape == values.shape
    assert np.abs(found - expected).max() <= tail + 1e-6
    assert isinstance(made(name, 1, order).map_signature(0.5), float)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("order", [1, 3, 10])
def test_kernels_are_approximated_as_well_as_the_signature(name, window, order):
    """|Psi . Psi - K| <= max |error of the signature| sum sqrt(x y)."""
    map = made(name, 64, order, window)
    positive = X[X > 0]
    reach = np.log(positive.max() / positive.min())
    ratios = np.linspace(0, reach, 5000)
    delta = np.abs(map.map_signature(ratios) - SIGNATURES[name](ratios)).max()
    error = np.abs(gram(map, QUERIES) - KERNELS[name](QUERIES, QUERIES)).max()
    assert error <= 1.001 * delta + 1e-5
    # and the bound is not an empty one
    assert delta < 0.4 and error > delta / 1000


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("window", WINDOWS)
def test_the_error_falls_with_the_order(name, window):
    exact = KERNELS[name](SPARSE, SPARSE)
    orders = [1, 3, 5, 10, 20, 60]
    errors = [
        np.abs(gram(made(name, 20, m, window), SPARSE) - exact).max() for m in orders
    ]
    # to where rounding is all there is
    for one, next in zip(errors, errors[1:]):
        assert next < one or one < 1e-4
    # exponentially, or like 1 / m
    assert errors[-1] < (0.03 if name == "intersection" else 1e-4)
    assert errors[0] > 0.005


@pytest.mark.parametrize(
    "name, expected",
    [
        ("chi2", {1: 0.050, 2: 0.017, 3: 0.0068, 5: 0.0017}),
        ("js", {1: 0.024, 2: 0.0089, 3: 0.0039, 5: 0.0008}),
        ("intersection", {1: 0.158, 2: 0.122, 3: 0.100, 5: 0.074, 10: 0.047}),
    ],
)
def test_errors_are_those_known_of_such_histograms(name, expected):
    """Of 50 other histograms of the same distribution, simulated beforehand."""
    exact = KERNELS[name](SPARSE, SPARSE)
    for order, error in expected.items():
        found = np.abs(gram(made(name, 20, order), SPARSE) - exact).max()
        assert 0.6 * error < found < 1.7 * error


@pytest.mark.parametrize("name, order, error", [("chi2", 60, 1e-5), ("js", 60, 1e-5),
                                                ("intersection", 100, 0.012)])
@pytest.mark.parametrize("x", [SPARSE, QUERIES[:50]], ids=["sparse", "digits"])
def test_high_orders_are_the_kernels_of_scikit_learn(name, order, error, x):
    np.testing.assert_allclose(
        gram(made(name, x.shape[1], order), x), KERNELS[name](x, x), atol=error
    )


@pytest.mark.parametrize("degree", [0.5, 2.0])
def test_other_degrees_are_powers_times_the_kernel(degree):
    a, b = SPARSE[:, None, :].astype(float), SPARSE[None, :, :].astype(float)
    expected = ((a * b) ** ((degree - 1) / 2) * 2 * a * b / (a + b)).sum(axis=2)
    found = gram(made("chi2", 20, 60, degree=degree), SPARSE)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


# ------------------------------------------------- negative, norm, and zeros


@pytest.mark.parametrize("name", [*NAMES, "hellinger"])
def test_signed_components_are_mapped_with_their_sign(name):
    x = QUERIES * np.random.default_rng(2).choice([-1, 1], QUERIES.shape)
    map = made(name, order=2, sign=True)
    signs = np.tile(np.sign(x), map.components())
    np.testing.assert_array_equal(map.apply(x), signs * map.apply(np.abs(x)))
    np.testing.assert_array_equal(map.apply(-x), -map.apply(x))
    np.testing.assert_array_equal(map.apply(QUERIES), made(name, order=2).apply(QUERIES))


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 1e5, 1e35])
def test_norm_l1_normalises_first(scale):
    x = (COUNTS[:100] * scale).astype("float32")
    found = made("chi2", order=2, l1=True).apply(x)
    np.testing.assert_allclose(found, mapped(COUNTS[:100], "chi2", 2, l1=True), atol=5e-6)
    signed = made("chi2", order=2, l1=True, sign=True).apply(-x)
    np.testing.assert_allclose(signed, -found, atol=1e-7)


def test_the_largest_histograms_are_normalised():
    x = np.full((1, 64), 9e36)  # their sum is no float any more
    map = made("chi2", l1=True)
    expected = mapped(np.full((1, 64), 1 / 64), "chi2")
    np.testing.assert_allclose(map.apply(x), expected, atol=1e-6)
    with pytest.raises(RuntimeError, match="at most 1e37"):
        map.apply(2 * x)


@pytest.mark.parametrize("l1", [False, True])
@pytest.mark.parametrize("sign", [False, True])
@pytest.mark.parametrize("name", [*NAMES, "hellinger"])
def test_zeros_stay_zeros(name, sign, l1):
    x = QUERIES[:3].copy()
    x[1] = 0
    x[2, :32] = 0
    map = made(name, order=2, sign=sign, l1=l1)
    found = map.apply(x)
    assert not found[1].any() and found[0].any()
    assert not found[2].reshape(-1, 64)[:, :32].any()
    back = map.reverse_transform(found)
    assert not back[1].any() and not back[2, :32].any()
    # as zero counts what is as small as this
    assert not made(name, order=2).apply(np.full((1, 64), 1e-38)).any()


# ------------------------------------------------------------------ inverse


@pytest.mark.parametrize("name", [*NAMES, "hellinger"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("degree", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("order", [0, 1, 4])
def test_vectors_come_back_from_their_maps(name, window, degree, order):
    x = COUNTS[:50]
    map = made(name, 64, order, window, degree=degree, period=12.0)
    back = map.reverse_transform(map.apply(x))
    assert back.dtype == np.float32 and back.shape == x.shape
    np.testing.assert_allclose(back, x, rtol=2e-5)
    y = x * np.random.default_rng(2).choice([-1, 1], x.shape)
    map = made(name, 64, order, window, degree=degree, period=12.0, sign=True)
    np.testing.assert_allclose(map.reverse_transform(map.apply(y)), y, rtol=2e-5)
    map = made(name, 64, order, window, degree=degree, period=12.0, l1=True)
    np.testing.assert_allclose(map.reverse_transform(map.apply(x)), X[:50], rtol=2e-5)


def test_inexact_maps_come_back_by_their_lengths():
    map = made("js", order=2)
    rng = np.random.default_rng(3)
    xt = (map.apply(QUERIES) + rng.normal(0, 0.02, (200, 320))).astype("float32")
    lengths = (xt.astype(float).reshape(200, 5, 64) ** 2).sum(axis=1)
    np.testing.assert_allclose(
        map.reverse_transform(xt), lengths / map.squared_norm(), rtol=1e-5
    )


# -------------------------------------------------------- arrays of all kinds

CONVERSIONS = {
    "float64": lambda x: x.astype("float64"),
    "int64": lambda x: x.astype("int64"),
    "uint8": lambda x: x.astype("uint8"),
    "bigendian": lambda x: x.astype(">f4"),
    "fortran": np.asfortranarray,
    "columns": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "rows": lambda x: np.repeat(x, 3, axis=0)[::3],
    "back": lambda x: x[::-1].copy()[::-1],
    "list": lambda x: x.tolist(),
}


@pytest.mark.parametrize("kind", CONVERSIONS)
def test_vectors_of_any_type_and_layout_are_taken(kind):
    x = COUNTS[:20]
    converted = CONVERSIONS[kind](x)
    map = made("chi2", order=2)
    expected = map.apply(x)
    np.testing.assert_array_equal(map.apply(converted), expected)
    for string in ("AHK64(chi2)", "RHBE64", "SCR64"):
        hash = hash_of(string)
        np.testing.assert_array_equal(hash.apply(converted), hash.apply(x))
        np.testing.assert_array_equal(hash.encode(converted), hash.encode(x))
    if kind not in ("int64", "uint8"):
        back = map.reverse_transform(CONVERSIONS[kind](expected))
        np.testing.assert_array_equal(back, map.reverse_transform(expected))
    one, other = hash_of("AHK64(chi2,center=1)"), hash_of("AHK64(chi2,center=1)")
    one.train(x)
    other.train(converted)
    np.testing.assert_array_equal(one.encode(X), other.encode(X))


def test_no_vectors_give_no_maps():
    map = made("js", order=2)
    found = map.apply(np.zeros((0, 64)))
    assert found.shape == (0, 320) and found.dtype == np.float32
    assert map.reverse_transform(found).shape == (0, 64)
    for string in ("AHK64(chi2)", "RHBE64", "SCR64"):
        assert hash_of(string).encode(np.zeros((0, 64))).shape == (0, 8)
        assert hash_of(string).apply(np.zeros((0, 64))).shape == (0, 64)


@given(
    name=st.sampled_from([*NAMES, "hellinger"]),
    order=st.integers(0, 4),
    cuts=st.lists(st.integers(0, 200), max_size=5),
    threads=st.integers(1, 4),
)
@settings(deadline=None, derandomize=True, max_examples=30)
def test_maps_depend_on_neither_batches_nor_threads(name, order, cuts, threads):
    map = made(name, order=order)
    expected = map.apply(QUERIES)
    ends = sorted([0, *cuts, 200])
    before = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(threads)
        parts = [map.apply(QUERIES[a:b]) for a, b in zip(ends, ends[1:])]
    finally:
        faiss.omp_set_num_threads(before)
    np.testing.assert_array_equal(np.vstack(parts), expected)


# ------------------------------------------------------------ the map object


def test_a_map_shows_its_parameters():
    map = faiss_ext.HomogeneousKernelMap(20, faiss_ext.JensenShannonKernel(), 3)
    assert isinstance(map, faiss.VectorTransform)
    assert map.is_trained
    assert (map.d_in, map.d_out, map.order, map.components()) == (20, 140, 3, 7)
    assert type(map.kernel) is faiss_ext.JensenShannonKernel
    assert map.kernel.description() == "js"
    assert map.period == PERIODS["js", "uniform"](3) and map.degree == 1
    assert map.amplitudes.size() == 4
    assert (map.window, map.negative, map.norm) == ("uniform", "error", "none")
    for name in ("order", "window", "period", "degree", "kernel"):
        with pytest.raises(AttributeError):
            setattr(map, name, 1)


def test_the_kernel_of_a_map_is_a_copy_and_outlives_its_names():
    kernel = faiss_ext.Chi2Kernel()
    map = faiss_ext.HomogeneousKernelMap(64, kernel, 2)
    expected = map.apply(QUERIES)
    del kernel
    gc.collect()
    np.testing.assert_array_equal(map.apply(QUERIES), expected)
    part = map.kernel
    del map
    gc.collect()
    assert part(X[0], X[1]) == pytest.approx(chi2(X[:1], X[1:2])[0, 0], rel=1e-5)


def through_file(map, folder):
    faiss.write_VectorTransform(map, str(folder / "map"))
    return faiss.read_VectorTransform(str(folder / "map"))


def through_path(map, folder):
    faiss_ext.write_VectorTransform(map, folder / "größe")
    return faiss_ext.read_VectorTransform(folder / "größe")


def through_memory(map, folder):
    writer = faiss.VectorIOWriter()
    faiss.write_VectorTransform(map, writer)
    reader = faiss.VectorIOReader()
    reader.data = writer.data
    return faiss.read_VectorTransform(reader)


WAYS = {
    "file": through_file,
    "path": through_path,
    "memory": through_memory,
    "pickle": lambda map, folder: pickle.loads(pickle.dumps(map)),
    "pickle 0": lambda map, folder: pickle.loads(pickle.dumps(map, 0)),
    "copy.copy": lambda map, folder: copy.copy(map),
    "deepcopy": lambda map, folder: copy.deepcopy(map),
    "copy": lambda map, folder: map.copy(),
}
VARIANTS = [
    dict(name="chi2", order=2),
    dict(name="js", order=0),
    dict(name="hellinger", order=3),
    dict(name="intersection", order=4, window="rectangular", period=7.5),
    dict(name="chi2", order=1, degree=1.5, sign=True),
    dict(name="js", order=1, l1=True),
]


@pytest.mark.parametrize("way", WAYS)
def test_maps_come_back_the_same(way, tmp_path):
    for variant in VARIANTS:
        map = made(**variant)
        twin = WAYS[way](map, tmp_path)
        assert type(twin) is faiss_ext.HomogeneousKernelMap
        map.check_identical(twin)
        for name in "d_in d_out order window period degree negative norm is_trained".split():
            assert getattr(twin, name) == getattr(map, name), name
        assert twin.kernel.description() == map.kernel.description()
        np.testing.assert_array_equal(vector(twin.amplitudes), vector(map.amplitudes))
        expected = map.apply(QUERIES)
        del map
        gc.collect()
        np.testing.assert_array_equal(twin.apply(QUERIES), expected)


def test_maps_that_differ_are_not_identical():
    maps = [made(**variant) for variant in VARIANTS]
    maps += [made("chi2", order=3), made("chi2", 63, order=2), made("chi2", order=2, sign=True)]
    for i, one in enumerate(maps):
        for j, other in enumerate(maps):
            if i == j:
                one.check_identical(other)
            else:
                with pytest.raises(RuntimeError, match="different parameters"):
                    one.check_identical(other)
    with pytest.raises(RuntimeError, match="HomogeneousKernelMap.*PCAMatrix"):
        maps[0].check_identical(faiss.PCAMatrix(64, 320))


def test_truncated_files_of_maps_are_refused():
    data = faiss.VectorIOWriter()
    faiss.write_VectorTransform(made("chi2", order=2), data)
    whole = faiss.vector_to_array(data.data)
    for size in range(4, len(whole)):
        reader = faiss.VectorIOReader()
        faiss.copy_array_to_vector(whole[:size], reader.data)
        with pytest.raises(RuntimeError):
            faiss_ext.read_VectorTransform(reader)


# -------------------------------------------------------------- bad input


@pytest.mark.parametrize("bad", [-1e-6, np.nan, np.inf, -np.inf, 1e39])
def test_what_is_no_histogram_is_named(bad):
    x = QUERIES.astype(float)
    x[70, 3] = bad
    map = made("chi2")
    methods = [map.apply]
    for string in ("AHK64(chi2)", "SCR64"):
        methods += [hash_of(string).encode, hash_of(string).apply]
    methods.append(hash_of("AHK64(js,center=1)").train)
    for method in methods:
        with pytest.raises(RuntimeError, match=r"component 3 of vector 70.*\(a histogram\)"):
            method(x)
    xt = map.apply(QUERIES).astype(float)
    xt[70, 3] = bad
    signed = [made("chi2", sign=True).apply, hash_of("AHK64(chi2,negative=sign)").encode]
    signed += [hash_of("RHBE64").encode, hash_of("RHBE64(center=1)").train]
    if bad == -1e-6:
        for method in signed:
            method(x)
        map.reverse_transform(xt)
        return
    for method in signed:
        with pytest.raises(RuntimeError, match="component 3 of vector 70.*a finite number"):
            method(x)
    with pytest.raises(RuntimeError, match="component 3 of vector 70"):
        map.reverse_transform(xt)


@pytest.mark.parametrize("shape", [(64,), (3, 63), (3, 65), (1, 3, 64), ()])
def test_arrays_of_a_wrong_shape_are_refused(shape):
    map = made("chi2")
    methods = [map.apply, map.train]
    for string in ("AHK64(chi2)", "AHK64(chi2,center=1)", "RHBE64", "RHBE64(center=1)", "SCR64"):
        hash = hash_of(string)
        methods += [hash.encode, hash.apply, hash.train]
    for method in methods:
        with pytest.raises(ValueError, match=r"shape \(n, 64\)"):
            method(np.zeros(shape))
    with pytest.raises(ValueError, match=r"shape \(n, 192\)"):
        map.reverse_transform(np.zeros((2, 64)))


@pytest.mark.parametrize("x", [np.zeros((2, 64), complex), np.full((2, 64), "a")])
def test_what_is_no_number_is_refused(x):
    for method in (made("chi2").apply, hash_of("AHK64(chi2)").encode, hash_of("SCR64").apply):
        with pytest.raises(TypeError, match="expected numbers"):
            method(x)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(d=0), "dimension is 0"),
        (dict(d=-1), "dimension is -1"),
        (dict(order=-1), "order is -1"),
        (dict(order=101), "order is 101"),
        (dict(degree=0.0), "degree is 0"),
        (dict(degree=2.1), "degree is 2.1"),
        (dict(degree=float("nan")), "degree is"),
        (dict(period=-1.0), "period is -1"),
        (dict(period=1e5), "period is 1e\\+05"),
        (dict(period=float("nan")), "period is"),
        (dict(d=1 << 24, order=100), "too many"),
    ],
)
def test_parameters_of_maps_out_of_range_are_refused(arguments, message):
    with pytest.raises(RuntimeError, match=message):
        made("chi2", **arguments)


def test_kernels_that_are_not_additive_have_no_map():
    for kernel in (faiss_ext.GaussianKernel(1.0), faiss_ext.LinearKernel(), None):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            faiss_ext.HomogeneousKernelMap(64, kernel, 1)


# --------------------------------------------------------- indexes over maps

HKM_STRINGS = [
    "HKM1(chi2),IVF16,PQ8",
    "HKM2(js),HNSW16",
    "HKM1(intersection),Flat",
    "HKM1(chi2),IVF16,Flat,Refine(KFlat(chi2))",
]


def train(index, x):
    """Without FAISS's polysemous ordering of the codes of product quantisers,
    which takes most of a minute and changes no distance."""
    inner = index
    while hasattr(inner, "index") or hasattr(inner, "base_index"):
        inner = inner.index if hasattr(inner, "index") else inner.base_index
    inner = faiss.downcast_index(inner)
    if hasattr(inner, "do_polysemous_training"):
        inner.do_polysemous_training = False
    index.train(x)


@functools.lru_cache(maxsize=None)
def filled(string, metric):
    """A filled index; not to be changed."""
    index = faiss.index_factory(64, string, metric)
    needs_training = "IVF" in string
    assert index.is_trained != needs_training
    train(index, BASE)
    index.add(BASE)
    assert index.is_trained and index.ntotal == len(BASE)
    assert index.metric_type == metric and index.d == 64
    return index


def fresh(string, metric=L2):
    return faiss.clone_index(filled(string, metric))


def chain_of(index):
    if isinstance(index, faiss.IndexRefine):
        index = index.base_index
    assert type(index) is faiss.IndexPreTransform
    return [
        faiss.downcast_VectorTransform(index.chain.at(i)) for i in range(index.chain.size())
    ], index.index


@pytest.fixture(autouse=True)
def one_thread_for_graphs(request):
    """Graphs are the same from run to run only if one thread builds them."""
    before = faiss.omp_get_max_threads()
    if "string" in request.fixturenames:
        faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(before)


@pytest.mark.parametrize("metric", [L2, IP])
@pytest.mark.parametrize("string", HKM_STRINGS)
def test_an_index_over_a_map_is_one_of_faiss_on_mapped_vectors(string, metric):
    index = filled(string, metric)
    (map,), inner = chain_of(index)
    assert type(map) is faiss_ext.HomogeneousKernelMap
    head, rest = string.split("),", 1)
    order, name = head[3:].split("(")
    assert (map.order, map.kernel.description()) == (int(order), name)
    assert map.d_in == 64 and map.d_out == inner.d == 64 * (2 * int(order) + 1)

    theirs = faiss.index_factory(map.d_out, rest.split(",Refine")[0], metric)
    assert type(theirs) is type(inner)
    by_hand = made(name, order=int(order))
    train(theirs, by_hand.apply(BASE))
    theirs.add(by_hand.apply(BASE))
    queries = by_hand.apply(QUERIES)
    if "Refine" not in string:
        D, I = index.search(QUERIES, 10)
        expected_D, expected_I = theirs.search(queries, 10)
        np.testing.assert_array_equal(D, expected_D)
        np.testing.assert_array_equal(I, expected_I)
        return
    # the kernel's own values, of what the index finds
    index.k_factor = 3
    D, I = index.search(QUERIES, 10)
    candidates = theirs.search(queries, 30)[1]
    K = chi2(QUERIES, BASE)
    values = K if metric == IP else 2 - 2 * K
    found = np.take_along_axis(values, I, axis=1)
    np.testing.assert_allclose(D, found, atol=1e-6)
    best = np.sort(np.take_along_axis(values if metric == L2 else -values, candidates, axis=1))
    np.testing.assert_allclose(D if metric == L2 else -D, best[:, :10], atol=1e-6)


@pytest.mark.parametrize("metric", [L2, IP])
@pytest.mark.parametrize("string", HKM_STRINGS)
def test_indexes_over_maps_find_the_neighbours(string, metric):
    index = fresh(string, metric)
    name = string.split("(")[1].split(")")[0]
    if "IVF" in string:
        inner = index.base_index if "Refine" in string else index
        faiss.downcast_index(inner.index).nprobe = 16
    found = recall(index.search(QUERIES, 50)[1], neighbours(name, metric))
    # measured: 0.95 for PQ8, 0.99 and more for the others
    assert found > (0.9 if "PQ8" in string else 0.97)


WAYS_OF_INDEXES = {
    "file": lambda index, name: (faiss.write_index(index, name), faiss.read_index(name))[1],
    "faiss_ext": lambda index, name: (
        faiss_ext.write_index(index, name),
        faiss_ext.read_index(name),
    )[1],
    "array": lambda index, name: faiss.deserialize_index(faiss.serialize_index(index)),
    "pickle": lambda index, name: pickle.loads(pickle.dumps(index)),
    "clone": lambda index, name: faiss.clone_index(index),
    "deepcopy": lambda index, name: copy.deepcopy(index),
}


@pytest.mark.parametrize("metric", [L2, IP])
@pytest.mark.parametrize("way", WAYS_OF_INDEXES)
@pytest.mark.parametrize("string", HKM_STRINGS)
def test_indexes_over_maps_come_back_the_same(string, way, metric, tmp_path):
    index = filled(string, metric)
    twin = WAYS_OF_INDEXES[way](index, str(tmp_path / "index"))
    assert type(twin) is type(index) and twin is not index
    assert (twin.ntotal, twin.metric_type) == (index.ntotal, metric)
    (map,), inner = chain_of(index)
    (twin_map,), twin_inner = chain_of(twin)
    map.check_identical(twin_map)
    # (FAISS reads an IndexFlat as one of its sub-classes)
    assert isinstance(twin_inner, type(inner))
    for one, other in zip(index.search(QUERIES, 10), twin.search(QUERIES, 10)):
        np.testing.assert_array_equal(other, one)
    twin.add(QUERIES)
    assert twin.ntotal == index.ntotal + 200


@pytest.mark.parametrize("metric", [L2, IP])
@pytest.mark.parametrize("string", HKM_STRINGS)
def test_vectors_come_back_from_indexes_over_maps(string, metric):
    index = fresh(string, metric)
    if "PQ8" in string:
        with pytest.raises(RuntimeError, match="direct map not initialized"):
            index.reconstruct(5)
        faiss.extract_index_ivf(index).make_direct_map()
    back = np.vstack([index.reconstruct(i) for i in range(20)])
    if "PQ8" in string:
        # of 8 bytes; what it says of lengths is the mapped vector's
        (map,), inner = chain_of(index)
        lossy = np.vstack([inner.reconstruct(i) for i in range(20)])
        lengths = (lossy.astype(float).reshape(20, 3, 64) ** 2).sum(axis=1)
        np.testing.assert_allclose(back, lengths / map.squared_norm(), rtol=1e-5)
        # nearer than another digit is
        own = np.abs(back - BASE[:20]).sum(axis=1)
        other = np.abs(BASE[20:40] - BASE[:20]).sum(axis=1)
        assert own.mean() < 0.7 * other.mean()
    else:
        np.testing.assert_allclose(back, BASE[:20], atol=1e-7)
        np.testing.assert_allclose(index.reconstruct_n(7, 5), BASE[7:12], atol=1e-7)


@pytest.mark.parametrize("metric", [L2, IP])
@pytest.mark.parametrize("string", ["HKM1(intersection),Flat", "HKM1(chi2),IVF16,PQ8"])
def test_range_search_and_removal_over_maps(string, metric):
    index = fresh(string, metric)
    if "IVF" in string:
        faiss.extract_index_ivf(index).nprobe = 16
    D, I = index.search(QUERIES[:20], len(BASE))
    assert (np.sort(I, axis=1) == np.arange(len(BASE))).all()
    radius = float(np.median(D[:, 30]))
    lims, found_D, found_I = index.range_search(QUERIES[:20], radius)
    within = D < radius if metric == L2 else D > radius
    assert within.any(axis=1).sum() > 5
    for i in range(20):
        row = found_I[lims[i] : lims[i + 1]]
        # rounding may decide of a vector on the border
        edge = I[i][np.abs(D[i] - radius) < 1e-5]
        assert not (set(row) ^ set(I[i][within[i]])) - set(edge)
    gone = I[:, 0]
    assert index.remove_ids(np.unique(gone)) == len(np.unique(gone))
    assert index.ntotal == len(BASE) - len(np.unique(gone))
    if "IVF" in string:  # ids stay
        assert not np.isin(index.search(QUERIES[:20], 100)[1], gone).any()
    else:  # the others move up
        rest = np.delete(BASE, np.unique(gone), axis=0)
        np.testing.assert_allclose(index.reconstruct_n(0, len(rest)), rest, atol=1e-7)


@pytest.mark.parametrize("string", ["HKM2(js),HNSW16", HKM_STRINGS[3]])
def test_what_faiss_cannot_do_it_says(string):
    index = fresh(string)
    with pytest.raises(RuntimeError, match="not implemented"):
        index.remove_ids(np.arange(3))
    D, I = index.search(QUERIES, 5)
    np.testing.assert_array_equal(filled(string, L2).search(QUERIES, 5)[1], I)


def test_ids_and_transformations_around_maps():
    index = faiss.index_factory(64, "IDMap2,HKM1(chi2),Flat")
    index.add_with_ids(BASE[:50], 10 * np.arange(50) + 3)
    assert index.search(BASE[:5], 1)[1].ravel().tolist() == [3, 13, 23, 33, 43]
    np.testing.assert_allclose(index.reconstruct(43), BASE[4], atol=1e-7)
    index = faiss.index_factory(64, "HKM2(chi2),PCA16,Flat")
    index.train(BASE)
    index.add(BASE)
    assert [t.d_out for t in chain_of(index)[0]] == [320, 16]
    assert (index.search(BASE[:50], 1)[1].ravel() == np.arange(50)).mean() > 0.95
    index = faiss.index_factory(64, "HKM1(chi2,norm=l1,negative=sign,degree=1.5),Flat")
    (map,), _ = chain_of(index)
    assert (map.norm, map.negative, map.degree) == ("l1", "sign", 1.5)
    # made by hand, with strings in other places
    index = faiss.index_factory(64, "HKM1(chi2),RHBE64,BFlat")
    index.add(BASE)
    assert index.search(BASE[:5], 1)[0].max() == 0


@pytest.mark.parametrize("bad", [-1.0, np.nan])
@pytest.mark.parametrize("string", HKM_STRINGS)
def test_bad_vectors_are_not_added(string, bad):
    index = fresh(string)
    x = BASE[:10].copy()
    x[4, 7] = bad
    for method in (index.add, lambda x: index.search(x, 3)):
        with pytest.raises(RuntimeError, match="component 7 of vector 4"):
            method(x)
    assert index.ntotal == len(BASE)


@pytest.mark.parametrize("flat, metric", [(faiss.IndexFlatIP, IP), (faiss.IndexFlatL2, L2)])
def test_a_map_put_in_front_by_hand_outlives_its_names(flat, metric):
    map = made("chi2", order=2)
    index = faiss.IndexPreTransform(map, flat(map.d_out))
    d_out = map.d_out
    del map
    gc.collect()
    np.empty((100, d_out)).fill(7)  # memory that was freed is used again
    index.add(BASE)
    expected = filled("HKM2(chi2),Flat", metric)
    for found, right in zip(index.search(QUERIES, 10), expected.search(QUERIES, 10)):
        np.testing.assert_array_equal(found, right)
    twin = pickle.loads(pickle.dumps(index))
    del index
    gc.collect()
    np.testing.assert_array_equal(
        twin.search(QUERIES, 10)[1], expected.search(QUERIES, 10)[1]
    )
    np.testing.assert_allclose(twin.reconstruct(3), BASE[3], atol=1e-7)


@pytest.mark.parametrize("metric", [L2, IP])
def test_maps_find_what_the_kernel_finds(metric):
    """recall@10 on digits, the same under both metrics. Measured by order 1, 2,
    3, 5, 10: chi2 0.958, 0.980, 0.989, 0.997, 1.000; js 0.982, 0.992, 0.997,
    0.999, 1.000; intersection 0.809, 0.835, 0.849, 0.877, 0.915 (FAISS's L2 on
    the histograms finds 0.839 of those of chi2). For chi2 of order 2 by period
    6, 8, 10, 11.94 (default), 14: 0.956, 0.976, 0.984, 0.980, 0.972; with the
    rectangular window 0.985. The bounds leave 0.02 to 0.03 below the default's
    values, which is as much as a third more or less of the period costs."""
    found = {}
    for name, order in [("chi2", 1), ("chi2", 2), ("chi2", 5), ("js", 2), ("intersection", 1),
                        ("intersection", 10)]:
        index = faiss.index_factory(64, f"HKM{order}({name}),Flat", metric)
        index.add(BASE)
        found[name, order] = recall(index.search(QUERIES, 10)[1], neighbours(name, metric))
    assert found["chi2", 2] > 0.95
    assert found["js", 2] > 0.97
    assert found["chi2", 5] > 0.98
    assert found["chi2", 1] < found["chi2", 2] < found["chi2", 5]
    assert found["intersection", 10] > found["intersection", 1] + 0.05
    plain = faiss.IndexFlatL2(64)
    plain.add(BASE)
    l2_recall = recall(plain.search(QUERIES, 10)[1], neighbours("chi2"))
    assert found["chi2", 2] > l2_recall + 0.1


def test_hellinger_finds_exactly_what_its_kernel_finds():
    D, I = filled("HKM1(hellinger),Flat", L2).search(QUERIES, 10)
    exact = filled("KFlat(hellinger)", L2)
    np.testing.assert_allclose(D, exact.search(QUERIES, 10)[0], atol=1e-5)
    assert recall(I, neighbours("hellinger", L2)) > 0.999


# ------------------------------------------------------------- AHK: theory


@pytest.mark.parametrize("name", [*NAMES, "hellinger"])
@pytest.mark.parametrize("order", [1, 3])
def test_hamming_distances_are_angles_between_maps(name, order):
    nbits, x = 1 << 15, QUERIES[:100]
    hash = hash_of(f"AHK{nbits}({name},order={order},proj=dense)")
    share = pairs(hamming(hash.encode(x))) / nbits
    expected = pairs(angles(mapped(x, name, order))) / np.pi
    bound = hoeffding(len(share), nbits)
    assert len(share) == 4950 and bound < 0.022 < np.ptp(expected) / 5
    assert np.abs(share - expected).max() <= bound

    # the paper's bounds, with the map's own error on these pairs
    K = KERNELS[name](x, x)
    map = made(name, order=order)
    delta = np.abs(gram(map, x) - K).max()
    u = pairs(K)
    lower = np.array([hash.lower_bound(v, delta) for v in u])
    upper = np.array([hash.upper_bound(v, delta) for v in u])
    assert (lower - bound <= share).all() and (share <= upper + bound).all()
    assert (lower <= expected + 1e-6).all() and (expected <= upper + 1e-6).all()
    assert (lower > upper - 2).all() and upper.max() <= 0.52


def test_the_angle_as_seen_from_the_mean():
    nbits, x = 1 << 15, QUERIES[:100]
    for name in NAMES:
        hash = hash_of(f"AHK{nbits}({name},order=2,center=1,proj=dense)")
        hash.train(BASE)
        features = mapped(BASE, name, 2)
        mu = features.mean(axis=0)
        share = pairs(hamming(hash.encode(x))) / nbits
        expected = pairs(angles(mapped(x, name, 2) - mu)) / np.pi
        assert np.abs(share - expected).max() <= hoeffding(len(share), nbits)
        # these angles are wider
        assert expected.mean() > 0.4 > pairs(angles(mapped(x, name, 2))).mean() / np.pi
        mean_value = (mu**2).sum() / (features**2).sum(axis=1).mean()
        assert hash.mean_value == pytest.approx(mean_value, rel=1e-4)
        w = hash.projection.matrix().astype(float)
        np.testing.assert_allclose(vector(hash.threshold), w @ mu, atol=1e-4)


def test_bounds_hold_for_every_map_that_wrong():
    """For u = K and maps with u - delta <= Psi . Psi' <= u + delta and 1 - delta
    <= |Psi|^2 <= 1, lower <= P <= upper."""
    rng = np.random.default_rng(5)
    lower = faiss_ext.AdditiveKernelHash.lower_bound
    upper = faiss_ext.AdditiveKernelHash.upper_bound
    for _ in range(3000):
        delta = rng.uniform(0, 0.2)
        u = rng.uniform(delta, 1)
        inner = rng.uniform(u - delta, u + delta)
        P = np.arccos(np.clip(inner / rng.uniform(1 - delta, 1), -1, 1)) / np.pi
        assert lower(u, delta) <= P + 1e-12 and P <= upper(u, delta) + 1e-12
        v, w = (u + delta) / (1 - delta), u - delta
        assert lower(u, delta) == pytest.approx(0.5 - v / np.pi - 0.6 * v**3 / np.pi)
        assert upper(u, delta) == pytest.approx(0.5 - w / np.pi - w**3 / (6 * np.pi))


def test_histograms_of_other_masses_have_their_own_angle():
    """k / sqrt(sum x sum y): of x and 4 x with chi2 not 1 but 1.6 / 2. (Only
    the components for cos and sin turn with the scale.)"""
    nbits = 1 << 15
    hash = hash_of(f"AHK{nbits}(chi2,order=5,proj=dense)")
    x = QUERIES[:30]
    distances = (bits_of(hash.encode(x)) != bits_of(hash.encode(4 * x))).mean(axis=1)
    map = hash.map
    expected = np.arccos(map.map_signature(np.log(4)) / map.squared_norm()) / np.pi
    assert expected == pytest.approx(np.arccos(0.8) / np.pi, abs=0.005)
    bound = hoeffding(30, nbits)
    assert np.abs(distances - expected).max() <= bound < expected / 5
    # unless they are normalised first
    hash = hash_of("AHK4096(chi2,order=5,norm=l1)")
    assert (bits_of(hash.encode(x)) != bits_of(hash.encode(4 * x))).mean() < 1e-3


def test_weights_are_independent_and_normal():
    hash = hash_of("AHK2048(chi2,order=1,proj=dense)", 10)
    w = hash.projection.matrix().astype(float)
    assert w.shape == (2048, 30)
    assert stats.kstest(w.ravel(), "norm").pvalue > FAILURE
    correlation = w.T @ w / 2048 - np.eye(30)
    assert np.abs(correlation).max() < 8 / np.sqrt(2048)
    other = hash_of("AHK2048(chi2,order=1,seed=5,proj=dense)", 10).projection.matrix()
    assert abs(np.corrcoef(w.ravel(), other.ravel())[0, 1]) < 8 / np.sqrt(w.size)


@pytest.mark.parametrize("string", ["AHK512(chi2)", "AHK512(js,order=2,center=1)", "RHBE512",
                                    "RHBE512(center=1)", "SCR512", "AHK512(chi2,proj=dense)",
                                    "AHK512(js,order=2,center=1,proj=dense)",
                                    "RHBE512(proj=dense)", "RHBE512(center=1,proj=dense)"])
def test_margins_and_codes_follow_the_definition(string):
    hash = hash_of(string)
    hash.train(BASE)
    features, mean = QUERIES.astype(float), BASE.astype(float).mean(axis=0)
    if string.startswith("AHK"):
        arguments = ("chi2", 1) if "chi2" in string else ("js", 2)
        features, mean = mapped(QUERIES, *arguments), mapped(BASE, *arguments).mean(axis=0)
    w = hash.projection.matrix().astype(float)
    margins = features @ w.T - (w @ mean if "center=1" in string else 0)
    # some rounding of each product; Cauchy weights are of any size
    allowed = 1e-5 * (np.abs(features) @ np.abs(w).T + np.abs(w) @ np.abs(mean))
    if isinstance(hash.projection, faiss_ext.StructuredProjection):
        # 24 levels of butterflies for 256 dimensions, each a unit of |w| |x| with
        # |w| < 22, that of 256 dimensions (7 standard deviations above 16)
        lengths = np.linalg.norm(features, axis=1) + np.linalg.norm(mean)
        allowed = allowed + 6e-8 * 27 * 22 * lengths[:, None]
    found = hash.apply(QUERIES)
    assert found.dtype == np.float32 and found.shape == (200, 512)
    assert (np.abs(found - margins) <= allowed).all()
    codes = hash.encode(QUERIES)
    assert codes.dtype == np.uint8 and codes.shape == (200, 64) == (200, hash.code_size())
    np.testing.assert_array_equal(codes, np.packbits(found >= 0, axis=1, bitorder="little"))
    bits = bits_of(codes)
    assert ((bits == (margins >= 0)) | (np.abs(margins) <= allowed)).all()


@pytest.mark.parametrize("string", ["AHK64(chi2)", "RHBE64", "SCR64"])
def test_a_row_of_zeros_has_all_bits_one(string):
    assert (hash_of(string).encode(np.zeros((3, 64))) == 255).all()


@pytest.mark.parametrize("string", ["AHK64(chi2,center=1)", "RHBE64(center=1)"])
def test_a_row_of_zeros_is_compared_with_the_mean(string):
    hash = hash_of(string)
    hash.train(BASE)
    bits = bits_of(hash.encode(np.zeros((1, 64))))[0]
    np.testing.assert_array_equal(bits, vector(hash.threshold) <= 0)
    assert 0 < bits.sum() < 64


# -------------------------------------------------- expectations of distances


def test_expected_hamming_is_the_angle():
    values = np.linspace(0, 1, 101)
    for string in ("AHK256(chi2)", "SCR256"):
        hash = hash_of(string)
        expected = 256 * np.arccos(values) / np.pi
        np.testing.assert_allclose(hash.expected_hamming(values), expected, atol=1e-9)
    hash = hash_of("RHBE256")
    cosines = np.linspace(-1, 1, 101)
    np.testing.assert_allclose(
        hash.expected_hamming(cosines), 256 * np.arccos(cosines) / np.pi, atol=1e-9
    )
    hash = hash_of("AHK256(chi2,center=1)")
    hash.train(BASE)
    m = hash.mean_value
    assert 0.2 < m < 0.8
    expected = 256 * np.arccos(np.clip((values - m) / (1 - m), -1, 1)) / np.pi
    np.testing.assert_allclose(hash.expected_hamming(values), expected, atol=1e-9)


@pytest.mark.parametrize(
    "string, lowest",
    [("AHK256(chi2)", 0), ("AHK256(js,center=1)", 0), ("RHBE256", -1), ("SCR256", 0)],
)
def test_kernel_estimate_inverts_expected_hamming(string, lowest):
    hash = hash_of(string)
    hash.train(BASE)
    start = max(lowest, 2 * getattr(hash, "mean_value", 0) - 1)
    values = np.linspace(start, 1, 60).reshape(3, 20)
    bits = hash.expected_hamming(values)
    assert bits.shape == (3, 20) and (np.diff(bits.ravel()) < 0).all()
    np.testing.assert_allclose(hash.kernel_estimate(bits), values, atol=1e-6)
    one = hash.expected_hamming(0.9)
    assert isinstance(one, float) and isinstance(hash.kernel_estimate(one), float)
    assert hash.expected_hamming(np.float32(0.5)) == hash.expected_hamming(0.5)
    assert hash.kernel_estimate(np.int32(17)) == hash.kernel_estimate(17)
    assert hash.kernel_estimate(0) == 1
    assert hash.kernel_estimate(256) == max(lowest, start if start > 0 else lowest)
    integers = np.arange(257, dtype="int32")
    estimates = hash.kernel_estimate(integers)
    assert estimates.shape == (257,) and (np.diff(estimates) <= 0).all()
    assert hash.expected_hamming([]).shape == hash.kernel_estimate([]).shape == (0,)
    for bad in (lowest - 0.1, 1.1, np.nan):
        with pytest.raises(RuntimeError, match=f"from {lowest} to 1"):
            hash.expected_hamming(bad)
    for bad in (-1, 257, np.nan):
        with pytest.raises(RuntimeError, match="0 to 256 bits"):
            hash.kernel_estimate(bad)
        with pytest.raises(RuntimeError, match="0 to 256 bits"):
            hash.kernel_estimate(np.array([3, bad]))


def test_estimates_are_near_the_kernel():
    """Kernel values from 16,384 bits, wrong by the map's delta and what Hoeffding
    allows: an angle off by pi e moves its cosine by at most pi e."""
    nbits, x = 1 << 14, QUERIES[:80]
    hash = hash_of(f"AHK{nbits}(chi2,order=5,proj=dense)")
    K = pairs(chi2(x, x))
    estimates = pairs(hash.kernel_estimate(hamming(hash.encode(x))))
    delta = np.abs(gram(made("chi2", order=5), x) - chi2(x, x)).max()
    # twice delta: of the product, and of the length
    bound = np.pi * hoeffding(len(K), nbits) + 2.1 * delta
    assert bound < 0.12 < np.ptp(K) / 4
    assert np.abs(estimates - K).max() <= bound


# ------------------------------------------------------ RHBE and SCR: theory


def test_hyperplanes_measure_the_angle():
    nbits = 1 << 15
    x = np.random.default_rng(6).normal(size=(100, 8)).astype("float32")
    hash = hash_of(f"RHBE{nbits}(proj=dense)", 8)
    share = pairs(hamming(hash.encode(x))) / nbits
    expected = pairs(angles(x.astype(float))) / np.pi
    bound = hoeffding(len(share), nbits)
    assert np.ptp(expected) > 0.7
    assert np.abs(share - expected).max() <= bound
    # what lies opposite differs in every bit; the scale does not matter
    assert (bits_of(hash.encode(-x)) != bits_of(hash.encode(x))).all()
    np.testing.assert_array_equal(hash.encode(4 * x), hash.encode(x))

    shifted = x + 5
    hash = hash_of(f"RHBE{nbits}(center=1,proj=dense)", 8)
    hash.train(shifted)
    share = pairs(hamming(hash.encode(shifted))) / nbits
    expected = pairs(angles(shifted - shifted.mean(axis=0, dtype=float))) / np.pi
    assert np.abs(share - expected).max() <= bound


def test_sign_cauchy_projections_measure_chi2_nearly():
    """And as NumPy's do, with random numbers of its own."""
    nbits, x = 1 << 15, QUERIES[:100]
    share = pairs(hamming(hash_of(f"SCR{nbits}").encode(x))) / nbits
    c = np.random.default_rng(7).standard_cauchy((nbits, 64))
    theirs = pairs(hamming(np.packbits(x.astype(float) @ c.T >= 0, axis=1))) / nbits
    bound = hoeffding(len(share), nbits)
    assert np.abs(share - theirs).max() <= 2 * bound
    # an approximation: measured, it is off by -0.025 to 0.004, on average 0.013
    expected = pairs(np.arccos(np.minimum(chi2(x, x), 1))) / np.pi
    assert np.abs(share - expected).mean() < 0.02
    assert np.abs(share - expected).max() < 0.025 + bound
    assert np.ptp(expected) > 0.2
    assert stats.spearmanr(share, expected).correlation > 0.98


def test_weights_of_sign_cauchy_projections_are_cauchy():
    w = hash_of("SCR2048", 10).projection.matrix().astype(float)
    assert w.shape == (2048, 10)
    assert stats.kstest(w.ravel(), "cauchy").pvalue > FAILURE
    signs = np.sign(w)
    assert np.abs(signs.T @ signs / 2048 - np.eye(10)).max() < 8 / np.sqrt(2048)


# --------------------------------------------------- what centring gains


def test_centring_balances_bits_and_gains_recall():
    """Of AHK256 with seeds 1 to 4, over all digits. Measured with eight seeds:
    the share of the ten nearest among the first 100 by the codes is 0.993 to
    0.996 without and 0.998 to 1.000 with center=1; among the first 20, it is
    0.814 to 0.860 without (mean 0.839) and 0.890 to 0.912 with it (mean 0.897).
    Bits stray from balance by 0.32 without and 0.02 with it. The bounds are half
    of the gains or less, seven standard deviations of the mean of four seeds or
    more in the first case."""
    shares = {}
    for center in (0, 1):
        at_20, at_100, stray = [], [], []
        for seed in (1, 2, 3, 4):
            string = f"AHK256(chi2,center={center},seed={seed}),BFlat"
            index = faiss.index_factory(64, string)
            assert index.is_trained == (not center)
            index.train(BASE)
            index.add(BASE)
            I = index.search(QUERIES, 100)[1]
            at_20.append(recall(I[:, :20], neighbours("chi2")))
            at_100.append(recall(I, neighbours("chi2")))
            balance = bits_of(index.hash.encode(BASE)).mean(axis=0)
            stray.append(np.abs(balance - 0.5).mean())
        shares[center] = np.mean([at_20, at_100, stray], axis=1)
    gain = shares[1] - shares[0]
    assert gain[0] > 0.02
    assert gain[1] > 0.0015
    assert shares[0][2] > 0.2 and shares[1][2] < 0.05


# -------------------------------------------------------- hashes as objects

STRINGS = [
    "AHK64(chi2)",
    "AHK64(intersection,order=3,window=rectangular,period=8,seed=9)",
    "AHK64(js,order=0,center=1)",
    "AHK64(hellinger,norm=l1,negative=sign)",
    "RHBE64",
    "RHBE64(center=1,seed=3)",
    "AHK64(chi2,center=1,proj=dense)",
    "RHBE64(proj=dense)",
    "SCR64(seed=3)",
]
CLASS_OF = {
    "AHK": faiss_ext.AdditiveKernelHash,
    "RHB": faiss_ext.HyperplaneHash,
    "SCR": faiss_ext.SignCauchyHash,
}


@pytest.mark.parametrize("string", STRINGS)
@given(cuts=st.lists(st.integers(0, 200), max_size=5), threads=st.integers(1, 4))
@settings(deadline=None, derandomize=True, max_examples=8)
def test_codes_depend_on_neither_batches_nor_threads(string, cuts, threads):
    hash = hash_of(string)
    hash.train(BASE)
    codes, margins = hash.encode(QUERIES), hash.apply(QUERIES)
    ends = sorted([0, *cuts, 200])
    parts = [QUERIES[a:b] for a, b in zip(ends, ends[1:])]
    before = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(threads)
        twin = hash_of(string)
        twin.train(BASE)  # training too
        np.testing.assert_array_equal(np.vstack([twin.encode(p) for p in parts]), codes)
        np.testing.assert_array_equal(np.vstack([twin.apply(p) for p in parts]), margins)
    finally:
        faiss.omp_set_num_threads(before)


def test_constructors_and_strings_make_the_same_hash():
    map = made("js", order=2, window="rectangular", sign=True)
    by_hand = faiss_ext.AdditiveKernelHash(map, 64, True, 7)
    by_string = hash_of("AHK64(js,order=2,window=rectangular,negative=sign,center=1,seed=7)")
    del map
    gc.collect()
    by_hand.check_identical(by_string)
    assert not by_hand.is_trained and by_hand.center and by_hand.seed == 7
    for hash in (by_hand, by_string):
        hash.train(BASE)
    np.testing.assert_array_equal(by_hand.encode(QUERIES), by_string.encode(QUERIES))
    for one, other in [
        (faiss_ext.AdditiveKernelHash(made("chi2"), 64), hash_of("AHK64(chi2)")),
        (faiss_ext.HyperplaneHash(64, 64), hash_of("RHBE64")),
        (faiss_ext.HyperplaneHash(64, 64, True, 3), hash_of("RHBE64(seed=3,center=1)")),
        (faiss_ext.SignCauchyHash(64, 64), hash_of("SCR64")),
        (faiss_ext.SignCauchyHash(64, 64, 3), hash_of("SCR64(seed=3)")),
    ]:
        assert type(one) is type(other) and one.seed == other.seed
        one.check_identical(other)
    for wrong in (0, -8, 12):
        for make in (
            lambda n: faiss_ext.AdditiveKernelHash(made("chi2"), n),
            lambda n: faiss_ext.HyperplaneHash(64, n),
            lambda n: faiss_ext.SignCauchyHash(64, n),
        ):
            with pytest.raises(RuntimeError, match="a positive multiple of 8"):
                make(wrong)


@pytest.mark.parametrize("string", ["AHK64(chi2,seed={})", "RHBE64(seed={})", "SCR64(seed={})"])
def test_seeds_repeat_and_differ(string):
    seeds = [0, 1, 1234, 2**31, 2**32, 2**63 - 1]
    codes = [hash_of(string.format(s)).encode(QUERIES).tobytes() for s in seeds]
    again = [hash_of(string.format(s)).encode(QUERIES).tobytes() for s in seeds]
    assert codes == again and len(set(codes)) == len(seeds)
    default = string.replace("seed={}", "").replace(",)", ")").replace("()", "")
    assert hash_of(default).encode(QUERIES).tobytes() == codes[2]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("string", STRINGS)
def test_hashes_come_back_the_same(string, way, tmp_path):
    hash = hash_of(string)
    for train in (False, True):
        if train:
            hash.train(BASE)
        twin = WAYS[way](hash, tmp_path)
        assert type(twin) is CLASS_OF[string[:3]]
        hash.check_identical(twin)
        assert (twin.seed, twin.nbits, twin.is_trained) == (hash.seed, 64, hash.is_trained)
        if hasattr(hash, "map"):
            hash.map.check_identical(twin.map)
            assert twin.mean_value == hash.mean_value
        if hash.is_trained:
            np.testing.assert_array_equal(twin.apply(QUERIES), hash.apply(QUERIES))
            assert twin.expected_hamming(0.7) == hash.expected_hamming(0.7)
    del hash
    gc.collect()
    assert twin.encode(QUERIES).shape == (200, 8)


@pytest.mark.parametrize("center", ["AHK64(chi2,center=1)", "RHBE64(center=1)"])
def test_centred_hashes_are_trained_once(center):
    hash = hash_of(center)
    assert not hash.is_trained
    for method in (hash.encode, hash.apply):
        with pytest.raises(RuntimeError, match="not trained; call train first"):
            method(QUERIES)
    with pytest.raises(RuntimeError, match="there are no vectors"):
        hash.train(np.zeros((0, 64)))
    assert not hash.is_trained
    index = faiss.index_factory(64, center + ",BFlat")
    with pytest.raises(RuntimeError, match="train"):
        index.add(BASE)
    assert index.ntotal == 0
    hash.train(BASE)
    codes = hash.encode(QUERIES)
    hash.train(QUERIES[:7])
    np.testing.assert_array_equal(hash.encode(QUERIES), codes)


def test_training_vectors_that_are_all_equal_leave_no_kernel_values():
    hash = hash_of("AHK64(chi2,center=1)")
    hash.train(np.repeat(BASE[:1], 10, axis=0))
    assert hash.mean_value == pytest.approx(1, abs=1e-6)
    assert np.isfinite(hash.expected_hamming(np.linspace(0, 1, 20))).all()
    assert np.isfinite(hash.kernel_estimate(np.arange(65))).all()
    assert hash.encode(QUERIES).shape == (200, 8)
    hash = hash_of("AHK64(chi2,center=1)")
    hash.train(np.zeros((5, 64)))
    assert hash.mean_value == 0
    np.testing.assert_array_equal(hash.encode(QUERIES), hash_of("AHK64(chi2)").encode(QUERIES))


@pytest.mark.parametrize("string", STRINGS)
def test_members_outlive_the_name_of_their_hash(string):
    hash = hash_of(string)
    hash.train(BASE)
    projection = hash.projection
    matrix = projection.matrix()
    parts = [projection]
    if hasattr(hash, "map"):
        map = hash.map
        features, name = map.apply(QUERIES), map.kernel.description()
        kernel = hash.map.kernel
        parts += [map, kernel]
    del hash
    gc.collect()
    for _ in range(3):  # memory that was freed is used again
        hash_of(string).train(BASE)
    np.testing.assert_array_equal(projection.matrix(), matrix)
    if len(parts) > 1:
        np.testing.assert_array_equal(map.apply(QUERIES), features)
        assert kernel.description() == map.kernel.description() == name
    index = faiss.index_factory(64, string + ",BFlat")
    index.train(BASE)
    part = index.hash.projection
    del index
    gc.collect()
    np.testing.assert_array_equal(part.matrix(), matrix)


def test_the_map_of_a_hash_is_its_own():
    map = made("chi2", order=2)
    hash = faiss_ext.AdditiveKernelHash(map, 64)
    map.negative = "sign"
    with pytest.raises(RuntimeError, match="a histogram"):
        hash.encode(-QUERIES)
    with pytest.raises(AttributeError):
        hash.map = map
    assert hash.map.d_out == 320 == hash.projection.d_in
    assert hash.d_in == 64 and hash.d_out == hash.nbits == 64


@pytest.mark.parametrize("string", STRINGS)
def test_hashes_serve_in_all_indexes(string):
    float_index = faiss.index_factory(64, f"IDMap2,{string},BFlat,Refine(KFlat(chi2))")
    float_index.train(BASE)
    float_index.add_with_ids(BASE, 2 * np.arange(len(BASE)))
    float_index.index.k_factor = 20
    D, I = float_index.search(QUERIES, 5)
    np.testing.assert_allclose(
        D, np.take_along_axis(2 - 2 * chi2(QUERIES, BASE), I // 2, axis=1), atol=1e-6
    )
    binary = faiss.index_binary_factory(64, f"{string},BFlat")
    binary.train(BASE)
    binary.add(BASE)
    hash = hash_of(string)
    hash.train(BASE)
    codes, query_codes = hash.encode(BASE), hash.encode(QUERIES)
    plain = faiss.IndexBinaryFlat(64)
    plain.add(codes)
    for x in (QUERIES, query_codes):
        for found, expected in zip(binary.search(x, 10), plain.search(query_codes, 10)):
            np.testing.assert_array_equal(found, expected)
    twin = pickle.loads(pickle.dumps(binary))
    np.testing.assert_array_equal(twin.search(QUERIES, 9)[1], binary.search(QUERIES, 9)[1])


# ------------------------------------------------------------------ strings


@pytest.mark.parametrize(
    "string, position, accepted",
    [
        ("AHK64", 5, "chi2, hellinger, intersection, js"),
        ("AHK64()", 6, "expected an argument"),
        ("AHK(chi2)", 3, "multiple of 8"),
        ("AHK60(chi2)", 3, "multiple of 8"),
        ("AHK64(chi3)", 6, "chi2, hellinger, intersection, js"),
        ("AHK64(gaussian)", 6, "chi2, hellinger, intersection, js"),
        ("AHK64(normalized(chi2))", 6, "'normalized'"),
        ("AHK64(chi2,centre=1)", 11, "center="),
        ("AHK64(chi2,center=2)", 18, "0, 1"),
        ("AHK64(chi2,order=-1)", 17, "from 0 to 100"),
        ("AHK64(chi2,order=101)", 17, "from 0 to 100"),
        ("AHK64(chi2,order=1,order=2)", 19, "given twice"),
        ("AHK64(chi2,seed=-1)", 16, "an integer"),
        ("AHK64(chi2,proj=foo)", 16, "structured, dense"),
        ("RHBE64(proj=foo)", 12, "structured, dense, bilinear"),
        ("AHK64(chi2,window=round)", 18, "uniform, rectangular"),
        ("AHK64(chi2,negative=abs)", 20, "error, sign"),
        ("AHK64(chi2,norm=l2)", 16, "none, l1"),
        ("AHK64(chi2,period=-1)", 18, "from 0 to 10000"),
        ("AHK64(chi2,period=nan)", 18, "from 0 to 10000"),
        ("AHK64(chi2,degree=3)", 18, "to 2"),
        ("RHBE64(chi2)", 7, "center=, seed=, proj="),
        ("RHBE64(order=2)", 7, "center=, seed=, proj="),
        ("SCR64(chi2)", 6, "seed="),
        ("SCR64(center=1)", 6, "seed="),
        ("SCR20", 3, "multiple of 8"),
    ],
)
def test_errors_in_strings_of_hashes_quote_mark_and_help(string, position, accepted):
    with pytest.raises(RuntimeError) as error:
        hash_of(string)
    check_message(str(error.value), string, position, accepted)


@pytest.mark.parametrize(
    "string, position, accepted",
    [
        ("HKM101(chi2),Flat", 3, "from 0 to 100"),
        ("HKM1,Flat", 4, "chi2, hellinger, intersection, js"),
        ("HKM1(chi2)", 10, ",Flat"),
        ("HKM1(gaussian),Flat", 5, "chi2, hellinger, intersection, js"),
        ("HKM1(chi3),Flat", 5, "unknown kernel 'chi3'"),
        ("HKM1(chi2,order=2),Flat", 10, "order is given twice"),
        ("HKM1(chi2,center=1),Flat", 10, "order=, period=, window=, degree=, negative=, norm="),
        ("HKM1(chi2,period=-1),Flat", 17, "from 0 to 10000"),
        ("HKM1(chi2,window=round),Flat", 17, "uniform, rectangular"),
        ("HKM1(chi2,negative=zero),Flat", 19, "error, sign"),
        ("HKM1(chi2,norm=l2),Flat", 15, "none, l1"),
        ("HKM1(chi2),Flt", 11, "FAISS says"),
        ("IDMap,HKM1(chi4),Flat", 11, "unknown kernel 'chi4'"),
    ],
)
def test_errors_in_strings_of_maps_quote_mark_and_help(string, position, accepted):
    for module in (faiss, faiss_ext):
        with pytest.raises(RuntimeError) as error:
            module.index_factory(64, string)
        check_message(str(error.value), string, position, accepted)


def check_message(message, string, position, accepted):
    assert f'"{string}"' in message and accepted in message
    lines = message.splitlines()
    at = lines.index("  " + string)
    assert lines[at + 1] == "  " + " " * position + "^", message
