# SPDX-License-Identifier: MIT
"""Kernels against scikit-learn, and the bandwidth they take from data."""

import copy
import ctypes
import pickle
import subprocess
import sys

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import CONVERSIONS
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import (
    euclidean_distances, laplacian_kernel, linear_kernel, manhattan_distances,
    rbf_kernel)
from sklearn.neighbors import NearestNeighbors

# string of a kernel at some gamma, and scikit-learn's value of it
REFERENCES = {
    "gaussian": lambda x, y, gamma: rbf_kernel(x, y, gamma=gamma / 2),
    "laplacian": lambda x, y, gamma: laplacian_kernel(x, y, gamma=gamma),
    **{
        f"matern(nu={nu})": lambda x, y, gamma, nu=nu: Matern(
            length_scale=gamma**-0.5, nu=nu
        )(x, y)
        for nu in (0.1, 0.5, 0.7, 1.5, 2.5, 3.3, 20.0)},
}


def made(name, gamma=0.001):
    """The kernel of a name in REFERENCES."""
    front = name[:-1] + "," if name.endswith(")") else name + "("
    return faiss_ext.kernel_factory(f"{front}gamma={gamma!r})")


def as_double(digits):
    """Some digits, for references in double precision."""
    return digits.queries[:50].astype(float), digits.base[:300].astype(float)


# ---------------------------------------------------------------- values

@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("gamma", [1e-4, 1e-2])
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
    values = faiss_ext.LinearKernel().gram(signed, y)
    # relative to the sum of the absolute terms
    allowed = 1e-4 * linear_kernel(np.abs(signed), y)
    assert (np.abs(values - linear_kernel(signed, y)) <= allowed).all()


def test_calls_and_shapes(digits):
    kernel = made("gaussian")
    x, nothing = digits.queries[:5], np.zeros((0, 64))
    gram = kernel.gram(x)
    np.testing.assert_array_equal(gram, kernel.gram(x, x))
    assert kernel(x[1], x[3]) == gram[1, 3]
    assert kernel.gram(nothing).shape == (0, 0)
    assert kernel.gram(nothing, x).shape == (0, 5)
    assert kernel.gram(x, nothing).shape == (5, 0)


@pytest.mark.parametrize("convert", CONVERSIONS.values(), ids=CONVERSIONS)
def test_gram_takes_arrays_of_any_type_and_layout(digits, convert):
    kernel = made("gaussian")
    x, y = digits.queries[:5], digits.base[:6]
    np.testing.assert_array_equal(
        kernel.gram(convert(x), convert(y)), kernel.gram(x, y))


# ----------------------------------------------------- objects in Python

@pytest.mark.parametrize("string, make", [
    ("gaussian(gamma=0.5)", lambda: faiss_ext.GaussianKernel(gamma=0.5)),
    ("laplacian(gamma=0.5)", lambda: faiss_ext.LaplacianKernel(0.5)),
    ("matern(gamma=0.5,nu=3)", lambda: faiss_ext.MaternKernel(nu=3, gamma=0.5)),
    ("linear", faiss_ext.LinearKernel),
    ("chi2", faiss_ext.Chi2Kernel),
    ("intersection", faiss_ext.IntersectionKernel),
    ("js", faiss_ext.JensenShannonKernel),
    ("jaccard", faiss_ext.JaccardKernel),
    ("dice", faiss_ext.DiceKernel),
    ("hellinger", faiss_ext.HellingerKernel),
    ("cosine", faiss_ext.CosineKernel),
    ("expchi2(gamma=0.5)", lambda: faiss_ext.ExpChi2Kernel(0.5)),
    ("poly(degree=2,c=0.5)", lambda: faiss_ext.PolynomialKernel(2, c=0.5)),
    ("exponential(normalized(chi2),scale=2)",
     lambda: faiss_ext.ExponentialKernel(
         faiss_ext.NormalizedKernel(faiss_ext.Chi2Kernel()), 2)),
    ("sum(chi2,0.5*gaussian(gamma=0.5))",
     lambda: faiss_ext.SumKernel(
         [faiss_ext.Chi2Kernel(), faiss_ext.GaussianKernel(gamma=0.5)], weights=[1, 0.5])),
    ("product(chi2,cosine)",
     lambda: faiss_ext.ProductKernel([faiss_ext.Chi2Kernel(), faiss_ext.CosineKernel()]))])
def test_constructors_strings_copies_and_pickles_make_the_same_kernel(
    digits, string, make):
    kernel = faiss_ext.kernel_factory(string)
    assert isinstance(kernel, faiss_ext.Kernel)
    shift_invariant = string.startswith(("gaussian", "laplacian", "matern"))
    assert shift_invariant == isinstance(kernel, faiss_ext.ShiftInvariantKernel)
    assert kernel.description() == string
    assert repr(kernel) == f"<faiss_ext kernel {string}>"
    x = digits.queries[:9] / 64
    copies = [kernel.copy(), copy.copy(kernel), copy.deepcopy(kernel)]
    for twin in [make(), *copies, pickle.loads(pickle.dumps(kernel))]:
        assert type(twin) is type(kernel) is not faiss_ext.Kernel
        assert twin.description() == string
        np.testing.assert_array_equal(twin.gram(x), kernel.gram(x))


def test_errors_of_sums_and_products():
    chi2 = faiss_ext.Chi2Kernel()
    with pytest.raises(ValueError, match="at least one kernel"):
        faiss_ext.SumKernel([])
    with pytest.raises(TypeError, match="SumKernel: expected a sequence of kernels, got None"):
        faiss_ext.SumKernel(None)
    with pytest.raises(ValueError, match="2 kernels and 1 weights"):
        faiss_ext.SumKernel([chi2, chi2], weights=[1])
    with pytest.raises(RuntimeError, match="weight is -1"):
        faiss_ext.SumKernel([chi2], [-1])
    with pytest.raises(TypeError, match="ProductKernel: expected kernels, got 'chi2'"):
        faiss_ext.ProductKernel([chi2, "chi2"])


def test_the_bandwidth_for_a_hamming_radius(digits):
    """As in docs/kernels.md: 2 bits are expected at the distance R, over 300 draws of the hash."""
    x = digits.base[:1]
    R, h, draws = 20.0, 2, 300
    for bits in (32, 256):
        u = faiss_ext.kernel_hash_factory(64, f"SIK{bits}(gaussian,gamma=1)").kernel_estimate(h)
        y = x + R / 8  # each of 64 components
        kernel = faiss_ext.GaussianKernel(-2 * np.log(u) / R**2)
        assert kernel(x[0], y[0]) == pytest.approx(u, rel=1e-5)
        differing = []
        for seed in range(draws):
            hash = faiss_ext.kernel_hash_factory(
                64, f"SIK{bits}(gaussian,gamma={kernel.gamma!r},seed={seed},proj=dense)")
            differing.append(np.unpackbits(hash.encode(x) ^ hash.encode(y)).sum())
        # the variance of a sum of independent bits is at most its mean; by Chernoff's bound
        assert abs(np.mean(differing) - h) < 6 * np.sqrt(h / draws)


def test_a_file_has_the_name_of_a_function(digits, tmp_path):
    def overlap(X, Y):
        return np.minimum(X[:, None], Y[None]).sum(axis=2)

    kernel = faiss_ext.CallbackKernel(overlap, name="overlap")
    assert kernel.name == "overlap"
    index = faiss_ext.IndexFlatKernel(64, faiss_ext.SumKernel([kernel, faiss_ext.Chi2Kernel()]))
    index.add(digits.base[:50])
    expected = index.search(digits.queries[:5], 3)
    path = str(tmp_path / "overlap.index")
    faiss.write_index(index, path)
    del kernel, index  # the name stays known
    for found, wanted in zip(faiss.read_index(path).search(digits.queries[:5], 3), expected):
        np.testing.assert_array_equal(found, wanted)
    elsewhere = f"""
import faiss, faiss_ext
try:
    faiss.read_index({path!r})
except RuntimeError as error:
    assert "the function 'overlap'" in str(error), error
    faiss_ext.CallbackKernel(lambda X, Y: X @ Y.T, "overlap")
    print(faiss.read_index({path!r}).ntotal)
"""
    result = subprocess.run([sys.executable, "-c", elsewhere], capture_output=True, text=True)
    assert result.stdout == "50\n", result.stderr
    bare = faiss_ext.IndexFlatKernel(64, faiss_ext.CallbackKernel(overlap))
    with pytest.raises(RuntimeError, match="without a name"):
        faiss.serialize_index(bare)
    for wrong in ("", 3):
        with pytest.raises(TypeError, match="expected a name"):
            faiss_ext.CallbackKernel(overlap, name=wrong)


# --------------------------------------------------------------- bandwidth

@pytest.mark.parametrize("name", ["gaussian", "laplacian", "matern"])
def test_auto_bandwidth_is_the_mean_distance_of_the_50th_neighbour(digits, name):
    x = digits.base[:900]  # fewer than the protocol samples: all are queries
    metric = "l1" if name == "laplacian" else "l2"
    # the first of the 51 is the vector itself
    each = NearestNeighbors(n_neighbors=51, metric=metric).fit(x).kneighbors(x)
    for neighbor in (1, 7, 50):
        found = faiss_ext.mean_neighbor_distance(x, metric, neighbor=neighbor)
        assert found == pytest.approx(each[0][:, neighbor].mean(), rel=1e-6)
    # too few: the farthest, of 0 by 3, of 1 by 2, of 3 by 3
    few = np.float32([[0], [1], [3]])
    assert faiss_ext.mean_neighbor_distance(few) == pytest.approx(8 / 3)
    with pytest.raises(ValueError, match="'l1' or 'l2'"):
        faiss_ext.mean_neighbor_distance(x, "l3")
    kernel = faiss_ext.kernel_factory(name)
    assert not kernel.is_trained
    for factor in (1, 2):  # what is trained stays
        kernel.train(factor * x)
        radius = each[0][:, 50].mean()
        gamma = 1 / radius if name == "laplacian" else 1 / radius**2
        assert kernel.is_trained
        assert kernel.gamma == pytest.approx(gamma, rel=1e-6)


def test_training_says_what_it_chose_if_verbose(digits, capfd):
    for verbose in (False, True):
        kernel = faiss_ext.kernel_factory("gaussian")
        kernel.verbose = verbose
        kernel.train(digits.base)
        ctypes.CDLL(None).fflush(None)  # C's own buffer
        assert ("gamma" in capfd.readouterr().out) == verbose


# ------------------------------------------------------------------ errors

def with_one(bad):
    x = np.zeros((5, 4))
    x[3, 2] = bad
    return x


ZEROS = np.zeros((2, 4))


@pytest.mark.parametrize("arguments, error, names", [
    ([with_one(np.nan)], RuntimeError, "component 2 of vector 3"),
    ([ZEROS, with_one(-np.inf)], RuntimeError, "component 2 of vector 3"),
    ([with_one(1e39), ZEROS], RuntimeError, "component 2 of vector 3"),
    ([np.zeros(4)], ValueError, "shape"),
    ([np.zeros((2, 3, 4))], ValueError, "shape"),
    ([np.float32(1)], ValueError, "shape"),
    ([ZEROS, np.zeros((2, 5))], ValueError, "shape"),
    ([ZEROS, np.zeros(4)], ValueError, "shape"),
    ([[["a", "b"]]], TypeError, "numbers"),
    ([np.ones((1, 2), complex)], TypeError, "numbers"),
    ([np.ones((1, 2), object)], TypeError, "numbers")])
def test_gram_refuses_what_is_no_array_of_vectors(arguments, error, names):
    with pytest.raises(error, match=names):
        made("gaussian").gram(*arguments)


def test_a_call_takes_two_trained_vectors_of_the_same_length():
    kernel = made("gaussian")
    for x, y in ((np.zeros(4), np.zeros(5)), (ZEROS[:1], ZEROS[:1])):
        with pytest.raises(ValueError, match="two vectors"):
            kernel(x, y)
    with pytest.raises(RuntimeError, match="component 2"):
        kernel(ZEROS[0], with_one(np.nan)[3])
    with pytest.raises(RuntimeError, match="train"):
        faiss_ext.kernel_factory("gaussian")(ZEROS[0], ZEROS[0])
