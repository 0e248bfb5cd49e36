# SPDX-License-Identifier: MIT
"""Signatures and docstrings in Python's terms.

SWIG copies signatures and comments from C++, with C++ types and Doxygen
syntax. This module converts them to Python types and NumPy style. The
templates at the end document methods and functions that FAISS wraps or leaves
without a docstring.
"""

import inspect
import re

import faiss
import numpy as np

NUMBERS = {
    "bool": "bool", "int": "int", "size_t": "int", "int64_t": "int", "int32_t": "int",
    "idx_t": "int", "faiss::MetricType": "int", "float": "float",
    "double": "float"}
VECTORS = {
    "float": "Float32Vector", "double": "Float64Vector",
    "int32_t": "Int32Vector", "uint8_t": "UInt8Vector"}
BUILTINS = {"bool": bool, "int": int, "float": float, "str": str, "None": None}


class OpaqueDefault:
    """A default value that Python cannot express."""

    def __repr__(self):
        return "..."


class Attribute(property):
    """A property that has the Python type of its value."""

    type = None

    @classmethod
    def of(cls, member, fget=None):
        """Copies a property, with another getter if one is given."""
        attribute = cls(fget or member.fget, member.fset)
        attribute.__doc__ = member.__doc__ or ""
        attribute.type = getattr(member, "type", None)
        return attribute


def python_type(words, module):
    """The Python type of a C++ type, as a string; None if there is none."""
    words = re.sub(r"\bconst\b|&", "", words)
    words = re.sub(r"\bfaiss_ext::", "", words).strip()
    held = re.fullmatch(r"(?:std::unique_ptr|ClonePtr)<(.*)>", words)
    name = held[1].strip() if held else words.rstrip("* ")
    if name in NUMBERS:
        return NUMBERS[name] if "*" not in words else None
    if name in ("void", "std::string"):
        return {"void": "None", "std::string": "str"}[name]
    if name == "std::vector< std::string >":
        return "list[str]"
    vector = re.fullmatch(r"std::vector< (\w+) >", name)
    if vector:
        return "faiss." + VECTORS[vector[1]] if vector[1] in VECTORS else None
    name = name.replace("faiss::", "")
    if "::" in name:
        return "str"  # enumerators are strings in Python
    if hasattr(module, name):
        return name
    return "faiss." + name if hasattr(faiss, name) else None


def python_text(text):
    """A C++ comment in Python's terms."""
    # drop examples, which are in C++
    text = "\n\n".join(part for part in text.split("\n\n")
                       if not re.search(r"^    .*;( *//.*)?$", part, re.M))
    text = text.replace("faiss::FaissException", "RuntimeError")
    text = re.sub(r"\bThrows\b", "Raises", text)
    text = re.sub(r"\bthrows\b", "raises", text)
    text = re.sub(r"\bnull\b", "None", text)
    return re.sub(r"(\w)(?:::|->)(\w)", r"\1.\2", text)


def split_fields(doc):
    """The text of a docstring, and its `:param x:` fields by name."""
    text, params, current = [], {}, None
    for line in doc.splitlines():
        field = re.match(
            r" ?:(type|param|rtype|return)s? ?(\w*)[:,](.*)", line)
        if field:
            current = field[2] if field[1] == "param" else ""
            params.setdefault(current, []).append(field[3].strip())
        elif current is not None and line.startswith(" "):
            params[current].append(line.strip())
        else:
            current = None
            text.append(line)
    params = {name: python_text(" ".join(lines).lstrip(", "))
              for name, lines in params.items() if name}
    return python_text("\n".join(text).strip()), params


def numpy_docstring(text, params, signature):
    """A docstring with the sections Parameters and Returns."""
    names = [p for p in signature.parameters.values() if p.name != "self"]
    sections = [text]
    if names:
        lines = ["Parameters", "----------"]
        for p in names:
            kind = inspect.formatannotation(p.annotation).strip("'")
            kind = "" if p.annotation is p.empty else f" : {kind}"
            optional = ", optional" if p.default is not p.empty else ""
            lines.append(f"{p.name}{kind}{optional}")
            if p.name in params:
                lines.append("    " + params[p.name])
        sections.append("\n".join(lines))
    if signature.return_annotation not in (signature.empty, None):
        kind = inspect.formatannotation(signature.return_annotation)
        kind = kind.strip("'")
        sections.append(f"Returns\n-------\n{kind}")
    return "\n\n".join(sections)


def tidy_function(function, module):
    """Sets the signature and docstring of a function that SWIG wraps."""
    name = function.__name__
    if name.endswith("_c"):
        function.__annotations__ = {}
        return
    lines = inspect.cleandoc(function.__doc__ or "").splitlines()
    line = re.compile(rf"{name}\((.*)\)(?: -> .*)?")
    # of overloads, take the one with the most parameters
    parameters = max(
        (m[1] for m in map(line.fullmatch, lines) if m), key=len, default="")
    text, params = split_fields(
        "\n".join(x for x in lines if not line.fullmatch(x)))

    def annotation(words, name=None):
        kind = python_type(words, module)
        if kind is None:
            return inspect.Parameter.empty
        if "None" in params.get(name, ""):
            kind += " | None"
        return BUILTINS.get(kind, kind)

    signature = inspect.signature(function)
    if any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()):
        found = []
        for part in re.findall(r"(?:[^,<]|<[^>]*>)+", parameters):
            words, name, default = re.fullmatch(
                r"\s*(.*?)\s*(\w+)(?:=(.*))?", part).groups()
            empty = inspect.Parameter.empty
            found.append(inspect.Parameter(
                name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=empty if default is None else python_default(default),
                annotation=empty if name == "self"
                else annotation(words, name)))
        if not found:
            function.__annotations__ = {}
            return
        signature = inspect.Signature(found)
    else:
        signature = signature.replace(
            parameters=[
                p if p.annotation is p.empty
                else p.replace(annotation=annotation(p.annotation, p.name))
                for p in signature.parameters.values()],
            return_annotation=annotation(signature.return_annotation)
            if isinstance(signature.return_annotation, str)
            else signature.return_annotation)
    if function.__name__ == "__init__":
        signature = signature.replace(return_annotation=None)
    function.__signature__ = signature
    function.__annotations__ = {}
    function.__doc__ = (
        numpy_docstring(text, params, signature) if text or params else None)


def python_default(words):
    """A default value as written by SWIG; ... if Python cannot express it."""
    known = {"True": True, "False": False, "None": None}
    if words in known:
        return known[words]
    try:
        return float(words) if "." in words else int(words)
    except ValueError:
        return getattr(faiss, words.split("::")[-1] or "?", OpaqueDefault())


def tidy_class(the_class, module):
    types = vars(the_class).get("__annotations__", {})
    for name, member in list(vars(the_class).items()):
        if isinstance(member, staticmethod):
            tidy_function(member.__func__, module)
        elif inspect.isfunction(member):
            if name == "__init__" and "AttributeError" in (
                    member.__code__.co_names):
                member.__doc__ = "Objects come from factories and files."
                member.__signature__ = inspect.Signature([
                    inspect.Parameter(
                        "self", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
            else:
                tidy_function(member, module)
        elif isinstance(member, property) and name in types:
            attribute = Attribute.of(member)
            attribute.type = python_type(types[name], module)
            text = inspect.cleandoc(member.__doc__ or "")
            # drop SWIG's generated line
            text = "" if text.startswith(f"{name} : ") else python_text(text)
            attribute.__doc__ = ": ".join(
                x for x in (attribute.type, text) if x)
            setattr(the_class, name, attribute)
    if types:
        the_class.__annotations__ = {}
        del the_class.__annotations__
    if the_class.__doc__:
        the_class.__doc__ = python_text(inspect.cleandoc(the_class.__doc__))


def tidy(module):
    """Tidies all classes and functions of a SWIG module."""
    for thing in list(vars(module).values()):
        if getattr(thing, "__module__", None) != module.__name__:
            continue
        if isinstance(thing, type):
            tidy_class(thing, module)
        elif inspect.isfunction(thing) and not thing.__name__.startswith("_"):
            tidy_function(thing, module)


def document(function, template):
    """Gives a function the signature and docstring of a template."""
    function.__name__ = template.__name__
    function.__doc__ = inspect.cleandoc(template.__doc__)
    function.__signature__ = inspect.signature(template)


def document_methods(the_class, templates):
    """Documents the methods of a class with those of a template class."""
    for name, template in vars(templates).items():
        function = vars(the_class).get(name)
        if inspect.isfunction(function) and not name.startswith("_"):
            document(function, template)


# --------------------------------------------------------- FAISS's methods

class FloatIndexMethods:
    """Methods of indexes of vectors."""

    def train(self, x: "ArrayLike") -> None:
        """Trains the index. Calling train on a trained index has no effect.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Training vectors.
        """

    def add(self, x: "ArrayLike") -> None:
        """Adds vectors, with consecutive ids from ntotal.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Vectors.
        """

    def add_with_ids(self, x: "ArrayLike", ids: "ArrayLike") -> None:
        """Adds vectors with given ids, if the index supports it.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Vectors.
        ids : array_like of int64, shape (n,)
            Their ids.
        """

    def search(
            self, x: "ArrayLike", k: int, *,
            params: "faiss.SearchParameters | None" = None,
            D: "NDArray[np.float32] | None" = None,
            I: "NDArray[np.int64] | None" = None,
    ) -> "tuple[NDArray[np.float32], NDArray[np.int64]]":
        """The k nearest neighbours of each query.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Queries.
        k : int
            Number of neighbours.
        params : faiss.SearchParameters, optional
            Search parameters.
        D, I : ndarray, optional
            Arrays to store the results in.

        Returns
        -------
        D : float32, shape (n, k), distances
        I : int64, shape (n, k), ids; padded with -1 if fewer than k are found
        """

    def assign(
            self, x: "ArrayLike", k: int,
            labels: "NDArray[np.int64] | None" = None,
    ) -> "NDArray[np.int64]":
        """The ids that search returns, without distances.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Queries.
        k : int
            Number of neighbours.
        labels : ndarray, optional
            An array to store the result in.

        Returns
        -------
        int64, shape (n, k)
        """

    def range_search(
            self, x: "ArrayLike", thresh: float, *,
            params: "faiss.SearchParameters | None" = None,
    ) -> "tuple[NDArray[Any], NDArray[np.float32], NDArray[np.int64]]":
        """All vectors within a threshold of each query.

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

        Returns
        -------
        lims, D, I : query i has the distances D[lims[i]:lims[i + 1]] and the
            ids I[lims[i]:lims[i + 1]]
        """

    def search_and_reconstruct(
            self, x: "ArrayLike", k: int, *,
            params: "faiss.SearchParameters | None" = None,
            D: "NDArray[np.float32] | None" = None,
            I: "NDArray[np.int64] | None" = None,
            R: "NDArray[np.float32] | None" = None,
    ) -> ("tuple[NDArray[np.float32], NDArray[np.int64], "
          "NDArray[np.float32]]"):
        """Like search, and also returns the vectors that were found.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Queries.
        k : int
            Number of neighbours.
        params : faiss.SearchParameters, optional
            Search parameters.
        D, I, R : ndarray, optional
            Arrays to store the results in.

        Returns
        -------
        D, I : as from search
        R : float32, shape (n, k, d), the vectors
        """

    def reconstruct(
            self, key: int, x: "NDArray[np.float32] | None" = None,
    ) -> "NDArray[np.float32]":
        """The vector with an id.

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
        """The vectors with ids n0 to n0 + ni - 1.

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
        """The vectors with the given ids.

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
        """Size of a code of sa_encode, in bytes.

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
            Added to the ids, if the index stores ids.
        """

    def check_compatible_for_merge(self, otherIndex: "faiss.Index") -> None:
        """Raises RuntimeError if merge_from would raise it.

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
        """Adds codes, with consecutive ids from ntotal.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Codes.
        """

    def add_with_ids(self, x: "ArrayLike", ids: "ArrayLike") -> None:
        """Adds codes with given ids, if the index supports it.

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
    ) -> "tuple[NDArray[np.int32], NDArray[np.int64]]":
        """The k nearest codes of each query.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Queries.
        k : int
            Number of neighbours.
        params : faiss.SearchParameters, optional
            Search parameters.

        Returns
        -------
        D : int32, shape (n, k), Hamming distances; (1 - k) * 2**30 for BKFlat
        I : int64, shape (n, k), ids; padded with -1 if fewer than k are found
        """

    def range_search(
            self, x: "ArrayLike", thresh: float, *,
            params: "faiss.SearchParameters | None" = None,
    ) -> "tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]":
        """All codes at a distance below thresh.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Queries.
        thresh : float
            The threshold.
        params : faiss.SearchParameters, optional
            Search parameters.

        Returns
        -------
        lims, D, I : query i has the distances D[lims[i]:lims[i + 1]] and the
            ids I[lims[i]:lims[i + 1]]
        """

    def reconstruct(self, key: int) -> "NDArray[np.uint8]":
        """The code with an id.

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
        """The codes with ids n0 to n0 + ni - 1.

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

    def search_and_reconstruct(
            self, x: "ArrayLike", k: int, *,
            params: "faiss.SearchParameters | None" = None,
    ) -> ("tuple[NDArray[np.int32], NDArray[np.int64], "
          "NDArray[np.uint8]]"):
        """Like search, and also returns the codes that were found.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Queries.
        k : int
            Number of neighbours.
        params : faiss.SearchParameters, optional
            Search parameters.

        Returns
        -------
        D : int32, shape (n, k), Hamming distances
        I : int64, shape (n, k), ids; padded with -1 if fewer than k are found
        R : uint8, shape (n, k, code_size), the codes; bytes of 255 for padding
        """

    def assign(self, x: "ArrayLike", k: int = 1) -> "NDArray[np.int64]":
        """The ids that search returns, without distances.

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
            Added to the ids, if the index stores ids.
        """

    def check_compatible_for_merge(self, other: "faiss.IndexBinary") -> None:
        """Raises RuntimeError if merge_from would raise it.

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

    def train(self, x: "ArrayLike") -> None:
        """Trains the hash and the storage.

        Parameters
        ----------
        x : array_like, shape (n, hash.d_in)
            Training vectors.
        """

    def train_codes(self, x: "ArrayLike") -> None:
        """Trains only the storage.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Training codes.
        """

    def add(self, x: "ArrayLike") -> None:
        """Adds vectors, with consecutive ids from ntotal.

        Parameters
        ----------
        x : array_like, shape (n, hash.d_in)
            Vectors.
        """

    def add_with_ids(self, x: "ArrayLike", ids: "ArrayLike") -> None:
        """Adds vectors with given ids, if the storage supports it.

        Parameters
        ----------
        x : array_like, shape (n, hash.d_in)
            Vectors.
        ids : array_like of int64, shape (n,)
            Their ids.
        """

    def assign(self, x: "ArrayLike", k: int = 1) -> "NDArray[np.int64]":
        """The ids that search returns, without distances.

        Parameters
        ----------
        x : array_like, shape (n, hash.d_in)
            Queries.
        k : int, optional
            Number of neighbours.

        Returns
        -------
        int64, shape (n, k)
        """

    def search_and_reconstruct(
        self, x: "ArrayLike", k: int, *,
        params: "faiss.SearchParameters | None" = None
    ) -> ("tuple[NDArray[np.int32], NDArray[np.int64], "
          "NDArray[np.uint8]]"):
        """Like search, and also returns the codes that were found.

        Parameters
        ----------
        x : array_like, shape (n, hash.d_in)
            Queries.
        k : int
            Number of neighbours.
        params : faiss.SearchParameters, optional
            Search parameters for the storage.

        Returns
        -------
        D : int32, shape (n, k), Hamming distances
        I : int64, shape (n, k), ids; padded with -1 if fewer than k are found
        R : uint8, shape (n, k, code_size), the codes; bytes of 255 for padding
        """

    def search(
        self, x: "ArrayLike", k: int, *,
        params: "faiss.SearchParameters | None" = None
    ) -> "tuple[NDArray[np.int32], NDArray[np.int64]]":
        """The k nearest codes of each query.

        Parameters
        ----------
        x : array_like, shape (n, hash.d_in)
            Queries.
        k : int
            Number of neighbours.
        params : faiss.SearchParameters, optional
            Search parameters for the storage.

        Returns
        -------
        D : int32, shape (n, k), Hamming distances
        I : int64, shape (n, k), ids; padded with -1 if fewer than k are found
        """

    def range_search(
        self, x: "ArrayLike", thresh: float, *,
        params: "faiss.SearchParameters | None" = None
    ) -> "tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]":
        """All codes at a Hamming distance below thresh of each query.

        Parameters
        ----------
        x : array_like, shape (n, hash.d_in)
            Queries.
        thresh : float
            The threshold.
        params : faiss.SearchParameters, optional
            Search parameters for the storage.

        Returns
        -------
        lims, D, I : query i has the distances D[lims[i]:lims[i + 1]] and the
            ids I[lims[i]:lims[i + 1]]
        """

    def add_codes(self, x: "ArrayLike") -> None:
        """Adds codes, with consecutive ids from ntotal.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Codes.
        """

    def add_codes_with_ids(self, x: "ArrayLike", ids: "ArrayLike") -> None:
        """Adds codes with given ids, if the storage supports it.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Codes.
        ids : array_like of int64, shape (n,)
            Their ids.
        """

    def search_codes(
        self, x: "ArrayLike", k: int, *,
        params: "faiss.SearchParameters | None" = None
    ) -> "tuple[NDArray[np.int32], NDArray[np.int64]]":
        """The k nearest codes of each code.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Codes of the queries.
        k : int
            Number of neighbours.
        params : faiss.SearchParameters, optional
            Search parameters for the storage.

        Returns
        -------
        D : int32, shape (n, k), Hamming distances
        I : int64, shape (n, k), ids; padded with -1 if fewer than k are found
        """

    def range_search_codes(
        self, x: "ArrayLike", thresh: float, *,
        params: "faiss.SearchParameters | None" = None
    ) -> "tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]":
        """All codes at a Hamming distance below thresh of each code.

        Parameters
        ----------
        x : array_like of uint8, shape (n, code_size)
            Codes of the queries.
        thresh : float
            The threshold.
        params : faiss.SearchParameters, optional
            Search parameters for the storage.

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
        - `HNSW32,KFlat(kernel)`: a graph

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
        """Whether an object, or a part of it, belongs to faiss_ext.

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
        """A deep copy of an index.

        Parameters
        ----------
        index : faiss.Index
            The index.

        Returns
        -------
        faiss.Index
        """

    def clone_binary_index(index: "faiss.IndexBinary") -> "faiss.IndexBinary":
        """A deep copy of a binary index, of any class that can be written.

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
