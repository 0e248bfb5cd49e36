# SPDX-License-Identifier: MIT
"""Kernel values of search results."""

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .arguments import (
    as_array, as_ids, as_vectors, check_number_of_bits, checked_packed)
from .errors import renumbering
from .index_tree import (
    hash_before, kernel_of, part_that_compares, transforms_of)
from .parameters import is_sharded
from .sparse_arrays import as_csr, as_row, is_sparse
from .sparse_vectors import PackedVectors, SparseVectors


def kernel_values(
    index: "faiss.Index | faiss.IndexBinary | ShardedIndex", D: "ArrayLike",
    I: "ArrayLike | None" = None, xq: "ArrayLike | None" = None,
    lims: "ArrayLike | None" = None, *, packed: bool = False
) -> "NDArray[np.float64]":
    """Returns the kernel values of search results.

    Values are exact if the index compares vectors under a kernel, as `KFlat`,
    `HNSW,KFlat`, `Refine(KFlat)` and `BKFlat` do. For indexes of codes they
    are estimates by the scheme's `kernel_estimate` or
    `asymmetric_kernel_estimate`, which are meaningless for vectors of zeros.
    The parts of Shards and Replicas must be alike.

    When to pass `I` and `xq`:

    - Not needed for codes, under METRIC_INNER_PRODUCT, and for kernels with
      k(x, x) = 1 for every x: gaussian, laplacian, matern, jaccard and
      expchi2.
    - Needed under METRIC_L2 for all other kernels, including cosine and
      normalized ones, whose k(x, x) is 0 for vectors of zeros.

    Under METRIC_L2, with `I` and `xq`, values are computed from the stored
    vectors for every kernel. Even values too small to be derived from a
    distance are then exact.

    Parameters
    ----------
    index : faiss.Index, faiss.IndexBinary or ShardedIndex
        The index that was searched, unchanged since.
    D : array_like
        Distances from search or range_search, of any shape.
    I : array_like of int, of the shape of D, optional
        Ids of the same results.
    xq : array_like or sparse array, shape (n, d), optional
        The queries. For the results of one query, D[i] and I[i], pass a query
        of shape (d,); a sparse one may have the shape (1, d).
    lims : array_like of int, shape (n + 1,), optional
        From range_search: query i has the results lims[i] to lims[i + 1].
    packed : bool, optional
        Whether the rows of xq are packed bits, as numpy.packbits gives.

    Returns
    -------
    float64, of the shape of D; NaN for padding (no neighbour)

    Raises
    ------
    ValueError
        If distances do not determine kernel values: for feature maps and
        FAISS's own indexes, or if `I` and `xq` are needed and missing.
    RuntimeError
        If a query is not valid under the kernel, or if the index has no vector
        with an id.

    Examples
    --------
    >>> D, I = index.search(xq, 10)
    >>> kernel_values(index, D, I, xq)
    >>> lims, D, I = index.range_search(xq, radius)
    >>> kernel_values(index, D, I, xq, lims)
    """
    model = index.model if is_sharded(index) else index
    if not isinstance(model, (faiss.Index, faiss.IndexBinary)):
        raise TypeError(f"kernel_values: expected an index, got {index!r}")
    if (I is None) != (xq is None) or lims is not None and I is None:
        raise TypeError(
            "kernel_values: pass I and xq together, and both with lims: expected "
            "kernel_values(index, D, I, xq), or kernel_values(index, D, I, xq, "
            "lims) after range_search")
    D = as_array(D, "kernel_values: D")
    is_binary = isinstance(model, faiss.IndexBinary)
    part = part_that_compares(model)
    kind = swig._distance_kind(part)
    packed = checked_packed(packed, "kernel_values")
    if packed and xq is not None:
        xq = queries_of_bits(model, part, xq, packed)
    are_integers = is_binary or kind == "hamming"
    if D.size and D.dtype.kind not in ("iuf" if are_integers else "f"):
        raise TypeError("kernel_values: D must be an array of distances, which "
                        f"are floats, got {D.dtype}")
    if (I is not None and kind == "kernel"
            and part.metric_type == faiss.METRIC_L2):
        values = values_of_results(index, model.d, D, I, xq, lims)
    else:
        if I is not None:
            check_unused(model, part, D, I, xq, lims)
        values = values_of(part, D)
    missing = (np.iinfo("int32") if is_binary else np.finfo("float32")).max
    is_missing = np.abs(D.astype("float64")) >= missing
    if I is not None:
        is_missing |= as_ids(I, D.shape, "kernel_values: I") == -1
    return np.where(is_missing, np.nan, values.astype("float64", copy=False))


def queries_of_bits(model, part, xq, packed):
    """Queries of packed bits in the form that an index takes."""
    is_binary = isinstance(model, faiss.IndexBinary)
    hash = hash_before(part) if is_binary else None
    width = model.d if hash is None else hash.d_in
    check_number_of_bits(packed, width, "kernel_values")
    if is_binary and hash is None:
        return xq
    xq = as_array(xq, "kernel_values: xq")
    x = PackedVectors(np.atleast_2d(xq), width, "kernel_values: xq").dense()
    return x[0] if xq.ndim == 1 else x


def of_inner_product(distances):
    return distances


def of_squared_distance(distances):
    return 1 - distances / 2


def of_integer_distance(distances):
    # padding is farther than 2^30
    return np.where(distances <= 2**30, 1 - distances / 2**30, np.nan)


def exact_values(index):
    """Returns the kernel value as a function of the distance.

    Returns None if the index does not compare vectors under a kernel, or if
    the distance alone does not determine the kernel value.
    """
    index = part_that_compares(index)
    kind = swig._distance_kind(index)
    if kind == "scaled":
        return of_integer_distance
    if kind == "kernel":
        if index.metric_type == faiss.METRIC_INNER_PRODUCT:
            return of_inner_product
        if kernel_of(index)._has_unit_vectors():
            return of_squared_distance
    return None


def values_of(index, D):
    """Kernel values at the distances of a part that compares vectors."""
    distances = D.astype("float64")
    exact = exact_values(index)
    if exact is of_squared_distance and np.any(
            ((distances < -1e-3) | (distances > 4 + 1e-3))
            & (np.abs(distances) < np.finfo("float32").max)):
        raise ValueError("kernel_values: D must be squared distances under a "
                         "kernel with k(x, x) = 1, which are from 0 to 4")
    if exact is of_integer_distance and np.any(
            (distances < 0)
            | (distances > 2**30) & (distances < np.iinfo("int32").max)):
        raise ValueError("kernel_values: D must be distances of "
                         f"{type(index).__name__}, which are from 0 to 2^30")
    if exact is not None:
        return exact(distances)
    kind = swig._distance_kind(index)
    if kind == "kernel":
        raise ValueError(
            f"kernel_values: the values of {kernel_of(index).description()} cannot "
            "be computed from distances alone, because k(x, x) varies; pass the "
            "ids and queries: kernel_values(index, D, I, xq), or "
            "kernel_values(index, D, I, xq, lims) after range_search")
    if kind in ("hamming", "asymmetric"):
        hash = hash_before(index)
        if index.metric_type == faiss.METRIC_INNER_PRODUCT:
            distances = (hash.nbits - distances) / 2
        estimate = hash.asymmetric_kernel_estimate
        if kind == "hamming":
            estimate = hash.kernel_estimate
            check_hamming(D, distances, hash.nbits)
        return estimate(np.clip(distances, 0, hash.nbits))
    raise ValueError("kernel_values: kernel values cannot be computed from the "
                     f"distances of {type(index).__name__}; use an index with "
                     "Refine(KFlat(...))")


def check_hamming(D, distances, nbits):
    """Raises an error for numbers that are neither Hamming distances nor padding."""
    wrong = (distances < 0) | (distances > nbits)
    wrong &= np.abs(D) < np.iinfo("int32").max
    if wrong.any():
        raise ValueError(f"kernel_values: D must be distances of codes with "
                         f"{nbits} bits, got {D[wrong][0]}")


# ------------------------------------- values from queries and stored vectors

def values_of_results(index, d, D, I, xq, lims):
    """Kernel values of the queries and the stored vectors of their results."""
    I = as_ids(I, D.shape, "kernel_values: I")
    xq, is_one = as_queries(xq, D, lims)
    if lims is not None:
        queries, ids, place = in_rows(I, lims, xq.shape[0])
        x = as_vectors_for(xq, d)
        with renumbering(queries):
            return values_of_ids(index, x[queries], ids)[place]
    if is_one:
        return values_of_results(index, d, D[None], I[None], xq, None)[0]
    x = as_vectors_for(xq, d)
    check_rows(D, x)
    return values_of_ids(index, x, I)


def as_queries(xq, D, lims):
    """Queries, and whether they are one query with one row of results."""
    if is_sparse(xq):
        is_one = lims is None and D.ndim == 1 and xq.shape[:-1] in ((), (1,))
        return as_row(xq, "kernel_values: xq") if is_one else xq, is_one
    xq = as_array(xq, "kernel_values: xq")
    is_one = lims is None and D.ndim == xq.ndim == 1
    return xq[None] if is_one else xq, is_one


def as_vectors_for(xq, d):
    """Queries of dimension d, dense or sparse."""
    as_rows = as_csr if is_sparse(xq) else as_vectors
    return as_rows(xq, d, "kernel_values: xq")


def check_rows(D, xq):
    """Raises an error unless each query has a row of results."""
    if D.ndim != 2 or len(D) != xq.shape[0]:
        raise ValueError(
            f"kernel_values: D has shape {D.shape} and xq {xq.shape}, expected "
            "(n, k) and (n, d), or lims of range_search")


def check_unused(model, part, D, I, xq, lims):
    """Checks ids and queries that are given although distances suffice."""
    I = as_ids(I, D.shape, "kernel_values: I")
    xq, is_one = as_queries(xq, D, lims)
    if is_one:
        D = D[None]
    width = model.d
    if isinstance(model, faiss.IndexBinary):
        hash = hash_before(part)
        takes_codes = hash is None or xq.shape[1:] == (model.code_size,)
        width = model.code_size if takes_codes else hash.d_in
    as_vectors_for(xq, width)
    if lims is None:
        check_rows(D, xq)
    else:
        in_rows(I, lims, xq.shape[0])


def in_rows(I, lims, n):
    """Arranges the results of a range search in rows of ids, padded with -1.

    Returns the query of each row, the rows, and the position of each result in
    them.
    """
    lims = as_ids(lims, (n + 1,), "kernel_values: lims", "numbers")
    if lims[0] != 0 or lims[-1] != I.size or (
            I.ndim != 1 or (np.diff(lims) < 0).any()):
        raise ValueError(
            f"kernel_values: expected lims to ascend from 0 to {I.size}, the "
            f"number of results, with {n + 1} numbers for {n} queries")
    counts = np.diff(lims)
    width = int(np.clip(counts.max(initial=1), 1, 64))
    rows = -(-counts // width)
    before = np.cumsum(rows) - rows
    place = np.arange(I.size) - np.repeat(lims[:-1], counts)
    place = np.repeat(before, counts) + place // width, place % width
    ids = np.full((rows.sum(), width), -1)
    ids[place] = I
    return np.repeat(np.arange(n), rows), ids, place


def values_of_ids(index, x, ids):
    """Kernel values of each query and the stored vectors of its own row of
    ids.

    The index must compare vectors under a kernel. Values at id -1 are
    arbitrary.
    """
    if is_sharded(index):
        return index._kernel_values(x, ids)
    ids = np.ascontiguousarray(ids, dtype="int64")
    values = np.empty(ids.shape, "float32")
    results = ids.shape[1], faiss.swig_ptr(ids), faiss.swig_ptr(values)
    if is_sparse(x):
        rows = SparseVectors(x, index.d, "kernel_values: xq")
        swig._compute_kernel_values_sparse_c(
            index, *rows.arguments(), *results)
    else:
        swig._compute_kernel_values_c(
            index, len(x), faiss.swig_ptr(x), *results)
    return values


def transformed(index, x):
    """Vectors as the parts of an index see them."""
    if is_sparse(x):
        if not transforms_of(index):
            return x
        rows = SparseVectors(x, index.d, "transformed")
        return faiss.vector_to_array(swig._transformed_sparse_c(
            index, *rows.arguments())).reshape(len(rows), -1)
    return faiss.vector_to_array(swig._transformed_c(
        index, len(x), faiss.swig_ptr(x))).reshape(len(x), -1)
