# SPDX-License-Identifier: MIT
"""Signatures and docstrings of functions that FAISS wraps or does not document.

For functions that SWIG wraps, tidy_module.py writes them when the package is
built.
"""

import functools

import faiss
import numpy as np


class OpaqueDefault:
    """A default value that Python cannot express."""

    def __repr__(self):
        return "..."


OPAQUE_DEFAULT = OpaqueDefault()


class Attribute(property):
    """A property that has the Python type of its value."""

    def __init__(self, fget=None, fset=None, doc=None, type=None):
        super().__init__(fget, fset)
        self.__doc__, self.type = doc, type

    @classmethod
    def of(cls, member, fget):
        """Copies a property, with another getter."""
        return cls(fget, member.fset, member.__doc__ or "",
                   getattr(member, "type", None))


def document(function, template):
    """Gives a function the signature and docstring of a template."""
    functools.update_wrapper(
        function, template, ("__name__", "__doc__", "__annotations__"), ())


def document_methods(the_class, templates):
    """Documents the methods of a class like the methods of a template class."""
    methods = vars(the_class)
    for name, template in vars(templates).items():
        if name in methods and not name.startswith("_"):
            document(methods[name], template)


# --------------------------------------------------------- FAISS's methods

class FloatIndexMethods:
    """Methods of indexes of vectors."""

    def train(self, x: "ArrayLike", *, packed: "bool | int" = False) -> None:
        """Trains the index. Calling train on a trained index has no effect.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Training vectors.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as numpy.packbits gives; or
            their number of bits. The vectors are then their zeros and ones.
        """

    def add(self, x: "ArrayLike", *, packed: "bool | int" = False) -> None:
        """Adds vectors, with consecutive ids above all earlier ids.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Vectors.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as numpy.packbits gives; or
            their number of bits. The vectors are then their zeros and ones.
        """

    def add_with_ids(self, x: "ArrayLike", ids: "ArrayLike", *, packed: "bool | int" = False) -> None:
        """Adds vectors with given ids, which must not be in use.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Vectors.
        ids : array_like of int64, shape (n,)
            Their ids.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as numpy.packbits gives; or
            their number of bits. The vectors are then their zeros and ones.
        """

    def search(
            self, x: "ArrayLike", k: int, *,
            params: "faiss.SearchParameters | None" = None,
            filter: (
                "ArrayLike | set[int] | Callable[..., Any] | "
                "faiss.IDSelector | None") = None,
            D: "NDArray[np.float32] | None" = None,
            I: "NDArray[np.int64] | None" = None,
            packed: "bool | int" = False,
    ) -> "tuple[NDArray[np.float32], NDArray[np.int64]]":
        """Finds the k nearest neighbours of each query.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Queries.
        k : int
            Number of neighbours.
        params : faiss.SearchParameters, optional
            Search parameters.
        filter : array_like, set, range, callable or faiss.IDSelector, optional
            Search among some vectors only: an array or set of their ids, a
            boolean mask over all ids, a range of ids, or a function that gets an
            array of ids and returns a boolean mask.
        D, I : ndarray, optional
            Arrays to store the results in.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as numpy.packbits gives; or
            their number of bits. The vectors are then their zeros and ones.

        Returns
        -------
        D : float32, shape (n, k), distances
        I : int64, shape (n, k), ids; padded with -1 if fewer than k are found
        """

    def assign(
            self, x: "ArrayLike", k: int,
            labels: "NDArray[np.int64] | None" = None, *,
            packed: "bool | int" = False,
    ) -> "NDArray[np.int64]":
        """Searches, and returns only the ids.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Queries.
        k : int
            Number of neighbours.
        labels : ndarray, optional
            An array to store the result in.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as numpy.packbits gives; or
            their number of bits. The vectors are then their zeros and ones.

        Returns
        -------
        int64, shape (n, k)
        """

    def range_search(
            self, x: "ArrayLike", thresh: float, *,
            params: "faiss.SearchParameters | None" = None,
            filter: (
                "ArrayLike | set[int] | Callable[..., Any] | "
                "faiss.IDSelector | None") = None,
            packed: "bool | int" = False,
    ) -> "tuple[NDArray[Any], NDArray[np.float32], NDArray[np.int64]]":
        """Finds all vectors within a threshold of each query.

        Results have a distance below the threshold, or a kernel value above it
        under METRIC_INNER_PRODUCT.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Queries.
        thresh : float
            The threshold.
        params : faiss.SearchParameters, optional
            Search parameters.
        filter : array_like, set, range, callable or faiss.IDSelector, optional
            Search among some vectors only: an array or set of their ids, a
            boolean mask over all ids, a range of ids, or a function that gets an
            array of ids and returns a boolean mask.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as numpy.packbits gives; or
            their number of bits. The vectors are then their zeros and ones.

        Returns
        -------
        lims, D, I : query i has the distances D[lims[i]:lims[i + 1]] and the
            ids I[lims[i]:lims[i + 1]]
        """

    def search_and_reconstruct(
            self, x: "ArrayLike", k: int, *,
            params: "faiss.SearchParameters | None" = None,
            filter: (
                "ArrayLike | set[int] | Callable[..., Any] | "
                "faiss.IDSelector | None") = None,
            D: "NDArray[np.float32] | None" = None,
            I: "NDArray[np.int64] | None" = None,
            R: "NDArray[np.float32] | None" = None,
            packed: "bool | int" = False,
    ) -> ("tuple[NDArray[np.float32], NDArray[np.int64], "
          "NDArray[np.float32]]"):
        """Searches, and also returns the vectors that were found.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Queries.
        k : int
            Number of neighbours.
        params : faiss.SearchParameters, optional
            Search parameters.
        filter : array_like, set, range, callable or faiss.IDSelector, optional
            Search among some vectors only: see search.
        D, I, R : ndarray, optional
            Arrays to store the results in.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as numpy.packbits gives; or
            their number of bits. The vectors are then their zeros and ones.

        Returns
        -------
        D, I : as from search
        R : float32, shape (n, k, d), the vectors
        """

    def reconstruct(
            self, key: int, x: "NDArray[np.float32] | None" = None,
    ) -> "NDArray[np.float32]":
        """Returns the vector with an id.

        Parameters
        ----------
        key : int
            The id.
        x : ndarray, optional
            An array to store the result in.

        Returns
        -------
        float32, shape (d,)
        """

    def reconstruct_n(
            self, n0: int = 0, ni: int = -1,
            x: "NDArray[np.float32] | None" = None,
    ) -> "NDArray[np.float32]":
        """Returns the vectors with ids n0 to n0 + ni - 1.

        Parameters
        ----------
        n0 : int, optional
            The first id.
        ni : int, optional
            Number of vectors; -1 for all from n0 on.
        x : ndarray, optional
            An array to store the result in.

        Returns
        -------
        float32, shape (ni, d)
        """

    def reconstruct_batch(
            self, key: "ArrayLike", x: "NDArray[np.float32] | None" = None,
    ) -> "NDArray[np.float32]":
        """Returns the vectors with the given ids.

        Parameters
        ----------
        key : array_like of int64, shape (n,)
            The ids.
        x : ndarray, optional
            An array to store the result in.

        Returns
        -------
        float32, shape (n, d)
        """

    def remove_ids(self, x: "ArrayLike | faiss.IDSelector") -> int:
        """Removes vectors, if the index supports it.

        Parameters
        ----------
        x : array_like of int64, or faiss.IDSelector
            The ids.

        Returns
        -------
        int
            Number of removed vectors.
        """

    def sa_code_size(self) -> int:
        """Returns the size of a code of sa_encode, in bytes.

        Returns
        -------
        int
        """

    def sa_encode(
            self, x: "ArrayLike", codes: "NDArray[np.uint8] | None" = None,
    ) -> "NDArray[np.uint8]":
        """Encodes vectors.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Vectors.
        codes : ndarray, optional
            An array to store the result in.

        Returns
        -------
        uint8, shape (n, sa_code_size())
        """

    def sa_decode(
            self, codes: "ArrayLike", x: "NDArray[np.float32] | None" = None,
    ) -> "NDArray[np.float32]":
        """Decodes vectors, if the index supports it.

        Parameters
        ----------
        codes : array_like of uint8, shape (n, sa_code_size())
            Codes of sa_encode.
        x : ndarray, optional
            An array to store the result in.

        Returns
        -------
        float32, shape (n, d)
        """

    def reset(self) -> None:
        """Removes all vectors. The index stays trained."""

    def merge_from(self, otherIndex: "faiss.Index", add_id: int = 0) -> None:
        """Moves the vectors of another index to this one.

        Parameters
        ----------
        otherIndex : faiss.Index
            An index that was made and trained in the same way. It is empty
            afterwards.
        add_id : int, optional
            A number to add to the ids of that index.
        """

    def check_compatible_for_merge(self, otherIndex: "faiss.Index") -> None:
        """Raises RuntimeError if merge_from cannot merge another index.

        Parameters
        ----------
        otherIndex : faiss.Index
            The index to merge.
        """


class BinaryIndexMethods:
    """Methods of indexes of binary codes."""

    def train(self, x: "ArrayLike") -> None:
        """Trains the index.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Training codes.
        """

    def add(self, x: "ArrayLike") -> None:
        """Adds codes, with consecutive ids above all earlier ids.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Codes.
        """

    def add_with_ids(self, x: "ArrayLike", ids: "ArrayLike") -> None:
        """Adds codes with given ids, which must not be in use.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Codes.
        ids : array_like of int64, shape (n,)
            Their ids.
        """

    def search(
            self, x: "ArrayLike", k: int, *,
            params: "faiss.SearchParameters | None" = None,
            filter: (
                "ArrayLike | set[int] | Callable[..., Any] | "
                "faiss.IDSelector | None") = None,
    ) -> "tuple[NDArray[np.int32], NDArray[np.int64]]":
        """Finds the k nearest codes of each query.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Queries.
        k : int
            Number of neighbours.
        params : faiss.SearchParameters, optional
            Search parameters.
        filter : array_like, set, range, callable or faiss.IDSelector, optional
            Search among some vectors only: an array or set of their ids, a
            boolean mask over all ids, a range of ids, or a function that gets an
            array of ids and returns a boolean mask.

        Returns
        -------
        D : int32, shape (n, k), Hamming distances; (1 - k) * 2**30 for BKFlat
        I : int64, shape (n, k), ids; padded with -1 if fewer than k are found
        """

    def range_search(
            self, x: "ArrayLike", thresh: float, *,
            params: "faiss.SearchParameters | None" = None,
            filter: (
                "ArrayLike | set[int] | Callable[..., Any] | "
                "faiss.IDSelector | None") = None,
    ) -> "tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]":
        """Finds all codes at a distance below thresh of each query.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Queries.
        thresh : float
            The threshold.
        params : faiss.SearchParameters, optional
            Search parameters.
        filter : array_like, set, range, callable or faiss.IDSelector, optional
            Search among some vectors only: an array or set of their ids, a
            boolean mask over all ids, a range of ids, or a function that gets an
            array of ids and returns a boolean mask.

        Returns
        -------
        lims, D, I : query i has the distances D[lims[i]:lims[i + 1]] and the
            ids I[lims[i]:lims[i + 1]]
        """

    def reconstruct(self, key: int) -> "NDArray[np.uint8]":
        """Returns the code with an id.

        Parameters
        ----------
        key : int
            The id.

        Returns
        -------
        uint8, shape (code_size,)
        """

    def reconstruct_n(
            self, n0: int = 0, ni: int = -1,
            x: "NDArray[np.uint8] | None" = None,
    ) -> "NDArray[np.uint8]":
        """Returns the codes with ids n0 to n0 + ni - 1.

        Parameters
        ----------
        n0 : int, optional
            The first id.
        ni : int, optional
            Number of codes; -1 for all from n0 on.
        x : ndarray, optional
            An array to store the result in.

        Returns
        -------
        uint8, shape (ni, code_size)
        """

    def reconstruct_batch(
            self, key: "ArrayLike", x: "NDArray[np.uint8] | None" = None,
    ) -> "NDArray[np.uint8]":
        """Returns the codes with the given ids.

        Parameters
        ----------
        key : array_like of int64, shape (n,)
            The ids.
        x : ndarray, optional
            An array to store the result in.

        Returns
        -------
        uint8, shape (n, code_size)
        """

    def search_and_reconstruct(
            self, x: "ArrayLike", k: int, *,
            params: "faiss.SearchParameters | None" = None,
            filter: (
                "ArrayLike | set[int] | Callable[..., Any] | "
                "faiss.IDSelector | None") = None,
    ) -> ("tuple[NDArray[np.int32], NDArray[np.int64], "
          "NDArray[np.uint8]]"):
        """Searches, and also returns the codes that were found.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Queries.
        k : int
            Number of neighbours.
        params : faiss.SearchParameters, optional
            Search parameters.
        filter : array_like, set, range, callable or faiss.IDSelector, optional
            Search among some vectors only: see search.

        Returns
        -------
        D : int32, shape (n, k), Hamming distances
        I : int64, shape (n, k), ids; padded with -1 if fewer than k are found
        R : uint8, shape (n, k, code_size), the codes; bytes of 255 for padding
        """

    def assign(self, x: "ArrayLike", k: int = 1) -> "NDArray[np.int64]":
        """Searches, and returns only the ids.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Queries.
        k : int, optional
            Number of neighbours.

        Returns
        -------
        int64, shape (n, k)
        """

    def remove_ids(self, x: "ArrayLike | faiss.IDSelector") -> int:
        """Removes codes, if the index supports it.

        Parameters
        ----------
        x : array_like of int64, or faiss.IDSelector
            The ids.

        Returns
        -------
        int
            Number of removed codes.
        """

    def reset(self) -> None:
        """Removes all codes. The index stays trained."""

    def merge_from(self, other: "faiss.IndexBinary", add_id: int = 0) -> None:
        """Moves the codes of another index to this one.

        Parameters
        ----------
        other : faiss.IndexBinary
            An index that was made and trained in the same way. It is empty
            afterwards.
        add_id : int, optional
            A number to add to the ids of that index.
        """

    def check_compatible_for_merge(self, other: "faiss.IndexBinary") -> None:
        """Raises RuntimeError if merge_from cannot merge another index.

        Parameters
        ----------
        other : faiss.IndexBinary
            The index to merge.
        """


class HashedIndexMethods:
    """Methods of a hash in front of an index of binary codes.

    They take vectors of any number type. Methods with `codes` in their name
    take codes.
    """

    def train(self, x: "ArrayLike", *, packed: "bool | int" = False) -> None:
        """Trains the hash and the storage.

        Parameters
        ----------
        x : array_like, shape (n, hash.d_in)
            Training vectors.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as numpy.packbits gives; or
            their number of bits. The vectors are then their zeros and ones.
        """

    def train_codes(self, x: "ArrayLike") -> None:
        """Trains only the storage.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Training codes.
        """

    def add(self, x: "ArrayLike", *, packed: "bool | int" = False) -> None:
        """Adds vectors, with consecutive ids above all earlier ids.

        Parameters
        ----------
        x : array_like, shape (n, hash.d_in)
            Vectors.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as numpy.packbits gives; or
            their number of bits. The vectors are then their zeros and ones.
        """

    def add_with_ids(self, x: "ArrayLike", ids: "ArrayLike", *, packed: "bool | int" = False) -> None:
        """Adds vectors with given ids, which must not be in use.

        Parameters
        ----------
        x : array_like, shape (n, hash.d_in)
            Vectors.
        ids : array_like of int64, shape (n,)
            Their ids.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as numpy.packbits gives; or
            their number of bits. The vectors are then their zeros and ones.
        """

    def assign(self, x: "ArrayLike", k: int = 1, *, packed: "bool | int" = False) -> "NDArray[np.int64]":
        """Searches, and returns only the ids.

        Parameters
        ----------
        x : array_like, shape (n, hash.d_in)
            Queries.
        k : int, optional
            Number of neighbours.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as numpy.packbits gives; or
            their number of bits. The vectors are then their zeros and ones.

        Returns
        -------
        int64, shape (n, k)
        """

    def search_and_reconstruct(
        self, x: "ArrayLike", k: int, *,
        params: "faiss.SearchParameters | None" = None,
        filter: (
            "ArrayLike | set[int] | Callable[..., Any] | "
            "faiss.IDSelector | None") = None,
        packed: "bool | int" = False
    ) -> ("tuple[NDArray[np.int32], NDArray[np.int64], "
          "NDArray[np.uint8]]"):
        """Searches, and also returns the codes that were found.

        Parameters
        ----------
        x : array_like, shape (n, hash.d_in)
            Queries.
        k : int
            Number of neighbours.
        params : faiss.SearchParameters, optional
            Search parameters for the storage.
        filter : array_like, set, range, callable or faiss.IDSelector, optional
            Search among some vectors only: see search.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as numpy.packbits gives; or
            their number of bits. The vectors are then their zeros and ones.

        Returns
        -------
        D : int32, shape (n, k), Hamming distances
        I : int64, shape (n, k), ids; padded with -1 if fewer than k are found
        R : uint8, shape (n, k, code_size), the codes; bytes of 255 for padding
        """

    def search(
        self, x: "ArrayLike", k: int, *,
        params: "faiss.SearchParameters | None" = None,
        filter: (
            "ArrayLike | set[int] | Callable[..., Any] | "
            "faiss.IDSelector | None") = None,
        packed: "bool | int" = False
    ) -> "tuple[NDArray[np.int32], NDArray[np.int64]]":
        """Finds the k nearest codes of each query.

        Parameters
        ----------
        x : array_like, shape (n, hash.d_in)
            Queries.
        k : int
            Number of neighbours.
        params : faiss.SearchParameters, optional
            Search parameters for the storage.
        filter : array_like, set, range, callable or faiss.IDSelector, optional
            Search among some vectors only: an array or set of their ids, a
            boolean mask over all ids, a range of ids, or a function that gets an
            array of ids and returns a boolean mask.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as numpy.packbits gives; or
            their number of bits. The vectors are then their zeros and ones.

        Returns
        -------
        D : int32, shape (n, k), Hamming distances
        I : int64, shape (n, k), ids; padded with -1 if fewer than k are found
        """

    def range_search(
        self, x: "ArrayLike", thresh: float, *,
        params: "faiss.SearchParameters | None" = None,
        filter: (
            "ArrayLike | set[int] | Callable[..., Any] | "
            "faiss.IDSelector | None") = None,
        packed: "bool | int" = False
    ) -> "tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]":
        """Finds all codes at a Hamming distance below thresh of each query.

        Parameters
        ----------
        x : array_like, shape (n, hash.d_in)
            Queries.
        thresh : float
            The threshold.
        params : faiss.SearchParameters, optional
            Search parameters for the storage.
        filter : array_like, set, range, callable or faiss.IDSelector, optional
            Search among some vectors only: an array or set of their ids, a
            boolean mask over all ids, a range of ids, or a function that gets an
            array of ids and returns a boolean mask.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as numpy.packbits gives; or
            their number of bits. The vectors are then their zeros and ones.

        Returns
        -------
        lims, D, I : query i has the distances D[lims[i]:lims[i + 1]] and the
            ids I[lims[i]:lims[i + 1]]
        """

    def add_codes(self, x: "ArrayLike") -> None:
        """Adds codes, with consecutive ids above all earlier ids.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Codes.
        """

    def add_codes_with_ids(self, x: "ArrayLike", ids: "ArrayLike") -> None:
        """Adds codes with given ids, which must not be in use.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Codes.
        ids : array_like of int64, shape (n,)
            Their ids.
        """

    def search_codes(
        self, x: "ArrayLike", k: int, *,
        params: "faiss.SearchParameters | None" = None,
        filter: (
            "ArrayLike | set[int] | Callable[..., Any] | "
            "faiss.IDSelector | None") = None,
    ) -> "tuple[NDArray[np.int32], NDArray[np.int64]]":
        """Finds the k nearest codes of each code.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Codes of the queries.
        k : int
            Number of neighbours.
        params : faiss.SearchParameters, optional
            Search parameters for the storage.
        filter : array_like, set, range, callable or faiss.IDSelector, optional
            Search among some vectors only: an array or set of their ids, a
            boolean mask over all ids, a range of ids, or a function that gets an
            array of ids and returns a boolean mask.

        Returns
        -------
        D : int32, shape (n, k), Hamming distances
        I : int64, shape (n, k), ids; padded with -1 if fewer than k are found
        """

    def range_search_codes(
        self, x: "ArrayLike", thresh: float, *,
        params: "faiss.SearchParameters | None" = None,
        filter: (
            "ArrayLike | set[int] | Callable[..., Any] | "
            "faiss.IDSelector | None") = None,
    ) -> "tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]":
        """Finds all codes at a Hamming distance below thresh of each code.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Codes of the queries.
        thresh : float
            The threshold.
        params : faiss.SearchParameters, optional
            Search parameters for the storage.
        filter : array_like, set, range, callable or faiss.IDSelector, optional
            Search among some vectors only: an array or set of their ids, a
            boolean mask over all ids, a range of ids, or a function that gets an
            array of ids and returns a boolean mask.

        Returns
        -------
        lims, D, I : query i has the distances D[lims[i]:lims[i + 1]] and the
            ids I[lims[i]:lims[i + 1]]
        """


# ------------------------------------------------------- FAISS's functions

class Functions:
    """Functions of the faiss module that faiss_ext extends."""

    def index_factory(
            d: int, description: str, metric: int = faiss.METRIC_L2,
    ) -> "faiss.Index":
        """Makes an index from a factory string.

        Strings of faiss_ext:

        - `scheme,storage`: a hash in front of a binary index
        - `KFlat(kernel)`: exact search
        - `HNSW32,KFlat(kernel)`: a graph; `HNSW32(efConstruction=100,
          efSearch=64),KFlat(kernel)` sets its parameters

        `IDMap,` and transformations such as `PCA64,` or `HKM1(chi2),` can be
        put in front, and `,Refine(KFlat(kernel))` at the end. Any other string
        goes to FAISS unchanged.

        Parameters
        ----------
        d : int
            Input dimension.
        description : str
            The factory string.
        metric : int, optional
            faiss.METRIC_L2 or faiss.METRIC_INNER_PRODUCT.

        Returns
        -------
        faiss.Index
        """

    def holds_faiss_ext(
            thing: "faiss.Index | faiss.IndexBinary | faiss.VectorTransform",
            /,
    ) -> bool:
        """Tells whether an object, or a part of it, belongs to faiss_ext.

        Parameters
        ----------
        thing : faiss.Index, faiss.IndexBinary or faiss.VectorTransform
            The object.

        Returns
        -------
        bool
        """

    def write_index(
            index: "faiss.Index",
            f: "str | os.PathLike[str] | faiss.IOWriter",
    ) -> None:
        """Writes an index to a file.

        Parameters
        ----------
        index : faiss.Index
            The index.
        f : str, path or faiss.IOWriter
            The file.
        """

    def read_index(
            f: "str | os.PathLike[str] | faiss.IOReader", io_flags: int = 0,
    ) -> "faiss.Index":
        """Reads an index that write_index has written.

        Parameters
        ----------
        f : str, path or faiss.IOReader
            The file.
        io_flags : int, optional
            faiss.IO_FLAG_... With IO_FLAG_MMAP, codes, vectors and lists are
            mapped, and the index can only be searched.

        Returns
        -------
        faiss.Index
        """

    def write_index_binary(
            index: "faiss.IndexBinary",
            f: "str | os.PathLike[str] | faiss.IOWriter",
    ) -> None:
        """Writes a binary index to a file.

        Parameters
        ----------
        index : faiss.IndexBinary
            The index.
        f : str, path or faiss.IOWriter
            The file.
        """

    def read_index_binary(
            f: "str | os.PathLike[str] | faiss.IOReader", io_flags: int = 0,
    ) -> "faiss.IndexBinary":
        """Reads a binary index that write_index_binary has written.

        faiss_ext.read_index_binary makes flat indexes IndexBinaryFlatSIMD and
        inverted lists IndexBinaryIVFSIMD, which have the faster scan.
        faiss.read_index_binary keeps FAISS's classes.

        Parameters
        ----------
        f : str, path or faiss.IOReader
            The file.
        io_flags : int, optional
            faiss.IO_FLAG_... With IO_FLAG_MMAP, codes, vectors and lists are
            mapped, and the index can only be searched.

        Returns
        -------
        faiss.IndexBinary
        """

    def write_VectorTransform(
            vt: "faiss.VectorTransform",
            f: "str | os.PathLike[str] | faiss.IOWriter",
    ) -> None:
        """Writes a map, a hash or a transformation of FAISS to a file.

        Parameters
        ----------
        vt : faiss.VectorTransform
            The transformation.
        f : str, path or faiss.IOWriter
            The file.
        """

    def read_VectorTransform(
            f: "str | os.PathLike[str] | faiss.IOReader",
    ) -> "faiss.VectorTransform":
        """Reads a transformation that write_VectorTransform has written.

        Parameters
        ----------
        f : str, path or faiss.IOReader
            The file.

        Returns
        -------
        faiss.VectorTransform
        """

    def clone_index(index: "faiss.Index") -> "faiss.Index":
        """Makes a deep copy of an index.

        Parameters
        ----------
        index : faiss.Index
            The index.

        Returns
        -------
        faiss.Index
        """

    def clone_binary_index(index: "faiss.IndexBinary") -> "faiss.IndexBinary":
        """Makes a deep copy of a binary index, of any class that can be written.

        faiss_ext.clone_binary_index makes flat indexes IndexBinaryFlatSIMD and
        inverted lists IndexBinaryIVFSIMD, which have the faster scan.

        Parameters
        ----------
        index : faiss.IndexBinary
            An index of faiss_ext or of FAISS.

        Returns
        -------
        faiss.IndexBinary
        """
