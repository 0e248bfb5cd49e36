# SPDX-License-Identifier: MIT
"""Calibration: the kernel values that belong to the distances of an index, as
measured on held-out queries."""

import math
import numbers
import re
import typing
import warnings
from typing import Any

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .advice import trained_kernel
from .arguments import (
    as_array, as_matrix, as_packed, check_number_of_bits, is_only_of_bits,
    python_number)
from .distances import exact_values
from .index_tree import (
    hash_before, kernel_of, part_that_compares, parts_of, transforms_of)
from .showing import class_name
from .sparse_arrays import as_csr, is_sparse
from .sparse_vectors import sparse_of_bits, takes_sparse


FARTHEST = float(np.finfo("float32").max)  # the distance of padding


class Calibration:
    """Kernel values of search results, estimated from their distances.

    A distance is compared with the measured results nearest to it by rank: at
    least `width` results, including all results at the same distance. This
    uses no theory, so it also works for learnt and structured codes, for maps,
    and for FAISS's own indexes. Distances outside the measured range give NaN.
    Only `interval` also handles distances below the range.

    Attributes
    ----------
    distances : float64, shape (m,)
        Distances of the measured results, ascending.
    values : float64, shape (m,)
        Kernel values of the measured results.
    width : int
        Least number of measured results that an estimate uses.
    maximum : float
        Upper bound of all kernel values.
    exact : callable or None
        The kernel value as a function of the distance, if there is such a
        function. It then replaces the measured results.
    """

    distances: "NDArray[np.float64]"
    values: "NDArray[np.float64]"
    width: int
    maximum: float
    exact: "Callable | None"

    def __init__(self, distances: "ArrayLike", values: "ArrayLike",
                 width: int = 200, *, maximum: float = math.inf,
                 exact: "Callable | None" = None):
        distances = np.asarray(distances, dtype="float64").ravel()
        values = np.asarray(values, dtype="float64").ravel()
        if len(distances) != len(values) or len(distances) == 0:
            raise ValueError("Calibration: expected as many kernel values as "
                             f"distances, and some, got {len(values)} and "
                             f"{len(distances)}")
        if not (np.isfinite(distances).all() and np.isfinite(values).all()):
            raise ValueError("Calibration: expected finite numbers")
        width = as_width(width)
        order = np.argsort(distances, kind="stable")
        self.distances, self.values = distances[order], values[order]
        self.width = min(width, len(values))
        self.maximum, self.exact = maximum, exact
        rank = np.arange(len(values)) - (len(values) - 1) / 2
        # whether values grow with the distance
        self._values_grow = bool(rank @ self.values > 0)

    def __repr__(self) -> str:
        if self.exact is not None:
            return f"Calibration(exact, {len(self.values)} results)"
        low, high = self.values.min(), self.values.max()
        return (f"Calibration({len(self.values)} results, distances from "
                f"{self.distances[0]:g} to {self.distances[-1]:g}, kernel "
                f"values from {low:.3g} to {high:.3g}, width={self.width})")

    def value(self, D: "ArrayLike") -> "NDArray[np.float64]":
        """The mean kernel value of results at each distance.

        Distances outside the measured range give NaN. They occur if a query is
        in the index, or if a search is longer than the measured ones. Within
        `width` / 2 results of the smallest or the largest measured distance,
        the mean is that of the outermost `width` results, which lie on one
        side of the distance.

        Parameters
        ----------
        D : array_like
            Distances that the index has returned, of any shape.

        Returns
        -------
        float64, of the shape of D
        """
        if self.exact is not None:
            return self._exactly(D)

        def mean(window):
            return np.nan if window is None else window.values.mean()

        return self._looked_up(D, mean, self.width)[..., 0]

    def interval(
        self, D: "ArrayLike", failure: float = 0.05
    ) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
        """The interval that contains the kernel value of a further result at
        each distance, except with probability about `failure`.

        Parameters
        ----------
        D : array_like
            Distances that the index has returned, of any shape.
        failure : float
            Between 0 and 1; at least 2 / (m + 1) with m measured results.

        Returns
        -------
        low, high : float64, of the shape of D
            Both are the kernel value itself if it is a function of the
            distance.

        Notes
        -----
        The limits are order statistics of the measured values around a
        distance. If the results of further searches are drawn as the measured
        ones were, about the fraction `failure` of all of them together lies
        outside. It would be at most `failure` if results were independent and
        kernel values did not depend on the distance within a window. The
        fraction can be larger for the results of one query, which may lie
        outside together, for first neighbours, and at single distances.

        Near the ends of the measured range there are too few results on one
        side:

        - With fewer than `width` / 2 nearer results, the upper limit is the
          largest value of the outermost results.
        - With fewer than 2 / `failure` - 1 results as near, and for distances
          below all measured ones, the upper limit is `maximum`.
        - Near the largest distances, the lower limit is the least value of the
          outermost results.

        If kernel values grow with the distance, as under METRIC_INNER_PRODUCT,
        the two ends are interchanged.
        """
        failure = python_number(failure)
        if isinstance(failure, bool) or not isinstance(failure, numbers.Real):
            raise TypeError("Calibration.interval: failure must be a number, "
                            f"got {failure!r}")
        if not 0 < failure < 1:
            raise ValueError(f"Calibration.interval: failure is {failure}, "
                             "expected a probability between 0 and 1")
        if self.exact is not None:
            return self._exactly(D), self._exactly(D)
        needed = np.ceil(2 / failure - 1)
        if needed > len(self.values):
            raise ValueError(
                f"Calibration.interval: failure {failure} needs {needed:.10g} "
                f"measured results, there are {len(self.values)}")
        width = max(self.width, int(needed))

        def ends(window):
            if window is None:
                return self._outermost(width).min(), self.maximum
            ascending = np.sort(window.values)
            j = int(failure * (len(ascending) + 1) / 2)
            low, high = ascending[j - 1], ascending[-j]
            near_end, far_end = window.cut
            as_near = window.up_to
            if self._values_grow:
                near_end, far_end = far_end, near_end
                as_near = window.onwards
            if far_end:
                low = ascending[0]
            if near_end:
                high = ascending[-1]
                if as_near < needed:
                    high = max(high, self.maximum)
            return low, high

        low_and_high = self._looked_up(D, ends, width)
        return low_and_high[..., 0], low_and_high[..., 1]

    def _exactly(self, D):
        D = as_array(D, "Calibration").astype("float64")
        return np.where(np.abs(D) < FARTHEST, self.exact(D), np.nan)

    def _outermost(self, width):
        """The values at the end of the range that has the largest kernel
        values."""
        return (self.values[-width:] if self._values_grow
                else self.values[:width])

    def _looked_up(self, D, function, width):
        """Applies a function to the Window at each distance.

        The function gets None for distances beyond the end that has the
        largest kernel values. Beyond the other end the result is NaN.
        """
        D = as_array(D, "Calibration").astype("float64")
        distances, inverse = np.unique(D, return_inverse=True)
        size = np.size(function(None))
        found = np.full((len(distances), size), np.nan)
        for i, d in enumerate(distances):
            if self.distances[0] <= d <= self.distances[-1]:
                found[i] = function(self._window(d, width))
            elif abs(d) < FARTHEST and (
                    d > self.distances[-1] if self._values_grow
                    else d < self.distances[0]):
                found[i] = function(None)
        return found[inverse.ravel()].reshape(D.shape + (size,))

    def _window(self, d, width):
        n = len(self.distances)
        first = np.searchsorted(self.distances, d, "left")
        up_to = np.searchsorted(self.distances, d, "right")
        lacking = max(0, width - (up_to - first))
        begin, end = first - (lacking + 1) // 2, up_to + lacking // 2
        cut = begin < 0, end > n
        begin = max(0, begin)
        end = min(n, max(end, begin + width))
        begin = max(0, min(begin, end - width))
        return Window(self.values[begin:end], cut, up_to, n - first)


class Window(typing.NamedTuple):
    """The measured results around a distance."""

    values: np.ndarray
    cut: tuple  # whether there are too few before it, and after it
    up_to: int  # number of measured results at most at this distance
    onwards: int  # number of measured results at least at this distance


def as_width(width):
    """A width as an int; raises an error for other values."""
    width = python_number(width)
    if isinstance(width, bool) or not isinstance(width, numbers.Integral):
        raise TypeError("Calibration: width must be an integer, got "
                        f"{width!r}")
    if width < 1:
        raise ValueError(f"Calibration: width is {width}, expected a "
                         "positive number")
    return width


def calibrate(
    index: "faiss.Index | faiss.IndexBinary", base: "ArrayLike",
    queries: "ArrayLike",
    kernel: "str | Kernel | Callable[..., ArrayLike] | None" = None,
    k: int = 10, width: int = 200, packed: "bool | int | None" = None
) -> Calibration:
    """Measures the kernel values that belong to the distances of an index.

    The index searches for the queries, and the kernel values of its results
    are computed from `base`. The calibration is exact if the index compares
    vectors under the same kernel (`KFlat`, `HNSW,KFlat`, `Refine(KFlat)`,
    `BKFlat`) and the distance alone determines the value. `kernel_values` also
    handles the other kernels of these indexes, if it gets ids and queries.

    Parameters
    ----------
    index : faiss.Index or faiss.IndexBinary
        An index of the vectors `base`. Its ids are their positions.
    base : array_like or sparse array, shape (n, d)
        The vectors. A binary index without a scheme takes packed bits, uint8
        of shape (n, ceil(d / 8)); the kernel is then a kernel of the bits.
    queries : array_like or sparse array, shape (nq, d)
        Held-out queries like those that you will search for. They must not be
        among the vectors. Otherwise a query finds itself, and its nearest
        results are not typical.
    kernel : str, Kernel or callable, optional
        By default the kernel of the index: the `kernel_value` of the scheme,
        or the kernel of the `KFlat` that compares, applied to the vectors
        behind FAISS's transforms. If the kernel has no bandwidth, it is the
        kernel of this name in the index, in a scheme, map or `KFlat`, with its
        bandwidth. If the index has none, the bandwidth is learnt from `base`.
    k : int
        Neighbours of each query to measure. Use the k of your searches: at the
        same distance, the results of a longer search have other kernel values.
    width : int
        Least number of measured results that an estimate uses.
    packed : bool or int, optional
        Whether base and queries are packed bits, as `numpy.packbits` gives; or
        their number of bits. An index of vectors gets their zeros and ones; a
        kernel of bits, such as hamming, then compares the bits. It must be
        given for arrays of uint8 under jaccard and dice, unless the index takes
        packed bits.

    Returns
    -------
    Calibration

    Warns
    -----
    UserWarning
        If queries are among the vectors.

    Examples
    --------
    >>> measured = faiss_ext.calibrate(index, xb, held_out, "chi2")
    >>> D, I = index.search(xq, 10)
    >>> measured.value(D)                    # mean kernel values
    >>> low, high = measured.interval(D)     # contains about 95 %
    """
    if not isinstance(index, (faiss.Index, faiss.IndexBinary)):
        raise TypeError(f"calibrate: expected an index, got {index!r}")
    width = as_width(width)
    hash = hash_of_codes(index)
    takes_codes = isinstance(index, faiss.IndexBinary) and hash is None
    packed = as_packed(
        packed, base, "" if takes_codes else kernel, "calibrate")
    of_bits = compared_by_bits(kernel) if packed and not takes_codes else None
    codes = base, queries
    if packed:
        d = index.d if hash is None else hash.d_in
        check_number_of_bits(packed, d, "calibrate")
        if not takes_codes:
            base, queries = (sparse_of_bits(x, d, "calibrate")
                             for x in (base, queries))
            if not takes_sparse(index):
                base, queries = base.toarray(), queries.toarray()
    base, queries = as_alike(*(
        as_vectors(x, takes_codes) for x in (base, queries)))
    if base.ndim != 2 or queries.ndim != 2 or queries.shape[0] == 0 or (
            base.shape[1] != queries.shape[1]):
        raise ValueError("calibrate: expected vectors and queries of shapes "
                         f"(n, d) and (nq, d), got {base.shape} and "
                         f"{queries.shape}")
    n, nq = base.shape[0], queries.shape[0]
    if index.ntotal != n:
        raise ValueError(f"calibrate: the index holds {index.ntotal} vectors, "
                         f"base has {n}")
    D, ids = index.search(queries, k)
    are_codes = takes_codes or of_bits is not None
    if of_bits is not None:
        own = OwnKernel(of_bits, bits=d)
        base, queries = (as_vectors(x, are_codes) for x in codes)
    else:
        own = own_bit_kernel(index, kernel) if are_codes else None
    if own is None:
        own = own_kernel(index, kernel)
    if own is None:
        own = OwnKernel(trained_kernel(
            kernel, unpacked(base) if are_codes else base))
    distances, values, vectors, among = [], [], set(), 0
    for q, d, i in zip(range(nq), D, ids):
        d, i = d[i >= 0], i[i >= 0]
        if len(i):
            if i.max() >= n:
                raise ValueError(f"calibrate: the index holds the id {i.max()},"
                                 f" expected positions below {n}")
            query, rows = queries[q : q + 1], base[i]
            among += is_among(query, rows)
            distances.append(d)
            values.append(own.values(query, rows, are_codes))
            vectors.update(i.tolist())
    if not values:
        raise ValueError("calibrate: the searches found no neighbours, expected "
                             "an index that finds some of `base`")
    if among:
        warnings.warn(
            f"calibrate: {among} of {nq} queries are among the "
            "vectors of the index and find themselves, as other queries do not",
            stacklevel=2)
    distances = np.concatenate(distances).astype("float64")
    values = np.concatenate(values)
    exact = exact_values(index)
    if exact is not None and not np.allclose(
            exact(distances), values, rtol=1e-3, atol=1e-3 * np.ptp(values)):
        exact = None  # the index compares under another kernel
    own_values = (own.values(x[i : i + 1], x[i : i + 1], are_codes)[0]
                  for x, rows in ((queries, range(nq)), (base, vectors))
                  for i in rows)
    unit = own.is_normalised() or all(
        value == 0 or abs(value - 1) < 1e-4 for value in own_values)
    return Calibration(distances, values, width,
                       maximum=1 if unit else math.inf, exact=exact)


def as_vectors(x, are_codes):
    if is_sparse(x) and not are_codes:
        return as_csr(x, x.shape[-1], "calibrate")
    if not are_codes:
        return as_matrix(x, "calibrate")
    x = as_array(x, "calibrate")
    if x.dtype != np.uint8:
        raise TypeError("calibrate: the index takes packed bits, uint8, got "
                        f"{x.dtype}")
    return np.ascontiguousarray(x)


def as_alike(x, y):
    """Two arrays of vectors; both sparse if one of them is."""
    if is_sparse(x) == is_sparse(y):
        return x, y
    return (x, type(x)(y)) if is_sparse(x) else (type(y)(x), y)


def is_among(query, rows):
    """Whether a vector, given as an array of one row, is one of the rows."""
    if not is_sparse(rows):
        return bool((rows == query).all(axis=1).any())
    return any((rows[j : j + 1] != query).nnz == 0
               for j in range(rows.shape[0]))


def unpacked(codes):
    return np.unpackbits(codes, axis=-1).astype("float32")


def hash_of_codes(index):
    """The hash of a binary index, or None."""
    if not isinstance(index, faiss.IndexBinary):
        return None
    return hash_before(part_that_compares(index))


# --------------------------------------------------- kernels of an index

class OwnKernel(typing.NamedTuple):
    """A kernel of a part of an index, for vectors as they reach that part."""

    kernel: Any  # or a hash, which has a kernel_value of two vectors
    transforms: tuple = ()  # the transforms in front of that part
    bits: Any = None  # their number, for a kernel of bits

    def values(self, query, rows, are_codes=False):
        """Kernel values of a query, an array of one row, and several
        vectors."""
        if isinstance(self.kernel, swig.BitKernel):
            return self.kernel.gram(query, rows, packed=self.bits)[0]
        x = [unpacked(v) if are_codes else v for v in (query, rows)]
        for transform in self.transforms:
            x = [transform.apply(v) for v in x]
        query, rows = x
        if isinstance(self.kernel, swig.KernelHash):
            return np.array([self.kernel.kernel_value(query, rows[i : i + 1])
                             for i in range(rows.shape[0])])
        return self.kernel.gram(query, rows)[0]

    def is_normalised(self):
        if isinstance(self.kernel, swig.BitKernel):
            return self.kernel.is_one_for_equal()
        return (isinstance(self.kernel, swig.Kernel)
                and self.kernel._is_normalized())


def own_kernel(index, kernel):
    """The kernel of an index that calibrate is to use, or None.

    It is the kernel of the index if `kernel` is None, or the kernel of the
    same name in the index if `kernel` has no bandwidth.
    """
    if kernel is None:
        inside = part_that_compares(index)
        own = hash_before(inside) or kernel_of(inside)
        if own is not None:
            return OwnKernel(own, transforms_to(index))
        raise ValueError(f"calibrate: {class_name(index)} has no kernel; give "
                         "the argument `kernel`")
    if isinstance(kernel, str):
        kernel = swig.kernel_factory(kernel)
    if not isinstance(kernel, swig.Kernel) or kernel.is_trained:
        return None
    name, choice = without_bandwidth(kernel.description()), choice_in(kernel)
    return next((own for own in kernels_in(index) if own.kernel.is_trained
                 and without_bandwidth(own.kernel.description()) == name
                 and choice_in(own.kernel) == choice), None)


def compared_by_bits(kernel):
    """The kernel that compares packed bits as they are, although the index takes
    vectors; None for a kernel of vectors."""
    if isinstance(kernel, str) and is_only_of_bits(kernel):
        return swig.bit_kernel_factory(kernel)
    return kernel if isinstance(kernel, swig.BitKernel) else None


def own_bit_kernel(index, kernel):
    """The kernel of bits that calibrate is to use for packed bits, or None."""
    if kernel is None:
        kernel = getattr(part_that_compares(index), "kernel", None)
    elif isinstance(kernel, str):
        try:
            kernel = swig.bit_kernel_factory(kernel)
        except RuntimeError:
            return None  # a kernel of vectors
    return (OwnKernel(kernel, bits=index.d)
            if isinstance(kernel, swig.BitKernel) else None)


def transforms_to(index):
    """The transforms in front of the part that compares."""
    for part in parts_of(index):
        if part.compares:
            return (*transforms_of(index), *transforms_to(part.index))
    return ()


def kernels_in(index, before=()):
    """Yields the kernels of an index and its parts, first of those that
    compare.

    `before` are the transforms in front of the index.
    """
    for transform in transforms_of(index):
        kernel = (kernel_of_hash(transform)
                  if isinstance(transform, swig.KernelHash)
                  else getattr(transform, "kernel", None))
        if kernel is not None:
            yield OwnKernel(kernel, before)
        before = (*before, transform)
    kernel = kernel_of(index)
    if kernel is not None:
        yield OwnKernel(kernel, before)
    for part in sorted(parts_of(index), key=lambda part: not part.compares):
        yield from kernels_in(part.index, before)


def kernel_of_hash(hash):
    """The kernel that is a parameter of a scheme, or None."""
    if isinstance(getattr(hash, "kernel", None), swig.Kernel):
        return hash.kernel
    inside = hash.description().partition("(")[2]
    depth = 0
    for end, letter in enumerate(inside):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth < 0 or depth == 0 and letter == ",":
            break
    else:
        return None
    try:
        return swig.kernel_factory(inside[:end])
    except RuntimeError:
        return None  # the parameter is not a kernel


CHOICE = ("neighbor", "sample_queries", "sample_points", "sample_seed")


def choice_in(kernel):
    """How a kernel, or the innermost kernel in it, chooses its bandwidth.

    Strings contain this only until the bandwidth is chosen.
    """
    while isinstance(getattr(kernel, "kernel", None), swig.Kernel):
        kernel = kernel.kernel
    return [getattr(kernel, name, None) for name in CHOICE]


def without_bandwidth(string):
    """The string of a kernel without its bandwidth and without how that is
    chosen."""
    string = re.sub(rf"\b({'|'.join(('gamma', *CHOICE))})=[^,()]*,?", "",
                    string)
    return string.replace(",)", ")").replace("()", "")
