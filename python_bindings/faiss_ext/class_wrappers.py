# SPDX-License-Identifier: MIT
"""NumPy methods of the classes that SWIG wraps.

They use FAISS's own wrappers (``faiss.class_wrappers``) if possible. Shapes
are checked first, so that mistakes give clear messages.
"""

import copy
import difflib
import functools
import inspect
import math
import numbers
import re
from collections.abc import Iterable

import faiss
import numpy as np
from faiss import class_wrappers as faiss_wrappers
from faiss import swig_ptr
from numpy import empty

from . import documentation
from . import sparse_arrays, sparse_vectors
from . import swigfaiss_ext as swig
from .arguments import (
    AS_ARGUMENT, FLOAT, as_any_codes, as_array, as_asked, as_code_rows, as_codes,
    as_ids, as_integer, as_k, as_keys, as_matrix, as_new_ids, as_packed,
    as_radius, as_selected, as_vectors, check_number_of_bits, checked_packed,
    is_plain, number_of_bits, python_number, shown)
from .documentation import Attribute
from .errors import is_of_swig, module_of, unsupported, with_prefix
from .filters import ids_of, list_sizes_of, params_of
from .index_tree import (
    hash_in_front, part_in_front, part_that_compares, parts_of)
from .parameters import settings_of
from .showing import class_name, text
from .sparse_arrays import is_sparse
from .sparse_vectors import PackedVectors, SparseVectors, vectors_of_bits


def rows_for(index, n0, ni, x, width, dtype):
    """The array in which reconstruct_n stores ni rows: x, or a new one.

    ni is -1 for all rows from n0 on.
    """
    where = f"{type(index).__name__}.reconstruct_n"
    n0, ni = as_integer(n0, "n0", where), as_integer(ni, "ni", where)
    if ni == -1:
        if n0 > index.ntotal:
            raise ValueError(f"{where}: n0 is {n0}, expected at most "
                             f"{index.ntotal}, the number of vectors")
        ni = index.ntotal - n0
    if ni < 0:
        raise ValueError(f"{where}: ni is {ni}, expected a number from 0")
    if x is None:
        return np.empty((ni, width), dtype=dtype)
    check_result(x, "x", dtype, (ni, width), where)
    return x


def checked_scalars(method, name):
    """Wraps a method: it takes Python and NumPy integers, and errors name the
    argument."""
    names = list(inspect.signature(method).parameters)[1:]
    of_first = {"remove_ids": as_selected, "reconstruct_batch": as_keys,
                "sa_decode": as_code_rows}.get(name)
    checks = {names[0]: of_first} if of_first and names else AS_ARGUMENT

    @functools.wraps(method)
    def function(self, *args, **kwargs):
        where = f"{type(self).__name__}.{name}"

        def as_argument(name, value):
            check = checks.get(name)
            return check(value, name, where) if check else value

        given = [as_argument(*each) for each in zip(names, args)]
        kwargs = {key: as_argument(key, value)
                  for key, value in kwargs.items()}
        return in_words(method, self, name, (*given, *args[len(given):]),
                        kwargs)

    return function


def checked(method, name, as_input):
    """Wraps a method so that all arguments are checked before the call.

    The vectors or codes are checked first, by as_input(self, x, where).
    """

    @functools.wraps(method)
    def function(self, x, *args, **kwargs):
        where = f"{type(self).__name__}.{name}"
        packed = checked_packed(kwargs.pop("packed", False), where)
        if packed:
            x = unpacked(self, x, packed, where)
        is_given = isinstance(x, SparseVectors)
        call = (sparse_vectors.call_for(self, name)
                if is_given or is_sparse(x) else None)
        if call and not is_given:
            x = SparseVectors(x, sparse_vectors.dimension(self), where)
        elif not call:
            call = method
            x = as_input(self, x, where)
        if "filter" in kwargs and name in FILTERED:
            kwargs = with_filter(self, kwargs, where)
        args, kwargs = checked_arguments(
            self, name, len(x), args, kwargs, where)
        return in_words(call, self, name, (x, *args), kwargs)

    return function


def with_plain_calls(search):
    """Wraps the checked search of a class: search(x, k) with float32 vectors
    and a number needs none of the conversions, which take as long as FAISS's
    own wrapper."""

    @functools.wraps(search)
    def function(self, x, *args, **kwargs):
        if kwargs or len(args) != 1 or not is_plain(x, self.d):
            return search(self, x, *args, **kwargs)
        k, = args
        if type(k) is not int or k <= 0:
            return search(self, x, k)
        n = len(x)
        D, I = empty((n, k), FLOAT), empty((n, k), INT64)
        try:
            self.search_c(n, swig_ptr(x), k, swig_ptr(D), swig_ptr(I))
            return D, I
        except OF_CALLS as error:
            better = error_in_words(
                error, search.__wrapped__, self, "search", (x, k), {})
            if better is None:
                raise
        raise better

    return function


def unpacked(self, x, packed, where):
    """The vectors of packed bits, for an object with the argument `packed`;
    codes for an index that takes them."""
    is_binary = isinstance(self, faiss.IndexBinary)
    hash = hash_in_front(self) if is_binary else None
    d = sparse_vectors.dimension(self if hash is None else hash)
    check_number_of_bits(packed, d, where)
    if is_binary and hash is None:
        return x
    vectors = PackedVectors(x, d, where)
    is_taken = not isinstance(self, faiss.Index) or sparse_vectors.takes_sparse(self)
    return vectors if is_taken else vectors.dense()


INT64 = np.dtype("int64")
INT32_MAX = int(np.iinfo("int32").max)

TAKE_K = {"search", "assign", "search_and_reconstruct", "search_codes"}
RANGE_SEARCHES = {"range_search", "range_search_codes"}
TAKE_IDS = {"add_with_ids", "add_codes_with_ids"}


# methods with the argument `filter`
FILTERED = {"search", "range_search", "search_and_reconstruct", "search_scores",
            "search_codes", "range_search_codes"}


def with_filter(self, kwargs, where):
    """The keyword arguments with search parameters instead of a filter."""
    kwargs = dict(kwargs)
    filter = kwargs.pop("filter")
    if filter is None:
        return kwargs
    if kwargs.get("params") is not None:
        raise TypeError(f"{where}: give filter or params, not both; params may "
                        "contain a selector (sel=...)")
    return {**kwargs, "params": params_of(filter, self, where)}


def checked_arguments(self, name, n, args, kwargs, where):
    """Checks the arguments after the n vectors: k, ids and parameters."""
    if name in TAKE_K:
        if args:
            args = (as_k(args[0], where), *args[1:])
        elif "k" in kwargs:
            kwargs = {**kwargs, "k": as_k(kwargs["k"], where)}
    elif name in RANGE_SEARCHES:
        if args:
            args = (index_radius(self, args[0], where), *args[1:])
        elif "thresh" in kwargs:
            kwargs = {**kwargs,
                      "thresh": index_radius(self, kwargs["thresh"], where)}
    elif name in TAKE_IDS:
        if args:
            args = (as_new_ids(args[0], n, where), *args[1:])
        elif "ids" in kwargs:
            kwargs = {**kwargs, "ids": as_new_ids(kwargs["ids"], n, where)}
    check_results(self, name, n, args, kwargs, where)
    params = kwargs.get("params")
    if params is not None:
        if isinstance(params, faiss.IDSelector):
            raise TypeError(f"{where}: params must be faiss.SearchParameters, "
                            "got a selector: write params=faiss."
                            "SearchParameters(sel=...)")
        if not isinstance(params, faiss.SearchParameters):
            raise TypeError(f"{where}: params must be faiss.SearchParameters, "
                            f"got {shown(params)}")
        if not getattr(params, "k_factor", 1) >= 1:
            raise ValueError(f"{where}: k_factor must be at least 1, "
                             f"got {params.k_factor}")
    return args, kwargs


def check_results(self, name, n, args, kwargs, where):
    """Checks the arrays in which a search stores its results."""
    given = {key: kwargs[key] for key in ("D", "I", "R", "labels")
             if kwargs.get(key) is not None}
    if name == "assign" and len(args) > 1 and args[1] is not None:
        given["labels"] = args[1]
    k = args[0] if args else kwargs.get("k", 1 if name == "assign" else None)
    if not given or name not in TAKE_K or k is None:
        return
    is_binary = isinstance(self, faiss.IndexBinary)
    width = self.code_size if is_binary else self.d
    shapes = {"D": ("int32" if is_binary else "float32", (n, k)),
              "I": ("int64", (n, k)), "labels": ("int64", (n, k)),
              "R": ("uint8" if is_binary else "float32", (n, k, width))}
    for key, value in given.items():
        dtype, shape = shapes[key]
        check_result(value, key, dtype, shape, where)


def check_result(value, name, dtype, shape, where):
    """Checks an array in which a result is stored."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{where}: {name} must be an array, got {shown(value)}")
    if value.dtype != dtype or value.shape != shape or not (
            value.flags.c_contiguous and value.flags.writeable):
        kind = (" that is read-only" if not value.flags.writeable else
                "" if value.flags.c_contiguous else
                " that is not C-contiguous")
        raise ValueError(f"{where}: {name} must be a writeable array of {dtype} "
                         f"of shape {shape}, got {shown(value)}{kind}")


# ------------------------------------------------- errors of FAISS and SWIG

OF_CALLS = (TypeError, ValueError, AssertionError, RuntimeError)


def in_words(method, self, name, args, kwargs):
    """Calls a method of an index; errors of FAISS and SWIG name the method."""
    try:
        return method(self, *args, **kwargs)
    except OF_CALLS as error:
        better = error_in_words(error, method, self, name, args, kwargs)
        if better is None:
            raise
    raise better


def error_in_words(error, method, self, name, args, kwargs):
    """Returns an error of FAISS or SWIG with the name of the method; None for
    other errors."""
    words = words_for(error, method, self, name, args, kwargs)
    if words is None:
        return None
    kind = (RuntimeError if isinstance(error, RuntimeError)
            and not isinstance(error, NotImplementedError) else
            ValueError if isinstance(error, (AssertionError, ValueError))
            else TypeError)
    where = f"{type(self).__name__}.{name}"
    part = part_without(name, self) if kind is RuntimeError else None
    if part is None:
        return kind(f"{where}: {words}")
    return unsupported(f"{where}: {class_name(part)} does not support {name}; "
                       f"{INSTEAD[name]}")


KEEP_VECTORS = "keep the vectors outside of the index"
ENCODE = "an index such as SQ8 or PQ encodes vectors"
MERGE = "add the vectors of both to one index"
# what to do if a class of FAISS does not support a method
INSTEAD = {
    "add_with_ids": "put an IDMap or IndexIDTable in front of the index",
    "check_compatible_for_merge": MERGE,
    "get_distance_computer": "compute the distances from the vectors",
    "merge_from": MERGE,
    "range_search": "use search, which finds the k nearest vectors",
    "reconstruct": KEEP_VECTORS,
    "reconstruct_batch": KEEP_VECTORS,
    "reconstruct_n": KEEP_VECTORS,
    "remove_ids": "build the index again without the vectors",
    "sa_code_size": ENCODE,
    "sa_decode": ENCODE,
    "sa_encode": ENCODE,
    "search_and_reconstruct": KEEP_VECTORS}


def part_without(name, index):
    """Returns the index or a part of it whose class does not implement a
    method; None if all do. Only methods that FAISS's base class refuses count."""
    if name not in INSTEAD:
        return None
    if INSTEAD[name] is KEEP_VECTORS:
        name = "reconstruct"  # the other methods call it
    base = faiss.IndexBinary if isinstance(
        index, faiss.IndexBinary) else faiss.Index
    key = name + "_c" if hasattr(base, name + "_c") else name
    owner = next((c for c in type(index).__mro__ if key in vars(c)
                  and not hasattr(vars(c)[key], "is_inherited")), None)
    if owner is base:
        return index
    parts = [part.index for part in parts_of(index)
             if part.is_searched and part.index is not None]
    return next(filter(None, (part_without(name, part) for part in parts)), None)


def keyword_hint(self, name, kwargs):
    """Returns a hint for keyword arguments that do not exist, or ""."""
    if "sel" in kwargs or "filter" in kwargs:
        return ("; filter=... takes ids, a mask or a selector" if name in FILTERED
                else "; search takes filter=...")
    known = [key for key in kwargs if key in settings_of(self)]
    if known:
        return (f"; faiss_ext.set_index_parameter(index, {known[0]!r}, value) "
                "sets it in the index")
    return ""


def words_for(error, method, self, name, args, kwargs):
    """Returns the message for an error of FAISS or SWIG; None for others."""
    if isinstance(error, RuntimeError) and not isinstance(
            error, NotImplementedError):  # SWIG's, for overloads
        is_faiss_error = is_of_swig(error) and not hasattr(error, "place")
        return swig._message_of_faiss(str(error)) if is_faiss_error else None
    signature = inspect.signature(method)
    problem = unfit_arguments(signature, (self, *args), kwargs)
    if problem:
        if "params" in kwargs and "params" not in signature.parameters:
            return (f"search parameters are not supported by {text(self)} in "
                    f"FAISS {faiss.__version__}; faiss_ext.set_index_parameter "
                    "sets them in the index")
        return problem + keyword_hint(
            self, name, {key: value for key, value in kwargs.items()
                         if key not in signature.parameters})
    is_check_of_faiss = (isinstance(error, AssertionError)
                         and module_of(error) == faiss_wrappers.__name__)
    if is_check_of_faiss or is_of_swig(error):
        names = [key for key in signature.parameters if key != "self"]
        given = dict(zip(names, args)) | kwargs
        return "wrong type or shape of an argument, got " + ", ".join(
            f"{key}: {shown(value)}" for key, value in given.items())
    return None


def vectors_of(attribute):
    """Returns a check of vectors whose dimension is an attribute of an object."""

    def as_input(self, x, where):
        return as_vectors(x, getattr(self, attribute), where)

    return as_input


def codes(self, x, where):
    return as_codes(x, self.code_size, where)


# methods that take vectors, and their counterparts for codes
OF_CODES = {"train": "train_codes", "add": "add_codes",
            "add_with_ids": "add_codes_with_ids", "search": "search_codes",
            "range_search": "range_search_codes"}


def vectors_for_hash(self, x, where):
    """Checks vectors for an object with a hash in front; any number type."""
    hash = hash_in_front(self)
    d_in = hash.d_in
    if is_sparse(x):
        x = SparseVectors(x, d_in, where)
    if isinstance(x, SparseVectors):
        return sparse_vectors.encode(hash, x)
    x = as_array(x, where)
    if x.ndim == 2 and x.shape[1] == self.code_size != d_in:
        name = where.split(".")[-1]
        raise ValueError(
            f"{where}: expected vectors of shape (n, {d_in}), got {x.shape}, "
            f"the shape of codes; use {OF_CODES.get(name, 'search_codes')} "
            "for codes")
    return as_vectors(x, d_in, where)


def codes_by_hash(self, x, where):
    """Checks the input of a binary ID table. If a hash is in front of its
    codes, it takes vectors, which are encoded."""
    hash = hash_in_front(self)
    if hash is None:
        return codes(self, x, where)
    x = vectors_for_hash(self, x, where)
    return x if x.dtype == np.uint8 else hash.encode(x)


def index_radius(index, radius, where):
    """A radius in the index's type: an integer for binary indexes."""
    radius = as_radius(radius, where)
    if not isinstance(index, faiss.IndexBinary):
        return radius
    of_kernel = isinstance(index, swig.IndexBinaryFlatKernel) or (
        swig._distance_kind(part_that_compares(index)) == "scaled")
    if of_kernel and math.isfinite(radius) and not radius.is_integer():
        raise ValueError(
            f"{where}: the radius is {radius:g}, expected an integer, as "
            "distances are integers; distance(value) is the radius of a kernel "
            "value")
    beyond_all = INT32_MAX if of_kernel else index.d + 1
    return math.ceil(min(max(radius, 0), beyond_all))


def argument_errors_in_words(function, where):
    """Wraps a function so that SWIG's argument errors have Python names."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        args = [python_number(v) for v in args]
        kwargs = {key: python_number(v) for key, v in kwargs.items()}
        if any(v is None for v in (*args, *kwargs.values())):
            check_none(inspect.signature(function), args, kwargs, where)
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError, NotImplementedError,
                OverflowError) as error:
            signature = inspect.signature(function)
            problem = unfit_arguments(signature, args, kwargs)
            if not problem and is_of_swig(error):
                problem = (too_large(signature, args, kwargs)
                           if isinstance(error, OverflowError) else
                           unfit_argument(signature, args, kwargs))
            if not problem:
                raise
        raise TypeError(f"{where}: {problem}")

    return wrapper


def kind_of(parameter):
    """The type of a parameter, as it is documented."""
    return inspect.formatannotation(parameter.annotation).strip("'")


def is_class(kind):
    """Whether a documented type is a class of FAISS or of this package."""
    return kind.startswith("faiss.") or isinstance(
        getattr(swig, kind, None), type)


BUILTINS = {"bool": bool, "int": numbers.Integral, "float": numbers.Real,
            "str": str}


def fits(kind, value):
    """Whether a value is of a documented type, as far as that is classes."""
    if " | " in kind:
        return any(fits(each, value) for each in kind.split(" | "))
    if kind == "None":
        return value is None
    name = kind.removeprefix("faiss.")
    the_class = BUILTINS.get(kind) or getattr(
        swig if name == kind else faiss, name, None)
    return not isinstance(the_class, type) or isinstance(value, the_class)


def too_large(signature, args, kwargs):
    """Returns the error about an integer that C++ cannot hold, or None."""
    given = {name: value for name, value in
             signature.bind(*args, **kwargs).arguments.items()
             if isinstance(value, numbers.Integral)}
    name = max(given, key=lambda name: abs(given[name]), default=None)
    return name and f"{name} is {given[name]}, which is out of range"


def unfit_argument(signature, args, kwargs):
    """Returns the error about an argument that SWIG refuses; None if unknown."""
    parameters = signature.parameters
    if any(p.kind is p.VAR_POSITIONAL for p in parameters.values()):
        return f"wrong number or type of arguments, expected {signature}"
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        kind = kind_of(parameters[name])
        if not fits(kind, value) and value is not parameters[name].default:
            return (f"{name} must be {kind}, got {shown(value)}"
                    f"{hint_at(kind, value)}")
    return None


def check_none(signature, args, kwargs, where):
    """Refuses None for an object, which C++ would take for a null pointer."""
    try:
        arguments = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return  # the call reports it
    for name, given in arguments.items():
        parameter = signature.parameters[name]
        if given is None and parameter.default is not None and is_class(
                kind_of(parameter)):
            raise TypeError(f"{where}: {name} must be {kind_of(parameter)}, "
                            "got None")


def hint_at(kind, given):
    """Returns a hint how to make an object of a class from another value."""
    if re.search(r"Kernel\b", kind) and not kind.startswith("Index"):
        if isinstance(given, str):
            return (f"; kernel_factory({shown(given)}) makes a kernel from a "
                    "string")
        if callable(given) and not isinstance(given, type):
            return "; CallbackKernel(function) makes a kernel from a function"
    if kind == "KernelHash":
        return ("; kernel_hash_factory(d, 'SIK512(gaussian)') makes a hash from "
                "a string")
    if kind in ("faiss.Index", "IndexFlatKernel") and isinstance(given, str):
        return "; index_factory makes an index from a string"
    if kind == "faiss.IndexBinary" and isinstance(given, str):
        return "; index_binary_factory makes an index from a string"
    return ""


def unfit_arguments(signature, args, kwargs):
    """Returns the error about arguments of a signature; None if they match."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as problem:
        names = [key for key in signature.parameters if key != "self"]
        return f"{problem}, expected ({', '.join(names)})"
    return None


def name_arguments():
    """Makes argument errors of constructors and functions name the argument."""
    for name, thing in list(vars(swig).items()):
        if (name.startswith("_")
                or getattr(thing, "__module__", None) != swig.__name__):
            continue
        if inspect.isfunction(thing):
            setattr(swig, name, argument_errors_in_words(thing, name))
        elif "__init__" in vars(thing):
            thing.__init__ = argument_errors_in_words(thing.__init__, name)


def name_arguments_of_methods():
    """Makes argument errors of methods that take numbers name the argument."""
    for the_class in subclasses(object):
        for name, method in list(vars(the_class).items()):
            is_static = isinstance(method, staticmethod)
            function = method.__func__ if is_static else method
            if (name.startswith("_") or name.endswith("_c")
                    or name in TAKE_K | RANGE_SEARCHES
                    or not inspect.isfunction(function)):
                continue
            kinds = {**function.__annotations__, "return": None}.values()
            if int in kinds or float in kinds:
                function = argument_errors_in_words(
                    function, f"{the_class.__name__}.{name}")
                setattr(the_class, name,
                        staticmethod(function) if is_static else function)


# methods whose results point into the object
REFERRING = {"get_distance_computer", "get_FlatCodesDistanceComputer"}
# members of FAISS's base classes that are objects, and their types (the type of
# codes depends on FAISS's version)
FAISS_PARTS = {
    "index": "faiss.Index", "base_index": "faiss.Index",
    "refine_index": "faiss.Index", "storage": "faiss.Index",
    "quantizer": "faiss.Index", "invlists": "faiss.InvertedLists",
    "chain": "faiss.VectorTransformVector", "hnsw": "faiss.HNSW",
    "id_map": "faiss.Int64Vector", "codes": "Any", "xb": "Any"}


def keeping_owner(get):
    """Wraps a getter: an object that it returns keeps its owner alive, and an
    index is downcast."""

    @functools.wraps(get)
    def function(self, *args):
        part = get(self, *args)
        if isinstance(part, (faiss.Index, faiss.IndexBinary)):
            part = swig._downcast(part)
        if hasattr(part, "this"):
            part.referenced_objects = [self]
        return part

    return function


def distance_computer_of(the_class):
    """The method get_distance_computer of a class."""

    def get_distance_computer(self):
        return swig._get_distance_computer_c(self)

    return checked_scalars(
        as_inherited(get_distance_computer), "get_distance_computer")


def keep_owner(the_class, name):
    member = getattr(the_class, name)
    setattr(the_class, name, Attribute.of(member, keeping_owner(member.fget)))


def keep_owners():
    for the_class in subclasses(object):
        for name, member in list(vars(the_class).items()):
            if isinstance(member, Attribute) and member.type not in (
                    "bool", "int", "float", "str", "list[str]"):
                keep_owner(the_class, name)
            elif name in REFERRING:
                setattr(the_class, name, keeping_owner(member))
        if issubclass(the_class, (faiss.Index, faiss.IndexBinary)):
            for name in sorted(REFERRING - vars(the_class).keys()):
                if hasattr(the_class, name):
                    method = (distance_computer_of(the_class)
                              if name == "get_distance_computer"
                              and issubclass(the_class, faiss.Index)
                              else inherited(the_class, name))
                    method.__doc__ = ("FAISS's object that computes distances "
                                      "to stored vectors.")
                    setattr(the_class, name, keeping_owner(method))
            for name, kind in FAISS_PARTS.items():
                owner = next(
                    (c for c in the_class.__mro__ if name in vars(c)), the_class)
                if owner.__module__ != swig.__name__ and isinstance(
                        vars(owner).get(name), property):
                    if issubclass(the_class, faiss.IndexBinary):
                        kind = kind.replace("faiss.Index", "faiss.IndexBinary")
                    keep_owner(the_class, name)
                    vars(the_class)[name].type = kind


def keep_arguments(the_class, *names):
    """Makes objects keep the constructor arguments alive to which they point."""
    original_init = the_class.__init__
    signature = inspect.signature(original_init)

    @functools.wraps(original_init)
    def init(self, *args, **kwargs):
        original_init(self, *args, **kwargs)
        given = signature.bind(self, *args, **kwargs).arguments
        self.referenced_objects = [given[name] for name in names]

    the_class.__init__ = init


def to_bytes(write, thing):
    writer = faiss.VectorIOWriter()
    write(thing, writer)
    return faiss.vector_to_array(writer.data).tobytes()


# attributes that the wrappers store in an object
INTERNAL = {"this", "thisown", "referenced_objects"}


def own_attributes(thing):
    """The attributes that a Python subclass has added to the wrapped object."""
    return {name: value for name, value in vars(thing).items()
            if name not in INTERNAL}


def set_own_attributes(thing, attributes):
    vars(thing).update(attributes)


def with_class_of(made, the_class):
    """`made` as an object of the Python subclass the_class, if that is one.

    The constructor of the subclass is not called.
    """
    if the_class.__module__.split(".")[0] == "faiss" or (
            the_class.__module__ == swig.__name__):
        return made
    thing = the_class.__new__(the_class)
    vars(thing).update(vars(made))
    return thing


def unpickle_subclass(the_class, make, arguments):
    return with_class_of(make(*arguments), the_class)


def reduced(thing, make, *arguments):
    """The result of __reduce_ex__ if make(*arguments) makes the wrapped object
    again."""
    attributes = own_attributes(thing)
    if with_class_of(thing, type(thing)) is thing and not attributes:
        return make, arguments
    return (unpickle_subclass, (type(thing), make, arguments),
            attributes or None, None, None, set_own_attributes)


def copy_by(clone):
    """Makes a __copy__ from clone(thing), a copy of the wrapped object."""

    def function(thing):
        copied = with_class_of(clone(thing), type(thing))
        set_own_attributes(copied, own_attributes(thing))
        return copied

    return function


def deepcopy_by(clone):
    """Makes a __deepcopy__ from clone(thing), a copy of the wrapped object."""

    def function(thing, memo):
        copied = with_class_of(clone(thing), type(thing))
        memo[id(thing)] = copied
        set_own_attributes(
            copied, copy.deepcopy(own_attributes(thing), memo))
        return copied

    return function


def from_bytes(read, data):
    reader = faiss.VectorIOReader()
    faiss.copy_array_to_vector(np.frombuffer(data, dtype="uint8"), reader.data)
    return read(reader)


# ---------------------------------------------------------------- kernels

def wrap_kernels():

    def train(self, x: "ArrayLike") -> None:
        """Learns the parameters that were left open, such as the bandwidth.

        Parameters
        ----------
        x : array_like or sparse array, shape (n, d)
            Training vectors.
        """
        if is_sparse(x):
            return sparse_vectors.train_kernel(self, x, "Kernel.train")
        x = as_matrix(x, "Kernel.train")
        self._train_c(x.shape[0], faiss.swig_ptr(x), x.shape[1])

    def gram(
        self, x: "ArrayLike", y: "ArrayLike | None" = None, *,
        packed: "bool | int | None" = None
    ) -> "NDArray[np.float32]":
        """Computes the kernel matrix of x and y.

        Makes no dense copies of sparse vectors, nor of packed bits.

        Parameters
        ----------
        x : array_like or sparse array, shape (n, d)
            Vectors.
        y : array_like or sparse array, shape (m, d), optional
            Vectors. By default x.
        packed : bool or int, optional
            Whether the rows of x and y are packed bits, as numpy.packbits
            gives; or their number of bits. The vectors are then their zeros and
            ones. Needed for arrays of uint8 under jaccard and dice.

        Returns
        -------
        float32, shape (n, m)
        """
        packed = as_packed(packed, x, self, "Kernel.gram")
        if packed:
            return gram_of_bits(self, x, x if y is None else y, packed)
        if is_sparse(x) or is_sparse(y):
            return sparse_vectors.gram(
                self, x, x if y is None else y, "Kernel.gram")
        x = as_matrix(x, "Kernel.gram")
        d = x.shape[1]
        y = x if y is None else as_vectors(y, d, "Kernel.gram")
        out = np.empty((x.shape[0], y.shape[0]), dtype="float32")
        self._gram_c(x.shape[0], faiss.swig_ptr(x), y.shape[0],
                     faiss.swig_ptr(y), d, faiss.swig_ptr(out))
        return out

    def call(
        self, x: "ArrayLike", y: "ArrayLike", *,
        packed: "bool | int | None" = None
    ) -> float:
        """Computes the kernel value of two vectors.

        Parameters
        ----------
        x, y : array_like, shape (d,)
            The vectors. Sparse ones may have the shape (1, d).
        packed : bool or int, optional
            Whether x and y are packed bits, as for gram.

        Returns
        -------
        float
        """
        x, y = as_one(x, "Kernel"), as_one(y, "Kernel")
        if x.ndim != 2 or x.shape != y.shape:
            raise ValueError(
                "Kernel: expected two vectors of the same length, got shapes "
                f"{x.shape[1:]} and {y.shape[1:]}")
        return float(self.gram(x, y, packed=packed)[0, 0])

    init_callback_kernel.__qualname__ = "CallbackKernel.__init__"
    swig.CallbackKernel.__init__ = init_callback_kernel
    swig.Kernel.train = train
    swig.Kernel.gram = gram
    swig.Kernel.__call__ = call
    show_description(swig.Kernel, "kernel")
    swig.Kernel.__reduce__ = reduce_kernel
    swig.Kernel.__copy__ = copy_by(swig.Kernel.copy)
    swig.Kernel.__deepcopy__ = deepcopy_by(swig.Kernel.copy)


def gram_of_bits(kernel, x, y, packed):
    """The kernel matrix of packed bits, by their counts if the kernel has a
    kernel of bits."""
    where = "Kernel.gram"
    name = kernel.description()
    if name in swig.bit_kernel_names():
        return swig.bit_kernel_factory(name).gram(x, y, packed=packed)
    x = vectors_of_bits(x, packed, where)
    return sparse_vectors.gram(kernel, x, PackedVectors(y, x.d, where), where)


def wrap_bit_kernels():

    def gram(
        self, x: "ArrayLike", y: "ArrayLike | None" = None, *,
        packed: "bool | int" = True
    ) -> "NDArray[np.float32]":
        """Computes the similarities of packed bits.

        Parameters
        ----------
        x : array_like of uint8, shape (n, ceil(d / 8))
            Codes, as numpy.packbits gives.
        y : array_like of uint8, shape (m, ceil(d / 8)), optional
            Codes. By default x.
        packed : True or int, optional
            The number of bits d, on which hamming and russellrao depend. By
            default 8 for each byte.

        Returns
        -------
        float32, shape (n, m)
        """
        where = "BitKernel.gram"
        packed = checked_packed(packed, where)
        if not packed:
            raise ValueError(f"{where}: packed is False, but a kernel of bits "
                             "takes packed bits; kernel_factory makes kernels of "
                             "vectors")
        x = as_any_codes(x, where)
        y = x if y is None else as_codes(y, x.shape[1], where)
        d = number_of_bits(packed, x.shape[1], where)
        out = np.empty((x.shape[0], y.shape[0]), dtype="float32")
        self._gram_c(x.shape[0], faiss.swig_ptr(x), y.shape[0],
                     faiss.swig_ptr(y), d, faiss.swig_ptr(out))
        return out

    def call(
        self, x: "ArrayLike", y: "ArrayLike", *, packed: "bool | int" = True
    ) -> float:
        """Computes the similarity of two codes.

        Parameters
        ----------
        x, y : array_like of uint8, shape (ceil(d / 8),)
            Packed bits.
        packed : True or int, optional
            The number of bits, as for gram.

        Returns
        -------
        float
        """
        x, y = (as_array(v, "BitKernel")[None] for v in (x, y))
        return float(gram(self, x, y, packed=packed)[0, 0])

    swig.BitKernel.gram = gram
    swig.BitKernel.__call__ = call
    show_description(swig.BitKernel, "kernel of bits")
    swig.BitKernel.__reduce__ = lambda self: reduced(
        self, swig.bit_kernel_factory, self.description())
    swig.BitKernel.__copy__ = copy_by(swig.BitKernel.copy)
    swig.BitKernel.__deepcopy__ = deepcopy_by(swig.BitKernel.copy)


def as_one(x, where):
    """A vector as an array of one row."""
    if is_sparse(x):
        return sparse_arrays.as_row(x, where)
    return as_array(x, where)[None]


def reduce_kernel(self):
    if isinstance(self, swig.CallbackKernel):
        raise TypeError("a CallbackKernel cannot be pickled, because it holds a "
                        "Python function; make it again from the function")
    description = self.description()
    try:
        swig.kernel_factory(description)
    except RuntimeError:
        raise TypeError(f"the kernel {description} cannot be pickled: "
                        "no string makes it") from None
    return reduced(self, swig.kernel_factory, description)


def init_callback_kernel(
    self, function: "Callable[[NDArray[np.float32], NDArray[np.float32]], Any]",
    name: "str | None" = None
) -> None:
    """A kernel that is computed by a Python function.

    Parameters
    ----------
    function : callable
        function(X, Y) takes float32 arrays of shape (n, d) and (m, d), and
        returns the kernel values, shape (n, m). Only one thread at a time
        calls it. Its exceptions reach the caller.
    name : str, optional
        A name in files. Indexes with this kernel can then be written. A file
        contains only the name, so a program that reads it makes a kernel with
        the same name and function first. If several kernels have the name, the
        last one counts.
    """

    def fill(x, y, out, n, m, d):
        X = np.frombuffer(x, dtype="float32").reshape(n, d).copy()
        Y = np.frombuffer(y, dtype="float32").reshape(m, d).copy()
        values = as_array(function(X, Y), "CallbackKernel")
        if values.shape != (n, m):
            raise ValueError(
                f"CallbackKernel: expected kernel values of shape ({n}, {m}), "
                f"got {values.shape}")
        if values.dtype.kind not in "fiub":
            raise TypeError("CallbackKernel: expected real kernel values, got "
                            f"an array of {values.dtype}")
        with np.errstate(over="ignore"):
            floats = values.astype("float32")
        if not np.isfinite(floats).all():
            raise ValueError(
                "CallbackKernel: expected finite kernel values of at most 3.4e38 "
                f"(float32), got {values[~np.isfinite(floats)][0]:g}")
        np.frombuffer(out, dtype="float32").reshape(n, m)[...] = floats

    if not callable(function):
        raise TypeError(f"CallbackKernel: {shown(function)} is not callable")
    if name is not None and (not isinstance(name, str) or not name):
        raise TypeError("CallbackKernel: expected a name of at least one "
                        f"character, got {shown(name)}")
    self.this = swig._make_callback_kernel(fill, name or "").this


def wrap_combined_kernels():
    make_sum, make_product = swig.SumKernel.__init__, swig.ProductKernel.__init__

    def init_sum(
        self, kernels: "Sequence[Kernel]",
        weights: "Sequence[float] | None" = None
    ) -> None:
        """The weighted sum of kernels.

        Parameters
        ----------
        kernels : sequence of Kernel
            They are copied.
        weights : sequence of float, optional
            The weight of each kernel, from 1e-6 to 1e6. By default 1.
        """
        kernels = several(kernels, "SumKernel")
        weights = [1.0] * len(kernels) if weights is None else list(weights)
        if len(weights) != len(kernels):
            raise ValueError(f"SumKernel: got {len(kernels)} kernels and "
                             f"{len(weights)} weights")
        make_sum(self)
        for kernel, weight in zip(kernels, weights):
            self.add(kernel, weight)

    def init_product(self, kernels: "Sequence[Kernel]") -> None:
        """The product of kernels.

        Parameters
        ----------
        kernels : sequence of Kernel
            They are copied.
        """
        kernels = several(kernels, "ProductKernel")
        make_product(self)
        for kernel in kernels:
            self.add(kernel)

    def several(kernels, where):
        if not isinstance(kernels, Iterable):
            raise TypeError(f"{where}: expected a sequence of kernels, got "
                            f"{shown(kernels)}")
        kernels = list(kernels)
        for kernel in kernels:
            if not isinstance(kernel, swig.Kernel):
                raise TypeError(f"{where}: expected kernels, got {shown(kernel)}")
        if not kernels:
            raise ValueError(f"{where}: expected at least one kernel")
        return kernels

    for cls, init in ((swig.SumKernel, init_sum),
                      (swig.ProductKernel, init_product)):
        init.__name__ = "__init__"
        init.__qualname__ = f"{cls.__name__}.__init__"
        cls.__init__ = init


# -------------------------------------------- maps, hashes and projections

def of_arrays(method, results=1):
    """Extends a method of one number to arrays."""

    def function(self, values):
        where = f"{type(self).__name__}.{method.__name__}"
        values = as_array(values, where)
        if values.size and values.dtype.kind not in "fiub":
            raise TypeError(f"{where}: expected numbers, got an array of "
                            f"{values.dtype}")
        if np.ndim(values) == 0:
            return method(self, float(values))
        unique, inverse = np.unique(values, return_inverse=True)
        found = np.array([method(self, float(v)) for v in unique])
        found = found.reshape(len(unique), results)[inverse.ravel()]
        found = [column.reshape(np.shape(values)) for column in found.T]
        return tuple(found) if results > 1 else found[0]

    function.__name__ = method.__name__
    function.__qualname__ = method.__qualname__
    function.__module__ = method.__module__
    each = f"tuple of {results}, each " if results > 1 else ""
    if method.__doc__:
        text = method.__doc__.split("\n\nParameters\n")[0]
        function.__doc__ = f"""{text}

Parameters
----------
values : float or array_like of float

Returns
-------
{each}float, or float64 of the shape of values"""
    function.__signature__ = inspect.Signature(
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
         inspect.Parameter("values", inspect.Parameter.POSITIONAL_OR_KEYWORD,
                           annotation="ArrayLike")],
        return_annotation="Any")
    return function


def unpickle_transform(data):
    return from_bytes(swig.read_VectorTransform, data)


def wrap_transforms():

    def train(self, x: "ArrayLike") -> None:
        """Trains the object. Calling train on a trained object has no effect.

        On error nothing is modified.

        Parameters
        ----------
        x : array_like, shape (n, d_in)
            Training vectors.
        """
        self._train_c(len(x), faiss.swig_ptr(x))

    def apply(self, x: "ArrayLike") -> "NDArray[np.float32]":
        """Transforms vectors: to the features of a map, or the margins of a
        hash.

        Parameters
        ----------
        x : array_like, shape (n, d_in)
            Vectors.

        Returns
        -------
        float32, shape (n, d_out)
        """
        y = np.empty((len(x), self.d_out), dtype="float32")
        self._apply_c(len(x), faiss.swig_ptr(x), faiss.swig_ptr(y))
        return y

    def reverse_transform(self, x: "ArrayLike") -> "NDArray[np.float32]":
        """Inverts apply, if the class supports it.

        Parameters
        ----------
        x : array_like, shape (n, d_out)
            Results of apply.

        Returns
        -------
        float32, shape (n, d_in)
        """
        y = np.empty((len(x), self.d_in), dtype="float32")
        self._reverse_transform_c(
            len(x), faiss.swig_ptr(x), faiss.swig_ptr(y))
        return y

    the_class = swig.Transform
    the_class._reverse_transform_c = as_inherited(
        lambda self, *args: swig._reverse_transform_c(self, *args))
    the_class.train = checked(train, "train", vectors_of("d_in"))
    the_class.apply = checked(apply, "apply", vectors_of("d_in"))
    the_class.apply_py = the_class.apply
    the_class.reverse_transform = checked(
        reverse_transform, "reverse_transform", vectors_of("d_out"))


def show_description(base, noun):
    """Makes objects print as their factory strings."""
    for the_class in subclasses(base):
        del the_class.__repr__
    base.__repr__ = lambda self: f"<faiss_ext {noun} {self.description()}>"


def copied_and_pickled(transform_class):
    transform_class.__copy__ = copy_by(transform_class.copy)
    transform_class.__deepcopy__ = deepcopy_by(transform_class.copy)
    transform_class.__reduce__ = lambda self: reduced(
        self, unpickle_transform, to_bytes(swig.write_VectorTransform, self))


def wrap_frequencies():
    make_map, make_hash = swig.FrequencyMap.__init__, swig.FrequencyHash.__init__

    def init_map(self, frequencies: "ArrayLike") -> None:
        """Random Fourier features of your own shift-invariant kernel.

        The inner product of two mapped vectors is the mean of
        cos(w . (x - y)) over the frequencies w, whose expectation is the
        kernel.

        Parameters
        ----------
        frequencies : array_like, shape (n, d)
            Frequencies that you have drawn from the spectral density of the
            kernel of vectors of dimension d. The map has 2 n features. They are
            copied.

        Examples
        --------
        A Gaussian kernel with a bandwidth for each component:

        >>> rng = np.random.default_rng(1)
        >>> omega = rng.normal(size=(256, d)) / widths
        >>> map = FrequencyMap(omega)
        """
        omega = as_frequencies(frequencies, "FrequencyMap")
        make_map(self, omega.shape[1], len(omega), faiss.swig_ptr(omega))

    def init_hash(self, frequencies: "ArrayLike", seed: int = 1234) -> None:
        """Binary codes for your own shift-invariant kernel.

        Parameters
        ----------
        frequencies : array_like, shape (nbits, d)
            Frequencies that you have drawn from the spectral density of the
            kernel of vectors of dimension d, one for each bit. They are copied.
        seed : int
            Seed of the random phases and thresholds.

        Examples
        --------
        A Gaussian kernel with a bandwidth for each component:

        >>> rng = np.random.default_rng(1)
        >>> omega = rng.normal(size=(512, d)) / widths
        >>> hash = FrequencyHash(omega)
        """
        omega = as_frequencies(frequencies, "FrequencyHash")
        seed = as_integer(seed, "seed", "FrequencyHash")
        make_hash(self, omega.shape[1], len(omega), faiss.swig_ptr(omega), seed)

    def as_frequencies(frequencies, where):
        if callable(frequencies):
            raise TypeError(f"{where}: expected an array of frequencies, got "
                            f"{shown(frequencies)}; call your function and pass "
                            "its result")
        omega = as_array(frequencies, where)
        if omega.ndim != 2 or 0 in omega.shape:
            raise ValueError(f"{where}: expected frequencies of shape (n, d), "
                             f"got {omega.shape}")
        if omega.dtype.kind not in "fiub":
            raise TypeError(f"{where}: expected numbers, got an array of "
                            f"{omega.dtype}")
        with np.errstate(over="ignore"):
            floats = np.ascontiguousarray(omega, dtype="float32")
        wrong = np.argwhere(~np.isfinite(floats))
        if len(wrong):
            i, k = map(int, wrong[0])
            raise ValueError(f"{where}: component {k} of frequency {i} is "
                             f"{omega[i, k]:g}, expected a finite number of at "
                             "most 3.4e38 (float32)")
        return floats

    for cls, init in ((swig.FrequencyMap, init_map),
                      (swig.FrequencyHash, init_hash)):
        init.__name__ = "__init__"
        init.__qualname__ = f"{cls.__name__}.__init__"
        cls.__init__ = init


def wrap_maps():
    copied_and_pickled(swig.FeatureMap)
    show_description(swig.FeatureMap, "map")
    swig.HomogeneousKernelMap.map_signature = of_arrays(
        swig.HomogeneousKernelMap.map_signature)
    swig.KernelPCA.set_landmarks = set_landmarks


def kernel_interval(method):
    def kernel_interval(
        self, hamming: "ArrayLike", failure: float = 0.05
    ) -> "tuple[Any, Any]":
        """Confidence interval of the kernel value of two vectors, given the
        number of bits in which their codes differ.

        It holds except with probability `failure` over the draw of the hash,
        by Hoeffding's inequality. The two vectors must be chosen beforehand:
        for the nearest of n vectors, divide `failure` by n.

        Parameters
        ----------
        hamming : float or array_like
            Number of bits that differ.
        failure : float
            The probability that the value lies outside.

        Returns
        -------
        low, high : of the shape of hamming

        Raises
        ------
        RuntimeError
            If bits are not independent, or no bounds of the expected distance
            are known. Supported are SIK, AHK and RHBE with proj=dense, CWS,
            and FrequencyHash.
        """
        def of_one(self, value):
            return method(self, value, python_number(failure))

        return of_arrays(of_one, results=2)(self, hamming)

    return kernel_interval


def set_landmarks(self, x: "ArrayLike") -> None:
    """Sets the landmarks instead of sampling them.

    Parameters
    ----------
    x : array_like or sparse array of SciPy, shape (p, d_in)
        The landmarks. They are kept as dense or sparse rows, as they are given.
    """
    if is_sparse(x):
        sparse_vectors.set_landmarks(
            self, SparseVectors(x, self.d_in, "set_landmarks"))
        return
    x = as_vectors(x, self.d_in, "set_landmarks")
    self._set_landmarks_c(x.shape[0], faiss.swig_ptr(x))


def wrap_hashes():

    def encode(
        self, x: "ArrayLike", *, packed: "bool | int" = False
    ) -> "NDArray[np.uint8]":
        """Encodes vectors as binary codes.

        Parameters
        ----------
        x : array_like, shape (n, d_in)
            Vectors.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as numpy.packbits gives; or
            their number of bits. The vectors are then their zeros and ones.

        Returns
        -------
        uint8, shape (n, code_size())
        """
        where = "KernelHash.encode"
        packed = checked_packed(packed, where)
        if packed:
            check_number_of_bits(packed, self.d_in, where)
            return sparse_vectors.encode(
                self, PackedVectors(x, self.d_in, where))
        if is_sparse(x):
            return sparse_vectors.encode(
                self, SparseVectors(x, self.d_in, where))
        x = as_vectors(x, self.d_in, where)
        codes = np.empty((x.shape[0], self.code_size()), dtype="uint8")
        self._encode_c(x.shape[0], faiss.swig_ptr(x), faiss.swig_ptr(codes))
        return codes

    for the_class in subclasses(swig.KernelHash):
        for name in ("expected_hamming", "hamming_bounds", "kernel_estimate",
                     "asymmetric_kernel_estimate"):
            if name in vars(the_class):
                setattr(the_class, name, of_arrays(
                    vars(the_class)[name],
                    results=2 if name == "hamming_bounds" else 1))
    swig.KernelHash.kernel_interval = kernel_interval(
        swig.KernelHash.kernel_interval)
    swig.KernelHash.encode = encode
    copied_and_pickled(swig.KernelHash)
    show_description(swig.KernelHash, "hash")

    def of_pair(the_class, name, summary):
        method = vars(the_class)[f"_{name}_c"]

        def function(
            self, x: "ArrayLike", y: "ArrayLike", *,
            packed: "bool | int" = False
        ) -> float:
            packed = checked_packed(packed, name)

            def rows_of(v):
                if packed:
                    v = np.atleast_2d(as_array(v, name))
                    return unpacked(self, v, packed, name).dense()
                if is_sparse(v):
                    v = sparse_arrays.as_row(v, name).toarray()
                return as_vectors(
                    np.atleast_2d(as_array(v, name)), self.d_in, name)

            x, y = rows_of(x), rows_of(y)
            if len(x) != 1 or len(y) != 1:
                raise ValueError(f"{name}: expected two vectors")
            return method(self, faiss.swig_ptr(x), faiss.swig_ptr(y))

        function.__name__ = name
        function.__doc__ = f"""{summary}

Parameters
----------
x, y : array_like, shape (d_in,)
    Sparse vectors may have the shape (1, d_in).
packed : bool or int, optional
    Whether x and y are packed bits, as for encode.

Returns
-------
float"""
        setattr(the_class, name, function)

    of_pair(swig.BilinearShiftInvariantHash, "bilinear_kernel",
            "The bilinear kernel k_b of two vectors.")
    of_pair(swig.KernelHash, "kernel_value",
            "The value of the scheme's kernel for two vectors. "
            "expected_hamming takes this\nvalue, and kernel_estimate "
            "estimates it.")
    of_pair(swig.KernelHash, "expected_hamming_of_pair",
            "Expected Hamming distance of the codes of two vectors, in bits, "
            "as exactly as\nit is known.")
    of_pair(swig.KernelHash, "covariance_of_pair",
            "For two vectors, the largest covariance of the events that two "
            "bits of their codes\ndiffer. 0 if bits are independent; raises "
            "an error if it is unknown.")
    swig.KernelizedLSH.set_landmarks = set_landmarks


def wrap_projections():

    def matrix(self) -> "NDArray[np.float32]":
        """Returns a copy of the projection matrix.

        Returns
        -------
        float32, shape (d_out, d_in)
        """
        A = np.empty((self.d_out, self.d_in), dtype="float32")
        self._get_matrix(faiss.swig_ptr(A))
        return A

    def apply(self, x: "ArrayLike") -> "NDArray[np.float32]":
        """Multiplies vectors by the matrix.

        Parameters
        ----------
        x : array_like or sparse array, shape (n, d_in)
            Vectors.

        Returns
        -------
        float32, shape (n, d_out)
        """
        if is_sparse(x):
            return sparse_vectors.apply(
                self, SparseVectors(x, self.d_in, "Projection.apply"))
        x = as_vectors(x, self.d_in, "Projection.apply")
        y = np.empty((x.shape[0], self.d_out), dtype="float32")
        self._apply_c(x.shape[0], faiss.swig_ptr(x), faiss.swig_ptr(y))
        return y

    def V(self):
        v = np.empty((self.k_v, self.padded_d_v()), dtype="float32")
        self._get_V(faiss.swig_ptr(v))
        return v[:, :self.d_v]

    swig.Projection.matrix = matrix
    swig.Projection.apply = apply
    swig.BilinearProjection.V = Attribute(
        V, doc="NDArray[np.float32]: The v, shape (k_v, d_v); a copy.",
        type="NDArray[np.float32]")


def subclasses(base):
    """The wrapped subclasses of a base class, bases first."""
    found = [c for c in vars(swig).values()
             if isinstance(c, type) and issubclass(c, base)]
    return sorted(dict.fromkeys(found), key=lambda c: len(c.__mro__))


# ---------------------------------------------------------- float indexes

def float_reconstruct_n(the_class):
    """reconstruct_n with checked numbers and a checked result."""
    base_method = the_class.reconstruct_n

    def reconstruct_n(self, n0=0, ni=-1, x=None):
        x = rows_for(self, n0, ni, x, self.d, "float32")
        self.reconstruct_n_c(n0, len(x), faiss.swig_ptr(x))
        return x

    documentation.document(reconstruct_n, base_method)
    return as_inherited(reconstruct_n)


def unsupported_coding(the_class, name):
    """Makes sa_encode or sa_decode of a class that refuses them. FAISS's
    functions would call sa_code_size first, and the error would name that."""
    base_method = getattr(the_class, name)

    def method(self, *args, **kwargs):
        getattr(self, name + "_c")(0, None, None)

    documentation.document(method, base_method)
    return as_inherited(method)


def vectors_for_exact(index, x, where):
    """Vectors for an index that compares exactly; sparse ones as they are if the
    index takes them."""
    if is_sparse(x) and isinstance(index, swig.IndexSparseKernel):
        return SparseVectors(x, index.d, where)
    return as_vectors(x, index.d, where)


def wrap_float_indexes():
    for the_class in (swig.IndexKernelHash, swig.IndexAsymmetricHash,
                      swig.IndexFlatKernel, swig.IndexIVFPQ4,
                      swig.IndexHNSWKernel, swig.IndexIDTable,
                      swig.IndexPreTransformSIMD, swig.IndexRefineKernel,
                      swig.IndexConcurrent):
        faiss_wrappers.handle_Index(the_class)
        inherit_errors(the_class)
        the_class.reconstruct_n = float_reconstruct_n(the_class)
        if the_class in (swig.IndexIVFPQ4, swig.IndexHNSWKernel):
            for name in ("sa_encode", "sa_decode"):
                setattr(the_class, name, unsupported_coding(the_class, name))
        for name in ["train", "add", "add_with_ids", "search", "assign",
                     "range_search", "search_and_reconstruct", "sa_encode"]:
            if name not in vars(the_class):
                setattr(the_class, name, inherited(the_class, name))
            setattr(the_class, name, checked(
                vars(the_class)[name], name, vectors_of("d")))
        the_class.search = with_plain_calls(the_class.search)
        check_scalars(the_class)
        documentation.document_methods(
            the_class, documentation.FloatIndexMethods)

    def compute_distance_subset(
        self, x: "ArrayLike", labels: "ArrayLike"
    ) -> "NDArray[np.float32]":
        """Computes distances (or kernel values) between each query and stored
        vectors.

        Use it, for example, to rank candidates that another index has found.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Queries.
        labels : array_like of int64, shape (n, k)
            For each query, ids of stored vectors, or -1.

        Returns
        -------
        float32, shape (n, k), padded as in search if the label is -1
        """
        return of_subset(self, "distance", x, labels)

    def compute_kernel_subset(
        self, x: "ArrayLike", labels: "ArrayLike"
    ) -> "NDArray[np.float32]":
        """Kernel values of each query and given stored vectors, whatever the
        metric.

        Vectors are used as they are stored.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Queries.
        labels : array_like of int64, shape (n, k)
            For each query, ids of stored vectors, or -1.

        Returns
        -------
        float32, shape (n, k), the least float if the label is -1
        """
        return of_subset(self, "kernel", x, labels)

    def compute_score_subset(
        self, x: "ArrayLike", labels: "ArrayLike"
    ) -> "NDArray[np.float32]":
        """Scores, as in search_scores, of each query and given stored vectors.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Queries.
        labels : array_like of int64, shape (n, k)
            For each query, ids of stored vectors, or -1.

        Returns
        -------
        float32, shape (n, k), the largest float if the label is -1
        """
        return of_subset(self, "score", x, labels)

    def search_scores(
        self, x: "ArrayLike", k: int, *,
        params: "faiss.SearchParameters | None" = None,
        filter: (
            "ArrayLike | set[int] | Callable[..., Any] | "
            "faiss.IDSelector | None") = None
    ) -> "tuple[NDArray[np.float32], NDArray[np.int64]]":
        """Like search, but returns scores instead of distances.

        Smaller scores are nearer. Scores order vectors even if their distances
        or kernel values are the same float, as for far vectors: their
        distances are 2 (1 - k) with k below 3e-8. Use scores to merge results
        of several indexes with the same kernel and metric.

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

        Returns
        -------
        scores : float32, shape (n, k), the largest float for padding
        labels : int64, shape (n, k)
        """
        where = f"{type(self).__name__}.search_scores"
        x = vectors_for_exact(self, x, where)
        k = as_k(k, where)
        kwargs = with_filter(self, {"params": params, "filter": filter}, where)
        params = checked_arguments(
            self, "search_scores", len(x), (), kwargs, where)[1]["params"]
        scores = np.empty((len(x), k), "float32")
        labels = np.empty((len(x), k), "int64")
        results = k, faiss.swig_ptr(scores), faiss.swig_ptr(labels), params
        if isinstance(x, SparseVectors):
            swig._search_scores_sparse_c(self, *x.arguments(), *results)
        else:
            self._search_scores_c(len(x), faiss.swig_ptr(x), *results)
        return scores, labels

    def values_of_scores(
        self, scores: "ArrayLike", labels: "ArrayLike"
    ) -> "tuple[NDArray[np.float32], NDArray[np.int64]]":
        """Converts scores to the results that search returns.

        Parameters
        ----------
        scores : array_like, shape (n, k)
            Scores of each query's results, from the nearest to the farthest.
        labels : array_like of int64, shape (n, k)
            Ids of the results, padded with -1 at the end.

        Returns
        -------
        distances : float32, shape (n, k)
            Distances or kernel values.
        labels : int64, shape (n, k)
        """
        where = f"{type(self).__name__}.values_of_scores"
        scores = as_matrix(scores, f"{where}: scores").copy()
        labels = as_ids(labels, scores.shape, f"{where}: labels").copy()
        self._values_of_scores_c(
            len(scores), scores.shape[1], faiss.swig_ptr(scores),
            faiss.swig_ptr(labels))
        return scores, labels

    def of_subset(self, what, x, labels):
        where = f"IndexFlatKernel.compute_{what}_subset"
        x = vectors_for_exact(self, x, where)
        labels = as_ids(labels, (len(x), None), f"{where}: labels")
        found = np.empty(labels.shape, dtype="float32")
        results = (labels.shape[1], faiss.swig_ptr(found),
                   faiss.swig_ptr(labels))
        if isinstance(x, SparseVectors):
            getattr(swig, f"_compute_{what}_subset_sparse_c")(
                self, *x.arguments(), *results)
        else:
            getattr(self, f"_compute_{what}_subset_c")(
                len(x), faiss.swig_ptr(x), *results)
        return found

    for method in (compute_distance_subset, compute_kernel_subset,
                   compute_score_subset, search_scores, values_of_scores):
        setattr(swig.IndexFlatKernel, method.__name__, method)
    for method in (search_scores, values_of_scores):
        setattr(swig.IndexHNSWKernel, method.__name__, method)

    def permute_entries(self, perm: "ArrayLike") -> None:
        """Reorders the vectors: vector perm[i] becomes vector i.

        Parameters
        ----------
        perm : array_like of int64, shape (ntotal,)
            A permutation of the ids.
        """
        perm = as_ids(perm, (self.ntotal,), "IndexFlatKernel.permute_entries")
        self._permute_entries_c(faiss.swig_ptr(perm))

    def link_singletons(self) -> None:
        """Raises an error. FAISS's function is for its own kinds of vectors, and
        would crash the process."""
        raise unsupported("IndexHNSWKernel.link_singletons is not supported; "
                          "compact makes the links again")

    swig.IndexFlatKernel.permute_entries = permute_entries
    swig.IndexHNSWKernel.link_singletons = link_singletons
    def reconstruct_n(self, n0=0, ni=-1, x=None):
        if ni == -1 and x is None:
            raise ValueError("IndexIDTable.reconstruct_n: ni must be given, as "
                             "ids need not be consecutive")
        x = rows_for(self, n0, ni, x, self.d, "float32")
        self.reconstruct_n_c(n0, len(x), faiss.swig_ptr(x))
        return x

    documentation.document(
        reconstruct_n, documentation.FloatIndexMethods.reconstruct_n)
    swig.IndexIDTable.reconstruct_n = checked_scalars(
        reconstruct_n, "reconstruct_n")
    wrap_chain()
    keep_arguments(swig.IndexKernelHash, "hash", "storage")
    keep_arguments(swig.IndexHNSWKernel, "storage")
    keep_arguments(swig.IndexIDTable, "index")
    keep_arguments(swig.IndexConcurrent, "index")
    keep_arguments(swig.IndexPreTransformSIMD, "index")
    keep_arguments(swig.IndexRefineKernel, "base_index", "refine_index")


class TransformVector(faiss.VectorTransformVector):
    """The transformations of an index. Its elements are downcast, and keep it
    alive."""

    def at(self, i):
        transform = super().at(i)
        transform.referenced_objects = [self]
        return faiss.downcast_VectorTransform(transform)


def wrap_chain():
    """Makes an index verify its matrices once others have access to them."""
    the_class = swig.IndexPreTransformSIMD
    chain, prepend = the_class.chain, the_class.prepend_transform
    the_class._chain = chain

    def get_chain(self):
        self.verify_chain = True
        return with_class_of(chain.fget(self), TransformVector)

    def prepend_transform(self, ltrans: "faiss.VectorTransform") -> None:
        """Puts a transformation in front of the others.

        Parameters
        ----------
        ltrans : faiss.VectorTransform
            The transformation, which is kept alive. If the index owns its
            parts, it takes ownership.
        """
        if not isinstance(ltrans, faiss.VectorTransform):
            raise TypeError("IndexPreTransformSIMD.prepend_transform: ltrans "
                            "must be a faiss.VectorTransform, got "
                            f"{shown(ltrans)}")
        prepend(self, ltrans)
        self.verify_chain = True
        if self.own_fields and ltrans.thisown:  # else both would delete it
            ltrans.this.disown()
            ltrans.referenced_objects = [self]

    the_class.chain = Attribute.of(chain, get_chain)
    the_class.prepend_transform = prepend_transform


def inherit_errors(the_class):
    """Makes the methods that a class inherits from FAISS run through this
    package's C++ module, which keeps the class and the data of errors."""
    kind = "binary" if issubclass(the_class, faiss.IndexBinary) else "index"
    for function in list(vars(swig)):
        if not function.startswith(f"_{kind}_"):
            continue
        name = function.removeprefix(f"_{kind}_")
        if hasattr(the_class, name + "_c"):
            name += "_c"
        if hasattr(the_class, name):
            base = getattr(the_class, name)
            if base.__module__ != swig.__name__:
                setattr(the_class, name,
                        through_here(base, getattr(swig, function)))


def through_here(base_method, function):
    """A method of FAISS that calls a function of this package instead."""

    @functools.wraps(base_method)
    def method(self, *args, **kwargs):
        if kwargs:
            args = inspect.signature(base_method).bind(
                self, *args, **kwargs).args[1:]
        return function(self, *args)

    return as_inherited(method)


def as_inherited(method):
    """Marks a method that only calls the method of the base class."""
    method.is_inherited = True
    return method


def inherited(the_class, name):
    """A copy of an inherited method."""
    base_method = getattr(the_class, name)

    def method(self, *args, **kwargs):
        return base_method(self, *args, **kwargs)

    documentation.document(method, base_method)
    return as_inherited(method)


# methods that take no vectors
TAKE_NO_VECTORS = (
    "reconstruct", "reconstruct_n", "reconstruct_batch", "remove_ids",
    "merge_from", "check_compatible_for_merge", "sa_code_size", "sa_decode")


def check_scalars(the_class):
    for name in TAKE_NO_VECTORS:
        if name == "sa_code_size" and issubclass(the_class, faiss.IndexBinary):
            continue  # not in all versions of FAISS
        if hasattr(the_class, name):
            method = (vars(the_class).get(name)
                      or inherited(the_class, name))
            setattr(the_class, name, checked_scalars(method, name))


# ------------------------------------------------------ search parameters

def wrap_search_parameters():
    make = swig.SearchParametersRefine.__init__

    def __init__(
            self, k_factor: float, *,
            base_params: "faiss.SearchParameters | None" = None,
            sel: "faiss.IDSelector | None" = None) -> None:
        """Search parameters of an index with Refine(KFlat(...)).

        Parameters
        ----------
        k_factor : float
            Candidates per result, in place of the index's k_factor.
        base_params : faiss.SearchParameters, optional
            Parameters of the index in front, in place of its own settings.
        sel : faiss.IDSelector, optional
            Selects the results. It cannot be combined with base_params, which
            can have a selector of its own.
        """
        where = "SearchParametersRefine"
        check_k_factor(k_factor, f"{where}: k_factor")
        make(self)
        self.k_factor = k_factor
        for name, value, kind in (
                ("base_params", base_params, faiss.SearchParameters),
                ("sel", sel, faiss.IDSelector)):
            if value is not None:
                if not isinstance(value, kind):
                    raise TypeError(f"{where}: {name} must be "
                                    f"faiss.{kind.__name__}, got {shown(value)}")
                setattr(self, name, value)
        self.referenced_objects = [base_params, sel]

    swig.SearchParametersRefine.__init__ = __init__


# -------------------------------------------------------------------- ids

# without derived ones
INDEX_CLASSES = (
    swig.IndexFlatKernel, swig.IndexIVFPQ4, swig.IndexAsymmetricHash,
    swig.IndexHNSWKernel, swig.IndexPreTransformSIMD, swig.IndexRefineKernel,
    swig.IndexIDTable, swig.IndexBinaryIDTable, swig.IndexKernelHash,
    swig.IndexBinaryKernelHash, swig.IndexBinaryPermuted,
    swig.IndexBinaryFlatKernel, swig.IndexBinaryFlatSIMD,
    swig.IndexBinaryIVFSIMD, swig.IndexBinaryHNSWSIMD,
    swig.IndexBinaryRefineKernel, swig.IndexConcurrent,
    swig.IndexBinaryConcurrent)


def wrap_ids():

    def update_vectors(
        self, ids: "ArrayLike", x: "ArrayLike", *, packed: "bool | int" = False
    ) -> None:
        """Replaces the vectors with these ids.

        If an id does not exist, or is given twice, this raises an error and
        changes nothing.

        Parameters
        ----------
        ids : array_like of int64, shape (n,)
            The ids.
        x : array_like
            The new vectors or codes, as in add.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as in add.
        """
        x, ids = checked_changes(self, x, ids, packed, "update_vectors")
        if isinstance(x, SparseVectors):
            return sparse_vectors.update_vectors(self, x, ids)
        swig._update_vectors_c(
            self, len(x), faiss.swig_ptr(ids), faiss.swig_ptr(x))

    def upsert(
        self, x: "ArrayLike", ids: "ArrayLike", *, packed: "bool | int" = False
    ) -> int:
        """Replaces the vectors whose ids exist, and adds the others.

        Parameters
        ----------
        x : array_like
            Vectors or codes, as in add.
        ids : array_like of int64, shape (n,)
            Their ids, each once.
        packed : bool or int, optional
            Whether the rows of x are packed bits, as in add.

        Returns
        -------
        int, the number of vectors that were replaced
        """
        x, ids = checked_changes(self, x, ids, packed, "upsert")
        if isinstance(x, SparseVectors):
            return sparse_vectors.upsert(self, x, ids)
        return swig._upsert_c(
            self, len(x), faiss.swig_ptr(x), faiss.swig_ptr(ids))

    def checked_changes(self, x, ids, packed, name):
        where = f"{type(self).__name__}.{name}"
        packed = checked_packed(packed, where)
        if packed:
            x = unpacked(self, x, packed, where)
        x = (codes_by_hash(self, x, where)
             if isinstance(self, faiss.IndexBinary)
             else x if isinstance(x, SparseVectors)
             else SparseVectors(x, self.d, where) if is_sparse(x)
             else as_vectors(x, self.d, where))
        return x, as_new_ids(ids, len(x), where)

    def ids(self) -> "NDArray[np.int64]":
        """The ids of all vectors, in no particular order.

        Returns
        -------
        int64, shape (ntotal,)
        """
        return ids_of(self)

    def contains(self, ids: "ArrayLike") -> "NDArray[np.bool_]":
        """Whether the index has vectors with these ids.

        Parameters
        ----------
        ids : array_like of int64, shape (n,), or int
            The ids.

        Returns
        -------
        bool, of the shape of ids
        """
        shape, ids = as_asked(ids, f"{type(self).__name__}.contains")
        found = np.empty(len(ids), dtype=bool)
        swig._contains_c(self, len(ids), faiss.swig_ptr(ids),
                         faiss.swig_ptr(found.view("uint8")))
        return found.reshape(shape)[()]

    for the_class in INDEX_CLASSES:
        for method in (update_vectors, upsert, ids, contains):
            setattr(the_class, method.__name__, inherited_function(method))


def wrap_contents():
    """Methods about what an index stores, through all of its parts."""

    def __len__(self) -> int:
        """The number of vectors, ntotal."""
        return self.ntotal

    def __bool__(self) -> bool:
        """True, also for an empty index."""
        return True

    def list_sizes(self) -> "NDArray[np.int64]":
        """The number of vectors in each inverted list of IVF, BIVF or KIVF.

        The lists may belong to a part of the index. If there are no lists,
        this raises an error.

        Returns
        -------
        int64, shape (nlist,)
        """
        return list_sizes_of(self)

    def compact(self) -> None:
        """Rebuilds changed graphs (HNSW,KFlat).

        This frees the memory of removed vectors. Searches then find as much as
        in a new graph of the remaining vectors. All graphs at any depth of the
        index are rebuilt if vectors were removed or replaced since they were
        built. Ids do not change. If there is no such graph, the call has no
        effect.
        """
        swig._compact_c(self)

    for the_class in INDEX_CLASSES:
        for method in (__len__, __bool__, list_sizes, compact):
            setattr(the_class, method.__name__, inherited_function(method))


def inherited_function(method):
    """A copy of a function, so that two classes can document it as theirs."""

    @functools.wraps(method)
    def function(self, *args, **kwargs):
        return method(self, *args, **kwargs)

    return function


# ---------------------------------------------------------- binary indexes

def wrap_binary_indexes():
    # assigning to the class would not reach C++; it is set in cvar
    del swig.IndexBinaryPermuted.max_gb_read
    for the_class in (swig.IndexBinaryPermuted, swig.IndexBinaryFlatSIMD,
                      swig.IndexBinaryFlatKernel, swig.IndexBinaryIVFSIMD,
                      swig.IndexBinaryHNSWSIMD, swig.IndexBinaryRefineKernel,
                      swig.IndexBinaryIDTable, swig.IndexBinaryConcurrent,
                      swig.IndexBinaryKernelHash):
        is_wrapper = the_class in (
            swig.IndexBinaryIDTable, swig.IndexBinaryConcurrent)
        takes_vectors = is_wrapper or the_class is swig.IndexBinaryKernelHash
        as_input = (codes_by_hash if is_wrapper
                    else vectors_for_hash if takes_vectors else codes)
        methods = binary_methods(the_class)
        faiss_wrappers.handle_IndexBinary(the_class)
        inherit_errors(the_class)
        for name in ("train", "add", "add_with_ids", "search", "range_search",
                     "search_and_reconstruct", "assign"):
            method = methods.get(name) or (
                train_of_faiss if name == "train" else inherited(the_class, name))
            setattr(the_class, name, checked(method, name, as_input))
            if takes_vectors and name in OF_CODES:
                setattr(the_class, OF_CODES[name],
                        checked(method, OF_CODES[name], codes))
        if "reconstruct_n" in methods:
            the_class.reconstruct_n = methods["reconstruct_n"]
        the_class.reconstruct = inherited_function(binary_reconstruct)
        the_class.reconstruct_batch = inherited_function(
            binary_reconstruct_batch)
        check_scalars(the_class)
        documentation.document_methods(
            the_class, documentation.BinaryIndexMethods)
        if takes_vectors:
            documentation.document_methods(
                the_class, documentation.HashedIndexMethods)
    keep_arguments(swig.IndexBinaryKernelHash, "hash", "storage")
    keep_arguments(
        swig.IndexBinaryRefineKernel, "base_index", "refine_index")
    keep_arguments(swig.IndexBinaryIVFSIMD, "quantizer")
    for the_class in (swig.IndexBinaryHNSWKernel, swig.IndexBinaryRefineKernel):
        for name in ("distance", "kernel_value"):
            setattr(the_class, name, vars(swig.IndexBinaryFlatKernel)[name])
    for the_class in (swig.IndexBinaryIDTable, swig.IndexBinaryConcurrent):
        keep_arguments(the_class, "index")
        the_class.train = train_through_hash(the_class)

    def replace_invlists(
            self, il: "faiss.InvertedLists", own: bool = False) -> None:
        """Replaces the inverted lists.

        Parameters
        ----------
        il : faiss.InvertedLists
            The new lists.
        own : bool, optional
            Whether the index deletes them.
        """
        if not isinstance(il, faiss.InvertedLists):
            raise TypeError("IndexBinaryIVFSIMD.replace_invlists: il must be "
                            f"faiss.InvertedLists, got {shown(il)}")
        faiss.IndexBinaryIVF.replace_invlists(self, il, own)

    swig.IndexBinaryIVFSIMD.replace_invlists = replace_invlists


def binary_reconstruct(self, key):
    code = np.empty(self.code_size, dtype="uint8")  # FAISS's has d // 8 bytes
    self.reconstruct_c(key, faiss.swig_ptr(code))
    return code


def binary_reconstruct_batch(self, key, x=None):
    """Returns the codes of some ids. FAISS has this only for float indexes."""
    shape = (len(key), self.code_size)
    if x is None:
        x = np.empty(shape, dtype="uint8")
    check_result(
        x, "x", "uint8", shape, f"{type(self).__name__}.reconstruct_batch")
    swig._reconstruct_batch_c(
        self, len(key), faiss.swig_ptr(key), faiss.swig_ptr(x))
    return x


def train_through_hash(the_class):
    """The method train of a wrapper, which trains a hash behind it as well."""
    train_codes = the_class.train_codes

    def train(self, x: "ArrayLike", *, packed: "bool | int" = False) -> None:
        if hash_in_front(self) is None:
            train_codes(self, x)
            return
        front = part_in_front(self)
        front.train(x, packed=packed)
        part = self
        while part.this != front.this:
            part.is_trained = True
            part = part.index

    documentation.document(train, documentation.HashedIndexMethods.train)
    return train


def train_of_faiss(self, x):
    """FAISS's wrapper takes only multiples of 8 bits."""
    self.train_c(len(x), faiss.swig_ptr(x))


def binary_methods(the_class):
    """NumPy versions of the methods that a binary index class defines itself."""
    c = {name: method for name, method in vars(the_class).items()
         if inspect.isfunction(method)}

    def train(self, x):
        c["train"](self, len(x), faiss.swig_ptr(x))

    def add(self, x):
        c["add"](self, len(x), faiss.swig_ptr(x))

    def add_with_ids(self, x, ids):
        c["add_with_ids"](
            self, len(x), faiss.swig_ptr(x), faiss.swig_ptr(ids))

    def search(self, x, k, *, params=None):
        D = np.empty((len(x), k), dtype="int32")
        I = np.empty((len(x), k), dtype="int64")
        c["search"](self, len(x), faiss.swig_ptr(x), k, faiss.swig_ptr(D),
                    faiss.swig_ptr(I), params)
        return D, I

    def search_and_reconstruct(self, x, k, *, params=None):
        D = np.empty((len(x), k), dtype="int32")
        I = np.empty((len(x), k), dtype="int64")
        R = np.empty((len(x), k, self.code_size), dtype="uint8")
        c["search_and_reconstruct"](
            self, len(x), faiss.swig_ptr(x), k, faiss.swig_ptr(D),
            faiss.swig_ptr(I), faiss.swig_ptr(R), params)
        return D, I, R

    def search_and_reconstruct_by_id(self, x, k, *, params=None):
        D, I = search(self, x, k, params=params)
        R = np.full((len(x), k, self.code_size), 255, dtype="uint8")
        for place in np.argwhere(I >= 0):
            R[tuple(place)] = self.reconstruct(I[tuple(place)])
        return D, I, R

    def assign(self, x, k=1):
        return search(self, x, k)[1]

    def range_search(self, x, thresh, *, params=None):
        result = faiss.RangeSearchResult(len(x))
        c["range_search"](
            self, len(x), faiss.swig_ptr(x), thresh, result, params)
        lims = faiss.rev_swig_ptr(result.lims, len(x) + 1).copy()
        found = int(lims[-1])
        D = faiss.rev_swig_ptr(result.distances, found).copy()
        I = faiss.rev_swig_ptr(result.labels, found).copy()
        return lims, D, I

    def reconstruct_n(self, n0=0, ni=-1, x=None):
        x = rows_for(self, n0, ni, x, self.code_size, "uint8")
        c["reconstruct_n"](self, n0, len(x), faiss.swig_ptr(x))
        return x

    methods = {method.__name__: method for method in (
        train, add, add_with_ids, search, search_and_reconstruct,
        range_search, reconstruct_n) if method.__name__ in c}
    methods.setdefault("search_and_reconstruct", search_and_reconstruct_by_id)
    methods["assign"] = assign
    return methods


# --------------------------------------------------------------- settings

# dimensions and counts that are computed from other attributes
DERIVED = {"d", "d_in", "d_out", "ntotal", "code_size"}


# members of FAISS's classes on which tables and graphs depend
FIXED_PARTS = {
    swig.IndexIDTable: ("index", "id_map"),
    swig.IndexBinaryIDTable: ("index", "id_map"),
    swig.IndexConcurrent: ("index",), swig.IndexBinaryConcurrent: ("index",),
    swig.IndexHNSWKernel: ("storage",),
    swig.IndexBinaryHNSWSIMD: ("storage",)}
# members of FAISS's classes that may be null
NULLABLE = {"clustering_index"}


def owning_transforms(thing):
    """Returns the hashes and maps of which an object is a part.

    Indexes are never parts of them: an index refers to the transformations
    that it contains.
    """
    if isinstance(thing, (faiss.Index, faiss.IndexBinary)):
        return []
    return [o for o in getattr(thing, "referenced_objects", [])
            if isinstance(o, swig.Transform)]


def is_used(thing):
    """Whether training has used the parameters of an object or of its owner."""
    owners = owning_transforms(thing)
    if isinstance(thing, swig.HomogeneousKernelMap):  # learns nothing
        return bool(owners)
    return any(o.is_trained for o in owners) or (
        isinstance(thing, swig.Transform) and thing.is_trained)


def is_derived(thing, name):
    """Whether an attribute is computed, and so cannot be set."""
    if name == "metric_type":
        return True  # codes, graphs and parts are made for it
    if name in FIXED_PARTS.get(type(thing), ()):
        return True
    if name == "is_trained":
        return isinstance(
            thing, (swig.Kernel, swig.Transform, swig.IndexIVFPQ4))
    if isinstance(thing, swig.KernelPCA) and not owning_transforms(thing):
        return name in DERIVED | {"rank", "auto_rank", "auto_scale"}
    return name in DERIVED


def setting_hint(thing, name):
    """Returns a hint how to set a search parameter of a part of an index, or
    ""."""
    is_index = (isinstance(thing, (faiss.Index, faiss.IndexBinary))
                and name != "this" and hasattr(thing, "this"))
    if not is_index or name.startswith("_") or name not in settings_of(thing):
        return ""
    return (f"; a part of it has: faiss_ext.set_index_parameter(index, "
            f"{name!r}, value) sets it")


def check_k_factor(value, what):
    """Refuses a k_factor for which FAISS would write out of bounds."""
    most = swig._max_k_factor()
    if isinstance(value, numbers.Real) and not 1 <= value <= most:
        raise ValueError(f"{what} must be a number from 1 to {most}, got "
                         f"{shown(value)}")


def check_settings(the_class):
    """Makes assignments to attributes fail if they would have no effect or do
    harm."""

    def set_attribute(self, name, value):
        if name in INTERNAL:
            object.__setattr__(self, name, value)
            return
        what = f"{type(self).__name__}.{name}"
        member = getattr(type(self), name, None)
        if member is None and (
                name.startswith("_") or type(self).__module__ != swig.__name__):
            object.__setattr__(self, name, value)  # of a Python subclass
            return
        if member is None:
            names = [n for n in dir(type(self)) if not n.startswith("_")]
            near = difflib.get_close_matches(name, names, 1)
            hint = (setting_hint(self, name) or near
                    and f"; did you mean {near[0]!r}?" or "")
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name!r}{hint}")
        if is_derived(self, name) or (isinstance(member, property)
                                      and member.fset is None):
            raise AttributeError(f"{what} is read-only")
        if value is None and name not in NULLABLE and hasattr(
                getattr(self, name), "this"):
            raise TypeError(f"{what} cannot be None")
        value = python_number(value)
        if (isinstance(value, int) and value in (0, 1)
                and isinstance(getattr(self, name), bool)):
            value = bool(value)
        if (isinstance(member, property) and is_used(self)
                and name not in ("is_trained", "verbose")):
            raise AttributeError(
                f"{what} cannot be changed: its hash or map was made or trained "
                "with it; give it in the string")
        if (isinstance(self, swig.IndexBinaryPermuted) and self.ntotal
                and name in ("M", "eps", "seed")):
            raise AttributeError(
                f"{what} has no effect on the codes in the index: set it "
                "before the first are added")
        if name == "k_factor" and isinstance(
                self, (swig.IndexRefineKernel, swig.IndexBinaryRefineKernel)):
            check_k_factor(value, what)
        if (isinstance(self, swig.IndexBinaryIVFSIMD) and name == "nprobe"
                and isinstance(value, int) and value < 1):
            raise ValueError(f"{what}: nprobe is {value}, expected an integer "
                             "from 1")
        # the owner checks a part that has no check of its own
        checks = [t.check_parameters for t in (
            self, *getattr(self, "referenced_objects", []))
            if hasattr(t, "check_parameters")]
        before = getattr(self, name) if checks and name != "is_trained" else None
        try:
            object.__setattr__(self, name, value)
        except TypeError:
            kind = (getattr(member, "type", None)
                    or type(getattr(self, name)).__name__)
            raise TypeError(f"{what} must be {kind}, got {shown(value)}") from None
        if before is not None:
            try:
                for check in checks:
                    check()
            except RuntimeError as error:
                object.__setattr__(self, name, before)
                raise with_prefix(error, f"{what}: ", ValueError) from None

    def get_attribute(self, name):  # called if there is no such attribute
        raise AttributeError(f"{type(self).__name__!r} object has no attribute "
                             f"{name!r}{setting_hint(self, name)}")

    the_class.__setattr__ = set_attribute
    if issubclass(the_class, (faiss.Index, faiss.IndexBinary)):
        the_class.__getattr__ = get_attribute


def wrap_settings():
    for the_class in (
            swig.BitKernel, swig.Kernel, swig.Projection, swig.KernelHash, swig.FeatureMap,
            *INDEX_CLASSES, swig.ProjectionChoice):
        check_settings(the_class)


for name in ("holds_faiss_ext", "index_factory"):
    documentation.document(
        getattr(swig, name), getattr(documentation.Functions, name))
name_arguments()
keep_owners()
wrap_kernels()
wrap_combined_kernels()
wrap_bit_kernels()
wrap_transforms()
wrap_frequencies()
wrap_maps()
wrap_hashes()
wrap_projections()
wrap_float_indexes()
wrap_binary_indexes()
wrap_ids()
wrap_contents()
wrap_search_parameters()
wrap_settings()
name_arguments_of_methods()
for the_class in subclasses(object):
    for name, method in vars(the_class).items():
        if inspect.isfunction(method) and "<locals>" in method.__qualname__:
            method.__qualname__ = f"{the_class.__name__}.{name}"


def mean_neighbor_distance(
    x: "ArrayLike", norm: str = "l2", neighbor: int = 50,
    max_queries: int = 1000, max_points: int = 0, seed: int = 1234, *,
    packed: "bool | int" = False
) -> float:
    """Mean distance from a vector to its neighbor-th nearest other vector.

    Bandwidths are chosen from this distance.

    Parameters
    ----------
    x : array_like or sparse array, shape (n, d)
        Vectors.
    norm : "l1" or "l2", optional
        The distance.
    neighbor : int, optional
        The rank of the neighbour.
    max_queries : int, optional
        Largest number of vectors whose neighbours are computed.
    max_points : int, optional
        Largest number of vectors to search; 0: all.
    seed : int, optional
        Seed of the samples.
    packed : bool or int, optional
        Whether the rows of x are packed bits, as numpy.packbits gives; or
        their number of bits. The vectors are then their zeros and ones.

    Returns
    -------
    float
    """
    if norm not in ("l1", "l2"):
        raise ValueError(f"norm must be 'l1' or 'l2', got {shown(norm)}")
    where = "mean_neighbor_distance"
    counts = [as_integer(value, name, where) for name, value in (
        ("neighbor", neighbor), ("max_queries", max_queries),
        ("max_points", max_points), ("seed", seed))]
    packed = checked_packed(packed, where)
    rows = None
    if packed:
        rows = vectors_of_bits(x, packed, where)
    elif is_sparse(x):
        rows = SparseVectors(x, x.shape[-1], where)
    if rows is not None:
        return swig._mean_neighbor_distance_sparse_c(
            norm == "l1", *rows.arguments(), *counts)
    x = as_matrix(x, where)
    return swig._mean_neighbor_distance_c(
        norm == "l1", x.shape[0], faiss.swig_ptr(x), x.shape[1], *counts)
