"""Kernel PCA (KPCA) and random Fourier features (RFF) from Python: against
scikit-learn, and in front of FAISS's indexes."""

import copy
import gc
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import (
    additive_chi2_kernel,
    laplacian_kernel,
    rbf_kernel,
)

import faiss
import faiss_ext

# chance that a right map fails one of the statistical tests
FAILURE = 1e-9

COUNTS = load_digits().data
COUNTS = COUNTS[np.random.default_rng(1).permutation(len(COUNTS))]
COUNTS = COUNTS.astype("float32")
X = COUNTS / COUNTS.sum(axis=1, keepdims=True)
BASE, QUERIES = X[200:], X[:200]
LANDMARKS = BASE[:100]
for array in (COUNTS, X, BASE, QUERIES, LANDMARKS):
    array.setflags(write=False)


def chi2(x, y):
    """Of histograms that sum to 1, by scikit-learn."""
    return 1 + additive_chi2_kernel(x.astype(float), y.astype(float)) / 2


def intersection(x, y):
    return np.minimum(x[:, None], y[None]).sum(axis=2, dtype=float)


# string of a kernel, and an independent one
KERNELS = {
    "chi2": chi2,
    "intersection": intersection,
    # this library's gamma is twice scikit-learn's
    "gaussian(gamma=200)": lambda x, y: rbf_kernel(
        x.astype(float), y.astype(float), gamma=100
    ),
}

# as scikit-learn's Nystroem takes them
FOR_NYSTROEM = {
    "chi2": {
        "kernel": lambda a, b: (2 * a * b / np.maximum(a + b, 1e-30)).sum()
    },
    "intersection": {"kernel": lambda a, b: np.minimum(a, b).sum()},
    "gaussian(gamma=200)": {"kernel": "rbf", "gamma": 100},
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


def relative_error(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


def assert_same_geometry(map, reference, allowed=1e-3):
    """The two maps of the landmarks and of others have the same inner
    products, so that they are alike up to a rotation."""
    x = np.vstack([LANDMARKS, QUERIES])
    assert relative_error(gram(map.apply(x)), gram(reference(x))) <= allowed


# --------------------------------------------------------------- kernel PCA


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("rank", [1, 8, 40])
@pytest.mark.parametrize("scale", [0, 3])
def test_kernel_pca_is_that_of_scikit_learn(kernel, rank, scale):
    def kappa(x, y):
        k = KERNELS[kernel](x, y)
        return np.exp(scale * (k - 1)) if scale else k

    map = kpca(rank, kernel, f"scale={scale}")
    assert type(map) is faiss_ext.KernelPCA and map.d_out == rank
    pca = KernelPCA(rank, kernel="precomputed", eigen_solver="dense")
    pca.fit(kappa(LANDMARKS, LANDMARKS))
    np.testing.assert_allclose(
        faiss.vector_to_array(map.eigenvalues), pca.eigenvalues_, rtol=1e-4
    )
    assert_same_geometry(map, lambda x: pca.transform(kappa(x, LANDMARKS)))
    # component by component, up to the sign
    z, expected = map.apply(QUERIES), pca.transform(kappa(QUERIES, LANDMARKS))
    signs = np.sign((z * expected).sum(axis=0))
    # the eigenvectors of the larger eigenvalues are well separated
    assert relative_error((z * signs)[:, :8], expected[:, :8]) <= 1e-2


@pytest.mark.parametrize("kernel", KERNELS)
def test_nystrom_features_are_those_of_scikit_learn(kernel):
    kappa = KERNELS[kernel]
    map = kpca(
        len(LANDMARKS),
        kernel,
        "nystrom=1,center=0,normalize=0,tolerance=0",
    )
    reference = Nystroem(**FOR_NYSTROEM[kernel], n_components=len(LANDMARKS))
    reference.fit(LANDMARKS.astype(float))
    assert_same_geometry(map, lambda x: reference.transform(x.astype(float)))
    # which are exact on the landmarks
    exact = gram(map.apply(LANDMARKS), map.apply(QUERIES))
    assert np.abs(exact - kappa(LANDMARKS, QUERIES)).max() < 1e-3


def test_low_ranks_of_the_nystrom_matrix_are_its_best_approximation():
    """Eckart and Young: of the landmarks, the largest eigenvectors' part."""
    theta, U = np.linalg.eigh(chi2(LANDMARKS, LANDMARKS))
    for rank in (1, 5, 30):
        map = kpca(rank, "chi2", "nystrom=1,center=0")
        top, V = theta[-rank:], U[:, -rank:]
        found = gram(map.apply(LANDMARKS))
        assert relative_error(found, (V * top) @ V.T) < 1e-4
        # and others through them
        z = chi2(QUERIES, LANDMARKS) @ V / np.sqrt(top)
        assert relative_error(gram(map.apply(QUERIES)), gram(z)) < 1e-3


def test_distances_of_landmarks_are_those_in_feature_space():
    map = kpca(99, "chi2", "tolerance=0")
    z = map.apply(LANDMARKS).astype(float)
    squared = ((z[:, None] - z[None]) ** 2).sum(axis=2)
    expected = 2 - 2 * chi2(LANDMARKS, LANDMARKS)
    np.testing.assert_allclose(squared, expected, atol=1e-4)
    # as seen from their mean
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-3)


def test_center_moves_all_vectors_alike():
    moved, plain = (kpca(20, "chi2", f"center={c}") for c in (1, 0))
    difference = plain.apply(QUERIES) - moved.apply(QUERIES)
    np.testing.assert_allclose(
        difference, np.tile(difference[:1], (200, 1)), atol=1e-4
    )
    offset = faiss.vector_to_array(moved.offset)
    np.testing.assert_allclose(difference[0], offset, atol=1e-4)
    assert np.abs(offset).max() > 0.1
    assert not faiss.vector_to_array(plain.offset).any()


def test_kernels_are_normalised_unless_told_otherwise():
    y, x = COUNTS[:100], COUNTS[100:200]
    k = additive_chi2_kernel(np.vstack([y, x]).astype(float))
    masses = COUNTS[:200].sum(axis=1, dtype=float)
    k = (masses[:, None] + masses + k) / 2  # sum 2 x y / (x + y)
    for keys, K in (
        ("", k / np.sqrt(np.outer(masses, masses))),
        ("normalize=0", k),
    ):
        map = kpca(10, "chi2", keys, y)
        pca = KernelPCA(10, kernel="precomputed", eigen_solver="dense")
        pca.fit(K[:100, :100])
        expected = gram(pca.transform(K[100:, :100]))
        assert relative_error(gram(map.apply(x)), expected) < 1e-3


def test_precomputed_rows_are_mapped_as_vectors_are():
    kernel = faiss_ext.Chi2Kernel()
    for keys in ("", "scale=2", "nystrom=1,center=0", "tolerance=0.001"):
        vectors = kpca(12, "chi2", "normalize=0," * bool(keys) + keys)
        arguments = ",".join(filter(None, ["precomputed", keys]))
        rows = faiss_ext.map_factory(100, f"KPCA12({arguments})")
        assert rows.kernel is None and rows.p == rows.d_in == 100
        rows.train(kernel.gram(LANDMARKS[landmark_order(vectors)]))
        values = kernel.gram(QUERIES, LANDMARKS[landmark_order(vectors)])
        found, expected = rows.apply(values), vectors.apply(QUERIES)
        assert relative_error(gram(found), gram(expected)) < 1e-3
        twin = pickle.loads(pickle.dumps(rows))
        assert twin.kernel is None
        np.testing.assert_array_equal(twin.apply(values), found)


def landmark_order(map):
    """Which of LANDMARKS each landmark of a map is."""
    drawn = landmarks_of(map)
    return [int(np.flatnonzero((LANDMARKS == y).all(axis=1))[0]) for y in drawn]


def landmarks_of(map):
    return faiss.vector_to_array(map.landmarks).reshape(map.p, map.d_in)


def test_landmarks_are_drawn_from_the_training_set_or_given():
    x = np.unique(BASE, axis=0)
    rows = {tuple(row) for row in x}
    drawn = []
    for seed in (1, 1, 2):
        map = faiss_ext.map_factory(64, f"KPCA8(chi2,p=50,seed={seed})")
        assert not map.is_trained and map.landmarks.size() == 0
        map.train(x)
        drawn.append([tuple(row) for row in landmarks_of(map)])
        assert len(set(drawn[-1])) == 50 and set(drawn[-1]) <= rows
    assert drawn[0] == drawn[1] and drawn[0] != drawn[2]
    map = faiss_ext.map_factory(64, "KPCA8(chi2,p=50)")
    map.set_landmarks(LANDMARKS[:30])
    assert map.p == 30
    map.train(QUERIES[:1])
    np.testing.assert_array_equal(landmarks_of(map), LANDMARKS[:30])
    expected = kpca(8, y=LANDMARKS[:30])
    assert relative_error(
        gram(map.apply(QUERIES)), gram(expected.apply(QUERIES))
    ) < 1e-4


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
        string = {
            "exponential": "exponential(cosine,scale=1)",
            "normalized": "normalized(poly)",
        }.get(name, name)
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
    "matern,nu=1.5,gamma=0.001": lambda x: Matern(
        length_scale=0.001**-0.5, nu=1.5
    )(x),
}


def hoeffding(npairs, dims):
    """P(|z(x) . z(y) - K| > e) <= 2 exp(-dims e^2 / 4), for all pairs."""
    return np.sqrt(4 * np.log(2 * npairs / FAILURE) / dims)


@pytest.mark.parametrize("kernel", SHIFT_INVARIANT)
@pytest.mark.parametrize("dims", [512, 1 << 14])
@pytest.mark.parametrize("proj", ["dense", ""])
def test_inner_products_are_kernel_values(kernel, dims, proj):
    """By default too, where directions are orthogonal and closer by that."""
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
    if dims == 1 << 14:
        assert bound < 0.1 < np.ptp(expected[pairs]) / 3
    # sharper: the variance of a cosine is at most 1/2
    assert np.sqrt((error**2).mean()) <= 1.5 / np.sqrt(dims)
    np.testing.assert_allclose((z**2).sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("proj", ["structured", "dense"])
def test_features_are_cosines_and_sines_of_the_projections(proj):
    map = faiss_ext.map_factory(
        64, f"RFF96(gaussian,gamma=0.001,proj={proj})"
    )
    A = map.projection.matrix().astype(float)
    assert A.shape == (48, 64) and map.proj.kind == proj
    u = 2 * np.pi * COUNTS[:50] @ A.T
    expected = np.hstack([np.cos(u), np.sin(u)]) * np.sqrt(2 / 96)
    np.testing.assert_allclose(map.apply(COUNTS[:50]), expected, atol=1e-5)
    # omega / 2 pi, omega ~ N(0, gamma I)
    lengths = (2 * np.pi * A) ** 2 / 0.001
    low, high = stats.chi2.ppf([FAILURE / 96, 1 - FAILURE / 96], 64)
    assert low <= lengths.sum(axis=1).min() <= lengths.sum(axis=1).max() <= high


def test_seeds_repeat_and_differ():
    x = COUNTS[:50]

    def mapped(string):
        return faiss_ext.map_factory(64, string).apply(x)

    default = mapped("RFF64(gaussian,gamma=0.001)")
    string = "RFF64(gaussian,gamma=0.001,seed={})"
    np.testing.assert_array_equal(mapped(string.format(1234)), default)
    others = [mapped(string.format(s)) for s in (0, 1, 1235, 2**63 - 1)]
    assert len({z.tobytes() for z in (default, *others)}) == 5
    kernel = faiss_ext.GaussianKernel(0.001)
    direct = faiss_ext.RandomFourierMap(64, 64, kernel)
    np.testing.assert_array_equal(direct.apply(x), default)
    direct = faiss_ext.RandomFourierMap(
        64, 64, kernel, 7, faiss_ext.ProjectionChoice("dense")
    )
    np.testing.assert_array_equal(
        direct.apply(x), mapped("RFF64(gaussian,gamma=0.001,proj=dense,seed=7)")
    )


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "matern"])
def test_a_bandwidth_that_is_left_out_is_set_by_train(kernel):
    map = faiss_ext.map_factory(64, f"RFF64({kernel})")
    assert not map.is_trained and map.projection is None
    with pytest.raises(RuntimeError, match="not trained"):
        map.apply(COUNTS)
    with pytest.raises(RuntimeError, match="bandwidth"):
        map.train(COUNTS[:1])
    assert not map.is_trained and map.projection is None
    map.train(COUNTS)
    expected = faiss_ext.kernel_factory(kernel)
    expected.train(COUNTS)
    assert map.is_trained and map.kernel.gamma == expected.gamma
    given = faiss_ext.map_factory(
        64, f"RFF64({kernel},gamma={expected.gamma!r})"
    )
    z = map.apply(COUNTS)
    np.testing.assert_array_equal(given.apply(COUNTS), z)
    map.train(2 * COUNTS)  # has no effect
    np.testing.assert_array_equal(map.apply(COUNTS), z)


# ---------------------------------------------------------------- all maps

STRINGS = [
    "KPCA16(chi2,p=80)",
    "KPCA16(gaussian,p=80,scale=2,center=0,nystrom=1,seed=3)",
    "KPCA16(poly,p=80,normalize=0,tolerance=0.001)",
    "RFF64(gaussian)",
    "RFF64(laplacian,seed=3)",
    "RFF64(matern,nu=0.7,proj=dense)",
]


def trained(string, x=BASE):
    map = faiss_ext.map_factory(64, string)
    map.train(x)
    return map


def test_maps_are_listed():
    assert set(faiss_ext.map_names()) >= {"HKM", "KPCA", "RFF"}
    assert faiss_ext.map_names() == sorted(faiss_ext.map_names())


@pytest.mark.parametrize("string", STRINGS)
def test_descriptions_make_the_same_map(string):
    for map in (faiss_ext.map_factory(64, string), trained(string)):
        assert isinstance(map, faiss_ext.FeatureMap)
        assert isinstance(map, faiss.VectorTransform)
        again = faiss_ext.map_factory(64, map.description())
        assert type(again) is type(map) and again.d_out == map.d_out
        assert again.description() == map.description()
        again.train(BASE)
        np.testing.assert_array_equal(
            again.apply(QUERIES), trained(string).apply(QUERIES)
        )


@pytest.mark.parametrize("string", STRINGS)
@pytest.mark.parametrize("is_trained", [False, True])
def test_copies_are_the_same_map(string, is_trained, tmp_path):
    map = trained(string) if is_trained else faiss_ext.map_factory(64, string)
    path = str(tmp_path / "map")
    faiss.write_VectorTransform(map, path)
    twins = [
        map.copy(),
        copy.copy(map),
        copy.deepcopy(map),
        pickle.loads(pickle.dumps(map)),
        faiss.read_VectorTransform(path),
    ]
    for twin in twins:
        assert type(twin) is type(map) and twin is not map
        assert twin.is_trained == is_trained
        assert (twin.d_in, twin.d_out) == (64, map.d_out)
        assert twin.description() == map.description()
        map.check_identical(twin)
    map.train(BASE)
    expected = map.apply(QUERIES)
    del map
    gc.collect()
    for twin in twins:
        twin.train(BASE)
        np.testing.assert_array_equal(twin.apply(QUERIES), expected)
    other = trained(string)
    other.check_identical(twins[0])
    different = trained(string, x=BASE[:900])
    with pytest.raises(RuntimeError):
        different.check_identical(twins[0])


@pytest.mark.parametrize("string", STRINGS)
def test_parts_outlive_their_map(string):
    map = trained(string)
    kernel, description = map.kernel, map.kernel.description()
    projection = getattr(map, "projection", None)
    matrix = projection.matrix() if projection else None
    del map
    gc.collect()
    trained(string)  # may take its place
    assert kernel.description() == description
    if projection:
        np.testing.assert_array_equal(projection.matrix(), matrix)


@given(
    string=st.sampled_from(STRINGS),
    cuts=st.lists(st.integers(0, 200), max_size=5),
    threads=st.integers(1, 4),
)
@settings(deadline=None, derandomize=True, max_examples=30)
def test_results_depend_on_neither_batches_nor_threads(string, cuts, threads):
    expected = trained(string).apply(QUERIES)
    ends = sorted([0, *cuts, 200])
    before = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(threads)
        map = trained(string)
        parts = [QUERIES[a:b] for a, b in zip(ends, ends[1:])]
        found = np.vstack([map.apply(part) for part in parts])
        np.testing.assert_array_equal(found, expected)
    finally:
        faiss.omp_set_num_threads(before)


@pytest.mark.parametrize("string", STRINGS)
def test_arrays_of_any_type_and_layout(string):
    map = trained(string)
    x = np.round(QUERIES[:9] * 100)
    expected = map.apply(x)
    for other in (
        x.astype("float64"),
        x.astype("uint8"),
        np.asfortranarray(x),
        np.repeat(x, 2, axis=1)[:, ::2],
    ):
        np.testing.assert_array_equal(map.apply(other), expected)
    assert map.apply(np.zeros((0, 64))).shape == (0, map.d_out)


# --------------------------------------------------------- in front of indexes

# an index, and the kernel that it finds the neighbours of
INDEXES = {
    "KPCA64(chi2,p=300),Flat": "chi2",
    "KPCA64(chi2,p=300),IVF16,Flat,Refine(KFlat(chi2))": "chi2",
    "KPCA32(intersection,p=200),PQ8,Refine(KFlat(intersection))": "intersection",
    "KPCA32(chi2,p=200),HNSW16,Refine(KFlat(chi2))": "chi2",
    "IDMap2,KPCA32(js,p=200),IVF16,PQ8,Refine(KFlat(js))": "js",
    "RFF512(gaussian),Flat": "gaussian",
    "RFF512(gaussian),IVF16,Flat,Refine(KFlat(gaussian))": "gaussian",
    "RFF256(gaussian),PQ16,Refine(KFlat(gaussian))": "gaussian",
    "RFF256(laplacian),HNSW16,Refine(KFlat(laplacian))": "laplacian",
    "IDMap2,RFF256(matern),IVF16,PQ16,Refine(KFlat(matern))": "matern",
}


def inner(index):
    while not isinstance(index, faiss.IndexPreTransform):
        index = faiss.downcast_index(
            index.index if hasattr(index, "id_map") else index.base_index
        )
    return index


def train(index, x):
    """Without FAISS's polysemous ordering of the codes of product quantisers,
    which takes most of a minute and changes no distance."""
    innermost = faiss.downcast_index(inner(index).index)
    if hasattr(innermost, "do_polysemous_training"):
        innermost.do_polysemous_training = False
    index.train(x)


@pytest.mark.parametrize("string", INDEXES)
def test_indexes_over_maps_find_neighbours_under_the_kernel(string, tmp_path):
    index = faiss.index_factory(64, string)
    path = str(tmp_path / "index")
    faiss.write_index(index, path)  # untrained
    index = faiss.read_index(path)
    assert not index.is_trained
    train(index, BASE)
    ids = np.arange(len(BASE))
    if "IDMap" in string:
        ids = 7 * ids + 1
        index.add_with_ids(BASE, ids)
    else:
        index.add(BASE)
    refine = index.index if hasattr(index, "id_map") else index
    if "Refine" in string:
        refine = faiss.downcast_index(refine)
        refine.k_factor = 10
    if "IVF" in string:
        faiss.extract_index_ivf(inner(index)).nprobe = 8
    D, I = index.search(QUERIES, 10)

    kernel = INDEXES[string]
    exact = faiss.index_factory(64, f"KFlat({kernel})")
    exact.train(BASE)
    exact.add(BASE)
    true_D, truth = exact.search(QUERIES, 10)
    found = np.mean(
        [len(np.intersect1d(a, ids[b])) / 10 for a, b in zip(I, truth)]
    )
    # the explicit maps alone are approximations
    assert found > (0.95 if "Refine" in string else 0.6), found
    if "Refine" in string:
        for mine, d, theirs, expected in zip(I, D, truth, true_D):
            _, a, b = np.intersect1d(mine, ids[theirs], return_indices=True)
            np.testing.assert_allclose(d[a], expected[b], atol=1e-6)

    faiss.write_index(index, path)
    for twin in (
        faiss.read_index(path),
        faiss.deserialize_index(faiss.serialize_index(index)),
        faiss.clone_index(index),
        copy.deepcopy(index),
        pickle.loads(pickle.dumps(index)),
    ):
        assert type(twin) is type(index) and twin.ntotal == len(BASE)
        if "Refine" in string:
            part = twin.index if hasattr(twin, "id_map") else twin
            faiss.downcast_index(part).k_factor = 10
        if "IVF" in string:
            faiss.extract_index_ivf(inner(twin)).nprobe = 8
        for a, b in zip(twin.search(QUERIES, 10), (D, I)):
            np.testing.assert_array_equal(a, b)
        assert twin.search(BASE[:1], 1)[1][0, 0] in ids


def test_inner_products_of_maps_rank_as_the_kernel_does():
    index = faiss.index_factory(
        64, "RFF2048(gaussian),Flat", faiss.METRIC_INNER_PRODUCT
    )
    index.train(BASE)
    index.add(BASE)
    map = index.chain.at(0)
    kernel = faiss.downcast_VectorTransform(map).kernel
    D, I = index.search(QUERIES, 5)
    values = np.take_along_axis(kernel.gram(QUERIES, BASE), I, axis=1)
    assert np.abs(D - values).max() <= hoeffding(D.size, 2048)


# --------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "string, position, accepted",
    [
        ("KPCA16", 6, "chi2"),
        ("KPCA16()", 7, "expected an argument"),
        ("KPCA16(chi3)", 7, "chi2, cosine"),
        ("KPCA0(chi2)", 4, "1 to 300"),
        ("KPCA(chi2)", 10, "rank="),
        ("KPCA301(chi2)", 4, "1 to 300"),
        ("KPCA16(chi2,p=15)", 4, "1 to 15"),
        ("KPCA16(chi2,p=1)", 14, "2 to 8192"),
        ("KPCA16(chi2,p=8193)", 14, "2 to 8192"),
        ("KPCA16(chi2,rank=8)", 12, "given twice"),
        ("KPCA16(chi2,p=20,p=30)", 17, "given twice"),
        ("KPCA16(chi2,scale=auto)", 18, "a number"),
        ("KPCA16(chi2,scale=-1)", 18, "a number"),
        ("KPCA16(chi2,nystrom=2)", 20, "0, 1"),
        ("KPCA16(chi2,center=yes)", 19, "0, 1"),
        ("KPCA16(chi2,tolerance=1)", 22, "0 to 0.999"),
        ("KPCA16(chi2,seed=-1)", 17, "an integer"),
        ("KPCA16(chi2,t=3)", 12, "tolerance="),
        ("KPCA16(precomputed,p=3)", 21, "64"),
        ("RFF64", 5, "gaussian, laplacian, matern"),
        ("RFF63(gaussian)", 3, "even"),
        ("RFF0(gaussian)", 3, "an integer from 2"),
        ("RFF(gaussian)", 13, "dims="),
        ("RFF64(chi2)", 6, "gaussian, laplacian, matern"),
        ("RFF64(gaussian,dims=64)", 15, "given twice"),
        ("RFF64(gaussian,gamma=0)", 21, "a number"),
        ("RFF64(gaussian,proj=bilinear)", 20, "structured, dense"),
        ("RFF64(laplacian,proj=structured)", 21, "dense"),
        ("XYZ64(chi2)", 0, "HKM"),
        ("", 0, "HKM"),
    ],
)
def test_errors_in_strings_quote_mark_and_help(string, position, accepted):
    messages = []
    with pytest.raises(RuntimeError) as error:
        faiss_ext.map_factory(64, string)
    messages.append(str(error.value))
    # of an index: only what starts as ours is not FAISS's
    if string.startswith(("KPCA", "RFF")):
        for module in (faiss, faiss_ext):
            with pytest.raises(RuntimeError) as error:
                module.index_factory(64, string + ",Flat")
            messages.append(str(error.value))
    for message in messages:
        assert f'"{string}' in message and accepted in message
        quoted, marker = message.splitlines()[1:3]
        assert quoted.startswith("  " + string)
        assert marker == "  " + " " * position + "^"


def test_a_map_alone_is_no_index():
    for string in ("KPCA16(chi2)", "RFF64(gaussian)"):
        with pytest.raises(RuntimeError, match=",Flat") as error:
            faiss.index_factory(64, string)
        assert str(error.value).splitlines()[1:3] == [
            "  " + string,
            "  " + " " * len(string) + "^",
        ]


@pytest.mark.parametrize("string", STRINGS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e39])
def test_numbers_that_are_not_finite_are_named(string, bad):
    x = QUERIES.astype(float)
    x[17, 5] = bad
    map, fresh = trained(string), faiss_ext.map_factory(64, string)
    index = faiss.index_factory(64, string + ",Flat")
    index.train(BASE)
    for function in (map.apply, fresh.train, index.add):
        with pytest.raises(RuntimeError, match="component 5 of vector 17"):
            function(x)
    with pytest.raises(RuntimeError, match="component 5 of vector 17"):
        index.search(x, 1)
    assert not fresh.is_trained and index.ntotal == 0
    # it is as it was
    fresh.train(BASE)
    np.testing.assert_array_equal(fresh.apply(QUERIES), map.apply(QUERIES))


def test_what_is_no_histogram_is_named():
    map = trained("KPCA16(chi2,p=80)")
    fresh = faiss_ext.map_factory(64, "KPCA16(chi2,p=80)")
    x = QUERIES.copy()
    x[3, 2] = -1e-3
    for function in (map.apply, fresh.train, fresh.set_landmarks):
        with pytest.raises(RuntimeError, match="component 2 of vector 3.*histog"):
            function(x)
    assert fresh.landmarks.size() == 0 and fresh.p == 80


@pytest.mark.parametrize("string", STRINGS)
@pytest.mark.parametrize("shape", [(64,), (3, 63), (3, 65), (1, 3, 64), ()])
def test_arrays_of_a_wrong_shape_are_refused(string, shape):
    map = trained(string)
    methods = [map.apply, faiss_ext.map_factory(64, string).train]
    if "KPCA" in string:
        methods.append(faiss_ext.map_factory(64, string).set_landmarks)
    for method in methods:
        with pytest.raises(ValueError, match=r"shape \(n, 64\)"):
            method(np.zeros(shape))
        with pytest.raises(TypeError, match="numbers"):
            method(np.full((3, 64), "a"))


@pytest.mark.parametrize(
    "string, x, message",
    [
        ("KPCA16(chi2,p=80)", BASE[:79], "79 .* 80"),
        ("KPCA80(chi2,p=80)", BASE, "80 .*rank 79"),
        ("KPCA16(chi2,p=80)", np.tile(BASE[:9], (20, 1)), "16 .*rank [78]"),
        ("KPCA16(chi2,p=80)", np.tile(BASE[:1], (99, 1)), "the same"),
        ("KPCA16(precomputed)", np.eye(64)[:63], "63 .*64 x 64"),
        ("KPCA16(precomputed)", np.tri(64), r"symmetric.*\(1, 0\)"),
        ("KPCA16(precomputed)", np.diag([1, -1] * 32), "semi-definite"),
        ("RFF64(gaussian)", BASE[:1], "at least 2"),
        ("RFF64(gaussian)", np.ones((10, 64)), "the same"),
    ],
)
def test_training_that_fails_changes_nothing(string, x, message):
    map = faiss_ext.map_factory(64, string)
    description = map.description()
    with pytest.raises(RuntimeError, match=message):
        map.train(x)
    assert not map.is_trained and map.description() == description
    with pytest.raises(RuntimeError, match="not trained"):
        map.apply(QUERIES)
    if "precomputed" in string:
        map.train(np.eye(64))
        assert map.apply(np.eye(64)).shape == (64, 16)
    elif "KPCA80" not in string:
        map.train(BASE)
        np.testing.assert_array_equal(
            map.apply(QUERIES), trained(string).apply(QUERIES)
        )


def test_constructors_refuse_parameters_out_of_range():
    chi2_kernel, gaussian = faiss_ext.Chi2Kernel(), faiss_ext.GaussianKernel(1)
    for make, named in (
        (lambda: faiss_ext.KernelPCA(64, 0, chi2_kernel), "rank is 0"),
        (lambda: faiss_ext.KernelPCA(64, -1, chi2_kernel), "rank is -1"),
        (lambda: faiss_ext.KernelPCA(64, 8193, chi2_kernel), "8193"),
        (lambda: faiss_ext.KernelPCA(0, 8, chi2_kernel), "dimension is 0"),
        (lambda: faiss_ext.KernelPCA(8, 9, None), "rank is 9"),
        (lambda: faiss_ext.RandomFourierMap(64, 63, gaussian), "dims is 63"),
        (lambda: faiss_ext.RandomFourierMap(64, 0, gaussian), "dims is 0"),
        (lambda: faiss_ext.RandomFourierMap(0, 64, gaussian), "dimension is 0"),
        (lambda: faiss_ext.RandomFourierMap(64, 64, gaussian, -1), "seed is -1"),
    ):
        with pytest.raises(RuntimeError, match=named):
            make()
    for kernel in (chi2_kernel, None):
        with pytest.raises((TypeError, ValueError)):
            faiss_ext.RandomFourierMap(64, 64, kernel)


def test_parameters_out_of_range_are_refused_and_leave_the_old_value():
    map = faiss_ext.map_factory(64, "KPCA16(chi2,p=80,seed=3)")
    for name, bad, good in (
        ("p", 1, 90),
        ("p", 8193, 90),
        ("p", 15, 90),  # rank is 16
        ("scale", -1.0, 2.0),
        ("scale", float("nan"), 2.0),
        ("tolerance", 1.0, 0.01),
        ("seed", -1, 4),
    ):
        before = getattr(map, name)
        with pytest.raises(ValueError, match=name):
            setattr(map, name, bad)
        assert getattr(map, name) == before
        setattr(map, name, good)
        assert getattr(map, name) == good
    map.nystrom, map.center, map.normalize = True, False, False
    map.train(BASE)
    same = trained(
        "KPCA16(chi2,p=90,scale=2,tolerance=0.01,seed=4,nystrom=1,center=0,"
        "normalize=0)"
    )
    np.testing.assert_array_equal(map.apply(QUERIES), same.apply(QUERIES))
    for name in ("p", "scale", "seed", "center"):
        with pytest.raises(AttributeError, match=f"{name}.*no effect"):
            setattr(map, name, 1)
    with pytest.raises(RuntimeError, match="trained"):
        map.set_landmarks(BASE[:20])
    with pytest.raises(RuntimeError, match="landmarks"):
        faiss_ext.KernelPCA(50, 8, None).set_landmarks(BASE[:50, :50])
    rff = faiss_ext.map_factory(64, "RFF64(gaussian)")
    for name in ("dims", "kernel", "proj", "projection"):
        with pytest.raises(AttributeError, match=name):
            setattr(rff, name, getattr(rff, name))


def test_too_few_landmarks_for_the_rank():
    map = faiss_ext.map_factory(64, "KPCA16(chi2,p=80)")
    map.set_landmarks(BASE[:10])
    with pytest.raises(RuntimeError, match="16.* 10"):
        map.train(BASE)
    assert not map.is_trained
