# SPDX-License-Identifier: MIT
"""Attributes of errors.

Errors of faiss_ext's C++ code have the attribute `place`. It is the end of the
text, which names the place in the source. Errors of FAISS do not have it. The
text of an error is for people only: no code searches it.
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


def message_of(error):
    """The text of an error without the place in the source."""
    return str(error).removesuffix(getattr(error, "place", ""))


def unsupported(text):
    """The error of a method that a class does not support."""
    error = RuntimeError(text)
    error.unsupported = True
    return error


def reworded(error, text, kind=RuntimeError, **facts):
    """Returns an error of a class with another text and more attributes.

    It keeps the number of a vector if the text ends with the text of `error`.
    """
    result = kind(text)
    kept = {name: getattr(error, name)
            for name in ("interrupted", "unsupported") if hasattr(error, name)}
    if hasattr(error, "before") and text.endswith(str(error)):
        front = text[:len(text) - len(str(error))]
        kept.update(vector=error.vector, before=front + error.before, after=error.after)
    vars(result).update({"place": getattr(error, "place", ""), **kept, **facts})
    return result


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
        raise reworded(error, str(error), ValueError) from None
