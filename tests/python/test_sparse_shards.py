# SPDX-License-Identifier: MIT
"""Sharded indexes of sparse vectors find what those of dense vectors find."""

import json

import faiss
import faiss_ext
import numpy as np
import pytest
from faiss_ext import ShardError, build_shards, open_shards
from faiss_ext.command_line import main

sparse = pytest.importorskip("scipy.sparse")

N, D = 900, 300
CUTS = (0, 300, 301, N)
STRINGS = [
    "KFlat(chi2,store=sparse)", "KFlat(jaccard,store=sparse)", "Concurrent,IDMap,KFlat(jaccard,store=sparse)",
    "CWS64,BFlat,Refine(KFlat(jaccard,store=sparse))", "AHK64(chi2),BFlat", "AHK64(chi2),AFlat",
    "HKM1(chi2),PCAR16,KFlat(gaussian(gamma=1))", "KLSH64(chi2,p=20),BIVF4"]


def counts(n, seed):
    x = np.random.default_rng(seed).poisson(5 / np.arange(1, D + 1), (n, D))
    x[:, -1] = 1  # files of svmlight then know the dimension
    return sparse.csr_array(x.astype("float32") / 32)


X, Q = counts(N, 1), counts(40, 2)


def parts(x):
    return [x[a:b] for a, b in zip(CUTS, CUTS[1:])]


def built(partitions, string, *args, **kwargs):
    return build_shards(partitions, string, *args, progress=False, **kwargs)


def built_both_ways(string, **kwargs):
    """An index that gets sparse vectors, one that gets the same dense ones."""
    return (built(parts(X), string, **kwargs), built(parts(X.toarray()), string, **kwargs))


def same(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("string", STRINGS)
def test_searches(string):
    parameters = {"k_factor": 3} if "Refine" in string else {}
    sparsely, densely = built_both_ways(string, parameters=parameters)
    assert (sparsely.ntotal, sparsely.d) == (N, D)
    one = faiss.clone_index(sparsely.model)
    one.add(X)
    for k in (1, 10, 350):
        expected = densely.search(Q.toarray(), k)
        same(sparsely.search(Q, k), expected)
        same(sparsely.search(Q.tocsc(), k), expected)
        same(sparsely.search(Q, k)[:1], one.search(Q, k)[:1])
    for filter in (range(200, 700), np.arange(0, N, 3), np.arange(N) % 2 == 0):
        same(sparsely.search(Q, 10, filter=filter), densely.search(Q.toarray(), 10, filter=filter))
    if "AFlat" not in string:
        radius = float(np.median(sparsely.search(Q, 10)[0])) + 0.5 * ("BFlat" in string)
        same(sparsely.range_search(Q, radius), densely.range_search(Q.toarray(), radius))
        same(sparsely.range_search(Q, radius, filter=range(200, 700)),
             densely.range_search(Q.toarray(), radius, filter=range(200, 700)))


def test_removals_and_kernel_values():
    sparsely, densely = built_both_ways(STRINGS[0])
    for index in (sparsely, densely):
        assert index.remove_ids(np.arange(250, 400)) == 150
    D, I = sparsely.search(Q, 10)
    same((D, I), densely.search(Q.toarray(), 10))
    values = faiss_ext.kernel_values(sparsely, D, I, Q)
    np.testing.assert_array_equal(values, faiss_ext.kernel_values(densely, D, I, Q.toarray()))
    lims, R, J = sparsely.range_search(Q, float(np.median(D)))
    np.testing.assert_array_equal(
        faiss_ext.kernel_values(sparsely, R, J, Q, lims), faiss_ext.kernel_values(densely, R, J, Q.toarray(), lims))


def saved(folder, x, suffix):
    names = [folder / f"part {i}.{suffix}" for i in range(len(CUTS) - 1)]
    for name, part in zip(names, parts(x)):
        if suffix == "npz":
            sparse.save_npz(name, part)
        else:
            datasets = pytest.importorskip("sklearn.datasets")
            datasets.dump_svmlight_file(part, np.zeros(part.shape[0]), str(name))
    return names


@pytest.mark.parametrize("suffix", ["npz", "svm"])
@pytest.mark.parametrize("string", [STRINGS[1], STRINGS[3], STRINGS[7]])
def test_files_and_folders(tmp_path, string, suffix, capsys):
    names = saved(tmp_path, X, suffix)
    folder = tmp_path / "made"
    index = built(names, string, folder=folder)
    expected = index.search(Q, 5)
    same(built(parts(X), string).search(Q, 5), expected)
    same(open_shards(folder).search(Q, 5), expected)
    (folder / "shard-00001.index").unlink()  # the same call builds it again
    same(built(names, string, folder=folder).search(Q, 5), expected)
    sparse.save_npz(tmp_path / "q.npz", Q)
    command = ["search", folder, tmp_path / "q.npz", "-k", 5, "--json"]
    assert main([str(word) for word in command]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["I"] == expected[1].tolist()
    index.save(tmp_path / "saved")
    same(open_shards(tmp_path / "saved").search(Q, 5), expected)


def test_svmlight_files_may_have_different_last_columns(tmp_path):
    x = X.tolil()
    x[300, :] = 0
    x[300, 4] = 1  # the only vector of its file
    x = sparse.csr_array(x)
    names = saved(tmp_path, x, "svm")
    string = "KFlat(jaccard,store=sparse)"
    index = built(names, string, folder=tmp_path / "made")
    assert index.d == D
    same(index.search(Q, 9), built(parts(x), string).search(Q, 9))
    same(built(names, string, folder=tmp_path / "made").search(Q, 9), index.search(Q, 9))


def test_indexes_without_sparse_vectors_say_so():
    with pytest.raises(ShardError, match="partition array 0: the index KFlat.chi2. takes no sparse vectors; KFlat.*store=sparse"):
        built(parts(X), "KFlat(chi2)")
    with pytest.raises(TypeError, match="partitions: expected a list of files or arrays"):
        built(X, STRINGS[0])
    index = built(parts(X.toarray()), "KFlat(chi2)")
    with pytest.raises(RuntimeError, match="store=sparse"):
        index.search(Q, 3)
    with pytest.raises(ValueError, match=rf"\(n, {D}\)"):
        built(parts(X), STRINGS[0]).search(Q[:, :9], 3)
    bits = built([np.packbits(X.toarray() > 0, axis=1)], "BFlat")
    with pytest.raises(TypeError, match="toarray"):
        bits.search(Q, 3)


def test_errors_name_the_vector():
    bad = X.copy()
    row = 305
    bad.data[bad.indptr[row]] = np.nan
    with pytest.raises(ShardError, match=f"partition array 2.*component {bad.indices[bad.indptr[row]]} of vector {row - 301}"):
        built(parts(bad), STRINGS[0])


def test_a_cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as made:
        with distributed.Client(made) as client:
            for string in (STRINGS[1], STRINGS[3]):
                with built(parts(X), string, client) as index:
                    expected = built(parts(X), string)
                    same(index.search(Q, 10), expected.search(Q, 10))
                    many = sparse.csr_array(sparse.vstack([Q] * 40))  # sent once
                    same(index.search(many, 3), expected.search(many, 3))
