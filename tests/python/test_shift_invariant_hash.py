# SPDX-License-Identifier: MIT
"""Shift-invariant kernel hashing against SciPy and scikit-learn, and what its
methods take and give in Python."""

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import FAILURE
from scipy import stats
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_approximation import RBFSampler


# K as a function of r = scale * |x - y|
PROFILES = {
    "gaussian": lambda r: np.exp(-(r**2) / 2),
    "laplacian": lambda r: np.exp(-r),
    "matern,nu=0.7": lambda r: Matern(nu=0.7)(r[:, None], [[0]])[:, 0],
    "matern,nu=1.5": lambda r: Matern(nu=1.5)(r[:, None], [[0]])[:, 0],
}


def hash_of(name="gaussian", d=64, nbits=256, **keys):
    arguments = ",".join([name, *(f"{k}={v!r}" for k, v in keys.items())])
    return faiss_ext.kernel_hash_factory(d, f"SIK{nbits}({arguments})")


def hoeffding(n, nbits):
    """How far the mean of nbits independent bits may stray from its
    expectation, for n such means at once."""
    return np.sqrt(np.log(2 * n / FAILURE) / (2 * nbits))


# ------------------------------------------------------------------ theory

@pytest.mark.parametrize("name, profile", PROFILES.items())
def test_expected_hamming_is_the_series(name, profile):
    """Raginsky and Lazebnik 2009, lemma 2.2."""
    r = np.geomspace(0.01, 6, 30)
    total, m, k = np.zeros_like(r), 0, 1
    while np.max(k) > 1e-13:
        m += 1
        k = profile(m * r)
        total += (1 - k) / (4 * m * m - 1)
    rest = 1 / (2 * (2 * m + 1))  # of the terms with K = 0
    expected = 512 * 8 / np.pi**2 * (total + rest)
    hash = hash_of(name, nbits=512, gamma=0.3)
    values = profile(r)
    found = hash.expected_hamming(values)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert found[7] == hash.expected_hamming(float(values[7]))
    estimates = hash.kernel_estimate(found.reshape(5, 6))
    np.testing.assert_allclose(estimates, values.reshape(5, 6), atol=1e-6)


def test_bounds_are_those_of_lemma_2_3():
    u = np.linspace(0, 1, 30).reshape(5, 6)
    lower, upper = hash_of(nbits=512, gamma=0.3).hamming_bounds(u)
    most = 4 / np.pi**2
    np.testing.assert_allclose(lower, 512 * most * (1 - u), atol=1e-9)
    np.testing.assert_allclose(
        upper, 512 * np.minimum(np.sqrt(1 - u) / 2, most * (1 - 2 * u / 3)), atol=1e-9)


def test_bits_for_a_set_of_vectors():
    """Raginsky and Lazebnik 2009, theorem 2.4."""
    for n, delta, epsilon in ((1000, 0.1, 0.05), (10**9, 0.01, 1e-6)):
        bits = np.log(n**2 / epsilon) / (2 * delta**2)
        assert faiss_ext.bits_for(n, delta, epsilon) == 8 * np.ceil(bits / 8)
    assert faiss_ext.bits_for(n=2, delta=0.5, epsilon=0.5) == 8
    with pytest.raises(RuntimeError, match="delta = 1.5"):
        faiss_ext.bits_for(1000, 1.5, 0.05)


@pytest.mark.parametrize("kernel, squared", [
    ("gaussian(gamma=0.3)", 0.3), ("laplacian(gamma=0.3)", np.inf),
    ("matern(nu=0.5,gamma=0.3)", np.inf), ("matern(nu=1,gamma=0.3)", np.inf),
    ("matern(nu=2.5,gamma=0.3)", 0.3 * 5 / 3)])
def test_lipschitz_constant_is_the_second_moment_of_the_frequencies(kernel, squared):
    kernel = faiss_ext.kernel_factory(kernel)
    assert kernel.lipschitz_constant(7) == pytest.approx(np.sqrt(7 * squared))
    if np.isfinite(squared):
        hash = faiss_ext.kernel_hash_factory(
            7, f"SIK8192({kernel.description()},proj=dense)")
        omega = 2 * np.pi * hash.projection.matrix().astype(float)
        lengths = (omega**2).sum(axis=1)
        error = 5 * lengths.std() / np.sqrt(len(lengths))
        assert lengths.mean() == pytest.approx(7 * squared, abs=error)


def test_estimates_agree_with_random_fourier_features(digits):
    """scikit-learn's RBFSampler estimates the same kernel in another way; the
    two differ by no more than both of their Hoeffding bounds."""
    x, gamma, nbits = digits.base[:40], 0.001, 1 << 15
    sampler = RBFSampler(gamma=gamma / 2, n_components=nbits, random_state=5)
    features = sampler.fit_transform(x.astype(float))
    pairs = np.triu_indices(len(x), 1)
    theirs = (features @ features.T)[pairs]
    # a mean of products of two cosines, each from -2 to 2
    their_bound = 4 * hoeffding(len(theirs), 1 << 15)

    hash = hash_of("gaussian,proj=dense", nbits=nbits, gamma=gamma)
    bits = np.unpackbits(hash.encode(x), axis=1).astype("float32")
    distances = (bits @ (1 - bits.T) + (1 - bits) @ bits.T)[pairs]
    bound = nbits * hoeffding(len(theirs), nbits)
    low = hash.kernel_estimate(np.minimum(distances + bound, nbits))
    high = hash.kernel_estimate(np.maximum(distances - bound, 0))
    assert (theirs >= low - their_bound).all()
    assert (theirs <= high + their_bound).all()
    assert np.ptp(theirs) > 2 * their_bound + (high - low).max()
    # b is uniform on the circle: a bit is 1 with probability 1/2
    share = bits.mean(axis=1)
    assert np.abs(share - 0.5).max() <= hoeffding(len(x), nbits)


@pytest.mark.parametrize("name, marginal, power", [
    ("gaussian", stats.norm(), 0.5), ("laplacian", stats.cauchy(), 1),
    ("matern,nu=1.5", stats.t(3), 0.5), ("matern,nu=0.7", stats.t(1.4), 0.5)])
def test_random_numbers_have_their_distributions(name, marginal, power):
    nbits, d, gamma = 20_000, 3, 0.25
    hash = hash_of(name + ",proj=dense", d, nbits, gamma=gamma, seed=11)
    omega = hash.projection.matrix().reshape(nbits, d)
    omega = 2 * np.pi * omega.astype(float) / gamma**power
    b = faiss.vector_to_array(hash.offset)
    t = np.cos(2 * np.pi * faiss.vector_to_array(hash.threshold))
    numbers = [(column, marginal) for column in omega.T]
    numbers += [(b, stats.uniform()), (t, stats.uniform(-1, 2))]
    for sample, distribution in numbers:
        assert stats.kstest(sample, distribution.cdf).pvalue > 1e-6
    signs = np.sign(np.column_stack([omega, b - 0.5, t]))
    correlation = signs.T @ signs / nbits - np.eye(5)
    assert np.abs(correlation).max() < 6 / np.sqrt(nbits)
    # those of the Matérn kernel are a multivariate t: they share their scale
    together = stats.spearmanr(np.abs(omega[:, :2])).correlation
    assert together > 0.1 if name.startswith("matern") else abs(together) < 0.05


# ------------------------------------------------------------------- codes

def test_kernel_estimate_takes_the_distances_that_search_returns(digits):
    for factory in (faiss_ext.index_factory, faiss_ext.index_binary_factory):
        index = factory(64, "SIK256(gaussian,gamma=0.001),BFlat")
        index.add(digits.base)
        distance = index.search(digits.queries[:1], 1)[0][0, 0]  # NumPy's
        estimate = index.hash.kernel_estimate(distance)
        assert estimate == index.hash.kernel_estimate(float(distance))
        assert 0 < estimate <= 1
