"""Kernels of histograms, and kernels made of others, against scikit-learn and
SciPy."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, jensenshannon
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import (
    additive_chi2_kernel,
    chi2_kernel,
    cosine_similarity,
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
)

import faiss
import faiss_ext

DIGITS = load_digits().data
DIGITS.setflags(write=False)


def each_sum(x, y):
    """x_i and y_i in all pairs, to be summed over the last axis."""
    return x[:, None, :], y[None, :, :]


def total(x, y):
    """|x|_1 + |y|_1 of all pairs."""
    return x.sum(axis=1)[:, None] + y.sum(axis=1)[None]


def chi2(x, y):
    a, b = each_sum(x, y)
    return (2 * a * b / np.where(a + b > 0, a + b, 1)).sum(axis=2)


def intersection(x, y):
    return np.minimum(*each_sum(x, y)).sum(axis=2)


def jensen_shannon(x, y):
    a, b = each_sum(x, y)
    both = (a > 0) & (b > 0)
    a, b = np.where(both, a, 1), np.where(both, b, 1)
    values = a * np.log1p(b / a) + b * np.log1p(a / b)
    return np.where(both, values, 0).sum(axis=2) / np.log(4)


def hellinger(x, y):
    return np.sqrt(x) @ np.sqrt(y).T


ADDITIVE = {
    "chi2": chi2,
    "intersection": intersection,
    "js": jensen_shannon,
    "hellinger": hellinger,
}


def normalized(function):
    def value(x, y):
        own = [
            np.array([function(v[None], v[None])[0, 0] for v in z])
            for z in (x, y)
        ]
        scale = np.sqrt(own[0][:, None] * own[1][None])
        return function(x, y) / scale

    return value


def exponential(function, s):
    return lambda x, y: np.exp(s * (function(x, y) - 1))


def quadratic(x, y):
    return polynomial_kernel(x, y, degree=2, gamma=1, coef0=0.5)


# string, and the value in double precision
KERNELS = {
    **ADDITIVE,
    # scikit-learn: exp(-gamma * sum); here exp(-sum / gamma)
    "expchi2(gamma=2)": lambda x, y: chi2_kernel(x, y, gamma=1 / 2),
    "expchi2(gamma=0.25)": lambda x, y: chi2_kernel(x, y, gamma=4),
    "cosine": cosine_similarity,
    "poly": lambda x, y: polynomial_kernel(x, y, degree=3, gamma=1, coef0=1),
    "poly(degree=2,c=0.5)": quadratic,
    "poly(degree=1,c=0)": linear_kernel,
    "poly(degree=7,c=2)": lambda x, y: polynomial_kernel(x, y, 7, 1, 2),
    "normalized(chi2)": normalized(chi2),
    "normalized(intersection)": normalized(intersection),
    "normalized(linear)": cosine_similarity,
    "normalized(poly(degree=2,c=0.5))": normalized(quadratic),
    "exponential(chi2,scale=5)": exponential(chi2, 5),
    "exponential(normalized(intersection),scale=3)": exponential(
        normalized(intersection), 3
    ),
    "exponential(cosine,scale=0.5)": exponential(cosine_similarity, 0.5),
    "exponential(gaussian(gamma=2),scale=4)": exponential(
        lambda x, y: rbf_kernel(x, y, gamma=1), 4
    ),
}


def histograms(n=80, start=0, l1=True):
    """Digits as histograms; many of the components are 0."""
    x = DIGITS[start : start + n]
    return x / x.sum(axis=1, keepdims=True) if l1 else x.copy()


# too steep for vectors that are not L1-normalised
NARROW = ("exponential(chi2", "exponential(gaussian", "expchi2")

# ------------------------------------------------------------------ values


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("l1", [True, False], ids=["l1", "counts"])
def test_gram_equals_the_reference(name, l1):
    if not l1 and name.startswith(NARROW):
        pytest.skip("all values of counts are 0 there, or infinite")
    x, y = histograms(60, l1=l1), histograms(90, 500, l1=l1)
    values = faiss_ext.kernel_factory(name).gram(x, y)
    assert values.dtype == np.float32 and values.shape == (60, 90)
    # the vectors themselves are rounded to float32: 1e-7 of a component
    steep = 20 if name.startswith(("expchi2", "exponential", "poly")) else 1
    exact = KERNELS[name](x, y)
    np.testing.assert_allclose(
        values, exact, rtol=3e-6 * steep, atol=1e-7 * np.abs(exact).max()
    )
    # and these values tell the kernels from each other
    assert np.ptp(exact) > 1e-3 * exact.max()


def test_chi2_is_what_scikit_learn_leaves_of_the_sums():
    """2xy / (x + y) = (x + y) / 2 - (x - y)^2 / (2 (x + y)); scikit-learn's
    kernel is minus the sum of (x - y)^2 / (x + y)."""
    x, y = histograms(60, l1=False), histograms(90, 500, l1=False)
    values = faiss_ext.Chi2Kernel().gram(x, y)
    expected = (total(x, y) + additive_chi2_kernel(x, y)) / 2
    np.testing.assert_allclose(values, expected, rtol=1e-6)


def test_jensen_shannon_is_one_minus_the_squared_distance_of_scipy():
    x, y = histograms(60), histograms(90, 500)
    distance = np.array([[jensenshannon(a, b, base=2) for b in y] for a in x])
    values = faiss_ext.JensenShannonKernel().gram(x, y)
    np.testing.assert_allclose(values, 1 - distance**2, rtol=1e-5)


def test_intersection_is_the_histogram_intersection_of_l1_distances():
    x, y = histograms(60, l1=False), histograms(90, 500, l1=False)
    expected = (total(x, y) - cdist(x, y, "cityblock")) / 2
    # small integers: sums are exact
    values = faiss_ext.IntersectionKernel().gram(x, y)
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("name", ADDITIVE)
def test_metric_l2_is_the_distance_in_feature_space(name):
    x, y = histograms(50, l1=False), histograms(200, 500, l1=False)
    index = faiss.index_factory(64, f"KFlat({name})", faiss.METRIC_L2)
    index.add(y)
    D, I = index.search(x, 200)
    found = np.empty_like(D)
    np.put_along_axis(found, I, D, axis=1)
    distance = {
        "chi2": lambda: -additive_chi2_kernel(x, y),
        "intersection": lambda: cdist(x, y, "cityblock"),
        # JSD is for distributions; here of k itself
        "js": lambda: total(x, y) - 2 * jensen_shannon(x, y),
        "hellinger": lambda: cdist(np.sqrt(x), np.sqrt(y), "sqeuclidean"),
    }[name]()
    np.testing.assert_allclose(found, distance, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(np.sort(I, axis=1), [np.arange(200)] * 50)


@pytest.mark.parametrize("name", ADDITIVE)
def test_metric_inner_product_is_the_kernel_itself(name):
    x, y = histograms(50), histograms(200, 500)
    index = faiss.index_factory(
        64, f"KFlat({name})", faiss.METRIC_INNER_PRODUCT
    )
    index.add(y)
    D, I = index.search(x, 5)
    expected = ADDITIVE[name](x, y)
    np.testing.assert_allclose(
        D, np.sort(expected, axis=1)[:, :-6:-1], rtol=1e-5
    )
    np.testing.assert_allclose(
        np.take_along_axis(expected, I, axis=1), D, rtol=1e-5
    )


@pytest.mark.parametrize(
    "name", [*ADDITIVE, "expchi2(gamma=2)", "normalized(chi2)", "cosine"]
)
def test_a_histogram_is_its_own_nearest_neighbour(name):
    x = np.unique(histograms(300).astype("float32"), axis=0)
    index = faiss.index_factory(64, f"KFlat({name})")
    index.add(x)
    D, I = index.search(x, 1)
    np.testing.assert_array_equal(I[:, 0], np.arange(len(x)))
    assert (D >= 0).all() and D.max() <= 1e-6


@pytest.mark.parametrize("name", KERNELS)
def test_gram_is_symmetric_and_positive_semidefinite(name):
    x = histograms(150)
    gram = faiss_ext.kernel_factory(name).gram(x)
    np.testing.assert_allclose(gram, gram.T, rtol=1e-6)
    eigenvalues = np.linalg.eigvalsh(gram.astype(float))
    assert eigenvalues[0] >= -1e-6 * eigenvalues[-1]
    if "poly" not in name or "normalized" in name:
        np.testing.assert_allclose(np.diag(gram), 1, rtol=1e-5)


sizes = st.one_of(
    st.just(0.0),
    st.floats(2.0**-100, 2.0**13, width=32),
    st.integers(0, 5).map(float),
)


@given(data=st.data(), d=st.integers(1, 70))
@settings(deadline=None, derandomize=True, max_examples=60)
@pytest.mark.parametrize("name", ADDITIVE)
def test_additive_kernels_of_any_histograms(name, data, d):
    rows = data.draw(
        st.lists(
            st.lists(sizes, min_size=d, max_size=d), min_size=1, max_size=4
        )
    )
    x = np.array(rows, dtype="float32").reshape(-1, d).astype(float)
    kernel = faiss_ext.kernel_factory(name)
    values = kernel.gram(x)
    expected = ADDITIVE[name](x, x)
    # components below 1e-37 count as 0
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-30)
    np.testing.assert_allclose(np.diag(values), x.sum(axis=1), rtol=1e-4)
    for s in (2.0, 0.25):
        # exact in floating point: degree 1
        np.testing.assert_allclose(kernel.gram(s * x), s * values, rtol=1e-6)


@given(
    n=st.integers(1, 20),
    m=st.integers(1, 40),
    d=st.integers(1, 90),
    seed=st.integers(0, 1 << 30),
)
@settings(deadline=None, derandomize=True, max_examples=40)
@pytest.mark.parametrize("name", KERNELS)
def test_values_do_not_depend_on_the_block(name, n, m, d, seed):
    rng = np.random.default_rng(seed)
    x = rng.exponential(size=(n, d)).astype("float32") / d
    y = rng.exponential(size=(m, d)).astype("float32") / d
    x[rng.random(x.shape) < 0.3] = 0
    kernel = faiss_ext.kernel_factory(name)
    gram = kernel.gram(x, y)
    i, j = rng.integers(n), rng.integers(m)
    np.testing.assert_array_equal(kernel.gram(x[i:], y[j:]), gram[i:, j:])
    assert kernel(x[i], y[j]) == gram[i, j]


def test_empty_histograms_have_kernel_zero():
    x = np.float32([[0, 0, 0], [1, 2, 3]])
    for name in ADDITIVE:
        for string in (name, f"normalized({name})"):
            gram = faiss_ext.kernel_factory(string).gram(x)
            assert gram[0, 0] == gram[0, 1] == gram[1, 0] == 0, string
    assert faiss_ext.CosineKernel().gram(x)[0].tolist() == [0, 0]
    gram = faiss_ext.ExpChi2Kernel(2.0).gram(x)
    np.testing.assert_allclose(gram, [[1, np.exp(-3)], [np.exp(-3), 1]])


# ------------------------------------------------------------------- gamma


def test_auto_gamma_is_the_mean_chi_square_distance():
    x = histograms(400)
    kernel = faiss_ext.kernel_factory("expchi2")
    assert not kernel.is_trained and kernel.auto_gamma
    kernel.train(x)
    distance = -additive_chi2_kernel(x)
    mean = distance.sum() / (400 * 399)
    assert kernel.is_trained
    assert kernel.gamma == pytest.approx(mean, rel=1e-5)
    np.testing.assert_allclose(
        kernel.gram(x), chi2_kernel(x, gamma=1 / mean), rtol=1e-4
    )


def test_auto_gamma_of_many_vectors_comes_from_a_sample():
    x = histograms(1797)
    kernel = faiss_ext.kernel_factory("expchi2")
    kernel.train(x)
    distance = -additive_chi2_kernel(x)
    mean = distance.sum() / (1797 * 1796)
    # mean over 1,000 of them: five standard errors, as if without the finite
    # population's correction
    error = distance.mean(axis=1).std() / np.sqrt(1000)
    assert kernel.gamma != pytest.approx(mean, rel=1e-9)
    assert abs(kernel.gamma - mean) < 5 * 2 * error


def test_a_given_gamma_is_not_trained():
    kernel = faiss_ext.ExpChi2Kernel(0.5)
    assert kernel.is_trained and not kernel.auto_gamma
    kernel.train(histograms())
    assert kernel.gamma == 0.5


@pytest.mark.parametrize("wrap", ["normalized({})", "exponential({},scale=2)"])
def test_training_reaches_the_kernel_within(wrap):
    kernel = faiss_ext.kernel_factory(wrap.format("gaussian"))
    assert not kernel.is_trained
    with pytest.raises(RuntimeError, match="train"):
        kernel.gram(histograms())
    kernel.train(histograms(400))
    inner = faiss_ext.kernel_factory("gaussian")
    inner.train(histograms(400))
    assert kernel.is_trained
    assert kernel.description() == wrap.format(inner.description())


# ---------------------------------------------------- descriptions, errors


@pytest.mark.parametrize(
    "string, description",
    [
        ("chi2", "chi2"),
        ("intersection", "intersection"),
        ("js", "js"),
        ("hellinger", "hellinger"),
        ("cosine", "cosine"),
        ("expchi2", "expchi2"),
        ("expchi2(gamma=2)", "expchi2(gamma=2)"),
        ("poly", "poly"),
        ("poly(c=1,degree=3)", "poly"),
        ("poly(c=0.5,degree=2)", "poly(degree=2,c=0.5)"),
        ("normalized(chi2)", "normalized(chi2)"),
        (
            "exponential(normalized(chi2),scale=5)",
            "exponential(normalized(chi2),scale=5)",
        ),
        (
            "exponential(scale=5,normalized(expchi2(gamma=2)))",
            "exponential(normalized(expchi2(gamma=2)),scale=5)",
        ),
    ],
)
@pytest.mark.parametrize(
    "copied",
    [
        lambda kernel: faiss_ext.kernel_factory(kernel.description()),
        lambda kernel: kernel.copy(),
        copy.copy,
        copy.deepcopy,
        lambda kernel: pickle.loads(pickle.dumps(kernel)),
    ],
    ids=["string", "copy()", "copy.copy", "copy.deepcopy", "pickle"],
)
def test_copies_are_the_same_kernel(string, description, copied):
    kernel = faiss_ext.kernel_factory(string)
    assert kernel.description() == description
    twin = copied(kernel)
    assert type(twin) is type(kernel) is not faiss_ext.Kernel
    assert twin is not kernel and twin.description() == description
    for k in (kernel, twin):
        k.train(histograms(200))
    np.testing.assert_array_equal(
        twin.gram(histograms()), kernel.gram(histograms())
    )


@pytest.mark.parametrize(
    "string, make",
    [
        ("chi2", faiss_ext.Chi2Kernel),
        ("intersection", faiss_ext.IntersectionKernel),
        ("js", faiss_ext.JensenShannonKernel),
        ("hellinger", faiss_ext.HellingerKernel),
        ("cosine", faiss_ext.CosineKernel),
        ("expchi2(gamma=0.5)", lambda: faiss_ext.ExpChi2Kernel(0.5)),
        ("poly(degree=2,c=0.5)", lambda: faiss_ext.PolynomialKernel(2, 0.5)),
        (
            "normalized(chi2)",
            lambda: faiss_ext.NormalizedKernel(faiss_ext.Chi2Kernel()),
        ),
        (
            "exponential(cosine,scale=2)",
            lambda: faiss_ext.ExponentialKernel(faiss_ext.CosineKernel(), 2),
        ),
    ],
)
def test_constructor_and_string_make_the_same_kernel(string, make):
    kernel = faiss_ext.kernel_factory(string)
    assert type(kernel) is type(make())
    assert make().description() == kernel.description() == string
    np.testing.assert_array_equal(
        make().gram(histograms()), kernel.gram(histograms())
    )


@pytest.mark.parametrize("bad", [-1e-3, np.nan, np.inf])
@pytest.mark.parametrize(
    "name",
    [
        *ADDITIVE,
        "expchi2(gamma=2)",
        "normalized(js)",
        "exponential(chi2,scale=1)",
    ],
)
def test_what_is_no_histogram_is_named(name, bad):
    x = histograms(40).copy()
    x[17, 5] = bad
    kernel = faiss_ext.kernel_factory(name)
    index = faiss.index_factory(64, f"KFlat({name})")
    hash = faiss_ext.kernel_hash_factory(64, f"KLSH64({name},p=20,t=5)")
    hash.train(histograms(60))
    untrained = faiss_ext.kernel_hash_factory(64, f"KLSH64({name},p=20,t=5)")
    place = "component 5 of vector 17.*histogram"
    for function in (
        lambda: kernel.gram(x),
        lambda: kernel.gram(histograms(), x),
        lambda: index.add(x),
        lambda: index.search(x, 1),
        lambda: hash.encode(x),
        lambda: hash.apply(x),
        lambda: hash.train(x),
        lambda: untrained.train(x),
        lambda: untrained.set_landmarks(x),
    ):
        with pytest.raises(RuntimeError, match=place):
            function()
    assert index.ntotal == 0


def test_signed_vectors_are_fine_for_kernels_of_inner_products():
    x = np.random.default_rng(1).normal(size=(30, 9))
    for name in ("cosine", "poly", "normalized(poly)"):
        values = faiss_ext.kernel_factory(name).gram(x)
        expected = {
            "cosine": cosine_similarity,
            "poly": KERNELS["poly"],
            "normalized(poly)": normalized(KERNELS["poly"]),
        }[name](x, x)
        allowed = 1e-5 * np.abs(expected).max()
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=allowed)


@pytest.mark.parametrize(
    "string",
    [
        "chi2(gamma=1)",
        "expchi2(gamma=0)",
        "expchi2(gamma=-1)",
        "poly(degree=0)",
        "poly(degree=101)",
        "poly(c=-1)",
        "normalized",
        "normalized(foo)",
        "exponential(chi2)",
        "exponential(chi2,scale=0)",
        "exponential(scale=2)",
        "cosine(scale=1)",
    ],
)
def test_strings_that_make_no_kernel_are_refused(string):
    with pytest.raises(RuntimeError) as error:
        faiss_ext.kernel_factory(string)
    message = str(error.value)
    assert f'"{string}"' in message and "^" in message


@pytest.mark.parametrize(
    "make",
    [
        lambda: faiss_ext.ExpChi2Kernel(-1.0),
        lambda: faiss_ext.ExpChi2Kernel(float("nan")),
        lambda: faiss_ext.PolynomialKernel(0, 1.0),
        lambda: faiss_ext.PolynomialKernel(2, -1.0),
        lambda: faiss_ext.ExponentialKernel(faiss_ext.CosineKernel(), 0.0),
    ],
)
def test_parameters_out_of_range_are_refused(make):
    with pytest.raises(RuntimeError, match="expected"):
        make()
