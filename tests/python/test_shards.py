# SPDX-License-Identifier: MIT
"""One index in several pieces finds what one in one piece does: in a process, in a folder, on a cluster that loses workers."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time

import faiss
import faiss_ext
import numpy as np
import pytest
from faiss_ext import ShardError, build_shards, open_shards
from faiss_ext.command_line import main
from faiss_ext.shard_folder import ShardFolder, checksum
from faiss_ext.shards import best
from faiss_ext.sources import drawn
from helpers import COUNTS
from hypothesis import given, settings
from hypothesis import strategies as st

N = 1500
X, Q = COUNTS[:N].astype("float32"), COUNTS[N:].astype("float32")
CUTS = (0, 400, 401, 900, N)
PARTS = [X[a:b] for a, b in zip(CUTS, CUTS[1:])]
REFINED = "AHK128(chi2),BFlat,Refine(KFlat(chi2))"
STRINGS = [
    "KFlat(chi2)", "KFlat(chi2,store=u8)", REFINED, "AHK128(chi2,center=1),BFlat,Refine(KFlat(chi2,store=f16))",
    "HKM1(chi2),PCAR16,KIVF8(M=4),Refine(KFlat(chi2))", "HKM1(chi2),PCAR16,KIVF8(M=4)", "AHK128(chi2),AFlat",
    "SIK64(gaussian),BIVF8", "SIK128(gaussian),BFlat,Refine(KFlat(gaussian))", "KLSH64(gaussian,p=100),BFlat,RFlat",
    # where nearly all kernel values vanish
    "KFlat(gaussian(gamma=1))", "HKM1(chi2),PCAR16,KFlat(gaussian(gamma=99))", "AHK128(chi2),BFlat,Refine(KFlat(gaussian(gamma=1)))",
    "CWS256,BFlat,Refine(KFlat(jaccard))", "KPCA16(chi2),KIVF4,Refine(KFlat(chi2))",
    # candidates are ranked again inside wrappers
    f"Concurrent,{REFINED}", f"Concurrent,IDMap,{REFINED}", "Concurrent,IDMap,KFlat(chi2)",
    "Concurrent,HKM1(chi2),PCAR16,KIVF8(M=4),Refine(KFlat(chi2))"]


GONE = np.random.default_rng(5).permutation(N)[:200]


def built(partitions, string, *args, **kwargs):
    return build_shards(partitions, string, *args, progress=False, **kwargs)


@pytest.fixture
def files(tmp_path):
    names = [tmp_path / f"part {i}.npy" for i in range(len(PARTS))]
    for name, part in zip(names, PARTS):
        np.save(name, part)
    return names


def whole(index):
    """One index of all vectors, with the same model."""
    one = (faiss_ext.clone_binary_index if index.is_binary else faiss.clone_index)(index.model)
    one.add(X)
    return one


def same_results(index, one, q=Q, k=10, ids=True, atol=0):
    """ids=False: where FAISS orders those at equal distances as it comes."""
    for found, expected in list(zip(index.search(q, k), one.search(q, k)))[: 1 + ids]:
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


# ------------------------------------------------------- the same results

@pytest.mark.parametrize("metric", [faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT])
@pytest.mark.parametrize("string", STRINGS)
def test_shards_find_what_one_index_finds(files, string, metric):
    index = built(files, string, metric=metric, parameters={"k_factor": 3} if "Refine" in string else {})
    assert (index.ntotal, index.d, index.metric_type) == (N, 64, metric)
    one = whole(index)
    for k in (1, 10, 700):
        same_results(index, one, Q[:50], k, not string.endswith("RFlat"))
    same_results(index, one, Q[:1])
    assert index.search(Q[:0], 3)[0].shape == (0, 3)


@pytest.mark.parametrize("string", ["KFlat(chi2)", "SIK64(gaussian),BIVF8", "HKM1(chi2),PCAR16,KIVF8(M=4)"])
@pytest.mark.parametrize("metric", [faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT])
def test_range_searches(string, metric):
    index = built(PARTS, string, metric=metric)
    one = whole(index)
    for radius in (np.median(one.search(Q, 10)[0]), 0.0):
        lims, D, I = index.range_search(Q, float(radius))
        expected_lims, expected_D, expected_I = one.range_search(Q, float(radius))
        np.testing.assert_array_equal(lims, expected_lims)
        for a, b in zip(lims, lims[1:]):
            a, b = int(a), int(b)
            found, expected = np.argsort(I[a:b]), np.argsort(expected_I[a:b])
            np.testing.assert_array_equal(I[a:b][found], expected_I[a:b][expected])
            np.testing.assert_array_equal(D[a:b][found], expected_D[a:b][expected])


@pytest.mark.parametrize("string", ["BFlat", "BIVF8", "BKFlat(jaccard)"])
def test_packed_bits(string):
    bits = np.packbits(X > 4, axis=1)
    index = built([bits[:400], bits[400:]], string)
    one = faiss_ext.clone_binary_index(index.model)
    one.add(bits)
    same_results(index, one, bits[::7])
    same_results(index.to_faiss(), one, bits[::7])
    with pytest.raises(TypeError, match="uint8"):
        index.search(X, 3)


@pytest.mark.parametrize("string", [
    "KFlat(jaccard)", "CWS128,BFlat", "CWS128,BFlat,Refine(KFlat(jaccard))", "KPCA16(jaccard),KIVF4", "KFlat(jaccard,store=sparse)"])
def test_packed_bits_for_an_index_of_vectors(string, tmp_path):
    bits = X[:, :61] > 4
    packed = np.packbits(bits, axis=1)
    index = built([packed[:400], packed[400:]], string, packed=61, folder=tmp_path / "shards")
    of_vectors = built([bits[:400].astype("float32"), bits[400:].astype("float32")], string)
    for found, expected in zip(index.search(packed[::7], 5, packed=61), of_vectors.search(bits[::7], 5)):
        np.testing.assert_array_equal(found, expected)
    radius = float(np.median(index.search(packed[::7], 5, packed=True)[0]))
    for found, expected in zip(index.range_search(packed[::7], radius, packed=61), of_vectors.range_search(bits[::7], radius)):
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="packed is 32, a number of bits, expected 61 or True"):
        index.search(packed, 5, packed=32)


def test_bytes_that_may_be_packed_bits_or_counts_need_packed():
    with pytest.raises(ValueError, match="packed=True or packed=False"):
        built([np.packbits(X > 4, axis=1)], "KFlat(jaccard)")


def test_packed_bits_that_do_not_fill_the_last_byte(tmp_path):
    bits = np.packbits(X[:, :61] > 4, axis=1)
    index = built([bits[:400], bits[400:]], "BKFlat(hamming)", packed=61, folder=tmp_path / "shards")
    one = faiss_ext.clone_binary_index(index.model)
    one.add(bits)
    assert index.d == one.d == 61
    same_results(index, one, bits[::7])
    with pytest.raises(ValueError, match="61 bits.*multiples of 8"):
        index.to_faiss()
    np.save(tmp_path / "bits.npy", bits)
    found = subprocess.run(
        [sys.executable, "-m", "faiss_ext", "search", str(tmp_path / "shards"), str(tmp_path / "bits.npy"), "-k", "1"],
        capture_output=True, text=True, check=True)
    # equal vectors may have smaller ids
    assert [line.split(":")[::2] for line in found.stdout.splitlines()] == [[str(i), "1"] for i in range(len(bits))]


def test_more_neighbours_than_vectors():
    index = built([X[:3], X[3:5]], REFINED)
    D, I = index.search(Q[:2], 9)
    assert (np.sort(I[:, :5]) == np.arange(5)).all() and (I[:, 5:] == -1).all()
    assert (D[:, 5:] == np.finfo("float32").max).all()


@pytest.mark.parametrize("string", [REFINED, "Flat", "PCA16,Flat", "Flat,Refine(KFlat(chi2))", "SIK64(gaussian),BIVF4"])
def test_partitions_may_be_empty(string):
    index = built([X[:0], X[:700], X[:0], X[700:]], string)
    # BLAS, by which FAISS's matrices and Flat compute, rounds sums of d products depending on how many vectors there are
    atol = 2 * X.shape[1] * 2.0 ** -24 * 4 * (X ** 2).sum(axis=1).max() if string.endswith(",Flat") or string == "Flat" else 0
    same_results(index, whole(index), ids=not string.endswith("Flat"), atol=atol)
    if string == "Flat":
        np.testing.assert_array_equal(index.to_faiss().search(X[:50], 1)[1][:, 0], np.arange(50))


def test_errors_name_the_partition(files):
    with pytest.raises(ValueError, match="^partition .*part 0.npy: BFlat takes packed bits"):
        built(files, "BFlat")
    bad = [part.copy() for part in PARTS]
    bad[2][7, 9] = -1
    with pytest.raises(ShardError, match="training, .*component 9 of vector 7 of array 3 is -1"):
        built([X[:0], *bad], "AHK128(chi2,center=1),BFlat")


@pytest.mark.parametrize("string", ["BHash8", "SIK64(gaussian),BHash8"])
def test_radii_of_any_kind(string):
    x = X if "SIK" in string else np.packbits(X > 4, axis=1)
    index = built([x[:400], x[400:]], string)
    expected = index.range_search(x[:20], 9)
    assert len(expected[1]) > 20
    for radius in (9.0, np.float32(9), np.int64(9), np.uint8(9), 8.5):
        for a, b in zip(index.range_search(x[:20], radius), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_ranges_are_ranked_again():
    index = built(PARTS, REFINED)
    index.set_parameter("k_factor", len(X))  # all vectors are candidates
    exact = faiss.index_factory(64, "KFlat(chi2)")
    exact.add(X)
    radius = float(np.median(exact.search(Q, 20)[0][:, -1]))
    found, expected = index.range_search(Q, radius), exact.range_search(Q, radius)
    np.testing.assert_array_equal(found[0], expected[0])
    for i in range(len(Q)):
        part = slice(*found[0][i : i + 2])
        order = np.argsort(found[2][part])
        np.testing.assert_array_equal(found[2][part][order], expected[2][part])
        np.testing.assert_array_equal(found[1][part][order], expected[1][part])


def test_without_vectors():
    with pytest.raises(ShardError, match="no vectors in the partitions"):
        built([X[:0]], REFINED)


def test_parameters():
    index = built(PARTS, REFINED)
    before = index.search(Q, 10)[0].sum()
    index.set_parameter("k_factor", 8)
    one = whole(index)
    one.k_factor = 8
    same_results(index, one)
    assert index.search(Q, 10)[0].sum() < before
    with pytest.raises(ValueError, match="k_factor"):
        index.set_parameter("k_factor", 0)
    with pytest.raises(ValueError, match="nprobe"):
        index.set_parameter("nprobe", 3)
    same_results(index, one)
    lists = built(PARTS, "HKM1(chi2),PCAR16,KIVF8(M=4)")
    lists.set_parameter("nprobe", 1)
    one = whole(lists)
    faiss_ext.set_index_parameter(one, "nprobe", 1)
    same_results(lists, one)


def test_the_training_sample_is_that_of_one_file(files):
    string = "HKM1(chi2),PCAR16,KIVF8(M=4)"
    index = built(files, string, train=300)
    np.save(files[0].parent / "all.npy", X)
    one = faiss_ext.build_from(files[0].parent / "all.npy", string, train=300, progress=False)
    same_results(index, one)


def test_graphs_find_nearly_all():
    index = built(PARTS, "HNSW16,KFlat(chi2)")
    expected = built(PARTS, "KFlat(chi2)").search(Q, 10)[1]
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(index.search(Q, 10)[1], expected)]) > 0.95


def test_reconstruct():
    index = built(PARTS, "KFlat(chi2)")
    for key in (0, 399, 400, 401, N - 1):
        np.testing.assert_array_equal(index.reconstruct(key), X[key])
    for key in (-1, N):
        with pytest.raises(ValueError, match=f"id {key}"):
            index.reconstruct(key)
    for key in (1.5, "1"):
        with pytest.raises(TypeError, match="integer"):
            index.reconstruct(key)
    np.testing.assert_array_equal(index.reconstruct(np.int32(7)), X[7])


def test_ids_that_are_there():
    index = built(PARTS, "KFlat(chi2)")
    assert index.contains([0, N - 1, N, -1]).tolist() == [True, True, False, False] and index.contains(3).shape == ()
    for ids, error, message in (([1.5], TypeError, "ShardedIndex.contains: ids must be integers"), ([2**63], ValueError, "too large"),
                                ([[1]], ValueError, "expected ids of shape"), ("a", TypeError, "integers")):
        with pytest.raises(error, match=message):
            index.contains(ids)
    index.close()
    with pytest.raises(ValueError, match="has been closed"):
        index.contains([1])


def test_closed(tmp_path):
    with built(PARTS, REFINED) as index:
        same_results(index, whole(index))
    for use in (lambda: index.search(Q, 3), lambda: index.search(Q[:0], 3), index.to_faiss, lambda: index.save(tmp_path / "s"),
                lambda: index.set_parameter("k_factor", 2)):
        with pytest.raises(ValueError, match="has been closed"):
            use()
    assert not (tmp_path / "s").exists()


def test_answers_are_put_together_in_blocks(monkeypatch):
    index = built(PARTS, REFINED, parameters={"k_factor": 3})
    monkeypatch.setattr(faiss_ext.shards, "ANSWERS", 4 * 30 * 7)
    sizes = []
    run = index.place.run
    monkeypatch.setattr(index.place, "run", lambda method, x, *rest: sizes.append(len(x)) or run(method, x, *rest))
    same_results(index, whole(index))
    assert max(sizes) == 7


FILTERS = {
    "ids": np.random.default_rng(1).permutation(N)[:300], "no ids": [], "mask": np.arange(N) % 7 == 2, "range": range(350, 950),
    "steps": range(N, -9, -7), "far": range(N, 2**70), "function": lambda ids: ids % 3 == 0, "selector": faiss.IDSelectorRange(300, 1000)}
# strings and parameters with which nearly all neighbours are found
CHANGING = {
    "KFlat(chi2)": {}, "HKM1(chi2),PCAR16,KFlat(gaussian(gamma=99))": {}, "Concurrent,KFlat(chi2)": {},
    "HKM1(chi2),PCAR16,KIVF8(M=4)": {"nprobe": 8}, REFINED: {"k_factor": 50}, f"Concurrent,IDMap,{REFINED}": {"k_factor": 50},
    "HNSW16,KFlat(chi2)": {"efSearch": 200}}


def nearly_same(found, expected):
    return np.isclose(found, expected, rtol=1e-4, atol=1e-5).mean() > 0.99


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("string", [*CHANGING, "PCA16,Flat", "IVF4,Flat"])
def test_filters(string, filter):
    index = built(PARTS, string, parameters=CHANGING.get(string, {"nprobe": 4} if "IVF" in string else {}))
    allowed, one = FILTERS[filter], whole(index)
    if isinstance(one, (faiss.IndexPreTransform, faiss.IndexIVF)) and not hasattr(one, "ids"):
        one = faiss_ext.IndexPreTransformSIMD(one)  # with filter=
    D, I = index.search(Q, 10, filter=allowed)
    expected = one.search(Q, 10, filter=allowed)
    assert nearly_same(D, expected[0]) and (I == expected[1]).mean() > 0.95
    if "HNSW" not in string:
        lims, D, I = index.range_search(Q, 0.1, filter=allowed)
        expected = one.range_search(Q, 0.1, filter=allowed)
        np.testing.assert_array_equal(lims, expected[0])
        for i, j in zip(lims, lims[1:]):
            assert set(I[i:j]) == set(expected[2][i:j])


@pytest.mark.parametrize("filter, error, text", [
    (3, TypeError, "ShardedIndex.search: filter must be an array or set of ids"), ([1.5], TypeError, "integers"),
    (np.ones(N - 1, bool), ValueError, "has 1,499 values, expected one for each id from 0 to 1,499"),
    (lambda ids: ids, TypeError, "must return a boolean array"), (range(0, 2**70, 2**64), ValueError, "64-bit integers")])
def test_wrong_filters(filter, error, text):
    index = built(PARTS, "KFlat(chi2)")
    with pytest.raises(error, match=text):
        index.search(Q, 3, filter=filter)


@pytest.mark.parametrize("string", CHANGING)
def test_removals(tmp_path, string):
    index = built(PARTS, string, parameters=CHANGING[string])
    rest = np.setdiff1d(np.arange(N), GONE)
    one = faiss.clone_index(index.model)
    one.add_with_ids(X[rest], rest)
    assert index.remove_ids(GONE[:50]) == 50 and index.remove_ids(faiss.IDSelectorBatch(GONE)) == len(GONE) - 50
    assert index.remove_ids(np.array([GONE[0], -1, N + 5])) == 0
    saved = tmp_path / "saved"
    index.save(saved)
    for each in (index, open_shards(saved), open_shards(saved, io_flags=faiss.IO_FLAG_MMAP), pickle.loads(pickle.dumps(index))):
        assert len(each) == each.ntotal == len(rest) and sorted(each.ids()) == rest.tolist()
        asked = np.array([*GONE[:3], *rest[:3], -1, N, 2**62, rest[-1]])
        np.testing.assert_array_equal(each.contains(asked), np.isin(asked, rest))
        assert each.contains(int(rest[0])) and not each.contains(int(GONE[0])) and each.contains([]).shape == (0,)
        for allowed in (None, np.arange(300, 1000)):
            D, I = each.search(Q, 10, filter=allowed)
            assert nearly_same(D, one.search(Q, 10, filter=allowed)[0]) and np.isin(I, rest if allowed is None else allowed).all()
        with pytest.raises(ValueError, match="not available after a removal"):
            each.to_faiss()
    again = open_shards(saved)
    assert again.remove_ids(np.arange(N)) == len(rest) and again
    again.save(tmp_path / "none")
    for none in (again, open_shards(tmp_path / "none")):
        assert len(none) == len(none.ids()) == 0 and (none.search(Q, 3)[1] == -1).all()


@pytest.mark.parametrize("string", ["KFlat(chi2)", REFINED, f"Concurrent,{REFINED}"])
def test_vectors_are_found_by_their_ids_after_a_removal(string):
    index = built(PARTS, string)
    index.remove_ids(GONE)
    ids = index.ids()
    for id in ids[::100].tolist():
        np.testing.assert_array_equal(index.reconstruct(id), X[id])
    D, I = index.search(Q, 5)
    values = faiss_ext.kernel_values(index, D, I, Q)
    expected = faiss.index_factory(64, "KFlat(chi2)", faiss.METRIC_INNER_PRODUCT)
    expected.add(X)
    np.testing.assert_allclose(values, expected.compute_distance_subset(Q, I), rtol=1e-5)
    for call in (lambda: index.reconstruct(int(GONE[3])),
                 lambda: faiss_ext.kernel_values(index, np.zeros((1, 1), "float32"), GONE[3:4, None], Q[:1])):
        with pytest.raises(ValueError, match=f"there is no vector with id {GONE[3]}"):
            call()


@pytest.mark.parametrize("string, text", [
    ("PCA16,Flat", "IndexPreTransform cannot remove vectors without changing other ids"), ("HKM1(chi2),HNSW8", "does not support remove_ids")])
def test_removals_that_are_refused(string, text):
    index = built(PARTS, string)
    before = index.search(Q, 5)
    with pytest.raises(RuntimeError, match=text) as error:
        index.remove_ids(GONE)
    assert error.value.unsupported and len(index) == N
    for found, expected in zip(index.search(Q, 5), before):
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(TypeError, match="ShardedIndex.remove_ids: expected an array of ids or an IDSelector"):
        index.remove_ids(3)


def test_numbers_of_numpy(tmp_path):
    index = built(PARTS, REFINED, folder=tmp_path / "a", parameters={"k_factor": np.float32(2)}, train=np.int64(500))
    index.set_parameter("k_factor", np.int64(3))
    index.save(tmp_path / "b")
    assert open_shards(tmp_path / "b").parameters == {"k_factor": 3}


def test_one_process_has_faiss_shards():
    index = built(PARTS, "AHK128(chi2),BFlat")
    same_results(index.to_faiss(), whole(index))
    index = built(PARTS, REFINED)
    group, one = index.to_faiss(), whole(index)
    del index
    assert (group.search(Q, 10)[0] <= one.search(Q, 10)[0]).all()
    assert isinstance(group, faiss.IndexShards) and group.ntotal == N


@pytest.mark.parametrize("change", [
    lambda shard: shard.remove_ids(np.array([3])), lambda shard: shard.add(X[:1]),
    lambda shard: (shard.remove_ids(np.array([3])), shard.add_with_ids(X[:1], np.array([3])))])
@pytest.mark.parametrize("string", ["KFlat(chi2)", REFINED])
def test_shards_that_were_changed_are_refused(tmp_path, string, change):
    index = built(PARTS, string)
    change(faiss.downcast_index(index.to_faiss().at(2)))
    D, I = np.zeros((1, 1), "float32"), np.full((1, 1), 450)
    for call in (lambda: index.search(Q, 3), lambda: index.range_search(Q, 0.1), lambda: index.reconstruct(450), index.to_faiss,
                 lambda: index.save(tmp_path / "changed"), lambda: faiss_ext.kernel_values(index, D, I, Q[:1])):
        with pytest.raises(ValueError, match="changed after it was built"):
            call()


@given(st.integers(1, 4), st.integers(0, 9), st.integers(1, 12), st.booleans(), st.integers(0, 10**6))
@settings(max_examples=200, deadline=None)
def test_best_is_a_sort(rows, width, k, larger, seed):
    rng = np.random.default_rng(seed)
    D = rng.integers(-3, 4, (rows, width)).astype("float32") * np.float32(rng.choice([1e-38, 0.5, 1e30]))
    I = np.where(rng.random((rows, width)) < 0.2, -1, rng.integers(0, 2**40, (rows, width)))
    found_D, found_I = best(D.copy(), I.copy(), k, larger)
    for row in range(rows):
        columns = sorted((j for j in range(width) if I[row, j] >= 0), key=lambda j: -D[row, j] if larger else D[row, j])[:k]
        padding = k - len(columns)
        assert found_I[row].tolist() == I[row, columns].tolist() + [-1] * padding
        worst = np.finfo("float32").max * (-1 if larger else 1)
        assert found_D[row].tolist() == D[row, columns].tolist() + [worst] * padding


# ---------------------------------------------------------------- what is refused

@pytest.mark.parametrize("partitions, error, message", [
    ([], ValueError, "there are none"), (X, TypeError, "expected a list"), ("x.npy", TypeError, "expected a list"),
    ([X, X[:, :3]], ShardError, "array 1 has d 3, and array 0 64"),
    ([X, X.astype("uint8")], ShardError, "array 1 has dtype uint8"),
    ([X[0]], ShardError, "two-dimensional"), (["missing.npy", X], ShardError, "missing.npy: cannot be read")])
def test_bad_partitions(partitions, error, message):
    with pytest.raises(error, match=message):
        built(partitions, REFINED)


def test_a_sample_says_which_vector_is_bad():
    bad = np.repeat(X, 2, axis=0)
    bad[2222, 5] = np.nan
    with pytest.raises(ShardError, match="component 5 of vector 722 "):
        built([bad[:1500], bad[1500:]], "KPCA16(chi2),Flat", train=2900, seed=1)


@pytest.mark.parametrize("string", ["KFlat(chi2)", "AHK64(chi2,center=1),BFlat,Refine(KFlat(chi2))"])
def test_names_of_partitions_may_look_like_vectors(tmp_path, string):
    folder = tmp_path / "vector 2 interrupted"
    folder.mkdir()
    bad = PARTS[0].copy()
    bad[7, 9] = -1
    paths = [folder / "vector 4.npy", folder / "vector 5.npy"]
    np.save(paths[0], PARTS[1])
    np.save(paths[1], bad)
    with pytest.raises(ShardError, match="vector 2 interrupted/vector 5.npy") as caught:
        built(paths, string)
    assert "component 9 of vector 7 " in str(caught.value)


def test_all_partitions_that_fail_are_named():
    bad = [part.copy() for part in PARTS]
    bad[0][3, 5], bad[2][7, 9] = np.nan, -1
    with pytest.raises(ShardError) as caught:
        built(bad, REFINED)
    assert "partition array 0: component 5 of vector 3 is nan" in str(caught.value)
    assert "partition array 2: RuntimeError: IndexFlatKernel::add: component 9 of vector 7 is -1" in str(caught.value)
    assert "array 1" not in str(caught.value)


@pytest.mark.parametrize("string, message", [
    ("IDMap2,KFlat(chi2)", "without IDMap"), ("AHK128(chi3),BFlat", "chi3"), ("BFlat", "packed bits")])
def test_bad_strings(string, message):
    with pytest.raises((ValueError, RuntimeError), match=message):
        built(PARTS, string)


def test_settings_that_do_not_exist():
    index = built([X[:400], X[400:]], "KFlat(chi2)")
    for name in ("k_factor", "nprobe", "foo"):
        with pytest.raises(AttributeError, match=f"{name} does not exist; set_parameter"):
            setattr(index, name, 7)
    for name in ("d", "ntotal", "shards", "model"):
        with pytest.raises(AttributeError, match=f"{name} is read-only"):
            setattr(index, name, 7)
    assert not hasattr(index, "foo") and index.d == X.shape[1]


def test_bad_searches():
    index = built(PARTS, REFINED)
    for k in (0, -1):
        with pytest.raises(ValueError, match="k must be"):
            index.search(Q, k)
    with pytest.raises(ValueError, match="64"):
        index.search(Q[:, :5], 3)
    with pytest.raises((ValueError, RuntimeError), match="finite"):
        index.search(np.full((1, 64), np.nan), 3)
    same_results(index, whole(index))


# ------------------------------------------------------------------- folders

@pytest.mark.parametrize("string", STRINGS + ["HNSW8,KFlat(chi2)"])
def test_a_folder_opens_anywhere(files, tmp_path, string):
    index = built(files, string, folder=tmp_path / "made", exact="memory", parameters={"k_factor": 2} if "," in string and (
        "Refine" in string) else {})
    expected = index.search(Q, 10)
    os.rename(tmp_path / "made", tmp_path / "moved")
    for name in files:
        os.unlink(name)
    again = open_shards(tmp_path / "moved")
    assert repr(again) == repr(index) and again.string == string
    for found, e in zip(again.search(Q, 10), expected):
        np.testing.assert_array_equal(found, e)


def test_vectors_stay_in_their_files(files, tmp_path):
    index = built(files, REFINED, folder=tmp_path / "made")
    shard = index.place.shards[3].index
    assert isinstance(faiss.downcast_index(shard.refine_index), faiss_ext.IndexFileKernel)
    same_results(index, whole(index))
    for name in files:  # moved with the index
        shutil.move(name, tmp_path / "made")
    os.rename(tmp_path / "made", tmp_path / "moved")
    same_results(open_shards(tmp_path / "moved"), whole(index))
    changed = X[:400].copy()
    changed[5, 5] += 1
    np.save(tmp_path / "moved" / files[0].name, changed)
    with pytest.raises(ShardError, match="part 0.npy.*changed"):
        open_shards(tmp_path / "moved")


def test_manifest(files, tmp_path):
    built(files, "SIK128(gaussian,seed=7),BFlat,Refine(KFlat(gaussian))", folder=tmp_path / "made", seed=11)
    assert sorted(os.listdir(tmp_path / "made")) == [
        "manifest.json", "model.index", *(f"shard-0000{i}.index" for i in range(4))]
    manifest = json.loads((tmp_path / "made" / "manifest.json").read_text())
    assert manifest["format"] == "faiss_ext shards" and manifest["version"] == 1
    assert manifest["faiss_ext"] == faiss_ext.__version__ and manifest["faiss"] == faiss.__version__
    assert manifest["string"] == "SIK128(gaussian,seed=7),BFlat,Refine(KFlat(gaussian))"
    assert "gamma=" in manifest["trained_string"]
    assert [p["path"] for p in manifest["build"]["partitions"]] == [os.fspath(name) for name in files]
    assert manifest["seeds"]["training sample"] == 11 and 7 in manifest["seeds"].values()
    assert [s["first"] for s in manifest["shards"]] == list(CUTS[:-1]) and manifest["ntotal"] == N
    assert [s["partition"] for s in manifest["shards"]] == [os.fspath(name) for name in files]
    for entry in [*manifest["shards"], manifest["model"]]:
        name = tmp_path / "made" / entry["file"]
        shown = subprocess.run(["sha256sum", name], capture_output=True, text=True, check=True).stdout
        assert shown.split()[0] == entry["sha256"] and name.stat().st_size == entry["bytes"]


@pytest.fixture
def folder(tmp_path):
    built(PARTS, REFINED, folder=tmp_path / "made")
    return tmp_path / "made"


def change(folder, **values):
    manifest = json.loads((folder / "manifest.json").read_text())
    for path, value in values.items():
        *keys, last = path.split("__")
        place = manifest
        for key in keys:
            place = place[int(key) if key.isdigit() else key]
        if value is None:
            del place[last]
        else:
            place[last] = value
    if "sha256" not in values:
        manifest["sha256"] = checksum(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_partitions_that_are_no_list():
    with pytest.raises(TypeError, match="partitions: expected a list of files or arrays.*got None"):
        build_shards(None, "KFlat(chi2)")


@pytest.mark.parametrize("values, message", [
    ({"sha256": "0"}, "does not have the checksum"), ({"string": None}, "it has no 'string'"), ({"version": 2}, "format version 2"), ({"format": "x"}, "not of a folder of shards"),
    ({"ntotal": 3}, "ntotal is 3"), ({"shards__1__first": 7}, "shard-00001.index begins with id 7, expected 400"),
    ({"shards__1__sha256": "0"}, "sha256"), ({"shards__1__bytes": 5}, "bytes"), ({"shards": 5}, "damaged"),
    ({"shards": None}, "damaged.*shards"), ({"shards__2__ntotal": None}, "damaged"), ({"d": 32}, "d is 64"),
    ({"metric": 0}, "metric_type is 1"), ({"shards__0__file": "../x"}, "not a file of this folder"),
    ({"shards__0__file": "shard-00001.index"}, "damaged, or of another index"), ({"parameters": None}, "damaged"),
    ({"model__sha256": "1"}, "model.index: sha256"), ({"parameters": []}, "damaged"), ({"shards": [], "ntotal": 0}, "no shards"),
    ({"binary": True}, "model.index: "), ({"string": 5}, "manifest.json is damaged: string is 5, expected a str"),
    ({"trained_string": []}, "manifest.json is damaged: trained_string"), ({"seeds": 5}, "manifest.json is damaged: seeds"),
    ({"seeds": {"a": "7"}}, "manifest.json is damaged: the seed of a is '7', expected an int"), ({"d": "64"}, "damaged: d is '64'"),
    ({"parameters": {"nprobe": 3}}, "manifest.json: parameters: .*nprobe"),
    ({"parameters": {"k_factor": "x"}}, "manifest.json: parameters: .*k_factor")])
def test_a_manifest_that_does_not_fit(folder, values, message):
    change(folder, **values)
    with pytest.raises(ShardError, match=message):
        open_shards(folder)


def test_killed_before_it_had_begun(files, tmp_path):
    """When it had made the folder, the lock, and a part of the first file."""
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "build.lock").touch()
    (folder / ".faiss_ext_0123").write_text("{")
    made = built(files, REFINED, folder=folder)
    for found, expected in zip(made.search(Q, 10), built(files, REFINED).search(Q, 10)):
        np.testing.assert_array_equal(found, expected)
    assert not list(folder.glob(".faiss_ext_*"))


def test_kernel_values_and_parameters_of_shards():
    one = built(PARTS, "KFlat(jaccard)")
    D = one.search(Q, 10)[0]
    np.testing.assert_array_equal(faiss_ext.kernel_values(one, D), faiss_ext.kernel_values(one.model, D))
    gram = faiss_ext.kernel_factory("chi2").gram(Q, X)
    for string in ("KFlat(chi2)", REFINED, "L2norm,HNSW8,KFlat(chi2)"):
        index = built(PARTS, string)
        D, I = index.search(Q, 10)
        expected = gram if "L2" not in string else faiss_ext.kernel_factory("chi2").gram(
            *(v / np.linalg.norm(v, axis=1, keepdims=True) for v in (Q, X)))
        np.testing.assert_allclose(
            faiss_ext.kernel_values(index, D, I, Q), np.take_along_axis(expected, I, axis=1), rtol=1e-5)
    D, I = built(PARTS[1:2], "KFlat(chi2)").search(Q, 2)  # one vector
    np.testing.assert_array_equal(np.isnan(faiss_ext.kernel_values(built(PARTS[1:2], "KFlat(chi2)"), D, I, Q)), I < 0)
    with pytest.raises(ValueError, match="kernel_values: id 1500, expected ids up to 1499"):
        faiss_ext.kernel_values(index, [[1.0]], [[1500]], Q[:1])
    index = built(PARTS, REFINED)
    assert faiss_ext.index_parameters(index) == {"k_factor": 1}
    faiss_ext.set_index_parameter(index, "k_factor", 4)
    assert faiss_ext.index_parameters(index) == index.parameters == {"k_factor": 4}
    other = built(PARTS, REFINED)
    other.set_parameter("k_factor", 4)
    for found, expected in zip(index.search(Q, 10), other.search(Q, 10)):
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="no search parameter 'nprobe'"):
        faiss_ext.set_index_parameter(index, "nprobe", 4)


def test_folders_that_do_not_fit(folder, tmp_path, capsys):
    with pytest.raises(ShardError, match="holds a finished index, which open_shards opens"):
        built(PARTS, REFINED, folder=folder)
    with pytest.raises(ShardError, match="no manifest.json"):
        open_shards(tmp_path)
    with pytest.raises(ShardError, match="no manifest.json"):
        open_shards(tmp_path / "missing")
    with pytest.raises(ShardError, match="not empty"):
        built(PARTS, REFINED, folder=tmp_path)
    assert not list(tmp_path.glob("**/build.lock"))
    manifest = (folder / "manifest.json").read_bytes()
    (folder / "manifest.json").write_bytes(manifest[:100])
    with pytest.raises(ShardError, match="manifest.json is damaged.*delete the folder"):
        built(PARTS, REFINED, folder=folder)
    (folder / "manifest.json").write_bytes(manifest)
    assert main(["info", str(tmp_path)]) == 1
    assert "no manifest.json" in capsys.readouterr().err
    for damage in (lambda data: data[:-1], lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:]):
        path = folder / "shard-00002.index"
        good = path.read_bytes()
        path.write_bytes(damage(good))
        with pytest.raises(ShardError, match=f"{path}.*damaged"):
            open_shards(folder)
        path.write_bytes(good)
    path.unlink()
    with pytest.raises(ShardError, match="shard-00002.index: cannot be read"):
        open_shards(folder)
    for text in ("{", "[" * 10**5):
        (folder / "manifest.json").write_text(text)
        with pytest.raises(ShardError, match="manifest.json is damaged.*delete the folder"):
            open_shards(folder)


@pytest.mark.parametrize("string", ["AHK128(chi2),BFlat", REFINED, "HKM1(chi2),PCAR16,KIVF8(M=4),Refine(KFlat(chi2))"])
def test_codes_may_stay_in_their_files(files, tmp_path, string):
    index = built(files, string, folder=tmp_path / "made")
    mapped = open_shards(tmp_path / "made", io_flags=faiss.IO_FLAG_MMAP)
    with pytest.raises(TypeError, match="integer"):
        open_shards(tmp_path / "made", io_flags="mmap")
    same_results(mapped, index)
    core = faiss_ext.shards.real(getattr(mapped.place.shards[0].index, "base_index", mapped.place.shards[0].index))
    with pytest.raises(RuntimeError, match="mapped from a file"):
        core.add(X)
    same_results(mapped.to_faiss(), index.to_faiss())


def test_save(tmp_path):
    index = built(PARTS, REFINED)
    index.set_parameter("k_factor", 5)
    index.save(tmp_path / "saved")
    again = open_shards(tmp_path / "saved")
    assert again.parameters == {"k_factor": 5}
    same_results(again, index)
    with pytest.raises(ShardError, match="holds a finished index"):
        index.save(tmp_path / "saved")


def test_command_line(folder, tmp_path, capsys):
    np.save(tmp_path / "q.npy", Q[:5])
    assert main(["search", str(folder), str(tmp_path / "q.npy"), "-k", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["I"] == open_shards(folder).search(Q[:5], 3)[1].tolist()
    assert main(["info", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tree"]["ntotal"] == N


# ------------------------------------------------- builds that are broken off

KILLED = """
import os, signal, sys
from faiss_ext import build_shards, shard_building

write = shard_building.write_shard

def write_or_die(index, folder, number, name, source):
    if number == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    print(number, flush=True)
    return write(index, folder, number, name, source)

shard_building.write_shard = write_or_die
build_shards(sys.argv[3:], "HKM1(chi2),PCAR16,KIVF8(M=4),Refine(KFlat(chi2))", folder=sys.argv[1], progress=False)
"""


def test_killed_and_called_again(files, tmp_path):
    folder = tmp_path / "made"

    def run(number):
        return subprocess.run([sys.executable, "-c", KILLED, folder, str(number), *files], capture_output=True, text=True)

    for number, written in ((1, ["0"]), (3, ["1", "2"])):
        done = run(number)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert done.stdout.split() == written
        with pytest.raises(ShardError, match="an unfinished build"):
            open_shards(folder)
    with pytest.raises(ShardError, match="unfinished build that differs in: string"):
        built(files, REFINED, folder=folder)
    (folder / "shard-00003.index.json").write_text("{}")  # of another program
    done = run(99)
    assert done.returncode == 0 and done.stdout.split() == ["3"]
    index = open_shards(folder)
    same_results(index, whole(index))
    assert not [name for name in os.listdir(folder) if name.endswith(".json") and name != "manifest.json"]


def entry_of(shard, values):
    """Leaves these, and of what it was built, of what is known of a shard."""
    path = shard.with_name(shard.name + ".json")
    path.write_text(json.dumps({"source": json.loads(path.read_text())["source"], **values}))


def unfinished(files, folder):
    """A build whose last partition is bad."""
    good = np.load(files[3])
    np.save(files[3], good * np.nan)
    with pytest.raises(ShardError, match="part 3.npy"):
        built(files, REFINED, folder=folder)
    np.save(files[3], good)


@pytest.mark.parametrize("harm", [
    lambda shard: shard.write_bytes(shard.read_bytes()[:-9] + b"123456789"), lambda shard: shard.write_bytes(shard.read_bytes()[:-1]),
    os.unlink, lambda shard: entry_of(shard, {"bytes": shard.stat().st_size}), lambda shard: entry_of(shard, {})])
def test_damaged_shards_are_built_again(files, tmp_path, harm):
    folder = tmp_path / "made"
    unfinished(files, folder)
    harm(folder / "shard-00001.index")
    same_results(built(files, REFINED, folder=folder), built(files, REFINED))


def test_damaged_after_the_manifest_is_written(files, tmp_path, monkeypatch):
    folder = tmp_path / "made"
    unfinished(files, folder)
    with monkeypatch.context() as changed:
        changed.setattr(ShardFolder, "clean_up", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            built(files, REFINED, folder=folder)
    (folder / "shard-00001.index").write_bytes(b"123456789")
    same_results(built(files, REFINED, folder=folder), built(files, REFINED))
    same_results(open_shards(folder), built(files, REFINED))


@pytest.mark.parametrize("string", ["HNSW16,KFlat(gaussian(gamma=1))", "HNSW16,KFlat(gaussian(gamma=1)),Refine(KFlat(gaussian(gamma=1)))",
                                    "PCAR48,HNSW16,KFlat(gaussian(gamma=1))"])
@pytest.mark.parametrize("metric", [faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT])
def test_graphs_find_far_vectors(string, metric):
    index = built(PARTS, string, metric=metric)
    exact = faiss.IndexFlatL2(64)
    exact.add(X)
    _, true = exact.search(Q, 5)
    _, found = index.search(Q, 5)
    assert np.mean(found[:, :, None] == true[:, None]) * 5 > 0.9


@pytest.mark.parametrize("n", range(8))
def test_killed_after_the_manifest_is_written(files, tmp_path, monkeypatch, n):
    """Before it has deleted the n-th file that is not needed any more."""
    folder = tmp_path / "made"
    unfinished(files, folder)
    (folder / ".faiss_ext_1_2").write_text("of a process that was killed")
    unlink, deleted = os.unlink, []

    def stop(path):
        if os.path.exists(folder / "manifest.json"):
            if len(deleted) == n:
                raise KeyboardInterrupt
            deleted.append(path)
        unlink(path)

    with monkeypatch.context() as changed:
        changed.setattr(os, "unlink", stop)
        try:
            built(files, REFINED, folder=folder)
            assert n == 7 and len(deleted) == 7  # four entries, lock, state, temporary file
        except KeyboardInterrupt:
            assert n < 7
    if n < 7:
        same_results(open_shards(folder), built(files, REFINED))
        with pytest.raises(ShardError, match="holds a finished index"):
            built(files, "KFlat(chi2)", folder=folder)
        same_results(built(files, REFINED, folder=folder), built(files, REFINED))
    assert sorted(os.listdir(folder)) == ["manifest.json", "model.index", *(f"shard-0000{i}.index" for i in range(4))]
    with pytest.raises(ShardError, match="holds a finished index"):
        built(files[:3], REFINED, folder=folder)


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("string", [REFINED, "HKM1(chi2),PCAR16,KIVF8(M=4)"])
@pytest.mark.parametrize("harm, numbers", [
    (os.unlink, [1]), (flip, [1]), (os.unlink, [0, 3]), (os.unlink, range(4)), (None, [])])
def test_damaged_shards_of_a_finished_folder_are_built_again(files, tmp_path, string, harm, numbers):
    folder = tmp_path / "made"
    expected = built(files, string, folder=folder, train=500).search(Q, 10)
    shards = sorted(folder.glob("shard-*"))
    index = {path: path.read_bytes() for path in [*shards, folder / "model.index"]}
    for number in numbers:
        harm(shards[number])
    kept = {path: path.stat().st_mtime_ns for path in index if path not in [shards[number] for number in numbers]}
    if harm:
        with pytest.raises(ShardError):
            open_shards(folder)
    for args in ((files, string, None, folder, None, "memory"), (files[:3], string, None, folder), (files, "KFlat(chi2)", None, folder),
                 ([files[1], files[0], *files[2:]], string, None, folder), (PARTS, string, None, folder)):
        with pytest.raises(ShardError, match="holds a finished index"):
            built(*args, train=500)
    with pytest.raises(ShardError, match="holds a finished index"):
        built(files, string, folder=folder, train=501)
    assert sorted(folder.iterdir()) == sorted({*kept, *(path for path in index if path.exists()), folder / "manifest.json"})
    for opened in (built(files, string, folder=folder, train=500), open_shards(folder)):
        for found, e in zip(opened.search(Q, 10), expected):
            np.testing.assert_array_equal(found, e)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert {path: path.read_bytes() for path in index} == index
    assert sorted(folder.iterdir()) == sorted([*index, folder / "manifest.json"])


def test_a_finished_folder_without_its_model_is_not_gone_on_with(files, tmp_path):
    folder = tmp_path / "made"
    built(files, REFINED, folder=folder)
    (folder / "shard-00001.index").unlink()
    model = folder / "model.index"
    flip(model)
    with pytest.raises(ShardError, match="model.index: sha256 .*damaged"):
        built(files, REFINED, folder=folder)
    model.unlink()
    with pytest.raises(ShardError, match="model.index: cannot be read"):
        built(files, REFINED, folder=folder)
    assert not (folder / "build.lock").exists()


def test_killed_while_a_finished_folder_is_mended(files, tmp_path, monkeypatch):
    folder = tmp_path / "made"
    expected = built(files, REFINED, folder=folder).search(Q, 10)
    (folder / "shard-00001.index").unlink()
    flip(folder / "shard-00003.index")
    written = []

    def stop(index, folder, number, *args, write=faiss_ext.shard_building.write_shard):
        if number == 3:
            raise KeyboardInterrupt
        written.append(number)
        return write(index, folder, number, *args)

    with monkeypatch.context() as changed:
        changed.setattr(faiss_ext.shard_building, "write_shard", stop)
        with pytest.raises(KeyboardInterrupt):
            built(files, REFINED, folder=folder)
    modified = (folder / "shard-00001.index").stat().st_mtime_ns
    for found, e in zip(built(files, REFINED, folder=folder).search(Q, 10), expected):
        np.testing.assert_array_equal(found, e)
    assert written == [1] and (folder / "shard-00001.index").stat().st_mtime_ns == modified


def test_folders_that_cannot_be_made(files, tmp_path):
    (tmp_path / "file").write_text("")
    index = built(files, REFINED)
    for folder in (tmp_path / "file", tmp_path / "file" / "folder", "/proc/folder", tmp_path / "none" / "folder"):
        for write in (lambda: built(files, REFINED, folder=folder), lambda: index.save(folder)):
            with pytest.raises(ShardError, match="cannot be used: "):
                write()
    assert not (tmp_path / "none").exists()


def test_one_build_at_a_time(files, tmp_path):
    with ShardFolder(tmp_path / "made").building(None):
        with pytest.raises(ShardError, match="another process builds there"):
            built(files, REFINED, folder=tmp_path / "made")
    same_results(built(files, REFINED, folder=tmp_path / "made"), built(files, REFINED))


def test_a_partition_that_is_mended(files, tmp_path):
    bad = X[401:900].copy()
    bad[3, 3] = np.inf
    np.save(files[2], bad)
    with pytest.raises(ShardError, match="part 2.npy: component 3 of vector 3"):
        built(files, REFINED, folder=tmp_path / "made")
    assert {"shard-00000.index", "shard-00001.index", "shard-00003.index"} < set(os.listdir(tmp_path / "made"))
    np.save(files[2], X[401:800])
    # a shard of other vectors, which a worker that was taken for lost has left
    shard, known = (tmp_path / "made" / name for name in ("shard-00000.index", "shard-00000.index.json"))
    shard.write_bytes(bytes(shard.stat().st_size))
    entry = json.loads(known.read_text())
    entry["source"]["bytes"] += 1
    known.write_text(json.dumps(entry))
    index = built(files, REFINED, folder=tmp_path / "made")  # shorter, too
    assert [s["first"] for s in index.shards] == [0, 400, 401, 800]
    same_results(index, built([X[:400], X[400:401], X[401:800], X[900:]], REFINED))


@pytest.mark.parametrize("string", [REFINED, "HKM1(chi2),PCAR16,KIVF8(M=4),Refine(KFlat(chi2))"])
def test_a_partition_that_changes_after_its_shard_is_built(files, tmp_path, string):
    bad = X[401:900].copy()
    bad[np.setdiff1d(np.arange(401, 900), drawn(N, 300, 1234))[0] - 401] = -1  # a vector that is not trained with
    np.save(files[2], bad)
    folder = tmp_path / "made"
    with pytest.raises(ShardError, match="^partition .*part 2.npy"):
        built(files, string, folder=folder, train=300)
    model = (folder / "model.index").read_bytes()
    np.save(files[2], X[401:900])
    np.save(files[0], X[100:500])
    for partitions in (files, files[1:], files[:3]):
        with pytest.raises(ShardError, match="differs in: partitions, of which .*shard-0000.* delete these files"):
            built(partitions, string, folder=folder, train=300)
    with pytest.raises(ShardError, match="differs in: train"):
        built(files, string, folder=folder, train=301)
    (folder / "shard-00000.index").unlink()
    (folder / "model.index").unlink()
    with pytest.raises(ShardError, match="model.index is missing"):
        built(files, string, folder=folder, train=300)
    (folder / "model.index").write_bytes(model)
    index = built(files, string, folder=folder, train=300)
    assert (folder / "model.index").read_bytes() == model
    one = faiss.clone_index(index.model)
    one.add(np.concatenate([X[100:500], X[400:]]))
    same_results(index, one)


def test_partitions_that_change_before_any_shard_is_built(files, tmp_path):
    string = "HKM1(chi2),PCAR16,KIVF8(M=4)"
    for name, part in zip(files, PARTS):
        np.save(name, np.vstack([part, np.full((1, 64), -1, "float32")]))
    bad = np.array(CUTS[1:]) + np.arange(4)
    seed = next(i for i in range(99) if not np.isin(bad, drawn(N + 4, 300, i)).any())
    with pytest.raises(ShardError, match="^partition .*part 0.npy.*part 3.npy"):
        built(files, string, folder=tmp_path / "made", train=300, seed=seed)
    for name, part in zip(files, PARTS):
        np.save(name, part[:, :32])  # another dimension needs another model
    with pytest.raises(ShardError, match="differs in: train"):
        built(files, string, folder=tmp_path / "made", seed=seed)
    index = built(files, string, folder=tmp_path / "made", train=300, seed=seed)
    assert (index.d, index.ntotal) == (32, N)
    same_results(index, built(files, string, train=300, seed=seed), Q[:, :32])


@pytest.mark.parametrize("content", [pytest.param("[" * 10**5, id="deep"), "5", "null"])
def test_a_damaged_state(files, tmp_path, content):
    bad = X[401:900].copy()
    bad[3, 3] = -1
    np.save(files[2], bad)
    with pytest.raises(ShardError, match="part 2.npy"):
        built(files, REFINED, folder=tmp_path / "made")
    state = tmp_path / "made" / "build.json"
    good = json.loads(state.read_text())
    state.write_text(content)
    with pytest.raises(ShardError, match="build.json is damaged.*delete the folder"):
        built(files, REFINED, folder=tmp_path / "made")
    for partitions in (5, {"a": 1}, None):
        state.write_text(json.dumps({**good, "partitions": partitions}))
        with pytest.raises(ShardError, match="build.json is damaged.*delete the folder"):
            built(files, REFINED, folder=tmp_path / "made")


# --------------------------------------------------------------------- Dask

def cluster(n):
    """A client of worker processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=n, threads_per_worker=1, processes=True, dashboard_address=":0") as made:
        with distributed.Client(made) as client:
            yield client


@pytest.fixture(scope="module")
def client():
    yield from cluster(2)


@pytest.fixture
def doomed():
    """Three workers of which two may be killed. (Whether they are started again depends on how busy the machine is.)"""
    yield from cluster(3)


HANGS = 900  # seconds that only a hanging program takes, on a busy machine too


def wait_for(condition):
    deadline = time.monotonic() + HANGS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def kill_workers(client, holding=None):
    """The first one, or all that hold something: Dask may have copied it."""
    pids = client.run(os.getpid)
    workers = [min(pids)] if holding is None else client.who_has([holding])[holding.key]
    for worker in workers:
        os.kill(pids[worker], signal.SIGKILL)
    wait_for(lambda: not set(workers) & set(client.scheduler_info()["workers"]))


@pytest.mark.parametrize("string", ["KFlat(chi2)", REFINED, "HKM1(chi2),PCAR16,KIVF8(M=4),Refine(KFlat(chi2))",
                                    "SIK64(gaussian),BIVF8"])
def test_a_cluster_finds_what_one_index_finds(files, client, string):
    with built(files, string, client) as index:
        same_results(index, whole(index))
        same_results(index, whole(index), Q[:1])
        holding = [worker for worker, held in client.has_what().items() if held]
        assert holding
    if "," not in string:
        return
    with built(PARTS, string, client, parameters={"k_factor": 3} if "Refine" in string else {}) as index:
        same_results(index, whole(index))


def test_filters_and_removals_on_a_cluster(client):
    index, local = built(PARTS, REFINED, client), built(PARTS, REFINED)
    assert index.remove_ids(GONE) == local.remove_ids(GONE) == len(GONE)
    for allowed in (None, range(350, 950), np.arange(0, N, 3)):
        for found, expected in zip(index.search(Q, 10, filter=allowed), local.search(Q, 10, filter=allowed)):
            np.testing.assert_array_equal(found, expected)
    assert sorted(index.ids()) == sorted(local.ids())
    np.testing.assert_array_equal(index.contains(range(-1, N + 1)), ~np.isin(range(-1, N + 1), [*GONE, -1, N]))
    index.close()


def test_removed_vectors_stay_removed_if_a_worker_is_lost(doomed):
    index = built(PARTS, "KFlat(chi2)", doomed)
    index.remove_ids(GONE)
    expected = index.search(Q, 10)
    kill_workers(doomed)
    for found, before in zip(index.search(Q, 10), expected):
        np.testing.assert_array_equal(found, before)
    index.close()


def test_dask_arrays(client):
    da = pytest.importorskip("dask.array")
    x = da.from_array(X, chunks=(400, 30))
    with built(x, REFINED, client) as index:
        assert [s["ntotal"] for s in index.shards] == [400, 400, 400, 300]
        same_results(index, whole(index))
    unknown = x[da.from_array(np.arange(N) % 2 == 0, chunks=400)]  # of a size that is not known
    with built(unknown, REFINED, client) as index:
        assert index.ntotal == N // 2
        np.testing.assert_array_equal(index.search(X[:20:2], 1)[1][:, 0], np.arange(10))
    with pytest.raises(ValueError, match="two dimensions"):
        built(x[0], REFINED, client)
    same_results(built(x, REFINED), whole(index))  # in this process


def test_folders_of_a_cluster(files, client, tmp_path):
    index = built(files, REFINED, client, tmp_path / "made")
    expected = whole(index)
    same_results(index, expected)
    same_results(open_shards(tmp_path / "made"), expected)
    same_results(open_shards(tmp_path / "made", client), expected)
    index.set_parameter("k_factor", 4)
    expected.k_factor = 4
    same_results(index, expected)
    index.save(tmp_path / "saved")
    same_results(open_shards(tmp_path / "saved"), expected)
    with pytest.raises(ValueError, match="on a cluster"):
        index.to_faiss()
    (tmp_path / "made" / "shard-00001.index").write_bytes(b"x")
    with pytest.raises(ShardError, match="shard-00001.index: bytes is 1"):
        open_shards(tmp_path / "made", client)


def test_a_client_that_is_closed(files, client):
    from dask.distributed import Client
    other = Client(client.scheduler.address, set_as_default=False)
    index = built(files, REFINED, other)
    other.close()
    with pytest.raises(ShardError, match="client .* has been closed"):
        index.search(Q, 3)
    with pytest.raises(ShardError, match="client .* has been closed"):
        built(files, REFINED, other)


def test_shards_on_a_cluster_cannot_be_pickled(files, client):
    with pytest.raises(TypeError, match="save.. writes a folder"):
        pickle.dumps(built(files, REFINED, client))


def test_a_cluster_without_workers(files, doomed, monkeypatch):
    cluster_module = pytest.importorskip("faiss_ext.cluster")
    index = built(files, REFINED, doomed)
    monkeypatch.setattr(cluster_module, "POLL", 0.1)
    monkeypatch.setattr(cluster_module, "PATIENCE", 1)
    doomed.cluster.scale(0)
    wait_for(lambda: not doomed.scheduler_info()["workers"])
    with pytest.raises(ShardError, match="no worker"):
        index.search(Q, 3)
    with pytest.raises(ShardError, match="no worker"):
        built(files, REFINED, doomed)
    monkeypatch.undo()
    doomed.cluster.scale(1)
    same_results(index, whole(index))


def test_a_cluster_that_loses_calls(files, client, monkeypatch):
    """Dask 2022.12 sometimes does, if all workers are lost."""
    cluster_module = pytest.importorskip("faiss_ext.cluster")
    index = built(files, REFINED, client)
    as_finished, stalls = cluster_module.as_finished, []

    def stall_for(number):
        def finished(*args):
            if len(stalls) < number:
                stalls.append(args)
                raise cluster_module.StalledError("Dask has done nothing")
            return as_finished(*args)
        monkeypatch.setattr(cluster_module, "as_finished", finished)

    stall_for(1)
    same_results(index, whole(index))  # the calls are repeated
    assert len(stalls) == 1
    stall_for(1000)
    with pytest.raises(ShardError, match="Dask has done nothing"):
        index.search(Q, 3)
    monkeypatch.undo()
    same_results(index, whole(index))


@pytest.mark.parametrize("workers, processing, error", [
    ([], {}, "no worker"), (["a"], {"a": ()}, "Dask has done nothing for some calls"), (["a"], {"a": ("call",)}, None)])
def test_waiting_for_calls_that_do_not_end(monkeypatch, workers, processing, error):
    cluster_module = pytest.importorskip("faiss_ext.cluster")
    from types import SimpleNamespace
    call, waits = SimpleNamespace(status="pending"), []

    def wait(futures, timeout, return_when):
        waits.append(futures)
        time.sleep(0.01)
        if len(waits) > 50:
            call.status = "finished"

    monkeypatch.setattr(cluster_module, "wait", wait)
    monkeypatch.setattr(cluster_module, "PATIENCE", 0.1)
    client = SimpleNamespace(scheduler_info=lambda: {"workers": workers}, processing=lambda: processing)
    if error is None:
        assert list(cluster_module.as_finished(client, [call])) == [call]
    else:
        with pytest.raises(ShardError, match=error):
            list(cluster_module.as_finished(client, [call]))


def test_partitions_that_fail_on_a_cluster(files, client):
    bad = [part.copy() for part in PARTS]
    bad[2][7, 9] = -1
    with pytest.raises(ShardError, match="partition array 2: RuntimeError: .*component 9 of vector 7 is -1"):
        built(bad, REFINED, client)
    with pytest.raises(ShardError, match="missing.npy: cannot be read"):
        built([*files, "missing.npy"], REFINED, client)
    index = built(files, REFINED, client)
    with pytest.raises(RuntimeError, match="component"):  # a query that all refuse
        index.search(-Q, 3)
    same_results(index, whole(index))


def test_a_folder_that_is_away_for_a_while(doomed, folder):
    index = open_shards(folder, doomed)
    expected = index.search(Q, 10)
    os.rename(folder, f"{folder} away")
    kill_workers(doomed, holding=index.place.shards[0])
    with pytest.raises(ShardError, match="cannot be read: No such file"):
        index.search(Q, 10)
    os.rename(f"{folder} away", folder)
    for found, e in zip(index.search(Q, 10), expected):
        np.testing.assert_array_equal(found, e)


@pytest.mark.parametrize("lost", ["some", "all"])
def test_chunks_that_are_away_for_a_while(doomed, tmp_path, lost):
    import dask
    import dask.array
    from dask.distributed import Future
    away = tmp_path / "away"

    def load(part, path):
        if os.path.exists(path):
            raise OSError("away for a while")
        return part

    chunks = [dask.array.from_delayed(dask.delayed(load)(part, str(away)), part.shape, part.dtype) for part in PARTS]
    index = built(dask.array.concatenate(chunks), REFINED, doomed)
    expected = index.search(Q, 10)
    away.touch()
    if lost == "all":
        doomed.cancel([Future(key, doomed) for key in list(doomed.futures)], force=True)
    kill_workers(doomed, holding=index.place.shards[0] if lost == "some" else None)
    with pytest.raises(ShardError, match="away for a while"):
        index.search(Q, 10)
    away.unlink()
    for found, e in zip(index.search(Q, 10), expected):
        np.testing.assert_array_equal(found, e)


# a string, and a search parameter
MAPPED = [("AHK256(chi2),BIVF64", "nprobe", 16), ("AHK256(chi2),BFlat,Refine(KFlat(chi2))", "k_factor", 5)]


def is_mapped(shard):
    """Whether what is in front of an exact index cannot be changed."""
    try:
        faiss_ext.shards.real(getattr(shard.index, "base_index", shard.index)).add(X[:1])
    except RuntimeError as error:
        return "mapped from a file" in str(error)
    return False


@pytest.mark.parametrize("string, name, value", MAPPED)
def test_pickled_shards_are_mapped_again(files, tmp_path, string, name, value):
    built(files, string, folder=tmp_path / "made")
    index = open_shards(tmp_path / "made", io_flags=faiss.IO_FLAG_MMAP)
    index.set_parameter(name, value)
    expected = index.search(Q, 10)
    shards = index.place.shards
    data = [pickle.dumps(shard) for shard in shards]
    assert max(map(len, data)) < 2000  # no codes
    again = [pickle.loads(one) for one in data]
    for shard, one in zip(again, shards):
        for state in (shard, pickle.loads(pickle.dumps(shard))):  # of one that has not been opened yet, too
            assert getattr(faiss_ext.shards.real(getattr(state.index, "storage", state.index)), name) == value
            assert is_mapped(state) and is_mapped(one)
            for found, e in zip(state.search(Q, 10), one.search(Q, 10)):
                np.testing.assert_array_equal(found, e)
    index.place.shards = again
    for found, e in zip(index.search(Q, 10), expected):
        np.testing.assert_array_equal(found, e)
    index.set_parameter(name, value - 1)
    changed = open_shards(tmp_path / "made")
    changed.set_parameter(name, value - 1)
    same_results(index, changed)


@pytest.mark.parametrize("string, name, value", MAPPED)
@pytest.mark.parametrize("io_flags", [0, faiss.IO_FLAG_MMAP])
def test_sizes_of_opened_shards_are_those_of_their_files(files, tmp_path, string, name, value, io_flags):
    built(files, string, folder=tmp_path / "made")
    for number, shard in enumerate(open_shards(tmp_path / "made", io_flags=io_flags).place.shards):
        size = (tmp_path / "made" / f"shard-{number:05}.index").stat().st_size
        for one in (shard, pickle.loads(pickle.dumps(shard))):
            assert size <= sys.getsizeof(one) < size + 100


def test_a_shard_whose_file_is_gone_when_it_is_unpickled(files, tmp_path):
    built(files, REFINED, folder=tmp_path / "made")
    shard = open_shards(tmp_path / "made").place.shards[1]
    again = pickle.loads(pickle.dumps(shard))
    os.rename(tmp_path / "made", tmp_path / "away")
    with pytest.raises(ShardError, match="shard-00001.index: cannot be read"):
        again.search(Q, 3)
    os.rename(tmp_path / "away", tmp_path / "made")
    np.testing.assert_array_equal(again.search(Q, 3)[1], shard.search(Q, 3)[1])


def returned(function, *args):
    """What a function returns; fails if it hangs."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function(*args)), daemon=True)
    thread.start()
    thread.join(HANGS)
    assert results, f"not done after {HANGS} s"
    return results[0]


def wait_for_file(path):
    while not os.path.exists(path):
        time.sleep(0.01)


@pytest.mark.parametrize("string, name, value", MAPPED)
def test_mapped_shards_move_to_another_worker(files, doomed, tmp_path, string, name, value):
    built(files, string, folder=tmp_path / "made")
    one = open_shards(tmp_path / "made")
    index = open_shards(tmp_path / "made", doomed, io_flags=faiss.IO_FLAG_MMAP)
    for settings in (value, value - 1):
        one.set_parameter(name, settings)
        index.set_parameter(name, settings)
        for found, e in zip(returned(index.search, Q, 10), one.search(Q, 10)):
            np.testing.assert_array_equal(found, e)
    workers = list(doomed.scheduler_info()["workers"])
    busy = [doomed.submit(wait_for_file, tmp_path / "free", workers=[worker], pure=False) for worker in workers[:2]]
    wait_for(lambda: sum(map(len, doomed.processing().values())) == 2)
    for found, e in zip(returned(index.search, Q, 10), one.search(Q, 10)):
        np.testing.assert_array_equal(found, e)
    (tmp_path / "free").touch()
    del busy
    for shard in index.place.shards:  # whatever Dask has moved
        holding = doomed.who_has([shard])[shard.key]
        other = next((worker for worker in workers if worker not in holding), None)
        if other is not None:
            assert returned(doomed.submit(is_mapped, shard, workers=[other], pure=False).result)


@pytest.mark.parametrize("in_folder", [False, True])
def test_a_worker_that_is_lost_between_searches(files, doomed, tmp_path, in_folder):
    index = built(files, REFINED, doomed, tmp_path / "made" if in_folder else None)
    expected = whole(index)
    for _ in range(2):
        kill_workers(doomed)
        same_results(index, expected)


@pytest.mark.parametrize("in_folder", (False, True))
def test_a_cluster_that_has_forgotten_everything(files, doomed, tmp_path, in_folder):
    """As after Client.restart(), which may take Dask longer than it waits itself."""
    from dask.distributed import Future

    index = built(files, REFINED, doomed, tmp_path / "made" if in_folder else None)
    index.set_parameter("k_factor", 3)
    expected = index.search(Q, 10)
    for _ in range(2):
        doomed.cancel([Future(key, doomed) for key in list(doomed.futures)], force=True)
        kill_workers(doomed)
        assert {shard.status for shard in index.place.shards} == {"cancelled"}
        for found, e in zip(returned(index.search, Q, 10), expected):
            np.testing.assert_array_equal(found, e)


def test_a_worker_that_is_lost_in_searches(files, doomed):
    index = built(files, REFINED, doomed)
    expected = whole(index).search(Q, 10)
    results, stop = [], threading.Event()

    def search():
        while not stop.is_set():
            results.append(index.search(Q, 10))

    def wait_for_more():
        enough = len(results) + 2
        wait_for(lambda: len(results) >= enough or not thread.is_alive())

    thread = threading.Thread(target=search)
    thread.start()
    try:
        for _ in range(2):
            wait_for_more()
            kill_workers(doomed)
        wait_for_more()
        assert thread.is_alive()
    finally:
        stop.set()
        thread.join(HANGS)
    for found in results:
        for a, b in zip(found, expected):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("in_folder", [False, True])
def test_a_worker_that_is_lost_in_a_build(doomed, tmp_path, in_folder):
    dask = pytest.importorskip("dask")
    import dask.array as da

    def load_or_die(part, marker):
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return part
        os.kill(os.getpid(), signal.SIGKILL)

    chunks = [da.from_delayed(dask.delayed(load_or_die)(part, str(tmp_path / "died")) if i == 2 else dask.delayed(part),
                              part.shape, part.dtype) for i, part in enumerate(PARTS)]
    index = built(da.concatenate(chunks), REFINED, doomed, tmp_path / "made" if in_folder else None)
    assert (tmp_path / "died").exists()
    same_results(index, whole(index))
