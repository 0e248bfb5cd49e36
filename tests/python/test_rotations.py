# SPDX-License-Identifier: MIT
"""Hyperplanes that are learnt (rot=pca, rot=itq) against scikit-learn's PCA and
iterative quantisation in NumPy and in FAISS."""

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import BASE, QUERIES
from sklearn.decomposition import PCA

BITS = 32


def trained(string, x=BASE):
    hash = faiss_ext.kernel_hash_factory(x.shape[1], string)
    hash.train(x)
    return hash


def features(hash, x):
    return hash.map.apply(x) if hasattr(hash, "map") else x


SCHEMES = ["RHBE{}(rot={})", "AHK{}(chi2,rot={})", "AHK{}(js,order=2,norm=l1,seed=3,rot={})"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_directions_are_those_of_scikit_learn(scheme):
    """pca is a rotation of the leading principal directions, itq another one of
    the same; margins are from the mean."""
    pca, itq = (trained(scheme.format(BITS, rot)) for rot in ("pca", "itq"))
    phi = features(pca, BASE).astype("float64")
    reference = PCA(BITS, svd_solver="full").fit(phi).components_
    for hash in (pca, itq):
        matrix = hash.projection.matrix()
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(BITS), atol=1e-5)
        np.testing.assert_allclose(matrix.T @ matrix, reference.T @ reference, atol=1e-3)
        centred = features(hash, QUERIES) - phi.mean(axis=0)
        np.testing.assert_allclose(hash.apply(QUERIES), centred @ matrix.T, atol=1e-5)
    assert abs(pca.projection.matrix() - itq.projection.matrix()).max() > 0.1


def quantise(v, rounds):
    """Iterative quantisation (Gong and Lazebnik), which starts from v as it is."""
    rotation = np.eye(v.shape[1])
    for _ in range(rounds):
        signs = np.where(v @ rotation >= 0, 1, -1)
        u, _, vt = np.linalg.svd(signs.T @ v)
        rotation = vt.T @ u.T
    return rotation


def alignment(v):
    """The mean cosine of vectors and their signs."""
    return (abs(v).sum(axis=1) / np.linalg.norm(v, axis=1)).mean() / v.shape[1] ** 0.5


@pytest.mark.parametrize("scheme", SCHEMES)
def test_itq_is_that_of_numpy(scheme):
    """From the rotation of pca, which has the same seed. A sign that rounding
    decides moves the next rotations a little."""
    pca, itq = (trained(scheme.format(BITS, rot)) for rot in ("pca", "itq"))
    v = pca.apply(BASE).astype("float64")
    expected = v @ quantise(v, 50)
    np.testing.assert_allclose(itq.apply(BASE), expected, atol=0.05 * abs(expected).max())
    assert alignment(expected) > alignment(v) + 0.01
    assert alignment(itq.apply(BASE)) == pytest.approx(alignment(expected), abs=1e-3)


def test_itq_is_as_good_as_that_of_faiss():
    """Another start, and so another local optimum."""
    itq = trained(f"RHBE{BITS}(rot=itq)")
    other = faiss.ITQTransform(BASE.shape[1], BITS, True)
    other.train(BASE)
    v = (BASE - BASE.mean(axis=0)) @ PCA(BITS, svd_solver="full").fit(BASE).components_.T
    # (FAISS makes all vectors one long first)
    assert alignment(itq.apply(BASE)) > alignment(v) + 0.05
    assert alignment(itq.apply(BASE)) > 0.98 * alignment(other.apply(BASE))


def test_more_bits_than_dimensions_have_rotations_of_their_own():
    for rot in ("pca", "itq"):
        matrix = trained(f"RHBE160(rot={rot})").projection.matrix()
        assert matrix.shape == (160, 64)
        for part in (matrix[:64], matrix[64:128], matrix[128:]):
            np.testing.assert_allclose(part @ part.T, np.eye(len(part)), atol=1e-5)
        assert abs(matrix[:64] - matrix[64:128]).max() > 0.1


def test_a_sample_is_enough():
    """More vectors than are looked at: directions are nearly those of all."""
    rng = np.random.default_rng(1)
    x = (rng.standard_normal((40000, 16)) * np.linspace(3, 1, 16)).astype("float32")
    matrix = trained("RHBE8(rot=pca)", x).projection.matrix()
    reference = PCA(8, svd_solver="full").fit(x).components_
    cosines = np.linalg.svd(matrix @ reference.T)[1]
    assert cosines.min() > 0.9 and cosines[0] > 0.999


def test_few_training_vectors_and_constant_ones():
    for x in (BASE[:2], BASE[:5], np.repeat(BASE[:1], 20, axis=0)):
        for rot in ("pca", "itq"):
            hash = trained(f"AHK64(chi2,rot={rot})", x)
            assert np.isfinite(hash.apply(QUERIES)).all()
            assert 0 < hash.mean_value <= 1


@pytest.mark.parametrize("scheme, power", [
    ("RHBE{}(rot={})", 2.0**100), ("RHBE{}(rot={})", 2.0**-90), ("AHK{}(hellinger,rot={})", 2.0**100)])
def test_scale_does_not_matter(scheme, power):
    """A power of two (of which the map takes the square root) is exact."""
    for rot in ("pca", "itq"):
        string = scheme.format(BITS, rot)
        codes = trained(string, BASE * np.float32(power)).encode(QUERIES * np.float32(power))
        np.testing.assert_array_equal(codes, trained(string).encode(QUERIES))


def test_errors():
    with pytest.raises(RuntimeError, match="8192|8,192"):
        trained("AHK8(chi2,rot=pca)", np.ones((2, 2731), "float32"))
    for key in ("center=1", "proj=dense"):
        with pytest.raises(RuntimeError, match=key.split("=")[0]):
            faiss_ext.kernel_hash_factory(64, f"AHK64(chi2,rot=itq,{key})")
    with pytest.raises(RuntimeError, match="random, pca|pca"):
        faiss_ext.kernel_hash_factory(64, "RHBE64(rot=svd)")
    hash = faiss_ext.kernel_hash_factory(64, "RHBE64(rot=itq)")
    assert not hash.is_trained and hash.projection is None and hash.rot == "itq"
    with pytest.raises(RuntimeError, match="train"):
        hash.encode(BASE)


def test_constructors():
    map = faiss_ext.HomogeneousKernelMap(64, faiss_ext.Chi2Kernel())
    for made, string in (
            (faiss_ext.AdditiveKernelHash(map, 64, rot="itq"), "AHK64(chi2,rot=itq)"),
            (faiss_ext.HyperplaneHash(64, 64, seed=3, rot="pca"), "RHBE64(rot=pca,seed=3)")):
        made.train(BASE)
        np.testing.assert_array_equal(made.encode(QUERIES), trained(string).encode(QUERIES))


def test_estimates_are_a_rule_of_thumb():
    """The order of kernel values is kept; what principal directions leave out
    makes far pairs differ in more bits than expected_hamming says."""
    kernel = faiss_ext.kernel_factory("chi2").gram(QUERIES, BASE).ravel()
    for rot in ("pca", "itq"):
        hash = trained(f"AHK64(chi2,rot={rot})")
        a, b = (np.unpackbits(hash.encode(x), axis=1) for x in (QUERIES, BASE))
        hamming = (a[:, None] != b[None]).sum(axis=2).ravel()
        estimates = np.array([hash.kernel_estimate(h) for h in range(65)])[hamming]
        assert abs(estimates - kernel).mean() < 0.1
