# SPDX-License-Identifier: MIT
"""Sparse vectors in calls of indexes: arrays and matrices of scipy.sparse."""

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .arguments import (
    as_any_codes, as_codes, as_float32, as_matrix, number_of_bits)
from .index_tree import hash_in_front
from .sparse_arrays import as_columns, is_sparse, place_of, to_csr


def takes_sparse(index):
    if isinstance(index, faiss.IndexBinary):
        return hash_in_front(index) is not None
    return swig._takes_sparse(index)


def why_not_sparse(string):
    """Says that the index of a string takes no sparse vectors."""
    return (f"the index {string} takes no sparse vectors; KFlat(...,store=sparse) "
            "does, and so do indexes behind a hash or a map of faiss_ext, with "
            "store=sparse in Refine(KFlat(...)); FAISS's own transformations, "
            "such as PCA, take none")


class SparseVectors:
    """The rows of a sparse array, in the arrays that C++ takes."""

    def __init__(self, x, d, where):
        if len(x.shape) != 2 or x.shape[1] != d:
            raise ValueError(f"{where}: expected a sparse array of shape "
                             f"(n, {d}), got {x.shape}")
        if np.dtype(x.dtype).kind not in "fiub":
            raise TypeError(f"{where}: expected numbers, got a sparse array of "
                            f"{x.dtype}")
        x = to_csr(x, where)
        self.n = x.shape[0]
        self.d = d
        self.indptr = np.ascontiguousarray(x.indptr, dtype="int64")
        self.indices = as_columns(x, where)
        self.values = as_float32(x.data[:x.indptr[-1]], where,
                                 lambda at: place_of(x, at))

    def __len__(self):
        return self.n

    @property
    def shape(self):
        return self.n, self.d

    def arguments(self):
        return (self.n, self.d, *map(
            faiss.swig_ptr, (self.indptr, self.indices, self.values)))


class PackedVectors(SparseVectors):
    """The vectors of zeros and ones of packed bits, in the same arrays."""

    def __init__(self, x, d, where):
        codes = as_codes(x, -(-d // 8), where)
        self.n, self.d = len(codes), d
        rows = swig._BitRows(self.n, d, faiss.swig_ptr(codes))
        self.indptr = np.empty(self.n + 1, "int64")
        self.indices = np.empty(rows.size(), "int32")
        self.values = np.ones(len(self.indices), "float32")
        rows.copy_to(faiss.swig_ptr(self.indptr), faiss.swig_ptr(self.indices))

    def dense(self):
        x = np.zeros((self.n, self.d), "float32")
        x[np.repeat(np.arange(self.n), np.diff(self.indptr)), self.indices] = 1
        return x

    def csr(self):
        """A csr_matrix with a column for each bit."""
        from scipy.sparse import csr_matrix

        return csr_matrix((self.values, self.indices, self.indptr),
                          shape=(self.n, self.d))


def vectors_of_bits(x, packed, where):
    """The vectors of packed bits that tell their number themselves."""
    x = as_any_codes(x, where)
    return PackedVectors(x, number_of_bits(packed, x.shape[1], where), where)


def sparse_of_bits(x, packed, where):
    """Packed bits as a csr_matrix of float32 ones."""
    return vectors_of_bits(x, packed, where).csr()


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
    if isinstance(x, SparseVectors):
        return x
    if is_sparse(x):
        return SparseVectors(x, x.shape[-1], where)
    return DenseRows(as_matrix(x, where))


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
