# SPDX-License-Identifier: MIT
"""bench/retrieval: its parts against computations written out, and a short run of the whole."""

import csv
import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import ROOT, X
from test_demo import BASE, QUERY, random_bytes, table, write_idx, write_vecs

FOLDER = ROOT / "bench" / "retrieval"
NAMES = ("sets", "neighbours", "pareto", "report", "timing", "contenders", "experiment", "run", "libraries")


@pytest.fixture(scope="module")
def retrieval():
    """The modules of the benchmark, which find each other in their folder."""
    import importlib

    before = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in NAMES})
    sys.path[:] = before[0]
    for name in set(sys.modules) - before[1]:
        if name in NAMES:
            del sys.modules[name]


def chi2_distances(x, y):
    """Sum of (a - b)^2 / (a + b), in double precision, pair by pair."""
    a, b = x[:, None].astype(float), y[None].astype(float)
    return ((a - b) ** 2 / np.maximum(a + b, 1e-300)).sum(axis=2)


# --------------------------------------------------------------- data sets


def test_sets_are_found_and_read(retrieval, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two" / "images").mkdir(parents=True)
    base, query = random_bytes(300, 6), random_bytes(30, 6)
    for kind, dtype in (("bvecs", "u1"), ("fvecs", "<f4")):
        (tmp_path / "one" / kind).mkdir()
        write_vecs(tmp_path / "one" / kind / f"base.{kind}", base.astype(dtype))
        write_vecs(tmp_path / "one" / kind / f"query.{kind}", query.astype(dtype))
    np.save(tmp_path / "mine.npy", base)
    images, more = random_bytes(40, 10, 10), random_bytes(8, 10, 10)
    write_idx(tmp_path / "two" / "images" / BASE, images)
    write_idx(tmp_path / "two" / "images" / QUERY, more)
    folders = [tmp_path / "one", tmp_path / "two"]
    assert retrieval.sets.names(folders) == ["bvecs", "fvecs", "images", "images_edges"]
    for name in ("bvecs", "fvecs"):
        data = retrieval.sets.load(name, folders, 1000)
        np.testing.assert_array_equal(data.base, base)
        np.testing.assert_array_equal(data.queries, query)
    assert retrieval.sets.load("images", folders, 1000).d == 100
    edges = retrieval.sets.load("images_edges", folders, 1000)
    assert edges.base.shape == (40, 150) and edges.queries.shape == (8, 150)
    assert retrieval.sets.load(str(tmp_path / "mine.npy"), [], 20).queries.shape == (20, 6)
    with pytest.raises(retrieval.sets.datasets.DatasetError, match="no set or file 'none'.*images_edges"):
        retrieval.sets.load("none", folders, 10)


def test_edge_histograms(retrieval):
    """Against a loop over pixels."""
    images = random_bytes(3, 12 * 12).astype("float32")
    found = retrieval.sets.edge_histograms(images)
    expected = np.zeros((3, 150))
    for i, image in enumerate(images.reshape(3, 12, 12)):
        for r, c in itertools.product(range(12), range(12)):
            gradient = []
            for before, after in (((max(r - 1, 0), c), (min(r + 1, 11), c)), ((r, max(c - 1, 0)), (r, min(c + 1, 11)))):
                steps = after[0] - before[0] + after[1] - before[1]
                gradient.append((image[after] - image[before]) / steps)
            degrees = np.degrees(np.arctan2(*gradient)) % 180
            cell = (r * 5 // 12) * 5 + c * 5 // 12
            expected[i, cell * 6 + int((degrees + 1e-7) // 30) % 6] += np.hypot(*gradient)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    # an edge from left to right: all gradients are horizontal
    ramp = np.tile(np.arange(20, dtype="float32"), 20)[None]
    assert set(np.flatnonzero(retrieval.sets.edge_histograms(ramp)[0])) == set(range(0, 150, 6))


def test_patches_of_images(retrieval, tmp_path):
    """Every patch is a window of its image, an image gives different ones, and dark ones are left out."""
    sets = retrieval.sets
    # the value of a pixel tells its place and its image
    images = np.arange(1, 1 + 5 * 64, dtype="float32").reshape(5, 64)
    every = {
        images[i].reshape(8, 8)[r : r + 4, c : c + 4].tobytes(): i
        for i, r, c in itertools.product(range(5), range(5), range(5))
    }
    found = sets.patches(images, 7)
    assert found.shape == (35, 16)
    origin = [every[patch.tobytes()] for patch in found]  # fails if one is no window
    np.testing.assert_array_equal(np.bincount(origin), 5 * [7])
    assert len(np.unique(found, axis=0)) == 35
    assert origin != sorted(origin)
    np.testing.assert_array_equal(found, sets.patches(images, 7))
    assert len(sets.patches(images, 1000)) == len(every)
    # one pixel of 16 is less than a tenth, two are more
    dark = np.zeros((1, 64), "float32")
    dark[0, 27] = 1  # row 3, column 3: in the 16 windows that begin in rows and columns 0 to 3
    assert sets.patches(dark, 25).shape == (0, 16)
    dark[0, 28] = 1  # windows that begin in columns 1 to 3 contain both
    assert sets.patches(dark, 25).shape == (12, 16)

    write_idx(tmp_path / BASE, random_bytes(40, 10, 10))
    write_idx(tmp_path / QUERY, random_bytes(8, 10, 10))
    name = f"{tmp_path.name}_patches"
    assert sets.load(name, [tmp_path], 1000).base.shape == (800, 25)
    few = sets.load(name, [tmp_path], 9, limit=50)
    assert few.base.shape == (50, 25) and few.queries.shape == (9, 25)


def test_enlarged_sets_keep_their_vectors_and_their_kind(retrieval):
    datasets = retrieval.sets.datasets
    counts = random_bytes(50, 8).astype("float32")
    data = datasets.Dataset("some", counts, counts[:5])
    large, again = (retrieval.sets.enlarged(data, 10) for _ in range(2))
    assert large.name == "some_x10" and large.base.shape == (500, 8)
    np.testing.assert_array_equal(large.base, again.base)
    np.testing.assert_array_equal(large.base[:50], counts)
    assert (large.base == np.rint(large.base)).all() and large.base.max() == counts.max()
    assert len(np.unique(large.base, axis=0)) > 400
    real = retrieval.sets.enlarged(datasets.Dataset("some", X[:50], X[:5]), 3)
    assert (real.base >= 0).all() and real.base.shape == (150, 64)


# --------------------------------------------------- neighbours and recall


def test_exact_neighbours_and_recall(retrieval, tmp_path):
    base, queries = X[:600], X[600:640]
    path = retrieval.neighbours.exact("chi2", base, queries, 100, tmp_path)
    written = path.stat().st_mtime_ns
    assert retrieval.neighbours.exact("chi2", base, queries, 100, tmp_path) == path
    assert path.stat().st_mtime_ns == written  # it was in the cache
    assert retrieval.neighbours.exact("js", base, queries, 100, tmp_path) != path
    assert retrieval.neighbours.exact("chi2", base[:-1], queries, 100, tmp_path) != path
    truth = retrieval.neighbours.Truth.load(path)

    distances = chi2_distances(queries, base)
    order = np.argsort(distances, axis=1, kind="stable")
    rng = np.random.default_rng(1)
    for r in (10, 100):
        assert truth.recall(order[:, :r], r) == 1
        # some of the nearest replaced by others, or by nothing
        found = order[:, :r].copy()
        swapped = rng.random(found.shape) < 0.3
        found[swapped] = order[:, 300 : 300 + r][swapped]
        found[0, :3] = -1
        nearest = np.sort(distances, axis=1)[:, r - 1]
        shares = [
            np.mean([label >= 0 and distances[i, label] <= nearest[i] + 1e-7 for label in row])
            for i, row in enumerate(found)
        ]
        assert truth.recall(found, r) == pytest.approx(np.mean(shares), abs=1e-12)
        # candidates: the order does not matter, nor what is found beyond
        candidates = rng.permuted(np.hstack([found, order[:, 400:450]]), axis=1)
        assert truth.recall(candidates, r) == pytest.approx(np.mean(shares), abs=1e-12)


def test_any_of_equally_near_vectors_counts(retrieval):
    distances = np.array([[0, 1, 1, 1, 2.0]])
    truth = retrieval.neighbours.Truth(distances, np.arange(5)[None])
    assert truth.recall(np.array([[0, 3]]), 2) == 1
    assert truth.recall(np.array([[0, 1, 2, 3]]), 2) == 1  # not more than all
    assert truth.recall(np.array([[3, 4]]), 2) == 0.5
    # labels of one query are none of another's
    both = retrieval.neighbours.Truth(np.zeros((2, 1)), np.array([[0], [1]]))
    assert both.recall(np.array([[1], [0]]), 1) == 0


# ------------------------------------------------------- fronts and reports


def test_pareto_fronts(retrieval):
    points = [(0.9, 100), (0.95, 80), (0.94, 70), (0.95, 60), (0.99, 20), (0.8, 100), (1.0, 20), (0.5, 200)]
    recall, speed = (lambda p: p[0]), (lambda p: p[1])
    assert retrieval.pareto.front(points, recall, speed) == [(0.5, 200), (0.9, 100), (0.95, 80), (1.0, 20)]
    assert retrieval.pareto.front([], recall, speed) == []
    assert retrieval.pareto.fastest(points, recall, speed, 0.95) == (0.95, 80)
    assert retrieval.pareto.fastest(points, recall, speed, 0.96) in [(0.99, 20), (1.0, 20)]
    assert retrieval.pareto.fastest(points[:4], recall, speed, 0.99) is None


def row(side, family, recall, batch, single):
    return {
        "set": "s", "kernel": "chi2", "n": 9, "d": 2, "side": side, "library": "l", "family": family,
        "contender": family + "1", "setting": f"nprobe={recall}", "k": 10, "threads": 1, "recall_at_10": recall,
        "recall_at_100": "", "batch_queries_per_s": batch, "single_queries_per_s": single, "build_s": 1.0,
        "bytes_per_vector": 8.0}


def test_tables_compare_the_fastest_of_both_sides(retrieval):
    rows = [row("ours", "A", 0.96, 1000, 400), row("ours", "A", 0.995, 500, 300), row("peer", "B", 0.97, 400, 800),
            row("peer", "C", 0.95, 250, 900), row("peer", "C", 0.9, 9000, 9000)]
    lines = retrieval.report.ratio_table(rows, [0.95, 0.99]).splitlines()[2:-1]
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
    assert [line[4:] for line in cells] == [
        ["0.95", "batch", "1,000, A1", "400, B1", "2.50"],
        ["0.95", "single", "400, A1", "900, C1", "0.44"],
        ["0.99", "batch", "500, A1", "none"],
        ["0.99", "single", "300, A1", "none"]]
    text = retrieval.report.contender_table(rows, [0.95, 0.99], "family")
    assert "| peer | C1 | 250 | 900 |  |  | nprobe=0.95 |  | 1.0 | 8 |" in text


def test_speeds_are_given_as_shares_of_our_fastest_search(retrieval):
    rows = [row("ours", "A", 0.96, 1000, 400), row("ours", "D", 0.96, 500, 800), row("peer", "B", 0.97, 400, 600),
            row("peer", "C", 0.9, 9000, 9000), row("peer", "E", 0.995, 100, 100)]
    lines = retrieval.report.share_table(rows, [0.95, 0.99]).splitlines()
    assert lines[0] == "|  | family | s, chi2, 0.95 | s, chi2, 0.99 |"
    # nobody of ours reaches 0.99, and C not even 0.95
    assert lines[2:] == [
        "| ours | A | 1.00 (0.50) |  |", "| ours | D | 0.50 (1.00) |  |", "| peer | B | 0.40 (0.75) |  |",
        "| peer | E | 0.10 (0.12) |  |", ""]


def test_the_fastest_settings_beyond_the_targets_are_timed_again(retrieval):
    rows = [row("ours", "A", 0.951, 1000, 400), row("ours", "A", 0.955, 500, 600), row("ours", "A", 0.97, 700, 500),
            row("ours", "A", 0.99, 50, 50), row("peer", "B", 0.94, 900, 900)]
    # 0.951 may be less with more queries; at 0.99 there is nothing beyond the target
    assert [r["recall_at_10"] for r in retrieval.report.finalists(rows, [0.95, 0.99])] == [0.97, 0.955, 0.99]


def test_tables_are_put_between_marks(retrieval, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{retrieval.report.BEGIN}old\n{retrieval.report.END}after\n")
    for _ in range(2):
        retrieval.report.put_between_marks(page, "new\n")
        assert page.read_text() == f"before\n{retrieval.report.BEGIN}\nnew\n{retrieval.report.END}after\n"
    page.write_text("nothing")
    with pytest.raises(ValueError, match="expected one line"):
        retrieval.report.put_between_marks(page, "new\n")


@pytest.mark.parametrize("arguments, said", [
    (["--kernel", "nosuch"], "unknown kernel 'nosuch'"),
    (["--only", "("], "--only"),
    (["--limit", "-5"], "positive"),
    (["--recall", "2"], "up to 1"),
    (["--k", "10,x"], "list of numbers"),
    (["--turns", "-1"], "--turns and --busy take no negative numbers"),
    (["--busy", "-1"], "--turns and --busy take no negative numbers"),
    (["--turn-queries", "0"], "--turn-queries, --limit and --threads take positive numbers"),
    (["--markdown", "/nowhere/page.md"], "cannot read /nowhere/page.md"),
])
def test_arguments_are_checked_before_anything_is_measured(retrieval, capsys, arguments, said):
    with pytest.raises(SystemExit):
        retrieval.run.parse_args(arguments)
    assert said in capsys.readouterr().err


def test_the_message_of_a_worker_is_its_last_exception(retrieval):
    lines = ["Traceback (most recent call last):", '  File "worker.py", line 1, in build', "RuntimeError: it cannot:",
             "  more of it"]
    assert retrieval.experiment.last_exception(lines) == "RuntimeError: it cannot: more of it"
    assert retrieval.experiment.last_exception(["Killed"]) == "Killed"


def test_the_page_has_the_marks(retrieval):
    text = (ROOT / "docs" / "retrieval.md").read_text()
    assert text.count(retrieval.report.BEGIN) == text.count(retrieval.report.END) == 1


class Shelf:
    """A search that finds one more of the true neighbours for each unit of effort times candidates."""

    def __init__(self):
        self.asked = []

    def configure(self, effort, factor):
        self.effort, self.factor = effort, factor
        self.asked.append((effort, factor))

    def search(self, queries, k):
        found = np.full((len(queries), k), -1)
        right = min(10, self.effort * self.factor, k)
        found[:, :right] = np.arange(right)
        return found


def test_the_grid_is_left_where_recall_is_enough(retrieval, monkeypatch):
    monkeypatch.setattr(retrieval.timing, "CLEARLY_SLOWER", float("inf"))  # times do not matter here
    truth = retrieval.neighbours.Truth(np.tile(np.arange(10.0), (3, 1)), np.tile(np.arange(10), (3, 1)))
    shelf, points = Shelf(), []
    contender = {"efforts": [1, 2, 4, 8, 16], "factors": [2, 4, 8], "ranks_itself": True, "effort_is_candidates": False}
    retrieval.timing.sweep(
        shelf, contender, np.zeros((3, 1)), truth, 10, float("inf"),
        lambda labels, point: points.append((point["effort"], point["factor"])), 1)
    # at effort 2 eight candidates are enough; one effort more is tried, then none
    assert list(dict.fromkeys(shelf.asked)) == [(1, 2), (1, 4), (1, 8), (2, 2), (2, 4), (2, 8), (4, 2), (4, 4)]
    # found by too few to be worth timing: (1, 2), (1, 4) and (2, 2)
    assert points == [(1, 8), (2, 4), (2, 8), (4, 2), (4, 4)]


def test_in_a_turn_each_query_is_searched_once_in_a_batch_and_once_alone(retrieval):
    class Counter(Shelf):
        def search(self, queries, k):
            self.asked.append((len(queries), k))
            return super().search(queries, k)

    shelf, visited = Counter(), []
    retrieval.timing.revisit(
        shelf, {"ranks_itself": False}, np.zeros((300, 1)), 10, [(4, 2)],
        lambda labels, point: visited.append((labels, point)), 1)
    assert shelf.asked == [(4, 2), (300, 20), *[(1, 20)] * 300]  # configured, then searched
    (labels, point), = visited
    np.testing.assert_array_equal(labels[:, :8], np.tile(np.arange(8), (300, 1)))
    assert (point["k"], point["effort"], point["factor"]) == (10, 4, 2) and min(point["batch_s"], point["single_s"]) > 0


@pytest.mark.parametrize("kernel", ["chi2", "intersection", "js", "gaussian(gamma=2)", "linear"])
def test_strings_of_ours_are_understood(retrieval, kernel):
    import faiss
    import faiss_ext  # noqa: F401

    n, d = 2000, 64
    map_dims = 3 * d if retrieval.contenders.explicit_map(kernel) else d
    ours = retrieval.contenders.ours(kernel, n, map_dims, "u8")
    assert len({contender["name"] for contender in ours}) == len(ours)
    for contender in ours:
        assert faiss.index_factory(d, contender["string"]).d == d
        assert contender["efforts"] == sorted(contender["efforts"], key=lambda v: v or 0)


def test_matrices_of_our_indexes_are_not_compared_in_each_search(retrieval, tmp_path):
    import faiss

    contender = next(c for c in retrieval.contenders.ours("chi2", 400, 192, "u8") if "KIVF" in c["name"])
    built, read = (retrieval.libraries.FaissExt(contender, 1) for _ in range(2))
    built.build(X[:400])
    built.save(str(tmp_path / "index"))
    read.load(str(tmp_path / "index"), X[:400])
    read.configure(2, 3)
    transformed = faiss.downcast_index(read.index.base_index)
    assert not transformed.verify_chain
    assert read.index.k_factor == 3 and faiss.downcast_index(transformed.index).nprobe == 2


# ------------------------------------------------------------ the whole of it


def test_of_several_rounds_the_fastest_counts(retrieval):
    def row(setting, batch, single):
        return {"contender": "a", "setting": setting, "k": 10, "threads": 1, "recall_at_10": 0.9,
                "batch_queries_per_s": batch, "search_batch_us": 1e6 / batch,
                "single_queries_per_s": single, "search_single_us": 1e6 / single}

    points = {}
    for rows in ([row("x", 10, 4)], [row("x", 8, 5), row("y", 7, 3)], [row("y", 6, 2)]):
        retrieval.report.keep_fastest(points, rows)
    assert list(points.values()) == [row("x", 10, 5), row("y", 7, 3)]


def test_a_contender_that_fails_does_not_stop_the_others(retrieval, tmp_path):
    class Short(retrieval.experiment.Experiment):
        def __init__(self):
            self.folder, self.built, self.notes = tmp_path, {}, []
            self.data, self.kernel = type("Data", (), {"name": "a set"}), "chi2"

        def _work(self, task, contender, threads, base, index):
            if contender["name"] == "bad":
                raise retrieval.experiment.WorkerError("out of memory")
            Path(index).write_bytes(bytes(10))
            return {"build_s": 1}

        def _file(self, contender, what):
            return what

    short = Short()
    built = [short.build({"name": name, "ranks_itself": True}) for name in ("a", "bad", "b", "bad", "c")]
    assert built == [True, False, True, False, True]
    assert short.notes == ["a set, chi2, bad: failed: out of memory."]
    assert {b.size for b in short.built.values()} == {10} and len({b.index for b in short.built.values()}) == 3


def test_a_quick_run(environment, tmp_path):
    import subprocess

    page = tmp_path / "page.md"
    page.write_text("<!-- retrieval: begin -->\n<!-- retrieval: end -->\n")
    command = [
        sys.executable, FOLDER / "run.py", "--quick", "--out", "out", "--only", "AHK256|KIVF.*M=64", "--markdown", page,
        "--turns", "1", "--busy", "1"]
    result = subprocess.run(
        list(map(str, command)), cwd=tmp_path, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert result.returncode == 0, result.stderr
    with open(tmp_path / "out" / "points.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    exact = [row for row in rows if row["contender"] == "KFlat(chi2)"]
    assert {(row["k"], float(row[f"recall_at_{row['k']}"])) for row in exact} == {("10", 1), ("100", 1)}
    assert float(exact[0]["bytes_per_vector"]) == pytest.approx(256, abs=1)
    assert {row["family"] for row in rows} == {"KFlat", "AHK,BFlat,Refine", "HKM,PCAR,KIVF,Refine"}
    assert max(float(row["recall_at_10"]) for row in rows if "KIVF" in row["family"]) > 0.95
    for row in rows:
        times = [sum(float(row[f"{part}_{way}_us"]) for part in ("search", "map", "rerank")) for way in ("batch", "single")]
        speeds = [float(row[f"{way}_queries_per_s"]) for way in ("batch", "single")]
        np.testing.assert_allclose(speeds, 1e6 / np.array(times), rtol=1e-4)
    for k in (10, 100):
        plot = (tmp_path / "out" / f"chi2_k{k}_threads1.png").read_bytes()
        assert plot[:8] == b"\x89PNG\r\n\x1a\n" and len(plot) > 10_000
    tables = (tmp_path / "out" / "tables.md").read_text()
    for text in (tables, page.read_text()):
        assert "KFlat(chi2)" in text and "No peers" in text and "| recall@10 |" in text
