# SPDX-License-Identifier: MIT
"""The demo: how it reads data, and what it writes."""

import csv
import gzip
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import ROOT, script

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
    assert data.image_shape == (shape if write is write_idx else None)


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
    assert "malformed .hdf5 file" in error_of(datasets, tmp_path)
    with h5py.File(path, "w") as file:
        file["train"] = base
    assert "no array of two dimensions 'test'" in error_of(datasets, tmp_path)


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


def read_png(path):
    import matplotlib.image

    return matplotlib.image.imread(path)[:, :, :3]


def test_demo_writes_a_table_a_plot_and_a_contact_sheet(run_demo, tmp_path):
    result = run_demo("--bits", "64,128", "--queries", 50, "--limit", 700, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    folder = tmp_path / "demo_output"
    names = {"digits_gaussian.csv", "digits_gaussian.png", "digits_gaussian_neighbours.png"}
    assert set(os.listdir(folder)) == names
    for text in (*names, "700 base vectors, 50 queries, d = 64", "recall@10"):
        assert text in result.stdout
    plot, sheet = (read_png(folder / f"digits_gaussian{rest}.png") for rest in ("", "_neighbours"))
    assert plot.shape[0] > 500 and plot.shape[1] > 1000 and plot.std() > 0.05
    assert sheet.shape[0] > 8 * 56 and sheet.shape[1] > 11 * 56 and sheet.std() > 0.2
    assert all((folder / name).stat().st_size < 300_000 for name in names)

    rows = table(folder / "digits_gaussian.csv")
    ranks = ["recall_at_1", "recall_at_10"]
    columns = "group family method string setting bits bytes_per_vector build_s queries_per_s".split()
    for row in rows.values():
        assert list(row) == columns + ranks
        assert all(0 <= float(row[rank]) <= 1 for rank in ranks)
        assert float(row["queries_per_s"]) > 0 and float(row["build_s"]) >= 0
    assert {float(rows["KFlat(gaussian)"][rank]) for rank in ranks} == {1}
    # the Gaussian kernel falls with the Euclidean distance
    assert float(rows["Flat"]["recall_at_10"]) > 0.999
    codes = rows["SIK64(gaussian),BFlat"]
    assert (codes["bits"], codes["bytes_per_vector"]) == ("64", "8")
    refined = rows["SIK64(gaussian),BFlat,Refine(KFlat(gaussian,store=u8)) k_factor=8"]
    assert float(refined["recall_at_1"]) > float(codes["recall_at_1"])
    assert max(float(row["recall_at_10"]) for row in rows.values() if row["family"] == "PCAR,KIVF,Refine") > 0.9
    # of 700 vectors, four lists
    nprobes = {row["setting"].split()[0] for row in rows.values() if "KIVF" in row["method"]}
    assert nprobes == {"nprobe=1", "nprobe=2", "nprobe=4"}

    # groups, each with a heading
    groups = list(dict.fromkeys(row["group"] for row in rows.values()))
    assert len(groups) == 6
    lines = result.stdout.splitlines()
    places = [lines.index(group) for group in groups]
    assert places == sorted(places) and all(lines[place - 1] == "" for place in places)
    # below them what no other of its family beats
    def is_beaten(row):
        return any(better(other, row) for other in rows.values() if other["family"] == row["family"])

    def better(other, row):
        two = [[float(r[name]) for name in ("recall_at_10", "queries_per_s")] for r in (other, row)]
        return two[0] != two[1] and all(a >= b for a, b in zip(*two))

    assert shown_methods(lines[places[0] :]) == {method for method, row in rows.items() if not is_beaten(row)}


def shown_methods(lines):
    """Those that have numbers in the table: an index, or with a setting below it."""
    found = set()
    for line in lines:
        if match := re.match(r"(  |    )(\S.*?) {2,}[\d,]+ +\d", line):
            found.add(match[2] if match[1] == "  " else f"{index} {match[2]}")
        elif line.startswith("  "):
            index = line.strip()
    return found


def test_demo_searches_histograms(run_demo, tmp_path):
    arguments = "--kernel chi2 --limit 300 --queries 20 --bits 128".split()
    result = run_demo(*arguments, "--output", "out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "L1-normalised" in result.stdout
    rows = table(tmp_path / "out/digits_chi2.csv")
    recalls = {method: float(row["recall_at_10"]) for method, row in rows.items()}
    assert recalls["KFlat(chi2)"] == 1
    codes = "AHK128(chi2,center=1),BFlat"
    refined = recalls[f"{codes},Refine(KFlat(chi2,store=u8)) k_factor=8"]
    assert 0.9 < refined and 0.3 < recalls[codes] <= refined
    assert {row["family"] for row in rows.values()} >= {"HKM,PCAR,KIVF,Refine", "HNSW,KFlat", "AHK,AFlat"}


def test_demo_makes_vlad_vectors(run_demo, tmp_path):
    write_npy(tmp_path / "base.npy", random_bytes(1200, 8))
    write_npy(tmp_path / "query.npy", random_bytes(40, 8))
    arguments = "--vlad 4 --group 10 --queries 3 --bits 64".split()
    result = run_demo(*arguments, "--data", tmp_path, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "120 base vectors, 3 queries, d = 32" in result.stdout
    assert "BSIK64(auto),BFlat" in result.stdout
    # vectors, not images: no contact sheet
    assert {Path(name).suffix for name in os.listdir(tmp_path / "demo_output")} == {".csv", ".png"}
    assert len(os.listdir(tmp_path / "demo_output")) == 2 and "neighbours" not in result.stdout.split("plot:")[1]


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


# --------------------------------------------------- what the demo is made of


@pytest.fixture(scope="module")
def measure():
    """The module that measures, which has the others."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("tqdm")
    return script("measure")


def made_up_rows(measure, kernel, seed, n=20000, d=100):
    """For each index the demo measures a few random points, more recall at less speed."""
    rng = np.random.default_rng(seed)
    gamma = 0.1 if kernel in ("gaussian", "laplacian", "matern") else None
    plan = measure.demo_indexes.Plan(kernel, gamma, n, d, ",store=u8", [128, 256, 512], 1)
    rows = [measure.Row(measure.demo_indexes.exact(kernel), "", 400, 1.0, 1000.0, (1.0, 1.0), None)]
    at = {}
    for entry in plan.entries():
        speed, recall = at.setdefault(entry.family, (10 ** rng.uniform(3, 5), rng.uniform(0.2, 0.95)))
        for setting in [""] if entry.k_factors == (None,) else ["step=1", "step=2", "step=3"]:
            speed, recall = speed * rng.uniform(0.4, 0.9), recall + (1 - recall) * rng.uniform(0, 0.6)
            size = int(10 ** rng.uniform(1, 3.5))
            rows.append(measure.Row(entry, setting, size, 1.0, speed, (recall, recall), None))
        at[entry.family] = speed, recall
    return rows


@pytest.mark.parametrize("kernel", ["gaussian", "chi2", "matern"])
def test_strings_are_built_with_their_bandwidth_and_seed(measure, kernel):
    gamma = None if kernel == "chi2" else 0.25
    entries = measure.demo_indexes.Plan(kernel, gamma, 5000, 24, ",store=f16", [64, 128], 7).entries()
    assert len({entry.name for entry in entries}) == len(entries)
    places = [measure.demo_indexes.GROUPS.index(entry.family.group) for entry in entries]
    assert places == sorted(places) and set(places) == set(range(6))
    for entry in entries:
        assert entry.make(24).d == 24
        assert "gamma" not in entry.name and "seed" not in entry.name
        is_random = any(word in entry.name for word in ("SIK", "AHK", "KIVF", "KPCA"))
        assert ("seed=7" in entry.string) == is_random
        has_bandwidth = gamma is not None and any(word in entry.name for word in ("(gaussian", "(matern", "BSIK"))
        assert ("gamma=0.25" in entry.string) == has_bandwidth
        assert list(entry.efforts) == sorted(entry.efforts, key=lambda value: value or 0)


def test_no_more_is_asked_of_small_sets_than_they_have(measure):
    """PCA, landmarks, lists and tables for the fewest vectors that the demo takes."""
    rng = np.random.default_rng(1)
    x = rng.random((measure.FEWEST, 300), "float32")
    for kernel in ("gaussian", "laplacian", "chi2"):
        gamma = None if kernel == "chi2" else 0.1
        for entry in measure.demo_indexes.Plan(kernel, gamma, len(x), 300, "", [64], 1).entries():
            index = entry.make(300)
            index.train(x)
            index.add(x)
            assert (index.search(x[:3], 1)[1][:, 0] >= 0).all()


def test_hits_are_those_no_farther_than_the_last(measure):
    faiss = measure.faiss
    x = np.arange(40, dtype="float32")[:, None] @ np.ones((1, 4), "float32")
    exact = faiss.index_factory(4, "KFlat(gaussian(gamma=1e-4))")
    exact.add(x)
    truth = measure.Truth(exact, x[[0, 20]])
    # of the second query 15 and 25 are both tenth
    found = np.array([[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [20, 19, 21, 18, 22, 17, 23, 16, 24, 25]])
    assert truth.recall(found) == 1
    other = np.array([[0, 1, 2, 3, 4, 5, 6, 7, 8, 10], [-1, 15, 25, 14, 26, 0, 20, 20, 20, 20]])
    hits = truth.hits(other)
    assert hits[0].tolist() == 9 * [True] + [False]
    assert hits[1].tolist() == [False, True, True, False, False, False, True, True, True, True]
    assert truth.recall(other, 1) == 0.5


def test_effort_is_raised_as_far_as_it_is_worth_it(measure, monkeypatch):
    family = measure.demo_indexes.Family("lists and graphs", "lists", "x")
    sweep = {"effort": "nprobe", "efforts": (1, 2, 4, 8, 16), "k_factors": (1, 2, 4)}
    entry = measure.demo_indexes.Entry(family, "x", "x", **sweep)
    demo = measure.Demo.__new__(measure.Demo)
    demo.rows = [measure.Row(entry, "", 1, 1.0, 30.0, (1.0, 1.0), None)]
    demo.data = measure.datasets.Dataset("some", np.zeros((100, 1)), np.zeros((20, 1)))

    def settings(recalls, slow=()):
        """Of a sweep where each setting has that recall."""
        found = []

        def searched(speed):
            return SimpleNamespace(least=len(demo.data.queries) / speed, turn=lambda: None)

        def tried(entry, index, parameters, costs):
            assert list(parameters) == ["nprobe", "k_factor"]
            key = tuple(parameters.values())
            found.append(key)
            recall = recalls(*key)
            return measure.Row(entry, "", 1, 1.0, 0.0, (recall, recall), None), searched(10 if key in slow else 50)

        demo.timers = {demo.rows[0].method: searched(30)}
        monkeypatch.setattr(demo, "_tried", tried)
        monkeypatch.setattr(demo, "_add", lambda trials: added.extend(trials))
        monkeypatch.setattr(measure.timing, "is_slower", lambda one, other: one.least > other.least)
        added = []
        demo._sweep(entry, None, (1.0, 1))
        assert len(added) == len(found)
        return found

    # more candidates add nothing
    assert settings(lambda nprobe, k_factor: nprobe / 20) == [
        (nprobe, k_factor) for nprobe in entry.efforts for k_factor in (1, 2)]
    # everything is found from 2, 4 on: one effort more, which may do with fewer candidates
    assert settings(lambda nprobe, k_factor: min(1, nprobe * k_factor / 8)) == [
        (1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (2, 4), (4, 1), (4, 2)]
    # two seconds, and slower than the exact scan
    assert settings(lambda nprobe, k_factor: nprobe * k_factor / 100, {(2, 2)}) == [
        (1, 1), (1, 2), (1, 4), (2, 1), (2, 2)]
    # slower than that, but short
    demo.data = demo.data._replace(queries=np.zeros((5, 1)))
    assert len(settings(lambda nprobe, k_factor: nprobe * k_factor / 100, {(2, 2)})) == 15


@pytest.mark.parametrize("kernel, seed", [*(("gaussian", seed) for seed in (1, 2, 3)), ("chi2", 4), ("matern", 5)])
def test_labels_neither_overlap_nor_leave_the_figure(measure, kernel, seed):
    rows = made_up_rows(measure, kernel, seed)
    figures = measure.demo_figures
    figure, labels = figures.draw_plot(rows, "some vectors\nsome machine")
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in labels]
    whole = figure.bbox
    texts = [*figure.texts, *(axis.label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis))]
    texts += [child for axes in figure.axes for child in axes.get_children() if child.__class__.__name__ == "Text"]
    for box in (text.get_window_extent() for text in texts if text.get_text()):
        assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1
    for i, a in enumerate(boxes):
        panel = labels[i].axes.get_window_extent()
        assert panel.x0 <= a.x0 and a.x1 <= panel.x1 and panel.y0 <= a.y0 and a.y1 <= panel.y1
        for b in boxes[:i]:
            assert not a.overlaps(b)
    # every family has its name
    named = {label.get_text().split("\n")[0] for label in labels}
    assert named == {row.entry.family.title for row in rows}
    figures.plt.close(figure)


def test_curves_are_fronts_of_one_family(measure):
    rows = made_up_rows(measure, "gaussian", 1)
    slow = rows[-1]._replace(queries_per_s=1.0, recalls=(0.1, 0.1))
    fronts = measure.demo_tables.fronts([*rows, slow])
    assert {family for family in fronts} == {row.entry.family for row in rows}
    for family, front in fronts.items():
        assert slow not in front and all(row.entry.family == family for row in front)
        recalls, speeds = [row.recalls[-1] for row in front], [row.queries_per_s for row in front]
        assert recalls == sorted(recalls) and speeds == sorted(speeds, reverse=True)
    assert "step=" in measure.demo_tables.format_table(rows)


def test_the_conclusion_is_that_of_the_table(measure):
    indexes, tables = measure.demo_indexes, measure.demo_tables
    entries = indexes.Plan("gaussian", 0.1, 5000, 20, ",store=u8", [64, 128], 1).entries()
    chosen = {entry.name: entry for entry in entries}
    refined = chosen["SIK64(gaussian),BFlat,Refine(KFlat(gaussian,store=u8))"]
    rows = [
        measure.Row(indexes.exact("gaussian"), "", 80, 0.1, 100.0, (1, 1.0), None),
        measure.Row(chosen["KFlat(gaussian,store=u8)"], "", 24, 0.1, 9000.0, (1, 1.0), None),
        measure.Row(chosen["SIK64(gaussian),BFlat"], "", 8, 0.1, 5000.0, (0.4, 0.5), None),
        measure.Row(chosen["SIK128(gaussian),BFlat"], "", 16, 0.1, 4000.0, (0.5, 0.7), None),
        measure.Row(refined, "k_factor=4", 32, 0.1, 2000.0, (0.95, 0.93), None),
        measure.Row(refined, "k_factor=8", 32, 0.1, 1000.0, (1, 0.99), None)]
    assert tables.best(rows) is rows[4]
    first, second = tables.conclusion(rows).splitlines()
    assert first.startswith(f"Fastest with recall@10 >= 0.9: {refined.name} k_factor=4 with recall@10 = 0.930, 2,000")
    assert "(20 times the exact kernel scan), 32 bytes" in first
    assert second.startswith("Without the vectors all stay below that; the best: SIK128(gaussian),BFlat with")
    rows[3] = rows[3]._replace(recalls=(0.9, 0.91))
    assert "Smallest such without the vectors: SIK128(gaussian),BFlat" in tables.conclusion(rows)
    assert tables.best(rows[:3]) is rows[2]
    assert "Only the exact scan reaches recall@10 >= 0.9; next is SIK64" in tables.conclusion(rows[:3])
    assert "busy" not in tables.conclusion(rows)
    # half the exact searches took four times as long
    rows[3] = rows[3]._replace(recalls=(0.5, 0.7))
    rows[0] = rows[0]._replace(usual_queries_per_s=25.0, disturbed=True)
    rows[4] = rows[4]._replace(usual_queries_per_s=1500.0)
    said = tables.conclusion(rows)
    assert "2,000 queries/s (between 15 and 80 times the exact kernel scan)" in said
    assert said.endswith("Other programs kept the machine busy: on a quiet one all may be faster.")


def test_what_the_conclusion_compares_is_timed_in_turn(measure, monkeypatch):
    demo = measure.Demo.__new__(measure.Demo)
    rng = np.random.default_rng(1)
    demo.data = measure.datasets.Dataset("some", rng.random((500, 8), "float32"), rng.random((20, 8), "float32"))
    entries = measure.demo_indexes.Plan("chi2", None, 500, 8, ",store=f16", [64], 1).entries()
    demo.rows, demo.timers = [], {}
    exact = measure.demo_indexes.exact("chi2")
    chosen = [entry for entry in entries if entry.family.group == measure.demo_indexes.CODES][:2]
    searched = []
    for entry in (exact, *chosen):
        index = entry.make(8)
        costs = measure.build(index, demo.data.base)
        if entry is exact:
            demo.truth = measure.Truth(index, demo.data.queries)
        demo._add([demo._tried(entry, index, {}, costs)])
    for method, timer in demo.timers.items():
        timer.call = lambda method=method, call=timer.call: (searched.append(method), call())
    assert list(demo.timers) == [row.method for row in measure.demo_tables.compared(demo.rows)[:len(demo.timers)]]
    monkeypatch.setattr(measure.timing, "TURN_S", 0)  # one call a turn
    before = {method: timer.turns.copy() for method, timer in demo.timers.items()}
    demo._compare()
    n = len(demo.timers)
    assert len(searched) >= 2 * n and searched == searched[:n] * (len(searched) // n)
    for row in demo.rows:
        if row.method in before:
            turns = demo.timers[row.method].turns
            assert turns[:len(before[row.method])] == before[row.method] and row.queries_per_s == 20 / min(turns)


def test_settings_of_one_index_are_timed_in_turn(measure, monkeypatch):
    demo = measure.Demo.__new__(measure.Demo)
    rng = np.random.default_rng(1)
    demo.data = measure.datasets.Dataset("some", rng.random((500, 8), "float32"), rng.random((20, 8), "float32"))
    exact = measure.demo_indexes.exact("chi2")
    scan = exact.make(8)
    costs = measure.build(scan, demo.data.base)
    demo.rows, demo.timers, demo.truth = [], {}, measure.Truth(scan, demo.data.queries)
    demo._add([demo._tried(exact, scan, {}, costs)])
    entries = measure.demo_indexes.Plan("chi2", None, 500, 8, ",store=f16", [64], 1).entries()
    entry = next(entry for entry in entries if len(entry.efforts) * len(entry.k_factors) > 3)
    searched, timer_of = [], measure.timer_of

    def recorded(index, queries, parameters=()):
        timer = timer_of(index, queries, parameters)
        call = timer.call
        timer.call = lambda: (searched.append(dict(parameters)), call())[1]
        return timer

    monkeypatch.setattr(measure, "timer_of", recorded)
    monkeypatch.setattr(measure.timing, "TURN_S", 0)  # one call a turn
    index = entry.make(8)
    demo._sweep(entry, index, measure.build(index, demo.data.base))
    n = len(demo.rows) - 1
    settings, turns = searched[:2 * n:2], searched[2 * n:]
    assert n > 1 and settings == searched[1:2 * n:2]  # each once for its results, and once for a first time
    assert len(turns) >= 2 * n and turns == settings * (len(turns) // n)


@pytest.mark.parametrize("seconds, is_slow", [([0.5], False), ([2, 0.5], False), ([2, 2], True), ([2, 1.5], True)])
def test_a_search_that_once_had_to_wait_is_not_slow(measure, monkeypatch, seconds, is_slow):
    demo = measure.Demo.__new__(measure.Demo)
    exact, timer = SimpleNamespace(least=0.1), SimpleNamespace(least=seconds[0])
    timer.turn = lambda: setattr(timer, "least", min(seconds[:2]))
    demo.rows, demo.timers = [SimpleNamespace(method="exact")], {"exact": exact}
    monkeypatch.setattr(measure.timing, "is_slower", lambda one, other: True)
    assert demo._is_slow(timer) == is_slow


def test_the_contact_sheet_frames_misses(measure, tmp_path):
    images = random_bytes(40, 5, 4).reshape(40, 20).astype("float32")
    data = measure.datasets.Dataset("some", images[8:], images[:8], (5, 4))
    entry = measure.demo_indexes.exact("gaussian")
    exact = entry.make(20)
    exact.train(data.base)
    exact.add(data.base)
    truth = measure.Truth(exact, data.queries)
    labels = exact.search(data.queries, 10)[1]
    farthest = exact.search(data.queries, 32)[1][:, -1]
    wrong = {(0, 9), (3, 0), (7, 4)}
    for i, j in wrong:
        labels[i, j] = farthest[i]
    labels[5, 8] = -1  # nothing found
    row = measure.Row(entry, "", 80, 0.1, 100.0, (1, 1), labels)
    figures, sheet = measure.demo_figures, tmp_path / "sheet.png"
    for path in (sheet, tmp_path / "again.png"):
        figures.write_sheet(data, exact.kernel, truth, row, 1, path)
    assert sheet.read_bytes() == (tmp_path / "again.png").read_bytes()

    pixels = read_png(sheet)
    red = (pixels[:, :, 0] > 0.7) & (pixels[:, :, 1] < 0.3) & (pixels[:, :, 2] < 0.3)
    framed = set()
    size, gap, text = figures.SHEET_SIZE, 4, 14
    for i in range(8):
        for j in range(11):
            top, left = 2 * text + i * (size + gap + text), gap + j * (size + gap) + (2 * gap if j else 0)
            if red[top : top + size, left : left + size].sum() > size:
                framed.add((i, j - 1))
    assert framed == wrong | {(5, 8)}
    # a place without a picture is white inside
    top, left = 2 * text + 5 * (size + gap + text), gap + 9 * (size + gap) + 2 * gap
    assert (pixels[top + 4 : top + size - 4, left + 4 : left + size - 4] == 1).all()


# ----------------------------------------------------------- the command line

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
