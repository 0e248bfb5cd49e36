# SPDX-License-Identifier: MIT
"""Kernels of histograms, and kernels made of others, against scikit-learn and
SciPy."""

import re

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import COUNTS, ROOT
from scipy.spatial.distance import cdist, jensenshannon
from sklearn.metrics.pairwise import (
    additive_chi2_kernel, chi2_kernel, cosine_similarity, linear_kernel,
    polynomial_kernel, rbf_kernel)


def histograms(n=80, start=0, l1=True):
    """Digits as histograms; many of the components are 0."""
    x = COUNTS[start : start + n].astype(float)
    return x / x.sum(axis=1, keepdims=True) if l1 else x


def jensen_shannon(x, y):
    a, b = x[:, None, :], y[None, :, :]
    both = (a > 0) & (b > 0)
    a, b = np.where(both, a, 1), np.where(both, b, 1)
    values = a * np.log1p(b / a) + b * np.log1p(a / b)
    return np.where(both, values, 0).sum(axis=2) / np.log(4)


# squared distances in feature space
DISTANCES = {
    # sum of (x - y)^2 / (x + y)
    "chi2": lambda x, y: -additive_chi2_kernel(x, y),
    "intersection": lambda x, y: cdist(x, y, "cityblock"),
    "hellinger": lambda x, y: cdist(np.sqrt(x), np.sqrt(y), "sqeuclidean"),
}


def additive(name):
    """(|x|_1 + |y|_1 - distance) / 2, as 2 min(x, y) = x + y - |x - y|."""

    def value(x, y):
        total = x.sum(axis=1)[:, None] + y.sum(axis=1)[None]
        return (total - DISTANCES[name](x, y)) / 2

    return value


ADDITIVE = {**{name: additive(name) for name in DISTANCES}, "js": jensen_shannon}


def normalized(function):
    def value(x, y):
        return function(x, y) / np.sqrt(
            np.outer(np.diag(function(x, x)), np.diag(function(y, y))))

    return value


def exponential(function, s):
    return lambda x, y: np.exp(s * (function(x, y) - 1))


def quadratic(x, y):
    return polynomial_kernel(x, y, degree=2, gamma=1, coef0=0.5)


def jaccard(x, y):
    """By the definition of scikit-learn's and SciPy's Jaccard distance of sets, with components as
    memberships."""
    shared = np.minimum(x[:, None], y[None]).sum(axis=2)
    return shared / np.maximum(x[:, None], y[None]).sum(axis=2)


def dice(x, y):
    """By SciPy's Bray-Curtis distance."""
    return 1 - cdist(x, y, "braycurtis")


# string, and the value in double precision
KERNELS = {
    **ADDITIVE,
    "jaccard": jaccard,
    "dice": dice,
    # scikit-learn: exp(-gamma * sum); here exp(-sum / gamma)
    "expchi2(gamma=2)": lambda x, y: chi2_kernel(x, y, gamma=1 / 2),
    "expchi2(gamma=0.25)": lambda x, y: chi2_kernel(x, y, gamma=4),
    "cosine": cosine_similarity,
    "poly": lambda x, y: polynomial_kernel(x, y, degree=3, gamma=1, coef0=1),
    "poly(degree=2,c=0.5)": quadratic,
    "poly(degree=1,c=0)": linear_kernel,
    "poly(degree=7,c=2)": lambda x, y: polynomial_kernel(x, y, 7, 1, 2),
    "normalized(intersection)": normalized(ADDITIVE["intersection"]),
    "normalized(linear)": cosine_similarity,
    "normalized(poly(degree=2,c=0.5))": normalized(quadratic),
    "sum(0.25*chi2,2*intersection)": lambda x, y: 0.25 * ADDITIVE["chi2"](x, y) + 2 * ADDITIVE["intersection"](x, y),
    "product(js,cosine,intersection)":
        lambda x, y: ADDITIVE["js"](x, y) * cosine_similarity(x, y) * ADDITIVE["intersection"](x, y),
    "exponential(chi2,scale=5)": exponential(ADDITIVE["chi2"], 5),
    "exponential(normalized(intersection),scale=3)": exponential(
        normalized(ADDITIVE["intersection"]), 3),
    "exponential(cosine,scale=0.5)": exponential(cosine_similarity, 0.5),
    "exponential(gaussian(gamma=2),scale=4)": exponential(
        lambda x, y: rbf_kernel(x, y, gamma=1), 4),
}

# too steep for vectors that are not L1-normalised
NARROW = ("exponential(chi2", "exponential(gaussian", "expchi2")


@pytest.mark.parametrize(
    "name, data",
    [
        (name, data)
        for name in KERNELS
        for data in ("l1", "counts", "signed")
        if not (data == "counts" and name.startswith(NARROW))
        if data != "signed" or "poly" in name or name.endswith("cosine")])
def test_gram_equals_the_reference(name, data):
    x, y = (histograms(*z, data == "l1") for z in ((60,), (90, 500)))
    if data == "signed":
        x, y = (z * np.resize([0.1, -0.1, -0.1], 64) for z in (x, y))
    values = faiss_ext.kernel_factory(name).gram(x, y)
    # the vectors themselves are rounded to float32: 1e-7 of a component
    steep = 20 if name.startswith(("expchi2", "exponential", "poly")) else 1
    exact = KERNELS[name](x, y)
    np.testing.assert_allclose(
        values, exact, rtol=3e-6 * steep, atol=1e-7 * np.abs(exact).max())
    # and these values tell the kernels from each other
    assert np.ptp(exact) > 1e-3 * exact.max()


def test_the_pyramid_match_is_an_intersection():
    """By its definition, a sum over new matches on each level, against the example of docs/kernels.md."""
    (source,) = [b for b in re.findall(r"```python\n(.*?)```", (ROOT / "docs/kernels.md").read_text(), re.DOTALL)
                 if "def pyramid" in b]
    made = {"np": np}
    exec(source.partition("\nrng =")[0], made)  # noqa: S102
    rng = np.random.default_rng(5)
    a, b = rng.random((30, 2)), rng.random((17, 2))

    def matches(cells):
        counted = [np.unique(np.floor(points * cells), axis=0, return_counts=True) for points in (a, b)]
        cells_of_a = {tuple(cell): n for cell, n in zip(*counted[0])}
        return sum(min(n, cells_of_a.get(tuple(cell), 0)) for cell, n in zip(*counted[1]))

    total = before = 0
    for level, cells in enumerate((16, 8, 4, 2, 1)):
        total += (matches(cells) - before) * 2.0**-level
        before = matches(cells)
    assert before == 17  # all meet at last
    kernel = faiss_ext.IntersectionKernel()
    assert kernel(made["pyramid"](a), made["pyramid"](b)) == pytest.approx(total, rel=1e-6)


def test_jensen_shannon_is_one_minus_the_squared_distance_of_scipy():
    x, y = histograms(30), histograms(40, 500)
    distance = np.array([[jensenshannon(a, b, base=2) for b in y] for a in x])
    values = faiss_ext.JensenShannonKernel().gram(x, y)
    np.testing.assert_allclose(values, 1 - distance**2, rtol=1e-5)


@pytest.mark.parametrize("name", ADDITIVE)
def test_metric_l2_is_the_distance_in_feature_space(name):
    x, y = histograms(50, l1=False), histograms(200, 500, l1=False)
    index = faiss.index_factory(64, f"KFlat({name})", faiss.METRIC_L2)
    index.add(y)
    D, I = index.search(x, 200)
    total = x.sum(axis=1)[:, None] + y.sum(axis=1)[None]
    expected = total - 2 * ADDITIVE[name](x, y)
    for distance in (
        np.sort(expected, axis=1), np.take_along_axis(expected, I, axis=1)):
        np.testing.assert_allclose(D, distance, rtol=1e-4, atol=1e-3)


def test_auto_gamma_is_the_mean_chi_square_distance():
    x = histograms(1797)
    distance = -additive_chi2_kernel(x)
    for n in (400, 1797):
        kernel = faiss_ext.kernel_factory("expchi2")
        assert not kernel.is_trained and kernel.auto_gamma
        kernel.train(x[:n])
        assert kernel.is_trained
        mean = distance[:n, :n].sum() / (n * (n - 1))
        if n == 400:
            assert kernel.gamma == pytest.approx(mean, rel=1e-5)
            continue
        # over 1,000 of them: five standard errors of a mean over pairs, as if
        # without the finite population's correction
        error = 2 * distance.mean(axis=1).std() / np.sqrt(1000)
        assert kernel.gamma != pytest.approx(mean, rel=1e-9)
        assert abs(kernel.gamma - mean) < 5 * error


def test_jaccard_of_sets_is_that_of_scipy():
    x = (COUNTS[:100] > 4).astype("float32")
    x[0] = x[1] = 0
    expected = 1 - cdist(x.astype(bool), x.astype(bool), "jaccard")
    values = faiss_ext.kernel_factory("jaccard").gram(x)
    np.testing.assert_allclose(values, expected, rtol=3e-7)
    index = faiss.index_factory(64, "KFlat(jaccard,store=u8)", faiss.METRIC_INNER_PRODUCT)
    index.add(x)
    np.testing.assert_allclose(index.search(x, 100)[0], -np.sort(-values, axis=1), rtol=1e-6)


@pytest.mark.skipif(not hasattr(faiss, "METRIC_Jaccard"), reason="FAISS before 1.7.4 has none")
def test_jaccard_is_the_metric_of_faiss():
    x = COUNTS[:100].astype("float32")
    metric = faiss.METRIC_Jaccard
    theirs = faiss.pairwise_distances(x, x, metric)
    np.testing.assert_allclose(faiss_ext.kernel_factory("jaccard").gram(x), theirs, rtol=3e-6)
