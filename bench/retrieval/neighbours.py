# SPDX-License-Identifier: MIT
"""Exact neighbours under a kernel, cached in a folder, and the recall of what a search finds beside them."""

import hashlib
from pathlib import Path

import numpy as np

# Squared distances in feature space; two of them no further apart than this are a tie.
TIE = 1e-6


class Truth:
    """The exact neighbours of each query: distances and labels, nq x depth, by ascending distance."""

    def __init__(self, distances, labels):
        self.distances, self.labels = distances, labels
        self._keys = {}

    def recall(self, found, r):
        """Mean share of a query's exact r nearest that are among the labels found (nq x any number, -1 for none).

        Where several vectors are as far from the query as the r-th, any of them counts, r in all. Of labels that are
        candidates for re-ranking this is the recall@r that the exact kernel makes of them.
        """
        hits = np.isin(self._key(found), self._nearest(r)) & (found >= 0)
        return float(np.minimum(hits.sum(axis=1), r).mean() / r)

    def first(self, n):
        """The truth of the first n queries."""
        return Truth(self.distances[:n], self.labels[:n])

    def _nearest(self, r):
        if r not in self._keys:
            near = self.distances <= self.distances[:, r - 1 : r] + TIE
            self._keys[r] = self._key(self.labels)[near]
        return self._keys[r]

    @staticmethod
    def _key(labels):
        """One number for each pair of query and base vector."""
        return labels.astype(np.int64) + (np.arange(len(labels), dtype=np.int64)[:, None] << 40)

    def save(self, path):
        np.savez(path, distances=self.distances, labels=self.labels)

    @staticmethod
    def load(path):
        with np.load(path) as arrays:
            return Truth(arrays["distances"], arrays["labels"])


def exact(kernel, base, queries, k, cache):
    """The file with the exact neighbours under a kernel: found in the folder `cache`, or computed and put there.

    At least k neighbours of each query are in it, and all that are as far as the k-th.
    """
    path = Path(cache) / f"neighbours_{_fingerprint(kernel, k, base, queries)}.npz"
    if not path.exists():
        _search(kernel, base, queries, k).save(path)
    return path


def _search(kernel, base, queries, k):
    import faiss
    import faiss_ext  # noqa: F401 (extends FAISS's factory)

    index = faiss.index_factory(base.shape[1], f"KFlat({kernel})")
    index.train(base)
    index.add(base)
    depth = min(2 * k, len(base))
    while True:
        distances, labels = index.search(queries, depth)
        if depth == len(base) or (distances[:, -1] > distances[:, k - 1] + TIE).all():
            return Truth(distances, labels)
        depth = min(2 * depth, len(base))


def _fingerprint(kernel, k, *arrays):
    digest = hashlib.blake2b(f"{kernel} {k}".encode(), digest_size=12)
    for array in arrays:
        digest.update(str(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
