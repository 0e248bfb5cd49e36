# SPDX-License-Identifier: MIT
"""Ids of your own in FAISS's shards around indexes of this library."""

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import COUNTS

N = 300
X, Q = COUNTS[:N].astype("float32"), COUNTS[N:N + 40].astype("float32")
IDS = np.random.default_rng(1).permutation(10 * N)[:N].astype("int64")
STRINGS = ["KFlat(chi2)", "AHK128(chi2),BFlat,Refine(KFlat(chi2))", "HKM1(chi2),PCAR16,KIVF4(nprobe=4)", "BKFlat(jaccard)", "BFlat"]


def vectors_of(string, x):
    return np.packbits(x > 4, axis=1) if string.startswith("B") else x


def trained(string):
    index = (faiss_ext.index_binary_factory if string.startswith("B") else faiss.index_factory)(64, string)
    index.train(vectors_of(string, X))
    if "Refine" in string:
        faiss_ext.set_index_parameter(index, "k_factor", N)
    return index


def sharded(string, successive, count=3):
    whole = (faiss.IndexBinaryShards if string.startswith("B") else faiss.IndexShards)(64, True, successive)
    parts = [trained(string) for _ in range(count)]
    if "KIVF" in string:  # one quantizer
        parts = [faiss.clone_index(parts[0]) for _ in parts]
    for part in parts:
        whole.add_shard(part)
    return whole, parts


def same(found, expected):
    """Equal distances; ids may differ among equal ones."""
    for (D, I), (E, J) in zip(zip(*found), zip(*expected)):
        np.testing.assert_array_equal(D, E)
        assert sorted(zip(D, I))[:(D < D[-1]).sum()] == sorted(zip(E, J))[:(E < E[-1]).sum()]


@pytest.mark.parametrize("string", STRINGS)
def test_shards_keep_ids(string):
    x, q = vectors_of(string, X), vectors_of(string, Q)
    (whole, parts), one = sharded(string, False), trained(string)
    for index in (whole, one):
        index.add_with_ids(x[:200], IDS[:200])
        index.add_with_ids(x[200:], IDS[200:])
    assert min(part.ntotal for part in parts) > 90 and whole.ntotal == N
    same(whole.search(q, 10), one.search(q, 10))
    # a removal or replacement is that of a part
    gone, new = IDS[50:130], IDS[:9]
    for part in parts:
        part.remove_ids(gone)
    whole.syncWithSubIndexes()
    one.remove_ids(gone)
    assert whole.ntotal == one.ntotal == N - 80
    for part in parts:
        there = part.contains(new)
        part.update_vectors(new[there], x[50:59][there])
    one.update_vectors(new, x[50:59])
    same(whole.search(q, 10), one.search(q, 10))
    whole.add_with_ids(x[50:130], gone)
    one.add_with_ids(x[50:130], gone)
    found = whole.search(q, 10)
    same(found, one.search(q, 10))
    if string == "KFlat(chi2)":
        np.testing.assert_array_equal(
            faiss_ext.kernel_values(whole, *found, q), faiss_ext.kernel_values(one, *found, q))


def test_new_ids_are_positions_at_first():
    whole, parts = sharded("KFlat(chi2)", False)
    whole.add(X[:200])
    whole.add(X[200:])
    np.testing.assert_array_equal(np.sort(np.concatenate([part.ids() for part in parts])), np.arange(N))
    one = trained("KFlat(chi2)")
    one.add(X)
    np.testing.assert_array_equal(whole.search(X, 1)[1], one.search(X, 1)[1])


def test_files_and_copies_keep_them(tmp_path):
    whole, _ = sharded("KFlat(chi2)", False)
    whole.add_with_ids(X, IDS)
    faiss.write_index(whole, str(tmp_path / "shards"))
    for copy in (faiss.read_index(str(tmp_path / "shards")), faiss.clone_index(whole)):
        same(copy.search(Q, 10), whole.search(Q, 10))


def test_a_selector_selects_the_ids_of_each_shard():
    whole, _ = sharded("KFlat(chi2)", False)
    whole.add_with_ids(X, IDS)
    one = trained("KFlat(chi2)")
    one.add_with_ids(X, IDS)
    params = faiss.SearchParameters(sel=faiss.IDSelectorBatch(IDS[20:60]))
    try:
        found = whole.search(Q, 5, params=params)
    except (RuntimeError, TypeError, AssertionError):
        pytest.skip("this version of FAISS does not search shards with parameters")
    same(found, one.search(Q, 5, filter=IDS[20:60]))


@pytest.mark.parametrize("string", STRINGS)
def test_ids_that_faiss_would_shift_are_refused(string, tmp_path):
    x = vectors_of(string, X)
    whole, parts = sharded(string, True)
    with pytest.raises(RuntimeError, match="no sense to pass in ids"):  # FAISS's
        whole.add_with_ids(x, IDS)
    whole.add(x)
    n = parts[0].ntotal
    parts[0].remove_ids(np.array([7]))
    whole.syncWithSubIndexes()
    write = faiss_ext.write_index_binary if string.startswith("B") else faiss.write_index
    with pytest.raises(RuntimeError, match=f"the shard has {n - 1} vectors, but its next id is {n}"):
        write(whole, str(tmp_path / "shards"))
    if string == "KFlat(chi2)":
        with pytest.raises(RuntimeError, match=f"the shard has {n - 1} vectors, but its next id is {n}"):
            faiss_ext.kernel_values(whole, *whole.search(Q, 1), Q)
