# SPDX-License-Identifier: MIT
"""Pairs and groups of vectors that are nearly the same."""

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .advice import as_kernel
from .arguments import (
    as_integer, as_names, as_number, as_packed, as_threshold, is_only_of_bits)
from .packed_rows import PackedRows, neighbours_of_codes
from .sparse_arrays import is_sparse
from .sparse_vectors import as_rows


def near_duplicates(
    x: "ArrayLike", threshold: float = 0.8, kernel: "str | Kernel" = "jaccard",
    missed: float = 0.01, packed: "bool | int | None" = None,
    seed: int = 1234, names: "ArrayLike | None" = None
) -> "tuple[NDArray[np.int64] | list[tuple[str, str]], NDArray[np.float32]]":
    """Finds the pairs of vectors whose kernel value reaches a threshold.

    The search is exact where this is fast: for texts and other sparse vectors,
    in which near-duplicates share rare columns, for high thresholds, and for
    some 10,000 vectors of any kind. Inverted lists tell which pairs can reach
    the threshold.

    Otherwise, if columns are frequent, as in dense vectors, an exact search
    takes time proportional to the number of all pairs. Then random samples of
    the vectors are drawn in bands, and only vectors with the same samples in a
    band are compared. A pair is missed with a probability of at most `missed`.
    Pairs above the threshold are missed less often, and equal vectors never.

    The kernel compares all pairs in both cases, so that no pair is below the
    threshold and all values are exact.

    Parameters
    ----------
    x : array_like or sparse array, shape (n, d)
        The vectors: an array, or a sparse array or matrix of SciPy. For sets,
        the components are 0 and 1. With `packed=True`, an array of uint8.
    threshold : float
        The least kernel value of a pair, above 0. A kernel value that is equal
        to the threshold as a float32 reaches it.
    kernel : str, Kernel or BitKernel
        A kernel with a bound by the components that two vectors share: jaccard,
        dice, cosine, chi2, intersection, js, hellinger, linear,
        `normalized(...)` of chi2, intersection, js, hellinger or linear, poly,
        gaussian, laplacian, matern or expchi2. Bandwidths must be set. With
        `packed=True` also hamming, russellrao, tversky with equal alpha and
        beta, or a BitKernel. Under these three, the search is always exact.
    missed : float
        The largest probability, over the random samples, with which a pair may
        be missed: from 0 to below 1. With 0, the search is always exact. Which
        kernels use samples is listed in docs/python.md; the others are exact.
    packed : bool or int, optional
        Whether each row of x has 8 bits of the vector in a byte, as
        `numpy.packbits` gives; or the number of bits, on which hamming and
        russellrao depend. Under jaccard, values are Tanimoto coefficients. It
        must be given for arrays of uint8 under jaccard and dice. Other bytes are
        counts by default.
    seed : int
        Seed of the random samples. The result depends on x and the seed alone.
    names : list or array of str, length n, optional
        Names of the vectors.

    Returns
    -------
    pairs : int64, shape (m, 2)
        The two vectors of each pair, i < j, in ascending order. With names, a
        list with the two names of each pair instead.
    values : float32, shape (m,)
        Their kernel values. Equal vectors have the value k(x, x).

    Raises
    ------
    ValueError
        If x is not an array of vectors, or if the threshold, missed or seed is
        out of range.
    TypeError
        If one of them is not a number, or if packed bits are not uint8.
    RuntimeError
        If the kernel has no bound, if it is not defined on a vector, or if the
        threshold is not positive or exceeds all values of the kernel.

    See Also
    --------
    near_duplicate_groups : the groups of vectors that the pairs connect
    threshold_graph : all pairs as a symmetric sparse matrix

    Examples
    --------
    >>> x = CountVectorizer(binary=True).fit_transform(texts)
    >>> pairs, values = faiss_ext.near_duplicates(x, 0.8)
    >>> for (i, j), value in zip(pairs, values):
    ...     print(value, texts[i], texts[j])

    Fingerprints of packed bits, without any missing pair:

    >>> pairs, values = faiss_ext.near_duplicates(
    ...     fingerprints, 0.9, missed=0, packed=True)
    """
    where = "near_duplicates"
    pairs, values, _ = found_pairs(
        x, threshold, kernel, missed, packed, seed, where)
    names = as_names(names, number_of_rows(x), where)
    if names is not None:
        pairs = [(names[i], names[j]) for i, j in pairs.tolist()]
    return pairs, values


def found_pairs(x, threshold, kernel, missed, packed, seed,
                where="near_duplicates"):
    """What near_duplicates returns, and a bound of the probability that a pair
    is missing; 0 if the search was exact."""
    packed = as_packed(packed, x, kernel, where)
    kernel = as_name(kernel)
    if packed and compares_counts(kernel, missed):
        check_samples(missed, seed, where)
        return (*pairs_of_codes(x, threshold, kernel, packed, where), 0)
    rows, arguments = checked(x, threshold, kernel, missed, packed, seed, where)
    find = swig._near_duplicates_packed_c if packed else swig._near_duplicates_c
    result = faiss.RangeSearchResult(len(rows))
    missed = find(*rows.arguments(), *arguments, result)
    lims = faiss.rev_swig_ptr(result.lims, len(rows) + 1).astype("int64")
    pairs = np.empty((lims[-1], 2), "int64")
    pairs[:, 0] = np.repeat(np.arange(len(rows)), np.diff(lims))
    pairs[:, 1] = faiss.rev_swig_ptr(result.labels, len(pairs))
    values = faiss.rev_swig_ptr(result.distances, len(pairs)).copy()
    return pairs, values, missed


def near_duplicate_groups(
    x: "ArrayLike", threshold: float = 0.8, kernel: "str | Kernel" = "jaccard",
    missed: float = 0.01, packed: "bool | int | None" = None, seed: int = 1234
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
    missed : float
        As for `near_duplicates`. A group is divided only if all chains between
        two of its vectors lack a pair.
    packed : bool or int, optional
        As for `near_duplicates`.
    seed : int
        As for `near_duplicates`.

    Returns
    -------
    int64, shape (n,)
        The first vector of each vector's group. A vector that is like no other
        has its own number. With a list of names, `names[groups[i]]` is the name
        of the first vector in the group of `names[i]`.

    Raises
    ------
    ValueError, TypeError, RuntimeError
        As `near_duplicates` does.

    Examples
    --------
    One text of each group:

    >>> groups = faiss_ext.near_duplicate_groups(x, 0.8)
    >>> kept = np.unique(groups)
    """
    where = "near_duplicate_groups"
    packed = as_packed(packed, x, kernel, where)
    kernel = as_name(kernel)
    if packed and compares_counts(kernel, missed):
        check_samples(missed, seed, where)
        pairs, _ = pairs_of_codes(x, threshold, kernel, packed, where)
        return first_of_groups(pairs, len(x))
    rows, arguments = checked(x, threshold, kernel, missed, packed, seed, where)
    find = (swig._near_duplicate_groups_packed_c if packed
            else swig._near_duplicate_groups_c)
    groups = np.empty(len(rows), "int64")
    find(*rows.arguments(), *arguments, faiss.swig_ptr(groups))
    return groups


def number_of_rows(x):
    return x.shape[0] if is_sparse(x) else len(x)


def as_name(kernel):
    """A BitKernel by its string, like that of the kernel of vectors with the
    same name."""
    return (kernel.description() if isinstance(kernel, swig.BitKernel)
            else kernel)


def compares_counts(kernel, missed):
    """Whether pairs of packed bits are compared by BKFlat: under kernels of bits
    that have no kernel of vectors, and if floats would round values at the
    threshold although no pair may be missed."""
    return isinstance(kernel, str) and (
        is_only_of_bits(kernel) or (kernel.strip() == "cosine" and missed == 0))


def pairs_of_codes(x, threshold, kernel, packed, where):
    """The pairs i < j of packed bits whose kernel value reaches a threshold, in
    ascending order, and their values."""
    ends, ids, values = neighbours_of_codes(x, threshold, kernel, packed, where)
    pairs = np.stack([np.repeat(np.arange(len(ends) - 1), np.diff(ends)), ids],
                     axis=1)
    is_first = pairs[:, 0] < pairs[:, 1]
    return pairs[is_first], values[is_first]


def first_of_groups(pairs, n):
    """The first of the vectors that pairs connect with each of n vectors."""
    groups, before = np.arange(n), None
    while before is None or (groups != before).any():
        before = groups.copy()
        firsts = before[pairs]
        np.minimum.at(groups, firsts, firsts.min(axis=1, keepdims=True))
        groups = groups[groups]
    return groups


def checked(x, threshold, kernel, missed, packed, seed, where):
    """The rows and the other arguments as C++ takes them."""
    rows = PackedRows(x, packed, where) if packed else as_rows(x, where)
    return rows, (as_kernel(kernel), as_threshold(threshold, where),
                  *check_samples(missed, seed, where))


def check_samples(missed, seed, where):
    return as_share(missed, where), as_seed(seed, where)


def as_share(missed, where):
    missed = as_number(missed, "missed", where)
    if not 0 <= missed < 1:
        raise ValueError(f"{where}: missed is {missed}, expected a number from "
                         "0 (exact search) to below 1")
    return missed


def as_seed(seed, where):
    seed = as_integer(seed, "seed", where)
    if not 0 <= seed <= np.iinfo("int64").max:
        raise ValueError(f"{where}: seed is {seed}, expected an integer from 0 "
                         "to 2^63 - 1")
    return seed
