"""Teaches the faiss module the strings, files and classes of faiss_ext.

Functions of the faiss module are replaced by ones that look whether an object
of faiss_ext is concerned; if not, the original is called with the arguments as
they came.
"""

import functools
import os

import faiss

from . import swigfaiss_ext as swig
from .class_wrappers import from_bytes, to_bytes

FILE_MAGICS = (b"FxIx", b"FxIB", b"FxVT")


def is_ours(thing):
    return (isinstance(thing, (faiss.Index, faiss.IndexBinary,
                               faiss.VectorTransform))
            and swig.holds_faiss_ext(thing))


def real_class(thing, owner=None):
    """The same object as its own class, if it is or holds one of faiss_ext."""
    if not is_ours(thing):
        return thing
    real = swig.downcast(thing)
    real.referenced_objects = [thing, owner]
    return real


def replace(name, make):
    """faiss.NAME becomes make(the original); once only."""
    original = getattr(faiss, name, None)
    if original is None or hasattr(original, "without_faiss_ext"):
        return
    function = functools.wraps(original)(make(original))
    function.without_faiss_ext = original
    setattr(faiss, name, function)


def factory(ours):
    def make(original):
        def function(d, description, *args):
            if (isinstance(description, str)
                    and swig.is_faiss_ext_string(description)):
                return ours(d, description, *args)
            return original(d, description, *args)
        return function
    return make


def writer(ours):
    def make(original):
        def function(thing, target, *args):
            if not is_ours(thing):
                return original(thing, target, *args)
            if isinstance(target, (str, os.PathLike)):
                target = os.fspath(target)
            return ours(thing, target)
        return function
    return make


def holds_magic(source):
    """Whether a file, or what a reader would read next, is of faiss_ext; None
    if only reading can tell."""
    if isinstance(source, (str, os.PathLike)):
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


def reader(ours):
    def make(original):
        def function(source, *args):
            if holds_magic(source) is False:
                return original(source, *args)
            if isinstance(source, (str, os.PathLike)):
                source = os.fspath(source)
            return ours(source, *args)
        return function
    return make


def cloner(ours):
    def make(original):
        def function(thing):
            return ours(thing) if is_ours(thing) else original(thing)
        return function
    return make


def downcast(original):
    def function(thing):
        real = real_class(thing)
        return real if real is not thing else original(thing)
    return function


def with_real_class(get):
    """A getter whose object has its real class and keeps its owner alive, if it
    is or holds one of faiss_ext."""

    @functools.wraps(get)
    def function(self, *args):
        return real_class(get(self, *args), self)

    function.without_faiss_ext = get
    return function


def extend_parts():
    """index.base_index, index.storage, shards.at(i), ... of FAISS's classes."""
    for cls in list(vars(faiss).values()):
        if not (isinstance(cls, type) and issubclass(
                cls, (faiss.Index, faiss.IndexBinary))):
            continue
        for name, member in list(vars(cls).items()):
            if isinstance(member, property) and name in (
                    "index", "base_index", "refine_index", "storage"):
                if not hasattr(member.fget, "without_faiss_ext"):
                    setattr(cls, name, property(
                        with_real_class(member.fget), member.fset,
                        doc=member.__doc__))
            elif name == "at" and not hasattr(member, "without_faiss_ext"):
                cls.at = with_real_class(member)


def extend_pickling():
    """Binary indexes, which FAISS may not know how to pickle."""

    def getstate(self):
        return {"this": to_bytes(faiss.write_index_binary, self)}

    def setstate(self, state):
        self.this = from_bytes(faiss.read_index_binary, state["this"]).this

    for cls in (swig.IndexBinaryKernelHash, faiss.IndexBinaryIDMap,
                faiss.IndexBinaryIDMap2, faiss.IndexBinaryShards,
                faiss.IndexBinaryReplicas):
        if "__setstate__" not in dir(cls):
            cls.__getstate__ = getstate
            cls.__setstate__ = setstate


def extend():
    replace("index_factory", factory(swig.index_factory))
    replace("index_binary_factory", factory(swig.index_binary_factory))
    for kind in ("index", "index_binary", "VectorTransform"):
        replace("write_" + kind, writer(getattr(swig, "write_" + kind)))
        replace("read_" + kind, reader(getattr(swig, "read_" + kind)))
    replace("clone_index", cloner(swig.clone_index))
    replace("clone_binary_index", cloner(swig.clone_binary_index))
    for name in ("downcast_index", "downcast_IndexBinary",
                 "downcast_VectorTransform"):
        replace(name, downcast)
    extend_parts()
    extend_pickling()


extend()
