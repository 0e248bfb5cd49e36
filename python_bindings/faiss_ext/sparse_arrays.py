# SPDX-License-Identifier: MIT
"""Checked conversions of the arrays and matrices of scipy.sparse.

SciPy itself is not imported; whatever has ``tocsr`` is taken.
"""

import math

import numpy as np


def is_sparse(x):
    return hasattr(x, "tocsr") and hasattr(x, "shape")


def as_csr(x, d, where):
    """Sparse vectors of dimension d as CSR, which has rows and slices."""
    if len(x.shape) != 2 or x.shape[1] != d:
        raise ValueError(f"{where}: expected a sparse array of shape "
                         f"(n, {d}), got {x.shape}")
    return to_csr(x, where)


def as_row(x, where):
    """A sparse vector of shape (d,) or (1, d) as one row."""
    if len(x.shape) == 2 and x.shape[0] != 1:
        raise ValueError(f"{where}: expected one vector, got a sparse array of "
                         f"shape {x.shape}")
    if len(x.shape) == 1:
        x = x.reshape((1, -1))
    return checked_csr(x, where)


# SciPy converts arrays, takes rows and makes dense arrays without a check of
# their numbers, and reads and writes where they point.

def to_csr(x, where):
    """A sparse array as CSR of which rows can be taken. Its columns may be out
    of range, which as_columns and C++ check."""
    kind = getattr(x, "format", "csr")
    n, d = x.shape
    if kind == "coo":
        for axis, indices, size in (("row", x.row, n), ("column", x.col, d)):
            check_indices(indices, size, where, axis)
    elif kind == "csc":
        check_indptr(x, d, "column", where)
        used = x.indices[:x.indptr[-1]]
        check_indices(used, n, where, "row", lambda at: "in column " + str(
            np.searchsorted(x.indptr, at, side="right") - 1))
    elif kind == "bsr":
        height, width = x.blocksize
        check_indptr(x, n // height, "row of blocks", where)
        check_indices(x.indices, d // width, where, "column of blocks")
    elif kind == "lil":
        for i, (columns, values) in enumerate(zip(x.rows, x.data)):
            if len(columns) != len(values):
                raise ValueError(f"{where}: vector {i} has {len(columns)} columns "
                                 f"and {len(values)} values")
    if kind in ("coo", "csc", "bsr") and np.dtype(x.dtype).kind in "iub":
        # SciPy adds up components of the same column; small integers would wrap
        places = ((x.row, x.col),) if kind == "coo" else (x.indices, x.indptr)
        x = type(x)((x.data.astype("float32"), *places), shape=x.shape)
    x = x.tocsr()
    check_indptr(x, n, "vector", where)
    return x


def checked_csr(x, where):
    """A sparse array as CSR, of which everything is checked."""
    x = to_csr(x, where)
    used = np.asarray(x.indices)[:x.indptr[-1]]
    if used.size and (used.min() < 0 or used.max() >= x.shape[1]):
        raise_for_column(x, used, where)
    return x


def check_indptr(x, n, owner, where):
    """Checks where the n rows or columns of a sparse array begin."""
    indptr, size = np.asarray(x.indptr), min(len(x.indices), len(x.data))
    for name, numbers in (("indptr", indptr), ("indices", x.indices)):
        if numbers.dtype.kind not in "iu":
            raise TypeError(f"{where}: the sparse array has {name} of the type "
                            f"{numbers.dtype}, expected integers")
    if len(indptr) != n + 1:
        raise ValueError(f"{where}: indptr of the sparse array has {len(indptr)} "
                         f"numbers, expected {n + 1}")
    if indptr[0] != 0:
        raise ValueError(f"{where}: indptr of the sparse array begins with "
                         f"{indptr[0]}, expected 0")
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if len(falls):
        i = int(falls[0])
        raise about(
            owner, i, f"{where}: indptr of {owner} {i} begins at {indptr[i]} and "
            f"ends at {indptr[i + 1]}, expected numbers that do not descend")
    if indptr[-1] > size:
        i = int(np.argmax(indptr > size)) - 1
        raise about(
            owner, i, f"{where}: indptr of {owner} {i} ends at {indptr[i + 1]}, "
            f"expected at most {size}, the number of components of the sparse array")


def check_indices(indices, size, where, axis, place=None):
    indices = np.asarray(indices)
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{where}: the numbers of each {axis} have the type "
                        f"{indices.dtype}, expected integers")
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        at = int(np.argmax((indices < 0) | (indices >= size)))
        more = " " + place(at) if place else ""
        raise ValueError(f"{where}: {axis} {indices[at]} of component {at}{more} "
                         f"is out of range, expected 0 to {size - 1}")


def as_columns(x, where):
    """The columns of CSR as int32. C++ checks int32 itself; larger numbers could
    wrap around."""
    indices = np.asarray(x.indices)
    if indices.dtype.itemsize > 4 and indices.size and (
            indices.min() < 0 or indices.max() >= x.shape[1]):
        raise_for_column(x, indices, where)
    return np.ascontiguousarray(indices, dtype="int32")


def raise_for_column(x, indices, where):
    row, column = place_of(
        x, np.argmax((indices < 0) | (indices >= x.shape[1])))
    raise about(
        "vector", row, f"{where}: column {column} of vector {row} is out of range, "
        f"expected 0 to {x.shape[1] - 1}")


def place_of(x, at):
    """The row and the column of a component of CSR."""
    row = int(np.searchsorted(x.indptr, at, side="right")) - 1
    return row, int(x.indices[at])


def about(owner, number, text):
    """An error about a vector, a column or a row of blocks."""
    error = ValueError(text)
    if owner == "vector":
        error.vector = number
    return error


def float_components(x):
    """CSR with float32 components, and None, or the row, the column and the
    given value of one that is not finite."""
    given = x.tocsr()
    with np.errstate(over="ignore"):  # infinities are reported
        x = given.astype("float32", copy=False)
    if math.isfinite(x.data.sum(dtype="float64")):
        return x, None
    wrong = np.flatnonzero(~np.isfinite(x.data))
    if not len(wrong):
        return x, None
    return x, (*place_of(x, wrong[0]), given.data[wrong[0]])
