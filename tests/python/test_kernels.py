"""Kernels against scikit-learn, and the bandwidth they take from data."""

import copy
import ctypes
import pickle
from functools import partial

import numpy as np
import pytest
from scipy.special import gamma as gamma_function
from scipy.special import gammaln, kv
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import (
    euclidean_distances,
    laplacian_kernel,
    linear_kernel,
    manhattan_distances,
    rbf_kernel,
)
from sklearn.neighbors import NearestNeighbors

import faiss_ext

NUS = [0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 2.5, 3.3, 20.0]

# string of a kernel at some gamma, and scikit-learn's value of it
REFERENCES = {
    "gaussian": lambda x, y, gamma: rbf_kernel(x, y, gamma=gamma / 2),
    "laplacian": lambda x, y, gamma: laplacian_kernel(x, y, gamma=gamma),
    **{
        f"matern(nu={nu})": lambda x, y, gamma, nu=nu: Matern(
            length_scale=gamma**-0.5, nu=nu
        )(x, y)
        for nu in NUS
    },
}
KERNELS = [*REFERENCES, "linear"]


def with_gamma(name, gamma):
    if name.startswith("matern"):
        return f"{name[:-1]},gamma={gamma!r})"
    return f"{name}(gamma={gamma!r})"


def made(name, gamma=0.001):
    """A kernel of a name in KERNELS that needs no training."""
    return faiss_ext.kernel_factory(
        name if name == "linear" else with_gamma(name, gamma)
    )


def as_double(digits):
    """Some digits, for references in double precision."""
    return digits.queries[:50].astype(float), digits.base[:300].astype(float)


# ---------------------------------------------------------------- values


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("gamma", [1e-4, 1e-3, 1e-2])
def test_gram_equals_scikit_learn(digits, name, gamma):
    x, y = as_double(digits)
    expected = REFERENCES[name](x, y, gamma)
    values = made(name, gamma).gram(x, y)

    assert values.dtype == np.float32 and values.shape == (50, 300)
    if name == "laplacian":
        r = gamma * manhattan_distances(x, y)
    else:
        r = gamma * euclidean_distances(x, y) ** 2
    near, far = r <= 1, (r > 1) & (expected > 1e-25)
    assert near.any() or far.any()
    assert np.abs(values - expected)[near].max(initial=0) <= 1e-6
    relative = np.abs(values - expected) / expected
    assert relative[far].max(initial=0) <= 1e-5
    assert np.abs(values - expected).max() <= 1e-5


def test_linear_gram_equals_scikit_learn(digits):
    x, y = as_double(digits)
    signed = x - x.mean()
    values = made("linear").gram(signed, y)
    # relative to the sum of the absolute terms
    allowed = 1e-4 * linear_kernel(np.abs(signed), y)
    assert (np.abs(values - linear_kernel(signed, y)) <= allowed).all()


@pytest.mark.parametrize("name", KERNELS)
def test_call_is_one_value_of_the_gram_matrix(digits, name):
    kernel = made(name)
    x, y = digits.queries[:5], digits.base[:7]
    gram = kernel.gram(x, y)
    for i in range(len(x)):
        for j in range(len(y)):
            assert kernel(x[i], y[j]) == gram[i, j]


@pytest.mark.parametrize("name", KERNELS)
def test_values_do_not_depend_on_the_block(digits, name):
    kernel = made(name)
    x, y = digits.queries[:30], digits.base[:40]
    gram = kernel.gram(x, y)
    np.testing.assert_array_equal(kernel.gram(y, x), gram.T)
    np.testing.assert_array_equal(kernel.gram(x[7:19], y[3:]), gram[7:19, 3:])


@pytest.mark.parametrize("name", KERNELS)
def test_gram_of_one_argument_is_symmetric_and_positive_semidefinite(
    digits, name
):
    x = digits.base[:200]
    gram = made(name).gram(x)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_array_equal(gram, made(name).gram(x, x))
    if name != "linear":
        assert (np.diag(gram) == 1).all()
    eigenvalues = np.linalg.eigvalsh(gram.astype(float))
    assert eigenvalues[0] >= -1e-6 * eigenvalues[-1]


def one_minus_matern(nu, r):
    """1 - K without cancellation: K is the mean of exp(-r^2 / (2 g)) over the
    gamma distribution of shape and rate nu, here with g = exp(t)."""
    t = np.linspace(-500, 8, 200_001)
    density = np.exp(nu * (np.log(nu) + t - np.exp(t)) - gammaln(nu))
    sums = [density @ -np.expm1(-q / 2 / np.exp(t)) for q in r**2]
    return np.array(sums) * (t[1] - t[0])


ONE_MINUS = {
    "gaussian": lambda r: -np.expm1(-(r**2) / 2),
    "laplacian": lambda r: -np.expm1(-r),
    **{f"matern(nu={nu})": partial(one_minus_matern, nu) for nu in NUS},
}


@pytest.mark.parametrize("name", ONE_MINUS)
def test_a_vector_is_its_own_nearest_neighbour(digits, name):
    index = faiss_ext.IndexFlatKernel(64, made(name))
    index.add(digits.base[:100])
    D, I = index.search(digits.base[:100], 1)
    np.testing.assert_array_equal(I[:, 0], np.arange(100))
    assert (D == 0).all()


@pytest.mark.parametrize("name", ONE_MINUS)
def test_distances_of_close_vectors_are_exact(name):
    # the reference is right where nothing cancels
    if name.startswith("matern"):
        nu, r = float(name[10:-1]), np.array([0.5, 1, 2])
        z = np.sqrt(2 * nu) * r
        k = 2 ** (1 - nu) / gamma_function(nu) * z**nu * kv(nu, z)
        np.testing.assert_allclose(ONE_MINUS[name](r), 1 - k, rtol=1e-10)

    index = faiss_ext.IndexFlatKernel(3, made(name, 1.0))
    r = np.float32([0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-9])
    index.add(np.outer(r, np.eye(3)[1]))
    D, I = index.search(np.zeros((1, 3)), len(r))
    np.testing.assert_array_equal(I[0], np.arange(len(r))[::-1])
    expected = 2 * ONE_MINUS[name](r.astype(float))
    np.testing.assert_allclose(D[0], expected[::-1], rtol=1e-5)


@pytest.mark.parametrize("name", KERNELS)
def test_no_vectors_give_empty_matrices(name):
    kernel = made(name)
    nothing, x = np.zeros((0, 4)), np.zeros((3, 4))
    assert kernel.gram(nothing).shape == (0, 0)
    assert kernel.gram(nothing, x).shape == (0, 3)
    assert kernel.gram(x, nothing).shape == (3, 0)


@pytest.mark.parametrize(
    "convert",
    [
        lambda x: x.astype("float64"),
        lambda x: x.astype("int16"),
        lambda x: x.astype("uint8"),
        lambda x: np.asfortranarray(x),
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: np.repeat(x, 2, axis=0)[::2],
        lambda x: x[::-1].copy()[::-1],
        lambda x: x.tolist(),
    ],
)
def test_gram_takes_arrays_of_any_type_and_layout(digits, convert):
    kernel = made("gaussian")
    x, y = digits.queries[:5], digits.base[:6]
    expected = kernel.gram(x, y)
    np.testing.assert_array_equal(
        kernel.gram(convert(x), convert(y)), expected
    )


# ------------------------------------------------- descriptions and copies


@pytest.mark.parametrize(
    "string, description",
    [
        ("gaussian", "gaussian"),
        ("gaussian(gamma=auto)", "gaussian"),
        ("gaussian(gamma=0.5)", "gaussian(gamma=0.5)"),
        ("gaussian(gamma=5e-1)", "gaussian(gamma=0.5)"),
        ("laplacian", "laplacian"),
        ("laplacian(gamma=2)", "laplacian(gamma=2)"),
        ("matern", "matern"),
        ("matern(nu=1.5,gamma=0.1)", "matern(gamma=0.1)"),
        ("matern(nu=2.5)", "matern(nu=2.5)"),
        ("matern(nu=0.7,gamma=3)", "matern(gamma=3,nu=0.7)"),
        ("linear", "linear"),
    ],
)
def test_description_is_the_string_of_the_same_kernel(string, description):
    kernel = faiss_ext.kernel_factory(string)
    assert kernel.description() == description
    assert repr(kernel) == f"<faiss_ext kernel {description}>"
    again = faiss_ext.kernel_factory(description)
    assert type(again) is type(kernel)
    assert again.description() == description


@pytest.mark.parametrize(
    "name, make",
    [
        ("gaussian(gamma=0.5)", lambda: faiss_ext.GaussianKernel(0.5)),
        ("laplacian(gamma=0.5)", lambda: faiss_ext.LaplacianKernel(0.5)),
        ("matern(gamma=0.5,nu=3)", lambda: faiss_ext.MaternKernel(3, 0.5)),
        ("linear", faiss_ext.LinearKernel),
    ],
)
def test_constructor_and_string_make_the_same_kernel(name, make):
    kernel = faiss_ext.kernel_factory(name)
    assert type(kernel) is type(make())
    assert kernel.description() == make().description() == name
    assert isinstance(kernel, faiss_ext.Kernel)
    shift_invariant = isinstance(kernel, faiss_ext.ShiftInvariantKernel)
    assert shift_invariant == (name != "linear")


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(
    "copied",
    [
        lambda kernel: kernel.copy(),
        copy.copy,
        copy.deepcopy,
        lambda kernel: pickle.loads(pickle.dumps(kernel)),
    ],
    ids=["copy()", "copy.copy", "copy.deepcopy", "pickle"],
)
def test_copies_give_the_same_values(digits, name, copied):
    kernel = faiss_ext.kernel_factory(name)
    untrained = copied(kernel)
    assert untrained.is_trained == kernel.is_trained == (name == "linear")
    kernel.train(digits.base)
    twin = copied(kernel)
    assert type(twin) is type(kernel) and twin is not kernel
    assert twin.is_trained
    assert twin.description() == kernel.description()
    expected = kernel.gram(digits.queries)
    del kernel
    np.testing.assert_array_equal(twin.gram(digits.queries), expected)
    assert untrained.is_trained == (name == "linear")


# --------------------------------------------------------------- bandwidth


@pytest.mark.parametrize("name", ["gaussian", "laplacian", "matern"])
def test_auto_bandwidth_is_the_mean_distance_of_the_50th_neighbour(
    digits, name
):
    x = digits.base[:900]  # fewer than the protocol samples: all are queries
    metric = "l1" if name == "laplacian" else "l2"
    # the first of the 51 is the vector itself
    neighbors = NearestNeighbors(n_neighbors=51, metric=metric).fit(x)
    radius = neighbors.kneighbors(x)[0][:, 50].mean()

    assert faiss_ext.mean_neighbor_distance(x, metric) == pytest.approx(
        radius, rel=1e-6
    )
    kernel = faiss_ext.kernel_factory(name)
    assert not kernel.is_trained
    kernel.train(x)
    assert kernel.is_trained
    gamma = 1 / radius if name == "laplacian" else 1 / radius**2
    assert kernel.gamma == pytest.approx(gamma, rel=1e-6)


def test_auto_bandwidth_samples_queries_from_large_sets(digits):
    x = digits.base
    radius = faiss_ext.mean_neighbor_distance(x, max_queries=len(x))
    neighbors = NearestNeighbors(n_neighbors=51).fit(x)
    each = neighbors.kneighbors(x)[0][:, 50]
    assert radius == pytest.approx(each.mean(), rel=1e-6)
    # 100 queries without replacement: five standard errors
    sampled = [
        faiss_ext.mean_neighbor_distance(x, max_queries=100, seed=seed)
        for seed in (1, 1, 2)
    ]
    assert sampled[0] == sampled[1] != sampled[2]
    for value in sampled:
        assert abs(value - radius) < 5 * each.std() / np.sqrt(100)


@pytest.mark.parametrize("neighbor", [1, 7, 50])
def test_mean_neighbor_distance_counts_the_neighbour_asked_for(
    digits, neighbor
):
    x = digits.base[:300]
    neighbors = NearestNeighbors(n_neighbors=neighbor + 1).fit(x)
    expected = neighbors.kneighbors(x)[0][:, neighbor].mean()
    assert faiss_ext.mean_neighbor_distance(
        x, neighbor=neighbor
    ) == pytest.approx(expected, rel=1e-6)


def test_the_farthest_counts_where_there_are_too_few_vectors():
    x = np.float32([[0], [1], [3]])
    # farthest from 0: 3, from 1: 2, from 3: 3
    assert faiss_ext.mean_neighbor_distance(x) == pytest.approx(8 / 3)
    kernel = faiss_ext.kernel_factory("laplacian")
    kernel.train(x)
    assert kernel.gamma == pytest.approx(3 / 8)


def test_a_given_bandwidth_is_not_trained(digits):
    kernel = faiss_ext.kernel_factory("gaussian(gamma=0.5)")
    kernel.train(digits.base)
    assert kernel.gamma == 0.5 and not kernel.auto_gamma


def test_what_is_trained_stays(digits):
    kernel = faiss_ext.kernel_factory("gaussian")
    kernel.train(digits.base)
    gamma = kernel.gamma
    kernel.train(2 * digits.base)
    assert kernel.gamma == gamma


# ------------------------------------------------------------------ errors


def test_an_untrained_kernel_asks_for_training(digits):
    kernel = faiss_ext.kernel_factory("gaussian")
    with pytest.raises(RuntimeError, match="call train"):
        kernel.gram(digits.queries)
    with pytest.raises(RuntimeError, match="call train"):
        kernel(digits.queries[0], digits.queries[1])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39])
def test_numbers_that_are_not_finite_floats_are_named(bad):
    kernel = made("gaussian")
    x = np.zeros((5, 4))
    y = x.copy()
    y[3, 2] = bad
    for arguments in [(y,), (x, y), (y, x)]:
        with pytest.raises(RuntimeError, match="component 2 of vector 3"):
            kernel.gram(*arguments)
    with pytest.raises(RuntimeError, match="component 2 of vector 0"):
        kernel(x[3], y[3])
    auto = faiss_ext.kernel_factory("gaussian")
    with pytest.raises(RuntimeError, match="component 2 of vector 3"):
        auto.train(y)
    assert not auto.is_trained


@pytest.mark.parametrize(
    "x, y",
    [
        (np.zeros(4), None),
        (np.zeros((2, 3, 4)), None),
        (np.float32(1), None),
        (np.zeros((2, 4)), np.zeros((2, 5))),
        (np.zeros((2, 4)), np.zeros(4)),
    ],
)
def test_arrays_of_a_wrong_shape_are_refused(x, y):
    with pytest.raises(ValueError, match="expected an array of shape"):
        made("gaussian").gram(x, y)


@pytest.mark.parametrize(
    "x, y", [(np.zeros(4), np.zeros(5)), (np.zeros((1, 4)), np.zeros((1, 4)))]
)
def test_call_takes_two_vectors_of_the_same_length(x, y):
    with pytest.raises(ValueError, match="two vectors of the same length"):
        made("gaussian")(x, y)


@pytest.mark.parametrize(
    "x", [[["a", "b"]], np.ones((1, 2), complex), np.ones((1, 2), object)]
)
def test_what_is_no_real_number_is_refused(x):
    with pytest.raises(TypeError, match="expected numbers"):
        made("gaussian").gram(x)


def test_bandwidth_cannot_come_from_too_little_data():
    for n in (0, 1):
        kernel = faiss_ext.kernel_factory("gaussian")
        with pytest.raises(RuntimeError, match="at least 2"):
            kernel.train(np.zeros((n, 4)))
        assert not kernel.is_trained
    with pytest.raises(RuntimeError, match="all the same"):
        kernel.train(np.ones((10, 4)))
    assert not kernel.is_trained
    with pytest.raises(ValueError, match="'l1' or 'l2'"):
        faiss_ext.mean_neighbor_distance(np.zeros((4, 4)), "l3")


@pytest.mark.parametrize(
    "string, position, accepted",
    [
        ("gausian", 0, "chi2, cosine, expchi2, exponential, gaussian"),
        ("gaussian(gamma=x)", 15, "a number"),
        ("gaussian(gamma=-1)", 15, "a number"),
        ("gaussian(gamma=0)", 15, "a number"),
        ("gaussian(gamma=nan)", 15, "a number"),
        ("gaussian(gama=1)", 9, "gamma="),
        ("gaussian(gamma=1,gamma=2)", 17, "given twice"),
        ("matern(nu=0)", 10, "0.1 to 20"),
        ("matern(nu=21)", 10, "0.1 to 20"),
        ("linear(gamma=1)", 7, "no argument"),
        ("gaussian(", 8, "without"),
        ("gaussian)", 8, "unexpected"),
        ("gaussian()", 9, "expected an argument"),
        ("", 0, "expected a name"),
    ],
)
def test_errors_in_strings_quote_mark_and_help(string, position, accepted):
    with pytest.raises(RuntimeError) as error:
        faiss_ext.kernel_factory(string)
    message = str(error.value)
    assert f'"{string}"' in message and accepted in message
    quoted, marker = message.splitlines()[1:3]
    assert quoted == "  " + string
    assert marker == "  " + " " * position + "^"


@pytest.mark.parametrize(
    "make",
    [
        lambda: faiss_ext.GaussianKernel(-1),
        lambda: faiss_ext.LaplacianKernel(float("inf")),
        lambda: faiss_ext.GaussianKernel(float("nan")),
        lambda: faiss_ext.MaternKernel(0.0, 1),
        lambda: faiss_ext.MaternKernel(100, 1),
    ],
)
def test_constructors_refuse_parameters_out_of_range(make):
    with pytest.raises(RuntimeError, match="expected"):
        make()


def test_training_says_what_it_chose_if_verbose(digits, capfd):
    kernel = faiss_ext.kernel_factory("gaussian")
    kernel.train(digits.base)
    assert capfd.readouterr().out == ""
    kernel = faiss_ext.kernel_factory("gaussian")
    kernel.verbose = True
    kernel.train(digits.base)
    ctypes.CDLL(None).fflush(None)  # C's own buffer
    assert "gamma" in capfd.readouterr().out
