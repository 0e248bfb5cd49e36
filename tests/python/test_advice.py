# SPDX-License-Identifier: MIT
"""recommend: what it measures is true, and it keeps its promises."""

import copy
import pickle
import re

import faiss
import faiss_ext
import numpy as np
import pytest
import scipy.sparse
from faiss_ext import advice

from helpers import COUNTS

K = 10
# enough vectors for more than exact scans: digits with a little noise
NOISE = np.random.default_rng(1)
MANY = np.concatenate([np.maximum(COUNTS + NOISE.normal(size=COUNTS.shape), 0) for _ in range(3)]).astype("float32")
MANY = MANY[NOISE.permutation(len(MANY))]


@pytest.fixture(scope="module")
def found():
    return faiss_ext.recommend(MANY[:5000], "chi2", 0.9, sample_size=2500, progress=False)


def exact_recall(index, x, queries, kernel):
    flat = faiss_ext.IndexFlatKernel(x.shape[1], kernel)
    flat.add(x)
    _, exact = flat.search(queries, K)
    _, ids = index.search(queries, K)
    return np.mean([len(set(a) & set(b)) / K for a, b in zip(ids, exact)])


def test_the_index_finds_what_was_promised(found):
    x, queries = MANY[:5000], MANY[5000:5300]
    index = found.build(x)
    assert index.ntotal == len(x)
    for name, value in found.parameters.items():
        assert faiss_ext.index_parameters(index)[name] == value
    assert found.fits and found.recall >= 0.9
    # other queries, other vectors, a figure that was extrapolated: Hoeffding's bound with 1e-9 for the queries alone
    # would be 0.19 from each side
    assert exact_recall(index, x, queries, faiss_ext.kernel_factory("chi2")) > 0.9 - 0.19
    assert faiss.index_factory(64, found.string).d == 64


def test_all_that_was_tried_is_told(found):
    assert found.n == 5000 and found.sample_size == 2500 and found.extrapolated and found.k == K
    speeds = [t.queries_per_second for t in found.tried]
    assert speeds == sorted(speeds, reverse=True)
    strings = [t.string for t in found.tried]
    assert len(set(strings)) == len(strings) > 5
    assert found.string == next(t.string for t in found.tried if t.fits)
    for t in found.tried:
        assert faiss.index_factory(64, t.string).d == 64
        assert 0 <= t.recall <= 1 and t.bytes_per_vector > 0 and t.build_seconds >= 0
        assert t.fits == (t.recall >= 0.9)
    assert "HKM1(chi2),PCAR64,HNSW16(efConstruction=100),KFlat(linear,store=i8),Refine(KFlat(chi2,store=f16))" in strings
    single = {t.string: t.single_queries_per_second for t in found.tried if t.fits}
    assert found.fastest_single.string == max(single, key=single.get) and found.single_queries_per_second == single[found.string] > 0
    assert all(t.single_queries_per_second is None for t in found.tried if not t.fits)
    # (headers and blocks of lists that are not full)
    flat = next(t for t in found.tried if t.string.startswith("KFlat"))
    assert flat.string == "KFlat(chi2,store=f16)" and flat.recall > 0.999 and 128 <= flat.bytes_per_vector < 134
    text = str(found)
    assert found.string in text and "extrapolated from 625 and 2,500" in text
    assert text.count("(recall below 0.9)") == sum(not t.fits for t in found.tried)


def test_lists_grow_with_the_vectors(found):
    lists = [int(re.search(r"KIVF(\d+)", t.string)[1]) for t in found.tried if "KIVF" in t.string]
    assert set(lists) == {advice.lists_for(5000)} == {32}
    million = [advice.lists_for(n) for n in (2000, 60_000, 1_000_000)]
    assert million == [8, 256, 4096]


def test_exact_search_is_always_exact():
    x = np.random.default_rng(0).random((1500, 8), dtype="float32")
    for kernel in ("chi2", "gaussian", "laplacian"):
        found = faiss_ext.recommend(x, kernel, 1.0, progress=False)
        assert found.fits and found.recall == 1


def test_what_training_leaves_counts():
    found = faiss_ext.recommend(MANY[:2500], "jaccard", 0.9, progress=False)
    assert not found.extrapolated
    for t in found.tried:
        index = faiss.index_factory(64, t.string)
        index.train(MANY[:found.n])
        index.add(MANY[:found.n])
        assert t.bytes_per_vector == pytest.approx(len(faiss.serialize_index(index)) / found.n, rel=0.03)


def test_few_vectors_are_scanned():
    found = faiss_ext.recommend(COUNTS, "js", progress=False)
    assert [t.string for t in found.tried] == [found.string] == ["KFlat(js,store=u8)"]
    assert found.recall == 1 and found.parameters == {} and not found.extrapolated
    assert "measured" in str(found)


def test_held_out_queries_count_as_vectors():
    found = faiss_ext.recommend(MANY[:2000], "jaccard", 0.5, k=1, progress=False)
    assert found.n == 2000 and found.sample_size == 1800 and not found.extrapolated
    assert len(found.tried) > 1 and "among 1,800 vectors, measured" in str(found)
    with pytest.raises(ValueError, match="n is 1900, expected at least 2000"):
        faiss_ext.recommend(MANY[:2000], "jaccard", n=1900, progress=False)


def test_few_vectors_of_many_are_not_only_scanned():
    found = faiss_ext.recommend(COUNTS[:1000], "chi2", 0.9, n=1_000_000, progress=False)
    assert found.sample_size == 900 and found.extrapolated
    assert len(found.tried) > 5 and any("KIVF4096" in t.string for t in found.tried)


def test_it_can_be_pickled_and_knows_its_dimension():
    found = faiss_ext.recommend(COUNTS[:200], "chi2", progress=False)
    again = pickle.loads(pickle.dumps(found))
    assert str(again) == str(found) and again.d == 64
    assert again.build(COUNTS).ntotal == len(COUNTS)
    with pytest.raises(ValueError, match=r"expected an array of shape \(n, 64\), got \(1797, 63\)"):
        again.build(COUNTS[:, 1:])


def test_a_function_cannot_be_pickled_and_that_is_said():
    found = faiss_ext.recommend(COUNTS[:200], lambda x, y: x @ y.T, progress=False)
    with pytest.raises(TypeError, match="Recommendation cannot be pickled, because its kernel contains a Python function"):
        pickle.dumps(found)
    assert copy.deepcopy(found).build(COUNTS).ntotal == len(COUNTS)
    with pytest.raises(TypeError, match="a CallbackKernel cannot be pickled, because it holds a Python function"):
        pickle.dumps(faiss_ext.CallbackKernel(lambda x, y: x @ y.T))


@pytest.mark.parametrize("kernel, normalised", [
    ("jaccard", True), ("laplacian", True), ("normalized(poly)", True), ("poly", False), ("poly(degree=2)", False)])
def test_maps_keep_the_lengths_that_a_kernel_compares(kernel, normalised):
    strings = [c.string for c in advice.string_candidates(faiss_ext.kernel_factory(kernel), 64, [""], 8)]
    maps = [s for s in strings if s.startswith("KPCA")]
    assert maps and all(("normalize=0" in s) != normalised for s in maps)


def test_limits_are_kept():
    found = faiss_ext.recommend(MANY[:2500], "chi2", 0.3, bytes_per_vector=40, progress=False)
    assert found.fits and found.bytes_per_vector <= 40
    assert "Refine" not in found.string and "KFlat" not in found.string
    impossible = faiss_ext.recommend(MANY[:2500], "chi2", 1.0, bytes_per_vector=40, progress=False)
    assert not impossible.fits and impossible.bytes_per_vector <= 40
    assert "none keeps all limits" in str(impossible)
    best = max(t.recall for t in impossible.tried if t.bytes_per_vector <= 40)
    assert impossible.recall == best
    smallest = faiss_ext.recommend(MANY[:2500], "chi2", 0.9, bytes_per_vector=1, progress=False)
    assert not smallest.fits and smallest.bytes_per_vector == min(t.bytes_per_vector for t in smallest.tried)
    with pytest.raises(ValueError, match="seed must be an integer from 0, got -1"):
        faiss_ext.recommend(MANY[:2500], "chi2", seed=-1)


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "jaccard", "dice", "expchi2"])
def test_every_kind_of_kernel(kernel):
    found = faiss_ext.recommend(MANY[:2300], kernel, 0.8, progress=False)
    assert found.fits and len(found.tried) > 4
    index = found.build(MANY[:2300])
    exact = faiss_ext.kernel_factory(kernel_in(found))
    assert exact_recall(index, MANY[:2300], MANY[2300:2400], exact) > 0.8 - 0.33


def test_what_cannot_be_built_is_told():
    # 64 dimensions and a constant: no 128 components
    found = faiss_ext.recommend(MANY[:2300], "poly(degree=1)", 0.8, progress=False)
    assert found.fits and len(found.impossible) == 2
    assert all(string.startswith("KPCA128(poly(degree=1") for string in found.impossible)
    assert all("rank" in reason for reason in found.impossible.values())
    assert "not possible" in str(found)


@pytest.mark.parametrize("kernel", [
    "chi2", "hellinger", "js", "intersection", "dice", "cosine", "linear", "gaussian(gamma=0.01)"])
@pytest.mark.parametrize("d", [3, 64])
def test_every_candidate_can_be_built(kernel, d):
    x = (MANY[:2300, 20:23] if d == 3 else MANY[:2300]) + 0.01
    candidates = advice.string_candidates(faiss_ext.kernel_factory(kernel), d, [""], 8)
    assert len(candidates) > 4
    for candidate in candidates:
        index = candidate.make(d)
        index.train(x)
        index.add(x)
        assert index.search(x[:9], 3)[1].shape == (9, 3)
        assert advice.scans(index) == ("KIVF" not in candidate.string and "HNSW" not in candidate.string)


@pytest.mark.parametrize("n", [400, 2300])
def test_vectors_that_are_mostly_zeros_may_be_stored_as_sparse_ones(n):
    string = "KFlat(chi2,store=sparse)"
    x = MANY[:n] * (np.random.default_rng(0).random((n, 64)) < 0.3)
    found = faiss_ext.recommend(x, "chi2", 1.0, progress=False)
    sparse = [t for t in found.tried if t.string == string]
    assert len(sparse) == 1 and sparse[0].recall == 1 and sparse[0].fits
    full = faiss_ext.recommend(x + 1, "chi2", 1.0, progress=False)
    assert string not in [t.string for t in full.tried]


@pytest.mark.parametrize("kernel, start", [("cosine", "L2norm,PCAR64,KIVF8"), ("linear", "PCAR64,KIVF8"),
                                           ("hellinger", "HKM1(hellinger),PCAR64,KIVF8")])
def test_lists_behind_a_map_of_fewer_dimensions_than_128(kernel, start):
    found = faiss_ext.recommend(MANY[:2000], kernel, 0.8, progress=False)
    assert not found.impossible
    lists = [t for t in found.tried if t.string.startswith(start) and "Refine" in t.string]
    assert {t.string.split("Refine")[0] for t in lists} == {f"{start},", f"{start}(M=64),"}
    assert all(t.fits and t.recall >= 0.8 for t in lists)


def test_costs_of_more_vectors():
    # 1 s for a search, and 1 s for each size of the larger sample
    assert advice.extrapolated(1.25, 2, 100, True) == pytest.approx(101)
    assert advice.extrapolated(2, 1.9, 100, True) == 1.9
    assert advice.extrapolated(1, 2, 16, False) == pytest.approx(8)  # the square root
    assert advice.extrapolated(1, 4**2, 2, False) == pytest.approx(16 * 2**1.3)


def test_fewer_vectors_than_neighbours():
    found = faiss_ext.recommend(COUNTS[:200], "chi2", k=1000, progress=False)
    assert "Recall of the 180 nearest among 180 vectors" in str(found)
    rough = faiss_ext.recommend(COUNTS[:1000], "chi2", 0.5, n=90_000, progress=False)
    assert "(a rough guess, at 100 times as many)" in str(rough)


def kernel_in(found):
    """That of the exact scan, with its bandwidth."""
    flat = next(t.string for t in found.tried if t.string.startswith("KFlat"))
    return re.fullmatch(r"KFlat\((.*?)(,store=\w+)?\)", flat)[1]


def test_a_function_is_a_kernel():
    calls = []

    def shared(X, Y):
        calls.append(len(X))
        return np.minimum(X[:, None], Y[None]).sum(axis=2)

    found = faiss_ext.recommend(MANY[:700], shared, progress=False, k=5)
    assert calls and [t.string for t in found.tried] == ["KFlat(kernel)"]
    index = found.build(MANY[:700])
    exact = faiss_ext.index_factory(64, "KFlat(intersection)")
    exact.add(MANY[:700])
    np.testing.assert_array_equal(index.search(MANY[700:720], 3)[1], exact.search(MANY[700:720], 3)[1])


def test_indexes_for_functions_are_those_of_strings():
    gaussian = faiss_ext.kernel_factory("gaussian(gamma=0.3)")
    mine = faiss_ext.CallbackKernel(gaussian.gram)
    built = {c.string: c for c in advice.callback_candidates(mine, 8)}
    assert len(built) == 4
    for string, candidate in built.items():
        index = candidate.make(64)
        same = faiss.index_factory(64, string.replace("kernel", "gaussian(gamma=0.3)"))
        assert type(index) is type(same)
        if "KLSH" in string:
            assert all(i.base_index.hash.map.auto_rank for i in (index, same))
        x = COUNTS[:600] / 16
        for each in (index, same):
            each.train(x)
            each.add(x)
        D, _ = index.search(x[:50], 4)
        np.testing.assert_allclose(D, same.search(x[:50], 4)[0], rtol=1e-3, atol=1e-3)
        assert candidate.bytes_per_vector(64) >= 256


def test_progress_is_shown_where_it_is_wanted(capsys):
    faiss_ext.recommend(COUNTS[:200], "chi2")
    assert "recommend" in capsys.readouterr().err
    faiss_ext.recommend(COUNTS[:200], "chi2", progress=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("change, error, message", [
    ({"x": COUNTS[0]}, ValueError, "shape"),
    ({"x": COUNTS[:1]}, ValueError, "at least 2 vectors"),
    ({"x": -COUNTS}, RuntimeError, "expected a finite number >= 0"),
    ({"x": np.where(COUNTS > 15, np.nan, COUNTS)}, RuntimeError, "is nan"),
    ({"x": np.where(np.arange(len(COUNTS))[:, None] == 777, -1, COUNTS)}, RuntimeError, "component 0 of vector 777 is -1"),
    ({"queries": np.where(np.arange(9)[:, None] == 7, -1, COUNTS[:9])}, RuntimeError, "queries: .* vector 7 is -1"),
    ({"kernel": "chi3"}, RuntimeError, "unknown kernel"),
    ({"kernel": 3}, TypeError, "kernel must be"),
    ({"recall": 1.5}, ValueError, "at most 1"),
    ({"recall": 0}, ValueError, "above 0"),
    ({"recall": float("nan")}, ValueError, "above 0"),
    ({"recall": "much"}, TypeError, "number"),
    ({"k": 0}, ValueError, "k must"),
    ({"k": 2.5}, TypeError, "integer"),
    ({"bytes_per_vector": -1}, ValueError, "bytes_per_vector"),
    ({"queries": COUNTS[:, :5]}, ValueError, r"queries: expected an array of shape \(n, 64\)"),
    ({"queries": COUNTS[:0]}, ValueError, "no queries were given"),
    ({"n": 5}, ValueError, "n is 5, expected at least"),
    ({"n": 1e9}, TypeError, "n must be an integer"),
    ({"n": 10**6, "k": 100}, ValueError, r"has 1618 vectors, .* at least 40 k = 4000 .* 179 of 1797 vectors are queries"),
    ({"queries": scipy.sparse.csr_matrix(COUNTS)}, TypeError, "sparse matrix; convert it with toarray"),
    ({"x": COUNTS + 1j}, TypeError, "real numbers")])
def test_bad_arguments(change, error, message):
    arguments = {"x": COUNTS, "kernel": "chi2", "recall": 0.9, "progress": False, **change}
    x, kernel, recall = (arguments.pop(name) for name in ("x", "kernel", "recall"))
    with pytest.raises(error, match=message):
        faiss_ext.recommend(x, kernel, recall, **arguments)
