# SPDX-License-Identifier: MIT
"""Sparse vectors: SciPy's arrays and matrices find what dense vectors find."""

import pickle
import resource

import faiss
import faiss_ext
import numpy as np
import pytest

sparse = pytest.importorskip("scipy.sparse")

D = 500
STRINGS = [
    "KFlat(chi2,store=sparse)", "IDMap,KFlat(jaccard,store=sparse)",
    "Concurrent,KFlat(js,store=sparse)"]


def counts(n, seed):
    """Histograms with the frequencies of words, as CSR."""
    rng = np.random.default_rng(seed)
    p = 1 / np.arange(1, D + 1)
    x = rng.multinomial(20, p / p.sum(), n).astype("float32") / 20
    return sparse.csr_array(x)


@pytest.fixture(params=STRINGS)
def index(request):
    return faiss.index_factory(D, request.param)


FORMS = {
    "csr": lambda x: x,
    "csr of float64": lambda x: x.astype("float64"),
    "csr with indices of 64 bits": lambda x: with_indices(x, "int64"),
    "csc": lambda x: x.tocsc(),
    "coo": lambda x: x.tocoo(),
    "matrix": sparse.csr_matrix,
    "lil": lambda x: x.tolil(),
    "unsorted": lambda x: unsorted(x)}


def with_indices(x, dtype):
    x = x.copy()
    x.indices, x.indptr = x.indices.astype(dtype), x.indptr.astype(dtype)
    return x


def unsorted(x):
    """Columns in descending order, and each component in two halves."""
    rows = [np.repeat(np.arange(a, b)[::-1], 2)
            for a, b in zip(x.indptr, x.indptr[1:])]
    order = np.concatenate(rows)
    return sparse.csr_array(
        (x.data[order] / 2, x.indices[order], 2 * x.indptr), shape=x.shape)


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_find_the_same(form):
    x, q = counts(300, 1), counts(20, 2)
    index, dense = (faiss.index_factory(D, STRINGS[0]) for _ in range(2))
    index.add(FORMS[form](x))
    dense.add(x.toarray())
    expected = dense.search(q.toarray(), 5)
    for found in (index.search(FORMS[form](q), 5), index.search(q.toarray(), 5)):
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


def test_equals_exact_search_of_dense_vectors():
    x, q = counts(300, 1), counts(20, 2)
    index = faiss.index_factory(D, "KFlat(chi2,store=sparse)")
    index.add(x)
    dense = faiss.index_factory(D, "KFlat(chi2)")
    dense.add(x.toarray())
    values, ids = index.search(q, 300)
    expected, places = dense.search(q.toarray(), 300)
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-6)
    for row in range(20):  # the values of the same vectors
        by_id = np.empty(300)
        by_id[places[row]] = expected[row]
        np.testing.assert_allclose(by_id[ids[row]], values[row], rtol=1e-4, atol=1e-6)


def test_ids_updates_ranges_and_filters(index):
    x, q = counts(300, 1), counts(20, 2)
    ids = np.arange(1000, 1300)
    index.add_with_ids(x, ids)
    twin = faiss.index_factory(D, faiss_ext.index_string(index))
    twin.add_with_ids(x.toarray(), ids)
    for i in (index, twin):
        sparsely = i is index
        form = (lambda x: x) if sparsely else (lambda x: x.toarray())
        assert i.remove_ids(np.arange(1000, 1010)) == 10
        i.update_vectors([1050, 1040], form(x[[3, 4]]))
        assert i.upsert(form(x[[5, 6]]), [1060, 5000]) == 1
        i.add(form(x[[7]]))
    np.testing.assert_array_equal(np.sort(index.ids()), np.sort(twin.ids()))
    for k in (1, 10):
        np.testing.assert_array_equal(index.search(q, k), twin.search(q.toarray(), k))
        np.testing.assert_array_equal(
            index.search(q, k, filter=np.arange(1100, 1200)),
            twin.search(q.toarray(), k, filter=np.arange(1100, 1200)))
    radius = float(np.median(index.search(q, 10)[0]))
    for found, expected in zip(index.range_search(q, radius),
                               twin.range_search(q.toarray(), radius)):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("with_ids", [False, True])
def test_exact_comparisons_of_single_pairs(with_ids):
    x, q = counts(300, 1), counts(20, 2)
    index = faiss.index_factory(D, STRINGS[0])
    if with_ids:
        index.add_with_ids(x, np.arange(1000, 700, -1))
    else:
        index.add(x)
    values, ids = index.search(q, 5)
    np.testing.assert_array_equal(index.compute_distance_subset(q, ids), values)
    dense = q.toarray()
    for name in ("compute_distance_subset", "compute_kernel_subset", "compute_score_subset"):
        method = getattr(index, name)
        np.testing.assert_array_equal(method(q, ids), method(dense, ids))
    scores, found = index.search_scores(q, 5)
    np.testing.assert_array_equal(found, ids)
    np.testing.assert_array_equal(scores, index.search_scores(dense, 5)[0])
    np.testing.assert_array_equal(index.values_of_scores(scores, found)[0], values)
    selected = index.search_scores(q, 3, filter=ids[0])[1]
    assert set(selected[0]) <= set(ids[0])


@pytest.mark.parametrize("kernel", ["jaccard", "gaussian"])
def test_recommend(kernel):
    x = counts(4000, 1)
    found = faiss_ext.recommend(x, kernel, recall=0.9, progress=False)
    assert found.fits and found.recall >= 0.9
    assert any(t.string.startswith("KFlat(") and t.recall == 1 for t in found.tried)
    assert all("store=sparse" in t.string or t.string.endswith("BFlat") for t in found.tried)
    assert any(t.string.startswith("KPCA128") and ",KIVF" in t.string for t in found.tried)
    index = found.build(x)
    assert index.ntotal == 4000
    assert (index.search(x[:5], 1)[1][:, 0] == np.arange(5)).mean() > 0.5
    bad = x.copy()
    bad.data[bad.indptr[7]] = np.nan
    with pytest.raises(RuntimeError, match="vector 7"):
        faiss_ext.recommend(bad, kernel, queries=x[:9], progress=False)


def test_maps_and_hashes():
    x = counts(100, 1)
    for string in ("SIK64(gaussian,gamma=1)", "AHK64(chi2)", "CWS64", "RHBE64", "SCR64"):
        sparsely, densely = (faiss_ext.kernel_hash_factory(D, string) for _ in range(2))
        sparsely.train(x)
        densely.train(x.toarray())
        np.testing.assert_array_equal(sparsely.encode(x), densely.encode(x.toarray()))
        np.testing.assert_array_equal(sparsely.apply(x), densely.apply(x.toarray()))
        with pytest.raises(ValueError, match=rf"\(n, {D}\)"):
            sparsely.encode(x[:, :9])


LANDMARKS = [(faiss_ext.map_factory, "KPCA8(chi2,p=20)"), (faiss_ext.kernel_hash_factory, "KLSH64(gaussian,gamma=2,p=20)")]


@pytest.mark.parametrize("make, string", LANDMARKS)
def test_landmarks(make, string):
    x, q = counts(100, 1), counts(20, 2)
    trained, given, dense = (make(D, string) for _ in range(3))
    trained.train(x)
    for thing in (given, dense):
        thing.set_landmarks(FORMS["unsorted"](x[:20]) if thing is given else x[:20].toarray())
        thing.train(x if thing is dense else x.toarray())
    for thing in (trained, given, dense):
        np.testing.assert_array_equal(thing.apply(q), thing.apply(q.toarray()))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(thing)).apply(q), thing.apply(q))
    landmarks = {thing: faiss.vector_to_array(getattr(thing, "map", thing).landmarks) for thing in (trained, given, dense)}
    assert landmarks[trained].size == landmarks[given].size == 0
    np.testing.assert_array_equal(landmarks[dense].reshape(20, D), x[:20].toarray())
    with pytest.raises(ValueError, match=rf"\(n, {D}\)"):
        make(D, string).set_landmarks(x[:20, :9])


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "expchi2", "exponential(gaussian,scale=2)"])
def test_bandwidths(kernel):
    x = counts(300, 1)
    sparsely, densely = (faiss_ext.kernel_factory(kernel) for _ in range(2))
    sparsely.train(x)
    densely.train(x.toarray())
    np.testing.assert_allclose(  # values fall with gamma, whose relative error is 4e-5
        sparsely.gram(x[:9].toarray()), densely.gram(x[:9].toarray()), atol=1e-4)
    with pytest.raises(RuntimeError, match="2"):
        faiss_ext.kernel_factory(kernel).train(x[:1])


WIDE = 2**31 - 1


@pytest.mark.parametrize("string", [
    "KPCA16(jaccard,p=100),KIVF8(nprobe=8),Refine(KFlat(jaccard,store=sparse))",
    "KLSH64(jaccard,p=100),BFlat,Refine(KFlat(jaccard,store=sparse))",
    "KLSH64(gaussian,p=100),BFlat,Refine(KFlat(jaccard,store=sparse))"])
def test_landmarks_with_columns_without_bound(string, tmp_path):
    """Memory, in which one dense vector would take 8 GB, and files grow with the components."""
    x, q = counts(400, 1), counts(20, 2)
    step = WIDE // D
    x, q = (sparse.csr_array((r.data, r.indices * step, r.indptr), shape=(r.shape[0], WIDE)) for r in (x, q))
    index, exact = (faiss.index_factory(WIDE, s) for s in (string, "KFlat(jaccard,store=sparse)"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    index.train(x)
    index.add(x)
    exact.add(x)
    index.k_factor = 80  # all are candidates
    expected = exact.search(q, 5)[0]
    faiss.write_index(index, str(tmp_path / "index"))
    assert (tmp_path / "index").stat().st_size < 3 * 8 * x.nnz + 2**16
    for copy in (index, faiss.read_index(str(tmp_path / "index")), faiss.clone_index(index), pickle.loads(pickle.dumps(index))):
        copy.k_factor = 80
        np.testing.assert_array_equal(copy.search(q, 5)[0], expected)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 2**20  # of KB


@pytest.mark.parametrize("string", ["AHK64(chi2),BFlat", "IDMap,CWS64,BFlat", "KLSH64(chi2,p=20),BIVF4"])
def test_binary_indexes(string):
    x, q = counts(300, 1), counts(20, 2)
    sparsely, densely = (faiss.index_binary_factory(D, string) for _ in range(2))
    for index, form in ((sparsely, lambda x: x), (densely, lambda x: x.toarray())):
        # sparse landmarks and dense ones have other rounding
        index.train(x if string.startswith("KLSH") else form(x))
        index.add_with_ids(form(x[:200]), np.arange(500, 700))
        index.add(form(x[200:]))
        index.update_vectors([501], form(x[250:251]))
        index.remove_ids([502])
    np.testing.assert_array_equal(sparsely.search(q, 5), densely.search(q.toarray(), 5))
    for found, expected in zip(sparsely.range_search(q, 20), densely.range_search(q.toarray(), 20)):
        np.testing.assert_array_equal(found, expected)


def test_files_copies_and_pickles(index, tmp_path):
    x, q = counts(300, 1), counts(20, 2)
    index.add(x)
    expected = index.search(q, 10)
    faiss.write_index(index, str(tmp_path / "index"))
    for copy in (faiss.read_index(str(tmp_path / "index")), faiss.clone_index(index),
                 pickle.loads(pickle.dumps(index))):
        np.testing.assert_array_equal(copy.search(q, 10), expected)
        copy.add(x)
        assert copy.ntotal == 600


def test_columns_without_bound():
    d = 2**31 - 1
    index = faiss.index_factory(d, "KFlat(jaccard,store=sparse)")
    x = sparse.csr_array(([1.0, 1, 1, 1], ([0, 0, 1, 1], [5, d - 1, 5, 6])), shape=(2, d))
    index.add(x)
    for index in (index, faiss.deserialize_index(faiss.serialize_index(index))):
        values, ids = index.search(x, 2)
        assert ids.tolist() == [[0, 1], [1, 0]] and (values[:, 0] == 0).all()


@pytest.mark.parametrize("what", ["NaN", "shape", "objects", "out of range", "negative"])
def test_bad_input(index, what):
    x = counts(30, 1)
    index.add(x)
    bad = x.copy()
    error, words = (RuntimeError, ValueError), "vector 7"
    if what == "NaN":
        bad.data[bad.indptr[7]] = np.nan
    elif what == "shape":
        bad, words = counts(30, 1)[:, :D - 1], rf"\(n, {D}\)"
    elif what == "objects":
        bad, error, words = sparse.csr_array(x.shape, dtype="complex64"), TypeError, "complex64"
    elif what == "out of range":
        bad.indices[bad.indptr[7]] = D
    else:
        bad.data[bad.indptr[7]] = -1
    if what == "out of range":
        bad._shape = x.shape
    calls = [lambda: index.add(bad), lambda: index.search(bad, 3),
             lambda: index.range_search(bad, 0.1),
             lambda: index.add_with_ids(bad, np.arange(50, 80)),
             lambda: index.upsert(bad, np.arange(30))]
    for call in calls:
        with pytest.raises(error, match=words):
            call()
    assert index.ntotal == 30


@pytest.mark.parametrize("kernel", ["cosine", "exponential(cosine,scale=2)"])
def test_lengths_beyond_the_range_of_float(kernel):
    dense = np.full((3, D), 1e37, "float32")
    dense[1, 0] = 0
    index = faiss.index_factory(D, f"KFlat({kernel},store=sparse)", faiss.METRIC_INNER_PRODUCT)
    index.add(sparse.csr_array(dense))
    values = faiss_ext.kernel_factory(kernel).gram(dense)
    np.testing.assert_allclose(index.search(sparse.csr_array(dense), 3)[0], -np.sort(-values), rtol=1e-5)
    dense[2] = 9e37
    for call in (index.add, lambda x: index.search(x, 1), faiss_ext.kernel_factory(kernel).gram):
        with pytest.raises(RuntimeError, match=r"length of vector 2 is .*at most 3.4.*e\+38"):
            call(sparse.csr_array(dense))
    assert index.ntotal == 3


@pytest.mark.parametrize("string", ["RHBE8(rot=pca),BFlat", "AHK8(chi2,rot=itq),BFlat", "SH8,BFlat"])
def test_too_many_columns_are_refused_before_dense_copies(string):
    d = 2**31 - 1 if "chi2" not in string else 10**8
    x = sparse.csr_array((np.ones(20, "float32"), (np.arange(20), np.arange(20))), shape=(20, d))
    index = faiss.index_factory(d, string)
    with pytest.raises(RuntimeError, match="at most 8192 dimensions|expected at most 8192"):
        index.train(x)


@pytest.mark.parametrize("form", [np.asarray, np.ndarray.tolist, np.asfortranarray, sparse.csr_array, sparse.csc_array, sparse.coo_matrix])
def test_numbers_too_large_for_float32_are_shown(form):
    x = np.random.default_rng(1).random((300, D))
    x[7, 3] = -1e300
    index = faiss.index_factory(D, "KFlat(cosine,store=sparse)")
    index.add(x[:5])
    kernel = faiss_ext.kernel_factory("cosine")
    # recommend takes rows in another order
    for call in (index.add, lambda x: index.search(x, 1), kernel.gram, lambda x: kernel.gram(np.ones((2, D)), x),
                 lambda x: faiss_ext.near_duplicates(x, 0.5, "cosine"), lambda x: faiss_ext.recommend(x, kernel, progress=False)):
        with pytest.raises(RuntimeError, match=r"component 3 of vector 7 is -1e\+300, too large for float32; expected at most 3.4e38") as caught:
            call(form(x))
        assert caught.value.vector == 7
    assert index.ntotal == 5
    x[7, 3] = np.finfo("float32").max
    assert kernel.gram(form(x[7:8])) == pytest.approx(1)
    x[7, 3] = np.inf
    with pytest.raises(RuntimeError, match="component 3 of vector 7 is inf, expected a finite number"):
        index.add(form(x))


def test_auto_is_sparse():
    index = faiss.index_factory(D, "KFlat(jaccard,store=auto)")
    assert isinstance(index, faiss_ext.IndexSparseKernel)
    assert index.store == "sparse" and str(index) == str(faiss.index_factory(D, "KFlat(jaccard,store=sparse)"))
    with pytest.raises(RuntimeError, match="dense"):
        faiss_ext.IndexFlatKernel(D, faiss_ext.kernel_factory("jaccard"), faiss.METRIC_L2, "auto")


def test_other_indexes_say_what_takes_them():
    for string in ("KFlat(chi2)", "HNSW16,KFlat(chi2)", "AHK64(chi2),BFlat,Refine(KFlat(chi2))"):
        index = faiss.index_factory(D, string)
        with pytest.raises(RuntimeError, match="store=sparse"):
            index.add(counts(3, 1))
    with pytest.raises(RuntimeError, match="sparse"):
        faiss.index_factory(D, "HNSW16,KFlat(chi2,store=sparse)")


# ------------------------------------------------ kernels and single values

# Sums of the same terms in another order: each of two sums has a relative error of at most (terms - 1) u. Two rows have at most 40 terms.
SUMS = 2 * 40 * 2.0 ** -24


@pytest.mark.parametrize("kernel, rtol", [
    ("chi2", SUMS), ("js", SUMS), ("intersection", SUMS), ("hellinger", SUMS), ("linear", SUMS), ("jaccard", 2 * SUMS),
    ("dice", 2 * SUMS), ("cosine", 3 * SUMS), ("laplacian(gamma=1)", 2 * SUMS), ("gaussian(gamma=1)", 2 * SUMS), ("normalized(chi2)", 3 * SUMS)])
def test_kernel_matrices(kernel, rtol):
    x, y = counts(90, 1), counts(30, 2)
    kernel = faiss_ext.kernel_factory(kernel)
    expected = kernel.gram(x.toarray(), y.toarray())
    for a, b in ((x, y), (x.tocsc(), y.toarray()), (x.toarray(), sparse.csr_matrix(y))):
        found = kernel.gram(a, b)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=0)
    np.testing.assert_array_equal(kernel.gram(x), kernel.gram(x, x))
    assert kernel(x[[3]], y[[4]]) == kernel.gram(x, y)[3, 4]
    assert kernel.gram(x[:0], y).shape == (0, 30)


def test_kernel_matrices_of_any_dimension():
    d = 2**31 - 1
    x = sparse.csr_array(([1.0, 2, 3], ([0, 0, 1], [5, d - 1, d - 1])), shape=(2, d))
    np.testing.assert_array_equal(faiss_ext.kernel_factory("linear").gram(x), [[5, 6], [6, 9]])


def test_bad_vectors_of_kernels():
    kernel = faiss_ext.kernel_factory("chi2")
    x = counts(30, 1)
    bad = x.copy()
    bad.data[bad.indptr[7]] = np.nan
    for call in (lambda: kernel.gram(bad, x), lambda: kernel.gram(x, bad), lambda: faiss_ext.mean_neighbor_distance(bad),
                 lambda: faiss_ext.kernel_factory("gaussian").train(bad)):
        with pytest.raises(RuntimeError, match=f"component {bad.indices[bad.indptr[7]]} of vector 7 is nan"):
            call()
    with pytest.raises(RuntimeError, match=f"{D - 1} dimensions, expected {D}"):
        kernel.gram(x, x[:, 1:])
    with pytest.raises(RuntimeError, match="no bandwidth"):
        faiss_ext.kernel_factory("gaussian").gram(x)
    with pytest.raises(RuntimeError, match="give dense vectors"):
        faiss_ext.CallbackKernel(lambda X, Y: X @ Y.T).gram(x)
    with pytest.raises(ValueError, match="one vector"):
        kernel(x, x)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("scale", [1, 1e-20, 1e18])
def test_bandwidths(norm, scale):
    x = counts(300, 1) * np.float32(scale)
    for more in ({}, {"neighbor": 3, "max_queries": 20}, {"max_points": 150}, {"neighbor": 1000}):
        np.testing.assert_allclose(
            faiss_ext.mean_neighbor_distance(x, norm, **more), faiss_ext.mean_neighbor_distance(x.toarray(), norm, **more), rtol=SUMS)


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian(neighbor=5)", "matern(nu=1.5)", "expchi2", "normalized(gaussian)"])
def test_kernels_train(kernel):
    x = counts(300, 1)
    sparsely, densely = (faiss_ext.kernel_factory(kernel) for _ in range(2))
    sparsely.train(x)
    densely.train(x.toarray())
    assert sparsely.is_trained
    # gamma is a mean distance to a power of at most 2 in magnitude
    np.testing.assert_allclose(sparsely.gram(x[:9]), densely.gram(x[:9].toarray()), rtol=0, atol=4 * SUMS)
    if "(" not in kernel:
        np.testing.assert_allclose(sparsely.gamma, densely.gamma, rtol=2 * SUMS)
    same = sparse.csr_array(np.ones((5, 3), "float32"))
    with pytest.raises(RuntimeError, match="all the same"):
        faiss_ext.kernel_factory(kernel).train(same)


@pytest.mark.parametrize("string", [*STRINGS, "CWS64,BFlat,Refine(KFlat(chi2,store=sparse))"])
def test_search_and_reconstruct_and_kernel_values(string):
    x, q = counts(30, 1), counts(20, 2)
    index = faiss.index_factory(D, string)
    index.train(x)
    index.add_with_ids(x, np.arange(100, 130))
    for k in (3, 33):
        found, expected = index.search_and_reconstruct(q, k), index.search_and_reconstruct(q.toarray(), k)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(found[2][:, 0], x.toarray()[found[1][:, 0] - 100])
        assert np.isnan(found[2][:, 30:]).all()
        values, ids = found[:2]
        kernel_values = faiss_ext.kernel_values(index, values, ids, q)
        np.testing.assert_array_equal(kernel_values, faiss_ext.kernel_values(index, values, ids, q.toarray()))
        np.testing.assert_array_equal(faiss_ext.kernel_values(index, values[2], ids[2], q[[2]]), kernel_values[2])
    np.testing.assert_array_equal(
        index.search_and_reconstruct(q, 3, filter=range(110, 120))[1], index.search(q, 3, filter=range(110, 120))[1])
    lims, values, ids = index.range_search(q, float(np.median(found[0][:, 3])))
    np.testing.assert_array_equal(
        faiss_ext.kernel_values(index, values, ids, q, lims), faiss_ext.kernel_values(index, values, ids, q.toarray(), lims))
    with pytest.raises(ValueError, match=rf"\(n, {D}\)"):
        faiss_ext.kernel_values(index, values, ids, q[:, :9], lims)
    with pytest.raises(ValueError, match="expected"):
        faiss_ext.kernel_values(index, *index.search(q, 3), q[:9])


def test_kernel_values_of_dense_indexes():
    x = counts(30, 1)
    index = faiss.index_factory(D, "KFlat(chi2)")
    index.add(x.toarray())
    with pytest.raises(RuntimeError, match="store=sparse"):
        faiss_ext.kernel_values(index, *index.search(x.toarray(), 3), x)


@pytest.mark.parametrize("string, kernel", [
    ("KFlat(chi2,store=sparse)", None), ("CWS64,BFlat", None), ("CWS64,BFlat", "jaccard"), ("AHK64(chi2),BFlat", "chi2"),
    ("SIK64(gaussian),BFlat", "gaussian")])
def test_calibration(string, kernel):
    x, q = counts(300, 1), counts(40, 2)
    index = faiss.index_factory(D, string)
    index.train(x)
    index.add(x)
    found = faiss_ext.calibrate(index, x, q, kernel)
    expected = faiss_ext.calibrate(index, x.toarray(), q.toarray(), kernel)
    np.testing.assert_array_equal(found.distances, expected.distances)
    np.testing.assert_allclose(np.sort(found.values), np.sort(expected.values), rtol=2 * SUMS)
    assert (found.maximum, found.exact) == (expected.maximum, expected.exact)
    np.testing.assert_array_equal(faiss_ext.calibrate(index, x.toarray(), q, kernel).distances, found.distances)
    with pytest.warns(UserWarning, match="1 of 2 queries are among"):
        faiss_ext.calibrate(index, x, sparse.csr_array(sparse.vstack([x[[5]], q[[0]]])), kernel)


def test_pairs_and_projections():
    x = counts(9, 1)
    hash = faiss_ext.kernel_hash_factory(D, "SIK64(gaussian,gamma=1)")
    for name in ("kernel_value", "expected_hamming_of_pair"):
        method = getattr(hash, name)
        assert method(x[[2]], x[[3]]) == method(*x[2:4].toarray())
    with pytest.raises(ValueError, match="one vector"):
        hash.kernel_value(x, x[[3]])
    projection = hash.projection
    np.testing.assert_array_equal(projection.apply(x), projection.apply(x.toarray()))
    bad = x.copy()
    bad.indices[3] = -1
    with pytest.raises(RuntimeError, match="column -1"):
        projection.apply(bad)


def test_what_takes_dense_vectors_only_says_so():
    x = counts(3, 1)
    index = faiss.index_factory(D, "KFlat(chi2,store=sparse)")
    map = faiss_ext.map_factory(D, "HKM1(chi2)")
    codes = faiss.index_binary_factory(8 * D, "BKFlat(jaccard)")
    for call in (lambda: index.sa_encode(x), lambda: map.reverse_transform(x), lambda: codes.add(x), lambda: codes.search(x, 2)):
        with pytest.raises(TypeError, match=r"got a sparse matrix; convert it with toarray\(\)"):
            call()
    for string in ("KFlat(chi2)", "HNSW16,KFlat(chi2)", "PCA4,KFlat(chi2)"):
        index = faiss.index_factory(D, string)
        for call in (lambda: index.train(x), lambda: index.add(x), lambda: index.search(x, 2), lambda: index.search_and_reconstruct(x, 2),
                     lambda: index.range_search(x, 2), lambda: index.upsert(x, [1, 2, 3])):
            with pytest.raises(RuntimeError, match="takes no sparse vectors; KFlat.*store=sparse"):
                call()


# SciPy takes rows without looking where they begin.
@pytest.mark.parametrize("at, value, match", [
    (-1, 50_000_000, "indptr of vector 299 ends at 50000000, expected at most"),
    (100, -10**7, "indptr of vector 99 begins at .* and ends at -10000000"), (0, 2, "begins with 2, expected 0"),
    (100, 0, "indptr of vector 99 begins at .* and ends at 0, expected")])
def test_where_rows_begin(at, value, match):
    good = counts(300, 1)
    bad = good.copy()
    bad.indptr = bad.indptr.copy()
    bad.indptr[at] = value
    index = faiss.index_factory(D, "CWS64,BFlat")
    index.train(good)
    index.add(good)
    exact = faiss.index_factory(D, "KFlat(jaccard,store=sparse)")
    for call in (lambda: faiss_ext.recommend(bad, "jaccard"), lambda: faiss_ext.calibrate(index, bad, good[:5], "jaccard"),
                 lambda: faiss_ext.calibrate(index, good, bad, "jaccard"), lambda: exact.add(bad),
                 lambda: faiss_ext.near_duplicates(bad), lambda: faiss_ext.kernel_factory("jaccard").gram(bad)):
        with pytest.raises((ValueError, RuntimeError), match=match):
            call()
    assert exact.ntotal == 0


@pytest.mark.parametrize("form, name, at, value, match", [
    ("csc", "indices", 5, 10**8, "row 100000000 of component 5 in column 0 is out of range, expected 0 to 299"),
    ("csc", "indices", 5, -1, "row -1 of component 5 in column 0"), ("csc", "indices", 5, 300, "row 300 of component 5"),
    ("csc", "indptr", 5, 10**8, "indptr of column 5 begins at 100000000 and ends at"),
    ("csc", "indptr", -1, 10**8, f"indptr of column {D - 1} ends at 100000000, expected at most"),
    ("coo", "row", 5, 10**8, "row 100000000 of component 5 is out of range"), ("coo", "row", 5, -1, "row -1 of component 5"),
    ("coo", "col", 5, D, f"column {D} of component 5 is out of range, expected 0 to {D - 1}"),
    ("bsr", "indices", 5, 10**7, "column of blocks 10000000 of component 5"),
    ("bsr", "indptr", 5, 10**8, "indptr of row of blocks 5 begins at"),
    ("csr", "indices", 5, -1, "vector 0.* column -1|column -1 of vector 0")])
def test_places_are_checked_before_scipy_uses_them(form, name, at, value, match, tmp_path):
    good = counts(300, 1)
    bad = good.asformat(form).copy()
    getattr(bad, name)[at] = value
    index = faiss.index_factory(D, "KFlat(jaccard,store=sparse)")
    hash = faiss_ext.kernel_hash_factory(D, "CWS64")
    for call in (lambda: index.add(bad), lambda: index.search(bad, 2), lambda: hash.encode(bad), lambda: faiss_ext.near_duplicates(bad),
                 lambda: faiss_ext.recommend(bad, "jaccard"), lambda: faiss_ext.kernel_factory("jaccard").gram(bad, good)):
        with pytest.raises((ValueError, RuntimeError), match=match):
            call()
    assert index.ntotal == 0
    if form in ("csr", "csc") and at != -1:  # SciPy checks the last
        sparse.save_npz(tmp_path / "x.npz", bad)
        with pytest.raises(faiss_ext.vector_files.VectorFileError, match="x.npz.*(" + match + ")"):
            faiss_ext.vector_files.read_vectors(tmp_path / "x.npz")


def test_places_are_integers():
    for name in ("indices", "indptr"):
        bad = counts(30, 1)
        setattr(bad, name, getattr(bad, name) + 0.5)
        with pytest.raises(TypeError, match=f"the sparse array has {name} of the type float64, expected integers"):
            faiss.index_factory(D, "KFlat(chi2,store=sparse)").add(bad)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", ["uint8", "bool", "float64"])
def test_components_of_a_column_add_up_as_numbers(form, dtype):
    values = np.array([200, 200, 1]).astype(dtype)
    x = {"csr": sparse.csr_array((values, [1, 1, 2], [0, 2, 3]), shape=(2, 4)),
         "csc": sparse.csc_array((values, [0, 0, 1], [0, 0, 2, 3, 3]), shape=(2, 4)),
         "coo": sparse.coo_array((values, ([0, 0, 1], [1, 1, 2])), shape=(2, 4))}[form]
    index = faiss.index_factory(4, "KFlat(linear,store=sparse)")
    index.add(x)
    assert index.reconstruct(0).tolist() == [0, 2 if dtype == "bool" else 400, 0, 0]
    assert x.data.tolist() == values.tolist()  # the array is as it was


def test_svmlight_files_have_their_own_columns(tmp_path):
    """Each file is read alike, whether or not it uses column 0."""
    datasets = pytest.importorskip("sklearn.datasets")
    x = counts(30, 1)
    without = x.tolil()
    without[:, 0] = 0
    for rows in (x, sparse.csr_array(without)):
        datasets.dump_svmlight_file(sparse.csr_matrix(rows), np.zeros(30), str(tmp_path / "x.svm"))
        found = faiss_ext.vector_files.read_vectors(tmp_path / "x.svm")
        np.testing.assert_allclose(found.toarray(), rows.toarray()[:, :found.shape[1]], rtol=1e-6)


@pytest.mark.parametrize("kernel", ["jaccard", "dice", "cosine"])
@pytest.mark.parametrize("has_equal_weights", [True, False])
def test_lists_of_several_blocks(kernel, has_equal_weights):
    """Rows of equal weight are in blocks of 32,768, others in blocks of 4,096; the columns are close to each other but for one."""
    rng = np.random.default_rng(4)
    n, d, near = 40_000, 2**31 - 1, 2_000
    lengths = np.full(n, 20) if has_equal_weights else rng.integers(2, 120, n)
    rows = np.repeat(np.arange(n), lengths)
    columns = (near * rng.random(len(rows)) ** 3).astype("int64")  # the first ones are in many rows
    pairs = np.unique(np.stack([rows, columns]), axis=1)
    x = sparse.csr_matrix((np.ones(pairs.shape[1], "float32"), pairs), shape=(n, near))
    index = faiss.index_factory(d, f"KFlat({kernel},store=sparse)", faiss.METRIC_INNER_PRODUCT)
    indices = x.indices.copy()
    indices[x.indptr[n - 1]] = d - 1  # of the last row, which no query shares
    index.add(csr(x.data, np.concatenate([x[: n - 1].indices, np.sort(indices[x.indptr[n - 1] :])]), x.indptr, d))

    q = x[np.linspace(0, n - 2, 40).astype(int)]
    D, I = index.search(csr(q.data, q.indices, q.indptr, d), 10)
    shared = (q @ x[: n - 1].T).toarray()
    sizes, of_queries = x[: n - 1].getnnz(axis=1), q.getnnz(axis=1)[:, None]
    both = {"jaccard": of_queries + sizes - shared, "dice": (of_queries + sizes) / 2, "cosine": np.sqrt(of_queries * sizes)}
    values = shared / both[kernel]
    np.testing.assert_allclose(D, -np.sort(-values, axis=1)[:, :10], rtol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(values, I, axis=1), D, rtol=1e-5)


def csr(data, indices, indptr, d):
    return sparse.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, d))
