# SPDX-License-Identifier: MIT
"""Text representations of indexes.

>>> faiss.index_factory(64, "IDMap,SIK512(gaussian),BFlat")
IndexIDTable(IndexKernelHash(SIK512(gaussian), IndexBinaryFlatSIMD), d=64, not trained)
"""

from . import swigfaiss_ext as swig


def class_name(index):
    """The name of an index's class, in Python or, if Python knows only a base
    class, in C++."""
    the_class = type(index)
    is_wrapped = the_class.__module__.startswith(("faiss.", "faiss_ext."))
    return swig._class_name(index) if is_wrapped else the_class.__name__


def with_class_name(index, text):
    """A text of C++ with the name of the index's class in Python."""
    return class_name(index) + text.removeprefix(swig._class_name(index))


def text(index):
    """The text of an index and its parts."""
    if index is None:
        return "None"
    return with_class_name(index, swig._structure_text(index))


def index_text(index):
    """The repr of an index."""
    return with_class_name(index, swig._index_text(index))
