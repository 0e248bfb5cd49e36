# SPDX-License-Identifier: MIT
"""Extends the faiss module to the strings, files and classes of faiss_ext.

Functions of the faiss module are replaced. The replacements handle strings,
files and objects of faiss_ext; all other calls go to the original, with
unchanged arguments.
"""

import copy
import functools
import inspect
import os
import re
import sys
import threading

import faiss
import numpy as np

from . import documentation, parameters, showing, strings
from . import swigfaiss_ext as swig
from .class_wrappers import (
    OF_CODES, TAKE_NO_VECTORS, Owners, checked, checked_scalars, codes,
    copy_by, deepcopy_by, from_bytes, hash_in_front, in_words, parts_of,
    reduced, rows_for, shown, to_bytes, vectors_for_hash, vectors_of)

FILE_MAGICS = (b"FxIx", b"FxIB", b"FxVT")
CLASSES = (faiss.Index, faiss.IndexBinary, faiss.VectorTransform)
# methods of indexes whose results point into the index
REFERRING = {"at", "get_distance_computer", "get_FlatCodesDistanceComputer",
             "get_InvertedListScanner"}


# FAISS 1.9 and newer can write None, for a missing index
WRITES_NONE = tuple(
    int(n) for n in faiss.__version__.split(".")[:2]) >= (1, 9)


def is_ours(thing):
    return isinstance(thing, CLASSES) and swig.holds_faiss_ext(thing)


def has_our_class(thing):
    """Whether an object's class is one of faiss_ext, even if its file is
    FAISS's."""
    return any(c.__module__ == swig.__name__ for c in type(thing).__mro__)


def is_known(thing):
    """Whether faiss_ext made an object, or the object is a part of one of its
    own."""
    return has_our_class(thing) or isinstance(
        getattr(thing, "referenced_objects", None), Owners)


def real_class(thing, owner=None, look_into_owner=True):
    """The same object, downcast, which keeps its owner alive.

    An index or transformation is downcast if it or its owner belongs to
    faiss_ext, holds a part of faiss_ext, or is a part of such an object.
    """
    if not hasattr(thing, "this"):
        return thing
    is_of_ours = is_known(owner) or is_known(thing) or is_ours(thing) or (
        look_into_owner and is_ours(owner))
    owners = [] if owner is None else [owner]
    if is_of_ours and isinstance(thing, CLASSES):
        real = swig._downcast(thing)
        real.referenced_objects = Owners([thing, *owners])
        return real
    if owners:
        thing.referenced_objects = (Owners if is_of_ours else list)(owners)
    return thing


def replace(name, make):
    """Replaces faiss.NAME by make(original), unless it is already replaced."""
    original = getattr(faiss, name, None)
    if original is None or hasattr(original, "without_faiss_ext"):
        return
    template = getattr(documentation.Functions, name, None)
    function = functools.wraps(original)(
        with_keywords(functools.wraps(original)(make(original)), template))
    reach_early_import(name, function)
    function.without_faiss_ext = original
    if template:
        documentation.document(function, template)
    setattr(faiss, name, function)


def reach_early_import(name, function):
    """Extends functions that were imported before this package.

    After `from faiss import index_factory`, the caller has FAISS's function.
    It calls a function of the same name in FAISS's C module, which passes
    calls for this package to the replacement.
    """
    module = sys.modules.get(getattr(faiss, name).__module__)
    inner = next((m for n, m in vars(module).items()
                  if n.startswith("_swigfaiss")), None)
    if not name.startswith(("index_", "read_", "write_", "clone_")) or not (
            hasattr(inner, name)):
        return
    of_faiss = getattr(inner, name)

    @functools.wraps(of_faiss)
    def early(*args):
        call = function if concerns_us(name, args) else of_faiss
        return call(*args)

    setattr(inner, name, early)


def concerns_us(name, args):
    """Whether arguments of a FAISS function are strings, files or objects of
    this package."""
    if name.startswith("index_"):
        return len(args) > 1 and isinstance(
            args[1], str) and swig.is_faiss_ext_string(args[1])
    if name.startswith("read_"):
        return bool(args) and holds_magic(args[0]) is not False
    return bool(args) and is_ours(args[0])


def with_keywords(function, template):
    """Makes a function take keyword arguments, by FAISS's names and by the
    names of the documentation."""
    places = {}
    for named in filter(None, (function, template)):
        for place, p in enumerate(inspect.signature(named).parameters.values()):
            if p.kind is not p.VAR_POSITIONAL:
                places.setdefault(p.name, place)

    def in_words(*args):
        try:
            return function(*args)
        except (TypeError, OverflowError) as error:
            concerns_us = any(has_our_class(a) or is_ours(a)
                              or isinstance(a, str)
                              and swig.is_faiss_ext_string(a) for a in args)
            if not concerns_us or not re.search(
                    r"in method '\w+', argument|Wrong number or type of",
                    str(error)):
                raise
            given = ", ".join(map(shown, args))
        names = ", ".join(p for p in places if not p.startswith("arg"))
        raise TypeError(f"{function.__name__}: wrong number or type of "
                        f"arguments, expected {names}, got {given}")

    def call(*args, **kwargs):
        if not kwargs:
            return in_words(*args)
        name, given = function.__name__, dict(enumerate(args))
        for key, value in kwargs.items():
            if key not in places:
                raise TypeError(f"{name}: unknown argument {key!r}, expected "
                                f"{', '.join(places)}")
            if places[key] in given:
                raise TypeError(f"{name}: {key} is given twice")
            given[places[key]] = value
        missing = set(range(len(given))) - given.keys()
        if missing:
            keys = [k for k, place in places.items() if place in missing]
            raise TypeError(f"{name}: {keys[0]} is missing")
        return in_words(*(given[place] for place in sorted(given)))

    return call


def meant_names(string):
    """Pairs of words in a string and the names that differ from them only in
    case."""
    names = {name.lower(): name for name in (
        *swig.described_names(), "BFlat", "AFlat", "BHash", "BIVF", "BHNSW",
        "Refine", "IDMap")}
    words = re.findall(r"[A-Za-z]+", string)
    return [(word, names[word.lower()]) for word in words
            if names.get(word.lower(), word) != word]


def hint_for(string):
    """What to write instead of a string that FAISS cannot parse; or ""."""
    meant = meant_names(string)
    if meant:
        return "unknown name {!r}, did you mean {}?".format(*meant[0])
    for word in re.findall(r"(?<![\w(])\w+", string):
        if word in swig.kernel_names():
            return (f"{word} is a kernel; KFlat({word}) compares vectors under "
                    "it")
    return ""


def check_factory_string(description, function):
    if isinstance(description, bytes):
        raise TypeError(f"{function}: expected a string, got "
                        f"{shown(description)}; decode() makes one")
    start = 0
    # (C++ refuses longer ones)
    for part in description[:10_000] and re.split(r"(,)(?![^()]*\))", description):
        if not part.strip():
            raise RuntimeError(
                f"invalid factory string {shown(description)}, position "
                f"{start}: expected the name of an index or a transformation")
        start += len(part)


def makes(make, description):
    """Whether a factory accepts a string, whatever the dimension is."""
    try:
        make(64, description)
    except (RuntimeError, TypeError, ValueError):
        return False
    return True


def factory(ours, other_name):
    def make(original):
        def function(d, description, *args):
            name = original.__name__
            check_not_none(description, name, "a string")
            if not isinstance(description, (str, bytes)):
                return original(d, description, *args)
            check_factory_string(description, name)
            is_string_of_ours = swig.is_faiss_ext_string(description)
            make = ours if is_string_of_ours else original
            try:
                return make(d, description, *args)
            except RuntimeError as error:
                problem = str(error)
                if makes(getattr(swig, other_name), description):
                    hint = f"{other_name} takes this string"
                elif is_string_of_ours or not re.search(
                        "could not parse|did not generate", problem):
                    hint = ""
                else:
                    hint = hint_for(description)
                if not hint:
                    # kernels are lower-case, what FAISS has in parentheses is not
                    if not is_string_of_ours and re.search(
                            r"\([a-z]", description):
                        ours(d, description, *args)  # says what is accepted
                    raise
            if not is_string_of_ours:
                problem = f"invalid factory string {shown(description)}"
            raise RuntimeError(problem if other_name in problem
                               else f"{problem}: {hint}")
        return function
    return make


def index_binary_factory(d, description, own_invlists=True):
    """Has the same parameters as the function of FAISS 1.14."""
    if not own_invlists:
        raise ValueError("index_binary_factory: own_invlists=False is for "
                         f"FAISS's own strings, not for {description!r}")
    return swig.index_binary_factory(d, description)


def check_not_none(thing, function, expected):
    if thing is None:
        raise TypeError(f"{function}: expected {expected}, got None")


def faiss_loses_codes(thing):
    """Whether FAISS's writer may lose codes of an index, or its class.

    It may lose flat codes that are mapped, and the buckets that hold all codes
    of a multi-hash table.
    """
    if isinstance(thing, swig.IndexBinaryIDTable):
        return True
    while isinstance(thing, faiss.IndexBinaryIDMap) and thing.index is not None:
        thing = faiss.downcast_IndexBinary(thing.index)
    return isinstance(thing, faiss.IndexBinaryMultiHash) or (
        isinstance(thing, faiss.IndexBinaryFlat) and thing.ntotal > 0
        and thing.xb.size() == 0)


def writer(ours):
    def make(original):
        def function(thing, target, *args):
            name = original.__name__
            if name != "write_index" or not WRITES_NONE:
                check_not_none(thing, name, "an object to write")
            check_not_none(target, name, "a file name or an IOWriter")
            if isinstance(target, (str, bytes, os.PathLike)):
                target = as_place(target, name, ())
            if not (is_ours(thing) or faiss_loses_codes(thing)):
                return original(thing, target, *args)
            return ours(thing, as_place(target, name, (faiss.IOWriter,)))
        return function
    return make


def as_place(place, function, streams):
    """The place where a function reads or writes: a path as a string, or a
    stream of FAISS."""
    kinds = " or ".join(f"a faiss.{c.__name__}" for c in streams)
    expected = f"{function}: expected a file name or {kinds}, got "
    if isinstance(place, streams) or type(place).__name__ == "SwigPyObject":
        return place  # SwigPyObject: a FILE* for FAISS
    if hasattr(place, "read") or hasattr(place, "write"):
        raise TypeError(f"{expected}{shown(place)}; faiss.PyCallbackIOReader and "
                        "faiss.PyCallbackIOWriter take open files")
    if not isinstance(place, (str, bytes, os.PathLike)):
        raise TypeError(expected + shown(place))
    name = os.fsdecode(place)
    if "\0" in name:
        raise ValueError(f"{function}: a file name with a null character")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{function}: a file name that is not UTF-8: {os.fsencode(name)}; "
            "faiss.PyCallbackIOReader and PyCallbackIOWriter take open files"
        ) from None
    return name


def is_stream(path):
    """Whether a path can be read only once, like a pipe."""
    return os.path.exists(path) and not os.path.isdir(path)


def holds_magic(source):
    """Whether a file or reader has a file of faiss_ext; None if only reading
    can tell."""
    if isinstance(source, str):
        if not os.path.isfile(source):
            return None if is_stream(source) else False
        try:
            with open(source, "rb") as f:
                return f.read(4) in FILE_MAGICS
        except OSError:
            return False  # the original reports it
    if type(source) is faiss.VectorIOReader:
        head = bytes(source.data.at(i) for i in range(
            source.rp, min(source.rp + 4, source.data.size())))
        return head in FILE_MAGICS
    return None if isinstance(source, faiss.IOReader) else False


def read_by(ours, source, *args):
    thing = ours(source, *args)
    return thing if is_ours(thing) else as_faiss_would(thing)


def reader(ours):
    def make(original):
        def function(source, *args):
            check_not_none(
                source, original.__name__, "a file name or an IOReader")
            if isinstance(source, (str, bytes, os.PathLike)):
                source = as_place(source, original.__name__, ())
            if holds_magic(source) is not False:
                return read_by(ours, source, *args)
            return original(source, *args)
        return function
    return make


def read_index_binary(f, io_flags=0):
    source = as_place(f, "read_index_binary", (faiss.IOReader,))
    return swig.read_index_binary(source, io_flags)


def as_faiss_would(thing):
    """The object in the class that FAISS's own functions would return."""
    for base, name in ((faiss.Index, "downcast_index"),
                       (faiss.IndexBinary, "downcast_IndexBinary"),
                       (faiss.VectorTransform, "downcast_VectorTransform")):
        if isinstance(thing, base):
            downcast_original = getattr(faiss, name)
            result = getattr(downcast_original, "without_faiss_ext",
                             downcast_original)(thing)
            # ownership is not transferred: in SWIG 4.1 that miscounts the
            # references to the module's types
            result.referenced_objects = [thing]
            return result
    return thing


def cloner(ours):
    def make(original):
        def function(thing):
            check_not_none(thing, original.__name__, "an index")
            if is_ours(thing) or faiss_loses_codes(thing):
                return ours(thing)
            return original(thing)
        return function
    return make


def clone_binary_index(index):
    return swig.clone_binary_index(index)


def check_object(thing, function):
    if thing is not None and not isinstance(thing, CLASSES):
        raise TypeError(f"{function}: expected an object of FAISS, got "
                        f"{shown(thing)}")


def ivf_of(original):
    """Wraps extract_index_ivf: raises a clear error for an index without
    lists."""
    find = with_real_class(original)

    def function(index):
        if index is None and original.__name__.startswith("try"):
            return None
        if not isinstance(index, faiss.Index):
            raise TypeError(f"{original.__name__}: expected a faiss.Index, got "
                            f"{shown(index)}")
        if (not original.__name__.startswith("try") and is_ours(index)
                and faiss.try_extract_index_ivf(index) is None):
            raise RuntimeError(
                f"{original.__name__}: {showing.text(index)} holds no "
                "faiss.IndexIVF; faiss_ext.index_parameters and "
                "faiss_ext.set_index_parameter know the parameters of any index")
        return find(index)

    return function


def downcast(original):
    def function(thing):
        check_object(thing, original.__name__)
        real = real_class(thing)
        if real is thing:
            real = original(thing)
            if real is not None and real is not thing:
                real.referenced_objects = [thing]  # may keep its owner alive
        return real
    return function


def with_real_class(get, look_into_owner=True):
    """Wraps a getter: its result keeps the object alive, and is downcast if it
    belongs to faiss_ext or holds a part of it."""

    @functools.wraps(get)
    def function(self, *args):
        return real_class(get(self, *args), self, look_into_owner)

    function.without_faiss_ext = get
    return function


def extend_parts():
    """Extends getters of parts: index.base_index, index.hnsw.levels,
    shards.at(i), extract_index_ivf(index) and others."""
    for cls in list(vars(faiss).values()):
        if not (isinstance(cls, type) and hasattr(cls, "thisown")):
            continue
        for name, member in list(vars(cls).items()):
            if isinstance(member, property) and name != "thisown":
                if not hasattr(member.fget, "without_faiss_ext"):
                    setattr(cls, name, property(
                        with_real_class(member.fget), member.fset,
                        doc=member.__doc__))
            elif (name in REFERRING and issubclass(cls, (
                    faiss.Index, faiss.IndexBinary, faiss.Level1Quantizer))
                    and not hasattr(member, "without_faiss_ext")):
                # at: other shards do not matter, and there may be many
                setattr(cls, name, with_real_class(member, name != "at"))
    for name in list(vars(faiss)):
        if name.startswith(("downcast_", "extract_index", "try_extract_index")):
            replace(name, ivf_of if "index_ivf" in name.lower()
                    else with_real_class)


def extend_chains():
    """Makes chain.at(i) keep the chain alive, and downcast its result."""
    original = faiss.VectorTransformVector.at
    if hasattr(original, "without_faiss_ext"):
        return

    @functools.wraps(original)
    def at(self, i):
        part = original(self, i)
        real = real_class(part, self)
        if real is part:
            real = faiss.downcast_VectorTransform(part)
            real.referenced_objects = [self]
        return real

    at.without_faiss_ext = original
    faiss.VectorTransformVector.at = at


def with_errors(method, name):
    """Wraps a method of a FAISS class for indexes that belong to faiss_ext or
    hold a part of it.

    Arguments are checked, and exceptions of a CallbackKernel are raised again.
    FAISS's own loops swallow exceptions, and its wrappers turn them into
    others.
    """
    checked_method = checked(method, name, vectors_of("d"))

    def plain_method(self, *args, **kwargs):
        return in_words(method, self, name, args, kwargs)

    @functools.wraps(method)
    def function(self, *args, **kwargs):
        if not is_ours(self):
            return method(self, *args, **kwargs)
        is_float = isinstance(self, faiss.Index)
        call = checked_method if is_float else plain_method
        guard = swig._KernelExceptionGuard(self)
        watch = swig._ErrorWatch()
        failure = result = None
        try:
            try:
                result = call(self, *args, **kwargs)
            except RuntimeError as error:
                failure = error
            guard.rethrow()
            if failure is not None:
                watch.rethrow(str(failure))
                # a check of FAISS's own: other errors were rethrown above
                failure.interrupted = str(failure).endswith(
                    "computation interrupted")
                raise failure
        finally:
            watch.end()
            # the traceback of an error keeps this frame alive, perhaps longer
            # than the index to which the guard points
            failure = guard = None
        return result

    function.with_errors = True
    return function


def extend_methods():
    for cls in list(vars(faiss).values()):
        if not (isinstance(cls, type) and issubclass(
                cls, (faiss.Index, faiss.IndexBinary))):
            continue
        for name in ("train", "add", "add_with_ids", "search", "range_search",
                     "assign", "search_and_reconstruct"):
            method = vars(cls).get(name)
            if callable(method) and not hasattr(method, "with_errors"):
                setattr(cls, name, with_errors(method, name))


def extend_refine():
    """Refuses a k_factor below 1: FAISS would write out of bounds."""
    member = faiss.IndexRefine.k_factor
    if hasattr(member.fset, "without_faiss_ext"):
        return

    def set_k_factor(self, value):
        most = swig._max_k_factor()
        if is_ours(self) and not 1 <= float(value) <= most:
            raise ValueError("IndexRefine.k_factor must be a number from 1 to "
                             f"{most}, got {value}")
        member.fset(self, value)

    set_k_factor.without_faiss_ext = member.fset
    faiss.IndexRefine.k_factor = property(
        member.fget, set_k_factor, doc=member.__doc__)


def parameters_left_out(space, index):
    """Those that decide how much an index finds, and that a space lacks."""
    known = {setting.split("=")[0]
             for setting in space.combination_name(0).split(",")}
    return {"nprobe", "efSearch", "nflip", "B"}.intersection(
        parameters.index_parameters(index)) - known


def extend_parameter_space():
    """Makes FAISS's ParameterSpace refer to faiss_ext.ParameterSpace in its
    errors."""

    def with_hint(method):
        @functools.wraps(method)
        def function(self, index, *args):
            ours = is_known(index) or is_ours(index)
            try:
                result = method(self, index, *args)
                if not (ours and method.__name__ == "initialize"
                        and parameters_left_out(self, index)):
                    return result
            except (RuntimeError, TypeError):
                if not ours:
                    raise
            raise RuntimeError(
                f"faiss.ParameterSpace.{method.__name__} does not know the "
                f"parameters of {showing.text(index)}: faiss_ext.ParameterSpace "
                "does")

        function.without_faiss_ext = method
        return function

    for name in ("initialize", "set_index_parameter", "set_index_parameters"):
        method = getattr(faiss.ParameterSpace, name)
        if not hasattr(method, "without_faiss_ext"):
            setattr(faiss.ParameterSpace, name, with_hint(method))


def unpickle_index(data):
    return from_bytes(swig.read_index, data)


def unpickle_index_binary(data):
    return from_bytes(swig.read_index_binary, data)


def extend_pickling():
    """Pickles indexes of faiss_ext, and those that hold a part of it, with its
    functions.

    Unpickling then imports the package, even if the file's format is FAISS's.
    """

    def make(write, unpickle):
        def reduce_ex(self, protocol):
            if is_ours(self) or has_our_class(self):
                return reduced(self, unpickle, to_bytes(write, self))
            return object.__reduce_ex__(self, protocol)
        return reduce_ex

    def copying(copy_ours):
        def function(self, memo=None):
            if is_ours(self) or has_our_class(self):
                return copy_ours(self, *([] if memo is None else [memo]))
            make, arguments, state = object.__reduce_ex__(self, 4)[:3]
            copied = make(*arguments)
            copied.__setstate__(copy.deepcopy(state, memo))
            return copied
        return function


    faiss.Index.__reduce_ex__ = make(swig.write_index, unpickle_index)
    faiss.IndexBinary.__reduce_ex__ = make(
        swig.write_index_binary, unpickle_index_binary)
    for cls, clone in ((faiss.Index, swig.clone_index),
                       (faiss.IndexBinary, swig.clone_binary_index)):
        cls.__copy__ = copying(copy_by(clone))
        cls.__deepcopy__ = copying(deepcopy_by(clone))


BINARY_WRAPPERS = (faiss.IndexBinaryIDMap, faiss.IndexBinaryIDMap2,
                   faiss.IndexBinaryShards, faiss.IndexBinaryReplicas)
WRAPPERS = (faiss.IndexIDMap, faiss.IndexIDMap2, faiss.IndexShards,
            faiss.IndexReplicas, *BINARY_WRAPPERS)


def only_for_ours(method, ours):
    """Wraps a method: indexes of faiss_ext, and those that hold one, use
    `ours`."""

    @functools.wraps(method)
    def function(self, *args, **kwargs):
        call = ours if is_known(self) or is_ours(self) else method
        return call(self, *args, **kwargs)

    function.without_faiss_ext = method
    return function


def extend_binary_wrappers():
    """Makes binary ID maps, Shards and Replicas of IndexBinaryKernelHash take
    vectors, and codes by its methods for codes."""

    def train(self, x):
        for part in parts_of(self):
            part.train(x)
        self.is_trained = all(part.is_trained for part in parts_of(self))

    def of_vectors(method, name):
        def function(self, x, *args, **kwargs):
            return method(
                self, hash_in_front(self).encode(x), *args, **kwargs)

        function.__signature__ = inspect.signature(method)
        return train if name == "train" else function

    def of_either(method, name):
        of_codes = checked(method, name, codes)
        hashed = checked(of_vectors(method, name), name, vectors_for_hash)

        def function(self, *args, **kwargs):
            call = of_codes if hash_in_front(self) is None else hashed
            return call(self, *args, **kwargs)

        return function

    def vectors_or_codes(self, x, where):
        takes_codes = hash_in_front(self) is None
        return (codes if takes_codes else vectors_for_hash)(self, x, where)

    def assign(self, x, k=1):
        return self.search(x, k)[1]

    def search_and_reconstruct(self, x, k):
        D, I = self.search(x, k)
        R = np.full((*I.shape, self.d // 8), 255, "uint8")
        for place in np.argwhere(I >= 0):
            R[tuple(place)] = self.reconstruct(int(I[tuple(place)]))
        return D, I, R

    for cls in BINARY_WRAPPERS:
        for name, name_of_codes in OF_CODES.items():
            method = getattr(cls, name)
            if not hasattr(method, "without_faiss_ext"):
                setattr(cls, name_of_codes,
                        checked(method, name_of_codes, codes))
                setattr(cls, name,
                        only_for_ours(method, of_either(method, name)))
        for name, ours in (("assign", assign), ("search_and_reconstruct",
                                                search_and_reconstruct)):
            method = getattr(cls, name)
            if not hasattr(method, "without_faiss_ext"):
                setattr(cls, name, only_for_ours(
                    method, checked(ours, name, vectors_or_codes)))


def extend_wrappers():
    """Gives the other methods of ID maps, Shards and Replicas clear errors."""
    for cls in WRAPPERS:
        for name in (*TAKE_NO_VECTORS, "sa_encode"):
            method = getattr(cls, name, None)
            if method and not hasattr(method, "without_faiss_ext"):
                setattr(cls, name, only_for_ours(
                    method, counts_checked(checked_scalars(method, name))))


def counts_checked(method):
    """Wraps a method: raises an error if parts differ in their numbers of
    vectors.

    FAISS's loops would end the process.
    """

    @functools.wraps(method)
    def function(self, *args, **kwargs):
        swig._KernelExceptionGuard(self)  # raises an error if they differ
        if method.__name__ == "merge_from" and args:
            check_merge(self, *args)
        return method(self, *args, **kwargs)

    return function


def keeps_ids(index):
    """Whether vectors keep their ids after a removal, as in inverted lists."""
    index = parameters.real(index)
    if isinstance(index, faiss.IndexPreTransform):
        return keeps_ids(index.index)
    if isinstance(index, (swig.IndexKernelHash, swig.IndexBinaryKernelHash)):
        return keeps_ids(index.storage)
    return isinstance(index, (
        swig.IndexIVFPQ4, faiss.IndexIVF, faiss.IndexBinaryIVF))


def check_merge(index, other, add_id=0):
    """Raises an error if FAISS's ID maps would crash or give wrong ids."""
    maps = (faiss.IndexIDMap, faiss.IndexBinaryIDMap)
    if not isinstance(index, maps) or not isinstance(
            other, (faiss.Index, faiss.IndexBinary)):
        return
    where = f"{type(index).__name__}.merge_from"
    if not isinstance(other, type(index)):
        raise TypeError(f"{where}: expected an {type(index).__name__}, got "
                        f"{showing.text(other)}")
    if keeps_ids(index.index):
        raise RuntimeError(
            f"{where}: an ID map in front of inverted lists, which keep ids "
            "themselves, would give wrong ids; use the lists without the map")
    swig._KernelExceptionGuard(other)
    ids = faiss.vector_to_array(other.id_map)
    sums = ids + np.int64(add_id)
    wrong = (sums == -1) | ((ids ^ sums) & (np.int64(add_id) ^ sums) < 0)
    if wrong.any():
        raise ValueError(f"{where}: id {ids[wrong.argmax()]} + {add_id} is out "
                         "of range, or -1, which stands for none")


def extend_id_maps():
    """Makes ID maps reconstruct id by id.

    In FAISS's loop a missing id ends the process, and binary ID maps take
    pointers.
    """

    def by_id(method):
        def function(self, n0=0, ni=-1, x=None):
            if isinstance(self, faiss.IndexBinary):
                x = rows_for(self, n0, ni, x, self.d // 8, "uint8")
            else:
                x = rows_for(self, n0, ni, x, self.d, "float32")
            for i in range(len(x)):
                x[i] = self.reconstruct(n0 + i)
            return x

        return only_for_ours(method, function)

    for cls in (faiss.IndexIDMap, faiss.IndexIDMap2, faiss.IndexBinaryIDMap,
                faiss.IndexBinaryIDMap2):
        method = cls.reconstruct_n
        if not hasattr(method, "without_faiss_ext"):
            cls.reconstruct_n = by_id(method)


def extend_repr():
    """Makes indexes print their parts."""

    def with_contents(original):
        def shown(self):
            if hasattr(self, "this"):  # missing if the constructor failed
                return showing.index_text(self)
            return original(self)

        shown.without_faiss_ext = original
        return shown

    for cls in [*vars(faiss).values(), *vars(swig).values()]:
        if isinstance(cls, type) and issubclass(
                cls, (faiss.Index, faiss.IndexBinary)):
            original = vars(cls).get("__repr__")
            if original and not hasattr(original, "without_faiss_ext"):
                cls.__repr__ = with_contents(original)
            if cls.__module__ == swig.__name__:
                cls.description = strings.index_string


def extend_interrupts():
    """Lets only the main thread check for Ctrl-C."""
    swig._set_main_thread(threading.main_thread().ident)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: swig._set_main_thread(
            threading.get_ident()))
    swig._ask_main_thread_for_interrupts()


def extend():
    replace("index_factory", factory(
        swig.index_factory, "index_binary_factory"))
    replace("index_binary_factory", factory(
        index_binary_factory, "index_factory"))
    for kind in ("index", "index_binary", "VectorTransform"):
        replace("write_" + kind, writer(getattr(swig, "write_" + kind)))
        replace("read_" + kind, reader(getattr(swig, "read_" + kind)))
    replace("clone_index", cloner(swig.clone_index))
    replace("clone_binary_index", cloner(swig.clone_binary_index))
    for name in ("downcast_index", "downcast_IndexBinary",
                 "downcast_VectorTransform"):
        replace(name, downcast)
    extend_parts()
    extend_chains()
    extend_methods()
    extend_refine()
    extend_parameter_space()
    extend_pickling()
    extend_binary_wrappers()
    extend_id_maps()
    extend_wrappers()
    extend_repr()
    extend_interrupts()


extend()
documentation.document(
    read_index_binary, documentation.Functions.read_index_binary)
documentation.document(
    clone_binary_index, documentation.Functions.clone_binary_index)
