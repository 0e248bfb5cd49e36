# SPDX-License-Identifier: MIT
"""Sparse vectors in calls of indexes: arrays and matrices of scipy.sparse.

SciPy itself is not imported; whatever has ``tocsr`` is taken.
"""

import math

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .arguments import as_matrix
from .index_tree import hash_in_front


def takes_sparse(index):
    if isinstance(index, faiss.IndexBinary):
        return hash_in_front(index) is not None
    return swig._takes_sparse(index)


def why_not_sparse(string):
    """Says that the index of a string takes no sparse vectors."""
    return (f"the index {string} takes no sparse vectors; KFlat(...,store=sparse) "
            "does, and so do indexes behind a hash or a map of faiss_ext, with "
            "store=sparse in Refine(KFlat(...))")


def is_sparse(x):
    return hasattr(x, "tocsr") and hasattr(x, "shape")


class SparseVectors:
    """The rows of a sparse array, in the arrays that C++ takes."""

    def __init__(self, x, d, where):
        if len(x.shape) != 2 or x.shape[1] != d:
            raise ValueError(f"{where}: expected a sparse array of shape "
                             f"(n, {d}), got {x.shape}")
        if np.dtype(x.dtype).kind not in "fiub":
            raise TypeError(f"{where}: expected numbers, got a sparse array of "
                            f"{x.dtype}")
        x = x.tocsr()
        self.n = x.shape[0]
        self.d = d
        self.indptr = as_indptr(x, where)
        self.indices = as_columns(x.indices, d, self.indptr, where)
        with np.errstate(over="ignore"):  # the C++ side rejects infinities
            self.values = np.ascontiguousarray(x.data, dtype="float32")

    def __len__(self):
        return self.n

    def arguments(self):
        return (self.n, self.d, *map(
            faiss.swig_ptr, (self.indptr, self.indices, self.values)))


class DenseRows(SparseVectors):
    """The rows of a dense array, in the same arrays."""

    def __init__(self, x):
        self.n, self.d = x.shape
        rows, columns = np.nonzero(x)
        self.indptr = np.searchsorted(rows, np.arange(self.n + 1))
        self.values = x[rows, columns]
        self.indices = columns.astype("int32")


def as_rows(x, where):
    """Vectors of any dimension, dense or sparse, as sparse ones."""
    if is_sparse(x):
        return SparseVectors(x, x.shape[-1], where)
    return DenseRows(as_matrix(x, where))


def as_csr(x, d, where):
    """Sparse vectors of dimension d as CSR, which has rows and slices."""
    if len(x.shape) != 2 or x.shape[1] != d:
        raise ValueError(f"{where}: expected a sparse array of shape "
                         f"(n, {d}), got {x.shape}")
    x = x.tocsr()
    indptr = as_indptr(x, where)
    # C++ checks this, too, but SciPy takes rows without a check
    falls = np.flatnonzero(np.diff(indptr) < 0)
    if len(falls):
        i = falls[0]
        raise ValueError(
            f"{where}: indptr of vector {i} begins at {indptr[i]} and ends at "
            f"{indptr[i + 1]}, expected numbers that do not descend")
    return x


def as_row(x, where):
    """A sparse vector of shape (d,) or (1, d) as one row."""
    if len(x.shape) == 2 and x.shape[0] != 1:
        raise ValueError(f"{where}: expected one vector, got a sparse array of "
                         f"shape {x.shape}")
    return x.reshape((1, -1)).tocsr()


def as_indptr(x, where):
    """Where the rows of a CSR array begin, as int64."""
    indptr = np.ascontiguousarray(x.indptr, dtype="int64")
    n, size = x.shape[0], min(x.indices.size, x.data.size)
    if len(indptr) != n + 1 or indptr.min() < 0 or indptr.max() > size:
        raise ValueError(
            f"{where}: indptr of the sparse array must have {n + 1} numbers "
            f"from 0 to {size}, the number of its components")
    if indptr[0] != 0:
        raise ValueError(f"{where}: indptr of the sparse array begins with "
                         f"{indptr[0]}, expected 0")
    return indptr


def as_columns(indices, d, indptr, where):
    """The columns as int32. A check of larger types, which could wrap around,
    names the row."""
    indices = np.asarray(indices)
    if indices.dtype.itemsize > 4 and indices.size:
        outside = (indices < 0) | (indices >= d)
        if outside.any():
            at = int(outside.argmax())
            row = int(np.searchsorted(indptr, at, side="right")) - 1
            raise ValueError(f"{where}: column {int(indices[at])} of vector "
                             f"{row} is out of range, expected 0 to {d - 1}")
    return np.ascontiguousarray(indices, dtype="int32")


def float_components(x):
    """CSR with float32 components, and the row and column of one that is not
    finite, or None."""
    with np.errstate(over="ignore"):  # infinities are reported
        x = x.tocsr().astype("float32", copy=False)
    if math.isfinite(x.data.sum(dtype="float64")):
        return x, None
    wrong = np.flatnonzero(~np.isfinite(x.data))
    if not len(wrong):
        return x, None
    row = int(np.searchsorted(x.indptr, wrong[0], side="right")) - 1
    return x, (row, int(x.indices[wrong[0]]))


# ---------------------------------------------------------- calls of indexes

def train(index, x):
    swig._train_sparse_c(index, *x.arguments())


def add(index, x):
    swig._add_sparse_c(index, *x.arguments(), None)


def add_with_ids(index, x, ids):
    swig._add_sparse_c(index, *x.arguments(), faiss.swig_ptr(ids))


def search(index, x, k, *, params=None, D=None, I=None):
    D = np.empty((len(x), k), dtype="float32") if D is None else D
    I = np.empty((len(x), k), dtype="int64") if I is None else I
    swig._search_sparse_c(index, *x.arguments(), k, faiss.swig_ptr(D),
                          faiss.swig_ptr(I), params)
    return D, I


def search_and_reconstruct(index, x, k, *, params=None, D=None, I=None, R=None):
    D = np.empty((len(x), k), dtype="float32") if D is None else D
    I = np.empty((len(x), k), dtype="int64") if I is None else I
    R = np.empty((len(x), k, index.d), dtype="float32") if R is None else R
    swig._search_and_reconstruct_sparse_c(
        index, *x.arguments(), k, *map(faiss.swig_ptr, (D, I, R)), params)
    return D, I, R


def assign(index, x, k=1, labels=None):
    return search(index, x, k, I=labels)[1]


def range_search(index, x, thresh, *, params=None):
    result = faiss.RangeSearchResult(len(x))
    swig._range_search_sparse_c(index, *x.arguments(), thresh, result, params)
    lims = faiss.rev_swig_ptr(result.lims, len(x) + 1).copy()
    found = int(lims[-1])
    return (lims, faiss.rev_swig_ptr(result.distances, found).copy(),
            faiss.rev_swig_ptr(result.labels, found).copy())


def update_vectors(index, x, ids):
    swig._update_sparse_c(index, *x.arguments(), faiss.swig_ptr(ids))


def upsert(index, x, ids):
    return swig._upsert_sparse_c(index, *x.arguments(), faiss.swig_ptr(ids))


# ------------------------------------------------- calls of maps and hashes

def set_landmarks(owner, x):
    swig._set_landmarks_sparse_c(owner, *x.arguments())


def apply(transform, x):
    """Also of a projection."""
    y = np.empty((len(x), transform.d_out), dtype="float32")
    swig._apply_sparse_c(transform, *x.arguments(), faiss.swig_ptr(y))
    return y


def encode(hash, x):
    codes = np.empty((len(x), hash.code_size()), dtype="uint8")
    swig._encode_sparse_c(hash, *x.arguments(), faiss.swig_ptr(codes))
    return codes


# ------------------------------------------------------- calls of kernels

def train_kernel(kernel, x, where):
    rows = as_rows(x, where)  # keeps the arrays alive
    swig._train_sparse_c(kernel, *rows.arguments())


def gram(kernel, x, y, where):
    """The kernel matrix of vectors of which some are sparse."""
    x, y = as_rows(x, where), as_rows(y, where)
    out = np.empty((len(x), len(y)), dtype="float32")
    swig._gram_sparse_c(
        kernel, *x.arguments(), *y.arguments(), faiss.swig_ptr(out))
    return out


# methods that take sparse vectors
CALLS_OF_INDEX = {call.__name__: call for call in (
    train, add, add_with_ids, search, search_and_reconstruct, assign,
    range_search)}
CALLS_OF_TRANSFORM = {"train": train, "apply": apply}


def call_for(owner, name):
    """The function that does for sparse vectors what a method does for dense
    ones; None if there is none."""
    if isinstance(owner, faiss.Index):
        return CALLS_OF_INDEX.get(name)
    if isinstance(owner, swig.Transform):
        return CALLS_OF_TRANSFORM.get(name)
    if isinstance(owner, swig.IndexBinaryKernelHash) and name == "train":
        return train
    return None


def dimension(owner):
    """The dimension of the vectors that an object takes."""
    if isinstance(owner, swig.IndexBinaryKernelHash):
        owner = owner.hash
    return owner.d_in if hasattr(owner, "d_in") else owner.d
