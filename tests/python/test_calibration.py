# SPDX-License-Identifier: MIT
"""calibrate: what kernel values distances mean, by measurement."""

import pickle
import re
import warnings

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import COUNTS, EDGES, FAILURE, IP, KERNELS, L2, X, made, made_binary

BASE, HELD_OUT, QUERIES = X[:1000], X[1000:1400], X[1400:]
GRAM = faiss_ext.kernel_factory("chi2").gram(QUERIES, BASE)


def by_hand(distances, values, d, width):
    """The window of results nearest by rank, all that are equally far among them."""
    order = np.argsort(distances, kind="stable")
    distances, values = distances[order], values[order]
    same = np.flatnonzero(distances == d)
    if len(same) >= width:
        return values[same]
    begin = same[0] if len(same) else np.searchsorted(distances, d)
    end = begin + len(same)
    before = True
    while end - begin < width:
        if before and begin > 0 or end == len(values):
            begin -= 1
        else:
            end += 1
        before = not before
    return values[begin:end]


@pytest.mark.parametrize("width", [1, 2, 5, 6, 20])
def test_windows(width):
    rng = np.random.default_rng(width)
    distances = rng.integers(0, 12, 60).astype("float64")
    distances[distances == 7] = 6  # a distance between two measured ones
    values = rng.random(60)
    measured = faiss_ext.Calibration(distances, values, width)
    D = np.array([[0, 3, 7], [11, 6, 5]])
    expected = np.array([[by_hand(distances, values, d, width).mean() for d in row] for row in D])
    inner = (D > 1) & (D < 10)
    np.testing.assert_allclose(measured.value(D)[inner], expected[inner])
    assert measured.value(D).shape == D.shape
    # at the ends the window is as wide, and on one side
    if width <= (distances == 0).sum():
        np.testing.assert_allclose(measured.value(0), values[distances == 0].mean())
    assert np.isnan(measured.value([-1, 11.5, np.inf, np.nan])).all()


def test_intervals_are_order_statistics():
    values = np.random.default_rng(1).permutation(99) / 100
    measured = faiss_ext.Calibration(np.zeros(99), values, 10)
    for failure, j in ((0.02, 1), (0.1, 5), (0.5, 25), (0.99, 49)):
        low, high = measured.interval(0, failure)
        assert (low, high) == ((j - 1) / 100, (99 - j) / 100)
    with pytest.raises(ValueError, match="failure 0.01 needs 199 measured results, there are 99"):
        measured.interval(0, 0.01)


def test_a_further_result_lies_outside_as_seldom_as_promised():
    """Exact for exchangeable values: of all ways to leave one out, at most that share."""
    values = np.random.default_rng(2).random(200)
    outside = 0
    for i in range(200):
        low, high = faiss_ext.Calibration(np.zeros(199), np.delete(values, i), 199).interval(0, 0.1)
        outside += not low <= values[i] <= high
    assert 0.08 <= outside / 200 <= 0.1


@pytest.mark.parametrize("noise", [0, 0.005, 0.3])
@pytest.mark.parametrize("failure", [0.05, 0.01])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_nearest_distances_are_no_exception(noise, failure, sign):
    """Each time one further result among the nearest 2 in 100, of values that fall with the distance: Hoeffding's bound.
    (-1: values grow, as those of inner products do.)"""
    rng = np.random.default_rng(7)
    outside, runs = [], 4000
    for _ in range(runs):
        D = rng.random(401)
        D[0] *= 0.02
        V = 1 - D + noise * rng.standard_normal(len(D))
        low, high = faiss_ext.Calibration(sign * D[1:], V[1:]).interval(sign * D[0], failure)
        outside.append(not low <= V[0] <= high)
    assert np.mean(outside) <= failure + np.sqrt(np.log(1 / FAILURE) / 2 / runs)


def test_smaller_distances_than_measured_ones():
    distances = np.arange(100.0)
    measured = faiss_ext.Calibration(distances, 1 - distances / 100, 50, maximum=1)
    low, high = measured.interval([-1, 0, 38, 99, 100, -np.inf, np.inf, np.nan, -3.5e38])
    np.testing.assert_allclose(low[0], 0.51)
    np.testing.assert_array_equal(high[:2], 1)
    assert 0.75 < high[2] < 1  # as many are as near as it takes
    assert low[3] == 1 - 0.99 and np.isnan(low[4:]).all() and np.isnan(high[4:]).all()
    unlimited = faiss_ext.Calibration(distances, 1 - distances / 100, 50)
    assert unlimited.interval(-1)[1] == np.inf and np.isnan(unlimited.value(-1))
    growing = faiss_ext.Calibration(-distances, 1 - distances / 100, 50, maximum=1)
    np.testing.assert_allclose(growing.interval([1, 0, -30, -99]), measured.interval([-1, 0, 30, 99]), atol=0.011)
    assert np.isnan(growing.interval([-100, -3.5e38])).all()


@pytest.mark.parametrize("string, metric, x", [
    ("KFlat(chi2)", IP, X), ("KFlat(jaccard)", faiss.METRIC_L2, X), ("HNSW8,KFlat(gaussian)", faiss.METRIC_L2, X),
    ("CWS64,BFlat,Refine(KFlat(jaccard))", faiss.METRIC_L2, X), ("IDMap2,KFlat(poly(degree=2))", IP, X),
    ("KFlat(jaccard,store=u8)", faiss.METRIC_L2, COUNTS)])
def test_exact_indexes_have_exact_values(string, metric, x):
    index = faiss.index_factory(64, string, metric)
    index.train(x[:1000])
    if "IDMap" in string:
        index.add_with_ids(x[:1000], np.arange(1000))
    else:
        index.add(x[:1000])
    measured = faiss_ext.calibrate(index, x[:1000], x[1000:1200])
    D, I = index.search(x[1200:1300], 5)
    exact = faiss_ext.kernel_values(index, D)
    again = pickle.loads(pickle.dumps(measured))
    for found in (measured.value(D), *measured.interval(D, 1e-9), again.value(D)):
        np.testing.assert_allclose(found, exact, rtol=1e-6)
    missing = np.array([3.4028235e38, -3.4028235e38], dtype="float32")
    assert np.isnan(measured.value(missing)).all() and "exact" in repr(measured)
    # but not of another kernel
    assert faiss_ext.calibrate(index, x[:1000], x[1000:1200], "hellinger").exact is None


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("metric", [L2, IP])
def test_what_is_called_exact_is_exact_on_the_edges(name, metric):
    """Also if the vectors that are measured have no zeros among them, and later ones have."""
    index = faiss.index_factory(64, f"KFlat({name})", metric)
    index.add(X[:300])
    measured = faiss_ext.calibrate(index, X[:300], X[300:320])
    assert (measured.exact is not None) == (KERNELS[name] or metric == IP)
    index.reset()
    index.add(EDGES)
    D, I = index.search(EDGES, len(EDGES))
    expected = np.take_along_axis(faiss_ext.kernel_factory(name).gram(EDGES), I, axis=1)
    if measured.exact is not None:
        for found in (measured.value(D), *measured.interval(D)):
            np.testing.assert_allclose(found, expected, atol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the queries are among the vectors
        again = faiss_ext.calibrate(index, EDGES, EDGES, k=len(EDGES))
    assert again.maximum >= expected.max() - 1e-6
    np.testing.assert_allclose(np.sort(again.values), np.sort(expected.ravel()), rtol=1e-5, atol=1e-9)
    if again.exact is None:  # of each query, the value of its result is inside
        low, high = again.interval(D)
        assert ((expected < low) | (expected > high)).mean() <= 0.05


def test_kernel_values_have_their_maximum():
    for string, x, kernel, maximum in (
            ("RHBE64,BFlat", COUNTS, "cosine", 1), ("AHK64(chi2),BFlat", X, "chi2", 1),
            ("AHK64(chi2),BFlat", COUNTS, "chi2", np.inf), ("CWS64,BFlat", COUNTS, None, 1),
            ("RHBE64,BFlat", np.concatenate([COUNTS[:598], np.zeros((2, 64), "f4")]), "cosine", 1)):
        assert faiss_ext.calibrate(made(string, x[:500]), x[:500], x[500:600], kernel).maximum == maximum


def test_queries_among_the_vectors_are_told():
    index = made("RHBE64,BFlat", BASE)
    with pytest.warns(UserWarning, match="2 of 20 queries are among the vectors"):
        faiss_ext.calibrate(index, BASE, np.concatenate([BASE[:2], HELD_OUT[:18]]), "cosine")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        faiss_ext.calibrate(index, BASE, HELD_OUT[:20], "cosine")


@pytest.mark.parametrize("string", [
    "AHK256(chi2,rot=pca),BFlat", "AHK256(chi2,rot=itq),AFlat", "KLSH128(chi2),BIVF4", "SCR256,BFlat",
    "HKM1(chi2),PCAR32,KIVF16(nprobe=8)", "PCA16,Flat"])
def test_results_lie_inside(string):
    """Results of other queries: their share outside by Hoeffding's inequality, over queries, whose results depend on each
    other."""
    index = made(string, BASE)
    measured = faiss_ext.calibrate(index, BASE, HELD_OUT, "chi2", k=20)
    assert len(measured.values) == 20 * len(HELD_OUT)
    D, I = index.search(QUERIES, 20)
    K = np.take_along_axis(GRAM, I, axis=1)
    low, high = measured.interval(D, 0.1)
    known = ~np.isnan(low)
    assert known.mean() > 0.98
    outside = ((K < low) | (K > high)) & known
    deviation = np.sqrt(np.log(1 / FAILURE) / 2 * (1 / len(QUERIES) + 1 / len(HELD_OUT)))
    assert outside.mean() < 0.1 + deviation
    assert outside.any()  # or the intervals would be too wide
    # the mean is a better guess than one for all distances
    known &= ~np.isnan(measured.value(D))  # a distance below all measured ones has no mean
    error = np.abs(measured.value(D) - K)[known]
    assert error.mean() < 0.8 * np.abs(measured.values.mean() - K)[known].mean()


def test_the_kernel_of_the_scheme_is_the_default():
    for index in (made("CWS128,BFlat", BASE), made("CWS128,AFlat", BASE), made_binary("CWS128,BFlat", BASE)):
        ours = faiss_ext.calibrate(index, BASE, HELD_OUT[:50])
        named = faiss_ext.calibrate(index, BASE, HELD_OUT[:50], "jaccard")
        np.testing.assert_allclose(ours.values, named.values, atol=1e-6)
        np.testing.assert_array_equal(ours.distances, named.distances)


def filled(string, x=BASE, trained_on=BASE):
    """With ids that are positions."""
    index = faiss.index_factory(64, string)
    index.train(trained_on)
    if string.startswith("IDMap"):
        index.add_with_ids(x, np.arange(len(x)))
    else:
        index.add(x)
    return index


def shards(string):
    found = faiss.IndexShards(64, False, True)
    for i in 0, 500:
        found.add_shard(filled(string, BASE[i:i + 500], trained_on=BASE))
    return found


@pytest.mark.parametrize("string, kernel", [
    ("KFlat(chi2)", "chi2"), ("HNSW8,KFlat(js)", "js"), ("AHK64(chi2),BFlat,Refine(KFlat(intersection))", "intersection"),
    ("IDMap,HNSW8,KFlat(js)", "js"), ("IDMap2,CWS64,AFlat", "jaccard"), ("L2norm,KFlat(linear)", "cosine"),
    ("L2norm,CWS64,BFlat", lambda x, y: faiss_ext.kernel_factory("jaccard").gram(
        *(z / np.linalg.norm(z, axis=1, keepdims=True) for z in (x, y))))])
@pytest.mark.parametrize("make", [filled, shards])
def test_an_index_knows_its_kernel(string, kernel, make):
    if make is shards and string.startswith("IDMap"):
        pytest.skip("shards have ids themselves")
    index = make(string)
    ours = faiss_ext.calibrate(index, BASE, HELD_OUT[:50])
    named = faiss_ext.calibrate(index, BASE, HELD_OUT[:50], kernel)
    np.testing.assert_allclose(ours.values, named.values, rtol=1e-5, atol=1e-6)


def test_parts_that_differ_know_none():
    index = faiss.IndexShards(64, False, True)
    parts = [filled(f"KFlat({kernel})", BASE[:500]) for kernel in ("chi2", "js")]
    for part in parts:
        index.add_shard(part)
    with pytest.raises(ValueError, match=r"differ: KFlat\(chi2\), KFlat\(js\)"):
        faiss_ext.calibrate(index, BASE, HELD_OUT)


@pytest.mark.parametrize("string, kernel", [
    ("SIK64(gaussian),BFlat", "gaussian"), ("BSIK64,BFlat", "gaussian"), ("KLSH64(gaussian),BFlat", "gaussian"),
    ("RHBE64,BFlat,Refine(KFlat(expchi2))", "expchi2"), ("SIK64(matern(nu=2.5)),AFlat", "matern(nu=2.5)"),
    ("KPCA8(laplacian),Flat", "laplacian"), ("HNSW8,KFlat(normalized(gaussian))", "normalized(gaussian)"),
    ("IDMap2,SIK64(gaussian),BFlat", "gaussian"), ("CWS64,BFlat,Refine(KFlat(gaussian(neighbor=7)))", "gaussian(neighbor=7)")])
def test_a_bandwidth_is_that_of_the_index(string, kernel):
    index = filled(string, trained_on=4 * BASE[:300])  # another one than that of BASE
    gamma = re.search(r"gamma=[^,()]+", faiss_ext.index_string(index))[0]
    if "(" in kernel:
        exact = kernel.replace("neighbor=7", gamma).replace("gaussian)", f"gaussian({gamma}))").replace("nu=", f"{gamma},nu=")
    else:
        exact = f"{kernel}({gamma})"
    for named in (kernel, faiss_ext.kernel_factory(kernel)):
        found = faiss_ext.calibrate(index, BASE, HELD_OUT[:30], named)
        np.testing.assert_allclose(
            found.values, faiss_ext.calibrate(index, BASE, HELD_OUT[:30], exact).values, rtol=1e-5)
    # one that the index does not have is trained
    learnt = faiss_ext.kernel_factory("laplacian" if "laplacian" not in string else "gaussian")
    trained = learnt.copy()
    trained.train(BASE)
    np.testing.assert_array_equal(*(faiss_ext.calibrate(index, BASE, HELD_OUT[:30], k).values for k in (learnt, trained)))


def test_packed_bits():
    bits = (COUNTS > 8).astype("uint8")
    base, queries = np.packbits(bits[:1000], axis=1), np.packbits(bits[1000:1100], axis=1)
    gram = faiss_ext.kernel_factory("jaccard").gram(bits[1000:1100].astype("f4"), bits[:1000].astype("f4"))
    for string in ("BKFlat(jaccard)", "BFlat", "IDMap2,BKFlat(jaccard)"):
        index = faiss_ext.index_binary_factory(64, string)
        if "IDMap" in string:
            index.add_with_ids(base, np.arange(1000))
        else:
            index.add(base)
        with pytest.warns(UserWarning, match="are among the vectors"):
            measured = faiss_ext.calibrate(index, base, queries, "jaccard")
        D, I = index.search(queries, 10)
        np.testing.assert_allclose(
            np.sort(measured.values), np.sort(np.take_along_axis(gram, I, axis=1).ravel()), atol=1e-6)
        if "K" in string:
            with pytest.warns(UserWarning, match="are among the vectors"):
                ours = faiss_ext.calibrate(index, base, queries)
            np.testing.assert_allclose(ours.value(D), faiss_ext.kernel_values(index, D))
            assert np.isnan(measured.value(2**31 - 1))
        with pytest.raises(TypeError, match="packed bits, uint8, got float32"):
            faiss_ext.calibrate(index, base.astype("f4"), queries, "jaccard")
    table = faiss.index_binary_factory(64, "IDMap,CWS64,BFlat")
    table.add(BASE)
    assert len(faiss_ext.calibrate(table, BASE, HELD_OUT[:9]).values) == 90


@pytest.mark.parametrize("string", ["CWS128,BFlat", "KFlat(jaccard)"])
def test_packed_bits_of_an_index_of_vectors_under_a_kernel_of_bits(string):
    """The values are shares of equal bits, which no kernel of vectors gives."""
    bits = COUNTS[:1100, :61] > 8
    base, queries = np.packbits(bits[:1000], axis=1), np.packbits(bits[1000:], axis=1)
    index = faiss.index_factory(61, string)
    index.add(base, packed=True)
    I = index.search(queries, 10, packed=True)[1]
    expected = np.sort((bits[1000:, None] == bits[I]).mean(axis=2).ravel())
    for kernel in ("hamming", faiss_ext.bit_kernel_factory("hamming")):
        with pytest.warns(UserWarning, match="are among the vectors"):
            measured = faiss_ext.calibrate(index, base, queries, kernel, packed=61)
        np.testing.assert_allclose(np.sort(measured.values), expected, atol=1e-6)
        assert measured.exact is None


def test_a_function_and_a_kernel_that_is_trained():
    index = made("PCA16,Flat", BASE)
    by_name = faiss_ext.calibrate(index, BASE, HELD_OUT[:20], "intersection")
    by_function = faiss_ext.calibrate(
        index, BASE, HELD_OUT[:20], lambda x, y: np.minimum(x[:, None], y[None]).sum(axis=2))
    np.testing.assert_allclose(by_name.values, by_function.values, atol=1e-6)
    gaussian = faiss_ext.calibrate(index, BASE, HELD_OUT[:20], "gaussian")
    assert (gaussian.values > 0).all()


def test_padding_is_left_out():
    index = made("AHK64(chi2),BFlat", BASE[:5])
    measured = faiss_ext.calibrate(index, BASE[:5], HELD_OUT[:3], k=9)
    assert len(measured.values) == 15


def test_what_does_not_fit_is_refused():
    index = made("AHK64(chi2),BFlat", BASE)
    with pytest.raises(ValueError, match="the index holds 1000 vectors, base has 999"):
        faiss_ext.calibrate(index, BASE[1:], HELD_OUT)
    with pytest.raises(ValueError, match=r"got \(1000, 64\) and \(400, 63\)"):
        faiss_ext.calibrate(index, BASE, HELD_OUT[:, 1:])
    with pytest.raises(ValueError, match="IndexPreTransform.* has no kernel; give the argument `kernel`"):
        faiss_ext.calibrate(made("PCA8,Flat", BASE), BASE, HELD_OUT)
    ids = faiss.index_factory(64, "IDMap,AHK64(chi2),BFlat")
    ids.add_with_ids(BASE, 5 + np.arange(len(BASE)))
    with pytest.raises(ValueError, match="expected positions below 1000"):
        faiss_ext.calibrate(ids, BASE, HELD_OUT)
    with pytest.raises(TypeError, match="calibrate: expected an index, got None"):
        faiss_ext.calibrate(None, BASE, HELD_OUT)
    for bad in (([1, 2], [1]), ([], []), ([1, np.nan], [1, 2])):
        with pytest.raises(ValueError, match="Calibration: expected"):
            faiss_ext.Calibration(*bad)
    with pytest.raises(ValueError, match="width is 0"):
        faiss_ext.Calibration([1], [1], width=0)
    for width in ("a", 2.5, None):
        with pytest.raises(TypeError, match="width must be an integer"):
            faiss_ext.Calibration([1], [1], width=width)
    measured = faiss_ext.Calibration([1], [1])
    for failure in ("a", None, [0.05]):
        with pytest.raises(TypeError, match="failure must be a number"):
            measured.interval(1, failure)
    with pytest.raises(ValueError, match="needs inf measured results"):
        measured.interval(1, 5e-324)
    for failure in (0, 1, -1, 2):
        with pytest.raises(ValueError, match="expected a probability"):
            measured.interval(1, failure)


def test_it_is_shown():
    measured = faiss_ext.Calibration([1, 3.5], [0.25, 1])
    assert repr(measured) == (
        "Calibration(2 results, distances from 1 to 3.5, kernel values from 0.25 to 1, width=2)")
