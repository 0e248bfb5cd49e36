# SPDX-License-Identifier: MIT
"""Kernels of packed bits against SciPy and RDKit."""

import copy
import pickle

import faiss
import faiss_ext
import numpy as np
import pytest
from scipy.spatial.distance import cdist

D = 160


def random_bits(n, seed=0):
    rng = np.random.default_rng(seed)
    bits = rng.random((n, D)) < rng.uniform(0.02, 0.6, (n, 1))
    bits[n // 2 :] ^= rng.random((n - n // 2, D)) < 0.03
    return bits


BITS, QUERIES = random_bits(300), random_bits(40, 1)
X, Q = (np.packbits(b, axis=1, bitorder="little") for b in (BITS, QUERIES))


def tversky(x, y, alpha, beta):
    common = (x[:, None] & y).sum(axis=2)
    return common / (common + alpha * (x.sum(axis=1)[:, None] - common) + beta * (y.sum(axis=1) - common))


SIMILARITIES = {
    **{name: lambda x, y, name=name: 1 - cdist(x, y, name) for name in (
        "jaccard", "dice", "cosine", "russellrao", "hamming")},
    "tversky(alpha=0.9,beta=0.1)": lambda x, y: tversky(x, y, 0.9, 0.1),
    "tversky(alpha=1,beta=0)": lambda x, y: tversky(x, y, 1, 0)}


@pytest.mark.parametrize("kernel", SIMILARITIES)
def test_values(kernel):
    expected = SIMILARITIES[kernel](QUERIES, BITS)
    made = faiss_ext.bit_kernel_factory(kernel)
    np.testing.assert_allclose(made.gram(Q, X), expected, atol=1e-6)
    assert made(Q[3], X[5]) == made.gram(Q, X)[3, 5]
    np.testing.assert_allclose(np.diag(made.gram(X)), np.diag(SIMILARITIES[kernel](BITS, BITS)), atol=1e-6)


@pytest.mark.parametrize("kernel", SIMILARITIES)
def test_search(kernel):
    expected = SIMILARITIES[kernel](QUERIES, BITS)
    index = faiss.index_binary_factory(D, f"BKFlat({kernel})")
    index.add(X)
    distances, ids = index.search(Q, 10)
    values = faiss_ext.kernel_values(index, distances)
    np.testing.assert_allclose(values, -np.sort(-expected)[:, :10], atol=1e-6)
    np.testing.assert_allclose(values, np.take_along_axis(expected, ids, axis=1), atol=1e-6)
    lims, _, found = index.range_search(Q, index.distance(0.4123))
    for i, row in enumerate(expected):
        np.testing.assert_array_equal(found[lims[i] : lims[i + 1]], np.flatnonzero(row > 0.4123))


@pytest.mark.parametrize("kernel", ["jaccard", "dice", "cosine"])
def test_vectors_of_zeros_and_ones_have_the_same_values(kernel):
    values = faiss_ext.kernel_factory(kernel).gram(QUERIES.astype("float32"), BITS.astype("float32"))
    np.testing.assert_allclose(faiss_ext.bit_kernel_factory(kernel).gram(Q, X), values, atol=1e-6)


@pytest.mark.parametrize("kernel", SIMILARITIES)
def test_copies_and_files(kernel, tmp_path):
    made = faiss_ext.bit_kernel_factory(kernel)
    for other in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert other.description() == made.description()
        assert np.array_equal(other.gram(Q, X), made.gram(Q, X))
    index = faiss.index_binary_factory(D, f"BKFlat({kernel})")
    index.add(X)
    faiss.write_index_binary(index, str(tmp_path / "a.index"))
    read = faiss.read_index_binary(str(tmp_path / "a.index"))
    assert read.kernel.description() == made.description()
    for a, b in zip(index.search(Q, 5), read.search(Q, 5), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("string, message", [
    ("tanimoto", "jaccard"), ("tversky(alpha=-1)", "alpha"), ("tversky(gamma=1)", "alpha=, beta="),
    ("chi2", "unknown"), ("jaccard(alpha=1)", "")])
def test_bad_strings(string, message):
    for make in (faiss_ext.bit_kernel_factory, lambda s: faiss.index_binary_factory(D, f"BKFlat({s})")):
        with pytest.raises(RuntimeError, match=message):
            make(string)


def test_bad_codes():
    kernel = faiss_ext.bit_kernel_factory("jaccard")
    with pytest.raises(TypeError, match="packbits"):
        kernel.gram(BITS)
    with pytest.raises(ValueError, match="shape"):
        kernel.gram(X, X[:, :-1])
    with pytest.raises(ValueError, match="shape"):
        kernel.gram(X[0])
    kernel = faiss_ext.TverskyBitKernel(1, 0)
    with pytest.raises(ValueError, match="alpha is -1"):
        kernel.alpha = -1
    assert kernel.alpha == 1


@pytest.mark.parametrize("name, rdkit_name", [
    ("jaccard", "BulkTanimotoSimilarity"), ("dice", "BulkDiceSimilarity"), ("cosine", "BulkCosineSimilarity"),
    ("russellrao", "BulkRusselSimilarity")])
def test_rdkit(name, rdkit_name):
    structs = pytest.importorskip("rdkit.DataStructs")

    def vectors(bits):
        made = []
        for row in bits:
            vector = structs.ExplicitBitVect(D)
            vector.SetBitsFromList(np.flatnonzero(row).tolist())
            made.append(vector)
        return made
    all_vectors = vectors(BITS)
    expected = [getattr(structs, rdkit_name)(q, all_vectors) for q in vectors(QUERIES)]
    np.testing.assert_allclose(faiss_ext.bit_kernel_factory(name).gram(Q, X), expected, atol=1e-6)
    expected = [structs.BulkTverskySimilarity(q, all_vectors, 0.7, 0.2) for q in vectors(QUERIES)]
    np.testing.assert_allclose(
        faiss_ext.bit_kernel_factory("tversky(alpha=0.7,beta=0.2)").gram(Q, X), expected, atol=1e-6)


@pytest.mark.parametrize("string", ["BKFlat(jaccard)", "BHNSW8,BKFlat(jaccard)", "BFlat,Refine(BKFlat(jaccard))", "IDMap,BKFlat(jaccard)",
                                    "CWS64,BFlat,Refine(BKFlat(jaccard))", "BConcurrent,BIVF2,Refine(BKFlat(jaccard))"])
def test_radii_are_distances_of_the_kernel(string):
    codes = np.random.default_rng(1).integers(0, 256, (200, 8), dtype="uint8")
    index = faiss_ext.index_binary_factory(64, string)
    index.train(codes)
    index.add(codes)
    values = faiss_ext.bit_kernel_factory("jaccard").gram(codes[:5], codes)
    for value in (0.3, 0.5):
        lims, distances, ids = index.range_search(codes[:5], faiss_ext.IndexBinaryFlatKernel.distance(value) + 1)
        if "BHNSW" not in string:
            assert np.array_equal(np.diff(lims), (values >= value - 1e-7).sum(axis=1))
        assert np.allclose(1 - distances / 2**30, np.concatenate([values[i, ids[lims[i] : lims[i + 1]]] for i in range(5)]), atol=1e-6)
    assert len(index.range_search(codes[:5], np.inf)[2]) == 5 * 200 or "BHNSW" in string
    with pytest.raises(ValueError, match=r"the radius is 0.5, expected an integer.*distance\(value\)"):
        index.range_search(codes[:5], 0.5)


@pytest.mark.parametrize("string", ["BKFlat(jaccard)", "IDMap,BKFlat(jaccard)", "BConcurrent,BKFlat(jaccard)", "BKFlat(dice),Refine(BKFlat(jaccard))",
                                    "BHNSW8,BKFlat(jaccard)", "BFlat,Refine(BKFlat(jaccard))", "BHNSW8,BKFlat(dice),Refine(BKFlat(jaccard))",
                                    "CWS64,BFlat,Refine(BKFlat(jaccard))", "BConcurrent,CWS64,BFlat,Refine(BKFlat(jaccard))"])
def test_all_methods_with_any_number_of_bits(string, tmp_path):
    x = np.packbits(np.random.default_rng(0).random((300, 166)) < 0.2, axis=1)
    index, other = (faiss_ext.index_binary_factory(166, string) for _ in range(2))
    if "BHNSW" in string:
        for made in (index, other):  # exhaustive
            faiss_ext.set_index_parameter(made, "efSearch", 1000)
    index.train(x)
    ids = np.arange(300) + 7
    index.add_with_ids(x, ids)
    labels, codes = index.search_and_reconstruct(x[:3], 2)[1:]
    assert labels[:, 0].tolist() == [7, 8, 9] and np.array_equal(codes[:, 0], x[:3])
    assert index.assign(x[:3], 1)[:, 0].tolist() == [7, 8, 9]
    index.remove_ids(np.array([9]))
    index.update_vectors([10], x[:1])
    assert index.upsert(x[:2], [11, 9000]) == 1
    assert np.array_equal(index.reconstruct(10), x[0]) and np.array_equal(index.reconstruct_batch([11, 9000]), x[:2])
    faiss_ext.write_index(index, tmp_path / "index")
    copies = [copy.deepcopy(index), pickle.loads(pickle.dumps(index)), faiss.read_index_binary(str(tmp_path / "index"), faiss.IO_FLAG_MMAP)]
    found = index.search(x, 5)
    other.merge_from(index)
    for same in (*copies, other):
        distances, labels = same.search(x, 5)
        assert np.array_equal(distances, found[0])
    index.reset()
    assert index.ntotal == 0 and len(index.range_search(x, 5)[2]) == 0
    with pytest.raises(ValueError, match="expected codes of shape .n, 21."):
        other.search(x[:, :20], 1)
    with pytest.raises(RuntimeError, match="code 0 has ones beyond its first 166 bits"):
        other.search(np.full((1, 21), 255, "uint8"), 1)


@pytest.mark.parametrize("kernel", ["jaccard", "hamming", "russellrao", "tversky(alpha=1,beta=0)"])
def test_texts_name_the_kernel(kernel):
    assert kernel in repr(faiss_ext.index_binary_factory(64, f"BKFlat({kernel})"))
    assert kernel in repr(faiss_ext.index_binary_factory(64, f"IDMap,BFlat,Refine(BKFlat({kernel}))"))


def test_kernel_values_of_bits_beyond_d():
    with pytest.raises(RuntimeError, match="BitKernel::gram: code 0 has ones beyond its first 9 bits"):
        faiss_ext.bit_kernel_factory("russellrao").gram(np.array([[255, 255]], "uint8"), packed=9)


def test_distances_of_kernel_values():
    for string in ("BKFlat(jaccard)", "BHNSW8,BKFlat(jaccard)", "BFlat,Refine(BKFlat(jaccard))"):
        index = faiss_ext.index_binary_factory(64, string)
        assert index.distance(0.5) == 2**29 and index.kernel_value(2**28) == 0.75
