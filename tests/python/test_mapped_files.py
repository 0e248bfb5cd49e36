# SPDX-License-Identifier: MIT
"""Indexes that stay in their file (IO_FLAG_MMAP), from Python: lifetimes, copies, memory, the command line."""

import copy
import json
import os
import pickle
import subprocess
import sys

import faiss
import faiss_ext
import numpy as np
import pytest
from faiss_ext.command_line import main
from helpers import X, fill

MMAP = faiss.IO_FLAG_MMAP
CODES = np.random.default_rng(1).integers(0, 256, (3000, 8), dtype="uint8")


def in_file(string, path):
    index = fill(faiss.index_factory(64, string), X)
    faiss.write_index(index, str(path))
    return index


def same(a, b, queries=X[:30]):
    for x, y in zip(a.search(queries, 5), b.search(queries, 5)):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("string", ["SIK64(gaussian),BFlat", "AHK64(chi2),AFlat,Refine(KFlat(chi2))", "PCA16,KIVF4", "KFlat(chi2,store=sparse)"])
def test_copies_are_in_memory(tmp_path, string):
    path = tmp_path / "index"
    index = in_file(string, path)
    mapped = faiss.read_index(path, MMAP)
    os.remove(path)
    same(index, mapped)
    for twin in (copy.copy(mapped), copy.deepcopy(mapped), faiss.clone_index(mapped), pickle.loads(pickle.dumps(mapped)),
                 faiss.deserialize_index(faiss.serialize_index(mapped))):
        same(index, twin)
        twin.add(X[:10])
        assert twin.ntotal == len(X) + 10
    with pytest.raises(RuntimeError, match="mapped from a file.*IO_FLAG_MMAP"):
        mapped.add(X[:10])
    assert mapped.ntotal == len(X)


@pytest.mark.parametrize("wrapper", [None, faiss.IndexBinaryIDMap, faiss.IndexBinaryIDMap2])
def test_flat_codes_in_files_of_faiss(tmp_path, wrapper):
    flat = faiss.IndexBinaryFlat(64)
    index = wrapper(flat) if wrapper else flat
    (index.add_with_ids(CODES, np.arange(3000) + 5) if wrapper else index.add(CODES))
    path, again = str(tmp_path / "index"), str(tmp_path / "again")
    faiss.write_index_binary(index, path)
    mapped = faiss_ext.read_index_binary(path, MMAP)
    expected = faiss_ext.read_index_binary(path)
    same(expected, mapped, CODES[:20])
    # FAISS's own functions do not lose the codes
    faiss.write_index_binary(mapped, again)
    if not wrapper:  # IndexBinaryIDMap comes back as IndexBinaryIDMap2
        assert open(again, "rb").read() == open(path, "rb").read()
    twins = [faiss_ext.clone_binary_index(mapped), faiss.deserialize_index_binary(faiss.serialize_index_binary(mapped))]
    if not wrapper:  # FAISS 1.7.3 pickles no IndexBinaryIDMap
        twins += [pickle.loads(pickle.dumps(mapped)), copy.deepcopy(mapped)]
    for twin in twins:
        same(expected, twin, CODES[:20])
        assert twin.ntotal == 3000
    with pytest.raises(RuntimeError, match="mapped from a file"):
        (mapped.add_with_ids(CODES, np.arange(3000) + 5000) if wrapper else mapped.add(CODES))


def test_parts_keep_the_file(tmp_path):
    path = tmp_path / "index"
    index = in_file("IDMap2,SIK64(gaussian),BFlat", path)
    codes = index.index.hash.encode(X[:20])
    expected = index.index.storage.search(codes, 4)
    storage = faiss.read_index(path, MMAP).index.storage
    os.remove(path)
    np.testing.assert_array_equal(storage.search(codes, 4)[1], expected[1])


MEMORY = """
import os, re, sys
import faiss, faiss_ext
import numpy as np
path, kind, flags = sys.argv[1], sys.argv[2], faiss.IO_FLAG_MMAP if sys.argv[3] == "mmap" else 0
read = {"float": faiss.read_index, "binary": faiss_ext.read_index_binary}[kind]

def anonymous():
    return int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024

before = anonymous()
index = read(path, flags)
index.search(np.ones((1, index.d if kind == "float" else index.d // 8), "float32" if kind == "float" else "uint8"), 5)
mapped = changed = 0
inside = False
for line in open("/proc/self/smaps"):
    name, value = line.split(None, 1)
    if not name.endswith(":"):  # a mapping begins
        inside = line.rstrip().endswith(os.path.realpath(path))
    elif inside and name == "Size:":
        mapped += int(value.split()[0]) * 1024
    elif inside and name == "Anonymous:":
        changed += int(value.split()[0]) * 1024
print(mapped, changed, anonymous() - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="needs Linux's /proc")
@pytest.mark.parametrize("string", ["BFlat", "SIK512(gaussian),BFlat", "SIK512(gaussian),AFlat", "KFlat(linear)",
                                    "KIVF4(M=16)", "SIK512(gaussian),BIVF4"])
def test_codes_take_no_memory(tmp_path, environment, string):
    n, path = 1_600_000 if string.startswith("KIVF") else 400_000, tmp_path / "index"
    rng = np.random.default_rng(1)
    if string == "BFlat":
        index = faiss_ext.index_binary_factory(512, string)
        index.add(rng.integers(0, 256, (n, 64), dtype="uint8"))
        faiss.write_index_binary(index, str(path))
    else:
        x = rng.random((n, 16), dtype="float32")
        index = faiss.index_factory(16, string)
        index.train(x[:2000])
        index.add(x)
        faiss.write_index(index, str(path))
    size = path.stat().st_size
    found = {}
    for flag in ("mmap", "copy"):
        command = [sys.executable, "-c", MEMORY, path, "binary" if string == "BFlat" else "float", flag]
        result = subprocess.run(
            command, env={**environment, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        found[flag] = list(map(int, result.stdout.split()))
    mapped, changed, taken = found["mmap"]
    # they lie in the mapped file, as it is, and not in other memory as well
    assert mapped > 0.9 * size and changed == 0 and taken < size / 2
    assert found["copy"][0] == 0


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    for string in ("SIK64(gaussian),BFlat", "PCA16,KIVF4"):
        assert main(["build", "x.npy", string, "-o", "index", "--quiet"]) == 0
        said = []
        for more in ([], ["--mmap"]):
            capsys.readouterr()
            assert main(["search", "index", "x.npy", "-k", "3", "--json", *more]) == 0
            found = json.loads(capsys.readouterr().out)
            assert main(["info", "index", "--json", *more]) == 0
            said.append((found["D"], found["I"], capsys.readouterr().out))
        assert said[0] == said[1]
