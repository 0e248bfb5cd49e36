# SPDX-License-Identifier: MIT
"""What several of the test files use: data, scripts, indexes, comparisons."""

import importlib.util
import signal
import sys
from pathlib import Path

import faiss
import numpy as np
from sklearn.datasets import load_digits

ROOT = Path(__file__).resolve().parents[2]
L2, IP = faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT
# chance that what is right fails one of the statistical tests
FAILURE = 1e-9

# scikit-learn's digits: 1,797 vectors of 64 grey values, and as histograms
COUNTS = load_digits().data.astype("float32")
COUNTS = COUNTS[np.random.default_rng(1).permutation(len(COUNTS))]
X = COUNTS / COUNTS.sum(axis=1, keepdims=True)
for array in (COUNTS, X):
    array.setflags(write=False)  # a test fails if anything writes to it
BASE, QUERIES = X[200:], X[:200]

# every kernel, with whether a squared distance alone tells its values
KERNELS = {
    "gaussian(gamma=0.1)": True, "laplacian(gamma=0.05)": True, "matern(nu=1.5,gamma=0.1)": True,
    "jaccard": True, "dice": True, "expchi2(gamma=0.4)": True, "normalized(gaussian(gamma=0.1))": True,
    "sum(0.25*gaussian(gamma=0.1),0.75*jaccard)": True, "product(jaccard,chi2)": False,
    "exponential(jaccard,scale=2)": True, "cosine": False, "normalized(chi2)": False, "exponential(cosine,scale=2)": False,
    "exponential(chi2,scale=0.01)": False, "linear": False, "poly(degree=2,c=0.5)": False, "poly(degree=3,c=0)": False, "chi2": False,
    "intersection": False, "js": False, "hellinger": False}

# zeros, sets, one component, copies, and vectors a thousand times as large as others
EDGES = np.concatenate([
    COUNTS[:40], 1000 * X[:9], X[:9] / 16, COUNTS[:3] > 8, np.zeros((2, 64)), np.eye(64)[:3], X[:9] / 16]).astype("float32")

CONVERSIONS = {
    "float64": lambda x: x.astype("float64"),
    "int64": lambda x: x.astype("int64"),
    "uint8": lambda x: x.astype("uint8"),
    "bigendian": lambda x: x.astype(">f4"),
    "fortran": np.asfortranarray,
    "columns": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "rows": lambda x: np.repeat(x, 3, axis=0)[::3],
    "back": lambda x: x[::-1].copy()[::-1],
    "list": np.ndarray.tolist,
}


def script(name):
    """The module scripts/NAME.py, which finds its neighbours as when it is run."""
    path = ROOT / "scripts" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"script_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def taken_by(index, x):
    """Vectors, or their codes if FAISS's binary ID maps, Shards or Replicas hold a hash."""
    part = index
    while type(part).__module__.startswith("faiss.") and isinstance(part, faiss.IndexBinary):
        inside = part.at(0) if hasattr(part, "at") else getattr(part, "index", None)
        if inside is None:
            return x
        part = faiss.downcast_IndexBinary(inside)
    return part.hash.encode(x) if part is not index and hasattr(part, "hash") else x


def fill(index, x):
    """Trains and fills; where ids can be given, vector i has id 10 i + 3."""
    ids = 10 * np.arange(len(x)) + 3
    x = taken_by(index, x)
    index.train(x)
    if isinstance(index, (faiss.IndexIDMap, faiss.IndexBinaryIDMap)):
        index.add_with_ids(x, ids)
    else:
        index.add(x)
    return index


def made(string, x, metric=L2):
    return fill(faiss.index_factory(x.shape[1], string, metric), x)


def made_binary(string, x):
    return fill(faiss.index_binary_factory(x.shape[1], string), x)


def assert_equal(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def relative_error(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


def is_interrupted(call, seconds):
    """Whether Ctrl-C, pressed after that much processor time, came before the end of a call."""
    before = [(number, signal.signal(number, handler)) for number, handler in (
        (signal.SIGINT, signal.default_int_handler), (signal.SIGPROF, lambda *_: signal.raise_signal(signal.SIGINT)))]
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        call()
        return False
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        for number, handler in before:
            signal.signal(number, handler)
