# SPDX-License-Identifier: MIT
"""Files that an earlier build wrote are read, and found in them is what was found then."""

import importlib.util
import json

import faiss
import numpy as np
import pytest
from helpers import ROOT

FOLDER = ROOT / "tests/golden"
spec = importlib.util.spec_from_file_location("golden", FOLDER / "make.py")
golden = importlib.util.module_from_spec(spec)
spec.loader.exec_module(golden)
EXPECTED = json.loads((FOLDER / "found.json").read_text())


def test_all_files_are_listed():
    assert {path.stem for path in FOLDER.glob("*.index")} == set(EXPECTED)
    listed = (golden.INDEXES, golden.groups(), ["kfile", "kpca_sparse"], golden.BINARY, golden.binary_groups(), golden.HASHES)
    assert set(EXPECTED) == set().union(*listed)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_golden_file(name):
    expected = EXPECTED[name]
    read = getattr(faiss, f"read_{expected['kind']}")(str(FOLDER / f"{name}.index"))
    queries = golden.data()[1]
    assert type(read).__name__ == expected["class"]
    if "codes" in expected:
        assert np.array_equal(read.encode(queries), expected["codes"])
        return
    found = golden.found(read, queries)
    assert found["ntotal"] == expected["ntotal"]
    np.testing.assert_allclose(found["distances"], expected["distances"], rtol=1e-5, atol=1e-5)
    # of vectors equally far away, either may come first
    for labels, then, distances in zip(found["labels"], expected["labels"], expected["distances"]):
        last = max(distances) if distances[0] <= distances[-1] else min(distances)
        sure = {i for i, distance in zip(then, distances) if not np.isclose(distance, last, rtol=1e-4)}
        assert sure <= set(labels)
