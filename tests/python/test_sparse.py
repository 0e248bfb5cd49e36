# SPDX-License-Identifier: MIT
"""Sparse vectors: SciPy's arrays and matrices find what dense vectors find."""

import pickle

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


def test_other_indexes_say_what_takes_them():
    for string in ("KFlat(chi2)", "HNSW16,KFlat(chi2)", "AHK64(chi2),BFlat,Refine(KFlat(chi2))"):
        index = faiss.index_factory(D, string)
        with pytest.raises(RuntimeError, match="store=sparse"):
            index.add(counts(3, 1))
    with pytest.raises(RuntimeError, match="sparse"):
        faiss.index_factory(D, "HNSW16,KFlat(chi2,store=sparse)")
