# SPDX-License-Identifier: MIT
"""python3 -m faiss_ext: what it prints, its files, its exit status."""

import csv
import json
import os
import re
import signal
import shutil
import subprocess
import sys
import time

import faiss
import faiss_ext
import numpy as np
import pytest
from faiss_ext import name_files, timing
from faiss_ext.command_files import index_of
from faiss_ext.command_line import main
from faiss_ext.files import replacing

from helpers import BASE, COUNTS, QUERIES, X, made

STRING = "AHK128(chi2,center=1),BFlat,Refine(KFlat(chi2))"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("command_line")
    np.save(path / "base.npy", BASE)
    np.save(path / "queries.npy", QUERIES)
    assert main(["build", str(path / "base.npy"), STRING, "-o", str(path / "index"), "--quiet"]) == 0
    return path


@pytest.fixture
def run(folder, capsys, monkeypatch):
    """A command in that folder: its status, what it printed, its messages."""
    monkeypatch.chdir(folder)
    capsys.readouterr()

    def function(*words):
        try:
            status = main([str(word) for word in words])
        except SystemExit as error:  # of argparse
            status = error.code
        return (status, *capsys.readouterr())

    return function


def test_an_index_is_built_and_searched(run, folder):
    status, out, _ = run("build", "base.npy", STRING, "-o", "again", "--json", "--quiet", "-p", "k_factor=4")
    assert status == 0
    said = json.loads(out)
    assert said["n"] == len(BASE) and said["d"] == 64 and said["bytes"] == (folder / "again").stat().st_size
    index = faiss.read_index(str(folder / "again"))
    assert index.k_factor == 4
    D, I = index.search(QUERIES, 3)

    status, out, _ = run("search", "again", "queries.npy", "-k", 3, "-o", "found.npz")
    assert status == 0 and out == ""
    found = np.load(folder / "found.npz")
    np.testing.assert_array_equal(found["I"], I)
    np.testing.assert_array_equal(found["D"], D)

    status, out, err = run("search", "again", "queries.npy", "-k", 3)
    first = [word.split(":")[0] for word in out.splitlines()[0].split()[1:]]
    assert list(map(int, first)) == I[0].tolist() and "200 queries" in err
    status, out, _ = run("search", "again", "queries.npy", "-k", 3, "--json")
    assert json.loads(out)["I"] == I.tolist()


def test_options_that_exclude_one_another(run, folder):
    run("build", "base.npy", "KFlat(chi2)", "-o", "flat", "--quiet")
    status, _, err = run("search", "flat", "queries.npy", "-k", 10, "--radius", 0.8)
    assert status == 2 and "-k and --radius exclude each other" in err
    status, _, err = run("info", "flat", "-d", 64)
    assert status == 2 and "-d is for factory strings" in err
    status, out, _ = run("info", "KFlat(chi2)", "-d", 7)
    assert status == 0 and "d=7" in out


def test_ranges(run, folder):
    run("build", "base.npy", "KFlat(chi2)", "-o", "flat", "--quiet", "--metric", "ip")
    index = faiss.read_index(str(folder / "flat"))
    lims, D, I = index.range_search(QUERIES, 0.8)
    status, out, _ = run("search", "flat", "queries.npy", "--radius", 0.8, "--json")
    said = json.loads(out)
    assert status == 0 and said["lims"] == lims.tolist() and said["I"] == I.tolist()
    status, out, _ = run("search", "flat", "queries.npy", "--radius", 0.8)
    assert [len(line.split()) - 1 for line in out.splitlines()] == np.diff(lims.astype(int)).tolist()


@pytest.mark.parametrize("string, metric, radius, parameters", [
    ("KFlat(chi2)", faiss.METRIC_INNER_PRODUCT, 0.8, {}), ("KFlat(chi2)", faiss.METRIC_L2, 0.5, {}),
    ("KIVF8", faiss.METRIC_L2, 0.03, {"nprobe": 3}), ("AHK128(chi2),BFlat", faiss.METRIC_L2, 24, {}),
    ("SIK128(gaussian),BIVF8", faiss.METRIC_L2, 24, {"nprobe": 2})])
def test_ranges_of_shards(run, folder, tmp_path, string, metric, radius, parameters):
    faiss_ext.build_shards([BASE[:300], BASE[300:]], string, folder=tmp_path / "shards", metric=metric, progress=False)
    index = faiss_ext.open_shards(tmp_path / "shards")
    words = []
    for name, value in parameters.items():
        before = index.range_search(QUERIES, radius)
        index.set_parameter(name, value)
        words += ["-p", f"{name}={value}"]
    expected = index.range_search(QUERIES, radius)
    assert len(expected[1]) > 0
    assert not parameters or len(before[1]) != len(expected[1])
    for more in ([], ["--mmap"]):
        status, _, _ = run("search", tmp_path / "shards", "queries.npy", "--radius", radius, "-o", "found.npz", *words, *more)
        assert status == 0
        found = np.load(folder / "found.npz")
        for name, e in zip(("lims", "D", "I"), expected):
            np.testing.assert_array_equal(found[name], e)
    assert run("search", tmp_path / "shards", "queries.npy", "--radius", radius, "-p", "k_factor=3")[0] == 1


def test_shards_are_searched_as_in_python(run, folder, tmp_path):
    faiss_ext.build_shards(
        [BASE[:300], BASE[300:]], "HKM1(chi2),PCAR16,KIVF8(M=4),Refine(KFlat(chi2))",
        folder=tmp_path / "shards", parameters={"k_factor": 2}, progress=False)
    status, _, _ = run("search", tmp_path / "shards", "queries.npy", "-k", 3, "-o", "found.npz")
    index = faiss_ext.open_shards(tmp_path / "shards")
    found, expected = np.load(folder / "found.npz"), index.search(QUERIES, 3)
    assert status == 0
    for name, e in zip("DI", expected):
        np.testing.assert_array_equal(found[name], e)
    assert (index.to_faiss().search(QUERIES, 3)[1] != expected[1]).any()


def test_info_has_no_theory_of_parts_that_differ(run, folder):
    for second, known in (("CWS128,BFlat", True), ("CWS128(seed=5),BFlat", False), ("KFlat(chi2)", False)):
        shards = faiss.IndexShards(64, False, True)
        parts = [faiss.index_factory(64, text) for text in ("CWS128,BFlat", second)]
        for part in parts:
            shards.add_shard(part)
        faiss.write_index(shards, str(folder / "shards.index"))
        status, out, _ = run("info", "shards.index", "--json")
        assert status == 0 and bool(json.loads(out)["theory"]) == known


def test_ranges_are_ranked_again(run, folder, tmp_path):
    faiss_ext.build_shards([BASE[:300], BASE[300:]], STRING, folder=tmp_path / "shards", progress=False)
    exact = faiss.index_factory(64, "KFlat(chi2)")
    exact.add(BASE)
    lims, _, I = exact.range_search(QUERIES, 0.1)
    for index in ("index", tmp_path / "shards"):
        status, out, _ = run("search", index, "queries.npy", "--radius", 0.1, "-p", f"k_factor={len(BASE)}", "--json")
        found = json.loads(out)
        assert status == 0 and found["lims"] == lims.tolist() and sorted(found["I"]) == sorted(I.tolist())


def test_binary_indexes(run, folder):
    index = faiss_ext.index_binary_factory(64, "SIK128(gaussian),BIVF4")
    index.train(BASE)
    index.add(BASE)
    faiss.write_index_binary(index, str(folder / "binary"))
    _, I = index.search(QUERIES, 4)
    status, out, _ = run("search", "binary", "queries.npy", "-k", 4, "--json")
    assert status == 0 and json.loads(out)["I"] == I.tolist()
    codes = faiss_ext.index_binary_factory(64, "BFlat")
    np.save(folder / "codes.npy", COUNTS[:, :8].astype("uint8"))
    codes.add(np.load(folder / "codes.npy"))
    faiss.write_index_binary(codes, str(folder / "codes"))
    status, out, _ = run("search", "codes", "codes.npy", "-k", 1, "--json")
    assert status == 0 and set(np.ravel(json.loads(out)["D"])) == {0}
    status, out, _ = run("info", "binary")
    assert status == 0 and "IndexBinaryIVFSIMD" in out and "nprobe=1" in out


def test_ranges_of_binary_indexes_are_integers(run, folder):
    bits = np.packbits(COUNTS > 8, axis=1)
    np.save(folder / "bits.npy", bits)
    np.save(folder / "few.npy", bits[:5])
    for string, radius in (("BFlat", 10), ("BHash8", 10), ("IDMap2,BFlat", 10),
                           ("BKFlat(jaccard)", 2**28), ("IDMap2,BKFlat(jaccard)", 2**28)):
        assert run("build", "bits.npy", string, "-o", "bits", "--quiet")[0] == 0
        lims, D, I = faiss_ext.read_index_binary(str(folder / "bits")).range_search(bits[:5], radius)
        status, out, _ = run("search", "bits", "few.npy", "--radius", radius)
        assert status == 0 and [len(line.split()) - 1 for line in out.splitlines()] == np.diff(lims.astype(int)).tolist()
        order = np.lexsort((D, np.repeat(np.arange(5), np.diff(lims.astype(int)))))  # the nearest first
        values = [f"{value:.7g}" for value in faiss_ext.kernel_values(index_of(folder / "bits"), D)] if "BK" in string else D.astype(int).astype(str)
        assert [word.split(":") for line in out.splitlines() for word in line.split()[1:]] == [[str(I[at]), values[at]] for at in order]
        for bad in ("2.5", "nan", "inf", "1e10"):
            status, _, err = run("search", "bits", "few.npy", "--radius", bad)
            assert status == 2 and "expected an integer" in err
        assert ("--threshold 0.5 finds" in run("search", "bits", "few.npy", "--radius", "0.5")[2]) == ("BKFlat" in string)


def test_ids_in_front_of_binary_indexes(run, folder):
    bits = np.packbits(COUNTS[:50] > 8, axis=1)
    np.save(folder / "bits.npy", bits)
    assert run("build", "bits.npy", "IDMap2,BFlat", "-o", "mapped", "--quiet")[0] == 0
    status, out, _ = run("search", "mapped", "bits.npy", "-k", 1, "--json")
    assert status == 0 and set(np.ravel(json.loads(out)["D"])) == {0}
    status, _, err = run("search", "mapped", "queries.npy")
    assert status == 1 and "takes packed bits, uint8, got float32" in err
    index = faiss_ext.index_binary_factory(64, "IDMap2,CWS64,BFlat")
    index.add_with_ids(BASE, np.arange(len(BASE)))
    faiss.write_index_binary(index, str(folder / "mapped"))
    status, out, _ = run("search", "mapped", "queries.npy", "-k", 3, "--json")
    assert status == 0 and json.loads(out)["I"] == index.search(QUERIES, 3)[1].tolist()


def test_packed_bits_and_ids(run, folder):
    bits = np.packbits(COUNTS > 8, axis=1)
    np.save(folder / "bits.npy", bits)
    assert run("build", "bits.npy", "BKFlat(jaccard)", "-o", "sets", "--quiet")[0] == 0
    index = faiss_ext.read_index_binary(str(folder / "sets"))
    assert type(index) is faiss_ext.IndexBinaryFlatKernel and index.ntotal == len(bits)
    D, I = index.search(bits[:9], 3)
    np.save(folder / "nine.npy", bits[:9])
    status, out, _ = run("search", "sets", "nine.npy", "-k", 3)
    assert status == 0
    assert out.splitlines()[4] == "4: " + " ".join(f"{i}:{1 - d / 2**30:.7g}" for i, d in zip(I[4], D[4]))
    status, _, err = run("build", "base.npy", "BKFlat(jaccard)", "-o", "x")
    assert status == 1 and "takes packed bits, uint8, got float32" in err
    status, out, _ = run("info", "BKFlat(jaccard)", "-d", 64)
    assert status == 0 and "jaccard" in out
    assert run("build", "base.npy", "IDMap2,KFlat(chi2)", "-o", "mapped", "--quiet")[0] == 0
    assert faiss.read_index(str(folder / "mapped")).reconstruct(7).tolist() == BASE[7].tolist()


def test_vectors_are_not_overwritten(run, folder):
    np.save(folder / "mine.npy", BASE)
    status, _, err = run("build", "mine.npy", "KFlat(chi2)", "-o", "./mine.npy")
    assert status == 1 and "overwrite the vectors" in err
    np.testing.assert_array_equal(np.load(folder / "mine.npy"), BASE)


def test_info_shows_the_tree_and_the_theory(run):
    status, out, _ = run("info", "index", "--json")
    said = json.loads(out)
    assert status == 0
    assert said["tree"]["class"] == "IndexRefineKernel" and said["tree"]["ntotal"] == len(BASE)
    assert [part["class"] for part in said["tree"]["parts"]] == ["IndexKernelHash", "IndexFlatKernel"]
    assert said["parameters"] == {"k_factor": 1.0} and said["bits"] == 128
    status, out, _ = run("info", "index")
    assert "  IndexKernelHash" in out and "    IndexBinaryFlatSIMD" in out and f"{len(BASE):,} vectors" in out

    status, out, _ = run("info", "KFlat(chi2)", "-d", 16, "--at", 0.5)
    assert status == 0 and "bits that differ: not known" in out
    status, out, _ = run("info", "SIK256(gaussian,gamma=1),BFlat", "-d", 16, "--at", 0.5, "--json")
    row, = json.loads(out)["theory"]
    hash = faiss_ext.kernel_hash_factory(16, "SIK256(gaussian,gamma=1)")
    assert row["expected_hamming"] == hash.expected_hamming(0.5)
    assert row["bounds"] == list(hash.hamming_bounds(0.5))
    status, out, _ = run("info", "KFlat(chi2)")
    assert status == 0 and "bits" not in out
    status, _, err = run("info", "SIK64(gaussian,gamma=1),BFlat", "--at", -0.5)
    assert status == 1 and "the kernel value is -0.5, expected a value from 0 to 1" in err


@pytest.mark.parametrize("string, words", [
    ("AHK512(chi2,center=1),BFlat", ["rough"]), ("AHK64(chi2,rot=itq),BFlat", ["rough"]),
    ("KLSH64(chi2),BFlat", ["rough"]), ("RHBE512(center=1),BFlat", ["cosines as seen from the mean"]),
    ("RHBE64(rot=pca),BFlat", ["rough", "cosines as seen from the mean"]),
    ("AHK64(chi2),BFlat", []), ("RHBE64,BFlat", []), ("SIK64(gaussian,gamma=1),BFlat", []),
    ("KFlat(chi2)", [])])
def test_info_says_where_theory_leaves_something_out(run, folder, string, words):
    faiss_ext.write_index(made(string, BASE), str(folder / "one"))
    note = json.loads(run("info", "one", "--json")[1])["note"]
    out = run("info", "one", "--at", 0.5)[1]
    for word in ("rough", "cosines as seen from the mean"):
        assert (word in (note or "")) == (word in out) == (word in words)


def test_vectors_of_npz_and_csv(run, folder):
    np.savez(folder / "both.npz", base=BASE, queries=QUERIES)
    np.savetxt(folder / "queries.csv", QUERIES, "%.9g", ",", header=",".join(f"c{i}" for i in range(64)), comments="")
    assert run("build", "both.npz:base", STRING, "-o", "of_npz", "--quiet")[0] == 0
    expected = faiss.read_index(str(folder / "index")).search(QUERIES, 3)
    for queries in ("both.npz:queries", "queries.csv"):
        assert run("search", "of_npz", queries, "-k", 3, "-o", "found.npz")[0] == 0
        found = np.load(folder / "found.npz")
        np.testing.assert_array_equal(found["I"], expected[1])
        np.testing.assert_array_equal(found["D"], expected[0])
    status, _, err = run("search", "of_npz", "both.npz")
    assert status == 1 and "both.npz: which array of two dimensions? It has base, queries" in err


@pytest.mark.parametrize("words", [("-k", 3), ("--radius", 0.2)])
def test_results_as_csv(run, folder, words):
    for string, metric in (("KFlat(chi2)", "l2"), ("KFlat(chi2)", "ip"), ("AHK64(chi2),BFlat,Refine(KFlat(chi2))", "l2"), ("AHK64(chi2),BFlat", "l2")):
        if metric == "ip" and "--radius" in words:
            words = ("--radius", 0.9)
        assert run("build", "base.npy", string, "-o", "exact", "--metric", metric, "--quiet")[0] == 0
        for name in ("found.npz", "found.csv", "found.tsv"):
            assert run("search", "exact", "queries.npy", *words, "-o", name)[0] == 0
        found = np.load(folder / "found.npz")
        has_values = "KFlat" in string  # codes have estimates only
        assert ("similarities" in found) == has_values
        values = found["similarities" if has_values else "D"].ravel()
        I = found["I"].ravel()
        if has_values:
            index = index_of(folder / "exact")
            np.testing.assert_array_equal(values, faiss_ext.kernel_values(index, found["D"], found["I"], QUERIES, found["lims"] if "lims" in found else None).ravel())
        assert (folder / "found.csv").read_text().startswith(f"query,id,{'similarity' if has_values else 'distance'}\n")
        assert (folder / "found.tsv").read_text() == (folder / "found.csv").read_text().replace(",", "\t")
        table = np.loadtxt(folder / "found.csv", delimiter=",", skiprows=1)
        counts = np.diff(found["lims"].astype(int)) if "lims" in found else np.full(len(QUERIES), 3)
        q_of = np.repeat(np.arange(len(QUERIES)), counts)
        order = np.lexsort((found["D"].ravel() * (-1 if metric == "ip" else 1), q_of))  # the nearest first
        np.testing.assert_array_equal(table[:, 0], q_of)
        np.testing.assert_array_equal(table[:, 1], I[order])
        np.testing.assert_allclose(table[:, 2], values[order], rtol=1e-6)
        said = json.loads(run("search", "exact", "queries.npy", *words, "--json")[1])
        for key in found:
            np.testing.assert_allclose(np.array(said[key]), found[key], rtol=1e-6)
        printed = [word.split(":") for line in run("search", "exact", "queries.npy", *words)[1].splitlines() for word in line.split()[1:]]
        assert [[row[1], row[2]] for row in csv.reader((folder / "found.csv").open())][1:] == printed


def test_an_index_comes_from_a_pipe(folder):
    """It is read once, from the first byte on."""
    program = [sys.executable, "-m", "faiss_ext"]
    run = lambda *words, data: subprocess.run(
        [*program, *words], input=data, capture_output=True, cwd=folder, env=dict(os.environ))
    for name in ("index", "binary_pipe"):
        if name == "binary_pipe":
            subprocess.run([*program, "build", "base.npy", "AHK64(chi2),BFlat", "-o", name, "--quiet"], cwd=folder, check=True)
        data = (folder / name).read_bytes()
        piped = run("search", "/dev/stdin", "queries.npy", "-k", "2", data=data)
        direct = run("search", name, "queries.npy", "-k", "2", data=b"")
        assert piped.returncode == 0 and piped.stdout == direct.stdout
    assert run("info", "/dev/stdin", data=data).returncode == 0
    cut = run("info", "/dev/stdin", data=data[:100])
    assert cut.returncode == 1 and b"/dev/stdin is truncated" in cut.stderr
    mapped = run("info", "--mmap", "/dev/stdin", data=data)
    assert mapped.returncode == 2 and b"--mmap needs a file" in mapped.stderr


def test_names_of_files_may_look_like_vectors(run, folder):
    wrong = BASE.copy()
    wrong[7, 3] = -5
    np.save(folder / "vector 2 interrupted.npy", wrong)
    shutil.copy(folder / "index", folder / "vector 4.index")
    for words in (("search", "vector 4.index", "vector 2 interrupted.npy"), ("recommend", "vector 2 interrupted.npy", "chi2"),
                  ("build", "vector 2 interrupted.npy", "KFlat(chi2)", "-o", "vector 1", "--quiet"),
                  ("build", "vector 2 interrupted.npy", "KFlat(chi2)", "-o", "vector 1", "--quiet", "--exact", "file")):
        status, _, err = run(*words)
        assert status == 1 and "vector 2 interrupted.npy" in err and "component 3 of vector 7 is -5" in err
    (folder / "vector 4.index").write_bytes(b"no index")
    status, _, err = run("search", "vector 4.index", "queries.npy")
    assert status == 1 and err.startswith("faiss_ext: vector 4.index: not an index")


def test_errors_about_vectors_name_the_file(run, folder):
    wrong = BASE.copy()
    wrong[7, 3] = -5
    np.save(folder / "negative.npy", wrong)
    said = "negative.npy: component 3 of vector 7 is -5"
    status, _, err = run("search", "index", "negative.npy", "-k", 3)
    assert status == 1 and err.startswith("faiss_ext: negative.npy: ") and "component 3 of vector 7 is -5" in err
    for words in (
            ("recommend", "negative.npy", "chi2"),
            ("recommend", "base.npy", "chi2", "--queries", "negative.npy"),
            ("bench", "index", "negative.npy", "queries.npy", "chi2"),
            ("bench", "index", "base.npy", "negative.npy", "chi2")):
        status, _, err = run(*words)
        assert status == 1 and err.startswith(f"faiss_ext: {said}")


@pytest.mark.parametrize("metric", ["l2", "ip"])
def test_info_knows_the_metric(run, metric):
    assert run("build", "base.npy", "KFlat(chi2)", "-o", "one", "--metric", metric, "--quiet")[0] == 0
    assert json.loads(run("info", "one", "--json")[1])["metric"] == metric
    assert f"metric: {metric}" in run("info", "one")[1].splitlines()


def test_info_of_other_metrics(run, folder):
    faiss.write_index(faiss.IndexFlat(8, faiss.METRIC_Canberra), str(folder / "canberra"))
    assert "metric: canberra" in run("info", "canberra")[1].splitlines()
    # binary indexes have none to choose
    status, out, _ = run("info", "BKFlat(jaccard)", "-d", 64, "--json")
    assert status == 0 and json.loads(out)["metric"] is None
    assert "metric" not in run("info", "BKFlat(jaccard)", "-d", 64)[1]


@pytest.mark.parametrize("name, said", [
    ("folder/none.index", "'folder/none.index' is neither a file nor a factory string"),
    ("base.npy", "base.npy: not an index, or a damaged one")])
def test_info_does_not_quote_faiss(run, name, said):
    status, _, err = run("info", name)
    assert status == 1 and err.strip() == f"faiss_ext: {said}"


def test_bench_measures_recall(run, folder):
    index = faiss.read_index(str(folder / "index"))
    exact = faiss.index_factory(64, "KFlat(chi2)")
    exact.add(BASE)
    _, true = exact.search(QUERIES, 10)
    status, out, _ = run("bench", "index", "base.npy", "queries.npy", "chi2", "--json", "--settings", 4)
    rows = json.loads(out)
    assert status == 0 and rows
    for row in rows:
        faiss_ext.set_index_parameter(index, *[(n, float(v)) for n, v in [row["parameters"].split("=")]][0])
        _, ids = index.search(QUERIES, 10)
        recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(ids, true)])
        assert row["recall"] == pytest.approx(recall, abs=2e-3)  # (ties)
        assert 0 < row["usual_queries_per_second"] <= row["queries_per_second"]
    assert run("bench", "index", "queries.npy", "queries.npy", "chi2")[0] == 1


def test_bench_shows_the_range_of_rates_on_a_busy_machine(run, monkeypatch):
    for is_busy in (False, True):
        monkeypatch.setattr(timing.Timer, "is_disturbed", property(lambda self: is_busy))
        status, out, err = run("bench", "index", "base.npy", "queries.npy", "chi2", "--settings", 3)
        assert status == 0 and is_busy == ("kept the machine busy" in err)
        head, *rows = out.splitlines()
        assert rows and all(bool(re.search(r" [\d,]+ to [\d,]+  ", row)) == is_busy for row in rows)
        assert {row.index("k_factor=") for row in rows} == {head.index("parameters")}


def test_bench_keeps_to_the_parameters_that_are_given(run, folder):
    assert run("build", "base.npy", "HNSW8,KFlat(chi2)", "-o", "graph", "--quiet")[0] == 0
    for index, setting in (("graph", "efSearch=50"), ("index", "k_factor=3")):
        status, out, _ = run("bench", index, "base.npy", "queries.npy", "chi2", "--json", "-p", setting)
        assert status == 0 and [row["parameters"] for row in json.loads(out)] == [setting]


def test_bench_knows_the_metric(run, folder):
    np.save(folder / "counts.npy", COUNTS[200:])
    np.save(folder / "count_queries.npy", COUNTS[:200])
    for metric, other in (("ip", "l2"), ("l2", "ip")):
        run("build", "counts.npy", "KFlat(chi2)", "-o", "exact", "--metric", metric, "--quiet")
        status, out, _ = run("bench", "exact", "counts.npy", "count_queries.npy", "chi2", "--json")
        assert status == 0 and [row["recall"] for row in json.loads(out)] == [1]


def test_recommend_says_which(run):
    status, out, err = run("recommend", "base.npy", "chi2", "--queries", "queries.npy", "--json", "--quiet")
    said = json.loads(out)
    assert status == 0 and err == "" and said["string"].startswith("KFlat(chi2") and said["fits"]
    assert said["n"] == len(BASE) and len(said["tried"]) == 1
    status, out, _ = run("recommend", "base.npy", "chi2", "--bytes-per-vector", 1, "--quiet")
    assert status == 1 and "none keeps all limits" in out


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("words, status, message", [
    (["build", "gone.npy", "KFlat(chi2)", "-o", "x"], 1, "gone.npy: cannot be read: No such file"),
    (["build", "base.npy", "KFlat(chi3)", "-o", "x"], 1, "unknown kernel 'chi3'"),
    (["build", "base.npy", "KFlat(chi2)", "-o", "gone/x"], 1, "cannot be written: there is no folder"),
    (["build", "base.npy", "KFlat(chi2)", "-o", "x", "-p", "nprobe=3"], 1, "no search parameter 'nprobe'"),
    (["build", "base.npy", "KFlat(chi2)", "-o", "x", "-p", "nprobe"], 2, "NAME=NUMBER"),
    (["build", "negative.npy", "KFlat(chi2)", "-o", "x"], 1, "expected a finite number >= 0"),
    (["build", "nan.npy", "Flat", "-o", "x"], 1, "component 2 of vector 1 is nan, expected a finite number"),
    (["search", "gone", "queries.npy"], 1, "gone: cannot be read"),
    (["search", "base.npy", "queries.npy"], 1, "base.npy: not an index"),
    (["info", "base.npy"], 1, "base.npy: not an index"),
    (["info", "empty", "--mmap"], 1, "empty: not an index"),
    (["search", "index", "narrow.npy"], 1, "vectors of 5 components, the index takes 64"),
    (["search", "index", "queries.npy", "-o", "x.txt"], 2, "must be an .npz, .csv or .tsv file"),
    (["search", "index.npz", "queries.npy", "-o", "same.npz"], 2, "the output would overwrite index.npz"),
    (["bench", "index", "base.npy", "queries.npy", "chi2", "-k", "99999"], 2, "k is 99,999, the index has"),
    (["search", "index", "queries.npy", "-k", "0"], 2, "from 1"),
    (["search", "index", "queries.npy", "-k", "many"], 2, "an integer"),
    (["search", "index", "queries.npy", "--threads", "99999999999999"], 2, "from 1 to 1024"),
    (["search", "index", "queries.npy:x"], 1, "has no part 'x'"),
    (["recommend", "base.npy", "chi2", "-n", "5"], 1, "n is 5, expected at least"),
    (["info", "gone"], 1, "is neither a file nor a factory string"),
    (["info", "KFlat(chi2)", "-d", "99999999999"], 2, "from 1 to 2147483647"),
    (["info", "KFlat(chi2)", "-d", "100000000000000000000"], 2, "from 1 to 2147483647"),
    (["search", "index", "large.npy"], 1, "component 0 of vector 0 is 1e+300, expected a finite number of at most 3.4e38"),
    (["search", "index", "queries.npy", "-o", "loop.npz"], 1, "loop.npz: cannot be written"),
    (["recommend", "base.npy", "chi2", "--recall", "2"], 2, "above 0, up to 1"),
    (["recommend", "base.npy", "chi2", "--recall", "0"], 2, "above 0, up to 1"),
    (["recommend", "base.npy", "chi2", "--build-seconds", "0"], 2, "above 0, got 0"),
    (["build", "base.npy", "KFlat(chi2)", "-o", "x.index", "--memory", "much"], 2, "a size such as '2GB', got 'much'"),
    (["build", "base.npy", "KFlat(chi2)", "-o", "x.index", "--memory", "9" * 400], 2, "a size such as '2GB', got '999"),
    (["build", "base.npy", "KFlt(chi2)", "-o", "x.index"], 1, "neither faiss_ext nor FAISS makes an index from 'KFlt(chi2)'"),
    (["learn"], 2, "invalid choice"),
    ([], 2, "required")])
def test_errors_are_messages(run, folder, words, status, message):
    np.save(folder / "negative.npy", -BASE[:5])
    bad = np.ones((3, 4))
    bad[1, 2] = np.nan
    np.save(folder / "nan.npy", bad)
    np.save(folder / "narrow.npy", BASE[:5, :5])
    np.save(folder / "large.npy", np.full((2, 64), 1e300))
    (folder / "empty").touch()
    shutil.copy(folder / "index", folder / "index.npz")
    if not os.path.islink(folder / "same.npz"):
        os.symlink("index.npz", folder / "same.npz")
    if not os.path.islink(folder / "loop.npz"):
        os.symlink("loop.npz", folder / "loop.npz")
    found, out, err = run(*words)
    assert found == status and out == "" and message in err and "Traceback" not in err
    assert " at src/" not in err  # (the place is for reports)
    assert not (folder / "x").exists() and not list(folder.glob(".faiss_ext_*"))


def test_results_take_the_place_of_old_ones_as_indexes_do(run, folder):
    old, link = folder / "old.npz", folder / "link.npz"
    old.write_bytes(b"old")
    link.symlink_to("old.npz")
    for mode in (0o600, 0o444):
        old.chmod(mode)
        assert run("search", "index", "queries.npy", "-k", 1, "-o", "link.npz")[0] == 0
        assert link.is_symlink() and old.stat().st_mode & 0o777 == mode
        assert np.load(old)["I"].shape == (len(QUERIES), 1)
    link.unlink()
    link.symlink_to("new.npz")  # to what is not there yet
    assert run("search", "index", "queries.npy", "-k", 1, "-o", "link.npz")[0] == 0
    assert link.is_symlink() and (folder / "new.npz").exists()


def in_process(folder, *words):
    # what a shell starts in the background ignores Ctrl-C, and so would this
    return subprocess.Popen(
        [sys.executable, "-m", "faiss_ext", *words], cwd=folder, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def test_as_a_module(folder):
    process = in_process(folder, "info", "index")
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0 and "IndexRefineKernel" in out and err == ""
    process = in_process(folder, "--help")
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0 and "recommend" in out and "130 after Ctrl-C" in out


def test_a_closed_pipe_ends_it_quietly(folder):
    np.save(folder / "many.npy", np.tile(QUERIES, (20, 1)))
    process = in_process(folder, "search", "index", "many.npy", "-k", "10")
    assert process.stdout.readline().startswith("0: ")
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=600) == 141
    assert [line for line in err.splitlines() if "queries in" not in line] == []


def test_exact_file_is_refused_where_it_has_no_effect(run, folder):
    for string, words in (("KFlat(chi2)", ""), ("AHK64(chi2),BFlat,Refine(KFlat(chi2))", ""),
                          ("AHK64(chi2),BFlat", "no KFlat"), ("KFlat(chi2,store=f16)", "store=f16 makes copies")):
        status, _, err = run("build", "base.npy", string, "-o", "one", "--exact", "file", "--quiet")
        assert (status == 1 and words in err and "--exact memory" in err) if words else (status == 0 and err == ""), err
        assert (folder / "one").stat().st_size < len(BASE) * 64 * 2
    status, _, err = run("build", "base.npy", "AHK64(chi2),BFlat", "-o", "one", "--quiet")
    assert status == 0 and err == ""


def test_interrupted_while_it_writes(folder):
    np.save(folder / "wide.npy", np.zeros((60000, 784), "float32"))
    before = (folder / "index").read_bytes()
    for _ in range(100):  # on a busy machine it may be done before it is seen to write
        process = in_process(folder, "build", "wide.npy", "KFlat(chi2)", "-o", "index", "--exact", "memory", "--quiet")
        while process.poll() is None and not list(folder.glob(".faiss_ext_*")):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
        if process.returncode != 0:
            break
        (folder / "index").write_bytes(before)
    assert process.returncode == 130 and "Traceback" not in err and "interrupted" in err
    assert (folder / "index").read_bytes() == before
    assert not list(folder.glob(".faiss_ext_*"))


def test_an_interrupted_build_leaves_the_old_file(folder):
    np.save(folder / "many.npy", np.random.default_rng(1).random((100000, 64), dtype="float32"))
    before = (folder / "index").read_bytes()
    process = in_process(folder, "build", "many.npy", "HNSW32,KFlat(chi2)", "-o", "index")
    said = ""
    while said.count("graph") < 2:  # its progress; tqdm complains if its constructor is interrupted
        said += process.stderr.read(1)
        assert process.poll() is None, said
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130 and "Traceback" not in err and "interrupted" in err
    assert (folder / "index").read_bytes() == before
    assert not list(folder.glob(".faiss_ext_*"))


# ------------------------------------------------- changes of an index's file

BITS = np.packbits(COUNTS > 8, axis=1)
CHANGING = ["KFlat(chi2)", "AHK64(chi2),BFlat", "AHK64(chi2),BIVF4", "HKM1(chi2),KIVF4", "AHK64(chi2),BFlat,Refine(KFlat(chi2))",
            "HKM1(chi2),KIVF4,Refine(KFlat(chi2))", "IDMap,KFlat(chi2)", "BFlat", "BIVF4", "IDMap2,BFlat", "binary AHK64(chi2),BFlat"]


def started(folder, string):
    """An index of 50 vectors with the ids 100 to 149, in a file; the vectors that it takes."""
    binary = string.startswith(("B", "binary", "IDMap2,B"))
    x = BITS if binary and "AHK" not in string else X
    np.save(folder / "x.npy", x)
    np.save(folder / "first.npy", x[:9])
    index = (faiss_ext.index_binary_factory if binary else faiss.index_factory)(64, string.removeprefix("binary "))
    index.train(x)
    index.add_with_ids(x[:50], np.arange(100, 150))
    write(index, folder / "living")
    return index, x


def write(index, path):
    (faiss_ext.write_index_binary if isinstance(index, faiss.IndexBinary) else faiss.write_index)(index, str(path))


def same(folder, name, index, x):
    """Whether a file holds the same vectors as an index, with the same ids."""
    found = index_of(str(folder / name))
    np.testing.assert_array_equal(np.sort(found.ids()), np.sort(index.ids()))
    for (D, I), (E, J) in zip(zip(*found.search(x[:20], 8)), zip(*index.search(x[:20], 8))):
        np.testing.assert_array_equal(D, E)
        assert sorted(zip(D, I))[:(D < D[-1]).sum()] == sorted(zip(E, J))[:(E < E[-1]).sum()]  # (ties)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("string", CHANGING)
def test_vectors_are_added_replaced_and_removed(run, folder, string):
    index, x = started(folder, string)
    np.save(folder / "new.npy", x[50:53])
    (folder / "new.csv").write_text("id\n7\n1000\n8\n")
    status, out, err = run("add", "living", "new.npy", "--ids", "new.csv")
    assert (status, out, err) == (0, "living: 3 added, with ids from 7 to 1000; 53 vectors now\n", "")
    index.add_with_ids(x[50:53], [7, 1000, 8])
    same(folder, "living", index, x)

    status, out, _ = run("add", "living", "new.npy", "--json")
    index.add(x[50:53])
    same(folder, "living", index, x)
    assert status == 0 and json.loads(out) == {
        "added": 3, "first_id": int(index.ids().max()) - 2, "last_id": int(index.ids().max()), "n": 56}

    before = (folder / "living").read_bytes()
    status, out, _ = run("update", "living", "new.npy", "--ids", "101,7,120", "-o", "other")
    assert status == 0 and out == "other: 3 replaced, 0 added; 56 vectors now\n"
    assert (folder / "living").read_bytes() == before
    index.update_vectors([101, 7, 120], x[50:53])
    same(folder, "other", index, x)

    status, out, _ = run("update", "other", "new.npy", "--ids", "148-150", "--upsert")
    assert status == 0 and out == "other: 2 replaced, 1 added; 57 vectors now\n"
    index.upsert(x[50:53], [148, 149, 150])
    same(folder, "other", index, x)

    np.save(folder / "gone.npy", [100, 103, 5000])
    status, out, _ = run("remove", "other", "--ids", "gone.npy")
    assert status == 0 and out == "other: 2 removed, 1 not found; 55 vectors now\n"
    assert run("remove", "other", "--ids", "7,130-140", "--json") == (0, '{"removed": 12, "not_found": 0, "n": 43}\n', "")
    assert run("remove", "other", "--ids", f"142-{2**63 - 1}")[1].startswith(f"other: {(index.ids() > 141).sum()} removed")
    index.remove_ids(np.r_[100, 103, 7, 130:141, 142:151, 1000:1100])
    same(folder, "other", index, x)


def test_an_index_is_trained_again(run, folder):
    index, x = started(folder, "HKM1(chi2),PCA8,KIVF4,Refine(KFlat(chi2,store=u8))")
    index.remove_ids(np.r_[107, 120])
    write(index, folder / "living")
    before = (folder / "living").read_bytes()
    status, out, err = run("retrain", "living", "base.npy", "-o", "other")
    assert (status, out, err) == (0, f"other: trained again on {len(BASE):,} vectors; 48 vectors now\n", "")
    same(folder, "other", faiss_ext.retrained(index, BASE), x)
    assert (folder / "living").read_bytes() == before
    assert run("retrain", "living", "--train", 30, "--seed", 3, "--json") == (0, '{"trained_on": 30, "n": 48}\n', "")
    same(folder, "living", faiss_ext.retrained(index, train=30, seed=3), x)
    assert run("retrain", "living")[1] == "living: trained again on 48 of its vectors; 48 vectors now\n"
    same(folder, "living", faiss_ext.retrained(index), x)


@pytest.mark.parametrize("string", ["KFlat(chi2)", "BFlat", "BKFlat(jaccard)"])
def test_all_vectors_can_be_removed(run, folder, string):
    index, x = started(folder, string)
    assert run("remove", "living", "--ids", "100-149")[1] == "living: 50 removed, 0 not found; 0 vectors now\n"
    assert run("add", "living", "x.npy")[0] == 0
    np.testing.assert_array_equal(index_of(str(folder / "living")).search(x[:20], 1)[0], index.search(x[:20], 1)[0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("string", CHANGING)
def test_searches_with_a_filter(run, folder, string):
    index, x = started(folder, string)
    (folder / "allowed.txt").write_text("104\n107\n103\n")
    for words, allowed in (("allowed.txt", [104, 107, 103]), ("103,104-105", [103, 104, 105]), ("110-120", range(110, 121))):
        found = json.loads(run("search", "living", "first.npy", "-k", 3, "--filter", words, "--json")[1])
        D, I = index.search(x[:9], 3, filter=allowed)
        assert found["I"] == I.tolist() and found["D"] == D.tolist()
        assert set(I.ravel()) <= {*allowed, -1} and (I >= 0).any()
        assert json.loads(run("search", "living", "first.npy", "-k", 3, "--filter", words, "--json", "--mmap")[1])["I"] == found["I"]
    status, _, err = run("search", "living", "first.npy", "--filter", "5-4")
    assert status == 2 and "LOW-HIGH" in err
    mask = np.arange(index.ids().max() + 1) % 3 == 0
    np.save(folder / "mask.npy", mask)
    np.savez(folder / "masks.npz", a=mask, b=~mask)
    for words, allowed in (("mask.npy", mask), ("masks.npz:a", mask), ("masks.npz:b", ~mask)):
        found = json.loads(run("search", "living", "first.npy", "-k", 3, "--filter", words, "--json")[1])
        assert found["I"] == index.search(x[:9], 3, filter=allowed)[1].tolist()
    np.save(folder / "short.npy", mask[:-1])
    np.save(folder / "square.npy", np.ones((2, 2), bool))
    for words, message in (("short.npy", "the mask given as filter has"), ("square.npy", "array of one dimension"), ("abc", "abc: neither a file nor")):
        status, _, err = run("search", "living", "first.npy", "--filter", words)
        assert status == 1 and message in err and "Traceback" not in err


@pytest.mark.parametrize("string, radius", [("KFlat(chi2)", 0.5), ("AHK64(chi2),BFlat", 20), ("BFlat", 20)])
def test_ranges_with_a_filter(run, folder, string, radius):
    index, x = started(folder, string)
    lims, D, I = index.range_search(x[:9], radius, filter=range(103, 120))
    found = json.loads(run("search", "living", "first.npy", "--radius", radius, "--filter", "103-119", "--json")[1])
    assert found["lims"] == lims.tolist() and found["I"] == I.tolist() and 0 < len(I) < len(index.range_search(x[:9], radius)[2])


@pytest.mark.parametrize("string, words, message", [
    ("HKM1(chi2),HNSW8", ("remove", "--ids", "100"), "build the index again"),
    ("HKM1(chi2),HNSW8", ("update", "first.npy", "--ids", "100-108"), "cannot replace vectors"),
    ("HKM1(chi2),HNSW8", ("update", "first.npy", "--ids", "149-157", "--upsert"), "cannot replace vectors"),
    ("KFlat(chi2)", ("add", "first.npy", "--ids", "149-157"), "149-157: id 149 is already in use"),
    ("AHK64(chi2),BFlat", ("add", "first.npy", "--ids", "used.csv"), "used.csv: line 3: id 107 is already in use"),
    ("KFlat(chi2)", ("add", "first.npy", "--ids", "1-3"), "1-3: 3 ids, but first.npy has 9 vectors"),
    ("KFlat(chi2)", ("add", "first.npy", "--ids", f"0-{2**63 - 1}"), "9,223,372,036,854,775,808 ids, but"),
    ("KFlat(chi2)", ("update", "first.npy", "--ids", "145-153"), "145-153: living has no vector with id 150; --upsert adds it"),
    ("BFlat", ("update", "first.npy", "--ids", "145-153"), "145-153: living has no vector with id 150"),
    ("KFlat(chi2)", ("remove", "--ids", "empty.npy"), "empty.npy: it has no ids"),
    ("KFlat(chi2)", ("remove", "--ids", "half.npy"), "half.npy: expected integers as ids, got float64; row 1 is 1.5"),
    ("KFlat(chi2)", ("remove", "--ids", "1,,2"), "1,,2: neither a file nor a list of ids, such as 3,17,20-30"),
    ("KFlat(chi2)", ("remove", "--ids", "abc"), "abc: neither a file nor a list of ids, such as 3,17,20-30"),
    ("KFlat(chi2)", ("remove", "--ids", "mask.npy"), "mask.npy: expected integers as ids, got bool"),
    ("KFlat(chi2)", ("add", "wrong.npy"), "wrong.npy: IndexFlatKernel::add: component 3 of vector 2 is -5"),
    ("KFlat(chi2)", ("update", "wrong.npy", "--ids", "100-108"), "component 3 of vector 2 is -5"),
    ("KFlat(chi2)", ("add", "narrow.npy"), "narrow.npy: vectors of 5 components, the index takes 64"),
    ("KFlat(chi2)", ("add", "no.npy"), "no.npy: it has no vectors"),
    ("BFlat", ("add", "wrong.npy"), "takes packed bits, uint8, got float32"),
    ("AHK64(chi2),BFlat", ("retrain",), "does not keep its vectors in Refine(KFlat(...))"),
    ("BFlat", ("retrain",), "living: IndexBinaryFlatSIMD is an index of codes"),
    ("KFlat(chi2)", ("retrain", "wrong.npy"), "wrong.npy: IndexFlatKernel::train: component 3 of vector 2 is -5"),
    ("KFlat(chi2)", ("retrain", "narrow.npy"), "narrow.npy: vectors of 5 components, the index takes 64"),
    ("KFlat(chi2)", ("add", "first.npy", "-o", "gone/x"), "there is no folder")])
def test_a_change_that_fails_leaves_the_file(run, folder, string, words, message):
    _, x = started(folder, string)
    before = (folder / "living").read_bytes()
    wrong = X[:9].copy()
    wrong[2, 3] = -5
    np.save(folder / "wrong.npy", wrong)
    np.save(folder / "narrow.npy", X[:9, :5])
    np.save(folder / "no.npy", X[:0])
    np.save(folder / "empty.npy", np.empty(0, "int64"))
    np.save(folder / "half.npy", [1, 1.5])
    np.save(folder / "mask.npy", [True, False])
    (folder / "used.csv").write_text("id\n3\n107\n" + "\n".join(map(str, range(10, 17))))
    status, out, err = run(words[0], "living", *words[1:])
    assert status == 1 and out == "" and message in err and err.startswith("faiss_ext: ") and "Traceback" not in err
    assert (folder / "living").read_bytes() == before and not list(folder.glob(".faiss_ext_*"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("string", ["KFlat(chi2)", "AHK64(chi2),BFlat,Refine(KFlat(chi2))", "HKM1(chi2),KIVF4", "HNSW8,KFlat(chi2)", "BFlat",
                                    "IVF4,Flat"])
def test_an_index_is_built_with_ids(run, folder, string):
    x = BITS if string == "BFlat" else X
    np.save(folder / "x.npy", x)
    ids = np.random.default_rng(0).permutation(10**6)[:len(x)]
    np.savetxt(folder / "ids.txt", ids, "%d")
    assert run("build", "x.npy", string, "-o", "with_ids", "--ids", "ids.txt", "--quiet")[0] == 0
    assert run("build", "x.npy", string, "-o", "positions", "--quiet")[0] == 0
    found, positions = (index_of(str(folder / name)).search(x[:20], 1) for name in ("with_ids", "positions"))
    np.testing.assert_array_equal(found[0], positions[0])
    unique = [len(set(index_of(str(folder / "positions")).search(x[q:q + 1], 2)[0][0])) == 2 for q in range(20)]
    np.testing.assert_array_equal(found[1][unique], ids[positions[1]][unique])
    for words, status, message in (
            (("--ids", "0-3"), 1, f"0-3: 4 ids, but x.npy has {len(x):,} vectors"), (("--ids", "-"), 2, "- is not a file"),
            (("--ids", f"0-{len(x) - 1}", "--exact", "file"), 1, "--exact memory")):
        found = run("build", "x.npy", string, "-o", "again", "--quiet", *words)
        assert found[0] == status and (message in found[2] or not status)


def test_what_cannot_be_changed(run, folder, tmp_path):
    started(folder, "KFlat(chi2)")
    os.mkfifo(tmp_path / "pipe")
    (folder / "ids.csv").write_text("3\n")
    faiss_ext.build_shards([BASE[:300], BASE[300:]], "KFlat(chi2)", folder=tmp_path / "shards", progress=False)
    for string, name in (("KFlat(chi2)", "mapped"), ("AHK64(chi2),BFlat,Refine(KFlat(chi2))", "refined")):
        assert run("build", "x.npy", string, "-o", name, "--exact", "file", "--quiet")[0] == 0
    write(made("Flat", X), folder / "faiss's")
    write(made("IDMap2,Flat", X), folder / "map")
    assert [json.loads(run("search", name, "first.npy", "-k", 3, "--filter", "4-7", "--json")[1])["I"] for name in ("mapped", "refined")] == [
        index_of(str(folder / name)).search(X[:9], 3, filter=range(4, 8))[1].tolist() for name in ("mapped", "refined")]
    for words, status, message in (
            (("add", tmp_path / "pipe", "x.npy"), 2, "is a pipe or device"), (("add", "living", "x.npy", "-o", tmp_path / "pipe"), 2, "is a pipe or device"),
            (("add", "living", tmp_path / "pipe"), 1, "is a pipe or device"), (("remove", "living", "--ids", tmp_path / "pipe"), 1, "pipe or device"),
            (("add", "-", "x.npy"), 2, "- is not a file"), (("add", "living", "-"), 2, "- is not a file"),
            (("remove", "living", "--ids", "-"), 2, "- is not a file"), (("add", "living", "x.npy", "-o", "-"), 2, "- is not a file"),
            (("add", tmp_path / "shards", "x.npy"), 1, "folders of shards cannot be changed"),
            (("search", tmp_path / "shards", "x.npy", "--filter", "3"), 2, "is for an index in a file"),
            (("add", "mapped", "first.npy"), 1, "reads its vectors from"), (("remove", "refined", "--ids", "3"), 1, "reads its vectors from"),
            (("remove", "faiss's", "--ids", "3"), 1, "IndexFlatL2 is a class of FAISS"), (("search", "faiss's", "x.npy", "--filter", "3"), 1, "class of FAISS"),
            (("update", "living", "x.npy"), 2, "--ids"), (("remove", "living"), 2, "--ids"), (("remove", "living", "--ids", "5-4"), 2, "LOW-HIGH"),
            (("search", "living", "x.npy", "--filter", "ids.csv", "-o", "ids.csv"), 2, "would overwrite ids.csv"),
            (("build", "x.npy", "KFlat(chi2)", "--ids", "ids.csv", "-o", "ids.csv"), 2, "would overwrite ids.csv"),
            (("remove", "living", "--ids", "ids.csv", "-o", "ids.csv"), 2, "would overwrite ids.csv"),
            (("add", "living", "x.npy", "-o", "x.npy"), 2, "would overwrite x.npy"), (("add", "x.npy", "x.npy"), 2, "would overwrite x.npy"),
            (("add", "map", "x.npy"), 2, "--ids gives those of the new ones"), (("add", "gone", "x.npy"), 1, "gone: cannot be read"),
            (("add", "queries.npy", "x.npy"), 1, "queries.npy: not an index")):
        found, out, err = run(*words)
        assert found == status and out == "" and message in err and "Traceback" not in err, (words, err)
    assert run("add", "faiss's", "first.npy")[:2] == (0, f"faiss's: 9 added, with ids from {len(X)} to {len(X) + 8}; {len(X) + 9:,} vectors now\n")


@pytest.mark.parametrize("words", [("add", "living", "x.npy"), ("update", "living", "first.npy", "--ids", "100-108"), ("remove", "living", "--ids", "100")])
def test_a_change_whose_writing_fails_leaves_the_file(run, folder, monkeypatch, words):
    started(folder, "KFlat(chi2)")
    before = (folder / "living").read_bytes()

    def interrupted(index, path):
        with replacing(path) as file:
            file.write(b"half")
            raise error

    monkeypatch.setattr(name_files, "write_index_alone", interrupted)
    for error, status in ((KeyboardInterrupt(), 130), (OSError(28, "No space left on device"), 1)):
        found, out, err = run(*words)
        assert found == status and out == "" and "Traceback" not in err
        assert (folder / "living").read_bytes() == before and not list(folder.glob(".faiss_ext_*"))


def test_a_change_that_is_killed_leaves_the_file(folder):
    np.save(folder / "wide.npy", np.zeros((60000, 784), "float32"))
    write(made("KFlat(chi2)", np.zeros((2, 784), "float32")), folder / "living")
    before = (folder / "living").read_bytes()
    for _ in range(100):  # on a busy machine it may be done before it is seen to write
        process = in_process(folder, "add", "living", "wide.npy")
        while process.poll() is None and not list(folder.glob(".faiss_ext_*")):
            time.sleep(0.001)
        process.kill()
        process.communicate(timeout=600)
        for file in folder.glob(".faiss_ext_*"):
            file.unlink()
        if process.returncode != 0:
            break
        (folder / "living").write_bytes(before)
    assert process.returncode == -signal.SIGKILL and (folder / "living").read_bytes() == before
