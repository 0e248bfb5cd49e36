# SPDX-License-Identifier: MIT
"""What kernel values the distances of an index mean, by measurement."""

import math

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .advice import trained_kernel
from .parameters import real


class Calibration:
    """Kernel values of the results of searches, by their distance.

    A distance is looked up among the measured results nearest to it by rank: at
    least `width`, and all that are equally far. That needs no theory, so that
    it holds for learnt and structured codes, for maps and for FAISS's own
    indexes. Distances outside of those measured give NaN.

    Attributes
    ----------
    distances : float64, shape (m,)
        Of the measured results, ascending.
    values : float64, shape (m,)
        Their kernel values.
    width : int
        The least number of results that an answer is taken from.
    """

    def __init__(self, distances: "ArrayLike", values: "ArrayLike",
                 width: int = 200):
        distances = np.asarray(distances, dtype="float64").ravel()
        values = np.asarray(values, dtype="float64").ravel()
        if len(distances) != len(values) or len(distances) == 0:
            raise ValueError("Calibration: expected as many kernel values as "
                             f"distances, and some, got {len(values)} and "
                             f"{len(distances)}")
        if not (np.isfinite(distances).all() and np.isfinite(values).all()):
            raise ValueError("Calibration: expected finite numbers")
        if width < 1:
            raise ValueError(f"Calibration: width is {width}, expected a "
                             "positive number")
        order = np.argsort(distances, kind="stable")
        self.distances, self.values = distances[order], values[order]
        self.width = min(int(width), len(values))

    def value(self, D: "ArrayLike") -> "NDArray[np.float64]":
        """The mean kernel value of results at each distance.

        Parameters
        ----------
        D : array_like
            Distances that the index has returned, of any shape.
        """
        return self._looked_up(D, np.mean, self.width)

    def interval(
        self, D: "ArrayLike", failure: float = 0.05
    ) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
        """Between which the kernel value of a further result at each distance
        lies, except with probability `failure`.

        The two are order statistics of the measured values: if a further result
        is drawn as these were, it lies outside with at most that probability,
        whatever the distribution. The share is that of all results together;
        those of one query may lie outside together.

        Parameters
        ----------
        D : array_like
            Distances that the index has returned, of any shape.
        failure : float
            From 0 to 1; at least 2 / (m + 1) with m measured results.
        """
        if not 0 < failure < 1:
            raise ValueError(f"Calibration.interval: failure is {failure}, "
                             "expected a probability between 0 and 1")
        needed = math.ceil(2 / failure - 1)
        if needed > len(self.values):
            raise ValueError(
                f"Calibration.interval: failure {failure} needs {needed} "
                f"measured results, there are {len(self.values)}")
        width = max(self.width, needed)

        def ends(values):
            ascending = np.sort(values)
            j = int(failure * (len(ascending) + 1) / 2)
            return ascending[j - 1], ascending[-j]

        low_and_high = self._looked_up(D, ends, width, 2)
        return low_and_high[..., 0], low_and_high[..., 1]

    def _looked_up(self, D, function, width, size=None):
        D = np.asarray(D, dtype="float64")
        distances, inverse = np.unique(D, return_inverse=True)
        shape = () if size is None else (size,)
        found = np.full((len(distances), *shape), np.nan)
        n = len(self.distances)
        for i, d in enumerate(distances):
            if not self.distances[0] <= d <= self.distances[-1]:
                continue
            begin = np.searchsorted(self.distances, d, "left")
            end = np.searchsorted(self.distances, d, "right")
            lacking = max(0, width - (end - begin))
            begin = max(0, begin - (lacking + 1) // 2)
            end = min(n, max(end + lacking // 2, begin + width))
            begin = max(0, min(begin, end - width))
            found[i] = function(self.values[begin:end])
        return found[inverse.ravel()].reshape(D.shape + shape)


def calibrate(
    index: "faiss.Index | faiss.IndexBinary", base: "ArrayLike",
    queries: "ArrayLike",
    kernel: "str | Kernel | Callable[..., ArrayLike] | None" = None,
    k: int = 10, width: int = 200
) -> Calibration:
    """Measures which kernel values the distances of an index mean.

    Parameters
    ----------
    index : faiss.Index or faiss.IndexBinary
        Holds the vectors `base`, with their positions as ids.
    base : array_like, shape (n, d)
        The vectors.
    queries : array_like, shape (nq, d)
        Like those that the answers are for, and not among the vectors.
    kernel : str, Kernel or callable, optional
        By default that of the scheme, by its `kernel_value`.
    k : int
        Neighbours of each query that are measured: as many as the searches take
        that the answers are for. At the same distance the results of a longer
        search have other kernel values.
    width : int
        The least number of results that an answer is taken from.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> measured = faiss_ext.calibrate(index, xb, held_out, "chi2")
    >>> D, I = index.search(xq, 10)
    >>> measured.value(D)                    # mean kernel values
    >>> low, high = measured.interval(D)     # where 95 in 100 lie
    """
    base = np.ascontiguousarray(base, dtype="float32")
    queries = np.ascontiguousarray(queries, dtype="float32")
    if base.ndim != 2 or queries.ndim != 2 or len(queries) == 0 or (
            base.shape[1] != queries.shape[1]):
        raise ValueError("calibrate: expected vectors and queries of shapes "
                         f"(n, d) and (nq, d), got {base.shape} and "
                         f"{queries.shape}")
    if index.ntotal != len(base):
        raise ValueError(f"calibrate: the index holds {index.ntotal} vectors, "
                         f"base has {len(base)}")
    D, ids = index.search(queries, k)
    if kernel is None:
        values_of = values_by_scheme(index)
    else:
        trained = trained_kernel(kernel, base)

        def values_of(query, rows):
            return trained.gram(query[None], rows)[0]

    distances, values = [], []
    for query, d, i in zip(queries, D, ids):
        d, i = d[i >= 0], i[i >= 0]
        if len(i):
            if i.max() >= len(base):
                raise ValueError(f"calibrate: the index holds the id {i.max()},"
                                 f" expected positions below {len(base)}")
            distances.append(d)
            values.append(values_of(query, base[i]))
    if not values:
        raise ValueError("calibrate: the searches found nothing")
    return Calibration(np.concatenate(distances), np.concatenate(values),
                       width)


def values_by_scheme(index):
    index = real(index)
    while isinstance(index, (faiss.IndexIDMap, faiss.IndexBinaryIDMap)):
        index = real(index.index)
    if not isinstance(index, (swig.IndexKernelHash, swig.IndexBinaryKernelHash,
                              swig.IndexAsymmetricHash)):
        raise ValueError("calibrate: name the kernel, which "
                         f"{type(index).__name__} does not know")
    hash = index.hash
    return lambda query, rows: [hash.kernel_value(query, row) for row in rows]
