# SPDX-License-Identifier: MIT
"""The benchmark of large indexes measures what it says, on few vectors."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
N = 3000


def write_bvecs(path, x):
    np.hstack([np.full((len(x), 1), x.shape[1], "<i4").view("u1"), x]).tofile(path)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    pytest.importorskip("distributed")
    if not os.environ.get("FAISS_EXT_ALL_EXPERIMENTS"):
        pytest.skip("takes half a minute; scripts/nightly.sh runs it")
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(1)
    centres = rng.gamma(0.5, 40, (50, 128))
    for name, n in (("base", 1000), ("query", 100)):
        x = centres[rng.integers(0, 50, n)] * np.exp(0.3 * rng.standard_normal((n, 128)))
        write_bvecs(folder / f"{name}.bvecs", np.minimum(x, 255).astype("uint8"))
    shutil.copy(ROOT / "docs" / "scaling.md", folder)
    subprocess.run([sys.executable, ROOT / "bench" / "large" / "run.py", "--data", folder, "--work", folder / "work",
                    "--n", str(N), "--train", "500", "--mapped", "--out", folder / "out.json",
                    "--markdown", folder / "scaling.md"], check=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "2"})
    return folder, json.loads((folder / "out.json").read_text())


def test_vectors_are_the_real_ones_and_copies_with_jitter(results):
    folder, _ = results
    rows = np.fromfile(folder / "work" / "base.bvecs", "uint8").reshape(N, 132)
    real = np.fromfile(folder / "base.bvecs", "uint8").reshape(1000, 132)
    assert (rows[:, :4] == real[0, :4]).all()
    nearest = ((rows[1000:1100, None, 4:].astype(int) - real[None, :, 4:]) ** 2).sum(axis=2).min(axis=1)
    assert (nearest > 0).mean() > 0.9 and (nearest < 0.2 * (rows[1000:1100, 4:].astype(int) ** 2).sum(axis=1)).all()


def test_every_index_is_built_and_searched(results):
    _, found = results
    assert found["n"] == N and len(found["rows"]) == 3
    for row in found["rows"].values():
        assert row["build"]["n"] == N and row["build"]["peak_mb"] > 10
        for kind in ("file", "mapped", "memory"):
            assert row[kind]["recall"] >= row["tune"]["recall"] - 1e-9 and row[kind]["rate"] > 0
        assert row["file"]["cold_rate"] > 0 and row["memory"].get("cold_rate") is None
        assert row["tune"]["recall"] > 0.9


def test_shards_find_the_same_whatever_is_killed(results):
    _, found = results
    cluster = found["cluster"]
    assert cluster["two"]["same"] and cluster["two"]["killed_search_same"] and cluster["killed"]["same"]
    assert cluster["one"]["recall"] == cluster["two"]["recall"] > 0.9


def test_the_page_has_the_tables(results):
    folder, _ = results
    page = (folder / "scaling.md").read_text()
    for name in ("building", "searching", "cluster", "paper", "ivf-pq"):
        table = re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", page, re.DOTALL)[1]
        assert table.count("\n|") >= 3
    assert "All runs return the same results." in page
    # 10 billion codes of 64 bytes
    assert re.search(r"\| 10 billion \| `AHK512\(chi2,center=1\),BFlat` \| [67]\d\d \| [34] \|", page)
    # codes and ids, 400 GB, and vectors, 1280 or 5120, by 204.8
    assert "| 10 billion | `IVF,PQ32` | 400 | 2 | 9 | 27 |" in page
