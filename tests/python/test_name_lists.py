# SPDX-License-Identifier: MIT
"""Files that have ids or names."""

import numpy as np
import pytest
from faiss_ext.id_files import read_filter
from faiss_ext.name_lists import is_names, read_ids_or_names
from faiss_ext.vector_files import VectorFileError

from test_id_files import write  # noqa: F401


@pytest.mark.parametrize("name, data, part, names", [
    ("n.txt", "CHEMBL25\nCHEMBL521\n", None, ["CHEMBL25", "CHEMBL521"]), ("n.txt", "\ufeffone\r\n\r\n two \r\n", None, ["one", "two"]),
    ("n.txt", "2,4-dinitrophenol\na b\n", None, ["2,4-dinitrophenol", "a b"]), ("n.csv", "a\nb\n", None, ["a", "b"]),
    ("n.csv", "only", None, ["only"]), ("n.csv", '"a,\nb"\n"c"\n', None, ["a,\nb", "c"]), ("n.csv", "x,name\n1,a\n2,b\n", "name", ["a", "b"]),
    ("n.csv", "x,name\n1,a\n2,25\n", "name", ["a", "25"]), ("n.csv", "x\ty\na\tb\nc\td\n", "y", ["b", "d"]), ("n.npy", np.array(["a", "é"]), None, ["a", "é"]),
    ("n.npy", np.array([b"a", "é".encode()]), None, ["a", "é"]), ("n.npz", {"n": ["a", "b"], "x": np.ones((2, 2))}, None, ["a", "b"]),
    ("n.parquet", {"n": ["a", "b"], "x": [0.5, 1.5]}, None, ["a", "b"]), ("n.parquet", {"n": ["a", "b"], "x": [1, 2]}, "n", ["a", "b"])])
def test_names(write, name, data, part, names):  # noqa: F811
    given = read_ids_or_names(write(name, data), part)
    assert is_names(given) and given.ids == names


@pytest.mark.parametrize("name, data, part", [
    ("i.txt", "7\n9\n", None), ("i.txt", "id\n7\n9\n", None), ("i.csv", "name,id\na,7\nb,9\n", "id"), ("i.npy", np.array([7, 9]), None),
    ("i.parquet", {"id": [7, 9], "n": ["a", "b"]}, None)])
def test_integers_are_ids(write, name, data, part):  # noqa: F811
    given = read_ids_or_names(write(name, data), part)
    assert not is_names(given) and given.ids.tolist() == [7, 9]


def test_integers_may_be_names_of_an_index(write):  # noqa: F811
    assert read_ids_or_names(write("i.txt", "702\n007\n"), has_names=True).ids == ["702", "007"]
    assert read_ids_or_names(write("i.csv", "cid,x\n702,a\n007,b\n"), "cid", has_names=True).ids == ["702", "007"]
    assert read_ids_or_names(write("i.npy", np.array([7, 9])), has_names=True).ids.tolist() == [7, 9]
    mask = read_ids_or_names(write("m.npy", np.array([True, False])), has_names=True, read=read_filter).ids
    assert mask.dtype == bool


@pytest.mark.parametrize("name, data, message", [
    ("n.txt", "a\nb\n\na\n", "line 4: the name 'a' occurs twice"), ("n.csv", 'a\n""\n"b"\nb\n', "line 4: the name 'b'"),
    ("n.npy", np.array(["a", "", "b"]), "row 1: the name is empty"), ("n.txt", "1\n2\nb\n", "line 3: expected an integer as id, got 'b'"),
    ("n.csv", "a,b\nc,d\n", "which column? It has a, b"), ("n.npy", np.array([1.5]), "expected integers as ids"), ("n.txt", "", "empty file"),
    ("n.txt", b"a\n\xff\n", "txt file"), ("n.fps", "a", "unknown kind of file of ids"), ("n.parquet", {"n": ["a", None]}, "row 1: the name is empty")])
def test_errors_name_the_file_and_the_row(write, name, data, message):  # noqa: F811
    path = write(name, data)
    with pytest.raises(VectorFileError) as error:
        read_ids_or_names(path)
    assert str(error.value).startswith(f"{path}: ") and message in str(error.value)
