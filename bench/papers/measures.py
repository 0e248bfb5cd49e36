# SPDX-License-Identifier: MIT
"""True neighbours, Hamming distances, precision and recall."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

import faiss
from faiss_ext import IndexBinaryFlatSIMD, index_factory

MAX_TRUE_NEIGHBOURS = 5000


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
    """True neighbours as the vectors within a radius."""

    true: np.ndarray  # queries x base, bool
    radius: float

    @property
    def too_many(self) -> np.ndarray:
        """Which queries have more true neighbours than Kim and Choi allow."""
        return self.true.sum(axis=1) > MAX_TRUE_NEIGHBOURS


def radius_truth(base, queries, nth=50) -> RadiusTruth:
    """The protocol of Raginsky and Lazebnik: the radius is the mean L2 distance of a query to its 50th neighbour."""
    index = faiss.IndexFlatL2(base.shape[1])
    index.add(base)
    nearest = index.search(queries, min(nth, len(base)))[0]
    radius = float(np.sqrt(np.maximum(nearest[:, -1], 0)).mean())
    limits, _, ids = index.range_search(queries, radius**2)
    true = np.zeros((len(queries), len(base)), bool)
    true[np.repeat(np.arange(len(queries)), np.diff(limits.astype(np.int64))), ids] = True
    return RadiusTruth(true, radius)


# ---------------------------------------------------------------- Hamming distances


def hamming(a, b) -> np.ndarray:
    """Hamming distances of all pairs of two sets of packed codes."""
    index = IndexBinaryFlatSIMD(8 * b.shape[1])
    index.add(b)
    return index.range_search(a, 8 * b.shape[1] + 1)[1].reshape(len(a), len(b)).astype(np.int32)


# ---------------------------------------------------------------- precision and recall

AVERAGES = ("pooled over all pairs", "mean over queries")


def precision_recall(distances, true, at) -> np.ndarray:
    """Precision at levels of recall, AVERAGES x levels; rows are queries. Vectors of one Hamming distance are retrieved together.

    Pooled, all pairs of a query and a vector make one ranking by distance, as in the toolkits that came with the early papers
    on hashing. A query without true neighbours has only wrong pairs there. It is left out of the mean over queries.
    """
    levels = distances.max() + 1
    retrieved = np.array([np.bincount(row, minlength=levels) for row in distances])
    hits = np.array([np.bincount(row[wanted], minlength=levels) for row, wanted in zip(distances, true)])
    some = hits.any(axis=1)
    each = [precision_at(h, r, at) for h, r in zip(hits[some], retrieved[some])]
    return np.array([precision_at(hits.sum(axis=0), retrieved.sum(axis=0), at), np.mean(each, axis=0)])


def precision_at(hits, retrieved, at) -> np.ndarray:
    """By the numbers of true ones and of all at each distance: the precision where each level of recall is reached first."""
    hits, retrieved = np.cumsum(hits), np.cumsum(retrieved)
    reached = np.searchsorted(hits, np.ceil(np.asarray(at) * hits[-1] - 1e-9))
    return hits[reached] / np.maximum(retrieved[reached], 1)


def without_neighbours(true) -> int:
    """Queries that have no true neighbour."""
    return int((~true.any(axis=1)).sum())


def recall_at(found, nearest, ranks) -> np.ndarray:
    """The share of queries whose nearest neighbour (a column of ids) is among the first R found, for each R in ranks."""
    hit = np.asarray(found) == np.asarray(nearest).reshape(-1, 1)
    return np.array([hit[:, :r].any(axis=1).mean() for r in ranks])
