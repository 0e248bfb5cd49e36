# SPDX-License-Identifier: MIT
"""Files of vectors; those of scripts/datasets.py are in test_demo.py."""

import os
import sys

import numpy as np
import pytest
from faiss_ext.vector_files import VectorFileError, read_vectors

X = np.arange(12, dtype="float32").reshape(4, 3)


def test_mapped_files_are_not_read(tmp_path):
    np.save(tmp_path / "x.npy", X)
    with open(tmp_path / "x.fvecs", "wb") as file:
        for row in X:
            file.write(np.int32(3).tobytes() + row.tobytes())
    with open(tmp_path / "x.bvecs", "wb") as file:
        for row in X.astype("uint8"):
            file.write(np.int32(3).tobytes() + row.tobytes())
    for name in ("x.npy", "x.fvecs", "x.bvecs"):
        read = read_vectors(tmp_path / name)
        np.testing.assert_array_equal(read, X)
        assert not read.flags.owndata and not read.flags.writeable


def test_hdf5_by_array(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["first"] = X
        file["labels"] = np.arange(4)
    np.testing.assert_array_equal(read_vectors(tmp_path / "x.h5"), X)
    with h5py.File(tmp_path / "x.h5", "a") as file:
        file["second"] = 2 * X
    np.testing.assert_array_equal(read_vectors(tmp_path / "x.h5", "second"), 2 * X)
    with pytest.raises(VectorFileError, match="which array of two dimensions. It has first, second"):
        read_vectors(tmp_path / "x.h5")
    with pytest.raises(VectorFileError, match="no array of two dimensions 'third' in it; it has"):
        read_vectors(tmp_path / "x.h5", "third")


def test_hdf5_arrays_in_groups(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["g/inside/v"] = X
        file["g/labels"] = np.arange(4)
    np.testing.assert_array_equal(read_vectors(tmp_path / "x.h5"), X)
    with h5py.File(tmp_path / "x.h5", "a") as file:
        file["w"] = 2 * X
    np.testing.assert_array_equal(read_vectors(tmp_path / "x.h5", "g/inside/v"), X)
    with pytest.raises(VectorFileError, match="which array of two dimensions. It has g/inside/v, w"):
        read_vectors(tmp_path / "x.h5")
    with h5py.File(tmp_path / "linked.h5", "w") as file:
        file["there"] = h5py.ExternalLink(str(tmp_path / "x.h5"), "w")
    with pytest.raises(VectorFileError, match="there is a link to an array of .*x.h5; give that file"):
        read_vectors(tmp_path / "linked.h5", "there")


@pytest.mark.parametrize("fixed", [False, True])
def test_parquet_by_column(tmp_path, fixed):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    kind = pyarrow.list_(pyarrow.float32(), 3) if fixed else pyarrow.list_(pyarrow.float32())
    table = {"name": list("abcd"), "x": pyarrow.array(X.tolist(), kind)}
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.table(table), path, row_group_size=2)
    np.testing.assert_array_equal(read_vectors(path), X)
    np.testing.assert_array_equal(read_vectors(path, "x"), X)
    with pytest.raises(VectorFileError, match="no column of lists 'name'.*it has x"):
        read_vectors(path, "name")
    for rows, message in (([[1], [1, 2]], "from 1 to 2 items"), ([[1], None], "without lists"), ([[1], [None]], "nulls")):
        pyarrow.parquet.write_table(pyarrow.table({"x": rows}), path)
        with pytest.raises(VectorFileError, match=message):
            read_vectors(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(VectorFileError, match="truncated or malformed"):
        read_vectors(path)


@pytest.mark.parametrize("name, library", [("x.h5", "h5py"), ("x.parquet", "pyarrow")])
def test_what_is_not_installed_is_named(tmp_path, monkeypatch, name, library):
    (tmp_path / name).write_bytes(b"x")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(VectorFileError, match=f"need {library}"):
        read_vectors(tmp_path / name)


def test_errors_are_value_errors(tmp_path):
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        read_vectors(tmp_path / "x.npy")
    (tmp_path / "x.npy").write_bytes(b"")
    with pytest.raises(ValueError, match="empty file"):
        read_vectors(tmp_path / "x.npy")
    (tmp_path / "x.csv").write_text("1,2")
    with pytest.raises(ValueError, match="unknown kind of file"):
        read_vectors(tmp_path / "x.csv")
    np.save(tmp_path / "x.npy", np.ones(3))
    with pytest.raises(ValueError, match="1-dimensional float64"):
        read_vectors(tmp_path / "x.npy")


def npy(header):
    return b"\x93NUMPY\x01\x00v\x00" + header.encode().ljust(117) + b"\n" + bytes(64)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("content", [
    b"PK\x03\x04aaaaaa", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4), "),
    npy("{[1]: '<f4', 'fortran_order': False, 'shape': (2, 4), }"),
    npy("{'descr': '<f4', 'fortran_order': False, 'shape': (True, 4), }"),
    npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999, 999), }")])
def test_damaged_headers_are_named(tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(VectorFileError, match="x.npy: truncated or malformed .npy file"):
        read_vectors(tmp_path / "x.npy")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.npy")
    with pytest.raises(VectorFileError, match="x.npy: is a pipe or device"):
        read_vectors(tmp_path / "x.npy")
