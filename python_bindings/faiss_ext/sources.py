# SPDX-License-Identifier: MIT
"""Reads vectors in blocks, from arrays and from files larger than memory."""

import os

import numpy as np

from .arguments import as_array
from .sparse_arrays import checked_csr, float_components, is_sparse
from .vector_files import (
    SVMLIGHT, VectorFileError, checked_name, lazy_vectors)


class Source:
    """Vectors to build from, known by name. opened() finds their size.

    Attributes
    ----------
    n, d, dtype : int, int, str
        Their number, dimension and type.
    identity
        Equals that of another call if the vectors are the same.
    """

    path = None  # no file to map
    size = None  # of a partition, unknown before it is opened
    packed = None  # whether bytes are packed bits, or their number; None: unsaid

    def set_vectors(self, vectors):
        self.vectors, self.dtype = vectors, str(vectors.dtype)
        self.n, self.d = vectors.shape
        # numbers that a vector takes in memory: sparse ones have columns, too
        self.width = (2 * vectors.nnz // max(self.n, 1) + 2
                      if is_sparse(vectors) else self.d)

    def block(self, begin, end, bits=False):
        return prepared(self.vectors[begin:end], self.name, bits, begin)

    def rows(self, numbers, bits=False):
        """The vectors with these numbers, which must ascend."""
        return prepared(self.vectors[numbers], self.name, bits, numbers)


class FileSource(Source):
    """The vectors of a file; detects if the file changes."""

    columns = 0  # at least so many, if the file does not say how many

    def __init__(self, path, part=None, packed=None):
        self.path = os.path.abspath(checked_name(path))
        self.part, self.packed = part, packed
        self.name = self.path if part is None else f"{self.path}:{part}"

    def opened(self):
        self.set_vectors(widened(
            lazy_vectors(self.path, self.part), self.columns, self.path))
        self.identity = self.status()
        return self

    def status(self):
        status = os.stat(self.path)
        of_bits = {"packed": self.packed} if self.packed else {}
        return {"path": self.path, "part": self.part, "n": self.n, "d": self.d,
                **of_bits, "bytes": status.st_size, "modified": status.st_mtime_ns}

    def block(self, begin, end, bits=False):
        if self.status() != self.identity:
            raise VectorFileError(f"{self.path} has changed during the build")
        return super().block(begin, end, bits)


class ArraySource(Source):
    """The vectors of an array."""

    def __init__(self, array, name, identity, packed=None):
        self.array, self.name, self.identity = array, name, identity
        self.packed = packed

    def opened(self):
        x = (checked_csr(self.array, self.name) if is_sparse(self.array)
             else as_array(self.array, self.name))
        if x.ndim != 2 or x.dtype.kind not in "fiub" or x.shape[1] == 0:
            raise VectorFileError(
                f"{self.name}: expected a two-dimensional array of real "
                f"numbers, got {x.dtype} of shape {x.shape}")
        self.set_vectors(x)
        return self


def drawn(n, size, seed):
    """A random sample of the numbers below n, in ascending order."""
    return np.sort(np.random.default_rng(seed).choice(
        n, min(n, size), replace=False, shuffle=False))


def widened(x, d, path):
    """Sparse vectors with d columns, if their file does not say how many."""
    if not str(path).endswith(SVMLIGHT) or x.shape[1] >= d:
        return x
    x = x.copy()
    x.resize(x.shape[0], d)
    return x


def joined(parts):
    """Vectors of several arrays in one; sparse ones if one of them is."""
    if any(map(is_sparse, parts)):
        import scipy.sparse
        return scipy.sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def prepared(rows, name, bits, first=0):
    """Rows in the form that an index takes: packed bits or float32."""
    if bits:
        return np.ascontiguousarray(rows)
    return as_floats(rows, name, first)


def as_floats(x, name, first=0):
    """Vectors as float32; raises VectorFileError for NaN and infinities.

    `first` is the number of the first vector, or an array of all numbers.
    """
    if is_sparse(x):
        x, wrong = float_components(x)
    else:
        given = x
        with np.errstate(over="ignore"):  # infinities are reported below
            x = np.ascontiguousarray(x, dtype="float32")
        wrong = None
        if not np.isfinite(x.sum(dtype="float64")) and not np.isfinite(x).all():
            row, column = np.argwhere(~np.isfinite(x))[0]
            wrong = row, column, given[row, column]
    if wrong is not None:
        row, column, value = wrong
        row = first + row if np.isscalar(first) else first[row]
        error = VectorFileError(
            f"{name}: component {column} of vector {row} is {value:g}, expected "
            "a finite number of at most 3.4e38 (float32)")
        error.vector = int(row)
        raise error
    return x
