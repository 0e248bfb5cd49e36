# SPDX-License-Identifier: MIT
"""Maps and hashes of frequencies that the user draws, for a kernel that the library does not have: a product of a Gaussian with
a bandwidth for each component and a Laplacian on other components."""

import copy
import pickle

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import FAILURE
from scipy import sparse

D, GAUSSIAN = 7, 4  # the first four components are Gaussian
WIDTHS = np.array([0.5, 1, 2, 4])
SCALE = 1.5  # of the Laplacian
POINTS = np.random.default_rng(1).normal(0, 0.6, (60, D)).astype("float32")
PAIRS = np.triu_indices(len(POINTS), 1)
DELTA = (POINTS[PAIRS[0]].astype(float) - POINTS[PAIRS[1]])


def sample(n, seed=2):
    """The spectral density: a normal variable divided by the width, and a Cauchy variable divided by the scale."""
    rng = np.random.default_rng(seed)
    return np.hstack([rng.normal(size=(n, GAUSSIAN)) / WIDTHS, rng.standard_cauchy((n, D - GAUSSIAN)) / SCALE])


def exponents(delta):
    """K(m delta) = exp(-m^2 a - m b)"""
    return ((delta[:, :GAUSSIAN] / WIDTHS) ** 2).sum(axis=1) / 2, np.abs(delta[:, GAUSSIAN:]).sum(axis=1) / SCALE


def kernel(delta):
    return np.exp(-sum(exponents(delta)))


def series(delta, terms=20000):
    """h_K (Raginsky and Lazebnik 2009, lemma 2.2), which is 4 / pi^2 less a sum in K; and a bound of the terms left out."""
    a, b = exponents(delta)
    total = np.zeros(len(delta))
    for m in range(1, terms + 1):
        total += np.exp(-m * m * a - m * b) / (4 * m * m - 1)
    return 4 / np.pi**2 - 8 / np.pi**2 * total, 8 / np.pi**2 / (2 * (2 * terms + 1))


def share_of_bits(hash, x=POINTS, pairs=PAIRS):
    bits = np.unpackbits(hash.encode(x), axis=1, bitorder="little")[:, : hash.nbits]
    return (bits[pairs[0]] != bits[pairs[1]]).mean(axis=1)


def hoeffding(npairs, n, width=1):
    """How far a mean of n independent numbers from an interval of this width strays from its expectation, for all pairs."""
    return width * np.sqrt(np.log(2 * npairs / FAILURE) / (2 * n))


# ------------------------------------------------------------------ theory

def test_features_are_cosines_and_sines():
    omega = sample(300)
    z = faiss_ext.FrequencyMap(omega).apply(POINTS)
    phases = POINTS.astype(float) @ omega.T
    expected = np.hstack([np.cos(phases), np.sin(phases)]) / np.sqrt(300)
    # frequencies are float32, and a phase in turns has an error of some units of its terms
    bound = (1 + np.abs(POINTS).astype(float) @ np.abs(omega).T) * 2 * np.pi * (D + 4) * 2.0**-24
    assert (np.abs(z - expected) <= np.hstack([bound, bound]) / np.sqrt(300)).all()
    assert np.median(bound) < 1e-4


def test_inner_products_estimate_the_kernel():
    n = 1 << 14
    z = faiss_ext.FrequencyMap(sample(n)).apply(POINTS).astype(float)
    error = np.abs((z @ z.T)[PAIRS] - kernel(DELTA))
    bound = hoeffding(len(error), n, width=2)
    assert error.max() <= bound < 0.08 < np.ptp(kernel(DELTA)) / 5
    # sharper: the variance of a cosine is at most 1/2
    assert np.sqrt((error**2).mean()) <= 1.5 * np.sqrt(0.5 / n)


def test_bits_compare_cosines_with_thresholds():
    omega = sample(256)
    hash = faiss_ext.FrequencyHash(omega, seed=5)
    phases = POINTS.astype(float) @ omega.T + 2 * np.pi * faiss.vector_to_array(hash.offset)
    difference = np.cos(phases) - np.cos(2 * np.pi * faiss.vector_to_array(hash.threshold))
    bits = np.unpackbits(hash.encode(POINTS), axis=1, bitorder="little").astype(bool)
    clear = np.abs(difference) > 2 * np.pi * 2.0**-24 * (D + 4) * (2 + np.abs(POINTS) @ np.abs(omega).T)
    assert np.array_equal(bits[clear], difference[clear] >= 0)
    assert clear.mean() > 0.999


def test_hamming_distances_are_those_of_the_theory():
    n = 1 << 14
    hash = faiss_ext.FrequencyHash(sample(n), seed=3)
    found = share_of_bits(hash)
    expected, rest = series(DELTA)
    bound = hoeffding(len(found), n)
    assert bound < 0.04 < np.ptp(expected) / 5
    assert np.abs(found - expected).max() <= bound + rest
    # of these frequencies: their mean, whose expectation is h_K
    of_pairs = np.array([hash.expected_hamming_of_pair(x, y) for x, y in zip(*POINTS[np.array(PAIRS)])]) / n
    assert np.abs(found - of_pairs).max() <= bound
    assert np.abs(of_pairs - expected).max() <= hoeffding(len(found), n, width=2 / np.pi) + rest
    # lemma 2.3 holds for this kernel, which is positive and falls along rays
    u = kernel(DELTA)
    lower, upper = 4 / np.pi**2 * (1 - u), np.minimum(np.sqrt(1 - u) / 2, 4 / np.pi**2 * (1 - 2 * u / 3))
    assert (found >= lower - bound).all() and (found <= upper + bound).all()


def test_bounds_hold_for_any_frequencies_and_some_reach_them():
    """If all frequencies are the same, the upper bound is reached. The lower one is reached if K is a mean of 1 and -1."""
    x, zero = np.array([1.0]), np.array([0.0])
    for phase in np.linspace(0, np.pi, 9):
        hash = faiss_ext.FrequencyHash(np.full((512, 1), phase))
        value, expected = hash.kernel_value(x, zero), hash.expected_hamming_of_pair(x, zero)
        assert value == pytest.approx(np.cos(phase), abs=1e-6)
        assert expected == pytest.approx(hash.hamming_bounds(value)[1], abs=1e-3)
        assert hash.expected_hamming_of_pair(x, x) == 0 and hash.kernel_value(x, x) == 1
    for share in (0, 128, 256, 512):
        hash = faiss_ext.FrequencyHash(np.repeat([[0], [np.pi]], [512 - share, share], axis=0))
        value, expected = hash.kernel_value(x, zero), hash.expected_hamming_of_pair(x, zero)
        assert value == pytest.approx(1 - share / 256, abs=1e-6)
        assert expected == pytest.approx(hash.hamming_bounds(value)[0], abs=1e-3)
        bits = share_of_bits(hash, np.array([x, zero]), ([0], [1]))[0]
        assert abs(bits - 2 / np.pi * share / 512) <= hoeffding(1, 512)
    hash = faiss_ext.FrequencyHash(sample(512))
    for x, y in zip(*POINTS[np.array(PAIRS)[:, ::50]]):
        low, high = hash.hamming_bounds(hash.kernel_value(x, y))
        assert low <= hash.expected_hamming_of_pair(x, y) <= high


def test_intervals_hold_the_kernel_value():
    n = 4096
    hash = faiss_ext.FrequencyHash(sample(n), seed=4)
    low, high = hash.kernel_interval(n * share_of_bits(hash), failure=FAILURE / len(DELTA))
    values = np.array([hash.kernel_value(x, y) for x, y in zip(*POINTS[np.array(PAIRS)])])
    assert (low <= values).all() and (values <= high).all()
    assert (low >= -1).all() and (high <= 1).all() and np.median(high - low) < 1
    assert hash.kernel_interval(n, 0.01) == (-1, -1)
    # over the frequencies: the estimate of the kernel
    assert np.abs(values - kernel(DELTA)).max() <= hoeffding(len(DELTA), n, width=2)


# ------------------------------------------------------------- with indexes

def indexes():
    omega = sample(512)
    hash, map = faiss_ext.FrequencyHash(omega, seed=6), faiss_ext.FrequencyMap(omega)
    return [faiss_ext.IndexKernelHash(hash, faiss.IndexBinaryFlat(512)), faiss_ext.IndexAsymmetricHash(hash),
            faiss.IndexPreTransform(map, faiss.IndexFlat(1024, faiss.METRIC_INNER_PRODUCT))]


@pytest.mark.parametrize("i", range(3))
def test_indexes_find_neighbours_and_are_written(i, tmp_path):
    index = indexes()[i]
    base, queries = np.split(np.random.default_rng(7).normal(0, 0.6, (1100, D)).astype("float32"), [1000])
    index.add(base)
    D_, I = index.search(queries, 20)
    delta = queries[:, None].astype(float) - base
    truth = np.argsort(-kernel(delta.reshape(-1, D)).reshape(100, 1000), axis=1)[:, :10]
    assert np.mean([np.isin(t, i).mean() for t, i in zip(truth, I)]) > 10 * 20 / 1000
    faiss.write_index(index, str(tmp_path / "index"))
    for again in (faiss.read_index(str(tmp_path / "index")), faiss.clone_index(index), pickle.loads(pickle.dumps(index))):
        assert type(again) is type(index)
        E, J = again.search(queries, 20)
        np.testing.assert_array_equal(E, D_)
        np.testing.assert_array_equal(J, I)
    with pytest.raises(ValueError, match="FrequencyHash has no factory string"):
        faiss_ext.index_string(index)


def test_asymmetric_distances_find_more():
    base, queries = np.split(np.random.default_rng(7).normal(0, 0.6, (1200, D)).astype("float32"), [1000])
    delta = (queries[:, None].astype(float) - base).reshape(-1, D)
    truth = np.argsort(-kernel(delta).reshape(200, 1000), axis=1)[:, :10]
    found = []
    for index in indexes()[:2]:
        index.add(base)
        I = index.search(queries, 10)[1]
        found.append(np.array([np.isin(t, i).mean() for t, i in zip(truth, I)]))
    gain = found[1] - found[0]
    assert gain.mean() > 4 * gain.std() / np.sqrt(len(gain))


@pytest.mark.parametrize("make", [faiss_ext.FrequencyMap, faiss_ext.FrequencyHash])
def test_copies_share_nothing_and_need_no_sampler(make):
    omega = sample(40)
    thing = make(omega)
    before = thing.apply(POINTS)
    omega[:] = 0  # they were copied
    for again in (copy.copy(thing), copy.deepcopy(thing), thing.copy(), pickle.loads(pickle.dumps(thing))):
        assert type(again) is make and again.description() == thing.description()
        again.check_identical(thing)
        np.testing.assert_array_equal(again.apply(POINTS), before)
    np.testing.assert_allclose(2 * np.pi * thing.projection.matrix(), sample(40), rtol=1e-6)
    thing.train(POINTS)  # has no effect
    np.testing.assert_array_equal(thing.apply(POINTS), before)


def test_the_seed_draws_phases():
    codes = [faiss_ext.FrequencyHash(sample(64), seed).encode(POINTS) for seed in (1, 1, 2)]
    assert np.array_equal(codes[0], codes[1]) and not np.array_equal(codes[0], codes[2])
    assert np.array_equal(faiss_ext.FrequencyHash(sample(64)).encode(POINTS),
                          faiss_ext.FrequencyHash(sample(64), seed=1234).encode(POINTS))


@pytest.mark.parametrize("make", [faiss_ext.FrequencyMap, faiss_ext.FrequencyHash])
def test_sparse_vectors_give_the_same(make):
    thing = make(sample(40))
    x = sparse.random(30, D, 0.4, format="csr", random_state=1, dtype="float32")
    np.testing.assert_array_equal(thing.apply(x), thing.apply(x.toarray()))
    with pytest.raises(RuntimeError, match="too far"):
        thing.apply(1e9 * x)


# ----------------------------------------------------------------- bad input

NAMES = {"FrequencyMap": faiss_ext.FrequencyMap, "FrequencyHash": faiss_ext.FrequencyHash}


def changed(value):
    omega = sample(5)
    omega[3, 2] = value
    return omega


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("frequencies, error, words", [
    (sample(5)[0], ValueError, r"shape \(n, d\), got \(7,\)"), (np.zeros((0, 7)), ValueError, r"got \(0, 7\)"),
    (np.zeros((7, 0)), ValueError, r"got \(7, 0\)"), (None, ValueError, r"shape \(n, d\)"),
    (changed(np.nan), ValueError, "component 2 of frequency 3 is nan"),
    (changed(-np.inf), ValueError, "component 2 of frequency 3 is -inf"),
    (changed(1e39), ValueError, r"component 2 of frequency 3 is 1e\+39.*3.4e38"),
    (sample(5) * 1j, TypeError, "complex128"), (np.array([["a"]]), TypeError, "<U1"),
    (sample, TypeError, "call your function"), (sparse.csr_matrix(sample(5)), TypeError, "sparse")])
def test_wrong_frequencies(name, frequencies, error, words):
    with pytest.raises(error, match=f"{name}: .*{words}"):
        NAMES[name](frequencies)


@pytest.mark.parametrize("seed, error", [(1.5, TypeError), (None, TypeError), (-1, RuntimeError), (2**63, TypeError)])
def test_wrong_seeds(seed, error):
    with pytest.raises(error):
        faiss_ext.FrequencyHash(sample(5), seed)


@pytest.mark.parametrize("name", NAMES)
def test_vectors_far_from_the_origin(name):
    """Lengths of up to a million length scales are accepted. The scale is sqrt(d) / median |omega|."""
    omega = sample(4096)
    thing = NAMES[name](omega)
    limit = 1e6 * np.sqrt(D) / np.median(np.linalg.norm(omega, axis=1))
    x = np.zeros((2, D), "float32")
    x[1, 2] = 0.99 * limit
    assert np.isfinite(thing.apply(x)).all()
    x[1, 2] = 1.01 * limit
    with pytest.raises(RuntimeError, match="vector 1 is too far from the origin"):
        thing.apply(x)
    x[1, 2] = np.nan
    with pytest.raises(RuntimeError, match="component 2 of vector 1 is nan"):
        thing.apply(x)
    constant = NAMES[name](np.zeros((8, D)))  # K = 1
    x[1, 2] = 1e30
    np.testing.assert_array_equal(*constant.apply(x))
    mixed = np.zeros((9, D))
    mixed[0] = 1e20  # the median is 0, and phases must be numbers
    with pytest.raises(RuntimeError, match="too far"):
        NAMES[name](mixed).apply(x)


def test_without_theory_the_methods_say_what_to_use():
    hash = faiss_ext.FrequencyHash(sample(64))
    for method, instead in (("expected_hamming", "hamming_bounds"), ("kernel_estimate", "kernel_interval"),
                            ("asymmetric_kernel_estimate", "kernel_interval")):
        with pytest.raises(RuntimeError, match=f"{method}: .*use {instead}"):
            getattr(hash, method)(0.5)
    for u in (-1.01, 1.01, np.nan):
        with pytest.raises(RuntimeError, match="kernel value"):
            hash.hamming_bounds(u)
    with pytest.raises(RuntimeError, match="unknown kernel 'frequencies'"):
        faiss_ext.kernel_hash_factory(D, hash.description())
