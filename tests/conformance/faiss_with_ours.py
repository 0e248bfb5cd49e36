# SPDX-License-Identifier: MIT
"""A pytest plugin that puts classes of faiss_ext in the place of FAISS's, for FAISS's own tests.

    pytest -p faiss_with_ours --differences differences.txt FAISS/tests/test_index.py

IndexFlat, IndexFlatL2 and IndexFlatIP become IndexFlatKernel with the linear kernel, whose distance is that of L2;
IndexHNSWFlat becomes IndexHNSWKernel over it; IndexBinaryFlat becomes IndexBinaryFlatSIMD and IndexBinaryIVF
IndexBinaryIVFSIMD; IndexRefineFlat and IndexRefine become IndexRefineKernel; strings with Flat name KFlat(linear).
Functions for files, copies and strings are those of faiss_ext, which take FAISS's objects as well. A test that a file of
differences lists, with the reason, has to fail. If its name ends with a question mark, it may also pass, and * stands for any
characters. --differences can be repeated.
"""


from fnmatch import fnmatchcase
from pathlib import Path

import faiss
import faiss_ext
import pytest


class IndexFlat(faiss_ext.IndexFlatKernel):
    def __init__(self, d=0, metric=faiss.METRIC_L2):
        super().__init__(d, faiss_ext.LinearKernel(), metric)


class IndexFlatL2(IndexFlat):
    def __init__(self, d=0):
        super().__init__(d, faiss.METRIC_L2)


class IndexFlatIP(IndexFlat):
    def __init__(self, d=0):
        super().__init__(d, faiss.METRIC_INNER_PRODUCT)


class IndexHNSWFlat(faiss_ext.IndexHNSWKernel):
    def __init__(self, d, M=32, metric=faiss.METRIC_L2):
        storage = IndexFlat(d, metric)
        super().__init__(storage, M)


class IndexRefineFlat(faiss_ext.IndexRefineKernel):
    def __init__(self, base):
        self.refined_by = IndexFlat(base.d, base.metric_type)
        super().__init__(base, self.refined_by)


def with_ours(string):
    """The string with KFlat(linear) for Flat where that stands alone or behind a transformation or graph."""
    parts = string.split(",")
    if parts[-1] == "Flat" and not any(part.startswith(("IVF", "IMI")) for part in parts):
        parts[-1] = "KFlat(linear)"
    if parts[-1] == "RFlat":
        parts[-1] = "Refine(KFlat(linear))"
    return ",".join(parts)


def index_factory(d, string, *metric):
    return original_factory(d, with_ours(string), *metric)


original_factory = faiss.index_factory
faiss.index_factory = index_factory
faiss.index_binary_factory = faiss_ext.index_binary_factory
faiss.read_index_binary = faiss_ext.read_index_binary
for ours in (IndexFlat, IndexFlatL2, IndexFlatIP, IndexHNSWFlat, IndexRefineFlat):
    setattr(faiss, ours.__name__, ours)
faiss.IndexRefine = faiss_ext.IndexRefineKernel
faiss.IndexBinaryFlat = faiss_ext.IndexBinaryFlatSIMD
faiss.IndexBinaryIVF = faiss_ext.IndexBinaryIVFSIMD


def pytest_addoption(parser):
    parser.addoption("--differences", action="append", help="file of tests that have to fail, or (with ?) may: name, two spaces, reason")


def pytest_collection_modifyitems(config, items):
    expected = {}
    for file in config.getoption("--differences"):
        for line in Path(file).read_text().splitlines():
            if line and not line.startswith("#"):
                name, reason = line.split("  ", 1)
                expected[name] = reason
    for item in items:
        name = item.nodeid.rsplit("/", 1)[-1]
        for listed, reason in expected.items():
            if name == listed or (listed.endswith("?") and fnmatchcase(name, listed[:-1])):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=name == listed))
