# SPDX-License-Identifier: MIT
"""Clusters and diverse picks against loops over all pairs, and RDKit."""

import faiss_ext
import numpy as np
import pytest
from scipy import sparse


def random_bits(n, d=128, seed=0):
    rng = np.random.default_rng(seed)
    bits = rng.random((n, d)) < 0.3
    bits[n // 3 :] = bits[rng.integers(0, n // 3, n - n // 3)] ^ (rng.random((n - n // 3, d)) < 0.05)
    return bits


BITS = random_bits(400)
PACKED = np.packbits(BITS, axis=1, bitorder="little")
VALUES = faiss_ext.bit_kernel_factory("jaccard").gram(PACKED)
FORMS = {"packed": (PACKED, True), "dense": (BITS.astype("float32"), False),
         "sparse": (sparse.csr_array(BITS.astype("float32")), False)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("threshold", [0.4, 0.65, 0.9])
def test_butina(form, threshold):
    x, packed = FORMS[form]
    labels, centres = faiss_ext.butina_clusters(x, threshold, packed=packed)
    near = VALUES >= np.float32(threshold)
    order = sorted(range(len(BITS)), key=lambda i: (near[i].sum(), i), reverse=True)
    expected, expected_centres = np.full(len(BITS), -1), []
    for i in order:
        if expected[i] < 0:
            expected[near[i] & (expected < 0)] = len(expected_centres)
            expected_centres.append(i)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_array_equal(centres, expected_centres)
    np.testing.assert_array_equal(labels[centres], np.arange(len(centres)))


def test_butina_of_rdkit():
    butina = pytest.importorskip("rdkit.ML.Cluster.Butina")
    labels, centres = faiss_ext.butina_clusters(PACKED, 0.65, packed=True)
    distances = [1 - VALUES[i, j] for i in range(len(BITS)) for j in range(i)]
    clusters = butina.ClusterData(distances, len(BITS), 0.35, isDistData=True)
    assert [c[0] for c in clusters] == centres.tolist()
    for number, members in enumerate(clusters):
        assert sorted(members) == np.flatnonzero(labels == number).tolist()


@pytest.mark.parametrize("form", FORMS)
def test_maxmin(form):
    x, packed = FORMS[form]
    picks, values = faiss_ext.maxmin_picks(x, 50, first=7, packed=packed)
    assert picks[0] == 7 and values[0] == 0 and len(set(picks)) == 50
    for i in range(1, 50):
        largest = VALUES[picks[:i]].max(axis=0)
        largest[picks[:i]] = np.inf
        assert abs(values[i] - largest.min()) < 1e-6 and largest[picks[i]] < largest.min() + 1e-6
    np.testing.assert_array_equal(
        picks, faiss_ext.maxmin_picks(x, 60, first=7, packed=packed)[0][:50])


def test_all_vectors_can_be_picked():
    same = np.repeat(PACKED[:3], 5, axis=0)
    picks, values = faiss_ext.maxmin_picks(same, 15, packed=True)
    assert sorted(picks) == list(range(15)) and (values[3:] == 1).all()


def test_bad_arguments():
    for call, message in (
            (lambda: faiss_ext.maxmin_picks(PACKED, 0, packed=True), "n_picks is 0.*1 to 400"),
            (lambda: faiss_ext.maxmin_picks(PACKED, 401, packed=True), "n_picks is 401"),
            (lambda: faiss_ext.maxmin_picks(PACKED, 5, first=400, packed=True), "first is 400"),
            (lambda: faiss_ext.maxmin_picks(BITS.astype("float32"), 5, "linear"), "linear varies"),
            (lambda: faiss_ext.butina_clusters(PACKED, float("nan"), packed=True), "threshold")):
        with pytest.raises(ValueError, match=message):
            call()
    labels, centres = faiss_ext.butina_clusters(PACKED[:0], packed=True)
    assert labels.shape == centres.shape == (0,)
