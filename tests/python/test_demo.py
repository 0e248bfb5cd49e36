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
    opened = (
        gzip.open(path, "wb") if path.suffix == ".gz" else open(path, "wb")
    )
    with opened as f:
        f.write(data)


def write_vecs(path, array):
    with open(path, "wb") as f:
        for row in array:
            f.write(struct.pack("<i", len(row)) + row.tobytes())


def write_npy(path, array):
    np.save(path, array)


# ------------------------------------------------------------------- loading


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_idx_images_become_vectors(datasets, tmp_path, suffix):
    base, query = random_bytes(30, 4, 5), random_bytes(7, 4, 5)
    write_idx(tmp_path / (BASE + suffix), base)
    write_idx(tmp_path / (QUERY + suffix), query)
    data = datasets.load(tmp_path)
    assert data.name == tmp_path.name and data.d == 20
    assert data.base.dtype == data.queries.dtype == np.float32
    np.testing.assert_array_equal(data.base, base.reshape(30, 20))
    np.testing.assert_array_equal(data.queries, query.reshape(7, 20))


@pytest.mark.parametrize(
    "code, dtype",
    [
        (0x09, ">i1"),
        (0x0B, ">i2"),
        (0x0C, ">i4"),
        (0x0D, ">f4"),
        (0x0E, ">f8"),
    ],
)
def test_idx_files_of_other_numbers(datasets, tmp_path, code, dtype):
    values = np.arange(-20, 20).reshape(10, 4).astype(dtype)
    write_idx(tmp_path / BASE, values, code)
    np.testing.assert_array_equal(
        datasets.read_vectors(tmp_path / BASE), values
    )


@pytest.mark.parametrize(
    "suffix, write, dtype",
    [
        ("fvecs", write_vecs, "<f4"),
        ("bvecs", write_vecs, "uint8"),
        ("npy", write_npy, "float64"),
        ("npy", write_npy, "uint8"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "sift_"])
def test_pairs_of_vector_files(
    datasets, tmp_path, suffix, write, dtype, prefix
):
    base = random_bytes(40, 6).astype(dtype)
    query = random_bytes(9, 6).astype(dtype)
    write(tmp_path / f"{prefix}base.{suffix}", base)
    write(tmp_path / f"{prefix}query.{suffix}", query)
    write(tmp_path / f"{prefix}learn.{suffix}", query)  # is not used
    data = datasets.load(tmp_path)
    assert data.name == (prefix[:-1] or tmp_path.name)
    np.testing.assert_array_equal(data.base, base)
    np.testing.assert_array_equal(data.queries, query)
    assert data.base.dtype == np.float32 and data.base.flags.c_contiguous


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
    first, again, other = (
        datasets.load(tmp_path, seed=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.base, again.base)
    assert (first.queries != other.queries).any()


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


def test_digits_need_no_file(datasets, digits):
    data = datasets.load_digits(queries=100, limit=500)
    assert data.name == "digits" and data.d == 64
    assert data.base.shape == (500, 64) and data.queries.shape == (100, 64)
    everything = datasets.load_digits()
    assert len(everything.base) + len(everything.queries) == 1797
    assert len(everything.queries) == 359  # a fifth at most


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


@pytest.mark.parametrize(
    "name", [BASE, BASE + ".gz", "base.fvecs", "base.bvecs", "base.npy"]
)
def test_empty_files_are_refused(datasets, tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    message = error_of(datasets, tmp_path)
    assert name in message and "empty file" in message


@pytest.mark.parametrize(
    "name, write, array",
    [
        (BASE, write_idx, random_bytes(20, 3, 3)),
        (BASE + ".gz", write_idx, random_bytes(20, 3, 3)),
        ("base.fvecs", write_vecs, random_bytes(20, 9).astype("<f4")),
        ("base.bvecs", write_vecs, random_bytes(20, 9)),
        ("base.npy", write_npy, random_bytes(20, 9)),
    ],
)
def test_truncated_files_are_refused(datasets, tmp_path, name, write, array):
    path = tmp_path / name
    write(path, array)
    data = path.read_bytes()
    assert len(datasets.load(tmp_path).base) == 16
    for cut in {1, 3, 5, 9, len(data) // 2 + 1, len(data) - 1}:
        path.write_bytes(data[:cut])
        message = error_of(datasets, tmp_path)
        assert name in message
        assert "truncated" in message or "malformed" in message


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize("kind", ["npy", "fvecs"])
def test_numbers_that_are_not_finite_are_named(datasets, tmp_path, bad, kind):
    x = np.zeros((30, 4))
    x[11, 2] = bad
    if kind == "npy":
        np.save(tmp_path / "base.npy", x)
    else:
        with np.errstate(over="ignore"):
            write_vecs(tmp_path / "base.fvecs", x.astype("<f4"))
    np.save(tmp_path / "query.npy", np.ones((3, 4)))
    message = error_of(datasets, tmp_path)
    assert f"base.{kind}" in message and "NaN or infinite" in message
    assert "vector 11" in message and "component 2" in message


def test_files_that_do_not_fit_are_refused(datasets, tmp_path):
    np.save(tmp_path / "base.npy", random_bytes(20, 4))
    np.save(tmp_path / "query.npy", random_bytes(20, 5))
    message = error_of(datasets, tmp_path)
    assert "4 dimensions" in message and "5" in message
    for wrong in (
        np.zeros(7),
        np.zeros((2, 2, 2)),
        np.zeros((0, 4)),
        np.zeros((4, 0)),
        np.array([["a", "b"]]),
    ):
        np.save(tmp_path / "base.npy", wrong)
        assert "base.npy" in error_of(datasets, tmp_path)
    np.save(tmp_path / "base.npy", np.array([[{}]]), allow_pickle=True)
    assert "malformed" in error_of(datasets, tmp_path)


def test_malformed_vector_files_are_refused(datasets, tmp_path):
    path = tmp_path / "base.fvecs"
    rows = [np.zeros(4, "<f4"), np.zeros(3, "<f4"), np.zeros(5, "<f4")]
    write_vecs(path, rows)
    assert "claims 3 dimensions" in error_of(datasets, tmp_path)
    for d in (0, -1):
        path.write_bytes(struct.pack("<i", d) + bytes(100))
        assert f"claims {d} dimensions" in error_of(datasets, tmp_path)
    path.write_bytes(struct.pack("<i", 1 << 30) + bytes(100))
    assert "truncated or malformed" in error_of(datasets, tmp_path)


def test_malformed_idx_files_are_refused(datasets, tmp_path):
    good = random_bytes(20, 3, 3)
    path = tmp_path / BASE
    write_idx(path, good)
    data = path.read_bytes()
    path.write_bytes(data + b"x")
    assert "malformed" in error_of(datasets, tmp_path)
    path.write_bytes(b"\x01" + data[1:])
    assert "does not begin with" in error_of(datasets, tmp_path)
    write_idx(path, good, 0x42)
    assert "does not begin with" in error_of(datasets, tmp_path)
    path.unlink()
    (tmp_path / (BASE + ".gz")).write_bytes(data)  # not compressed
    assert "gzip" in error_of(datasets, tmp_path)


# ------------------------------------------------------------------ the demo


@pytest.fixture(scope="module")
def run_demo(environment):
    """Runs the demo in a folder."""
    pytest.importorskip("matplotlib", reason="the demo draws with matplotlib")
    pytest.importorskip("tqdm", reason="the demo shows progress with tqdm")

    def run(*arguments, cwd, **variables):
        return subprocess.run(
            [sys.executable, ROOT / "scripts/demo.py", *map(str, arguments)],
            cwd=cwd,
            env={**environment, "MPLCONFIGDIR": str(cwd), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    return run


@pytest.fixture(scope="module")
def demo_run(run_demo, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    result = run_demo(
        "--bits", 64, "--queries", 50, "--limit", 400, cwd=folder
    )
    assert result.returncode == 0, result.stderr
    return folder / "demo_output", result


def test_demo_writes_a_table_of_recalls_and_speeds(demo_run):
    folder, result = demo_run
    with open(folder / "digits_gaussian.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    assert list(rows[0]) == [
        "method",
        "series",
        "bits",
        "bytes_per_vector",
        "build_s",
        "queries_per_s",
        "recall_at_1",
        "recall_at_10",
        "recall_at_100",
    ]
    assert len({row["method"] for row in rows}) == len(rows) > 8
    for row in rows:
        for rank in (1, 10, 100):
            assert 0 <= float(row[f"recall_at_{rank}"]) <= 1
        assert float(row["queries_per_s"]) > 0 and float(row["build_s"]) >= 0
        assert row["method"] in result.stdout
    by_name = {row["method"]: row for row in rows}
    exact = by_name["KFlat(gaussian)"]
    assert [float(exact[f"recall_at_{r}"]) for r in (1, 10, 100)] == [1, 1, 1]
    # the Gaussian kernel falls with the Euclidean distance
    assert float(by_name["Flat (L2)"]["recall_at_10"]) > 0.999
    codes = by_name["SIK64,BFlat"]
    assert (codes["bits"], codes["bytes_per_vector"]) == ("64", "8")
    refined = by_name["SIK64,BFlat,Refine(KFlat) k_factor=10"]
    assert float(refined["recall_at_1"]) > float(codes["recall_at_1"])


def test_demo_draws_a_plot_and_names_its_files(demo_run):
    folder, result = demo_run
    plot = folder / "digits_gaussian.png"
    assert plot.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert plot.stat().st_size > 10_000
    assert {p.name for p in folder.iterdir()} == {
        "digits_gaussian.csv",
        "digits_gaussian.png",
    }
    for text in ("digits_gaussian.csv", "digits_gaussian.png", "recall@10"):
        assert text in result.stdout
    assert "400 base vectors, 50 queries, d = 64" in result.stdout


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--data", "nowhere"], "no such folder"),
        (["--data", "."], "no vectors here"),
        (["--limit", "50"], "needs at least 100"),
        (["--bits", "60"], "multiple of 8"),
        (["--bits", "many"], "numbers such as"),
        (["--queries", "0"], "not positive"),
        (["--kernel", "chi3"], "invalid choice"),
        (["--dataset", "x"], "not given"),
    ],
)
def test_demo_says_what_is_wrong(run_demo, tmp_path, arguments, message):
    result = run_demo(*arguments, cwd=tmp_path)
    assert result.returncode != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_demo_says_how_to_find_the_module(run_demo, tmp_path):
    (tmp_path / "faiss_ext.py").write_text("raise ImportError('not built')")
    result = run_demo(cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert result.returncode != 0
    assert "not built" in result.stderr and "demo.sh" in result.stderr
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
        (tools / name).write_text(
            f'#!/bin/sh\necho "{name} $*" >>"{log}"\nexit 1\n'
        )
        (tools / name).chmod(0o755)

    def run(*command):
        environment = {
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHON": sys.executable,
        }
        result = subprocess.run(
            [tmp_path / "checkout" / "scripts" / command[0], *command[1:]],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert not log.exists(), log.read_text()
        assert os.listdir(tmp_path / "checkout") == ["scripts"]
        return result

    return run


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_comes_before_anything_is_installed_or_built(run_bare, option):
    result = run_bare("demo.sh", option)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("usage: demo.sh")
    for name in ("data", "dataset", "kernel", "vlad", "group", "queries",
                 "limit", "bits", "seed", "output"):
        assert f"\n  --{name} " in result.stdout
    # -S: without NumPy, FAISS and all that is not Python's own
    by_python = subprocess.run(
        [sys.executable, "-S", ROOT / "scripts" / "demo.py", option],
        env={},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert (by_python.returncode, by_python.stdout) == (0, result.stdout)

    result = run_bare("test.sh", option)
    assert (result.returncode, result.stderr) == (0, "")
    assert "runs all tests" in result.stdout
    assert "#" not in result.stdout


@pytest.mark.parametrize(
    "script, arguments, message",
    [
        ("demo.sh", ["--kernel", "chi3"], "invalid choice: 'chi3'"),
        ("demo.sh", ["--bits", "60"], "multiple of 8"),
        ("demo.sh", ["--dataset", "x"], "not given"),
        ("demo.sh", ["--colour", "red"], "unrecognized arguments: --colour"),
        ("test.sh", ["--fast"], "takes no arguments"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_built(
    run_bare, script, arguments, message
):
    result = run_bare(script, *arguments)
    assert result.returncode == 2
    assert message in result.stderr and result.stdout == ""


def recalls_at_10(path):
    with open(path) as f:
        return {
            row["method"]: float(row["recall_at_10"]) for row in csv.DictReader(f)
        }


def test_demo_searches_histograms(run_demo, tmp_path):
    arguments = "--kernel chi2 --limit 300 --queries 20 --bits 128".split()
    result = run_demo(*arguments, "--output", "out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "L1-normalised" in result.stdout
    recalls = recalls_at_10(tmp_path / "out/digits_chi2.csv")
    assert recalls["KFlat(chi2)"] == 1
    refined = recalls["AHK128,BFlat,Refine(KFlat) k_factor=10"]
    assert 0.9 < refined and 0.3 < recalls["AHK128,BFlat"] <= refined


def test_demo_refuses_what_is_no_histogram(run_demo, tmp_path):
    write_npy(tmp_path / "base.npy", np.full((200, 4), -1, "float32"))
    result = run_demo("--kernel", "js", "--data", tmp_path, cwd=tmp_path)
    assert result.returncode != 0
    assert "negative components" in result.stderr


def test_demo_makes_vlad_vectors(run_demo, tmp_path):
    write_npy(tmp_path / "base.npy", random_bytes(1200, 8))
    write_npy(tmp_path / "query.npy", random_bytes(40, 8))
    arguments = "--vlad 4 --group 10 --queries 3 --bits 64".split()
    result = run_demo(*arguments, "--data", tmp_path, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "120 base vectors, 3 queries, d = 32" in result.stdout
    assert "BSIK64,BFlat" in result.stdout


def test_vlad_vectors(datasets):
    """Against sums written out."""
    rng = np.random.default_rng(1)
    x = rng.random((25, 3), "float32")
    centres = rng.random((4, 3), "float32")
    found = datasets.vlad(x, centres, 10)
    assert found.shape == (2, 12)
    for i, row in enumerate(found):
        expected = np.zeros((4, 3))
        for v in x[10 * i:10 * i + 10]:
            nearest = np.argmin(((centres - v) ** 2).sum(axis=1))
            expected[nearest] += v - centres[nearest]
        expected = np.sign(expected) * np.sqrt(np.abs(expected))
        expected /= np.linalg.norm(expected)
        np.testing.assert_allclose(row, expected.ravel(), atol=1e-5)
