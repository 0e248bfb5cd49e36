# SPDX-License-Identifier: MIT
"""Graphs of the vectors whose kernel values reach a threshold."""

import numpy as np

from .arguments import as_packed
from .duplicates import found_pairs, number_of_rows
from .packed_rows import neighbours_of_codes


def threshold_graph(
    x: "ArrayLike", threshold: float = 0.8,
    kernel: "str | Kernel | BitKernel" = "jaccard",
    packed: "bool | int | None" = None
) -> "Any":
    """Makes the graph of the vectors whose kernel value reaches a threshold.

    The graph is symmetric, and no vector has an edge to itself. It has all
    edges. `near_duplicates` gives each pair once, and is faster for many dense
    vectors, because it may miss a few pairs. For DBSCAN and HDBSCAN, which take
    distances, use `faiss_ext.sklearn.KernelNeighborsTransformer`. Needs SciPy.

    Parameters
    ----------
    x : array_like or sparse array, shape (n, d)
        The vectors. With `packed=True`, an array of uint8.
    threshold : float
        The least kernel value of an edge, above 0. A kernel value that is equal
        to the threshold as a float32 reaches it.
    kernel : str, Kernel or BitKernel
        As for `near_duplicates`. With `packed=True`, a symmetric kernel of bits
        (`bit_kernel_names`).
    packed : bool or int, optional
        As for `near_duplicates`.

    Returns
    -------
    scipy.sparse.csr_matrix of float32, shape (n, n)
        The kernel values; with `packed=True`, rounded by at most 2^-24. The
        columns of each row ascend. Row and column i stand for vector i of x, so
        a list of names applies to both.

    Raises
    ------
    ValueError
        If x is not an array of vectors, if the threshold is out of range, or if
        the kernel is not symmetric.
    TypeError
        If the threshold is not a number, or if packed bits are not uint8.
    RuntimeError
        If the kernel is unknown or has no bound, or if it is not defined on a
        vector.

    Examples
    --------
    The vectors that are connected with each other:

    >>> graph = faiss_ext.threshold_graph(fingerprints, 0.7, packed=True)
    >>> number, labels = scipy.sparse.csgraph.connected_components(graph)
    """
    from scipy.sparse import csr_matrix

    ends, ids, values = neighbours(x, threshold, kernel, packed, "threshold_graph")
    n = len(ends) - 1
    return csr_matrix((values, ids, ends), shape=(n, n))


def neighbours(x, threshold, kernel, packed, where):
    """All vectors whose kernel value with each vector reaches the threshold,
    without itself, as CSR: the ends of the rows, ids that ascend, and values."""
    packed = as_packed(packed, x, kernel, where)
    if packed:
        return neighbours_of_codes(x, threshold, kernel, packed, where)
    pairs, values, _ = found_pairs(x, threshold, kernel, 0, False, 0, where)
    n = number_of_rows(x)
    rows, ids = np.concatenate([pairs, pairs[:, ::-1]]).T
    order = np.lexsort((ids, rows))
    ends = np.append(0, np.cumsum(np.bincount(rows, minlength=n)))
    return ends, ids[order], np.concatenate([values, values])[order]
