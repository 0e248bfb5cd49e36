# SPDX-License-Identifier: MIT
"""The examples in scripts/ do what they say."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import faiss_ext
import numpy as np
import pytest
from helpers import script
from scipy.stats import binom


@pytest.fixture(scope="module")
def duplicates():
    return script("example_duplicates")


def jaccard(x):
    return np.minimum(x[:, None], x[None]).sum(axis=2) / np.maximum(x[:, None], x[None]).sum(axis=2)


def test_functions_of_a_folder(duplicates, tmp_path, capsys, monkeypatch):
    body = "\n".join(f"    x{i} = y{i} + {i}" for i in range(20))
    (tmp_path / "a.py").write_text(f"def f():\n{body}\n\ndef short():\n    pass\n")
    (tmp_path / "b.py").write_text(f"class C:\n    def g():\n{body.replace('    ', '        ')}\n        z = 1\n")
    texts = duplicates.functions(tmp_path)
    assert [name for name, _ in texts] == ["a.f, line 1", "b.g, line 2"]
    monkeypatch.setattr(duplicates, "functions", lambda: texts)
    duplicates.main()
    out = capsys.readouterr().out
    assert "2 functions, 1 pairs: 1 are alike" in out and "a.f, line 1 -- b.g, line 2" in out


@pytest.fixture(scope="module")
def fingerprints():
    return script("example_fingerprints")


def test_fingerprints_are_searched(fingerprints, tmp_path, capsys):
    x = fingerprints.made_up(n=3000, bits=512, series=60)
    assert x.shape == (3000, 64) and x.dtype == np.uint8
    queries, base = x[:20], x[100:]
    bits, of = np.unpackbits(base, axis=1).astype(int), np.unpackbits(queries, axis=1).astype(int)
    shared = of @ bits.T
    expected = shared / (of.sum(axis=1)[:, None] + bits.sum(axis=1) - shared)
    nearest = np.argsort(-expected, axis=1, kind="stable")[:, :7]
    for string, parameters in fingerprints.INDEXES.items():
        values, ids, _ = fingerprints.searched(fingerprints.built(string, parameters, base), queries, 7)
        np.testing.assert_allclose(values, np.take_along_axis(expected, ids, axis=1), atol=1e-8)
        if string == fingerprints.EXACT:
            np.testing.assert_array_equal(ids, nearest)
        assert np.mean([len(set(a) & set(b)) / 7 for a, b in zip(ids, nearest)]) > 0.8

    np.save(tmp_path / "x.npy", x)
    fingerprints.main([str(tmp_path / "x.npy")])
    out = capsys.readouterr().out
    assert "2,900 fingerprints of 64 bytes" in out and out.count("of the exact ones found") == 3
    assert f"{expected[0, nearest[0, 0]]:.3f} {nearest[0, 0]}\n" in out
    faiss_ext.write_fps(tmp_path / "x.fps", x, [f"molecule {i}" for i in range(len(x))])
    fingerprints.main([str(tmp_path / "x.fps")])
    assert f"{expected[0, nearest[0, 0]]:.3f} molecule {100 + nearest[0, 0]}\n" in capsys.readouterr().out


@pytest.mark.parametrize("x, message", [
    (None, "cannot be read: No such file"),
    (np.zeros((109, 8), "uint8"), "109 fingerprints, expected at least 110"),
    (np.zeros((200, 8), "float32"), "array of uint8 of two dimensions, got an array of float32"),
    (np.zeros(200, "uint8"), "array of uint8 of two dimensions, got an array of uint8 of shape (200,)")])
def test_files_without_fingerprints_are_refused(fingerprints, tmp_path, capsys, x, message):
    if x is not None:
        np.save(tmp_path / "x.npy", x)
    with pytest.raises(SystemExit) as error:
        fingerprints.main([str(tmp_path / "x.npy")])
    assert error.value.code == 2 and message in capsys.readouterr().err


def test_fingerprints_has_help(fingerprints, capsys):
    with pytest.raises(SystemExit) as error:
        fingerprints.main(["--help"])
    assert error.value.code == 0 and "FILE" in capsys.readouterr().out


@pytest.fixture(scope="module")
def texts():
    return script("example_texts")


def js(x, y):
    """The Jensen-Shannon kernel, by its formula."""
    x, y = x[:, None].astype(float), y[None].astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = [np.where(z > 0, z / 2 * np.log2((x + y) / z), 0) for z in (x, y)]
    return sum(parts).sum(axis=2)


def test_texts_are_read_and_counted(texts, tmp_path):
    (tmp_path / "a.py").write_text(
        '"""One two three two."""\nclass C:\n    """Short."""\n    def f(self):\n        """A b, c d!"""\n'
        'def g():\n    """One two\n\n    three two."""\n'
    )
    found = texts.python_texts(tmp_path, {"IF": "e f g h\n\n  i\n\nj k l 1 m"}, least_words=4)
    assert found == [
        ("a", ("one", "two", "three", "two")),  # and not a.g, which is equal
        ("a.C.f", ("a", "b", "c", "d")),
        ("help('IF'), 1", ("e", "f", "g", "h")),
        ("help('IF'), 3", ("j", "k", "l", "m")),
    ]
    x = texts.word_counts([words for _, words in found[:2]], 1024)
    assert sorted(x[0][x[0] > 0]) == [1, 1, 2] and sorted(x[1][x[1] > 0]) == [1, 1, 1, 1]
    x = np.array([[2, 0, 1], [2, 1, 1], [4, 0, 0]], dtype="float32")
    np.testing.assert_allclose(texts.rarity(x), np.log([1, 3, 1.5]), rtol=1e-6)
    np.testing.assert_allclose(texts.histograms(x, [1, 1, 2]), [[0.5, 0, 0.5], [0.4, 0.2, 0.4], [1, 0, 0]], rtol=1e-6)


def test_copies_have_the_words_replaced(texts):
    rng = np.random.default_rng(1)
    words, others = ["a"] * 5000, ["b", "c"]
    copy = texts.rewritten(words, others, 0.7, rng)
    replaced = sum(word in others for word in copy)
    assert len(copy) == 5000 and 1e-9 < binom.cdf(replaced, 5000, 0.7) < 1 - 1e-9
    assert texts.rewritten(words, others, 0, rng) == words


def test_near_duplicate_texts_are_found(texts, capsys, monkeypatch):
    found = texts.python_texts()
    words = [words for _, words in found][:400]
    counts = texts.word_counts(words, 1024)
    x = texts.histograms(counts, texts.rarity(counts))
    values = js(x[:50], x)
    D, I = texts.built("KFlat(js)", x).search(x[:50], 5)
    np.testing.assert_allclose(1 - D / 2, -np.sort(-values, axis=1)[:, :5], atol=1e-5)
    np.testing.assert_allclose(1 - D / 2, np.take_along_axis(values, I, axis=1), atol=1e-5)

    monkeypatch.setattr(texts, "python_texts", lambda: found)
    texts.main()
    out = capsys.readouterr().out
    assert "textwrap.fill: textwrap.wrap" in out
    rows = dict(re.findall(r"^(Jensen-Shannon|cosine|L2) +(.*)$", out, re.MULTILINE))
    kernel, cosine, l2 = (np.array(rows[name].split(), dtype=float) for name in ("Jensen-Shannon", "cosine", "L2"))
    assert (kernel > cosine).all() and (cosine > l2).all() and kernel[1] > max(kernel[0], 0.75)
    searches = re.findall(r"^  (\S+)  (\S+)  (\S+\(js\)\)?)(, .*)?$", out, re.MULTILINE)
    assert [string for _, _, string, _ in searches] == ["KFlat(js)", *texts.INDEXES]
    assert float(searches[0][0]) == kernel[1] and float(searches[0][1]) == 1
    for first, recall, _, _ in searches[1:]:
        assert kernel[1] - 0.1 < float(first) and 0.75 < float(recall)


@pytest.fixture(scope="module")
def graphs():
    return script("example_graphs")


def subtree_kernel(a, b, rounds):
    """The subtree kernel by its definition, with the labels themselves: nested tuples in place of checksums."""
    counts = []
    for graph in (a, b):
        near = [[] for _ in graph.labels]
        for i, j in graph.edges:
            near[i].append(j)
            near[j].append(i)
        labels, count = list(graph.labels), Counter(graph.labels)
        for _ in range(rounds):
            labels = [(label, tuple(sorted((labels[j] for j in near[i]), key=repr))) for i, label in enumerate(labels)]
            count.update(labels)
        counts.append(count)
    return sum(counts[0][label] * counts[1][label] for label in counts[0])


def test_labels_of_known_graphs(graphs):
    # a path: its ends, the ends' neighbours and the middle are told apart one by one
    path = graphs.Graph(["a"] * 5, [(0, 1), (1, 2), (2, 3), (3, 4)])
    kinds = [sorted(Counter(labels).values()) for labels in graphs.wl_labels(path, 3)]
    assert kinds == [[5], [2, 3], [1, 2, 2], [1, 2, 2]]
    # Weisfeiler and Lehman cannot tell a ring of six from two of three; from a path of six they can
    ring = graphs.Graph(["a"] * 6, [(i, (i + 1) % 6) for i in range(6)])
    rings = graphs.Graph(["a"] * 6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
    line = graphs.Graph(["a"] * 6, ring.edges[:5])
    x = graphs.histograms([ring, rings, line], rounds=3)
    np.testing.assert_array_equal(x[0], x[1])
    assert (x.sum(axis=1) == 24).all() and (x[0] != x[2]).any()
    # with labels: a chain of C, C, O
    chain = graphs.Graph(["C", "C", "O"], [(0, 1), (1, 2)])
    assert sorted(graphs.histogram(chain, 0)[graphs.histogram(chain, 0) > 0]) == [1, 2]
    assert sorted(graphs.histogram(chain, 1)[graphs.histogram(chain, 1) > 0]) == [1, 1, 1, 1, 2]


def test_graph_kernels_are_those_of_the_papers(graphs):
    rng = np.random.default_rng(1)
    made = []
    for _ in range(12):
        n = int(rng.integers(4, 12))
        edges = [(int(rng.integers(i)), i) for i in range(1, n)] + [tuple(map(int, rng.choice(n, 2, replace=False)))]
        made.append(graphs.Graph(list(rng.choice(["a", "b"], n)), edges))
    x = np.array([graphs.histogram(graph, 2, dimension=1 << 20) for graph in made])  # so many that no labels collide
    expected = [[subtree_kernel(a, b, 2) for b in made] for a in made]
    np.testing.assert_array_equal(x @ x.T, expected)
    # the nodes' order does not matter
    order = rng.permutation(len(made[0].labels))
    place = np.argsort(order)
    turned = graphs.Graph([made[0].labels[i] for i in order], [(place[a], place[b]) for a, b in made[0].edges])
    np.testing.assert_array_equal(graphs.histogram(turned), graphs.histogram(made[0]))
    # nearest others, by the generalised Jaccard kernel
    x = graphs.histograms(made)
    values = jaccard(x)
    np.fill_diagonal(values, -1)
    found, ids = graphs.neighbours("KFlat(jaccard)", x, 3)
    np.testing.assert_allclose(found, -np.sort(-values, axis=1)[:, :3], atol=1e-6)
    np.testing.assert_allclose(found, np.take_along_axis(values, ids, axis=1), atol=1e-6)


def test_equal_graphs_are_neighbours_of_one_another(graphs):
    x = np.repeat(graphs.histograms([graphs.Graph(["a"], []), graphs.Graph(["b"], [])]), 9, axis=0)
    values, ids = graphs.neighbours("KFlat(jaccard)", x, 4)
    assert ids.shape == (18, 4) and (values == 1).all()
    for i, row in enumerate(ids):
        assert i not in row and len(set(row)) == 4 and set(row // 9) == {i // 9}
    assert graphs.accuracy(ids, np.arange(18) // 9) == 1
    # of equally frequent ones the nearest counts: "a", wrong, then "b", right
    assert graphs.accuracy(np.array([[2, 1], [3, 2]]), np.array(["b", "b", "a", "b"])) == 0.5


def test_functions_are_graphs(graphs, tmp_path, capsys, monkeypatch):
    (tmp_path / "a.py").write_text("def f(x):\n    return x + x\n\nclass C:\n    def g(self):\n        pass\n")
    (tmp_path / "b.py").write_text("def h(other_name):\n    return other_name + other_name\n")
    found = graphs.functions(tmp_path, least_nodes=1)
    assert [name for _, name, _ in found] == ["a.f", "a.C.g", "b.h"]
    labels, edges = found[0][2]
    assert labels == ["FunctionDef", "arguments", "arg", "Return", "BinOp", "Name", "Add", "Name"]
    tree = [(0, 1), (1, 2), (0, 3), (3, 4), (4, 5), (4, 6), (4, 7)]
    assert sorted(edges) == sorted([*tree, (2, 5), (5, 7)])  # x, its first use and its second
    assert found[2][2] == found[0][2]  # names are not known

    real = [f for f in graphs.functions() if f[0] in ("bz2", "lzma", "heapq", "shutil", "statistics", "textwrap", "ast")]
    monkeypatch.setattr(graphs, "functions", lambda: real)
    graphs.main()
    out = capsys.readouterr().out
    assert "bz2.open, lzma.open" in out
    rows = dict(re.findall(r"^(\S+|jaccard, by codes) +(0\.\d+ .*)$", out, re.MULTILINE))
    by_kernel = {name: np.array(row.split(), dtype=float) for name, row in rows.items()}
    assert by_kernel.keys() == {*graphs.KERNELS, "jaccard, by codes"}
    chance = float(re.search(r"right by always saying \w+: (\S+)", out)[1])
    # neighbours and their kinds tell more than kinds alone, and both more than chance
    assert chance < by_kernel["jaccard"][0] < by_kernel["jaccard"][2]
    assert by_kernel["jaccard, by codes"][2] > chance
    assert float(re.search(r"finds (\S+) of the", out)[1]) > 0.9


def test_neighbours_of_a_data_frame(capsys):
    pd = pytest.importorskip("pandas")
    pandas = script("example_pandas")
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.poisson(3, (30, 8)), index=[f"r{i}" for i in range(30)], columns=list("abcdefgh"))
    table = pandas.neighbours(frame, 4)
    x = frame.to_numpy() / frame.to_numpy().sum(axis=1, keepdims=True)
    a, b = x[:, None], x[None]
    squared = 2 - 2 * np.where(a + b > 0, 2 * a * b / np.where(a + b > 0, a + b, 1), 0).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    assert list(table.columns) == ["row", "neighbour", "distance"] and list(table["row"]) == list(frame.index.repeat(4))
    np.testing.assert_allclose(table["distance"].to_numpy().reshape(30, 4), np.sqrt(np.sort(squared, axis=1)[:, :4]), atol=1e-4)
    pairs = frame.index.get_indexer(table["row"]), frame.index.get_indexer(table["neighbour"])
    np.testing.assert_allclose(table["distance"], np.sqrt(squared[pairs]), atol=1e-4)
    pandas.main()
    assert re.search(r"posixpath +ntpath", capsys.readouterr().out)


def test_modules_are_counted(tmp_path):
    pytest.importorskip("pandas")
    pandas = script("example_pandas")
    (tmp_path / "a.py").write_text("x = 1\ny = x\n")
    (tmp_path / "b.py").write_text("def f(): pass\n")
    counts = pandas.python_modules(tmp_path, least_nodes=1)
    assert dict(counts.loc["a"]) == {"Module": 1, "Assign": 2, "Name": 3, "Constant": 1, "Store": 2, "Load": 1} | {
        "FunctionDef": 0, "arguments": 0, "Pass": 0
    }
    assert list(pandas.python_modules(tmp_path, least_nodes=5).index) == ["a"]


def test_a_cluster_in_one_command(tmp_path):
    pytest.importorskip("distributed")
    command = [sys.executable, Path(__file__).resolve().parents[2] / "scripts" / "example_cluster.py"]
    out = subprocess.run([*command, "--folder", tmp_path / "index"], capture_output=True, text=True, timeout=300, check=True).stdout
    assert re.search(r"^ShardedIndex\(.*, shards=4, d=64, ntotal=31940\)\nbuilt in .* vectors a second\n200 queries", out)
    assert "opened again in one process: the same results" in out
    assert (tmp_path / "index" / "manifest.json").exists()
    np.save(tmp_path / "x.npy", np.random.default_rng(1).gamma(1, 1, (50, 8)).astype("float32"))
    out = subprocess.run([*command, tmp_path / "x.npy", "--string", "KFlat(chi2)", "--workers", "1"], capture_output=True,
                         text=True, timeout=300, check=True).stdout
    assert re.search(r"50 queries in .* of the first one: \[0, ", out)
    failed = subprocess.run([*command, tmp_path / "gone.npy"], capture_output=True, text=True, timeout=300)
    assert failed.returncode == 1 and "Traceback" not in failed.stderr and "gone.npy: cannot be read" in failed.stderr
