# SPDX-License-Identifier: MIT
"""Lets Python print, copy and pickle the indexes of this package.

Unpickling imports the package, even if the file's format is FAISS's.
"""

import faiss

from . import swigfaiss_ext as swig
from .class_wrappers import (
    copy_by, deepcopy_by, from_bytes, reduced, subclasses, to_bytes)
from .showing import index_text
from .strings import index_string


def unpickle_index(data):
    return from_bytes(swig.read_index, data)


def unpickle_index_binary(data):
    return from_bytes(swig.read_index_binary, data)


def printing(original):
    def __repr__(self):
        if hasattr(self, "this"):  # missing if the constructor failed
            return index_text(self)
        return original(self)

    return __repr__


def reducing(write, unpickle):
    def __reduce_ex__(self, protocol):
        return reduced(self, unpickle, to_bytes(write, self))

    return __reduce_ex__


def add_protocols():
    for base, write, unpickle, clone in (
            (faiss.Index, swig.write_index, unpickle_index, swig.clone_index),
            (faiss.IndexBinary, swig.write_index_binary, unpickle_index_binary,
             swig.clone_binary_index)):
        for the_class in subclasses(base):
            the_class.__repr__ = printing(the_class.__repr__)
            the_class.description = index_string
            the_class.__reduce_ex__ = reducing(write, unpickle)
            the_class.__copy__ = copy_by(clone)
            the_class.__deepcopy__ = deepcopy_by(clone)


add_protocols()
