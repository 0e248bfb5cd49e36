# SPDX-License-Identifier: MIT
"""Clusters, diverse picks and graphs against loops over all pairs, SciPy and RDKit."""

import importlib

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
BITS[399] = BITS[0]
PACKED = np.packbits(BITS, axis=1, bitorder="little")
VALUES = faiss_ext.bit_kernel_factory("jaccard").gram(PACKED)
FORMS = {"packed": (PACKED, True), "dense": (BITS.astype("float32"), False),
         "sparse": (sparse.csr_array(BITS.astype("float32")), False)}


def expected_clusters(near):
    """By the definition, from a matrix of neighbours."""
    near = near | np.eye(len(near), dtype=bool)
    order = sorted(range(len(BITS)), key=lambda i: (near[i].sum(), i), reverse=True)
    expected, expected_centres = np.full(len(BITS), -1), []
    for i in order:
        if expected[i] < 0:
            expected[near[i] & (expected < 0)] = len(expected_centres)
            expected_centres.append(i)
    return expected, expected_centres


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("threshold", [0.4, 0.65, 0.9])
def test_butina(form, threshold):
    x, packed = FORMS[form]
    labels, centres = faiss_ext.butina_clusters(x, threshold, packed=packed)
    expected, expected_centres = expected_clusters(VALUES >= np.float32(threshold))
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_array_equal(centres, expected_centres)
    np.testing.assert_array_equal(labels[centres], np.arange(len(centres)))


KERNELS = {"dice": 0.8, "cosine": 0.8, "hamming": 0.9, "russellrao": 0.2, "tversky(alpha=0.3,beta=0.3)": 0.8}


@pytest.mark.parametrize("kernel", KERNELS)
def test_other_kernels_of_bits(kernel):
    bits = faiss_ext.bit_kernel_factory(kernel)
    near = bits.gram(PACKED) >= np.float32(KERNELS[kernel])
    assert 0.002 < near.mean() < 0.5
    for form in (kernel, bits):
        labels, centres = faiss_ext.butina_clusters(PACKED, KERNELS[kernel], form, packed=True)
        expected, expected_centres = expected_clusters(near)
        np.testing.assert_array_equal(labels, expected)
        np.testing.assert_array_equal(centres, expected_centres)
    if kernel != "russellrao":
        picks, values = faiss_ext.maxmin_picks(PACKED, 30, kernel, first=3, packed=True)
        assert_diverse(picks, values, bits.gram(PACKED))


def test_clusters_by_names():
    names = [f"molecule {i}" for i in range(len(BITS))]
    labels, centres = faiss_ext.butina_clusters(PACKED, 0.65, packed=True)
    for given in (names, np.array(names)):
        named_labels, clusters = faiss_ext.butina_clusters(PACKED, 0.65, packed=True, names=given)
        np.testing.assert_array_equal(named_labels, labels)
        assert [c[0] for c in clusters] == [names[i] for i in centres]
        assert [sorted(c) for c in clusters] == [
            sorted(names[i] for i in np.flatnonzero(labels == number)) for number in range(len(centres))]
    picks, values = faiss_ext.maxmin_picks(PACKED, 9, packed=True)
    named, same = faiss_ext.maxmin_picks(PACKED, 9, packed=True, names=names)
    assert named == [names[i] for i in picks] and (same == values).all()
    from_row, from_name = (faiss_ext.maxmin_picks(PACKED, 9, first=first, packed=True, names=names)[0] for first in (7, names[7]))
    assert from_row == from_name and from_row[0] == names[7] != named[0]


@pytest.mark.parametrize("first, names, error, message", [
    ("c", ["a", "b", "b"], ValueError, "first is 'c', expected the name of one vector, got 0 with it"),
    ("b", ["a", "b", "b"], ValueError, "first is 'b', expected the name of one vector, got 2 with it"),
    ("b", None, TypeError, "first must be an integer, got 'b'"), (3, ["a", "b", "c"], ValueError, "first is 3, expected an integer from 0 to 2")])
def test_first_picks_that_are_not_there(first, names, error, message):
    with pytest.raises(error, match=f"maxmin_picks: {message}"):
        faiss_ext.maxmin_picks(PACKED[:3], 2, first=first, packed=True, names=names)


def test_codes_of_zeros():
    codes = np.concatenate([PACKED[:5], np.zeros((2, 16), "uint8")])
    with pytest.raises(RuntimeError, match="maxmin_picks: vector 5 has no ones, and k.x, x. of cosine is 0 for it; leave it out") as error:
        faiss_ext.maxmin_picks(codes, 3, "cosine", packed=True)
    assert error.value.vector == 5
    for kernel in ("jaccard", "dice", "hamming", "tversky(alpha=0.3,beta=0.3)"):  # two codes of zeros are equal
        picks, values = faiss_ext.maxmin_picks(codes, 7, kernel, first=5, packed=True)
        assert picks[-1] == 6 and values[-1] == 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("threshold", [0.05, 0.4, 0.65, 1])
def test_threshold_graph(form, threshold):
    x, packed = FORMS[form]
    graph = faiss_ext.threshold_graph(x, threshold, packed=packed)
    near = (VALUES >= np.float32(threshold)) & ~np.eye(len(VALUES), dtype=bool)
    assert near.any() and graph.has_sorted_indices and graph.dtype == np.float32
    np.testing.assert_array_equal(graph.toarray() > 0, near)
    np.testing.assert_allclose(graph.toarray(), np.where(near, VALUES, 0), rtol=0, atol=2**-24)
    assert (graph != graph.T).nnz == 0


def test_thresholds_that_pairs_reach_exactly():
    """All fractions of sets of few numbers, as float and as float32."""
    bits = np.tril(np.ones((24, 24), bool))
    for kernel in ("jaccard", "dice", "cosine", "hamming"):
        values = faiss_ext.bit_kernel_factory(kernel).gram(np.packbits(bits, axis=1))
        for threshold in np.unique(values)[::5]:
            if threshold > 0:
                for given in (threshold, float(threshold)):
                    graph = faiss_ext.threshold_graph(np.packbits(bits, axis=1), given, kernel, packed=True)
                    assert graph.nnz == (values >= threshold).sum() - (np.diag(values) >= threshold).sum()
    for i in range(1, 24):
        for j in range(i + 1, 25):  # i / j as a float is not the float32
            graph = faiss_ext.threshold_graph(np.packbits(bits[[i - 1, j - 1]], axis=1), i / j, packed=True)
            assert graph.nnz == 2


def test_dbscan_of_a_threshold_graph():
    dbscan = pytest.importorskip("sklearn.cluster").DBSCAN(eps=0.4, min_samples=4, metric="precomputed")
    graph = faiss_ext.threshold_graph(PACKED, 0.5, packed=True)
    graph.data = 1 - graph.data
    graph = importlib.import_module("sklearn.neighbors").sort_graph_by_row_values(graph, warn_when_not_sorted=False)
    np.testing.assert_array_equal(dbscan.fit_predict(graph), dbscan.fit_predict(np.maximum(1 - VALUES, 0)))


def test_butina_of_rdkit():
    butina = pytest.importorskip("rdkit.ML.Cluster.Butina")
    labels, centres = faiss_ext.butina_clusters(PACKED, 0.65, packed=True)
    distances = [1 - VALUES[i, j] for i in range(len(BITS)) for j in range(i)]
    clusters = butina.ClusterData(distances, len(BITS), 0.35, isDistData=True)
    assert [c[0] for c in clusters] == centres.tolist()
    for number, members in enumerate(clusters):
        assert sorted(members) == np.flatnonzero(labels == number).tolist()


def assert_diverse(picks, values, kernel_matrix):
    assert values[0] == 0 and len(set(picks)) == len(picks)
    for i in range(1, len(picks)):
        largest = kernel_matrix[picks[:i]].max(axis=0)
        largest[picks[:i]] = np.inf
        assert abs(values[i] - largest.min()) < 1e-6 and largest[picks[i]] < largest.min() + 1e-6


@pytest.mark.parametrize("form", FORMS)
def test_maxmin(form):
    x, packed = FORMS[form]
    picks, values = faiss_ext.maxmin_picks(x, 50, first=7, packed=packed)
    assert picks[0] == 7
    assert_diverse(picks, values, VALUES)
    np.testing.assert_array_equal(
        picks, faiss_ext.maxmin_picks(x, 60, first=7, packed=packed)[0][:50])


def test_all_vectors_can_be_picked():
    same = np.repeat(PACKED[:3], 5, axis=0)
    picks, values = faiss_ext.maxmin_picks(same, 15, packed=True)
    assert sorted(picks) == list(range(15)) and (values[3:] == 1).all()


@pytest.mark.parametrize("form", ["packed", "dense"])
def test_picks_of_many_vectors(form):
    """So many that most are compared with few picks; some picks are equal vectors."""
    bits = random_bits(9000, 64, seed=1)
    codes = np.packbits(bits, axis=1)
    picks, values = faiss_ext.maxmin_picks(
        codes if form == "packed" else bits.astype("float32"), 400, first=5, packed=form == "packed")
    kernel = faiss_ext.bit_kernel_factory("jaccard")
    largest = kernel.gram(codes[5:6], codes)[0]
    largest[5] = np.inf
    for pick, value in zip(picks[1:], values[1:]):
        assert pick == np.argmin(largest) and abs(value - largest[pick]) < 1e-6
        largest = np.maximum(largest, kernel.gram(codes[pick : pick + 1], codes)[0])
        largest[pick] = np.inf


def test_maxmin_of_rdkit():
    pickers = pytest.importorskip("rdkit.SimDivFilters.rdSimDivPickers")
    bit_vect = pytest.importorskip("rdkit.DataStructs").ExplicitBitVect
    vectors = []
    for row in BITS:
        vectors.append(bit_vect(BITS.shape[1]))
        vectors[-1].SetBitsFromList(np.flatnonzero(row).tolist())
    expected = pickers.MaxMinPicker().LazyBitVectorPick(vectors, len(vectors), 2, firstPicks=[7])
    picks, _ = faiss_ext.maxmin_picks(PACKED, 2, first=7, packed=True)
    farthest = VALUES[7].min()
    assert VALUES[7, picks[1]] == farthest and abs(VALUES[7, expected[1]] - farthest) < 1e-6


def test_progress_and_interruption(monkeypatch):
    monkeypatch.setattr("faiss_ext.progress.Steps.interval", 0)
    monkeypatch.setattr("faiss_ext.packed_rows.BATCH", 100)
    told = []
    with faiss_ext.show_progress(lambda *step: told.append(step)):
        faiss_ext.butina_clusters(PACKED, 0.65, packed=True)
        faiss_ext.maxmin_picks(PACKED, 3, packed=True)
        outer, told = told, []
    assert outer == [("neighbours", n, 400) for n in (100, 200, 300, 400)] + [("picks", n, 3) for n in (1, 2, 3)]
    faiss_ext.maxmin_picks(PACKED, 3, packed=True)
    assert not told

    def stop(*step):
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"), faiss_ext.show_progress(stop):
        faiss_ext.butina_clusters(PACKED, 0.65, packed=True)
    same = stop  # of two equal blocks, the one that ends is the inner one
    with faiss_ext.show_progress(same):
        with faiss_ext.show_progress(lambda *step: told.append(step)):
            faiss_ext.maxmin_picks(PACKED, 3, packed=True)
        with pytest.raises(KeyError):
            faiss_ext.maxmin_picks(PACKED, 3, packed=True)
    assert len(told) == 3


def test_bad_arguments():
    for call, message in (
            (lambda: faiss_ext.maxmin_picks(PACKED, 0, packed=True), "n_picks is 0.*1 to 400"),
            (lambda: faiss_ext.maxmin_picks(PACKED, 401, packed=True), "n_picks is 401"),
            (lambda: faiss_ext.maxmin_picks(PACKED[:0], 0, packed=True), "maxmin_picks: x has no vectors, expected at least 1"),
            (lambda: faiss_ext.maxmin_picks(PACKED, 5, first=400, packed=True), "first is 400"),
            (lambda: faiss_ext.maxmin_picks(BITS.astype("float32"), 5, "linear"), "linear varies"),
            (lambda: faiss_ext.butina_clusters(PACKED, float("nan"), packed=True), "threshold"),
            (lambda: faiss_ext.butina_clusters(PACKED, 0, packed=True), "threshold is 0.*above 0"),
            (lambda: faiss_ext.threshold_graph(PACKED, 1.1, packed=True), "threshold_graph: the threshold is 1.1"),
            (lambda: faiss_ext.maxmin_picks(PACKED, 5, "russellrao", packed=True), "russellrao varies"),
            (lambda: faiss_ext.butina_clusters(PACKED, 0.5, "tversky(alpha=1,beta=0)", packed=True), "not symmetric"),
            (lambda: faiss_ext.maxmin_picks(PACKED, 5, "tversky(alpha=1,beta=0)", packed=True), "not symmetric"),
            (lambda: faiss_ext.butina_clusters(PACKED, packed=True, names=["a"]), "expected 400 names.*got 1"),
            (lambda: faiss_ext.maxmin_picks(PACKED, 5, packed=True, names=["a"]), "expected 400 names")):
        with pytest.raises(ValueError, match=message):
            call()
    for call, error, message in (
            (lambda: faiss_ext.butina_clusters(PACKED, packed=True, names="abc"), TypeError, "names must be a list"),
            (lambda: faiss_ext.threshold_graph(PACKED, 0.5, np.minimum, packed=True), TypeError, "BitKernel"),
            (lambda: faiss_ext.threshold_graph(BITS, 0.5, packed=True), TypeError, "packbits"),
            (lambda: faiss_ext.threshold_graph(PACKED, 0.5, "chi2", packed=True), RuntimeError, "unknown kernel of bits"),
            (lambda: faiss_ext.threshold_graph(BITS, 0.5, "hamming"), RuntimeError, "unknown kernel")):
        with pytest.raises(error, match=message):
            call()
    labels, centres = faiss_ext.butina_clusters(PACKED[:0], packed=True)
    assert labels.shape == centres.shape == (0,)
    assert faiss_ext.threshold_graph(PACKED[:0], 0.5, packed=True).shape == (0, 0)
    assert faiss_ext.threshold_graph(BITS[:0], 0.5).shape == (0, 0)
