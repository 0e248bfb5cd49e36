# SPDX-License-Identifier: MIT
"""The demo: how it reads data, and what it writes."""

import csv
import gzip
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
BASE, QUERY = "train-images-idx3-ubyte", "t10k-images-idx3-ubyte"


def random_bytes(n, *shape):
    rng = np.random.default_rng(n)
    return rng.integers(0, 256, size=(n, *shape), dtype="uint8")


def write_idx(path, array, code=0x08):
    data = struct.pack(">HBB", 0, code, array.ndim)
    data += struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
    with (gzip.open if path.suffix == ".gz" else open)(path, "wb") as f:
        f.write(data)


def write_vecs(path, array):
    with open(path, "wb") as f:
        for row in array:
            f.write(struct.pack("<i", len(row)) + row.tobytes())


def write_npy(path, array):
    np.save(path, array)


# ------------------------------------------------------------------- loading

FILES = [
    (BASE, QUERY, write_idx, "uint8"),
    (BASE + ".gz", QUERY + ".gz", write_idx, "uint8"),
    ("base.fvecs", "query.fvecs", write_vecs, "<f4"),
    ("sift_base.bvecs", "sift_query.bvecs", write_vecs, "uint8"),
    ("sift_base.npy", "sift_query.npy", write_npy, "float64"),
    ("base.npy", "query.npy", write_npy, "uint8")]


@pytest.mark.parametrize("base_name, query_name, write, dtype", FILES)
def test_pairs_of_files_are_read(datasets, tmp_path, base_name, query_name, write, dtype):
    shape = (4, 5) if write is write_idx else (20,)  # images become vectors
    base, query = (random_bytes(n, *shape).astype(dtype) for n in (40, 9))
    write(tmp_path / base_name, base)
    write(tmp_path / query_name, query)
    if write is not write_idx:
        write(tmp_path / base_name.replace("base", "learn"), query)  # not used
    data = datasets.load(tmp_path)
    assert data.name == ("sift" if "sift" in base_name else tmp_path.name)
    assert data.d == 20
    np.testing.assert_array_equal(data.base, base.reshape(40, 20))
    np.testing.assert_array_equal(data.queries, query.reshape(9, 20))
    assert data.base.dtype == data.queries.dtype == np.float32
    assert data.base.flags.c_contiguous


@pytest.mark.parametrize(
    "code, dtype", [(9, ">i1"), (0xB, ">i2"), (0xC, ">i4"), (0xD, ">f4"), (0xE, ">f8")])
def test_idx_files_of_other_numbers(datasets, tmp_path, code, dtype):
    values = np.arange(-20, 20).reshape(10, 4).astype(dtype)
    write_idx(tmp_path / BASE, values, code)
    np.testing.assert_array_equal(datasets.read_vectors(tmp_path / BASE), values)


def test_a_file_without_queries_is_split(datasets, tmp_path):
    vectors = np.arange(200, dtype="float32").reshape(100, 2)
    np.save(tmp_path / "mine.npy", vectors)
    for root in (tmp_path, tmp_path / "mine.npy"):
        data = datasets.load(root, queries=1000)
        assert data.name == "mine.npy"
        assert len(data.queries) == 20 and len(data.base) == 80
        both = np.vstack([data.base, data.queries])
        assert {tuple(v) for v in both} == {tuple(v) for v in vectors}
    assert len(datasets.load(tmp_path, queries=5).queries) == 5
    first, again, other = (datasets.load(tmp_path, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.base, again.base)
    assert (first.queries != other.queries).any()


def test_hdf5_files_of_ann_benchmarks(datasets, tmp_path):
    h5py = pytest.importorskip("h5py")
    base, query = random_bytes(300, 3).astype("float32"), random_bytes(50, 3).astype("float32")
    path = tmp_path / "base.hdf5"
    with h5py.File(path, "w") as file:
        file["train"], file["test"] = base, query
    for root in (tmp_path, path):
        data = datasets.load(root)
        assert data.name == "base.hdf5"
        np.testing.assert_array_equal(data.base, base)
        np.testing.assert_array_equal(data.queries, query)
    data = path.read_bytes()
    path.write_bytes(data[:100])
    assert "malformed HDF5" in error_of(datasets, tmp_path)
    with h5py.File(path, "w") as file:
        file["train"] = base
    assert "no array 'test'" in error_of(datasets, tmp_path)


def test_hdf5_files_need_h5py(datasets, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "sift.hdf5").write_bytes(b"x")
    assert "need h5py" in error_of(datasets, tmp_path)


def test_no_more_is_taken_than_is_wanted(datasets, tmp_path):
    base, query = random_bytes(300, 3), random_bytes(50, 3)
    write_vecs(tmp_path / "base.bvecs", base)
    write_vecs(tmp_path / "query.bvecs", query)
    data = datasets.load(tmp_path, queries=10, limit=100)
    assert data.base.shape == (100, 3) and data.queries.shape == (10, 3)
    rows = {tuple(row) for row in base.tolist()}
    assert {tuple(row) for row in data.base.astype(int).tolist()} <= rows
    other = datasets.load(tmp_path, queries=10, limit=100, seed=2)
    assert (data.base != other.base).any()


def test_folders_below_are_datasets_by_their_names(datasets, tmp_path):
    for name in ("alpha", "beta"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "base.npy", random_bytes(20, 4))
    write_idx(tmp_path / "alpha" / (BASE + ".gz"), random_bytes(20, 2, 2))
    found = datasets.find_datasets(tmp_path)
    assert set(found) == {"alpha", "beta"}
    assert datasets.load(tmp_path, "beta").d == 4
    with pytest.raises(datasets.DatasetError, match="several.*alpha, beta"):
        datasets.load(tmp_path)
    with pytest.raises(datasets.DatasetError, match="no dataset 'gamma'"):
        datasets.load(tmp_path, "gamma")


# -------------------------------------------------------------------- errors

def error_of(datasets, root, **options):
    with pytest.raises(datasets.DatasetError) as error:
        datasets.load(root, **options)
    return str(error.value)


def test_missing_folders_and_files_are_named(datasets, tmp_path):
    assert "no such folder" in error_of(datasets, tmp_path / "nothing")
    message = error_of(datasets, tmp_path)
    assert str(tmp_path) in message and "train-images-idx3-ubyte" in message
    (tmp_path / "notes.txt").write_text("hello")
    assert "no vectors here" in error_of(datasets, tmp_path)
    with pytest.raises(datasets.DatasetError, match="unknown kind of file"):
        datasets.read_vectors(tmp_path / "notes.txt")
    with pytest.raises(datasets.DatasetError, match="cannot be read"):
        datasets.read_vectors(tmp_path / "gone.npy")


@pytest.mark.parametrize("name, _, write, dtype", FILES)
def test_empty_and_truncated_files_are_refused(datasets, tmp_path, name, _, write, dtype):
    path = tmp_path / name
    shape = (3, 3) if write is write_idx else (9,)
    write(path, random_bytes(20, *shape).astype(dtype))
    data = path.read_bytes()
    assert len(datasets.load(tmp_path).base) == 16
    for cut in {0, 1, 3, 5, 9, len(data) // 2 + 1, len(data) - 1}:
        path.write_bytes(data[:cut])
        problem = error_of(datasets, tmp_path).split(name)[1]
        assert ("empty file" in problem) == (cut == 0)
        assert cut == 0 or "truncated" in problem or "malformed" in problem


def test_malformed_files_are_refused(datasets, tmp_path):
    write_idx(tmp_path / "good", random_bytes(20, 3, 3))
    write_idx(tmp_path / "code", random_bytes(20, 3, 3), 0x42)
    write_vecs(tmp_path / "vecs", [np.zeros(d, "<f4") for d in (4, 3, 5)])
    x = np.zeros((30, 4), "<f4")
    x[11, 2] = np.inf
    good, code, vecs = ((tmp_path / n).read_bytes() for n in ("good", "code", "vecs"))
    for name, data, problem in [
        ("base.fvecs", vecs, "claims 3 dimensions"),
        ("base.fvecs", struct.pack("<i", 0) + bytes(100), "claims 0 dimensions"),
        ("base.fvecs", struct.pack("<i", -1) + bytes(100), "claims -1 dimensions"),
        ("base.fvecs", struct.pack("<i", 1 << 30) + bytes(100), "truncated or malformed"),
        (BASE, good + b"x", "malformed"),
        (BASE, b"\x01" + good[1:], "does not begin with"),
        (BASE, code, "does not begin with"),
        (BASE + ".gz", good, "gzip"),  # not compressed
        ("base.npy", x * np.nan, "component 0"),
        ("base.npy", x[:11] + 1e300, "NaN or infinite"),
        ("base.npy", np.zeros(7), "base.npy"),
        ("base.npy", np.zeros((2, 2, 2)), "base.npy"),
        ("base.npy", np.zeros((0, 4)), "base.npy"),
        ("base.npy", np.zeros((4, 0)), "base.npy"),
        ("base.npy", np.array([["a", "b"]]), "base.npy"),
        ("base.npy", np.array([[{}]]), "malformed"),
    ]:
        folder = tmp_path / "folder"
        folder.mkdir()
        if isinstance(data, bytes):
            (folder / name).write_bytes(data)
        else:
            np.save(folder / name, data, allow_pickle=True)
        assert problem in error_of(datasets, folder)
        shutil.rmtree(folder)
    write_vecs(tmp_path / "base.fvecs", x)
    for d, names in ((4, ("vector 11", "component 2")), (5, ("4 dimensions", "5"))):
        np.save(tmp_path / "query.npy", random_bytes(20, d))
        message = error_of(datasets, tmp_path)
        assert all(name in message for name in names)


# ------------------------------------------------------------------ the demo

def run(*command, **options):
    options |= {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    return subprocess.run(list(map(str, command)), **options)


def table(path):
    with open(path, newline="") as f:
        return {row["method"]: row for row in csv.DictReader(f)}


@pytest.fixture(scope="module")
def run_demo(environment):
    """Runs the demo in a folder."""
    pytest.importorskip("matplotlib", reason="the demo draws with matplotlib")
    pytest.importorskip("tqdm", reason="the demo shows progress with tqdm")

    def demo(*arguments, cwd, **variables):
        env = {**environment, "MPLCONFIGDIR": str(cwd), **variables}
        command = [sys.executable, ROOT / "scripts/demo.py", *arguments]
        return run(*command, cwd=cwd, env=env)

    return demo


def test_demo_writes_a_table_and_a_plot(run_demo, tmp_path):
    result = run_demo("--bits", 64, "--queries", 50, "--limit", 400, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    folder = tmp_path / "demo_output"
    names = {"digits_gaussian.csv", "digits_gaussian.png"}
    assert set(os.listdir(folder)) == names
    for text in (*names, "400 base vectors, 50 queries, d = 64", "recall@10"):
        assert text in result.stdout
    plot = (folder / "digits_gaussian.png").read_bytes()
    assert plot[:8] == b"\x89PNG\r\n\x1a\n" and len(plot) > 10_000

    rows = table(folder / "digits_gaussian.csv")
    assert len(rows) > 8
    ranks = [f"recall_at_{rank}" for rank in (1, 10, 100)]
    columns = "method series bits bytes_per_vector build_s queries_per_s".split()
    for method, row in rows.items():
        assert list(row) == columns + ranks
        assert all(0 <= float(row[rank]) <= 1 for rank in ranks)
        assert float(row["queries_per_s"]) > 0 and float(row["build_s"]) >= 0
        assert method in result.stdout
    assert {float(rows["KFlat(gaussian)"][rank]) for rank in ranks} == {1}
    # the Gaussian kernel falls with the Euclidean distance
    assert float(rows["Flat (L2)"]["recall_at_10"]) > 0.999
    codes = rows["SIK64,BFlat"]
    assert (codes["bits"], codes["bytes_per_vector"]) == ("64", "8")
    refined = rows["SIK64,BFlat,Refine(KFlat) k_factor=10"]
    assert float(refined["recall_at_1"]) > float(codes["recall_at_1"])


def test_demo_searches_histograms(run_demo, tmp_path):
    arguments = "--kernel chi2 --limit 300 --queries 20 --bits 128".split()
    result = run_demo(*arguments, "--output", "out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "L1-normalised" in result.stdout
    rows = table(tmp_path / "out/digits_chi2.csv")
    recalls = {method: float(row["recall_at_10"]) for method, row in rows.items()}
    assert recalls["KFlat(chi2)"] == 1
    refined = recalls["AHK128,BFlat,Refine(KFlat) k_factor=10"]
    assert 0.9 < refined and 0.3 < recalls["AHK128,BFlat"] <= refined


def test_demo_makes_vlad_vectors(run_demo, tmp_path):
    write_npy(tmp_path / "base.npy", random_bytes(1200, 8))
    write_npy(tmp_path / "query.npy", random_bytes(40, 8))
    arguments = "--vlad 4 --group 10 --queries 3 --bits 64".split()
    result = run_demo(*arguments, "--data", tmp_path, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "120 base vectors, 3 queries, d = 32" in result.stdout
    assert "BSIK64,BFlat" in result.stdout


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--data", "nowhere"], "no such folder"),
        (["--data", ".", "--kernel", "js"], "negative components"),
        (["--limit", "50"], "needs at least 100"),
        (["--bits", "many"], "numbers such as"),
        (["--queries", "0"], "not positive"),
        ([], "demo.sh")])
def test_demo_says_what_is_wrong(run_demo, tmp_path, arguments, message):
    write_npy(tmp_path / "base.npy", np.full((200, 4), -1, "float32"))
    variables = {}
    if not arguments:
        # the message says how to find the module
        (tmp_path / "faiss_ext.py").write_text("raise ImportError('not built')")
        variables["PYTHONPATH"] = str(tmp_path)
    result = run_demo(*arguments, cwd=tmp_path, **variables)
    assert result.returncode != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.fixture
def run_bare(tmp_path):
    """Runs a script of a checkout that has not been built; fails if it tries
    to install or build anything."""
    shutil.copytree(ROOT / "scripts", tmp_path / "checkout" / "scripts")
    tools = tmp_path / "tools"
    tools.mkdir()
    log = tmp_path / "log"
    for name in ("apt-get", "cmake", "ctest", "dpkg-query", "ninja", "sudo"):
        (tools / name).write_text(f'#!/bin/sh\necho "{name} $*" >>"{log}"\nexit 1\n')
        (tools / name).chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"

    def bare(script, *arguments):
        result = run(
            tmp_path / "checkout" / "scripts" / script,
            *arguments,
            cwd=tmp_path,
            env={"PATH": path, "PYTHON": sys.executable})
        assert not log.exists(), log.read_text()
        assert os.listdir(tmp_path / "checkout") == ["scripts"]
        return result

    return bare


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_comes_before_anything_is_installed_or_built(run_bare, option):
    result = run_bare("demo.sh", option)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("usage: demo.sh")
    options = "data dataset kernel vlad group queries limit bits seed output"
    for name in options.split():
        assert f"\n  --{name} " in result.stdout
    # -S: without NumPy, FAISS and all that is not Python's own
    script = ROOT / "scripts" / "demo.py"
    by_python = run(sys.executable, "-S", script, option, cwd=ROOT, env={})
    assert (by_python.returncode, by_python.stdout) == (0, result.stdout)

    result = run_bare("test.sh", option)
    assert (result.returncode, result.stderr) == (0, "")
    assert "runs all tests" in result.stdout
    assert "#" not in result.stdout


@pytest.mark.parametrize(
    "command, message",
    [
        ("demo.sh --kernel chi3", "invalid choice: 'chi3'"),
        ("demo.sh --bits 60", "multiple of 8"),
        ("demo.sh --dataset x", "not given"),
        ("demo.sh --colour red", "unrecognized arguments: --colour"),
        ("test.sh --fast", "takes no arguments")])
def test_wrong_options_are_refused_before_anything_is_built(run_bare, command, message):
    result = run_bare(*command.split())
    assert result.returncode == 2
    assert message in result.stderr and result.stdout == ""


def test_vlad_vectors(datasets):
    """Against sums written out."""
    rng = np.random.default_rng(1)
    x = rng.random((25, 3), "float32")
    centres = rng.random((4, 3), "float32")
    found = datasets.vlad(x, centres, 10)
    assert found.shape == (2, 12)
    for i, row in enumerate(found):
        expected = np.zeros((4, 3))
        for v in x[10 * i : 10 * i + 10]:
            nearest = np.argmin(((centres - v) ** 2).sum(axis=1))
            expected[nearest] += v - centres[nearest]
        expected = np.sign(expected) * np.sqrt(np.abs(expected))
        expected /= np.linalg.norm(expected)
        np.testing.assert_allclose(row, expected.ravel(), atol=1e-5)
