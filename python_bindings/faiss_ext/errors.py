# SPDX-License-Identifier: MIT
"""Attributes of errors.

Errors of faiss_ext's C++ code have the attribute `place`: the place in the
source, and the condition that failed. Errors of FAISS do not have it. The text
of an error is for people only: no code decides by it.
"""

import contextlib

import faiss

from . import swigfaiss_ext as swig

# the modules made by SWIG
GENERATED = {swig.__name__, faiss.swig_ptr.__module__}


def module_of(error):
    """The name of the module that raised an error in Python, or called the C++
    function that did."""
    at = error.__traceback__
    while at.tb_next is not None:
        at = at.tb_next
    return at.tb_frame.f_globals.get("__name__", "")


def is_of_swig(error):
    """Whether an error is of a function made by SWIG, or of C++ behind it."""
    return getattr(error, "is_of_swig", False) or module_of(error) in GENERATED


def unsupported(text):
    """The error of a method that a class does not support."""
    error = RuntimeError(text)
    error.unsupported = True
    return error


def reworded(error, text, kind=RuntimeError, **facts):
    """Returns an error of a class with another text and more attributes. It is
    about no vector unless these attributes say so."""
    result = kind(text)
    kept = {name: getattr(error, name)
            for name in ("interrupted", "unsupported") if hasattr(error, name)}
    vars(result).update({"place": getattr(error, "place", ""), **kept, **facts})
    return result


def about_vector(before, vector, after):
    """An error about a vector, as those of faiss_ext's C++ code."""
    error = RuntimeError(f"{before}vector {vector}{after}")
    vars(error).update(place="", vector=vector, before=before, after=after)
    return error


def with_prefix(error, front, kind=RuntimeError, **facts):
    """An error of a class with a text in front of that of `error`, about the
    same vector, and with more facts as attributes."""
    if hasattr(error, "before"):
        facts = {"vector": error.vector, "before": front + error.before,
                 "after": error.after, **facts}
    return reworded(error, f"{front}{error}", kind, **facts)


@contextlib.contextmanager
def renumbering(numbers):
    """Makes errors about row i of an array name the vector numbers[i]."""
    try:
        yield
    except RuntimeError as error:
        row = getattr(error, "vector", len(numbers))
        if row >= len(numbers):
            raise
        raise with_vector(error, int(numbers[row])) from None


def with_vector(error, vector, text=None, **facts):
    """Returns an error about a vector as an error about another vector. `text`
    is the text of its number."""
    return reworded(
        error, f"{error.before}vector {text or vector}{error.after}",
        vector=vector, before=error.before, after=error.after, **facts)


@contextlib.contextmanager
def as_value_errors():
    """Makes ValueErrors of the errors that faiss_ext's C++ code has found.

    Interrupts and errors of callbacks are not changed.
    """
    try:
        yield
    except RuntimeError as error:
        if not hasattr(error, "place") or hasattr(error, "interrupted"):
            raise
        raise with_prefix(error, "", ValueError) from None
