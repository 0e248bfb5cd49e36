# SPDX-License-Identifier: MIT
"""faiss_ext.sklearn: scikit-learn's checks, and its own estimators as references."""

import contextlib
import copy
import doctest
import importlib
import pickle

import faiss
import numpy as np
import pytest
from scipy.sparse import csgraph, csr_matrix
from sklearn import cluster
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import chi2_kernel, pairwise_distances, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import (
    KNeighborsClassifier, KNeighborsTransformer, NearestNeighbors, RadiusNeighborsTransformer)
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import faiss_ext.sklearn
from faiss_ext.sklearn import KernelNeighbors, KernelNeighborsTransformer
from helpers import BASE, COUNTS, QUERIES

# integers, whose squared distances float32 holds
TRAIN, TEST = COUNTS[:500], COUNTS[500:600]
LINEAR = "KFlat(linear)"
REFINED = "SIK256(gaussian),BFlat,Refine(KFlat(gaussian))"


@parametrize_with_checks([
    KernelNeighbors(), KernelNeighborsTransformer(),
    KernelNeighbors("KFlat(linear,store=sparse)"),
    KernelNeighborsTransformer("KFlat(linear,store=sparse)")])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_examples_of_the_documentation():
    results = doctest.testmod(faiss_ext.sklearn)
    assert results.attempted > 20 and results.failed == 0


def test_scikit_learn_is_optional(run_python):
    run_python("""
import sys
import faiss_ext
assert "sklearn" not in sys.modules
sys.modules["sklearn"] = None
try:
    import faiss_ext.sklearn
except ImportError as error:
    assert "needs scikit-learn" in str(error)
else:
    raise AssertionError
""")


# ---------------------------------------------------- beside NearestNeighbors

@pytest.fixture(scope="module")
def pair():
    """The same under the Euclidean distance, ours and scikit-learn's."""
    return (
        KernelNeighbors(LINEAR, n_neighbors=7, radius=25.0).fit(TRAIN),
        NearestNeighbors(n_neighbors=7, radius=25.0, algorithm="brute").fit(TRAIN))


def assert_same_neighbors(found, expected, queries):
    """The same distances, and neighbours that have them: ties may be in any
    order."""
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
    assert found[0].dtype == expected[0].dtype and found[1].dtype == expected[1].dtype
    differences = queries[:, None].astype("float64") - TRAIN[found[1]]
    np.testing.assert_allclose(found[0], np.linalg.norm(differences, axis=2), rtol=1e-6)
    assert all(len(set(row)) == len(row) for row in found[1])


@pytest.mark.parametrize("k", [None, 1, 20])
def test_kneighbors(pair, k):
    ours, theirs = pair
    assert_same_neighbors(ours.kneighbors(TEST, k), theirs.kneighbors(TEST, k), TEST)
    found = ours.kneighbors(n_neighbors=k)
    assert_same_neighbors(found, theirs.kneighbors(n_neighbors=k), TRAIN)
    assert not (found[1] == np.arange(len(TRAIN))[:, None]).any()
    only = ours.kneighbors(TEST, k, return_distance=False)
    np.testing.assert_array_equal(only, ours.kneighbors(TEST, k)[1])


def test_radius_neighbors(pair):
    ours, theirs = pair
    for x in (TEST, None):
        found = ours.radius_neighbors(x, sort_results=True)
        expected = theirs.radius_neighbors(x, sort_results=True)
        assert found[0].dtype == found[1].dtype == object
        assert found[0].shape == found[1].shape == expected[0].shape
        sizes = set(map(len, found[0]))
        assert min(sizes) == 0 and len(sizes) > 10
        for row in range(len(found[0])):
            np.testing.assert_allclose(found[0][row], expected[0][row], rtol=1e-6)
            assert set(found[1][row]) == set(expected[1][row])
        only = ours.radius_neighbors(x, return_distance=False)
        assert all(set(a) == set(b) for a, b in zip(only, found[1]))


def test_the_radius_itself_is_within():
    neighbors = KernelNeighbors(LINEAR).fit([[0], [3], [5]])
    for radius, expected in ((3, [0, 1]), (2.99, [0]), (0, [0]), (np.inf, [0, 1, 2]),
                             (1e200, [0, 1, 2])):
        (found,) = neighbors.radius_neighbors([[0]], radius, return_distance=False)
        assert sorted(found) == expected
    neighbors = KernelNeighbors("SIK64(gaussian),BFlat").fit(TRAIN)
    distances, _ = neighbors.kneighbors(TEST[:1], 9)  # roots of Hamming distances
    (found,), _ = neighbors.radius_neighbors(TEST[:1], distances[0, -1], sort_results=True)
    np.testing.assert_array_equal(found[:9], distances[0])
    assert set(found[9:]) <= {distances[0, -1]}


def test_a_radius_of_0_is_no_denormal():
    """A processor that flushes denormals would take it for 0, within which FAISS
    finds nothing."""
    neighbors = KernelNeighbors(LINEAR).fit([[0], [3], [5]])
    radii, search = [], neighbors.index_.range_search
    neighbors.index_.range_search = lambda x, radius: radii.append(radius) or search(x, radius)
    neighbors.radius_neighbors([[3]], 0)
    assert radii == [np.finfo("float32").tiny]


def test_what_was_fitted_does_not_change_with_the_callers_array():
    x = TRAIN.copy()
    neighbors = KernelNeighbors(LINEAR, n_neighbors=3).fit(x)
    before = neighbors.kneighbors()
    x *= 100
    np.testing.assert_array_equal(neighbors.kneighbors(), before)


@pytest.mark.parametrize("string", ["KFlat(gaussian(gamma=0.001))", "SIK128(gaussian(gamma=0.001)),BFlat"])
@pytest.mark.parametrize("the_class", [KernelNeighbors, KernelNeighborsTransformer])
def test_batches_give_what_one_fit_gives(string, the_class):
    whole = the_class(string, n_neighbors=4).fit(TRAIN)
    parts = the_class(string, n_neighbors=4)
    for begin, end in ((0, 200), (200, 201), (201, 500)):
        assert parts.partial_fit(TRAIN[begin:end]) is parts
        assert parts.n_samples_fit_ == parts.index_.ntotal == end
    for x in (None, TEST):
        for a, b in zip(parts.kneighbors(x), whole.kneighbors(x)):
            np.testing.assert_array_equal(a, b)
    assert parts.transform(TEST).shape == (len(TEST), 500)
    assert len(parts.get_feature_names_out()) == 500
    for other in (pickle.loads(pickle.dumps(parts)), copy.deepcopy(parts)):
        np.testing.assert_array_equal(other.partial_fit(TEST).kneighbors(TEST, 1)[1], parts.partial_fit(TEST).kneighbors(TEST, 1)[1])
        assert other.n_samples_fit_ == 600
        parts = the_class(string, n_neighbors=4).fit(TRAIN)
    assert clone(parts).partial_fit(TEST).n_samples_fit_ == len(TEST)


def test_only_the_first_batch_trains():
    string = "AHK128(chi2,center=1),BFlat,Refine(KFlat(chi2))"
    neighbors = KernelNeighbors(string, parameters={"k_factor": 3}).partial_fit(TRAIN[:200]).partial_fit(TRAIN[200:])
    index = faiss.index_factory(TRAIN.shape[1], string)
    index.train(TRAIN[:200])
    index.add(TRAIN)
    index.k_factor = 3
    np.testing.assert_array_equal(neighbors.kneighbors(TEST)[1], index.search(TEST, 5)[1])


def test_a_batch_that_fails_changes_nothing():
    neighbors = KernelNeighbors("KFlat(chi2)", n_neighbors=3).fit(BASE[:50])
    before = neighbors.kneighbors()
    wrong = BASE[50:60].copy()
    wrong[3, 2] = -1
    for batch, error in ((wrong, RuntimeError), (BASE[:2, :5], ValueError), (np.full((2, 64), np.nan), ValueError), (BASE[:0], ValueError)):
        with pytest.raises(error):
            neighbors.partial_fit(batch)
    assert neighbors.n_samples_fit_ == neighbors.index_.ntotal == 50
    np.testing.assert_array_equal(neighbors.kneighbors(), before)
    batch = BASE[50:60].copy()
    neighbors.partial_fit(batch)
    before = neighbors.kneighbors()
    batch *= 100  # the estimator has a copy
    np.testing.assert_array_equal(neighbors.kneighbors(), before)


def test_masked_values_are_refused():
    masked = np.ma.array(TEST[:3], mask=np.zeros_like(TEST[:3], bool))
    neighbors = KernelNeighbors(LINEAR, n_neighbors=3).fit(TRAIN)
    neighbors.kneighbors(masked)
    masked[0, 0] = np.ma.masked
    for call in (neighbors.kneighbors, neighbors.fit):
        with pytest.raises(ValueError, match="without masked values"):
            call(masked)


@pytest.mark.parametrize("scalar", [np.uint8, np.int32, np.int64, np.array])
def test_numbers_of_neighbors_of_numpy(scalar):
    for X in (None, TEST[:3]):
        neighbors = KernelNeighbors(LINEAR, n_neighbors=scalar(255)).fit(TRAIN)
        expected = KernelNeighbors(LINEAR, n_neighbors=255).fit(TRAIN).kneighbors(X)
        np.testing.assert_array_equal(neighbors.kneighbors(X), expected)
        np.testing.assert_array_equal(neighbors.kneighbors(X, scalar(255)), expected)
    graph = KernelNeighborsTransformer(LINEAR, n_neighbors=scalar(255)).fit_transform(TRAIN)
    assert graph.nnz == 256 * len(TRAIN)
    neighbors.radius_neighbors(TEST[:3], scalar(3))


@pytest.mark.parametrize("mode", ["connectivity", "distance"])
def test_graphs(pair, mode):
    ours, theirs = pair
    for x in (TEST, None):
        found = ours.radius_neighbors_graph(x, mode=mode)
        expected = theirs.radius_neighbors_graph(x, mode=mode)
        assert found.format == "csr" and found.dtype == expected.dtype
        np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=1e-6)
        found = ours.kneighbors_graph(x, 4, mode)
        expected = theirs.kneighbors_graph(x, 4, mode)
        assert found.format == "csr" and found.shape == expected.shape
        np.testing.assert_array_equal(found.indptr, expected.indptr)
        np.testing.assert_allclose(found.data, expected.data, rtol=1e-6)
        _, indices = ours.kneighbors(x, 4)
        np.testing.assert_array_equal(found.indices, indices.ravel())


def test_copies_of_a_vector_are_its_neighbors():
    x = np.repeat(TRAIN[:3], 4, axis=0)
    distances, indices = KernelNeighbors(LINEAR, n_neighbors=3).fit(x).kneighbors()
    np.testing.assert_array_equal(distances, 0)
    assert not (indices == np.arange(12)[:, None]).any()
    np.testing.assert_array_equal(indices // 4, np.repeat(range(3), 4)[:, None] + [0] * 3)
    # more copies than are asked for: each is near, and none is the vector itself
    _, indices = KernelNeighbors(LINEAR).fit(x).kneighbors(n_neighbors=1)
    assert not (indices == np.arange(12)[:, None]).any()


# ------------------------------------------------------------- under kernels

def test_distances_of_kernels_by_brute_force():
    gamma = 1e-3

    def chi2(x, y):  # additive: sum of 2 x y / (x + y)
        total = x[:, None] + y[None]
        return (2 * x[:, None] * y[None] / np.where(total > 0, total, 1)).sum(axis=2)

    for string, kernel, x, q in (
            ("KFlat(chi2)", chi2, BASE[:300], QUERIES[:50]),
            # gamma is twice that of scikit-learn
            (f"KFlat(gaussian(gamma={gamma}))", lambda a, b: rbf_kernel(a, b, gamma / 2),
             TRAIN, TEST),
            ("KFlat(expchi2(gamma=2))", lambda a, b: chi2_kernel(a, b, 1 / 2),
             BASE[:300], QUERIES[:50])):
        x, q = x.astype("float64"), q.astype("float64")
        own = [np.diag(kernel(a, a)) for a in (q, x)]
        squared = own[0][:, None] + own[1][None] - 2 * kernel(q, x)
        expected = np.sqrt(np.maximum(squared, 0))
        neighbors = KernelNeighbors(string, n_neighbors=5).fit(x)
        distances, indices = neighbors.kneighbors(q)
        np.testing.assert_allclose(distances, np.sort(expected)[:, :5], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(
            distances, np.take_along_axis(expected, indices, 1), rtol=1e-4, atol=1e-4)
        radius = np.median(expected)
        counts = [len(row) for row in neighbors.radius_neighbors(q, radius)[1]]
        slack = 1e-4
        assert ((expected <= radius - slack).sum(axis=1) <= counts).all()
        assert (counts <= (expected <= radius + slack).sum(axis=1)).all()


def test_approximate_indexes():
    exact = KernelNeighbors().fit(TRAIN)
    rough, fine = (
        KernelNeighbors(REFINED, parameters={"k_factor": factor}).fit(TRAIN)
        for factor in (1, 20))
    expected = exact.kneighbors(TEST)

    def recall(neighbors):
        found = neighbors.kneighbors(TEST, return_distance=False)
        return np.mean([len(set(a) & set(b)) / 5 for a, b in zip(found, expected[1])])

    assert recall(rough) < recall(fine)
    assert recall(fine) > 0.95
    indices = fine.kneighbors(return_distance=False)
    assert not (indices == np.arange(len(TRAIN))[:, None]).any()


def test_a_vector_that_does_not_find_itself():
    """The nearest of the others are kept, and rounding below zero is zero."""
    neighbors = KernelNeighbors(LINEAR, n_neighbors=2).fit(TRAIN[:3])
    squared = np.array([[-1e-7, 1, 4], [-0.0, 1, 4], [1, 4, 3e38]], dtype="float32")
    indices = np.array([[0, 1, 2], [2, 1, 0], [0, 1, -1]])
    neighbors.index_ = faiss.IndexFlatL2(64)
    neighbors.index_.search = lambda x, k: (squared, indices)
    found = neighbors.kneighbors()
    np.testing.assert_array_equal(found[0], [[1, 2], [0, 2], [1, 2]])
    np.testing.assert_array_equal(found[1], [[1, 2], [2, 0], [0, 1]])
    indices[2] = 0, 2, -1
    with pytest.raises(RuntimeError, match="fewer than 2 neighbours for 1 of 3"):
        neighbors.kneighbors()
    squared, indices = squared[:2], indices[:2]
    distances, _ = neighbors.kneighbors(TEST[:2], 3)
    assert not np.isnan(distances).any() and not np.signbit(distances).any()


# ----------------------------------------------------------------- pipelines

def test_transformer_is_scikit_learns():
    for mode, more in (("distance", 1), ("connectivity", 0)):
        ours = KernelNeighborsTransformer(LINEAR, n_neighbors=4, mode=mode)
        theirs = KNeighborsTransformer(n_neighbors=4, mode=mode, algorithm="brute")
        found, expected = ours.fit_transform(TRAIN), theirs.fit_transform(TRAIN)
        assert found.shape == expected.shape and found.nnz == len(TRAIN) * (4 + more)
        np.testing.assert_allclose(found.data, expected.data, rtol=1e-6)
        # each vector is among its neighbours
        row = np.repeat(np.arange(len(TRAIN)), 4 + more)
        assert (found.indices == row).sum() == len(TRAIN)
        assert ours.transform(TEST).shape == (len(TEST), len(TRAIN))
        names = ours.get_feature_names_out()
        assert len(names) == len(TRAIN) and names[1] == "kernelneighborstransformer1"


def test_neighbors_are_a_transformer_too():
    neighbors = KernelNeighbors(LINEAR, n_neighbors=4)
    for found, x in ((neighbors.fit_transform(TRAIN), TRAIN), (neighbors.transform(TEST), TEST)):
        expected = neighbors.kneighbors_graph(x, mode="distance")
        assert found.format == "csr" and found.shape == (len(x), len(TRAIN))
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        theirs = NearestNeighbors(n_neighbors=4, algorithm="brute").fit(TRAIN)
        np.testing.assert_allclose(
            found.data, theirs.kneighbors_graph(x, mode="distance").data, rtol=1e-6)
    names = neighbors.get_feature_names_out()
    assert len(names) == len(TRAIN) and names[1] == "kernelneighbors1"


def test_classifier_behind_the_transformer():
    x, y = load_digits(return_X_y=True)
    # under a Gaussian kernel the order of neighbours is the Euclidean one, but
    # for rounding
    for string, differ in ((LINEAR, 0), ("KFlat(gaussian)", 0.005)):
        ours, theirs = (
            make_pipeline(transformer, KNeighborsClassifier(5, metric="precomputed"))
            .fit(x[:1000], y[:1000]).predict(x[1000:])
            for transformer in (
                KernelNeighborsTransformer(string),
                KNeighborsTransformer(algorithm="brute")))
        assert np.mean(ours != theirs) <= differ
    pipeline = make_pipeline(
        KernelNeighborsTransformer(REFINED), KNeighborsClassifier(3, metric="precomputed"))
    grid = {"kernelneighborstransformer__parameters": [{"k_factor": 1}, {"k_factor": 8}]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(x[:400], y[:400])
    assert search.best_score_ > 0.8


def test_embeddings():
    graph = KernelNeighborsTransformer(n_neighbors=40).fit_transform(TRAIN[:150])
    tsne = TSNE(metric="precomputed", init="random", perplexity=10, random_state=0)
    embedded = tsne.fit_transform(graph)
    assert embedded.shape == (150, 2) and np.isfinite(embedded).all()


def test_umap():
    umap = pytest.importorskip("umap")
    transformer = KernelNeighborsTransformer().fit(TRAIN[:150])
    distances, indices = transformer.kneighbors(TRAIN[:150], n_neighbors=10)
    embedded = umap.UMAP(
        n_neighbors=10, precomputed_knn=(indices, distances), n_epochs=20, random_state=0
    ).fit_transform(TRAIN[:150])
    assert embedded.shape == (150, 2) and np.isfinite(embedded).all()


def hdbscan_classes():
    found = [getattr(cluster, "HDBSCAN", None)]  # from scikit-learn 1.3 on
    with contextlib.suppress(ImportError):
        found.append(importlib.import_module("hdbscan").HDBSCAN)
    return [c for c in found if c is not None]


def groups_of_points():
    """Three groups that are far apart, one with 30 equal points."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(c, 1, (100, 3)) for c in (5, 50, 200)]).astype("float32")
    x[10:40] = x[10]
    return x


def test_hdbscan():
    """The clusters of all distances. Equal points and gaps between groups are what it refuses in other graphs."""
    classes = hdbscan_classes()
    if not classes:
        pytest.skip("needs scikit-learn 1.3 or hdbscan")
    x = groups_of_points()
    for the_class in classes:
        expected = the_class(metric="precomputed", min_cluster_size=10).fit_predict(pairwise_distances(x.astype("float64")))
        pipeline = make_pipeline(
            KernelNeighborsTransformer(LINEAR, n_neighbors=30, symmetric=True, connected=True),
            the_class(metric="precomputed", min_cluster_size=10))
        assert adjusted_rand_score(pipeline.fit_predict(x), expected) == 1 and len(set(expected)) >= 3


def test_dbscan_of_a_radius():
    x = groups_of_points()
    expected = cluster.DBSCAN(eps=1.5).fit_predict(x)
    graph = KernelNeighborsTransformer(LINEAR, radius=1.5, symmetric=True)
    found = make_pipeline(graph, cluster.DBSCAN(eps=1.5, metric="precomputed")).fit_predict(x)
    np.testing.assert_array_equal(found, expected)


def test_umap_of_a_symmetric_graph():
    """It takes the same neighbours as a search, and new vectors come to vectors of their class."""
    umap = pytest.importorskip("umap")
    pipeline = make_pipeline(
        KernelNeighborsTransformer("KFlat(chi2)", n_neighbors=15, symmetric=True),
        umap.UMAP(metric="precomputed", n_neighbors=15, n_epochs=100, random_state=0))
    x, y = load_digits(return_X_y=True)
    embedded = pipeline.fit_transform(x[:1000])
    distances, _ = pipeline[0].kneighbors(x[:1000], 15)
    np.testing.assert_allclose(pipeline[1]._knn_dists, distances, atol=1e-5)
    classifier = KNeighborsClassifier(5).fit(embedded, y[:1000])
    assert classifier.score(pipeline.transform(x[1000:1300]), y[1000:1300]) > 0.7


# ------------------------------------------------------------------- graphs

def edges_of(graph):
    """The stored edges, also of weight 0."""
    coo = graph.tocoo()
    return dict(zip(zip(coo.row.tolist(), coo.col.tolist()), coo.data.tolist()))


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
@pytest.mark.parametrize("settings", [{"n_neighbors": 4}, {"radius": 22.0}])
def test_symmetric_graphs(mode, settings):
    """The edges of the plain graph, both ways, and each vector as its own neighbour."""
    x = TRAIN[:150].copy()
    x[60:63] = x[0]
    plain, symmetric = (KernelNeighborsTransformer(LINEAR, mode=mode, symmetric=s, **settings) for s in (False, True))
    expected = {}
    for (i, j), weight in edges_of(plain.fit_transform(x)).items():
        if i != j:
            for edge in ((i, j), (j, i)):
                expected[edge] = min(weight, expected.get(edge, np.inf))
    itself = 0 if mode == "distance" else 1
    graph = symmetric.fit_transform(x)
    found = edges_of(graph)
    assert found == {**expected, **{(i, i): itself for i in range(150)}}
    assert all((np.diff(row.data) >= 0).all() for row in graph)
    assert (symmetric.transform(TEST) != plain.transform(TEST)).nnz == 0


def test_the_graph_of_a_radius_is_scikit_learns():
    ours = KernelNeighborsTransformer(LINEAR, radius=22.0)
    theirs = RadiusNeighborsTransformer(radius=22.0, algorithm="brute")
    for x in (TRAIN, TEST):
        found, expected = ours.fit(TRAIN).transform(x), theirs.fit(TRAIN).transform(x)
        assert found.nnz == expected.nnz and abs(found - expected).max() < 1e-4


def test_parts_are_joined_by_their_shortest_edges():
    x = np.array([[0], [1], [1.5], [10], [11], [12], [30], [31], [32]], "float32")
    transformer = KernelNeighborsTransformer(LINEAR, n_neighbors=1, symmetric=True)
    before = edges_of(transformer.fit_transform(x))
    after = edges_of(transformer.set_params(connected=True).fit_transform(x))
    assert before.items() <= after.items()
    assert {e: w for e, w in after.items() if e not in before and e[0] < e[1]} == {(2, 3): 8.5, (5, 6): 18}
    x = groups_of_points()
    graph = transformer.set_params(n_neighbors=30).fit_transform(x)
    assert csgraph.minimum_spanning_tree(graph).nnz == len(x) - 1
    with pytest.raises(ValueError, match="connected=True needs symmetric=True"):
        transformer.set_params(symmetric=False).fit(x)


# -------------------------------------------------------------- packed bits

BITS = np.random.default_rng(0).random((400, 72)) < 0.2
BITS[40] = BITS[7]
PACKED = np.packbits(BITS, axis=1)


@pytest.mark.parametrize("string", ["BKFlat(jaccard)", "KFlat(jaccard)", "KFlat(jaccard,store=sparse)"])
def test_packed_bits_find_the_same_as_vectors_of_bits(string):
    expected = KernelNeighbors("KFlat(jaccard)", radius=1.1).fit(BITS[:300])
    neighbors = KernelNeighbors(string, packed=True, radius=1.1).fit(PACKED[:200]).partial_fit(PACKED[200:300])
    for packed, bits in ((PACKED[300:], BITS[300:]), (None, None)):
        np.testing.assert_allclose(neighbors.kneighbors(packed)[0], expected.kneighbors(bits)[0], atol=1e-3)
        found, graph = (n.radius_neighbors_graph(x, mode="distance") for n, x in ((neighbors, packed), (expected, bits)))
        assert graph.nnz and abs(found - graph).max() < 1e-3
        found = KernelNeighborsTransformer(string, packed=True).fit(PACKED[:300]).transform(PACKED[:300])
        assert abs(found.sum() - KernelNeighborsTransformer("KFlat(jaccard)").fit_transform(BITS[:300]).sum()) < 1e-2
    twin = pickle.loads(pickle.dumps(neighbors))
    np.testing.assert_array_equal(twin.kneighbors()[0], neighbors.kneighbors()[0])


@pytest.mark.parametrize("string", ["BKFlat(jaccard)", "BFlat", "BIVF4"])
def test_the_distance_of_codes_is_within_itself(string):
    neighbors = KernelNeighbors(string, packed=True, parameters={"nprobe": 4} if "IVF" in string else None).fit(PACKED)
    distances, indices = neighbors.kneighbors(PACKED[:20], 9)
    for i in range(20):
        (within,) = neighbors.radius_neighbors(PACKED[i : i + 1], distances[i, -1], return_distance=False)
        assert set(indices[i]) <= set(within)
    (everything,) = neighbors.radius_neighbors(PACKED[:1], np.inf, return_distance=False)
    (equal,) = neighbors.radius_neighbors(PACKED[7:8], 0, return_distance=False)
    assert len(everything) == len(PACKED) and sorted(equal) == [7, 40]


def test_codes_of_packed_bits_are_square_roots_of_hamming_distances():
    neighbors = KernelNeighbors("BFlat", packed=True, n_neighbors=3).fit(PACKED)
    euclidean = NearestNeighbors(n_neighbors=3, algorithm="brute").fit(BITS.astype(float))
    np.testing.assert_allclose(neighbors.kneighbors()[0], euclidean.kneighbors()[0], rtol=1e-6)
    hashed = [KernelNeighbors("CWS512,BFlat", packed=packed).fit(x).kneighbors(return_distance=False)
              for packed, x in ((True, PACKED), (False, BITS))]
    np.testing.assert_array_equal(*hashed)


@pytest.mark.parametrize("string", ["KFlat(jaccard)", "BKFlat(hamming)", "KFlat(dice,store=sparse)", "CWS512,BFlat"])
def test_numbers_of_bits(string):
    """Of which the last byte is not full."""
    bits = BITS[:, :70]
    neighbors = KernelNeighborsTransformer(string, packed=70).fit(np.packbits(bits, axis=1))
    assert neighbors.index_.d == 70 and clone(neighbors).packed == 70
    graph = neighbors.transform(np.packbits(bits[:9], axis=1))
    if string == "BKFlat(hamming)":
        different = np.array([(bits[i] ^ bits[j]).sum() for i, j in zip(*graph.nonzero())])
        np.testing.assert_allclose(graph[graph.nonzero()].A1, np.sqrt(2 * different / 70), atol=1e-4)
    else:
        same = KernelNeighborsTransformer(string).fit(bits).transform(bits[:9])
        assert abs(graph - same).max() < 1e-3
    with pytest.raises(ValueError, match="KernelNeighborsTransformer: packed is 73, a number of bits, but rows of 9 bytes have 65 to 72"):
        KernelNeighborsTransformer(string, packed=73).fit(PACKED)


@pytest.mark.parametrize("string", ["KFlat(jaccard)", "HNSW8,KFlat(dice)", "CWS512,BFlat", "SCR64,BFlat,Refine(KFlat(jaccard))", "KPCA16(jaccard,p=50),Flat"])
def test_bytes_in_sets_must_be_explained(string):
    for estimator in (KernelNeighbors(string), KernelNeighborsTransformer(string)):
        for call in (estimator.fit, estimator.partial_fit, estimator.fit_transform):
            with pytest.raises(ValueError, match=f"{type(estimator).__name__}: x is an array of uint8, which may be packed bits or counts; pass packed"):
                call(PACKED)
        assert not hasattr(estimator, "index_")
        counts, floats = clone(estimator).set_params(packed=False).fit(PACKED), clone(estimator).fit(PACKED.astype("float32"))
        np.testing.assert_array_equal(counts.kneighbors_graph(PACKED[:5]).indices, floats.kneighbors_graph(PACKED[:5]).indices)
        estimator.fit(BITS)  # zeros and ones
    KernelNeighbors("KFlat(cosine)").fit(PACKED)  # such as grey values


@pytest.mark.parametrize("settings, x, error, message", [
    ({"index": "KFlat(linear)", "packed": "yes"}, PACKED, TypeError, "KernelNeighbors: packed must be True, False or a number of bits"),
    ({"index": "KFlat(linear)", "packed": 0}, PACKED, ValueError, "KernelNeighbors: packed is 0"),
    ({"index": "BKFlat(jaccard)"}, PACKED, TypeError, "pass packed=True"),
    ({"index": "BKFlat(jacard)", "packed": True}, PACKED, RuntimeError, "did you mean jaccard"),
    ({"index": "KFlat(jacard)", "packed": True}, PACKED, RuntimeError, "did you mean jaccard"),
    ({"index": "BKFlat(jaccard)", "packed": True}, BITS, TypeError, "packbits"),
    ({"index": "KFlat(jaccard)", "packed": True}, BITS.astype(float), TypeError, "uint8"),
    ({"index": "KFlat(jaccard)", "packed": True}, csr_matrix(PACKED), TypeError, "sparse"),
    ({"index": "KFlat(jaccard)", "packed": True}, PACKED[0], ValueError, "expected codes of shape")])
def test_what_packed_bits_are_not(settings, x, error, message):
    neighbors = KernelNeighbors(**settings)
    with pytest.raises(error, match=message):
        neighbors.fit(x)
    assert not hasattr(neighbors, "index_")
    fitted = KernelNeighbors("BKFlat(jaccard)", packed=True).fit(PACKED)
    with pytest.raises(ValueError, match="5 features.*9"):
        fitted.kneighbors(PACKED[:, :5])


def test_scanpy():
    scanpy, anndata = pytest.importorskip("scanpy"), pytest.importorskip("anndata")
    x = sparse_texts()
    cells = anndata.AnnData(x)
    transformer = KernelNeighborsTransformer("KFlat(jaccard,store=sparse)", n_neighbors=5)
    scanpy.pp.neighbors(cells, n_neighbors=5, use_rep="X", transformer=transformer)
    graph = cells.obsp["distances"]
    expected = KernelNeighborsTransformer("KFlat(jaccard,store=sparse)", n_neighbors=5).fit_transform(x)
    assert graph.shape == (x.shape[0],) * 2 and (graph != expected).nnz == 0
    assert cells.obsp["connectivities"].nnz > 0


# ---------------------------------------------------- parameters and copies

@pytest.mark.parametrize(
    "string, parameters, part",
    [
        (REFINED, {"k_factor": np.float32(3)}, lambda i: i),
        ("IVF8,Flat", {"nprobe": np.int64(8), "max_codes": 400}, lambda i: i),
        ("PCA8,IVF8,Flat,Refine(KFlat(gaussian))", {"nprobe": 5},
         lambda i: faiss.downcast_index(i.base_index.index)),
        ("PCA8,KIVF8,Refine(KFlat(gaussian))", {"nprobe": 5},
         lambda i: faiss.downcast_index(i.base_index.index)),
        ("HNSW8,KFlat(gaussian)", {"efSearch": 33}, lambda i: i.hnsw),
        ("SIK64(gaussian),BHash8x4", {"nflip": 2}, lambda i: i.storage),
        ("SIK64(gaussian),BPerm(M=4,B=10)", {"B": 17}, lambda i: i.storage)])
def test_search_parameters_and_copies(string, parameters, part):
    neighbors = KernelNeighbors(string, parameters=parameters, n_jobs=1).fit(TRAIN)
    expected = neighbors.kneighbors(TEST, 1)
    for twin in (neighbors, pickle.loads(pickle.dumps(neighbors)), copy.deepcopy(neighbors)):
        for name, value in parameters.items():
            assert getattr(part(twin.index_), name) == value
        found = twin.kneighbors(TEST, 1)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])
    fresh = clone(neighbors)
    assert fresh.get_params() == neighbors.get_params() and not hasattr(fresh, "index_")


def test_threads_are_set_for_the_call_only():
    before = faiss.omp_get_max_threads()
    results = [
        KernelNeighbors(REFINED, n_jobs=n_jobs).fit(TRAIN).kneighbors(TEST)
        for n_jobs in (None, 1, 2, -1, 10**6)]
    assert faiss.omp_get_max_threads() == before
    for found in results[1:]:
        np.testing.assert_array_equal(found, results[0])


# -------------------------------------------------------------------- errors

def test_too_few_neighbors_found():
    neighbors = KernelNeighbors(
        "IVF32,Flat", n_neighbors=100, parameters={"nprobe": 1}).fit(TRAIN)
    with pytest.raises(RuntimeError, match="fewer than 100 neighbours .* raise its nprobe,"):
        neighbors.kneighbors(TEST)
    with pytest.raises(RuntimeError, match="fewer than 100 neighbours"):
        neighbors.kneighbors_graph()
    assert neighbors.set_params(parameters={"nprobe": 32}).fit(TRAIN).kneighbors(TEST)


@pytest.mark.parametrize("k, x, error", [
    (0, TEST, ValueError), (-1, None, ValueError), (2.5, TEST, TypeError),
    (501, TEST, ValueError), (500, None, ValueError)])
def test_impossible_numbers_of_neighbors(pair, k, x, error):
    for neighbors in pair:  # scikit-learn's is the reference
        with pytest.raises(error, match="n_neighbors"):
            neighbors.kneighbors(x, k)
    pair[0].kneighbors(TEST[:1], 500)
    pair[0].kneighbors(None, 499)


@pytest.mark.parametrize("settings, error, message", [
    ({"index": "KFlat(gausian)"}, RuntimeError, "unknown kernel 'gausian'"),
    ({"index": None}, TypeError, "index must be a string"),
    ({"packed": True}, TypeError, "expected codes"),
    ({"n_neighbors": 0}, ValueError, "n_neighbors > 0"),
    ({"n_neighbors": "5"}, TypeError, "n_neighbors must be an integer"),
    ({"radius": -1}, ValueError, "radius must not be negative"),
    ({"radius": np.nan}, ValueError, "radius"),
    ({"radius": "1"}, TypeError, "radius must be a number"),
    ({"n_jobs": 0}, ValueError, "n_jobs"),
    ({"n_jobs": "all"}, ValueError, "n_jobs: expected a whole number .* got 'all'"),
    ({"parameters": [1]}, TypeError, "parameters must be a dict"),
    ({"parameters": {"nprobe": 3}}, ValueError, "nprobe"),
    ({"index": REFINED, "parameters": {"nprobe": 3}}, ValueError, "k_factor"),
    ({"index": REFINED, "parameters": {"k_factor": 0.5}}, ValueError, "k_factor must be a number from 1"),
    ({"index": "IVF8,Flat", "parameters": {"nprobe": "8"}}, TypeError, "nprobe must be an integer"),
    ({"index": "IVF8,Flat", "parameters": {"nprobe": 2.5}}, ValueError, "must be an integer"),
    ({"index": "IVF8,Flat", "parameters": {"nprobe": -1}}, ValueError, "must be an integer from 1")])
def test_settings_are_checked_by_fit(settings, error, message):
    neighbors = KernelNeighbors(**settings)
    with pytest.raises(error, match=message):
        neighbors.fit(TRAIN)
    assert not hasattr(neighbors, "index_")


def test_other_errors(pair):
    neighbors, _ = pair
    with pytest.raises(ValueError, match="return_distance"):
        neighbors.radius_neighbors(TEST, return_distance=False, sort_results=True)
    with pytest.raises(ValueError, match="radius is missing"):
        KernelNeighbors(LINEAR).fit(TRAIN).radius_neighbors(TEST)
    for graph in (neighbors.kneighbors_graph, neighbors.radius_neighbors_graph):
        with pytest.raises(ValueError, match="mode must be"):
            graph(TEST, mode="weights")
    with pytest.raises(ValueError, match="mode must be"):
        KernelNeighborsTransformer(mode="weights").fit(TRAIN)
    with pytest.raises(RuntimeError, match="expected a finite number >= 0"):
        KernelNeighbors("KFlat(chi2)").fit(-TRAIN)
    with pytest.raises(RuntimeError, match="range"):
        KernelNeighbors("HKM1(chi2),PQ8x4fs").fit(TRAIN).radius_neighbors(TEST, 1)
    with pytest.raises(ValueError, match="1 sample"):
        KernelNeighbors().fit(TRAIN[:1])


# --------------------------------------------------------- sparse vectors

def sparse_texts(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return csr_matrix(rng.poisson(3 / np.arange(1, 301), (n, 300)).astype("float32"))


@pytest.mark.parametrize("string", [
    "KFlat(chi2,store=sparse)", "AHK256(chi2),BFlat,Refine(KFlat(chi2,store=sparse))"])
def test_sparse_vectors_find_the_same_as_dense_ones(string):
    X, Q = sparse_texts(), sparse_texts(20, 1)
    for make in (KernelNeighbors, KernelNeighborsTransformer):
        one, other = make(string), make(string)
        one.fit(X[:150]).partial_fit(X[150:])
        other.fit(X.toarray())
        for queries in (Q, None):
            dense = None if queries is None else queries.toarray()
            for a, b in zip(one.kneighbors(queries), other.kneighbors(dense)):
                np.testing.assert_array_equal(a, b)
        assert (one.transform(Q) != other.transform(Q.toarray())).nnz == 0
    one, other = (KernelNeighbors(string, radius=0.4).fit(x) for x in (X, X.toarray()))
    for queries in (Q, None):
        dense = None if queries is None else queries.toarray()
        assert (one.radius_neighbors_graph(queries)
                != other.radius_neighbors_graph(dense)).nnz == 0
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.kneighbors(Q)[0], one.kneighbors(Q)[0])


def test_dense_indexes_refuse_sparse_vectors():
    with pytest.raises(TypeError, match="sparse.*store=sparse"):
        KernelNeighbors("KFlat(chi2)").fit(sparse_texts())
    neighbors = KernelNeighbors("KFlat(chi2,store=sparse)").fit(sparse_texts())
    with pytest.raises(TypeError, match="sparse"):
        neighbors.partial_fit(sparse_texts().toarray())
