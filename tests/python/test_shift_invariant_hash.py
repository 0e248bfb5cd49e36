"""Shift-invariant kernel hashing against SciPy and scikit-learn, and what its
methods take and give in Python."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gamma as gamma_function
from scipy.special import kv
from sklearn.kernel_approximation import RBFSampler

import faiss
import faiss_ext

# chance that a right hash fails one of the statistical tests
FAILURE = 1e-9


def matern_profile(nu):
    def profile(r):
        z = np.sqrt(2 * nu) * np.minimum(r, 600 / np.sqrt(2 * nu))
        return 2 ** (1 - nu) / gamma_function(nu) * z**nu * kv(nu, z)

    return profile


# K as a function of r = scale * |x - y|
PROFILES = {
    "gaussian": lambda r: np.exp(-(r**2) / 2),
    "laplacian": lambda r: np.exp(-r),
    "matern,nu=0.7": matern_profile(0.7),
    "matern,nu=1.5": matern_profile(1.5),
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
    np.testing.assert_allclose(
        hash.kernel_estimate(found.reshape(5, 6)),
        values.reshape(5, 6),
        atol=1e-6,
    )


def test_estimates_agree_with_random_fourier_features(digits):
    """scikit-learn's RBFSampler estimates the same kernel in another way; the
    two differ by no more than both of their Hoeffding bounds."""
    x, gamma, nbits = digits.base[:40], 0.001, 1 << 15
    features = RBFSampler(
        gamma=gamma / 2, n_components=1 << 15, random_state=5
    ).fit_transform(x.astype(float))
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


@pytest.mark.parametrize("convert", [
    lambda x: x.astype("float64"), lambda x: x.astype("uint8"),
    lambda x: x.astype(">f4"), np.asfortranarray, np.ndarray.tolist,
    lambda x: np.repeat(x, 2, axis=1)[:, ::2], lambda x: x[::-1].copy()[::-1]])
def test_vectors_of_any_type_and_layout_give_the_same_codes(digits, convert):
    x = digits.queries[:20]
    hash, other = hash_of(), hash_of()
    hash.train(convert(x))
    other.train(x)
    assert hash.kernel.gamma == other.kernel.gamma
    np.testing.assert_array_equal(hash.encode(convert(x)), other.encode(x))
    np.testing.assert_array_equal(hash.apply(convert(x)), other.apply(x))


def test_arrays_are_checked(digits):
    hash = hash_of(gamma=0.001)
    nothing = np.zeros((0, 64))
    assert hash.encode(nothing).shape == (0, 32)
    assert hash.apply(nothing).shape == (0, 256)
    hash.train(nothing)  # a given bandwidth needs no data
    for method in (hash.encode, hash.apply, hash.train):
        for shape in [(64,), (3, 63), (1, 3, 64), ()]:
            with pytest.raises(ValueError, match=r"shape \(n, 64\)"):
                method(np.zeros(shape))
    for bad in (np.nan, 1e39):
        x = digits.queries.astype(float)
        x[70, 3] = bad
        for method in (hash.encode, hash.apply, hash_of().train):
            with pytest.raises(RuntimeError, match="component 3 of vector 70"):
                method(x)


def test_kernel_estimate_takes_the_distances_that_search_returns(digits):
    for factory in (faiss_ext.index_factory, faiss_ext.index_binary_factory):
        index = factory(64, "SIK256(gaussian,gamma=0.001),BFlat")
        index.add(digits.base)
        distance = index.search(digits.queries[:1], 1)[0][0, 0]  # NumPy's
        estimate = index.hash.kernel_estimate(distance)
        assert estimate == index.hash.kernel_estimate(float(distance))
        assert 0 < estimate <= 1
