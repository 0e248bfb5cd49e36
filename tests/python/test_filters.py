# SPDX-License-Identifier: MIT
"""Filters of searches, and changes behind ID tables."""

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import BASE, QUERIES

N = len(BASE)


def filled(string, ids=None, d=64):
    index = faiss.index_factory(d, string)
    index.train(BASE)
    if ids is None:
        index.add(BASE)
    else:
        index.add_with_ids(BASE, ids)
    return index


REFINED = ["AHK64(chi2,center=1),BFlat", "AHK64(chi2,center=1),BIVF16", "AHK64(chi2,center=1),BHNSW8", "HKM1(chi2),IVF16,Flat", "HKM1(chi2),PQ8x4",
           "HKM1(chi2),HNSW8", "AHK64(chi2),BHash8x8", "HKM1(chi2),PCAR16,KIVF16", "KFlat(chi2)"]


@pytest.mark.parametrize("front", REFINED)
@pytest.mark.parametrize("count", [0, 3, 400, 900])
def test_with_refine_every_allowed_neighbour_is_found(front, count):
    index = filled(f"{front},Refine(KFlat(chi2))")
    allowed = np.random.default_rng(1).permutation(N)[:count]
    D, I = index.search(QUERIES, 10, filter=allowed)
    assert ((I >= 0).sum(axis=1) == min(count, 10)).all() and np.isin(I[I >= 0], allowed).all()
    if count <= 40:  # few are compared exactly
        exact = filled("KFlat(chi2)")
        np.testing.assert_array_equal(I, exact.search(QUERIES, 10, filter=allowed)[1])
        found, expected = (i.range_search(QUERIES, 0.5, filter=allowed) for i in (index, exact))
        for a, b in zip(found, expected):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("string", ["HKM1(chi2),Flat", "HKM1(chi2),Flat,Refine(KFlat(chi2))", "KFlat(chi2)", "KIVF8"])
def test_ranges_beyond_all_ids_find_nothing(string):
    index = filled(string)
    for allowed in (range(N + 5, N + 50), range(-9, 0), range(2**62, 2**80), range(7, 3)):
        assert (index.search(QUERIES[:2], 3, filter=allowed)[1] == -1).all()
    D, I = index.search(QUERIES[:2], 3, filter=range(-(2**80), 2**80))
    expected_D, expected_I = index.search(QUERIES[:2], 3)
    if "Refine" in string:  # a filter may lead to more candidates
        assert (D <= expected_D).all()
    else:
        np.testing.assert_array_equal(I, expected_I)


def test_the_largest_id_is_in_a_range():
    index = faiss.index_factory(64, "IDMap,KFlat(chi2)")
    index.add_with_ids(BASE[:2], np.array([2**63 - 1, 2**63 - 2]))
    for allowed in (range(2**63 - 5, 2**63), range(0, 2**70), range(-(2**80), 2**80)):
        assert (index.search(BASE[:1], 2, filter=allowed)[1] == [2**63 - 1, 2**63 - 2]).all()


def test_a_function_cannot_change_ids():
    index = filled("KFlat(chi2)")

    def change(ids):
        ids[:] = 0
        return np.ones(len(ids), bool)

    with pytest.raises(ValueError, match="read-only"):
        index.search(QUERIES, 3, filter=change)


@pytest.mark.parametrize("front", ["HKM1(chi2)", "Concurrent,HKM1(chi2)"])
@pytest.mark.parametrize("ids", [None, np.random.default_rng(2).permutation(2 * N)[:N]])
@pytest.mark.parametrize("share", [0.0, 0.004, 0.3, 0.9])
def test_lists_of_faiss_behind_a_map(front, ids, share):
    """As many lists are visited as it takes to find k vectors."""
    index = filled(f"{front},IVF8,Flat", ids)
    allowed = np.random.default_rng(1).choice(index.ids(), int(share * N), replace=False)
    I = index.search(QUERIES, 10, filter=allowed)[1]
    count = min(10, len(allowed))
    assert np.isin(I[:, :count], allowed).all() and (I[:, count:] == -1).all()

    faiss_ext.set_index_parameter(index, "nprobe", 8)
    everything = index.search(QUERIES, N)[1]
    I = index.search(QUERIES, 10, filter=allowed)[1]
    for ids, found in zip(everything, I):
        np.testing.assert_array_equal(found[:count], ids[np.isin(ids, allowed)][:count])


@pytest.mark.parametrize("string", [
    "HKM1(chi2),IVF100_HNSW2,Flat", "HKM1(chi2),IVF100_HNSW2,PQ8x4", "HKM1(chi2),IVF16(IVF8,Flat),Flat", "AHK64(chi2),BIVF100_HNSW2"])
@pytest.mark.parametrize("metric", [faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT])
def test_lists_that_the_quantizer_does_not_find_are_visited(string, metric):
    rng = np.random.default_rng(0)
    centres = rng.gamma(0.4, size=(30, 32)) + 1e-3
    x = centres[rng.integers(30, size=4000)] * rng.gamma(3, size=(4000, 32))
    x = (x / x.sum(axis=1, keepdims=True)).astype("float32")
    index = faiss.index_factory(32, string, metric)
    index.train(x)
    index.add(x)
    for allowed in (np.arange(0, 4000, 400), np.arange(0, 4000, 2)):
        D, I = index.search(x[:50], len(allowed), filter=allowed)
        np.testing.assert_array_equal(np.sort(I, axis=1), np.tile(allowed, (50, 1)))
        if string.endswith("Flat"):
            flat = faiss.index_factory(32, "HKM1(chi2),Flat", metric)
            flat.add(x)
            np.testing.assert_allclose(D, flat.search(x[:50], len(allowed), filter=allowed)[0], rtol=1e-4, atol=1e-5)


def test_the_lists_to_visit_can_be_given_with_a_selector():
    index = filled("HKM1(chi2),IVF8,Flat")
    selector = faiss.IDSelectorRange(50, 53)
    few = index.search(QUERIES, 3, params=faiss.SearchParametersIVF(sel=selector, nprobe=1))[1]
    assert (few == -1).any()
    assert (index.search(QUERIES, 3, params=faiss.SearchParameters(sel=selector))[1] >= 50).all()


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("storage", ["BHash6", "BHash3x10", "BHash12(nflip=2)", "BHash60"])
@pytest.mark.parametrize("share", [0.0, 0.004, 0.3, 0.9])
def test_hash_tables(binary, storage, share):
    ids = np.random.default_rng(2).permutation(2 * N)[:N]

    def make(string):
        if not binary:
            return filled(f"AHK64(chi2,center=1),{string}", ids)
        index = faiss.index_binary_factory(64, f"IDMap,AHK64(chi2,center=1),{string}")
        index.train(BASE)
        index.add_with_ids(BASE, ids)
        return index

    index, scan = make(storage.split("(")[0]), make("BFlat")
    if "nflip" in storage:
        faiss_ext.set_index_parameter(index, "nflip", 2)
    allowed = np.random.default_rng(1).choice(ids, int(share * N), replace=False)
    k = 10
    D, I = index.search(QUERIES, k, filter=allowed)
    count = min(k, len(allowed))
    assert ((I >= 0) == (np.arange(k) < count)).all() and np.isin(I[:, :count], allowed).all()
    exact = scan.search(QUERIES, k, filter=allowed)[0]
    all_found_D, all_found = index.search(QUERIES, N)  # all candidates
    for i in range(len(QUERIES)):
        candidates = all_found_D[i][np.isin(all_found[i], allowed)][:k]
        examined = share > 0.25 and len(candidates) == k
        np.testing.assert_array_equal(D[i], candidates if examined else exact[i])
        assert len(set(I[i][:count])) == count

    # few are compared exactly; otherwise, the tables find no more than without a filter
    reached = scan if len(allowed) <= N // 4 else index
    lims, D, I = reached.range_search(QUERIES, 12)
    kept = np.isin(I, allowed)
    found = index.range_search(QUERIES, 12, filter=allowed)
    np.testing.assert_array_equal(found[0], np.append(0, np.cumsum(kept))[lims])
    np.testing.assert_array_equal(found[1], D[kept])
    np.testing.assert_array_equal(found[2], I[kept])


def test_hash_tables_take_only_a_selector():
    index = filled("AHK64(chi2),BHash8")
    np.testing.assert_array_equal(index.search(QUERIES, 3, params=faiss.SearchParameters())[1], index.search(QUERIES, 3)[1])
    with pytest.raises(RuntimeError, match="SearchParametersIVF"):
        index.search(QUERIES, 3, params=faiss.SearchParametersIVF(sel=faiss.IDSelectorRange(0, 9)))


def test_own_ids_of_lists():
    index = faiss.index_factory(64, "AHK64(chi2,center=1),BIVF8")
    index.train(BASE)
    faiss_ext.set_index_parameter(index, "nprobe", 8)
    index.add_with_ids(BASE[:4], np.array([-5, 7, -9, 2**63 - 1]))
    D, I = index.search(BASE[:1], 4)
    assert D[0, 0] == 0 and (np.diff(D[0]) >= 0).all() and D.max() <= 64
    D, I = index.search(BASE[:1], 4, filter=lambda ids: ids < 0)
    assert sorted(I[0]) == [-9, -5, -1, -1]


def test_selectors_stay_with_their_owner():
    index = filled("KFlat(chi2)")
    selector = faiss.IDSelectorBatch(np.arange(5))
    for _ in range(2):
        assert set(index.search(QUERIES[:1], 5, filter=selector)[1][0]) == set(range(5))
        assert selector.this.own()


@pytest.mark.parametrize("string", ["KFlat(chi2)", "AHK64(chi2),BIVF16,Refine(KFlat(chi2))"])
def test_sets_of_ids(string):
    index = filled(string, np.arange(N) + 10)
    chosen = {12, 700, 15, 2**62}  # the last one is not there
    for ids in (chosen, frozenset(chosen), {np.int64(id) for id in chosen}):
        D, I = index.search(QUERIES[:5], 4, filter=ids)
        assert (np.sort(I) == [-1, 12, 15, 700]).all()
        np.testing.assert_array_equal(D, index.search(QUERIES[:5], 4, filter=list(chosen))[0])
    assert (index.search(QUERIES[:5], 4, filter=set())[1] == -1).all()


@pytest.mark.parametrize("filter, error, text", [
    ({"a"}, TypeError, "integers"), ({False, True}, TypeError, "integers"),
    ({2**63}, ValueError, "id 9223372036854775808 is too large"),
    ("even", TypeError, "must be an array or set of ids"), (3, TypeError, "must be an array or set of ids"),
    (np.ones((3, 2), bool), TypeError, "must be an array or set of ids"), ([1.5], TypeError, "integers"),
    (np.ones(7, bool), ValueError, "has 7 values, expected one for each id"), (["a"], TypeError, "integers"),
    (lambda ids: ids[:3] > 0, TypeError, "must return a boolean array"), (lambda ids: ids, TypeError, "must return a boolean"),
    (range(0, 2**70, 2**64), ValueError, "64-bit integers"), (int, TypeError, "must be an array or set of ids")])
def test_wrong_filters(filter, error, text):
    for index in (filled("KFlat(chi2)"), filled("IDMap,AHK64(chi2),BFlat", np.arange(N) + 10)):
        with pytest.raises(error, match=text):
            index.search(QUERIES, 3, filter=filter)
        assert (index.search(QUERIES, 3, filter=None)[1] >= 0).all()


def test_a_filter_and_parameters():
    index = filled("KFlat(chi2)")
    with pytest.raises(TypeError, match="not both"):
        index.search(QUERIES, 3, filter=[1], params=faiss.SearchParameters())


def test_masks_are_over_ids():
    index = filled("IDMap,KFlat(chi2)", np.arange(N) + 10)
    mask = np.zeros(N + 10, bool)
    mask[12] = True
    assert (index.search(QUERIES, 1, filter=mask)[1] == 12).all()
    assert (index.search(QUERIES, 1, filter=[])[1] == -1).all()


def test_long_ranges_take_no_memory():
    index = filled("KFlat(chi2)", np.arange(N) * 3 - 99)
    for allowed in (range(-999, 10**15, 6), range(10**15 + 2, -10**15, -6), range(-2**63, 2**63, 5)):
        ids = index.search(QUERIES[:5], 20, filter=allowed)[1]
        assert all(int(id) in allowed for id in ids.ravel()) and (ids != -1).all()


def test_flat_behind_a_map_finds_only_selected_vectors():
    index = filled("HKM1(chi2),Flat", np.arange(N) + 10)
    for k in (1, 2):
        for nothing in ([], range(5, 9), lambda ids: ids < 0):
            assert (index.search(QUERIES[:3], k, filter=nothing)[1] == -1).all()


@pytest.mark.parametrize("front", ["AHK64(chi2),BFlat", "HKM1(chi2),PCAR8,KIVF8(nprobe=4)", "HNSW8,KFlat(chi2)"])
def test_k_factor_of_one_search(front):
    index = filled(f"{front},Refine(KFlat(chi2))", np.arange(N) + 10)
    q = QUERIES[:20]
    for k_factor in (1, 7.5):
        index.k_factor = k_factor
        expected = index.search(q, 5)
        index.k_factor = 3
        found = index.search(q, 5, params=faiss_ext.SearchParametersRefine(k_factor))
        assert np.array_equal(found[0], expected[0]) and np.array_equal(found[1], expected[1])
    assert index.k_factor == 3
    selector = faiss.IDSelectorRange(10, 300)
    expected = index.search(q, 5, filter=selector)
    found = index.search(q, 5, params=faiss_ext.SearchParametersRefine(k_factor=3, sel=selector))
    assert np.array_equal(found[1], expected[1]) and (found[1] < 300).all()
    if "KIVF" in front:
        lists = faiss.SearchParametersIVF(nprobe=8)
        wide = index.search(q, 5, params=faiss_ext.SearchParametersRefine(3, base_params=lists))
        faiss_ext.set_index_parameter(index, "nprobe", 8)
        assert np.array_equal(index.search(q, 5)[1], wide[1])
        with pytest.raises(RuntimeError, match="put the selector into base_params"):
            index.search(q, 5, params=faiss_ext.SearchParametersRefine(3, base_params=lists, sel=selector))
    with pytest.raises(ValueError, match="k_factor must be a number from 1"):
        faiss_ext.SearchParametersRefine(0.5)
    with pytest.raises(TypeError, match="sel must be faiss.IDSelector, got 3"):
        faiss_ext.SearchParametersRefine(2, sel=3)
    with pytest.raises(RuntimeError, match="search parameters"):
        filled("KFlat(chi2)").search(q, 5, params=faiss_ext.SearchParametersRefine(2))


@pytest.mark.parametrize("string", ["HKM1(chi2),SQ8", "IDMap,HKM1(chi2),SQ8", "HKM1(chi2),HNSW8_SQ8",
                                    "SQ8,Refine(KFlat(chi2))", "AHK64(chi2),BIVF8"])
def test_training_without_vectors(string):
    with pytest.raises(RuntimeError, match="there are no vectors to train"):
        faiss.index_factory(64, string).train(np.zeros((0, 64), "float32"))


@pytest.mark.parametrize("string, part", [
    ("IDMap,PQ4x4fs,Refine(KFlat(chi2))", "IndexPQFastScan"),
    ("IDMap,HKM1(chi2),HNSW8,Refine(KFlat(chi2))", "IndexHNSW")])
def test_parts_that_cannot_change_are_named(string, part):
    index = filled(string, np.arange(N))
    before = index.search(QUERIES, 5)
    for call in (lambda: index.remove_ids(np.array([3])), lambda: index.update_vectors([3], BASE[:1]),
                 lambda: index.upsert(BASE[:1], [3])):
        with pytest.raises(RuntimeError, match=part) as caught:
            call()
        assert caught.value.unsupported
    np.testing.assert_array_equal(index.search(QUERIES, 5)[1], before[1])


def test_merges_after_removals():
    string = "IDMap,AHK64(chi2,center=1),BIVF8,Refine(KFlat(chi2))"
    index = filled(string, np.arange(N))
    other = faiss.clone_index(index)
    index.remove_ids(np.arange(0, N, 2))
    other.remove_ids(np.arange(1, N, 2))
    index.merge_from(other, 0)
    assert other.ntotal == 0 and sorted(index.ids()) == list(range(N))
    faiss_ext.set_index_parameter(index, "k_factor", N)
    faiss_ext.set_index_parameter(index, "nprobe", 8)
    whole = filled("KFlat(chi2)")
    np.testing.assert_array_equal(np.sort(index.search(QUERIES, 5)[0]), whole.search(QUERIES, 5)[0])
    index.remove_ids(np.arange(9))
    assert index.ntotal == N - 9


def clusters(n, d, rng):
    """Histograms around common centres, 50 around each: a tenth of them holds fewer than 10 of a cluster."""
    centres = rng.gamma(0.3, size=(n // 50, d))
    x = rng.poisson(200 * centres[rng.integers(len(centres), size=n)] / d) + rng.gamma(0.05, size=(n, d))
    return (x / x.sum(axis=1, keepdims=True)).astype("float32")


@pytest.fixture(scope="module")
def clustered():
    """Vectors, queries, an exact index and filters: parts at random, and the vectors nearest to one of them."""
    rng = np.random.default_rng(1)
    x = clusters(23_000, 32, rng)
    base, queries = x[:20_000], x[20_000:]
    exact = faiss.index_factory(32, "KFlat(chi2)")
    exact.add(base)
    by_distance = exact.search(base[:1], len(base))[1][0]
    allowed = [rng.choice(len(base), int(part * len(base)), replace=False) for part in (0.001, 0.01, 0.1, 0.5)]
    allowed += [by_distance[: len(base) // 10], by_distance[: len(base) // 2]]
    return base, queries, [(None, exact.search(queries, 10)[1])] + [
        (a, exact.search(queries, 10, filter=a)[1]) for a in allowed]


@pytest.mark.parametrize("string", [
    "AHK256(chi2),BFlat,Refine(KFlat(chi2))", "AHK256(chi2),BIVF64,Refine(KFlat(chi2))", "HNSW16,KFlat(chi2)",
    "AHK256(chi2),BHNSW16,Refine(KFlat(chi2))",
    "HKM1(chi2),PCAR32,KIVF64(nprobe=6),Refine(KFlat(chi2))", "HKM1(chi2),IVF64,Flat,Refine(KFlat(chi2))",
    "HKM1(chi2),PCAR32,KIVF64(nprobe=6)", "HKM1(chi2),IVF64,Flat"])
def test_recall_with_a_filter_is_not_below_that_without(clustered, string):
    base, queries, jobs = clustered
    index = faiss.index_factory(32, string)
    index.train(base)
    index.add(base)
    if "Refine" in string:
        faiss_ext.set_index_parameter(index, "k_factor", 8)
    if "IVF" in string and "nprobe" not in string:
        faiss_ext.set_index_parameter(index, "nprobe", 6)
    found = []
    for allowed, truth in jobs:
        I = index.search(queries, 10, filter=allowed)[1]
        assert allowed is None or np.isin(I, allowed).all()  # no -1 either
        found.append(np.mean([len(set(a) & set(b)) for a, b in zip(I, truth)]) / 10)
    # Hoeffding, for differences from -1 to 1 of 3,000 queries: an error of 0.09 has p < 6e-6
    assert min(found[1:]) > found[0] - 0.09, found


@pytest.mark.parametrize("string", ["KFlat(chi2)", "HNSW8,KFlat(chi2)", "KIVF4", "HKM1(chi2),Flat", "IDMap,KFlat(chi2)", "Concurrent,KFlat(chi2)",
                                    "AHK64(chi2),BFlat,Refine(KFlat(chi2))", "Concurrent,Flat"])
@pytest.mark.parametrize("ids", [None, np.arange(N) * 3 + 7])
def test_vectors_are_returned_with_a_filter(string, ids):
    index = filled(string, ids)
    allowed = index.ids()[::4]
    D, I, R = index.search_and_reconstruct(QUERIES, 5, filter=allowed)
    expected = index.search(QUERIES, 5, filter=allowed)
    np.testing.assert_array_equal(I, expected[1])
    np.testing.assert_array_equal(D, expected[0])
    found = I >= 0
    assert found.any() and np.isin(I[found], allowed).all()
    np.testing.assert_allclose(R[found], index.reconstruct_batch(I[found]), rtol=1e-5, atol=1e-6)
    with pytest.raises(TypeError, match="give filter or params, not both"):
        index.search_and_reconstruct(QUERIES, 5, filter=allowed, params=faiss.SearchParameters())


@pytest.mark.parametrize("string", ["SIK64(gaussian),BFlat", "SIK64(gaussian),BIVF4", "SIK64(gaussian),BHNSW8", "BConcurrent,SIK64(gaussian),BFlat", "IDMap,SIK64(gaussian),BFlat"])
def test_codes_are_returned_with_a_filter(string):
    index = faiss.index_binary_factory(64, string)
    index.train(BASE)
    index.add(BASE)
    D, I, R = index.search_and_reconstruct(QUERIES, 5, filter=range(10, 90))
    np.testing.assert_array_equal(I, index.search(QUERIES, 5, filter=range(10, 90))[1])
    found = I >= 0
    assert found.any() and ((I[found] >= 10) & (I[found] < 90)).all()
    np.testing.assert_array_equal(R[found], index.reconstruct_batch(I[found]))


def test_scores_with_a_filter():
    for string in ("KFlat(chi2)", "HNSW8,KFlat(chi2)"):
        index = filled(string, np.arange(N) + 100)
        scores, I = index.search_scores(QUERIES, 5, filter=range(200, 300))
        np.testing.assert_array_equal(I, index.search(QUERIES, 5, filter=range(200, 300))[1])
        np.testing.assert_array_equal(index.values_of_scores(scores, I)[0], index.search(QUERIES, 5, filter=range(200, 300))[0])
