# SPDX-License-Identifier: MIT
"""Ids from files and from lists."""

import os

import numpy as np
import pytest
from faiss_ext.id_files import listed_ids, read_ids
from faiss_ext.vector_files import VectorFileError

IDS = [7, 0, -5, 2**63 - 1, 12]


@pytest.fixture
def write(tmp_path):
    """Writes text, bytes, an array, or arrays by name, to a file in an empty folder; returns its path."""
    def function(name, data):
        path = tmp_path / name
        if isinstance(data, str):
            path.write_text(data)
        elif isinstance(data, bytes):
            path.write_bytes(data)
        elif name.endswith(".npz"):
            np.savez(path, **data)
        elif name.endswith(".parquet"):
            pyarrow = pytest.importorskip("pyarrow")
            import pyarrow.parquet
            pyarrow.parquet.write_table(pyarrow.table(data), path)
        else:
            np.save(path, data)
        return path
    return function


LINES = "\n".join(map(str, IDS))


@pytest.mark.parametrize("name, data, part", [
    ("ids.npy", np.array(IDS), None), ("ids.npy", np.array(IDS)[:, None], None), ("ids.npy", np.array(IDS, dtype=">i8"), None),
    ("ids.npz", {"some": IDS, "x": np.ones((5, 2))}, None), ("ids.npz", {"some": IDS, "more": [1]}, "some"),
    ("ids.parquet", {"some": IDS, "word": list("abcde")}, None), ("ids.parquet", {"some": IDS, "more": IDS[::-1]}, "some"),
    ("ids.txt", LINES, None), ("ids.csv", "\ufeffid\r\n" + LINES.replace("\n", "\r\n") + "\r\n\r\n", None), ("ids.csv", '"id"\n' + LINES, "id"),
    ("ids.csv", "x;some\n" + "".join(f"0.5; {i} \n" for i in IDS), "some"), ("ids.csv", "some,words\n" + "".join(f'{i},"a,\nb"\n' for i in IDS), "some")])
def test_files(write, name, data, part):
    ids = read_ids(write(name, data), part).ids
    assert ids.dtype == np.int64 and ids.tolist() == IDS


@pytest.mark.parametrize("name, data, part, message", [
    ("i.npy", np.array([1., np.nan, 2.5]), None, "expected integers as ids, got float64; row 1 is nan"),
    ("i.npy", np.array([1., 2.5]), None, "row 1 is 2.5"), ("i.npy", np.array([1., 2.]), None, "got float64"),
    ("i.npy", np.array([True, False]), None, "got bool"),
    ("i.npy", np.array([4, -1, -1]), None, "row 1: the id is -1"), ("i.npy", np.array([4, 5, 6, 5]), None, "row 3: id 5 occurs twice"),
    ("i.npy", np.array([1, 2**63], dtype="uint64"), None, "row 1: id 9223372036854775808 is too large"),
    ("i.npy", np.ones((3, 2), int), None, "array of one dimension, got shape (3, 2)"), ("i.npy", np.int64(4), None, "got shape ()"),
    ("i.npy", np.ones(0, int), None, "it has no ids"), ("i.npy", np.ones(2, int), "a", "has no part 'a'"), ("i.npy", b"123", None, "npy file"),
    ("i.npz", {"a": [1], "b": [2]}, None, "which array of one dimension? It has a, b"), ("i.npz", {"a": [1]}, "c", "no array of one dimension 'c'"),
    ("i.parquet", {"a": [1, None]}, None, "row 1 of column 'a' is empty"), ("i.parquet", {"a": [1.0, 1.5]}, "a", "row 1 is 1.5"),
    ("i.parquet", {"a": [1], "b": [2]}, None, "which column of integers? It has a, b"), ("i.parquet", {"a": ["x"]}, None, "it has no column of integers"),
    ("i.txt", "", None, "empty file"), ("i.csv", "id\n", None, "it has no ids"), ("i.csv", "id\n\n3\n2.5\n", None, "line 4: expected an integer as id, got '2.5'"),
    ("i.txt", "1 2\n3\n", None, "line 1: expected an integer as id, got '1 2'"), ("i.txt", "NA\n3\n", None, "line 1: expected an integer"),
    ("i.txt", "1\nnan\n", None, "line 2: expected an integer as id, got 'nan'"), ("i.txt", "1\n1e3\n", None, "line 2: expected an integer"),
    ("i.txt", "1\n\n-1\n", None, "line 3: the id is -1"), ("i.txt", "8\n9\n\n8\n", None, "line 4: id 8 occurs twice"),
    ("i.txt", "1\n9223372036854775808\n", None, "line 2: id 9223372036854775808 does not fit"), ("i.txt", "1\n" + "9" * 5000, None, "does not fit"),
    ("i.csv", "1,2\n3,4\n", None, "an id per line, got 2 columns without names"), ("i.csv", "a,b\n3,4\n", None, "which column? It has a, b"),
    ("i.csv", "a,b\n3,4\n", "c", "no column 'c' in it; it has a, b"), ("i.csv", "a,b\n3,4\n5\n", "a", "line 3: expected 2 words separated by ','"),
    ("i.csv", "a,b\n,4\n", "a", "line 2: expected an integer as id, got ''"), ("i.txt", b"1\n\xff\n", None, "txt file"),
    ("i.fvecs", b"1234", None, "unknown kind of file of ids")])
def test_errors_name_the_file_and_the_row(write, name, data, part, message):
    path = write(name, data)
    with pytest.raises(VectorFileError) as error:
        read_ids(path, part)
    assert str(error.value).startswith(f"{path}: ") and message in str(error.value)


def test_what_is_not_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.npy")
    for name, message in (("pipe.npy", "folder, pipe or device"), ("", "folder, pipe or device"), ("gone.npy", "cannot be read: No such file")):
        with pytest.raises(VectorFileError, match=message):
            read_ids(tmp_path / name)


@pytest.mark.parametrize("text, ids", [
    ("3", [3]), ("3,17,20-23", [3, 17, 20, 21, 22, 23]), ("5-5,0-1", [5, 0, 1]), ("20-22", [20, 21, 22]),
    (f"1,{2**63 - 2}-{2**63 - 1}", [1, 2**63 - 2, 2**63 - 1])])
def test_lists(text, ids):
    assert list(listed_ids(text).ids) == ids


def test_wrong_lists():
    for text in ("", "3,", "-1", "1-", "ids.npy", "3 4", "a-b"):
        assert listed_ids(text) is None
    for text, message in (("5-4", "a range of ids is LOW-HIGH"), ("3,1-4", "id 3 occurs twice"), (str(2**63), "the largest id is"),
                          ("0-999999999999,5", "more than 100,000,000 ids")):
        with pytest.raises(ValueError, match=message):
            listed_ids(text)
    assert listed_ids(f"0-{2**63 - 1}").ids == range(2**63)
