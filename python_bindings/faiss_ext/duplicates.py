# SPDX-License-Identifier: MIT
"""Pairs and groups of vectors that are nearly the same."""

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .advice import as_kernel
from .arguments import shown
from .sparse_vectors import as_rows


def near_duplicates(
    x: "ArrayLike", threshold: float = 0.8, kernel: "str | Kernel" = "jaccard"
) -> "tuple[NDArray[np.int64], NDArray[np.float32]]":
    """Finds all pairs of vectors whose kernel value reaches a threshold.

    No pair is missed. Inverted lists of the rarest columns of each vector tell
    which pairs can reach the threshold, and the kernel compares these. This is
    fast for texts and other sparse vectors, in which near-duplicates share rare
    columns. It takes time proportional to the number of all pairs if all
    columns are frequent, or if the threshold is low.

    Parameters
    ----------
    x : array_like or sparse array, shape (n, d)
        The vectors: an array, or a sparse array or matrix of SciPy. For sets,
        the components are 0 and 1.
    threshold : float
        The least kernel value of a pair, above 0. A kernel value that is equal
        to the threshold as a float32 reaches it.
    kernel : str or Kernel
        A kernel with a bound by the components that two vectors share: jaccard,
        cosine, chi2, intersection, js, hellinger, `normalized(...)` of one of
        these, linear, poly, gaussian, laplacian, matern or expchi2. Bandwidths
        must be set.

    Returns
    -------
    pairs : int64, shape (m, 2)
        The two vectors of each pair, i < j, in ascending order.
    values : float32, shape (m,)
        Their kernel values. Equal vectors have the value k(x, x).

    Raises
    ------
    ValueError
        If x is not an array of vectors, or if the threshold is not a number.
    RuntimeError
        If the kernel has no bound, if it is not defined on a vector, or if the
        threshold is not positive or exceeds all values of the kernel.

    See Also
    --------
    near_duplicate_groups : the groups of vectors that the pairs connect

    Examples
    --------
    >>> x = CountVectorizer(binary=True).fit_transform(texts)
    >>> pairs, values = faiss_ext.near_duplicates(x, 0.8)
    >>> for (i, j), value in zip(pairs, values):
    ...     print(value, texts[i], texts[j])
    """
    where = "near_duplicates"
    rows, kernel, threshold = checked(x, kernel, threshold, where)
    result = faiss.RangeSearchResult(len(rows))
    swig._near_duplicates_c(*rows.arguments(), kernel, threshold, result)
    lims = faiss.rev_swig_ptr(result.lims, len(rows) + 1).astype("int64")
    pairs = np.empty((lims[-1], 2), "int64")
    pairs[:, 0] = np.repeat(np.arange(len(rows)), np.diff(lims))
    pairs[:, 1] = faiss.rev_swig_ptr(result.labels, len(pairs))
    return pairs, faiss.rev_swig_ptr(result.distances, len(pairs)).copy()


def near_duplicate_groups(
    x: "ArrayLike", threshold: float = 0.8, kernel: "str | Kernel" = "jaccard"
) -> "NDArray[np.int64]":
    """Divides vectors into groups of near-duplicates.

    Two vectors are in one group if a chain of pairs connects them whose kernel
    values reach the threshold. This takes less time and memory than
    `near_duplicates` if there are many pairs.

    Parameters
    ----------
    x : array_like or sparse array, shape (n, d)
        The vectors.
    threshold : float
        As for `near_duplicates`.
    kernel : str or Kernel
        As for `near_duplicates`.

    Returns
    -------
    int64, shape (n,)
        The first vector of each vector's group. A vector that is like no other
        has its own number.

    Raises
    ------
    ValueError, RuntimeError
        As `near_duplicates` does.

    Examples
    --------
    One text of each group:

    >>> groups = faiss_ext.near_duplicate_groups(x, 0.8)
    >>> kept = np.unique(groups)
    """
    where = "near_duplicate_groups"
    rows, kernel, threshold = checked(x, kernel, threshold, where)
    groups = np.empty(len(rows), "int64")
    swig._near_duplicate_groups_c(
        *rows.arguments(), kernel, threshold, faiss.swig_ptr(groups))
    return groups


def checked(x, kernel, threshold, where):
    """The rows, the kernel and the threshold as C++ takes them."""
    return as_rows(x, where), as_kernel(kernel), as_threshold(threshold, where)


def as_threshold(threshold, where):
    if isinstance(threshold, (str, bytes)) or np.ndim(threshold) != 0:
        raise TypeError(f"{where}: the threshold must be a number, got "
                        f"{shown(threshold)}")
    try:
        threshold = float(threshold)
    except (TypeError, ValueError):
        raise TypeError(f"{where}: the threshold must be a number, got "
                        f"{shown(threshold)}") from None
    if not abs(threshold) <= np.finfo("float32").max:
        raise ValueError(f"{where}: the threshold is {threshold}, expected a "
                         "number above 0")
    return threshold
