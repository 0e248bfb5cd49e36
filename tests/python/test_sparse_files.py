# SPDX-License-Identifier: MIT
"""Files of sparse vectors: all kinds, in builds and on the command line."""

import json

import faiss
import faiss_ext
import numpy as np
import pytest
from faiss_ext import command_line
from faiss_ext.vector_files import VectorFileError, read_vectors

sparse = pytest.importorskip("scipy.sparse")

D = 400


def counts(n, seed):
    x = np.random.default_rng(seed).poisson(5 / np.arange(1, D + 1), (n, D))
    x[:, -1] = 1  # so that files without a shape know the dimension
    return sparse.csr_array(x.astype("float32"))


def save_npz(path, x):
    sparse.save_npz(path, x)


def save_csc(path, x):
    sparse.save_npz(path, x.tocsc())


def save_svmlight(path, x):
    datasets = pytest.importorskip("sklearn.datasets")
    datasets.dump_svmlight_file(x, np.zeros(x.shape[0]), str(path))


def save_h5ad(path, x):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs["encoding-type"] = "csr_matrix"
        group.attrs["shape"] = x.shape
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(x, name)


def save_folder(path, x):
    path.mkdir()
    for name in ("data", "indices", "indptr"):
        np.save(path / f"{name}.npy", getattr(x, name))


KINDS = {"npz": save_npz, "csc.npz": save_csc, "svm": save_svmlight,
         "h5ad": save_h5ad, "folder": save_folder}


@pytest.fixture(params=KINDS)
def file_of(request, tmp_path):
    def saved(x, name="x"):
        path = tmp_path / f"{name}.{request.param}"
        KINDS[request.param](path, x)
        return path
    return saved


def test_all_kinds_hold_the_same_vectors(file_of):
    x = counts(50, 1)
    found = read_vectors(file_of(x))
    assert found.shape == x.shape
    assert (found != x).nnz == 0


def test_folders_are_mapped(tmp_path):
    x = counts(50, 1)
    save_folder(tmp_path / "x", x)
    found = read_vectors(tmp_path / "x")
    for array in (found.data, found.indices):
        while not isinstance(array, (np.memmap, type(None))):
            array = array.base
        assert array is not None
    np.save(tmp_path / "x" / "shape.npy", (50, D + 100))
    assert read_vectors(tmp_path / "x").shape == (50, D + 100)


@pytest.mark.parametrize("string", [
    "KFlat(jaccard,store=sparse)", "CWS64,BFlat,Refine(KFlat(jaccard,store=sparse))",
    "IDMap,KFlat(chi2,store=sparse)"])
def test_build_and_search(file_of, string, tmp_path, capsys):
    x, q = counts(3000, 1), counts(20, 2)
    output = tmp_path / "index"
    command = ["build", file_of(x), string, "-o", output, "--quiet", "--memory", "100MB"]
    assert command_line.main([str(word) for word in command]) == 0
    index = faiss.index_factory(D, string)
    index.add(x)
    expected = index.search(q, 5)
    found = tmp_path / "found.npz"
    command = ["search", output, file_of(q, "q"), "-k", 5, "-o", found]
    assert command_line.main([str(word) for word in command]) == 0
    with np.load(found) as arrays:
        np.testing.assert_array_equal(arrays["D"], expected[0])
        np.testing.assert_array_equal(arrays["I"], expected[1])
    capsys.readouterr()


def test_build_in_blocks_continues(tmp_path, monkeypatch):
    x = counts(3000, 1)
    sparse.save_npz(tmp_path / "x.npz", x)
    string = "KFlat(jaccard,store=sparse)"
    monkeypatch.setattr("faiss_ext.out_of_core.MOST_BLOCK", 1000)
    monkeypatch.setattr("faiss_ext.out_of_core.LEAST_BLOCK", 1000)
    index = faiss_ext.build_from(tmp_path / "x.npz", string, progress=False,
                                 output=tmp_path / "index")
    expected = faiss.index_factory(D, string)
    expected.add(x)
    np.testing.assert_array_equal(index.search(x[:9], 5), expected.search(x[:9], 5))


def test_queries_of_svmlight_may_have_fewer_columns(tmp_path, capsys):
    x = counts(100, 1)
    q = x[:3, :D - 1]
    save_svmlight(tmp_path / "q.svm", sparse.csr_array(q))
    index = faiss.index_factory(D, "KFlat(jaccard,store=sparse)")
    index.add(x)
    faiss.write_index(index, str(tmp_path / "index"))
    words = ["search", str(tmp_path / "index"), str(tmp_path / "q.svm"), "--json", "-k", "1"]
    assert command_line.main(words) == 0
    assert json.loads(capsys.readouterr().out)["I"] == [[0], [1], [2]]


def test_errors_name_file_row_and_column(tmp_path):
    x = counts(30, 1)
    x.data[x.indptr[7] + 1] = np.nan
    column = x.indices[x.indptr[7] + 1]
    sparse.save_npz(tmp_path / "x.npz", x)
    with pytest.raises(ValueError, match=rf"x\.npz.*component {column} of vector 7"):
        faiss_ext.build_from(tmp_path / "x.npz", "KFlat(chi2,store=sparse)", progress=False)
    with pytest.raises(VectorFileError, match=r"y\.npz.*takes no sparse vectors"):
        sparse.save_npz(tmp_path / "y.npz", counts(30, 1))
        faiss_ext.build_from(tmp_path / "y.npz", "KFlat(chi2)", progress=False)


def test_matrices_of_anndata_by_name(tmp_path):
    h5py = pytest.importorskip("h5py")
    x, path = counts(30, 1), tmp_path / "cells.h5ad"
    save_h5ad(path, x)
    with h5py.File(path, "a") as file:
        file["obsm/pca"] = np.ones((30, 3))
        file["obs/total"] = np.ones(30)
        file.copy("X", "layers/counts")
    np.testing.assert_array_equal(read_vectors(path, "layers/counts").toarray(), x.toarray())
    assert read_vectors(path, "obsm/pca").shape == (30, 3)
    for name in ("layers/count", "obs/total", "layers", "X/data"):
        with pytest.raises(VectorFileError, match=f"h5ad: no matrix '{name}' in it; it has X, layers/counts, obsm/pca$"):
            read_vectors(path, name)
    with h5py.File(path, "a") as file:
        del file["X"]
    with pytest.raises(VectorFileError, match="no matrix 'X' in it; it has layers/counts, obsm/pca$"):
        read_vectors(path)


@pytest.mark.parametrize("kind", ["npz", "svm", "h5ad"])
def test_damaged_files(kind, tmp_path):
    path = tmp_path / f"x.{kind}"
    KINDS[kind](path, counts(30, 1))
    data = path.read_bytes()
    path.write_bytes(data[:len(data) // 2] + b"\0:")
    with pytest.raises(VectorFileError, match=rf"x\.{kind}"):
        read_vectors(path)
    path.write_bytes(b"")
    with pytest.raises(VectorFileError, match="empty file"):
        read_vectors(path)


def test_damaged_folders(tmp_path):
    x = counts(30, 1)
    save_folder(tmp_path / "x", x)
    np.save(tmp_path / "x" / "shape.npy", (29, D))
    with pytest.raises(VectorFileError, match="29 vectors in shape.npy, 30"):
        read_vectors(tmp_path / "x")
    (tmp_path / "x" / "shape.npy").unlink()
    (tmp_path / "x" / "data.npy").unlink()
    with pytest.raises(VectorFileError, match=r"data\.npy|No such file"):
        read_vectors(tmp_path / "x")
