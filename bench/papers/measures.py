# SPDX-License-Identifier: MIT
"""True neighbours, precision and recall, and when one result is above another by more than chance."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

import faiss
from faiss_ext import IndexBinaryFlatSIMD, index_factory

MAX_TRUE_NEIGHBOURS = 5000  # the papers leave out queries with more


# ---------------------------------------------------------------- truth


def exact_neighbours(cache: Path, kernel: str, base, queries, k: int) -> np.ndarray:
    """Ids of the k nearest vectors under a kernel, of FAISS's L2 for "l2"; computed once and kept."""
    key = hashlib.sha256(f"{kernel} {k}".encode())
    for x in (base, queries):
        key.update(np.ascontiguousarray(x))
    file = cache / f"{key.hexdigest()[:24]}.npy"
    try:
        ids = np.load(file)
        if ids.shape == (len(queries), k):
            return ids
    except (OSError, ValueError, EOFError):  # missing or damaged
        pass
    d = base.shape[1]
    index = faiss.IndexFlatL2(d) if kernel == "l2" else index_factory(d, f"KFlat({kernel})")
    index.add(base)
    ids = index.search(queries, k)[1]
    cache.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".part.npy")
    np.save(unfinished, ids)
    os.replace(unfinished, file)
    return ids


class RadiusTruth(NamedTuple):
    """True neighbours as the vectors within a radius; `counts` says which queries have some, and not too many."""

    true: np.ndarray  # queries x base, bool
    radius: float
    counts: np.ndarray


def radius_truth(base, queries, nth=50) -> RadiusTruth:
    """The protocol of Raginsky and Lazebnik: the radius is the mean L2 distance of a query to its 50th neighbour."""
    index = faiss.IndexFlatL2(base.shape[1])
    index.add(base)
    nearest = index.search(queries, min(nth, len(base)))[0]
    radius = float(np.sqrt(np.maximum(nearest[:, -1], 0)).mean())
    limits, _, ids = index.range_search(queries, radius**2)
    true = np.zeros((len(queries), len(base)), bool)
    true[np.repeat(np.arange(len(queries)), np.diff(limits.astype(np.int64))), ids] = True
    count = true.sum(axis=1)
    return RadiusTruth(true, radius, (count > 0) & (count <= MAX_TRUE_NEIGHBOURS))


# ---------------------------------------------------------------- Hamming distances


def hamming(a, b) -> np.ndarray:
    """Hamming distances of all pairs of two sets of packed codes."""
    index = IndexBinaryFlatSIMD(8 * b.shape[1])
    index.add(b)
    return index.range_search(a, 8 * b.shape[1] + 1)[1].reshape(len(a), len(b)).astype(np.int32)


# ---------------------------------------------------------------- precision and recall


def precision_recall(distances, true, at) -> np.ndarray:
    """Mean precision at levels of recall over the queries (rows), ranking by distance; ties share their precision.

    The vectors of one Hamming distance are retrieved together, as in a lookup by Hamming radius.
    """
    curves = []
    for row, wanted in zip(distances, true):
        if not wanted.any():
            continue
        whole = np.issubdtype(row.dtype, np.integer)
        place = row - row.min() if whole else np.unique(row, return_inverse=True)[1]
        retrieved = np.cumsum(np.bincount(place))
        hits = np.cumsum(np.bincount(place[wanted], minlength=len(retrieved)))
        recall, precision = hits / hits[-1], hits / retrieved
        reached = np.minimum(np.searchsorted(recall, np.asarray(at) - 1e-12), len(recall) - 1)
        curves.append(precision[reached])
    return np.mean(curves, axis=0)


def average_precision(distances, true) -> float:
    """Mean over the queries of the average precision of the ranking by distance; the lower id first among equals."""
    scores = []
    for row, wanted in zip(distances, true):
        ranks = np.flatnonzero(wanted[np.argsort(row, kind="stable")]) + 1
        if len(ranks):
            scores.append((np.arange(1, len(ranks) + 1) / ranks).mean())
    return float(np.mean(scores))


def recall_at(found, nearest, ranks) -> np.ndarray:
    """The share of queries whose nearest neighbour (a column of ids) is among the first R found, for each R in ranks."""
    hit = np.asarray(found) == np.asarray(nearest).reshape(-1, 1)
    return np.array([hit[:, :r].any(axis=1).mean() for r in ranks])


# ---------------------------------------------------------------- repeats


def mean_and_deviation(values) -> tuple[np.ndarray, np.ndarray]:
    """Over the first axis, the repeats; the deviation is that of a single repeat."""
    values = np.asarray(values, float)
    return values.mean(axis=0), values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1:])


def text(values) -> str:
    """Mean and standard deviation of the repeats."""
    mean, deviation = mean_and_deviation(values)
    return f"{mean:.3f} ± {deviation:.3f}"


def clearly_above(a, b=0.0, level=0.99) -> bool:
    """Whether repeats of a exceed those of b, or a number, by more than chance: a one-sided t test of the differences.

    Repeats with the same seed are pairs. Where all differences are equal, their sign decides.
    """
    differences = np.asarray(a, float) - np.asarray(b, float)
    n = len(differences)
    if n < 2:
        raise ValueError("repeats are needed, at least two")
    margin = stats.t.ppf(level, n - 1) * differences.std(ddof=1) / np.sqrt(n)
    return bool(differences.mean() > margin)
