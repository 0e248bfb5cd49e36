# SPDX-License-Identifier: MIT
"""Vectors that are as different from each other as possible."""

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .advice import as_kernel
from .arguments import as_integer, as_matrix, as_names, as_packed, shown
from .duplicates import as_seed
from .errors import about_vector
from .packed_rows import PackedRows, as_symmetric_bit_kernel
from .progress import Steps
from .sparse_arrays import is_sparse, to_csr

BATCH = 100  # queries of a range search


def maxmin_picks(
    x: "ArrayLike", n_picks: int,
    kernel: "str | Kernel | BitKernel" = "jaccard",
    first: "int | str | None" = None, packed: "bool | int | None" = None,
    seed: int = 1234, names: "ArrayLike | None" = None
) -> "tuple[NDArray[np.int64] | list[str], NDArray[np.float32]]":
    """Picks vectors that are as different from each other as possible.

    Each pick is the vector whose largest kernel value with the earlier ones is
    the smallest; of equal ones, the first. Vectors that are near an
    earlier pick are not compared with later ones until they could be picked.

    Parameters
    ----------
    x : array_like or sparse array, shape (n, d)
        The vectors. With `packed=True`, an array of uint8.
    n_picks : int
        The number of picks, from 1 to n.
    kernel : str, Kernel or BitKernel
        A symmetric kernel with k(x, x) = 1 for every x, such as jaccard.
        Bandwidths must be set. With `packed=True`, a kernel of bits. Under
        cosine, codes of zeros are an error, because they are not similar to
        themselves.
    first : int or str, optional
        The first pick: its row in x, from 0; or its name, if `names` are given.
        By default a random vector.
    packed : bool or int, optional
        As for `near_duplicates`.
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
    packed = as_packed(packed, x, kernel, where)
    vectors = (Codes(x, kernel, packed, where) if packed
               else Vectors(x, kernel, where))
    n, n_picks = vectors.rows.shape[0], as_integer(n_picks, "n_picks", where)
    if n == 0:
        raise ValueError(f"{where}: x has no vectors, expected at least 1")
    if not 1 <= n_picks <= n:
        raise ValueError(f"{where}: n_picks is {n_picks}, expected an integer "
                         f"from 1 to {n}")
    random = int(np.random.default_rng(as_seed(seed, where)).integers(n))
    names = as_names(names, n, where)
    first = random if first is None else as_row(first, names, n, where)
    picks, values = np.empty(n_picks, "int64"), np.zeros(n_picks, "float32")
    candidates, steps = Candidates(vectors), Steps("picks", n_picks)
    for i in range(n_picks):
        picks[i], reached = (
            candidates.farthest(picks[:i], reached) if i else (first, vectors.least))
        candidates.take(picks[: i + 1], reached)
        values[i] = reached if i else 0
        steps(i + 1)
    return picks if names is None else [names[i] for i in picks], values


def as_row(first, names, n, where):
    """The number of a vector that is given by its number or by its name."""
    if isinstance(first, str) and names is not None:
        rows = [i for i, name in enumerate(names) if name == first]
        if len(rows) != 1:
            raise ValueError(f"{where}: first is {shown(first)}, expected the "
                             f"name of one vector, got {len(rows)} with it")
        return rows[0]
    first = as_integer(first, "first", where)
    if not 0 <= first < n:
        raise ValueError(f"{where}: first is {first}, expected an integer from "
                         f"0 to {n - 1}")
    return first


class Candidates:
    """Vectors with their largest kernel values with the picks, and an index of
    those that could be picked next.

    `largest` has a lower bound of each value, which is the value itself for the
    vectors in the index. All others have bounds above `limit`. So the vector
    with the smallest value is in the index, unless all values there exceed the
    limit. Then the limit is raised, and vectors with smaller bounds are compared
    with the picks that they have missed. Sparse vectors have no limit: their
    search is fast for all, and slower for many picks at once.
    """

    first_limit_after = 16  # picks; before, all vectors are in the index

    def __init__(self, vectors):
        n = vectors.rows.shape[0]
        self.vectors = vectors
        self.size = min(n - 1, max(1000, n // 8))  # vectors below a new limit
        self.largest = np.full(n, vectors.least, "float32")
        self.compared = np.zeros(n, "int64")  # number of picks
        self.limit = np.inf
        self.inside = np.arange(n)
        self.index = vectors.index_of(self.inside)

    def farthest(self, picks, reached):
        """The vector that is picked next, and its largest value. No vector has a
        smaller value than `reached`."""
        if self.vectors.are_scanned and len(picks) == self.first_limit_after:
            self.raise_limit(picks, reached)
        while True:
            pick = self.inside[np.argmin(self.largest[self.inside])]
            if self.largest[pick] <= self.limit:
                return pick, self.largest[pick]
            self.raise_limit(picks, reached)

    def take(self, picks, reached):
        """Compares the last pick with the vectors in the index."""
        self.compare(self.index, self.inside, picks[-1:], reached)
        self.largest[picks[-1]] = np.inf  # is not picked again

    def raise_limit(self, picks, reached):
        self.compared[self.inside] = len(picks)
        self.limit = np.partition(self.largest, self.size)[self.size]
        stale = np.flatnonzero(
            (self.largest <= self.limit) & (self.compared < len(picks)))
        for n in np.unique(self.compared[stale]):
            ids = stale[self.compared[stale] == n]
            self.compare(self.vectors.index_of(ids), ids, picks[n:], reached)
            self.compared[ids] = len(picks)
        self.inside = np.flatnonzero(self.largest <= self.limit)
        self.index = self.vectors.index_of(self.inside)

    def compare(self, index, ids, picks, reached):
        """Raises the bounds of the vectors in an index that are nearer to picks
        than `reached`."""
        for i in range(0, len(picks), BATCH):
            queries = self.vectors.rows[picks[i : i + BATCH]]
            places, values = self.vectors.above(index, queries, reached)
            np.maximum.at(self.largest, ids[places], values)


class Codes:
    """Packed bits under a kernel of bits."""

    least, are_scanned = 0, True

    def __init__(self, x, kernel, packed, where):
        rows = PackedRows(x, packed, where)
        self.rows, self.bits = rows.codes, rows.bits
        self.kernel = as_symmetric_bit_kernel(kernel, where)
        if not self.kernel.is_one_for_equal():
            raise varies(self.kernel, where)
        self.check_zeros(where)

    def check_zeros(self, where):
        """Raises an error for codes of zeros under a kernel in which they are
        not similar to themselves."""
        zeros = np.flatnonzero(~self.rows.any(axis=1))[:1]
        if len(zeros) and self.kernel.gram(self.rows[zeros]) != 1:
            raise about_vector(
                f"{where}: ", zeros[0], " has no ones, and k(x, x) of "
                f"{self.kernel.description()} is 0 for it; leave it out")

    def index_of(self, ids):
        index = swig.IndexBinaryFlatKernel(self.bits, self.kernel)
        index.add(self.rows[ids])
        return index

    def above(self, index, queries, value):
        """The vectors in an index whose kernel value with a query is above a
        value, and some others; and the values."""
        # float32 has rounded the value by less than 64 units of distance
        radius = min(index.distance(float(value)) + 64, 2**30)
        _, distances, places = index.range_search(queries, radius)
        return places, (1 - distances / 2**30).astype("float32")


class Vectors:
    """Dense or sparse vectors under a kernel."""

    least = -np.finfo("float32").max

    def __init__(self, x, kernel, where):
        self.kernel = as_kernel(kernel)
        if not self.kernel._has_unit_vectors():
            raise varies(self.kernel, where)
        self.rows = to_csr(x, where) if is_sparse(x) else as_matrix(x, where)
        self.are_scanned = not is_sparse(x)

    def index_of(self, ids):
        make = (swig.IndexSparseKernel if is_sparse(self.rows)
                else swig.IndexFlatKernel)
        index = make(self.rows.shape[1], self.kernel, faiss.METRIC_INNER_PRODUCT)
        index.add(self.rows[ids])
        return index

    def above(self, index, queries, value):
        _, values, places = index.range_search(queries, float(value))
        return places, values


def varies(kernel, where):
    return ValueError(f"{where}: k(x, x) of {kernel.description()} varies, "
                      "expected a kernel for which it is 1")
