# SPDX-License-Identifier: MIT
"""Extends the faiss module to the strings, files and classes of faiss_ext.

Importing faiss_ext replaces the functions of the faiss module that make, read,
write, copy or downcast objects. The replacements handle strings, files and
objects of faiss_ext. All other calls go to the original, with unchanged
arguments. FAISS's classes are not changed.
"""

import functools
import inspect
import os
import re
import sys
import threading

import faiss
import numpy as np

from . import documentation, showing
from . import swigfaiss_ext as swig
from .arguments import shown
from .errors import is_of_swig, reworded
from .index_tree import part_that_stores

FILE_MAGICS = (b"FxIx", b"FxIB", b"FxVT")
CLASSES = (faiss.Index, faiss.IndexBinary, faiss.VectorTransform)

# FAISS 1.9 and newer can write None, for a missing index
WRITES_NONE = tuple(
    int(n) for n in faiss.__version__.split(".")[:2]) >= (1, 9)


def is_ours(thing):
    return isinstance(thing, CLASSES) and swig.holds_faiss_ext(thing)


def has_our_class(thing):
    """Whether an object's class is one of faiss_ext, even if its file is
    FAISS's."""
    return any(c.__module__ == swig.__name__ for c in type(thing).__mro__)


def real_class(thing):
    """The same object, downcast, if it is of this package or holds a part of
    it. The result keeps the given object alive."""
    if isinstance(thing, CLASSES):
        real = swig._downcast(thing)
        if has_our_class(real) or is_ours(thing):
            real.referenced_objects = [thing]
            return real
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
        if concerns_us(name, args):
            return function(*args)
        try:
            return of_faiss(*args)
        except (TypeError, OverflowError, NotImplementedError) as error:
            error.is_of_swig = True
            raise
        except RuntimeError as error:
            is_string = len(args) > 1 and isinstance(args[1], str)
            hint = (hint_for(args[1])
                    if is_string and name.startswith("index_") else "")
            if hint:
                raise invalid_string(error, args[1], hint) from None
            raise

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
        except (TypeError, OverflowError, NotImplementedError) as error:
            if not is_of_swig(error):
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
        *swig.described_names(), "Flat", "IVF", "PCA", "OPQ", "PQ", "SQ", "LSH",
        "RFlat", "BFlat", "AFlat", "BHash", "BIVF", "Refine", "IDMap")}
    words = re.findall(r"[A-Za-z]+", string)
    return [(word, names[word.lower()]) for word in words
            if names.get(word.lower(), word) != word]


def hint_for(string):
    """Returns a hint for a string that FAISS cannot parse, or ""."""
    meant = meant_names(string)
    if meant:
        return "unknown name {!r}, did you mean {}?".format(*meant[0])
    for word in re.findall(r"(?<![\w(])\w+", string):
        if word in swig.kernel_names():
            return (f"{word} is a kernel; KFlat({word}) compares vectors under "
                    "it")
    return ""


MOST_CHARACTERS = 4096  # as in src/core/Spec.cpp


def check_factory_string(description, function):
    if isinstance(description, bytes):
        raise TypeError(f"{function}: expected a string, got "
                        f"{shown(description)}; convert it with decode()")
    if len(description) > MOST_CHARACTERS:
        return  # C++ refuses it
    start = 0
    for part in description and re.split(r"(,)(?![^()]*\))", description):
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


def invalid_string(error, string, hint):
    return reworded(error, f"invalid factory string {shown(string)}: {hint}")


def factory(ours, other_name):
    def make(original):
        def function(d, description, *args):
            name = original.__name__
            check_not_none(description, name, "a string")
            if not isinstance(description, (str, bytes)):
                return original(d, description, *args)
            check_factory_string(description, name)
            if isinstance(d, int) and abs(d) > np.iinfo("int32").max:
                raise TypeError(f"{name}: d is {d}, expected a number from 1 to "
                                 f"{np.iinfo('int32').max}")
            is_string_of_ours = swig.is_faiss_ext_string(description)
            make = ours if is_string_of_ours else original
            try:
                return make(d, description, *args)
            except RuntimeError as error:
                if is_string_of_ours and ours is swig.index_factory:
                    raise  # the text names the other factory
                if makes(getattr(swig, other_name), description):
                    hint = f"{other_name} takes this string"
                else:
                    hint = "" if is_string_of_ours else hint_for(description)
                if not hint:
                    # kernels are lower-case, what FAISS has in parentheses is not
                    if not is_string_of_ours and re.search(
                            r"\([a-z]", description):
                        ours(d, description, *args)  # says what is accepted
                    raise
                if is_string_of_ours:
                    raise reworded(error, f"{error}\n  {hint}") from None
                raise invalid_string(error, description, hint) from None
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
    """Whether FAISS's writer may lose codes of an index, or write it as another
    class.

    It may lose flat codes that are mapped, and the buckets that hold all codes
    of a multi-hash table.
    """
    if isinstance(thing, swig.IndexBinaryIDTable):
        return True
    if not isinstance(thing, faiss.IndexBinary):
        return False
    thing = part_that_stores(thing)
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
            target = as_place(target, name, (faiss.IOWriter,))
            if not (is_ours(thing) or faiss_loses_codes(thing)):
                return original(thing, target, *args)
            return ours(thing, target)
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
            source = as_place(source, original.__name__, (faiss.IOReader,))
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
            if not isinstance(thing, (faiss.Index, faiss.IndexBinary)):
                raise TypeError(f"{original.__name__}: expected an index, got "
                                f"{shown(thing)}")
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

    def find(index):
        found = original(index)
        if found is not None:
            found.referenced_objects = [index]
        return found

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
    for name in ("extract_index_ivf", "try_extract_index_ivf"):
        replace(name, ivf_of)
    extend_interrupts()


extend()
documentation.document(
    read_index_binary, documentation.Functions.read_index_binary)
documentation.document(
    clone_binary_index, documentation.Functions.clone_binary_index)
