# SPDX-License-Identifier: MIT
"""The examples in scripts/ do what they say."""

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
