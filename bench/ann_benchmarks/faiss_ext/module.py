# SPDX-License-Identifier: MIT
"""faiss_ext in ann-benchmarks: each index is a factory string. docs/retrieval.md says how to run it.

Strings in config.yml may have placeholders, which fit them to the data set:

{p}      dimensions that PCA keeps: 128, or the largest even number that the vectors have
{parts}  half of {p}: parts of 4 bits of a code
{lists}  inverted lists: a power of two, about one for 200 vectors
{store}  what rows are stored as: u8 where components are integers from 0 to 255, which is exact, else f16
"""

import math

import faiss
import faiss_ext
import numpy as np

from ..base.module import BaseANN

BLOCK = 4096  # rows that are converted at a time
TRAINED_ON = 20_000  # rows of zeros and ones, at most


class Bits:
    """Turns points into rows of zeros and ones: truth values stay, sets of integers get a column for each element.

    Elements that only a query has count in its union with a set, for which up to `spare` columns are kept.
    """

    spare = 256

    def __init__(self, X):
        self.elements = None if X[0].dtype == np.bool_ else np.unique(np.concatenate(X))
        self.d = len(X[0]) if self.elements is None else len(self.elements) + self.spare

    def __call__(self, X):
        if self.elements is None:
            return np.asarray(X, dtype=np.bool_)
        rows = np.zeros((len(X), self.d), dtype=np.bool_)
        for row, elements in zip(rows, X):
            at = np.minimum(np.searchsorted(self.elements, elements), len(self.elements) - 1)
            known = self.elements[at] == elements
            row[at[known]] = True
            row[len(self.elements) :][: len(known) - np.count_nonzero(known)] = True
        return rows


def are_bytes(x):
    return bool(np.all((x >= 0) & (x <= 255) & (x == np.floor(x))))


class FaissExt(BaseANN):
    """A float index."""

    metrics = ("angular", "euclidean", "hamming", "jaccard")

    def __init__(self, metric, string):
        if metric not in self.metrics:
            raise NotImplementedError(
                f"{type(self).__name__} doesn't support metric {metric!r}, only {', '.join(self.metrics)}")
        self.bits = None
        self.has_bits = metric in ("hamming", "jaccard")
        self.string = string
        self.index = None
        self.parameters = {}

    def rows(self, X):
        """Points as the index takes them."""
        return np.ascontiguousarray(X if self.bits is None else self.bits(X), dtype=np.float32)

    def make_index(self, d):
        return faiss.index_factory(d, self.string)

    def fit(self, X):
        self.bits = Bits(X) if self.has_bits else None
        blocks = [X[begin : begin + BLOCK] for begin in range(0, len(X), BLOCK)]
        d = self.bits.d if self.has_bits else X.shape[1]
        p = min(128, d - d % 2)
        names = {"p": p, "parts": p // 2, "lists": max(4, 2 ** round(math.log2(len(X) / 200)))}
        if "{store}" in self.string:
            names["store"] = "u8" if self.has_bits or all(map(are_bytes, blocks)) else "f16"
        self.string = self.string.format(**names)
        self.index = self.make_index(d)
        if not self.index.is_trained:
            self.index.train(self.rows(X[:: math.ceil(len(X) / TRAINED_ON)] if self.has_bits else X))
        for block in blocks:
            self.index.add(self.rows(block))

    def set_query_arguments(self, parameters):
        """parameters: values by name, as faiss_ext.set_index_parameter takes them."""
        for name, value in parameters.items():
            faiss_ext.set_index_parameter(self.index, name, value)
        self.parameters = parameters

    def query(self, q, n):
        _, labels = self.index.search(self.rows(q[None] if self.bits is None else [q]), n)
        return labels[labels >= 0]

    def batch_query(self, X, n):
        _, self.res = self.index.search(self.rows(X), n)

    def get_batch_results(self):
        return [labels[labels >= 0] for labels in self.res]

    def __str__(self):
        settings = [f"{name}={value}" for name, value in self.parameters.items()]
        return " ".join([f"faiss_ext {self.string}", *settings])


class FaissExtBits(FaissExt):
    """A binary index, of packed bits."""

    metrics = ("hamming", "jaccard")

    def rows(self, X):
        return np.packbits(self.bits(X), axis=1)

    def make_index(self, d):
        return faiss.index_binary_factory(d + -d % 8, self.string)
