# SPDX-License-Identifier: MIT
"""Neighbours under kernels as estimators of scikit-learn.

>>> from faiss_ext.sklearn import KernelNeighbors, KernelNeighborsTransformer

KernelNeighbors searches as sklearn.neighbors.NearestNeighbors does, and
KernelNeighborsTransformer makes graphs of neighbours as
sklearn.neighbors.KNeighborsTransformer does, by any index that a string of
faiss_ext or FAISS describes. Importing this module needs scikit-learn;
importing faiss_ext does not.
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
from scipy.sparse import csr_matrix
from sklearn.utils import validation
from sklearn.utils.validation import check_is_fitted

from . import index_factory, index_parameters, set_index_parameter
from .class_wrappers import python_number

__all__ = ["KernelNeighbors", "KernelNeighborsTransformer"]

_Estimator = TypeVar("_Estimator", bound="_IndexNeighbors")
_MODES = ("connectivity", "distance")


def _set_search_parameters(index, parameters):
    for name, value in parameters.items():
        set_index_parameter(index, name, value)


@contextlib.contextmanager
def _threads(n_jobs):
    """Has FAISS use that many threads; None: as many as it is set to use."""
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
    """A number of neighbours as an int, or an error."""
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
    """Distances from FAISS's squared ones, which rounding may make negative;
    no zero is negative."""
    return np.sqrt(np.maximum(squared, 0) + 0.0, dtype="float64")


def _object_array(arrays):
    result = np.empty(len(arrays), dtype=object)
    result[:] = arrays
    return result


class _IndexNeighbors(
        ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What both estimators share: the index, and k neighbours."""

    def fit(self: _Estimator, X: ArrayLike, y: Any = None) -> _Estimator:
        """Builds, trains and fills the index.

        Parameters
        ----------
        X : array_like, shape (n_samples, n_features)
            Training vectors, which are converted to float32.
        y : ignored
            There because scikit-learn passes it.

        Returns
        -------
        self
        """
        self._check_parameters()
        X = self._vectors(X, reset=True)
        with _threads(self.n_jobs):
            index = index_factory(X.shape[1], self.index)
            _set_search_parameters(index, self.parameters or {})
            try:
                index.train(X)
            except RuntimeError as error:
                if len(X) > 1:
                    raise
                # scikit-learn expects a ValueError
                raise ValueError(
                    f"the index {self.index!r} cannot be trained on 1 sample: "
                    f"{error}") from error
            index.add(X)
        self.index_ = index
        self.n_samples_fit_ = self._n_features_out = len(X)
        self._fit_X = X
        return self

    def __getstate__(self):
        state = super().__getstate__()
        if "index_" not in state:
            return state
        # FAISS's files have not all of them (no max_codes)
        return {**state, "_search_values": index_parameters(self.index_)}

    def __setstate__(self, state):
        state = dict(state)
        values = state.pop("_search_values", {})
        super().__setstate__(state)
        if values:
            _set_search_parameters(self.index_, values)

    def _check_parameters(self):
        if not isinstance(self.index, str):
            raise TypeError(f"index must be a string, got {self.index!r}")
        _as_n_neighbors(self.n_neighbors)
        if not isinstance(self.parameters, (dict, type(None))):
            raise TypeError(
                f"parameters must be a dict, got {self.parameters!r}")

    def _vectors(self, X, reset):
        """X as the index takes it. reset: X sets the dimension, and is copied
        because it is kept."""
        how = {"reset": reset, "dtype": "float32", "order": "C", "copy": reset}
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
        """The nearest neighbours of vectors.

        Parameters
        ----------
        X : array_like, shape (n_queries, n_features), optional
            Queries. If left out, the neighbours of each training vector are
            returned, without itself.
        n_neighbors : int, optional
            Neighbours of each query; the estimator's n_neighbors if left out.
        return_distance : bool, optional
            Whether to return the distances.

        Returns
        -------
        distances : float64, shape (n_queries, n_neighbors)
            In ascending order; only if return_distance is true.
        indices : int64, shape (n_queries, n_neighbors)
            Positions in the training data.

        Raises
        ------
        ValueError
            If there are not as many training vectors.
        RuntimeError
            If an approximate index finds fewer for one of the queries.

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
                f"n_samples = {len(X)}")
        with _threads(self.n_jobs):
            squared, indices = self.index_.search(X, k + without_self)
        if without_self:
            keep = indices != np.arange(len(X))[:, None]
            # where the vector itself was not found, the last one goes
            keep[keep.all(axis=1), -1] = False
            squared, indices = (
                a[keep].reshape(len(X), k) for a in (squared, indices))
        self._check_found(indices)
        if return_distance:
            return _distances(squared), indices
        return indices

    def _check_found(self, indices):
        missing = (indices < 0).any(axis=1).sum()
        if missing:
            names = " or ".join(
                name for name in index_parameters(self.index_)
                if name != "max_codes")  # of which 0, the default, is most
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
        """The graph of the nearest neighbours.

        Parameters
        ----------
        X : array_like, shape (n_queries, n_features), optional
            Queries. If left out, the neighbours of each training vector are
            those without itself.
        n_neighbors : int, optional
            Neighbours of each query; the estimator's n_neighbors if left out.
        mode : "connectivity" or "distance", optional
            Whether edges weigh 1 or are distances.

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

    def _graph(self, distances, indices, mode):
        """The sparse matrix of neighbours, given row by row."""
        ends = np.cumsum([len(row) for row in indices])
        weights = np.concatenate(distances)
        if mode == "connectivity":
            weights = np.ones_like(weights)
        return csr_matrix(
            (weights, np.concatenate(indices), np.append(0, ends)),
            shape=(len(indices), self.n_samples_fit_))


class KernelNeighbors(_IndexNeighbors):
    """Neighbours under a kernel, searched for as NearestNeighbors does.

    Distances are those in the kernel's feature space,
    sqrt(k(x, x) + k(y, y) - 2 k(x, y)): the square root of FAISS's METRIC_L2.
    Under the linear kernel, and with FAISS's own indexes, they are Euclidean;
    those of codes that are not ranked again are square roots of Hamming
    distances.

    Parameters
    ----------
    index : str, optional
        A string of faiss_ext or FAISS: KFlat(gaussian) is exact,
        SIK512(gaussian),BFlat,Refine(KFlat(gaussian)) approximate.
    n_neighbors : int, optional
        Neighbours that kneighbors looks for.
    radius : float, optional
        Distance within which radius_neighbors looks.
    n_jobs : int, optional
        Threads, -1 for all processors; if left out, as many as FAISS is set to
        use (faiss.omp_set_num_threads).
    parameters : dict, optional
        Parameters of searches by name, each for the outermost part of the
        index that has it: nprobe, max_codes, k_factor, efSearch, nflip, B.
        They are set by fit.

    Attributes
    ----------
    index_ : faiss.Index
        The index, trained and filled.
    n_features_in_ : int
        Dimension of the training vectors.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where the training data have names.
    n_samples_fit_ : int
        Number of training vectors.

    See Also
    --------
    KernelNeighborsTransformer : The graph of neighbours, for pipelines, with
        one more neighbour and a choice of what edges weigh.

    Notes
    -----
    Vectors are float32, and so are FAISS's squared distances: those that are
    small beside k(x, x) are rough.

    A copy of the training vectors is kept beside the index, for calls without
    X.

    Negative components are an error with kernels of histograms, and not every
    index can search within a radius (Refine(...) cannot): such errors are
    those of faiss_ext and FAISS, mostly a RuntimeError.

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
    """

    def __init__(
        self, index: str = "KFlat(gaussian)", *, n_neighbors: int = 5,
        radius: "float | None" = None, n_jobs: "int | None" = None,
        parameters: "dict[str, Any] | None" = None
    ) -> None:
        self.index = index
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.n_jobs = n_jobs
        self.parameters = parameters

    def _check_parameters(self):
        super()._check_parameters()
        if self.radius is not None:
            _check_radius(self.radius)

    def transform(self, X: ArrayLike) -> csr_matrix:
        """The graph of the nearest neighbours of vectors, with distances.

        Parameters
        ----------
        X : array_like, shape (n_queries, n_features)

        Returns
        -------
        scipy.sparse.csr_matrix, shape (n_queries, n_samples_fit_)
            Only neighbours have entries, n_neighbors a row, in ascending order
            of distance. A training vector is among its own neighbours.

        Examples
        --------
        >>> from faiss_ext.sklearn import KernelNeighbors
        >>> neighbors = KernelNeighbors("KFlat(linear)", n_neighbors=2)
        >>> neighbors.fit([[0], [3], [1]]).transform([[4]]).toarray()
        array([[0., 1., 3.]])
        """
        return self.kneighbors_graph(X, mode="distance")

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
        """All neighbours within a distance.

        Parameters
        ----------
        X : array_like, shape (n_queries, n_features), optional
            Queries. If left out, the neighbours of each training vector are
            returned, without itself.
        radius : float, optional
            The largest distance; the estimator's radius if left out.
        return_distance : bool, optional
            Whether to return the distances.
        sort_results : bool, optional
            Whether each query's neighbours are in ascending order of their
            distances; needs return_distance.

        Returns
        -------
        distances : array of n_queries arrays, float64
            Only if return_distance is true.
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
                "radius: none was given, here or to the estimator")
        _check_radius(radius)
        without_self = X is None
        X = self._fit_X if X is None else self._vectors(X, reset=False)
        # FAISS looks for what is nearer: the distance itself counts here; a
        # denormal bound would be 0 for a processor that flushes them
        with np.errstate(over="ignore"):
            bound = max(np.nextafter(np.float32(np.float64(radius) ** 2),
                                     np.float32(np.inf)),
                        np.finfo("float32").tiny)
        with _threads(self.n_jobs):
            ends, squared, indices = self.index_.range_search(X, float(bound))
        ends = ends.astype("int64")
        if without_self:
            keep = indices != np.repeat(np.arange(len(X)), np.diff(ends))
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
        """The graph of the neighbours within a distance.

        Parameters
        ----------
        X : array_like, shape (n_queries, n_features), optional
            Queries. If left out, the neighbours of each training vector are
            those without itself.
        radius : float, optional
            The largest distance; the estimator's radius if left out.
        mode : "connectivity" or "distance", optional
            Whether edges weigh 1 or are distances.
        sort_results : bool, optional
            Whether the entries of each row are in ascending order of their
            distances.

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


class KernelNeighborsTransformer(_IndexNeighbors):
    """The graph of neighbours under a kernel, as of KNeighborsTransformer.

    It goes in front of what takes distances as sparse matrices
    (metric="precomputed"): KNeighborsClassifier, TSNE, DBSCAN and others.
    Distances are those in the kernel's feature space, as KernelNeighbors has
    them.

    Parameters
    ----------
    index : str, optional
        A string of faiss_ext or FAISS: KFlat(gaussian) is exact,
        SIK512(gaussian),BFlat,Refine(KFlat(gaussian)) approximate.
    n_neighbors : int, optional
        Neighbours of each vector. With mode="distance" there is one more, as a
        training vector is among its own neighbours (if not as many others are
        equal to it).
    mode : "distance" or "connectivity", optional
        Whether edges are distances or weigh 1.
    n_jobs : int, optional
        Threads, -1 for all processors; if left out, as many as FAISS is set to
        use (faiss.omp_set_num_threads).
    parameters : dict, optional
        Parameters of searches by name, each for the outermost part of the
        index that has it: nprobe, max_codes, k_factor, efSearch, nflip, B.
        They are set by fit.

    Attributes
    ----------
    index_ : faiss.Index
        The index, trained and filled.
    n_features_in_ : int
        Dimension of the training vectors.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where the training data have names.
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

    UMAP takes the neighbours themselves, where each vector is the first of its
    own (or one that is equal to it)::

        distances, indices = transformer.kneighbors(X, n_neighbors=15)
        umap.UMAP(n_neighbors=15, precomputed_knn=(indices, distances))
    """

    def __init__(
        self, index: str = "KFlat(gaussian)", *, n_neighbors: int = 5,
        mode: str = "distance", n_jobs: "int | None" = None,
        parameters: "dict[str, Any] | None" = None
    ) -> None:
        self.index = index
        self.n_neighbors = n_neighbors
        self.mode = mode
        self.n_jobs = n_jobs
        self.parameters = parameters

    def _check_parameters(self):
        super()._check_parameters()
        _check_mode(self.mode)

    def transform(self, X: ArrayLike) -> csr_matrix:
        """The graph of the nearest neighbours of vectors.

        Parameters
        ----------
        X : array_like, shape (n_queries, n_features)

        Returns
        -------
        scipy.sparse.csr_matrix, shape (n_queries, n_samples_fit_)
            Only neighbours have entries, in ascending order of distance:
            n_neighbors a row, or n_neighbors + 1 with mode="distance".
        """
        check_is_fitted(self)
        more = self.mode == "distance"
        return self.kneighbors_graph(
            X, _as_n_neighbors(self.n_neighbors) + more, self.mode)
