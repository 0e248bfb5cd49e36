# SPDX-License-Identifier: MIT
"""calibrate: what kernel values distances mean, by measurement."""

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import FAILURE, X, made, made_binary

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
    error = np.abs(measured.value(D) - K)[known]
    assert error.mean() < 0.8 * np.abs(measured.values.mean() - K)[known].mean()


def test_the_kernel_of_the_scheme_is_the_default():
    for index in (made("CWS128,BFlat", BASE), made("CWS128,AFlat", BASE), made_binary("CWS128,BFlat", BASE)):
        ours = faiss_ext.calibrate(index, BASE, HELD_OUT[:50])
        named = faiss_ext.calibrate(index, BASE, HELD_OUT[:50], "jaccard")
        np.testing.assert_allclose(ours.values, named.values, atol=1e-6)
        np.testing.assert_array_equal(ours.distances, named.distances)


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
    with pytest.raises(ValueError, match="name the kernel, which IndexPreTransform.* does not know"):
        faiss_ext.calibrate(made("PCA8,Flat", BASE), BASE, HELD_OUT)
    ids = faiss.index_factory(64, "IDMap,AHK64(chi2),BFlat")
    ids.add_with_ids(BASE, 5 + np.arange(len(BASE)))
    with pytest.raises(ValueError, match="expected positions below 1000"):
        faiss_ext.calibrate(ids, BASE, HELD_OUT)
    for bad in (([1, 2], [1]), ([], []), ([1, np.nan], [1, 2])):
        with pytest.raises(ValueError, match="Calibration: expected"):
            faiss_ext.Calibration(*bad)
    with pytest.raises(ValueError, match="width is 0"):
        faiss_ext.Calibration([1], [1], width=0)
    measured = faiss_ext.Calibration([1], [1])
    for failure in (0, 1, -1, 2):
        with pytest.raises(ValueError, match="expected a probability"):
            measured.interval(1, failure)
