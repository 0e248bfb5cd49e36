# SPDX-License-Identifier: MIT
"""What is known of the codes of two vectors: one interface for all schemes."""

import faiss_ext
import numpy as np
import pytest
from helpers import COUNTS, FAILURE
from sklearn.metrics.pairwise import (
    additive_chi2_kernel, cosine_similarity, laplacian_kernel, rbf_kernel)

TRAINING = COUNTS[200:]


def l1(x):
    return x / x.sum()


def chi2(x, y):
    return (x.sum() + y.sum() + additive_chi2_kernel(x[None], y[None])[0, 0]) / 2


def intersection(x, y):
    return np.minimum(x, y).sum()


def normalized(kernel):
    return lambda x, y: kernel(x, y) / np.sqrt(kernel(x, x) * kernel(y, y))


def of_degree(x, y):
    both = (x > 0) & (y > 0)
    a, b = x[both], y[both]
    value = ((a * b) ** -0.25 * 2 * a * b / (a + b)).sum()
    return value / np.sqrt((x**0.5).sum() * (y**0.5).sum())


KERNELS = {
    "SIK8(gaussian,gamma=0.001)": lambda x, y: rbf_kernel([x], [y], 0.0005)[0, 0],
    "SIK8(laplacian,gamma=0.01)": lambda x, y: laplacian_kernel([x], [y], 0.01)[0, 0],
    "BSIK8(8x8,gamma=0.001)": lambda x, y: rbf_kernel([x], [y], 0.0005)[0, 0],
    "RHBE8": lambda x, y: cosine_similarity([x], [y])[0, 0],
    "SCR8": lambda x, y: chi2(l1(x), l1(y)),
    "CWS8": lambda x, y: np.minimum(x, y).sum() / np.maximum(x, y).sum(),
    "AHK8(chi2)": normalized(chi2),
    "AHK8(chi2,norm=l1)": lambda x, y: chi2(l1(x), l1(y)),
    "AHK8(chi2,degree=0.5)": of_degree,
    "AHK8(intersection,center=1)": normalized(intersection),
    "KLSH8(chi2,p=50)": normalized(chi2),
    "KLSH8(intersection,p=50,normalize=0)": intersection,
}


def trained(string):
    hash = faiss_ext.kernel_hash_factory(64, string)
    hash.train(TRAINING)
    return hash


@pytest.mark.parametrize("string", KERNELS)
def test_kernel_value(string):
    hash, x, y = trained(string), *COUNTS[:2]
    exact = (a.astype(float) for a in (x, y))
    assert hash.kernel_value(x, y) == pytest.approx(KERNELS[string](*exact), rel=1e-5)
    if "normalize" not in string:
        assert hash.kernel_value(x, x) == pytest.approx(1, abs=1e-6)
    if "SIK" not in string:
        assert hash.kernel_value(np.zeros(64), y) == 0


def test_kernel_value_of_signed_vectors():
    x, y = COUNTS[:2].astype(float)
    signs = np.where(np.arange(64) % 2, -1, 1)
    hash = trained("AHK8(chi2,negative=sign)")
    assert hash.kernel_value(signs * x, signs * y) == hash.kernel_value(x, y)
    half = np.arange(64) % 2 == 1
    total = np.sqrt(x.sum() * y.sum())
    assert hash.kernel_value(signs * x, y) * total == pytest.approx(
        chi2(x[~half], y[~half]) - chi2(x[half], y[half]), abs=1e-3)
    assert hash.kernel_value(-x, x) == -1
    assert hash.expected_hamming(-1) == 8
    centred = trained("AHK64(chi2,negative=sign,center=1)")
    assert 32 < centred.expected_hamming_of_pair(-x, x) <= 64
    assert hash.kernel_estimate(8) == pytest.approx(-1)


# where bits are independent: (string, what is known beside the kernel value)
INDEPENDENT = ("SIK4096(gaussian,gamma=0.001,proj=dense,seed={})",
               "SIK4096(laplacian,gamma=0.003,proj=dense,seed={})",
               "RHBE4096(proj=dense,seed={})",
               # whose map of order 0 is far from the kernel
               "AHK4096(intersection,order=0,proj=dense,seed={})",
               "AHK4096(chi2,order=3,proj=dense,norm=l1,seed={})")


@pytest.mark.parametrize("string", INDEPENDENT)
def test_expected_hamming_of_pair(string):
    """Hoeffding's inequality, for ten pairs."""
    pairs = 10
    error = np.sqrt(np.log(2 * pairs / FAILURE) / (2 * 4096))
    hash = trained(string.format(5))
    bits = np.unpackbits(hash.encode(COUNTS[: 2 * pairs]), axis=1)
    found = (bits[0::2] != bits[1::2]).mean(axis=1)
    expected = [hash.expected_hamming_of_pair(x, y) / 4096
                for x, y in COUNTS[: 2 * pairs].reshape(pairs, 2, 64)]
    assert np.ptp(expected) > 0.05
    np.testing.assert_allclose(found, expected, atol=error, rtol=0)
    x, y = COUNTS[:2]
    if "AHK" not in string:
        assert hash.expected_hamming_of_pair(x, y) == pytest.approx(
            hash.expected_hamming(hash.kernel_value(x, y)), rel=1e-4)
    assert hash.expected_hamming_of_pair(x, x) == 0


def test_expected_hamming_with_zeros():
    zeros = np.zeros(64)
    for string in ("RHBE64(proj=dense)", "AHK64(chi2)"):
        hash = trained(string)
        assert hash.expected_hamming_of_pair(zeros, zeros) == 0
        assert hash.expected_hamming_of_pair(zeros, COUNTS[0]) == 32


def test_expected_hamming_of_near_vectors():
    """Where the kernel's value is 1 to a float, the distance of a Gaussian kernel
    is in proportion to that of the vectors: h(r) = r sqrt(2 / pi^3), r -> 0."""
    hash = trained("SIK4096(gaussian,gamma=0.001,proj=dense)")
    x = COUNTS[0].astype(float)
    shift = np.full(64, 1e-3)
    r = np.sqrt(0.001) * np.linalg.norm(shift)
    assert hash.expected_hamming_of_pair(x, x + shift) == pytest.approx(
        4096 * r * np.sqrt(2 / np.pi**3), rel=0.02)


def test_approximate_expected_hamming_of_pair():
    x, y = COUNTS[:2]
    for string in ("SCR64", "KLSH64(chi2)", "KLSH64(chi2,center=0)", "AHK64(chi2,center=1)"):
        assert trained(string).expected_hamming_of_pair(x, x) == 0
    for string in ("SCR64", "KLSH64(chi2)", "AHK64(chi2,center=1)", "AHK64(chi2,rot=pca)"):
        hash = trained(string)
        assert hash.expected_hamming_of_pair(x, y) == hash.expected_hamming(
            hash.kernel_value(x, y))


# (string, whether bits are independent)
DRAWN = {**{string.replace("4096", "64"): True for string in INDEPENDENT},
         "SCR64(seed={})": True, "KLSH64(chi2,p=20,rank=5,seed={})": True,
         "RHBE64(proj=bilinear,shape=8x8,m=1,seed={})": False}


@pytest.mark.parametrize("string", DRAWN)
def test_covariance_of_bits(string):
    """The variance of the distance over seeds is n p (1 - p) + n (n - 1) c, where c
    is the mean covariance of two of the n bits."""
    n, seeds = 64, 400
    x, y = COUNTS[:2]
    distances = []
    for seed in range(seeds):
        hash = faiss_ext.kernel_hash_factory(64, string.format(seed))
        hash.train(TRAINING[:20])  # all of them are landmarks
        bits = np.unpackbits(hash.encode(COUNTS[:2]), axis=1)
        distances.append(np.count_nonzero(bits[0] != bits[1]))
    p = np.mean(distances) / n
    independent = n * p * (1 - p)
    # five standard deviations of the variance of nearly normal numbers
    error = 5 * independent * np.sqrt(2 / (seeds - 1))
    if DRAWN[string]:
        assert hash.covariance_of_pair(x, y) == 0
        assert abs(np.var(distances, ddof=1) - independent) < error
    else:
        assert np.var(distances, ddof=1) > independent + error


def test_covariance_where_bits_depend():
    x, y = COUNTS[:2]
    hash = trained("BSIK64(8x8,gamma=0.001)")
    assert 0 < hash.covariance_of_pair(x, y) < 0.1
    for string in ("SIK64(gaussian,gamma=0.001)", "RHBE64", "AHK64(chi2,rot=itq)",
                   "RHBE64(proj=bilinear,shape=8x8)", "SH16"):
        with pytest.raises(RuntimeError, match="covariance_of_pair: the covariance"):
            trained(string).covariance_of_pair(x, y)
    for string in ("KLSH64(chi2)", "AHK64(chi2,proj=dense,center=1)"):
        assert trained(string).covariance_of_pair(x, y) == 0


def test_where_nothing_is_known():
    x, y = COUNTS[:2]
    precomputed = faiss_ext.kernel_hash_factory(50, "KLSH8(precomputed)")
    precomputed.train(TRAINING[:50] @ TRAINING[:50].T)
    for hash in (trained("SH16"), trained("RHBE8(center=1)"), trained("RHBE8(rot=itq)")):
        for function in (hash.kernel_value, hash.expected_hamming_of_pair):
            with pytest.raises(RuntimeError, match="cannot compute the kernel value of two vectors"):
                function(x, y)
    with pytest.raises(RuntimeError, match="cannot compute the kernel value of two vectors"):
        precomputed.kernel_value(x[:50], y[:50])
    with pytest.raises(RuntimeError, match="not available with normalize=0"):
        trained("KLSH64(intersection,normalize=0)").expected_hamming_of_pair(x, y)


def test_bad_calls():
    x, y = COUNTS[:2]
    bad = np.where(np.arange(64) == 5, np.nan, y)
    for string in ("SIK8(gaussian,gamma=0.001,proj=dense)", "AHK8(chi2,proj=dense)",
                   "RHBE8(proj=dense)", "SCR8", "KLSH8(chi2)"):
        hash = trained(string)
        for method in (hash.kernel_value, hash.expected_hamming_of_pair,
                       hash.covariance_of_pair):
            for args, error in (((x, bad), RuntimeError), ((bad, y), RuntimeError),
                                ((x[:63], y[:63]), (ValueError, RuntimeError)),
                                ((COUNTS[:2], y), ValueError)):
                with pytest.raises(error):
                    method(*args)
    untrained = faiss_ext.kernel_hash_factory(64, "SIK8(gaussian)")
    with pytest.raises(RuntimeError, match="not trained"):
        untrained.kernel_value(x, y)


# ------------------------------------------------- intervals of kernel values

INTERVALS = ["SIK{}(gaussian,proj=dense,gamma=4)", "SIK{}(laplacian,proj=dense,gamma=1)", "AHK{}(chi2,proj=dense,norm=l1)",
             "AHK{}(js,proj=dense,order=3,norm=l1)", "RHBE{}(proj=dense)", "CWS{}"]


@pytest.mark.parametrize("string", INTERVALS)
def test_intervals_have_the_kernel_value(string):
    x = TRAINING[:40] / 16
    seeds, pairs = range(8), [(i, j) for i in range(40) for j in range(i)]
    failure = FAILURE / (len(seeds) * len(pairs))
    for seed in seeds:
        text = string.format(1024)
        text = text.replace(")", f",seed={seed})") if ")" in text else f"{text}(seed={seed})"
        hash = faiss_ext.kernel_hash_factory(64, text)
        if not hash.is_trained:
            hash.train(x)
        bits = np.unpackbits(hash.encode(x), axis=1)
        hamming = np.array([(bits[i] != bits[j]).sum() for i, j in pairs])
        low, high = hash.kernel_interval(hamming, failure)
        values = np.array([hash.kernel_value(x[i], x[j]) for i, j in pairs])
        assert (low <= values + 1e-6).all() and (values <= high + 1e-6).all()
        # they say something, and no less about less sure statements
        assert np.mean(high - low) < 0.75
        less_sure = hash.kernel_interval(hamming, 0.1)
        assert (less_sure[0] >= low).all() and (less_sure[1] <= high).all()


def test_intervals_are_those_of_the_formula():
    hash = faiss_ext.kernel_hash_factory(64, "CWS512")
    for hamming in (0, 3, 100, 250):
        deviation = np.sqrt(np.log(2 / 0.05) / (2 * 512))
        expected = [np.clip(1 - 2 * (hamming / 512 + sign * deviation), 0, 1) for sign in (1, -1)]
        assert hash.kernel_interval(hamming) == pytest.approx(expected, abs=1e-9)
    hyperplanes = faiss_ext.kernel_hash_factory(64, "RHBE256(proj=dense)")
    low, high = hyperplanes.kernel_interval(90, 0.01)
    deviation = np.sqrt(np.log(200) / (2 * 256))
    assert low == pytest.approx(np.cos(np.pi * (90 / 256 + deviation)), abs=1e-9)
    assert high == pytest.approx(np.cos(np.pi * (90 / 256 - deviation)), abs=1e-9)


@pytest.mark.parametrize("string", ["CWS64", "AHK64(chi2,proj=dense,norm=l1)", "SIK64(gaussian,proj=dense,gamma=1)", "RHBE64(proj=dense)"])
def test_intervals_reach_the_ends(string):
    """Kernel values of 0 (-1) and 1 lie inside those of codes that say so."""
    hash = faiss_ext.kernel_hash_factory(8, string)
    assert hash.kernel_interval(0)[1] == 1
    if string.startswith("RHBE"):
        assert hash.kernel_interval(64)[0] == -1
    else:
        assert hash.kernel_interval(40)[0] == 0
    assert all(0 <= low <= high <= 1 or string.startswith("RHBE") for low, high in map(hash.kernel_interval, range(65)))


@pytest.mark.parametrize("string", ["AHK256(chi2,proj=dense)", "AHK256(intersection,proj=dense,order=3)", "AHK256(js,proj=dense,order=2)"])
def test_intervals_are_those_of_the_bounds(string):
    hash = faiss_ext.kernel_hash_factory(8, string)
    deviation = np.sqrt(256 * np.log(2 / 0.1) / 2)
    for hamming in (60, 90, 110):
        low, high = hash.kernel_interval(hamming, 0.1)
        if low > 0:
            assert hash.hamming_bounds(low)[0] == pytest.approx(hamming + deviation, abs=1e-6)
        if high < 1:
            assert hash.hamming_bounds(high)[1] == pytest.approx(hamming - deviation, abs=1e-6)
    assert hash.kernel_interval(60, 0.1)[0] > 0 and hash.kernel_interval(110, 0.1)[1] < 1


def test_narrower_intervals_of_more_bits():
    widths = [np.subtract(*faiss_ext.kernel_hash_factory(8, f"CWS{bits}").kernel_interval(bits // 4)[::-1]) for bits in (256, 1024, 4096)]
    np.testing.assert_allclose(np.divide(widths[:-1], widths[1:]), 2, rtol=1e-6)


@pytest.mark.parametrize("string", ["SIK64(gaussian,gamma=1)", "KLSH64(chi2,p=50)", "SCR64", "RHBE64(rot=pca)", "AHK64(chi2)", "BSIK64", "SH64"])
def test_no_intervals_where_theory_has_none(string):
    hash = faiss_ext.kernel_hash_factory(64, string)
    hash.train(TRAINING[:200])
    with pytest.raises(RuntimeError):
        hash.kernel_interval(10)


@pytest.mark.parametrize("hamming, failure", [(10, 0), (10, 1), (10, float("nan")), (-1, 0.1), (65, 0.1)])
def test_bad_arguments_of_intervals(hamming, failure):
    with pytest.raises(RuntimeError, match="kernel_interval|expected 0 to 64 bits"):
        faiss_ext.kernel_hash_factory(64, "CWS64").kernel_interval(hamming, failure)
