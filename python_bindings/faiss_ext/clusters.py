# SPDX-License-Identifier: MIT
"""Clusters of similar vectors, and vectors that are as different as possible."""

import numpy as np

from . import swigfaiss_ext as swig
from .arguments import as_integer
from .duplicates import as_seed, checked, found_pairs
from .sparse_arrays import is_sparse


def butina_clusters(
    x: "ArrayLike", threshold: float = 0.65, kernel: "str | Kernel" = "jaccard",
    packed: bool = False
) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """Divides vectors into clusters around vectors with many neighbours.

    Neighbours of a vector are the vectors whose kernel value with it reaches
    the threshold. The vectors are visited from the one with the most neighbours
    to the one with the fewest; of equal numbers, the later vector comes first.
    A vector that is in no cluster yet becomes the centre of a new one, which
    gets all its neighbours that are in no cluster yet. The neighbours are found
    exactly. Clusters are the same as those of RDKit's `Butina.ClusterData` for
    the distance 1 - threshold.

    Parameters
    ----------
    x : array_like or sparse array, shape (n, d)
        The vectors. With `packed=True`, an array of uint8.
    threshold : float
        The least kernel value of neighbours, above 0.
    kernel : str or Kernel
        As for `near_duplicates`.
    packed : bool
        Whether each row of x has 8 bits of the vector in a byte, as
        `numpy.packbits` gives. Under jaccard, values are Tanimoto coefficients.

    Returns
    -------
    labels : int64, shape (n,)
        The number of each vector's cluster. Clusters are numbered in the order
        in which they are made.
    centres : int64, shape (number of clusters,)
        The vector in the centre of each cluster.

    References
    ----------
    D. Butina, Unsupervised data base clustering based on Daylight's fingerprint
    and Tanimoto similarity, J. Chem. Inf. Comput. Sci. 1999.

    Examples
    --------
    >>> labels, centres = faiss_ext.butina_clusters(
    ...     fingerprints, 0.65, packed=True)
    >>> sizes = np.bincount(labels)
    """
    pairs, _, _ = found_pairs(x, threshold, kernel, 0, packed, 0)
    n = x.shape[0] if is_sparse(x) else len(np.asarray(x))
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    counts = np.bincount(both[:, 0], minlength=n)
    ends = np.cumsum(counts)
    labels, centres = np.full(n, -1), []
    for i in np.lexsort((np.arange(n), counts))[::-1]:
        if labels[i] < 0:
            near = both[ends[i] - counts[i] : ends[i], 1]
            labels[near[labels[near] < 0]] = len(centres)
            labels[i] = len(centres)
            centres.append(i)
    return labels, np.array(centres, "int64")


def maxmin_picks(
    x: "ArrayLike", n_picks: int, kernel: "str | Kernel" = "jaccard",
    first: "int | None" = None, packed: bool = False, seed: int = 1234
) -> "tuple[NDArray[np.int64], NDArray[np.float32]]":
    """Picks vectors that are as different from each other as possible.

    Each pick is the vector whose largest kernel value with the earlier ones is
    the smallest; of equal ones, the first. The time is proportional to the
    number of vectors times the number of picks.

    Parameters
    ----------
    x : array_like or sparse array, shape (n, d)
        The vectors. With `packed=True`, an array of uint8.
    n_picks : int
        The number of picks, from 1 to n.
    kernel : str or Kernel
        A kernel with k(x, x) = 1 for every x, such as jaccard. Bandwidths must
        be set.
    first : int, optional
        The first pick. By default a random vector.
    packed : bool
        Whether each row of x has 8 bits of the vector in a byte, as
        `numpy.packbits` gives.
    seed : int
        Seed of the first pick.

    Returns
    -------
    picks : int64, shape (n_picks,)
        The vectors, in the order in which they are picked.
    values : float32, shape (n_picks,)
        The largest kernel value of each with the earlier ones; 0 for the first.

    References
    ----------
    M. Ashton et al., Identification of diverse database subsets using
    property-based and fragment-based molecular descriptions, Quantitative
    Structure-Activity Relationships 2002.

    Examples
    --------
    >>> picks, values = faiss_ext.maxmin_picks(fingerprints, 100, packed=True)
    """
    where = "maxmin_picks"
    rows, (kernel, *_) = checked(x, 1, kernel, 0, packed, seed, where)
    n, n_picks = len(rows), as_integer(n_picks, "n_picks", where)
    if not 1 <= n_picks <= n:
        raise ValueError(f"{where}: n_picks is {n_picks}, expected an integer "
                         f"from 1 to {n}")
    first = (int(np.random.default_rng(as_seed(seed, where)).integers(n))
             if first is None else as_integer(first, "first", where))
    if not 0 <= first < n:
        raise ValueError(f"{where}: first is {first}, expected an integer from "
                         f"0 to {n - 1}")
    if packed:
        kernel = swig.bit_kernel_factory(kernel.description())
        x = rows.codes
    elif not kernel._has_unit_vectors():
        raise ValueError(f"{where}: k(x, x) of {kernel.description()} varies, "
                         "expected a kernel for which it is 1")
    picks, values = np.empty(n_picks, "int64"), np.zeros(n_picks, "float32")
    largest = np.full(n, -np.inf, "float32")
    for i in range(n_picks):
        pick = first if i == 0 else int(np.argmin(largest))
        picks[i] = pick
        values[i] = largest[pick] if i else 0
        np.maximum(largest, kernel.gram(x[pick : pick + 1], x)[0], out=largest)
        largest[picks[: i + 1]] = np.inf  # is not picked again
    return picks, values
