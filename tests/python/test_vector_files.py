# SPDX-License-Identifier: MIT
"""Files of vectors; those of scripts/datasets.py are in test_demo.py."""

import gzip
import os
import resource
import sys
import zipfile

import faiss_ext
import numpy as np
import pytest
from faiss_ext.vector_files import VectorFileError, image_shape, lazy_vectors, read_vectors

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
    (tmp_path / "x.txt").write_text("1,2")
    with pytest.raises(ValueError, match="unknown kind of file"):
        read_vectors(tmp_path / "x.txt")
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


def test_arrays_of_npz_by_name(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, first=X, labels=np.arange(4))
    np.testing.assert_array_equal(read_vectors(path), X)
    np.savez_compressed(path, first=X, second=2 * X)
    np.testing.assert_array_equal(read_vectors(path, "second"), 2 * X)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("README", "no array")
    with pytest.raises(VectorFileError, match="x.npz: which array of two dimensions. It has first, second"):
        read_vectors(path)
    with pytest.raises(VectorFileError, match="x.npz: no array of two dimensions 'third' in it; it has first, second"):
        read_vectors(path, "third")


@pytest.mark.parametrize("text", [
    "0,1,2\n3,4,5\n6,7,8\n9,10,11\n", "\ufeffr,g,b\n0,1,2\n3,4,5\n\n6,7,8\n9,10,11", "\n0, 1, 2\r\n3,4,5\r\n6,7,8\r\n9e0,1e1,11\r\n",
    "0;1;2\n3;4;5\n6;7;8\n9;10;11\n", "0,\t1,\t2\n3,4,5\n6,7,8\n9,10,11\n", "r\tg\tb\n0\t1\t2\n3\t4\t5\n6\t7\t8\n9\t10\t11\n",
    '"r","g","b"\n"0","1","2"\n3,4,5\n6,7,8\n9,10,11\n'])
def test_lines_of_csv(tmp_path, text):
    (tmp_path / "x.csv").write_bytes(text.encode())
    read = read_vectors(tmp_path / "x.csv")
    assert read.dtype == "float32"
    np.testing.assert_array_equal(read, X)


@pytest.mark.parametrize("content, message", [
    ("NA,NA\n1,2\n3,4\n", "'NA' in the first line is neither a number nor a name"),
    ("0x10,0x20\n1,2\n", "'0x10' in the first line"),
    ("1 2\n3,4\n", "expected 2 names in the first line"),
    ("1 2\n3 4\n", "'1 2' in the first line"),
    ("a,b,c\n1,2\n", "expected 2 names in the first line"),
    ("title\n1,2\n", "expected 2 names in the first line"),
    (",a,b\n0,1,2\n", "expected 3 names in the first line"),
    ("0,1,2,3,4,5,6,7\n1,1,1,1,1,1,1,1\n", "the first line numbers the columns, 0 to 7")])
def test_first_lines_of_csv_that_are_neither_names_nor_numbers(tmp_path, content, message):
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(VectorFileError, match=f"x.csv: .*{message}"):
        read_vectors(tmp_path / "x.csv")


@pytest.mark.parametrize("content, message", [
    (b"r,g,b\n", "no vectors"), (b"0,1,x\n2,3,4\n", "'x'"), (b"1,2\n3\n", "columns"), (b"1 2\n3 4\n", "'1 2' in the first line"), (b"1,2\n3,\xff\n", "utf-8")])
def test_csv_without_vectors(tmp_path, content, message):
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(VectorFileError, match=f"x.csv: .*{message}"):
        read_vectors(tmp_path / "x.csv")


def of_type(make):
    """An HDF5 dataset of a type that h5py has no name for."""

    def write(h5py, file):
        data = h5py.h5d.create(file.id, b"x", make(h5py), h5py.h5s.create_simple(X.shape))
        data.write(h5py.h5s.ALL, h5py.h5s.ALL, X)

    return write


def few_bits(h5py, name, precision, offset=0):
    made = getattr(h5py.h5t, name).copy()
    made.set_precision(precision)
    made.set_offset(offset)
    return made


def bfloat16(h5py):
    made = h5py.h5t.IEEE_F32LE.copy()
    made.set_fields(15, 7, 8, 0, 7)
    made.set_size(2)
    made.set_ebias(127)
    return made


@pytest.mark.parametrize("write", [
    of_type(lambda h5py: few_bits(h5py, "STD_U16LE", 12)), of_type(lambda h5py: few_bits(h5py, "STD_U16LE", 12, 4)),
    of_type(lambda h5py: few_bits(h5py, "STD_U8LE", 6, 2)), of_type(bfloat16),
    lambda h5py, file: file.create_dataset("x", data=X, chunks=(2, 3), scaleoffset=3),
    lambda h5py, file: file.create_dataset("x", data=X, chunks=(2, 3), compression="gzip", shuffle=True),
    lambda h5py, file: file.create_dataset("x", data=X, external=[(file.filename + ".raw", 0, h5py.h5f.UNLIMITED)])])
def test_hdf5_is_not_mapped_unless_it_lies_there_as_in_numpy(tmp_path, write):
    h5py = pytest.importorskip("h5py")
    path = str(tmp_path / "x.h5")
    with h5py.File(path, "w") as file:
        write(h5py, file)
    np.testing.assert_array_equal(read_vectors(path), X)
    assert not isinstance(lazy_vectors(path), np.ndarray)
    with pytest.raises(VectorFileError, match="x.h5: its vectors cannot be mapped"):
        faiss_ext.file_index(path, "chi2")
    D, I = faiss_ext.build_from(path, "KFlat(linear)", exact="memory", metric=0, progress=False).search(X, 4)
    np.testing.assert_array_equal(np.take_along_axis(D, I.argsort(axis=1), axis=1), X @ X.T)


@pytest.mark.parametrize("kind", ["<f4", ">f4", "<f2", "u1", "?"])
def test_hdf5_is_mapped_behind_a_user_block(tmp_path, kind):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["x"] = X.astype(kind)
    read = lazy_vectors(path)
    assert isinstance(read, np.memmap) and read.dtype == kind
    np.testing.assert_array_equal(read, X.astype(kind))


@pytest.mark.parametrize("block", [0, 512])
def test_hdf5_arrays_that_nothing_was_written_to(tmp_path, block):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", userblock_size=block) as file:
        file.create_dataset("x", (10, 4), "f4")
        file.create_dataset("many", (10**12, 4), "f4", chunks=(2, 4))[:1] = 1
    for call in (read_vectors, lazy_vectors, lambda *a: faiss_ext.file_index(a[0], "chi2", part=a[1])):
        with pytest.raises(VectorFileError, match="x.h5: nothing has been written to the array x"):
            call(path, "x")
    with pytest.raises(VectorFileError, match="x.h5: malformed: it claims an array of shape .1000000000000, 4."):
        read_vectors(path, "many")


def files_of_vectors(folder):
    """One of each kind that is read."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 200, (20, 6)).astype("float32")
    np.save(folder / "x.npy", x)
    np.savez(folder / "x.npz", x=x)
    np.savez_compressed(folder / "packed.npz", x=x, y=x[0])
    np.savetxt(folder / "x.csv", x, "%g", ",", header="a,b,c,d,e,f", comments="")
    lengths = np.full((20, 1), 6, "<i4").view("u1")
    (folder / "x.fvecs").write_bytes(np.hstack([lengths, x.view("u1")]).tobytes())
    (folder / "x.bvecs").write_bytes(np.hstack([lengths, x.astype("u1")]).tobytes())
    images = b"\0\0\x08\x03" + np.array([20, 2, 3], ">u4").tobytes() + x.astype("u1").tobytes()
    (folder / "x-idx3-ubyte").write_bytes(images)
    with gzip.open(folder / "x-idx3-ubyte.gz", "wb") as file:
        file.write(images)
    if h5py := sys.modules.get("h5py"):
        with h5py.File(folder / "x.h5", "w") as file:
            file["x"] = x
        with h5py.File(folder / "packed.h5", "w") as file:
            file.create_dataset("g/x", data=x, chunks=(4, 6), compression="gzip")
    if "pyarrow" in sys.modules:
        import pyarrow.parquet
        pyarrow.parquet.write_table(pyarrow.table({"x": x.tolist()}), folder / "x.parquet")
    return sorted(folder.iterdir())


def mutant(data, rng, kinds=4):
    """A file cut short, with a few bytes changed, mostly in its header, or with numbers that are too large."""
    data = bytearray(data)
    kind = rng.integers(kinds)
    if kind == 0:
        return bytes(data[:rng.integers(len(data))])
    for _ in range(rng.integers(1, 4)):
        at = rng.integers(min(len(data), 160 if rng.integers(2) else len(data)))
        if kind == 1:
            data[at] ^= 1 << rng.integers(8)
        elif kind == 2:
            data[at] = rng.choice(list(b"\0\x7f\xff({[9,'x"))
        else:
            data[at:at + rng.integers(1, 9)] = rng.choice([b"\xff" * 8, b"\0" * 8, b"(" * 300, b"9" * 12, b"\xff\xff\xff\x7f"])
    return bytes(data)


@pytest.mark.filterwarnings("ignore")
def test_damaged_files_are_read_or_named(tmp_path):
    for library in ("h5py", "pyarrow"):
        try:
            __import__(library)
        except ImportError:
            pass
    (tmp_path / "good").mkdir()
    rng = np.random.default_rng(2)
    read = refused = 0
    for good in files_of_vectors(tmp_path / "good"):
        data = good.read_bytes()
        read_vectors(good)
        path = tmp_path / good.name
        for _ in range(60):
            # (some of the others crash HDF5's own library)
            path.write_bytes(mutant(data, rng, 1 if path.suffix == ".h5" else 4))
            for call in (read_vectors, image_shape, lambda path: lazy_vectors(path)[:3]):
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                try:
                    call(path)
                    read += 1
                except VectorFileError as error:
                    refused += 1
                    assert str(error).startswith(f"{path}: ") and len(str(error)) < 1000
                assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 2**16  # of KB
            path.unlink()
    assert read > 100 and refused > 100
