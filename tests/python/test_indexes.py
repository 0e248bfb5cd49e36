# SPDX-License-Identifier: MIT
"""Indexes in Python: classes, results against NumPy and scikit-learn, and what
the Python layer checks and converts."""

import copy
import gc
import pickle

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import CONVERSIONS, IP, L2, assert_equal, fill, made, made_binary
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import euclidean_distances

HASH, BINARY = faiss_ext.IndexKernelHash, faiss_ext.IndexBinaryKernelHash
FLAT, GRAPH = faiss_ext.IndexFlatKernel, faiss_ext.IndexHNSWKernel
REFINE, LISTS = faiss_ext.IndexRefineKernel, faiss_ext.IndexIVFPQ4
TRANSFORMED = faiss_ext.IndexPreTransformSIMD

# strings of float indexes, with the classes from the outside inwards
STRINGS = {
    "SIK256(gaussian,gamma=auto),BFlat": [HASH],
    "SIK512(laplacian),BHash16x16": [HASH],
    "SIK64(matern,nu=1.5),BIVF16_HNSW8": [HASH],
    "KFlat(matern,nu=2.5)": [FLAT],
    "KIVF16(nprobe=4)": [LISTS],
    "PCAR16,KIVF8,Refine(KFlat(gaussian,store=f16))": [REFINE, TRANSFORMED, LISTS],
    "SIK64(gaussian),BFlat,Refine(KFlat(gaussian))": [REFINE, HASH],
    # a part that is FAISS's own comes as FAISS gives it
    "IVF16,Flat,Refine(KFlat(gaussian))": [REFINE, faiss.IndexIVFFlat],
    "HNSW16,KFlat(laplacian),Refine(KFlat(linear))": [REFINE, GRAPH, FLAT],
    "IDMap2,SIK64(gaussian),BFlat,RFlat": [faiss_ext.IndexIDTable, REFINE, HASH],
    "IDMap,RR32,HNSW16,KFlat(gaussian)": [faiss_ext.IndexIDTable, TRANSFORMED, GRAPH, FLAT],
    "PCA32,L2norm,SIK64(gaussian),BFlat": [TRANSFORMED, HASH],
}
BINARY_STRINGS = {
    "SIK512(laplacian),BHash16x16": [BINARY],
    "SIK256(gaussian,seed=3),BHNSW32": [BINARY],
    "IDMap,SIK256(gaussian),BFlat": [faiss_ext.IndexBinaryIDTable, BINARY],
    "IDMap2,SIK256(gaussian),BFlat": [faiss_ext.IndexBinaryIDTable, BINARY],
}

SIK = "SIK64(gaussian,gamma=0.001)"
KFLAT = "KFlat(gaussian,gamma=0.001)"
# float indexes that need no training, one of each kind
READY = [f"{SIK},BFlat", f"{SIK},BHash4x8", f"{SIK},BHNSW16", KFLAT, f"HNSW16,{KFLAT}",
         f"{SIK},BFlat,Refine({KFLAT})", "L2norm,SIK64(gaussian,gamma=4),BFlat"]


@pytest.fixture
def one_thread():
    """Graphs are the same from run to run only if one thread builds them."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(before)


def classes(index):
    """The classes of an index and its parts, down to one of faiss_ext."""
    found = [type(index)]
    if not isinstance(index, (HASH, BINARY)):
        for name in ("base_index", "storage", "index"):
            if hasattr(index, name):
                return found + classes(getattr(index, name))
    return found


def all_hamming(a, b):
    a, b = np.unpackbits(a, axis=1), np.unpackbits(b, axis=1)
    return (a[:, None] != b[None]).sum(axis=2)


def assert_nearest(D, I, distances, k, tolerance=0.0):
    """D and I hold the k smallest of each row of a matrix, ascending; of equal
    ones any may stand in I."""
    k = min(k, distances.shape[1])
    np.testing.assert_allclose(D[:, :k], np.sort(distances, axis=1)[:, :k], atol=tolerance)
    assert (np.diff(D[:, :k]) >= 0).all()
    np.testing.assert_allclose(
        np.take_along_axis(distances, I[:, :k], axis=1), D[:, :k], atol=tolerance)
    assert all(len(set(row[:k])) == k for row in I.tolist())
    assert (I[:, k:] == -1).all()


def assert_within(found, values, radius):
    """What a range search has found is all of each row below the radius."""
    lims, D, I = found
    np.testing.assert_array_equal(np.diff(lims), (values < radius).sum(axis=1))
    for row, begin, end in zip(values, lims[:-1], lims[1:]):
        ids = I[begin:end]
        np.testing.assert_array_equal(np.sort(ids), np.flatnonzero(row < radius))
        np.testing.assert_array_equal(D[begin:end], row[ids])


# ----------------------------------------------------------------- strings

@pytest.mark.parametrize("metric", [L2, IP])
@pytest.mark.parametrize("string", STRINGS)
def test_strings_make_indexes_through_both_factories(digits, string, metric, one_thread):
    results = []
    for factory in (faiss.index_factory, faiss_ext.index_factory):
        index = fill(factory(64, string, metric), digits.base[:700])
        assert classes(index)[: len(STRINGS[string])] == STRINGS[string]
        assert isinstance(index, faiss.Index)
        assert index.d == 64 and index.ntotal == 700
        assert index.is_trained and index.metric_type == metric
        results.append(index.search(digits.queries, 5))
    assert_equal(*results)
    D, I = results[0]
    assert D.shape == I.shape == (200, 5)
    assert D.dtype == np.float32 and I.dtype == np.int64
    assert (np.diff(D if metric == L2 else -D) >= 0).all()
    if "IDMap" in string:
        assert (I[I >= 0] % 10 == 3).all()


@pytest.mark.parametrize("string", BINARY_STRINGS)
def test_binary_strings_make_indexes_through_both_factories(digits, string, one_thread):
    results = []
    for module in (faiss, faiss_ext):
        index = fill(module.index_binary_factory(64, string), digits.base)
        assert classes(index) == BINARY_STRINGS[string]
        assert isinstance(index, faiss.IndexBinary)
        assert index.ntotal == len(digits.base)
        D, I = index.search(digits.queries, 5)
        assert D.dtype == np.int32 and I.dtype == np.int64
        if "IDMap" in string:
            assert (I % 10 == 3).all()
        results.append((D, I))
    assert_equal(*results)


@pytest.mark.parametrize("string", ["Flat", "PCA16,SQ8", "HNSW16", "IDMap2,LSH"])
def test_the_strings_of_faiss_go_on_as_before(digits, string, one_thread):
    before = faiss.index_factory.without_faiss_ext(64, string)
    fill(before, digits.base)
    for factory in (faiss.index_factory, faiss_ext.index_factory):
        index = factory(64, string)
        assert type(index) is type(before)
        fill(index, digits.base)
        assert_equal(index.search(digits.queries, 5), before.search(digits.queries, 5))


@pytest.mark.parametrize("string", ["BFlat", "BHash16x4", "BIVF8", "BHNSW8"])
def test_the_binary_strings_of_faiss_go_on_as_before(string):
    before = faiss.index_binary_factory.without_faiss_ext(64, string)
    assert type(faiss.index_binary_factory(64, string)) is type(before)
    expected = type(before)
    # the faster scans, and graphs that can change
    expected = {"BFlat": faiss_ext.IndexBinaryFlatSIMD, "BIVF8": faiss_ext.IndexBinaryIVFSIMD,
                "BHNSW8": faiss_ext.IndexBinaryHNSWSIMD}.get(string, expected)
    assert type(faiss_ext.index_binary_factory(64, string)) is expected
    assert issubclass(expected, type(before))


@pytest.mark.parametrize("factory, string, position, accepted", [
    ("index_factory", "SIK512(gaussian),Flat", 17, "BFlat"),
    ("index_factory", "SIK64(gaussian),BFlat,Refine(KFlat(foo))", 35, "js"),
    ("index_binary_factory", "KFlat(gaussian)", 0, "BFlat")])
def test_errors_in_strings_quote_mark_and_help(factory, string, position, accepted):
    for module in (faiss, faiss_ext):
        with pytest.raises(RuntimeError) as error:
            getattr(module, factory)(64, string)
        message = str(error.value)
        assert f'"{string}"' in message and accepted in message
        quoted, marker = message.splitlines()[1:3]
        assert quoted == "  " + string
        assert marker == "  " + " " * position + "^"


# ----------------------------------------------------------- exact results

@given(
    d=st.integers(1, 20), nbits=st.sampled_from(range(8, 97, 8)), n=st.integers(0, 40),
    nq=st.integers(0, 5), k=st.integers(1, 50),
    kernel=st.sampled_from(["gaussian", "laplacian", "matern,nu=0.8"]),
    seed=st.integers(0, 2**32))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_small_hash_indexes_equal_brute_force(d, nbits, n, nq, k, kernel, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype("float32")
    q = rng.normal(size=(nq, d)).astype("float32")
    string = f"SIK{nbits}({kernel},gamma=0.3,seed={seed})"
    hash = faiss_ext.kernel_hash_factory(d, string)
    hamming = all_hamming(hash.encode(q), hash.encode(x))
    indexes = [
        (faiss.index_factory(d, string + ",BFlat"), hamming),
        (faiss.index_binary_factory(d, string + ",BFlat"), hamming),
        # the larger, the nearer
        (faiss.index_factory(d, string + ",BFlat", IP), 2 * hamming - nbits)]
    for index, values in indexes:
        index.add(x)
        D, I = index.search(q, k)
        is_ip = index.metric_type == IP
        assert_nearest(-D if is_ip else D, I, values, k)
        radius = np.quantile(values, 0.3) if values.size else 1.0
        if index is indexes[1][0]:
            radius = int(radius)
        lims, D, I = index.range_search(q, -radius if is_ip else radius)
        assert_within((lims, -D if is_ip else D, I), values, radius)


@pytest.mark.parametrize("radius", [0, 1, 20, 20.5, 65])
def test_radii_of_binary_indexes_need_not_be_integers(digits, radius):
    index = made_binary(f"{SIK},BFlat", digits.base)
    encode = index.hash.encode
    codes = encode(digits.queries[:20])
    hamming = all_hamming(codes, encode(digits.base))
    assert_within(index.range_search(digits.queries[:20], radius), hamming, radius)
    assert_within(index.range_search_codes(codes, radius), hamming, radius)


def kernel_distances(x, y, gamma):
    """|phi(x) - phi(y)|^2 of the Gaussian kernel, in double precision."""
    squared = euclidean_distances(x.astype(float), y.astype(float)) ** 2
    return -2 * np.expm1(-gamma * squared / 2)


@given(
    d=st.integers(1, 20), n=st.integers(0, 60), nq=st.integers(0, 20),
    k=st.integers(1, 70), gamma=st.floats(0.01, 3), seed=st.integers(0, 2**32))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_small_kernel_indexes_equal_brute_force(d, n, nq, k, gamma, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype("float32")
    q = rng.normal(size=(nq, d)).astype("float32")
    index = faiss.index_factory(d, f"KFlat(gaussian,gamma={gamma!r})")
    index.add(x)
    distances = kernel_distances(q, x, gamma) if n and nq else np.empty((nq, n))
    assert_nearest(*index.search(q, k), distances, k, 1e-4)


# -------------------------------------------------------- what Python checks

@pytest.mark.parametrize("string", [f"{SIK},BFlat", KFLAT])
def test_arguments_have_names_and_missing_ones_are_type_errors(digits, string):
    indexes = [made(string, digits.base)]
    if "SIK" in string:
        indexes.append(made_binary(string, digits.base))
    for index in indexes:
        found = index.search(x=digits.queries, k=3)
        assert_equal(found, index.search(digits.queries, 3))
        for function in (index.search, index.add_with_ids, index.range_search):
            with pytest.raises(TypeError):
                function(digits.queries)
        for function in (index.train, index.add):
            with pytest.raises(TypeError):
                function()


@pytest.mark.parametrize("string", READY)
def test_empty_arrays_and_bad_shapes(digits, string):
    index = made(string, digits.base[:100])
    before = index.search(digits.queries, 5)
    assert_equal([index.assign(digits.queries, 5)], before[1:])
    index.add(digits.base[:0])
    D, I = index.search(digits.queries[:0], 5)
    assert D.shape == I.shape == (0, 5)
    if "Refine" not in string:
        lims, D, I = index.range_search(digits.queries[:0], 5)
        assert lims.tolist() == [0] and len(D) == len(I) == 0
    # FAISS's own classes assert, or cannot unpack the shape
    for call in (
            lambda: index.search(digits.queries, 0), lambda: index.add(digits.base[0]),
            lambda: index.search(digits.queries[:, :63], 3)):
        with pytest.raises((ValueError, AssertionError)):
            call()
    assert_equal(index.search(digits.queries, 5), before)


def test_ids_are_checked_against_the_vectors(digits):
    for factory in (faiss.index_factory, faiss.index_binary_factory):
        index = factory(64, f"{SIK},BIVF4")
        with pytest.raises(RuntimeError, match="call train"):
            index.add(digits.base)
        index.train(digits.base)
        index.add_with_ids(digits.base[:3], [7, 9, 8])
        assert index.search(digits.base[:3], 1)[1].tolist() == [[7], [9], [8]]
        for ids in ([1, 2], [[1, 2, 3]], [1, 2, 3, 4]):
            with pytest.raises(ValueError, match="3 ids"):
                index.add_with_ids(digits.base[:3], ids)


@pytest.mark.parametrize(
    "string", [KFLAT, f"L2norm,{KFLAT}", f"{SIK},BFlat", f"L2norm,{SIK},BFlat"])
def test_selectors_go_with_any_version_of_faiss(digits, string):
    index = made(string, digits.base)
    n = index.ntotal
    chosen = np.random.default_rng(3).permutation(n)[:400].astype("int64")
    bits = np.zeros(-(-n // 8) * 8, bool)
    bits[chosen] = True
    chosen.sort()
    not_range = faiss.IDSelectorNot(faiss.IDSelectorRange(100, 500))
    bitmap = faiss.IDSelectorBitmap(np.packbits(bits, bitorder="little"))
    for selector, members in [
        (faiss.IDSelectorRange(100, 500), np.arange(100, 500)),
        (faiss.IDSelectorBatch(chosen), chosen),
        (faiss.IDSelectorArray(chosen), chosen),
        (bitmap, chosen),
        (not_range, np.r_[0:100, 500:n]),
        (faiss.IDSelectorRange(5, 5), np.arange(0)),
    ]:
        part = faiss.index_factory(64, string)
        part.add(digits.base[members])
        params = faiss.SearchParameters(sel=selector)
        D, I = index.search(digits.queries, 50, params=params)
        expected, labels = part.search(digits.queries, 50)
        assert_equal((D, I), (expected, np.append(members, -1)[labels]))
        # a few queries go another way than many
        few = index.search(digits.queries[:1], 50, params=params)
        assert_equal(few, (D[:1], I[:1]))
        if string == KFLAT:
            mine = index.range_search(digits.queries, 0.3, params=params)
            theirs = part.range_search(digits.queries, 0.3)
            assert_equal(mine, (*theirs[:2], members[theirs[2]]))


@pytest.mark.parametrize("string", [
    f"IDMap,{KFLAT}", f"IDMap2,HNSW32,{KFLAT}", f"IDMap2,{SIK},BFlat", "IDMap,HKM1(chi2),Flat"])
def test_a_selector_selects_ids(digits, string):
    ids = 10_000 - 3 * np.arange(len(digits.base))
    index = faiss.index_factory(64, string)
    index.train(digits.base)
    index.add_with_ids(digits.base, ids)
    faiss_ext.set_index_parameter(index, "efSearch", 2000) if "HNSW" in string else None
    wanted = ids[100:400]
    params = faiss.SearchParameters(sel=faiss.IDSelectorBatch(wanted))
    D, I = index.search(digits.queries, 5, params=params)
    expected = faiss.index_factory(64, string) if "HNSW" not in string else faiss.index_factory(64, f"IDMap,{KFLAT}")
    expected.train(digits.base)
    expected.add_with_ids(digits.base[100:400], wanted)
    np.testing.assert_allclose(D, expected.search(digits.queries, 5)[0], rtol=1e-3)
    assert np.isin(I, wanted).all()


def test_vectors_come_back_from_a_kernel_index(digits):
    index = made("KFlat(gaussian)", digits.base)
    R = index.search_and_reconstruct(digits.queries, 3)
    codes = index.sa_encode(digits.base[:9])
    assert codes.shape == (9, index.sa_code_size()) == (9, 256)
    for found, expected in (
            (index.reconstruct(5), digits.base[5]),
            (index.reconstruct_n(7, 20), digits.base[7:27]),
            (index.reconstruct_batch([9, 3]), digits.base[[9, 3]]),
            (R[2], digits.base[R[1]]), (index.sa_decode(codes), digits.base[:9])):
        np.testing.assert_array_equal(found, expected)


def test_vectors_come_back_from_lists_behind_a_map(digits):
    index = made("HKM1(chi2),IVF8,Flat", digits.base)
    found = index.reconstruct_batch([3, 500])
    np.testing.assert_array_equal(found, index.reconstruct_n(0, 501)[[3, 500]])
    for makes_map in (False, True):
        if makes_map:
            faiss.extract_index_ivf(index).make_direct_map()
        np.testing.assert_array_equal(index.reconstruct_batch([3, 500]), found)
        with pytest.raises(RuntimeError):
            index.reconstruct_batch([3, len(digits.base)])


def test_grey_values_in_a_quarter_of_the_memory(digits, tmp_path):
    """Whole numbers from 0 to 16, divided by their sum, as single bytes."""
    x, q = (a / a.sum(axis=1, keepdims=True) for a in (digits.base, digits.queries))
    floats, halves, single = (
        faiss.index_factory(64, f"KFlat(chi2{store})") for store in
        ("", ",store=f16", ",store=u8"))
    for index in (floats, halves, single):
        index.add(x)
    assert [i.store for i in (floats, halves, single)] == ["f32", "f16", "u8"]
    assert [i.code_size for i in (floats, halves, single)] == [256, 132, 68]
    np.testing.assert_allclose(single.reconstruct_n(0, len(x)), x, rtol=3e-7)
    D, I = floats.search(q, 10)
    np.testing.assert_allclose(single.search(q, 10)[0], D, rtol=1e-5)
    assert np.mean(single.search(q, 10)[1] == I) > 0.99
    np.testing.assert_allclose(halves.search(q, 10)[0], D, rtol=5e-3)
    name = str(tmp_path / "index")
    faiss.write_index(single, name)
    again = faiss.read_index(name)
    assert again.store == "u8"
    assert_equal(again.search(q, 10), single.search(q, 10))
    with pytest.raises(AttributeError):
        single.store = "f32"
    with pytest.raises(RuntimeError, match="store=u8 takes components >= 0"):
        faiss.index_factory(64, "KFlat(linear,store=u8)").add(-x)


def test_signed_components_in_a_quarter_of_the_memory(digits):
    """Each vector has a step of its own, a 127th of its largest component."""
    x, q = (a.astype(np.float32) - 8 for a in (digits.base, digits.queries))
    index = faiss.index_factory(64, "KFlat(linear,store=i8)")
    index.add(x)
    assert (index.store, index.code_size) == ("i8", 68)
    step = np.abs(x).max(axis=1, keepdims=True) / 127
    kept = np.rint(x / step) * step
    np.testing.assert_allclose(index.reconstruct_n(0, len(x)), kept, atol=1e-5)
    distances = ((q[:, None] - kept[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(index.search(q, 10)[0], np.sort(distances)[:, :10], rtol=1e-4)


def test_graph_of_bytes_behind_a_map_finds_the_neighbours_under_the_kernel(digits):
    x, q = (a / a.sum(axis=1, keepdims=True) for a in (digits.base, digits.queries))
    exact = faiss.index_factory(64, "KFlat(chi2)")
    exact.add(x)
    index = faiss.index_factory(64, "HKM1(chi2),PCAR32,HNSW16,KFlat(linear,store=i8),Refine(KFlat(chi2,store=u8))")
    index.train(x)
    index.add_with_ids(x, np.arange(len(x)) + 1000)
    index.k_factor = 4
    assert np.mean(index.search(q, 10)[1] - 1000 == exact.search(q, 10)[1]) > 0.97
    index.remove_ids(np.arange(1000, 1100))
    D, I = index.search(q, 10, filter=range(1000, 1200))
    assert I.min() >= 1100 and I.max() < 1200
    np.testing.assert_allclose(
        D, exact.search(q, 10, filter=range(100, 200))[0], rtol=1e-4)


def test_lists_behind_a_map_find_the_neighbours_under_the_kernel(digits):
    x, q = (a / a.sum(axis=1, keepdims=True) for a in (digits.base, digits.queries))
    exact = faiss.index_factory(64, "KFlat(chi2)")
    exact.add(x)
    D, I = exact.search(q, 10)
    index = faiss.index_factory(64, "HKM1(chi2),PCAR32,KIVF16,Refine(KFlat(chi2))")
    index.train(x)
    index.add(x)
    index.k_factor = 4
    lists = faiss.downcast_index(index.base_index.index)
    assert (lists.nlist, lists.M, lists.bytes_per_vector()) == (16, 16, 20)
    recalls = []
    for lists.nprobe in (1, 4, 16):
        found = index.search(q, 10)
        recalls.append(np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found[1], I)]))
        same = found[1] == I
        np.testing.assert_allclose(found[0][same], D[same], rtol=1e-5)
    assert recalls == sorted(recalls) and recalls[-1] > 0.95 > recalls[0]
    with pytest.raises(AttributeError, match="nlist is read-only"):
        lists.nlist = 3
    with pytest.raises(ValueError, match="nprobe is 0"):
        lists.nprobe = 0
    params = faiss.SearchParametersIVF(nprobe=4)
    lists.nprobe = 16
    mapped = index.base_index.chain.at(0).apply(q), index.base_index.chain.at(1)
    near = mapped[1].apply(mapped[0])
    by_params = lists.search(near, 5, params=params)
    lists.nprobe = 4
    assert_equal(by_params, lists.search(near, 5))


@pytest.mark.parametrize("metric", [L2, IP])
def test_candidates_are_compared_by_the_kernel(digits, metric):
    index = faiss.index_factory(64, KFLAT, metric)
    index.add(digits.base)
    D, I = index.search(digits.queries, index.ntotal)
    order = np.random.default_rng(0).permuted(np.arange(500)[None].repeat(200, 0), axis=1)
    expected = np.take_along_axis(D, order, axis=1)
    labels = np.take_along_axis(I, order, axis=1)
    found = index.compute_distance_subset(digits.queries, labels)
    np.testing.assert_array_equal(found, expected)
    labels[:, ::7] = -1
    found = index.compute_distance_subset(digits.queries, labels)
    padding = np.finfo("float32").max * (1 if metric == L2 else -1)
    np.testing.assert_array_equal(found, np.where(labels < 0, padding, expected))
    assert index.compute_distance_subset(digits.queries[:0], labels[:0]).shape == (0, 500)
    for bad in (labels[:3], labels[0]):
        with pytest.raises(ValueError, match=r"expected ids of shape \(200, k\)"):
            index.compute_distance_subset(digits.queries, bad)
    with pytest.raises(TypeError, match="labels: ids must be integers"):
        index.compute_distance_subset(digits.queries, labels.astype("float32"))
    with pytest.raises(RuntimeError, match="id 99999 of query 0"):
        index.compute_distance_subset(digits.queries[:1], [[3, 99999]])


def test_another_order_of_exact_vectors(digits):
    x = digits.base[:20]
    index = faiss.index_factory(64, "KFlat(chi2)")
    index.add(x)
    order = np.random.default_rng(3).permutation(20)
    index.permute_entries(order)
    np.testing.assert_array_equal(index.reconstruct_n(0, 20), x[order])
    for bad, error in (
            (order[:5], ValueError), (order * 1.0, TypeError), (order + 1, RuntimeError), (order * 0, RuntimeError)):
        with pytest.raises(error, match="permute_entries"):
            index.permute_entries(bad)
    np.testing.assert_array_equal(index.reconstruct_n(0, 20), x[order])


def test_codes_but_no_vectors_come_back_from_a_hash_index(digits):
    x = digits.base[:5]
    index = made(f"{SIK},BFlat", digits.base)
    binary = made_binary(f"{SIK},BFlat", digits.base)
    codes = index.hash.encode(x)
    assert_equal([index.sa_encode(x)], [codes])
    for i in range(5):
        assert_equal([binary.reconstruct(i), index.storage.reconstruct(i)], [codes[i]] * 2)
    for name, *arguments in (
            ("reconstruct", 0), ("reconstruct_n", 0, 2), ("reconstruct_batch", [0, 1]),
            ("search_and_reconstruct", x, 2)):
        with pytest.raises(RuntimeError, match="IndexKernelHash: vectors cannot be reconstructed from their codes"):
            getattr(index, name)(*arguments)
    with pytest.raises(RuntimeError, match="IndexKernelHash: vectors cannot be reconstructed from their codes"):
        index.sa_decode(codes)


@pytest.mark.parametrize("kind", CONVERSIONS)
def test_indexes_take_arrays_of_any_type_and_layout(digits, kind):
    convert = CONVERSIONS[kind]
    x, q = digits.base[:100], digits.queries[:10]
    for factory, string in [
        (faiss.index_factory, "SIK64(gaussian),BFlat"),
        (faiss.index_factory, "KFlat(gaussian)"),
        (faiss.index_binary_factory, "SIK64(gaussian),BFlat"),
        (faiss.index_binary_factory, "SIK512(gaussian),BFlat"),  # codes of 64 bytes, vectors of 64 components
        (faiss.index_binary_factory, "IDMap2,SIK512(gaussian),BFlat"),
    ]:
        expected = fill(factory(64, string), x).search(q, 5)
        index = fill(factory(64, string), convert(x))
        assert_equal(index.search(convert(q), 5), expected)


def test_binary_indexes_take_codes_of_any_layout(digits):
    index = made_binary(f"{SIK},BFlat", digits.base)
    codes, queries = map(index.hash.encode, (digits.base, digits.queries))
    expected = index.search(digits.queries, 3)
    taken = faiss.index_binary_factory(64, f"{SIK},BFlat")
    taken.add_codes(np.asfortranarray(codes[:700]))
    taken.add(digits.base[700:])
    for same in (queries, np.asfortranarray(queries), np.repeat(queries, 2, axis=0)[::2]):
        assert_equal(index.search_codes(same, 3), expected)
        assert_equal(taken.search_codes(same, 3), expected)


def test_what_holds_a_hash_takes_vectors_and_codes_by_different_names(digits):
    flat = made_binary(f"{SIK},BFlat", digits.base)
    codes, q = flat.hash.encode(digits.queries[:9]), digits.queries[:9]
    D, I = flat.search(q, 5)
    indexes = [flat, *(made_binary(f"{name},{SIK},BFlat", digits.base) for name in ("IDMap", "IDMap2"))]
    for index in indexes:
        expected = 10 * I + 3 if isinstance(index, faiss.IndexBinaryIDMap) else I
        for found in (index.search(q, 5), index.search(q.astype("uint8"), 5), index.search_codes(codes, 5)):
            assert_equal(found, (D, expected))
        np.testing.assert_array_equal(index.assign(q, 5), expected)
        assert_equal(index.range_search(q, 20), index.range_search_codes(codes, np.float32(20)))
        for name, *rest in (("search", 5), ("range_search", 20), ("assign", 5), ("train",)):
            twin = {"range_search": "range_search_codes", "train": "train_codes"}.get(name, "search_codes")
            with pytest.raises(ValueError, match=f"{name}: expected vectors .*use {twin} for codes"):
                getattr(index, name)(codes, *rest)
        with pytest.raises(ValueError, match=r"expected codes of shape \(n, 8\), got \(9, 64\)"):
            index.search_codes(q.astype("uint8"), 5)
        with pytest.raises(TypeError, match="expected codes"):
            index.search_codes(q, 5)


def test_codes_are_added_with_ids(digits):
    index = faiss.index_binary_factory(64, f"IDMap2,{SIK},BFlat")
    codes = index.index.hash.encode(digits.base[:20])
    index.add_codes_with_ids(codes, np.arange(100, 120))
    D, I = index.search(digits.base[:20], 1)
    assert not D.any() and (codes[I[:, 0] - 100] == codes).all()
    D, I, R = index.search_and_reconstruct(digits.base[:3], 30)
    np.testing.assert_array_equal(R[I >= 0], codes[I[I >= 0] - 100])
    assert (R[I < 0] == 255).all() and (I < 0).sum() == 30


# ----------------------------------------------------------------- classes

@pytest.mark.parametrize("storage, cls", [
    ("BFlat", faiss_ext.IndexBinaryFlatSIMD), ("BHash4x8", faiss.IndexBinaryMultiHash),
    ("BHash8", faiss.IndexBinaryHash), ("BIVF4", faiss_ext.IndexBinaryIVFSIMD),
    ("BHNSW8", faiss_ext.IndexBinaryHNSWSIMD)])
def test_parts_have_their_own_class(storage, cls):
    for factory in (faiss.index_factory, faiss.index_binary_factory):
        index = factory(8, f"SIK64(matern,nu=2.5),{storage}")
        assert type(index.storage) is cls and index.storage.d == 64
        assert type(index.hash) is faiss_ext.ShiftInvariantHash
        assert type(index.hash.kernel) is faiss_ext.MaternKernel
        assert index.hash.kernel.nu == 2.5


def test_parts_of_wrappers_have_their_own_class():
    make = faiss.index_factory
    refine = make(8, "SIK64(gaussian),BFlat,Refine(KFlat(laplacian))")
    assert type(refine.refine_index) is FLAT
    assert type(refine.refine_index.kernel) is faiss_ext.LaplacianKernel
    assert type(make(8, "IDMap,KFlat(linear)").index) is FLAT
    chain = make(8, "L2norm,HKM1(chi2),OPQ2_8,Flat").chain
    assert [type(chain.at(i)) for i in range(3)] == [
        faiss.NormalizationTransform, faiss_ext.HomogeneousKernelMap, faiss.OPQMatrix]
    assert type(make(8, "HKM1(chi2),IVF4,Flat").index) is faiss.IndexIVFFlat
    quantizer = make(8, "SIK64(gaussian),BIVF4").storage.quantizer
    gc.collect()
    assert type(quantizer) is faiss_ext.IndexBinaryFlatSIMD and quantizer.ntotal == 0
    for text, path, get, cls in (
            ("SIK64(gaussian),BIVF4", "storage", faiss.downcast_IndexBinary, faiss_ext.IndexBinaryIVFSIMD),
            ("PCA4,KFlat(gaussian)", "index", faiss.downcast_index, FLAT),
            ("PCA4,KFlat(gaussian)", "chain", lambda chain: faiss.downcast_VectorTransform(chain.at(0)), faiss.PCAMatrix)):
        index = make(8, text)
        part = get(getattr(index, path))
        del index
        gc.collect()
        assert isinstance(part, cls) and part.is_trained is False
    # and parts of FAISS's own indexes are what they were
    flat = faiss.index_factory.without_faiss_ext(8, "IDMap,Flat")
    assert type(flat.index) is faiss.Index
    assert isinstance(faiss.downcast_index(flat.index), faiss.IndexFlat)
    ivf = faiss.index_factory.without_faiss_ext(8, "IVF4,Flat")
    assert type(ivf.quantizer) is faiss.Index


def test_parameters_of_parts_take_effect(digits):
    truth = made("SIK64(gaussian),BFlat", digits.base).search(digits.queries, 5)[0]
    for storage, name in [("BHash4x16", "nflip"), ("BIVF64", "nprobe")]:
        index = made(f"SIK64(gaussian),{storage}", digits.base)
        found = []
        for value in (1, 3):
            setattr(index.storage, name, value)
            found.append((index.search(digits.queries, 5)[0] == truth).sum())
        assert found[1] > found[0]


def test_constructors_take_parts(digits):
    kernel = faiss_ext.GaussianKernel(0.001)
    hash = faiss_ext.ShiftInvariantHash(64, 64, kernel, 1234)
    expected = made(f"{SIK},BFlat", digits.base).search(digits.queries, 5)
    assert HASH(hash, faiss.IndexBinaryFlat(64), IP).metric_type == IP
    for cls in (HASH, BINARY):
        index = cls(hash, faiss.IndexBinaryFlat(64))
        index.add(digits.base)
        assert_equal(index.search(digits.queries, 5), expected)
        with pytest.raises(RuntimeError, match="64.*32"):
            cls(hash, faiss.IndexBinaryFlat(32))
        for parts in ((hash, None), (None, faiss.IndexBinaryFlat(64))):
            with pytest.raises((TypeError, RuntimeError), match="null|None"):
                cls(*parts)


@pytest.mark.parametrize("string", ["BFlat", "BIVF8"])
def test_binary_indexes_without_a_hash(string):
    codes = np.random.default_rng(1).integers(0, 256, (400, 8)).astype("uint8")
    index = faiss_ext.index_binary_factory(64, string)
    index.train(codes)
    index.add(codes)
    distances = np.unpackbits(codes[:5, None] ^ codes, axis=2).sum(axis=2)
    params = faiss.SearchParametersIVF() if "IVF" in string else faiss.SearchParameters()
    if "IVF" in string:
        params.nprobe = 8
    params.sel = faiss.IDSelectorRange(100, 200)
    D, I = index.search(codes[:5], 7, params=params)
    np.testing.assert_array_equal(D, np.sort(distances[:, 100:200], axis=1)[:, :7])
    assert ((100 <= I) & (I < 200)).all()
    lims, D, I = index.range_search(codes[:5], 25, params=params)
    for i in range(5):
        inside = np.flatnonzero(distances[i, 100:200] < 25) + 100
        np.testing.assert_array_equal(np.sort(I[lims[i]:lims[i + 1]]), inside)
    np.testing.assert_array_equal(index.reconstruct(17), codes[17])
    np.testing.assert_array_equal(index.reconstruct_n(), codes)
    rows = np.zeros((3, 8), "uint8")
    assert index.reconstruct_n(40, 3, rows) is rows
    np.testing.assert_array_equal(rows, codes[40:43])
    with pytest.raises(ValueError, match="shape"):
        index.reconstruct_n(0, 4, rows)
    for again in (pickle.loads(pickle.dumps(index)), copy.copy(index), copy.deepcopy(index)):
        assert type(again) is type(index)
        assert_equal(again.search(codes[:5], 7), index.search(codes[:5], 7))


def check_codes_by_ids(index, ids):
    """reconstruct_batch, for four ids and unknown ones."""
    found = index.reconstruct_batch(ids)
    assert found.dtype == "uint8" and found.shape == (4, 8)
    np.testing.assert_array_equal(found, [index.reconstruct(id) for id in ids])
    given = np.zeros((2, 8), "uint8")
    assert index.reconstruct_batch(ids[:2].tolist(), given) is given
    np.testing.assert_array_equal(given, found[:2])
    assert index.reconstruct_batch([]).shape == (0, 8)
    with pytest.raises(RuntimeError, match=r"id 5000\b"):
        index.reconstruct_batch([ids[0], 5000, 6000])
    for bad in (given[:1], given.astype(int)):
        with pytest.raises(ValueError, match="reconstruct_batch: x must be a writeable array of uint8 of shape"):
            index.reconstruct_batch(ids[:2], bad)


@pytest.mark.parametrize("wrapper", ["", "IDMap,", "IDMap2,", "BConcurrent,"])
@pytest.mark.parametrize("string", [
    "BFlat", "BIVF4", "BKFlat(jaccard)", "BHNSW8,BKFlat(jaccard)", "CWS64,BFlat,Refine(BKFlat(jaccard))", "BPerm(M=2,B=10)", "SIK64(gaussian),BFlat", "SIK64(gaussian),BIVF4", "SIK64(gaussian),BPerm(M=2,B=10)",
    "SIK64(gaussian),BHash8", "SIK64(gaussian),BHash2x8", "SIK64(gaussian),BHNSW8"])
def test_what_binary_indexes_tell_about_their_codes(string, wrapper):
    has_lists, has_hash = "BIVF" in string, "SIK" in string
    if wrapper.startswith("IDMap") and has_lists:
        pytest.skip("inverted lists keep ids themselves")
    random = np.random.default_rng(1)
    x = random.normal(size=(300, 16)).astype("float32") if has_hash else random.integers(1, 256, (300, 8)).astype("uint8")
    index = faiss_ext.index_binary_factory(16 if has_hash else 64, wrapper + string)
    assert len(index) == 0 and index
    index.train(x)
    ids = 7 * np.arange(300) + 100
    index.add_with_ids(x, ids)
    index.remove_ids(ids[:20])
    ids = ids[20:]
    assert len(index) == index.ntotal == len(ids) and index
    np.testing.assert_array_equal(np.sort(index.ids()), ids)
    assert index.contains([ids[4], 3, ids[4] + 1]).tolist() == [True, False, False]
    if "BHash" in string:
        for call in (lambda: index.reconstruct(int(ids[9])), lambda: index.reconstruct_batch(ids[:3])):
            with pytest.raises(RuntimeError, match="reconstruct is not supported; BFlat, BIVF, BHNSW and BPerm return codes") as caught:
                call()
            assert caught.value.unsupported
    else:
        check_codes_by_ids(index, ids[[9, 2, 9, -1]])
        if not has_hash:
            np.testing.assert_array_equal(index.reconstruct_batch(ids), x[-len(ids):])
    if has_lists:
        assert index.list_sizes().shape == (4,) and index.list_sizes().sum() == len(ids)
    else:
        with pytest.raises(RuntimeError, match="no inverted lists"):
            index.list_sizes()
    index.compact()
    np.testing.assert_array_equal(np.sort(index.ids()), ids)


def test_inverted_lists_give_the_codes_that_are_found():
    codes = np.random.default_rng(1).integers(0, 256, (400, 8)).astype("uint8")
    index = faiss_ext.index_binary_factory(64, "BIVF8")
    index.train(codes)
    index.add(codes)
    D, I, R = index.search_and_reconstruct(codes[:5], 300)
    assert_equal((D, I), index.search(codes[:5], 300))
    assert I[0, -1] == -1
    np.testing.assert_array_equal(R[I >= 0], codes[I[I >= 0]])
    assert (R[I < 0] == 255).all()
    with pytest.raises(TypeError, match="codes"):
        index.search_and_reconstruct(codes[:5].astype("float32"), 3)


def test_what_inverted_lists_were_made_for_cannot_be_set():
    index = faiss.index_factory(8, "KIVF4")
    for name, value in (("metric_type", faiss.METRIC_INNER_PRODUCT), ("is_trained", True)):
        with pytest.raises(AttributeError, match="read-only"):
            setattr(index, name, value)


@pytest.mark.parametrize("string", ("Flat,Refine(KFlat(chi2,store=u8))", "HKM1(chi2),Flat,Refine(KFlat(chi2))"))
def test_codes_of_refine_are_decoded_by_the_exact_index(digits, string):
    x = digits.base[:50]
    index = faiss.index_factory(64, string)
    index.train(x)
    index.add(x)
    np.testing.assert_array_equal(index.sa_decode(index.sa_encode(x)), index.reconstruct_n(0, 50))


def test_a_matrix_that_has_changed_is_seen():
    d = 64
    x = np.random.default_rng(1).normal(size=(5, d)).astype("float32")

    def set_one(transform, value):
        A = faiss.vector_to_array(transform.A)
        A[1] = value
        faiss.copy_array_to_vector(A, transform.A)

    def check(index, transform):
        for value in (1000, 2, 1e-3):
            set_one(transform, value)
            np.testing.assert_allclose(
                index.search(x, 1)[0],
                index.index.search(transform.apply(x), 1)[0], rtol=1e-3)

    index = faiss.index_factory(d, "RR64,KFlat(linear)")
    index.train(x)
    index.add(x[:1])
    repr(index)
    assert not index.verify_chain  # nobody else has its transformation
    rotation = faiss.downcast_VectorTransform(index.chain.at(0))
    assert index.verify_chain
    check(index, rotation)

    index = faiss_ext.clone_index(index)
    index.search(x, 1)
    assert not index.verify_chain
    more = faiss.LinearTransform(d, d)
    faiss.copy_array_to_vector(np.eye(d, dtype="float32").ravel(), more.A)
    more.is_trained = True
    index.prepend_transform(more)
    assert index.verify_chain and not more.thisown  # the index deletes it
    set_one(more, 100)
    by_faiss = faiss.downcast_VectorTransform(index.chain.at(1)).apply(more.apply(x))
    np.testing.assert_allclose(
        index.search(x, 1)[0], index.index.search(by_faiss, 1)[0], rtol=1e-3)


@pytest.mark.parametrize("string", ["KFlat(chi2)", "IDMap2,KFlat(chi2)", "SIK64(gaussian),BFlat", "PCAR8,KFlat(linear)"])
def test_a_radius_beyond_all_numbers_finds_all(string, digits):
    index = made(string, digits.base[:50])
    for radius in (1e300, np.float64(1e300), 10**400, np.inf):
        assert index.range_search(digits.queries[:2], radius)[0].tolist() == [0, 50, 100]
    assert index.range_search(digits.queries[:2], -10**400)[0].tolist() == [0, 0, 0]


# ------------------------------------------------- lists that remember ids, inside of others

def emptied(string):
    """Lists whose vectors have been removed: new ids do not begin at 0."""
    x = np.random.default_rng(2).random((40, 16), dtype="float32")
    index = faiss.index_factory(16, string)
    index.train(x)
    index.add(x[:5])
    index.remove_ids(np.arange(5))
    assert index.ntotal == 0
    return index, x


@pytest.mark.parametrize("string", ["KIVF4(M=4)", "PCA8,KIVF4(M=4)", "SIK64(gaussian(gamma=1)),BIVF4"])
def test_emptied_lists_are_no_positions(string):
    index, x = emptied(string)
    outer = faiss_ext.IndexRefineKernel(index, faiss_ext.IndexFlatKernel(16, faiss_ext.kernel_factory("linear")))
    with pytest.raises(RuntimeError, match="a part has ids of its own"):
        outer.add(x)
    assert outer.ntotal == index.ntotal == 0
    index.reset()
    outer.add(x)
    assert outer.search(x[7:8], 1)[1][0, 0] >= 0


def test_merging_id_maps_makes_no_id_of_padding():
    x = np.random.default_rng(2).random((6, 16), dtype="float32")
    for string in ("IDMap2,KFlat(chi2)", "SIK64(gaussian(gamma=1)),BIVF2"):
        first = faiss.index_factory(16, string)
        first.train(np.tile(x, (20, 1)))
        second = faiss.clone_index(first)
        first.add_with_ids(x[:3], np.arange(3) + 100)
        second.add_with_ids(x[3:], np.arange(3) + 7)
        for add_id in (-8, 2**63 - 8):
            with pytest.raises((ValueError, RuntimeError), match="is out of range, or -1"):
                first.merge_from(second, add_id)
        assert first.ntotal == second.ntotal == 3


def test_an_id_map_of_another_class_is_not_merged():
    x = np.random.default_rng(2).random((6, 16), dtype="float32")
    first, second = (faiss.index_factory(16, s) for s in ("IDMap2,KFlat(chi2)", "IDMap,KFlat(chi2)"))
    for index in (first, second):
        index.add_with_ids(x, np.arange(6) + (index is second) * 10)
    with pytest.raises(RuntimeError, match="expected another IndexIDTable"):
        first.merge_from(faiss.IndexIDMap(faiss.index_factory(16, "KFlat(chi2)")))
    faiss.downcast_index(second.index).reset()
    with pytest.raises(RuntimeError, match="id_map|vectors"):
        second.merge_from(first)
    assert first.ntotal == 6


def test_transformations_that_do_not_fit_are_refused():
    x = np.random.default_rng(2).random((60, 16), dtype="float32")
    index = faiss.index_factory(16, "PCA8,KFlat(gaussian(gamma=1))")
    index.train(x)
    index.add(x)
    index.chain.clear()
    for call in (lambda: index.search(x[:1], 2), lambda: index.add(x)):
        with pytest.raises(RuntimeError, match="an index takes 8 dimensions, but gets vectors of 16"):
            call()
