# SPDX-License-Identifier: MIT
"""Codes scanned with the query's margins (AFlat)."""

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import BASE, COUNTS, IP, QUERIES, made


def share_found(index, queries, truth, top):
    found = index.search(queries, top)[1]
    return np.mean([np.isin(t, f).mean() for t, f in zip(truth, found)])


# Measured with digits, 128 bits, the share of the ten nearest among the first 20,
# means of three seeds, by Hamming distance and by asymmetric distance:
#
#   AHK(chi2)            0.716 0.818     RHBE                     0.743 0.842
#   AHK(chi2,center=1)   0.829 0.899     SIK(gaussian)            0.763 0.850
#   AHK(chi2,rot=pca)    0.849 0.923     SIK(gaussian,proj=dense) 0.760 0.843
#   AHK(chi2,rot=itq)    0.876 0.925     SIK(laplacian)           0.545 0.622
#   SCR                  0.724 0.764     SIK(matern)              0.667 0.760
#   KLSH(chi2,p=100)     0.819 0.885     BSIK                     0.694 0.770
#
# The bounds are about half of the gains.
@pytest.mark.parametrize(
    "scheme, kernel, gain", [
        ("AHK128(chi2,seed={})", "chi2", 0.05),
        ("AHK128(chi2,center=1,seed={})", "chi2", 0.035),
        ("AHK128(chi2,rot=pca,seed={})", "chi2", 0.035),
        ("AHK128(chi2,rot=itq,seed={})", "chi2", 0.025),
        ("SCR128(seed={})", "chi2", 0.02),
        ("KLSH128(chi2,p=100,seed={})", "chi2", 0.03),
        ("RHBE128(seed={})", "cosine", 0.05),
        ("SIK128(gaussian,seed={})", "gaussian", 0.04),
        ("SIK128(gaussian,proj=dense,seed={})", "gaussian", 0.04),
        ("SIK128(laplacian,seed={})", "laplacian", 0.035),
        ("SIK128(matern,seed={})", "matern", 0.045),
        ("BSIK128(seed={})", "gaussian", 0.035)])
def test_more_is_found_than_by_hamming_distances(scheme, kernel, gain):
    truth = made(f"KFlat({kernel})", BASE).search(QUERIES, 10)[1]
    shares = np.array([
        [share_found(made(scheme.format(seed) + storage, BASE), QUERIES, truth, 20)
         for storage in (",BFlat", ",AFlat")] for seed in (1, 2, 3)])
    hamming, asymmetric = shares.mean(axis=0)
    assert asymmetric > hamming + gain


def test_distances_are_those_of_margins():
    """Up to the rounding of weights, by half of 1/125 of the largest four."""
    for metric in (faiss.METRIC_L2, IP):
        index = made("AHK64(chi2,center=1),AFlat", BASE, metric)
        hash = index.hash
        margins = hash.apply(QUERIES).astype("float64")
        bits = np.unpackbits(hash.encode(BASE), axis=1, bitorder="little")
        differ = (margins[:, None] >= 0) != bits[None]
        weights = abs(margins)
        D = 64 * (weights[:, None] * differ).sum(axis=2) / weights.sum(axis=1, keepdims=True)
        unit = weights.reshape(-1, 16, 4).sum(axis=2).max(axis=1) / 125
        error = 64 * 64 * unit / weights.sum(axis=1)
        assert error.max() < 6
        got, ids = index.search(QUERIES, 50)
        expected = np.take_along_axis(D, ids, axis=1)
        if metric == IP:
            got = (64 - got) / 2
        assert (abs(got - expected) < error[:, None]).all()
        assert abs(got - expected).mean() < 0.2


def test_estimates_are_kernel_values():
    """Without centring they err as hyperplanes do, and less than those of
    Hamming distances."""
    kernel = faiss_ext.kernel_factory("chi2").gram(QUERIES, BASE)
    errors = {}
    for storage in ("BFlat", "AFlat"):
        index = made(f"AHK1024(chi2,order=3,proj=dense),{storage}", BASE)
        D, ids = index.search(QUERIES, len(BASE))
        estimate = (index.hash.asymmetric_kernel_estimate if storage == "AFlat"
                    else index.hash.kernel_estimate)
        got = np.vectorize(estimate, otypes=[float])(D)
        errors[storage] = abs(got - np.take_along_axis(kernel, ids, axis=1)).mean()
    assert errors["AFlat"] < min(0.05, errors["BFlat"])


def test_refinement_and_files(tmp_path):
    exact = made("KFlat(chi2)", BASE)
    index = made("AHK256(chi2,center=1),AFlat,Refine(KFlat(chi2))", BASE)
    index.k_factor = 10
    D, ids = index.search(QUERIES, 10)
    assert (ids == exact.search(QUERIES, 10)[1]).mean() > 0.99
    faiss.write_index(index, str(tmp_path / "index"))
    read = faiss.read_index(str(tmp_path / "index"))
    np.testing.assert_array_equal(read.search(QUERIES, 10)[1], ids)
    assert isinstance(faiss.downcast_index(read.base_index), faiss_ext.IndexAsymmetricHash)


def test_constructor_copies_the_hash():
    hash = faiss_ext.kernel_hash_factory(64, "SIK64(gaussian)")
    index = faiss_ext.IndexAsymmetricHash(hash, IP)
    assert not index.is_trained and index.metric_type == IP and index.d == 64
    with pytest.raises(RuntimeError, match="train"):
        index.add(COUNTS)
    index.train(COUNTS)
    assert index.is_trained and index.hash.is_trained and not hash.is_trained
    index.add(COUNTS)
    assert index.remove_ids(np.arange(10)) == 10 and index.ntotal == len(COUNTS) - 10
    np.testing.assert_array_equal(
        index.sa_encode(COUNTS[:5]), index.hash.encode(COUNTS[:5]))
    with pytest.raises(RuntimeError, match="8192"):
        faiss_ext.IndexAsymmetricHash(faiss_ext.kernel_hash_factory(64, "RHBE8200"))
