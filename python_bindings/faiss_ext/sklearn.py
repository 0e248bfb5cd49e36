# SPDX-License-Identifier: MIT
"""Nearest neighbours under kernels as scikit-learn estimators.

>>> from faiss_ext.sklearn import KernelNeighbors, KernelNeighborsTransformer

KernelNeighbors has the interface of sklearn.neighbors.NearestNeighbors.
KernelNeighborsTransformer has the interface of
sklearn.neighbors.KNeighborsTransformer.
Both use any index that a factory string of faiss_ext or FAISS describes. This
module needs scikit-learn; the rest of faiss_ext does not.
"""

import contextlib
import numbers
import os
from typing import Any, Literal, TypeVar, overload

try:
    from sklearn.base import (
        BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin)
except ImportError:
    raise ImportError(
        "faiss_ext.sklearn needs scikit-learn 1.2 or newer "
        "(pip install scikit-learn)")

import faiss
import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse, vstack
from scipy.sparse.csgraph import connected_components
from sklearn.utils import validation
from sklearn.utils.validation import check_is_fitted

from . import swigfaiss_ext as swig
from .arguments import (
    as_any_codes, as_array, as_packed, checked_packed, number_of_bits,
    python_number)
from .index_tree import part_that_compares
from .out_of_core import takes_one_add_only
from .parameters import index_parameters, set_index_parameter
from .sparse_vectors import sparse_of_bits, takes_sparse, why_not_sparse

__all__ = ["KernelNeighbors", "KernelNeighborsTransformer"]

_Estimator = TypeVar("_Estimator", bound="_IndexNeighbors")
_MODES = ("connectivity", "distance")


def _set_search_parameters(index, parameters):
    for name, value in parameters.items():
        set_index_parameter(index, name, value)


@contextlib.contextmanager
def _threads(n_jobs):
    """Makes FAISS use n_jobs threads; None keeps FAISS's setting."""
    if n_jobs is None:
        yield
        return
    if not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise ValueError("n_jobs: expected a whole number other than 0, or "
                         f"None, got {n_jobs!r}")
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(
        min(effective_n_jobs(int(n_jobs)), max(before, os.cpu_count() or 1)))
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _as_n_neighbors(n_neighbors):
    """A number of neighbours as an int; raises an error for other values."""
    n_neighbors = python_number(n_neighbors)
    if not isinstance(n_neighbors, numbers.Integral):
        raise TypeError(
            f"n_neighbors must be an integer, got {n_neighbors!r}")
    if n_neighbors <= 0:
        raise ValueError(f"Expected n_neighbors > 0. Got {n_neighbors}")
    return n_neighbors


def _check_radius(radius):
    radius = python_number(radius)
    if not isinstance(radius, numbers.Real):
        raise TypeError(f"radius must be a number, got {radius!r}")
    if not radius >= 0:
        raise ValueError(f"radius must not be negative, got {radius}")


def _check_mode(mode):
    if mode not in _MODES:
        raise ValueError(
            f"mode must be 'connectivity' or 'distance', got {mode!r}")


def _distances(squared):
    """Square roots of FAISS's squared distances.

    Rounding can make these slightly negative, or negative zero; the result is
    then 0.
    """
    return np.sqrt(np.maximum(squared, 0) + 0.0, dtype="float64")


def _binary_index(bits, string):
    """The binary index of a string, or None if it describes no binary index."""
    try:
        return faiss.index_binary_factory(bits, string)
    except RuntimeError:
        if string.startswith("B"):  # the names of binary indexes
            raise
        return None


def _edges(graph):
    """The two ends of each edge, and its weight."""
    ends = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    return ends, graph.indices, graph.data


def _symmetric_graph(i, j, weights, n, diagonal):
    """The graph of edges in both directions, with a weight on the diagonal.

    Of two weights of an edge, the smaller one is taken. The weights of each row
    ascend. SciPy's maximum and + would drop edges of weight 0.
    """
    apart = i != j
    i, j, weights = i[apart], j[apart], weights[apart]
    rows = np.concatenate([i, j, np.arange(n)])
    columns = np.concatenate([j, i, np.arange(n)])
    weights = np.concatenate([weights, weights, np.full(n, diagonal)])
    order = np.lexsort((weights, columns, rows))
    rows, columns, weights = rows[order], columns[order], weights[order]
    first = np.append(True, (np.diff(rows) != 0) | (np.diff(columns) != 0))
    rows, columns, weights = rows[first], columns[first], weights[first]
    order = np.lexsort((weights, rows))
    ends = np.searchsorted(rows, np.arange(n + 1))
    return csr_matrix((weights[order], columns[order], ends), shape=(n, n))


def _object_array(arrays):
    result = np.empty(len(arrays), dtype=object)
    result[:] = arrays
    return result


class _IndexNeighbors(
        ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The index and the k-neighbours methods that both estimators share."""

    def fit(self: _Estimator, X: ArrayLike, y: Any = None) -> _Estimator:
        """Builds the index, trains it and adds the vectors.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n_samples, n_features)
            Training vectors, which are converted to float32. Sparse vectors need
            an index that takes them, such as KFlat(chi2,store=sparse). With
            packed=True, an array of uint8.
        y : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        X = self._vectors(X, reset=True)
        with _threads(self.n_jobs):
            index = self._new_index(X.shape[1])
            if issparse(X) and not takes_sparse(index):
                raise TypeError(why_not_sparse(self.index))
            _set_search_parameters(index, self.parameters or {})
            rows = self._rows(X, index)
            try:
                index.train(rows)
            except RuntimeError as error:
                if X.shape[0] > 1:
                    raise
                # scikit-learn expects a ValueError
                raise ValueError(
                    f"the index {self.index!r} cannot be trained on 1 sample: "
                    f"{error}") from error
            index.add(rows)
        self.index_ = index
        self.n_samples_fit_ = self._n_features_out = X.shape[0]
        self._fit_X = X
        return self

    def partial_fit(
        self: _Estimator, X: ArrayLike, y: Any = None
    ) -> _Estimator:
        """Adds vectors to the index; the first call fits the estimator.

        An index that needs training is trained on the first batch only, so the
        first batch should be like all others. If the index needs no training,
        such as KFlat with all parameters of its kernel, neighbours are the same as
        after one fit on all batches. Graphs (HNSW) are approximately the same.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n_samples, n_features)
            More training vectors, whose positions follow those of the vectors
            before them.
        y : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If an index of FAISS takes only one batch, such as IVF8,PQ4x4fs
            before FAISS 1.7.4.

        Examples
        --------
        >>> from faiss_ext.sklearn import KernelNeighbors
        >>> neighbors = KernelNeighbors("KFlat(linear)", n_neighbors=2)
        >>> neighbors = neighbors.partial_fit([[0], [3]]).partial_fit([[1]])
        >>> neighbors.kneighbors([[4]], return_distance=False)
        array([[1, 2]])
        """
        if not hasattr(self, "index_"):
            return self.fit(X, y)
        self._check_parameters()
        X = self._vectors(X, reset=False)
        if takes_one_add_only(self.index_):
            raise ValueError(f"the index {self.index!r} takes no more vectors "
                             f"with FAISS {faiss.__version__}; call fit with "
                             "all of them")
        if issparse(X) != issparse(self._fit_X):
            raise TypeError("expected sparse vectors for all batches, or for "
                            "none")
        together = (vstack([self._fit_X, X], format="csr") if issparse(X)
                    else np.concatenate([self._fit_X, X]))
        with _threads(self.n_jobs):
            self.index_.add(self._rows(X, self.index_))
        self.n_samples_fit_ = self._n_features_out = together.shape[0]
        self._fit_X = together
        return self

    def __getstate__(self):
        state = super().__getstate__()
        if "index_" not in state:
            return state
        # FAISS's files lack some parameters, such as max_codes
        return {**state, "_search_values": index_parameters(self.index_)}

    def __setstate__(self, state):
        state = dict(state)
        values = state.pop("_search_values", {})
        super().__setstate__(state)
        if values:
            _set_search_parameters(self.index_, values)

    def _new_index(self, width):
        """An index for rows of so many components, or of bytes if packed."""
        bits = self.packed and number_of_bits(
            checked_packed(self.packed, "packed"), width, type(self).__name__)
        try:
            return faiss.index_factory(bits or width, self.index)
        except RuntimeError:
            index = _binary_index(bits or 64, self.index)
            if index is None:
                raise
            if not self.packed:
                raise TypeError(
                    f"the index {self.index!r} takes packed bits, as "
                    "numpy.packbits gives; pass packed=True") from None
            return index

    def _rows(self, X, index):
        """The vectors in the form that the index takes."""
        if not self.packed or isinstance(index, faiss.IndexBinary):
            return X
        bits = sparse_of_bits(X, index.d, type(self).__name__)
        return bits if takes_sparse(index) else bits.toarray()

    def _scale(self):
        """The factor from distances of the index to squared ones.

        The integers of BKFlat are (1 - k) 2^30, and squared distances 2 - 2k.
        """
        kind = swig._distance_kind(part_that_compares(self.index_))
        return 2 / 2**30 if kind == "scaled" else 1

    def _check_parameters(self):
        if not isinstance(self.index, str):
            raise TypeError(f"index must be a string, got {self.index!r}")
        _as_n_neighbors(self.n_neighbors)
        if self.radius is not None:
            _check_radius(self.radius)
        if not isinstance(self.parameters, (dict, type(None))):
            raise TypeError(
                f"parameters must be a dict, got {self.parameters!r}")
        if self.packed is not None:
            checked_packed(self.packed, type(self).__name__)

    def _takes_sparse(self):
        if self.packed:
            return False
        try:
            return takes_sparse(faiss.index_factory(64, self.index))
        except (RuntimeError, TypeError, ValueError):
            return False

    if hasattr(BaseEstimator, "__sklearn_tags__"):  # from scikit-learn 1.6 on
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.sparse = self._takes_sparse()
            return tags

    def _vectors(self, X, reset):
        """X as an array or sparse matrix of float32, or of uint8 if packed.

        With reset, X sets the dimension and is copied, because the estimator
        keeps it.
        """
        if isinstance(X, np.ma.MaskedArray):  # scikit-learn ignores the mask
            X = as_array(X, type(self).__name__)
        how = {"reset": reset, "dtype": "float32", "order": "C", "copy": reset,
               "accept_sparse": "csr"}
        if reset and not swig._is_string_for_codes(self.index):
            as_packed(self.packed, X, self.index, type(self).__name__)
        if self.packed:
            as_any_codes(X, type(self).__name__)
            how |= {"dtype": "uint8", "accept_sparse": False}
        if hasattr(validation, "validate_data"):  # since scikit-learn 1.6
            return validation.validate_data(self, X, **how)
        return self._validate_data(X, **how)

    @overload
    def kneighbors(
        self, X: "ArrayLike | None" = None, n_neighbors: "int | None" = None,
        return_distance: Literal[True] = True
    ) -> "tuple[NDArray[np.float64], NDArray[np.int64]]": ...

    @overload
    def kneighbors(
        self, X: "ArrayLike | None" = None, n_neighbors: "int | None" = None,
        *, return_distance: Literal[False]
    ) -> "NDArray[np.int64]": ...

    def kneighbors(
        self, X: "ArrayLike | None" = None, n_neighbors: "int | None" = None,
        return_distance: bool = True
    ) -> Any:
        """Finds the nearest neighbours of each query.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n_queries, n_features), optional
            Queries. By default the training vectors, each without itself.
        n_neighbors : int, optional
            Neighbours of each query. By default the estimator's n_neighbors.
        return_distance : bool, optional
            Whether to return the distances.

        Returns
        -------
        distances : float64, shape (n_queries, n_neighbors)
            In ascending order. Returned only if return_distance is true.
        indices : int64, shape (n_queries, n_neighbors)
            Positions in the training data.

        Raises
        ------
        ValueError
            If there are fewer training vectors than n_neighbors.
        RuntimeError
            If an approximate index finds fewer neighbours for a query.

        Examples
        --------
        >>> from faiss_ext.sklearn import KernelNeighbors
        >>> neighbors = KernelNeighbors("KFlat(linear)")
        >>> neighbors.fit([[0], [3], [1]]).kneighbors([[4]], n_neighbors=2)
        (array([[1., 3.]]), array([[1, 2]]))
        """
        check_is_fitted(self)
        k = _as_n_neighbors(
            self.n_neighbors if n_neighbors is None else n_neighbors)
        without_self = X is None
        X = self._fit_X if X is None else self._vectors(X, reset=False)
        if k + without_self > self.n_samples_fit_:
            raise ValueError(
                f"Expected n_neighbors {'<' if without_self else '<='} "
                f"n_samples_fit, but n_neighbors = {k}, "
                f"n_samples_fit = {self.n_samples_fit_}, "
                f"n_samples = {X.shape[0]}")
        with _threads(self.n_jobs):
            found, indices = self.index_.search(
                self._rows(X, self.index_), k + without_self)
        squared = found * self._scale()
        if without_self:
            keep = indices != np.arange(X.shape[0])[:, None]
            # if the vector itself was not found, drop the last neighbour
            keep[keep.all(axis=1), -1] = False
            squared, indices = (
                a[keep].reshape(X.shape[0], k) for a in (squared, indices))
        self._check_found(indices)
        if return_distance:
            return _distances(squared), indices
        return indices

    def _check_found(self, indices):
        missing = (indices < 0).any(axis=1).sum()
        if missing:
            names = " or ".join(
                name for name in index_parameters(self.index_)
                if name != "max_codes")  # whose default, 0, is the maximum
            advice = (f"raise its {names}, in parameters or in index_" if names
                      else "take an index that visits more")
            raise RuntimeError(
                f"the index {self.index!r} found fewer than "
                f"{indices.shape[1]} neighbours for {missing} of "
                f"{len(indices)} queries: {advice}")

    def kneighbors_graph(
        self, X: "ArrayLike | None" = None, n_neighbors: "int | None" = None,
        mode: str = "connectivity"
    ) -> csr_matrix:
        """Makes the graph of the nearest neighbours.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n_queries, n_features), optional
            Queries. By default the training vectors, each without itself.
        n_neighbors : int, optional
            Neighbours of each query. By default the estimator's n_neighbors.
        mode : "connectivity" or "distance", optional
            Whether edges have weight 1 or the distance.

        Returns
        -------
        scipy.sparse.csr_matrix, shape (n_queries, n_samples_fit_)

        Examples
        --------
        >>> from faiss_ext.sklearn import KernelNeighbors
        >>> neighbors = KernelNeighbors("KFlat(linear)", n_neighbors=1)
        >>> graph = neighbors.fit([[0], [3], [1]]).kneighbors_graph()
        >>> graph.toarray()
        array([[0., 0., 1.],
               [0., 0., 1.],
               [1., 0., 0.]])
        """
        _check_mode(mode)
        distances, indices = self.kneighbors(X, n_neighbors)
        return self._graph(distances, indices, mode)

    @overload
    def radius_neighbors(
        self, X: "ArrayLike | None" = None, radius: "float | None" = None,
        return_distance: Literal[True] = True, sort_results: bool = False
    ) -> "tuple[NDArray[Any], NDArray[Any]]": ...

    @overload
    def radius_neighbors(
        self, X: "ArrayLike | None" = None, radius: "float | None" = None,
        *, return_distance: Literal[False], sort_results: bool = False
    ) -> "NDArray[Any]": ...

    def radius_neighbors(
        self, X: "ArrayLike | None" = None, radius: "float | None" = None,
        return_distance: bool = True, sort_results: bool = False
    ) -> Any:
        """Finds all neighbours within a radius.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n_queries, n_features), optional
            Queries. By default the training vectors, each without itself.
        radius : float, optional
            The largest distance. By default the estimator's radius.
        return_distance : bool, optional
            Whether to return the distances.
        sort_results : bool, optional
            Whether to sort each query's neighbours by ascending distance.
            Needs return_distance.

        Returns
        -------
        distances : array of n_queries arrays, float64
            Returned only if return_distance is true.
        indices : array of n_queries arrays, int64
            Positions in the training data.

        Examples
        --------
        >>> from faiss_ext.sklearn import KernelNeighbors
        >>> neighbors = KernelNeighbors("KFlat(linear)", radius=2)
        >>> neighbors = neighbors.fit([[0], [3], [1]])
        >>> distances, indices = neighbors.radius_neighbors([[2], [5]])
        >>> indices[1], distances[1]
        (array([1]), array([2.]))
        """
        check_is_fitted(self)
        if sort_results and not return_distance:
            raise ValueError(
                "return_distance must be True if sort_results is True.")
        radius = self.radius if radius is None else radius
        if radius is None:
            raise ValueError(
                "radius is missing; give it here or to the estimator")
        _check_radius(radius)
        without_self = X is None
        X = self._fit_X if X is None else self._vectors(X, reset=False)
        # FAISS returns strictly nearer vectors; here the radius is included.
        # A processor that flushes denormals would take a denormal bound for 0.
        scale = self._scale()
        with np.errstate(over="ignore"):
            bound = max(np.nextafter(np.float32(np.float64(radius) ** 2 / scale),
                                     np.float32(np.inf)),
                        np.finfo("float32").tiny)
        if isinstance(self.index_, faiss.IndexBinary):
            bound = int(np.ceil(min(bound, np.iinfo("int32").max)))
        else:
            bound = float(bound)
        with _threads(self.n_jobs):
            ends, found, indices = self.index_.range_search(
                self._rows(X, self.index_), bound)
        squared, ends = found * scale, ends.astype("int64")
        if without_self:
            keep = indices != np.repeat(np.arange(X.shape[0]), np.diff(ends))
            squared, indices = squared[keep], indices[keep]
            ends = np.append(0, np.cumsum(keep))[ends]
        distances = np.split(_distances(squared), ends[1:-1])
        indices = np.split(indices, ends[1:-1])
        if sort_results:
            orders = [np.argsort(row, kind="stable") for row in distances]
            distances = [row[o] for row, o in zip(distances, orders)]
            indices = [row[o] for row, o in zip(indices, orders)]
        if return_distance:
            return _object_array(distances), _object_array(indices)
        return _object_array(indices)

    def radius_neighbors_graph(
        self, X: "ArrayLike | None" = None, radius: "float | None" = None,
        mode: str = "connectivity", sort_results: bool = False
    ) -> csr_matrix:
        """Makes the graph of the neighbours within a radius.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n_queries, n_features), optional
            Queries. By default the training vectors, each without itself.
        radius : float, optional
            The largest distance. By default the estimator's radius.
        mode : "connectivity" or "distance", optional
            Whether edges have weight 1 or the distance.
        sort_results : bool, optional
            Whether to sort the entries of each row by ascending distance.

        Returns
        -------
        scipy.sparse.csr_matrix, shape (n_queries, n_samples_fit_)

        Examples
        --------
        >>> from faiss_ext.sklearn import KernelNeighbors
        >>> neighbors = KernelNeighbors("KFlat(linear)").fit([[0], [3], [1]])
        >>> neighbors.radius_neighbors_graph(radius=1).toarray()
        array([[0., 0., 1.],
               [0., 0., 0.],
               [1., 0., 0.]])
        """
        _check_mode(mode)
        distances, indices = self.radius_neighbors(
            X, radius, sort_results=sort_results)
        return self._graph(distances, indices, mode)

    def _graph(self, distances, indices, mode):
        """The sparse matrix of neighbours given row by row."""
        ends = np.cumsum([len(row) for row in indices])
        weights = np.concatenate(distances)
        if mode == "connectivity":
            weights = np.ones_like(weights)
        return csr_matrix(
            (weights, np.concatenate(indices), np.append(0, ends)),
            shape=(len(indices), self.n_samples_fit_))


class KernelNeighbors(_IndexNeighbors):
    """Nearest neighbours under a kernel, with the interface of
    NearestNeighbors.

    Distances are measured in the kernel's feature space:
    sqrt(k(x, x) + k(y, y) - 2 k(x, y)), the square root of FAISS's METRIC_L2.
    Under the linear kernel, and with FAISS's own indexes, they are Euclidean.
    For codes without re-ranking they are square roots of Hamming distances.
    For BKFlat they are sqrt(2 - 2 k(x, y)).

    Parameters
    ----------
    index : str, optional
        A factory string of faiss_ext or FAISS. KFlat(gaussian) is exact,
        SIK512(gaussian),BFlat,Refine(KFlat(gaussian)) is approximate.
    n_neighbors : int, optional
        Default number of neighbours for kneighbors.
    radius : float, optional
        Default radius for radius_neighbors.
    n_jobs : int, optional
        Number of threads; -1 for all processors. By default FAISS's setting
        (faiss.omp_set_num_threads).
    parameters : dict, optional
        Search parameters by name, such as nprobe, max_codes, k_factor,
        efSearch, nflip and B. fit sets each one on the outermost part of the
        index that has it.
    packed : bool or int, optional
        Whether each row of X has 8 bits of the vector in a byte of uint8, as
        numpy.packbits gives; or the number of bits. Binary indexes, such as
        BKFlat(jaccard), take packed bits only; the others get vectors of zeros
        and ones. It must be given for arrays of uint8 if the index uses jaccard,
        dice or CWS. Other bytes are numbers by default.

    Attributes
    ----------
    index_ : faiss.Index or faiss.IndexBinary
        The trained index with all training vectors.
    n_features_in_ : int
        Dimension of the training vectors; the number of bytes if packed.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the training data have names.
    n_samples_fit_ : int
        Number of training vectors.

    See Also
    --------
    KernelNeighborsTransformer : The graph of neighbours for pipelines, with
        one more neighbour and a choice of edge weights.

    Notes
    -----
    Vectors are float32, and so are FAISS's squared distances. Distances that
    are small relative to k(x, x) are inaccurate.

    The estimator keeps a copy of the training vectors, for calls without X.

    Errors come from faiss_ext and FAISS, mostly as RuntimeError. Kernels of
    histograms do not accept negative components. Some indexes, such as
    HKM1(chi2),PQ16x4fs, cannot search within a radius.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from faiss_ext.sklearn import KernelNeighbors
    >>> X = load_digits().data
    >>> neighbors = KernelNeighbors("KFlat(laplacian)", n_neighbors=3)
    >>> distances, indices = neighbors.fit(X[:1500]).kneighbors(X[1500:])
    >>> indices.shape
    (297, 3)

    An approximate search, with k_factor candidates for each result:

    >>> neighbors = KernelNeighbors(
    ...     "AHK512(chi2),BFlat,Refine(KFlat(chi2))",
    ...     parameters={"k_factor": 10})
    >>> neighbors.fit(X).kneighbors_graph().shape
    (1797, 1797)

    Texts, without a dense copy of their words:

    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> texts = ["a black cat", "the cat sat", "one black cat", "two dogs"]
    >>> pipeline = make_pipeline(
    ...     CountVectorizer(),
    ...     KernelNeighbors("KFlat(jaccard,store=sparse)", n_neighbors=2))
    >>> graph = pipeline.fit_transform(texts)
    >>> sorted(graph[0].indices.tolist())
    [0, 2]
    """

    def __init__(
        self, index: str = "KFlat(gaussian)", *, n_neighbors: int = 5,
        radius: "float | None" = None, n_jobs: "int | None" = None,
        parameters: "dict[str, Any] | None" = None,
        packed: "bool | int | None" = None
    ) -> None:
        self.index = index
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.n_jobs = n_jobs
        self.parameters = parameters
        self.packed = packed

    def transform(self, X: ArrayLike) -> csr_matrix:
        """Makes the graph of the nearest neighbours of vectors, weighted by
        distance.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n_queries, n_features)
            Queries.

        Returns
        -------
        scipy.sparse.csr_matrix, shape (n_queries, n_samples_fit_)
            Each row has n_neighbors entries, in ascending order of distance. A
            training vector is among its own neighbours.

        Examples
        --------
        >>> from faiss_ext.sklearn import KernelNeighbors
        >>> neighbors = KernelNeighbors("KFlat(linear)", n_neighbors=2)
        >>> neighbors.fit([[0], [3], [1]]).transform([[4]]).toarray()
        array([[0., 1., 3.]])
        """
        return self.kneighbors_graph(X, mode="distance")


class KernelNeighborsTransformer(_IndexNeighbors):
    """The graph of neighbours under a kernel, with the interface of
    KNeighborsTransformer and RadiusNeighborsTransformer.

    Put it in front of an estimator that takes distances as sparse matrices
    (metric="precomputed"): KNeighborsClassifier, TSNE, DBSCAN and others. UMAP
    needs symmetric=True, and HDBSCAN also connected=True. Distances are measured
    in the kernel's feature space, as in KernelNeighbors.

    Parameters
    ----------
    index : str, optional
        A factory string of faiss_ext or FAISS. KFlat(gaussian) is exact,
        SIK512(gaussian),BFlat,Refine(KFlat(gaussian)) is approximate.
    n_neighbors : int, optional
        Neighbours of each vector. With mode="distance" there is one more,
        since a training vector is among its own neighbours (unless as many
        other vectors are equal to it).
    radius : float, optional
        The largest distance of neighbours. Each vector then has all neighbours
        within the radius, and n_neighbors has no effect.
    mode : "distance" or "connectivity", optional
        Whether edges have the distance or weight 1.
    n_jobs : int, optional
        Number of threads; -1 for all processors. By default FAISS's setting
        (faiss.omp_set_num_threads).
    parameters : dict, optional
        Search parameters by name, such as nprobe, max_codes, k_factor,
        efSearch, nflip and B. fit sets each one on the outermost part of the
        index that has it.
    packed : bool or int, optional
        Whether each row of X has 8 bits of the vector in a byte of uint8, as
        numpy.packbits gives; or the number of bits. Binary indexes, such as
        BKFlat(jaccard), take packed bits only; the others get vectors of zeros
        and ones. It must be given for arrays of uint8 if the index uses jaccard,
        dice or CWS. Other bytes are numbers by default.
    symmetric : bool, optional
        Whether the graph of fit_transform has each edge in both directions, with
        the same weight, and each vector as its own neighbour. Rows can then have
        more than n_neighbors entries. transform is not affected: it finds the
        neighbours of other vectors.
    connected : bool, optional
        Whether fit_transform joins the parts of a symmetric graph that no edge
        connects. Each is joined to another one by the shortest edge; in a part
        of more than 1,000 vectors, 1,000 look for it. The distance of
        equal vectors is then the smallest positive float32 instead of 0, because
        spanning trees of SciPy lack edges of weight 0.

    Attributes
    ----------
    index_ : faiss.Index or faiss.IndexBinary
        The trained index with all training vectors.
    n_features_in_ : int
        Dimension of the training vectors; the number of bytes if packed.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the training data have names.
    n_samples_fit_ : int
        Number of training vectors.

    See Also
    --------
    KernelNeighbors : The search itself.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from faiss_ext.sklearn import KernelNeighborsTransformer
    >>> X, y = load_digits(return_X_y=True)
    >>> classifier = make_pipeline(
    ...     KernelNeighborsTransformer("KFlat(chi2)", n_neighbors=5),
    ...     KNeighborsClassifier(n_neighbors=5, metric="precomputed"))
    >>> classifier = classifier.fit(X[:1500], y[:1500])
    >>> print(classifier.score(X[1500:], y[1500:]) > 0.9)
    True

    HDBSCAN needs a connected graph with at least min_samples neighbours of each
    vector::

        make_pipeline(
            KernelNeighborsTransformer(
                "KFlat(chi2)", n_neighbors=15, symmetric=True, connected=True),
            HDBSCAN(metric="precomputed", min_samples=5))

    UMAP's pipeline also transforms new vectors::

        pipeline = make_pipeline(
            KernelNeighborsTransformer(
                "KFlat(chi2)", n_neighbors=15, symmetric=True),
            umap.UMAP(metric="precomputed", n_neighbors=15))
        embedded = pipeline.fit_transform(X)
        pipeline.transform(new)

    scanpy takes the transformer itself, also for sparse counts::

        transformer = KernelNeighborsTransformer(
            "KFlat(jaccard,store=sparse)", n_neighbors=15)
        scanpy.pp.neighbors(
            cells, n_neighbors=15, use_rep="X", transformer=transformer)
    """

    def __init__(
        self, index: str = "KFlat(gaussian)", *, n_neighbors: int = 5,
        radius: "float | None" = None, mode: str = "distance",
        n_jobs: "int | None" = None,
        parameters: "dict[str, Any] | None" = None,
        packed: "bool | int | None" = None,
        symmetric: bool = False, connected: bool = False
    ) -> None:
        self.index = index
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.mode = mode
        self.n_jobs = n_jobs
        self.parameters = parameters
        self.packed = packed
        self.symmetric = symmetric
        self.connected = connected

    def _check_parameters(self):
        super()._check_parameters()
        _check_mode(self.mode)
        if self.connected and not self.symmetric:
            raise ValueError("connected=True needs symmetric=True")

    def fit_transform(self, X: ArrayLike, y: Any = None) -> csr_matrix:
        """Builds the index and makes the graph of the vectors in it.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n_samples, n_features)
            Training vectors.
        y : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        scipy.sparse.csr_matrix, shape (n_samples, n_samples)
            As of transform, or symmetric. The entries of each row are in
            ascending order of distance.

        Examples
        --------
        >>> from faiss_ext.sklearn import KernelNeighborsTransformer
        >>> transformer = KernelNeighborsTransformer(
        ...     "KFlat(linear)", n_neighbors=1, symmetric=True)
        >>> transformer.fit_transform([[0], [3], [1]]).toarray()
        array([[0., 0., 1.],
               [0., 0., 2.],
               [1., 2., 0.]])
        """
        graph = self.fit(X).transform(X)
        if not self.symmetric:
            return graph
        edges = _edges(graph)
        if self.connected:
            edges = self._joined(*edges)
        return _symmetric_graph(*edges, graph.shape[0],
                                0.0 if self.mode == "distance" else 1.0)

    def _joined(self, i, j, weights):
        """The edges, and others that join the parts of their graph."""
        weights = np.maximum(weights, np.finfo("float32").tiny)
        n = self.n_samples_fit_
        while True:
            n_parts, parts = connected_components(
                csr_matrix((weights, (i, j)), shape=(n, n)), directed=False)
            if n_parts == 1:
                return i, j, weights
            largest = np.argmax(np.bincount(parts))
            more = np.array([self._shortest_edge_of(parts == part)
                             for part in range(n_parts) if part != largest])
            if self.mode == "connectivity":
                more[:, 2] = 1
            i = np.append(i, more[:, 0].astype("int64"))
            j = np.append(j, more[:, 1].astype("int64"))
            weights = np.append(weights, more[:, 2])

    def _shortest_edge_of(self, part, most=1000):
        """The nearest pair of a vector inside a part and one outside, and its
        distance."""
        inside = np.flatnonzero(part)
        inside = inside[:: -(-len(inside) // most)]
        with _threads(self.n_jobs):
            found, outside = self.index_.search(
                self._rows(self._fit_X[inside], self.index_), 1, filter=~part)
        self._check_found(outside)
        nearest = np.argmin(found)
        return (inside[nearest], outside[nearest, 0],
                _distances(found[nearest, 0] * self._scale()))

    def transform(self, X: ArrayLike) -> csr_matrix:
        """Makes the graph of the nearest neighbours of vectors.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n_queries, n_features)
            Queries.

        Returns
        -------
        scipy.sparse.csr_matrix, shape (n_queries, n_samples_fit_)
            Each row has n_neighbors entries, or n_neighbors + 1 with
            mode="distance", or all within the radius, in ascending order of
            distance.
        """
        check_is_fitted(self)
        if self.radius is not None:
            return self.radius_neighbors_graph(
                X, mode=self.mode, sort_results=True)
        more = self.mode == "distance"
        return self.kneighbors_graph(
            X, _as_n_neighbors(self.n_neighbors) + more, self.mode)
