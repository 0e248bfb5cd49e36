# SPDX-License-Identifier: MIT
"""The examples in scripts/ do what they say."""

import re

import numpy as np
import pytest
from helpers import script
from scipy.stats import binom


@pytest.fixture(scope="module")
def duplicates():
    return script("example_duplicates")


def jaccard(x):
    return np.minimum(x[:, None], x[None]).sum(axis=2) / np.maximum(x[:, None], x[None]).sum(axis=2)


def test_all_near_duplicates_are_found(duplicates):
    rng = np.random.default_rng(1)
    x = np.repeat(rng.poisson(0.5, (40, 60)), 5, axis=0) + (rng.random((200, 60)) < 0.05)
    x = x[x.sum(axis=1) > 0].astype("float32")
    values = jaccard(x)
    true = {(i, j) for i, j in zip(*np.nonzero(np.triu(values >= 0.8, 1)))}
    assert len(true) > 50
    # so small a chance that none may be missing
    found, compared = duplicates.near_duplicates(x, 0.8, missed=1e-12)
    assert {(i, j) for i, j, _ in found} == true
    assert len(true) <= compared < len(x) ** 2 / 8
    for i, j, k in found:
        assert k == pytest.approx(values[i, j], abs=1e-5)
    # with one near to 1, most are
    fewer, _ = duplicates.near_duplicates(x, 0.8, missed=0.9)
    assert {(i, j) for i, j, _ in fewer} < true


def test_the_radius_is_a_quantile(duplicates):
    for bits, value, missed in ((64, 0.8, 1e-3), (512, 0.5, 0.01), (512, 0.9, 1e-6)):
        radius = duplicates.radius_for(bits, value, missed)
        tail = binom.sf([radius - 1, radius - 2], bits, (1 - value) / 2)
        assert tail[0] <= missed * (1 + 1e-9) < tail[1] + 1e-15
    assert duplicates.radius_for(64, 1, 0.5) == 1
    assert duplicates.radius_for(8, 0, 1e-9) == 9


def test_functions_of_a_folder(duplicates, tmp_path, capsys, monkeypatch):
    body = "\n".join(f"    x{i} = y{i} + {i}" for i in range(20))
    (tmp_path / "a.py").write_text(f"def f():\n{body}\n\ndef short():\n    pass\n")
    (tmp_path / "b.py").write_text(f"class C:\n    def g():\n{body.replace('    ', '        ')}\n        z = 1\n")
    texts = duplicates.functions(tmp_path)
    assert [name for name, _ in texts] == ["a.f, line 1", "b.g, line 2"]
    monkeypatch.setattr(duplicates, "functions", lambda: texts)
    duplicates.main()
    out = capsys.readouterr().out
    assert "2 functions, 1 pairs" in out and "a.f, line 1 -- b.g, line 2" in out


@pytest.fixture(scope="module")
def fingerprints():
    return script("example_fingerprints")


def test_fingerprints_are_searched(fingerprints, tmp_path, capsys):
    x = fingerprints.made_up(n=3000, bits=512, series=60)
    assert x.shape == (3000, 64) and x.dtype == np.uint8
    np.save(tmp_path / "x.npy", x)
    fingerprints.main([str(tmp_path / "x.npy")])
    out = capsys.readouterr().out
    assert "2,900 fingerprints of 512 bits" in out and "by codes" in out
    queries, base = x[:20], x[100:]
    values, ids, _, _ = fingerprints.exact(base, queries, 7)
    bits, of = np.unpackbits(base, axis=1).astype(int), np.unpackbits(queries, axis=1).astype(int)
    shared = of @ bits.T
    expected = shared / (of.sum(axis=1)[:, None] + bits.sum(axis=1) - shared)
    np.testing.assert_array_equal(ids, np.argsort(-expected, axis=1, kind="stable")[:, :7])
    np.testing.assert_allclose(values, np.take_along_axis(expected, ids, axis=1), atol=1e-8)
    near, found, _, _ = fingerprints.by_codes(base, queries, 7, k_factor=40)
    # 280 of 2,900 codes of 256 bits: nearly all of them
    assert np.mean([len(set(a) & set(b)) / 7 for a, b in zip(ids, found)]) > 0.8
    same = [i == j for i, j in zip(ids[:, 0], found[:, 0])]
    np.testing.assert_allclose(near[same, 0], values[same, 0], atol=1e-5)


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
    x = texts.counts([words for _, words in found[:2]])
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
    x = texts.histograms(texts.counts(words), texts.rarity(texts.counts(words)))
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
