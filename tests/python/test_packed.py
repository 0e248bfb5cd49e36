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
    for packed, error, message in ((1, ValueError, "packed is 1, a number of bits, but rows of 32 bytes have 249 to 256; packed=True"),
                                   (0, ValueError, "packed is 0, expected True, False or a positive"), (1.5, TypeError, "packed must be True, False or a number of bits, got 1.5")):
        with pytest.raises(error, match="BitKernel.gram: " + message):
            of_bits.gram(CODES, packed=packed)


def test_hashes_of_two_rows_of_packed_bits():
    bits = bits_of(2, d=61)
    codes, x = np.packbits(bits, axis=1), bits.astype("float32")
    for string in ("CWS64", "SIK64(gaussian(gamma=0.01))"):
        hash = faiss_ext.kernel_hash_factory(61, string)
        for name in ("kernel_value", "expected_hamming_of_pair"):
            of_pair = getattr(hash, name)
            assert of_pair(codes[0], codes[1], packed=61) == of_pair(codes[:1], codes[1:], packed=True) == of_pair(x[0], x[1])
            with pytest.raises(ValueError, match=f"{name}: packed is 32, a number of bits, expected 61 or True"):
                of_pair(codes[0], codes[1], packed=32)
            with pytest.raises(ValueError, match="expected two vectors"):
                of_pair(codes, codes[1], packed=61)


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
    with pytest.raises(TypeError, match="kernel_values: packed must be True, False or a number of bits"):
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
        with pytest.raises(ValueError, match="packed is 1, a number of bits, but rows of 32 bytes have"):
            call(packed=1)
        with pytest.raises(TypeError, match="packed must be True, False or a number of bits, got 'yes'"):
            call(packed="yes")
        call(packed=True)
    for name in (" jaccard ", "normalized(jaccard)"):
        with pytest.raises(ValueError, match="packed bits or counts"):
            faiss_ext.near_duplicates(CODES, 0.9, name)
    for name in ("hamming", "tversky(alpha=1,beta=1)", faiss_ext.bit_kernel_factory("russellrao")):
        with pytest.raises(ValueError, match="near_duplicates: .* is a kernel of packed bits; pass packed=True"):
            faiss_ext.near_duplicates(CODES, 0.9, name)
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
    with pytest.raises(TypeError, match="packed must be True, False or a number of bits, got 'yes'"):
        index.add(CODES, packed="yes")
    index = faiss.index_factory(13, "CWS64,BFlat")
    with pytest.raises(RuntimeError, match="code 1 has ones beyond its first 13 bits"):
        index.add(np.array([[255, 248], [255, 4]], "uint8"), packed=True)
    assert index.ntotal == 0


KEYS = np.random.default_rng(3).random((60, 166)) < 0.3  # as many bits as MACCS keys
KEYS[30:] = KEYS[:30] ^ (np.random.default_rng(4).random((30, 166)) < 0.02)
PACKED_KEYS = np.packbits(KEYS, axis=1)
DIFFERENT = (KEYS[:, None] ^ KEYS).sum(axis=2)
BOTH = (KEYS[:, None] & KEYS).sum(axis=2)
OF_D_BITS = {"hamming": 1 - DIFFERENT / 166, "russellrao": BOTH / 166}


@pytest.mark.parametrize("name", OF_D_BITS)
def test_kernels_that_depend_on_the_number_of_bits(name):
    expected, threshold = OF_D_BITS[name], 0.5 if name == "hamming" else 0.1
    kernel = faiss_ext.bit_kernel_factory(name)
    np.testing.assert_allclose(kernel.gram(PACKED_KEYS, packed=166), expected, rtol=1e-6)
    assert abs(kernel(PACKED_KEYS[0], PACKED_KEYS[1], packed=166) - expected[0, 1]) < 1e-6
    assert abs(kernel(PACKED_KEYS[0], PACKED_KEYS[1], packed=168) - expected[0, 1]) > 1e-6
    (i, j), values = faiss_ext.near_duplicates(PACKED_KEYS, threshold, name, packed=166)[0].T, faiss_ext.near_duplicates(
        PACKED_KEYS, threshold, name, packed=166)[1]
    assert len(i) == np.triu(expected >= threshold, 1).sum() > 30
    np.testing.assert_allclose(values, expected[i, j], rtol=1e-6)
    graph = faiss_ext.threshold_graph(PACKED_KEYS, threshold, name, packed=166).toarray()
    np.testing.assert_allclose(graph[i, j], expected[i, j], rtol=1e-6)
    largest = expected[i, j].max()
    labels, centres = faiss_ext.butina_clusters(PACKED_KEYS, largest, name, packed=166)
    near = (expected >= largest) | np.eye(60, dtype=bool)
    assert 1 < np.bincount(labels).max() and all(near[i, centres[label]] for i, label in enumerate(labels))
    if name == "hamming":
        picks, values = faiss_ext.maxmin_picks(PACKED_KEYS, 5, name, first=0, packed=166)
        np.testing.assert_allclose(values[1:], [expected[picks[n], picks[:n]].max() for n in range(1, 5)], rtol=1e-6)


def test_numbers_of_bits_of_vectors():
    x = KEYS.astype("float32")
    kernel = faiss_ext.kernel_factory("chi2")
    np.testing.assert_allclose(kernel.gram(PACKED_KEYS, packed=166), kernel.gram(x), rtol=1e-5)
    for name in ("jaccard", "cosine"):
        of_bits, of_vectors = faiss_ext.near_duplicates(PACKED_KEYS, 0.6, name, packed=166), faiss_ext.near_duplicates(x, 0.6, name)
        assert len(of_bits[0]) >= 30 and (of_bits[0] == of_vectors[0]).all()
    groups = [faiss_ext.near_duplicate_groups(PACKED_KEYS, 0.6, kernel, packed=packed) for kernel in ("jaccard", "hamming") for packed in (166, True)]
    assert (groups[0] == groups[1]).all() and len(np.unique(groups[0])) < 60
    assert abs(faiss_ext.mean_neighbor_distance(PACKED_KEYS, "l1", 5, packed=166) - faiss_ext.mean_neighbor_distance(x, "l1", 5)) < 1e-4
    for string in ("KFlat(jaccard)", "CWS512,BFlat"):
        packed, floats = (faiss.index_factory(166, string) for _ in range(2))
        packed.add(PACKED_KEYS, packed=166)
        floats.add(x)
        assert_equal(packed.search(PACKED_KEYS, 5, packed=166), floats.search(x, 5))
        found = faiss_ext.kernel_values(packed, *packed.search(PACKED_KEYS, 5, packed=True), PACKED_KEYS, packed=166)
        assert found.shape == (60, 5) and (found[:, 0] == 1).all()
        for packed_of_all in (166, True):
            values = faiss_ext.calibrate(packed, PACKED_KEYS, PACKED_KEYS[:20] ^ 16, "jaccard", packed=packed_of_all, width=20)
            assert values.maximum == 1 and (values.values > 0.5).any()


def test_wrong_numbers_of_bits():
    full = np.full((3, 21), 255, "uint8")
    index, kernel = faiss.index_factory(166, "KFlat(jaccard)"), faiss_ext.kernel_factory("linear")
    codes = faiss_ext.index_binary_factory(166, "BKFlat(jaccard)")
    index.add(PACKED_KEYS, packed=True)
    hash = faiss_ext.kernel_hash_factory(166, "CWS64")
    calls = [
        lambda x, bits: kernel.gram(x, packed=bits), lambda x, bits: faiss_ext.bit_kernel_factory("hamming").gram(x, packed=bits),
        lambda x, bits: faiss_ext.bit_kernel_factory("hamming")(x[0], x[1], packed=bits), lambda x, bits: faiss_ext.near_duplicates(x, 0.9, packed=bits),
        lambda x, bits: faiss_ext.near_duplicates(x, 0.9, "hamming", packed=bits), lambda x, bits: faiss_ext.near_duplicate_groups(x, 0.9, packed=bits),
        lambda x, bits: faiss_ext.threshold_graph(x, 0.9, packed=bits), lambda x, bits: faiss_ext.butina_clusters(x, 0.9, packed=bits),
        lambda x, bits: faiss_ext.maxmin_picks(x, 2, packed=bits), lambda x, bits: faiss_ext.mean_neighbor_distance(x, packed=bits),
        lambda x, bits: faiss_ext.recommend(x, "jaccard", packed=bits, progress=False)]
    of_dimension = [
        lambda x, bits: index.add(x, packed=bits), lambda x, bits: index.search(x, 1, packed=bits), lambda x, bits: codes.add(x, packed=bits),
        lambda x, bits: index.update_vectors([0, 1, 2], x, packed=bits), lambda x, bits: hash.encode(x, packed=bits)]
    for call in calls + of_dimension:
        with pytest.raises(RuntimeError, match="(code|vector) [0-2] has ones beyond its first 166 bits; expected zeros in the 2 low bits"):
            call(full, 166)
    for call in calls:
        with pytest.raises(ValueError, match="packed is 2048, a number of bits, but rows of 21 bytes have 161 to 168"):
            call(full, 2048)
    for call in of_dimension:
        with pytest.raises(ValueError, match="packed is 168, a number of bits, expected 166 or True"):
            call(full, 168)
    assert index.ntotal == 60 and codes.ntotal == 0


def test_indexes_for_numbers_of_bits_that_are_no_multiple_of_8():
    x = np.packbits(bits_of(3000, 5, 250), axis=1)
    found = faiss_ext.recommend(x, "jaccard", packed=250, progress=False, k=5)
    assert found.d == 250 and found.build(x).d == 250
    assert not found.impossible and "BHNSW32,BKFlat(jaccard)" in {tried.string for tried in found.tried}


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
