# SPDX-License-Identifier: MIT
"""Clusters of similar vectors, and vectors that are as different as possible."""

from typing import Any, overload

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .advice import as_kernel
from .arguments import as_integer, as_matrix, shown
from .duplicates import PackedRows, as_seed
from .graphs import index_of_codes, neighbours
from .progress import Steps
from .sparse_arrays import is_sparse, to_csr


@overload
def butina_clusters(
    x: "ArrayLike", threshold: float = 0.65, kernel: "str | Kernel" = "jaccard",
    packed: bool = False, names: None = None
) -> "tuple[NDArray[np.int64], NDArray[np.int64]]": ...


@overload
def butina_clusters(
    x: "ArrayLike", threshold: float = 0.65, kernel: "str | Kernel" = "jaccard",
    packed: bool = False, *, names: "Sequence[str]"
) -> "tuple[NDArray[np.int64], list[list[str]]]": ...


def butina_clusters(
    x: "ArrayLike", threshold: float = 0.65, kernel: "str | Kernel" = "jaccard",
    packed: bool = False, names: "Sequence[str] | None" = None
) -> Any:
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
    kernel : str, Kernel or BitKernel
        As for `threshold_graph`.
    packed : bool
        Whether each row of x has 8 bits of the vector in a byte, as
        `numpy.packbits` gives. Under jaccard, values are Tanimoto coefficients.
    names : list or array of str, length n, optional
        Names of the vectors. With names, the clusters are returned instead of
        their centres.

    Returns
    -------
    labels : int64, shape (n,)
        The number of each vector's cluster. Clusters are numbered in the order
        in which they are made.
    centres : int64, shape (number of clusters,)
        The vector in the centre of each cluster. With names, a list of clusters
        instead: the list of each cluster's names, with the centre first.

    References
    ----------
    D. Butina, Unsupervised data base clustering based on Daylight's fingerprint
    and Tanimoto similarity, J. Chem. Inf. Comput. Sci. 1999.

    Examples
    --------
    >>> labels, centres = faiss_ext.butina_clusters(
    ...     fingerprints, 0.65, packed=True)
    >>> sizes = np.bincount(labels)

    Names instead of numbers:

    >>> _, clusters = faiss_ext.butina_clusters(
    ...     fingerprints, 0.65, packed=True, names=smiles)
    >>> for centre, *others in clusters:
    ...     print(centre, len(others))
    """
    where = "butina_clusters"
    ends, ids, _ = neighbours(x, threshold, kernel, packed, where)
    counts = np.diff(ends)
    n = len(counts)
    names = as_names(names, n, where)
    labels, centres = np.full(n, -1), []
    for i in np.lexsort((np.arange(n), counts))[::-1].tolist():
        if labels[i] < 0:
            near = ids[ends[i] : ends[i + 1]]
            labels[near[labels[near] < 0]] = len(centres)
            labels[i] = len(centres)
            centres.append(i)
    centres = np.array(centres, "int64")
    return labels, centres if names is None else members(labels, centres, names)


def members(labels, centres, names):
    """The names of each cluster, the centre first."""
    clusters = [[names[centre]] for centre in centres]
    for i, label in enumerate(labels):
        if i != centres[label]:
            clusters[label].append(names[i])
    return clusters


def as_names(names, n, where):
    if names is None:
        return None
    if isinstance(names, (str, bytes)) or not np.iterable(names):
        raise TypeError(f"{where}: names must be a list or an array, got "
                        f"{shown(names)}")
    names = list(names)
    if len(names) != n:
        raise ValueError(f"{where}: expected {n:,} names, one for each vector, "
                         f"got {len(names):,}")
    return names


@overload
def maxmin_picks(
    x: "ArrayLike", n_picks: int, kernel: "str | Kernel" = "jaccard",
    first: "int | None" = None, packed: bool = False, seed: int = 1234,
    names: None = None
) -> "tuple[NDArray[np.int64], NDArray[np.float32]]": ...


@overload
def maxmin_picks(
    x: "ArrayLike", n_picks: int, kernel: "str | Kernel" = "jaccard",
    first: "int | None" = None, packed: bool = False, seed: int = 1234,
    *, names: "Sequence[str]"
) -> "tuple[list[str], NDArray[np.float32]]": ...


def maxmin_picks(
    x: "ArrayLike", n_picks: int, kernel: "str | Kernel" = "jaccard",
    first: "int | None" = None, packed: bool = False, seed: int = 1234,
    names: "Sequence[str] | None" = None
) -> Any:
    """Picks vectors that are as different from each other as possible.

    Each pick is the vector whose largest kernel value with the earlier ones is
    the smallest; of equal ones, the first. The time is at most proportional to
    the number of vectors times the number of picks.

    Parameters
    ----------
    x : array_like or sparse array, shape (n, d)
        The vectors. With `packed=True`, an array of uint8.
    n_picks : int
        The number of picks, from 1 to n.
    kernel : str, Kernel or BitKernel
        A symmetric kernel with k(x, x) = 1 for every x, such as jaccard.
        Bandwidths must be set. With `packed=True`, a kernel of bits.
    first : int, optional
        The first pick. By default a random vector.
    packed : bool
        Whether each row of x has 8 bits of the vector in a byte, as
        `numpy.packbits` gives.
    seed : int
        Seed of the first pick.
    names : list or array of str, length n, optional
        Names of the vectors.

    Returns
    -------
    picks : int64, shape (n_picks,)
        The vectors, in the order in which they are picked. With names, a list
        of their names instead.
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
    vectors = (PickedCodes if packed else PickedVectors)(x, kernel, where)
    n, n_picks = vectors.index.ntotal, as_integer(n_picks, "n_picks", where)
    if not 1 <= n_picks <= n:
        raise ValueError(f"{where}: n_picks is {n_picks}, expected an integer "
                         f"from 1 to {n}")
    random = int(np.random.default_rng(as_seed(seed, where)).integers(n))
    first = random if first is None else as_integer(first, "first", where)
    if not 0 <= first < n:
        raise ValueError(f"{where}: first is {first}, expected an integer from "
                         f"0 to {n - 1}")
    names = as_names(names, n, where)
    picks, values = np.empty(n_picks, "int64"), np.zeros(n_picks, "float32")
    largest, steps = np.full(n, vectors.least, "float32"), Steps("picks", n_picks)
    for i in range(n_picks):
        pick = first if i == 0 else int(np.argmin(largest))
        picks[i] = pick
        values[i] = largest[pick] if i else 0
        # no vector has a smaller largest value, so that only values above change
        ids, found = vectors.above(pick, values[i] if i else vectors.least)
        largest[ids] = np.maximum(largest[ids], found)
        largest[picks[: i + 1]] = np.inf  # is not picked again
        steps(i + 1)
    return picks if names is None else [names[i] for i in picks], values


class PickedCodes:
    """Packed bits, from which maxmin_picks picks."""

    least = 0

    def __init__(self, x, kernel, where):
        self.codes = PackedRows(x, where).codes
        self.index = index_of_codes(self.codes, kernel, where)
        one = np.array([1], "uint8")
        if self.index.kernel(one, one) < 1:
            raise varies(self.index.kernel, where)

    def above(self, i, value):
        """The vectors whose kernel value with one of them is above a value, and
        some others; and the values."""
        # float32 has rounded the value by less than 64 units of distance
        radius = min(self.index.distance(float(value)) + 64, 2**30)
        _, distances, ids = self.index.range_search(self.codes[i : i + 1], radius)
        return ids, 1 - distances / 2**30


class PickedVectors:
    """Dense or sparse vectors, from which maxmin_picks picks."""

    least = -np.finfo("float32").max

    def __init__(self, x, kernel, where):
        kernel = as_kernel(kernel)
        if not kernel._has_unit_vectors():
            raise varies(kernel, where)
        self.x = to_csr(x, where) if is_sparse(x) else as_matrix(x, where)
        make = swig.IndexSparseKernel if is_sparse(x) else swig.IndexFlatKernel
        self.index = make(self.x.shape[1], kernel, faiss.METRIC_INNER_PRODUCT)
        self.index.add(self.x)

    def above(self, i, value):
        _, values, ids = self.index.range_search(self.x[i : i + 1], float(value))
        return ids, values


def varies(kernel, where):
    return ValueError(f"{where}: k(x, x) of {kernel.description()} varies, "
                      "expected a kernel for which it is 1")
