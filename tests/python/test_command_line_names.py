# SPDX-License-Identifier: MIT
"""The command line with names of vectors and files of fingerprints."""

import csv
import json
import os
import subprocess
import sys
from random import Random

import faiss
import faiss_ext
import numpy as np
import pytest
from faiss_ext import fingerprint_builds
from faiss_ext.command_files import index_of
from faiss_ext.command_line import main
from hypothesis import HealthCheck, given, settings, strategies as st

from helpers import COUNTS, X

BITS = np.packbits(COUNTS[:60] > 8, axis=1)
NAMES = [f"mol {i}" if i % 7 else f'{i}\'-"a",b' for i in range(60)]
TYPE = "morgan2:64"


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """A command in an empty folder: its status, what it printed, its messages."""
    monkeypatch.chdir(tmp_path)

    def function(*words):
        try:
            status = main([str(word) for word in words])
        except SystemExit as error:  # of argparse
            status = error.code
        return (status, *capsys.readouterr())

    return function


def fps(name, rows, type=TYPE, names=NAMES):
    faiss_ext.write_fps(name, BITS[rows], [names[i] for i in rows], type=type)


def built(run, rows=range(50), string="BKFlat(jaccard)", *words):
    fps("base.fps", list(rows))
    found = run("build", "base.fps", string, "-o", "base.index", "--quiet", *words)
    assert found[0] == 0, found
    return found


def table(text):
    return list(csv.reader(text.splitlines(), delimiter="\t"))


def tanimoto(a, b):
    a, b = np.unpackbits(a, axis=1)[:, None], np.unpackbits(b, axis=1)[None]
    return (a & b).sum(axis=2) / np.maximum((a | b).sum(axis=2), 1)


K = tanimoto(BITS, BITS)


def names_in(path="base.index"):
    """The names in a file, as many as vectors."""
    names, index = faiss_ext.read_names(path), index_of(path)
    assert len(names) == index.ntotal
    return names


@pytest.mark.parametrize("string", ["BKFlat(jaccard)", "BFlat", "BIVF2", "BPerm(M=3,B=10)", "IDMap2,BKFlat(jaccard)"])
@pytest.mark.filterwarnings("ignore")
def test_an_index_of_fingerprints_is_built_as_in_python(run, tmp_path, monkeypatch, string):
    monkeypatch.setattr(fingerprint_builds, "fingerprint_batches",
                        lambda *args, **others: faiss_ext.fingerprint_batches(*args, **others, batch=7))
    _, out, err = built(run, range(50), string)
    assert "50 vectors of 64 bits, with names" in out and err == ""
    np.save("base.npy", BITS[:50])
    assert run("build", "base.npy", string, "-o", "plain.index", "--quiet")[0] == 0
    plain = (tmp_path / "plain.index").read_bytes()
    assert (tmp_path / "base.index").read_bytes().startswith(plain)
    assert list(names_in()) == NAMES[:50] and names_in().about == {"fingerprint": TYPE}
    assert {path.name for path in tmp_path.iterdir()} == {"base.fps", "base.npy", "base.index", "plain.index"}


def test_results_have_names_and_similarities(run):
    built(run)
    fps("queries.fps", [3, 55])
    status, out, err = run("search", "base.index", "queries.fps", "-k", 5)
    rows = table(out)
    assert status == 0 and rows[0] == ["query", "name", "similarity"] and "2 queries" in err
    D, I = index_of("base.index").search(BITS[[3, 55]], 5)
    assert [row[:2] for row in rows[1:]] == [[NAMES[q], NAMES[i]] for q, found in zip((3, 55), I) for i in found]
    np.testing.assert_allclose([float(row[2]) for row in rows[1:]], [K[q, i] for q, found in zip((3, 55), I) for i in found], atol=1e-6)

    assert run("search", "base.index", "queries.fps", "-k", 5, "-o", "found.tsv")[:2] == (0, "")
    assert open("found.tsv", encoding="utf-8").read() == out
    assert run("search", "base.index", "queries.fps", "-k", 5, "-o", "found.csv")[0] == 0
    assert list(csv.reader(open("found.csv", encoding="utf-8"))) == rows
    assert run("search", "base.index", "queries.fps", "-k", 5, "-o", "found.npz")[0] == 0
    found = np.load("found.npz")
    assert found["names"].tolist() == [[NAMES[i] for i in row] for row in I] and np.array_equal(found["I"], I)
    said = json.loads(run("search", "base.index", "queries.fps", "-k", 5, "--json")[1])
    assert said["names"] == found["names"].tolist() and said["D"] == D.tolist()
    for results in (found, {key: np.array(value) for key, value in said.items()}):
        assert results["query_names"].tolist() == [NAMES[3], NAMES[55]]
        np.testing.assert_allclose(results["similarities"], [[K[q, i] for i in row] for q, row in zip((3, 55), I)], atol=1e-6)


def test_queries_without_names_and_indexes_without_similarities(run):
    built(run)
    np.save("queries.npy", BITS[:2])
    rows = table(run("search", "base.index", "queries.npy", "-k", 1)[1])
    assert rows == [["query", "name", "similarity"], ["0", NAMES[0], "1"], ["1", NAMES[1], "1"]]
    assert table(run("search", "base.index", "queries.npy", "-k", 1, "--mmap")[1]) == rows
    built(run, range(50), "BFlat")
    assert table(run("search", "base.index", "queries.npy", "-k", 1)[1])[:2] == [["query", "name", "distance"], ["0", NAMES[0], "0"]]
    run("build", "queries.npy", "BKFlat(jaccard)", "-o", "plain.index", "--quiet")
    fps("queries.fps", [1])
    assert table(run("search", "plain.index", "queries.fps", "-k", 1)[1]) == [["query", "id", "similarity"], [NAMES[1], "1", "1"]]
    assert run("search", "plain.index", "queries.npy", "-k", 1)[1] == "0: 0:1\n1: 1:1\n"
    assert run("search", "plain.index", "queries.npy", "-k", 1, "-o", "plain.tsv")[0] == 0
    assert table(open("plain.tsv").read()) == [["query", "id", "similarity"], ["0", "0", "1"], ["1", "1", "1"]]


@pytest.mark.parametrize("string", ["BKFlat(jaccard)", "IDMap2,BKFlat(jaccard)"])
@pytest.mark.parametrize("at", [0.5, 0.0, 1.0, "some"])
def test_thresholds_are_kernel_values(run, string, at):
    built(run, range(50), string)
    fps("queries.fps", [3, 55])
    at = float(np.sort(K[3, :50])[-5]) if at == "some" else at  # a value that occurs
    status, out, _ = run("search", "base.index", "queries.fps", "--threshold", at)
    rows = table(out)[1:]
    assert status == 0 and sorted(row[:2] for row in rows) == sorted(
        [NAMES[q], NAMES[i]] for q in (3, 55) for i in range(50) if K[q, i] >= at - 1e-9)
    for query in NAMES[3], NAMES[55]:  # the nearest are first
        values = [float(row[2]) for row in rows if row[0] == query]
        assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("string", ["BKFlat(jaccard)", "IDMap2,BKFlat(jaccard)", "BFlat,Refine(BKFlat(jaccard))"])
@pytest.mark.parametrize("k", [1, 4, 100])
def test_the_nearest_that_reach_a_threshold(run, string, k):
    built(run, range(50), string)
    fps("queries.fps", [3, 55, 9])
    at = float(np.sort(K[3, :50])[-5])  # five reach it
    words = ("search", "base.index", "queries.fps", "--threshold", at, "-k", k, "-p", "k_factor=100") if "Refine" in string else (
        "search", "base.index", "queries.fps", "--threshold", at, "-k", k)
    status, out, err = run(*words)
    assert status == 0, err
    for q in (3, 55, 9):
        expected = np.sort(K[q, :50][K[q, :50] >= at - 1e-9])[::-1][:k]
        rows = [row for row in table(out)[1:] if row[0] == NAMES[q]]
        np.testing.assert_allclose([float(row[2]) for row in rows], expected, atol=1e-6)
        np.testing.assert_allclose([K[q, NAMES.index(row[1])] for row in rows], expected, atol=1e-6)
    said = json.loads(run(*words, "--json")[1])
    assert "lims" not in said and np.shape(said["I"]) == (3, k)
    for ids, names, values in zip(said["I"], said["names"], said["similarities"]):
        assert names == [None if i < 0 else NAMES[i] for i in ids] and [v is None for v in values] == [i < 0 for i in ids]


def test_thresholds_need_kernel_values(run):
    built(run, range(50), "BFlat")
    assert run("search", "base.index", "base.fps", "--threshold", 0.5)[::2] == (
        2, "faiss_ext: --threshold is for indexes with BKFlat; --radius is a distance of any index\n")
    assert run("search", "base.index", "base.fps", "--threshold", 0.5, "-k", 3)[0] == 2
    assert run("search", "base.index", "base.fps", "--threshold", 0.5, "--radius", 3)[0] == 2
    assert run("search", "base.index", "base.fps", "--radius", 3, "-k", 3)[::2] == (
        2, "faiss_ext: -k and --radius exclude each other; --threshold may be combined with -k\n")
    for threshold in (-1, 1.5, "nan"):
        status, _, err = run("search", "base.index", "base.fps", "--threshold", threshold)
        assert status == 2 and f"--threshold: expected a number from 0 to 1, got {threshold}" in err


@pytest.mark.parametrize("string", ["BKFlat(jaccard)", "BIVF2", "BPerm(M=3,B=10)"])
@pytest.mark.filterwarnings("ignore")
def test_names_follow_changes(run, string):
    built(run, range(40), string)
    fps("new.fps", [40, 41, 42])
    assert run("add", "base.index", "new.fps")[1] == "base.index: 3 added, with ids from 40 to 42; 43 vectors now\n"
    expected = {NAMES[i]: i for i in range(43)}

    changed = {NAMES[5]: 50, NAMES[41]: 51, "new": 52}
    faiss_ext.write_fps("changed.fps", BITS[list(changed.values())], list(changed), type=TYPE)
    status, _, err = run("update", "base.index", "changed.fps")
    assert status == 1 and "changed.fps: base.index has no vector with the name 'new'; --upsert adds it" in err
    assert run("update", "base.index", "changed.fps", "--upsert")[1] == "base.index: 2 replaced, 1 added; 44 vectors now\n"
    expected.update(changed)

    with open("gone.txt", "w") as file:
        file.write(f"{NAMES[0]}\nnobody\n{NAMES[7]}\n")
    assert run("remove", "base.index", "--ids", "gone.txt", "-o", "other.index")[1] == "other.index: 2 removed, 1 not found; 42 vectors now\n"
    assert len(names_in("base.index")) == 44
    np.save("ids.npy", [1, 2, 900])
    assert run("remove", "other.index", "--ids", "ids.npy")[1] == "other.index: 2 removed, 1 not found; 40 vectors now\n"
    for i in (0, 7, 1, 2):
        del expected[NAMES[i]]
    names = names_in("other.index")
    assert dict(zip(names, index_of("other.index").reconstruct_batch(names.ids(list(names))).tolist())) == {
        name: BITS[i].tolist() for name, i in expected.items()}

    faiss_ext.write_fps("again.fps", BITS[:1], ["again"], type=TYPE)
    assert run("add", "other.index", "again.fps")[0] == 0
    assert names_in("other.index").ids(["again"]).tolist() == [44]  # not one of the removed ids


def test_filters_by_names(run):
    built(run)
    with open("allowed.txt", "w") as file:
        file.write("\n".join([NAMES[7], "nobody", NAMES[30]]))
    fps("queries.fps", [3])
    status, out, err = run("search", "base.index", "queries.fps", "--filter", "allowed.txt")
    assert status == 0 and {row[1] for row in table(out)[1:]} == {NAMES[7], NAMES[30]} and "1 name in allowed.txt is not in the index" in err
    np.save("ids.npy", [7, 30])
    assert {row[1] for row in table(run("search", "base.index", "queries.fps", "--filter", "ids.npy")[1])[1:]} == {NAMES[7], NAMES[30]}
    np.save("mask.npy", np.arange(50) == 30)
    assert {row[1] for row in table(run("search", "base.index", "queries.fps", "--filter", "mask.npy")[1])[1:]} == {NAMES[30]}


def test_names_on_the_command_line(run):
    built(run, range(40))
    fps("queries.fps", [3])
    plain = NAMES[1:4]  # without commas
    status, out, err = run("search", "base.index", "queries.fps", "--filter", ",".join(plain))
    assert status == 0 and {row[1] for row in table(out)[1:]} == set(plain) and "not in the index" not in err
    assert "has no vector with the name '3'" in run("search", "base.index", "queries.fps", "--filter", "3,5")[2]
    np.save("new.npy", BITS[40:42])
    assert run("add", "base.index", "new.npy", "--ids", "aspirin, ibuprofen")[0] == 0
    assert names_in().of([40, 41]).tolist() == ["aspirin", "ibuprofen"]
    np.save("one.npy", BITS[50:51])
    assert run("update", "base.index", "one.npy", "--ids", "aspirin")[1].startswith("base.index: 1 replaced, 0 added")
    assert np.array_equal(index_of("base.index").reconstruct_batch([40]), BITS[50:51])
    assert run("remove", "base.index", "--ids", f"ibuprofen,{NAMES[1]}")[1] == "base.index: 2 removed, 0 not found; 40 vectors now\n"
    before = open("base.index", "rb").read()
    for words, message in (
            (("remove", "base.index", "--ids", "aspirin,nobody"), "aspirin,nobody: the index has no vector with the name 'nobody', and there is no file of this name"),
            (("search", "base.index", "queries.fps", "--filter", "nobody"), "nobody: the index has no vector with the name 'nobody'"),
            (("update", "base.index", "new.npy", "--ids", "aspirin,nobody"), "aspirin,nobody: base.index has no vector with the name 'nobody'; --upsert adds it"),
            (("update", "base.index", "new.npy", "--ids", "aspirin,aspirin"), "aspirin,aspirin: the name 'aspirin' occurs twice"),
            (("add", "base.index", "new.npy", "--ids", "aspirin,new"), "aspirin,new: the name 'aspirin' is already in use"),
            (("add", "base.index", "new.npy", "--ids", "new"), "new: 1 name, but new.npy has 2 vectors"),
            (("remove", "base.index", "--ids", "aspirin,,"), "the name is empty"),
            (("remove", "base.index", "--ids", "gone.txt"), "gone.txt: neither a file nor a list of ids")):
        status, out, err = run(*words)
        assert status == 1 and out == "" and message in err, err
    assert open("base.index", "rb").read() == before
    np.save("plain.npy", BITS[:5])
    run("build", "plain.npy", "BKFlat(jaccard)", "-o", "plain.index", "--quiet")
    assert "aspirin: neither a file nor a list of ids" in run("remove", "plain.index", "--ids", "aspirin")[2]


def piped(data, *words):
    """A command in a process of its own, which reads the bytes from a pipe."""
    return subprocess.run([sys.executable, "-m", "faiss_ext", *map(str, words)], input=data, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def test_fingerprints_and_indexes_from_pipes(run):
    built(run)
    base, index = (open(name, "rb").read() for name in ("base.fps", "base.index"))
    done = piped(base, "build", "-", "BKFlat(jaccard)", "--format", "fps", "-o", "piped.index", "--quiet")
    assert done.returncode == 0, done.stderr
    assert open("piped.index", "rb").read() == index
    fps("queries.fps", [3, 55])
    queries = open("queries.fps", "rb").read()
    expected = run("search", "base.index", "queries.fps", "-k", 3)[1]
    for data, words in ((queries, ("base.index", "-", "--format", "fps")), (index, ("/dev/stdin", "queries.fps"))):
        done = piped(data, "search", *words, "-k", 3)
        assert done.returncode == 0 and done.stdout.decode() == expected, done.stderr
    assert b"50 names" in piped(index, "info", "/dev/stdin").stdout
    fps("new.fps", [50])
    assert b"1 added" in piped(open("new.fps", "rb").read(), "add", "base.index", "-", "--format", "fps").stdout
    assert NAMES[50] in names_in()
    done = piped(base, "duplicates", "-", "--format", "fps", "--threshold", 0.4, "--quiet")
    assert done.stdout.decode() == run("duplicates", "base.fps", "--threshold", 0.4, "--quiet")[1]
    for data, words, status, message in (
            (queries + b"zz\tx\n", ("search", "base.index", "-", "--format", "fps"), 1, b"standard input (fps): line "),
            (b"", ("search", "base.index", "-", "--format", "fps"), 1, b"standard input (fps): it has no fingerprints"),
            (b"", ("search", "base.index", "queries.fps", "--format", "fps"), 2, b"give one of the files as -"),
            (queries, ("add", "base.index", "-"), 2, b"- is not a file: only fingerprints and SMILES are read from standard input, with --format"),
            (queries, ("search", "base.index", "-"), 2, b"with --format"),
            (index[:-1], ("info", "/dev/stdin"), 1, b"/dev/stdin: the names behind the index are truncated or damaged"),
            (index[:-1] + b"x", ("search", "/dev/stdin", "queries.fps"), 1, b"/dev/stdin: the names behind the index are")):
        done = piped(data, *words)
        assert done.returncode == status and message in done.stderr, done.stderr


def test_results_come_as_lines_come_in(run):
    """The end of standard input has not come when the first results are read."""
    built(run)
    fps("queries.fps", [3, 55, 9])
    lines = open("queries.fps", "rb").read().splitlines(keepends=True)
    expected = run("search", "base.index", "queries.fps", "-k", 3)[1].splitlines()
    with subprocess.Popen([sys.executable, "-m", "faiss_ext", "search", "base.index", "-", "--format", "fps", "-k", "3"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}) as process:
        def sent(data, n):
            process.stdin.write(data)
            process.stdin.flush()
            return [process.stdout.readline().decode().rstrip("\n") for _ in range(n)]
        assert sent(b"".join(lines[:-2]) + lines[-2][:5], 4) == expected[:4]  # with a part of the next line
        assert sent(lines[-2][5:], 3) == expected[4:7]
        out, err = process.communicate(lines[-1].rstrip(b"\n"))
    assert out.decode().splitlines() == expected[7:] and b"3 queries in " in err and process.returncode == 0
    many = b"".join(lines[:-3]) + b"".join(line.replace(b"\t", f"\t{i} ".encode()) for i in range(4000) for line in lines[-3:])
    done = piped(many + b"zz\tbad\n", "search", "base.index", "-", "--format", "fps", "-k", 1, "--skip-errors")
    assert len(table(done.stdout.decode())) == 12001 and done.stderr.startswith(b"1 line skipped:\n  standard input (fps): line 12"), done.stderr
    assert done.returncode == 0 and done.stderr.endswith(b" s\n") and b"12,000 queries in " in done.stderr
    done = piped(many + b"zz\tbad\n", "search", "base.index", "-", "--format", "fps", "-k", 1)
    assert done.returncode == 1 and len(table(done.stdout.decode())) <= 12001
    for words in (("--json",), ("-o", "found.tsv")):
        done = piped(b"".join(lines), "search", "base.index", "-", "--format", "fps", "-k", 3, *words)
        assert done.returncode == 0, done.stderr
    assert open("found.tsv").read().splitlines() == expected


def test_molecules_from_a_pipe(run):
    pytest.importorskip("rdkit")
    data = b"CCO ethanol\nCC(=O)Oc1ccccc1C(=O)O aspirin\n"
    done = piped(data, "build", "-", "BKFlat(jaccard)", "--format", "smi", "-o", "base.index", "--fingerprint", "ecfp4:128", "--quiet")
    assert done.returncode == 0 and names_in().about == {"fingerprint": "morgan2:128"}, done.stderr
    done = piped(data, "search", "base.index", "-", "--format", "smi", "-k", 1)
    assert table(done.stdout.decode())[1:] == [["ethanol", "ethanol", "1"], ["aspirin", "aspirin", "1"]]
    from rdkit import Chem
    records = b"".join(f"{name}\n{Chem.MolToMolBlock(Chem.MolFromSmiles(smiles)).partition(chr(10))[2]}>  <ID>\nid {name}\n\n$$$$\n".encode()
                       for smiles, name in (line.split() for line in data.decode().splitlines()))
    for words, front in (((), ""), (("--name-property", "ID"), "id ")):
        done = piped(records, "search", "base.index", "-", "--format", "sdf", "-k", 1, *words)
        assert table(done.stdout.decode())[1:] == [[front + "ethanol", "ethanol", "1"], [front + "aspirin", "aspirin", "1"]]
    done = piped(records + b"bad\n$$$$\n", "add", "base.index", "-", "--format", "sdf", "--name-property", "ID", "--skip-errors")
    assert done.returncode == 0 and list(names_in())[2:] == ["id ethanol", "id aspirin"] and b"standard input (sdf): record 3: invalid molecule" in done.stderr


@pytest.mark.parametrize("string", ["KFlat(jaccard)", "KFlat(jaccard,store=sparse)", "CWS64,BFlat", "CWS64,BFlat,Refine(KFlat(jaccard))",
                                    "IDMap2,KFlat(jaccard)", "KPCA4(jaccard,p=40),Flat", "PCA4,Flat", "CWS64,BFlat,Refine(BKFlat(jaccard))"])
@pytest.mark.parametrize("bits", [64, 61])
def test_packed_bits_for_all_indexes(run, string, bits):
    """An index of vectors takes packed bits as vectors of zeros and ones."""
    codes = BITS & np.packbits(np.arange(64) < bits)
    dense = np.unpackbits(codes, axis=1, count=bits).astype("float32")
    names = NAMES[:50]
    faiss_ext.write_fps("base.fps", codes[:50], names, bits, "mine")
    np.savez("base.npz", codes=codes[:50], names=names)
    np.save("base.npy", codes[:50])
    np.save("dense.npy", dense[:50])
    faiss_ext.write_fps("queries.fps", codes[50:], NAMES[50:], bits)
    np.save("queries.npy", codes[50:])
    takes_codes = string.endswith("BKFlat(jaccard))")
    index = (faiss_ext.index_binary_factory if takes_codes else faiss.index_factory)(bits, string)
    index.train(codes[:50] if takes_codes else dense[:50])
    index.add(codes[:50] if takes_codes else dense[:50])
    D, I = index.search(codes[50:] if takes_codes else dense[50:], 4)

    for file, words in (("base.fps", ()), ("base.npz", ("--bits", bits)), ("base.npy", ("--packed",) if bits == 64 else ("--bits", bits))):
        assert run("build", file, string, "-o", "base.index", "--quiet", *words)[0] == 0
        assert index_of("base.index").d == bits and (file == "base.npy") == (faiss_ext.read_names("base.index") is None)
        for queries, options in (("queries.fps", ()), ("queries.npy", ("--packed",))):
            said = json.loads(run("search", "base.index", queries, "-k", 4, "--json", *options)[1])
            np.testing.assert_allclose(said["D"], D, rtol=1e-5, atol=1e-6)
            assert np.mean(np.array(said["I"]) == I) > 0.9  # (ties)
            assert ("names" in said) == (file != "base.npy")
    if "PCA" in string:
        return  # FAISS's and those with maps cannot be changed by ids
    assert run("build", "base.fps", string, "-o", "base.index", "--quiet")[0] == 0
    status, out, err = run("add", "base.index", "queries.fps")
    assert status == 0 and names_in().of([50, 59]).tolist() == [NAMES[50], NAMES[59]], err
    assert run("update", "base.index", "queries.npy", "--packed", "--ids", "names.txt")[0] == 1
    np.savez("new.npz", codes=codes[50:52], names=NAMES[:2])
    assert run("update", "base.index", "new.npz", "--packed")[1].startswith("base.index: 2 replaced")
    said = json.loads(run("search", "base.index", "queries.fps", "-k", 2, "--json")[1])
    assert {NAMES[0], NAMES[50]} == set(said["names"][0])


def test_names_that_look_like_ids(run):
    names = ["5", "3", "0", "1", "20-30"]
    faiss_ext.write_fps("base.fps", BITS[:5], names, type=TYPE)
    assert run("build", "base.fps", "BKFlat(jaccard)", "-o", "base.index", "--quiet")[0] == 0
    fps("queries.fps", [3])
    assert {row[1] for row in table(run("search", "base.index", "queries.fps", "--filter", "0,20-30")[1])[1:]} == {"0", "20-30"}
    np.save("one.npy", BITS[40:41])
    assert run("update", "base.index", "one.npy", "--ids", "3")[1].startswith("base.index: 1 replaced")
    assert np.array_equal(index_of("base.index").reconstruct_batch([1]), BITS[40:41])
    assert run("remove", "base.index", "--ids", "1,5")[1].startswith("base.index: 2 removed")
    assert sorted(names_in()) == ["0", "20-30", "3"]
    status, _, err = run("remove", "base.index", "--ids", "2")
    assert status == 1 and "the index has no vector with the name '2'" in err and len(names_in()) == 3


def test_names_for_other_vectors(run):
    np.save("x.npy", X[:50])
    with open("names.txt", "w") as file:
        file.write("\n".join(NAMES[:50]))
    assert run("build", "x.npy", "KFlat(chi2)", "-o", "base.index", "--ids", "names.txt", "--quiet")[0] == 0
    rows = table(run("search", "base.index", "x.npy", "-k", 1)[1])
    assert rows[0] == ["query", "name", "similarity"] and [row[1] for row in rows[1:]] == NAMES[:50]
    np.save("new.npy", X[50:52])
    status, _, err = run("add", "base.index", "new.npy")
    assert status == 1 and "the index has names; --ids FILE gives the names of the new vectors" in err
    with open("new.txt", "w") as file:
        file.write("702\n703\n")  # names, as the index has names
    assert run("add", "base.index", "new.npy", "--ids", "new.txt")[0] == 0
    assert names_in().of([49, 50, 51]).tolist() == [NAMES[49], "702", "703"]
    assert run("update", "base.index", "new.npy", "--ids", "new.txt")[1].startswith("base.index: 2 replaced, 0 added")
    assert run("update", "base.index", "new.npy", "--ids", "703,702")[0] == 0
    np.save("ids.npy", [50, 51])
    assert run("update", "base.index", "new.npy", "--ids", "ids.npy")[0] == 0
    np.save("ids.npy", [51, 52])
    status, _, err = run("update", "base.index", "new.npy", "--ids", "ids.npy", "--upsert")
    assert status == 1 and "the index has names" in err and len(names_in()) == 52


def test_names_in_arrays_of_packed_bits(run):
    np.savez("base.npz", codes=BITS[:50], names=NAMES[:50])
    assert run("build", "base.npz", "BKFlat(jaccard)", "-o", "base.index", "--quiet")[0] == 0
    assert list(names_in()) == NAMES[:50]
    np.savez("new.npz", codes=BITS[50:52], names=NAMES[50:52])
    assert run("add", "base.index", "new.npz")[0] == 0 and names_in().of([50, 51]).tolist() == NAMES[50:52]
    np.savez("new.npz", codes=BITS[[3, 4]], names=[NAMES[51], "more"])
    assert run("update", "base.index", "new.npz", "--upsert")[1].startswith("base.index: 1 replaced, 1 added")
    assert table(run("search", "base.index", "new.npz:codes", "-k", 1)[1])[1:] == [[NAMES[51], NAMES[3], "1"], ["more", NAMES[4], "1"]]
    index, names = index_of("base.index"), names_in()
    assert index.reconstruct_batch(names.ids([NAMES[51], "more"])).tolist() == BITS[[3, 4]].tolist()
    np.savez("x.npz", x=X[:5], names=NAMES[:5])  # vectors that are not bits
    assert run("build", "x.npz", "KFlat(chi2)", "-o", "x.index", "--quiet")[0] == 0 and faiss_ext.read_names("x.index") is None
    for wrong, message in ((NAMES[:49], "bad.npz: 49 names for 50 fingerprints"), (["a"] * 50, "bad.npz: row 1: the name 'a' occurs twice"), (range(50), "expected strings")):
        np.savez("bad.npz", codes=BITS[:50], names=wrong)
        status, _, err = run("build", "bad.npz", "BKFlat(jaccard)", "-o", "bad.index", "--quiet")
        assert status == 1 and message in err and not os.path.exists("bad.index")


def test_ids_beside_the_names_of_a_file(run):
    built(run, range(50), "BKFlat(jaccard)", "--ids", "100-149")
    assert names_in().of([100, 149]).tolist() == [NAMES[0], NAMES[49]]
    with open("others.txt", "w") as file:
        file.write("\n".join(f"other {i}" for i in range(50)))
    built(run, range(50), "BKFlat(jaccard)", "--ids", "others.txt")
    assert list(names_in()) == [f"other {i}" for i in range(50)] and names_in().about == {"fingerprint": TYPE}
    fps("new.fps", [50])
    np.save("ids.npy", [700])
    assert run("add", "base.index", "new.fps", "--ids", "ids.npy")[0] == 0
    assert names_in().of([700]).tolist() == [NAMES[50]]


def test_lines_with_errors(run, tmp_path):
    fps("bad.fps", range(4))
    with open("bad.fps", "a") as file:
        file.write(f"zz\tx\n{'00' * 8}\t{NAMES[2]}\n{'00' * 8}\tlast\n" + "\n" * 6 + "yy\tx\n\n\n")
    status, out, err = run("build", "bad.fps", "BKFlat(jaccard)", "-o", "bad.index", "--quiet")
    assert status == 1 and out == "" and "bad.fps: line 9: expected pairs of hex digits" in err
    status, out, err = run("build", "bad.fps", "BKFlat(jaccard)", "-o", "bad.index", "--quiet", "--skip-errors")
    assert status == 0 and list(names_in("bad.index")) == [*NAMES[:4], "last"]
    assert err.startswith("9 lines skipped:\n  bad.fps: line 9: ") and err.endswith("  and 4 more\n") and len(err.splitlines()) == 7
    fps("twice.fps", [0, 1, 0])
    for words in (("build", "twice.fps", "BKFlat(jaccard)", "-o", "x.index", "--quiet"), ("add", "bad.index", "twice.fps")):
        status, _, err = run(*words)
        assert status == 1 and "twice.fps: " in err and repr(NAMES[0]) in err
    assert not os.path.exists("x.index") and not list(tmp_path.glob(".faiss_ext_*"))
    status, _, err = run("search", "bad.index", "bad.fps", "--skip-errors")
    assert status == 0 and "8 lines skipped" in err


@pytest.mark.parametrize("words, status, message", [
    (("search", "base.index", "other.fps"), 1, "other.fps: fingerprints of type 'maccs 64', the index has 'morgan2:64'"),
    (("search", "base.index", "wide.fps"), 1, "wide.fps: fingerprints of 128 bits, the index takes 64"),
    (("search", "base.index", "base.fps", "--fingerprint", "morgan3:64"), 1, "fingerprints of type 'morgan3:64', the index has"),
    (("search", "base.index", "base.fps", "--fingerprint", "morgan2:128"), 1, "base.fps: fingerprints of 64 bits, but morgan2:128 has 128"),
    (("search", "base.index", "wide.npy"), 1, "wide.npy: codes of 128 bits, the index takes 64"),
    (("add", "base.index", "base.fps"), 1, "base.fps: the name '0\\'-\"a\",b' is already in use; update replaces its vector"),
    (("add", "base.index", "wide.fps"), 1, "of 128 bits"), (("add", "plain.index", "base.fps"), 1, "base.fps: has names, but plain.index has none"),
    (("remove", "plain.index", "--ids", "names.txt"), 1, "names.txt: has names, but plain.index has none"),
    (("search", "plain.index", "base.fps", "--filter", "names.txt"), 1, "names.txt: has names, but plain.index has none"),
    (("update", "base.index", "twice.npy"), 2, "--ids is missing"),
    (("build", "base.fps", "KFlat(chi3)", "-o", "x.index"), 1, "unknown kernel 'chi3'"),
    (("build", "base.fps", "KFlat(chi2)", "-o", "x.index", "--exact", "file"), 1, "base.fps has packed bits; use exact=\"memory\" (--exact memory)"),
    (("build", "twice.npy", "KFlat(jaccard)", "-o", "x.index"), 1, "twice.npy: has bytes (uint8), which may be packed bits or counts; give packed=True or packed=False (--packed or --counts)"),
    (("build", "twice.npy", "CWS64,BFlat", "-o", "x.index"), 1, "may be packed bits or counts"),
    (("build", "twice.npy", "BKFlat(jaccard)", "-o", "x.index", "--counts"), 1, "BKFlat(jaccard) takes packed bits, uint8, got packed=False (--counts)"),
    (("build", "twice.npy", "BKFlat(jaccard)", "-o", "x.index", "--bits", 56), 1, "packed is 56, a number of bits, but rows of 8 bytes have 57 to 64"),
    (("build", "x.npy", "KFlat(chi2)", "-o", "x.index", "--packed"), 1, "packed=True (--packed) takes packed bits, uint8, got float32"),
    (("build", "twice.npy", "KFlat(chi2)", "-o", "x.index", "--packed", "--counts"), 2, "not allowed with"),
    (("build", "base.fps", "BKFlat(jaccart)", "-o", "x.index"), 1, "jaccart"), (("build", "base.fps", "BKFlat(jaccard)", "-o", "base.fps"), 2, "would overwrite"),
    (("build", "base.fps", "BKFlat(jaccard)", "-o", "x.index", "--ids", "names.txt"), 1, "names.txt: 2 names, but base.fps has 50 vectors"),
    (("build", "base.fps", "BKFlat(jaccard)", "-o", "gone/x.index"), 1, "there is no folder"),
    (("build", "gone.fps", "BKFlat(jaccard)", "-o", "x.index"), 1, "gone.fps: cannot be read"),
    (("build", "twice.npy", "BKFlat(jaccard)", "-o", "x.index", "--ids", "twice.txt"), 1, "line 2: the name 'a' occurs twice"),
    (("search", "vectors.index", "wide.fps"), 1, "wide.fps: fingerprints of 128 bits, the index takes 64"),
    (("search", "vectors.index", "x.npy", "--packed"), 1, "x.npy: --packed expects packed bits, uint8, got float32"),
    (("search", "vectors.index", "twice.npy"), 1, "twice.npy: vectors of 8 components, the index takes 64; --packed takes bytes for packed bits"),
    (("search", "vectors.index", "wide.npy", "--packed"), 1, "wide.npy: codes of 128 bits, the index takes 64"),
    (("search", "base.index", "base.fps", "--name-property", "ID"), 1, "base.fps has no properties, only .sdf files have some"),
    (("search", "plain.index", "a.smi"), 1, "a.smi: the type of the fingerprints in the index is not known; give --fingerprint"),
    (("search", "damaged.index", "base.fps"), 1, "damaged.index: the names behind the index are truncated or damaged"),
    (("info", "damaged.index"), 1, "damaged.index: the names behind the index are truncated or damaged")])
def test_errors_are_messages_and_leave_the_files(run, tmp_path, words, status, message):
    built(run)
    fps("other.fps", [0], "maccs 64")
    faiss_ext.write_fps("wide.fps", np.zeros((1, 16), "uint8"), ["wide"])
    np.save("wide.npy", np.zeros((1, 16), "uint8"))
    np.save("twice.npy", BITS[:2])
    np.save("x.npy", X[:5])
    run("build", "twice.npy", "BKFlat(jaccard)", "-o", "plain.index", "--quiet")
    run("build", "x.npy", "KFlat(chi2)", "-o", "vectors.index", "--quiet")
    (tmp_path / "names.txt").write_text("a\nb\n")
    (tmp_path / "twice.txt").write_text("a\na\n")
    (tmp_path / "a.smi").write_text("CCO a\n")
    (tmp_path / "damaged.index").write_bytes((tmp_path / "base.index").read_bytes()[:-1])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    found, out, err = run(*words)
    assert (found, out) == (status, "") and message in err and "Traceback" not in err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def by_hand(path, bits, rows):
    """Writes an .fps file: names and integers, whose bit j is bit j of the fingerprint."""
    with open(path, "w") as file:
        file.write(f"#FPS1\n#num_bits={bits}\n#type=mine\n" + "".join(
            f"{row.to_bytes(-(-bits // 8), 'little').hex()}\t{name}\n" for name, row in rows.items()))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.sampled_from([13, 166]), st.integers(1, 70)), st.integers(4, 7), st.integers(0, 2**32))
def test_fingerprints_of_any_number_of_bits(run, bits, n, seed):
    random = Random(seed)
    rows = [random.randint(1, 2**bits - 1) for _ in range(n)]
    table_of = {f"mol {i}": row for i, row in enumerate(rows[:-2])}
    by_hand("base.fps", bits, table_of)
    assert run("build", "base.fps", "BKFlat(jaccard)", "-o", "base.index", "--quiet")[0] == 0
    by_hand("new.fps", bits, {"new": rows[-2]})
    assert run("add", "base.index", "new.fps")[0] == 0
    by_hand("changed.fps", bits, {"mol 1": rows[-1]})
    assert run("update", "base.index", "changed.fps")[0] == 0
    table_of.update({"new": rows[-2], "mol 1": rows[-1]})
    said = json.loads(run("info", "base.index", "--json")[1])
    assert said["tree"]["d"] == bits and said["names"] == len(table_of) and said["fingerprint"] == "mine"
    index, names = index_of("base.index"), names_in()
    assert np.array_equal(index.reconstruct_n(0, index.ntotal), np.packbits(
        [[table_of[name] >> j & 1 for j in range(bits)] for name in names.of(np.arange(index.ntotal))], axis=1))

    by_hand("queries.fps", bits, {"query": rows[0]})
    status, out, _ = run("search", "base.index", "queries.fps", "-k", len(table_of))
    expected = {name: (row & rows[0]).bit_count() / (row | rows[0]).bit_count() for name, row in table_of.items()}
    found = table(out)[1:]
    assert status == 0 and {row[1] for row in found} == set(expected)
    np.testing.assert_allclose([float(row[2]) for row in found], [expected[row[1]] for row in found], atol=1e-6)
    assert [float(row[2]) for row in found] == sorted((float(row[2]) for row in found), reverse=True)
    by_hand("other.fps", bits + 1, {"other": 1})
    assert f"other.fps: fingerprints of {bits + 1} bits, the index takes {bits}" in run("search", "base.index", "other.fps")[2]


def test_bits_beyond_the_number_of_bits(run):
    by_hand("bad.fps", 13, {"good": 1, "bad": 1 << 13})
    status, _, err = run("build", "bad.fps", "BKFlat(jaccard)", "-o", "bad.index", "--quiet")
    assert status == 1 and "bad.fps: line 5: a bit beyond the 13 bits is set" in err and not os.path.exists("bad.index")
    assert run("build", "bad.fps", "BKFlat(jaccard)", "-o", "bad.index", "--quiet", "--skip-errors")[0] == 0
    assert list(names_in("bad.index")) == ["good"]
    status, _, err = run("build", "bad.fps", "BFlat", "-o", "x.index", "--quiet", "--skip-errors")
    assert status == 1 and not os.path.exists("x.index"), err


def test_info_tells_of_names_and_bits(run):
    built(run)
    status, out, _ = run("info", "base.index")
    assert status == 0 and "IndexBinaryFlatKernel, 64 bits, 50 vectors" in out and "50 names" in out and f"fingerprints: {TYPE}" in out
    said = json.loads(run("info", "base.index", "--json")[1])
    assert said["names"] == 50 and said["fingerprint"] == TYPE
    assert json.loads(run("info", "BFlat", "--json")[1])["names"] is None


@pytest.mark.parametrize("words", [(), ("--groups",)])
def test_duplicates_have_names(run, words):
    fps("base.fps", range(50))
    np.save("base.npy", BITS[:50])
    status, out, err = run("duplicates", "base.fps", "--threshold", 0.4, "--quiet", *words)
    plain = run("duplicates", "base.npy", "--packed", "--threshold", 0.4, "--quiet", *words)
    expected = [line.split() for line in plain[1].splitlines()]
    named = [[NAMES[int(i)], NAMES[int(j)], *rest] for i, j, *rest in expected]
    titles = ["vector", "group"] if words else ["i", "j", "value"]
    assert status == 0 and table(out) == [titles, *named] and len(named) > 3
    assert run("duplicates", "base.fps", "--threshold", 0.4, "--quiet", *words, "-o", "found.tsv")[0] == 0
    rows = table(open("found.tsv", encoding="utf-8").read())
    assert rows[0] == titles and [row[:2] for row in rows[1:]] == [row[:2] for row in named]
    assert run("duplicates", "base.fps", "--threshold", 0.4, "--quiet", *words, "-o", "found.npz")[0] == 0
    assert np.load("found.npz")["names"].tolist() == NAMES[:50]


@pytest.mark.parametrize("kernel", ["jaccard", "hamming"])
def test_clusters_have_names(run, kernel):
    fps("base.fps", range(50))
    at = 0.4 if kernel == "jaccard" else 0.8
    words = ("clusters", "base.fps", "--threshold", at, "--kernel", kernel, "--quiet")
    labels, clusters = faiss_ext.butina_clusters(BITS[:50], at, kernel, packed=True, names=NAMES[:50])
    assert 1 < len(clusters) < 50
    expected = [[name, str(label), cluster[0]] for label, cluster in enumerate(clusters) for name in cluster]
    status, out, err = run(*words)
    assert status == 0 and table(out) == [["vector", "cluster", "centre"], *expected] and f"{len(clusters)} clusters of 50 vectors" in err
    assert run(*words, "-o", "found.tsv")[0] == 0
    assert table(open("found.tsv", encoding="utf-8").read()) == [["vector", "cluster", "centre"], *expected]
    assert run(*words, "-o", "found.npz")[0] == 0
    found = np.load("found.npz")
    assert found["labels"].tolist() == labels.tolist() and found["names"][found["centres"]].tolist() == [cluster[0] for cluster in clusters]
    np.save("base.npy", BITS[:50])
    said = json.loads(run("clusters", "base.npy", "--packed", "--threshold", at, "--kernel", kernel, "--quiet", "--json")[1])
    assert said["labels"] == labels.tolist() and said["n"] == 50 and "names" not in said
    np.save("x.npy", X[:50])
    out = run("clusters", "x.npy", "--kernel", "cosine", "--threshold", 0.9, "--quiet")[1]
    labels, centres = faiss_ext.butina_clusters(X[:50], 0.9, "cosine")
    assert sorted(line.split() for line in out.splitlines()) == sorted([str(i), str(c), str(centres[c])] for i, c in enumerate(labels))


def test_picks_have_names(run):
    fps("base.fps", range(50))
    for words, options in (((), {}), (("--seed", 7), {"seed": 7}), (("--first", 4, "--kernel", "dice"), {"first": 4, "kernel": "dice"}),
                           (("--first", NAMES[9]), {"first": NAMES[9]})):
        picks, values = faiss_ext.maxmin_picks(BITS[:50], 8, packed=True, names=NAMES[:50], **options)
        status, out, err = run("picks", "base.fps", 8, *words, "--quiet")
        assert status == 0 and table(out) == [["vector", "similarity"], *([n, f"{v:.7g}"] for n, v in zip(picks, values))] and "8 picks of 50 vectors" in err
    assert run("picks", "base.fps", 8, "--quiet", "-o", "found.tsv")[0] == 0
    rows = table(open("found.tsv", encoding="utf-8").read())
    assert rows[0] == ["vector", "similarity"] and len(rows) == 9
    assert json.loads(run("picks", "base.fps", 8, "--quiet", "-o", "found.npz", "--json")[1])["picks"] == 8
    found = np.load("found.npz")
    assert [row[0] for row in rows[1:]] == found["names"][found["picks"]].tolist()
    for words, status, message in ((("base.fps", 51), 1, "n_picks is 51, expected an integer from 1 to 50"), (("base.fps", 0), 2, "from 1"), (("base.fps", 3, "--first", 50), 1, "first is 50"),
                                   (("base.fps", 3, "--first", "x"), 1, "first is 'x', expected the name of one vector, got 0"),
                                   (("base.fps", 3, "--kernel", "russellrao"), 1, "varies"), (("base.fps", 3, "-o", "x.txt"), 2, "must be an .npz, .csv or .tsv file")):
        found = run("picks", *words, "--quiet")
        assert found[0] == status and message in found[2] and "Traceback" not in found[2]


def test_a_first_pick_that_is_a_number_and_a_name(run):
    fps("base.fps", range(5), names=["1", "4", "2", "b", "c"])
    for first, name in (("4", "4"), ("0", "1"), ("3", "b")):  # a name, or else a position
        assert table(run("picks", "base.fps", 1, "--first", first, "--quiet")[1])[1][0] == name
    np.save("base.npy", BITS[:5])
    status, _, err = run("picks", "base.npy", 1, "--packed", "--first", "b", "--quiet")
    assert status == 2 and "--first is 'b', but base.npy has no names; expected a position from 0 to 4" in err


@pytest.mark.parametrize("string", ["BKFlat(jaccard)", "CWS64,BFlat", "KFlat(jaccard)"])
def test_no_fingerprints(run, string):
    built(run, range(50), string)
    fps("none.fps", [])
    for words in ((), ("-k", 3)):
        status, out, err = run("search", "base.index", "none.fps", *words)
        assert status == 0 and len(table(out)) == 1 and table(out)[0][:2] == ["query", "name"] and "0 queries" in err
        assert subprocess.run([sys.executable, "-m", "faiss_ext", "search", "base.index", "-", "--format", "fps", *map(str, words)],
                              input=open("none.fps", "rb").read(), capture_output=True, check=True).stdout.decode() == out
    assert run("add", "base.index", "none.fps")[:2] == (0, "base.index: 0 added; 50 vectors now\n")
    assert run("build", "none.fps", string, "-o", "x.index", "--quiet")[::2] == (1, "faiss_ext: none.fps: it has no fingerprints\n")


def test_numbers_of_bits(run):
    """hamming depends on them."""
    codes = BITS & np.packbits(np.arange(64) < 61)
    np.save("base.npy", codes[:20])
    same = (np.unpackbits(codes[:20], axis=1)[:, None] == np.unpackbits(codes[:20], axis=1)).sum(axis=2) - 3
    i, j = np.triu_indices(20, 1)
    value = np.sort(same[i, j])[-5] / 61
    pairs = json.loads(run("duplicates", "base.npy", "--kernel", "hamming", "--bits", 61, "--threshold", value - 1e-6, "--missed", 0, "--quiet", "--json")[1])
    assert sorted(map(tuple, pairs["pairs"])) == [(a, b) for a, b in zip(i, j) if same[a, b] / 61 >= value - 1e-6]
    np.testing.assert_allclose(pairs["values"], [same[a, b] / 61 for a, b in pairs["pairs"]], atol=1e-6)
    assert "packed is 50, a number of bits" in run("duplicates", "base.npy", "--bits", 50)[2]
    assert run("duplicates", "base.npy", "--bits", 61, "--counts")[0] == 2


def test_molecules(run, tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "m.smi").write_text("CCO ethanol\nc1ccccc1 benzene\nCC(=O)Oc1ccccc1C(=O)O aspirin\nCn1cnc2c1c(=O)n(C)c(=O)n2C caffeine\n")
    (tmp_path / "q.smi").write_text("CC(=O)Oc1ccccc1C(=O)OC methyl ester\n")
    for words, type, bits in (((), "morgan2:2048", 2048), (("--fingerprint", "maccs"), "maccs", 166), (("--fingerprint", "atompair:1024"), "atompair:1024", 1024)):
        assert run("build", "m.smi", "BKFlat(jaccard)", "-o", "m.index", "--quiet", *words)[0] == 0
        assert names_in("m.index").about == {"fingerprint": type}
        assert index_of("m.index").d == bits
        rows = table(run("search", "m.index", "q.smi", "-k", 1)[1])
        base, query = (faiss_ext.read_fingerprints(name, type).codes for name in ("m.smi", "q.smi"))
        assert rows[1][:2] == ["methyl ester", "aspirin"] and abs(float(rows[1][2]) - tanimoto(query, base[2:3])[0, 0]) < 1e-6
    status, _, err = run("search", "m.index", "q.smi", "--fingerprint", "morgan2:1024")
    assert status == 1 and "fingerprints of type 'morgan2:1024', the index has 'atompair:1024'" in err
    (tmp_path / "new.smi").write_text("CCN ethylamine\nXX bad\n")
    assert "new.smi: line 2: invalid SMILES 'XX'" in run("add", "m.index", "new.smi")[2]
    status, out, err = run("add", "m.index", "new.smi", "--skip-errors")
    assert status == 0 and "1 added" in out and "1 line skipped" in err and "ethylamine" in names_in("m.index")
    assert run("duplicates", "m.smi", "--threshold", 0.99)[1] == "i\tj\tvalue\n"


CHEMFP = "RDKit-Morgan/1 radius=2 fpSize=64 useFeatures=0 useChirality=0 useBondTypes=1"


def test_types_of_chemfp(run):
    fps("base.fps", range(50), CHEMFP)
    assert run("build", "base.fps", "BKFlat(jaccard)", "-o", "base.index", "--quiet")[0] == 0
    for type in (CHEMFP, "morgan2:64", "ecfp4:64", None):
        fps("q.fps", [3], type)
        assert table(run("search", "base.index", "q.fps", "-k", 1)[1])[1] == [NAMES[3], NAMES[3], "1"]
    fps("q.fps", [3], CHEMFP.replace("radius=2", "radius=3"))
    assert run("search", "base.index", "q.fps", "-k", 1)[0] == 1
    for type, status in (("morgan2:64", 0), ("ecfp4:64", 0), (CHEMFP, 0), ("ecfp6:64", 1), ("mine", 1)):
        assert run("search", "base.index", "q.fps", "-k", 1, "--fingerprint", type)[0] == status
    fps("new.fps", [50], "ecfp4:64")
    assert run("add", "base.index", "new.fps")[0] == 0 and run("update", "base.index", "new.fps", "--fingerprint", "ecfp4:64")[0] == 0


def test_unknown_types(run, tmp_path):
    """Only the type given on the command line is trusted."""
    fps("base.fps", range(50), "mine a=1")
    assert run("build", "base.fps", "BKFlat(jaccard)", "-o", "base.index", "--quiet")[0] == 0
    assert run("search", "base.index", "base.fps", "-k", 1)[0] == 0
    fps("q.fps", [3], "mine a=2")
    assert run("search", "base.index", "q.fps", "-k", 1)[0] == 1
    assert run("search", "base.index", "q.fps", "-k", 1, "--fingerprint", "mine a=2")[0] == 0
    (tmp_path / "q.smi").write_text("CCO a\n")
    status, _, err = run("search", "base.index", "q.smi")
    assert status == 1 and "q.smi: the type of the fingerprints in the index is not known, 'mine a=1'; give --fingerprint" in err


def test_molecules_for_an_index_of_chemfp(run, tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "a.fps").write_text("#FPS1\n#num_bits=128\n#type=RDKit-Morgan/2 fpSize=128 radius=3 useFeatures=0\n20800008808000000700420010020400\tphenol\n")
    (tmp_path / "q.smi").write_text("Oc1ccccc1 the same\n")
    assert run("build", "a.fps", "BKFlat(jaccard)", "-o", "a.index", "--quiet")[0] == 0
    for words in ((), ("--fingerprint", "ecfp6:128")):
        assert table(run("search", "a.index", "q.smi", "-k", 1, *words)[1])[1:] == [["the same", "phenol", "1"]]


def test_recommendations_for_packed_bits(run):
    fps("base.fps", range(60))
    np.save("bits.npy", BITS)
    for words in (("base.fps", "jaccard"), ("bits.npy", "jaccard", "--packed"), ("bits.npy", "dice", "--packed", "--queries", "base.fps")):
        status, out, err = run("recommend", *words, "--quiet", "--json", "--threads", 1)
        assert status == 0 and json.loads(out)["string"] == f"BKFlat({words[1]})", err
    assert json.loads(run("recommend", "bits.npy", "jaccard", "--counts", "--quiet", "--json")[1])["string"].startswith("KFlat")
    for command in (("recommend", "bits.npy", "dice"), ("duplicates", "bits.npy")):
        status, _, err = run(*command, "--quiet")
        assert status == 1 and "bits.npy: has bytes (uint8), which may be packed bits or counts; give --packed or --counts" in err
        assert run(*command, "--packed", "--counts")[0] == 2
    assert run("recommend", "bits.npy", "chi2", "--quiet")[0] == 0
    np.save("floats.npy", BITS.astype("float32"))
    status, _, err = run("recommend", "floats.npy", "jaccard", "--packed", "--quiet")
    assert status == 1 and "floats.npy: --packed expects bytes of packed bits" in err


def test_recommended_strings_can_be_built(run):
    rng = np.random.default_rng(5)
    x = np.packbits(rng.random((40, 13)) < 0.3, axis=1)[rng.integers(0, 40, 2500)]
    np.save("base.npy", x)
    status, out, err = run("recommend", "base.npy", "jaccard", "--bits", 13, "--quiet", "--json", "--threads", 1, "--sample", 2500)
    said = json.loads(out)
    assert status == 0 and len(said["tried"]) > 1 and not said["impossible"], err
    for tried in said["tried"]:
        assert run("build", "base.npy", tried["string"], "--bits", 13, "-o", "x.index", "--quiet")[0] == 0 and index_of("x.index").d == 13


@pytest.mark.parametrize("string, kernel, words", [
    ("BKFlat(jaccard)", "jaccard", ()), ("BFlat", "jaccard", ()), ("BIVF4", "dice", ("--settings", 4)), ("BHNSW8,BKFlat(jaccard)", "jaccard", ("--settings", 4)),
    ("CWS64,BFlat", "jaccard", ("--packed",)), ("KFlat(jaccard)", "jaccard", ("--packed",))])
@pytest.mark.filterwarnings("ignore")
def test_bench_of_packed_bits(run, string, kernel, words):
    fps("base.fps", range(50))
    np.save("base.npy", BITS[:50])
    np.save("queries.npy", BITS[50:])
    assert run("build", "base.fps", string, "-o", "base.index", "--quiet")[0] == 0
    status, out, err = run("bench", "base.index", "base.npy", "queries.npy", kernel, "-k", 5, "--json", *words)
    rows = json.loads(out)
    assert status == 0 and rows and all(row["queries_per_second"] > 0 for row in rows), err
    values = K[50:, :50]
    least = np.sort(values)[:, -5:-4]  # a value as large as the fifth counts
    index = index_of("base.index")
    bits = np.unpackbits(BITS[50:], axis=1).astype("float32")
    for row in rows:
        for setting in filter(None, row["parameters"].split(",")):
            name, value = setting.split("=")
            faiss_ext.set_index_parameter(index, name, float(value))
        I = index.search(bits if words == ("--packed",) else BITS[50:], 5)[1]
        reached = (np.take_along_axis(values, I, axis=1) >= least - 1e-6) & (I >= 0)
        assert row["recall"] == pytest.approx(reached.mean(), abs=1e-6)
    assert run("bench", "base.index", "base.fps", "queries.npy", kernel, "-k", 5, *words)[0] == 0
    status, _, err = run("bench", "base.index", "queries.npy", "base.npy", kernel, *words)
    assert status == 1 and "queries.npy: 10 vectors, the index has 50" in err


@pytest.mark.parametrize("string", ["BHNSW8,BKFlat(jaccard)", "BFlat,Refine(BKFlat(jaccard))", "IDMap,BKFlat(jaccard)"])
def test_thresholds_of_all_indexes_of_packed_bits(run, string):
    built(run, range(50), string)
    fps("queries.fps", range(50, 55))
    status, out, err = run("search", "base.index", "queries.fps", "--threshold", 0.5)
    assert status == 0, err
    assert len(table(out)) - 1 == (K[50:55, :50] >= 0.5).sum()
