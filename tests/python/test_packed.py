# SPDX-License-Identifier: MIT
"""packed=True: packed bits in place of vectors of zeros and ones."""

import faiss
import numpy as np
import pytest
from hypothesis import given, strategies
from helpers import assert_equal

import faiss_ext

sparse = pytest.importorskip("scipy.sparse")

D = 256


def bits_of(n, seed=1, d=D):
    """Sets near 20 others, as an array of bool."""
    random = np.random.default_rng(seed)
    near = np.random.default_rng(0).random((20, d)) < 0.1
    chosen = near[random.integers(20, size=n)]
    return chosen & (random.random((n, d)) < 0.9) | (random.random((n, d)) < 0.02)


BITS, QUERIES = bits_of(500), bits_of(15, 2)
CODES, QUERY_CODES = np.packbits(BITS, axis=1), np.packbits(QUERIES, axis=1)
FLOATS = [
    "CWS64,BFlat", "KLSH64(jaccard,p=100),BFlat", "KFlat(jaccard)", "KFlat(dice,store=u8)", "KFlat(jaccard,store=sparse)", "SCR64,AFlat",
    "CWS64,BFlat,Refine(KFlat(jaccard,store=sparse))", "KPCA16(jaccard,p=100),Flat", "IDMap,CWS64,BFlat", "Concurrent,KFlat(jaccard)"]


@pytest.mark.parametrize("string", FLOATS)
def test_indexes_of_vectors_get_zeros_and_ones(string):
    packed, floats = (faiss.index_factory(D, string) for _ in range(2))
    packed.train(CODES, packed=True)
    takes_sparse = faiss_ext.sparse_vectors.takes_sparse(packed)
    x, q = (sparse.csr_array(v.astype("float32")) if takes_sparse else v for v in (BITS, QUERIES))
    floats.train(x)
    ids = np.arange(len(CODES)) + 7
    packed.add_with_ids(CODES, ids, packed=True)
    floats.add_with_ids(x, ids)
    assert_equal(packed.search(QUERY_CODES, 5, packed=True), floats.search(q, 5))
    assert_equal(packed.search(QUERY_CODES, 5, filter=ids[::3], packed=True), floats.search(q, 5, filter=ids[::3]))
    packed.update_vectors(ids[:3], QUERY_CODES[:3], packed=True)
    packed.upsert(QUERY_CODES[3:5], [9, 10**6], packed=True)
    floats.update_vectors(ids[:3], q[:3])
    floats.upsert(q[3:5], [9, 10**6])
    assert_equal(packed.search(QUERY_CODES, 5, packed=True), floats.search(q, 5))


@pytest.mark.parametrize("string", ["CWS64,BFlat", "IDMap,CWS64,BFlat", "BConcurrent,CWS64,BFlat"])
def test_hashes_in_front_of_codes(string):
    packed, floats = (faiss_ext.index_binary_factory(D, string) for _ in range(2))
    packed.train(CODES, packed=True)
    floats.train(BITS)
    packed.add_with_ids(CODES, np.arange(500), packed=True)
    floats.add_with_ids(BITS, np.arange(500))
    assert_equal(packed.search(QUERY_CODES, 5, packed=True), floats.search(QUERIES, 5))
    assert_equal(packed.range_search(QUERY_CODES, 9, packed=True), floats.range_search(QUERIES, 9))


@pytest.mark.parametrize("string", ["BFlat", "BKFlat(jaccard)", "CWS64,BFlat,Refine(BKFlat(jaccard))"])
def test_indexes_of_codes_take_them_in_any_case(string):
    index = faiss_ext.index_binary_factory(D, string)
    index.add(CODES)
    index.add(CODES, packed=True)
    assert_equal(index.search(QUERY_CODES, 3), index.search(QUERY_CODES, 3, packed=True))


@given(strategies.integers(1, 70), strategies.integers(0, 10**6))
def test_any_number_of_bits(d, seed):
    x = np.random.default_rng(seed).random((9, d)) < 0.5
    index = faiss.index_factory(d, "KFlat(linear)")
    index.add(np.packbits(x, axis=1), packed=True)
    assert np.array_equal(index.reconstruct_n(0, 9), x)
    rows = faiss_ext.sparse_vectors.PackedVectors(np.packbits(x, axis=1), d, "test")
    assert np.array_equal(rows.dense(), x)


def test_maps_hashes_and_kernels():
    x = BITS.astype("float32")
    for hash in (faiss_ext.kernel_hash_factory(D, s) for s in ("CWS64", "KLSH32(jaccard,p=50)")):
        hash.train(CODES, packed=True)
        assert np.array_equal(hash.encode(CODES, packed=True), hash.encode(sparse.csr_array(x)))
        assert np.array_equal(hash.apply(CODES, packed=True), hash.apply(sparse.csr_array(x)))
    for name in ("jaccard", "dice", "cosine", "chi2", "gaussian(gamma=0.1)", "linear"):
        kernel = faiss_ext.kernel_factory(name)
        expected = kernel.gram(x[:40], x[40:90])
        assert np.allclose(kernel.gram(CODES[:40], CODES[40:90], packed=True), expected, rtol=1e-5, atol=1e-6)
        assert np.allclose(kernel.gram(CODES[:40], packed=True), kernel.gram(x[:40]), rtol=1e-5, atol=1e-6)


def test_values_of_two_rows_of_packed_bits():
    x = np.unpackbits(CODES, axis=1)[:, :D].astype("float32")
    for name in ("jaccard", "dice", "linear", "chi2", "gaussian(gamma=0.1)"):
        kernel = faiss_ext.kernel_factory(name)
        assert abs(kernel(CODES[0], CODES[1], packed=True) - kernel(x[0], x[1])) < 1e-6
    of_bits = faiss_ext.bit_kernel_factory("jaccard")
    assert of_bits(CODES[0], CODES[1], packed=True) == of_bits(CODES[0], CODES[1])
    assert np.array_equal(of_bits.gram(CODES[:9], packed=True), of_bits.gram(CODES[:9]))
    for call in (lambda: of_bits(CODES[0], CODES[1], packed=False), lambda: of_bits.gram(CODES, packed=False)):
        with pytest.raises(ValueError, match="BitKernel.gram: packed is False, but a kernel of bits takes packed bits"):
            call()
    with pytest.raises(TypeError, match="packed must be True or False, got 1"):
        of_bits.gram(CODES, packed=1)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_mean_distances_of_packed_bits(norm):
    x = np.unpackbits(CODES, axis=1).astype("float32")
    found = faiss_ext.mean_neighbor_distance(CODES, norm, 5, packed=True)
    assert abs(found - faiss_ext.mean_neighbor_distance(x, norm, 5)) < 1e-5 * found
    with pytest.raises(TypeError, match="mean_neighbor_distance: .*uint8"):
        faiss_ext.mean_neighbor_distance(x, norm, 5, packed=True)


@pytest.mark.parametrize("string", ["KFlat(chi2)", "KFlat(linear,store=sparse)", "KFlat(jaccard)", "CWS64,BFlat,Refine(KFlat(dice))"])
def test_kernel_values_of_packed_queries(string):
    index = faiss.index_factory(D, string)
    index.add(CODES, packed=True)
    x, q = (np.unpackbits(codes, axis=1)[:, :D].astype("float32") for codes in (CODES, QUERY_CODES))
    kernel = faiss_ext.kernel_factory(string.split("KFlat(")[1].rstrip(")").split(",")[0])
    D_, I = index.search(QUERY_CODES, 5, packed=True)
    expected = np.take_along_axis(kernel.gram(q, x), I, axis=1)
    np.testing.assert_allclose(faiss_ext.kernel_values(index, D_, I, QUERY_CODES, packed=True), expected, rtol=1e-5)
    np.testing.assert_allclose(faiss_ext.kernel_values(index, D_[0], I[0], QUERY_CODES[0], packed=True), expected[0], rtol=1e-5)
    lims, E, J = index.range_search(QUERY_CODES, float(np.median(D_)), packed=True)
    found = faiss_ext.kernel_values(index, E, J, QUERY_CODES, lims, packed=True)
    np.testing.assert_allclose(found, kernel.gram(q, x)[np.repeat(np.arange(len(q)), np.diff(lims.astype(int))), J], rtol=1e-5)
    with pytest.raises(TypeError, match="kernel_values: packed must be True or False"):
        faiss_ext.kernel_values(index, D_, I, QUERY_CODES, packed=None)
    with pytest.raises(ValueError, match="kernel_values: xq: expected codes of shape"):
        faiss_ext.kernel_values(index, D_, I, QUERY_CODES[:, 1:], packed=True)


def test_kernel_values_of_indexes_of_codes():
    index = faiss_ext.index_binary_factory(D, "BKFlat(jaccard)")
    index.add(CODES)
    E, I = index.search(QUERY_CODES, 5)
    assert np.array_equal(faiss_ext.kernel_values(index, E, I, QUERY_CODES, packed=True), faiss_ext.kernel_values(index, E))
    index = faiss_ext.index_binary_factory(D, "CWS64,BFlat")
    index.add(CODES, packed=True)
    E, I = index.search(QUERY_CODES, 5, packed=True)
    assert np.array_equal(faiss_ext.kernel_values(index, E, I, QUERY_CODES, packed=True), faiss_ext.kernel_values(index, E))


def test_bytes_under_kernels_of_sets_must_be_explained():
    kernel = faiss_ext.kernel_factory("jaccard")
    calls = [
        lambda **how: kernel.gram(CODES, **how), lambda **how: faiss_ext.recommend(CODES, "jaccard", progress=False, **how),
        lambda **how: faiss_ext.near_duplicates(CODES, 0.9, **how), lambda **how: faiss_ext.near_duplicate_groups(CODES, 0.9, "dice", **how),
        lambda **how: faiss_ext.threshold_graph(CODES, 0.9, kernel, **how), lambda **how: faiss_ext.butina_clusters(CODES, 0.9, **how),
        lambda **how: faiss_ext.maxmin_picks(CODES, 3, **how)]
    for call in calls:
        with pytest.raises(ValueError, match="packed bits or counts; pass packed=True or packed=False"):
            call()
        with pytest.raises(TypeError, match="packed must be True or False, got 1"):
            call(packed=1)
        call(packed=True)
    # other kernels, and other types, are clear
    faiss_ext.kernel_factory("chi2").gram(CODES)
    kernel.gram(CODES.astype("int32"))
    assert np.array_equal(kernel.gram(CODES, packed=False), kernel.gram(CODES.astype("float32")))


def test_bad_input():
    index = faiss.index_factory(D, "CWS64,BFlat")
    for x, error, message in [
            (BITS, TypeError, "expected codes .uint8., got an array of bool; numpy.packbits"), (CODES[:, :5], ValueError, "shape .n, 32."),
            (CODES[0], ValueError, r"for one vector, x\[None\]"), (CODES.astype(float), TypeError, "uint8")]:
        with pytest.raises(error, match=message):
            index.add(x, packed=True)
    with pytest.raises(TypeError, match="packed must be True or False, got 'yes'"):
        index.add(CODES, packed="yes")
    index = faiss.index_factory(13, "CWS64,BFlat")
    with pytest.raises(RuntimeError, match="code 1 has ones beyond its first 13 bits"):
        index.add(np.array([[255, 248], [255, 4]], "uint8"), packed=True)
    assert index.ntotal == 0


def test_recommend():
    x = np.packbits(bits_of(3000, 5), axis=1)
    found = faiss_ext.recommend(x, "jaccard", packed=True, progress=False, k=5)
    assert found.packed and found.d == D
    strings = {tried.string for tried in found.tried}
    assert {"BKFlat(jaccard)", "BHNSW32,BKFlat(jaccard)", "CWS512,BFlat,Refine(BKFlat(jaccard))"} < strings
    index = found.build(x)
    assert isinstance(index, faiss.IndexBinary) and index.ntotal == 3000
    with pytest.raises(ValueError, match="expected codes of shape"):
        found.build(x[:, :3])
    asymmetric = faiss_ext.recommend(x, "tversky(alpha=1,beta=0)", packed=True, progress=False)
    assert not any("BHNSW" in tried.string for tried in asymmetric.tried)
    with pytest.raises(RuntimeError, match="unknown kernel of bits 'chi2'"):
        faiss_ext.recommend(x, "chi2", packed=True)


@pytest.mark.parametrize("string, given, kernel", [
    ("BKFlat(jaccard)", None, "jaccard"), ("BKFlat(tversky(alpha=1,beta=0))", None, "tversky(alpha=1,beta=0)"),
    ("BHNSW8,BKFlat(dice)", None, "dice"), ("CWS64,BFlat,Refine(BKFlat(cosine))", None, "cosine"), ("BFlat", "hamming", "hamming")])
def test_calibrate(string, given, kernel):
    index = faiss_ext.index_binary_factory(D, string)
    index.add(CODES)
    found = faiss_ext.calibrate(index, CODES, QUERY_CODES, given, width=1)
    distances, ids = index.search(QUERY_CODES, 1)
    values = faiss_ext.bit_kernel_factory(kernel).gram(QUERY_CODES, CODES)[np.arange(15), ids[:, 0]]
    assert np.allclose(found.value(distances[:, 0]), values, atol=1e-6)


def test_calibrate_codes_of_a_hash():
    index = faiss.index_factory(D, "CWS512,BFlat")
    index.add(CODES, packed=True)
    found = faiss_ext.calibrate(index, CODES, QUERY_CODES, "jaccard", packed=True, width=20)
    same = faiss_ext.calibrate(index, sparse.csr_array(BITS.astype("float32")), sparse.csr_array(QUERIES.astype("float32")), "jaccard", width=20)
    distances = index.search(QUERY_CODES, 3, packed=True)[0]
    assert np.array_equal(found.value(distances), same.value(distances))
