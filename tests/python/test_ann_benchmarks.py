# SPDX-License-Identifier: MIT
"""bench/ann_benchmarks: every entry of its configuration against exact search, in a stand-in for ann-benchmarks."""

import importlib.util
import itertools
import sys
from types import ModuleType
from typing import NamedTuple

import faiss_ext
import numpy as np
import pytest
from helpers import COUNTS, ROOT

try:
    import yaml
except ImportError:
    yaml = None  # Debian: python3-yaml

FOLDER = ROOT / "bench" / "ann_benchmarks" / "faiss_ext"
PACKAGE = "ann_benchmarks.algorithms.faiss_ext"
K = 10
NQ = 50


class Case(NamedTuple):
    metric: str
    name: str
    constructor: str
    arguments: list
    settings: list  # arguments of set_query_arguments; none at all: [[]]


def combinations(values):
    """What ann-benchmarks makes of args and query_arg_groups: all choices of one from each."""
    if isinstance(values, dict):
        lists = [v if isinstance(v, list) else [v] for v in values.values()]
        return [dict(zip(values, chosen)) for chosen in itertools.product(*lists)]
    return [list(chosen) for chosen in itertools.product(*(v if isinstance(v, list) else [v] for v in values))]


def cases():
    config = yaml.safe_load((FOLDER / "config.yml").read_text())
    for metric, entries in [pair for metrics in config.values() for pair in metrics.items()]:
        for entry in entries:
            base = [metric if a == "@metric" else a for a in entry["base_args"]]
            for group in entry["run_groups"].values():
                settings = combinations([combinations(g) for g in group.get("query_arg_groups", [])])
                for arguments in combinations(group["args"]):
                    yield Case(metric, entry["name"], entry["constructor"], base + arguments, settings)


CASES = list(cases()) if yaml else []


@pytest.fixture(scope="module")
def module():
    """module.py in the place that it has in a checkout, with what it needs of BaseANN."""
    before = set(sys.modules)
    for name in ("ann_benchmarks", "ann_benchmarks.algorithms", "ann_benchmarks.algorithms.base", PACKAGE,
                 "ann_benchmarks.algorithms.base.module"):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = []
    sys.modules["ann_benchmarks.algorithms.base.module"].BaseANN = type("BaseANN", (), {})
    spec = importlib.util.spec_from_file_location(f"{PACKAGE}.module", FOLDER / "module.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    yield made
    for name in set(sys.modules) - before:
        if name.startswith("ann_benchmarks"):
            del sys.modules[name]


def points(metric):
    """The base and the queries as ann-benchmarks gives them, and all distances."""
    x = COUNTS
    if metric == "euclidean":
        found = np.linalg.norm(x[:NQ, None].astype(float) - x[NQ:], axis=2)
    elif metric == "angular":
        unit = x / np.linalg.norm(x.astype(float), axis=1, keepdims=True)
        found = 1 - unit[:NQ] @ unit[NQ:].T
    else:
        x = x > 7
        q, b = x[:NQ].astype(float), x[NQ:].astype(float)
        both = q @ b.T
        either = q.sum(axis=1)[:, None] + b.sum(axis=1) - both
        found = (either - both) / (64 if metric == "hamming" else either)
    if metric == "jaccard":  # sets of any integers, in ascending order
        x = [7 * np.flatnonzero(row) + 3 for row in x]
    return x[NQ:], x[:NQ], found


def recalls(distances, found):
    """As ann-benchmarks counts: what is as near as the K-th nearest counts."""
    for row, labels in zip(distances, found):
        assert len(labels) == len(set(labels.tolist())) <= K
        yield np.count_nonzero(row[labels] <= np.sort(row)[K - 1] + 1e-6) / K


def fitted(module, case):
    base, queries, distances = points(case.metric)
    algorithm = getattr(module, case.constructor)(*case.arguments)
    algorithm.fit(base)
    return algorithm, queries, distances


def batch(algorithm, queries):
    algorithm.batch_query(queries, K)
    return algorithm.get_batch_results()


@pytest.mark.parametrize("case", CASES, ids=[f"{c.metric}-{c.arguments[-1]}" for c in CASES])
def test_every_entry_finds_the_neighbours(module, case):
    algorithm, queries, distances = fitted(module, case)
    means = []
    for setting in case.settings:
        if setting:
            algorithm.set_query_arguments(*setting)
        found = batch(algorithm, queries)
        for q, labels in zip(queries, found):
            np.testing.assert_array_equal(algorithm.query(q, K), labels)
        means.append(np.mean(list(recalls(distances, found))))
        assert all(f"{name}={value}" in str(algorithm) for s in setting for name, value in s.items())
    assert "{" not in str(algorithm)
    # the last setting visits all lists, or nearly all of the graph, and ranks again at least 1 in 25 of all vectors
    assert means[-1] > 0.95 and means[-1] >= means[0]
    exhaustive = {"nprobe": len(distances[0]), "k_factor": len(distances[0])}
    for s in case.settings[-1]:
        if "k_factor" in s:
            # all vectors are candidates, ranked by the metric itself
            algorithm.set_query_arguments({name: exhaustive[name] for name in s})
            assert set(recalls(distances, batch(algorithm, queries))) == {1}
    if case.name == "faiss_ext-exact":
        assert means == [1]


@pytest.mark.skipif(yaml is None, reason="the configuration is YAML, which needs python3-yaml")
def test_every_metric_of_the_configuration_is_tried():
    assert {c.metric for c in CASES} == {"angular", "euclidean", "hamming", "jaccard"}
    assert {c.constructor for c in CASES} == {"FaissExt", "FaissExtBits"}


@pytest.mark.parametrize("constructor, metric, expected", [
    ("FaissExt", "manhattan", "FaissExt doesn't support metric 'manhattan', only angular, euclidean, hamming, jaccard"),
    ("FaissExtBits", "euclidean", "FaissExtBits doesn't support metric 'euclidean', only hamming, jaccard"),
])
def test_other_metrics_are_refused(module, constructor, metric, expected):
    with pytest.raises(NotImplementedError, match=expected):
        getattr(module, constructor)(metric, "KFlat(linear)")


@pytest.mark.parametrize("scale, store", [(1, "u8"), (0.5, "f16"), (-1, "f16"), (17, "f16")])
def test_rows_are_bytes_where_that_is_exact(module, scale, store):
    algorithm = module.FaissExt("euclidean", "KFlat(linear,store={store})")
    x = COUNTS.copy()
    x[-1] *= scale  # one row in another block decides
    assert COUNTS.max() == 16 and len(x) < module.BLOCK
    algorithm.fit(np.vstack([COUNTS] * 3 + [x]).astype("float64"))
    assert str(algorithm) == f"faiss_ext KFlat(linear,store={store})"


def test_placeholders_fit_few_dimensions_and_few_vectors(module):
    algorithm = module.FaissExt("euclidean", "PCAR{p},KIVF{lists}(M={parts}),Refine(KFlat(linear))")
    algorithm.fit(COUNTS[:300, 20:27])
    assert str(algorithm) == "faiss_ext PCAR6,KIVF4(M=3),Refine(KFlat(linear))"


def test_elements_that_only_a_query_has_count_in_the_union(module):
    sets = [np.array(s) for s in ([2, 5], [2, 5, 9, 11, 40, 41], [5, 40])]
    query = np.array([0, 2, 5, 10, 99, 100])  # 0, 10, 99 and 100 are in no set
    for algorithm in (module.FaissExtBits("jaccard", "BKFlat(jaccard)"), module.FaissExt("jaccard", "KFlat(jaccard)")):
        algorithm.fit(sets)
        assert algorithm.query(query, 5).tolist() == [0, 1, 2]
        D, _ = algorithm.index.search(algorithm.rows([query]), 3)
        np.testing.assert_allclose(faiss_ext.kernel_values(algorithm.index, D)[0], [2 / 6, 2 / 10, 1 / 7], rtol=1e-5)


def test_truth_values_are_packed(module):
    bits = COUNTS[:, :60] > 7  # not a multiple of 8
    algorithm = module.FaissExtBits("hamming", "BFlat")
    algorithm.fit(bits[NQ:])
    differing = (bits[:NQ, None] != bits[NQ:]).mean(axis=2)
    assert set(recalls(differing, batch(algorithm, bits[:NQ]))) == {1}
