# SPDX-License-Identifier: MIT
"""kernel_values: what distances say about the kernel."""

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import BASE, IP, L2, QUERIES, made

K = 5


def gram(kernel, I):
    values = faiss_ext.kernel_factory(kernel).gram(QUERIES, BASE)
    return np.take_along_axis(values, np.maximum(I, 0), axis=1)


@pytest.mark.parametrize("string, kernel, metric", [
    ("KFlat(gaussian,gamma=20)", "gaussian(gamma=20)", L2),
    ("KFlat(jaccard)", "jaccard", L2),
    ("KFlat(normalized(chi2))", "normalized(chi2)", L2),
    ("KFlat(cosine)", "cosine", L2),
    ("KFlat(chi2)", "chi2", IP),
    ("KFlat(poly(degree=2))", "poly(degree=2)", IP),
    ("IDMap,KFlat(jaccard)", "jaccard", L2),
    ("HNSW16,KFlat(laplacian(gamma=3))", "laplacian(gamma=3)", L2),
    ("L2norm,KFlat(cosine)", "cosine", L2),
    ("SIK64(gaussian,gamma=20),BFlat,Refine(KFlat(gaussian,gamma=20))", "gaussian(gamma=20)", L2),
    ("CWS64,BFlat,Refine(KFlat(jaccard))", "jaccard", L2)])
def test_exact_values(string, kernel, metric):
    index = faiss.index_factory(64, string, metric)
    index.train(BASE)
    if "IDMap" in string:
        index.add_with_ids(BASE, np.arange(len(BASE)))
    else:
        index.add(BASE)
    D, I = index.search(QUERIES, K)
    np.testing.assert_allclose(faiss_ext.kernel_values(index, D), gram(kernel, I), rtol=2e-4, atol=2e-5)
    assert faiss_ext.kernel_values(index, D[3, 2]).shape == ()


@pytest.mark.parametrize("storage", ["BFlat", "AFlat"])
@pytest.mark.parametrize("metric", [L2, IP])
def test_estimates_of_codes(storage, metric):
    index = faiss.index_factory(64, f"RHBE512(proj=dense),{storage}", metric)
    index.add(BASE)
    D, I = index.search(QUERIES, K)
    values = faiss_ext.kernel_values(index, D)
    hamming = (512 - D) / 2 if metric == IP else D
    estimate = index.hash.asymmetric_kernel_estimate if storage == "AFlat" else index.hash.kernel_estimate
    np.testing.assert_allclose(values, estimate(hamming))
    # near the cosine: five standard deviations of an angle of 512 bits
    assert np.abs(np.arccos(values) - np.arccos(np.clip(gram("cosine", I), -1, 1))).max() < 5 * np.pi * 0.5 / np.sqrt(512)


def test_binary_indexes():
    index = faiss_ext.index_binary_factory(64, "SIK256(gaussian,gamma=20),BFlat")
    index.add(BASE)
    D, I = index.search(QUERIES, K)
    np.testing.assert_allclose(faiss_ext.kernel_values(index, D), index.hash.kernel_estimate(D))
    codes = faiss_ext.index_binary_factory(64, "BKFlat(jaccard)")
    sets = (BASE > 0.02).astype("uint8")
    codes.add(np.packbits(sets, axis=1))
    D, I = codes.search(np.packbits(sets[:50], axis=1), K)
    expected = faiss_ext.kernel_factory("jaccard").gram(sets[:50].astype("float32"), sets.astype("float32"))
    np.testing.assert_allclose(
        faiss_ext.kernel_values(codes, D), np.take_along_axis(expected, I, axis=1), atol=1e-6)


@pytest.mark.parametrize("group", [faiss.IndexShards, faiss.IndexReplicas])
@pytest.mark.parametrize("string", ["KFlat(jaccard)", "CWS64,BFlat", "CWS64,BFlat,Refine(KFlat(jaccard))"])
def test_groups_of_indexes_that_are_alike(group, string):
    whole = group(64)
    parts = [made(string, BASE) for _ in range(2)]
    for part in parts:
        (whole.add_shard if group is faiss.IndexShards else whole.add_replica)(part)
    D, _ = whole.search(QUERIES, K)
    np.testing.assert_array_equal(faiss_ext.kernel_values(whole, D), faiss_ext.kernel_values(parts[0], D))
    other = group(64)
    unlike = [made("KFlat(jaccard)", BASE), made("KFlat(cosine)", BASE)]
    for part in unlike:
        (other.add_shard if group is faiss.IndexShards else other.add_replica)(part)
    with pytest.raises(ValueError, match="are not alike"):
        faiss_ext.kernel_values(other, D)
    with pytest.raises(ValueError, match="do not tell"):
        faiss_ext.kernel_values(group(64), D)


def test_groups_of_binary_indexes():
    parts = [faiss_ext.index_binary_factory(64, "BKFlat(jaccard)") for _ in range(2)]
    whole = faiss.IndexBinaryShards(64)
    for part in parts:
        part.add(np.packbits(BASE[:50] > 0.02, axis=1))
        whole.add_shard(part)
    D, _ = whole.search(np.packbits(QUERIES > 0.02, axis=1), K)
    np.testing.assert_array_equal(faiss_ext.kernel_values(whole, D), faiss_ext.kernel_values(parts[0], D))


def test_no_neighbour_has_no_value():
    for index in (made("KFlat(jaccard)", BASE[:2]), made("CWS64,BFlat", BASE[:2])):
        D, I = index.search(QUERIES[:3], 4)
        values = faiss_ext.kernel_values(index, D)
        np.testing.assert_array_equal(np.isnan(values), I < 0)
    codes = faiss_ext.index_binary_factory(64, "BKFlat(jaccard)")
    codes.add(np.zeros((1, 8), dtype="uint8"))
    D, _ = codes.search(np.zeros((1, 8), dtype="uint8"), 2)
    np.testing.assert_array_equal(faiss_ext.kernel_values(codes, D), [[1, np.nan]])


@pytest.mark.parametrize("string", ["KFlat(chi2)", "KFlat(poly)", "Flat", "HKM1(chi2),Flat", "KIVF4"])
def test_distances_that_do_not_tell(string):
    with pytest.raises(ValueError, match="do not tell"):
        faiss_ext.kernel_values(faiss.index_factory(64, string), np.ones(3))


def test_bad_arguments():
    index = faiss.index_factory(64, "KFlat(jaccard)")
    with pytest.raises(TypeError, match="expected an index"):
        faiss_ext.kernel_values(3, [1.0])
    with pytest.raises(TypeError, match="array of distances"):
        faiss_ext.kernel_values(index, ["far"])
