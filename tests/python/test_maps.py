# SPDX-License-Identifier: MIT
"""Kernel PCA (KPCA) and random Fourier features (RFF) from Python: against
scikit-learn, and in front of FAISS's indexes."""

import gc
import pickle

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import BASE, COUNTS, FAILURE, QUERIES, relative_error
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import additive_chi2_kernel, laplacian_kernel, rbf_kernel

LANDMARKS = BASE[:100]


def chi2(x, y):
    """Of histograms that sum to 1, by scikit-learn."""
    return 1 + additive_chi2_kernel(x.astype(float), y.astype(float)) / 2


def intersection(x, y):
    return np.minimum(x[:, None], y[None]).sum(axis=2, dtype=float)


# string of a kernel, an independent one, and as scikit-learn's Nystroem takes it
KERNELS = {
    "chi2": (chi2, {"kernel": lambda a, b: (2 * a * b / np.maximum(a + b, 1e-30)).sum()}),
    "intersection": (intersection, {"kernel": lambda a, b: np.minimum(a, b).sum()}),
    # this library's gamma is twice scikit-learn's
    "gaussian(gamma=200)": (
        lambda x, y: rbf_kernel(x.astype(float), y.astype(float), gamma=100),
        {"kernel": "rbf", "gamma": 100}),
}


def kpca(rank, kernel="chi2", keys="", y=LANDMARKS):
    """Kernel PCA on all of the landmarks given."""
    arguments = ",".join(filter(None, [kernel, f"p={len(y)}", keys]))
    map = faiss_ext.map_factory(y.shape[1], f"KPCA{rank}({arguments})")
    map.train(y)
    return map


def gram(z, w=None):
    z = np.asarray(z, dtype=float)
    return z @ (z if w is None else np.asarray(w, dtype=float)).T


def assert_same_geometry(map, reference):
    """The two maps of the landmarks and of others have the same inner
    products, so that they are alike up to a rotation."""
    x = np.vstack([LANDMARKS, QUERIES])
    assert relative_error(gram(map.apply(x)), gram(reference(x))) <= 1e-3


# --------------------------------------------------------------- kernel PCA

@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("rank, scale", [(1, 0), (8, 3), (40, 0)])
def test_kernel_pca_is_that_of_scikit_learn(kernel, rank, scale):
    def kappa(x, y):
        k = KERNELS[kernel][0](x, y)
        return np.exp(scale * (k - 1)) if scale else k

    map = kpca(rank, kernel, f"scale={scale}")
    assert type(map) is faiss_ext.KernelPCA and map.d_out == rank
    pca = KernelPCA(rank, kernel="precomputed", eigen_solver="dense")
    pca.fit(kappa(LANDMARKS, LANDMARKS))
    eigenvalues = faiss.vector_to_array(map.eigenvalues)
    np.testing.assert_allclose(eigenvalues, pca.eigenvalues_, rtol=1e-4)
    assert_same_geometry(map, lambda x: pca.transform(kappa(x, LANDMARKS)))
    # component by component, up to the sign
    z, expected = map.apply(QUERIES), pca.transform(kappa(QUERIES, LANDMARKS))
    signs = np.sign((z * expected).sum(axis=0))
    # the eigenvectors of the larger eigenvalues are well separated
    assert relative_error((z * signs)[:, :8], expected[:, :8]) <= 1e-2


@pytest.mark.parametrize("kernel", KERNELS)
def test_nystrom_features_are_those_of_scikit_learn(kernel):
    kappa, arguments = KERNELS[kernel]
    map = kpca(100, kernel, "nystrom=1,center=0,normalize=0,tolerance=0")
    reference = Nystroem(**arguments, n_components=100)
    reference.fit(LANDMARKS.astype(float))
    assert_same_geometry(map, lambda x: reference.transform(x.astype(float)))
    # which are exact on the landmarks
    exact = gram(map.apply(LANDMARKS), map.apply(QUERIES))
    assert np.abs(exact - kappa(LANDMARKS, QUERIES)).max() < 1e-3


def test_kernels_are_normalised_unless_told_otherwise():
    y, x = COUNTS[:100], COUNTS[100:200]
    k = additive_chi2_kernel(np.vstack([y, x]).astype(float))
    masses = COUNTS[:200].sum(axis=1, dtype=float)
    k = (masses[:, None] + masses + k) / 2  # sum 2 x y / (x + y)
    for keys, K in (("", k / np.sqrt(np.outer(masses, masses))), ("normalize=0", k)):
        map = kpca(10, "chi2", keys, y)
        pca = KernelPCA(10, kernel="precomputed", eigen_solver="dense")
        pca.fit(K[:100, :100])
        expected = gram(pca.transform(K[100:, :100]))
        assert relative_error(gram(map.apply(x)), expected) < 1e-3


def test_precomputed_rows_have_no_kernel():
    rows = faiss_ext.map_factory(100, "KPCA12(precomputed,scale=2)")
    assert rows.kernel is None and rows.p == rows.d_in == 100
    assert pickle.loads(pickle.dumps(rows)).kernel is None


def landmarks_of(map):
    return faiss.vector_to_array(map.landmarks).reshape(map.p, map.d_in)


def test_any_kernel_has_a_map():
    """A callback's is that of the built-in kernel."""
    kernels = [faiss_ext.CallbackKernel(chi2), faiss_ext.Chi2Kernel()]
    maps = [faiss_ext.KernelPCA(64, 16, kernel) for kernel in kernels]
    del kernels
    gc.collect()
    for map in maps:
        map.p = 80
        map.train(BASE)
    found, expected = (map.apply(QUERIES) for map in maps)
    assert relative_error(gram(found), gram(expected)) < 1e-3
    np.testing.assert_array_equal(landmarks_of(maps[0]), landmarks_of(maps[1]))
    for name in faiss_ext.kernel_names():
        argument = {"exponential": "(cosine,scale=1)", "normalized": "(poly)", "product": "(js,cosine)", "sum": "(chi2,0.5*gaussian)"}
        string = name + argument.get(name, "")
        map = kpca(4, string)
        assert np.isfinite(map.apply(QUERIES)).all()
        k = faiss_ext.kernel_factory(f"normalized({string})")
        k.train(LANDMARKS)
        pca = KernelPCA(4, kernel="precomputed", eigen_solver="dense")
        pca.fit(k.gram(LANDMARKS).astype(float))
        expected = gram(pca.transform(k.gram(QUERIES, LANDMARKS).astype(float)))
        assert relative_error(gram(map.apply(QUERIES)), expected) < 1e-2, name


# --------------------------------------------------- random Fourier features

SHIFT_INVARIANT = {
    # this library's gamma is twice scikit-learn's
    "gaussian,gamma=0.001": lambda x: rbf_kernel(x, gamma=0.0005),
    "laplacian,gamma=0.005": lambda x: laplacian_kernel(x, gamma=0.005),
    "matern,nu=1.5,gamma=0.001": lambda x: Matern(0.001**-0.5, nu=1.5)(x),
}


def hoeffding(npairs, dims):
    """P(|z(x) . z(y) - K| > e) <= 2 exp(-dims e^2 / 4), for all pairs."""
    return np.sqrt(4 * np.log(2 * npairs / FAILURE) / dims)


@pytest.mark.parametrize("kernel", SHIFT_INVARIANT)
@pytest.mark.parametrize("proj", ["dense", ""])
def test_inner_products_are_those_of_scikit_learn(kernel, proj):
    """By default too, where directions are orthogonal and closer by that."""
    dims = 1 << 14
    x = COUNTS[:100]
    keys = f",proj={proj}" if proj else ""
    map = faiss_ext.map_factory(64, f"RFF{dims}({kernel},seed=5{keys})")
    assert type(map) is faiss_ext.RandomFourierMap
    assert map.d_out == map.dims == dims and map.is_trained
    z = map.apply(x)
    assert z.shape == (100, dims) and z.dtype == np.float32
    expected = SHIFT_INVARIANT[kernel](x.astype(float))
    pairs = np.triu_indices(100, 1)
    error = np.abs(gram(z) - expected)[pairs]
    bound = hoeffding(len(error), dims)
    assert error.max() <= bound
    assert bound < 0.1 < np.ptp(expected[pairs]) / 3
    # sharper: the variance of a cosine is at most 1/2
    assert np.sqrt((error**2).mean()) <= 1.5 / np.sqrt(dims)
    np.testing.assert_allclose((z**2).sum(axis=1), 1, atol=1e-5)


def test_constructors_and_strings_make_the_same_map():
    kernel = faiss_ext.GaussianKernel(0.001)
    dense = faiss_ext.ProjectionChoice("dense")
    big = 2**63 - 1
    for map, keys in (
        (faiss_ext.RandomFourierMap(64, 64, kernel), ""),
        (faiss_ext.RandomFourierMap(64, 64, kernel, big), f",seed={big}"),
        (faiss_ext.RandomFourierMap(64, 64, kernel, 7, dense), ",proj=dense,seed=7"),
    ):
        twin = faiss_ext.map_factory(64, f"RFF64(gaussian,gamma=0.001{keys})")
        map.check_identical(twin)
        np.testing.assert_array_equal(map.apply(COUNTS), twin.apply(COUNTS))
        assert map.projection.matrix().shape == (32, 64)


# --------------------------------------------------------- in front of indexes

@pytest.mark.parametrize("map, kernel", [("KPCA32", "js"), ("RFF256", "laplacian")])
def test_indexes_over_maps_find_neighbours_under_the_kernel(map, kernel):
    arguments = kernel + ",p=200" * (map == "KPCA32")
    front = f"{map}({arguments}),IVF16,Flat"
    exact = faiss.index_factory(64, f"KFlat({kernel})")
    exact.train(BASE)
    exact.add(BASE)
    true_D, truth = exact.search(QUERIES, 10)
    # the explicit maps alone are approximations
    for string, least in ((front, 0.6), (f"IDMap2,{front},Refine(KFlat({kernel}))", 0.95)):
        index = faiss.index_factory(64, string)
        index.train(BASE)
        ids = 7 * np.arange(len(BASE)) + 1
        index.add_with_ids(BASE, ids)
        for each in (index, pickle.loads(pickle.dumps(index))):
            part = each
            if "Refine" in string:
                part = each.index
                part.k_factor = 10
                part = part.base_index
            faiss.extract_index_ivf(part).nprobe = 8
            D, I = each.search(QUERIES, 10)
            found = [np.isin(t, i).mean() for t, i in zip(ids[truth], I)]
            assert np.mean(found) > least
    for mine, d, theirs, expected in zip(I, D, truth, true_D):
        _, a, b = np.intersect1d(mine, ids[theirs], return_indices=True)
        np.testing.assert_allclose(d[a], expected[b], atol=1e-6)


# --------------------------------------------------------------- bad input

def test_constructors_refuse_parameters_out_of_range():
    with pytest.raises(RuntimeError, match="rank is 9"):
        faiss_ext.KernelPCA(8, 9, None)
    with pytest.raises(RuntimeError, match="dims is 63"):
        faiss_ext.RandomFourierMap(64, 63, faiss_ext.GaussianKernel(1))
    for kernel in (faiss_ext.Chi2Kernel(), None):
        with pytest.raises((TypeError, ValueError)):
            faiss_ext.RandomFourierMap(64, 64, kernel)


def test_landmarks_are_given_before_training_and_as_vectors():
    rows = faiss_ext.KernelPCA(50, 8, None)
    for map, error in ((kpca(8), "trained"), (rows, "landmarks")):
        with pytest.raises(RuntimeError, match=error):
            map.set_landmarks(BASE[:50, : map.d_in])
