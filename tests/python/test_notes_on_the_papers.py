# SPDX-License-Identifier: MIT
"""The numbers of docs/notes-on-the-papers.md: statements of the source papers
that do not hold as they stand, and what holds in their place."""

import re
from pathlib import Path

import faiss
import faiss_ext
import numpy as np
import pytest

NOTES = Path(__file__).resolve().parents[2] / "docs" / "notes-on-the-papers.md"


def says(*numbers):
    """Whether the page has these numbers."""
    text = NOTES.read_text()
    return all(re.search(rf"(?<![\d.]){re.escape(n)}(?!\d)", text) for n in numbers)


def hash_and_pair(eigenvalues):
    """A hash and two vectors, whose difference has such eigenvalues."""
    q = len(eigenvalues)
    hash = faiss_ext.BilinearShiftInvariantHash(q, q, 64, 1, 5, False, 1, False)
    return hash, np.diag(np.sqrt(eigenvalues)).ravel(), np.zeros(q * q)


def covariance(eigenvalues):
    """Of two bits that share a w or a v."""
    hash, x, y = hash_and_pair(eigenvalues)
    return hash.covariance_of_pair(x, y)


def bound(total):
    """Theorem 3 at a sum of eigenvalues."""
    return faiss_ext.BilinearShiftInvariantHash.covariance_bound(np.exp(-total / 2))


def test_covariance_of_bits_exceeds_the_theorem():
    assert says("0.0156", "0.0049", "0.0087", "0.99")
    assert covariance([2.25]) == pytest.approx(0.0156, abs=5e-5)
    assert bound(2.25) == pytest.approx(0.0049, abs=5e-5)
    largest = max(bound(s) for s in np.linspace(0.01, 20, 500))
    assert largest == pytest.approx(0.0087, abs=5e-5) and covariance([2.25]) > largest
    # of independent origin: given w = z, bits differ with the probability of SIK
    # at a phase of variance s z^2, which is 2 / pi E |sin|
    rng = np.random.default_rng(1)
    z, v, u = rng.standard_normal((3, 2_000_000))
    a, b = (2 / np.pi * np.abs(np.sin(1.5 * z * w / 2)) for w in (u, v))
    assert np.mean(a * b) - np.mean(a) * np.mean(b) == pytest.approx(0.0156, abs=1e-3)
    # under the conditions of lemma 1 it holds
    share = 0.28 / 1.28
    ratios = [covariance([share * s] * 4 + [s - 4 * share * s]) / bound(s)
              for s in (0.05, 0.3, 0.64, 1, 1.5, 2, 2.3, 2.56)]
    assert max(ratios) == pytest.approx(0.99, abs=0.005)


def test_rank_one_breaks_the_lower_bound_of_theorem_2():
    assert says("2.56", "0.236", "0.258")
    hash, x, y = hash_and_pair([2.56])
    expected, bound = hash.expected_hamming_of_pair(x, y) / 64, 4 / np.pi**2 * (1 - np.exp(-0.79 * 2.56 / 2))
    assert (expected, bound) == (pytest.approx(0.236, abs=5e-4), pytest.approx(0.258, abs=5e-4))
    # of independent origin: bits differ with the probability 2 / pi E |sin(w v |x - y| / 2)|
    w, v = np.random.default_rng(2).standard_normal((2, 2_000_000))
    assert 2 / np.pi * np.abs(np.sin(1.6 * w * v / 2)).mean() == pytest.approx(0.236, abs=1e-3)


def test_large_norms_break_theorem_3():
    assert says("0.000031", "0.000024")
    assert covariance([0.4] * 25) == pytest.approx(3.1e-5, abs=5e-7)
    assert bound(10) == pytest.approx(2.4e-5, abs=5e-7)


def test_the_proof_uses_lemma_1_where_it_fails():
    """kappa_b <= kappa_g^0.79 at sqrt(m^2 + n^2) (X - Y), where X - Y meets the
    conditions."""
    eigenvalues = np.full(5, 0.3)
    for m, n, holds in ((0, 1, True), (1, 1, False), (2, 3, False)):
        scaled = (m * m + n * n) * eigenvalues
        kernel = np.prod(1 / np.sqrt(1 + scaled))
        assert (kernel <= np.exp(-0.79 * scaled.sum() / 2)) == holds


def test_explicit_maps_are_longer_than_corollary_1_says():
    assert says("1.124", "0.84")
    norm = faiss_ext.map_factory(2, "HKM10(chi2,period=7)").squared_norm()
    assert norm == pytest.approx(1.124, abs=5e-4)
    poisson = sum(1 / np.cosh(7 * n / 2) for n in range(-20, 21))
    assert norm == pytest.approx(poisson, abs=1e-6)
    norms = [faiss_ext.map_factory(2, f"HKM{order}({kernel})").squared_norm()
             for kernel in ("chi2", "js", "intersection") for order in range(1, 101)]
    assert max(norms) <= 1 + 1e-6
    assert min(norms) == pytest.approx(0.84, abs=5e-3)


def test_equation_3_lacks_the_eigenvalues():
    assert says("101", "0.27", "0.50")
    place = np.linspace(0, 1, 101)
    landmarks = np.stack([place, 1 - place], axis=1)
    chi2 = faiss_ext.kernel_factory("chi2")
    values, vectors = np.linalg.eigh(chi2.gram(landmarks, landmarks).astype(float))
    kept = values > 1e-6 * values[-1]
    rows = chi2.gram(np.eye(2), landmarks)  # of two histograms without a common component

    def expected_share(power):
        a, b = rows @ (vectors[:, kept] * values[kept] ** power)
        return np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) / np.pi

    assert chi2.gram(np.eye(2), np.eye(2))[0, 1] == 0
    assert expected_share(0) == pytest.approx(0.27, abs=5e-3)
    assert expected_share(-0.5) == pytest.approx(0.5, abs=1e-4)


def test_algorithm_1_draws_too_few_offsets():
    assert says("2,000", "10,000")
    k, m = 400, 5
    hash = faiss_ext.kernel_hash_factory(28 * 28, f"BSIK{k}(28x28,m={m},gamma=1)")
    entries = hash.projection.k_w * hash.projection.k_v
    assert (m * k, entries) == (2000, 10_000)
    assert len(faiss.vector_to_array(hash.projection.pair_w)) == k


def test_lemma_2_of_2015_fails_for_points_and_for_the_mean():
    assert says("0.46", "0.86", "0.83")
    m, k, xi = 10**6, 2, 2
    weights = np.array([0.7, 0.25, 0.05])
    gap = (weights[1] - weights[2]) / 2
    eta = 2 / (gap * np.sqrt(m)) * (1 + np.sqrt(xi / 2))
    assert 1 - np.sqrt(weights[1]) - eta == pytest.approx(0.46, abs=5e-3)
    assert 1 - np.exp(-xi) == pytest.approx(0.86, abs=5e-3)
    # the library's own projection, from points in these proportions
    points = np.repeat(np.eye(3, dtype="float32"), [140, 50, 10], axis=0)
    kpca = faiss_ext.map_factory(3, f"KPCA{k}(linear,p=200,nystrom=1,center=0)")
    kpca.train(points)
    lengths = np.linalg.norm(kpca.apply(np.eye(3)), axis=1)
    np.testing.assert_allclose(lengths, [1, 1, 0], atol=1e-5)
    # the mean square of the length is the sum of the first eigenvalues
    many = np.append(0.03, np.full(49, 0.97 / 49))
    assert 1 - np.sqrt(many[0]) == pytest.approx(0.83, abs=5e-3)
    first = np.argmax(many)
    assert np.sum(many * (np.arange(50) == first)) == 0.03


def test_lists_of_the_run_on_80_million_images():
    assert says("2.74", "3.36", "784,000", "26,260", "26,000", "0.03")
    n, lists = 80e6, 130
    assert n ** (1 / (1 + 2.74)) == pytest.approx(130, abs=0.5)
    assert 2 * n ** (1 / (1 + 2.74)) == pytest.approx(260, abs=1)
    eps = np.log(n) / np.log(lists / 2) - 1
    assert eps == pytest.approx(3.36, abs=5e-3)
    entries = 2 * lists + lists * 2 * 100
    assert entries == 26_260 and 100 * entries / n == pytest.approx(0.03, abs=5e-3)
    assert 0.0098 * n == pytest.approx(784_000)
    assert 0.0098 * n / (entries - 2 * lists) == pytest.approx(30, abs=0.5)


def test_bits_differ_more_with_a_larger_gamma():
    assert says("15.0", "4.0", "25.9")
    hash = faiss_ext.kernel_hash_factory(8, "SIK64(gaussian,gamma=1)")
    bits = hash.expected_hamming(np.exp(-np.array([1, 1 / 16, 16]) / 2))
    assert bits == pytest.approx([15.0, 4.0, 25.9], abs=0.05)


def test_clt_draws_without_centring_collapse(digits):
    assert says("99", "14")
    x = digits.base / digits.base.sum(axis=1, keepdims=True)

    def share_of_constant_bits(keys):
        hash = faiss_ext.kernel_hash_factory(64, f"KLSH256(chi2,center=0,{keys})")
        hash.train(x)
        ones = np.unpackbits(hash.encode(x), axis=1).mean(axis=0)
        return np.mean(np.minimum(ones, 1 - ones) < 0.01)

    assert share_of_constant_bits("nystrom=1") == 1
    with_gauss = share_of_constant_bits("nystrom=1,draw=gauss")
    assert with_gauss == pytest.approx(0.14, abs=0.03)


def test_the_best_rank_depends_on_the_number_of_bits(digits):
    base, queries = (x / x.sum(axis=1, keepdims=True) for x in (digits.base, digits.queries))
    flat = faiss_ext.index_factory(64, "KFlat(chi2)")
    flat.add(base)
    nearest = flat.search(queries, 1)[1]

    def recall(bits, rank):
        found = []
        for seed in range(1, 5):
            index = faiss_ext.index_factory(64, f"KLSH{bits}(chi2,p=200,t=20,center=0,rank={rank},seed={seed}),BFlat")
            index.train(base)
            index.add(base)
            found.append((index.search(queries, 5)[1] == nearest).any(axis=1).mean())
        return np.mean(found)

    # means of four seeds have a standard deviation of 0.007 to 0.015
    assert recall(32, 8) > recall(32, 128) + 0.05
    assert recall(512, 128) > recall(512, 8) + 0.05
